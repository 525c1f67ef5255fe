// What a lidar makes of ranges: noise, rounding, returns that are lost. Rays are cast in sim/lidar.c.
#ifndef USI_SENSE_LIDAR_RETURN_H
#define USI_SENSE_LIDAR_RETURN_H

#include "model/lidars.h"

// Faults of a lidar, in usi_sensor_state.offset.
enum { USI_LIDAR_IS_DEAD, USI_LIDAR_HAS_SECTOR, USI_LIDAR_SECTOR_FROM, USI_LIDAR_SECTOR_TO };

// The direction of a beam of a group in the sensor's frame at the beam's time, by the sine and cosine of the
// head's azimuth at the group's time.
static inline us_vec3 usi_lidar_direction(const usi_lidar_beam *b, double sin_head, double cos_head) {
    const double c = cos_head * b->cos_turn - sin_head * b->sin_turn,
                 s = sin_head * b->cos_turn + cos_head * b->sin_turn;
    return us_vec3_make(b->cos_up * c, b->cos_up * s, b->sin_up);
}

// The points of a group (x, y, z, intensity for each beam's ring) from what its beams met. Each depends on
// the seeds, the sensor, and the numbers of the group and the beam alone.
void usi_lidar_points(const us_model *m, const usi_lidar *l, int64_t group, double sin_head, double cos_head,
                      const usi_lidar_hit *hit, float (*out)[4]);

#endif
