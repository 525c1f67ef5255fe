// Newton's method on the velocities of one island.
//
// Unknowns are the twists of free bodies (about O, world axes) and the joint velocities of trees. The balance
//
//     r(V) = M V - p - sum of J^T g(J V) - joint rows = 0
//
// is solved to 1e-6 of the impulses in it. Every block adds J^T G J to the matrix; G is the slope of its law.
//
// Things at rest need no iteration at all: the last step's velocities balance. Where they do not, the
// acceleration goes on as it was more often than not, and a start that much ahead has most contacts sticking,
// sliding and apart as they will be; the better of the two starts is taken.
//
// With exact friction the slope is not symmetric and there is no potential, but full steps nearly always
// converge in a few iterations. What they do not see is the end of sliding: along the way that a point slides
// its friction is constant, so that a step that stops it goes beyond,
//
//     friction       ____            slope seen at (1): 0, the step goes to (2), where it slides the other
//     way, then back to (1) and so on.
//                   /  (1)           A point that has turned round is therefore held in the next step, as if
//                   its limit were far away (3);
//              ____/(3)              if the limit is not, the law says so there.
//              (2)     velocity
//
// Other steps that make it worse are taken back. Where all that does not converge, the friction radius is
// lagged: it is renewed after the first two iterations, then frozen. Frozen, the problem is convex: a search
// along the Newton step that brackets the zero of the slope always ends lower. When that has converged and
// the radii are not yet those of the solution, they are renewed once more.
#include <string.h>

#include "contact/contact__law.h"
#include "contact/contact__newton.h"

static const double TOLERANCE = 1e-6;
// A free body that stands still on the world is balanced better. Kept velocities that balance only to the
// tolerance would keep it from ever coming to rest: it would go to and fro by picometres, its impulses off by
// as much as the tolerance. Once it has come to rest, rounding leaves less than this, and it needs no more
// iterations. (In a heap that takes too long: each step of the last creeping would cost an iteration.)
static const double TOLERANCE_AT_REST = 1e-12;
// What moves, faster than this, m/s and rad/s, keeps velocities that were found anew only when they balance
// better, alone and among several. Kept at the first chance they would be off by the tolerance for good: the
// springs go on, after a few steps the balance is lost, and the next velocities are as far off to the other
// side. Solved each step instead, whatever rolls comes to a motion that lasts, and then needs no iteration
// for hundreds of steps. (What creeps to its place does not last, and is better off with small errors to both
// sides.)
static const double STEADY_SPEED = 1e-4, SETTLED = 1e-9, SETTLED_HEAP = 3e-8;
// A heap that stands still stops when it balances this well without any motion, and stays so as long as it
// balances to the tolerance.
static const double STOPPED = 1e-7;
// Slower than this, m/s and rad/s, is standing still.
static const double REST_SPEED = 1e-7;
// A balance worse than this is not mended by one iteration: it pays to look for a better start. Trees, whose
// iterations cost most, look sooner.
static const double FAR = 0.1, FAR_TREE = 1e-3;
// A start ahead with a balance better than this is taken without a look at the other.
static const double NEAR = 0.05;
// What is accepted when the iterations run out.
static const double GOOD_ENOUGH = 1e-2;
// The lagged radius counts as that of the solution when it is within this part of it.
static const double SAME_RADIUS = 1e-4;
// The last factors serve again when they are expected to leave this many times the tolerance: two steps with
// them cost less than a new matrix.
static const double REUSE = 10;
enum { MAX_EXACT = 20, MAX_HELD = 6, MAX_LAGGED = 120, MAX_BAD = 10, MAX_RENEWALS = 2, MAX_SEARCH = 40 };

static double coupling_impulse(const usi_problem *p, const usi_coupling *k, const double *v) {
    double phi = -k->offset, u = 0;
    for (int32_t i = 0; i < k->n_term; i++) {
        phi += k->factor[i] * p->push->q[k->q[i]];
        u += k->factor[i] * v[k->v[i]];
    }
    return -usi_coupling_stiffness(p) * (u + phi / p->c->model->step);
}

