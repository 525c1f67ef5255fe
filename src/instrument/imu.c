// An inertial measurement unit anywhere on a link: orientation, angular velocity and specific force in its
// own axes. An accelerometer feels motion less gravity, so that it reads +g upwards at rest.
//
// Presets are from makers' data sheets, in SI units: 1 deg/sqrt(h) is 2.909e-4 rad/s/sqrt(Hz), 1 deg/h is
// 4.848e-6 rad/s, 1 mg is 9.80665e-3 m/s^2. None of them gives a walk of the bias.
#include "instrument/triad.h"

enum {
    FORCE,
    SPIN = FORCE + USI_TRIAD_PARAMETERS,
    SPIN_PER_FORCE = SPIN + USI_TRIAD_PARAMETERS,
    TEMPERATURE,
    ORIENTATION_NOISE,
    N_PARAMETER
};
enum { READ_ORIENTATION, READ_SPIN = 4, READ_FORCE = 7, N_READING = 10 };
// What it keeps: two triads, and nine numbers of the unit for its g-sensitivity.
enum {
    GYROSCOPES,
    ACCELEROMETERS = USI_TRIAD_STATES,
    PER_FORCE = 2 * USI_TRIAD_STATES,
    N_STATE = PER_FORCE + 9
};
enum { DRAW_ORIENTATION = 2 * USI_TRIAD_DRAWS };

static const us_sensor_parameter parameters[N_PARAMETER] = {
    USI_TRIAD_ROWS("force", "m/s^2", "m/s^2/sqrt(Hz)", "m/s^2*sqrt(Hz)", "m/s^2/K"),
    USI_TRIAD_ROWS("spin", "rad/s", "rad/s/sqrt(Hz)", "rad/s*sqrt(Hz)", "rad/s/K"),
    USI_NUMBER("spin-per-force", "rad/s/(m/s^2)", 0, 1, 0,
               "Deviation of the g-sensitivity of each gyroscope to each axis."),
    USI_NUMBER("temperature", "K", -200, 200, 0, "How much warmer it is than when it was calibrated."),
    USI_NUMBER("orientation-noise", "rad", 0, 3, 0, "Standard deviation of the orientation about each axis."),
};

static const us_sensor_reading readings[N_READING] = {
    {"orientation.w", "1", true}, {"orientation.x", "1", true}, {"orientation.y", "1", true},
    {"orientation.z", "1", true}, {"spin.x", "rad/s", false},   {"spin.y", "rad/s", false},
    {"spin.z", "rad/s", false},   {"force.x", "m/s^2", false},  {"force.y", "m/s^2", false},
    {"force.z", "m/s^2", false},
};

static void start(const us_sensor_view *view, double *state) {
    usi_triad_start(view, 0, state + GYROSCOPES);
    usi_triad_start(view, USI_TRIAD_OWN, state + ACCELEROMETERS);
    for (int32_t i = 0; i < 9; i++)
        state[PER_FORCE + i] = usi_unit_normal(view, 2 * USI_TRIAD_OWN + i);
}

// What gyroscopes feel of the force, each of all three axes.
static us_vec3 felt_by_gyroscopes(const us_sensor_view *view, const double *state, us_vec3 f) {
    const double g = view->parameter[SPIN_PER_FORCE], *own = state + PER_FORCE;
    return us_vec3_make(g * (own[0] * f.x + own[1] * f.y + own[2] * f.z),
                        g * (own[3] * f.x + own[4] * f.y + own[5] * f.z),
                        g * (own[6] * f.x + own[7] * f.y + own[8] * f.z));
}

static us_quat read_orientation(const us_sensor_view *view) {
    const double noise = view->parameter[ORIENTATION_NOISE];
    if (noise == 0) return view->X_WS.q;
    const us_vec3 off =
        us_vec3_make(us_sensor_normal(view, DRAW_ORIENTATION), us_sensor_normal(view, DRAW_ORIENTATION + 1),
                     us_sensor_normal(view, DRAW_ORIENTATION + 2));
    return us_quat_mul(view->X_WS.q, us_quat_exp(us_vec3_scale(noise, off)));
}

static void put_all(double *to, us_quat q, us_vec3 spin, us_vec3 force) {
    to[READ_ORIENTATION] = q.w;
    usi_put(to + READ_ORIENTATION + 1, us_vec3_make(q.x, q.y, q.z));
    usi_put(to + READ_SPIN, spin);
    usi_put(to + READ_FORCE, force);
}

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const us_vec3 spin = usi_in_sensor(view, view->w_WS), force = usi_in_sensor(view, view->force);
    const double warmth = view->parameter[TEMPERATURE];
    const usi_triad gyroscopes = {view->parameter + SPIN, state + GYROSCOPES, 0, warmth,
                                  felt_by_gyroscopes(view, state, force)},
                    accelerometers = {view->parameter + FORCE, state + ACCELEROMETERS, USI_TRIAD_DRAWS,
                                      warmth, us_vec3_make(0, 0, 0)};
    put_all(truth, view->X_WS.q, spin, force);
    put_all(reading, read_orientation(view), usi_triad_read(view, &gyroscopes, spin),
            usi_triad_read(view, &accelerometers, force));
    return true;
}

