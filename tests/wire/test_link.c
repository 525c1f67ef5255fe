// The ASCII link above its motors: commands of the mobility and functional level, lines and inertial units,
// the reports of all levels, and a thousand random lines against a judge that knows the grammar as regular
// expressions and nothing of the parser.
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/link.h"
#include "wire/motor.h"

static usi_motor_reason parse(const char *text, usi_motor_command *out) {
    return usi_motor_parse(text, strlen(text), out);
}

static void every_command_is_read_with_its_numbers(void **state) {
    (void)state;
    const struct {
        const char *text;
        usi_motor_kind kind;
        int n;
        double number[6];
        const char *word;
    } good[] = {
        {"RGTOR1.5,-2", USI_MOTOR_GO_TO, 2, {1.5, -2}, ""},
        {"RGTOS1,2,0.3,0.05,60", USI_MOTOR_GO_TO, 5, {1, 2, 0.3, 0.05, 60}, ""},
        {"RDRV0.5,0,-0.1", USI_MOTOR_DRIVE, 3, {0.5, 0, -0.1}, ""},
        {"RARC2,0.5,0.3", USI_MOTOR_ARC, 3, {2, 0.5, 0.3}, ""},
        {"RARC-2,0.5,0.3,20", USI_MOTOR_ARC, 4, {-2, 0.5, 0.3, 20}, ""},
        {"RTRN1.5708,0.4", USI_MOTOR_TURN, 2, {1.5708, 0.4}, ""},
        {"RTRN1.5708,0.4,9", USI_MOTOR_TURN, 3, {1.5708, 0.4, 9}, ""},
        {"RPOS10,20,0", USI_MOTOR_PLACE, 3, {10, 20, 0}, ""},
        {"RGET", USI_MOTOR_GET_ROVER, 0, {0}, ""},
        {"RSTP", USI_MOTOR_STOP_ROVER, 0, {0}, ""},
        {"FRUNmove,2,0.5", USI_MOTOR_RUN, 2, {2, 0.5}, "move"},
        {"FRUNmove_to,2,3,1.57", USI_MOTOR_RUN, 3, {2, 3, 1.57}, "move_to"},
        {"FRUNroute,1,0,1,1", USI_MOTOR_RUN, 4, {1, 0, 1, 1}, "route"},
        {"FRUNhome", USI_MOTOR_RUN, 0, {0}, "home"},
        {"FRUNhome,0.2", USI_MOTOR_RUN, 1, {0.2}, "home"},
        {"FRUNpark", USI_MOTOR_RUN, 0, {0}, "park"},
        {"FSTP", USI_MOTOR_STOP_FUNCTION, 0, {0}, ""},
        {"FGETlimit.speed", USI_MOTOR_GET_PROPERTY, 0, {0}, "limit.speed"},
        {"FSETsite.x,-4.5", USI_MOTOR_SET_PROPERTY, 0, {0}, "site.x"},
        {"IOUTLAMP1", USI_MOTOR_OUTPUT, 0, {0}, ""},
        {"IGETVBAT", USI_MOTOR_GET_LINE, 0, {0}, ""},
        {"IIMUIMU0", USI_MOTOR_GET_IMU, 0, {0}, ""},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        usi_motor_command c = {.motor = 7};
        usi_motor_reason reason = parse(good[i].text, &c);
        if (reason) fail_msg("%s: refused with %s", good[i].text, usi_motor_reason_word(reason));
        assert_int_equal(c.kind, good[i].kind);
        assert_int_equal(c.n_number, good[i].n);
        assert_string_equal(c.word, good[i].word);
        for (int k = 0; k < good[i].n; k++)
            assert_true(c.number[k] == good[i].number[k]);
    }
    usi_motor_command c;
    assert_int_equal(parse("RGTOR1,2", &c), USI_MOTOR_GOOD);
    assert_true(c.is_relative);
    assert_int_equal(parse("RGTOS1,2", &c), USI_MOTOR_GOOD);
    assert_false(c.is_relative);
    assert_int_equal(parse("FSETsite.x,-4.5", &c), USI_MOTOR_GOOD);
    assert_true(c.value == -4.5);
    assert_int_equal(parse("IOUTAUX00.25", &c), USI_MOTOR_GOOD);
    assert_string_equal(c.name, "AUX0");
    assert_true(c.value == 0.25);
}

