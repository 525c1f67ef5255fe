// Random fields of any size, patch by patch: a pyramid of moving averages of white noise.
//
// One torus for a site of 20 km at 1 m would be 2^31 nodes. Here the field is a sum over levels, each with
// half as many nodes each way as the one below, and each with its own band of the spectrum
// (random_patch_level.c). A level is white noise, a function of seed, level and node alone, under a moving
// average of bounded reach; so any patch of it can be made by itself, from the noise in it and in a halo
// around it:
//
//     +---------------------------+    torus 1024 x 1024: noise
//     |   halo                    |    transform, gain, transform back
//     |   +-------------------+   |
//     |   | margin            |   |    what the halo of 112 nodes leaves is right: 800 x 800
//     |   |   +-----------+   |   |
//     |   |   | own       |   |   |    the patch owns 768 x 768 = 3 x 3 tiles of it;
//     |   |   +-----------+   |   |    the margin is for the patches of the finer level, which lie within
//     |   +-------------------+   |    the quarters of this one
//     +---------------------------+
//
// The sum of the coarser levels is interpolated by 16 values of a windowed sinc each way: twice as many nodes
// as its waves need leave an error of 1e-5. Every node of the field belongs to one patch, and the value there
// depends on nothing but the definition: not on the order, the threads, or which other patches are made.
// Memory is two patches for each level. The gain is real and even, so that the noise of two neighbours, one
// as the real and one as the imaginary part, takes one transform.
#include "terrain/random_patch.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

enum {
    M = USI_PATCH_TORUS,
    // Four columns to an element; one more, so that rows do not share cache sets.
    ROW = M / 4 + 1,
    SPAN = USI_PATCH_SPAN,
    TAPS = 16,
    COARSE = SPAN / 2 + TAPS - 1,  // rows of the coarser level under a patch
    HALF_NODES = 1 << 30           // added to coordinates, which may be negative
};
static const double DIED_AWAY = 1e-3;
static const uint64_t STREAM = 0x7061746368;  // beside the streams of whole fields

typedef struct patch_task {
    usi_pyramid *p;
    int32_t level, u, v;
    const double *parent, *taps;
    double *out;
    int32_t parent_x, parent_y;  // where in the parent the first column and row of `between` lie
} patch_task;

static inline usi_v4 pick(usi_v4 a, usi_v4 b, usi_v4 c, usi_v4 d, int l) {
    return (usi_v4){a[l], b[l], c[l], d[l]};
}

// ---------------------------------------------------------------- the moving average

// Makes four rows of noise, and transforms them along x.
static void noise_rows(void *context, int32_t batch, int32_t thread) {
    const patch_task *t = context;
    const usi_pyramid *p = t->p;
    usi_complex4 *x = p->work[2 * thread], *work = p->work[2 * thread + 1];
    const int32_t first = -USI_PATCH_MARGIN - USI_PATCH_HALO;
    uint64_t key = usi_random_key(p->def->seed, p->def->stream + STREAM + (uint64_t)t->level);
    bool is_pair = t->level < p->n_level - 1;
    for (int32_t l = 0; l < 4; l++) {
        uint64_t y = (uint64_t)(HALF_NODES + (int64_t)t->v * USI_PATCH_OWN + first + 4 * batch + l);
        for (int32_t which = 0; which < 2; which++) {
            uint64_t place =
                y << 30 | (uint64_t)(HALF_NODES + (int64_t)(t->u + which) * USI_PATCH_OWN + first) >> 1;
            for (int32_t i = 0; i < M; i += 8, place += 4) {
                usi_normal_pairs z = {0};
                if (which == 0 || is_pair) z = usi_field_normals(key, place);
                for (int32_t k = 0; k < 4; k++) {
                    (which ? &x[i + 2 * k].im : &x[i + 2 * k].re)[0][l] = z.a[k];
                    (which ? &x[i + 2 * k + 1].im : &x[i + 2 * k + 1].re)[0][l] = z.b[k];
                }
            }
        }
    }
    x = usi_fft_run(&p->fft, x, work);
    for (int32_t l = 0; l < 4; l++) {
        usi_complex4 *to = p->torus + (size_t)(4 * batch + l) * ROW;
        for (int32_t q = 0; q < M / 4; q++) {
            const usi_complex4 *from = x + 4 * q;
            to[q].re = pick(from[0].re, from[1].re, from[2].re, from[3].re, l);
            to[q].im = pick(from[0].im, from[1].im, from[2].im, from[3].im, l);
        }
    }
}

