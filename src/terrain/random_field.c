// Normal random fields of a prescribed covariance, exact: circulant embedding (Dietrich and Newsam; Wood and
// Chan).
//
// A covariance that is laid on a torus at least twice as large as the field is a circulant: its eigenvectors
// are waves, and its eigenvalues the Fourier transform of its first row. A field on the torus is then the sum
// of those waves with independent normal amplitudes, each as strong as its eigenvalue; inside a window of
// half the torus no place meets its own image, and the covariance is exactly the one prescribed.
//
//       +----------------+  window n_x x n_y, torus m_x x m_y >= 2 n, powers of two
//       |        |       |
//       | window |       |  eigenvalues: the covariance is even in x and y. Two rows, one as the real and one
//       |________|       |  as the imaginary part, take one transform, and a quarter of the torus says all.
//       |                |
//       +----------------+  field: it is real. Half of the waves say all, and two of its rows come out of
//                           one transform.
//
// Eigenvalues below 0 mean that no field has such a covariance on this torus. A larger torus helps where the
// covariance has not died away at its edge; where it does not help, they are set to 0, the rest is scaled to
// the same variance, and us_random_field_info.clipped reports how much that was.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/random.h"
#include "math/v4_functions.h"
#include "terrain/fft.h"
#include "terrain/random_field.h"

enum { N_ENLARGE = 3 };                      // how often a torus is doubled, at most
static const double NEGATIVE = 1e-12;        // over the maximum eigenvalue: less is rounding
static const double DIED_AWAY = 1e-3;        // covariance at the torus' far side
static const int64_t MAX_TORUS = 1ll << 29;  // nodes of a torus: 8.6 GB of memory

// A slow covariance is evaluated exactly within EXACT_NODES nodes, and interpolated beyond that between
// TABLE_STEPS values to a node.
enum { EXACT_NODES = 64, TABLE_STEPS = 16 };

typedef struct embedding {
    const us_field_def *def;
    int32_t m_x, m_y, half_x, half_y;  // of the torus; m / 2 + 1
    usi_fft fft_x, fft_y;
    double *eigen;        // half_y x half_x
    usi_complex4 **work;  // two arrays for each thread
    double scale;         // of eigenvalues
    double *table;        // of a slow covariance
    int32_t n_table;
    double *waves;  // n_y x half_x, real and imaginary parts interleaved
    double *out;
} embedding;

// ---------------------------------------------------------------- random numbers

// Normal pairs by Box and Muller. The angle lies within half a circle; a spare bit of the other uniform
// number chooses the half.
usi_normal_pairs usi_field_normals(uint64_t key, uint64_t place) {
    usi_normal_pairs out;
    usi_v4 u, angle, sign, s, c;
    for (uint64_t l = 0; l < 4; l++) {
        uint64_t bits = usi_random_bits(key, 2 * (place + l));
        u[l] = 1 - (double)(bits >> 11) * 0x1p-53;
        sign[l] = bits & 1 ? -1 : 1;
        angle[l] = M_PI * (usi_random_uniform(key, 2 * (place + l) + 1) - 0.5);
    }
    usi_v4_sin_cos(angle, &s, &c);
    usi_v4 r = sign * usi_v4_sqrt(-2 * usi_v4_log(u));
    *(usi_v4 *)out.a = r * c;
    *(usi_v4 *)out.b = r * s;
    return out;
}

// ---------------------------------------------------------------- eigenvalues

