// Small dense matrices for sparse.c: the pieces of a block LU, for any size and, much faster, for 6 x 6.
//
// A block of r rows and c columns has rows of stride(c) doubles, c rounded up to 4, so that rows are whole
// vectors of four lanes. Lanes beyond the size are 0 and stay 0. A diagonal block is factored as
//
//     D = L diag(d) U,    L and U with ones on their diagonals,
//
// and keeps L below, U above the diagonal; 1/d stands in an array of its own. No pivoting: for a mass matrix
// plus contact terms every leading block is as good as the whole.
//
// 6 x 6 blocks lie in 12 vectors: a[i] lanes 0..3 of row i, b[i] lanes 4, 5 and two zeros. All of them fit in
// the registers, and every number that multiplies a row is spread from memory or from its own row while a
// division is under way; that is what sets the time. A factored 6 x 6 diagonal block is kept by columns,
// since a solve by columns has no sums across lanes.
#ifndef USI_CONTACT_SPARSE_KERNEL_H
#define USI_CONTACT_SPARSE_KERNEL_H

#include <float.h>
#include <math.h>

#include "math/v4.h"

typedef double usi_lanes __attribute__((vector_size(32), may_alias));

static inline usi_v4 usi_load(const double *p) { return *(const usi_lanes *)p; }
static inline void usi_store(double *p, usi_v4 v) { *(usi_lanes *)p = v; }

// ---- any size ----

// C -= A B over `rows` x `vectors` vectors, both constants where it is called, so that the sums stay in
// registers. A(r, p) is at A[r * ar + p * ac].
static inline __attribute__((always_inline)) void usi_tile(const int rows, const int vectors, int k,
                                                           const double *A, ptrdiff_t ar, ptrdiff_t ac,
                                                           const double *B, ptrdiff_t ldb, double *C,
                                                           ptrdiff_t ldc) {
    usi_v4 sum[4][2];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            sum[r][v] = usi_load(C + r * ldc + 4 * v);
    }
    for (int p = 0; p < k; p++) {
        usi_v4 row[2];
        for (int v = 0; v < vectors; v++)
            row[v] = usi_load(B + p * ldb + 4 * v);
        for (int r = 0; r < rows; r++) {
            usi_v4 factor = usi_v4_all(A[r * ar + p * ac]);
            for (int v = 0; v < vectors; v++)
                sum[r][v] -= factor * row[v];
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            usi_store(C + r * ldc + 4 * v, sum[r][v]);
    }
}

// C -= A B; C has m rows of n doubles (n a multiple of 4), A m x k, B k rows of n doubles.
static inline void usi_subtract_product(int m, int n, int k, const double *A, ptrdiff_t ar, ptrdiff_t ac,
                                        const double *B, ptrdiff_t ldb, double *C, ptrdiff_t ldc) {
    int r = 0;
    for (; r + 4 <= m; r += 4) {
        int c = 0;
        for (; c + 8 <= n; c += 8)
            usi_tile(4, 2, k, A + r * ar, ar, ac, B + c, ldb, C + r * ldc + c, ldc);
        if (c < n) usi_tile(4, 1, k, A + r * ar, ar, ac, B + c, ldb, C + r * ldc + c, ldc);
    }
    for (; r < m; r++) {
        int c = 0;
        for (; c + 8 <= n; c += 8)
            usi_tile(1, 2, k, A + r * ar, ar, ac, B + c, ldb, C + r * ldc + c, ldc);
        if (c < n) usi_tile(1, 1, k, A + r * ar, ar, ac, B + c, ldb, C + r * ldc + c, ldc);
    }
}

// X = T^-1 X, T of `size` rows with ones on its diagonal, T(r, q) at T[r * tr + q * tc] for q < r. Four rows
// at a time: the rows above enter as a product, then the four among themselves.
static inline void usi_substitute(int size, int n, const double *T, ptrdiff_t tr, ptrdiff_t tc, double *X,
                                  ptrdiff_t ldx) {
    for (int r0 = 0; r0 < size; r0 += 4) {
        int m = size - r0 < 4 ? size - r0 : 4;
        if (r0) usi_subtract_product(m, n, r0, T + r0 * tr, tr, tc, X, ldx, X + r0 * ldx, ldx);
        for (int r = r0 + 1; r < r0 + m; r++) {
            for (int q = r0; q < r; q++) {
                usi_v4 factor = usi_v4_all(T[r * tr + q * tc]);
                for (int c = 0; c < n; c += 4)
                    usi_store(X + r * ldx + c,
                              usi_load(X + r * ldx + c) - factor * usi_load(X + q * ldx + c));
            }
        }
    }
}

