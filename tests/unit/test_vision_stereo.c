// Stereo matching: pairs with known truth, the fast code against the plain one, settings, threads, memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "stereo_pair.h"
#include "vision/vision__stereo.h"

typedef struct pair {
    us_image left, right;
    float *disparity;
    int32_t width, height;
} pair;

static pair pair_of(const pair_scene *s, int32_t width, int32_t height) {
    pair p = {.width = width, .height = height};
    assert_int_equal(us_image_create(US_PIXEL_MONO8, width, height, NULL, &p.left), US_OK);
    assert_int_equal(us_image_create(US_PIXEL_MONO8, width, height, NULL, &p.right), US_OK);
    p.disparity = malloc((size_t)width * (size_t)height * sizeof p.disparity[0]);
    assert_non_null(p.disparity);
    pair_render(s, 0, 1, &p.left);
    pair_render(s, s->baseline, 2, &p.right);
    return p;
}

static void pair_fini(pair *p) {
    us_image_destroy(&p->left, NULL);
    us_image_destroy(&p->right, NULL);
    free(p->disparity);
}

static void match(const us_stereo_def *d, int32_t n_thread, const pair *p, float *out) {
    us_stereo *stereo;
    us_error err = {0};
    if (us_stereo_create(d, n_thread, NULL, &stereo, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_stereo_match(stereo, &p->left, &p->right, out), US_OK);
    us_stereo_destroy(stereo);
}

// The camera of the accuracy figures: 320 x 240, 60 degrees, baseline 0.15 m.
static pair_scene one_plane(us_vec3 normal, double distance) {
    pair_scene s = {
        .n = 1, .f = 277.12813, .baseline = 0.15, .cx = 159.5, .cy = 119.5, .grain = 0.011, .contrast = 0.9};
    s.noise = 1;
    s.plane[0] = (pair_plane){normal, distance, -1e9, 1e9, -1e9, 1e9};
    return s;
}

static int less(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Both methods and all costs.
static us_stereo_def def_of(int i, int32_t width, int32_t height) {
    us_stereo_def d = us_stereo_def_default(i == 0 ? US_STEREO_BLOCK : US_STEREO_SEMI_GLOBAL, width, height);
    d.n_disparity = 32;
    if (i == 2) d.cost = US_STEREO_CENSUS_9X7;
    if (i == 3) {
        d.cost = US_STEREO_SAD;
        d.window = 5;
        d.p1 = 8 * 25;
        d.p2 = 32 * 25;
    }
    return d;
}

static void a_plane_has_its_disparity(void **state) {
    (void)state;
    const pair_scene s = one_plane(us_vec3_make(0, 0, 1), 2);
    pair p = pair_of(&s, 320, 240);
    for (int i = 0; i < 4; i++) {
        const us_stereo_def d = def_of(i, 320, 240);
        match(&d, 1, &p, p.disparity);
        int n = 0, n_valid = 0;
        for (int y = 0; y < 240; y++)
            for (int x = 31; x < 320; x++, n++)
                if (p.disparity[y * 320 + x] != us_stereo_invalid(&d))
                    p.disparity[n_valid++] = p.disparity[y * 320 + x];
        qsort(p.disparity, (size_t)n_valid, sizeof(float), less);
        const double median = (double)p.disparity[n_valid / 2];
        // f T / Z = 277.128 * 0.15 / 2 = 20.785; the bound is what a quarter of sub-pixel bias may be.
        if (fabs(median - 20.785) > 0.05) fail_msg("method %d: median %g", i, median);
        if (n_valid < 0.97 * n) fail_msg("method %d: %d of %d valid", i, n_valid, n);
    }
    pair_fini(&p);
}

static void a_slanted_plane_keeps_its_slope(void **state) {
    (void)state;
    us_vec3 normal = us_vec3_make(0.45, -0.2, 1);
    normal = us_vec3_scale(1 / us_vec3_norm(normal), normal);
    const pair_scene s = one_plane(normal, 2);
    pair p = pair_of(&s, 320, 240);
    us_stereo_point *points = malloc(320 * 240 * sizeof *points);
    const us_rectification camera = {.width = 320,
                                     .height = 240,
                                     .f = s.f,
                                     .cx_left = s.cx,
                                     .cx_right = s.cx,
                                     .cy = s.cy,
                                     .baseline = s.baseline,
                                     .q_LN = {1, 0, 0, 0},
                                     .q_RN = {1, 0, 0, 0}};
    for (int i = 0; i < 4; i++) {
        us_stereo_def d = def_of(i, 320, 240);
        d.n_disparity = 64;
        match(&d, 1, &p, p.disparity);
        assert_true(us_stereo_points(&camera, p.disparity, us_stereo_invalid(&d), &p.left, points) >
                    320 * 240 * 3 / 5);
        // z = a x + b y + c by least squares on 1/z, where noise is even: 1/z = A u + B v + C is the plane
        // itself.
        double A[3][4] = {{0}};
        for (int k = 0; k < 320 * 240; k++) {
            if (!isfinite(points[k].x)) continue;
            const double z = (double)points[k].z,
                         q[4] = {(double)points[k].x / z, (double)points[k].y / z, 1, 1 / z};
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 4; c++)
                    A[r][c] += q[r] * q[c];
        }
        for (int c = 0; c < 3; c++)
            for (int r = 0; r < 3; r++) {
                if (r == c) continue;
                const double factor = A[r][c] / A[c][c];
                for (int k = c; k < 4; k++)
                    A[r][k] -= factor * A[c][k];
            }
        const us_vec3 found = us_vec3_make(A[0][3] / A[0][0], A[1][3] / A[1][1], A[2][3] / A[2][2]);
        const double angle =
            acos(fmin(1, us_vec3_dot(found, normal) / us_vec3_norm(found))) * 180 / 3.14159265358979;
        if (angle >= 0.5) fail_msg("method %d: normal off by %g degrees", i, angle);
    }
    free(points);
    pair_fini(&p);
}

// A board before a wall. Where the disparity changes, in every row, against where the board ends: by half a
// window at most; of paths the window is that of the census.
static void an_edge_is_where_it_is(void **state) {
    (void)state;
    pair_scene s = one_plane(us_vec3_make(0, 0, 1), 3);
    s.n = 2;
    s.plane[1] = (pair_plane){{0, 0, 1}, 1.7, -0.3, 0.35, -10, 10};
    pair p = pair_of(&s, 320, 240);
    const int half[4] = {4, 2, 4, 2};
    for (int i = 0; i < 4; i++) {
        us_stereo_def d = def_of(i, 320, 240);
        d.n_after = 0;
        match(&d, 1, &p, p.disparity);
        // The board's right edge: no place behind it is hidden from the right camera.
        const double edge = s.cx + s.f * 0.35 / 1.7;
        float found[240];
        for (int y = 0; y < 240; y++) {
            int x = (int)edge + 25;
            while (x > 0 && !(p.disparity[y * 320 + x] > 19))
                x--;
            found[y] = (float)x + 0.5f;
        }
        qsort(found, 240, sizeof(float), less);
        const double off = (double)found[120] - edge;
        // And the half pixel between two centres.
        if (fabs(off) > half[i] + 0.5) fail_msg("method %d: the edge is off by %g pixels", i, off);
    }
    pair_fini(&p);
}

// ---- the worked example of one path ----

// Four pixels in a row, four disparities, p1 = 2 and p2 = 6.
static void one_path_has_the_sums_worked_out_by_hand(void **state) {
    (void)state;
    const uint8_t C[4][4] = {{5, 1, 7, 9}, {6, 8, 2, 7}, {9, 2, 6, 3}, {1, 7, 8, 4}};
    const int32_t expected[4][4] = {{5, 1, 7, 9}, {8, 8, 4, 13}, {13, 4, 6, 5}, {3, 7, 10, 5}};
    const int winner[4] = {1, 2, 1, 0};
    int32_t L[4][4];
    for (int x = 0; x < 4; x++) {
        usi_path_step(x > 0 ? L[x - 1] : NULL, C[x], 4, 2, 6, L[x]);
        int best = 0;
        for (int d = 0; d < 4; d++) {
            assert_int_equal(L[x][d], expected[x][d]);
            if (L[x][d] < L[x][best]) best = d;
        }
        assert_int_equal(best, winner[x]);
    }
}

// ---- fast against plain ----

// A room that is small enough for the plain code, and odd in every size.
static pair small_room(void) {
    pair_scene s = pair_room(88, 48, 18);
    s.grain = 0.05;
    return pair_of(&s, 97, 37);
}

static void compare(const us_stereo_def *d, const pair *p) {
    us_stereo_def plain = *d;
    plain.is_plain = true;
    const size_t n = (size_t)p->width * (size_t)p->height;
    float *expected = malloc(n * sizeof(float));
    match(&plain, 1, p, expected);
    int n_valid = 0;
    for (size_t i = 0; i < n; i++)
        n_valid += expected[i] != us_stereo_invalid(d);
    // An empty picture would prove nothing.
    assert_true(n_valid > (int)n / 20);
    for (int n_thread = 1; n_thread <= 3; n_thread += 2) {
        match(d, n_thread, p, p->disparity);
        for (size_t i = 0; i < n; i++)
            if (p->disparity[i] != expected[i])
                fail_msg("pixel %zu, %zu: %.9g, plain %.9g (method %d cost %d n %d from %d, %d threads)",
                         i % (size_t)p->width, i / (size_t)p->width, (double)p->disparity[i],
                         (double)expected[i], (int)d->method, (int)d->cost, (int)d->n_disparity,
                         (int)d->min_disparity, n_thread);
    }
    free(expected);
}

static void the_fast_code_gives_the_plain_codes_bytes(void **state) {
    (void)state;
    pair p = small_room();
    const int32_t n_disparity[] = {16, 32, 48, 64};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            us_stereo_def d = def_of(i, p.width, p.height);
            d.n_disparity = n_disparity[k];
            d.min_disparity = k == 1 ? -5 : k == 2 ? 3 : 0;
            d.n_path = k == 3 ? 4 : 8;
            d.after[1].size = 10;
            compare(&d, &p);
        }
    pair_fini(&p);
}

