// Going back: states kept under names, and the start.
//
// A state fits the world it was taken in: a snapshot keeps both, and restoring takes the stage back to that
// world first.
#include <stdio.h>
#include <string.h>

#include "host/host.h"
#include "spec/xml.h"

static void drop(us_world *h, usi_snapshot *s) {
    usi_revision_unref(s->world);
    usi_release(&h->allocator, s->bytes, s->length, USI_ALIGN);
}

void usi_world_drop_snapshots(us_world *h) {
    for (int32_t i = 0; i < h->n_snapshot; i++)
        drop(h, &h->snapshot[i]);
    h->n_snapshot = 0;
}

static int32_t find(const us_world *h, const char *name) {
    for (int32_t i = 0; i < h->n_snapshot; i++) {
        if (strcmp(h->snapshot[i].name, name) == 0) return i;
    }
    return -1;
}

static us_status fail_unknown(const us_world *h, const char *name, us_error *err) {
    usi_guess guess = usi_guess_start(name);
    char remedy[384] = "known:";
    for (int32_t i = 0; i < h->n_snapshot; i++) {
        size_t at = strlen(remedy);
        usi_guess_offer(&guess, h->snapshot[i].name);
        if (at + strlen(h->snapshot[i].name) + 3 < sizeof remedy)
            snprintf(remedy + at, sizeof remedy - at, "%s%s", i ? ", " : " ", h->snapshot[i].name);
    }
    if (h->n_snapshot == 0) snprintf(remedy, sizeof remedy, "there are none; make one with snapshot NAME");
    if (guess.best) snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no snapshot \"%.80s\"", name);
}

us_status usi_world_snapshot(us_world *h, const char *name, char *reply, size_t cap, us_error *err) {
    int32_t at = find(h, name);
    if (at < 0 && h->n_snapshot == USI_WORLD_SNAPSHOTS)
        return us_error_set(err, US_ERR_LIMIT, NULL, "drop one with forget NAME",
                            "there are %d snapshots already", (int)USI_WORLD_SNAPSHOTS);
    us_sim *sim = h->stage.sim;
    usi_snapshot s = {.time = us_sim_get_time(sim)};
    us_status status = us_sim_save(sim, NULL, 0, &s.length);
    size_t size = s.length;
    if (!status) s.bytes = usi_alloc(&h->allocator, size, USI_ALIGN);
    if (!status && !s.bytes) status = US_ERR_MEMORY;
    if (!status) status = us_sim_save(sim, s.bytes, size, &s.length);
    if (status) {
        usi_release(&h->allocator, s.bytes, size, USI_ALIGN);
        return us_error_set(err, status, NULL, "free memory, or drop a snapshot with forget NAME",
                            "the snapshot cannot be made: %s", us_status_text(status));
    }
    s.length = size;
    s.world = usi_revision_ref(h->stage.world);
    snprintf(s.name, sizeof s.name, "%s", name);
    if (at >= 0) {
        snprintf(reply, cap, "the one of %.3f s is replaced", h->snapshot[at].time);
        drop(h, &h->snapshot[at]);
    }
    h->snapshot[at >= 0 ? at : h->n_snapshot++] = s;
    return US_OK;
}

us_status usi_world_forget_snapshot(us_world *h, const char *name, us_error *err) {
    int32_t at = find(h, name);
    if (at < 0) return fail_unknown(h, name, err);
    drop(h, &h->snapshot[at]);
    memmove(&h->snapshot[at], &h->snapshot[at + 1], (size_t)(h->n_snapshot - at - 1) * sizeof h->snapshot[0]);
    h->n_snapshot--;
    return US_OK;
}

// Time has jumped: what is recorded begins anew, and the state goes out before the next step.
static void land(us_world *h) {
    us_error why = {0};
    h->is_fresh = true;
    h->wish.n_step = 0;
    if (usi_world_record_next(h, &why)) us_world_log(h, 2, why.message);
    if (h->page) usi_page_changed(h->page);
}

us_status usi_world_restore(us_world *h, const char *name, us_error *err) {
    int32_t at = find(h, name);
    if (at < 0) return fail_unknown(h, name, err);
    const usi_snapshot *s = &h->snapshot[at];
    usi_revision *before = usi_revision_ref(h->stage.world);
    us_status status = usi_live_set_world(&h->stage, s->world, err);
    if (!status) {
        status = us_sim_restore(h->stage.sim, s->bytes, s->length);
        if (status) {
            us_error_set(err, status, NULL, "make another snapshot", "the snapshot cannot be restored: %s",
                         us_status_text(status));
            usi_live_set_world(&h->stage, before, NULL);
        }
    }
    usi_revision_unref(before);
    if (!status) land(h);
    return status;
}

us_status usi_world_reset(us_world *h, us_error *err) {
    us_status status = usi_live_set_world(&h->stage, h->first, err);
    if (status) return status;
    status = us_sim_reset(h->stage.sim);
    if (status)
        return us_error_set(err, status, NULL, NULL, "the start state cannot be set again: %s",
                            us_status_text(status));
    land(h);
    return US_OK;
}
