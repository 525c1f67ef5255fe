// A world that steps: state, snapshot, hash, pace.
//
// A us_sim is opaque and belongs to one thread at a time; any number may share one model. Nothing is
// allocated after us_sim_create. A step that fails leaves the last tick whole.
#ifndef UNDERSTUDY_SIM_H
#define UNDERSTUDY_SIM_H

#include "understudy/dyn.h"
#include "understudy/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_sim us_sim;

// A plug-in takes part in every step: at the tick boundary it may look at the world and change the drives'
// commands. Its state lies inside the sim's, where it is saved, hashed and restored with the rest; what it
// does must follow from that, from the world and from inputs that are recorded.
enum { US_PLUGIN_VERSION = 2 };

// What a plug-in may write in a step. Drives as in us_command; all stay until the next change.
typedef struct us_plugin_view {
    void *state;  // state_size bytes, aligned to 64; the last tick's at entry
    double *drive_position, *drive_velocity, *drive_torque, *drive_limit_scale;
    double *battery_on;  // n_battery: 1, or 0 for one that is disconnected: it gives nothing
} us_plugin_view;

typedef struct us_plugin {
    int32_t version;  // US_PLUGIN_VERSION
    const char *name;
    size_t state_size;
    void *context;  // must outlive the sim
    void (*start)(void *context, us_sim *sim,
                  void *state);  // at create and reset; the state is all 0 before. May be NULL
    // Before the step from the sim's tick to the next. A status other than US_OK fails the step, which leaves
    // the last tick whole. A number that is not finite in the drives' commands is refused.
    us_status (*before)(void *context, us_sim *sim, us_plugin_view *view, us_error *err);
    // Makes `to`, the state that the last `before` began with, the same as `from`, the one it ended with: for
    // a large state of which a tick changes little. NULL: all is copied, as it is in any case after anything
    // else than a step has changed the state.
    void (*carry)(void *context, const us_sim *sim, const void *from, void *to);
    // Whether a state that comes from a snapshot can be gone on with: every index and count in it is looked
    // at before anything uses it. NULL: any can.
    bool (*check)(void *context, const us_sim *sim, const void *state);
} us_plugin;

// A condition g(q, v, t) whose passage through 0 is an event (us_sim_get_event in query.h). It must be
// continuous and follow from its arguments alone, and is asked some times in a step, twice and about ten
// times more in one with an event. It changes nothing of the motion. A value that is not finite fails the
// step.
typedef struct us_condition {
    const char *name;  // for messages; copied as a pointer
    void *context;     // must outlive the sim
    double (*value)(void *context, const us_model *model, const double *q, const double *v, double time);
    int32_t direction;  // 1: upwards only, -1: downwards only, 0: both
} us_condition;

typedef struct us_sim_def {
    us_allocator allocator;
    bool enable_profile;  // read the clock around each stage (about 0.2 us per step)
    int32_t n_thread;  // threads that share the islands of a step, the caller included; default 1. The result
                       // is the same for any number
    int32_t n_plugin;
    const us_plugin *plugins;  // in the order in which they run; copied
    bool has_fixed_room;       // a step that finds more contact points than there is room for fails with
                               // US_ERR_LIMIT, instead of making room and going on; default false
    bool enable_events;        // locate impacts and limits in time; conditions are located in any case
    int32_t n_condition;
    const us_condition *conditions;  // copied
} us_sim_def;

US_API us_sim_def us_sim_def_default(void);

// The model must outlive the sim. The start state is projected onto the constraints; US_ERR_CONSTRAINT when a
// loop cannot close. `def` may be NULL.
US_API us_status us_sim_create(const us_model *model, const us_sim_def *def, us_sim **out_sim, us_error *err);
US_API void us_sim_destroy(us_sim *sim);     // NULL is allowed
US_API us_status us_sim_reset(us_sim *sim);  // back to the start state, tick 0

// What enters at a tick boundary. Every pointer may be NULL. Torques and wrenches act for this tick only;
// drive commands stay until the next one. Values that are not finite are refused (US_ERR_VALUE) and nothing
// changes.
typedef struct us_command {
    const double *torque;             // n_v, added to the drives'
    const us_wrench *wrench;          // n_body, at each link's origin, world axes
    const double *drive_position;     // n_drive
    const double *drive_velocity;     // n_drive
    const double *drive_torque;       // n_drive
    const double *drive_limit_scale;  // n_drive: how much of its torque limit a drive has left, 0 .. 1; 0: it
                                      // gives no torque; at the start 1
} us_command;

