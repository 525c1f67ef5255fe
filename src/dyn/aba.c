// Forward dynamics by articulated bodies: three sweeps over the nodes, no matrix.
//
//   outwards   pose, velocity, bias acceleration, inertia and force of each link (with joint accelerations 0)
//   inwards    articulated inertia I and force (n, f): what the rest of the tree beyond a joint feels like
//   from inside.
//              U = I S, d = S.U + diag, u = (tau - S.(n, f)) / d; the parent gets I - U U^T / d and (n, f) +
//              U u
//   outwards   joint acceleration u - (U/d).a, where a is what the joint accelerations inside have added
//
// Because the forces already belong to the bias accelerations, the second and third sweeps are free of
// velocity terms, and their factors U/d, d serve other right-hand sides too. (Featherstone 2008, chapter 7,
// in the split form.)
//
// Along a chain all this hangs on one thread: each link waits for the one outside it to be divided by its d,
// about 75 cycles a link if done as written. So the inward sweep works one link ahead. Before node i's
// division is done, it multiplies the parent's axis S' with what the parent's inertia would be if joint i
// were locked, P: V = P S', c = S'.V, b = U.S'. With the division done, the parent's U' = V - (U/d) b and d'
// = c - b^2/d follow at once. The outward sweep does the same: the joint acceleration needs the parent's
// acceleration only along U, and that is known from the grandparent's and b / d. Inertias stay in registers
// along a chain; only a branch writes them to memory.
#include "dyn/kinematics.h"

// First sweep: motion, then inertias and forces. Two loops rather than one, so that the second reads
// components of the first one's vectors from memory, where spreading a number over four lanes is free.
static void outwards(us_dyn *d, const double *q, const double *v) {
    const us_model *m = d->model;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    const int32_t first = d->first, end = d->end;
    usi_link P;  // the parent's motion: along a chain it never leaves the registers
    usi_link_copy_motion(&P, &d->world);
    for (int32_t i = first; i < end; i++) {
        if (!(node[i].flags & USI_NODE_CARRY))
            usi_link_copy_motion(&P, node[i].parent < 0 ? &d->world : &link[node[i].parent]);
        if (node[i].kind == USI_NODE_BALL || node[i].kind == USI_NODE_FREE) {
            i = usi_link_group(d, i, &P, q, v);
        } else {
            usi_link_axis(d, &node[i], &link[i], &P, d->sine[i], d->cosine[i], q, v[i]);
        }
        usi_link_copy_motion(&P, &link[i]);
    }
    for (int32_t i = first; i < end; i++) {
        if (node[i].flags & USI_NODE_MASSIVE) {
            usi_link_inertia(&node[i], &link[i], true);
        } else {
            usi_link_massless(&link[i]);
        }
    }
}

// The articulated inertia, as columns: force (n, f) from motion (w, v). Twelve vectors and the force, by name
// and not in arrays, so that the compiler keeps them in registers.
typedef struct articulated {
    usi_v4 nw0, nw1, nw2, nv0, nv1, nv2, fw0, fw1, fw2, fv0, fv1, fv2;
    usi_v4 n, f;
} articulated;

// A rigid link. h x has the columns (0, hz, -hy), (-hz, 0, hx), (hy, -hx, 0); fw is its negative.
static inline void add_link(articulated *I, const usi_link *k) {
    const usi_v4 zero = usi_v4_zero();
    usi_v4 h = k->h, minus = -h, mass = usi_v4_all(((const double *)&k->h)[3]);
    usi_v4 a = __builtin_shufflevector(h, minus, 0, 2, 5, 3),
           b = __builtin_shufflevector(h, minus, 6, 1, 0, 3),
           c = __builtin_shufflevector(h, minus, 1, 4, 2, 3);
    usi_v4 x = __builtin_shufflevector(a, zero, 4, 1, 2, 4), y = __builtin_shufflevector(b, zero, 0, 4, 2, 4),
           z = __builtin_shufflevector(c, zero, 0, 1, 4, 4);
    I->nw0 += k->J[0];
    I->nw1 += k->J[1];
    I->nw2 += k->J[2];
    I->nv0 += x;
    I->nv1 += y;
    I->nv2 += z;
    I->fw0 -= x;
    I->fw1 -= y;
    I->fw2 -= z;
    I->fv0 += mass * (usi_v4){1, 0, 0, 0};
    I->fv1 += mass * (usi_v4){0, 1, 0, 0};
    I->fv2 += mass * (usi_v4){0, 0, 1, 0};
    I->n += k->n;
    I->f += k->f;
}

static inline void add_slot(articulated *I, const usi_slot *s) {
    I->nw0 += s->nw[0];
    I->nw1 += s->nw[1];
    I->nw2 += s->nw[2];
    I->nv0 += s->nv[0];
    I->nv1 += s->nv[1];
    I->nv2 += s->nv[2];
    I->fw0 += s->fw[0];
    I->fw1 += s->fw[1];
    I->fw2 += s->fw[2];
    I->fv0 += s->fv[0];
    I->fv1 += s->fv[1];
    I->fv2 += s->fv[2];
    I->n += s->n;
    I->f += s->f;
}

