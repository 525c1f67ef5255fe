// A robot and its understudy behind one switch: three domains on the loopback, two robots that look alike,
// and an operator.
//
// Both robots are nodes /k10/driver with the same topics. Each sample says whose it is: "hardware 17" is the
// hardware's 17th.
#include <pthread.h>

#include "test_bus_support.h"
#include "understudy/switch.h"

static const us_qos reliable = {.is_reliable = true, .depth = 100};
static const us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
static const us_qos best_effort = {.depth = 10};

static int32_t domain_of(int which) { return test_domain_of(which); }  // 0 operators, 1 hardware, 2 proxy

// ---- robots
// ----------------------------------------------------------------

enum { MAX_COMMAND = 200000 };

typedef struct robot {
    const char *name;
    us_bus *bus;
    us_writer *state, *scan, *description;
    pthread_t thread;
    atomic_bool is_over, is_silent;
    double drop;  // share of samples that are lost on their way
    _Atomic int32_t n_command, n_zero;
    int32_t commands[MAX_COMMAND];  // their numbers, in the order in which they came
} robot;

static us_writer *add_robots_writer(robot *r, int32_t node, const char *topic, us_qos qos) {
    us_error err = {0};
    us_writer *writer = NULL;
    expect_ok(us_bus_add_writer(r->bus, &(us_topic_def){topic, usi_type_string, qos, node}, &writer, &err),
              &err);
    return writer;
}

static void take_command(void *context, const us_sample *sample) {
    robot *r = context;
    double x = us_message_get_number(usi_type_twist, sample->bytes, sample->length, "linear.x");
    if (x == 0) {
        atomic_fetch_add(&r->n_zero, 1);
        return;
    }
    int32_t n = atomic_load(&r->n_command);
    if (n < MAX_COMMAND) r->commands[n] = (int32_t)x;
    atomic_store(&r->n_command, n + 1);
}

