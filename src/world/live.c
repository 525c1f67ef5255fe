// A live world's inner part: a sim with its robots, and world commands as they act on it.
//
// What the world is made of does not change while somebody uses it: an edit makes another world beside it, of
// a copy of the spec, and sim and robots go on with that one. The old one ends when the last of its users
// lets go.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "proxy/adopt.h"
#include "proxy/fault.h"
#include "proxy/tap.h"
#include "sim/sim.h"
#include "spec/scene.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"
#include "spec/xml.h"
#include "understudy/sensing.h"
#include "wire/messages.h"
#include "world/pair_field.h"
#include "world/world__inner.h"

// Lines of edits: what a recording carries along. A world that was edited more often begins anew by `reset`.
enum { MAX_EDITS = 1 << 20 };

// ---------------------------------------------------------------- edits

// The old lines and one more; NULL without memory.
static char *append_line(const us_allocator *a, const char *edits, const char *line, size_t *out_size) {
    *out_size = strlen(edits) + strlen(line) + 2;
    char *out = usi_alloc(a, *out_size, 1);
    if (out) snprintf(out, *out_size, "%s%s\n", edits, line);
    return out;
}

static us_status edit(usi_live *live, const usi_command *c, const char *text, us_error *err) {
    const usi_revision *old = live->revision;
    if (strlen(old->edits) + strlen(text) + 2 > MAX_EDITS)
        return us_error_set(err, US_ERR_LIMIT, NULL,
                            "write the world as it is now into a scene, or begin anew: reset",
                            "this world was edited too often: the edits are longer than %d bytes", MAX_EDITS);
    if (c->verb == USI_VERB_ADD && old->spec->n_group >= live->max_group)
        return us_error_set(err, US_ERR_LIMIT, NULL,
                            "remove some, or start the world with more (run --max-objects)",
                            "there are as many objects as may be added");
    if (c->verb == USI_VERB_ADD && c->is_robot && live->n_added >= USI_LIVE_ADDED)
        return us_error_set(err, US_ERR_LIMIT, NULL, "remove one, or write them into the scene",
                            "%d robots were added already", USI_LIVE_ADDED);
    us_spec *spec = NULL;
    us_status status = us_spec_copy(old->spec, &spec);
    if (status)
        return us_error_set(err, status, NULL, "free memory", "the world cannot be copied: %s",
                            us_status_text(status));
    status = usi_spec_edit(spec, c, err);
    if (status) {
        us_spec_destroy(spec);
        return status;
    }
    size_t size = 0;
    char *edits = append_line(&live->allocator, old->edits, text, &size);
    if (!edits) {
        us_spec_destroy(spec);
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the edit");
    }
    usi_revision *revision = NULL;
    status = usi_revision_create(spec, &live->allocator, live->last_revision + 1, edits, old->file, &revision,
                                 err);
    usi_release(&live->allocator, edits, size, 1);
    if (!status) status = usi_live_set_revision(live, revision, err);
    if (!status) live->last_revision = revision->number;
    usi_revision_unref(revision);
    return status;
}

// ---------------------------------------------------------------- what is state

static us_status move_floating(usi_live *live, const usi_command *c, const usi_target *target,
                               us_error *err) {
    us_body body = {target->link};
    us_status status = us_sim_move(live->sim, body, usi_new_place(us_sim_get_pose(live->sim, body), c));
    if (!status) return US_OK;
    return us_error_set(err, status, NULL, "name the object by its own name",
                        "\"%.100s\" cannot be moved: %s", c->name, us_status_text(status));
}

