// Newton's method on the velocities of one island.
//
// Unknowns are the twists of free bodies (about O, world axes) and the joint velocities of trees. The balance
//
//     r(V) = M V - p - sum of J^T g(J V) - joint rows = 0
//
// is solved to 1e-6 of the impulses in it. Every block adds J^T G J to the matrix; G is the slope of its law.
//
// With exact friction the slope is not symmetric and there is no potential; full steps, taken back where they overshoot, converge in a few
// iterations from the last step's velocities, nearly always. Where they do not, the friction radius is lagged: it is renewed after the
// first two iterations, then frozen. Frozen, the problem is convex: a search along the Newton step that brackets the zero of the
// slope always ends lower. When that has converged and the radii are not yet those of the solution, they are renewed once more.
#include <string.h>

#include "contact/law.h"
#include "contact/newton.h"

static const double TOLERANCE = 1e-6;
// What is accepted when the iterations run out.
static const double GOOD_ENOUGH = 1e-2;
// The lagged radius counts as that of the solution when it is within this part of it.
static const double SAME_RADIUS = 1e-4;
enum { MOST_EXACT = 20, MOST_LAGGED = 120, MOST_BAD = 10, MOST_RENEWALS = 2, MOST_SEARCH = 40 };

static double coupling_impulse(const usi_problem *p, const usi_coupling *k, const double *v) {
    double phi = -k->offset, u = 0;
    for (int32_t i = 0; i < k->n_term; i++) phi += k->factor[i] * p->push->q[k->q[i]], u += k->factor[i] * v[k->v[i]];
    return -usi_coupling_stiffness(p) * (u + phi / p->c->model->step);
}

// ---------------------------------------------------------------- trees

// y = (H + armature) x over a tree.
static void times_mass(const usi_problem *p, int32_t t, const double *x, double *y) {
    const us_model *m = p->c->model;
    for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) y[i] = 0;
    for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) {
        const double *row = p->c->H + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        double sum = (row[last] + m->armature[i]) * x[i], xi = x[i];
        for (int32_t a = 0; a < last; a++) {
            sum += row[a] * x[path[a]];
            y[path[a]] += row[a] * xi;
        }
        y[i] += sum;
    }
}

// Twists of a tree's links about its own origin, from joint velocities: into the links.
static void tree_twists(const usi_problem *p, int32_t t, const double *v) {
    const us_model *m = p->c->model;
    usi_link *link = p->c->dyn->link;
    for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) {
        int32_t parent = m->node[i].parent;
        usi_v4 w = link[i].Sw * v[i], o = link[i].Sv * v[i];
        if (parent >= 0) w += link[parent].w, o += link[parent].v;
        link[i].w = w, link[i].v = o;
    }
}

// ---------------------------------------------------------------- the balance

// Twists of all bodies about O from the iterate (or, with `is_step`, from the Newton step).
static void spread(usi_problem *p, bool is_step) {
    const usi_contacts *c = p->c;
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (!usi_unit_is_free(p, k)) tree_twists(p, c->members[p->s->first_tree + k], is_step ? c->step_v : c->vel);
    }
    for (int32_t b = 0; b < p->s->n_body; b++) {
        const usi_carrier *k = usi_body_carrier(p, b);
        if (c->model->tree[k->tree].is_free_body) {
            if (!is_step) continue;
            const double *x = p->x + p->unit_start[c->tree[k->tree].variable];
            p->step[2 * b] = usi_v4_set(x[0], x[1], x[2]), p->step[2 * b + 1] = usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        const usi_link *l = &c->dyn->link[k->node];
        usi_v4 v = l->v + usi_v4_cross(l->w, usi_origin_shift(p, k->tree));
        if (is_step)
            p->step[2 * b] = l->w, p->step[2 * b + 1] = v;
        else
            p->body[b].w = l->w, p->body[b].v = v;
    }
}

