// The doctor looks at the network: names, types, QoS, commands, clocks.
#include <fnmatch.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

static const char *node_of(const us_endpoint *e) {
    return e->node[0] ? e->node : "a DDS program without a node";
}

static bool is_same_participant(const us_endpoint *a, const us_endpoint *b) {
    return memcmp(a->participant, b->participant, sizeof a->participant) == 0;
}

// The end of the run of endpoints with the topic of number i.
static int32_t end_of_topic(const cli_bus *bus, int32_t i) {
    int32_t end = i + 1;
    while (end < bus->n_endpoint && strcmp(bus->endpoints[end].topic, bus->endpoints[i].topic) == 0)
        end++;
    return end;
}

// ---- names ----

void cli_doctor_nodes(cli_doctor *d) {
    // The first endpoint of each node in each participant, by number.
    int32_t *first = cli_allocate((size_t)d->bus.n_endpoint, sizeof *first);
    int32_t n = 0;
    for (int32_t i = 0; i < d->bus.n_endpoint; i++) {
        const us_endpoint *e = &d->bus.endpoints[i];
        if (!e->node[0]) continue;
        bool is_known = false;
        int32_t n_same = 0;
        for (int32_t k = 0; k < n; k++) {
            const us_endpoint *other = &d->bus.endpoints[first[k]];
            if (strcmp(other->node, e->node) != 0) continue;
            n_same++;
            is_known = is_known || is_same_participant(other, e);
        }
        if (is_known) continue;
        first[n++] = i;
        if (n_same == 1)  // reported at the second; the third adds nothing
            cli_doctor_add(d, CLI_WARNING, e->node,
                           "give each a name of its own (ros2 run ... --ros-args -r __node:=NAME), or end "
                           "the one left over",
                           "more than one program has a node of this name: tools show them as one, and "
                           "parameters go to either");
    }
    free(first);
}

// ---- types ----

static bool is_served(const cli_bus *bus, int32_t i, int32_t begin, int32_t end) {
    const us_endpoint *e = &bus->endpoints[i];
    for (int32_t k = begin; k < end; k++) {
        const us_endpoint *other = &bus->endpoints[k];
        if (other->is_writer != e->is_writer && strcmp(other->type, e->type) == 0) return true;
    }
    return false;
}

// A program that takes two types of one topic is served when one of them comes.
static bool is_served_otherwise(const cli_bus *bus, int32_t i, int32_t begin, int32_t end) {
    for (int32_t k = begin; k < end; k++) {
        if (k != i && bus->endpoints[k].is_writer == bus->endpoints[i].is_writer &&
            is_same_participant(&bus->endpoints[k], &bus->endpoints[i]) && is_served(bus, k, begin, end))
            return true;
    }
    return false;
}

static void check_types(cli_doctor *d, int32_t begin, int32_t end) {
    const cli_bus *bus = &d->bus;
    char topic[CLI_NAME_MAX], type[CLI_NAME_MAX], other_type[CLI_NAME_MAX];
    cli_ros_topic(bus->endpoints[begin].topic, topic);
    for (int32_t i = begin; i < end; i++) {
        const us_endpoint *e = &bus->endpoints[i], *other = NULL, *version = NULL;
        for (int32_t k = begin; k < end; k++) {
            const us_endpoint *p = &bus->endpoints[k];
            if (p->is_writer == e->is_writer) continue;
            if (!other && strcmp(p->type, e->type) != 0) other = p;
            if (!version && strcmp(p->type, e->type) == 0 && p->hash[0] && e->hash[0] &&
                strcmp(p->hash, e->hash) != 0)
                version = p;
        }
        cli_ros_type(e->type, type);
        // Reported from the reader's side where there is one; a writer that nobody can read is reported when
        // the readers are served by others.
        bool is_lost = other && !is_served(bus, i, begin, end) && !is_served_otherwise(bus, i, begin, end);
        if (is_lost && (!e->is_writer || is_served(bus, (int32_t)(other - bus->endpoints), begin, end))) {
            cli_ros_type(other->type, other_type);
            cli_doctor_add(d, CLI_WRONG, topic, "let both use one type, or give one of them another topic",
                           "%s %s %s, but %s %s %s: they do not match", node_of(e),
                           e->is_writer ? "writes" : "reads", type, node_of(other),
                           other->is_writer ? "writes" : "reads", other_type);
        }
        if (version && !e->is_writer)
            cli_doctor_add(d, CLI_WARNING, topic,
                           "build both against the same version of the message package",
                           "%s and %s mean different versions of %s: the bytes may be read wrongly",
                           node_of(e), node_of(version), type);
    }
}

