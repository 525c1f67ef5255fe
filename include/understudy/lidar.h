// Lidars: what they are made of. docs/lidar.md has the mathematics; understudy/query.h gives their frames.
//
// A lidar fires all its beams one after the other, again and again, while its head turns. A frame is what one
// turn saw. Each beam leaves at its own time, from where the sensor is then, into the world as it is then:
// between the states of two steps positions go straight and rotations turn evenly.
#ifndef UNDERSTUDY_LIDAR_H
#define UNDERSTUDY_LIDAR_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    US_LIDAR_MAX_BEAM = 256,       // beams of a lidar
    US_LIDAR_MAX_POINT = 4000000,  // points of a frame
};

typedef struct us_lidar_beam {
    double elevation;  // rad, above the xy plane of the sensor
    double azimuth;    // rad, to the left of the head's direction
    double time;       // s, after the first beam of the group
} us_lidar_beam;

typedef struct us_lidar_def {
    int32_t n_beam;
    const us_lidar_beam *beams;  // in any order; rings are counted from the lowest up
    int32_t columns;             // groups in a whole turn, at even angles; 0: one each `period`
    double period;               // s from group to group where there are no columns
    double start;                // rad: the head's azimuth when a turn begins, from +x towards +y
    double sweep;  // rad by which it turns while it fires: counter-clockwise seen from above, or
                   // clockwise when negative; up to a whole turn
    double min_range, max_range;  // m; nearer and farther there is no return
    double range_noise;           // m, standard deviation
    double angle_noise;           // rad, standard deviation across the beam, both ways
    double quantum;               // m to which ranges are rounded; 0: not
    double reach;        // m at which a surface of reflectivity 0.1, met squarely, returns half of the shots;
                         // 0: every surface returns all
    double power_noise;  // standard deviation of the received power, over that which is needed; default 0.1
    double reflectivity;  // of all surfaces, 0 to 1; default 0.3
} us_lidar_def;

// One without beams, columns and ranges.
US_API us_lidar_def us_lidar_def_default(void);
// Names of makers' devices by number, "hdl-32e" first; NULL beyond the last.
US_API const char *us_lidar_preset_name(int32_t i);
// What a device is made of: `beams`, of which there are US_LIDAR_MAX_BEAM, gets its beams, and *out_rate the
// usual turns per second. US_ERR_NAME: there is none of that name.
US_API us_status us_lidar_preset(const char *name, us_lidar_beam *beams, us_lidar_def *out_def,
                                 double *out_rate);

#ifdef __cplusplus
}
#endif
#endif
