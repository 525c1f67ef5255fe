// understudy drive: moves a robot by hand or by numbers.
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "bus.h"

typedef struct drive_options {
    const char *robot, *gait, *topic;
    double v, side, w, time, rate, strength;  // NaN: not given
    bool is_stamped, is_quiet;
} drive_options;

// What the odometry last said.
typedef struct odometry {
    bool is_known;
    double sec, nanosec;  // its stamp
    double x, y, yaw, speed, yaw_rate;
} odometry;

typedef struct driver {
    const drive_options *options;
    cli_bus bus;
    char topic[CLI_NAME_MAX], odom_topic[CLI_NAME_MAX], gait_topic[CLI_NAME_MAX];
    const us_message_type *odom_type;
    us_writer *writer, *gait;
    us_reader *odom;
    double v, side, w;  // the command
    odometry start, now;
    int64_t n_sent;
    bool is_alone;  // nobody listens
} driver;

// ---- messages ----

typedef struct cdr {
    unsigned char bytes[160];
    size_t n;
} cdr;

// Plain CDR: little endian, members aligned to their size behind the four bytes of the header.
static void put(cdr *m, const void *value, size_t size) {
    while ((m->n - 4) % size)
        m->bytes[m->n++] = 0;
    memcpy(m->bytes + m->n, value, size);
    m->n += size;
}

static cdr make_command(const driver *d) {
    cdr m = {.bytes = {0, 1, 0, 0}, .n = 4};
    if (d->options->is_stamped) {
        // In the robot's own time, as far as it is known; 0 stands for now.
        int32_t sec = d->now.is_known ? (int32_t)d->now.sec : 0;
        uint32_t nanosec = d->now.is_known ? (uint32_t)d->now.nanosec : 0, length = 1;
        put(&m, &sec, sizeof sec);
        put(&m, &nanosec, sizeof nanosec);
        put(&m, &length, sizeof length);  // frame_id "": its own
        put(&m, "", 1);
    }
    const double twist[6] = {d->v, d->side, 0, 0, 0, d->w};
    for (int i = 0; i < 6; i++)
        put(&m, &twist[i], sizeof twist[i]);
    return m;
}

// How a walker shall walk, once.
static bool send_gait(driver *d) {
    cdr m = {.bytes = {0, 1, 0, 0}, .n = 4};
    uint32_t length = (uint32_t)strlen(d->options->gait) + 1;
    put(&m, &length, sizeof length);
    for (uint32_t i = 0; i < length; i++)
        put(&m, d->options->gait + i, 1);
    return !us_writer_write(d->gait, m.bytes, m.n, 0);
}

static void send_command(driver *d) {
    cdr m = make_command(d);
    if (!us_writer_write(d->writer, m.bytes, m.n, 0)) d->n_sent++;
}

static void on_odometry(driver *d) {
    static unsigned char bytes[4096];
    size_t length;
    while (!us_reader_take(d->odom, bytes, sizeof bytes, &length, NULL) && length > 0) {
        const char *const paths[] = {"header.stamp.sec",        "header.stamp.nanosec",
                                     "pose.pose.position.x",    "pose.pose.position.y",
                                     "pose.pose.orientation.x", "pose.pose.orientation.y",
                                     "pose.pose.orientation.z", "pose.pose.orientation.w",
                                     "twist.twist.linear.x",    "twist.twist.angular.z"};
        double a[sizeof paths / sizeof paths[0]];
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            a[i] = us_message_get_number(d->odom_type, bytes, length, paths[i]);
        double yaw = atan2(2 * (a[7] * a[6] + a[4] * a[5]), 1 - 2 * (a[5] * a[5] + a[6] * a[6]));
        d->now = (odometry){.is_known = true,
                            .sec = a[0],
                            .nanosec = a[1],
                            .x = a[2],
                            .y = a[3],
                            .yaw = yaw,
                            .speed = a[8],
                            .yaw_rate = a[9]};
        if (!d->start.is_known) d->start = d->now;
    }
}

// ---- joining ----

