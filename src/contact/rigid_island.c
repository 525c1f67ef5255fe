// Islands whose contacts are rigid: nothing gives, impulses are whatever keeps the bodies apart.
//
// The velocity at the end of the step is linear in the impulses g of the contact points,
//
//     V = V_free + M^-1 J^T g,      u = J V = A g + b,      A = J M^-1 J^T (Delassus),      b = J V_free
//
// and g solves the complementarity problem of rigid.c, directly (pivoting, up to 64 points) or by sweeps. M
// is the mass matrix and what drives, springs, dampers, limits and loops add to it as implicit rows. Those
// that have bounds are linear only within them: V is found again with the rows that hold at it, until they
// stay the same.
//
//     u_n >= -gap / h          for a gap: the step may end in touch and not beyond
//     u_n >= -0.2 gap / h      for a penetration: a fifth of it goes in each step
//     u_n >= -e u_n(before)    for an impact with restitution e
//
// M has one block per free body or tree, so that A is made of small products. What this cannot do is left to
// the compliant rows and Newton's method: loops and couplings between different trees, and more points than
// there is room for.
#include <string.h>

#include "contact/contact__law.h"
#include "contact/contact__parts.h"

enum { MAX_DIRECT = 64, MAX_POINTS = 256, MAX_ROUNDS = 6, MAX_SWEEPS = 500 };
// The sweeps end when no impulse changes a velocity by more than this, m/s: a ten-millionth of what gravity
// does in a step of 1 ms.
static const double SWEEP_TOLERANCE = 1e-9;
// What a direct solution may be off, m/s, over 1 m/s or the largest speed in it: a thousand times what
// rounding leaves.
static const double SOLUTION_TOLERANCE = 1e-6;

// A free body or a tree, as dense vectors of its own variables.
typedef struct unit {
    int32_t tree, body;  // body of the island; -1: not a free body
    int32_t n, first;    // variables, and where they begin in the island's vectors
    double *L;  // n x n, lower factor of M with 1/sqrt of the pivots on the diagonal; NULL for free bodies
} unit;

// One side of a point: rows of J and columns of M^-1 J^T in one unit, n x 3 each, both with the side's sign.
typedef struct rigid_side {
    int32_t unit;  // -1: the world
    double *C[3], *X[3];
} rigid_side;

typedef struct problem {
    usi_contacts *c;
    usi_island *s;
    const usi_contact_input *in;
    int32_t n_unit, n_var, n_point;
    unit *unit;
    int32_t *block_of;       // n_point: block of each point
    rigid_side *side;        // two per point
    double *v, *held;        // n_var: velocities; those at which the joint rows hold
    double *slope, *last;    // n_node of the model: slopes of the joint rows, and those of the round before
    double *A, *b, *mu, *g;  // of the complementarity problem
    double *work;            // of the direct solver
    double *column, *rows;   // n_node + 8, and three times as many
} problem;

// ---------------------------------------------------------------- memory

static void *take(char **at, size_t bytes) {
    void *memory = *at;
    *at += (bytes + 63) / 64 * 64;
    return memory;
}

static int32_t unit_size(const us_model *m, int32_t tree) { return m->tree[tree].end - m->tree[tree].first; }

static size_t padded(size_t n, size_t each) { return (n * each + 63) / 64 * 64 + 64; }

