// Readers, writers and buses that go while samples arrive: after the call has returned no callback runs, and
// nothing is lost or leaked.
#include <pthread.h>

#include "test_bus_support.h"

// What a callback may touch. Filled with garbage as soon as the reader is removed: a late callback would find
// it.
typedef struct target {
    _Atomic bool is_open;
    _Atomic int64_t n_good, n_late;
} target;

static void hit(void *context, const us_sample *sample) {
    target *t = context;
    (void)sample;
    atomic_fetch_add(atomic_load(&t->is_open) ? &t->n_good : &t->n_late, 1);
}

typedef struct flood {
    us_bus *bus;
    us_writer *writer;
    pthread_t thread;
    _Atomic bool is_over;
    int64_t n_failed;
} flood;

static void *run_flood(void *context) {
    flood *f = context;
    us_msg_tick_hash message = {0};
    uint8_t bytes[64];
    size_t length = 0;
    while (!atomic_load(&f->is_over)) {
        message.tick++;
        if (us_message_encode(usi_type_tick_hash, &message, bytes, sizeof bytes, &length) ||
            us_writer_write(f->writer, bytes, length, 0))
            f->n_failed++;
        if (message.tick % 64 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);  // leaves the processor to the others
    }
    return NULL;
}

static void start_flood(flood *f, us_bus *bus, const char *topic) {
    *f = (flood){.bus = bus};
    f->writer = add_writer(bus, topic, usi_type_tick_hash, (us_qos){.is_reliable = true, .depth = 10});
    assert_int_equal(pthread_create(&f->thread, NULL, run_flood, f), 0);
}

static void stop_flood(flood *f) {
    atomic_store(&f->is_over, true);
    pthread_join(f->thread, NULL);
    assert_int_equal(f->n_failed, 0);
}

static void no_callback_runs_after_its_reader_is_removed(void **state) {
    (void)state;
    enum { ROUNDS = 30 };
    us_bus *from = open_bus("cyclone", test_domain()), *to = open_bus("cyclone", test_domain());
    flood f;
    start_flood(&f, from, "/flood");
    static target targets[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&targets[i].is_open, true);
        us_reader *reader = add_reader(to, "/flood", usi_type_tick_hash,
                                       (us_qos){.is_reliable = i % 2, .depth = 5}, hit, &targets[i]);
        WAIT_FOR(atomic_load(&targets[i].n_good) > 20);
        us_reader_remove(reader);
        atomic_store(&targets[i].is_open, false);
    }
    // The last round's traffic would have shown a late one; here also all that is still under way has passed.
    us_bus_close(to);
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(atomic_load(&targets[i].n_late), 0);
    stop_flood(&f);
    us_bus_close(from);
}

static void no_callback_runs_after_its_bus_is_closed(void **state) {
    (void)state;
    enum { ROUNDS = 8, EACH = 4 };
    us_bus *from = open_bus("cyclone", test_domain());
    flood f;
    start_flood(&f, from, "/flood");
    for (int i = 0; i < ROUNDS; i++) {
        us_bus *to = open_bus("cyclone", test_domain());
        static target targets[EACH];
        memset(targets, 0, sizeof targets);
        for (int k = 0; k < EACH; k++) {
            atomic_store(&targets[k].is_open, true);
            add_reader(to, "/flood", usi_type_tick_hash, (us_qos){.is_reliable = true, .depth = 5}, hit,
                       &targets[k]);
        }
        for (int k = 0; k < EACH; k++)
            WAIT_FOR(atomic_load(&targets[k].n_good) > 5);
        us_bus_close(to);
        for (int k = 0; k < EACH; k++)
            atomic_store(&targets[k].is_open, false);
        // Time enough for a late one: until another bus has heard of the same writer.
        us_bus *after = open_bus("cyclone", test_domain());
        target later = {.is_open = true};
        us_reader *reader =
            add_reader(after, "/flood", usi_type_tick_hash, (us_qos){.depth = 5}, hit, &later);
        WAIT_FOR(atomic_load(&later.n_good) > 5);
        us_reader_remove(reader);
        us_bus_close(after);
        for (int k = 0; k < EACH; k++)
            assert_int_equal(atomic_load(&targets[k].n_late), 0);
    }
    stop_flood(&f);
    us_bus_close(from);
}

static void readers_without_callback_go_while_somebody_waits(void **state) {
    (void)state;
    us_bus *from = open_bus("cyclone", test_domain()), *to = open_bus("cyclone", test_domain());
    flood f;
    start_flood(&f, from, "/flood");
    for (int i = 0; i < 20; i++) {
        us_reader *reader = add_reader(to, "/flood", usi_type_tick_hash,
                                       (us_qos){.is_reliable = true, .depth = 3}, NULL, NULL);
        assert_true(us_bus_wait(to, PATIENCE));
        uint8_t buf[64];
        size_t length = 0;
        if (i % 2) assert_int_equal(us_reader_take(reader, buf, sizeof buf, &length, NULL), US_OK);
        us_reader_remove(reader);
        assert_false(us_bus_wait(to, 0));
    }
    stop_flood(&f);
    us_bus_close(to);
    us_bus_close(from);
}

static void what_was_written_last_arrives_although_the_writer_goes(void **state) {
    (void)state;
    us_bus *to = open_bus("cyclone", test_domain());
    target t = {.is_open = true};
    us_reader *reader = add_reader(to, "/last", usi_type_tick_hash, (us_qos){.is_reliable = true}, hit, &t);
    int64_t n = 0;
    for (int i = 0; i < 10; i++) {
        us_bus *from = open_bus("cyclone", test_domain());
        us_writer *writer =
            add_writer(from, "/last", usi_type_tick_hash, (us_qos){.is_reliable = true, .depth = 100});
        // The first sample finds its way after the two have agreed; the others follow at once, and the writer
        // goes behind them.
        WAIT_FOR(us_writer_n_match(writer) == 1 && us_reader_n_match(reader) == 1);
        send_tick(writer, 0);
        WAIT_FOR(atomic_load(&t.n_good) == n + 1);
        for (int k = 1; k < 50; k++)
            send_tick(writer, k);
        us_bus_close(from);
        n += 50;
        WAIT_FOR(us_reader_n_match(reader) == 0);
    }
    WAIT_FOR(atomic_load(&t.n_good) >= n);
    us_bus_close(to);
    assert_int_equal(atomic_load(&t.n_good), n);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_callback_runs_after_its_reader_is_removed),
    cmocka_unit_test(no_callback_runs_after_its_bus_is_closed),
    cmocka_unit_test(readers_without_callback_go_while_somebody_waits),
    cmocka_unit_test(what_was_written_last_arrives_although_the_writer_goes),
};

BUS_TEST_MAIN(tests, NULL, NULL)