// "/k10/cmd_vel" of "k10", "/k10" or itself; "/cmd_vel" of "/".
static int name_topics(driver *d) {
    const char *robot = d->options->robot + strspn(d->options->robot, "/");
    size_t n = strlen(robot);
    while (n > 0 && robot[n - 1] == '/')
        n--;
    const char *const last = "cmd_vel";
    size_t n_last = strlen(last);
    if (n >= n_last && strncmp(robot + n - n_last, last, n_last) == 0 &&
        (n == n_last || robot[n - n_last - 1] == '/')) {
        n -= n_last;
        while (n > 0 && robot[n - 1] == '/')
            n--;
    }
    if (n > CLI_NAME_MAX - 20)
        return cli_fail(CLI_BAD_INPUT, "understudy drive", "write the robot's name, for example k10",
                        "the robot's name is too long");
    const char *topic = d->options->topic        ? d->options->topic
                        : d->options->is_stamped ? "cmd_vel_stamped"
                                                 : last;
    if (strlen(topic) > CLI_NAME_MAX - n - 10)
        return cli_fail(CLI_BAD_INPUT, "understudy drive", "write a topic, for example operator/cmd_vel",
                        "--topic is too long");
    if (topic[0] == '/') {
        snprintf(d->topic, sizeof d->topic, "%s", topic);
    } else {
        snprintf(d->topic, sizeof d->topic, "%s%.*s/%s", n ? "/" : "", (int)n, robot, topic);
    }
    snprintf(d->odom_topic, sizeof d->odom_topic, "%s%.*s/odom", n ? "/" : "", (int)n, robot);
    snprintf(d->gait_topic, sizeof d->gait_topic, "%s%.*s/gait", n ? "/" : "", (int)n, robot);
    return CLI_GO_ON;
}

