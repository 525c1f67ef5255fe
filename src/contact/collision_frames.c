// Where the links with shapes are at the start of a step, and how they move.
#include <stddef.h>
#include <string.h>

#include "contact/contact__collide.h"

// What a link has of fixed_body stands side by side, from its node on.
enum { FIXED_END = offsetof(usi_collision_body, end_geom) + sizeof(int32_t) };

static void set_axes(usi_collision_body *k) {
    us_mat3 R = us_quat_matrix(k->X_WN.q);
    k->X = usi_v4_set(R.m[0], R.m[3], R.m[6]);
    k->Y = usi_v4_set(R.m[1], R.m[4], R.m[7]);
    k->Z = usi_v4_set(R.m[2], R.m[5], R.m[8]);
}

static void set_world(usi_collision_body *k) {
    k->X_WN = us_pose_identity();
    k->has_rotation = true;
    k->X = usi_v4_set(1, 0, 0);
    k->Y = usi_v4_set(0, 1, 0);
    k->Z = usi_v4_set(0, 0, 1);
    k->p = k->w = k->v = usi_v4_zero();
}

static void place_free(const usi_contacts *c, usi_collision_body *k, const double *q) {
    const usi_node *n = &c->model->node[c->model->tree[k->tree].first];
    const double *a = q + n->q;
    k->has_rotation = true;
    if (n->flags & USI_NODE_TURNED) {
        k->X_WN = us_pose_mul(usi_node_rest(n), (us_pose){{a[0], a[1], a[2], a[3]}, {a[4], a[5], a[6]}});
        k->p = usi_v4_from(k->X_WN.p);
        return;
    }
    *(usi_v4_unaligned *)&k->X_WN.q = *(const usi_v4_unaligned *)a;
    k->p = usi_v4_set(a[4], a[5], a[6]) + n->r;
    k->X_WN.p = usi_v4_vec3(k->p);
}

// The axes of a free body in its place, and its velocity, which the state has along these.
static void set_free_velocity(const usi_contacts *c, usi_collision_body *k, const double *v) {
    const double *t = v + c->model->tree[k->tree].first;
    set_axes(k);
    k->w = usi_v4_columns(k->X, k->Y, k->Z, t);
    k->v = usi_v4_columns(k->X, k->Y, k->Z, t + 3);
}

static void frame_link(const usi_contacts *c, usi_collision_body *k) {
    const usi_link *l = &c->dyn->link[k->node];
    usi_v4 O = c->dyn->origin[k->tree];
    k->X = l->X;
    k->Y = l->Y;
    k->Z = l->Z;
    k->p = l->p + O;
    k->w = l->w;
    k->v = l->v + usi_v4_cross(l->w, l->p);
    k->has_rotation = false;
}

void usi_find_frames(usi_contacts *c, const double *q, const double *v, bool want_still) {
    const us_model *m = c->model;
    if (c->has_joints) usi_all_angles(c->dyn, q);
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (!m->tree[t].is_free_body && (want_still || !usi_is_still_ghost(c, t)))
            usi_kinematics_of(c->dyn, (usi_span){m->tree[t].first, m->tree[t].end}, q, v, NULL);
    }
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        usi_collision_body *k = &c->collide.collision_body[i];
        const usi_collision_body *fixed = &c->fixed_body[i];
        memcpy(&k->node, &fixed->node, FIXED_END - offsetof(usi_collision_body, node));
        if (!want_still && usi_is_still_ghost(c, k->tree)) continue;
        if (k->node < 0) {
            set_world(k);
        } else if (m->tree[k->tree].is_free_body) {
            place_free(c, k, q);
            set_free_velocity(c, k, v);
        } else {
            frame_link(c, k);
            if (m->n_loop > 0) usi_find_rotation(k);
        }
    }
}

us_pose usi_geom_pose(const usi_contacts *c, int32_t geom, const usi_collision_body *k) {
    const usi_geom *g = &c->model->geom[geom];
    if (k->node < 0) return g->X_NG;
    if (!c->is_plain[geom]) return us_pose_mul(usi_body_pose(k), g->X_NG);
    return (us_pose){usi_body_pose(k).q, usi_v4_vec3(k->p + usi_to_world(k, g->X_NG.p))};
}
