// Fields of any size: the covariance, the seams, and that every node comes once and always the same.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "terrain/random_patch.h"

static us_field_def field(us_covariance covariance, int32_t n, double length, double smoothness) {
    us_field_def def = us_field_def_default();
    def.method = US_FIELD_PATCH;
    def.n_x = def.n_y = n;
    def.covariance = covariance;
    def.length = length;
    def.smoothness = smoothness;
    return def;
}

static void begin(usi_pyramid *p, const us_field_def *def) {
    us_error err = {0};
    if (usi_pyramid_init(p, def, NULL, &err) != US_OK) fail_msg("%s", err.message);
}

// The covariance that the gains come to, without any chance in it.
static void levels_add_up_to_the_covariance_prescribed(void **state) {
    (void)state;
    static double table[101];
    for (int i = 0; i <= 100; i++)
        table[i] = exp(-0.05 * i) - exp(-5);
    const struct {
        us_field_def def;
        double tolerance;
    } rows[] = {
        // Spectra are known to 1e-5 or so where correlations are much shorter than the ground, and to 1e-4
        // where they are longer than it.
        {field(US_COVARIANCE_EXPONENTIAL, 3000, 0.5, 0), 2e-5},
        {field(US_COVARIANCE_EXPONENTIAL, 20000, 2000, 0), 5e-5},
        {field(US_COVARIANCE_EXPONENTIAL, 5000, 30000, 0), 2e-4},
        {field(US_COVARIANCE_GAUSSIAN, 5000, 300, 0), 5e-5},
        {field(US_COVARIANCE_FRACTAL, 5000, 200, 0.8), 5e-5},
        // A table is linear between its values, and its kinks are not met by samples of the coarser levels.
        {field(US_COVARIANCE_TABLE, 3000, 1, 0), 1e-3},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        us_field_def def = rows[k].def;
        def.variance = 2;
        def.table = table;
        def.n_table = 101;
        def.table_spacing = 4;
        usi_pyramid p;
        begin(&p, &def);
        double n = def.n_x - 1, worst = 0;
        const double lags[20][2] = {
            {0, 0},       {1, 0},      {1, 1},   {0, 2},   {3, 0},  {4, 4},
            {0, 8},       {12, 5},     {20, 0},  {30, 30}, {50, 0}, {0, 100},
            {70, 70},     {200, 50},   {0, 400}, {600, 0}, {n, 0},  {0.5 * n, 0.5 * n},
            {0.3 * n, 0}, {0, 0.8 * n}};
        for (int i = 0; i < 20; i++) {
            double got = usi_pyramid_covariance(&p, lags[i][0], lags[i][1]),
                   want = us_field_covariance(&def, hypot(lags[i][0], lags[i][1]));
            worst = fmax(worst, fabs(got - want) / def.variance);
        }
        usi_pyramid_fini(&p);
        if (worst > rows[k].tolerance)
            fail_msg("covariance %d, row %d: off by %.2e of the variance", (int)def.covariance, (int)k,
                     worst);
        print_message("%-12s length %-6g of %d nodes: within %.1e of the variance\n",
                      us_covariance_name(def.covariance), def.length, (int)def.n_x, worst);
    }
}

