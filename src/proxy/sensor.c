// What a robot's own sensors say. A fault sits here, and all that is behind the sensor sees it: the drive's
// own loop, odometry, telemetry.
#include <math.h>
#include <string.h>

#include "proxy/robot.h"

// ---------------------------------------------------------------- encoders

// One behind a break has lost its cable: the firmware goes on with the last reading, and sees nothing move.

double usi_read_q(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, int32_t joint) {
    const usi_encoder_state *e = &usi_view_encoders(r, s)[joint];
    return e->is_stuck || r->model->joint[joint].is_lost
               ? e->held
               : us_sim_view_q(sim)[r->model->joint[joint].q] + e->offset;
}

double usi_read_v(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, int32_t joint) {
    const usi_encoder_state *e = &usi_view_encoders(r, s)[joint];
    return e->is_stuck || r->model->joint[joint].is_lost
               ? 0
               : us_sim_view_v(sim)[r->model->joint[joint].v] + e->drift;
}

usi_firmware_readings usi_robot_read(const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    double *q = r->proxy->readings, *v = q + r->proxy->n_reading;
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        q[i] = usi_read_q(r, sim, s, i);
        v[i] = usi_read_v(r, sim, s, i);
    }
    return (usi_firmware_readings){us_sim_get_tick(sim), q, v, usi_has_power(s), usi_is_up(s)};
}

// The loop of a drive gives kp (told position - reading) + kd (told velocity - its rate), and the sim's loop
// knows the truth. An offset or a drift is taken from the command: that is the same torque. Of an encoder
// that stands still the torque is known beforehand: it is commanded, and the gains' goals are where the joint
// is, as for any torque.

void usi_unfool_drives(const usi_robot *r, usi_robot_state *s, us_plugin_view *view) {
    usi_drive_fault *all = usi_drives_of(r, s);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        usi_drive_fault *d = &all[k];
        int32_t index = r->model->drive[k].index;
        if (!d->is_fooled) continue;
        view->drive_position[index] = d->told_position;
        view->drive_velocity[index] = d->told_velocity;
        view->drive_torque[index] = d->told_torque;
        d->is_fooled = 0;
        d->told_position = d->told_velocity = d->told_torque = 0;
    }
}

void usi_fool_drives(const usi_robot *r, const us_sim *sim, usi_robot_state *s, us_plugin_view *view) {
    usi_drive_fault *all = usi_drives_of(r, s);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        usi_drive_fault *d = &all[k];
        int32_t index = r->model->drive[k].index;
        const usi_robot_joint *j = &r->model->joint[r->model->firmware.drive[k].joint];
        const usi_encoder_state *e = &usi_view_encoders(r, s)[r->model->firmware.drive[k].joint];
        if ((!e->is_stuck && e->offset == 0 && e->drift == 0) || j->is_lost) continue;
        d->told_position = view->drive_position[index];
        d->told_velocity = view->drive_velocity[index];
        d->told_torque = view->drive_torque[index];
        d->is_fooled = 1;
        if (e->is_stuck) {
            const usi_drive *law = &r->proxy->model->drive[index];
            view->drive_torque[index] += law->kp * (d->told_position - e->held) + law->kd * d->told_velocity;
            view->drive_position[index] = us_sim_view_q(sim)[j->q];
            view->drive_velocity[index] = us_sim_view_v(sim)[j->v];
        } else {
            view->drive_position[index] -= e->offset;
            view->drive_velocity[index] -= e->drift;
        }
    }
}

// ---------------------------------------------------------------- inertial sensor

// At the root's origin: what an accelerometer feels is motion less gravity, so that it reads +g upwards at
// rest.
void usi_read_imu(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, double out[10]) {
    const usi_fault_state *f = &s->faults;
    if (f->is_imu_stuck) {
        memcpy(out, f->imu_held, 10 * sizeof *out);
        return;
    }
    us_pose X_WB = us_sim_get_pose(sim, r->model->root);
    us_vec3 up_B =
        us_quat_rotate(us_quat_conj(X_WB.q), us_vec3_scale(-1, us_model_get_gravity(r->proxy->model)));
    double w[3] = {0, 0, 0}, a[3] = {up_B.x, up_B.y, up_B.z};
    if (r->model->floating.i >= 0) {
        // Velocities are in the body's axes, which turn: a = dv/dt + w x v.
        const double *v = us_sim_view_v(sim) + r->model->base_v, *b = s->base_v, h = r->proxy->step;
        memcpy(w, v, sizeof w);
        a[0] += (v[3] - b[3]) / h + v[1] * v[5] - v[2] * v[4];
        a[1] += (v[4] - b[4]) / h + v[2] * v[3] - v[0] * v[5];
        a[2] += (v[5] - b[5]) / h + v[0] * v[4] - v[1] * v[3];
    }
    const double q[4] = {X_WB.q.w, X_WB.q.x, X_WB.q.y, X_WB.q.z};
    memcpy(out, q, sizeof q);
    for (int i = 0; i < 3; i++) {
        out[4 + i] = w[i] + f->imu_bias[3 + i];
        out[7 + i] = a[i] + f->imu_bias[i];
    }
}