// Pivots must be finite and not 0; NaN is neither. They may be negative: sliding friction makes the matrix
// neither symmetric nor definite.
static inline bool usi_is_pivot(double d) { return d != 0 && d <= DBL_MAX && d >= -DBL_MAX; }

// Factors `width` columns of D from p0 on among themselves, and finishes the rows of L below them. The width
// is a constant where it is called.
static inline __attribute__((always_inline)) bool usi_factor_panel(const int width, int p0, int size, int ld,
                                                                   double *D, double *inv) {
    double *T = D + p0 * ld + p0;
    for (int p = 0; p < width; p++) {
        double d = T[p * ld + p];
        if (!usi_is_pivot(d)) return false;
        inv[p0 + p] = 1 / d;
        for (int r = p + 1; r < width; r++) {
            double l = T[r * ld + p] *= inv[p0 + p];
            for (int c = p + 1; c < width; c++)
                T[r * ld + c] -= l * T[p * ld + c];
        }
    }
    for (int r = width; r < size - p0; r++) {
        double l[4];
        for (int p = 0; p < width; p++) {
            l[p] = T[r * ld + p];
            for (int q = 0; q < p; q++)
                l[p] -= l[q] * T[q * ld + p];
            l[p] *= inv[p0 + p];
        }
        for (int p = 0; p < width; p++)
            T[r * ld + p] = l[p];
    }
    return true;
}

// Factors D, `size` rows of `ld`. Four columns at a time: the four with the rows of L below them, the rows of
// U beside them, then the rest as a product.
static inline bool usi_factor_any(int size, int ld, double *D, double *inv) {
    for (int p0 = 0; p0 < size; p0 += 4) {
        int width = size - p0 < 4 ? size - p0 : 4, end = p0 + width, next = p0 + 4;
        bool ok = width == 4   ? usi_factor_panel(4, p0, size, ld, D, inv)
                  : width == 3 ? usi_factor_panel(3, p0, size, ld, D, inv)
                  : width == 2 ? usi_factor_panel(2, p0, size, ld, D, inv)
                               : usi_factor_panel(1, p0, size, ld, D, inv);
        if (!ok) return false;
        if (next >= ld) break;
        usi_substitute(width, ld - next, D + p0 * ld + p0, ld, 1, D + p0 * ld + next, ld);
        usi_subtract_product(size - end, ld - next, width, D + end * ld + p0, ld, 1, D + p0 * ld + next, ld,
                             D + end * ld + next, ld);
    }
    for (int r = 0; r < size; r++) {
        for (int c = r + 1; c < size; c++)
            D[r * ld + c] *= inv[r];
    }
    return true;
}

// The products of up to four rows (m of them) with x, n doubles each.
static inline usi_v4 usi_dot_rows(int m, int n, const double *A, ptrdiff_t ld, const double *x) {
    const double *a0 = A, *a1 = m > 1 ? A + ld : A, *a2 = m > 2 ? A + 2 * ld : A,
                 *a3 = m > 3 ? A + 3 * ld : A;
    usi_v4 s0 = usi_v4_zero(), s1 = s0, s2 = s0, s3 = s0;
    for (int c = 0; c < n; c += 4) {
        usi_v4 v = usi_load(x + c);
        s0 += usi_load(a0 + c) * v;
        s1 += usi_load(a1 + c) * v;
        s2 += usi_load(a2 + c) * v;
        s3 += usi_load(a3 + c) * v;
    }
    usi_v4 s01 = __builtin_shufflevector(s0, s1, 0, 4, 2, 6) + __builtin_shufflevector(s0, s1, 1, 5, 3, 7);
    usi_v4 s23 = __builtin_shufflevector(s2, s3, 0, 4, 2, 6) + __builtin_shufflevector(s2, s3, 1, 5, 3, 7);
    return __builtin_shufflevector(s01, s23, 0, 1, 4, 5) + __builtin_shufflevector(s01, s23, 2, 3, 6, 7);
}

