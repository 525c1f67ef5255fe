// What the world's network sees of a robot: <network>, <locomotion>, <battery>, <motors> and <fault> inside
// <robot>.
//
// They are read last of all, because they name drives, which may stand anywhere in the scene. Every robot
// gets a definition, whether it has these elements or not: a robot that says nothing speaks under its own
// name.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/fault_target.h"
#include "spec/gazebo_sensor.h"
#include "spec/publication.h"
#include "spec/scene.h"
#include "spec/spec.h"

// The one element of that name in the robot, or NULL.
static us_status find_one(usi_reader *r, const xmlNode *robot, const char *name, const xmlNode **out_node) {
    *out_node = usi_xml_child(robot, name);
    const xmlNode *second = usi_xml_next(*out_node, name);
    if (!second) return US_OK;
    return usi_fail(r, US_ERR_SCHEMA, second, "write everything into one of them",
                    "there are two <%s> (the first in line %d)", name, (int)usi_xml_line(*out_node));
}

us_status usi_scene_clock_rate(usi_reader *r, const xmlNode *world, double *out) {
    return usi_scene_rate(r, world, "clock-rate", out);
}

// ---- <network> ----

static us_status read_outages(usi_reader *r, const xmlNode *node, us_link_model *l) {
    usi_dimension dimensions[USI_LIST_LIMIT];
    for (int i = 0; i < USI_LIST_LIMIT; i++)
        dimensions[i] = USI_TIME;
    double *times = usi_reader_alloc(r, 2 * USI_OUTAGE_LIMIT * sizeof *times);
    if (!times) return usi_fail_memory(r);
    int n = 0;
    usi_look look = usi_look_at(node);
    us_status status = usi_look_list(r, &look, "outages", dimensions, 2 * USI_OUTAGE_LIMIT, times, &n);
    if (status) return status;
    if (n % 2) {
        return usi_fail(r, US_ERR_VALUE, node, "write the start and the end of each outage: 10 20 50 60 s",
                        "outages: %d numbers are not pairs", n);
    }
    for (int i = 0; i < n; i++) {
        if (times[i] < 0)
            return usi_fail(r, US_ERR_VALUE, node, "write times of 0 or more", "outages: %g s is negative",
                            times[i]);
        if (i > 0 && times[i] <= times[i - 1]) {
            return usi_fail(r, US_ERR_VALUE, node,
                            "write start and end of one outage after the other, in order of time",
                            "outages: %g s does not come after %g s", times[i], times[i - 1]);
        }
    }
    l->n_outage = n / 2;
    l->outages = times;
    return US_OK;
}

static us_status read_link(usi_reader *r, const xmlNode *network, const char *name, us_link_model *l) {
    const xmlNode *node = NULL;
    us_status status = find_one(r, network, name, &node);
    if (status || !node) return status;
    usi_look look = usi_look_at(node);
    status = usi_look_positive(r, &look, "delay", USI_TIME, false, &l->delay);
    if (!status) status = usi_look_positive(r, &look, "jitter", USI_TIME, false, &l->jitter);
    if (!status) status = usi_look_positive(r, &look, "loss", USI_PLAIN, false, &l->loss);
    if (!status) status = usi_look_positive(r, &look, "bandwidth", USI_DATA_RATE, true, &l->bandwidth);
    if (!status) status = read_outages(r, node, l);
    if (!status && l->loss > 1) {
        status = usi_fail(r, US_ERR_VALUE, node,
                          "write a probability from 0 to 1: 0.05 loses one sample in twenty",
                          "loss: %g is above 1", l->loss);
    }
    return status;
}

