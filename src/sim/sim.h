// A world that steps: the state block, the scratch of the integrators, and what they share.
#ifndef USI_SIM_SIM_H
#define USI_SIM_SIM_H

#include "actuate/actuate.h"
#include "contact/contact_world.h"
#include "dyn/dyn.h"
#include "sim/sensors.h"
#include "understudy/query.h"
#include "understudy/sim.h"

// A wrench that was applied to a body since the last step (apply.c).
typedef struct usi_applied {
    us_wrench wrench;  // at the body's origin, world axes
    int32_t body;
    int32_t reserved;  // 0
} usi_applied;

// The state: all that the future depends on. X(type, name, count, unit, about)
#define USI_STATE_FIELDS(X)                                                                            \
    X(int64_t, tick, 1, "1", "steps since the start")                                                  \
    X(double, q, n_q_pad, "rad, m", "positions, padded with 0")                                        \
    X(double, v, n_pad, "rad/s, m/s", "velocities, padded with 0")                                     \
    X(double, a, n_pad, "rad/s2, m/s2",                                                                \
      "mean acceleration of the last step, padded: where the next one's iteration starts")             \
    X(double, a_before, n_pad, "rad/s2, m/s2", "that of the step before")                              \
    X(double, substep, 1, "s", "the error-controlled integrator's next sub-step; 0: the whole step")   \
    X(double, drive_position, n_drive, "rad, m", "commanded position")                                 \
    X(double, drive_velocity, n_drive, "rad/s, m/s", "commanded velocity")                             \
    X(double, drive_torque, n_drive, "N m, N", "commanded torque")                                     \
    X(double, drive_limit_scale, n_drive, "1", "how much of its strength a drive has: 1 all, 0 none")  \
    X(double, drive_strength, n_drive, "1", "what a fault has left of its strength: 1 all, 0 none")    \
    X(double, blockage, n_friction, "N m, N", "dry friction that a fault adds")                        \
    X(double, battery_energy, n_battery, "J", "what is left in each battery")                          \
    X(double, battery_on, n_battery, "1", "whether a battery is connected: 1, or 0")                   \
    X(usi_encoder_state, encoder, n_encoder, "", "faults of encoders")                                 \
    X(usi_sensor_state, sensor, n_sensor, "", "what sensors keep, and their faults")                   \
    X(double, reading, n_reading, "", "what sensors say, one after the other")                         \
    X(double, sensor_part, n_sensor_part, "", "what else there is of them: usi_sensor_part")           \
    X(double, drive_effort, n_drive, "N m, N", "torque that the drive gave in the last step")          \
    X(double, stuck, n_friction, "rad, m", "where dry friction holds a joint")                         \
    X(int32_t, n_applied, 1, "1", "bodies that a wrench was applied to")                               \
    X(usi_applied, applied, n_body, "", "those wrenches: they act in the next step")                   \
    X(uint8_t, held, n_hold, "", "trees, then patches: 1 where ground that is lost holds it (hold.c)") \
    X(uint8_t, plugin, n_plugin_byte, "", "what plug-ins keep: us_plugin")

typedef struct usi_state {
    void *block;
#define STATE_FIELD(type, name, count, unit, about) type *name;
    USI_STATE_FIELDS(STATE_FIELD)
#undef STATE_FIELD
    usi_contact_state contact;
} usi_state;

enum { USI_STAGES = 7 };  // of the largest Runge-Kutta scheme

