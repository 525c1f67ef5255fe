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

enum { USI_LIDAR_MAX_STEP = 1000000 };  // of the world, that a frame may take

typedef struct usi_lidar_beam {
    double sin_up, cos_up;      // of its elevation
    double sin_turn, cos_turn;  // of the angle by which it is left of the head at the time of its group
    double time;                // s after its group
    int32_t ring;               // 0 is the lowest
} usi_lidar_beam;

// What a surface sends back of a beam: the true range (infinite: there is none), the cosine of the angle
// between the beam and the surface's normal, what the surface scatters evenly and what it sends straight
// back, and how brightly the sun shines on it, over a white surface that it meets squarely.
typedef struct usi_lidar_echo {
    double range, cosine, reflectivity, retroreflection, sunlit;
    bool is_lost;  // by a fault: it is not told
} usi_lidar_echo;

// How surfaces of a material look to a lidar.
typedef struct usi_lidar_surface {
    double reflectivity, retroreflection;
} usi_lidar_surface;

// A line in the cone of a beam: the angles by which it is left of and above the axis.
typedef struct usi_lidar_ray {
    double left, up;
} usi_lidar_ray;

// Where a group of beams looks: the sine and cosine of the head's azimuth; of other patterns, which have one
// beam, its direction.
typedef struct usi_lidar_aim {
    double sine, cosine;
    us_vec3 d;
} usi_lidar_aim;

// What a lidar keeps in a sim, beside the echoes of the group that is being fired, two frames of points
// (column by column, beams by ring, of dual returns the stronger ones first: x, y, z and intensity), the true
// ranges of what each beam met first (column by column, beams by ring; infinite: nothing), and the poses of
// the sensor at the ticks that each frame took: of the turn that is collected, and of the last whole one. A
// point without a return has an infinite x: negative where something was too near.
typedef struct usi_lidar_state {
    int64_t collected;                 // the turn that is being collected; -1: the next one is waited for
    int64_t is_partial;                // it has gaps, and is thrown away
    int64_t whole;                     // the last whole turn; -1: none
    int64_t shown;                     // the turn that it is said to be: a frozen lidar repeats it
    int64_t which;                     // of the two frames, the one that is collected
    int64_t first_tick[2], n_pose[2];  // of both frames: the tick of the first pose, and how many there are
    uint64_t digest;                   // of all points so far
    int64_t is_held, n_dropped;        // no turn begins any more; how many did not so far
} usi_lidar_state;

typedef struct usi_lidar {
    const us_lidar_def *def;
    const usi_lidar_beam *beam;  // in the order of the definition
    const double *ring_time;     // s after its group, of each ring
    const int32_t *by_ring;      // the beams from the lowest up
    int32_t sensor;              // of the model
    int32_t n_ring, n_column;    // of a frame
    int32_t n_return;            // tables of a frame
    int32_t n_ray;               // lines for each beam: as many echoes may come back
    usi_lidar_ray ray[US_LIDAR_MAX_RAY];
    const usi_lidar_surface *surface;  // of the model's materials
    const double *dust;                // the chance that dust was seen by the end of each pulse length
    int32_t n_dust;
    double dust_from;                                 // m: where the first one begins
    int64_t n_group;                                  // of a turn; 0: as many as there is time for
    double turn;                                      // s
    double period;                                    // s from group to group
    double last_beam;                                 // s: the latest beam's time in a group
    double spin;                                      // rad/s of the head, counter-clockwise
    double widest;                                    // rad, at most, between a beam and the head
    double lowest, highest;                           // tangents of the elevations of its outermost beams
    int32_t max_pose;                                 // of a frame: at the ticks that it takes
    size_t state, echo, frame[2], truth[2], pose[2];  // bytes: where what it keeps is among all lidars'
} usi_lidar;

// The first group of a turn, the time of a group, and how many columns a turn has.
static inline int64_t usi_lidar_first(const usi_lidar *l, int64_t turn) {
    if (l->n_group > 0) return turn * l->n_group;
    return (int64_t)ceil((double)turn * l->turn / l->period - 1e-9);
}
static inline double usi_lidar_group_time(const usi_lidar *l, int64_t group) {
    return (double)group * l->period;
}
static inline int64_t usi_lidar_turn_of(const usi_lidar *l, int64_t group) {
    if (l->n_group > 0) return group / l->n_group;
    int64_t turn = (int64_t)floor((double)group * l->period / l->turn);
    while (usi_lidar_first(l, turn + 1) <= group)
        turn++;
    while (usi_lidar_first(l, turn) > group)
        turn--;
    return turn;
}
// The groups of a turn that are kept, at most.
static inline int64_t usi_lidar_most(const usi_lidar *l) {
    return l->def->pattern == US_LIDAR_GRID ? l->n_group : l->n_column;
}
static inline int64_t usi_lidar_columns_of(const usi_lidar *l, int64_t turn) {
    const int64_t n = usi_lidar_first(l, turn + 1) - usi_lidar_first(l, turn), most = usi_lidar_most(l);
    return n < most ? n : most;
}
// Where a point is in a frame: of the k-th group of its turn, a beam's ring, and of dual returns the first or
// the second. In a grid the row follows from the group.
static inline int64_t usi_lidar_place(const usi_lidar *l, int64_t k, int32_t ring, int32_t which) {
    if (l->def->pattern == US_LIDAR_GRID) {
        ring = (int32_t)(k / l->n_column);
        k %= l->n_column;
    }
    return (k * l->n_return + which) * l->n_ring + ring;
}
// Where its true range is.
static inline int64_t usi_lidar_truth_place(const usi_lidar *l, int64_t k, int32_t ring) {
    if (l->def->pattern == US_LIDAR_GRID) return k % l->n_column * l->n_ring + k / l->n_column;
    return k * l->n_ring + ring;
}
static inline int64_t usi_lidar_n_point(const usi_lidar *l) {
    return (int64_t)l->n_column * l->n_return * l->n_ring;
}
// s from the beginning of the turn to the shot of a column and ring.
static inline double usi_lidar_time_in_turn(const usi_lidar *l, int64_t column, int32_t ring) {
    if (l->def->pattern == US_LIDAR_GRID) return (double)(ring * (int64_t)l->n_column + column) * l->period;
    return (double)column * l->period + l->ring_time[ring];
}

// The received power of the dust in one length of the pulse at a range, over that which is needed.
static inline double usi_lidar_dust_power(const us_lidar_def *d, double r) {
    const double ratio = d->reach / r, white = 3.14159265358979323846 * d->backscatter * d->pulse;
    return 10 * white * ratio * ratio * exp(-2 * d->extinction * r);
}

struct usi_build;
// lidars.c: a lidar's row, and its place among the frames of all; materials that no lidar can see are told.
us_status usi_build_lidar(struct usi_build *b, us_model *m, usi_arena *arena, const us_sensor_def *s,
                          int32_t sensor, usi_lidar *out);

#endif
