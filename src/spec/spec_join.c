// Two specs made one: what belongs to the groups of one goes behind what the other has.
//
// Elements refer to each other by index: each index moves by as many as there were before.
#include <string.h>

#include "spec/sensor_kind.h"
#include "spec/spawn.h"
#include "understudy/sensor.h"

typedef struct offsets {
    int32_t group, link, joint, drive;
} offsets;

static int32_t moved(int32_t i, int32_t by) { return i >= 0 ? i + by : i; }

// ---------------------------------------------------------------- materials

static bool has_material(const us_spec *s, const char *name) {
    if (strcmp(name, "default") == 0) return true;
    for (int32_t i = 0; i < s->n_material; i++) {
        if (strcmp(s->material[i].name, name) == 0) return true;
    }
    return false;
}

// Materials of one name are those of the world; pairs come along where one of the two is new.
static us_status join_materials(us_spec *to, const us_spec *from) {
    const int32_t n_before = to->n_material;
    us_status status = US_OK;
    for (int32_t i = 0; i < from->n_material && !status; i++) {
        if (!has_material(to, from->material[i].name))
            status = us_spec_add_material(to, &from->material[i], NULL);
    }
    for (int32_t i = 0; i < from->n_pair && !status; i++) {
        const us_pair_def *p = &from->pair[i];
        bool is_new = false;
        for (int32_t k = n_before; k < to->n_material; k++)
            is_new = is_new || strcmp(to->material[k].name, p->material_a) == 0 ||
                     strcmp(to->material[k].name, p->material_b) == 0;
        if (is_new) status = us_spec_add_pair(to, p, NULL);
    }
    return status;
}

// ---------------------------------------------------------------- bodies

