// The gauge of the robot's battery: what is left in it, its voltage and its current.
#include "instrument/instrument.h"
#include "understudy/model.h"
#include "understudy/sim.h"

enum { CHARGE, VOLTAGE, CURRENT, N_READING };

static const us_sensor_reading readings[N_READING] = {
    [CHARGE] = {.name = "charge", .unit = "1"},
    [VOLTAGE] = {.name = "voltage", .unit = "V"},
    [CURRENT] = {.name = "current", .unit = "A"},
};

// The energy at the last sample is its state.
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const us_battery_info pack =
        us_model_get_battery(us_sim_view_model(view->sim), (us_battery){view->battery});
    const double energy = view->battery_energy, drawn = state[0] - energy;
    if (view->battery < 0) return false;
    state[0] = energy;
    truth[CHARGE] = energy / pack.capacity;
    // A pack's voltage falls by about an eighth from full to empty.
    truth[VOLTAGE] = pack.voltage * (0.9375 + 0.125 * truth[CHARGE]);
    truth[CURRENT] = view->interval > 0 ? -drawn / (view->interval * truth[VOLTAGE]) : 0;
    for (int i = 0; i < N_READING; i++)
        reading[i] = truth[i];
    return true;
}

const us_sensor_kind usi_battery_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "battery",
    .about = "the gauge of the robot's battery: charge, voltage, current (discharging: negative)",
    .n_reading = N_READING,
    .n_state = 1,
    .readings = readings,
    .usual_rate = 1,
    .message = "sensor_msgs/msg/BatteryState",
    .sample = sample,
};
