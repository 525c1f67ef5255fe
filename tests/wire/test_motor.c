// The ASCII motor protocol as bytes: what is taken, what is refused and why, what is sent, and that no input
// upsets a session.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/motor.h"

static usi_motor_reason parse(const char *text, usi_motor_command *out) {
    return usi_motor_parse(text, strlen(text), out);
}

static void every_command_is_read_with_its_numbers(void **state) {
    (void)state;
    const struct {
        const char *text, *name;
        usi_motor_kind kind;
        bool is_on;
        double value, acceleration, max_velocity;
    } good[] = {
        {"MPWRFLDR1", "FLDR", USI_MOTOR_POWER, true, 0, 0, 0},
        {"MPWRFLDR0", "FLDR", USI_MOTOR_POWER, false, 0, 0, 0},
        {"MMOVab_1V1.5", "ab_1", USI_MOTOR_VELOCITY, false, 1.5, 0, 0},
        {"MMOVab_1V-0", "ab_1", USI_MOTOR_VELOCITY, false, -0.0, 0, 0},
        {"MMOVab_1P-3.25e-2", "ab_1", USI_MOTOR_POSITION, false, -0.0325, 0, 0},
        {"MMOVVVVVV+.5", "VVVV", USI_MOTOR_VELOCITY, false, 0.5, 0, 0},
        {"MMOVPTV1P7.", "PTV1", USI_MOTOR_POSITION, false, 7, 0, 0},
        {"MMOV0123V1000000000", "0123", USI_MOTOR_VELOCITY, false, 1e9, 0, 0},
        {"MMOVwhl1T0.5,1.2,-3", "whl1", USI_MOTOR_TRAJECTORY, false, -3, 0.5, 1.2},
        {"MMOVwhl1T 0.500,\t1E0 ,  42", "whl1", USI_MOTOR_TRAJECTORY, false, 42, 0.5, 1},
        {"MMOVwhl1P1e-999", "whl1", USI_MOTOR_POSITION, false, 0, 0, 0},
        {"MSTPFLDR", "FLDR", USI_MOTOR_STOP, false, 0, 0, 0},
        {"MSTPMSTP", "MSTP", USI_MOTOR_STOP, false, 0, 0, 0},
        {"MSTP", "", USI_MOTOR_STOP_ALL, false, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        usi_motor_command c = {.motor = 7};
        usi_motor_reason reason = parse(good[i].text, &c);
        if (reason) fail_msg("%s: refused with %s", good[i].text, usi_motor_reason_word(reason));
        assert_int_equal(c.kind, good[i].kind);
        assert_string_equal(c.name, good[i].name);
        assert_int_equal(c.motor, -1);
        assert_int_equal(c.is_on, good[i].is_on);
        // Decimal numbers have one nearest double: the compiler and the parser must agree on it.
        assert_true(c.value == good[i].value && signbit(c.value) == signbit(good[i].value));
        assert_true(c.acceleration == good[i].acceleration);
        assert_true(c.max_velocity == good[i].max_velocity);
    }
}

static void what_is_wrong_with_a_message_is_said(void **state) {
    (void)state;
    const struct {
        const char *text;
        usi_motor_reason reason;
    } bad[] = {
        {"", USI_MOTOR_BAD_KEYWORD},
        {"M", USI_MOTOR_BAD_KEYWORD},
        {"MPW", USI_MOTOR_BAD_KEYWORD},
        {"mpwrFLDR1", USI_MOTOR_BAD_KEYWORD},
        {"HELLO", USI_MOTOR_BAD_KEYWORD},
        {"MSTAFLDR0,0,0", USI_MOTOR_BAD_KEYWORD},
        {"MACKMSTP", USI_MOTOR_BAD_KEYWORD},
        {"\xff\xfe\xfd\xfc", USI_MOTOR_BAD_KEYWORD},
        {"MPWR", USI_MOTOR_BAD_NAME},
        {"MPWRFLD", USI_MOTOR_BAD_NAME},
        {"MPWRFL 1", USI_MOTOR_BAD_NAME},
        {"MPWRFL\n11", USI_MOTOR_BAD_NAME},
        {"MPWRFL\xc3\xa4"
         "1",
         USI_MOTOR_BAD_NAME},
        {"MPWRF,DR1", USI_MOTOR_BAD_NAME},
        {"MSTPF", USI_MOTOR_BAD_NAME},
        {"MSTPFLDR1", USI_MOTOR_BAD_NAME},
        {"MSTP ", USI_MOTOR_BAD_NAME},
        {"MMOV", USI_MOTOR_BAD_NAME},
        {"MPWRFLDR", USI_MOTOR_BAD_SYNTAX},
        {"MPWRFLDR2", USI_MOTOR_BAD_SYNTAX},
        {"MPWRFLDR01", USI_MOTOR_BAD_SYNTAX},
        {"MPWRFLDR 1", USI_MOTOR_BAD_SYNTAX},
        {"MPWRFLDRleft1", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDR", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV ", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRX1", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRv1", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1,2", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1 2", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV--1", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1e", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1e+", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV.", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1.2.3", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV0x10", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRVnan", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRVinf", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRP-infinity", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1\n", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRT1,2", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRT1,2,3,4", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRT,,", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRT1;2;3", USI_MOTOR_BAD_SYNTAX},
        {"MMOVFLDRV1e10", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRV1e999", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRP-1e9999999999", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRP1000000001", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRT0,1,1", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRT1,0,1", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRT-1,1,1", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRT1,-1,1", USI_MOTOR_BAD_VALUE},
        {"MMOVFLDRT1,1,1e10", USI_MOTOR_BAD_VALUE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        usi_motor_command c, before;
        memset(&c, 0x5a, sizeof c);
        memcpy(&before, &c, sizeof c);
        usi_motor_reason reason = parse(bad[i].text, &c);
        if (reason != bad[i].reason) {
            fail_msg("\"%s\": %s instead of %s", bad[i].text, usi_motor_reason_word(reason),
                     usi_motor_reason_word(bad[i].reason));
        }
        assert_memory_equal(&c, &before, sizeof c);
    }
    usi_motor_command c;
    assert_int_equal(usi_motor_parse("MPWRFL\0R1", 9, &c),
                     USI_MOTOR_BAD_NAME);  // a 0 is a character like another
    assert_int_equal(usi_motor_parse(NULL, 0, &c), USI_MOTOR_BAD_SYNTAX);
    assert_int_equal(usi_motor_parse("MSTP", 4, NULL), USI_MOTOR_BAD_SYNTAX);
}

static void the_longest_message_is_taken_and_one_byte_more_is_not(void **state) {
    (void)state;
    char text[USI_MOTOR_TEXT + 1];
    memset(text, '0', sizeof text);
    memcpy(text, "MMOVFLDRV", 9);
    text[USI_MOTOR_TEXT - 1] = '7';
    usi_motor_command c;
    assert_int_equal(usi_motor_parse(text, USI_MOTOR_TEXT, &c), USI_MOTOR_GOOD);
    assert_true(c.value == 7);
    assert_int_equal(usi_motor_parse(text, USI_MOTOR_TEXT + 1, &c), USI_MOTOR_TOO_LONG);
}

static void numbers_do_not_follow_the_locale(void **state) {
    (void)state;
    // Any locale with a decimal comma will do; without one installed there is nothing to see.
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "da_DK.UTF-8"};
    bool has_comma = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !has_comma; i++)
        has_comma = setlocale(LC_ALL, names[i]) && localeconv()->decimal_point[0] == ',';
    if (!has_comma) printf("skipped: no locale with a decimal comma is installed\n");
    usi_motor_command c;
    assert_int_equal(parse("MMOVFLDRV1.5", &c), USI_MOTOR_GOOD);
    assert_true(c.value == 1.5);
    usi_motor_status s = {1500, 2500000, -3500000};
    char buf[USI_MOTOR_REPLY];
    size_t n = usi_motor_format_status("FLDR", &s, buf, sizeof buf);
    setlocale(LC_ALL, "C");
    assert_int_equal(n, strlen("MSTAFLDR1.500,2.500000,-3.500000;"));
    assert_memory_equal(buf, "MSTAFLDR1.500,2.500000,-3.500000;", n);
}

static void check_status(double acceleration, double velocity, double position, const char *expected) {
    usi_motor_status s, back;
    char buf[USI_MOTOR_REPLY], name[USI_MOTOR_NAME + 1];
    assert_true(usi_motor_status_round(acceleration, velocity, position, &s));
    size_t n = usi_motor_format_status("Whl1", &s, buf, sizeof buf);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(buf, expected, n);
    assert_true(usi_motor_parse_status(buf, n - 1, name, &back));
    assert_string_equal(name, "Whl1");
    assert_true(back.acceleration == s.acceleration && back.velocity == s.velocity &&
                back.position == s.position);
    for (size_t cap = 0; cap < n; cap++)
        assert_int_equal(usi_motor_format_status("Whl1", &s, buf, cap), 0);
}

static void a_state_is_printed_to_its_last_digit_and_read_back(void **state) {
    (void)state;
    check_status(0, 0, 0, "MSTAWhl10.000,0.000000,0.000000;");
    check_status(-0.0, -1e-9, -4.9e-7, "MSTAWhl10.000,0.000000,0.000000;");
    check_status(0.25, -1.5, 3.141592653589793, "MSTAWhl10.250,-1.500000,3.141593;");
    check_status(-0.0006, 1e-6, -1e-6, "MSTAWhl1-0.001,0.000001,-0.000001;");
    check_status(1e9, -1e9, 999999999.999999, "MSTAWhl11000000000.000,-1000000000.000000,999999999.999999;");
}

static void a_state_that_cannot_be_printed_is_refused(void **state) {
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY, 1.0000001e9, -2e300};
    usi_motor_status s = {1, 2, 3};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(usi_motor_status_round(bad[i], 0, 0, &s));
        assert_false(usi_motor_status_round(0, bad[i], 0, &s));
        assert_false(usi_motor_status_round(0, 0, bad[i], &s));
    }
    assert_true(s.acceleration == 1 && s.velocity == 2 && s.position == 3);
    char buf[USI_MOTOR_REPLY], name[USI_MOTOR_NAME + 1];
    const char *const names[] = {"", "abc", "abcde", "a;cd", "a cd", "a,cd", "ab\177d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(usi_motor_name_is_valid(names[i]));
        assert_int_equal(usi_motor_format_status(names[i], &s, buf, sizeof buf), 0);
    }
    assert_false(usi_motor_name_is_valid(NULL));
    const char *const texts[] = {"MSTA",          "MSTAWhl1",        "MSTAWhl11,2",     "MSTAWhl1nan,0,0",
                                 "MSTXWhl11,2,3", "MSTAWhl11,2,3,4", "MSTAWhl11,2,1e10"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(usi_motor_parse_status(texts[i], strlen(texts[i]), name, &s));
}

