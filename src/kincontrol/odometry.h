// Dead reckoning in the plane. Angles come out between -pi and pi.
#ifndef USI_KINCONTROL_ODOMETRY_H
#define USI_KINCONTROL_ODOMETRY_H

#include "understudy/base.h"

// Moves pose (x, y, angle) by the body velocity (vx, vy, wz) for a time: exact on arcs.
void usi_odometry_move(double pose[3], const double body[3], double time);
// b seen from a: a^-1 b; and a b.
void usi_odometry_between(const double a[3], const double b[3], double out[3]);
void usi_odometry_compose(const double a[3], const double b[3], double out[3]);

// Pure pursuit: the body velocity that brings a rover at `pose` to the point (x, y) at `speed`, turning on
// the spot first when the point lies behind and the rover can. Slows down so that it comes to rest there with
// `deceleration` (0: at once). max_turn 0: no limit.
void usi_pursue(const double pose[3], double x, double y, double speed, double max_turn, double deceleration,
                bool can_turn_on_spot, double out_body[3]);

#endif