static inline void store_slot(usi_slot *s, const articulated *I, bool is_first) {
    const usi_slot own = {{I->nw0, I->nw1, I->nw2},
                          {I->nv0, I->nv1, I->nv2},
                          {I->fw0, I->fw1, I->fw2},
                          {I->fv0, I->fv1, I->fv2},
                          I->n,
                          I->f};
    if (is_first) {
        *s = own;
        return;
    }
    for (int c = 0; c < 3; c++) {
        s->nw[c] += own.nw[c];
        s->nv[c] += own.nv[c];
        s->fw[c] += own.fw[c];
        s->fv[c] += own.fv[c];
    }
    s->n += own.n;
    s->f += own.f;
}

// A node's own link, and what its stored children left.
static inline void add_node(articulated *I, const us_dyn *d, const usi_node *n, const usi_link *k,
                            int32_t i) {
    if (n->flags & USI_NODE_STORED) add_slot(I, &d->slot[i]);
    if (n->flags & USI_NODE_MASSIVE) add_link(I, k);
}

// I S, as (w, v) halves.
typedef struct halves {
    usi_v4 w, v;
} halves;

static inline halves times_axis(const articulated *I, const usi_link *k) {
    const double *sw = (const double *)&k->Sw, *sv = (const double *)&k->Sv;
    halves U = {(I->nw0 * sw[0] + I->nw1 * sw[1] + I->nw2 * sw[2]) +
                    (I->nv0 * sv[0] + I->nv1 * sv[1] + I->nv2 * sv[2]),
                (I->fw0 * sw[0] + I->fw1 * sw[1] + I->fw2 * sw[2]) +
                    (I->fv0 * sv[0] + I->fv1 * sv[1] + I->fv2 * sv[2])};
    return U;
}

// The scalar product with an axis, in all four lanes, so that what follows needs no spreading.
static inline usi_v4 along(const usi_link *k, usi_v4 w, usi_v4 v) {
    return usi_v4_sum_all(k->Sw * w + k->Sv * v);
}

// I - K U^T.
static inline void release(articulated *I, halves K, halves U) {
    usi_v4 w0 = usi_v4_lane0(U.w), w1 = usi_v4_lane1(U.w), w2 = usi_v4_lane2(U.w), v0 = usi_v4_lane0(U.v),
           v1 = usi_v4_lane1(U.v), v2 = usi_v4_lane2(U.v);
    I->nw0 -= K.w * w0;
    I->nw1 -= K.w * w1;
    I->nw2 -= K.w * w2;
    I->nv0 -= K.w * v0;
    I->nv1 -= K.w * v1;
    I->nv2 -= K.w * v2;
    I->fw0 -= K.v * w0;
    I->fw1 -= K.v * w1;
    I->fw2 -= K.v * w2;
    I->fv0 -= K.v * v0;
    I->fv1 -= K.v * v1;
    I->fv2 -= K.v * v2;
}

// usi_damped_inverse in all four lanes.
static inline usi_v4 damped_inverse(usi_v4 pivot, usi_v4 damp) {
    return (6.0 * pivot + damp) / (pivot * (6.0 * pivot + 4.0 * damp) + damp * damp);
}

// Second sweep. Returns false when some d is not positive.
static bool inwards(us_dyn *d, const usi_joint_terms *terms) {
    const us_model *m = d->model;
    const double *const tau = terms->tau, *const diag = terms->diag ? terms->diag : m->armature,
                        *const damp = terms->damp;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    double *const pivots = d->pivot;
    const usi_v4 zero = usi_v4_zero();
    const articulated nothing = {zero, zero, zero, zero, zero, zero, zero,
                                 zero, zero, zero, zero, zero, zero, zero};
    articulated I = nothing;
    halves U = {zero, zero};
    usi_v4 pivot = zero;
    bool ok = true, is_known = false;  // whether I, U and pivot of this node came from its child
    for (int32_t i = d->end - 1; i >= d->first; i--) {
        usi_link *k = &link[i];
        if (!is_known) {
            I = nothing;
            add_node(&I, d, &node[i], k, i);
            U = times_axis(&I, k);
            pivot = along(k, U.w, U.v) + usi_v4_all(diag[i]);
        }
        pivots[i] = pivot[0];
        ok &= pivot[0] > 0;
        usi_v4 inverse = damp ? damped_inverse(pivot, usi_v4_all(damp[i])) : 1.0 / pivot;
        usi_v4 push = usi_v4_all(tau[i]) - along(k, I.n, I.f);
        halves K = {U.w * inverse, U.v * inverse};
        k->Kw = K.w;
        k->Kv = K.v;
        k->u = (push * inverse)[0];
        k->inv_d = inverse[0];
        // Ahead of the division: the parent's inertia with this joint locked, along the parent's axis.
        halves V = {zero, zero};
        usi_v4 b = zero, c = zero;
        is_known = node[i].flags & USI_NODE_CARRY;
        if (is_known) {
            const usi_link *parent = k - 1;
            add_node(&I, d, &node[i - 1], parent, i - 1);
            V = times_axis(&I, parent);
            b = along(parent, U.w, U.v);
            c = along(parent, V.w, V.v) + usi_v4_all(diag[i - 1]);
        }
        release(&I, K, U);
        usi_v4 reach = b * inverse;
        U = (halves){V.w - K.w * b, V.v - K.v * b};
        pivot = c - b * reach;
        k->reach = reach[0];
        I.n += K.w * push;
        I.f += K.v * push;
        if (!is_known && node[i].parent >= 0)
            store_slot(&d->slot[node[i].parent], &I, node[i].flags & USI_NODE_STORE_FIRST);
    }
    return ok;
}

