// Rigid contact: velocities at the end of the step such that nothing penetrates and friction opposes sliding.
//
//     u = A g + b        A: Delassus matrix, b: velocities without impulses, plus offsets
//
//     off      gn = 0,             un >= 0
//     stick    u  = 0              |gt| <= mu gn
//     slip     un = 0,             gt = -mu gn ut / |ut|
//
// Direct. Each point is in one of the three states; with the states known the impulses follow from a system
// of equations. Points whose answer contradicts their state are pivoted into the state that it points at, all
// at once (block principal pivoting), until none does:
//
//     tau_n = gn - rho un,   tau_t = gt - rho ut          off where tau_n <= 0, stick where |tau_t| <= mu
//     tau_n, slip elsewhere
//
// The slip direction is part of the system: gt = mu tau_n tau_t / |tau_t| in its linear form (Alart and
// Curnier 1991), so that a solution is reached quadratically on the true circle, without edges. A solve from
// the states of the last step takes one or two factorisations.
//
// Contacts are often redundant: a table on four legs. A then is singular and the impulses are not unique. So
// a compliance eps is put on the diagonal, which picks the even impulses, and taken out again by the proximal
// method: (A + eps) g' + b - eps g = u is solved again from the last g until g' = g. What is left of eps
// shrinks a thousandfold each time.
//
// Pivoting all at once may run in a circle. Then it begins again with soft contact, eps = 1, where any start
// will do, and goes on from there to hard contact, by steps that the states can follow; at last with another
// rho, by which it meets other states on its way.
//
// Iterative. Point after point gets its exact answer (contact__law.h) on the true circle, until nothing
// changes.
#include <string.h>

#include "contact/contact.h"
#include "contact/contact__law.h"

static const double COMPLIANCE =
    1e-6;  // of the mean diagonal: well above rounding through a singular matrix, soon taken out again
static const double MAX_FRICTION = 1e8;
// Residual of the equations in units of the greatest velocity: what rounding leaves of 64 points.
static const double CONVERGED = 1e-13;
// The proximal method ends here, in the same units; where it is slow, at the second; and with the third when
// it has had all its rounds.
static const double SETTLED = 1e-15, GOOD = 1e-9, FAIR = 1e-7;
static const double MAX_STRIDE = 32;
// Of the third attempt.
static const double OTHER_RHO = 0.2;
enum { MAX_HALVES = 5, MAX_PIVOTS = 30, MAX_PROXIMAL = 20, MAX_LATER_PIVOTS = 20, MAX_LEVELS = 80 };

typedef struct circle {
    int32_t n_point;
    size_t wide;               // rows: three per point
    const double *A, *b, *mu;  // as given
    double a_scale, b_scale;   // unit sizes: the mean diagonal and the largest velocity are 1
    double compliance;         // on the diagonal
    double rho;                // of the trial, over the inverse diagonal
    double *M;                 // matrix of the points that touch
    double *g, *w, *shift;     // wide: impulses; velocities; proximal offset
    double *F, *kept;          // right-hand side; impulses to go back to
    int32_t *row;              // wide: rows in use
    usi_contact_mode *state;   // n_point
} circle;

size_t usi_rigid_work(int32_t n_point) {
    size_t n = (size_t)n_point, wide = 3 * n;
    return wide * wide + 5 * wide + (wide + n + 1) / 2;
}

static circle layout(int32_t n_point, const double *A, const double *b, const double *mu, double *work) {
    size_t wide = 3 * (size_t)n_point;
    circle s = {.n_point = n_point, .wide = wide, .A = A, .b = b, .mu = mu, .M = work, .rho = 1};
    s.g = work + wide * wide;
    s.w = s.g + wide;
    s.shift = s.w + wide;
    s.F = s.shift + wide;
    s.kept = s.F + wide;
    s.row = (int32_t *)(s.kept + wide);
    s.state = (usi_contact_mode *)(s.row + wide);
    return s;
}

static double entry(const circle *s, size_t i, size_t j) {
    return s->A[i * s->wide + j] * s->a_scale + (i == j ? s->compliance : 0);
}

