// Gauss-Seidel on four pairs of bodies at a time (USI_FAST_SWEEP). Plain code visits one point after the
// other (gauss_seidel.c), in the same order.
//
// Pairs of one colour share no body that moves. So four of them are visited in lockstep, one in each lane:
// the first points of all four, the second ones, and so on. All points of a pair act along the same three
// directions d, which are at right angles: of the velocities of the two centres of mass only the three
// components along d are needed, and between the points of a pair an impulse g changes them by g times the
// sum of the inverse masses. Bodies are read before the first point of a pair and written after its last.
//
//     e = jA . xA + jB . xB + s + b + R g        s: vA - vB along d
//     dg from the law                            contact__law.h
//     xA += jA dg,  xB += jB dg,  s += (1/mA + 1/mB) dg
//
// Pairs that are not plain (contact__sweep.h) are visited as plain code does.
#include <string.h>

#include "contact/contact__parts.h"
#include "contact/contact__sweep.h"
#include "math/vec3x4.h"

// Colours with less groups than this are not worth being shared, and islands with less blocks.
enum { MIN_SHARED = 8, MIN_SHARED_BLOCKS = 200, CHUNKS = 2 };

// One point of each of four pairs. Lanes of pairs with less points are 0, and stay so.
typedef struct four_points {
    usi_vec3x4 ja[3], jb[3];
    usi_v4 b[3], g[3];
    usi_v4 R0, R1;
    usi_v4 k, a1, a2, t11, t12, t22, s11, s12, s22, mu, lambda;  // usi_local
    usi_v4 eta, b1, b2;  // N s: damper; the blocks' own offsets of the tangents
} four_points;

typedef struct four_pairs {
    usi_vec3x4 d[3];
    int32_t a[4], b[4];  // where the bodies are
    int32_t first_block[4];
    int32_t n[4];            // points of each pair
    int32_t first, n_point;  // in the list of points; the most of a pair
    bool has_damper;
} four_pairs;

// A part of a sweep: groups of four, and then pairs that are visited one by one.
typedef struct sweep_colour {
    int32_t first, end;            // groups
    int32_t first_pair, end_pair;  // of the order
} sweep_colour;

typedef enum sweep_task { MAKE, VISIT, FINISH } sweep_task;

typedef struct sweeps {
    usi_block *block;
    usi_swept *now, *before;
    usi_swept_factor *factors;
    usi_sweep_row *rows;  // of pairs that are not plain
    four_pairs *four;
    four_points *points;
    usi_sweep_order order;
    sweep_colour colour[USI_SWEEP_COLOURS];
    usi_free *body;
    int32_t n_body;  // of the list, with the world
    // What the threads are at.
    usi_pool *pool;
    int32_t n_thread, n_chunk;
    const sweep_colour *now_colour;
    sweep_task task;
} sweeps;

static inline usi_v4 choose(usi_v4i where, usi_v4 a, usi_v4 b) {
#ifdef __AVX__
    return (usi_v4)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)where);
#else
    return (usi_v4)(((usi_v4i)a & where) | ((usi_v4i)b & ~where));
#endif
}
static inline bool any_of(usi_v4i a) {
#ifdef __AVX__
    return _mm256_movemask_pd((__m256d)a) != 0;
#else
    return (a[0] | a[1] | a[2] | a[3]) != 0;
#endif
}

// Four vectors, and what stands in their spare lanes.
static inline __attribute__((always_inline)) usi_vec3x4 gather(usi_v4 r0, usi_v4 r1, usi_v4 r2, usi_v4 r3,
                                                               usi_v4 *out_spare) {
    usi_v4 t[4];
    usi_v4_transpose(r0, r1, r2, r3, t);
    if (out_spare) *out_spare = t[3];
    return (usi_vec3x4){t[0], t[1], t[2]};
}

static inline usi_vec3x4 add_three(usi_vec3x4 sum, const usi_vec3x4 j[3], const usi_v4 g[3]) {
    for (int i = 0; i < 3; i++) {
        sum.x += j[i].x * g[i];
        sum.y += j[i].y * g[i];
        sum.z += j[i].z * g[i];
    }
    return sum;
}

// ---------------------------------------------------------------- rows

// Bodies of four pairs while their rows are made.
typedef struct four_factors {
    usi_v4 l00, l10, l11, l20, l21, l22;
    usi_vec3x4 c, w, v;
    usi_v4 inv_mass;
} four_factors;

