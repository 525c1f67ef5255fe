// Comparison of hardware and proxy.
//
// Every 50 ms of our time T, once both have published enough, the hardware's state at T is compared with the
// proxy's at T - lag, give or take `time`. A difference that a shift in time explains is none:
//
//     proxy      ____________
//               /:   :        the proxy's values within T - lag +- time span a band
//              / :   :
//     ________/  :   :
//     hardware     x          inside the band: 0; outside: the distance to it
//
// Differences are low-passed and divided by their tolerance; the largest ratio r gives the confidence
// exp(-r^2 / 2). The largest, and not the product over all: a robot of forty joints would never be trusted,
// and the name of the worst residual shows where to look.
//
// Poses are relative to the start of the comparison, each by its own odometry, so that the two need not stand
// in the same place; so are the angles of continuous joints, for wheels start at any angle.
#include "switch/shadow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wire/description.h"

enum { ODOM, JOINTS, IMU };                                            // groups that are compared
enum { O_X, O_Y, O_YAW, O_VX, O_VY, O_WZ, O_PATH, O_TURNED, N_ODOM };  // their channels
enum { I_RATE, I_ACCELERATION = 3, I_YAW = 6, I_TURNED, N_IMU };       //
enum { J_POSITION, J_SPEED, J_TURNED, N_OF_JOINT, N_JOINTS = N_OF_JOINT * USI_MAX_ESTIMATE_JOINT };

static const double step = 0.05;     // s between comparisons
static const double settling = 1;    // s of samples before the first: the clocks' offsets must be known
static const double thin = 0.009;    // s: samples that come faster are not kept
static const double clock_jump = 5;  // s: a stamp that is so far off was made by a clock that was set
static const double gap = 0.3;       // s without a sample over which nothing is compared; or three periods
static const double unknown_lag =
    0.7;  // s to either side while the lag is not known: 0.3 s each way, and some
static const double anchor_distance =
    0.05;                             // m, rad: distance is counted in such steps, so that noise adds nothing
static const double lag_lever = 0.5;  // m: a yaw rate counts in the lag's search as the speed at this radius
static const double joint_weight = 0.1;   // of a joint's speed, where there is no odometry
static const double smooth_imu = 0.2;     // s: of the inertial unit before samples are thinned out
static const double followers_time = 10;  // s after an event in which what follows belongs to it
static const double back_to_ok = 0.8;     // confidence above which all is well again
// Time for which the confidence must ask for a state before it is entered, s.
static const double hold_degraded = 0.5, hold_diverged = 1, hold_ok = 1;

// ---- definition ----

us_shadow_def usi_shadow_def_default(void) {
    return (us_shadow_def){.position = 0.25,
                           .position_growth = 0.01,
                           .yaw = 0.15,
                           .yaw_growth = 0.01,
                           .speed = 0.1,
                           .yaw_rate = 0.1,
                           .joint = 0.1,
                           .joint_growth = 0.1,
                           .joint_speed = 0.5,
                           .gyro = 0.05,
                           .accelerometer = 0.5,
                           .time = 0.2,
                           .degraded = 0.6,
                           .diverged = 0.135};
}

us_status usi_shadow_check(const us_shadow_def *def, us_error *err) {
    const double positive[] = {def->position, def->yaw,         def->speed, def->yaw_rate,
                               def->joint,    def->joint_speed, def->gyro,  def->accelerometer};
    const double growths[] = {def->position_growth, def->yaw_growth, def->joint_growth};
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++) {
        if (!(positive[i] > 0 && isfinite(positive[i])))
            return us_error_set(err, US_ERR_VALUE, NULL, "Give a number above 0.", "invalid tolerance %g",
                                positive[i]);
    }
    for (size_t i = 0; i < sizeof growths / sizeof growths[0]; i++) {
        if (!(growths[i] >= 0 && isfinite(growths[i])))
            return us_error_set(err, US_ERR_VALUE, NULL, "Give 0 or more.",
                                "invalid growth of a tolerance: %g", growths[i]);
    }
    if (!(def->time >= 0 && def->time <= 0.5))
        return us_error_set(err, US_ERR_VALUE, NULL, "Give 0 s to 0.5 s.", "invalid tolerance in time %g s",
                            def->time);
    if (!(def->diverged > 0 && def->diverged <= def->degraded && def->degraded <= back_to_ok))
        return us_error_set(err, US_ERR_VALUE, NULL, "Give 0 < diverged <= degraded <= 0.8.",
                            "invalid confidences: %g for diverged, %g for degraded", def->diverged,
                            def->degraded);
    return US_OK;
}

