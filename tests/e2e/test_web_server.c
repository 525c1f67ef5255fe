// The web server: what it answers, whom it refuses, and how it begins and ends.
#include "test_web_support.h"

// ---- Files and answers ----

static void files_are_answered_with_their_type_compressed_and_safe(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    answer a = ask(r, "GET /", "Accept-Encoding: br, gzip\r\n");
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "not really gzip");
    assert_string_equal(header(&a, "Content-Type"), "text/html; charset=utf-8");
    assert_string_equal(header(&a, "Content-Encoding"), "gzip");
    assert_string_equal(header(&a, "Cache-Control"), "no-cache");
    assert_string_equal(header(&a, "X-Content-Type-Options"), "nosniff");
    assert_non_null(strstr(header(&a, "Content-Security-Policy"), "default-src 'self'"));
    assert_string_equal(header(&a, "Referrer-Policy"), "no-referrer");
    a = ask(r, "GET /?token=abc&x=/../", "");
    assert_int_equal(a.status, 200);
    a = ask(r, "GET /assets/app-1a2b.js", "");
    assert_string_equal(a.body, "code");
    assert_non_null(strstr(header(&a, "Cache-Control"), "immutable"));
    a = ask(r, "HEAD /index.html", "");
    assert_int_equal(a.status, 200);
    assert_string_equal(header(&a, "Content-Length"), "15");
    assert_int_equal(ask(r, "GET /", "Accept-Encoding: identity\r\n").status, 406);
    assert_int_equal(ask(r, "GET /", "Accept-Encoding: gzip;q=0, br\r\n").status, 406);
    assert_int_equal(ask(r, "GET /", "Accept-Encoding: gzip;q=0.5\r\n").status, 200);
    assert_int_equal(ask(r, "GET /", "Accept-Encoding: *\r\n").status, 200);
    end(r);
}

static void what_is_asked_of_the_api_is_answered_large_or_small_on_one_connection(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    int fd = dial(r);
    for (int k = 0; k < 3; k++) {
        say_text(fd, "GET /api/large?epoch=1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/small "
                     "HTTP/1.1\r\nHost: localhost\r\n\r\n");
        answer a = hear_answer(fd, true);
        assert_int_equal(a.status, 200);
        assert_int_equal(a.length, 3000000);
        assert_string_equal(header(&a, "Cache-Control"), "no-store");
        a = hear_answer(fd, true);
        assert_int_equal(a.length, 5);
        assert_string_equal(header(&a, "Content-Type"), "application/json");
    }
    say_text(fd, "HEAD /api/large HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/old HTTP/1.1\r\nHost: "
                 "localhost\r\n\r\n");
    assert_int_equal(hear_answer(fd, false).status, 200);
    assert_int_equal(hear_answer(fd, true).status, 410);
    assert_int_equal(ask(r, "GET /api/none", "").status, 404);
    // One that goes away in the middle of an answer.
    say_text(fd, "GET /api/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    char c;
    assert_true(hear(fd, &c, 1));
    close(fd);
    assert_int_equal(ask(r, "GET /api/small", "").status, 200);
    end(r);
}

static void paths_that_climb_or_hide_reach_nothing(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    static const char *const lines[] = {"GET /../../etc/passwd",
                                        "GET /assets/../../../etc/passwd",
                                        "GET /%2e%2e/%2e%2e/etc/passwd",
                                        "GET /assets/%2e%2e%2fsecret",
                                        "GET /..%5c..%5cwindows",
                                        "GET //etc/passwd",
                                        "GET /api/../etc/passwd",
                                        "GET /assets",
                                        "GET /index.html/",
                                        "GET /INDEX.HTML",
                                        "GET /%ff%fe",
                                        "GET /a%0d%0aSet-Cookie:x"};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        answer a = ask(r, lines[k], "");
        if (a.status != 404 && a.status != 403) fail_msg("%s: %d", lines[k], a.status);
        assert_null(header(&a, "Set-Cookie"));
    }
    // These end the connection, or are refused: never answered with anything.
    static const char *const bad[] = {"GET /%00index.html", "GET /index.html%00",
                                      "GET /%zz",           "GET http://localhost/index.html",
                                      "GET index.html",     "BREW /"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        answer a = ask(r, bad[k], "");
        if (a.status == 200) fail_msg("%s: %s", bad[k], a.body);
    }
    assert_int_equal(ask(r, "GET /", "").status, 200);
    end(r);
}

