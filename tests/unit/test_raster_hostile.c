// GeoTIFF files of strangers: refused in words, or read, within memory that their size explains.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/raster.h"
#include "understudy/spec.h"

static uint64_t random_state;
static uint64_t roll(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

// ---------------------------------------------------------------- a TIFF by hand

enum { SHORT = 3, LONG = 4, DOUBLE = 12, N_X = 16, N_Y = 12, MAX_FILE = 4096 };

typedef struct tiff {
    uint8_t bytes[MAX_FILE];
    size_t entry, extra;  // where the next entry of the directory and the next long value go
    uint16_t n;
} tiff;

static void put(uint8_t *at, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void tag(tiff *t, uint16_t name, uint16_t type, uint32_t n, const double *values) {
    const size_t width = type == SHORT ? 2 : type == LONG ? 4 : 8;
    uint8_t *entry = t->bytes + t->entry, *at = n * width <= 4 ? entry + 8 : t->bytes + t->extra;
    put(entry, name, 2);
    put(entry + 2, type, 2);
    put(entry + 4, n, 4);
    if (n * width > 4) put(entry + 8, t->extra, 4);
    for (uint32_t i = 0; i < n; i++, at += width) {
        if (type == DOUBLE) {
            memcpy(at, &values[i], 8);
        } else {
            put(at, (uint64_t)values[i], width);
        }
    }
    if (n * width > 4) t->extra += (n * width + 7) / 8 * 8;
    t->entry += 12;
    t->n++;
}

static void tag_one(tiff *t, uint16_t name, uint16_t type, double value) { tag(t, name, type, 1, &value); }

// Heights of 16 x 12, one strip, in metres of a UTM zone. Returns its length.
static size_t make_tiff(tiff *t, double n_x, double n_y, double offset) {
    memset(t, 0, sizeof *t);
    t->entry = 10;
    t->extra = 400;
    const size_t data = 1024;
    put(t->bytes, 0x4949, 2);
    put(t->bytes + 2, 42, 2);
    put(t->bytes + 4, 8, 4);
    tag_one(t, 256, LONG, n_x);
    tag_one(t, 257, LONG, n_y);
    tag_one(t, 258, SHORT, 32);
    tag_one(t, 259, SHORT, offset > 0 ? 1 : 8);
    tag_one(t, 262, SHORT, 1);
    tag_one(t, 273, LONG, offset);
    tag_one(t, 277, SHORT, 1);
    tag_one(t, 278, LONG, n_y);
    tag_one(t, 279, LONG, offset > 0 ? 4.0 * N_X * N_Y : 0);
    tag_one(t, 339, SHORT, 3);
    tag(t, 33550, DOUBLE, 3, (const double[]){1, 1, 0});
    tag(t, 33922, DOUBLE, 6, (const double[]){0, 0, 0, 500000, 4000000, 0});
    tag(t, 34735, SHORT, 16, (const double[]){1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32610});
    put(t->bytes + 8, t->n, 2);
    for (size_t i = 0; i < N_X * N_Y; i++) {
        const float height = (float)(i % 7) * 0.25f;
        memcpy(t->bytes + data + 4 * i, &height, 4);
    }
    return data + 4 * N_X * N_Y;
}

static const char name[] = "strange.tif";

static void write_bytes(const void *bytes, size_t length) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static us_status load(us_error *err) {
    static const char scene[] = "<scene name='s' version='1'><world><shape name='w' type='height-field' "
                                "file='strange.tif'/></world></scene>";
    us_spec *spec = NULL;
    us_status status = us_spec_load_text(scene, sizeof scene - 1, "scene.xml", NULL, &spec, err);
    us_spec_destroy(spec);
    return status;
}

static us_status look(us_error *err) {
    const char *file = name;
    us_raster_def def = us_raster_def_default();
    def.file = &file;
    def.n_file = 1;
    us_raster_info info;
    return us_raster_find_info(&def, NULL, NULL, &info, err);
}

// ---------------------------------------------------------------- tests

static void a_small_file_with_many_samples_is_refused(void **state) {
    (void)state;
    tiff t;
    us_error err = {0};
    size_t length = make_tiff(&t, N_X, N_Y, 1024);
    write_bytes(t.bytes, length);
    if (load(&err)) fail_msg("%s", err.message);
    // No samples at all: strips that are not there count as zeros.
    write_bytes(t.bytes, make_tiff(&t, 200000, 200000, 0));
    assert_int_equal(look(&err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "200000 x 200000"));
    assert_int_equal(load(&err), US_ERR_LIMIT);
    // One strip that would be unpacked as a whole.
    write_bytes(t.bytes, make_tiff(&t, 9000, 9000, 0));
    assert_int_equal(look(&err), US_ERR_LIMIT);
    assert_non_null(strstr(err.remedy, "TILED"));
}

static void changes_at_random_do_no_harm(void **state) {
    (void)state;
    const int n = getenv("US_LONG_TESTS") ? 200000 : 1500;
    int n_read = 0;
    for (int i = 0; i < n; i++) {
        random_state = (uint64_t)i + 1;
        tiff t;
        size_t length = make_tiff(&t, N_X, N_Y, 1024);
        for (uint64_t k = 1 + roll() % 4; k > 0; k--) {
            static const uint64_t odd[] = {0, 1, 5, 8, 0xffff, 0x7fffffff, UINT64_MAX, 0x80000000, 50000};
            // Mostly in the directory and what it points to.
            size_t at = roll() % 8 ? roll() % 560 : roll() % (length - 8);
            put(t.bytes + at, roll() & 1 ? odd[roll() % 9] : roll(), (size_t)1 << roll() % 4);
        }
        if (roll() % 16 == 0) length = 1 + roll() % length;
        write_bytes(t.bytes, length);
        us_error err = {0};
        us_status status = i % 4 ? load(&err) : look(&err);
        n_read += status == US_OK;
        if (status) assert_true(err.message[0] != 0 && err.remedy[0] != 0);
    }
    print_message("%d of %d were read\n", n_read, n);
    assert_true(n_read > n / 20 && n_read < n * 19 / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_file_with_many_samples_is_refused),
        cmocka_unit_test(changes_at_random_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
