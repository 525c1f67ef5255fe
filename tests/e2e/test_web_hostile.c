// WebSocket clients of the web server, polite ones and those who are rude, slow or many: nobody's
// misbehaviour touches anybody else.
#include "test_web_support.h"

// ---- Messages ----

static void messages_come_whole_and_in_order(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    int fd = join(r, "echo.v1");
    unsigned char *large = malloc(65536);
    assert_non_null(large);
    for (int i = 0; i < 65536; i++)
        large[i] = (unsigned char)(i * 7 >> 3);
    static const size_t sizes[] = {0, 1, 125, 126, 127, 4096, 16384, 16385, 65535, 65536};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        say_frame(fd, 0x82, large, sizes[k]);
        frame *f = hear_frame(fd);
        assert_int_equal(f->first, 0x82);
        assert_int_equal(f->length, sizes[k]);
        assert_memory_equal(f->bytes, large, sizes[k]);
    }
    free(large);
    // Pings without a word, and pongs that nobody asked for.
    for (int k = 0; k < 3; k++) {
        say_frame(fd, 0x8A, "", 0);
        say_frame(fd, 0x89, "", 0);
        frame *pong = hear_frame(fd);
        assert_int_equal(pong->first, 0x8A);
        assert_int_equal(pong->length, 0);
    }
    // Not each of many pings at once is answered, but what is said after them is.
    for (int k = 0; k < 1000; k++)
        say_frame(fd, 0x89, "", 0);
    say_frame(fd, 0x81, "after", 5);
    frame *heard;
    while ((heard = hear_frame(fd))->first == 0x8A) {
    }
    assert_string_equal((char *)heard->bytes, "after");
    // In fragments, with a ping between them that is answered first.
    say_frame(fd, 0x01, "fra", 3);
    say_frame(fd, 0x89, "ping", 4);
    frame *f = hear_frame(fd);
    assert_int_equal(f->first, 0x8A);
    assert_string_equal((char *)f->bytes, "ping");
    say_frame(fd, 0x00, "", 0);
    say_frame(fd, 0x00, "gme", 3);
    say_frame(fd, 0x80, "nts", 3);
    f = hear_frame(fd);
    assert_int_equal(f->first, 0x81);
    assert_string_equal((char *)f->bytes, "fragments");
    // Many at once.
    for (int k = 0; k < 200; k++)
        say_frame(fd, 0x82, &k, sizeof k);
    for (int k = 0; k < 200; k++)
        assert_memory_equal(hear_frame(fd)->bytes, &k, sizeof k);
    close(fd);
    WAIT_UNTIL(r->n_open == 0);
    assert_true(r->n_drained > 0);
    // Closing politely is answered politely, by either side.
    fd = join(r, "echo.v1");
    say_frame(fd, 0x88, "\x03\xe8", 2);
    assert_int_equal(hear_close(fd), 1000);
    close(fd);
    fd = join(r, "echo.v1");
    say_frame(fd, 0x81, "hello", 5);
    say_frame(fd, 0x81, "close", 5);
    assert_string_equal((char *)hear_frame(fd)->bytes, "hello");
    f = hear_frame(fd);
    assert_int_equal(f->first, 0x88);
    assert_int_equal(f->bytes[0] << 8 | f->bytes[1], 1008);
    assert_string_equal((char *)f->bytes + 2, "as you wish");
    close(fd);
    end(r);
}

