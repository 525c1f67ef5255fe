// Contact events: which pairs of shapes began or ceased to touch in a step.
//
// Both steps' lists of touching geoms are sorted by pair, so one pass over both finds what is in one alone.
// A shape of the spec may consist of several geoms: its pair begins with the first of their pairs and ends
// with the last, so a candidate is held against the whole other list. Where both are of one geom the pass has
// said all.
#include <string.h>

#include "sim/sim.h"
#include "understudy/query.h"

// The pair of a touch, by its lower and its higher geom.
static int64_t pair_of(const usi_touch *t) {
    return t->geom_a < t->geom_b ? (int64_t)t->geom_a << 32 | t->geom_b
                                 : (int64_t)t->geom_b << 32 | t->geom_a;
}

static bool is_same_touch(const usi_touch *a, const usi_touch *b) {
    const int32_t differs = (a->geom_a ^ b->geom_a) | (a->geom_b ^ b->geom_b);
    return !differs && a->n > 0 && b->n > 0;
}

static us_contact_event event_of(const us_model *m, const usi_touch *t, bool is_begin) {
    const usi_geom *a = &m->geom[t->geom_a], *b = &m->geom[t->geom_b];
    return (us_contact_event){{a->body}, {b->body}, a->shape, b->shape, is_begin};
}

static bool is_same_pair(const us_contact_event *a, const us_contact_event *b) {
    return (a->shape_a == b->shape_a && a->shape_b == b->shape_b) ||
           (a->shape_a == b->shape_b && a->shape_b == b->shape_a);
}

// Whether a geom is one of several of its shape. These stand side by side in the model.
static bool is_part(const us_model *m, int32_t geom) {
    const int32_t shape = m->geom[geom].shape;
    return (geom > 0 && m->geom[geom - 1].shape == shape) ||
           (geom + 1 < m->n_geom && m->geom[geom + 1].shape == shape);
}

static void add_event(us_sim *s, const usi_touch *t, const usi_contact_state *other, bool is_begin) {
    us_contact_event event = event_of(s->model, t, is_begin);
    if (!is_part(s->model, t->geom_a) && !is_part(s->model, t->geom_b)) {
        s->event[s->n_event++] = event;
        return;
    }
    for (int32_t i = 0; i < other->n_touch[0]; i++) {
        us_contact_event there = event_of(s->model, &other->touch[i], is_begin);
        if (other->touch[i].n > 0 && is_same_pair(&event, &there)) return;
    }
    for (int32_t i = 0; i < s->n_event; i++) {
        if (s->event[i].is_begin == is_begin && is_same_pair(&event, &s->event[i])) return;
    }
    s->event[s->n_event++] = event;
}

void usi_find_contact_events(us_sim *s) {
    const usi_contact_state *now = &s->now.contact, *before = &s->next.contact;
    s->n_event = 0;
    if (!s->event) return;
    const usi_touch *a = now->touch, *const a_end = a + now->n_touch[0];
    const usi_touch *b = before->touch, *const b_end = b + before->n_touch[0];
    for (;;) {
        // Nearly all pairs are those of the step before.
        while (a < a_end && b < b_end && is_same_touch(a, b)) {
            a++;
            b++;
        }
        // Touches without points are none.
        while (a < a_end && a->n == 0)
            a++;
        while (b < b_end && b->n == 0)
            b++;
        if (a == a_end && b == b_end) return;
        const int64_t pair_a = a < a_end ? pair_of(a) : INT64_MAX,
                      pair_b = b < b_end ? pair_of(b) : INT64_MAX;
        if (pair_a < pair_b) add_event(s, a, before, true);
        if (pair_b < pair_a) add_event(s, b, now, false);
        a += pair_a <= pair_b;
        b += pair_b <= pair_a;
    }
}

int32_t us_sim_n_contact_event(const us_sim *s) { return s ? s->n_event : 0; }

us_contact_event us_sim_get_contact_event(const us_sim *s, int32_t i) {
    us_contact_event none = {{-1}, {-1}, -1, -1, false};
    return s && i >= 0 && i < s->n_event ? s->event[i] : none;
}
