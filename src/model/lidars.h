// Lidars of a model: what a turn is made of, by number.
//
// Groups of firings are counted from the start of time. Group g belongs to one turn, and is a column of its
// frame. Its beams fire at usi_lidar_group_time plus the beam's own time.
#ifndef USI_MODEL_LIDARS_H
#define USI_MODEL_LIDARS_H

#include <math.h>

#include "model/model.h"
#include "spec/lidar_device.h"
#include "understudy/network.h"

typedef struct usi_lidar_beam {
    double sin_up, cos_up;      // of its elevation
    double sin_turn, cos_turn;  // of the angle by which it is left of the head at the time of its group
    double time;                // s after its group
    int32_t ring;               // 0 is the lowest
} usi_lidar_beam;

// What a beam met: the true range (infinite: nothing) and the cosine of the angle between the beam and the
// surface's normal.
typedef struct usi_lidar_hit {
    double range, cosine;
} usi_lidar_hit;

// What a lidar keeps in a sim, beside the hits of the group that is being fired, two frames of points (column
// by column, beams by ring: x, y, z and intensity) and the poses of the sensor at the ticks that each frame
// took: of the turn that is collected, and of the last whole one. A point without a return has an infinite x:
// negative where something was too near.
typedef struct usi_lidar_state {
    int64_t collected;                 // the turn that is being collected; -1: the next one is waited for
    int64_t is_partial;                // it has gaps, and is thrown away
    int64_t whole;                     // the last whole turn; -1: none
    int64_t shown;                     // the turn that it is said to be: a frozen lidar repeats it
    int64_t which;                     // of the two frames, the one that is collected
    int64_t first_tick[2], n_pose[2];  // of both frames: the tick of the first pose, and how many there are
    uint64_t digest;                   // of all points so far
} usi_lidar_state;

typedef struct usi_lidar {
    const us_lidar_def *def;
    const usi_lidar_beam *beam;            // in the order of the definition
    int32_t sensor;                        // of the model
    int32_t n_ring, n_column;              // of a frame
    double turn;                           // s
    double period;                         // s from group to group
    double last_beam;                      // s: the latest beam's time in a group
    double spin;                           // rad/s of the head, counter-clockwise
    double widest;                         // rad, at most, between a beam and the head
    double lowest, highest;                // tangents of the elevations of its outermost beams
    int32_t max_pose;                      // of a frame: at the ticks that it takes
    size_t state, hit, frame[2], pose[2];  // bytes: where what it keeps is among that of all lidars
} usi_lidar;

// The first group of a turn, the time of a group, and how many columns a turn has.
static inline int64_t usi_lidar_first(const usi_lidar *l, int64_t turn) {
    if (l->def->columns > 0) return turn * l->def->columns;
    return (int64_t)ceil((double)turn * l->turn / l->period - 1e-9);
}
static inline double usi_lidar_group_time(const usi_lidar *l, int64_t group) {
    return (double)group * l->period;
}
static inline int64_t usi_lidar_turn_of(const usi_lidar *l, int64_t group) {
    if (l->def->columns > 0) return group / l->def->columns;
    int64_t turn = (int64_t)floor((double)group * l->period / l->turn);
    while (usi_lidar_first(l, turn + 1) <= group)
        turn++;
    while (usi_lidar_first(l, turn) > group)
        turn--;
    return turn;
}
static inline int64_t usi_lidar_columns_of(const usi_lidar *l, int64_t turn) {
    const int64_t n = usi_lidar_first(l, turn + 1) - usi_lidar_first(l, turn);
    return n < l->n_column ? n : l->n_column;
}

// lidars.c: a lidar's row, and its place among the frames of all.
us_status usi_build_lidar(us_model *m, usi_arena *arena, const us_sensor_def *s, int32_t sensor,
                          usi_lidar *out);

#endif
