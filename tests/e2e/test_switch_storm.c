// The switch in a storm: random changes while a twentieth of all packets is lost below DDS, and hardware,
// proxy and switch are killed at random.
//
// This program is the operator and the judge. It sends numbered commands all the time, asks for modes, kills
// processes and starts them again. In the domains of the sources it listens to what the switch writes there,
// so that it sees every command that the switch gave to either, also to a dead one. Afterwards it compares
// what was received with the log of the switch:
//
//     never two     no number reaches both sources. A command that was sent at s and arrived at a source at r
//     was given to it in an epoch in which
//                   that one had control: [s, r] and such an epoch have a moment in common.
//     never none    a dead source has control for at most the watchdog, and ALLOWANCE. Not counted is the
//     time from the first start or the death of the switch until
//                   it hears anybody. Where both are dead nobody has control, and the first to be heard
//                   gets it: that is in the log, too. The longest time between two commands that arrive at a
//                   living source is shown beside it; two losses may follow each other, and it has in it what
//                   DDS needs to send again what was lost.
//     no crash      no process ends but by our hand.
//     all is logged every epoch that the switch tells is in its log with the same one in control, and epochs
//     grow, also over its restarts.
//
// When a source is dead is known without DDS, whose discovery takes up to seconds under loss, and not equally
// long here and in the switch: from its death until it writes its first sample, which stand-ins say in their
// logs. The real ones do not: they count as dead until their new start, and then for as long as the quickest
// start of the whole storm took until something of it was heard.
//
// This machine may have other work, and stops processes for a while. A thread that sleeps 5 ms notes how late
// it wakes; what it was late during a time that is judged is taken off. Cases that are longer than the
// watchdog are printed with all that the log of the switch has of them.
//
// US_LONG_TESTS=1: a thousand changes, and then as many with the real k10_hardware and `understudy run`.
// US_STORM=N,SEED: N changes, other draws; US_STORM=N,SEED,real: with the real ones alone.
#include <math.h>
#include <pthread.h>

#include "test_network_support.h"

enum {
    HARDWARE,
    PROXY,
    SWITCH,
    N_ACTOR,
    NOBODY = 2,
    MAX_COMMAND = 200000,
    MAX_EPOCH = 20000,
    MAX_INTERVAL = 20000,
    MAX_TOLD = 20000
};

#define WATCHDOG 0.5  // s
#define PERIOD 0.01   // s between commands
#define NAP 0.005     // s that the thread sleeps that measures how long this machine stops processes

// s: a round of the switch (5 ms), two stamps that are cut to milliseconds, the last sample's way, and what
// four threads in a row (source, DDS, switch, log) may each be kept waiting without the nap being late by
// more than itself.
#define ALLOWANCE 0.05

static const us_qos reliable = {.is_reliable = true, .depth = 100}, best_effort = {.depth = 10};
static const char *const names[] = {"hardware", "proxy", "switch"};
static const char loss[] =
    "<CycloneDDS><Domain Id=\"any\"><Internal><Test><XmitLossiness>50</XmitLossiness></Test></Internal>"
    "<Discovery><SPDPInterval>1s</SPDPInterval></Discovery></Domain></CycloneDDS>";

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- the stand-in of a source
// ----------------------------------------------------------------

static void take_nothing(void *context, const us_sample *sample) {
    (void)context;
    (void)sample;
}

