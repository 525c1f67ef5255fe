// One tick of a robot: readings go to the firmware, its outputs go to the drives.
#include "proxy/proxy__robot.h"

// ---------------------------------------------------------------- power

// Robots without power give their drives no torque, and their batteries nothing. What is behind a break gets
// no current.
static void power_drives(const usi_robot *r, const usi_robot_state *s, const usi_firmware_output *output,
                         us_plugin_view *view) {
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        bool is_cut = r->model->joint[r->model->firmware.drive[k].joint].is_lost;
        view->drive_limit_scale[r->model->drive[k].index] = output[k].is_enabled && !is_cut ? 1 : 0;
    }
    if (r->model->battery.i >= 0) view->battery_on[r->model->battery.i] = usi_has_power(s) ? 1 : 0;
}

double usi_robot_charge(const usi_robot *r, const us_sim *sim) {
    return us_sim_get_battery(sim, r->model->battery).energy / r->model->network->battery_capacity;
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
