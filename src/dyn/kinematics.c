// Positions, velocities, accelerations of all nodes, from the roots outwards; and what hangs on that:
// Jacobians, link poses.
#include "dyn/kinematics.h"

void usi_all_angles(us_dyn *d, const double *q) { usi_angles(d, q); }

void usi_angles_of(us_dyn *d, usi_span span, const double *q) {
    for (int32_t i = span.first; i < span.end; i++) {
        const usi_node *n = &d->model->node[i];
        if (n->kind != USI_NODE_HINGE && n->kind != USI_NODE_SCREW) continue;
        _Alignas(32) double angle[4] = {q[n->q]}, sine[4], cosine[4];
        usi_sincos(4, angle, sine, cosine);
        d->angle[i] = angle[0];
        d->sine[i] = sine[0];
        d->cosine[i] = cosine[0];
    }
}

void usi_kinematics_of(us_dyn *d, usi_span span, const double *q, const double *v, const double *a) {
    const us_model *m = d->model;
    for (int32_t i = span.first; i < span.end; i++) {
        const usi_node *n = &m->node[i];
        const usi_link *P = n->parent < 0 ? &d->world : &d->link[n->parent];
        int32_t first = i;
        if (n->kind == USI_NODE_BALL || n->kind == USI_NODE_FREE) {
            i = usi_link_group(d, i, P, q, v);
        } else {
            usi_link_axis(d, n, &d->link[i], P, d->sine[i], d->cosine[i], q, v ? v[i] : 0);
        }
        for (int32_t j = first; v && a && j <= i; j++) {
            // Within a group the later nodes start from the earlier ones, so each adds what the ones before
            // it were given.
            usi_v4 dw = usi_v4_zero(), dv = usi_v4_zero();
            for (int32_t k = first; k <= j; k++) {
                dw += d->link[k].Sw * a[k];
                dv += d->link[k].Sv * a[k];
            }
            d->link[j].aw += dw;
            d->link[j].av += dv;
        }
    }
}

void usi_kinematics(us_dyn *d, const double *q, const double *v, const double *a) {
    usi_angles(d, q);
    usi_kinematics_of(d, (usi_span){0, d->model->n_node}, q, v, a);
}

void usi_inertias(us_dyn *d, bool want_forces) {
    usi_inertias_of(d, (usi_span){0, d->model->n_node}, want_forces);
}

void usi_inertias_of(us_dyn *d, usi_span span, bool want_forces) {
    const us_model *m = d->model;
    for (int32_t i = span.first; i < span.end; i++) {
        if (m->node[i].flags & USI_NODE_MASSIVE) {
            usi_link_inertia(&m->node[i], &d->link[i], want_forces);
        } else {
            usi_link_massless(&d->link[i]);
        }
    }
}

void usi_apply_wrenches(us_dyn *d, const us_wrench *wrench) {
    const us_model *m = d->model;
    for (int32_t b = 0; wrench && b < m->n_body; b++) {
        const usi_body *body = &m->body[b];
        if (body->node < d->first || body->node >= d->end) continue;
        usi_link *k = &d->link[body->node];
        usi_v4 p = usi_link_point(k, body->X_NB.p), f = usi_v4_from(wrench[b].f);
        k->f -= f;
        k->n -= usi_v4_from(wrench[b].n) + usi_v4_cross(p, f);
    }
}

// ---------------------------------------------------------------- public functions

us_status us_dyn_poses(us_dyn *d, const double *q, us_pose *out_X_WB) {
    if (!d || !q || !out_X_WB) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_kinematics(d, q, NULL, NULL);
    for (int32_t b = 0; b < m->n_body; b++) {
        const usi_body *body = &m->body[b];
        out_X_WB[b] = body->X_NB;
        if (body->node >= 0)
            out_X_WB[b] = us_pose_mul(
                usi_link_pose(&d->link[body->node], d->origin[m->node[body->node].tree]), body->X_NB);
    }
    return US_OK;
}

us_status us_dyn_twists(us_dyn *d, const double *q, const double *v, us_twist *out_V_WB) {
    if (!d || !q || !v || !out_V_WB) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_kinematics(d, q, v, NULL);
    for (int32_t b = 0; b < m->n_body; b++) {
        const usi_body *body = &m->body[b];
        out_V_WB[b] = (us_twist){{0, 0, 0}, {0, 0, 0}};
        if (body->node < 0) continue;
        const usi_link *k = &d->link[body->node];
        usi_v4 p = usi_link_point(k, body->X_NB.p);
        out_V_WB[b].w = usi_v4_vec3(k->w);
        out_V_WB[b].v = usi_v4_vec3(k->v + usi_v4_cross(k->w, p));
    }
    return US_OK;
}

