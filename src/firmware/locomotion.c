// Wheels and bodies. A body that moves with (vx, vy) and turns with wz carries its wheel at (x, y) along with
//
//     v = (vx - wz y, vy + wz x)
//
// and all these velocities are square to the lines to one point, the turning centre:
//
//                 C . . . . . . . .  wheel 1          each wheel stands square to its line to C
//                   .    .                .           and rolls with wz times its length
//                       .     . wheel 2
//
// Where C may lie is what tells the kinds apart. All-wheel: anywhere. Ackermann: on the line through the
// wheels that do not steer, so that the sideways velocity of the base follows from the turn: vy = -wz x_axle.
// Skid: no wheel steers; all but those on the middle line are dragged sideways, and the body turns about a
// point beside the middle of its wheels.
//
// A wheel has two steering angles for one velocity, half a turn apart, and rolls backwards with one of them.
// The one that is nearer to where the wheel stands is taken, if the joint reaches it.
#include "firmware/locomotion.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

// m/s: slower than this a wheel stands still and has no direction of its own.
static const double STANDSTILL = 1e-9;

// x of the line on which the turning centre lies: the mean of the wheels that do not steer.
static double axle(const usi_locomotion *l) {
    double sum = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < l->n_wheel; i++) {
        if (l->wheel[i].is_steered) continue;
        sum += l->wheel[i].x;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

static bool has_axle(const usi_locomotion *l) { return l->kind != USI_LOCOMOTION_ALL_WHEEL; }

// ---------------------------------------------------------------- to the wheels

// The sharpest curvatures that the steering of a car reaches. A wheel L before the axle that stands at the
// angle d puts the turning centre at the curvature k of the axle's middle with  tan d = k L / (1 - k y),  so
// k = tan d / (L + y tan d).  Angles of a quarter turn and more reach everything, by rolling backwards; and a
// wheel on the outside may reach beyond its own pole, where it no longer limits anything.
static void find_curvatures(const usi_locomotion *l, double *out_min, double *out_max) {
    double x_axle = axle(l), min = -INFINITY, max = INFINITY;
    for (int32_t i = 0; i < l->n_wheel; i++) {
        const usi_loco_wheel *w = &l->wheel[i];
        double L = w->x - x_axle;
        if (!w->is_steered || fabs(L) < 1e-6) continue;
        const double limit[2] = {w->steer_lower, w->steer_upper};
        for (int k = 0; k < 2; k++) {
            if (!(fabs(limit[k]) < PI / 2)) continue;
            double t = tan(limit[k]), curvature = t / (L + w->y * t);
            bool is_left =
                t / L > 0 || (t == 0 && (k == 1) == (L > 0));  // the limit holds the turn to the left
            if (is_left && curvature >= 0) max = fmin(max, curvature);
            if (!is_left && curvature <= 0) min = fmax(min, curvature);
        }
    }
    *out_min = min;
    *out_max = max;
}

// The nearest motion that the kind of locomotion knows.
static void make_possible(const usi_locomotion *l, const double body[3], double out[3],
                          usi_loco_command *report) {
    out[0] = body[0];
    out[1] = body[1];
    out[2] = body[2];
    if (!has_axle(l)) return;
    if (l->kind == USI_LOCOMOTION_ACKERMANN) {
        double min, max;
        find_curvatures(l, &min, &max);
        double a = body[0] * min, b = body[0] * max;
        if (isnan(a))
            a = -INFINITY;  // 0 * infinity: standing, it turns on the spot as far as nothing holds it
        if (isnan(b)) b = INFINITY;
        out[2] = fmin(fmax(body[2], fmin(a, b)), fmax(a, b));
        report->is_limited = fabs(out[2] - body[2]) > 1e-9 * fabs(body[2]);
    }
    out[1] = -out[2] * axle(l);
    report->ignored_side =
        body[1] != 0 && fabs(body[1] - out[1]) > 1e-9 * (fabs(body[0]) + fabs(body[1]) + fabs(body[2]));
}

// The angle of a wheel (to the left) that rolls along (vx, vy), and the speed of its rim, m/s. False when the
// joint does not reach it.
static bool steer_wheel(const usi_loco_wheel *w, double vx, double vy, double now, double *out_angle,
                        double *out_speed) {
    double speed = hypot(vx, vy), angle = atan2(vy, vx);
    // angle + k pi for whole k: those within the limits, of them the nearest. A limit that was rounded when
    // it was written still counts as reached.
    double min = ceil((w->steer_lower - angle) / PI - 1e-6),
           max = floor((w->steer_upper - angle) / PI + 1e-6);
    bool is_reached = min <= max;
    if (is_reached) {
        double k = fmin(fmax(nearbyint((now - angle) / PI), min), max);
        angle += k * PI;
        if (fmod(fabs(k), 2) == 1) speed = -speed;
        angle = fmin(fmax(angle, w->steer_lower), w->steer_upper);
    } else {
        // The end that lets it roll best.
        double at_lower = cos(w->steer_lower - angle), at_upper = cos(w->steer_upper - angle);
        bool takes_upper = fabs(at_upper) == fabs(at_lower)
                               ? fabs(now - w->steer_upper) < fabs(now - w->steer_lower)
                               : fabs(at_upper) > fabs(at_lower);
        angle = takes_upper ? w->steer_upper : w->steer_lower;
        speed *= takes_upper ? at_upper : at_lower;
    }
    *out_angle = angle;
    *out_speed = speed;
    return is_reached;
}

void usi_loco_to_wheels(const usi_locomotion *l, const double body[3], const double *steer_now,
                        const double *steer_last, usi_loco_command *out) {
    double can[3], slowest = 1;
    *out = (usi_loco_command){0};
    make_possible(l, body, can, out);
    double track = l->kind == USI_LOCOMOTION_SKID ? l->track_scale : 1;
    for (int32_t i = 0; i < l->n_wheel; i++) {
        const usi_loco_wheel *w = &l->wheel[i];
        double vx = can[0] - can[2] * w->y * track, vy = can[1] + can[2] * w->x, speed = vx;
        if (w->is_steered && hypot(vx, vy) > STANDSTILL) {
            double now = w->steer_sign * steer_now[i], angle = 0;
            if (!steer_wheel(w, vx, vy, now, &angle, &speed)) out->is_limited = true;
            out->steer[i] = w->steer_sign * angle;
            slowest = fmin(slowest, fmax(0, cos(angle - now)));
        } else if (w->is_steered) {
            out->steer[i] = steer_last[i];
            speed = 0;
        }
        out->speed[i] = w->sign * speed / w->radius;
    }
    // All of them alike, so that the turning centre stays where it is meant to be.
    double scale = fmax(0, 1 - l->slow_down * (1 - slowest));
    for (int32_t i = 0; i < l->n_wheel; i++)
        out->speed[i] *= scale;
}

// ---------------------------------------------------------------- to the body

// Least squares for up to three unknowns: the normal equations A x = b, by elimination. What the rows do not
// tell comes out as 0.
static void solve(double A[3][3], double b[3], double x[3]) {
    double pivot[3], scale[3] = {A[0][0], A[1][1], A[2][2]};
    for (int i = 0; i < 3; i++) {
        // A column that depends on those before it leaves only rounding behind: 1e-12 is far above that and
        // far below any geometry of wheels.
        pivot[i] = A[i][i] > 1e-12 * scale[i] ? A[i][i] : 0;
        for (int j = i + 1; j < 3 && pivot[i] > 0; j++) {
            double factor = A[j][i] / pivot[i];
            for (int k = i; k < 3; k++)
                A[j][k] -= factor * A[i][k];
            b[j] -= factor * b[i];
        }
    }
    for (int i = 2; i >= 0; i--) {
        double sum = b[i];
        for (int k = i + 1; k < 3; k++)
            sum -= A[i][k] * x[k];
        x[i] = pivot[i] > 0 ? sum / pivot[i] : 0;
    }
}

static void add_row(double A[3][3], double b[3], const double row[3], double value) {
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            A[i][k] += row[i] * row[k];
        b[i] += row[i] * value;
    }
}

void usi_loco_to_body(const usi_locomotion *l, const double *speed, const double *steer, double out_body[3]) {
    double A[3][3] = {{0}}, b[3] = {0}, x_axle = has_axle(l) ? axle(l) : 0;
    double track = l->kind == USI_LOCOMOTION_SKID ? l->track_scale : 1, has_side = has_axle(l) ? 0 : 1;
    for (int32_t i = 0; i < l->n_wheel; i++) {
        const usi_loco_wheel *w = &l->wheel[i];
        double angle = w->is_steered ? w->steer_sign * steer[i] : 0, c = cos(angle), s = sin(angle);
        double x = w->x - x_axle, y = w->y * track;
        // It rolls along its direction (c, s); and it does not slip sideways, along (-s, c). What does not
        // steer says nothing sideways: the line of these wheels is built into x_axle, and those of a skid
        // robot do slip.
        const double roll[3] = {c, has_side * s, s * x - c * y}, side[3] = {-s, has_side * c, c * x + s * y};
        add_row(A, b, roll, w->sign * speed[i] * w->radius);
        if (w->is_steered || !has_axle(l)) add_row(A, b, side, 0);
    }
    solve(A, b, out_body);
    if (has_axle(l)) out_body[1] = -out_body[2] * x_axle;
}
