// The law of a block: impulse g from velocity u, its slope G = -dg/du, and along a line.
//
// Two forms of friction. Exact: the circle's radius is mu times the normal impulse of the same u; the slope
// then has entries below the diagonal only (normal speed changes friction, not the other way round) and no
// potential exists. So has a turning block at its limits, which are the point's: its G[1], G[3], G[6] are the
// slopes of its rows by the normal speed of the point. Lagged: the radius is frozen, every block has a convex
// potential, and a search along a line cannot fail. Both agree when the frozen radius is the one that the
// solution gives.
#ifndef USI_CONTACT_LAW_H
#define USI_CONTACT_LAW_H

#include <math.h>

#include "contact/contact.h"

// Two rows within a circle: g = y where |y| <= limit, else limit y/|y|.
static inline bool usi_circle(const double y[2], double limit, double g[2], double t[2], double *out_ratio) {
    double square = y[0] * y[0] + y[1] * y[1];
    if (square <= limit * limit) {
        g[0] = y[0];
        g[1] = y[1];
        return false;
    }
    double inverse = 1 / sqrt(square);
    t[0] = y[0] * inverse;
    t[1] = y[1] * inverse;
    g[0] = limit * t[0];
    g[1] = limit * t[1];
    *out_ratio = limit * inverse;
    return true;
}

// The impulse alone.
static inline void usi_law_impulse(const usi_block *k, const double u[3], bool is_exact, double g[3]) {
    double y[3] = {-(u[0] + k->b[0]) * k->K[0], -(u[1] + k->b[1]) * k->K[1], -(u[2] + k->b[2]) * k->K[1]},
           t[2], ratio;
    if (k->law == USI_POINT) {
        g[0] = y[0] > 0 ? y[0] : 0;
        double limit = is_exact ? k->mu * g[0] : k->radius;
        usi_circle(y + 1, limit, g + 1, t, &ratio);
        if (k->viscous > 0 && limit > 0) {
            g[1] -= k->viscous * u[1];
            g[2] -= k->viscous * u[2];
        }
    } else if (k->law == USI_TURN) {
        double limit = k->mu * k->radius;
        g[0] = y[0] > limit ? limit : y[0] < -limit ? -limit : y[0];
        usi_circle(y + 1, k->limit * k->radius, g + 1, t, &ratio);
    } else {
        g[0] = y[0];
        g[1] = k->n > 1 ? y[1] : 0;
        g[2] = k->n > 2 ? y[2] : 0;
    }
}

// Impulse and slope (row major, but for what a turning block has of its point). Returns whether anything
// pushes.
static inline bool usi_law_slope(const usi_block *k, const double u[3], bool is_exact, double g[3],
                                 double G[9]) {
    double y[3] = {-(u[0] + k->b[0]) * k->K[0], -(u[1] + k->b[1]) * k->K[1], -(u[2] + k->b[2]) * k->K[1]},
           t[2], ratio;
    for (int i = 0; i < 9; i++)
        G[i] = 0;
    if (k->law == USI_EQUAL) {
        for (int i = 0; i < 3; i++) {
            g[i] = i < k->n ? y[i] : 0;
            G[4 * i] = i < k->n ? k->K[i > 0] : 0;
        }
        return true;
    }
    double limit;
    if (k->law == USI_POINT) {
        g[0] = y[0] > 0 ? y[0] : 0;
        G[0] = y[0] > 0 ? k->K[0] : 0;
        limit = is_exact ? k->mu * g[0] : k->radius;
        if (limit <= 0) {
            g[1] = g[2] = 0;
            return g[0] > 0;
        }
    } else {
        double bound = k->mu * k->radius;
        bool is_in = fabs(y[0]) < bound;
        g[0] = is_in ? y[0] : copysign(bound, y[0]);
        G[0] = is_in ? k->K[0] : 0;
        if (is_exact && !is_in) G[1] = copysign(k->mu * k->press, y[0]);
        limit = k->limit * k->radius;
    }
    if (usi_circle(y + 1, limit, g + 1, t, &ratio)) {
        double s = ratio * k->K[1];
        G[4] = s * (1 - t[0] * t[0]);
        G[8] = s * (1 - t[1] * t[1]);
        G[5] = G[7] = -s * t[0] * t[1];
        double by = k->law == USI_POINT ? k->mu * k->K[0] : k->limit * k->press;
        if (is_exact) {
            G[3] = by * t[0];
            G[6] = by * t[1];
        }
    } else {
        G[4] = G[8] = k->K[1];
    }
    if (k->law == USI_POINT && k->viscous > 0) {
        g[1] -= k->viscous * u[1];
        g[2] -= k->viscous * u[2];
        G[4] += k->viscous;
        G[8] += k->viscous;
    }
    return true;
}

#endif
