// What the program says about itself, and to those who mistype.
#include "test_cli_support.h"

static const char *const commands[] = {"run", "check", "info", "eval", "bench"};

static void help_lists_every_command(void **state) {
    (void)state;
    outcome a = run("help");
    assert_code(a, 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        assert_has(a.out, commands[i]);
    char *text = strdup(a.out);
    outcome b = run("--help");
    assert_code(b, 0);
    assert_string_equal(text, b.out);
    free(text);
}

static void every_command_explains_its_options(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        outcome a = run("%s --help", commands[i]);
        assert_code(a, 0);
        assert_has(a.out, "Usage: understudy");
        assert_has(a.out, "--set NAME=VALUE");
        char *text = strdup(a.out);
        outcome b = run("help %s", commands[i]);
        assert_code(b, 0);
        assert_string_equal(text, b.out);
        free(text);
    }
}

static void version_is_printed(void **state) {
    (void)state;
    outcome a = run("--version");
    assert_code(a, 0);
    assert_has(a.out, "understudy 0.");
}

static void no_command_is_a_usage_error(void **state) {
    (void)state;
    outcome a = run("%s", "");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "Usage");
    assert_string_equal(a.out, "");
}

static void unknown_commands_get_a_suggestion(void **state) {
    (void)state;
    outcome a = run("chekc x.xml");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "unknown command \"chekc\"");
    assert_has(a.err, "did you mean \"understudy check\"?");
    outcome b = run("frobnicate");
    assert_int_equal(b.code, 2);
    assert_lacks(b.err, "did you mean");
    assert_has(b.err, "understudy help");
}

static void unknown_options_get_a_suggestion(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"run x.xml --tiem 3", "\"--time\""}, {"run x.xml --rat max", "\"--rate\""},
        {"check x.xml --jsn", "\"--json\""},  {"eval x.urdf --stat s.json", "\"--state\""},
        {"bench --step 4", "\"--steps\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome a = run("%s", cases[i][0]);
        assert_int_equal(a.code, 2);
        assert_has(a.err, "unknown option");
        assert_has(a.err, cases[i][1]);
    }
}

static void wrong_use_of_options_is_refused(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    static const char *const cases[][2] = {
        {"run", "needs a FILE"},
        {"run a.xml b.xml", "takes one FILE"},
        {"run pendulum.xml --time", "--time needs a value"},
        {"run pendulum.xml --time --quiet", "--time needs a value"},
        {"run pendulum.xml --time ten", "is not a number"},
        {"run pendulum.xml --time -1", "negative"},
        {"run pendulum.xml --time nan", "is not a number"},
        {"run pendulum.xml --time 1 --time 2", "given twice"},
        {"run pendulum.xml --quiet=yes", "takes no value"},
        {"run pendulum.xml --rate fast", "invalid pace"},
        {"run pendulum.xml --rate 0", "invalid pace"},
        {"run pendulum.xml --every 2", "no file is named"},
        {"run pendulum.xml --csv a.csv --every 0", "below 1"},
        {"run pendulum.xml --csv a.csv --csv-rate 0", "not above 0"},
        {"run pendulum.xml --csv a.csv --every 2 --csv-rate 10", "both say"},
        {"run pendulum.xml --csv a.csv --every 1.5", "not a whole number"},
        {"run pendulum.xml --seed -1", "--seed is negative"},
        {"check pendulum.xml --set start", "--set"},
        {"check pendulum.xml --base both", "--base"},
        {"eval pendulum.xml --gravity 1,2", "not three numbers"},
        {"bench chain-0", "not a chain"},
        {"bench arm --steps 0", "out of range"},
        {"bench arm --integrator leapfrog", "unknown integrator"},
        {"check missing.xml", "missing.xml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome a = run("%s", cases[i][0]);
        if (a.code != 2) print_error("understudy %s\n", cases[i][0]);
        assert_int_equal(a.code, 2);
        assert_has(a.err, cases[i][1]);
        assert_has(a.err, "remedy:");
    }
}

static void an_equals_sign_may_join_option_and_value(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    outcome a = run("run --rate=max --time=0.01 -- pendulum.xml");
    assert_code(a, 0);
    assert_has(a.out, "(10 steps)");
}

static void colours_stay_out_of_files(void **state) {
    (void)state;
    outcome a = run("check missing.xml");
    assert_int_equal(a.code, 2);
    assert_lacks(a.err, "\033");
}

static void a_full_disk_behind_standard_output_is_an_error(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    outcome a = run_into("/dev/full", "check pendulum.xml");
    assert_int_equal(a.code, 4);
    assert_has(a.err, "standard output");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_lists_every_command),
        cmocka_unit_test(every_command_explains_its_options),
        cmocka_unit_test(version_is_printed),
        cmocka_unit_test(no_command_is_a_usage_error),
        cmocka_unit_test(unknown_commands_get_a_suggestion),
        cmocka_unit_test(unknown_options_get_a_suggestion),
        cmocka_unit_test(wrong_use_of_options_is_refused),
        cmocka_unit_test(an_equals_sign_may_join_option_and_value),
        cmocka_unit_test(colours_stay_out_of_files),
        cmocka_unit_test(a_full_disk_behind_standard_output_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
