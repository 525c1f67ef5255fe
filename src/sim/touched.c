// Trees that the contact solve moves, and those that are left to the integrator.
#include <string.h>

#include "sim/sim.h"

// Whether some loop or coupling is left to the integrator: those of touched trees are rows of the contact
// solve. Trees that one holds together are touched together.
static bool has_rows(const us_sim *s) {
    const us_model *m = s->model;
    if (!s->contacts) return m->n_row > 0;
    for (int32_t i = 0; i < m->n_coupling; i++) {
        if (!usi_is_touched(s, m->node[m->coupling[i].v[0]].tree)) return true;
    }
    for (int32_t i = 0; i < m->n_loop; i++) {
        int32_t node = m->loop[i].node_a >= 0 ? m->loop[i].node_a : m->loop[i].node_b;
        if (!usi_is_touched(s, m->node[node].tree)) return true;
    }
    return false;
}

void usi_choose_runs(us_sim *s, const us_command *c) {
    const us_model *m = s->model;
    if (s->has_joints_alone && !s->ghost && (!s->contacts || s->contacts->islands.n_island == 0)) {
        usi_run_all(s->dyn);
        return;
    }
    us_dyn *d = s->dyn;
    d->ignores_rows = m->n_row > 0 && !has_rows(s);
    bool no_rows = m->n_row == 0 || d->ignores_rows;
    bool by_momentum =
        no_rows && (m->integrator == US_INTEGRATOR_MIDPOINT || m->integrator == US_INTEGRATOR_EULER);
    d->n_run = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_tree *tree = &m->tree[t];
        if (usi_is_touched(s, t) || (by_momentum && tree->is_free_body && !usi_has_root_torque(tree, c)))
            continue;
        if (d->n_run > 0 && d->run[d->n_run - 1].end == tree->first)
            d->run[d->n_run - 1].end = tree->end;
        else
            d->run[d->n_run++] = (usi_span){tree->first, tree->end};
    }
}

// Trees that stand side by side go together.
void usi_take_touched(us_sim *s) {
    const us_model *m = s->model;
    if (!s->contacts && !s->ghost) return;
    const double inverse = 1 / m->step;
    for (int32_t t = 0, end; t < m->n_tree; t = end) {
        end = t + 1;
        if (!usi_is_touched(s, t)) continue;
        const bool is_still = usi_is_still(s, t);
        while (end < m->n_tree && usi_is_touched(s, end) && usi_is_still(s, end) == is_still)
            end++;
        const double *end_q = is_still ? s->now.q : s->end_q, *end_v = is_still ? s->now.v : s->end_v;
        const int32_t last = m->tree[end - 1].end;
        for (int32_t i = m->tree[t].first; i < last; i++) {
            s->next.v[i] = end_v[i];
            s->next.a[i] = (end_v[i] - s->now.v[i]) * inverse;
        }
        if (is_still && m->n_hold > 0) usi_stop_held(s, t, end);
        int32_t from = m->node[m->tree[t].first].q, to = last < m->n_node ? m->node[last].q : m->n_q;
        memcpy(s->next.q + from, end_q + from, (size_t)(to - from) * sizeof(double));
    }
}
