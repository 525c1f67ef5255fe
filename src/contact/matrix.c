// The matrix of Newton's method: mass plus J^T G J of every block, and the step that it gives.
//
// A single tree that touches only the world is an articulated body (fast/branch.c); everything else is a
// sparse matrix whose blocks are trees and free bodies.
#include <string.h>

#include "contact/contact__newton.h"
#include "contact/contact__sparse_kernel.h"

// ---------------------------------------------------------------- six by six

// Whether a block does nothing at all.
static inline bool is_idle(const double *G) { return G[0] == 0 && G[1] == 0 && G[4] == 0 && G[8] == 0; }

// W += J^T G J of a block that only turns: rows and columns of rotation, and by its point's normal row what
// the limits give.
static inline void add_rotation(usi_six *W, const usi_block *k, const double *G) {
    const usi_v4 x = k->m[0] * G[0], y = k->m[1] * G[4] + k->m[2] * G[5], z = k->m[1] * G[7] + k->m[2] * G[8];
    const usi_v4 by = k->m[0] * G[1] + k->m[1] * G[3] + k->m[2] * G[6];
    const usi_row J = usi_row_pack(k[-1].m[0], k[-1].d[0]);
    const double *m = (const double *)k->m;
    for (int i = 0; i < 3; i++) {
        usi_v4 limits = usi_v4_all(by[i]);
        W->a[i] += x * usi_v4_all(m[i]) + y * usi_v4_all(m[4 + i]) + z * usi_v4_all(m[8 + i]) + J.a * limits;
        W->b[i] += J.b * limits;
    }
}

// The same of any other block.
static inline void add_block(usi_six *W, const usi_block *k, const double *G) {
    const usi_row J0 = usi_row_pack(k->m[0], k->d[0]), J1 = usi_row_pack(k->m[1], k->d[1]),
                  J2 = usi_row_pack(k->m[2], k->d[2]);
    usi_row A[3];
    for (int i = 0; i < 3; i++) {
        usi_v4 x = usi_v4_all(G[3 * i]), y = usi_v4_all(G[3 * i + 1]), z = usi_v4_all(G[3 * i + 2]);
        A[i] = (usi_row){J0.a * x + J1.a * y + J2.a * z, J0.b * x + J1.b * y + J2.b * z};
    }
    const double *m = (const double *)k->m, *d = (const double *)k->d;
    for (int i = 0; i < 6; i++) {
        const double *J = i < 3 ? m + i : d + i - 3;
        usi_v4 x = usi_v4_all(J[0]), y = usi_v4_all(J[4]), z = usi_v4_all(J[8]);
        W->a[i] += A[0].a * x + A[1].a * y + A[2].a * z;
        W->b[i] += A[0].b * x + A[1].b * y + A[2].b * z;
    }
}

// The mass matrix of a body: J about O, symmetric, so that its columns are its rows; h, with the mass in the
// spare lane. n from v: h x; f from w: -h x.
static inline usi_six inertia(const usi_v4 J[3], usi_v4 h) {
    const double x = h[0], y = h[1], z = h[2], mass = h[3];
    usi_six D;
    D.a[0] = J[0];
    D.b[0] = (usi_v4){-z, y, 0, 0};
    D.a[1] = J[1] + (usi_v4){0, 0, 0, z};
    D.b[1] = (usi_v4){0, -x, 0, 0};
    D.a[2] = J[2] + (usi_v4){0, 0, 0, -y};
    D.b[2] = (usi_v4){x, 0, 0, 0};
    D.a[3] = (usi_v4){0, z, -y, mass};
    D.b[3] = usi_v4_zero();
    D.a[4] = (usi_v4){-z, 0, x, 0};
    D.b[4] = (usi_v4){mass, 0, 0, 0};
    D.a[5] = (usi_v4){y, -x, 0, 0};
    D.b[5] = (usi_v4){0, mass, 0, 0};
    return D;
}

// ---------------------------------------------------------------- a tree on the ground

// A coupling's row f of stiffness K would fill the matrix between branches. It is left out of the factors, of
// A, and put in by its own small system:
//
//     (A + K f f^T)^-1 b = y - z (f . y) / (1/K + f . z),    y = A^-1 b,  z = A^-1 f
//
// One after the other, each z with the couplings before it in.
static double along_coupling(const usi_coupling *row, const double *x) {
    double sum = 0;
    for (int32_t i = 0; i < row->n_term; i++)
        sum += row->factor[i] * x[row->v[i]];
    return sum;
}