void cli_doctor_types(cli_doctor *d) {
    for (int32_t i = 0, end; i < d->bus.n_endpoint; i = end) {
        end = end_of_topic(&d->bus, i);
        if (cli_is_ros_topic(d->bus.endpoints[i].topic)) check_types(d, i, end);
    }
}

// ---- QoS ----

// Whether two lists of partitions, names with commas between, have one in common. A name may be a pattern.
static bool have_partition_in_common(const char *a, const char *b) {
    for (const char *x = a, *end; x; x = *end ? end + 1 : NULL) {
        end = x + strcspn(x, ",");
        for (const char *y = b, *last; y; y = *last ? last + 1 : NULL) {
            char one[US_PARTITION_TEXT], other[US_PARTITION_TEXT];
            last = y + strcspn(y, ",");
            snprintf(one, sizeof one, "%.*s", (int)(end - x), x);
            snprintf(other, sizeof other, "%.*s", (int)(last - y), y);
            if (fnmatch(one, other, 0) == 0 || fnmatch(other, one, 0) == 0) return true;
        }
    }
    return false;
}

// What programs set by themselves, and ROS 2 by overrides of QoS.
static void check_rare_qos(cli_doctor *d, const char *topic, const us_endpoint *writer,
                           const us_endpoint *reader) {
    const us_qos *offered = &writer->qos, *asked = &reader->qos;
    const bool is_service = strncmp(writer->topic, "rq/", 3) == 0 || strncmp(writer->topic, "rr/", 3) == 0;
    if (asked->deadline > 0 && (offered->deadline == 0 || offered->deadline > asked->deadline))
        cli_doctor_add(
            d, CLI_WRONG, topic, "let the reader ask for no deadline, or the writer offer as short a one",
            "%s asks for a sample every %.3g s (deadline), which %s does not promise: nothing arrives",
            node_of(reader), 1e-9 * (double)asked->deadline, node_of(writer));
    if (asked->liveliness > offered->liveliness ||
        (asked->lease > 0 && (offered->lease == 0 || offered->lease > asked->lease)))
        cli_doctor_add(
            d, CLI_WRONG, topic,
            "let the reader ask for automatic liveliness without a lease, or the writer offer as much",
            "%s asks for more liveliness than %s offers: nothing arrives", node_of(reader), node_of(writer));
    if (asked->is_exclusive != offered->is_exclusive)
        cli_doctor_add(d, CLI_WRONG, topic,
                       "let both have shared ownership, as ROS 2 has it, or both exclusive",
                       "%s and %s do not agree whether ownership is shared: nothing arrives", node_of(reader),
                       node_of(writer));
    if (!is_service && !have_partition_in_common(writer->partitions, reader->partitions))
        cli_doctor_add(d, CLI_WRONG, topic, "put both into one partition of DDS; ROS 2 has the unnamed one",
                       "%s is in the partition \"%s\", %s in \"%s\": nothing arrives", node_of(reader),
                       reader->partitions, node_of(writer), writer->partitions);
}