// A node /k10/driver with odometry at 50 Hz that takes commands. Runs until it is killed, or for ten minutes.
static int live(const char *name, int32_t domain) {
    us_bus *bus = open_bus("cyclone", domain);
    us_error err = {0};
    int32_t node = -1;
    us_writer *odom = NULL;
    us_reader *reader = NULL;
    char frame[32];
    snprintf(frame, sizeof frame, "%s", name);
    if (us_bus_add_node(bus, "/k10", "driver", &node, &err) ||
        us_bus_add_writer(bus, &(us_topic_def){"/k10/odom", usi_type_odometry, reliable, node}, &odom,
                          &err) ||
        us_bus_add_reader(bus, &(us_topic_def){"/k10/cmd_vel", usi_type_twist, reliable, node}, take_nothing,
                          NULL, &reader, &err))
        return 1;
    alarm(600);
    printf("%.6f first sample\n", wall());
    fflush(stdout);
    for (;;) {
        us_msg_odometry message = {.header.frame_id = frame, .child_frame_id = frame};
        uint8_t bytes[2048];
        size_t length = 0;
        if (us_message_encode(usi_type_odometry, &message, bytes, sizeof bytes, &length)) return 1;
        us_writer_write(odom, bytes, length, 0);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

// ---- processes
// ----------------------------------------------------------------

typedef struct interval {
    double from, to;
} interval;

typedef struct actor {
    pid_t pid;        // 0: dead
    double start_at;  // when it lives again
    int32_t n_kill;
    interval down[MAX_INTERVAL];  // from its death until its new start
    double up[MAX_INTERVAL];      // when it sends again
} actor;

typedef struct arrival {
    double time;
    int32_t number;
} arrival;

// What goes to a source and comes from it, as seen in its domain.
typedef struct spy {
    _Atomic int32_t n, n_output;
    arrival arrivals[MAX_COMMAND];
    double outputs[MAX_COMMAND];  // when its odometry came
} spy;

typedef struct told {
    uint64_t epoch;
    int control;
} told;

typedef struct storm {
    bool is_real;
    actor actors[N_ACTOR];
    spy spies[2];
    double sent[MAX_COMMAND];  // wall time of each number
    int32_t n_sent;
    us_bus *buses[3];
    us_writer *command, *request;
    uint64_t seed, n_draw;
    int32_t n_watched;     // deaths that were left to the watchdog
    pthread_mutex_t lock;  // guards what follows
    told told[MAX_TOLD];
    int32_t n_told, n_change;
    int control;
    double answers;

    pthread_t sleeper;
    bool has_sleeper;
    _Atomic bool is_over;
    interval stalls[MAX_INTERVAL];  // the sleeper's own until it has ended
    int32_t n_stall;
} storm;

static double draw(storm *s) { return us_random_uniform(s->seed, 1, s->n_draw++); }

// What a process prints goes to the end of this file, whichever of its lives it is.
static void log_of(const storm *s, int which, char out[64]) {
    snprintf(out, 64, "%s%s.log", s->is_real ? "real_" : "", names[which]);
}

static void start_actor(storm *s, int which) {
    actor *a = &s->actors[which];
    char name[32], out[64];
    snprintf(name, sizeof name, "%s", names[which]);
    log_of(s, which, out);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    char line[1024], *argv[MAX_ARGS];
    if (which == SWITCH) {
        snprintf(line, sizeof line,
                 "switch k10 --visible --operators %d --hardware %d --proxy %d --watchdog %g --on-loss other",
                 test_domain_of(0), test_domain_of(1), test_domain_of(2), WATCHDOG);
    } else if (!s->is_real) {
        snprintf(line, sizeof line, "--robot %s %d", name, test_domain_of(1 + which));
    } else if (which == HARDWARE) {
        snprintf(line, sizeof line, "%s --domain %d", US_SOURCE_DIR "/models/k10.urdf", test_domain_of(1));
    } else {
        snprintf(line, sizeof line, "run %s --headless --set motor_port=0", scene);
    }
    split(line, argv);
    const char *path = which == SWITCH || (s->is_real && which == PROXY) ? argv[0]
                       : s->is_real ? US_BINARY_DIR "/examples/k10_hardware"
                                    : "/proc/self/exe";
    use_domain(test_domain_of(which == SWITCH ? 0 : 1 + which));
    assert_int_equal(posix_spawn(&a->pid, path, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    if (a->n_kill > 0) a->down[a->n_kill - 1].to = wall();
}

static void kill_actor(storm *s, int which, double pause) {
    actor *a = &s->actors[which];
    assert_true(a->n_kill < MAX_INTERVAL);
    int status = 0;
    kill(a->pid, SIGKILL);
    assert_int_equal(waitpid(a->pid, &status, 0), a->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    a->pid = 0;
    a->down[a->n_kill++] = (interval){wall(), HUGE_VAL};
    a->start_at = clock_now() + pause;
}

// Starts who is due. Nobody may have ended by itself.
static void look_after(storm *s) {
    for (int i = 0; i < N_ACTOR; i++) {
        actor *a = &s->actors[i];
        int status = 0;
        if (a->pid > 0 && waitpid(a->pid, &status, WNOHANG) == a->pid) {
            a->pid = 0;
            char path[64];
            log_of(s, i, path);
            char *text = read_text(path);
            size_t n = text ? strlen(text) : 0;
            fail_msg("the %s ended by itself: %d; its log ends with\n%s", names[i], exit_code(status),
                     n > 1000 ? text + n - 1000
                     : n      ? text
                              : "");
        }
        if (a->pid == 0 && clock_now() >= a->start_at) start_actor(s, i);
    }
}

static void *sleep_and_note(void *context) {
    storm *s = context;
    while (!s->is_over) {
        double due = wall() + NAP;
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * NAP)}, NULL);
        double woken = wall();
        if (woken - due > NAP && s->n_stall < MAX_INTERVAL) s->stalls[s->n_stall++] = (interval){due, woken};
    }
    return NULL;
}

static void wake_sleeper(storm *s) {
    if (!s->has_sleeper) return;
    s->is_over = true;
    pthread_join(s->sleeper, NULL);
    s->has_sleeper = false;
}

// ---- the operator
// ----------------------------------------------------------------

static void spy_command(void *context, const us_sample *sample) {
    spy *p = context;
    int32_t number =
        (int32_t)us_message_get_number(usi_type_twist, sample->bytes, sample->length, "linear.z");
    int32_t n = atomic_load(&p->n);
    if (number == 0 || n == MAX_COMMAND) return;  // a zero Twist is the switch's own
    p->arrivals[n] = (arrival){wall(), number};
    atomic_store(&p->n, n + 1);
}

static void spy_output(void *context, const us_sample *sample) {
    (void)sample;
    spy *p = context;
    int32_t n = atomic_load(&p->n_output);
    if (n == MAX_COMMAND) return;
    p->outputs[n] = wall();
    atomic_store(&p->n_output, n + 1);
}

static int find_source(const char *text) {
    return !strcmp(text, "hardware") ? HARDWARE : !strcmp(text, "proxy") ? PROXY : NOBODY;
}

static void hear_authority(void *context, const us_sample *sample) {
    storm *s = context;
    if (sample->length <= 8) return;
    cJSON *json = cJSON_ParseWithLength((const char *)sample->bytes + 8, sample->length - 8);
    const cJSON *control = cJSON_GetObjectItemCaseSensitive(json, "control"),
                *epoch = cJSON_GetObjectItemCaseSensitive(json, "epoch");
    const cJSON *answers = cJSON_GetObjectItemCaseSensitive(json, "answers");
    if (cJSON_IsString(control) && cJSON_IsNumber(epoch) && cJSON_IsNumber(answers)) {
        pthread_mutex_lock(&s->lock);
        told line = {(uint64_t)epoch->valuedouble, find_source(control->valuestring)};
        if (s->n_told < MAX_TOLD && (s->n_told == 0 || s->told[s->n_told - 1].epoch != line.epoch)) {
            s->n_change += s->n_told > 0;
            s->told[s->n_told++] = line;
        }
        s->control = line.control;
        s->answers = answers->valuedouble;
        pthread_mutex_unlock(&s->lock);
    }
    cJSON_Delete(json);
}

static void send_command(storm *s) {
    assert_true(s->n_sent + 1 < MAX_COMMAND);
    us_msg_twist twist = {.linear = {.x = 0.1, .z = ++s->n_sent}};
    uint8_t bytes[64];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &twist, bytes, sizeof bytes, &length), US_OK);
    s->sent[s->n_sent] = wall();
    us_writer_write(s->command, bytes, length, 0);
}

