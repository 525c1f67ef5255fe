// Instruments that ask the world: what they see, touch, and feel of joints, motors, soil, Sun and stars.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "instrument_view.h"
#include "query_world.h"

static const double G = 9.81, DEGREE = 0.017453292519943295769;

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }
static us_pose pose(us_vec3 p, double roll, double pitch, double yaw) {
    return (us_pose){us_quat_from_rpy(roll, pitch, yaw), p};
}

// A wall at x = 5, one above part of the ground at z = 3, ground at z = 0 with a spectrum.
#define GROUND                                                                                              \
    "<material name=\"basalt\"><string key=\"spectrum\" value=\"400 0.04 700 0.10 1000 0.07\"/></material>" \
    "<material name=\"paint\"/>"
#define WALLS                                                                    \
    "<shape type=\"plane\" surface=\"basalt\"/>"                                 \
    "<shape type=\"box\" size=\"0.2 40 10\" xyz=\"5.1 0 5\" surface=\"paint\"/>" \
    "<shape type=\"box\" size=\"2 2 0.2\" xyz=\"-6 0 3.1\" surface=\"basalt\"/>"
static const char *const yard =
    "<scene name=\"yard\" version=\"1\">" GROUND
    "<world step=\"1 ms\" planet=\"earth\" latitude=\"40 deg\" longitude=\"-105 deg\" height=\"1600\" "
    "date=\"2026-06-21T19:00:00Z\">" WALLS "</world></scene>";

// ---------------------------------------------------------------- ranges

static void a_range_is_that_of_the_wall(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    instrument s = instrument_make("range", w.sim, pose(at(1, 0, 1), 0, 0, 0));
    instrument_sample(&s, 0.1);
    query_near("range", instrument_reading(&s, "range"), 4, 1e-12);
    assert_true(instrument_reading(&s, "valid") == 1);
    // At a slant of 30 degrees.
    s.view.X_WS = pose(at(1, 0, 5), 0, 0, 30 * DEGREE);
    instrument_sample(&s, 0.1);
    query_near("slant range", instrument_reading(&s, "range"), 4 / cos(30 * DEGREE), 1e-12);
    // A cone of 60 degrees around that sees the wall's nearest place, nearly.
    instrument_set(&s, "field-of-view", 60 * DEGREE);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "range") < 4 / cos(20 * DEGREE) &&
                instrument_reading(&s, "range") > 4 - 1e-9);
    // Backwards there is nothing; too near is nothing too.
    s.view.X_WS = pose(at(1, 0, 1), 0, 0, 180 * DEGREE);
    instrument_set(&s, "field-of-view", 0);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "range") == 30 && instrument_reading(&s, "valid") == 0);
    s.view.X_WS = pose(at(4.99, 0, 1), 0, 0, 0);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "valid") == 0 && instrument_truth(&s, "valid") == 0);
    query_near("true range", instrument_truth(&s, "range"), 0.01, 1e-12);
    query_world_free(&w);
}

static void ranges_are_noisy_rounded_and_lost_by_chance(void **state) {
    (void)state;
    enum { N = 4000 };
    query_world w = query_world_text(yard);
    instrument s = instrument_make("range", w.sim, pose(at(1, 0, 1), 0, 0, 0));
    instrument_set(&s, "noise", 0.03);
    instrument_set(&s, "noise-share", 0.01);
    instrument_set(&s, "loss", 0.25);
    double sum = 0, square = 0;
    int n = 0;
    for (int i = 0; i < N; i++) {
        instrument_sample(&s, 0.1);
        if (instrument_reading(&s, "valid") == 0) continue;
        const double e = instrument_reading(&s, "range") - 4;
        n++;
        sum += e;
        square += e * e;
    }
    const double want = hypot(0.03, 0.04);
    assert_true(fabs(sum / n) < 5 * want / sqrt(n) && fabs(sqrt(square / n) / want - 1) < 5 / sqrt(2.0 * n));
    assert_true(fabs((double)n / N - 0.75) < 5 * sqrt(0.25 * 0.75 / N));
    instrument_set(&s, "noise", 0);
    instrument_set(&s, "noise-share", 0);
    instrument_set(&s, "loss", 0);
    instrument_set(&s, "quantum", 0.3);
    instrument_sample(&s, 0.1);
    query_near("rounded", instrument_reading(&s, "range"), 3.9, 1e-12);
    query_world_free(&w);
}

