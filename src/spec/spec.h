// The spec's lists. The public functions copy in and lend out; the compiler and the readers look here.
#ifndef USI_SPEC_SPEC_H
#define USI_SPEC_SPEC_H

#include "base/memory.h"
#include "understudy/interaction.h"
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
    X(us_pair_def, pair)           \
    X(us_exclude_def, exclude)     \
    X(us_error, warning)

struct us_spec {
    usi_arena texts;
    us_world_def world;
#define SPEC_LIST(type, list) \
    type *list;               \
    int32_t n_##list, cap_##list;
    USI_SPEC_LISTS(SPEC_LIST)
    SPEC_LIST(us_interaction, interaction)  // models of contact that were registered; their names are copies
#undef SPEC_LIST
};

// A copy of properties and all their texts in an arena. False without memory.
bool usi_properties_keep(usi_arena *arena, const us_property **properties, int32_t n);

#endif
