// The work space of the multibody algorithms, and what they share.
//
// Frames: all spatial quantities of a tree are in world-parallel axes about one point O, the tree's origin,
// which sits on its root (fixed base: on the first joint). So a parent's force or inertia is the plain sum of
// its children's, and nothing is turned between links. O is never the world's origin: a robot a kilometre
// away would lose six digits.
#ifndef USI_DYN_DYN_H
#define USI_DYN_DYN_H

#include "base/memory.h"
#include "math/v4.h"
#include "model/model.h"
#include "understudy/dyn.h"

// What is known of a node during one evaluation. Every member has world-parallel axes, about O.
typedef struct usi_link {
    usi_v4 X, Y, Z;  // axes of N: columns of R_WN
    usi_v4 p;        // m, position of N's origin from O
    usi_v4 w, v;     // rad/s, m/s: velocity; v is that of the point of the link that is now at O
    usi_v4 aw,
        av;       // acceleration without the joint accelerations, gravity as an upward acceleration included
    usi_v4 n, f;  // N m, N: force that this acceleration needs, less what is applied
    usi_v4 J[3];  // kg m^2, columns of the inertia about O
    usi_v4 h;     // kg m, mass times position of the centre of mass; the spare lane holds the mass, kg
    usi_v4 Sw, Sv;  // joint axis: velocity per unit joint velocity
    usi_v4 Kw, Kv;  // articulated inertia times axis, over d: what an acceleration takes from the joint
    double u;       // rad/s^2, joint acceleration without the parent's
    double reach;   // how much the parent's joint acceleration takes from this one's
    double inv_d;   // 1/(kg m^2), one over the inertia about the axis, damping included
    double reserved;
} usi_link;

// What children that are not the next node leave at their parent: articulated inertia, as columns of the four
// blocks "force (n, f) from motion (w, v)", and force. Composite rigid bodies keep J and h of a branch with
// what its children have left in nw and n.
typedef struct usi_slot {
    usi_v4 nw[3], nv[3], fw[3], fv[3];
    usi_v4 n, f;
} usi_slot;

// Nodes first .. end - 1: whole trees.
typedef struct usi_span {
    int32_t first, end;
} usi_span;

// X(type, name, count, unit, about)
#define USI_DYN_FIELDS(X)                                                                      \
    X(usi_link, link, n_node, "", "pose, velocity, force, inertia and factors of each node")   \
    X(usi_slot, slot, n_node, "", "sums of children at branches")                              \
    X(usi_v4, origin, n_tree, "m", "O of each tree in the world")                              \
    X(double, angle, n_pad, "rad", "hinge angles")                                             \
    X(double, sine, n_pad, "1", "their sines")                                                 \
    X(double, cosine, n_pad, "1", "their cosines")                                             \
    X(double, tau, n_pad, "N m", "joint torques with springs and dampers")                     \
    X(double, diag, n_pad, "kg m2", "added to the diagonal of H: armature, implicit springs")  \
    X(double, damp, n_pad, "kg m2", "step times damping, weighted when the pivot is known")    \
    X(double, pivot, n_pad, "kg m2", "inertia about each axis before damping")                 \
    X(double, acc, n_pad, "rad/s2", "joint accelerations")                                     \
    X(double, row, n_path + 8, "kg m2", "H, then its factors: each node's row along its path") \
    X(double, inv_d, n_pad, "1/(kg m2)", "inverse pivots of H")                                \
    X(double, K, n_row *n_pad, "", "constraint Jacobian")                                      \
    X(double, W, n_row *n_pad, "", "constraint Jacobian over the factors of H")                \
    X(double, G, n_row *n_row, "", "constraint matrix K H^-1 K^T, then its factors")           \
    X(int32_t, G_first, n_row, "", "first column of each row of G that is not 0")              \
    X(int32_t, W_first, n_row, "", "first velocity that each row of W touches")                \
    X(int32_t, W_end, n_row, "", "and one past the last")                                      \
    X(double, bias, n_row, "", "acceleration of the residuals without joint accelerations")    \
    X(double, phi, n_row, "", "constraint residuals")                                          \
    X(double, rhs, n_row, "", "right side, then constraint forces")                            \
    X(double, work, n_pad, "", "a vector")                                                     \
    X(usi_span, run, n_tree + 1, "", "nodes that the articulated-body sweeps work on")