// Enough for MAX_POINTS points among all bodies of the model, or all its points when they are fewer.
size_t usi_rigid_island_bytes(const us_model *m, int32_t max_contact) {
    if (m->solver != USI_SOLVER_RIGID_DIRECT && m->solver != USI_SOLVER_RIGID_ITERATIVE) return 0;
    size_t n_point = (size_t)(max_contact < MAX_POINTS ? max_contact : MAX_POINTS),
           n_tree = (size_t)m->n_tree, n_node = (size_t)m->n_node;
    size_t largest = 6, squares = 0, row = 3 * n_point;
    for (int32_t t = 0; t < m->n_tree; t++) {
        size_t n = (size_t)unit_size(m, t);
        if (n > largest) largest = n;
        if (!m->tree[t].is_free_body) squares += padded(n * n, sizeof(double));
    }
    return padded(n_tree, sizeof(unit)) + squares + padded(n_point, sizeof(int32_t)) +
           2 * n_point * (padded(1, sizeof(rigid_side)) + 6 * padded(largest, 8)) +
           8 * padded(n_node + 8, 8) + padded(row * row, 8) + 4 * padded(row, 8) +
           padded(usi_rigid_work(n_point < MAX_DIRECT ? (int32_t)n_point : MAX_DIRECT), 8);
}

// ---------------------------------------------------------------- what is left to others

static int32_t tree_of_body(const problem *p, int32_t body) {
    return body < 0
               ? -1
               : p->c->collide.collision_body[p->c->islands.collision_body_of[p->s->first_body + body]].tree;
}

static bool is_in(const problem *p, const usi_coupling *k) {
    int32_t island = p->c->islands.tree[p->c->model->node[k->v[0]].tree].island;
    return island >= 0 && &p->c->islands.island[island] == p->s;
}

static bool can_do(const problem *p) {
    const us_model *m = p->c->model;
    if (p->s->n_point > MAX_POINTS) return false;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->c->rows.block[p->s->first_block + i];
        if (k->law != USI_EQUAL) continue;
        int32_t a = tree_of_body(p, k->a), b = tree_of_body(p, k->b_), tree = a >= 0 ? a : b;
        if ((a >= 0 && b >= 0 && a != b) || m->tree[tree].is_free_body) return false;
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        const usi_coupling *row = &m->coupling[k];
        for (int32_t i = 1; is_in(p, row) && i < row->n_term; i++) {
            if (m->node[row->v[i]].tree != m->node[row->v[0]].tree) return false;
        }
    }
    return true;
}

static bool set_up(problem *p, int32_t thread) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    char *at = c->solve.work[thread], *end = at + c->solve.work_size;
    size_t n_node = (size_t)m->n_node, n_point = (size_t)p->s->n_point, row = 3 * n_point, largest = 6;
    p->n_unit = p->s->n_tree;
    p->n_point = p->s->n_point;
    p->unit = take(&at, (size_t)p->n_unit * sizeof *p->unit);
    p->block_of = take(&at, n_point * sizeof *p->block_of);
    p->v = take(&at, (n_node + 8) * sizeof(double));
    p->held = take(&at, (n_node + 8) * sizeof(double));
    p->slope = take(&at, (n_node + 8) * sizeof(double));
    p->last = take(&at, (n_node + 8) * sizeof(double));
    p->column = take(&at, (n_node + 8) * sizeof(double));
    p->rows = take(&at, 3 * (n_node + 8) * sizeof(double));
    p->A = take(&at, row * row * sizeof(double));
    p->b = take(&at, row * sizeof(double));
    p->g = take(&at, row * sizeof(double));
    p->mu = take(&at, n_point * sizeof(double));
    p->side = take(&at, 2 * n_point * sizeof *p->side);
    if (at > end) return false;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i], n = unit_size(m, t);
        bool is_free = m->tree[t].is_free_body;
        c->islands.tree[t].variable = i;
        p->unit[i] = (unit){.tree = t,
                            .body = is_free ? c->collide.collision_body[c->tree_body_start[t]].body : -1,
                            .n = n,
                            .first = p->n_var};
        p->n_var += n;
        if ((size_t)n > largest) largest = (size_t)n;
        if (is_free) continue;
        p->unit[i].L = take(&at, (size_t)n * (size_t)n * sizeof(double));
    }
    for (size_t i = 0; i < 2 * n_point; i++) {
        for (int j = 0; j < 3; j++) {
            p->side[i].C[j] = take(&at, largest * sizeof(double));
            p->side[i].X[j] = take(&at, largest * sizeof(double));
        }
    }
    size_t direct =
        m->solver == USI_SOLVER_RIGID_DIRECT && n_point <= MAX_DIRECT ? usi_rigid_work((int32_t)n_point) : 0;
    p->work = take(&at, direct * sizeof(double));
    return at <= end;
}

