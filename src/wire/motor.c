// The ASCII link: parser, formatter and session.
//
// Everything has a bound that does not depend on the peer: a message is at most USI_MOTOR_TEXT bytes, what
// goes beyond is counted and skipped, a number is at most as long as the message. The names have a fixed
// width, which is why the protocol needs no separator behind them:
//
//     M M O V F L D R T 0 . 5 , 1 . 2 , - 3
//     keyword name    | number  number  number
//                     form: V, P or T
#include "wire/motor.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wire/motor_text.h"

enum { KEYWORD = 4 };

const char *usi_motor_reason_word(usi_motor_reason reason) {
    static const char *const words[] = {
#define REASON_WORD(code, word, about) word,
        USI_MOTOR_REASON_LIST(REASON_WORD)
#undef REASON_WORD
    };
    return (unsigned)reason < (unsigned)USI_MOTOR_REASON_COUNT ? words[reason] : "?";
}

const char *usi_motor_reason_about(usi_motor_reason reason) {
    static const char *const texts[] = {
#define REASON_ABOUT(code, word, about) about,
        USI_MOTOR_REASON_LIST(REASON_ABOUT)
#undef REASON_ABOUT
    };
    return (unsigned)reason < (unsigned)USI_MOTOR_REASON_COUNT ? texts[reason] : "?";
}

// ---- Characters ----
// Not those of <ctype.h>, which follow the locale of the program around us.

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_space(char c) { return is_blank(c) || c == '\r' || c == '\n'; }

static bool is_name_character(char c) { return c > ' ' && c <= '~' && c != ';' && c != ','; }

static bool name_is_valid(const char *name) {
    for (int i = 0; i < USI_MOTOR_NAME; i++) {
        if (!is_name_character(name[i])) return false;
    }
    return true;
}

bool usi_motor_name_is_valid(const char *name) {
    return name && strnlen(name, USI_MOTOR_NAME + 1) == USI_MOTOR_NAME && name_is_valid(name);
}

// ---- Numbers ----

// The length of the decimal number at the start of the text: [+-] digits [. digits] [e [+-] digits], with a
// digit before the e. 0: none is there. Hexadecimal numbers, "inf" and "nan", which strtod takes, end here.
static size_t number_length(const char *text, size_t length) {
    size_t i = 0, n_digit = 0;
    if (i < length && (text[i] == '+' || text[i] == '-')) i++;
    for (; i < length && is_digit(text[i]); i++)
        n_digit++;
    if (i < length && text[i] == '.') i++;
    for (; i < length && is_digit(text[i]); i++)
        n_digit++;
    if (n_digit == 0) return 0;
    if (i < length && (text[i] == 'e' || text[i] == 'E')) {
        size_t e = i + 1;
        if (e < length && (text[e] == '+' || text[e] == '-')) e++;
        if (e >= length || !is_digit(text[e])) return 0;
        while (e < length && is_digit(text[e]))
            e++;
        i = e;
    }
    return i;
}

// A list of `low` to `high` numbers with commas between them. Blanks around a number are allowed: printf
// makes them when it is given a width.
static usi_motor_reason parse_list(const char *text, size_t length, int low, int high, double *out,
                                   int32_t *out_n) {
    double values[USI_MOTOR_NUMBERS] = {0};
    size_t at = 0;
    int n = 0;
    for (int k = 0; k < high; k++) {
        if (at >= length && k >= low) break;
        if (k > 0 && (at >= length || text[at++] != ',')) return USI_MOTOR_BAD_SYNTAX;
        n = k + 1;
        while (at < length && is_blank(text[at]))
            at++;
        size_t used = number_length(text + at, length - at);
        if (used == 0 || used > USI_MOTOR_TEXT) return USI_MOTOR_BAD_SYNTAX;
        char digits[USI_MOTOR_TEXT + 1];
        memcpy(digits, text + at, used);
        digits[used] = 0;
        // The C locale is a constant object of the C library: asking for it allocates nothing.
        locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!c_locale) return USI_MOTOR_BAD_VALUE;
        values[k] = strtod_l(digits, NULL, c_locale);
        freelocale(c_locale);
        at += used;
        while (at < length && is_blank(text[at]))
            at++;
    }
    if (at != length) return USI_MOTOR_BAD_SYNTAX;
    for (int k = 0; k < n; k++) {
        if (!(fabs(values[k]) <= USI_MOTOR_GREATEST)) return USI_MOTOR_BAD_VALUE;
    }
    memcpy(out, values, (size_t)n * sizeof *values);
    *out_n = n;
    return USI_MOTOR_GOOD;
}

