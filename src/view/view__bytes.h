// A buffer that grows, and JSON written into one as it comes.
//
// A want of memory, or growing beyond the limit, is kept in `status`; what is written afterwards is dropped,
// so that only the end needs a look.
#ifndef USI_WORLD_BYTES_H
#define USI_WORLD_BYTES_H

#include "base/memory.h"
#include "understudy/math.h"

typedef struct usi_bytes {
    us_allocator allocator;
    size_t limit;  // US_ERR_LIMIT beyond
    char *at;
    size_t length, cap;
    us_status status;
} usi_bytes;

void usi_bytes_init(usi_bytes *bytes, const us_allocator *allocator, size_t limit);
void usi_bytes_fini(usi_bytes *bytes);
void usi_bytes_put(usi_bytes *bytes, const void *from, size_t length);
// Room for `length` bytes at the end, not cleared. NULL when there is none; dies at the next call.
void *usi_bytes_room(usi_bytes *bytes, size_t length);
// Fills up to a multiple of four.
void usi_bytes_align(usi_bytes *bytes, char fill);
// Hands the bytes over: *out_bytes is *out_length bytes with alignment 1 from the allocator. The buffer is
// empty afterwards, whatever comes of it.
us_status usi_bytes_take(usi_bytes *bytes, char **out_bytes, size_t *out_length);

// JSON without a tree and without blanks. Keys are NULL inside lists. A number that is not finite is null;
// the others come back as the same double. Texts are escaped, and what is not UTF-8 in them is replaced by
// U+FFFD. Between init and fini the calling thread has the C locale, so that the decimal point is one.
typedef struct usi_json {
    usi_bytes *out;
    bool needs_comma;
    void *old_locale, *c_locale;
} usi_json;

void usi_json_init(usi_json *json, usi_bytes *out);
void usi_json_fini(usi_json *json);
void usi_json_begin(usi_json *json, const char *key, char bracket);     // '{' or '['
void usi_json_end(usi_json *json, char bracket);                        // '}' or ']'
void usi_json_text(usi_json *json, const char *key, const char *text);  // NULL: null
void usi_json_number(usi_json *json, const char *key, double x);
void usi_json_integer(usi_json *json, const char *key, int64_t x);
void usi_json_bool(usi_json *json, const char *key, bool x);
void usi_json_null(usi_json *json, const char *key);
void usi_json_numbers(usi_json *json, const char *key, const double *x, size_t n);
void usi_json_float(usi_json *json, const char *key, float x);  // comes back as the same float
void usi_json_floats(usi_json *json, const char *key, const float *x, size_t n);
void usi_json_vector(usi_json *json, const char *key, us_vec3 a);

#endif
