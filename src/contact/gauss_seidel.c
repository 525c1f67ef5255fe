// Block Gauss-Seidel: one contact point after the other gets the impulse that its law asks for while the rest
// stands still.
//
// For large heaps of free bodies, where a few sweeps over compliant rows cost less than one factorisation.
// What makes it fast is what a visit does not touch:
//
//   * Twists are kept about each body's centre of mass and as the CHANGE against the motion without blocks,
//   so that the free
//     motion goes into the rows' offsets once and a body without freedom (infinite mass) needs no special
//     case.
//   * The angular part is scaled by the square root of the inertia: I^-1 = L L^T, w = L x. A row j = L^T (r x
//   d) then serves both ways:
//
//         u = jA . xA + jB . xB + d . (vA - vB),        xA += jA g,   xB += jB g,   vA += d g / mA,   vB -= d
//         g / mB
//
//     Nine vectors per block are read, in one straight line of memory; the bodies' 64 bytes each stay in the
//     cache.
//   * The point's own 3x3 problem is solved exactly (contact__law.h): stick is one small product, slip one
//   evaluation.
//
// The world is a body that is read in one place (all zero) and written in another, so that blocks on the
// ground do not wait for each other. Sweeps always go the same way: going forth and back converges no faster
// when only a few are made, and what is left of the error then rings from step to step (a stack of ten leans
// to and fro for ever with four sweeps).
#include <string.h>

#include "contact/contact.h"
#include "contact/contact__law.h"

// A body in the sweep.
typedef struct moving {
    usi_v4 x;  // L^-1 times the change of angular velocity
    usi_v4 v;  // m/s, change of the centre of mass's velocity; the spare lane holds 1/mass
} moving;

// A body while the rows are made.
typedef struct factor {
    usi_v4 L[3];  // rows of L
    usi_v4 c;     // m, centre of mass from O; spare lane: 1/mass
    usi_v4 w, v;  // twist about O without blocks
} factor;

typedef struct sweep_row {
    usi_v4 ja[3], jb[3], d[3];
    usi_local local;
    double b[3];  // m/s, offset, with the velocity of the free motion
    double R[2];  // 1/kg, normal; tangents
    double g[3];
    int32_t kind;
    int32_t a, b_;       // where the bodies are read
    int32_t to_a, to_b;  // where they are written
    int32_t index;       // of the block
} sweep_row;

enum { WORLD, DUMP, FIRST };             // places in the list of bodies
enum { POINT, DAMPED, TURN, EQUAL };     // kinds of rows
enum { FIRST_STEPS = 3 };                // of Newton, when a point slips for the first time
static const double MAX_FRICTION = 1e8;  // more is the same: nothing slips, and its square stays finite

static size_t up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

size_t usi_gauss_seidel_bytes(int32_t n_body, int32_t n_block) {
    size_t n = (size_t)n_body + FIRST;
    return 64 + up(2 * n * sizeof(moving)) + up(n * sizeof(factor)) + up((size_t)n_block * sizeof(sweep_row));
}

// ---------------------------------------------------------------- rows