// ADIS16488A (Analog Devices): 0.26 deg/sqrt(h), 5.1 deg/h, +-450 deg/s, 1 %, 0.05 deg, 0.009 deg/s/g, 0.0025
// deg/s/K, 0.2 deg/s; 0.029 m/s/sqrt(h), 0.07 mg, +-18 g, 0.5 %, 0.035 deg, 0.1 mg/K, 16 mg. What makers call
// in-run stability is the flat of the Allan deviation: the instability is that over 0.664.
static const us_sensor_setting adis16488a[] = {
    {"spin-density", 7.56e-5},       {"spin-instability", 3.72e-5},
    {"spin-limit", 7.854},           {"spin-scale", 0.01},
    {"spin-misalignment", 8.73e-4},  {"spin-per-force", 1.6e-5},
    {"spin-warmth", 4.36e-5},        {"spin-bias", 3.49e-3},
    {"force-density", 4.83e-4},      {"force-instability", 1.03e-3},
    {"force-limit", 176.5},          {"force-scale", 0.005},
    {"force-misalignment", 6.11e-4}, {"force-warmth", 9.8e-4},
    {"force-bias", 0.157},
};
// STIM300 (Sensonor): 0.15 deg/sqrt(h), 0.3 deg/h, +-400 deg/s, 500 ppm, 1 mrad, 250 deg/h; 0.07 m/s/sqrt(h),
// 0.05 mg, +-10 g, 300 ppm, 1 mrad, 0.75 mg.
static const us_sensor_setting stim300[] = {
    {"spin-density", 4.36e-5},  {"spin-instability", 2.19e-6}, {"spin-limit", 6.981},
    {"spin-scale", 5e-4},       {"spin-misalignment", 1e-3},   {"spin-bias", 1.21e-3},
    {"force-density", 1.17e-3}, {"force-instability", 7.4e-4}, {"force-limit", 98.07},
    {"force-scale", 3e-4},      {"force-misalignment", 1e-3},  {"force-bias", 7.4e-3},
};
// MPU-6050 (InvenSense) at its largest ranges: 0.005 deg/s/sqrt(Hz), +-2000 deg/s in 16 bits, 3 %, 2 %, 20
// deg/s, 0.1 deg/s/g; 400 ug/sqrt(Hz), +-16 g in 16 bits, 3 %, 2 %, 50 mg.
static const us_sensor_setting mpu6050[] = {
    {"spin-density", 8.73e-5},   {"spin-limit", 34.907},      {"spin-quantum", 1.065e-3},
    {"spin-scale", 0.03},        {"spin-misalignment", 0.02}, {"spin-bias", 0.349},
    {"spin-per-force", 1.78e-4}, {"force-density", 3.92e-3},  {"force-limit", 156.9},
    {"force-quantum", 4.79e-3},  {"force-scale", 0.03},       {"force-misalignment", 0.02},
    {"force-bias", 0.49},
};
static const us_sensor_preset presets[] = {
    {"adis16488a", "ADIS16488A of Analog Devices, tactical", USI_COUNT(adis16488a), adis16488a},
    {"stim300", "STIM300 of Sensonor, tactical", USI_COUNT(stim300), stim300},
    {"mpu6050", "MPU-6050 of InvenSense, consumer", USI_COUNT(mpu6050), mpu6050},
};

static const us_sensor_member members[] = {
    {.path = "orientation.w", .value = "orientation.w"},
    {.path = "orientation.x", .value = "orientation.x"},
    {.path = "orientation.y", .value = "orientation.y"},
    {.path = "orientation.z", .value = "orientation.z"},
    {.path = "orientation_covariance[0]", .value = "orientation-noise", .is_squared = true},
    {.path = "orientation_covariance[4]", .value = "orientation-noise", .is_squared = true},
    {.path = "orientation_covariance[8]", .value = "orientation-noise", .is_squared = true},
    {.path = "angular_velocity.x", .value = "spin.x"},
    {.path = "angular_velocity.y", .value = "spin.y"},
    {.path = "angular_velocity.z", .value = "spin.z"},
    {.path = "angular_velocity_covariance[0]", .value = "spin-noise", .is_squared = true},
    {.path = "angular_velocity_covariance[4]", .value = "spin-noise", .is_squared = true},
    {.path = "angular_velocity_covariance[8]", .value = "spin-noise", .is_squared = true},
    {.path = "linear_acceleration.x", .value = "force.x"},
    {.path = "linear_acceleration.y", .value = "force.y"},
    {.path = "linear_acceleration.z", .value = "force.z"},
    {.path = "linear_acceleration_covariance[0]", .value = "force-noise", .is_squared = true},
    {.path = "linear_acceleration_covariance[4]", .value = "force-noise", .is_squared = true},
    {.path = "linear_acceleration_covariance[8]", .value = "force-noise", .is_squared = true},
};

const us_sensor_kind usi_imu_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "imu",
    .about =
        "an inertial measurement unit: orientation, angular velocity and specific force, in its own axes",
    .n_parameter = N_PARAMETER,
    .n_reading = N_READING,
    .n_preset = USI_COUNT(presets),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .presets = presets,
    .n_state = N_STATE,
    .uses_force = true,
    .message = "sensor_msgs/msg/Imu",
    .members = members,
    .start = start,
    .sample = sample,
};
