// understudy switch as a user types it: what it refuses, what it tells, what it returns, and a training
// script.
#include <pthread.h>

#include "test_network_support.h"

static const us_qos reliable = {.is_reliable = true, .depth = 100},
                    latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};

// The two robots: in this process, each with a beat. A thread beats for both.
static us_bus *buses[2];
static us_writer *beats[2];
static pthread_t heart;
static atomic_bool is_over;

static void *beat(void *context) {
    (void)context;
    while (!atomic_load(&is_over)) {
        for (int i = 0; i < 2; i++)
            write_text_message(beats[i], "alive");
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return NULL;
}

static int start_robots(void **state) {
    start_alone(state);
    for (int i = 0; i < 2; i++) {
        us_error err = {0};
        int32_t node = -1;
        buses[i] = open_bus("cyclone", test_domain_of(1 + i));
        expect_ok(us_bus_add_node(buses[i], "/k10", "driver", &node, &err), &err);
        expect_ok(us_bus_add_writer(buses[i], &(us_topic_def){"/k10/state", usi_type_string, reliable, node},
                                    &beats[i], &err),
                  &err);
    }
    return pthread_create(&heart, NULL, beat, NULL);
}

static int end_robots(void **state) {
    kill_the_rest(state);
    atomic_store(&is_over, true);
    pthread_join(heart, NULL);
    for (int i = 0; i < 2; i++)
        us_bus_close(buses[i]);
    return 0;
}

static bool has(const char *path, const char *part) {
    char *text = read_text(path);
    bool is_there = text && strstr(text, part);
    free(text);
    return is_there;
}

// A switch between the three domains, with both robots heard.
static pid_t start_switch(const char *options) {
    pid_t pid = start("switch", "switch k10 --operators %d --hardware %d --proxy %d --watchdog 10 %s",
                      test_domain_of(0), test_domain_of(1), test_domain_of(2), options);
    WAIT_FOR(has("switch.out", "the hardware is heard") && has("switch.out", "the proxy is heard"));
    return pid;
}

static void a_running_switch_is_asked_and_shown(void **state) {
    (void)state;
    pid_t pid = start_switch("");
    WAIT_FOR(has("switch.out", "hardware, hardware in control, epoch "));
    outcome a = run("switch k10 --status");
    assert_code(a, 0);
    assert_has(a.out, "k10: mode hardware, in control: hardware");
    assert_has(a.out, "the switch was started");
    assert_has(a.out, "hardware alive, proxy alive");
    a = run("switch /k10 --to proxy");
    assert_code(a, 0);
    assert_has(a.out, "k10: mode proxy, in control: proxy");
    a = run("switch k10 --to stop --json");
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    assert_string_equal(member(json, "mode")->valuestring, "stop");
    assert_string_equal(member(json, "control")->valuestring, "nobody");
    assert_true(number_of(json, "answers") == 2);
    cJSON_Delete(json);
    // What cannot be is refused with the switch's own reason.
    a = run("switch k10 --to mirror");
    assert_code(a, 3);
    assert_has(a.err, "mirror refused: nobody is in control");
    assert_code(run("switch k10 --to hardware"), 0);
    end(pid);
    char *log = read_text("switch.out");
    assert_has(log, "mirror refused: nobody is in control");
    assert_has(log, "stop, nobody in control, epoch ");
    assert_has(log, "hardware was asked for");
    assert_has(log, "passed on: ");
    free(log);
}

static void who_is_not_there_is_not_waited_for_long(void **state) {
    (void)state;
    outcome a = run("switch nobody --status --wait 0.3");
    assert_code(a, 3);
    assert_has(a.err, "no switch of a robot \"nobody\" is heard");
    assert_has(a.err, "understudy switch ROBOT");
    assert_code(run("switch nobody --to proxy --wait 0.3"), 3);
}

static void what_cannot_be_is_refused_with_a_remedy(void **state) {
    (void)state;
    static const struct {
        const char *line, *part;
    } bad[] = {
        {"switch", "ROBOT"},
        {"switch k10 --to proxi", "did you mean proxy?"},
        {"switch k10 --mode nonsense", "write hardware, proxy, mirror, shadow or stop"},
        {"switch k10 --on-loss hardware", "write proxy, other or stop"},
        {"switch k10 --hardware 233", "domains are 0 to 232"},
        {"switch k10 --operators 7 --hardware 7", "domains must differ"},
        {"switch k10 --watchdog 0", "0.01 s to 3600 s"},
        {"switch k10/x", "invalid robot name"},
        {"switch k10 --rule fault", "invalid rule \"fault\""},
        {"switch k10 --script missing.txt", "missing.txt cannot be read"},
        {"switch k10 --watchful", "--watchful"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        outcome a = run("%s", bad[i].line);
        assert_code(a, 2);
        assert_has(a.err, bad[i].part);
        assert_string_equal(a.out, "");
    }
    static const char *const scripts[] = {"soon proxy\n",        "1\n",        "1 proxi\n",
                                          "between 2 1 proxy\n", "-1 proxy\n", "0 stop\n1 proxy|nonsense\n"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        write_text("bad.txt", scripts[i]);
        outcome a = run("switch k10 --script bad.txt");
        assert_code(a, 2);
        assert_has(a.err, i == 5 ? "bad.txt, line 2 cannot be read" : "bad.txt, line 1 cannot be read");
    }
}

// ---- a training script ----

static _Atomic int32_t n_fault;

static void hear_world(void *context, const us_sample *sample) {
    (void)context;
    static const char command[] = "fault k10 motor:front_left_drive=dead";
    if (sample->length >= 8 + sizeof command &&
        !memcmp((const char *)sample->bytes + 8, command, sizeof command))
        atomic_fetch_add(&n_fault, 1);
}

static atomic_bool is_betrayed;

static void hear_authority(void *context, const us_sample *sample) {
    (void)context;
    char text[1024] = "";
    if (sample->length > 8)
        snprintf(text, sizeof text, "%.*s", (int)(sample->length - 8), (const char *)sample->bytes + 8);
    if (!strstr(text, "\"mode\":\"secret\"") || strstr(text, "asked")) atomic_store(&is_betrayed, true);
}

static void a_script_switches_and_breaks_things_in_secret(void **state) {
    (void)state;
    write_text("script.txt", "# for the test\n"
                             "0 stop   both are heard by then, and what is due at once can be done\n"
                             "3 hardware   the first is back\n"
                             "2.5 fault k10 motor:front_left_drive=dead\n"
                             "between 1 2 proxy|proxy   surprise\n"
                             "\n");
    us_bus *operators = open_bus("cyclone", test_domain_of(0));
    add_reader(buses[1], "/understudy/command", usi_type_string, reliable, hear_world, NULL);
    add_reader(operators, "/understudy/authority", usi_type_string, latched, hear_authority, NULL);
    pid_t pid = start_switch("--script script.txt --seed 4 --secret");
    WAIT_FOR(has("switch.out", "script line 3, 3.0 s: hardware the first is back"));
    WAIT_FOR(has("switch.out", "hardware was asked for"));
    WAIT_FOR(atomic_load(&n_fault) == 1);
    outcome a = run("switch k10 --status");
    assert_code(a, 0);
    assert_has(a.out, "k10: mode secret, in control: secret");
    end(pid);
    char *log = read_text("switch.out");
    const char *first = strstr(log, "script line 5, 1."),
               *second = strstr(log, "script line 4, 2.5 s: fault k10 motor:front_left_drive=dead");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    const char *heard = strstr(log, "the proxy is heard"),
               *at_once = strstr(log, "script line 2, 0.0 s: stop");
    assert_true(heard && at_once && heard < at_once && at_once < first);
    assert_has(log, "stop was asked for");
    assert_has(first, "proxy surprise");
    assert_has(log, "proxy was asked for");
    assert_false(atomic_load(&is_betrayed));
    free(log);
    us_bus_close(operators);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_switch_is_asked_and_shown),
        cmocka_unit_test(who_is_not_there_is_not_waited_for_long),
        cmocka_unit_test(what_cannot_be_is_refused_with_a_remedy),
        cmocka_unit_test(a_script_switches_and_breaks_things_in_secret),
    };
    return cmocka_run_group_tests(tests, start_robots, end_robots);
}