static void answers_copy_the_command_and_nothing_that_could_end_them(void **state) {
    (void)state;
    char buf[USI_MOTOR_REPLY], text[USI_MOTOR_TEXT + 100];
    size_t n = usi_motor_format_ack("MMOVFLDRT 1,2,3", 15, buf, sizeof buf);
    assert_int_equal(n, 20);
    assert_memory_equal(buf, "MACKMMOVFLDRT 1,2,3;", 20);
    n = usi_motor_format_refusal("MMOV\n;\x80\x1b[2J", 11, USI_MOTOR_BAD_NAME, buf, sizeof buf);
    assert_int_equal(n, 21);
    assert_memory_equal(buf, "MNAKMMOV????[2J,name;", 21);
    assert_int_equal(usi_motor_format_refusal("", 0, USI_MOTOR_FULL, buf, sizeof buf), 10);
    assert_memory_equal(buf, "MNAK,full;", 10);
    // Every reason fits behind the longest copy.
    memset(text, 'x', sizeof text);
    for (int r = 0; r < USI_MOTOR_REASON_COUNT; r++) {
        n = usi_motor_format_refusal(text, sizeof text, (usi_motor_reason)r, buf, sizeof buf);
        assert_int_equal(n, 4 + USI_MOTOR_TEXT + 1 + strlen(usi_motor_reason_word((usi_motor_reason)r)) + 1);
        assert_int_equal(buf[n - 1], ';');
        for (size_t cap = 0; cap < n; cap++)
            assert_int_equal(usi_motor_format_refusal(text, sizeof text, (usi_motor_reason)r, buf, cap), 0);
    }
    assert_string_equal(usi_motor_reason_word(USI_MOTOR_REASON_COUNT), "?");
    assert_string_equal(usi_motor_reason_about((usi_motor_reason)-1), "?");
    for (int r = 0; r < USI_MOTOR_REASON_COUNT; r++) {
        assert_null(strpbrk(usi_motor_reason_word((usi_motor_reason)r), ",; "));
        assert_true(strlen(usi_motor_reason_about((usi_motor_reason)r)) > 5);
    }
}

