// A state of the firmware that comes from a file, before it is believed: counts, modes, texts and numbers.
#include <string.h>

#include "base/sound.h"
#include "firmware/firmware.h"

static bool is_tick(int64_t tick) { return tick >= -1 && tick <= USI_MAX_TICK; }

static bool is_text(const char *text, size_t cap) { return memchr(text, 0, cap) != NULL; }

static bool is_service_sound(const usi_service_state *s) {
    return s->state < US_ROVER_STATE_COUNT && s->error < US_ROVER_ERROR_COUNT &&
           is_text(s->message, sizeof s->message);
}

static bool is_gait_sound(const usi_gait_state *g) {
    return g->phase >= 0 && g->phase <= 1 && usi_are_numbers(&g->foot[0][0], 3 * USI_GAIT_LEGS) &&
           usi_are_numbers(&g->goal[0][0], 2 * USI_GAIT_LEGS) &&
           usi_are_numbers(&g->measured[0][0], 2 * USI_GAIT_LEGS) && g->kind >= USI_GAIT_TRIPOD &&
           g->kind <= USI_GAIT_WAVE && g->next_kind >= USI_GAIT_TRIPOD && g->next_kind <= USI_GAIT_WAVE &&
           g->spared < 1u << USI_GAIT_LEGS && g->next_spared < 1u << USI_GAIT_LEGS;
}

// Of either kind they are numbers; those of the longer one are looked at.
static bool are_drives_sound(const usi_firmware *fw, const usi_firmware_state *s) {
    const usi_drive_state *d = usi_firmware_view_drives(fw, s);
    for (int32_t i = 0; i < fw->n_drive; i++) {
        const usi_trapezoid *p = &d[i].profile;
        const double numbers[] = {
            d[i].value,         d[i].v_before,   p->acceleration,       p->start_position,
            p->start_velocity,  p->end_position, p->first_acceleration, p->cruise_position,
            p->cruise_velocity, p->first_end,    p->cruise_end,         p->duration};
        if (d[i].mode < USI_DRIVE_KEEP || d[i].mode > USI_DRIVE_IMPEDANCE || !is_tick(d[i].tick) ||
            !usi_are_numbers(numbers, sizeof numbers / sizeof *numbers))
            return false;
    }
    return true;
}

// Times grow; each drive has a position and a velocity at each.
static bool is_trajectory_sound(const usi_firmware *fw, const usi_firmware_state *s) {
    if (s->n_trajectory < 0 || s->n_trajectory > USI_TRAJECTORY_POINTS) return false;
    if (fw->n_drive == 0) return s->n_trajectory == 0;
    const size_t n = (1 + 2 * (size_t)fw->n_drive) * USI_TRAJECTORY_POINTS;
    return usi_are_numbers((const double *)(const void *)((const char *)s + fw->trajectory_at), n);
}

bool usi_firmware_is_sound(const usi_firmware *fw, const usi_firmware_state *s) {
    const usi_firmware_setting *set = &s->setting;
    const double scalars[] = {s->goal,        s->done,      s->speed,       s->tolerance, set->speed,
                              set->tolerance, set->timeout, s->end_heading, s->way,       s->turned};
    const size_t n_scalar = sizeof scalars / sizeof *scalars;
    return is_tick(s->motion_tick) && is_tick(s->refused_tick) && is_tick(s->trajectory_tick) &&
           s->n_command >= 0 && s->n_refused >= 0 && s->n_timeout >= 0 && usi_are_numbers(s->want, 3) &&
           usi_are_numbers(s->now, 3) && usi_are_numbers(s->odom, 3) && usi_are_numbers(s->odom_v, 3) &&
           usi_are_numbers(s->pose_offset, 3) && usi_are_numbers(scalars, n_scalar) &&
           usi_are_numbers(set->site, 3) && usi_are_numbers(s->line, USI_MAX_LINE) && s->deadline >= 0 &&
           usi_are_numbers(&s->route[0][0], 2 * USI_ROUTE_POINTS) &&
           usi_are_numbers(s->wheel_q, USI_MAX_WHEEL) && usi_are_numbers(s->wheel_goal, USI_MAX_WHEEL) &&
           usi_are_numbers(s->steer, USI_MAX_WHEEL) && is_gait_sound(&s->gait) &&
           s->motion >= USI_MOTION_SCENE && s->motion <= USI_MOTION_JOINTS && s->n_route >= 0 &&
           s->n_route <= USI_ROUTE_POINTS && s->next_route >= 0 && s->next_route <= s->n_route &&
           is_service_sound(&s->motors) && is_service_sound(&s->locomotor) && is_service_sound(&s->pose) &&
           is_service_sound(&s->navigator) && is_service_sound(&s->mobility) &&
           is_service_sound(&s->function_run) && s->function >= 0 && is_text(s->refusal, sizeof s->refusal) &&
           are_drives_sound(fw, s) && is_trajectory_sound(fw, s);
}
