// The residual of Newton's method: impulses of all rows at the iterate, their slopes, and what is left of
// each momentum.
#include "contact/contact__law.h"
#include "contact/contact__newton.h"

// ---------------------------------------------------------------- trees

// Twists of a tree's links about its own origin, from joint velocities: into the links. The last one's is at
// hand for the next, mostly its child.
void usi_tree_twists(const usi_problem *p, int32_t t, const double *v) {
    const us_model *m = p->c->model;
    usi_link *link = p->c->dyn->link;
    usi_v4 w = usi_v4_zero(), o = w;
    for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) {
        int32_t parent = m->node[i].parent;
        if (parent < 0)
            w = o = usi_v4_zero();
        else if (parent != i - 1) {
            w = link[parent].w;
            o = link[parent].v;
        }
        w += link[i].Sw * v[i];
        o += link[i].Sv * v[i];
        link[i].w = w;
        link[i].v = o;
    }
}

// Momenta of a tree's links about its own origin, from changes of the joint velocities: into their n and f.
// The links' own changes stand in the place of their accelerations.
void usi_tree_momenta(const usi_problem *p, int32_t t, const double *delta) {
    const us_model *m = p->c->model;
    usi_link *link = p->c->dyn->link;
    usi_v4 w = usi_v4_zero(), o = w;
    for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) {
        usi_link *k = &link[i];
        int32_t parent = m->node[i].parent;
        if (parent < 0)
            w = o = usi_v4_zero();
        else if (parent != i - 1) {
            w = link[parent].aw;
            o = link[parent].av;
        }
        w += k->Sw * delta[i];
        o += k->Sv * delta[i];
        k->aw = w;
        k->av = o;
        k->n = k->f = usi_v4_zero();
        if (!(m->node[i].flags & USI_NODE_MASSIVE)) continue;
        usi_inertia_times(k->J, k->h, w, o, &k->n, &k->f);
    }
}

// ---------------------------------------------------------------- the residual

// The sum of a^2 b, four at a time: one after the other each sum would wait for the one before.
static double squares_over(int32_t n, const double *a, const double *b) {
    usi_v4 four = usi_v4_zero();
    double rest = 0;
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        four += *(const usi_v4_unaligned *)(a + i) * *(const usi_v4_unaligned *)(a + i) *
                *(const usi_v4_unaligned *)(b + i);
    for (; i < n; i++)
        rest += a[i] * a[i] * b[i];
    return usi_v4_sum(four) + rest;
}

// What the joint velocities of the trees have changed by since the step began, and the momenta of that: once
// for the twists of the bodies and for the residual.
static void find_changes(usi_problem *p) {
    usi_contacts *c = p->c;
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (usi_unit_is_free(p, i)) continue;
        const int32_t t = c->islands.members[p->s->first_tree + i], first = c->model->tree[t].first,
                      end = c->model->tree[t].end;
        for (int32_t j = first; j < end; j++)
            c->solve.delta[j] = c->joints.vel[j] - p->in->v[j];
        if (p->has_moved) {
            usi_tree_momenta(p, t, c->solve.delta);
            continue;
        }
        for (int32_t j = first; j < end; j++) {
            usi_link *l = &c->dyn->link[j];
            l->aw = l->av = l->n = l->f = usi_v4_zero();
        }
    }
}

// Twists of the bodies of trees that are hit about O: those at the start of the step, which the links have,
// and what they have changed by.
static void find_twists(usi_problem *p) {
    const usi_contacts *c = p->c;
    for (int32_t i = 0; i < p->n_hit; i++) {
        const usi_collision_body *k = usi_body_collision_body(p, p->hit[i]);
        if (c->model->tree[k->tree].is_free_body) continue;
        const usi_link *l = &c->dyn->link[k->node];
        const usi_v4 w = l->w + l->aw;
        usi_free *body = &p->body[p->hit[i]];
        body->w = w;
        body->v = l->v + l->av + usi_v4_cross(w, usi_origin_shift(p, k->tree));
    }
}