const char *us_shadow_state_name(us_shadow_state state) {
    static const char *const names[] = {"off", "ok", "degraded", "diverged"};
    return (unsigned)state <= (unsigned)US_SHADOW_DIVERGED ? names[state] : "";
}

// ---- beginning ----

static double our_time(const usi_shadow *s, int64_t now) { return 1e-9 * (double)(now - s->origin); }

// The recent samples and the clock. The distance driven is kept.
static void clear_history(usi_shadow_side *side) {
    side->has_origin = false;
    usi_clock_clear(&side->clock);
    for (int g = 0; g < USI_N_COMPARED; g++)
        usi_track_clear(&side->tracks[g]);
}

static void clear_residuals(usi_shadow *s) {
    memset(s->has_reference, 0, sizeof s->has_reference);
    memset(s->explained, 0, sizeof s->explained);
    memset(s->explained_at, 0, sizeof s->explained_at);
    for (int32_t i = 0; i < USI_MAX_RESIDUAL; i++)
        usi_residual_clear(&s->residuals[i]);
}

void usi_shadow_init(usi_shadow *s, const us_shadow_def *def, int64_t now) {
    static const int32_t widths[USI_N_COMPARED] = {[ODOM] = N_ODOM, [JOINTS] = N_JOINTS, [IMU] = N_IMU};
    memset(s, 0, sizeof *s);
    s->def = *def;
    s->origin = now;
    for (int i = 0; i < 2; i++) {
        double *values = s->values[i];
        for (int g = 0; g < USI_N_COMPARED; g++) {
            s->sides[i].tracks[g] = (usi_track){.width = widths[g], .value = values};
            values += USI_TRACK_SIZE * widths[g];
        }
    }
    usi_shadow_end(s);
}

void usi_shadow_begin(usi_shadow *s, int64_t now) {
    s->begun = s->since = our_time(s, now);
    for (int i = 0; i < 2; i++) {
        usi_shadow_side *side = &s->sides[i];
        clear_history(side);
        side->has_yaw = side->has_imu_yaw = false;
        memset(side->has_joint, 0, sizeof side->has_joint);
    }
    usi_lag_clear(&s->lag);
    s->lag_estimated = 0;
    memset(s->next, 0, sizeof s->next);
    clear_residuals(s);
    s->confidence = 0;
    s->worst = -1;
    s->state = US_SHADOW_DEGRADED;
    s->pending = s->event_time = -1;
    s->n_deviation = 0;
    s->is_event_new = false;
}

void usi_shadow_end(usi_shadow *s) {
    usi_shadow_begin(s, s->origin);
    s->state = US_SHADOW_OFF;
}

void usi_shadow_describe(usi_shadow *s, const char *urdf, size_t length) {
    usi_description_joint joint;
    size_t at = 0;
    s->n_described = 0;
    while (s->n_described < USI_MAX_ESTIMATE_JOINT && usi_description_next(urdf, length, &at, &joint)) {
        if (strcmp(joint.type, "continuous") == 0)
            snprintf(s->described[s->n_described++], USI_ESTIMATE_NAME, "%s", joint.name);
    }
}

// ---- taking samples ----

static double yaw_of(us_quat q) {
    return atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z));
}

