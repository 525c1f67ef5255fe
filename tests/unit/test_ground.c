// Tiles of ground for the page: against the samples that they are cut from, of a field in memory and of a
// site on disk.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/view__asset.h"
#include "view/view__ground.h"

enum { NX = 301, NY = 150, PHOTO = 200 };

static float height_of(int64_t i, int64_t j) {
    return (float)(0.01 * (double)i + 3 * sin(0.1 * (double)j) - (double)(i * j % 7));
}

static double heights[NX * NY];

static us_shape_def dense(void) {
    for (int32_t j = 0; j < NY; j++) {
        for (int32_t i = 0; i < NX; i++)
            heights[j * NX + i] = (double)height_of(i, j);
    }
    us_shape_def shape = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    shape.heights = heights;
    shape.n_x = NX;
    shape.n_y = NY;
    shape.size[0] = 0.5;
    shape.size[1] = 0.25;
    return shape;
}

static void check(us_status status, const us_error *err) {
    if (status) fail_msg("%s: %s", err->file, err->message);
}

// The same ground as a site, with a photograph of PHOTO x PHOTO colours over twice its width: red grows to
// the east, green to the north.
static const char *site(void) {
    static const char path[] = "ground-site";
    static bool is_made;
    if (is_made) return path;
    is_made = true;
    if (system("rm -rf ground-site") != 0) fail_msg("the directory of the test cannot be cleared");
    us_site_info info = {.n_layer = 2, .wkt = ""};
    info.layer[0] = (us_layer_info){
        .name = "height", .type = US_LAYER_NUMBER, .n_x = NX, .n_y = NY, .dx = 0.5, .dy = 0.25};
    info.layer[1] = (us_layer_info){
        .name = "colour", .type = US_LAYER_COLOUR, .n_x = PHOTO, .n_y = PHOTO, .dx = 1.5, .dy = 0.75};
    us_site *s = NULL;
    us_error err = {0};
    check(us_site_create(path, &info, NULL, &s, &err), &err);
    static float samples[US_SITE_TILE * US_SITE_TILE];
    static uint8_t colours[US_SITE_TILE * US_SITE_TILE * 4];
    for (int32_t layer = 0; layer < 2; layer++) {
        int32_t n_x, n_y;
        for (int32_t v = 0; us_site_tile_size(s, layer, 0, 0, v, &n_x, &n_y); v++) {
            for (int32_t u = 0; us_site_tile_size(s, layer, 0, u, v, &n_x, &n_y); u++) {
                for (int32_t k = 0; k < n_x * n_y; k++) {
                    int32_t i = u * US_SITE_TILE + k % n_x, j = v * US_SITE_TILE + k / n_x;
                    samples[k] = height_of(i, j);
                    const uint8_t rgba[4] = {(uint8_t)i, (uint8_t)j, 7, 255};
                    memcpy(colours + 4 * k, rgba, 4);
                }
                check(us_site_write(s, layer, u, v, layer ? (const void *)colours : samples, &err), &err);
            }
        }
    }
    check(us_site_finish(s, NULL, NULL, &err), &err);
    us_site_close(s);
    return path;
}

static us_shape_def on_disk(void) {
    us_shape_def shape = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    shape.site = site();
    return shape;
}

static usi_ground open_ground(const us_shape_def *shape) {
    us_allocator a = us_allocator_default();
    us_error err = {0};
    usi_ground ground;
    check(usi_ground_open(shape, &a, &ground, &err), &err);
    return ground;
}

static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

// Every tile of every level; how many there are. At the far edge a site has the last sample of its level, or
// of its coarsest one, in place of the last of all.
static int32_t check_tiles(const usi_ground *ground) {
    us_allocator a = us_allocator_default();
    us_error err = {0};
    float out[USI_GROUND_SIDE * USI_GROUND_SIDE];
    int32_t n = 0;
    for (int32_t level = 0; level < ground->n_level; level++) {
        for (int32_t v = 0; usi_ground_tile(ground, &a, level, 0, v, out, &err) == US_OK; v++) {
            for (int32_t u = 0; usi_ground_tile(ground, &a, level, u, v, out, &err) == US_OK; u++, n++) {
                for (int32_t k = 0; k < USI_GROUND_SIDE * USI_GROUND_SIDE; k++) {
                    int64_t i = (int64_t)(u * USI_GROUND_TILE + k % USI_GROUND_SIDE - USI_GROUND_BORDER) *
                                (1 << level);
                    int64_t j = (int64_t)(v * USI_GROUND_TILE + k / USI_GROUND_SIDE - USI_GROUND_BORDER) *
                                (1 << level);
                    if (ground->site) {
                        const int32_t kept =
                            level < ground->height.n_level ? level : ground->height.n_level - 1;
                        i = i < NX ? i : (NX - 1) >> kept << kept;
                        j = j < NY ? j : (NY - 1) >> kept << kept;
                    }
                    float wanted = height_of(within(i, NX), within(j, NY));
                    if (out[k] != wanted)
                        fail_msg("level %d, tile %d, %d, sample %d: %g and not %g", (int)level, (int)u,
                                 (int)v, (int)k, (double)out[k], (double)wanted);
                }
            }
        }
    }
    return n;
}

