// Coulomb's law, for all solvers, and the law of a block: impulse g from velocity u, its slope G = -dg/du,
// and along a line.
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
#include <stdbool.h>

#include "contact/contact.h"

// ---------------------------------------------------------------- Coulomb's law

// The greatest friction under a normal impulse, N s. Torsion and rolling have the same law with a lever, m,
// in the place of mu, and their limits are N m s.
static inline double usi_friction_limit(double mu, double normal) { return mu * normal; }

// What a point does whose normal impulse is `normal`, and whose friction has the square `square` where
// nothing limits it.
typedef enum usi_contact_mode { USI_OFF, USI_STICK, USI_SLIP } usi_contact_mode;
static inline bool usi_is_within(double square, double limit) { return square <= limit * limit; }
static inline usi_contact_mode usi_coulomb(double normal, double square, double limit) {
    return !(normal > 0) ? USI_OFF : usi_is_within(square, limit) ? USI_STICK : USI_SLIP;
}

// The same of a point that is solved, whose friction lies on the circle where it slips: to rounding.
static inline usi_contact_mode usi_coulomb_solved(double normal, double square, double limit) {
    return !(normal > 0) ? USI_OFF : square >= limit * limit * (1 - 1e-9) ? USI_SLIP : USI_STICK;
}

// Whether impulses g and velocities u of a rigid point fulfil the law to `small`, m/s. Impulses count by the
// speed that they give to the point, `weight` times as much, 1/kg.
static inline bool usi_coulomb_holds(const double g[3], const double u[3], double mu, double weight,
                                     double small) {
    const double limit = usi_friction_limit(mu, g[0]), slip = sqrt(u[1] * u[1] + u[2] * u[2]),
                 friction = sqrt(g[1] * g[1] + g[2] * g[2]);
    const bool is_apart =
        u[0] >= -small && g[0] * weight >= -small && (u[0] <= small || g[0] * weight <= small);
    if (!is_apart || !((friction - limit) * weight <= small)) return false;
    return !(slip > small && (limit * slip + g[1] * u[1] + g[2] * u[2]) * weight > small * slip);
}

// One row within +-limit.
static inline double usi_clamp(double y, double limit) { return y > limit ? limit : y < -limit ? -limit : y; }

