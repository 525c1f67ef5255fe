// Time that jumps: a world that is reset or restored while its robots speak.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/tap.h"
#include "proxy_world.h"

static const char *const radio =
    "<network><uplink delay='30 ms' jitter='10 ms' loss='0.1'/>"
    "<downlink delay='200 ms' jitter='30 ms' loss='0.1' bandwidth='200000'/></network>";

// All that was heard, as a number, and when.
typedef struct ear {
    us_proxy *proxy;
    uint64_t hash;
    int64_t n_sample, first, last, n_odom, n_back, n_once, last_odom;
} ear;

static void hear(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    ear *e = context;
    usi_channel_info c = usi_proxy_get_channel(e->proxy, channel);
    if (e->n_sample++ == 0) e->first = time;
    e->n_back += time < e->last;
    e->last = time;
    e->n_once += c.is_latched;
    // The diagnostics count what came in all, which a jump does not take back.
    if (strcmp(c.topic, "/diagnostics") != 0) {
        e->hash = us_hash_bytes(e->hash, c.topic, strlen(c.topic));
        e->hash = us_hash_bytes(e->hash, &time, sizeof time);
        e->hash = us_hash_bytes(e->hash, bytes, length);
    }
    if (strcmp(c.topic, "/k10/odom") != 0) return;
    e->n_odom++;
    // The stamp is the first thing in the message, after the header of 4 bytes.
    int32_t seconds;
    uint32_t ns;
    memcpy(&seconds, (const char *)bytes + 4, 4);
    memcpy(&ns, (const char *)bytes + 8, 4);
    e->last_odom = (int64_t)seconds * 1000000000 + ns;
    assert_true(e->last_odom <= time);
}

static void listen(proxy_world *w, ear *e) {
    *e = (ear){.proxy = w->proxy};
    usi_proxy_set_tap(w->proxy, hear, e);
}

static void run(proxy_world *w, int from, int to) {
    for (int i = from; i < to; i++) {
        if (i % 90 == 10) proxy_world_drive(w, 0.4, 0, i % 180 == 10 ? 0.2 : -0.3);
        proxy_world_step(w, 1);
    }
}

static void *save(const us_sim *sim, size_t *out_length) {
    us_sim_save(sim, NULL, 0, out_length);
    void *bytes = malloc(*out_length);
    assert_non_null(bytes);
    assert_int_equal(us_sim_save(sim, bytes, *out_length, out_length), US_OK);
    return bytes;
}

static void after_a_reset_a_robot_says_what_it_said_at_first(void **state) {
    (void)state;
    static const char *const networks[] = {"", "<network><uplink delay='30 ms'/></network>"};
    for (int k = 0; k < 3; k++) {
        proxy_world w;
        ear first, again;
        proxy_world_k10(&w, k < 2 ? networks[k] : radio);
        listen(&w, &first);
        run(&w, 0, 700);
        assert_int_equal(us_sim_reset(w.sim), US_OK);
        listen(&w, &again);
        run(&w, 0, 700);
        // Told once, told again: the description, as far as the radio let them pass. The clock goes back to
        // where it began.
        assert_int_equal(again.n_once, first.n_once);
        assert_int_equal(again.first, first.first);
        assert_int_equal(again.last, first.last);
        assert_int_equal(again.n_sample, first.n_sample);
        assert_true(again.hash == first.hash);
        assert_true(first.n_odom > 10 && first.n_back == 0 && again.n_back == 0);
        proxy_world_fini(&w);
    }
}

// Back, and to a time that has not been yet.
static void after_a_restore_samples_come_at_their_times(void **state) {
    (void)state;
    static const char *const late = "<network><downlink delay='200 ms'/></network>";
    static const struct {
        const char *inside;
        int delay;  // ticks
    } cases[] = {{"", 0}, {late, 200}};
    for (int k = 0; k < 2; k++) {
        proxy_world w;
        ear e;
        size_t length[2];
        void *snapshot[2];
        proxy_world_k10(&w, cases[k].inside);
        listen(&w, &e);
        run(&w, 0, 300);
        snapshot[0] = save(w.sim, &length[0]);
        run(&w, 300, 1500);
        snapshot[1] = save(w.sim, &length[1]);
        for (int j = 0; j < 4; j++) {
            // Back, forward, back, and back to the same place.
            int which = j == 1, from = which ? 1500 : 300;
            assert_int_equal(us_sim_restore(w.sim, snapshot[which], length[which]), US_OK);
            listen(&w, &e);
            run(&w, from, from + 400);
            assert_int_equal(e.first, (int64_t)(from + 1) * 1000000);
            assert_int_equal(e.n_back, 0);
            // 50 Hz; what was on its way at the jump is lost, and nothing waits for a time that was.
            int64_t expected = (400 - cases[k].delay) / 20;
            if (e.n_odom < expected - 1 || e.n_odom > expected + 1)
                fail_msg("%d odom samples, %d expected", (int)e.n_odom, (int)expected);
            assert_int_equal(e.last_odom, (int64_t)(from + 400 - cases[k].delay) * 1000000);
            assert_true(e.n_once > 0);
        }
        free(snapshot[0]);
        free(snapshot[1]);
        proxy_world_fini(&w);
    }
}

// The world after a jump is the one that was saved: robots speak as they did then, but for what is told at
// once.
static void after_a_restore_odometry_goes_on_from_where_it_was(void **state) {
    (void)state;
    proxy_world w;
    ear e, again;
    size_t length = 0;
    proxy_world_k10(&w, "");
    int32_t urdf = -1, clock = -1;
    for (int32_t i = 0; i < usi_proxy_n_channel(w.proxy); i++) {
        const char *topic = usi_proxy_get_channel(w.proxy, i).topic;
        if (strcmp(topic, "/k10/robot_description") == 0) urdf = i;
        if (strcmp(topic, "/clock") == 0) clock = i;
    }
    run(&w, 0, 300);
    void *snapshot = save(w.sim, &length);
    ear *ears[2] = {&e, &again};
    for (int k = 0; k < 2; k++) {
        if (k == 1) assert_int_equal(us_sim_restore(w.sim, snapshot, length), US_OK);
        listen(&w, ears[k]);
        usi_proxy_want_channel(w.proxy, urdf, false);
        usi_proxy_want_channel(w.proxy, clock, false);
        run(&w, 300, 900);
    }
    assert_true(e.hash == again.hash);
    assert_int_equal(e.n_sample, again.n_sample);
    free(snapshot);
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_reset_a_robot_says_what_it_said_at_first),
        cmocka_unit_test(after_a_restore_samples_come_at_their_times),
        cmocka_unit_test(after_a_restore_odometry_goes_on_from_where_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
