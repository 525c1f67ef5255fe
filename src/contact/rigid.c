// Rigid contact: velocities at the end of the step such that nothing penetrates and friction opposes sliding.
//
// Direct. With the friction circle replaced by a pyramid of eight edges d_k the problem is a linear complementarity problem in
// (gn, beta_1..8, lambda) per point, after Stewart and Trinkle (1996) and Anitescu and Potra (1997):
//
//     un    = n . u                       >= 0   _|_   gn     >= 0
//     sigma = d_k . u + lambda            >= 0   _|_   beta_k >= 0        (lambda: the sliding speed)
//     zeta  = mu gn - sum beta_k          >= 0   _|_   lambda >= 0
//
// w = q + M z. M is copositive, so that Lemke's method ends with a solution: z0 times a vector of ones is added until w >= 0, and
// z0 is driven out by pivots, each entering the complement of what left before. The dictionary x_basic = q + T x_nonbasic is kept dense and
// in place. Ties are broken lexicographically (the row that would leave first if the k-th entry of q grew by epsilon^k), so that it cannot cycle.
//
// Contacts are often redundant: a table on four legs. A then is singular and the impulses are not unique. A small compliance on the
// diagonal picks the even ones; the finished solution is corrected with the exact matrix, through the inverse that the dictionary
// holds, so that the compliance leaves no trace in the velocities.
//
// Iterative. Point after point gets its exact answer (local.h) on the true circle, until nothing changes.
#include <string.h>

#include "contact/contact.h"
#include "contact/local.h"

enum { EDGES = 8, PER_POINT = 2 + EDGES };

static const double COMPLIANCE = 1e-9;  // of the mean diagonal: above rounding through a singular matrix, below what impulses need
static const double LEAST_PIVOT = 1e-12;
static const double TIE = 1e-12;
static const double H = 0.70710678118654752440;

// Unit vectors of normal and edges in a point's rows.
static const double DIRECTION[1 + EDGES][3] = {{1, 0, 0},  {0, 1, 0},   {0, H, H},  {0, 0, 1}, {0, -H, H},
                                               {0, -1, 0}, {0, -H, -H}, {0, 0, -1}, {0, H, -H}};

// Variables are numbered: w_k is k, z_k is n + k, z0 is 2n.
typedef struct lemke {
    size_t n, stride;     // rows; doubles from row to row: z's or w's, then z0
    double *T;            // n x (n + 1)
    double *q, *x, *old;  // basic values; the same while they are corrected
    double *rest;
    int32_t *basic;     // variable of each row
    int32_t *nonbasic;  // variable of each column
    int32_t *where;     // row of a basic variable, -1 - column of another
    int32_t *first;     // n_point + 1: first variable of each point
    int32_t *point;     // of each variable
} lemke;

size_t usi_rigid_work(int32_t n_point) {
    size_t n = PER_POINT * (size_t)n_point;
    size_t n_int = n + (n + 1) + (2 * n + 1) + ((size_t)n_point + 1) + n;
    return n * (n + 1) + 4 * n + (n_int + 1) / 2;
}

static lemke layout(int32_t n_point, const double *mu, double *work) {
    lemke s = {.T = work};
    size_t most = PER_POINT * (size_t)n_point;
    s.q = work + most * (most + 1);
    s.x = s.q + most, s.old = s.x + most, s.rest = s.old + most;
    s.basic = (int32_t *)(s.rest + most);
    s.nonbasic = s.basic + most;
    s.where = s.nonbasic + most + 1;
    s.first = s.where + 2 * most + 1;
    s.point = s.first + n_point + 1;
    s.first[0] = 0;
    for (int32_t p = 0; p < n_point; p++) {
        s.first[p + 1] = s.first[p] + (mu[p] > 0 ? PER_POINT : 1);
        for (int32_t i = s.first[p]; i < s.first[p + 1]; i++) s.point[i] = p;
    }
    s.n = (size_t)s.first[n_point];
    s.stride = s.n + 1;
    return s;
}