// Goes on for that long, or until the count of answers has grown.
static void go_on(storm *s, double seconds, bool waits) {
    double until = clock_now() + seconds, before = 0;
    pthread_mutex_lock(&s->lock);
    before = s->answers;
    pthread_mutex_unlock(&s->lock);
    while (clock_now() < until) {
        look_after(s);
        send_command(s);
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * PERIOD)}, NULL);
        pthread_mutex_lock(&s->lock);
        bool is_answered = s->answers != before;
        pthread_mutex_unlock(&s->lock);
        if (waits && is_answered) return;
    }
}

static int get_control(storm *s, int32_t *out_n_change) {
    pthread_mutex_lock(&s->lock);
    int control = s->control;
    *out_n_change = s->n_change;
    pthread_mutex_unlock(&s->lock);
    return control;
}

// The one in control was killed, stays dead, and nobody asks for anything: the other gets control.
static void leave_it_to_the_watchdog(storm *s, int which) {
    int32_t n_change = 0;
    double until = clock_now() + PATIENCE;
    s->actors[which].start_at = HUGE_VAL;
    while (get_control(s, &n_change) == which) {
        if (clock_now() > until) fail_msg("the %s is dead and still in control", names[which]);
        go_on(s, 0.05, false);
    }
    s->actors[which].start_at = clock_now() + draw(s);
    s->n_watched++;
}

