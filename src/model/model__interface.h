// What the parts of compiling an <interface> share.
#ifndef USI_MODEL__INTERFACE_H
#define USI_MODEL__INTERFACE_H

#include "model/compile.h"
#include "model/robots.h"

enum { USI_LINK_ROWS = USI_BINDING_LIMIT * 4, USI_LINK_JOINTS = 256 };

typedef struct usi_linker {
    const us_model *m;
    usi_arena *arena;
    const usi_robot_model *r;
    us_error *err;
    char element[128];
    // The rows of the topic at hand.
    usi_member member[USI_LINK_ROWS];
    union {
        usi_value value[USI_LINK_ROWS];
        usi_take take[USI_LINK_ROWS];
    };
    int32_t n;
    int32_t lidar;        // whose frames its lists are of; -1: it has no lists
    uint32_t most_point;  // that a sample holds
} usi_linker;

typedef struct usi_joint_list {
    int32_t n;
    int32_t joint[USI_LINK_JOINTS];  // of the robot; -1: a gap
    double sign[USI_LINK_JOINTS];
} usi_joint_list;

#define USI_LINK_TAKE(arena, n, type) \
    ((type *)usi_arena_alloc(arena, ((size_t)(n) + 1) * sizeof(type), _Alignof(type)))

us_status usi_link_fail(usi_linker *k, const us_binding *b, us_status status, const char *remedy,
                        const char *format, ...) US_PRINTF(5, 6);
us_status usi_link_joints(usi_linker *k, const us_binding *b, bool needs_drive, usi_joint_list *out);
// Makes sure that there is room for one row more, and notes its member.
us_status usi_link_row(usi_linker *k, const us_binding *b, const usi_member *m);
us_status usi_link_check_kind(usi_linker *k, const us_binding *b, const usi_member *m, bool is_text);
us_status usi_link_member(usi_linker *k, const us_binding *b, const us_message_type *type, int64_t open,
                          usi_member *out);
// The member of element `i` of a list: "motor[].q", or element i of an array or sequence.
us_status usi_link_element(usi_linker *k, const us_binding *b, const us_message_type *type, int32_t i,
                           usi_member *out);
// The type and the full name of a topic.
us_status usi_link_type(usi_linker *k, const us_endpoint_def *e, const us_message_type **out,
                        const char **out_topic);
// In the order of the wire, none twice.
us_status usi_link_sort(usi_linker *k, const us_message_type *type, const us_endpoint_def *e, int32_t n,
                        bool is_take);
us_status usi_link_keep(usi_linker *k, int32_t n_member, const usi_member **out_member, size_t each,
                        const void *rows, const void **out_rows);

// compile_interface_command.c: a topic that takes commands.
us_status usi_link_inlet(usi_linker *k, int32_t i, usi_inlet *out);

#endif
