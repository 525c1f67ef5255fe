// What the kinds of this room share: rows of their tables, a unit's own errors, rays, the model's places.
#ifndef USI_INSTRUMENT_MEASURE_H
#define USI_INSTRUMENT_MEASURE_H

#include <math.h>

#include "instrument/instrument.h"
#include "sense/noise_process.h"
#include "understudy/query.h"
#include "understudy/sky.h"

// Rows of parameters.
#define USI_NUMBER(name_, unit_, low_, high_, usual_, about_) \
    { .name = name_, .unit = unit_, .low = low_, .high = high_, .usual = usual_, .about = about_ }
#define USI_WHOLE(name_, low_, high_, usual_, about_)                                             \
    {                                                                                             \
        .name = name_, .unit = "1", .low = low_, .high = high_, .usual = usual_, .about = about_, \
        .type = US_PARAMETER_WHOLE, .is_fixed = true                                              \
    }
#define USI_CHOICE(name_, choices_, usual_, about_)                                                \
    {                                                                                              \
        .name = name_, .unit = "1", .usual = usual_, .about = about_, .type = US_PARAMETER_CHOICE, \
        .choices = choices_                                                                        \
    }
#define USI_OF_JOINT(usual_, about_)                                                                \
    {                                                                                               \
        .name = "joint", .unit = "1", .usual = usual_, .about = about_, .type = US_PARAMETER_JOINT, \
        .is_fixed = true                                                                            \
    }
#define USI_COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

// Says why there is no sample, and returns false.
bool usi_refuse(const us_sensor_view *view, const char *remedy, const char *message);
// False, said so, where a world has no place on a planet.
bool usi_has_place(const us_sensor_view *view);

// A number of mean 0 and variance 1 that is this unit's as long as it lives: errors of its making.
static inline double usi_unit_normal(const us_sensor_view *view, int32_t i) {
    return us_random_normal(view->seed, view->stream + (UINT64_C(2) << 48), (uint64_t)i);
}

static inline void usi_put(double *to, us_vec3 v) {
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
}

// Of the world axes in the sensor's.
static inline us_vec3 usi_in_sensor(const us_sensor_view *view, us_vec3 v_W) {
    return us_quat_rotate(us_quat_conj(view->X_WS.q), v_W);
}

static inline us_sky usi_sky_of(const us_sensor_view *view) {
    return us_model_get_sky(us_sim_view_model(view->sim));
}

// The first thing along a direction (world axes) that is no part of the robot; infinite: nothing within
// reach. NaN: ground that could not be had.
double usi_free_range(const us_sensor_view *view, us_vec3 direction_W, double reach, us_sim_hit *out_hit);

// Positions and velocities of a parameter's joint with one coordinate; false, said so, for others.
bool usi_joint_motion(const us_sensor_view *view, int32_t joint, double *out_q, double *out_v);
// The drive of a joint, and what it gave in the last step, N m or N; -1 and 0 without one.
int32_t usi_joint_drive(const us_sensor_view *view, int32_t joint, double *out_torque);

// What pushes on a body from outside, N, world axes: contacts and soil. `out_moment`, which may be NULL:
// about a point.
us_vec3 usi_touch_force(const us_sensor_view *view, int32_t body, us_vec3 about_W, us_vec3 *out_moment);

#endif