// The covariances of a row, x = 0 .. half_x - 1.
static void covariance_row(const embedding *k, int32_t y, double *out) {
    const us_field_def *def = k->def;
    double y2 = (double)y * y;
    for (int32_t x = 0; x < k->half_x; x += 4) {
        usi_v4 node = {x, x + 1, x + 2, x + 3}, r = usi_v4_sqrt(node * node + y2), value;
        usi_v4 ratio = r * (def->spacing / def->length);
        int32_t n = k->half_x - x < 4 ? k->half_x - x : 4;
        if (def->covariance == US_COVARIANCE_EXPONENTIAL) {
            value = usi_v4_exp(usi_v4_max(-ratio, usi_v4_all(-700)));
        } else if (def->covariance == US_COVARIANCE_GAUSSIAN) {
            value = usi_v4_exp(usi_v4_max(-ratio * ratio, usi_v4_all(-700)));
        } else {
            value = usi_v4_zero();
            for (int l = 0; l < n; l++) {
                if (k->table && r[l] >= (double)EXACT_NODES) {
                    // Cubic interpolation; so far out the covariance is smooth.
                    double at = (r[l] - (double)EXACT_NODES) * (double)TABLE_STEPS + 1, d;
                    int32_t i = (int32_t)at;
                    const double *f = k->table + i;
                    d = at - i;
                    value[l] = f[0] + d * (0.5 * (f[1] - f[-1]) +
                                           d * (f[-1] - 2.5 * f[0] + 2 * f[1] - 0.5 * f[2] +
                                                d * (0.5 * (f[2] - f[-1]) + 1.5 * (f[0] - f[1]))));
                } else {
                    value[l] = usi_covariance_share(def, r[l] * def->spacing);
                }
            }
        }
        for (int l = 0; l < n; l++)
            out[x + l] = value[l];
    }
}

// Transforms eight rows at once: two even rows, one real and one imaginary, keep apart in one transform.
static void transform_rows(void *context, int32_t batch, int32_t thread) {
    embedding *k = context;
    usi_complex4 *x = k->work[2 * thread], *work = k->work[2 * thread + 1];
    int32_t first = 8 * batch;
    for (int32_t i = 0; i < 8; i++) {
        if (first + i < k->half_y)
            covariance_row(k, first + i, k->eigen + (size_t)(first + i) * (size_t)k->half_x);
    }
    for (int32_t i = 0; i < k->m_x; i++) {
        size_t at = (size_t)(i < k->half_x ? i : k->m_x - i);
        for (int32_t l = 0; l < 4; l++) {
            int32_t row = first + 2 * l;
            x[i].re[l] = row < k->half_y ? k->eigen[(size_t)row * (size_t)k->half_x + at] : 0;
            x[i].im[l] = row + 1 < k->half_y ? k->eigen[(size_t)(row + 1) * (size_t)k->half_x + at] : 0;
        }
    }
    x = usi_fft_run(&k->fft_x, x, work);
    for (int32_t l = 0; l < 8; l++) {
        if (first + l >= k->half_y) break;
        double *row = k->eigen + (size_t)(first + l) * (size_t)k->half_x;
        for (int32_t i = 0; i < k->half_x; i++)
            row[i] = l % 2 ? x[i].im[l / 2] : x[i].re[l / 2];
    }
}

static void transform_columns(void *context, int32_t batch, int32_t thread) {
    embedding *k = context;
    usi_complex4 *x = k->work[2 * thread], *work = k->work[2 * thread + 1];
    int32_t first = 8 * batch, n = k->half_x - first < 8 ? k->half_x - first : 8;
    for (int32_t j = 0; j < k->m_y; j++) {
        const double *row = k->eigen + (size_t)(j < k->half_y ? j : k->m_y - j) * (size_t)k->half_x + first;
        for (int32_t l = 0; l < 4; l++) {
            x[j].re[l] = 2 * l < n ? row[2 * l] : 0;
            x[j].im[l] = 2 * l + 1 < n ? row[2 * l + 1] : 0;
        }
    }
    x = usi_fft_run(&k->fft_y, x, work);
    for (int32_t j = 0; j < k->half_y; j++) {
        double *row = k->eigen + (size_t)j * (size_t)k->half_x + first;
        for (int32_t l = 0; l < n; l++)
            row[l] = l % 2 ? x[j].im[l / 2] : x[j].re[l / 2];
    }
}

