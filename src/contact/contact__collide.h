// What the stages of collision share: frames, boxes, near pairs and points.
#ifndef USI_CONTACT_CONTACT_COLLIDE_H
#define USI_CONTACT_CONTACT_COLLIDE_H

#include "contact/contact__parts.h"
#include "geom/contact_candidates.h"

// Contact is looked for this far outside each shape, m, plus what it moves in a step.
static const double USI_BASE_MARGIN = 0.5e-3;

// Most links are never looked at so closely that their rotation is asked for.
static inline us_pose usi_body_pose(const usi_collision_body *k) {
    if (k->has_rotation) return k->X_WN;
    us_mat3 R = {{k->X[0], k->Y[0], k->Z[0], k->X[1], k->Y[1], k->Z[1], k->X[2], k->Y[2], k->Z[2]}};
    return (us_pose){us_quat_from_matrix(R), usi_v4_vec3(k->p)};
}
static inline void usi_find_rotation(usi_collision_body *k) {
    if (!k->has_rotation) {
        k->X_WN = usi_body_pose(k);
        k->has_rotation = true;
    }
}

static inline bool usi_is_still_ghost(const usi_contacts *c, int32_t tree) {
    return c->ghost && tree >= 0 && c->ghost[tree] == USI_GHOST_STILL;
}

// Where a shape's origin is, and its z-axis.
static inline usi_v4 usi_geom_centre(const usi_geom *g, const usi_collision_body *k) {
    return k->p + usi_to_world(k, g->X_NG.p);
}
static inline usi_v4 usi_geom_axis(const usi_contacts *c, int32_t geom, const usi_collision_body *k) {
    return c->is_plain[geom] ? k->Z : usi_to_world(k, usi_quat_z(c->model->geom[geom].X_NG.q));
}

// A box by its lower and its upper corner.
typedef struct usi_corners {
    usi_v4 min, max;
} usi_corners;

// As they lie in memory the lower corner is in lanes 0 to 2 of a box's first four numbers, the upper in
// lanes 1 to 3 of its last four.
_Static_assert(sizeof(us_aabb) == 6 * sizeof(double), "a box is two corners");
static inline usi_corners usi_corners_of(const us_aabb *b) {
    usi_v4 last = *(const usi_v4_unaligned *)&b->min.z;
    return (usi_corners){*(const usi_v4_unaligned *)&b->min.x,
                         __builtin_shufflevector(last, last, 1, 2, 3, 3)};
}
static inline bool usi_boxes_overlap(const us_aabb *a, const us_aabb *b) {
    usi_corners A = usi_corners_of(a), B = usi_corners_of(b);
    return !usi_v4_any_of_three((A.min > B.max) | (B.min > A.max));
}

// By the lesser shape, then the greater one.
static inline int64_t usi_geom_key(int32_t lesser, int32_t greater) {
    return (int64_t)lesser << 32 | greater;
}
static inline int64_t usi_pair_key(const usi_broad_pair *p) { return usi_geom_key(p->a, p->b); }
static inline int64_t usi_touch_key(const usi_touch *t) {
    return t->geom_a < t->geom_b ? usi_geom_key(t->geom_a, t->geom_b) : usi_geom_key(t->geom_b, t->geom_a);
}

// collision_frames.c: poses and velocities of all links with shapes; of ghosts that are still only where they
// are wanted.
void usi_find_frames(usi_contacts *c, const double *q, const double *v, bool want_still);
// near_pairs.c: the boxes of this step, and the pairs of grown boxes where a shape has left its own.
void usi_find_boxes(usi_contacts *c);
us_status usi_find_near(usi_contacts *c);

// collide.c: the points of some of the near pairs. fast/shared_pairs.c: whether several threads can share
// them, and how they do; room for that.
void usi_touch_pairs(usi_contacts *c, const usi_contact_state *now, usi_span pairs);
bool usi_can_share_pairs(const usi_contacts *c);
void usi_shared_pairs(usi_contacts *c, const usi_contact_state *now);

// swept.c: the middle of a shape's box in its node's frame, m, and in the spare lane half the box's smallest
// side.
usi_v4 usi_core_of(const usi_geom *g);
typedef struct usi_core_hit {
    usi_v4 normal;   // of the mesh
    usi_v4 on_core;  // m, in W: the point of the core that comes down first
    double gap;      // m
} usi_core_hit;
// Whether a shape moves by more than its thickness in a step.
static inline bool usi_is_swift(const usi_contacts *c, int32_t geom) {
    return c->collide.grow[geom] - c->model->geom[geom].margin - USI_BASE_MARGIN > c->core[geom][3];
}
bool usi_swept_find(const usi_contacts *c, int32_t mesh, const usi_collision_body *ground, int32_t geom,
                    const usi_collision_body *mover, usi_core_hit *out);

// fast/apart.c: whether the direction in which the pair was last seen apart, in the axes of A, still shows
// them so; that direction, 0 where none is known.
bool usi_is_apart(const usi_contacts *c, const usi_touch *t, us_vec3 direction_A);
us_vec3 usi_find_apart(const usi_contacts *c, const usi_touch *t);

#endif
