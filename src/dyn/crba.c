// Mass matrix by composite rigid bodies, and its factors along the branches of the tree.
//
// H_ij is 0 unless j is on i's way to the root. So H is kept as one row per node, along its path: row i has
// the entries of its ancestors from the root down to i itself. An ancestor's row is as long a beginning of
// the same path, which makes every inner loop below run over neighbouring numbers. H = L^T D L fills nothing
// in (Featherstone 2008, section 8.5), because it eliminates from the leaves inwards:
//
//     row k:  [ H_k0  H_k1 ... H_kk ]          for each ancestor at place a:   row_a[0..a] -= (H_ka / D_k)
//     row_k[0..a]
#include "dyn/kinematics.h"

void usi_crba(us_dyn *d) { usi_crba_of(d, (usi_span){0, d->model->n_node}, d->row); }

// A composite: inertia about O of a node with everything beyond it.
typedef struct composite {
    usi_v4 J[3], h;  // as those of a link
} composite;

static inline void add_composite(composite *sum, const composite *other) {
    for (int j = 0; j < 3; j++)
        sum->J[j] += other->J[j];
    sum->h += other->h;
}

static inline composite own_composite(const usi_link *k) {
    return (composite){{k->J[0], k->J[1], k->J[2]}, k->h};
}

static inline composite slot_composite(const usi_slot *s) {
    return (composite){{s->nw[0], s->nw[1], s->nw[2]}, s->n};
}

// Where the parent is not the node before, its slot gathers what its children leave: the first of them
// brings the parent's own along.
static inline void leave_at(us_dyn *d, int32_t parent, bool is_first, const composite *all) {
    usi_slot *s = &d->slot[parent];
    composite sum = is_first ? own_composite(&d->link[parent]) : slot_composite(s);
    add_composite(&sum, all);
    for (int j = 0; j < 3; j++)
        s->nw[j] = sum.J[j];
    s->n = sum.h;
}

// The composite of node i, from that of the node after it in `all`, where that is its child (`is_carried`);
// and the force (n, f) about O that moves all of it along the axis. Returns whether the node before is the
// parent: then the composite is handed on as it is.
static inline bool push_along(us_dyn *d, int32_t i, bool is_carried, composite *all, usi_v4 *out_n,
                              usi_v4 *out_f) {
    const usi_node *node = &d->model->node[i];
    const usi_link *k = &d->link[i];
    composite sum = node->flags & USI_NODE_STORED ? slot_composite(&d->slot[i]) : own_composite(k);
    if (is_carried) add_composite(&sum, all);
    *all = sum;
    usi_inertia_times(sum.J, sum.h, k->Sw, k->Sv, out_n, out_f);
    if (node->flags & USI_NODE_CARRY) return true;
    if (node->parent >= 0) leave_at(d, node->parent, node->flags & USI_NODE_STORE_FIRST, &sum);
    return false;
}

void usi_crba_of(us_dyn *d, usi_span span, double *rows) {
    const us_model *m = d->model;
    composite all;
    bool is_carried = false;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        usi_v4 n, f;
        is_carried = push_along(d, i, is_carried, &all, &n, &f);
        double *row = rows + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t length = m->row_start[i + 1] - m->row_start[i];
        for (int32_t a = 0; a < length; a++)
            row[a] = usi_v4_sum(d->link[path[a]].Sw * n + d->link[path[a]].Sv * f);
    }
}

void usi_crba_diagonal_of(us_dyn *d, usi_span span, double *out_diagonal) {
    composite all;
    bool is_carried = false;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        usi_v4 n, f;
        is_carried = push_along(d, i, is_carried, &all, &n, &f);
        out_diagonal[i] = usi_v4_sum(d->link[i].Sw * n + d->link[i].Sv * f);
    }
}

bool usi_factor(us_dyn *d, const double *diag, const double *damp) {
    return usi_factor_of(d, (usi_span){0, d->model->n_node}, diag, damp);
}

bool usi_factor_of(us_dyn *d, usi_span span, const double *diag, const double *damp) {
    const us_model *m = d->model;
    bool ok = true;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        double *restrict row = d->row + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        double pivot = row[last] + (diag ? diag[i] : m->armature[i]);
        ok = ok && pivot > 0;
        double inverse = damp ? usi_damped_inverse(pivot, damp[i]) : 1 / pivot;
        d->pivot[i] = pivot;
        d->inv_d[i] = inverse;
        for (int32_t a = 0; a < last; a++) {
            double factor = row[a] * inverse;
            double *restrict up = d->row + m->row_start[path[a]];
            for (int32_t b = 0; b <= a; b++)
                up[b] -= factor * row[b];
        }
        for (int32_t a = 0; a < last; a++)
            row[a] *= inverse;
    }
    return ok;
}

static void solve_upper(const us_dyn *d, usi_span span, double *x) {
    const us_model *m = d->model;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        const double *row = d->row + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        double xi = x[i];
        if (xi == 0) continue;
        for (int32_t a = 0; a < last; a++)
            x[path[a]] -= row[a] * xi;
    }
}

static void solve_lower(const us_dyn *d, usi_span span, double *x) {
    const us_model *m = d->model;
    for (int32_t i = span.first; i < span.end; i++) {
        const double *row = d->row + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        double sum = 0;
        for (int32_t a = 0; a < last; a++)
            sum += row[a] * x[path[a]];
        x[i] -= sum;
    }
}

void usi_solve_upper(const us_dyn *d, double *x) { solve_upper(d, (usi_span){0, d->model->n_node}, x); }
void usi_solve_lower(const us_dyn *d, double *x) { solve_lower(d, (usi_span){0, d->model->n_node}, x); }
void usi_solve(const us_dyn *d, double *x) { usi_solve_of(d, (usi_span){0, d->model->n_node}, x); }

void usi_solve_of(const us_dyn *d, usi_span span, double *x) {
    solve_upper(d, span, x);
    for (int32_t i = span.first; i < span.end; i++)
        x[i] *= d->inv_d[i];
    solve_lower(d, span, x);
}

us_status us_dyn_mass_matrix(us_dyn *d, const double *q, double *out_h) {
    if (!d || !q || !out_h) return US_ERR_ARG;
    const us_model *m = d->model;
    size_t n = (size_t)m->n_node;
    usi_kinematics(d, q, NULL, NULL);
    usi_inertias(d, false);
    usi_crba(d);
    memset(out_h, 0, n * n * sizeof *out_h);
    for (int32_t i = 0; i < m->n_node; i++) {
        for (int32_t at = m->row_start[i]; at < m->row_start[i + 1]; at++) {
            size_t r = (size_t)i, c = (size_t)m->path[at];
            out_h[r * n + c] = out_h[c * n + r] = d->row[at];
        }
        out_h[(size_t)i * n + (size_t)i] += m->armature[i];
    }
    return US_OK;
}
