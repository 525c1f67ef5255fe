// Faults of a lidar through world commands: dead, frozen, blind in a sector, without some beams, dirty,
// noisy, and whole again.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "understudy/query.h"

static const char SCENE[] =
    "<scene name='s' version='1'><world step='1 ms' gravity='0 0 0'><shape type='half-space' xyz='0 0 -1'/>"
    "</world><robot name='r' file='" US_SOURCE_DIR "/tests/support/carrier.urdf'>"
    "<sensor type='lidar' name='lidar' link='base' preset='vlp-16'/>"
    "<sensor type='lidar' name='low' link='base' xyz='0 0 0.1' preset='vlp-16' rate='20 Hz'/>"
    "<network/></robot></scene>";

enum { N = 16 * 1809 };

static us_lidar_frame see(us_world *world, const char *name, us_lidar_point *point) {
    const us_sim *sim = us_world_get_sim(world);
    us_lidar_frame f;
    const us_lidar l = us_model_find_lidar(us_sim_view_model(sim), "r", name);
    assert_true(l.i >= 0);
    assert_int_equal(us_sim_get_lidar_frame(sim, l, false, &f, point, N), US_OK);
    return f;
}

// Points with a return whose azimuth is within a sector, and without.
static void count(const us_lidar_point *p, double from, double to, int *n_in, int *n_out) {
    const double degree = acos(-1) / 180;
    *n_in = *n_out = 0;
    for (int i = 0; i < N; i++) {
        if (isnan(p[i].x)) continue;
        const double azimuth = atan2((double)p[i].y, (double)p[i].x) / degree;
        const int is_in = azimuth > from && azimuth < to;
        *n_in += is_in;
        *n_out += !is_in;
    }
}

static void a_dead_lidar_says_nothing_until_it_is_mended(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *p = malloc(N * sizeof *p);
    assert_non_null(p);
    live_step(world, 250);
    assert_int_equal(see(world, "lidar", p).turn, 1);
    live_reply r = live_say(world, "fault r lidar=dead");
    assert_int_equal(r.status, US_OK);
    assert_non_null(strstr(r.text, "lidar dead"));
    live_step(world, 400);
    assert_int_equal(see(world, "lidar", p).turn, 1);
    // The other one goes on.
    assert_true(see(world, "low", NULL).turn >= 11);
    live_done(world, "fault r lidar=ok");
    // The turn in which it came back is not whole: the next one is.
    live_step(world, 200);
    const int64_t turn = see(world, "lidar", p).turn;
    assert_true(turn == 7 || turn == 6);
    free(p);
    us_world_destroy(world);
}

static void a_frozen_lidar_repeats_itself(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *before = malloc(N * sizeof *before), *after = malloc(N * sizeof *after);
    assert_true(before && after);
    live_step(world, 250);
    const us_lidar_frame first = see(world, "lidar", before);
    live_done(world, "fault r lidar=frozen");
    live_step(world, 400);
    const us_lidar_frame later = see(world, "lidar", after);
    // New turns by number and time, and the same points.
    assert_int_equal(later.turn, first.turn + 4);
    assert_true(later.time > first.time + 0.39);
    assert_memory_equal(before, after, N * sizeof *after);
    live_done(world, "fault r lidar=ok");
    live_step(world, 300);
    see(world, "lidar", after);
    assert_memory_not_equal(before, after, N * sizeof *after);
    free(before);
    free(after);
    us_world_destroy(world);
}

