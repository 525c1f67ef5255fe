// One tick of a robot: what its sensors say goes to the firmware, what the firmware says goes to the drives.
#include <math.h>

#include "proxy/robot.h"

// ---------------------------------------------------------------- power

// Motors take the power they give, and give nothing back.
static double power_of(const usi_robot *r, const us_sim *sim) {
    const double *v = us_sim_view_v(sim), *torque = us_sim_view_torque(sim);
    double power = r->model->network->battery_idle;
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        const usi_robot_joint *j = &r->model->joint[r->model->firmware.drive[k].joint];
        if (!j->is_lost) power += fmax(0, torque[r->model->drive[k].index] * v[j->v]);
    }
    return power;
}

static void drain_battery(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    const us_network_def *n = r->model->network;
    if (n->battery_capacity > 0 && usi_has_power(s))
        s->energy = fmin(s->energy + power_of(r, sim) * r->proxy->step, n->battery_capacity);
}

// What each drive has left of its strength. Nothing moves by an empty battery, and what is behind a break
// gets no current.
static void power_drives(const usi_robot *r, const usi_robot_state *s, const usi_firmware_output *output,
                         us_plugin_view *view) {
    bool is_empty =
        r->model->network->battery_capacity > 0 && s->energy >= r->model->network->battery_capacity;
    const usi_drive_fault *d = usi_view_drives(r, s);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        bool is_on =
            output[k].is_enabled && !is_empty && !r->model->joint[r->model->firmware.drive[k].joint].is_lost;
        view->drive_limit_scale[r->model->drive[k].index] = is_on ? 1 - d[k].lost : 0;
    }
}

// ---------------------------------------------------------------- the firmware

usi_firmware_readings usi_robot_read(const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    double *q = r->proxy->readings, *v = q + r->proxy->n_reading;
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        q[i] = usi_read_q(r, sim, i);
        v[i] = usi_read_v(r, sim, i);
    }
    return (usi_firmware_readings){us_sim_get_tick(sim), q, v, usi_has_power(s), usi_is_up(s)};
}

void usi_robot_forget(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    usi_firmware_readings in = usi_robot_read(r, sim, s);
    s->stamp_offset = 0;
    usi_firmware_forget(&r->model->firmware, usi_firmware_of(r, s), &in);
}

void usi_robot_control(const usi_robot *r, const us_sim *sim, usi_robot_state *s, us_plugin_view *view) {
    const usi_firmware_readings in = usi_robot_read(r, sim, s);
    usi_firmware_output *output = r->proxy->output;
    drain_battery(r, sim, s);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        int32_t i = r->model->drive[k].index;
        output[k] = (usi_firmware_output){view->drive_position[i], view->drive_velocity[i],
                                          view->drive_torque[i], true};
    }
    usi_firmware_step(&r->model->firmware, usi_firmware_of(r, s), &in, output);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        int32_t i = r->model->drive[k].index;
        view->drive_position[i] = output[k].position;
        view->drive_velocity[i] = output[k].velocity;
        view->drive_torque[i] = output[k].torque;
    }
    power_drives(r, s, output, view);
}