// ---- Sessions ----

// What a session makes of bytes, as text: one line per event.
typedef struct transcript {
    char text[4096];
    size_t length;
} transcript;

static void write_event(transcript *t, const usi_motor_event *e) {
    if (e->kind == USI_MOTOR_NOTHING) return;
    size_t room = sizeof t->text - t->length;
    int n = snprintf(t->text + t->length, room, "%s %.*s\n",
                     e->kind == USI_MOTOR_COMMAND ? "command" : usi_motor_reason_word(e->reason),
                     (int)(e->length < 40 ? e->length : 40), e->text);
    assert_in_range(n, 1, room - 1);
    t->length += (size_t)n;
}

static void feed(usi_motor_session *s, const char *bytes, size_t length, size_t piece, transcript *t) {
    for (size_t at = 0; at < length;) {
        size_t n = length - at < piece ? length - at : piece;
        for (size_t used = 0; used < n;) {
            usi_motor_event e;
            size_t took = usi_motor_session_feed(s, bytes + at + used, n - used, &e);
            assert_in_range(took, 1, n - used);
            if (e.kind == USI_MOTOR_NOTHING) assert_int_equal(took, n - used);
            used += took;
            write_event(t, &e);
        }
        at += n;
    }
}

static void pieces_of_any_size_make_the_same_messages(void **state) {
    (void)state;
    static const char stream[] =
        "MPWRFLDR1;MMOVFLDRV1.5;\r\n  MSTP;;; ;\n\nMMOVFLDRT1,2,3;rubbish;MSTPFLDR;MMOV\nFLDRV1;MSTPFL;half";
    static const char expected[] =
        "command MPWRFLDR1\ncommand MMOVFLDRV1.5\ncommand MSTP\ncommand MMOVFLDRT1,2,3\nkeyword rubbish\n"
        "command MSTPFLDR\nname MMOV\nFLDRV1\nname MSTPFL\n";
    for (size_t piece = 1; piece < sizeof stream; piece++) {
        usi_motor_session s;
        usi_motor_session_init(&s);
        transcript t = {.length = 0};
        feed(&s, stream, sizeof stream - 1, piece, &t);
        t.text[t.length] = 0;
        assert_string_equal(t.text, expected);
        assert_int_equal(s.n_command, 5);
        assert_int_equal(s.n_empty, 3);
        assert_int_equal(s.n_refused[USI_MOTOR_BAD_KEYWORD], 1);
        assert_int_equal(s.n_refused[USI_MOTOR_BAD_NAME], 2);
        assert_int_equal(s.length, 4);
        usi_motor_event e;
        usi_motor_session_end(&s, &e);
        assert_int_equal(e.kind, USI_MOTOR_REFUSED);
        assert_int_equal(e.reason, USI_MOTOR_CUT);
        usi_motor_session_end(&s, &e);
        assert_int_equal(e.kind, USI_MOTOR_NOTHING);
    }
}