// What stands on the world has no velocity; of an object that floats, its root has one.
static us_status set_velocity(usi_live *live, const usi_command *c, us_error *err) {
    usi_target target = {-1, -1, -1, false};
    us_status status = usi_target_find(live->revision->spec, c->name, &target, err);
    if (status) return status;
    const double *a = c->number;
    const us_twist V = {.w = us_vec3_make(a[3], a[4], a[5]), .v = us_vec3_make(a[0], a[1], a[2])};
    status = target.is_floating ? us_sim_set_twist(live->sim, (us_body){target.link}, V) : US_ERR_TREE;
    if (!status) return US_OK;
    return us_error_set(err, status, NULL, "name an object or robot that floats, by its own name",
                        "\"%.100s\" cannot be set in motion: %s", c->name,
                        target.is_floating ? us_status_text(status) : "it stands on the world");
}

static us_status find_material(const us_model *model, const char *name, us_material *out, us_error *err) {
    *out = us_model_find_material(model, name);
    if (out->i >= 0) return US_OK;
    usi_guess guess = usi_guess_start(name);
    char remedy[384] = "known:";
    int32_t n = us_model_get_counts(model).n_material;
    for (int32_t i = 0; i < n; i++) {
        const char *have = us_model_material_name(model, (us_material){i});
        size_t at = strlen(remedy);
        usi_guess_offer(&guess, have);
        if (at + strlen(have) + 3 < sizeof remedy)
            snprintf(remedy + at, sizeof remedy - at, "%s%s", i ? ", " : " ", have);
    }
    if (guess.best) snprintf(remedy, sizeof remedy, "did you mean \"%.200s\"?", guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no material \"%.100s\"", name);
}

// Whether a model may act between two materials, and then it does.
static us_status set_pair_model(us_sim *sim, us_material a, us_material b, const char *name, us_error *err) {
    us_status status = us_sim_set_pair_model(sim, a, b, name);
    if (status == US_ERR_NAME)
        return us_error_set(err, status, NULL,
                            "write compliant, spring-damper, soil, or a model of a plug-in of the scene",
                            "model: there is no interaction model \"%.100s\"", name);
    if (status)
        return us_error_set(err, status, NULL,
                            "write soil where one of the two is soil, and spring-damper where the pair's "
                            "exponent is 1 to 4",
                            "model: \"%.100s\" cannot act between these materials", name);
    return US_OK;
}

// One friction alone moves the other with it: sliding never holds better than sticking.
static us_status set_pair(usi_live *live, const usi_command *c, char *reply, size_t cap, us_error *err) {
    us_material a, b;
    const us_model *model = live->revision->model;
    us_status status = find_material(model, c->name, &a, err);
    if (!status) status = find_material(model, c->other, &b, err);
    if (status) return status;
    us_pair_values v;
    status = us_sim_get_pair(live->sim, a, b, &v);
    bool has_static = false, has_kinetic = false;
    for (int32_t i = 0; i < c->n_value; i++) {
        double *field = usi_pair_field(&v, c->value[i].field);
        has_static |= field == &v.static_friction;
        has_kinetic |= field == &v.kinetic_friction;
        *field = c->value[i].value;
    }
    if (v.kinetic_friction > v.static_friction) {
        if (has_static && has_kinetic)
            return us_error_set(err, US_ERR_VALUE, NULL, "write a kinetic friction of at most the static one",
                                "kinetic-friction: %g is above the static friction %g", v.kinetic_friction,
                                v.static_friction);
        if (has_static) {
            v.kinetic_friction = v.static_friction;
            snprintf(reply, cap, "kinetic-friction goes down with it");
        } else {
            v.static_friction = v.kinetic_friction;
            snprintf(reply, cap, "static-friction goes up with it");
        }
    }
    if (c->model && !status) status = set_pair_model(live->sim, a, b, c->model, err);
    if (status) return status;
    us_soil soil;
    bool is_soil =
        us_sim_get_soil(live->sim, a, &soil) == US_OK || us_sim_get_soil(live->sim, b, &soil) == US_OK;
    const char *acts = us_sim_get_pair_model(live->sim, a, b);
    if (is_soil && !reply[0] && acts && strcmp(acts, "soil") == 0)
        snprintf(reply, cap,
                 "where it gives way it is soil, whose own numbers hold: soil MATERIAL KEY=VALUE");
    if (!status) status = us_sim_set_pair(live->sim, a, b, &v);
    return status ? us_error_set(err, status, NULL, "write numbers as docs/world-commands.md has them",
                                 "the pair cannot be set: %s", us_status_text(status))
                  : US_OK;
}

