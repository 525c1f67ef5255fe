// Broad phase: always the pairs that testing all against all finds, in the same order, whatever was asked
// before.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "geom/broad.h"

enum { ROOM = 200000 };

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(5, stream, i);
}

static us_aabb box_at(us_vec3 p, us_vec3 half) {
    return (us_aabb){us_vec3_sub(p, half), us_vec3_add(p, half)};
}
static usi_broad_box plain(us_aabb box, int32_t body) { return (usi_broad_box){box, 1, 1, body}; }

// n boxes in a cube of the given side; half lengths between `small` and `large`, evenly in the logarithm.
// Every box is a body.
static usi_broad_box *some_boxes(uint64_t seed, int32_t n, double side, double small, double large) {
    usi_broad_box *boxes = calloc((size_t)n + 1, sizeof *boxes);
    assert_non_null(boxes);
    for (int32_t i = 0; i < n; i++) {
        uint64_t k = 8 * (uint64_t)i;
        double size = small * pow(large / small, us_random_uniform(5, seed, k));
        us_vec3 p = us_vec3_make(uniform(seed, k + 1, -side, side) / 2, uniform(seed, k + 2, -side, side) / 2,
                                 uniform(seed, k + 3, -side, side) / 2);
        us_vec3 half =
            us_vec3_make(size, size * uniform(seed, k + 4, 0.2, 1), size * uniform(seed, k + 5, 0.2, 1));
        boxes[i] = plain(box_at(p, half), i);
    }
    return boxes;
}

static usi_broad *room_for(int32_t n, int64_t n_pair, const usi_broad_pair *excluded, int32_t n_excluded) {
    usi_broad_def def = {n, n + 1, n_pair, excluded, n_excluded, NULL};
    usi_broad *broad = NULL;
    assert_int_equal(usi_broad_create(&def, &broad, NULL), US_OK);
    return broad;
}

static bool overlap(const us_aabb *a, const us_aabb *b) {
    return a->min.x <= b->max.x && b->min.x <= a->max.x && a->min.y <= b->max.y && b->min.y <= a->max.y &&
           a->min.z <= b->max.z && b->min.z <= a->max.z;
}

// All against all; the loops give the order (a, b). Returns the number of pairs.
static int64_t brute_force(const usi_broad_box *boxes, int32_t n, const usi_broad_pair *excluded,
                           int32_t n_excluded, usi_broad_pair *out) {
    int64_t n_pair = 0;
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = a + 1; b < n; b++) {
            if (!overlap(&boxes[a].box, &boxes[b].box) || boxes[a].body == boxes[b].body) continue;
            if (!(boxes[a].group & boxes[b].mask) || !(boxes[b].group & boxes[a].mask)) continue;
            bool is_out = false;
            for (int32_t k = 0; k < n_excluded; k++) {
                is_out |= excluded[k].a == boxes[a].body && excluded[k].b == boxes[b].body;
                is_out |= excluded[k].b == boxes[a].body && excluded[k].a == boxes[b].body;
            }
            if (is_out) continue;
            assert_true(n_pair < ROOM);
            out[n_pair++] = (usi_broad_pair){a, b};
        }
    }
    return n_pair;
}

// The broad phase and brute force agree on these boxes; returns the number of pairs.
static int64_t same_as_brute_force(usi_broad *broad, const usi_broad_box *boxes, int32_t n,
                                   const usi_broad_pair *excluded, int32_t n_excluded) {
    static usi_broad_pair expected[ROOM];
    int64_t n_expected = brute_force(boxes, n, excluded, n_excluded, expected), n_found = -1;
    const usi_broad_pair *found = NULL;
    assert_int_equal(usi_broad_find(broad, boxes, n, &found, &n_found, NULL), US_OK);
    assert_int_equal(n_found, n_expected);
    if (n_found > 0) assert_memory_equal(found, expected, (size_t)n_found * sizeof *found);
    return n_found;
}

