// Switches and gates together, without clocks and sockets: a storm of delays, losses, freezes, deaths and
// restarts in simulated time, and a judge that sees nothing but the commands that were taken.
//
// Each switch has a program of its own that wants control of one source or the other, changes its mind at
// random, and commands whenever it may. A command is looked at and written in two steps, between which the
// switch may be stopped for any time: the judge must not find it among those of a successor.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "switch/lease_machine.h"

static const int64_t ms = 1000000;

enum { MAX_SWITCH = 3, MAX_MESSAGE = 4096, MAX_CLAIM = 100000 };

typedef enum kind { REQUEST, ANSWER, COMMAND } kind;

typedef struct message {
    kind kind;
    int64_t due;
    int source, sender;  // the gate; the switch, which is the receiver of answers
    uint64_t life;       // of the sender, so that a process that was started again gets nothing of before
    uint64_t boot;       // of the gate it was sent to
    usi_lease_request request;
    usi_lease_answer answer;
    int32_t claim;
} message;

// A stretch of time in which a switch was permitted to command one source, as the judge sees it: the first
// and the last of its commands that were taken.
typedef struct claim {
    int sender, source;
    uint64_t life;
    int64_t first, last;
} claim;

typedef struct program {
    bool is_alive;
    uint64_t life;
    int64_t frozen_until, born_at;
    usi_tenure tenure;
    us_switch_source control;
    int32_t claim;    // the present one; -1: not permitted
    bool is_writing;  // it has looked and not written yet
    int32_t written_claim;
    us_switch_source written_source;
    uint64_t written_boot;  // a reader that came since gets nothing of before
    int64_t next_command;
} program;

typedef struct world {
    uint64_t seed, n_draw;
    int64_t now;
    int n_switch;
    program switches[MAX_SWITCH];
    usi_gate_machine gates[2];
    int64_t gate_frozen_until[2];
    int32_t n_message;
    message messages[MAX_MESSAGE];
    int32_t n_claim;
    claim claims[MAX_CLAIM];
    int64_t n_both;  // commands that were taken while the other source took commands too
    int64_t n_admitted, n_refused;
    bool has_fence;  // false: what is refused is taken all the same (the judge must notice)
    uint64_t n_life;
} world;

static double draw(world *w) { return us_random_uniform(w->seed, 1, w->n_draw++); }
static uint64_t bits(world *w) { return us_random_bits(w->seed, 2, w->n_draw++) | 1; }

// Mostly a millisecond; some are sent again after a loss, and overtake each other; a few never arrive.
static int64_t delay(world *w) {
    double x = draw(w);
    return x < 0.9    ? (int64_t)(draw(w) * 2e6)
           : x < 0.99 ? (int64_t)(draw(w) * 5e7)
                      : (int64_t)(draw(w) * 3e8);
}

static void post(world *w, message m) {
    if (draw(w) < 0.01) return;
    assert_true(w->n_message < MAX_MESSAGE);
    m.due = w->now + delay(w);
    w->messages[w->n_message++] = m;
}

static void start_switch(world *w, int i) {
    program *s = &w->switches[i];
    *s = (program){.is_alive = true, .life = ++w->n_life, .born_at = w->now, .claim = -1};
    usi_gate_id self[2] = {{{1, (uint8_t)(i + 1)}}, {{2, (uint8_t)(i + 1)}}};
    memcpy(self[0].v + 3, &s->life, 8);
    memcpy(self[1].v + 3, &s->life, 8);
    usi_tenure_init(&s->tenure, self, draw(w) < 0.5, true, w->now);
    usi_tenure_hear(&s->tenure);
    s->control = draw(w) < 0.5 ? US_SWITCH_HARDWARE : US_SWITCH_PROXY;
    for (int k = 0; k < 2; k++) {
        usi_tenure_set_kind(&s->tenure, (us_switch_source)k, USI_GATE_PRESENT, w->now);
        usi_tenure_set_ready(&s->tenure, (us_switch_source)k, true);
    }
}

static void restart_gate(world *w, int k) {
    usi_gate_machine_init(&w->gates[k], bits(w));
    w->gate_frozen_until[k] = 0;
    // Readers of the new start are others: nothing of before reaches them.
    for (int32_t i = 0; i < w->n_message; i++) {
        if (w->messages[i].source == k && w->messages[i].kind != ANSWER) w->messages[i].boot = 0;
    }
}