static void messages_that_are_too_large_or_no_text_end_their_sender_alone(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    int other = join(r, "echo.v1");
    char *large = calloc(1, 80000);
    assert_non_null(large);
    int fd = join(r, "echo.v1");
    say_frame(fd, 0x82, large, 65537);
    assert_int_equal(hear_close(fd), 1009);
    close(fd);
    // In pieces that are each small enough.
    fd = join(r, "echo.v1");
    say_frame(fd, 0x02, large, 30000);
    for (int k = 0; k < 4; k++)
        say_frame(fd, 0x00, large, 30000);
    assert_int_equal(hear_close(fd), 1009);
    close(fd);
    // One that promises 2^62 bytes is not waited for.
    fd = join(r, "echo.v1");
    say(fd, "\x82\xff\x40\0\0\0\0\0\0\0\1\2\3\4", 14);
    say(fd, large, 20000);
    assert_int_equal(hear_close(fd), 1009);
    close(fd);
    // Text that is no UTF-8: overlong, a surrogate, cut short.
    static const char *const wrong[] = {"\xc0\xaf", "\xed\xa0\x80", "ab\xc3", "\xff"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fd = join(r, "echo.v1");
        say_frame(fd, 0x81, wrong[k], strlen(wrong[k]));
        assert_int_equal(hear_close(fd), 1007);
        close(fd);
    }
    free(large);
    const int n_heard = r->n_message;
    check_echo(other);
    assert_int_equal(r->n_message, n_heard + 1);
    assert_int_equal(n_heard, 0);
    close(other);
    end(r);
}

static void malformed_frames_end_their_sender_alone(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    int other = join(r, "echo.v1");
    static const struct {
        const char *what;
        unsigned char first;
        size_t length;
    } cases[] = {{"opcode 3", 0x83, 1},
                 {"opcode 15", 0x8F, 1},
                 {"reserved bit 1", 0xC1, 1},
                 {"reserved bit 3", 0x91, 1},
                 {"a fragmented ping", 0x09, 1},
                 {"a long ping", 0x89, 126},
                 {"a continuation of nothing", 0x80, 1}};
    char bytes[126] = {0};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int fd = join(r, "echo.v1");
        say_frame(fd, cases[k].first, bytes, cases[k].length);
        int code = hear_close(fd);
        if (code != 0 && code != 1002) fail_msg("%s: %d", cases[k].what, code);
        close(fd);
    }
    int fd = join(r, "echo.v1");
    say_frame(fd, 0x01, "a", 1);
    say_frame(fd, 0x81, "b", 1);  // a new message inside another
    assert_int_equal(hear_close(fd), 1002);
    close(fd);
    // A length with its first bit set.
    fd = join(r, "echo.v1");
    say(fd, "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2\3\4abcd", 18);
    int code = hear_close(fd);
    assert_true(code == 0 || code == 1002 || code == 1009);
    close(fd);
    // Cut short in the header, and in the payload.
    fd = join(r, "echo.v1");
    say(fd, "\x82", 1);
    close(fd);
    fd = join(r, "echo.v1");
    say(fd, "\x82\x85\1\2\3\4ab", 8);
    close(fd);
    // Without a mask: no browser does it, and what it says is still only bytes.
    fd = join(r, "echo.v1");
    say(fd, "\x81\x7e\0\0\x82\x01z", 7);
    close(fd);
    // Bytes that are nothing at all, and a second request where frames should be.
    fd = join(r, "echo.v1");
    uint32_t seed = 1;
    for (int k = 0; k < 20000; k++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned char c = (unsigned char)(seed >> 24);
        say(fd, &c, 1);
        if (k % 64 == 0 && poll(&(struct pollfd){fd, POLLRDHUP, 0}, 1, 0) > 0) break;
    }
    close(fd);
    fd = join(r, "echo.v1");
    say_text(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    (void)hear_close(fd);
    close(fd);
    WAIT_UNTIL(r->n_open == 1);
    check_echo(other);
    close(other);
    end(r);
}

// ---- The slow, the many and the dead ----

