// The language of world commands (docs/world-commands.md): from a line of text to what it says, checked as
// far as that is possible without a world.
#ifndef USI_WIRE_WORLD_COMMAND_H
#define USI_WIRE_WORLD_COMMAND_H

#include "base/fault_syntax.h"

// USI_RESOURCE_MAX: of the robot that a command brings along as a text.
enum { USI_COMMAND_MAX = 4096, USI_NAME_MAX = 64, USI_RESOURCE_MAX = 128 * 1024 };

// X(code, name, usage)
#define USI_VERB_LIST(X)                                                                           \
    X(USI_VERB_PAUSE, "pause", "pause")                                                            \
    X(USI_VERB_RESUME, "resume", "resume")                                                         \
    X(USI_VERB_STEP, "step", "step [N]")                                                           \
    X(USI_VERB_RATE, "rate", "rate real, rate max, or rate X")                                     \
    X(USI_VERB_RESET, "reset", "reset, or reset keep")                                             \
    X(USI_VERB_SNAPSHOT, "snapshot", "snapshot NAME")                                              \
    X(USI_VERB_RESTORE, "restore", "restore NAME")                                                 \
    X(USI_VERB_FORGET, "forget", "forget NAME")                                                    \
    X(USI_VERB_RECORD, "record", "record NAME.mcap, or record off")                                \
    X(USI_VERB_AUTHORITY, "authority", "authority ROBOT hardware, proxy, mirror, shadow or stop")  \
    X(USI_VERB_PAIR, "pair", "pair A B KEY=VALUE ...")                                             \
    X(USI_VERB_SOIL, "soil", "soil MATERIAL KEY=VALUE ...")                                        \
    X(USI_VERB_REGION, "region", "region NAME MATERIAL")                                           \
    X(USI_VERB_ADD, "add",                                                                         \
      "add KIND NAME size=... at=X,Y,Z ..., for example add box crate size=1,1,1 at=0,0,2")        \
    X(USI_VERB_MOVE, "move", "move NAME X Y Z [R P Y]")                                            \
    X(USI_VERB_RAISE, "raise", "raise NAME H")                                                     \
    X(USI_VERB_LOWER, "lower", "lower NAME H")                                                     \
    X(USI_VERB_VELOCITY, "velocity", "velocity NAME VX VY VZ [WX WY WZ]")                          \
    X(USI_VERB_REMOVE, "remove", "remove NAME")                                                    \
    X(USI_VERB_CLEAR, "clear", "clear")                                                            \
    X(USI_VERB_HOME, "home", "home")                                                               \
    X(USI_VERB_JOINT, "joint", "joint NAME Q [V]")                                                 \
    X(USI_VERB_DRIVE, "drive", "drive NAME POSITION [VELOCITY]")                                   \
    X(USI_VERB_SENSOR, "sensor", "sensor ROBOT/NAME PARAMETER=VALUE ...")                          \
    X(USI_VERB_FAULT, "fault", "fault ROBOT motor:JOINT=dead, or another fault of docs/faults.md") \
    X(USI_VERB_ADOPT, "adopt", "adopt ROBOT odom=X,Y,YAW velocity=VX,VY,WZ want=VX,VY,WZ joint:NAME=Q,V ...")

typedef enum usi_verb {
#define USI_VERB_ENUM(code, name, usage) code,
    USI_VERB_LIST(USI_VERB_ENUM)
#undef USI_VERB_ENUM
        USI_VERB_COUNT
} usi_verb;

// From `pair` on a command changes the world; those before it are about time and files.
static inline bool usi_verb_is_world(usi_verb verb) { return verb >= USI_VERB_PAIR; }

// ---------------------------------------------------------------- add

typedef enum usi_object_kind {
    USI_OBJECT_BOX,
    USI_OBJECT_SPHERE,
    USI_OBJECT_CYLINDER,
    USI_OBJECT_CAPSULE,
    USI_OBJECT_CONE,
    USI_OBJECT_ELLIPSOID
} usi_object_kind;

typedef struct usi_object_def {
    usi_object_kind kind;
    double size[3];
    double position[3], rpy[3];  // m, rad, in the world
    double mass;                 // kg; NaN: by the density
    double density;              // kg/m^3
    double velocity[3];          // m/s
    const char *surface;         // NULL: not given
    const char *tags;            // words with blanks between them; NULL: not given
    float rgba[4];
    bool is_fixed;
} usi_object_def;

// Of `add robot NAME`: exactly one of file and xml. Its place is that of the object.
typedef struct usi_spawn_def {
    const char *file;        // "PATH" or "PATH#ROBOT"
    const char *xml;         // to the end of the line; points into the text that was parsed
    const char *namespace_;  // NULL: not given
    bool has_base;           // fixed=true or fixed=false was said: is_fixed of the object
} usi_spawn_def;

// ---------------------------------------------------------------- adopt

enum { USI_ADOPT_JOINTS = 56 };  // with all other words they are the 64 that a command may have

enum {
    USI_ADOPT_ODOM = 1,
    USI_ADOPT_ORIGIN = 2,
    USI_ADOPT_VELOCITY = 4,
    USI_ADOPT_WANT = 8,
    USI_ADOPT_BATTERY = 16,
    USI_ADOPT_STAMP = 32,
};