static void *live(void *context) {
    robot *r = context;
    char text[64];
    for (uint64_t i = 0; !atomic_load(&r->is_over); i++) {
        snprintf(text, sizeof text, "%s %llu", r->name, (unsigned long long)i);
        bool is_lost = us_random_uniform(7, (uint64_t)r->name[0], i) < r->drop;
        if (!atomic_load(&r->is_silent) && !is_lost) {
            write_text_message(r->state, text);
            write_text_message(r->scan, text);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static robot *start_robot(const char *name, int32_t domain, double drop) {
    robot *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->name = name;
    r->drop = drop;
    r->bus = open_bus("cyclone", domain);
    us_error err = {0};
    int32_t node = -1;
    us_reader *reader = NULL;
    expect_ok(us_bus_add_node(r->bus, "/k10", "driver", &node, &err), &err);
    r->state = add_robots_writer(r, node, "/k10/state", reliable);
    r->scan = add_robots_writer(r, node, "/k10/scan", best_effort);
    r->description = add_robots_writer(r, node, "/k10/robot_description", latched);
    expect_ok(us_bus_add_reader(r->bus, &(us_topic_def){"/k10/cmd_vel", usi_type_twist, reliable, node},
                                take_command, r, &reader, &err),
              &err);
    write_text_message(r->description, name);
    assert_int_equal(pthread_create(&r->thread, NULL, live, r), 0);
    return r;
}

static void stop_robot(robot *r) {
    atomic_store(&r->is_over, true);
    pthread_join(r->thread, NULL);
    us_bus_close(r->bus);
    free(r);
}

// ---- an operator
// ----------------------------------------------------------------

// What came on one topic: how many of each source, and how often the source changed from one sample to the
// next.
typedef struct ear {
    _Atomic int64_t n[2], n_turn, n_back;
    _Atomic int last;        // 0 hardware, 1 proxy, -1 nobody yet
    int64_t last_number[2];  // the numbers of one source only grow
} ear;

static void hear(void *context, const us_sample *sample) {
    ear *e = context;
    char text[64] = "";
    if (sample->length > 8)
        snprintf(text, sizeof text, "%.*s", (int)(sample->length - 8), (const char *)sample->bytes + 8);
    int source = strncmp(text, "hardware", 8) == 0 ? 0 : 1;
    const char *number = strchr(text, ' ');
    int64_t value = number ? strtoll(number, NULL, 10) : 0;
    if (number && value <= e->last_number[source] && e->n[source] > 0) atomic_fetch_add(&e->n_back, 1);
    e->last_number[source] = value;
    int last = atomic_exchange(&e->last, source);
    if (last >= 0 && last != source) atomic_fetch_add(&e->n_turn, 1);
    atomic_fetch_add(&e->n[source], 1);
}

typedef struct stage {
    robot *robots[2];
    us_switch *sw;
    us_bus *bus;  // the operator's
    us_writer *command, *request;
    ear state, scan;
    _Atomic int32_t n_turn;  // changes of who is in control
    _Atomic int32_t n_event;
    us_status verdict;    // of the hand-over
    pthread_mutex_t log;  // who holds it keeps the log from taking anything
    bool is_log_held;     // by the test
    int32_t n_sent;
} stage;

static us_status hand_over(void *context, const us_switch_change *change, us_error *err) {
    stage *s = context;
    if (s->verdict) return us_error_set(err, s->verdict, NULL, NULL, "the \"states\" differ");
    if (change->from != change->to) atomic_fetch_add(&s->n_turn, 1);
    return US_OK;
}

static void take_event(void *context, int64_t time, const char *text) {
    stage *s = context;
    pthread_mutex_lock(&s->log);
    if (time > 0 && text[0]) atomic_fetch_add(&s->n_event, 1);
    pthread_mutex_unlock(&s->log);
}

static us_switch_def switch_def(stage *s) {
    us_switch_def def = us_switch_def_default();
    def.robot = "k10";
    def.operators.domain = domain_of(0);
    def.hardware.domain = domain_of(1);
    def.proxy.domain = domain_of(2);
    def.is_visible = true;
    def.on_change = hand_over;
    def.on_event = take_event;
    def.context = s;
    def.watchdog = 5;  // no busy machine shall trip it
    return def;
}

static void open_stage(stage *s, const us_switch_def *def, bool has_hardware, double drop) {
    us_error err = {0};
    s->robots[0] = has_hardware ? start_robot("hardware", domain_of(1), drop) : NULL;
    s->robots[1] = start_robot("proxy", domain_of(2), drop);
    s->bus = open_bus("cyclone", domain_of(0));
    atomic_store(&s->state.last, -1);
    atomic_store(&s->scan.last, -1);
    s->command = add_writer(s->bus, "/k10/cmd_vel", usi_type_twist, reliable);
    s->request = add_writer(s->bus, "/understudy/authority/request", usi_type_string, reliable);
    add_reader(s->bus, "/k10/state", usi_type_string, reliable, hear, &s->state);
    add_reader(s->bus, "/k10/scan", usi_type_string, best_effort, hear, &s->scan);
    expect_ok(us_switch_open(def, &s->sw, &err), &err);
    WAIT_FOR(us_writer_n_match(s->command) == 1 && us_writer_n_match(s->request) == 1);
    WAIT_FOR(us_switch_get_state(s->sw).is_alive[1] && us_switch_get_state(s->sw).n_topic == 4);
    if (has_hardware) WAIT_FOR(us_switch_get_state(s->sw).is_alive[0]);
}

// What is left of a test that failed; NULL, or 0: nothing.
static stage *current;
static us_switch *second;
static pid_t process;

static void close_stage(stage *s) {
    us_switch_close(s->sw);
    us_bus_close(s->bus);
    for (int i = 0; i < 2; i++) {
        if (s->robots[i]) stop_robot(s->robots[i]);
    }
    pthread_mutex_destroy(&s->log);
    free(s);
    current = NULL;
}

static stage *new_stage(void) {
    stage *s = calloc(1, sizeof *s);
    assert_non_null(s);
    pthread_mutex_init(&s->log, NULL);
    current = s;
    return s;
}

static void hold_log(stage *s, bool is_held) {
    if (is_held == s->is_log_held) return;
    s->is_log_held = is_held;
    if (is_held) {
        pthread_mutex_lock(&s->log);
    } else {
        pthread_mutex_unlock(&s->log);
    }
}

static void end_process(void) {
    if (process <= 0) return;
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    process = 0;
}

// After a test that failed: the next meets no switch and no robot of it, and waits for no log.
static int clear_stage(void **state) {
    (void)state;
    end_process();
    if (current) hold_log(current, false);
    us_switch_close(second);
    second = NULL;
    if (current) close_stage(current);
    return 0;
}

// By the topic, as an operator does; returns when it is answered.
static void ask(stage *s, const char *mode) {
    int64_t n = us_switch_get_state(s->sw).n_answer;
    write_text_message(s->request, mode);
    WAIT_FOR(us_switch_get_state(s->sw).n_answer > n);
}

static void send_command(stage *s) {
    us_msg_twist twist = {.linear.x = ++s->n_sent};
    uint8_t bytes[64];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &twist, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(s->command, bytes, length, 0), US_OK);
}

// Commands until one arrives there: the first may be sent before both ends know each other.
static void command_until(stage *s, robot *r) {
    int32_t n = atomic_load(&r->n_command);
    WAIT_FOR((send_command(s), atomic_load(&r->n_command) > n));
}

// ---- tests
// ----------------------------------------------------------------

static void only_the_chosen_one_is_heard_and_commanded(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0);
    WAIT_FOR(atomic_load(&s->state.n[0]) > 20 && atomic_load(&s->scan.n[0]) > 20);
    command_until(s, s->robots[0]);
    assert_int_equal(atomic_load(&s->state.n[1]) + atomic_load(&s->scan.n[1]), 0);
    assert_int_equal(atomic_load(&s->robots[1]->n_command), 0);
    uint64_t epoch = us_switch_get_state(s->sw).epoch;
    int32_t n_zero = atomic_load(&s->robots[0]->n_zero);

    ask(s, "proxy");
    us_switch_state now = us_switch_get_state(s->sw);
    assert_int_equal(now.mode, US_MODE_PROXY);
    assert_int_equal(now.control, US_SWITCH_PROXY);
    assert_true(now.epoch > epoch);
    assert_string_equal(now.refused, "");
    WAIT_FOR(atomic_load(&s->state.n[1]) > 20 && atomic_load(&s->scan.n[1]) > 20);
    // Who lost control is told to stand still.
    WAIT_FOR(atomic_load(&s->robots[0]->n_zero) > n_zero);
    int32_t n_before = atomic_load(&s->robots[0]->n_command);
    command_until(s, s->robots[1]);
    assert_int_equal(atomic_load(&s->robots[0]->n_command), n_before);
    // One turn on each topic: none of the hardware's samples came after the proxy's first.
    assert_int_equal(atomic_load(&s->state.n_turn), 1);
    assert_int_equal(atomic_load(&s->scan.n_turn), 1);
    assert_int_equal(atomic_load(&s->state.n_back), 0);
    assert_int_equal(now.n_unsent, 0);

    ask(s, "k10 hardware");
    assert_int_equal(us_switch_get_state(s->sw).control, US_SWITCH_HARDWARE);
    close_stage(s);
}

typedef struct seen {
    int32_t n;
    uint8_t ids[8][16];
} seen;

// The robot's endpoints as an operator discovers them: one of each, with the robot's node and its qualities
// of service.
static bool look_for_robot(stage *s, seen *out) {
    static us_endpoint all[128];
    int32_t n = 0, n_named = 0;
    *out = (seen){0};
    assert_int_equal(us_bus_list(s->bus, all, 128, &n), US_OK);
    assert_true(n <= 128);
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &all[i];
        if (e->is_own || strncmp(e->topic, "rt/k10/", 7) != 0) continue;
        assert_true(out->n < 8);
        memcpy(out->ids[out->n++], e->id, 16);
        bool is_command = strcmp(e->topic, "rt/k10/cmd_vel") == 0;
        assert_int_equal(e->is_writer, !is_command);
        assert_int_equal(e->qos.is_reliable, strcmp(e->topic, "rt/k10/scan") != 0);
        assert_int_equal(e->qos.is_transient_local, strcmp(e->topic, "rt/k10/robot_description") == 0);
        n_named += strcmp(e->node, "/k10/driver") == 0;
    }
    return out->n == 4 && n_named == 4;
}