// Cholesky of the inverse inertia. A direction that cannot turn (pivot 0) stays 0.
static void factorise(const usi_free *body, factor *f) {
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

static inline usi_v4 scaled_moment(const factor *f, usi_v4 m, usi_v4 d) {
    usi_v4 about_c = m - usi_v4_cross(f->c, d);
    return f->L[0] * usi_v4_lane0(about_c) + f->L[1] * usi_v4_lane1(about_c) +
           f->L[2] * usi_v4_lane2(about_c);
}

// The sums over the lanes of three vectors.
static inline void sums(usi_v4 x, usi_v4 y, usi_v4 z, double out[3]) {
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
static void take_in_damper(double eta, int32_t n, double A[6]) {
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

static void make_row(const factor *bodies, const usi_block *k, int32_t index, sweep_row *r) {
    const factor *A = &bodies[k->a < 0 ? WORLD : k->a + FIRST],
                 *B = &bodies[k->b_ < 0 ? WORLD : k->b_ + FIRST];
    const usi_v4 none = usi_v4_zero(), w = A->w - B->w, v = A->v - B->v;
    r->a = k->a < 0 ? WORLD : k->a + FIRST;
    r->b_ = k->b_ < 0 ? WORLD : k->b_ + FIRST;
    r->to_a = k->a < 0 ? DUMP : r->a;
    r->to_b = k->b_ < 0 ? DUMP : r->b_;
    r->index = index;
    r->kind = k->law == USI_EQUAL ? EQUAL : k->law == USI_TURN ? TURN : k->viscous > 0 ? DAMPED : POINT;
    // A row that is not in use is made of zeros and keeps its impulse 0. A point without friction has only
    // its normal.
    int32_t n = k->law == USI_POINT && !(k->mu > 0) ? 1 : k->n;
    if (n < 2 && r->kind == DAMPED) r->kind = POINT;
    for (int i = 0; i < 3; i++) {
        bool is_used = i < n;
        r->d[i] = is_used ? k->d[i] : none;
        r->ja[i] = is_used ? scaled_moment(A, k->m[i], k->d[i]) : none;
        r->jb[i] = is_used ? -scaled_moment(B, k->m[i], k->d[i]) : none;
        r->b[i] = is_used ? k->b[i] : 0;
        r->g[i] = is_used ? k->g[i] : 0;
    }
    double free[3], K[6], inv_mass = A->c[3] + B->c[3];
    sums(r->ja[0] * r->ja[0] + r->jb[0] * r->jb[0] + inv_mass * r->d[0] * r->d[0],
         r->ja[0] * r->ja[1] + r->jb[0] * r->jb[1] + inv_mass * r->d[0] * r->d[1],
         r->ja[0] * r->ja[2] + r->jb[0] * r->jb[2] + inv_mass * r->d[0] * r->d[2], K);
    sums(r->ja[1] * r->ja[1] + r->jb[1] * r->jb[1] + inv_mass * r->d[1] * r->d[1],
         r->ja[1] * r->ja[2] + r->jb[1] * r->jb[2] + inv_mass * r->d[1] * r->d[2],
         r->ja[2] * r->ja[2] + r->jb[2] * r->jb[2] + inv_mass * r->d[2] * r->d[2], K + 3);
    sums(k->m[0] * w + k->d[0] * v, k->m[1] * w + k->d[1] * v, k->m[2] * w + k->d[2] * v, free);
    if (r->kind == DAMPED) take_in_damper(k->viscous, n, K);
    r->R[0] = k->R[0];
    r->R[1] = k->R[1];
    K[0] += r->R[0];
    K[3] += r->R[1];
    K[5] += r->R[1];
    for (int i = 0; i < 3; i++)
        r->b[i] += i < n ? free[i] : 0;
    if (n < 2) K[3] = 1;
    if (n < 3) K[5] = 1;
    double mu = r->kind == TURN ? k->limit : k->mu;
    mu = mu < MAX_FRICTION ? mu : MAX_FRICTION;
    if (r->kind == TURN) {
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

static inline void apply(moving *body, const sweep_row *r, const double g[3]) {
    moving *A = &body[r->a], *B = &body[r->b_];
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
static inline void residual(const moving *body, const sweep_row *r, double e[3]) {
    const moving *A = &body[r->a], *B = &body[r->b_];
    usi_v4 xa = A->x, xb = B->x, v = A->v - B->v;
    sums(r->ja[0] * xa + r->jb[0] * xb + r->d[0] * v, r->ja[1] * xa + r->jb[1] * xb + r->d[1] * v,
         r->ja[2] * xa + r->jb[2] * xb + r->d[2] * v, e);
    e[0] += r->b[0] + r->R[0] * r->g[0];
    e[1] += r->b[1] + r->R[1] * r->g[1];
    e[2] += r->b[2] + r->R[1] * r->g[2];
}

// A point's friction beside a damper, and the damper's impulse after it. u1, u2: tangential velocities before
// the visit. The damper lets go all at once when the point opens, so that a point on the verge may have no
// answer and open and close with every sweep.
static void visit_damped(sweep_row *r, double eta, const double e[3], double u1, double u2, double next[3]) {
    usi_local *l = &r->local;
    double s[3] = {r->g[0], r->g[1] + eta * u1, r->g[2] + eta * u2},
           e_s[3] = {e[0], e[1] + r->R[1] * eta * u1, e[2] + r->R[1] * eta * u2};
    usi_local_visit(l, s, e_s, FIRST_STEPS, next);
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
static inline void visit_turn(sweep_row *r, double most, double gn, const double e[3], double next[3]) {
    usi_local *l = &r->local;
    next[0] = usi_clamp(r->g[0] - l->k * e[0], usi_friction_limit(most, gn));
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
    usi_local_slip(&rolling, gn, q1, q2, is_first ? FIRST_STEPS : 1, g);
    l->lambda = rolling.lambda;
    next[1] = g[1];
    next[2] = g[2];
}

static inline void visit(moving *body, sweep_row *rows, int32_t i, const usi_block *block) {
    sweep_row *r = &rows[i];
    double e[3], next[3], change[3];
    residual(body, r, e);
    if (r->kind == POINT) {
        usi_local_visit(&r->local, r->g, e, FIRST_STEPS, next);
    } else if (r->kind == DAMPED) {
        const usi_block *k = &block[r->index];
        double u1 = e[1] - r->R[1] * r->g[1] - k->b[1],
               u2 = k->n > 2 ? e[2] - r->R[1] * r->g[2] - k->b[2] : 0;
        visit_damped(r, k->viscous, e, u1, u2, next);
    } else if (r->kind == TURN) {
        visit_turn(r, block[r->index].mu, i > 0 ? rows[i - 1].g[0] : 0, e, next);
    } else {
        usi_local_stick(&r->local, e, next);
        for (int j = 0; j < 3; j++)
            next[j] += r->g[j];
    }
    for (int j = 0; j < 3; j++) {
        change[j] = next[j] - r->g[j];
        r->g[j] = next[j];
    }
    apply(body, r, change);
}

// ---------------------------------------------------------------- sweeps

// The largest change of a body's velocity against `before`, squared; turning counts with the radius of
// gyration. Keeps the velocities in `before`.
static double changed(const moving *body, moving *before, int32_t n) {
    double most = 0;
    for (int32_t i = FIRST; i < n; i++) {
        usi_v4 v = body[i].v - before[i].v, x = body[i].x - before[i].x;
        double linear = usi_v4_dot(v, v), angular = usi_v4_dot(x, x) * body[i].v[3];
        most = linear > most ? linear : most;
        most = angular > most ? angular : most;
        before[i] = body[i];
    }
    return most;
}

int32_t usi_gauss_seidel(usi_free *body, int32_t n_body, usi_block *block, int32_t n_block, int32_t min_sweep,
                         int32_t max_sweep, double tol, void *work) {
    const int32_t n = n_body + FIRST;
    char *memory = (char *)work + ((64 - ((uintptr_t)work & 63)) & 63);
    moving *now = (moving *)memory, *before = now + n;
    factor *factors = (factor *)(memory + up(2 * (size_t)n * sizeof(moving)));
    sweep_row *rows = (sweep_row *)((char *)factors + up((size_t)n * sizeof(factor)));

    memset(now, 0, 2 * (size_t)n * sizeof *now);
    memset(factors, 0, FIRST * sizeof *factors);
    for (int32_t i = 0; i < n_body; i++) {
        factorise(&body[i], &factors[i + FIRST]);
        now[i + FIRST].v[3] = before[i + FIRST].v[3] = body[i].c[3];
    }
    for (int32_t i = 0; i < n_block; i++) {
        make_row(factors, &block[i], i, &rows[i]);
        apply(now, &rows[i], rows[i].g);
    }

    int32_t sweep = 0;
    while (sweep < max_sweep) {
        if (sweep + 1 >= min_sweep && sweep + 1 < max_sweep) memcpy(before, now, (size_t)n * sizeof *now);
        for (int32_t i = 0; i < n_block; i++)
            visit(now, rows, i, block);
        sweep++;
        if (sweep >= min_sweep && sweep < max_sweep && changed(now, before, n) < tol * tol) break;
    }

    for (int32_t i = 0; i < n_body; i++) {
        const factor *f = &factors[i + FIRST];
        const moving *m = &now[i + FIRST];
        usi_v4 dw = usi_v4_set(usi_v4_dot(f->L[0], m->x), usi_v4_dot(f->L[1], m->x),
                               usi_v4_dot(f->L[2], m->x)),
               dv = m->v;
        dv[3] = 0;
        body[i].w = body[i].fw + dw;
        body[i].v = body[i].fv + dv - usi_v4_cross(dw, f->c);
    }
    for (int32_t i = 0; i < n_block; i++) {
        usi_block *k = &block[i];
        for (int j = 0; j < 3; j++)
            k->g[j] = rows[i].g[j];
        k->radius = usi_friction_radius(k, i > 0 ? rows[i - 1].g[0] : 0);
    }
    return sweep;
}
