// The motor server and clients that are slow, rude or hostile: each harms itself alone.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "motor_rig.h"

static void a_slow_reader_loses_old_states_but_neither_the_newest_nor_an_acknowledgement(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.status_rate = 0;
    def.stall_timeout = 1000;
    rig_start(&def, true);
    rig_peer *p = malloc(sizeof *p);
    assert_non_null(p);
    p->fd = rig_connect(SOCK_STREAM, 4096);
    p->at = p->end = 0;
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 1);
    rig_say(p, "MPWRFLDR1;");
    // Nothing is read until the server has had to drop states: the buffers of the system are full by then.
    int32_t n = 0;
    RIG_WAIT_UNTIL((usi_motor_server_status(rig.server, 0, 0, 0, ++n), RIG_COUNT(n_lost_status) > 100));
    rig_say(p, "MSTPFLDR;");
    RIG_WAIT_UNTIL(rig_n_taken() == 2);
    assert_int_equal(usi_motor_server_status(rig.server, 0, 0, 0, ++n), US_OK);
    char text[256], last[64];
    snprintf(last, sizeof last, "MSTAFLDR0.000,0.000000,%d.000000", n);
    int n_ack = 0, n_heard = 0;
    double position = 0;
    for (bool is_last = false; !is_last || n_ack < 2;) {
        assert_true(rig_hear(p, text, sizeof text));
        n_ack += strncmp(text, "MACK", 4) == 0;
        if (strncmp(text, "MSTA", 4) != 0) continue;
        // What does come, comes in order.
        usi_motor_status s;
        char name[5];
        assert_true(usi_motor_parse_status(text, strlen(text), name, &s));
        assert_true((double)s.position > position);
        position = (double)s.position;
        n_heard++;
        is_last = strcmp(text, last) == 0;
    }
    assert_in_range(n_heard, 1, n - 1);
    assert_int_equal(RIG_COUNT(n_lost_reply), 0);
    rig_close(p);
    rig_stop();
}

static void a_client_that_never_reads_is_closed(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.status_rate = 0;
    def.stall_timeout = 0.2;
    rig_start(&def, true);
    int mute = rig_connect(SOCK_STREAM, 4096);
    rig_peer *p = rig_open(SOCK_STREAM);
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 2);
    int32_t n = 0;
    char text[256];
    double end = rig_now() + RIG_DEADLINE;
    while (RIG_COUNT(n_stalled) == 0) {
        assert_true(rig_now() < end);
        assert_int_equal(usi_motor_server_status(rig.server, 0, 0, 0, ++n), US_OK);
        // The other one reads, and stays.
        rig_hear_next(p, "MSTA", text, sizeof text);
    }
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 1);
    rig_say(p, "MSTP;");
    rig_hear_next(p, "MACK", text, sizeof text);
    assert_string_equal(text, "MACKMSTP");
    close(mute);
    rig_close(p);
    rig_stop();
}

typedef struct flood {
    int fd;
    const char *bytes;
    size_t length, total;
    _Atomic size_t n_sent;
    _Atomic bool is_done;
} flood;

static void *pour(void *context) {
    flood *f = context;
    while (f->n_sent < f->total) {
        ssize_t n = send(f->fd, f->bytes, f->length, MSG_NOSIGNAL);
        if (n < 0) break;
        f->n_sent += (size_t)n;
    }
    f->is_done = true;
    return NULL;
}

// While one client pours ten megabytes, another talks. The whole flood must pass or its sender be closed;
// meanwhile every answer comes.
static void talk_during_a_flood(const char *bytes, size_t length, bool must_pass) {
    usi_motor_server_def def = rig_def();
    def.byte_rate = 5e6;
    def.message_rate = 20000;
    def.stall_timeout = 0.5;
    rig_start(&def, true);
    flood f = {.fd = rig_connect(SOCK_STREAM, 4096), .bytes = bytes, .length = length, .total = 10000000};
    rig_peer *p = rig_open(SOCK_STREAM);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, pour, &f), 0);
    RIG_WAIT_UNTIL(f.n_sent > 100000);
    int n = 0;
    double slowest = 0;
    while (!f.is_done || n < 20) {
        char text[64], expected[64];
        snprintf(text, sizeof text, "MMOVFLDRV%d;", n);
        snprintf(expected, sizeof expected, "MACKMMOVFLDRV%d", n);
        double start = rig_now();
        rig_say(p, text);
        rig_expect(p, expected);
        slowest = fmax(slowest, rig_now() - start);
        n++;
        nanosleep(&(struct timespec){.tv_nsec = 5000000},
                  NULL);  // the pace of an operator, not a wait for anything
    }
    pthread_join(thread, NULL);
    if (must_pass) assert_int_equal(f.n_sent, f.total);
    if (!must_pass) RIG_WAIT_UNTIL(RIG_COUNT(n_stalled) == 1);
    // Two seconds is a thousand times what it takes on an idle machine: a server that reads the flood to its
    // end first takes longer.
    assert_true(slowest < 2);
    close(f.fd);
    rig_close(p);
    rig_stop();
}

