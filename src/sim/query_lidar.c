// Frames of lidars, for those who ask.
#include <string.h>

#include "model/robots.h"
#include "sim/sim__lidar.h"

int32_t us_model_n_lidar(const us_model *m) { return m ? m->n_lidar : 0; }

static const usi_sensor *sensor_row(const us_model *m, us_lidar lidar) {
    if (!m || lidar.i < 0 || lidar.i >= m->n_lidar) return NULL;
    return &m->sensor[m->lidar[lidar.i].sensor];
}

const char *us_model_lidar_robot(const us_model *m, us_lidar lidar) {
    const usi_sensor *k = sensor_row(m, lidar);
    return k ? m->robot[k->robot].name : "";
}

const char *us_model_lidar_name(const us_model *m, us_lidar lidar) {
    const usi_sensor *k = sensor_row(m, lidar);
    return k ? k->name : "";
}

us_lidar us_model_find_lidar(const us_model *m, const char *robot, const char *sensor) {
    for (int32_t i = 0; m && robot && sensor && i < m->n_lidar; i++) {
        const us_lidar l = {i};
        if (strcmp(us_model_lidar_robot(m, l), robot) == 0 && strcmp(us_model_lidar_name(m, l), sensor) == 0)
            return l;
    }
    return (us_lidar){-1};
}

// The sensor's pose at a time of a frame, as the beams had it.
static us_pose pose_at(const us_sim *s, const usi_lidar *l, const usi_lidar_state *t, int64_t which,
                       double time) {
    const us_pose *pose = usi_lidar_poses_of(s, l, which);
    const double ticks = time / s->model->step - (double)t->first_tick[which];
    int64_t i = (int64_t)floor(ticks + 1e-9);
    if (i > t->n_pose[which] - 2) i = t->n_pose[which] - 2;
    if (i < 0) return pose[0];
    const usi_course c = usi_course_of(pose[i], pose[i + 1]);
    return usi_course_at(&c, ticks - (double)i);
}

us_status us_sim_get_lidar_frame(const us_sim *s, us_lidar lidar, bool is_deskewed, us_lidar_frame *out_frame,
                                 us_lidar_point *points, int32_t cap) {
    if (!s || !out_frame || lidar.i < 0 || lidar.i >= s->model->n_lidar) return US_ERR_ARG;
    const usi_lidar *l = &s->model->lidar[lidar.i];
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar.i);
    const int64_t which = 1 - t->which;
    const double start = t->whole >= 0 ? usi_lidar_group_time(l, usi_lidar_first(l, t->whole)) : 0;
    *out_frame =
        (us_lidar_frame){.turn = t->shown,
                         .time = t->shown >= 0 ? usi_lidar_group_time(l, usi_lidar_first(l, t->shown)) : 0,
                         .n_ring = l->n_ring,
                         .n_column = l->n_column,
                         .n_return = l->n_return,
                         .X_WS = us_pose_identity(),
                         .n_dropped = t->n_dropped};
    if (t->whole >= 0) out_frame->X_WS = pose_at(s, l, t, which, start);
    if (!points) return US_OK;
    if (cap < usi_lidar_n_point(l)) return US_ERR_LIMIT;
    const us_pose X_SW = us_pose_inverse(out_frame->X_WS);
    const float(*from)[4] = (const float(*)[4])usi_lidar_frame_of(s, l, which);
    for (int64_t i = 0; i < usi_lidar_n_point(l); i++) {
        // As they lie there: columns of returns of rings.
        const int32_t ring = (int32_t)(i % l->n_ring), back = (int32_t)(i / l->n_ring % l->n_return);
        const int64_t column = i / l->n_ring / l->n_return;
        const double time = usi_lidar_time_in_turn(l, column, ring);
        us_lidar_point *p = &points[((int64_t)back * l->n_ring + ring) * l->n_column + column];
        static const float none[4] = {INFINITY, 0, 0, 0};
        *p = usi_lidar_point_of(t->whole >= 0 ? from[i] : none, time, ring);
        if (!is_deskewed || !isfinite(p->x)) continue;
        const us_pose X = us_pose_mul(X_SW, pose_at(s, l, t, which, start + time));
        const us_vec3 moved = us_pose_point(X, us_vec3_make((double)p->x, (double)p->y, (double)p->z));
        p->x = (float)moved.x;
        p->y = (float)moved.y;
        p->z = (float)moved.z;
    }
    return US_OK;
}