static void every_setting_is_obeyed_alike(void **state) {
    (void)state;
    pair p = small_room();
    for (int i = 0; i < 4; i++) {
        us_stereo_def d = def_of(i, p.width, p.height);
        d.uniqueness = 0;
        d.left_right = -1;
        d.texture = 0;
        d.window = 1;
        d.p1 = 1;
        d.p2 = 1;
        d.n_after = 0;
        compare(&d, &p);
        d.uniqueness = 40;
        d.left_right = 3;
        d.window = d.method == US_STEREO_BLOCK ? 21 : 17;
        d.prefilter_cap = 63;
        d.texture = 3000;
        d.p1 = 3;
        d.p2 = d.cost == US_STEREO_SAD ? 20000 : 127;
        compare(&d, &p);
        d.n_disparity = 80;
        d.n_before = 3;
        d.before[0] = (us_filter){.kind = US_FILTER_MEDIAN};
        d.before[1] = (us_filter){.kind = US_FILTER_BLUR};
        d.before[2] = (us_filter){.kind = US_FILTER_NORMALIZE, .window = 9};
        d.n_after = 1;
        d.after[0] = (us_filter){.kind = US_FILTER_FILL};
        compare(&d, &p);
    }
    pair_fini(&p);
}

static void pictures_as_small_as_can_be_are_matched(void **state) {
    (void)state;
    pair_scene s = pair_room(30, 8, 0);
    for (int height = 1; height < 4; height++) {
        pair p = pair_of(&s, 17, height);
        for (int i = 0; i < 4; i++) {
            us_stereo_def d = def_of(i, 17, height);
            d.n_disparity = 16;
            d.texture = 0;
            match(&d, 2, &p, p.disparity);
            us_stereo_def plain = d;
            plain.is_plain = true;
            float expected[17 * 3];
            match(&plain, 1, &p, expected);
            assert_memory_equal(p.disparity, expected, sizeof(float) * 17 * (size_t)height);
        }
        pair_fini(&p);
    }
}

