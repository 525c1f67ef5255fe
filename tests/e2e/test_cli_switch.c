// understudy switch as a user types it: what it refuses, what it tells, what it returns, and a training
// script.
#include <pthread.h>

#include "bus/bus.h"
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

static outcome ask(const char *question) {
    return run("switch k10 --proxy %d %s", test_domain_of(2), question);
}

static void a_running_switch_is_asked_and_shown(void **state) {
    (void)state;
    pid_t pid = start_switch("");
    WAIT_FOR(has("switch.out", "hardware, hardware in control, epoch "));
    outcome a = ask("--status");
    assert_code(a, 0);
    assert_has(a.out, "k10: mode hardware, in control: hardware");
    assert_has(a.out, "the switch was started");
    assert_has(a.out, "hardware alive, proxy alive");
    a = run("switch /k10 --to proxy --proxy %d", test_domain_of(2));
    assert_code(a, 0);
    assert_has(a.out, "k10: mode proxy, in control: proxy");
    a = ask("--to stop --json");
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    assert_string_equal(member(json, "mode")->valuestring, "stop");
    assert_string_equal(member(json, "control")->valuestring, "nobody");
    assert_true(number_of(json, "answers") == 2);
    cJSON_Delete(json);
    // What cannot be is refused with the switch's own reason.
    a = ask("--to mirror");
    assert_code(a, 3);
    assert_has(a.err, "mirror refused: nobody is in control");
    assert_code(ask("--to hardware"), 0);
    end(pid);
    char *log = read_text("switch.out");
    assert_has(log, "mirror refused: nobody is in control");
    assert_has(log, "stop, nobody in control, epoch ");
    assert_has(log, "hardware was asked for");
    assert_has(log, "passed on: ");
    free(log);
}

// ---- what a stranger among the operators sees ----

typedef struct stranger {
    us_bus *bus;
    usi_vendor_participant *participant;  // bare DDS, for all that is said of nodes
    usi_vendor_endpoint *reader;
    _Atomic int32_t n_graph, n_named;  // messages about nodes, and those with a name of ours
} stranger;

static void hear_graph(void *context, const us_sample *sample) {
    stranger *s = context;
    atomic_fetch_add(&s->n_graph, 1);
    if (memmem(sample->bytes, sample->length, "understudy", 10)) atomic_fetch_add(&s->n_named, 1);
}

static void open_stranger(stranger *s, int32_t domain) {
    us_error err = {0};
    *s = (stranger){.bus = open_bus("cyclone", domain)};
    const usi_vendor_open open = {
        .allocator = us_allocator_default(), .domain = domain, .range = US_BUS_LOCALHOST, .user_data = ""};
    const usi_vendor_endpoint_def def = {.topic = "ros_discovery_info",
                                         .type = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_",
                                         .user_data = "",
                                         .qos = {.is_reliable = true, .is_transient_local = true},
                                         .on_sample = hear_graph,
                                         .context = s};
    expect_ok(usi_cyclone_vendor()->open(&open, &s->participant, &err), &err);
    expect_ok(usi_cyclone_vendor()->add_reader(s->participant, &def, &s->reader, &err), &err);
}

static void close_stranger(stranger *s) {
    usi_cyclone_vendor()->remove(s->reader);
    usi_cyclone_vendor()->close(s->participant);
    us_bus_close(s->bus);
}

// Topics and services with a part in their name, and those of a node that has.
static int32_t count_named(us_bus *bus, const char *part) {
    static us_endpoint all[512];
    int32_t n = 0, n_named = 0;
    assert_int_equal(us_bus_list(bus, all, 512, &n), US_OK);
    assert_in_range(n, 0, 512);
    for (int32_t i = 0; i < n; i++)
        n_named += strstr(all[i].topic, part) || strstr(all[i].node, part);
    return n_named;
}

