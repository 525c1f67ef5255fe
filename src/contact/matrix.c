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

static bool factor_branch(usi_problem *p) {
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
    for (int32_t i = span.first; i < span.end; i++) c->diag[i] += m->armature[i];
    p->is_slanted = slides;
    return slides ? usi_branch_factor(m, span, c->diag, c->dyn->row, c->column) : usi_factor_of(c->dyn, span, c->diag, NULL);
}

static void solve_branch(usi_problem *p) {
    usi_contacts *c = p->c;
    const usi_tree *tree = usi_unit_tree(p, 0);
    usi_span span = {tree->first, tree->end};
    for (int32_t i = span.first; i < span.end; i++) c->step_v[i] = -p->r[i - span.first];
    if (p->is_slanted)
        usi_branch_solve(c->model, span, c->dyn->row, c->column, c->step_v);
    else
        usi_solve_of(c->dyn, span, c->step_v);
    memcpy(p->x, c->step_v + span.first, (size_t)p->n_var * sizeof(double));
}

// ---------------------------------------------------------------- blocks

// A row of a free body's matrix: six numbers (w | v) in two vectors, as the sparse matrix keeps them.
typedef struct six {
    usi_v4 a, b;
} six;

static inline six pack(usi_v4 w, usi_v4 v) {
    return (six){__builtin_shufflevector(w, v, 0, 1, 2, 4), __builtin_shufflevector(v, usi_v4_zero(), 1, 2, 4, 5)};
}

// W += J^T G J of one block between free bodies.
static inline void add_block(usi_six *W, const usi_block *k, const double *G) {
    const six J0 = pack(k->m[0], k->d[0]), J1 = pack(k->m[1], k->d[1]), J2 = pack(k->m[2], k->d[2]);
    six A[3];
    for (int i = 0; i < 3; i++) {
        usi_v4 x = usi_v4_all(G[3 * i]), y = usi_v4_all(G[3 * i + 1]), z = usi_v4_all(G[3 * i + 2]);
        A[i] = (six){J0.a * x + J1.a * y + J2.a * z, J0.b * x + J1.b * y + J2.b * z};
    }
    const double *m = (const double *)k->m, *d = (const double *)k->d;
    for (int i = 0; i < 6; i++) {
        const double *J = i < 3 ? m + i : d + i - 3;
        usi_v4 x = usi_v4_all(J[0]), y = usi_v4_all(J[4]), z = usi_v4_all(J[8]);
        W->a[i] += A[0].a * x + A[1].a * y + A[2].a * z;
        W->b[i] += A[0].b * x + A[1].b * y + A[2].b * z;
    }
}

static inline void add_six(double *to, const usi_six *W) {
    for (int i = 0; i < 6; i++) usi_store(to + 8 * i, usi_load(to + 8 * i) + W->a[i]), usi_store(to + 8 * i + 4, usi_load(to + 8 * i + 4) + W->b[i]);
}
static inline void take_six(double *to, const usi_six *W) {
    for (int i = 0; i < 6; i++) usi_store(to + 8 * i, usi_load(to + 8 * i) - W->a[i]), usi_store(to + 8 * i + 4, usi_load(to + 8 * i + 4) - W->b[i]);
}

