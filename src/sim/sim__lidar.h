// What the files of lidars share: poses within a step, what beams may meet, where frames lie.
#ifndef USI_SIM_SIM__LIDAR_H
#define USI_SIM_SIM__LIDAR_H

#include <math.h>

#include "model/lidars.h"
#include "sense/lidar_return.h"
#include "sim/sim__query.h"
#include "terrain/pager.h"

// A pose that moves within a step.
typedef struct usi_course {
    us_pose X;      // at its start
    us_vec3 along;  // m in the whole of it
    us_vec3 turn;   // rotation vector of the whole of it, in its own axes
    bool is_still;
} usi_course;

usi_course usi_course_of(us_pose before, us_pose now);
static inline us_pose usi_course_at(const usi_course *c, double u) {
    if (c->is_still) return c->X;
    return (us_pose){us_quat_mul(c->X.q, us_quat_exp(us_vec3_scale(u, c->turn))),
                     us_vec3_add(c->X.p, us_vec3_scale(u, c->along))};
}

// A shape that beams may meet.
typedef struct usi_lidar_target {
    usi_course X_WG;
    us_vec3 centre, shift;  // of the sphere around it, in W, and how it moves in the step
    double radius;          // m, infinite: it has none
    us_vec3 corner[8];      // of its box, in its own frame
    int32_t geom;
    bool is_field;
    bool is_level;  // ground with the world's axes: rays need not be turned
} usi_lidar_target;

typedef struct usi_lidars {
    char *state;  // of all lidars: usi_lidar has the places
    usi_lidar_target *all, *near;
    us_pose *before;           // of all shapes
    usi_pager_client **pager;  // of all shapes; NULL where nothing is paged in
    usi_lidar_echo *echo;      // of one group for each thread
    int32_t n_near, n_echo;
} usi_lidars;

static inline usi_lidar_state *usi_lidar_state_of(const us_sim *s, int32_t i) {
    return (usi_lidar_state *)(void *)(s->lidars->state + s->model->lidar[i].state);
}
static inline float (*usi_lidar_frame_of(const us_sim *s, const usi_lidar *l, int64_t which))[4] {
    return (float(*)[4])(void *)(s->lidars->state + l->frame[which]);
}
static inline float *usi_lidar_truth_of(const us_sim *s, const usi_lidar *l, int64_t which) {
    return (float *)(void *)(s->lidars->state + l->truth[which]);
}
static inline us_pose *usi_lidar_poses_of(const us_sim *s, const usi_lidar *l, int64_t which) {
    return (us_pose *)(void *)(s->lidars->state + l->pose[which]);
}

// Where a sensor is, after usi_kinematics.
static inline us_pose usi_lidar_pose(const us_sim *s, const usi_sensor *k) {
    const usi_body *b = &s->model->body[k->body];
    us_pose X = b->X_NB;
    if (b->node >= 0)
        X = us_pose_mul(usi_link_pose(&s->dyn->link[b->node], s->dyn->origin[s->model->node[b->node].tree]),
                        X);
    X = us_pose_mul(X, k->X_BS);
    X.q = us_quat_normalize(X.q);
    return X;
}

// What its faults do to all points of a lidar (lidar.c).
usi_lidar_wear usi_lidar_wear_of(const usi_sensor_state *k);

// A point for those who ask, from what lies in a frame.
static inline us_lidar_point usi_lidar_point_of(const float from[4], double time, int32_t ring) {
    us_lidar_point p = {from[0], from[1], from[2], from[3], (float)time, ring};
    if (!isfinite(from[0])) p.x = p.y = p.z = NAN;
    return p;
}

// Lines that beams go along, some at a time: neighbours in the list should be neighbours in space.
enum { USI_LIDAR_LINES = 64 };
typedef struct usi_lidar_lines {
    int32_t n;
    us_vec3 o[USI_LIDAR_LINES], d[USI_LIDAR_LINES];
    double u[USI_LIDAR_LINES];  // the share of the step at which they are fired
    usi_lidar_echo *to[USI_LIDAR_LINES];
} usi_lidar_lines;

// lidar_cast.c: what there is in a step, before which `before` has the poses of all shapes; which of it one
// lidar can meet while its head turns from one azimuth to another, with its ground paged in; and what lines
// meet.
void usi_lidar_find_targets(us_sim *s);
void usi_lidar_choose_targets(us_sim *s, const usi_lidar *l, const usi_course *sensor, double from,
                              double to);
void usi_lidar_cast(const us_sim *s, const usi_lidar *l, const usi_lidar_lines *x);

#endif