static void an_altimeter_looks_down_and_a_switch_has_two_distances(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    instrument s = instrument_make("altimeter", w.sim, pose(at(0, 0, 7), 1.2, 0.4, 0));
    instrument_sample(&s, 0.1);
    query_near("height", instrument_truth(&s, "height"), 7, 1e-12);
    query_near("read", instrument_reading(&s, "height"), 7, 1e-12);
    s.view.X_WS.p = at(-6, 0, 7);  // over the slab
    instrument_sample(&s, 0.1);
    query_near("over the slab", instrument_truth(&s, "height"), 3.8, 1e-12);
    instrument p = instrument_make("proximity", w.sim, pose(at(4.5, 0, 1), 0, 0, 0));
    static const double places[] = {4.5, 4.69, 4.71, 4.69, 4.67, 4.69};
    static const double says[] = {0, 0, 1, 1, 0, 0};  // closes at 0.3, opens at 0.32 m
    for (int i = 0; i < 6; i++) {
        p.view.X_WS.p.x = places[i];
        instrument_sample(&p, 0.1);
        if (instrument_reading(&p, "near") != says[i]) fail_msg("at %g m", places[i]);
    }
    query_world_free(&w);
}

static void a_spectrometer_sees_the_materials_table(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    instrument s = instrument_make("spectrometer", w.sim, pose(at(0, 0, 2), 0, 90 * DEGREE, 0));
    instrument_sample(&s, 1);
    const double width = 600.0 / 32;
    for (int i = 0; i < 32; i++) {
        const double wave = 400 + width * (i + 0.5);
        const double want = wave < 700 ? 0.04 + 0.06 * (wave - 400) / 300 : 0.10 - 0.03 * (wave - 700) / 300;
        // A band's mean of a straight line is that of its middle; the bend lies between two bands.
        query_near("band", s.reading[i], want, 1e-9);
    }
    query_near("distance", instrument_reading(&s, "distance"), 2, 1e-12);
    // At a slant of 60 degrees half of the light, and no table on the painted wall.
    s.view.X_WS = pose(at(0, 0, 2), 0, 30 * DEGREE, 0);
    instrument_sample(&s, 1);
    query_near("slant", s.reading[0], 0.5 * (0.04 + 0.06 * width / 600), 1e-9);
    s.view.X_WS = pose(at(0, 0, 2), 0, 0, 0);
    instrument_sample(&s, 1);
    assert_true(instrument_reading(&s, "valid") == 0 && s.reading[5] == 0);
    query_world_free(&w);
}

// ---------------------------------------------------------------- the sky

static void a_sun_sensor_sees_the_sun_unless_something_hides_it(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    const us_sky sky = us_model_get_sky(us_sim_view_model(w.sim));
    instrument s = instrument_make("sun-sensor", w.sim, pose(at(0, 0, 1), 0.2, 0.1, 0.7));
    instrument_sample(&s, 0);
    const us_vec3 sun = us_sky_sun(&sky, 0);
    assert_true(sun.z > 0.9);  // noon in June
    query_near_vec3("direction", us_quat_rotate(s.view.X_WS.q, instrument_reading3(&s, "direction")), sun,
                    1e-14);
    assert_true(instrument_reading(&s, "visible") == 1);
    // Under the slab, looking the other way, and at night.
    s.view.X_WS.p = us_vec3_sub(at(-6, 0, 3), us_vec3_scale(1.5, sun));
    instrument_sample(&s, 0);
    assert_true(instrument_reading(&s, "visible") == 0);
    query_near_vec3("nothing", instrument_reading3(&s, "direction"), at(0, 0, 0), 0);
    query_near_vec3("but it is there", us_quat_rotate(s.view.X_WS.q, instrument_truth3(&s, "direction")), sun,
                    1e-14);
    s.view.X_WS = pose(at(0, 0, 1), 180 * DEGREE, 0, 0);
    instrument_sample(&s, 0);
    assert_true(instrument_reading(&s, "visible") == 0);
    s.view.X_WS = pose(at(0, 0, 1), 0, 0, 0);
    instrument_set(&s, "field-of-view", 360 * DEGREE);
    instrument_sample(&s, 12 * 3600);
    assert_true(instrument_reading(&s, "visible") == 0 && instrument_truth3(&s, "direction").z < 0);
    query_world_free(&w);
}

