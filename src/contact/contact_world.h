// Contact in a world that steps: which shapes touch, what they remember, and the velocities at the end of the
// step.
//
//     collide    frames of all links with shapes (collision_frames.c); ground under the boxes, where it is
//     paged in
//                (residency.c); boxes and near pairs (near_pairs.c); points with what they remember
//                (collide.c)
//     islands    trees that hang together through contacts (island.c)
//     rows       points to blocks, by the interaction models (rows.c)
//     solve      island by island, in any order, on any thread (solve_islands.c): Newton (newton.c),
//     Gauss-Seidel
//                (gauss_seidel.c), or rigid (rigid_island.c)
//     remember   what the points keep for the next step (rows.c)
#ifndef USI_CONTACT_CONTACT_WORLD_H
#define USI_CONTACT_CONTACT_WORLD_H

#include "actuate/actuate.h"
#include "base/pool.h"
#include "contact/contact.h"
#include "dyn/dyn.h"
#include "geom/broad.h"
#include "understudy/ground_model.h"
#include "understudy/soil.h"

// ---------------------------------------------------------------- memory: part of the state

// A pair of shapes that touched: its points, and the relative pose at which they were found. While that has
// changed by next to nothing, the points are the same ones on both bodies, and only their gaps are measured
// again.
typedef struct usi_touch {
    us_pose X_AB;            // node frames
    int32_t geom_a, geom_b;  // A is the one that does not roll
    int32_t first, n;        // anchors
    int32_t material;        // of A, here: a ground has regions
    float overlap;           // m, how deep it lay in each other when it met, as far as it still does
} usi_touch;

// What a contact point remembers. Vectors are in the frame of A's node, p_B in that of B's.
typedef struct usi_anchor {
    us_vec3 p_A, p_B, normal;
    us_vec3 xi;     // m, elastic tangential deflection
    us_vec3 hold;   // m, the point of A that the tangential spring ties to p_B
    us_vec3 angle;  // rad, elastic deflection of the torsional and rolling rows
    us_vec3 g;      // N s, impulse on A
    uint64_t feature;
    double memory[US_TOUCH_MEMORY];  // of the interaction model
    double stiffness, damping;       // N/m, N s/m: of the tangential spring
    int32_t is_sliding;
    int32_t is_kept;  // the step kept the velocities of the one before: their residual was small
} usi_anchor;

// X(type, name, count, unit, about): fields of the state.
#define USI_CONTACT_STATE_FIELDS(X)                                                                        \
    X(int32_t, n_touch, 1, "1", "pairs of shapes that touch")                                              \
    X(int32_t, n_anchor, 1, "1", "contact points")                                                         \
    X(usi_touch, touch, max_contact, "", "the pairs, sorted by shapes")                                    \
    X(usi_anchor, anchor, max_contact, "", "what each contact point remembers")                            \
    X(us_pair_values, pair, n_pair, "", "how materials touch: may be changed while running")               \
    X(int32_t, pair_model, n_pair, "1", "what acts between materials, as in us_model: may be changed too") \
    X(double, law_state, max_contact *n_law_state, "", "what laws of soil keep for each contact point")    \
    X(int32_t, parted, n_loose, "1", "pairs that a broken joint held: 1 once they were apart")             \
    X(us_soil, soil, n_soil, "", "what each material is as soil: may be changed while running")            \
    X(int32_t, region, n_region, "1", "the material of each region: may be changed while running")

typedef struct usi_contact_state {
#define CONTACT_STATE(type, name, count, unit, about) type *name;
    USI_CONTACT_STATE_FIELDS(CONTACT_STATE)
#undef CONTACT_STATE
} usi_contact_state;

// ---------------------------------------------------------------- scratch

// A link that carries shapes (0 is the world), in this step.
typedef struct usi_collision_body {
    us_pose X_WN;        // with has_rotation; in any case where there are loops
    usi_v4 X, Y, Z, p;   // columns of R_WN, position in the world
    usi_v4 w, v;         // twist at p
    double speed, spin;  // their lengths
    // m/s, rad/s: of a solve of this step that took it farther than was looked at; 0: none.
    double end_speed, end_spin;
    int32_t node, tree, body;  // body: its place in its island's list; -1: none
    int32_t first_geom, end_geom;
    bool has_rotation;  // X_WN is known, and not only these columns
    bool is_solved;     // rows of this step act on it: is_swift is known
    bool is_swift;      // a solve of this step moves one of its shapes by more than half its thickness
} usi_collision_body;