static void only_get_and_head_are_answered(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    assert_int_equal(ask(r, "POST /api/small", "Content-Length: 0\r\n").status, 405);
    assert_int_equal(ask(r, "PUT /index.html", "Content-Length: 0\r\n").status, 405);
    assert_int_equal(ask(r, "DELETE /index.html", "").status, 405);
    assert_int_equal(ask(r, "OPTIONS /", "").status, 405);
    assert_int_equal(ask(r, "GET /", "Content-Length: 7\r\n").status, 400);
    assert_int_equal(ask(r, "GET /", "Transfer-Encoding: chunked\r\n").status, 400);
    int fd = dial(r);
    say_text(fd, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nbody");
    assert_int_equal(hear_answer(fd, true).status, 405);
    close(fd);
    assert_int_not_equal(ask(r, "CONNECT /x", "").status, 200);
    assert_int_not_equal(
        ask(r, "GET /",
            "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n")
            .status,
        101);
    assert_int_not_equal(ask(r, "GET /", "Upgrade: tls\r\nConnection: Upgrade\r\n").status, 101);
    assert_int_equal(ask(r, "GET /", "").status, 200);
    end(r);
}

static void requests_without_end_are_dropped(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 1, 0);
    // Too long a path, and headers without end.
    size_t n = 200000;
    char *flood = malloc(n);
    assert_non_null(flood);
    memset(flood, 'a', n);
    int fd = dial(r);
    say_text(fd, "GET /");
    say(fd, flood, n);
    hear_end(fd);
    close(fd);
    fd = dial(r);
    say_text(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n");
    for (int k = 0; k < 4000; k++)
        say_text(fd, "X-Header: and another one that nobody has asked for\r\n");
    say_text(fd, "\r\n");
    hear_end(fd);
    close(fd);
    free(flood);
    // One that says little, one that says nothing, and one that asks and does not read: each is dropped in
    // its time.
    int little = dial(r), nothing = dial(r), deaf = dial(r);
    say_text(little, "GET / HTTP/1.1\r\nHo");
    for (int k = 0; k < 3; k++)
        say_text(deaf, "GET /api/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear_end(little);
    hear_end(nothing);
    WAIT_UNTIL((say(deaf, " ", 1), errno = 0, send(deaf, " ", 1, MSG_NOSIGNAL) < 0));
    close(little);
    close(nothing);
    close(deaf);
    assert_int_equal(ask(r, "GET /", "").status, 200);
    end(r);
}

// ---- Who may come in ----

static void requests_for_another_host_are_refused(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    static const char *const good[] = {"localhost", "LOCALHOST:8080", "127.0.0.1:9", "127.1.2.3",
                                       "[::1]:8080"};
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        char line[100];
        snprintf(line, sizeof line, "Host: %s\r\n", good[k]);
        if (ask(r, "GET /", line).status != 200) fail_msg("%s", good[k]);
    }
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "192.168.1.2:8080",
                                      "[::2]",
                                      "localhost:80:80",
                                      "localhost:evil",
                                      "[::1",
                                      "",
                                      "localhost\r\nHost: evil.example"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char line[100];
        snprintf(line, sizeof line, "Host: %s\r\n", bad[k]);
        if (ask(r, "GET /", line).status != 403) fail_msg("%s", bad[k]);
    }
    assert_true(r->n_refused > 0);
    int fd = dial(r);
    say_text(fd, "GET / HTTP/1.1\r\n\r\n");
    assert_int_equal(hear_answer(fd, true).status, 403);
    close(fd);
    end(r);
    // On all networks it is reached by any of the machine's numbers, but still not by names that others give
    // it.
    r = begin("secret", "0.0.0.0", 0, 0);
    assert_int_equal(ask(r, "GET /", "Host: 192.168.1.2:8080\r\n").status, 200);
    assert_int_equal(ask(r, "GET /", "Host: evil.example\r\n").status, 403);
    end(r);
}

static int upgrade_status(const rig *r, const char *protocol, const char *more) {
    int fd = dial(r);
    say_upgrade(fd, "/", protocol, more);
    int status = hear_answer(fd, true).status;
    close(fd);
    return status;
}

