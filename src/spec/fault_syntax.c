// Syntax of faults: COMPONENT=KIND, or COMPONENT:JOINT=KIND:NUMBERS.
#include "spec/fault_syntax.h"

#include <stdio.h>
#include <string.h>

#include "spec/spec.h"
#include "spec/text_value.h"
#include "spec/xml.h"

static const struct {
    const char *name, *usage, *called;
} parts[USI_COMPONENT_COUNT] = {
#define PART_ROW(code, name, usage, called) {name, usage, called},
    USI_FAULT_COMPONENT_LIST(PART_ROW)
#undef PART_ROW
};

// Faults of each component, with the count and range of their numbers. All can be "ok".
static const struct {
    usi_fault_component part;
    usi_fault fault;
    const char *name;
    int min, max;
    double low, high;
} kinds[] = {
    {USI_COMPONENT_MOTOR, USI_FAULT_DEAD, "dead", 0, 0, 0, 0},
    {USI_COMPONENT_MOTOR, USI_FAULT_WEAK, "weak", 1, 1, 0, 1},
    {USI_COMPONENT_MOTOR, USI_FAULT_BLOCKED, "blocked", 0, 1, 1e-6, 1e6},
    {USI_COMPONENT_JOINT, USI_FAULT_BROKEN, "broken", 0, 0, 0, 0},
    {USI_COMPONENT_ENCODER, USI_FAULT_STUCK, "stuck", 0, 0, 0, 0},
    {USI_COMPONENT_ENCODER, USI_FAULT_JUMP, "jump", 1, 1, -1e6, 1e6},
    {USI_COMPONENT_ENCODER, USI_FAULT_DRIFT, "drift", 1, 1, -1e3, 1e3},
    {USI_COMPONENT_IMU, USI_FAULT_BIAS, "bias", 3, 6, -1e3, 1e3},
    {USI_COMPONENT_IMU, USI_FAULT_STUCK, "stuck", 0, 0, 0, 0},
    {USI_COMPONENT_POWER, USI_FAULT_BROWNOUT, "brownout", 0, 1, 1e-3, 1e6},
    {USI_COMPONENT_COMPUTER, USI_FAULT_REBOOT, "reboot", 0, 1, 1e-3, 1e6},
    {USI_COMPONENT_LINK, USI_FAULT_OUTAGE, "outage", 0, 1, 1e-3, 1e6},
    {USI_COMPONENT_LINK, USI_FAULT_LOSS, "loss", 1, 1, 0, 1},
    {USI_COMPONENT_LINK, USI_FAULT_DELAY, "delay", 1, 1, 0, 1e3},
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

const char *usi_fault_component_name(usi_fault_component part) { return parts[part].name; }

bool usi_fault_component_is_named(usi_fault_component part) {
    return part == USI_COMPONENT_MOTOR || part == USI_COMPONENT_JOINT || part == USI_COMPONENT_ENCODER;
}

// ---------------------------------------------------------------- words

// "fault: TEXT BEHIND", with the form of the part as the remedy.
static us_status fail_form(usi_fault_component part, const char *text, const char *behind, us_error *err) {
    char remedy[300];
    snprintf(remedy, sizeof remedy, "write %s", parts[part].usage);
    return us_error_set(err, US_ERR_SYNTAX, NULL, remedy, "fault: %.80s %s", text, behind);
}

static us_status read_kind(char *what, usi_fault_words *out, us_error *err) {
    char *numbers = strchr(what, ':');
    if (numbers) *numbers++ = 0;
    const char *known[N_KIND + 1] = {"ok"};
    int32_t n_known = 1, kind = -1;
    for (int32_t i = 0; i < N_KIND; i++) {
        if (kinds[i].part != out->part) continue;
        known[n_known++] = kinds[i].name;
        if (strcmp(kinds[i].name, what) == 0) kind = i;
    }
    bool is_ok = strcmp(what, "ok") == 0;
    if (kind < 0 && !is_ok) return usi_fail_unknown("fault", what, known, n_known, err);
    out->fault = is_ok ? USI_FAULT_NONE : kinds[kind].fault;
    if (numbers && (is_ok || kinds[kind].max == 0)) return fail_form(out->part, what, "takes no number", err);
    if (!numbers && !is_ok && kinds[kind].min > 0) return fail_form(out->part, what, "needs a number", err);
    if (!numbers) return US_OK;
    int n = 0;
    us_status status;
    // One number: the error gives its range. Several: how many are expected.
    if (kinds[kind].max == 1) {
        status = usi_read_number(what, numbers, kinds[kind].low, kinds[kind].high, out->number, err);
        n = 1;
    } else {
        status = usi_read_list(what, numbers, kinds[kind].min, kinds[kind].max, kinds[kind].low,
                               kinds[kind].high, out->number, &n, err);
    }
    if (!status && out->fault == USI_FAULT_BIAS && n != 3 && n != 6)
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write three accelerations (m/s^2), or these and three angular speeds (rad/s)",
                            "bias: %d numbers are given", n);
    out->n_number = n;
    return status;
}

