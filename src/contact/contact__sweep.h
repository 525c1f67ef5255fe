// Rows and visits of block Gauss-Seidel, for the plain sweeps (gauss_seidel.c) and those of four at a time
// (fast/sweep_four.c).
#ifndef USI_CONTACT_SWEEP_H
#define USI_CONTACT_SWEEP_H

#include "contact/contact.h"
#include "contact/contact__law.h"

// A body in the sweep.
typedef struct usi_swept {
    usi_v4 x;  // L^-1 times the change of angular velocity
    usi_v4 v;  // m/s, change of the centre of mass's velocity; the spare lane holds 1/mass
} usi_swept;

// A body while the rows are made.
typedef struct usi_swept_factor {
    usi_v4 L[3];  // rows of L
    usi_v4 c;     // m, centre of mass from O; spare lane: 1/mass
    usi_v4 w, v;  // twist about O without blocks
} usi_swept_factor;

typedef struct usi_sweep_row {
    usi_v4 ja[3], jb[3], d[3];
    usi_local local;
    double b[3];  // m/s, offset, with the velocity of the free motion
    double R[2];  // 1/kg, normal; tangents
    double g[3];
    int32_t kind;
    int32_t a, b_;       // where the bodies are read
    int32_t to_a, to_b;  // where they are written
    int32_t index;       // of the block
} usi_sweep_row;

enum { USI_SWEPT_WORLD, USI_SWEPT_DUMP, USI_SWEPT_FIRST };                    // places in the list of bodies
enum { USI_SWEEP_POINT, USI_SWEEP_DAMPED, USI_SWEEP_TURN, USI_SWEEP_EQUAL };  // kinds of rows
enum { USI_FIRST_SLIPS = 3 };  // of Newton, when a point slips for the first time
static const double USI_MAX_SWEPT_FRICTION =
    1e8;  // more is the same: nothing slips, and its square stays finite

// ---------------------------------------------------------------- rows

// Cholesky of the inverse inertia. A direction that cannot turn (pivot 0) stays 0.
static inline void usi_swept_factorise(const usi_free *body, usi_swept_factor *f) {
    double a = body->inv_I[0][0], b = body->inv_I[0][1], c = body->inv_I[0][2], d = body->inv_I[1][1],
           e = body->inv_I[1][2], g = body->inv_I[2][2];
    double l00 = a > 0 ? sqrt(a) : 0, i0 = a > 0 ? 1 / l00 : 0, l10 = b * i0, l20 = c * i0;
    double p1 = d - l10 * l10, l11 = p1 > 1e-14 * d ? sqrt(p1) : 0, i1 = l11 > 0 ? 1 / l11 : 0,
           l21 = (e - l20 * l10) * i1;
    double p2 = g - l20 * l20 - l21 * l21, l22 = p2 > 1e-14 * g ? sqrt(p2) : 0;
    f->L[0] = usi_v4_set(l00, 0, 0);
    f->L[1] = usi_v4_set(l10, l11, 0);
    f->L[2] = usi_v4_set(l20, l21, l22);
    f->c = body->c;
    f->w = body->fw;
    f->v = body->fv;
}

static inline usi_v4 usi_scaled_moment(const usi_swept_factor *f, usi_v4 m, usi_v4 d) {
    usi_v4 about_c = m - usi_v4_cross(f->c, d);
    return f->L[0] * usi_v4_lane0(about_c) + f->L[1] * usi_v4_lane1(about_c) +
           f->L[2] * usi_v4_lane2(about_c);
}

// The sums over the lanes of three vectors.
static inline void usi_sweep_sums(usi_v4 x, usi_v4 y, usi_v4 z, double out[3]) {
    usi_v4 xy = __builtin_shufflevector(x, y, 0, 4, 2, 6) + __builtin_shufflevector(x, y, 1, 5, 3, 7);
    usi_v4 zz = z + __builtin_shufflevector(z, z, 1, 0, 3, 2);
    xy += usi_v4_swap_halves(xy);
    zz += usi_v4_swap_halves(zz);
    out[0] = xy[0];
    out[1] = xy[1];
    out[2] = zz[0];
}

