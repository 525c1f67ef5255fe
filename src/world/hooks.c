// The hooks of a live world: a short list, called in the order in which they were added.
#include "world/hooks.h"

#include <string.h>

#include "world/world__inner.h"

us_status usi_world_add_hooks(us_world *w, const usi_world_hooks *hooks) {
    pthread_mutex_lock(&w->hooks_lock);
    bool has_room = w->n_hooks < USI_WORLD_HOOKS;
    if (has_room) w->hooks[w->n_hooks++] = *hooks;
    pthread_mutex_unlock(&w->hooks_lock);
    return has_room ? US_OK : US_ERR_LIMIT;
}

void usi_world_remove_hooks(us_world *w, const void *context) {
    pthread_mutex_lock(&w->hooks_lock);
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_hooks; i++) {
        if (w->hooks[i].context != context) w->hooks[n++] = w->hooks[i];
    }
    w->n_hooks = n;
    pthread_mutex_unlock(&w->hooks_lock);
}

bool usi_world_has_hooks(const us_world *w, const char *name) {
    bool has = false;
    for (int32_t i = 0; i < w->n_hooks; i++)
        has |= strcmp(w->hooks[i].name, name) == 0;
    return has;
}

void usi_hooks_log(us_world *w, int32_t level, const char *text) {
    double time = atomic_load_explicit(&w->time, memory_order_relaxed);
    pthread_mutex_lock(&w->hooks_lock);
    for (int32_t i = 0; i < w->n_hooks; i++) {
        if (w->hooks[i].log) w->hooks[i].log(w->hooks[i].context, level, time, text);
    }
    pthread_mutex_unlock(&w->hooks_lock);
}

// The list changes on the thread that steps alone: the others need no lock.

void usi_hooks_changed(us_world *w) {
    for (int32_t i = 0; i < w->n_hooks; i++) {
        if (w->hooks[i].changed) w->hooks[i].changed(w->hooks[i].context);
    }
}

void usi_hooks_poll(us_world *w) {
    for (int32_t i = 0; i < w->n_hooks; i++) {
        if (w->hooks[i].poll) w->hooks[i].poll(w->hooks[i].context);
    }
}

bool usi_hooks_are_elsewhere(const us_world *w, const usi_command *command) {
    bool is_elsewhere = false;
    for (int32_t i = 0; i < w->n_hooks; i++)
        is_elsewhere |= w->hooks[i].is_elsewhere && w->hooks[i].is_elsewhere(w->hooks[i].context, command);
    return is_elsewhere;
}

us_status usi_hooks_check(us_world *w, const usi_command *command, us_error *err) {
    us_status status = US_OK;
    for (int32_t i = 0; i < w->n_hooks && !status; i++) {
        if (w->hooks[i].check) status = w->hooks[i].check(w->hooks[i].context, command, err);
    }
    return status;
}

us_status usi_hooks_before_step(us_world *w, bool *out_is_ready, us_error *err) {
    us_status status = US_OK;
    *out_is_ready = true;
    for (int32_t i = 0; i < w->n_hooks && !status && *out_is_ready; i++) {
        if (w->hooks[i].before_step) status = w->hooks[i].before_step(w->hooks[i].context, out_is_ready, err);
    }
    return status;
}

const us_command *usi_hooks_step_command(us_world *w) {
    for (int32_t i = 0; i < w->n_hooks; i++) {
        if (w->hooks[i].step_command) return w->hooks[i].step_command(w->hooks[i].context);
    }
    return NULL;
}

us_status usi_hooks_after_step(us_world *w, us_error *err) {
    us_status status = US_OK;
    for (int32_t i = 0; i < w->n_hooks && !status; i++) {
        if (w->hooks[i].after_step) status = w->hooks[i].after_step(w->hooks[i].context, err);
    }
    return status;
}

bool usi_hooks_are_partial(const us_world *w) {
    bool is_partial = false;
    for (int32_t i = 0; i < w->n_hooks; i++)
        is_partial |= w->hooks[i].is_partial;
    return is_partial;
}

const us_allocator *usi_world_allocator(const us_world *w) { return &w->allocator; }

bool usi_world_is_connected(const us_world *w) { return w->topics != NULL; }

void usi_world_jumped(us_world *w) {
    w->request.change++;
    w->is_fresh = true;
}