typedef struct usi_adopt_joint {
    const char *name;  // without the robot's
    double q, v;
    bool has_v;
} usi_adopt_joint;

typedef struct usi_adopt {
    uint32_t has;      // USI_ADOPT_...
    double odom[3];    // m, m, rad: the base in the odometry's frame
    double origin[3];  // m, m, rad: the odometry's frame in the world; else that of the robot's start in the
                       // scene
    double velocity[3];   // m/s, m/s, rad/s: of the base in its own axes; else at rest
    double want[3], age;  // the velocity last commanded, and how long ago, s
    double battery;       // share of the charge, 0 .. 1
    int64_t stamp;        // ns: what the robot's clock shows now
    int32_t n_joint;
    usi_adopt_joint joint[USI_ADOPT_JOINTS];
} usi_adopt;

// ---------------------------------------------------------------- pair and soil

// Numbers of a pair of materials by the names that a scene's <pair> has. X(field of us_pair_values, key, low,
// high)
#define USI_PAIR_KEY_LIST(X)                         \
    X(static_friction, "static-friction", 0, 1e3)    \
    X(kinetic_friction, "kinetic-friction", 0, 1e3)  \
    X(viscous, "viscous", 0, 1e9)                    \
    X(normal_static, "normal-static", 0, 1e3)        \
    X(rotational, "rotational", 0, 1e3)              \
    X(assumed_mass, "assumed-mass", 1e-9, 1e9)       \
    X(restitution, "restitution", 0, 1)              \
    X(reference_speed, "reference-speed", 1e-9, 1e6) \
    X(stiffness, "stiffness", 0, 1e12)               \
    X(damping_ratio, "damping-ratio", 0, 1e3)        \
    X(torsion_radius, "torsion-radius", 0, 1e3)      \
    X(rolling_length, "rolling-length", 0, 1e3)      \
    X(transition_speed, "transition-speed", 0, 1e3)
// Numbers of a soil by the names that a scene's <soil> has; their ranges are those of US_SOIL_LIST.
#define USI_SOIL_KEY_LIST(X) \
    X(kc)                    \
    X(kphi)                  \
    X(n)                     \
    X(cohesion)              \
    X(friction_angle)        \
    X(shear_x)               \
    X(shear_x_angle)         \
    X(shear_y)               \
    X(shear_y_angle)         \
    X(density)               \
    X(peak_angle)            \
    X(peak_angle_slip)       \
    X(exit_ratio)            \
    X(unload)                \
    X(unload_depth)          \
    X(repose_angle) X(critical_angle) X(compaction) X(shear_radius) X(slip_sinkage) X(max_curvature)
enum {
#define USI_COUNT_PAIR(field, key, low, high) +1
    USI_PAIR_KEYS = 0 USI_PAIR_KEY_LIST(USI_COUNT_PAIR),
#undef USI_COUNT_PAIR
#define USI_COUNT_SOIL(field) +1
    USI_SOIL_KEYS = 0 USI_SOIL_KEY_LIST(USI_COUNT_SOIL)
#undef USI_COUNT_SOIL
};
const char *usi_pair_key_name(int32_t key);  // NULL beyond the last
const char *usi_soil_key_name(int32_t key);

typedef struct usi_key_value {
    int32_t field;  // which key of the list
    double value;
} usi_key_value;

// ---------------------------------------------------------------- sensor

enum { USI_SENSOR_SETTINGS = 16 };  // of one command
typedef struct usi_word_pair {
    const char *key, *value;
} usi_word_pair;

// ---------------------------------------------------------------- all

typedef struct usi_command {
    usi_verb verb;
    // What is to act between the materials of `pair`; NULL: what acts already.
    const char *model;
    // NAME; of `pair` A and B; of `region` its name and a material; of `fault` ROBOT and JOINT ("": none); of
    // `adopt` ROBOT; of `reset` "keep" or NULL; of `authority` ROBOT and MODE; of `record` the file, NULL for
    // off
    const char *name, *other;
    int32_t n_number;
    double number[6];  // in the order of the command; of `rate`: real is 1, max is 0; of `fault`: those of
                       // usi_fault_words
    usi_fault_component part;  // that `fault` is about
    usi_fault fault;
    const char *reading;  // that `fault` is about; "": none
    int32_t n_setting;    // of `sensor`, whose NAME is ROBOT/NAME
    usi_word_pair setting[USI_SENSOR_SETTINGS];
    usi_object_def object;
    bool is_robot;  // of `add`
    usi_spawn_def spawn;
    usi_adopt adopt;  // its names point into `text`
    int32_t n_value;
    usi_key_value value[2 * USI_PAIR_KEYS];
    char text[USI_COMMAND_MAX + 1];  // cut into words; names point here
} usi_command;

// Where the text of a robot begins in `add robot NAME ... xml=...`; NULL: the line has none.
const char *usi_command_find_resource(const char *text);
// Errors name what is wrong and what to write instead: US_ERR_LIMIT for a line that is too long,
// US_ERR_SYNTAX for one that cannot be read, US_ERR_NAME for an unknown command, kind or key, US_ERR_VALUE
// for numbers that are none or out of range. A text `xml=` of `add robot` is not copied.
us_status usi_command_parse(const char *text, usi_command *out, us_error *err);

#endif