// ---------------------------------------------------------------- trees

// Twists of a tree's links about its own origin, from joint velocities: into the links. The last one's is at
// hand for the next, mostly its child.
static void tree_twists(const usi_problem *p, int32_t t, const double *v) {
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
static void tree_momenta(const usi_problem *p, int32_t t, const double *delta) {
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

// ---------------------------------------------------------------- the balance

// Two numbers anywhere.
typedef double loose_pair __attribute__((vector_size(16), may_alias, aligned(8)));

// a . b, four at a time: one after the other each sum would wait for the one before.
static double dot(int32_t n, const double *a, const double *b) {
    usi_v4 four = usi_v4_zero();
    double rest = 0;
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        four += *(const usi_v4_unaligned *)(a + i) * *(const usi_v4_unaligned *)(b + i);
    for (; i < n; i++)
        rest += a[i] * b[i];
    return usi_v4_sum(four) + rest;
}

// The sum of a^2 b, likewise.
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

// Twists of the bodies that are hit about O from the iterate (or, with `is_step`, from the Newton step).
static void spread(usi_problem *p, bool is_step) {
    const usi_contacts *c = p->c;
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (!usi_unit_is_free(p, k))
            tree_twists(p, c->islands.members[p->s->first_tree + k], is_step ? c->step_v : c->vel);
    }
    for (int32_t i = 0; i < (p->is_free ? p->s->n_body : p->n_hit); i++) {
        const int32_t b = p->is_free ? i : p->hit[i];
        const usi_collision_body *k = usi_body_collision_body(p, b);
        if (c->model->tree[k->tree].is_free_body) {
            if (!is_step) continue;
            const double *x = p->x + p->unit_start[c->islands.tree[k->tree].variable];
            p->step[2 * b] = usi_v4_set(x[0], x[1], x[2]);
            p->step[2 * b + 1] = usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        const usi_link *l = &c->dyn->link[k->node];
        usi_v4 v = l->v + usi_v4_cross(l->w, usi_origin_shift(p, k->tree));
        if (is_step) {
            p->step[2 * b] = l->w;
            p->step[2 * b + 1] = v;
        } else {
            p->body[b].w = l->w;
            p->body[b].v = v;
        }
    }
}

// The velocities of a block's rows when its first body has the twist (w, v) against its second, in lanes 0
// to 2.
static inline usi_v4 row_velocity(const usi_block *k, usi_v4 w, usi_v4 v) {
    return usi_three_sums(k->m[0] * w + k->d[0] * v, k->m[1] * w + k->d[1] * v, k->m[2] * w + k->d[2] * v);
}
static inline void put_velocity(usi_v4 y, double u[3]) {
    *(loose_pair *)u = __builtin_shufflevector(y, y, 0, 1);
    u[2] = y[2];
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
static inline void push_bodies(usi_problem *p, const usi_block *k, usi_v4 n, usi_v4 f) {
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
static double push_blocks(usi_problem *p) {
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
            if (i > 0) push_bodies(p, k - 1, n, f);
            w = v = n = f = usi_v4_zero();
            if (k->a >= 0) {
                w = body[k->a].w;
                v = body[k->a].v;
            }
            if (k->b_ >= 0) {
                w -= body[k->b_].w;
                v -= body[k->b_].v;
            }
        }
        if (is_exact && k->law == USI_TURN) {
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
        const usi_v4 velocity = row_velocity(k, w, v);
        put_velocity(velocity, u);
        usi_v4 g = usi_law_slope(k, velocity, is_exact, G);
        if (holds && p->hold[i]) g = hold_block(k, velocity, g[0], G);
        put_velocity(g, k->g);
        const usi_v4 g0 = usi_v4_lane0(g), g1 = usi_v4_lane1(g), g2 = usi_v4_lane2(g);
        n += k->m[0] * g0 + k->m[1] * g1 + k->m[2] * g2;
        f += k->d[0] * g0 + k->d[1] * g1 + k->d[2] * g2;
        if (k->law == USI_POINT) impulses += g * g;
    }
    if (n_block > 0) push_bodies(p, &block[n_block - 1], n, f);
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
    *(loose_pair *)(x + 4) = __builtin_shufflevector(f, f, 1, 2);
    usi_v4 at = n - usi_v4_cross(body->c * (usi_v4){1, 1, 1, 0}, f);
    usi_v4 turn = body->inv_I[0] * usi_v4_lane0(at) + body->inv_I[1] * usi_v4_lane1(at) +
                  body->inv_I[2] * usi_v4_lane2(at);
    return f * f * inv_mass + at * turn;
}

// Impulses at the iterate, their slopes, and the residual in p->r. Returns the residual's norm over that of
// the impulses.
static double balance(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    if (!p->is_free) spread(p, false);
    double impulses = push_blocks(p), scale = p->load + impulses * p->inv_mass;
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
            squares += free_residual(p, c->collide.collision_body[c->carrier_start[t]].body, x);
            continue;
        }
        usi_span span = {m->tree[t].first, m->tree[t].end};
        for (int32_t j = span.first; j < span.end; j++) {
            c->solve.delta[j] = c->vel[j] - p->push->v[j];
            c->solve.residual[j] = c->push[j];
            c->solve.diag[j] = 0;
        }
        if (p->has_moved) {
            tree_momenta(p, t, c->solve.delta);
        } else {
            for (int32_t j = span.first; j < span.end; j++)
                c->dyn->link[j].n = c->dyn->link[j].f = usi_v4_zero();
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
        usi_project_forces_of(c->dyn, span, c->turn);
        usi_joint_rows(c, t, c->vel, c->solve.residual, c->solve.diag);
        for (int32_t j = span.first; j < span.end; j++)
            x[j - span.first] = c->turn[j] + m->armature[j] * c->solve.delta[j] - c->solve.residual[j];
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!usi_coupling_in(p, row)) continue;
        double g = coupling_impulse(p, row, c->vel);
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
        error += squares_over(tree->end - tree->first, x, c->inv_pivot + tree->first);
    }
    return scale > 0 ? sqrt(error / scale) : sqrt(error);
}

// ---------------------------------------------------------------- along a step

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
            c->solve.residual[i] = c->vel[i] + alpha * c->step_v[i];
            c->turn[i] = c->solve.diag[i] = 0;
        }
        usi_joint_rows(c, t, c->solve.residual, c->turn, c->solve.diag);
        for (int32_t i = tree->first; i < tree->end; i++)
            sum -= c->turn[i] * c->step_v[i];
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        if (!usi_coupling_in(p, &m->coupling[k])) continue;
        double u = 0;
        for (int32_t i = 0; i < m->coupling[k].n_term; i++)
            u += m->coupling[k].factor[i] * c->step_v[m->coupling[k].v[i]];
        sum -= (coupling_impulse(p, &m->coupling[k], c->vel) - alpha * usi_coupling_stiffness(p) * u) * u;
    }
    return sum;
}