static us_status read_noise(usi_reader *r, const xmlNode *network, us_network_def *d) {
    static const char *const names[] = {
#define NOISE_NAME(code, name) [code] = name,
        US_NOISE_LIST(NOISE_NAME)
#undef NOISE_NAME
    };
    const xmlNode *of[US_NOISE_COUNT] = {NULL};
    us_status status = US_OK;
    const xmlNode *node = usi_xml_child(network, "noise");
    for (; node && !status; node = usi_xml_next(node, "noise")) {
        const char *name = usi_xml_attr(node, "of");
        int kind = 0;
        while (kind < US_NOISE_COUNT - 1 && strcmp(names[kind], name) != 0)  // the schema knows no other
            kind++;
        us_noise *n = &d->noise[kind];
        usi_look look = usi_look_at(node);
        if (of[kind])
            return usi_fail(r, US_ERR_NAME, node, "write one for each kind of value",
                            "there is a <noise of=\"%s\"> already, in line %d", name,
                            (int)usi_xml_line(of[kind]));
        of[kind] = node;
        status = usi_look_positive(r, &look, "deviation", USI_PLAIN, false, &n->deviation);
        if (!status) status = usi_look_positive(r, &look, "memory", USI_TIME, false, &n->memory);
        if (!status) status = usi_look_positive(r, &look, "step", USI_PLAIN, false, &n->step);
        if (!status && kind == US_NOISE_IMU_ORIENTATION && n->step > 0)
            status = usi_fail(r, US_ERR_VALUE, node, "leave it out", "an orientation has no step");
        if (!status && n->memory > US_NOISE_MEMORY_MAX)
            status = usi_fail(r, US_ERR_VALUE, node, "write at most 10 s", "memory: %g s is longer than that",
                              n->memory);
    }
    return status;
}

static us_status read_timing(usi_reader *r, const xmlNode *network, us_timing *t) {
    const xmlNode *node = NULL;
    us_status status = find_one(r, network, "timing", &node);
    if (status || !node) return status;
    usi_look look = usi_look_at(node);
    const char *clock = usi_xml_attr(node, "clock");
    t->is_wall = clock && strcmp(clock, "wall") == 0;  // the schema knows no third
    status = usi_look_number(r, &look, "offset", USI_TIME, &t->offset);
    if (!status) status = usi_look_number(r, &look, "drift", USI_PLAIN, &t->drift);
    if (!status) status = usi_look_positive(r, &look, "delay", USI_TIME, false, &t->delay);
    if (!status) status = usi_look_positive(r, &look, "jitter", USI_TIME, false, &t->jitter);
    if (!status && (fabs(t->drift) > 0.1 || fabs(t->offset) > 1e9)) {
        return usi_fail(r, US_ERR_VALUE, node, "write a drift of at most 0.1, and an offset of at most 1e9 s",
                        "no clock is as wrong as that");
    }
    if (!status && (t->delay > 1 || t->jitter > 1)) {
        return usi_fail(r, US_ERR_VALUE, node,
                        "write at most 1 s here; a radio link that takes longer is a <downlink>",
                        "a computer that takes %g s to send", t->delay > 1 ? t->delay : t->jitter);
    }
    return status;
}

// The names under which the robot speaks.
static us_status read_names(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                            us_network_def *d) {
    d->namespace_ = usi_xml_attr(node, "namespace");
    if (d->namespace_ && d->namespace_[0] && !usi_is_ros_name(d->namespace_, true)) {
        return usi_fail(
            r, US_ERR_NAME, node,
            "use letters, digits and _, not starting with a digit, with / between parts and not around them",
            "namespace: \"%.60s\" is no name of a ROS 2 namespace", d->namespace_);
    }
    d->frame_prefix = usi_xml_attr(node, "frame-prefix");
    if (d->frame_prefix && !usi_is_frame_prefix(d->frame_prefix)) {
        return usi_fail(r, US_ERR_NAME, node,
                        "use at most 100 letters, digits and signs without blanks, and no / at the beginning",
                        "frame-prefix: \"%.60s\" cannot stand before the name of a frame", d->frame_prefix);
    }
    if (usi_xml_attr(node, "node")) d->node = usi_xml_attr(node, "node");
    if (!usi_is_ros_name(d->node, false)) {
        return usi_fail(r, US_ERR_NAME, node, "use letters, digits and _, not starting with a digit",
                        "node: \"%.60s\" is no name of a ROS 2 node", d->node);
    }
    if (!usi_xml_attr(node, "base")) return US_OK;
    int32_t base = -1;
    us_status status = usi_scene_find_link(r, group, node, "base", &base);
    if (status) return status;
    if (base == US_WORLD)
        return usi_fail(r, US_ERR_NAME, node, "name a link of the robot", "base: the world does not move");
    d->base_frame = us_spec_view_link(r->spec, base)->name;
    return US_OK;
}

