// The solve of a step: each island by itself, in any order, on any thread.
#include <string.h>

#include "contact/contact__parts.h"
#include "contact/soil.h"

enum { MIN_SWEEPS = 4, MAX_SWEEPS = 10, MAX_POLISH = 100 };

typedef struct solve_context {
    usi_contacts *c;
    const usi_contact_state *now;
    usi_contact_state *next;
    const usi_contact_input *in;
} solve_context;

static void sweep(usi_contacts *c, usi_island *s, usi_pool *pool, int32_t thread) {
    usi_free *body = &c->solve.body[s->first_body];
    usi_block *block = &c->rows.block[s->first_block];
    void *work = c->solve.work[thread];
    if (usi_is_fast(c, USI_FAST_SWEEP))
        s->n_iteration += usi_gauss_seidel_four(body, s->n_body, block, s->n_block, MIN_SWEEPS, MAX_SWEEPS,
                                                1e-5, work, pool);
    else
        s->n_iteration +=
            usi_gauss_seidel(body, s->n_body, block, s->n_block, MIN_SWEEPS, MAX_SWEEPS, 1e-5, work);
    if (pool) {
        usi_shared_velocities(c, s);
        return;
    }
    for (int32_t i = 0; i < s->n_block; i++)
        usi_block_velocity(body, &block[i], c->solve.u + 3 * (s->first_block + i));
}

// Where heavy bodies jam, what light ones get wrong is below what Newton's method looks at: sweeps see each
// row by itself.
static void polish(usi_contacts *c, usi_island *s, int32_t thread) {
    for (int32_t i = 0; i < s->n_tree; i++) {
        if (!c->model->tree[c->islands.members[s->first_tree + i]].is_free_body) return;
    }
    if (s->failed) return;
    usi_free *body = &c->solve.body[s->first_body];
    usi_block *block = &c->rows.block[s->first_block];
    s->n_iteration +=
        usi_gauss_seidel(body, s->n_body, block, s->n_block, 1, MAX_POLISH, 1e-5, c->solve.work[thread]);
    for (int32_t i = 0; i < s->n_block; i++)
        usi_block_velocity(body, &block[i], c->solve.u + 3 * (s->first_block + i));
}

static void solve_rows(usi_contacts *c, usi_island *s, const usi_contact_input *in, int32_t thread) {
    switch ((usi_island_kind)s->kind) {
    case USI_ISLAND_GAUSS_SEIDEL:
        sweep(c, s, NULL, thread);
        break;
    case USI_ISLAND_RIGID:
        usi_rigid_island(c, s, in, thread);
        break;
    default:
        usi_newton(c, s, in, thread);
        if (s->fallback) polish(c, s, thread);
        break;
    }
}

// Points without rows that the solution goes through: from now on they have rows. A point without rows has no
// impulse, and while the solution ends with a gap at it that is what its law asks for: with none of these the
// solution is that of all points.
static bool find_missed(usi_contacts *c, usi_island *s) {
    const usi_free *body = &c->solve.body[s->first_body];
    const double h = c->model->step;
    usi_v4 w = usi_v4_zero(), v = w;
    bool any = false;
    for (int32_t i = 0, touch = -1; i < s->n_point; i++) {
        usi_point_now *p = &c->collide.point[c->islands.order[s->first_point + i]];
        if (p->may_press) continue;
        usi_grouped *pair = &c->islands.grouped[p->touch];
        if (p->touch != touch) {
            touch = p->touch;
            const int32_t a = c->collide.collision_body[pair->collision_body_a].body,
                          b = c->collide.collision_body[pair->collision_body_b].body;
            w = v = usi_v4_zero();
            if (a >= 0) {
                w = body[a].w;
                v = body[a].v;
            }
            if (b >= 0) {
                w -= body[b].w;
                v -= body[b].v;
            }
        }
        if (p->gap + h * usi_v4_dot(v + usi_v4_cross(w, p->p - s->O), p->n) >= 0) continue;
        // The pair's entry changes too, so that the islands are found anew in the next step.
        p->may_press = c->collide.may_press[touch] = pair->may_press = any = true;
    }
    if (any) {
        s->kind = (int32_t)usi_kind_of_island(c, s);
        s->is_again = true;
    }
    return any;
}

// Pushes overlaps apart: a solve for positions alone.
static bool push_apart(const solve_context *x, usi_island *s, int32_t thread) {
    usi_contacts *c = x->c;
    do {
        if (!usi_make_rows(c, s, x->now, x->next, thread)) return false;
        if (s->n_impact > 0) return true;
        usi_overlap_push(c, s);
        solve_rows(c, s, x->in, thread);
    } while (s->n_skipped > 0 && !s->failed && find_missed(c, s));
    usi_overlap_take(c, s);
    s->is_pushed = s->is_again = true;
    return !s->failed;
}

