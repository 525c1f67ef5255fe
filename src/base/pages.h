// Address space that takes memory only where it was touched: pages come from the system cleared, one by one, and can be given back.
#ifndef USI_BASE_PAGES_H
#define USI_BASE_PAGES_H

#include <stddef.h>

// At least `bytes`, all 0, aligned to a page. NULL when there are not so many addresses.
void *usi_pages_reserve(size_t bytes);
void usi_pages_release(void *memory, size_t bytes);  // NULL is allowed; the same size
// Gives the memory of the whole pages in a range back; they are 0 again.
void usi_pages_drop(void *from, size_t bytes);
size_t usi_pages_size(void);

#endif