// The mass matrix of a free body. J is symmetric: its columns are its rows. n from v: h x; f from w: -h x.
static inline usi_six inertia(const usi_free *b) {
    const double x = b->h[0], y = b->h[1], z = b->h[2], mass = b->h[3];
    usi_six D;
    D.a[0] = b->J[0], D.b[0] = (usi_v4){-z, y, 0, 0};
    D.a[1] = b->J[1] + (usi_v4){0, 0, 0, z}, D.b[1] = (usi_v4){0, -x, 0, 0};
    D.a[2] = b->J[2] + (usi_v4){0, 0, 0, -y}, D.b[2] = (usi_v4){x, 0, 0, 0};
    D.a[3] = (usi_v4){0, z, -y, mass}, D.b[3] = usi_v4_zero();
    D.a[4] = (usi_v4){-z, 0, x, 0}, D.b[4] = (usi_v4){mass, 0, 0, 0};
    D.a[5] = (usi_v4){y, -x, 0, 0}, D.b[5] = (usi_v4){0, mass, 0, 0};
    return D;
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

static bool factor_blocks(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    if (!p->is_clear) usi_sparse_clear(p->sparse);
    p->is_clear = false;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->members[p->s->first_tree + i];
        double *to = usi_sparse_block(p->sparse, i, i);
        if (usi_unit_is_free(p, i)) {
            usi_six D = inertia(&p->body[c->carrier[c->carrier_start[t]].body]);
            usi_store6(to, &D);
        } else {
            put_tree(p, to, usi_sparse_stride(p->sparse, i), t);
        }
    }
    for (const usi_run *r = p->run, *end = r + p->n_run; r < end; r++) {
        if (!r->is_free) {
            for (int32_t i = r->first; i < r->end; i++) add_sides(p, i);
            continue;
        }
        // All blocks of a pair of free bodies make one matrix.
        usi_six W = {0};
        bool any = false;
        for (int32_t i = r->first; i < r->end; i++) {
            const double *G = p->G + 9 * i;
            if (G[0] == 0 && G[4] == 0 && G[8] == 0) continue;
            add_block(&W, &p->block[i], G);
            any = true;
        }
        if (!any) continue;
        if (r->aa) add_six(r->aa, &W);
        if (r->bb) add_six(r->bb, &W);
        if (r->ab) take_six(r->ab, &W), take_six(r->ba, &W);
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        if (usi_coupling_in(p, &m->coupling[k])) add_coupling(p, &m->coupling[k]);
    }
    return usi_sparse_factor(p->sparse);
}

static void solve_blocks(usi_problem *p) {
    for (int32_t i = 0; i < p->n_var; i++) p->x[i] = -p->r[i];
    usi_sparse_solve(p->sparse, p->x);
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++) {
        if (usi_unit_is_free(p, i)) continue;
        const usi_tree *tree = usi_unit_tree(p, i);
        memcpy(p->c->step_v + tree->first, p->x + p->unit_start[i], (size_t)(tree->end - tree->first) * sizeof(double));
    }
}

// One free body and the world.
static bool factor_lone(usi_problem *p) {
    usi_six W = inertia(&p->body[0]);
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const double *G = p->G + 9 * i;
        if (G[0] != 0 || G[4] != 0 || G[8] != 0) add_block(&W, &p->block[i], G);
    }
    usi_store6(p->lone, &W);
    return usi_factor6(p->lone, p->lone + 48);
}

static void solve_lone(usi_problem *p) {
    _Alignas(32) double y[8];
    usi_store(y, (usi_v4){-p->r[0], -p->r[1], -p->r[2], -p->r[3]}), usi_store(y + 4, (usi_v4){-p->r[4], -p->r[5], 0, 0});
    usi_forward6(p->lone, y);
    usi_backward6(p->lone, p->lone + 48, y);
    memcpy(p->x, y, 6 * sizeof *y);
}

// Blocks by the units that they act on.
static void find_runs(usi_problem *p) {
    const usi_contacts *c = p->c;
    p->n_run = 0;
    for (int32_t i = 0; i < p->s->n_block;) {
        const usi_block *k = &p->block[i];
        usi_run *r = &p->run[p->n_run++];
        *r = (usi_run){.first = i, .a = k->a, .b = k->b_, .is_free = true};
        if (!p->is_free) {
            if (k->a >= 0) r->a = c->tree[usi_body_carrier(p, k->a)->tree].variable;
            if (k->b_ >= 0) r->b = c->tree[usi_body_carrier(p, k->b_)->tree].variable;
            r->is_free = (r->a < 0 || usi_unit_is_free(p, r->a)) && (r->b < 0 || usi_unit_is_free(p, r->b));
        }
        while (i < p->s->n_block && p->block[i].a == k->a && p->block[i].b_ == k->b_) i++;
        r->end = i;
    }
}