static void row_velocities(const usi_problem *p) {
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        usi_v4 w = usi_v4_zero(), v = w;
        if (k->a >= 0) w = p->body[k->a].w, v = p->body[k->a].v;
        if (k->b_ >= 0) w -= p->body[k->b_].w, v -= p->body[k->b_].v;
        for (int j = 0; j < 3; j++) p->u[3 * i + j] = usi_v4_sum(k->m[j] * w + k->d[j] * v);
    }
}

// Momentum of a free body at twist (w, v) about O.
static inline void momentum(const usi_free *b, usi_v4 w, usi_v4 v, usi_v4 *n, usi_v4 *f) {
    usi_v4 h = b->h * (usi_v4){1, 1, 1, 0}, mass = usi_v4_all(((const double *)&b->h)[3]);
    *n = b->J[0] * usi_v4_lane0(w) + b->J[1] * usi_v4_lane1(w) + b->J[2] * usi_v4_lane2(w) + usi_v4_cross(h, v);
    *f = mass * v - usi_v4_cross(h, w);
}

// Impulses at the iterate, their slopes, and the residual in p->x. Returns the residual's norm over that of the impulses.
static double balance(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    const double hg = m->step * us_vec3_norm(m->gravity);
    double scale = 0, error = 0, impulses = 0;
    spread(p, false);
    row_velocities(p);
    for (int32_t b = 0; b < 2 * p->s->n_body; b++) p->force[b] = usi_v4_zero();
    for (int32_t i = 0; i < p->s->n_block; i++) {
        usi_block *k = &p->block[i];
        if (p->is_exact && k->law == USI_TURN) k->radius = p->block[i - 1].g[0];
        usi_law_slope(k, p->u + 3 * i, p->is_exact, k->g, p->G + 9 * i);
        usi_v4 g0 = usi_v4_all(k->g[0]), g1 = usi_v4_all(k->g[1]), g2 = usi_v4_all(k->g[2]);
        usi_v4 n = k->m[0] * g0 + k->m[1] * g1 + k->m[2] * g2, f = k->d[0] * g0 + k->d[1] * g1 + k->d[2] * g2;
        if (k->a >= 0) p->force[2 * k->a] += n, p->force[2 * k->a + 1] += f;
        if (k->b_ >= 0) p->force[2 * k->b_] -= n, p->force[2 * k->b_ + 1] -= f;
        if (k->law == USI_POINT) impulses += k->g[0] * k->g[0] + k->g[1] * k->g[1] + k->g[2] * k->g[2];
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        double *x = p->x + p->unit_start[i];
        scale += hg * hg * c->tree_mass[t];
        if (usi_unit_is_free(p, i)) {
            int32_t b = c->carrier[c->carrier_start[t]].body;
            const usi_free *body = &p->body[b];
            usi_v4 n, f;
            momentum(body, body->w, body->v, &n, &f);
            n -= body->pw + p->force[2 * b], f -= body->pv + p->force[2 * b + 1];
            for (int j = 0; j < 3; j++) x[j] = n[j], x[3 + j] = f[j];
            usi_v4 at = n - usi_v4_cross(body->c * (usi_v4){1, 1, 1, 0}, f);
            usi_v4 turn = body->inv_I[0] * usi_v4_lane0(at) + body->inv_I[1] * usi_v4_lane1(at) + body->inv_I[2] * usi_v4_lane2(at);
            error += usi_v4_dot(f, f) * ((const double *)&body->c)[3] + usi_v4_dot(at, turn);
            continue;
        }
        usi_span span = {m->tree[t].first, m->tree[t].end};
        for (int32_t j = span.first; j < span.end; j++) {
            c->delta[j] = c->vel[j] - p->push->v[j];
            c->residual[j] = 0;
            c->dyn->link[j].n = c->dyn->link[j].f = usi_v4_zero();
            c->diag[j] = 0;
        }
        if (p->has_moved) times_mass(p, t, c->delta, c->residual);
        usi_v4 shift = usi_origin_shift(p, t);
        for (int32_t k = c->carrier_start[t]; k < c->carrier_start[t + 1]; k++) {
            int32_t b = c->carrier[k].body;
            usi_link *l = &c->dyn->link[c->carrier[k].node];
            l->f = p->force[2 * b + 1], l->n = p->force[2 * b] + usi_v4_cross(shift, p->force[2 * b + 1]);
        }
        usi_project_forces_of(c->dyn, span, c->turn);
        for (int32_t j = span.first; j < span.end; j++) c->turn[j] += c->push[j];
        usi_joint_rows(c, p->push, t, c->vel, c->turn, c->diag);
        for (int32_t j = span.first; j < span.end; j++) {
            double r = c->residual[j] - c->turn[j], pivot = c->H[m->row_start[j + 1] - 1] + m->armature[j];
            x[j - span.first] = r;
            scale += c->push[j] * c->push[j] / pivot;
        }
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!usi_coupling_in(p, row)) continue;
        double g = coupling_impulse(p, row, c->vel);
        for (int32_t i = 0; i < row->n_term; i++) {
            int32_t t = m->node[row->v[i]].tree;
            p->x[p->unit_start[c->tree[t].variable] + row->v[i] - m->tree[t].first] -= row->factor[i] * g;
        }
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (usi_unit_is_free(p, i)) continue;
        const usi_tree *tree = usi_unit_tree(p, i);
        const double *x = p->x + p->unit_start[i];
        for (int32_t j = tree->first; j < tree->end; j++) {
            error += x[j - tree->first] * x[j - tree->first] / (c->H[m->row_start[j + 1] - 1] + m->armature[j]);
        }
    }
    scale += impulses / p->s->most_mass;
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
        for (int j = 0; j < 3; j++) u[j] = p->u[3 * i + j] + alpha * p->du[3 * i + j];
        usi_law_impulse(&p->block[i], u, p->is_exact, g);
        for (int j = 0; j < 3; j++) sum -= g[j] * p->du[3 * i + j];
    }
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (usi_unit_is_free(p, k)) continue;
        int32_t t = c->members[p->s->first_tree + k];
        const usi_tree *tree = &m->tree[t];
        for (int32_t i = tree->first; i < tree->end; i++) {
            c->residual[i] = c->vel[i] + alpha * c->step_v[i];
            c->turn[i] = c->diag[i] = 0;
        }
        usi_joint_rows(c, p->push, t, c->residual, c->turn, c->diag);
        for (int32_t i = tree->first; i < tree->end; i++) sum -= c->turn[i] * c->step_v[i];
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        if (!usi_coupling_in(p, &m->coupling[k])) continue;
        double u = 0;
        for (int32_t i = 0; i < m->coupling[k].n_term; i++) u += m->coupling[k].factor[i] * c->step_v[m->coupling[k].v[i]];
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
        if (k->a >= 0) w = p->step[2 * k->a], v = p->step[2 * k->a + 1];
        if (k->b_ >= 0) w -= p->step[2 * k->b_], v -= p->step[2 * k->b_ + 1];
        for (int j = 0; j < 3; j++) p->du[3 * i + j] = usi_v4_sum(k->m[j] * w + k->d[j] * v);
    }
    p->smooth0 = p->smooth1 = 0;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        if (usi_unit_is_free(p, i)) {
            int32_t b = c->carrier[c->carrier_start[t]].body;
            const usi_free *body = &p->body[b];
            usi_v4 n, f, dn, df;
            momentum(body, body->w, body->v, &n, &f);
            momentum(body, p->step[2 * b], p->step[2 * b + 1], &dn, &df);
            p->smooth0 += usi_v4_sum((n - body->pw) * p->step[2 * b] + (f - body->pv) * p->step[2 * b + 1]);
            p->smooth1 += usi_v4_sum(dn * p->step[2 * b] + df * p->step[2 * b + 1]);
            continue;
        }
        const usi_tree *tree = &m->tree[t];
        times_mass(p, t, c->step_v, c->turn);
        for (int32_t j = tree->first; j < tree->end; j++) {
            p->smooth1 += c->turn[j] * c->step_v[j];
            p->smooth0 += c->turn[j] * (c->vel[j] - p->push->v[j]) - c->push[j] * c->step_v[j];
        }
    }
}

