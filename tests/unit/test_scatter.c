// Craters, rocks and trees: as many and as large as asked for, and the same whether the ground is made at
// once or in parts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/terrain.h"

// ---------------------------------------------------------------- craters

static void a_fresh_crater_has_its_depth_rim_and_blanket(void **state) {
    (void)state;
    us_crater_def def = us_crater_def_default();
    double floor = us_crater_profile(&def, 100, 0, 0), rim = us_crater_profile(&def, 100, 0, 50);
    assert_true(fabs(rim - 3.6) < 1e-12 && fabs(rim - floor - 20) < 1e-12);
    assert_true(us_crater_profile(&def, 100, 0, 10) == floor);  // a flat floor
    // The blanket falls with the third power, less what makes it end at four radii.
    assert_true(fabs(us_crater_profile(&def, 100, 0, 100) - 3.6 * (1.0 / 8 - 1.0 / 64) / (1 - 1.0 / 64)) <
                1e-12);
    assert_true(us_crater_profile(&def, 100, 0, 200) == 0 && us_crater_profile(&def, 100, 0, 300) == 0);
    // Age makes it shallower, and its edge lower.
    double last_floor = floor, last_rim = rim;
    for (int i = 1; i <= 10; i++) {
        double now_floor = us_crater_profile(&def, 100, 0.1 * i, 0),
               now_rim = us_crater_profile(&def, 100, 0.1 * i, 50);
        assert_true(now_floor > last_floor && now_rim < last_rim && now_floor < 0);
        last_floor = now_floor;
        last_rim = now_rim;
    }
}

static void numbers_of_craters_follow_the_power_law(void **state) {
    (void)state;
    us_crater_def def = us_crater_def_default();
    def.density = 1e-4;
    def.slope = 2;
    def.max_size = 1e6;
    assert_true(fabs(us_crater_density(&def, 10) / 1e-4 - 1) < 1e-9 &&
                fabs(us_crater_density(&def, 5) / 1e-4 - 1) < 1e-9);
    assert_true(fabs(us_crater_density(&def, 20) / 0.25e-4 - 1) < 1e-6 &&
                fabs(us_crater_density(&def, 100) / 1e-6 - 1) < 1e-6);
    assert_true(us_crater_density(&def, 1e6) == 0);
}

// The mean height of ground with craters of one size is their number times the volume of one. That of the
// number is the error of a Poisson count.
static void craters_are_as_many_as_asked_for(void **state) {
    (void)state;
    enum { N = 1000 };
    double *ground = calloc((size_t)N * N, sizeof *ground);
    for (int k = 0; k < 2; k++) {
        us_crater_def def = us_crater_def_default();
        def.seed = 5;
        def.age = 0;
        def.min_size = 20;
        def.max_size = k == 0 ? 20 : 80;
        def.density = 1e-3;
        memset(ground, 0, sizeof(double) * N * N);
        assert_int_equal(us_crater_add(&def, 2, 0, 0, N, N, N, ground, NULL), US_OK);
        double mean = 0, volume = 0, square = 0, number = 0;
        for (int i = 0; i < N * N; i++)
            mean += ground[i] / ((double)N * N);
        for (int d = 0; d < (k == 0 ? 1 : 600); d++) {
            double low = 20 + 0.1 * d,
                   share = k == 0 ? 1
                                  : (us_crater_density(&def, low) - us_crater_density(&def, low + 0.1)) /
                                        def.density,
                   one = 0;
            for (int i = 0; i < 4000; i++) {
                double r = (i + 0.5) * low * 2 / 4000;
                one += 2 * M_PI * r * us_crater_profile(&def, low + (k ? 0.05 : 0), 0, r) * low * 2 / 4000;
            }
            number += share;
            volume += share * one;
            square += share * one * one;
        }
        assert_true(fabs(number - 1) < 1e-6);
        double area = 4.0 * N * N, error = sqrt(def.density * area * square) / area;
        if (fabs(mean - def.density * volume) > 4 * error)
            fail_msg("mean height %g, not %g +- %g", mean, def.density * volume, error);
    }
    free(ground);
}