// Exactly one tick. `command` may be NULL. Allocates nothing, but where there are more contact points than
// there is room for: then the tick stops before it has changed anything, room is made, and it is done again
// from there, with the same result as if there had been room from the start.
US_API us_status us_sim_step(us_sim *sim, const us_command *command);
// Contact points that there is room for, and how often more room was made since us_sim_create.
typedef struct us_room {
    int32_t max_contact, n_growth;
} us_room;
US_API us_room us_sim_get_room(const us_sim *sim);
// What the last failed step found: tick, stage and element.
US_API const us_error *us_sim_view_error(const us_sim *sim);

US_API const us_model *us_sim_view_model(const us_sim *sim);
US_API int64_t us_sim_get_tick(const us_sim *sim);
US_API double us_sim_get_time(const us_sim *sim);
US_API us_pose us_sim_get_pose(const us_sim *sim,
                               us_body body);  // X_WB; NaN for a bad index. Cost: the path to the root
US_API us_twist us_sim_get_twist(
    const us_sim *sim, us_body body);  // V_WB, world axes, at the link's origin. Cost: all kinematics
US_API const double *us_sim_view_q(const us_sim *sim);  // n_q
US_API const double *us_sim_view_v(const us_sim *sim);  // n_v
US_API const double *
us_sim_view_torque(const us_sim *sim);  // n_drive: what each drive gave in the last step (state)
US_API const void *us_sim_view_plugin(const us_sim *sim,
                                      int32_t plugin);  // its state after the last step; NULL for a bad index
US_API us_status us_sim_set_state(
    us_sim *sim, const double *q,
    const double *v);  // NULL keeps; quaternions are normalised; loops are closed by the next step
// One joint: n_q positions and n_v velocities; NULL keeps. With positions, contacts of all that hangs
// together with it are forgotten.
US_API us_status us_sim_set_joint(us_sim *sim, us_joint joint, const double *q, const double *v);
// Takes an object that floats and puts it down elsewhere: the pose of any of its links. The object's root is
// then at rest; its joints stay as they are. US_ERR_TREE for what stands on the world. For other objects and
// their shapes: us_spec_copy, us_spec_move_link, us_sim_replace.
US_API us_status us_sim_move(us_sim *sim, us_body body, us_pose X_WB);
// Sets an object that floats in motion: V_WB as us_sim_get_twist gives it, of a link of its root. Pose and
// joints stay as they are. US_ERR_TREE for what stands on the world, and for links that joints carry.
US_API us_status us_sim_set_twist(us_sim *sim, us_body body, us_twist V_WB);
// Goes on with another model, for example after something was added or removed: tick, positions, velocities,
// commands and what contacts remember are carried over by name. What is new begins at its start state, and so
// does a joint or drive whose start state the new model has otherwise. Plug-ins go on with the states they
// have and are not started again: one that keeps indices of the model must be notified (us_proxy_replace does
// both). Indices, ids of values and views of the old model end; it may be destroyed afterwards, and the new
// one must outlive the sim. Allocates; on failure the sim is unchanged. Snapshots of the old model do not fit
// the new one. Cost: like us_sim_create.
US_API us_status us_sim_replace(us_sim *sim, const us_model *model, us_error *err);
US_API us_energy us_sim_get_energy(const us_sim *sim);
US_API us_momentum us_sim_get_momentum(const us_sim *sim);
US_API double
us_sim_get_closure(const us_sim *sim);  // greatest |phi| over the constraint rows; 0 when there are none

// Faults of motors and joints, from now on: part of the state, carried over by us_sim_replace.
//
// What is left of a motor's strength, 0 .. 1: a fraction of its torque limit, beside that of the commands; 0:
// it gives no torque. US_ERR_ARG for a bad index, US_ERR_VALUE for a number out of range. get: NaN for a bad
// index.
US_API us_status us_sim_set_drive_strength(us_sim *sim, us_drive drive, double strength);
US_API double us_sim_get_drive_strength(const us_sim *sim, us_drive drive);
// Dry friction that a fault adds to a joint that a drive moves, N m or N; it sticks where it is. The start
// value is us_joint_def.blockage. US_ERR_ARG for a bad index or a joint without drive, US_ERR_VALUE for a
// number that is negative or not finite. get: NaN for a bad index, 0 for a joint that cannot be blocked.
US_API us_status us_sim_set_blockage(us_sim *sim, us_joint joint, double blockage);
US_API double us_sim_get_blockage(const us_sim *sim, us_joint joint);

