// Dead reckoning: poses in the plane are (x, y, angle), moved by constant body velocities over short times.
//
// While a body keeps its velocity (vx, vy, wz) in its own axes it goes along an arc. Integrated over the
// turned angle a = wz t it moves by
//
//     t ( s vx - c vy,  c vx + s vy )    with  s = sin a / a,  c = (1 - cos a) / a
//
// in the axes at the start: the exponential of SE(2). Nothing is lost by long steps as long as the velocity
// holds.
#include "kincontrol/odometry.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static double wrap(double angle) { return fabs(angle) <= PI ? angle : remainder(angle, 2 * PI); }

void usi_odometry_move(double pose[3], const double body[3], double time) {
    double a = body[2] * time, s, c;
    if (fabs(a) < 1e-4) {
        // sin a / a and (1 - cos a) / a by their series: the next terms are below 1e-18.
        s = 1 - a * a / 6;
        c = a / 2 - a * a * a / 24;
    } else {
        // 1 - cos a without the loss of digits near 0.
        double half = sin(a / 2);
        s = sin(a) / a;
        c = 2 * half * half / a;
    }
    double dx = time * (s * body[0] - c * body[1]), dy = time * (c * body[0] + s * body[1]);
    double cos_angle = cos(pose[2]), sin_angle = sin(pose[2]);
    pose[0] += cos_angle * dx - sin_angle * dy;
    pose[1] += sin_angle * dx + cos_angle * dy;
    pose[2] = wrap(pose[2] + a);
}

void usi_odometry_compose(const double a[3], const double b[3], double out[3]) {
    double c = cos(a[2]), s = sin(a[2]);
    const double result[3] = {a[0] + c * b[0] - s * b[1], a[1] + s * b[0] + c * b[1], wrap(a[2] + b[2])};
    for (int i = 0; i < 3; i++)
        out[i] = result[i];
}

void usi_odometry_between(const double a[3], const double b[3], double out[3]) {
    double c = cos(a[2]), s = sin(a[2]), dx = b[0] - a[0], dy = b[1] - a[1];
    const double result[3] = {c * dx + s * dy, c * dy - s * dx, wrap(b[2] - a[2])};
    for (int i = 0; i < 3; i++)
        out[i] = result[i];
}

// The arc through the point that begins in the rover's direction has the curvature 2 y / d^2, d away and y to
// the left. A point behind lies on such an arc too, but the nearer it is to straight behind, the wider is the
// arc: there the curvature stays that of a point abeam, 2 / d.
void usi_pursue(const double pose[3], double x, double y, double speed, double max_turn, double deceleration,
                bool can_turn_on_spot, double out_body[3]) {
    const double goal[3] = {x, y, 0};
    double at[3];
    usi_odometry_between(pose, goal, at);
    double distance = hypot(at[0], at[1]), side = at[1] < 0 ? -1 : 1;
    out_body[0] = out_body[1] = out_body[2] = 0;
    if (!(distance > 1e-9)) return;
    if (at[0] < 0 && can_turn_on_spot) {
        // 1 rad/s where nothing limits it: a pace that suits rovers of any size.
        out_body[2] = side * (max_turn > 0 ? max_turn : 1);
        return;
    }
    double v = deceleration > 0 ? fmin(speed, sqrt(2 * deceleration * distance)) : speed;
    double curvature = at[0] < 0 ? side * 2 / distance : 2 * at[1] / (distance * distance);
    if (max_turn > 0 && fabs(curvature) * v > max_turn) v = max_turn / fabs(curvature);
    out_body[0] = v;
    out_body[2] = curvature * v;
}
