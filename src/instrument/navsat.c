// Satellite navigation: latitude, longitude and height in the datum of the world's planet.
//
// Twelve satellites stand over the place, spread over the sky above ten degrees, and go round it once in
// twelve hours. What hides one is found by a ray. A fix needs four. The error is white noise, a Gauss-Markov
// process (orbits, clocks, the ionosphere) and, beside walls, another one of echoes, whose deviation grows
// with the share h of the sky that is hidden, east, north and up (times `vertical`):
//
//     sqrt(noise^2 + drift^2 + (multipath h)^2) / sqrt(visible / 12)
//
// Outages begin by chance at a rate and end by chance after a mean duration.
#include "instrument/measure.h"

enum { NOISE, DRIFT, DRIFT_TIME, VERTICAL, MULTIPATH, MULTIPATH_TIME, OUTAGE_RATE, OUTAGE_TIME };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("noise", "m", 0, 1e6, 0.5, "Standard deviation of white noise, east and north."),
    USI_NUMBER("drift", "m", 0, 1e6, 1.5, "Standard deviation of slow errors, east and north."),
    USI_NUMBER("drift-time", "s", 1e-3, 1e6, 300, "Correlation time of slow errors."),
    USI_NUMBER("vertical", "1", 0, 100, 1.8, "Errors of the height against those east and north."),
    USI_NUMBER("multipath", "m", 0, 1e6, 5, "Standard deviation of echoes where all of the sky is hidden."),
    USI_NUMBER("multipath-time", "s", 1e-3, 1e6, 20, "Correlation time of echoes."),
    USI_NUMBER("outage-rate", "Hz", 0, 1e3, 0, "How often it loses its fix by chance."),
    USI_NUMBER("outage-time", "s", 1e-3, 1e6, 5, "How long that lasts, in the mean."),
};
static const us_sensor_reading readings[] = {
    {"latitude", "rad", false},  {"longitude", "rad", false}, {"height", "m", false},
    {"status", "1", true},       {"satellites", "1", true},   {"deviation.east", "m", true},
    {"deviation.up", "m", true},
};
enum { LATITUDE, LONGITUDE, HEIGHT, STATUS, SATELLITES, DEVIATION_EAST, DEVIATION_UP };

// What it keeps: drift and echoes east, north, up; whether it is out by chance; the last fix.
enum { S_DRIFT, S_ECHO = 3, S_OUT = 6, S_LAST = 7, S_HAS_LAST = 10, N_STATE };
enum { N_SATELLITE = 12, DRAW_NOISE = 0, DRAW_DRIFT = 3, DRAW_ECHO = 6, DRAW_OUT = 9 };

// Even areas of the sky by the golden angle, turned about the vertical.
static us_vec3 satellite(const us_sensor_view *view, int i) {
    static const double golden = 2.39996322972865332, turn = 6.28318530717958647693,
                        lowest = 0.17364817766693;
    const double z = lowest + (1 - lowest) * (i + 0.5) / N_SATELLITE, flat = sqrt(1 - z * z),
                 angle = golden * i +
                         turn * us_random_uniform(view->seed, view->stream + (UINT64_C(3) << 48), 0) +
                         turn * view->time / 43200;
    return us_vec3_make(flat * cos(angle), flat * sin(angle), z);
}

// How many are not hidden; -1: ground that could not be had.
static int count_visible(const us_sensor_view *view) {
    int n = 0;
    for (int i = 0; i < N_SATELLITE; i++) {
        const double free = usi_free_range(view, satellite(view, i), INFINITY, NULL);
        if (isnan(free)) return -1;
        n += isinf(free);
    }
    return n;
}

// Whether an outage by chance goes on: of two states that change at rates a and b the one of the time before
// is forgotten by exp(-(a + b) t).
static bool find_outage(const us_sensor_view *view, double *state) {
    const double a = view->parameter[OUTAGE_RATE], b = 1 / view->parameter[OUTAGE_TIME], share = a / (a + b);
    if (a == 0) state[S_OUT] = 0;
    if (a == 0) return false;
    const double kept = view->interval > 0 ? exp(-(a + b) * view->interval) : 0;
    state[S_OUT] = us_sensor_uniform(view, DRAW_OUT) < share + (state[S_OUT] - share) * kept;
    return state[S_OUT] != 0;
}