// Changes of twists and row velocities along the step, and the smooth part's slope.
static void prepare_line(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    spread(p, true);
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
            int32_t b = c->collide.collision_body[c->carrier_start[t]].body;
            const usi_free *body = &p->body[b];
            usi_v4 n, f, dn, df;
            usi_inertia_times(body->J, body->h, body->w, body->v, &n, &f);
            usi_inertia_times(body->J, body->h, p->step[2 * b], p->step[2 * b + 1], &dn, &df);
            p->smooth0 += usi_v4_sum((n - body->pw) * p->step[2 * b] + (f - body->pv) * p->step[2 * b + 1]);
            p->smooth1 += usi_v4_sum(dn * p->step[2 * b] + df * p->step[2 * b + 1]);
            continue;
        }
        const usi_tree *tree = &m->tree[t];
        tree_momenta(p, t, c->step_v);
        usi_project_forces_of(c->dyn, (usi_span){tree->first, tree->end}, c->turn);
        for (int32_t j = tree->first; j < tree->end; j++) {
            c->turn[j] += m->armature[j] * c->step_v[j];
            p->smooth1 += c->turn[j] * c->step_v[j];
            p->smooth0 += c->turn[j] * (c->vel[j] - p->push->v[j]) - c->push[j] * c->step_v[j];
        }
    }
}

