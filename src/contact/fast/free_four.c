// Free bodies in islands: what a step does to them without contact, and where they end with it.
//
// Four bodies at a time, of whichever islands, one in each lane: as vectors of x y z a body's numbers would
// mostly wait for one another. The bodies of all islands stand in one list, in the order of the islands;
// which four go together does not depend on threads.
#include "contact/contact__parts.h"
#include "math/vec3x4.h"

// Symmetric matrices.
typedef struct symmetric {
    usi_v4 xx, xy, xz, yy, yz, zz;
} symmetric;

static inline usi_vec3x4 times(const symmetric *A, usi_vec3x4 b) {
    return (usi_vec3x4){A->xx * b.x + A->xy * b.y + A->xz * b.z, A->xy * b.x + A->yy * b.y + A->yz * b.z,
                        A->xz * b.x + A->yz * b.y + A->zz * b.z};
}

// R A R^T, for rotations of columns X Y Z and symmetric A by columns.
static inline symmetric turn(const usi_vec3x4 R[3], const usi_v4 *a, const usi_v4 *b, const usi_v4 *c,
                             const usi_v4 *d) {
    usi_vec3x4 A[3], B[3];
    for (int i = 0; i < 3; i++)
        A[i] = usi_vec3x4_from(a[i], b[i], c[i], d[i], NULL);
    for (int i = 0; i < 3; i++)
        B[i] = usi_vec3x4_columns(R, A[i]);
    return (symmetric){B[0].x * R[0].x + B[1].x * R[1].x + B[2].x * R[2].x,
                       B[0].x * R[0].y + B[1].x * R[1].y + B[2].x * R[2].y,
                       B[0].x * R[0].z + B[1].x * R[1].z + B[2].x * R[2].z,
                       B[0].y * R[0].y + B[1].y * R[1].y + B[2].y * R[2].y,
                       B[0].y * R[0].z + B[1].y * R[1].z + B[2].y * R[2].z,
                       B[0].z * R[0].z + B[1].z * R[1].z + B[2].z * R[2].z};
}

// The gyroscopic torque of the step's end: the w that solves J (w - w0) + h w x J w = 0, by one step of
// Newton's method. Taken at the start it would give energy to a body that tumbles; solved this way it takes a
// little, of second order.
static inline usi_vec3x4 gyroscopic(const symmetric *J, usi_vec3x4 w, usi_vec3x4 L, double h) {
    // Columns of J + h (w x J - L x), L = J w.
    usi_vec3x4 A = {J->xx + h * (w.y * J->xz - w.z * J->xy), J->xy + h * (w.z * J->xx - w.x * J->xz - L.z),
                    J->xz + h * (w.x * J->xy - w.y * J->xx + L.y)};
    usi_vec3x4 B = {J->xy + h * (w.y * J->yz - w.z * J->yy + L.z), J->yy + h * (w.z * J->xy - w.x * J->yz),
                    J->yz + h * (w.x * J->yy - w.y * J->xy - L.x)};
    usi_vec3x4 C = {J->xz + h * (w.y * J->zz - w.z * J->yz - L.y),
                    J->yz + h * (w.z * J->xz - w.x * J->zz + L.x), J->zz + h * (w.x * J->yz - w.y * J->xz)};
    usi_vec3x4 BC = usi_vec3x4_cross(B, C), CA = usi_vec3x4_cross(C, A), AB = usi_vec3x4_cross(A, B),
               torque = usi_vec3x4_cross(L, w);
    return times(J, usi_vec3x4_scale(1 / usi_vec3x4_dot(A, BC),
                                     (usi_vec3x4){usi_vec3x4_dot(BC, torque), usi_vec3x4_dot(CA, torque),
                                                  usi_vec3x4_dot(AB, torque)}));
}

// The same of bodies that turn by more than a part of a radian in a step, where one step of Newton's method
// may end with more energy than it began with: shortened to what they had.
static usi_vec3x4 hold_energy(const symmetric *inv, usi_vec3x4 w, usi_vec3x4 L, usi_vec3x4 torque, double h,
                              usi_v4i fast) {
    const usi_vec3x4 end = usi_vec3x4_add(L, usi_vec3x4_scale(usi_v4_all(h), torque));
    const usi_v4 had = usi_vec3x4_dot(w, L), has = usi_vec3x4_dot(times(inv, end), end);
    usi_v4 share = usi_v4_all(1);
    for (int l = 0; l < 4; l++) {
        if (has[l] > had[l] && fast[l]) share[l] = sqrt(had[l] / has[l]);
    }
    return usi_vec3x4_scale(usi_v4_all(1 / h), usi_vec3x4_sub(usi_vec3x4_scale(share, end), L));
}

// Which bodies a group is of. Lanes that are not free bodies, or beyond the last, do the work of another one
// again.
typedef struct group {
    const usi_collision_body *k[4];
    usi_free *b[4];
    const usi_node *n[4];
    bool any;
} group;