// y = L^-1 y with a factored D by rows. y has room for stride(size).
static inline void usi_forward_any(int size, int ld, const double *D, double *y) {
    for (int r0 = 0; r0 < size; r0 += 4) {
        int m = size - r0 < 4 ? size - r0 : 4;
        usi_v4 sum = usi_dot_rows(m, r0, D + r0 * ld, ld, y);
        for (int r = 0; r < m; r++) {
            double t = y[r0 + r] - sum[r];
            for (int q = 0; q < r; q++)
                t -= D[(r0 + r) * ld + r0 + q] * y[r0 + q];
            y[r0 + r] = t;
        }
    }
}

// y = U^-1 diag(1/d) y.
static inline void usi_backward_any(int size, int ld, const double *D, const double *inv, double *y) {
    for (int r0 = (size - 1) / 4 * 4; r0 >= 0; r0 -= 4) {
        int m = size - r0 < 4 ? size - r0 : 4, next = r0 + 4;
        usi_v4 sum = usi_dot_rows(m, ld - next, D + r0 * ld + next, ld, y + next);
        for (int r = m - 1; r >= 0; r--) {
            double t = y[r0 + r] * inv[r0 + r] - sum[r];
            for (int c = r + 1; c < m; c++)
                t -= D[(r0 + r) * ld + r0 + c] * y[r0 + c];
            y[r0 + r] = t;
        }
    }
}

// ---- 6 x 6, rows of 8 ----

typedef struct usi_six {
    usi_v4 a[6], b[6];
} usi_six;

static inline __attribute__((always_inline)) usi_six usi_load6(const double *p) {
    usi_six m;
    for (int i = 0; i < 6; i++) {
        m.a[i] = usi_load(p + 8 * i);
        m.b[i] = usi_load(p + 8 * i + 4);
    }
    return m;
}
static inline __attribute__((always_inline)) void usi_store6(double *p, const usi_six *m) {
    for (int i = 0; i < 6; i++) {
        usi_store(p + 8 * i, m->a[i]);
        usi_store(p + 8 * i + 4, m->b[i]);
    }
}

static inline __attribute__((always_inline)) usi_six usi_transpose6(const usi_six *m) {
    usi_six t;
    usi_v4 z = usi_v4_zero(), wide[4];
    usi_v4_transpose(m->a[0], m->a[1], m->a[2], m->a[3], t.a);
    usi_v4_transpose(m->a[4], m->a[5], z, z, t.b);
    usi_v4_transpose(m->b[0], m->b[1], m->b[2], m->b[3], wide);
    t.a[4] = wide[0];
    t.a[5] = wide[1];
    t.b[4] = __builtin_shufflevector(__builtin_shufflevector(m->b[4], m->b[5], 0, 4, 2, 6), z, 0, 1, 4, 5);
    t.b[5] = __builtin_shufflevector(__builtin_shufflevector(m->b[4], m->b[5], 1, 5, 3, 7), z, 0, 1, 4, 5);
    return t;
}

// Lane i of a row in all lanes.
#define USI_LANE6(row_a, row_b, i)                                               \
    ((i) < 4 ? __builtin_shufflevector(row_a, row_a, (i)&3, (i)&3, (i)&3, (i)&3) \
             : __builtin_shufflevector(row_b, row_b, (i)&3, (i)&3, (i)&3, (i)&3))

// Lanes of x where the number of the lane (counted from `first`) is above i, of y elsewhere.
#define USI_ABOVE6(x, y, first, i)                                                  \
    __builtin_shufflevector(x, y, (first) > (i) ? 0 : 4, (first) + 1 > (i) ? 1 : 5, \
                            (first) + 2 > (i) ? 2 : 6, (first) + 3 > (i) ? 3 : 7)

// One pivot: row p is divided by it beyond the diagonal, and taken off the rows below. The column under the
// pivot keeps its values (L times d); the diagonal becomes 1/d, which the division gives for nothing.
#define USI_PIVOT6(m, p, ok)                                                                               \
    do {                                                                                                   \
        usi_v4 d = USI_LANE6((m).a[p], (m).b[p], p), one = usi_v4_all(1), zero = usi_v4_zero(), ua = zero, \
               ub;                                                                                         \
        (ok) &= (int)(d[0] != 0) & (int)(fabs(d[0]) <= DBL_MAX);                                           \
        if ((p) < 4) {                                                                                     \
            usi_v4 quotient = USI_ABOVE6((m).a[p], one, 0, p) / d;                                         \
            ua = USI_ABOVE6(quotient, zero, 0, p);                                                         \
            (m).a[p] = USI_ABOVE6(quotient, (m).a[p], 0, (p)-1);                                           \
            (m).b[p] = ub = (m).b[p] / d;                                                                  \
        } else {                                                                                           \
            usi_v4 quotient = USI_ABOVE6((m).b[p], one, 4, p) / d;                                         \
            ub = USI_ABOVE6(quotient, zero, 4, p);                                                         \
            (m).b[p] = USI_ABOVE6(quotient, (m).b[p], 4, (p)-1);                                           \
        }                                                                                                  \
        for (int r = (p) + 1; r < 6; r++) {                                                                \
            usi_v4 factor = USI_LANE6((m).a[r], (m).b[r], p);                                              \
            if ((p) < 3) (m).a[r] -= factor * ua;                                                          \
            (m).b[r] -= factor * ub;                                                                       \
        }                                                                                                  \
    } while (0)