// The first n of them.
static void take_couplings(const usi_problem *p, int32_t tree, int32_t n, double *x) {
    const usi_contacts *c = p->c;
    const int32_t *list = c->coupling_of_tree + c->coupling_start[tree], first = c->model->tree[tree].first;
    for (int32_t k = 0; k < n; k++) {
        const double *z = p->coupled + k * (p->n_var + 1);
        double share = along_coupling(&c->model->coupling[list[k]], x) * z[p->n_var];
        for (int32_t i = 0; i < p->n_var; i++)
            x[first + i] -= share * z[i];
    }
}

static double *set_right_side(usi_problem *p, usi_span span) {
    for (int32_t i = span.first; i < span.end; i++)
        p->c->joints.step_v[i] = -p->r[i - span.first];
    return p->c->joints.step_v;
}

// The step's own right-hand side goes along with the first of them.
static bool factor_couplings(usi_problem *p, int32_t tree) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    const int32_t *list = c->coupling_of_tree + c->coupling_start[tree],
                  n = c->coupling_start[tree + 1] - c->coupling_start[tree];
    usi_span span = {m->tree[tree].first, m->tree[tree].end};
    bool ok = true;
    for (int32_t k = 0; k < n; k++) {
        const usi_coupling *row = &m->coupling[list[k]];
        double *z = p->coupled + k * (p->n_var + 1), *x = c->solve.delta;
        for (int32_t i = span.first; i < span.end; i++)
            x[i] = 0;
        for (int32_t i = 0; i < row->n_term; i++)
            x[row->v[i]] += row->factor[i];
        if (k > 0)
            usi_branch_solve(p, span, x);
        else
            usi_branch_solve_two(p, span, x, set_right_side(p, span));
        take_couplings(p, tree, k, x);
        double pivot = 1 / usi_coupling_stiffness(p, row) + along_coupling(row, x);
        ok = ok && usi_is_pivot(pivot);
        memcpy(z, x + span.first, (size_t)p->n_var * sizeof *z);
        z[p->n_var] = 1 / pivot;
    }
    return ok;
}

static bool factor_branch(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t t = c->islands.members[p->s->first_tree];
    usi_span span = {m->tree[t].first, m->tree[t].end};
    for (int32_t i = 0; i < p->n_var; i++) {
        p->is_there[i] = m->node[span.first + i].flags & USI_NODE_MASSIVE;
        if (p->is_there[i])
            p->made[i] = inertia(c->dyn->link[span.first + i].J, c->dyn->link[span.first + i].h);
    }
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        const double *G = p->G + 9 * i;
        if (is_idle(G)) continue;
        int32_t node = usi_body_collision_body(p, k->a >= 0 ? k->a : k->b_)->node - span.first;
        if (!p->is_there[node]) memset(&p->made[node], 0, sizeof *p->made);
        p->is_there[node] = true;
        if (k->law == USI_ROTATION)
            add_rotation(&p->made[node], k, G);
        else
            add_block(&p->made[node], k, G);
    }
    p->is_solved = c->coupling_start[t + 1] > c->coupling_start[t];
    return usi_branch_factor(p, span) && factor_couplings(p, t);
}

static void solve_branch(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t t = c->islands.members[p->s->first_tree];
    usi_span span = {m->tree[t].first, m->tree[t].end};
    if (!p->is_solved) usi_branch_solve(p, span, set_right_side(p, span));
    p->is_solved = false;
    take_couplings(p, t, c->coupling_start[t + 1] - c->coupling_start[t], c->joints.step_v);
    memcpy(p->x, c->joints.step_v + span.first, (size_t)p->n_var * sizeof(double));
}

// ---------------------------------------------------------------- blocks

// Of blocks first .. end - 1 between the same bodies. False when none does anything. Those that turn are left
// to the end: apart from them the loop keeps W in registers.
static inline bool sum_blocks(const usi_problem *p, int32_t first, int32_t end, usi_six *W) {
    bool any = false, turns = false;
    for (int32_t i = first; i < end; i++) {
        const double *G = p->G + 9 * i;
        if (is_idle(G)) continue;
        any = true;
        if (p->block[i].law == USI_ROTATION)
            turns = true;
        else
            add_block(W, &p->block[i], G);
    }
    for (int32_t i = first; turns && i < end; i++) {
        if (p->block[i].law == USI_ROTATION && !is_idle(p->G + 9 * i))
            add_rotation(W, &p->block[i], p->G + 9 * i);
    }
    return any;
}