typedef struct free_context {
    usi_contacts *c;
    const usi_contact_input *in;
    int32_t n_body;
} free_context;

static inline group find_group(const free_context *x, int32_t i) {
    const usi_contacts *c = x->c;
    group g = {.any = false};
    int spare = 0;
    for (int l = 3; l >= 0; l--) {
        int32_t j = 4 * i + l < x->n_body ? 4 * i + l : x->n_body - 1;
        const usi_collision_body *k = &c->collide.collision_body[c->islands.collision_body_of[j]];
        const usi_tree *tree = &c->model->tree[k->tree];
        g.k[l] = k;
        g.b[l] = &c->solve.body[j];
        g.n[l] = &c->model->node[tree->end - 1];
        if (tree->is_free_body) {
            g.any = true;
            spare = l;
        }
    }
    for (int l = 0; l < 4 && g.any && c->has_joints; l++) {
        if (!c->model->tree[g.k[l]->tree].is_free_body) {
            g.k[l] = g.k[spare];
            g.b[l] = g.b[spare];
            g.n[l] = g.n[spare];
        }
    }
    return g;
}

static inline usi_vec3x4 origins(const usi_contacts *c, const group *g) {
    usi_v4 O[4];
    for (int l = 0; l < 4; l++)
        O[l] = c->islands.island[c->islands.tree[g->k[l]->tree].island].O;
    return usi_vec3x4_from(O[0], O[1], O[2], O[3], NULL);
}

// Momentum form, first order.
static void start_group(void *context, int32_t i, int32_t thread) {
    const free_context *x = context;
    usi_contacts *c = x->c;
    const double h = c->model->step;
    const us_vec3 gravity = c->model->gravity;
    (void)thread;
    group g = find_group(x, i);
    if (!g.any) return;
    usi_v4 mass, zero = usi_v4_zero(), *inverse[4];
    for (int l = 0; l < 4; l++)
        inverse[l] = c->inv_inertia[g.k[l]->tree];
    usi_vec3x4 R[3] = {USI_VEC3X4_FROM(g.k, X), USI_VEC3X4_FROM(g.k, Y), USI_VEC3X4_FROM(g.k, Z)};
    usi_vec3x4 com = usi_vec3x4_from(g.n[0]->com, g.n[1]->com, g.n[2]->com, g.n[3]->com, &mass);
    usi_vec3x4 arm = usi_vec3x4_columns(R, com);
    usi_vec3x4 at = usi_vec3x4_sub(usi_vec3x4_add(USI_VEC3X4_FROM(g.k, p), arm), origins(c, &g));
    // About the centre of mass, and the inverse.
    symmetric J = turn(R, g.n[0]->I, g.n[1]->I, g.n[2]->I, g.n[3]->I),
              inv = turn(R, inverse[0], inverse[1], inverse[2], inverse[3]);
    usi_vec3x4 w = USI_VEC3X4_FROM(g.k, w), angular = times(&J, w), moment = gyroscopic(&J, w, angular, h);
    const usi_v4i fast = h * h * usi_vec3x4_dot(w, w) > USI_FAST_TURN;
    if (fast[3] || usi_v4_any_of_three(fast)) moment = hold_energy(&inv, w, angular, moment, h, fast);
    usi_vec3x4 force = {mass * gravity.x, mass * gravity.y, mass * gravity.z};
    if (x->in->torque || x->in->wrench) {
        usi_v4 f[4], n[4];
        for (int l = 0; l < 4; l++)
            usi_free_command(c, x->in, g.k[l], &f[l], &n[l]);
        force = usi_vec3x4_add(force, usi_vec3x4_from(f[0], f[1], f[2], f[3], NULL));
        moment = usi_vec3x4_add(moment, usi_vec3x4_from(n[0], n[1], n[2], n[3], NULL));
    }
    usi_v4 step = usi_v4_all(h), inv_mass = 1 / mass;
    usi_vec3x4 L = usi_vec3x4_add(angular, usi_vec3x4_scale(step, moment)), w_end = times(&inv, L);
    usi_vec3x4 v_com = usi_vec3x4_add(USI_VEC3X4_FROM(g.k, v), usi_vec3x4_cross(w, arm)),
               v_end = usi_vec3x4_add(v_com, usi_vec3x4_scale(step * inv_mass, force)),
               pv = usi_vec3x4_scale(mass, v_end);
    USI_VEC3X4_TO(pv, zero, g.b, pv);
    USI_VEC3X4_TO(usi_vec3x4_add(L, usi_vec3x4_cross(at, pv)), zero, g.b, pw);
    USI_VEC3X4_TO(w_end, zero, g.b, fw);
    USI_VEC3X4_TO(usi_vec3x4_sub(v_end, usi_vec3x4_cross(w_end, at)), zero, g.b, fv);
    USI_VEC3X4_TO(w, zero, g.b, w);
    USI_VEC3X4_TO(usi_vec3x4_sub(v_com, usi_vec3x4_cross(w, at)), zero, g.b, v);
    USI_VEC3X4_TO(((usi_vec3x4){inv.xx, inv.xy, inv.xz}), zero, g.b, inv_I[0]);
    USI_VEC3X4_TO(((usi_vec3x4){inv.xy, inv.yy, inv.yz}), zero, g.b, inv_I[1]);
    USI_VEC3X4_TO(((usi_vec3x4){inv.xz, inv.yz, inv.zz}), zero, g.b, inv_I[2]);
    usi_vec3x4 hm = usi_vec3x4_scale(mass, at);
    usi_v4 square = usi_vec3x4_dot(hm, at);
    J.xx += square - hm.x * at.x;
    J.yy += square - hm.y * at.y;
    J.zz += square - hm.z * at.z;
    J.xy -= hm.x * at.y;
    J.xz -= hm.x * at.z;
    J.yz -= hm.y * at.z;
    USI_VEC3X4_TO(((usi_vec3x4){J.xx, J.xy, J.xz}), zero, g.b, J[0]);
    USI_VEC3X4_TO(((usi_vec3x4){J.xy, J.yy, J.yz}), zero, g.b, J[1]);
    USI_VEC3X4_TO(((usi_vec3x4){J.xz, J.yz, J.zz}), zero, g.b, J[2]);
    USI_VEC3X4_TO(hm, mass, g.b, h);
    USI_VEC3X4_TO(at, inv_mass, g.b, c);
}