// X(type, name, count, unit, about)
#define USI_SCRATCH_FIELDS(X)                                                                           \
    X(double, mid_q, n_q_pad, "rad, m", "positions at a stage")                                         \
    X(double, mid_v, n_pad, "rad/s", "velocities at a stage")                                           \
    X(double, displacement, n_pad, "rad", "displacement from the step's start")                         \
    X(double, rate, USI_STAGES *n_pad, "rad/s", "rates of the displacement at each stage")              \
    X(double, accel, USI_STAGES *n_pad, "rad/s2", "accelerations at each stage")                        \
    X(double, sub_q, n_q_pad, "rad, m", "positions at the start of a sub-step")                         \
    X(double, sub_v, n_pad, "rad/s", "velocities at the start of a sub-step")                           \
    X(double, trial_q, n_q_pad, "rad, m", "positions at the end of a sub-step on trial")                \
    X(double, trial_v, n_pad, "rad/s", "velocities at the end of a sub-step on trial")                  \
    X(usi_joint_row, row, max_joint_row, "", "what acts on the joints in this step")                    \
    X(int32_t, row_start, n_actuated + 1, "", "where the rows of each actuated tree begin")             \
    X(double, torque, max_joint_row, "N m, N", "torque of each row without bounds and acceleration")    \
    X(int32_t, bound, max_joint_row, "", "which bound a row is on: -1 low, 0 none, 1 high")             \
    X(double, end_q, n_q_pad, "rad, m", "positions of touched trees at the end of the step")            \
    X(double, end_v, n_pad, "rad/s", "and their velocities")                                            \
    X(us_wrench, wrench, n_body, "N m, N", "command and applied wrenches of the step, with has_wrench") \
    X(us_wrench, closure, n_loop, "N m, N", "what loops gave to their first link, about their point")   \
    X(us_wrench, closure_before, n_loop, "N m, N", "the same before a sub-step on trial")

// Inputs by calls (input.c). X(kind, name): numbers that can be recorded; the last two are a state and a
// model as a whole, which cannot.
#define USI_INPUT_LIST(X)                     \
    X(USI_INPUT_DRIVE, "drive")               \
    X(USI_INPUT_TORQUE, "torque")             \
    X(USI_INPUT_WRENCH, "wrench")             \
    X(USI_INPUT_STRENGTH, "strength")         \
    X(USI_INPUT_BLOCKAGE, "blockage")         \
    X(USI_INPUT_BATTERY, "battery")           \
    X(USI_INPUT_JOINT, "joint")               \
    X(USI_INPUT_PAIR, "pair")                 \
    X(USI_INPUT_PAIR_MODEL, "model-of-pair")  \
    X(USI_INPUT_SOIL, "soil")                 \
    X(USI_INPUT_REGION, "region")             \
    X(USI_INPUT_HOLD, "hold")                 \
    X(USI_INPUT_SENSOR, "sensor")             \
    X(USI_INPUT_SENSOR_FAULT, "sensor-fault") \
    X(USI_INPUT_SENSOR_ERROR, "sensor-error") \
    X(USI_INPUT_LIDAR_HOLD, "hold-lidar")     \
    X(USI_INPUT_STATE, "state")               \
    X(USI_INPUT_MODEL, "model")

typedef enum usi_input_kind {
#define USI_INPUT_ENUM(kind, name) kind,
    USI_INPUT_LIST(USI_INPUT_ENUM)
#undef USI_INPUT_ENUM
        USI_INPUT_COUNT
} usi_input_kind;

enum { USI_INPUT_NUMBERS = 64 };  // more than any has
typedef struct usi_input {
    usi_input_kind kind;
    int32_t index;  // of the drive, body, joint, battery, material, region, sensor or lidar; hold: of `held`
    int32_t other;  // pair and its model: the other material; region: its material; soil: us_soil_lateral;
                    // lidar's hold: 1, or 0: it goes on;
                    // joint: 1 with positions, 2 with velocities, 3 with both; hold: 1, or 0: it goes on;
                    // sensor: its parameter, behind those of the kind rate and latency; its error: reading
    int32_t n;
    const double *number;
} usi_input;
typedef void usi_input_tap(void *context, const usi_input *input);
// Ground that is lost has stopped what stands on it (`why` names the tile), or is back (NULL). Also within a
// step.
typedef void usi_hold_tap(void *context, const usi_input *input, const us_error *why);

// events.c. What is watched, and what was found in the last step.
typedef struct usi_events usi_events;
// half_steps.c. The same step in two halves, for a second order of what contact moves.
typedef struct usi_half_steps usi_half_steps;