// Two rows within a circle: g = y where |y| <= limit, else limit y/|y|.
static inline bool usi_circle(const double y[2], double limit, double g[2], double t[2], double *out_ratio) {
    double square = y[0] * y[0] + y[1] * y[1];
    if (usi_is_within(square, limit)) {
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

// Friction that slips, limit t/|t|, as a function of the normal impulse and of t: its direction, and its
// derivatives, mu e and (limit/|t|) (1 - e e^T).
typedef struct usi_slip {
    double e1, e2;
    double n1, n2;         // by the normal impulse
    double t11, t12, t22;  // by t
} usi_slip;
static inline usi_slip usi_slip_slope(double mu, double limit, double t1, double t2, double length) {
    const double e1 = length > 0 ? t1 / length : 1, e2 = length > 0 ? t2 / length : 0,
                 ratio = length > 0 ? fmax(limit, 0) / length : 0;
    return (usi_slip){e1, e2, mu * e1, mu * e2, ratio * e2 * e2, -ratio * e1 * e2, ratio * e1 * e1};
}

// ---------------------------------------------------------------- the law of a block

// The radius of a block's friction: of a point mu times its normal impulse, of a turning block the normal
// impulse of its point, `before`.
static inline double usi_friction_radius(const usi_block *k, double before) {
    if (k->law == USI_POINT) return usi_friction_limit(k->mu, k->g[0]);
    return k->law == USI_TURN ? before : 0;
}

// The impulse alone.
static inline void usi_law_impulse(const usi_block *k, const double u[3], bool is_exact, double g[3]) {
    double y[3] = {-(u[0] + k->b[0]) * k->K[0], -(u[1] + k->b[1]) * k->K[1], -(u[2] + k->b[2]) * k->K[1]},
           t[2], ratio;
    if (k->law == USI_POINT) {
        g[0] = y[0] > 0 ? y[0] : 0;
        double limit = is_exact ? usi_friction_limit(k->mu, g[0]) : k->radius;
        usi_circle(y + 1, limit, g + 1, t, &ratio);
        if (k->viscous > 0 && limit > 0) {
            g[1] -= k->viscous * u[1];
            g[2] -= k->viscous * u[2];
        }
    } else if (k->law == USI_TURN) {
        g[0] = usi_clamp(y[0], usi_friction_limit(k->mu, k->radius));
        usi_circle(y + 1, usi_friction_limit(k->limit, k->radius), g + 1, t, &ratio);
    } else {
        g[0] = y[0];
        g[1] = k->n > 1 ? y[1] : 0;
        g[2] = k->n > 2 ? y[2] : 0;
    }
}

// Impulse at the velocities u, in lanes 0 to 2 as they are, and its slope (row major, but for what a turning
// block has of its point).
static inline usi_v4 usi_law_slope(const usi_block *k, usi_v4 u, bool is_exact, double G[9]) {
    const usi_v4 K = {k->K[0], k->K[1], k->K[1], 0}, zero = usi_v4_zero();
    const usi_v4 y = -(u + *(const usi_v4_unaligned *)k->b) * K;
    double normal = y[0], limit, t[2], ratio;
    *(usi_v4_unaligned *)G = zero;
    *(usi_v4_unaligned *)(G + 4) = zero;
    G[8] = 0;

    // What is not bounded, and rows along the normal.
    if (k->law == USI_EQUAL) {
        for (int i = 0; i < k->n; i++)
            G[4 * i] = K[i];
        return (usi_v4){y[0], k->n > 1 ? y[1] : 0, k->n > 2 ? y[2] : 0, 0};
    }
    if (k->law == USI_POINT) {
        G[0] = normal > 0 ? K[0] : 0;
        normal = normal > 0 ? normal : 0;
        limit = is_exact ? usi_friction_limit(k->mu, normal) : k->radius;
        // Where it does not press, and where it has no friction.
        if (limit <= 0) return usi_v4_all(normal) * (usi_v4){1, 0, 0, 0};
    } else {
        const double bound = usi_friction_limit(k->mu, k->radius);
        const bool is_in = fabs(normal) < bound;
        G[0] = is_in ? K[0] : 0;
        if (is_exact && !is_in) G[1] = copysign(k->mu * k->press, normal);
        normal = is_in ? normal : copysign(bound, normal);
        limit = usi_friction_limit(k->limit, k->radius);
    }

    // Rows across it.
    double g[2] = {y[1], y[2]};
    G[4] = G[8] = K[1];
    if (usi_circle(g, limit, g, t, &ratio)) {
        const double s = ratio * K[1], by = k->law == USI_POINT ? k->mu * K[0] : k->limit * k->press;
        G[4] = s * (1 - t[0] * t[0]);
        G[8] = s * (1 - t[1] * t[1]);
        G[5] = G[7] = -s * t[0] * t[1];
        G[3] = is_exact ? by * t[0] : 0;
        G[6] = is_exact ? by * t[1] : 0;
    }
    if (k->law == USI_POINT && k->viscous > 0) {
        g[0] -= k->viscous * u[1];
        g[1] -= k->viscous * u[2];
        G[4] += k->viscous;
        G[8] += k->viscous;
    }
    return (usi_v4){normal, g[0], g[1], 0};
}

// ---------------------------------------------------------------- one point

// One contact point on its own: the exact answer of the Coulomb law when everything else stands still.
//
// A point's rows are (normal, tangent, tangent). Its impulse g changes their velocity by A g (A: 3x3,
// symmetric, positive definite), and with the compliance on the diagonal, K = A + R, the residual of the rows
// is e(g) = e + K (g - g_old). The law asks
//
//     off     r0 >= 0                                   g = 0                    (r = e - K g_old: the
//     residual without impulse) stick   e(g) = 0                                  |gt| <= mu g0 slip    e0(g)
//     = 0,  et(g) = -lambda gt            |gt|  = mu g0,  lambda > 0
//
// Slip has one unknown. With g0 taken out by its row (S = Ktt - Kt0 K0t / K00, q = rt - Kt0 r0 / K00, a = K0t
// / K00):
//
//     gt(lambda) = -(S + lambda)^-1 q,   g0(lambda) = -r0/K00 - a . gt(lambda),   find   F(lambda) = mu g0 /
//     |gt| - 1 = 0
//
// F is a straight line when the point is equally heavy in both tangents (S = s 1), and nearly one otherwise:
// Newton from 0 is there in two or three steps. F(0) < 0 because sticking was not possible, F -> infinity
// with lambda: there is always an answer.
//
// A solver that comes back to the point keeps lambda and takes one step of Newton each time: the error dies
// out with the sweeps. Whatever lambda is, the answer given fulfils e0 = 0 and |gt| = mu g0; only the
// direction of gt may be slightly off.
typedef struct usi_local {
    double k, a1, a2;      // 1/K00, K01/K00, K02/K00
    double t11, t12, t22;  // S^-1
    double s11, s12, s22;  // S
    double mu;
    double lambda;  // of the last slip; negative: none yet
} usi_local;

// K in the order 00 01 02 11 12 22, with a positive diagonal. False when it is not positive definite to
// rounding.
static inline bool usi_local_set(usi_local *l, const double K[6], double mu) {
    l->k = 1 / K[0];
    l->a1 = K[1] * l->k;
    l->a2 = K[2] * l->k;
    l->s11 = K[3] - K[1] * l->a1;
    l->s12 = K[4] - K[1] * l->a2;
    l->s22 = K[5] - K[2] * l->a2;
    double det = l->s11 * l->s22 - l->s12 * l->s12, inv = 1 / det;
    l->t11 = l->s22 * inv;
    l->t12 = -l->s12 * inv;
    l->t22 = l->s11 * inv;
    l->mu = mu;
    l->lambda = -1;
    return K[0] > 0 && l->s11 > 0 && det > 1e-14 * K[3] * K[5];
}

// The change of g that makes all three residuals 0.
static inline void usi_local_stick(const usi_local *l, const double e[3], double out_change[3]) {
    double q1 = e[1] - l->a1 * e[0], q2 = e[2] - l->a2 * e[0];
    out_change[1] = -(l->t11 * q1 + l->t12 * q2);
    out_change[2] = -(l->t12 * q1 + l->t22 * q2);
    out_change[0] = -l->k * e[0] - (l->a1 * out_change[1] + l->a2 * out_change[2]);
}

// The impulse of a point that slips, with `n_step` evaluations. `g00` > 0 is its normal impulse without
// friction, -r0/K00; q as above.
static inline void usi_local_slip(usi_local *l, double g00, double q1, double q2, int n_step, double g[3]) {
    double lambda = l->lambda > 0 ? l->lambda : 0, e1 = 0, e2 = 0, g0 = g00;
    for (int i = 0; i < n_step; i++) {
        // The direction needs no determinant: the division runs beside the root.
        double x = l->s11 + lambda, y = l->s22 + lambda, det = x * y - l->s12 * l->s12, inv = 1 / det;
        double c1 = l->s12 * q2 - y * q1, c2 = l->s12 * q1 - x * q2, length = sqrt(c1 * c1 + c2 * c2),
               inv_length = 1 / length;
        e1 = c1 * inv_length;
        e2 = c2 * inv_length;
        double t1 = c1 * inv, t2 = c2 * inv, n = length * inv, inv_n = inv_length * det;
        double dt1 = -(y * t1 - l->s12 * t2) * inv, dt2 = -(x * t2 - l->s12 * t1) * inv;
        g0 = g00 - (l->a1 * t1 + l->a2 * t2);
        double radius = usi_friction_limit(l->mu, g0),
               slope = -l->mu * (l->a1 * dt1 + l->a2 * dt2) - radius * (e1 * dt1 + e2 * dt2) * inv_n;
        double next = lambda + (n - radius) / slope;
        // The root lies to the right while gt is too long. Where the curve bends the wrong way Newton does
        // not know that.
        if (n > radius) {
            lambda = slope > 0 ? next : 2 * lambda + l->s11 + l->s22;
        } else {
            lambda = slope > 0 && next > 0 ? next : 0.5 * lambda;
        }
    }
    // With the direction known the normal row gives the rest. A jamming point (the friction presses as much
    // as it is pressed) takes the normal impulse of this lambda.
    double spread = 1 + l->mu * (l->a1 * e1 + l->a2 * e2);
    g[0] = spread > 0.05 ? g00 / spread : g0 > 0 ? g0 : 0;
    g[1] = usi_friction_limit(l->mu, g[0]) * e1;
    g[2] = usi_friction_limit(l->mu, g[0]) * e2;
    l->lambda = lambda;
}

// The lambda that belongs to an impulse that slips already: et = -lambda gt. 0 when that tells nothing.
static inline double usi_local_guess(const double g[3], const double e[3]) {
    double square = g[1] * g[1] + g[2] * g[2], lambda = -(e[1] * g[1] + e[2] * g[2]);
    return square > 0 && lambda > 0 ? lambda / square : 0;
}

// The impulse of a point that had g and the residual e. `first_steps`: evaluations when it has not slipped
// before.
static inline void usi_local_visit(usi_local *l, const double g[3], const double e[3], int first_steps,
                                   double next[3]) {
    double g00 = g[0] + l->a1 * g[1] + l->a2 * g[2] - l->k * e[0];
    usi_local_stick(l, e, next);
    for (int i = 0; i < 3; i++)
        next[i] += g[i];
    const double square = next[1] * next[1] + next[2] * next[2];
    if (g00 <= 0) {
        next[0] = next[1] = next[2] = 0;
    } else if (usi_coulomb(next[0], square, usi_friction_limit(l->mu, next[0])) != USI_STICK) {
        double q1 = e[1] - l->a1 * e[0] - l->s11 * g[1] - l->s12 * g[2],
               q2 = e[2] - l->a2 * e[0] - l->s12 * g[1] - l->s22 * g[2];
        bool is_first = l->lambda < 0;
        if (is_first) l->lambda = usi_local_guess(g, e);
        usi_local_slip(l, g00, q1, q2, is_first ? first_steps : 1, next);
    }
}

#endif
