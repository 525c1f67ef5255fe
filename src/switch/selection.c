// Selections: which topics cross, and which of their samples.
//
//     only PATTERN      topics that match none of these do not cross
//     except PATTERN    those that match one of these do not
//     also PATTERN      topics outside the robot's namespace that cross too
//     filter PATTERN CONDITION [CONDITION ...]
//                       of the outputs that match, samples cross that meet every condition of every filter:
//                       every=N, rate=HZ, MEMBER<VALUE, <=, >, >=, =, !=
//
// Patterns are those of a shell. A ROS topic or service is meant by its ROS name, /k10/odom, another by its
// name in DDS. What a filter keeps back is not latched, but seen by all else: watchdog, rules, comparison.
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_value.h"
#include "switch/switch.h"
#include "wire/member.h"

static const char *const verbs[] = {[USI_SELECT_ONLY] = "only",
                                    [USI_SELECT_EXCEPT] = "except",
                                    [USI_SELECT_ALSO] = "also",
                                    [USI_SELECT_FILTER] = "filter"};

// ---- parsing ----

static us_status refuse(us_error *err, const char *text, const char *why) {
    return us_error_set(
        err, US_ERR_VALUE, NULL,
        "Write \"only /k10/*\", \"except /k10/points\", \"also rapid_*\" or \"filter /k10/points "
        "every=5\", \"filter /k10/battery_state percentage<0.2\".",
        "invalid selection \"%.100s\": %s", text, why);
}

// "every=5", "rate=2", "pose.position.x<=1.5".
static bool read_condition(const char *word, usi_select_condition *out) {
    static const struct {
        const char *text;
        usi_comparison comparison;
    } operators[] = {{"<=", USI_LESS_OR_EQUAL}, {">=", USI_MORE_OR_EQUAL}, {"!=", USI_UNEQUAL},
                     {"<", USI_LESS},           {">", USI_MORE},           {"=", USI_EQUAL}};
    const size_t n = strcspn(word, "<>=!");
    if (n == 0 || n >= sizeof out->member || !word[n]) return false;
    *out = (usi_select_condition){.kind = USI_FILTER_MEMBER};
    memcpy(out->member, word, n);
    const char *value = NULL;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0] && !value; i++) {
        const size_t m = strlen(operators[i].text);
        if (strncmp(word + n, operators[i].text, m) != 0) continue;
        out->comparison = operators[i].comparison;
        value = word + n + m;
    }
    const char *end = NULL;
    if (!value || usi_number_scan(value, &end, &out->value) || *end) return false;
    if (out->comparison != USI_EQUAL) return true;
    if (!strcmp(out->member, "every")) {
        out->kind = USI_FILTER_EVERY;
        return out->value >= 1 && out->value <= 1e9 && out->value == (double)(int64_t)out->value;
    }
    if (!strcmp(out->member, "rate")) {
        out->kind = USI_FILTER_RATE;
        return out->value > 0 && out->value <= 1e6;
    }
    return true;
}

static us_status read_selection(const char *text, usi_selection *out, us_error *err) {
    char copy[2 * USI_NAME];
    if (!text || strlen(text) >= sizeof copy) return refuse(err, text ? text : "", "it is too long");
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = NULL, *verb = strtok_r(copy, " \t", &rest), *pattern = strtok_r(NULL, " \t", &rest);
    *out = (usi_selection){.verb = USI_SELECT_COUNT};
    for (int i = 0; verb && i < USI_SELECT_COUNT; i++) {
        if (!strcmp(verb, verbs[i])) out->verb = (usi_select_verb)i;
    }
    if (out->verb == USI_SELECT_COUNT)
        return refuse(err, text, "it begins with none of only, except, also, filter");
    if (!pattern || strlen(pattern) >= sizeof out->pattern) return refuse(err, text, "a topic is missing");
    snprintf(out->pattern, sizeof out->pattern, "%s", pattern);
    for (char *word = strtok_r(NULL, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (out->verb != USI_SELECT_FILTER) return refuse(err, text, "there is more than one topic");
        if (out->n_condition == USI_MAX_CONDITION) return refuse(err, text, "it has too many conditions");
        if (!read_condition(word, &out->conditions[out->n_condition++]))
            return refuse(err, text, "a condition is not every=N, rate=HZ or MEMBER<VALUE");
    }
    if (out->verb == USI_SELECT_FILTER && out->n_condition == 0)
        return refuse(err, text, "a condition is missing");
    return US_OK;
}

us_status usi_switch_read_selections(us_switch *sw, const char *const *texts, int32_t n, us_error *err) {
    if (n < 0 || n > USI_MAX_SELECTION || (n > 0 && !texts))
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "a switch has room for %d selections of topics",
                            (int)USI_MAX_SELECTION);
    us_status status = US_OK;
    for (int32_t i = 0; i < n && !status; i++)
        status = read_selection(texts[i], &sw->selections[i], err);
    sw->n_selection = status ? 0 : n;
    return status;
}

