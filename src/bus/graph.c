// The ROS graph: which node an endpoint belongs to.
//
// DDS knows participants and endpoints, not nodes. So every ROS participant writes on the topic
// ros_discovery_info, in full after each change, its nodes and which endpoints are theirs:
//
//     ParticipantEntitiesInfo   gid of the participant, sequence of NodeEntitiesInfo
//     NodeEntitiesInfo          namespace, name, sequence of gids of readers, sequence of gids of writers
//
// A gid is the 16 bytes of a DDS id; before ROS 2 Iron it was followed by 8 zeros, with nothing in the
// message that reports it. The two layouts are distinguished by their lengths: a message is what can be read
// to its very end. A bus begins with one layout, and announces itself in both from when it hears the other:
// that of Humble first. A later node that reads it finds no nodes in it, for their number lies where the
// zeros are, and then the message that follows; a node of Humble cannot read the second, and keeps the first.
// The messages are few and small, and both layouts are one function with a parameter: they are read and
// written here, byte by byte, and not by the tables of the room wire.
//
// Messages are kept per participant: the last one, as arrays. Memory is bounded whatever arrives: a
// message is at most MAX_MESSAGE long and has MAX_NODE nodes, and of MAX_ENTRY participants that one makes
// room that has been silent for longest.
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "bus/bus.h"

enum { MAX_MESSAGE = 1 << 18, MAX_ENTRY = 256, MAX_NODE = 1024 };

us_status usi_graph_init(usi_graph *graph, const us_allocator *allocator) {
    *graph = (usi_graph){.allocator = *allocator};
    return pthread_mutex_init(&graph->lock, NULL) ? US_ERR_MEMORY : US_OK;
}

static void free_entry(usi_graph *graph, const usi_graph_entry *entry) {
    usi_release(&graph->allocator, entry->nodes, (size_t)entry->n_node * sizeof(usi_graph_node),
                _Alignof(usi_graph_node));
    usi_release(&graph->allocator, entry->endpoints, (size_t)entry->n_endpoint * sizeof(usi_graph_endpoint),
                _Alignof(usi_graph_endpoint));
}

void usi_graph_fini(usi_graph *graph) {
    for (int32_t i = 0; i < graph->n_entry; i++)
        free_entry(graph, &graph->entries[i]);
    usi_release(&graph->allocator, graph->entries, (size_t)graph->cap_entry * sizeof(usi_graph_entry),
                _Alignof(max_align_t));
    pthread_mutex_destroy(&graph->lock);
}

// ---- reading ----

typedef struct cursor {
    const uint8_t *bytes;  // behind the header: alignment counts from here
    size_t length, at;
    bool is_big_endian, is_bad;
} cursor;

static const uint8_t *take_bytes(cursor *c, size_t n) {
    if (c->is_bad || n > c->length - c->at) {
        c->is_bad = true;
        return NULL;
    }
    const uint8_t *bytes = c->bytes + c->at;
    c->at += n;
    return bytes;
}

