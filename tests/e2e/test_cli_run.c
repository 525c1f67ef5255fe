// understudy run: recordings, snapshots, pace, signals, full disks.
#include <math.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <time.h>

#include "test_cli_support.h"

// A CSV file in memory: the cells of the header and the numbers below.
typedef struct table {
    char *text;
    int n_column, n_row;
    char *name[64];
    double *value;  // n_row x n_column
} table;

static table read_table(const char *path) {
    table t = {.text = read_text(path)};
    assert_non_null(t.text);
    char *rest = t.text, *line = strsep(&rest, "\n");
    for (char *cell; (cell = strsep(&line, ",")) != NULL;) {
        assert_true(t.n_column < 64);
        t.name[t.n_column++] = cell;
    }
    int cap = 1024;
    t.value = malloc((size_t)cap * (size_t)t.n_column * sizeof(double));
    while ((line = strsep(&rest, "\n")) != NULL && line[0]) {
        if (t.n_row == cap) {
            cap *= 2;
            t.value = realloc(t.value, (size_t)cap * (size_t)t.n_column * sizeof(double));
        }
        assert_non_null(t.value);
        int n = 0;
        for (char *cell; (cell = strsep(&line, ",")) != NULL; n++) {
            assert_true(n < t.n_column);
            char *end, again[64];
            double x = strtod(cell, &end);
            assert_true(end != cell && *end == 0);
            // Seventeen digits, in the form of printf: reading and printing a number gives the same text.
            snprintf(again, sizeof again, "%.17g", x);
            assert_string_equal(again, cell);
            t.value[t.n_row * t.n_column + n] = x;
        }
        assert_int_equal(n, t.n_column);
        t.n_row++;
    }
    return t;
}

static void free_table(table *t) {
    free(t->text);
    free(t->value);
}

static double at(const table *t, int row, int column) { return t->value[row * t->n_column + column]; }

static int setup(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    return 0;
}

static void csv_has_a_header_and_a_row_per_step(void **state) {
    (void)state;
    outcome a = run("run pendulum.xml --time 2 --rate max --csv out.csv");
    assert_code(a, 0);
    assert_has(a.out, "(2000 steps)");
    assert_has(a.out, "wrote out.csv: 2001 rows, 4 columns");
    table t = read_table("out.csv");
    assert_int_equal(t.n_row, 2001);
    assert_string_equal(t.name[0], "time");
    assert_string_equal(t.name[1], "pendulum/hinge.q");
    assert_string_equal(t.name[2], "pendulum/hinge.v");
    assert_string_equal(t.name[3], "energy");
    for (int i = 0; i < t.n_row; i++) {
        assert_near(at(&t, i, 0), 1e-3 * i, 1e-12);
        for (int k = 0; k < t.n_column; k++)
            assert_true(isfinite(at(&t, i, k)));
        // -m g l cos(0.1) at rest, kept by the default integrator.
        assert_near(at(&t, i, 3), -9.81 * 0.5 * cos(0.1), 1e-6);
    }
    assert_near(at(&t, 0, 1), 0.1, 0);
    // Half a period, 2 pi sqrt(I / (m g l)) / 2 with the first correction for amplitude, brings it to the
    // other side.
    double half = M_PI * sqrt((1.0 / 3) / (9.81 * 0.5)) * (1 + 0.1 * 0.1 / 16);
    assert_near(at(&t, (int)lround(1000 * half), 1), -0.1, 1e-5);
    free_table(&t);
}

static void rows_may_be_fewer_than_steps(void **state) {
    (void)state;
    assert_code(run("run pendulum.xml --time 1 --rate max --csv every.csv --every 10"), 0);
    assert_code(run("run pendulum.xml --time 1 --rate max --csv rate.csv --csv-rate 30"), 0);
    table every = read_table("every.csv"), rate = read_table("rate.csv");
    assert_int_equal(every.n_row, 101);
    assert_near(at(&every, 7, 0), 0.07, 1e-12);
    // 30 Hz does not divide 1000: each row stands at the first step at or after its time.
    assert_int_equal(rate.n_row, 31);
    assert_near(at(&rate, 1, 0), 0.034, 1e-12);
    assert_near(at(&rate, 3, 0), 0.1, 1e-12);
    free_table(&every);
    free_table(&rate);
}

static void values_choose_the_columns(void **state) {
    (void)state;
    assert_code(
        run("run pendulum.xml --time 0.1 --rate max --csv some.csv --values pendulum/rod.x,energy.kinetic"),
        0);
    table t = read_table("some.csv");
    assert_int_equal(t.n_column, 3);
    assert_string_equal(t.name[0], "time");
    assert_string_equal(t.name[1], "pendulum/rod.x");
    assert_string_equal(t.name[2], "energy.kinetic");
    free_table(&t);
    outcome a = run("run pendulum.xml --time 0.1 --csv keep.csv --values pendulum/hnige.q");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "did you mean \"pendulum/hinge.q\"?");
    // A mistyped name is found before the file is touched.
    assert_int_equal(access("keep.csv", F_OK), -1);
}

