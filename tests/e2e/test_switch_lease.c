// Switches of one robot that are stopped, killed and replaced, and strangers that forge: who holds the leases
// commands, and nobody else.
#include "bus/bus.h"
#include "test_lease_support.h"

// ---- one by one ----

static void a_switch_that_was_stopped_does_not_come_back(void **state) {
    (void)state;
    stage *s = open_stage();
    pid_t a = start_switch("a", "--mode hardware");
    WAIT_FOR(is_flowing(&s->sources[0]));
    kill(a, SIGSTOP);
    start_switch("b", "--mode hardware");
    WAIT_FOR(has_logged("b", "hardware in control") && is_flowing(&s->sources[0]));
    WAIT_FOR((write_text_message(s->request, "k10 proxy"), controls(s, "proxy")) &&
             is_flowing(&s->sources[1]));
    int32_t n = atomic_load(&s->sources[0].n_taken);
    kill(a, SIGCONT);
    assert_int_equal(wait_for_end(a), 3);
    assert_true(has_logged("a", "withdrawn: another switch of this robot has got the lease of the "));
    int32_t sent = atomic_load(&s->n_sent);
    WAIT_FOR(atomic_load(&s->n_sent) > sent + 50);
    assert_true(is_flowing(&s->sources[1]));
    assert_int_equal(atomic_load(&s->sources[0].n_taken), n);
    assert_int_equal(count_doubles(s), 0);
    close_stage(s);
}

static void a_replacement_takes_over_and_one_that_keeps_does_not_give_way(void **state) {
    (void)state;
    stage *s = open_stage();
    pid_t a = start_switch("a", "");
    WAIT_FOR(is_flowing(&s->sources[0]));
    start_switch("waiting", "--standby");
    WAIT_FOR(has_logged("waiting", "waiting: another switch of this robot holds its leases\n"));
    assert_true(kill(a, 0) == 0);
    pid_t b = start_switch("b", "--keep");
    assert_int_equal(wait_for_end(a), 3);
    assert_true(has_logged("a", "withdrawn: another switch of this robot takes over"));
    WAIT_FOR(has_logged("b", "hardware in control") && is_flowing(&s->sources[0]));
    start_switch("c", "");
    WAIT_FOR(has_logged("c", "holds its leases and is asked to give way"));
    int32_t sent = atomic_load(&s->n_sent);
    WAIT_FOR(atomic_load(&s->n_sent) > sent + 50);
    assert_false(has_logged("c", "in control"));
    // The end of the holder is a release: one of those who wait follows.
    end(b);
    WAIT_FOR((has_logged("c", "in control") || has_logged("waiting", "in control")) &&
             is_flowing(&s->sources[0]));
    assert_int_equal(count_doubles(s), 0);
    assert_int_equal(count_returns(&s->sources[0]), 0);
    close_stage(s);
}