// How far to go back from the end of a full step, 0 .. 1 of it, to where the slope is 0. The potential is convex: the slopes at its start (< 0) and
// end
// (> 0) bracket the zero.
static double search_back(usi_problem *p, double s_start, double s_end) {
    double low = -1, high = 0, s_low = s_start, s_high = s_end;
    for (int i = 0; i < MOST_SEARCH; i++) {
        double alpha = low + (high - low) * (-s_low / (s_high - s_low));
        // A zero near one end is approached from the other by halves, or false position would creep.
        if (i % 3 == 2) alpha = 0.5 * (low + high);
        double s = slope_at(p, alpha);
        if (fabs(s) <= 1e-2 * -s_start) return alpha;
        if (s > 0)
            high = alpha, s_high = s;
        else
            low = alpha, s_low = s;
    }
    return low > -1 ? low : high;
}

static void move(usi_problem *p, double alpha) {
    usi_contacts *c = p->c;
    p->has_moved = true;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        if (usi_unit_is_free(p, i)) {
            const double *x = p->x + p->unit_start[i];
            usi_free *b = &p->body[c->carrier[c->carrier_start[t]].body];
            b->w += alpha * usi_v4_set(x[0], x[1], x[2]), b->v += alpha * usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        for (int32_t j = c->model->tree[t].first; j < c->model->tree[t].end; j++) c->vel[j] += alpha * c->step_v[j];
    }
}

