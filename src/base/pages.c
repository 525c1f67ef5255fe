#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

size_t usi_pages_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *usi_pages_reserve(size_t bytes) {
    void *p = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void usi_pages_release(void *memory, size_t bytes) {
    if (memory) munmap(memory, bytes > 0 ? bytes : 1);
}

void usi_pages_drop(void *from, size_t bytes) {
    size_t page = usi_pages_size();
    uintptr_t begin = ((uintptr_t)from + page - 1) / page * page, end = ((uintptr_t)from + bytes) / page * page;
    if (end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
}
