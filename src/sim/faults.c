// Faults of motors and joints, and batteries: state that is set between steps.
#include <math.h>

#include "model/robots.h"
#include "sim/sim.h"

static bool is_index(int32_t i, int32_t n) { return i >= 0 && i < n; }

us_status us_sim_set_drive_strength(us_sim *s, us_drive drive, double strength) {
    if (!s || !is_index(drive.i, s->model->n_drive)) return US_ERR_ARG;
    if (!(strength >= 0 && strength <= 1)) return US_ERR_VALUE;
    s->now.drive_strength[drive.i] = strength;
    usi_report_input(s, &(usi_input){USI_INPUT_STRENGTH, drive.i, 0, 1, &strength});
    return US_OK;
}

double us_sim_get_drive_strength(const us_sim *s, us_drive drive) {
    return s && is_index(drive.i, s->model->n_drive) ? s->now.drive_strength[drive.i] : NAN;
}

us_status us_sim_set_blockage(us_sim *s, us_joint joint, double blockage) {
    if (!s || !is_index(joint.i, s->model->n_joint)) return US_ERR_ARG;
    const us_model *m = s->model;
    const usi_joint *j = &m->joint[joint.i];
    if (j->n_v == 0 || usi_find_friction(m, j->first_v) < 0) return US_ERR_ARG;
    if (!(blockage >= 0) || !isfinite(blockage)) return US_ERR_VALUE;
    for (int32_t i = 0; i < j->n_v; i++) {
        int32_t k = usi_find_friction(m, j->first_v + i);
        const usi_joint_law *law = &m->joint_law[m->friction[k]];
        // A joint that nothing held sticks where it is.
        bool was_stuck = usi_friction_now(law, s->now.blockage[k]).kp > 0;
        bool is_stuck = usi_friction_now(law, blockage).kp > 0;
        s->now.blockage[k] = blockage;
        if (!is_stuck || !was_stuck) s->now.stuck[k] = is_stuck ? s->now.q[law->q] : 0;
    }
    usi_report_input(s, &(usi_input){USI_INPUT_BLOCKAGE, joint.i, 0, 1, &blockage});
    return US_OK;
}

double us_sim_get_blockage(const us_sim *s, us_joint joint) {
    if (!s || !is_index(joint.i, s->model->n_joint)) return NAN;
    const usi_joint *j = &s->model->joint[joint.i];
    int32_t k = j->n_v > 0 ? usi_find_friction(s->model, j->first_v) : -1;
    return k >= 0 ? s->now.blockage[k] : 0;
}

us_status us_sim_set_battery(us_sim *s, us_battery battery, double energy) {
    if (!s || !is_index(battery.i, s->model->n_battery)) return US_ERR_ARG;
    if (!(energy >= 0 && energy <= s->model->battery[battery.i].capacity)) return US_ERR_VALUE;
    s->now.battery_energy[battery.i] = energy;
    for (int32_t i = 0; i < s->model->n_sensor; i++) {
        const usi_sensor *k = &s->model->sensor[i];
        if (usi_sensor_is(k, "battery") && k->battery == battery.i) usi_sim_sense_one(s, i);
    }
    usi_report_input(s, &(usi_input){USI_INPUT_BATTERY, battery.i, 0, 1, &energy});
    return US_OK;
}

us_battery_state us_sim_get_battery(const us_sim *s, us_battery battery) {
    if (!s || !is_index(battery.i, s->model->n_battery)) return (us_battery_state){NAN, NAN};
    double energy = s->now.battery_energy[battery.i];
    double power = s->now.battery_on[battery.i] > 0
                       ? usi_battery_power(s->model, battery.i, s->now.drive_effort, s->now.v, energy)
                       : 0;
    return (us_battery_state){energy, power};
}
