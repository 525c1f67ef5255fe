// Drives that are commanded one by one: velocities, positions, torques, trapezoid profiles, trajectories.
#include <math.h>

#include "firmware/firmware__local.h"

// ---------------------------------------------------------------- checks

static const usi_firmware_joint *joint_of(const usi_firmware_request *c, int32_t drive) {
    return &c->fw->joint[c->fw->drive[drive].joint];
}

static bool check_gains(usi_firmware_request *c, int32_t drive) {
    if (c->fw->drive[drive].kind != USI_DRIVE_BY_TORQUE) return true;
    return usi_firmware_refuse(c, "the drive of \"%.60s\" has no gains: it takes torques only",
                               joint_of(c, drive)->name);
}

static bool check_position(usi_firmware_request *c, int32_t drive, double q) {
    const usi_firmware_joint *j = joint_of(c, drive);
    if (!isfinite(q)) return usi_firmware_refuse(c, "position of \"%.60s\" is not a finite number", j->name);
    // Limits are written with a few digits.
    if (q < j->lower - 1e-6 || q > j->upper + 1e-6)
        return usi_firmware_refuse(c, "position %.6g of \"%.60s\" is beyond its limits %.6g .. %.6g", q,
                                   j->name, j->lower, j->upper);
    return check_gains(c, drive);
}

static bool check_velocity(usi_firmware_request *c, int32_t drive, double v) {
    const usi_firmware_joint *j = joint_of(c, drive);
    if (!isfinite(v)) return usi_firmware_refuse(c, "velocity of \"%.60s\" is not a finite number", j->name);
    if (j->max_speed > 0 && fabs(v) > j->max_speed * (1 + 1e-6))
        return usi_firmware_refuse(c, "velocity %.6g of \"%.60s\" is beyond its limit of %.6g", v, j->name,
                                   j->max_speed);
    return check_gains(c, drive);
}

static bool make_profile(usi_firmware_request *c, const usi_drive_command *command, usi_trapezoid *out) {
    int32_t joint = c->fw->drive[command->drive].joint;
    if (!check_position(c, command->drive, command->value) ||
        !check_velocity(c, command->drive, command->velocity))
        return false;
    if (usi_trapezoid_init(out, command->acceleration, command->velocity, c->in->q[joint], c->in->v[joint],
                           command->value))
        return usi_firmware_refuse(c, "acceleration and velocity of the profile of \"%.60s\" must be above 0",
                                   c->fw->joint[joint].name);
    return true;
}

// A position beyond the limits is a goal of the spring, not of the joint.
static bool check_impedance(usi_firmware_request *c, const usi_drive_command *command) {
    const usi_impedance *z = &command->impedance;
    const bool is_good = isfinite(command->value) && isfinite(z->velocity) && isfinite(z->torque) &&
                         isfinite(z->kp) && isfinite(z->kd) && z->kp >= 0 && z->kd >= 0;
    return is_good || usi_firmware_refuse(c, "a number for \"%.60s\" is not finite, or a gain below 0",
                                          joint_of(c, command->drive)->name);
}

static bool check_command(usi_firmware_request *c, const usi_drive_command *command) {
    usi_trapezoid profile;
    switch (command->mode) {
    case USI_DRIVE_KEEP:
        return true;
    case USI_DRIVE_VELOCITY:
        return check_velocity(c, command->drive, command->value);
    case USI_DRIVE_POSITION:
        return check_position(c, command->drive, command->value);
    case USI_DRIVE_PROFILE:
        return make_profile(c, command, &profile);
    case USI_DRIVE_TORQUE:
        return isfinite(command->value) ||
               usi_firmware_refuse(c, "torque of \"%.60s\" is not a finite number",
                                   joint_of(c, command->drive)->name);
    case USI_DRIVE_IMPEDANCE:
        return check_impedance(c, command);
    default:
        return usi_firmware_refuse(c, "a single drive does not take trajectories");
    }
}

// ---------------------------------------------------------------- commands

