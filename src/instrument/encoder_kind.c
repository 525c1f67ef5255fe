// An incremental encoder at a joint: counts, an index pulse once a turn, and play between joint and disc.
//
//     disc:    follows the joint by pushing: it lags by at most half of the backlash either way
//     counts:  floor(disc counts / turn) since it was switched on, as a counter of some bits has them
//     speed:   difference of counts over the time between samples, as a controller takes it
#include "instrument/measure.h"

enum { JOINT, COUNTS, BACKLASH, BITS, OFFSET };
static const us_sensor_parameter parameters[] = {
    USI_OF_JOINT(NAN, "The joint that it measures."),
    USI_NUMBER("counts", "1", 1, 1e9, 4096, "Counts of a turn (of a metre, of a slide)."),
    USI_NUMBER("backlash", "rad", 0, 10, 0, "Play between joint and disc (m of a slide)."),
    USI_WHOLE("bits", 2, 52, 32, "Bits of its counter, with a sign."),
    USI_NUMBER("index-position", "rad", -1000, 1000, 0, "Where the index pulse stands (m of a slide)."),
};
static const us_sensor_reading readings[] = {
    {"position", "rad", false}, {"velocity", "rad/s", false}, {"count", "1", true}, {"index", "1", true}};
enum { S_DISC, S_COUNT, S_TURN, S_ZERO, S_IS_ON, N_STATE };

// Within the range of a counter.
static double wrap(double count, double bits) {
    const double range = exp2(bits);
    return count - range * floor(count / range + 0.5);
}

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    static const double turn = 6.28318530717958647693;
    const double *p = view->parameter, half = 0.5 * p[BACKLASH];
    const int32_t joint = (int32_t)p[JOINT];
    double q, v;
    if (!usi_joint_motion(view, joint, &q, &v)) return false;
    const bool is_slide =
        us_model_get_joint(us_sim_view_model(view->sim), (us_joint){joint}).type == US_JOINT_PRISMATIC;
    const double per = (is_slide ? 1 : 1 / turn) * p[COUNTS], period = is_slide ? 1 : turn;
    const bool is_first = state[S_IS_ON] == 0;
    if (is_first) {
        state[S_DISC] = q;
        state[S_ZERO] = floor(q * per);
        state[S_IS_ON] = 1;
    }
    state[S_DISC] = fmax(q - half, fmin(q + half, state[S_DISC]));
    const double count = floor(state[S_DISC] * per) - state[S_ZERO],
                 revolution = floor((state[S_DISC] - p[OFFSET]) / period);
    truth[0] = q;
    truth[1] = v;
    truth[2] = reading[2] = wrap(count, p[BITS]);
    truth[3] = reading[3] = !is_first && revolution != state[S_TURN];
    reading[0] = (count + state[S_ZERO] + 0.5) / per;
    reading[1] = !is_first && view->interval > 0 ? (count - state[S_COUNT]) / per / view->interval : 0;
    state[S_COUNT] = count;
    state[S_TURN] = revolution;
    return true;
}

const us_sensor_kind usi_encoder_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "encoder",
    .about = "an incremental encoder at a joint: counts, index pulse, backlash",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .n_state = N_STATE,
    .usual_rate = 100,
    .sample = sample,
};
