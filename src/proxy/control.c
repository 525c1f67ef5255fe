// One tick of a robot's firmware: timeouts, the way from body velocity to wheels, profiles and trajectories,
// odometry, battery.
#include <math.h>
#include <string.h>

#include "proxy/robot.h"

// m/s^2 and rad/s^2 with which a rover comes to rest where the scene sets no limit.
static const double DECELERATION = 0.5;

// rad that a wheel may be behind or ahead of where its speed should have brought it: more is not made up for.
static const double WHEEL_SLACK = 0.2;

static double clamp(double x, double most) { return x > most ? most : x < -most ? -most : x; }

// ---------------------------------------------------------------- odometry

static void read_wheels(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, double *out_q,
                        double *out_steer) {
    for (int32_t i = 0; i < r->locomotion.n_wheel; i++) {
        out_q[i] = usi_read_q(r, sim, s, r->wheel_joint[i]);
        out_steer[i] = r->steer_joint[i] >= 0 ? usi_read_q(r, sim, s, r->steer_joint[i]) : 0;
    }
}

static void read_legs(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, double (*out)[3]) {
    for (int32_t i = 0; i < 3 * r->gait.n_leg; i++)
        out[i / 3][i % 3] = usi_read_q(r, sim, s, r->leg_joint[i / 3][i % 3]);
}

static void move_odometry(const usi_robot *r, usi_robot_state *s, const double body[3]) {
    const double step = r->proxy->step;
    usi_odometry_move(s->odom, body, step);
    memcpy(s->odom_v, body, sizeof s->odom_v);
    if (s->motion == USI_MOTION_ARC) s->done += hypot(body[0], body[1]) * step;
    if (s->motion == USI_MOTION_TURN) s->done += fabs(body[2]) * step;
}

// By the feet that stand: how far the base has moved over them since the last tick.
static void count_steps(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    double q[USI_GAIT_LEGS][3], body[3];
    read_legs(r, sim, s, q);
    usi_gait_to_body(&r->gait, &s->gait, (const double(*)[3])q, r->proxy->step, body);
    move_odometry(r, s, body);
}

// By the encoders: how far each wheel turned since the last tick, and where it points.
static void count_wheels(const usi_robot *r, usi_robot_state *s, const double *q, const double *steer) {
    const double step = r->proxy->step;
    double turned[USI_MAX_WHEEL], body[3];
    for (int32_t i = 0; i < r->locomotion.n_wheel; i++) {
        turned[i] = (q[i] - s->wheel_q[i]) / step;
        s->wheel_q[i] = q[i];
    }
    usi_loco_to_body(&r->locomotion, turned, steer, body);
    move_odometry(r, s, body);
}

// ---------------------------------------------------------------- what the body shall do

// A distance to go from rest to rest: the speed from which it can still stop.
static double approach(double speed, double left, double deceleration) {
    return fmin(speed, sqrt(2 * deceleration * fmax(left, 0)));
}

static void drive_far(const usi_robot *r, usi_robot_state *s) {
    double a = r->network->max_acceleration > 0 ? r->network->max_acceleration : DECELERATION,
           left = s->goal - s->done;
    // Within what one tick at creeping speed does there is nothing left to do.
    if (left <= 1e-4) {
        s->motion = USI_MOTION_STOP;
        memset(s->want, 0, sizeof s->want);
        s->locomotor.state = 2;
        return;
    }
    double most = fabs(s->motion == USI_MOTION_ARC ? s->want[0] : s->want[2]);
    double scale = most > 0 ? fmax(approach(s->speed, left, a), 0.01) / most : 0;
    for (int i = 0; i < 3; i++)
        s->want[i] *= scale;
}