static void what_is_wrong_with_a_message_is_said(void **state) {
    (void)state;
    const struct {
        const char *text;
        usi_motor_reason reason;
    } bad[] = {
        {"RGTO1,2", USI_MOTOR_BAD_SYNTAX},
        {"RGTOR1", USI_MOTOR_BAD_SYNTAX},
        {"RGTOR1,2,3,4,5,6", USI_MOTOR_BAD_SYNTAX},
        {"RGTOR1,2,", USI_MOTOR_BAD_SYNTAX},
        {"RGTOR1,2,0", USI_MOTOR_BAD_VALUE},
        {"RGTOR1,2,1,-1", USI_MOTOR_BAD_VALUE},
        {"RGTOR1,nan", USI_MOTOR_BAD_SYNTAX},
        {"RGTOR1,1e10", USI_MOTOR_BAD_VALUE},
        {"RDRV1,2", USI_MOTOR_BAD_SYNTAX},
        {"RDRV1,2,3,4", USI_MOTOR_BAD_SYNTAX},
        {"RARC1,2,3,0", USI_MOTOR_BAD_VALUE},
        {"RTRN1", USI_MOTOR_BAD_SYNTAX},
        {"RSTP1", USI_MOTOR_BAD_SYNTAX},
        {"RGET ", USI_MOTOR_BAD_SYNTAX},
        {"rstp", USI_MOTOR_BAD_KEYWORD},
        {"RSTA0", USI_MOTOR_BAD_KEYWORD},
        {"FRUN", USI_MOTOR_BAD_NAME},
        {"FRUN,1", USI_MOTOR_BAD_NAME},
        {"FRUNfly,1", USI_MOTOR_UNKNOWN_FUNCTION},
        {"FRUNmove", USI_MOTOR_BAD_SYNTAX},
        {"FRUNmove,1", USI_MOTOR_BAD_SYNTAX},
        {"FRUNpark,1", USI_MOTOR_BAD_SYNTAX},
        {"FRUNhome,", USI_MOTOR_BAD_SYNTAX},
        {"FRUNroute,1,2,3", USI_MOTOR_BAD_SYNTAX},
        {"FRUNmove 1,2", USI_MOTOR_BAD_NAME},
        {"FGET", USI_MOTOR_BAD_NAME},
        {"FGETa b", USI_MOTOR_BAD_NAME},
        {"FGETsite.x,1", USI_MOTOR_BAD_SYNTAX},
        {"FGETabcdefghijklmnopqrstuvwxyz012345", USI_MOTOR_BAD_NAME},
        {"FSETsite.x", USI_MOTOR_BAD_SYNTAX},
        {"FSETsite.x,", USI_MOTOR_BAD_SYNTAX},
        {"FSETsite.x,1,2", USI_MOTOR_BAD_SYNTAX},
        {"FSTPmove", USI_MOTOR_BAD_SYNTAX},
        {"IOUTLAMP", USI_MOTOR_BAD_SYNTAX},
        {"IOUTLAM1", USI_MOTOR_BAD_SYNTAX},
        {"IOUTLA,P1", USI_MOTOR_BAD_NAME},
        {"IGETVBAT1", USI_MOTOR_BAD_NAME},
        {"IIMU", USI_MOTOR_BAD_NAME},
        {"IGET", USI_MOTOR_BAD_NAME},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        usi_motor_command c = {.motor = 7};
        usi_motor_reason reason = parse(bad[i].text, &c);
        if (reason != bad[i].reason)
            fail_msg("%s: %s rather than %s", bad[i].text, usi_motor_reason_word(reason),
                     usi_motor_reason_word(bad[i].reason));
        assert_int_equal(c.motor, 7);
    }
}

static void stops_of_every_level_are_known_before_they_are_parsed(void **state) {
    (void)state;
    const char *const stops[] = {"MSTP", "MSTPFLDR", "RSTP", "FSTP"}, *const others[] = {"MSTAFLDR", "RST",
                                                                                         "", "FRUNpark"};
    for (size_t i = 0; i < 4; i++) {
        usi_motor_command c;
        assert_int_equal(parse(stops[i], &c), USI_MOTOR_GOOD);
        assert_true(usi_motor_is_stop(c.kind));
        assert_true(usi_motor_text_is_stop(stops[i], strlen(stops[i])));
        assert_false(usi_motor_text_is_stop(others[i], strlen(others[i])));
    }
}

// ---------------------------------------------------------------- reports

static const char *format(usi_report_kind kind, const char *name, const double *values) {
    static char text[USI_MOTOR_REPLY + 1];
    usi_motor_report r;
    assert_true(usi_report_round(kind, name, values, &r));
    size_t n = usi_report_format(&r, text, USI_MOTOR_REPLY);
    assert_in_range(n, 1, USI_MOTOR_REPLY);
    text[n] = 0;
    return text;
}

