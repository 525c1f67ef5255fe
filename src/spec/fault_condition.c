// Conditions of scripted faults: which values they look at, and what these must be.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "spec/fault_syntax.h"
#include "spec/spec.h"
#include "spec/xml.h"

static const char *const own_names[] = {
#define OWN_NAME(code, name) name,
    USI_OWN_VALUE_LIST(OWN_NAME)
#undef OWN_NAME
};

// ---------------------------------------------------------------- values

// "q", "v[2]": one coordinate of n.
static bool is_coordinate(const char *what, int32_t n) {
    if (what[1] == 0) return n == 1;
    char *end = NULL;
    if (what[1] != '[' || what[2] < '0' || what[2] > '9') return false;
    long at = strtol(what + 2, &end, 10);
    return strcmp(end, "]") == 0 && at < n;
}

// Whether us_sim_find_value will know the name.
static bool is_value(const us_spec *spec, const char *name) {
    static const char *const whole[] = {"time", "energy", "energy.kinetic", "energy.potential", "closure"};
    static const char *const pose[] = {"qw", "qx", "qy", "qz", "x", "y", "z"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (strcmp(name, whole[i]) == 0) return true;
    }
    const char *dot = strrchr(name, '.');
    char head[USI_VALUE_NAME];
    if (!dot || dot == name) return false;
    snprintf(head, sizeof head, "%.*s", (int)(dot - name), name);
    int32_t joint = us_spec_find_joint(spec, head);
    us_joint_type type = joint >= 0 ? spec->joint[joint].type : US_JOINT_FIXED;
    if (joint >= 0 && dot[1] == 'q' && is_coordinate(dot + 1, us_joint_type_n_q(type))) return true;
    if (joint >= 0 && dot[1] == 'v' && is_coordinate(dot + 1, us_joint_type_n_v(type))) return true;
    for (int32_t i = 0; i < spec->n_drive; i++) {
        if (spec->drive[i].name && strcmp(spec->drive[i].name, head) == 0 && strcmp(dot + 1, "torque") == 0)
            return true;
    }
    for (int k = 0; k < 7 && us_spec_find_link(spec, head) >= 0; k++) {
        if (strcmp(dot + 1, pose[k]) == 0) return true;
    }
    return false;
}

static us_status find_value(const us_spec *spec, const us_network_def *network, const char *name,
                            usi_term *out, us_error *err) {
    const char *robot = spec->group[network->group].name;
    out->own = USI_OWN_NONE;
    for (int i = 0; i < USI_OWN_COUNT; i++) {
        if (strcmp(own_names[i], name) != 0) continue;
        if (i == USI_OWN_BATTERY && network->battery_capacity <= 0)
            return us_error_set(err, US_ERR_NAME, NULL, "give it one: <battery capacity=\"500 Wh\"/>",
                                "battery: the robot has none");
        if (i != USI_OWN_BATTERY && network->locomotion == US_LOCOMOTION_NONE)
            return us_error_set(err, US_ERR_NAME, NULL, "give it a <locomotion>, or look at a link: NAME.x",
                                "%s: the robot has no odometry", name);
        out->own = (usi_own_value)i;
        snprintf(out->name, sizeof out->name, "%s", name);
        return US_OK;
    }
    if (robot && robot[0]) {
        int n = snprintf(out->name, sizeof out->name, "%s/%s", robot, name);
        if (n < (int)sizeof out->name && is_value(spec, out->name)) return US_OK;
    }
    snprintf(out->name, sizeof out->name, "%s", name);
    if (is_value(spec, name)) return US_OK;
    return us_error_set(err, US_ERR_NAME, NULL,
                        "write odom.x, odom.y, odom.yaw, speed, battery, time, a joint's JOINT.q or JOINT.v, "
                        "a drive's JOINT.torque, or a link's LINK.x "
                        "(.y, .z)",
                        "there is no value \"%.80s\"", name);
}

// ---------------------------------------------------------------- text

static const char *skip(const char *s) {
    while (usi_is_blank(*s))
        s++;
    return s;
}

// A word up to a blank or a sign of comparison.
static const char *take_word(const char *s, char *out, size_t cap) {
    size_t n = 0;
    s = skip(s);
    for (; *s && !usi_is_blank(*s) && *s != '<' && *s != '>' && *s != '='; s++) {
        if (n + 1 < cap) out[n++] = *s;
    }
    out[n] = 0;
    return skip(s);
}

us_status usi_condition_read(const us_spec *spec, const us_network_def *network, const char *text,
                             usi_condition *out, us_error *err) {
    static const char usage[] = "write comparisons with and between them, for example odom.x > 3 and battery "
                                "< 0.5 (in XML: &gt; and &lt;)";
    char name[USI_VALUE_NAME / 2], word[64];
    memset(out, 0, sizeof *out);
    for (const char *s = text;;) {
        if (out->n_term == USI_TERM_LIMIT)
            return us_error_set(err, US_ERR_LIMIT, NULL, "write fewer", "there are more than %d comparisons",
                                USI_TERM_LIMIT);
        usi_term *t = &out->term[out->n_term];
        s = take_word(s, name, sizeof name);
        if (!name[0])
            return us_error_set(err, US_ERR_SYNTAX, NULL, usage, "a value is missing in \"%.80s\"", text);
        if (*s != '<' && *s != '>')
            return us_error_set(err, US_ERR_SYNTAX, NULL, usage, "\"%.80s\" is not compared with anything",
                                name);
        bool is_more = *s++ == '>', has_equal = *s == '=';
        if (has_equal) s++;
        t->compare =
            is_more ? (has_equal ? USI_MORE_EQUAL : USI_MORE) : (has_equal ? USI_LESS_EQUAL : USI_LESS);
        s = take_word(s, word, sizeof word);
        us_status status = usi_read_number(name, word, -1e15, 1e15, &t->value, err);
        if (!status) status = find_value(spec, network, name, t, err);
        if (status) return status;
        out->n_term++;
        if (!*s) return US_OK;
        s = take_word(s, word, sizeof word);
        if (strcmp(word, "and") != 0)
            return us_error_set(err, US_ERR_SYNTAX, NULL, usage, "\"and\" is expected, not \"%.60s\"", word);
    }
}
