// Inertial units, gyroscopes, accelerometers and tilt sensors against the laws of their errors.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "instrument_view.h"
#include "sense/noise_process.h"

static const double G = 9.81;

static us_pose turned(double roll, double pitch, double yaw) {
    return (us_pose){us_quat_from_rpy(roll, pitch, yaw), us_vec3_make(1, 2, 3)};
}

static instrument imu_at(us_pose X, us_vec3 spin_W, us_vec3 force_W) {
    instrument s = instrument_make("imu", NULL, X);
    s.view.w_WS = spin_W;
    s.view.force = force_W;
    return s;
}

static instrument level_imu(uint64_t seed, us_vec3 spin_W, us_vec3 force_W) {
    instrument s = imu_at(turned(0, 0, 0), spin_W, force_W);
    s.view.seed = seed;
    return s;
}

static void near3(us_vec3 got, us_vec3 want, double tolerance) {
    if (!(us_vec3_norm(us_vec3_sub(got, want)) <= tolerance))
        fail_msg("(%g %g %g) is not (%g %g %g)", got.x, got.y, got.z, want.x, want.y, want.z);
}

static void a_perfect_unit_says_what_is_true_in_its_axes(void **state) {
    (void)state;
    const us_pose X = turned(0.3, -0.5, 1.2);
    const us_vec3 w = us_vec3_make(0.1, 0.2, -0.3), f = us_vec3_make(1, -2, G);
    instrument s = imu_at(X, w, f);
    instrument_sample(&s, 0.01);
    near3(us_quat_rotate(X.q, instrument_reading3(&s, "spin")), w, 1e-14);
    near3(us_quat_rotate(X.q, instrument_reading3(&s, "force")), f, 1e-13);
    near3(instrument_reading3(&s, "spin"), instrument_truth3(&s, "spin"), 0);
    assert_true(instrument_reading(&s, "orientation.w") == X.q.w);
    instrument g = instrument_make("gyro", NULL, X), a = instrument_make("accelerometer", NULL, X);
    g.view.w_WS = w;
    a.view.force = f;
    instrument_sample(&g, 0.01);
    instrument_sample(&a, 0.01);
    near3(instrument_reading3(&g, "spin"), instrument_truth3(&s, "spin"), 0);
    near3(instrument_reading3(&a, "force"), instrument_truth3(&s, "force"), 0);
}

static void readings_end_at_the_limit_and_go_in_steps(void **state) {
    (void)state;
    instrument s = level_imu(1, us_vec3_make(0.12, -9, 0), us_vec3_make(0, 0, 200));
    instrument_set(&s, "spin-limit", 5);
    instrument_set(&s, "spin-quantum", 0.05);
    instrument_set(&s, "force-limit", 100);
    instrument_sample(&s, 0.01);
    near3(instrument_reading3(&s, "spin"), us_vec3_make(0.1, -5, 0), 1e-15);
    near3(instrument_reading3(&s, "force"), us_vec3_make(0, 0, 100), 0);
    near3(instrument_truth3(&s, "spin"), us_vec3_make(0.12, -9, 0), 0);
}

// What is drawn for each unit by its seed: over 2000 units the deviation is the parameter's within five of
// its own deviations, s / sqrt(2 n), and each unit keeps its own.
enum { UNITS = 2000 };

static double deviation_of(double (*error)(uint64_t seed)) {
    double sum = 0, square = 0;
    for (uint64_t unit = 0; unit < UNITS; unit++) {
        const double e = error(unit);
        sum += e;
        square += e * e;
    }
    assert_true(fabs(sum / UNITS) < 5 * sqrt(square / UNITS) / sqrt(UNITS));
    return sqrt(square / UNITS);
}

static const us_vec3 none = {0, 0, 0};

static double bias_of(uint64_t seed) {
    instrument s = level_imu(seed, none, none);
    instrument_set(&s, "spin-bias", 0.02);
    instrument_sample(&s, 0.01);
    const double first = instrument_reading(&s, "spin.y");
    instrument_sample(&s, 0.01);
    assert_true(instrument_reading(&s, "spin.y") == first);
    return first;
}

static double scale_of(uint64_t seed) {
    instrument s = level_imu(seed, us_vec3_make(3, 0, 0), none);
    instrument_set(&s, "spin-scale", 0.01);
    instrument_sample(&s, 0.01);
    assert_true(instrument_reading(&s, "spin.y") == 0);
    return instrument_reading(&s, "spin.x") / 3 - 1;
}

static double misalignment_of(uint64_t seed) {
    instrument s = level_imu(seed, none, us_vec3_make(0, 0, G));
    instrument_set(&s, "force-misalignment", 0.005);
    instrument_sample(&s, 0.01);
    assert_true(instrument_reading(&s, "force.z") == G);
    return instrument_reading(&s, "force.x") / G;
}

static double sensitivity_of(uint64_t seed) {
    instrument s = level_imu(seed, none, us_vec3_make(0, 0, G));
    instrument_set(&s, "spin-per-force", 1e-4);
    instrument_sample(&s, 0.01);
    const double at_g = instrument_reading(&s, "spin.x");
    s.view.force.z = 3 * G;
    instrument_sample(&s, 0.01);
    assert_true(fabs(instrument_reading(&s, "spin.x") - 3 * at_g) < 1e-15);
    return at_g / G;
}

static double warmth_of(uint64_t seed) {
    instrument s = level_imu(seed, none, none);
    instrument_set(&s, "force-warmth", 0.001);
    instrument_sample(&s, 0.01);
    assert_true(instrument_reading(&s, "force.z") == 0);
    instrument_set(&s, "temperature", 20);
    instrument_sample(&s, 0.01);
    return instrument_reading(&s, "force.z") / 20;
}