static inline four_factors gather_factors(const usi_swept_factor *f, const int32_t at[4]) {
    const usi_swept_factor *p = &f[at[0]], *q = &f[at[1]], *r = &f[at[2]], *s = &f[at[3]];
    four_factors out;
    out.l00 = (usi_v4){p->L[0][0], q->L[0][0], r->L[0][0], s->L[0][0]};
    usi_vec3x4 l1 = gather(p->L[1], q->L[1], r->L[1], s->L[1], NULL),
               l2 = gather(p->L[2], q->L[2], r->L[2], s->L[2], NULL);
    out.l10 = l1.x;
    out.l11 = l1.y;
    out.l20 = l2.x;
    out.l21 = l2.y;
    out.l22 = l2.z;
    out.c = gather(p->c, q->c, r->c, s->c, &out.inv_mass);
    out.w = gather(p->w, q->w, r->w, s->w, NULL);
    out.v = gather(p->v, q->v, r->v, s->v, NULL);
    return out;
}

// L^T (m - c x d).
static inline usi_vec3x4 scaled_moments(const four_factors *f, usi_vec3x4 m, usi_vec3x4 c_cross_d) {
    usi_vec3x4 a = usi_vec3x4_sub(m, c_cross_d);
    return (usi_vec3x4){f->l00 * a.x + f->l10 * a.y + f->l20 * a.z, f->l11 * a.y + f->l21 * a.z,
                        f->l22 * a.z};
}

// The local problem from K, as usi_local_set; lanes without a point become 0.
static inline void set_local(four_points *p, const usi_v4 K[6], usi_v4i is_there) {
    const usi_v4 none = usi_v4_zero();
    p->k = choose(is_there, 1 / K[0], none);
    p->a1 = K[1] * p->k;
    p->a2 = K[2] * p->k;
    p->s11 = K[3] - K[1] * p->a1;
    p->s12 = K[4] - K[1] * p->a2;
    p->s22 = K[5] - K[2] * p->a2;
    usi_v4 inv = choose(is_there, 1 / (p->s11 * p->s22 - p->s12 * p->s12), none);
    p->t11 = p->s22 * inv;
    p->t12 = -p->s12 * inv;
    p->t22 = p->s11 * inv;
    p->lambda = usi_v4_all(-1);
}

// As usi_take_in_damper.
static inline void take_in_dampers(usi_v4 eta, usi_v4 A[6]) {
    usi_v4 f = eta / (1 + eta * A[3]), x0 = A[1], x1 = A[3], x2 = A[4];
    A[0] -= f * x0 * x0;
    A[1] -= f * x0 * x1;
    A[2] -= f * x0 * x2;
    A[3] -= f * x1 * x1;
    A[4] -= f * x1 * x2;
    A[5] -= f * x2 * x2;
    f = eta / (1 + eta * A[5]);
    x0 = A[2];
    x1 = A[4];
    x2 = A[5];
    A[0] -= f * x0 * x0;
    A[1] -= f * x0 * x1;
    A[2] -= f * x0 * x2;
    A[3] -= f * x1 * x1;
    A[4] -= f * x1 * x2;
    A[5] -= f * x2 * x2;
}

// What the points of four pairs share while their rows are made.
typedef struct four_sides {
    four_factors A, B;
    usi_vec3x4 cross_a[3], cross_b[3];  // c x d
    usi_v4 free[3];                     // along d, of the motion without blocks
    usi_v4 inv_mass;
    usi_vec3x4 w;
} four_sides;

static const usi_block no_block;

static inline usi_v4 four_numbers(const double *a, const double *b, const double *c, const double *d,
                                  usi_v4 out[4]) {
    usi_v4_transpose(*(const usi_v4_unaligned *)a, *(const usi_v4_unaligned *)b, *(const usi_v4_unaligned *)c,
                     *(const usi_v4_unaligned *)d, out);
    return out[3];
}

