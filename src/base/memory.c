// Allocation through the caller's allocator.
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/spare_memory.h"

static void *heap_alloc(void *context, size_t size, size_t align) {
    (void)context;
    if (align < sizeof(void *)) align = sizeof(void *);
    // aligned_alloc wants a multiple of the alignment.
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void heap_release(void *context, void *memory, size_t size, size_t align) {
    (void)context;
    (void)size;
    (void)align;
    free(memory);
}

us_allocator us_allocator_default(void) {
    us_allocator a = {heap_alloc, heap_release, NULL};
    return a;
}

void *usi_alloc(const us_allocator *a, size_t size, size_t align) {
    return a->alloc(a->context, size ? size : 1, align);
}

void usi_release(const us_allocator *a, void *memory, size_t size, size_t align) {
    if (memory) a->release(a->context, memory, size ? size : 1, align);
}

bool usi_memory_is_there(size_t size) {
    void *volatile block = malloc(size);  // volatile: a block that nobody uses would be left out
    const bool is_there = block != NULL;
    free(block);
    return is_there;
}

us_status usi_grow(const us_allocator *a, void **array, int32_t n, int32_t *cap, size_t each) {
    if (n < *cap) return US_OK;
    if (*cap > INT32_MAX / 2) return US_ERR_LIMIT;
    int32_t more = *cap ? 2 * *cap : 8;
    void *grown = usi_alloc(a, (size_t)more * each, _Alignof(max_align_t));
    if (!grown) return US_ERR_MEMORY;
    if (n) memcpy(grown, *array, (size_t)n * each);
    usi_release(a, *array, (size_t)*cap * each, _Alignof(max_align_t));
    *array = grown;
    *cap = more;
    return US_OK;
}

// Chunks form a list, newest first; the bytes follow the head.
struct usi_arena_chunk {
    usi_arena_chunk *next;
    size_t size, used;  // bytes behind the head
    size_t reserved;    // keeps the bytes aligned to 32
};

enum { CHUNK_BYTES = 16 * 1024 };

void usi_arena_init(usi_arena *arena, const us_allocator *allocator) {
    arena->allocator = *allocator;
    arena->chunks = NULL;
}

void usi_arena_fini(usi_arena *arena) {
    for (usi_arena_chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        usi_release(&arena->allocator, c, sizeof *c + c->size, 32);
    }
    arena->chunks = NULL;
}

void *usi_arena_alloc(usi_arena *arena, size_t size, size_t align) {
    usi_arena_chunk *c = arena->chunks;
    size_t at = c ? (c->used + align - 1) / align * align : 0;
    if (!c || at + size > c->size) {
        size_t bytes = size > CHUNK_BYTES / 4 ? size : CHUNK_BYTES;
        c = usi_alloc(&arena->allocator, sizeof *c + bytes, 32);
        if (!c) return NULL;
        c->size = bytes;
        c->used = 0;
        c->next = arena->chunks;
        arena->chunks = c;
        at = 0;
    }
    c->used = at + size;
    return (char *)(c + 1) + at;
}

char *usi_arena_text(usi_arena *arena, const char *text, bool *out_ok) {
    if (!text) return NULL;
    size_t n = strlen(text) + 1;
    char *copy = usi_arena_alloc(arena, n, 1);
    if (copy) memcpy(copy, text, n);
    if (!copy) *out_ok = false;
    return copy;
}