// ---------------------------------------------------------------- the end

_Static_assert(sizeof(us_quat) == sizeof(usi_v4), "a quaternion is four lanes");

static inline usi_quatx4 rotations(const group *g) {
    usi_v4 q[4];
    usi_v4_transpose(*(const usi_v4_unaligned *)&g->k[0]->X_WN.q, *(const usi_v4_unaligned *)&g->k[1]->X_WN.q,
                     *(const usi_v4_unaligned *)&g->k[2]->X_WN.q, *(const usi_v4_unaligned *)&g->k[3]->X_WN.q,
                     q);
    return (usi_quatx4){q[0], {q[1], q[2], q[3]}};
}

// The centre of mass goes straight on, the body turns about it.
static void finish_group(void *context, int32_t i, int32_t thread) {
    const free_context *x = context;
    const usi_contacts *c = x->c;
    const us_model *m = c->model;
    usi_v4 h = usi_v4_all(m->step);
    (void)thread;
    group g = find_group(x, i);
    if (!g.any) return;
    usi_vec3x4 w = USI_VEC3X4_FROM(g.b, w), at = USI_VEC3X4_FROM(g.b, c),
               v_com = usi_vec3x4_add(USI_VEC3X4_FROM(g.b, v), usi_vec3x4_cross(w, at));
    usi_quatx4 q = usi_quatx4_normalize(
                   usi_quatx4_mul(usi_quatx4_exp(usi_vec3x4_scale(h, w)), rotations(&g))),
               back = usi_quatx4_conj(q);
    usi_vec3x4 arm = usi_quatx4_rotate(q, USI_VEC3X4_FROM(g.n, com)),
               p = usi_vec3x4_sub(
                   usi_vec3x4_add(usi_vec3x4_add(origins(c, &g), at), usi_vec3x4_scale(h, v_com)), arm);
    usi_vec3x4 v = usi_quatx4_rotate(back, usi_vec3x4_sub(v_com, usi_vec3x4_cross(w, arm))),
               spin = usi_quatx4_rotate(back, w);
    usi_v4 out_q[4], out_p[4], out_v[4], out_w[4];
    usi_v4_transpose(q.w, q.v.x, q.v.y, q.v.z, out_q);
    usi_vec3x4_to(p, h, &out_p[0], &out_p[1], &out_p[2], &out_p[3]);
    usi_vec3x4_to(v, h, &out_v[0], &out_v[1], &out_v[2], &out_v[3]);
    usi_vec3x4_to(spin, h, &out_w[0], &out_w[1], &out_w[2], &out_w[3]);
    for (int l = 0; l < 4; l++)
        usi_free_end(c, x->in, g.k[l], out_q[l], out_p[l], out_w[l], out_v[l]);
}

// Groups that one thread takes at a time.
enum { GRAIN = 16 };

static void run_groups(usi_contacts *c, const usi_contact_input *in, usi_part part) {
    if (c->islands.n_island == 0 || !c->has_free) return;
    const usi_island *last = &c->islands.island[c->islands.n_island - 1];
    free_context x = {c, in, last->first_body + last->n_body};
    usi_pool_run(c->pool, (x.n_body + 3) / 4, GRAIN, part, &x);
}

void usi_free_four_start(usi_contacts *c, const usi_contact_input *in) { run_groups(c, in, start_group); }
void usi_free_four_finish(usi_contacts *c, const usi_contact_input *in) { run_groups(c, in, finish_group); }