us_status usi_fault_parse(char *text, usi_fault_words *out, us_error *err) {
    *out = (usi_fault_words){.name = ""};
    char *what = strchr(text, '='), *name = strchr(text, ':');
    if (name && what && name > what) name = NULL;
    size_t length = name ? (size_t)(name - text) : what ? (size_t)(what - text) : strlen(text);
    int32_t part = 0;
    while (part < USI_COMPONENT_COUNT &&
           (strlen(parts[part].name) != length || strncmp(parts[part].name, text, length) != 0))
        part++;
    bool needs_name = part < USI_COMPONENT_COUNT && usi_fault_component_is_named((usi_fault_component)part);
    bool has_name = name && what && what > name + 1;
    if (part == USI_COMPONENT_COUNT || !what || (needs_name && !has_name)) {
        // A known kind of fault: the error gives its full syntax.
        if (part < USI_COMPONENT_COUNT && part != USI_COMPONENT_MOTOR)
            return fail_form((usi_fault_component)part, text,
                             !needs_name                   ? "names no fault"
                             : part == USI_COMPONENT_JOINT ? "names no joint"
                                                           : "names no encoder",
                             err);
        return us_error_set(err, US_ERR_SYNTAX, NULL,
                            "write motor:JOINT=..., encoder:JOINT=..., imu=..., power=..., computer=... or "
                            "link=..., for example "
                            "motor:front_left_femur=weak:0.3",
                            "fault: \"%.80s\" names no motor, and no other part that can fail", text);
    }
    if (name && !needs_name)
        return fail_form((usi_fault_component)part, text, "has a name, and the robot has but one", err);
    *what++ = 0;
    out->part = (usi_fault_component)part;
    if (needs_name) out->name = name + 1;
    return read_kind(what, out, err);
}

// ---------------------------------------------------------------- names

static bool has_one_coordinate(const us_joint_def *j) {
    return us_joint_type_n_v(j->type) == 1 && us_joint_type_n_q(j->type) == 1;
}

static bool has_drive(const us_spec *spec, int32_t joint, int32_t *out_drive) {
    for (int32_t i = 0; i < spec->n_drive; i++) {
        if (spec->drive[i].joint != joint) continue;
        *out_drive = i;
        return true;
    }
    return false;
}

// Full names begin with the robot's.
static const char *own_name(const us_spec *spec, int32_t group, const us_joint_def *j) {
    const char *name = spec->group[group].name;
    size_t n = name && name[0] ? strlen(name) + 1 : 0;
    return strlen(j->name) > n ? j->name + n : NULL;
}

us_status usi_fault_find(const us_spec *spec, int32_t group, const usi_fault_words *words, int32_t *out_joint,
                         int32_t *out_drive, us_error *err) {
    *out_joint = *out_drive = -1;
    if (!usi_fault_component_is_named(words->part)) return US_OK;
    bool is_motor = words->part == USI_COMPONENT_MOTOR;
    usi_guess guess = usi_guess_start(words->name);
    char list[300] = "";
    for (int32_t i = 0; i < spec->n_joint; i++) {
        const us_joint_def *j = &spec->joint[i];
        const char *name = j->group == group ? own_name(spec, group, j) : NULL;
        int32_t drive = -1;
        bool is_driven = has_drive(spec, i, &drive);
        if (!name || !(is_motor                             ? is_driven
                       : words->part == USI_COMPONENT_JOINT ? j->type != US_JOINT_FLOATING
                                                            : has_one_coordinate(j)))
            continue;
        usi_guess_offer(&guess, name);
        if (strcmp(name, words->name) == 0) {
            *out_joint = i;
            *out_drive = drive;
            return US_OK;
        }
        size_t at = strlen(list);
        if (at + strlen(name) + 3 < sizeof list)
            snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : " ", name);
    }
    char remedy[384];
    if (guess.best) {
        snprintf(remedy, sizeof remedy, "did you mean \"%.200s\"?", guess.best);
    } else {
        snprintf(remedy, sizeof remedy, list[0] ? "it has those of%.320s" : "it has none%.10s", list);
    }
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "\"%.100s\" has no %s \"%.100s\"",
                        spec->group[group].name ? spec->group[group].name : "", parts[words->part].called,
                        words->name);
}

us_status usi_fault_check(const us_spec *spec, int32_t group, const char *what, usi_fault_words *out_words,
                          us_error *err) {
    char text[USI_FAULT_TEXT];
    int32_t joint = -1, drive = -1;
    if (strlen(what) >= sizeof text)
        return us_error_set(err, US_ERR_LIMIT, NULL, "write one fault", "the fault is longer than %d bytes",
                            USI_FAULT_TEXT);
    snprintf(text, sizeof text, "%s", what);
    us_status status = usi_fault_parse(text, out_words, err);
    if (!status) status = usi_fault_find(spec, group, out_words, &joint, &drive, err);
    out_words->name = "";  // it pointed into this function's copy
    return status;
}