static void open_operator(storm *s) {
    static const char *const nodes[] = {"operator", "spy_hardware", "spy_proxy"};
    us_error err = {0};
    for (int i = 0; i < 3; i++) {
        int32_t node = -1;
        us_reader *reader = NULL;
        s->buses[i] = open_bus("cyclone", test_domain_of(i));
        expect_ok(us_bus_add_node(s->buses[i], "/judge", nodes[i], &node, &err), &err);
        us_topic_def topic = {"/k10/cmd_vel", usi_type_twist, reliable, node};
        if (i > 0) {
            expect_ok(us_bus_add_reader(s->buses[i], &topic, spy_command, &s->spies[i - 1], &reader, &err),
                      &err);
            topic = (us_topic_def){"/k10/odom", usi_type_odometry, best_effort, node};
            expect_ok(us_bus_add_reader(s->buses[i], &topic, spy_output, &s->spies[i - 1], &reader, &err),
                      &err);
            continue;
        }
        expect_ok(us_bus_add_writer(s->buses[i], &topic, &s->command, &err), &err);
        topic = (us_topic_def){"/understudy/authority/request", usi_type_string, reliable, node};
        expect_ok(us_bus_add_writer(s->buses[i], &topic, &s->request, &err), &err);
        // Latched: what a switch tells right after its start is told before it knows us.
        topic.topic = "/understudy/authority";
        topic.qos.is_transient_local = true;
        expect_ok(us_bus_add_reader(s->buses[i], &topic, hear_authority, s, &reader, &err), &err);
    }
}

// ---- the judge
// ----------------------------------------------------------------

typedef struct reign {
    double from, to;  // wall time
    uint64_t epoch;
    int control;
} reign;

typedef struct history {
    reign reigns[MAX_EPOCH];
    double heard[MAX_EPOCH];  // when a source was heard that was silent before
    int32_t n_reign, n_line, n_refused, n_heard, n_late;
    char *text;
} history;

// "2026-11-16 10:43:12.345  text" -> wall time and the text; NULL when it is no such line.
static const char *read_stamp(const char *line, double *out_time) {
    struct tm t = {.tm_isdst = -1};
    const char *rest = strptime(line, "%Y-%m-%d %H:%M:%S", &t);
    if (!rest || rest[0] != '.') return NULL;
    *out_time = (double)mktime(&t) + 0.001 * (double)strtol(rest + 1, NULL, 10);
    return rest + 6;
}

// Of the switch's log: who had control when. An epoch ends with the next, or with the death of the switch.
static void read_log(storm *s, history *h) {
    char path[64];
    log_of(s, SWITCH, path);
    char *text = read_text(path);
    assert_non_null(text);
    h->text = read_text(path);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        double time = 0;
        const char *what = read_stamp(line, &time);
        if (!what) continue;
        h->n_line++;
        assert_true(h->n_reign + 1 < MAX_EPOCH);
        const char *control = strstr(what, ", "), *epoch = strstr(what, " in control, epoch ");
        if (control && epoch) {
            char name[16];
            snprintf(name, sizeof name, "%.*s", (int)(epoch - control - 2), control + 2);
            reign *r = &h->reigns[h->n_reign++];
            *r = (reign){time, HUGE_VAL, strtoull(epoch + strlen(" in control, epoch "), NULL, 10),
                         find_source(name)};
            if (h->n_reign > 1 && r[-1].to > time) r[-1].to = time + 0.001;  // stamps are cut to milliseconds
        } else if (strstr(what, " refused: ")) {
            h->n_refused++;
        } else if (strstr(what, " is heard") && h->n_heard < MAX_EPOCH) {
            h->heard[h->n_heard++] = time;
        } else if (!strncmp(what, "late: ", 6)) {
            h->n_late++;
        }
    }
    free(text);
    const actor *sw = &s->actors[SWITCH];
    for (int32_t k = 0; k < sw->n_kill; k++) {
        for (int32_t i = 0; i < h->n_reign; i++) {
            reign *r = &h->reigns[i];
            if (r->from <= sw->down[k].from && r->to > sw->down[k].from) r->to = sw->down[k].from;
        }
    }
}

static int compare_arrivals(const void *a, const void *b) {
    double x = ((const arrival *)a)->time, y = ((const arrival *)b)->time;
    return x < y ? -1 : x > y;
}

static bool is_allowed(const history *h, int source, double sent, double received) {
    for (int32_t i = 0; i < h->n_reign; i++) {
        const reign *r = &h->reigns[i];
        if (r->control == source && r->from <= received && r->to >= sent) return true;
    }
    return false;
}

// A change whose line was not written yet when the switch was killed.
static bool is_at_a_kill(const storm *s, double sent, double received) {
    const actor *sw = &s->actors[SWITCH];
    for (int32_t k = 0; k < sw->n_kill; k++) {
        if (sent <= sw->down[k].from && received >= sw->down[k].from - 0.05 &&
            received <= sw->down[k].from + 1)
            return true;
    }
    return false;
}

