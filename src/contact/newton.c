// Newton's method on the velocities of one island.
//
// Unknowns are the twists of free bodies (about O, world axes) and the joint velocities of trees. The balance
//
//     r(V) = M V - p - sum of J^T g(J V) - joint rows = 0
//
// is solved to 1e-6 of the impulses in it. Every block adds J^T G J to the matrix; G is the slope of its law.
//
// With exact friction the slope is not symmetric and there is no potential; full steps, halved where that helps, converge in a few
// iterations from the last step's velocities, nearly always. Where they do not, the friction radius is lagged: it is renewed after the
// first two iterations, then frozen. Frozen, the problem is convex: a search along the Newton step that brackets the zero of the
// slope always ends lower. When that has converged and the radii are not yet those of the solution, they are renewed once more.
//
// A single tree that touches only the world keeps the branches of its mass matrix; everything else is a sparse matrix of blocks.
#include <string.h>

#include "contact/law.h"
#include "contact/world.h"

static const double TOLERANCE = 1e-6;
// What is accepted when the iterations run out.
static const double GOOD_ENOUGH = 1e-2;
// The lagged radius counts as that of the solution when it is within this part of it.
static const double SAME_RADIUS = 1e-4;
enum { MOST_EXACT = 20, MOST_LAGGED = 120, MOST_HALVES = 2, MOST_RENEWALS = 2, MOST_SEARCH = 40 };

// One side of a block: which columns of which unit it moves. A free body has six, a link those of its path.
typedef struct side {
    int32_t unit, n;
    const int32_t *index;  // variables within the unit; NULL: 0 .. n - 1
    double *C[3];
} side;

typedef struct problem {
    usi_contacts *c;
    usi_island *s;
    const usi_push *push;
    bool is_exact;  // friction of the iterate's own normal impulses, otherwise of the lagged radii
    int32_t n_unit, n_var;
    int32_t *unit_start;  // n_unit + 1: first variable of each unit
    int32_t *size;        // n_unit: how many it has
    usi_sparse *sparse;
    double *x;         // n_var: residual, then Newton step
    double *kept;      // n_var: the Newton step while trial points are looked at
    double *G;         // 9 per block
    usi_v4 *force;     // per body: impulse about O, two vectors
    usi_v4 *step;      // per body: change of twist about O, two vectors
    double *columns;   // room for the columns of two sides
    double slope;            // of the potential at the start of the Newton step
    char *at, *end;          // what is left of the work space
    double smooth0, smooth1;  // slope of the smooth part along the step, and its change
    usi_free *body;
    usi_block *block;
    double *u, *du;
} problem;

static bool is_free(const problem *p, int32_t unit) { return p->c->model->tree[p->c->members[p->s->first_tree + unit]].is_free_body; }
static const usi_tree *tree_of(const problem *p, int32_t unit) { return &p->c->model->tree[p->c->members[p->s->first_tree + unit]]; }
static const usi_carrier *carrier_of(const problem *p, int32_t body) { return &p->c->carrier[p->c->body_carrier[p->s->first_body + body]]; }

// ---------------------------------------------------------------- couplings

// Couplings of the island: rows over several joints that hold exactly up to the same compliance as loops.
static bool coupling_in(const problem *p, const usi_coupling *k) {
    return &p->c->island[p->c->tree[p->c->model->node[k->v[0]].tree].island] == p->s && p->c->tree[p->c->model->node[k->v[0]].tree].island >= 0;
}
static double coupling_stiffness(const problem *p) { return 1e6 * p->s->most_mass; }
static double coupling_impulse(const problem *p, const usi_coupling *k, const double *v) {
    double phi = -k->offset, u = 0;
    for (int32_t i = 0; i < k->n_term; i++) phi += k->factor[i] * p->push->q[k->q[i]], u += k->factor[i] * v[k->v[i]];
    return -coupling_stiffness(p) * (u + phi / p->c->model->step);
}

// ---------------------------------------------------------------- trees

// y = (H + armature) x over a tree.
static void times_mass(const problem *p, int32_t t, const double *x, double *y) {
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
static void tree_twists(const problem *p, int32_t t, const double *v) {
    const us_model *m = p->c->model;
    usi_link *link = p->c->dyn->link;
    for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++) {
        int32_t parent = m->node[i].parent;
        usi_v4 w = link[i].Sw * v[i], o = link[i].Sv * v[i];
        if (parent >= 0) w += link[parent].w, o += link[parent].v;
        link[i].w = w, link[i].v = o;
    }
}

