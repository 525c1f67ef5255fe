// One world in two programs that share it over DDS on loopback: understudy run --own.
#include "test_network_support.h"

#include <ctype.h>
#include <math.h>

static const char *const rovers = US_SOURCE_DIR "/scenes/convoy.xml";

// Two carts that drive against each other, and meet after a third of a second.
static const char push_scene[] =
    "<scene name=\"push\" version=\"1\">\n"
    "  <world step=\"1 ms\"><shape name=\"ground\" type=\"half-space\" surface=\"ground\"/></world>\n"
    "  <material name=\"rubber\"/><material name=\"ground\"/>\n"
    "  <pair a=\"rubber\" b=\"ground\" static-friction=\"0.8\" kinetic-friction=\"0.7\" rolling-length=\"1 "
    "mm\"/>\n"
    "  <default name=\"wheel\"><drive kd=\"4\"/></default>\n"
    "  <robot name=\"a\" file=\"" US_SOURCE_DIR
    "/models/cart.urdf\" base=\"floating\" default=\"wheel\" xyz=\"-0.35 0 0\">\n"
    "    <surface link=\"*_wheel\" surface=\"rubber\"/>\n"
    "    <drive joint=\"front_left\" velocity=\"4\"/><drive joint=\"front_right\" velocity=\"4\"/>\n"
    "    <drive joint=\"rear_left\" velocity=\"4\"/><drive joint=\"rear_right\" velocity=\"4\"/>\n"
    "  </robot>\n"
    "  <robot name=\"b\" file=\"" US_SOURCE_DIR
    "/models/cart.urdf\" base=\"floating\" default=\"wheel\" xyz=\"0.35 0.05 0\" rpy=\"0 0 180 deg\">\n"
    "    <surface link=\"*_wheel\" surface=\"rubber\"/>\n"
    "    <drive joint=\"front_left\" velocity=\"2\"/><drive joint=\"front_right\" velocity=\"2\"/>\n"
    "    <drive joint=\"rear_left\" velocity=\"2\"/><drive joint=\"rear_right\" velocity=\"2\"/>\n"
    "  </robot>\n"
    "</scene>\n";

// ---- files of values ----

static const char *next_cell(const char *at, char *out, size_t cap) {
    size_t n = strcspn(at, ",\n");
    snprintf(out, cap, "%.*s", (int)(n < cap ? n : cap - 1), at);
    return at + n + (at[n] != 0);
}

// Row by row: the numbers of columns whose name begins with the prefix. The greatest difference; with `exact`
// the first digit that differs fails the test.
static double compare(const char *file_a, const char *file_b, const char *prefix, bool exact,
                      int *out_cells) {
    char *a = read_text(file_a), *b = read_text(file_b);
    assert_non_null(a);
    assert_non_null(b);
    const char *x = a, *y = b;
    double most = 0;
    *out_cells = 0;
    while (*x && *y) {
        const char *names = a;
        for (bool is_end = false; !is_end && *x && *y;) {
            char name[200], p[64], q[64];
            size_t n = strcspn(names, ",\n");
            is_end = names[n] == '\n';
            names = next_cell(names, name, sizeof name);
            x = next_cell(x, p, sizeof p);
            y = next_cell(y, q, sizeof q);
            if (strncmp(name, prefix, strlen(prefix)) != 0 || isalpha((unsigned char)p[0])) continue;
            if (exact && strcmp(p, q) != 0)
                fail_msg("%s: %s is %s in one process and %s in two", file_b, name, p, q);
            most = fmax(most, fabs(strtod(p, NULL) - strtod(q, NULL)));
            ++*out_cells;
        }
    }
    assert_int_equal(*x, 0);
    assert_int_equal(*y, 0);
    free(a);
    free(b);
    return most;
}

static void assert_text_of(const char *path, const char *part) {
    char *text = read_text(path);
    assert_non_null(text);
    assert_has(text, part);
    free(text);
}

static bool file_has(const char *path, const char *part) {
    char *text = read_text(path);
    bool has = text && strstr(text, part);
    free(text);
    return has;
}

static int count_rows(const char *path) {
    char *text = read_text(path);
    int n = text ? count_text(text, "\n") : 0;
    free(text);
    return n;
}

// ---- tests ----

