// Driving the hardware to where the proxy is, before it takes over.
//
// Nobody else commands the hardware while the proxy plays, so the switch may, by the robot's own cmd_vel:
// turn towards the point (or away from it, and drive backwards), drive there, turn to the heading. Both poses
// are in the same odometry frame, for the proxy's went on from the hardware's. When it stands there, the
// joints that steer are brought to the proxy's angles by motor_group/command, where the hardware has that.
// The end is not decided here: the hand-over that follows compares the two as always.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kincontrol/odometry.h"
#include "switch/switch.h"
#include "wire/messages.h"

static const int64_t every = INT64_C(50000000);       // ns between commands: 20 Hz, as operators do
static const int64_t patience = INT64_C(5000000000);  // ns without progress: stuck
static const int64_t joints_every = INT64_C(1500000000);
static const double PROGRESS = 0.01;  // m
static const double LEVER = 0.3;      // m: an angle counts as the way of a point this far out
static const double ASIDE = 0.5;      // rad: with the point further aside it turns first
static const double GAIN = 1.5;       // 1/s
static const double SHARE = 0.5;      // of the limits: good enough, with room to spare for the comparison
static const double TOO_FAR = 0.9;    // of the limit: back to the point first

static double clamp(double x, double most) { return fmax(-most, fmin(most, x)); }

void usi_match_steer(const us_handover_def *def, const double from[3], const double goal[3], bool *is_turning,
                     double out[2], double *out_left) {
    double at[3];
    usi_odometry_between(from, goal, at);
    double distance = hypot(at[0], at[1]), bearing = atan2(at[1], at[0]), ahead = 1;
    out[0] = out[1] = 0;
    if (distance < SHARE * def->position) *is_turning = true;
    if (distance > TOO_FAR * def->position) *is_turning = false;
    if (*is_turning) {
        *out_left = LEVER * fabs(at[2]);
        if (fabs(at[2]) > SHARE * def->yaw) out[1] = clamp(GAIN * at[2], def->match_turn);
        return;
    }
    // What lies behind is reached backwards.
    if (fabs(bearing) > M_PI / 2) {
        bearing += bearing > 0 ? -M_PI : M_PI;
        ahead = -1;
    }
    *out_left = distance + LEVER * fabs(bearing);
    out[1] = clamp(GAIN * bearing, def->match_turn);
    if (fabs(bearing) < ASIDE) out[0] = ahead * fmin(def->match_speed, GAIN * distance);
}

// ---- commands
// ----------------------------------------------------------------

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
    return writer && !us_message_encode(type, message, bytes, sizeof bytes, &length) &&
           !us_writer_write(writer, bytes, length, 0);
}

static bool send_velocity(us_switch *sw, const double velocity[2]) {
    us_msg_twist_stamped m = {.header.frame_id = usi_text("")};
    m.twist.linear.x = velocity[0];
    m.twist.angular.z = velocity[1];
    return send(sw, usi_type_twist, &m.twist) || send(sw, usi_type_twist_stamped, &m);
}

// Joints with a motor and an end to where the proxy has them.
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

// ---- the way
// ----------------------------------------------------------------

us_status usi_match_begin(us_switch *sw, us_error *err) {
    usi_handover *h = &sw->handover;
    usi_estimate hardware, proxy;
    usi_switch_get_estimate(sw, US_SWITCH_HARDWARE, &hardware);
    usi_switch_get_estimate(sw, US_SWITCH_PROXY, &proxy);
    if (sw->authority.control != US_SWITCH_PROXY)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL,
                            "the proxy is not in control: there is nothing to match");
    if (!hardware.odom_heard || !proxy.odom_heard)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the %s tells no odometry",
                            hardware.odom_heard ? "proxy" : "hardware");
    if (!find_writer(sw, usi_type_twist) && !find_writer(sw, usi_type_twist_stamped))
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the hardware listens to no cmd_vel");
    if (hypot(proxy.v_B.x, proxy.v_B.y) > h->def.speed || fabs(proxy.w_B.z) > h->def.turn)
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

usi_match_state usi_match_tick(us_switch *sw, char *why, size_t cap) {
    usi_handover *h = &sw->handover;
    usi_match *m = &h->match;
    int64_t now = usi_switch_now();
    if (!m->is_on) return USI_MATCH_NONE;
    if (now - m->sent < every) return USI_MATCH_ON_ITS_WAY;
    usi_estimate hardware, proxy;
    usi_switch_get_estimate(sw, US_SWITCH_HARDWARE, &hardware);
    usi_switch_get_estimate(sw, US_SWITCH_PROXY, &proxy);
    double from[3], goal[3], v[3], rest[3], speed[2],
        left = 0, dt = fmin(1e-9 * (double)(now - (m->sent ? m->sent : now)), 0.1);
    usi_estimate_planar(&hardware, now, from, v);
    usi_estimate_planar(&proxy, now, goal, rest);
    // While it is not heard it stands; when that lasts, it is lost.
    int64_t silence = now - hardware.odom_heard;
    if (silence > 4 * sw->authority.watchdog)
        return fail(sw, why, cap, "the hardware has not told where it is for %.2f s", 1e-9 * (double)silence);
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
    double step[2] = {h->def.acceleration > 0 ? h->def.acceleration * dt : INFINITY,
                      h->def.turn_acceleration > 0 ? h->def.turn_acceleration * dt : INFINITY};
    for (int i = 0; i < 2; i++)
        m->speed[i] += clamp(speed[i] - m->speed[i], step[i]);
    m->sent = now;
    bool is_there = !is_blind && m->is_turning && speed[1] == 0 && m->speed[0] == 0 && m->speed[1] == 0;
    if (!is_there) {
        if (now - m->better > patience)
            return fail(sw, why, cap, "the hardware is stuck on its way to the proxy's pose: %.2f m are left",
                        left);
        send_velocity(sw, m->speed);
        return USI_MATCH_ON_ITS_WAY;
    }
    if (!m->is_arrived) {
        m->is_arrived = true;
        m->better = now;
    }
    usi_difference d = usi_handover_compare(sw, &hardware, &proxy, now);
    char differs[160];
    if (usi_handover_agree(&h->def, &d, differs, sizeof differs)) {
        m->is_on = false;
        return USI_MATCH_THERE;
    }
    // A motor that is told its goal again begins anew: not too often.
    if (now - m->joints_sent > joints_every) {
        m->joints_sent = now;
        send_joints(sw, &hardware, &proxy);
    }
    if (now - m->better <= patience) return USI_MATCH_ON_ITS_WAY;
    m->is_on = false;
    snprintf(why, cap, "the hardware was driven there, and still %.110s", differs);
    return USI_MATCH_FAILED;
}
