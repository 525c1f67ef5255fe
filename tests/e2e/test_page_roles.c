// Who may do what on the page: roles of registered users, honest ones and others; and TLS, judged by the
// program openssl.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "page_rig.h"
#include "shell.h"
#include "understudy/keys.h"

static const char *const roles[] = {"look", "drive", "world", "switch"};
static char tokens[4][US_PAGE_TOKEN];
static const char scene[] = US_SOURCE_DIR "/scenes/default.xml";

static void make_users(void) {
    unlink("users.txt");
    for (int i = 0; i < 4; i++) {
        us_error err = {0};
        char name[16];
        snprintf(name, sizeof name, "user_%s", roles[i]);
        page_check(us_page_user_add("users.txt", name, roles[i], tokens[i], &err), &err);
    }
}

static us_view_def view_def(void) {
    us_view_def def = us_view_def_default();
    def.port = 0;
    return def;
}

static int end_page(void **state) {
    (void)state;
    if (page.world) page_stop();
    memset(&page, 0, sizeof page);
    return 0;
}

static ws_client *open_with(const char *token) {
    char path[400];
    snprintf(path, sizeof path, "/?token=%s", token);
    return page_open(path);
}

// What a client with this token is told to be.
static void expect_role(ws_client *c, const char *role) {
    cJSON *hello = page_text(c, "hello");
    assert_string_equal(page_text_of(hello, "role"), role);
    assert_int_equal(page_is_true(hello, "control"), strcmp(role, "look") != 0);
    cJSON_Delete(hello);
}

static void each_role_may_what_is_its_own_and_no_more(void **state) {
    (void)state;
    static const struct {
        const char *command;
        int needed;
    } cases[] = {{"drive k10/front_left_steer 0.1", 1},
                 {"pause", 2},
                 {"resume", 2},
                 {"  pause", 2},
                 {"fault k10 motor:front_left_drive=ok", 2},
                 {"drivex", 2},
                 {"authority k10 proxy", 3},
                 {" authority k10 proxy", 3}};
    us_view_def def = view_def();
    def.users = "users.txt";
    page_start(NULL, scene, &def, NULL);
    for (int role = 0; role < 4; role++) {
        ws_client *c = open_with(tokens[role]);
        expect_role(c, roles[role]);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            char text[600] = "", needed[64];
            snprintf(needed, sizeof needed, "needs the role \"%s\"", roles[cases[i].needed]);
            const bool is_ok = page_command(c, cases[i].command, text, sizeof text);
            const bool is_refused = strstr(text, "needs the role") != NULL;
            assert_int_equal(is_refused, role < cases[i].needed);
            if (!is_refused) continue;
            assert_false(is_ok);
            assert_non_null(strstr(text, needed));
            assert_non_null(strstr(text, "user_"));
        }
        // velocities by the op of their own
        page_say(c, "{\"op\":\"drive\",\"robot\":\"%s\",\"vx\":0.1,\"vy\":0,\"wz\":0}",
                 role == 0 ? "k10" : "nobody");
        cJSON *answer = page_text(c, "error");
        assert_non_null(
            strstr(page_text_of(answer, "text"), role == 0 ? "needs the role \"drive\"" : "no robot"));
        cJSON_Delete(answer);
        page_leave(c);
    }
}

// The one who started the run has the token of its address; whoever has none may look.
static void without_a_token_one_looks_and_the_owner_may_everything(void **state) {
    (void)state;
    us_view_def def = view_def();
    def.users = "users.txt";
    page_start(NULL, scene, &def, NULL);
    ws_client *c = page_open("/");
    char text[600];
    expect_role(c, "look");
    assert_false(page_command(c, "pause", text, sizeof text));
    assert_non_null(strstr(text, "?token="));
    page_leave(c);
    const char *token = strstr(page.url, "?token=");
    assert_non_null(token);
    c = open_with(token + 7);
    expect_role(c, "switch");
    assert_true(page_command(c, "pause", NULL, 0));
    page_leave(c);
}