static uint32_t take_count(cursor *c) {
    size_t aligned = (c->at + 3) / 4 * 4;
    if (aligned > c->length) {
        c->is_bad = true;
        return 0;
    }
    c->at = aligned;
    const uint8_t *b = take_bytes(c, 4);
    if (!b) return 0;
    return c->is_big_endian ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
                            : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static void take_name(cursor *c, char out[USI_NAME_LENGTH]) {
    uint32_t n = take_count(c);
    const uint8_t *b = take_bytes(c, n);
    if (!b || n == 0 || n > USI_NAME_LENGTH || b[n - 1] || strlen((const char *)b) != n - 1) {
        c->is_bad = true;
        return;
    }
    if (out) memcpy(out, b, n);
}

// Reads a message with gids of `gid` bytes. Without arrays in *entry it only checks and counts.
static bool read_message(cursor c, size_t gid, usi_graph_entry *entry) {
    const uint8_t *participant = take_bytes(&c, gid);
    if (participant) memcpy(entry->participant, participant, USI_ID_LENGTH);
    uint32_t n_node = take_count(&c);
    if (n_node > MAX_NODE) return false;
    int32_t n_endpoint = 0;
    for (uint32_t i = 0; i < n_node && !c.is_bad; i++) {
        take_name(&c, entry->nodes ? entry->nodes[i].namespace_ : NULL);
        take_name(&c, entry->nodes ? entry->nodes[i].name : NULL);
        for (int list = 0; list < 2; list++) {
            uint32_t n = take_count(&c);
            const uint8_t *gids = c.is_bad || n > c.length / gid ? NULL : take_bytes(&c, n * gid);
            if (!gids) return false;
            for (uint32_t k = 0; k < n; k++, n_endpoint++) {
                // The padding of the longer ids is zero; that distinguishes them where the lengths do not.
                for (size_t z = USI_ID_LENGTH; z < gid; z++) {
                    if (gids[k * gid + z]) return false;
                }
                if (!entry->endpoints) continue;
                memcpy(entry->endpoints[n_endpoint].id, gids + k * gid, USI_ID_LENGTH);
                entry->endpoints[n_endpoint].node = (int32_t)i;
            }
        }
    }
    // DDS may fill up to a multiple of 4.
    if (c.is_bad || c.length - c.at > 3) return false;
    entry->n_node = (int32_t)n_node;
    entry->n_endpoint = n_endpoint;
    return true;
}

static usi_graph_entry *find_entry(usi_graph *graph, const uint8_t participant[USI_ID_LENGTH]) {
    for (int32_t i = 0; i < graph->n_entry; i++) {
        if (!memcmp(graph->entries[i].participant, participant, USI_ID_LENGTH)) return &graph->entries[i];
    }
    return NULL;
}

// An entry for a new participant; the one that has been silent for longest makes room.
static usi_graph_entry *make_place(usi_graph *graph) {
    if (graph->n_entry < MAX_ENTRY) {
        void *entries = graph->entries;
        if (usi_grow(&graph->allocator, &entries, graph->n_entry, &graph->cap_entry, sizeof(usi_graph_entry)))
            return NULL;
        graph->entries = entries;
        return &graph->entries[graph->n_entry++];
    }
    usi_graph_entry *oldest = &graph->entries[0];
    for (int32_t i = 1; i < graph->n_entry; i++) {
        if (graph->entries[i].age < oldest->age) oldest = &graph->entries[i];
    }
    free_entry(graph, oldest);
    return oldest;
}

us_status usi_graph_take(usi_graph *graph, const void *bytes, size_t length, unsigned int *out_layout) {
    const uint8_t *b = bytes;
    // plain CDR, of either endianness
    if (length < 4 || length > MAX_MESSAGE || b[0] != 0 || b[1] > 1) return US_ERR_SYNTAX;
    cursor c = {.bytes = b + 4, .length = length - 4, .is_big_endian = b[1] == 0};
    usi_graph_entry entry = {0};
    size_t gid = USI_GID_LENGTH;
    if (!read_message(c, gid, &entry)) {
        gid = USI_GID_LENGTH_HUMBLE;
        if (!read_message(c, gid, &entry)) return US_ERR_SYNTAX;
    }
    if (out_layout) *out_layout = gid == USI_GID_LENGTH ? USI_LAYOUT_LATER : USI_LAYOUT_HUMBLE;
    us_status status = US_OK;
    if (entry.n_node) {
        entry.nodes = usi_alloc(&graph->allocator, (size_t)entry.n_node * sizeof(usi_graph_node),
                                _Alignof(usi_graph_node));
        if (!entry.nodes) return US_ERR_MEMORY;
    }
    if (entry.n_endpoint) {
        entry.endpoints = usi_alloc(&graph->allocator, (size_t)entry.n_endpoint * sizeof(usi_graph_endpoint),
                                    _Alignof(usi_graph_endpoint));
        if (!entry.endpoints) {
            entry.n_endpoint = 0;
            free_entry(graph, &entry);
            return US_ERR_MEMORY;
        }
    }
    read_message(c, gid, &entry);
    pthread_mutex_lock(&graph->lock);
    entry.age = ++graph->n_message;
    usi_graph_entry *place = find_entry(graph, entry.participant);
    if (place) {
        free_entry(graph, place);
    } else {
        place = make_place(graph);
    }
    if (place) {
        *place = entry;
    } else {
        free_entry(graph, &entry);
        status = US_ERR_MEMORY;
    }
    pthread_mutex_unlock(&graph->lock);
    return status;
}

// ---- asking ----

void usi_graph_node_full_name(const usi_graph_node *node, char out[USI_NAME_LENGTH]) {
    size_t n = strlen(node->namespace_);
    if (n == 1) n = 0;  // the namespace is "/"
    size_t m = strlen(node->name);
    if (n + m + 2 > USI_NAME_LENGTH)
        m = USI_NAME_LENGTH - 2 - (n < USI_NAME_LENGTH - 2 ? n : USI_NAME_LENGTH - 2);
    memcpy(out, node->namespace_, n);
    out[n] = '/';
    memcpy(out + n + 1, node->name, m);
    out[n + 1 + m] = 0;
}

void usi_graph_find_node(usi_graph *graph, const uint8_t participant[USI_ID_LENGTH],
                         const uint8_t endpoint[USI_ID_LENGTH], char out[USI_NAME_LENGTH]) {
    out[0] = 0;
    pthread_mutex_lock(&graph->lock);
    const usi_graph_entry *entry = find_entry(graph, participant);
    for (int32_t i = 0; entry && i < entry->n_endpoint; i++) {
        if (memcmp(entry->endpoints[i].id, endpoint, USI_ID_LENGTH) != 0) continue;
        usi_graph_node_full_name(&entry->nodes[entry->endpoints[i].node], out);
        break;
    }
    pthread_mutex_unlock(&graph->lock);
}

int32_t usi_graph_count_nodes(usi_graph *graph, const uint8_t participant[USI_ID_LENGTH]) {
    pthread_mutex_lock(&graph->lock);
    const usi_graph_entry *entry = find_entry(graph, participant);
    int32_t n = entry ? entry->n_node : 0;
    pthread_mutex_unlock(&graph->lock);
    return n;
}

// ---- writing ----

typedef struct encoder {
    uint8_t *bytes;        // NULL: only the length counts
    size_t at, n_padding;  // zeros behind an id
} encoder;

static void put(encoder *p, const void *bytes, size_t n) {
    if (p->bytes) memcpy(p->bytes + p->at, bytes, n);
    p->at += n;
}

static void put_zeros(encoder *p, size_t n) {
    if (p->bytes) memset(p->bytes + p->at, 0, n);
    p->at += n;
}

static void put_count(encoder *p, size_t value) {
    // alignment counts from the end of the header, which has 4 bytes
    put_zeros(p, (4 - p->at % 4) % 4);
    uint8_t b[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    put(p, b, 4);
}

static void put_name(encoder *p, const char *name) {
    size_t n = strlen(name) + 1;
    put_count(p, n);
    put(p, name, n);
}

static void put_gid(encoder *p, const uint8_t id[USI_ID_LENGTH]) {
    put(p, id, USI_ID_LENGTH);
    put_zeros(p, p->n_padding);
}

size_t usi_graph_encode(const us_bus *bus, unsigned int layout, void *buf) {
    encoder p = {.bytes = buf};
    if (layout == USI_LAYOUT_HUMBLE) p.n_padding = USI_GID_LENGTH_HUMBLE - USI_GID_LENGTH;
    put(&p, "\0\1\0\0", 4);
    put_gid(&p, bus->id);
    size_t n_node = 0;
    for (int32_t i = 0; i < bus->n_node; i++)
        n_node += bus->nodes[i].name[0] != 0;
    put_count(&p, n_node);
    for (int32_t i = 0; i < bus->n_node; i++) {
        if (!bus->nodes[i].name[0]) continue;
        put_name(&p, bus->nodes[i].namespace_);
        put_name(&p, bus->nodes[i].name);
        size_t n = 0;
        for (const us_reader *r = bus->readers; r; r = r->next)
            n += r->node == i;
        put_count(&p, n);
        for (const us_reader *r = bus->readers; r; r = r->next) {
            if (r->node == i) put_gid(&p, r->id);
        }
        n = 0;
        for (const us_writer *w = bus->writers; w; w = w->next)
            n += w->node == i;
        put_count(&p, n);
        for (const us_writer *w = bus->writers; w; w = w->next) {
            if (w->node == i) put_gid(&p, w->id);
        }
    }
    return p.at;
}