// A reader may ask for no more than the writer offers.
static void check_pair(cli_doctor *d, const us_endpoint *writer, const us_endpoint *reader) {
    char topic[CLI_NAME_MAX];
    cli_ros_topic(writer->topic, topic);
    if (reader->qos.is_reliable && !writer->qos.is_reliable)
        cli_doctor_add(d, CLI_WRONG, topic,
                       "let the reader ask for best effort, or the writer offer reliable",
                       "%s reads reliably, but %s writes with best effort: nothing arrives", node_of(reader),
                       node_of(writer));
    if (reader->qos.is_transient_local && !writer->qos.is_transient_local)
        cli_doctor_add(d, CLI_WRONG, topic,
                       "let the reader ask for volatile, or the writer offer transient local",
                       "%s asks for what was said before (transient local), but %s keeps nothing (volatile): "
                       "nothing arrives",
                       node_of(reader), node_of(writer));
    if (!writer->is_xcdr1 && reader->is_xcdr1)
        cli_doctor_add(d, CLI_WRONG, topic, "mark the types of the writer @final, or let it write XCDR1",
                       "%s writes in another encoding (XCDR2) than %s and all of ROS 2 read", node_of(writer),
                       node_of(reader));
    check_rare_qos(d, topic, writer, reader);
}

void cli_doctor_qos(cli_doctor *d) {
    for (int32_t i = 0; i < d->bus.n_endpoint; i++) {
        const us_endpoint *writer = &d->bus.endpoints[i];
        if (!writer->is_writer) continue;
        for (int32_t k = i + 1; k < d->bus.n_endpoint; k++) {
            const us_endpoint *reader = &d->bus.endpoints[k];
            if (strcmp(reader->topic, writer->topic) != 0 || strcmp(reader->type, writer->type) != 0) break;
            if (!reader->is_writer) check_pair(d, writer, reader);
        }
    }
}

// ---- commands ----

void cli_doctor_commands(cli_doctor *d) {
    for (int32_t i = 0, end; i < d->bus.n_endpoint; i = end) {
        end = end_of_topic(&d->bus, i);
        const char *topic = d->bus.endpoints[i].topic, *last = strrchr(topic, '/');
        if (!cli_is_ros_topic(topic) || strcmp(last, "/cmd_vel") != 0) continue;
        const us_endpoint *one = NULL, *two = NULL;
        for (int32_t k = i; k < end; k++) {
            const us_endpoint *e = &d->bus.endpoints[k];
            if (!e->is_writer) continue;
            if (!one) {
                one = e;
            } else if (!two) {
                two = e;
            }
        }
        if (two)
            cli_doctor_add(d, CLI_WARNING, topic + 2,
                           "let one of them drive, or put a multiplexer (twist_mux) between",
                           "%s and %s both command this robot: the last command counts, and it jerks",
                           node_of(one), node_of(two));
    }
}

// ---- clocks ----

// The stamp that came last on a topic, ns; written by a thread of the bus.
typedef struct ear {
    const us_message_type *type;
    us_reader *reader;
    const us_endpoint *endpoint;
    bool is_clock;
    _Atomic int64_t stamp;
    _Atomic bool is_heard;
} ear;

static void on_clock(void *context, const us_sample *sample) {
    ear *e = context;
    double sec = us_message_get_number(e->type, sample->bytes, sample->length,
                                       e->is_clock ? "clock.sec" : "header.stamp.sec");
    double nanosec = us_message_get_number(e->type, sample->bytes, sample->length,
                                           e->is_clock ? "clock.nanosec" : "header.stamp.nanosec");
    if (isnan(sec) || isnan(nanosec)) return;
    atomic_store(&e->stamp, (int64_t)sec * 1000000000 + (int64_t)nanosec);
    atomic_store(&e->is_heard, true);
}

static void check_clock_writers(cli_doctor *d) {
    const us_endpoint *one = NULL;
    bool is_told = false;
    for (int32_t i = 0; i < d->bus.n_endpoint; i++) {
        const us_endpoint *e = &d->bus.endpoints[i];
        if (!e->is_writer || strcmp(e->topic, "rt/clock") != 0) continue;
        if (one && !is_told) {
            cli_doctor_add(d, CLI_WRONG, "/clock",
                           "end one of them, or let each simulation have its own ROS_DOMAIN_ID",
                           "%s and %s both publish the time: it jumps back and forth for all subscribers",
                           node_of(one), node_of(e));
            is_told = true;
        }
        if (!one) one = e;
    }
}