// Blocks far larger than the correlations are nearly independent of each other: their scatter tells the error
// of the mean. Some lie across seams.
static void samples_have_the_covariance_prescribed(void **state) {
    (void)state;
    enum { N = 1000, BLOCK = 125, SIDE = N / BLOCK, N_FIELD = 4, N_LAG = 20, COUNT = SIDE * SIDE * N_FIELD };
    static const int lags[N_LAG][2] = {{0, 0}, {1, 0},   {0, 1},  {1, 1},  {2, 0},   {0, 3},  {3, 3},
                                       {5, 0}, {0, 5},   {4, 3},  {5, 5},  {8, 0},   {0, 10}, {10, 0},
                                       {6, 8}, {10, 10}, {15, 0}, {0, 20}, {12, 16}, {20, 20}};
    double *f = malloc(sizeof(double) * N * N), sum[N_LAG] = {0}, square[N_LAG] = {0}, power[2] = {0};
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, N, 6, 0);
    def.variance = 4;
    def.mean = 100;
    for (int r = 0; r < N_FIELD; r++) {
        us_error err = {0};
        def.seed = (uint64_t)r;
        if (us_field_make(&def, f, NULL, &err) != US_OK) fail_msg("%s", err.message);
        for (int b = 0; b < SIDE * SIDE; b++) {
            const double *block = f + (size_t)(b / SIDE * BLOCK) * N + (size_t)(b % SIDE * BLOCK);
            for (int q = 0; q < N_LAG; q++) {
                int nx = BLOCK - lags[q][0], ny = BLOCK - lags[q][1];
                double c = 0;
                for (int y = 0; y < ny; y++) {
                    for (int x = 0; x < nx; x++)
                        c += (block[y * N + x] - 100) * (block[(y + lags[q][1]) * N + x + lags[q][0]] - 100);
                }
                c /= (double)nx * ny;
                sum[q] += c;
                square[q] += c * c;
            }
        }
        for (int i = 0; i < N * N; i++) {
            power[0] += pow(f[i] - 100, 2);
            power[1] += pow(f[i] - 100, 4);
        }
    }
    for (int q = 0; q < N_LAG; q++) {
        double c = sum[q] / COUNT, error = sqrt((square[q] / COUNT - c * c) / COUNT),
               want = us_field_covariance(&def, hypot(lags[q][0], lags[q][1]));
        // Four standard errors; the seeds are fixed.
        if (fabs(c - want) > 4 * error)
            fail_msg("lag %d %d: %.4f +- %.4f, not %.4f", lags[q][0], lags[q][1], c, error, want);
    }
    // 4e6 nodes of some 100 correlated ones each: the error of a kurtosis is sqrt(24 / 4e4), 0.025.
    double kurtosis = power[1] / power[0] / power[0] * N_FIELD * N * N;
    if (fabs(kurtosis - 3) > 0.1) fail_msg("kurtosis %.3f", kurtosis);
    free(f);
}

// Neighbours know each other's edges: what two patches make of the same nodes differs by rounding alone.
static void patches_meet_without_a_seam(void **state) {
    (void)state;
    enum { SPAN = USI_PATCH_SPAN, OWN = USI_PATCH_OWN, EDGE = 2 * USI_PATCH_MARGIN };
    us_field_def def = field(US_COVARIANCE_FRACTAL, 4000, 500, 0.7);
    usi_pyramid p;
    begin(&p, &def);
    double *edge = malloc(sizeof(double) * EDGE * SPAN);
    // Level 1 below the coarser ones, then level 0: patches 1 and 2, which have different parents.
    for (int32_t level = p.n_level - 1; level >= 2; level--)
        usi_patch_make(&p, level, 0, 0, level < p.n_level - 1 ? p.patch[level + 1][0] : NULL);
    usi_patch_make(&p, 1, 0, 0, p.patch[2][0]);
    double worst = 0;
    for (int32_t j = 0; j < SPAN; j++) {
        for (int32_t i = 0; i < EDGE; i++)
            worst = fmax(worst, fabs(p.patch[1][0][j * SPAN + OWN + i] - p.patch[1][1][j * SPAN + i]));
    }
    usi_patch_make(&p, 0, 0, 1, p.patch[1][0]);
    for (int32_t j = 0; j < SPAN; j++)
        memcpy(edge + (size_t)j * EDGE, p.patch[0][1] + (size_t)j * SPAN + OWN, sizeof(double) * EDGE);
    usi_patch_make(&p, 0, 2, 1, p.patch[1][1]);
    for (int32_t j = 0; j < SPAN; j++) {
        for (int32_t i = 0; i < EDGE; i++)
            worst = fmax(worst, fabs(edge[j * EDGE + i] - p.patch[0][0][j * SPAN + i]));
    }
    // Rounding of transforms of 2^20 numbers.
    if (worst > 1e-12) fail_msg("%g between neighbours", worst);
    assert_true(worst > 0);  // they were made apart
    free(edge);
    usi_pyramid_fini(&p);
}

typedef struct tally {
    uint8_t *seen;
    int32_t n_x;
    uint64_t hash;
    int32_t n_part;
} tally;