static void a_star_tracker_works_at_night_and_while_it_is_still(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    const us_sky sky = us_model_get_sky(us_sim_view_model(w.sim));
    instrument s = instrument_make("star-tracker", w.sim, pose(at(0, 0, 1), 0.1, 0.2, 0.3));
    instrument_sample(&s, 0);
    assert_true(instrument_reading(&s, "valid") == 0);  // by day, in air
    instrument_sample(&s, 12 * 3600);
    assert_true(instrument_reading(&s, "valid") == 1);
    const us_quat q = {instrument_reading(&s, "orientation.w"), instrument_reading(&s, "orientation.x"),
                       instrument_reading(&s, "orientation.y"), instrument_reading(&s, "orientation.z")};
    // The pole star's direction, in its axes, points to the pole of the place: 40 degrees above north.
    const us_vec3 pole = us_quat_rotate(s.view.X_WS.q, us_quat_rotate(us_quat_conj(q), at(0, 0, 1)));
    assert_true(acos(fmin(1, us_vec3_dot(pole, at(0, cos(40 * DEGREE), sin(40 * DEGREE))))) < 0.2 * DEGREE);
    query_near("as it is", fabs(q.w * us_quat_mul(us_sky_stars(&sky, s.view.time), s.view.X_WS.q).w) + 1,
               q.w * q.w + 1, 1e-12);
    s.view.w_WS = at(0, 0, 0.05);
    instrument_sample(&s, 0);
    assert_true(instrument_reading(&s, "valid") == 0);
    s.view.w_WS = at(0, 0, 0);
    s.view.X_WS = pose(at(0, 0, 1), 180 * DEGREE, 0, 0);  // into the ground
    instrument_sample(&s, 0);
    assert_true(instrument_reading(&s, "valid") == 0);
    query_world_free(&w);
}

static void satellites_give_the_place_and_are_hidden_by_walls(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    const us_sky sky = us_model_get_sky(us_sim_view_model(w.sim));
    instrument s = instrument_make("navsat", w.sim, pose(at(-40, 300, 2), 0, 0, 0));
    instrument_sample(&s, 1);
    const us_geo_place here = us_sky_locate(&sky, s.view.X_WS.p);
    assert_true(fabs(instrument_reading(&s, "latitude") - here.latitude) < 1e-14);
    assert_true(fabs(instrument_reading(&s, "longitude") - here.longitude) < 1e-14);
    query_near("height", instrument_reading(&s, "height"), 1602, 1e-9);
    assert_true(instrument_reading(&s, "satellites") == 12 && instrument_reading(&s, "status") == 0);
    // Errors in metres: white noise and drift, north and up.
    enum { N = 3000 };
    instrument_set(&s, "noise", 0.5);
    instrument_set(&s, "drift", 1.5);
    instrument_set(&s, "drift-time", 0.1);  // forgotten from sample to sample
    double north = 0, up = 0;
    for (int i = 0; i < N; i++) {
        instrument_sample(&s, 1);
        const us_geo_place fix = {instrument_reading(&s, "latitude"), instrument_reading(&s, "longitude"),
                                  instrument_reading(&s, "height")};
        const us_vec3 off = us_vec3_sub(us_sky_point(&sky, fix), s.view.X_WS.p);
        north += off.y * off.y;
        up += off.z * off.z;
    }
    const double want = hypot(0.5, 1.5);
    assert_true(fabs(sqrt(north / N) / want - 1) < 5 / sqrt(2.0 * N));
    assert_true(fabs(sqrt(up / N) / (1.8 * want) - 1) < 5 / sqrt(2.0 * N));
    query_near("it says so", instrument_reading(&s, "deviation.east"), want, 1e-12);
    // Beside the wall satellites are hidden; under the slab nearly all are.
    instrument near_wall = instrument_make("navsat", w.sim, pose(at(4.9, 0, 0.5), 0, 0, 0));
    instrument_set(&near_wall, "multipath", 5);
    instrument_sample(&near_wall, 1);
    const double seen = instrument_reading(&near_wall, "satellites");
    assert_true(seen < 10 && seen >= 4);
    query_near("echoes", instrument_reading(&near_wall, "deviation.east"),
               5 * (1 - seen / 12) / sqrt(seen / 12), 1e-12);
    instrument below = instrument_make("navsat", w.sim, pose(at(-6, 0, 2.9), 0, 0, 0));
    instrument_sample(&below, 1);
    assert_true(instrument_reading(&below, "status") == -1);
    query_world_free(&w);
}

