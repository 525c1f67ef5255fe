// Reserved address space, by mmap.
#include "base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

size_t usi_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *usi_pages_reserve(size_t size) {
    void *pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    // Huge pages (2 MB) would take a hundred times the memory that is written.
    madvise(pages, size, MADV_NOHUGEPAGE);
    return pages;
}

void usi_pages_free(void *pages, size_t size) {
    if (pages) munmap(pages, size);
}

void usi_pages_drop(void *from, size_t size) { madvise(from, size, MADV_DONTNEED); }
