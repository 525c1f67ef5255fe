// What overlaps when it meets for the first time: it is pushed apart, and gets no speed of it.
//
// Contact is found before it is one, so that what comes together by its own motion is seen with a gap first.
// A pair that is new and deep was put there: at the start, by hand, or by an edit. Its springs, bent by what
// nobody has bent, would throw it out. Instead the pair keeps its depth as `overlap`, part of the state, and
// gaps are measured as if its surfaces lay that much inside the shapes: at first the pair just touches.
//
//     ____________ A                     the surfaces go back to where they belong, by `overlap` / 50 ms,
//      - - - - - - effective surface     and take the bodies along: positions are those of a solve in which
//     ============ B                     the rows push at this speed, velocities those of one where they do
//                                        not.
//
// What does not give way (a link between two others) keeps its overlap and is at peace with it. The island is
// solved twice as long as there is some.
#include <math.h>

#include "contact/contact__parts.h"

// Less than this, m, is pressed by its weight, or a place that was written with few digits: springs bring it
// out with a hop of less than a millimetre.
static const double MIN_OVERLAP = 1.5e-4, MIN_OVERLAP_GHOST = 1e-3;
// What is left of one when it is over, m.
static const double LEFT_OVER = 1e-6;
// How fast the surfaces go back: in this time, s, by a factor of e, and not slower than this, m/s.
static const double PUSH_TIME = 0.05, MIN_PUSH = 1e-3;

// Whether a pair's springs are ours to choose: an overlap of what has a stiffness given is its own spring's.
static bool is_ours(const usi_contacts *c, const usi_contact_state *now, const usi_touch *t) {
    const us_model *m = c->model;
    const int32_t entry = t->material * m->n_material + m->geom[t->geom_b].material;
    return usi_firm_model(c, entry) == USI_MODEL_COMPLIANT && !m->geom[t->geom_a].has_region &&
           (now->pair[entry].stiffness == 0 || m->solver == USI_SOLVER_RIGID_DIRECT ||
            m->solver == USI_SOLVER_RIGID_ITERATIVE);
}

// How deep a new pair must be to have been put there, m. A ghost that has woken up may press already; nothing
// presses deeper than a part of a millimetre.
static double min_overlap(const usi_contacts *c, const usi_touch *t) {
    const int32_t a = usi_tree_of_geom(c, t->geom_a), b = usi_tree_of_geom(c, t->geom_b);
    const bool has_ghost =
        c->ghost && ((a >= 0 && c->ghost[a] != USI_OWN) || (b >= 0 && c->ghost[b] != USI_OWN));
    return has_ghost ? MIN_OVERLAP_GHOST : MIN_OVERLAP;
}

void usi_overlap_find(usi_contacts *c, const usi_contact_state *now, usi_touch *t, bool is_new) {
    usi_point_now *const p = &c->collide.point[t->first];
    double depth = 0;
    for (int32_t i = 0; i < t->n; i++)
        depth = fmax(depth, -p[i].gap);
    // What is put down on trial is to press.
    const bool can_overlap = !c->is_trial && depth >= min_overlap(c, t) && is_ours(c, now, t);
    if (is_new) t->overlap = can_overlap ? (float)depth : 0;
    if ((double)t->overlap > depth) t->overlap = (float)depth;
    if (t->overlap < (float)LEFT_OVER) t->overlap = 0;
    if (t->overlap == 0) return;
    c->collide.has_overlap = true;
    for (int32_t i = 0; i < t->n; i++)
        p[i].gap += (double)t->overlap;
}

static double overlap_of(const usi_contacts *c, const usi_block *k) {
    return k->law == USI_POINT ? (double)c->collide.touch_now[c->collide.point[k->point].touch].overlap : 0;
}

bool usi_overlap_in(const usi_contacts *c, const usi_island *s) {
    for (int32_t i = 0; i < s->n_point; i++) {
        if (c->collide.touch_now[c->collide.point[c->islands.order[s->first_point + i]].touch].overlap > 0)
            return true;
    }
    return false;
}