static void make_points(const four_sides *s, const usi_block *const k[4], usi_v4i is_there, four_points *p) {
    usi_v4 K[6], numbers[4], damper;
    for (int i = 0; i < 3; i++) {
        usi_vec3x4 m = gather(k[0]->m[i], k[1]->m[i], k[2]->m[i], k[3]->m[i], NULL);
        p->ja[i] = scaled_moments(&s->A, m, s->cross_a[i]);
        usi_vec3x4 jb = scaled_moments(&s->B, m, s->cross_b[i]);
        p->jb[i] = (usi_vec3x4){-jb.x, -jb.y, -jb.z};
        p->b[i] = usi_vec3x4_dot(m, s->w) + s->free[i];
        // Lanes without a point have no moment, but the arms of their bodies: they act on nothing.
        const usi_v4 there = choose(is_there, usi_v4_all(1), usi_v4_zero());
        p->ja[i] = usi_vec3x4_scale(there, p->ja[i]);
        p->jb[i] = usi_vec3x4_scale(there, p->jb[i]);
        p->b[i] *= there;
    }
    for (int i = 0, at = 0; i < 3; i++) {
        for (int j = i; j < 3; j++, at++)
            K[at] = usi_vec3x4_dot(p->ja[i], p->ja[j]) + usi_vec3x4_dot(p->jb[i], p->jb[j]);
    }
    K[0] += s->inv_mass;
    K[3] += s->inv_mass;
    K[5] += s->inv_mass;
    p->mu = four_numbers(k[0]->b, k[1]->b, k[2]->b, k[3]->b, numbers);
    p->mu = choose(p->mu < USI_MAX_SWEPT_FRICTION, p->mu, usi_v4_all(USI_MAX_SWEPT_FRICTION));
    p->b1 = numbers[1];
    p->b2 = numbers[2];
    for (int i = 0; i < 3; i++)
        p->b[i] += numbers[i];
    four_numbers(k[0]->g, k[1]->g, k[2]->g, k[3]->g, numbers);
    for (int i = 0; i < 3; i++)
        p->g[i] = numbers[i];
    damper = four_numbers(k[0]->R, k[1]->R, k[2]->R, k[3]->R, numbers);
    p->eta = damper;
    p->R0 = numbers[0];
    p->R1 = numbers[1];
    if (any_of(damper > 0)) take_in_dampers(damper, K);
    K[0] += p->R0;
    K[3] += p->R1;
    K[5] += p->R1;
    set_local(p, K, is_there);
}

// The rows of four pairs, and the impulses of the last step on their bodies.
static void make_group(sweeps *s, four_pairs *f) {
    four_sides x;
    const usi_block *k[4];
    for (int l = 0; l < 4; l++)
        k[l] = f->n[l] > 0 ? &s->block[f->first_block[l]] : &no_block;
    x.A = gather_factors(s->factors, f->a);
    x.B = gather_factors(s->factors, f->b);
    x.inv_mass = x.A.inv_mass + x.B.inv_mass;
    x.w = usi_vec3x4_sub(x.A.w, x.B.w);
    const usi_vec3x4 v = usi_vec3x4_sub(x.A.v, x.B.v);
    for (int i = 0; i < 3; i++) {
        f->d[i] = gather(k[0]->d[i], k[1]->d[i], k[2]->d[i], k[3]->d[i], NULL);
        x.cross_a[i] = usi_vec3x4_cross(x.A.c, f->d[i]);
        x.cross_b[i] = usi_vec3x4_cross(x.B.c, f->d[i]);
        x.free[i] = usi_vec3x4_dot(f->d[i], v);
    }
    f->has_damper = false;
    for (int32_t i = 0; i < f->n_point; i++) {
        usi_v4i is_there;
        for (int l = 0; l < 4; l++) {
            is_there[l] = i < f->n[l] ? -1 : 0;
            k[l] = i < f->n[l] ? &s->block[f->first_block[l] + i] : &no_block;
        }
        four_points *p = &s->points[f->first + i];
        make_points(&x, k, is_there, p);
        f->has_damper = f->has_damper || any_of(p->eta > 0);
    }
}

// ---------------------------------------------------------------- a visit

