// Links of one robot that collide and overlap at the start.
//
// Shapes of public robots are drawn to be seen: those of a trunk and a thigh, with a hip between them, reach
// into each other. Links that a joint joins never collide; these do, and the contact drives them apart
// against the joints for as long as the robot exists.
#include "geom/geom.h"
#include "model/compile.h"

// Deeper than contacts of things at rest, which give way by micrometres.
static const double MIN_DEPTH = 1e-5;  // m

static bool boxes_meet(us_aabb a, us_aabb b) {
    return a.min.x <= b.max.x && b.min.x <= a.max.x && a.min.y <= b.max.y && b.min.y <= a.max.y &&
           a.min.z <= b.max.z && b.min.z <= a.max.z;
}

static us_pose pose_of(const usi_geom *g, const us_pose *X_WN) {
    return g->node < 0 ? g->X_NG : us_pose_mul(X_WN[g->node], g->X_NG);
}

// How deep two shapes reach into each other; 0: they do not.
static double depth_of(const usi_geom *a, const usi_geom *b, const us_pose *X_WN) {
    us_pose X_WA = pose_of(a, X_WN), X_WB = pose_of(b, X_WN);
    if (!boxes_meet(us_geom_box(&a->geom, X_WA), us_geom_box(&b->geom, X_WB))) return 0;
    us_gap gap = {.distance = 0};
    if (us_geom_distance(&a->geom, X_WA, &b->geom, X_WB, &gap)) return 0;
    return gap.distance < -MIN_DEPTH ? -gap.distance : 0;
}

us_status usi_each_overlap(const us_model *m, const us_pose *X_WN, usi_on_overlap *on_overlap,
                           void *context) {
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_geom && !status; i++) {
        const usi_geom *a = &m->geom[i];
        for (int32_t k = i + 1; k < m->n_geom && !status; k++) {
            const usi_geom *b = &m->geom[k];
            if (a->owner < 0 || a->owner != b->owner || a->node == b->node) continue;
            if (!(a->group & b->mask) || !(b->group & a->mask)) continue;
            double depth = depth_of(a, b, X_WN);
            if (depth > 0) status = on_overlap(context, a, b, depth);
        }
    }
    return status;
}

// ---- For programs ----

typedef struct overlap_list {
    const us_model *model;
    us_overlap *out;
    int32_t n, cap;
} overlap_list;

// Of several shapes the deepest counts. Links with shapes that overlap are few.
static us_status add_overlap(void *context, const usi_geom *a, const usi_geom *b, double depth) {
    overlap_list *l = context;
    if (usi_exclusion_find(l->model->exclusion, l->model->n_exclusion, a->body, b->body) >= 0) return US_OK;
    us_overlap o = {{a->body < b->body ? a->body : b->body}, {a->body < b->body ? b->body : a->body}, depth};
    for (int32_t i = 0; i < l->n; i++) {
        if (l->out[i].a.i != o.a.i || l->out[i].b.i != o.b.i) continue;
        if (depth > l->out[i].depth) l->out[i].depth = depth;
        return US_OK;
    }
    if (l->n < l->cap) l->out[l->n++] = o;
    return US_OK;
}

us_status us_model_find_overlaps(const us_model *m, us_overlap *out, int32_t cap, int32_t *out_n) {
    if (!m || !out_n || cap < 0 || (cap > 0 && !out)) return US_ERR_ARG;
    *out_n = 0;
    const size_t bytes = ((size_t)m->n_node + 1) * sizeof(us_pose);
    us_pose *X_WN = usi_alloc(&m->allocator, bytes, _Alignof(us_pose));
    if (!X_WN) return US_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_node; i++) {
        const usi_node *d = &m->node[i];
        us_pose X = us_pose_mul(usi_node_rest(d),
                                usi_node_motion(d, d->kind == USI_NODE_NEXT ? NULL : m->q_start + d->q));
        X_WN[i] = d->parent < 0 ? X : us_pose_mul(X_WN[d->parent], X);
        X_WN[i].q = us_quat_normalize(X_WN[i].q);
    }
    overlap_list l = {m, out, 0, cap};
    us_status status = usi_each_overlap(m, X_WN, add_overlap, &l);
    usi_release(&m->allocator, X_WN, bytes, _Alignof(us_pose));
    *out_n = l.n;
    return status;
}