static void a_message_without_end_is_bounded_and_the_next_is_read(void **state) {
    (void)state;
    usi_motor_session s;
    usi_motor_session_init(&s);
    static char long_one[1000000];
    memset(long_one, 'x', sizeof long_one);
    usi_motor_event e;
    assert_int_equal(usi_motor_session_feed(&s, long_one, sizeof long_one, &e), sizeof long_one);
    assert_int_equal(e.kind, USI_MOTOR_NOTHING);
    assert_int_equal(s.length, USI_MOTOR_TEXT);
    assert_int_equal(usi_motor_session_feed(&s, ";MSTP;", 6, &e), 1);
    assert_int_equal(e.kind, USI_MOTOR_REFUSED);
    assert_int_equal(e.reason, USI_MOTOR_TOO_LONG);
    assert_int_equal(e.length, USI_MOTOR_TEXT);
    assert_int_equal(usi_motor_session_feed(&s, "MSTP;", 5, &e), 5);
    assert_int_equal(e.kind, USI_MOTOR_COMMAND);
    assert_int_equal(s.n_refused[USI_MOTOR_TOO_LONG], 1);

    // White space alone is no message, however much of it comes.
    memset(long_one, '\n', sizeof long_one);
    assert_int_equal(usi_motor_session_feed(&s, long_one, sizeof long_one, &e), sizeof long_one);
    assert_int_equal(s.length, 0);
    assert_int_equal(usi_motor_session_feed(&s, "MSTP;", 5, &e), 5);
    assert_int_equal(e.kind, USI_MOTOR_COMMAND);
}