// A damper -eta ut beside the friction s: g = s - eta ut. Seen from s the bodies move as if the damper
// belonged to them: du = (A^-1 + diag(0, eta, eta))^-1 ds, one tangent after the other.
static inline void usi_take_in_damper(double eta, int32_t n, double A[6]) {
    double f1 = eta / (1 + eta * A[3]);
    double x0 = A[1], x1 = A[3], x2 = A[4];
    A[0] -= f1 * x0 * x0;
    A[1] -= f1 * x0 * x1;
    A[2] -= f1 * x0 * x2;
    A[3] -= f1 * x1 * x1;
    A[4] -= f1 * x1 * x2;
    A[5] -= f1 * x2 * x2;
    if (n < 3) return;
    double f2 = eta / (1 + eta * A[5]);
    x0 = A[2];
    x1 = A[4];
    x2 = A[5];
    A[0] -= f2 * x0 * x0;
    A[1] -= f2 * x0 * x1;
    A[2] -= f2 * x0 * x2;
    A[3] -= f2 * x1 * x1;
    A[4] -= f2 * x1 * x2;
    A[5] -= f2 * x2 * x2;
}

static inline void usi_sweep_make_row(const usi_swept_factor *bodies, const usi_block *k, int32_t index,
                                      usi_sweep_row *r) {
    const usi_swept_factor *A = &bodies[k->a < 0 ? USI_SWEPT_WORLD : k->a + USI_SWEPT_FIRST],
                           *B = &bodies[k->b_ < 0 ? USI_SWEPT_WORLD : k->b_ + USI_SWEPT_FIRST];
    const usi_v4 none = usi_v4_zero(), w = A->w - B->w, v = A->v - B->v;
    r->a = k->a < 0 ? USI_SWEPT_WORLD : k->a + USI_SWEPT_FIRST;
    r->b_ = k->b_ < 0 ? USI_SWEPT_WORLD : k->b_ + USI_SWEPT_FIRST;
    r->to_a = k->a < 0 ? USI_SWEPT_DUMP : r->a;
    r->to_b = k->b_ < 0 ? USI_SWEPT_DUMP : r->b_;
    r->index = index;
    r->kind = k->law == USI_EQUAL      ? USI_SWEEP_EQUAL
              : k->law == USI_ROTATION ? USI_SWEEP_TURN
              : k->viscous > 0         ? USI_SWEEP_DAMPED
                                       : USI_SWEEP_POINT;
    // A row that is not in use is made of zeros and keeps its impulse 0. A point without friction has only
    // its normal.
    int32_t n = k->law == USI_POINT && !(k->mu > 0) ? 1 : k->n;
    if (n < 2 && r->kind == USI_SWEEP_DAMPED) r->kind = USI_SWEEP_POINT;
    for (int i = 0; i < 3; i++) {
        bool is_used = i < n;
        r->d[i] = is_used ? k->d[i] : none;
        r->ja[i] = is_used ? usi_scaled_moment(A, k->m[i], k->d[i]) : none;
        r->jb[i] = is_used ? -usi_scaled_moment(B, k->m[i], k->d[i]) : none;
        r->b[i] = is_used ? k->b[i] : 0;
        r->g[i] = is_used ? k->g[i] : 0;
    }
    double free[3], K[6], inv_mass = A->c[3] + B->c[3];
    usi_sweep_sums(r->ja[0] * r->ja[0] + r->jb[0] * r->jb[0] + inv_mass * r->d[0] * r->d[0],
                   r->ja[0] * r->ja[1] + r->jb[0] * r->jb[1] + inv_mass * r->d[0] * r->d[1],
                   r->ja[0] * r->ja[2] + r->jb[0] * r->jb[2] + inv_mass * r->d[0] * r->d[2], K);
    usi_sweep_sums(r->ja[1] * r->ja[1] + r->jb[1] * r->jb[1] + inv_mass * r->d[1] * r->d[1],
                   r->ja[1] * r->ja[2] + r->jb[1] * r->jb[2] + inv_mass * r->d[1] * r->d[2],
                   r->ja[2] * r->ja[2] + r->jb[2] * r->jb[2] + inv_mass * r->d[2] * r->d[2], K + 3);
    usi_sweep_sums(k->m[0] * w + k->d[0] * v, k->m[1] * w + k->d[1] * v, k->m[2] * w + k->d[2] * v, free);
    if (r->kind == USI_SWEEP_DAMPED) usi_take_in_damper(k->viscous, n, K);
    r->R[0] = k->R[0];
    r->R[1] = k->R[1];
    K[0] += r->R[0];
    K[3] += r->R[1];
    K[5] += r->R[1];
    for (int i = 0; i < 3; i++)
        r->b[i] += i < n ? free[i] : 0;
    if (n < 2) K[3] = 1;
    if (n < 3) K[5] = 1;
    double mu = r->kind == USI_SWEEP_TURN ? k->limit : k->mu;
    mu = mu < USI_MAX_SWEPT_FRICTION ? mu : USI_MAX_SWEPT_FRICTION;
    if (r->kind == USI_SWEEP_TURN) {
        // Torsion and rolling have limits of their own: the rolling pair stands for itself.
        double apart[6] = {K[0], 0, 0, K[3], K[4], K[5]};
        usi_local_set(&r->local, apart, mu);
        r->local.a1 = K[1];
        r->local.a2 = K[2];
    } else {
        usi_local_set(&r->local, K, mu);
    }
}

