// A contact switch: whether its link is pushed. It closes at one force and opens at a smaller one.
#include "instrument/measure.h"

enum { CLOSES, OPENS };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("closing-force", "N", 0, 1e9, 1, "It closes at this force on its link."),
    USI_NUMBER("opening-force", "N", 0, 1e9, 0.5, "It opens below this one."),
};
static const us_sensor_reading readings[] = {{"closed", "1", true}, {"force", "N", false}};

// The force is the truth's alone: a switch does not say it.
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const double *p = view->parameter,
                 force = us_vec3_norm(usi_touch_force(view, view->body, view->X_WS.p, NULL));
    state[0] = force > 0 && (force >= p[CLOSES] || (state[0] != 0 && force >= p[OPENS]));
    truth[0] = force >= p[CLOSES] && force > 0;
    truth[1] = force;
    reading[0] = state[0];
    reading[1] = state[0] != 0 ? p[CLOSES] : 0;
    return true;
}

const us_sensor_kind usi_contact_switch_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "contact-switch",
    .about = "a contact switch: whether its link is pushed",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .n_state = 1,
    .usual_rate = 100,
    .sample = sample,
};
