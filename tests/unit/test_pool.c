// The pool of threads: every part once, on a thread that exists, however often and with however many threads.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "base/pool.h"

enum { MAX_PART = 1000, MAX_THREAD = 64 };

typedef struct job {
    int32_t count[MAX_PART];  // plain numbers: a part done twice at once, or after the run's end, is a race
                              // that ThreadSanitizer sees
    double value[MAX_PART];
    _Atomic int32_t n_bad_thread, n_outside;
    int32_t n, n_thread;
} job;

static void count_part(void *context, int32_t i, int32_t thread) {
    job *j = context;
    if (thread < 0 || thread >= j->n_thread) atomic_fetch_add(&j->n_bad_thread, 1);
    if (i < 0 || i >= j->n) {
        atomic_fetch_add(&j->n_outside, 1);
        return;
    }
    j->count[i]++;
    double x = 1 + i;
    for (int k = 0; k < 20; k++)
        x = 0.5 * (x + (1 + i) / x);
    j->value[i] = x;
}

static usi_pool *new_pool(int32_t n_thread) {
    usi_pool *pool = NULL;
    us_allocator a = us_allocator_default();
    assert_int_equal(usi_pool_create(n_thread, &a, &pool), US_OK);
    assert_int_equal(usi_pool_n_thread(pool), n_thread);
    return pool;
}

static void check_once(const job *j) {
    assert_int_equal(j->n_bad_thread, 0);
    assert_int_equal(j->n_outside, 0);
    for (int32_t i = 0; i < MAX_PART; i++)
        assert_int_equal(j->count[i], i < j->n ? 1 : 0);
}

static void every_part_is_done_once_for_any_number_of_threads_parts_and_grain(void **state) {
    (void)state;
    static job j;
    const int32_t counts[] = {0, 1, 2, 3, 7, 64, 999, MAX_PART},
                  grains[] = {-1, 0, 1, 2, 10, 333, 5000, INT32_MAX};
    for (int32_t n_thread = 1; n_thread <= 8; n_thread++) {
        usi_pool *pool = new_pool(n_thread);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
                memset(&j, 0, sizeof j);
                j.n = counts[c];
                j.n_thread = n_thread;
                usi_pool_run(pool, counts[c], grains[g], count_part, &j);
                check_once(&j);
            }
        }
        usi_pool_destroy(pool);
    }
}

static void ten_thousand_runs_in_a_row_lose_nothing(void **state) {
    (void)state;
    static job j;
    for (int32_t n_thread = 1; n_thread <= 8; n_thread++) {
        usi_pool *pool = new_pool(n_thread);
        memset(&j, 0, sizeof j);
        j.n_thread = n_thread;
        int32_t expected[16] = {0};
        for (int32_t run = 0; run < 10000; run++) {
            j.n = 2 + run % 15;
            usi_pool_run(pool, j.n, 1 + run % 3, count_part, &j);
            for (int32_t i = 0; i < j.n; i++)
                expected[i]++;
        }
        assert_int_equal(j.n_bad_thread, 0);
        assert_int_equal(j.n_outside, 0);
        assert_memory_equal(j.count, expected, sizeof expected);
        usi_pool_destroy(pool);
    }
}

// Each part waits until all have begun: that needs as many threads at once as there are parts, sleepers among
// them.
typedef struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t all_here;
    int32_t n_here, n;
    int32_t thread[MAX_THREAD];
} meeting;

static void meet(void *context, int32_t i, int32_t thread) {
    meeting *m = context;
    pthread_mutex_lock(&m->mutex);
    m->thread[i] = thread;
    if (++m->n_here == m->n) pthread_cond_broadcast(&m->all_here);
    while (m->n_here < m->n)
        pthread_cond_wait(&m->all_here, &m->mutex);
    pthread_mutex_unlock(&m->mutex);
}

static void parts_run_at_the_same_time_on_different_threads(void **state) {
    (void)state;
    for (int32_t n_thread = 2; n_thread <= 8; n_thread++) {
        usi_pool *pool = new_pool(n_thread);
        for (int run = 0; run < 20; run++) {
            meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, n_thread, {0}};
            usi_pool_run(pool, n_thread, 1, meet, &m);
            bool is_used[MAX_THREAD] = {false};
            for (int32_t i = 0; i < n_thread; i++) {
                assert_in_range(m.thread[i], 0, n_thread - 1);
                assert_false(is_used[m.thread[i]]);
                is_used[m.thread[i]] = true;
            }
        }
        usi_pool_destroy(pool);
    }
}