static usi_v4 origin_shift(const problem *p, int32_t t) { return p->s->O - p->c->dyn->origin[t]; }

// ---------------------------------------------------------------- the balance

// Twists of all bodies about O from the iterate (or, with `is_step`, from the Newton step).
static void spread(problem *p, bool is_step) {
    const usi_contacts *c = p->c;
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (!is_free(p, k)) tree_twists(p, c->members[p->s->first_tree + k], is_step ? c->step_v : c->vel);
    }
    for (int32_t b = 0; b < p->s->n_body; b++) {
        const usi_carrier *k = carrier_of(p, b);
        if (c->model->tree[k->tree].is_free_body) {
            if (!is_step) continue;
            const double *x = p->x + p->unit_start[c->tree[k->tree].variable];
            p->step[2 * b] = usi_v4_set(x[0], x[1], x[2]), p->step[2 * b + 1] = usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        const usi_link *l = &c->dyn->link[k->node];
        usi_v4 v = l->v + usi_v4_cross(l->w, origin_shift(p, k->tree));
        if (is_step) p->step[2 * b] = l->w, p->step[2 * b + 1] = v;
        else p->body[b].w = l->w, p->body[b].v = v;
    }
}

static void row_velocities(const problem *p) {
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
static double balance(problem *p) {
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
        if (is_free(p, i)) {
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
            c->dyn->link[j].n = c->dyn->link[j].f = usi_v4_zero();
            c->diag[j] = 0;
        }
        times_mass(p, t, c->delta, c->residual);
        usi_v4 shift = origin_shift(p, t);
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
        if (!coupling_in(p, row)) continue;
        double g = coupling_impulse(p, row, c->vel);
        for (int32_t i = 0; i < row->n_term; i++) {
            int32_t t = m->node[row->v[i]].tree;
            p->x[p->unit_start[c->tree[t].variable] + row->v[i] - m->tree[t].first] -= row->factor[i] * g;
        }
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (is_free(p, i)) continue;
        const usi_tree *tree = tree_of(p, i);
        const double *x = p->x + p->unit_start[i];
        for (int32_t j = tree->first; j < tree->end; j++) {
            error += x[j - tree->first] * x[j - tree->first] / (c->H[m->row_start[j + 1] - 1] + m->armature[j]);
        }
    }
    scale += impulses / p->s->most_mass;
    return scale > 0 ? sqrt(error / scale) : sqrt(error);
}

// ---------------------------------------------------------------- the matrix

static side side_of(const problem *p, const usi_block *k, int32_t body, double *room) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    const usi_carrier *at = carrier_of(p, body);
    side s = {.unit = c->tree[at->tree].variable};
    if (m->tree[at->tree].is_free_body) {
        s.n = 6;
        for (int j = 0; j < 3; j++) {
            s.C[j] = room + 8 * j;
            for (int i = 0; i < 3; i++) s.C[j][i] = k->m[j][i], s.C[j][3 + i] = k->d[j][i];
        }
        return s;
    }
    const usi_link *link = c->dyn->link;
    usi_v4 shift = origin_shift(p, at->tree);
    const int32_t *path = m->path + m->row_start[at->node];
    s.n = m->row_start[at->node + 1] - m->row_start[at->node];
    s.index = path;
    for (int j = 0; j < 3; j++) {
        s.C[j] = room + j * s.n;
        usi_v4 moment = k->m[j] + usi_v4_cross(shift, k->d[j]);
        for (int32_t i = 0; i < s.n; i++) s.C[j][i] = usi_v4_sum(link[path[i]].Sw * moment + link[path[i]].Sv * k->d[j]);
    }
    return s;
}

// block += sign C_a^T G C_b.
static void add_product(double *block, int32_t stride, const side *a, int32_t first_a, const side *b, int32_t first_b, const double *G, double sign) {
    for (int32_t i = 0; i < a->n; i++) {
        double x = sign * a->C[0][i], y = sign * a->C[1][i], z = sign * a->C[2][i];
        double l = x * G[0] + y * G[3] + z * G[6], n = x * G[1] + y * G[4] + z * G[7], o = x * G[2] + y * G[5] + z * G[8];
        double *row = block + (a->index ? a->index[i] - first_a : i) * stride;
        for (int32_t j = 0; j < b->n; j++) row[b->index ? b->index[j] - first_b : j] += l * b->C[0][j] + n * b->C[1][j] + o * b->C[2][j];
    }
}

