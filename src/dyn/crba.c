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

// Composite inertias, J and h of everything beyond, about O, gather in the slots.
static void start_composites(us_dyn *d, usi_span span) {
    for (int32_t i = span.first; i < span.end; i++) {
        for (int j = 0; j < 3; j++)
            d->slot[i].nw[j] = d->link[i].J[j];
        d->slot[i].n = d->link[i].h;
    }
}

// The force (n, f) about O that moves node i with everything beyond along its axis, from the composite, which
// then goes on to the parent.
static inline void push_along(us_dyn *d, int32_t i, usi_v4 *out_n, usi_v4 *out_f) {
    const usi_link *k = &d->link[i];
    const usi_slot *s = &d->slot[i];
    const int32_t parent = d->model->node[i].parent;
    usi_inertia_times(s->nw, s->n, k->Sw, k->Sv, out_n, out_f);
    if (parent < 0) return;
    usi_slot *up = &d->slot[parent];
    for (int j = 0; j < 3; j++)
        up->nw[j] += s->nw[j];
    up->n += s->n;
}

void usi_crba_of(us_dyn *d, usi_span span, double *rows) {
    const us_model *m = d->model;
    start_composites(d, span);
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        usi_v4 n, f;
        push_along(d, i, &n, &f);
        double *row = rows + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t length = m->row_start[i + 1] - m->row_start[i];
        for (int32_t a = 0; a < length; a++)
            row[a] = usi_v4_sum(d->link[path[a]].Sw * n + d->link[path[a]].Sv * f);
    }
}

void usi_crba_diagonal_of(us_dyn *d, usi_span span, double *out_diagonal) {
    start_composites(d, span);
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        usi_v4 n, f;
        push_along(d, i, &n, &f);
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