// Unwraps an angle, and sums how far it has rotated in all.
static void follow(double angle, bool *has, double *io_angle, double *io_anchor, double *io_turned) {
    if (!*has) {
        *has = true;
        *io_angle = *io_anchor = angle;
        *io_turned = 0;
    }
    *io_angle += remainder(angle - *io_angle, 2 * M_PI);
    if (fabs(*io_angle - *io_anchor) >= anchor_distance) {
        *io_turned += fabs(*io_angle - *io_anchor);
        *io_anchor = *io_angle;
    }
}

static void read_odom(usi_shadow_side *side, const usi_estimate *e, double out[N_ODOM]) {
    double x = e->X_OB.p.x, y = e->X_OB.p.y;
    if (!side->has_yaw) {
        side->path = 0;
        side->anchor[0] = x;
        side->anchor[1] = y;
    }
    follow(yaw_of(e->X_OB.q), &side->has_yaw, &side->yaw, &side->anchor[2], &side->turned);
    double moved = hypot(x - side->anchor[0], y - side->anchor[1]);
    if (moved >= anchor_distance) {
        side->path += moved;
        side->anchor[0] = x;
        side->anchor[1] = y;
    }
    const double values[N_ODOM] = {x, y, side->yaw, e->v_B.x, e->v_B.y, e->w_B.z, side->path, side->turned};
    memcpy(out, values, sizeof values);
}

static void read_imu(usi_shadow_side *side, const usi_estimate *e, double time, double out[N_IMU]) {
    const double raw[6] = {e->w_I.x, e->w_I.y, e->w_I.z, e->a_I.x, e->a_I.y, e->a_I.z};
    double dt = time - side->smooth_time,
           share = side->tracks[IMU].n > 0 && dt < 1 ? dt / (dt + smooth_imu) : 1;
    side->smooth_time = time;
    for (int k = 0; k < 6; k++)
        side->smooth[k] += share * (raw[k] - side->smooth[k]);
    memcpy(out, side->smooth, sizeof side->smooth);
    out[I_YAW] = out[I_TURNED] = NAN;
    if (!e->has_orientation) return;
    follow(yaw_of(e->R_WI), &side->has_imu_yaw, &side->imu_yaw, &side->anchor[3], &side->imu_turned);
    out[I_YAW] = side->imu_yaw;
    out[I_TURNED] = side->imu_turned;
}

// The number of a joint here, which both sources share; -1 when there is no room.
static int32_t find_joint(usi_shadow *s, const char *name, int32_t guess) {
    if (guess < s->n_joint && !strcmp(s->joints[guess], name)) return guess;
    for (int32_t j = 0; j < s->n_joint; j++) {
        if (!strcmp(s->joints[j], name)) return j;
    }
    if (s->n_joint == USI_MAX_ESTIMATE_JOINT) return -1;
    int32_t j = s->n_joint++;
    snprintf(s->joints[j], sizeof s->joints[j], "%s", name);
    return j;
}

static void read_joints(usi_shadow *s, usi_shadow_side *side, const usi_estimate *e, double out[N_JOINTS]) {
    for (int32_t k = 0; k < N_JOINTS; k++)
        out[k] = NAN;
    for (int32_t i = 0; i < e->n_joint; i++) {
        int32_t j = find_joint(s, e->joint[i].name, i);
        if (j < 0) continue;
        double q = e->joint[i].position, *values = out + N_OF_JOINT * j;
        // without a description: a joint that has rotated more than once has no limits
        if (fabs(q) > 2 * M_PI) s->is_continuous[j] = true;
        for (int32_t k = 0; k < s->n_described; k++)
            s->is_continuous[j] = s->is_continuous[j] || !strcmp(s->described[k], s->joints[j]);
        if (!side->has_joint[j] && !isnan(q)) {
            side->has_joint[j] = true;
            side->joint_anchor[j] = q;
            side->joint_turned[j] = 0;
        }
        double turned = fabs(q - side->joint_anchor[j]);
        if (s->is_continuous[j]) turned = fabs(remainder(turned, 2 * M_PI));
        if (turned >= anchor_distance) {
            side->joint_turned[j] += turned;
            side->joint_anchor[j] = q;
        }
        values[J_POSITION] = q;
        values[J_SPEED] = e->joint[i].velocity;
        values[J_TURNED] = side->joint_turned[j];
    }
}