// Guesses, seeded: parts of tokens, hashes in place of tokens, other lengths, other letters.
static void guessed_tokens_open_nothing(void **state) {
    (void)state;
    us_view_def def = view_def();
    def.users = "users.txt";
    page_start(NULL, scene, &def, NULL);
    char hash[65] = "";
    FILE *file = fopen("users.txt", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %*s %64s", hash), 1);
    fclose(file);
    for (int k = 0; k < 60; k++) {
        char guess[300];
        snprintf(guess, sizeof guess, "%s", tokens[k % 4]);
        const uint64_t bits = us_random_bits(11, 3, (uint64_t)k);
        if (k == 0) snprintf(guess, sizeof guess, "%s", hash);
        if (k == 1) guess[0] = 0;
        if (k == 2) memset(guess, 'a', 250), guess[250] = 0;
        if (k >= 3 && k % 3 == 0) guess[bits % 32] = 0;
        if (k >= 3 && k % 3 == 1) guess[bits % 32] = guess[bits % 32] == 'a' ? 'b' : 'a';
        if (k >= 3 && k % 3 == 2) snprintf(guess + 32, sizeof guess - 32, "%x", (unsigned)(bits & 15));
        ws_client *c = open_with(guess);
        expect_role(c, "look");
        page_leave(c);
    }
}

static void files_of_users_that_cannot_be_used_are_named(void **state) {
    (void)state;
    static const char hash[] = "ea5e1204ad1d395d5cce0305e0835415a068adf3960d8f0350a31e6bb9665ad1";
    static const struct {
        const char *text;
        int line;
    } cases[] = {{"anna", 1},
                 {"# comment\n\nanna drive", 3},
                 {"anna pilot %s\n", 1},
                 {"anna drive %s more\n", 1},
                 {"anna drive %.10s\n", 1},
                 {"an:na drive %s\n", 1},
                 {"a_name_that_is_much_too_long_for_a_line drive %s\n", 1}};
    page_start(page_scene, NULL, NULL, NULL);
    us_view_destroy(page.view);
    page.view = NULL;
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        const bool is_missing = i == sizeof cases / sizeof cases[0];
        unlink("bad.txt");
        if (!is_missing) {
            char text[400];
            const char *at = strchr(cases[i].text, '%');
            snprintf(text, sizeof text, "%.*s%.*s%s", at ? (int)(at - cases[i].text) : 400, cases[i].text,
                     at ? (at[1] == 's' ? 64 : 10) : 0, hash, at ? strchr(at, 's') + 1 : "");
            FILE *file = fopen("bad.txt", "w");
            fputs(text, file);
            fclose(file);
        }
        us_view_def def = view_def();
        def.users = "bad.txt";
        us_error err = {0};
        assert_int_equal(us_view_create(page.world, &def, &page.view, &err),
                         is_missing ? US_ERR_IO : US_ERR_SYNTAX);
        assert_string_equal(err.file, "bad.txt");
        if (!is_missing) assert_int_equal(err.line, cases[i].line);
        assert_true(err.remedy[0]);
    }
}

// ---------------------------------------------------------------- TLS

static void tls_shows_the_certificate_whose_fingerprint_is_told(void **state) {
    (void)state;
    us_view_def def = view_def();
    def.enable_tls = true;
    page_start(page_scene, NULL, &def, NULL);
    assert_int_equal(strncmp(page.url, "https://", 8), 0);
    assert_int_equal(strlen(us_view_fingerprint(page.view)), 95);
    assert_true(shell("openssl s_client -connect 127.0.0.1:%d </dev/null 2>/dev/null >chain.txt", page.port));
    assert_true(shell("openssl x509 -in chain.txt -noout -fingerprint -sha256 | grep -qiF '=%s'",
                      us_view_fingerprint(page.view)));
    assert_true(
        shell("openssl x509 -in chain.txt >cert.pem && openssl verify -CAfile cert.pem -verify_hostname "
              "localhost cert.pem >judge.txt"));
    assert_false(
        shell("openssl s_client -tls1_1 -connect 127.0.0.1:%d </dev/null >judge.txt 2>&1", page.port));
    // the page comes over it, and nothing does without it
    assert_true(
        shell("printf 'GET /index.html HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' | "
              "timeout 10 openssl "
              "s_client -quiet -connect 127.0.0.1:%d 2>/dev/null | head -c 15 | grep -q 'HTTP/1.1 200'",
              page.port));
    char *body = NULL;
    size_t length = 0;
    assert_int_not_equal(ws_get(page.port, "/index.html", &body, &length), 200);
    free(body);
}

static void certificates_of_ones_own_are_used_or_refused(void **state) {
    (void)state;
    assert_true(
        shell("for n in a b; do openssl req -x509 -newkey rsa:2048 -nodes -keyout $n.key -out $n.crt -days 2 "
              "-subj /CN=localhost 2>/dev/null; done"));
    us_view_def def = view_def();
    def.enable_tls = true;
    def.tls_cert = "a.crt";
    def.tls_key = "a.key";
    page_start(page_scene, NULL, &def, NULL);
    assert_true(
        shell("test \"$(openssl s_client -connect 127.0.0.1:%d </dev/null 2>/dev/null | openssl x509)\" = "
              "\"$(cat a.crt)\"",
              page.port));
    us_view_destroy(page.view);
    page.view = NULL;
    static const char *const pairs[][3] = {{"a.crt", "b.key", "b.key"},
                                           {"a.key", "a.key", "a.key"},
                                           {"none.crt", "a.key", "none.crt"},
                                           {"a.crt", "a.crt", "a.crt"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        us_error err = {0};
        def.tls_cert = pairs[i][0];
        def.tls_key = pairs[i][1];
        assert_int_equal(us_view_create(page.world, &def, &page.view, &err), US_ERR_VALUE);
        assert_string_equal(err.file, pairs[i][2]);
        assert_non_null(strstr(err.remedy, "--tls-cert"));
    }
}

int main(void) {
    make_users();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_role_may_what_is_its_own_and_no_more, end_page),
        cmocka_unit_test_teardown(without_a_token_one_looks_and_the_owner_may_everything, end_page),
        cmocka_unit_test_teardown(guessed_tokens_open_nothing, end_page),
        cmocka_unit_test_teardown(files_of_users_that_cannot_be_used_are_named, end_page),
        cmocka_unit_test_teardown(tls_shows_the_certificate_whose_fingerprint_is_told, end_page),
        cmocka_unit_test_teardown(certificates_of_ones_own_are_used_or_refused, end_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
