// Multibody algorithms as functions of (model, q, v, ...): what `eval` prints and what the step is made of.
//
// A us_dyn is a work space: it remembers nothing between calls, and belongs to one thread at a time. Vectors
// have the sizes of us_model_counts (n_q, n_v). Mass matrices are dense, row-major, n_v x n_v. None of these
// functions allocates. Joint order and coordinates are those of the model; a floating joint's velocity is
// (angular, linear) in the link's axes.
#ifndef UNDERSTUDY_DYN_H
#define UNDERSTUDY_DYN_H

#include "understudy/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_dyn us_dyn;

US_API us_status us_dyn_create(const us_model *model, const us_allocator *allocator, us_dyn **out_dyn);
US_API void us_dyn_destroy(us_dyn *dyn);  // NULL is allowed

// Forward dynamics without constraints and drives: the accelerations that the torques tau cause, with
// gravity, joint damping and stiffness, armature. `wrench` (n_body, may be NULL): applied at each link's
// origin, in world axes.
US_API us_status us_dyn_forward(us_dyn *dyn, const double *q, const double *v, const double *tau,
                                const us_wrench *wrench, double *out_a);
// The same by composite rigid bodies and a branch-sparse factorisation.
US_API us_status us_dyn_forward_crba(us_dyn *dyn, const double *q, const double *v, const double *tau,
                                     const us_wrench *wrench, double *out_a);
// Forward dynamics with loops and couplings. out_lambda (n_row, may be NULL): constraint forces, 0 for
// redundant rows. out_rank (may be NULL): the number of independent rows.
US_API us_status us_dyn_forward_constrained(us_dyn *dyn, const double *q, const double *v, const double *tau,
                                            const us_wrench *wrench, double *out_a, double *out_lambda,
                                            int32_t *out_rank);
// Inverse dynamics: the torques that cause the accelerations a (NULL: 0, which gives the bias).
US_API us_status us_dyn_inverse(us_dyn *dyn, const double *q, const double *v, const double *a,
                                const us_wrench *wrench, double *out_tau);
US_API us_status us_dyn_bias(us_dyn *dyn, const double *q, const double *v, double *out_c);
US_API us_status us_dyn_mass_matrix(us_dyn *dyn, const double *q, double *out_h);

US_API us_status us_dyn_poses(us_dyn *dyn, const double *q, us_pose *out_X_WB);  // n_body
US_API us_status us_dyn_twists(us_dyn *dyn, const double *q, const double *v,
                               us_twist *out_V_WB);  // n_body, world axes, at the link's origin
// Acceleration of each link's origin (no gravity in it) and angular acceleration, world axes.
US_API us_status us_dyn_accelerations(us_dyn *dyn, const double *q, const double *v, const double *a,
                                      us_twist *out_A_WB);
// 6 x n_v, row-major: (angular; linear) velocity in world axes of the point p_BQ fixed on the body, per
// velocity.
US_API us_status us_dyn_jacobian(us_dyn *dyn, const double *q, us_body body, us_vec3 p_BQ, double *out_J);

typedef struct us_energy {
    double kinetic;
    double potential;  // gravity, 0 at the world's origin, and joint springs
} us_energy;
US_API us_status us_dyn_energy(us_dyn *dyn, const double *q, const double *v, us_energy *out_energy);

typedef struct us_momentum {
    double mass;
    us_vec3 com;      // p_WCcm of everything that moves
    us_vec3 linear;   // kg m/s
    us_vec3 angular;  // kg m^2/s, about the centre of mass
} us_momentum;
US_API us_status us_dyn_momentum(us_dyn *dyn, const double *q, const double *v, us_momentum *out_momentum);

// Constraint values phi (n_row: m for point rows and couplings of lengths, 1 for the rest) and Jacobian K
// (n_row x n_v).
US_API us_status us_dyn_constraints(us_dyn *dyn, const double *q, double *out_phi, double *out_K);
// Moves q onto phi = 0 and v onto K v = 0 by the shortest way in the metric of the mass matrix.
// US_ERR_CONSTRAINT when that fails.
US_API us_status us_dyn_project(us_dyn *dyn, double *q, double *v);

// q (+) dq: adds a tangent vector (n_v) to a position; rotations by the exponential map. out may be q.
US_API us_status us_dyn_add(const us_model *model, const double *q, const double *dq, double *out_q);

#ifdef __cplusplus
}
#endif
#endif
