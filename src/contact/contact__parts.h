// What the files of this room call of each other, in the order of a step.
#ifndef USI_CONTACT_CONTACT_PARTS_H
#define USI_CONTACT_CONTACT_PARTS_H

#include <string.h>

#include "contact/contact_world.h"

// collision_frames.c: where a shape is. collide.c: a new point of the step, NULL when there is no room; the
// last step's points of a pair.
us_pose usi_geom_pose(const usi_contacts *c, int32_t geom, const usi_collision_body *k);
usi_point_now *usi_next_point(usi_contacts *c);
void usi_reuse_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t);
static inline int32_t usi_tree_of_geom(const usi_contacts *c, int32_t geom) {
    return c->model->geom[geom].tree;
}

// fast/shared_pairs.c: room for several threads; false when there is none.
bool usi_shared_pairs_create(usi_contacts *c);

// island.c: by which method an island is solved. Islands of more free bodies than USI_MAX_NEWTON_BODIES are
// swept.
enum { USI_MAX_NEWTON_BODIES = 24 };
usi_island_kind usi_kind_of_island(const usi_contacts *c, const usi_island *s);
// fast/kept_islands.c: whether the islands of the last step are those of this one.
bool usi_islands_hold(const usi_contacts *c);

// rows.c: the blocks of one island; after the solve what its points keep, and which of its free bodies no
// contact acts on (is_released).
bool usi_rows_create(usi_contacts *c);
void usi_rows_start(usi_contacts *c);  // once a step, before the islands
bool usi_make_rows(usi_contacts *c, usi_island *s, const usi_contact_state *now, usi_contact_state *next,
                   int32_t thread);
void usi_keep_rows(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                   usi_contact_state *next);
// The same of a part of an island, which several threads share: points first .. end - 1 of its list, to
// blocks from *at on; then blocks and points of it, after usi_release_bodies.
typedef struct usi_rows_made {
    int32_t n_skipped, n_impact, refused;
    bool was_kept;
} usi_rows_made;
bool usi_make_rows_of(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                      usi_contact_state *next, int32_t thread, int32_t first, int32_t end, usi_block **at,
                      usi_rows_made *out);
void usi_release_bodies(usi_contacts *c, const usi_island *s);
void usi_keep_rows_of(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                      usi_contact_state *next, usi_span blocks, usi_span points);
// fast/shared_island.c: whether an island is large enough for several threads, and of points with one block
// each; its rows, the velocities of the rows after the sweeps, and what its points keep.
bool usi_can_share(const usi_contacts *c, const usi_island *s, const usi_contact_state *now);
void usi_shared_rows(usi_contacts *c, usi_island *s, const usi_contact_state *now, usi_contact_state *next);
void usi_shared_velocities(usi_contacts *c, const usi_island *s);
void usi_shared_keep(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                     usi_contact_state *next);
// What a point without rows keeps: only where it is.
void usi_keep_place(const usi_contacts *c, int32_t point, const usi_contact_state *now,
                    usi_contact_state *next);
// impact.c: what restitution asks for, to be called before the first solve of an island with impacts; and
// after each solve whether they created energy, the rows being changed so that the next solve creates less.
// The velocities of a block's rows before the step's impulses.
void usi_row_velocities_before(const usi_contacts *c, const usi_island *s, const usi_block *k, double u[3]);
void usi_impact_start(usi_contacts *c, usi_island *s);
bool usi_impact_again(usi_contacts *c, usi_island *s, const usi_contact_state *next);
// overlap.c, in the order of a step. The overlap of a pair, and its gaps as if that were not; is_new: the
// last step did not know it. Whether an island has any. Rows that push these apart; what their solve makes of
// the bodies is taken down, and after the solve without them it becomes the positions: of trees, of free
// bodies.
void usi_overlap_find(usi_contacts *c, const usi_contact_state *now, usi_touch *t, bool is_new);
bool usi_overlap_in(const usi_contacts *c, const usi_island *s);
void usi_overlap_push(usi_contacts *c, const usi_island *s);
void usi_overlap_take(usi_contacts *c, const usi_island *s);
void usi_overlap_keep(usi_contacts *c, const usi_island *s, const usi_contact_input *in,
                      usi_contact_state *next);
void usi_overlap_finish(usi_contacts *c, const usi_contact_input *in);
// newton.c
void usi_newton(usi_contacts *c, usi_island *s, const usi_contact_input *in, int32_t thread);
// rigid_island.c: contacts that do not give; falls back on Newton's method. Bytes: what it wants of a
// thread's work space.
size_t usi_rigid_island_bytes(const us_model *m, int32_t max_contact);
void usi_rigid_island(usi_contacts *c, usi_island *s, const usi_contact_input *in, int32_t thread);
// joints.c: of a tree in an island. Mass matrix (H; not of an island's only tree that branch.c takes) and its
// diagonal (inertia), the impulse of all that does not depend on the velocity at the end of the step (push),
// vel, and what acts on the joints (bounded_torque_now, joint_limit_now). is_again: an earlier solve of the
// step has used the links. Returns whether the links have the twists of vel.
bool usi_tree_start(usi_contacts *c, const usi_contact_input *in, int32_t tree, bool wants_matrix,
                    bool is_again);