static void operators_discover_one_robot_whoever_plays_it(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0);
    seen first, later;
    WAIT_FOR(look_for_robot(s, &first));
    static const char *const modes[] = {"proxy", "mirror", "hardware", "shadow", "stop", "proxy"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        ask(s, modes[i]);
        assert_string_equal(us_switch_mode_name(us_switch_get_state(s->sw).mode), modes[i]);
        assert_true(look_for_robot(s, &later));
        assert_memory_equal(&first, &later, sizeof first);
    }
    close_stage(s);
}

static void what_is_told_once_is_told_by_the_one_who_takes_over(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0);
    ear early = {.last = -1}, late = {.last = -1};
    add_reader(s->bus, "/k10/robot_description", usi_type_string, latched, hear, &early);
    WAIT_FOR(atomic_load(&early.n[0]) == 1);
    // The proxy's is known before it takes over: its samples of the other topics came after.
    ask(s, "proxy");
    WAIT_FOR(atomic_load(&early.n[1]) == 1);
    us_bus *bus = open_bus("cyclone", domain_of(0));
    add_reader(bus, "/k10/robot_description", usi_type_string, latched, hear, &late);
    WAIT_FOR(atomic_load(&late.n[1]) == 1);
    assert_int_equal(atomic_load(&late.n[0]), 0);
    us_bus_close(bus);
    close_stage(s);
}

