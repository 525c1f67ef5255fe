// Factors of a tree's matrix: its mass matrix and what contacts with the world add. Not symmetric, because sliding friction depends on the normal
// velocity, but not the other way round.
//
// The matrix keeps the branches of the mass matrix (see dyn/crba.c): node i meets only its ancestors. So it is kept as two lists per node along its
// path, its row H[i, ancestor] and its column H[ancestor, i], and eliminated from the leaves inwards without fill:
//
//     H[a, b] -= H[a, i] H[i, b] / H[i, i]          for all ancestors a, b of i
//
// Lists are padded to whole vectors of four. What stands beyond the end of one is finite and means nothing: an ancestor's list takes it from a longer
// one of a descendant, and in a solution it meets a zero.
#include <string.h>

#include "contact/world.h"

static inline usi_v4 *list(double *lists, const usi_contacts *c, int32_t node) { return (usi_v4 *)(void *)(lists + c->branch_start[node]); }
static inline int32_t last_of(const us_model *m, int32_t node) { return m->row_start[node + 1] - m->row_start[node] - 1; }

bool usi_branch_factor(usi_contacts *c, usi_span span) {
    const us_model *m = c->model;
    bool ok = true;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        usi_v4 *row = list(c->row, c, i), *column = list(c->column, c, i);
        double *x = (double *)column, *y = (double *)row;
        const int32_t *path = m->path + m->row_start[i], last = last_of(m, i);
        double pivot = y[last], inverse = 1 / pivot;
        ok = ok && pivot != 0 && isfinite(pivot);
        y[last] = inverse;
        // The column becomes multipliers. What waits for the pivot is scaled; the factors of its products do not.
        for (int32_t k = 0; 4 * k < last; k++) {
            const usi_v4 r = row[k] * usi_v4_all(inverse), s = column[k] * usi_v4_all(inverse);
            for (int32_t a = 4 * k; a < last; a++) {
                list(c->row, c, path[a])[k] -= usi_v4_all(x[a]) * r;
                list(c->column, c, path[a])[k] -= usi_v4_all(y[a]) * s;
            }
        }
        for (int32_t k = 0; 4 * k < last; k++) column[k] *= usi_v4_all(inverse);
    }
    return ok;
}

// For n right-hand sides, 1 or 2, at a time: what one waits for, going from node to node, the other uses. Their numbers along the paths alternate,
// vector by vector.
static inline __attribute__((always_inline)) void solve(usi_contacts *c, usi_span span, const int n, double *const x[]) {
    const us_model *m = c->model;
    usi_v4 *along = (usi_v4 *)(void *)c->along;
    // Inwards, with what the nodes beyond take from each ancestor.
    int32_t from = c->branch_start[span.first] / 4 * n, to = c->branch_start[span.end] / 4 * n;
    memset(along + from, 0, (size_t)(to - from) * sizeof *along);
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        const usi_v4 *column = list(c->column, c, i), *mine = along + c->branch_start[i] / 4 * n;
        int32_t last = last_of(m, i), parent = m->node[i].parent;
        for (int r = 0; r < n; r++) x[r][i] -= ((const double *)&mine[last / 4 * n + r])[last % 4];
        if (parent < 0) continue;
        usi_v4 *up = along + c->branch_start[parent] / 4 * n;
        for (int32_t k = 0; 4 * k < last; k++) {
            for (int r = 0; r < n; r++) up[n * k + r] += mine[n * k + r] + column[k] * usi_v4_all(x[r][i]);
        }
    }
    // Outwards, with the solution along the path; zero beyond its end.
    const usi_v4i lane = {0, 1, 2, 3};
    for (int32_t i = span.first; i < span.end; i++) {
        const usi_v4 *row = list(c->row, c, i), *up = along + c->branch_start[m->node[i].parent < 0 ? i : m->node[i].parent] / 4 * n;
        usi_v4 *mine = along + c->branch_start[i] / 4 * n, sum[2] = {usi_v4_zero(), usi_v4_zero()};
        int32_t last = last_of(m, i);
        for (int32_t k = 0; 4 * k < last; k++) {
            for (int r = 0; r < n; r++) mine[n * k + r] = up[n * k + r], sum[r] += row[k] * up[n * k + r];
        }
        for (int r = 0; r < n; r++) {
            double xi = (x[r][i] - usi_v4_sum(sum[r])) * ((const double *)row)[last];
            usi_v4 before = last % 4 ? up[last / 4 * n + r] : usi_v4_zero();
            mine[last / 4 * n + r] = before + (usi_v4)((usi_v4i)usi_v4_all(xi) & (lane == last % 4));
            x[r][i] = xi;
        }
    }
}

void usi_branch_solve(usi_contacts *c, usi_span span, double *x) { solve(c, span, 1, &x); }
void usi_branch_solve_two(usi_contacts *c, usi_span span, double *x, double *y) { solve(c, span, 2, (double *[]){x, y}); }