static void expect_never_two(storm *s, const history *h) {
    int8_t *owner = calloc(MAX_COMMAND, 1);
    assert_non_null(owner);
    int32_t n_both = 0, n_wrong = 0, n_at_kill = 0;
    for (int k = 0; k < 2; k++) {
        for (int32_t i = 0; i < s->spies[k].n; i++) {
            arrival a = s->spies[k].arrivals[i];
            assert_true(a.number > 0 && a.number <= s->n_sent);
            n_both += owner[a.number] && owner[a.number] != k + 1;
            owner[a.number] = (int8_t)(k + 1);
            if (is_allowed(h, k, s->sent[a.number], a.time)) continue;
            bool is_unsaid = is_at_a_kill(s, s->sent[a.number], a.time);
            n_at_kill += is_unsaid;
            n_wrong += !is_unsaid;
            if (!is_unsaid)
                print_message("command %d, sent at %.4f, reached the %s at %.4f\n", a.number,
                              s->sent[a.number], names[k], a.time);
        }
    }
    free(owner);
    print_message(
        "two in control: %d commands reached both, %d the wrong one (%d more at the moment of a kill)\n",
        n_both, n_wrong, n_at_kill);
    assert_int_equal(n_both, 0);
    assert_int_equal(n_wrong, 0);
}

// By what a stand-in wrote down. One that was killed before its first sample was dead until then.
static void read_returns(storm *s, int which) {
    actor *a = &s->actors[which];
    char path[64];
    log_of(s, which, path);
    char *text = read_text(path);
    assert_non_null(text);
    int32_t k = 0, n = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL && *line; n++) {
        double time = strtod(line, NULL);
        while (k < a->n_kill && a->down[k].from < time) {
            // Those before are of lives that sent nothing.
            a->up[k] = k + 1 < a->n_kill && a->down[k + 1].from < time ? a->down[k + 1].from : time;
            k++;
        }
    }
    free(text);
    assert_true(n > 0);
    for (; k < a->n_kill; k++)
        a->up[k] = HUGE_VAL;
}

// A real source that was killed is up again as long after its new start as the quickest start took until
// something of it arrived.
static void find_returns(storm *s) {
    for (int which = 0; which < 2; which++) {
        actor *a = &s->actors[which];
        if (!s->is_real) {
            read_returns(s, which);
            continue;
        }
        const spy *p = &s->spies[which];
        double quickest = HUGE_VAL;
        for (int32_t k = 0, i = 0; k < a->n_kill; k++) {
            while (i < p->n_output && p->outputs[i] < a->down[k].to)
                i++;
            // Not what arrives in the very moment: it may be of the life before.
            if (i < p->n_output && p->outputs[i] > a->down[k].from + 0.01)
                quickest = fmin(quickest, p->outputs[i] - a->down[k].to);
        }
        for (int32_t k = 0; k < a->n_kill; k++)
            a->up[k] = a->down[k].to + (isfinite(quickest) ? quickest : 0);
        if (a->n_kill > 0)
            print_message("the quickest start of the %s was heard after %.3f s\n", names[which], quickest);
    }
}

static bool is_alive_at(const storm *s, int which, double time) {
    for (int32_t k = 0; k < s->actors[which].n_kill; k++) {
        if (time >= s->actors[which].down[k].from && time < s->actors[which].up[k]) return false;
    }
    return true;
}

// The switch is away: until the first one hears anybody, and from its death until one that was started again
// does.
static int32_t find_absences(const storm *s, const history *h, interval *out) {
    const actor *sw = &s->actors[SWITCH];
    out[0] = (interval){-HUGE_VAL, h->n_heard > 0 ? h->heard[0] : HUGE_VAL};
    for (int32_t k = 0; k < sw->n_kill; k++) {
        int32_t i = 0;
        while (i < h->n_heard && h->heard[i] < sw->down[k].to)
            i++;
        out[k + 1] = (interval){sw->down[k].from, i < h->n_heard ? h->heard[i] : HUGE_VAL};
    }
    return sw->n_kill + 1;
}

