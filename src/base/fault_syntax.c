// Syntax of faults: COMPONENT=KIND, or COMPONENT:JOINT=KIND:NUMBERS.
#include "base/fault_syntax.h"

#include <stdio.h>
#include <string.h>

#include "base/text_value.h"

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
    {USI_COMPONENT_LIDAR, USI_FAULT_DEAD, "dead", 0, 0, 0, 0},
    {USI_COMPONENT_LIDAR, USI_FAULT_FROZEN, "frozen", 0, 0, 0, 0},
    {USI_COMPONENT_LIDAR, USI_FAULT_BLIND, "blind", 2, 2, -360, 360},
    {USI_COMPONENT_LIDAR, USI_FAULT_BEAMS, "beams", 2, 2, 0, 255},
    {USI_COMPONENT_LIDAR, USI_FAULT_DIRT, "dirt", 1, 1, 0, 1},
    {USI_COMPONENT_SENSOR, USI_FAULT_DEAD, "dead", 0, 0, 0, 0},
    {USI_COMPONENT_SENSOR, USI_FAULT_FROZEN, "frozen", 0, 0, 0, 0},
    {USI_COMPONENT_SENSOR, USI_FAULT_NOISY, "noisy", 1, 1, 0, 1e6},
    {USI_COMPONENT_SENSOR, USI_FAULT_DELAYED, "delayed", 1, 1, 0, 1},
    {USI_COMPONENT_SENSOR, USI_FAULT_DROPPING, "dropping", 1, 1, 0, 1},
    {USI_COMPONENT_SENSOR, USI_FAULT_OFFSET, "offset", 1, 1, -1e12, 1e12},
    {USI_COMPONENT_SENSOR, USI_FAULT_NOISE, "noise", 1, 1, 0, 1e12},
    {USI_COMPONENT_POWER, USI_FAULT_BROWNOUT, "brownout", 0, 1, 1e-3, 1e6},
    {USI_COMPONENT_COMPUTER, USI_FAULT_REBOOT, "reboot", 0, 1, 1e-3, 1e6},
    {USI_COMPONENT_LINK, USI_FAULT_OUTAGE, "outage", 0, 1, 1e-3, 1e6},
    {USI_COMPONENT_LINK, USI_FAULT_LOSS, "loss", 1, 1, 0, 1},
    {USI_COMPONENT_LINK, USI_FAULT_DELAY, "delay", 1, 1, 0, 1e3},
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

const char *usi_fault_component_name(usi_fault_component part) { return parts[part].name; }

const char *usi_fault_component_title(usi_fault_component part) { return parts[part].called; }

bool usi_fault_component_is_named(usi_fault_component part) {
    return part == USI_COMPONENT_MOTOR || part == USI_COMPONENT_JOINT || part == USI_COMPONENT_ENCODER ||
           part == USI_COMPONENT_SENSOR;
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
    // "offset:force.x,0.5": of which reading it is stands first.
    if (out->fault == USI_FAULT_OFFSET || out->fault == USI_FAULT_NOISE) {
        char *comma = strchr(numbers, ',');
        if (!comma || comma == numbers)
            return fail_form(out->part, what, "needs a reading and a number", err);
        *comma = 0;
        out->reading = numbers;
        numbers = comma + 1;
    }
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
    *out = (usi_fault_words){.name = "", .reading = ""};
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
                             !needs_name                    ? "names no fault"
                             : part == USI_COMPONENT_JOINT  ? "names no joint"
                             : part == USI_COMPONENT_SENSOR ? "names no sensor"
                                                            : "names no encoder",
                             err);
        return us_error_set(
            err, US_ERR_SYNTAX, NULL,
            "write motor:JOINT=..., encoder:JOINT=..., imu=..., lidar=..., sensor:NAME=..., power=..., "
            "computer=... or link=..., for example "
            "motor:front_left_femur=weak:0.3",
            "fault: \"%.80s\" names no motor, and no other part that can fail", text);
    }
    bool may_have_name = part == USI_COMPONENT_IMU || part == USI_COMPONENT_LIDAR;
    if (name && !needs_name && !(may_have_name && has_name))
        return fail_form((usi_fault_component)part, text, "has a name, and the robot has but one", err);
    *what++ = 0;
    out->part = (usi_fault_component)part;
    if (may_have_name) out->name = parts[part].name;
    if (has_name) out->name = name + 1;
    return read_kind(what, out, err);
}
