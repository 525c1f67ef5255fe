// How a point on a link moves.
#ifndef USI_SENSE_SENSOR_MOTION_H
#define USI_SENSE_SENSOR_MOTION_H

#include "model/model.h"

typedef struct usi_sensor_motion {
    us_pose X;     // in the world
    us_vec3 w, v;  // angular velocity, and velocity of the origin; world axes
} usi_sensor_motion;

// Of a frame at X_BS on a link, at positions and velocities of the whole model. Cost: some tens of
// nanoseconds for each joint between the link and the world.
usi_sensor_motion usi_sensor_move(const us_model *m, int32_t link, us_pose X_BS, const double *q,
                                  const double *v);

#endif
