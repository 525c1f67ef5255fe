// How a walker walks. In the tripod gait three feet stand and carry the body while the other three swing
// forward; then they change:
//
//     phase       0                 duty        1        each foot stands for `duty` of the period. Above one
//     half there tripod 0    |##### stands #####|  swings  |        are two moments in a cycle in which all
//     six stand, and the load tripod 1    |stands|  swings  |## stands #|        passes from three feet to
//     the others.
//
// In the wave gait one foot swings at a time, from the rear to the front on the right and then on the left,
// and it does so with one leg less too: the legs that are left stand so that the body is over their middle,
// away from the one that is spared. A swing takes as long as in the other gait.
//
//     phase     0    1/5   2/5   3/5   4/5    1          five legs
//     foot 0    |##########################|~~~|         # stands, ~ swings
//     foot 1    |~~~|##########################|         ...
//
// A foot that stands does not move over the ground: in the frame of the base it moves against the body,
// exactly as a rigid motion does, so that the feet do not pull against each other. A foot that swings goes
// along with the ground too, and over it to the place from which its next stand begins, half a stand ahead of
// the middle of its step; that motion over the ground begins and ends at rest, so that it lifts off and
// touches down without being dragged. Each tick takes it a share of what is left of the way: whatever becomes
// of the body's velocity meanwhile, the foot never jumps, and it arrives. In the second half of a swing the
// place is no longer chosen anew, for there is not enough time to go elsewhere.
#include "firmware/gait.h"

#include <math.h>
#include <string.h>

#include "kincontrol/odometry.h"

static const double PI = 3.14159265358979323846;

// m: feet nearer than this to the middle of their steps need no further step.
static const double AT_REST = 1e-3;

// m/s: how fast the body goes up or down to its height over the feet.
static const double RISE = 0.1;

// A leg is never quite stretched or folded: there small ways of the foot are large ones of the joints.
static const double SLACK = 1e-3;

// Of the time that each leg of a wave has for its swing, the share in which it does: then all stand, and the
// next one takes over.
static const double WAVE_SWING = 0.9;

static double wrap(double angle) { return remainder(angle, 2 * PI); }

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// ---------------------------------------------------------------- one leg

// Seen from the side, r outwards from the hip and z upwards:
//
//                     knee
//           coxa    /      \   tibia            a: elevation of the femur
//     hip -------- / femur  \                   b: elevation of the tibia, mostly about -90 degrees
//          axis                foot
void usi_leg_foot(const usi_leg *leg, const double q[3], double out_foot[3]) {
    double yaw = leg->heading + leg->sign[0] * q[0], lift = leg->sign[1] * q[1];
    double a = leg->femur_zero + lift, b = leg->tibia_zero + lift + leg->sign[2] * q[2];
    double r = leg->coxa + leg->femur * cos(a) + leg->tibia * cos(b);
    out_foot[0] = leg->hip[0] + r * cos(yaw);
    out_foot[1] = leg->hip[1] + r * sin(yaw);
    out_foot[2] = leg->hip[2] + leg->femur * sin(a) + leg->tibia * sin(b);
}

bool usi_leg_reach(const usi_leg *leg, const double foot[3], double out_q[3]) {
    double x = foot[0] - leg->hip[0], y = foot[1] - leg->hip[1], z = foot[2] - leg->hip[2];
    double r = hypot(x, y) - leg->coxa, d = hypot(r, z), f = leg->femur, t = leg->tibia;
    double yaw = x == 0 && y == 0 ? leg->heading : atan2(y, x), line = atan2(z, r);
    double min = fabs(f - t) + SLACK * (f + t), max = (1 - SLACK) * (f + t), reach = clamp(d, min, max);
    bool is_reached = reach == d;
    // The corner at the hip of the triangle femur, tibia, reach; its area by Heron's formula has no
    // cancellation.
    double area = sqrt(fmax((f + t + reach) * (f + t - reach) * (reach + f - t) * (reach - f + t), 0));
    double a = line + atan2(area, f * f + reach * reach - t * t);
    double b = atan2(reach * sin(line) - f * sin(a), reach * cos(line) - f * cos(a));
    double angle[3] = {wrap(yaw - leg->heading), wrap(a - leg->femur_zero), 0};
    angle[2] = wrap(b - leg->tibia_zero - angle[1]);
    for (int i = 0; i < 3; i++) {
        double q = leg->sign[i] * angle[i];
        out_q[i] = clamp(q, leg->lower[i], leg->upper[i]);
        is_reached = is_reached && out_q[i] == q;
    }
    return is_reached;
}

