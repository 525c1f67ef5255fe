// PNG files, by libpng.
//
// libpng leaves by longjmp when a file is damaged. What must outlive the jump stands in a struct that the
// frame of setjmp does not keep in registers. Its messages become the error's; its warnings (a checksum of a
// chunk that is not needed, a profile that is odd) do not change a pixel and are dropped.
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "understudy/image.h"

typedef struct png_job {
    const us_place *place;
    us_error *err;
    const uint8_t *bytes;  // of the file that is read
    size_t length, at;
    uint8_t *out;  // of the file that is written
    size_t n_out, cap;
    bool is_out_of_memory, is_writing;
    us_image image;
} png_job;

static void on_error(png_structp png, png_const_charp message) {
    png_job *job = png_get_error_ptr(png);
    if (job->is_out_of_memory) {
        us_error_set(job->err, US_ERR_MEMORY, job->place, "close other programs",
                     "there is no memory for it");
    } else if (job->is_writing) {
        us_error_set(job->err, US_ERR_VALUE, job->place, NULL, "libpng: %s", message);
    } else {
        us_error_set(job->err, US_ERR_SYNTAX, job->place, "write the picture again, as PNG",
                     "is damaged or no PNG: %s", message);
    }
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void read_bytes(png_structp png, png_bytep to, size_t n) {
    png_job *job = png_get_io_ptr(png);
    if (job->length - job->at < n) png_error(png, "the file ends too early");
    memcpy(to, job->bytes + job->at, n);
    job->at += n;
}

// ---- reading ----

// Tells libpng what to make of the file's pixels: 8 or 16 bits, grey or RGB.
static us_pixel_format choose_format(png_structp png, png_infop info) {
    const int depth = png_get_bit_depth(png, info), colour = png_get_color_type(png, info);
    const bool is_colour = colour & PNG_COLOR_MASK_COLOR;
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_alpha(png);
    const uint16_t one = 1;
    if (depth == 16 && *(const uint8_t *)&one == 1) png_set_swap(png);
    if (depth == 16) return is_colour ? US_PIXEL_RGB16 : US_PIXEL_MONO16;
    return is_colour ? US_PIXEL_RGB8 : US_PIXEL_MONO8;
}

// False when libpng gave up; the error is set.
static bool read_picture(png_structp png, png_infop info, png_job *job, const us_allocator *a) {
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_read_fn(png, job, read_bytes);
    png_set_user_limits(png, 65535, 65535);
    png_set_chunk_malloc_max(png, 1 << 24);
    png_read_info(png, info);
    const us_pixel_format format = choose_format(png, info);
    const int n_pass = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const int32_t width = (int32_t)png_get_image_width(png, info),
                  height = (int32_t)png_get_image_height(png, info);
    const us_status status = us_image_create(format, width, height, a, &job->image);
    if (status == US_ERR_LIMIT) {
        us_error_set(job->err, status, job->place, "make it smaller",
                     "%d x %d pixels are more than %d in all", (int)width, (int)height, US_IMAGE_MAX_PIXEL);
        return false;
    }
    if (status) {
        job->is_out_of_memory = true;
        png_error(png, "memory");
    }
    if (png_get_rowbytes(png, info) != job->image.stride)
        png_error(png, "its rows have an unexpected length");
    for (int pass = 0; pass < n_pass; pass++)
        for (int32_t y = 0; y < height; y++)
            png_read_row(png, (png_bytep)job->image.pixels + (size_t)y * job->image.stride, NULL);
    png_read_end(png, NULL);
    return true;
}

us_status us_image_decode_png(const char *name, const void *bytes, size_t length,
                              const us_allocator *allocator, us_image *out_image, us_error *err) {
    if (!bytes || !out_image) return US_ERR_ARG;
    const us_place place = {.file = name};
    us_error own = {0};
    png_job job = {.place = &place, .err = err ? err : &own, .bytes = bytes, .length = length};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return us_error_set(err, US_ERR_MEMORY, &place, "close other programs", "there is no memory for it");
    }
    const bool is_read = read_picture(png, info, &job, allocator);
    png_destroy_read_struct(&png, &info, NULL);
    if (!is_read) {
        us_image_destroy(&job.image, allocator);
        return job.err->code;
    }
    *out_image = job.image;
    return US_OK;
}