// What others on the network say changes nothing.
static void forged_authority_and_requests_change_nothing(void **state) {
    (void)state;
    stage *s = open_stage();
    pid_t a = start_switch("a", "--keep");
    WAIT_FOR(is_flowing(&s->sources[0]));
    us_writer *authority = add_writer(s->bus, "/understudy/authority", usi_type_string, reliable);
    us_bus *forger = open_bus("cyclone", test_domain_of(1));
    us_writer *request = add_writer(forger, "/understudy/lease_request", usi_type_string, reliable);
    us_writer *answer = add_writer(forger, "/understudy/lease", usi_type_string, reliable);
    us_writer *twist = add_writer(forger, "/k10/cmd_vel", usi_type_twist, reliable);
    WAIT_FOR(us_writer_n_match(authority) > 0 && us_writer_n_match(request) > 0 &&
             us_writer_n_match(answer) > 0 && us_writer_n_match(twist) > 0);
    us_gate_state before = us_gate_get_state(s->sources[0].gate, 0);
    int32_t n_refused = atomic_load(&s->sources[0].n_refused);
    write_text_message(authority, "{\"robot\":\"k10\",\"mode\":\"proxy\",\"control\":\"proxy\",\"epoch\":"
                                  "18446744073709551615}");
    for (uint64_t i = 1; i <= 200; i++) {
        usi_lease_request r = {.robot = "k10", .seq = i, .boot = us_random_bits(3, 0, i)};
        r.nonce = us_random_bits(3, 1, i);
        r.role = (us_gate_role)(i % US_GATE_N_ROLE);
        r.is_take = true;
        char line[USI_LEASE_LINE];
        usi_lease_request_write(&r, line);
        write_text_message(request, line);
        // and as if the gate had leased to another, or begun anew
        usi_lease_answer lie = {.robot = "k10", .boot = r.boot, .seq = i, .nonce = r.nonce, .term = 1000 + i};
        lie.access = US_GATE_HELD;
        lie.role = US_GATE_ACTIVE;
        lie.holder = (usi_gate_id){{9, 9}};
        lie.left = US_GATE_LEASE;
        memcpy(lie.asker.v, before.holder, 12);
        usi_lease_answer_write(&lie, line);
        write_text_message(answer, line);
        us_msg_twist m = {.linear = {-1, 0, 0}};
        uint8_t bytes[128];
        size_t length = 0;
        assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length), US_OK);
        us_writer_write(twist, bytes, length, 0);
    }
    WAIT_FOR(atomic_load(&s->sources[0].n_refused) >= n_refused + 100);
    int32_t sent = atomic_load(&s->n_sent);
    WAIT_FOR(atomic_load(&s->n_sent) > sent + 50);
    us_gate_state after = us_gate_get_state(s->sources[0].gate, 0);
    assert_int_equal(after.access, US_GATE_HELD);
    assert_int_equal(after.role, US_GATE_ACTIVE);
    assert_int_equal(after.term, before.term);
    assert_memory_equal(after.holder, before.holder, 12);
    assert_true(is_flowing(&s->sources[0]));
    assert_true(kill(a, 0) == 0 && !has_logged("a", "withdrawn") && !has_logged("a", "started again"));
    for (int32_t i = 0; i < atomic_load(&s->sources[0].n_taken); i++)
        assert_memory_equal(s->sources[0].taken[i].writer, before.holder, 12);
    us_bus_close(forger);
    close_stage(s);
}

static void one_that_is_left_follows_while_others_are_stopped(void **state) {
    (void)state;
    stage *s = open_stage();
    pid_t a = start_switch("a", "");
    WAIT_FOR(is_flowing(&s->sources[0]));
    pid_t b = start_switch("b", "--standby");
    start_switch("c", "--standby");
    WAIT_FOR(has_logged("b", "ready: the gates answer") && has_logged("c", "ready: the gates answer"));
    kill(b, SIGSTOP);
    int32_t sent = atomic_load(&s->n_sent);
    WAIT_FOR(atomic_load(&s->n_sent) > sent + 150);
    kill(a, SIGSTOP);
    double from = clock_now();
    WAIT_FOR(has_logged("c", "hardware in control") && is_flowing(&s->sources[0]));
    print_message("the third commanded after %.3f s\n", clock_now() - from);
    close_stage(s);
}

// One that was killed before it told the names of its nodes stays on the network until DDS misses it. What it
// wrote are commands, and no output of the robot.
static void a_switch_without_a_name_does_not_hide_the_commands(void **state) {
    (void)state;
    stage *s = open_stage();
    us_bus *nameless[2];
    for (int i = 0; i < 2; i++) {
        nameless[i] = open_bus("cyclone", test_domain_of(1 + i));
        us_writer *request = add_writer(nameless[i], "/understudy/lease_request", usi_type_string, reliable);
        us_writer *twist = add_writer(nameless[i], "/k10/cmd_vel", usi_type_twist, reliable);
        WAIT_FOR(us_writer_n_match(request) > 0 && us_writer_n_match(twist) > 0);
    }
    start_switch("a", "");
    WAIT_FOR(is_flowing(&s->sources[0]));
    WAIT_FOR((write_text_message(s->request, "k10 proxy"), controls(s, "proxy")) &&
             is_flowing(&s->sources[1]));
    for (int i = 0; i < 2; i++)
        us_bus_close(nameless[i]);
    close_stage(s);
}

