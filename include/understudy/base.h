// Status codes, errors with a place and a remedy, allocators, hashing, counter-based random numbers.
//
// Nothing here prints, exits or keeps global state. Every function is safe to call from any thread as long as
// two threads do not use the same object at once.
#ifndef UNDERSTUDY_BASE_H
#define UNDERSTUDY_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Export mark of the library's functions; everything else is hidden.
#if defined(__GNUC__)
#define US_API __attribute__((visibility("default")))
#define US_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define US_API
#define US_PRINTF(fmt, args)
#endif

// The initialiser "all 0" of any struct of this library, without a warning as C and as C++:
// us_error err = US_ZERO;
#ifdef __cplusplus
#define US_ZERO \
    {}
#else
#define US_ZERO \
    { 0 }
#endif

// X(code, text). The numbers are part of the interface: add at the end only.
#define US_STATUS_LIST(X)                                                 \
    X(US_OK, "ok")                                                        \
    X(US_ERR_ARG, "wrong argument")                                       \
    X(US_ERR_MEMORY, "out of memory")                                     \
    X(US_ERR_IO, "file cannot be read or written")                        \
    X(US_ERR_SYNTAX, "file is not well formed")                           \
    X(US_ERR_SCHEMA, "file does not follow the schema")                   \
    X(US_ERR_NAME, "name unknown, missing or used twice")                 \
    X(US_ERR_VALUE, "value out of range or of the wrong kind")            \
    X(US_ERR_TREE, "links and joints do not form a tree")                 \
    X(US_ERR_MASS, "mass properties cannot be used")                      \
    X(US_ERR_MESH, "mesh cannot be read")                                 \
    X(US_ERR_CONSTRAINT, "constraints cannot be met")                     \
    X(US_ERR_DIVERGED, "the motion diverged")                             \
    X(US_ERR_SNAPSHOT, "snapshot belongs to another model or is damaged") \
    X(US_ERR_LIMIT, "a limit of this program is exceeded")                \
    X(US_ERR_ACCESS, "a file that was not allowed to be opened")

typedef enum us_status {
#define US_STATUS_ENUM(code, text) code,
    US_STATUS_LIST(US_STATUS_ENUM)
#undef US_STATUS_ENUM
        US_STATUS_COUNT
} us_status;

// The text of a status; "unknown status" for a number outside the list. Never NULL.
US_API const char *us_status_text(us_status status);

// Error: what is wrong, where, and the remedy. Also used for warnings (code US_OK). Texts that do not fit are
// cut and end in "...".
typedef struct us_error {
    us_status code;
    int32_t line;       // 1-based; 0 when there is none
    int32_t column;     // 1-based; 0 when unknown
    char file[256];     // "" when there is none
    char element[128];  // the XML element, link or joint, for example: joint "elbow"
    char message[512];  // what is wrong
    char remedy[384];   // what to write instead; "" when there is nothing to say
} us_error;

// Place in a file. `file` may be NULL.
typedef struct us_place {
    const char *file;
    int32_t line;
    int32_t column;
    const char *element;  // may be NULL
} us_place;

// Fills *err (which may be NULL) and returns `code`, so that callers write: return us_error_set(err, ...).
// `place` and `remedy` may be NULL. `format` and what follows give the message, as printf.
US_API us_status us_error_set(us_error *err, us_status code, const us_place *place, const char *remedy,
                              const char *format, ...) US_PRINTF(5, 6);

// "file:line:column: element: message\n  remedy: ..." into buf (always ended by 0). Returns the length it
// needs, without the 0.
US_API size_t us_error_format(const us_error *err, char *buf, size_t cap);

// Allocator: the only source of the library's memory. `alloc` returns NULL when there is none; `align` is a
// power of two. `release` gets the size and alignment that `alloc` got, and is never called with NULL.
typedef struct us_allocator {
    void *(*alloc)(void *context, size_t size, size_t align);
    void (*release)(void *context, void *memory, size_t size, size_t align);
    void *context;
} us_allocator;

// The C library's heap.
US_API us_allocator us_allocator_default(void);

// 64-bit hash of bytes, chained through `seed` (start with 0). Same bytes, same value on every little-endian
// machine. Not for security.
US_API uint64_t us_hash_bytes(uint64_t seed, const void *bytes, size_t length);

// Random numbers as a pure function of (seed, stream, counter): no hidden state, any order, any thread.
US_API uint64_t us_random_bits(uint64_t seed, uint64_t stream, uint64_t counter);
US_API double us_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter);  // in [0, 1)
US_API double us_random_normal(uint64_t seed, uint64_t stream, uint64_t counter);   // mean 0, variance 1

// "major.minor.patch" of the library that is linked.
US_API const char *us_version(void);

#ifdef __cplusplus
}
#endif
#endif
