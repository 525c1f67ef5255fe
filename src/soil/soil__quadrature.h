// Points and weights for the integrals over a wheel's rim: on [0, 1], from where the stress is 0, the entry
// or the exit, to where it is maximal.
#ifndef USI_SOIL_QUADRATURE_H
#define USI_SOIL_QUADRATURE_H

#include <stdbool.h>

#include "math/v4_functions.h"

enum { USI_POINTS = 8, USI_MAX_POINTS = 48 };
typedef struct usi_quadrature {
    _Alignas(32) double at[USI_MAX_POINTS], weight[USI_MAX_POINTS];
    double stress_weight[USI_MAX_POINTS];  // for what is in proportion to the stress
    int n;                                 // a multiple of 4
} usi_quadrature;

// Eight points, for a stress that is t^power times something smooth, and other functions that are smooth.
void usi_rule_of_power(double power, usi_quadrature *out);
// Pieces between up to two cuts within (0, 1), others are left out, for functions that have corners at these
// and any power of t, or a steep beginning; is_smooth: none of the latter, so that eight points are enough
// for a piece.
void usi_rule_of_pieces(const double cut[2], bool is_smooth, usi_quadrature *out);

#endif
