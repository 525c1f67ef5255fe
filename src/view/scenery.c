// When the scene is sent: what stands still once and to each that comes, what moves while it does.
#include <math.h>
#include <string.h>

#include "proxy/tap.h"
#include "view/view__scenery.h"
#include "world/hooks.h"

static const double FAST = 0.1, SLOW = 1.0;  // s of wall time between two looks: at what moves, at ruts

static const struct {
    const char *topic;
    const char *ros, *foxglove;
} contents[USI_SCENERY_COUNT] = {
    [USI_SCENERY_STILL] = {"/understudy/scene/still", "visualization_msgs/msg/MarkerArray",
                           "foxglove_msgs/msg/SceneUpdate"},
    [USI_SCENERY_MOVING] = {"/understudy/scene/moving", "visualization_msgs/msg/MarkerArray",
                            "foxglove_msgs/msg/SceneUpdate"},
    [USI_SCENERY_CONTACTS] = {"/understudy/scene/contacts", "visualization_msgs/msg/MarkerArray",
                              "foxglove_msgs/msg/SceneUpdate"},
    [USI_SCENERY_GROUND] = {"/understudy/scene/ground", "grid_map_msgs/msg/GridMap",
                            "foxglove_msgs/msg/SceneUpdate"},
    [USI_SCENERY_RUTS] = {"/understudy/scene/ruts", "grid_map_msgs/msg/GridMap",
                          "foxglove_msgs/msg/SceneUpdate"},
};

const char *usi_scenery_topic(usi_scenery_content content) { return contents[content].topic; }
const us_message_type *usi_scenery_type(usi_scenery_content content, bool is_foxglove) {
    return us_message_find(is_foxglove ? contents[content].foxglove : contents[content].ros);
}

struct usi_scenery {
    us_world *world;
    us_allocator allocator;
    usi_scenery_sink sink;
    double fast_due, slow_due;  // s, monotonic
    uint64_t arrivals[USI_SCENERY_COUNT];
    bool is_sent[USI_SCENERY_COUNT];  // of this revision and this past
    int32_t next[USI_SCENERY_COUNT];  // part that the next message begins with; 0: all were sent
    int64_t tick;                     // of the last look: time that goes back is another past
    uint32_t revision;                // of the parts; 0: none
    usi_scenery_parts parts;
    int32_t n_body;
    us_pose *X_WB, *sent;  // of each body: now, and when it was last sent
    bool *is_moved;
    int32_t n_touched;  // tiles of beds when ground was last sent
    usi_scenery_bed bed[USI_SCENERY_BEDS];
    usi_bytes bytes;
};

enum { MAX_BYTES = 64 * 1024 * 1024, AT_ONCE = 2 };  // AT_ONCE: messages of parts with one look

us_status usi_scenery_create(us_world *world, const usi_scenery_sink *sink, usi_scenery **out_scene,
                             us_error *err) {
    const us_allocator a = *usi_world_allocator(world);
    usi_scenery *s = usi_alloc(&a, sizeof *s, _Alignof(usi_scenery));
    if (!s) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for the scene's topics");
    *s = (usi_scenery){.world = world, .allocator = a, .sink = *sink};
    usi_bytes_init(&s->bytes, &a, MAX_BYTES);
    *out_scene = s;
    return US_OK;
}

static void forget_bodies(usi_scenery *s) {
    const us_allocator *a = &s->allocator;
    usi_release(a, s->X_WB, (size_t)s->n_body * sizeof *s->X_WB + 1, _Alignof(us_pose));
    usi_release(a, s->sent, (size_t)s->n_body * sizeof *s->sent + 1, _Alignof(us_pose));
    usi_release(a, s->is_moved, (size_t)s->n_body + 1, 1);
    s->X_WB = s->sent = NULL;
    s->is_moved = NULL;
    s->n_body = 0;
    usi_scenery_parts_fini(&s->parts);
    s->revision = 0;
}

static void forget_ruts(usi_scenery *s) {
    for (int32_t b = 0; b < USI_SCENERY_BEDS; b++) {
        s->bed[b].n = 0;
        s->bed[b].digest = 0;
        s->bed[b].is_behind = true;
    }
}