// Where a collision body was when the boxes of its shapes were grown.
typedef struct usi_stay {
    usi_v4 X, Y, Z, p;
    double speed, spin;
    double far, room;  // m: largest distance of a point of its shapes, least that a box was grown by
} usi_stay;

// The sums over the lanes of three vectors, in lanes 0 to 2; what lane 3 holds means nothing.
static inline usi_v4 usi_three_sums(usi_v4 x, usi_v4 y, usi_v4 z) {
    usi_v4 xy = __builtin_shufflevector(x, y, 0, 4, 2, 6) + __builtin_shufflevector(x, y, 1, 5, 3, 7);
    usi_v4 zz = z + __builtin_shufflevector(z, z, 1, 0, 3, 2);
    return __builtin_shufflevector(xy, zz, 0, 1, 4, 5) + __builtin_shufflevector(xy, zz, 2, 3, 6, 7);
}

// The same of four.
static inline usi_v4 usi_vec3x4_sums(usi_v4 x, usi_v4 y, usi_v4 z, usi_v4 w) {
    usi_v4 xy = __builtin_shufflevector(x, y, 0, 4, 2, 6) + __builtin_shufflevector(x, y, 1, 5, 3, 7);
    usi_v4 zw = __builtin_shufflevector(z, w, 0, 4, 2, 6) + __builtin_shufflevector(z, w, 1, 5, 3, 7);
    return __builtin_shufflevector(xy, zw, 0, 1, 4, 5) + __builtin_shufflevector(xy, zw, 2, 3, 6, 7);
}

// Vectors between the world's axes and a link's.
static inline us_vec3 usi_to_local(const usi_collision_body *k, usi_v4 p) {
    return usi_v4_vec3(usi_three_sums(k->X * p, k->Y * p, k->Z * p));
}
static inline usi_v4 usi_to_world(const usi_collision_body *k, us_vec3 p) {
    return usi_v4_columns_of(k->X, k->Y, k->Z, p);
}

// The same for the first link of a pair, which mostly is the world.
static inline us_vec3 usi_to_A(const usi_collision_body *A, usi_v4 p) {
    return A->node < 0 ? usi_v4_vec3(p) : usi_to_local(A, p);
}
// Of a vector of an anchor: something follows each.
static inline usi_v4 usi_from_A(const usi_collision_body *A, const us_vec3 *p) {
    return A->node < 0 ? usi_v4_load3(p) : usi_to_world(A, *p);
}

// A contact point of this step.
typedef struct usi_point_now {
    usi_v4 p, n;      // m, in the world: half way between the surfaces; from B to A
    usi_v4 p_A, p_B;  // on the surfaces
    double gap;
    int32_t touch;  // of this step
    int32_t old;    // anchor of the last step; -1: new
    uint64_t feature;
    int32_t soil_contact;  // what it is in soil; -1: not in soil
    bool is_same;          // the last step's point of both bodies
    bool is_tied;          // the stretch of its spring was measured between these
    bool may_press;        // in this step; otherwise it has rows only if the solve without it goes through it
} usi_point_now;

