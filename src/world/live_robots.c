// The robots of a live world: those of the scene, and those that were added while it runs.
//
// The scene's robots have one proxy, which stays as long as the world: threads of the network and of the page
// look at it. Each robot that was added has a proxy of its own, with its own node, mailbox, gate and sending
// thread, so that it comes and goes without a word to the others:
//
//     model      [ scene's robots, n_own | added | added | added ]
//     proxies      proxy                   added[0] added[1] added[2]
//     state        plug-in 0               plug-in 1 ...
//
// When another revision takes over, every proxy finds its robots in the new model first, new ones are made
// beside the old, and the sim is made of the new model with the state of all that goes on. Only then, when
// nothing can fail but the network of the new ones, those that have no robot any more go.
#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "model/robots.h"
#include "proxy/tap.h"
#include "sim/sim.h"
#include "spec/spec.h"
#include "world/world__inner.h"

// ---------------------------------------------------------------- life

static int32_t count_own(const usi_revision *revision) {
    const us_model *m = revision->model;
    int32_t n = 0;
    while (n < m->n_robot && !revision->spec->group[m->robot[n].network->group].is_added)
        n++;
    return n;
}

static us_status add_part(usi_live *live, const us_model *model, int32_t robot, us_proxy **out,
                          us_error *err) {
    return usi_proxy_create_part(model, &live->proxy_def, &(usi_proxy_part){robot, 1, true}, out, err);
}

static us_status fail_number(us_error *err) {
    return us_error_set(err, US_ERR_LIMIT, NULL, "add fewer robots while the world runs",
                        "the world has more than %d robots that were added", USI_LIVE_ADDED);
}

us_status usi_live_init(usi_live *live, const us_allocator *allocator, usi_revision *revision,
                        const us_proxy_def *proxy, int32_t n_thread, us_error *err) {
    *live = (usi_live){.allocator = *allocator,
                       .revision = revision,
                       .last_revision = revision->number,
                       .proxy_def = *proxy,
                       .max_group = INT32_MAX};
    if (pthread_mutex_init(&live->lock, NULL) != 0) {
        usi_revision_unref(revision);
        live->revision = NULL;
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory, or end other programs",
                            "a lock cannot be made");
    }
    const us_model *model = revision->model;
    live->n_own = count_own(revision);
    us_status status = model->n_robot - live->n_own > USI_LIVE_ADDED ? fail_number(err) : US_OK;
    if (!status)
        status =
            usi_proxy_create_part(model, proxy, &(usi_proxy_part){0, live->n_own, false}, &live->proxy, err);
    for (int32_t i = live->n_own; i < model->n_robot && !status; i++) {
        status = add_part(live, model, i, &live->added[live->n_added], err);
        live->n_added += !status;
    }
    if (!status) {
        us_plugin parts[1 + USI_LIVE_ADDED] = {us_proxy_get_plugin(live->proxy)};
        for (int32_t i = 0; i < live->n_added; i++)
            parts[1 + i] = us_proxy_get_plugin(live->added[i]);
        us_sim_def def = us_sim_def_default();
        def.allocator = *allocator;
        def.n_thread = n_thread;
        def.n_plugin = 1 + live->n_added;
        def.plugins = parts;
        status = us_sim_create(model, &def, &live->sim, err);
    }
    if (status) usi_live_fini(live);
    return status;
}

void usi_live_limit(usi_live *live, int32_t max_object) {
    live->max_group = live->revision->spec->n_group + max_object;
}

void usi_live_fini(usi_live *live) {
    if (!live->revision) return;
    for (int32_t i = 0; i < live->n_added; i++)
        us_proxy_destroy(live->added[i]);
    us_proxy_destroy(live->proxy);
    us_sim_destroy(live->sim);
    usi_revision_unref(live->revision);
    pthread_mutex_destroy(&live->lock);
    *live = (usi_live){0};
}

us_status usi_live_connect(usi_live *live, us_bus *bus, us_error *err) {
    us_status status = us_proxy_connect(live->proxy, bus, err);
    for (int32_t i = 0; i < live->n_added && !status; i++)
        status = us_proxy_connect(live->added[i], bus, err);
    if (!status) live->bus = bus;
    return status;
}

// ---------------------------------------------------------------- by name

us_proxy *usi_live_find_proxy(const usi_live *live, const char *robot) {
    const us_model *m = live->revision->model;
    us_proxy *found = live->proxy;
    if (us_proxy_find_robot(live->proxy, robot) >= 0) return found;
    for (int32_t i = 0; i < live->n_added; i++) {
        const usi_robot_model *r = &m->robot[live->n_own + i];
        if (strcmp(r->name, robot) == 0) return live->added[i];
        if (strcmp(r->network->namespace_, robot) == 0) found = live->added[i];
    }
    return found;
}

