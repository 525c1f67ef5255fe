// Inputs of one drive or one body: what a whole us_command would say of them.
//
// They are kept in the state, so that a snapshot that is taken before the step has them too. Between steps
// they go to the present state; a plug-in's `before` calls them during a step, which has its own: a step that
// fails leaves the last tick as it was.
#include <math.h>

#include "sim/sim.h"

static usi_state *state_to_change(us_sim *s) { return s->is_stepping ? &s->next : &s->now; }

us_status us_sim_set_drive(us_sim *s, us_drive drive, double position, double velocity) {
    if (!s || drive.i < 0 || drive.i >= s->model->n_drive) return US_ERR_ARG;
    if (!isfinite(position) || !isfinite(velocity)) return US_ERR_VALUE;
    usi_state *state = state_to_change(s);
    state->drive_position[drive.i] = position;
    state->drive_velocity[drive.i] = velocity;
    usi_report_input(s, &(usi_input){USI_INPUT_DRIVE, drive.i, 0, 2, (double[]){position, velocity}});
    return US_OK;
}

us_status us_sim_set_drive_torque(us_sim *s, us_drive drive, double torque) {
    if (!s || drive.i < 0 || drive.i >= s->model->n_drive) return US_ERR_ARG;
    if (!isfinite(torque)) return US_ERR_VALUE;
    state_to_change(s)->drive_torque[drive.i] = torque;
    usi_report_input(s, &(usi_input){USI_INPUT_TORQUE, drive.i, 0, 1, &torque});
    return US_OK;
}

us_status us_sim_apply_wrench(us_sim *s, us_body body, us_wrench wrench) {
    if (!s || body.i < 0 || body.i >= s->model->n_body) return US_ERR_ARG;
    if (!isfinite(wrench.n.x + wrench.n.y + wrench.n.z + wrench.f.x + wrench.f.y + wrench.f.z))
        return US_ERR_VALUE;
    usi_state *state = state_to_change(s);
    int32_t i = 0;
    while (i < state->n_applied[0] && state->applied[i].body != body.i)
        i++;
    usi_applied *at = &state->applied[i];
    if (i == state->n_applied[0]) {
        *at = (usi_applied){.body = body.i};
        state->n_applied[0]++;
    }
    at->wrench.n = us_vec3_add(at->wrench.n, wrench.n);
    at->wrench.f = us_vec3_add(at->wrench.f, wrench.f);
    const double numbers[6] = {wrench.n.x, wrench.n.y, wrench.n.z, wrench.f.x, wrench.f.y, wrench.f.z};
    usi_report_input(s, &(usi_input){USI_INPUT_WRENCH, body.i, 0, 6, numbers});
    return US_OK;
}

us_status us_sim_apply_force(us_sim *s, us_body body, us_vec3 force_W, us_vec3 point_W) {
    if (!s || body.i < 0 || body.i >= s->model->n_body) return US_ERR_ARG;
    us_vec3 arm = us_vec3_sub(point_W, us_sim_get_pose(s, body).p);
    return us_sim_apply_wrench(s, body, (us_wrench){us_vec3_cross(arm, force_W), force_W});
}

const us_command *usi_take_applied(us_sim *s, const us_command *command, us_command *all) {
    s->has_last_step = false;
    s->has_wrench = (command && command->wrench) || s->next.n_applied[0] > 0;
    if (!s->has_wrench) return command;
    *all = command ? *command : (us_command){0};
    for (int32_t b = 0; b < s->model->n_body; b++)
        s->wrench[b] = all->wrench ? all->wrench[b] : (us_wrench){{0, 0, 0}, {0, 0, 0}};
    for (int32_t i = 0; i < s->next.n_applied[0]; i++) {
        const usi_applied *a = &s->next.applied[i];
        us_wrench *w = &s->wrench[a->body];
        w->n = us_vec3_add(w->n, a->wrench.n);
        w->f = us_vec3_add(w->f, a->wrench.f);
    }
    all->wrench = s->wrench;
    return all;
}