struct us_sim {
    const us_model *model;
    us_dyn *dyn;
    usi_pool *pool;          // NULL: one thread
    usi_contacts *contacts;  // NULL: no shape can collide
    us_allocator allocator;
    int32_t max_contact;    // contact points that there is room for: of the model, or more (room.c)
    int32_t n_growth;       // how often more room was made since create
    bool has_fixed_room;    // a step that needs more fails
    bool has_joints_alone;  // there are trees, and none is a free body: what nothing touches all runs
    usi_state now, next;    // a step reads now and writes next; they change places when it is good
    size_t state_size;
    void *scratch;
    size_t scratch_size;
#define SCRATCH_FIELD(type, name, count, unit, about) type *name;
    USI_SCRATCH_FIELDS(SCRATCH_FIELD)
#undef SCRATCH_FIELD
    double *pending;               // samples of sensors that are under way: sensors.h
    bool has_sensor_failed;        // between steps: the next one tells of it
    struct usi_lidars *lidars;     // lidar.c: frames, state that is changed in place; NULL: there are none
    struct usi_deformable *patch;  // of the model's patches: state, changed in place when a step is good
    bool is_trial;                 // steps leave no print: settle.c
    uint8_t *ghost;                // n_tree of usi_ghost; NULL: all trees are our own
    bool *pushed;                  // n_tree, with it: see usi_contacts
    bool has_ghosts;               // another process moves some trees
    us_plugin *plugin;             // n_plugin
    int32_t n_plugin;
    size_t n_plugin_byte;
    bool back_buffer_is_one_step_old;  // next's states of plug-ins are those that now's came from, one step
                                       // ago: us_plugin.carry
    bool is_stepping;                  // plug-ins run: inputs go to next
    int32_t n_friction_row;            // of dry friction among the rows of the step
    bool has_last_step;        // next and the scratch are as the last step left them: query_reaction.c
    bool has_wrench;           // the step had wrenches: `wrench`
    us_contact_event *event;   // 2 max_contact; NULL: no shape can collide
    int32_t n_event;           // of the last step
    usi_events *events;        // NULL: none are asked for
    usi_half_steps *half;      // NULL: not the adaptive integrator, or no shape can collide
    usi_input_tap *input_tap;  // NULL: none
    void *input_context;
    usi_hold_tap *hold_tap;  // NULL: a step over ground that is lost fails
    void *hold_context;
    bool has_stepped;  // in this process: what is lost at the start is an error
    bool enable_profile;
    us_profile profile;
    us_error error;
};

// input.c. The tap gets what calls change between steps; NULL: nobody gets it.
void usi_sim_set_input_tap(us_sim *s, usi_input_tap *tap, void *context);
void usi_report_input(const us_sim *s, const usi_input *input);
void usi_report_joint(const us_sim *s, us_joint joint, const double *q, const double *v);
void usi_report_soil(const us_sim *s, int32_t material, const us_soil *soil);
// The same change again, in a sim of the same model. The status of the call; US_ERR_ARG for numbers that do
// not fit, and for a whole state or model.
us_status usi_sim_apply_input(us_sim *s, const usi_input *input);
const char *usi_input_name(usi_input_kind kind);
bool usi_input_find(const char *name, usi_input_kind *out_kind);

// deformable_ground.c: patches of soil. Memory for them; all untouched; after a good step what stood in them;
// what a snapshot has of them (`to` NULL: the length alone) and back (false: it does not fit, and nothing has
// changed); and the patches of another sim over the same ground.
us_status usi_deformables_create(us_sim *s);
void usi_deformables_destroy(us_sim *s);
void usi_deformables_clear(us_sim *s);
us_status usi_deformables_check(us_sim *s);  // US_ERR_LIMIT where more was touched than may be
enum { USI_MAX_FLOW = 5000 };                // columns of soil that are looked at in a step, at most
void usi_deformables_step(us_sim *s);
bool usi_deformables_grow(us_sim *s,
                          int32_t max_contact);  // for the prints of so many contacts; false: no memory
