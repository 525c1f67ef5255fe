// Which messages there are, and what they are called.
#include "wire/type.h"

#include <stdio.h>
#include <string.h>

#include "understudy/interface.h"

int32_t us_message_n_type(void) { return usi_message_n_type; }

const us_message_type *us_message_get_type(int32_t i) {
    return i >= 0 && i < usi_message_n_type ? &usi_message_types[i] : NULL;
}

// "geometry_msgs::msg::dds_::Twist_" as "geometry_msgs/msg/Twist", halves of services, which stand in srv,
// and parts of actions. False when it has another form or is too long to be one of ours.
bool usi_ros_type_name(const char *dds_name, char *out, size_t cap) {
    static const char *const middles[] = {"::msg::dds_::", "::srv::dds_::", "::action::dds_::"};
    for (size_t i = 0; i < sizeof middles / sizeof middles[0]; i++) {
        const char *middle = strstr(dds_name, middles[i]);
        if (!middle) continue;
        const char *name = middle + strlen(middles[i]);
        const size_t n_name = strlen(name), n_kind = strlen(middles[i]) - strlen("::::dds_::");
        if (n_name < 2 || name[n_name - 1] != '_' || n_name + (size_t)(middle - dds_name) + n_kind + 2 > cap)
            return false;
        snprintf(out, cap, "%.*s/%.*s/%.*s", (int)(middle - dds_name), dds_name, (int)n_kind, middle + 2,
                 (int)(n_name - 1), name);
        return true;
    }
    return false;
}

const us_message_type *us_message_find(const char *name) {
    char ros_name[256];
    if (!name) return NULL;
    if (strchr(name, ':')) {
        if (!usi_ros_type_name(name, ros_name, sizeof ros_name)) return NULL;
        name = ros_name;
    }
    // The table is sorted by name.
    int32_t low = 0, high = usi_message_n_type;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        int order = strcmp(name, usi_message_types[middle].name);
        if (order == 0) return &usi_message_types[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *us_message_name(const us_message_type *type) { return type ? type->name : ""; }
const char *us_message_dds_name(const us_message_type *type) { return type ? type->dds_name : ""; }
const char *us_message_hash(const us_message_type *type) { return type ? type->hash : ""; }
const char *us_message_schema(const us_message_type *type) { return type ? type->schema : ""; }
size_t us_message_size(const us_message_type *type) { return type ? type->size : 0; }
bool us_message_has_key(const us_message_type *type) { return type && type->has_key; }