static usi_drive_state *set_drive(usi_firmware_request *c, int32_t drive, usi_drive_mode mode, double value) {
    usi_drive_state *d = &usi_firmware_drives(c->fw, c->s)[drive];
    d->mode = (int32_t)mode;
    d->value = value;
    d->is_lasting = 0;
    d->tick = c->in->tick;
    return d;
}

static void take_command(usi_firmware_request *c, const usi_drive_command *command) {
    const usi_firmware_drive *drive = &c->fw->drive[command->drive];
    bool is_torque = drive->kind == USI_DRIVE_BY_TORQUE;
    usi_drive_state *d;
    if (command->mode == USI_DRIVE_KEEP) {
        d = set_drive(c, command->drive, is_torque ? USI_DRIVE_TORQUE : USI_DRIVE_POSITION,
                      is_torque ? 0 : c->in->q[drive->joint]);
    } else {
        d = set_drive(c, command->drive, command->mode, command->value);
    }
    if (command->mode == USI_DRIVE_PROFILE) make_profile(c, command, &d->profile);
    if (command->mode == USI_DRIVE_IMPEDANCE) d->impedance = command->impedance;
    d->is_lasting = command->is_lasting;
}

bool usi_firmware_command_drives(usi_firmware_request *c, const usi_drive_command *commands, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (!check_command(c, &commands[i])) return false;
    }
    usi_firmware_begin(c, USI_MOTION_JOINTS);
    for (int32_t i = 0; i < n; i++)
        take_command(c, &commands[i]);
    return true;
}

void usi_firmware_switch_drive(usi_firmware_request *c, int32_t drive, bool is_on) {
    usi_firmware_drives(c->fw, c->s)[drive].is_off = !is_on;
}

// ---------------------------------------------------------------- trajectories

static bool check_trajectory(usi_firmware_request *c, const usi_trajectory *t) {
    if (t->n_point <= 0 || t->n_drive <= 0) return usi_firmware_refuse(c, "the trajectory is empty");
    if (t->n_point > USI_TRAJECTORY_POINTS)
        return usi_firmware_refuse(c, "%d points, and room for %d: send it in parts", (int)t->n_point,
                                   USI_TRAJECTORY_POINTS);
    for (int32_t i = 0; i < t->n_drive; i++) {
        for (int32_t k = 0; k < i; k++) {
            if (t->drives[i] == t->drives[k])
                return usi_firmware_refuse(c, "joint \"%.60s\" is named twice",
                                           joint_of(c, t->drives[i])->name);
        }
    }
    double before = -1;
    for (int32_t p = 0; p < t->n_point; p++) {
        const usi_trajectory_point *point = &t->points[p];
        if (!(point->time >= 0) || point->time <= before)
            return usi_firmware_refuse(c, "the time of point %d is not after that of the one before", (int)p);
        before = point->time;
        for (int32_t i = 0; i < t->n_drive; i++) {
            if (!check_position(c, t->drives[i], point->positions[i])) return false;
            if (point->velocities && !check_velocity(c, t->drives[i], point->velocities[i])) return false;
        }
    }
    return true;
}

bool usi_firmware_follow(usi_firmware_request *c, const usi_trajectory *t) {
    if (!check_trajectory(c, t)) return false;
    usi_firmware_begin(c, USI_MOTION_JOINTS);
    usi_trajectory_memory memory = usi_firmware_trajectory(c->fw, c->s);
    c->s->n_trajectory = t->n_point;
    c->s->trajectory_tick = c->in->tick;
    for (int32_t p = 0; p < t->n_point; p++)
        memory.times[p] = t->points[p].time;
    for (int32_t i = 0; i < t->n_drive; i++) {
        int32_t k = t->drives[i], at = k * USI_TRAJECTORY_POINTS;
        set_drive(c, k, USI_DRIVE_TRAJECTORY, c->in->q[c->fw->drive[k].joint]);
        for (int32_t p = 0; p < t->n_point; p++) {
            const usi_trajectory_point *point = &t->points[p];
            memory.positions[at + p] = point->positions[i];
            // Not a number: none given, a straight line between two points.
            memory.velocities[at + p] = point->velocities ? point->velocities[i] : NAN;
        }
    }
    return true;
}

