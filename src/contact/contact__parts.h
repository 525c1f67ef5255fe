// What the files of this room call of each other, in the order of a step.
#ifndef USI_CONTACT_CONTACT_PARTS_H
#define USI_CONTACT_CONTACT_PARTS_H

#include "contact/contact_world.h"

// collide.c: where a shape is; a new point of the step, NULL when there is no room; the last step's points of
// a pair.
us_pose usi_geom_pose(const usi_contacts *c, int32_t geom, const usi_collision_body *k);
usi_point_now *usi_next_point(usi_contacts *c);
void usi_reuse_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t);
// rows.c: the blocks of one island; after the solve what its points keep, and which of its free bodies no
// contact acts on (is_released).
bool usi_rows_create(usi_contacts *c);
void usi_rows_start(usi_contacts *c);  // once a step, before the islands
bool usi_make_rows(usi_contacts *c, usi_island *s, const usi_contact_state *now, usi_contact_state *next,
                   int32_t thread);
void usi_keep_rows(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                   usi_contact_state *next);
// What a point without rows keeps: only where it is.
void usi_keep_place(const usi_contacts *c, int32_t point, const usi_contact_state *now,
                    usi_contact_state *next);
// impact.c: what restitution asks for, to be called before the first solve of an island with impacts; and
// after each solve whether they created energy, the rows being changed so that the next solve creates less.
void usi_impact_start(usi_contacts *c, usi_island *s);
bool usi_impact_again(usi_contacts *c, usi_island *s, const usi_contact_state *next);
// newton.c
void usi_newton(usi_contacts *c, usi_island *s, const usi_contact_input *push, int32_t thread);
// rigid_island.c: contacts that do not give; falls back on Newton's method. Bytes: what it wants of a
// thread's work space.
size_t usi_rigid_island_bytes(const us_model *m);
void usi_rigid_island(usi_contacts *c, usi_island *s, const usi_contact_input *push, int32_t thread);
// joints.c: of a tree in an island. Mass matrix (H; not of an island's only tree that branch.c takes) and its
// diagonal (inertia), the impulse of all that does not depend on the velocity at the end of the step (push),
// vel, and what acts on the joints (bounded_torque_now, joint_limit_now).
void usi_tree_start(usi_contacts *c, const usi_contact_input *push, int32_t tree, bool wants_matrix);
// Impulse and slope of everything that acts on single joints, springs and dampers included, at velocities v:
// added to `impulse` and `slope`.
void usi_joint_rows(const usi_contacts *c, int32_t tree, const double *restrict v, double *restrict impulse,
                    double *restrict slope);
// Joint velocities (vel) to the next state; efforts of drives.
void usi_tree_finish(usi_contacts *c, const usi_contact_input *push, int32_t tree);
// free_bodies.c: momentum of the step of all islands' free bodies, before the islands are solved, and where
// they end, after. Of one body: force and moment of the commands about its centre of mass; its end to the
// state.
void usi_free_start(usi_contacts *c, const usi_contact_input *push);
void usi_free_finish(usi_contacts *c, const usi_contact_input *push);
void usi_free_command(const usi_contacts *c, const usi_contact_input *push, const usi_collision_body *k,
                      usi_v4 *out_force, usi_v4 *out_moment);
static inline void usi_free_end(const usi_contacts *c, const usi_contact_input *push,
                                const usi_collision_body *k, us_pose X_WN, usi_v4 w, usi_v4 v) {
    const usi_tree *tree = &c->model->tree[k->tree];
    const usi_node *root = &c->model->node[tree->first];
    us_pose X = X_WN;
    if (root->flags & USI_NODE_TURNED)
        X = us_pose_mul(us_pose_inverse(usi_node_rest(root)), X);
    else
        X.p = us_vec3_sub(X.p, usi_v4_vec3(root->r));
    const double end_q[7] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z};
    for (int j = 0; j < 7; j++)
        push->out_q[root->q + j] = end_q[j];
    for (int j = 0; j < 3; j++) {
        push->out_v[tree->first + j] = w[j];
        push->out_v[tree->first + 3 + j] = v[j];
    }
}
// fast/free_four.c: the same, four bodies at a time.
void usi_free_four_start(usi_contacts *c, const usi_contact_input *push);
void usi_free_four_finish(usi_contacts *c, const usi_contact_input *push);

static inline bool usi_is_fast(const usi_contacts *c, usi_contact_fast twin) { return (c->fast & twin) != 0; }

#endif
