// What the tests of the leases share: two stand-ins for hardware and proxy in this process, each with a gate,
// which write down every command that the gate admits; and an operator who sends numbered commands, each of
// which every switch gets. Switches are processes.
#ifndef UNDERSTUDY_TEST_LEASE_SUPPORT_H
#define UNDERSTUDY_TEST_LEASE_SUPPORT_H

#include "gate/gate_machine.h"
#include "test_network_support.h"
#include "understudy/gate.h"
#include "understudy/switch.h"

#include <pthread.h>
#include <sys/wait.h>

enum { MAX_TAKEN = 1 << 21, MAX_SWITCH = 3 };

static const us_qos reliable = {.is_reliable = true, .depth = 100};

typedef struct taken {
    double time;
    int32_t number;
    uint8_t writer[12];  // the switch's participant
} taken;

typedef struct source {
    int32_t domain;
    us_bus *bus;
    us_gate *gate;  // looked at by the other source too, with gates_lock held
    us_writer *state;
    us_reader *reader;
    _Atomic int32_t n_taken, n_refused;
    _Atomic int32_t n_both;  // taken while the other source took commands as the active one too
    const struct source *other;
    taken *taken;
} source;

typedef struct stage {
    source sources[2];
    us_bus *bus;  // the operator's
    us_writer *command, *request;
    pthread_t thread;
    atomic_bool is_over;
    _Atomic int32_t n_sent;
    pthread_mutex_t lock;  // guards what follows
    char control[16];
} stage;

static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;

static inline us_gate_state state_of_gate(const source *s) {
    pthread_mutex_lock(&gates_lock);
    us_gate_state state = us_gate_get_state(s->gate, 0);
    pthread_mutex_unlock(&gates_lock);
    return state;
}

static inline void take_command(void *context, const us_sample *sample) {
    source *s = context;
    // The other gate, just before and just after: active all the time in between, where nothing changed.
    us_gate_state before = state_of_gate(s->other);
    bool is_admitted = us_gate_admit(s->gate, 0, sample);
    us_gate_state after = state_of_gate(s->other);
    if (!is_admitted) {
        atomic_fetch_add(&s->n_refused, 1);
        return;
    }
    if (before.role == US_GATE_ACTIVE && after.role == US_GATE_ACTIVE && before.term == after.term &&
        before.n_end == after.n_end)
        atomic_fetch_add(&s->n_both, 1);
    double x = us_message_get_number(usi_type_twist, sample->bytes, sample->length, "linear.x");
    int32_t n = atomic_load(&s->n_taken);
    if (x == 0 || n == MAX_TAKEN) return;
    s->taken[n] = (taken){.time = clock_now(), .number = (int32_t)x};
    memcpy(s->taken[n].writer, sample->writer, 12);
    atomic_store(&s->n_taken, n + 1);
}

static inline void open_source(source *s) {
    us_error err = {0};
    int32_t node = -1;
    static const char *const robots[] = {"k10"};
    s->bus = open_bus("cyclone", s->domain);
    us_gate_def def = us_gate_def_default();
    def.bus = s->bus;
    def.n_robot = 1;
    def.robots = robots;
    us_gate *gate = NULL;
    expect_ok(us_gate_open(&def, &gate, &err), &err);
    pthread_mutex_lock(&gates_lock);
    s->gate = gate;
    pthread_mutex_unlock(&gates_lock);
    expect_ok(us_bus_add_node(s->bus, "/k10", "driver", &node, &err), &err);
    us_writer *state = NULL;
    expect_ok(us_bus_add_writer(s->bus, &(us_topic_def){"/k10/state", usi_type_string, reliable, node},
                                &state, &err),
              &err);
    expect_ok(us_bus_add_reader(s->bus, &(us_topic_def){"/k10/cmd_vel", usi_type_twist, reliable, node},
                                take_command, s, &s->reader, &err),
              &err);
    s->state = state;
}

static inline void close_source(source *s) {
    s->state = NULL;
    us_reader_remove(s->reader);
    pthread_mutex_lock(&gates_lock);
    us_gate *gate = s->gate;
    s->gate = NULL;
    pthread_mutex_unlock(&gates_lock);
    us_gate_close(gate);
    us_bus_close(s->bus);
    s->bus = NULL;
}

// Outputs of both sources and the operator's commands, 100 times a second.
static inline void *live(void *context) {
    stage *s = context;
    while (!atomic_load(&s->is_over)) {
        pthread_mutex_lock(&s->lock);
        for (int i = 0; i < 2; i++) {
            if (s->sources[i].state) write_text_message(s->sources[i].state, "alive");
        }
        us_msg_twist m = {.linear = {(double)(atomic_fetch_add(&s->n_sent, 1) + 1), 0, 0}};
        pthread_mutex_unlock(&s->lock);
        uint8_t bytes[128];
        size_t length = 0;
        if (!us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length))
            us_writer_write(s->command, bytes, length, 0);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return NULL;
}