us_status us_dyn_accelerations(us_dyn *d, const double *q, const double *v, const double *a,
                               us_twist *out_A_WB) {
    if (!d || !q || !v || !a || !out_A_WB) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_v4 g = usi_v4_from(m->gravity);
    usi_kinematics(d, q, v, a);
    for (int32_t b = 0; b < m->n_body; b++) {
        const usi_body *body = &m->body[b];
        out_A_WB[b] = (us_twist){{0, 0, 0}, {0, 0, 0}};
        if (body->node < 0) continue;
        // The acceleration of a point is the spatial one moved there plus w x (velocity of the point).
        const usi_link *k = &d->link[body->node];
        usi_v4 p = usi_link_point(k, body->X_NB.p);
        usi_v4 v_p = k->v + usi_v4_cross(k->w, p);
        out_A_WB[b].w = usi_v4_vec3(k->aw);
        out_A_WB[b].v = usi_v4_vec3(k->av + g + usi_v4_cross(k->aw, p) + usi_v4_cross(k->w, v_p));
    }
    return US_OK;
}

us_status us_dyn_jacobian(us_dyn *d, const double *q, us_body body, us_vec3 p_BQ, double *out_J) {
    if (!d || !q || !out_J || body.i < 0 || body.i >= d->model->n_body) return US_ERR_ARG;
    const us_model *m = d->model;
    int32_t n = m->n_node, node = m->body[body.i].node;
    for (int32_t i = 0; i < 6 * n; i++)
        out_J[i] = 0;
    if (node < 0) return US_OK;
    usi_kinematics(d, q, NULL, NULL);
    us_vec3 p_NQ = us_pose_point(m->body[body.i].X_NB, p_BQ);
    const usi_link *k = &d->link[node];
    usi_v4 p = usi_link_point(k, p_NQ);
    for (int32_t at = m->row_start[node]; at < m->row_start[node + 1]; at++) {
        int32_t i = m->path[at];
        usi_v4 w = d->link[i].Sw, v = d->link[i].Sv + usi_v4_cross(w, p);
        for (int r = 0; r < 3; r++) {
            out_J[r * n + i] = w[r];
            out_J[(3 + r) * n + i] = v[r];
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- positions

void usi_add_range(const us_model *m, const double *q, const double *dq, double *out_q, int32_t first,
                   int32_t end) {
    for (int32_t i = first; i < end; i++) {
        const usi_node *n = &m->node[i];
        const double *a = q + n->q, *t = dq + i;
        double *o = out_q + n->q;
        if (n->kind == USI_NODE_NEXT) continue;
        if (n->kind != USI_NODE_BALL && n->kind != USI_NODE_FREE) {
            o[0] = a[0] + t[0];
            continue;
        }
        us_quat r = {a[0], a[1], a[2], a[3]};
        if (n->kind == USI_NODE_FREE) {
            // The way is laid along the axes half way through the turn: second order, and going back by -t
            // ends where it began.
            us_quat half = us_quat_mul(r, us_quat_exp(us_vec3_make(0.5 * t[0], 0.5 * t[1], 0.5 * t[2])));
            us_vec3 p = us_vec3_add(us_vec3_make(a[4], a[5], a[6]),
                                    us_quat_rotate(half, us_vec3_make(t[3], t[4], t[5])));
            o[4] = p.x;
            o[5] = p.y;
            o[6] = p.z;
        }
        r = us_quat_normalize(us_quat_mul(r, us_quat_exp(us_vec3_make(t[0], t[1], t[2]))));
        o[0] = r.w;
        o[1] = r.x;
        o[2] = r.y;
        o[3] = r.z;
    }
}

void usi_add(const us_model *m, const double *q, const double *dq, double *out_q) {
    if (!m->is_flat) {
        usi_add_range(m, q, dq, out_q, 0, m->n_node);
        return;
    }
    for (int32_t i = 0; i < m->n_node; i++)
        out_q[i] = q[i] + dq[i];
}

us_status us_dyn_add(const us_model *model, const double *q, const double *dq, double *out_q) {
    if (!model || !q || !dq || !out_q) return US_ERR_ARG;
    usi_add(model, q, dq, out_q);
    return US_OK;
}