// A whole proxy behind a switch with its usual settings, in every mode; and the same where it is asked for.
static void a_stranger_among_the_operators_sees_nothing_of_ours(void **state) {
    (void)state;
    static const char *const questions[] = {"--to shadow", "--to mirror", "--to hardware --anyway",
                                            "--to proxy", "--status"};
    stranger operators, proxy;
    open_stranger(&operators, test_domain_of(0));
    open_stranger(&proxy, test_domain_of(2));
    use_domain(test_domain_of(2));
    pid_t run_ = start("proxy", "run %s --headless --quiet --set motor_port=0", scene);
    use_domain(test_domain_of(0));
    for (int is_visible = 0; is_visible < 2; is_visible++) {
        pid_t pid = start_switch(is_visible ? "--plain --visible" : "--plain");
        // what the proxy alone has: all of it has been found by then
        WAIT_FOR(count_named(operators.bus, "rt/k10/odom") > 0 && atomic_load(&operators.n_graph) > 1 &&
                 count_named(operators.bus, "rt/k10/cmd_vel") > 0);
        for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
            outcome a = ask(questions[i]);
            assert_code(a, 0);
        }
        assert_true(count_named(proxy.bus, "understudy") > 10 && atomic_load(&proxy.n_named) > 0);
        if (is_visible) {
            WAIT_FOR(count_named(operators.bus, "understudy/mirror/k10/") > 0 &&
                     count_named(operators.bus, "understudy/authority") > 0 &&
                     atomic_load(&operators.n_named) > 0);
            assert_code(run("switch k10 --visible --to hardware --anyway"), 0);
        } else {
            assert_int_equal(count_named(operators.bus, "understudy"), 0);
            assert_int_equal(atomic_load(&operators.n_named), 0);
        }
        end(pid);
    }
    end(run_);
    close_stranger(&operators);
    close_stranger(&proxy);
}

// ---- what crosses, as options and as a file ----

static void count_sample(void *context, const us_sample *sample) {
    (void)sample;
    atomic_fetch_add((_Atomic int32_t *)context, 1);
}

// Four topics of the hardware beside its beat. A switch with these options lets a beat and two of them cross.
static void check_selections(const char *options) {
    enum { TRUTH, SLOW, SECRET, ASIDE, N_OUTPUT, N_SAMPLE = 40 };
    static const char *const names[N_OUTPUT] = {"/k10/truth", "/k10/slow", "/k10/secret_plan", "/aside/note"};
    us_error err = {0};
    us_bus *operators = open_bus("cyclone", test_domain_of(0)),
           *hardware = open_bus("cyclone", test_domain_of(1));
    us_writer *writers[N_OUTPUT] = {NULL};
    us_reader *readers[N_OUTPUT];
    _Atomic int32_t n_heard[N_OUTPUT] = {0};
    int32_t node = -1;
    expect_ok(us_bus_add_node(hardware, "/k10", "instruments", &node, &err), &err);
    for (int i = 0; i < N_OUTPUT; i++) {
        const us_topic_def def = {names[i], usi_type_string, reliable, node};
        expect_ok(us_bus_add_writer(hardware, &def, &writers[i], &err), &err);
        readers[i] = add_reader(operators, names[i], usi_type_string, reliable, count_sample, &n_heard[i]);
    }
    pid_t pid = start_switch(options);
    WAIT_FOR(us_reader_n_match(readers[SLOW]) == 1 && us_reader_n_match(readers[ASIDE]) == 1 &&
             us_writer_n_match(writers[SLOW]) == 1 && us_writer_n_match(writers[ASIDE]) == 1);
    WAIT_FOR(has("switch.out", "hardware, hardware in control, epoch "));
    // 10 Hz by their source times; at 2 Hz every fifth of them crosses.
    const uint8_t bytes[] = {0, 1, 0, 0, 2, 0, 0, 0, 'x', 0, 0, 0};
    for (int64_t k = 0; k < N_SAMPLE; k++) {
        for (int i = 0; i < N_OUTPUT; i++)
            assert_int_equal(us_writer_write(writers[i], bytes, sizeof bytes, 1000000000 + k * 100000000),
                             US_OK);
    }
    WAIT_FOR(atomic_load(&n_heard[ASIDE]) == N_SAMPLE && atomic_load(&n_heard[SLOW]) == N_SAMPLE / 5);
    // These are not there for the operators at all, however long they listen.
    assert_int_equal(us_reader_n_match(readers[TRUTH]), 0);
    assert_int_equal(us_reader_n_match(readers[SECRET]), 0);
    end(pid);
    us_bus_close(operators);
    us_bus_close(hardware);
}