void usi_newton_step_twists(usi_problem *p) {
    const usi_contacts *c = p->c;
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (!usi_unit_is_free(p, k))
            usi_tree_momenta(p, c->islands.members[p->s->first_tree + k], c->joints.step_v);
    }
    for (int32_t i = 0; i < (p->is_free ? p->s->n_body : p->n_hit); i++) {
        const int32_t b = p->is_free ? i : p->hit[i];
        const usi_collision_body *k = usi_body_collision_body(p, b);
        if (c->model->tree[k->tree].is_free_body) {
            const double *x = p->x + p->unit_start[c->islands.tree[k->tree].variable];
            p->step[2 * b] = usi_v4_set(x[0], x[1], x[2]);
            p->step[2 * b + 1] = usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        const usi_link *l = &c->dyn->link[k->node];
        p->step[2 * b] = l->aw;
        p->step[2 * b + 1] = l->av + usi_v4_cross(l->aw, usi_origin_shift(p, k->tree));
    }
}

// Friction as if there were no limit.
static usi_v4 hold_block(const usi_block *k, usi_v4 u, double normal, double G[9]) {
    usi_v4 g = {normal, 0, 0, 0};
    for (int j = 1; j < 3; j++) {
        g[j] = -(u[j] + k->b[j]) * k->K[1] - k->viscous * u[j];
        G[3 * j] = G[3 * j + 1] = G[3 * j + 2] = 0;
        G[4 * j] = k->K[1] + k->viscous;
    }
    return g;
}

// What a run of blocks does to its two bodies.
static inline void apply_to_bodies(usi_problem *p, const usi_block *k, usi_v4 n, usi_v4 f) {
    if (k->a >= 0) {
        p->force[2 * k->a] += n;
        p->force[2 * k->a + 1] += f;
    }
    if (k->b_ >= 0) {
        p->force[2 * k->b_] -= n;
        p->force[2 * k->b_ + 1] -= f;
    }
}

// Impulses of all blocks at the iterate and their slopes; what they do to each body goes to p->force. Returns
// the sum of the points' squares. Blocks between the same two bodies come one after another: what these share
// is at hand until the next pair.
static double apply_blocks(usi_problem *p) {
    const int32_t n_block = p->s->n_block;
    const bool is_exact = p->is_exact, holds = p->holds;
    const usi_free *const body = p->body;
    usi_block *const block = p->block;
    double *u = p->u, *G = p->G;
    usi_v4 impulses = usi_v4_zero();
    // The first by hand: most islands have one body.
    p->force[0] = p->force[1] = usi_v4_zero();
    for (int32_t b = 1; b < p->s->n_body; b++)
        p->force[2 * b] = p->force[2 * b + 1] = usi_v4_zero();
    usi_v4 w = usi_v4_zero(), v = w, n = w, f = w;
    for (int32_t i = 0; i < n_block; i++, u += 3, G += 9) {
        usi_block *k = &block[i];
        if (i == 0 || k->a != k[-1].a || k->b_ != k[-1].b_) {
            if (i > 0) apply_to_bodies(p, k - 1, n, f);
            n = f = usi_v4_zero();
            usi_block_twist(body, k, &w, &v);
        }
        if (is_exact && k->law == USI_ROTATION) {
            k->radius = k[-1].g[0];
            k->press = k->radius > 0 ? k[-1].K[0] : 0;
            if (!(k->radius > 0)) {
                // Its point does not press.
                for (int j = 0; j < 3; j++)
                    u[j] = k->g[j] = 0;
                for (int j = 0; j < 9; j++)
                    G[j] = 0;
                continue;
            }
        }
        const usi_v4 velocity = usi_row_velocity(k, w, v);
        usi_store_three(velocity, u);
        usi_v4 g = usi_law_slope(k, velocity, is_exact, G);
        if (holds && p->hold[i]) g = hold_block(k, velocity, g[0], G);
        usi_store_three(g, k->g);
        const usi_v4 g0 = usi_v4_lane0(g), g1 = usi_v4_lane1(g), g2 = usi_v4_lane2(g);
        n += k->m[0] * g0 + k->m[1] * g1 + k->m[2] * g2;
        f += k->d[0] * g0 + k->d[1] * g1 + k->d[2] * g2;
        if (k->law == USI_POINT) impulses += g * g;
    }
    if (n_block > 0) apply_to_bodies(p, &block[n_block - 1], n, f);
    return impulses[0] + impulses[1] + impulses[2];
}