// Sets negative eigenvalues to 0. The sums count each eigenvalue as often as it occurs on the torus.
static void clip(embedding *k, us_random_field_info *info) {
    double all = 0, kept = 0, min = INFINITY, max = 0;
    for (int32_t j = 0; j < k->half_y; j++) {
        double row_all = 0, row_kept = 0;
        for (int32_t i = 0; i < k->half_x; i++) {
            double *e = k->eigen + (size_t)j * (size_t)k->half_x + i,
                   n = i == 0 || i == k->half_x - 1 ? 1 : 2;
            min = *e < min ? *e : min;
            max = *e > max ? *e : max;
            row_all += n * *e;
            *e = *e > 0 ? *e : 0;
            row_kept += n * *e;
        }
        double n = j == 0 || j == k->half_y - 1 ? 1 : 2;
        all += n * row_all;
        kept += n * row_kept;
    }
    info->min_eigenvalue = min / max;
    info->clipped = min < -NEGATIVE * max ? 1 - all / kept : 0;
    k->scale = k->def->variance / ((double)k->m_x * k->m_y) * (info->clipped > 0 ? all / kept : 1);
}

// ---------------------------------------------------------------- the field

// Sums the waves of four kx: amplitudes along ky, and their sum at the rows of the window.
static void sum_columns(void *context, int32_t batch, int32_t thread) {
    embedding *k = context;
    const us_field_def *def = k->def;
    usi_complex4 *x = k->work[2 * thread], *work = k->work[2 * thread + 1];
    int32_t first = 4 * batch, n = k->half_x - first < 4 ? k->half_x - first : 4;
    uint64_t key = usi_random_key(def->seed, def->stream);
    for (int32_t j = 0; j < k->m_y; j++) {
        const double *row = k->eigen + (size_t)(j < k->half_y ? j : k->m_y - j) * (size_t)k->half_x + first;
        usi_normal_pairs z = usi_field_normals(key, (uint64_t)j * (uint64_t)(k->m_x + 4) + (uint64_t)first);
        usi_v4 e = usi_v4_zero();
        for (int32_t l = 0; l < n; l++)
            e[l] = row[l];
        e = usi_v4_sqrt(e * (0.5 * k->scale));
        x[j] = (usi_complex4){e * *(usi_v4 *)z.a, e * *(usi_v4 *)z.b};
    }
    // The first and the last kx are their own mirror images: there the amplitude at -ky is the conjugate of
    // that at ky, and real at its own mirror.
    for (int32_t l = 0; l < n; l++) {
        if (first + l != 0 && first + l != k->half_x - 1) continue;
        for (int32_t j = 0; j < k->half_y; j++) {
            int32_t mirror = (k->m_y - j) % k->m_y;
            if (mirror == j) {
                x[j].re[l] *= M_SQRT2;
                x[j].im[l] = 0;
            } else {
                x[mirror].re[l] = x[j].re[l];
                x[mirror].im[l] = -x[j].im[l];
            }
        }
    }
    x = usi_fft_run(&k->fft_y, x, work);
    for (int32_t j = 0; j < def->n_y; j++) {
        double *to = k->waves + 2 * ((size_t)j * (size_t)k->half_x + (size_t)first);
        for (int32_t l = 0; l < n; l++) {
            to[2 * l] = x[j].re[l];
            to[2 * l + 1] = x[j].im[l];
        }
    }
}

