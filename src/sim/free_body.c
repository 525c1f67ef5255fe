// Bodies and trees that nothing holds: their momentum is known, so it is kept to rounding.
//
// A single free body is integrated in momentum form. Its angular momentum L about the centre of mass is
// constant in the world, so the angular velocity follows from the orientation alone, w = I^-1 R^T L, and only
// R is left to integrate. L is kept exactly whatever R's error; R is of fourth order (Runge-Kutta on the
// rotation vector), because a step of second order leaves the energy of a fast tumble at 5 rad/s and 1 ms off
// by 1e-6. A floating tree is integrated like any other and its root's twist is then corrected by the little
// that momentum is off.
#include "dyn/kinematics.h"
#include "math/rotation.h"
#include "math/vec3x4.h"
#include "sim/sim.h"

// Solves the symmetric 3 x 3 system with columns J.
static usi_v4 solve3(const usi_v4 J[3], usi_v4 b) {
    usi_v4 c12 = usi_v4_cross(J[1], J[2]), c20 = usi_v4_cross(J[2], J[0]), c01 = usi_v4_cross(J[0], J[1]);
    double det = usi_v4_dot(J[0], c12);
    return usi_v4_set(usi_v4_dot(c12, b), usi_v4_dot(c20, b), usi_v4_dot(c01, b)) * (1 / det);
}

// ---------------------------------------------------------------- free bodies, four at a time

// Columns of the inverses of the symmetric 3 x 3 matrices with columns J.
static void invert3(const usi_vec3x4 J[3], usi_vec3x4 out[3]) {
    usi_vec3x4 c12 = usi_vec3x4_cross(J[1], J[2]);
    usi_v4 inverse = 1 / usi_vec3x4_dot(J[0], c12);
    out[0] = usi_vec3x4_scale(inverse, c12);
    out[1] = usi_vec3x4_scale(inverse, usi_vec3x4_cross(J[2], J[0]));
    out[2] = usi_vec3x4_scale(inverse, usi_vec3x4_cross(J[0], J[1]));
}

static usi_vec3x4 body_rate(const usi_vec3x4 inverse[3], usi_quatx4 R, usi_vec3x4 L) {
    return usi_vec3x4_columns(inverse, usi_quatx4_rotate(usi_quatx4_conj(R), L));
}

// R exp(theta).
static usi_quatx4 rotated(usi_quatx4 R, usi_vec3x4 theta) {
    return usi_quatx4_normalize(usi_quatx4_mul(R, usi_quatx4_exp(theta)));
}

// Rate of the rotation vector theta from R on, when the angular momentum is L: usi_rotation_rate of each.
static usi_vec3x4 rotation_vector_rate(const usi_vec3x4 inverse[3], usi_quatx4 R, usi_vec3x4 theta,
                                       usi_vec3x4 L) {
    usi_vec3x4 w = body_rate(inverse, rotated(R, theta), L), once = usi_vec3x4_cross(theta, w),
               twice = usi_vec3x4_cross(theta, once);
    usi_v4 x = usi_vec3x4_dot(theta, theta), c = 1.0 / 12 + x * (1.0 / 720 + x * (1.0 / 30240));
    usi_vec3x4 rate = usi_vec3x4_add(
        w, usi_vec3x4_add(usi_vec3x4_scale(usi_v4_all(0.5), once), usi_vec3x4_scale(c, twice)));
    usi_v4i is_small = x < 0.01;
    for (int l = 0; l < 4; l++) {
        if (is_small[l]) continue;
        us_vec3 r = usi_rotation_rate(us_vec3_make(theta.x[l], theta.y[l], theta.z[l]),
                                      us_vec3_make(w.x[l], w.y[l], w.z[l]));
        rate.x[l] = r.x;
        rate.y[l] = r.y;
        rate.z[l] = r.z;
    }
    return rate;
}

// The rotation vector of a step of length h during which the angular momentum goes from L0 to L1.
static usi_vec3x4 rotation_of_step(const usi_vec3x4 inverse[3], usi_quatx4 R, double h, usi_vec3x4 L0,
                                   usi_vec3x4 L1) {
    const usi_v4 half = usi_v4_all(0.5 * h), whole = usi_v4_all(h);
    usi_vec3x4 L_mid = usi_vec3x4_scale(usi_v4_all(0.5), usi_vec3x4_add(L0, L1));
    usi_vec3x4 a = body_rate(inverse, R, L0);
    usi_vec3x4 b = rotation_vector_rate(inverse, R, usi_vec3x4_scale(half, a), L_mid);
    usi_vec3x4 c = rotation_vector_rate(inverse, R, usi_vec3x4_scale(half, b), L_mid);
    usi_vec3x4 d = rotation_vector_rate(inverse, R, usi_vec3x4_scale(whole, c), L1);
    return usi_vec3x4_scale(
        usi_v4_all(h / 6),
        usi_vec3x4_add(usi_vec3x4_add(a, d), usi_vec3x4_scale(usi_v4_all(2), usi_vec3x4_add(b, c))));
}

