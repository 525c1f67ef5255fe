// The robots of a model: their joints, drives, wheels, legs and frames by number, and what was written about
// their firmware and network.
//
// A robot's joints are those with one coordinate, in the order of the spec; its drives are in the order of
// their joints. The firmware counts the same way.
#ifndef USI_MODEL_ROBOTS_H
#define USI_MODEL_ROBOTS_H

#include <string.h>

#include "firmware/firmware.h"
#include "model/model.h"
#include "model/robot_interface.h"
#include "spec/fault_target.h"
#include "spec/publication.h"
#include "understudy/network.h"

// Beside what the firmware knows of a joint and a drive: where the simulated ones are.
typedef struct usi_robot_joint {
    int32_t q, v;  // in the sim's vectors
    bool is_lost;  // it is broken, or behind a break: neither its encoder nor its drive is connected any more
} usi_robot_joint;

typedef struct usi_robot_drive {
    int32_t index;   // of the model
    char motor[5];   // name in the ASCII protocol; "" for none
    bool is_broken;  // the joint itself
} usi_robot_drive;

// A transform of the robot's tree: child in parent.
typedef struct usi_robot_frame {
    const char *parent, *child;       // frame ids, with the prefix
    us_body parent_body, child_body;  // child_body -1: a sensor, at X_PF in the parent
    us_pose X_PF;                     // of the joint between them
    int32_t joint;                    // of the robot; -1: it has no encoder
    us_vec3 axis;                     // of it, in the child's frame, of length 1
    double rotation, distance;        // rad and m by which it moves for each unit of its coordinate
    bool is_fixed;
    bool is_lost;  // as of usi_robot_joint
} usi_robot_frame;

// A fault that the scene has in store, as us_fault_def has it.
typedef struct usi_script {
    const us_fault_def *def;
    int32_t after;              // of the robot's; -1: none
    int64_t at, duration;       // ticks; duration 0: it stays
    usi_condition condition;    // no terms: it always holds
    char undo[USI_FAULT_TEXT];  // "motor:front_left_drive=ok"
} usi_script;

// A topic that the robot publishes.
typedef struct usi_topic {
    const char *name;  // in full: "/k10/odom"
    usi_source_kind source;
    int32_t sensor;  // of the model; -1: its samples are no readings
    double rate;     // Hz, above 0
    bool is_truth;   // not the robot's to say: of its pose, or of its sensor
    const us_message_type *type;
    const usi_endpoint *message;  // of readings: the members that their kind names; NULL: there are none
} usi_topic;

typedef struct usi_robot_model {
    const char *name, *file;        // file: where it was described; NULL: by calls
    const us_network_def *network;  // with defaults filled in
    us_body root, base;             // the root, and the link whose motion odometry estimates
    us_joint floating;              // of the root; -1: it stands on the world
    us_battery battery;             // -1: it has none
    int32_t base_q, base_v;         // of that joint
    const char *base_frame, *root_frame, *odom_frame;
    usi_firmware firmware;
    const usi_robot_joint *joint;  // firmware.n_joint
    const usi_robot_drive *drive;  // firmware.n_drive
    const usi_robot_frame *frame;
    const usi_topic *topic;  // the truth first: what is the robot's own leaves together
    const usi_script *script;
    usi_interface_model interface_;  // of the robot's own
    int32_t first_encoder;           // of the model: firmware.n_joint, in the order of the joints
    int32_t first_sensor, n_sensor;  // of the model
    const char *const *broken;       // names of the joints that broke, without the robot's
    int32_t n_frame, n_fixed_frame, n_topic, n_script, n_broken;
} usi_robot_model;

// compile_interface.c: the robot's interface. Needs its sensors and frames.
struct usi_build;
us_status usi_build_interface(struct usi_build *b, const us_model *m, usi_arena *arena, usi_robot_model *r);

// Whether the robot is fixed to the world: its root has a place in the map.
static inline bool usi_robot_stands(const usi_robot_model *r) {
    return r->root.i >= 0 && r->floating.i < 0 && !usi_firmware_can_move(&r->firmware);
}

// Robots do not sample and publish in step: of a fleet that did, each would wait for all others. A prime
// spreads them over any period. Ticks.
static inline int64_t usi_robot_phase(int32_t robot) { return 617 * (int64_t)robot; }
// The robot's sensor of a kind (NULL: of any) and name, a number of the model; -1: none.
int32_t usi_robot_find_sensor(const us_model *m, const usi_robot_model *r, const char *kind,
                              const char *name);
static inline bool usi_sensor_is(const usi_sensor *s, const char *kind) {
    return strcmp(s->kind->name, kind) == 0;
}
// "k10/left_rocker" to "left_rocker".
static inline const char *usi_name_without_group(const char *name, const char *group) {
    const size_t n = strlen(group);
    return n > 0 && strncmp(name, group, n) == 0 && name[n] == '/' ? name + n + 1 : name;
}
// sensor_topic.c: the type of a topic, and the members that the kind of its sensor names.
us_status usi_build_sensor_topic(struct usi_build *b, const us_model *m, usi_arena *arena, usi_topic *topic);
// robot_sensors.c: the sensors of all robots. `is_off`: links that have come off.
us_status usi_build_sensors(struct usi_build *b, us_model *m, usi_robot_model *robot, const bool *is_off);

#endif