// Transforms four columns along y, applies the gain, and transforms back. A transform done twice gives the
// sequence backwards.
static void gain_columns(void *context, int32_t batch, int32_t thread) {
    const patch_task *t = context;
    const usi_pyramid *p = t->p;
    usi_complex4 *x = p->work[2 * thread], *work = p->work[2 * thread + 1], *column = p->torus + batch;
    for (int32_t j = 0; j < M; j++)
        x[j] = column[(size_t)j * ROW];
    usi_complex4 *y = usi_fft_run(&p->fft, x, work);
    for (int32_t j = 0; j < M; j++) {
        const double *row =
            p->level[t->level].gain + (size_t)(j < USI_PATCH_HALF ? j : M - j) * USI_PATCH_HALF;
        usi_v4 gain;
        for (int32_t l = 0; l < 4; l++) {
            int32_t k = 4 * batch + l;
            gain[l] = row[k < USI_PATCH_HALF ? k : M - k];
        }
        y[j].re *= gain;
        y[j].im *= gain;
    }
    y = usi_fft_run(&p->fft, y, y == x ? work : x);
    for (int32_t j = USI_PATCH_HALO; j < M - USI_PATCH_HALO; j++)
        column[(size_t)j * ROW] = y[M - j];
}

static void field_rows(void *context, int32_t batch, int32_t thread) {
    const patch_task *t = context;
    const usi_pyramid *p = t->p;
    usi_complex4 *x = p->work[2 * thread], *work = p->work[2 * thread + 1];
    const usi_complex4 *from = p->torus + (size_t)(USI_PATCH_HALO + 4 * batch) * ROW;
    for (int32_t q = 0; q < M / 4; q++) {
        const usi_complex4 *a = from + q, *b = a + ROW, *c = b + ROW, *d = c + ROW;
        for (int l = 0; l < 4; l++) {
            x[4 * q + l].re = pick(a->re, b->re, c->re, d->re, l);
            x[4 * q + l].im = pick(a->im, b->im, c->im, d->im, l);
        }
    }
    x = usi_fft_run(&p->fft, x, work);
    for (int32_t l = 0; l < 4; l++) {
        double *out_a = p->patch[t->level][0] + (size_t)(4 * batch + l) * SPAN,
               *out_b = p->patch[t->level][1] + (size_t)(4 * batch + l) * SPAN;
        for (int32_t i = 0; i < SPAN; i++) {
            out_a[i] = x[M - USI_PATCH_HALO - i].re[l];
            out_b[i] = x[M - USI_PATCH_HALO - i].im[l];
        }
    }
}

// ---------------------------------------------------------------- from level to level

// Interpolation half way between nodes: a sinc under Kaiser's window, whose first image lies three times as
// far as the last wave.
static void make_taps(double taps[TAPS]) {
    const double beta = 10.5;
    double all = 0;
    for (int32_t i = 0; i < TAPS; i++) {
        double at = i - 0.5 * (TAPS - 1), w = at / (0.5 * (double)TAPS), x = 0.25 * beta * beta * (1 - w * w),
               term = 1, window = 1;
        for (int32_t k = 1; k < 60; k++)
            window += term *= x / ((double)k * k);
        // sin(pi at) over at: of one sign next to the middle, then alternating.
        int32_t from_middle = i < TAPS / 2 ? TAPS / 2 - 1 - i : i - TAPS / 2;
        taps[i] = (from_middle % 2 ? -window : window) / fabs(at);
        all += taps[i];
    }
    for (int32_t i = 0; i < TAPS; i++)
        taps[i] /= all;
}

