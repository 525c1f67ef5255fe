// Which joint and drive of a robot a fault is about.
#include "spec/fault_target.h"

#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "spec/publication.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"
#include "spec/xml.h"

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
    if (!usi_fault_component_is_named(words->part) || words->part == USI_COMPONENT_SENSOR) return US_OK;
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
                        spec->group[group].name ? spec->group[group].name : "",
                        usi_fault_component_title(words->part), words->name);
}

static bool is_of_part(const us_sensor_def *d, bool is_imu) {
    return is_imu ? usi_sensor_kind_of(d) == us_sensor_kind_view(0) : usi_is_lidar_def(d);
}

// The unit "imu" is always there, unless the robot has no root to carry it. A lidar is there where it was
// written.
static us_status check_sensor(const us_network_def *robot, const usi_fault_words *words, us_error *err) {
    const bool is_imu = words->part == USI_COMPONENT_IMU;
    const us_sensor_def *sensor = usi_find_sensor_def(robot, words->name);
    if ((is_imu && strcmp(words->name, "imu") == 0) || (sensor && is_of_part(sensor, is_imu))) return US_OK;
    const char *known[USI_SENSOR_LIMIT + 1] = {"imu"};
    int32_t n = is_imu;
    for (int32_t i = 0; i < robot->n_sensor && i < USI_SENSOR_LIMIT; i++) {
        if (is_of_part(&robot->sensors[i], is_imu)) known[n++] = robot->sensors[i].name;
    }
    return usi_fail_unknown(usi_fault_component_title(words->part), words->name, known, n, err);
}

static us_status check_reading(const us_sensor_kind *k, const usi_fault_words *words, us_error *err) {
    if (!words->reading[0]) return US_OK;
    const char *known[US_SENSOR_MAX_READING];
    int32_t n = 0;
    for (int32_t i = 0; i < k->n_reading; i++) {
        if (!k->readings[i].is_exact) known[n++] = k->readings[i].name;
    }
    const int32_t at = usi_find_reading(k, words->reading);
    if (at >= 0 && !k->readings[at].is_exact) return US_OK;
    return usi_fail_unknown("reading that can be off", words->reading, known, n, err);
}

// Any sensor of the robot by its name: those that every robot has, and those that were written.
static us_status check_any_sensor(const us_network_def *robot, const usi_fault_words *words, us_error *err) {
    const us_sensor_def *sensor = usi_find_sensor_def(robot, words->name);
    const bool is_imu = strcmp(words->name, "imu") == 0,
               is_gauge = strcmp(words->name, "battery") == 0 && robot->battery_capacity > 0;
    if (sensor) return check_reading(usi_sensor_kind_of(sensor), words, err);
    if (is_imu || is_gauge) return check_reading(us_sensor_kind_find(words->name), words, err);
    const char *known[USI_SENSOR_LIMIT + 2] = {"imu"};
    int32_t n = 1;
    if (robot->battery_capacity > 0) known[n++] = "battery";
    for (int32_t i = 0; i < robot->n_sensor && i < USI_SENSOR_LIMIT; i++)
        known[n++] = robot->sensors[i].name;
    return usi_fail_unknown("sensor", words->name, known, n, err);
}

us_status usi_fault_check(const us_spec *spec, const us_network_def *robot, const char *what,
                          usi_fault_words *out_words, us_error *err) {
    char text[USI_FAULT_TEXT];
    int32_t joint = -1, drive = -1;
    if (strlen(what) >= sizeof text)
        return us_error_set(err, US_ERR_LIMIT, NULL, "write one fault", "the fault is longer than %d bytes",
                            USI_FAULT_TEXT);
    snprintf(text, sizeof text, "%s", what);
    us_status status = usi_fault_parse(text, out_words, err);
    if (!status) status = usi_fault_find(spec, robot->group, out_words, &joint, &drive, err);
    const bool is_sensor = out_words->part == USI_COMPONENT_IMU || out_words->part == USI_COMPONENT_LIDAR;
    if (!status && is_sensor) status = check_sensor(robot, out_words, err);
    if (!status && out_words->part == USI_COMPONENT_SENSOR) status = check_any_sensor(robot, out_words, err);
    out_words->name = out_words->reading = "";  // they pointed into this function's copy
    return status;
}