// ---- filters ----

static void the_median_takes_the_fifth_of_nine(void **state) {
    (void)state;
    pair p = small_room();
    us_stereo_def d = def_of(1, p.width, p.height);
    d.n_after = 0;
    match(&d, 1, &p, p.disparity);
    const size_t n = (size_t)p.width * (size_t)p.height;
    float *filtered = malloc(n * sizeof(float));
    d.n_after = 1;
    match(&d, 1, &p, filtered);
    const float invalid = us_stereo_invalid(&d);
    int n_changed = 0;
    for (int y = 1; y < p.height - 1; y++)
        for (int x = 1; x < p.width - 1; x++) {
            float nine[9];
            for (int k = 0; k < 9; k++)
                nine[k] = p.disparity[(y + k / 3 - 1) * p.width + x + k % 3 - 1];
            qsort(nine, 9, sizeof(float), less);
            const float was = p.disparity[y * p.width + x];
            assert_true(filtered[y * p.width + x] == (was == invalid ? invalid : nine[4]));
            n_changed += was != filtered[y * p.width + x];
        }
    assert_true(n_changed > 50);
    free(filtered);
    pair_fini(&p);
}

// Regions by flood fill, against those of the filter.
static int flood(const float *d, int *seen, int width, int height, int x, int y, int mark, float invalid) {
    static int stack[97 * 37];
    int n = 0, size = 0;
    stack[n++] = y * width + x;
    seen[y * width + x] = mark;
    while (n > 0) {
        const int i = stack[--n], step[4] = {-1, 1, -width, width};
        size++;
        for (int k = 0; k < 4; k++) {
            const int at_x = i % width + (k == 0 ? -1 : k == 1), at = i + step[k];
            if (at_x < 0 || at_x >= width || at < 0 || at >= width * height || seen[at]) continue;
            if (d[at] == invalid || fabsf(d[at] - d[i]) > 0.5f) continue;
            seen[at] = mark;
            stack[n++] = at;
        }
    }
    return size;
}