// Factors D and leaves it by columns, 1/d on its diagonal; inv gets 1/d too (8 doubles, the last two 0).
static inline bool usi_factor6(double *D, double *inv) {
    usi_six m = usi_load6(D);
    int ok = 1;
    USI_PIVOT6(m, 0, ok);
    USI_PIVOT6(m, 1, ok);
    USI_PIVOT6(m, 2, ok);
    USI_PIVOT6(m, 3, ok);
    USI_PIVOT6(m, 4, ok);
    USI_PIVOT6(m, 5, ok);
    usi_six t = usi_transpose6(&m);
    inv[0] = m.a[0][0];
    inv[1] = m.a[1][1];
    inv[2] = m.a[2][2];
    inv[3] = m.a[3][3];
    inv[4] = m.b[4][0];
    inv[5] = m.b[5][1];
    inv[6] = inv[7] = 0;
    // Below the diagonal stands L times d.
#define USI_SCALE6(c)                                   \
    {                                                   \
        usi_v4 by = usi_v4_all(inv[c]);                 \
        t.a[c] = USI_ABOVE6(t.a[c] * by, t.a[c], 0, c); \
        t.b[c] = USI_ABOVE6(t.b[c] * by, t.b[c], 4, c); \
    }
    USI_SCALE6(0)
    USI_SCALE6(1)
    USI_SCALE6(2)
    USI_SCALE6(3)
    USI_SCALE6(4)
#undef USI_SCALE6
    usi_store6(D, &t);
    return ok;
}

// X = L^-1 X for X in the row of the factored D.
static inline void usi_upper6(const double *D, double *X) {
    usi_six x = usi_load6(X);
    for (int q = 0; q < 5; q++) {
        for (int r = q + 1; r < 6; r++) {
            usi_v4 factor = usi_v4_all(D[8 * q + r]);
            x.a[r] -= factor * x.a[q];
            x.b[r] -= factor * x.b[q];
        }
    }
    usi_store6(X, &x);
}

// X = X U^-1 diag(1/d) for X in the column of the factored D; X becomes its transpose.
static inline void usi_lower6(const double *D, double *X) {
    usi_six rows = usi_load6(X), x = usi_transpose6(&rows);
    for (int p = 0; p < 5; p++) {
        for (int c = p + 1; c < 6; c++) {
            usi_v4 factor = usi_v4_all(D[8 * c + p]);
            x.a[c] -= factor * x.a[p];
            x.b[c] -= factor * x.b[p];
        }
    }
    for (int c = 0; c < 6; c++) {
        usi_v4 factor = usi_v4_all(D[9 * c]);
        x.a[c] *= factor;
        x.b[c] *= factor;
    }
    usi_store6(X, &x);
}

// C -= L U, with L given by columns: twelve sums, two vectors of U and a factor are all the registers there
// are.
static inline void usi_update6(const double *L, const double *U, double *C) {
    usi_six c = usi_load6(C);
    for (int p = 0; p < 6; p++) {
        usi_v4 ua = usi_load(U + 8 * p), ub = usi_load(U + 8 * p + 4);
        for (int r = 0; r < 6; r++) {
            usi_v4 factor = usi_v4_all(L[8 * p + r]);
            c.a[r] -= factor * ua;
            c.b[r] -= factor * ub;
        }
    }
    usi_store6(C, &c);
}

// Lanes 0..3 and 4, 5 of a vector whose numbers come each in all lanes of s[i]. Whole vectors are written:
// the next unit reads them so, and a load that spans several smaller stores waits until they have left the
// store queue.
static inline __attribute__((always_inline)) void usi_collect6(const usi_v4 s[6], double *y) {
    usi_v4 s01 = __builtin_shufflevector(s[0], s[1], 0, 5, 2, 7),
           s23 = __builtin_shufflevector(s[2], s[3], 0, 5, 2, 7);
    usi_v4 s45 = __builtin_shufflevector(s[4], s[5], 0, 5, 2, 7);
    usi_store(y, __builtin_shufflevector(s01, s23, 0, 1, 6, 7));
    usi_store(y + 4, __builtin_shufflevector(s45, usi_v4_zero(), 0, 1, 4, 5));
}

