// Random fields against the covariance that was prescribed.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "terrain/fft.h"
#include "understudy/terrain.h"

static us_random_field_info make(const us_field_def *def, double *out) {
    us_error err = {0};
    us_random_field_info info;
    if (us_field_make(def, out, &info, &err) != US_OK) fail_msg("%s", err.message);
    return info;
}

static us_field_def field(us_covariance covariance, int32_t n, double length, double smoothness) {
    us_field_def def = us_field_def_default();
    def.n_x = def.n_y = n;
    def.covariance = covariance;
    def.length = length;
    def.smoothness = smoothness;
    return def;
}

static void the_transform_is_the_sum_that_defines_it(void **state) {
    (void)state;
    for (int32_t n = 2; n <= 128; n *= 2) {
        void *memory = malloc(usi_fft_size(n));
        usi_fft fft = usi_fft_make(n, memory);
        usi_complex4 *x = aligned_alloc(64, sizeof *x * (size_t)n),
                     *work = aligned_alloc(64, sizeof *x * (size_t)n);
        double in[128][2];
        for (int32_t i = 0; i < n; i++) {
            in[i][0] = us_random_normal(1, 2, (uint64_t)i);
            in[i][1] = us_random_normal(1, 3, (uint64_t)i);
            for (int l = 0; l < 4; l++) {
                x[i].re[l] = (l + 1) * in[i][0];
                x[i].im[l] = in[i][1] - l;
            }
        }
        const usi_complex4 *y = usi_fft_run(&fft, x, work);
        for (int32_t k = 0; k < n; k++) {
            for (int l = 0; l < 4; l++) {
                double re = 0, im = 0;
                for (int32_t j = 0; j < n; j++) {
                    double a = -2 * M_PI * (double)(j * k % n) / n, u = (l + 1) * in[j][0], v = in[j][1] - l;
                    re += u * cos(a) - v * sin(a);
                    im += u * sin(a) + v * cos(a);
                }
                // Rounding of sums of up to 128 numbers of size 4.
                assert_true(fabs(y[k].re[l] - re) < 1e-11 && fabs(y[k].im[l] - im) < 1e-11);
            }
        }
        free(memory);
        free(x);
        free(work);
    }
}

static void covariances_have_their_closed_forms(void **state) {
    (void)state;
    us_field_def def = field(US_COVARIANCE_MATERN, 8, 2, 0.5);
    for (int i = 0; i < 200; i++) {
        double r = 0.1 * i, x = r / 2;
        // Smoothness a hair beside the closed forms goes through the integral, and must come out as they do,
        // up to the hair.
        static const double halves[] = {0.5, 1.5, 2.5};
        double closed[] = {exp(-x), (1 + x) * exp(-x), (1 + x + x * x / 3) * exp(-x)};
        for (int k = 0; k < 3; k++) {
            def.smoothness = halves[k] + 1e-9;
            assert_true(fabs(us_field_covariance(&def, r) - closed[k]) < 1e-8);
            def.smoothness = halves[k];
            assert_true(fabs(us_field_covariance(&def, r) - closed[k]) < 1e-14);
        }
    }
    // x K_1(x) at 1 and 2, from tables of Bessel functions.
    def.smoothness = 1;
    assert_true(fabs(us_field_covariance(&def, 2) - 0.6019072301972346) < 1e-13);
    assert_true(fabs(us_field_covariance(&def, 4) - 2 * 0.1398658818165224) < 1e-13);
    def.covariance = US_COVARIANCE_SPHERICAL;
    assert_true(us_field_covariance(&def, 0) == 1 && us_field_covariance(&def, 2) == 0 &&
                us_field_covariance(&def, 1) == 0.3125);
}