// Along the branches of the one tree: row i of H takes its ancestors' columns; with `column` also the other way round.
static void add_branch(const problem *p, const side *a, const double *G, double *column) {
    const us_model *m = p->c->model;
    for (int32_t i = 0; i < a->n; i++) {
        double x = a->C[0][i], y = a->C[1][i], z = a->C[2][i];
        double l = x * G[0] + y * G[3] + z * G[6], n = x * G[1] + y * G[4] + z * G[7], o = x * G[2] + y * G[5] + z * G[8];
        int32_t at = m->row_start[a->index[i]];
        double *row = p->c->dyn->row + at;
        for (int32_t j = 0; j <= i; j++) row[j] += l * a->C[0][j] + n * a->C[1][j] + o * a->C[2][j];
        if (!column) continue;
        l = x * G[0] + y * G[1] + z * G[2], n = x * G[3] + y * G[4] + z * G[5], o = x * G[6] + y * G[7] + z * G[8];
        for (int32_t j = 0; j < i; j++) column[at + j] += l * a->C[0][j] + n * a->C[1][j] + o * a->C[2][j];
    }
}

static bool solve_branch(problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t t = c->members[p->s->first_tree];
    usi_span span = {m->tree[t].first, m->tree[t].end};
    int32_t from = m->row_start[span.first], to = m->row_start[span.end];
    memcpy(c->dyn->row + from, c->H + from, (size_t)(to - from) * sizeof(double));
    // Only sliding makes it unsymmetric.
    bool slides = false;
    for (int32_t i = 0; i < p->s->n_block && !slides; i++) slides = p->G[9 * i + 3] != 0 || p->G[9 * i + 6] != 0;
    if (slides) memcpy(c->column + from, c->H + from, (size_t)(to - from) * sizeof(double));
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        const double *G = p->G + 9 * i;
        if (G[0] == 0 && G[4] == 0 && G[8] == 0) continue;
        side a = side_of(p, k, k->a >= 0 ? k->a : k->b_, p->columns);
        add_branch(p, &a, G, slides ? c->column : NULL);
    }
    for (int32_t i = span.first; i < span.end; i++) c->diag[i] += m->armature[i], c->step_v[i] = -p->x[i - span.first];
    if (slides) {
        if (!usi_branch_factor(m, span, c->diag, c->dyn->row, c->column)) return false;
        usi_branch_solve(m, span, c->dyn->row, c->column, c->step_v);
        return true;
    }
    if (!usi_factor_of(c->dyn, span, c->diag, NULL)) return false;
    usi_solve_of(c->dyn, span, c->step_v);
    return true;
}

// W = J^T G J of one block between free bodies: 6 x 6, stride 8.
static void add_block(double *W, const usi_block *k, const double *G) {
    usi_v4 m0 = k->m[0], m1 = k->m[1], m2 = k->m[2], d0 = k->d[0], d1 = k->d[1], d2 = k->d[2];
    usi_v4 a0 = m0 * G[0] + m1 * G[1] + m2 * G[2], a1 = m0 * G[3] + m1 * G[4] + m2 * G[5], a2 = m0 * G[6] + m1 * G[7] + m2 * G[8];
    usi_v4 b0 = d0 * G[0] + d1 * G[1] + d2 * G[2], b1 = d0 * G[3] + d1 * G[4] + d2 * G[5], b2 = d0 * G[6] + d1 * G[7] + d2 * G[8];
    for (int i = 0; i < 3; i++) {
        usi_v4 *row = (usi_v4 *)(W + 16 * i);  // angular rows: (w | v) halves
        usi_v4 x = usi_v4_all(((const double *)&m0)[i]), y = usi_v4_all(((const double *)&m1)[i]), z = usi_v4_all(((const double *)&m2)[i]);
        row[0] += a0 * x + a1 * y + a2 * z, row[1] += b0 * x + b1 * y + b2 * z;
        x = usi_v4_all(((const double *)&d0)[i]), y = usi_v4_all(((const double *)&d1)[i]), z = usi_v4_all(((const double *)&d2)[i]);
        row[2] += a0 * x + a1 * y + a2 * z, row[3] += b0 * x + b1 * y + b2 * z;
    }
}

