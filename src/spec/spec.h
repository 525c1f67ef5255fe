// The spec's lists. The public functions copy in and lend out; the compiler and the readers look here.
#ifndef USI_SPEC_SPEC_H
#define USI_SPEC_SPEC_H

#include "base/memory.h"
#include "understudy/ground_model.h"
#include "understudy/interaction.h"
#include "understudy/network.h"
#include "understudy/sensor.h"
#include "understudy/soil_law.h"
#include "understudy/spec.h"

// X(type, list): each list is a growing array `list` with n_list elements and room for cap_list.
#define USI_SPEC_LISTS(X)          \
    X(us_group_def, group)         \
    X(us_link_def, link)           \
    X(us_joint_def, joint)         \
    X(us_shape_def, shape)         \
    X(us_coupling_def, coupling)   \
    X(us_loop_def, loop)           \
    X(us_drive_def, drive)         \
    X(us_record_def, record)       \
    X(us_extension_def, extension) \
    X(us_material_def, material)   \
    X(us_region_def, region)       \
    X(us_soil_map_def, soil_map)   \
    X(us_pair_def, pair)           \
    X(us_exclude_def, exclude)     \
    X(us_error, warning)

// How a file was read, for robots that are added later. All texts are the spec's.
typedef struct usi_origin {
    const char *path;  // NULL: the spec was built by calls
    bool excludes_overlaps;
    int32_t n_parameter, n_search;
    const char **parameters, **search;
} usi_origin;

struct us_spec {
    usi_arena texts;
    usi_origin origin;
    us_world_settings world;
#define SPEC_LIST(type, list) \
    type *list;               \
    int32_t n_##list, cap_##list;
    USI_SPEC_LISTS(SPEC_LIST)
    SPEC_LIST(us_interaction, interaction)  // models of contact that were registered; their names are copies
    SPEC_LIST(us_soil_law, soil_law)        // the same of soil
    SPEC_LIST(us_ground_model, ground_model)        // and of deformable ground
    SPEC_LIST(const us_sensor_kind *, sensor_kind)  // kinds of sensors; the library's own are elsewhere
    SPEC_LIST(us_network_def, network)              // at most one for each group
#undef SPEC_LIST
    double clock_rate;  // Hz
};

// A copy of properties and all their texts in an arena. False without memory.
bool usi_properties_keep(usi_arena *arena, const us_property **properties, int32_t n);

// Keep copies of all texts. US_ERR_MEMORY.
us_status usi_spec_set_tags(us_spec *spec, int32_t group, const char *tags);
us_status usi_spec_set_origin(us_spec *spec, const usi_origin *origin);

// ---- network.c ----

enum {
    USI_NETWORK_NAME_LIMIT = 100,  // bytes of a namespace, a node's name and a prefix of frames
    USI_OUTAGE_LIMIT = 32,         // outages of one direction of a link
    USI_SCRIPT_LIMIT = 64,         // faults that a scene has in store for one robot
    USI_COMMAND_SOURCES = 8,       // sources of commands that are written for a robot
    USI_COMMAND_SOURCE_NAME = 20,  // bytes of a source's name
};

bool usi_is_ros_name(const char *text, bool allows_slash);
// The nearest name that usi_is_ros_name allows; "" of "".
void usi_ros_name_make(const char *text, char *out, size_t cap);
bool usi_is_frame_prefix(const char *text);
bool usi_is_motor_name(const char *text);
// Legs of a tripod gait.
enum { USI_LEG_COUNT = 6 };
// Whether a robot with so many wheels, n_steer of them steered, can move in this way (not
// US_LOCOMOTION_NONE).
bool usi_wheels_fit(us_locomotion kind, int32_t n_wheel, int32_t n_steer);
// A script's fault by name among the first n; -1: there is none.
int32_t usi_script_find(const us_fault_def *faults, int32_t n, const char *name);
// Whether source i, the ones before it being good, is one. *out_why may be NULL.
us_status usi_check_command_source(const us_network_def *d, int32_t i, const char **out_why);
// The link of a group that hangs on no other link of it, or -1.
int32_t usi_group_root(const us_spec *spec, int32_t group);
// us_spec_set_network. *out_topic is set, with the reason, when all is well but one of the topics. Both may
// be NULL.
us_status usi_network_set(us_spec *spec, const us_network_def *def, int32_t *out_topic, us_error *err);
// Copies a definition that was checked before.
us_status usi_network_put(us_spec *spec, const us_network_def *def);
// With its texts and arrays; NULL without memory.
us_network_def *usi_network_copy(usi_arena *arena, const us_network_def *def);

#endif
