// A trapezoid profile from any start.
//
//     velocity                                              started in the wrong direction      started too
//     fast
//        cruise  ___________                                         _______                 \ .
//               /           \                                       /       \                 \_________
//              /             \                                     /         \                          \ .
//     start __/               \__ 0                            0 _/___________\__                        \ .
//              first  cruise  last                              /
//
// Which way to cruise is decided by the place where braking at once would come to rest: short of the end
// position, the profile cruises forwards; beyond it, backwards; right on it, braking is all there is to do.
// Seen in that direction (all signs turned when it is backwards), with distance d to go, start velocity v
// (perhaps below 0 or above the greatest velocity u) and acceleration a:
//
//     v <= u   speed up from v to u in (u - v) / a, over (u^2 - v^2) / 2a; braking from u takes u / a, over
//     u^2 / 2a. When these two
//              distances exceed d, there is no cruise and the peak w follows from (w^2 - v^2) / 2a + w^2 / 2a
//              = d.
//     v > u    slow down from v to u first. Since braking at once would not go too far, neither does this.
//
// Turning round is no phase of its own: through velocity 0 the acceleration stays the same.
//
// The last phase is computed backwards from the end, so that the arrival is exact however long the way was;
// what rounding is left shows as a step of some units in the last place at the seam before it.
#include "firmware/trapezoid.h"

#include <math.h>

us_status usi_trapezoid_init(usi_trapezoid *out, double acceleration, double max_velocity, double position,
                             double velocity, double end_position) {
    if (!out) return US_ERR_ARG;
    double a = acceleration, u = max_velocity;
    if (!(a > 0) || !(u > 0) || !isfinite(a) || !isfinite(u) || !isfinite(position) || !isfinite(velocity) ||
        !isfinite(end_position)) {
        return US_ERR_VALUE;
    }
    double beyond_rest = end_position - position - velocity * fabs(velocity) / (2 * a);
    double sign = beyond_rest < 0 ? -1 : 1;
    double v = sign * velocity, d = sign * (end_position - position);

    double first_time = 0, first_distance = 0, first_acceleration = a, cruise_time = 0, peak = u;
    if (beyond_rest == 0) {
        // Braking at once is the whole of it: the first two phases are empty.
        sign = velocity < 0 ? -1 : 1;
        peak = fabs(velocity);
    } else if (v <= u) {
        first_distance = (u - v) * (u + v) / (2 * a);
        double cruise_distance = d - first_distance - u * u / (2 * a);
        if (cruise_distance >= 0) {
            cruise_time = cruise_distance / u;
        } else {
            // The square is at least v^2 by the choice of direction; rounding must not make it less.
            double square = a * d + 0.5 * v * v;
            peak = fmin(u, sqrt(fmax(square, v > 0 ? v * v : 0)));
            first_distance = (peak - v) * (peak + v) / (2 * a);
        }
        first_time = (peak - v) / a;
    } else {
        first_acceleration = -a;
        first_time = (v - u) / a;
        first_distance = (v - u) * (v + u) / (2 * a);
        cruise_time = fmax(0, d - first_distance - u * u / (2 * a)) / u;
    }

    usi_trapezoid p = {.acceleration = a,
                       .start_position = position,
                       .start_velocity = velocity,
                       .end_position = end_position};
    p.first_acceleration = sign * first_acceleration;
    p.cruise_position = position + sign * first_distance;
    p.cruise_velocity = sign * peak;
    p.first_end = first_time;
    p.cruise_end = first_time + cruise_time;
    p.duration = p.cruise_end + peak / a;
    if (!isfinite(p.duration) || !isfinite(p.cruise_position)) return US_ERR_VALUE;
    *out = p;
    return US_OK;
}

usi_trapezoid_point usi_trapezoid_at(const usi_trapezoid *p, double t) {
    if (t >= p->duration) return (usi_trapezoid_point){.position = p->end_position};
    if (t < 0) t = 0;
    if (t < p->first_end) {
        double a = p->first_acceleration;
        return (usi_trapezoid_point){p->start_position + t * (p->start_velocity + 0.5 * a * t),
                                     p->start_velocity + a * t, a};
    }
    if (t < p->cruise_end)
        return (usi_trapezoid_point){p->cruise_position + p->cruise_velocity * (t - p->first_end),
                                     p->cruise_velocity, 0};
    double a = copysign(p->acceleration, p->cruise_velocity), left = p->duration - t;
    return (usi_trapezoid_point){p->end_position - 0.5 * a * left * left, a * left, -a};
}
