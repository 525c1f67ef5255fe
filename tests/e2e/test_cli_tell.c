// understudy tell: world commands to a running simulation, their answers and exit codes, and what the run
// makes of them.
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "test_network_support.h"

// Until the simulation is there: discovery takes its time on a busy machine.
__attribute__((format(printf, 1, 2))) static outcome tell(const char *format, ...) {
    char words[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    double until = clock_now() + PATIENCE;
    for (;;) {
        outcome a = run("tell %s", words);
        if (a.code != 3 || clock_now() > until) return a;
    }
}

// ---- the status, as others hear it ----

static pthread_mutex_t status_lock = PTHREAD_MUTEX_INITIALIZER;
static char status_text[1 << 16];

static void hear_status(void *context, const us_sample *sample) {
    (void)context;
    pthread_mutex_lock(&status_lock);
    // After the header a String is a length and its characters.
    snprintf(status_text, sizeof status_text, "%.*s", (int)(sample->length - 8),
             (const char *)sample->bytes + 8);
    pthread_mutex_unlock(&status_lock);
}

static us_bus *listen_to_status(void) {
    us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    const char *domain = getenv("ROS_DOMAIN_ID");
    status_text[0] = 0;
    us_bus *bus = open_bus("cyclone", domain ? (int32_t)strtol(domain, NULL, 10) : 0);
    add_reader(bus, "/understudy/status", usi_type_string, latched, hear_status, NULL);
    return bus;
}

static cJSON *status_now(void) {
    char text[sizeof status_text];
    WAIT_FOR((pthread_mutex_lock(&status_lock), memcpy(text, status_text, sizeof text),
              pthread_mutex_unlock(&status_lock), text[0] != 0));
    return parse_json(text);
}

static bool is_true(const char *key) {
    cJSON *status = status_now();
    bool is = cJSON_IsTrue(member(status, key));
    cJSON_Delete(status);
    return is;
}

static double status_number(const char *key) {
    cJSON *status = status_now();
    double x = number_of(status, key);
    cJSON_Delete(status);
    return x;
}

// The last /clock, ns, and how often it was told so.
static _Atomic int64_t clock_time, n_clock_same;

static void hear_clock(void *context, const us_sample *sample) {
    (void)context;
    int32_t time[2];
    if (sample->length < 12) return;
    memcpy(time, (const uint8_t *)sample->bytes + 4, sizeof time);
    const int64_t ns = (int64_t)time[0] * 1000000000 + time[1];
    atomic_store(&n_clock_same, atomic_exchange(&clock_time, ns) == ns ? atomic_load(&n_clock_same) + 1 : 0);
}

// Whoever joins a world that stands hears what time it is, and the time stands.
static void the_clock_is_told_while_paused(void **state) {
    (void)state;
    us_bus *bus = listen_to_status();
    assert_code(tell("pause"), 0);
    WAIT_FOR(is_true("paused"));
    us_bus *late = open_bus("cyclone", test_domain());
    add_reader(late, "/clock", usi_type_clock, (us_qos){.depth = 1}, hear_clock, NULL);
    WAIT_FOR(atomic_load(&n_clock_same) >= 5);
    assert_true(atomic_load(&clock_time) >= 0);
    assert_code(tell("resume"), 0);
    WAIT_FOR(!is_true("paused"));
    us_bus_close(late);
    us_bus_close(bus);
}

static void tell_changes_time(void **state) {
    (void)state;
    us_bus *bus = listen_to_status();
    assert_code(tell("pause"), 0);
    WAIT_FOR(is_true("paused"));
    double before = status_number("tick");
    assert_code(tell("step 25"), 0);
    // Told once a second, too.
    WAIT_FOR(status_number("tick") == before + 25);
    assert_code(tell("rate 2"), 0);
    WAIT_FOR(status_number("rate") == 2);
    assert_code(tell("rate real"), 0);
    assert_code(tell("resume"), 0);
    WAIT_FOR(!is_true("paused"));
    WAIT_FOR(status_number("tick") > before + 50);
    assert_code(tell("snapshot here"), 0);
    assert_code(tell("restore here"), 0);
    assert_code(tell("reset"), 0);
    us_bus_close(bus);
}

static void tell_changes_the_world(void **state) {
    (void)state;
    us_bus *bus = listen_to_status();
    double epoch = status_number("epoch");
    outcome a = tell("add box crate size=0.5,0.5,0.5 at=1,-1,2 density=300");
    assert_code(a, 0);
    assert_string_equal(a.out, "crate: 37.5 kg\n");
    WAIT_FOR(status_number("epoch") > epoch);
    assert_code(tell("move crate 2 -1.5 0.5"), 0);
    assert_code(tell("pair rubber soil static-friction=0.45 kinetic-friction=0.4"), 0);
    outcome b = tell("remove crat");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "did you mean \"crate\"?");
    assert_code(tell("remove crate"), 0);
    double until = clock_now() + PATIENCE;
    for (bool is_last = false; !is_last;) {
        cJSON *status = status_now();
        const cJSON *last = member(status, "last"), *answers = member(status, "answers");
        is_last = strcmp(member(last, "text")->valuestring, "remove crate") == 0;
        if (is_last) {
            assert_true(cJSON_IsTrue(member(last, "ok")));
            // Further ones are kept, so that nobody misses the own.
            int n = cJSON_GetArraySize(answers);
            assert_true(n >= 5);
            assert_true(cJSON_IsFalse(member(cJSON_GetArrayItem(answers, n - 2), "ok")));
        }
        cJSON_Delete(status);
        if (clock_now() > until) fail_msg("the answer never came");
    }
    us_bus_close(bus);
}