size_t usi_deformables_save(const us_sim *s, char *to);
bool usi_deformables_restore(us_sim *s, const char *from, size_t length);
uint64_t usi_deformables_hash(const us_sim *s, uint64_t seed);
us_status usi_deformables_carry(us_sim *from, us_sim *to,
                                bool (*is_same)(const us_model *, int32_t, const us_model *, int32_t),
                                us_error *err);

// hold.c: what stands on ground that cannot be read stops, and the rest of the world goes on. The tap hears
// of it; NULL: such a step fails.
void usi_sim_set_hold_tap(us_sim *s, usi_hold_tap *tap, void *context);
// After a collide stage that found ground that is lost: stops what stands there. False: nothing does, or the
// step is to fail.
bool usi_hold_lost(us_sim *s);
us_status usi_sim_set_hold(us_sim *s, int32_t index, int32_t is_held);
// What `held` has there, for messages: the name of a link, or soil.
const char *usi_sim_held_name(const us_sim *s, int32_t index);
// Between steps: what stood on ground that is back goes on. Reads tiles; allocates.
void usi_sim_release_held(us_sim *s);
int32_t usi_sim_n_held(const us_sim *s);
// Makes the marks of trees and patches those of a state that was put there as a whole. US_ERR_MEMORY.
us_status usi_hold_follow(us_sim *s);
// Of the trees from one to before another: takes the speed of those that are held.
void usi_stop_held(us_sim *s, int32_t tree, int32_t end);

// A column of a bed under a foot, in the ground's frame.
typedef struct usi_foot_column {
    double x, y, z;  // m, where the foot is
    double depth;    // m, of the foot in the soil there
} usi_foot_column;
// deformable_print.c: those under a foot, `cap` at most; returns how many there are.
int32_t usi_foot_columns(const us_sim *s, const usi_soil_contact *k, usi_foot_column *out, int32_t cap);

// ground_settle.c: ground models of somebody else hear what their columns carried in the step that was taken;
// and when the ground has flowed, what was covered is no more.
void usi_settle_grounds(us_sim *s);
void usi_uncover_grounds(us_sim *s);

// What an encoder says.
static inline usi_encoder_reading usi_sim_read_encoder(const us_sim *s, int32_t encoder) {
    return usi_encoder_read(&s->model->encoder[encoder], &s->now.encoder[encoder], s->now.q, s->now.v,
                            s->model->step, s->now.tick[0]);
}
// readings.c: sensors see a state that was set rather than reached by a step; all, those of a tree, and one
// (sensors.c).
void usi_sim_sense(us_sim *s);
void usi_sim_sense_tree(us_sim *s, int32_t tree);
void usi_sim_sense_one(us_sim *s, int32_t sensor);
static inline const double *usi_sim_reading(const us_sim *s, int32_t sensor) {
    return s->now.reading + s->model->sensor[sensor].reading;
}
// Those of robots and sensors of the same names go on; `to` has its positions and velocities.
void usi_sim_carry_sensors(const us_sim *from, us_sim *to);

// mirror.c: into another sim of the same model, what can be seen of this one: poses, sensors, materials. Not
// soil: usi_deformables_save and usi_deformables_restore. The other one is not to be stepped.
void usi_sim_mirror(const us_sim *from, us_sim *to);