static void random_scenes_give_the_pairs_of_brute_force(void **state) {
    (void)state;
    // n, side of the cube, half lengths: even sizes, three decades of sizes, a crowd, hardly any, and points.
    // Few boxes are swept, more than 1500 go to the grid: both see all of it.
    const struct {
        int32_t n;
        double side, small, large;
    } scene[] = {{1000, 20, 0.4, 0.6},     {1000, 20, 0.003, 3},    {300, 2, 0.3, 0.6},
                 {1000, 1e6, 0.5, 0.6},    {17, 3, 0.3, 0.9},       {500, 1e-6, 1e-9, 1e-7},
                 {500, 1e12, 1e9, 1e11},   {60, 1, 1e-300, 1},      {2000, 25, 0.4, 0.6},
                 {2000, 25, 0.003, 3},     {1600, 4, 0.3, 0.6},     {2000, 1e6, 0.5, 0.6},
                 {1600, 1e-6, 1e-9, 1e-7}, {1600, 1e13, 1e9, 1e11}, {1600, 4, 1e-300, 1}};
    usi_broad *broad = room_for(2000, ROOM, NULL, 0);
    int64_t total = 0;
    for (size_t k = 0; k < sizeof scene / sizeof *scene; k++) {
        for (uint64_t seed = 0; seed < (scene[k].n > 1500 ? 3 : 10); seed++) {
            usi_broad_box *boxes =
                some_boxes(100 * k + seed, scene[k].n, scene[k].side, scene[k].small, scene[k].large);
            total += same_as_brute_force(broad, boxes, scene[k].n, NULL, 0);
            free(boxes);
        }
    }
    assert_true(total > 10000);  // the scenes are not empty
    usi_broad_destroy(broad);
}

static void ten_thousand_boxes_give_the_pairs_of_brute_force(void **state) {
    (void)state;
    usi_broad *broad = room_for(10000, ROOM, NULL, 0);
    usi_broad_box *boxes = some_boxes(7, 10000, 30, 0.5, 1);
    assert_true(same_as_brute_force(broad, boxes, 10000, NULL, 0) > 10000);
    free(boxes);
    usi_broad_destroy(broad);
}

// Boxes on a lattice touch exactly, share cells' borders, and repeat with the period of the buckets.
static void lattices_and_far_places_give_the_pairs_of_brute_force(void **state) {
    (void)state;
    enum { LARGE = 12, ALL = LARGE * LARGE * LARGE };
    usi_broad *broad = room_for(ALL, ROOM, NULL, 0);
    static usi_broad_box boxes[ALL];
    for (int shape = 0; shape < 8; shape++) {
        // spacing 1: all neighbours touch; 4096: none; far from the origin; so far that cells are counted
        // beyond 2^53. Swept, and in the grid.
        double spacing = shape % 4 == 1 ? 4096 : 1, shift = shape % 4 == 2 ? -1e9 : shape % 4 == 3 ? 1e17 : 0;
        int32_t m = shape < 4 ? 10 : LARGE, all = m * m * m;
        for (int32_t i = 0; i < all; i++) {
            us_vec3 p = us_vec3_make(shift + spacing * (i % m), shift + spacing * (i / m % m),
                                     spacing * (i / (m * m)));
            boxes[i] = plain(box_at(p, us_vec3_make(0.5, 0.5, 0.5)), i);
        }
        // So far out all boxes of a layer are one point: more pairs than there is room for.
        if (shape == 7) all = 10 * 12;
        int64_t n = same_as_brute_force(broad, boxes, all, NULL, 0);
        int32_t edge = 3 * m - 2;
        if (shape % 4 == 0)
            assert_int_equal(n, (edge * edge * edge - all) /
                                    2);  // edge^3 ordered pairs with themselves, m^3 of them alone
        if (shape % 4 == 1) assert_int_equal(n, 0);
    }
    usi_broad_destroy(broad);
}

static void a_long_lived_object_gives_the_bytes_of_a_fresh_one(void **state) {
    (void)state;
    usi_broad *old = room_for(800, ROOM, NULL, 0);
    for (uint64_t step = 0; step < 20; step++) {
        int32_t n = (int32_t)(800 - 37 * step);
        usi_broad_box *boxes = some_boxes(step, n, 10, 0.2, 1);
        usi_broad *fresh = room_for(n, ROOM, NULL, 0);
        const usi_broad_pair *a, *b;
        int64_t n_a, n_b;
        assert_int_equal(usi_broad_find(old, boxes, n, &a, &n_a, NULL), US_OK);
        assert_int_equal(usi_broad_find(fresh, boxes, n, &b, &n_b, NULL), US_OK);
        assert_true(n_a > 0);
        assert_int_equal(n_a, n_b);
        assert_memory_equal(a, b, (size_t)n_a * sizeof *a);
        usi_broad_destroy(fresh);
        free(boxes);
    }
    usi_broad_destroy(old);
}