static void reports_have_their_form_and_the_client_reads_them(void **state) {
    (void)state;
    const double rover[] = {7, 1, 0, 1.25, -0.00004, 3.14159, 0.3, 0, -0.5, 2}, function[] = {1, 3, 5, 3},
                 line[] = {12.5}, imu[] = {0.01, -0.02, 0, 0, 0.1, 0.5, 0, 9.81};
    us_link_message m;
    const char *text = format(USI_REPORT_ROVER, "", rover);
    assert_string_equal(text, "RSTA7,moving,none,1.2500,0.0000,3.14159,0.3000,0.0000,-0.50000,2.0000;");
    assert_true(us_link_message_parse(text, strlen(text) - 1, &m));
    assert_int_equal(m.kind, US_LINK_ROVER);
    assert_int_equal(m.run, 7);
    assert_int_equal(m.state, US_ROVER_MOVING);
    assert_int_equal(m.error, US_ROVER_FINE);
    assert_int_equal(m.n_number, 7);
    assert_true(m.number[0] == 1.25 && m.number[2] == 3.14159 && m.number[6] == 2);

    text = format(USI_REPORT_FUNCTION, "", function);
    assert_string_equal(text, "FSTAmove_to,3,failed,timeout;");
    assert_true(us_link_message_parse(text, strlen(text) - 1, &m));
    assert_int_equal(m.kind, US_LINK_FUNCTION);
    assert_string_equal(m.text, "move_to");
    assert_int_equal(m.run, 3);
    assert_int_equal(m.state, US_ROVER_FAILED);
    assert_int_equal(m.error, US_ROVER_TIMEOUT);

    text = format(USI_REPORT_LINE, "VBAT", line);
    assert_string_equal(text, "ISTAVBAT12.500000;");
    assert_true(us_link_message_parse(text, strlen(text) - 1, &m));
    assert_string_equal(m.name, "VBAT");
    assert_true(m.kind == US_LINK_LINE && m.number[0] == 12.5);

    text = format(USI_REPORT_IMU, "IMU0", imu);
    assert_string_equal(text, "IMUSIMU00.01000,-0.02000,0.00000,0.00000,0.10000,0.5000,0.0000,9.8100;");
    assert_true(us_link_message_parse(text, strlen(text) - 1, &m));
    assert_true(m.kind == US_LINK_IMU && m.n_number == 8 && m.number[7] == 9.81);

    char value[USI_MOTOR_REPLY + 1] = "";
    value[usi_report_format_value("site.x", 0.1, value, sizeof value - 1)] = 0;
    assert_string_equal(value, "FVALsite.x,0.1;");
    assert_true(us_link_message_parse(value, strlen(value) - 1, &m));
    assert_true(m.kind == US_LINK_VALUE && m.number[0] == 0.1);
    assert_int_equal(usi_report_format_value("site.x", NAN, value, sizeof value), 0);

    assert_true(us_link_message_parse("MNAKRGTOR1,2,unsupported", 24, &m));
    assert_string_equal(m.text, "RGTOR1,2");
    assert_string_equal(m.reason, "unsupported");
    assert_true(us_link_message_parse("MACKRSTP", 8, &m));
    assert_true(m.kind == US_LINK_ACK && strcmp(m.text, "RSTP") == 0);
    assert_false(us_link_message_parse("RSTA7,flying,none,1,2,3,4,5,6,7", 31, &m));
    assert_false(us_link_message_parse("RSTA7,moving,none,1,2,3,4,5,6", 29, &m));
}

static void a_number_that_cannot_be_sent_makes_no_report(void **state) {
    (void)state;
    usi_motor_report r = {.value[0] = 77};
    const double bad[] = {NAN, INFINITY, 1.1e9};
    for (int i = 0; i < 3; i++)
        assert_false(usi_report_round(USI_REPORT_LINE, "VBAT", &bad[i], &r));
    assert_int_equal(r.value[0], 77);
}

// ---------------------------------------------------------------- random lines and a judge

#define N "[ \t]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*"
#define C "," N
#define NAME "[!-+./0-:<-~-]{4}"
#define WORD "[A-Za-z0-9_.]{1,31}"

static const char *const forms[] = {
    "^MPWR" NAME "[01]$",
    "^MMOV" NAME "[VP]" N "$",
    "^MMOV" NAME "T" N C C "$",
    "^MSTP(" NAME ")?$",
    "^RGTO[RS]" N C "(" C "){0,3}$",
    "^(RDRV|RPOS)" N C C "$",
    "^RARC" N C C "(" C ")?$",
    "^RTRN" N C "(" C ")?$",
    "^(RGET|RSTP|FSTP)$",
    "^FRUNmove" C C "(" C "){0,2}$",
    "^FRUNmove_to" C C "(" C "){0,4}$",
    "^FRUNroute(" C C "){1,4}$",
    "^FRUNturn_to" C "(" C "){0,2}$",
    "^FRUNhome(" C "){0,2}$",
    "^FRUNpark$",
    "^FRUN(power|gait)" C "$",
    "^FGET" WORD "$",
    "^FSET" WORD C "$",
    "^IOUT" NAME N "$",
    "^(IGET|IIMU)" NAME "$",
};
enum { N_FORM = sizeof forms / sizeof *forms };