// Impulse and slope of everything that acts on single joints, springs and dampers included, at velocities v:
// added to `impulse` and `slope`.
void usi_joint_rows(const usi_contacts *c, int32_t tree, const double *restrict v, double *restrict impulse,
                    double *restrict slope);
// Joint velocities (vel) to the next state; efforts of drives.
void usi_tree_finish(usi_contacts *c, const usi_contact_input *in, int32_t tree);
// free_bodies.c: momentum of the step of all islands' free bodies, before the islands are solved, and where
// they end, after. Of one body: force and moment of the commands about its centre of mass; its end to the
// state.
// The square of an angle, rad^2: a body that turns by more in a step has its gyroscopic torque held from
// giving energy.
#define USI_FAST_TURN 0.1
void usi_free_start(usi_contacts *c, const usi_contact_input *in);
void usi_free_finish(usi_contacts *c, const usi_contact_input *in);
void usi_free_finish_one(const usi_contacts *c, const usi_contact_input *in, const usi_collision_body *k,
                         const usi_free *b);
void usi_free_command(const usi_contacts *c, const usi_contact_input *in, const usi_collision_body *k,
                      usi_v4 *out_force, usi_v4 *out_moment);
static inline void usi_free_end(const usi_contacts *c, const usi_contact_input *in,
                                const usi_collision_body *k, usi_v4 q, usi_v4 p, usi_v4 w, usi_v4 v) {
    const usi_tree *tree = &c->model->tree[k->tree];
    const usi_node *root = &c->model->node[tree->first];
    double *out_q = in->out_q + root->q, *out_v = in->out_v + tree->first;
    for (int j = 0; j < 3; j++) {
        out_v[j] = w[j];
        out_v[3 + j] = v[j];
    }
    // What stands still stays where it is: a rotation that is normalised each step may go to and fro by a
    // bit.
    if (!usi_v4_any_of_three((w != 0) | (v != 0))) {
        memcpy(out_q, in->q + root->q, 7 * sizeof *out_q);
        return;
    }
    if (root->flags & USI_NODE_TURNED) {
        const us_pose X = us_pose_mul(us_pose_inverse(usi_node_rest(root)),
                                      (us_pose){{q[0], q[1], q[2], q[3]}, usi_v4_vec3(p)});
        q = (usi_v4){X.q.w, X.q.x, X.q.y, X.q.z};
        p = usi_v4_from(X.p);
    } else {
        p -= root->r;
    }
    *(usi_v4_unaligned *)out_q = q;
    for (int j = 0; j < 3; j++)
        out_q[4 + j] = p[j];
}
// fast/free_four.c: the same, four bodies at a time.
void usi_free_four_start(usi_contacts *c, const usi_contact_input *in);
void usi_free_four_finish(usi_contacts *c, const usi_contact_input *in);

// The twist of a block's first body against its second.
static inline void usi_block_twist(const usi_free *body, const usi_block *k, usi_v4 *out_w, usi_v4 *out_v) {
    usi_v4 w = usi_v4_zero(), v = w;
    if (k->a >= 0) {
        w = body[k->a].w;
        v = body[k->a].v;
    }
    if (k->b_ >= 0) {
        w -= body[k->b_].w;
        v -= body[k->b_].v;
    }
    *out_w = w;
    *out_v = v;
}

static inline bool usi_is_fast(const usi_contacts *c, usi_contact_fast twin) { return (c->fast & twin) != 0; }

// Whether points that cannot press have no rows. The rigid solvers take all.
static inline bool usi_can_skip(const usi_contacts *c, const usi_island *s) {
    return s->kind != USI_ISLAND_RIGID && usi_is_fast(c, USI_FAST_SKIP);
}

// The velocities of a block's rows.
static inline void usi_block_velocity(const usi_free *body, const usi_block *k, double u[3]) {
    usi_v4 w, v;
    usi_block_twist(body, k, &w, &v);
    for (int j = 0; j < 3; j++)
        u[j] = usi_v4_sum(k->m[j] * w + k->d[j] * v);
}

// Features of points that are none of a shape's: of cores (swept.c), and of what a solve let through
// (passed.c).
static const uint64_t USI_CORE_FEATURE = UINT64_MAX - 1, USI_PASSED_FEATURE = UINT64_MAX - 1 - USI_MAX_PASSED;
static inline bool usi_is_passed(uint64_t feature) {
    return feature >= USI_PASSED_FEATURE && feature < USI_CORE_FEATURE;
}

#endif