// y = L^-1 y. A number is final when its column's turn comes; what then happens to its lane does not matter.
static inline void usi_forward6(const double *D, double *y) {
    usi_v4 a = usi_load(y), b = usi_load(y + 4), s[6];
    s[0] = USI_LANE6(a, b, 0);
    a -= s[0] * usi_load(D);
    b -= s[0] * usi_load(D + 4);
    s[1] = USI_LANE6(a, b, 1);
    a -= s[1] * usi_load(D + 8);
    b -= s[1] * usi_load(D + 12);
    s[2] = USI_LANE6(a, b, 2);
    a -= s[2] * usi_load(D + 16);
    b -= s[2] * usi_load(D + 20);
    s[3] = USI_LANE6(a, b, 3);
    b -= s[3] * usi_load(D + 28);
    s[4] = USI_LANE6(a, b, 4);
    b -= s[4] * usi_load(D + 36);
    s[5] = USI_LANE6(a, b, 5);
    usi_collect6(s, y);
}

// y = U^-1 diag(1/d) y.
static inline void usi_backward6(const double *D, const double *inv, double *y) {
    usi_v4 a = usi_load(y) * usi_load(inv), b = usi_load(y + 4) * usi_load(inv + 4), s[6];
    s[5] = USI_LANE6(a, b, 5);
    b -= s[5] * usi_load(D + 44);
    a -= s[5] * usi_load(D + 40);
    s[4] = USI_LANE6(a, b, 4);
    a -= s[4] * usi_load(D + 32);
    s[3] = USI_LANE6(a, b, 3);
    a -= s[3] * usi_load(D + 24);
    s[2] = USI_LANE6(a, b, 2);
    a -= s[2] * usi_load(D + 16);
    s[1] = USI_LANE6(a, b, 1);
    a -= s[1] * usi_load(D + 8);
    s[0] = USI_LANE6(a, b, 0);
    usi_collect6(s, y);
}

// x -= L y, L by columns.
static inline void usi_spread6(const double *L, const double *y, double *x) {
    usi_v4 a = usi_load(x), b = usi_load(x + 4), a2 = usi_v4_zero(), b2 = a2;
    for (int c = 0; c < 6; c += 2) {
        usi_v4 even = usi_v4_all(y[c]), odd = usi_v4_all(y[c + 1]);
        a -= even * usi_load(L + 8 * c);
        b -= even * usi_load(L + 8 * c + 4);
        a2 -= odd * usi_load(L + 8 * c + 8);
        b2 -= odd * usi_load(L + 8 * c + 12);
    }
    usi_store(x, a + a2);
    usi_store(x + 4, b + b2);
}

// y -= U x, U by rows.
static inline void usi_gather6(const double *U, const double *x, double *y) {
    usi_v4 xa = usi_load(x), xb = usi_load(x + 4), s[6];
    for (int r = 0; r < 6; r++)
        s[r] = usi_load(U + 8 * r) * xa + usi_load(U + 8 * r + 4) * xb;
    usi_v4 s01 =
        __builtin_shufflevector(s[0], s[1], 0, 4, 2, 6) + __builtin_shufflevector(s[0], s[1], 1, 5, 3, 7);
    usi_v4 s23 =
        __builtin_shufflevector(s[2], s[3], 0, 4, 2, 6) + __builtin_shufflevector(s[2], s[3], 1, 5, 3, 7);
    usi_v4 s45 =
        __builtin_shufflevector(s[4], s[5], 0, 4, 2, 6) + __builtin_shufflevector(s[4], s[5], 1, 5, 3, 7);
    usi_v4 zero = usi_v4_zero();
    usi_store(y, usi_load(y) - (__builtin_shufflevector(s01, s23, 0, 1, 4, 5) +
                                __builtin_shufflevector(s01, s23, 2, 3, 6, 7)));
    usi_store(y + 4, usi_load(y + 4) - (__builtin_shufflevector(s45, zero, 0, 1, 4, 5) +
                                        __builtin_shufflevector(s45, zero, 2, 3, 6, 7)));
}

#endif