// Something in soil, in this step.
typedef struct usi_soil_contact {
    usi_v4 hub, up, ahead,
        left;  // wheels: m, in the world; unit vectors: the soil's normal, the heading, the axle
    us_soil_wheel wheel;
    us_soil_history load;
    us_wheel_reaction reaction;  // wheels
    double sinkage;              // m, below the surface that is there
    double vx, vy, spin;         // m/s, rad/s: wheels
    double direction;            // wheels: 1 or -1, where the soil lies that it meets
    double blend;                // wheels: 1 rolls, 0 rests
    bool has_turned;             // wheels: it went the other way in the last step
    double drag[2];              // N s/m, how the shear along and across falls with the rim's speed
    double radius, area;         // feet: m of a ball, or else m^2
    double strip;                // feet: m, a ball that is half a capsule has so much of its straight part
    double force, stiffness;     // N, N/m, along the normal stress's resultant
    int32_t is_wheel, is_curved, point, geom, ground, material;  // is_curved: feet that are no balls
    int32_t slip_block;                                          // of the island's blocks; -1: none
    double mean_change;                                          // feet: m, of the columns under it
    int32_t is_node, is_answered, column[2];                     // of a ground model: the column
    double surface, bottom;   // nodes: m, of the ground and of the body in the bed's frame
    us_ground_answer answer;  // nodes: of this solve, once is_answered
    double share, aside;  // wheels: of its width in this soil, and m to the left where the middle of that is
} usi_soil_contact;

// A point through which a solve of this step went (passed.c), in the frames of the links' nodes.
enum { USI_MAX_PASSED = 64 };
typedef struct usi_passed {
    us_vec3 p_A, p_B, normal;
    double gap;  // m, at the start: less than what it is by what the turn takes of it within the step
    int32_t geom_a, geom_b;
} usi_passed;

// How slow a link must be for none of its shapes to move by more than half its thickness in a step: each
// component of v^2 + far2 w^2 less than max2.
typedef struct usi_slow {
    double far2;  // m^2
    double max2;  // m^2/s^2
} usi_slow;

// An island: trees first_tree .. and points first_point .. in the sorted lists.
typedef struct usi_island {
    int32_t first_tree, n_tree;
    int32_t first_body, n_body;  // collision bodies that move, as usi_free
    int32_t first_block, n_block;
    int32_t first_point, n_point;
    double load;  // N
    double min_mass, max_mass;
    usi_v4 O;      // m
    int32_t kind;  // usi_island_kind
    int32_t n_iteration;
    bool was_kept;            // the last step's velocities were those before it, for all points
    bool failed;              // could not be solved
    uint32_t fallback;        // of usi_fallback: what it needed beside its own method
    int32_t refused;          // 1 + the pair of materials whose model gave no usable law; 0: none
    int32_t n_impact;         // points with restitution
    int32_t n_skipped;        // points without rows: they do not press
    bool is_started;          // a solve has begun: links of its trees carry what that made of them
    bool is_again;            // solved again: with points that the first solve went through, or after a push
    bool is_drained;          // what rolling gained is taken back already, in an earlier pass of this step
    bool is_pushed;           // overlaps are pushed apart: positions have velocities of their own
    int32_t round;            // of impact.c
    double share, low, high;  // of the restitution: that of the rows; between which two the right one lies
    double low_work, high_work;
} usi_island;

// What an island was solved by when its own method gave no answer, a bit each.
typedef enum usi_fallback {
    USI_FALLBACK_LAGGED = 1 << 0,     // newton.c: friction of lagged radii
    USI_FALLBACK_HARDENED = 1 << 1,   // and soft rows that were hardened
    USI_FALLBACK_SHORTENED = 1 << 2,  // and still not converged: velocities without more energy
    USI_FALLBACK_SWEPT = 1 << 3,      // rigid_island.c: sweeps in place of the direct solver
    USI_FALLBACK_SOFT = 1 << 4,       // rigid_island.c: Newton's method with compliant rows
    USI_N_FALLBACK = 5
} usi_fallback;

typedef enum usi_island_kind {
    USI_ISLAND_BRANCH,
    USI_ISLAND_BLOCKS,
    USI_ISLAND_GAUSS_SEIDEL,
    USI_ISLAND_RIGID
} usi_island_kind;

// A pair that touched when islands were found, and what of it holds as long as they do.
typedef struct usi_grouped {
    int32_t geom_a, geom_b;
    int32_t n;                                   // points
    bool may_press;                              // some of them
    int32_t collision_body_a, collision_body_b;  // whose the shapes are
    int32_t material_b;
    double mass;        // kg, of both against each other
    double separation;  // m/s, max speed at which an overlap is resolved
} usi_grouped;

