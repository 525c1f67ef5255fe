// A potentiometer at a joint, read by a converter: from one end of its track to the other the voltage goes
// from 0 to the supply's, bent a little, and the converter has some bits.
#include "instrument/measure.h"

enum { JOINT, LOW, HIGH, VOLTAGE, BITS, NOISE, BEND };
static const us_sensor_parameter parameters[] = {
    USI_OF_JOINT(NAN, "The joint that it measures."),
    USI_NUMBER("low", "rad", -1e3, 1e3, -2.618, "The joint's position at 0 V (m of a slide)."),
    USI_NUMBER("high", "rad", -1e3, 1e3, 2.618, "The joint's position at full voltage; above low."),
    USI_NUMBER("supply", "V", 1e-3, 1e3, 5, "Of its supply, and the converter's reference."),
    USI_WHOLE("bits", 1, 32, 12, "Of the converter."),
    USI_NUMBER("noise", "V", 0, 1e3, 0.001, "Standard deviation of the voltage."),
    USI_NUMBER("nonlinearity", "1", 0, 0.2, 0.002, "Largest deviation from the straight line, of the whole."),
};
static const us_sensor_reading readings[] = {
    {"position", "rad", false}, {"voltage", "V", false}, {"code", "1", true}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    static const double turn = 6.28318530717958647693;
    const double *p = view->parameter, span = p[HIGH] - p[LOW];
    double q, v;
    if (!(span > 0)) return usi_refuse(view, "write a high above low", "high is not above low");
    if (!usi_joint_motion(view, (int32_t)p[JOINT], &q, &v)) return false;
    const double share = fmax(0, fmin(1, (q - p[LOW]) / span)), top = exp2(p[BITS]) - 1;
    const double bent = share + p[BEND] * sin(turn * share);
    const double volts = fmax(0, fmin(p[VOLTAGE], p[VOLTAGE] * bent + p[NOISE] * us_sensor_normal(view, 0)));
    const double code = nearbyint(volts / p[VOLTAGE] * top);
    truth[0] = q;
    truth[1] = p[VOLTAGE] * share;
    truth[2] = nearbyint(share * top);
    reading[0] = p[LOW] + span * code / top;
    reading[1] = p[VOLTAGE] * code / top;
    reading[2] = code;
    return true;
}

const us_sensor_kind usi_potentiometer_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "potentiometer",
    .about = "a potentiometer at a joint, read by a converter of some bits",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 50,
    .sample = sample,
};