static void craters_made_in_parts_are_those_made_at_once(void **state) {
    (void)state;
    enum { N = 192 };
    static double whole[N * N], parts[N * N];
    us_crater_def def = us_crater_def_default();
    def.density = 2e-3;
    def.seed = 9;
    assert_int_equal(us_crater_add(&def, 0.7, -50, 30, N, N, N, whole, NULL), US_OK);
    for (int j = 0; j < N; j += 64) {
        for (int i = 0; i < N; i += 48)
            assert_int_equal(
                us_crater_add(&def, 0.7, i - 50, j + 30, 48, 64, N, parts + (size_t)j * N + i, NULL), US_OK);
    }
    assert_memory_equal(whole, parts, sizeof whole);
    // And on every machine.
    memset(whole, 0, sizeof whole);
    assert_int_equal(us_crater_add(&def, 1, 0, 0, N, N, N, whole, NULL), US_OK);
    assert_int_equal(us_hash_bytes(0, whole, sizeof whole), 0xdd5fe3608991fec3);
}

static void craters_that_cannot_be_are_refused(void **state) {
    (void)state;
    double ground[4] = {0};
    us_crater_def good = us_crater_def_default(), bad[6];
    good.density = 1e-3;
    for (int i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].min_size = 0;
    bad[1].max_size = 5;
    bad[2].slope = 20;
    bad[3].rim = 0.3;
    bad[4].density = 1;
    bad[5].density = -1;
    static const char *const says[] = {"0 to 500", "10 to 5", "slope", "rim 0.3", "leave no ground", "-1"};
    for (int i = 0; i < 6; i++) {
        us_error err = {0};
        assert_int_equal(us_crater_add(&bad[i], 1, 0, 0, 2, 2, 2, ground, &err), US_ERR_VALUE);
        if (!strstr(err.message, says[i])) fail_msg("\"%s\" does not say \"%s\"", err.message, says[i]);
        assert_true(isnan(us_crater_density(&bad[i], 10)));
    }
}

// ---------------------------------------------------------------- rocks and trees

enum { MAX_INSTANCES = 60000 };
typedef struct heap {
    us_scatter_instance instance[MAX_INSTANCES];
    int32_t n;
} heap;

static us_status keep(void *context, const us_scatter_instance *instance, us_error *err) {
    heap *h = context;
    if (h->n == MAX_INSTANCES) return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "too many");
    h->instance[h->n++] = *instance;
    return US_OK;
}

static heap *scatter(const us_scatter_def *def) {
    heap *h = calloc(1, sizeof *h);
    us_error err = {0};
    if (us_scatter_visit(def, keep, h, &err) != US_OK) fail_msg("%s", err.message);
    return h;
}

static us_scatter_def square(us_scatter_kind kind, double density, double side) {
    us_scatter_def def = us_scatter_def_default(kind);
    def.density = density;
    def.seed = 4;
    def.x0 = def.y0 = -0.5 * side;
    def.x1 = def.y1 = 0.5 * side;
    return def;
}

static void trees_are_as_many_as_asked_for_and_keep_their_distance(void **state) {
    (void)state;
    us_scatter_def def = square(US_SCATTER_TREES, 0.04, 300);
    def.distance = 2.5;
    heap *h = scatter(&def);
    // 3600 expected; apart from each other they vary less than a Poisson count, 60.
    if (abs(h->n - 3600) > 240) fail_msg("%d trees", (int)h->n);
    double height = 0, nearest = INFINITY;
    for (int32_t i = 0; i < h->n; i++) {
        const us_scatter_instance *t = &h->instance[i];
        height += t->height / h->n;
        assert_true(t->height >= 5 && t->height < 15 && t->crown > 0 && t->diameter > 0 && t->x >= -150 &&
                    t->x < 150);
        for (int32_t j = 0; j < i; j++)
            nearest = fmin(nearest, hypot(t->x - h->instance[j].x, t->y - h->instance[j].y));
    }
    assert_true(nearest >= 2.5 && nearest < 2.6);
    assert_true(fabs(height - 10) < 4 * 10 / sqrt(12.0 * 3600));  // the mean of even numbers between 5 and 15
    free(h);
}

