// What enters a step: the command, and what plug-ins make of it.
#include <math.h>
#include <string.h>

#include "sim/sim.h"

void usi_carry_over(us_sim *s) {
    s->next.substep[0] = s->now.substep[0];
    memcpy(s->next.a_before, s->now.a, (size_t)s->model->n_pad * sizeof(double));
    for (int32_t i = s->model->n_q; i < s->model->n_q_pad; i++)
        s->next.q[i] = 0;
    for (int32_t i = s->model->n_node; i < s->model->n_pad; i++)
        s->next.v[i] = s->next.a[i] = 0;
    int32_t n_pair = s->model->n_material * s->model->n_material;
    if (n_pair > 0) {
        memcpy(s->next.contact.pair, s->now.contact.pair, (size_t)n_pair * sizeof *s->now.contact.pair);
        memcpy(s->next.contact.pair_model, s->now.contact.pair_model,
               (size_t)n_pair * sizeof *s->now.contact.pair_model);
    }
    for (int32_t i = 0; i < s->model->n_loose; i++)
        s->next.contact.parted[i] = s->now.contact.parted[i];
    for (int32_t i = 0; i < s->model->n_soil; i++)
        s->next.contact.soil[i] = s->now.contact.soil[i];
    for (int32_t i = 0; i < s->model->n_region; i++)
        s->next.contact.region[i] = s->now.contact.region[i];
    s->next.contact.n_touch[0] = s->next.contact.n_anchor[0] = 0;
    s->next.n_applied[0] = s->now.n_applied[0];
    for (int32_t i = 0; i < s->now.n_applied[0]; i++)
        s->next.applied[i] = s->now.applied[i];
    for (int32_t i = 0; i < s->model->n_hold; i++)
        s->next.held[i] = s->now.held[i];
    usi_carry_plugins(s);
    // What drives, joints and sensors keep stands one behind the other.
    const size_t bytes =
        (size_t)((char *)(s->now.drive_effort + s->model->n_drive) - (char *)s->now.drive_position);
    if (bytes > 0) memcpy(s->next.drive_position, s->now.drive_position, bytes);
}

static us_status refuse(us_sim *s, const char *what, int32_t index) {
    return us_error_set(&s->error, US_ERR_VALUE, NULL, "send finite numbers",
                        "tick %lld: command %s[%d] is not finite; the command is refused",
                        (long long)s->now.tick[0], what, index);
}

// Values that are not finite are refused whole.
static us_status copy_command(us_sim *s, const us_command *c) {
    const us_model *m = s->model;
    const size_t bytes = (size_t)m->n_drive * sizeof(double);
    if (!c) return US_OK;
    const double *const vectors[] = {c->torque,       c->drive_position,    c->drive_velocity,
                                     c->drive_torque, c->drive_limit_scale, (const double *)c->wrench};
    const int32_t sizes[] = {m->n_node, m->n_drive, m->n_drive, m->n_drive, m->n_drive, 6 * m->n_body};
    static const char *const names[] = {"torque",       "drive_position",    "drive_velocity",
                                        "drive_torque", "drive_limit_scale", "wrench"};
    for (int k = 0; k < 6; k++) {
        for (int32_t i = 0; vectors[k] && i < sizes[k]; i++) {
            if (!isfinite(vectors[k][i])) return refuse(s, names[k], k == 5 ? i / 6 : i);
        }
    }
    if (c->drive_position) memcpy(s->next.drive_position, c->drive_position, bytes);
    if (c->drive_velocity) memcpy(s->next.drive_velocity, c->drive_velocity, bytes);
    if (c->drive_torque) memcpy(s->next.drive_torque, c->drive_torque, bytes);
    if (c->drive_limit_scale) memcpy(s->next.drive_limit_scale, c->drive_limit_scale, bytes);
    return US_OK;
}

// Lets the plug-ins change next's commands and states.
static us_status run_plugins(us_sim *s) {
    if (s->n_plugin == 0) return US_OK;
    size_t at = 0;
    for (int32_t i = 0; i < s->n_plugin; i++) {
        us_plugin_view view = {s->next.plugin + at,  s->next.drive_position,    s->next.drive_velocity,
                               s->next.drive_torque, s->next.drive_limit_scale, s->next.battery_on};
        us_status status = s->plugin[i].before(s->plugin[i].context, s, &view, &s->error);
        if (status) return status;
        at += (s->plugin[i].state_size + USI_ALIGN - 1) / USI_ALIGN * USI_ALIGN;
    }
    for (int32_t i = 0; i < s->model->n_drive; i++) {
        double sum = s->next.drive_position[i] + s->next.drive_velocity[i] + s->next.drive_torque[i] +
                     s->next.drive_limit_scale[i];
        if (isfinite(sum)) continue;
        return us_error_set(&s->error, US_ERR_VALUE, NULL, "check what the plug-in computes from its inputs",
                            "tick %lld: a plug-in gave drive %d a command that is not finite",
                            (long long)s->now.tick[0], (int)i);
    }
    return US_OK;
}

us_status usi_take_command(us_sim *s, const us_command *command) {
    usi_carry_over(s);
    us_status status = copy_command(s, command);
    s->is_stepping = true;
    if (!status) status = run_plugins(s);
    s->is_stepping = false;
    return status;
}