// The joint with one coordinate that `joint` and `drive` name.
static us_status find_joint(const us_spec *spec, const char *name, int32_t *out_joint, us_error *err) {
    *out_joint = us_spec_find_joint(spec, name);
    if (*out_joint < 0) {
        usi_guess guess = usi_guess_start(name);
        char remedy[384];
        for (int32_t i = 0; i < spec->n_joint; i++) {
            if (us_joint_type_n_q(spec->joint[i].type) == 1 && !spec->joint[i].is_broken)
                usi_guess_offer(&guess, spec->joint[i].name);
        }
        snprintf(remedy, sizeof remedy,
                 guess.best ? "did you mean \"%.200s\"?"
                            : "write OBJECT/JOINT; \"understudy info\" lists the joints",
                 guess.best);
        return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no joint \"%.100s\"", name);
    }
    const us_joint_def *j = &spec->joint[*out_joint];
    if (j->is_broken)
        return us_error_set(err, US_ERR_ARG, NULL, "move what came off: move OBJECT/LINK X Y Z [R P Y]",
                            "\"%.100s\" is broken", name);
    if (us_joint_type_n_q(j->type) != 1)
        return us_error_set(err, US_ERR_ARG, NULL,
                            j->type == US_JOINT_FLOATING ? "write move NAME X Y Z [R P Y] for the object"
                                                         : "name a joint with one coordinate",
                            "\"%.100s\" is a %s joint with %d coordinates", name, us_joint_type_name(j->type),
                            (int)us_joint_type_n_q(j->type));
    return US_OK;
}

static us_status check_limits(const us_joint_def *j, double position, us_error *err) {
    if (!j->has_limits || (position >= j->lower && position <= j->upper)) return US_OK;
    char remedy[120];
    snprintf(remedy, sizeof remedy, "write a position from %g to %g", j->lower, j->upper);
    return us_error_set(err, US_ERR_VALUE, NULL, remedy, "\"%.100s\": %g is beyond the joint's limits",
                        j->name, position);
}

static us_status set_joint(usi_live *live, const usi_command *c, us_error *err) {
    const us_spec *spec = live->revision->spec;
    int32_t joint = -1;
    us_status status = find_joint(spec, c->name, &joint, err);
    if (!status) status = check_limits(&spec->joint[joint], c->number[0], err);
    if (status) return status;
    status =
        us_sim_set_joint(live->sim, (us_joint){joint}, &c->number[0], c->n_number > 1 ? &c->number[1] : NULL);
    return status ? us_error_set(err, status, NULL, "name another joint", "\"%.100s\" cannot be set: %s",
                                 c->name, us_status_text(status))
                  : US_OK;
}

// ---------------------------------------------------------------- drives

static const us_drive_def *find_drive(const us_spec *spec, int32_t joint) {
    for (int32_t i = 0; i < spec->n_drive; i++) {
        if (spec->drive[i].joint == joint) return &spec->drive[i];
    }
    return NULL;
}

