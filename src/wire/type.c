// Which messages there are, and what they are called.
#include "wire/type.h"

#include <stdio.h>
#include <string.h>

#include "understudy/interface.h"

int32_t us_message_n_type(void) { return usi_message_n_type; }

const us_message_type *us_message_get_type(int32_t i) {
    return i >= 0 && i < usi_message_n_type ? &usi_message_types[i] : NULL;
}

// "geometry_msgs::msg::dds_::Twist_" as "geometry_msgs/msg/Twist", and parts of services and actions, which
// stand in srv and action. False when it has another form or is too long to be one of ours.
bool usi_ros_type_name(const char *dds_name, char *out, size_t cap) {
    static const char *const folders[] = {"msg", "srv", "action"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char text[24];
        int n_text = snprintf(text, sizeof text, "::%s::dds_::", folders[i]);
        const char *middle = strstr(dds_name, text);
        if (!middle) continue;
        const char *name = middle + n_text;
        size_t n_name = strlen(name);
        if (n_name < 2 || name[n_name - 1] != '_' || n_name + (size_t)(middle - dds_name) + 10 > cap)
            return false;
        snprintf(out, cap, "%.*s/%s/%.*s", (int)(middle - dds_name), dds_name, folders[i], (int)(n_name - 1),
                 name);
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
