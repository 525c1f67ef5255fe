// Small worlds built by calls, for the tests of the contract: each uses many features at once.
#ifndef TEST_CONTRACT_BUILD_H
#define TEST_CONTRACT_BUILD_H

#include "understudy/sim.h"

// Adds a link whose inertia about its centre of mass is diagonal. Asserts that it works; returns the index.
int32_t contract_link(us_spec *spec, const char *name, double mass, us_vec3 com, double xx, double yy,
                      double zz);
// A joint definition at p_PF, unturned.
us_joint_def contract_joint_def(us_joint_type type, const char *name, int32_t parent, int32_t child,
                                us_vec3 p_PF);
int32_t contract_joint(us_spec *spec, us_joint_type type, const char *name, int32_t parent, int32_t child,
                       us_vec3 p_PF);
int32_t contract_add_joint(us_spec *spec, const us_joint_def *def);

typedef enum contract_world {
    CONTRACT_EVERY_JOINT,  // a branching tree with every kind of joint, drives, springs, dampers, friction,
                           // limits, armature
    CONTRACT_LOOPS,        // a driven four-bar, a hinge loop, a weld to the world, a coupling
    CONTRACT_FREE,         // a free body, a free tree with limbs, a ball joint
    CONTRACT_WORLD_COUNT
} contract_world;

const char *contract_world_name(contract_world world);

// The world as a spec and as a model, with an integrator. `allocator` may be NULL. The status is that of the
// first call that fails; nothing is left behind then.
us_status contract_spec(contract_world world, us_integrator integrator, const us_allocator *allocator,
                        us_spec **out_spec);
us_model *contract_model(contract_world world, us_integrator integrator);

// A pendulum: one link of mass 2 kg, centre of mass 0.5 m below a revolute joint "hinge" about y, with a
// drive "motor".
us_spec *contract_pendulum_spec(void);
us_model *contract_compile(us_spec *spec);  // destroys the spec
us_sim *contract_sim(const us_model *model);

#endif
