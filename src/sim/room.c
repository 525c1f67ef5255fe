// Room for contacts: what a model has by itself, or by max-contact, is a first guess. A tick that finds more
// contact points stops in its collide stage, when nothing but scratch has been written but the commands of
// the tick; then everything that holds contacts is made anew, larger, and the stage is done again.
//
// The result is that of a sim with as much room from the start: the state moves over field by field, what it
// holds beyond the counts means nothing, and all else is scratch.
#include <string.h>

#include "sim/half_steps.h"

// As many are made by themselves; max-contact may be larger. 1 GiB or more.
enum { MAX_BY_ITSELF = 1 << 19 };

static void copy_fields(const us_sim *s, const usi_field *old, int32_t n, const usi_state *from,
                        usi_state *to) {
    usi_field f[USI_STATE_MAX_FIELDS];
    usi_state_fields(s->model, s->max_contact, s->n_plugin_byte, f, USI_STATE_MAX_FIELDS, NULL);
    for (int32_t i = 0; i < n; i++) {
        if (old[i].count > 0)
            memcpy((char *)to->block + f[i].offset, (const char *)from->block + old[i].offset,
                   old[i].count * old[i].each);
    }
}

// What was told to the old contacts from outside.
static void carry_contacts(const usi_contacts *old, usi_contacts *fresh) {
    fresh->fast = old->fast;
    fresh->patch = old->patch;
    fresh->is_trial = old->is_trial;
    fresh->ghost = old->ghost;
    fresh->pushed = old->pushed;
    fresh->only_tree = old->only_tree;
    fresh->n_solve = old->n_solve;
    fresh->n_iteration = old->n_iteration;
    fresh->n_fallback = old->n_fallback;
}

us_status usi_make_room(us_sim *s, int32_t max_contact) {
    const us_allocator *a = &s->allocator;
    usi_field old[USI_STATE_MAX_FIELDS];
    size_t old_size = 0;
    const int32_t old_max = s->max_contact;
    int32_t n = usi_state_fields(s->model, old_max, s->n_plugin_byte, old, USI_STATE_MAX_FIELDS, &old_size);
    usi_state now = s->now, next = s->next;
    usi_contacts *contacts = NULL;
    us_contact_event *event = usi_alloc(a, usi_event_bytes(max_contact), _Alignof(us_contact_event));
    us_status status =
        event ? usi_contacts_create(s->model, s->dyn, s->pool, a, max_contact, &contacts) : US_ERR_MEMORY;
    s->max_contact = max_contact;
    now.block = next.block = NULL;
    bool is_good = !status && usi_state_make(s, &now) && usi_state_make(s, &next) &&
                   usi_deformables_grow(s, max_contact) && usi_events_grow(s, max_contact);
    if (!is_good) {
        size_t size = s->state_size;
        usi_release(a, now.block, size, USI_ALIGN);
        usi_release(a, next.block, size, USI_ALIGN);
        usi_release(a, event, usi_event_bytes(max_contact), _Alignof(us_contact_event));
        usi_contacts_destroy(contacts);
        s->max_contact = old_max;
        s->state_size = old_size;
        return US_ERR_MEMORY;
    }
    copy_fields(s, old, n, &s->now, &now);
    copy_fields(s, old, n, &s->next, &next);
    memcpy(event, s->event, (size_t)s->n_event * sizeof *event);
    carry_contacts(s->contacts, contacts);
    usi_contacts_poison(contacts);
    usi_forget_passed(contacts);
    usi_contacts_destroy(s->contacts);
    usi_release(a, s->now.block, old_size, USI_ALIGN);
    usi_release(a, s->next.block, old_size, USI_ALIGN);
    usi_release(a, s->event, usi_event_bytes(old_max), _Alignof(us_contact_event));
    s->now = now;
    s->next = next;
    s->event = event;
    s->contacts = contacts;
    s->has_last_step = false;
    s->n_growth++;
    usi_let_all_run(s);
    return usi_half_steps_grow(s) ? US_OK : US_ERR_MEMORY;
}

bool usi_make_room_for_contacts(us_sim *s) {
    const usi_contacts *c = s->contacts;
    if (s->has_fixed_room || s->max_contact >= MAX_BY_ITSELF) return false;
    // Pairs have room in proportion to points.
    int64_t wanted = c->is_pair_error ? c->error_count / 4 : c->error_count;
    wanted += wanted / 4;
    if (wanted < 2 * (int64_t)s->max_contact) wanted = 2 * (int64_t)s->max_contact;
    if (wanted > MAX_BY_ITSELF) wanted = MAX_BY_ITSELF;
    return usi_make_room(s, (int32_t)wanted) == US_OK;
}

us_room us_sim_get_room(const us_sim *s) {
    return s ? (us_room){s->max_contact, s->n_growth} : (us_room){0, 0};
}
