// Deformable ground of one's own: a plug-in decides what the ground bears under each body, node by node, how
// its surface changes, and what it remembers.
//
// A bed of columns (<shape type="height-field" bed="2 cm" bed-model="NAME"/>) whose surface is a soil. It
// acts where the pair of materials says "soil", as the library's own soil does. Bodies and ground are glued
// in the five steps of co-operation between a soil and rigid bodies, of which the three in the middle are one
// solve:
//
//     1  nodes      the columns under a body, with its surface and its velocity there
//     2  load       what each of them carried in the last step: what the body offers
//     3  act        the ground's answer at each node: its force and its slopes, how that grows
//     4  solve      bodies, joints and contacts with these as rows: load and answer agree, by the slopes
//     5  settle     all has moved: the ground hears what each node carried, and sets columns and state
//
// What a ground remembers is declared beforehand, numbers for the ground and numbers for each column; it is
// part of the world's state: saved, hashed, replayed, carried over edits, and looked at when it is restored.
// There must be no state anywhere else: no allocation, lock or clock, and the same input gives the same
// answer.
#ifndef UNDERSTUDY_GROUND_MODEL_H
#define UNDERSTUDY_GROUND_MODEL_H

#include "understudy/interaction.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { US_GROUND_MODEL_ABI = 1, US_GROUND_STATE = 64, US_GROUND_COLUMN_STATE = 16 };

// A ground with its columns. The functions are here so that a plug-in needs no library.
typedef struct us_ground us_ground;
struct us_ground {
    int32_t n_x, n_y;       // columns
    double spacing, depth;  // m; of the soil above the bedrock, where it is untouched
    us_pose X_WG;           // of the bed, whose frame has z up; column (i, j) is at
                            // (i - (n_x - 1) / 2, j - (n_y - 1) / 2) * spacing
    double step, gravity;   // s, m/s^2
    const us_soil *soil;    // of the ground's own material
    void *host;             // the library's

    // m, of the present surface in the bed's frame, and against the original ground; NaN beyond the border.
    double (*get_height)(const us_ground *ground, int32_t i, int32_t j);
    double (*get_change)(const us_ground *ground, int32_t i, int32_t j);
    // The numbers of a column: zeros where it is untouched, NULL beyond the border. Valid until the next
    // write.
    const double *(*view_column)(const us_ground *ground, int32_t i, int32_t j);
    // In settle alone. Heights are kept in whole micrometres. False, and nothing has changed: beyond the
    // border or below the bedrock, no finite number, no more room in bed-memory, or not in settle.
    bool (*set_change)(const us_ground *ground, int32_t i, int32_t j, double change);
    bool (*set_column)(const us_ground *ground, int32_t i, int32_t j, const double *numbers);
};

// A column under a body, at the start of the step.
typedef struct us_ground_node {
    int32_t i, j;
    us_vec3 place;     // m, on the body's surface, in the world
    us_vec3 normal;    // unit, of the undisturbed ground under the body, up: forces are along it and across
    us_vec3 velocity;  // m/s, of the body there
    double surface, bottom;  // m, of the ground and of the body in the bed's frame
    double sinkage;          // m, along the normal: negative where the body is above the surface
    us_vec3 carried;  // N, on the body: in act what the node carried in the last step, 0 at first; in settle
                      // what it has carried in this one
    const us_soil *soil;  // of the place
} us_ground_node;

// The columns under one body, row by row.
typedef struct us_ground_patch {
    const us_ground_node *node;
    int32_t n_node;
    int32_t body;  // a us_body: the link
    const char *material_soil, *material_body;
    const us_pair_values *values;
    const us_property *parameters;  // of the pair's row
    int32_t n_parameter;
} us_ground_patch;

// What the ground answers at a node: 0 on entry.
typedef struct us_ground_answer {
    double force;      // N, along the normal, at this sinkage; not negative
    double stiffness;  // N/m, greater than 0: how it grows with the sinkage
    double damping;    // N s/m: and with its rate. `force` is without it
    double friction;   // largest force across the normal over the load
    double hold;       // N/m, greater than 0: how stiffly the node holds up to there
} us_ground_answer;

typedef struct us_ground_model {
    int32_t abi;             // US_GROUND_MODEL_ABI
    int32_t size;            // sizeof(us_ground_model)
    const char *name;        // as in bed-model="..."
    int32_t n_state;         // numbers of a ground, up to US_GROUND_STATE
    int32_t n_column_state;  // numbers of each column, up to US_GROUND_COLUMN_STATE
    bool is_flowing;         // what is too steep flows by the library's automaton, by the <soil>, but not
                             // under a body
    void *user;              // passed to all of them
    // Answers for all nodes of a patch: once per patch and solve of a step, from the stepping thread. False:
    // it has none, and the step fails.
    bool (*act)(const us_ground *ground, const double *state, const us_ground_patch *patch,
                us_ground_answer *answer, void *user);
    // After each step that was taken, also without patches. NULL: the ground keeps its form.
    void (*settle)(const us_ground *ground, double *state, const us_ground_patch *patch, int32_t n_patch,
                   void *user);
    // Whether numbers from a snapshot can be gone on with, those of a ground (is_column false) or of a
    // column; they are finite. NULL: all can.
    bool (*check)(const double *numbers, bool is_column, void *user);
} us_ground_model;

// Registers a model with a spec. The name must be new among models of contact, soil and ground; the same
// model again changes nothing. `user` must outlive every model compiled from the spec. Errors: US_ERR_VALUE
// for another abi or size, a model without `act` or with too much state, US_ERR_NAME for a name that is
// missing or taken.
US_API us_status us_spec_add_ground_model(us_spec *spec, const us_ground_model *model, us_error *err);

// The same for every model in a shared library: us_spec_load_plugin, <plugin file="libmine.so"/>. It exports
// a function of this type under the name "us_plugin_ground_models":
//     US_API const us_ground_model *us_plugin_ground_models(int32_t *out_n) { ... }
typedef const us_ground_model *(*us_plugin_ground_model_function)(int32_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