void usi_scenery_destroy(usi_scenery *s) {
    if (!s) return;
    const us_allocator a = s->allocator;
    forget_bodies(s);
    for (int32_t b = 0; b < USI_SCENERY_BEDS; b++)
        usi_release(&a, s->bed[b].version, (size_t)s->bed[b].cap * sizeof *s->bed[b].version,
                    _Alignof(max_align_t));
    usi_bytes_fini(&s->bytes);
    usi_release(&a, s, sizeof *s, _Alignof(usi_scenery));
}

// ---------------------------------------------------------------- what there is

// Parts and poses of the revision of now. False without memory: the next look may have more luck.
static bool take_revision(usi_scenery *s, const usi_revision *revision) {
    if (s->revision == revision->number) return true;
    forget_bodies(s);
    if (usi_scenery_parts_make(revision, &s->allocator, &s->parts)) return false;
    const int32_t n = us_spec_get_counts(revision->spec).n_link;
    s->n_body = n;
    s->X_WB = usi_alloc(&s->allocator, (size_t)n * sizeof *s->X_WB + 1, _Alignof(us_pose));
    s->sent = usi_alloc(&s->allocator, (size_t)n * sizeof *s->sent + 1, _Alignof(us_pose));
    s->is_moved = usi_alloc(&s->allocator, (size_t)n + 1, 1);
    if (!s->X_WB || !s->sent || !s->is_moved) {
        forget_bodies(s);
        return false;
    }
    s->revision = revision->number;
    memset(s->next, 0, sizeof s->next);
    memset(s->is_sent, 0, sizeof s->is_sent);
    forget_ruts(s);
    return true;
}

// A pose has changed when a viewer could see it.
static bool is_other(us_pose a, us_pose b) {
    const double x[7] = {a.p.x - b.p.x, a.p.y - b.p.y, a.p.z - b.p.z, a.q.w - b.q.w,
                         a.q.x - b.q.x, a.q.y - b.q.y, a.q.z - b.q.z};
    for (int k = 0; k < 7; k++) {
        if (!(fabs(x[k]) <= 1e-6)) return true;
    }
    return false;
}

static void take_poses(usi_scenery *s, const us_sim *sim, bool is_new) {
    for (int32_t i = 0; i < s->n_body; i++) {
        s->X_WB[i] = us_sim_get_pose(sim, (us_body){i});
        s->is_moved[i] = is_new || is_other(s->X_WB[i], s->sent[i]);
        if (s->is_moved[i]) s->sent[i] = s->X_WB[i];
    }
}

static int32_t count_touched(const us_sim *sim) {
    int32_t n = 0;
    for (int32_t b = 0; b < us_sim_n_deformable(sim) && b < USI_SCENERY_BEDS; b++)
        n += us_sim_get_deformable(sim, b).n_touched;
    return n;
}

// ---------------------------------------------------------------- sending

static void send(usi_scenery *s, usi_scenery_content content, const usi_scenery_message *m,
                 const void *message) {
    const us_message_type *type = usi_scenery_type(content, s->sink.is_foxglove);
    size_t length = 0;
    if (!message || m->is_full || us_message_encode(type, message, NULL, 0, &length)) return;
    s->bytes.length = 0;
    s->bytes.status = US_OK;
    void *room = usi_bytes_room(&s->bytes, length);
    if (room && !us_message_encode(type, message, room, length, &length))
        s->sink.send(s->sink.context, content, m->time, room, length);
}

// Parts of the world or of bodies, in as many messages as they take, some with each look: queues behind the
// sink have an end. The first takes away what was there.
static void show_parts(usi_scenery *s, usi_scenery_content content, int64_t time, const us_sim *sim,
                       bool is_new) {
    int32_t *next = &s->next[content];
    usi_scenery_view view = {.parts = &s->parts,
                             .is_still = content == USI_SCENERY_STILL,
                             .is_new = is_new,
                             .X_WB = s->X_WB,
                             .is_wanted = s->is_moved};
    if (is_new) *next = 0;
    // Poses are those of the moment when a round of messages began.
    if (content == USI_SCENERY_MOVING && *next == 0) take_poses(s, sim, is_new);
    for (int k = 0; k < AT_ONCE && (k == 0 || *next < s->parts.n); k++) {
        usi_arena arena;
        usi_arena_init(&arena, &s->allocator);
        usi_scenery_message m = {.arena = &arena, .time = time, .revision = s->revision, .sink = &s->sink};
        view.first = *next;
        view.end = *next = usi_scenery_message_end(&s->parts, *next);
        send(s, content, &m, usi_scenery_draw_parts(&m, &view));
        usi_arena_fini(&arena);
        view.is_new = false;
    }
    if (*next >= s->parts.n) *next = 0;
}

