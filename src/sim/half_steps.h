// The same step in two halves, and what the stages of a step give to it.
#ifndef USI_SIM_HALF_STEPS_H
#define USI_SIM_HALF_STEPS_H

#include "sim/sim.h"

// half_steps.c. Memory for it, where the integrator is adaptive and shapes can collide; false: no memory.
bool usi_half_steps_create(us_sim *s);
void usi_half_steps_destroy(us_sim *s);
// After more room for contacts was made; false: no memory, and the step is taken whole from now on.
bool usi_half_steps_grow(us_sim *s);
// Before the stages of a step: from now, with next's commands, in two halves. Leaves now and next as they
// were.
void usi_take_half_steps(us_sim *s, const us_command *command);
// After them: next's q, v, a of trees that contact moves smoothly.
void usi_refine_touched(us_sim *s);

// touch.c: one solve of what touches; false: an island could not be solved.
bool usi_solve_contacts_once(us_sim *s, const us_command *command);
// step.c: the stages between the contact solve and commit.
us_status usi_integrate(us_sim *s, const us_command *command);
us_status usi_constrain(us_sim *s);
// events.c: the displacement from one position to another, of the joints of nodes first .. end - 1.
void usi_difference(const us_model *m, usi_span nodes, const double *q0, const double *q1, double *out);

#endif