static usi_motor_reason parse_numbers(const char *text, size_t length, int n, double *out) {
    int32_t n_read = 0;
    return parse_list(text, length, n, n, out, &n_read);
}

// ---- Commands ----

static bool has_keyword(const char *text, size_t length, const char *keyword) {
    return length >= KEYWORD && memcmp(text, keyword, KEYWORD) == 0;
}

typedef struct command_row {
    const char *keyword;
    usi_motor_level level;
    bool is_stop;
} command_row;

static const command_row kinds[USI_MOTOR_KIND_COUNT] = {
#define COMMAND_ROW(code, keyword, level, is_stop) {keyword, level, is_stop},
    USI_MOTOR_KIND_LIST(COMMAND_ROW)
#undef COMMAND_ROW
};

usi_motor_level usi_motor_level_of(usi_motor_kind kind) { return kinds[kind].level; }

bool usi_motor_is_stop(usi_motor_kind kind) { return kinds[kind].is_stop; }

bool usi_motor_text_is_stop(const char *text, size_t length) {
    for (int i = 0; i < USI_MOTOR_KIND_COUNT; i++) {
        if (kinds[i].is_stop && has_keyword(text, length, kinds[i].keyword)) return true;
    }
    return false;
}

typedef struct function_row {
    const char *name;
    int low, high;
} function_row;

static const function_row functions[USI_FUNCTION_COUNT] = {
#define FUNCTION_ROW(code, name, low, high) {name, low, high},
    USI_FUNCTION_LIST(FUNCTION_ROW)
#undef FUNCTION_ROW
};

const char *usi_function_name(int32_t function) {
    return function >= 0 && function < USI_FUNCTION_COUNT ? functions[function].name : "?";
}

// ---- Motor level ----

static usi_motor_reason parse_power(const char *rest, size_t length, usi_motor_command *c) {
    if (length != 1 || (rest[0] != '0' && rest[0] != '1')) return USI_MOTOR_BAD_SYNTAX;
    c->is_on = rest[0] == '1';
    return USI_MOTOR_GOOD;
}

static usi_motor_reason parse_move(const char *rest, size_t length, usi_motor_command *c) {
    if (length < 1) return USI_MOTOR_BAD_SYNTAX;
    if (rest[0] == 'V' || rest[0] == 'P') {
        c->kind = rest[0] == 'V' ? USI_MOTOR_VELOCITY : USI_MOTOR_POSITION;
        return parse_numbers(rest + 1, length - 1, 1, &c->value);
    }
    if (rest[0] != 'T') return USI_MOTOR_BAD_SYNTAX;
    double v[3];
    usi_motor_reason reason = parse_numbers(rest + 1, length - 1, 3, v);
    if (reason) return reason;
    // Without acceleration or speed nothing would ever arrive; their direction follows from the end position.
    if (!(v[0] > 0) || !(v[1] > 0)) return USI_MOTOR_BAD_VALUE;
    c->kind = USI_MOTOR_TRAJECTORY;
    c->acceleration = v[0];
    c->max_velocity = v[1];
    c->value = v[2];
    return USI_MOTOR_GOOD;
}

// ---- Mobility ----

static usi_motor_reason parse_go_to(const char *rest, size_t length, usi_motor_command *c) {
    if (length < 1 || (rest[0] != 'R' && rest[0] != 'S')) return USI_MOTOR_BAD_SYNTAX;
    c->is_relative = rest[0] == 'R';
    usi_motor_reason reason = parse_list(rest + 1, length - 1, 2, 5, c->number, &c->n_number);
    // Speed, tolerance and time-out that are given are above 0.
    for (int i = 2; i < c->n_number && !reason; i++)
        if (!(c->number[i] > 0)) reason = USI_MOTOR_BAD_VALUE;
    return reason;
}

