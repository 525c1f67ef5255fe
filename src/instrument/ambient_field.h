// Magnetometers and compasses: the field around them and the iron of the robot.
//
//     reading = (1 + S) B + h + noise
//
// in the sensor's axes, which turn with the robot and its iron. S, symmetric, is soft iron, h is hard iron.
#ifndef USI_INSTRUMENT_AMBIENT_FIELD_H
#define USI_INSTRUMENT_AMBIENT_FIELD_H

#include "instrument/measure.h"

enum {
    USI_FIELD_SOURCE,
    USI_FIELD_X,
    USI_FIELD_Y,
    USI_FIELD_Z,
    USI_SOFT_X,
    USI_SOFT_Y,
    USI_SOFT_Z,
    USI_SOFT_XY,
    USI_SOFT_XZ,
    USI_SOFT_YZ,
    USI_HARD_X,
    USI_HARD_Y,
    USI_HARD_Z,
    USI_FIELD_NOISE,
    USI_FIELD_QUANTUM,
    USI_FIELD_LIMIT,
    USI_FIELD_PARAMETERS
};

extern const char *const usi_field_sources[];

#define USI_FIELD_ROWS                                                                                       \
    USI_CHOICE("field", usi_field_sources, 0,                                                                \
               "planet: that of the world's place. given: field-x and so on."),                              \
        USI_NUMBER("field-x", "T", -1, 1, 0, "A given field along the world's x axis."),                     \
        USI_NUMBER("field-y", "T", -1, 1, 0, "Along y."), USI_NUMBER("field-z", "T", -1, 1, 0, "Along z."),  \
        USI_NUMBER("soft-iron-x", "1", -0.9, 9, 0, "What soft iron adds along x, of the field along x."),    \
        USI_NUMBER("soft-iron-y", "1", -0.9, 9, 0, "Along y, of that along y."),                             \
        USI_NUMBER("soft-iron-z", "1", -0.9, 9, 0, "Along z, of that along z."),                             \
        USI_NUMBER("soft-iron-xy", "1", -9, 9, 0, "Along x of that along y, and the other way round."),      \
        USI_NUMBER("soft-iron-xz", "1", -9, 9, 0, "Along x of that along z, and the other way round."),      \
        USI_NUMBER("soft-iron-yz", "1", -9, 9, 0, "Along y of that along z, and the other way round."),      \
        USI_NUMBER("hard-iron-x", "T", -1, 1, 0, "Field of the robot's magnets along the sensor's x axis."), \
        USI_NUMBER("hard-iron-y", "T", -1, 1, 0, "Along y."),                                                \
        USI_NUMBER("hard-iron-z", "T", -1, 1, 0, "Along z."),                                                \
        USI_NUMBER("noise", "T", 0, 1, 2e-7, "Standard deviation of each component."),                       \
        USI_NUMBER("quantum", "T", 0, 1, 0, "Components are whole multiples of it; 0: any."),                \
        USI_NUMBER("limit", "T", 0, 100, 0, "Largest component; 0: any.")

// In the sensor's axes: what there is, and what an instrument in its iron measures. `draw`: of its first
// random number.
us_vec3 usi_ambient_field(const us_sensor_view *view, const double *parameter);
us_vec3 usi_field_through_iron(const us_sensor_view *view, const double *parameter, us_vec3 field,
                               int32_t draw);

#endif