static void admit(world *w, const message *m, const usi_gate_id *writer) {
    bool is_admitted = usi_gate_machine_admit(&w->gates[m->source], writer, w->now);
    w->n_refused += !is_admitted;
    if (!is_admitted && w->has_fence) return;
    w->n_admitted++;
    const usi_gate_machine *other = &w->gates[1 - m->source];
    if (other->access == US_GATE_HELD && other->role == US_GATE_ACTIVE && w->now < other->expiry) w->n_both++;
    claim *c = &w->claims[m->claim];
    if (c->first == 0) c->first = w->now;
    c->last = w->now;
}

static void deliver(world *w, const message *m) {
    program *s = &w->switches[m->sender];
    if (m->kind == ANSWER) {
        if (s->is_alive && s->life == m->life)
            usi_tenure_take(&s->tenure, (us_switch_source)m->source, &m->answer, w->now);
        return;
    }
    if (m->boot != w->gates[m->source].boot) return;
    usi_gate_id writer = {{(uint8_t)(m->source + 1), (uint8_t)(m->sender + 1)}};
    memcpy(writer.v + 3, &m->life, 8);
    if (m->kind == COMMAND) {
        admit(w, m, &writer);
        return;
    }
    message back = {.kind = ANSWER, .source = m->source};
    if (!usi_gate_machine_take(&w->gates[m->source], &writer, &m->request, w->now, bits(w), &back.answer))
        return;
    // Everybody hears it.
    for (int i = 0; i < w->n_switch; i++) {
        back.sender = i;
        back.life = w->switches[i].life;
        post(w, back);
    }
}

// Messages for who is frozen wait, in their order.
static bool is_deliverable(const world *w, const message *m) {
    if (m->due > w->now) return false;
    if (m->kind != ANSWER) return w->gate_frozen_until[m->source] <= w->now;
    const program *s = &w->switches[m->sender];
    return !s->is_alive || s->frozen_until <= w->now;
}

static void deliver_due(world *w) {
    for (int32_t i = 0; i < w->n_message;) {
        if (!is_deliverable(w, &w->messages[i])) {
            i++;
            continue;
        }
        message m = w->messages[i];
        memmove(&w->messages[i], &w->messages[i + 1], (size_t)(w->n_message - i - 1) * sizeof m);
        w->n_message--;
        deliver(w, &m);
    }
}

static void run_switch(world *w, int i) {
    program *s = &w->switches[i];
    // the second half of a write, whatever has happened since the first
    if (s->is_writing) {
        s->is_writing = false;
        message m = {.kind = COMMAND, .source = (int)s->written_source, .sender = i, .life = s->life};
        m.boot = s->written_boot;
        m.claim = s->written_claim;
        post(w, m);
    }
    if (draw(w) < 0.0005)
        s->control = s->control == US_SWITCH_HARDWARE ? US_SWITCH_PROXY : US_SWITCH_HARDWARE;
    us_gate_role roles[2] = {US_GATE_PASSIVE, US_GATE_PASSIVE};
    roles[s->control] = US_GATE_ACTIVE;
    if (s->tenure.wanted[s->control] != US_GATE_ACTIVE) s->claim = -1;
    usi_tenure_want(&s->tenure, roles);
    usi_tenure_step(&s->tenure, w->now);
    for (int k = 0; k < 2; k++) {
        message m = {.kind = REQUEST, .source = k, .sender = i, .life = s->life, .boot = w->gates[k].boot};
        if (usi_tenure_ask(&s->tenure, (us_switch_source)k, w->now, &m.request)) post(w, m);
    }
    // commands: a claim is a stretch without interruption
    if (w->now >= usi_tenure_permit(&s->tenure, s->control, w->now)) {
        s->claim = -1;
    } else if (w->now >= s->next_command) {
        if (s->claim < 0) {
            assert_true(w->n_claim < MAX_CLAIM);
            s->claim = w->n_claim++;
            w->claims[s->claim] = (claim){.sender = i, .source = (int)s->control, .life = s->life};
        }
        s->is_writing = true;
        s->written_claim = s->claim;
        s->written_source = s->control;
        s->written_boot = w->gates[s->control].boot;
        s->next_command = w->now + 5 * ms;
    }
}

// Fate: freezes, deaths, restarts, of switches and of gates.
static void disturb(world *w) {
    int i = (int)(draw(w) * w->n_switch), k = (int)(draw(w) * 2);
    program *s = &w->switches[i];
    double x = draw(w);
    if (x < 0.4) {
        s->frozen_until = w->now + (int64_t)(draw(w) * (draw(w) < 0.5 ? 3e9 : 5e8));
    } else if (x < 0.6) {
        s->is_alive = false;
    } else if (x < 0.9) {
        if (!s->is_alive || s->tenure.state == USI_TENURE_OVER) start_switch(w, i);
    } else if (x < 0.96) {
        w->gate_frozen_until[k] = w->now + (int64_t)(draw(w) * 1e9);
    } else {
        restart_gate(w, k);
    }
    for (int n = 0; n < w->n_switch; n++) {
        if (w->switches[n].tenure.state == USI_TENURE_OVER && w->switches[n].frozen_until <= w->now)
            w->switches[n].is_alive = false;
    }
}