// Of the time it is out a / (a + b) with a the rate and b the inverse of the mean duration; an outage lasts 1
// / b in the mean.
static void outages_come_and_go_at_their_rates(void **state) {
    (void)state;
    enum { N = 20000 };
    query_world w = query_world_text(yard);
    instrument s = instrument_make("navsat", w.sim, pose(at(-40, 300, 2), 0, 0, 0));
    instrument_set(&s, "outage-rate", 0.05);
    instrument_set(&s, "outage-time", 5);
    int out = 0, begins = 0;
    bool was_out = false;
    for (int i = 0; i < N; i++) {
        instrument_sample(&s, 0.5);
        const bool is_out = instrument_reading(&s, "status") == -1;
        out += is_out;
        begins += is_out && !was_out;
        was_out = is_out;
    }
    const double share = 0.05 / (0.05 + 0.2);
    // 10^4 s have some 400 outages, each with a deviation of its own length.
    assert_true(fabs((double)out / N - share) < 5 * share * sqrt(2.0 / begins));
    // Sampled twice a second some are missed: of 0.4 outages in 10 s those that end within a sample.
    assert_true(fabs(begins / (0.5 * N) - 0.04) < 0.006);
    query_world_free(&w);
}

// ---------------------------------------------------------------- magnets

static void iron_moves_and_stretches_the_field(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    const us_sky sky = us_model_get_sky(us_sim_view_model(w.sim));
    instrument s = instrument_make("magnetometer", w.sim, pose(at(0, 0, 1), 0.2, -0.3, 2));
    instrument_sample(&s, 0);
    const us_vec3 field = us_sky_magnetic_field(&sky, at(0, 0, 1), 0);
    query_near_vec3("planet", us_quat_rotate(s.view.X_WS.q, instrument_reading3(&s, "field")), field, 1e-18);
    // Colorado: 52 uT, 66 degrees down, 8 degrees east.
    query_near("size", us_vec3_norm(field), 51.6e-6, 0.6e-6);
    instrument_set(&s, "field", 1);
    instrument_set(&s, "field-x", 2e-5);
    instrument_set(&s, "field-z", -4e-5);
    instrument_set(&s, "soft-iron-x", 0.1);
    instrument_set(&s, "soft-iron-xz", 0.05);
    instrument_set(&s, "hard-iron-y", 3e-6);
    s.view.X_WS = pose(at(0, 0, 0), 0, 0, 90 * DEGREE);  // its x axis is the world's y
    instrument_sample(&s, 0);
    query_near_vec3("truth", instrument_truth3(&s, "field"), at(0, -2e-5, -4e-5), 1e-18);
    query_near_vec3("reading", instrument_reading3(&s, "field"), at(0.05 * -4e-5, -2e-5 + 3e-6, -4e-5),
                    1e-18);
    query_world_free(&w);
}

