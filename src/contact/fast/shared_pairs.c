// Near pairs by several threads (USI_FAST_SHARE). Plain code finds the points of one pair after the other.
//
// The list of near pairs is cut into as many parts as there are threads. What is found in the first goes to
// its place, what is found in another to a list of that part, which is then put behind the others. So all of
// it stands in the order of the pairs, however many parts there were.
#include <string.h>

#include "contact/contact__collide.h"

enum { MIN_PAIRS = 256, MAX_PARTS = 8 };

typedef struct usi_found_pairs {
    usi_touch *touch;
    bool *may_press;
    usi_point_now *point;
    usi_contacts c;  // this step's, with these lists
} found_pairs;

static int32_t n_part_of(const usi_contacts *c) {
    const int32_t n = usi_pool_n_thread(c->pool);
    return n < MAX_PARTS ? n : MAX_PARTS;
}

bool usi_shared_pairs_create(usi_contacts *c) {
    const int32_t n = n_part_of(c) - 1;
    if (n == 0) return true;
    c->found = usi_arena_alloc(&c->fixed, (size_t)n * sizeof *c->found, _Alignof(found_pairs));
    for (int32_t i = 0; i < n && c->found; i++) {
        found_pairs *f = &c->found[i];
        const size_t room = (size_t)c->max_contact + 1;
        f->touch = usi_arena_alloc(&c->fixed, room * sizeof *f->touch, _Alignof(usi_touch));
        f->may_press = usi_arena_alloc(&c->fixed, room * sizeof *f->may_press, _Alignof(bool));
        f->point = usi_arena_alloc(&c->fixed, room * sizeof *f->point, _Alignof(usi_point_now));
        if (!f->touch || !f->may_press || !f->point) return false;
    }
    return c->found != NULL;
}

// Soil, and joints that broke, have lists of their own; rotations of links of trees are found when they are
// asked for.
bool usi_can_share_pairs(const usi_contacts *c) {
    const us_model *m = c->model;
    return usi_pool_n_thread(c->pool) > 1 && usi_is_fast(c, USI_FAST_SHARE) &&
           c->collide.n_near >= MIN_PAIRS && m->n_soil == 0 && m->n_region == 0 && m->n_loose == 0 &&
           !c->has_joints && !c->ghost && c->only_tree == 0;
}

typedef struct shared_pairs {
    usi_contacts *c;
    const usi_contact_state *now;
    int32_t n_part;
} shared_pairs;

static usi_span part_of(const shared_pairs *x, int32_t part) {
    const int64_t n = x->c->collide.n_near;
    return (usi_span){(int32_t)(n * part / x->n_part), (int32_t)(n * (part + 1) / x->n_part)};
}

static void find_part(void *context, int32_t part, int32_t thread) {
    const shared_pairs *x = context;
    (void)thread;
    usi_touch_pairs(part == 0 ? x->c : &x->c->found[part - 1].c, x->now, part_of(x, part));
}

// What a part has found, behind the others. More than there is room for is only counted.
static void append(usi_contacts *c, const found_pairs *f) {
    usi_collide_scratch *to = &c->collide;
    const usi_collide_scratch *from = &f->c.collide;
    c->error_count += f->c.error_count;
    if (c->error_count > c->max_contact) return;
    memcpy(to->touch_now + to->n_touch, from->touch_now, (size_t)from->n_touch * sizeof *to->touch_now);
    memcpy(to->may_press + to->n_touch, from->may_press, (size_t)from->n_touch * sizeof *to->may_press);
    memcpy(to->point + to->n_point, from->point, (size_t)from->n_point * sizeof *to->point);
    for (int32_t i = 0; i < from->n_touch; i++)
        to->touch_now[to->n_touch + i].first += to->n_point;
    for (int32_t i = 0; i < from->n_point; i++)
        to->point[to->n_point + i].touch += to->n_touch;
    to->n_touch += from->n_touch;
    to->n_point += from->n_point;
}

void usi_shared_pairs(usi_contacts *c, const usi_contact_state *now) {
    shared_pairs x = {c, now, n_part_of(c)};
    for (int32_t i = 0; i < x.n_part - 1; i++) {
        found_pairs *f = &c->found[i];
        f->c = *c;
        f->c.collide.touch_now = f->touch;
        f->c.collide.may_press = f->may_press;
        f->c.collide.point = f->point;
    }
    usi_pool_run(c->pool, x.n_part, 1, find_part, &x);
    for (int32_t i = 0; i < x.n_part - 1; i++)
        append(c, &c->found[i]);
}