void usi_shadow_take(usi_shadow *s, us_switch_source source, usi_estimate_group group,
                     const usi_estimate *e) {
    if (s->state == US_SHADOW_OFF || group == USI_ESTIMATE_BATTERY || group == USI_N_ESTIMATE) return;
    int g = group == USI_ESTIMATE_ODOM ? ODOM : group == USI_ESTIMATE_JOINTS ? JOINTS : IMU;
    const int64_t times[] = {[ODOM] = e->odom_time, [JOINTS] = e->joints_time, [IMU] = e->imu_time};
    const int64_t heard_times[] = {[ODOM] = e->odom_heard, [JOINTS] = e->joints_heard, [IMU] = e->imu_heard};
    usi_shadow_side *side = &s->sides[source];
    usi_track *track = &side->tracks[g];
    double heard = our_time(s, heard_times[g]), time = 1e-9 * (double)(times[g] - side->origin);
    bool is_jump = side->has_origin &&
                   (fabs(heard - time - side->clock.median) > clock_jump || time < usi_track_newest(track));
    if (is_jump) clear_history(side);
    if (!side->has_origin) {
        side->has_origin = true;
        side->origin = times[g];
        time = 0;
    }
    usi_clock_put(&side->clock, time, heard);
    double values[USI_MAX_CHANNEL];
    switch (g) {
    case ODOM:
        read_odom(side, e, values);
        break;
    case JOINTS:
        read_joints(s, side, e, values);
        break;
    default:
        read_imu(side, e, time, values);
        break;
    }
    if (track->n == 0 || time - usi_track_newest(track) >= thin) usi_track_put(track, time, values);
}

// ---- comparing ----

// A point of the lag's grid from each source, as soon as its samples reach there.
static void feed_lag(usi_shadow *s) {
    const usi_track *odom[2] = {&s->sides[0].tracks[ODOM], &s->sides[1].tracks[ODOM]};
    bool has_odom = odom[0]->n > 0 && odom[1]->n > 0;
    for (int i = 0; i < 2; i++) {
        const usi_track *track = has_odom ? odom[i] : &s->sides[i].tracks[JOINTS];
        if (track->n == 0) continue;
        double offset = s->sides[i].clock.median, values[USI_MAX_CHANNEL];
        int64_t to = (int64_t)floor((usi_track_newest(track) + offset) / usi_lag_step);
        int64_t from = (int64_t)ceil((usi_track_oldest(track) + offset) / usi_lag_step);
        if (from <= s->lag.last[i]) from = s->lag.last[i] + 1;
        for (int64_t at = from; at <= to; at++) {
            if (!usi_track_at(track, usi_lag_step * (double)at - offset, gap, values)) continue;
            double a = 0, b = 0;
            if (has_odom) {
                a = values[O_VX];
                b = values[O_VY] + lag_lever * values[O_WZ];
            } else {
                for (int32_t j = 0; j < s->n_joint; j++) {
                    double v = values[N_OF_JOINT * j + J_SPEED];
                    if (!isnan(v)) a += joint_weight * fabs(v);
                }
            }
            usi_lag_put(&s->lag, i, at, a, b);
        }
    }
}

// Both states as the reference of relative quantities.
static void take_reference(usi_shadow *s, int g, const double *hardware, const double *proxy) {
    memcpy(s->reference[0][g], hardware, sizeof s->reference[0][g]);
    memcpy(s->reference[1][g], proxy, sizeof s->reference[1][g]);
    s->has_reference[g] = true;
}

// A pose since another one, in its axes.
static void relative_pose(const double *pose, const double *from, double out[3]) {
    double c = cos(from[O_YAW]), n = sin(from[O_YAW]), dx = pose[O_X] - from[O_X], dy = pose[O_Y] - from[O_Y];
    out[0] = c * dx + n * dy;
    out[1] = c * dy - n * dx;
    out[2] = pose[O_YAW] - from[O_YAW];
}