static void csv_may_go_to_standard_output_alone(void **state) {
    (void)state;
    outcome a = run("run pendulum.xml --time 0.01 --rate max --csv - --hash");
    assert_code(a, 0);
    assert_true(strncmp(a.out, "time,", 5) == 0);
    assert_lacks(a.out, "ran ");
    assert_lacks(a.out, "hash");
    assert_has(a.err, "hash ");
}

static void the_scenes_own_recordings_are_written(void **state) {
    (void)state;
    char scene[4096];
    snprintf(scene, sizeof scene,
             "%.*s  <world duration=\"0.5 s\"/>\n  <record file=\"own.csv\" rate=\"100 Hz\"><value "
             "name=\"pendulum/hinge.q\"/></record>\n</scene>\n",
             (int)(strstr(pendulum_scene, "</scene>") - pendulum_scene), pendulum_scene);
    write_text("recording.xml", scene);
    outcome a = run("run recording.xml --rate max");
    assert_code(a, 0);
    assert_has(a.out, "(500 steps)");
    table t = read_table("own.csv");
    assert_int_equal(t.n_row, 51);
    assert_int_equal(t.n_column, 2);
    free_table(&t);
    outcome b = run("run recording.xml --rate max --csv own.csv");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "same file");
}

static char *hash_line(const outcome *a) {
    char *line = strstr(a->out, "hash ");
    assert_non_null(line);
    return strndup(line, 21);
}

static void the_same_run_gives_the_same_bytes(void **state) {
    (void)state;
    outcome a = run("run pendulum.xml --time 3 --rate max --hash --csv first.csv");
    assert_code(a, 0);
    char *first = hash_line(&a);
    outcome b = run("run pendulum.xml --time 3 --rate max --hash --csv second.csv");
    assert_code(b, 0);
    char *second = hash_line(&b);
    assert_string_equal(first, second);
    char *x = read_text("first.csv"), *y = read_text("second.csv");
    assert_string_equal(x, y);
    // The pace is no part of the physics; another start is.
    outcome c = run("run pendulum.xml --time 3 --rate 50 --hash");
    assert_code(c, 0);
    char *paced = hash_line(&c);
    assert_string_equal(first, paced);
    outcome d = run("run pendulum.xml --time 3 --rate max --hash --set start=0.11");
    assert_code(d, 0);
    char *other = hash_line(&d);
    assert_string_not_equal(first, other);
    free(first);
    free(second);
    free(paced);
    free(other);
    free(x);
    free(y);
}

static void save_and_restore_equal_an_uninterrupted_run(void **state) {
    (void)state;
    outcome a = run("run pendulum.xml --time 2 --rate max --hash --csv whole.csv --csv-rate 30");
    assert_code(a, 0);
    char *whole = hash_line(&a);
    assert_code(run("run pendulum.xml --time 1.01 --rate max --save one.snap"), 0);
    outcome b =
        run("run pendulum.xml --time 0.99 --rate max --restore one.snap --hash --csv rest.csv --csv-rate 30");
    assert_code(b, 0);
    char *parts = hash_line(&b);
    assert_string_equal(whole, parts);
    // The rows after the break are the same rows, at the same ticks.
    char *x = read_text("whole.csv"), *y = read_text("rest.csv");
    const char *rows = strchr(y, '\n') + 1;
    assert_true(strlen(rows) > 100);
    assert_string_equal(x + strlen(x) - strlen(rows), rows);
    free(whole);
    free(parts);
    free(x);
    free(y);
}

static void bad_snapshots_are_refused(void **state) {
    (void)state;
    write_text("garbage.snap", "this is no snapshot");
    outcome a = run("run pendulum.xml --time 1 --restore garbage.snap");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "garbage.snap");
    outcome b = run("run pendulum.xml --time 1 --restore none.snap");
    assert_int_equal(b.code, 2);
    assert_code(run("run pendulum.xml --time 0 --save start.snap"), 0);
    outcome c = run("run %s/scenes/default.xml --time 1 --restore start.snap --offline", US_SOURCE_DIR);
    assert_int_equal(c.code, 2);
    assert_has(c.err, "start.snap");
}

static void what_cannot_be_written_is_told(void **state) {
    (void)state;
    outcome a = run("run pendulum.xml --time 0.01 --rate max --csv /dev/full");
    assert_int_equal(a.code, 4);
    assert_has(a.err, "/dev/full: cannot be written: No space left on device");
    // Found while running, not only at the end.
    outcome b = run("run pendulum.xml --time 1000 --rate max --csv /dev/full");
    assert_int_equal(b.code, 4);
    assert_lacks(b.out, "(1000000 steps)");
    outcome c = run("run pendulum.xml --time 0.01 --csv nowhere/out.csv");
    assert_int_equal(c.code, 4);
    outcome d = run("run pendulum.xml --time 0.01 --save /dev/full");
    assert_int_equal(d.code, 4);
    outcome e = run_into("/dev/full", "run pendulum.xml --time 0.01 --rate max");
    assert_int_equal(e.code, 4);
}

