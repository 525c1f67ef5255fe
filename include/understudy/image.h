// Pictures in memory, and PNG files of them.
#ifndef UNDERSTUDY_IMAGE_H
#define UNDERSTUDY_IMAGE_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum us_pixel_format {
    US_PIXEL_MONO8,
    US_PIXEL_MONO16,
    US_PIXEL_RGB8,
    US_PIXEL_RGB16,
    US_PIXEL_FORMAT_COUNT
} us_pixel_format;

// Picture: a view of pixels that somebody else owns. Rows from the top, 16-bit samples in the machine's byte
// order.
typedef struct us_image {
    us_pixel_format format;
    int32_t width, height;
    size_t stride;  // bytes from one row to the next
    void *pixels;
} us_image;

US_API size_t us_pixel_size(us_pixel_format format);  // bytes; 0 for a format outside the list

// The largest picture that is read: 65535 pixels each way, and as many in all as this.
enum { US_IMAGE_MAX_PIXEL = 1 << 28 };

// Makes a black picture; NULL: the default allocator. Destroy with the same one.
US_API us_status us_image_create(us_pixel_format format, int32_t width, int32_t height,
                                 const us_allocator *allocator, us_image *out_image);
US_API void us_image_destroy(us_image *image, const us_allocator *allocator);

// Reads a PNG of any kind: palettes become RGB, 1, 2 and 4 bits become 8, transparency is dropped. US_ERR_IO
// when the file cannot be read, US_ERR_SYNTAX when it is no PNG or damaged, US_ERR_LIMIT when it is larger
// than the limits. `name` is for messages.
US_API us_status us_image_read_png(const char *path, const us_allocator *allocator, us_image *out_image,
                                   us_error *err);
US_API us_status us_image_decode_png(const char *name, const void *bytes, size_t length,
                                     const us_allocator *allocator, us_image *out_image, us_error *err);

// Writes a PNG, under another name first, which is then renamed: no half of a picture is ever seen.
US_API us_status us_image_write_png(const us_image *image, const char *path, us_error *err);

// The luminance of a picture (0.299 R + 0.587 G + 0.114 B, and of 16 bits the upper eight) into a
// US_PIXEL_MONO8 of the same size. US_ERR_ARG for other sizes.
US_API us_status us_image_to_mono8(const us_image *image, us_image *mono);

#ifdef __cplusplus
}
#endif
#endif