// Sums eight rows of the window: row A as the real and row B as the imaginary part of one transform.
static void sum_rows(void *context, int32_t batch, int32_t thread) {
    embedding *k = context;
    const us_field_def *def = k->def;
    usi_complex4 *x = k->work[2 * thread], *work = k->work[2 * thread + 1];
    int32_t first = 8 * batch;
    for (int32_t i = 0; i < k->m_x; i++) {
        size_t at = 2 * (size_t)(i < k->half_x ? i : k->m_x - i);
        double sign = i < k->half_x ? 1 : -1;
        for (int32_t l = 0; l < 4; l++) {
            int32_t a = first + 2 * l, b = a + 1;
            const double *wave_a = k->waves + 2 * (size_t)a * (size_t)k->half_x + at,
                         *wave_b = wave_a + 2 * (size_t)k->half_x;
            double re_a = 0, im_a = 0, re_b = 0, im_b = 0;
            if (a < def->n_y) {
                re_a = wave_a[0];
                im_a = sign * wave_a[1];
            }
            if (b < def->n_y) {
                re_b = wave_b[0];
                im_b = sign * wave_b[1];
            }
            x[i].re[l] = re_a - im_b;
            x[i].im[l] = im_a + re_b;
        }
    }
    x = usi_fft_run(&k->fft_x, x, work);
    for (int32_t l = 0; l < 8; l++) {
        if (first + l >= def->n_y) break;
        double *to = k->out + (size_t)(first + l) * (size_t)def->n_x;
        for (int32_t i = 0; i < def->n_x; i++)
            to[i] = def->mean + (l % 2 ? x[i].im[l / 2] : x[i].re[l / 2]);
    }
}

// ---------------------------------------------------------------- memory and order

static int32_t power_of_two(int64_t min) {
    int64_t m = 8;
    while (m < min)
        m *= 2;
    return m > MAX_TORUS ? 0 : (int32_t)m;
}

// Allocates one attempt in an arena; false without memory.
static bool prepare(embedding *k, usi_arena *arena, int32_t n_thread) {
    const us_field_def *def = k->def;
    int32_t longest = k->m_x > k->m_y ? k->m_x : k->m_y;
    k->half_x = k->m_x / 2 + 1;
    k->half_y = k->m_y / 2 + 1;
    void *root_x = usi_arena_alloc(arena, usi_fft_size(k->m_x), 32),
         *root_y = usi_arena_alloc(arena, usi_fft_size(k->m_y), 32);
    k->eigen = usi_arena_alloc(arena, sizeof(double) * (size_t)k->half_x * (size_t)k->half_y, 32);
    k->waves = usi_arena_alloc(arena, 2 * sizeof(double) * (size_t)k->half_x * (size_t)def->n_y, 32);
    k->work = usi_arena_alloc(arena, sizeof(usi_complex4 *) * 2 * (size_t)n_thread, 8);
    if (!root_x || !root_y || !k->eigen || !k->waves || !k->work) return false;
    for (int32_t i = 0; i < 2 * n_thread; i++) {
        k->work[i] = usi_arena_alloc(arena, sizeof(usi_complex4) * (size_t)longest, 64);
        if (!k->work[i]) return false;
    }
    k->fft_x = usi_fft_make(k->m_x, root_x);
    k->fft_y = usi_fft_make(k->m_y, root_y);
    k->table = NULL;
    if (!usi_covariance_is_slow(def)) return true;
    double farthest = sqrt((double)k->half_x * k->half_x + (double)k->half_y * k->half_y);
    k->n_table = (int32_t)(fmax(farthest - (double)EXACT_NODES, 0) * (double)TABLE_STEPS) + 5;
    k->table = usi_arena_alloc(arena, sizeof(double) * (size_t)k->n_table, 8);
    if (!k->table) return false;
    for (int32_t i = 0; i < k->n_table; i++)
        k->table[i] =
            usi_covariance_share(def, ((double)EXACT_NODES + (i - 1.0) / (double)TABLE_STEPS) * def->spacing);
    return true;
}