us_status usi_live_post(const usi_live *live, const char *topic, const us_message_type *type,
                        const char *source, const void *bytes, size_t length) {
    us_status status = us_proxy_post(live->proxy, topic, type, source, bytes, length);
    for (int32_t i = 0; i < live->n_added && status == US_ERR_NAME; i++)
        status = us_proxy_post(live->added[i], topic, type, source, bytes, length);
    return status;
}

// ---------------------------------------------------------------- another revision

// What becomes of the proxies: of each of the new model's added robots one that goes on, or a new one.
typedef struct change {
    us_proxy *own_next;
    int32_t n;
    us_proxy *proxy[USI_LIVE_ADDED];
    us_proxy *next[USI_LIVE_ADDED];  // prepared; NULL: the proxy is new
} change;

static void drop(change *x) {
    usi_proxy_drop(x->own_next);
    for (int32_t i = 0; i < x->n; i++) {
        usi_proxy_drop(x->next[i]);
        if (!x->next[i]) us_proxy_destroy(x->proxy[i]);
    }
}

static us_status plan_robot(usi_live *live, const us_model *model, int32_t robot, change *x, us_error *err) {
    const char *name = model->robot[robot].name;
    us_error unused = {0};
    x->proxy[x->n] = x->next[x->n] = NULL;
    for (int32_t k = 0; k < live->n_added; k++) {
        if (strcmp(us_proxy_robot_name(live->added[k], 0), name) != 0) continue;
        // Another robot of the same name is a new one.
        const us_status status = usi_proxy_prepare(live->added[k], model, robot, &x->next[x->n], &unused);
        if (status == US_ERR_MEMORY) return us_error_set(err, status, NULL, "free memory", "no memory left");
        if (!status) x->proxy[x->n] = live->added[k];
    }
    us_status status = x->proxy[x->n] ? US_OK : add_part(live, model, robot, &x->proxy[x->n], err);
    x->n += !status;
    return status;
}

static us_status plan(usi_live *live, const us_model *model, change *x, us_error *err) {
    if (model->n_robot - live->n_own > USI_LIVE_ADDED) return fail_number(err);
    us_status status = usi_proxy_prepare(live->proxy, model, 0, &x->own_next, err);
    for (int32_t i = live->n_own; i < model->n_robot && !status; i++)
        status = plan_robot(live, model, i, x, err);
    return status;
}

// Those that have no robot any more.
static void end_others(usi_live *live, const change *x) {
    for (int32_t k = 0; k < live->n_added; k++) {
        bool goes_on = false;
        for (int32_t i = 0; i < x->n; i++)
            goes_on = goes_on || x->proxy[i] == live->added[k];
        if (goes_on) continue;
        if (live->on_robot) live->on_robot(live->robot_context, live->added[k], false);
        us_proxy_destroy(live->added[k]);
    }
}

// The network of those that are new.
static us_status begin_new(usi_live *live, const bool *is_new, us_error *err) {
    us_status status = US_OK;
    for (int32_t i = 0; i < live->n_added; i++) {
        if (!is_new[i]) continue;
        if (live->bus && !status) status = us_proxy_connect(live->added[i], live->bus, err);
        if (live->on_robot) live->on_robot(live->robot_context, live->added[i], true);
    }
    return status;
}

static us_status take_over(usi_live *live, usi_revision *revision, us_error *err) {
    change x = {0};
    bool is_new[USI_LIVE_ADDED] = {false};
    us_status status = plan(live, revision->model, &x, err);
    us_plugin parts[1 + USI_LIVE_ADDED] = {us_proxy_get_plugin(live->proxy)};
    for (int32_t i = 0; i < x.n; i++)
        parts[1 + i] = us_proxy_get_plugin(x.proxy[i]);
    if (!status) status = usi_sim_replace(live->sim, revision->model, 1 + x.n, parts, err);
    if (status) {
        drop(&x);
        return status;
    }
    usi_proxy_go_on(live->proxy, x.own_next);
    for (int32_t i = 0; i < x.n; i++) {
        is_new[i] = x.next[i] == NULL;
        if (x.next[i]) usi_proxy_go_on(x.proxy[i], x.next[i]);
    }
    end_others(live, &x);
    live->n_added = x.n;
    memcpy(live->added, x.proxy, sizeof live->added);
    usi_revision *old = live->revision;
    pthread_mutex_lock(&live->lock);
    live->revision = usi_revision_ref(revision);
    pthread_mutex_unlock(&live->lock);
    usi_revision_unref(old);
    return begin_new(live, is_new, err);
}

us_status usi_live_set_revision(usi_live *live, usi_revision *revision, us_error *err) {
    if (revision == live->revision) return US_OK;
    usi_revision *before = usi_revision_ref(live->revision);
    us_status status = take_over(live, revision, err);
    // A robot that cannot be on the network is taken back; all others have gone on.
    if (status && live->revision == revision) (void)take_over(live, before, NULL);
    usi_revision_unref(before);
    return status;
}