// How far to go back from the end of a full step, 0 .. 1 of it, to where the slope is 0. The potential is
// convex: the slopes at its start (< 0) and end
// (> 0) bracket the zero.
static double search_back(usi_problem *p, double s_start, double s_end) {
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

static void move(usi_problem *p, double alpha) {
    usi_contacts *c = p->c;
    p->has_moved = true;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i];
        if (usi_unit_is_free(p, i)) {
            const double *x = p->x + p->unit_start[i];
            usi_free *b = &p->body[c->collide.collision_body[c->carrier_start[t]].body];
            b->w += alpha * usi_v4_set(x[0], x[1], x[2]);
            b->v += alpha * usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        for (int32_t j = c->model->tree[t].first; j < c->model->tree[t].end; j++)
            c->vel[j] += alpha * c->step_v[j];
    }
}

// ---------------------------------------------------------------- the method

// The Newton step, from the residual, with a new matrix or the last one's factors; the slope of the potential
// at its start goes to p->slope.
static bool find_step(usi_problem *p, bool is_anew) {
    p->s->n_iteration++;
    if (is_anew && !usi_newton_matrix(p)) return false;
    usi_newton_step(p);
    p->slope = dot(p->n_var, p->r, p->x);
    return true;
}

// Where the iteration starts: the velocities of the last step, or, ahead of them, those with as much change
// again as in the last step.
static void set_start(usi_problem *p, bool is_ahead) {
    usi_contacts *c = p->c;
    const double h = is_ahead ? c->model->step : 0;
    p->has_moved = is_ahead;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i], first = c->model->tree[t].first;
        const double *a = p->push->a + first;
        if (!usi_unit_is_free(p, i)) {
            for (int32_t j = first; j < c->model->tree[t].end; j++)
                c->vel[j] = p->push->v[j] + h * p->push->a[j];
            continue;
        }
        const usi_collision_body *k = &c->collide.collision_body[c->carrier_start[t]];
        usi_free *b = &p->body[k->body];
        usi_v4 w = k->w, v = k->v;
        // The state has the velocity in the body's axes, which have turned since.
        if (is_ahead) {
            v += h * (usi_v4_columns(k->X, k->Y, k->Z, a + 3) + usi_v4_cross(w, v));
            w += h * usi_v4_columns(k->X, k->Y, k->Z, a);
        }
        b->w = w;
        b->v = v - usi_v4_cross(w, k->p - p->s->O);
    }
}

static double try_start(usi_problem *p, bool is_ahead) {
    set_start(p, is_ahead);
    return balance(p);
}

// Whether a tree's last change of velocity is so great that its last velocities cannot balance: what the mass
// matrix makes of it is missing there.
static bool is_going_on(const usi_problem *p) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    double sum = 0;
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++) {
        const usi_tree *tree = usi_unit_tree(p, i);
        for (int32_t j = tree->first; j < tree->end && !tree->is_free_body; j++)
            sum += c->inertia[j] * p->push->a[j] * p->push->a[j];
    }
    return sum * m->step * m->step > FAR_TREE * FAR_TREE * p->weight;
}

// Takes the start with the better balance; trees that go on as they did are asked ahead first, which is
// mostly good enough.
static double choose_start(usi_problem *p) {
    bool is_first = is_going_on(p);
    double ahead = is_first ? try_start(p, true) : 0;
    if (is_first && ahead < NEAR) return ahead;
    double error = is_first ? try_start(p, false) : balance(p);
    if (error <= (p->is_free ? FAR : FAR_TREE) || (is_first && error <= ahead)) return error;
    ahead = try_start(p, true);
    return ahead < error ? ahead : try_start(p, false);
}

