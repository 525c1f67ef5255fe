// Loop closures: the wrench that each gave to its first link in the last step, for reactions
// (query_reaction.c).
//
// A step closes loops in three places: by the accelerations of the integrator, by rows of the contact solve
// in trees that touch something, and by the projection of the velocities at its end. The impulses of all
// three over the step's length are the mean wrench. A row that depends on others carries no force: where a
// mechanism is statically indeterminate (the third row of a planar loop) this is one of many possible
// answers.
#include <string.h>

#include "sim/sim.h"

static int32_t tree_of(const us_model *m, const usi_loop *l) {
    return m->node[l->node_a >= 0 ? l->node_a : l->node_b].tree;
}

static void add(us_sim *s, int32_t loop, double weight, us_wrench w) {
    us_wrench *sum = &s->closure[loop];
    sum->n = us_vec3_add(sum->n, us_vec3_scale(weight, w.n));
    sum->f = us_vec3_add(sum->f, us_vec3_scale(weight, w.f));
}

// Moment and force of a block of the contact solve, on its first body.
static us_vec3 block_sum(const usi_block *k, const usi_v4 *direction, double step) {
    usi_v4 sum = usi_v4_zero();
    for (int j = 0; j < k->n; j++)
        sum += direction[j] * usi_v4_all(k->g[j] / step);
    return usi_v4_vec3(sum);
}

// The loops of an island stand behind its contact points, each as a block of forces and, unless it holds a
// point alone, one of moments.
static void take_island(us_sim *s, int32_t island) {
    const us_model *m = s->model;
    const usi_contacts *c = s->contacts;
    const usi_block *k = &c->rows.block[c->islands.island[island].first_block];
    const usi_block *end = k + c->islands.island[island].n_block;
    while (k < end && k->law != USI_EQUAL)
        k++;
    for (int32_t i = 0; i < m->n_loop; i++) {
        const int32_t tree = tree_of(m, &m->loop[i]);
        if (c->islands.tree[tree].island != island) continue;
        const bool has_moment = m->loop[i].n_axis > 0;
        us_wrench w = {{0, 0, 0}, block_sum(k, k->d, m->step)};
        if (has_moment) w.n = block_sum(k + 1, (k + 1)->m, m->step);
        if (usi_is_touched(s, tree)) add(s, i, 1, w);
        k += has_moment ? 2 : 1;
    }
}

void usi_closures_start(us_sim *s) {
    memset(s->closure, 0, (size_t)s->model->n_loop * sizeof *s->closure);
    for (int32_t i = 0; s->contacts && i < s->contacts->islands.n_island; i++)
        take_island(s, i);
}

void usi_closures_add(us_sim *s, double weight) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_loop && !s->dyn->ignores_rows; i++) {
        if (!usi_is_touched(s, tree_of(m, &m->loop[i]))) add(s, i, weight, usi_loop_wrench(s->dyn, i));
    }
}

void usi_closures_add_projection(us_sim *s) {
    for (int32_t i = 0; i < s->model->n_loop; i++)
        add(s, i, 1 / s->model->step, usi_loop_wrench(s->dyn, i));
}