static void a_compass_turns_clockwise_from_north(void **state) {
    (void)state;
    query_world w = query_world_text(yard);
    const us_sky sky = us_model_get_sky(us_sim_view_model(w.sim));
    const us_vec3 field = us_sky_magnetic_field(&sky, at(0, 0, 1), 0);
    const double declination = atan2(field.x, field.y);
    for (int i = 0; i < 16; i++) {
        const double yaw = (i * 22.5 + 3) * DEGREE;
        instrument s = instrument_make("compass", w.sim, pose(at(0, 0, 1), 0.1, -0.2, yaw));
        s.view.force = at(0, 0, G);
        instrument_set(&s, "north", 1);
        instrument_sample(&s, 0.1);
        // Yaw is counterclockwise from east.
        double want = fmod(450 * DEGREE - yaw, 360 * DEGREE);
        query_near("true", instrument_reading(&s, "heading"), want, 1e-9);
        query_near("truth", instrument_truth(&s, "heading"), want, 1e-9);
        instrument_set(&s, "north", 0);
        instrument_sample(&s, 0.1);
        want = fmod(want - declination + 360 * DEGREE, 360 * DEGREE);
        query_near("magnetic", instrument_reading(&s, "heading"), want, 1e-9);
        // A magnet of h along its x axis turns a level compass by atan(h sin / (H + h cos)).
        const double h = 2e-6, level = hypot(field.x, field.y);
        s.view.X_WS = pose(at(0, 0, 1), 0, 0, yaw);
        instrument_set(&s, "hard-iron-x", h);
        instrument_sample(&s, 0.1);
        const double off = remainder(instrument_reading(&s, "heading") - want, 360 * DEGREE);
        query_near("deviation", off, -atan2(h * sin(want), level + h * cos(want)), 1e-9);
    }
    query_world_free(&w);
}

// ---------------------------------------------------------------- joints and motors

static const char *const arm =
    "<scene name=\"arm\" version=\"1\"><world step=\"1 ms\"/>"
    "<object name=\"a\"><link name=\"base\"/>"
    "<link name=\"bar\"><inertial mass=\"2\" com=\"0.5 0 0\" inertia=\"0.01 0.01 0.01\"/></link>"
    "<joint name=\"foot\" type=\"fixed\" parent=\"world\" child=\"base\"/>"
    "<joint name=\"hinge\" type=\"revolute\" parent=\"base\" child=\"bar\" axis=\"0 1 0\" xyz=\"0 0 1\"/>"
    "<drive name=\"motor\" joint=\"hinge\" kp=\"1e5\" kd=\"1e3\"/></object></scene>";

static instrument at_hinge(const query_world *w, const char *kind) {
    instrument s = instrument_make(kind, w->sim, us_pose_identity());
    instrument_set(&s, "joint", query_joint(w, "a/hinge").i);
    return s;
}

static void turn_hinge(query_world *w, double q) {
    assert_int_equal(us_sim_set_joint(w->sim, query_joint(w, "a/hinge"), &q, NULL), US_OK);
}

static void an_encoder_counts_with_play_index_and_overflow(void **state) {
    (void)state;
    query_world w = query_world_text(arm);
    instrument s = at_hinge(&w, "encoder");
    const double turn = 360 * DEGREE;
    instrument_set(&s, "counts", 1000);
    turn_hinge(&w, 0.1001 * turn);
    instrument_sample(&s, 0);
    assert_true(instrument_reading(&s, "count") == 0);  // since it was switched on
    turn_hinge(&w, 0.2507 * turn);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "count") == 150);
    query_near("position", instrument_reading(&s, "position"), 0.2505 * turn, 1e-12);
    query_near("velocity", instrument_reading(&s, "velocity"), 0.15 * turn / 0.1, 1e-9);
    assert_true(instrument_reading(&s, "index") == 0);
    turn_hinge(&w, 1.01 * turn);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "index") == 1);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "index") == 0);
    // A counter of eight bits: 910 counts are 910 - 4 * 256.
    instrument_set(&s, "bits", 8);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "count") == 910 - 1024);
    // Play of 20 counts: on the way back nothing is counted for the first 20.
    instrument_set(&s, "bits", 32);
    instrument_set(&s, "backlash", 0.02 * turn);
    turn_hinge(&w, 1.2001 * turn);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "count") == 1090);
    turn_hinge(&w, 1.1811 * turn);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "count") == 1090);
    turn_hinge(&w, 1.1701 * turn);
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "count") == 1080);
    query_world_free(&w);
}

