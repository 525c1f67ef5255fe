#include "record/residual.h"

#include <math.h>
#include <stdbool.h>

const double usi_residual_stale = 2;
static const double forget_ratio = 0.7;  // below it a difference that began is over

void usi_residual_clear(usi_residual *r) { *r = (usi_residual){.compared = -1, .onset = -1}; }

void usi_residual_update(usi_residual *r, double time, double difference, double tolerance, double weight) {
    if (isnan(difference) || isnan(tolerance)) return;
    bool is_first = r->compared < 0 || time - r->compared > usi_residual_stale;
    r->value += (is_first ? 1 : weight) * (difference - r->value);
    r->tolerance = tolerance;
    r->ratio = fabs(r->value) / tolerance;
    r->compared = time;
    if (r->ratio > 1 && r->onset < 0) r->onset = time;
    if (r->ratio < forget_ratio) r->onset = -1;
}
