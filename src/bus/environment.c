// Environment variables of a ROS 2 program that select its network.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus.h"

enum { MAX_DOMAIN = 232 };

us_bus_def us_bus_def_default(void) {
    return (us_bus_def){.allocator = us_allocator_default(),
                        .vendor = "cyclone",
                        .domain = 0,
                        .range = US_BUS_LOCALHOST,
                        .enclave = "/"};
}

// An empty variable counts as absent, as in ROS.
static const char *get(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static us_status refuse(us_error *err, const char *name, const char *value, const char *remedy) {
    us_place place = {.element = name};
    return us_error_set(err, US_ERR_VALUE, &place, remedy,
                        "the environment variable %s has the value \"%.100s\"", name, value);
}

static us_status read_domain(us_bus_def *def, us_error *err) {
    const char *value = get("ROS_DOMAIN_ID");
    if (!value) return US_OK;
    char *end = NULL;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || *end || number < 0 || number > MAX_DOMAIN)
        return refuse(err, "ROS_DOMAIN_ID", value, "Set it to a number from 0 to 232, or unset it.");
    def->domain = (int32_t)number;
    return US_OK;
}

static us_status read_range(us_bus_def *def, us_error *err) {
    static const struct {
        const char *name;
        us_bus_range range;
    } known[] = {
        {"LOCALHOST", US_BUS_LOCALHOST},
        {"SUBNET", US_BUS_SUBNET},
        {"OFF", US_BUS_OFF},
        {"SYSTEM_DEFAULT", US_BUS_SYSTEM_DEFAULT},
    };
    const char *value = get("ROS_AUTOMATIC_DISCOVERY_RANGE");
    if (!value) return US_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!strcmp(value, known[i].name)) {
            def->range = known[i].range;
            return US_OK;
        }
    }
    return refuse(err, "ROS_AUTOMATIC_DISCOVERY_RANGE", value,
                  "Set it to LOCALHOST, SUBNET, OFF or SYSTEM_DEFAULT, or unset it.");
}

static us_status read_vendor(us_bus_def *def, us_error *err) {
    static const struct {
        const char *name, *vendor;
    } known[] = {
        {"rmw_cyclonedds_cpp", "cyclone"},
        {"rmw_fastrtps_cpp", "fastdds"},
        {"rmw_fastrtps_dynamic_cpp", "fastdds"},
    };
    const char *value = get("RMW_IMPLEMENTATION");
    if (!value) return US_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!strcmp(value, known[i].name)) {
            def->vendor = known[i].vendor;
            return US_OK;
        }
    }
    return refuse(err, "RMW_IMPLEMENTATION", value,
                  "Set it to rmw_cyclonedds_cpp or rmw_fastrtps_cpp, or unset it: others do not use DDS.");
}

// Before Iron the ids in ros_discovery_info were longer.
static void read_release(us_bus_def *def) {
    static const char *const old[] = {"foxy", "galactic", "humble"};
    const char *value = get("ROS_DISTRO");
    for (size_t i = 0; value && i < sizeof old / sizeof old[0]; i++) {
        if (strcmp(value, old[i]) == 0) def->use_humble_gid = true;
    }
}

static us_status read_localhost(us_bus_def *def, us_error *err) {
    const char *value = get("ROS_LOCALHOST_ONLY");
    if (!value || !strcmp(value, "0")) return US_OK;
    if (strcmp(value, "1") != 0)
        return refuse(err, "ROS_LOCALHOST_ONLY", value, "Set it to 0 or 1, or unset it.");
    def->range = US_BUS_LOOPBACK;
    return US_OK;
}

// ROS 2 looks at peers in the ranges LOCALHOST and SUBNET alone.
static void drop_peers(us_bus_def *def) {
    if (def->range == US_BUS_LOCALHOST || def->range == US_BUS_SUBNET) return;
    def->n_peer = 0;
    def->peers = NULL;
}

// Addresses separated by ";". The room gets an array of pointers and behind it the addresses.
static us_status read_peers(us_bus_def *def, usi_text_room *room, us_error *err) {
    char *text = room->at;
    const size_t cap = room->left;
    const char *value = get("ROS_STATIC_PEERS");
    if (!value) return US_OK;
    size_t n = 0;
    for (const char *at = value; *at;) {
        size_t length = strcspn(at, ";");
        if (length) n++;
        at += length + (at[length] ? 1 : 0);
    }
    if (!n) return US_OK;
    size_t skip =
        (_Alignof(const char *) - (uintptr_t)text % _Alignof(const char *)) % _Alignof(const char *);
    size_t n_pointer = n * sizeof(const char *);
    if (!text || cap < skip + n_pointer + strlen(value) + 1) {
        return us_error_set(err, US_ERR_LIMIT, &(us_place){.element = "ROS_STATIC_PEERS"},
                            "List fewer peers.",
                            "the environment variable ROS_STATIC_PEERS lists more than there is room for");
    }
    const char **peers = (const char **)(void *)(text + skip);
    char *to = text + skip + n_pointer;
    int32_t n_peer = 0;
    for (const char *at = value; *at;) {
        size_t length = strcspn(at, ";");
        if (length) {
            memcpy(to, at, length);
            to[length] = 0;
            peers[n_peer++] = to;
            to += length + 1;
        }
        at += length + (at[length] ? 1 : 0);
    }
    def->peers = peers;
    def->n_peer = n_peer;
    room->left -= (size_t)(to - text);
    room->at = to;
    return US_OK;
}

us_status us_bus_def_from_environment(us_bus_def *def, char *text, size_t cap, us_error *err) {
    if (!def) return us_error_set(err, US_ERR_ARG, NULL, NULL, "no definition to fill");
    us_bus_def read = *def;  // taken over only when all is well
    usi_text_room room = {.left = text ? cap : 0};
    room.at = text;
    us_status status = read_domain(&read, err);
    if (!status) status = read_range(&read, err);
    if (!status) status = read_peers(&read, &room, err);
    if (!status) status = read_localhost(&read, err);
    if (!status) status = read_vendor(&read, err);
    if (!status) status = usi_security_read(&read, &room, err);
    read_release(&read);
    drop_peers(&read);
    if (!status) *def = read;
    return status;
}
