// The doctor looks at this computer: environment, interfaces, buffers, ports.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

// ---- environment ----

static void add_variable(cli_doctor *d, const char *name, const char *verdict) {
    const char *value = getenv(name);
    if (value && !value[0]) value = NULL;
    if (d->n_variable == CLI_DOCTOR_MAX) return;
    d->variables[d->n_variable++] = (cli_variable){
        .name = name, .value = value ? strdup(value) : NULL, .verdict = value ? verdict : "not set"};
}

static void mark_bad(cli_doctor *d, const char *name) {
    for (int32_t i = 0; i < d->n_variable; i++) {
        if (strcmp(d->variables[i].name, name) == 0) d->variables[i].verdict = "bad";
    }
}

// A file that Cyclone shall read: "file:///path", or the bare path; what begins with < is the text itself.
// Several have commas between.
static void check_cyclone_uri(cli_doctor *d) {
    const char *uri = getenv("CYCLONEDDS_URI");
    if (!uri || !uri[0]) return;
    char copy[2048];
    snprintf(copy, sizeof copy, "%s", uri);
    if (strchr(copy, '<')) return;
    for (char *rest = copy, *part; (part = strsep(&rest, ",")) != NULL;) {
        part += strspn(part, " ");
        const char *path = strncmp(part, "file://", 7) == 0 ? part + 7 : part;
        if (!path[0] || access(path, R_OK) == 0) continue;
        mark_bad(d, "CYCLONEDDS_URI");
        cli_doctor_add(d, CLI_WRONG, "CYCLONEDDS_URI", "name a file that is there, or unset the variable",
                       "it names \"%.200s\", which cannot be read", path);
    }
}

void cli_doctor_environment(cli_doctor *d) {
    static const char *const ours[] = {"ROS_DOMAIN_ID",
                                       "ROS_AUTOMATIC_DISCOVERY_RANGE",
                                       "ROS_STATIC_PEERS",
                                       "ROS_LOCALHOST_ONLY",
                                       "RMW_IMPLEMENTATION",
                                       "ROS_SECURITY_ENABLE",
                                       "ROS_SECURITY_STRATEGY",
                                       "ROS_SECURITY_KEYSTORE",
                                       "ROS_SECURITY_ENCLAVE_OVERRIDE"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        add_variable(d, ours[i], "good");
    add_variable(d, "CYCLONEDDS_URI", "read by Cyclone DDS after all others");
    add_variable(d, "ROS_DISCOVERY_SERVER", "read by Fast DDS alone");
    add_variable(d, "FASTRTPS_DEFAULT_PROFILES_FILE", "read by Fast DDS alone");
    add_variable(d, "FASTDDS_BUILTIN_TRANSPORTS", "read by Fast DDS alone");

    // Each bad variable is reported; then it is ignored, so that the next one shows.
    for (size_t i = 0; i <= sizeof ours / sizeof ours[0]; i++) {
        us_error err = {0};
        d->def = us_bus_def_default();
        if (!us_bus_def_from_environment(&d->def, d->def_text, sizeof d->def_text, &err)) break;
        cli_doctor_add(d, CLI_WRONG, err.element[0] ? err.element : "environment", err.remedy, "%s",
                       err.message);
        mark_bad(d, err.element);
        if (!err.element[0] || unsetenv(err.element)) break;
    }
    check_cyclone_uri(d);
    if (d->def.notice)
        cli_doctor_add(d, CLI_WARNING, "ROS_SECURITY_ENABLE", "make keys with understudy keys, or unset it",
                       "%s", d->def.notice);
    if (d->def.range == US_BUS_OFF)
        cli_doctor_add(d, CLI_WARNING, "ROS_AUTOMATIC_DISCOVERY_RANGE",
                       "set it to LOCALHOST or SUBNET, or unset it", "it is OFF: nobody is looked for");
    const char *server = getenv("ROS_DISCOVERY_SERVER");
    if (server && server[0])
        cli_doctor_add(d, CLI_WARNING, "ROS_DISCOVERY_SERVER",
                       "unset it for all programs, or use ROS_STATIC_PEERS",
                       "programs on Fast DDS find each other by a server, and are not found without it");
    const char *only = getenv("ROS_LOCALHOST_ONLY"), *range = getenv("ROS_AUTOMATIC_DISCOVERY_RANGE");
    if (only && strcmp(only, "1") == 0 && range && range[0] && strcmp(range, "LOCALHOST") != 0)
        cli_doctor_add(d, CLI_WARNING, "ROS_LOCALHOST_ONLY",
                       "unset it, and say it with ROS_AUTOMATIC_DISCOVERY_RANGE alone",
                       "it is 1, which counts more than ROS_AUTOMATIC_DISCOVERY_RANGE=%.60s", range);
    if (d->def.range == US_BUS_LOCALHOST && !(range && range[0]))
        cli_doctor_add(d, CLI_NOTE, "discovery",
                       "set ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET to reach other computers",
                       "only this computer is looked at, through the loopback, which is the default");
}

// ---- interfaces ----

static void keep_interface(cli_doctor *d, const struct ifaddrs *at) {
    char address[INET6_ADDRSTRLEN] = "";
    if (d->n_interface == CLI_DOCTOR_MAX || !at->ifa_addr) return;
    if (at->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, at->ifa_addr, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, address, sizeof address);
    } else {
        return;  // Cyclone and Fast DDS use IPv4 by default
    }
    cli_interface *to = &d->interfaces[d->n_interface++];
    snprintf(to->name, sizeof to->name, "%s", at->ifa_name);
    snprintf(to->address, sizeof to->address, "%s", address);
    to->is_up = (at->ifa_flags & IFF_UP) && (at->ifa_flags & IFF_RUNNING);
    to->is_loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
    to->has_multicast = (at->ifa_flags & IFF_MULTICAST) != 0;
}