static void ten_megabytes_of_garbage_from_one_client_do_not_hold_up_another(void **state) {
    (void)state;
    static char garbage[100000];
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)us_random_bits(5, 1, i);
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = garbage[i] == ';' && i % 50000 ? 'x' : garbage[i];
    talk_during_a_flood(garbage, sizeof garbage, true);
}

static void a_flood_of_commands_from_one_that_does_not_read_ends_its_connection_alone(void **state) {
    (void)state;
    static char commands[100000];
    for (size_t i = 0; i < sizeof commands; i++)
        commands[i] = "MPWRFLDR1;"[i % 10];
    talk_during_a_flood(commands, sizeof commands, false);
}

static void datagrams_beyond_the_rate_are_dropped_and_told_but_a_stop_is_taken(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.message_rate = 100;
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_DGRAM);
    char many[1400] = "";
    for (int i = 0; i < 100; i++)
        memcpy(many + strlen(many), "MPWRFLDR1;", 11);
    for (int i = 0; i < 5; i++)
        rig_say(p, many);
    rig_say(p, "MSTP;");
    int n_ack = 0, n_busy = 0;
    bool is_stopped = false;
    char text[256];
    while (n_ack + n_busy < 500 || !is_stopped) {
        assert_true(rig_hear(p, text, sizeof text));
        if (strcmp(text, "MACKMSTP") == 0) {
            is_stopped = true;
        } else if (strcmp(text, "MACKMPWRFLDR1") == 0) {
            n_ack++;
        } else {
            int number = 0, end = 0;
            assert_int_equal(sscanf(text, "MNAK%d,busy%n", &number, &end), 1);
            assert_int_equal(end, strlen(text));
            n_busy += number;
        }
    }
    // Every command was either taken or told of; a tenth of a second's worth passes at once.
    assert_int_equal(n_ack + n_busy, 500);
    assert_in_range(n_ack, 1, 499);
    assert_int_equal(RIG_COUNT(n_busy), n_busy);
    rig_close(p);
    rig_stop();
}

static void a_silent_sender_of_datagrams_is_forgotten(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.idle_timeout = 0.1;
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_DGRAM);
    rig_say(p, "MSTP;");
    rig_expect(p, "MACKMSTP");
    RIG_WAIT_UNTIL(RIG_COUNT(n_expired) == 1);
    assert_int_equal(RIG_COUNT(n_udp), 0);
    rig_say(p, "MSTP;");
    rig_expect(p, "MACKMSTP");
    rig_close(p);
    rig_stop();
}

static void answers_without_end_are_bounded_and_what_is_lost_is_told(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.stall_timeout = 1000;
    rig_start(&def, false);
    rig_peer *p = rig_open(SOCK_STREAM);
    rig_say(p, "MSTP;");
    RIG_WAIT_UNTIL(rig_n_taken() == 1);
    enum { N = 50000 };
    for (int i = 0; i < N; i++) {
        us_status status = usi_motor_server_ack(rig.server, rig.taken[0].client, "MSTP", 4);
        assert_true(status == US_OK || status == US_ERR_LIMIT);
    }
    int n_ack = 0, n_lost = 0;
    while (n_ack + n_lost < N) {
        char text[256];
        int number = 0;
        assert_true(rig_hear(p, text, sizeof text));
        if (strcmp(text, "MACKMSTP") == 0) {
            n_ack++;
        } else {
            assert_int_equal(sscanf(text, "MNAK%d,lost", &number), 1);
            n_lost += number;
        }
    }
    assert_int_equal(n_ack + n_lost, N);
    assert_int_equal(RIG_COUNT(n_lost_reply), n_lost);
    rig_close(p);
    rig_stop();
}

typedef struct teller {
    int32_t motor;
    _Atomic bool *is_over;
} teller;

static void *tell(void *context) {
    teller *t = context;
    for (int32_t n = 1; !atomic_load(t->is_over); n++)
        (void)usi_motor_server_status(rig.server, t->motor, n, n, n);
    return NULL;
}

