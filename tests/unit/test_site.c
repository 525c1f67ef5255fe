// Sites: what was written is read again, at every level, and what is damaged is named.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "site_make.h"
#include "understudy/terrain.h"

enum { N_X = 601, N_Y = 300, REGION_X = 520, REGION_Y = 40 };

static float sample_height(int32_t i, int32_t j) {
    return (float)(10 * sin(0.013 * i) * cos(0.021 * j) + 0.001 * i);
}
static uint8_t sample_region(int32_t i, int32_t j) { return (uint8_t)((i / 7 + j / 3) % 5); }

static us_site_info description(void) {
    us_site_info info = {.n_layer = 3,
                         .origin = {500000.25, 4000000.5, 12.125},
                         .reference = "WGS 84 / UTM zone 10N",
                         .wkt = "PROJCS[\"a \\ b\"]",
                         .n_gap = 7};
    info.layer[0] = (us_layer_info){
        .name = "height", .type = US_LAYER_NUMBER, .n_x = N_X, .n_y = N_Y, .dx = 0.1, .dy = 1.0 / 3};
    info.layer[1] = (us_layer_info){
        .name = "region", .type = US_LAYER_REGION, .n_x = REGION_X, .n_y = REGION_Y, .dx = 0.1, .dy = 2};
    info.layer[2] =
        (us_layer_info){.name = "colour", .type = US_LAYER_COLOUR, .n_x = 300, .n_y = 3, .dx = 0.2, .dy = 30};
    return info;
}

static void fill(const us_site *site, int32_t layer, int32_t u, int32_t v, void *out) {
    int32_t n_x, n_y;
    assert_true(us_site_tile_size(site, layer, 0, u, v, &n_x, &n_y));
    for (int32_t j = 0; j < n_y; j++) {
        for (int32_t i = 0; i < n_x; i++) {
            int32_t x = u * US_SITE_TILE + i, y = v * US_SITE_TILE + j, k = j * n_x + i;
            if (layer == 0) ((float *)out)[k] = sample_height(x, y);
            if (layer == 1) ((uint8_t *)out)[k] = sample_region(x, y);
            if (layer == 2)
                memcpy((uint8_t *)out + 4 * (ptrdiff_t)k,
                       (uint8_t[]){(uint8_t)x, (uint8_t)(10 * y), (uint8_t)(x * y), x == 4 ? 0 : 200}, 4);
        }
    }
}

static void write_layer(us_site *site, int32_t layer, bool is_backwards) {
    us_site_info info = us_site_get_info(site);
    int32_t n_u = (info.layer[layer].n_x + US_SITE_TILE - 1) / US_SITE_TILE,
            n_v = (info.layer[layer].n_y + US_SITE_TILE - 1) / US_SITE_TILE;
    static float samples[US_SITE_TILE * US_SITE_TILE];
    us_error err = {0};
    for (int32_t t = 0; t < n_u * n_v; t++) {
        int32_t k = is_backwards ? n_u * n_v - 1 - t : t;
        fill(site, layer, k % n_u, k / n_u, samples);
        if (us_site_write(site, layer, k % n_u, k / n_u, samples, &err))
            fail_msg("%s: %s", err.file, err.message);
    }
}

static void make(const char *path, bool is_backwards, const us_allocator *allocator) {
    site_clear(path);
    us_site_info info = description();
    us_site *site = NULL;
    us_error err = {0};
    if (us_site_create(path, &info, allocator, &site, &err)) fail_msg("%s: %s", err.file, err.message);
    for (int32_t layer = 0; layer < info.n_layer; layer++)
        write_layer(site, is_backwards ? info.n_layer - 1 - layer : layer, is_backwards);
    us_site_add_gaps(site, 2);
    if (us_site_finish(site, NULL, NULL, &err)) fail_msg("%s: %s", err.file, err.message);
    us_site_close(site);
}

static us_site *open_site(const char *path) {
    us_site *site = NULL;
    us_error err = {0};
    if (us_site_open(path, NULL, &site, &err)) fail_msg("%s: %s", err.file, err.message);
    return site;
}

