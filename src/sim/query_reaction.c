// Joint reactions: what goes through a joint, by inverse dynamics of the last step.
//
// All bodies beyond a joint are one free body: the joint's wrench is what their motion needed, less all that
// acts on them from elsewhere,
//
//     W = sum over bodies b beyond the joint of ( I_b A_b + V_b x* I_b V_b  -  weight  -  contacts  -
//     closures  -  wrenches )
//
// with the mean acceleration of the step. Drives, springs, friction and limits act between parent and child
// and need not be known: they are in W. Position and velocity are those at which the step's equation of
// motion holds: the start of the step for trees that the contact solve has moved and for Euler's method, the
// middle of the step for the others; so a floating tree's own joint gets 0 to rounding.
//
// Contact impulses are in the blocks that the last step's solve has left in the scratch; what loops gave is
// there too (closure.c).
#include <math.h>

#include "sim/sim.h"

// A moment about a point and a force.
static us_wrench add_wrench(us_wrench a, us_vec3 n, us_vec3 f) {
    return (us_wrench){us_vec3_add(a.n, n), us_vec3_add(a.f, f)};
}

static bool is_beyond(const us_model *m, int32_t body, int32_t joint) {
    while (body >= 0 && m->body[body].joint >= 0) {
        if (m->body[body].joint == joint) return true;
        body = m->joint[m->body[body].joint].parent;
    }
    return false;
}

// Frames, velocities and mean accelerations of all links, where the step's equation of motion holds.
static void find_motion(const us_sim *s) {
    const us_model *m = s->model;
    const double h = m->step, *q0 = s->next.q, *v0 = s->next.v, *v1 = s->now.v;
    double *v = s->mid_v, *a = s->sub_v, *moved = s->displacement;
    for (int32_t i = 0; i < m->n_pad; i++)
        v[i] = a[i] = moved[i] = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        const bool is_start = usi_is_touched(s, t) || m->integrator == US_INTEGRATOR_EULER;
        for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) {
            a[i] = (v1[i] - v0[i]) / h;
            v[i] = is_start ? v0[i] : 0.5 * (v0[i] + v1[i]);
            moved[i] = is_start ? 0 : 0.5 * h * v[i];
        }
    }
    usi_add(m, q0, moved, s->mid_q);
    usi_kinematics(s->dyn, s->mid_q, v, a);
}

// A body in the present kinematics: where its own frame is, and the world's accelerations.
typedef struct body_motion {
    us_pose X_WB;
    us_vec3 w, aw;  // rad/s, rad/s^2
    us_vec3 a;      // m/s^2, of the centre of mass, less gravity
    us_vec3 com;    // m, in W
} body_motion;

static body_motion motion_of(const us_sim *s, int32_t body) {
    const usi_body *b = &s->model->body[body];
    const us_dyn *d = s->dyn;
    body_motion out = {.X_WB = b->X_NB};
    if (b->node < 0) {
        out.com = us_pose_point(b->X_NB, b->inertia.com);
        out.a = us_vec3_scale(-1, s->model->gravity);
        return out;
    }
    const usi_link *k = &d->link[b->node];
    const usi_v4 O = d->origin[s->model->node[b->node].tree];
    out.X_WB = us_pose_mul(usi_link_pose(k, O), b->X_NB);
    out.com = us_pose_point(out.X_WB, b->inertia.com);
    usi_v4 c = usi_v4_from(out.com) - O, v = k->v + usi_v4_cross(k->w, c);
    out.w = usi_v4_vec3(k->w);
    out.aw = usi_v4_vec3(k->aw);
    out.a = usi_v4_vec3(k->av + usi_v4_cross(k->aw, c) + usi_v4_cross(k->w, v));
    return out;
}

static us_vec3 times_inertia(const us_inertia *I, us_quat q_WB, us_vec3 w_W) {
    us_vec3 w = us_quat_rotate(us_quat_conj(q_WB), w_W);
    const double *m = I->about_com;
    us_vec3 n = us_vec3_make(m[0] * w.x + m[3] * w.y + m[4] * w.z, m[3] * w.x + m[1] * w.y + m[5] * w.z,
                             m[4] * w.x + m[5] * w.y + m[2] * w.z);
    return us_quat_rotate(q_WB, n);
}

// What a body's motion needs, less the wrench that was applied to it, about the point p.
static us_wrench need_of(const us_sim *s, int32_t body, us_vec3 p) {
    const us_inertia *I = &s->model->body[body].inertia;
    body_motion b = motion_of(s, body);
    us_vec3 f = us_vec3_scale(I->mass, b.a);
    us_vec3 n =
        us_vec3_add(times_inertia(I, b.X_WB.q, b.aw), us_vec3_cross(b.w, times_inertia(I, b.X_WB.q, b.w)));
    us_wrench out = {us_vec3_add(n, us_vec3_cross(us_vec3_sub(b.com, p), f)), f};
    if (!s->has_wrench) return out;
    const us_wrench *w = &s->wrench[body];
    us_vec3 moment = us_vec3_add(w->n, us_vec3_cross(us_vec3_sub(b.X_WB.p, p), w->f));
    return add_wrench(out, us_vec3_scale(-1, moment), us_vec3_scale(-1, w->f));
}