// What the solve of one tree starts from and leaves.
typedef struct usi_tree_now {
    int32_t island;    // -1: nothing touches it
    int32_t variable;  // first of its variables within the island
    bool is_released;  // a free body that no contact acts on in this step: it moves as in the air
} usi_tree_now;

// Six numbers, a twist or a force (w | v), as rows of a six by six matrix lie: the first four, and two and
// two zeros.
typedef struct usi_row {
    usi_v4 a, b;
} usi_row;

// What is kept of a joint that was eliminated, see branch.c.
typedef struct usi_branch {
    usi_row S, U, V;
    usi_row sum[2];  // of two solutions: forces on the way inwards, twists on the way outwards
    double inv_d;
} usi_branch;

// Inputs of a step's solve that come from outside.
typedef struct usi_contact_input {
    const double *q, *v;             // state at the start
    const double *a;                 // mean acceleration of the last step
    const double *torque;            // n_v or NULL
    const us_wrench *wrench;         // n_body or NULL
    const usi_actuation *actuation;  // what acts on the joints
    double *drive_effort;            // out: of touched trees
    double *out_q, *out_v;           // next state: written for touched trees
} usi_contact_input;

// Who moves a tree, where one world is spread over several processes (sim/ghost.c). A ghost belongs to
// another process. One that is still takes no part in the step: nothing touches it and nothing moves it. One
// that is awake moves and touches as any tree.
typedef enum usi_ghost { USI_OWN, USI_GHOST_AWAKE, USI_GHOST_STILL } usi_ghost;

// One struct per stage, in the order of a step: each is written by its stage alone, and read by those below
// it. X(type, name, count, unit, about)

// collide.c, soil.c, residency.c. Reads q, v, and the touches and anchors of the state.
#define USI_COLLIDE_FIELDS(X)                                                                             \
    X(usi_collision_body, collision_body, n_collision_body, "", "links with shapes: pose and velocity")   \
    X(us_aabb, box, n_geom, "m", "boxes of the shapes in this step")                                      \
    X(double, grow, n_geom, "m", "how far outside a shape contact is looked for")                         \
    X(usi_broad_box, fat, n_geom, "m", "boxes grown so that pairs last for many steps")                   \
    X(usi_stay, stay, n_collision_body, "", "where the links were then")                                  \
    X(bool, is_near, n_geom, "", "whether a shape is in one of the pairs")                                \
    X(usi_broad_pair, near, max_pair, "", "pairs of grown boxes")                                         \
    X(us_vec3, apart, max_pair, "1", "a direction along which a near pair was last seen apart; 0: none")  \
    X(usi_broad_pair, near_before, max_pair, "", "the pairs of the grown boxes before these")             \
    X(us_vec3, apart_before, max_pair, "1", "their directions")                                           \
    X(usi_touch, touch_now, max_contact + 1, "", "pairs that touch in this step")                         \
    X(bool, may_press, max_contact + 1, "", "whether a point of each may press in this step")             \
    X(usi_point_now, point, max_contact, "", "contact points of this step")                               \
    X(int32_t, overlap, n_loose, "1", "pairs that a broken joint held: 1 where they still overlap")       \
    X(usi_passed, passed, USI_MAX_PASSED, "", "points through which a solve of this step went")           \
    X(usi_soil_contact, soil_contact, max_soil_contact, "", "what is in soil")                            \
    X(us_ground_node, ground_node, max_ground_node, "", "the columns under a body, for its ground model") \
    X(us_ground_answer, ground_answer, max_ground_node, "", "what that answers")                          \
    X(us_ground_patch, ground_patch, max_ground_node, "", "the same bodies, after the step")              \
    X(us_soil, soil_here, max_soil_here, "",                                                              \
      "what the soil under each of these is like, where it varies over its ground")

// island.c. Reads which pairs touch, and where the links are.
#define USI_ISLANDS_FIELDS(X)                                                              \
    X(int32_t, touch_tree, max_contact, "", "by which tree each belongs to an island")     \
    X(usi_grouped, grouped, max_contact, "", "the pairs that the islands were found from") \
    X(int32_t, order, max_contact, "", "points sorted by island")                          \
    X(usi_tree_now, tree, n_tree, "", "which island a tree belongs to")                    \
    X(int32_t, root, n_tree, "", "union-find")                                             \
    X(int32_t, members, n_tree, "", "trees sorted by island")                              \
    X(usi_island, island, n_tree, "", "islands")                                           \
    X(int32_t, collision_body_of, n_collision_body + n_tree, "", "whose they are")