static us_status join_bodies(us_spec *to, const us_spec *from, const offsets *by) {
    us_status status = US_OK;
    for (int32_t i = 0; i < from->n_group && !status; i++) {
        us_group_def d = from->group[i];
        d.is_added = true;
        status = us_spec_add_group(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_link && !status; i++) {
        us_link_def d = from->link[i];
        d.group = moved(d.group, by->group);
        status = us_spec_add_link(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_joint && !status; i++) {
        us_joint_def d = from->joint[i];
        d.group = moved(d.group, by->group);
        d.parent = moved(d.parent, by->link);
        d.child = moved(d.child, by->link);
        status = us_spec_add_joint(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_shape && !status; i++) {
        us_shape_def d = from->shape[i];
        if (d.link == US_WORLD) continue;
        d.link = moved(d.link, by->link);
        status = us_spec_add_shape(to, &d, NULL);
    }
    return status;
}

static us_status join_relations(us_spec *to, const us_spec *from, const offsets *by) {
    us_status status = US_OK;
    for (int32_t i = 0; i < from->n_coupling && !status; i++) {
        us_coupling_def d = from->coupling[i];
        d.group = moved(d.group, by->group);
        for (int32_t k = 0; k < d.n_term; k++)
            d.joint[k] = moved(d.joint[k], by->joint);
        status = us_spec_add_coupling(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_loop && !status; i++) {
        us_loop_def d = from->loop[i];
        d.group = moved(d.group, by->group);
        d.link_a = moved(d.link_a, by->link);
        d.link_b = moved(d.link_b, by->link);
        status = us_spec_add_loop(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_drive && !status; i++) {
        us_drive_def d = from->drive[i];
        d.joint = moved(d.joint, by->joint);
        status = us_spec_add_drive(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_extension && !status; i++) {
        us_extension_def d = from->extension[i];
        d.group = moved(d.group, by->group);
        status = us_spec_add_extension(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_exclude && !status; i++) {
        us_exclude_def d = from->exclude[i];
        d.link_a = moved(d.link_a, by->link);
        d.link_b = moved(d.link_b, by->link);
        status = us_spec_add_exclude(to, &d, NULL);
    }
    for (int32_t i = 0; i < from->n_warning && !status; i++)
        status = us_spec_add_warning(to, &from->warning[i]);
    return status;
}

// ---------------------------------------------------------------- the network

static void move_sensor(us_sensor_def *d, const offsets *by) {
    const us_sensor_kind *k = usi_sensor_kind_of(d);
    us_sensor_setting *settings = (us_sensor_setting *)d->settings;
    d->link = moved(d->link, by->link);
    for (int32_t i = 0; i < d->n_setting; i++) {
        const int32_t at = usi_find_parameter(k, settings[i].parameter), index = (int32_t)settings[i].value;
        if (at < 0 || !usi_is_reference(&k->parameters[at]) || index < 0) continue;
        const bool is_joint = k->parameters[at].type == US_PARAMETER_JOINT;
        settings[i].value = index + (is_joint ? by->joint : by->link);
    }
}

static void move_network(us_network_def *d, const offsets *by) {
    // A copy of this spec alone, which may be changed.
    us_wheel_def *wheels = (us_wheel_def *)d->wheels;
    us_leg_def *legs = (us_leg_def *)d->legs;
    us_motor_def *motors = (us_motor_def *)d->motors;
    us_line_def *lines = (us_line_def *)d->lines;
    us_sensor_def *sensors = (us_sensor_def *)d->sensors;
    d->group = moved(d->group, by->group);
    for (int32_t i = 0; i < d->n_wheel; i++) {
        wheels[i].drive = moved(wheels[i].drive, by->drive);
        wheels[i].steer = moved(wheels[i].steer, by->drive);
    }
    for (int32_t i = 0; i < d->n_leg; i++) {
        legs[i].coxa = moved(legs[i].coxa, by->drive);
        legs[i].femur = moved(legs[i].femur, by->drive);
        legs[i].tibia = moved(legs[i].tibia, by->drive);
    }
    for (int32_t i = 0; i < d->n_motor; i++)
        motors[i].drive = moved(motors[i].drive, by->drive);
    for (int32_t i = 0; i < d->n_line; i++)
        lines[i].drive = moved(lines[i].drive, by->drive);
    for (int32_t i = 0; i < d->n_sensor; i++)
        move_sensor(&sensors[i], by);
}

// A motor port that another robot has: the next one that none has.
static void find_port(const us_spec *to, us_network_def *d) {
    for (int32_t i = 0; d->motor_port > 0 && i < to->n_network; i++) {
        if (to->network[i].motor_port != d->motor_port) continue;
        d->motor_port = d->motor_port < 65535 ? d->motor_port + 1 : 1024;
        i = -1;
    }
}

static us_status join_networks(us_spec *to, const us_spec *from, const offsets *by, us_error *err) {
    for (int32_t i = 0; i < from->n_network; i++) {
        us_network_def *d = usi_network_copy(&to->texts, &from->network[i]);
        if (!d) return US_ERR_MEMORY;
        move_network(d, by);
        find_port(to, d);
        us_error why = {0};
        int32_t topic = -1;
        const us_status status = usi_network_set(to, d, &topic, &why);
        if (status == US_ERR_MEMORY) return status;
        if (status && why.message[0])
            return us_error_set(err, status, NULL, why.remedy, "its topics: %s", why.message);
        if (status)
            return us_error_set(err, status, NULL,
                                "give it another namespace, and topics and motors of its own",
                                "its network interface does not fit beside those of the other robots: %s",
                                us_status_text(status));
    }
    return US_OK;
}

// ---------------------------------------------------------------- all

us_status usi_spec_join(us_spec *to, const us_spec *from, us_error *err) {
    const offsets by = {to->n_group, to->n_link, to->n_joint, to->n_drive};
    us_status status = join_materials(to, from);
    if (!status) status = join_bodies(to, from, &by);
    if (!status) status = join_relations(to, from, &by);
    if (status)
        return us_error_set(err, status, NULL, "free memory", "the robot cannot be joined to the world: %s",
                            us_status_text(status));
    status = join_networks(to, from, &by, err);
    return status == US_ERR_MEMORY ? us_error_set(err, status, NULL, "free memory", "no memory for the robot")
                                   : status;
}