struct us_dyn {
    const us_model *model;
    int32_t n_run;       // how many of run are in use; one over everything unless the caller leaves trees out
    int32_t first, end;  // the nodes that the sweeps work on now
    bool ignores_rows;   // loops and couplings are none of the forward dynamics' business in this step
    usi_link world;      // the world as a parent: its own axes, at rest, accelerating upwards against gravity
    us_allocator allocator;
    void *block;
    size_t block_size;
#define DYN_FIELD(type, name, count, unit, about) type *name;
    USI_DYN_FIELDS(DYN_FIELD)
#undef DYN_FIELD
};

int32_t usi_dyn_fields(const us_model *m, usi_field *out, int32_t cap, size_t *out_size);

// What the joints add to the plain multibody: torques, and terms of the diagonal. Any pointer but `tau` may
// be NULL.
typedef struct usi_joint_terms {
    const double *tau;   // n_v, torques
    const double *diag;  // n_v, added to the inertia about each axis (armature included)
    const double
        *damp;  // n_v, step times damping d: added as theta(z) d, z = d / inertia; see usi_damped_inverse
    bool closes_position;  // rows: half of their bias is met, so that a semi-implicit step q + h (v + h a)
                           // stays closed to O(h^3)
} usi_joint_terms;

// How much of a damper acts at the end of a step: theta = (3 + z) / (6 + z), with z = step * damping /
// inertia. It makes the step's decay (1 - (1 - theta) z) / (1 + theta z) agree with exp(-z) to third order
// for small z (theta = 1/2 + z/12 ...) and go to 0 without ringing for large z (theta -> 1).
static inline double usi_damping_weight(double pivot, double damp) {
    return (3 * pivot + damp) / (6 * pivot + damp);
}

// 1 / (pivot + theta damp) in one division.
static inline double usi_damped_inverse(double pivot, double damp) {
    return (6 * pivot + damp) / (pivot * (6 * pivot + 4 * damp) + damp * damp);
}

static inline void usi_take_run(us_dyn *d, int32_t r) {
    d->first = d->run[r].first;
    d->end = d->run[r].end;
}
static inline void usi_run_all(us_dyn *d) {
    d->n_run = 1;
    d->ignores_rows = false;
    d->run[0] = (usi_span){0, d->model->n_node};
    usi_take_run(d, 0);
}

// Hinge angles and their sines and cosines, of all nodes at once.
void usi_all_angles(us_dyn *d, const double *q);
// The same of the nodes of a span, one by one; the same bits.
void usi_angles_of(us_dyn *d, usi_span span, const double *q);
// The following work on nodes of a span; the plain forms on all.
void usi_kinematics_of(us_dyn *d, usi_span span, const double *q, const double *v, const double *a);
void usi_inertias_of(us_dyn *d, usi_span span, bool want_forces);
void usi_project_forces_of(us_dyn *d, usi_span span, double *out_tau);
void usi_crba_of(us_dyn *d, usi_span span, double *row);
void usi_crba_diagonal_of(us_dyn *d, usi_span span, double *out_diagonal);  // of H alone
bool usi_factor_of(us_dyn *d, usi_span span, const double *diag, const double *damp);
void usi_solve_of(const us_dyn *d, usi_span span, double *x);

// Poses and axes of every node; with v also velocities and accelerations, the joint accelerations a (NULL: 0)
// included.
void usi_kinematics(us_dyn *d, const double *q, const double *v, const double *a);
// Inertia (J, h) of every node, and when asked the forces (n, f), from the above.
void usi_inertias(us_dyn *d, bool want_forces);
// Takes applied forces off: `wrench` has n_body entries, at the links' origins, world axes; NULL does
// nothing.
void usi_apply_wrenches(us_dyn *d, const us_wrench *wrench);

// Articulated body: q, v, joint terms -> accelerations. `d->link` holds the factors afterwards. Returns false
// when a pivot is not positive.
bool usi_aba(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
             const us_wrench *wrench, double *out_a);

// The same at the same positions and joint terms with other velocities, from the factors that the last
// usi_aba left: half the work.
void usi_aba_again(us_dyn *d, const double *v, const usi_joint_terms *terms, const us_wrench *wrench,
                   double *out_a);