static void navigate(const usi_robot *r, usi_robot_state *s) {
    const us_network_def *n = r->network;
    double pose[3];
    usi_odometry_compose(s->pose_offset, s->odom, pose);
    while (s->next_route < s->n_route &&
           hypot(s->route[s->next_route][0] - pose[0], s->route[s->next_route][1] - pose[1]) <= s->tolerance)
        s->next_route++;
    if (s->next_route == s->n_route) {
        s->motion = USI_MOTION_STOP;
        memset(s->want, 0, sizeof s->want);
        s->navigator.state = 2;
        return;
    }
    const double *goal = s->route[s->next_route];
    usi_pursue(pose, goal[0], goal[1], s->speed, n->max_turn > 0 ? n->max_turn : 0.5,
               n->max_acceleration > 0 ? n->max_acceleration : DECELERATION,
               r->gait.n_leg > 0 || r->locomotion.kind != USI_LOCOMOTION_ACKERMANN, s->want);
}

void usi_robot_stop(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    memset(s->want, 0, sizeof s->want);
    s->motion = USI_MOTION_STOP;
    usi_drive_state *d = usi_drives_of(r, s);
    for (int32_t k = 0; k < r->n_drive; k++) {
        bool is_wheel = false;
        for (int32_t i = 0; i < r->locomotion.n_wheel; i++)
            is_wheel = is_wheel || r->joint[r->wheel_joint[i]].drive == k ||
                       (r->steer_joint[i] >= 0 && r->joint[r->steer_joint[i]].drive == k);
        for (int32_t i = 0; i < 3 * r->gait.n_leg; i++)
            is_wheel = is_wheel || r->joint[r->leg_joint[i / 3][i % 3]].drive == k;
        if (is_wheel) {
            d[k].mode = USI_DRIVE_KEEP;
        } else if (d[k].mode != USI_DRIVE_KEEP) {
            // Holds where it is; what has no gains lets go.
            d[k].mode = r->drive[k].kind == USI_DRIVE_BY_TORQUE ? USI_DRIVE_TORQUE : USI_DRIVE_POSITION;
            d[k].value =
                r->drive[k].kind == USI_DRIVE_BY_TORQUE ? 0 : usi_read_q(r, sim, s, r->drive[k].joint);
        }
    }
}

// A stream of commands that has ended means that nobody is in control.
static void watch(const usi_robot *r, const us_sim *sim, usi_robot_state *s, int64_t tick) {
    if (r->network->timeout <= 0) return;
    int64_t patience = (int64_t)ceil(r->network->timeout / r->proxy->step);
    if (s->motion == USI_MOTION_TWIST && tick - s->motion_tick > patience) {
        usi_robot_stop(r, sim, s);
        if (s->locomotor.state == 1) s->locomotor.state = 3;
        s->n_timeout++;
    }
    // Drives that were told something for themselves, also while the body moves.
    usi_drive_state *d = usi_drives_of(r, s);
    bool is_late = false;
    for (int32_t k = 0; k < r->n_drive; k++) {
        // Positions and profiles end by themselves; a velocity or a torque goes on for ever.
        if ((d[k].mode != USI_DRIVE_VELOCITY || d[k].value == 0) &&
            (d[k].mode != USI_DRIVE_TORQUE || d[k].value == 0))
            continue;
        if (tick - d[k].tick <= patience || d[k].is_lasting) continue;
        bool is_torque = r->drive[k].kind == USI_DRIVE_BY_TORQUE;
        d[k].mode = is_torque ? USI_DRIVE_TORQUE : USI_DRIVE_VELOCITY;
        d[k].value = 0;
        is_late = true;
    }
    s->n_timeout += is_late;
}

// Towards the body velocity that is wanted, with the acceleration that is allowed.
static void speed_up(const usi_robot *r, usi_robot_state *s) {
    const double step = r->proxy->step, a = r->network->max_acceleration;
    for (int i = 0; i < 3; i++) {
        // Turning has the same limit at a metre's distance.
        s->now[i] = a > 0 ? s->now[i] + clamp(s->want[i] - s->now[i], a * step) : s->want[i];
    }
}

