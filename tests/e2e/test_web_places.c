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

// One address has all places, answers every ping and speaks on each: it is alive, and nobody else would get
// in.
static void one_address_cannot_hold_all_places_however_alive_it_is(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, NULL, NULL, 0, 0);
    int fd[N_PLACE], in[2] = {-1, -1};
    fill(r, fd, 0, 1);
    double spoke[N_PLACE] = {0};
    for (double until = now() + DEADLINE; in[1] < 0 && now() < until;) {
        for (int k = 0; k < N_PLACE; k++) {
            if (fd[k] < 0 || answer_pings(fd[k])) continue;
            close(fd[k]);
            fd[k] = -1;
        }
        // The last one to speak is the last one to go.
        for (int k = 0; k < N_PLACE; k++) {
            if (fd[k] < 0 || now() - spoke[k] < 0.5) continue;
            spoke[k] = now();
            say_frame(fd[k], 0x81, "drive", 5);
        }
        const int who = in[0] < 0 ? 0 : 1;
        in[who] = try_from(r, 2);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    assert_true(in[1] >= 0);
    check_echo(in[0]);
    check_echo(in[1]);
    assert_non_null(strstr(r->last_refused, "of all 8 places"));
    // The crowd does not get them back: it holds more than they do.
    for (int k = 0; k < 20; k++)
        assert_int_equal(try_from(r, 1), -1);
    check_echo(in[0]);
    close_all(in, 2);
    close_all(fd, N_PLACE);
    end(r);
}

// All places are taken by those who may look, alive and from the same address: who has the token gets in, and
// another who may only look does not.
static void who_may_do_more_gets_in(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, "secret", NULL, 0, 0);
    int fd[N_PLACE];
    fill(r, fd, 0, 1);
    for (int k = 0; k < N_PLACE; k++)
        say_frame(fd[k], 0x81, "look", 4);
    assert_int_equal(try_from(r, 1), -1);
    int in = dial(r);
    say_upgrade(in, "/?token=secret", "echo.v1", "");
    assert_int_equal(hear_answer(in, false).status, 101);
    check_echo(in);
    assert_non_null(strstr(r->last_refused, "with the role look"));
    assert_int_equal(try_from(r, 1), -1);
    check_echo(in);
    close(in);
    close_all(fd, N_PLACE);
    end(r);
}

enum { N_FLOOD = N_PLACE + 160 };

// Twenty of the flood end, and as many come; every other one begins with `words`, and never goes on.
static void flood(const rig *r, int fd[N_FLOOD], const char *words) {
    static int at;
    for (int k = 0; k < 20; k++, at = (at + 1) % N_FLOOD) {
        if (fd[at] >= 0) close(fd[at]);
        fd[at] = dial(r);
        if (at % 2) say_text(fd[at], words);
    }
}

// Connections from one address that ask for nothing, or never come to the end of asking, anew as soon as one
// is closed: others get what they ask for, from that address too.
static void a_flood_of_connections_keeps_nobody_out(void **state) {
    (void)state;
    rig *r = begin_for(N_PLACE, NULL, NULL, 0, 0);
    int fd[N_FLOOD], n_served = 0, n_asked = 0;
    memset(fd, -1, sizeof fd);
    for (double until = now() + 3; now() < until; n_asked += 2) {
        flood(r, fd, "GET / HTTP/1.1\r\nX-");
        int one = dial_from(r, 2);
        say_text(one, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        n_served += hear_answer(one, false).status == 200;
        close(one);
        n_served += ask(r, "GET /", "").status == 200;
    }
    assert_true(n_asked >= 20);
    assert_int_equal(n_served, n_asked);
    close_all(fd, N_FLOOD);
    end(r);
}

// The same before they have a key: TLS handshakes that stop.
static void handshakes_that_stop_keep_nobody_out(void **state) {
    (void)state;
    rig *r = make_rig();
    usi_web_def def = def_of(r);
    def.enable_tls = true;
    def.max_client = N_PLACE;
    begin_def(r, &def);
    int fd[N_FLOOD];
    memset(fd, -1, sizeof fd);
    for (int k = 0; k < 20; k++)
        flood(r, fd, "\x16\x03\x01");
    for (int k = 0; k < 10; k++) {
        // Somebody else's client, from another address, slower than the flood.
        char line[400];
        snprintf(line, sizeof line,
                 "printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' | openssl "
                 "s_client -quiet -bind 127.0.0.2:0 -connect 127.0.0.1:%d 2>/dev/null | grep -q "
                 "'HTTP/1.1 200'",
                 (int)r->port);
        FILE *client = popen(line, "r");
        assert_non_null(client);
        struct pollfd end_of_it = {.fd = fileno(client), .events = POLLIN};
        for (double until = now() + DEADLINE; poll(&end_of_it, 1, 5) == 0 && now() < until;)
            flood(r, fd, "\x16\x03\x01");
        assert_int_equal(pclose(client), 0);
    }
    close_all(fd, N_FLOOD);
    end(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_gets_the_place_of_the_one_that_was_silent_the_longest),
        cmocka_unit_test(one_that_answers_and_one_that_speaks_stay_whoever_crowds_in),
        cmocka_unit_test(a_crowd_from_one_address_pushes_nobody_else_out),
        cmocka_unit_test(connections_that_ask_for_nothing_keep_nobody_out),
        cmocka_unit_test(one_address_cannot_hold_all_places_however_alive_it_is),
        cmocka_unit_test(who_may_do_more_gets_in),
        cmocka_unit_test(a_flood_of_connections_keeps_nobody_out),
        cmocka_unit_test(handshakes_that_stop_keep_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