// A battery: part of the state. Motors take the power they give, and give nothing back; beside them it gives
// its idle power. Drives of an empty one give no torque. Full at the start.
typedef struct us_battery_state {
    double energy;  // J, what is left
    double power;   // W, what it gave at the end of the last step
} us_battery_state;
US_API us_battery_state us_sim_get_battery(const us_sim *sim, us_battery battery);  // NaN for a bad index
// US_ERR_ARG for a bad index, US_ERR_VALUE below 0 or above the capacity.
US_API us_status us_sim_set_battery(us_sim *sim, us_battery battery, double energy);

// The contact points of the last step.
typedef struct us_contact {
    us_body body_a, body_b;    // -1: the world
    int32_t shape_a, shape_b;  // of the spec
    us_vec3 point;             // m, in W, half way between the surfaces, at the start of the last step
    us_vec3 normal;            // from B to A
    double gap;                // m, negative where they overlap; at the start of the last step
    us_vec3 force;             // N, on A
    us_vec3 stretch;           // m, what the anchor remembers, in W
    bool is_sliding;
} us_contact;
US_API int32_t us_sim_n_contact(const us_sim *sim);
US_API us_contact us_sim_get_contact(
    const us_sim *sim, int32_t i);  // bodies -1 and NaN for a bad index. Cost: two paths to the root

// How two materials touch, from now on: part of the state. US_ERR_ARG for unknown materials, US_ERR_VALUE for
// numbers out of range.
US_API us_status us_sim_set_pair(us_sim *sim, us_material a, us_material b, const us_pair_values *values);
US_API us_status us_sim_get_pair(const us_sim *sim, us_material a, us_material b, us_pair_values *out_values);
// Which model acts between them, from now on: "compliant", "spring-damper", "soil" or a registered one, with
// the parameters of their row. Part of the state; what touched by the other model is forgotten. US_ERR_ARG
// for unknown materials, US_ERR_NAME for an unknown model, US_ERR_VALUE for a law of soil between materials
// that are none, and for parameters that are not the model's. NULL from get: unknown materials.
US_API us_status us_sim_set_pair_model(us_sim *sim, us_material a, us_material b, const char *model);
US_API const char *us_sim_get_pair_model(const us_sim *sim, us_material a, us_material b);

// What a material is as soil, from now on: part of the state. US_ERR_ARG for a material without soil,
// US_ERR_VALUE for numbers out of range.
US_API us_status us_sim_set_soil(us_sim *sim, us_material material, const us_soil *soil, us_error *err);
US_API us_status us_sim_get_soil(const us_sim *sim, us_material material, us_soil *out_soil);
// What a region is made of, from now on: part of the state. US_ERR_ARG for what is not there.
US_API us_status us_sim_set_region(us_sim *sim, int32_t region, us_material material);
US_API us_material us_sim_get_region(const us_sim *sim, int32_t region);  // -1 for a bad index

// What was in soil in the last step: none before the first one and after a restore.
typedef struct us_soil_contact {
    us_body body;
    us_material soil;
    bool is_wheel;            // otherwise a foot: slip and moment are 0
    bool is_buried;           // deeper than the model goes
    double sinkage;           // m, below the surface that is there
    double slip, slip_angle;  // [-1, 1], rad
    us_vec3 force;  // N, on the body: wheels along heading, axle to the left, normal; feet in the world
    double moment;  // N m, that the soil takes from the axle
    us_vec3 place;  // m, in the world: under the hub, or the foot
} us_soil_contact;
US_API int32_t us_sim_n_soil_contact(const us_sim *sim);
US_API us_soil_contact us_sim_get_soil_contact(const us_sim *sim,
                                               int32_t i);  // body -1 and NaN for a bad index
// The soil under it: its material's, with what maps say of the place. US_ERR_ARG for a bad index.
US_API us_status us_sim_get_soil_contact_soil(const us_sim *sim, int32_t i, us_soil *out_soil);