// No two claims overlap; with a fence.
static int64_t count_overlaps(const world *w, bool is_loud) {
    int64_t n = 0;
    for (int32_t i = 0; i < w->n_claim; i++) {
        const claim *a = &w->claims[i];
        if (a->first == 0) continue;
        for (int32_t k = i + 1; k < w->n_claim; k++) {
            const claim *b = &w->claims[k];
            if (b->first == 0 || b->first > a->last || a->first > b->last) continue;
            // One process in two stretches: what was under way from the first may arrive in the second. That
            // its two sources do not take commands at once is looked at when they do.
            if (a->life == b->life) continue;
            if (n++ < 5 && is_loud)
                print_message("seed %llu: switch %d at source %d from %.3f to %.3f s, switch %d at %d from "
                              "%.3f to %.3f s\n",
                              (unsigned long long)w->seed, a->sender, a->source, 1e-9 * (double)a->first,
                              1e-9 * (double)a->last, b->sender, b->source, 1e-9 * (double)b->first,
                              1e-9 * (double)b->last);
        }
    }
    return n;
}

static world *storm(uint64_t seed, int n_switch, double seconds, double every, bool has_fence) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    *w = (world){.seed = seed, .n_switch = n_switch, .now = 1000 * ms, .has_fence = has_fence};
    for (int k = 0; k < 2; k++)
        usi_gate_machine_init(&w->gates[k], bits(w));
    for (int i = 0; i < n_switch; i++)
        start_switch(w, i);
    int64_t end = w->now + (int64_t)(seconds * 1e9);
    for (; w->now < end; w->now += ms) {
        if (every > 0 && draw(w) < 1e-3 / every) disturb(w);
        deliver_due(w);
        for (int i = 0; i < n_switch; i++) {
            program *s = &w->switches[i];
            if (s->is_alive && s->frozen_until <= w->now) run_switch(w, i);
        }
    }
    return w;
}

static void no_storm_has_two_in_control(void **state) {
    (void)state;
    int64_t n_admitted = 0, n_refused = 0, n_claim = 0;
    int n_round = getenv("US_LONG_TESTS") ? 10000 : 200;
    for (int round = 0; round < n_round; round++) {
        world *w = storm((uint64_t)round + 1, 2 + round % 2, 60, 0.3, true);
        assert_int_equal(count_overlaps(w, true), 0);
        assert_int_equal(w->n_both, 0);
        assert_true(w->n_admitted > 500);
        n_admitted += w->n_admitted;
        n_refused += w->n_refused;
        n_claim += w->n_claim;
        free(w);
    }
    print_message("%d storms: %lld commands taken, %lld refused, %lld times in control, 0 overlaps\n",
                  n_round, (long long)n_admitted, (long long)n_refused, (long long)n_claim);
}

static void the_judge_notices_a_gate_that_refuses_nothing(void **state) {
    (void)state;
    int64_t n = 0;
    for (uint64_t seed = 1; seed <= 24 && n == 0; seed++) {
        world *w = storm(seed, 3, 60, 0.3, false);
        n = count_overlaps(w, false);
        free(w);
    }
    assert_true(n > 0);
}

// Without storms: who is alive has control soon, whoever died before.
static void one_that_is_alive_gets_control(void **state) {
    (void)state;
    int64_t longest = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        world *w = storm(seed, 2, 5, 0, true);
        int holder = w->switches[0].tenure.state == USI_TENURE_OFFICE ? 0 : 1;
        assert_int_equal(w->switches[holder].tenure.state, USI_TENURE_OFFICE);
        // the other, when it withdrew, is started again and waits; then the holder dies
        int other = 1 - holder;
        if (w->switches[other].tenure.state == USI_TENURE_OVER) start_switch(w, other);
        w->switches[other].tenure.is_taking = false;
        for (int64_t end = w->now + 500 * ms; w->now < end; w->now += ms) {
            deliver_due(w);
            run_switch(w, 0);
            run_switch(w, 1);
        }
        assert_int_equal(w->switches[other].tenure.state, USI_TENURE_WAITING);
        w->switches[holder].is_alive = false;
        int64_t died = w->now, n_before = w->n_admitted;
        // what was under way still arrives, so count from the first command of the other
        int64_t first = 0;
        for (int64_t end = w->now + 2000 * ms; w->now < end && first == 0; w->now += ms) {
            deliver_due(w);
            run_switch(w, other);
            int32_t c = w->switches[other].claim;
            if (c >= 0 && w->claims[c].first > 0) first = w->claims[c].first;
        }
        assert_true(first > died);
        assert_true(w->n_admitted > n_before);
        if (first - died > longest) longest = first - died;
        free(w);
    }
    print_message("a waiting switch commands at most %.3f s after the death of the holder\n",
                  1e-9 * (double)longest);
    // the lease, and messages of which some are sent again after a loss: 50 ms, some 300 ms
    assert_true(longest < US_GATE_LEASE + 350 * ms);
}