// ---------------------------------------------------------------- the mass matrix of a unit

static void columns(const problem *p, const usi_block *k, int32_t body, double sign, double *const C[3]) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    const usi_collision_body *at =
        &c->collide.collision_body[c->islands.collision_body_of[p->s->first_body + body]];
    if (m->tree[at->tree].is_free_body) {
        for (int j = 0; j < 3; j++) {
            for (int i = 0; i < 3; i++) {
                C[j][i] = sign * k->m[j][i];
                C[j][3 + i] = sign * k->d[j][i];
            }
        }
        return;
    }
    const usi_link *link = c->dyn->link;
    usi_v4 shift = p->s->O - c->dyn->origin[at->tree];
    int32_t first = m->tree[at->tree].first, n = unit_size(m, at->tree);
    for (int j = 0; j < 3; j++) {
        for (int32_t i = 0; i < n; i++)
            C[j][i] = 0;
        usi_v4 moment = k->m[j] + usi_v4_cross(shift, k->d[j]);
        for (int32_t i = m->row_start[at->node]; i < m->row_start[at->node + 1]; i++) {
            int32_t x = m->path[i];
            C[j][x - first] = sign * usi_v4_sum(link[x].Sw * moment + link[x].Sv * k->d[j]);
        }
    }
}

// Rows of loops and couplings: K row row^T to the matrix, -K (offset) row to the impulse.
static void add_row(const unit *u, const double *row, double K, double offset, double *impulse) {
    for (int32_t i = 0; i < u->n; i++) {
        if (row[i] == 0) continue;
        for (int32_t j = 0; j <= i; j++)
            u->L[i * u->n + j] += K * row[i] * row[j];
        impulse[i] -= K * offset * row[i];
    }
}

static void add_loops(problem *p, const unit *u, double *impulse) {
    const us_model *m = p->c->model;
    double *both = p->column, *const C[3] = {p->rows, p->rows + u->n, p->rows + 2 * u->n};
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->c->rows.block[p->s->first_block + i];
        if (k->law != USI_EQUAL || tree_of_body(p, k->a >= 0 ? k->a : k->b_) != u->tree) continue;
        for (int j = 0; j < k->n; j++) {
            for (int32_t x = 0; x < u->n; x++)
                both[x] = 0;
            for (int end = 0; end < 2; end++) {
                int32_t body = end ? k->b_ : k->a;
                if (body < 0) continue;
                columns(p, k, body, end ? -1 : 1, C);
                for (int32_t x = 0; x < u->n; x++)
                    both[x] += C[j][x];
            }
            add_row(u, both, k->K[j > 0], k->b[j], impulse);
        }
    }
    for (int32_t i = 0; i < m->n_coupling; i++) {
        const usi_coupling *k = &m->coupling[i];
        if (m->node[k->v[0]].tree != u->tree) continue;
        double phi = -k->offset;
        for (int32_t x = 0; x < u->n; x++)
            both[x] = 0;
        for (int32_t x = 0; x < k->n_term; x++) {
            phi += k->factor[x] * p->in->q[k->q[x]];
            both[k->v[x] - m->tree[u->tree].first] += k->factor[x];
        }
        add_row(u, both, 1e6 * p->s->max_mass, phi / m->step, impulse);
    }
}

// Cholesky's factor in place; the diagonal holds the inverse of its own.
static bool factor(double *L, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        double *row = L + i * n;
        for (int32_t j = 0; j <= i; j++) {
            const double *other = L + j * n;
            double sum = row[j];
            for (int32_t k = 0; k < j; k++)
                sum -= row[k] * other[k];
            if (j < i) {
                row[j] = sum * other[j];
            } else {
                if (!(sum > 0)) return false;
                row[i] = 1 / sqrt(sum);
            }
        }
    }
    return true;
}