static void groups_bodies_and_exclusions_are_honoured(void **state) {
    (void)state;
    enum { N = 400, N_EXCLUDED = 3000 };
    static usi_broad_pair excluded[N_EXCLUDED];
    for (int32_t k = 0; k < N_EXCLUDED; k++) {
        // Body 3 has hundreds of them; others a few; some pairs come twice, some backwards, some name a body
        // with itself.
        int32_t a = k < 500 ? 3 : (int32_t)uniform(50, 2 * (uint64_t)k, 0, N),
                b = (int32_t)uniform(50, 2 * (uint64_t)k + 1, 0, N);
        excluded[k] = (usi_broad_pair){a, b};
    }
    usi_broad *broad = room_for(N, ROOM, excluded, N_EXCLUDED);
    for (uint64_t seed = 0; seed < 5; seed++) {
        usi_broad_box *boxes = some_boxes(60 + seed, N, 4, 0.3, 0.6);
        usi_broad *free_for_all = room_for(N, ROOM, NULL, 0);
        int64_t all = same_as_brute_force(free_for_all, boxes, N, NULL, 0),
                some = same_as_brute_force(broad, boxes, N, excluded, N_EXCLUDED);
        assert_true(some < all);
        for (int32_t i = 0; i < N; i++) {
            boxes[i].group = (uint32_t)us_random_bits(1, seed, 2 * (uint64_t)i) & 7;
            boxes[i].mask = (uint32_t)us_random_bits(1, seed, 2 * (uint64_t)i + 1) & 7;
            if (i % 4 == 0) boxes[i].body = 0;
        }
        int64_t fewer = same_as_brute_force(broad, boxes, N, excluded, N_EXCLUDED);
        assert_true(fewer > 0 && fewer < some);
        usi_broad_destroy(free_for_all);
        free(boxes);
    }
    usi_broad_destroy(broad);
}

static void infinite_and_huge_boxes_meet_what_they_reach(void **state) {
    (void)state;
    for (int32_t n = 600; n < 2000; n += 1200) {
        usi_broad *broad = room_for(n, ROOM, NULL, 0);
        usi_broad_box *boxes = some_boxes(3, n, 10, 0.1, 0.2);
        us_vec3 everywhere = us_vec3_make(INFINITY, INFINITY, INFINITY);
        boxes[5].box =
            (us_aabb){us_vec3_scale(-1, everywhere), us_vec3_make(INFINITY, INFINITY, 0)};  // a half space
        boxes[80].box = (us_aabb){us_vec3_scale(-1, everywhere), everywhere};
        boxes[300].box = (us_aabb){everywhere, everywhere};  // nowhere one can be
        boxes[599].box = box_at(us_vec3_make(0, 0, -500), us_vec3_make(500, 500, 500.5));  // a terrain
        boxes[77].box = (us_aabb){us_vec3_make(-1e308, -1e308, -1e308),
                                  us_vec3_make(1e308, 1e308, 1e308)};  // its side overflows
        assert_true(same_as_brute_force(broad, boxes, n, NULL, 0) > n + 500);
        free(boxes);
        usi_broad_destroy(broad);
    }
}

static void too_many_pairs_or_boxes_are_reported_with_the_number_needed(void **state) {
    (void)state;
    usi_broad_box *boxes = some_boxes(9, 200, 3, 0.3, 0.6);
    static usi_broad_pair expected[ROOM];
    int64_t needed = brute_force(boxes, 200, NULL, 0, expected), n = 0;
    assert_true(needed > 100);
    const usi_broad_pair *pairs = expected;
    us_error err = {0};
    for (int64_t room = 0; room < needed; room += needed - 1) {
        usi_broad *broad = room_for(200, room, NULL, 0);
        assert_int_equal(usi_broad_find(broad, boxes, 200, &pairs, &n, &err), US_ERR_LIMIT);
        assert_int_equal(n, needed);
        assert_null(pairs);
        assert_non_null(strstr(err.remedy, "max_pair"));
        usi_broad_destroy(broad);
    }
    usi_broad *broad = room_for(199, needed, NULL, 0);
    assert_int_equal(usi_broad_find(broad, boxes, 200, &pairs, &n, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.remedy, "max_box"));
    assert_int_equal(n, 0);
    usi_broad_destroy(broad);
    broad = room_for(200, needed, NULL, 0);  // exactly enough
    assert_int_equal(same_as_brute_force(broad, boxes, 200, NULL, 0), needed);
    usi_broad_destroy(broad);
    free(boxes);
}