// Legs for the body velocity. They begin where their drives were told to be, so that nothing jumps.
static void walk(const usi_robot *r, usi_robot_state *s, us_plugin_view *view) {
    const double step = r->proxy->step;
    double q[USI_GAIT_LEGS][3];
    if (!s->gait.is_on) {
        for (int32_t i = 0; i < 3 * r->gait.n_leg; i++)
            q[i / 3][i % 3] =
                view->drive_position[r->drive[r->joint[r->leg_joint[i / 3][i % 3]].drive].index];
        usi_gait_start(&r->gait, &s->gait, (const double(*)[3])q);
        memset(s->now, 0, sizeof s->now);
    }
    speed_up(r, s);
    usi_gait_step(&r->gait, &s->gait, s->now, step, q);
    usi_drive_state *d = usi_drives_of(r, s);
    for (int32_t i = 0; i < 3 * r->gait.n_leg; i++) {
        const usi_robot_joint *j = &r->joint[r->leg_joint[i / 3][i % 3]];
        int32_t index = r->drive[j->drive].index;
        if (d[j->drive].mode != USI_DRIVE_KEEP) continue;
        double most = j->most_speed > 0 ? j->most_speed : INFINITY;
        view->drive_velocity[index] = clamp((q[i / 3][i % 3] - view->drive_position[index]) / step, most);
        view->drive_position[index] = q[i / 3][i % 3];
    }
}

// Wheels and steering for the body velocity.
static void roll(const usi_robot *r, usi_robot_state *s, const double *q, const double *steer,
                 us_plugin_view *view) {
    const double step = r->proxy->step;
    speed_up(r, s);
    usi_loco_command c;
    usi_loco_to_wheels(&r->locomotion, s->now, steer, s->steer, &c);
    usi_drive_state *d = usi_drives_of(r, s);
    for (int32_t i = 0; i < r->locomotion.n_wheel; i++) {
        int32_t wheel = r->joint[r->wheel_joint[i]].drive;
        // The drive gives way to a load; what is lost is made up for, so that a rover that stands on a slope
        // stays there. A wheel that is held fast must not store up turns.
        double behind = clamp(s->wheel_goal[i] + c.speed[i] * step - q[i], WHEEL_SLACK);
        s->wheel_goal[i] = q[i] + behind;
        if (d[wheel].mode == USI_DRIVE_KEEP)
            view->drive_velocity[r->drive[wheel].index] = c.speed[i] + r->drive[wheel].rate * behind;
        if (r->steer_joint[i] < 0) continue;
        int32_t turn = r->joint[r->steer_joint[i]].drive;
        s->steer[i] = c.steer[i];
        if (d[turn].mode == USI_DRIVE_KEEP) view->drive_position[r->drive[turn].index] = c.steer[i];
    }
}

// ---------------------------------------------------------------- drives

// Position and velocity of a trajectory at time t. Straight lines between points without velocities, cubics
// between those with them.
static void follow(const usi_robot *r, usi_robot_state *s, int32_t drive, double t, double start,
                   double *out_q, double *out_v) {
    const double *times = usi_times_of(r, s), *q = usi_positions_of(r, s) + drive * USI_TRAJECTORY_POINTS;
    const double *v = usi_velocities_of(r, s) + drive * USI_TRAJECTORY_POINTS;
    int32_t n = s->n_trajectory, i = 0;
    while (i < n && times[i] <= t)
        i++;
    if (i == n) {
        *out_q = q[n - 1];
        *out_v = 0;
        return;
    }
    double t0 = i > 0 ? times[i - 1] : 0, q0 = i > 0 ? q[i - 1] : start, v0 = i > 0 ? v[i - 1] : 0,
           span = times[i] - t0, x = (t - t0) / span;
    if (!isfinite(v[i]) || !isfinite(v0)) {
        *out_v = (q[i] - q0) / span;
        *out_q = q0 + x * (q[i] - q0);
        return;
    }
    double a = v0 * span, b = v[i] * span, d = q[i] - q0;
    *out_q = q0 + x * (a + x * (3 * d - 2 * a - b + x * (a + b - 2 * d)));
    *out_v = (a + x * (2 * (3 * d - 2 * a - b) + x * 3 * (a + b - 2 * d))) / span;
}