static us_status count(void *context, const us_field_part *part, us_error *err) {
    (void)err;
    tally *t = context;
    for (int32_t j = 0; j < part->n_y; j++) {
        for (int32_t i = 0; i < part->n_x; i++)
            t->seen[(size_t)(part->y + j) * (size_t)t->n_x + (size_t)(part->x + i)]++;
        t->hash = us_hash_bytes(t->hash, part->values + (size_t)j * (size_t)part->stride,
                                sizeof(double) * (size_t)part->n_x);
    }
    t->n_part++;
    return US_OK;
}

static us_status refuse(void *context, const us_field_part *part, us_error *err) {
    (void)part;
    ++*(int *)context;
    return us_error_set(err, US_ERR_IO, NULL, NULL, "the disk is full");
}

static void every_node_comes_once_and_the_same_for_any_number_of_threads(void **state) {
    (void)state;
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, 1700, 40, 0);
    def.n_y = 800;
    def.seed = 3;
    uint64_t first = 0;
    for (int32_t k = 1; k <= 3; k++) {
        tally t = {.seen = calloc(1, 1700 * 800), .n_x = 1700};
        def.n_thread = k;
        us_error err = {0};
        assert_int_equal(us_field_visit_parts(&def, count, &t, NULL, &err), US_OK);
        for (int32_t i = 0; i < 1700 * 800; i++)
            assert_int_equal(t.seen[i], 1);
        assert_int_equal(t.n_part, 6);
        if (k == 1) first = t.hash;
        assert_true(t.hash == first);
        free(t.seen);
    }
    // And on every machine, whatever its compiler and its mathematical library.
    assert_int_equal(first, 0x31bb6ae140731254);
    int n = 0;
    us_error err = {0};
    assert_int_equal(us_field_visit_parts(&def, refuse, &n, NULL, &err), US_ERR_IO);
    assert_int_equal(n, 1);
    assert_string_equal(err.message, "the disk is full");
}

static void other_methods_come_in_one_part(void **state) {
    (void)state;
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, 40, 4, 0);
    static double whole[1600];
    for (int k = 0; k < 2; k++) {
        def.method = k == 0 ? US_FIELD_EMBED : US_FIELD_OUTER;
        tally t = {.seen = calloc(1, 1600), .n_x = 40};
        assert_int_equal(us_field_visit_parts(&def, count, &t, NULL, NULL), US_OK);
        assert_int_equal(us_field_make(&def, whole, NULL, NULL), US_OK);
        uint64_t hash = 0;
        for (int j = 0; j < 40; j++)
            hash = us_hash_bytes(hash, whole + (size_t)j * 40, sizeof(double) * 40);
        assert_true(t.n_part == 1 && t.hash == hash);
        free(t.seen);
    }
}

static void sizes_beyond_all_bounds_are_refused(void **state) {
    (void)state;
    us_field_def def = field(US_COVARIANCE_EXPONENTIAL, (1 << 24) + 1, 4, 0);
    us_error err = {0};
    assert_int_equal(us_field_visit_parts(&def, count, NULL, NULL, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "16777217"));
    assert_int_equal(us_field_visit_parts(NULL, count, NULL, NULL, &err), US_ERR_ARG);
}

static void without_memory_it_fails_and_gives_everything_back(void **state) {
    (void)state;
    us_field_def def = field(US_COVARIANCE_GAUSSIAN, 8, 2, 0);
    static uint8_t seen[64];
    us_status status = US_ERR_MEMORY;
    int64_t n = 1;
    for (; status != US_OK; n++) {
        test_allocator a;
        test_allocator_init(&a);
        a.fail_at = n;
        def.allocator = a.allocator;
        us_error err = {0};
        status = us_field_visit_parts(&def, count, &(tally){.seen = seen, .n_x = 8}, NULL, &err);
        assert_true(status == US_OK || (status == US_ERR_MEMORY && err.message[0]));
        test_allocator_check(&a);
    }
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_add_up_to_the_covariance_prescribed),
        cmocka_unit_test(samples_have_the_covariance_prescribed),
        cmocka_unit_test(patches_meet_without_a_seam),
        cmocka_unit_test(every_node_comes_once_and_the_same_for_any_number_of_threads),
        cmocka_unit_test(other_methods_come_in_one_part),
        cmocka_unit_test(without_memory_it_fails_and_gives_everything_back),
        cmocka_unit_test(sizes_beyond_all_bounds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
