// Chip of a camera: from light to electrons to numbers.
//
//     electrons = radiance * pi/4 / aperture^2 * pitch^2 * time * efficiency / (h c / 550 nm)
//     number    = (2^bits - 1) * response(gain * electrons / full well)
//
// Noise: photons and the dark current come one by one (Poisson), reading out adds a normal number, and each
// pixel has a sensitivity of its own. All are functions of two keys, of the picture and of the chip, and of
// the pixel's number.
#ifndef USI_SENSE_IMAGE_SENSOR_H
#define USI_SENSE_IMAGE_SENSOR_H

#include "understudy/base.h"

typedef struct usi_image_sensor {
    double aperture;    // focal length over width of the opening
    double pitch;       // m, from pixel to pixel
    double efficiency;  // electrons for each photon, if all light were green
    double full_well;   // electrons
    double gain;
    double read_noise;  // electrons, standard deviation
    double dark;        // electrons per second
    double pattern;     // standard deviation of the pixels' sensitivities
    double excess;      // a fault: by how much more than usual all of these are off
    bool has_noise;
    int32_t bits;  // 8 or 16
    bool is_linear;
    // Written by usi_image_sensor_prepare: of 8 bits, above which share of white each number begins, and
    // which one has the share k / 1024.
    double begins[257];
    uint8_t first[1025];
} usi_image_sensor;

// To be called when it is filled in.
void usi_image_sensor_prepare(usi_image_sensor *sensor);

// Electrons per second for a radiance of 1 W/(m^2 sr).
double usi_image_sensor_rate(const usi_image_sensor *sensor);

// s: the exposure time that brings all but the brightest fiftieth of a picture's radiances below four fifths
// of white, within 1e-6 to 1 s. Values of 0 (black sky) do not count; of a black picture 1 s.
double usi_image_sensor_meter(const usi_image_sensor *sensor, int64_t n, const float (*radiance)[3]);

// Electrons that are read where `signal` and the dark current's are the mean: without noise that mean.
double usi_image_sensor_expose(const usi_image_sensor *sensor, double signal, double exposure,
                               uint64_t picture_key, uint64_t chip_key, uint64_t pixel);

// Number of so many electrons, 0 to 2^bits - 1.
uint32_t usi_image_sensor_number(const usi_image_sensor *sensor, double electrons);

#endif