// W is kept as halves: row i of the angular part at 16 i, of the linear part at 16 i + 8; each (w 4 lanes | v 4 lanes).
static void put_block(double *to, const double *W, double sign) {
    for (int i = 0; i < 3; i++) {
        const double *angular = W + 16 * i, *linear = angular + 8;
        double *top = to + 8 * i, *bottom = to + 8 * (3 + i);
        for (int j = 0; j < 3; j++) {
            top[j] += sign * angular[j], top[3 + j] += sign * angular[4 + j];
            bottom[j] += sign * linear[j], bottom[3 + j] += sign * linear[4 + j];
        }
    }
}

static void put_inertia(double *to, const usi_free *b) {
    double h[3] = {b->h[0], b->h[1], b->h[2]}, mass = b->h[3];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) to[8 * i + j] = b->J[j][i];
        to[8 * (3 + i) + 3 + i] = mass;
    }
    // n from v: h x; f from w: -h x.
    to[8 * 0 + 4] = -h[2], to[8 * 0 + 5] = h[1], to[8 * 1 + 3] = h[2], to[8 * 1 + 5] = -h[0], to[8 * 2 + 3] = -h[1], to[8 * 2 + 4] = h[0];
    to[8 * 3 + 1] = h[2], to[8 * 3 + 2] = -h[1], to[8 * 4 + 0] = -h[2], to[8 * 4 + 2] = h[0], to[8 * 5 + 0] = h[1], to[8 * 5 + 1] = -h[0];
}

static void put_tree(const problem *p, double *to, int32_t stride, int32_t t) {
    const us_model *m = p->c->model;
    int32_t first = m->tree[t].first;
    for (int32_t i = first; i < m->tree[t].end; i++) {
        for (int32_t at = m->row_start[i]; at < m->row_start[i + 1]; at++) {
            int32_t j = m->path[at];
            to[(i - first) * stride + j - first] = to[(j - first) * stride + i - first] = p->c->H[at];
        }
        to[(i - first) * stride + i - first] += m->armature[i] + p->c->diag[i];
    }
}

static void add_coupling(problem *p, const usi_coupling *row) {
    const us_model *m = p->c->model;
    double K = coupling_stiffness(p);
    for (int32_t i = 0; i < row->n_term; i++) {
        for (int32_t j = 0; j < row->n_term; j++) {
            int32_t a = m->node[row->v[i]].tree, b = m->node[row->v[j]].tree, ua = p->c->tree[a].variable, ub = p->c->tree[b].variable;
            double *block = usi_sparse_block(p->sparse, ua, ub);
            block[(row->v[i] - m->tree[a].first) * usi_sparse_stride(p->sparse, ub) + row->v[j] - m->tree[b].first] += K * row->factor[i] * row->factor[j];
        }
    }
}

static void add_sides(problem *p, int32_t i) {
    const usi_block *k = &p->block[i];
    const us_model *m = p->c->model;
    const double *G = p->G + 9 * i;
    side a = {.unit = -1}, b = {.unit = -1};
    int32_t fa = 0, fb = 0;
    if (k->a >= 0) a = side_of(p, k, k->a, p->columns), fa = m->tree[carrier_of(p, k->a)->tree].first;
    if (k->b_ >= 0) b = side_of(p, k, k->b_, p->columns + 3 * (m->n_node + 24)), fb = m->tree[carrier_of(p, k->b_)->tree].first;
    int32_t stride_a = a.unit < 0 ? 0 : usi_sparse_stride(p->sparse, a.unit), stride_b = b.unit < 0 ? 0 : usi_sparse_stride(p->sparse, b.unit);
    if (a.unit >= 0) add_product(usi_sparse_block(p->sparse, a.unit, a.unit), stride_a, &a, fa, &a, fa, G, 1);
    if (b.unit >= 0) add_product(usi_sparse_block(p->sparse, b.unit, b.unit), stride_b, &b, fb, &b, fb, G, 1);
    if (a.unit < 0 || b.unit < 0) return;
    double *ab = usi_sparse_block(p->sparse, a.unit, b.unit), *ba = usi_sparse_block(p->sparse, b.unit, a.unit);
    add_product(ab, stride_b, &a, fa, &b, fb, G, -1);
    add_product(ba, stride_a, &b, fb, &a, fa, G, -1);
}

