// States of a robot for the clients of its ASCII link, by its own sensors.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/rover_link.h"
#include "proxy/rover_property.h"

// ---------------------------------------------------------------- readings

int32_t usi_link_imu(const usi_robot *r, int32_t i) {
    const us_model *m = r->proxy->model;
    for (int32_t k = 0; k < r->model->n_sensor; k++) {
        const int32_t sensor = r->model->first_sensor + k;
        if (usi_sensor_is(&m->sensor[sensor], "imu") && i-- == 0) return sensor;
    }
    return -1;
}

void usi_link_read_imu(const us_sim *sim, int32_t sensor, double out[8]) {
    // Orientation w x y z, angular velocity, specific force.
    const double *x = usi_sim_reading(sim, sensor);
    const double sine = fmax(-1, fmin(1, 2 * (x[0] * x[2] - x[3] * x[1])));
    out[0] = atan2(2 * (x[0] * x[1] + x[2] * x[3]), 1 - 2 * (x[1] * x[1] + x[2] * x[2]));
    out[1] = asin(sine);
    memcpy(out + 2, x + 4, 6 * sizeof *out);
}

static int32_t own_drive(const usi_robot *r, int32_t drive) {
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        if (r->model->drive[k].index == drive) return k;
    }
    return -1;
}

static double read_joint(const usi_robot *r, const us_sim *sim, const us_line_def *l) {
    const int32_t k = own_drive(r, l->drive);
    if (k < 0) return 0;
    const int32_t joint = r->model->firmware.drive[k].joint;
    if (l->value == US_LINE_JOINT_POSITION) return usi_read_q(r, sim, joint);
    if (l->value == US_LINE_JOINT_VELOCITY) return usi_read_v(r, sim, joint);
    return us_sim_view_torque(sim)[l->drive];
}

double usi_link_read_line(const usi_robot *r, const us_sim *sim, const usi_firmware_state *s, int32_t line) {
    const us_line_def *l = &r->model->network->lines[line];
    if (l->value == US_LINE_NOTHING) return s->line[line];
    double reading = 0;
    if (l->value <= US_LINE_JOINT_TORQUE) {
        reading = read_joint(r, sim, l);
    } else {
        const int32_t part = (int32_t)l->value - (int32_t)US_LINE_BATTERY_CHARGE;
        reading = usi_property_get(r, sim, s, (int32_t)USI_PROPERTY_BATTERY_CHARGE + part);
    }
    if (l->kind == US_LINE_DIGITAL_IN) return reading > l->threshold;
    return l->scale * reading + l->offset;
}

// ---------------------------------------------------------------- states

static void read_rover(const usi_firmware_state *s, double out[10]) {
    double pose[3], here[3];
    usi_firmware_pose(s, pose);
    usi_map_to_site(s, pose, here);
    const double values[10] = {s->mobility.sequence,
                               s->mobility.state,
                               s->mobility.error,
                               here[0],
                               here[1],
                               remainder(here[2], 6.28318530717958647693),
                               s->odom_v[0],
                               s->odom_v[1],
                               s->odom_v[2],
                               usi_firmware_left(s)};
    memcpy(out, values, sizeof values);
}

static void read_function(const usi_firmware_state *s, double out[4]) {
    out[0] = s->function;
    out[1] = s->function_run.sequence;
    out[2] = s->function_run.state;
    out[3] = s->function_run.error;
}

static int32_t count_imus(const usi_robot *r) {
    int32_t n = 0;
    while (n < USI_LINK_IMUS && usi_link_imu(r, n) >= 0)
        n++;
    return n;
}

int32_t usi_link_list(const usi_robot *r, usi_motor_report *out) {
    const us_network_def *d = r->model->network;
    const int32_t n_imu = count_imus(r);
    int32_t n = USI_LINK_LINES;
    out[USI_LINK_ROVER] = (usi_motor_report){.kind = USI_REPORT_ROVER};
    out[USI_LINK_FUNCTION] = (usi_motor_report){.kind = USI_REPORT_FUNCTION};
    for (int32_t i = 0; i < d->n_line; i++) {
        out[n] = (usi_motor_report){.kind = USI_REPORT_LINE};
        memcpy(out[n++].name, d->lines[i].name, sizeof d->lines[i].name);
    }
    for (int32_t i = 0; i < n_imu; i++) {
        out[n] = (usi_motor_report){.kind = USI_REPORT_IMU};
        snprintf(out[n].name, sizeof out[n].name, "IMU%d", (int)(i % 10));
        n++;
    }
    return n;
}