static void rovers_that_do_not_meet_are_the_same_bits_in_two_processes(void **state) {
    (void)state;
    static const char *const options = "--set n=4 --headless --offline --rate max --time 0.6 --every 7";
    assert_code(run("run %s %s --csv one.csv", rovers, options), 0);
    pid_t a = start("a", "run %s %s --csv a.csv --own r0,r3 --share bits --exchange 0.02", rovers, options);
    pid_t b = start("b", "run %s %s --csv b.csv --own r1,r2 --share bits --exchange 0.02", rovers, options);
    assert_int_equal(wait_for_end(a), 0);
    assert_int_equal(wait_for_end(b), 0);
    int n = 0;
    static const char *const own[][2] = {
        {"a.csv", "r0/"}, {"a.csv", "r3/"}, {"b.csv", "r1/"}, {"b.csv", "r2/"}};
    for (int i = 0; i < 4; i++) {
        compare("one.csv", own[i][0], own[i][1], true, &n);
        assert_true(n > 33 * 80);  // 17 positions and 16 velocities, 86 rows
    }
}

// The run ends in the middle of a stretch of 30 steps, while they push.
static void a_push_across_processes_is_that_of_one_and_repeats_to_the_bit(void **state) {
    (void)state;
    write_text("push.xml", push_scene);
    static const char *const options = "--headless --offline --rate max --time 1 --every 10 --hash --values "
                                       "a/base.x,a/base.y,b/base.x,b/base.y";
    assert_code(run("run push.xml %s --csv one.csv", options), 0);
    char *before = NULL;
    for (int round = 0; round < 2; round++) {
        pid_t a = start("a", "run push.xml %s --csv a.csv --own a --share push --exchange 0.03", options);
        pid_t b = start("b", "run push.xml %s --csv b.csv --own b --share push --exchange 0.03", options);
        assert_int_equal(wait_for_end(a), 0);
        assert_int_equal(wait_for_end(b), 0);
        int n = 0;
        // What the solvers leave, after stops and slips of eight wheels: nanometres that grow to some tens.
        double off_a = compare("one.csv", "a.csv", "a/", false, &n),
               off_b = compare("one.csv", "b.csv", "b/", false, &n);
        assert_int_equal(n, 2 * 101);
        if (!(off_a < 1e-6 && off_b < 1e-6)) fail_msg("%g m and %g m off", off_a, off_b);
        char *out_a = read_text("a.out"), *out_b = read_text("b.out"), hashes[200];
        const char *hash_a = strstr(out_a, "hash "), *hash_b = strstr(out_b, "hash ");
        assert_true(hash_a && hash_b);
        snprintf(hashes, sizeof hashes, "%.21s %.21s", hash_a, hash_b);
        if (before) assert_string_equal(hashes, before);
        free(before);
        before = strdup(hashes);
        free(out_a);
        free(out_b);
    }
    free(before);
}

static void one_that_dies_is_waited_for_and_may_come_back(void **state) {
    (void)state;
    write_text("push.xml", push_scene);
    static const char *const options = "--headless --rate real --share life --exchange 0.02";
    pid_t a = start("a", "run push.xml %s --own a", options),
          b = start("b", "run push.xml %s --own b", options);
    // Each robot has its network in one process alone.
    outcome topics = topics_with("/b/odom", "");
    assert_has(topics.out, "/a/odom");
    assert_int_equal(count_text(topics.out, "/b/odom"), 1);
    kill(b, SIGKILL);
    waitpid(b, NULL, 0);
    forget(b);
    WAIT_FOR(file_has("a.err", "which owns b, has not"));
    assert_text_of("a.err", "waiting for it");
    b = start("b", "run push.xml %s --own b --csv back.csv --every 1 --values b/base.x", options);
    WAIT_FOR(file_has("a.err", "all are there, going on"));
    assert_text_of("b.err", "where the others last saw what it owns");
    // Rows go on from where it took up: one a step.
    WAIT_FOR(count_rows("back.csv") > 200);
    end(b);
    WAIT_FOR(file_has("a.err", "which owns b, has ended: waiting for it"));
    end(a);
}