// x = M^-1 x.
static void solve(const problem *p, const unit *u, double *x) {
    if (!u->L) {
        const usi_free *f = &p->c->solve.body[p->s->first_body + u->body];
        usi_v4 c = f->c * (usi_v4){1, 1, 1, 0}, force = usi_v4_set(x[3], x[4], x[5]),
               n = usi_v4_set(x[0], x[1], x[2]) - usi_v4_cross(c, force);
        usi_v4 w =
            f->inv_I[0] * usi_v4_lane0(n) + f->inv_I[1] * usi_v4_lane1(n) + f->inv_I[2] * usi_v4_lane2(n);
        usi_v4 v = force * usi_v4_all(((const double *)&f->c)[3]) - usi_v4_cross(w, c);
        for (int i = 0; i < 3; i++) {
            x[i] = w[i];
            x[3 + i] = v[i];
        }
        return;
    }
    for (int32_t i = 0; i < u->n; i++) {
        double sum = x[i];
        for (int32_t k = 0; k < i; k++)
            sum -= u->L[i * u->n + k] * x[k];
        x[i] = sum * u->L[i * u->n + i];
    }
    for (int32_t i = u->n - 1; i >= 0; i--) {
        double sum = x[i];
        for (int32_t k = i + 1; k < u->n; k++)
            sum -= u->L[k * u->n + i] * x[k];
        x[i] = sum * u->L[i * u->n + i];
    }
}

// Factors M and finds the velocities without contact, the joint rows being those at p->held:
//     (M + S + loops) v = M v0 + push + I(held) + S held - offsets of the loops
static bool free_velocities(problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    for (int32_t i = 0; i < p->n_unit; i++) {
        unit *u = &p->unit[i];
        double *v = p->v + u->first;
        if (!u->L) {
            const usi_free *f = &c->solve.body[p->s->first_body + u->body];
            for (int k = 0; k < 3; k++) {
                v[k] = f->fw[k];
                v[3 + k] = f->fv[k];
            }
            continue;
        }
        int32_t first = m->tree[u->tree].first;
        const double *v0 = p->in->v + first;
        memset(u->L, 0, (size_t)u->n * (size_t)u->n * sizeof(double));
        for (int32_t k = 0; k < u->n; k++) {
            int32_t node = first + k;
            for (int32_t at = m->row_start[node]; at < m->row_start[node + 1]; at++)
                u->L[k * u->n + m->path[at] - first] = c->joints.H[at];
            u->L[k * u->n + k] += m->armature[node];
            c->joints.work[node] = c->joints.impulse[node];
            c->joints.step_v[node] = p->held[u->first + k];
            p->slope[node] = v[k] = 0;
        }
        for (int32_t k = 0; k < u->n; k++) {
            for (int32_t j = 0; j < k; j++) {
                v[k] += u->L[k * u->n + j] * v0[j];
                v[j] += u->L[k * u->n + j] * v0[k];
            }
            v[k] += u->L[k * u->n + k] * v0[k];
        }
        usi_joint_rows(c, u->tree, c->joints.step_v, c->joints.work, p->slope);
        for (int32_t k = 0; k < u->n; k++) {
            v[k] += c->joints.work[first + k] + p->slope[first + k] * c->joints.step_v[first + k];
            u->L[k * u->n + k] += p->slope[first + k];
        }
        add_loops(p, u, v);
        if (!factor(u->L, u->n)) return false;
        solve(p, u, v);
    }
    return true;
}

// ---------------------------------------------------------------- the contact points