static void a_potentiometer_has_the_steps_of_its_converter(void **state) {
    (void)state;
    query_world w = query_world_text(arm);
    instrument s = at_hinge(&w, "potentiometer");
    instrument_set(&s, "low", -1);
    instrument_set(&s, "high", 1);
    instrument_set(&s, "bits", 4);
    for (int code = 0; code < 16; code++) {
        turn_hinge(&w, -1 + 2 * (code + 0.3) / 15);
        instrument_sample(&s, 0.1);
        assert_true(instrument_reading(&s, "code") == code);
        query_near("position", instrument_reading(&s, "position"), -1 + 2 * code / 15.0, 1e-12);
        query_near("voltage", instrument_reading(&s, "voltage"), 5 * code / 15.0, 1e-12);
    }
    turn_hinge(&w, 3);  // beyond its track
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "code") == 15);
    // Bent: by a whole period of a sine of 1 %.
    instrument_set(&s, "bits", 24);
    instrument_set(&s, "nonlinearity", 0.01);
    turn_hinge(&w, -0.5);
    instrument_sample(&s, 0.1);
    query_near("bent", instrument_reading(&s, "position"), -0.5 + 2 * 0.01, 1e-6);
    query_world_free(&w);
}

// The drive holds 2 kg at 0.5 m: 9.81 Nm.
static void a_motor_that_holds_a_weight_has_its_current_and_warms_up(void **state) {
    (void)state;
    query_world w = query_world_text(arm);
    query_world_step(&w, 3000);
    const double current = -2 * G * 0.5 / (0.05 * 50 * 0.8);
    instrument i = at_hinge(&w, "motor-current"), v = at_hinge(&w, "motor-voltage"),
               t = at_hinge(&w, "motor-temperature");
    instrument_sample(&i, 0.1);
    instrument_sample(&v, 0.1);
    query_near("current", instrument_reading(&i, "current"), current, 1e-3);
    query_near("voltage", instrument_reading(&v, "voltage"), 0.5 * current, 1e-3);
    instrument_set(&t, "quantum", 0);
    instrument_sample(&t, 0);
    query_near("cold", instrument_reading(&t, "temperature"), 293.15, 1e-12);
    const double final = 3 * 0.5 * current * current;
    for (int k = 1; k <= 6; k++) {
        instrument_sample(&t, 200);
        query_near("warm", instrument_reading(&t, "temperature"),
                   293.15 + final * (1 - exp(-200.0 * k / 600)), 0.01);
    }
    query_world_free(&w);
}

static void a_force_sensor_carries_what_hangs_on_it(void **state) {
    (void)state;
    query_world w = query_world_text(arm);
    instrument s = at_hinge(&w, "force-torque");
    s.view.X_WS = pose(at(0.1, 0, 1), 0, 90 * DEGREE, 0);  // its x axis points down
    instrument_sample(&s, 0.1);
    query_near_vec3("nothing yet", instrument_reading3(&s, "force"), at(0, 0, 0), 0);
    query_world_step(&w, 3000);
    instrument_sample(&s, 0.1);
    query_near_vec3("weight", instrument_reading3(&s, "force"), at(-2 * G, 0, 0), 1e-3);
    // About a point 0.1 m from the hinge, 0.4 m from the weight.
    query_near_vec3("torque", instrument_reading3(&s, "torque"), at(0, -2 * G * 0.4, 0), 1e-3);
    instrument_set(&s, "force-limit", 10);
    instrument_set(&s, "torque-quantum", 1);
    instrument_sample(&s, 0.1);
    query_near_vec3("limit", instrument_reading3(&s, "force"), at(-10, 0, 0), 1e-3);
    query_near_vec3("steps", instrument_reading3(&s, "torque"), at(0, -8, 0), 0);
    // Without a joint: that above the link it sits on.
    instrument own = instrument_make("force-torque", w.sim, us_pose_identity());
    own.view.body = query_body(&w, "a/bar").i;
    instrument_sample(&own, 0.1);
    query_near("own joint", instrument_reading3(&own, "force").z, 2 * G, 1e-3);
    query_world_free(&w);
}

