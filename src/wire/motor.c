// The ASCII motor protocol: parser, formatter and session.
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

// A list of exactly n numbers with commas between them. Blanks around a number are allowed: printf makes them
// when it is given a width.
static usi_motor_reason parse_numbers(const char *text, size_t length, int n, double *out) {
    double values[3] = {0};
    size_t at = 0;
    for (int k = 0; k < n; k++) {
        if (k > 0 && (at >= length || text[at++] != ',')) return USI_MOTOR_BAD_SYNTAX;
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
    return USI_MOTOR_GOOD;
}

// ---- Commands ----

static bool has_keyword(const char *text, size_t length, const char *keyword) {
    return length >= KEYWORD && memcmp(text, keyword, KEYWORD) == 0;
}

static usi_motor_reason parse_power(const char *rest, size_t length, usi_motor_command *c) {
    if (length != 1 || (rest[0] != '0' && rest[0] != '1')) return USI_MOTOR_BAD_SYNTAX;
    c->kind = USI_MOTOR_POWER;
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

usi_motor_reason usi_motor_parse(const char *text, size_t length, usi_motor_command *out_command) {
    if (!text || !out_command) return USI_MOTOR_BAD_SYNTAX;
    if (length > USI_MOTOR_TEXT) return USI_MOTOR_TOO_LONG;
    bool is_power = has_keyword(text, length, "MPWR"), is_move = has_keyword(text, length, "MMOV"),
         is_stop = has_keyword(text, length, "MSTP");
    if (!is_power && !is_move && !is_stop) return USI_MOTOR_BAD_KEYWORD;

    usi_motor_command c = {.kind = USI_MOTOR_STOP_ALL, .motor = -1};
    const char *name = text + KEYWORD, *rest = name + USI_MOTOR_NAME;
    bool is_all = is_stop && length == KEYWORD;
    if (!is_all) {
        if (length < KEYWORD + USI_MOTOR_NAME || !name_is_valid(name)) return USI_MOTOR_BAD_NAME;
        memcpy(c.name, name, USI_MOTOR_NAME);
        size_t n_rest = length - KEYWORD - USI_MOTOR_NAME;
        usi_motor_reason reason = USI_MOTOR_GOOD;
        if (is_power) {
            reason = parse_power(rest, n_rest, &c);
        } else if (is_move) {
            reason = parse_move(rest, n_rest, &c);
        } else {
            c.kind = USI_MOTOR_STOP;
            if (n_rest > 0) reason = USI_MOTOR_BAD_NAME;
        }
        if (reason) return reason;
    }
    *out_command = c;
    return USI_MOTOR_GOOD;
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

// A message in the making. Once something did not fit, it stays without length.
typedef struct line_writer {
    char *buf;
    size_t cap, length;
    bool is_full;
} line_writer;

static line_writer begin(char *buf, size_t cap) {
    line_writer w = {.cap = cap};
    w.buf = buf;
    return w;
}

static void put(line_writer *w, const char *text, size_t length) {
    if (w->is_full || length > w->cap - w->length) {
        w->is_full = true;
        return;
    }
    memcpy(w->buf + w->length, text, length);
    w->length += length;
}

// scaled / 10^n_decimal with all its decimals, as "%.*f" would in the C locale; zero has no sign.
static void put_fixed(line_writer *w, int64_t scaled, int n_decimal) {
    char digits[24];
    size_t at = sizeof digits;
    uint64_t u = scaled < 0 ? 0 - (uint64_t)scaled : (uint64_t)scaled;
    for (int i = 0; i <= n_decimal || u > 0; i++) {
        if (i == n_decimal) digits[--at] = '.';
        digits[--at] = (char)('0' + u % 10);
        u /= 10;
    }
    if (scaled < 0) digits[--at] = '-';
    put(w, digits + at, sizeof digits - at);
}

// A copy of what a peer sent, made safe to send: it cannot end the message that it stands in.
static void put_copy(line_writer *w, const char *text, size_t length) {
    if (length > USI_MOTOR_TEXT) length = USI_MOTOR_TEXT;
    for (size_t i = 0; i < length; i++) {
        bool is_plain = (text[i] >= ' ' && text[i] <= '~' && text[i] != ';') || text[i] == '\t';
        put(w, is_plain ? &text[i] : "?", 1);
    }
}

static size_t finish(line_writer *w) {
    put(w, ";", 1);
    return w->is_full ? 0 : w->length;
}

size_t usi_motor_format_status(const char *name, const usi_motor_status *status, char *buf, size_t cap) {
    if (!usi_motor_name_is_valid(name) || !status || !buf) return 0;
    line_writer w = begin(buf, cap);
    put(&w, "MSTA", KEYWORD);
    put(&w, name, USI_MOTOR_NAME);
    put_fixed(&w, status->acceleration, 3);
    put(&w, ",", 1);
    put_fixed(&w, status->velocity, 6);
    put(&w, ",", 1);
    put_fixed(&w, status->position, 6);
    return finish(&w);
}

size_t usi_motor_format_ack(const char *text, size_t length, char *buf, size_t cap) {
    if ((!text && length > 0) || !buf) return 0;
    line_writer w = begin(buf, cap);
    put(&w, "MACK", KEYWORD);
    put_copy(&w, text, length);
    return finish(&w);
}

size_t usi_motor_format_refusal(const char *text, size_t length, usi_motor_reason reason, char *buf,
                                size_t cap) {
    if ((!text && length > 0) || !buf) return 0;
    line_writer w = begin(buf, cap);
    put(&w, "MNAK", KEYWORD);
    put_copy(&w, text, length);
    put(&w, ",", 1);
    const char *word = usi_motor_reason_word(reason);
    put(&w, word, strlen(word));
    return finish(&w);
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