// What usi_track_band subtracts by.
typedef struct shadow_group {
    const usi_shadow *s;
    int g;
} shadow_group;

// Hardware less proxy, in the order of the group's residuals. Their number.
static int32_t subtract(const void *context, const double *hardware, const double *proxy, double *out) {
    const usi_shadow *s = ((const shadow_group *)context)->s;
    const int g = ((const shadow_group *)context)->g;
    const double *h0 = s->reference[0][g], *p0 = s->reference[1][g];
    if (g == ODOM) {
        double h[3], p[3];
        relative_pose(hardware, h0, h);
        relative_pose(proxy, p0, p);
        for (int k = 0; k < 3; k++) {
            out[k] = h[k] - p[k];
            out[3 + k] = hardware[O_VX + k] - proxy[O_VX + k];
        }
        out[2] = remainder(out[2], 2 * M_PI);
        return 6;
    }
    if (g == IMU) {
        for (int k = 0; k < 6; k++)
            out[k] = hardware[k] - proxy[k];
        out[6] = remainder(hardware[I_YAW] - h0[I_YAW] - (proxy[I_YAW] - p0[I_YAW]), 2 * M_PI);
        return 7;
    }
    for (int32_t j = 0; j < s->n_joint; j++) {
        int32_t q = N_OF_JOINT * j + J_POSITION, v = N_OF_JOINT * j + J_SPEED;
        out[2 * j] = hardware[q] - proxy[q];
        if (s->is_continuous[j]) out[2 * j] = remainder(out[2 * j] - h0[q] + p0[q], 2 * M_PI);
        out[2 * j + 1] = hardware[v] - proxy[v];
    }
    return 2 * s->n_joint;
}

// The tolerance of a group's residual k, and the time constant of its filter, s. While the lag is not known,
// what moved at the reference may have been taken that much too early or too late.
static double tolerance_of(const usi_shadow *s, int g, int32_t k, const double *hardware,
                           double *out_filter) {
    const us_shadow_def *def = &s->def;
    const double *h0 = s->reference[0][g], unsure = s->lag.is_known ? 0 : unknown_lag;
    *out_filter = 1;
    if (g == ODOM) {
        if (k >= 3) return k == 5 ? def->yaw_rate : def->speed;
        *out_filter = 0;
        double path = hardware[O_PATH] - h0[O_PATH], turned = hardware[O_TURNED] - h0[O_TURNED],
               yaw_error = unsure * fabs(h0[O_WZ]);
        if (k == 2) return def->yaw + def->yaw_growth * turned + yaw_error;
        return def->position + (def->position_growth + yaw_error) * path +
               unsure * hypot(h0[O_VX], h0[O_VY]) + fabs(s->explained[k]);
    }
    if (g == IMU) {
        if (k == 6) *out_filter = 0;
        if (k == 6)
            return def->yaw + def->yaw_growth * (hardware[I_TURNED] - h0[I_TURNED]) +
                   unsure * fabs(h0[I_RATE + 2]);
        return k < 3 ? def->gyro : def->accelerometer;
    }
    const double *joint = hardware + (size_t)N_OF_JOINT * (size_t)(k / 2),
                 *joint0 = h0 + (size_t)N_OF_JOINT * (size_t)(k / 2);
    if (k % 2) return def->joint_speed;
    if (!s->is_continuous[k / 2]) return def->joint;
    double speed = isnan(joint0[J_SPEED]) ? 0 : fabs(joint0[J_SPEED]);
    return def->joint + def->joint_growth * (joint[J_TURNED] - joint0[J_TURNED]) + unsure * speed;
}

static double gap_of(const usi_track *t) { return usi_track_gap(t, gap); }

// Distance between the two that their headings explain: the integral of the angle between them along the
// path, across it. It is added to the tolerance of the position, as the heading has a residual of its own.
static void explain(usi_shadow *s, const double *hardware, const double *proxy) {
    double difference[USI_MAX_CHANNEL], pose[3];
    subtract(&(shadow_group){s, ODOM}, hardware, proxy, difference);
    relative_pose(hardware, s->reference[0][ODOM], pose);
    s->explained[0] -= difference[2] * (pose[1] - s->explained_at[1]);
    s->explained[1] += difference[2] * (pose[0] - s->explained_at[0]);
    memcpy(s->explained_at, pose, sizeof s->explained_at);
}