static bool solve_blocks(problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    usi_sparse_clear(p->sparse);
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        double *to = usi_sparse_block(p->sparse, i, i);
        if (is_free(p, i)) put_inertia(to, &p->body[c->carrier[c->carrier_start[t]].body]);
        else put_tree(p, to, usi_sparse_stride(p->sparse, i), t);
    }
    for (int32_t i = 0; i < p->s->n_block;) {
        const usi_block *k = &p->block[i];
        int32_t ua = k->a < 0 ? -1 : c->tree[carrier_of(p, k->a)->tree].variable, ub = k->b_ < 0 ? -1 : c->tree[carrier_of(p, k->b_)->tree].variable;
        if ((ua >= 0 && !is_free(p, ua)) || (ub >= 0 && !is_free(p, ub))) {
            add_sides(p, i++);
            continue;
        }
        // All blocks of a pair of free bodies make one matrix.
        _Alignas(32) double W[48] = {0};
        bool any = false;
        for (int32_t a = k->a, b = k->b_; i < p->s->n_block && p->block[i].a == a && p->block[i].b_ == b; i++) {
            const double *G = p->G + 9 * i;
            if (G[0] == 0 && G[4] == 0 && G[8] == 0) continue;
            add_block(W, &p->block[i], G);
            any = true;
        }
        if (!any) continue;
        if (ua >= 0) put_block(usi_sparse_block(p->sparse, ua, ua), W, 1);
        if (ub >= 0) put_block(usi_sparse_block(p->sparse, ub, ub), W, 1);
        if (ua < 0 || ub < 0) continue;
        put_block(usi_sparse_block(p->sparse, ua, ub), W, -1);
        put_block(usi_sparse_block(p->sparse, ub, ua), W, -1);
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        if (coupling_in(p, &m->coupling[k])) add_coupling(p, &m->coupling[k]);
    }
    for (int32_t i = 0; i < p->n_var; i++) p->x[i] = -p->x[i];
    if (!usi_sparse_factor(p->sparse)) return false;
    usi_sparse_solve(p->sparse, p->x);
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (is_free(p, i)) continue;
        const usi_tree *tree = tree_of(p, i);
        memcpy(c->step_v + tree->first, p->x + p->unit_start[i], (size_t)(tree->end - tree->first) * sizeof(double));
    }
    return true;
}

// ---------------------------------------------------------------- along a step

// Slope of the potential at V + alpha step, from what was stored.
static double slope_at(problem *p, double alpha) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    double sum = p->smooth0 + alpha * p->smooth1;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        double u[3], g[3];
        for (int j = 0; j < 3; j++) u[j] = p->u[3 * i + j] + alpha * p->du[3 * i + j];
        usi_law_impulse(&p->block[i], u, false, g);
        for (int j = 0; j < 3; j++) sum -= g[j] * p->du[3 * i + j];
    }
    for (int32_t k = 0; k < p->n_unit; k++) {
        if (is_free(p, k)) continue;
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
        if (!coupling_in(p, &m->coupling[k])) continue;
        double u = 0;
        for (int32_t i = 0; i < m->coupling[k].n_term; i++) u += m->coupling[k].factor[i] * c->step_v[m->coupling[k].v[i]];
        sum -= (coupling_impulse(p, &m->coupling[k], c->vel) - alpha * coupling_stiffness(p) * u) * u;
    }
    return sum;
}