static void random_bytes_and_damaged_commands_never_upset_a_session(void **state) {
    (void)state;
    static const char *const seeds[] = {"MPWRFLDR1;", "MMOVFLDRV1.5;", "MMOVFLDRT1e-1,2,3;", "MSTPFLDR;",
                                        "MSTP;"};
    usi_motor_session s;
    usi_motor_session_init(&s);
    uint64_t counter = 0, n_event = 0, n_semicolon = 0;
    for (int k = 0; k < 100000; k++) {
        char bytes[64];
        const char *seed = seeds[us_random_bits(3, 1, counter++) % 5];
        size_t n = strlen(seed);
        memcpy(bytes, seed, n);
        uint64_t r = us_random_bits(3, 1, counter++);
        if (r % 3) bytes[(r >> 8) % n] = (char)(r >> 16);
        if (r % 5 == 0) n = (r >> 32) % (n + 1);
        for (size_t i = 0; i < n; i++)
            n_semicolon += bytes[i] == ';';
        for (size_t at = 0; at < n;) {
            usi_motor_event e;
            at += usi_motor_session_feed(&s, bytes + at, n - at, &e);
            if (e.kind == USI_MOTOR_NOTHING) continue;
            n_event++;
            char reply[USI_MOTOR_REPLY];
            assert_true(usi_motor_format_refusal(e.text, e.length, e.reason, reply, sizeof reply) > 0);
            if (e.kind == USI_MOTOR_REFUSED) continue;
            // Whatever is taken means something.
            assert_true(isfinite(e.command.value) && fabs(e.command.value) <= USI_MOTOR_GREATEST);
            assert_true(e.command.kind != USI_MOTOR_TRAJECTORY ||
                        (e.command.acceleration > 0 && e.command.max_velocity > 0));
            assert_true(usi_motor_has_name(e.command.kind) ? usi_motor_name_is_valid(e.command.name)
                                                           : e.command.name[0] == 0);
        }
    }
    uint64_t n_refused = 0;
    for (int r = 0; r < USI_MOTOR_REASON_COUNT; r++)
        n_refused += s.n_refused[r];
    // Each semicolon ends exactly one message, and each message is counted once.
    assert_int_equal(n_event, s.n_command + n_refused);
    assert_int_equal(n_semicolon, n_event + s.n_empty);
    assert_true(s.n_command > 20000 && n_refused > 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_is_read_with_its_numbers),
        cmocka_unit_test(what_is_wrong_with_a_message_is_said),
        cmocka_unit_test(the_longest_message_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(a_state_is_printed_to_its_last_digit_and_read_back),
        cmocka_unit_test(a_state_that_cannot_be_printed_is_refused),
        cmocka_unit_test(answers_copy_the_command_and_nothing_that_could_end_them),
        cmocka_unit_test(pieces_of_any_size_make_the_same_messages),
        cmocka_unit_test(a_message_without_end_is_bounded_and_the_next_is_read),
        cmocka_unit_test(random_bytes_and_damaged_commands_never_upset_a_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
