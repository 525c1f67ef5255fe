// The line search of Newton's method: back from the end of a full step to where the slope of the potential is
// 0.
#include "contact/contact__law.h"
#include "contact/contact__newton.h"

enum { MAX_SEARCH = 40 };

// Slope of the potential at V + alpha step, from what was stored.
static double slope_at(usi_problem *p, double alpha) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    double sum = p->smooth0 + alpha * p->smooth1;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        double u[3], g[3];
        for (int j = 0; j < 3; j++)
            u[j] = p->u[3 * i + j] + alpha * p->du[3 * i + j];
        usi_law_impulse(&p->block[i], u, p->is_exact, g);
        for (int j = 0; j < 3; j++)
            sum -= g[j] * p->du[3 * i + j];
    }
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (usi_unit_is_free(p, k)) continue;
        int32_t t = c->islands.members[p->s->first_tree + k];
        const usi_tree *tree = &m->tree[t];
        for (int32_t i = tree->first; i < tree->end; i++) {
            c->solve.residual[i] = c->joints.vel[i] + alpha * c->joints.step_v[i];
            c->joints.work[i] = c->solve.diag[i] = 0;
        }
        usi_joint_rows(c, t, c->solve.residual, c->joints.work, c->solve.diag);
        for (int32_t i = tree->first; i < tree->end; i++)
            sum -= c->joints.work[i] * c->joints.step_v[i];
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        if (!usi_coupling_in(p, &m->coupling[k])) continue;
        double u = 0;
        for (int32_t i = 0; i < m->coupling[k].n_term; i++)
            u += m->coupling[k].factor[i] * c->joints.step_v[m->coupling[k].v[i]];
        sum -= (usi_coupling_impulse(p, &m->coupling[k], c->joints.vel) -
                alpha * usi_coupling_stiffness(p, &m->coupling[k]) * u) *
               u;
    }
    return sum;
}

// Changes of twists and row velocities along the step, and the smooth part's slope.
static void prepare_line(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    usi_newton_step_twists(p);
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        usi_v4 w = usi_v4_zero(), v = w;
        if (k->a >= 0) {
            w = p->step[2 * k->a];
            v = p->step[2 * k->a + 1];
        }
        if (k->b_ >= 0) {
            w -= p->step[2 * k->b_];
            v -= p->step[2 * k->b_ + 1];
        }
        for (int j = 0; j < 3; j++)
            p->du[3 * i + j] = usi_v4_sum(k->m[j] * w + k->d[j] * v);
    }
    p->smooth0 = p->smooth1 = 0;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i];
        if (usi_unit_is_free(p, i)) {
            int32_t b = c->collide.collision_body[c->tree_body_start[t]].body;
            const usi_free *body = &p->body[b];
            usi_v4 n, f, dn, df;
            usi_inertia_times(body->J, body->h, body->w, body->v, &n, &f);
            usi_inertia_times(body->J, body->h, p->step[2 * b], p->step[2 * b + 1], &dn, &df);
            p->smooth0 += usi_v4_sum((n - body->pw) * p->step[2 * b] + (f - body->pv) * p->step[2 * b + 1]);
            p->smooth1 += usi_v4_sum(dn * p->step[2 * b] + df * p->step[2 * b + 1]);
            continue;
        }
        const usi_tree *tree = &m->tree[t];
        usi_project_forces_of(c->dyn, (usi_span){tree->first, tree->end}, c->joints.work);
        for (int32_t j = tree->first; j < tree->end; j++) {
            c->joints.work[j] += m->armature[j] * c->joints.step_v[j];
            p->smooth1 += c->joints.work[j] * c->joints.step_v[j];
            p->smooth0 += c->joints.work[j] * (c->joints.vel[j] - p->in->v[j]) -
                          c->joints.impulse[j] * c->joints.step_v[j];
        }
    }
}

// How far to go back from the end of a full step, 0 .. 1 of it, to where the slope is 0. The potential is
// convex: the slopes at its start (< 0) and end
// (> 0) bracket the zero.
double usi_newton_search(usi_problem *p, double s_start, double s_end) {
    prepare_line(p);
    double low = -1, high = 0, s_low = s_start, s_high = s_end;
    for (int i = 0; i < MAX_SEARCH; i++) {
        double alpha = low + (high - low) * (-s_low / (s_high - s_low));
        // A zero near one end is approached from the other by halves, or false position would creep.
        if (i % 3 == 2) alpha = 0.5 * (low + high);
        double s = slope_at(p, alpha);
        if (fabs(s) <= 1e-2 * -s_start) return alpha;
        if (s > 0) {
            high = alpha;
            s_high = s;
        } else {
            low = alpha;
            s_low = s;
        }
    }
    return low > -1 ? low : high;
}
