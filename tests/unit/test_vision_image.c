// PNG files: what is written comes back; pictures of every kind that libpng writes; damaged and hostile
// files.
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "understudy/image.h"
#include "wire/crc32.h"

static us_image picture_of(us_pixel_format format, int32_t width, int32_t height) {
    us_image image;
    assert_int_equal(us_image_create(format, width, height, NULL, &image), US_OK);
    for (size_t i = 0; i < image.stride * (size_t)height; i++)
        ((uint8_t *)image.pixels)[i] = (uint8_t)us_random_bits(3, (uint64_t)format, i);
    return image;
}

static void every_format_comes_back(void **state) {
    (void)state;
    for (int format = 0; format < US_PIXEL_FORMAT_COUNT; format++) {
        us_image image = picture_of((us_pixel_format)format, 37, 21), back;
        us_error err = {0};
        assert_int_equal(us_image_write_png(&image, "one.png", &err), US_OK);
        assert_int_equal(us_image_read_png("one.png", NULL, &back, &err), US_OK);
        assert_int_equal(back.format, format);
        assert_int_equal(back.width, 37);
        assert_int_equal(back.height, 21);
        assert_memory_equal(back.pixels, image.pixels, image.stride * 21);
        us_image_destroy(&back, NULL);
        us_image_destroy(&image, NULL);
    }
}

static void a_view_of_a_part_is_written(void **state) {
    (void)state;
    us_image whole = picture_of(US_PIXEL_MONO8, 40, 30), back;
    const us_image part = {US_PIXEL_MONO8, 7, 5, whole.stride,
                           (uint8_t *)whole.pixels + 3 * whole.stride + 11};
    us_error err = {0};
    assert_int_equal(us_image_write_png(&part, "part.png", &err), US_OK);
    assert_int_equal(us_image_read_png("part.png", NULL, &back, &err), US_OK);
    for (size_t y = 0; y < 5; y++)
        assert_memory_equal((uint8_t *)back.pixels + y * back.stride,
                            (uint8_t *)part.pixels + y * part.stride, 7);
    us_image_destroy(&back, NULL);
    us_image_destroy(&whole, NULL);
}

// ---- files of other kinds, by libpng itself ----

typedef struct bytes {
    uint8_t data[20000];
    size_t n;
} bytes;

static void put(png_structp png, png_bytep from, size_t n) {
    bytes *to = png_get_io_ptr(png);
    assert_true(to->n + n <= sizeof to->data);
    memcpy(to->data + to->n, from, n);
    to->n += n;
}

static void flush(png_structp png) { (void)png; }