static us_status read_network(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    const xmlNode *node = NULL;
    us_status status = find_one(r, group->node, "network", &node);
    if (status || !node) return status;
    bool is_enabled = true;
    usi_look look = usi_look_at(node);
    status = usi_xml_bool(r, node, "enabled", false, &is_enabled);
    if (!status) status = usi_xml_bool(r, node, "services", false, &d->has_services);
    const char *velocity = usi_xml_attr(node, "cmd-vel");
    d->is_stamped = velocity && strcmp(velocity, "TwistStamped") == 0;
    const char *booting = usi_xml_attr(node, "while-booting");
    d->lets_go = booting && strcmp(booting, "free") == 0;
    if (!status) status = usi_look_positive(r, &look, "timeout", USI_TIME, false, &d->timeout);
    if (!status) status = read_names(r, group, node, d);
    if (!status) status = usi_scene_topics(r, node, d);
    if (!status) status = usi_scene_command_sources(r, node, d);
    if (!status) status = usi_scene_interface(r, node, d);
    if (!status) status = read_link(r, node, "uplink", &d->uplink);
    if (!status) status = read_link(r, node, "downlink", &d->downlink);
    if (!status) status = read_timing(r, node, &d->timing);
    if (!status) status = read_noise(r, node, d);
    d->is_off = !is_enabled;
    d->line = usi_xml_line(node);
    return status;
}

// ---- <locomotion> and <motors>: they name joints and mean their drives ----

static us_status find_drive(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                            const char *attribute, int32_t *out_drive) {
    int32_t joint = -1;
    us_status status = usi_scene_find_joint(r, group, node, attribute, &joint);
    if (status) return status;
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_drive; i++) {
        const us_drive_def *d = us_spec_view_drive(r->spec, i);
        if (d->joint != joint || d->coordinate != 0) continue;
        *out_drive = i;
        return US_OK;
    }
    char remedy[300];
    snprintf(remedy, sizeof remedy, "give it one: <drive joint=\"%.100s\" kd=\"...\"/>",
             usi_xml_attr(node, attribute));
    return usi_fail(r, US_ERR_NAME, node, remedy, "%s: the joint \"%.100s\" has no drive", attribute,
                    usi_xml_attr(node, attribute));
}

// The drive of a joint that turns, used for one thing only: `used` are those of the wheels before.
static us_status find_wheel_drive(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                                  const char *attribute, const us_wheel_def *used, int32_t n_used,
                                  int32_t *out_drive) {
    us_status status = find_drive(r, group, node, attribute, out_drive);
    if (status) return status;
    const us_drive_def *d = us_spec_view_drive(r->spec, *out_drive);
    us_joint_type type = us_spec_view_joint(r->spec, d->joint)->type;
    if (type != US_JOINT_REVOLUTE && type != US_JOINT_CONTINUOUS) {
        return usi_fail(r, US_ERR_VALUE, node, "name a revolute or continuous joint",
                        "%s: \"%.100s\" is a %s joint", attribute, usi_xml_attr(node, attribute),
                        us_joint_type_name(type));
    }
    for (int32_t i = 0; i < n_used; i++) {
        if (used[i].drive != *out_drive && used[i].steer != *out_drive) continue;
        return usi_fail(r, US_ERR_NAME, node, "name each joint once",
                        "%s: the joint \"%.100s\" belongs to another wheel", attribute,
                        usi_xml_attr(node, attribute));
    }
    bool is_steer = attribute[0] == 's';
    if (is_steer ? d->kp > 0 : d->kd > 0) return US_OK;
    return usi_warn(r, node, is_steer ? "give the drive a kp" : "give the drive a kd",
                    "%s: the drive of \"%.100s\" has no %s: it follows no %s", attribute,
                    usi_xml_attr(node, attribute), is_steer ? "kp" : "kd", is_steer ? "angle" : "speed");
}

static us_status read_wheel(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                            const us_wheel_def *used, int32_t n_used, us_wheel_def *out) {
    us_wheel_def w = {.drive = -1, .steer = -1};
    usi_look look = usi_look_at(node);
    us_status status = usi_look_positive(r, &look, "radius", USI_LENGTH, true, &w.radius);
    if (!status) status = find_wheel_drive(r, group, node, "drive", used, n_used, &w.drive);
    if (!status && usi_xml_attr(node, "steer"))
        status = find_wheel_drive(r, group, node, "steer", used, n_used, &w.steer);
    if (!status && w.steer == w.drive) {
        status = usi_fail(r, US_ERR_NAME, node, "name the joint that turns the wheel's plane as steer",
                          "drive and steer are the same joint");
    }
    *out = w;
    return status;
}