static void widen_row(void *context, int32_t j, int32_t thread) {
    (void)thread;
    const patch_task *t = context;
    const double *from = t->parent + (size_t)(t->parent_y + j) * SPAN + t->parent_x;
    double *to = t->p->between + (size_t)j * SPAN;
    for (int32_t i = 0; i < SPAN; i += 2) {
        // Node i lies on node i/2 of the coarser level, node i + 1 half way to the next.
        const double *at = from + i / 2;
        double sum = 0;
        for (int32_t k = 0; k < TAPS; k++)
            sum += t->taps[k] * at[k];
        to[i] = at[TAPS / 2 - 1];
        to[i + 1] = sum;
    }
}

static void add_row(void *context, int32_t j, int32_t thread) {
    (void)thread;
    const patch_task *t = context;
    const double *from = t->p->between + (size_t)(j / 2) * SPAN;
    double *to = t->out + (size_t)j * SPAN;
    if (j % 2 == 0) {
        for (int32_t i = 0; i < SPAN; i++)
            to[i] += from[(TAPS / 2 - 1) * SPAN + i];
        return;
    }
    for (int32_t i = 0; i < SPAN; i++) {
        double sum = 0;
        for (int32_t k = 0; k < TAPS; k++)
            sum += t->taps[k] * from[(size_t)k * SPAN + (size_t)i];
        to[i] += sum;
    }
}

void usi_patch_make(usi_pyramid *p, int32_t level, int32_t u, int32_t v, const double *parent) {
    patch_task t = {.p = p, .level = level, .u = u, .v = v, .parent = parent};
    if (p->level[level].gain) {
        usi_pool_run(p->pool, M / 4, 1, noise_rows, &t);
        usi_pool_run(p->pool, M / 4, 1, gain_columns, &t);
        usi_pool_run(p->pool, SPAN / 4, 1, field_rows, &t);
    } else {
        for (int which = 0; which < 2; which++)
            memset(p->patch[level][which], 0, sizeof(double) * SPAN * SPAN);
    }
    if (!parent) {
        // The mean, and the constant that all places have in common.
        usi_normal_pairs z =
            usi_field_normals(usi_random_key(p->def->seed, p->def->stream + STREAM + USI_PATCH_LEVELS), 0);
        double all = p->def->mean + sqrt(p->def->variance * p->level_share) * z.a[0];
        for (size_t i = 0; i < (size_t)SPAN * SPAN; i++)
            p->patch[level][0][i] += all;
        return;
    }
    double taps[TAPS];
    make_taps(taps);
    t.taps = taps;
    for (int32_t which = 0; which < 2; which++) {
        // The first column, -MARGIN of the patch, lies on -MARGIN/2 of its half of the parent; taps begin
        // TAPS/2 - 1 before it.
        const int32_t before = USI_PATCH_MARGIN - USI_PATCH_MARGIN / 2 - (TAPS / 2 - 1);
        t.parent_x = before + (u + which) % 2 * USI_PATCH_OWN / 2;
        t.parent_y = before + v % 2 * USI_PATCH_OWN / 2;
        t.out = p->patch[level][which];
        usi_pool_run(p->pool, COARSE, 8, widen_row, &t);
        usi_pool_run(p->pool, SPAN, 8, add_row, &t);
    }
}

// ---------------------------------------------------------------- the whole