// The contact point that a block belongs to, the slip of a wheel in soil included; -1: none, a loop's.
static int32_t point_of(const usi_contacts *c, int32_t block) {
    for (int32_t i = 0; i < c->collide.n_soil_contact && c->rows.block[block].point < 0; i++) {
        if (c->collide.soil_contact[i].slip_block == block) return c->collide.soil_contact[i].point;
    }
    return c->rows.block[block].point;
}

// What contacts give to the bodies beyond a joint, about the point p.
static us_wrench contacts_beyond(const us_sim *s, int32_t joint, us_vec3 p) {
    us_wrench sum = {{0, 0, 0}, {0, 0, 0}};
    const usi_contacts *c = s->contacts;
    const us_model *m = s->model;
    for (int32_t i = 0; c && i < c->islands.n_island; i++) {
        const usi_island *island = &c->islands.island[i];
        const usi_v4 arm = island->O - usi_v4_from(p);
        for (int32_t b = island->first_block; b < island->first_block + island->n_block; b++) {
            const usi_block *k = &c->rows.block[b];
            const int32_t point = point_of(c, b);
            if (point < 0) continue;
            const usi_touch *t = &c->collide.touch_now[c->collide.point[point].touch];
            int sign =
                is_beyond(m, m->geom[t->geom_a].body, joint) - is_beyond(m, m->geom[t->geom_b].body, joint);
            if (sign == 0) continue;
            usi_v4 f = usi_v4_zero(), n = f;
            for (int j = 0; j < k->n; j++) {
                usi_v4 impulse = usi_v4_all(sign * k->g[j] / m->step);
                f += k->d[j] * impulse;
                n += k->m[j] * impulse;
            }
            sum = add_wrench(sum, usi_v4_vec3(n + usi_v4_cross(arm, f)), usi_v4_vec3(f));
        }
    }
    return sum;
}

// Where a loop is closed, m, in W.
static us_vec3 point_of_loop(const us_sim *s, const usi_loop *l) {
    if (l->node_a < 0) return l->X_AC.p;
    const usi_v4 O = s->dyn->origin[s->model->node[l->node_a].tree];
    return us_pose_point(usi_link_pose(&s->dyn->link[l->node_a], O), l->X_AC.p);
}

// What loops give to the bodies beyond a joint, about the point p.
static us_wrench closures_beyond(const us_sim *s, int32_t joint, us_vec3 p) {
    us_wrench sum = {{0, 0, 0}, {0, 0, 0}};
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_loop; i++) {
        const usi_loop *l = &m->loop[i];
        const int sign = is_beyond(m, l->body_a, joint) - is_beyond(m, l->body_b, joint);
        const us_wrench *w = &s->closure[i];
        const us_vec3 arm = us_vec3_sub(point_of_loop(s, l), p);
        const us_vec3 moment = us_vec3_add(w->n, us_vec3_cross(arm, w->f));
        sum = add_wrench(sum, us_vec3_scale(sign, moment), us_vec3_scale(sign, w->f));
    }
    return sum;
}

static const us_wrench NONE = {{NAN, NAN, NAN}, {NAN, NAN, NAN}};

us_wrench us_sim_get_loop_reaction(const us_sim *s, int32_t loop) {
    return s && s->has_last_step && loop >= 0 && loop < s->model->n_loop ? s->closure[loop] : NONE;
}

us_wrench us_sim_get_joint_reaction(const us_sim *s, us_joint joint) {
    if (!s || !s->has_last_step || joint.i < 0 || joint.i >= s->model->n_joint) return NONE;
    const us_model *m = s->model;
    const int32_t child = m->joint[joint.i].child;
    find_motion(s);
    const us_vec3 p = motion_of(s, child).X_WB.p;
    us_wrench sum = {{0, 0, 0}, {0, 0, 0}};
    for (int32_t b = 0; b < m->n_body; b++) {
        if (!is_beyond(m, b, joint.i)) continue;
        us_wrench need = need_of(s, b, p);
        sum = add_wrench(sum, need.n, need.f);
    }
    const us_wrench contacts = contacts_beyond(s, joint.i, p), closures = closures_beyond(s, joint.i, p);
    sum = add_wrench(sum, us_vec3_scale(-1, contacts.n), us_vec3_scale(-1, contacts.f));
    return add_wrench(sum, us_vec3_scale(-1, closures.n), us_vec3_scale(-1, closures.f));
}