// ---------------------------------------------------------------- touch

static const char *const block =
    "<scene name=\"block\" version=\"1\"><world step=\"1 ms\"><shape type=\"plane\"/></world>"
    "<object name=\"b\" base=\"floating\" xyz=\"0 0 0.01\"><link name=\"box\">"
    "<inertial mass=\"0.5\" inertia=\"1e-4 1e-4 1e-4\"/><shape type=\"box\" size=\"0.03 0.03 0.02\"/></link>"
    "</object></scene>";

static void a_switch_closes_and_a_pad_feels_the_weight(void **state) {
    (void)state;
    query_world w = query_world_text(block);
    query_world_step(&w, 500);
    instrument s = instrument_make("contact-switch", w.sim, us_pose_identity());
    s.view.body = query_body(&w, "b/box").i;
    instrument_sample(&s, 0.01);
    query_near("force", instrument_truth(&s, "force"), 0.5 * G, 0.01);
    assert_true(instrument_reading(&s, "closed") == 1);
    instrument_set(&s, "closing-force", 6);  // between release and closing it stays as it was
    instrument_sample(&s, 0.01);
    assert_true(instrument_reading(&s, "closed") == 1);
    instrument_set(&s, "opening-force", 5.5);
    instrument_sample(&s, 0.01);
    assert_true(instrument_reading(&s, "closed") == 0);
    // A pad under the box that looks down: its z axis points away from what presses.
    instrument t = instrument_make("tactile", w.sim, pose(at(0, 0, 0), 180 * DEGREE, 0, 0));
    t.view.body = s.view.body;
    instrument_sample(&t, 0.01);
    double all = 0;
    for (int i = 0; i < 16; i++)
        all += instrument_reading(&t, t.kind->readings[i].name);
    query_near("weight", all, 0.5 * G, 0.02);
    // The box is even: opposite cells feel the same.
    query_near("evenly", t.reading[0], t.reading[15], 0.02);
    t.view.X_WS.p.z = 0.1;  // too far from the contacts
    instrument_sample(&t, 0.01);
    for (int i = 0; i < 16; i++)
        assert_true(t.reading[i] == 0);
    query_world_free(&w);
}

static void slip_and_sinkage_are_the_soils_own(void **state) {
    (void)state;
    query_world w = query_world_file("scenes/single-wheel.xml");
    query_world_step(&w, 2000);
    assert_true(us_sim_n_soil_contact(w.sim) > 0);
    const us_soil_contact c = us_sim_get_soil_contact(w.sim, 0);
    instrument s = instrument_make("wheel-soil", w.sim, us_pose_identity());
    s.view.body = c.body.i;
    instrument_sample(&s, 0.1);
    assert_true(c.sinkage > 0 && instrument_reading(&s, "sinkage") == c.sinkage);
    assert_true(instrument_truth(&s, "slip") == c.slip && instrument_reading(&s, "in-soil") == 1);
    s.view.body = -1;
    instrument_sample(&s, 0.1);
    assert_true(instrument_reading(&s, "in-soil") == 0 && instrument_reading(&s, "sinkage") == 0);
    query_world_free(&w);
}

// ---------------------------------------------------------------- what cannot be measured

