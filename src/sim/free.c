// Bodies and trees that nothing holds: their momentum is known, so it is kept to rounding.
//
// A single free body is integrated in momentum form. Its angular momentum L about the centre of mass is constant in the
// world, so the angular velocity follows from the orientation alone, w = I^-1 R^T L, and only R is left to integrate. L is
// kept exactly whatever R's error; R is of fourth order (Runge-Kutta on the rotation vector), because a step of second order
// leaves the energy of a fast tumble at 5 rad/s and 1 ms off by 1e-6. A floating tree is integrated like any other and its
// root's twist is then corrected by the little that momentum is off.
#include "dyn/kinematics.h"
#include "math/rotation.h"
#include "sim/sim.h"

// Solves the symmetric 3 x 3 system with columns J.
static usi_v4 solve3(const usi_v4 J[3], usi_v4 b) {
    usi_v4 c12 = usi_v4_cross(J[1], J[2]), c20 = usi_v4_cross(J[2], J[0]), c01 = usi_v4_cross(J[0], J[1]);
    double det = usi_v4_dot(J[0], c12);
    return usi_v4_set(usi_v4_dot(c12, b), usi_v4_dot(c20, b), usi_v4_dot(c01, b)) * (1 / det);
}

// Columns of the inverse of the symmetric 3 x 3 matrix with columns J.
static void invert3(const usi_v4 J[3], usi_v4 out[3]) {
    usi_v4 c12 = usi_v4_cross(J[1], J[2]);
    double inverse = 1 / usi_v4_dot(J[0], c12);
    out[0] = c12 * inverse, out[1] = usi_v4_cross(J[2], J[0]) * inverse, out[2] = usi_v4_cross(J[0], J[1]) * inverse;
}

static us_vec3 body_rate(const usi_v4 inverse[3], us_quat R, us_vec3 L) {
    return usi_v4_vec3(usi_v4_columns_of(inverse[0], inverse[1], inverse[2], us_quat_rotate(us_quat_conj(R), L)));
}

static us_vec3 times_inertia(const usi_node *n, us_vec3 w) { return usi_v4_vec3(n->I[0] * w.x + n->I[1] * w.y + n->I[2] * w.z); }

// R exp(theta). What turns by less than a tenth of a radian needs no functions: the series are exact to rounding.
static us_quat turned(us_quat R, us_vec3 theta) {
    double x = us_vec3_dot(theta, theta);
    if (!(x < 0.01)) return us_quat_normalize(us_quat_mul(R, us_quat_exp(theta)));
    double c = 1 - x * (1.0 / 8 - x * (1.0 / 384 - x * (1.0 / 46080 - x * (1.0 / 10321920))));
    double s = 0.5 - x * (1.0 / 48 - x * (1.0 / 3840 - x * (1.0 / 645120 - x * (1.0 / 185794560))));
    return us_quat_normalize(us_quat_mul(R, (us_quat){c, s * theta.x, s * theta.y, s * theta.z}));
}

// Rate of the rotation vector theta from R on, when the angular momentum is L.
static us_vec3 turn_rate(const usi_v4 inverse[3], us_quat R, us_vec3 theta, us_vec3 L) {
    return usi_turn_rate(theta, body_rate(inverse, turned(R, theta), L));
}

// The turn within a step of length h during which the angular momentum goes from L0 to L1.
static us_vec3 turn_of_step(const usi_v4 inverse[3], us_quat R, double h, us_vec3 L0, us_vec3 L1) {
    us_vec3 L_mid = us_vec3_scale(0.5, us_vec3_add(L0, L1));
    us_vec3 a = body_rate(inverse, R, L0);
    us_vec3 b = turn_rate(inverse, R, us_vec3_scale(0.5 * h, a), L_mid);
    us_vec3 c = turn_rate(inverse, R, us_vec3_scale(0.5 * h, b), L_mid);
    us_vec3 d = turn_rate(inverse, R, us_vec3_scale(h, c), L1);
    return us_vec3_scale(h / 6, us_vec3_add(us_vec3_add(a, d), us_vec3_scale(2, us_vec3_add(b, c))));
}