// Lags on both axes and the diagonal. The standard error is that of the mean over fields, which are
// independent of each other.
static void a_thousand_fields_have_the_covariance_prescribed(void **state) {
    (void)state;
    enum { N = 40, N_LAG = 20 };
    static const int lags[N_LAG][2] = {{0, 0}, {1, 0},   {0, 1},  {1, 1},  {2, 0},   {0, 3},  {3, 3},
                                       {5, 0}, {0, 5},   {4, 3},  {5, 5},  {8, 0},   {0, 10}, {10, 0},
                                       {6, 8}, {10, 10}, {15, 0}, {0, 20}, {12, 16}, {20, 20}};
    // The last takes long to evaluate: fewer fields.
    const us_field_def defs[] = {
        field(US_COVARIANCE_EXPONENTIAL, N, 8, 0), field(US_COVARIANCE_GAUSSIAN, N, 8, 0),
        field(US_COVARIANCE_SPHERICAL, N, 30, 0), field(US_COVARIANCE_FRACTAL, N, 6, 0.8)};
    static double f[N * N];
    for (size_t k = 0; k < sizeof defs / sizeof defs[0]; k++) {
        us_field_def def = defs[k];
        int n_field = k < 3 ? 1000 : 100;
        def.variance = 4;
        def.mean = 3;
        double sum[N_LAG] = {0}, square[N_LAG] = {0}, all = 0, power[2] = {0};
        for (int r = 0; r < n_field; r++) {
            def.seed = 1000 * (uint64_t)k + (uint64_t)r;
            assert_true(make(&def, f).clipped == 0);
            double mean = 0;
            for (int i = 0; i < N * N; i++) {
                double x = f[i] - 3;
                mean += x / (N * N);
                power[0] += x * x;
                power[1] += x * x * x * x;
            }
            all += mean;
            for (int q = 0; q < N_LAG; q++) {
                int nx = N - lags[q][0], ny = N - lags[q][1];
                double c = 0;
                for (int y = 0; y < ny; y++) {
                    for (int x = 0; x < nx; x++)
                        c += (f[y * N + x] - 3) * (f[(y + lags[q][1]) * N + x + lags[q][0]] - 3);
                }
                c /= (double)nx * ny;
                sum[q] += c;
                square[q] += c * c;
            }
        }
        for (int q = 0; q < N_LAG; q++) {
            double c = sum[q] / n_field, error = sqrt((square[q] / n_field - c * c) / n_field);
            double want = us_field_covariance(&def, hypot(lags[q][0], lags[q][1]));
            // Four standard errors: one test in 160 of such a hundred would fail by chance, and the seeds are
            // fixed.
            if (fabs(c - want) > 4 * error)
                fail_msg("covariance %d, lag %d %d: %.4f +- %.4f, not %.4f", (int)k, lags[q][0], lags[q][1],
                         c, error, want);
        }
        // The mean of a field varies by its own variance, at most 4.
        assert_true(fabs(all / n_field) < 4 * sqrt(4.0 / n_field));
        double kurtosis = power[1] / power[0] / power[0] * n_field * N * N;
        // 2000 independent places at least: the error of a kurtosis is sqrt(24 / n), 0.11 at most.
        if (fabs(kurtosis - 3) > 0.33) fail_msg("kurtosis %.3f", kurtosis);
    }
}

// The least eigenvalues of these toruses were computed independently.
static void eigenvalues_are_as_published(void **state) {
    (void)state;
    static double f[128 * 128];
    us_random_field_info info;
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, 128, 10, 0);
    info = make(&def, f);
    assert_true(info.m_x == 256 && fabs(info.min_eigenvalue / 6.655e-5 - 1) < 1e-3);
    def = field(US_COVARIANCE_SPHERICAL, 128, 30, 0);
    info = make(&def, f);
    assert_true(info.m_x == 256 && fabs(info.min_eigenvalue / 3.46e-5 - 1) < 2e-3);
    // Slightly negative on 256: the torus is enlarged, and it is gone.
    def = field(US_COVARIANCE_MATERN, 128, 10, 1.5);
    info = make(&def, f);
    assert_true(info.m_x == 512 && info.clipped == 0 && fabs(info.min_eigenvalue / 2.4e-8 - 1) < 0.02);
}

static void a_tent_is_no_covariance_and_how_much_is_clipped_is_told(void **state) {
    (void)state;
    enum { N = 64 };
    static double f[N * N];
    double tent[21];
    for (int i = 0; i <= 20; i++)
        tent[i] = 1 - i / 20.0;
    us_field_def def = field(US_COVARIANCE_TABLE, N, 0, 0);
    def.spacing = def.table_spacing = 5;
    def.n_table = 21;
    def.table = tent;
    us_random_field_info info = make(&def, f);
    assert_true(fabs(info.min_eigenvalue + 2.1e-2) < 1e-3);
    // Negative energy of a tenth of the variance; what is left is scaled to the variance asked for.
    assert_true(info.clipped > 0.05 && info.clipped < 0.12);
    double sum = 0;
    for (int r = 0; r < 100; r++) {
        def.seed = (uint64_t)r;
        make(&def, f);
        for (int i = 0; i < N * N; i++)
            sum += f[i] * f[i] / (N * N) / 100;
    }
    assert_true(fabs(sum - 1) < 0.1);  // of some 1600 independent places in all: 3.5 %
}