// ---------------------------------------------------------------- a visit

static inline void usi_sweep_apply(usi_swept *body, const usi_sweep_row *r, const double g[3]) {
    usi_swept *A = &body[r->a], *B = &body[r->b_];
    usi_v4 g0 = usi_v4_all(g[0]), g1 = usi_v4_all(g[1]), g2 = usi_v4_all(g[2]);
    usi_v4 f = r->d[0] * g0 + r->d[1] * g1 + r->d[2] * g2;
    usi_v4 xa = A->x + r->ja[0] * g0 + r->ja[1] * g1 + r->ja[2] * g2,
           xb = B->x + r->jb[0] * g0 + r->jb[1] * g1 + r->jb[2] * g2;
    usi_v4 va = A->v + f * A->v[3], vb = B->v - f * B->v[3];
    body[r->to_a].x = xa;
    body[r->to_a].v = va;
    body[r->to_b].x = xb;
    body[r->to_b].v = vb;
}

// Rows' velocities plus offset and compliance: 0 where an unbounded row is content.
static inline void usi_sweep_residual(const usi_swept *body, const usi_sweep_row *r, double e[3]) {
    const usi_swept *A = &body[r->a], *B = &body[r->b_];
    usi_v4 xa = A->x, xb = B->x, v = A->v - B->v;
    usi_sweep_sums(r->ja[0] * xa + r->jb[0] * xb + r->d[0] * v, r->ja[1] * xa + r->jb[1] * xb + r->d[1] * v,
                   r->ja[2] * xa + r->jb[2] * xb + r->d[2] * v, e);
    e[0] += r->b[0] + r->R[0] * r->g[0];
    e[1] += r->b[1] + r->R[1] * r->g[1];
    e[2] += r->b[2] + r->R[1] * r->g[2];
}

// A point's friction beside a damper, and the damper's impulse after it. u1, u2: tangential velocities before
// the visit. The damper lets go all at once when the point opens, so that a point on the verge may have no
// answer and open and close with every sweep.
static inline void usi_visit_damped(usi_sweep_row *r, double eta, const double e[3], double u1, double u2,
                                    double next[3]) {
    usi_local *l = &r->local;
    double s[3] = {r->g[0], r->g[1] + eta * u1, r->g[2] + eta * u2},
           e_s[3] = {e[0], e[1] + r->R[1] * eta * u1, e[2] + r->R[1] * eta * u2};
    usi_local_visit(l, s, e_s, USI_FIRST_SLIPS, next);
    if (next[0] <= 0) return;
    double ds0 = next[0] - s[0], ds1 = next[1] - s[1], ds2 = next[2] - s[2], K00 = 1 / l->k,
           K01 = K00 * l->a1, K02 = K00 * l->a2;
    double A11 = l->s11 + K01 * l->a1 - r->R[1], A12 = l->s12 + K01 * l->a2,
           A22 = l->s22 + K02 * l->a2 - r->R[1];
    next[1] -= eta * (u1 + K01 * ds0 + A11 * ds1 + A12 * ds2);
    next[2] -= eta * (u2 + K02 * ds0 + A12 * ds1 + A22 * ds2);
}

// Torsion, then rolling within its circle; `gn` is the point's normal impulse. For these rows a1, a2 are K01
// and K02.
static inline void usi_visit_rotation(usi_sweep_row *r, double max, double gn, const double e[3],
                                      double next[3]) {
    usi_local *l = &r->local;
    next[0] = usi_clamp(r->g[0] - l->k * e[0], usi_friction_limit(max, gn));
    double e1 = e[1] + l->a1 * (next[0] - r->g[0]), e2 = e[2] + l->a2 * (next[0] - r->g[0]);
    next[1] = r->g[1] - (l->t11 * e1 + l->t12 * e2);
    next[2] = r->g[2] - (l->t12 * e1 + l->t22 * e2);
    const double radius = usi_friction_limit(l->mu, gn);
    if (usi_coulomb(gn, next[1] * next[1] + next[2] * next[2], radius) == USI_STICK) return;
    if (!(radius > 0)) {
        next[1] = next[2] = 0;
        return;
    }
    bool is_first = l->lambda < 0;
    if (is_first) l->lambda = usi_local_guess(r->g, e);
    usi_local rolling = *l;
    double g[3], q1 = e1 - l->s11 * r->g[1] - l->s12 * r->g[2], q2 = e2 - l->s12 * r->g[1] - l->s22 * r->g[2];
    rolling.a1 = rolling.a2 = 0;
    usi_local_slip(&rolling, gn, q1, q2, is_first ? USI_FIRST_SLIPS : 1, g);
    l->lambda = rolling.lambda;
    next[1] = g[1];
    next[2] = g[2];
}

