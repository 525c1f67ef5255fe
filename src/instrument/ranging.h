// Devices that measure one range: a cone of rays, the nearest of which counts.
#ifndef USI_INSTRUMENT_RANGING_H
#define USI_INSTRUMENT_RANGING_H

#include "instrument/measure.h"

enum {
    USI_RANGE_MIN,
    USI_RANGE_MAX,
    USI_RANGE_ANGLE,
    USI_RANGE_NOISE,
    USI_RANGE_NOISE_SHARE,
    USI_RANGE_QUANTUM,
    USI_RANGE_LOSS
};

#define USI_RANGE_ROWS(min, max, angle, noise)                                                         \
    USI_NUMBER("min-range", "m", 0, 1e6, min, "Nearer things are not seen."),                          \
        USI_NUMBER("max-range", "m", 1e-3, 1e7, max, "Farther things are not seen."),                  \
        USI_NUMBER("field-of-view", "rad", 0, 3.1, angle, "The whole angle of its cone; 0: one ray."), \
        USI_NUMBER("noise", "m", 0, 1e6, noise, "Standard deviation."),                                \
        USI_NUMBER("noise-share", "1", 0, 1, 0,                                                        \
                   "Standard deviation that grows with the range, of the range."),                     \
        USI_NUMBER("quantum", "m", 0, 1e6, 0, "Ranges are whole multiples of it; 0: any."),            \
        USI_NUMBER("loss", "1", 0, 1, 0, "How likely a sample is lost by chance.")

// The nearest thing along an axis (world); infinite: nothing within max-range; NaN: ground that could not be
// had.
double usi_cone_range(const us_sensor_view *view, const double *parameter, us_vec3 axis_W);
// What the device says: the range and whether it is one; the largest range where there is none.
bool usi_range_read(const us_sensor_view *view, const double *parameter, double range, double *out);

#endif