// Points that are close where the covariance bends and far apart where it does not: those of a spherical
// covariance, of which the table is then within 1e-3 of the variance.
enum { N_POINT = 60 };
static void uneven_table(double range, double *at, double *value) {
    for (int i = 0; i < N_POINT; i++) {
        const double x = i / (N_POINT - 1.0), r = x * x;
        at[i] = range * r;
        value[i] = 4 * (1 - r * (1.5 - 0.5 * r * r));
    }
}

static void a_table_of_uneven_points_is_linear_between_them(void **state) {
    (void)state;
    static const double at[] = {0, 1, 1.5, 4, 10}, value[] = {2, 1.8, 1, -0.2, 0.1};
    us_field_def def = field(US_COVARIANCE_TABLE, 8, 0, 0);
    def.variance = 2;
    def.n_table = 5;
    def.table = value;
    def.table_at = at;
    static const double r[] = {0, 0.25, 1, 1.25, 2.75, 4, 7, 10, 10.1},
                        want[] = {2, 1.95, 1.8, 1.4, 0.4, -0.2, -0.05, 0.1, 0};
    for (int i = 0; i < 9; i++)
        assert_true(fabs(us_field_covariance(&def, r[i]) - want[i]) < 1e-14);
    // Even points are those of a spacing, to the bit.
    double even[21], values[21];
    static double a[64 * 64], b[64 * 64];
    for (int i = 0; i <= 20; i++) {
        even[i] = 4.0 * i;
        values[i] = exp(-0.2 * i);
    }
    def = field(US_COVARIANCE_TABLE, 64, 0, 0);
    def.n_table = 21;
    def.table = values;
    def.table_spacing = 4;
    make(&def, a);
    def.table_at = even;
    def.table_spacing = 0;
    make(&def, b);
    assert_memory_equal(a, b, sizeof a);
    static const double bad[][3] = {{1, 2, 3}, {0, 2, 2}, {0, 2, NAN}, {0, 3, 1}};
    for (int i = 0; i < 4; i++) {
        def.n_table = 3;
        def.table_at = bad[i];
        us_error err = {0};
        assert_int_equal(us_field_make(&def, a, NULL, &err), US_ERR_VALUE);
        assert_non_null(strstr(err.remedy, "distances grow"));
    }
}

// Covariances over an ensemble, against those of the table. 4 standard errors, from the scatter of the fields
// themselves; the errors are below a thirtieth of the variance, so that a table that is read wrongly shows.
static void fields_have_the_covariance_of_uneven_points(void **state) {
    (void)state;
    enum { W = 48, N_FIELD = 200 };
    static double f[W * W];
    static const int lags[] = {0, 1, 3, 6, 12};
    double at[N_POINT], value[N_POINT];
    uneven_table(10, at, value);
    us_field_def def = field(US_COVARIANCE_TABLE, W, 0, 0);
    def.variance = 4;
    def.n_table = N_POINT;
    def.table = value;
    def.table_at = at;
    double sum[5] = {0}, square[5] = {0};
    for (int k = 0; k < N_FIELD; k++) {
        def.seed = (uint64_t)k;
        assert_true(make(&def, f).clipped < 1e-3);
        for (int l = 0; l < 5; l++) {
            double c = 0;
            for (int y = 0; y < W; y++) {
                for (int x = 0; x < W - lags[l]; x++)
                    c += f[y * W + x] * f[y * W + x + lags[l]] / (W * (W - lags[l]));
            }
            sum[l] += c / N_FIELD;
            square[l] += c * c / N_FIELD;
        }
    }
    for (int l = 0; l < 5; l++) {
        const double error = sqrt((square[l] - sum[l] * sum[l]) / N_FIELD),
                     want = us_field_covariance(&def, lags[l]);
        assert_true(error < 4.0 / 30);
        if (fabs(sum[l] - want) > 4 * error)
            fail_msg("lag %d: %.4f +- %.4f, not %.4f", lags[l], sum[l], error, want);
    }
}