// The dictionary at the start: w = q + M z + z0.
static void fill(lemke *s, int32_t n_point, const double *A, const double *b, const double *mu, double a_scale, double b_scale) {
    const size_t n = s->n, wide = 3 * (size_t)n_point;
    for (size_t i = 0; i < n; i++) {
        size_t p = (size_t)s->point[i], li = i - (size_t)s->first[p];
        double *row = s->T + i * s->stride;
        for (size_t j = 0; j < n; j++) {
            size_t o = (size_t)s->point[j], lj = j - (size_t)s->first[o];
            if (li <= EDGES && lj <= EDGES) {
                const double *di = DIRECTION[li], *dj = DIRECTION[lj];
                double sum = 0;
                for (size_t r = 0; r < 3; r++) {
                    for (size_t c = 0; c < 3; c++) {
                        double entry = A[(3 * p + r) * wide + 3 * o + c] * a_scale + (p == o && r == c ? COMPLIANCE : 0);
                        sum += di[r] * entry * dj[c];
                    }
                }
                row[j] = sum;
            } else if (p != o || li == lj) {
                row[j] = 0;
            } else if (li > EDGES) {
                row[j] = lj == 0 ? mu[p] : -1;
            } else {
                row[j] = li == 0 ? 0 : 1;
            }
        }
        row[n] = 1;
        s->q[i] = 0;
        for (size_t r = 0; r < 3 && li <= EDGES; r++) s->q[i] += DIRECTION[li][r] * b[3 * p + r] * b_scale;
        s->basic[i] = (int32_t)i;
        s->nonbasic[i] = (int32_t)(n + i);
        s->where[i] = (int32_t)i;
        s->where[n + i] = -1 - (int32_t)i;
    }
    s->nonbasic[n] = (int32_t)(2 * n);
    s->where[2 * n] = -1 - (int32_t)n;
}

static void pivot(lemke *s, size_t r, size_t c) {
    double *row = s->T + r * s->stride, inverse = 1 / row[c];
    for (size_t j = 0; j <= s->n; j++) row[j] *= -inverse;
    s->q[r] *= -inverse;
    row[c] = inverse;
    for (size_t i = 0; i < s->n; i++) {
        double *other = s->T + i * s->stride, factor = other[c];
        if (i == r || factor == 0) continue;
        other[c] = 0;
        for (size_t j = 0; j <= s->n; j++) other[j] += factor * row[j];
        s->q[i] += factor * s->q[r];
    }
    int32_t leaving = s->basic[r], entering = s->nonbasic[c];
    s->basic[r] = entering, s->nonbasic[c] = leaving;
    s->where[entering] = (int32_t)r, s->where[leaving] = -1 - (int32_t)c;
}

// How the basic value of row i grows with q_k of the start: an entry of the inverse basis.
static double inverse_entry(const lemke *s, size_t i, size_t k) {
    int32_t at = s->where[k];
    return at >= 0 ? (double)((size_t)at == i) : -s->T[i * s->stride + (size_t)(-1 - at)];
}

// Whether row i leaves before row j when column c enters and their ratios are the same.
static bool leaves_first(const lemke *s, size_t i, size_t j, size_t c) {
    double pi = -s->T[i * s->stride + c], pj = -s->T[j * s->stride + c];
    for (size_t k = 0; k < s->n; k++) {
        double difference = inverse_entry(s, i, k) * pj - inverse_entry(s, j, k) * pi;
        if (fabs(difference) > TIE * pi * pj) return difference < 0;
    }
    return false;
}