static void small_regions_are_dropped(void **state) {
    (void)state;
    pair p = small_room();
    us_stereo_def d = def_of(0, p.width, p.height);
    d.window = 3;
    d.uniqueness = 0;
    d.left_right = -1;
    d.texture = 0;
    d.n_after = 0;
    match(&d, 1, &p, p.disparity);
    const int n = p.width * p.height;
    float *filtered = malloc((size_t)n * sizeof(float));
    d.n_after = 1;
    d.after[0] = (us_filter){.kind = US_FILTER_SPECKLE, .size = 12, .range = 0.5};
    match(&d, 2, &p, filtered);
    int *seen = calloc((size_t)n, sizeof(int)), *size = calloc((size_t)n + 1, sizeof(int));
    int n_region = 0, n_dropped = 0;
    const float invalid = us_stereo_invalid(&d);
    for (int i = 0; i < n; i++) {
        if (p.disparity[i] == invalid) continue;
        if (!seen[i]) {
            n_region++;
            size[n_region] =
                flood(p.disparity, seen, p.width, p.height, i % p.width, i / p.width, n_region, invalid);
        }
        const bool stays = size[seen[i]] >= 12;
        assert_true(filtered[i] == (stays ? p.disparity[i] : invalid));
        n_dropped += !stays;
    }
    assert_true(n_region > 20 && n_dropped > 50);
    free(seen);
    free(size);
    free(filtered);
    pair_fini(&p);
}

static void holes_get_the_farther_neighbour(void **state) {
    (void)state;
    pair p = small_room();
    us_stereo_def d = def_of(1, p.width, p.height);
    d.n_after = 0;
    match(&d, 1, &p, p.disparity);
    const size_t n = (size_t)p.width * (size_t)p.height;
    float *filled = malloc(n * sizeof(float));
    d.n_after = 1;
    d.after[0] = (us_filter){.kind = US_FILTER_FILL};
    match(&d, 1, &p, filled);
    const float invalid = us_stereo_invalid(&d);
    for (int y = 0; y < p.height; y++) {
        const float *row = p.disparity + y * p.width;
        int before = -1;
        for (int x = 0; x < p.width; x++) {
            if (row[x] != invalid) {
                assert_true(filled[y * p.width + x] == row[x]);
                before = x;
                continue;
            }
            int after = x;
            while (after < p.width && row[after] == invalid)
                after++;
            float expected = before >= 0 ? row[before] : invalid;
            if (after < p.width && (before < 0 || row[after] < expected)) expected = row[after];
            assert_true(filled[y * p.width + x] == expected);
        }
    }
    free(filled);
    pair_fini(&p);
}