// rows.c. Reads points, islands, and the anchors of the state. The solvers write g, radius and press.
#define USI_ROWS_FIELDS(X) X(usi_block, block, max_block, "", "rows of the islands")

// free_bodies.c, newton.c, matrix.c, fast/branch.c, gauss_seidel.c, rigid_island.c, impact.c. Reads rows,
// islands and links. What comes out of it is in body, u, and in g of the rows. To remember it rows.c reads
// all, and writes the state alone.
#define USI_SOLVE_FIELDS(X)                                                                         \
    X(usi_free, body, n_collision_body + n_tree, "", "bodies of the islands")                       \
    X(double, u, 3 * max_block, "m/s", "velocities of the rows")                                    \
    X(double, du, 3 * max_block, "m/s", "their changes along the Newton step")                      \
    X(usi_branch, branch, n_node, "", "factors of a tree's matrix")                                 \
    X(double, diag, n_pad, "kg m2", "slopes of the joint rows")                                     \
    X(double, residual, n_pad, "N m s", "what is left of the momenta")                              \
    X(double, delta, n_pad, "rad/s", "change of the joint velocities")                              \
    X(usi_v4, push, 2 * (n_collision_body + n_tree), "", "twists by which bodies are pushed apart") \
    X(double, push_v, n_pad, "rad/s", "the same of joints")                                         \
    X(double, push_u, max_contact, "m/s", "the same of points that overlap; infinite: it does not press")

// joints.c, for the solve. Reads q, v, commands.
#define USI_JOINTS_FIELDS(X)                                            \
    X(double, H, n_path + 8, "kg m2", "mass matrices of touched trees") \
    X(double, vel, n_pad, "rad/s", "joint velocities: the iterate")     \
    X(double, step_v, n_pad, "rad/s", "the Newton step")                \
    X(double, impulse, n_pad, "N m s", "of bias, torques and weight")   \
    X(double, inertia, n_pad, "kg m2", "diagonal of the mass matrix")   \
    X(double, inv_pivot, n_pad, "1/(kg m2)", "one over it")             \
    X(double, work, n_pad, "", "projected forces, then the displacement of the step")

#define USI_CONTACT_ARRAY(type, name, count, unit, about) type *name;
typedef struct usi_collide_scratch {
    int32_t n_near, n_touch, n_point, n_soil_contact, n_passed;
    bool is_fat_valid;  // near holds the pairs of fat
    bool has_ends;      // some link may have an end_speed or end_spin other than 0
    double rise;        // m: no soil has come up higher above its ground; near holds the pairs up to there
    bool has_overlap;   // some pair lies in each other since they met
    USI_COLLIDE_FIELDS(USI_CONTACT_ARRAY)
} usi_collide_scratch;
typedef struct usi_islands_scratch {
    int32_t n_island;
    int32_t n_grouped;  // -1: the islands are not to be kept
    bool has_idle;      // some pairs are near each other, and in no island
    USI_ISLANDS_FIELDS(USI_CONTACT_ARRAY)
} usi_islands_scratch;
typedef struct usi_rows_scratch {
    struct usi_pair_now *pair;  // one per thread: the last pair that rows.c has seen in the step
    USI_ROWS_FIELDS(USI_CONTACT_ARRAY)
} usi_rows_scratch;
typedef struct usi_solve_scratch {
    void **work;  // one work space per thread, for the sparse and rigid solvers
    size_t work_size;
    // What Newton's method may use of it, beside USI_NEWTON_BLOCK_BYTES for each block of the island: the
    // same for any room for contacts, since islands that do not fit are solved by other means.
    size_t newton_size;
    // n_layout: matrix.c keeps that of the island whose first tree it is from step to step
    struct usi_layout *layout;
    int32_t n_layout;
    USI_SOLVE_FIELDS(USI_CONTACT_ARRAY)
} usi_solve_scratch;