static void without_a_pool_or_with_one_thread_it_is_a_plain_loop(void **state) {
    (void)state;
    static job j;
    usi_pool *one = new_pool(1), *pools[] = {NULL, one};
    assert_int_equal(usi_pool_n_thread(NULL), 1);
    for (int k = 0; k < 2; k++) {
        memset(&j, 0, sizeof j);
        j.n = 100;
        j.n_thread = 1;
        usi_pool_run(pools[k], 100, 7, count_part, &j);
        check_once(&j);
    }
    usi_pool_destroy(one);
    usi_pool_destroy(NULL);
}

static void the_results_do_not_depend_on_the_number_of_threads(void **state) {
    (void)state;
    static job alone, together;
    memset(&alone, 0, sizeof alone);
    alone.n = MAX_PART;
    alone.n_thread = 1;
    usi_pool_run(NULL, MAX_PART, 1, count_part, &alone);
    for (int32_t n_thread = 2; n_thread <= 8; n_thread += 3) {
        usi_pool *pool = new_pool(n_thread);
        memset(&together, 0, sizeof together);
        together.n = MAX_PART;
        together.n_thread = n_thread;
        usi_pool_run(pool, MAX_PART, 3, count_part, &together);
        assert_memory_equal(together.value, alone.value, sizeof alone.value);
        usi_pool_destroy(pool);
    }
}

static void sixty_four_threads_can_be_made_and_destroyed_with_and_without_work(void **state) {
    (void)state;
    static job j;
    for (int round = 0; round < 5; round++) {
        usi_pool_destroy(new_pool(MAX_THREAD));
        usi_pool *pool = new_pool(MAX_THREAD);
        memset(&j, 0, sizeof j);
        j.n = MAX_PART;
        j.n_thread = MAX_THREAD;
        usi_pool_run(pool, MAX_PART, 1, count_part, &j);
        check_once(&j);
        usi_pool_destroy(pool);
    }
}

static void note_signals(void *context, int32_t i, int32_t thread) {
    bool *is_blocked = context;
    sigset_t mask;
    (void)i;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (thread) is_blocked[thread] = sigismember(&mask, SIGINT) == 1;
}

typedef struct signals {
    meeting meeting;
    bool is_blocked[MAX_THREAD];
} signals;

static void meet_and_note_signals(void *context, int32_t i, int32_t thread) {
    signals *s = context;
    meet(&s->meeting, i, thread);
    note_signals(s->is_blocked, i, thread);
}

static void signals_of_the_program_do_not_reach_the_threads(void **state) {
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    usi_pool *pool = new_pool(4);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    signals s = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 4, {0}}, {false}};
    usi_pool_run(pool, 4, 1, meet_and_note_signals, &s);
    for (int thread = 1; thread < 4; thread++)
        assert_true(s.is_blocked[thread]);
    usi_pool_destroy(pool);
}

static void wrong_arguments_and_lack_of_memory_are_reported_and_running_allocates_nothing(void **state) {
    (void)state;
    static job j;
    test_allocator t;
    test_allocator_init(&t);
    usi_pool *pool = NULL;
    assert_int_equal(usi_pool_create(0, &t.allocator, &pool), US_ERR_ARG);
    assert_int_equal(usi_pool_create(-3, &t.allocator, &pool), US_ERR_ARG);
    assert_int_equal(usi_pool_create(2, &t.allocator, NULL), US_ERR_ARG);
    assert_int_equal(usi_pool_create(1000000, &t.allocator, &pool), US_ERR_LIMIT);
    assert_null(pool);
    t.fail_at = t.n_alloc + 1;
    assert_int_equal(usi_pool_create(3, &t.allocator, &pool), US_ERR_MEMORY);
    assert_null(pool);
    assert_int_equal(usi_pool_create(3, &t.allocator, &pool), US_OK);
    int64_t n_alloc = t.n_alloc;
    memset(&j, 0, sizeof j);
    j.n = 50;
    j.n_thread = 3;
    usi_pool_run(pool, 50, 1, count_part, &j);
    check_once(&j);
    assert_int_equal(t.n_alloc, n_alloc);
    usi_pool_destroy(pool);
    test_allocator_check(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_done_once_for_any_number_of_threads_parts_and_grain),
        cmocka_unit_test(ten_thousand_runs_in_a_row_lose_nothing),
        cmocka_unit_test(parts_run_at_the_same_time_on_different_threads),
        cmocka_unit_test(without_a_pool_or_with_one_thread_it_is_a_plain_loop),
        cmocka_unit_test(the_results_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(sixty_four_threads_can_be_made_and_destroyed_with_and_without_work),
        cmocka_unit_test(signals_of_the_program_do_not_reach_the_threads),
        cmocka_unit_test(wrong_arguments_and_lack_of_memory_are_reported_and_running_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