static void find_points(problem *p) {
    int32_t n = 0;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        usi_block *k = &p->c->rows.block[p->s->first_block + i];
        if (k->law != USI_POINT) {
            k->g[0] = k->g[1] = k->g[2] = 0;  // no torsion or rolling here; loops are in the mass matrix
            continue;
        }
        // Friction is between velocities: no anchor pulls, nothing is viscous.
        k->b[1] = k->b[2] = k->viscous = 0;
        p->block_of[n] = i;
        p->mu[n] = k->mu;
        for (int j = 0; j < 3; j++)
            p->g[3 * n + j] = k->g[j];
        for (int end = 0; end < 2; end++) {
            rigid_side *x = &p->side[2 * n + end];
            int32_t body = end ? k->b_ : k->a;
            x->unit = body < 0 ? -1 : p->c->islands.tree[tree_of_body(p, body)].variable;
            if (x->unit >= 0) columns(p, k, body, end ? -1 : 1, x->C);
        }
        n++;
    }
    p->n_point = n;
}

static double product(const double *a, const double *b, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

// A and b at the present factors and free velocities. A is symmetric: what is below the diagonal is copied,
// so that it is so in every bit.
static void make_matrix(problem *p) {
    const int32_t wide = 3 * p->n_point;
    for (int32_t k = 0; k < p->n_point; k++) {
        const usi_block *block = &p->c->rows.block[p->s->first_block + p->block_of[k]];
        for (int j = 0; j < 3; j++)
            p->b[3 * k + j] = block->b[j];
        for (int end = 0; end < 2; end++) {
            rigid_side *x = &p->side[2 * k + end];
            if (x->unit < 0) continue;
            const unit *u = &p->unit[x->unit];
            for (int j = 0; j < 3; j++) {
                memcpy(x->X[j], x->C[j], (size_t)u->n * sizeof(double));
                solve(p, u, x->X[j]);
                p->b[3 * k + j] += product(x->C[j], p->v + u->first, u->n);
            }
        }
    }
    for (int32_t k = 0; k < p->n_point; k++) {
        for (int32_t o = 0; o <= k; o++) {
            double D[9] = {0};
            for (int e = 0; e < 4; e++) {
                const rigid_side *x = &p->side[2 * k + (e & 1)], *y = &p->side[2 * o + (e >> 1)];
                if (x->unit < 0 || x->unit != y->unit) continue;
                for (int r = 0; r < 9; r++)
                    D[r] += product(x->C[r / 3], y->X[r % 3], p->unit[x->unit].n);
            }
            for (int r = 0; r < 9; r++) {
                int32_t row = 3 * k + r / 3, column = 3 * o + r % 3;
                if (column <= row) p->A[row * wide + column] = p->A[column * wide + row] = D[r];
            }
        }
    }
}

// V = V_free + M^-1 J^T g.
static void add_impulses(problem *p) {
    for (int32_t k = 0; k < 2 * p->n_point; k++) {
        const rigid_side *x = &p->side[k];
        if (x->unit < 0) continue;
        double *v = p->v + p->unit[x->unit].first;
        for (int j = 0; j < 3; j++) {
            double g = p->g[3 * (k / 2) + j];
            for (int32_t i = 0; g != 0 && i < p->unit[x->unit].n; i++)
                v[i] += g * x->X[j][i];
        }
    }
}

// Whether the direct solver's answer is one, checked with the matrix as it is.
static bool is_solution(const problem *p) {
    const int32_t wide = 3 * p->n_point;
    double size = 1;
    for (int32_t i = 0; i < wide; i++)
        size = fmax(size, fabs(p->b[i]));
    const double small = SOLUTION_TOLERANCE * size;
    for (int32_t k = 0; k < p->n_point; k++) {
        double u[3];
        const double *row = p->A + 3 * k * wide;
        for (int j = 0; j < 3; j++)
            u[j] = p->b[3 * k + j] + product(row + j * wide, p->g, wide);
        if (!usi_coulomb_holds(p->g + 3 * k, u, p->mu[k], row[3 * k], small)) return false;
    }
    return true;
}

static void solve_points(problem *p) {
    bool is_direct = p->c->model->solver == USI_SOLVER_RIGID_DIRECT && p->n_point <= MAX_DIRECT;
    if (p->n_point == 0 ||
        (is_direct && usi_rigid_direct(p->n_point, p->A, p->b, p->mu, p->g, p->work) && is_solution(p)))
        return;
    if (is_direct) p->s->fallback |= USI_FALLBACK_SWEPT;
    for (int32_t i = 0; is_direct && i < 3 * p->n_point; i++)
        p->g[i] = p->c->rows.block[p->s->first_block + p->block_of[i / 3]].g[i % 3];
    p->s->n_iteration +=
        usi_rigid_iterative(p->n_point, p->A, p->b, p->mu, p->g, MAX_SWEEPS, SWEEP_TOLERANCE);
}

// Whether the joint rows at the velocities found are those that were assumed.
static bool rows_hold(problem *p) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    bool hold = true;
    for (int32_t i = 0; i < p->n_unit; i++) {
        const unit *u = &p->unit[i];
        if (!u->L) continue;
        int32_t first = m->tree[u->tree].first;
        for (int32_t k = 0; k < u->n; k++) {
            c->joints.step_v[first + k] = p->held[u->first + k] = p->v[u->first + k];
            c->joints.work[first + k] = p->last[first + k] = 0;
        }
        usi_joint_rows(c, u->tree, c->joints.step_v, c->joints.work, p->last);
        for (int32_t k = first; k < first + u->n; k++)
            hold = hold && p->last[k] == p->slope[k];
    }
    return hold;
}