static void what_crosses_is_selected_by_options_or_by_a_file(void **state) {
    (void)state;
    // Spaces part arguments here, and tabs the words of one.
    // What is not below /k10 is aside; of the rest one is left out by its name, and one as it is not among
    // those that are wanted.
    check_selections("--only /k10/s* --only /aside/* --except /k10/secret* --also /aside/* "
                     "--filter /k10/slow\trate=2");
    write_text("topics.txt", "# what the operators get\n"
                             "only /k10/s*\n"
                             "\n"
                             "  only /aside/*   # from outside\n"
                             "except /k10/secret*\r\n"
                             "also /aside/*\n"
                             "filter /k10/slow rate=2");
    check_selections("--topics topics.txt");
}

static void selections_that_cannot_be_are_refused_with_a_remedy(void **state) {
    (void)state;
    static const struct {
        const char *line, *part;
    } bad[] = {
        {"switch k10 --only /a\t/b", "there is more than one topic"},
        {"switch k10 --filter /k10/odom", "a condition is missing"},
        {"switch k10 --filter /k10/odom\trate=0", "a condition is not every=N, rate=HZ or MEMBER<VALUE"},
        {"switch k10 --except \t", "a topic is missing"},
        {"switch k10 --topics missing.txt", "missing.txt cannot be opened"},
        {"switch k10 --topics bad.txt", "begins with none of only, except, also, filter"},
    };
    write_text("bad.txt", "only /k10/odom\nwithout /k10/points\n");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        outcome a = run("%s", bad[i].line);
        assert_code(a, 2);
        assert_has(a.err, bad[i].part);
        assert_has(a.err, "remedy: ");
        assert_string_equal(a.out, "");
    }
}

static void who_is_not_there_is_not_waited_for_long(void **state) {
    (void)state;
    outcome a = run("switch nobody --status --wait 0.3");
    assert_code(a, 3);
    assert_has(a.err, "no switch of a robot \"nobody\" is heard in domain");
    assert_has(a.err, "understudy switch ROBOT");
    assert_has(a.err, "--proxy");
    a = run("switch nobody --visible --status --wait 0.3");
    assert_code(a, 3);
    assert_has(a.err, "understudy switch ROBOT --visible");
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
    pid_t pid = start_switch("--script script.txt --seed 4 --secret --visible");
    WAIT_FOR(has("switch.out", "script line 3, 3.0 s: hardware the first is back"));
    WAIT_FOR(has("switch.out", "hardware was asked for"));
    WAIT_FOR(atomic_load(&n_fault) == 1);
    // Operators learn nothing of it by asking elsewhere, unless they want to know the secret.
    static const char *const questions[] = {"--visible --status", "--visible --secret --status", "--status"};
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        outcome a = ask(questions[i]);
        assert_code(a, 0);
        assert_has(a.out, "k10: mode secret, in control: secret");
        assert_null(strstr(a.out, "asked"));
    }
    outcome b = ask("--status --json");
    cJSON *json = parse_json(b.out);
    assert_string_equal(member(json, "control")->valuestring, "secret");
    assert_string_equal(member(json, "reason")->valuestring, "");
    cJSON_Delete(json);
    b = ask("--status --secret");
    assert_code(b, 0);
    assert_has(b.out, "k10: mode hardware, in control: hardware");
    assert_has(b.out, "asked");
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
        cmocka_unit_test(a_stranger_among_the_operators_sees_nothing_of_ours),
        cmocka_unit_test(what_crosses_is_selected_by_options_or_by_a_file),
        cmocka_unit_test(selections_that_cannot_be_are_refused_with_a_remedy),
        cmocka_unit_test(who_is_not_there_is_not_waited_for_long),
        cmocka_unit_test(what_cannot_be_is_refused_with_a_remedy),
        cmocka_unit_test(a_script_switches_and_breaks_things_in_secret),
    };
    return cmocka_run_group_tests(tests, start_robots, end_robots);
}