// lidar.c: memory for the frames of lidars; none seen yet; what the beams meet that fired within the last
// step; what a snapshot has of them (`to` NULL: the length alone) and back (false: it does not fit, and
// nothing has changed); and those of lidars of the same names and makes go on in another model.
us_status usi_lidars_create(us_sim *s);
void usi_lidars_destroy(us_sim *s);
void usi_lidars_clear(us_sim *s);
void usi_lidars_step(us_sim *s);
void usi_lidars_poison(us_sim *s);
size_t usi_lidars_save(const us_sim *s, char *to);
bool usi_lidars_are_sound(const us_sim *s, const char *from, size_t length);
void usi_lidars_restore(us_sim *s, const char *from);
uint64_t usi_lidars_hash(const us_sim *s, uint64_t seed);
// The last whole turn as it lies there, and the number under which it is shown (-1, NULL: none yet).
const float (*usi_sim_lidar_points(const us_sim *s, int32_t lidar))[4];
// What is true of a shot of it: where the beam met something first, without noise and whatever faults there
// are; x is infinite where it met nothing, the intensity 0.
void usi_sim_lidar_truth(const us_sim *s, int32_t lidar, int64_t column, int32_t ring, float out_point[4]);
// The sensor's pose at the time of a column and ring of it.
us_pose usi_sim_lidar_pose(const us_sim *s, int32_t lidar, int64_t column, int32_t ring);
// How points of a column of it get into the frame that the sensor had when the turn began: at the beginning
// of the column, and `last` s later. Between the two by shares of the time: what is left out grows with its
// square.
typedef struct usi_lidar_shift {
    us_mat3 R[2];
    us_vec3 p[2];
    double last;
} usi_lidar_shift;
usi_lidar_shift usi_sim_lidar_shift(const us_sim *s, int32_t lidar, int64_t column, int32_t ring);
// The points of a group that has fired, as they lie there; NULL: it was not seen, or is gone.
const float (*usi_sim_lidar_group(const us_sim *s, int32_t lidar, int64_t group))[4];
int64_t usi_sim_lidar_turn(const us_sim *s, int32_t lidar, int64_t *out_whole);
void usi_lidar_carry(const us_sim *from, int32_t old, us_sim *to, int32_t lidar);

// us_sim_create without the start of the plug-ins: their states are all 0.
us_status usi_sim_make(const us_model *model, const us_sim_def *def, us_sim **out_sim, us_error *err);

// A ghost that takes no part in the step: ghost.c.
static inline bool usi_is_still(const us_sim *s, int32_t tree) {
    return s->ghost && s->ghost[tree] == USI_GHOST_STILL;
}
// Whether the contact solve moves this tree in the present step, rather than an integrator; or nothing does.
static inline bool usi_is_touched(const us_sim *s, int32_t tree) {
    const usi_tree_now *t = s->contacts ? &s->contacts->islands.tree[tree] : NULL;
    return (t && t->island >= 0 && !t->is_released) || usi_is_still(s, tree);
}

// Forgets which trees the contact solve moved in the last step: dynamics that are asked for between steps are
// those of all trees.
static inline void usi_let_all_run(us_sim *s) {
    for (int32_t t = 0; s->contacts && t < s->model->n_tree; t++)
        s->contacts->islands.tree[t].island = -1;
    if (s->contacts) s->contacts->islands.n_grouped = -1;
    usi_run_all(s->dyn);
}

int32_t usi_state_fields(const us_model *m, int32_t room, size_t n_plugin_byte, usi_field *out, int32_t cap,
                         size_t *out_size);
enum { USI_STATE_MAX_FIELDS = 120 };
// A state of zeros with room for s->max_contact, whose block has s->state_size bytes. False: no memory.
bool usi_state_make(us_sim *s, usi_state *state);
size_t usi_event_bytes(int32_t max_contact);

// room.c: more room for contacts. On failure nothing has changed.
us_status usi_make_room(us_sim *s, int32_t max_contact);
// After a collide stage that found more contacts than there is room for; false: it cannot be made.
bool usi_make_room_for_contacts(us_sim *s);

// How the joint torques of a step are weighted in time. A spring acts at q + lead v + spring a, so that
// `spring` times its stiffness joins the inertia; a damper at v + theta span a.
typedef struct usi_scheme {
    double lead;           // s
    double spring;         // s^2
    double span;           // s
    bool closes_position;  // see usi_joint_terms
} usi_scheme;

// Which evaluation of a step this is: the joint torques are put together in the first and held against their
// bounds in the last.
typedef struct usi_pass {
    bool is_first, is_last;
} usi_pass;

// Makes the joint rows of the step from now, with next's commands. Writes next.drive_effort: 0.
void usi_make_joint_rows(us_sim *s);
// The rows that are there.
static inline usi_actuation usi_actuation_of(const us_sim *s) {
    return (usi_actuation){s->row, s->row_start, s->n_friction_row};
}