typedef struct shared_ear {
    _Atomic int64_t n_own, n_other;
} shared_ear;

static void hear_shared(void *context, const us_sample *sample) {
    shared_ear *e = context;
    const bool is_own = sample->length >= 11 && memcmp((const char *)sample->bytes + 8, "k10", 3) == 0;
    atomic_fetch_add(is_own ? &e->n_own : &e->n_other, 1);
}

static bool is_told(shared_ear *e, us_writer *own) {
    write_text_message(own, "k10");
    return atomic_load(&e->n_own) > 0;
}

// On a topic that robots share, what sixty others write does not cross, once their nodes are known.
static void of_a_shared_topic_the_robots_own_samples_cross_however_large_the_fleet(void **state) {
    (void)state;
    enum { N_OTHER = 60, N_QUIET = 20 };
    stage *s = new_stage();
    const us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0);
    us_bus *fleet = open_bus("cyclone", domain_of(1));
    us_writer *others[N_OTHER], *own = NULL;
    us_error err = {0};
    int32_t node = -1;
    for (int i = 0; i < N_OTHER; i++) {
        char space[16];
        snprintf(space, sizeof space, "/r%d", i);
        expect_ok(us_bus_add_node(fleet, space, "driver", &node, &err), &err);
        const us_topic_def topic = {"/diagnostics", usi_type_string, reliable, node};
        expect_ok(us_bus_add_writer(fleet, &topic, &others[i], &err), &err);
    }
    expect_ok(us_bus_add_node(s->robots[0]->bus, "/k10", "monitor", &node, &err), &err);
    own = add_robots_writer(s->robots[0], node, "/diagnostics", reliable);
    static shared_ear e;
    add_reader(s->bus, "/diagnostics", usi_type_string, reliable, hear_shared, &e);
    WAIT_FOR(is_told(&e, own));
    const double until = clock_now() + PATIENCE;
    for (int n_quiet = 0; n_quiet < N_QUIET;) {
        const int64_t n_own = atomic_load(&e.n_own), n_other = atomic_load(&e.n_other);
        if (clock_now() > until) fail_msg("%lld samples of others have crossed", (long long)n_other);
        for (int i = 0; i < N_OTHER; i++)
            write_text_message(others[i], "other");
        write_text_message(own, "k10");
        WAIT_FOR(atomic_load(&e.n_own) > n_own);
        n_quiet = atomic_load(&e.n_other) == n_other ? n_quiet + 1 : 0;
    }
    us_bus_close(fleet);
    close_stage(s);
}

