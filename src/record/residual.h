// How far two streams differ in one number, beside a tolerance: the difference of late, and since when it is
// beyond.
#ifndef USI_RECORD_RESIDUAL_H
#define USI_RECORD_RESIDUAL_H

extern const double usi_residual_stale;  // s without a comparison after which the last one counts no more

typedef struct usi_residual {
    double value, tolerance, ratio;  // the first less the second, low-passed
    double compared;                 // time of the last comparison, s; negative: never
    double onset;                    // since when the ratio is above 1, s; negative: it is not
} usi_residual;

void usi_residual_clear(usi_residual *r);
// Takes the difference at a time. `weight` of the new value in the low pass, 1: no filter. NaN: not compared.
void usi_residual_update(usi_residual *r, double time, double difference, double tolerance, double weight);

#endif