// Slip, as usi_local_slip: one evaluation, or USI_FIRST_SLIPS in lanes that slip for the first time.
static inline void slip_four(four_points *p, usi_v4 g00, usi_v4 q1, usi_v4 q2, usi_v4i is_first,
                             usi_v4i slips, usi_v4 g[3]) {
    const usi_v4 none = usi_v4_zero();
    usi_v4 lambda = choose(p->lambda > 0, p->lambda, none), e1 = none, e2 = none, g0 = g00;
    const int n = any_of(is_first & slips) ? USI_FIRST_SLIPS : 1;
    for (int i = 0; i < n; i++) {
        const usi_v4i moves = i == 0 ? (usi_v4i){-1, -1, -1, -1} : is_first;
        usi_v4 x = p->s11 + lambda, y = p->s22 + lambda, det = x * y - p->s12 * p->s12, inv = 1 / det;
        usi_v4 c1 = p->s12 * q2 - y * q1, c2 = p->s12 * q1 - x * q2, length = usi_v4_sqrt(c1 * c1 + c2 * c2),
               inv_length = 1 / length;
        e1 = choose(moves, c1 * inv_length, e1);
        e2 = choose(moves, c2 * inv_length, e2);
        usi_v4 t1 = c1 * inv, t2 = c2 * inv, size = length * inv, inv_n = inv_length * det;
        usi_v4 dt1 = -(y * t1 - p->s12 * t2) * inv, dt2 = -(x * t2 - p->s12 * t1) * inv;
        g0 = choose(moves, g00 - (p->a1 * t1 + p->a2 * t2), g0);
        usi_v4 radius = p->mu * g0,
               slope = -p->mu * (p->a1 * dt1 + p->a2 * dt2) - radius * (e1 * dt1 + e2 * dt2) * inv_n;
        usi_v4 next = lambda + (size - radius) / slope;
        usi_v4 right = choose(slope > 0, next, 2 * lambda + p->s11 + p->s22),
               left = choose((slope > 0) & (next > 0), next, 0.5 * lambda);
        lambda = choose(moves, choose(size > radius, right, left), lambda);
    }
    usi_v4 spread = 1 + p->mu * (p->a1 * e1 + p->a2 * e2);
    g[0] = choose(spread > 0.05, g00 / spread, choose(g0 > 0, g0, none));
    g[1] = p->mu * g[0] * e1;
    g[2] = p->mu * g[0] * e2;
    p->lambda = choose(slips, lambda, p->lambda);
}

// The law of four points, as usi_local_visit.
static inline void local_four(four_points *p, const usi_v4 g[3], const usi_v4 e[3], usi_v4 next[3]) {
    const usi_v4 none = usi_v4_zero();
    usi_v4 g00 = g[0] + p->a1 * g[1] + p->a2 * g[2] - p->k * e[0], q1 = e[1] - p->a1 * e[0],
           q2 = e[2] - p->a2 * e[0];
    usi_v4 c1 = -(p->t11 * q1 + p->t12 * q2), c2 = -(p->t12 * q1 + p->t22 * q2);
    next[0] = g[0] - p->k * e[0] - (p->a1 * c1 + p->a2 * c2);
    next[1] = g[1] + c1;
    next[2] = g[2] + c2;
    const usi_v4 limit = p->mu * next[0], square = next[1] * next[1] + next[2] * next[2];
    const usi_v4i presses = g00 > 0, slips = presses & ~((next[0] > 0) & (square <= limit * limit));
    if (any_of(slips)) {
        usi_v4 s[3];
        q1 -= p->s11 * g[1] + p->s12 * g[2];
        q2 -= p->s12 * g[1] + p->s22 * g[2];
        const usi_v4i is_first = p->lambda < 0;
        // As usi_local_guess.
        usi_v4 length = g[1] * g[1] + g[2] * g[2], along = -(e[1] * g[1] + e[2] * g[2]),
               guess = choose((length > 0) & (along > 0), along / length, none);
        p->lambda = choose(is_first & slips, guess, p->lambda);
        slip_four(p, g00, q1, q2, is_first, slips, s);
        for (int i = 0; i < 3; i++)
            next[i] = choose(slips, s[i], next[i]);
    }
    for (int i = 0; i < 3; i++)
        next[i] = choose(presses, next[i], none);
}