// The times in which no command can pass, in no order: the switch is away until its first command, both
// sources are dead, or the switch has heard neither since they were. `all` are arrivals in their order.
static int32_t find_excuses(const storm *s, const history *h, const arrival *all, int32_t n_all,
                            interval *out, interval *out_restart) {
    int32_t n = 0;
    const actor *a = s->actors;
    *out_restart = (interval){0, 0};
    for (int32_t k = 0; k < a[SWITCH].n_kill && n < MAX_INTERVAL; k++) {
        interval away = a[SWITCH].down[k];
        int32_t i = 0;
        while (i < n_all && all[i].time < away.to)
            i++;
        away.to = i < n_all ? all[i].time : HUGE_VAL;
        interval restart = {a[SWITCH].down[k].to, away.to};
        bool is_killed_before = k + 1 < a[SWITCH].n_kill && a[SWITCH].down[k + 1].from < away.to;
        if (!is_killed_before && restart.to - restart.from > out_restart->to - out_restart->from)
            *out_restart = restart;
        out[n++] = away;
    }
    for (int32_t i = 0; i < a[HARDWARE].n_kill; i++) {
        for (int32_t k = 0; k < a[PROXY].n_kill && n < MAX_INTERVAL; k++) {
            interval both = {fmax(a[HARDWARE].down[i].from, a[PROXY].down[k].from),
                             fmin(a[HARDWARE].up[i], a[PROXY].up[k])};
            if (both.from < both.to) out[n++] = both;
        }
    }
    for (int32_t i = 0; i < h->n_reign && n < MAX_INTERVAL; i++) {
        if (h->reigns[i].control == NOBODY) out[n++] = (interval){h->reigns[i].from, h->reigns[i].to};
    }
    return n;
}

static int compare_intervals(const void *a, const void *b) {
    double x = ((const interval *)a)->from, y = ((const interval *)b)->from;
    return x < y ? -1 : x > y;
}

// What of an interval is not excused.
static double net_of(double from, double to, const interval *excuses, int32_t n) {
    double net = 0, at = from;
    for (int32_t k = 0; k < n && at < to; k++) {
        if (excuses[k].to <= at || excuses[k].from >= to) continue;
        net += fmax(excuses[k].from - at, 0);
        at = fmin(excuses[k].to, to);
    }
    return net + fmax(to - at, 0);
}

// How long this machine stopped processes within an interval.
static double stalled_in(const storm *s, double from, double to) {
    double sum = 0;
    for (int32_t i = 0; i < s->n_stall; i++)
        sum += fmax(fmin(s->stalls[i].to, to) - fmax(s->stalls[i].from, from), 0);
    return sum;
}

// How long a source had control in its k-th death, without what the machine stood still meanwhile, and in
// all.
static double dead_in_control(const storm *s, const history *h, int which, int32_t k,
                              const interval *absences, int32_t n, double *out_all) {
    const actor *a = &s->actors[which];
    double dead = 0;
    *out_all = 0;
    for (int32_t i = 0; i < h->n_reign; i++) {
        const reign *r = &h->reigns[i];
        double from = fmax(r->from, a->down[k].from), to = fmin(r->to, a->up[k]);
        if (r->control != which || from >= to) continue;
        double net = net_of(from, to, absences, n);
        *out_all += net;
        dead += fmax(net - stalled_in(s, from, to), 0);
    }
    return dead;
}

// What the log of the switch says about a time.
static void print_log(const history *h, double from, double to) {
    for (const char *line = h->text; *line;) {
        const char *end = strchrnul(line, '\n');
        double time = 0;
        if (read_stamp(line, &time) && time > from && time < to)
            print_message("    %.*s\n", (int)(end - line), line);
        line = *end ? end + 1 : end;
    }
}

static void print_case(const storm *s, const history *h, int which, int32_t k, double dead) {
    const actor *a = &s->actors[which];
    print_message("the %s was dead and in control for %.3f s: killed at %.3f, started again at %.3f, surely "
                  "dead until %.3f\n",
                  names[which], dead, fmod(a->down[k].from, 60), fmod(a->down[k].to, 60), fmod(a->up[k], 60));
    print_log(h, a->down[k].from - WATCHDOG, a->up[k] + WATCHDOG);
}

