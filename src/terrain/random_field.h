// Random fields: functions that their methods share.
#ifndef USI_TERRAIN_RANDOM_FIELD_H
#define USI_TERRAIN_RANDOM_FIELD_H

#include "base/pool.h"
#include "understudy/terrain.h"

us_status usi_field_check(const us_field_def *def, us_error *err);
// The covariance over the variance, of a definition that was checked.
double usi_covariance_share(const us_field_def *def, double r);
// Whether one evaluation takes microseconds.
bool usi_covariance_is_slow(const us_field_def *def);

// random_field_outer.c
us_status usi_field_outer(const us_field_def *def, double *out, us_random_field_info *info, us_error *err);
// random_patch.c
us_status usi_field_patches(const us_field_def *def, usi_pool *pool, us_field_visit visit, void *context,
                            us_random_field_info *info, us_error *err);
// Pairs of independent normal numbers at four consecutive places of the random sequence.
typedef struct usi_normal_pairs {
    _Alignas(32) double a[4], b[4];
} usi_normal_pairs;
usi_normal_pairs usi_field_normals(uint64_t key, uint64_t place);

#endif
