// What the fuzz targets of interface files share: one file, whose text is the input.
#ifndef FUZZ_INTERFACE_H
#define FUZZ_INTERFACE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/interface_types.h"
#include "wire/member.h"

typedef struct fuzz_text {
    const char *path, *text;
    size_t length;
} fuzz_text;

static us_status fuzz_open(void *context, const char *path, const us_place *from, const char **out_text,
                           size_t *out_length, us_error *err) {
    const fuzz_text *f = context;
    if (strcmp(path, f->path) != 0) return us_error_set(err, US_ERR_IO, from, "", "no file");
    *out_text = f->text;
    *out_length = f->length;
    return US_OK;
}

static bool fuzz_exists(void *context, const char *path) {
    return strcmp(path, ((const fuzz_text *)context)->path) == 0;
}

static void fuzz_require(bool condition) {
    if (!condition) abort();
}

// A sample in which every member is 0 or empty.
static void fuzz_try_type(const us_message_type *type) {
    static uint8_t bytes[1 << 16];
    uint8_t key[256];
    us_error err;
    fuzz_require(type->n_field > 0 && type->least > 0 && usi_type_depth(type) <= USI_MESSAGE_DEPTH);
    if (type->least > sizeof bytes / 4) return;
    const size_t n = usi_members_write(type, NULL, NULL, 0, NULL, bytes, sizeof bytes);
    if (n > sizeof bytes) return;
    fuzz_require(us_message_print(type, bytes, n, 2, NULL, 0, NULL, &err) == US_OK);
    fuzz_require(usi_members_read(type, bytes, n, NULL, 0, (usi_wire_value *)key));
    if (type->has_key) fuzz_require(usi_key_read(type, bytes, n, false, true, key, sizeof key) != SIZE_MAX);
}

static void fuzz_interface(const uint8_t *data, size_t size, const char *path) {
    fuzz_text text = {path, (const char *)data, size};
    const usi_text_source source = {fuzz_open, fuzz_exists, &text};
    const us_allocator allocator = us_allocator_default();
    us_interface *interface_ = NULL;
    us_error err = {0};
    us_status status = usi_interface_read(&allocator, &path, 1, &source, &interface_, &err);
    fuzz_require((status == US_OK) == (interface_ != NULL));
    fuzz_require(status == US_OK || (err.code == status && err.message[0]));
    for (int32_t i = 0; i < us_interface_n_type(interface_); i++)
        fuzz_try_type(us_interface_get_type(interface_, i));
    us_interface_release(interface_);
}

#endif