// ---- topics ----

// The name by which people know a topic: "/k10/odom" of "rt/k10/odom", "/k10/locomotor" of
// "rq/k10/locomotorRequest".
static void name_topic(const char *topic, char out[USI_NAME]) {
    const bool is_ros = topic[0] == 'r' && strchr("tqr", topic[1]) && topic[1] && topic[2] == '/';
    snprintf(out, USI_NAME, "%s", is_ros ? topic + 2 : topic);
    if (!is_ros || topic[1] == 't') return;
    const char *end = topic[1] == 'q' ? "Request" : "Reply";
    const size_t n = strlen(out), m = strlen(end);
    if (n > m && !strcmp(out + n - m, end)) out[n - m] = 0;
}

static bool matches(const usi_selection *s, usi_select_verb verb, const char *name) {
    return s->verb == verb && fnmatch(s->pattern, name, 0) == 0;
}

bool usi_switch_is_selected(const us_switch *sw, const char *topic) {
    char name[USI_NAME];
    name_topic(topic, name);
    bool has_only = false, is_in = false;
    for (int32_t i = 0; i < sw->n_selection; i++) {
        has_only = has_only || sw->selections[i].verb == USI_SELECT_ONLY;
        is_in = is_in || matches(&sw->selections[i], USI_SELECT_ONLY, name);
        if (matches(&sw->selections[i], USI_SELECT_EXCEPT, name)) return false;
    }
    return !has_only || is_in;
}

bool usi_switch_is_also(const us_switch *sw, const char *topic) {
    char name[USI_NAME];
    name_topic(topic, name);
    for (int32_t i = 0; i < sw->n_selection; i++) {
        if (matches(&sw->selections[i], USI_SELECT_ALSO, name)) return true;
    }
    return false;
}

// ---- samples ----

void usi_switch_find_filters(us_switch *sw, usi_route *route) {
    char name[USI_NAME];
    name_topic(route->topic, name);
    if (route->is_command || route->service) return;
    for (int32_t i = 0; i < sw->n_selection; i++) {
        const usi_selection *s = &sw->selections[i];
        if (!matches(s, USI_SELECT_FILTER, name)) continue;
        for (int32_t k = 0; k < s->n_condition; k++) {
            const usi_select_condition *c = &s->conditions[k];
            usi_member member;
            us_error err = {0};
            if (c->kind == USI_FILTER_MEMBER && route->type->is_opaque) {
                usi_switch_log(sw, "filter %s of %s does not act: the type %s is not known", c->member, name,
                               us_message_name(route->type));
            } else if (c->kind == USI_FILTER_MEMBER &&
                       usi_member_find(route->type, c->member, 0, NULL, &member, &err)) {
                usi_switch_log(sw, "filter %s of %s does not act: %s", c->member, name, err.message);
            } else if (route->n_filter == USI_MAX_CONDITION) {
                usi_switch_log(sw, "filter %s of %s does not act: it has %d already", c->member, name,
                               (int)USI_MAX_CONDITION);
            } else {
                route->filters[route->n_filter++] = (usi_filter){.condition = c};
            }
        }
    }
}

static bool compares(const usi_select_condition *c, double value) {
    switch (c->comparison) {
    case USI_LESS:
        return value < c->value;
    case USI_LESS_OR_EQUAL:
        return value <= c->value;
    case USI_MORE:
        return value > c->value;
    case USI_MORE_OR_EQUAL:
        return value >= c->value;
    case USI_EQUAL:
        return value == c->value;
    case USI_UNEQUAL:
        return value != c->value;
    }
    return false;
}

// Whether a sample of a source meets a condition. Counts and times are those of the samples that met the ones
// before.
static bool meets(usi_filter *f, const usi_route *route, const us_sample *sample) {
    const usi_select_condition *c = f->condition;
    if (c->kind == USI_FILTER_MEMBER)
        return compares(c, us_message_get_number(route->type, sample->bytes, sample->length, c->member));
    if (c->kind == USI_FILTER_EVERY) return f->count++ % (int64_t)c->value == 0;
    // By the source's time, with a tenth of slack: a rate that is a divisor of the topic's gives each n-th.
    const double period = 1e9 / c->value, past = (double)(sample->source_time - f->last);
    if (f->has_last && past >= 0 && past < 0.9 * period) return false;
    f->last = sample->source_time;
    f->has_last = true;
    return true;
}

bool usi_switch_passes_filters(usi_route *route, const us_sample *sample) {
    // The end of an instance is no sample of it.
    for (int32_t i = 0; i < route->n_filter && sample->kind == US_SAMPLE_DATA; i++) {
        if (!meets(&route->filters[i], route, sample)) return false;
    }
    return true;
}