// A robot's firmware commands its drives at every tick: the target goes to it as a command of its own, which
// the recording has too. In a replay it comes from there.
static us_status post_to_robot(const usi_live *live, us_proxy *proxy, int32_t robot, const char *joint,
                               bool is_position, double target, us_error *err) {
    if (live->is_replay) return US_OK;
    us_msg_motor_profile motor = {.name = usi_text(joint), .mode = is_position ? 2 : 1, .value = target};
    us_msg_motor_group_command m = {.header.frame_id = usi_text("")};
    m.motors._buffer = &motor;
    m.motors._length = m.motors._maximum = 1;
    uint8_t bytes[1024];
    size_t length = 0;
    const us_message_type *type = NULL;
    const char *topic = NULL;
    us_status status = us_message_encode(usi_type_motor_group_command, &m, bytes, sizeof bytes, &length);
    for (int32_t i = 0; (topic = us_proxy_command_topic(proxy, robot, i, &type)); i++) {
        if (type == usi_type_motor_group_command) break;
    }
    if (!status) status = topic ? us_proxy_post(proxy, topic, type, "world", bytes, length) : US_ERR_NAME;
    return status ? us_error_set(err, status, NULL, "try again", "\"%.100s\" cannot be driven now: %s", joint,
                                 us_status_text(status))
                  : US_OK;
}

// The target of a drive with a position gain is a position, that of one without a velocity.
static us_status set_drive(usi_live *live, const usi_command *c, us_error *err) {
    const us_spec *spec = live->revision->spec;
    int32_t joint = -1;
    us_status status = find_joint(spec, c->name, &joint, err);
    if (status) return status;
    const us_joint_def *j = &spec->joint[joint];
    const us_drive_def *drive = find_drive(spec, joint);
    if (!drive || (drive->kp == 0 && drive->kd == 0))
        return us_error_set(err, US_ERR_ARG, NULL, "set the joint itself: joint NAME Q [V]",
                            drive ? "the drive of \"%.100s\" has no gains" : "\"%.100s\" has no drive",
                            c->name);
    bool is_position = drive->kp > 0;
    double target = is_position ? c->number[0] : c->number[c->n_number - 1];
    if (is_position) status = check_limits(j, target, err);
    if (status) return status;
    const char *group = j->group >= 0 ? spec->group[j->group].name : "";
    us_proxy *proxy = usi_live_find_proxy(live, group);
    int32_t robot = us_proxy_find_robot(proxy, group);
    if (robot >= 0) {
        if (is_position && c->n_number > 1)
            return us_error_set(err, US_ERR_ARG, NULL, "leave out the velocity",
                                "\"%.100s\" belongs to a robot, which takes a position alone", c->name);
        return post_to_robot(live, proxy, robot, j->name + (group[0] ? strlen(group) + 1 : 0), is_position,
                             target, err);
    }
    double velocity = is_position ? (c->n_number > 1 ? c->number[1] : 0) : target;
    status = us_sim_set_drive(live->sim, (us_drive){(int32_t)(drive - spec->drive)}, is_position ? target : 0,
                              velocity);
    return status ? us_error_set(err, status, NULL, "name another joint", "\"%.100s\" cannot be driven: %s",
                                 c->name, us_status_text(status))
                  : US_OK;
}

// A motor has one fault at a time.
static us_status set_motor(usi_live *live, const usi_command *c, int32_t joint, int32_t drive, char *reply,
                           size_t cap, us_error *err) {
    double share = c->fault == USI_FAULT_DEAD ? 0 : c->fault == USI_FAULT_WEAK ? c->number[0] : 1;
    double blockage = usi_fault_blockage(live->revision->spec, c, drive);
    us_status status = usi_proxy_set_strength(usi_live_find_proxy(live, c->name), live->sim, c->name,
                                              c->other, share, NULL, err);
    // What is broken has no friction.
    if (!status && !live->revision->spec->joint[joint].is_broken)
        status = us_sim_set_blockage(live->sim, (us_joint){joint}, blockage);
    if (status) return status;
    const char *name = live->revision->spec->joint[joint].name;
    switch (c->fault) {
    case USI_FAULT_DEAD:
        snprintf(reply, cap, "%s: dead", name);
        break;
    case USI_FAULT_WEAK:
        snprintf(reply, cap, "%s: %.4g of its strength", name, share);
        break;
    case USI_FAULT_BLOCKED:
        snprintf(reply, cap, "%s: blocked by %.4g", name, blockage);
        break;
    default:
        snprintf(reply, cap, "%s: ok", name);
        break;
    }
    return US_OK;
}