// Third sweep. The bias accelerations are done with, so their place takes the added ones.
static void accelerate(us_dyn *d, double *out_a) {
    const us_model *m = d->model;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    const int32_t first = d->first, end = d->end;
    const usi_v4 zero = usi_v4_zero();
    // (aw, av) is the acceleration of the parent without its own joint's part, which is `last`.
    usi_v4 aw = zero, av = zero, last = zero;
    for (int32_t i = first; i < end; i++) {
        usi_link *k = &link[i];
        usi_v4 a;
        if (node[i].flags & USI_NODE_CARRY) {
            a = usi_v4_all(k->u) - usi_v4_sum_all(k->Kw * aw + k->Kv * av) - usi_v4_all(k->reach) * last;
            aw += (k - 1)->Sw * last;
            av += (k - 1)->Sv * last;
        } else {
            int32_t parent = node[i].parent;
            aw = parent < 0 ? zero : link[parent].aw;
            av = parent < 0 ? zero : link[parent].av;
            a = usi_v4_all(k->u) - usi_v4_sum_all(k->Kw * aw + k->Kv * av);
        }
        k->aw = aw + k->Sw * a;
        k->av = av + k->Sv * a;
        last = a;
        out_a[i] = a[0];
    }
}

bool usi_aba(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
             const us_wrench *wrench, double *out_a) {
    bool ok = true;
    usi_angles(d, q);
    for (int32_t r = 0; r < d->n_run; r++) {
        usi_take_run(d, r);
        outwards(d, q, v);
        usi_apply_wrenches(d, wrench);
        ok &= inwards(d, terms);
        accelerate(d, out_a);
    }
    return ok;
}

// Velocities, bias accelerations and forces at the positions of the last evaluation.
static void velocities(us_dyn *d, const double *v) {
    const us_model *m = d->model;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    usi_v4 w = usi_v4_zero(), o = w, Vw = w, Vo = w, aw = w, av = w;
    for (int32_t i = d->first; i < d->end; i++) {
        usi_link *k = &link[i];
        if (!(node[i].flags & USI_NODE_CARRY)) {
            const usi_link *P = node[i].parent < 0 ? &d->world : &link[node[i].parent];
            w = P->w;
            o = P->v;
            aw = P->aw;
            av = P->av;
        }
        // The axes of a ball or free joint all turn with what they hang on.
        if (node[i].kind != USI_NODE_NEXT) {
            Vw = w;
            Vo = o;
        }
        usi_v4 dw = k->Sw * v[i], dv = k->Sv * v[i];
        w += dw;
        o += dv;
        aw += usi_v4_cross(Vw, dw);
        av += usi_v4_cross2(Vw, dv, Vo, dw);
        k->w = w;
        k->v = o;
        k->aw = aw;
        k->av = av;
    }
    for (int32_t i = d->first; i < d->end; i++) {
        if (node[i].flags & USI_NODE_MASSIVE) {
            usi_link_force(&link[i]);
        } else {
            link[i].n = link[i].f = usi_v4_zero();
        }
    }
}

// The inward sweep for forces alone.
static void push_inwards(us_dyn *d, const double *tau) {
    const us_model *m = d->model;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    usi_v4 n = usi_v4_zero(), f = n;
    for (int32_t i = d->end - 1; i >= d->first; i--) {
        usi_link *k = &link[i];
        n += k->n;
        f += k->f;
        usi_v4 push = usi_v4_all(tau[i]) - along(k, n, f);
        k->u = push[0] * k->inv_d;
        n += k->Kw * push;
        f += k->Kv * push;
        if (node[i].flags & USI_NODE_CARRY) continue;
        if (node[i].parent >= 0) {
            link[node[i].parent].n += n;
            link[node[i].parent].f += f;
        }
        n = f = usi_v4_zero();
    }
}

void usi_aba_again(us_dyn *d, const double *v, const usi_joint_terms *terms, const us_wrench *wrench,
                   double *out_a) {
    for (int32_t r = 0; r < d->n_run; r++) {
        usi_take_run(d, r);
        velocities(d, v);
        usi_apply_wrenches(d, wrench);
        push_inwards(d, terms->tau);
        accelerate(d, out_a);
    }
}