static void a_websocket_of_another_page_is_refused(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0);
    assert_int_equal(upgrade_status(r, "echo.v1", ""), 101);
    assert_int_equal(upgrade_status(r, "echo.v1", "Origin: http://localhost\r\n"), 101);
    assert_int_equal(upgrade_status(r, "echo.v1", "Origin: http://localhost:3000\r\n"), 403);
    assert_int_equal(upgrade_status(r, "echo.v1", "Origin: http://evil.example\r\n"), 403);
    assert_int_equal(upgrade_status(r, "echo.v1", "Origin: http://localhost.evil.example\r\n"), 403);
    assert_int_equal(upgrade_status(r, "echo.v1", "Origin: null\r\n"), 403);
    assert_int_equal(upgrade_status(r, "echo.v1", "Origin: file://\r\n"), 403);
    WAIT_UNTIL(r->n_refused >= 5 && r->n_open == 0);
    assert_non_null(strstr(r->last_refused, "127.0.0.1:"));
    // A protocol's guests may look, and nothing else without a token; not those of another protocol, and not
    // those who look like them.
    static const char *const friends[] = {"http://guest.example", "HTTP://guest.example:8081", "file://"};
    for (size_t k = 0; k < sizeof friends / sizeof *friends; k++) {
        char line[100];
        snprintf(line, sizeof line, "Origin: %s\r\n", friends[k]);
        int guest = join_as(r, "/", "flood.v1", line);
        say_frame(guest, 0x81, "who", 3);
        const char *heard = (char *)hear_frame(guest)->bytes;
        assert_string_equal(heard + strlen(heard) - 2, " 0");
        close(guest);
        assert_int_equal(upgrade_status(r, "echo.v1", line), 403);
    }
    assert_int_equal(upgrade_status(r, "flood.v1", "Origin: http://guest.example.evil\r\n"), 403);
    assert_int_equal(upgrade_status(r, "flood.v1", "Origin: http://guest.example:80@evil\r\n"), 403);
    // And so is one that speaks nothing that is spoken here.
    assert_int_equal(upgrade_status(r, "nothing.v9", ""), 400);
    assert_int_not_equal(upgrade_status(r, "http", ""), 101);
    assert_int_not_equal(upgrade_status(r, "http, echo.v1", ""), 101);
    assert_int_equal(upgrade_status(r, "nothing.v9, echo.v1", ""), 101);
    int fd = dial(r);
    say_text(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: "
                 "Upgrade\r\nSec-WebSocket-Key: " KEY
                 "\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Protocol: echo.v1\r\n\r\n");
    assert_int_equal(hear_answer(fd, true).status, 426);
    close(fd);
    end(r);
}

