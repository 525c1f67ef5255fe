// The language of world commands (docs/world-commands.md): from a line of text to what it says, checked as
// far as that is possible without a world.
#ifndef USI_WORLD_COMMAND_H
#define USI_WORLD_COMMAND_H

#include "proxy/adopt.h"
#include "spec/fault.h"
#include "understudy/spec.h"

enum { USI_COMMAND_MAX = 4096, USI_NAME_MAX = 64, USI_PAIR_FIELDS = 12 };

// X(code, name, usage)
#define USI_VERB_LIST(X)                                                                           \
    X(USI_VERB_PAUSE, "pause", "pause")                                                            \
    X(USI_VERB_RESUME, "resume", "resume")                                                         \
    X(USI_VERB_STEP, "step", "step [N]")                                                           \
    X(USI_VERB_RATE, "rate", "rate real, rate max, or rate X")                                     \
    X(USI_VERB_RESET, "reset", "reset")                                                            \
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
    X(USI_VERB_REMOVE, "remove", "remove NAME")                                                    \
    X(USI_VERB_JOINT, "joint", "joint NAME Q [V]")                                                 \
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

// What `add` says.
typedef struct usi_object_def {
    us_shape_kind kind;
    double size[3];
    us_pose X_WB;
    double mass;     // kg; NaN: by the density
    double density;  // kg/m^3
    us_vec3 velocity;
    const char *surface;  // NULL: not said
    float rgba[4];
    bool is_fixed;
} usi_object_def;

// One number of a pair of materials.
typedef struct usi_pair_value {
    int32_t field;
    double value;
} usi_pair_value;

typedef struct usi_command {
    usi_verb verb;
    // NAME; of `pair` A and B; of `region` its name and a material; of `fault` ROBOT and JOINT ("": none); of
    // `adopt` ROBOT; of `authority` ROBOT and MODE; of `record` the file, NULL for off
    const char *name, *other;
    int32_t n_number;
    double number[6];  // in the order of the command; of `rate`: real is 1, max is 0; of `fault`: those of
                       // usi_fault_words
    usi_fault_component part;  // that `fault` is about
    usi_fault fault;
    usi_object_def object;
    usi_adopt adopt;  // its names point into `text`
    int32_t n_value;
    usi_pair_value value[2 * USI_PAIR_FIELDS];
    char text[USI_COMMAND_MAX + 1];  // cut into words; names point here
} usi_command;

// Errors name what is wrong and what to write instead: US_ERR_LIMIT for a line that is too long,
// US_ERR_SYNTAX for one that cannot be read, US_ERR_NAME for an unknown command, kind or key, US_ERR_VALUE
// for numbers that are none or out of range.
us_status usi_command_parse(const char *text, usi_command *out, us_error *err);

// The numbers of a soil by the names that a scene's <soil> has.
enum { USI_SOIL_FIELDS = 18 };
const char *usi_soil_field_name(int32_t field);  // NULL beyond the last
double *usi_soil_field(us_soil *soil, int32_t field);

// The numbers of a pair by the names that a scene's <pair> has.
const char *usi_pair_field_name(int32_t field);  // NULL beyond the last
double *usi_pair_field(us_pair_values *values, int32_t field);

// For texts that are shown or sent: a copy that fits, with what is no UTF-8 or a control character replaced
// by "?".
void usi_text_clean(const char *text, char *out, size_t cap);

#endif