static void tell_says_why_not_and_what_to_write(void **state) {
    (void)state;
    outcome a = tell("remove k10");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "robots stay");
    outcome b = tell("move ston3 1 -2 0.5");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "did you mean \"stone3\"?");
    outcome c = tell("puase");
    assert_int_equal(c.code, 2);
    assert_has(c.err, "did you mean \"pause\"?");
    outcome d = run("tell");
    assert_int_equal(d.code, 2);
    assert_has(d.err, "needs a COMMAND");
    outcome e = run("tell --help");
    assert_code(e, 0);
    assert_has(e.out, "understudy tell add box");
}

static void tell_without_a_simulation_says_so(void **state) {
    (void)state;
    use_domain(quiet_domain());
    outcome a = run("tell pause");
    assert_int_equal(a.code, 3);
    assert_has(a.err, "no simulation listens");
}

// What was told is in the recording, also where time jumped: each stretch proves to be the same.
static void a_run_that_was_told_verifies(void **state) {
    (void)state;
    use_domain(quiet_domain());
    unlink("told.mcap");
    unlink("told-2.mcap");
    unlink("own.mcap");
    pid_t pid = start("told", "run %s --headless --set motor_port=0 --record told.mcap", scene);
    assert_code(tell("add sphere orb size=0.2 at=0.5,-5,1 mass=5"), 0);
    assert_code(tell("pair rubber soil friction=0.3"), 0);
    assert_code(tell("move slab 4.8 -1.9 0.02"), 0);
    assert_code(tell("reset"), 0);
    assert_code(tell("remove stone1"), 0);
    assert_code(tell("record own.mcap"), 0);
    end(pid);
    char *err = read_text("told.err");
    assert_has(err, "wrote told.mcap");
    assert_has(err, "wrote told-2.mcap");
    free(err);
    assert_code(run("replay told.mcap --verify --trust"), 0);
    assert_code(run("replay told-2.mcap --verify --trust"), 0);
}

static void columns_of_what_is_gone_are_nan_and_told_once(void **state) {
    (void)state;
    use_domain(quiet_domain());
    pid_t pid = start("rows",
                      "run %s --headless --set motor_port=0 --csv rows.csv --csv-rate 20 --values "
                      "stone1/stone.x,k10/base.x,stone2/stone.x",
                      scene);
    assert_code(tell("remove stone1"), 0);
    assert_code(tell("remove stone2"), 0);
    assert_code(tell("pause"), 0);
    us_bus *bus = listen_to_status();
    double before = status_number("tick");
    assert_code(tell("step 200"), 0);
    WAIT_FOR(status_number("tick") >= before + 200);
    us_bus_close(bus);
    end(pid);
    char *rows = read_text("rows.csv"), *err = read_text("rows.err");
    assert_has(rows, "time,stone1/stone.x,k10/base.x,stone2/stone.x\n");
    const char *last = strrchr(rows, '\n');
    while (last > rows && last[-1] != '\n')
        last--;
    assert_has(last, ",nan,");
    assert_int_equal(count_text(err, "is not there any more"), 1);
    // The robot is found again: its column goes on.
    double time = NAN, x = NAN;
    // NOLINTNEXTLINE(cert-err34-c): the count of what was read is all that is asked for
    assert_int_equal(sscanf(last, "%lf,nan,%lf,nan", &time, &x), 2);
    assert_true(isfinite(x));
    free(rows);
    free(err);
}