// 16 x 16 pixels, sample k is k modulo what fits.
static void encode(bytes *to, int depth, int colour, int interlace) {
    to->n = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, to, put, flush);
    png_set_IHDR(png, info, 16, 16, depth, colour, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_color palette[256];
    for (int i = 0; i < 256; i++)
        palette[i] = (png_color){(uint8_t)i, (uint8_t)(255 - i), (uint8_t)(i / 2)};
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 1 << depth);
    png_write_info(png, info);
    uint8_t pixels[16][128];
    png_bytep rows[16];
    for (int y = 0; y < 16; y++) {
        rows[y] = pixels[y];
        for (int i = 0; i < 128; i++)
            pixels[y][i] = (uint8_t)(16 * y + i);
    }
    png_write_image(png, rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

static void pictures_of_every_kind_are_read(void **state) {
    (void)state;
    static const struct {
        int depth, colour;
        us_pixel_format format;
    } kind[] = {
        {1, PNG_COLOR_TYPE_GRAY, US_PIXEL_MONO8},         {2, PNG_COLOR_TYPE_GRAY, US_PIXEL_MONO8},
        {4, PNG_COLOR_TYPE_GRAY, US_PIXEL_MONO8},         {8, PNG_COLOR_TYPE_GRAY, US_PIXEL_MONO8},
        {16, PNG_COLOR_TYPE_GRAY, US_PIXEL_MONO16},       {8, PNG_COLOR_TYPE_GRAY_ALPHA, US_PIXEL_MONO8},
        {16, PNG_COLOR_TYPE_GRAY_ALPHA, US_PIXEL_MONO16}, {1, PNG_COLOR_TYPE_PALETTE, US_PIXEL_RGB8},
        {2, PNG_COLOR_TYPE_PALETTE, US_PIXEL_RGB8},       {4, PNG_COLOR_TYPE_PALETTE, US_PIXEL_RGB8},
        {8, PNG_COLOR_TYPE_PALETTE, US_PIXEL_RGB8},       {8, PNG_COLOR_TYPE_RGB, US_PIXEL_RGB8},
        {16, PNG_COLOR_TYPE_RGB, US_PIXEL_RGB16},         {8, PNG_COLOR_TYPE_RGB_ALPHA, US_PIXEL_RGB8},
        {16, PNG_COLOR_TYPE_RGB_ALPHA, US_PIXEL_RGB16}};
    bytes file;
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; i++)
        for (int interlace = 0; interlace < 2; interlace++) {
            us_image image;
            us_error err = {0};
            encode(&file, kind[i].depth, kind[i].colour, interlace);
            if (us_image_decode_png("kind", file.data, file.n, NULL, &image, &err))
                fail_msg("%zu: %s", i, err.message);
            assert_int_equal(image.format, kind[i].format);
            // The second pixel of the second row: its samples begin at byte 16 + its place.
            const uint8_t *p = (uint8_t *)image.pixels + image.stride + us_pixel_size(image.format);
            if (kind[i].depth == 8 && kind[i].colour == PNG_COLOR_TYPE_GRAY) assert_int_equal(p[0], 17);
            if (kind[i].depth == 8 && kind[i].colour == PNG_COLOR_TYPE_GRAY_ALPHA) assert_int_equal(p[0], 18);
            if (kind[i].depth == 8 && kind[i].colour == PNG_COLOR_TYPE_PALETTE)
                assert_int_equal(p[1], 255 - 17);
            if (kind[i].depth == 8 && kind[i].colour == PNG_COLOR_TYPE_RGB_ALPHA) assert_int_equal(p[2], 22);
            // Four bits: 1 is 0x10, whose first half is pixel 2 of the row; of 15 that is 17 per step.
            if (kind[i].depth == 4 && kind[i].colour == PNG_COLOR_TYPE_GRAY)
                assert_int_equal(*(uint8_t *)image.pixels, 0);
            if (kind[i].depth == 4 && kind[i].colour == PNG_COLOR_TYPE_GRAY) assert_int_equal(p[2], 17);
            if (kind[i].depth == 16) {
                uint16_t sample;
                memcpy(&sample, p, sizeof sample);
                const int at = 16 + 2 * (kind[i].colour == PNG_COLOR_TYPE_GRAY         ? 1
                                         : kind[i].colour == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                         : kind[i].colour == PNG_COLOR_TYPE_RGB        ? 3
                                                                                       : 4);
                assert_int_equal(sample, at << 8 | (at + 1));
            }
            us_image_destroy(&image, NULL);
        }
}

// Every length that is too short, and every byte turned over: an error with a remedy, or a picture of the
// same size; never memory that is lost.
static void damaged_files_are_refused(void **state) {
    (void)state;
    static bytes file;
    encode(&file, 8, PNG_COLOR_TYPE_RGB, 1);
    for (size_t n = 0; n < file.n; n++) {
        test_allocator watch;
        test_allocator_init(&watch);
        us_image image;
        us_error err = {0};
        assert_int_equal(us_image_decode_png("short.png", file.data, n, &watch.allocator, &image, &err),
                         US_ERR_SYNTAX);
        assert_true(err.message[0] && err.remedy[0]);
        assert_string_equal(err.file, "short.png");
        test_allocator_check(&watch);
    }
    int n_refused = 0;
    for (size_t i = 0; i < file.n; i++) {
        test_allocator watch;
        test_allocator_init(&watch);
        us_image image;
        us_error err = {0};
        file.data[i] ^= 0xff;
        const us_status status =
            us_image_decode_png("bad.png", file.data, file.n, &watch.allocator, &image, &err);
        file.data[i] ^= 0xff;
        if (status) {
            assert_true(err.message[0] != 0);
            n_refused++;
        } else {
            assert_true(image.width == 16 && image.height == 16);
            us_image_destroy(&image, &watch.allocator);
        }
        test_allocator_check(&watch);
    }
    assert_true(n_refused > (int)file.n * 9 / 10);
}