// The drive of a joint of a leg, which turns and holds an angle: `used` are those of the legs before, and of
// this one.
static us_status find_leg_drive(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                                const char *attribute, int32_t *used, int32_t *n_used) {
    int32_t drive = -1;
    us_status status = find_drive(r, group, node, attribute, &drive);
    if (status) return status;
    const us_drive_def *d = us_spec_view_drive(r->spec, drive);
    us_joint_type type = us_spec_view_joint(r->spec, d->joint)->type;
    const char *name = usi_xml_attr(node, attribute);
    if (type != US_JOINT_REVOLUTE && type != US_JOINT_CONTINUOUS) {
        return usi_fail(r, US_ERR_VALUE, node, "name a revolute or continuous joint",
                        "%s: \"%.100s\" is a %s joint", attribute, name, us_joint_type_name(type));
    }
    for (int32_t i = 0; i < *n_used; i++) {
        if (used[i] != drive) continue;
        return usi_fail(r, US_ERR_NAME, node, "name each joint once",
                        "%s: the joint \"%.100s\" is named before", attribute, name);
    }
    used[(*n_used)++] = drive;
    if (d->kp > 0) return US_OK;
    return usi_warn(r, node, "give the drive a kp",
                    "%s: the drive of \"%.100s\" has no kp: it follows no angle", attribute, name);
}

// <leg>s and what only walkers have.
static us_status read_legs(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                           us_network_def *d) {
    static const char *const own[] = {"body-height", "stance", "step-height", "step-time", "duty"};
    const xmlNode *wheel = usi_xml_child(node, "wheel"), *leg = usi_xml_child(node, "leg");
    bool is_tripod = d->locomotion == US_LOCOMOTION_TRIPOD;
    for (size_t i = 0; i < sizeof own / sizeof *own && !is_tripod; i++) {
        if (usi_xml_attr(node, own[i]))
            return usi_fail(r, US_ERR_VALUE, node, "remove it, or write type=\"tripod\"",
                            "%s: wheels do not step", own[i]);
    }
    if (!is_tripod && leg)
        return usi_fail(r, US_ERR_VALUE, leg, "write type=\"tripod\", or wheels",
                        "a robot on wheels has no legs");
    if (!is_tripod) return US_OK;
    if (wheel)
        return usi_fail(r, US_ERR_VALUE, wheel, "remove it, or write another type", "a tripod has no wheels");
    usi_look look = usi_look_at(node);
    us_status status = usi_look_positive(r, &look, "body-height", USI_LENGTH, true, &d->body_height);
    if (!status) status = usi_look_positive(r, &look, "stance", USI_LENGTH, true, &d->stance);
    if (!status) status = usi_look_positive(r, &look, "step-height", USI_LENGTH, true, &d->step_height);
    if (!status) status = usi_look_positive(r, &look, "step-time", USI_TIME, true, &d->step_time);
    if (!status) status = usi_look_positive(r, &look, "duty", USI_PLAIN, true, &d->duty);
    if (status) return status;
    if (d->body_height == 0) {
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "write how high its base's origin is over the ground: body-height=\"0.2 m\"",
                        "body-height is missing");
    }
    if (d->duty <= 0.5 || d->duty >= 1) {
        return usi_fail(
            r, US_ERR_VALUE, node,
            "write a number above 0.5 and below 1: 0.6 lets all six feet stand for a fifth of the time",
            "duty: with %g a tripod would not stand before the other one lifts", d->duty);
    }
    us_leg_def *legs = usi_reader_alloc(r, USI_LEG_COUNT * sizeof *legs);
    if (!legs) return usi_fail_memory(r);
    int32_t used[3 * USI_LEG_COUNT], n_used = 0, n = 0;
    for (; leg; leg = usi_xml_next(leg, "leg"), n++) {
        if (n >= USI_LEG_COUNT) continue;
        status = find_leg_drive(r, group, leg, "coxa", used, &n_used);
        if (!status) status = find_leg_drive(r, group, leg, "femur", used, &n_used);
        if (!status) status = find_leg_drive(r, group, leg, "tibia", used, &n_used);
        if (status) return status;
        legs[n] = (us_leg_def){used[n_used - 3], used[n_used - 2], used[n_used - 1]};
    }
    if (n != USI_LEG_COUNT)
        return usi_fail(r, US_ERR_VALUE, node, "write six <leg>", "tripod: there are %d legs", (int)n);
    d->legs = legs;
    d->n_leg = n;
    return US_OK;
}