// ---------------------------------------------------------------- the gait

void usi_gait_assign_tripods(usi_gait *gait) {
    for (int32_t i = 0; i < gait->n_leg; i++) {
        const double *n = gait->leg[i].neutral;
        double angle = atan2(n[1], n[0]);
        int32_t before = 0;
        for (int32_t k = 0; k < gait->n_leg; k++) {
            double other = atan2(gait->leg[k].neutral[1], gait->leg[k].neutral[0]);
            before += other < angle || (other == angle && k < i);
        }
        gait->leg[i].tripod = before % 2;
    }
}

static bool is_spared(const usi_gait_state *s, int32_t leg) { return (s->spared >> leg & 1) != 0; }

static int32_t count_legs(const usi_gait *gait, uint32_t spared) {
    int32_t n = 0;
    for (int32_t i = 0; i < gait->n_leg; i++)
        n += (spared >> i & 1) == 0;
    return n;
}

static double duty_of(const usi_gait *gait, const usi_gait_state *s) {
    return s->kind == USI_GAIT_WAVE ? 1 - WAVE_SWING / count_legs(gait, s->spared) : gait->duty;
}

static double period_of(const usi_gait *gait, const usi_gait_state *s) {
    return s->kind == USI_GAIT_WAVE ? gait->period * (1 - gait->duty) / (1 - duty_of(gait, s)) : gait->period;
}

// The middle of a leg's step: with the body over the middle of all that are left, as it is over that of all
// six.
static void middle_of(const usi_gait *gait, const usi_gait_state *s, int32_t leg, double out[2]) {
    double n = count_legs(gait, s->spared);
    for (int k = 0; k < 2; k++) {
        out[k] = gait->leg[leg].neutral[k];
        for (int32_t i = 0; i < gait->n_leg; i++)
            out[k] += is_spared(s, i) ? gait->leg[i].neutral[k] / n : 0;
    }
}

bool usi_gait_choose(const usi_gait *gait, usi_gait_state *s, usi_gait_kind kind, uint32_t spared) {
    if (count_legs(gait, spared) < 4 || (kind == USI_GAIT_TRIPOD && spared != 0)) return false;
    s->next_kind = (int32_t)kind;
    s->next_spared = spared;
    return true;
}

void usi_gait_start(const usi_gait *gait, usi_gait_state *s, const double (*q)[3]) {
    for (int32_t i = 0; i < gait->n_leg; i++) {
        usi_leg_foot(&gait->leg[i], q[i], s->foot[i]);
        s->goal[i][0] = s->foot[i][0];
        s->goal[i][1] = s->foot[i][1];
    }
    s->phase = 0;
    s->is_on = 1;
    s->is_limited = 0;
}

// Where a point of the base's frame comes to lie, in the frame as it is now, when the base has moved with the
// body velocity for a time.
static void carry(const double body[3], double time, const double point[2], double out[2]) {
    double X[3] = {0, 0, 0};
    usi_odometry_move(X, body, time);
    double c = cos(X[2]), s = sin(X[2]);
    out[0] = X[0] + c * point[0] - s * point[1];
    out[1] = X[1] + s * point[0] + c * point[1];
}

