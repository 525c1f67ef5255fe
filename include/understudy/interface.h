// Interfaces of one's own: types read from IDL, .msg, .srv or .action files while the program runs, and
// messages of them by the names of their members.
//
// A type from here is a us_message_type as every other: topics of a bus take it, us_message_print shows its
// samples, us_message_get_number reads them. It has no struct in C, so us_message_encode and
// us_message_decode do not know it: us_message_compose makes its samples.
//
//     const char *files[] = {"robot.idl"};
//     us_interface_def def = us_interface_def_default();
//     def.n_file = 1;
//     def.files = files;
//     us_interface *interface = NULL;
//     us_interface_load(&def, &interface, &err);
//     const us_message_type *type = us_interface_find(interface, "robot::Command");
#ifndef UNDERSTUDY_INTERFACE_H
#define UNDERSTUDY_INTERFACE_H

#include "understudy/base.h"
#include "understudy/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_interface us_interface;

typedef struct us_interface_def {
    us_allocator allocator;
    int32_t n_file;
    const char *const
        *files;  // IDL files, and .msg, .srv and .action files of ROS 2; what they include stands beside them
} us_interface_def;
US_API us_interface_def us_interface_def_default(void);

// Reads the files, once each. Errors name file and line and what to write instead: US_ERR_IO, US_ERR_SYNTAX,
// US_ERR_NAME for names that are unknown or used twice, US_ERR_VALUE for numbers out of range, US_ERR_TREE
// for types that contain themselves, US_ERR_LIMIT for too much or too deep.
US_API us_status us_interface_load(const us_interface_def *def, us_interface **out_interface, us_error *err);
// Types and their names live until every holder has released it; NULL is allowed.
US_API us_interface *us_interface_keep(us_interface *interface_);
US_API void us_interface_release(us_interface *interface_);

US_API int32_t us_interface_n_type(const us_interface *interface_);
US_API const us_message_type *us_interface_get_type(const us_interface *interface_, int32_t i);
// By "robot::Command", "robot/msg/Command" or "robot::msg::dds_::Command_"; NULL when unknown.
US_API const us_message_type *us_interface_find(const us_interface *interface_, const char *name);
// A constant or a label of an enumeration: by its full name, or by its last part where only one ends so. NaN
// when there is none, or it is a text.
US_API double us_interface_get_constant(const us_interface *interface_, const char *name);
// Whether the type has keys: its topics have an instance for each of their values.
US_API bool us_message_has_key(const us_message_type *type);

// A value of a member: a text where `text` is not NULL, else a number.
typedef struct us_member_value {
    const char *member;  // "header.stamp.sec", "points[2].x"
    double number;
    const char *text;
} us_member_value;

// A sample with these values and 0, "" or nothing elsewhere. A sequence is as long as the greatest index
// says; a union has the member that is named. US_ERR_NAME for a member that is not there or named twice,
// US_ERR_VALUE for a value of the wrong kind, US_ERR_LIMIT when buf is too small.
US_API us_status us_message_compose(const us_message_type *type, const us_member_value *values, int32_t n,
                                    void *buf, size_t cap, size_t *out_length, us_error *err);
// The text of a member into buf, ended by 0: US_ERR_NAME when there is none, US_ERR_LIMIT when it does not
// fit.
US_API us_status us_message_get_text(const us_message_type *type, const void *bytes, size_t length,
                                     const char *member, char *buf, size_t cap);

// ---- what a robot does with them ----
//
// Topics of a robot that have types of an interface (us_network_def.interface): what they are called, and how
// their members and the robot's values belong together. docs/interfaces.md has the values by name.

// What the samples of a topic are for.
typedef enum us_endpoint_use {
    US_ENDPOINT_PUBLISH,    // the robot's state, at a rate
    US_ENDPOINT_SUBSCRIBE,  // commands
    US_ENDPOINT_TAKEN,      // answers to a command of the topic `of`: that it was taken,
    US_ENDPOINT_REFUSED,    // refused,
    US_ENDPOINT_DONE,       // carried out to its end,
    US_ENDPOINT_CANCELED    // or given up for another one
} us_endpoint_use;

typedef struct us_endpoint_def {
    us_endpoint_use use;
    const char
        *topic;  // "odom" below the robot's namespace, "/odom" as it stands, "dds:odom" without ROS 2's "rt/"
    const char *type;  // of the interface
    double rate;       // Hz of those that are published; 0: once, for those that come later too
    bool is_reliable, is_latched;
    int32_t depth;          // samples that are kept; 0: all
    const char *partition;  // of DDS, names with commas between; NULL: the unnamed one
    int32_t of;             // of answers: whose
    int32_t line;           // where it was written
} us_endpoint_def;

typedef enum us_binding_use {
    US_BINDING_SET,   // a member of what is sent
    US_BINDING_WHEN,  // a condition of a command: the member is the text or number; with command -1 of all
                      // samples of its topic: others are not for this robot
    US_BINDING_GET    // a value of a command
} us_binding_use;

typedef struct us_binding {
    us_binding_use use;
    int32_t endpoint;
    int32_t command;     // of us_network_def.commands; -1: none
    const char *member;  // NULL: a constant of a command
    const char *value;   // the robot's value, or the command's; NULL: a constant
    const char *copy;    // of answers: the member of the command's sample that is sent back
    const char *text;    // a constant text; NULL: a number
    double number;
    const char *joints;  // of a value of joints, in the order of the array: names, "-name" with the other
                         // sign, "-" a gap; NULL: all of them
    const char *sensor;  // of readings; NULL: "imu"
    const char
        *axes;  // of vectors and rotations: which of the robot's axes the wire's are, "x -y -z"; NULL: x y z
    const char *order;     // of quaternions: "xyzw" (NULL) or "wxyz"
    double scale, offset;  // the wire has scale times the robot's value plus offset
    int32_t line;
} us_binding;

typedef struct us_interface_command {
    int32_t endpoint;
    const char *action;  // "velocity", "stop", "go", "drive", "turn", "joints", "none"
    int32_t line;
} us_interface_command;

#ifdef __cplusplus
}
#endif
#endif
