// Slip and sinkage of a wheel or foot in soil. The truth is the soil contact's own; the reading has the
// errors of an estimate from wheel, body and camera.
#include "instrument/measure.h"

enum { SLIP_NOISE, ANGLE_NOISE, SINKAGE_NOISE, MOMENT_NOISE };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("slip-noise", "1", 0, 10, 0.02, "Standard deviation of the slip."),
    USI_NUMBER("angle-noise", "rad", 0, 10, 0.02, "Standard deviation of the slip angle."),
    USI_NUMBER("sinkage-noise", "m", 0, 10, 0.002, "Standard deviation of the sinkage."),
    USI_NUMBER("moment-noise", "Nm", 0, 1e6, 0.1, "Standard deviation of the moment."),
};
static const us_sensor_reading readings[] = {{"slip", "1", false},
                                             {"slip-angle", "rad", false},
                                             {"sinkage", "m", false},
                                             {"moment", "Nm", false},
                                             {"in-soil", "1", true}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    us_soil_contact found = {.body = {-1}};
    for (int32_t i = 0, n = us_sim_n_soil_contact(view->sim); i < n; i++) {
        const us_soil_contact c = us_sim_get_soil_contact(view->sim, i);
        // Of several soils under a wheel the one that it is deepest in.
        if (c.body.i == view->body && (found.body.i < 0 || c.sinkage > found.sinkage)) found = c;
    }
    const bool is_in = found.body.i >= 0;
    const double values[4] = {found.slip, found.slip_angle, found.sinkage, found.moment};
    for (int i = 0; i < 4; i++) {
        truth[i] = is_in ? values[i] : 0;
        reading[i] = truth[i] + (is_in ? view->parameter[SLIP_NOISE + i] * us_sensor_normal(view, i) : 0);
    }
    truth[4] = reading[4] = is_in;
    return true;
}

const us_sensor_kind usi_wheel_soil_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "wheel-soil",
    .about = "slip and sinkage of a wheel or foot in soil",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 10,
    .sample = sample,
};
