// Worlds for tests: small helpers over us_spec_add_..., and the mechanisms that several tests use.
//
// A failed call fails the running cmocka test, with the library's own words. Everything here is in SI units.
#ifndef TESTS_SUPPORT_BUILD_H
#define TESTS_SUPPORT_BUILD_H

#include <stdint.h>

#include "understudy/dyn.h"
#include "understudy/model.h"
#include "understudy/sim.h"
#include "understudy/spec.h"

// ---- Pieces ----

// An empty world with gravity along -z, the given step and integrator.
us_spec *build_spec(double gravity, double step, us_integrator integrator);
us_spec *build_spec_gravity(us_vec3 gravity, double step, us_integrator integrator);

// A link with principal moments (ixx, iyy, izz) about its centre of mass along its own axes.
int32_t build_link(us_spec *spec, const char *name, double mass, us_vec3 com, us_vec3 moments);
// A joint definition at p in the parent, not turned; change what is special and hand it to build_joint_def.
us_joint_def build_joint_at(us_joint_type type, int32_t parent, int32_t child, us_vec3 p, us_vec3 axis);
int32_t build_joint_def(us_spec *spec, const char *name, const us_joint_def *def);
// Both in one, with a start position and velocity for joints with one coordinate.
int32_t build_joint(us_spec *spec, const char *name, us_joint_type type, int32_t parent, int32_t child,
                    us_vec3 p, us_vec3 axis, double q0, double v0);
// A loop between points (frames not turned).
int32_t build_loop(us_spec *spec, const char *name, us_loop_type type, int32_t a, us_vec3 p_AC, int32_t b,
                   us_vec3 p_BD);
int32_t build_coupling(us_spec *spec, const char *name, int32_t joint_a, double factor_a, int32_t joint_b,
                       double factor_b, double offset);
int32_t build_drive(us_spec *spec, const char *name, int32_t joint, double kp, double kd, double position,
                    double limit);

// ---- A compiled world ----

typedef struct built {
    us_model *model;
    us_dyn *dyn;
    us_sim *sim;  // NULL after build_model
    us_model_counts n;
    double *q, *v;  // n_q, n_v: start state at first, then whatever the test writes
} built;

built build_model(us_spec *spec);  // takes the spec; no sim
built build_sim(us_spec *spec);    // takes the spec; with a sim
void build_free(built *b);
// Steps of the sim; a failed one fails the test with the sim's words.
void build_step(built *b, int64_t n, const us_command *command);
double build_total_energy(built *b);

// ---- Numbers ----

double build_uniform(uint64_t seed, uint64_t *counter, double low, double high);
us_quat build_random_rotation(uint64_t seed, uint64_t *counter);
us_vec3 build_random_vec3(uint64_t seed, uint64_t *counter, double size);  // each component in [-size, size)
double build_greatest(const double *x, int32_t n);                         // greatest |x|
double build_difference(const double *x, const double *y, int32_t n);      // greatest |x - y|
// A random state of the model: unit quaternions, angles within +-pi, lengths within +-1, velocities within
// +-speed.
void build_random_state(const us_model *model, uint64_t seed, double speed, double *out_q, double *out_v);

// Fails unless |value - expected| <= tolerance (and both are numbers); says which value it was.
void build_near(const char *what, double value, double expected, double tolerance);

// ---- Data ----

// The path of a shared data file ("data/multibody/x.csv"), or NULL (and a line "skipped") when it is not
// there.
const char *build_shared(const char *name);

// ---- Mechanisms ----

// One rod on a hinge about y at the origin: mass 1, com (0, 0, -1), moments `moment` each.
us_spec *build_pendulum(double moment, double q0, double step, us_integrator integrator);
// The double pendulum T1: rods of 1 kg and 1 m, hinges about y, start (0.5, -0.3), (1, 2).
us_spec *build_double_pendulum(double step, us_integrator integrator);
// The branched tree T2: eight joints.
us_spec *build_branched_tree(void);
// chain-N of the shared scenes: hinges about y and z in turn.
us_spec *build_chain(int32_t n, double step, us_integrator integrator);
// Chassis on a pitch hinge about y with two rockers about the same axis, joined by q_left + q_right = 0 (T3:
// moments 5, 2, 2). lever: distance of each centre of mass from the axis (0: T3 itself).
us_spec *build_rocker_differential(double lever, double step, us_integrator integrator);
// The same by a real differential bar: it turns about the chassis' z axis and pulls the rockers by two rods.
us_spec *build_rocker_bar(double step, us_integrator integrator);
// A four-bar in the x-z plane : uniform rods of 1 kg on hinges about -y, the ground between them, closed by a
// point loop.
us_spec *build_four_bar(double crank, double coupler, double rocker, double ground, double q0, double v0,
                        double step, us_integrator integrator);
// N four-bars in a row: N + 1 upright rods on the ground and N level ones, all 1 kg and 1 m; tops start at 1
// m/s along x. Gravity along -y, hinges about z. Joint 0 is the first upright rod.
us_spec *build_four_bars(int32_t n, double step, us_integrator integrator);
// Andrews' squeezing mechanism; joints 0..6 in the order beta, Theta, gamma, Phi, delta, Omega, epsilon.
us_spec *build_andrews(double step, us_integrator integrator, double tolerance);
// A base that floats and an arm of three hinges on it, all turning.
us_spec *build_floating_arm(double gravity, double step, us_integrator integrator);
// Heavy top on a ball joint (T5): tilted by theta from upright, spin w3 about its own axis, precession rate
// about the vertical.
us_spec *build_heavy_top(double theta, double spin, double precession, double step, us_integrator integrator);
// A random forest: every kind of joint, any branching, random frames and inertias; some joints have armature,
// springs and dampers. Everything follows from the seed.
us_spec *build_random_tree(uint64_t seed, int32_t n_link, us_integrator integrator);

// A sim of a model; `allocator` may be NULL.
us_sim *build_sim_of(const us_model *model, int32_t n_thread, const us_allocator *allocator);
// Of positions and velocities alone: the model is part of a sim's own hash, and two models may be compared.
uint64_t build_motion_hash(const us_sim *sim);

#endif
