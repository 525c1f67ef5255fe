// Forward dynamics by articulated bodies: three sweeps over the nodes, no matrix.
//
//   outwards   pose, velocity, bias acceleration, inertia and force of each link (with joint accelerations 0)
//   inwards    articulated inertia I and force (n, f): what the rest of the tree beyond a joint feels like from inside.
//              U = I S, d = S.U + diag, u = (tau - S.(n, f)) / d; the parent gets I - U U^T / d and (n, f) + U u
//   outwards   joint acceleration u - (U/d).a, where a is what the joint accelerations inside have added
//
// Because the forces already belong to the bias accelerations, the second and third sweeps are free of velocity terms, and
// their factors U/d, d serve other right-hand sides too. (Featherstone 2008, chapter 7, in the split form.)
//
// Along a chain the articulated inertia stays in registers: only a branch writes it to memory. A chain is bound by latency,
// about 60 cycles a link, most of it product, sum and division of d; the division is kept off the products' path
// by spreading U rather than U/d.
#include "dyn/kinematics.h"

// First sweep: motion, then inertias and forces. Two loops rather than one, so that the second reads components of the
// first one's vectors from memory, where spreading a number over four lanes is free.
static void outwards(us_dyn *d, const double *q, const double *v) {
    const us_model *m = d->model;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    const int32_t n_node = m->n_node;
    usi_link P = d->world;  // the parent's motion: along a chain it never leaves the registers
    usi_angles(d, q);
    for (int32_t i = 0; i < n_node; i++) {
        if (!(node[i].flags & USI_NODE_CARRY)) usi_link_copy_motion(&P, node[i].parent < 0 ? &d->world : &link[node[i].parent]);
        if (node[i].kind == USI_NODE_BALL || node[i].kind == USI_NODE_FREE) {
            i = usi_link_group(d, i, &P, q, v);
        } else {
            usi_link_axis(d, &node[i], &link[i], &P, d->sine[i], d->cosine[i], q, v[i]);
        }
        usi_link_copy_motion(&P, &link[i]);
    }
    for (int32_t i = 0; i < n_node; i++) {
        if (node[i].flags & USI_NODE_MASSIVE) {
            usi_link_inertia(&node[i], &link[i], true);
        } else {
            usi_link_massless(&link[i]);
        }
    }
}

// The articulated inertia, as columns: force (n, f) from motion (w, v). Twelve vectors and the force, by name and not in
// arrays, so that the compiler keeps them in registers.
typedef struct articulated {
    usi_v4 nw0, nw1, nw2, nv0, nv1, nv2, fw0, fw1, fw2, fv0, fv1, fv2;
    usi_v4 n, f;
} articulated;

// A rigid link. h x has the columns (0, hz, -hy), (-hz, 0, hx), (hy, -hx, 0); fw is its negative.
static inline void add_link(articulated *I, const usi_link *k) {
    const usi_v4 zero = usi_v4_zero();
    usi_v4 h = k->h, minus = -h, mass = usi_v4_all(((const double *)&k->h)[3]);
    usi_v4 a = __builtin_shufflevector(h, minus, 0, 2, 5, 3), b = __builtin_shufflevector(h, minus, 6, 1, 0, 3), c = __builtin_shufflevector(h, minus, 1, 4, 2, 3);
    usi_v4 x = __builtin_shufflevector(a, zero, 4, 1, 2, 4), y = __builtin_shufflevector(b, zero, 0, 4, 2, 4), z = __builtin_shufflevector(c, zero, 0, 1, 4, 4);
    I->nw0 += k->J[0], I->nw1 += k->J[1], I->nw2 += k->J[2];
    I->nv0 += x, I->nv1 += y, I->nv2 += z;
    I->fw0 -= x, I->fw1 -= y, I->fw2 -= z;
    I->fv0 += mass * (usi_v4){1, 0, 0, 0}, I->fv1 += mass * (usi_v4){0, 1, 0, 0}, I->fv2 += mass * (usi_v4){0, 0, 1, 0};
    I->n += k->n, I->f += k->f;
}

static inline void add_slot(articulated *I, const usi_slot *s) {
    I->nw0 += s->nw[0], I->nw1 += s->nw[1], I->nw2 += s->nw[2], I->nv0 += s->nv[0], I->nv1 += s->nv[1], I->nv2 += s->nv[2];
    I->fw0 += s->fw[0], I->fw1 += s->fw[1], I->fw2 += s->fw[2], I->fv0 += s->fv[0], I->fv1 += s->fv[1], I->fv2 += s->fv[2];
    I->n += s->n, I->f += s->f;
}