static const char *const broken =
    "<scene name=\"broken\" version=\"1\"><material name=\"odd\"><string key=\"spectrum\" "
    "value=\"400 0.1 300 0.2\"/></material><material name=\"word\"><string key=\"spectrum\" "
    "value=\"400 grey\"/></material>"
    "<world step=\"1 ms\"><shape type=\"plane\" surface=\"odd\"/>"
    "<shape type=\"box\" size=\"1 1 1\" xyz=\"5 0 0\" surface=\"word\"/></world>"
    "<object name=\"a\"><link name=\"l\"><inertial mass=\"1\" inertia=\"1 1 1\"/></link>"
    "<joint name=\"free\" type=\"revolute\" parent=\"world\" child=\"l\" axis=\"0 1 0\"/></object>"
    "<object name=\"b\"><link name=\"l\"><inertial mass=\"1\" inertia=\"1 1 1\"/></link>"
    "<joint name=\"ball\" type=\"spherical\" parent=\"world\" child=\"l\"/></object></scene>";

static void what_cannot_be_measured_is_refused_with_a_reason(void **state) {
    (void)state;
    query_world w = query_world_text(broken);
    static const char *const placed[] = {"navsat", "sun-sensor", "star-tracker"};
    for (int i = 0; i < 3; i++) {
        instrument s = instrument_make(placed[i], w.sim, us_pose_identity());
        instrument_refuses(&s, "the world lies on no planet");
    }
    static const char *const at_joints[] = {"encoder", "potentiometer", "motor-current", "motor-voltage",
                                            "motor-temperature"};
    for (int i = 0; i < 5; i++) {
        instrument s = instrument_make(at_joints[i], w.sim, us_pose_identity());
        instrument_set(&s, "joint", query_joint(&w, "b/ball").i);
        instrument_refuses(&s, "its joint has not exactly one coordinate");
        if (i < 2) continue;
        instrument_set(&s, "joint", query_joint(&w, "a/free").i);
        instrument_refuses(&s, "its joint has no drive");
    }
    instrument p = instrument_make("potentiometer", w.sim, us_pose_identity());
    instrument_set(&p, "high", -3);
    instrument_refuses(&p, "high is not above low");
    instrument f = instrument_make("force-torque", w.sim, us_pose_identity());
    instrument_refuses(&f, "no joint is above its link");
    static const char *const ranging[] = {"range", "altimeter", "proximity"};
    for (int i = 0; i < 3; i++) {
        instrument s = instrument_make(ranging[i], w.sim, pose(at(0, 0, 1), 0, 0, 0));
        instrument_set(&s, "min-range", 2);
        instrument_set(&s, "max-range", 1);
        instrument_refuses(&s, "max-range is not above min-range");
    }
    instrument s = instrument_make("spectrometer", w.sim, pose(at(0, 0, 2), 0, 90 * DEGREE, 0));
    instrument_refuses(&s, "is no list of such pairs");  // it goes back
    s.view.X_WS = pose(at(0, 0, 0.3), 0, 0, 0);
    instrument_refuses(&s, "is no list of such pairs");  // a word
    instrument_set(&s, "low", 2000);
    instrument_refuses(&s, "high is not above low");
    query_world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_that_of_the_wall),
        cmocka_unit_test(ranges_are_noisy_rounded_and_lost_by_chance),
        cmocka_unit_test(an_altimeter_looks_down_and_a_switch_has_two_distances),
        cmocka_unit_test(a_spectrometer_sees_the_materials_table),
        cmocka_unit_test(a_sun_sensor_sees_the_sun_unless_something_hides_it),
        cmocka_unit_test(a_star_tracker_works_at_night_and_while_it_is_still),
        cmocka_unit_test(satellites_give_the_place_and_are_hidden_by_walls),
        cmocka_unit_test(outages_come_and_go_at_their_rates),
        cmocka_unit_test(iron_moves_and_stretches_the_field),
        cmocka_unit_test(a_compass_turns_clockwise_from_north),
        cmocka_unit_test(an_encoder_counts_with_play_index_and_overflow),
        cmocka_unit_test(a_potentiometer_has_the_steps_of_its_converter),
        cmocka_unit_test(a_motor_that_holds_a_weight_has_its_current_and_warms_up),
        cmocka_unit_test(a_force_sensor_carries_what_hangs_on_it),
        cmocka_unit_test(a_switch_closes_and_a_pad_feels_the_weight),
        cmocka_unit_test(slip_and_sinkage_are_the_soils_own),
        cmocka_unit_test(what_cannot_be_measured_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