// A holder of a lease by hand: what a switch does, with the moments of its requests and writes chosen here.
typedef struct tenant {
    us_bus *bus;
    us_writer *request, *twist;
    uint64_t seq;
    pthread_mutex_t lock;  // guards what follows
    usi_lease_answer last;
} tenant;

static void hear_answer(void *context, const us_sample *sample) {
    tenant *t = context;
    usi_lease_answer a;
    const char *text = (const char *)sample->bytes + 8;
    size_t length = sample->length > 8 ? strnlen(text, sample->length - 8) : 0;
    if (length == 0 || !usi_lease_answer_read(text, length, &a)) return;
    if (memcmp(a.asker.v, t->bus->id, 12) != 0) return;
    pthread_mutex_lock(&t->lock);
    t->last = a;
    pthread_mutex_unlock(&t->lock);
}

static void open_tenant(tenant *t) {
    *t = (tenant){.bus = open_bus("cyclone", test_domain_of(1))};
    pthread_mutex_init(&t->lock, NULL);
    add_reader(t->bus, "/understudy/lease", usi_type_string, reliable, hear_answer, t);
    t->request = add_writer(t->bus, "/understudy/lease_request", usi_type_string, reliable);
    t->twist = add_writer(t->bus, "/k10/cmd_vel", usi_type_twist, reliable);
    WAIT_FOR(us_writer_n_match(t->request) > 0 && us_writer_n_match(t->twist) > 0);
}