// ---------------------------------------------------------------- mean and deviation of each node

static double mean_of(const void *context, double x, double y) {
    return *(const double *)context + 0.5 * x - 0.1 * y;
}
static double deviation_of(const void *context, double x, double y) {
    (void)y;
    return x < 8 ? 0 : *(const double *)context * (1 + 0.1 * x);
}

static void every_node_has_its_own_mean_and_deviation(void **state) {
    (void)state;
    enum { W = 32, N_FIELD = 1000 };
    static double f[W * W], sum[W], square[W], product[W];
    const double offset = 7, scale = 0.5;
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, W, 3, 0);
    def.variance = 9;
    def.mean = 100;  // both stand back behind what is said of each node
    def.mean_at = mean_of;
    def.mean_context = &offset;
    def.deviation_at = deviation_of;
    def.deviation_context = &scale;
    for (int k = 0; k < N_FIELD; k++) {
        def.seed = (uint64_t)k;
        make(&def, f);
        const int y = 11;
        for (int x = 0; x < W; x++) {
            const double here = f[y * W + x] - mean_of(&offset, x, y),
                         next = x + 2 < W ? f[y * W + x + 2] - mean_of(&offset, x + 2, y) : 0;
            sum[x] += here / N_FIELD;
            square[x] += here * here / N_FIELD;
            product[x] += here * next / N_FIELD;
        }
    }
    for (int x = 0; x < W; x++) {
        const double d = deviation_of(&scale, x, 0), e = x + 2 < W ? deviation_of(&scale, x + 2, 0) : 0;
        // Standard errors of mean, variance and covariance of 1000 normal numbers; 4.5 of them, since there
        // are 90.
        const double more = 4.5 / sqrt(N_FIELD);
        assert_true(fabs(sum[x]) <= more * d);
        assert_true(fabs(square[x] - d * d) <= more * M_SQRT2 * d * d);
        assert_true(fabs(product[x] - d * e * exp(-2.0 / 3)) <= more * M_SQRT2 * d * e);
    }
    // In patches too, and by the part.
    def.method = US_FIELD_PATCH;
    make(&def, f);
    for (int x = 0; x < 8; x++)
        assert_true(f[5 * W + x] == mean_of(&offset, x, 5));
    const double negative = -1;
    def.deviation_context = &negative;
    for (int k = 0; k < 2; k++) {
        def.method = k ? US_FIELD_PATCH : US_FIELD_EMBED;
        us_error err = {0};
        assert_int_equal(us_field_make(&def, f, NULL, &err), US_ERR_VALUE);
        assert_non_null(strstr(err.message, "at 8 m east and 0 m north"));
    }
}

static void the_outer_method_is_right_along_no_direction_but_for_gaussians(void **state) {
    (void)state;
    enum { N = 32, N_FIELD = 300 };
    static double f[N * N];
    for (int k = 0; k < 2; k++) {
        us_field_def def = field(k == 0 ? US_COVARIANCE_EXPONENTIAL : US_COVARIANCE_GAUSSIAN, N, 10, 0);
        def.method = US_FIELD_OUTER;
        def.n_outer = 40;
        double variance = 0, lag[2] = {0}, square[2] = {0};
        for (int r = 0; r < N_FIELD; r++) {
            def.seed = (uint64_t)r;
            make(&def, f);
            double c[2] = {0};
            for (int y = 0; y < N - 10; y++) {
                for (int x = 0; x < N - 10; x++) {
                    double n = (N - 10) * (N - 10), a = f[y * N + x];
                    variance += a * a / n / N_FIELD;
                    c[0] += a * f[y * N + x + 10] / n;
                    c[1] += a * f[(y + 10) * N + x + 10] / n;
                }
            }
            for (int q = 0; q < 2; q++) {
                lag[q] += c[q] / N_FIELD;
                square[q] += c[q] * c[q] / N_FIELD;
            }
        }
        assert_true(fabs(variance - 1) < 0.15);
        for (int q = 0; q < 2; q++) {
            // The mean of F(r |cos t|) F(r |sin t|) over all angles.
            double r = q == 0 ? 10 : 10 * M_SQRT2, want = 0,
                   error = sqrt((square[q] - lag[q] * lag[q]) / N_FIELD);
            for (int i = 0; i < 360; i++) {
                double t = 2 * M_PI * i / 360;
                want += us_field_covariance(&def, r * fabs(cos(t))) *
                        us_field_covariance(&def, r * fabs(sin(t))) / 360;
            }
            if (fabs(lag[q] - want) > 4 * error)
                fail_msg("lag %g: %.4f +- %.4f, not %.4f", r, lag[q], error, want);
            if (k == 0 && q == 0) assert_true(want < 0.8 * us_field_covariance(&def, r));
        }
    }
}

