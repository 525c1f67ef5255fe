// Samples of a robot's own interface that command it: which command they are, and its values.
#include <math.h>
#include <string.h>

#include "proxy/proxy__robot.h"

static bool holds(const usi_take *t, const usi_wire_value *v) {
    if (!v->is_there) return false;
    if (v->text) return t->text && strlen(t->text) == v->length && memcmp(t->text, v->text, v->length) == 0;
    return v->number == t->number;
}

// v: NULL of a constant.
static double value_of(const usi_take *t, const usi_wire_value *v) {
    if (t->is_constant) return t->number;
    return v && v->is_there ? (v->number - t->offset) / t->scale : NAN;
}

// Whether a sample is for this robot: several may listen to one topic.
static bool is_meant(const usi_inlet *inlet, const usi_wire_value *v) {
    for (int32_t i = 0; i < inlet->n_member; i++) {
        const usi_take *t = &inlet->take[i];
        if (t->use == USI_TAKE_WHEN && t->command < 0 && !holds(t, &v[i])) return false;
    }
    return true;
}

// The first command all of whose conditions hold; -1: none.
static int32_t find_command(const usi_inlet *inlet, const usi_wire_value *v) {
    for (int32_t c = 0; c < inlet->n_command; c++) {
        bool is_right = true;
        for (int32_t i = 0; i < inlet->n_member && is_right; i++)
            is_right = inlet->take[i].use != USI_TAKE_WHEN || inlet->take[i].command != c ||
                       holds(&inlet->take[i], &v[i]);
        if (is_right) return c;
    }
    return -1;
}

static usi_drive_mode mode_of(uint32_t has) {
    const uint32_t gains = 1u << USI_JOINT_KP | 1u << USI_JOINT_KD;
    if (has & gains) return USI_DRIVE_IMPEDANCE;
    return has & 1u << USI_JOINT_POSITION   ? USI_DRIVE_POSITION
           : has & 1u << USI_JOINT_VELOCITY ? USI_DRIVE_VELOCITY
                                            : USI_DRIVE_TORQUE;
}

// One command to each drive that the sample has values for.
static bool command_joints(const usi_robot *r, const usi_inlet *inlet, int32_t command,
                           const usi_wire_value *v, usi_firmware_request *request) {
    const int32_t n_drive = r->model->firmware.n_drive;
    usi_drive_command *commands = r->proxy->commands;
    double value[USI_JOINT_VALUES];
    int32_t n = 0;
    for (int32_t d = 0; d < n_drive; d++) {
        uint32_t has = 0;
        memset(value, 0, sizeof value);
        for (int32_t i = 0; i < inlet->n; i++) {
            const usi_take *t = &inlet->take[i];
            if (t->use != USI_TAKE_JOINT || t->command != command || t->drive != d) continue;
            // A shorter sequence commands fewer joints.
            if (!t->is_constant && !v[i].is_there) continue;
            value[t->index] = value_of(t, &v[i]);
            has |= 1u << t->index;
        }
        if (!has) continue;
        const usi_drive_mode mode = mode_of(has);
        const double goal = mode == USI_DRIVE_VELOCITY ? value[USI_JOINT_VELOCITY]
                            : mode == USI_DRIVE_TORQUE ? value[USI_JOINT_TORQUE]
                                                       : value[USI_JOINT_POSITION];
        commands[n++] = (usi_drive_command){.drive = d,
                                            .mode = mode,
                                            .value = goal,
                                            .impedance = {value[USI_JOINT_VELOCITY], value[USI_JOINT_TORQUE],
                                                          value[USI_JOINT_KP], value[USI_JOINT_KD]}};
    }
    if (n == 0) return usi_firmware_refuse(request, "the sample has no value for any joint");
    return usi_firmware_command_drives(request, commands, n);
}

static bool command_body(const usi_robot *r, usi_action action, const double *x,
                         usi_firmware_request *request) {
    const double body[3] = {x[0], x[1], x[2]}, point[1][2] = {{x[0], x[1]}};
    if (action == USI_ACTION_STOP) return usi_firmware_stop(request);
    if (!usi_can_move(r)) return usi_firmware_refuse(request, "this robot has no <locomotion>");
    switch (action) {
    case USI_ACTION_VELOCITY:
        return usi_firmware_drive_velocity(request, body);
    case USI_ACTION_GO:
        return usi_firmware_navigate(request, point, 1, 0, x[2], x[3]);
    case USI_ACTION_DRIVE:
        return usi_firmware_drive_arc(request, x[0], x[1], x[2]);
    default:
        return usi_firmware_rotate(request, x[0], x[1]);
    }
}

bool usi_interface_command(const usi_robot *r, const usi_mail *mail, bool may, usi_firmware_request *request,
                           usi_reply *out_reply) {
    const usi_inlet *inlet = &r->model->interface_.inlet[usi_inlet_of(mail->topic)];
    usi_wire_value *v = r->proxy->values;
    double x[USI_COMMAND_VALUES] = {0};
    if (!usi_members_read(inlet->type, usi_mail_bytes(mail), mail->length, inlet->member, inlet->n_member, v))
        return usi_firmware_refuse(request, "the sample is not of the type \"%.80s\"",
                                   us_message_name(inlet->type));
    out_reply->is_for_others = !is_meant(inlet, v);
    if (out_reply->is_for_others) return false;
    const int32_t command = find_command(inlet, v);
    if (command < 0) return usi_firmware_refuse(request, "no <command> is for this sample");
    const usi_action action = inlet->action[command];
    out_reply->goes_on = action == USI_ACTION_GO || action == USI_ACTION_DRIVE || action == USI_ACTION_TURN;
    // Stops are obeyed whoever sends them.
    if (!may && action != USI_ACTION_STOP && action != USI_ACTION_NONE) return false;
    if (action == USI_ACTION_NONE) return true;
    if (action == USI_ACTION_JOINTS) return command_joints(r, inlet, command, v, request);
    for (int32_t i = 0; i < inlet->n; i++) {
        const usi_take *t = &inlet->take[i];
        if (t->use == USI_TAKE_VALUE && t->command == command)
            x[t->index] = value_of(t, i < inlet->n_member ? &v[i] : NULL);
    }
    for (int i = 0; i < USI_COMMAND_VALUES; i++) {
        if (!isfinite(x[i]))
            return usi_firmware_refuse(request, "a value of the command is missing or not finite");
    }
    return command_body(r, action, x, request);
}
