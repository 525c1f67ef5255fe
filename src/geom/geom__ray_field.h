// Rays against height fields: what the walk of one ray (ray_field.c) and that of several (ray_field_packet.c)
// share. Both are compiled without fused multiply-add, and do the same sums in the same order: a ray's hit
// has the same bits in a packet and alone.
#ifndef USI_GEOM_RAY_FIELD_H
#define USI_GEOM_RAY_FIELD_H

#include "geom/ray.h"

// Half the rectangle's sides.
static inline us_vec3 usi_field_half(const us_height_field *f) {
    return us_vec3_make(0.5 * (f->n_x - 1) * f->dx, 0.5 * (f->n_y - 1) * f->dy, 0);
}

// m: what is that far above a block's maximum is above it whatever was rounded: rounding of the point and of
// the plane under it, a hundred times over.
// `reach`: the sum of the ray's starting coordinates; the margin is linear in it.
static inline double usi_field_margin(const us_height_field *f, double reach) {
    const double relief = f->high - f->low;
    reach += (f->n_x - 1) * f->dx + (f->n_y - 1) * f->dy;
    return 1e-9 * relief +
           1e-13 * (reach * (1 + relief * (1 / f->dx + 1 / f->dy)) + fabs(f->high) + fabs(f->low));
}

// m: the level below which a ray that goes down need not be followed.
static inline double usi_field_bottom(const us_height_field *f) {
    return f->low - (f->high - f->low) - f->dx - f->dy;
}

// Many rays in packets (ray_field_packet.c). False, and nothing done, where there are no packets: too few
// rays, ground that is paged in, a processor without the instructions.
bool usi_ray_cast_packets(const us_height_field *f, int32_t n, const usi_ray *l, const double *range,
                          us_ray_hit *out_hit);

#endif
