// Rules: diagnostics and flags of a robot that change the mode.
//
//     fault [PATTERN] -> MODE   a status in a DiagnosticArray of the source in control becomes ERROR, and its
//                               name matches the shell pattern
//     topic NAME -> MODE        a std_msgs/Bool on that topic becomes true, published by the source in
//     control
//                               or by an operator
//
// A rule acts when its flag rises and not while it stays up: an operator who asks for a robot with a fault
// gets it. So each rule remembers which flags are up, for each source and for the operators. Several nodes
// may publish diagnostics, each of its own components: a flag is one status, by the hash of its name.
//
// The forwarder checks the samples; the switch's thread acts. Of several rules that fire at once the first
// counts whose mode is granted.
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "switch/switch.h"
#include "wire/messages.h"

enum { LEVEL_ERROR = 2, MEMORY = 1 << 16 };

// ---- parsing ----

static us_status refuse(us_error *err, const char *text) {
    return us_error_set(
        err, US_ERR_VALUE, NULL,
        "Write \"fault -> proxy\", \"fault k10:* -> proxy\" or \"topic /k10/emergency_stop -> stop\".",
        "invalid rule \"%.100s\"", text);
}

// Removes blanks at both ends.
static char *trim(char *text) {
    while (*text == ' ')
        text++;
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        text[--n] = 0;
    return text;
}

static us_status read_rule(const char *text, usi_rule *out, us_error *err) {
    char copy[USI_NAME];
    if (!text || strlen(text) >= sizeof copy) return refuse(err, text ? text : "");
    snprintf(copy, sizeof copy, "%s", text);
    char *arrow = strstr(copy, "->");
    if (!arrow) return refuse(err, text);
    *arrow = 0;
    char *condition = trim(copy), *mode = trim(arrow + 2), *blank = strchr(condition, ' ');
    char *operand = blank ? trim(blank) : condition + strlen(condition);
    if (blank) *blank = 0;
    *out = (usi_rule){.is_fault = !strcmp(condition, "fault"), .mode = us_switch_find_mode(mode)};
    bool is_topic = !strcmp(condition, "topic") && operand[0] == '/' && !strchr(operand, ' ');
    if (out->mode == US_MODE_COUNT || (!out->is_fault && !is_topic)) return refuse(err, text);
    snprintf(out->text, sizeof out->text, "%s", text);
    if (out->is_fault) {
        snprintf(out->operand, sizeof out->operand, "%s", operand[0] ? operand : "*");
    } else {
        snprintf(out->operand, sizeof out->operand, "rt%.250s", operand);
    }
    return US_OK;
}

us_status usi_switch_read_rules(us_switch *sw, const char *const *rules, int32_t n, us_error *err) {
    if (n < 0 || n > USI_MAX_RULE || (n > 0 && !rules))
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "a switch has room for %d rules",
                            (int)USI_MAX_RULE);
    us_status status = US_OK;
    for (int32_t i = 0; i < n && !status; i++)
        status = read_rule(rules[i], &sw->rules[i], err);
    sw->n_rule = status ? 0 : n;
    return status;
}

// ---- checking samples, on the forwarder's thread ----

// True when the flag was down and is up now. Where there is no room to remember it, it rises each time: a
// fault too many is better than one too few.
static bool raise_flag(usi_flags *flags, uint64_t flag, bool is_up) {
    for (int32_t i = 0; i < flags->n; i++) {
        if (flags->up[i] != flag) continue;
        if (!is_up) flags->up[i] = flags->up[--flags->n];
        return false;
    }
    if (is_up && flags->n < USI_MAX_FLAG) flags->up[flags->n++] = flag;
    return is_up;
}

// Fired rules are kept by source: those of the source that is not in control must not hide the other's.
static void fire(us_switch *sw, int32_t rule, us_switch_source source, const char *what, const char *detail) {
    usi_fired *fired = &sw->fired[source];
    pthread_mutex_lock(&sw->lock);
    if (fired->rules == 0)
        snprintf(fired->why, sizeof fired->why, "%.80s%s%.70s", what, detail[0] ? ": " : "", detail);
    fired->rules |= UINT32_C(1) << rule;
    sw->has_fired = true;
    pthread_cond_signal(&sw->wake);
    pthread_mutex_unlock(&sw->lock);
}

static void check_fault_flags(us_switch *sw, us_switch_source source, const us_sample *sample) {
    _Alignas(16) uint8_t memory[MEMORY];
    const void *message = NULL;
    if (us_message_decode(usi_type_diagnostic_array, sample->bytes, sample->length, memory, sizeof memory,
                          &message, NULL))
        return;
    const us_msg_diagnostic_array *array = message;
    for (uint32_t i = 0; i < array->status._length; i++) {
        const us_msg_diagnostic_status *s = &array->status._buffer[i];
        uint64_t flag = us_hash_bytes(0, s->name, strlen(s->name));
        for (int32_t k = 0; k < sw->n_rule; k++) {
            usi_rule *rule = &sw->rules[k];
            if (!rule->is_fault || fnmatch(rule->operand, s->name, 0) != 0) continue;
            if (raise_flag(&rule->flags[source], flag, s->level == LEVEL_ERROR))
                fire(sw, k, source, s->name, s->message);
        }
    }
}

void usi_switch_check_rules(us_switch *sw, const usi_route *route, us_switch_source source,
                            const us_sample *sample) {
    if (route->type == usi_type_diagnostic_array && source != US_SWITCH_NOBODY)
        check_fault_flags(sw, source, sample);
    if (route->type != usi_type_bool) return;
    char reason[USI_NAME + 16];
    snprintf(reason, sizeof reason, "true on %s", route->topic + 2);
    bool is_up = us_message_get_number(usi_type_bool, sample->bytes, sample->length, "data") == 1;
    for (int32_t k = 0; k < sw->n_rule; k++) {
        usi_rule *rule = &sw->rules[k];
        if (rule->is_fault || strcmp(rule->operand, route->topic) != 0) continue;
        if (raise_flag(&rule->flags[source], 1, is_up)) fire(sw, k, source, reason, "");
    }
}