static void copies_bear_other_names(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0);
    ear mirror = {.last = -1}, shadow = {.last = -1};
    add_reader(s->bus, "/understudy/mirror/k10/state", usi_type_string, reliable, hear, &mirror);
    add_reader(s->bus, "/understudy/shadow/k10/state", usi_type_string, reliable, hear, &shadow);
    ask(s, "mirror");
    WAIT_FOR(atomic_load(&mirror.n[1]) > 5);
    command_until(s, s->robots[0]);
    assert_int_equal(atomic_load(&s->robots[1]->n_command), 0);
    ask(s, "shadow");
    WAIT_FOR(atomic_load(&shadow.n[1]) > 5);
    // Both get the commands; the hardware alone speaks for the robot.
    int32_t n = atomic_load(&s->robots[0]->n_command);
    command_until(s, s->robots[1]);
    WAIT_FOR(atomic_load(&s->robots[0]->n_command) > n);
    assert_int_equal(atomic_load(&s->state.n[1]), 0);
    assert_int_equal(atomic_load(&mirror.n[0]) + atomic_load(&shadow.n[0]), 0);
    close_stage(s);
}

static void requests_that_cannot_be_met_are_refused_with_a_reason(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    def.mode = US_MODE_PROXY;
    open_stage(s, &def, false, 0);
    ask(s, "hardware");
    us_switch_state now = us_switch_get_state(s->sw);
    assert_string_equal(now.refused, "the hardware was never heard");
    assert_int_equal(now.control, US_SWITCH_PROXY);
    ask(s, "nonsense");
    assert_non_null(strstr(us_switch_get_state(s->sw).refused, "no such mode"));
    ask(s, "stop");
    int32_t n = atomic_load(&s->robots[1]->n_command);
    int64_t n_fenced = us_switch_get_state(s->sw).n_fenced;
    WAIT_FOR((send_command(s), us_switch_get_state(s->sw).n_fenced > n_fenced + 10));
    assert_int_equal(atomic_load(&s->robots[1]->n_command), n);
    ask(s, "mirror");
    assert_non_null(strstr(us_switch_get_state(s->sw).refused, "nobody is in control"));
    s->verdict = US_ERR_VALUE;
    ask(s, "proxy");
    assert_string_equal(us_switch_get_state(s->sw).refused, "the \"states\" differ");
    assert_int_equal(us_switch_get_state(s->sw).control, US_SWITCH_NOBODY);
    s->verdict = US_OK;
    ask(s, "proxy");
    assert_int_equal(us_switch_get_state(s->sw).control, US_SWITCH_PROXY);
    WAIT_FOR(atomic_load(&s->n_event) >= 6);
    close_stage(s);

    us_switch *sw = NULL;
    us_error err = {0};
    def.proxy.domain = def.hardware.domain;
    assert_int_equal(us_switch_open(&def, &sw, &err), US_ERR_VALUE);
    assert_null(sw);
    def = us_switch_def_default();
    def.robot = "k10/x";
    assert_int_equal(us_switch_open(&def, &sw, &err), US_ERR_VALUE);
}

// The hardware as a process of its own, killed without a word.
static void start_process(void) {
    char domain[16];
    snprintf(domain, sizeof domain, "%d", domain_of(1));
    char self[] = "/proc/self/exe", flag[] = "--robot";
    char *argv[] = {self, flag, domain, NULL};
    assert_int_equal(posix_spawn(&process, self, NULL, NULL, argv, environ), 0);
}