// Changes of twists and row velocities along the step, and the smooth part's slope.
static void prepare_line(problem *p) {
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
        if (is_free(p, i)) {
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

// How far to go back from the end of a full step, 0 .. 1 of it, to where the slope is 0. The potential is convex: the slopes at its start (< 0) and end
// (> 0) bracket the zero.
static double search_back(problem *p, double s_start, double s_end) {
    double low = -1, high = 0, s_low = s_start, s_high = s_end;
    for (int i = 0; i < MOST_SEARCH; i++) {
        double alpha = low + (high - low) * (-s_low / (s_high - s_low));
        // A zero near one end is approached from the other by halves, or false position would creep.
        if (i % 3 == 2) alpha = 0.5 * (low + high);
        double s = slope_at(p, alpha);
        if (fabs(s) <= 1e-2 * -s_start) return alpha;
        if (s > 0) high = alpha, s_high = s;
        else low = alpha, s_low = s;
    }
    return low > -1 ? low : high;
}

static void move(problem *p, double alpha) {
    usi_contacts *c = p->c;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        if (is_free(p, i)) {
            const double *x = p->x + p->unit_start[i];
            usi_free *b = &p->body[c->carrier[c->carrier_start[t]].body];
            b->w += alpha * usi_v4_set(x[0], x[1], x[2]), b->v += alpha * usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        for (int32_t j = c->model->tree[t].first; j < c->model->tree[t].end; j++) c->vel[j] += alpha * c->step_v[j];
    }
}

static void *take(char **at, size_t bytes) {
    void *memory = *at;
    *at += (bytes + 63) / 64 * 64;
    return memory;
}

// Which pairs of units meet, each once.
static int32_t find_pairs(problem *p, int32_t (*pair)[2], uint8_t *seen) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t n = 0, n_unit = p->n_unit;
    memset(seen, 0, (size_t)n_unit * (size_t)n_unit);
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        if (k->a < 0 || k->b_ < 0) continue;
        int32_t a = c->tree[carrier_of(p, k->a)->tree].variable, b = c->tree[carrier_of(p, k->b_)->tree].variable;
        if (a == b || seen[a * n_unit + b]) continue;
        seen[a * n_unit + b] = seen[b * n_unit + a] = 1;
        pair[n][0] = a, pair[n][1] = b, n++;
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!coupling_in(p, row)) continue;
        for (int32_t i = 0; i < row->n_term; i++) {
            for (int32_t j = 0; j < i; j++) {
                int32_t a = c->tree[m->node[row->v[i]].tree].variable, b = c->tree[m->node[row->v[j]].tree].variable;
                if (a == b || seen[a * n_unit + b]) continue;
                seen[a * n_unit + b] = seen[b * n_unit + a] = 1;
                pair[n][0] = a, pair[n][1] = b, n++;
            }
        }
    }
    return n;
}

// The matrix's structure: made when the first step is asked for, which a body at rest never does.
static bool make_sparse(problem *p) {
    size_t n_unit = (size_t)p->n_unit;
    int32_t(*pair)[2] = take(&p->at, ((size_t)p->s->n_block + n_unit * 8) * sizeof *pair);
    uint8_t *seen = take(&p->at, n_unit * n_unit);
    if (p->at > p->end) return false;
    int32_t n_pair = find_pairs(p, pair, seen);
    p->sparse = usi_sparse_setup(p->at, (size_t)(p->end - p->at), p->n_unit, p->size, (const int32_t(*)[2])pair, n_pair);
    return p->sparse != NULL;
}

// ---------------------------------------------------------------- the method

// The residual shares its place with the Newton step, which is kept aside while trial points are looked at.
static void take_step(problem *p) {
    usi_contacts *c = p->c;
    memcpy(p->x, p->kept, (size_t)p->n_var * sizeof(double));
    for (int32_t i = 0; i < p->n_unit; i++) {
        const usi_tree *tree = tree_of(p, i);
        if (!is_free(p, i)) memcpy(c->step_v + tree->first, p->kept + p->unit_start[i], (size_t)(tree->end - tree->first) * sizeof(double));
    }
}

// The Newton step, from the residual in p->x; the slope of the potential at its start goes to p->slope.
static bool find_step(problem *p) {
    usi_contacts *c = p->c;
    p->s->n_iteration++;
    if (p->s->kind == USI_ISLAND_BRANCH) {
        if (!solve_branch(p)) return false;
        const double *step = c->step_v + tree_of(p, 0)->first;
        p->slope = 0;
        for (int32_t i = 0; i < p->n_var; i++) {
            p->slope += p->x[i] * step[i];
            p->kept[i] = step[i];
        }
        return true;
    }
    if (!p->sparse && !make_sparse(p)) return false;
    double *residual = p->kept;
    memcpy(residual, p->x, (size_t)p->n_var * sizeof(double));
    if (!solve_blocks(p)) return false;
    p->slope = 0;
    for (int32_t i = 0; i < p->n_var; i++) {
        p->slope += residual[i] * p->x[i];
        p->kept[i] = p->x[i];
    }
    return true;
}