// The row that leaves when column c enters; n: none does.
static size_t ratio_test(const lemke *s, size_t c) {
    size_t best = s->n;
    double least = 0;
    for (size_t i = 0; i < s->n; i++) {
        double p = -s->T[i * s->stride + c];
        if (!(p > LEAST_PIVOT)) continue;
        double ratio = (s->q[i] > 0 ? s->q[i] : 0) / p, slack = TIE * (1 + fabs(least));
        bool is_z0 = s->basic[i] == (int32_t)(2 * s->n);
        if (best == s->n || ratio < least - slack) {
            best = i, least = ratio;
        } else if (ratio <= least + slack && s->basic[best] != (int32_t)(2 * s->n) && (is_z0 || leaves_first(s, i, best, c))) {
            best = i, least = ratio < least ? ratio : least;
        }
    }
    return best;
}

static bool run(lemke *s) {
    const size_t n = s->n;
    size_t row = 0;
    for (size_t i = 1; i < n; i++) {
        if (s->q[i] <= s->q[row]) row = i;
    }
    if (s->q[row] >= 0) return true;
    size_t column = n;
    for (size_t count = 0; count < 20 * n + 200; count++) {
        int32_t leaving = s->basic[row];
        pivot(s, row, column);
        if (leaving == (int32_t)(2 * n)) return true;
        int32_t entering = leaving < (int32_t)n ? leaving + (int32_t)n : leaving - (int32_t)n;
        column = (size_t)(-1 - s->where[entering]);
        row = ratio_test(s, column);
        if (row == n) return false;  // a ray
    }
    return false;
}

// Impulses of the rows from the basic values x.
static void impulses(const lemke *s, int32_t n_point, const double *x, double *g) {
    memset(g, 0, 3 * (size_t)n_point * sizeof *g);
    for (size_t k = 0; k < s->n; k++) {
        int32_t at = s->where[s->n + k];
        size_t p = (size_t)s->point[k], l = k - (size_t)s->first[p];
        if (at < 0 || l > EDGES || x[at] <= 0) continue;
        for (size_t r = 0; r < 3; r++) g[3 * p + r] += x[at] * DIRECTION[l][r];
    }
}

static double value(const lemke *s, size_t variable, const double *x) { return s->where[variable] >= 0 ? x[s->where[variable]] : 0; }

// What is missing in w = q + M z with the exact matrix, row by row; returns the largest.
static double missing(const lemke *s, int32_t n_point, const double *A, const double *b, const double *mu, double a_scale, double b_scale) {
    const size_t n = s->n, wide = 3 * (size_t)n_point;
    double most = 0;
    for (int32_t point = 0; point < n_point; point++) {
        size_t p = (size_t)point, first = (size_t)s->first[p], n_own = (size_t)s->first[p + 1] - first;
        double u[3];
        for (size_t r = 0; r < 3; r++) {
            u[r] = b[3 * p + r] * b_scale;
            for (size_t k = 0; k < n; k++) {
                size_t o = (size_t)s->point[k], l = k - (size_t)s->first[o];
                double z = value(s, n + k, s->x);
                if (l > EDGES || z == 0) continue;
                const double *entry = A + (3 * p + r) * wide + 3 * o, *d = DIRECTION[l];
                u[r] += a_scale * z * (entry[0] * d[0] + entry[1] * d[1] + entry[2] * d[2]);
            }
        }
        double lambda = n_own > 1 ? value(s, n + first + 1 + EDGES, s->x) : 0, cone = mu[p] * value(s, n + first, s->x);
        for (size_t l = 0; l < n_own; l++) {
            double w = 0;
            if (l <= EDGES) {
                w = DIRECTION[l][0] * u[0] + DIRECTION[l][1] * u[1] + DIRECTION[l][2] * u[2] + (l > 0 ? lambda : 0);
                if (l > 0) cone -= value(s, n + first + l, s->x);
            } else {
                w = cone;
            }
            s->rest[first + l] = w - value(s, first + l, s->x);
            most = fmax(most, fabs(s->rest[first + l]));
        }
    }
    return most;
}