static inline void add_six(double *to, const usi_six *W) {
    for (int i = 0; i < 6; i++) {
        usi_store(to + 8 * i, usi_load(to + 8 * i) + W->a[i]);
        usi_store(to + 8 * i + 4, usi_load(to + 8 * i + 4) + W->b[i]);
    }
}
static inline void take_six(double *to, const usi_six *W) {
    for (int i = 0; i < 6; i++) {
        usi_store(to + 8 * i, usi_load(to + 8 * i) - W->a[i]);
        usi_store(to + 8 * i + 4, usi_load(to + 8 * i + 4) - W->b[i]);
    }
}

static inline void put_minus_six(double *to, const usi_six *W) {
    for (int i = 0; i < 6; i++) {
        usi_store(to + 8 * i, usi_v4_zero() - W->a[i]);
        usi_store(to + 8 * i + 4, usi_v4_zero() - W->b[i]);
    }
}

static void put_tree(const usi_problem *p, double *to, int32_t stride, int32_t t) {
    const us_model *m = p->c->model;
    int32_t first = m->tree[t].first;
    for (int32_t i = first; i < m->tree[t].end; i++) {
        for (int32_t at = m->row_start[i]; at < m->row_start[i + 1]; at++) {
            int32_t j = m->path[at];
            to[(i - first) * stride + j - first] = to[(j - first) * stride + i - first] = p->c->joints.H[at];
        }
        to[(i - first) * stride + i - first] += m->armature[i] + p->c->solve.diag[i];
    }
}

static void add_coupling(usi_problem *p, const usi_coupling *row) {
    const us_model *m = p->c->model;
    double K = usi_coupling_stiffness(p, row);
    for (int32_t i = 0; i < row->n_term; i++) {
        for (int32_t j = 0; j < row->n_term; j++) {
            int32_t a = m->node[row->v[i]].tree, b = m->node[row->v[j]].tree,
                    ua = p->c->islands.tree[a].variable, ub = p->c->islands.tree[b].variable;
            double *block = usi_sparse_block(p->sparse, ua, ub);
            block[(row->v[i] - m->tree[a].first) * usi_sparse_stride(p->sparse, ub) + row->v[j] -
                  m->tree[b].first] += K * row->factor[i] * row->factor[j];
        }
    }
}

// One side of a pair of bodies: which columns of which unit it moves, and how, about O. A free body has six,
// a link those of its path.
typedef struct matrix_side {
    int32_t unit, n, first;
    const int32_t *index;  // variables of the model; NULL: 0 .. n - 1 of the unit
    usi_row *S;
} matrix_side;

static matrix_side side_of(const usi_problem *p, int32_t body, usi_row *room) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    const usi_collision_body *at = usi_body_collision_body(p, body);
    matrix_side s = {
        .unit = c->islands.tree[at->tree].variable, .n = 6, .first = m->tree[at->tree].first, .S = room};
    if (m->tree[at->tree].is_free_body) {
        for (int i = 0; i < 6; i++) {
            room[i] = (usi_row){usi_v4_zero(), usi_v4_zero()};
            ((double *)&room[i])[i] = 1;
        }
        return s;
    }
    const usi_link *link = c->dyn->link;
    usi_v4 shift = usi_origin_shift(p, at->tree);
    s.index = m->path + m->row_start[at->node];
    s.n = m->row_start[at->node + 1] - m->row_start[at->node];
    for (int32_t i = 0; i < s.n; i++) {
        const usi_link *l = &link[s.index[i]];
        room[i] = usi_row_pack(l->Sw, l->Sv + usi_v4_cross(l->Sw, shift));
    }
    return s;
}

// block += sign S_a^T W S_b.
static void add_product(double *block, int32_t stride, const matrix_side *a, const matrix_side *b,
                        const usi_six *W, double sign) {
    for (int32_t i = 0; i < a->n; i++) {
        const double *s = (const double *)&a->S[i];
        usi_row R = {usi_v4_zero(), usi_v4_zero()};
        for (int k = 0; k < 6; k++) {
            R.a += usi_v4_all(sign * s[k]) * W->a[k];
            R.b += usi_v4_all(sign * s[k]) * W->b[k];
        }
        double *row = block + (a->index ? a->index[i] - a->first : i) * stride;
        for (int32_t j = 0; j < b->n; j++)
            row[b->index ? b->index[j] - b->first : j] += usi_v4_sum(R.a * b->S[j].a + R.b * b->S[j].b);
    }
}