// The last of `high` numbers is a time-out, and may be left out.
static usi_motor_reason parse_timed(const char *rest, size_t length, int high, usi_motor_command *c) {
    usi_motor_reason reason = parse_list(rest, length, high - 1, high, c->number, &c->n_number);
    if (!reason && c->n_number == high && !(c->number[high - 1] > 0)) reason = USI_MOTOR_BAD_VALUE;
    return reason;
}

// ---- Functions and properties ----

static bool is_word_character(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

// Up to a comma or the end; *out_used has how many characters that were.
static bool parse_word(const char *text, size_t length, char word[USI_MOTOR_WORD], size_t *out_used) {
    size_t n = 0;
    while (n < length && is_word_character(text[n]))
        n++;
    if (n == 0 || n >= USI_MOTOR_WORD || (n < length && text[n] != ',')) return false;
    memcpy(word, text, n);
    word[n] = 0;
    *out_used = n;
    return true;
}

static usi_motor_reason parse_run(const char *rest, size_t length, usi_motor_command *c) {
    size_t used = 0;
    if (!parse_word(rest, length, c->word, &used)) return USI_MOTOR_BAD_NAME;
    int f = 0;
    while (f < USI_FUNCTION_COUNT && strcmp(functions[f].name, c->word) != 0)
        f++;
    if (f == USI_FUNCTION_COUNT) return USI_MOTOR_UNKNOWN_FUNCTION;
    c->function = (usi_function)f;
    const function_row *row = &functions[f];
    if (used == length) return row->low > 0 ? USI_MOTOR_BAD_SYNTAX : USI_MOTOR_GOOD;
    if (row->high == 0) return USI_MOTOR_BAD_SYNTAX;
    const int low = row->low > 0 ? row->low : 1;
    usi_motor_reason reason =
        parse_list(rest + used + 1, length - used - 1, low, row->high, c->number, &c->n_number);
    // Points of a route come in pairs.
    if (!reason && c->function == USI_FUNCTION_ROUTE && c->n_number % 2 != 0) reason = USI_MOTOR_BAD_SYNTAX;
    return reason;
}

static usi_motor_reason parse_property(const char *rest, size_t length, usi_motor_command *c) {
    size_t used = 0;
    if (!parse_word(rest, length, c->word, &used)) return USI_MOTOR_BAD_NAME;
    if (c->kind == USI_MOTOR_GET_PROPERTY) return used == length ? USI_MOTOR_GOOD : USI_MOTOR_BAD_SYNTAX;
    if (used == length) return USI_MOTOR_BAD_SYNTAX;
    return parse_numbers(rest + used + 1, length - used - 1, 1, &c->value);
}

// ---- All ----

// What follows the keyword, of a kind that has no name.
static usi_motor_reason parse_rest(const char *rest, size_t length, usi_motor_command *c) {
    switch (c->kind) {
    case USI_MOTOR_GO_TO:
        return parse_go_to(rest, length, c);
    case USI_MOTOR_DRIVE:
    case USI_MOTOR_PLACE:
        return parse_list(rest, length, 3, 3, c->number, &c->n_number);
    case USI_MOTOR_ARC:
        return parse_timed(rest, length, 4, c);
    case USI_MOTOR_TURN:
        return parse_timed(rest, length, 3, c);
    case USI_MOTOR_RUN:
        return parse_run(rest, length, c);
    case USI_MOTOR_GET_PROPERTY:
    case USI_MOTOR_SET_PROPERTY:
        return parse_property(rest, length, c);
    default:  // RGET, RSTP, FSTP: nothing
        return length == 0 ? USI_MOTOR_GOOD : USI_MOTOR_BAD_SYNTAX;
    }
}

// What follows the name, of a kind that has one.
static usi_motor_reason parse_named(const char *rest, size_t length, usi_motor_command *c) {
    switch (c->kind) {
    case USI_MOTOR_POWER:
        return parse_power(rest, length, c);
    case USI_MOTOR_VELOCITY:
        return parse_move(rest, length, c);
    case USI_MOTOR_OUTPUT:
        return parse_numbers(rest, length, 1, &c->value);
    default:  // MSTP, IGET, IIMU: nothing
        return length == 0 ? USI_MOTOR_GOOD : USI_MOTOR_BAD_NAME;
    }
}

bool usi_motor_has_name(usi_motor_kind kind) {
    const usi_motor_level level = kinds[kind].level;
    return kind != USI_MOTOR_STOP_ALL &&
           (level == USI_LEVEL_MOTOR || level == USI_LEVEL_LINE || level == USI_LEVEL_IMU);
}

usi_motor_reason usi_motor_parse(const char *text, size_t length, usi_motor_command *out_command) {
    if (!text || !out_command) return USI_MOTOR_BAD_SYNTAX;
    if (length > USI_MOTOR_TEXT) return USI_MOTOR_TOO_LONG;
    int kind = 0;
    while (kind < USI_MOTOR_KIND_COUNT && !has_keyword(text, length, kinds[kind].keyword))
        kind++;
    if (kind == USI_MOTOR_KIND_COUNT) return USI_MOTOR_BAD_KEYWORD;

    usi_motor_command c = {.kind = (usi_motor_kind)kind, .motor = -1};
    usi_motor_reason reason = USI_MOTOR_GOOD;
    const char *name = text + KEYWORD;
    if (c.kind == USI_MOTOR_STOP && length == KEYWORD) {
        c.kind = USI_MOTOR_STOP_ALL;
    } else if (!usi_motor_has_name(c.kind)) {
        reason = parse_rest(name, length - KEYWORD, &c);
    } else if (length < KEYWORD + USI_MOTOR_NAME || !name_is_valid(name)) {
        reason = USI_MOTOR_BAD_NAME;
    } else {
        memcpy(c.name, name, USI_MOTOR_NAME);
        reason = parse_named(name + USI_MOTOR_NAME, length - KEYWORD - USI_MOTOR_NAME, &c);
    }
    if (!reason) *out_command = c;
    return reason;
}

// ---- What is sent ----

bool usi_motor_status_round(double acceleration, double velocity, double position,
                            usi_motor_status *out_status) {
    if (!(fabs(acceleration) <= USI_MOTOR_GREATEST) || !(fabs(velocity) <= USI_MOTOR_GREATEST) ||
        !(fabs(position) <= USI_MOTOR_GREATEST))
        return false;
    out_status->acceleration = llround(acceleration * 1e3);
    out_status->velocity = llround(velocity * 1e6);
    out_status->position = llround(position * 1e6);
    return true;
}

// A copy of what a peer sent, made safe to send: it cannot end the message that it stands in.
static void put_copy(usi_motor_line *w, const char *text, size_t length) {
    if (length > USI_MOTOR_TEXT) length = USI_MOTOR_TEXT;
    for (size_t i = 0; i < length; i++) {
        bool is_plain = (text[i] >= ' ' && text[i] <= '~' && text[i] != ';') || text[i] == '\t';
        usi_motor_line_put(w, is_plain ? &text[i] : "?", 1);
    }
}

size_t usi_motor_format_status(const char *name, const usi_motor_status *status, char *buf, size_t cap) {
    if (!usi_motor_name_is_valid(name) || !status || !buf) return 0;
    usi_motor_line w = usi_motor_line_begin(buf, cap);
    usi_motor_line_put(&w, "MSTA", KEYWORD);
    usi_motor_line_put(&w, name, USI_MOTOR_NAME);
    usi_motor_line_fixed(&w, status->acceleration, 3);
    usi_motor_line_put(&w, ",", 1);
    usi_motor_line_fixed(&w, status->velocity, 6);
    usi_motor_line_put(&w, ",", 1);
    usi_motor_line_fixed(&w, status->position, 6);
    return usi_motor_line_finish(&w);
}

size_t usi_motor_format_ack(const char *text, size_t length, char *buf, size_t cap) {
    if ((!text && length > 0) || !buf) return 0;
    usi_motor_line w = usi_motor_line_begin(buf, cap);
    usi_motor_line_put(&w, "MACK", KEYWORD);
    put_copy(&w, text, length);
    return usi_motor_line_finish(&w);
}

size_t usi_motor_format_refusal(const char *text, size_t length, usi_motor_reason reason, char *buf,
                                size_t cap) {
    if ((!text && length > 0) || !buf) return 0;
    usi_motor_line w = usi_motor_line_begin(buf, cap);
    usi_motor_line_put(&w, "MNAK", KEYWORD);
    put_copy(&w, text, length);
    usi_motor_line_put(&w, ",", 1);
    const char *word = usi_motor_reason_word(reason);
    usi_motor_line_put(&w, word, strlen(word));
    return usi_motor_line_finish(&w);
}

bool usi_motor_parse_status(const char *text, size_t length, char *out_name, usi_motor_status *out_status) {
    if (!text || !out_name || !out_status || length < KEYWORD + USI_MOTOR_NAME || length > USI_MOTOR_TEXT)
        return false;
    const char *name = text + KEYWORD;
    double v[3];
    if (!has_keyword(text, length, "MSTA") || !name_is_valid(name)) return false;
    if (parse_numbers(name + USI_MOTOR_NAME, length - KEYWORD - USI_MOTOR_NAME, 3, v)) return false;
    if (!usi_motor_status_round(v[0], v[1], v[2], out_status)) return false;
    memcpy(out_name, name, USI_MOTOR_NAME);
    out_name[USI_MOTOR_NAME] = 0;
    return true;
}

// ---- The session ----

void usi_motor_session_init(usi_motor_session *session) { *session = (usi_motor_session){.length = 0}; }

static void refuse(usi_motor_session *s, usi_motor_reason reason, usi_motor_event *event) {
    s->n_refused[reason]++;
    event->kind = USI_MOTOR_REFUSED;
    event->reason = reason;
}

// The message in the session is complete: what it is goes into the event, and the next byte begins another.
static void end_message(usi_motor_session *s, usi_motor_event *event) {
    event->text = s->text;
    event->length = s->length;
    if (s->is_too_long) {
        refuse(s, USI_MOTOR_TOO_LONG, event);
    } else if (s->length == 0) {
        s->n_empty++;
    } else {
        usi_motor_reason reason = usi_motor_parse(s->text, s->length, &event->command);
        if (reason) {
            refuse(s, reason, event);
        } else {
            s->n_command++;
            event->kind = USI_MOTOR_COMMAND;
        }
    }
    s->length = 0;
    s->is_too_long = false;
}

size_t usi_motor_session_feed(usi_motor_session *session, const void *bytes, size_t length,
                              usi_motor_event *out_event) {
    const char *in = bytes;
    *out_event = (usi_motor_event){.kind = USI_MOTOR_NOTHING, .command.motor = -1};
    size_t at = 0;
    while (at < length) {
        if (session->length == 0) {
            while (at < length && is_space(in[at]))
                at++;
            if (at == length) break;
        }
        const char *semicolon = memchr(in + at, ';', length - at);
        size_t n = semicolon ? (size_t)(semicolon - (in + at)) : length - at;
        size_t room = USI_MOTOR_TEXT - session->length, n_kept = n < room ? n : room;
        memcpy(session->text + session->length, in + at, n_kept);
        session->length += n_kept;
        if (n_kept < n) session->is_too_long = true;
        at += n;
        if (!semicolon) break;
        at++;
        end_message(session, out_event);
        if (out_event->kind != USI_MOTOR_NOTHING) break;
    }
    return at;
}

void usi_motor_session_end(usi_motor_session *session, usi_motor_event *out_event) {
    *out_event = (usi_motor_event){.kind = USI_MOTOR_NOTHING, .command.motor = -1};
    if (session->length > 0) {
        out_event->text = session->text;
        out_event->length = session->length;
        refuse(session, session->is_too_long ? USI_MOTOR_TOO_LONG : USI_MOTOR_CUT, out_event);
    }
    session->length = 0;
    session->is_too_long = false;
}
