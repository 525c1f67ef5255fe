// The compiled system: constant, shareable between threads and worlds, indices everywhere.
#ifndef UNDERSTUDY_MODEL_H
#define UNDERSTUDY_MODEL_H

#include "understudy/base.h"
#include "understudy/geom.h"
#include "understudy/math.h"
#include "understudy/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_model us_model;

// Elements are typed indices; -1 is none. A body is a link of the spec, also when it was merged into another
// one by a fixed joint: body i is link i of the spec, joint i is joint i, drive i is drive i.
typedef struct us_body {
    int32_t i;
} us_body;
typedef struct us_joint {
    int32_t i;
} us_joint;
typedef struct us_drive {
    int32_t i;
} us_drive;
typedef struct us_material {
    int32_t i;
} us_material;
typedef struct us_battery {
    int32_t i;
} us_battery;

// Checks the whole spec and compiles it. Warnings about doubtful content are added to the spec. Fixed joints
// are merged, names kept. The spec is not needed afterwards. `allocator` may be NULL (the default one).
US_API us_status us_model_compile(us_spec *spec, const us_allocator *allocator, us_model **out_model,
                                  us_error *err);
// us_spec_load and us_model_compile in one.
US_API us_status us_model_load(const char *path, const us_load_def *def, us_model **out_model, us_error *err);
US_API void us_model_destroy(us_model *model);  // NULL is allowed

typedef struct us_model_counts {
    int32_t n_body, n_joint, n_drive;
    int32_t n_q, n_v;  // positions, velocities
    int32_t n_node;    // links that move, one per velocity (multi-axis joints count several)
    int32_t n_tree;
    int32_t n_row;   // constraint rows, redundant ones included
    int32_t n_geom;  // shapes that collide
    int32_t n_material;
    int32_t n_battery;
    size_t model_bytes;  // state and scratch: us_sim_get_field
} us_model_counts;

US_API us_model_counts us_model_get_counts(const us_model *model);
US_API double us_model_get_step(const us_model *model);
US_API us_vec3 us_model_get_gravity(const us_model *model);
US_API us_sky us_model_get_sky(const us_model *model);  // where it lies (sky.h); no planet: nowhere

// What lights the world at a time (s): the direction towards the Sun (unit, W), its irradiance on a surface
// that meets it squarely, and that of the whole sky on level ground, W/m^2. The Sun gives nothing below the
// horizon. Where the scene says nothing: 1000 and 100 on Earth and on no planet, 1361 and 0 on the Moon, 590
// and 120 on Mars. Cost: a tenth of a millisecond on a planet.
typedef struct us_light {
    us_vec3 direction;
    double sun, sky;
} us_light;
US_API us_light us_model_get_light(const us_model *model, double time);
US_API us_integrator us_model_get_integrator(const us_model *model);
US_API uint64_t us_model_hash(const us_model *model);

// Two links of one robot or object that collide and overlap at the start.
typedef struct us_overlap {
    us_body a, b;
    double depth;  // m
} us_overlap;
// At most `cap` of them. Cost: a distance for every two shapes of a robot whose boxes meet.
US_API us_status us_model_find_overlaps(const us_model *model, us_overlap *out, int32_t cap, int32_t *out_n);

US_API us_body us_model_find_body(const us_model *model, const char *name);
US_API us_joint us_model_find_joint(const us_model *model, const char *name);
US_API us_drive us_model_find_drive(const us_model *model, const char *name);
US_API us_material us_model_find_material(const us_model *model, const char *name);
// Names are borrowed from the model; NULL for a bad index.
US_API const char *us_model_body_name(const us_model *model, us_body body);
US_API const char *us_model_joint_name(const us_model *model, us_joint joint);
US_API const char *us_model_drive_name(const us_model *model, us_drive drive);
US_API const char *us_model_material_name(const us_model *model, us_material material);  // 0 is "default"
// A material's property; NULL when it has none of that key. Borrowed from the model.
US_API const us_property *us_model_find_property(const us_model *model, us_material material,
                                                 const char *key);

