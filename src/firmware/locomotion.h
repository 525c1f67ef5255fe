// Rovers on wheels: from the velocity of the body to wheel speeds and steering angles, and back.
//
// Pure kinematics in the plane of the base: x forward, y left, angles to the left. Body velocities are (vx,
// vy, wz) at the base's origin.
#ifndef USI_FIRMWARE_LOCOMOTION_H
#define USI_FIRMWARE_LOCOMOTION_H

#include "understudy/base.h"

enum { USI_LOCOMOTION_WHEELS = 16 };

typedef enum usi_locomotion_kind {
    USI_LOCOMOTION_SKID,
    USI_LOCOMOTION_ACKERMANN,
    USI_LOCOMOTION_ALL_WHEEL
} usi_locomotion_kind;

typedef struct usi_loco_wheel {
    double x, y;        // m: where it stands (a steered one: its steering axis), in the base's frame
    double radius;      // m
    double sign;        // 1 or -1: the wheel's joint turns forward with a positive or negative velocity
    double steer_sign;  // the same of the steering joint, left is positive
    double steer_lower, steer_upper;  // rad, of the angle to the left
    bool is_steered;
} usi_loco_wheel;

typedef struct usi_locomotion {
    usi_locomotion_kind kind;
    int32_t n_wheel;  // 0: it has none
    usi_loco_wheel wheel[USI_LOCOMOTION_WHEELS];
    double track_scale;  // skid: the track that counts in turning, over the real one; 1: no slip
    double slow_down;    // how much drives slow down while steering is off its mark by an angle: to 1 -
                         // slow_down (1 - cos), at least 0
} usi_locomotion;

typedef struct usi_loco_command {
    double speed[USI_LOCOMOTION_WHEELS];  // rad/s, of the joints
    double steer[USI_LOCOMOTION_WHEELS];  // rad, of the joints; 0 where it is not steered
    bool ignored_side;                    // vy was asked for and cannot be done
    bool is_limited;  // the steering does not reach far enough: the motion is another one, as near as it gets
} usi_loco_command;

// What the wheels shall do for a finite body velocity. `steer_now` (joint angles as measured, n_wheel) lets
// drives slow down and picks the nearer of the two steering solutions; at standstill `steer_last` (joint
// angles as last commanded) is kept.
void usi_loco_to_wheels(const usi_locomotion *l, const double body[3], const double *steer_now,
                        const double *steer_last, usi_loco_command *out);

// The body velocity that fits measured joint speeds and angles best (least squares).
void usi_loco_to_body(const usi_locomotion *l, const double *speed, const double *steer, double out_body[3]);

#endif