// w = (A + eps) g + b - eps (the g before).
static void velocities(circle *s) {
    for (size_t i = 0; i < s->wide; i++) {
        const double *row = s->A + i * s->wide;
        double sum = 0;
        for (size_t j = 0; j < s->wide; j++)
            sum += row[j] * s->g[j];
        s->w[i] = sum * s->a_scale + s->compliance * s->g[i] + s->b[i] * s->b_scale - s->shift[i];
    }
}

// Where a point's impulse and velocity lead it.
typedef struct trial {
    double n, t1, t2, length;  // tau
    double rho_n, rho_t;
    double limit;  // mu tau_n
} trial;

static trial try_point(const circle *s, size_t p) {
    const double *g = s->g + 3 * p, *w = s->w + 3 * p;
    double d1 = entry(s, 3 * p + 1, 3 * p + 1), d2 = entry(s, 3 * p + 2, 3 * p + 2);
    trial t = {.rho_n = s->rho / entry(s, 3 * p, 3 * p), .rho_t = s->rho / (d1 > d2 ? d1 : d2)};
    double mu = s->mu[p] < MAX_FRICTION ? s->mu[p] : MAX_FRICTION;
    t.n = g[0] - t.rho_n * w[0];
    t.t1 = g[1] - t.rho_t * w[1];
    t.t2 = g[2] - t.rho_t * w[2];
    t.length = sqrt(t.t1 * t.t1 + t.t2 * t.t2);
    t.limit = usi_friction_limit(mu, t.n);
    return t;
}

static usi_contact_mode state_of(const trial *t) {
    return usi_coulomb(t->n, t->length * t->length, t->limit);
}

// New states from impulses and velocities; returns the greatest residual of their equations.
static double pivot_states(circle *s) {
    double most = 0;
    for (size_t p = 0; p < (size_t)s->n_point; p++) {
        trial t = try_point(s, p);
        s->state[p] = state_of(&t);
        double to[3] = {0, 0, 0};
        const double *g = s->g + 3 * p;
        if (s->state[p] != USI_OFF) {
            double ratio = s->state[p] == USI_STICK ? 1 : t.limit / t.length;
            to[0] = t.n;
            to[1] = ratio * t.t1;
            to[2] = ratio * t.t2;
        }
        // In units of velocity.
        most = fmax(most, fabs(g[0] - to[0]) / t.rho_n);
        most = fmax(most, fmax(fabs(g[1] - to[1]), fabs(g[2] - to[2])) / t.rho_t);
    }
    return most;
}

// The system of the points that touch, for the change of their impulses. Returns the number of rows.
static size_t make_system(circle *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->wide; i++) {
        if (s->state[i / 3] == USI_OFF)
            s->g[i] = 0;
        else
            s->row[n++] = (int32_t)i;
    }
    velocities(s);
    for (size_t k = 0; k < n; k += 3) {
        size_t i = (size_t)s->row[k], p = i / 3;
        double *row[3] = {s->M + k * n, s->M + (k + 1) * n, s->M + (k + 2) * n};
        for (size_t j = 0; j < n; j++) {
            size_t c = (size_t)s->row[j];
            for (size_t r = 0; r < 3; r++)
                row[r][j] = entry(s, i + r, c);
        }
        for (size_t r = 0; r < 3; r++)
            s->F[k + r] = -s->w[i + r];
        if (s->state[p] == USI_STICK) continue;
        // gt - mu tau_n e = 0 with e = tau_t / |tau_t|, which turns with tau_t.
        trial t = try_point(s, p);
        const double *g = s->g + i;
        const usi_slip slip =
            usi_slip_slope(s->mu[p] < MAX_FRICTION ? s->mu[p] : MAX_FRICTION, t.limit, t.t1, t.t2, t.length);
        for (size_t j = 0; j < n; j++) {
            double a0 = row[0][j], a1 = row[1][j], a2 = row[2][j];
            // d tau = dg - rho dw.
            double tau_n = -t.rho_n * a0 + (j == k), tau_1 = -t.rho_t * a1 + (j == k + 1),
                   tau_2 = -t.rho_t * a2 + (j == k + 2);
            row[1][j] = (j == k + 1) - slip.n1 * tau_n - (slip.t11 * tau_1 + slip.t12 * tau_2);
            row[2][j] = (j == k + 2) - slip.n2 * tau_n - (slip.t12 * tau_1 + slip.t22 * tau_2);
        }
        s->F[k + 1] = t.limit * slip.e1 - g[1];
        s->F[k + 2] = t.limit * slip.e2 - g[2];
    }
    return n;
}