// Those of at least a diameter cover as much of the ground as the distribution says, for any cover and seed:
// what lies under larger ones is made up for. Chance as the areas of independent rocks have it; those that
// keep apart vary less.
static void rocks_cover_the_share_asked_for(void **state) {
    (void)state;
    static const double cover[] = {0.02, 0.1, 0.2, 0.3, 0.4}, from[] = {0.2, 0.4, 0.8};
    enum { SIDE = 80, SEEDS = 3 };
    const double ground = (double)SIDE * SIDE;
    for (size_t c = 0; c < sizeof cover / sizeof *cover; c++) {
        const double q = 1.79 + 0.152 / cover[c];
        double covered[3] = {0}, square_sum[3] = {0}, n = 0;
        us_scatter_def def = square(US_SCATTER_ROCKS, cover[c], SIDE);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            def.seed = seed;
            heap *h = scatter(&def);
            for (int32_t i = 0; i < h->n; i++) {
                const double d = h->instance[i].diameter, area = 0.25 * M_PI * d * d;
                for (int k = 0; k < 3 && d >= from[k]; k++) {
                    covered[k] += area / (SEEDS * ground);
                    square_sum[k] += area * area;
                }
            }
            n += h->n;
            free(h);
        }
        for (int k = 0; k < 3; k++) {
            const double want = cover[c] * (exp(-q * from[k]) - exp(-q * 2)),
                         one = 0.25 * M_PI * from[k] * from[k],
                         error = sqrt(square_sum[k] + one * one) / (SEEDS * ground);
            if (fabs(covered[k] - want) > 4 * error)
                fail_msg("cover %g from %g m: %g covered, not %g +- %g", cover[c], from[k], covered[k], want,
                         error);
            // Sharp enough to see the sixth that overlaps would take.
            if (k == 0) assert_true(error < 0.05 * want);
        }
        const double number = us_scatter_density(&def) * ground * SEEDS;
        assert_true(fabs(n - number) < 4 * sqrt(number));
    }
}

static void no_two_rocks_overlap(void **state) {
    (void)state;
    us_scatter_def def = square(US_SCATTER_ROCKS, 0.3, 100);
    heap *h = scatter(&def);
    for (int32_t i = 0; i < h->n; i += 17) {
        for (int32_t j = 0; j < h->n; j++) {
            const us_scatter_instance *a = &h->instance[i], *b = &h->instance[j];
            if (i != j && hypot(a->x - b->x, a->y - b->y) < 0.5 * (a->diameter + b->diameter))
                fail_msg("rocks %d and %d overlap", i, j);
        }
    }
    free(h);
}

static int compare(const void *a, const void *b) {
    const us_scatter_instance *s = a, *t = b;
    return s->x != t->x ? (s->x > t->x) - (s->x < t->x) : (s->y > t->y) - (s->y < t->y);
}

static void instances_of_parts_are_those_of_the_whole(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        us_scatter_def def = square((us_scatter_kind)kind, kind ? 0.1 : 0.05, 60);
        heap *whole = scatter(&def), *parts = calloc(1, sizeof *parts);
        for (int k = 0; k < 6; k++) {
            us_scatter_def part = def;
            part.x0 = k % 2 ? -7 : -30;
            part.x1 = k % 2 ? 30 : -7;
            int row = k / 2;
            part.y0 = -30 + 20.0 * row;
            part.y1 = part.y0 + 20;
            assert_int_equal(us_scatter_visit(&part, keep, parts, NULL), US_OK);
        }
        assert_true(whole->n > 100 && whole->n == parts->n);
        uint64_t hash = us_hash_bytes(0, whole->instance, sizeof(us_scatter_instance) * (size_t)whole->n);
        qsort(whole->instance, (size_t)whole->n, sizeof(us_scatter_instance), compare);
        qsort(parts->instance, (size_t)parts->n, sizeof(us_scatter_instance), compare);
        assert_memory_equal(whole->instance, parts->instance, sizeof(us_scatter_instance) * (size_t)whole->n);
        // And on every machine.
        static const uint64_t hashes[] = {0x7644153362927c2f, 0xf7aafc2ba8f971ba};
        assert_int_equal(hash, hashes[kind]);
        free(whole);
        free(parts);
    }
}