// The residual of a free body, (n, f), to x; its square over the inertia, spread over the lanes.
static inline usi_v4 free_residual(const usi_problem *p, int32_t b, double *x) {
    const usi_free *body = &p->body[b];
    usi_v4 n, f, inv_mass = usi_v4_all(((const double *)&body->c)[3]);
    usi_inertia_times(body->J, body->h, body->w, body->v, &n, &f);
    n -= body->pw + p->force[2 * b];
    f -= body->pv + p->force[2 * b + 1];
    *(usi_v4_unaligned *)x = __builtin_shufflevector(n, f, 0, 1, 2, 4);
    *(usi_v2_unaligned *)(x + 4) = __builtin_shufflevector(f, f, 1, 2);
    usi_v4 at = n - usi_v4_cross(body->c * (usi_v4){1, 1, 1, 0}, f);
    usi_v4 turn = body->inv_I[0] * usi_v4_lane0(at) + body->inv_I[1] * usi_v4_lane1(at) +
                  body->inv_I[2] * usi_v4_lane2(at);
    return f * f * inv_mass + at * turn;
}

// Impulses at the iterate, their slopes, and the residual in p->r. Returns the residual's norm over that of
// the impulses.
double usi_newton_residual(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    if (!p->is_free) {
        find_changes(p);
        find_twists(p);
    }
    double impulses = apply_blocks(p), scale = p->load + impulses * p->inv_mass;
    p->scale = scale;
    usi_v4 squares = usi_v4_zero();
    if (p->is_free) {
        for (int32_t i = 0; i < p->n_unit; i++)
            squares += free_residual(p, i, p->r + 6 * i);
        return scale > 0 ? sqrt(usi_v4_sum(squares) / scale) : sqrt(usi_v4_sum(squares));
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i];
        double *x = p->r + p->unit_start[i];
        if (usi_unit_is_free(p, i)) {
            squares += free_residual(p, c->collide.collision_body[c->tree_body_start[t]].body, x);
            continue;
        }
        usi_span span = {m->tree[t].first, m->tree[t].end};
        for (int32_t j = span.first; j < span.end; j++) {
            c->solve.residual[j] = c->joints.impulse[j];
            c->solve.diag[j] = 0;
        }
        usi_v4 shift = usi_origin_shift(p, t);
        for (int32_t k = 0; k < p->n_hit; k++) {
            const int32_t b = p->hit[k];
            const usi_collision_body *at = usi_body_collision_body(p, b);
            if (at->tree != t) continue;
            usi_link *l = &c->dyn->link[at->node];
            l->f -= p->force[2 * b + 1];
            l->n -= p->force[2 * b] + usi_v4_cross(shift, p->force[2 * b + 1]);
        }
        usi_project_forces_of(c->dyn, span, c->joints.work);
        usi_joint_rows(c, t, c->joints.vel, c->solve.residual, c->solve.diag);
        for (int32_t j = span.first; j < span.end; j++)
            x[j - span.first] = c->joints.work[j] + m->armature[j] * c->solve.delta[j] - c->solve.residual[j];
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!usi_coupling_in(p, row)) continue;
        double g = usi_coupling_impulse(p, row, c->joints.vel);
        for (int32_t i = 0; i < row->n_term; i++) {
            int32_t t = m->node[row->v[i]].tree;
            p->r[p->unit_start[c->islands.tree[t].variable] + row->v[i] - m->tree[t].first] -=
                row->factor[i] * g;
        }
    }
    double error = usi_v4_sum(squares);
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (usi_unit_is_free(p, i)) continue;
        const usi_tree *tree = usi_unit_tree(p, i);
        const double *x = p->r + p->unit_start[i];
        error += squares_over(tree->end - tree->first, x, c->joints.inv_pivot + tree->first);
    }
    return scale > 0 ? sqrt(error / scale) : sqrt(error);
}