// The square of the velocity of the fastest free body, (m/s)^2 and (rad/s)^2 alike, in the last step.
static double greatest_speed(const usi_problem *p) {
    double most = 0;
    for (int32_t i = 0; i < p->n_unit; i++) {
        const double *v = p->push->v + usi_unit_tree(p, i)->first;
        double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3] + v[4] * v[4] + v[5] * v[5];
        most = square > most ? square : most;
    }
    return most;
}

// Whether free bodies balance without any motion. They stay at the start if not.
static bool can_stop(usi_problem *p) {
    for (int32_t i = 0; i < p->n_unit; i++)
        p->body[i].w = p->body[i].v = usi_v4_zero();
    if (balance(p) <= STOPPED) return true;
    try_start(p, false);
    return false;
}

// Whether the velocities of the start are the answer.
static bool is_answer(usi_problem *p, double error) {
    if (error > TOLERANCE || !p->is_free) return error <= TOLERANCE;
    const bool is_lone = p->n_unit == 1;
    if (is_lone && error <= TOLERANCE_AT_REST) return true;
    const double speed = greatest_speed(p);
    if (speed > STEADY_SPEED * STEADY_SPEED)
        return p->s->was_kept || error <= (is_lone ? SETTLED : SETTLED_HEAP);
    if (speed > REST_SPEED * REST_SPEED) return true;
    // Without weight nothing says how small a motion is.
    return !is_lone && (speed == 0 || p->load == 0 || can_stop(p));
}

// Marks the points that now slide another way than `before` (velocities of the rows), by more than a right
// angle; false when there are none.
static bool find_turned(usi_problem *p, const double *before) {
    bool any = false;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        const double *u = p->u + 3 * i, *o = before + 3 * i, *G = p->G + 9 * i;
        p->hold[i] = k->law == USI_POINT && (G[3] != 0 || G[6] != 0) &&
                     (u[1] + k->b[1]) * (o[1] + k->b[1]) + (u[2] + k->b[2]) * (o[2] + k->b[2]) < 0;
        any = any || p->hold[i];
    }
    return any;
}

// The residual and the slopes with the marked points held.
static void balance_held(usi_problem *p) {
    p->holds = true;
    balance(p);
    p->holds = false;
}

// Full steps. After one that has thrown sliding points over to the other side these are held in the next. Any
// other that makes the balance worse is taken back to where the residual along the step changes its sign, as
// if there were a potential.
static bool solve_exact(usi_problem *p) {
    p->is_exact = true;
    double error = choose_start(p);
    int bad = 0, n_held = 0;
    bool is_anew = true;
    for (int i = 0; i < MAX_EXACT; i++) {
        if (i == 0 ? is_answer(p, error) : error <= TOLERANCE) return true;
        if (bad > MAX_BAD || !find_step(p, is_anew)) return false;
        double last = error;
        memcpy(p->du, p->u, 3 * (size_t)p->s->n_block * sizeof(double));
        move(p, 1);
        error = balance(p);
        // From errors e0 to e1 by Newton's method the same factors go on to about e1 e1 / e0.
        is_anew = !(error * error < REUSE * TOLERANCE * last);
        if (is_anew && n_held < MAX_HELD && find_turned(p, p->du)) {
            n_held++;
            balance_held(p);
            continue;
        }
        // The first step may be the fall onto contacts that the last velocities did not touch: the balance
        // looks worse then, and the next step lands.
        if (error < last || (i == 0 && error < 4 * last)) continue;
        bad++;
        double slope = dot(p->n_var, p->r, p->x);
        if (!(p->slope < 0 && slope > 0)) continue;
        prepare_line(p);
        move(p, search_back(p, p->slope, slope));
        error = balance(p);
    }
    return error <= TOLERANCE;
}

// Sets the lagged radii to those of the impulses. Returns the greatest change over the greatest radius.
static double renew_radii(usi_problem *p) {
    double change = 0, most = 0;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        usi_block *k = &p->block[i];
        double radius = usi_friction_radius(k, i > 0 ? k[-1].g[0] : 0);
        // Friction that sticks does not feel the radius.
        double used = k->law == USI_POINT ? sqrt(k->g[1] * k->g[1] + k->g[2] * k->g[2]) : radius;
        double difference = fabs(radius - k->radius), least = radius < k->radius ? radius : k->radius;
        if (used >= 0.999 * least && difference > change) change = difference;
        most = radius > most ? radius : most;
        k->radius = radius;
    }
    return most > 0 ? change / most : 0;
}