// LU with partial pivoting, in place; the solution goes to F. False when a pivot is 0 or not a number.
static bool solve(double *M, double *F, size_t n) {
    for (size_t k = 0; k < n; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < n; i++) {
            if (fabs(M[i * n + k]) > fabs(M[best * n + k])) best = i;
        }
        if (!(fabs(M[best * n + k]) > 0)) return false;
        if (best != k) {
            for (size_t j = k; j < n; j++) {
                double x = M[k * n + j];
                M[k * n + j] = M[best * n + j];
                M[best * n + j] = x;
            }
            double x = F[k];
            F[k] = F[best];
            F[best] = x;
        }
        const double *top = M + k * n, inverse = 1 / top[k];
        for (size_t i = k + 1; i < n; i++) {
            double *row = M + i * n, factor = row[k] * inverse;
            if (factor == 0) continue;
            for (size_t j = k + 1; j < n; j++)
                row[j] -= factor * top[j];
            F[i] -= factor * F[k];
        }
    }
    for (size_t k = n; k-- > 0;) {
        double sum = F[k];
        for (size_t j = k + 1; j < n; j++)
            sum -= M[k * n + j] * F[j];
        F[k] = sum / M[k * n + k];
    }
    return true;
}

// Goes on by a part of the step in F; returns the residual there.
static double step_to(circle *s, size_t n, double part) {
    for (size_t k = 0; k < n; k++)
        s->g[s->row[k]] += part * s->F[k];
    velocities(s);
    return pivot_states(s);
}

// Pivots until the states agree with the impulses. A step that leaves more than it found is shortened, or the
// states would swing to and fro.
static bool pivot_all(circle *s, int most) {
    velocities(s);
    double error = pivot_states(s);
    for (int i = 0; i < most && !(error < CONVERGED); i++) {
        size_t n = make_system(s);
        if (!solve(s->M, s->F, n)) return false;
        double last = error, taken = 0, best = 1, least = INFINITY;
        for (int half = 0; half < MAX_HALVES; half++) {
            double length = 1.0 / (1 << half);
            error = step_to(s, n, length - taken);
            taken = length;
            if (error < least) {
                least = error;
                best = length;
            }
            if (error < last || (i & 3) != 3) break;
        }
        if (best != taken) error = step_to(s, n, best - taken);
        if (!(error < 1e30)) return false;
    }
    return error < CONVERGED;
}

// From a start in s->g to the solution without compliance.
static bool solve_circle(circle *s) {
    s->compliance = COMPLIANCE;
    memset(s->shift, 0, s->wide * sizeof *s->shift);
    if (!pivot_all(s, MAX_PIVOTS)) return false;
    // Where points that hold the same body ask for speeds that differ by less than eps, their impulses move
    // by the same small amount in each round until one of them lets go: longer and longer steps get there.
    double last = INFINITY, stride = 1;
    for (int i = 0; i < MAX_PROXIMAL; i++) {
        double change = 0;
        for (size_t k = 0; k < s->wide; k++)
            change = fmax(change, fabs(s->compliance * s->g[k] - s->shift[k]));
        bool is_slow = change > 0.5 * last && change <= last;
        if (change < SETTLED || (is_slow && change < GOOD)) return true;
        stride = is_slow ? fmin(2 * stride, MAX_STRIDE) : 1;
        for (size_t k = 0; k < s->wide; k++)
            s->shift[k] += stride * (s->compliance * s->g[k] - s->shift[k]);
        last = change;
        if (!pivot_all(s, MAX_LATER_PIVOTS)) return false;
    }
    return last < FAIR;
}

