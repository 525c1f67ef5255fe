// Reserved address space: arrays far larger than memory, of which only the parts that are written take any.
#ifndef USI_BASE_PAGES_H
#define USI_BASE_PAGES_H

#include "understudy/base.h"

size_t usi_page_size(void);
// Reserves at least `size` bytes of addresses, all 0, which take memory page by page as they are written;
// NULL when there are none left.
void *usi_pages_reserve(size_t size);
void usi_pages_free(void *pages, size_t size);  // NULL is allowed
// Releases the memory of whole pages; they are all 0 again. `from` is the start of a page.
void usi_pages_drop(void *from, size_t size);

#endif