// ---- settings, formats, memory ----

static void settings_that_cannot_be_are_named(void **state) {
    (void)state;
    us_stereo_def d[24];
    for (int i = 0; i < 24; i++)
        d[i] = us_stereo_def_default(US_STEREO_SEMI_GLOBAL, 200, 100);
    int n = 0;
    d[n++].width = 0;
    d[n++].height = 70000;
    d[n++].method = (us_stereo_method)7;
    d[n++].cost = (us_stereo_cost)-1;
    d[n++].n_disparity = 0;
    d[n++].n_disparity = 24;
    d[n++].n_disparity = 1024;
    d[n++].min_disparity = 600;
    d[n++].min_disparity = 150;
    d[n++].min_disparity = -200;
    d[n++].window = 4;
    d[n++].window = 19;
    d[n++].prefilter_cap = 64;
    d[n++].texture = -1;
    d[n++].uniqueness = 100;
    d[n++].p1 = 0;
    d[n++].p2 = 5;
    d[n++].p2 = 128;
    d[n++].n_path = 5;
    d[n++].n_after = 9;
    d[n].n_before = 1;
    d[n++].before[0].kind = US_FILTER_SPECKLE;
    d[n].n_before = 1;
    d[n++].before[0] = (us_filter){.kind = US_FILTER_NORMALIZE, .window = 4};
    d[n++].after[1].range = NAN;
    d[n++].method = US_STEREO_BLOCK;
    assert_int_equal(n, 24);
    for (int i = 0; i < n; i++) {
        us_stereo *stereo = NULL;
        us_error err = {0};
        if (us_stereo_create(&d[i], 1, NULL, &stereo, &err) != US_ERR_VALUE)
            fail_msg("setting %d is taken", i);
        assert_null(stereo);
        assert_true(err.message[0] && err.remedy[0]);
    }
}

static void settings_change_while_running(void **state) {
    (void)state;
    pair p = small_room();
    const size_t n = (size_t)p.width * (size_t)p.height;
    float *expected = malloc(n * sizeof(float));
    us_stereo_def large = def_of(1, p.width, p.height);
    large.n_disparity = 64;
    us_stereo *stereo;
    us_error err = {0};
    assert_int_equal(us_stereo_create(&large, 1, NULL, &stereo, &err), US_OK);
    for (int k = 0; k < 3; k++) {
        us_stereo_def d = large;
        d.n_disparity = 16 << k;
        d.min_disparity = 2 - k;
        d.p2 = 30 + 30 * k;
        assert_int_equal(us_stereo_set(stereo, &d, &err), US_OK);
        assert_int_equal(us_stereo_match(stereo, &p.left, &p.right, p.disparity), US_OK);
        match(&d, 1, &p, expected);
        assert_memory_equal(p.disparity, expected, n * sizeof(float));
        assert_int_equal(us_stereo_get_def(stereo).p2, d.p2);
    }
    us_stereo_def more = large;
    more.n_disparity = 96;
    assert_int_equal(us_stereo_set(stereo, &more, &err), US_ERR_LIMIT);
    assert_true(err.remedy[0]);
    more = large;
    more.height++;
    assert_int_equal(us_stereo_set(stereo, &more, &err), US_ERR_ARG);
    more = large;
    more.p1 = -1;
    assert_int_equal(us_stereo_set(stereo, &more, &err), US_ERR_VALUE);
    assert_int_equal(us_stereo_match(stereo, &p.left, &p.right, p.disparity), US_OK);
    assert_memory_equal(p.disparity, expected, n * sizeof(float));
    us_stereo_destroy(stereo);
    free(expected);
    pair_fini(&p);
}

