// Thread pool for work that divides into independent parts. The result does not depend on which thread does
// which part.
#ifndef USI_BASE_POOL_H
#define USI_BASE_POOL_H

#include <stdatomic.h>

#include "understudy/base.h"

typedef struct usi_pool usi_pool;

// n_thread counts the caller too: 1 makes no threads. Idle threads sleep after some microseconds of polling.
us_status usi_pool_create(int32_t n_thread, const us_allocator *allocator, usi_pool **out_pool);
void usi_pool_destroy(usi_pool *pool);            // NULL is allowed
int32_t usi_pool_n_thread(const usi_pool *pool);  // 1 for NULL

// Calls part(context, i, thread) once for every i in 0 .. n - 1, on any thread (0 .. n_thread - 1; 0 is the
// caller); returns when all are done. With one thread (or NULL) it is a plain loop. Parts are begun in
// ascending order, `grain` at a time, and may end in any. No allocation.
typedef void (*usi_part)(void *context, int32_t i, int32_t thread);
void usi_pool_run(usi_pool *pool, int32_t n, int32_t grain, usi_part part, void *context);

// Waits, within a part, until *progress is at least `value`: what a part with a smaller i stores there with
// memory_order_release. Since parts begin in ascending order, the one that is waited for runs.
void usi_pool_wait(_Atomic int32_t *progress, int32_t value);

#endif
