// Random fields as sums of rotated outer products, for comparison.
//
// A(x, y) = X1(x) X2(y) / sqrt(F(0)) with two independent normal sequences of covariance F has the covariance
// F(dx) F(dy) / F(0): right along its axes only. Rotated by a random angle and summed N times, divided by
// sqrt(N), it is isotropic, but its covariance at a distance r is the mean of F(r |cos t|) F(r |sin t|) /
// F(0) over all t, which is F(r) for a Gaussian F alone. Of one product the kurtosis is 9, of N it is 3 +
// 6/N.
//
// Each sequence comes from a circulant in one dimension, four samples to a node, so that reading between them
// loses next to nothing.
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "math/v4_functions.h"
#include "terrain/fft.h"
#include "terrain/random_field.h"

enum { FINE = 4 };

// Random sequences, one pair per lane as independent real and imaginary parts, of which the first half is
// free of wrap-around.
static const usi_complex4 *sequences(const us_field_def *def, const usi_fft *fft, const double *strength,
                                     uint64_t number, usi_complex4 *x, usi_complex4 *work) {
    uint64_t key = usi_random_key(def->seed, def->stream);
    for (int32_t i = 0; i < fft->n; i++) {
        usi_normal_pairs z = usi_field_normals(key, (number * (uint64_t)fft->n + (uint64_t)i) * 4);
        x[i] = (usi_complex4){strength[i] * *(usi_v4 *)z.a, strength[i] * *(usi_v4 *)z.b};
    }
    return usi_fft_run(fft, x, work);
}

// Adds the outer product of the two sequences of a lane, rotated by a random angle, times `scale`. half: half
// of the field's diagonal, nodes.
static void add_product(const us_field_def *def, const usi_complex4 *lines, int32_t k, double half,
                        double scale, double *out) {
    int lane = k % 4;
    // Half a circle has all directions.
    usi_v4 s, c;
    usi_v4_sin_cos(
        usi_v4_all(M_PI * (us_random_uniform(def->seed, def->stream + 0x6f75746572u, (uint64_t)k) - 0.5)), &s,
        &c);
    for (int32_t j = 0; j < def->n_y; j++) {
        for (int32_t i = 0; i < def->n_x; i++) {
            double dx = i - 0.5 * (def->n_x - 1), dy = j - 0.5 * (def->n_y - 1);
            double u = (double)FINE * (half + c[0] * dx + s[0] * dy),
                   v = (double)FINE * (half - s[0] * dx + c[0] * dy);
            int32_t iu = (int32_t)u, iv = (int32_t)v;
            double a = lines[iu].re[lane] + (u - iu) * (lines[iu + 1].re[lane] - lines[iu].re[lane]);
            double b = lines[iv].im[lane] + (v - iv) * (lines[iv + 1].im[lane] - lines[iv].im[lane]);
            out[(size_t)j * (size_t)def->n_x + (size_t)i] += scale * a * b;
        }
    }
}

us_status usi_field_outer(const us_field_def *def, double *out, us_random_field_info *info, us_error *err) {
    double half = 0.5 * hypot(def->n_x - 1.0, def->n_y - 1.0);
    int64_t n = (int64_t)ceil(2 * half * (double)FINE) + 2 * FINE, m = 8;
    while (m < 2 * n)
        m *= 2;
    usi_arena arena;
    usi_arena_init(&arena, &def->allocator);
    void *roots = m <= 1 << 26 ? usi_arena_alloc(&arena, usi_fft_size((int32_t)m), 32) : NULL;
    usi_complex4 *x = roots ? usi_arena_alloc(&arena, sizeof(usi_complex4) * (size_t)m, 64) : NULL;
    usi_complex4 *work = x ? usi_arena_alloc(&arena, sizeof(usi_complex4) * (size_t)m, 64) : NULL;
    double *strength = work ? usi_arena_alloc(&arena, sizeof(double) * (size_t)m, 32) : NULL;
    if (!strength) {
        usi_arena_fini(&arena);
        return us_error_set(err, US_ERR_MEMORY, NULL, "make a smaller field",
                            "no memory for sequences of %lld samples", (long long)m);
    }
    usi_fft fft = usi_fft_make((int32_t)m, roots);
    for (int32_t i = 0; i < m; i++) {
        double r = def->spacing / (double)FINE * (i < m / 2 ? i : (double)(m - i));
        x[i] = (usi_complex4){usi_v4_all(def->variance * usi_covariance_share(def, r)), usi_v4_zero()};
    }
    usi_complex4 *eigen = usi_fft_run(&fft, x, work);
    double all = 0, kept = 0;
    for (int32_t i = 0; i < m; i++) {
        all += eigen[i].re[0];
        kept += fmax(eigen[i].re[0], 0);
        strength[i] = sqrt(fmax(eigen[i].re[0], 0) / (double)m);
    }
    *info = (us_random_field_info){
        .m_x = (int32_t)m, .m_y = 1, .clipped = kept > 0 && 1 - all / kept > 1e-9 ? 1 - all / kept : 0};

    size_t n_node = (size_t)def->n_x * (size_t)def->n_y;
    for (size_t i = 0; i < n_node; i++)
        out[i] = 0;
    double scale = def->variance > 0 ? 1 / sqrt(def->variance * def->n_outer) : 0;
    const usi_complex4 *lines = NULL;
    for (int32_t k = 0; k < def->n_outer; k++) {
        // Four lanes with a real and an imaginary part each: four products from one transform.
        if (k % 4 == 0) lines = sequences(def, &fft, strength, (uint64_t)(k / 4), x, work);
        add_product(def, lines, k, half, scale, out);
    }
    for (size_t i = 0; i < n_node; i++)
        out[i] += def->mean;
    usi_arena_fini(&arena);
    return US_OK;
}
