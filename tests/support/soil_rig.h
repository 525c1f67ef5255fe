// Worlds of soil for tests: scenes from files and from texts, and the single-wheel rig with what it measures.
#ifndef TESTS_SUPPORT_SOIL_RIG_H
#define TESTS_SUPPORT_SOIL_RIG_H

#include "understudy/model.h"
#include "understudy/sim.h"

typedef struct soil_world {
    us_model *model;
    us_sim *sim;
} soil_world;

// A scene of the source tree, or a text, with other values for its parameters ("slip=0.2"); ended by NULL.
// Failing fails the test.
soil_world soil_file(const char *path, const char *const *parameters);
soil_world soil_text(const char *text, const char *const *parameters);
soil_world soil_text_threads(const char *text, int32_t n_thread);
// With maps of its soil.
soil_world soil_text_maps(const char *text, const us_soil_map_def *maps, int32_t n_map);
void soil_free(soil_world *w);
void soil_steps(soil_world *w, int64_t n);
// Steps until no drive's torque changes by more than `share` of the greatest within 100 steps; at most
// `most`.
void soil_settle(soil_world *w, double share, int64_t most);

double soil_q(const soil_world *w, const char *joint);
double soil_v(const soil_world *w, const char *joint);
double soil_torque(const soil_world *w, const char *drive);
us_material soil_material(const soil_world *w, const char *name);
// The deepest thing of a body ("rig/wheel") in soil; body -1 when it is in none.
us_soil_contact soil_sunk(const soil_world *w, const char *body);

#endif
