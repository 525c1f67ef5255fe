// A proximity switch: whether something is near along its x axis, with a distance at which it closes and a
// larger one at which it opens.
#include "instrument/ranging.h"

enum { OPENS = USI_RANGE_LOSS + 1 };
static const us_sensor_parameter parameters[] = {
    USI_RANGE_ROWS(0, 0.3, 0.2, 0.002),
    USI_NUMBER("hysteresis", "m", 0, 1e6, 0.02,
               "How much farther than max-range something is when it opens again."),
};
static const us_sensor_reading readings[] = {{"near", "1", true}};

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const double *p = view->parameter;
    double reach[OPENS];
    for (int i = 0; i < OPENS; i++)
        reach[i] = p[i];
    reach[USI_RANGE_MAX] = p[USI_RANGE_MAX] + p[OPENS];
    const double range = usi_cone_range(view, reach, us_quat_rotate(view->X_WS.q, us_vec3_make(1, 0, 0)));
    if (isnan(range)) return false;
    double read;
    const bool is_seen = usi_range_read(view, reach, range, &read);
    state[0] = is_seen && (read <= p[USI_RANGE_MAX] || state[0] != 0);
    truth[0] = range <= p[USI_RANGE_MAX];
    reading[0] = state[0];
    return true;
}

const us_sensor_kind usi_proximity_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "proximity",
    .about = "a proximity switch: whether something is near along its x axis",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .n_state = 1,
    .usual_rate = 20,
    .sample = sample,
};