// Accelerations at (q, v), with the joint rows by a scheme that starts from now; out_a holds a guess at
// entry. Writes the drives' efforts to next. Returns false when the inertia is not positive.
bool usi_accelerate(us_sim *s, const usi_scheme *scheme, const usi_pass *pass, const double *q,
                    const double *v, const us_command *command, double *out_a);
// Where the first step's iteration starts: makes the joint rows and the accelerations of a semi-implicit step
// from now. Those of an
// explicit one would be of no use: a stiff drive a radian from its goal gives 1e8 rad/s^2 for a microsecond.
bool usi_accelerate_first(us_sim *s, double *out_a);
// The same with torques as they are at (q, v), for explicit schemes.
bool usi_accelerate_explicit(us_sim *s, const double *q, const double *v, const us_command *command,
                             double *out_a);

// The integrators: from now to next (q, v, a, substep).
us_status usi_step_euler(us_sim *s, const us_command *command);
us_status usi_step_midpoint(us_sim *s, const us_command *command);
us_status usi_step_rk4(us_sim *s, const us_command *command);
us_status usi_step_adaptive(us_sim *s, const us_command *command);

// Whether the command has a torque or force along the root's own axes, which rotate during the step.
bool usi_has_root_torque(const usi_tree *tree, const us_command *command);
// Overwrites what the integrator did to free bodies by the momentum form; and gives free trees back their
// momentum.
void usi_step_free_bodies(us_sim *s, const us_command *command, bool is_second_order);
void usi_step_free_trees(us_sim *s, const us_command *command);

// snapshot_check.c: whether a state that comes from a file can be stepped: every index, count and number in
// it is one that a state of this model can have.
bool usi_plugins_are_sound(const us_sim *s, const uint8_t *state);  // plugin_state.c
bool usi_state_is_sound(const us_sim *s, const usi_state *state);
bool usi_pair_is_sound(const us_pair_values *v);  // query.c

// closure.c: what loops give in a step. All 0 but for what the contact solve gave; then what the last
// evaluation of the forward dynamics gave, which holds for a share `weight` of the step; then the impulses of
// the last projection. All of them read the kinematics and the row forces that these have left in dyn.
void usi_closures_start(us_sim *s);
void usi_closures_add(us_sim *s, double weight);
void usi_closures_add_projection(us_sim *s);

// apply.c: the step's command, applied wrenches included: `command` itself (NULL: none) where nothing pushes,
// else `all`, whose wrenches are scratch.
const us_command *usi_take_applied(us_sim *s, const us_command *command, us_command *all);
// query_event.c: after now and next have changed places.
void usi_find_contact_events(us_sim *s);

// events.c: what a definition asks for; no more events; room for those of so many contacts.
us_status usi_events_create(us_sim *s, const us_sim_def *def, us_error *err);
void usi_events_destroy(us_sim *s);
void usi_events_clear(us_sim *s);
bool usi_events_grow(us_sim *s, int32_t max_contact);
void usi_events_define(const us_sim *s, us_sim_def *def);  // back to a definition
// Before now and next change places. The values at the start of a step; those at the end of a part of it,
// from `from` on and `length` long, s, within which `sample` knows the state; and all at the end of a step,
// unless the integrator has shown its parts, with impacts.
typedef void usi_sample(us_sim *s, double share, double length, double *out_q, double *out_v);
us_status usi_events_begin(us_sim *s);
us_status usi_events_in_part(us_sim *s, double from, double length, usi_sample *sample, const double *q1,
                             const double *v1);
us_status usi_events_end(us_sim *s);

// runge_kutta.c: q moved by a displacement, and its rate there.
void usi_displace(const us_model *m, const double *q0, const double *t, double *out_q);
void usi_displacement_rate(const us_model *m, const double *t, const double *q, const double *v, double *out);