static void publish_motors(const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    const usi_drive_state *drives = usi_firmware_view_drives(&r->model->firmware, usi_view_firmware(r, s));
    for (int32_t k = 0; k < r->model->network->n_motor; k++) {
        const int32_t d = own_drive(r, r->model->network->motors[k].drive);
        if (d < 0) continue;
        const int32_t joint = r->model->firmware.drive[d].joint;
        const double v = usi_read_v(r, sim, joint);
        usi_motor_server_status(r->motors, k, (v - drives[d].v_before) / r->proxy->step, v,
                                usi_read_q(r, sim, joint));
    }
}

void usi_link_publish(const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    const usi_firmware_state *f = usi_view_firmware(r, s);
    const int32_t n_line = r->model->network->n_line, n_imu = count_imus(r);
    double values[USI_MOTOR_VALUES];
    publish_motors(r, sim, s);
    read_rover(f, values);
    usi_motor_server_report(r->motors, USI_LINK_ROVER, values);
    // Until one has run there is nothing to say.
    read_function(f, values);
    if (f->function_run.sequence > 0) usi_motor_server_report(r->motors, USI_LINK_FUNCTION, values);
    for (int32_t i = 0; i < n_line; i++) {
        values[0] = usi_link_read_line(r, sim, f, i);
        usi_motor_server_report(r->motors, USI_LINK_LINES + i, values);
    }
    for (int32_t i = 0; i < n_imu; i++) {
        usi_link_read_imu(sim, usi_link_imu(r, i), values);
        usi_motor_server_report(r->motors, USI_LINK_LINES + n_line + i, values);
    }
}

// ---------------------------------------------------------------- answers

// What a command asks for, as a message; 0: nothing.
static size_t tell(const usi_robot *r, const us_sim *sim, const usi_firmware_state *s,
                   const usi_motor_command *m, char *buf, size_t cap) {
    const us_network_def *d = r->model->network;
    double values[USI_MOTOR_VALUES];
    usi_report_kind kind = USI_REPORT_ROVER;
    if (m->kind == USI_MOTOR_GET_PROPERTY)
        return usi_report_format_value(m->word, usi_property_get(r, sim, s, usi_property_find(m->word)), buf,
                                       cap);
    if (m->kind == USI_MOTOR_GET_ROVER) {
        read_rover(s, values);
    } else if (m->kind == USI_MOTOR_GET_LINE) {
        int32_t i = 0;
        while (i < d->n_line && strcmp(d->lines[i].name, m->name) != 0)
            i++;
        if (i == d->n_line) return 0;
        kind = USI_REPORT_LINE;
        values[0] = usi_link_read_line(r, sim, s, i);
    } else if (m->kind == USI_MOTOR_GET_IMU) {
        const int32_t sensor = usi_link_imu(r, m->name[3] - '0');
        if (sensor < 0) return 0;
        kind = USI_REPORT_IMU;
        usi_link_read_imu(sim, sensor, values);
    } else {
        return 0;
    }
    usi_motor_report report;
    return usi_report_round(kind, m->name, values, &report) ? usi_report_format(&report, buf, cap) : 0;
}

void usi_link_answer(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, const usi_mail *mail,
                     usi_motor_reason reason) {
    int client = 0;
    if (mail->topic != USI_COMMAND_MOTOR_TEXT || !r->motors || sscanf(mail->source, "motor:%d", &client) != 1)
        return;
    // The text lies in the message: after the header a String is a length and its characters.
    if (mail->length < 8) return;
    const char *text = (const char *)usi_mail_bytes(mail) + 8;
    const size_t length = strnlen(text, mail->length - 8);
    if (reason != USI_MOTOR_GOOD) {
        usi_motor_server_refuse(r->motors, client, text, length, reason);
        return;
    }
    usi_motor_command m;
    char message[USI_MOTOR_REPLY];
    size_t n = 0;
    if (usi_motor_parse(text, length, &m) == USI_MOTOR_GOOD)
        n = tell(r, sim, usi_view_firmware(r, s), &m, message, sizeof message);
    usi_motor_server_tell(r->motors, client, text, length, message, n);
}