static void what_a_site_says_of_itself_is_read_again_to_the_last_bit(void **state) {
    (void)state;
    make("said", false, NULL);
    us_site *site = open_site("said/");
    us_site_info a = description(), b = us_site_get_info(site);
    assert_int_equal(b.n_layer, 3);
    assert_memory_equal(&a.origin, &b.origin, sizeof a.origin);
    assert_string_equal(a.reference, b.reference);
    assert_string_equal(a.wkt, b.wkt);
    assert_int_equal(b.n_gap, 7 + 2);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(a.layer[i].name, b.layer[i].name);
        assert_int_equal(a.layer[i].type, b.layer[i].type);
        assert_true(a.layer[i].n_x == b.layer[i].n_x && a.layer[i].n_y == b.layer[i].n_y);
        assert_true(a.layer[i].dx == b.layer[i].dx && a.layer[i].dy == b.layer[i].dy);
    }
    // 601 by 300 and 301 by 150 do not fit into a tile, 151 by 75 does; 520 by 40, 260 by 20, 130 by 10; 300
    // by 3, 150 by 2.
    assert_true(b.layer[0].n_level == 3 && b.layer[1].n_level == 3 && b.layer[2].n_level == 2);
    float low = INFINITY, high = -INFINITY;
    for (int32_t k = 0; k < N_X * N_Y; k++) {
        low = fminf(low, sample_height(k % N_X, k / N_X));
        high = fmaxf(high, sample_height(k % N_X, k / N_X));
    }
    assert_true(b.layer[0].low == (double)low && b.layer[0].high == (double)high);
    assert_true(us_site_find_layer(site, "region") == 1 && us_site_find_layer(site, "soil") == -1);
    us_site_close(site);
}

static void every_number_and_region_of_every_level_is_the_one_that_was_written(void **state) {
    (void)state;
    make("levels", false, NULL);
    us_site *site = open_site("levels");
    static float samples[US_SITE_TILE * US_SITE_TILE];
    for (int32_t layer = 0; layer < 2; layer++) {
        us_layer_info l = us_site_get_info(site).layer[layer];
        for (int32_t level = 0; level < l.n_level; level++) {
            int64_t n = 0;
            int32_t n_x, n_y;
            us_error err = {0};
            for (int32_t v = 0; us_site_tile_size(site, layer, level, 0, v, &n_x, &n_y); v++) {
                for (int32_t u = 0; us_site_tile_size(site, layer, level, u, v, &n_x, &n_y); u++) {
                    if (us_site_read(site, layer, level, u, v, samples, &err))
                        fail_msg("%s: %s", err.file, err.message);
                    n += (int64_t)n_x * n_y;
                    for (int32_t k = 0; k < n_x * n_y; k++) {
                        int32_t i = (u * US_SITE_TILE + k % n_x) << level, j = (v * US_SITE_TILE + k / n_x)
                                                                               << level;
                        assert_true(layer == 0 ? samples[k] == sample_height(i, j)
                                               : ((uint8_t *)samples)[k] == sample_region(i, j));
                    }
                }
            }
            assert_int_equal(n, (((l.n_x - 1) >> level) + 1) * (((l.n_y - 1) >> level) + 1));
        }
    }
    us_site_close(site);
}

static void a_coarser_colour_is_the_mean_of_four_without_the_holes(void **state) {
    (void)state;
    make("colours", false, NULL);
    us_site *site = open_site("colours");
    static uint8_t c[US_SITE_TILE * US_SITE_TILE][4];
    us_error err = {0};
    assert_int_equal(us_site_read(site, 2, 1, 0, 0, c, &err), US_OK);
    // Red is x: of 6 and 7 twice, 6.5 is rounded up; green is 10 y: of 0 and 10, 5. Where x = 4 is a hole, so
    // that of 4 and 5 only 5 counts.
    assert_true(c[3][0] == 7 && c[3][1] == 5 && c[3][3] == 200);
    assert_true(c[2][0] == 5 && c[2][1] == 5 && c[2][3] == 100);
    // The last row has no neighbour: 150 + 3 is in it, of y = 2 alone.
    assert_true(c[153][0] == 7 && c[153][1] == 20 && c[153][3] == 200);
    us_site_close(site);
}