static double phase_of(const usi_gait *gait, const usi_gait_state *s, int32_t leg) {
    double phase = s->phase + 0.5 * gait->leg[leg].tripod;
    if (s->kind == USI_GAIT_WAVE) {
        // Its turn: the right side from the rear to the front, then the left.
        const double *own = gait->leg[leg].neutral;
        int32_t turn = 0, n = count_legs(gait, s->spared);
        for (int32_t i = 0; i < gait->n_leg; i++) {
            const double *other = gait->leg[i].neutral;
            bool is_left = own[1] > 0, is_other_left = other[1] > 0;
            turn += !is_spared(s, i) && (is_other_left != is_left ? is_left : other[0] < own[0]);
        }
        phase = turn > 0 ? s->phase + 1 - (double)turn / n : s->phase;
    }
    return phase >= 1 ? phase - 1 : phase;
}

static bool is_in_air(const usi_gait *gait, const usi_gait_state *s, int32_t leg) {
    return is_spared(s, leg) || phase_of(gait, s, leg) >= duty_of(gait, s);
}

// The velocity that was commanded, once all feet stand: there both begin, with their phase at 0.
static void change(const usi_gait *gait, usi_gait_state *s) {
    if (s->next_kind == s->kind && s->next_spared == s->spared) return;
    for (int32_t i = 0; i < gait->n_leg; i++) {
        if (!is_spared(s, i) && is_in_air(gait, s, i)) return;
    }
    s->kind = s->next_kind;
    s->spared = s->next_spared;
    s->phase = 0;
}

// Both ends of each foot's way over the ground must be within reach; and where a foot that stands will lift
// off, which in the first step from rest is further behind.
static bool is_possible(const usi_gait *gait, const usi_gait_state *s, const double body[3]) {
    double duty = duty_of(gait, s), period = period_of(gait, s), half = 0.5 * duty * period, q[3];
    for (int32_t i = 0; i < gait->n_leg; i++) {
        if (is_spared(s, i)) continue;
        double left = (duty - phase_of(gait, s, i)) * period, last[3] = {0, 0, gait->ground}, middle[2];
        middle_of(gait, s, i, middle);
        carry(body, -left, s->foot[i], last);
        if (left > 0 && !usi_leg_reach(&gait->leg[i], last, q)) return false;
        for (int end = -1; end <= 1; end += 2) {
            double foot[3] = {0, 0, gait->ground};
            carry(body, end * half, middle, foot);
            if (!usi_leg_reach(&gait->leg[i], foot, q)) return false;
        }
    }
    return true;
}

// The same motion, as fast as the legs allow.
static void slow_down(const usi_gait *gait, usi_gait_state *s, const double body[3], double out[3]) {
    memcpy(out, body, 3 * sizeof *out);
    s->is_limited = !is_possible(gait, s, out);
    double low = 0, high = 1;
    for (int tries = 0; s->is_limited && tries < 12; tries++) {
        double share = 0.5 * (low + high);
        for (int i = 0; i < 3; i++)
            out[i] = share * body[i];
        if (is_possible(gait, s, out)) {
            low = share;
        } else {
            high = share;
        }
    }
    for (int i = 0; s->is_limited && i < 3; i++)
        out[i] = low * body[i];
}

// Whether it takes steps: it moves, or some foot is not where it rests, or not all stand.
static bool is_walking(const usi_gait *gait, const usi_gait_state *s, const double body[3]) {
    bool walks = body[0] != 0 || body[1] != 0 || body[2] != 0;
    for (int32_t i = 0; i < gait->n_leg; i++) {
        double n[2];
        if (is_spared(s, i)) continue;
        middle_of(gait, s, i, n);
        walks = walks || hypot(s->foot[i][0] - n[0], s->foot[i][1] - n[1]) > AT_REST || is_in_air(gait, s, i);
    }
    return walks;
}

// Rest to rest over u from 0 to 1.
static double smooth(double u) { return u * u * (3 - 2 * u); }