static uint64_t drawn;
static uint32_t draw(uint32_t n) { return (uint32_t)(us_random_bits(19, 9, drawn++) % n); }

static void put_number(char *text) {
    static const char *const numbers[] = {"1", "-2.5", ".5", "+3.", "1e-3", "0", " 7", "4\t", "0.25", "-0"};
    strcat(text, numbers[draw(10)]);
}

// A line that follows a form, more or less: then a character of it may change.
static void put_line(char *text) {
    static const char *const starts[] = {
        "MPWRFLDR",   "MMOVFLDRV", "MMOVARM1P",    "MMOVARM1T",   "MSTP",         "MSTPFLDR", "RGTOR",
        "RGTOS",      "RDRV",      "RPOS",         "RARC",        "RTRN",         "RGET",     "RSTP",
        "FSTP",       "FRUNmove,", "FRUNmove_to,", "FRUNroute,",  "FRUNturn_to,", "FRUNhome", "FRUNpark",
        "FRUNpower,", "FRUNgait,", "FGETsite.x",   "FSETsite.x,", "IOUTLAMP",     "IGETVBAT", "IIMUIMU0"};
    strcpy(text, starts[draw(sizeof starts / sizeof *starts)]);
    for (uint32_t i = 0, n = draw(7); i < n; i++) {
        if (i > 0) strcat(text, ",");
        put_number(text);
    }
    if (draw(3) > 0) return;
    static const char characters[] = "MRFI0129.,-+eE VTPS\t_x:~!";
    text[draw((uint32_t)strlen(text))] = characters[draw(sizeof characters - 1)];
}

static void a_thousand_random_lines_are_judged_alike(void **state) {
    (void)state;
    regex_t judge[N_FORM];
    for (int i = 0; i < N_FORM; i++)
        assert_int_equal(regcomp(&judge[i], forms[i], REG_EXTENDED | REG_NOSUB), 0);
    int n_good = 0;
    for (int k = 0; k < 1000; k++) {
        char text[300];
        put_line(text);
        bool is_form = false;
        for (int i = 0; i < N_FORM; i++)
            is_form = is_form || regexec(&judge[i], text, 0, NULL, 0) == 0;
        usi_motor_command c;
        const usi_motor_reason reason = parse(text, &c);
        // A value out of range is one of the right form.
        const bool is_read = reason == USI_MOTOR_GOOD || reason == USI_MOTOR_BAD_VALUE;
        if (is_read != is_form)
            fail_msg("\"%s\": %s, and the judge says %s", text, usi_motor_reason_word(reason),
                     is_form ? "good" : "bad");
        n_good += is_form;
    }
    // Both kinds occur, or nothing was tried.
    assert_in_range(n_good, 100, 900);
    for (int i = 0; i < N_FORM; i++)
        regfree(&judge[i]);
}

// Those who pass messages on keep the last state of each thing.
static void states_are_told_apart_by_what_they_are_of(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {{"MSTAFLDR0.000,1.000000,2.000000", 8},
                 {"RSTA1,moving,none,0,0,0,0,0,0,1", 4},
                 {"RSTA12,done,none,0,0,0,0,0,0,0", 4},
                 {"FSTAwaypoint,1,done,none", 4},
                 {"ISTABATT12.500000", 8},
                 {"IMUSBASE0,0,0,0,0,0,0,9.8", 8},
                 {"FVALsite.x,1", 0},
                 {"MACKMSTPFLDR", 0},
                 {"MSTA", 4},
                 {"RST", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(usi_report_key(cases[i].text, strlen(cases[i].text)), cases[i].n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_told_apart_by_what_they_are_of),
        cmocka_unit_test(every_command_is_read_with_its_numbers),
        cmocka_unit_test(what_is_wrong_with_a_message_is_said),
        cmocka_unit_test(stops_of_every_level_are_known_before_they_are_parsed),
        cmocka_unit_test(reports_have_their_form_and_the_client_reads_them),
        cmocka_unit_test(a_number_that_cannot_be_sent_makes_no_report),
        cmocka_unit_test(a_thousand_random_lines_are_judged_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