static int join_network(driver *d) {
    int code = cli_bus_open(&d->bus, false);
    int32_t node = -1;
    if (code == CLI_GO_ON) code = cli_bus_add_node(&d->bus, "drive", &node);
    if (code != CLI_GO_ON) return code;
    us_error err = {0};
    d->odom_type = us_message_find("nav_msgs/msg/Odometry");
    us_topic_def def = {.topic = d->topic, .node = node};
    def.type = us_message_find(d->options->is_stamped ? "geometry_msgs/msg/TwistStamped"
                                                      : "geometry_msgs/msg/Twist");
    def.qos = us_qos_for_topic(d->topic, def.type);
    def.qos.is_exclusive = !isnan(d->options->strength);
    if (def.qos.is_exclusive) def.qos.strength = (int32_t)d->options->strength;
    us_status status = us_bus_add_writer(d->bus.bus, &def, &d->writer, &err);
    us_topic_def odom = {.topic = d->odom_topic, .type = d->odom_type, .qos = {.depth = 1}, .node = node};
    if (!status) status = us_bus_add_reader(d->bus.bus, &odom, NULL, NULL, &d->odom, &err);
    us_topic_def gait = {
        .topic = d->gait_topic, .type = us_message_find("std_msgs/msg/String"), .node = node};
    gait.qos = us_qos_for_topic(d->gait_topic, gait.type);
    if (!status && d->options->gait) status = us_bus_add_writer(d->bus.bus, &gait, &d->gait, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_BAD_INPUT;
}

// The robots that listen, for a remedy.
static void list_robots(const cli_bus *bus, char *out, size_t cap) {
    size_t at = 0;
    const char *last = NULL;
    out[0] = 0;
    for (int32_t i = 0; i < bus->n_endpoint && at + 1 < cap; i++) {
        const us_endpoint *e = &bus->endpoints[i];
        size_t n = strlen(e->topic);
        if (e->is_writer || n < 10 || strcmp(e->topic + n - 8, "/cmd_vel") != 0 ||
            !cli_is_ros_topic(e->topic))
            continue;
        if (last && strcmp(last, e->topic) == 0) continue;
        int added = snprintf(out + at, cap - at, "%s%.*s", last ? ", " : "", (int)(n - 3 - 8), e->topic + 3);
        at += added > 0 ? (size_t)added : 0;
        last = e->topic;
    }
}

static int fail_alone(driver *d) {
    char robots[256], remedy[384];
    cli_bus_discover(&d->bus);
    list_robots(&d->bus, robots, sizeof robots);
    if (robots[0]) {
        snprintf(remedy, sizeof remedy, "robots that listen here: %s", robots);
    } else {
        snprintf(remedy, sizeof remedy,
                 "start the robot (understudy run SCENE); nobody listens for velocities on domain %d",
                 (int)us_bus_domain(d->bus.bus));
    }
    return cli_fail(CLI_RUN_FAILED, "understudy drive", remedy, "nobody listens on %s", d->topic);
}

// Two drivers of one robot are rarely meant.
static void warn_of_others(driver *d) {
    char dds[CLI_NAME_MAX];
    cli_bus_discover(&d->bus);
    if (!cli_dds_topic(d->topic, dds)) return;
    for (int32_t i = 0; i < d->bus.n_endpoint; i++) {
        const us_endpoint *e = &d->bus.endpoints[i];
        if (!e->is_writer || strcmp(e->topic, dds) != 0) continue;
        cli_warn("stop the other program, or let it drive",
                 "%s drives this robot too (it writes %s): the last command counts",
                 e->node[0] ? e->node : "another program", d->topic);
        return;
    }
}

static bool wait_for_listener(us_writer *writer, double seconds) {
    double until = cli_clock() + seconds;
    while (us_writer_n_match(writer) == 0) {
        if (cli_is_stopped() || cli_clock() >= until) return false;
        cli_pause(0.01);
    }
    return true;
}

// ---- the terminal ----

static struct termios saved_terminal;
static volatile sig_atomic_t is_raw, suspend_requested;

// Safe in a signal handler.
static void restore_terminal(void) {
    if (is_raw) tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
    is_raw = 0;
}

// Keys come one by one and are not shown. Ctrl-C and Ctrl-Z stay signals.
static void set_raw(void) {
    struct termios raw = saved_terminal;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    is_raw = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void on_suspend(int number) {
    (void)number;
    suspend_requested = 1;
}

static bool open_terminal(void) {
    if (isatty(STDIN_FILENO) != 1 || tcgetattr(STDIN_FILENO, &saved_terminal) != 0) return false;
    struct sigaction suspend = {.sa_handler = on_suspend};
    sigemptyset(&suspend.sa_mask);
    sigaction(SIGTSTP, &suspend, NULL);
    atexit(restore_terminal);
    set_raw();
    return true;
}

// Ctrl-Z: the robot stops, the terminal is as it was; both go on when the program does.
static void suspend(driver *d) {
    suspend_requested = 0;
    d->v = d->side = d->w = 0;
    send_command(d);
    restore_terminal();
    cli_line_clear();
    raise(SIGSTOP);
    set_raw();
}

static double step_by(double value, double step, double limit) {
    double next = round((value + step) * 100) / 100;  // steps of a hundredth leave no dust
    return next > limit ? limit : next < -limit ? -limit : next;
}

// True when the key ends the drive.
static bool press(driver *d, char key) {
    const double step_v = 0.1, step_w = 0.1, limit_v = 10, limit_w = 10;
    switch (key) {
    case 'w':
    case 'W':
        d->v = step_by(d->v, step_v, limit_v);
        break;
    case 's':
    case 'S':
        d->v = step_by(d->v, -step_v, limit_v);
        break;
    case 'a':
    case 'A':
        d->w = step_by(d->w, step_w, limit_w);
        break;
    case 'd':
    case 'D':
        d->w = step_by(d->w, -step_w, limit_w);
        break;
    case ',':
        d->side = step_by(d->side, step_v, limit_v);
        break;
    case '.':
        d->side = step_by(d->side, -step_v, limit_v);
        break;
    case ' ':
        d->v = d->side = d->w = 0;
        break;
    case 'q':
    case 'Q':
        return true;
    default:
        return false;
    }
    send_command(d);  // at once, not at the next beat
    return false;
}

// Reads the keys that wait. An arrow is ESC [ or ESC O and a letter.
static bool read_keys(driver *d) {
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return n < 0;  // nothing waits, or the terminal is gone
    for (ssize_t i = 0; i < n; i++) {
        if (keys[i] == 27 && i + 2 < n && (keys[i + 1] == '[' || keys[i + 1] == 'O')) {
            static const char arrows[] = "ABCD", meant[] = "wsda";
            const char *arrow = strchr(arrows, keys[i + 2]);
            if (arrow && *arrow) press(d, meant[arrow - arrows]);
            i += 2;
        } else if (press(d, keys[i])) {
            return true;
        }
    }
    return false;
}

// ---- the drive ----

static void show(driver *d, bool is_keyboard) {
    char place[160] = "no odometry";
    if (d->now.is_known)
        snprintf(place, sizeof place, "x %.2f y %.2f yaw %.2f  %.2f m/s %.2f rad/s", d->now.x, d->now.y,
                 d->now.yaw, d->now.speed, d->now.yaw_rate);
    cli_line_show("%s%+.2f m/s %+.2f rad/s%s | %s%s", d->is_alone ? "NOBODY LISTENS  " : "", d->v, d->w,
                  d->side != 0 ? " sideways" : "", place, is_keyboard ? " | WASD, space, q" : "");
}

static void drive(driver *d, bool is_keyboard) {
    double period = 1 / d->options->rate, begin = cli_clock(), next = begin,
           until = isnan(d->options->time) ? INFINITY : begin + d->options->time;
    bool is_live = is_keyboard || (!d->options->is_quiet && cli_is_terminal(stderr));
    double last = begin;
    while (!cli_is_stopped() && cli_clock() < until) {
        on_odometry(d);
        const double gap = cli_standstill(&last);
        if (gap > 0)
            cli_warn("let nothing stop this program while it drives",
                     "stood still for %.1f s: the robot had no commands meanwhile", gap);
        if (suspend_requested) {
            suspend(d);
            last = cli_clock();
        }
        double now = cli_clock();
        if (now >= next) {
            send_command(d);
            // A program that was held up goes on from now; a burst of old commands helps nobody.
            next = next + period > now ? next + period : now + period;
            bool is_alone = us_writer_n_match(d->writer) == 0;
            if (is_alone && !d->is_alone && !is_live)
                cli_warn("is the robot still running?", "nobody listens on %s any more", d->topic);
            d->is_alone = is_alone;
            if (is_live) show(d, is_keyboard);
        }
        double pause = (next < until ? next : until) - cli_clock();
        if (pause > 0.05) pause = 0.05;
        if (!is_keyboard) {
            cli_pause(pause);
            continue;
        }
        struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
        int n = poll(&keys, 1, pause > 0 ? (int)ceil(1e3 * pause) : 0);
        if (n > 0 && ((keys.revents & (POLLHUP | POLLERR)) || read_keys(d))) break;
    }
    if (is_live) cli_line_clear();
}

// The end of every drive: stands still. Said three times, for the writer is gone soon after.
static void stop(driver *d) {
    d->v = d->side = d->w = 0;
    for (int i = 0; i < 3; i++) {
        send_command(d);
        on_odometry(d);
        cli_pause(0.02);
    }
    on_odometry(d);
}

static void sum_up(const driver *d) {
    printf("sent %lld commands to %s", (long long)d->n_sent, d->topic);
    if (d->start.is_known) {
        printf("; moved %.3f m, from x %.3f y %.3f yaw %.3f to x %.3f y %.3f yaw %.3f",
               hypot(d->now.x - d->start.x, d->now.y - d->start.y), d->start.x, d->start.y, d->start.yaw,
               d->now.x, d->now.y, d->now.yaw);
    }
    putchar('\n');
}

static int check_options(const drive_options *o) {
    const char *element = "understudy drive";
    if (o->time < 0)
        return cli_fail(CLI_BAD_INPUT, element, "write --time S with S at least 0", "--time is negative");
    if (o->gait && strlen(o->gait) > 120)
        return cli_fail(CLI_BAD_INPUT, element, "write tripod, wave, or \"wave JOINT\"",
                        "--gait is too long");
    if (!isnan(o->strength) && !(o->strength >= 0 && o->strength <= 1e9))
        return cli_fail(CLI_BAD_INPUT, element, "write --strength N from 0 to 1000000000",
                        "--strength is out of range");
    if (o->rate <= 0 || o->rate > 1000)
        return cli_fail(CLI_BAD_INPUT, element, "write --rate HZ above 0 and at most 1000",
                        "--rate is out of range");
    return CLI_GO_ON;
}

static int run(const cli_command *command, int argc, char **argv) {
    drive_options o = {.v = NAN, .side = NAN, .w = NAN, .time = NAN, .rate = 10, .strength = NAN};
    const cli_option table[] = {
        {"v", CLI_NUMBER, &o.v, "M/S", "forward speed; without --v, --side and --w: the keyboard"},
        {"side", CLI_NUMBER, &o.side, "M/S", "speed to the left, for robots that can"},
        {"w", CLI_NUMBER, &o.w, "RAD/S", "yaw rate, left is positive"},
        {"time", CLI_NUMBER, &o.time, "S", "seconds to drive (until Ctrl-C)"},
        {"gait", CLI_TEXT, &o.gait, "GAIT",
         "how a walker walks from now on: tripod, wave, or wave and joints of legs to leave out"},
        {"rate", CLI_NUMBER, &o.rate, "HZ", "how often the command is sent (10)"},
        {"topic", CLI_TEXT, &o.topic, "NAME",
         "the topic of velocities, of a source with a priority of its own (cmd_vel)"},
        {"strength", CLI_NUMBER, &o.strength, "N",
         "write with exclusive ownership and this strength, to a robot that asks for it"},
        {"stamped", CLI_FLAG, &o.is_stamped, NULL, "send TwistStamped, on cmd_vel_stamped"},
        {"quiet", CLI_FLAG, &o.is_quiet, NULL, "no status line and no summary"},
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o.robot);
    if (code == CLI_GO_ON) code = check_options(&o);
    if (code != CLI_GO_ON) return code;
    driver d = {.options = &o,
                .v = isnan(o.v) ? 0 : o.v,
                .side = isnan(o.side) ? 0 : o.side,
                .w = isnan(o.w) ? 0 : o.w};
    bool is_keyboard = isnan(o.v) && isnan(o.side) && isnan(o.w);
    if (is_keyboard && isatty(STDIN_FILENO) != 1)
        return cli_fail(CLI_BAD_INPUT, "understudy drive",
                        "start it in a terminal, or write the speed: --v 0.3 --w 0.1",
                        "no keyboard to drive with");
    code = name_topics(&d);
    if (code != CLI_GO_ON) return code;

    cli_catch_stop(restore_terminal);
    code = join_network(&d);
    if (code == CLI_GO_ON) {
        // A keyboard may wait for its robot; numbers in a script may not.
        if (!wait_for_listener(d.writer, is_keyboard ? 0.5 : 3) && !is_keyboard)
            code = cli_is_stopped() ? CLI_OK : fail_alone(&d);
    }
    if (code == CLI_GO_ON && o.gait && !(wait_for_listener(d.gait, 3) && send_gait(&d)))
        code = cli_fail(CLI_RUN_FAILED, "understudy drive", "leave --gait out, or name a robot with legs",
                        "nobody listens on %s", d.gait_topic);
    if (code == CLI_GO_ON) {
        warn_of_others(&d);
        if (is_keyboard) {
            fprintf(stderr,
                    "driving %s: arrows or WASD change speed and yaw rate, comma and full stop go sideways, "
                    "space stops, q ends\n",
                    d.topic);
            open_terminal();
        }
        drive(&d, is_keyboard);
        stop(&d);
        restore_terminal();
        if (!o.is_quiet) sum_up(&d);
        code = CLI_OK;
    }
    cli_bus_close(&d.bus);
    return code;
}

const cli_command cli_command_drive = {
    .name = "drive",
    .operand = "ROBOT",
    .needs_operand = true,
    .summary = "move a robot by the keyboard or by numbers",
    .about = "Sends velocities on /ROBOT/cmd_vel, and a stop at the end, also after Ctrl-C. Keys: arrows or "
             "WASD change speed and yaw rate by\n"
             "0.1, comma and full stop the speed sideways, space stops, q ends.\n"
             "\n"
             "Examples:\n"
             "  understudy drive k10\n"
             "  understudy drive k10 --v 0.3 --w 0.1 --time 5\n"
             "  understudy drive hexapod --gait \"wave front_left_femur\" --v 0.05\n",
    .run = run,
};