static bool solve_lagged(usi_problem *p) {
    p->is_exact = false;
    int renewals = 0;
    double error = balance(p);
    for (int i = 0; i < MAX_LAGGED; i++) {
        if (error <= TOLERANCE) {
            if (++renewals > MAX_RENEWALS || i > MAX_LAGGED / 2 || renew_radii(p) <= SAME_RADIUS) return true;
            if (balance(p) <= TOLERANCE) return true;
        } else if ((i == 1 || i == 2) && renew_radii(p) > SAME_RADIUS) {
            balance(p);
        }
        if (!find_step(p, true)) return false;
        move(p, 1);
        error = balance(p);
        double slope = dot(p->n_var, p->r, p->x);
        if (slope <= -1e-3 * p->slope) continue;
        prepare_line(p);
        move(p, search_back(p, p->slope, slope));
        error = balance(p);
    }
    // Slow to the end, but no step may be lost for the last digits.
    return error <= GOOD_ENOUGH;
}

// Whether nothing touches when the bodies go on as they are. Free bodies only.
static bool goes_free(usi_problem *p) {
    if (!p->is_free) return false;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        if (p->block[i].law == USI_EQUAL || (p->block[i].law == USI_POINT && p->block[i].b[0] <= 0))
            return false;
    }
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        usi_v4 w = usi_v4_zero(), v = w;
        if (k->a >= 0) {
            w = p->body[k->a].fw;
            v = p->body[k->a].fv;
        }
        if (k->b_ >= 0) {
            w -= p->body[k->b_].fw;
            v -= p->body[k->b_].fv;
        }
        put_velocity(row_velocity(k, w, v), p->u + 3 * i);
        if (k->law == USI_POINT && p->u[3 * i] + k->b[0] < 0) return false;
    }
    for (int32_t b = 0; b < p->s->n_body; b++) {
        p->body[b].w = p->body[b].fw;
        p->body[b].v = p->body[b].fv;
    }
    for (int32_t i = 0; i < p->s->n_block; i++)
        p->block[i].g[0] = p->block[i].g[1] = p->block[i].g[2] = 0;
    return true;
}

// The bodies that blocks act on, those of points without rows, and all free ones, where there are trees.
static void find_hit(usi_problem *p) {
    const usi_contacts *c = p->c;
    p->n_hit = 0;
    // Marks first, in the place of the list, which never gets ahead of them.
    for (int32_t b = 0; b < p->s->n_body; b++)
        p->hit[b] = p->c->model->tree[usi_body_collision_body(p, b)->tree].is_free_body;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        if (k->a >= 0) p->hit[k->a] = 1;
        if (k->b_ >= 0) p->hit[k->b_] = 1;
    }
    for (int32_t i = 0, touch = -1; i < p->s->n_point && p->s->n_skipped > 0; i++) {
        const usi_point_now *point = &c->collide.point[c->islands.order[p->s->first_point + i]];
        if (point->may_press || point->touch == touch) continue;
        touch = point->touch;
        const usi_grouped *pair = &c->islands.grouped[touch];
        const int32_t a = c->collide.collision_body[pair->collision_body_a].body,
                      b = c->collide.collision_body[pair->collision_body_b].body;
        if (a >= 0) p->hit[a] = 1;
        if (b >= 0) p->hit[b] = 1;
    }
    for (int32_t b = 0; b < p->s->n_body; b++) {
        if (p->hit[b]) p->hit[p->n_hit++] = b;
    }
}