// All blocks of a pair of bodies, one of them a link.
static void add_sides(usi_problem *p, const usi_run *r) {
    usi_six W = {0};
    if (!sum_blocks(p, r->first, r->end, &W)) return;
    const usi_block *k = &p->block[r->first];
    matrix_side a = {.unit = -1}, b = {.unit = -1};
    if (k->a >= 0) a = side_of(p, k->a, (usi_row *)p->columns);
    if (k->b_ >= 0) b = side_of(p, k->b_, (usi_row *)p->columns + p->c->model->n_node + 6);
    int32_t stride_a = a.unit < 0 ? 0 : usi_sparse_stride(p->sparse, a.unit),
            stride_b = b.unit < 0 ? 0 : usi_sparse_stride(p->sparse, b.unit);
    if (a.unit >= 0) add_product(usi_sparse_block(p->sparse, a.unit, a.unit), stride_a, &a, &a, &W, 1);
    if (b.unit >= 0) add_product(usi_sparse_block(p->sparse, b.unit, b.unit), stride_b, &b, &b, &W, 1);
    if (a.unit < 0 || b.unit < 0) return;
    add_product(usi_sparse_block(p->sparse, a.unit, b.unit), stride_b, &a, &b, &W, -1);
    add_product(usi_sparse_block(p->sparse, b.unit, a.unit), stride_a, &b, &a, &W, -1);
}

static bool factor_blocks(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    if (!p->is_clear && p->is_free) usi_sparse_clear_fill(p->sparse);
    if (!p->is_clear && !p->is_free) usi_sparse_clear(p->sparse);
    p->is_clear = false;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i];
        double *to = usi_sparse_block(p->sparse, i, i);
        if (usi_unit_is_free(p, i)) {
            const usi_free *body = &p->body[c->collide.collision_body[c->tree_body_start[t]].body];
            usi_six D = inertia(body->J, body->h);
            usi_store6(to, &D);
        } else {
            put_tree(p, to, usi_sparse_stride(p->sparse, i), t);
        }
    }
    for (const usi_run *r = p->run, *end = r + p->n_run; r < end; r++) {
        if (!r->is_free) {
            add_sides(p, r);
            continue;
        }
        // All blocks of a pair of free bodies make one matrix.
        usi_six W = {0};
        if (!sum_blocks(p, r->first, r->end, &W) && !r->is_first) continue;
        if (r->aa) add_six(r->aa, &W);
        if (r->bb) add_six(r->bb, &W);
        if (r->is_first) {
            put_minus_six(r->ab, &W);
            put_minus_six(r->ba, &W);
        } else if (r->ab) {
            take_six(r->ab, &W);
            take_six(r->ba, &W);
        }
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        if (usi_coupling_in(p, &m->coupling[k])) add_coupling(p, &m->coupling[k]);
    }
    return usi_sparse_factor(p->sparse);
}

static void solve_blocks(usi_problem *p) {
    for (int32_t i = 0; i < p->n_var; i++)
        p->x[i] = -p->r[i];
    usi_sparse_solve(p->sparse, p->x);
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++) {
        if (usi_unit_is_free(p, i)) continue;
        const usi_tree *tree = usi_unit_tree(p, i);
        memcpy(p->c->joints.step_v + tree->first, p->x + p->unit_start[i],
               (size_t)(tree->end - tree->first) * sizeof(double));
    }
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
            if (k->a >= 0) r->a = c->islands.tree[usi_body_collision_body(p, k->a)->tree].variable;
            if (k->b_ >= 0) r->b = c->islands.tree[usi_body_collision_body(p, k->b_)->tree].variable;
            r->is_free = (r->a < 0 || usi_unit_is_free(p, r->a)) && (r->b < 0 || usi_unit_is_free(p, r->b));
        }
        while (i < p->s->n_block && p->block[i].a == k->a && p->block[i].b_ == k->b_)
            i++;
        r->end = i;
    }
}