static inline void see_authority(void *context, const us_sample *sample) {
    stage *s = context;
    const char *at = memmem(sample->bytes, sample->length, "\"control\":\"", 11);
    pthread_mutex_lock(&s->lock);
    if (at) snprintf(s->control, sizeof s->control, "%.*s", (int)strcspn(at + 11, "\""), at + 11);
    pthread_mutex_unlock(&s->lock);
}

static inline bool controls(stage *s, const char *who) {
    pthread_mutex_lock(&s->lock);
    bool is_it = strcmp(s->control, who) == 0;
    pthread_mutex_unlock(&s->lock);
    return is_it;
}

static stage *current;  // NULL: none is open

static inline stage *open_stage(void) {
    stage *s = calloc(1, sizeof *s);
    assert_non_null(s);
    current = s;
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < 2; i++) {
        s->sources[i].domain = test_domain_of(1 + i);
        s->sources[i].other = &s->sources[1 - i];
        s->sources[i].taken = malloc(MAX_TAKEN * sizeof(taken));
        assert_non_null(s->sources[i].taken);
        open_source(&s->sources[i]);
    }
    s->bus = open_bus("cyclone", test_domain_of(0));
    us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    add_reader(s->bus, "/understudy/authority", usi_type_string, latched, see_authority, s);
    s->command = add_writer(s->bus, "/k10/cmd_vel", usi_type_twist, reliable);
    s->request = add_writer(s->bus, "/understudy/authority/request", usi_type_string, reliable);
    assert_int_equal(pthread_create(&s->thread, NULL, live, s), 0);
    return s;
}

static inline void close_stage(stage *s) {
    atomic_store(&s->is_over, true);
    pthread_join(s->thread, NULL);
    kill_the_rest(NULL);
    us_bus_close(s->bus);
    for (int i = 0; i < 2; i++) {
        close_source(&s->sources[i]);
        free(s->sources[i].taken);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
    current = NULL;
}

// After a test that failed: no gate of it may answer in the next.
static inline int clear_stage(void **state) {
    if (current) close_stage(current);
    return kill_the_rest(state);
}

static inline pid_t start_switch(const char *name, const char *options) {
    return start(name,
                 "switch k10 --visible --operators %d --hardware %d --proxy %d --evidence none --plain "
                 "--ramp 0 --ramp-turn 0 %s",
                 (int)test_domain_of(0), (int)test_domain_of(1), (int)test_domain_of(2), options);
}

static inline bool is_flowing(source *s) {
    int32_t n = atomic_load(&s->n_taken);
    return n > 0 && clock_now() - s->taken[n - 1].time < 0.1;
}

static inline bool has_logged(const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "%s.out", name);
    char *log = read_text(path);
    bool has = strstr(log, text) != NULL;
    free(log);
    return has;
}

// ---- the judge ----

static inline int compare_numbers(const void *a, const void *b) {
    int32_t x = ((const taken *)a)->number, y = ((const taken *)b)->number;
    return (x > y) - (x < y);
}

// How many numbers were taken twice, by two sources or by one from two switches.
static inline int32_t count_doubles(stage *s) {
    int32_t n[2] = {atomic_load(&s->sources[0].n_taken), atomic_load(&s->sources[1].n_taken)}, doubles = 0;
    taken *all = malloc((size_t)(n[0] + n[1] + 1) * sizeof *all);
    assert_non_null(all);
    memcpy(all, s->sources[0].taken, (size_t)n[0] * sizeof *all);
    memcpy(all + n[0], s->sources[1].taken, (size_t)n[1] * sizeof *all);
    qsort(all, (size_t)(n[0] + n[1]), sizeof *all, compare_numbers);
    for (int32_t i = 1; i < n[0] + n[1]; i++)
        doubles += all[i].number == all[i - 1].number;
    free(all);
    return doubles;
}

// How often a switch was obeyed by a source again after another had been: a participant that lost its lease
// to another never comes back.
static inline int32_t count_returns(const source *s) {
    enum { MAX_PARTICIPANT = 4096 };
    static uint8_t seen[MAX_PARTICIPANT][12];
    int32_t n_seen = 0, returns = 0, n = atomic_load(&s->n_taken);
    for (int32_t i = 0; i < n; i++) {
        if (n_seen > 0 && memcmp(seen[n_seen - 1], s->taken[i].writer, 12) == 0) continue;
        for (int32_t k = 0; k < n_seen; k++)
            returns += memcmp(seen[k], s->taken[i].writer, 12) == 0;
        assert_true(n_seen < MAX_PARTICIPANT);
        memcpy(seen[n_seen++], s->taken[i].writer, 12);
    }
    return returns;
}

#endif