typedef struct us_joint_info {
    us_joint_type type;
    us_body parent, child;  // parent.i is US_WORLD for the world
    int32_t first_q, n_q;   // its positions in q
    int32_t first_v, n_v;   // its velocities in v
} us_joint_info;

US_API us_joint_info us_model_get_joint(const us_model *model,
                                        us_joint joint);  // type US_JOINT_COUNT for a bad index
US_API us_inertia us_model_get_inertia(const us_model *model, us_body body);  // of the link alone, as written
US_API us_joint us_model_get_drive_joint(const us_model *model, us_drive drive);

// The battery of a robot, by the robot's name; it feeds the drives of the robot. -1: it has none.
typedef struct us_battery_info {
    double capacity, idle, voltage;  // J, W, V
} us_battery_info;
US_API us_battery us_model_find_battery(const us_model *model, const char *robot);
US_API const char *us_model_battery_name(const us_model *model, us_battery battery);  // the robot's; borrowed
US_API us_battery_info us_model_get_battery(const us_model *model,
                                            us_battery battery);                      // NaN for a bad index
US_API us_battery us_model_get_drive_battery(const us_model *model, us_drive drive);  // -1: none

// A shape that collides. Those of the world come first, then node by node. One shape of the spec may become
// several convex parts.
typedef struct us_geom_info {
    us_geom_kind kind;
    us_body body;  // -1: the world itself
    us_material material;
    int32_t shape;  // of the spec
} us_geom_info;
US_API us_geom_info us_model_get_geom(const us_model *model,
                                      int32_t i);  // kind US_GEOM_COUNT for a bad index

// "joint" for a joint with one coordinate, otherwise "joint.x": the name of velocity i (or position i), into
// buf. Returns the length it needs. For a bad index the name is "".
US_API size_t us_model_velocity_name(const us_model *model, int32_t i, char *buf, size_t cap);
US_API size_t us_model_position_name(const us_model *model, int32_t i, char *buf, size_t cap);

// One row per array of the model (and, through us_sim_get_field, of state and scratch): for `info` and for
// tools that read snapshots.
typedef struct us_field_info {
    const char *block;  // "model", "state", "scratch"
    const char *name, *type, *unit, *about;
    size_t count, bytes;
} us_field_info;
US_API int32_t us_model_n_field(const us_model *model);
US_API us_field_info us_model_get_field(const us_model *model, int32_t i);

// What loading and compiling found doubtful but usable: the spec's warnings at the time of us_model_compile.
// Borrowed from the model; NULL for a bad index.
US_API int32_t us_model_n_warning(const us_model *model);
US_API const us_error *us_model_view_warning(const us_model *model, int32_t i);

// The joint above a body and what it hangs on; both -1 for a bad index. A body on the world has the parent
// US_WORLD.
US_API us_joint us_model_get_parent_joint(const us_model *model, us_body body);
US_API us_body us_model_get_parent(const us_model *model, us_body body);

// Where a joint's motion ends: infinite where it has no limit, as joints of several coordinates; NaN for a
// bad index. rad or m.
typedef struct us_limits {
    double lower, upper;
} us_limits;
US_API us_limits us_model_get_limits(const us_model *model, us_joint joint);

// torque = torque command + kp (position command - q) + kd (velocity command - v), within +-limit.
typedef struct us_drive_info {
    us_joint joint;                     // -1 for a bad index; the numbers are then NaN
    int32_t q, v;                       // which position and velocity it moves; -1: its joint is broken
    double kp, kd;                      // N m/rad or N/m, N m s/rad or N s/m
    double limit;                       // N m or N; infinite: none
    double position, velocity, torque;  // commands at the start
} us_drive_info;
US_API us_drive_info us_model_get_drive(const us_model *model, us_drive drive);

US_API double us_model_get_total_mass(const us_model *model);  // kg, of all that moves

#ifdef __cplusplus
}
#endif
#endif