// Full steps; one that makes the balance worse is halved, and when that does not help the exact problem is left at the better end of the step.
static bool solve_exact(problem *p) {
    p->is_exact = true;
    double error = balance(p);
    for (int i = 0; i < MOST_EXACT; i++) {
        if (error <= TOLERANCE) return true;
        if (!find_step(p)) return false;
        double alpha = 1, last = error;
        move(p, 1);
        error = balance(p);
        for (int k = 0; k < MOST_HALVES && !(error < last); k++) {
            take_step(p);
            move(p, -0.5 * alpha);
            alpha *= 0.5;
            error = balance(p);
        }
        if (!(error < last)) return false;
    }
    return error <= TOLERANCE;
}

// Sets the lagged radii to those of the impulses. Returns the greatest change over the greatest radius.
static double renew_radii(problem *p) {
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

static bool solve_lagged(problem *p) {
    p->is_exact = false;
    int renewals = 0;
    double error = balance(p);
    for (int i = 0; i < MOST_LAGGED; i++) {
        if (error <= TOLERANCE) {
            if (++renewals > MOST_RENEWALS || i > MOST_LAGGED / 2 || renew_radii(p) <= SAME_RADIUS) return true;
            error = balance(p);
            if (error <= TOLERANCE) return true;
        } else if ((i == 1 || i == 2) && renew_radii(p) > SAME_RADIUS) {
            error = balance(p);
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
static bool goes_free(problem *p) {
    for (int32_t i = 0; i < p->s->n_block; i++) {
        if (p->block[i].law == USI_EQUAL || (p->block[i].law == USI_POINT && p->block[i].b[0] <= 0)) return false;
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (!is_free(p, i)) return false;
    }
    for (int32_t b = 0; b < p->s->n_body; b++) p->body[b].w = p->body[b].fw, p->body[b].v = p->body[b].fv;
    row_velocities(p);
    for (int32_t i = 0; i < p->s->n_block; i++) {
        if (p->block[i].law == USI_POINT && p->u[3 * i] + p->block[i].b[0] < 0) return false;
    }
    for (int32_t i = 0; i < p->s->n_block; i++) p->block[i].g[0] = p->block[i].g[1] = p->block[i].g[2] = 0;
    return true;
}

static bool set_up(problem *p, int32_t thread) {
    usi_contacts *c = p->c;
    usi_island *s = p->s;
    char *at = c->work[thread], *end = at + c->work_size;
    size_t n_unit = (size_t)s->n_tree, n_block = (size_t)s->n_block;
    p->n_unit = s->n_tree;
    p->unit_start = take(&at, (n_unit + 1) * sizeof(int32_t));
    p->size = take(&at, n_unit * sizeof(int32_t));
    p->n_var = 0;
    for (int32_t i = 0; i < s->n_tree; i++) {
        int32_t t = c->members[s->first_tree + i];
        c->tree[t].variable = i;
        p->unit_start[i] = p->n_var;
        p->size[i] = c->model->tree[t].end - c->model->tree[t].first;
        p->n_var += p->size[i];
    }
    p->unit_start[s->n_tree] = p->n_var;
    p->x = take(&at, (size_t)p->n_var * sizeof(double));
    p->kept = take(&at, (size_t)p->n_var * sizeof(double));
    p->G = take(&at, 9 * n_block * sizeof(double));
    p->force = take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->step = take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->columns = take(&at, 6 * (size_t)(c->model->n_node + 24) * sizeof(double));
    p->body = &c->body[s->first_body], p->block = &c->block[s->first_block];
    p->u = c->u + 3 * s->first_block, p->du = c->du + 3 * s->first_block;
    p->at = at, p->end = end;
    return at <= end;
}

void usi_newton(usi_contacts *c, usi_island *s, const usi_push *push, int32_t thread) {
    problem p = {.c = c, .s = s, .push = push};
    if (!set_up(&p, thread)) {
        s->failed = true;
        return;
    }
    usi_free_start(c, s, push);
    for (int32_t i = 0; i < p.n_unit; i++) {
        if (!is_free(&p, i)) usi_tree_start(c, push, c->members[s->first_tree + i]);
    }
    if (!goes_free(&p)) {
        for (int32_t b = 0; b < s->n_body; b++) {
            const usi_carrier *k = carrier_of(&p, b);
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
        if (!is_free(&p, i)) usi_tree_finish(c, push, c->members[s->first_tree + i]);
    }
}
