// What a lidar makes of ranges: noise, rounding, returns that are lost. Rays are cast in sim/lidar.c.
#ifndef USI_SENSE_LIDAR_RETURN_H
#define USI_SENSE_LIDAR_RETURN_H

#include "model/lidars.h"

// Faults of a lidar, in usi_sensor_state.offset: whether it is dead, another fault, and its two numbers.
enum { USI_LIDAR_IS_DEAD, USI_LIDAR_FAULT, USI_LIDAR_FIRST, USI_LIDAR_SECOND };
// Blind between two azimuths (rad); without the beams from one ring to another; a window that takes a share
// of the light.
enum { USI_LIDAR_IS_WELL, USI_LIDAR_HAS_SECTOR, USI_LIDAR_HAS_NO_BEAMS, USI_LIDAR_IS_DIRTY };

// What faults do to all points: factors of the noise, and of the light that comes back.
typedef struct usi_lidar_wear {
    double noise, light;
} usi_lidar_wear;

// Where a group looks that is fired at a time, in a turn that began `into` s earlier.
usi_lidar_aim usi_lidar_aim_at(const usi_lidar *l, int64_t group, double time, double into);

// Whether the head looks between two azimuths, counter-clockwise from the first, and whether where the lidar
// is blind by its make.
bool usi_lidar_is_between(const usi_lidar *l, const usi_lidar_aim *aim, double from, double to);
bool usi_lidar_is_blind(const usi_lidar *l, const usi_lidar_aim *aim);

// The direction of a beam of a group in the sensor's frame at the beam's time.
static inline us_vec3 usi_lidar_direction(const usi_lidar *l, const usi_lidar_beam *b,
                                          const usi_lidar_aim *aim) {
    if (l->def->pattern != US_LIDAR_SPIN) return aim->d;
    const double c = aim->cosine * b->cos_turn - aim->sine * b->sin_turn,
                 s = aim->sine * b->cos_turn + aim->cosine * b->sin_turn;
    return us_vec3_make(b->cos_up * c, b->cos_up * s, b->sin_up);
}

// Orders what the lines of a beam met from near to far, and makes one of echoes whose light comes back within
// a pulse: `echo` has n_ray of them, each of an equal share of the light; those that are left over get an
// infinite range.
void usi_lidar_mix(const usi_lidar *l, usi_lidar_echo *echo);

// The points of the k-th group of its turn (x, y, z, intensity) into a frame, from n_ray echoes of each of
// its beams, and what is true of each into `truth` (NULL: nowhere). Each depends on the seeds, the sensor,
// the numbers of the group and the beam, and `wear` (NULL: none) alone.
void usi_lidar_points(const us_model *m, const usi_lidar *l, const usi_lidar_wear *wear, int64_t group,
                      int64_t k, const usi_lidar_aim *aim, const usi_lidar_echo *echo, float (*frame)[4],
                      float *truth);

#endif