static void show_one(usi_scenery *s, usi_scenery_content content, int64_t time, const usi_revision *revision,
                     const us_sim *sim, bool is_new) {
    usi_arena arena;
    usi_arena_init(&arena, &s->allocator);
    usi_scenery_message m = {.arena = &arena, .time = time, .revision = s->revision, .sink = &s->sink};
    if (content == USI_SCENERY_GROUND) s->n_touched = count_touched(sim);
    send(s, content, &m,
         content == USI_SCENERY_GROUND ? usi_scenery_draw_ground(&m, revision, sim, is_new)
                                       : usi_scenery_draw_contacts(&m, sim));
    usi_arena_fini(&arena);
}

static void show_ruts(usi_scenery *s, int64_t time, const us_sim *sim, bool is_new) {
    if (is_new) forget_ruts(s);
    for (int32_t b = 0; b < us_sim_n_deformable(sim) && b < USI_SCENERY_BEDS; b++) {
        usi_arena arena;
        usi_arena_init(&arena, &s->allocator);
        usi_scenery_message m = {.arena = &arena, .time = time, .revision = s->revision, .sink = &s->sink};
        send(s, USI_SCENERY_RUTS, &m, usi_scenery_draw_ruts(&m, sim, b, &s->bed[b], &s->allocator));
        usi_arena_fini(&arena);
    }
}

static bool is_due(const usi_scenery *s, usi_scenery_content content, const us_sim *sim, bool is_new,
                   bool is_slow) {
    if (is_new || s->next[content] > 0) return true;
    // Ground gives way to ruts, where both are drawn.
    if (content == USI_SCENERY_GROUND)
        return is_slow && s->sink.is_foxglove && count_touched(sim) != s->n_touched;
    return content == USI_SCENERY_MOVING || content == USI_SCENERY_CONTACTS ||
           (content == USI_SCENERY_RUTS && is_slow);
}

void usi_scenery_show(usi_scenery *s, double now) {
    if (!s || now < s->fast_due) return;
    s->fast_due = now + FAST;
    bool is_wanted[USI_SCENERY_COUNT], is_any = false;
    uint64_t arrivals[USI_SCENERY_COUNT] = {0};
    for (int c = 0; c < USI_SCENERY_COUNT; c++) {
        is_wanted[c] = s->sink.is_wanted(s->sink.context, (usi_scenery_content)c, &arrivals[c]);
        is_any |= is_wanted[c];
    }
    if (!is_any) return;
    const bool is_slow = now >= s->slow_due;
    if (is_slow) s->slow_due = now + SLOW;
    usi_revision *revision = usi_world_take_revision(s->world);
    const us_sim *sim = us_world_get_sim(s->world);
    const int64_t tick = us_sim_get_tick(sim), time = usi_time_of(us_world_get_proxy(s->world), tick);
    if (tick < s->tick) memset(s->is_sent, 0, sizeof s->is_sent);
    s->tick = tick;
    for (int c = 0; take_revision(s, revision) && c < USI_SCENERY_COUNT; c++) {
        const bool is_new = !s->is_sent[c] || arrivals[c] != s->arrivals[c];
        if (!is_wanted[c] || !is_due(s, (usi_scenery_content)c, sim, is_new, is_slow)) continue;
        s->is_sent[c] = true;
        s->arrivals[c] = arrivals[c];
        if (c == USI_SCENERY_RUTS) {
            show_ruts(s, time, sim, is_new);
        } else if (c == USI_SCENERY_STILL || c == USI_SCENERY_MOVING) {
            show_parts(s, (usi_scenery_content)c, time, sim, is_new);
        } else {
            show_one(s, (usi_scenery_content)c, time, revision, sim, is_new);
        }
    }
    usi_revision_unref(revision);
}