static void switches_without_gates_are_not_held_up(void **state) {
    (void)state;
    usi_gate_id self[2] = {{{1}}, {{2}}};
    usi_tenure t;
    usi_tenure_init(&t, self, true, true, ms);
    const us_gate_role roles[2] = {US_GATE_ACTIVE, US_GATE_PASSIVE};
    usi_tenure_want(&t, roles);
    usi_tenure_set_kind(&t, US_SWITCH_HARDWARE, USI_GATE_ABSENT, ms);
    usi_tenure_step(&t, 2 * ms);
    assert_int_equal(t.state, USI_TENURE_WAITING);  // nothing is known of the proxy
    assert_int_equal(usi_tenure_permit(&t, US_SWITCH_HARDWARE, 2 * ms), 0);
    usi_tenure_set_kind(&t, US_SWITCH_PROXY, USI_GATE_ABSENT, 3 * ms);
    usi_tenure_step(&t, 3 * ms);
    assert_int_equal(t.state, USI_TENURE_OFFICE);
    assert_true(usi_tenure_permit(&t, US_SWITCH_HARDWARE, 3 * ms) == INT64_MAX);
    assert_int_equal(usi_tenure_permit(&t, US_SWITCH_PROXY, 3 * ms), 0);
    usi_lease_request r;
    assert_false(usi_tenure_ask(&t, US_SWITCH_PROXY, 4 * ms, &r));
}

static void hardware_without_a_gate_is_commanded_with_the_proxys_lease(void **state) {
    (void)state;
    usi_gate_id self[2] = {{{1}}, {{2}}};
    usi_tenure t;
    usi_gate_machine gate;
    usi_gate_machine_init(&gate, 5);
    usi_tenure_init(&t, self, true, true, ms);
    const us_gate_role roles[2] = {US_GATE_ACTIVE, US_GATE_PASSIVE};
    usi_tenure_want(&t, roles);
    usi_tenure_set_kind(&t, US_SWITCH_HARDWARE, USI_GATE_ABSENT, ms);
    usi_tenure_set_kind(&t, US_SWITCH_PROXY, USI_GATE_PRESENT, ms);
    usi_tenure_set_ready(&t, US_SWITCH_PROXY, true);
    int64_t now = ms;
    for (; now < 50 * ms; now += ms) {
        usi_lease_request r;
        usi_lease_answer a;
        usi_tenure_step(&t, now);
        if (usi_tenure_ask(&t, US_SWITCH_PROXY, now, &r) &&
            usi_gate_machine_take(&gate, &self[1], &r, now, (uint64_t)now, &a))
            usi_tenure_take(&t, US_SWITCH_PROXY, &a, now);
    }
    assert_int_equal(t.state, USI_TENURE_OFFICE);
    int64_t until = usi_tenure_permit(&t, US_SWITCH_HARDWARE, now);
    assert_true(until > now && until <= gate.expiry);
    // stopped for longer than that, it may not command any more, and the gate is silent from here on
    assert_int_equal(usi_tenure_permit(&t, US_SWITCH_HARDWARE, until), 0);
    for (int64_t end = now + USI_LEASE_SILENCE; now <= end; now += 5 * ms)
        usi_tenure_step(&t, now);
    assert_true(usi_tenure_permit(&t, US_SWITCH_HARDWARE, now) == INT64_MAX);
}

static void silence_is_counted_while_somebody_listens(void **state) {
    (void)state;
    usi_gate_id self[2] = {{{1}}, {{2}}};
    usi_tenure t;
    usi_tenure_init(&t, self, true, true, ms);
    usi_tenure_step(&t, 2 * ms);
    usi_tenure_step(&t, 5000 * ms);  // the switch was stopped: it does not know who spoke meanwhile
    assert_int_equal(t.state, USI_TENURE_WAITING);
    int64_t now = 5000 * ms;
    for (; t.state == USI_TENURE_WAITING && now < 6000 * ms; now += 5 * ms)
        usi_tenure_step(&t, now);
    assert_true(now >= 5000 * ms + USI_LEASE_SILENCE - 25 * ms &&
                now < 5000 * ms + USI_LEASE_SILENCE + 25 * ms);
}

