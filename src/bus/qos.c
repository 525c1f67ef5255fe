// Qualities of service by ROS convention.
#include <string.h>

#include "bus/bus.h"

us_qos us_qos_for_topic(const char *topic, const us_message_type *type) {
    static const struct {
        const char *name;
        us_qos qos;
    } known[] = {
        {"tf", {.is_reliable = true, .depth = 100}},
        {"tf_static", {.is_reliable = true, .is_transient_local = true, .depth = 1}},
        {"robot_description", {.is_reliable = true, .is_transient_local = true, .depth = 1}},
        {"clock", {.is_reliable = true, .depth = 1}},
        // A large world takes several messages, each of a part of it.
        {"/understudy/scene/still", {.is_reliable = true, .is_transient_local = true, .depth = 100}},
        {"/understudy/scene/ground", {.is_reliable = true, .is_transient_local = true, .depth = 1}},
    };
    const char *last = topic ? strrchr(topic, '/') : NULL;
    last = last ? last + 1 : topic ? topic : "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!strcmp(known[i].name[0] == '/' && topic ? topic : last, known[i].name)) return known[i].qos;
    }
    // Frames of sensors are large and soon replaced: as their drivers do, they are sent once.
    const char *name = type ? us_message_name(type) : "";
    if (!strcmp(name, "sensor_msgs/msg/PointCloud2") || !strcmp(name, "sensor_msgs/msg/LaserScan"))
        return us_qos_sensor();
    // Requests and replies of all clients share a topic, and a robot answers many in one tick: what one has
    // not got yet must not make room for the next one's.
    bool is_service = topic && (!strncmp(topic, "rq/", 3) || !strncmp(topic, "rr/", 3));
    return (us_qos){.is_reliable = true, .depth = is_service ? 100 : 10};
}

us_qos us_qos_sensor(void) { return (us_qos){.depth = 5}; }
