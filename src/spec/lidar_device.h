// Lidars as they are described: devices of makers, tables of beams, checks.
#ifndef USI_SPEC_LIDAR_DEVICE_H
#define USI_SPEC_LIDAR_DEVICE_H

#include "base/memory.h"
#include "understudy/lidar.h"

// Numbers that fit together: US_ERR_VALUE or US_ERR_LIMIT with the remedy. `rate`: turns per second; `step`:
// s of the world.
us_status usi_check_lidar(const us_lidar_def *def, double rate, us_error *err);
// A copy with its beams; NULL without memory.
us_lidar_def *usi_lidar_copy(usi_arena *arena, const us_lidar_def *def);
// Columns of a frame: as many as the longest turn has; its rows; and how many windows a second a grid comes
// to.
int64_t usi_lidar_columns(const us_lidar_def *def, double rate);
int64_t usi_lidar_rows(const us_lidar_def *def);
double usi_lidar_grid_rate(const us_lidar_def *def);
// A table of beams: lines of "elevation (deg), time (us)[, azimuth (deg)]", with "#" before remarks and an
// optional line of titles. Errors: US_ERR_SYNTAX, US_ERR_VALUE, US_ERR_LIMIT; *out_line is where.
us_status usi_lidar_read_table(const char *text, us_lidar_beam *beams, int32_t *out_n, int32_t *out_line,
                               us_error *err);
// One beam that turns, with one return for each shot: a scan.
static inline bool usi_lidar_is_planar(const us_lidar_def *def) {
    return def->n_beam == 1 && def->pattern == US_LIDAR_SPIN && def->returns != US_LIDAR_DUAL;
}

#endif