// From soft contact to hard: with the compliance of the bodies themselves the points hardly see each other,
// and any start will do; what they find is the start for less of it. Where a step is too long for the states
// to follow, it is taken back and half as long (in powers).
static bool harden(circle *s) {
    memset(s->shift, 0, s->wide * sizeof *s->shift);
    memset(s->g, 0, s->wide * sizeof *s->g);
    double ratio = 0.25, done = 1 / ratio;
    for (int i = 0; i < MAX_LEVELS && ratio < 0.9; i++) {
        memcpy(s->kept, s->g, s->wide * sizeof *s->g);
        s->compliance = fmax(COMPLIANCE, done * ratio);
        if (pivot_all(s, MAX_LATER_PIVOTS)) {
            if (s->compliance <= COMPLIANCE) return true;
            done = s->compliance;
            ratio = fmax(0.25, ratio * ratio);
        } else {
            memcpy(s->g, s->kept, s->wide * sizeof *s->g);
            ratio = sqrt(ratio);
        }
    }
    return false;
}

bool usi_rigid_direct(int32_t n_point, const double *A, const double *b, const double *mu, double *g,
                      double *work) {
    circle s = layout(n_point, A, b, mu, work);
    double trace = 0, largest = 0;
    for (size_t i = 0; i < s.wide; i++) {
        double diagonal = A[i * s.wide + i];
        if (!(diagonal >= 0)) return false;
        trace += diagonal;
        largest = fmax(largest, fabs(b[i]));
    }
    if (!(largest > 0) || !(trace > 0)) {
        // Nothing moves, or nothing can.
        if (largest == 0) memset(g, 0, s.wide * sizeof *g);
        return largest == 0;
    }
    s.a_scale = (double)s.wide / trace;
    s.b_scale = 1 / largest;
    double g_scale = s.a_scale * largest;
    for (int attempt = 0; attempt < 3; attempt++) {
        if (attempt == 0) {
            for (size_t i = 0; i < s.wide; i++)
                s.g[i] = g[i] / g_scale;
        } else {
            s.rho = attempt == 1 ? 1 : OTHER_RHO;
            if (!harden(&s)) continue;
        }
        if (!solve_circle(&s)) continue;
        for (size_t i = 0; i < s.wide; i++)
            g[i] = s.g[i] * g_scale;
        return true;
    }
    return false;
}

// ---------------------------------------------------------------- iterative

int32_t usi_rigid_iterative(int32_t n_point, const double *A, const double *b, const double *mu, double *g,
                            int32_t max_sweep, double tol) {
    const size_t wide = 3 * (size_t)n_point;
    int32_t sweep = 0;
    while (sweep < max_sweep) {
        double most = 0;
        for (size_t p = 0; p < (size_t)n_point; p++) {
            const double *D = A + 3 * p * wide + 3 * p;
            double K[6] = {D[0], D[1], D[2], D[wide + 1], D[wide + 2], D[2 * wide + 2]}, e[3], next[3],
                   *own = g + 3 * p;
            if (!(K[0] > 0)) continue;  // between two bodies that cannot move
            for (size_t r = 0; r < 3; r++) {
                const double *row = A + (3 * p + r) * wide;
                e[r] = b[3 * p + r];
                for (size_t k = 0; k < wide; k++)
                    e[r] += row[k] * g[k];
            }
            usi_local local;
            if (!(mu[p] > 0)) {
                double change = -e[0] / K[0];
                next[0] = own[0] + change > 0 ? own[0] + change : 0;
                next[1] = next[2] = 0;
            } else {
                double most_mu = mu[p] < 1e8 ? mu[p] : 1e8;
                if (!usi_local_set(&local, K, most_mu)) {
                    // One direction cannot move: a little compliance there.
                    double soft = COMPLIANCE * (K[0] + K[3] + K[5]);
                    K[3] += soft;
                    K[5] += soft;
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
