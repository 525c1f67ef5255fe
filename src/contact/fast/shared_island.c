// A large island by several threads (USI_FAST_SHARE). Plain code gives each island to one thread.
//
// Each thread has a part of the points, or of the blocks, in their order. What it makes of them does not
// depend on the others: so the result is the same bits for any number of threads.
#include "contact/contact__parts.h"

enum { MIN_POINTS = 200, MAX_PARTS = 32 };

typedef struct shared {
    usi_contacts *c;
    usi_island *s;
    const usi_contact_state *now;
    usi_contact_state *next;
    int32_t n_part;
    int32_t n_press[MAX_PARTS];  // points with rows, of each part
    usi_rows_made made[MAX_PARTS];
} shared;

static shared start(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                    usi_contact_state *next) {
    shared x = {.c = c, .s = (usi_island *)s, .now = now, .next = next};
    const int32_t n = 2 * usi_pool_n_thread(c->pool);
    x.n_part = n < MAX_PARTS ? n : MAX_PARTS;
    return x;
}

static usi_span part_of(const shared *x, int32_t n, int32_t part) {
    return (usi_span){(int32_t)((int64_t)n * part / x->n_part),
                      (int32_t)((int64_t)n * (part + 1) / x->n_part)};
}

// Points of the built-in model without turning rows have one block each.
static bool has_one_block(const usi_contacts *c, const usi_contact_state *now) {
    const us_model *m = c->model;
    if (m->n_soil > 0 || m->n_loop > 0) return false;
    for (int32_t i = 0; i < m->n_material * m->n_material; i++) {
        if (usi_firm_model(c, i) != USI_MODEL_COMPLIANT || now->pair[i].torsion_radius > 0 ||
            now->pair[i].rolling_length > 0)
            return false;
    }
    return true;
}

bool usi_can_share(const usi_contacts *c, const usi_island *s, const usi_contact_state *now) {
    return usi_pool_n_thread(c->pool) > 1 && s->kind == USI_ISLAND_GAUSS_SEIDEL && s->n_point >= MIN_POINTS &&
           usi_is_fast(c, USI_FAST_SHARE) && has_one_block(c, now) &&
           !(c->collide.has_overlap && usi_overlap_in(c, s));
}

// ---------------------------------------------------------------- rows

static void count_part(void *context, int32_t part, int32_t thread) {
    shared *x = context;
    const usi_contacts *c = x->c;
    const usi_span points = part_of(x, x->s->n_point, part);
    const int32_t *order = c->islands.order + x->s->first_point;
    const bool can_skip = usi_can_skip(c, x->s);
    int32_t n = 0;
    (void)thread;
    for (int32_t i = points.first; i < points.end; i++)
        n += !can_skip || c->collide.point[order[i]].may_press;
    x->n_press[part] = n;
}

static void make_part(void *context, int32_t part, int32_t thread) {
    shared *x = context;
    const usi_span points = part_of(x, x->s->n_point, part);
    int32_t first = x->s->first_block;
    for (int32_t i = 0; i < part; i++)
        first += x->n_press[i];
    usi_block *at = &x->c->rows.block[first];
    usi_make_rows_of(x->c, x->s, x->now, x->next, thread, points.first, points.end, &at, &x->made[part]);
}

void usi_shared_rows(usi_contacts *c, usi_island *s, const usi_contact_state *now, usi_contact_state *next) {
    shared x = start(c, s, now, next);
    usi_pool_run(c->pool, x.n_part, 1, count_part, &x);
    usi_pool_run(c->pool, x.n_part, 1, make_part, &x);
    s->n_block = s->n_skipped = s->n_impact = 0;
    s->was_kept = true;
    for (int32_t i = 0; i < x.n_part; i++) {
        s->n_block += x.n_press[i];
        s->n_skipped += x.made[i].n_skipped;
        s->n_impact += x.made[i].n_impact;
        s->was_kept = s->was_kept && x.made[i].was_kept;
    }
}

// ---------------------------------------------------------------- after the sweeps

static void find_velocities(void *context, int32_t part, int32_t thread) {
    const shared *x = context;
    const usi_contacts *c = x->c;
    const usi_span blocks = part_of(x, x->s->n_block, part);
    (void)thread;
    for (int32_t i = x->s->first_block + blocks.first; i < x->s->first_block + blocks.end; i++)
        usi_block_velocity(&c->solve.body[x->s->first_body], &c->rows.block[i], c->solve.u + 3 * i);
}

void usi_shared_velocities(usi_contacts *c, const usi_island *s) {
    shared x = start(c, s, NULL, NULL);
    usi_pool_run(c->pool, x.n_part, 1, find_velocities, &x);
}

static void keep_part(void *context, int32_t part, int32_t thread) {
    const shared *x = context;
    (void)thread;
    usi_keep_rows_of(x->c, x->s, x->now, x->next, part_of(x, x->s->n_block, part),
                     part_of(x, x->s->n_point, part));
}

void usi_shared_keep(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                     usi_contact_state *next) {
    shared x = start(c, s, now, next);
    usi_release_bodies(c, s);
    usi_pool_run(c->pool, x.n_part, 1, keep_part, &x);
}