us_status usi_pyramid_init(usi_pyramid *p, const us_field_def *def, usi_pool *pool, us_error *err) {
    *p = (usi_pyramid){.def = def, .pool = pool, .n_level = 2};
    int32_t longest = def->n_x > def->n_y ? def->n_x : def->n_y, n_thread = usi_pool_n_thread(pool);
    while (longest >> (p->n_level - 1) > USI_PATCH_TOP)
        p->n_level++;
    // And so many more that the covariance has died away within the torus of the last.
    while (p->n_level < USI_PATCH_LEVELS &&
           usi_covariance_share(def, ldexp(0.5 * (double)M * def->spacing, p->n_level - 1)) > DIED_AWAY)
        p->n_level++;
    usi_arena_init(&p->arena, &def->allocator);
    void *roots = usi_arena_alloc(&p->arena, usi_fft_size(M), 32);
    p->torus = usi_arena_alloc(&p->arena, sizeof *p->torus * M * ROW, 64);
    p->between = usi_arena_alloc(&p->arena, sizeof(double) * COARSE * SPAN, 64);
    p->work = usi_arena_alloc(&p->arena, sizeof(usi_complex4 *) * 2 * (size_t)n_thread, 8);
    bool is_good = roots && p->torus && p->between && p->work;
    for (int32_t i = 0; is_good && i < 2 * n_thread; i++)
        is_good = (p->work[i] = usi_arena_alloc(&p->arena, sizeof **p->work * (M + 1), 64)) != NULL;
    for (int32_t i = 0; is_good && i < 2 * p->n_level; i++)
        is_good =
            (p->patch[i / 2][i % 2] = usi_arena_alloc(&p->arena, sizeof(double) * SPAN * SPAN, 64)) != NULL;
    if (is_good) p->fft = usi_fft_make(M, roots);
    for (int32_t i = p->n_level; is_good && i-- > 0;)
        is_good = usi_level_make(p, i);
    if (is_good) return US_OK;
    usi_pyramid_fini(p);
    return us_error_set(err, US_ERR_MEMORY, NULL, "free some memory",
                        "no memory for the patches of a field of %d x %d nodes", (int)def->n_x,
                        (int)def->n_y);
}

void usi_pyramid_fini(usi_pyramid *p) { usi_arena_fini(&p->arena); }

typedef struct patch_walk {
    usi_pyramid *p;
    us_field_visit visit;
    void *context;
    us_error *err;
} patch_walk;

// Visits the field under patch (u, v) of a level, which is made: the four patches below it, two at a time.
static us_status descend(const patch_walk *w, int32_t level, int32_t u, int32_t v) {
    usi_pyramid *p = w->p;
    const us_field_def *def = p->def;
    const double *values = p->patch[level][u % 2];
    if (level == 0) {
        us_field_part part = {.x = u * USI_PATCH_OWN,
                              .y = v * USI_PATCH_OWN,
                              .n_x = USI_PATCH_OWN,
                              .n_y = USI_PATCH_OWN,
                              .stride = SPAN};
        if (part.n_x > def->n_x - part.x) part.n_x = def->n_x - part.x;
        if (part.n_y > def->n_y - part.y) part.n_y = def->n_y - part.y;
        part.values = values + (size_t)USI_PATCH_MARGIN * SPAN + USI_PATCH_MARGIN;
        return w->visit(w->context, &part, w->err);
    }
    int64_t own = (int64_t)USI_PATCH_OWN << (level - 1);
    for (int32_t j = 2 * v; j < 2 * v + 2 && j * own < def->n_y; j++) {
        usi_patch_make(p, level - 1, 2 * u, j, values);
        for (int32_t i = 2 * u; i < 2 * u + 2 && i * own < def->n_x; i++) {
            us_status status = descend(w, level - 1, i, j);
            if (status != US_OK) return status;
        }
    }
    return US_OK;
}

us_status usi_field_patches(const us_field_def *def, usi_pool *pool, us_field_visit visit, void *context,
                            us_random_field_info *info, us_error *err) {
    usi_pyramid p;
    us_status status = usi_pyramid_init(&p, def, pool, err);
    if (status != US_OK) return status;
    *info = (us_random_field_info){.m_x = M, .m_y = M};
    for (int32_t i = 0; i < p.n_level; i++)
        info->clipped += p.level[i].clipped;
    patch_walk w = {&p, visit, context, err};
    usi_patch_make(&p, p.n_level - 1, 0, 0, NULL);
    status = descend(&w, p.n_level - 1, 0, 0);
    usi_pyramid_fini(&p);
    return status;
}
