// Other libraries that cast rays, for bench_ray. One that is not installed takes no part.
#ifndef BENCH_RAY_PEERS_H
#define BENCH_RAY_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "understudy/math.h"

typedef struct ray_mesh {
    us_vec3 *vertex;
    int32_t (*triangle)[3];
    int32_t n_vertex, n_triangle;
} ray_mesh;

enum { RAY_EMBREE_CALLS = 6 };

// Embree with a mesh and rays: six numbers for each, origin and direction. NULL: it is not there. `isa`: the
// most of the processor that it may use ("avx2"); NULL: all that there is.
typedef struct ray_embree ray_embree;
ray_embree *ray_embree_create(const char *isa, const ray_mesh *mesh, int32_t n_ray, const double *rays,
                              double range);
void ray_embree_destroy(ray_embree *e);  // NULL is allowed
const char *ray_embree_name(int call);
// CPU seconds that a call took for all rays; ranges, infinite where nothing was hit.
double ray_embree_cast(ray_embree *e, int call, double *out_range);

// MuJoCo with ground of these heights: CPU seconds a ray. False: it is not there.
bool ray_mujoco(const double *heights, int32_t n_x, int32_t n_y, double apart, int32_t n_ray,
                const double *rays, double *out_seconds);

#endif