static void kill_hardware(us_switch_loss on_loss, us_switch_mode mode, us_switch_source control) {
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    def.watchdog = 1;
    def.on_loss = on_loss;
    start_process();
    open_stage(s, &def, false, 0);
    // It may have come late on a busy machine: then the proxy plays already.
    WAIT_FOR(us_switch_get_state(s->sw).is_alive[0]);
    WAIT_FOR((ask(s, "hardware"), us_switch_get_state(s->sw).control == US_SWITCH_HARDWARE));
    WAIT_FOR(atomic_load(&s->state.n[0]) > 10);
    end_process();
    WAIT_FOR(us_switch_get_state(s->sw).control != US_SWITCH_HARDWARE);
    us_switch_state now = us_switch_get_state(s->sw);
    assert_int_equal(now.mode, mode);
    assert_int_equal(now.control, control);
    assert_non_null(strstr(now.reason, "the hardware has been silent for"));
    assert_false(now.is_alive[0]);
    if (control == US_SWITCH_PROXY) {
        command_until(s, s->robots[1]);
        WAIT_FOR(atomic_load(&s->state.last) == 1);
    } else {
        WAIT_FOR(atomic_load(&s->robots[1]->n_zero) > 0);
    }
    close_stage(s);
}

static void the_proxy_takes_over_when_the_hardware_is_killed(void **state) {
    (void)state;
    kill_hardware(US_LOSS_OTHER, US_MODE_PROXY, US_SWITCH_PROXY);
}

static void all_stops_when_the_hardware_is_killed_and_the_rule_says_so(void **state) {
    (void)state;
    kill_hardware(US_LOSS_STOP, US_MODE_STOP, US_SWITCH_NOBODY);
}

// Hardware in control, with a watchdog that shall be tripped.
static stage *play_hardware(double watchdog) {
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    def.watchdog = watchdog;
    open_stage(s, &def, true, 0);
    WAIT_FOR((ask(s, "hardware"), us_switch_get_state(s->sw).control == US_SWITCH_HARDWARE));
    return s;
}

static void when_both_are_lost_all_stops_and_the_first_to_be_heard_plays_on(void **state) {
    (void)state;
    stage *s = play_hardware(1);
    command_until(s, s->robots[0]);
    atomic_store(&s->robots[1]->is_silent, true);
    WAIT_FOR(!us_switch_get_state(s->sw).is_alive[1]);
    atomic_store(&s->robots[0]->is_silent, true);
    WAIT_FOR(us_switch_get_state(s->sw).control == US_SWITCH_NOBODY);
    us_switch_state now = us_switch_get_state(s->sw);
    assert_int_equal(now.mode, US_MODE_STOP);
    assert_non_null(strstr(now.reason, "and the proxy is silent too"));
    WAIT_FOR(atomic_load(&s->robots[0]->n_zero) > 0 && atomic_load(&s->robots[1]->n_zero) > 0);
    int64_t n_fenced = now.n_fenced;
    WAIT_FOR((send_command(s), us_switch_get_state(s->sw).n_fenced > n_fenced));
    atomic_store(&s->robots[1]->is_silent, false);
    WAIT_FOR(us_switch_get_state(s->sw).control == US_SWITCH_PROXY);
    command_until(s, s->robots[1]);
    close_stage(s);
}

static void a_log_that_is_stuck_does_not_keep_the_watchdog_waiting(void **state) {
    (void)state;
    stage *s = play_hardware(1);
    hold_log(s, true);
    ask(s, "mirror");
    int32_t n = atomic_load(&s->n_event);
    atomic_store(&s->robots[0]->is_silent, true);
    WAIT_FOR(us_switch_get_state(s->sw).control == US_SWITCH_PROXY);
    command_until(s, s->robots[1]);
    assert_int_equal(atomic_load(&s->n_event), n);
    // Nothing of it is missing afterwards: the mirror, the loss, and who is silent.
    hold_log(s, false);
    WAIT_FOR(atomic_load(&s->n_event) >= n + 3);
    close_stage(s);
}