const float (*usi_sim_lidar_points(const us_sim *s, int32_t lidar))[4] {
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar);
    return t->whole >= 0 ? (const float(*)[4])usi_lidar_frame_of(s, &s->model->lidar[lidar], 1 - t->which)
                         : NULL;
}

void usi_sim_lidar_truth(const us_sim *s, int32_t lidar, int64_t column, int32_t ring, float out_point[4]) {
    const usi_lidar *l = &s->model->lidar[lidar];
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar);
    const bool is_grid = l->def->pattern == US_LIDAR_GRID;
    out_point[0] = INFINITY;
    out_point[1] = out_point[2] = out_point[3] = 0;
    if (t->whole < 0) return;
    const double range = (double)usi_lidar_truth_of(s, l, 1 - t->which)[column * l->n_ring + ring];
    if (!(range <= l->def->max_range)) return;
    const int64_t group =
        usi_lidar_first(l, t->whole) + (is_grid ? ring * (int64_t)l->n_column + column : column);
    const double time = usi_lidar_group_time(l, group);
    const usi_lidar_aim aim = usi_lidar_aim_at(l, group, time, time - (double)t->whole * l->turn);
    const us_vec3 p =
        us_vec3_scale(range, usi_lidar_direction(l, &l->beam[is_grid ? 0 : l->by_ring[ring]], &aim));
    out_point[0] = (float)p.x;
    out_point[1] = (float)p.y;
    out_point[2] = (float)p.z;
}

us_pose usi_sim_lidar_pose(const us_sim *s, int32_t lidar, int64_t column, int32_t ring) {
    const usi_lidar *l = &s->model->lidar[lidar];
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar);
    return pose_at(s, l, t, 1 - t->which,
                   usi_lidar_group_time(l, usi_lidar_first(l, t->whole)) +
                       usi_lidar_time_in_turn(l, column, ring));
}

usi_lidar_shift usi_sim_lidar_shift(const us_sim *s, int32_t lidar, int64_t column, int32_t ring) {
    const usi_lidar *l = &s->model->lidar[lidar];
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar);
    const int64_t which = 1 - t->which;
    const bool is_grid = l->def->pattern == US_LIDAR_GRID;
    const double start = usi_lidar_group_time(l, usi_lidar_first(l, t->whole)),
                 time = is_grid ? usi_lidar_time_in_turn(l, column, ring) : (double)column * l->period;
    const us_pose X_SW = us_pose_inverse(pose_at(s, l, t, which, start));
    usi_lidar_shift x = {.last = is_grid ? 0 : l->last_beam};
    for (int k = 0; k < 2; k++) {
        const us_pose X = us_pose_mul(X_SW, pose_at(s, l, t, which, start + time + k * x.last));
        x.R[k] = us_quat_matrix(X.q);
        x.p[k] = X.p;
    }
    return x;
}

const float (*usi_sim_lidar_group(const us_sim *s, int32_t lidar, int64_t group))[4] {
    const usi_lidar *l = &s->model->lidar[lidar];
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar);
    const usi_sensor_state *k = &s->now.sensor[l->sensor];
    if (group < 0 || l->def->pattern == US_LIDAR_GRID || k->is_stuck || t->is_partial) return NULL;
    const int64_t turn = usi_lidar_turn_of(l, group), at = group - usi_lidar_first(l, turn);
    // A turn of which the beginning was not seen is in none of the two frames.
    const bool is_collected = turn == t->collected, is_whole = turn == t->whole;
    if ((!is_collected && !is_whole) || at >= usi_lidar_columns_of(l, turn)) return NULL;
    return (const float(*)[4])usi_lidar_frame_of(s, l, is_collected ? t->which : 1 - t->which) +
           usi_lidar_place(l, at, 0, 0);
}

int64_t usi_sim_lidar_turn(const us_sim *s, int32_t lidar, int64_t *out_whole) {
    const usi_lidar_state *t = usi_lidar_state_of(s, lidar);
    *out_whole = t->whole;
    return t->shown;
}
