// Pictures in memory.
#include <string.h>

#include "base/memory.h"
#include "understudy/image.h"

size_t us_pixel_size(us_pixel_format format) {
    static const size_t size[US_PIXEL_FORMAT_COUNT] = {1, 2, 3, 6};
    return (unsigned)format < US_PIXEL_FORMAT_COUNT ? size[format] : 0;
}

us_status us_image_create(us_pixel_format format, int32_t width, int32_t height,
                          const us_allocator *allocator, us_image *out_image) {
    const size_t each = us_pixel_size(format);
    if (!out_image || each == 0 || width < 1 || height < 1) return US_ERR_ARG;
    if (width > 65535 || height > 65535 || (int64_t)width * height > US_IMAGE_MAX_PIXEL) return US_ERR_LIMIT;
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    const size_t stride = (size_t)width * each;
    void *pixels = usi_alloc(&a, stride * (size_t)height, USI_ALIGN);
    if (!pixels) return US_ERR_MEMORY;
    memset(pixels, 0, stride * (size_t)height);
    *out_image = (us_image){format, width, height, stride, pixels};
    return US_OK;
}

void us_image_destroy(us_image *image, const us_allocator *allocator) {
    if (!image || !image->pixels) return;
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    usi_release(&a, image->pixels, image->stride * (size_t)image->height, USI_ALIGN);
    *image = (us_image){0};
}

// Weights of 65536; their sum is 65536, so that grey stays the grey it was.
static uint8_t luminance(uint32_t r, uint32_t g, uint32_t b) {
    return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
}

static void row_to_mono8(us_pixel_format format, int32_t width, const void *row, uint8_t *to) {
    const uint8_t *p8 = row;
    const uint16_t *p16 = row;
    for (int32_t x = 0; x < width; x++) {
        switch (format) {
        case US_PIXEL_MONO16:
            to[x] = (uint8_t)(p16[x] >> 8);
            break;
        case US_PIXEL_RGB8:
            to[x] = luminance(p8[3 * x], p8[3 * x + 1], p8[3 * x + 2]);
            break;
        case US_PIXEL_RGB16:
            to[x] = luminance(p16[3 * x] >> 8, p16[3 * x + 1] >> 8, p16[3 * x + 2] >> 8);
            break;
        default:
            to[x] = p8[x];
            break;
        }
    }
}

us_status us_image_to_mono8(const us_image *image, us_image *mono) {
    if (!image || !mono || mono->format != US_PIXEL_MONO8 || us_pixel_size(image->format) == 0 ||
        image->width != mono->width || image->height != mono->height)
        return US_ERR_ARG;
    for (int32_t y = 0; y < image->height; y++)
        row_to_mono8(image->format, image->width, (const char *)image->pixels + (size_t)y * image->stride,
                     (uint8_t *)mono->pixels + (size_t)y * mono->stride);
    return US_OK;
}