static us_status read_locomotion(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    const xmlNode *node = NULL;
    us_status status = find_one(r, group->node, "locomotion", &node);
    if (status || !node) return status;
    usi_look look = usi_look_at(node);
    status = usi_look_positive(r, &look, "max-speed", USI_SPEED, true, &d->max_speed);
    if (!status) status = usi_look_positive(r, &look, "max-turn", USI_SPIN, true, &d->max_turn);
    if (!status)
        status =
            usi_look_positive(r, &look, "max-acceleration", USI_ACCELERATION, true, &d->max_acceleration);
    if (!status) status = usi_look_positive(r, &look, "track-scale", USI_PLAIN, true, &d->track_scale);
    if (status) return status;
    const char *type = usi_xml_attr(node, "type");
    d->locomotion = US_LOCOMOTION_SKID;
    while (d->locomotion + 1 < US_LOCOMOTION_COUNT && strcmp(us_locomotion_name(d->locomotion), type) != 0)
        d->locomotion++;
    if (usi_xml_attr(node, "track-scale") && d->locomotion != US_LOCOMOTION_SKID) {
        return usi_fail(r, US_ERR_VALUE, node, "remove it",
                        d->locomotion == US_LOCOMOTION_TRIPOD
                            ? "track-scale: feet do not slip"
                            : "track-scale: wheels that steer do not slip sideways");
    }
    status = read_legs(r, group, node, d);
    if (status) return status;
    int32_t n = 0, n_steer = 0;
    for (const xmlNode *w = usi_xml_child(node, "wheel"); w; w = usi_xml_next(w, "wheel"))
        n++;
    us_wheel_def *wheels = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *wheels);
    if (!wheels) return usi_fail_memory(r);
    for (const xmlNode *w = usi_xml_child(node, "wheel"); w; w = usi_xml_next(w, "wheel")) {
        status = read_wheel(r, group, w, wheels, d->n_wheel, &wheels[d->n_wheel]);
        if (status) return status;
        n_steer += wheels[d->n_wheel++].steer >= 0;
    }
    d->wheels = wheels;
    if (usi_wheels_fit(d->locomotion, n, n_steer)) return US_OK;
    static const char *const rule[US_LOCOMOTION_COUNT] = {
        [US_LOCOMOTION_SKID] = "write two or more wheels without steer, or another type",
        [US_LOCOMOTION_ACKERMANN] = "write at least one wheel with steer and one without, or another type",
        [US_LOCOMOTION_ALL_WHEEL] = "write two or more wheels, each with steer, or another type",
    };
    return usi_fail(r, US_ERR_VALUE, node, rule[d->locomotion],
                    "%s: there are %d wheels, %d of them with steer", type, (int)n, (int)n_steer);
}

static us_status read_motor(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                            const us_motor_def *used, int32_t n_used, us_motor_def *out) {
    const char *name = usi_xml_attr(node, "name");
    if (!usi_is_motor_name(name)) {
        return usi_fail(r, US_ERR_NAME, node, "use four letters, digits or signs, but not ; or ,",
                        "name: a motor cannot be called \"%.60s\"", name);
    }
    for (int32_t i = 0; i < n_used; i++) {
        if (strcmp(used[i].name, name) == 0)
            return usi_fail(r, US_ERR_NAME, node, "give each motor its own name", "the name is used twice");
    }
    memcpy(out->name, name, sizeof out->name);
    us_status status = find_drive(r, group, node, "joint", &out->drive);
    for (int32_t i = 0; i < n_used && !status; i++) {
        if (used[i].drive != out->drive) continue;
        status = usi_fail(r, US_ERR_NAME, node, "name each joint once",
                          "the joint \"%.100s\" has the motor \"%s\" already", usi_xml_attr(node, "joint"),
                          used[i].name);
    }
    return status;
}

