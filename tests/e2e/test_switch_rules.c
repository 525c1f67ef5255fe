// Rules of a switch: what a robot says of itself, or an operator to it, changes who is in control.
//
// Two robots that look alike, in this process, each with a beat, diagnostics and an emergency stop.
#include "test_bus_support.h"
#include "understudy/switch.h"

static const us_qos reliable = {.is_reliable = true, .depth = 100};

typedef struct robot {
    us_bus *bus;
    us_writer *beat, *diagnostics;
} robot;

typedef struct stage {
    robot robots[2];
    us_switch *sw;
    us_bus *bus;
    us_writer *stop;
    _Atomic int32_t n_unfollowed, n_heard;
} stage;

static void ignore(void *context, const us_sample *sample) {
    (void)context;
    (void)sample;
}

static void tally(void *context, const us_sample *sample) {
    (void)sample;
    atomic_fetch_add((_Atomic int32_t *)context, 1);
}

static void open_robot(robot *r, int32_t domain) {
    us_error err = {0};
    int32_t node = -1;
    us_reader *reader = NULL;
    r->bus = open_bus("cyclone", domain);
    expect_ok(us_bus_add_node(r->bus, "/k10", "driver", &node, &err), &err);
    expect_ok(us_bus_add_writer(r->bus, &(us_topic_def){"/k10/state", usi_type_string, reliable, node},
                                &r->beat, &err),
              &err);
    expect_ok(us_bus_add_writer(r->bus,
                                &(us_topic_def){"/diagnostics", usi_type_diagnostic_array, reliable, node},
                                &r->diagnostics, &err),
              &err);
    expect_ok(us_bus_add_reader(r->bus, &(us_topic_def){"/k10/emergency_stop", usi_type_bool, reliable, node},
                                ignore, NULL, &reader, &err),
              &err);
}

static void take_event(void *context, int64_t time, const char *text) {
    stage *s = context;
    if (time > 0 && strstr(text, "cannot be followed")) atomic_fetch_add(&s->n_unfollowed, 1);
}

static us_switch_state look(stage *s) {
    for (int i = 0; i < 2; i++) {
        if (s->robots[i].beat) write_text_message(s->robots[i].beat, "alive");
    }
    return us_switch_get_state(s->sw);
}

static void diagnose(robot *r, const char *name, uint8_t level) {
    char text[64], message[] = "a wheel is blocked", none[] = "";
    snprintf(text, sizeof text, "%s", name);
    us_msg_diagnostic_status status = {.level = level, .name = text, .message = message, .hardware_id = none};
    us_msg_diagnostic_array array = {.header.frame_id = none, .status = {1, 1, &status, false}};
    uint8_t bytes[1024];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_diagnostic_array, &array, bytes, sizeof bytes, &length),
                     US_OK);
    assert_int_equal(us_writer_write(r->diagnostics, bytes, length, 0), US_OK);
}

static void press(stage *s, bool is_on) {
    us_msg_bool message = {.data = is_on};
    uint8_t bytes[16];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_bool, &message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(s->stop, bytes, length, 0), US_OK);
}

static void ask(stage *s, us_switch_mode mode) {
    int64_t n = look(s).n_answer;
    assert_int_equal(us_switch_request(s->sw, mode), US_OK);
    WAIT_FOR(look(s).n_answer > n);
}

static void open_stage(stage *s, const char *const *rules, int32_t n, bool has_proxy) {
    us_error err = {0};
    us_switch_def def = us_switch_def_default();
    *s = (stage){0};
    def.robot = "k10";
    def.operators.domain = test_domain_of(0);
    def.hardware.domain = test_domain_of(1);
    def.proxy.domain = test_domain_of(2);
    def.watchdog = 10;  // no busy machine shall trip it
    def.rules = rules;
    def.n_rule = n;
    def.on_event = take_event;
    def.context = s;
    open_robot(&s->robots[0], test_domain_of(1));
    if (has_proxy) open_robot(&s->robots[1], test_domain_of(2));
    s->bus = open_bus("cyclone", test_domain_of(0));
    s->stop = add_writer(s->bus, "/k10/emergency_stop", usi_type_bool, reliable);
    expect_ok(us_switch_open(&def, &s->sw, &err), &err);
    WAIT_FOR(look(s).is_alive[0] && (look(s).is_alive[1] || !has_proxy) && look(s).n_topic == 3);
    // A match is known on one side before it is on the other: all that is told from here on arrives.
    add_reader(s->bus, "/diagnostics", usi_type_diagnostic_array, reliable, tally, &s->n_heard);
    for (int i = has_proxy ? 1 : 0; i >= 0; i--) {
        ask(s, i == 1 ? US_MODE_PROXY : US_MODE_HARDWARE);
        int32_t n_heard = atomic_load(&s->n_heard);
        WAIT_FOR((diagnose(&s->robots[i], "all", 0), atomic_load(&s->n_heard) > n_heard));
    }
    WAIT_FOR((press(s, false), look(s).n_command > 0));
}