static inline void store_slot(usi_slot *s, const articulated *I, bool is_first) {
    const usi_slot own = {{I->nw0, I->nw1, I->nw2}, {I->nv0, I->nv1, I->nv2}, {I->fw0, I->fw1, I->fw2}, {I->fv0, I->fv1, I->fv2}, I->n, I->f};
    if (is_first) {
        *s = own;
        return;
    }
    for (int c = 0; c < 3; c++) s->nw[c] += own.nw[c], s->nv[c] += own.nv[c], s->fw[c] += own.fw[c], s->fv[c] += own.fv[c];
    s->n += own.n, s->f += own.f;
}

// Second sweep. Returns false when some d is not positive.
static bool inwards(us_dyn *d, const usi_joint_terms *terms) {
    const us_model *m = d->model;
    const double *const tau = terms->tau, *const diag = terms->diag ? terms->diag : m->armature, *const damp = terms->damp;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    double *const pivots = d->pivot;
    const usi_v4 zero = usi_v4_zero();
    articulated I = {zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero};
    bool ok = true;
    for (int32_t i = m->n_node - 1; i >= 0; i--) {
        usi_link *k = &link[i];
        const int32_t flags = node[i].flags;
        if (flags & USI_NODE_STORED) add_slot(&I, &d->slot[i]);
        if (flags & USI_NODE_MASSIVE) add_link(&I, k);
        const double *sw = (const double *)&k->Sw, *sv = (const double *)&k->Sv;
        usi_v4 Uw = (I.nw0 * sw[0] + I.nw1 * sw[1] + I.nw2 * sw[2]) + (I.nv0 * sv[0] + I.nv1 * sv[1] + I.nv2 * sv[2]);
        usi_v4 Uv = (I.fw0 * sw[0] + I.fw1 * sw[1] + I.fw2 * sw[2]) + (I.fv0 * sv[0] + I.fv1 * sv[1] + I.fv2 * sv[2]);
        // The pivot stands in all four lanes, so that what follows needs no spreading.
        usi_v4 pivot = usi_v4_sum_all(k->Sw * Uw + k->Sv * Uv) + usi_v4_all(diag[i]), inverse = 1.0 / pivot;
        pivots[i] = pivot[0];
        ok &= pivot[0] > 0;
        if (damp) inverse = usi_v4_all(usi_damped_inverse(pivot[0], damp[i]));
        usi_v4 push = usi_v4_all(tau[i]) - usi_v4_sum_all(k->Sw * I.n + k->Sv * I.f);
        usi_v4 Kw = Uw * inverse, Kv = Uv * inverse;
        k->Kw = Kw, k->Kv = Kv, k->u = (push * inverse)[0];
        I.n += Kw * push, I.f += Kv * push;
        usi_v4 w0 = usi_v4_lane0(Uw), w1 = usi_v4_lane1(Uw), w2 = usi_v4_lane2(Uw), v0 = usi_v4_lane0(Uv), v1 = usi_v4_lane1(Uv), v2 = usi_v4_lane2(Uv);
        I.nw0 -= Kw * w0, I.nw1 -= Kw * w1, I.nw2 -= Kw * w2, I.nv0 -= Kw * v0, I.nv1 -= Kw * v1, I.nv2 -= Kw * v2;
        I.fw0 -= Kv * w0, I.fw1 -= Kv * w1, I.fw2 -= Kv * w2, I.fv0 -= Kv * v0, I.fv1 -= Kv * v1, I.fv2 -= Kv * v2;
        if (flags & USI_NODE_CARRY) continue;
        if (node[i].parent >= 0) store_slot(&d->slot[node[i].parent], &I, flags & USI_NODE_STORE_FIRST);
        I = (articulated){zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero};
    }
    return ok;
}

// Third sweep. The bias accelerations are done with, so their place takes the added ones.
static void accelerate(us_dyn *d, double *out_a) {
    const us_model *m = d->model;
    const usi_node *const node = m->node;
    usi_link *const link = d->link;
    const int32_t n_node = m->n_node;
    usi_v4 aw = usi_v4_zero(), av = aw;
    for (int32_t i = 0; i < n_node; i++) {
        usi_link *k = &link[i];
        if (!(node[i].flags & USI_NODE_CARRY)) {
            int32_t parent = node[i].parent;
            aw = parent < 0 ? usi_v4_zero() : link[parent].aw;
            av = parent < 0 ? usi_v4_zero() : link[parent].av;
        }
        usi_v4 a = usi_v4_all(k->u) - usi_v4_sum_all(k->Kw * aw + k->Kv * av);
        aw += k->Sw * a, av += k->Sv * a;
        k->aw = aw, k->av = av;
        out_a[i] = a[0];
    }
}

bool usi_aba(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms, const us_wrench *wrench, double *out_a) {
    outwards(d, q, v);
    usi_apply_wrenches(d, wrench);
    bool ok = inwards(d, terms);
    accelerate(d, out_a);
    return ok;
}
