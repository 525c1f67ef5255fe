// The matrix of Newton's method: mass plus J^T G J of every block, and the step that it gives.
//
// A single tree that touches only the world keeps the branches of its mass matrix; a lone free body is six by six; everything else is a sparse matrix
// whose blocks are trees and free bodies.
#include <string.h>

#include "contact/newton.h"
#include "contact/sparse_kernel.h"

// One side of a block: which columns of which unit it moves. A free body has six, a link those of its path.
typedef struct side {
    int32_t unit, n;
    const int32_t *index;  // variables within the unit; NULL: 0 .. n - 1
    double *C[3];
} side;

// ---------------------------------------------------------------- a tree on the ground

static side side_of(const usi_problem *p, const usi_block *k, int32_t body, double *room) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    const usi_carrier *at = usi_body_carrier(p, body);
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
    usi_v4 shift = usi_origin_shift(p, at->tree);
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
static void add_branch(const usi_problem *p, const side *a, const double *G, double *column) {
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

static bool solve_branch(usi_problem *p) {
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
    } else {
        if (!usi_factor_of(c->dyn, span, c->diag, NULL)) return false;
        usi_solve_of(c->dyn, span, c->step_v);
    }
    memcpy(p->x, c->step_v + span.first, (size_t)p->n_var * sizeof(double));
    return true;
}

// ---------------------------------------------------------------- blocks

// W = J^T G J of one block between free bodies: 6 x 6, stride 8.
static void add_block(double *W, const usi_block *k, const double *G) {
    usi_v4 m0 = k->m[0], m1 = k->m[1], m2 = k->m[2], d0 = k->d[0], d1 = k->d[1], d2 = k->d[2];
    usi_v4 a0 = m0 * G[0] + m1 * G[1] + m2 * G[2], a1 = m0 * G[3] + m1 * G[4] + m2 * G[5], a2 = m0 * G[6] + m1 * G[7] + m2 * G[8];
    usi_v4 b0 = d0 * G[0] + d1 * G[1] + d2 * G[2], b1 = d0 * G[3] + d1 * G[4] + d2 * G[5], b2 = d0 * G[6] + d1 * G[7] + d2 * G[8];
    const double *m = (const double *)k->m, *d = (const double *)k->d;
    for (int i = 0; i < 3; i++) {
        usi_v4 *row = (usi_v4 *)(W + 16 * i);  // angular rows: (w | v) halves
        usi_v4 x = usi_v4_all(m[i]), y = usi_v4_all(m[4 + i]), z = usi_v4_all(m[8 + i]);
        row[0] += a0 * x + a1 * y + a2 * z, row[1] += b0 * x + b1 * y + b2 * z;
        x = usi_v4_all(d[i]), y = usi_v4_all(d[4 + i]), z = usi_v4_all(d[8 + i]);
        row[2] += a0 * x + a1 * y + a2 * z, row[3] += b0 * x + b1 * y + b2 * z;
    }
}

// W is kept as halves: row i of the angular part at 16 i, of the linear part at 16 i + 8; each (w 4 lanes | v 4 lanes). The spare lanes are 0: what
// they add to the columns behind changes nothing.
typedef double loose __attribute__((vector_size(32), may_alias, aligned(8)));
static inline void add_lanes(double *to, usi_v4 x) { *(loose *)to += (loose)x; }

