// The firmware's life: start, one tick, loss of memory. A tick reads the encoders into odometry, looks
// whether commands have timed out, and sets the drives.
#include "firmware/firmware.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "firmware/firmware__local.h"

// ---------------------------------------------------------------- layout

static size_t align_up(size_t n) { return (n + 63) / 64 * 64; }

void usi_firmware_lay_out(usi_firmware *fw) {
    size_t n = (size_t)fw->n_drive, points = USI_TRAJECTORY_POINTS;
    fw->drives_at = align_up(sizeof(usi_firmware_state));
    fw->trajectory_at = align_up(fw->drives_at + n * sizeof(usi_drive_state));
    fw->state_size = align_up(fw->trajectory_at + (n > 0 ? (1 + 2 * n) * points * sizeof(double) : 0));
}

usi_trajectory_memory usi_firmware_trajectory(const usi_firmware *fw, usi_firmware_state *s) {
    double *times = (double *)(void *)((char *)s + fw->trajectory_at);
    double *positions = times + USI_TRAJECTORY_POINTS;
    return (usi_trajectory_memory){times, positions, positions + fw->n_drive * USI_TRAJECTORY_POINTS};
}

double usi_firmware_position_rate(double step) { return fmin(10, 0.2 / step); }

bool usi_firmware_refuse(usi_firmware_request *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    c->error = US_ROVER_BAD_VALUE;
    return false;
}

bool usi_firmware_refuse_as(usi_firmware_request *c, us_rover_error error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    c->error = error;
    return false;
}

// ---------------------------------------------------------------- start and loss of memory

void usi_firmware_start(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    s->motion = USI_MOTION_SCENE;
    s->motion_tick = s->refused_tick = -1;
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        s->wheel_q[i] = in->q[fw->wheel_joint[i]];
        if (fw->steer_joint[i] >= 0) s->steer[i] = in->q[fw->steer_joint[i]];
    }
    double legs[USI_GAIT_LEGS][3];
    for (int32_t i = 0; i < 3 * fw->gait.n_leg; i++)
        legs[i / 3][i % 3] = in->q[fw->leg_joint[i / 3][i % 3]];
    if (fw->gait.n_leg > 0) usi_gait_observe(&fw->gait, &s->gait, (const double(*)[3])legs);
}

// Every drive holds where it is, without the computer.
static void hold_drives(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    static const usi_drive_mode modes[] = {USI_DRIVE_POSITION, USI_DRIVE_VELOCITY, USI_DRIVE_TORQUE};
    usi_drive_state *d = usi_firmware_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive; k++) {
        d[k].mode = (int32_t)modes[fw->drive[k].kind];
        d[k].value = fw->drive[k].kind == USI_DRIVE_BY_POSITION ? in->q[fw->drive[k].joint] : 0;
    }
}

void usi_firmware_forget(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    memset(s, 0, sizeof *s);
    s->motion_tick = s->refused_tick = -1;
    usi_drive_state *d = usi_firmware_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive; k++)
        d[k] = (usi_drive_state){.v_before = d[k].v_before};
    hold_drives(fw, s, in);
}

void usi_firmware_restart(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    // Drives keep their last command, which is to hold.
    usi_drive_state *d = usi_firmware_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive; k++) {
        d[k].mode = USI_DRIVE_KEEP;
        d[k].value = 0;
        d[k].is_lasting = 0;
    }
    usi_firmware_start(fw, s, in);
    if (fw->locomotion.n_wheel > 0) s->motion = USI_MOTION_STOP;
    memcpy(s->wheel_goal, s->wheel_q, sizeof s->wheel_goal);
}

// ---------------------------------------------------------------- safe stop

// It only brakes.
static bool is_damping(const usi_impedance *z) { return z->kp == 0 && z->torque == 0 && z->velocity == 0; }

// Stops what was commanded too long ago: a stream of commands that has ended means that nobody is in control.
static void watch(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    if (fw->timeout <= 0) return;
    int64_t patience = (int64_t)ceil(fw->timeout / fw->step);
    if (s->motion == USI_MOTION_TWIST && in->tick - s->motion_tick > patience) {
        usi_firmware_halt(fw, s, in);
        usi_firmware_end_motion(s, US_ROVER_STOPPED, US_ROVER_TIMEOUT,
                                "the velocity was not renewed in time");
        s->n_timeout++;
    }
    // Drives that are commanded one by one, also while the body moves.
    usi_drive_state *d = usi_firmware_drives(fw, s);
    bool is_late = false;
    for (int32_t k = 0; k < fw->n_drive; k++) {
        // Positions and profiles end by themselves; a velocity or a torque goes on for ever.
        bool is_endless =
            ((d[k].mode == USI_DRIVE_VELOCITY || d[k].mode == USI_DRIVE_TORQUE) && d[k].value != 0) ||
            (d[k].mode == USI_DRIVE_IMPEDANCE && !is_damping(&d[k].impedance));
        if (!is_endless || in->tick - d[k].tick <= patience || d[k].is_lasting) continue;
        bool is_torque = fw->drive[k].kind == USI_DRIVE_BY_TORQUE;
        if (d[k].mode == USI_DRIVE_IMPEDANCE && is_torque) {
            // A spring without a master is let go; what damps stays.
            d[k].impedance = (usi_impedance){.kd = d[k].impedance.kd};
            is_late = true;
            continue;
        }
        d[k].mode = is_torque ? USI_DRIVE_TORQUE : USI_DRIVE_VELOCITY;
        d[k].value = 0;
        is_late = true;
    }
    s->n_timeout += is_late;
}

// Motions with an end that cannot reach it: their time is over, or a motor that they need is switched off.
static void watch_motion(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    if (s->motion != USI_MOTION_ARC && s->motion != USI_MOTION_TURN && s->motion != USI_MOTION_NAVIGATE)
        return;
    if (s->deadline > 0 && in->tick > s->deadline) {
        usi_firmware_end_motion(s, US_ROVER_FAILED, US_ROVER_TIMEOUT, "it was not there in time");
        usi_firmware_halt(fw, s, in);
        s->n_timeout++;
        return;
    }
    const usi_drive_state *d = usi_firmware_view_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive; k++) {
        if (!d[k].is_off || !usi_firmware_is_locomotive(fw, k)) continue;
        char why[100];
        snprintf(why, sizeof why, "motor %.60s is switched off", fw->joint[fw->drive[k].joint].name);
        usi_firmware_end_motion(s, US_ROVER_FAILED, US_ROVER_FAILURE, why);
        usi_firmware_halt(fw, s, in);
        return;
    }
}

// ---------------------------------------------------------------- one tick

void usi_firmware_step(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                       usi_firmware_output *output) {
    usi_drive_state *d = usi_firmware_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive; k++) {
        d[k].v_before = in->v[fw->drive[k].joint];
        output[k].is_enabled = !d[k].is_off && in->is_powered && (in->is_running || !fw->releases_drives);
    }
    if (in->is_running) {
        usi_firmware_count(fw, s, in);
        watch(fw, s, in);
        watch_motion(fw, s, in);
        if (s->motion == USI_MOTION_SCENE) return;
        usi_firmware_move_body(fw, s, in, output);
    } else if (!in->is_powered || fw->releases_drives) {
        // Drives without power hold, once they have it again, where they are then.
        hold_drives(fw, s, in);
    }
    usi_firmware_run_drives(fw, s, in, output);
}
