// Places of the web server: silent clients make room for newcomers, and only those.
#include "test_web_support.h"

enum { N_PLACE = 8 };

// -1: refused with 503.
static int try_from(const rig *r, uint32_t last) {
    int fd = dial_from(r, last);
    say_upgrade(fd, "/", "echo.v1", "");
    answer a = hear_answer(fd, false);
    if (a.status == 101) return fd;
    if (a.status != 503) fail_msg("answered with %d", a.status);
    close(fd);
    return -1;
}

// Tries ten times a second, as a page that connects anew does, until it is in or the time is over.
static int insist_from(const rig *r, uint32_t last, double seconds) {
    int fd = -1;
    for (double until = now() + seconds; fd < 0 && now() < until;) {
        fd = try_from(r, last);
        if (fd < 0) nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return fd;
}

// What a browser does by itself: answers pings that have come. False: it was sent away.
static bool answer_pings(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 0) > 0) {
        frame *f = hear_frame(fd);
        if (f->first < 0 || f->first == 0x88) return false;
        if (f->first == 0x89) say_frame(fd, 0x8A, f->bytes, f->length);
    }
    return true;
}

static void fill(const rig *r, int fd[N_PLACE], int from, uint32_t last) {
    for (int k = from; k < N_PLACE; k++) {
        fd[k] = try_from(r, last);
        assert_true(fd[k] >= 0);
    }
}

static void close_all(int *fd, int n) {
    for (int k = 0; k < n; k++) {
        if (fd[k] >= 0) close(fd[k]);
    }
}

static void a_newcomer_gets_the_place_of_the_one_that_was_silent_the_longest(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, NULL, NULL, 0, 0);
    int fd[N_PLACE];
    fill(r, fd, 0, 1);
    // All have only just come: nobody is known to be silent.
    assert_int_equal(try_from(r, 1), -1);
    check_echo(fd[0]);
    int in = insist_from(r, 1, DEADLINE);
    assert_true(in >= 0);
    check_echo(in);
    // Not the first one, who said something, but the one that came next.
    assert_int_equal(hear_close(fd[1]), 1008);
    check_echo(fd[0]);
    assert_non_null(strstr(r->last_refused, "has its place"));
    assert_non_null(strstr(r->last_refused, "page:2"));
    assert_int_equal(r->n_open, N_PLACE);
    close(in);
    close_all(fd, N_PLACE);
    end(r);
}

// One that answers pings and never says a word, one that speaks and reads nothing, six that do neither:
// newcomers crowd in, and are themselves silent.
static void one_that_answers_and_one_that_speaks_stay_whoever_crowds_in(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, NULL, NULL, 0, 0);
    int fd[N_PLACE], in[200], n_in = 0;
    fill(r, fd, 0, 1);
    const double begun = now(), seconds = 6;
    double spoke = 0;
    while (now() - begun < seconds && n_in < 200) {
        assert_true(answer_pings(fd[0]));
        if (now() - spoke > 1) {
            spoke = now();
            say_frame(fd[1], 0x81, "drive", 5);
        }
        int one = try_from(r, 1);
        if (one >= 0) in[n_in++] = one;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    // Six were silent for long, and newcomers after two seconds of their own.
    assert_true(n_in >= 6);
    // At most one in a quarter of a second.
    assert_true(n_in <= 4 * (now() - begun) + 1);
    assert_true(answer_pings(fd[0]));
    check_echo(fd[0]);
    say_frame(fd[1], 0x81, "last", 4);
    for (frame *f = hear_frame(fd[1]); strcmp((char *)f->bytes, "last") != 0; f = hear_frame(fd[1]))
        assert_true(f->first == 0x81 || f->first == 0x89);
    close_all(in, n_in);
    close_all(fd, N_PLACE);
    end(r);
}

static void a_crowd_from_one_address_pushes_nobody_else_out(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, NULL, NULL, 0, 0);
    int fd[N_PLACE], in[40], n_in = 0;
    fd[0] = try_from(r, 2);  // the oldest, and silent
    fill(r, fd, 1, 3);
    for (double until = now() + 5; now() < until && n_in < 40;) {
        int one = insist_from(r, 3, 0.1);
        if (one >= 0) in[n_in++] = one;
    }
    assert_true(n_in >= 4);
    check_echo(fd[0]);
    // Somebody from elsewhere gets in among the crowd.
    int other = insist_from(r, 4, DEADLINE);
    assert_true(other >= 0);
    check_echo(other);
    close(other);
    close_all(in, n_in);
    close_all(fd, N_PLACE);
    end(r);
}

// Connections that never ask for anything: all slots of the server, places and more.
static void connections_that_ask_for_nothing_keep_nobody_out(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, NULL, NULL, 0, 0);
    int fd[N_PLACE + 128];
    const int n = sizeof fd / sizeof *fd;
    for (int k = 0; k < n; k++)
        fd[k] = dial(r);
    const double begun = now();
    answer a = {0};
    do {
        a = ask(r, "GET /", "");
    } while (a.status != 200 && now() - begun < DEADLINE);
    assert_int_equal(a.status, 200);
    // Sooner than they are dropped for their silence (10 s).
    assert_true(now() - begun < 9);
    close_all(fd, n);
    end(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_gets_the_place_of_the_one_that_was_silent_the_longest),
        cmocka_unit_test(one_that_answers_and_one_that_speaks_stay_whoever_crowds_in),
        cmocka_unit_test(a_crowd_from_one_address_pushes_nobody_else_out),
        cmocka_unit_test(connections_that_ask_for_nothing_keep_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
