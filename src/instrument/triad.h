// Three gyroscopes or accelerometers at right angles, or nearly: what makes their reading differ from truth.
//
//     y = round( limit( (1 + S + M) x + G f + b0 + bT dT + b(t) + k(t) + n ) )
//
// S: scale errors; M: misalignment, small angles; G: g-sensitivity, of gyroscopes, times the specific force;
// b0: the bias at power-on; bT: what it changes by per kelvin; b: bias instability (Gauss-Markov); k: its
// walk; n: white noise, by density and as written for each sample. S, M, G, b0 and bT are drawn once for each
// unit, by its seed, from the deviations that data sheets give.
#ifndef USI_INSTRUMENT_TRIAD_H
#define USI_INSTRUMENT_TRIAD_H

#include "instrument/measure.h"

// Parameters of a triad, in this order, from its first on.
enum {
    USI_TRIAD_NOISE,
    USI_TRIAD_DENSITY,
    USI_TRIAD_BIAS,
    USI_TRIAD_INSTABILITY,
    USI_TRIAD_INSTABILITY_TIME,
    USI_TRIAD_WALK,
    USI_TRIAD_SCALE,
    USI_TRIAD_MISALIGNMENT,
    USI_TRIAD_WARMTH,
    USI_TRIAD_LIMIT,
    USI_TRIAD_QUANTUM,
    USI_TRIAD_PARAMETERS,
    USI_TRIAD_OWN = 15,                    // random numbers of a unit
    USI_TRIAD_STATES = 6 + USI_TRIAD_OWN,  // doubles that it keeps: two processes of three axes, and those
    USI_TRIAD_DRAWS = 16,                  // random numbers of a sample
};

#define USI_TRIAD_ROWS(prefix, unit, per_root, walk, per_kelvin)                                             \
    USI_NUMBER(prefix "-noise", unit, 0, 1e6, 0, "Standard deviation of each component, of each sample."),   \
        USI_NUMBER(prefix "-density", per_root, 0, 1e6, 0,                                                   \
                   "White noise by its density (random walk of the integral)."),                             \
        USI_NUMBER(prefix "-bias", unit, 0, 1e6, 0, "Deviation of the bias from unit to unit."),             \
        USI_NUMBER(prefix "-instability", unit, 0, 1e6, 0,                                                   \
                   "Bias instability: the Allan deviation's flat is 0.664 of it."),                          \
        USI_NUMBER(prefix "-instability-time", "s", 1e-3, 1e9, 100, "Correlation time of the instability."), \
        USI_NUMBER(prefix "-walk", walk, 0, 1e6, 0, "Random walk of the bias."),                             \
        USI_NUMBER(prefix "-scale", "1", 0, 1, 0, "Deviation of the scale error."),                          \
        USI_NUMBER(prefix "-misalignment", "rad", 0, 0.5, 0,                                                 \
                   "Deviation of the angles between axes and case."),                                        \
        USI_NUMBER(prefix "-warmth", per_kelvin, 0, 1e6, 0,                                                  \
                   "Deviation of the bias's change by temperature."),                                        \
        USI_NUMBER(prefix "-limit", unit, 0, 1e9, 0, "Largest reading; 0: none."),                           \
        USI_NUMBER(prefix "-quantum", unit, 0, 1e6, 0, "Readings are whole multiples of it; 0: any.")

typedef struct usi_triad {
    const double *parameter;  // from the first of the triad's on
    double *state;
    int32_t draw;   // first random number of a sample
    double warmth;  // K above that of calibration
    us_vec3 added;  // in its axes: what g-sensitivity adds
} usi_triad;

// Draws the unit's own numbers, the first of which is `own`.
void usi_triad_start(const us_sensor_view *view, int32_t own, double *state);
us_vec3 usi_triad_read(const us_sensor_view *view, const usi_triad *t, us_vec3 truth);

#endif