// A fault acts in the process that owns the robot, which alone answers; the others get its state.
static void a_fault_reaches_the_process_that_owns_the_robot(void **state) {
    (void)state;
    write_text("push.xml", push_scene);
    static const char *const options = "--headless --rate real --share faults --exchange 0.02";
    static const char *const value = "--every 1 --values b/front_left.v,b/rear_right.v";
    pid_t a = start("a", "run push.xml %s --own a --csv a.csv %s", options, value),
          b = start("b", "run push.xml %s --own b --csv b.csv %s", options, value);
    WAIT_FOR(count_rows("b.csv") > 20 && count_rows("a.csv") > 20);
    for (int i = 0; i < 4; i++) {
        outcome done = run("fault b motor:%s=blocked:40", i % 2 ? "rear_right" : "front_left");
        assert_code(done, 0);
        assert_has(done.out, i % 2 ? "b/rear_right: blocked by 40" : "b/front_left: blocked by 40");
    }
    assert_true(file_has("b.err", "blocked by 40"));
    assert_false(file_has("a.err", "fault b"));
    // Both show wheels that stand: the owner, and the other with what it was sent.
    int n_a = count_rows("a.csv"), n_b = count_rows("b.csv");
    WAIT_FOR(count_rows("a.csv") > n_a + 100 && count_rows("b.csv") > n_b + 100);
    outcome encoder = run("fault b encoder:front_left=stuck");
    assert_int_equal(encoder.code, 2);
    assert_has(encoder.err, "encoders and joints cannot fail");
    assert_int_equal(run("fault c motor:front_left=dead").code, 2);
    end(a);
    end(b);
    for (int i = 0; i < 2; i++) {
        char *text = read_text(i ? "b.csv" : "a.csv");
        char *last = text + strlen(text) - 1;
        *last = 0;
        last = strrchr(text, '\n') + 1;
        double time = 0, left = 1, right = 1;
        // NOLINTNEXTLINE(cert-err34-c): the count of what was read is all that is asked for
        assert_int_equal(sscanf(last, "%lf,%lf,%lf", &time, &left, &right), 3);
        // rad/s: of 2 before.
        if (!(fabs(left) < 0.01 && fabs(right) < 0.01)) fail_msg("wheels turn: %s", last);
        free(text);
    }
}

static void what_does_not_fit_together_is_said(void **state) {
    (void)state;
    write_text("push.xml", push_scene);
    outcome a =
        run("run push.xml --headless --offline --rate max --time 1 --own a --share-timeout 1 --share lonely");
    assert_int_equal(a.code, 3);
    assert_has(a.err, "no process owns b; waited for 1 s");
    a = run("run push.xml --headless --offline --own a,c");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "the scene has no robot or object \"c\"");
    a = run("run push.xml --headless --offline --own a --exchange 0.0015");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "not a whole number of steps");
    a = run("run push.xml --headless --offline --own a --record split.mcap");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "cannot be recorded for replay");
    a = run("run push.xml --headless --offline --share x");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "add --own");
    // A break makes another world, which the others would not have.
    char broken[sizeof push_scene + 100];
    const char *at = strstr(push_scene, "  </robot>");
    snprintf(broken, sizeof broken, "%.*s<fault at=\"0.1 s\" what=\"joint:front_left=broken\"/>%s",
             (int)(at - push_scene), push_scene, at);
    write_text("broken.xml", broken);
    a = run("run broken.xml --headless --offline --own a,b");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "cannot be changed while it runs: \"joint:front_left=broken\" of \"a\"");
    pid_t first = start(
        "a",
        "run push.xml --headless --offline --rate max --time 1 --own a,b --share twice --share-timeout 20");
    // Alone it has all robots and runs; with another that has one of them too nothing could be right.
    assert_int_equal(wait_for_end(first), 0);
    pid_t p = start(
        "a",
        "run push.xml --headless --offline --rate max --time 1 --own a --share other --share-timeout 20");
    pid_t q = start("b", "run push.xml --headless --offline --rate max --time 1 --own b --exchange 0.02 "
                         "--share other --share-timeout 20");
    int p_code = wait_for_end(p), q_code = wait_for_end(q);
    assert_true(p_code == 3 || q_code == 3);
    assert_true(file_has("a.err", "exchanges every") || file_has("b.err", "exchanges every"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rovers_that_do_not_meet_are_the_same_bits_in_two_processes, kill_the_rest),
        cmocka_unit_test_teardown(a_push_across_processes_is_that_of_one_and_repeats_to_the_bit,
                                  kill_the_rest),
        cmocka_unit_test_teardown(one_that_dies_is_waited_for_and_may_come_back, kill_the_rest),
        cmocka_unit_test_teardown(a_fault_reaches_the_process_that_owns_the_robot, kill_the_rest),
        cmocka_unit_test_teardown(what_does_not_fit_together_is_said, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