// An input with its reading, or an output.
static us_status read_line(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                           const us_network_def *d, us_line_def *out) {
    const char *name = usi_xml_attr(node, "name"), *type = usi_xml_attr(node, "type"),
               *value = usi_xml_attr(node, "value");
    *out = (us_line_def){.drive = -1, .scale = 1};
    if (!usi_is_motor_name(name))
        return usi_fail(r, US_ERR_NAME, node, "use four letters, digits or signs, but not ; or ,",
                        "name: a line cannot be called \"%.60s\"", name);
    for (int32_t i = 0; i < d->n_line; i++) {
        if (strcmp(d->lines[i].name, name) == 0)
            return usi_fail(r, US_ERR_NAME, node, "give each line its own name", "the name is used twice");
    }
    memcpy(out->name, name, sizeof out->name);
    // The schema knows the words.
    while (out->kind + 1 < US_LINE_KIND_COUNT && strcmp(us_line_kind_name(out->kind), type) != 0)
        out->kind++;
    while (value && out->value + 1 < US_LINE_VALUE_COUNT &&
           strcmp(us_line_value_name(out->value), value) != 0)
        out->value++;
    const bool is_in = out->kind == US_LINE_DIGITAL_IN || out->kind == US_LINE_ANALOG_IN,
               is_joint = out->value >= US_LINE_JOINT_POSITION && out->value <= US_LINE_JOINT_TORQUE;
    if (is_in != (value != NULL))
        return usi_fail(r, US_ERR_SCHEMA, node,
                        is_in ? "write value=\"battery.voltage\" or another reading" : "remove value",
                        is_in ? "it is not said what it reads" : "an output reads nothing");
    if (is_joint != (usi_xml_attr(node, "joint") != NULL))
        return usi_fail(r, US_ERR_SCHEMA, node, is_joint ? "write joint=\"NAME\"" : "remove joint",
                        is_joint ? "it is not said which joint it reads" : "it reads no joint");
    if (value && !is_joint && !usi_xml_child(group->node, "battery"))
        return usi_fail(r, US_ERR_NAME, node, "give the robot a <battery>", "value: it has no battery");
    usi_look look = usi_look_at(node);
    us_status status = is_joint ? find_drive(r, group, node, "joint", &out->drive) : US_OK;
    if (!status) status = usi_look_number(r, &look, "scale", USI_PLAIN, &out->scale);
    if (!status) status = usi_look_number(r, &look, "offset", USI_PLAIN, &out->offset);
    if (!status) status = usi_look_number(r, &look, "threshold", USI_PLAIN, &out->threshold);
    return status;
}

static us_status read_lines(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                            us_network_def *d) {
    us_line_def *lines = usi_reader_alloc(r, USI_LINE_LIMIT * sizeof *lines);
    if (!lines) return usi_fail_memory(r);
    d->lines = lines;
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(node, "line"); n && !status; n = usi_xml_next(n, "line")) {
        if (d->n_line == USI_LINE_LIMIT)
            return usi_fail(r, US_ERR_LIMIT, n, "remove some", "a robot has at most %d lines",
                            (int)USI_LINE_LIMIT);
        status = read_line(r, group, n, d, &lines[d->n_line]);
        d->n_line++;
    }
    return status;
}

static us_status read_motors(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    const xmlNode *node = NULL;
    us_status status = find_one(r, group->node, "motors", &node);
    if (status || !node) return status;
    status = usi_xml_int(r, node, "port", true, &d->motor_port);
    if (!status) status = usi_scene_rate(r, node, "rate", &d->motor_rate);
    usi_look look = usi_look_at(node);
    if (!status) status = usi_look_positive(r, &look, "counts", USI_PLAIN, true, &d->motor_counts);
    if (!status) status = read_lines(r, group, node, d);
    if (status) return status;
    if (d->motor_port < 0 || d->motor_port > 65535) {
        return usi_fail(r, US_ERR_VALUE, node,
                        "write a port from 1 to 65535 (those below 1024 need rights), or 0 to keep it closed",
                        "port: there is no port %d", (int)d->motor_port);
    }
    int32_t n = 0;
    for (const xmlNode *m = usi_xml_child(node, "motor"); m; m = usi_xml_next(m, "motor"))
        n++;
    us_motor_def *motors = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *motors);
    if (!motors) return usi_fail_memory(r);
    for (const xmlNode *m = usi_xml_child(node, "motor"); m && !status; m = usi_xml_next(m, "motor")) {
        status = read_motor(r, group, m, motors, d->n_motor, &motors[d->n_motor]);
        d->n_motor++;
    }
    d->motors = motors;
    return status;
}