static void a_motion_that_diverges_ends_with_code_3(void **state) {
    (void)state;
    // A spring of 1e9 N m/rad needs steps near 2e-5 s; the explicit integrator with 0.1 s must fail, and say
    // when.
    write_text("stiff.xml", "<scene version=\"1\"><world integrator=\"rk4\" step=\"0.1\"/><object "
                            "name=\"o\"><link name=\"l\"><inertial mass=\"1\" com=\"0.5 0 "
                            "0\" inertia=\"0.1 0.1 0.1\"/></link>"
                            "<joint name=\"j\" type=\"prismatic\" parent=\"world\" child=\"l\" axis=\"0 0 "
                            "1\" stiffness=\"1e9\" q=\"1\"/></object></scene>");
    outcome a = run("run stiff.xml --time 100 --rate max");
    assert_int_equal(a.code, 3);
    assert_has(a.err, "error:");
    assert_has(a.out, "ran ");
}

static void real_time_takes_real_time(void **state) {
    (void)state;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    outcome a = run("run pendulum.xml --time 0.3");
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_code(a, 0);
    assert_has(a.out, "missed deadlines");
    // It may take longer on a busy machine, but never less.
    assert_true((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec) > 0.299);
}

static void quiet_means_quiet(void **state) {
    (void)state;
    outcome a = run("run pendulum.xml --time 0.1 --rate max --quiet --headless --seed 7");
    assert_code(a, 0);
    assert_string_equal(a.out, "");
    assert_string_equal(a.err, "");
}

// Starts the program with its outputs on the given files; standard input is none.
static pid_t start(char *line, int out, int err) {
    char *argv[MAX_ARGS];
    split(line, argv);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, err, 2);
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void an_interrupt_ends_cleanly_with_a_summary(void **state) {
    (void)state;
    const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        int err = open("interrupted.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        char line[] = "run pendulum.xml --csv -";
        pid_t pid = start(line, ends[1], err);
        close(ends[1]);
        close(err);
        // The first rows say that it runs; without a duration it would run for ever.
        struct pollfd ready = {.fd = ends[0], .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        assert_int_equal(kill(pid, signals[i]), 0);
        char buffer[4096];
        while (read(ends[0], buffer, sizeof buffer) > 0)
            continue;
        close(ends[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(exit_code(status), 0);
        char *text = read_text("interrupted.txt");
        assert_has(text, "sent signal");
        assert_has(text, "ran ");
        assert_has(text, "rows");
        free(text);
    }
}

static void a_closed_pipe_is_a_write_error(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    int err = open("closed.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    char line[] = "run pendulum.xml --rate max --csv -";
    pid_t pid = start(line, ends[1], err);
    close(ends[1]);
    close(err);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(exit_code(status), 4);
}

// Everything that the program wrote to a terminal.
static char *run_on_terminal(const char *format) {
    int master, slave;
    struct winsize size = {.ws_row = 24, .ws_col = 200};
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    char *line = strdup(format);
    pid_t pid = start(line, slave, slave);
    close(slave);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    for (size_t length = 0; length < (1 << 20) - 1;) {
        ssize_t n = read(master, text + length, (1 << 20) - 1 - length);
        if (n <= 0) break;  // the other end is closed
        length += (size_t)n;
    }
    close(master);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(exit_code(status), 0);
    free(line);
    return text;
}

static void a_terminal_shows_a_live_line(void **state) {
    (void)state;
    setenv("TERM", "xterm", 1);
    char *text = run_on_terminal("run pendulum.xml --time 0.5");
    assert_has(text, "\rt 0.");
    assert_has(text, "% [");
    assert_has(text, "energy");
    assert_has(text, "left");
    assert_has(text, "missed deadlines");
    free(text);
    setenv("TERM", "dumb", 1);
    text = run_on_terminal("run pendulum.xml --time 0.5");
    assert_lacks(text, "\rt 0.");
    assert_lacks(text, "\033");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_has_a_header_and_a_row_per_step),
        cmocka_unit_test(rows_may_be_fewer_than_steps),
        cmocka_unit_test(values_choose_the_columns),
        cmocka_unit_test(csv_may_go_to_standard_output_alone),
        cmocka_unit_test(the_scenes_own_recordings_are_written),
        cmocka_unit_test(the_same_run_gives_the_same_bytes),
        cmocka_unit_test(save_and_restore_equal_an_uninterrupted_run),
        cmocka_unit_test(bad_snapshots_are_refused),
        cmocka_unit_test(what_cannot_be_written_is_told),
        cmocka_unit_test(a_motion_that_diverges_ends_with_code_3),
        cmocka_unit_test(real_time_takes_real_time),
        cmocka_unit_test(quiet_means_quiet),
        cmocka_unit_test(an_interrupt_ends_cleanly_with_a_summary),
        cmocka_unit_test(a_closed_pipe_is_a_write_error),
        cmocka_unit_test(a_terminal_shows_a_live_line),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