// Forces at the nodes of the patch under it: of a wheel along the arc of its rim, of a foot the columns of
// the bed that it stands on, or else its point. They add up to the force of the contact, and are distributed
// as the stress of the library's own law is.
typedef struct us_soil_node {
    us_vec3 place;  // m, in the world, on the surface of the body
    us_vec3 force;  // N, on the body, in the world
    double area;    // m^2
} us_soil_node;
US_API int32_t us_sim_n_soil_node(const us_sim *sim, int32_t contact);  // 0 for a bad index
// NaN for a bad index. Cost: a look at all nodes of the contact.
US_API us_soil_node us_sim_get_soil_node(const us_sim *sim, int32_t contact, int32_t node);

// What the ground of a bed (of us_sim_n_deformable) remembers: its own numbers, and those of a column. NULL,
// and 0, when it has none or there is no such column. Until the next step. What a node carried:
// us_sim_get_soil_contact and us_sim_get_soil_node, each node being a contact.
US_API const double *us_sim_view_ground_state(const us_sim *sim, int32_t bed, int32_t *out_n);
US_API const double *us_sim_view_ground_column(const us_sim *sim, int32_t bed, int32_t i, int32_t j,
                                               int32_t *out_n);

// Beds of soil: a grid of columns over a height field, in which wheels and feet leave ruts. Part of the
// state.
enum { US_DEFORMABLE_TILE = 64 };
typedef struct us_deformable_info {
    int32_t shape;     // of the spec: the height field
    int32_t n_x, n_y;  // columns
    double spacing;    // m
    us_pose X_WB;      // the middle of the patch
    int32_t n_tile_x,
        n_tile_y;            // of US_DEFORMABLE_TILE by US_DEFORMABLE_TILE columns, those at the end smaller
    int32_t n_touched;       // tiles in which something has happened
    size_t bytes, memory;    // that they take, and may take: bed-memory. When they take more, the next step
                             // returns US_ERR_LIMIT
    uint64_t digest;         // changes with every change
    int64_t n_active;        // columns that may flow
    double lowest, highest;  // m, the greatest changes there have been
} us_deformable_info;
US_API int32_t us_sim_n_deformable(const us_sim *sim);
US_API us_deformable_info us_sim_get_deformable(const us_sim *sim,
                                                int32_t patch);  // shape -1 for a bad index
// Touched tiles in the order in which they were; all others are as they have always been. US_ERR_ARG for what
// is not there; find: -1.
US_API us_status us_sim_get_deformable_touched(const us_sim *sim, int32_t patch, int32_t k, int32_t *out_u,
                                               int32_t *out_v);
US_API int32_t us_sim_find_deformable_tile(const us_sim *sim, int32_t patch, int32_t u, int32_t v);
// Another one with every change of a tile; 0: none. Not part of the state.
US_API uint32_t us_sim_get_deformable_version(const us_sim *sim, int32_t patch, int32_t u, int32_t v);
// Heights now of a tile's columns in the patch's frame, x fastest, at most 64 * 64, m; and how they have
// changed. Either may be NULL. Of paged ground heights are waited for, and may be an error as in a step:
// US_ERR_IO, US_ERR_LIMIT.
US_API us_status us_sim_get_deformable_tile(const us_sim *sim, int32_t patch, int32_t u, int32_t v,
                                            float *out_height, float *out_change);
// The patch's ground as it is now as a GeoTIFF: band 1 height, band 2 how it has changed. `ground` is the
// height field, us_spec_view_shape of info.shape. Where it came from a raster or a site, the file has the
// reference system of that, and heights above its reference; otherwise plain metres of the world. `zone` (x0
// y0 x1 y1, m in the ground's frame) says which part; NULL: all of it, and of a site what has changed.
// out_zone, which may be NULL, is what was written. Errors: US_ERR_ARG; US_ERR_VALUE and US_ERR_LIMIT for a
// zone of no or too many columns; US_ERR_IO.
US_API us_status us_sim_write_deformable(const us_sim *sim, int32_t patch, const us_shape_def *ground,
                                         const double zone[4], const char *path, double out_zone[4],
                                         us_error *err);

// A value by name, for scopes and recordings: "joint.q", "joint.v" (joints with one coordinate),
// "joint.q[2]", "joint.v[2]", "drive.torque", "link.x" .y .z (position), "link.qw" .qx .qy .qz, "energy",
// "energy.kinetic", "energy.potential", "closure", "time". Of a link in soil, as of us_sim_get_soil_contact
// in the last step: "link.sinkage" .load, and of wheels .slip .slip-angle .pull .side .moment; 0 where it is
// in none. Of a sensor "robot/sensor.READING" as the robot has it, .true.READING as it was true when the last
// sample was taken, .set.PARAMETER as it is now (rate and latency too). Returns an id >= 0, or -1 for an
// unknown name.
US_API int32_t us_sim_find_value(const us_sim *sim, const char *name);
US_API double us_sim_get_value(const us_sim *sim, int32_t id);  // NaN for a bad id