// Impulses and row velocities to the blocks, velocities to bodies and trees.
static void finish(problem *p) {
    usi_contacts *c = p->c;
    for (int32_t k = 0; k < p->n_point; k++) {
        int32_t at = p->s->first_block + p->block_of[k];
        for (int j = 0; j < 3; j++) {
            double u = 0;
            for (int end = 0; end < 2; end++) {
                const rigid_side *x = &p->side[2 * k + end];
                if (x->unit >= 0) u += product(x->C[j], p->v + p->unit[x->unit].first, p->unit[x->unit].n);
            }
            c->rows.block[at].g[j] = p->g[3 * k + j];
            c->solve.u[3 * at + j] = u;
        }
    }
    for (int32_t i = 0; i < p->n_unit; i++) {
        const unit *u = &p->unit[i];
        const double *v = p->v + u->first;
        if (!u->L) {
            usi_free *f = &c->solve.body[p->s->first_body + u->body];
            f->w = usi_v4_set(v[0], v[1], v[2]);
            f->v = usi_v4_set(v[3], v[4], v[5]);
            continue;
        }
        memcpy(c->joints.vel + c->model->tree[u->tree].first, v, (size_t)u->n * sizeof(double));
        usi_tree_finish(c, p->in, u->tree);
    }
}

void usi_rigid_island(usi_contacts *c, usi_island *s, const usi_contact_input *in, int32_t thread) {
    problem p = {.c = c, .s = s, .in = in};
    if (!can_do(&p) || !set_up(&p, thread)) {
        s->fallback |= USI_FALLBACK_SOFT;
        usi_newton(c, s, in, thread);
        return;
    }
    for (int32_t i = 0; i < p.n_unit; i++) {
        unit *u = &p.unit[i];
        if (!u->L) continue;
        usi_tree_start(c, in, u->tree, true, s->is_started);
        memcpy(p.held + u->first, in->v + c->model->tree[u->tree].first, (size_t)u->n * sizeof(double));
    }
    s->is_started = true;
    find_points(&p);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        if (!free_velocities(&p)) {
            s->failed = true;
            return;
        }
        make_matrix(&p);
        solve_points(&p);
        add_impulses(&p);
        s->n_iteration++;
        if (rows_hold(&p)) break;
    }
    finish(&p);
}