static void close_stage(stage *s) {
    us_switch_close(s->sw);
    us_bus_close(s->bus);
    us_bus_close(s->robots[0].bus);
    us_bus_close(s->robots[1].bus);
}

static void a_fault_of_the_one_in_control_gives_control_away(void **state) {
    (void)state;
    static const char *const rules[] = {"fault  k10:*  ->  proxy"};
    stage s;
    open_stage(&s, rules, 1, true);
    // None of these: another's name, a warning, and an error of the one who is not in control.
    diagnose(&s.robots[0], "lander: legs", 2);
    diagnose(&s.robots[0], "k10: battery", 1);
    diagnose(&s.robots[1], "k10: battery", 2);
    uint64_t epoch = look(&s).epoch;
    int64_t n_answer = look(&s).n_answer;
    diagnose(&s.robots[0], "k10: drives", 2);
    WAIT_FOR(look(&s).control == US_SWITCH_PROXY);
    us_switch_state now = look(&s);
    assert_int_equal(now.mode, US_MODE_PROXY);
    assert_string_equal(now.reason, "k10: drives: a wheel is blocked");
    assert_true(now.epoch > epoch);
    assert_int_equal(now.n_answer, n_answer);  // nobody asked

    // Who asks for a robot with a fault gets it, and keeps it while nothing new breaks.
    ask(&s, US_MODE_HARDWARE);
    epoch = look(&s).epoch;
    diagnose(&s.robots[0], "k10: drives", 2);
    diagnose(&s.robots[0], "k10: camera", 0);
    diagnose(&s.robots[0], "k10: drives", 0);
    int64_t n = look(&s).n_output;
    WAIT_FOR(look(&s).n_output > n + 10);
    assert_int_equal(look(&s).epoch, epoch);
    diagnose(&s.robots[0], "k10: drives", 2);
    WAIT_FOR(look(&s).control == US_SWITCH_PROXY);
    close_stage(&s);
}

static void an_operators_emergency_stop_stops_whoever_plays(void **state) {
    (void)state;
    static const char *const rules[] = {"topic /k10/emergency_stop -> stop",
                                        "topic /k10/something_else -> proxy"};
    stage s;
    open_stage(&s, rules, 2, true);
    ask(&s, US_MODE_PROXY);
    press(&s, true);
    WAIT_FOR(look(&s).mode == US_MODE_STOP);
    assert_int_equal(look(&s).control, US_SWITCH_NOBODY);
    assert_string_equal(look(&s).reason, "true on /k10/emergency_stop");
    ask(&s, US_MODE_HARDWARE);
    press(&s, false);
    press(&s, true);
    WAIT_FOR(look(&s).mode == US_MODE_STOP);
    close_stage(&s);
}

static void a_rule_that_cannot_be_followed_leaves_it_to_the_next(void **state) {
    (void)state;
    static const char *const rules[] = {"fault -> proxy", "fault -> stop"};
    stage s;
    open_stage(&s, rules, 2, false);
    diagnose(&s.robots[0], "any", 2);
    WAIT_FOR(look(&s).mode == US_MODE_STOP);
    // Events come on a thread of their own, after the change.
    WAIT_FOR(atomic_load(&s.n_unfollowed) == 1);
    close_stage(&s);
}

static void what_is_no_rule_is_refused_with_a_remedy(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",        "fault",         "fault -> ",         "fault -> nonsense",  "weather -> stop",
        "-> stop", "topic -> stop", "topic k10 -> stop", "topic /a /b -> stop"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        us_switch_def def = us_switch_def_default();
        us_switch *sw = NULL;
        us_error err = {0};
        def.robot = "k10";
        def.rules = &bad[i];
        def.n_rule = 1;
        assert_int_equal(us_switch_open(&def, &sw, &err), US_ERR_VALUE);
        assert_null(sw);
        assert_non_null(strstr(err.message, "invalid rule"));
        assert_non_null(strstr(err.remedy, "fault -> proxy"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_of_the_one_in_control_gives_control_away),
        cmocka_unit_test(an_operators_emergency_stop_stops_whoever_plays),
        cmocka_unit_test(a_rule_that_cannot_be_followed_leaves_it_to_the_next),
        cmocka_unit_test(what_is_no_rule_is_refused_with_a_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
