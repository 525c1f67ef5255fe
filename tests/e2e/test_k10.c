// The rover K10 as a user meets it: its file is clean, it drives over the default scene's rocks, and a slope
// holds it or does not.
#include <math.h>

#include "test_cli_support.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_INSTRUMENTED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(IS_INSTRUMENTED)
static const double SECONDS = 6;  // an instrumented program is some twenty times slower
#else
static const double SECONDS = 30;
#endif

enum { MAX_ROWS = 4000, MAX_COLUMNS = 16 };

typedef struct table {
    int n_row, n_column;
    double at[MAX_ROWS][MAX_COLUMNS];
} table;

// The numbers of a CSV text, without its header.
static void read_table(const char *text, table *t) {
    t->n_row = t->n_column = 0;
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        assert_true(t->n_row < MAX_ROWS);
        const char *rest = line + 1;
        int n = 0;
        for (;; n++) {
            char *end;
            assert_true(n < MAX_COLUMNS);
            t->at[t->n_row][n] = strtod(rest, &end);
            assert_true(end > rest);
            if (*end != ',') break;
            rest = end + 1;
        }
        t->n_column = n + 1;
        t->n_row++;
    }
    assert_true(t->n_row > 1);
}

static table csv;

static void its_file_has_nothing_to_warn_about_and_weighs_95_kg(void **state) {
    (void)state;
    outcome a = run("check %s/models/k10.urdf --base floating", US_SOURCE_DIR);
    assert_code(a, 0);
    assert_has(a.out, "no errors, 0 warnings");
    assert_has(a.out, "mass 95 kg");
    assert_has(a.out, "coupling right_rocker: 1 right_rocker + 1 left_rocker = 0");
    // Six of the base, two rockers that are one, four times steering and driving.
    assert_has(a.out, "mobility 15");
}

// Angle between the body's z axis and the vertical, from the quaternion in columns c .. c + 2 (qw is not
// needed).
static double tilt(const double *row, int c) {
    double qx = row[c + 1], qy = row[c + 2];
    return acos(1 - 2 * (qx * qx + qy * qy));
}

static void it_drives_over_the_rocks_of_the_default_scene_without_tipping(void **state) {
    (void)state;
    outcome a =
        run("run %s/scenes/default.xml --time %g --rate max --offline --quiet --csv - --csv-rate 10 --values "
            "k10/base.x,k10/base.y,k10/base.z,k10/base.qw,k10/base.qx,k10/base.qy,k10/left_rocker.q,closure",
            US_SOURCE_DIR, SECONDS);
    assert_code(a, 0);
    read_table(a.out, &csv);
    double path = 0, most_tilt = 0, most_rocker = 0, most_closure = 0;
    for (int i = 1; i < csv.n_row; i++) {
        const double *now = csv.at[i], *before = csv.at[i - 1];
        path += hypot(now[1] - before[1], now[2] - before[2]);
        most_tilt = fmax(most_tilt, tilt(now, 4));
        most_rocker = fmax(most_rocker, fabs(now[7]));
        most_closure = fmax(most_closure, now[8]);
        // The crater is half a metre deep where it drives, its rim and rocks are up to 0.3 m high, and its
        // wheels sink.
        assert_true(now[3] > -0.65 && now[3] < 0.4);
    }
    print_message("  %g s: %.2f m, tilt up to %.1f deg, rockers up to %.1f deg\n", SECONDS, path,
                  most_tilt * 57.29578, most_rocker * 57.29578);
    // 0.5 m/s of command; the wheels slip a little, and climb.
    assert_true(path > 0.8 * 0.5 * SECONDS && path < 1.1 * 0.5 * SECONDS);
    // It would tip at atan(0.36 m / 0.5 m) = 36 degrees.
    assert_true(most_tilt < 25 / 57.29578);
    // The ground is not even: the rockers work. Both are tied to each other to rounding.
    assert_true(most_rocker > 0.01 && most_rocker < 0.36);
    assert_true(most_closure < 1e-10);
}

static void it_runs_the_same_twice(void **state) {
    (void)state;
    char *first = NULL;
    for (int i = 0; i < 2; i++) {
        outcome a =
            run("run %s/scenes/default.xml --time 1 --rate max --hash --offline --quiet", US_SOURCE_DIR);
        assert_code(a, 0);
        assert_true(strlen(a.out) >= 16);
        if (i == 0)
            first = strdup(a.out);
        else
            assert_string_equal(a.out, first);
    }
    free(first);
}

// Distance that the parked rover slides down 30 degrees between two times.
static double slide(double friction, double from, double to) {
    outcome a = run("run %s/scenes/slope.xml --time %g --rate max --quiet --csv - --csv-rate 10 --values "
                    "k10/base.x,k10/base.z --set friction=%g",
                    US_SOURCE_DIR, to, friction);
    assert_code(a, 0);
    read_table(a.out, &csv);
    const double *first = csv.at[(int)lround(from * 10)], *last = csv.at[csv.n_row - 1];
    return hypot(last[1] - first[1], last[2] - first[2]);
}

static void a_slope_holds_it_for_ever_or_not_at_all(void **state) {
    (void)state;
    // tan 30 is 0.577. Where friction is 0.8 the parked rover does not creep: what is left is the rounding of
    // a metre.
    assert_true(slide(0.8, 2, 4) < 1e-8);
    // Where it is 0.45, and 0.405 once it slides, it goes down with g (sin 30 - 0.405 cos 30) = 1.46
    // m/s^2, 8.8 m in the last two of 4 s, less what viscous friction takes.
    double distance = slide(0.45, 2, 4);
    assert_true(distance > 7 && distance < 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_file_has_nothing_to_warn_about_and_weighs_95_kg),
        cmocka_unit_test(it_drives_over_the_rocks_of_the_default_scene_without_tipping),
        cmocka_unit_test(it_runs_the_same_twice),
        cmocka_unit_test(a_slope_holds_it_for_ever_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
