// Going back: states kept under names, and the start.
//
// A state fits the world it was taken in: a snapshot keeps both, and restoring goes back to that revision
// first.
#include <stdio.h>
#include <string.h>

#include "spec/xml.h"
#include "world/world__inner.h"

static void drop(us_world *w, usi_snapshot *s) {
    usi_revision_unref(s->revision);
    usi_release(&w->allocator, s->bytes, s->length, USI_ALIGN);
}

void usi_world_drop_snapshots(us_world *w) {
    for (int32_t i = 0; i < w->n_snapshot; i++)
        drop(w, &w->snapshot[i]);
    w->n_snapshot = 0;
}

static int32_t find(const us_world *w, const char *name) {
    for (int32_t i = 0; i < w->n_snapshot; i++) {
        if (strcmp(w->snapshot[i].name, name) == 0) return i;
    }
    return -1;
}

static us_status fail_unknown(const us_world *w, const char *name, us_error *err) {
    usi_guess guess = usi_guess_start(name);
    char remedy[384] = "known:";
    for (int32_t i = 0; i < w->n_snapshot; i++) {
        size_t at = strlen(remedy);
        usi_guess_offer(&guess, w->snapshot[i].name);
        if (at + strlen(w->snapshot[i].name) + 3 < sizeof remedy)
            snprintf(remedy + at, sizeof remedy - at, "%s%s", i ? ", " : " ", w->snapshot[i].name);
    }
    if (w->n_snapshot == 0) snprintf(remedy, sizeof remedy, "there are none; make one with snapshot NAME");
    if (guess.best) snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no snapshot \"%.80s\"", name);
}

us_status usi_world_snapshot(us_world *w, const char *name, char *reply, size_t cap, us_error *err) {
    int32_t at = find(w, name);
    if (at < 0 && w->n_snapshot == USI_WORLD_SNAPSHOTS)
        return us_error_set(err, US_ERR_LIMIT, NULL, "drop one with forget NAME",
                            "there are %d snapshots already", (int)USI_WORLD_SNAPSHOTS);
    us_sim *sim = w->live.sim;
    usi_snapshot s = {.time = us_sim_get_time(sim)};
    us_status status = us_sim_save(sim, NULL, 0, &s.length);
    size_t size = s.length;
    if (!status) s.bytes = usi_alloc(&w->allocator, size, USI_ALIGN);
    if (!status && !s.bytes) status = US_ERR_MEMORY;
    if (!status) status = us_sim_save(sim, s.bytes, size, &s.length);
    if (status) {
        usi_release(&w->allocator, s.bytes, size, USI_ALIGN);
        return us_error_set(err, status, NULL, "free memory, or drop a snapshot with forget NAME",
                            "the snapshot cannot be made: %s", us_status_text(status));
    }
    s.length = size;
    s.revision = usi_revision_ref(w->live.revision);
    snprintf(s.name, sizeof s.name, "%s", name);
    if (at >= 0) {
        snprintf(reply, cap, "the one of %.3f s is replaced", w->snapshot[at].time);
        drop(w, &w->snapshot[at]);
    }
    w->snapshot[at >= 0 ? at : w->n_snapshot++] = s;
    return US_OK;
}

us_status usi_world_forget_snapshot(us_world *w, const char *name, us_error *err) {
    int32_t at = find(w, name);
    if (at < 0) return fail_unknown(w, name, err);
    drop(w, &w->snapshot[at]);
    memmove(&w->snapshot[at], &w->snapshot[at + 1], (size_t)(w->n_snapshot - at - 1) * sizeof w->snapshot[0]);
    w->n_snapshot--;
    return US_OK;
}

void usi_world_land(us_world *w) {
    us_error why = {0};
    w->is_fresh = true;
    w->request.n_step = 0;
    if (usi_world_record_next(w, &why)) us_world_log(w, 2, why.message);
    usi_hooks_changed(w);
}

us_status usi_world_restore(us_world *w, const char *name, us_error *err) {
    int32_t at = find(w, name);
    if (at < 0) return fail_unknown(w, name, err);
    const usi_snapshot *s = &w->snapshot[at];
    usi_revision *before = usi_revision_ref(w->live.revision);
    us_status status = usi_live_set_revision(&w->live, s->revision, err);
    if (!status) {
        status = us_sim_restore(w->live.sim, s->bytes, s->length);
        if (status) {
            us_error_set(err, status, NULL, "make another snapshot", "the snapshot cannot be restored: %s",
                         us_status_text(status));
            usi_live_set_revision(&w->live, before, NULL);
        }
    }
    usi_revision_unref(before);
    if (!status) usi_world_land(w);
    return status;
}

us_status usi_world_reset(us_world *w, bool keeps_edits, us_error *err) {
    us_status status = keeps_edits ? US_OK : usi_live_set_revision(&w->live, w->first, err);
    if (status) return status;
    status = us_sim_reset(w->live.sim);
    if (status)
        return us_error_set(err, status, NULL, NULL, "the start state cannot be set again: %s",
                            us_status_text(status));
    usi_world_land(w);
    return US_OK;
}

int32_t usi_world_n_snapshot(const us_world *w) { return w->n_snapshot; }

usi_snapshot_info usi_world_get_snapshot(const us_world *w, int32_t i) {
    return (usi_snapshot_info){w->snapshot[i].name, w->snapshot[i].time};
}