// take_command.c. Carries over to next what a step keeps: the last acceleration, the sub-step, the drives'
// commands, faults. usi_take_command: and then the command, and what plug-ins make of it.
void usi_carry_over(us_sim *s);
us_status usi_take_command(us_sim *s, const us_command *command);
// touch.c, where shapes can collide: which touch, and which trees hang together; the velocities that follow.
us_status usi_find_contacts(us_sim *s);
us_status usi_solve_contacts(us_sim *s, const us_command *command);
// touched.c: the trees that the integrator moves, those that nothing touches, to dyn->run; free bodies are
// moved by their momentum, unless something pushes their root. Touched trees end where the contact solve has
// put them, ghosts that are still where they were.
void usi_choose_runs(us_sim *s, const us_command *command);
void usi_take_touched(us_sim *s);

// Makes next's states of plug-ins the same as now's.
void usi_carry_plugins(us_sim *s);
// Copies the definitions and lays out their states. US_ERR_ARG for one that does not fit this library.
us_status usi_take_plugins(us_sim *s, const us_sim_def *def, us_error *err);
// A plug-in's state of now, to be changed between steps; NULL for a bad index. What changes it must be
// recorded.
void *usi_sim_plugin(us_sim *sim, int32_t plugin);
// The number of the plug-in with this context; -1: there is none. Cost: a look at each.
int32_t usi_sim_find_plugin(const us_sim *sim, const void *context);
// us_sim_replace with other plug-ins: those that the sim has already go on, new ones start in the new state,
// the others are no more part of it.
us_status usi_sim_replace(us_sim *sim, const us_model *model, int32_t n_plugin, const us_plugin *plugins,
                          us_error *err);
// Joints and drives as at the start; what has broken stays. US_ERR_CONSTRAINT: nothing has changed. Between
// steps, and without a word to the input tap.
us_status usi_sim_go_home(us_sim *sim);
// us_sim_find_value, for all sims of a model.
int32_t usi_find_value(const us_model *model, const char *name);
// Their states at the start.
void usi_start_plugins(us_sim *s);

// A tree was set to other positions: what touched it is forgotten, friction holds its joints where they are,
// and the next step begins afresh there.
void usi_sim_renew(us_sim *s, int32_t tree);
// The same where friction holds its joints already as it should.
void usi_sim_restart(us_sim *s, int32_t tree);
// How a floating robot stands with its base at x, y and a heading (rad): `q` (n_q) has its driven joints as
// they shall be, and gets its root and its joints without a drive as they come to rest on the ground. The sim
// is unchanged. US_ERR_TREE for what does not float, US_ERR_VALUE where it cannot stand. Allocates. Cost:
// tens to hundreds of steps of the world.
us_status usi_sim_settle(us_sim *s, us_body base, const double pose[3], double *q, us_error *err);
// ghost.c: one world in several processes. A tree's numbers as they go from its owner to the others:
// positions, velocities, and what its joint rows are made of: of each drive position, velocity, torque, limit
// scale, strength, energy of its battery, 1 while that is connected (no battery: 0, 0); then of each
// coordinate with dry friction the blockage and where it sticks.
typedef struct usi_tree_size {
    int32_t n_q, n_v, n_actuation;
} usi_tree_size;
int32_t usi_first_q(const us_model *m, int32_t tree);
// Whether the quaternions among a tree's positions (from its first one on) have length 1 within rounding.
bool usi_has_rotations(const us_model *m, int32_t tree, const double *q);
usi_tree_size usi_sim_tree_size(const us_sim *s, int32_t tree);
// Room for marks; all trees are then our own. US_ERR_MEMORY.
us_status usi_sim_allow_ghosts(us_sim *s);
us_status usi_sim_make_marks(us_sim *s);  // the same for hold.c
// From the next step on. One that wakes up has no contacts yet.
void usi_sim_mark_ghost(us_sim *s, int32_t tree, usi_ghost ghost);
void usi_sim_get_tree(const us_sim *s, int32_t tree, double *out_q, double *out_v, double *out_actuation);
// False, and nothing has changed, when a number is not finite or a quaternion is none.
bool usi_sim_put_tree(us_sim *s, int32_t tree, const double *q, const double *v, const double *actuation);
void usi_sim_set_tick(us_sim *s, int64_t tick);

// Sets sim->error, names the joint where it began, and returns US_ERR_DIVERGED.
us_status usi_diverged(us_sim *s, const char *stage, const char *remedy);

#endif