// ---- <battery> ----

static us_status read_battery(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    const xmlNode *node = NULL;
    us_status status = find_one(r, group->node, "battery", &node);
    if (status || !node) return status;
    usi_look look = usi_look_at(node);
    status = usi_look_positive(r, &look, "capacity", USI_ENERGY, true, &d->battery_capacity);
    if (!status) status = usi_look_positive(r, &look, "idle", USI_POWER, false, &d->battery_idle);
    if (!status) status = usi_look_positive(r, &look, "voltage", USI_VOLTAGE, true, &d->battery_voltage);
    return status;
}

// ---- <fault> ----

// What a line of text says wrong, at its element.
static us_status fail_text(usi_reader *r, const xmlNode *node, const char *attribute, us_status status,
                           const us_error *why) {
    return status ? usi_fail(r, status, node, why->remedy, "%s: %.300s", attribute, why->message) : US_OK;
}

static us_status read_fault(usi_reader *r, const xmlNode *node, const us_network_def *d, us_fault_def *f) {
    usi_look look = usi_look_at(node);
    us_error why = {0};
    usi_fault_words words = {0};
    usi_condition condition;
    *f = (us_fault_def){.name = usi_xml_attr(node, "name"),
                        .after = usi_xml_attr(node, "after"),
                        .when = usi_xml_attr(node, "when"),
                        .what = usi_xml_attr(node, "what"),
                        .file = usi_xml_file(node),
                        .line = usi_xml_line(node)};
    us_status status = usi_look_positive(r, &look, "at", USI_TIME, false, &f->at);
    if (!status) status = usi_look_positive(r, &look, "for", USI_TIME, true, &f->duration);
    if (!status && !usi_xml_attr(node, "at") && !f->when && !f->after)
        status =
            usi_fail(r, US_ERR_SCHEMA, node, "write at=\"12.5 s\", when=\"odom.x &gt; 3\" or after=\"NAME\"",
                     "it is not said when it comes");
    if (!status)
        status = fail_text(r, node, "what", usi_fault_check(r->spec, d, f->what, &words, &why), &why);
    if (!status && f->when)
        status = fail_text(r, node, "when", usi_condition_read(r->spec, d, f->when, &condition, &why), &why);
    if (!status && f->duration > 0 && words.fault == USI_FAULT_NONE)
        status = usi_fail(r, US_ERR_VALUE, node, "remove it", "for: what mends is not undone");
    if (!status && f->duration > 0 && words.fault == USI_FAULT_BROKEN)
        status = usi_fail(r, US_ERR_VALUE, node, "remove it", "for: what is broken is not mended");
    if (!status && f->name && usi_script_find(d->faults, d->n_fault, f->name) >= 0)
        status = usi_fail(r, US_ERR_NAME, node, "give each fault of a robot its own name",
                          "the name \"%.60s\" is used twice", f->name);
    if (!status && f->after && usi_script_find(d->faults, d->n_fault, f->after) < 0)
        status = usi_fail(r, US_ERR_NAME, node, "name a fault of this robot that stands before this one",
                          "after: there is no fault \"%.60s\" before it", f->after);
    return status;
}

static us_status read_faults(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    int32_t n = 0;
    for (const xmlNode *f = usi_xml_child(group->node, "fault"); f; f = usi_xml_next(f, "fault"))
        n++;
    us_fault_def *faults = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *faults);
    if (!faults) return usi_fail_memory(r);
    d->faults = faults;
    us_status status = US_OK;
    for (const xmlNode *f = usi_xml_child(group->node, "fault"); f && !status; f = usi_xml_next(f, "fault")) {
        if (d->is_off)
            return usi_fail(r, US_ERR_VALUE, f, "remove it, or enable the network",
                            "a robot that is not on the network has no faults");
        if (d->n_fault == USI_SCRIPT_LIMIT)
            return usi_fail(r, US_ERR_LIMIT, f, "write fewer", "a robot has at most %d faults in store",
                            USI_SCRIPT_LIMIT);
        status = read_fault(r, f, d, &faults[d->n_fault]);
        if (!status) d->n_fault++;
    }
    return status;
}

