// Factors of a tree's matrix when it is not symmetric: sliding friction depends on the normal velocity, but not the other way round.
//
// The matrix keeps the branches of the mass matrix (see dyn/crba.c): node i meets only its ancestors. So it is kept as two lists per node along its
// path, its row H[i, ancestor] and its column H[ancestor, i], and eliminated from the leaves inwards without fill:
//
//     H[a, b] -= H[a, i] H[i, b] / H[i, i]          for all ancestors a, b of i
#include "contact/world.h"

bool usi_branch_factor(const us_model *m, usi_span span, const double *diag, double *rows, double *columns) {
    bool ok = true;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        double *restrict row = rows + m->row_start[i], *restrict column = columns + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        double pivot = row[last] + diag[i], inverse = 1 / pivot;
        ok = ok && pivot != 0 && isfinite(pivot);
        row[last] = inverse;
        // The column becomes multipliers.
        for (int32_t a = 0; a < last; a++) column[a] *= inverse;
        for (int32_t a = 0; a < last; a++) {
            double *restrict up = rows + m->row_start[path[a]], *restrict side = columns + m->row_start[path[a]];
            double x = column[a], y = row[a];
            for (int32_t b = 0; b <= a; b++) up[b] -= x * row[b];
            for (int32_t b = 0; b < a; b++) side[b] -= y * column[b];
        }
    }
    return ok;
}

void usi_branch_solve(const us_model *m, usi_span span, const double *rows, const double *columns, double *x) {
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        const double *column = columns + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        for (int32_t a = 0; a < last; a++) x[path[a]] -= column[a] * x[i];
    }
    for (int32_t i = span.first; i < span.end; i++) {
        const double *row = rows + m->row_start[i];
        const int32_t *path = m->path + m->row_start[i];
        int32_t last = m->row_start[i + 1] - m->row_start[i] - 1;
        double sum = x[i];
        for (int32_t a = 0; a < last; a++) sum -= row[a] * x[path[a]];
        x[i] = sum * row[last];
    }
}