static void expect_never_none(storm *s, const history *h) {
    static arrival all[2 * MAX_COMMAND];
    static interval excuses[MAX_INTERVAL], absences[MAX_INTERVAL];
    interval restart = {0, 0};
    double longest_dead = 0, longest_in_all = 0, longest_gap = 0, longest = 0, longest_absence = 0,
           longest_stall = 0;
    int32_t n = 0, n_over = 0, n_nobody = 0;
    find_returns(s);
    for (int k = 0; k < 2; k++) {
        for (int32_t i = 0; i < s->spies[k].n; i++) {
            if (is_alive_at(s, k, s->spies[k].arrivals[i].time)) all[n++] = s->spies[k].arrivals[i];
        }
    }
    qsort(all, (size_t)n, sizeof *all, compare_arrivals);
    int32_t n_excuse = find_excuses(s, h, all, n, excuses, &restart),
            n_absence = find_absences(s, h, absences);
    qsort(excuses, (size_t)n_excuse, sizeof *excuses, compare_intervals);
    for (int32_t k = 1; k < n_absence; k++)
        longest_absence = fmax(longest_absence, absences[k].to - s->actors[SWITCH].down[k - 1].to);
    for (int which = 0; which < 2; which++) {
        for (int32_t k = 0; k < s->actors[which].n_kill; k++) {
            double in_all = 0, dead = dead_in_control(s, h, which, k, absences, n_absence, &in_all);
            longest_dead = fmax(longest_dead, dead);
            longest_in_all = fmax(longest_in_all, in_all);
            if (dead <= WATCHDOG + ALLOWANCE) continue;
            n_over++;
            print_case(s, h, which, k, dead);
        }
    }
    for (int32_t i = 1; i < n; i++) {
        double from = all[i - 1].time, to = all[i].time;
        longest = fmax(longest, to - from);
        longest_gap = fmax(longest_gap, net_of(from, to, excuses, n_excuse) - stalled_in(s, from, to));
    }
    for (int32_t i = 0; i < s->n_stall; i++)
        longest_stall = fmax(longest_stall, s->stalls[i].to - s->stalls[i].from);
    for (int32_t i = 0; i < h->n_reign; i++)
        n_nobody += h->reigns[i].control == NOBODY;
    if (restart.to > restart.from) {
        print_message(
            "the slowest start of the switch began at %.3f and had its first command passed at %.3f\n",
            fmod(restart.from, 60), fmod(restart.to, 60));
        print_log(h, restart.from, restart.to);
    }
    print_message(
        "this machine stopped processes %d times, for %.3f s at most; the switch was late %d times\n",
        s->n_stall, longest_stall, h->n_late);
    print_message("nobody in control: a dead one had control for at most %.3f s, with the times in which "
                  "this machine stopped processes %.3f s (%d times "
                  "longer than the watchdog of %g s by %g s); both were lost "
                  "%d times; between two commands there were at most %.3f s, with restarts %.3f s; a switch "
                  "that was started again heard somebody "
                  "after at most %.3f s and passed commands after at most %.3f s\n",
                  longest_dead, longest_in_all, n_over, WATCHDOG, ALLOWANCE, n_nobody, longest_gap, longest,
                  longest_absence, restart.to - restart.from);
    assert_true(n > 100);
    assert_int_equal(n_over, 0);
    assert_true(longest_gap <= 2 * WATCHDOG + ALLOWANCE);
    assert_true(restart.to - restart.from <= PATIENCE);
}

static void expect_all_logged(const storm *s, const history *h) {
    for (int32_t i = 1; i < h->n_reign; i++)
        assert_true(h->reigns[i].epoch > h->reigns[i - 1].epoch);
    for (int32_t i = 0; i < s->n_told; i++) {
        int control = -1;
        for (int32_t k = 0; k < h->n_reign; k++) {
            if (h->reigns[k].epoch == s->told[i].epoch) control = h->reigns[k].control;
        }
        if (control != s->told[i].control)
            fail_msg("epoch %llu was told, and is not in the log", (unsigned long long)s->told[i].epoch);
    }
}

static storm the_storm;

static int clear_away(void **state) {
    (void)state;
    wake_sleeper(&the_storm);
    for (int i = 0; i < N_ACTOR; i++) {
        if (the_storm.actors[i].pid > 0) kill_actor(&the_storm, i, HUGE_VAL);
    }
    return 0;
}

