// Counters of a world that has run for weeks: ticks beyond 31 and 32 bits change nothing. With a step of a
// millisecond these are 25 and 50 days, which nobody waits for: the ticks begin just before.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/tap.h"
#include "proxy_world.h"
#include "sim/sim.h"

enum { N_STEP = 3000, MAX_SAMPLE = 8192 };

typedef struct heard {
    int32_t channel;
    int64_t time;  // ns since the first tick
    size_t length;
} heard;

typedef struct run {
    int64_t first;  // tick
    int n;
    heard samples[MAX_SAMPLE];
    double q[64];
    int n_q;
} run;

static void on_sample(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    (void)bytes;
    run *r = context;
    assert_true(r->n < MAX_SAMPLE);
    r->samples[r->n++] = (heard){channel, time - r->first * 1000000, length};
}

// A rover that drives, and is told so ten times a second, from a tick on.
static void drive_from(int64_t first, run *r) {
    proxy_world w;
    proxy_world_k10(&w, "");
    memset(r, 0, sizeof *r);
    r->first = first;
    w.sim->now.tick[0] = first;
    usi_proxy_set_tap(w.proxy, on_sample, r);
    for (int32_t i = 0; i < usi_proxy_n_channel(w.proxy); i++)
        usi_proxy_want_channel(w.proxy, i, true);
    for (int i = 0; i < N_STEP; i++) {
        if (i % 100 == 0 && i < N_STEP / 2) assert_int_equal(proxy_world_drive(&w, 0.3, 0, 0.1), US_OK);
        proxy_world_step(&w, 1);
    }
    assert_int_equal(us_sim_get_tick(w.sim), first + N_STEP);
    r->n_q = us_sim_view_model(w.sim)->n_q;
    assert_true(r->n_q <= 64);
    memcpy(r->q, w.sim->now.q, (size_t)r->n_q * sizeof *r->q);
    usi_proxy_set_tap(w.proxy, NULL, NULL);
    proxy_world_fini(&w);
}

static void weeks_change_nothing(void **state) {
    (void)state;
    run *young = malloc(sizeof *young), *old = malloc(sizeof *old);
    assert_true(young && old);
    // A tick at which everything is due, as at 0: rates divide a second.
    drive_from(1000, young);
    assert_true(young->n > 500 && young->q[4] > 0.2);
    static const int64_t ends[] = {INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 33};
    for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
        drive_from(ends[k] / 1000 * 1000 - 1000, old);
        assert_int_equal(old->n, young->n);
        for (int i = 0; i < young->n; i++) {
            assert_int_equal(old->samples[i].channel, young->samples[i].channel);
            assert_int_equal(old->samples[i].time, young->samples[i].time);
            assert_int_equal(old->samples[i].length, young->samples[i].length);
        }
        assert_memory_equal(old->q, young->q, (size_t)young->n_q * sizeof *young->q);
    }
    free(young);
    free(old);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weeks_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