// A drive with a position gain takes position and velocity; one with a velocity gain alone gets there by its
// velocity.
static void go_to(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, int32_t drive, double q,
                  double v, us_plugin_view *view) {
    const usi_robot_drive *d = &r->drive[drive];
    const usi_robot_joint *j = &r->joint[d->joint];
    view->drive_torque[d->index] = 0;
    if (d->kind == USI_DRIVE_BY_POSITION) {
        view->drive_position[d->index] = q;
        view->drive_velocity[d->index] = v;
        return;
    }
    double most = j->most_speed > 0 ? j->most_speed : INFINITY;
    view->drive_velocity[d->index] = clamp(v + d->rate * (q - usi_read_q(r, sim, s, d->joint)), most);
}

static void run_drives(const usi_robot *r, const us_sim *sim, usi_robot_state *s, int64_t tick,
                       us_plugin_view *view) {
    usi_drive_state *all = usi_drives_of(r, s);
    const double step = r->proxy->step;
    for (int32_t k = 0; k < r->n_drive; k++) {
        usi_drive_state *d = &all[k];
        const usi_robot_drive *drive = &r->drive[k];
        double q, v, elapsed = (double)(tick - d->tick + 1) * step;
        switch ((usi_drive_mode)d->mode) {
        case USI_DRIVE_VELOCITY:
            view->drive_torque[drive->index] = 0;
            view->drive_velocity[drive->index] = d->value;
            // A position gain would pull back: its goal goes along.
            if (drive->kind == USI_DRIVE_BY_POSITION)
                view->drive_position[drive->index] = usi_read_q(r, sim, s, drive->joint) + d->value * step;
            break;
        case USI_DRIVE_POSITION:
            go_to(r, sim, s, k, d->value, 0, view);
            break;
        case USI_DRIVE_PROFILE: {
            usi_trapezoid_point at = usi_trapezoid_at(&d->profile, elapsed);
            go_to(r, sim, s, k, at.position, at.velocity, view);
            break;
        }
        case USI_DRIVE_TORQUE:
            view->drive_torque[drive->index] = d->value;
            // Gains would fight it: their goals are where the joint is.
            view->drive_position[drive->index] = usi_read_q(r, sim, s, drive->joint);
            view->drive_velocity[drive->index] = usi_read_v(r, sim, s, drive->joint);
            break;
        case USI_DRIVE_TRAJECTORY:
            follow(r, s, k, (double)(tick - s->trajectory_tick + 1) * step, d->value, &q, &v);
            go_to(r, sim, s, k, q, v, view);
            break;
        default:
            break;
        }
    }
}

// ---------------------------------------------------------------- battery

// Motors take the power they give, and give nothing back.
static double power_of(const usi_robot *r, const us_sim *sim) {
    const double *v = us_sim_view_v(sim), *torque = us_sim_view_torque(sim);
    double power = r->network->battery_idle;
    for (int32_t k = 0; k < r->n_drive; k++) {
        const usi_robot_joint *j = &r->joint[r->drive[k].joint];
        if (!j->is_lost) power += fmax(0, torque[r->drive[k].index] * v[j->v]);
    }
    return power;
}

// ---------------------------------------------------------------- without the computer

void usi_robot_hold(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    static const usi_drive_mode modes[] = {USI_DRIVE_POSITION, USI_DRIVE_VELOCITY, USI_DRIVE_TORQUE};
    usi_drive_state *d = usi_drives_of(r, s);
    for (int32_t k = 0; k < r->n_drive; k++) {
        d[k].mode = (int32_t)modes[r->drive[k].kind];
        d[k].value = r->drive[k].kind == USI_DRIVE_BY_POSITION ? usi_read_q(r, sim, s, r->drive[k].joint) : 0;
    }
}