static void one_that_never_reads_fills_its_own_queue_and_nobody_elses(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    int mute = dial(r), small = 4096;
    setsockopt(mute, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    say_upgrade(mute, "/", "flood.v1", "");
    int reader = join(r, "flood.v1");
    int echo = join(r, "echo.v1");
    WAIT_UNTIL(r->n_open == 3);
    // The reader reads as fast as pictures are made, so every one that does not fit is the mute one's.
    int n_heard = 0;
    for (double until = now() + DEADLINE; r->n_full < 20; n_heard++) {
        if (now() > until) fail_msg("the queue never fills");
        usi_web_wake(r->web);
        frame *f = hear_frame(reader);
        assert_int_equal(f->first, 0x82);
        assert_int_equal(f->length, PICTURE);
    }
    check_echo(echo);
    assert_int_equal(ask(r, "GET /", "").status, 200);
    assert_true(n_heard >= 20);
    assert_true(r->n_sent >= n_heard);
    close(reader);
    close(echo);
    close(mute);
    WAIT_UNTIL(r->n_open == 0);
    end(r);
}

static void one_that_never_answers_a_ping_is_dropped_and_one_that_does_stays(void **state) {
    (void)state;
    // An answer may take 4 s, which a busy machine does not take and a test can wait for. The one that lives
    // answers twice, and is there when the other has been dropped.
    rig *r = begin(NULL, NULL, 0, 4);
    int dead = join(r, "echo.v1"), alive = join(r, "echo.v1");
    WAIT_UNTIL(r->n_open == 2);
    for (int n_ping = 0; n_ping < 2; n_ping++) {
        frame *f = hear_frame(alive);
        assert_int_equal(f->first, 0x89);
        say_frame(alive, 0x8A, f->bytes, f->length);
    }
    WAIT_UNTIL(r->n_closed == 1);
    hear_end(dead);
    check_echo(alive);
    close(dead);
    close(alive);
    end(r);
}

// Whether a client of the echo is still served: it may have lost its place to a newcomer.
static bool is_served(int fd) {
    say_frame(fd, 0x81, "hello", 5);
    frame *f = hear_frame(fd);
    while (f->first == 0x89)  // a ping
        f = hear_frame(fd);
    return f->first == 0x81 && strcmp((char *)f->bytes, "hello") == 0;
}

// How many of n connections the server has closed.
static int count_closed(const int *fd, int n) {
    int n_closed = 0;
    for (int k = 0; k < n; k++) {
        char c;
        n_closed += poll(&(struct pollfd){fd[k], POLLIN, 0}, 1, 0) > 0 && recv(fd[k], &c, 1, MSG_PEEK) <= 0;
    }
    return n_closed;
}

static void a_hundred_connections_are_served_or_refused_with_503(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    int fd[100], n_in = 0, n_out = 0;
    for (int k = 0; k < 100; k++) {
        fd[k] = dial(r);
        say_upgrade(fd[k], "/", "echo.v1", "");
    }
    for (int k = 0; k < 100; k++) {
        answer a = hear_answer(fd[k], false);
        n_in += a.status == 101;
        n_out += a.status == 503;
        if (a.status != 101) {
            close(fd[k]);
            fd[k] = -1;
        }
    }
    // On a machine that needs seconds for a hundred handshakes those who came first have been silent for as
    // long, and lose their places: there are 64 at any time all the same.
    int n_served = 0;
    for (int k = 0; k < 100; k++)
        n_served += fd[k] >= 0 && is_served(fd[k]);
    assert_int_equal(n_served, 64);
    assert_int_equal(n_in, 64 + r->n_replaced);
    assert_int_equal(n_in + n_out, 100);
    // The page is still served, and a place that becomes free is given away.
    assert_int_equal(ask(r, "GET /", "").status, 200);
    for (int k = 0; k < 100; k++) {
        if (fd[k] >= 0) close(fd[k]);
    }
    WAIT_UNTIL(r->n_open == 0);
    int again = join(r, "echo.v1");
    check_echo(again);
    close(again);
    // Idle ones by the hundred: as many as are beyond the limit are closed, the last or, where they took
    // their time, the first; and when they are gone all is as before.
    int idle[300];
    for (int k = 0; k < 300; k++)
        idle[k] = dial(r);
    WAIT_UNTIL(count_closed(idle, 300) >= 300 - 192);
    for (int k = 0; k < 300; k++)
        close(idle[k]);
    WAIT_UNTIL(ask(r, "GET /", "").status == 200);
    end(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_whole_and_in_order),
        cmocka_unit_test(messages_that_are_too_large_or_no_text_end_their_sender_alone),
        cmocka_unit_test(malformed_frames_end_their_sender_alone),
        cmocka_unit_test(one_that_never_reads_fills_its_own_queue_and_nobody_elses),
        cmocka_unit_test(one_that_never_answers_a_ping_is_dropped_and_one_that_does_stays),
        cmocka_unit_test(a_hundred_connections_are_served_or_refused_with_503),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