static void units_differ_as_their_data_sheets_say(void **state) {
    (void)state;
    const double bound = 5 / sqrt(2.0 * UNITS);
    assert_true(fabs(deviation_of(bias_of) / 0.02 - 1) < bound);
    assert_true(fabs(deviation_of(scale_of) / 0.01 - 1) < bound);
    assert_true(fabs(deviation_of(misalignment_of) / 0.005 - 1) < bound);
    assert_true(fabs(deviation_of(sensitivity_of) / 1e-4 - 1) < bound);
    assert_true(fabs(deviation_of(warmth_of) / 0.001 - 1) < bound);
}

// Half the mean square of the differences of neighbouring means over m samples, overlapping.
static double allan_variance(const double *sum, int n, int m) {
    double total = 0;
    for (int i = 0; i + 2 * m <= n; i++) {
        const double d = (sum[i + 2 * m] - 2 * sum[i + m] + sum[i]) / m;
        total += d * d;
    }
    return total / (2.0 * (n - 2 * m + 1));
}

// The unit as a whole at 10 Hz, its three axes over four records of 10^4 s: twelve records, whose mean is
// within 1.2 % (test_noise_process.c has the argument), so that 5 % is four times that.
static void a_units_allan_deviation_is_its_parameters(void **state) {
    (void)state;
    enum { N = 100000, RECORDS = 4, TAUS = 9 };
    static double sum[3][N + 1];
    const double density = 0.01, instability = 0.02, time = 3, walk = 0.004, h = 0.1;
    double found[TAUS] = {0};
    for (int record = 0; record < RECORDS; record++) {
        instrument s = imu_at(turned(0.1, 0.2, 0.3), none, us_vec3_make(0, 0, G));
        s.view.stream = 900 + (uint64_t)record;
        instrument_set(&s, "spin-density", density);
        instrument_set(&s, "spin-instability", instability);
        instrument_set(&s, "spin-instability-time", time);
        instrument_set(&s, "spin-walk", walk);
        instrument_sample(&s, 0);
        for (int i = 0; i < N; i++) {
            instrument_sample(&s, h);
            const us_vec3 y = instrument_reading3(&s, "spin");
            sum[0][i + 1] = sum[0][i] + y.x;
            sum[1][i + 1] = sum[1][i] + y.y;
            sum[2][i + 1] = sum[2][i] + y.z;
        }
        for (int axis = 0; axis < 3; axis++) {
            for (int t = 0; t < TAUS; t++)
                found[t] += allan_variance(sum[axis], N, 1 << t) / (3 * RECORDS);
        }
    }
    double worst = 0;
    for (int t = 0; t < TAUS; t++) {
        const double want = usi_noise_allan_variance(density, instability, time, walk, h * (1 << t));
        worst = fmax(worst, fabs(sqrt(found[t] / want) - 1));
    }
    print_message("Allan deviation from 0.1 s to 25.6 s: worst %.2f %%\n", 100 * worst);
    assert_true(worst < 0.05);
}

static void presets_are_made_of_parameters(void **state) {
    (void)state;
    const us_sensor_kind *imu = us_sensor_kind_find("imu");
    assert_true(imu && imu->n_preset == 3);
    instrument s = level_imu(1, none, none);
    for (int32_t i = 0; i < imu->n_preset; i++) {
        for (int32_t k = 0; k < imu->presets[i].n; k++)
            instrument_set(&s, imu->presets[i].settings[k].parameter, imu->presets[i].settings[k].value);
    }
    // The last one is the MPU-6050: 16 bits over 2000 deg/s either way.
    s.view.w_WS.x = 100;
    instrument_sample(&s, 0.01);
    assert_true(fabs(instrument_reading(&s, "spin.x") - 2000 * 0.017453292519943295769) < 1.1e-3);
}

static void a_tilt_sensor_follows_with_its_time_constant(void **state) {
    (void)state;
    instrument s = instrument_make("tilt", NULL, turned(0.2, -0.1, 2));
    s.view.force = us_vec3_make(0, 0, G);
    instrument_set(&s, "lag", 0.5);
    instrument_sample(&s, 0);  // at once, the first time
    assert_true(fabs(instrument_reading(&s, "roll") - 0.2) < 1e-14);
    assert_true(fabs(instrument_reading(&s, "pitch") + 0.1) < 1e-14);
    assert_true(fabs(instrument_truth(&s, "roll") - 0.2) < 1e-14);
    // A small push along its y axis: the angle goes there by 1 - exp(-t / lag).
    instrument t = s;
    t.view.X_WS = turned(0, 0, 0);
    instrument_sample(&t, 0);
    t.view.force.y = 0.01 * G;
    for (int i = 1; i <= 5; i++) {
        instrument_sample(&t, 0.2);
        const double want = 0.01 * (1 - exp(-0.2 * i / 0.5));
        assert_true(fabs(instrument_reading(&t, "roll") - want) < 1e-6);  // atan x = x - x^3 / 3
        assert_true(instrument_truth(&t, "roll") == 0);
    }
    t.view.force.y = 5 * G;
    instrument_sample(&t, 100);
    assert_true(instrument_reading(&t, "roll") == 1.0472);  // its limit
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perfect_unit_says_what_is_true_in_its_axes),
        cmocka_unit_test(readings_end_at_the_limit_and_go_in_steps),
        cmocka_unit_test(units_differ_as_their_data_sheets_say),
        cmocka_unit_test(a_units_allan_deviation_is_its_parameters),
        cmocka_unit_test(presets_are_made_of_parameters),
        cmocka_unit_test(a_tilt_sensor_follows_with_its_time_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