// Friction beside a damper, as usi_visit_damped.
static inline void damped_four(four_points *p, const usi_v4 e[3], usi_v4 next[3]) {
    const usi_v4 u1 = e[1] - p->R1 * p->g[1] - p->b1, u2 = e[2] - p->R1 * p->g[2] - p->b2;
    const usi_v4 s[3] = {p->g[0], p->g[1] + p->eta * u1, p->g[2] + p->eta * u2},
                 e_s[3] = {e[0], e[1] + p->R1 * p->eta * u1, e[2] + p->R1 * p->eta * u2};
    local_four(p, s, e_s, next);
    const usi_v4i presses = next[0] > 0;
    const usi_v4 ds0 = next[0] - s[0], ds1 = next[1] - s[1], ds2 = next[2] - s[2], K00 = 1 / p->k,
                 K01 = K00 * p->a1, K02 = K00 * p->a2;
    const usi_v4 A11 = p->s11 + K01 * p->a1 - p->R1, A12 = p->s12 + K01 * p->a2,
                 A22 = p->s22 + K02 * p->a2 - p->R1;
    next[1] = choose(presses, next[1] - p->eta * (u1 + K01 * ds0 + A11 * ds1 + A12 * ds2), next[1]);
    next[2] = choose(presses, next[2] - p->eta * (u2 + K02 * ds0 + A12 * ds1 + A22 * ds2), next[2]);
}

// The bodies of four pairs.
typedef struct four_bodies {
    usi_vec3x4 x, v;
    usi_v4 inv_mass;
} four_bodies;

static inline four_bodies gather_bodies(const usi_swept *body, const int32_t at[4]) {
    const usi_swept *p = &body[at[0]], *q = &body[at[1]], *r = &body[at[2]], *s = &body[at[3]];
    four_bodies out;
    out.x = gather(p->x, q->x, r->x, s->x, NULL);
    out.v = gather(p->v, q->v, r->v, s->v, &out.inv_mass);
    return out;
}

static inline void scatter_bodies(const four_bodies *from, usi_swept *body, const int32_t at[4]) {
    usi_v4 x[4], v[4];
    usi_v4_transpose(from->x.x, from->x.y, from->x.z, usi_v4_zero(), x);
    usi_v4_transpose(from->v.x, from->v.y, from->v.z, from->inv_mass, v);
    for (int l = 0; l < 4; l++) {
        if (at[l] < USI_SWEPT_FIRST) continue;
        body[at[l]].x = x[l];
        body[at[l]].v = v[l];
    }
}

// What impulses along d do to the velocities of two bodies.
static inline void push(const four_pairs *f, const usi_v4 sum[3], four_bodies *A, four_bodies *B) {
    const usi_vec3x4 p = add_three((usi_vec3x4){usi_v4_zero(), usi_v4_zero(), usi_v4_zero()}, f->d, sum);
    A->v = usi_vec3x4_add(A->v, usi_vec3x4_scale(A->inv_mass, p));
    B->v = usi_vec3x4_sub(B->v, usi_vec3x4_scale(B->inv_mass, p));
}

// The impulses that the rows begin with.
static void start_group(sweeps *s, const four_pairs *f) {
    four_bodies A = gather_bodies(s->now, f->a), B = gather_bodies(s->now, f->b);
    usi_v4 sum[3] = {usi_v4_zero(), usi_v4_zero(), usi_v4_zero()};
    for (const four_points *p = &s->points[f->first]; p < &s->points[f->first + f->n_point]; p++) {
        A.x = add_three(A.x, p->ja, p->g);
        B.x = add_three(B.x, p->jb, p->g);
        for (int i = 0; i < 3; i++)
            sum[i] += p->g[i];
    }
    push(f, sum, &A, &B);
    scatter_bodies(&A, s->now, f->a);
    scatter_bodies(&B, s->now, f->b);
}

static void visit_group(sweeps *s, const four_pairs *f) {
    four_bodies A = gather_bodies(s->now, f->a), B = gather_bodies(s->now, f->b);
    const usi_vec3x4 v = usi_vec3x4_sub(A.v, B.v);
    const usi_v4 inv_mass = A.inv_mass + B.inv_mass;
    usi_v4 sum[3] = {usi_v4_zero(), usi_v4_zero(), usi_v4_zero()},
           along[3] = {usi_vec3x4_dot(f->d[0], v), usi_vec3x4_dot(f->d[1], v), usi_vec3x4_dot(f->d[2], v)};
    for (four_points *p = &s->points[f->first]; p < &s->points[f->first + f->n_point]; p++) {
        usi_v4 e[3], next[3], change[3];
        for (int i = 0; i < 3; i++)
            e[i] = usi_vec3x4_dot(p->ja[i], A.x) + usi_vec3x4_dot(p->jb[i], B.x) + along[i] + p->b[i] +
                   (i == 0 ? p->R0 : p->R1) * p->g[i];
        if (f->has_damper)
            damped_four(p, e, next);
        else
            local_four(p, p->g, e, next);
        for (int i = 0; i < 3; i++) {
            change[i] = next[i] - p->g[i];
            p->g[i] = next[i];
            sum[i] += change[i];
            along[i] += inv_mass * change[i];
        }
        A.x = add_three(A.x, p->ja, change);
        B.x = add_three(B.x, p->jb, change);
    }
    push(f, sum, &A, &B);
    scatter_bodies(&A, s->now, f->a);
    scatter_bodies(&B, s->now, f->b);
}