// Snapshot: buf NULL asks for the size only. Restore checks that the model is the same one.
US_API us_status us_sim_save(const us_sim *sim, void *buf, size_t cap, size_t *out_length);
US_API us_status us_sim_restore(us_sim *sim, const void *buf, size_t length);
US_API uint64_t us_sim_hash(const us_sim *sim);  // of the state alone

// The arrays of the state, then those of the scratch (us_field_info.block says which).
US_API int32_t us_sim_n_field(const us_sim *sim);
US_API us_field_info us_sim_get_field(const us_sim *sim, int32_t i);

// Fills the scratch with garbage. Nothing may change by it: for tests.
US_API void us_sim_poison(us_sim *sim);

// X(code, name): the stages of a step, in order.
#define US_STAGE_LIST(X)               \
    X(US_STAGE_COMMAND, "command")     \
    X(US_STAGE_COLLIDE, "collide")     \
    X(US_STAGE_ACTUATE, "actuate")     \
    X(US_STAGE_CONTACT, "contact")     \
    X(US_STAGE_DYNAMICS, "dynamics")   \
    X(US_STAGE_CONSTRAIN, "constrain") \
    X(US_STAGE_COMMIT, "commit")       \
    X(US_STAGE_SENSE, "sense")         \
    X(US_STAGE_MORPH, "morph")         \
    X(US_STAGE_SCAN, "scan")

typedef enum us_stage {
#define US_STAGE_ENUM(code, name) code,
    US_STAGE_LIST(US_STAGE_ENUM)
#undef US_STAGE_ENUM
        US_STAGE_COUNT
} us_stage;

US_API const char *us_stage_name(us_stage stage);

typedef struct us_profile {
    int64_t n_step;
    double seconds[US_STAGE_COUNT];  // summed since create or the last read; 0 without enable_profile
} us_profile;
US_API us_profile us_sim_take_profile(us_sim *sim);

// How the islands of contacts were solved since create (docs/contact.md): not part of the state. All 0 where
// nothing can touch.
typedef struct us_solver_counts {
    int64_t n_island;     // islands solved
    int64_t n_iteration;  // iterations, or sweeps, for them
    // Islands whose own method gave no answer, by what took over: friction of lagged radii; soft rows that
    // were hardened; the last iterate without more energy than the step began with.
    int64_t n_lagged, n_hardened, n_shortened;
    // The same of the rigid solvers: sweeps in place of the direct one; compliant rows.
    int64_t n_swept, n_compliant;
} us_solver_counts;
US_API us_solver_counts us_sim_get_solver_counts(const us_sim *sim);

// Ground that is paged in from sites (docs/paging.md). All 0 where there is none.
typedef struct us_paging {
    int64_t n_wait;          // steps that had to wait for a tile, since create; the first step left out
    int64_t n_read, n_drop;  // tiles read and given back since the model was made; by all sims of it
    int32_t n_resident;      // tiles in memory
    size_t bytes;            // that they take
    size_t memory;           // that they may take
} us_paging;
US_API us_paging us_sim_get_paging(const us_sim *sim);

// One drive or one body, in place of a whole us_command. They are part of the state at once: a snapshot that
// is taken before the step has them. Drive commands stay until the next ones, as in us_command; a position
// and a velocity go together. A wrench acts in the next step alone, added to that of its command; several on
// one body are added. From a plug-in's `before` they hold for the step that calls it. US_ERR_ARG for a bad
// index, US_ERR_VALUE for numbers that are not finite; nothing changes then.
US_API us_status us_sim_set_drive(us_sim *sim, us_drive drive, double position, double velocity);
US_API us_status us_sim_set_drive_torque(us_sim *sim, us_drive drive, double torque);
// A force at a point of the world, N and m, both along the world's axes.
US_API us_status us_sim_apply_force(us_sim *sim, us_body body, us_vec3 force_W, us_vec3 point_W);
// Moment and force at the body's origin, along the world's axes: N m, N.
US_API us_status us_sim_apply_wrench(us_sim *sim, us_body body, us_wrench wrench);

#ifdef __cplusplus
}
#endif
#endif