// A head that promises more than is allowed, with a right checksum.
static void pictures_that_are_too_large_are_refused(void **state) {
    (void)state;
    static const uint8_t wide[] = {0x89, 'P',  'N', 'G', 13,  10, 26, 10,   0,    0, 0,
                                   13,   'I',  'H', 'D', 'R', 0,  0,  0xff, 0xff, 0, 0,
                                   0xff, 0xff, 8,   2,   0,   0,  0,  0,    0,    0, 0};
    uint8_t file[sizeof wide + 12];
    memcpy(file, wide, sizeof wide);
    const uint32_t crc = usi_crc32(0, file + 12, 17);
    for (int i = 0; i < 4; i++)
        file[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    // Data must begin before libpng lets the head go.
    static const uint8_t data[12] = {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xaf, 0x06, 0x1e};
    memcpy(file + sizeof wide, data, sizeof data);
    us_image image;
    us_error err = {0};
    assert_int_equal(us_image_decode_png("wide.png", file, sizeof file, NULL, &image, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "65535"));
    assert_int_equal(us_image_create(US_PIXEL_MONO8, 65535, 65535, NULL, &image), US_ERR_LIMIT);
}

static void memory_that_runs_out_is_told(void **state) {
    (void)state;
    static bytes file;
    encode(&file, 8, PNG_COLOR_TYPE_GRAY, 0);
    test_allocator watch;
    test_allocator_init(&watch);
    watch.fail_at = 1;
    us_image image;
    us_error err = {0};
    assert_int_equal(us_image_decode_png("x.png", file.data, file.n, &watch.allocator, &image, &err),
                     US_ERR_MEMORY);
    test_allocator_check(&watch);
}

static void files_that_cannot_be_are_told(void **state) {
    (void)state;
    us_image image, picture = picture_of(US_PIXEL_MONO8, 4, 4);
    us_error err = {0};
    assert_int_equal(us_image_read_png("missing.png", NULL, &image, &err), US_ERR_IO);
    assert_true(err.remedy[0]);
    mkdir("directory.png", 0777);
    assert_int_equal(us_image_read_png("directory.png", NULL, &image, &err), US_ERR_IO);
    assert_int_equal(us_image_write_png(&picture, "nowhere/one.png", &err), US_ERR_IO);
    assert_int_equal(us_image_write_png(NULL, "one.png", &err), US_ERR_ARG);
    us_image_destroy(&picture, NULL);
}

static void grey_stays_grey(void **state) {
    (void)state;
    us_image colour, mono;
    assert_int_equal(us_image_create(US_PIXEL_RGB8, 256, 1, NULL, &colour), US_OK);
    assert_int_equal(us_image_create(US_PIXEL_MONO8, 256, 1, NULL, &mono), US_OK);
    for (int i = 0; i < 768; i++)
        ((uint8_t *)colour.pixels)[i] = (uint8_t)(i / 3);
    assert_int_equal(us_image_to_mono8(&colour, &mono), US_OK);
    for (int i = 0; i < 256; i++)
        assert_int_equal(((uint8_t *)mono.pixels)[i], i);
    // Pure red and blue: 0.299 and 0.114 of 255.
    const uint8_t red_blue[6] = {255, 0, 0, 0, 0, 255};
    memcpy(colour.pixels, red_blue, sizeof red_blue);
    assert_int_equal(us_image_to_mono8(&colour, &mono), US_OK);
    assert_int_equal(((uint8_t *)mono.pixels)[0], 76);
    assert_int_equal(((uint8_t *)mono.pixels)[1], 29);
    mono.width = 255;
    assert_int_equal(us_image_to_mono8(&colour, &mono), US_ERR_ARG);
    us_image_destroy(&colour, NULL);
    mono.width = 256;
    us_image_destroy(&mono, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_comes_back),
        cmocka_unit_test(a_view_of_a_part_is_written),
        cmocka_unit_test(pictures_of_every_kind_are_read),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(pictures_that_are_too_large_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(files_that_cannot_be_are_told),
        cmocka_unit_test(grey_stays_grey),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
