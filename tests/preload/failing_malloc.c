// Memory that runs out, for a program that is started with this in LD_PRELOAD: the allocation with the number
// US_FAIL_AT, counted from 1, fails, whoever asks for it; with US_FAIL_STAYS all later ones too.
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

// The C library's own, under the names that it keeps for this.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_long count, fail_at = -1;
static atomic_bool stays;

static int fails(void) {
    if (fail_at < 0) {
        const char *text = getenv("US_FAIL_AT");
        stays = getenv("US_FAIL_STAYS") != NULL;
        fail_at = text ? strtol(text, NULL, 10) : 0;
    }
    if (fail_at == 0) return 0;
    const long n = atomic_fetch_add(&count, 1) + 1;
    if (n != fail_at && !(stays && n > fail_at)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *memory, size_t size) { return fails() ? NULL : __libc_realloc(memory, size); }
void *aligned_alloc(size_t align, size_t size) { return fails() ? NULL : __libc_memalign(align, size); }

int posix_memalign(void **out, size_t align, size_t size) {
    void *memory = fails() ? NULL : __libc_memalign(align, size);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}
