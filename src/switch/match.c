// Pose matching: the hardware is driven to the proxy's pose before it takes over.
//
// Nobody else commands the hardware while the proxy is in control, so the switch may, by the robot's own
// cmd_vel: rotate towards the point (or away from it, and drive backwards), drive there, rotate to the
// heading. Both poses are in the same odometry frame, for the proxy's continued from the hardware's. At the
// pose, the steering joints are brought to the proxy's angles by motor_group/command, where the hardware has
// it. The hand-over that follows compares the two as always.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kincontrol/odometry.h"
#include "switch/switch.h"
#include "wire/messages.h"

static const int64_t command_every = INT64_C(50000000);   // ns: 20 Hz, as operators do
static const int64_t joints_every = INT64_C(1500000000);  // ns between commands to the steering joints
static const int64_t stuck_after = INT64_C(5000000000);   // ns without progress
static const double PROGRESS = 0.01;                      // m
static const double LEVER = 0.3;                          // m: an angle counts as the arc at this radius
static const double MAX_BEARING = 0.5;  // rad: with the point further aside it rotates first
static const double GAIN = 1.5;         // 1/s
static const double REACHED = 0.5;      // fraction of the limits: leaves room for noise
static const double LEFT = 0.9;         // fraction of the limit: back to the point first

static double clamp(double x, double max) { return fmax(-max, fmin(max, x)); }

void usi_match_steer(const us_handover_def *def, const double from[3], const double goal[3], bool *is_turning,
                     double out[2], double *out_left) {
    double at[3];
    usi_odometry_between(from, goal, at);
    double distance = hypot(at[0], at[1]), bearing = atan2(at[1], at[0]), ahead = 1;
    out[0] = out[1] = 0;
    if (distance < REACHED * def->position) *is_turning = true;
    if (distance > LEFT * def->position) *is_turning = false;
    if (*is_turning) {
        *out_left = LEVER * fabs(at[2]);
        if (fabs(at[2]) > REACHED * def->yaw) out[1] = clamp(GAIN * at[2], def->match_yaw_rate);
        return;
    }
    // a point behind is reached backwards
    if (fabs(bearing) > M_PI / 2) {
        bearing += bearing > 0 ? -M_PI : M_PI;
        ahead = -1;
    }
    *out_left = distance + LEVER * fabs(bearing);
    out[1] = clamp(GAIN * bearing, def->match_yaw_rate);
    if (fabs(bearing) < MAX_BEARING) out[0] = ahead * fmin(def->match_speed, GAIN * distance);
}

// ---- commands ----

static us_writer *find_writer(us_switch *sw, const us_message_type *type) {
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        const usi_route *route = &sw->routes[i];
        us_writer *writer = atomic_load(&route->sides[US_SWITCH_HARDWARE].writer);
        if (route->is_command && route->type == type && writer) return writer;
    }
    return NULL;
}

static bool send(us_switch *sw, const us_message_type *type, const void *message) {
    uint8_t bytes[8192];
    size_t length = 0;
    us_writer *writer = find_writer(sw, type);
    return writer && usi_lease_permits(sw, US_SWITCH_HARDWARE) &&
           !us_message_encode(type, message, bytes, sizeof bytes, &length) &&
           !us_writer_write(writer, bytes, length, 0);
}

static bool send_velocity(us_switch *sw, const double velocity[2]) {
    us_msg_twist_stamped m = {.header.frame_id = usi_text("")};
    m.twist.linear.x = velocity[0];
    m.twist.angular.z = velocity[1];
    return send(sw, usi_type_twist, &m.twist) || send(sw, usi_type_twist_stamped, &m);
}

// Joints with a motor and limits to the proxy's positions.
static void send_joints(us_switch *sw, const usi_estimate *hardware, const usi_estimate *proxy) {
    us_msg_motor_profile motors[USI_MAX_ESTIMATE_JOINT];
    us_msg_motor_group_command m = {.header.frame_id = usi_text("")};
    m.motors._buffer = motors;
    pthread_rwlock_wrlock(&sw->gate);
    const char *description = usi_switch_description(sw);
    for (int32_t i = 0; i < hardware->n_joint && description; i++) {
        for (int32_t k = 0; k < proxy->n_joint; k++) {
            const usi_estimate_joint *j = &proxy->joint[k];
            if (strcmp(j->name, hardware->joint[i].name) != 0 || isnan(j->position) ||
                !usi_handover_is_steered(description, j->name))
                continue;
            motors[m.motors._length++] =
                (us_msg_motor_profile){.name = usi_text(j->name), .mode = 2, .value = j->position};
        }
    }
    pthread_rwlock_unlock(&sw->gate);
    m.motors._maximum = m.motors._length;
    if (m.motors._length > 0) send(sw, usi_type_motor_group_command, &m);
}

// ---- driving ----

