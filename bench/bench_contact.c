// Speed of the contact solvers on rows made by hand: Gauss-Seidel on a pile of 1000 boxes, the rigid solvers
// on stacks.
//
// Every round does the same work and ends in the same hash; the first one only warms up. Times are CPU time
// of the thread. The exit code says whether everything ran and repeated itself, never how fast.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "contact/contact.h"

enum { SIDE = 10, LAYERS = 10, BOXES = SIDE * SIDE * LAYERS, POINTS = 4 * BOXES, SWEEPS = 10 };

static const double STEP = 1e-3;

// ---------------------------------------------------------------- a pile

typedef struct pile {
    usi_free *body;
    usi_block *start, *block;
    void *work;
    int32_t n_body, n_block, n_sweep;
} pile;

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(31, stream, i);
}

static void set_point(usi_block *k, int32_t a, int32_t b, us_vec3 p, uint64_t i) {
    us_vec3 n = us_vec3_make(uniform(1, i, -0.05, 0.05), uniform(2, i, -0.05, 0.05), 1);
    n = us_vec3_scale(1 / us_vec3_norm(n), n);
    us_quat q = us_quat_from_z(n);
    us_vec3 d[3] = {n, us_quat_rotate(q, us_vec3_make(1, 0, 0)), us_quat_rotate(q, us_vec3_make(0, 1, 0))};
    memset(k, 0, sizeof *k);
    k->law = USI_POINT;
    k->n = 3;
    k->a = a;
    k->b_ = b;
    k->point = -1;
    k->mu = 0.5;
    double stiffness = 1e6, damping = 2000;
    for (int r = 0; r < 3; r++) {
        k->d[r] = usi_v4_from(d[r]);
        k->m[r] = usi_v4_from(us_vec3_cross(p, d[r]));
        k->R[r] = 1 / (STEP * STEP * stiffness + STEP * damping);
    }
    k->K[0] = k->K[1] = 1 / k->R[0];
    k->b[0] = uniform(3, i, -0.02, 0.002);
    k->b[1] = uniform(4, i, -0.003, 0.003);
    k->b[2] = uniform(5, i, -0.003, 0.003);
}

// Layers of boxes 0.1 m apart, every second layer half a box aside, so that each box stands on two, on two
// points each.
static bool make_pile(pile *s) {
    size_t bytes = usi_gauss_seidel_bytes(BOXES, POINTS);
    s->body = aligned_alloc(64, BOXES * sizeof *s->body);
    s->start = aligned_alloc(64, POINTS * sizeof *s->start);
    s->block = aligned_alloc(64, POINTS * sizeof *s->block);
    s->work = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!s->body || !s->start || !s->block || !s->work) return false;
    s->n_body = BOXES;
    s->n_block = 0;
    memset(s->body, 0, BOXES * sizeof *s->body);
    for (int32_t i = 0; i < BOXES; i++) {
        int32_t layer = i / (SIDE * SIDE), y = i / SIDE % SIDE, x = i % SIDE;
        double shift = layer % 2 ? 0.05 : 0, half = 0.05, I = 1.0 / 600;
        us_vec3 at = us_vec3_make(0.1 * x + shift, 0.1 * y, 0.1 * layer);
        usi_free *b = &s->body[i];
        for (int r = 0; r < 3; r++)
            b->inv_I[r][r] = 1 / I;
        b->c = usi_v4_from(at);
        b->c[3] = 1;
        b->fv = usi_v4_set(0, 0, -9.81 * STEP);
        for (int c = 0; c < 4; c++) {
            us_vec3 p = us_vec3_add(at, us_vec3_make(c & 1 ? half : -half, c & 2 ? half : -half, -half));
            int32_t under = x + (layer % 2 ? c & 1 : (c & 1) - 1), below = -1;
            if (layer > 0 && under >= 0 && under < SIDE) below = (layer - 1) * SIDE * SIDE + y * SIDE + under;
            set_point(&s->start[s->n_block], i, below, p, (uint64_t)s->n_block);
            s->n_block++;
        }
    }
    return true;
}
static void free_pile(pile *s) {
    free(s->body);
    free(s->start);
    free(s->block);
    free(s->work);
}

static uint64_t run_pile(void *self) {
    pile *s = self;
    memcpy(s->block, s->start, (size_t)s->n_block * sizeof *s->block);
    usi_gauss_seidel(s->body, s->n_body, s->block, s->n_block, s->n_sweep, s->n_sweep, 0, s->work);
    return us_hash_bytes(1, s->body, (size_t)s->n_body * sizeof *s->body);
}

// ---------------------------------------------------------------- rigid stacks

typedef struct stack {
    int32_t n_point;
    bool is_direct;
    double *A, *b, *mu, *g, *work;
} stack;

