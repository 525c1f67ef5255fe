// What the files of lidars share: poses within a step, what beams may meet, where frames lie.
#ifndef USI_SIM_SIM__LIDAR_H
#define USI_SIM_SIM__LIDAR_H

#include <math.h>

#include "model/lidars.h"
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
    bool is_level;  // ground that keeps its form, with the world's axes: rays need not be turned
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
static inline us_pose *usi_lidar_poses_of(const us_sim *s, const usi_lidar *l, int64_t which) {
    return (us_pose *)(void *)(s->lidars->state + l->pose[which]);
}

// lidar_cast.c: what there is in a step, before which `before` has the poses of all shapes; which of it one
// lidar can meet while its head turns from one azimuth to another, with its ground paged in; and what a line
// meets at a share u of the step.
void usi_lidar_find_targets(us_sim *s);
void usi_lidar_choose_targets(us_sim *s, const usi_lidar *l, const usi_course *sensor, double from,
                              double to);
usi_lidar_echo usi_lidar_cast(const us_sim *s, const usi_lidar *l, us_vec3 o, us_vec3 d, double u);

#endif