us_status usi_match_begin(us_switch *sw, us_error *err) {
    usi_handover *h = &sw->handover;
    usi_estimate hardware, proxy;
    usi_switch_get_estimate(sw, US_SWITCH_HARDWARE, &hardware);
    usi_switch_get_estimate(sw, US_SWITCH_PROXY, &proxy);
    if (sw->authority.control != US_SWITCH_PROXY)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL,
                            "the proxy is not in control: there is nothing to match");
    if (!hardware.odom_heard || !proxy.odom_heard)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the %s publishes no odometry",
                            hardware.odom_heard ? "proxy" : "hardware");
    if (!find_writer(sw, usi_type_twist) && !find_writer(sw, usi_type_twist_stamped))
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the hardware subscribes to no cmd_vel");
    if (hypot(proxy.v_B.x, proxy.v_B.y) > h->def.speed || fabs(proxy.w_B.z) > h->def.yaw_rate)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the proxy moves: stop it first");
    int64_t now = usi_switch_now();
    h->match = (usi_match){.is_on = true, .since = now, .better = now, .best = INFINITY};
    return US_OK;
}

void usi_match_end(us_switch *sw) {
    if (!sw->handover.match.is_on) return;
    sw->handover.match.is_on = false;
    send_velocity(sw, (const double[2]){0, 0});
}

static usi_match_state fail(us_switch *sw, char *why, size_t cap, const char *text, double value) {
    usi_match_end(sw);
    snprintf(why, cap, text, value);
    return USI_MATCH_FAILED;
}

// At the pose: the steering joints follow, until the two agree or nothing changes any more.
static usi_match_state finish(us_switch *sw, const usi_estimate *hardware, const usi_estimate *proxy,
                              int64_t now, char *why, size_t cap) {
    usi_handover *h = &sw->handover;
    usi_match *m = &h->match;
    if (!m->is_arrived) {
        m->is_arrived = true;
        m->better = now;
    }
    usi_handover_difference d = usi_handover_compare(sw, hardware, proxy, now);
    char differs[160];
    if (usi_handover_agree(&h->def, &d, differs, sizeof differs)) {
        m->is_on = false;
        return USI_MATCH_ARRIVED;
    }
    // seldom: each command makes a motor restart its profile
    if (now - m->joints_sent > joints_every) {
        m->joints_sent = now;
        send_joints(sw, hardware, proxy);
    }
    if (now - m->better <= stuck_after) return USI_MATCH_DRIVING;
    m->is_on = false;
    snprintf(why, cap, "the hardware was driven there, and still %.110s", differs);
    return USI_MATCH_FAILED;
}

usi_match_state usi_match_tick(us_switch *sw, char *why, size_t cap) {
    usi_handover *h = &sw->handover;
    usi_match *m = &h->match;
    int64_t now = usi_switch_now();
    if (!m->is_on) return USI_MATCH_NONE;
    if (now - m->sent < command_every) return USI_MATCH_DRIVING;

    // poses; without odometry the hardware stands, and fails when that lasts
    usi_estimate hardware, proxy;
    usi_switch_get_estimate(sw, US_SWITCH_HARDWARE, &hardware);
    usi_switch_get_estimate(sw, US_SWITCH_PROXY, &proxy);
    double from[3], goal[3], unused[3], speed[2], left = 0;
    usi_estimate_planar(&hardware, now, from, unused);
    usi_estimate_planar(&proxy, now, goal, unused);
    int64_t silence = now - hardware.odom_heard;
    if (silence > 4 * sw->authority.watchdog)
        return fail(sw, why, cap, "the hardware has published no odometry for %.2f s",
                    1e-9 * (double)silence);

    // the velocity that brings it there, and progress
    bool was_turning = m->is_turning;
    usi_match_steer(&h->def, from, goal, &m->is_turning, speed, &left);
    bool is_blind = silence > sw->authority.watchdog / 2;
    if (is_blind) speed[0] = speed[1] = 0;
    if (left < m->best - PROGRESS || was_turning != m->is_turning) {
        m->best = left;
        m->better = now;
    }
    if (1e-9 * (double)(now - m->since) > h->def.match_time)
        return fail(sw, why, cap, "the hardware was not at the proxy's pose after %.0f s", h->def.match_time);

    // bounded acceleration
    double dt = fmin(1e-9 * (double)(now - (m->sent ? m->sent : now)), 0.1);
    double step[2] = {h->def.acceleration > 0 ? h->def.acceleration * dt : INFINITY,
                      h->def.yaw_acceleration > 0 ? h->def.yaw_acceleration * dt : INFINITY};
    for (int i = 0; i < 2; i++)
        m->speed[i] += clamp(speed[i] - m->speed[i], step[i]);
    m->sent = now;

    // arrival, or the next command
    bool is_there = !is_blind && m->is_turning && speed[1] == 0 && m->speed[0] == 0 && m->speed[1] == 0;
    if (is_there) return finish(sw, &hardware, &proxy, now, why, cap);
    if (now - m->better > stuck_after)
        return fail(sw, why, cap, "the hardware is stuck on its way to the proxy's pose: %.2f m are left",
                    left);
    send_velocity(sw, m->speed);
    return USI_MATCH_DRIVING;
}