// One comparison of a group, when there is one to make.
static bool compare(usi_shadow *s, int g) {
    static const int32_t first_residual[USI_N_COMPARED] = {
        [ODOM] = USI_POSE_X, [JOINTS] = USI_FIRST_JOINT, [IMU] = USI_RATE_X};
    const usi_track *h = &s->sides[0].tracks[g], *p = &s->sides[1].tracks[g];
    if (h->n == 0 || p->n == 0) return false;
    double offset_h = s->sides[0].clock.median, offset_p = s->sides[1].clock.median + s->lag.lag;
    double slack = s->lag.is_known ? s->def.time : unknown_lag;
    double from = fmax(usi_track_oldest(h) + offset_h, usi_track_oldest(p) + offset_p + slack);
    double to = fmin(usi_track_newest(h) + offset_h, usi_track_newest(p) + offset_p - slack);
    double time = fmax(fmax(s->next[g], from), s->begun + settling);
    if (time > to) return false;
    s->next[g] = time + step;
    double hardware[USI_MAX_CHANNEL], proxy[USI_MAX_CHANNEL], difference[USI_MAX_CHANNEL];
    int32_t n = 0;
    if (!usi_track_at(h, time - offset_h, gap_of(h), hardware)) return true;
    bool has_proxy = usi_track_at(p, time - offset_p, gap_of(p), proxy);
    if (!s->has_reference[g]) {
        if (has_proxy) take_reference(s, g, hardware, proxy);
        return true;
    }
    if (g == ODOM && has_proxy) explain(s, hardware, proxy);
    if (!usi_track_band(p, hardware, time - offset_p - slack, time - offset_p + slack, gap_of(p), subtract,
                        &(shadow_group){s, g}, difference, &n))
        return true;
    for (int32_t k = 0; k < n; k++) {
        double filter, tolerance = tolerance_of(s, g, k, hardware, &filter);
        usi_residual_update(&s->residuals[first_residual[g] + k], time, difference[k], tolerance,
                            step / (step + filter));
    }
    return true;
}

// ---- judging ----

// Residuals above their tolerance, in the order in which they came there; of those that came together the
// larger ratio first.
static void collect_deviations(usi_shadow *s) {
    s->n_deviation = 0;
    for (int32_t i = 0; i < USI_MAX_RESIDUAL; i++) {
        const usi_residual *r = &s->residuals[i];
        if (r->onset < 0) continue;
        int32_t at = s->n_deviation;
        while (at > 0) {
            const usi_deviation *before = &s->deviations[at - 1];
            double apart = r->onset - before->time;
            if (apart > 1e-9 || (apart > -1e-9 && r->ratio <= fabs(before->value) / before->tolerance)) break;
            at--;
        }
        if (at > USI_N_FOLLOWER) continue;
        int32_t n_moved = (s->n_deviation > USI_N_FOLLOWER ? USI_N_FOLLOWER : s->n_deviation) - at;
        memmove(&s->deviations[at + 1], &s->deviations[at], (size_t)n_moved * sizeof *s->deviations);
        s->deviations[at] =
            (usi_deviation){.residual = i, .value = r->value, .tolerance = r->tolerance, .time = r->onset};
        if (s->n_deviation <= USI_N_FOLLOWER) s->n_deviation++;
    }
}

// Residuals that came above their tolerance after the event, until there are three of them.
static void add_followers(usi_shadow *s) {
    for (int32_t i = 0; i < USI_MAX_RESIDUAL && s->n_deviation <= USI_N_FOLLOWER; i++) {
        const usi_residual *r = &s->residuals[i];
        bool is_known = false;
        for (int32_t k = 0; k < s->n_deviation; k++)
            is_known = is_known || s->deviations[k].residual == i;
        if (r->onset < 0 || is_known) continue;
        s->deviations[s->n_deviation++] =
            (usi_deviation){.residual = i, .value = r->value, .tolerance = r->tolerance, .time = r->onset};
        s->is_event_new = true;
    }
}

