// What a lidar makes of ranges: noise, rounding, returns that are lost.
//
// A range gets noise along the beam, is rounded to the device's unit, and the point is moved across the beam
// by an angle, both ways:
//
//     r' = q round((r + s_r n_0) / q),   p = r' (d + s_a (n_1 e_1 + n_2 e_2))
//
// The received power over that which is needed to see a return is, for a surface that scatters evenly,
//
//     P = (rho / 0.1) cos(incidence) (reach / r)^2
//
// and a return is seen with probability Phi((P - 1) / power noise). Intensities are those of a device that is
// calibrated: 255 rho cos(incidence), whatever the range.
//
// Normals come four beams at a time, by Box and Muller from counters: of an angle from -90 to 90 degrees, a
// sign that turns it around, and a radius.
#include "sense/lidar_return.h"

#include "base/random.h"
#include "math/v4_functions.h"

static const double HALF_PI = 1.57079632679489661923;

enum { DRAWS = 5 };  // counters of a beam: two radii, two angles, one for the return

typedef struct normals {
    usi_v4 range, across[2];
} normals;

static usi_v4 uniform4(uint64_t key, uint64_t first) {
    usi_v4 u;
    for (int k = 0; k < 4; k++)
        u[k] = usi_random_uniform(key, first + (uint64_t)(DRAWS * k));
    return u;
}

// Two normals of each lane.
static void pair4(uint64_t key, uint64_t first, usi_v4 *out_a, usi_v4 *out_b) {
    const usi_v4 u = uniform4(key, first), turn = uniform4(key, first + 1);
    const usi_v4 radius = usi_v4_sqrt(-2 * usi_v4_log(1 - u));
    usi_v4 s, c;
    // A whole turn is two halves: in the second one both signs change.
    const usi_v4i is_second = turn >= usi_v4_all(0.5);
    const usi_v4 within = turn - usi_v4_select(is_second, usi_v4_all(0.75), usi_v4_all(0.25));
    usi_v4_sin_cos(within * (4 * HALF_PI), &s, &c);
    const usi_v4 signed_radius = usi_v4_select(is_second, -radius, radius);
    *out_a = signed_radius * c;
    *out_b = signed_radius * s;
}

static normals normals_of(const us_lidar_def *d, uint64_t key, uint64_t first) {
    normals n = {usi_v4_zero(), {usi_v4_zero(), usi_v4_zero()}};
    usi_v4 unused;
    if (d->range_noise > 0) pair4(key, first, &n.range, &unused);
    if (d->angle_noise > 0) pair4(key, first + 2, &n.across[0], &n.across[1]);
    return n;
}

// Whether enough light comes back. Only near the limit is a number drawn.
static bool is_seen(const us_lidar_def *d, usi_lidar_hit h, uint64_t key, uint64_t counter) {
    if (d->reach == 0) return true;
    const double ratio = d->reach / h.range, power = 10 * d->reflectivity * h.cosine * ratio * ratio;
    if (d->power_noise == 0) return power >= 1;
    const double z = (power - 1) / d->power_noise;
    if (fabs(z) > 8) return z > 0;
    return usi_random_uniform(key, counter) < 0.5 * erfc(-z * 0.70710678118654752440);
}

static void put_none(float out[4], bool is_near) {
    out[0] = is_near ? -INFINITY : INFINITY;
    out[1] = out[2] = out[3] = 0;
}

static void put_point(const us_lidar_def *d, const usi_lidar_beam *b, us_vec3 direction, usi_lidar_hit h,
                      const normals *n, int lane, float out[4]) {
    double r = h.range + d->range_noise * n->range[lane];
    if (d->quantum > 0) r = d->quantum * nearbyint(r / d->quantum);
    us_vec3 p = us_vec3_scale(r, direction);
    if (d->angle_noise > 0) {
        // Across: level to the left, and upwards.
        const double flat = b->cos_up > 1e-12 ? 1 / b->cos_up : 0,
                     left = r * d->angle_noise * n->across[0][lane],
                     up = r * d->angle_noise * n->across[1][lane];
        const double c = direction.x * flat, s = direction.y * flat;
        p.x += -left * s - up * b->sin_up * c;
        p.y += left * c - up * b->sin_up * s;
        p.z += up * b->cos_up;
    }
    out[0] = (float)p.x;
    out[1] = (float)p.y;
    out[2] = (float)p.z;
    out[3] = (float)(255 * d->reflectivity * h.cosine);
}

void usi_lidar_points(const us_model *m, const usi_lidar *l, int64_t group, double sin_head, double cos_head,
                      const usi_lidar_hit *hit, float (*out)[4]) {
    static const uint64_t lidar_stream = UINT64_C(3) << 32;  // beside those of links and inertial units
    const us_lidar_def *d = l->def;
    const uint64_t seed = m->seed + USI_GOLDEN * m->sensor[l->sensor].seed,
                   key = usi_random_key(seed, lidar_stream + (uint64_t)l->sensor);
    for (int32_t i = 0; i < d->n_beam; i += 4) {
        const uint64_t first = DRAWS * ((uint64_t)group * (uint64_t)d->n_beam + (uint64_t)i);
        const normals n = normals_of(d, key, first);
        for (int lane = 0; lane < 4 && i + lane < d->n_beam; lane++) {
            const usi_lidar_beam *b = &l->beam[i + lane];
            const usi_lidar_hit h = hit[i + lane];
            float *point = out[b->ring];
            const bool is_near = h.range < d->min_range;
            if (is_near || !(h.range <= d->max_range) ||
                !is_seen(d, h, key, first + (uint64_t)(DRAWS * lane) + 4)) {
                put_none(point, is_near);
            } else {
                put_point(d, b, usi_lidar_direction(b, sin_head, cos_head), h, &n, lane, point);
            }
        }
    }
}