static void the_token_decides_who_may_control(void **state) {
    (void)state;
    rig *r = begin("0123456789abcdef", NULL, 0, 0);
    static const struct {
        const char *path;
        bool may;
    } cases[] = {{"/", false},
                 {"/?token=", false},
                 {"/?token=0123456789abcdeg", false},
                 {"/?token=0123456789abcde", false},
                 {"/?token=0123456789abcdef0123456789abcdef", false},
                 {"/?tokens=0123456789abcdef", false},
                 {"/?token=0123456789abcdef", true},
                 {"/?a=b&token=0123456789abcdef&c=d", true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int fd = join_as(r, cases[k].path, "echo.v1", "");
        say_frame(fd, 0x81, "who", 3);
        char expected[64];
        snprintf(expected, sizeof expected, "page:%zu echo.v1 %d", k + 1, cases[k].may);
        assert_string_equal((char *)hear_frame(fd)->bytes, expected);
        close(fd);
    }
    // A guest with it may too.
    for (int has = 0; has < 2; has++) {
        int fd = join_as(r, has ? "/?token=0123456789abcdef" : "/", "flood.v1",
                         "Origin: http://guest.example\r\n");
        say_frame(fd, 0x81, "who", 3);
        const char *heard = (char *)hear_frame(fd)->bytes;
        assert_string_equal(heard + strlen(heard) - 2, has ? " 1" : " 0");
        close(fd);
    }
    end(r);
    r = begin(NULL, NULL, 0, 0);
    int fd = join(r, "flood.v1");
    say_frame(fd, 0x81, "who", 3);
    assert_string_equal((char *)hear_frame(fd)->bytes, "flood:1 flood.v1 1");
    close(fd);
    end(r);
}

// ---- Life ----

static void a_port_that_is_taken_is_said_or_passed_over(void **state) {
    (void)state;
    rig *r = begin(NULL, NULL, 0, 0), *s = calloc(1, sizeof *s);
    assert_non_null(s);
    test_allocator_init(&s->memory);
    usi_web_def def = def_of(s);
    def.port = r->port;
    us_error err = {0};
    assert_int_equal(usi_web_create(&def, &s->web, &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "in use"));
    assert_non_null(strstr(err.remedy, "--port"));
    test_allocator_check(&s->memory);
    def.n_port_more = 20;
    if (r->port <= 65000) {
        assert_int_equal(usi_web_create(&def, &s->web, &err), US_OK);
        s->port = usi_web_port(s->web);
        assert_in_range(s->port, r->port + 1, r->port + 20);
        // Two in one process share nothing.
        int a = join(r, "echo.v1"), b = join(s, "echo.v1");
        usi_web_wake(s->web);
        WAIT_UNTIL(s->n_wake > 0);
        assert_int_equal(r->n_wake, 0);
        check_echo(a);
        check_echo(b);
        usi_web_destroy(s->web);
        hear_end(b);
        check_echo(a);
        close(a);
        close(b);
    }
    def.port = 0;
    def.address = "203.0.113.1";  // kept for documents (RFC 5737): no machine has it
    assert_int_equal(usi_web_create(&def, &s->web, &err), US_ERR_IO);
    def.address = "localhost";
    assert_int_equal(usi_web_create(&def, &s->web, &err), US_ERR_IO);
    assert_non_null(strstr(err.remedy, "127.0.0.1"));
    def.address = NULL;
    def.port = 65536;
    assert_int_equal(usi_web_create(&def, &s->web, &err), US_ERR_VALUE);
    test_allocator_check(&s->memory);
    free(s);
    end(r);
}

static void it_ends_with_clients_connected_and_leaves_the_process_as_it_was(void **state) {
    (void)state;
    struct sigaction usual = {.sa_handler = SIG_DFL}, before, after;
    sigaction(SIGPIPE, &usual, &before);
    const int n_fd = count_descriptors();
    for (int round = 0; round < 3; round++) {
        rig *r = begin(NULL, NULL, 0, 0);
        int mute = join(r, "flood.v1"), echo = join(r, "echo.v1"), asking = dial(r), idle = dial(r);
        say_text(asking, "GET /api/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
        say_frame(echo, 0x01, "unfinished", 10);
        for (int k = 0; k < 100; k++)
            usi_web_wake(r->web);
        WAIT_UNTIL(r->n_sent > 0);
        end(r);
        hear_end(echo);
        close(mute);
        close(echo);
        close(asking);
        close(idle);
    }
    sigaction(SIGPIPE, &before, &after);
    assert_true(after.sa_handler == SIG_DFL);
    assert_int_equal(count_descriptors(), n_fd);
    usi_web_destroy(NULL);
}

static void no_memory_is_said_and_nothing_stays_behind(void **state) {
    (void)state;
    us_error err;
    int64_t at = 1;
    for (;; at++) {
        rig *r = calloc(1, sizeof *r);
        assert_non_null(r);
        test_allocator_init(&r->memory);
        r->memory.fail_at = at;
        usi_web_def def = def_of(r);
        def.token = "token";
        us_status status = usi_web_create(&def, &r->web, &err);
        if (!status) usi_web_destroy(r->web);
        test_allocator_check(&r->memory);
        free(r);
        if (!status) break;
        assert_int_equal(status, US_ERR_MEMORY);
    }
    assert_true(at > 3);
    assert_int_equal(usi_web_create(NULL, NULL, &err), US_ERR_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_answered_with_their_type_compressed_and_safe),
        cmocka_unit_test(what_is_asked_of_the_api_is_answered_large_or_small_on_one_connection),
        cmocka_unit_test(paths_that_climb_or_hide_reach_nothing),
        cmocka_unit_test(only_get_and_head_are_answered),
        cmocka_unit_test(requests_without_end_are_dropped),
        cmocka_unit_test(requests_for_another_host_are_refused),
        cmocka_unit_test(a_websocket_of_another_page_is_refused),
        cmocka_unit_test(the_token_decides_who_may_control),
        cmocka_unit_test(a_port_that_is_taken_is_said_or_passed_over),
        cmocka_unit_test(it_ends_with_clients_connected_and_leaves_the_process_as_it_was),
        cmocka_unit_test(no_memory_is_said_and_nothing_stays_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