static void the_hash_is_of_the_samples_and_not_of_the_order_they_came_in(void **state) {
    (void)state;
    make("forwards", false, NULL);
    make("backwards", true, NULL);
    us_site *a = open_site("forwards"), *b = open_site("backwards");
    assert_true(us_site_get_info(a).hash == us_site_get_info(b).hash);
    us_site_close(b);
    site_clear("backwards");
    us_site_info info = description();
    info.layer[0].dx = 0.11;
    us_error err = {0};
    assert_int_equal(us_site_create("backwards", &info, NULL, &b, &err), US_OK);
    for (int32_t layer = 0; layer < 3; layer++)
        write_layer(b, layer, false);
    assert_int_equal(us_site_finish(b, NULL, NULL, &err), US_OK);
    assert_true(us_site_get_info(a).hash != us_site_get_info(b).hash);
    us_site_close(a);
    us_site_close(b);
}

static void a_site_that_was_not_finished_is_none(void **state) {
    (void)state;
    site_clear("half");
    us_site_info info = description();
    us_site *site = NULL;
    us_error err = {0};
    assert_int_equal(us_site_create("half", &info, NULL, &site, &err), US_OK);
    write_layer(site, 0, false);
    write_layer(site, 2, false);
    assert_int_equal(us_site_finish(site, NULL, NULL, &err), US_ERR_ARG);
    assert_non_null(strstr(err.message, "tile (0, 0) of layer \"region\""));
    us_site_close(site);
    assert_int_equal(us_site_open("half", NULL, &site, &err), US_ERR_IO);
    assert_non_null(strstr(err.file, "half/site.json"));
    assert_non_null(strstr(err.remedy, "terrain"));
    // And what is there is not written over.
    assert_int_equal(us_site_create("half", &info, NULL, &site, &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "not empty"));
}

static void a_hole_a_second_writing_and_a_tile_that_there_is_not_are_refused(void **state) {
    (void)state;
    site_clear("refused");
    us_site_info info = description();
    us_site *site = NULL;
    us_error err = {0};
    static float samples[US_SITE_TILE * US_SITE_TILE];
    assert_int_equal(us_site_create("refused", &info, NULL, &site, &err), US_OK);
    fill(site, 0, 2, 1, samples);
    samples[3] = NAN;
    assert_int_equal(us_site_write(site, 0, 2, 1, samples, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "(515, 256) of layer \"height\""));
    samples[3] = 0;
    assert_int_equal(us_site_write(site, 0, 2, 1, samples, &err), US_OK);
    assert_int_equal(us_site_write(site, 0, 2, 1, samples, &err), US_ERR_ARG);
    assert_non_null(strstr(err.message, "twice"));
    assert_int_equal(us_site_write(site, 0, 3, 0, samples, &err), US_ERR_ARG);
    assert_int_equal(us_site_write(site, 3, 0, 0, samples, &err), US_ERR_ARG);
    assert_int_equal(us_site_read(site, 0, 9, 0, 0, samples, &err), US_ERR_ARG);
    us_site_close(site);
}

static void descriptions_that_cannot_be_used_are_refused(void **state) {
    (void)state;
    us_site *site = NULL;
    us_error err = {0};
    us_site_info good = description(), bad[10];
    for (size_t i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].n_layer = 0;
    bad[1].n_layer = US_SITE_LAYERS + 1;
    bad[2].layer[0].type = US_LAYER_REGION;
    memcpy(bad[3].layer[0].name, "ground", 7);
    memcpy(bad[4].layer[1].name, "height", 7);
    memcpy(bad[5].layer[1].name, "../up", 6);
    bad[6].layer[2].n_x = 1;
    bad[7].layer[1].dy = 0;
    bad[8].origin.z = INFINITY;
    bad[9].layer[1].type = US_LAYER_COUNT;
    for (size_t i = 0; i < 10; i++) {
        err = (us_error){0};
        assert_int_not_equal(us_site_create("refused_too", &bad[i], NULL, &site, &err), US_OK);
        assert_true(err.message[0] && err.remedy[0]);
    }
    assert_int_equal(us_site_create("no/such/place", &good, NULL, &site, &err), US_ERR_IO);
    assert_int_equal(us_site_create(NULL, &good, NULL, &site, &err), US_ERR_ARG);
    assert_int_equal(us_site_open(NULL, NULL, &site, &err), US_ERR_ARG);
    assert_int_equal(us_site_open("", NULL, &site, &err), US_ERR_ARG);
    us_site_close(NULL);
}