static void step_body(us_sim *s, int32_t first, const us_command *command, bool is_second_order) {
    const us_model *m = s->model;
    const usi_node *root = &m->node[first], *n = &m->node[first + 5];
    const double h = m->step, *q = s->now.q + root->q, *v = s->now.v + first, mass = n->com[3];
    us_vec3 c = usi_v4_vec3(n->com), w = us_vec3_make(v[0], v[1], v[2]), v_N = us_vec3_make(v[3], v[4], v[5]);
    // The joint's frame F is fixed in the world; gravity and wrenches are turned into it.
    us_quat q_WF = usi_node_rest(root).q, R = {q[0], q[1], q[2], q[3]};
    us_vec3 force = us_quat_rotate(us_quat_conj(q_WF), us_vec3_scale(mass, m->gravity)), moment = us_vec3_make(0, 0, 0);
    for (int32_t b = 0; command && command->wrench && b < m->n_body; b++) {
        if (m->body[b].node != first + 5) continue;
        us_vec3 f = us_quat_rotate(us_quat_conj(q_WF), command->wrench[b].f), arm = us_quat_rotate(R, us_vec3_sub(m->body[b].X_NB.p, c));
        force = us_vec3_add(force, f);
        moment = us_vec3_add(moment, us_vec3_add(us_quat_rotate(us_quat_conj(q_WF), command->wrench[b].n), us_vec3_cross(arm, f)));
    }
    us_vec3 L = us_quat_rotate(R, times_inertia(n, w)), L_end = us_vec3_add(L, us_vec3_scale(h, moment));
    usi_v4 inverse[3];
    invert3(n->I, inverse);
    us_quat R_end = turned(R, turn_of_step(inverse, R, h, L, L_end));
    us_vec3 w_end = body_rate(inverse, R_end, L_end);
    us_vec3 p_com = us_vec3_add(us_vec3_make(q[4], q[5], q[6]), us_quat_rotate(R, c));
    us_vec3 v_com = us_quat_rotate(R, us_vec3_add(v_N, us_vec3_cross(w, c)));
    us_vec3 v_end = us_vec3_add(v_com, us_vec3_scale(h / mass, force));
    us_vec3 v_way = is_second_order ? us_vec3_scale(0.5, us_vec3_add(v_com, v_end)) : v_end;
    p_com = us_vec3_add(p_com, us_vec3_scale(h, v_way));
    us_vec3 p = us_vec3_sub(p_com, us_quat_rotate(R_end, c));
    us_vec3 v_N_end = us_vec3_sub(us_quat_rotate(us_quat_conj(R_end), v_end), us_vec3_cross(w_end, c));
    const double q_end[7] = {R_end.w, R_end.x, R_end.y, R_end.z, p.x, p.y, p.z};
    const double twist[6] = {w_end.x, w_end.y, w_end.z, v_N_end.x, v_N_end.y, v_N_end.z};
    for (int i = 0; i < 7; i++) s->next.q[root->q + i] = q_end[i];
    for (int i = 0; i < 6; i++) {
        s->next.v[first + i] = twist[i];
        s->next.a[first + i] = (twist[i] - v[i]) / h;
    }
}

bool usi_pushes_root(const usi_tree *tree, const us_command *command) {
    for (int32_t i = tree->first; command && command->torque && i < tree->first + 6; i++) {
        if (command->torque[i] != 0) return true;
    }
    return false;
}

void usi_step_free_bodies(us_sim *s, const us_command *command, bool is_second_order) {
    const us_model *m = s->model;
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_tree *tree = &m->tree[t];
        if (tree->is_free_body && !usi_is_touched(s, t) && !usi_pushes_root(tree, command)) step_body(s, tree->first, command, is_second_order);
    }
}

// Whether a tree's momentum about its centre of mass is kept, and its linear momentum changed by gravity alone: the command
// must not push its root.
static bool keeps_momentum(const us_sim *s, const usi_tree *tree, const us_command *command) {
    if (usi_is_touched(s, (int32_t)(tree - s->model->tree))) return false;
    if (!tree->is_free_tree || tree->is_free_body || usi_pushes_root(tree, command)) return false;
    for (int32_t b = 0; command && command->wrench && b < s->model->n_body; b++) {
        const us_wrench *w = &command->wrench[b];
        int32_t node = s->model->body[b].node;
        if (node < tree->first || node >= tree->end) continue;
        if (w->n.x != 0 || w->n.y != 0 || w->n.z != 0 || w->f.x != 0 || w->f.y != 0 || w->f.z != 0) return false;
    }
    return true;
}

void usi_step_free_trees(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    bool any = false;
    for (int32_t t = 0; t < m->n_tree; t++) any = any || keeps_momentum(s, &m->tree[t], command);
    if (!any) return;
    usi_kinematics(d, s->now.q, s->now.v, NULL);
    usi_inertias(d, false);
    // What the momentum of each tree about its centre of mass is to be after the step goes into the slots of its first two nodes.
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_tree *tree = &m->tree[t];
        if (!keeps_momentum(s, tree, command)) continue;
        usi_momentum p = usi_tree_momentum(d, tree->first, tree->end);
        usi_v4 com = p.h * (usi_v4){1, 1, 1, 0} * (1 / p.h[3]);
        d->slot[tree->first].n = p.angular - usi_v4_cross(com, p.linear);
        d->slot[tree->first].f = p.linear + usi_v4_from(m->gravity) * (p.h[3] * m->step);
    }
    usi_kinematics(d, s->next.q, s->next.v, NULL);
    usi_inertias(d, false);
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_tree *tree = &m->tree[t];
        if (!keeps_momentum(s, tree, command)) continue;
        usi_momentum p = usi_tree_momentum(d, tree->first, tree->end);
        usi_v4 com = p.h * (usi_v4){1, 1, 1, 0} * (1 / p.h[3]), mass = usi_v4_all(p.h[3]);
        usi_v4 square = mass * usi_v4_all(usi_v4_dot(com, com)), J[3];
        for (int i = 0; i < 3; i++) J[i] = p.J[i] + mass * com * usi_v4_all(com[i]) - square * (usi_v4){i == 0, i == 1, i == 2, 0};
        usi_v4 dw = solve3(J, d->slot[tree->first].n - (p.angular - usi_v4_cross(com, p.linear)));
        usi_v4 dv = (d->slot[tree->first].f - p.linear) * (1 / p.h[3]);
        // As a change of the root's twist: at its origin, in its axes.
        const usi_link *root = &d->link[tree->first + 5];
        usi_v4 at_root = dv + usi_v4_cross(dw, root->p - com);
        double *v = s->next.v + tree->first;
        v[0] += usi_v4_dot(root->X, dw), v[1] += usi_v4_dot(root->Y, dw), v[2] += usi_v4_dot(root->Z, dw);
        v[3] += usi_v4_dot(root->X, at_root), v[4] += usi_v4_dot(root->Y, at_root), v[5] += usi_v4_dot(root->Z, at_root);
    }
}
