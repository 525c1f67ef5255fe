// k10_hardware: stands in for a rover of metal, for demonstrations and tests. A process of its own, with its
// own clock and its own physics.
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hardware.h"

const double STEP = 2e-3;            // s: of the firmware
static const double PATIENCE = 2.0;  // s that it catches up with after a pause of the machine

static volatile sig_atomic_t is_ended, is_reboot_asked;

static void on_end(int number) {
    (void)number;
    is_ended = 1;
}

static void on_reboot(int number) {
    (void)number;
    is_reboot_asked = 1;
}

// ---- options ----

typedef struct number_option {
    const char *name, *help;
    size_t place;  // of a double in `options`
    double otherwise, min, max;
} number_option;

#define PLACE(member) offsetof(options, member)
static const number_option numbers[] = {
    {"time", "S: seconds to run; 0: until it is ended", PLACE(time), 0, 0, 1e9},
    {"x", "M: where it starts", PLACE(x), 0, -1e4, 1e4},
    {"y", "M: where it starts", PLACE(y), 0, -1e4, 1e4},
    {"yaw", "RAD: where it looks at the start", PLACE(yaw), 0, -10, 10},
    {"ramp", "RAD: slope of a ramp that begins at x = 2 m; 0: flat ground", PLACE(ramp), 0, 0, 0.7},
    {"mass-error", "SHARE: how much heavier it is than its description", PLACE(mass_error), 0, -0.9, 10},
    {"radius-error", "SHARE: how much larger its wheels are than it believes", PLACE(radius_error), 0, -0.3,
     0.3},
    {"friction", "MU: of the wheels on the ground", PLACE(friction), 0.7, 0, 10},
    {"noise", "FACTOR: of encoders, inertial unit and odometry; 0: none, 1: usual", PLACE(noise), 1, 0, 1000},
    {"latency", "S: that every message is under way", PLACE(latency), 0, 0, 2},
    {"jitter", "S: up to which it takes longer", PLACE(jitter), 0, 0, 2},
    {"drop", "SHARE: of messages that are lost", PLACE(drop), 0, 0, 1},
    {"dropout-every", "S: how often the link is gone for a while; 0: never", PLACE(dropout_every), 0, 0, 1e6},
    {"dropout-time", "S: for how long", PLACE(dropout_time), 1, 0, 1e6},
    {"send-jitter", "S: up to which a message waits until it is sent", PLACE(send_jitter), 0, 0, 1.5e-3},
    {"clock-offset", "S: its clock is ahead of the machine's", PLACE(clock_offset), 0, -1e6, 1e6},
    {"clock-drift", "SHARE: its clock is fast, 1e-5 is 10 us in a second", PLACE(clock_drift), 0, -0.1, 0.1},
    {"reboot-time", "S: it is silent while its computer starts again", PLACE(reboot_time), 3, 0.1, 600},
};
enum { N_NUMBER = sizeof numbers / sizeof numbers[0], DOMAIN = 1000, NAMESPACE, SEED, HELP };

static int complain(const char *option, const char *value, const char *what) {
    fprintf(stderr, "error: k10_hardware: --%s%s%s: %s\n  remedy: see k10_hardware --help\n", option,
            value ? " " : "", value ? value : "", what);
    return 2;
}

static void help(void) {
    printf(
        "k10_hardware: a rover that answers on the network as the K10 does, with another engine's physics\n\n"
        "Usage: k10_hardware ROBOT.urdf [OPTIONS]\n\nOptions:\n");
    for (int i = 0; i < N_NUMBER; i++)
        printf("  --%-14s %s (%g)\n", numbers[i].name, numbers[i].help, numbers[i].otherwise);
    printf(
        "  --%-14s N: DDS domain, 0 to 232 (ROS_DOMAIN_ID)\n  --%-14s NAME: its topics are /NAME/... (k10)\n"
        "  --%-14s N: of everything random (1)\n  --%-14s this text\n\n"
        "It stops by itself 0.5 s after the last command on /NAME/cmd_vel. std_msgs/Bool on "
        "/NAME/emergency_stop presses and releases the\n"
        "emergency stop; true on /NAME/reboot, or the signal SIGUSR1, starts its computer again.\n",
        "domain", "namespace", "seed", "help");
}

static bool parse(const char *text, double *out) {
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*out);
}

static bool is_name(const char *text) {
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 0 && n < NAME_SIZE && text[n] == 0 && !(text[0] >= '0' && text[0] <= '9');
}

// One option. 0, or the exit code.
static int take_option(options *o, int which, const char *value) {
    double x = 0;
    if (which < N_NUMBER) {
        const number_option *n = &numbers[which];
        char what[96];
        snprintf(what, sizeof what, "must be a number from %g to %g", n->min, n->max);
        if (!parse(value, &x) || x < n->min || x > n->max) return complain(n->name, value, what);
        memcpy((char *)o + n->place, &x, sizeof x);
    } else if (which == DOMAIN) {
        if (!parse(value, &x) || x < 0 || x > 232 || x != floor(x))
            return complain("domain", value, "must be a whole number from 0 to 232");
        o->domain = (int32_t)x;
    } else if (which == NAMESPACE) {
        if (!is_name(value))
            return complain("namespace", value, "must be letters, digits and _, not beginning with a digit");
        o->namespace_ = value;
    } else {
        if (!parse(value, &x) || x < 0 || x > 1e15 || x != floor(x))
            return complain("seed", value, "must be a whole number");
        o->seed = (uint64_t)x;
    }
    return 0;
}