static size_t read_file(const char *path, char *out, size_t cap) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, cap, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void expect_bad_tile(const char *message) {
    static float samples[US_SITE_TILE * US_SITE_TILE];
    us_site *site = open_site("damaged");
    us_error err = {0};
    assert_int_equal(us_site_read(site, 0, 0, 1, 0, samples, &err), US_ERR_IO);
    assert_non_null(strstr(err.file, "damaged/height/0/1_0.tile"));
    assert_non_null(strstr(err.message, message));
    assert_non_null(strstr(err.remedy, "put the file back"));
    us_site_close(site);
}

static void a_tile_that_is_missing_cut_changed_or_another_s_is_named(void **state) {
    (void)state;
    make("damaged", false, NULL);
    const char *path = "damaged/height/0/1_0.tile";
    static char bytes[300000], other[300000];
    size_t n = read_file(path, bytes, sizeof bytes - 1),
           m = read_file("damaged/height/0/0_0.tile", other, sizeof other);
    write_file(path, bytes, n - 1);
    expect_bad_tile("cut off");
    write_file(path, bytes, n + 1);
    expect_bad_tile("cut off");
    write_file(path, bytes, 20);
    expect_bad_tile("does not begin");
    write_file(path, other, m);
    expect_bad_tile("not those that were written there");
    m = read_file("damaged/height/0/2_0.tile", other, sizeof other);
    write_file(path, other, m);
    expect_bad_tile("another size");
    static const size_t at[] = {0, 4, 5, 9, 13, 17, 25, 40, 1000};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        bytes[at[i]] ^= 0x10;
        write_file(path, bytes, n);
        expect_bad_tile("damaged");
        bytes[at[i]] ^= 0x10;
    }
    assert_int_equal(remove(path), 0);
    expect_bad_tile("missing");
    // Put back, it is read as if nothing had been.
    write_file(path, bytes, n);
    static float samples[US_SITE_TILE * US_SITE_TILE];
    us_site *site = open_site("damaged");
    assert_int_equal(us_site_read(site, 0, 0, 1, 0, samples, NULL), US_OK);
    us_site_close(site);
}

// Replaces the first occurrence of a word in site.json and expects the site to be refused; "" as the word:
// cuts the file there.
static void expect_bad_json(const char *word, const char *instead) {
    static char text[65536], changed[65536];
    size_t n = read_file("json/site.json", text, sizeof text - 1);
    text[n] = 0;
    char *at = strstr(text, word);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, instead, at + strlen(word));
    write_file("json/site.json", changed, strlen(changed));
    us_site *site = NULL;
    us_error err = {0};
    if (us_site_open("json", NULL, &site, &err) != US_ERR_SYNTAX)
        fail_msg("\"%s\" for \"%s\" is taken", instead, word);
    assert_int_equal(err.code, US_ERR_SYNTAX);
    assert_non_null(strstr(err.file, "json/site.json"));
    assert_true(err.message[0] && err.remedy[0]);
    write_file("json/site.json", text, n);
}