// ---------------------------------------------------------------- sweeps

static void do_group(sweeps *s, four_pairs *f, sweep_task task) {
    if (task == VISIT) {
        visit_group(s, f);
        return;
    }
    if (task == MAKE) {
        make_group(s, f);
        start_group(s, f);
        return;
    }
    for (int l = 0; l < 4; l++) {
        for (int32_t i = 0; i < f->n[l]; i++) {
            usi_block *k = &s->block[f->first_block[l] + i];
            const four_points *p = &s->points[f->first + i];
            for (int j = 0; j < 3; j++)
                k->g[j] = p->g[j][l];
            k->radius = usi_friction_radius(k, 0);
        }
    }
}

// Blocks of pairs that are not plain.
static void do_block(sweeps *s, int32_t i, sweep_task task) {
    usi_block *k = &s->block[i];
    usi_sweep_row *r = &s->rows[i];
    if (task == VISIT) {
        usi_sweep_visit(s->now, s->rows, i, s->block);
    } else if (task == MAKE) {
        usi_sweep_make_row(s->factors, k, i, r);
        usi_sweep_apply(s->now, r, r->g);
    } else {
        for (int j = 0; j < 3; j++)
            k->g[j] = r->g[j];
        k->radius = usi_friction_radius(k, i > 0 ? s->block[i - 1].g[0] : 0);
    }
}

// A chunk of groups of one colour, in any order and by any thread.
static void do_chunk(void *context, int32_t chunk, int32_t thread) {
    sweeps *s = context;
    const sweep_colour *c = s->now_colour;
    const int32_t n = c->end - c->first, parts = s->n_chunk;
    (void)thread;
    for (int32_t g = c->first + n * chunk / parts; g < c->first + n * (chunk + 1) / parts; g++)
        do_group(s, &s->four[g], s->task);
}

// One pass over all colours. The threads wait for each other only where a colour is large enough.
static void do_pass(sweeps *s, sweep_task task) {
    s->task = task;
    for (int32_t i = 0; i < s->order.n_colour; i++) {
        const sweep_colour *c = &s->colour[i];
        s->now_colour = c;
        s->n_chunk = s->n_thread > 1 && c->end - c->first >= MIN_SHARED ? CHUNKS * s->n_thread : 1;
        usi_pool_run(s->pool, s->n_chunk, 1, do_chunk, s);
        for (int32_t p = c->first_pair; p < c->end_pair; p++) {
            const usi_sweep_pair *pair = &s->order.pair[p];
            for (int32_t k = pair->first; k < pair->first + pair->n; k++)
                do_block(s, k, task);
        }
    }
}

static int32_t do_sweeps(sweeps *s, int32_t min_sweep, int32_t max_sweep, double tol) {
    const int32_t first_look = min_sweep > 1 ? min_sweep : 1;
    int32_t sweep = 0;
    while (sweep < max_sweep) {
        if (sweep + 1 == first_look && sweep + 1 < max_sweep)
            memcpy(s->before, s->now, (size_t)s->n_body * sizeof *s->now);
        do_pass(s, VISIT);
        sweep++;
        if (sweep >= min_sweep && sweep < max_sweep &&
            usi_sweep_changed(s->now, s->before, USI_SWEPT_FIRST, s->n_body) < tol * tol)
            break;
    }
    return sweep;
}