// A switch that asks the gate of a busy robot whose holder is gone, from 1 to `end`; when it asked for the
// lease, ns, or 0.
static int64_t ask_a_busy_gate(int64_t hears_at, int64_t end) {
    usi_gate_id self[2] = {{{1}}, {{2}}};
    const usi_gate_id holder = {{3}};
    usi_gate_machine gate;
    usi_tenure t;
    usi_gate_machine_init(&gate, 5);
    usi_tenure_init(&t, self, true, true, ms);
    usi_tenure_set_kind(&t, US_SWITCH_HARDWARE, USI_GATE_PRESENT, ms);
    usi_tenure_set_kind(&t, US_SWITCH_PROXY, USI_GATE_ABSENT, ms);
    usi_tenure_set_ready(&t, US_SWITCH_HARDWARE, true);
    usi_lease_request r = {.robot = "k10", .seq = 1, .boot = 5};
    usi_lease_answer a;
    assert_true(usi_gate_machine_take(&gate, &holder, &r, ms, 7, &a));
    r = (usi_lease_request){.robot = "k10", .seq = 2, .boot = 5, .nonce = 7, .role = US_GATE_ACTIVE};
    assert_true(usi_gate_machine_take(&gate, &holder, &r, ms, 8, &a));
    assert_true(usi_gate_machine_admit(&gate, &holder, 2 * ms));
    for (int64_t now = 3 * ms; now < end; now += ms) {
        if (now == hears_at) usi_tenure_hear(&t);
        usi_tenure_step(&t, now);
        if (!usi_tenure_ask(&t, US_SWITCH_HARDWARE, now, &r)) continue;
        if (r.role != US_GATE_NONE) return now;
        assert_true(r.is_take == usi_tenure_is_ready(&t, now));
        if (usi_gate_machine_take(&gate, &self[0], &r, now, (uint64_t)now, &a))
            usi_tenure_take(&t, US_SWITCH_HARDWARE, &a, now);
    }
    return 0;
}

static void who_does_not_hear_the_commands_leaves_the_lease_to_others(void **state) {
    (void)state;
    const int64_t free_at = ms + US_GATE_LEASE, slack = 50 * ms;
    // one that hears follows when the lease is over
    int64_t at = ask_a_busy_gate(100 * ms, 10000 * ms);
    assert_true(at >= free_at && at < free_at + slack);
    // one that hears later follows then, though the gate is quiet since
    at = ask_a_busy_gate(1500 * ms, 10000 * ms);
    assert_true(at >= 1500 * ms && at < 1500 * ms + slack);
    // and one that never hears anything at last
    at = ask_a_busy_gate(-1, 10000 * ms);
    assert_true(at >= ms + USI_LEASE_HEARING && at < ms + USI_LEASE_HEARING + USI_LEASE_PERIOD + slack);
}

static void a_gate_that_begins_anew_is_noticed(void **state) {
    (void)state;
    usi_gate_id self[2] = {{{1}}, {{2}}};
    usi_tenure t;
    usi_tenure_init(&t, self, true, true, ms);
    usi_lease_answer a = {.robot = "k10", .boot = 5, .asker = {{9}}, .seq = 1, .nonce = 3};
    usi_tenure_take(&t, US_SWITCH_PROXY, &a, 2 * ms);
    assert_false(t.gates[1].is_restarted);
    a.boot = 6;
    usi_tenure_take(&t, US_SWITCH_PROXY, &a, 3 * ms);
    assert_true(t.gates[1].is_restarted);
    a.boot = 5;
    usi_tenure_take(&t, US_SWITCH_PROXY, &a, 4 * ms);
    assert_int_equal(t.gates[1].boot, 6);
    assert_int_equal(t.gates[1].n_twin, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_storm_has_two_in_control),
        cmocka_unit_test(the_judge_notices_a_gate_that_refuses_nothing),
        cmocka_unit_test(one_that_is_alive_gets_control),
        cmocka_unit_test(switches_without_gates_are_not_held_up),
        cmocka_unit_test(hardware_without_a_gate_is_commanded_with_the_proxys_lease),
        cmocka_unit_test(silence_is_counted_while_somebody_listens),
        cmocka_unit_test(who_does_not_hear_the_commands_leaves_the_lease_to_others),
        cmocka_unit_test(a_gate_that_begins_anew_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