// A foot in the air from u to w of its swing; it and its goal have moved with the ground already. Returns its
// lift.
static double swing(const usi_gait *gait, usi_gait_state *s, int32_t leg, const double body[3], double u,
                    double w) {
    double to[2], middle[2], duty = duty_of(gait, s), stand = duty * period_of(gait, s),
                             air = (1 - duty) * period_of(gait, s);
    double *foot = s->foot[leg], *goal = s->goal[leg];
    middle_of(gait, s, leg, middle);
    carry(body, 0.5 * stand, middle, to);
    if (u < 0.5) carry(body, (1 - w) * air, to, goal);
    double share = w < 1 ? (smooth(w) - smooth(u)) / (1 - smooth(u)) : 1;
    for (int i = 0; i < 2; i++)
        foot[i] += share * (goal[i] - foot[i]);
    double bump = 4 * w * (1 - w);
    return gait->step_height * bump * bump;
}

void usi_gait_step(const usi_gait *gait, usi_gait_state *s, const double body[3], double time,
                   double (*out_q)[3]) {
    double v[3];
    change(gait, s);
    slow_down(gait, s, body, v);
    const double duty = duty_of(gait, s), air = 1 - duty,
                 further = is_walking(gait, s, v) ? time / period_of(gait, s) : 0;
    for (int32_t i = 0; i < gait->n_leg; i++) {
        double *foot = s->foot[i], at[3], lift = 0;
        if (is_spared(s, i)) {
            // Twice as high as others step.
            foot[2] += clamp(gait->ground + 2 * gait->step_height - foot[2], -RISE * time, RISE * time);
            usi_leg_reach(&gait->leg[i], foot, out_q[i]);
            continue;
        }
        double from = phase_of(gait, s, i), to = from + further;
        carry(v, -time, foot, at);
        foot[0] = at[0];
        foot[1] = at[1];
        carry(v, -time, s->goal[i], at);
        s->goal[i][0] = at[0];
        s->goal[i][1] = at[1];
        foot[2] += clamp(gait->ground - foot[2], -RISE * time, RISE * time);
        if (to > duty) lift = swing(gait, s, i, v, fmax(from - duty, 0) / air, fmin((to - duty) / air, 1));
        at[0] = foot[0];
        at[1] = foot[1];
        at[2] = foot[2] + lift;
        usi_leg_reach(&gait->leg[i], at, out_q[i]);
    }
    s->phase += further;
    if (s->phase >= 1) s->phase -= 1;
}

// ---------------------------------------------------------------- back

void usi_gait_observe(const usi_gait *gait, usi_gait_state *s, const double (*q)[3]) {
    for (int32_t i = 0; i < gait->n_leg; i++) {
        double foot[3];
        usi_leg_foot(&gait->leg[i], q[i], foot);
        s->measured[i][0] = foot[0];
        s->measured[i][1] = foot[1];
    }
}

// A foot at p that stands shows the body's velocity there: (vx - wz y, vy + wz x) is how fast the foot goes
// backwards. Two sums over the feet, about their middle, give the best fit.
void usi_gait_to_body(const usi_gait *gait, usi_gait_state *s, const double (*q)[3], double time,
                      double out_body[3]) {
    double at[USI_GAIT_LEGS][2] = {{0}}, moved[USI_GAIT_LEGS][2] = {{0}}, c[2] = {0, 0}, m[2] = {0, 0},
           turn = 0, size = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < gait->n_leg; i++) {
        double foot[3];
        usi_leg_foot(&gait->leg[i], q[i], foot);
        for (int k = 0; k < 2; k++) {
            at[n][k] = 0.5 * (s->measured[i][k] + foot[k]);
            moved[n][k] = (s->measured[i][k] - foot[k]) / time;
        }
        s->measured[i][0] = foot[0];
        s->measured[i][1] = foot[1];
        n += !is_in_air(gait, s, i) || (!s->is_on && !is_spared(s, i));
    }
    for (int32_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            c[k] += at[i][k] / n;
            m[k] += moved[i][k] / n;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        double x = at[i][0] - c[0], y = at[i][1] - c[1];
        turn += x * (moved[i][1] - m[1]) - y * (moved[i][0] - m[0]);
        size += x * x + y * y;
    }
    double w = size > 0 ? turn / size : 0;
    out_body[0] = m[0] + w * c[1];
    out_body[1] = m[1] - w * c[0];
    out_body[2] = w;
}