void usi_overlap_push(usi_contacts *c, const usi_island *s) {
    for (int32_t i = 0; i < s->n_block; i++) {
        usi_block *k = &c->rows.block[s->first_block + i];
        const double overlap = overlap_of(c, k);
        if (overlap == 0) continue;
        const double max = c->islands.grouped[c->collide.point[k->point].touch].separation,
                     speed = fmin(max, fmax(overlap / PUSH_TIME, MIN_PUSH));
        k->b[0] -= fmin(speed, overlap / c->model->step);
    }
}

void usi_overlap_take(usi_contacts *c, const usi_island *s) {
    for (int32_t i = 0; i < s->n_body; i++) {
        const usi_free *b = &c->solve.body[s->first_body + i];
        c->solve.push[2 * (s->first_body + i)] = b->w;
        c->solve.push[2 * (s->first_body + i) + 1] = b->v;
    }
    for (int32_t i = 0; i < s->n_tree; i++) {
        const usi_tree *tree = &c->model->tree[c->islands.members[s->first_tree + i]];
        for (int32_t j = tree->first; j < tree->end; j++)
            c->solve.push_v[j] = c->joints.vel[j];
    }
    for (int32_t i = 0; i < s->n_block; i++) {
        const usi_block *k = &c->rows.block[s->first_block + i];
        if (overlap_of(c, k) > 0)
            c->solve.push_u[k->point] = k->g[0] > 0 ? c->solve.u[3 * (s->first_block + i)] : INFINITY;
    }
}

// What is left of the overlaps: less by what the push has moved their points apart, the least of a pair.
static void keep_overlaps(const usi_contacts *c, const usi_island *s, usi_contact_state *next) {
    const double h = c->model->step;
    double moved = INFINITY;
    for (int32_t i = 0; i < s->n_block; i++) {
        const usi_block *k = &c->rows.block[s->first_block + i];
        if (overlap_of(c, k) == 0) continue;
        const int32_t touch = c->collide.point[k->point].touch;
        const double push = c->solve.push_u[k->point];
        if (push < INFINITY) moved = fmin(moved, h * (push - c->solve.u[3 * (s->first_block + i)]));
        // The points of a pair follow each other, each with a block of turning perhaps.
        bool is_last = true;
        for (int32_t l = i + 1; l < s->n_block && is_last && l < i + 4; l++)
            is_last = k[l - i].law != USI_POINT || c->collide.point[k[l - i].point].touch != touch;
        if (!is_last) continue;
        if (moved > 0 && moved < INFINITY)
            next->touch[touch].overlap = (float)fmax(0, (double)next->touch[touch].overlap - moved);
        moved = INFINITY;
    }
}

void usi_overlap_keep(usi_contacts *c, const usi_island *s, const usi_contact_input *in,
                      usi_contact_state *next) {
    const us_model *m = c->model;
    keep_overlaps(c, s, next);
    for (int32_t i = 0; i < s->n_tree; i++) {
        const int32_t t = c->islands.members[s->first_tree + i];
        const usi_tree *tree = &m->tree[t];
        c->islands.tree[t].is_released = false;
        if (tree->is_free_body) continue;
        for (int32_t j = tree->first; j < tree->end; j++)
            c->joints.work[j] = m->step * c->solve.push_v[j];
        usi_add_range(m, in->q, c->joints.work, in->out_q, tree->first, tree->end);
    }
}

void usi_overlap_finish(usi_contacts *c, const usi_contact_input *in) {
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        const usi_island *s = &c->islands.island[i];
        for (int32_t b = s->first_body; s->is_pushed && b < s->first_body + s->n_body; b++) {
            const usi_collision_body *k = &c->collide.collision_body[c->islands.collision_body_of[b]];
            const usi_tree *tree = &c->model->tree[k->tree];
            if (!tree->is_free_body) continue;
            double v[6];
            for (int j = 0; j < 6; j++)
                v[j] = in->out_v[tree->first + j];
            usi_free pushed = c->solve.body[b];
            pushed.w = c->solve.push[2 * b];
            pushed.v = c->solve.push[2 * b + 1];
            usi_free_finish_one(c, in, k, &pushed);
            for (int j = 0; j < 6; j++)
                in->out_v[tree->first + j] = v[j];
        }
    }
}