// ---------------------------------------------------------------- the method

// The residual shares its place with the Newton step, which is kept aside while trial points are looked at.
static void take_step(usi_problem *p) {
    usi_contacts *c = p->c;
    memcpy(p->x, p->kept, (size_t)p->n_var * sizeof(double));
    for (int32_t i = 0; i < p->n_unit; i++) {
        const usi_tree *tree = usi_unit_tree(p, i);
        if (!usi_unit_is_free(p, i)) memcpy(c->step_v + tree->first, p->kept + p->unit_start[i], (size_t)(tree->end - tree->first) * sizeof(double));
    }
}

// The Newton step, from the residual in p->x; the slope of the potential at its start goes to p->slope.
static bool find_step(usi_problem *p) {
    p->s->n_iteration++;
    memcpy(p->kept, p->x, (size_t)p->n_var * sizeof(double));
    if (!usi_newton_matrix(p)) return false;
    double slope = 0;
    for (int32_t i = 0; i < p->n_var; i++) slope += p->kept[i] * p->x[i];
    memcpy(p->kept, p->x, (size_t)p->n_var * sizeof(double));
    p->slope = slope;
    return true;
}

// Full steps. One that makes the balance worse has mostly thrown a sliding contact over to the other side: it is taken back to where the residual
// along the step changes its sign, as if there were a potential.
static bool solve_exact(usi_problem *p) {
    p->is_exact = true;
    double error = balance(p);
    int bad = 0;
    for (int i = 0; i < MOST_EXACT; i++) {
        if (error <= TOLERANCE) return true;
        if (bad > MOST_BAD || !find_step(p)) return false;
        double last = error;
        move(p, 1);
        error = balance(p);
        // The first step may be the fall onto contacts that the last velocities did not touch: the balance looks worse then, and the next step lands.
        if (error < last || (i == 0 && error < 4 * last)) continue;
        bad++;
        double slope = 0;
        for (int32_t k = 0; k < p->n_var; k++) slope += p->x[k] * p->kept[k];
        if (!(p->slope < 0 && slope > 0)) continue;
        take_step(p);
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
        double radius = k->law == USI_POINT ? k->mu * k->g[0] : k->law == USI_TURN ? p->block[i - 1].g[0] : 0;
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
    for (int i = 0; i < MOST_LAGGED; i++) {
        if (error <= TOLERANCE) {
            if (++renewals > MOST_RENEWALS || i > MOST_LAGGED / 2 || renew_radii(p) <= SAME_RADIUS) return true;
            if (balance(p) <= TOLERANCE) return true;
        } else if ((i == 1 || i == 2) && renew_radii(p) > SAME_RADIUS) {
            balance(p);
        }
        if (!find_step(p)) return false;
        move(p, 1);
        error = balance(p);
        double slope = 0;
        for (int32_t k = 0; k < p->n_var; k++) slope += p->x[k] * p->kept[k];
        if (slope <= -1e-3 * p->slope) continue;
        take_step(p);
        prepare_line(p);
        move(p, search_back(p, p->slope, slope));
        error = balance(p);
    }
    // Slow to the end, but no step may be lost for the last digits.
    return error <= GOOD_ENOUGH;
}

// Whether nothing touches when the bodies go on as they are. Free bodies only.
static bool goes_free(usi_problem *p) {
    for (int32_t i = 0; i < p->s->n_block; i++) {
        if (p->block[i].law == USI_EQUAL || (p->block[i].law == USI_POINT && p->block[i].b[0] <= 0)) return false;
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (!usi_unit_is_free(p, i)) return false;
    }
    for (int32_t b = 0; b < p->s->n_body; b++) p->body[b].w = p->body[b].fw, p->body[b].v = p->body[b].fv;
    row_velocities(p);
    for (int32_t i = 0; i < p->s->n_block; i++) {
        if (p->block[i].law == USI_POINT && p->u[3 * i] + p->block[i].b[0] < 0) return false;
    }
    for (int32_t i = 0; i < p->s->n_block; i++) p->block[i].g[0] = p->block[i].g[1] = p->block[i].g[2] = 0;
    return true;
}

static bool set_up(usi_problem *p, int32_t thread) {
    usi_contacts *c = p->c;
    usi_island *s = p->s;
    char *at = c->work[thread], *end = at + c->work_size;
    size_t n_unit = (size_t)s->n_tree, n_block = (size_t)s->n_block;
    p->n_unit = s->n_tree;
    p->unit_start = usi_take(&at, (n_unit + 1) * sizeof(int32_t));
    p->size = usi_take(&at, n_unit * sizeof(int32_t));
    p->n_var = 0;
    for (int32_t i = 0; i < s->n_tree; i++) {
        int32_t t = c->members[s->first_tree + i];
        c->tree[t].variable = i;
        p->unit_start[i] = p->n_var;
        p->size[i] = c->model->tree[t].end - c->model->tree[t].first;
        p->n_var += p->size[i];
    }
    p->unit_start[s->n_tree] = p->n_var;
    p->x = usi_take(&at, (size_t)p->n_var * sizeof(double));
    p->kept = usi_take(&at, (size_t)p->n_var * sizeof(double));
    p->G = usi_take(&at, 9 * n_block * sizeof(double));
    p->force = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->step = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->columns = usi_take(&at, 6 * (size_t)(c->model->n_node + 24) * sizeof(double));
    p->body = &c->body[s->first_body], p->block = &c->block[s->first_block];
    p->u = c->u + 3 * s->first_block, p->du = c->du + 3 * s->first_block;
    p->at = at, p->end = end;
    return at <= end;
}

void usi_newton(usi_contacts *c, usi_island *s, const usi_push *push, int32_t thread) {
    usi_problem p = {.c = c, .s = s, .push = push};
    if (!set_up(&p, thread)) {
        s->failed = true;
        return;
    }
    usi_free_start(c, s, push);
    for (int32_t i = 0; i < p.n_unit; i++) {
        if (!usi_unit_is_free(&p, i)) usi_tree_start(c, push, c->members[s->first_tree + i]);
    }
    if (!goes_free(&p)) {
        for (int32_t b = 0; b < s->n_body; b++) {
            const usi_carrier *k = usi_body_carrier(&p, b);
            usi_v4 r = k->p - s->O;
            p.body[b].w = k->w, p.body[b].v = k->v - usi_v4_cross(k->w, r);
        }
        if (!solve_exact(&p)) {
            s->is_lagged = true;
            // From where that got to, with the radii of its impulses.
            renew_radii(&p);
            s->failed = !solve_lagged(&p);
        }
    }
    usi_free_finish(c, s, push);
    for (int32_t i = 0; i < p.n_unit; i++) {
        if (!usi_unit_is_free(&p, i)) usi_tree_finish(c, push, c->members[s->first_tree + i]);
    }
}
