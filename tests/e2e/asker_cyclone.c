// A program that asks and answers as rmw_cyclonedds does, on Cyclone DDS and nothing of ours: who asks, with
// which number, stands before the message, and both endpoints say in their user data that they belong
// together.
//
//     asker_cyclone DOMAIN ask N      asks /test/echo N times and prints "answered N wrong 0" when each
//                                     number was answered once, by its own text
//     asker_cyclone DOMAIN serve      answers /test/echo with what was asked, until its standard input ends
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dds/dds.h>

#include "asker_cyclone.h"

enum { MAX_ASK = 1000, AT_ONCE = 50, SECONDS = 60 };

typedef rcl_interfaces_srv_dds__GetParameters_Request_ request_type;
typedef rcl_interfaces_srv_dds__GetParameters_Response_ reply_type;

typedef struct ends {
    dds_entity_t writer, reader;
    uint64_t guid;
} ends;

static dds_qos_t *make_qos(dds_entity_t participant, const char *key, uint64_t *out_guid) {
    dds_guid_t id;
    if (dds_get_guid(participant, &id)) exit(1);
    id.v[15]++;
    memcpy(out_guid, id.v + 8, sizeof *out_guid);
    char user_data[100];
    int at = snprintf(user_data, sizeof user_data, "%s=", key);
    for (int i = 0; i < 16; i++)
        at += snprintf(user_data + at, sizeof user_data - (size_t)at, "%02x%s", id.v[i], i < 15 ? "." : ";");
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, DDS_LENGTH_UNLIMITED);
    dds_qset_userdata(qos, user_data, (size_t)at);
    dds_qset_data_representation(qos, 1,
                                 (const dds_data_representation_id_t[]){DDS_DATA_REPRESENTATION_XCDR1});
    return qos;
}

static ends make_ends(dds_entity_t participant, bool is_client) {
    ends e = {0};
    dds_qos_t *qos = make_qos(participant, is_client ? "clientid" : "serviceid", &e.guid);
    const dds_entity_t ask =
                           dds_create_topic(participant, &rcl_interfaces_srv_dds__GetParameters_Request__desc,
                                            "rq/test/echoRequest", NULL, NULL),
                       answer = dds_create_topic(participant,
                                                 &rcl_interfaces_srv_dds__GetParameters_Response__desc,
                                                 "rr/test/echoReply", NULL, NULL);
    e.reader = dds_create_reader(participant, is_client ? answer : ask, qos, NULL);
    e.writer = dds_create_writer(participant, is_client ? ask : answer, qos, NULL);
    dds_delete_qos(qos);
    if (e.reader < 0 || e.writer < 0) exit(1);
    return e;
}

// Matched as rmw_cyclonedds wants it: a reader and a writer of the same service.
static bool is_ready(const ends *e) {
    return dds_get_matched_subscriptions(e->writer, NULL, 0) > 0 &&
           dds_get_matched_publications(e->reader, NULL, 0) > 0;
}

static int ask(const ends *e, int count) {
    const time_t until = time(NULL) + SECONDS;
    while (!is_ready(e) && time(NULL) < until)
        usleep(1000);
    bool is_open[MAX_ASK] = {false};
    int n_answer = 0, n_wrong = 0;
    for (int i = 0; n_answer < count && time(NULL) < until;) {
        if (i < count && i - n_answer < AT_ONCE) {
            char text[8];
            snprintf(text, sizeof text, "a%03d", i % 1000);
            char *names[] = {text};
            request_type request = {.guid = e->guid, .seq = i + 1, .names = {1, 1, names, false}};
            if (dds_write(e->writer, &request) == 0) is_open[i++] = true;
        }
        void *samples[1] = {NULL};
        dds_sample_info_t info;
        if (dds_take(e->reader, samples, &info, 1, 1) != 1) {
            usleep(200);
            continue;
        }
        const reply_type *reply = samples[0];
        if (info.valid_data && reply->guid == e->guid) {
            const bool is_good = reply->seq >= 1 && reply->seq <= count && is_open[reply->seq - 1] &&
                                 reply->values._length == 1 &&
                                 reply->values._buffer[0].integer_value == (reply->seq - 1) % 1000;
            if (is_good) is_open[reply->seq - 1] = false;
            n_answer += is_good;
            n_wrong += !is_good;
        }
        dds_return_loan(e->reader, samples, 1);
    }
    printf("answered %d wrong %d\n", n_answer, n_wrong);
    return 0;
}

static int serve(const ends *e) {
    for (struct pollfd in = {.events = POLLIN}; poll(&in, 1, 0) == 0;) {
        void *samples[1] = {NULL};
        dds_sample_info_t info;
        if (dds_take(e->reader, samples, &info, 1, 1) != 1) {
            usleep(200);
            continue;
        }
        const request_type *request = samples[0];
        reply_type reply = {.guid = request->guid, .seq = request->seq};
        if (info.valid_data) dds_write(e->writer, &reply);
        dds_return_loan(e->reader, samples, 1);
    }
    return 0;
}

int main(int n, char **arguments) {
    if (n < 3) return 2;
    const char config[] =
        "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/>"
        "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery>"
        "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</"
        "MaxAutoParticipantIndex><Peers><Peer address=\"localhost\"/></Peers></Discovery>"
        "</Domain></CycloneDDS>";
    const dds_domainid_t domain = (dds_domainid_t)strtoul(arguments[1], NULL, 10);
    if (dds_create_domain(domain, config) < 0) return 1;
    const dds_entity_t participant = dds_create_participant(domain, NULL, NULL);
    if (participant < 0) return 1;
    const bool is_client = strcmp(arguments[2], "ask") == 0;
    const ends e = make_ends(participant, is_client);
    printf("ready\n");
    fflush(stdout);
    const int count = n > 3 ? atoi(arguments[3]) : 1;
    return is_client ? ask(&e, count < MAX_ASK ? count : MAX_ASK) : serve(&e);
}
