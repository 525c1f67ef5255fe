// An allocator that watches the library: it counts, fills memory with garbage, fails when told to, and finds
// leaks, releases with another size or alignment than were asked for, writes beyond the end, and memory that
// was never given out.
#ifndef TEST_ALLOCATOR_H
#define TEST_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "understudy/base.h"

typedef struct test_allocator {
    us_allocator allocator;  // what the library gets; its context is this object, which must not move
    int64_t n_alloc;         // calls of alloc, failed ones included
    int64_t n_live;          // blocks given out and not yet released
    int64_t n_failed;        // calls that were made to fail
    int64_t n_wrong;         // releases that do not match, and blocks written beyond their end
    int64_t fail_at;         // the call that fails, counted from 1; 0: none
    bool keep_failing;       // all calls from fail_at on fail, rather than that one alone
} test_allocator;

void test_allocator_init(test_allocator *t);

// Everything was released, as it was asked for. A cmocka assertion.
void test_allocator_check(const test_allocator *t);

#endif