static bool is_east(void *context, double x, double y) {
    (void)y;
    return x > *(const double *)context;
}

static void instances_stand_only_where_they_are_allowed(void **state) {
    (void)state;
    us_scatter_def def = square(US_SCATTER_TREES, 0.1, 60);
    heap *all = scatter(&def);
    double border = 12;
    def.is_allowed = is_east;
    def.context = &border;
    heap *east = scatter(&def);
    int32_t n = 0;
    for (int32_t i = 0; i < all->n; i++)
        n += all->instance[i].x > 12;
    assert_true(n > 50 && n < all->n && east->n == n);
    free(all);
    free(east);
}

static void rocks_lie_on_their_lowest_corners_within_their_size(void **state) {
    (void)state;
    us_scatter_def def = square(US_SCATTER_ROCKS, 0.05, 40);
    heap *h = scatter(&def);
    assert_true(h->n > 100);
    for (int32_t i = 0; i < h->n; i++) {
        us_vec3 p[US_ROCK_POINTS];
        us_rock_points(&h->instance[i], p);
        double low = INFINITY, high = 0, wide = 0;
        int on_ground = 0;
        for (int k = 0; k < US_ROCK_POINTS; k++) {
            low = fmin(low, p[k].z);
            high = fmax(high, p[k].z);
            wide = fmax(wide, hypot(p[k].x, p[k].y));
            on_ground += p[k].z == 0;
        }
        assert_true(low == 0 && on_ground >= 3 && high <= h->instance[i].height &&
                    high > 0.8 * h->instance[i].height);
        assert_true(wide <= 0.5 * h->instance[i].diameter && wide > 0.25 * h->instance[i].diameter);
    }
    free(h);
}

static void densities_that_cannot_be_are_refused(void **state) {
    (void)state;
    us_scatter_def rocks = square(US_SCATTER_ROCKS, 0.1, 10), trees = square(US_SCATTER_TREES, 0.1, 10),
                   bad[6] = {rocks, rocks, rocks, trees, trees, trees};
    bad[0].density = 0.7;
    bad[1].min_size = 0;
    bad[2].x0 = 20;
    bad[3].distance = 10;
    bad[4].density = -1;
    bad[5].max_size = NAN;
    static const char *const says[] = {"cover 0.7",  "from 0 to", "area from (20",
                                       "10 m apart", "-1 trees",  "nan"};
    for (int i = 0; i < 6; i++) {
        us_error err = {0};
        assert_int_equal(us_scatter_visit(&bad[i], keep, NULL, &err), US_ERR_VALUE);
        if (!strstr(err.message, says[i])) fail_msg("\"%s\" does not say \"%s\"", err.message, says[i]);
        assert_true(isnan(us_scatter_density(&bad[i])));
    }
    rocks.min_size = 1e-3;
    rocks.max_size = 100;
    assert_int_equal(us_scatter_visit(&rocks, keep, NULL, NULL), US_ERR_LIMIT);
    // Of small ones so many do not fit between the large ones.
    us_error err = {0};
    rocks.density = 0.5;
    assert_int_equal(us_scatter_visit(&rocks, keep, NULL, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "do not fit beside each other"));
    assert_true(isnan(us_scatter_density(&rocks)));
    rocks.density = 0;
    assert_int_equal(us_scatter_visit(&rocks, keep, NULL, NULL), US_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_crater_has_its_depth_rim_and_blanket),
        cmocka_unit_test(numbers_of_craters_follow_the_power_law),
        cmocka_unit_test(craters_are_as_many_as_asked_for),
        cmocka_unit_test(craters_made_in_parts_are_those_made_at_once),
        cmocka_unit_test(craters_that_cannot_be_are_refused),
        cmocka_unit_test(trees_are_as_many_as_asked_for_and_keep_their_distance),
        cmocka_unit_test(rocks_cover_the_share_asked_for),
        cmocka_unit_test(no_two_rocks_overlap),
        cmocka_unit_test(instances_of_parts_are_those_of_the_whole),
        cmocka_unit_test(instances_stand_only_where_they_are_allowed),
        cmocka_unit_test(rocks_lie_on_their_lowest_corners_within_their_size),
        cmocka_unit_test(densities_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