static us_status set_fault(usi_live *live, const usi_command *c, char *reply, size_t cap, us_error *err) {
    int32_t group = -1, joint = -1, drive = -1;
    us_status status = usi_fault_robot(live->revision->spec, c, &group, &joint, &drive, err);
    if (status) return status;
    if (c->part == USI_COMPONENT_MOTOR) return set_motor(live, c, joint, drive, reply, cap, err);
    usi_fault_words words = {.part = c->part,
                             .fault = c->fault,
                             .name = c->other,
                             .reading = c->reading ? c->reading : "",
                             .n_number = c->n_number};
    memcpy(words.number, c->number, sizeof words.number);
    return usi_proxy_set_fault(usi_live_find_proxy(live, c->name), live->sim, c->name, &words, reply, cap,
                               err);
}

// What is broken stays so: the parts lie somewhere, and nobody puts them together.
static us_status break_joint(usi_live *live, const usi_command *c, const char *text, char *reply, size_t cap,
                             us_error *err) {
    int32_t joint = -1;
    us_status status = usi_break_find(live->revision->spec, c, &joint, err);
    if (status) return status;
    bool is_broken = live->revision->spec->joint[joint].is_broken;
    if (is_broken && c->fault == USI_FAULT_NONE)
        return us_error_set(err, US_ERR_ARG, NULL, "go back to when it was whole: reset, or restore NAME",
                            "\"%.100s\" is broken, and what is broken is not mended",
                            live->revision->spec->joint[joint].name);
    if (!is_broken && c->fault == USI_FAULT_BROKEN) status = edit(live, c, text, err);
    if (!status)
        snprintf(reply, cap, "%s: %s", live->revision->spec->joint[joint].name,
                 c->fault == USI_FAULT_BROKEN ? "broken" : "ok");
    return status;
}

static bool next_script(const usi_live *live, char *out, size_t cap) {
    bool has = usi_proxy_next_script(live->proxy, live->sim, out, cap);
    for (int32_t i = 0; i < live->n_added && !has; i++)
        has = usi_proxy_next_script(live->added[i], live->sim, out, cap);
    return has;
}

us_status usi_live_run_scripts(usi_live *live, usi_command *command, usi_script_notify *notify, void *context,
                               us_error *err) {
    char text[USI_SCRIPT_TEXT], reply[USI_WORLD_REPLY];
    us_status status = US_OK;
    while (!status && next_script(live, text, sizeof text)) {
        status = usi_command_parse(text, command, err);
        if (!status) status = usi_live_apply(live, command, text, reply, sizeof reply, err);
        if (!status && notify) notify(context, text, reply);
    }
    return status;
}

static us_status set_soil_number(us_soil *soil, const char *name, double value, us_error *err) {
    double low = 0, high = 0, *number = us_soil_parameter(soil, name, &low, &high);
    if (!number) return us_error_set(err, US_ERR_NAME, NULL, NULL, "a soil has no number \"%s\"", name);
    *number = value;
    if (value >= low && value <= high) return US_OK;
    char remedy[160];
    snprintf(remedy, sizeof remedy, "write a number from %g to %g, in SI units", low, high);
    return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: %g is out of range", name, value);
}

