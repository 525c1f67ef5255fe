// Walkers with six legs of three joints: from the velocity of the body to joint angles, and back.
//
// Pure kinematics in the frame of the base: x forward, y left, z up. Body velocities are (vx, vy, wz) at the
// base's origin.
#ifndef USI_FIRMWARE_GAIT_H
#define USI_FIRMWARE_GAIT_H

#include "understudy/base.h"

enum { USI_GAIT_LEGS = 6 };

// A leg: the coxa turns it about the vertical, femur and tibia about parallel horizontal axes. Angles of
// segments are elevations above the horizontal plane, outwards along the leg.
typedef struct usi_leg {
    double hip[3];                  // m: where the axis of the coxa meets the height of the femur's axis
    double heading;                 // rad: where the leg points, to the left of x, with the coxa at 0
    double coxa, femur, tibia;      // m: from axis to axis, and from the last one to the foot's centre
    double femur_zero, tibia_zero;  // rad: elevations of the two segments with all joints at 0
    double
        sign[3];  // 1 or -1: a positive angle of the joint turns to the left (coxa) or upwards (femur, tibia)
    double lower[3], upper[3];  // rad, of the joints
    double neutral[2];          // m: x, y of the foot in the middle of its step
    int32_t tripod;             // 0 or 1
} usi_leg;

typedef struct usi_gait {
    int32_t n_leg;       // 0: it has none
    double ground;       // m: z of the feet's centres while they stand; negative
    double step_height;  // m
    double period;       // s, of a whole cycle
    double duty;         // share of the period in which a foot stands, above 0.5 and below 1
    usi_leg leg[USI_GAIT_LEGS];
} usi_gait;

typedef enum usi_gait_kind { USI_GAIT_TRIPOD, USI_GAIT_WAVE } usi_gait_kind;

// What a walker remembers from tick to tick.
typedef struct usi_gait_state {
    double phase;                       // 0 .. 1
    double foot[USI_GAIT_LEGS][3];      // m: where each foot shall be, less its lift
    double goal[USI_GAIT_LEGS][2];      // m: the place on the ground where a foot that swings will touch down
    double measured[USI_GAIT_LEGS][2];  // m: where it was measured last
    int32_t is_on;                      // the feet are known: usi_gait_start
    int32_t is_limited;                 // slower than told: the legs do not reach as far
    int32_t kind, next_kind;            // usi_gait_kind; and the one that begins as soon as all feet stand
    uint32_t spared, next_spared;       // bit i: leg i takes no part, and is held up
} usi_gait_state;

// Where the joints have the foot's centre.
void usi_leg_foot(const usi_leg *leg, const double q[3], double out_foot[3]);
// The joint angles that bring it there, with the knee upwards. False when the leg is too short or a joint's
// limit is in the way: the angles are then those of a place nearby.
bool usi_leg_reach(const usi_leg *leg, const double foot[3], double out_q[3]);

// Shares the legs out: going around the body, each second one belongs to the other tripod.
void usi_gait_assign_tripods(usi_gait *gait);
// Begins with the feet where these joint angles have them.
void usi_gait_start(const usi_gait *gait, usi_gait_state *s, const double (*q)[3]);
// Walks in another way from the next moment on at which all feet stand; all 0: the tripods, with six legs.
// False, and nothing has changed, for tripods that lack a leg, and when fewer than four legs are left.
bool usi_gait_choose(const usi_gait *gait, usi_gait_state *s, usi_gait_kind kind, uint32_t spared);
// One tick: moves feet and phase on, and says where the joints shall be. With the body at rest the feet go
// back to the middle of their steps, and then all six stand.
void usi_gait_step(const usi_gait *gait, usi_gait_state *s, const double body[3], double time,
                   double (*out_q)[3]);

// The body velocity that fits measured joint angles best (least squares over the feet that stand), since the
// last call a time ago. The first call after the state was 0 is usi_gait_observe.
void usi_gait_to_body(const usi_gait *gait, usi_gait_state *s, const double (*q)[3], double time,
                      double out_body[3]);
void usi_gait_observe(const usi_gait *gait, usi_gait_state *s, const double (*q)[3]);

#endif