static void count_sample(void *context, const us_sample *sample) {
    (void)sample;
    atomic_fetch_add((_Atomic int32_t *)context, 1);
}

// A proxy that never answers when it is told the hardware's state: it takes over when the watchdog is up all
// the same.
static void a_proxy_that_does_not_answer_takes_over_in_time(void **state) {
    (void)state;
    const double watchdog = 2;
    stage *s = play_hardware(watchdog);
    us_error err = {0};
    us_writer *odom = NULL;
    us_reader *reader = NULL;
    _Atomic int32_t n_told = 0, n_odom = 0;
    us_topic_def topic = {"/k10/odom", usi_type_odometry, reliable, 0};
    expect_ok(us_bus_add_writer(s->robots[0]->bus, &topic, &odom, &err), &err);
    add_reader(s->bus, "/k10/odom", usi_type_odometry, reliable, count_sample, &n_odom);
    topic = (us_topic_def){"/understudy/command", usi_type_string, reliable, 0};
    expect_ok(us_bus_add_reader(s->robots[1]->bus, &topic, count_sample, &n_told, &reader, &err), &err);
    WAIT_FOR(us_switch_get_state(s->sw).n_topic == 5 && us_writer_n_match(odom) == 1 &&
             us_reader_n_match(reader) == 1);
    char frame[] = "odom";
    us_msg_odometry message = {
        .header.frame_id = frame, .child_frame_id = frame, .pose.pose.orientation.w = 1};
    uint8_t bytes[2048];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_odometry, &message, bytes, sizeof bytes, &length), US_OK);
    // What the operator has, the switch has.
    WAIT_FOR((us_writer_write(odom, bytes, length, 0), atomic_load(&n_odom) > 0));
    atomic_store(&s->robots[0]->is_silent, true);
    struct timespec silent;
    clock_gettime(CLOCK_REALTIME, &silent);
    WAIT_FOR(us_switch_get_state(s->sw).control == US_SWITCH_PROXY);
    double took = 1e-9 * (double)us_switch_get_state(s->sw).since -
                  ((double)silent.tv_sec + 1e-9 * (double)silent.tv_nsec);
    print_message("the proxy was told %d times and took over after %.3f s\n", (int)n_told, took);
    assert_true(n_told > 0);
    // One that were waited for would have had half of the watchdog more. The rest is a busy machine's.
    assert_true(took < 1.4 * watchdog);
    close_stage(s);
}

// Of the commands by number: who got them. None went to both, and the receiver changed no more often than
// control did.
static void check_commands(const stage *s) {
    int8_t *owner = calloc((size_t)s->n_sent + 1, 1);
    assert_non_null(owner);
    for (int k = 0; k < 2; k++) {
        const robot *r = s->robots[k];
        for (int32_t i = 0; i < r->n_command; i++) {
            int32_t number = r->commands[i];
            assert_true(number > 0 && number <= s->n_sent);
            assert_int_equal(owner[number], 0);
            owner[number] = (int8_t)(k + 1);
        }
    }
    int32_t n_turn = 0, last = 0;
    for (int32_t i = 1; i <= s->n_sent; i++) {
        if (!owner[i]) continue;
        if (last && owner[i] != last) n_turn++;
        last = owner[i];
    }
    free(owner);
    assert_true(n_turn > 10);
    assert_true(n_turn <= s->n_turn);
}