static void solve_one(void *context, int32_t i, int32_t thread) {
    solve_context *x = context;
    usi_contacts *c = x->c;
    usi_island *s = &c->islands.island[i];
    if (usi_can_share(c, s, x->now)) return;
    if (c->collide.has_overlap && usi_overlap_in(c, s) && !push_apart(x, s, thread)) {
        s->failed = true;
        return;
    }
    do {
        if (!usi_make_rows(c, s, x->now, x->next, thread)) {
            s->failed = true;
            return;
        }
        if (s->n_impact > 0) usi_impact_start(c, s);
        do
            solve_rows(c, s, x->in, thread);
        while (s->n_impact > 0 && usi_impact_again(c, s, x->next));
    } while (s->n_skipped > 0 && !s->failed && find_missed(c, s));
    usi_keep_rows(c, s, x->now, x->next);
    if (s->is_pushed) usi_overlap_keep(c, s, x->in, x->next);
}

// An island that is swept, by all threads.
static void solve_shared(const solve_context *x, usi_island *s) {
    usi_contacts *c = x->c;
    do {
        usi_shared_rows(c, s, x->now, x->next);
        if (s->n_impact > 0) usi_impact_start(c, s);
        do
            sweep(c, s, c->pool, 0);
        while (s->n_impact > 0 && usi_impact_again(c, s, x->next));
    } while (s->n_skipped > 0 && find_missed(c, s));
    usi_shared_keep(c, s, x->now, x->next);
}

// Adds an impulse along a block's rows to a ghost's link: about O as forces F and moments N, at the link's
// origin N - (p - O) x F.
static void add_ghost_wrench(const usi_contacts *c, const usi_island *s, const usi_block *k, int32_t geom,
                             double sign, us_wrench *out_wrench, bool *out_is_touched) {
    const us_model *m = c->model;
    const usi_geom *g = &m->geom[geom];
    if (g->tree < 0 || c->ghost[g->tree] == USI_OWN) return;
    const usi_collision_body *collision_body = &c->collide.collision_body[c->body_of_geom[geom]];
    usi_v4 f = usi_v4_zero(), n = f,
           at = collision_body->p + usi_to_world(collision_body, m->body[g->body].X_NB.p) - s->O;
    for (int j = 0; j < k->n; j++) {
        usi_v4 impulse = usi_v4_all(sign * k->g[j] / m->step);
        f += k->d[j] * impulse;
        n += k->m[j] * impulse;
    }
    us_wrench *w = &out_wrench[g->body];
    out_is_touched[g->body] = true;
    w->f = us_vec3_add(w->f, usi_v4_vec3(f));
    w->n = us_vec3_add(w->n, usi_v4_vec3(n - usi_v4_cross(at, f)));
}

void usi_contacts_wrenches(const usi_contacts *c, us_wrench *out_wrench, bool *out_is_touched) {
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        const usi_island *s = &c->islands.island[i];
        for (int32_t b = s->first_block; b < s->first_block + s->n_block; b++) {
            const usi_block *k = &c->rows.block[b];
            if (k->point < 0) continue;
            const usi_touch *t = &c->collide.touch_now[c->collide.point[k->point].touch];
            int32_t tree_a = usi_tree_of_geom(c, t->geom_a), tree_b = usi_tree_of_geom(c, t->geom_b);
            // What a ghost gets from the ground and from itself its owner knows better.
            if (tree_a < 0 || tree_b < 0 || (c->ghost[tree_a] == USI_OWN) == (c->ghost[tree_b] == USI_OWN))
                continue;
            add_ghost_wrench(c, s, k, t->geom_a, 1, out_wrench, out_is_touched);
            add_ghost_wrench(c, s, k, t->geom_b, -1, out_wrench, out_is_touched);
        }
    }
}

bool usi_solve_islands(usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                       const usi_contact_input *in) {
    next->n_touch[0] = c->collide.n_touch;
    next->n_anchor[0] = c->collide.n_point;
    if (c->collide.n_touch)
        memcpy(next->touch, c->collide.touch_now, (size_t)c->collide.n_touch * sizeof *next->touch);
    if (c->model->n_law_state > 0) usi_carry_law_state(c, now, next);
    if (c->model->n_ground_model > 0) usi_ask_grounds(c, now, next);
    if (c->islands.n_island == 0 && c->collide.n_touch == 0) return true;
    solve_context x = {c, now, next, in};
    c->actuation = in->actuation;
    usi_free_start(c, in);
    usi_rows_start(c);
    usi_pool_run(c->pool, c->islands.n_island, 1, solve_one, &x);
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        if (usi_can_share(c, &c->islands.island[i], now)) solve_shared(&x, &c->islands.island[i]);
    }
    // Pairs that are near each other, and in no island.
    for (int32_t i = 0; i < c->collide.n_touch && c->islands.has_idle; i++) {
        const usi_touch *t = &c->collide.touch_now[i];
        for (int32_t k = 0; k < t->n && c->islands.tree[c->islands.touch_tree[i]].island < 0; k++)
            usi_keep_place(c, t->first + k, now, next);
    }
    usi_free_finish(c, in);
    if (c->collide.has_overlap) usi_overlap_finish(c, in);
    bool ok = true;
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        ok = ok && !c->islands.island[i].failed;
        c->n_iteration += c->islands.island[i].n_iteration;
        const uint32_t fallback = c->islands.island[i].fallback;
        c->n_fallback += fallback != 0;
        for (int k = 0; k < USI_N_FALLBACK && fallback != 0; k++)
            c->n_fallback_by[k] += fallback >> k & 1;
        c->n_solve++;
    }
    return ok;
}
