// What the benchmarks share: scenes that every engine can be given, engines behind one small interface,
// clocks and reports.
//
// A scene is a tree of one-axis joints in plain numbers, so that each engine builds it its own way and nobody
// is favoured. A sample is always taken from the same start state, which the engine restores before the clock
// runs.
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "understudy/sim.h"

enum { BENCH_MAX_LINKS = 128, BENCH_MAX_ROUNDS = 99 };

// ---------------------------------------------------------------- scenes

typedef struct bench_link {
    int32_t parent;  // -1: the world
    us_pose X_PF;    // the joint's frame in the parent; the link's frame at q = 0
    us_vec3 axis;    // unit; every joint is a hinge
    us_inertia inertia;
    double q0;                 // rad
    double armature, damping;  // kg m^2, N m s
    bool has_limits;
    double lower, upper;   // rad
    double kp, kd, limit;  // PD towards the target: N m/rad, N m s, N m
} bench_link;

typedef struct bench_scene {
    char name[32];
    int32_t n_link;
    bool is_driven;  // the PD gains are meant
    double step;     // s
    us_vec3 gravity;
    bench_link link[BENCH_MAX_LINKS];
} bench_scene;

// n hinges in a row about y, z, y, z ..., 0.2 m and 1 kg each, bent by 0.1 rad everywhere, at rest, hanging
// on the world.
void bench_scene_chain(int32_t n, bench_scene *out);
// The six-axis arm of models/arm6.urdf with the drives of scenes/arm.xml. On failure prints why and returns
// false.
bool bench_scene_arm(bench_scene *out);

// ---------------------------------------------------------------- engines

typedef struct bench_engine {
    const char *name, *variant;
    bool is_peer;
    bool can_drive;    // takes driven scenes
    int32_t max_link;  // more would take minutes
    // Returns NULL and prints why when the scene cannot be built.
    void *(*create)(const bench_scene *scene, const char *variant);
    void (*destroy)(void *self);
    void (*restore)(void *self);  // the start state
    bool (*forward)(
        void *self);  // one evaluation of the forward dynamics, kinematics anew; NULL: the engine has none
    bool (*step)(void *self);                       // one step, control included
    void (*aim)(void *self, const double *target);  // the PD's target, rad per link; NULL: cannot drive
    us_vec3 (*tip)(void *self);                     // centre of mass of the last link
    uint64_t (*hash)(void *self);                   // of the state
} bench_engine;

// Each fills out (at most cap) and returns how many there are; 0 when the engine was not there at build time.
int bench_engines_understudy(bench_engine *out, int cap);
int bench_engines_mujoco(bench_engine *out, int cap);
int bench_engines_ode(bench_engine *out, int cap);

// The time of each stage of our own step over n_step steps of the scene, which starts anew every n_run of
// them. False on failure.
bool bench_understudy_profile(const bench_scene *scene, const char *variant, int n_step, int n_run,
                              us_profile *out);

// ---------------------------------------------------------------- measuring

double bench_cpu_now(void);  // s, CPU time of this thread

typedef struct bench_samples {
    int n;
    double value[BENCH_MAX_ROUNDS];
} bench_samples;

void bench_add(bench_samples *s, double value);
double bench_median(const bench_samples *s);  // NaN when there are none
double bench_min(const bench_samples *s);
double bench_max(const bench_samples *s);

// One figure as a line of JSON, in the format of the peers' programs, with what else is known.
typedef struct bench_figure {
    const char *scene, *engine, *variant, *metric, *unit;
    const bench_samples *samples;
    double ns_per_dof;   // NaN: none
    double gain;         // fastest peer over this one, medians; NaN: none
    uint64_t hash;       // of the state at the end; 0: none
    const us_vec3 *tip;  // NULL: none
} bench_figure;
void bench_print_json(const bench_figure *f);

#endif