// Corrects the basic values until they fulfil the equations without the compliance; keeps what was best.
static void correct(lemke *s, int32_t n_point, const double *A, const double *b, const double *mu, double a_scale, double b_scale) {
    const size_t n = s->n;
    memcpy(s->x, s->q, n * sizeof *s->x);
    double error = missing(s, n_point, A, b, mu, a_scale, b_scale);
    for (int round = 0; round < 4 && error > 0; round++) {
        memcpy(s->old, s->x, n * sizeof *s->x);
        bool is_sound = true;
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) {
                if (s->rest[k] != 0) sum += inverse_entry(s, i, k) * s->rest[k];
            }
            s->x[i] += sum;
            is_sound &= s->x[i] > -1e-8;  // false for NaN too
        }
        double now = is_sound ? missing(s, n_point, A, b, mu, a_scale, b_scale) : error;
        if (!(now < error)) {
            memcpy(s->x, s->old, n * sizeof *s->x);
            return;
        }
        error = now;
    }
}

bool usi_rigid_direct(int32_t n_point, const double *A, const double *b, const double *mu, double *g, double *work) {
    const size_t wide = 3 * (size_t)n_point;
    double trace = 0, largest = 0;
    for (size_t i = 0; i < wide; i++) {
        trace += A[i * wide + i];
        largest = fmax(largest, fabs(b[i]));
    }
    if (!(largest > 0) || !(trace > 0)) {
        // Nothing moves, or nothing can.
        if (largest == 0) memset(g, 0, wide * sizeof *g);
        return largest == 0;
    }
    // Unit sizes: the mean diagonal and the largest velocity are 1.
    double a_scale = (double)wide / trace, b_scale = 1 / largest;
    lemke s = layout(n_point, mu, work);
    fill(&s, n_point, A, b, mu, a_scale, b_scale);
    if (!run(&s)) return false;
    correct(&s, n_point, A, b, mu, a_scale, b_scale);
    for (size_t i = 0; i < s.n; i++) {
        if (!isfinite(s.x[i])) return false;
    }
    impulses(&s, n_point, s.x, g);
    for (size_t i = 0; i < wide; i++) g[i] *= a_scale * largest;
    return true;
}

// ---------------------------------------------------------------- iterative

int32_t usi_rigid_iterative(int32_t n_point, const double *A, const double *b, const double *mu, double *g, int32_t max_sweep, double tol) {
    const size_t wide = 3 * (size_t)n_point;
    int32_t sweep = 0;
    while (sweep < max_sweep) {
        double most = 0;
        for (size_t p = 0; p < (size_t)n_point; p++) {
            const double *D = A + 3 * p * wide + 3 * p;
            double K[6] = {D[0], D[1], D[2], D[wide + 1], D[wide + 2], D[2 * wide + 2]}, e[3], next[3], *own = g + 3 * p;
            if (!(K[0] > 0)) continue;  // between two bodies that cannot move
            for (size_t r = 0; r < 3; r++) {
                const double *row = A + (3 * p + r) * wide;
                e[r] = b[3 * p + r];
                for (size_t k = 0; k < wide; k++) e[r] += row[k] * g[k];
            }
            usi_local local;
            if (!(mu[p] > 0)) {
                double change = -e[0] / K[0];
                next[0] = own[0] + change > 0 ? own[0] + change : 0, next[1] = next[2] = 0;
            } else {
                double most_mu = mu[p] < 1e8 ? mu[p] : 1e8;
                if (!usi_local_set(&local, K, most_mu)) {
                    // One direction cannot move: a little compliance there.
                    double soft = COMPLIANCE * (K[0] + K[3] + K[5]);
                    K[3] += soft, K[5] += soft;
                    usi_local_set(&local, K, most_mu);
                }
                usi_local_visit(&local, own, e, 6, next);
            }
            double size[3] = {K[0], K[3], K[5]};
            for (size_t r = 0; r < 3; r++) {
                most = fmax(most, size[r] * fabs(next[r] - own[r]));
                own[r] = next[r];
            }
        }
        sweep++;
        if (most < tol) break;
    }
    return sweep;
}