static void states_told_by_several_threads_are_never_torn(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.status_rate = 0;
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_STREAM);
    _Atomic bool is_over = false;
    teller tellers[3];
    pthread_t threads[3];
    for (int32_t i = 0; i < 3; i++) {
        tellers[i] = (teller){i, &is_over};
        assert_int_equal(pthread_create(&threads[i], NULL, tell, &tellers[i]), 0);
    }
    for (int k = 0; k < 3000; k++) {
        char text[256], name[5];
        usi_motor_status s;
        rig_hear_next(p, "MSTA", text, sizeof text);
        assert_true(usi_motor_parse_status(text, strlen(text), name, &s));
        // All three are the same number n, in units of 1e-3, 1e-6 and 1e-6.
        assert_true(s.velocity == s.position && s.acceleration * 1000 == s.velocity);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    rig_close(p);
    rig_stop();
}

// ---------------------------------------------------------------- a stop

typedef struct crowd {
    _Atomic bool is_over;
    _Atomic int n_connection;
} crowd;

// Connections one after the other, as fast as they come, some of which are kept for a while and say nothing.
static void *crowd_in(void *context) {
    crowd *c = context;
    int kept[40], n = 0;
    while (!c->is_over) {
        int fd = rig_connect(SOCK_STREAM, 0);
        c->n_connection++;
        if (n == 40) close(kept[--n]);
        kept[n++] = fd;
    }
    while (n > 0)
        close(kept[--n]);
    return NULL;
}

static void a_stop_gets_through_while_all_places_are_held_and_more_crowd_in(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.max_client = 8;
    rig_start(&def, true);
    int silent[8];
    for (int i = 0; i < 8; i++)
        silent[i] = rig_connect(SOCK_STREAM, 0);
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 8);
    crowd c = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, crowd_in, &c), 0);
    RIG_WAIT_UNTIL(c.n_connection > 100);
    // One connection, one stop: each is taken, whether or not its sender is still there for the answer.
    for (int i = 0; i < 100; i++) {
        int fd = rig_connect(SOCK_STREAM, 0);
        assert_int_equal(send(fd, "MSTP;", 5, MSG_NOSIGNAL), 5);
        RIG_WAIT_UNTIL(rig_n_taken() == i + 1);
        close(fd);
    }
    c.is_over = true;
    pthread_join(thread, NULL);
    for (int i = 0; i < 8; i++)
        close(silent[i]);
    rig_stop();
}

// A sender that takes its time between connecting and its stop, while others crowd in and talk: it is worth
// more than they are, and hears that its stop was taken.
static void a_slow_sender_of_a_stop_outlives_those_who_talk(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.max_client = 8;
    rig_start(&def, true);
    enum { N = 200 };
    static int fd[N];
    for (int i = 0; i < 8; i++)
        fd[i] = rig_connect(SOCK_STREAM, 0);
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 8);
    rig_peer *slow = rig_open(SOCK_STREAM);
    rig_expect(slow, "MNAK,full");
    for (int i = 8; i < N; i++) {
        fd[i] = rig_connect(SOCK_STREAM, 0);
        assert_int_equal(send(fd[i], "MPWRFLDR1;", 10, MSG_NOSIGNAL), 10);
        // Each has been heard before the next one comes.
        char first;
        assert_int_equal(recv(fd[i], &first, 1, 0), 1);
    }
    rig_say(slow, "MSTP;");
    rig_expect(slow, "MACKMSTP");
    for (int i = 0; i < N; i++)
        close(fd[i]);
    rig_close(slow);
    rig_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_reader_loses_old_states_but_neither_the_newest_nor_an_acknowledgement),
        cmocka_unit_test(a_client_that_never_reads_is_closed),
        cmocka_unit_test(ten_megabytes_of_garbage_from_one_client_do_not_hold_up_another),
        cmocka_unit_test(a_flood_of_commands_from_one_that_does_not_read_ends_its_connection_alone),
        cmocka_unit_test(datagrams_beyond_the_rate_are_dropped_and_told_but_a_stop_is_taken),
        cmocka_unit_test(a_silent_sender_of_datagrams_is_forgotten),
        cmocka_unit_test(answers_without_end_are_bounded_and_what_is_lost_is_told),
        cmocka_unit_test(states_told_by_several_threads_are_never_torn),
        cmocka_unit_test(a_stop_gets_through_while_all_places_are_held_and_more_crowd_in),
        cmocka_unit_test(a_slow_sender_of_a_stop_outlives_those_who_talk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