void usi_robot_forget(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    // What is not in the computer's memory: faults, the battery, how the body moved, what is on its way by
    // radio.
    const usi_fault_state faults = s->faults;
    const usi_link_head uplink = s->uplink;
    const double energy = s->energy;
    double base_v[6];
    memcpy(base_v, s->base_v, sizeof base_v);
    memset(s, 0, sizeof *s);
    s->faults = faults;
    s->uplink = uplink;
    s->energy = energy;
    memcpy(s->base_v, base_v, sizeof base_v);
    s->motion_tick = s->refused_tick = -1;
    usi_drive_state *d = usi_drives_of(r, s);
    for (int32_t k = 0; k < r->n_drive; k++) {
        const usi_drive_state before = d[k];
        d[k] = (usi_drive_state){
            .lost = before.lost, .v_before = before.v_before, .is_fooled = before.is_fooled};
        d[k].told_position = before.told_position;
        d[k].told_velocity = before.told_velocity;
        d[k].told_torque = before.told_torque;
    }
    usi_robot_hold(r, sim, s);
}

// ---------------------------------------------------------------- all

// The battery, and what each drive has left of its strength.
static void power_drives(const usi_robot *r, const us_sim *sim, usi_robot_state *s, us_plugin_view *view) {
    const us_network_def *n = r->network;
    if (n->battery_capacity > 0 && usi_has_power(s))
        s->energy = fmin(s->energy + power_of(r, sim) * r->proxy->step, n->battery_capacity);
    // Nothing moves by an empty battery.
    bool is_off = (n->battery_capacity > 0 && s->energy >= n->battery_capacity) || !usi_has_power(s) ||
                  (n->lets_go && !usi_is_up(s));
    usi_drive_state *d = usi_drives_of(r, s);
    for (int32_t k = 0; k < r->n_drive; k++) {
        int32_t joint = r->drive[k].joint;
        d[k].v_before = usi_read_v(r, sim, s, joint);
        // What is behind a break gets no current.
        view->drive_limit_scale[r->drive[k].index] =
            d[k].is_off || is_off || r->joint[joint].is_lost ? 0 : 1 - d[k].lost;
    }
}

static void move(const usi_robot *r, const us_sim *sim, usi_robot_state *s, us_plugin_view *view) {
    int64_t tick = us_sim_get_tick(sim);
    double q[USI_MAX_WHEEL], steer[USI_MAX_WHEEL];
    if (r->locomotion.n_wheel > 0) {
        read_wheels(r, sim, s, q, steer);
        count_wheels(r, s, q, steer);
    }
    if (r->gait.n_leg > 0) count_steps(r, sim, s);
    power_drives(r, sim, s, view);
    watch(r, sim, s, tick);
    if (s->motion == USI_MOTION_SCENE) return;
    if (s->motion == USI_MOTION_ARC || s->motion == USI_MOTION_TURN) drive_far(r, s);
    if (s->motion == USI_MOTION_NAVIGATE) navigate(r, s);
    if (s->motion != USI_MOTION_JOINTS && r->locomotion.n_wheel > 0) roll(r, s, q, steer, view);
    if (s->motion != USI_MOTION_JOINTS && r->gait.n_leg > 0) walk(r, s, view);
    run_drives(r, sim, s, tick, view);
}

void usi_robot_control(const usi_robot *r, const us_sim *sim, usi_robot_state *s, us_plugin_view *view) {
    if (r->floating.i >= 0) memcpy(s->base_v, us_sim_view_v(sim) + r->base_v, sizeof s->base_v);
    usi_unfool_drives(r, s, view);
    if (usi_is_up(s)) {
        move(r, sim, s, view);
    } else {
        // Nobody tells the drives anything. Those without power hold, once they have it again, where they are
        // then.
        power_drives(r, sim, s, view);
        if (!usi_has_power(s) || r->network->lets_go) usi_robot_hold(r, sim, s);
        run_drives(r, sim, s, us_sim_get_tick(sim), view);
    }
    usi_fool_drives(r, sim, s, view);
}