static void every_tile_has_the_samples_of_its_level(void **state) {
    (void)state;
    us_shape_def shapes[] = {dense(), on_disk()};
    for (int i = 0; i < 2; i++) {
        usi_ground ground = open_ground(&shapes[i]);
        // 300 cells: 10 tiles across at level 0 and 5 up, then 5 and 3, 3 and 2, 2 and 1, 1.
        assert_int_equal(ground.n_level, 5);
        assert_int_equal(check_tiles(&ground), 50 + 15 + 6 + 2 + 1);
        double low, high;
        usi_ground_extremes(&ground, &low, &high);
        double least = INFINITY, most = -INFINITY;
        for (int32_t k = 0; k < NX * NY; k++) {
            least = fmin(least, heights[k]);
            most = fmax(most, heights[k]);
        }
        // site.json has them in decimals, good to 15 digits.
        assert_true(fabs(low - least) < 1e-12 && fabs(high - most) < 1e-12);
        usi_ground_close(&ground);
    }
}

static void tiles_that_are_none_are_refused(void **state) {
    (void)state;
    us_shape_def shape = dense();
    usi_ground ground = open_ground(&shape);
    us_allocator a = us_allocator_default();
    float out[USI_GROUND_SIDE * USI_GROUND_SIDE];
    const int32_t bad[][3] = {{-1, 0, 0}, {5, 0, 0}, {0, 10, 0}, {0, 0, 5},        {0, -1, 0},
                              {0, 0, -1}, {4, 1, 0}, {4, 0, 1},  {0, INT32_MAX, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        us_error err = {0};
        assert_int_equal(usi_ground_tile(&ground, &a, bad[i][0], bad[i][1], bad[i][2], out, &err),
                         US_ERR_NAME);
        assert_true(err.message[0] && err.remedy[0]);
    }
    us_error err = {0};
    uint8_t photo[4];
    assert_int_equal(usi_ground_picture(&ground, &a, 0, 0, 1, 1, 1, photo, &err), US_ERR_NAME);
    us_shape_def others[] = {us_shape_def_default(US_SHAPE_BOX), us_shape_def_default(US_SHAPE_HEIGHT_FIELD),
                             dense()};
    others[2].site = "no-such-site";
    const us_status wanted[] = {US_ERR_NAME, US_ERR_NAME, US_ERR_IO};
    for (int i = 0; i < 3; i++)
        assert_int_equal(usi_ground_open(&others[i], &a, &ground, &err), wanted[i]);
}

static void the_photograph_lies_where_the_ground_does(void **state) {
    (void)state;
    us_shape_def shape = on_disk();
    usi_ground ground = open_ground(&shape);
    us_allocator a = us_allocator_default();
    us_error err = {0};
    static uint8_t out[USI_GROUND_PIXELS * USI_GROUND_PIXELS * 4];
    for (int32_t level = 0; level < ground.n_level; level++) {
        check(usi_ground_photo(&ground, &a, level, 0, 0, out, &err), &err);
        double side = USI_GROUND_TILE * (1 << level);
        for (int32_t k = 0; k < USI_GROUND_PIXELS * USI_GROUND_PIXELS; k++) {
            // The colour at the middle of the pixel: both lie around the same middle.
            const int32_t across = k % USI_GROUND_PIXELS, up = k / USI_GROUND_PIXELS;
            double x = -0.5 * (NX - 1) * 0.5 + (across + 0.5) / USI_GROUND_PIXELS * side * 0.5;
            double y = -0.5 * (NY - 1) * 0.25 + (up + 0.5) / USI_GROUND_PIXELS * side * 0.25;
            double red = fmin(fmax(x / 1.5 + 0.5 * (PHOTO - 1), 0), PHOTO - 1),
                   green = fmin(fmax(y / 0.75 + 0.5 * (PHOTO - 1), 0), PHOTO - 1);
            // Half a step by rounding, and half of one in the means of coarser levels.
            if (!(fabs(out[4 * k] - red) <= 1.01 && fabs(out[4 * k + 1] - green) <= 1.01))
                fail_msg("level %d, pixel %d: %d, %d and not %g, %g", (int)level, (int)k, out[4 * k],
                         out[4 * k + 1], red, green);
            assert_true(out[4 * k + 2] == 7 && out[4 * k + 3] == 255);
        }
    }
    usi_ground_close(&ground);
}

static void a_tile_of_a_site_that_is_gone_is_said(void **state) {
    (void)state;
    us_shape_def shape = on_disk();
    usi_ground ground = open_ground(&shape);
    us_allocator a = us_allocator_default();
    us_error err = {0};
    float out[USI_GROUND_SIDE * USI_GROUND_SIDE];
    assert_int_equal(rename("ground-site/height/0/1_0.tile", "kept.tile"), 0);
    assert_int_equal(usi_ground_tile(&ground, &a, 0, 8, 0, out, &err), US_ERR_IO);
    assert_non_null(strstr(err.file, "1_0.tile"));
    assert_int_equal(rename("kept.tile", "ground-site/height/0/1_0.tile"), 0);
    check(usi_ground_tile(&ground, &a, 0, 8, 0, out, &err), &err);
    usi_ground_close(&ground);
}

static void numbers_of_a_name_are_read_strictly(void **state) {
    (void)state;
    int32_t at[3];
    const char *ending = NULL;
    assert_true(usi_asset_scan("2/4_50.field", "/_", at, &ending));
    assert_true(at[0] == 2 && at[1] == 4 && at[2] == 50);
    assert_string_equal(ending, ".field");
    const char *const bad[] = {"",       "2",      "2/4",    "2/4_",   "2_4_5",
                               "02/4_5", "2/-4_5", "2/4_ 5", "2//4_5", "2/4_9999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(usi_asset_scan(bad[i], "/_", at, &ending));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_has_the_samples_of_its_level),
        cmocka_unit_test(tiles_that_are_none_are_refused),
        cmocka_unit_test(the_photograph_lies_where_the_ground_does),
        cmocka_unit_test(a_tile_of_a_site_that_is_gone_is_said),
        cmocka_unit_test(numbers_of_a_name_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