static us_status set_soil(usi_live *live, const usi_command *c, char *reply, size_t cap, us_error *err) {
    us_material material;
    us_soil soil;
    us_status status = find_material(live->revision->model, c->name, &material, err);
    if (status) return status;
    if (us_sim_get_soil(live->sim, material, &soil))
        return us_error_set(err, US_ERR_ARG, NULL, "name a material that has a <soil>",
                            "the material \"%.60s\" is no soil", c->name);
    for (int32_t i = 0; i < c->n_value && !status; i++)
        status = set_soil_number(&soil, usi_soil_key_name(c->value[i].field), c->value[i].value, err);
    if (status) return status;
    status = us_sim_set_soil(live->sim, material, &soil, err);
    if (status) return status;
    size_t used = (size_t)snprintf(reply, cap, "%s: %d number%s set", c->name, (int)c->n_value,
                                   c->n_value == 1 ? "" : "s");
    const us_spec *spec = live->revision->spec;
    for (int32_t i = 0; i < spec->n_soil_map; i++) {
        const us_soil_map_def *map = &spec->soil_map[i];
        for (int32_t k = 0; k < c->n_value && (!map->material || strcmp(map->material, c->name) == 0); k++) {
            if (strcmp(usi_soil_key_name(c->value[k].field), map->parameter) == 0 && used < cap)
                used += (size_t)snprintf(
                    reply + used, cap - used,
                    "; a map has the %s of \"%.40s\": the number holds where the map has none",
                    map->parameter, map->ground);
        }
    }
    return US_OK;
}

static us_status set_region(usi_live *live, const usi_command *c, char *reply, size_t cap, us_error *err) {
    const us_spec *spec = live->revision->spec;
    const char *names[64];
    int32_t region = -1, n = 0;
    for (int32_t i = 0; i < spec->n_region; i++) {
        if (strcmp(spec->region[i].name, c->name) == 0) region = i;
        if (n < 64) names[n++] = spec->region[i].name;
    }
    if (region < 0 && n == 0)
        return us_error_set(err, US_ERR_NAME, NULL, "write a <region> into its <world>",
                            "the scene has no region \"%.60s\", nor any other", c->name);
    if (region < 0) return usi_fail_unknown("region", c->name, names, n, err);
    us_material material;
    us_status status = find_material(live->revision->model, c->other, &material, err);
    if (status) return status;
    us_sim_set_region(live->sim, region, material);
    snprintf(reply, cap, "%s: %s", c->name, c->other);
    return US_OK;
}

// ---------------------------------------------------------------- sensors

static us_status find_sensor(const us_model *m, const char *name, us_sensor *out, us_error *err) {
    char robot[USI_NAME_MAX + 1], known[32][2 * USI_NAME_MAX + 2];
    const char *list[32];
    int32_t n = 0;
    snprintf(robot, sizeof robot, "%.*s", (int)strcspn(name, "/"), name);
    *out = us_model_find_sensor(m, robot, strchr(name, '/') + 1);
    if (out->i >= 0) return US_OK;
    for (int32_t i = 0; i < us_model_n_sensor(m) && n < 32; i++) {
        const us_sensor_info k = us_model_get_sensor(m, (us_sensor){i});
        snprintf(known[n], sizeof known[n], "%.*s/%.*s", USI_NAME_MAX, k.robot, USI_NAME_MAX, k.name);
        list[n] = known[n];
        n++;
    }
    return usi_fail_unknown("sensor", name, list, n, err);
}

// The number that a text is for a parameter; what the sensor has no parameter for is its own to say.
static us_status read_setting(const us_sensor_kind *k, const usi_word_pair *w, double *out, us_error *err) {
    const int32_t at = usi_find_parameter(k, w->key);
    const char *unit = strcmp(w->key, "rate") == 0 ? "Hz" : strcmp(w->key, "latency") == 0 ? "s" : NULL;
    us_error why = {0};
    *out = 0;
    if (at >= 0) {
        if (usi_is_reference(&k->parameters[at])) return US_OK;
        return usi_read_parameter(&k->parameters[at], w->value, out, err);
    }
    us_status status = unit ? usi_measure_in(w->value, unit, out, &why) : US_OK;
    if (status) return us_error_set(err, status, NULL, why.remedy, "%.60s: %.300s", w->key, why.message);
    return US_OK;
}