// What acts on a body, in the axes of its joint's frame F, which is fixed in the world: force, and moment
// about the centre of mass.
static void find_wrench(const us_sim *s, int32_t first, const us_command *command, usi_v4 *out_force,
                        usi_v4 *out_moment) {
    const us_model *m = s->model;
    const usi_node *root = &m->node[first], *n = &m->node[first + 5];
    const double *q = s->now.q + root->q;
    us_vec3 force = us_vec3_scale(n->com[3], m->gravity), moment = us_vec3_make(0, 0, 0);
    for (int32_t b = 0; command && command->wrench && b < m->n_body; b++) {
        if (m->body[b].node != first + 5) continue;
        us_quat R_WN = us_quat_mul(usi_node_rest(root).q, (us_quat){q[0], q[1], q[2], q[3]});
        us_vec3 arm = us_quat_rotate(R_WN, us_vec3_sub(m->body[b].X_NB.p, usi_v4_vec3(n->com))),
                f = command->wrench[b].f;
        force = us_vec3_add(force, f);
        moment = us_vec3_add(moment, us_vec3_add(command->wrench[b].n, us_vec3_cross(arm, f)));
    }
    if (root->flags & USI_NODE_TURNED) {
        us_quat back = us_quat_conj(usi_node_rest(root).q);
        force = us_quat_rotate(back, force);
        moment = us_quat_rotate(back, moment);
    }
    *out_force = usi_v4_from(force);
    *out_moment = usi_v4_from(moment);
}

static void step_bodies(us_sim *s, const int32_t first[4], const us_command *command, bool is_second_order) {
    const us_model *m = s->model;
    const usi_node *n[4];
    const double h = m->step;
    const usi_v4 step = usi_v4_all(h);
    usi_v4 orientation[4], place[4], spin[4], velocity[4], force_of[4], moment_of[4], mass;
    for (int l = 0; l < 4; l++) {
        const double *q = s->now.q + m->node[first[l]].q, *v = s->now.v + first[l];
        n[l] = &m->node[first[l] + 5];
        orientation[l] = (usi_v4){q[0], q[1], q[2], q[3]};
        place[l] = usi_v4_set(q[4], q[5], q[6]);
        spin[l] = usi_v4_set(v[0], v[1], v[2]);
        velocity[l] = usi_v4_set(v[3], v[4], v[5]);
        find_wrench(s, first[l], command, &force_of[l], &moment_of[l]);
    }
    usi_quatx4 R;
    usi_v4 z;
    R.v = usi_vec3x4_from(orientation[0], orientation[1], orientation[2], orientation[3], &z);
    R = (usi_quatx4){R.v.x, {R.v.y, R.v.z, z}};
    usi_vec3x4 p = usi_vec3x4_from(place[0], place[1], place[2], place[3], NULL),
               w = usi_vec3x4_from(spin[0], spin[1], spin[2], spin[3], NULL);
    usi_vec3x4 v = usi_vec3x4_from(velocity[0], velocity[1], velocity[2], velocity[3], NULL);
    usi_vec3x4 force = usi_vec3x4_from(force_of[0], force_of[1], force_of[2], force_of[3], NULL);
    usi_vec3x4 moment = usi_vec3x4_from(moment_of[0], moment_of[1], moment_of[2], moment_of[3], NULL);
    usi_vec3x4 c = usi_vec3x4_from(n[0]->com, n[1]->com, n[2]->com, n[3]->com, &mass);
    usi_vec3x4 I[3] = {USI_VEC3X4_FROM(n, I[0]), USI_VEC3X4_FROM(n, I[1]), USI_VEC3X4_FROM(n, I[2])},
               inverse[3];
    invert3(I, inverse);
    usi_vec3x4 L = usi_quatx4_rotate(R, usi_vec3x4_columns(I, w)),
               L_end = usi_vec3x4_add(L, usi_vec3x4_scale(step, moment));
    usi_quatx4 R_end = rotated(R, rotation_of_step(inverse, R, h, L, L_end)), back = usi_quatx4_conj(R_end);
    usi_vec3x4 w_end = body_rate(inverse, R_end, L_end),
               v_com = usi_quatx4_rotate(R, usi_vec3x4_add(v, usi_vec3x4_cross(w, c)));
    usi_vec3x4 v_end = usi_vec3x4_add(v_com, usi_vec3x4_scale(step / mass, force));
    usi_vec3x4 v_mean =
        is_second_order ? usi_vec3x4_scale(usi_v4_all(0.5), usi_vec3x4_add(v_com, v_end)) : v_end;
    usi_vec3x4 p_com =
        usi_vec3x4_add(usi_vec3x4_add(p, usi_quatx4_rotate(R, c)), usi_vec3x4_scale(step, v_mean));
    usi_vec3x4 p_end = usi_vec3x4_sub(p_com, usi_quatx4_rotate(R_end, c)),
               v_N = usi_vec3x4_sub(usi_quatx4_rotate(back, v_end), usi_vec3x4_cross(w_end, c));
    usi_v4_transpose(R_end.w, R_end.v.x, R_end.v.y, R_end.v.z, orientation);
    usi_vec3x4_to(p_end, step, &place[0], &place[1], &place[2], &place[3]);
    usi_vec3x4_to(w_end, step, &spin[0], &spin[1], &spin[2], &spin[3]);
    usi_vec3x4_to(v_N, step, &velocity[0], &velocity[1], &velocity[2], &velocity[3]);
    for (int l = 0; l < 4; l++) {
        double *q = s->next.q + m->node[first[l]].q, *end_v = s->next.v + first[l], *a = s->next.a + first[l];
        const double *v0 = s->now.v + first[l];
        for (int i = 0; i < 4; i++)
            q[i] = orientation[l][i];
        for (int i = 0; i < 3; i++) {
            q[4 + i] = place[l][i];
            end_v[i] = spin[l][i];
            end_v[3 + i] = velocity[l][i];
        }
        for (int i = 0; i < 6; i++)
            a[i] = (end_v[i] - v0[i]) / h;
    }
}