// Asks until it has the role.
static void lease(tenant *t, us_gate_role role) {
    double until = clock_now() + PATIENCE;
    for (;;) {
        pthread_mutex_lock(&t->lock);
        usi_lease_answer a = t->last;
        pthread_mutex_unlock(&t->lock);
        bool is_mine = a.access == US_GATE_HELD && memcmp(a.holder.v, t->bus->id, 12) == 0;
        if (is_mine && a.role == role && a.seq == t->seq) return;
        if (clock_now() > until) fail_msg("no lease in the role %s", us_gate_role_name(role));
        usi_lease_request r = {.robot = "k10", .seq = ++t->seq, .boot = a.boot, .nonce = a.nonce};
        r.role = role;
        char line[USI_LEASE_LINE];
        usi_lease_request_write(&r, line);
        write_text_message(t->request, line);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

// Whether the hardware takes a command of the tenant; it takes it or refuses it.
static bool is_taken(stage *s, tenant *t) {
    source *h = &s->sources[0];
    int32_t n_taken = atomic_load(&h->n_taken), n_refused = atomic_load(&h->n_refused);
    us_msg_twist m = {.linear = {-5, 0, 0}};
    uint8_t bytes[128];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(t->twist, bytes, length, 0), US_OK);
    WAIT_FOR(atomic_load(&h->n_taken) > n_taken || atomic_load(&h->n_refused) > n_refused);
    return atomic_load(&h->n_taken) > n_taken;
}

static void what_a_holder_writes_after_its_lease_is_refused(void **state) {
    (void)state;
    stage *s = open_stage();
    us_gate *gate = s->sources[0].gate;
    tenant first, second;
    open_tenant(&first);
    open_tenant(&second);
    lease(&first, US_GATE_ACTIVE);
    assert_true(is_taken(s, &first));
    assert_false(is_taken(s, &second));
    lease(&first, US_GATE_PASSIVE);
    assert_false(is_taken(s, &first));
    lease(&first, US_GATE_ACTIVE);
    assert_true(is_taken(s, &first));
    // frozen for longer than the lease: what it had looked up before it writes now
    WAIT_FOR(us_gate_get_state(gate, 0).access == US_GATE_CLOSED);
    assert_false(is_taken(s, &first));
    assert_false(is_taken(s, &second));
    // and beside a successor
    uint64_t term = us_gate_get_state(gate, 0).term;
    lease(&second, US_GATE_ACTIVE);
    assert_true(us_gate_get_state(gate, 0).term > term);
    assert_false(is_taken(s, &first));
    assert_true(is_taken(s, &second));
    us_bus_close(first.bus);
    us_bus_close(second.bus);
    close_stage(s);
}

static void a_source_that_is_back_within_the_watchdog_was_lost(void **state) {
    (void)state;
    stage *s = open_stage();
    start_switch("a", "--mode proxy --watchdog 5");
    WAIT_FOR(is_flowing(&s->sources[1]));
    pthread_mutex_lock(&s->lock);
    close_source(&s->sources[1]);
    open_source(&s->sources[1]);
    pthread_mutex_unlock(&s->lock);
    WAIT_FOR(has_logged("a", "stop, nobody in control"));
    assert_true(has_logged("a", "the proxy was started again"));
    // and hardware, from which the proxy takes over
    WAIT_FOR((write_text_message(s->request, "k10 hardware"), controls(s, "hardware")) &&
             is_flowing(&s->sources[0]));
    pthread_mutex_lock(&s->lock);
    close_source(&s->sources[0]);
    open_source(&s->sources[0]);
    pthread_mutex_unlock(&s->lock);
    WAIT_FOR(controls(s, "proxy") && is_flowing(&s->sources[1]));
    assert_true(has_logged("a", "proxy in control") && has_logged("a", "the hardware was started again"));
    close_stage(s);
}

static void a_gate_is_open_before_a_lease_and_after_a_release(void **state) {
    (void)state;
    stage *s = open_stage();
    us_bus *client = open_bus("cyclone", test_domain_of(1));
    us_writer *twist = add_writer(client, "/k10/cmd_vel", usi_type_twist, reliable);
    us_msg_twist m = {.linear = {-7, 0, 0}};
    uint8_t bytes[128];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length), US_OK);
    WAIT_FOR((us_writer_write(twist, bytes, length, 0), atomic_load(&s->sources[0].n_taken) > 0));
    pid_t a = start_switch("a", "");
    WAIT_FOR(us_gate_get_state(s->sources[0].gate, 0).role == US_GATE_ACTIVE);
    int32_t n = atomic_load(&s->sources[0].n_refused);
    WAIT_FOR((us_writer_write(twist, bytes, length, 0), atomic_load(&s->sources[0].n_refused) > n));
    end(a);
    assert_int_equal(us_gate_get_state(s->sources[0].gate, 0).access, US_GATE_OPEN);
    n = atomic_load(&s->sources[0].n_taken);
    WAIT_FOR((us_writer_write(twist, bytes, length, 0), atomic_load(&s->sources[0].n_taken) > n));
    // One that is killed releases nothing.
    a = start_switch("a", "");
    WAIT_FOR(us_gate_get_state(s->sources[0].gate, 0).role == US_GATE_ACTIVE);
    kill(a, SIGKILL);
    WAIT_FOR(us_gate_get_state(s->sources[0].gate, 0).access == US_GATE_CLOSED);
    n = atomic_load(&s->sources[0].n_taken);
    us_writer_write(twist, bytes, length, 0);
    int32_t refused = atomic_load(&s->sources[0].n_refused);
    WAIT_FOR((us_writer_write(twist, bytes, length, 0), atomic_load(&s->sources[0].n_refused) > refused));
    assert_int_equal(atomic_load(&s->sources[0].n_taken), n);
    us_bus_close(client);
    close_stage(s);
}

int main(int n_argument, char **arguments) {
    if (n_argument > 1) cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_switch_that_was_stopped_does_not_come_back, clear_stage),
        cmocka_unit_test_teardown(a_replacement_takes_over_and_one_that_keeps_does_not_give_way, clear_stage),
        cmocka_unit_test_teardown(forged_authority_and_requests_change_nothing, clear_stage),
        cmocka_unit_test_teardown(one_that_is_left_follows_while_others_are_stopped, clear_stage),
        cmocka_unit_test_teardown(a_switch_without_a_name_does_not_hide_the_commands, clear_stage),
        cmocka_unit_test_teardown(what_a_holder_writes_after_its_lease_is_refused, clear_stage),
        cmocka_unit_test_teardown(a_source_that_is_back_within_the_watchdog_was_lost, clear_stage),
        cmocka_unit_test_teardown(a_gate_is_open_before_a_lease_and_after_a_release, clear_stage),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
