// Memory inside the library: the caller's allocator, arenas, and blocks of arrays that are laid out by a
// field table.
#ifndef USI_BASE_MEMORY_H
#define USI_BASE_MEMORY_H

#include "understudy/base.h"

enum { USI_ALIGN = 64 };  // every array starts on a cache line

void *usi_alloc(const us_allocator *a, size_t size, size_t align);                 // NULL when there is none
void usi_release(const us_allocator *a, void *memory, size_t size, size_t align);  // NULL is allowed

// Grows *array (of `each` bytes) so that it holds n + 1 elements. On failure nothing changes.
us_status usi_grow(const us_allocator *a, void **array, int32_t n, int32_t *cap, size_t each);

// Arena: memory allocated piece by piece and released all at once.
typedef struct usi_arena_chunk usi_arena_chunk;
typedef struct usi_arena {
    us_allocator allocator;
    usi_arena_chunk *chunks;
} usi_arena;

void usi_arena_init(usi_arena *arena, const us_allocator *allocator);
void usi_arena_fini(usi_arena *arena);
void *usi_arena_alloc(usi_arena *arena, size_t size, size_t align);  // NULL when there is none; not cleared
// A copy of a text; NULL text gives NULL with *out_ok true.
char *usi_arena_text(usi_arena *arena, const char *text, bool *out_ok);

// Field of a block, from a field table: for printing, hashing, saving and restoring without naming every
// array again.
typedef struct usi_field {
    const char *name, *type, *unit, *about;
    size_t offset;  // from the block's start
    size_t count;
    size_t each;  // bytes of one element
} usi_field;

// Lays out one more array of `count` elements in a block of *size bytes; returns its offset.
static inline size_t usi_carve(size_t *size, size_t count, size_t each) {
    size_t offset = (*size + USI_ALIGN - 1) / USI_ALIGN * USI_ALIGN;
    *size = offset + count * each;
    return offset;
}

// One row of a field table as a usi_field, for functions with the variables `size` (of the block so far),
// `n`, `out` and `cap`.
#define USI_FIELD_ROW(type, name, count, unit, about)                                                        \
    {                                                                                                        \
        size_t offset = usi_carve(&size, (size_t)(count), sizeof(type));                                     \
        if (n < cap) out[n] = (usi_field){#name, #type, unit, about, offset, (size_t)(count), sizeof(type)}; \
        n++;                                                                                                 \
    }

#endif