bool usi_has_root_torque(const usi_tree *tree, const us_command *command) {
    for (int32_t i = tree->first; command && command->torque && i < tree->first + 6; i++) {
        if (command->torque[i] != 0) return true;
    }
    return false;
}

void usi_step_free_bodies(us_sim *s, const us_command *command, bool is_second_order) {
    const us_model *m = s->model;
    int32_t first[4], n = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_tree *tree = &m->tree[t];
        if (!tree->is_free_body || usi_is_touched(s, t) || usi_has_root_torque(tree, command)) continue;
        first[n++] = tree->first;
        if (n == 4) {
            step_bodies(s, first, command, is_second_order);
            n = 0;
        }
    }
    // Lanes that are left over do the work of another one again.
    if (n == 0) return;
    for (int32_t l = n; l < 4; l++)
        first[l] = first[0];
    step_bodies(s, first, command, is_second_order);
}

// Whether a tree's momentum about its centre of mass is kept, and its linear momentum changed by gravity
// alone: the command must not act on its root.
static bool keeps_momentum(const us_sim *s, const usi_tree *tree, const us_command *command) {
    if (usi_is_touched(s, (int32_t)(tree - s->model->tree))) return false;
    if (!tree->is_free_tree || tree->is_free_body || usi_has_root_torque(tree, command)) return false;
    for (int32_t b = 0; command && command->wrench && b < s->model->n_body; b++) {
        const us_wrench *w = &command->wrench[b];
        int32_t node = s->model->body[b].node;
        if (node < tree->first || node >= tree->end) continue;
        if (w->n.x != 0 || w->n.y != 0 || w->n.z != 0 || w->f.x != 0 || w->f.y != 0 || w->f.z != 0)
            return false;
    }
    return true;
}

void usi_step_free_trees(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    bool any = false;
    for (int32_t t = 0; t < m->n_tree; t++)
        any = any || keeps_momentum(s, &m->tree[t], command);
    if (!any) return;
    usi_kinematics(d, s->now.q, s->now.v, NULL);
    usi_inertias(d, false);
    // What the momentum of each tree about its centre of mass is to be after the step goes into the slots of
    // its first two nodes.
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
        for (int i = 0; i < 3; i++)
            J[i] = p.J[i] + mass * com * usi_v4_all(com[i]) - square * (usi_v4){i == 0, i == 1, i == 2, 0};
        usi_v4 dw = solve3(J, d->slot[tree->first].n - (p.angular - usi_v4_cross(com, p.linear)));
        usi_v4 dv = (d->slot[tree->first].f - p.linear) * (1 / p.h[3]);
        // As a change of the root's twist: at its origin, in its axes.
        const usi_link *root = &d->link[tree->first + 5];
        usi_v4 at_root = dv + usi_v4_cross(dw, root->p - com);
        double *v = s->next.v + tree->first;
        v[0] += usi_v4_dot(root->X, dw);
        v[1] += usi_v4_dot(root->Y, dw);
        v[2] += usi_v4_dot(root->Z, dw);
        v[3] += usi_v4_dot(root->X, at_root);
        v[4] += usi_v4_dot(root->Y, at_root);
        v[5] += usi_v4_dot(root->Z, at_root);
    }
}
