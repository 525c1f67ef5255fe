// The scene on DDS: a writer for each content, and a thread that writes, so that the step never waits.
#include <stdio.h>
#include <string.h>

#include "proxy/outbox.h"
#include "understudy/view.h"
#include "view/view__page.h"
#include "view/view__scenery.h"

struct us_scene_topics {
    us_allocator allocator;
    usi_scenery *scene;
    usi_outbox *outbox;
    us_writer *writer[USI_SCENERY_COUNT];
    int32_t n_match[USI_SCENERY_COUNT];  // when it was last looked at
    uint64_t n_arrival[USI_SCENERY_COUNT];
    char assets[300];  // "http://localhost:8080/api/asset/"
};

// What is latched waits for those who come later; the rest is for those who are there.
static bool is_wanted(void *context, usi_scenery_content content, uint64_t *out_arrivals) {
    us_scene_topics *t = context;
    *out_arrivals = t->n_arrival[content];
    if (us_qos_for_topic(usi_scenery_topic(content), NULL).is_transient_local) return true;
    const int32_t n = us_writer_n_match(t->writer[content]);
    if (n > t->n_match[content]) *out_arrivals = ++t->n_arrival[content];
    t->n_match[content] = n;
    return n > 0;
}

static void send(void *context, usi_scenery_content content, int64_t time, const void *bytes, size_t length) {
    us_scene_topics *t = context;
    usi_outbox_put(t->outbox, t->writer[content], bytes, length, time, 0);
    usi_outbox_ring(t->outbox);
}

// Where the view's server has its files: its address without what follows the port.
static void write_assets(us_scene_topics *t, const us_view *view) {
    const char *url = us_view_url(view);
    if (!url) return;
    const char *host = strstr(url, "://"), *end = host ? strchr(host + 3, '/') : NULL;
    if (end) snprintf(t->assets, sizeof t->assets, "%.*s/api/asset/", (int)(end - url), url);
}

static us_status add_writers(us_scene_topics *t, us_bus *bus, us_error *err) {
    int32_t node = -1;
    us_status status = us_bus_add_node(bus, "/understudy", "scene", &node, err);
    for (int c = 0; c < USI_SCENERY_COUNT && !status; c++) {
        const usi_scenery_content content = (usi_scenery_content)c;
        const us_message_type *type = usi_scenery_type(content, false);
        const us_topic_def def = {usi_scenery_topic(content), type,
                                  us_qos_for_topic(usi_scenery_topic(content), type), node};
        status = us_bus_add_writer(bus, &def, &t->writer[c], err);
    }
    return status;
}

us_status us_scene_topics_open(us_world *world, us_bus *bus, const us_view *view,
                               us_scene_topics **out_topics, us_error *err) {
    if (!world || !bus || !out_topics)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a world, a bus that is open, and a place",
                            "us_scene_topics_open: an argument is NULL");
    const us_allocator a = *usi_world_allocator(world);
    us_scene_topics *t = usi_alloc(&a, sizeof *t, _Alignof(us_scene_topics));
    if (!t) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for the scene's topics");
    *t = (us_scene_topics){.allocator = a};
    write_assets(t, view);
    const usi_scenery_sink sink = {
        .context = t, .assets = t->assets[0] ? t->assets : NULL, .is_wanted = is_wanted, .send = send};
    us_status status = usi_scenery_create(world, &sink, &t->scene, err);
    if (!status && usi_outbox_create(&a, &t->outbox))
        status = us_error_set(err, US_ERR_MEMORY, NULL, "free memory, or end other programs",
                              "the sending thread of the scene cannot be made");
    if (!status) status = add_writers(t, bus, err);
    if (status) {
        us_scene_topics_close(t);
        return status;
    }
    *out_topics = t;
    return US_OK;
}

void us_scene_topics_close(us_scene_topics *t) {
    if (!t) return;
    usi_outbox_destroy(t->outbox);
    for (int c = 0; c < USI_SCENERY_COUNT; c++) {
        if (t->writer[c]) us_writer_remove(t->writer[c]);
    }
    usi_scenery_destroy(t->scene);
    const us_allocator a = t->allocator;
    usi_release(&a, t, sizeof *t, _Alignof(us_scene_topics));
}

void us_scene_topics_show(us_scene_topics *t) {
    if (t) usi_scenery_show(t->scene, usi_view_clock());
}
