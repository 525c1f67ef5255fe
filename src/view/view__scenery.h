// The scene for viewers of others: ground, objects, ruts and contacts as messages.
//
// One maker, two dialects: markers and grid maps as RViz draws them, or the scene updates of Foxglove. Both
// have the same five contents; a sink says which of them somebody wants, and takes the bytes. What nobody
// wants is not made.
//
//     spec --(once per revision)--> parts --+--> still     latched
//     sim: poses -------------------------- +--> moving    10 Hz, bodies that have moved
//     sim: contacts ------------------------+--> contacts  10 Hz
//     height fields ------------------------+--> ground    latched
//     sim: beds of soil --------------------+--> ruts      1 Hz, what has changed
//
// All of it is for the thread that steps, between two steps.
#ifndef USI_VIEW_SCENERY_H
#define USI_VIEW_SCENERY_H

#include "understudy/world.h"
#include "view/view__bytes.h"
#include "view/view__ground.h"
#include "wire/messages.h"
#include "world/revision.h"

typedef enum usi_scenery_content {
    USI_SCENERY_STILL,
    USI_SCENERY_MOVING,
    USI_SCENERY_CONTACTS,
    USI_SCENERY_GROUND,
    USI_SCENERY_RUTS,
    USI_SCENERY_COUNT
} usi_scenery_content;

// Where the messages of one dialect go.
typedef struct usi_scenery_sink {
    void *context;
    bool is_foxglove;
    const char *assets;  // before the revision and the name of a mesh's file, "package://understudy/"; NULL:
                         // they have none
    // Whether somebody wants a content. *out_arrivals: another number when somebody has come who has got
    // nothing yet.
    bool (*is_wanted)(void *context, usi_scenery_content content, uint64_t *out_arrivals);
    void (*send)(void *context, usi_scenery_content content, int64_t time, const void *bytes, size_t length);
} usi_scenery_sink;

// "/understudy/scene/still", and the type of a content in a dialect.
const char *usi_scenery_topic(usi_scenery_content content);
const us_message_type *usi_scenery_type(usi_scenery_content content, bool is_foxglove);

typedef struct usi_scenery usi_scenery;
us_status usi_scenery_create(us_world *world, const usi_scenery_sink *sink, usi_scenery **out_scene,
                             us_error *err);
void usi_scenery_destroy(usi_scenery *scene);  // NULL is allowed
// Sends what is due. `now`: s, monotonic.
void usi_scenery_show(usi_scenery *scene, double now);

// ---- scenery_part.c: shapes as viewers draw them ----

typedef enum usi_part_kind {
    USI_PART_CUBE,      // size: full lengths
    USI_PART_BALL,      // size: diameters
    USI_PART_CYLINDER,  // along z; size: two diameters, length
    USI_PART_TRIANGLES,
    USI_PART_MODEL  // a file; size: 1 1 1
} usi_part_kind;

typedef struct usi_scenery_part {
    usi_part_kind kind;
    int32_t body;      // -1: the world
    const char *name;  // of the link, or of what is fixed to the world
    us_pose X_BG;
    double size[3];
    float rgba[4];
    const char *file;     // of a model: "3.glb"
    us_msg_point *point;  // triangles
    int32_t n_point;
    uint32_t *index;
    int32_t n_index;
} usi_scenery_part;

typedef struct usi_scenery_parts {
    usi_arena arena;
    int32_t n, cap;
    usi_scenery_part *part;  // those of one body stand together
} usi_scenery_parts;

us_status usi_scenery_parts_make(const usi_revision *revision, const us_allocator *allocator,
                                 usi_scenery_parts *out);
void usi_scenery_parts_fini(usi_scenery_parts *parts);  // also of zeros

// ---- scenery_message.c: messages of parts ----

// A message under construction. Want of memory is kept in is_full.
typedef struct usi_scenery_message {
    usi_arena *arena;
    int64_t time;       // ns
    uint32_t revision;  // of the world
    const usi_scenery_sink *sink;
    bool is_full;
} usi_scenery_message;

void *usi_scenery_take(usi_scenery_message *m, size_t n, size_t each);  // cleared; NULL: is_full
// Makes a sequence of n elements, all 0.
#define USI_SCENERY_TAKE(m, sequence, n)                                                   \
    do {                                                                                   \
        (sequence)._buffer = usi_scenery_take(m, (size_t)(n), sizeof *(sequence)._buffer); \
        (sequence)._length = (sequence)._maximum = (sequence)._buffer ? (uint32_t)(n) : 0; \
    } while (0)
us_msg_time usi_scenery_time(int64_t time);
us_msg_pose usi_scenery_pose(us_pose X);
us_msg_scene_entity usi_scenery_entity(const usi_scenery_message *m, const char *id);

// Parts of the world, or of the bodies that are wanted, in the sink's dialect.
typedef struct usi_scenery_view {
    const usi_scenery_parts *parts;
    int32_t first, end;     // of the parts that this message may have
    bool is_still;          // those of the world
    bool is_new;            // all that was sent before goes
    const us_pose *X_WB;    // of each body
    const bool *is_wanted;  // of each body
} usi_scenery_view;
const void *usi_scenery_draw_parts(usi_scenery_message *m, const usi_scenery_view *view);
// Where a message that begins with part `first` ends: before it has much more than USI_SCENERY_BYTES, and not
// within a link.
enum { USI_SCENERY_BYTES = 1 << 20 };
int32_t usi_scenery_message_end(const usi_scenery_parts *parts, int32_t first);
const void *usi_scenery_draw_contacts(usi_scenery_message *m, const us_sim *sim);

// ---- scenery_ground.c ----

enum {
    USI_SCENERY_CELLS = 256,    // of a grid map, each way, at most
    USI_SCENERY_SAMPLES = 128,  // of a surface of triangles, each way, at most
    USI_SCENERY_BEDS = 16,      // beds of soil that are shown
    USI_SCENERY_TILES = 8,      // tiles of a bed in one message
};
// Height fields of the world: all of them as triangles, without what lies under touched tiles of beds; or the
// first as a map. NULL: there is none.
const void *usi_scenery_draw_ground(usi_scenery_message *m, const usi_revision *revision, const us_sim *sim,
                                    bool is_new);

// What was sent of a bed.
typedef struct usi_scenery_bed {
    uint32_t *version;  // of each touched tile, in their order
    int32_t n, cap;
    uint64_t digest;
    bool is_behind;  // there is more to send
} usi_scenery_bed;
// What has changed of a bed since: its touched part as one map, or some tiles as triangles. NULL: nothing.
const void *usi_scenery_draw_ruts(usi_scenery_message *m, const us_sim *sim, int32_t bed,
                                  usi_scenery_bed *sent, const us_allocator *allocator);

#endif