void cli_doctor_interfaces(cli_doctor *d) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list)) {
        cli_doctor_add(d, CLI_WRONG, "interfaces", NULL, "the network interfaces cannot be listed");
        return;
    }
    for (const struct ifaddrs *at = list; at; at = at->ifa_next)
        keep_interface(d, at);
    freeifaddrs(list);
    bool has_loopback = false, has_network = false, has_multicast = false, is_quiet_loopback = false;
    for (int32_t i = 0; i < d->n_interface; i++) {
        const cli_interface *f = &d->interfaces[i];
        if (f->is_up && f->is_loopback) {
            has_loopback = true;
            is_quiet_loopback = !f->has_multicast;
        }
        if (f->is_up && !f->is_loopback) {
            has_network = true;
            has_multicast = has_multicast || f->has_multicast;
        }
    }
    if (!has_loopback)
        cli_doctor_add(d, CLI_WRONG, "lo", "bring it up: sudo ip link set lo up",
                       "the loopback interface is down: programs here cannot reach each other");
    if (d->def.range == US_BUS_SUBNET && !has_network)
        cli_doctor_add(d, CLI_WRONG, "interfaces",
                       "connect a network, or set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST",
                       "other computers are looked for, but no network interface with an IPv4 address is up");
    if (d->def.range == US_BUS_SUBNET && has_network && !has_multicast)
        cli_doctor_add(
            d, CLI_WRONG, "interfaces",
            "switch it on (sudo ip link set DEVICE multicast on), or list the others in ROS_STATIC_PEERS",
            "no network interface can do multicast, by which others are found");
    if (d->def.range == US_BUS_LOCALHOST && is_quiet_loopback)
        cli_doctor_add(
            d, CLI_NOTE, "lo",
            "if a program of yours looks for multicast on the loopback: sudo ip link set lo multicast on",
            "the loopback has no multicast: programs that need it there do not find each other; understudy "
            "does without");
}

// ---- socket buffers ----

static int64_t read_number(const char *path) {
    FILE *file = fopen(path, "r");
    long long x = -1;
    if (!file) return -1;
    if (fscanf(file, "%lld", &x) != 1) x = -1;
    fclose(file);
    return x;
}

void cli_doctor_buffers(cli_doctor *d) {
    // A camera image or a point cloud of this size arrives as one burst of packets.
    const int64_t enough = 2097152;
    d->rmem_max = read_number("/proc/sys/net/core/rmem_max");
    d->wmem_max = read_number("/proc/sys/net/core/wmem_max");
    if (d->rmem_max >= 0 && d->rmem_max < enough)
        cli_doctor_add(d, CLI_NOTE, "net.core.rmem_max",
                       "for images and point clouds: sudo sysctl -w net.core.rmem_max=10485760",
                       "a socket can hold back %" PRId64
                       " bytes at most: large messages may lose packets and be sent again",
                       d->rmem_max);
}

// ---- ports ----
// RTPS counts them: 7400 + 250 domain + 0 and 1 for multicast, + 10 + 2 p and + 11 + 2 p for participant p.

enum { BASE_PORT = 7400, PER_DOMAIN = 250, FIRST_UNICAST = 10 };

static int compare_ports(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static void read_ports(cli_doctor *d, const char *path, int32_t first, int32_t last) {
    FILE *file = fopen(path, "r");
    char line[512];
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        // "  12: 0100007F:1CE8 00000000:0000 ..."
        const char *colon = strchr(line, ':');
        const char *second = colon ? strchr(colon + 1, ':') : NULL;
        if (!second) continue;
        int32_t port = (int32_t)strtol(second + 1, NULL, 16);
        bool is_known = port < first || port > last || d->n_port == CLI_DOCTOR_MAX;
        for (int32_t i = 0; i < d->n_port && !is_known; i++)
            is_known = d->ports[i] == port;
        if (!is_known) d->ports[d->n_port++] = port;
    }
    fclose(file);
}

void cli_doctor_ports(cli_doctor *d) {
    int32_t first = BASE_PORT + PER_DOMAIN * d->def.domain, last = first + PER_DOMAIN - 1;
    if (last > 65535) last = 65535;
    read_ports(d, "/proc/net/udp", first, last);
    read_ports(d, "/proc/net/udp6", first, last);
    qsort(d->ports, (size_t)d->n_port, sizeof d->ports[0], compare_ports);
    int64_t own_first = read_number("/proc/sys/net/ipv4/ip_local_port_range");
    if (own_first > 0 && last >= own_first)
        cli_doctor_add(d, CLI_NOTE, "ROS_DOMAIN_ID", "take a domain of 0 to 101",
                       "the ports of domain %d (%d to %d) are among those that the system hands out to any "
                       "program: now and then one is taken",
                       (int)d->def.domain, (int)first, (int)last);
    int32_t n_unicast = 0;
    for (int32_t i = 0; i < d->n_port; i++)
        n_unicast += d->ports[i] >= first + FIRST_UNICAST;
    // Other programs of ROS 2 look at the first 33 participants of a computer.
    if (n_unicast > 2 * 33)
        cli_doctor_add(d, CLI_WARNING, "ports",
                       "end programs that are not needed, or use another ROS_DOMAIN_ID",
                       "%d ports of the domain are in use: programs beyond the 33rd are not found on the "
                       "loopback by others",
                       (int)n_unicast);
}