static void the_same_seed_gives_the_same_bits_for_any_number_of_threads(void **state) {
    (void)state;
    enum { W = 100, H = 37 };
    static double a[W * H], b[W * H];
    for (int k = 0; k < 4; k++) {
        us_field_def def = field(k == 3 ? US_COVARIANCE_FRACTAL : US_COVARIANCE_EXPONENTIAL, W, 10, 0.7);
        def.n_y = H;
        def.seed = 5;
        make(&def, a);
        def.n_thread = 1 + k;
        make(&def, b);
        assert_memory_equal(a, b, sizeof a);
    }
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, W, 10, 0);
    def.n_y = H;
    def.seed = 6;
    make(&def, b);
    assert_memory_not_equal(a, b, sizeof a);
    // And on every machine, whatever its mathematical library.
    def = field(US_COVARIANCE_EXPONENTIAL, 16, 4, 0);
    make(&def, a);
    assert_int_equal(us_hash_bytes(0, a, sizeof(double) * 256), 0xf7196617abad5282);
}

static void fields_of_one_node_and_of_no_variance_are_fields(void **state) {
    (void)state;
    double f[3];
    us_field_def def = field(US_COVARIANCE_GAUSSIAN, 1, 10, 0);
    make(&def, f);
    assert_true(isfinite(f[0]));
    def.n_x = 3;
    def.variance = 0;
    def.mean = 7;
    make(&def, f);
    assert_true(f[0] == 7 && f[1] == 7 && f[2] == 7);
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    double f[256];
    static const double bad_table[] = {1, 2};
    us_field_def good = field(US_COVARIANCE_MATERN, 16, 4, 1), bad[8];
    for (int i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].n_x = 0;
    bad[1].spacing = -1;
    bad[2].variance = NAN;
    bad[3].length = 0;
    bad[4].smoothness = 11;
    bad[5].covariance = US_COVARIANCE_TABLE;
    bad[5].table = bad_table;
    bad[5].n_table = 2;
    bad[5].table_spacing = 1;
    bad[6].covariance = US_COVARIANCE_COUNT;
    bad[7].method = US_FIELD_OUTER;
    bad[7].n_outer = 0;
    static const char *const says[] = {"0 x 16",     "-1",    "nan",      "length",
                                       "smoothness", "table", "number 6", "0 products"};
    for (int i = 0; i < 8; i++) {
        us_error err = {0};
        assert_int_equal(us_field_make(&bad[i], f, NULL, &err), US_ERR_VALUE);
        if (!strstr(err.message, says[i])) fail_msg("\"%s\" does not say \"%s\"", err.message, says[i]);
        assert_true(isnan(us_field_covariance(&bad[i], 1)));
    }
    assert_int_equal(us_covariance_find("matern"), US_COVARIANCE_MATERN);
    assert_int_equal(us_covariance_find("cheese"), US_COVARIANCE_COUNT);
    assert_string_equal(us_covariance_name(US_COVARIANCE_TABLE), "table");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_transform_is_the_sum_that_defines_it),
        cmocka_unit_test(covariances_have_their_closed_forms),
        cmocka_unit_test(a_thousand_fields_have_the_covariance_prescribed),
        cmocka_unit_test(eigenvalues_are_as_published),
        cmocka_unit_test(a_table_of_uneven_points_is_linear_between_them),
        cmocka_unit_test(fields_have_the_covariance_of_uneven_points),
        cmocka_unit_test(every_node_has_its_own_mean_and_deviation),
        cmocka_unit_test(a_tent_is_no_covariance_and_how_much_is_clipped_is_told),
        cmocka_unit_test(the_outer_method_is_right_along_no_direction_but_for_gaussians),
        cmocka_unit_test(the_same_seed_gives_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(fields_of_one_node_and_of_no_variance_are_fields),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