static us_status embed(const us_field_def *def, usi_pool *pool, double *out, us_random_field_info *info,
                       us_error *err) {
    embedding k = {.def = def};
    k.out = out;
    k.m_x = power_of_two(2 * (int64_t)def->n_x);
    k.m_y = power_of_two(2 * (int64_t)def->n_y);
    // The covariance should have died away half way round.
    for (int i = 0; i < 2; i++) {
        if (usi_covariance_share(def, 0.5 * k.m_x * def->spacing) > DIED_AWAY) k.m_x *= 2;
        if (usi_covariance_share(def, 0.5 * k.m_y * def->spacing) > DIED_AWAY) k.m_y *= 2;
    }
    while ((int64_t)k.m_x * k.m_y > MAX_TORUS && k.m_x >= 4 * (int64_t)def->n_x) {
        k.m_x /= 2;
        k.m_y /= 2;
    }
    usi_arena arena;
    for (int attempt = 0;; attempt++) {
        usi_arena_init(&arena, &def->allocator);
        if ((int64_t)k.m_x * k.m_y > MAX_TORUS || !prepare(&k, &arena, usi_pool_n_thread(pool))) {
            usi_arena_fini(&arena);
            return us_error_set(err, US_ERR_MEMORY, NULL, "make smaller fields, or tiles",
                                "no memory for a torus of %d x %d nodes", (int)k.m_x, (int)k.m_y);
        }
        usi_pool_run(pool, (k.half_y + 7) / 8, 1, transform_rows, &k);
        usi_pool_run(pool, (k.half_x + 7) / 8, 1, transform_columns, &k);
        *info = (us_random_field_info){.m_x = k.m_x, .m_y = k.m_y};
        clip(&k, info);
        if (info->clipped == 0 || attempt == N_ENLARGE || 4 * (int64_t)k.m_x * k.m_y > MAX_TORUS) break;
        usi_arena_fini(&arena);
        k.m_x *= 2;
        k.m_y *= 2;
    }
    usi_pool_run(pool, (k.half_x + 3) / 4, 1, sum_columns, &k);
    usi_pool_run(pool, (def->n_y + 7) / 8, 1, sum_rows, &k);
    usi_arena_fini(&arena);
    return US_OK;
}

// Makes the whole field at once, of a definition that was checked.
static us_status make_whole(const us_field_def *def, usi_pool *pool, double *out, us_random_field_info *info,
                            us_error *err) {
    return def->method == US_FIELD_OUTER ? usi_field_outer(def, out, info, err)
                                         : embed(def, pool, out, info, err);
}

// ---------------------------------------------------------------- mean and deviation of each node

static bool is_varied(const us_field_def *def) { return def->mean_at || def->deviation_at; }

// The field that is made before each node gets its own mean and deviation.
static us_field_def plain_field(const us_field_def *def) {
    us_field_def plain = *def;
    plain.mean_at = plain.deviation_at = NULL;
    plain.mean = 0;
    if (def->deviation_at) plain.variance = 1;
    return plain;
}

// `out` may be the values of the part.
static us_status vary(const us_field_def *def, const us_field_part *part, double *out, us_error *err) {
    for (int32_t j = 0; j < part->n_y; j++) {
        for (int32_t i = 0; i < part->n_x; i++) {
            const size_t k = (size_t)j * (size_t)part->stride + (size_t)i;
            const double x = ((double)part->x + i) * def->spacing, y = ((double)part->y + j) * def->spacing;
            const double mean = def->mean_at ? def->mean_at(def->mean_context, x, y) : def->mean,
                         deviation = def->deviation_at ? def->deviation_at(def->deviation_context, x, y) : 1;
            if (!isfinite(mean) || !(deviation >= 0) || !isfinite(deviation))
                return us_error_set(
                    err, US_ERR_VALUE, NULL, "give a finite mean and a deviation of 0 or more for each place",
                    "at %g m east and %g m north of the south-west corner: mean %g, deviation %g", x, y, mean,
                    deviation);
            out[k] = mean + deviation * part->values[k];
        }
    }
    return US_OK;
}

typedef struct varied_visit {
    const us_field_def *def;
    us_field_visit visit;
    void *context;
} varied_visit;