// Diverged is final until a resynchronisation: a rover with a dead motor that halts does the same as its
// proxy, and is not well.
static us_shadow_state wanted_state(const usi_shadow *s, double *out_hold) {
    *out_hold = hold_diverged;
    if (s->state == US_SHADOW_DIVERGED || (s->worst >= 0 && s->confidence < s->def.diverged))
        return US_SHADOW_DIVERGED;
    *out_hold = hold_degraded;
    if (s->confidence < s->def.degraded) return US_SHADOW_DEGRADED;
    *out_hold = hold_ok;
    return s->confidence > back_to_ok ? US_SHADOW_OK : s->state;
}

static void judge(usi_shadow *s, double now) {
    double worst = 0;
    s->worst = -1;
    for (int32_t i = 0; i < USI_MAX_RESIDUAL; i++) {
        usi_residual *r = &s->residuals[i];
        if (r->compared < 0) continue;
        if (now - r->compared > usi_residual_stale + unknown_lag + usi_lag_step * (double)USI_LAG_REACH) {
            usi_residual_clear(r);
        } else if (s->worst < 0 || r->ratio > worst) {
            worst = r->ratio;
            s->worst = i;
        }
    }
    s->confidence = s->worst < 0 ? 0 : exp(-0.5 * worst * worst);
    double hold;
    us_shadow_state wanted = wanted_state(s, &hold);
    if (wanted == s->state) {
        s->pending = -1;
    } else if (s->pending < 0) {
        s->pending = now;
    } else if (now - s->pending >= hold) {
        s->state = wanted;
        s->since = now;
        s->pending = -1;
        if (wanted == US_SHADOW_DIVERGED) {
            collect_deviations(s);
            s->event_time = now;
            s->is_event_new = true;
        }
    }
    if (s->state == US_SHADOW_DIVERGED && now - s->event_time < followers_time) add_followers(s);
}

void usi_shadow_step(usi_shadow *s, int64_t now) {
    if (s->state == US_SHADOW_OFF) return;
    double time = our_time(s, now);
    usi_clock_settle(&s->sides[0].clock);
    usi_clock_settle(&s->sides[1].clock);
    feed_lag(s);
    if (time - s->lag_estimated >= 1) {
        s->lag_estimated = time;
        bool was_known = s->lag.is_known;
        usi_lag_estimate(&s->lag);
        // references taken before may belong to two different times
        if (!was_known && s->lag.is_known) clear_residuals(s);
    }
    // at most 20 per group: after a pause of the machine, the rest follows in the next steps
    for (int g = 0; g < USI_N_COMPARED; g++) {
        for (int n = 0; n < 20 && compare(s, g); n++)
            continue;
    }
    judge(s, time);
}

void usi_shadow_residual_name(const usi_shadow *s, int32_t i, char out[USI_RESIDUAL_NAME]) {
    static const char *const names[USI_FIRST_JOINT] = {"pose.x",
                                                       "pose.y",
                                                       "pose.yaw",
                                                       "speed.x",
                                                       "speed.y",
                                                       "speed.yaw",
                                                       "imu.rate.x",
                                                       "imu.rate.y",
                                                       "imu.rate.z",
                                                       "imu.acceleration.x",
                                                       "imu.acceleration.y",
                                                       "imu.acceleration.z",
                                                       "imu.yaw"};
    out[0] = 0;
    if (i < 0 || i >= USI_MAX_RESIDUAL) return;
    if (i < USI_FIRST_JOINT) {
        snprintf(out, USI_RESIDUAL_NAME, "%s", names[i]);
    } else {
        int32_t j = (i - USI_FIRST_JOINT) / 2;
        snprintf(out, USI_RESIDUAL_NAME, "%s.%s", s->joints[j],
                 (i - USI_FIRST_JOINT) % 2 ? "speed" : "position");
    }
}