static void boxes_that_are_none_are_refused_by_number(void **state) {
    (void)state;
    usi_broad *broad = room_for(40, ROOM, NULL, 0);
    for (int wrong = 0; wrong < 9; wrong++) {
        usi_broad_box *boxes = some_boxes(2, 40, 3, 0.3, 0.6);
        double *value[6] = {&boxes[31].box.min.x, &boxes[31].box.min.y, &boxes[31].box.min.z,
                            &boxes[31].box.max.x, &boxes[31].box.max.y, &boxes[31].box.max.z};
        if (wrong < 6)
            *value[wrong] = NAN;
        else if (wrong == 6)
            boxes[31].box.max.y = boxes[31].box.min.y - 1e-9;
        else
            boxes[31].body = wrong == 7 ? -1 : 41;
        const usi_broad_pair *pairs;
        int64_t n;
        us_error err = {0};
        assert_int_equal(usi_broad_find(broad, boxes, 40, &pairs, &n, &err), US_ERR_VALUE);
        assert_non_null(strstr(err.message, "box 31"));
        assert_true(err.remedy[0] != 0 && pairs == NULL && n == 0);
        free(boxes);
    }
    usi_broad_destroy(broad);
}

static void nothing_gives_nothing(void **state) {
    (void)state;
    usi_broad *broad = room_for(0, 0, NULL, 0);
    const usi_broad_pair *pairs = NULL;
    int64_t n = 7;
    assert_int_equal(usi_broad_find(broad, NULL, 0, &pairs, &n, NULL), US_OK);
    assert_int_equal(n, 0);
    usi_broad_destroy(broad);
    usi_broad_destroy(NULL);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    usi_broad *broad = NULL;
    usi_broad_pair beyond[2] = {{0, 1}, {2, 5}};
    usi_broad_def good = {4, 5, 4, NULL, 0, NULL}, bad = good;
    us_error err = {0};
    assert_int_equal(usi_broad_create(NULL, &broad, NULL), US_ERR_ARG);
    assert_int_equal(usi_broad_create(&good, NULL, NULL), US_ERR_ARG);
    bad.max_box = -1;
    assert_int_equal(usi_broad_create(&bad, &broad, NULL), US_ERR_ARG);
    bad = good;
    bad.n_excluded = 1;
    assert_int_equal(usi_broad_create(&bad, &broad, NULL), US_ERR_ARG);
    bad = good;
    bad.excluded = beyond;
    bad.n_excluded = 2;
    assert_int_equal(usi_broad_create(&bad, &broad, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "pair 1"));
    assert_null(broad);
    assert_int_equal(usi_broad_create(&good, &broad, NULL), US_OK);
    const usi_broad_pair *pairs;
    int64_t n;
    assert_int_equal(usi_broad_find(broad, NULL, 2, &pairs, &n, NULL), US_ERR_ARG);
    assert_int_equal(usi_broad_find(broad, NULL, 0, NULL, &n, NULL), US_ERR_ARG);
    usi_broad_destroy(broad);
}

static void memory_is_taken_once_and_given_back(void **state) {
    (void)state;
    test_allocator watch;
    test_allocator_init(&watch);
    usi_broad_def def = {300, 300, 10000, NULL, 0, &watch.allocator};
    usi_broad *broad = NULL;
    watch.fail_at = 1;
    assert_int_equal(usi_broad_create(&def, &broad, NULL), US_ERR_MEMORY);
    assert_null(broad);
    watch.fail_at = 0;
    assert_int_equal(usi_broad_create(&def, &broad, NULL), US_OK);
    int64_t before = watch.n_alloc;
    usi_broad_box *boxes = some_boxes(4, 300, 5, 0.3, 0.6);
    // The allocator fills memory with garbage: whatever was not set would show here.
    for (int k = 0; k < 3; k++)
        same_as_brute_force(broad, boxes, 300, NULL, 0);
    assert_int_equal(watch.n_alloc, before);
    free(boxes);
    usi_broad_destroy(broad);
    test_allocator_check(&watch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_scenes_give_the_pairs_of_brute_force),
        cmocka_unit_test(ten_thousand_boxes_give_the_pairs_of_brute_force),
        cmocka_unit_test(lattices_and_far_places_give_the_pairs_of_brute_force),
        cmocka_unit_test(a_long_lived_object_gives_the_bytes_of_a_fresh_one),
        cmocka_unit_test(groups_bodies_and_exclusions_are_honoured),
        cmocka_unit_test(infinite_and_huge_boxes_meet_what_they_reach),
        cmocka_unit_test(too_many_pairs_or_boxes_are_reported_with_the_number_needed),
        cmocka_unit_test(boxes_that_are_none_are_refused_by_number),
        cmocka_unit_test(nothing_gives_nothing),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(memory_is_taken_once_and_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
