// The radio link: delay, jitter, loss, bandwidth, outages, and that the same seed gives the same fate.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/link.h"
#include "proxy_world.h"

enum { CAP = 64 * 1024, MS = 1000000 };

typedef struct link {
    usi_link_head head;
    uint64_t bytes[CAP / 8];
    usi_link_queue queue;
} link_;

static void link_init(link_ *l) {
    memset(l, 0, sizeof *l);
    l->queue = (usi_link_queue){&l->head, l->bytes, CAP};
}

// Sends a number every millisecond for n ms, and writes down when each arrives: -1 for never.
static void run(const us_link_model *m, uint64_t seed, int n, size_t length, int64_t *arrival) {
    static link_ l;
    static char payload[4096];
    link_init(&l);
    for (int i = 0; i < n; i++)
        arrival[i] = -1;
    for (int64_t t = 0; t < 100 * (int64_t)n; t++) {
        if (t < n) {
            int32_t number = (int32_t)t;
            memcpy(payload, &number, sizeof number);
            usi_link_send(m, seed, 0, &l.queue, t * MS, 3, payload, length);
        }
        for (const usi_link_item *item; (item = usi_link_first(&l.queue, t * MS));) {
            int32_t number;
            memcpy(&number, item + 1, sizeof number);
            assert_in_range(number, 0, n - 1);
            assert_int_equal(item->length, length);
            assert_int_equal(item->topic, 3);
            arrival[number] = t;
            usi_link_drop_first(&l.queue);
        }
        if (t >= n && l.head.used == 0) return;
    }
}

static void a_delay_is_kept_to_the_tick(void **state) {
    (void)state;
    int64_t at[200];
    us_link_model m = {.delay = 0.040};
    run(&m, 1, 200, 16, at);
    for (int i = 0; i < 200; i++)
        assert_int_equal(at[i], i + 40);
}

static void jitter_lies_within_its_bound_and_keeps_the_order(void **state) {
    (void)state;
    int64_t at[500], most = 0;
    us_link_model m = {.delay = 0.010, .jitter = 0.020};
    run(&m, 1, 500, 16, at);
    for (int i = 0; i < 500; i++) {
        assert_in_range(at[i] - i, 10, 30);
        most = at[i] - i > most ? at[i] - i : most;
        if (i > 0) assert_true(at[i] >= at[i - 1]);
    }
    assert_true(most > 25);
}

static void loss_is_as_likely_as_it_is_said(void **state) {
    (void)state;
    enum { N = 2000 };
    static int64_t at[N], again[N], other[N];
    us_link_model m = {.loss = 0.3};
    int n_lost = 0, n_different = 0;
    run(&m, 1, N, 16, at);
    run(&m, 1, N, 16, again);
    run(&m, 2, N, 16, other);
    for (int i = 0; i < N; i++) {
        n_lost += at[i] < 0;
        n_different += at[i] != other[i];
    }
    // 600 expected, deviation 20.5: five of them.
    assert_in_range(n_lost, 500, 700);
    assert_memory_equal(at, again, sizeof at);
    assert_true(n_different > 0);
}

static void bandwidth_makes_messages_wait_for_each_other(void **state) {
    (void)state;
    int64_t at[20];
    // 1000 bytes take 10 ms; ten times as many come.
    us_link_model m = {.bandwidth = 100000};
    run(&m, 1, 20, 1000, at);
    for (int i = 0; i < 20; i++)
        assert_int_equal(at[i], 10 * (i + 1));
}

static void an_outage_swallows_what_is_under_way(void **state) {
    (void)state;
    int64_t at[100];
    const double windows[] = {0.030, 0.050};
    us_link_model m = {.delay = 0.010, .n_outage = 1, .outages = windows};
    run(&m, 1, 100, 16, at);
    for (int i = 0; i < 100; i++) {
        bool is_lost = i + 10 >= 30 && i < 50;
        assert_int_equal(at[i], is_lost ? -1 : i + 10);
    }
}

static void a_full_queue_is_counted(void **state) {
    (void)state;
    static link_ l;
    static char payload[1000];
    link_init(&l);
    us_link_model m = {.delay = 10};
    for (int i = 0; i < 100; i++)
        usi_link_send(&m, 1, 0, &l.queue, i * MS, 0, payload, sizeof payload);
    assert_true(l.head.n_full > 0);
    assert_int_equal(l.head.n_full + (int64_t)(l.head.used / (sizeof(usi_link_item) + 1000)), 100);
}

// The drives of a robot behind a link of 0.2 s begin to turn 0.2 s after those of one without.
static void a_command_reaches_the_robot_after_the_delay(void **state) {
    (void)state;
    proxy_world w;
    int began[2] = {-1, -1};
    for (int k = 0; k < 2; k++) {
        proxy_world_k10(&w, k ? "<network><uplink delay='0.2 s'/></network>" : "");
        proxy_world_step(&w, 300);
        assert_int_equal(proxy_world_drive(&w, 0.5, 0, 0), US_OK);
        int32_t v = us_model_get_joint(w.model, us_model_find_joint(w.model, "k10/front_left_drive")).first_v;
        for (int i = 0; i < 400 && began[k] < 0; i++) {
            proxy_world_step(&w, 1);
            if (us_sim_view_v(w.sim)[v] > 0.02) began[k] = i;
        }
        proxy_world_fini(&w);
    }
    assert_true(began[0] >= 0);
    assert_int_equal(began[1], began[0] + 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delay_is_kept_to_the_tick),
        cmocka_unit_test(jitter_lies_within_its_bound_and_keeps_the_order),
        cmocka_unit_test(loss_is_as_likely_as_it_is_said),
        cmocka_unit_test(bandwidth_makes_messages_wait_for_each_other),
        cmocka_unit_test(an_outage_swallows_what_is_under_way),
        cmocka_unit_test(a_full_queue_is_counted),
        cmocka_unit_test(a_command_reaches_the_robot_after_the_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
