// A program of somebody else: plain Cyclone DDS with the settings that rmw_cyclonedds_cpp of ROS 2 gives it,
// and nothing of ours.
//
// It writes numbers on rt/meet/OUT and reads rt/meet/IN. It says "ready" when it has joined, "met" when it
// has heard a number and somebody hears its own, and ends with its standard input. Humble knows
// ROS_LOCALHOST_ONLY alone; later releases know ROS_AUTOMATIC_DISCOVERY_RANGE and ROS_STATIC_PEERS too.
//
//     meet_cyclone humble|jazzy DOMAIN OUT IN
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dds/dds.h>

#include "std_msgs.h"

typedef struct text {
    char bytes[4096];
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof t->bytes - t->n) exit(2);
    t->n += (size_t)n;
}

static const char *get(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static void add_peers(text *t, const char *range) {
    add(t, "<Peers>");
    if (strcmp(range, "LOCALHOST") == 0) add(t, "<Peer address=\"localhost\"/>");
    char peers[1024];
    snprintf(peers, sizeof peers, "%s", get("ROS_STATIC_PEERS"));
    for (char *rest = peers, *peer; (peer = strsep(&rest, ";")) != NULL;) {
        if (peer[0]) add(t, "<Peer address=\"%s\"/>", peer);
    }
    add(t, "</Peers>");
}

// The settings of rmw_cyclonedds_cpp since Iron.
static void add_jazzy(text *t) {
    const char *range = get("ROS_AUTOMATIC_DISCOVERY_RANGE");
    if (!range[0]) range = "SUBNET";
    if (strcmp(get("ROS_LOCALHOST_ONLY"), "1") == 0) {
        range = "LOCALHOST";
        unsetenv("ROS_STATIC_PEERS");
    }
    if (strcmp(range, "SYSTEM_DEFAULT") == 0) return;
    add(t, "<CycloneDDS><Domain>");
    if (strcmp(range, "SUBNET") != 0) add(t, "<General><AllowMulticast>false</AllowMulticast></General>");
    if (strcmp(range, "OFF") == 0) {
        add(t,
            "<Discovery><ParticipantIndex>none</ParticipantIndex><Tag>ros_discovery_off_%ld</Tag></"
            "Discovery>",
            (long)getpid());
    } else {
        add(t, "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
               "<MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>");
        if (strcmp(range, "LOCALHOST") == 0 || get("ROS_STATIC_PEERS")[0]) add_peers(t, range);
        add(t, "</Discovery>");
    }
    add(t, "</Domain></CycloneDDS>");
}

static void add_humble(text *t) {
    if (strcmp(get("ROS_LOCALHOST_ONLY"), "1") != 0) return;
    add(t, "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>"
           "</General></Domain></CycloneDDS>");
}

static dds_entity_t make_topic(dds_entity_t participant, const char *side) {
    char name[64];
    snprintf(name, sizeof name, "rt/meet/%s", side);
    return dds_create_topic(participant, &std_msgs_msg_dds__String__desc, name, NULL, NULL);
}

static bool has_heard(dds_entity_t reader) {
    std_msgs_msg_dds__String_ *sample = NULL;
    void *samples[1] = {NULL};
    dds_sample_info_t info;
    bool heard = false;
    while (dds_take(reader, samples, &info, 1, 1) > 0) {
        sample = samples[0];
        heard = heard || (info.valid_data && strcmp(sample->data, "here") == 0);
        dds_return_loan(reader, samples, 1);
    }
    return heard;
}

int main(int n, char **arguments) {
    if (n != 5) return 2;
    text config = {.n = 0};
    if (strcmp(arguments[1], "humble") == 0)
        add_humble(&config);
    else
        add_jazzy(&config);
    if (config.n > 0 && getenv("CYCLONEDDS_URI")) add(&config, ",");
    add(&config, "%s", get("CYCLONEDDS_URI"));
    const dds_domainid_t domain = (dds_domainid_t)strtoul(arguments[2], NULL, 10);
    if (dds_create_domain(domain, config.bytes) < 0) return 1;
    const dds_entity_t participant = dds_create_participant(domain, NULL, NULL);
    if (participant < 0) return 1;
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_MSECS(100));
    dds_qset_data_representation(qos, 1,
                                 (const dds_data_representation_id_t[]){DDS_DATA_REPRESENTATION_XCDR1});
    const dds_entity_t writer =
        dds_create_writer(participant, make_topic(participant, arguments[3]), qos, NULL);
    const dds_entity_t reader =
        dds_create_reader(participant, make_topic(participant, arguments[4]), qos, NULL);
    if (writer < 0 || reader < 0) return 1;
    printf("ready\n");
    fflush(stdout);
    bool has_met = false, is_heard = false;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&in, 1, 10) == 0) {
        is_heard = is_heard || has_heard(reader);
        dds_publication_matched_status_t status = {0};
        dds_get_publication_matched_status(writer, &status);
        std_msgs_msg_dds__String_ sample = {.data = (char[]){"here"}};
        if (status.current_count > 0) dds_write(writer, &sample);
        if (has_met || !is_heard || status.current_count == 0) continue;
        has_met = true;
        printf("met\n");
        fflush(stdout);
    }
    dds_delete(participant);
    dds_delete_qos(qos);
    return 0;
}