// ---- All of a robot, and all robots together ----

// A name that ROS 2 does not allow becomes one that it does, and says so.
static us_status name_after_robot(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    if (d->namespace_ || usi_is_ros_name(group->name, false)) return US_OK;
    char name[USI_NETWORK_NAME_LIMIT + 2];
    usi_ros_name_make(group->name, name, sizeof name);
    d->namespace_ = usi_reader_text(r, "%s", name);
    if (!d->namespace_) return usi_fail_memory(r);
    if (d->is_off) return US_OK;
    return usi_warn(r, group->node, "name it yourself: <network namespace=\"...\"/>",
                    "\"%.60s\" is no name of a ROS 2 namespace; the robot's topics are under \"/%s\"",
                    group->name, name);
}

// What two robots cannot share.
static us_status check_others(usi_reader *r, const usi_scene_group *group, const us_network_def *d) {
    const us_spec *spec = r->spec;
    const xmlNode *node = usi_xml_child(group->node, "network"),
                  *motors = usi_xml_child(group->node, "motors");
    if (!node) node = group->node;
    const char *name = d->namespace_ ? d->namespace_ : group->name;
    for (int32_t i = 0; i < spec->n_network && !d->is_off; i++) {
        const us_network_def *other = &spec->network[i];
        if (other->is_off) continue;
        const char *who = spec->group[other->group].name;
        if (strcmp(other->namespace_, name) == 0) {
            return usi_fail(r, US_ERR_NAME, node, "give each robot its own namespace",
                            "the namespace \"%.60s\" is that of \"%.60s\" (line %d)", name, who,
                            (int)other->line);
        }
        if (d->motor_port && d->motor_port == other->motor_port) {
            return usi_fail(r, US_ERR_VALUE, motors, "give each robot its own port",
                            "port: %d is that of \"%.60s\"", (int)d->motor_port, who);
        }
        if (d->frame_prefix && strcmp(other->frame_prefix, d->frame_prefix) == 0) {
            us_status status = usi_warn(
                r, node, "give each robot its own frame-prefix",
                "frame-prefix: that of \"%.60s\" is the same, so that frames of both may have one name", who);
            if (status) return status;
        }
    }
    return US_OK;
}

// What is wrong with the topics taken together is said where one of them was written.
static us_status set_network(usi_reader *r, const usi_scene_group *group, const us_network_def *d) {
    us_error why = {0};
    int32_t topic = -1;
    us_status status = usi_network_set(r->spec, d, &topic, &why);
    if (topic < 0) return usi_scene_added(r, group->node, status);
    const xmlNode *network = usi_xml_child(group->node, "network");
    const xmlNode *node = network ? usi_xml_child(network, "topic") : NULL;
    for (; node && topic > 0; topic--)
        node = usi_xml_next(node, "topic");
    return usi_fail(r, status, node ? node : group->node, why.remedy, "%.300s", why.message);
}

us_status usi_scene_network(usi_reader *r, const usi_scene_group *group) {
    us_network_def d = us_network_def_default();
    d.group = group->index;
    d.file = usi_xml_file(group->node);
    d.line = usi_xml_line(group->node);
    us_status status = usi_scene_sensors(r, group, &d);
    if (!status) status = read_network(r, group, &d);
    if (!status) status = read_locomotion(r, group, &d);
    if (!status) status = read_battery(r, group, &d);
    if (!status) status = read_motors(r, group, &d);
    if (!status) status = usi_gazebo_sensors(r, &d);
    if (!status) status = read_faults(r, group, &d);
    if (!status) status = name_after_robot(r, group, &d);
    if (!status) status = check_others(r, group, &d);
    if (!status) status = set_network(r, group, &d);
    us_interface_release(d.interface_);  // the spec has its own hold
    return status;
}