// All of them or none.
static us_status set_sensor(usi_live *live, const usi_command *c, char *reply, size_t cap, us_error *err) {
    const us_model *m = live->revision->model;
    us_sensor sensor = {-1};
    double value[USI_SENSOR_SETTINGS], before[USI_SENSOR_SETTINGS];
    us_status status = find_sensor(m, c->name, &sensor, err);
    const us_sensor_kind *k = us_model_get_sensor(m, sensor).kind;
    for (int32_t i = 0; i < c->n_setting && !status; i++)
        status = read_setting(k, &c->setting[i], &value[i], err);
    int32_t n = 0;
    while (n < c->n_setting && !status) {
        before[n] = us_sim_get_sensor_parameter(live->sim, sensor, c->setting[n].key);
        status = us_sim_set_sensor_parameter(live->sim, sensor, c->setting[n].key, value[n], err);
        n += !status;
    }
    while (status && n-- > 0)
        us_sim_set_sensor_parameter(live->sim, sensor, c->setting[n].key, before[n], NULL);
    size_t used = status ? 0 : (size_t)snprintf(reply, cap, "%s:", c->name);
    for (int32_t i = 0; i < c->n_setting && !status && used < cap; i++)
        used += (size_t)snprintf(reply + used, cap - used, " %s=%.9g", c->setting[i].key, value[i]);
    return status;
}

// Everything is where it starts, and robots' computers start there anew. Time goes on.
static us_status go_home(usi_live *live, us_error *err) {
    us_status status = usi_sim_go_home(live->sim);
    if (status)
        return us_error_set(err, status, NULL, "reset the world: reset",
                            "the start state cannot be set again: %s", us_status_text(status));
    usi_proxy_forget(live->proxy, live->sim);
    for (int32_t i = 0; i < live->n_added; i++)
        usi_proxy_forget(live->added[i], live->sim);
    return US_OK;
}

us_status usi_live_apply(usi_live *live, const usi_command *c, const char *text, char *reply, size_t cap,
                         us_error *err) {
    if (cap > 0) reply[0] = 0;
    if (c->verb == USI_VERB_SOIL) return set_soil(live, c, reply, cap, err);
    if (c->verb == USI_VERB_SENSOR) return set_sensor(live, c, reply, cap, err);
    if (c->verb == USI_VERB_REGION) return set_region(live, c, reply, cap, err);
    if (c->verb == USI_VERB_PAIR) return set_pair(live, c, reply, cap, err);
    if (c->verb == USI_VERB_VELOCITY) return set_velocity(live, c, err);
    if (c->verb == USI_VERB_JOINT) return set_joint(live, c, err);
    if (c->verb == USI_VERB_DRIVE) return set_drive(live, c, err);
    if (c->verb == USI_VERB_FAULT && c->part == USI_COMPONENT_JOINT)
        return break_joint(live, c, text, reply, cap, err);
    if (c->verb == USI_VERB_FAULT) return set_fault(live, c, reply, cap, err);
    if (c->verb == USI_VERB_ADOPT)
        return usi_proxy_adopt(usi_live_find_proxy(live, c->name), live->sim, c->name, &c->adopt, reply, cap,
                               err);
    if (c->verb == USI_VERB_HOME) return go_home(live, err);
    usi_target target = {-1, -1, -1, false};
    us_status status = c->verb == USI_VERB_ADD || c->verb == USI_VERB_CLEAR
                           ? US_OK
                           : usi_target_find(live->revision->spec, c->name, &target, err);
    if (status) return status;
    if (!usi_is_edit(c, &target)) return move_floating(live, c, &target, err);
    status = edit(live, c, text, err);
    if (!status && c->verb == USI_VERB_ADD && c->is_robot) snprintf(reply, cap, "%s: a robot", c->name);
    if (!status && c->verb == USI_VERB_ADD && !c->is_robot) {
        char name[USI_NAME_MAX + 16];
        snprintf(name, sizeof name, "%s/body", c->name);
        us_inertia inertia =
            us_model_get_inertia(live->revision->model, us_model_find_body(live->revision->model, name));
        snprintf(reply, cap, "%s: %.4g kg", c->name, inertia.mass);
    }
    return status;
}