// Which pairs of units meet. Some may come more than once.
static int32_t find_pairs(usi_problem *p, int32_t (*pair)[2], int32_t max) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_run && n < max; i++) {
        if (p->run[i].a >= 0 && p->run[i].b >= 0) {
            pair[n][0] = p->run[i].a;
            pair[n][1] = p->run[i].b;
            n++;
        }
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        if (!usi_coupling_in(p, row)) continue;
        for (int32_t i = 0; i < row->n_term; i++) {
            for (int32_t j = 0; j < i && n < max; j++) {
                pair[n][0] = c->islands.tree[m->node[row->v[i]].tree].variable;
                pair[n][1] = c->islands.tree[m->node[row->v[j]].tree].variable;
                n++;
            }
        }
    }
    return n;
}

static void point_runs(usi_problem *p) {
    int32_t pair = 0;
    for (usi_run *r = p->run, *end = r + p->n_run; r < end; r++) {
        const int32_t k = pair;
        pair += r->a >= 0 && r->b >= 0;
        if (!r->is_free) continue;
        r->is_first = p->is_free && pair > k && usi_sparse_is_first(p->sparse, k);
        if (r->a >= 0) r->aa = usi_sparse_block(p->sparse, r->a, r->a);
        if (r->b >= 0) r->bb = usi_sparse_block(p->sparse, r->b, r->b);
        if (r->a >= 0 && r->b >= 0) {
            r->ab = usi_sparse_block(p->sparse, r->a, r->b);
            r->ba = usi_sparse_block(p->sparse, r->b, r->a);
        }
    }
}

// Whether the structure that was kept is this island's: the same runs in the same order. Their blocks are
// set.
static bool is_kept(const usi_problem *p, const usi_layout *l) {
    if (l->n_unit != p->n_unit || l->n_run != p->n_run) return false;
    for (int32_t i = 0; i < p->n_run; i++) {
        if (l->run[i].a != p->run[i].a || l->run[i].b != p->run[i].b) return false;
    }
    for (int32_t i = 0; i < p->n_run; i++) {
        l->run[i].first = p->run[i].first;
        l->run[i].end = p->run[i].end;
    }
    return true;
}

// The matrix's structure: made when the first step is asked for, which a body at rest never does. That of
// free bodies is kept for the next step.
static bool make_sparse(usi_problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    int32_t first = c->islands.members[p->s->first_tree];
    usi_layout *kept =
        p->is_free && m->n_coupling == 0 && first < c->solve.n_layout ? &c->solve.layout[first] : NULL;
    size_t max = (size_t)p->s->n_block;
    for (int32_t k = 0; k < m->n_coupling; k++)
        max += (size_t)m->coupling[k].n_term * (size_t)m->coupling[k].n_term / 2;
    p->run = usi_take(&p->at, (size_t)p->s->n_block * sizeof *p->run);
    int32_t(*pair)[2] = usi_take(&p->at, max * sizeof *pair);
    if (p->at > p->end) return false;
    find_runs(p);
    p->is_clear = !(kept && usi_is_fast(c, USI_FAST_LAYOUT) && is_kept(p, kept));
    if (!p->is_clear) {
        p->sparse = kept->sparse;
        p->run = kept->run;
        return true;
    }
    int32_t n_pair = find_pairs(p, pair, (int32_t)max);
    if (kept) {
        kept->n_unit = 0;
        char *at = kept->memory, *end = at + USI_LAYOUT_BYTES;
        usi_run *run = usi_take(&at, (size_t)p->n_run * sizeof *run);
        if (at < end)
            p->sparse = usi_sparse_setup(at, (size_t)(end - at), p->n_unit, p->size,
                                         (const int32_t(*)[2])pair, n_pair);
        if (p->sparse) {
            memcpy(run, p->run, (size_t)p->n_run * sizeof *run);
            p->run = run;
            *kept = (usi_layout){kept->memory, p->sparse, run, p->n_unit, p->n_run};
        }
    }
    if (!p->sparse)
        p->sparse = usi_sparse_setup(p->at, (size_t)(p->end - p->at), p->n_unit, p->size,
                                     (const int32_t(*)[2])pair, n_pair);
    if (!p->sparse) return false;
    point_runs(p);
    return true;
}

bool usi_newton_matrix(usi_problem *p) {
    if (p->s->kind == USI_ISLAND_BRANCH) return factor_branch(p);
    return (p->sparse || make_sparse(p)) && factor_blocks(p);
}

void usi_newton_step(usi_problem *p) {
    if (p->s->kind == USI_ISLAND_BRANCH)
        solve_branch(p);
    else
        solve_blocks(p);
}