static void a_blind_sector_has_no_returns(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *p = malloc(N * sizeof *p);
    int n_in, n_out, was_in, was_out;
    assert_non_null(p);
    live_step(world, 250);
    see(world, "lidar", p);
    // A degree inside its ends: the head turns while a group fires.
    count(p, -29, 44, &was_in, &was_out);
    assert_true(was_in > 1000);
    live_reply r = live_say(world, "fault r lidar=blind:-30,45");
    assert_int_equal(r.status, US_OK);
    assert_non_null(strstr(r.text, "blind from -30 to 45 deg"));
    live_step(world, 300);
    see(world, "lidar", p);
    count(p, -29, 44, &n_in, &n_out);
    assert_int_equal(n_in, 0);
    // The rest is as it was, but for the two degrees and for noise at the limit of the power.
    assert_true(abs(n_out - was_out) < was_out / 50);
    // Across the back, by way of 180 degrees.
    live_done(world, "fault r lidar=blind:170,-170");
    live_step(world, 300);
    see(world, "lidar", p);
    for (int i = 0; i < N; i++)
        assert_true(isnan(p[i].x) || fabs(atan2((double)p[i].y, (double)p[i].x)) < acos(-1) * 171 / 180);
    free(p);
    us_world_destroy(world);
}

// Points with a return in a ring from one to another, and with none.
static void count_rings(const us_lidar_point *p, int32_t first, int32_t last, int *n_in, int *n_out) {
    *n_in = *n_out = 0;
    for (int i = 0; i < N; i++) {
        if (isnan(p[i].x)) continue;
        const int is_in = p[i].ring >= first && p[i].ring <= last;
        *n_in += is_in;
        *n_out += !is_in;
    }
}

static void lost_beams_have_no_returns(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *p = malloc(N * sizeof *p);
    int n_in, n_out, was_in, was_out;
    assert_non_null(p);
    live_step(world, 250);
    see(world, "lidar", p);
    // Rings 0 to 7 look down, at the floor.
    count_rings(p, 2, 4, &was_in, &was_out);
    assert_true(was_in > 1000 && was_out > 1000);
    live_reply r = live_say(world, "fault r lidar=beams:2,4");
    assert_int_equal(r.status, US_OK);
    assert_non_null(strstr(r.text, "without the beams of rings 2 to 4"));
    live_step(world, 300);
    see(world, "lidar", p);
    count_rings(p, 2, 4, &n_in, &n_out);
    assert_int_equal(n_in, 0);
    assert_true(abs(n_out - was_out) < was_out / 50);
    live_done(world, "fault r lidar=ok");
    live_step(world, 300);
    see(world, "lidar", p);
    count_rings(p, 2, 4, &n_in, &n_out);
    assert_true(abs(n_in - was_in) < was_in / 50);
    free(p);
    us_world_destroy(world);
}

// Dirt that takes the share s of the light each way leaves (1 - s)^2 of all intensities, and of the ranges at
// which the floor is seen those at which enough of it is left.
static void dirt_takes_light(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *p = malloc(N * sizeof *p), *dirty = malloc(N * sizeof *dirty);
    assert_true(p && dirty);
    live_step(world, 250);
    see(world, "lidar", p);
    live_done(world, "fault r lidar=dirt:0.5");
    live_step(world, 300);
    see(world, "lidar", dirty);
    int n = 0, n_left = 0, n_both = 0;
    for (int i = 0; i < N; i++) {
        n += !isnan(p[i].x);
        n_left += !isnan(dirty[i].x);
        if (isnan(p[i].x) || isnan(dirty[i].x)) continue;
        // A turn later the columns look elsewhere by a part of a degree; the floor is the same.
        assert_true(fabs((double)dirty[i].intensity - 0.25 * (double)p[i].intensity) < 1);
        n_both++;
    }
    assert_true(n_both > 1000);
    // Of rings that meet the floor at a grazing angle less is left.
    assert_true(n_left < n);
    live_done(world, "fault r lidar=dirt:1");
    live_step(world, 300);
    see(world, "lidar", dirty);
    for (int i = 0; i < N; i++)
        assert_true(isnan(dirty[i].x));
    free(p);
    free(dirty);
    us_world_destroy(world);
}

// Spread of the ranges of the lowest ring about its mean: all beams of it meet the floor at the same range.
static double spread(const us_lidar_point *p) {
    double sum = 0, squares = 0;
    int n = 0;
    for (int i = 0; i < N; i++) {
        if (isnan(p[i].x) || p[i].ring != 0) continue;
        const double x = (double)p[i].x, y = (double)p[i].y, z = (double)p[i].z,
                     r = sqrt(x * x + y * y + z * z);
        sum += r;
        squares += r * r;
        n++;
    }
    assert_true(n > 1000);
    return sqrt(squares / n - sum / n * (sum / n));
}

