// Sims share a constant model: what they compute does not depend on how many run at once.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract_build.h"

enum { N_STEP = 400, N_THREAD = 4 };

typedef struct run {
    const us_model *model;
    us_sim *sim;
    us_status status;
    uint64_t hash[N_STEP];
} run;

static void *run_steps(void *context) {
    run *r = context;
    for (int tick = 0; tick < N_STEP && !r->status; tick++) {
        // Threads that poison, ask and reset disturb nobody.
        if (tick % 50 == 0) us_sim_poison(r->sim);
        us_sim_get_energy(r->sim);
        r->status = us_sim_step(r->sim, NULL);
        r->hash[tick] = us_sim_hash(r->sim);
    }
    return NULL;
}

static void sims_in_threads_give_the_same_bits_as_one_after_the_other(void **state) {
    (void)state;
    static run alone, together[N_THREAD];
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        us_model *m = contract_model((contract_world)w, US_INTEGRATOR_MIDPOINT);
        alone = (run){.model = m, .sim = contract_sim(m)};
        run_steps(&alone);
        assert_int_equal(alone.status, US_OK);
        pthread_t thread[N_THREAD];
        for (int k = 0; k < N_THREAD; k++) {
            together[k] = (run){.model = m, .sim = contract_sim(m)};
            assert_int_equal(pthread_create(&thread[k], NULL, run_steps, &together[k]), 0);
        }
        for (int k = 0; k < N_THREAD; k++)
            assert_int_equal(pthread_join(thread[k], NULL), 0);
        for (int k = 0; k < N_THREAD; k++) {
            assert_int_equal(together[k].status, US_OK);
            assert_memory_equal(together[k].hash, alone.hash, sizeof alone.hash);
            us_sim_destroy(together[k].sim);
        }
        us_sim_destroy(alone.sim);
        us_model_destroy(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sims_in_threads_give_the_same_bits_as_one_after_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