static void a_hundred_random_switches_under_loss_never_have_two_in_control(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0.05);
    command_until(s, s->robots[0]);
    for (uint64_t i = 0; i < 100; i++) {
        int64_t n = us_switch_get_state(s->sw).n_answer;
        bool is_lost = us_random_uniform(11, 1, i) < 0.05;
        if (is_lost) continue;
        write_text_message(s->request, us_random_bits(11, 2, i) % 2 ? "hardware" : "proxy");
        uint64_t n_more = us_random_bits(11, 3, i) % 10;
        WAIT_FOR((send_command(s), us_switch_get_state(s->sw).n_answer > n));
        for (uint64_t k = 0; k < n_more; k++)
            send_command(s);
        if (i % 2) continue;
        // Every second one plays for a while, so that there is something to be seen; the others are as short
        // as can be.
        us_switch_source control = us_switch_get_state(s->sw).control;
        int64_t n_heard = atomic_load(&s->state.n[control]);
        command_until(s, s->robots[control]);
        WAIT_FOR(atomic_load(&s->state.n[control]) > n_heard + 2);
    }
    us_switch_state end = us_switch_get_state(s->sw);
    robot *last = s->robots[end.control];
    command_until(s, last);
    print_message("%d changes, %lld and %lld samples heard, %d commands sent\n", atomic_load(&s->n_turn),
                  (long long)s->state.n[0], (long long)s->state.n[1], s->n_sent);
    // Two at a time would turn with nearly every sample.
    assert_true(atomic_load(&s->n_turn) > 20);
    assert_true(atomic_load(&s->state.n_turn) > 10);
    assert_true(atomic_load(&s->state.n_turn) <= atomic_load(&s->n_turn));
    assert_int_equal(atomic_load(&s->state.n_back), 0);
    assert_int_equal(end.n_unsent, 0);
    check_commands(s);
    close_stage(s);
}

static void an_older_switch_withdraws(void **state) {
    (void)state;
    stage *s = new_stage();
    us_switch_def def = switch_def(s);
    open_stage(s, &def, true, 0);
    us_error err = {0};
    expect_ok(us_switch_open(&def, &second, &err), &err);
    WAIT_FOR(us_switch_get_state(s->sw).is_withdrawn);
    assert_int_equal(us_switch_get_state(s->sw).control, US_SWITCH_NOBODY);
    assert_false(us_switch_get_state(second).is_withdrawn);
    assert_true(us_switch_get_state(second).epoch > us_switch_get_state(s->sw).epoch);
    us_switch_close(second);
    second = NULL;
    close_stage(s);
}

int main(int n_argument, char **arguments) {
    if (n_argument == 3 && !strcmp(arguments[1], "--robot")) {
        robot *r = start_robot("hardware", (int32_t)strtol(arguments[2], NULL, 10), 0);
        alarm(100);  // a test that died leaves nobody behind
        pthread_join(r->thread, NULL);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(only_the_chosen_one_is_heard_and_commanded, clear_stage),
        cmocka_unit_test_teardown(operators_discover_one_robot_whoever_plays_it, clear_stage),
        cmocka_unit_test_teardown(what_is_told_once_is_told_by_the_one_who_takes_over, clear_stage),
        cmocka_unit_test_teardown(of_a_shared_topic_the_robots_own_samples_cross_however_large_the_fleet,
                                  clear_stage),
        cmocka_unit_test_teardown(copies_bear_other_names, clear_stage),
        cmocka_unit_test_teardown(requests_that_cannot_be_met_are_refused_with_a_reason, clear_stage),
        cmocka_unit_test_teardown(the_proxy_takes_over_when_the_hardware_is_killed, clear_stage),
        cmocka_unit_test_teardown(all_stops_when_the_hardware_is_killed_and_the_rule_says_so, clear_stage),
        cmocka_unit_test_teardown(when_both_are_lost_all_stops_and_the_first_to_be_heard_plays_on,
                                  clear_stage),
        cmocka_unit_test_teardown(a_log_that_is_stuck_does_not_keep_the_watchdog_waiting, clear_stage),
        cmocka_unit_test_teardown(a_proxy_that_does_not_answer_takes_over_in_time, clear_stage),
        cmocka_unit_test_teardown(a_hundred_random_switches_under_loss_never_have_two_in_control,
                                  clear_stage),
        cmocka_unit_test_teardown(an_older_switch_withdraws, clear_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