// n_point / 4 boxes of 1 kg on each other, pushed sideways a little.
static bool make_stack(stack *s, int32_t n_point, bool is_direct) {
    size_t n = 3 * (size_t)n_point;
    *s = (stack){.n_point = n_point, .is_direct = is_direct};
    s->A = calloc(n * n, sizeof *s->A);
    s->b = calloc(n, sizeof *s->b);
    s->mu = calloc(n, sizeof *s->mu);
    s->g = calloc(n, sizeof *s->g);
    s->work = malloc(usi_rigid_work(n_point) * sizeof *s->work);
    if (!s->A || !s->b || !s->mu || !s->g || !s->work) return false;
    for (size_t i = 0; i < n; i++) {
        size_t box = i / 12, row = i % 3;
        s->mu[i / 3] = 0.4;
        s->b[i] = box > 0 ? 0 : row == 0 ? -0.00981 : row == 1 ? 0.002 : 0;
        for (size_t j = 0; j < n; j++) {
            size_t other = j / 12;
            // A box takes part in the points under it (as A) and in those of the box above (as B).
            for (size_t k = 0; k < n / 12; k++) {
                double sign = ((box == k) - (box == k + 1)) * ((other == k) - (other == k + 1)), I = 600;
                if (sign == 0) continue;
                us_vec3 d[3] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}};
                us_vec3 p = {i / 3 % 2 ? 0.05 : -0.05, i / 6 % 2 ? 0.05 : -0.05, box == k ? -0.05 : 0.05};
                us_vec3 q = {j / 3 % 2 ? 0.05 : -0.05, j / 6 % 2 ? 0.05 : -0.05, other == k ? -0.05 : 0.05};
                us_vec3 mp = us_vec3_cross(p, d[row]), mq = us_vec3_cross(q, d[j % 3]);
                s->A[i * n + j] += sign * (us_vec3_dot(d[row], d[j % 3]) + I * us_vec3_dot(mp, mq));
            }
        }
    }
    return true;
}
static void free_stack(stack *s) {
    free(s->A);
    free(s->b);
    free(s->mu);
    free(s->g);
    free(s->work);
}

static uint64_t run_stack(void *self) {
    stack *s = self;
    size_t n = 3 * (size_t)s->n_point;
    memset(s->g, 0, n * sizeof *s->g);
    if (s->is_direct) {
        if (!usi_rigid_direct(s->n_point, s->A, s->b, s->mu, s->g, s->work)) return 0;
    } else {
        usi_rigid_iterative(s->n_point, s->A, s->b, s->mu, s->g, 50, 0);
    }
    return us_hash_bytes(1, s->g, n * sizeof *s->g);
}

// ---------------------------------------------------------------- figures

typedef struct options {
    bool is_json;
    int n_round;
} options;

// Runs `run` n_round times after one for warming up; the times are divided by `per`.
static bool measure(const char *name, const char *metric, uint64_t (*run)(void *), void *self, double per,
                    const options *o, double *out_median) {
    bench_samples samples = {0};
    uint64_t hash = 0;
    for (int round = 0; round <= o->n_round; round++) {
        double start = bench_cpu_now();
        uint64_t result = run(self);
        double ns = (bench_cpu_now() - start) / per * 1e9;
        if (result == 0 || (round > 0 && result != hash)) {
            fprintf(stderr, "%s, %s: %s\n", name, metric, result ? "two rounds differ" : "failed");
            return false;
        }
        hash = result;
        if (round > 0) bench_add(&samples, ns);
    }
    *out_median = bench_median(&samples);
    if (o->is_json) {
        bench_figure f = {name, "understudy", "contact", metric, "ns", &samples, NAN, NAN, hash, NULL};
        bench_print_json(&f);
    } else {
        printf("%-20s %-34s %11.1f ns  (%.1f .. %.1f)  %016" PRIx64 "\n", name, metric,
               bench_median(&samples), bench_min(&samples), bench_max(&samples), hash);
    }
    return true;
}

int main(int argc, char **argv) {
    options o = {false, 15};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            o.is_json = true;
        } else if (!strcmp(argv[i], "--rounds") && i + 1 < argc) {
            o.n_round = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--full") != 0) {
            fprintf(stderr, "usage: bench_contact [--json] [--rounds N] [--full]\n");
            return 2;
        }
    }
    if (o.n_round < 1 || o.n_round > BENCH_MAX_ROUNDS) o.n_round = 15;

    bool is_fine = true;
    double rows = 0, all = 0;
    pile p = {0};
    if (!make_pile(&p)) return 1;
    p.n_sweep = 0;
    is_fine &= measure("pile-1000", "rows, per point", run_pile, &p, p.n_block, &o, &rows);
    p.n_sweep = SWEEPS;
    is_fine &= measure("pile-1000", "rows and 10 sweeps, per point", run_pile, &p, p.n_block, &o, &all);
    if (!o.is_json) printf("%-20s %-34s %11.1f ns\n", "pile-1000", "a visit", (all - rows) / SWEEPS);
    free_pile(&p);

    static const int32_t sizes[] = {4, 8, 16, 32, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int is_direct = 1; is_direct >= 0; is_direct--) {
            stack s;
            char name[32];
            double median = 0;
            snprintf(name, sizeof name, "rigid-%d", (int)sizes[i]);
            if (make_stack(&s, sizes[i], is_direct != 0)) {
                is_fine &= measure(name, is_direct ? "direct, a solve" : "iterative, 50 sweeps", run_stack,
                                   &s, 1, &o, &median);
            } else {
                is_fine = false;
            }
            free_stack(&s);
        }
    }
    return is_fine ? 0 : 1;
}
