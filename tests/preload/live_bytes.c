// How much of its memory a program uses, when it is started with this in LD_PRELOAD: the bytes that were
// allocated and not given back, by whoever, stand as a number of 8 bytes in the file that US_LIVE_BYTES
// names.
//
// Pages that are touched for the first time, and what the C library keeps to itself, are not in it: what
// grows here grows.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// The C library's own, under the names that it keeps for this.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);

static _Atomic int64_t own;
static _Atomic(_Atomic int64_t *) live = &own;

static void *counted(void *memory) {
    if (memory) atomic_fetch_add(atomic_load(&live), (int64_t)malloc_usable_size(memory));
    return memory;
}

static void forget(void *memory) {
    if (memory) atomic_fetch_sub(atomic_load(&live), (int64_t)malloc_usable_size(memory));
}

// What is counted between the two lines is lost: a few blocks at most, once.
__attribute__((constructor)) static void share(void) {
    const char *path = getenv("US_LIVE_BYTES");
    const int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    unsetenv("US_LIVE_BYTES");  // programs that this one starts are not counted
    if (fd < 0 || ftruncate(fd, sizeof own)) return;
    void *page = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) return;
    atomic_store((_Atomic int64_t *)page, atomic_load(&own));
    atomic_store(&live, (_Atomic int64_t *)page);
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return counted(__libc_calloc(n, size)); }
void *memalign(size_t align, size_t size) { return counted(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return counted(__libc_memalign(align, size)); }

void *realloc(void *memory, size_t size) {
    const int64_t before = memory ? (int64_t)malloc_usable_size(memory) : 0;
    void *moved = __libc_realloc(memory, size);
    if (moved) counted(moved);
    if (moved || size == 0) atomic_fetch_sub(atomic_load(&live), before);
    return moved;
}

void free(void *memory) {
    forget(memory);
    __libc_free(memory);
}

int posix_memalign(void **out, size_t align, size_t size) {
    void *memory = counted(__libc_memalign(align, size));
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}
