// Random scenes with contact by seed, and the judge of what becomes of them: none diverges, none gains
// energy, nothing falls through.
#ifndef TESTS_SUPPORT_RANDOM_SCENE_H
#define TESTS_SUPPORT_RANDOM_SCENE_H

#include "contact_scene.h"

enum { RANDOM_MAX_LINK = 64 };

typedef struct random_scene {
    const char *ground;    // what it is, for the line of a failure
    double step, size;     // s; m, of the smallest body
    double gravity;        // m/s^2
    double extent, floor;  // m: half the width of the ground, and its lowest point
    double deep;           // m: how deep springs or soil may let a body sink
    int n_link;
    double far[RANDOM_MAX_LINK];     // m, reach of each
    int n_under[RANDOM_MAX_LINK];    // steps in a row that it was under the ground
    bool has_left[RANDOM_MAX_LINK];  // it was beyond the edge of the ground once
} random_scene;

typedef us_spec *(*random_scene_make)(uint64_t seed, random_scene *out);

// Free bodies of any shape: sizes from 1 mm to 100 m, mass ratios to 1e5, speeds to 50 m/s, steps from 0.1 to
// 10 ms; on planes, boxes, meshes and height fields.
us_spec *random_scene_free(uint64_t seed, random_scene *out);
// The same sizes, speeds and steps: free bodies, meshes in convex parts and robots with links down to 1e-5 of
// their bodies, on hard ground, soft ground, dense meshes, soil and beds of soil.
us_spec *random_scene_mixed(uint64_t seed, random_scene *out);

// Runs one for `time` s, at most `max_step` steps. False, with a line that says why, when it fails; with
// `is_loud` a line in any case.
bool random_scene_run(random_scene_make make, uint64_t seed, double time, int64_t max_step, bool is_loud);

#endif