// Commands carry whatever stamp their sender likes; measurements are what others compute with.
static bool is_measurement(const char *type) {
    static const char *const types[] = {"nav_msgs/msg/Odometry",       "sensor_msgs/msg/JointState",
                                        "sensor_msgs/msg/Imu",         "sensor_msgs/msg/LaserScan",
                                        "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Image",
                                        "sensor_msgs/msg/CameraInfo"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(type, types[i]) == 0) return true;
    }
    return false;
}

static int32_t subscribe_all(cli_doctor *d, ear *ears, int32_t cap) {
    int32_t n = 0;
    for (int32_t i = 0; i < d->bus.n_endpoint && n < cap; i++) {
        const us_endpoint *e = &d->bus.endpoints[i];
        const us_message_type *type = us_message_find(e->type);
        if (!e->is_writer || !type || !cli_is_ros_topic(e->topic)) continue;
        bool is_clock = strcmp(e->topic, "rt/clock") == 0;
        if (!is_clock && !is_measurement(us_message_name(type))) continue;
        if (n > 0 && strcmp(ears[n - 1].endpoint->topic, e->topic) == 0) continue;
        ears[n].type = type;
        ears[n].endpoint = e;
        ears[n].is_clock = is_clock;
        us_topic_def def = {.topic = e->topic + 2, .type = type, .qos = {.depth = 1}, .node = -1};
        if (!us_bus_add_reader(d->bus.bus, &def, on_clock, &ears[n], &ears[n].reader, NULL)) n++;
    }
    return n;
}

static void check_stamps(cli_doctor *d, ear *ears, int32_t n) {
    // Far more than any delay in transit, far less than any two clocks that are not the same.
    const double far = 2;
    ear *clock = NULL;
    for (int32_t i = 0; i < n; i++)
        clock = ears[i].is_clock ? &ears[i] : clock;
    int64_t now = clock ? atomic_load(&clock->stamp) : cli_wall_ns();
    if (clock && !atomic_load(&clock->is_heard)) {
        cli_doctor_add(
            d, CLI_WARNING, "/clock", "let the simulation run on, or end the program that announces it",
            "%s announces it but did not publish the time for %.1f s: programs with use_sim_time stand still",
            node_of(clock->endpoint), d->listen);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        double off = 1e-9 * (double)(atomic_load(&ears[i].stamp) - now);
        if (ears[i].is_clock || !atomic_load(&ears[i].is_heard) || fabs(off) < far) continue;
        if (clock)
            cli_doctor_add(d, CLI_WRONG, ears[i].endpoint->topic + 2,
                           "let its program use the simulated time (use_sim_time:=true), or end the one that "
                           "writes /clock",
                           "%s stamps its samples %.1f s %s /clock", node_of(ears[i].endpoint), fabs(off),
                           off > 0 ? "ahead of" : "behind");
        else
            cli_doctor_add(
                d, CLI_WARNING, ears[i].endpoint->topic + 2,
                "write /clock, and let the listeners use_sim_time; or let it stamp with this computer's time",
                "%s stamps its samples %.1f s %s this computer's time, and nobody writes /clock",
                node_of(ears[i].endpoint), fabs(off), off > 0 ? "ahead of" : "behind");
    }
}

void cli_doctor_clock(cli_doctor *d) {
    enum { MAX_EAR = 128 };
    check_clock_writers(d);
    ear *ears = cli_allocate(MAX_EAR, sizeof *ears);
    int32_t n = subscribe_all(d, ears, MAX_EAR);
    double until = cli_clock() + d->listen;
    bool is_waiting = n > 0;
    while (is_waiting && cli_clock() < until && !cli_is_stopped()) {
        cli_pause(0.02);
        is_waiting = false;
        for (int32_t i = 0; i < n; i++)
            is_waiting = is_waiting || !atomic_load(&ears[i].is_heard);
    }
    for (int32_t i = 0; i < n; i++)
        us_reader_remove(ears[i].reader);
    // The readers are gone: every stamp is from about the same moment.
    check_stamps(d, ears, n);
    free(ears);
}
