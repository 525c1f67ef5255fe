// Messages of the ASCII link as a client reads them.
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "understudy/link.h"
#include "wire/motor.h"

enum { KEYWORD = 4 };

// Numbers with commas between them, up to the end of the text; -1: something else is there.
static int32_t read_numbers(const char *text, double out[US_LINK_NUMBERS]) {
    int32_t n = 0;
    for (const char *at = text;; at++) {
        const char *end = NULL;
        if (n == US_LINK_NUMBERS || usi_number_scan(at, &end, &out[n])) return -1;
        n++;
        at = end;
        if (*at == 0) return n;
        if (*at != ',') return -1;
    }
}

// The field up to the next comma or the end, and the text behind that; false: it does not fit.
static bool take_field(const char **at, char *out, size_t cap) {
    const size_t n = strcspn(*at, ",");
    if (n == 0 || n >= cap) return false;
    memcpy(out, *at, n);
    out[n] = 0;
    *at += n + ((*at)[n] == ',');
    return true;
}

// "<run>,<state>,<error>" and what follows.
static bool take_run(const char **at, us_link_message *m) {
    char run[16], state[16], error[16];
    double number = 0;
    const char *end = NULL;
    if (!take_field(at, run, sizeof run) || !take_field(at, state, sizeof state) ||
        !take_field(at, error, sizeof error) || usi_number_scan(run, &end, &number) || *end ||
        !(number >= 0 && number <= UINT32_MAX))
        return false;
    m->run = (uint32_t)number;
    int s = 0, e = 0;
    while (s < US_ROVER_STATE_COUNT && strcmp(us_rover_state_word((us_rover_state)s), state) != 0)
        s++;
    while (e < US_ROVER_ERROR_COUNT && strcmp(us_rover_error_word((us_rover_error)e), error) != 0)
        e++;
    m->state = (us_rover_state)s;
    m->error = (us_rover_error)e;
    return s < US_ROVER_STATE_COUNT && e < US_ROVER_ERROR_COUNT;
}

static bool read_named(const char *rest, int32_t n, us_link_message *m) {
    if (strlen(rest) <= USI_MOTOR_NAME) return false;
    memcpy(m->name, rest, USI_MOTOR_NAME);
    m->n_number = read_numbers(rest + USI_MOTOR_NAME, m->number);
    return m->n_number == n;
}

static bool read_refusal(const char *rest, us_link_message *m) {
    const char *comma = strrchr(rest, ',');
    if (!comma || strlen(comma + 1) >= sizeof m->reason) return false;
    snprintf(m->text, sizeof m->text, "%.*s", (int)(comma - rest), rest);
    snprintf(m->reason, sizeof m->reason, "%s", comma + 1);
    return true;
}

static bool read_body(const char *rest, us_link_message *m) {
    switch (m->kind) {
    case US_LINK_ACK:
        snprintf(m->text, sizeof m->text, "%s", rest);
        return true;
    case US_LINK_REFUSAL:
        return read_refusal(rest, m);
    case US_LINK_MOTOR:
        return read_named(rest, 3, m);
    case US_LINK_LINE:
        return read_named(rest, 1, m);
    case US_LINK_IMU:
        return read_named(rest, 8, m);
    case US_LINK_ROVER:
        if (!take_run(&rest, m)) return false;
        m->n_number = read_numbers(rest, m->number);
        return m->n_number == 7;
    case US_LINK_FUNCTION:
        return take_field(&rest, m->text, sizeof m->text) && take_run(&rest, m) && *rest == 0;
    case US_LINK_VALUE:
        if (!take_field(&rest, m->text, sizeof m->text)) return false;
        m->n_number = read_numbers(rest, m->number);
        return m->n_number == 1;
    default:
        return false;
    }
}

bool us_link_message_parse(const char *text, size_t length, us_link_message *out) {
    static const struct {
        const char *keyword;
        us_link_message_kind kind;
    } kinds[] = {{"MACK", US_LINK_ACK},   {"MNAK", US_LINK_REFUSAL},  {"MSTA", US_LINK_MOTOR},
                 {"RSTA", US_LINK_ROVER}, {"FSTA", US_LINK_FUNCTION}, {"FVAL", US_LINK_VALUE},
                 {"ISTA", US_LINK_LINE},  {"IMUS", US_LINK_IMU}};
    char copy[USI_MOTOR_REPLY + 1];
    if (!text || !out || length >= sizeof copy || memchr(text, 0, length)) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    us_link_message m = {.kind = US_LINK_OTHER};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (length < KEYWORD || memcmp(copy, kinds[i].keyword, KEYWORD) != 0) continue;
        m.kind = kinds[i].kind;
        if (!read_body(copy + KEYWORD, &m)) return false;
    }
    if (m.kind == US_LINK_OTHER) snprintf(m.text, sizeof m.text, "%.*s", US_LINK_TEXT - 1, copy);
    *out = m;
    return true;
}