// Ground is read ahead where something moves to; where it is put by a word nobody could know. The line at the
// end says that a step had to wait.
static void a_step_that_waited_for_ground_is_told_at_the_end(void **state) {
    (void)state;
    use_domain(quiet_domain());
    assert_int_equal(system("rm -rf wide"), 0);
    assert_code(
        run("terrain random -o wide --size 1200,300 --covariance gaussian --length 60 --variance 1 --seed 3"),
        0);
    write_text(
        "wide.xml",
        "<scene name=\"wide\" version=\"1\">\n"
        "  <world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" file=\"wide/\"/></world>\n"
        "  <robot name=\"k10\" file=\"" US_SOURCE_DIR
        "/models/k10.urdf\" base=\"floating\" xyz=\"-500 0 6\"><network/></robot>\n"
        "</scene>\n");
    pid_t pid = start("wide", "run wide.xml --headless");
    assert_code(tell("move k10 500 0 6"), 0);
    us_bus *bus = listen_to_status();
    double before = status_number("tick");
    WAIT_FOR(status_number("tick") > before);
    us_bus_close(bus);
    end(pid);
    char *err = read_text("wide.err"), *out = read_text("wide.out");
    if (!strstr(err, "waited for ground to be read") && !strstr(out, "waited for ground to be read"))
        fail_msg("no step has waited:\n%s%s", out, err);
    free(err);
    free(out);
}

// ---- the page's address ----

static int take_port(int *out_port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof a;
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &length), 0);
    *out_port = ntohs(a.sin_port);
    return listener;
}

static void run_prints_the_address_of_its_page(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    outcome a = run("run pendulum.xml --port 0 --time 0.05 --rate max --quiet");
    assert_code(a, 0);
    assert_has(a.err, "page: http://localhost:");
    outcome b = run("run pendulum.xml --headless --time 0.05 --rate max");
    assert_code(b, 0);
    assert_lacks(b.err, "page:");
    // The page has no say in what comes out.
    outcome c = run("run pendulum.xml --headless --time 0.5 --rate max --hash --quiet");
    char hash[64];
    snprintf(hash, sizeof hash, "%s", c.out);
    outcome d = run("run pendulum.xml --port 0 --time 0.5 --rate max --hash --quiet");
    assert_string_equal(d.out, hash);
}

static void a_port_that_was_asked_for_is_not_exchanged_for_another(void **state) {
    (void)state;
    int port = 0, listener = take_port(&port);
    write_text("pendulum.xml", pendulum_scene);
    outcome a = run("run pendulum.xml --port %d --time 0.05 --rate max", port);
    assert_int_equal(a.code, 2);
    assert_has(a.err, "--port");
    close(listener);
    outcome b = run("run pendulum.xml --port 70000");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "invalid port");
    outcome c = run("run pendulum.xml --headless --address 0.0.0.0");
    assert_int_equal(c.code, 2);
    assert_has(c.err, "--headless");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_clock_is_told_while_paused, use_own_domain),
        cmocka_unit_test_setup(tell_changes_time, use_own_domain),
        cmocka_unit_test_setup(tell_changes_the_world, use_own_domain),
        cmocka_unit_test_setup(tell_says_why_not_and_what_to_write, use_own_domain),
        cmocka_unit_test_setup(tell_without_a_simulation_says_so, use_own_domain),
        cmocka_unit_test_setup(a_run_that_was_told_verifies, use_own_domain),
        cmocka_unit_test_setup(columns_of_what_is_gone_are_nan_and_told_once, use_own_domain),
        cmocka_unit_test_setup(a_step_that_waited_for_ground_is_told_at_the_end, use_own_domain),
        cmocka_unit_test_setup(run_prints_the_address_of_its_page, use_own_domain),
        cmocka_unit_test_setup(a_port_that_was_asked_for_is_not_exchanged_for_another, use_own_domain),
    };
    return cmocka_run_group_tests(tests, start_robot, kill_the_rest);
}