static void run_storm(bool is_real, int32_t n_wanted, uint64_t seed) {
    static history h;
    storm *s = &the_storm;
    *s = (storm){.is_real = is_real, .seed = seed, .control = NOBODY};
    h = (history){0};
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < N_ACTOR; i++) {
        char path[64];
        log_of(s, i, path);
        unlink(path);
    }
    setenv("CYCLONEDDS_URI", loss, 1);
    s->has_sleeper = pthread_create(&s->sleeper, NULL, sleep_and_note, s) == 0;
    assert_true(s->has_sleeper);
    double began = clock_now(), patience = began + 30 + 2.0 * n_wanted;
    open_operator(s);
    int32_t n_change = 0, n_asked = 0;
    while (s->spies[0].n + s->spies[1].n == 0) {
        if (clock_now() > patience) fail_msg("no command arrives");
        go_on(s, 0.1, false);
    }
    // However short it is, one death at least is left to the watchdog.
    while (s->n_watched == 0) {
        int control = get_control(s, &n_change);
        if (clock_now() > patience) fail_msg("nobody is in control");
        if (control != NOBODY && s->actors[control].pid > 0) {
            kill_actor(s, control, 0);
            leave_it_to_the_watchdog(s, control);
        }
        go_on(s, 0.1, false);
    }
    while (n_change < n_wanted) {
        if (clock_now() > patience) fail_msg("only %d changes", n_change);
        int control = get_control(s, &n_change);
        double dice = draw(s);
        if (dice < 0.06) {
            int which = (int)(3 * draw(s));
            if (s->actors[which].pid > 0) kill_actor(s, which, draw(s));
            if (which == control && draw(s) < 0.5) leave_it_to_the_watchdog(s, which);
        } else {
            // Mostly the other one, for that is what a switch is for.
            const char *mode = dice < 0.85   ? names[control == HARDWARE ? PROXY : HARDWARE]
                               : dice < 0.95 ? "mirror"
                                             : names[(int)(2 * draw(s))];
            // The real ones drive, and the states of one that drives and one that stands differ: that would
            // be refused.
            write_text_message(s->request,
                               s->is_real && !strcmp(mode, "hardware") ? "k10 hardware anyway" : mode);
            n_asked++;
            go_on(s, 0.5, true);
        }
        go_on(s, 0.15 * draw(s), false);
    }
    // Everybody back; what is under way arrives.
    for (int i = 0; i < N_ACTOR; i++)
        s->actors[i].start_at = 0;
    go_on(s, 2, false);
    double took = clock_now() - began;
    for (int i = 0; i < N_ACTOR; i++)
        kill_actor(s, i, HUGE_VAL);
    for (int i = 0; i < 3; i++)
        us_bus_close(s->buses[i]);
    unsetenv("CYCLONEDDS_URI");
    wake_sleeper(s);
    for (int i = 0; i < N_ACTOR; i++)
        s->actors[i].n_kill--;  // the last were the end
    read_log(s, &h);
    print_message("%s, %d changes of %d requests (%d refused) in %.1f s; killed: hardware %d, proxy %d, "
                  "switch %d times, %d left to the watchdog; %d "
                  "commands sent, %d and %d arrived; %d lines in the log\n",
                  is_real ? "k10_hardware and understudy run" : "stand-ins", n_change, n_asked, h.n_refused,
                  took, s->actors[0].n_kill, s->actors[1].n_kill, s->actors[2].n_kill, s->n_watched,
                  s->n_sent, s->spies[0].n, s->spies[1].n, h.n_line);
    expect_never_two(s, &h);
    expect_never_none(s, &h);
    expect_all_logged(s, &h);
    free(h.text);
    pthread_mutex_destroy(&s->lock);
}

static bool is_real_alone(void) {
    const char *text = getenv("US_STORM");
    return text && strstr(text, ",real");
}

static void run_as_wanted(bool is_real, int32_t usual, int32_t many) {
    const char *text = getenv("US_STORM"), *seed = text ? strchr(text, ',') : NULL;
    int32_t n = text ? (int32_t)strtol(text, NULL, 10) : getenv("US_LONG_TESTS") ? many : usual;
    run_storm(is_real, n, seed ? strtoull(seed + 1, NULL, 10) : 1);
}

static void random_changes_losses_and_kills_never_leave_two_or_none_in_control(void **state) {
    (void)state;
    run_as_wanted(false, 60, 1000);
}

static void so_it_is_with_a_simulation_and_the_program_that_stands_in_for_metal(void **state) {
    (void)state;
    if (!(getenv("US_LONG_TESTS") || is_real_alone()) ||
        access(US_BINARY_DIR "/examples/k10_hardware", X_OK) != 0) {
        print_message("skipped: the real ones, unless US_LONG_TESTS is set and k10_hardware is built\n");
        skip();
    }
    run_as_wanted(true, 60, 1000);
}

int main(int n_argument, char **arguments) {
    if (n_argument == 4 && !strcmp(arguments[1], "--robot"))
        return live(arguments[2], (int32_t)strtol(arguments[3], NULL, 10));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_changes_losses_and_kills_never_leave_two_or_none_in_control,
                                  clear_away),
        cmocka_unit_test_teardown(so_it_is_with_a_simulation_and_the_program_that_stands_in_for_metal,
                                  clear_away),
    };
    const struct CMUnitTest real[] = {tests[1]};
    return is_real_alone() ? cmocka_run_group_tests(real, start_alone, NULL)
                           : cmocka_run_group_tests(tests, start_alone, NULL);
}