// What begins at 0 is set one by one: most islands are over before clearing the whole structure would be.
static bool set_up(usi_problem *p, usi_contacts *c, usi_island *s, const usi_contact_input *push,
                   int32_t thread) {
    p->c = c;
    p->s = s;
    p->push = push;
    p->sparse = NULL;
    p->holds = p->is_solved = false;
    char *at = c->solve.work[thread], *end = at + c->solve.work_size;
    size_t n_unit = (size_t)s->n_tree, n_block = (size_t)s->n_block;
    p->n_unit = s->n_tree;
    p->unit_start = usi_take(&at, (n_unit + 1) * sizeof(int32_t));
    p->size = usi_take(&at, n_unit * sizeof(int32_t));
    p->n_var = 0;
    p->is_free = true;
    double mass = 0;
    for (int32_t i = 0; i < s->n_tree; i++) {
        int32_t t = c->islands.members[s->first_tree + i];
        c->islands.tree[t].variable = i;
        p->unit_start[i] = p->n_var;
        p->size[i] = c->model->tree[t].end - c->model->tree[t].first;
        p->n_var += p->size[i];
        p->is_free = p->is_free && c->model->tree[t].is_free_body;
        mass += c->tree_mass[t];
    }
    p->load = p->weight = c->fall_speed * c->fall_speed * mass;
    p->inv_mass = 1 / s->most_mass;
    p->unit_start[s->n_tree] = p->n_var;
    p->r = usi_take(&at, (size_t)p->n_var * sizeof(double));
    p->x = usi_take(&at, (size_t)p->n_var * sizeof(double));
    p->G = usi_take(&at, 9 * n_block * sizeof(double));
    p->hold = usi_take(&at, n_block * sizeof *p->hold);
    p->force = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->step = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    if (!p->is_free) {
        int32_t first = c->islands.members[s->first_tree],
                n_coupling = c->coupling_start[first + 1] - c->coupling_start[first];
        p->root = usi_take(&at, 56 * sizeof(double));
        p->hit = usi_take(&at, (size_t)s->n_body * sizeof *p->hit);
        p->columns = usi_take(&at, 4 * (size_t)(c->model->n_node + 6) * sizeof(usi_v4));
        p->made = usi_take(&at, 12 * (size_t)p->n_var * sizeof(usi_v4));
        p->is_there = usi_take(&at, (size_t)p->n_var * sizeof *p->is_there);
        p->coupled = usi_take(&at, (size_t)n_coupling * (size_t)(p->n_var + 1) * sizeof(double));
    }
    p->body = &c->solve.body[s->first_body];
    p->block = &c->rows.block[s->first_block];
    p->u = c->solve.u + 3 * s->first_block;
    p->du = c->solve.du + 3 * s->first_block;
    p->at = at;
    p->end = end;
    if (at <= end && !p->is_free) find_hit(p);
    return at <= end;
}

// What a tree starts from, and how much that weighs in the balance.
static void start_tree(usi_problem *p, int32_t t) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    usi_tree_start(c, p->push, t, p->s->kind != USI_ISLAND_BRANCH);
    for (int32_t j = m->tree[t].first; j < m->tree[t].end; j++)
        p->load += c->push[j] * c->push[j] * c->inv_pivot[j];
}

void usi_newton(usi_contacts *c, usi_island *s, const usi_contact_input *push, int32_t thread) {
    usi_problem p;
    if (!set_up(&p, c, s, push, thread)) {
        s->failed = true;
        return;
    }
    for (int32_t i = 0; i < p.n_unit && !p.is_free; i++) {
        if (!usi_unit_is_free(&p, i)) start_tree(&p, c->islands.members[s->first_tree + i]);
    }
    if (!goes_free(&p)) {
        // Free bodies are there already, unless the island is solved again.
        p.has_moved = false;
        if (!p.is_free || s->n_impact > 0 || s->is_again) set_start(&p, false);
        if (!solve_exact(&p)) {
            s->is_lagged = true;
            // From where that got to, with the radii of its impulses.
            renew_radii(&p);
            s->failed = !solve_lagged(&p);
        }
    }
    for (int32_t i = 0; i < p.n_unit && !p.is_free; i++) {
        if (!usi_unit_is_free(&p, i)) usi_tree_finish(c, push, c->islands.members[s->first_tree + i]);
    }
}