static void noise_grows_by_its_factor(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *p = malloc(N * sizeof *p);
    assert_non_null(p);
    live_step(world, 250);
    see(world, "lidar", p);
    const double usual = spread(p);
    live_done(world, "fault r sensor:lidar=noisy:4");
    live_step(world, 300);
    see(world, "lidar", p);
    // Of some 1800 samples; five deviations of either estimate are less than a tenth.
    assert_true(fabs(spread(p) / usual - 4) < 0.4);
    live_done(world, "fault r sensor:lidar=ok");
    live_step(world, 300);
    see(world, "lidar", p);
    assert_true(fabs(spread(p) / usual - 1) < 0.1);
    free(p);
    us_world_destroy(world);
}

// An edit in the middle of a turn: the turn goes on, and what was added is seen by the next beam.
static void an_edit_is_seen_by_the_next_beam(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    us_lidar_point *p = malloc(N * sizeof *p);
    assert_non_null(p);
    // The head begins behind, and looks ahead in the middle of a turn: after 0.24 s it has not got there.
    live_step(world, 240);
    live_done(world, "add box wall at=5,0,0 size=1,4,4 fixed=true");
    live_step(world, 65);
    assert_int_equal(see(world, "lidar", p).turn, 2);
    int n = 0;
    for (int i = 0; i < N; i++) {
        if (isnan(p[i].x) || fabs((double)p[i].y) > 1.5 || p[i].x < 0) continue;
        // 4.5 m away, or the floor before it; with five deviations of 3 cm.
        assert_true((double)p[i].x < 4.5 + 0.15);
        n += (double)p[i].x > 4.35;
    }
    assert_true(n > 1000);
    live_done(world, "remove wall");
    live_step(world, 200);
    see(world, "lidar", p);
    n = 0;
    for (int i = 0; i < N; i++)
        n += p[i].x > 5 && fabs((double)p[i].y) < 1.5;
    assert_true(n > 20);
    free(p);
    us_world_destroy(world);
}

static void what_is_no_fault_of_a_lidar_is_refused(void **state) {
    (void)state;
    us_world *world = live_open(SCENE);
    live_refused(world, "fault r lidar=stuck", US_ERR_NAME, "stuck");
    live_refused(world, "fault r lidar=blind", US_ERR_SYNTAX, "needs a number");
    live_refused(world, "fault r lidar=blind:10", US_ERR_VALUE, "blind");
    live_refused(world, "fault r lidar=blind:10,400", US_ERR_VALUE, "blind");
    live_refused(world, "fault r lidar=beams:3", US_ERR_VALUE, "beams");
    live_refused(world, "fault r lidar=beams:-1,3", US_ERR_VALUE, "beams");
    live_refused(world, "fault r lidar=dirt", US_ERR_SYNTAX, "needs a number");
    live_refused(world, "fault r lidar=dirt:1.5", US_ERR_VALUE, "dirt");
    live_refused(world, "fault r lidar:imu=dead", US_ERR_NAME, "imu");
    live_refused(world, "fault r lidar:lwo=dead", US_ERR_NAME, "low");
    live_done(world, "fault r lidar:low=frozen");
    us_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_lidar_says_nothing_until_it_is_mended),
        cmocka_unit_test(a_frozen_lidar_repeats_itself),
        cmocka_unit_test(a_blind_sector_has_no_returns),
        cmocka_unit_test(lost_beams_have_no_returns),
        cmocka_unit_test(dirt_takes_light),
        cmocka_unit_test(noise_grows_by_its_factor),
        cmocka_unit_test(an_edit_is_seen_by_the_next_beam),
        cmocka_unit_test(what_is_no_fault_of_a_lidar_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