static void pictures_of_any_format_are_taken(void **state) {
    (void)state;
    pair p = small_room();
    us_stereo_def d = def_of(1, p.width, p.height);
    const size_t n = (size_t)p.width * (size_t)p.height;
    float *expected = malloc(n * sizeof(float));
    match(&d, 1, &p, expected);
    for (int format = US_PIXEL_MONO16; format <= US_PIXEL_RGB16; format++) {
        pair q = p;
        const int n_channel = format == US_PIXEL_MONO16 ? 1 : 3;
        for (int side = 0; side < 2; side++) {
            us_image *to = side ? &q.right : &q.left;
            const uint8_t *from = side ? p.right.pixels : p.left.pixels;
            assert_int_equal(us_image_create((us_pixel_format)format, p.width, p.height, NULL, to), US_OK);
            for (size_t i = 0; i < n * (size_t)n_channel; i++) {
                const uint8_t grey = from[i / (size_t)n_channel];
                if (format == US_PIXEL_RGB8) {
                    ((uint8_t *)to->pixels)[i] = grey;
                } else {
                    ((uint16_t *)to->pixels)[i] = (uint16_t)(grey << 8 | 77);
                }
            }
        }
        match(&d, 1, &q, q.disparity);
        assert_memory_equal(q.disparity, expected, n * sizeof(float));
        us_image_destroy(&q.left, NULL);
        us_image_destroy(&q.right, NULL);
    }
    free(expected);
    pair_fini(&p);
}

static void matching_allocates_nothing(void **state) {
    (void)state;
    pair p = small_room();
    for (int i = 0; i < 4; i++) {
        test_allocator counts;
        test_allocator_init(&counts);
        const us_stereo_def d = def_of(i, p.width, p.height);
        us_stereo *stereo;
        us_error err = {0};
        assert_int_equal(us_stereo_create(&d, 2, &counts.allocator, &stereo, &err), US_OK);
        const int64_t before = counts.n_alloc;
        for (int k = 0; k < 2; k++)
            assert_int_equal(us_stereo_match(stereo, &p.left, &p.right, p.disparity), US_OK);
        assert_int_equal(counts.n_alloc, before);
        us_stereo_destroy(stereo);
        test_allocator_check(&counts);
        // Each allocation fails in turn.
        for (int64_t k = 1; k <= before; k++) {
            test_allocator failing;
            test_allocator_init(&failing);
            failing.fail_at = k;
            assert_int_equal(us_stereo_create(&d, 2, &failing.allocator, &stereo, &err), US_ERR_MEMORY);
            test_allocator_check(&failing);
        }
    }
    pair_fini(&p);
}

static void pictures_of_another_size_are_refused(void **state) {
    (void)state;
    pair p = small_room();
    const us_stereo_def d = def_of(1, p.width, p.height - 1);
    us_stereo *stereo;
    us_error err = {0};
    assert_int_equal(us_stereo_create(&d, 1, NULL, &stereo, &err), US_OK);
    assert_int_equal(us_stereo_match(stereo, &p.left, &p.right, p.disparity), US_ERR_ARG);
    assert_int_equal(us_stereo_match(stereo, NULL, &p.right, p.disparity), US_ERR_ARG);
    us_stereo_destroy(stereo);
    pair_fini(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plane_has_its_disparity),
        cmocka_unit_test(a_slanted_plane_keeps_its_slope),
        cmocka_unit_test(an_edge_is_where_it_is),
        cmocka_unit_test(one_path_has_the_sums_worked_out_by_hand),
        cmocka_unit_test(the_fast_code_gives_the_plain_codes_bytes),
        cmocka_unit_test(every_setting_is_obeyed_alike),
        cmocka_unit_test(pictures_as_small_as_can_be_are_matched),
        cmocka_unit_test(the_median_takes_the_fifth_of_nine),
        cmocka_unit_test(small_regions_are_dropped),
        cmocka_unit_test(holes_get_the_farther_neighbour),
        cmocka_unit_test(settings_that_cannot_be_are_named),
        cmocka_unit_test(settings_change_while_running),
        cmocka_unit_test(pictures_of_any_format_are_taken),
        cmocka_unit_test(matching_allocates_nothing),
        cmocka_unit_test(pictures_of_another_size_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
