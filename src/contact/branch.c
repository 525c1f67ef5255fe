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
        // The column becomes multipliers.
        for (int32_t k = 0; 4 * k < last; k++) column[k] *= usi_v4_all(inverse);
        for (int32_t k = 0; 4 * k < last; k++) {
            const usi_v4 r = row[k], s = column[k];
            for (int32_t a = 4 * k; a < last; a++) {
                list(c->row, c, path[a])[k] -= usi_v4_all(x[a]) * r;
                list(c->column, c, path[a])[k] -= usi_v4_all(y[a]) * s;
            }
        }
    }
    return ok;
}

void usi_branch_solve(usi_contacts *c, usi_span span, double *x) {
    const us_model *m = c->model;
    // Inwards, with what the nodes beyond take from each ancestor.
    int32_t from = c->branch_start[span.first], to = c->branch_start[span.end];
    memset(c->along + from, 0, (size_t)(to - from) * sizeof *c->along);
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        const usi_v4 *column = list(c->column, c, i), *mine = list(c->along, c, i);
        int32_t last = last_of(m, i), parent = m->node[i].parent;
        x[i] -= ((const double *)mine)[last];
        if (parent < 0) continue;
        usi_v4 *up = list(c->along, c, parent), xi = usi_v4_all(x[i]);
        for (int32_t k = 0; 4 * k < last; k++) up[k] += mine[k] + column[k] * xi;
    }
    // Outwards, with the solution along the path; zero beyond its end.
    const usi_v4i lane = {0, 1, 2, 3};
    for (int32_t i = span.first; i < span.end; i++) {
        const usi_v4 *row = list(c->row, c, i), *up = list(c->along, c, m->node[i].parent < 0 ? i : m->node[i].parent);
        usi_v4 *mine = list(c->along, c, i), sum = usi_v4_zero();
        int32_t last = last_of(m, i);
        for (int32_t k = 0; 4 * k < last; k++) mine[k] = up[k], sum += row[k] * up[k];
        x[i] = (x[i] - usi_v4_sum(sum)) * ((const double *)row)[last];
        usi_v4 xi = usi_v4_all(x[i]), before = last % 4 ? up[last / 4] : usi_v4_zero();
        mine[last / 4] = before + (usi_v4)((usi_v4i)xi & (lane == last % 4));
    }
}