static void put_block(double *to, const double *W, double sign) {
    usi_v4 s = usi_v4_all(sign);
    for (int i = 0; i < 3; i++) {
        const usi_v4 *row = (const usi_v4 *)(W + 16 * i);
        add_lanes(to + 8 * i, s * row[0]);
        add_lanes(to + 8 * i + 3, s * row[1]);
        add_lanes(to + 8 * (3 + i), s * row[2]);
        add_lanes(to + 8 * (3 + i) + 3, s * row[3]);
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

static void put_tree(const usi_problem *p, double *to, int32_t stride, int32_t t) {
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

static void add_coupling(usi_problem *p, const usi_coupling *row) {
    const us_model *m = p->c->model;
    double K = usi_coupling_stiffness(p);
    for (int32_t i = 0; i < row->n_term; i++) {
        for (int32_t j = 0; j < row->n_term; j++) {
            int32_t a = m->node[row->v[i]].tree, b = m->node[row->v[j]].tree, ua = p->c->tree[a].variable, ub = p->c->tree[b].variable;
            double *block = usi_sparse_block(p->sparse, ua, ub);
            block[(row->v[i] - m->tree[a].first) * usi_sparse_stride(p->sparse, ub) + row->v[j] - m->tree[b].first] +=
                K * row->factor[i] * row->factor[j];
        }
    }
}

static void add_sides(usi_problem *p, int32_t i) {
    const usi_block *k = &p->block[i];
    const us_model *m = p->c->model;
    const double *G = p->G + 9 * i;
    side a = {.unit = -1}, b = {.unit = -1};
    int32_t fa = 0, fb = 0;
    if (k->a >= 0) a = side_of(p, k, k->a, p->columns), fa = m->tree[usi_body_carrier(p, k->a)->tree].first;
    if (k->b_ >= 0) b = side_of(p, k, k->b_, p->columns + 3 * (m->n_node + 24)), fb = m->tree[usi_body_carrier(p, k->b_)->tree].first;
    int32_t stride_a = a.unit < 0 ? 0 : usi_sparse_stride(p->sparse, a.unit), stride_b = b.unit < 0 ? 0 : usi_sparse_stride(p->sparse, b.unit);
    if (a.unit >= 0) add_product(usi_sparse_block(p->sparse, a.unit, a.unit), stride_a, &a, fa, &a, fa, G, 1);
    if (b.unit >= 0) add_product(usi_sparse_block(p->sparse, b.unit, b.unit), stride_b, &b, fb, &b, fb, G, 1);
    if (a.unit < 0 || b.unit < 0) return;
    double *ab = usi_sparse_block(p->sparse, a.unit, b.unit), *ba = usi_sparse_block(p->sparse, b.unit, a.unit);
    add_product(ab, stride_b, &a, fa, &b, fb, G, -1);
    add_product(ba, stride_a, &b, fb, &a, fa, G, -1);
}

static bool solve_blocks(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    usi_sparse_clear(p->sparse);
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        double *to = usi_sparse_block(p->sparse, i, i);
        if (usi_unit_is_free(p, i))
            put_inertia(to, &p->body[c->carrier[c->carrier_start[t]].body]);
        else
            put_tree(p, to, usi_sparse_stride(p->sparse, i), t);
    }
    for (int32_t i = 0; i < p->s->n_block;) {
        const usi_block *k = &p->block[i];
        int32_t ua = k->a < 0 ? -1 : c->tree[usi_body_carrier(p, k->a)->tree].variable,
                ub = k->b_ < 0 ? -1 : c->tree[usi_body_carrier(p, k->b_)->tree].variable;
        if ((ua >= 0 && !usi_unit_is_free(p, ua)) || (ub >= 0 && !usi_unit_is_free(p, ub))) {
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
        if (usi_coupling_in(p, &m->coupling[k])) add_coupling(p, &m->coupling[k]);
    }
    for (int32_t i = 0; i < p->n_var; i++) p->x[i] = -p->x[i];
    if (!usi_sparse_factor(p->sparse)) return false;
    usi_sparse_solve(p->sparse, p->x);
    for (int32_t i = 0; i < p->n_unit; i++) {
        if (usi_unit_is_free(p, i)) continue;
        const usi_tree *tree = usi_unit_tree(p, i);
        memcpy(c->step_v + tree->first, p->x + p->unit_start[i], (size_t)(tree->end - tree->first) * sizeof(double));
    }
    return true;
}

// One free body and the world.
static bool solve_lone(usi_problem *p) {
    _Alignas(32) double W[48] = {0}, D[48] = {0}, inv[8], y[8];
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const double *G = p->G + 9 * i;
        if (G[0] != 0 || G[4] != 0 || G[8] != 0) add_block(W, &p->block[i], G);
    }
    put_inertia(D, &p->body[0]);
    put_block(D, W, 1);
    for (int i = 0; i < 6; i++) y[i] = -p->x[i];
    y[6] = y[7] = 0;
    if (!usi_factor6(D, inv)) return false;
    usi_forward6(D, y);
    usi_backward6(D, inv, y);
    for (int i = 0; i < 6; i++) p->x[i] = y[i];
    return true;
}

// Which pairs of units meet, each once.
static int32_t find_pairs(usi_problem *p, int32_t (*pair)[2], uint8_t *seen) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t n = 0, n_unit = p->n_unit;
    memset(seen, 0, (size_t)n_unit * (size_t)n_unit);
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        if (k->a < 0 || k->b_ < 0) continue;
        int32_t a = c->tree[usi_body_carrier(p, k->a)->tree].variable, b = c->tree[usi_body_carrier(p, k->b_)->tree].variable;
        if (a == b || seen[a * n_unit + b]) continue;
        seen[a * n_unit + b] = seen[b * n_unit + a] = 1;
        pair[n][0] = a, pair[n][1] = b, n++;
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!usi_coupling_in(p, row)) continue;
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
static bool make_sparse(usi_problem *p) {
    size_t n_unit = (size_t)p->n_unit;
    int32_t(*pair)[2] = usi_take(&p->at, ((size_t)p->s->n_block + n_unit * 8) * sizeof *pair);
    uint8_t *seen = usi_take(&p->at, n_unit * n_unit);
    if (p->at > p->end) return false;
    int32_t n_pair = find_pairs(p, pair, seen);
    p->sparse = usi_sparse_setup(p->at, (size_t)(p->end - p->at), p->n_unit, p->size, (const int32_t(*)[2])pair, n_pair);
    return p->sparse != NULL;
}

bool usi_newton_matrix(usi_problem *p) {
    if (p->s->kind == USI_ISLAND_BRANCH) return solve_branch(p);
    if (p->n_unit == 1 && usi_unit_is_free(p, 0) && p->s->n_body == 1) return solve_lone(p);
    return (p->sparse || make_sparse(p)) && solve_blocks(p);
}