typedef struct usi_joints_scratch {
    USI_JOINTS_FIELDS(USI_CONTACT_ARRAY)
} usi_joints_scratch;

// Fast twins of plain code, and what is kept from step to step: each can be switched off, and gives the same
// results to rounding (tests/unit/test_contact_fast.c). docs/contact.md says what each pays.
typedef enum usi_contact_fast {
    USI_FAST_FREE = 1 << 0,     // fast/free_four.c: free bodies four at a time
    USI_FAST_BRANCH = 1 << 1,   // fast/branch.c: one tree on the world joint by joint, not as a full matrix
    USI_FAST_LAYOUT = 1 << 2,   // matrix.c, make_sparse: structures of sparse matrices are kept
    USI_FAST_ISLANDS = 1 << 3,  // fast/kept_islands.c: islands are kept while the same pairs touch
    USI_FAST_SKIP = 1 << 4,     // rows.c, usi_make_rows: the solve begins without points that cannot press
    USI_FAST_POSES =
        1 << 5,  // collide.c, find_points: what lies on planes and height fields without its pose
    USI_FAST_BOXES = 1 << 6,   // near_pairs.c, has_stayed: no boxes for shapes that are near nothing
    USI_FAST_APART = 1 << 7,   // fast/apart.c: directions along which pairs are apart are kept
    USI_FAST_PAIR = 1 << 8,    // rows.c, start_pair: rows of pairs of the same materials, masses and loads
    USI_FAST_SWEEP = 1 << 9,   // fast/sweep_four.c: Gauss-Seidel on four pairs at a time
    USI_FAST_SHARE = 1 << 10,  // fast/shared_*.c: several threads share near pairs, and a large island
    USI_FAST_ALL = (1 << 11) - 1
} usi_contact_fast;

typedef struct usi_residency usi_residency;

typedef struct usi_contacts {
    const us_model *model;
    uint32_t fast;  // of usi_contact_fast
    us_dyn *dyn;
    usi_pool *pool;
    usi_broad *broad;
    us_allocator allocator;
    usi_arena fixed;               // what is made once
    const int32_t *pair_model;     // of the state that the step starts from
    struct usi_deformable *patch;  // of the model's patches, which belong to the sim; NULL: it has none
    bool is_trial;                 // a robot is put down: wheels have no slip, and hold on to nothing
    const uint8_t *ghost;          // n_tree of usi_ghost; NULL: all are our own
    const bool *pushed;  // n_tree: a contact that another process solves touches it in this step; NULL: none
    void *block_memory;
    size_t block_size;
    int32_t n_collision_body, n_geom;
    int32_t max_contact, max_pair, max_block;
    bool has_joints, has_free;                   // some tree is not a free body; some is
    bool has_skin;                               // some shape is a mesh or a height field
    const usi_actuation *actuation;              // of the step that is solved
    int32_t *coupling_start, *coupling_of_tree;  // by the tree of the first term
    int32_t *body_start, *body_of_tree;
    usi_v4 (*inv_inertia)[3];  // per tree, of free bodies: columns of the inverse inertia about the centre of
                               // mass, in node axes
    double *tree_mass;
    double fall_speed;               // m/s, what gravity gives in a step
    usi_collision_body *fixed_body;  // what of the collision bodies never changes
    int32_t *body_of_geom;           // of each shape
    int32_t *tree_body_start;        // n_tree + 1: collision bodies of each tree
    int32_t *loop_body;              // two per loop
    int32_t *inwards;  // n_node: the nodes of each tree, but those of a free root at its beginning from the
                       // deepest inwards
    double *far;       // m, largest distance of a shape's points from its node's origin
    usi_v4 *core;      // the middle of each shape, see swept.c
    usi_slow *slow;    // of each link, see passed.c
    bool *is_plain;    // shapes whose axes are their node's
    int64_t n_solve, n_iteration, n_fallback;  // since create: islands, iterations, islands by other means
    int64_t n_fallback_by[USI_N_FALLBACK];     // islands by each bit of usi_fallback
    int32_t error_count;       // contacts, or pairs that are near, for which there was no room
    bool is_pair_error;        // they were pairs
    usi_residency *residency;  // n_paged: ground that is paged in (residency.c)
    int32_t n_paged;
    bool is_residency_error;  // some of it could not be had: residency_error
    us_error residency_error;
    int32_t only_tree;  // a tree's number + 1: only what touches it is found (sim/settle.c); 0: everything
    usi_collide_scratch collide;
    // One for each thread but the first: where it puts what it finds, see fast/shared_pairs.c.
    struct usi_found_pairs *found;
    usi_islands_scratch islands;
    usi_rows_scratch rows;
    usi_solve_scratch solve;
    usi_joints_scratch joints;
} usi_contacts;

