// Thread pool.
//
// A run cuts its n parts into chunks and writes their number into one word, `open`. Whoever lowers that word
// by one owns a chunk; the caller does so like the threads, and returns when the count of finished chunks
// is complete. The job (function, context, sizes) is read only by owners of a chunk, and a run cannot end
// while a chunk is owned: so a thread that is late, or slept during several runs, never sees a job that is
// being written.
//
//     caller    write job ---> open = 5 ---> lower, work, lower, work ... ---> wait for unfinished = 0
//     thread    spin, sleep ......... lower, work, lower, work, open is 0 ---> spin, sleep
//
// Sleeping is the classic handshake: a sleeper first counts itself and then looks at `open`; the caller first
// sets `open` and then looks at the count. In one total order (sequentially consistent atomics) at least one
// of the two sees the other. The caller waiting for the last chunk and the thread that finishes it do the
// same with `is_waiting` and `unfinished`.
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/memory.h"

// SPIN: pauses of 10 to 40 ns each, some 5 to 20 us of polling before sleeping, a few times the cost of a
// wake-up. The steps of a simulation that runs at full speed follow each other faster than that.
enum { SPIN = 500, MAX_THREADS = 1024 };

typedef struct worker {
    usi_pool *pool;
    pthread_t thread;
    int32_t index;
} worker;

struct usi_pool {
    us_allocator allocator;
    size_t size;  // bytes of this block
    int32_t n_thread;
    int32_t n_started;

    // The job.
    usi_part part;
    void *context;
    int32_t n, grain, n_chunk;

    // Each on a cache line of its own: threads that spin on one do not slow down those that change another.
    _Alignas(USI_ALIGN) _Atomic int32_t open;  // chunks that nobody owns yet
    _Alignas(USI_ALIGN) _Atomic int32_t unfinished;
    _Alignas(USI_ALIGN) _Atomic int32_t n_asleep;
    _Atomic bool is_waiting, is_over;

    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    worker worker[];  // n_thread - 1
};

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Does chunks until none is open.
static void do_chunks(usi_pool *pool, int32_t thread) {
    int32_t open = atomic_load(&pool->open);
    while (open > 0) {
        if (!atomic_compare_exchange_weak(&pool->open, &open, open - 1)) continue;
        int32_t chunk = pool->n_chunk - open, first = chunk * pool->grain;
        int32_t end = pool->n - first > pool->grain ? first + pool->grain : pool->n;
        for (int32_t i = first; i < end; i++)
            pool->part(pool->context, i, thread);
        if (atomic_fetch_sub(&pool->unfinished, 1) == 1 && atomic_load(&pool->is_waiting)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
        open = atomic_load(&pool->open);
    }
}

static void *work(void *context) {
    worker *w = context;
    usi_pool *pool = w->pool;
    while (!atomic_load(&pool->is_over)) {
        do_chunks(pool, w->index);
        int spin = 0;
        while (spin < SPIN && atomic_load(&pool->open) <= 0 && !atomic_load(&pool->is_over)) {
            pause_briefly();
            spin++;
        }
        if (spin < SPIN) continue;
        pthread_mutex_lock(&pool->mutex);
        atomic_fetch_add(&pool->n_asleep, 1);
        while (atomic_load(&pool->open) <= 0 && !atomic_load(&pool->is_over))
            pthread_cond_wait(&pool->work, &pool->mutex);
        atomic_fetch_sub(&pool->n_asleep, 1);
        pthread_mutex_unlock(&pool->mutex);
    }
    return NULL;
}

// Starts the threads with all signals blocked: those are for the program's own threads.
static bool start_threads(usi_pool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before)) return false;
    for (; pool->n_started < pool->n_thread - 1; pool->n_started++) {
        worker *w = &pool->worker[pool->n_started];
        w->pool = pool;
        w->index = pool->n_started + 1;
        if (pthread_create(&w->thread, NULL, work, w)) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool->n_started == pool->n_thread - 1;
}

us_status usi_pool_create(int32_t n_thread, const us_allocator *allocator, usi_pool **out_pool) {
    if (!out_pool) return US_ERR_ARG;
    *out_pool = NULL;
    if (n_thread < 1) return US_ERR_ARG;
    if (n_thread > MAX_THREADS) return US_ERR_LIMIT;
    us_allocator a = allocator ? *allocator : us_allocator_default();
    size_t size = sizeof(usi_pool) + (size_t)(n_thread - 1) * sizeof(worker);
    usi_pool *pool = usi_alloc(&a, size, _Alignof(usi_pool));
    if (!pool) return US_ERR_MEMORY;
    *pool = (usi_pool){.allocator = a, .size = size, .n_thread = n_thread};
    bool has_mutex = !pthread_mutex_init(&pool->mutex, NULL);
    bool has_work = has_mutex && !pthread_cond_init(&pool->work, NULL);
    if (!has_work || pthread_cond_init(&pool->done, NULL)) {
        if (has_work) pthread_cond_destroy(&pool->work);
        if (has_mutex) pthread_mutex_destroy(&pool->mutex);
        usi_release(&a, pool, size, _Alignof(usi_pool));
        return US_ERR_MEMORY;
    }
    if (!start_threads(pool)) {
        usi_pool_destroy(pool);
        return US_ERR_LIMIT;
    }
    *out_pool = pool;
    return US_OK;
}

void usi_pool_destroy(usi_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->is_over, true);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int32_t i = 0; i < pool->n_started; i++)
        pthread_join(pool->worker[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    us_allocator a = pool->allocator;
    usi_release(&a, pool, pool->size, _Alignof(usi_pool));
}

int32_t usi_pool_n_thread(const usi_pool *pool) { return pool ? pool->n_thread : 1; }

void usi_pool_run(usi_pool *pool, int32_t n, int32_t grain, usi_part part, void *context) {
    if (grain < 1) grain = 1;
    if (!pool || pool->n_thread == 1 || n <= grain) {
        for (int32_t i = 0; i < n; i++)
            part(context, i, 0);
        return;
    }

    // Publish the job.
    pool->part = part;
    pool->context = context;
    pool->n = n;
    pool->grain = grain;
    pool->n_chunk = (n - 1) / grain + 1;
    atomic_store(&pool->unfinished, pool->n_chunk);
    atomic_store(&pool->open, pool->n_chunk);

    // Wake no more threads than there are chunks besides the caller's.
    int32_t n_asleep = atomic_load(&pool->n_asleep);
    if (n_asleep > 0) {
        pthread_mutex_lock(&pool->mutex);
        if (n_asleep < pool->n_chunk) {
            pthread_cond_broadcast(&pool->work);
        } else {
            for (int32_t i = 1; i < pool->n_chunk; i++)
                pthread_cond_signal(&pool->work);
        }
        pthread_mutex_unlock(&pool->mutex);
    }

    // Work, then wait for the chunks of the others.
    do_chunks(pool, 0);
    for (int spin = 0; spin < SPIN && atomic_load(&pool->unfinished) > 0; spin++)
        pause_briefly();
    if (atomic_load(&pool->unfinished) == 0) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->is_waiting, true);
    while (atomic_load(&pool->unfinished) > 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->is_waiting, false);
    pthread_mutex_unlock(&pool->mutex);
}

// After some polling the processor is left to others: the one that is waited for may need it.
void usi_pool_wait(_Atomic int32_t *progress, int32_t value) {
    for (int spin = 0; atomic_load_explicit(progress, memory_order_acquire) < value; spin++) {
        if (spin < SPIN) {
            pause_briefly();
        } else {
            sched_yield();
        }
    }
}
