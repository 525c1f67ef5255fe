// A program of somebody else: plain Cyclone DDS, and types with keys that Understudy does not know.
//
//     raw_cyclone DOMAIN write N     writes N samples of rt/k10/track and of rt/k10/named, of five instances
//                                    each, once somebody reads both; then it disposes the instance 2 and
//                                    unregisters the instance 3. "written" when all is acknowledged
//     raw_cyclone DOMAIN read        prints what it gets: "track ID TEXT STATE" and "named NAME VALUE STATE"
//
// Both say "ready" when they have joined, and end with their standard input. A state is alive, disposed or
// unregistered.
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dds/dds.h>

#include "raw.h"

enum { N_INSTANCE = 5, MAX_TAKE = 64 };

static const char settings[] =
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces><AllowMulticast>"
    "false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<MaxAutoParticipantIndex>32</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers>"
    "</Discovery></Domain></CycloneDDS>";

static bool is_over(void) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&in, 1, 0) != 0;
}

static dds_qos_t *make_qos(void) {
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dds_qset_deadline(qos, DDS_SECS(30));
    dds_qset_writer_data_lifecycle(qos, false);
    dds_qset_userdata(qos, "typehash=RIHS01_raw;", 20);
    return qos;
}

static bool is_matched(dds_entity_t writer) { return dds_get_matched_subscriptions(writer, NULL, 0) > 0; }

static void write_all(const dds_entity_t *writers, int32_t n) {
    while (!is_over() && !(is_matched(writers[0]) && is_matched(writers[1])))
        dds_sleepfor(DDS_MSECS(5));
    // the switch's own way to the operators takes a moment more
    dds_sleepfor(DDS_MSECS(1500));
    char text[32], name[64];
    raw_Track track = {.text = text};
    raw_Named named = {.name = name};
    for (int32_t i = 0; i < n && !is_over(); i++) {
        track.id = named.value = i;
        track.id %= N_INSTANCE;
        snprintf(text, sizeof text, "t%d", i);
        snprintf(name, sizeof name, "a name that no hash of sixteen bytes holds %d", track.id);
        if (dds_write(writers[0], &track) || dds_write(writers[1], &named)) exit(1);
        if (i % 20 == 0) dds_sleepfor(DDS_MSECS(2));
    }
    track.id = 2;
    snprintf(name, sizeof name, "a name that no hash of sixteen bytes holds 2");
    if (dds_dispose(writers[0], &track) || dds_dispose(writers[1], &named)) exit(1);
    track.id = 3;
    snprintf(name, sizeof name, "a name that no hash of sixteen bytes holds 3");
    if (dds_unregister_instance(writers[0], &track) || dds_unregister_instance(writers[1], &named)) exit(1);
    for (int i = 0; i < 2; i++)
        dds_wait_for_acks(writers[i], DDS_SECS(10));
    printf("written\n");
    fflush(stdout);
    while (!is_over())
        dds_sleepfor(DDS_MSECS(20));
}

static const char *name_state(dds_instance_state_t state) {
    return state == DDS_IST_ALIVE                ? "alive"
           : state == DDS_IST_NOT_ALIVE_DISPOSED ? "disposed"
                                                 : "unregistered";
}

static void read_all(const dds_entity_t *readers) {
    while (!is_over()) {
        for (int k = 0; k < 2; k++) {
            void *samples[MAX_TAKE] = {NULL};
            dds_sample_info_t info[MAX_TAKE];
            const dds_return_t n = dds_take(readers[k], samples, info, MAX_TAKE, MAX_TAKE);
            for (dds_return_t i = 0; i < n; i++) {
                const char *state = name_state(info[i].instance_state),
                           *kind = info[i].valid_data ? "data" : "end";
                const raw_Track *track = samples[i];
                const raw_Named *named = samples[i];
                if (k == 0)
                    printf("track %s %d %s %s\n", kind, track->id, info[i].valid_data ? track->text : "-",
                           state);
                if (k == 1)
                    printf("named %s %s %d %s\n", kind, strrchr(named->name, ' ') + 1, named->value, state);
            }
            if (n > 0) dds_return_loan(readers[k], samples, n);
        }
        fflush(stdout);
        dds_sleepfor(DDS_MSECS(2));
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const dds_domainid_t domain = (dds_domainid_t)strtoul(argv[1], NULL, 10);
    if (dds_create_domain(domain, settings) < 0) return 1;
    const dds_entity_t participant = dds_create_participant(domain, NULL, NULL);
    const dds_entity_t topics[] = {
        dds_create_topic(participant, &raw_Track_desc, "rt/k10/track", NULL, NULL),
        dds_create_topic(participant, &raw_Named_desc, "rt/k10/named", NULL, NULL)};
    dds_qos_t *qos = make_qos();
    const bool is_writer = strcmp(argv[2], "write") == 0;
    dds_entity_t ends[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = is_writer ? dds_create_writer(participant, topics[i], qos, NULL)
                            : dds_create_reader(participant, topics[i], qos, NULL);
        if (ends[i] < 0) return 1;
    }
    dds_delete_qos(qos);
    printf("ready\n");
    fflush(stdout);
    if (is_writer) {
        write_all(ends, argc > 3 ? atoi(argv[3]) : 100);
    } else {
        read_all(ends);
    }
    dds_delete(DDS_CYCLONEDDS_HANDLE);
    return 0;
}