// Groups of four pairs of one colour.
static void group_pairs(sweeps *s) {
    int32_t n_four = 0, n_point = 0;
    for (int32_t i = 0; i < s->order.n_colour; i++) {
        sweep_colour *c = &s->colour[i];
        const int32_t end = s->order.end_plain[i];
        c->first = n_four;
        for (int32_t p = s->order.start[i]; p < end; p += 4) {
            four_pairs *f = &s->four[n_four++];
            for (int l = 0; l < 4; l++) {
                static const usi_sweep_pair none = {.a = -1, .b_ = -1};
                const usi_sweep_pair *pair = p + l < end ? &s->order.pair[p + l] : &none;
                f->a[l] = pair->a < 0 ? USI_SWEPT_WORLD : pair->a + USI_SWEPT_FIRST;
                f->b[l] = pair->b_ < 0 ? USI_SWEPT_WORLD : pair->b_ + USI_SWEPT_FIRST;
                f->first_block[l] = pair->first;
                f->n[l] = pair->n;
            }
            // The first has the most points.
            f->first = n_point;
            f->n_point = f->n[0];
            n_point += f->n_point;
        }
        c->end = n_four;
        c->first_pair = end;
        c->end_pair = s->order.start[i + 1];
    }
}

// Of each colour's groups only the last is not full, and its first one may have more points than the rest.
static size_t max_groups(int32_t n_block) {
    const size_t n = (size_t)n_block, more = n / 4 + USI_SWEEP_COLOURS;
    return n < more ? n : more;
}
static size_t max_points(int32_t n_block) {
    const size_t n = (size_t)n_block, more = n / 4 + USI_SWEEP_COLOURS * USI_SWEEP_POINTS;
    return n < more ? n : more;
}

// The parts of the work space, one after the other.
static size_t lay_out(sweeps *s, char *memory, int32_t n_body, int32_t n_block, char **out_order) {
    const size_t n = (size_t)n_body + USI_SWEPT_FIRST;
    size_t at = 0;
    s->now = (usi_swept *)(memory + at);
    at += usi_sweep_up(n * sizeof *s->now);
    s->before = (usi_swept *)(memory + at);
    at += usi_sweep_up(n * sizeof *s->before);
    s->factors = (usi_swept_factor *)(memory + at);
    at += usi_sweep_up(n * sizeof *s->factors);
    s->rows = (usi_sweep_row *)(memory + at);
    at += usi_sweep_up((size_t)n_block * sizeof *s->rows);
    s->four = (four_pairs *)(memory + at);
    at += usi_sweep_up(max_groups(n_block) * sizeof *s->four);
    s->points = (four_points *)(memory + at);
    at += usi_sweep_up(max_points(n_block) * sizeof *s->points);
    *out_order = memory + at;
    return at + usi_sweep_order_bytes(n_body, n_block);
}

size_t usi_gauss_seidel_four_bytes(int32_t n_body, int32_t n_block) {
    static char nowhere[1];
    sweeps s;
    char *order;
    return 64 + lay_out(&s, nowhere, n_body, n_block, &order);
}

int32_t usi_gauss_seidel_four(usi_free *body, int32_t n_body, usi_block *block, int32_t n_block,
                              int32_t min_sweep, int32_t max_sweep, double tol, void *work, usi_pool *pool) {
    sweeps s;
    char *order;
    lay_out(&s, (char *)work + ((64 - ((uintptr_t)work & 63)) & 63), n_body, n_block, &order);
    s.body = body;
    s.block = block;
    s.n_body = n_body + USI_SWEPT_FIRST;
    s.n_thread = n_block < MIN_SHARED_BLOCKS ? 1 : usi_pool_n_thread(pool);
    s.pool = s.n_thread > 1 ? pool : NULL;
    memset(s.now, 0, USI_SWEPT_FIRST * sizeof *s.now);
    memset(s.factors, 0, USI_SWEPT_FIRST * sizeof *s.factors);
    for (int32_t i = USI_SWEPT_FIRST; i < s.n_body; i++) {
        usi_swept_factorise(&body[i - USI_SWEPT_FIRST], &s.factors[i]);
        s.now[i] = (usi_swept){usi_v4_zero(), {0, 0, 0, body[i - USI_SWEPT_FIRST].c[3]}};
    }
    usi_sweep_find_order(block, n_block, n_body, order, &s.order);
    group_pairs(&s);
    do_pass(&s, MAKE);
    const int32_t n_sweep = do_sweeps(&s, min_sweep, max_sweep, tol);
    do_pass(&s, FINISH);
    for (int32_t i = USI_SWEPT_FIRST; i < s.n_body; i++)
        usi_swept_finish(&s.factors[i], &s.now[i], &body[i - USI_SWEPT_FIRST]);
    return n_sweep;
}