static us_status visit_varied(void *context, const us_field_part *part, us_error *err) {
    const varied_visit *v = context;
    const size_t bytes = sizeof(double) * (size_t)part->stride * (size_t)part->n_y;
    double *values = usi_alloc(&v->def->allocator, bytes, 64);
    if (!values) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a part of a field");
    us_field_part varied = *part;
    varied.values = values;
    us_status status = vary(v->def, part, values, err);
    if (status == US_OK) status = v->visit(v->context, &varied, err);
    usi_release(&v->def->allocator, values, bytes, 64);
    return status;
}

// ---------------------------------------------------------------- fields

us_status us_field_visit_parts(const us_field_def *def, us_field_visit visit, void *context,
                               us_random_field_info *out_info, us_error *err) {
    us_random_field_info info = {0};
    if (!def || !visit)
        return us_error_set(err, US_ERR_ARG, NULL, "give a definition and a function",
                            "an argument is missing");
    us_status status = usi_field_check(def, err);
    if (status != US_OK) return status;
    if (is_varied(def)) {
        const us_field_def plain = plain_field(def);
        varied_visit v = {def, visit, context};
        return us_field_visit_parts(&plain, visit_varied, &v, out_info, err);
    }
    usi_pool *pool = NULL;
    status = usi_pool_create(def->n_thread < 1 ? 1 : def->n_thread, &def->allocator, &pool);
    if (status != US_OK) return us_error_set(err, status, NULL, NULL, "no memory for threads");
    if (def->method == US_FIELD_PATCH) {
        status = usi_field_patches(def, pool, visit, context, &info, err);
    } else {
        size_t size = sizeof(double) * (size_t)def->n_x * (size_t)def->n_y;
        double *values = usi_alloc(&def->allocator, size, 64);
        if (values) {
            us_field_part part = {.n_x = def->n_x, .n_y = def->n_y, .stride = def->n_x, .values = values};
            status = make_whole(def, pool, values, &info, err);
            if (status == US_OK) status = visit(context, &part, err);
        } else {
            status = us_error_set(err, US_ERR_MEMORY, NULL, "make it in patches",
                                  "no memory for %d x %d nodes", (int)def->n_x, (int)def->n_y);
        }
        usi_release(&def->allocator, values, size, 64);
    }
    usi_pool_destroy(pool);
    if (status == US_OK && out_info) *out_info = info;
    return status;
}

typedef struct field_copy {
    double *out;
    int32_t n_x;
} field_copy;

static us_status put_part(void *context, const us_field_part *part, us_error *err) {
    (void)err;
    const field_copy *s = context;
    for (int32_t j = 0; j < part->n_y; j++)
        memcpy(s->out + (size_t)(part->y + j) * (size_t)s->n_x + part->x,
               part->values + (size_t)j * (size_t)part->stride, sizeof(double) * (size_t)part->n_x);
    return US_OK;
}

us_status us_field_make(const us_field_def *def, double *out, us_random_field_info *out_info, us_error *err) {
    us_random_field_info info = {0};
    if (!def || !out)
        return us_error_set(err, US_ERR_ARG, NULL, "give a definition and a place for the result",
                            "an argument is missing");
    if (def->method == US_FIELD_PATCH)
        return us_field_visit_parts(def, put_part, &(field_copy){out, def->n_x}, out_info, err);
    us_status status = usi_field_check(def, err);
    if (status != US_OK) return status;
    if (is_varied(def)) {
        const us_field_def plain = plain_field(def);
        const us_field_part whole = {.n_x = def->n_x, .n_y = def->n_y, .stride = def->n_x, .values = out};
        status = us_field_make(&plain, out, out_info, err);
        return status == US_OK ? vary(def, &whole, out, err) : status;
    }
    usi_pool *pool = NULL;
    status = usi_pool_create(def->n_thread < 1 ? 1 : def->n_thread, &def->allocator, &pool);
    if (status == US_OK) status = make_whole(def, pool, out, &info, err);
    usi_pool_destroy(pool);
    if (status == US_OK && out_info) *out_info = info;
    return status;
}