// Which pairs of units meet. Some may come more than once.
static int32_t find_pairs(usi_problem *p, int32_t (*pair)[2], int32_t most) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_run && n < most; i++) {
        if (p->run[i].a >= 0 && p->run[i].b >= 0) pair[n][0] = p->run[i].a, pair[n][1] = p->run[i].b, n++;
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!usi_coupling_in(p, row)) continue;
        for (int32_t i = 0; i < row->n_term; i++) {
            for (int32_t j = 0; j < i && n < most; j++) {
                pair[n][0] = c->tree[m->node[row->v[i]].tree].variable, pair[n][1] = c->tree[m->node[row->v[j]].tree].variable, n++;
            }
        }
    }
    return n;
}

static void point_runs(usi_problem *p) {
    for (usi_run *r = p->run, *end = r + p->n_run; r < end; r++) {
        if (!r->is_free) continue;
        if (r->a >= 0) r->aa = usi_sparse_block(p->sparse, r->a, r->a);
        if (r->b >= 0) r->bb = usi_sparse_block(p->sparse, r->b, r->b);
        if (r->a >= 0 && r->b >= 0) r->ab = usi_sparse_block(p->sparse, r->a, r->b), r->ba = usi_sparse_block(p->sparse, r->b, r->a);
    }
}

// Whether the structure that was kept is this island's: the same runs in the same order. Their blocks are set.
static bool is_kept(const usi_problem *p, const usi_layout *l) {
    if (l->n_unit != p->n_unit || l->n_run != p->n_run) return false;
    for (int32_t i = 0; i < p->n_run; i++) {
        if (l->run[i].a != p->run[i].a || l->run[i].b != p->run[i].b) return false;
    }
    for (int32_t i = 0; i < p->n_run; i++) l->run[i].first = p->run[i].first, l->run[i].end = p->run[i].end;
    return true;
}

// The matrix's structure: made when the first step is asked for, which a body at rest never does. That of free bodies is kept for the next step.
static bool make_sparse(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t first = c->members[p->s->first_tree];
    usi_layout *kept = p->is_free && m->n_coupling == 0 && first < c->n_layout ? &c->layout[first] : NULL;
    size_t most = (size_t)p->s->n_block;
    for (int32_t k = 0; k < m->n_coupling; k++) most += (size_t)m->coupling[k].n_term * (size_t)m->coupling[k].n_term / 2;
    p->run = usi_take(&p->at, (size_t)p->s->n_block * sizeof *p->run);
    int32_t(*pair)[2] = usi_take(&p->at, most * sizeof *pair);
    if (p->at > p->end) return false;
    find_runs(p);
    p->is_clear = !(kept && is_kept(p, kept));
    if (!p->is_clear) {
        p->sparse = kept->sparse, p->run = kept->run;
        return true;
    }
    int32_t n_pair = find_pairs(p, pair, (int32_t)most);
    if (kept) {
        kept->n_unit = 0;
        char *at = kept->memory, *end = at + USI_LAYOUT_BYTES;
        usi_run *run = usi_take(&at, (size_t)p->n_run * sizeof *run);
        if (at < end) p->sparse = usi_sparse_setup(at, (size_t)(end - at), p->n_unit, p->size, (const int32_t(*)[2])pair, n_pair);
        if (p->sparse) {
            memcpy(run, p->run, (size_t)p->n_run * sizeof *run);
            p->run = run;
            *kept = (usi_layout){kept->memory, p->sparse, run, p->n_unit, p->n_run};
        }
    }
    if (!p->sparse) p->sparse = usi_sparse_setup(p->at, (size_t)(p->end - p->at), p->n_unit, p->size, (const int32_t(*)[2])pair, n_pair);
    if (!p->sparse) return false;
    point_runs(p);
    return true;
}

bool usi_newton_matrix(usi_problem *p) {
    if (p->s->kind == USI_ISLAND_BRANCH) return factor_branch(p);
    if (usi_is_lone(p)) return factor_lone(p);
    return (p->sparse || make_sparse(p)) && factor_blocks(p);
}

void usi_newton_step(usi_problem *p) {
    if (p->s->kind == USI_ISLAND_BRANCH)
        solve_branch(p);
    else if (usi_is_lone(p))
        solve_lone(p);
    else
        solve_blocks(p);
}