static us_status fail_io(us_error *err, const char *path, const char *what) {
    const us_place place = {.file = path};
    return us_error_set(err, US_ERR_IO, &place, "check the path and its permissions", "%s: %s", what,
                        strerror(errno ? errno : EIO));
}

us_status us_image_read_png(const char *path, const us_allocator *allocator, us_image *out_image,
                            us_error *err) {
    if (!path || !out_image) return US_ERR_ARG;
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    errno = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return fail_io(err, path, "cannot be read");
    us_status status = US_OK;
    uint8_t *bytes = NULL;
    long length = -1;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && length < 1L << 32 &&
        fseek(file, 0, SEEK_SET) == 0) {
        bytes = usi_alloc(&a, (size_t)length + 1, 1);
        if (!bytes) {
            status = us_error_set(err, US_ERR_MEMORY, NULL, "close other programs", "no memory for %s", path);
        } else if (fread(bytes, 1, (size_t)length, file) != (size_t)length) {
            status = fail_io(err, path, "cannot be read");
        }
    } else {
        status = fail_io(err, path, "is no file that can be read as a whole");
    }
    fclose(file);
    if (!status) status = us_image_decode_png(path, bytes, (size_t)length, allocator, out_image, err);
    if (bytes) usi_release(&a, bytes, (size_t)length + 1, 1);
    return status;
}

// ---- writing ----

static void write_bytes(png_structp png, png_bytep from, size_t n) {
    png_job *job = png_get_io_ptr(png);
    if (job->cap - job->n_out < n) {
        const size_t cap = 2 * job->cap + n + 4096;
        uint8_t *grown = realloc(job->out, cap);
        if (!grown) {
            job->is_out_of_memory = true;
            png_error(png, "memory");
        }
        job->out = grown;
        job->cap = cap;
    }
    memcpy(job->out + job->n_out, from, n);
    job->n_out += n;
}

static void flush_bytes(png_structp png) { (void)png; }

static bool write_picture(png_structp png, png_infop info, png_job *job) {
    const us_image *image = &job->image;
    const bool is_16 = image->format == US_PIXEL_MONO16 || image->format == US_PIXEL_RGB16;
    const bool is_colour = image->format == US_PIXEL_RGB8 || image->format == US_PIXEL_RGB16;
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_write_fn(png, job, write_bytes, flush_bytes);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, is_16 ? 16 : 8,
                 is_colour ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    const uint16_t one = 1;
    if (is_16 && *(const uint8_t *)&one == 1) png_set_swap(png);
    for (int32_t y = 0; y < image->height; y++)
        png_write_row(png, (png_const_bytep)image->pixels + (size_t)y * image->stride);
    png_write_end(png, NULL);
    return true;
}

us_status us_image_write_png(const us_image *image, const char *path, us_error *err) {
    if (!image || !path || us_pixel_size(image->format) == 0 || image->width < 1 || image->height < 1)
        return US_ERR_ARG;
    const us_place place = {.file = path};
    us_error own = {0};
    png_job job = {.place = &place, .err = err ? err : &own, .is_writing = true, .image = *image};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return us_error_set(err, US_ERR_MEMORY, &place, "close other programs", "there is no memory for it");
    }
    us_status status = write_picture(png, info, &job) ? US_OK : job.err->code;
    png_destroy_write_struct(&png, &info);
    if (!status) status = usi_bytes_write(path, job.out, job.n_out, NULL, 0, err);
    free(job.out);
    return status;
}
