// Memory for libraries of others.
#ifndef USI_BASE_SPARE_MEMORY_H
#define USI_BASE_SPARE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

// Whether a block of that size is to be had now; it is given back. For libraries that use memory which they
// were not given: what they need is looked for before they are called.
bool usi_memory_is_there(size_t size);

#endif