static void a_damaged_site_json_is_named_with_what_is_wrong_in_it(void **state) {
    (void)state;
    make("json", false, NULL);
    static const char *const wrong[][2] = {
        {"{", "["},
        {"understudy-site", "another"},
        {"\"version\":\t1", "\"version\":\t2"},
        {"\"tile\":\t256", "\"tile\":\t255"},
        {"\"origin\":\t[", "\"origin\":\t[1, "},
        {"500000.25", "1e999"},
        {"\"gaps\":\t9", "\"gaps\":\t-9"},
        {"\"hash\":\t\"", "\"hash\":\t\"x"},
        {"\"layers\"", "\"layer\""},
        {"\"height\"", "\"heights\""},
        {"\"region\"", "\"a/b\""},
        {"\"number\"", "\"letter\""},
        {"[601,", "[601.5,"},
        {"[601,", "[1,"},
        {"[601,", "[1e9,"},
        {"[0.1,", "[0,"},
        {"\"levels\":\t3", "\"levels\":\t4"},
        {"\"low\"", "\"lower\""},
        {"\"high\":\t", "\"high\":\t-1e9, \"x\":\t"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_bad_json(wrong[i][0], wrong[i][1]);
    us_site_close(open_site("json"));
}

static void out_of_memory_at_any_allocation_leaves_nothing_behind(void **state) {
    (void)state;
    us_site_info info = {.n_layer = 1};
    info.layer[0] =
        (us_layer_info){.name = "height", .type = US_LAYER_NUMBER, .n_x = 300, .n_y = 3, .dx = 1, .dy = 1};
    static float samples[US_SITE_TILE * 3];
    bool is_whole = false;
    for (int64_t at = 1; !is_whole; at++) {
        assert_true(at < 40);
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = at;
        site_clear("memory");
        us_site *site = NULL, *again = NULL;
        us_error err = {0};
        us_status status = us_site_create("memory", &info, &t.allocator, &site, &err);
        for (int32_t u = 0; u < 2 && !status; u++)
            status = us_site_write(site, 0, u, 0, samples, &err);
        if (!status) status = us_site_finish(site, NULL, NULL, &err);
        us_site_close(site);
        if (!status) status = us_site_open("memory", &t.allocator, &again, &err);
        if (!status) status = us_site_read(again, 0, 1, 0, 0, samples, &err);
        us_site_close(again);
        is_whole = status == US_OK;
        assert_true(is_whole || status == US_ERR_MEMORY);
        test_allocator_check(&t);
    }
}

static void count_progress(void *context, double share) {
    double *last = context;
    assert_true(share >= *last && share <= 1);
    *last = share;
}

static void progress_grows_to_one(void **state) {
    (void)state;
    site_clear("progress");
    us_site_info info = description();
    us_site *site = NULL;
    us_error err = {0};
    double share = 0;
    assert_int_equal(us_site_create("progress", &info, NULL, &site, &err), US_OK);
    for (int32_t layer = 0; layer < 3; layer++)
        write_layer(site, layer, false);
    assert_int_equal(us_site_finish(site, count_progress, &share, &err), US_OK);
    assert_true(share == 1);
    // It can be read at once, and written no more.
    static float samples[US_SITE_TILE * US_SITE_TILE];
    assert_int_equal(us_site_read(site, 0, 2, 0, 0, samples, &err), US_OK);
    assert_int_equal(us_site_write(site, 0, 0, 0, samples, &err), US_ERR_ARG);
    assert_int_equal(us_site_finish(site, NULL, NULL, &err), US_ERR_ARG);
    us_site_close(site);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_site_says_of_itself_is_read_again_to_the_last_bit),
        cmocka_unit_test(every_number_and_region_of_every_level_is_the_one_that_was_written),
        cmocka_unit_test(a_coarser_colour_is_the_mean_of_four_without_the_holes),
        cmocka_unit_test(the_hash_is_of_the_samples_and_not_of_the_order_they_came_in),
        cmocka_unit_test(a_site_that_was_not_finished_is_none),
        cmocka_unit_test(a_hole_a_second_writing_and_a_tile_that_there_is_not_are_refused),
        cmocka_unit_test(descriptions_that_cannot_be_used_are_refused),
        cmocka_unit_test(a_tile_that_is_missing_cut_changed_or_another_s_is_named),
        cmocka_unit_test(a_damaged_site_json_is_named_with_what_is_wrong_in_it),
        cmocka_unit_test(out_of_memory_at_any_allocation_leaves_nothing_behind),
        cmocka_unit_test(progress_grows_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