// -1: go on; else the exit code.
static int read_options(options *o, int argc, char **argv) {
    static const struct option others[5] = {{"domain", required_argument, NULL, DOMAIN},
                                            {"namespace", required_argument, NULL, NAMESPACE},
                                            {"seed", required_argument, NULL, SEED},
                                            {"help", no_argument, NULL, HELP},
                                            {NULL, 0, NULL, 0}};
    struct option table[N_NUMBER + 5];
    memset(o, 0, sizeof *o);
    o->namespace_ = "k10";
    o->domain = -1;
    o->seed = 1;
    for (int i = 0; i < N_NUMBER; i++) {
        memcpy((char *)o + numbers[i].place, &numbers[i].otherwise, sizeof numbers[i].otherwise);
        table[i].name = numbers[i].name;
        table[i].has_arg = required_argument;
        table[i].flag = NULL;
        table[i].val = i;
    }
    memcpy(table + N_NUMBER, others, sizeof others);
    opterr = 0;
    for (int which; (which = getopt_long(argc, argv, ":", table, NULL)) != -1;) {
        if (which == HELP) {
            help();
            return 0;
        }
        const char *word = argv[optind - 1];
        while (*word == '-')
            word++;
        if (which == ':') return complain(word, NULL, "needs a value");
        if (which == '?') return complain(word, NULL, "there is no such option");
        int code = take_option(o, which, optarg);
        if (code) return code;
    }
    if (o->dropout_every > 0 && o->dropout_time >= o->dropout_every)
        return complain("dropout-time", NULL, "must be less than --dropout-every");
    if (optind != argc - 1) {
        fprintf(stderr, "error: k10_hardware: %s\n  remedy: write k10_hardware models/k10.urdf\n",
                optind < argc ? "one robot only" : "the robot's URDF file is missing");
        return 2;
    }
    o->urdf = argv[optind];
    return -1;
}

// ---- the loop ----

static int64_t clock_of(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void wait_until(int64_t time) {
    struct timespec t;
    t.tv_sec = time / 1000000000;
    t.tv_nsec = time % 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR && !is_ended)
        continue;
}

typedef struct machine {
    options chosen;
    body rover;
    firmware computer;
    network *radio;       // NULL while the computer starts
    int64_t tick, began;  // of the world; CLOCK_MONOTONIC at its tick 0
    int64_t clock_began;  // of its own clock
    int64_t tick_back;    // when it is back from a reboot
    char why[1400];
} machine;

static bool join_network(machine *m) {
    if (network_open(&m->chosen, &m->radio, m->why, sizeof m->why)) return true;
    fprintf(stderr, "error: %s\n", m->why);
    return false;
}

// Silence, brakes on: others see its node leave the network, and come back.
static void reboot(machine *m) {
    is_reboot_asked = 0;
    network_close(m->radio);
    m->radio = NULL;
    m->tick_back = m->tick + llround(m->chosen.reboot_time / STEP);
    printf("reboot\n");
}

static bool tick(machine *m) {
    const options *o = &m->chosen;
    if (!m->radio && m->tick >= m->tick_back) {
        m->computer.n_boot++;
        firmware_boot(&m->computer, &m->rover);
        if (!join_network(m)) return false;
        is_reboot_asked = 0;
        printf("back\n");
    }
    bool is_asked = is_reboot_asked != 0;
    if (m->radio) {
        is_asked = network_poll(m->radio, &m->computer) || is_asked;
        firmware_tick(&m->computer, &m->rover);
    } else {
        m->computer.time += STEP;
        m->computer.tick++;
        firmware_rest(&m->rover);
    }
    body_step(&m->rover, STEP);
    m->tick++;
    double time = (double)m->tick * STEP;
    int64_t stamp = m->clock_began + llround(1e9 * (time * (1 + o->clock_drift) + o->clock_offset));
    if (m->radio) network_publish(m->radio, &m->computer, &m->rover, m->tick, STEP, stamp);
    if (is_asked && m->radio) reboot(m);
    return true;
}

static bool run(machine *m) {
    const int64_t step = llround(1e9 * STEP),
                  last = m->chosen.time > 0 ? llround(m->chosen.time / STEP) : INT64_MAX;
    m->clock_began = clock_of(CLOCK_REALTIME);
    m->began = clock_of(CLOCK_MONOTONIC);
    while (!is_ended && m->tick < last) {
        if (!tick(m)) return false;
        int64_t due = m->began + m->tick * step, late = clock_of(CLOCK_MONOTONIC) - due;
        // A machine that slept: the world slept too, and its clock went on.
        if (late > llround(1e9 * PATIENCE)) {
            m->began += late;
            m->clock_began += late;
        }
        wait_until(due);
    }
    return true;
}

static void handle(int number, void (*function)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = function;
    sigaction(number, &action, NULL);
}

int main(int argc, char **argv) {
    static machine m;
    int code = read_options(&m.chosen, argc, argv);
    if (code >= 0) return code;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!body_create(&m.rover, &m.chosen, m.why, sizeof m.why)) {
        fprintf(
            stderr,
            "error: %s: %s\n  remedy: take a rover with four steered wheels, for example models/k10.urdf\n",
            m.chosen.urdf, m.why);
        return 2;
    }
    handle(SIGINT, on_end);
    handle(SIGTERM, on_end);
    handle(SIGUSR1, on_reboot);
    bool is_good = firmware_create(&m.computer, &m.chosen, &m.rover);
    if (is_good) {
        firmware_boot(&m.computer, &m.rover);
        is_good = join_network(&m);
    }
    if (is_good) {
        printf("ready: /%s\n", m.chosen.namespace_);
        is_good = run(&m);
    }
    network_close(m.radio);
    firmware_destroy(&m.computer);
    body_destroy(&m.rover);
    return is_good ? 0 : 3;
}
