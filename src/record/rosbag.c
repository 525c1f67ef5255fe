// Quality of service and metadata of a recording, the way rosbag2 writes them: `ros2 bag play FILE.mcap`
// offers each topic as it was offered, so that who comes later gets tf_static and the robot's description.
//
// rosbag2 has two ways to write the policies: as numbers (Foxy to Iron) and as words (Jazzy and later,
// version 9 of its metadata). Humble reads numbers alone and never looks at the metadata record; later ones
// read numbers where that record says version 8 or less. So it is numbers and version 8: everybody reads
// them.
#include "record/rosbag.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 8 };

// Numbers of rmw's policies.
enum { KEEP_LAST = 1, KEEP_ALL = 2, RELIABLE = 1, BEST_EFFORT = 2, TRANSIENT_LOCAL = 1, VOLATILE = 2 };

// No deadline, lifespan or lease: a duration without end, as rmw has it.
#define NEVER "    sec: 9223372036\n    nsec: 854775807\n"

void usi_rosbag_qos(const us_offered_qos *qos, char out[USI_ROSBAG_QOS]) {
    snprintf(out, USI_ROSBAG_QOS,
             "- history: %d\n  depth: %d\n  reliability: %d\n  durability: %d\n"
             "  deadline:\n" NEVER "  lifespan:\n" NEVER
             "  liveliness: 1\n  liveliness_lease_duration:\n" NEVER
             "  avoid_ros_namespace_conventions: false",
             qos->depth > 0 ? KEEP_LAST : KEEP_ALL, (int)qos->depth,
             qos->is_reliable ? RELIABLE : BEST_EFFORT, qos->is_latched ? TRANSIENT_LOCAL : VOLATILE);
}

// Bytes that are counted, and written while there is room.
typedef struct sink {
    char *out;
    size_t cap, length;
} sink;

static void put(sink *s, const char *format, ...) US_PRINTF(2, 3);
static void put(sink *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const size_t room = s->length < s->cap ? s->cap - s->length : 0;
    const int n = vsnprintf(room ? s->out + s->length : NULL, room, format, args);
    va_end(args);
    if (n > 0) s->length += (size_t)n;
}

// A text in double quotes.
static void put_text(sink *s, const char *text) {
    put(s, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            put(s, "\\%c", *text);
        } else if (*text == '\n') {
            put(s, "\\n");
        } else if ((unsigned char)*text < 32) {
            put(s, "\\x%02x", (unsigned)*text);
        } else {
            put(s, "%c", *text);
        }
    }
    put(s, "\"");
}

static void put_span(sink *s, const usi_rosbag *bag, const char *indent) {
    put(s, "%sduration:\n%s  nanoseconds: %" PRIu64 "\n", indent, indent, bag->last - bag->first);
    put(s, "%sstarting_time:\n%s  nanoseconds_since_epoch: %" PRIu64 "\n", indent, indent, bag->first);
    put(s, "%smessage_count: %" PRIu64 "\n", indent, bag->n_message);
}

static void put_topic(sink *s, const usi_rosbag_topic *t) {
    const struct {
        const char *key, *value;
    } rows[] = {{"name", t->name},
                {"type", t->type},
                {"serialization_format", "cdr"},
                {"offered_qos_profiles", t->qos},
                {"type_description_hash", t->hash}};
    put(s, "  - topic_metadata:\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put(s, "      %s: ", rows[i].key);
        put_text(s, rows[i].value);
        put(s, "\n");
    }
    put(s, "    message_count: %" PRIu64 "\n", t->n_message);
}

size_t usi_rosbag_metadata(const usi_rosbag *bag, char *out, size_t cap) {
    sink s = {.cap = cap};
    s.out = out;
    const char *slash = strrchr(bag->path, '/'), *file = slash ? slash + 1 : bag->path;
    put(&s, "version: %d\nstorage_identifier: mcap\n", VERSION);
    put_span(&s, bag, "");
    put(&s, "topics_with_message_count:%s\n", bag->n_topic == 0 ? " []" : "");
    for (int32_t i = 0; i < bag->n_topic; i++)
        put_topic(&s, &bag->topics[i]);
    put(&s, "compression_format: \"\"\ncompression_mode: \"\"\nrelative_file_paths:\n  - ");
    put_text(&s, file);
    put(&s, "\nfiles:\n  - path: ");
    put_text(&s, file);
    put(&s, "\n");
    put_span(&s, bag, "    ");
    put(&s, "custom_data: ~\nros_distro: \"\"\n");
    return s.length;
}