// Position and velocity of a trajectory at time t. Straight lines between points without velocities, cubics
// between those with them.
static void interpolate(const usi_firmware *fw, usi_firmware_state *s, int32_t drive, double t, double start,
                        double *out_q, double *out_v) {
    usi_trajectory_memory memory = usi_firmware_trajectory(fw, s);
    const double *times = memory.times, *q = memory.positions + drive * USI_TRAJECTORY_POINTS;
    const double *v = memory.velocities + drive * USI_TRAJECTORY_POINTS;
    int32_t n = s->n_trajectory, i = 0;
    while (i < n && times[i] <= t)
        i++;
    if (i == n) {
        *out_q = q[n - 1];
        *out_v = 0;
        return;
    }
    double t0 = i > 0 ? times[i - 1] : 0, q0 = i > 0 ? q[i - 1] : start, v0 = i > 0 ? v[i - 1] : 0;
    double span = times[i] - t0, x = (t - t0) / span;
    if (!isfinite(v[i]) || !isfinite(v0)) {
        *out_v = (q[i] - q0) / span;
        *out_q = q0 + x * (q[i] - q0);
        return;
    }
    double a = v0 * span, b = v[i] * span, d = q[i] - q0;
    *out_q = q0 + x * (a + x * (3 * d - 2 * a - b + x * (a + b - 2 * d)));
    *out_v = (a + x * (2 * (3 * d - 2 * a - b) + x * 3 * (a + b - 2 * d))) / span;
}

// ---------------------------------------------------------------- every tick

// A drive with a position gain takes position and velocity; one with a velocity gain alone gets there by its
// velocity.
static void go_to(const usi_firmware *fw, const usi_firmware_readings *in, int32_t drive, double q, double v,
                  usi_firmware_output *out) {
    const usi_firmware_drive *d = &fw->drive[drive];
    const usi_firmware_joint *j = &fw->joint[d->joint];
    out->torque = 0;
    if (d->kind == USI_DRIVE_BY_POSITION) {
        out->position = q;
        out->velocity = v;
        return;
    }
    double max = j->max_speed > 0 ? j->max_speed : INFINITY;
    out->velocity = usi_clamp_abs(v + d->rate * (q - in->q[d->joint]), max);
}

void usi_firmware_run_drives(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                             usi_firmware_output *output) {
    const usi_drive_state *all = usi_firmware_view_drives(fw, s);
    const double step = fw->step;
    for (int32_t k = 0; k < fw->n_drive; k++) {
        const usi_drive_state *d = &all[k];
        const usi_firmware_drive *drive = &fw->drive[k];
        usi_firmware_output *out = &output[k];
        double q, v;
        switch ((usi_drive_mode)d->mode) {
        case USI_DRIVE_VELOCITY:
            out->torque = 0;
            out->velocity = d->value;
            // A position gain would pull back: its goal goes along.
            if (drive->kind == USI_DRIVE_BY_POSITION) out->position = in->q[drive->joint] + d->value * step;
            break;
        case USI_DRIVE_POSITION:
            go_to(fw, in, k, d->value, 0, out);
            break;
        case USI_DRIVE_PROFILE: {
            usi_trapezoid_point at = usi_trapezoid_at(&d->profile, (double)(in->tick - d->tick + 1) * step);
            go_to(fw, in, k, at.position, at.velocity, out);
            break;
        }
        case USI_DRIVE_TORQUE:
            out->torque = d->value;
            // Gains would fight it: their goals are where the joint is.
            out->position = in->q[drive->joint];
            out->velocity = in->v[drive->joint];
            break;
        case USI_DRIVE_IMPEDANCE:
            out->position = in->q[drive->joint];
            out->velocity = in->v[drive->joint];
            out->torque = d->impedance.torque + d->impedance.kp * (d->value - out->position) +
                          d->impedance.kd * (d->impedance.velocity - out->velocity);
            break;
        case USI_DRIVE_TRAJECTORY:
            interpolate(fw, s, k, (double)(in->tick - s->trajectory_tick + 1) * step, d->value, &q, &v);
            go_to(fw, in, k, q, v, out);
            break;
        default:
            break;
        }
    }
}