// After usi_kinematics and usi_inertias: rows of H, in d->row. Overwrites the slots. Then factors of H +
// diag: H = L^T D L.
void usi_crba(us_dyn *d);
bool usi_factor(us_dyn *d, const double *diag, const double *damp);
// x = H^-1 x, and its two halves: x = L^-T x, then D^-1, then x = L^-1 x.
void usi_solve(const us_dyn *d, double *x);
void usi_solve_upper(const us_dyn *d, double *x);
void usi_solve_lower(const us_dyn *d, double *x);

// Bias torque of the current kinematics and forces: sum of forces along each axis. Destroys n, f of the
// links.
void usi_project_forces(us_dyn *d, double *out_tau);

// Constraint rows at the current kinematics: phi, K, and bias (acceleration of phi without joint
// accelerations).
void usi_constraint_rows(us_dyn *d, const double *q, double *phi, double *K, double *bias);
// G = K H^-1 K^T factored, rows that depend on earlier ones dropped. Needs the factors of H. Returns the
// rank.
int32_t usi_constraint_factor(us_dyn *d);
// x = H^-1 (x + K^T lambda) such that K x = target. lambda is left in d->rhs.
void usi_constraint_solve(us_dyn *d, double *x, const double *target);
// What a loop gives to its first side, about its point, in world axes: the forces of the last
// usi_constraint_solve in the present kinematics.
us_wrench usi_loop_wrench(const us_dyn *d, int32_t loop);
// Constrained forward dynamics.
bool usi_forward_constrained(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
                             const us_wrench *wrench, double *out_a, int32_t *out_rank);

// Forward dynamics by the algorithm that fits the model.
bool usi_forward(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
                 const us_wrench *wrench, double *out_a);
// The same once more, right after, with other velocities and positions that have moved by next to nothing.
bool usi_forward_again(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
                       const us_wrench *wrench, double *out_a);

// Newton on phi(q) = 0 in the metric of H, then v onto K v = 0. Returns the largest |phi| left, or NaN.
double usi_project(us_dyn *d, double *q, double *v, int max_newton);

us_energy usi_energy(us_dyn *d, const double *q, const double *v);
// Of nodes first .. end - 1 (of one tree), about the tree's origin, from the current kinematics (with v) and
// inertias.
typedef struct usi_momentum {
    usi_v4 angular, linear;
    usi_v4 J[3], h;  // inertia about O, mass times centre of mass, mass in the spare lane
} usi_momentum;
usi_momentum usi_tree_momentum(const us_dyn *d, int32_t first, int32_t end);

// q (+) dq.
void usi_add(const us_model *m, const double *q, const double *dq, double *out_q);
void usi_add_range(const us_model *m, const double *q, const double *dq, double *out_q, int32_t first,
                   int32_t end);

// Tolerance of a closed constraint, m or rad. Tight enough for 1e-9 over any time, loose enough for rounding
// at 1e3 m.
#define USI_CLOSED 1e-11

// Momentum (n, f) about O of a body that moves with (w, v): J about O, h with the mass in its spare lane.
static inline void usi_inertia_times(const usi_v4 J[3], usi_v4 h_mass, usi_v4 w, usi_v4 v, usi_v4 *n,
                                     usi_v4 *f) {
    usi_v4 h = h_mass * (usi_v4){1, 1, 1, 0}, mass = __builtin_shufflevector(h_mass, h_mass, 3, 3, 3, 3);
    *n = J[0] * usi_v4_lane0(w) + J[1] * usi_v4_lane1(w) + J[2] * usi_v4_lane2(w) + usi_v4_cross(h, v);
    *f = mass * v - usi_v4_cross(h, w);
}

// Where a point of the node is, from O.
static inline usi_v4 usi_link_point(const usi_link *k, us_vec3 p_NQ) {
    return k->p + k->X * p_NQ.x + k->Y * p_NQ.y + k->Z * p_NQ.z;
}

static inline us_pose usi_link_pose(const usi_link *k, usi_v4 origin) {
    us_mat3 R = {{k->X[0], k->Y[0], k->Z[0], k->X[1], k->Y[1], k->Z[1], k->X[2], k->Y[2], k->Z[2]}};
    us_pose X = {us_quat_from_matrix(R), usi_v4_vec3(k->p + origin)};
    return X;
}

#endif