static us_vec3 error_of(const us_sensor_view *view, double *state, double hidden) {
    const double *p = view->parameter;
    double e[3];
    for (int i = 0; i < 3; i++) {
        e[i] = p[NOISE] * us_sensor_normal(view, DRAW_NOISE + i) +
               usi_noise_markov(p[DRIFT], p[DRIFT_TIME], view->interval,
                                us_sensor_normal(view, DRAW_DRIFT + i), &state[S_DRIFT + i]) +
               p[MULTIPATH] * hidden *
                   usi_noise_markov(1, p[MULTIPATH_TIME], view->interval,
                                    us_sensor_normal(view, DRAW_ECHO + i), &state[S_ECHO + i]);
    }
    return us_vec3_make(e[0], e[1], p[VERTICAL] * e[2]);
}

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const double *p = view->parameter;
    const us_sky sky = usi_sky_of(view);
    if (!usi_has_place(view)) return false;
    const int visible = count_visible(view);
    if (visible < 0) return false;
    const double hidden = 1 - (double)visible / N_SATELLITE,
                 spread = visible > 0 ? sqrt((double)N_SATELLITE / visible) : 0;
    const us_geo_place at = us_sky_locate(&sky, view->X_WS.p);
    const us_vec3 error = us_vec3_scale(spread, error_of(view, state, hidden));
    // East and north in the world's axes.
    const double s = sin(sky.heading), c = cos(sky.heading);
    const us_vec3 off = us_vec3_make(c * error.x - s * error.y, s * error.x + c * error.y, error.z);
    const us_geo_place fix = us_sky_locate(&sky, us_vec3_add(view->X_WS.p, off));
    const bool is_out = find_outage(view, state), has_fix = visible >= 4 && !is_out;
    const double deviation = spread * sqrt(p[NOISE] * p[NOISE] + p[DRIFT] * p[DRIFT] +
                                           p[MULTIPATH] * hidden * p[MULTIPATH] * hidden);
    if (has_fix || state[S_HAS_LAST] == 0) {
        state[S_LAST] = has_fix ? fix.latitude : 0;
        state[S_LAST + 1] = has_fix ? fix.longitude : 0;
        state[S_LAST + 2] = has_fix ? fix.height : 0;
        state[S_HAS_LAST] = has_fix;
    }
    const double all[2][7] = {{at.latitude, at.longitude, at.height, 0, N_SATELLITE, 0, 0},
                              {state[S_LAST], state[S_LAST + 1], state[S_LAST + 2], has_fix ? 0 : -1, visible,
                               deviation, p[VERTICAL] * deviation}};
    for (int i = 0; i < 7; i++) {
        truth[i] = all[0][i];
        reading[i] = all[1][i];
    }
    return true;
}

static const us_sensor_member members[] = {
    {.path = "latitude", .value = "latitude", .scale = 57.295779513082320877},
    {.path = "longitude", .value = "longitude", .scale = 57.295779513082320877},
    {.path = "altitude", .value = "height"},
    {.path = "status.status", .value = "status"},
    {.path = "status.service", .offset = 1},
    {.path = "position_covariance[0]", .value = "deviation.east", .is_squared = true},
    {.path = "position_covariance[4]", .value = "deviation.east", .is_squared = true},
    {.path = "position_covariance[8]", .value = "deviation.up", .is_squared = true},
    {.path = "position_covariance_type", .offset = 2},
};

const us_sensor_kind usi_navsat_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "navsat",
    .about = "satellite navigation: latitude, longitude and height of its antenna",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .n_state = N_STATE,
    .usual_rate = 1,
    .topic = "fix",
    .message = "sensor_msgs/msg/NavSatFix",
    .members = members,
    .sample = sample,
};
