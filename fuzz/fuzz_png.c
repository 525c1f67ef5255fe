// Any bytes as a PNG file: what is refused says why, and what is taken is a picture whose pixels can all be
// read.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "understudy/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

// No more than 64 MB: a small file may well be a large picture.
static void *limited_alloc(void *context, size_t size, size_t align) {
    (void)context;
    return size > 64u << 20 ? NULL : aligned_alloc(align, (size + align - 1) / align * align);
}

static void limited_release(void *context, void *memory, size_t size, size_t align) {
    (void)context;
    (void)size;
    (void)align;
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const us_allocator limited = {limited_alloc, limited_release, NULL};
    us_image image, mono;
    us_error err = {0};
    const us_status status = us_image_decode_png("fuzz.png", data, size, &limited, &image, &err);
    if (status) {
        must(err.message[0] != 0 && err.code == status);
        return 0;
    }
    must(image.width >= 1 && image.height >= 1 &&
         image.stride == (size_t)image.width * us_pixel_size(image.format));
    if (us_image_create(US_PIXEL_MONO8, image.width, image.height, &limited, &mono) == US_OK) {
        must(us_image_to_mono8(&image, &mono) == US_OK);
        us_image_destroy(&mono, &limited);
    }
    us_image_destroy(&image, &limited);
    return 0;
}