static inline void usi_sweep_visit(usi_swept *body, usi_sweep_row *rows, int32_t i, const usi_block *block) {
    usi_sweep_row *r = &rows[i];
    double e[3], next[3], change[3];
    usi_sweep_residual(body, r, e);
    if (r->kind == USI_SWEEP_POINT) {
        usi_local_visit(&r->local, r->g, e, USI_FIRST_SLIPS, next);
    } else if (r->kind == USI_SWEEP_DAMPED) {
        const usi_block *k = &block[r->index];
        double u1 = e[1] - r->R[1] * r->g[1] - k->b[1],
               u2 = k->n > 2 ? e[2] - r->R[1] * r->g[2] - k->b[2] : 0;
        usi_visit_damped(r, k->viscous, e, u1, u2, next);
    } else if (r->kind == USI_SWEEP_TURN) {
        usi_visit_rotation(r, block[r->index].mu, i > 0 ? rows[i - 1].g[0] : 0, e, next);
    } else {
        usi_local_stick(&r->local, e, next);
        for (int j = 0; j < 3; j++)
            next[j] += r->g[j];
    }
    for (int j = 0; j < 3; j++) {
        change[j] = next[j] - r->g[j];
        r->g[j] = next[j];
    }
    usi_sweep_apply(body, r, change);
}

// ---------------------------------------------------------------- the order of a sweep

// Blocks that follow each other in the list, between the same two bodies and along the same directions: the
// points of a face.
typedef struct usi_sweep_pair {
    int32_t first, n;  // blocks
    int32_t a, b_;     // bodies, as the blocks'
    int32_t colour;
    bool is_plain;  // points with friction and three rows that are at right angles, and no more than
                    // USI_SWEEP_POINTS: four such pairs can be visited at a time
} usi_sweep_pair;

// Pairs of one colour share no body that moves, so that the order of their visits, and who makes them, does
// not matter. The last colour has what was left when all others were taken: one after the other.
enum { USI_SWEEP_COLOURS = 64, USI_SWEEP_POINTS = 8 };
typedef struct usi_sweep_order {
    usi_sweep_pair *pair;  // sorted by colour; those that are plain first, with most points first
    int32_t n_pair;
    int32_t n_colour;  // at most USI_SWEEP_COLOURS; the colours in use, the last one included
    int32_t start[USI_SWEEP_COLOURS + 1];  // of each colour in `pair`
    int32_t end_plain[USI_SWEEP_COLOURS];
} usi_sweep_order;

// sweep_order.c. `work` has usi_sweep_order_bytes(...) bytes, from a multiple of 64.
size_t usi_sweep_order_bytes(int32_t n_body, int32_t n_block);
void usi_sweep_find_order(const usi_block *block, int32_t n_block, int32_t n_body, void *work,
                          usi_sweep_order *out);

// ---------------------------------------------------------------- the whole

static inline size_t usi_sweep_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// The largest change of a body's velocity against `before`, squared; turning counts with the radius of
// gyration. Keeps the velocities in `before`. Bodies `first` .. `end` - 1 of the list.
static inline double usi_sweep_changed(const usi_swept *body, usi_swept *before, int32_t first, int32_t end) {
    double max = 0;
    for (int32_t i = first; i < end; i++) {
        usi_v4 v = body[i].v - before[i].v, x = body[i].x - before[i].x;
        double linear = usi_v4_dot(v, v), angular = usi_v4_dot(x, x) * body[i].v[3];
        max = linear > max ? linear : max;
        max = angular > max ? angular : max;
        before[i] = body[i];
    }
    return max;
}

// What the sweeps have made of a body.
static inline void usi_swept_finish(const usi_swept_factor *f, const usi_swept *m, usi_free *body) {
    usi_v4 dw = usi_v4_set(usi_v4_dot(f->L[0], m->x), usi_v4_dot(f->L[1], m->x), usi_v4_dot(f->L[2], m->x)),
           dv = m->v;
    dv[3] = 0;
    body->w = body->fw + dw;
    body->v = body->fv + dv - usi_v4_cross(dw, f->c);
}

#endif