// The interaction model of two materials where no soil acts.
static inline int32_t usi_firm_model(const usi_contacts *c, int32_t entry) {
    return c->pair_model[entry] < 0 ? USI_MODEL_COMPLIANT : c->pair_model[entry];
}
// Whether a law of soil acts between a ground of a material and another.
static inline bool usi_soil_acts(const usi_contacts *c, int32_t ground, int32_t material) {
    return c->model->material[ground].is_soil && c->pair_model[ground * c->model->n_material + material] < 0;
}

// A point's own block, that of its turning, and in soil that of a wheel's slip.
static inline int32_t usi_blocks_of_point(const us_model *m) { return m->n_soil > 0 ? 3 : 2; }

// The arrays of the scratch: as usi_model_fields.
int32_t usi_contacts_fields(const usi_contacts *c, usi_field *out, int32_t cap, size_t *out_size);
us_status usi_contacts_create(const us_model *m, us_dyn *dyn, usi_pool *pool, const us_allocator *allocator,
                              int32_t max_contact, usi_contacts **out);
void usi_contacts_destroy(usi_contacts *c);  // NULL is allowed
void usi_contacts_poison(usi_contacts *c);

// impact_time.c: pairs of shapes that began to push each other in the step that was solved, from the state
// `now`; out has room for max_contact. Returns how many.
typedef struct usi_impact {
    int32_t geom_a, geom_b;
    double time, speed;  // s since the start of the step; m/s at which they come together
} usi_impact;
int32_t usi_find_impacts(const usi_contacts *c, const usi_contact_state *now, usi_impact *out);

// Finds what touches at (q, v), and which loose pairs of the model still overlap. US_ERR_LIMIT: more contact
// points than the state has room for (error_count says how many). With is_residency_error: ground that is
// needed cannot be had.
us_status usi_collide(usi_contacts *c, const usi_contact_state *now, const double *q, const double *v);
// Groups touched trees; needs usi_collide. tree[t].island is -1 for trees that nothing touches.
void usi_find_islands(usi_contacts *c);
// Solves all islands: velocities, positions and efforts of touched trees, and what the contacts remember, go
// to push->out_* and next. Returns false when an island could not be solved.
bool usi_solve_islands(usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                       const usi_contact_input *in);

// passed.c. After usi_solve_islands: looks for what it let through a mesh or a height field; true: there is
// some, and usi_collide from the same state, with the islands and the solve after it, will see to it. Before
// the first usi_collide of a step: forgets what there was.
bool usi_find_passed(usi_contacts *c, const usi_contact_state *now);
void usi_forget_passed(usi_contacts *c);
// Of a link of fixed_body, once far and core are known.
usi_slow usi_slow_of(const usi_contacts *c, const usi_collision_body *k);

// The box around each tree's shapes at (q, v), grown by `lead` s of its motion and `more` m; one without
// shapes gets an inverted one. Ghosts that are still included. Overwrites the links' frames.
void usi_contacts_reach(usi_contacts *c, const double *q, const double *v, double lead, double more,
                        us_aabb *out_box);
// After usi_solve_islands: adds what our own trees gave to the ghosts that they touched in this step, as
// forces at the links' origins; and marks these links, also where the force is 0. Both n_body.
void usi_contacts_wrenches(const usi_contacts *c, us_wrench *out_wrench, bool *out_is_touched);

#endif
