// Stereo pairs with known truth: planes with a random texture, seen by two ideal cameras side by side.
//
// The texture is smooth noise: values of a lattice by hash, interpolated, two octaves. Each pixel is the mean
// of 3 x 3 rays, as a sensor's pixel is an area.
#ifndef TEST_STEREO_PAIR_H
#define TEST_STEREO_PAIR_H

#include <math.h>

#include "understudy/vision.h"

// A plane x nx + y ny + z nz = distance in the left camera's optical frame, where it is within the given x
// and y (m).
typedef struct pair_plane {
    us_vec3 normal;
    double distance;
    double x_min, x_max, y_min, y_max;
} pair_plane;

typedef struct pair_scene {
    int n;
    pair_plane plane[16];
    double f, baseline, cx, cy;
    double grain;     // m: size of the texture's lattice
    double contrast;  // 0 .. 1
    double noise;     // grey levels, standard deviation
} pair_scene;

static inline double pair_lattice(int64_t i, int64_t j, uint64_t which) {
    return us_random_uniform(which, (uint64_t)i, (uint64_t)j);
}

static inline double pair_noise(double x, double y, uint64_t which) {
    const double fx = floor(x), fy = floor(y), u = x - fx, v = y - fy;
    const int64_t i = (int64_t)fx, j = (int64_t)fy;
    return (pair_lattice(i, j, which) * (1 - u) + pair_lattice(i + 1, j, which) * u) * (1 - v) +
           (pair_lattice(i, j + 1, which) * (1 - u) + pair_lattice(i + 1, j + 1, which) * u) * v;
}

// The depth of the nearest plane along the ray of a pixel of the camera at `x_camera`; 0: none.
static inline double pair_hit(const pair_scene *s, double u, double v, double x_camera, int *out_plane) {
    const us_vec3 ray = us_vec3_make((u - s->cx) / s->f, (v - s->cy) / s->f, 1);
    double nearest = 0;
    for (int k = 0; k < s->n; k++) {
        const pair_plane *p = &s->plane[k];
        const double z = (p->distance - p->normal.x * x_camera) / us_vec3_dot(p->normal, ray);
        const double x = x_camera + z * ray.x, y = z * ray.y;
        if (!(z > 0) || x < p->x_min || x > p->x_max || y < p->y_min || y > p->y_max) continue;
        if (nearest > 0 && z >= nearest) continue;
        nearest = z;
        *out_plane = k;
    }
    return nearest;
}

static inline double pair_grey(const pair_scene *s, double u, double v, double x_camera) {
    int k = 0;
    const double z = pair_hit(s, u, v, x_camera, &k);
    if (!(z > 0)) return 0;
    const double x = x_camera + z * (u - s->cx) / s->f, y = z * (v - s->cy) / s->f;
    // Along the plane rather than across it: depth counts too.
    const double a = (x + 0.3 * z) / s->grain, b = (y - 0.2 * z) / s->grain;
    const double value =
        0.65 * pair_noise(a, b, 2 * (uint64_t)k) + 0.35 * pair_noise(3.1 * a, 3.1 * b, 2 * (uint64_t)k + 1);
    return 128 + 250 * s->contrast * (value - 0.5);
}

static inline void pair_render(const pair_scene *s, double x_camera, uint64_t seed, us_image *out) {
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            double sum = 0;
            for (int j = -1; j <= 1; j++)
                for (int i = -1; i <= 1; i++)
                    sum += pair_grey(s, x + i / 3.0, y + j / 3.0, x_camera);
            sum = sum / 9 + s->noise * us_random_normal(seed, (uint64_t)y, (uint64_t)x);
            ((uint8_t *)out->pixels)[(size_t)y * out->stride + (size_t)x] =
                (uint8_t)lround(fmin(255, fmax(0, sum)));
        }
}

// The disparity of a left pixel; negative where there is none. *out_is_hidden: the right camera sees
// something else.
static inline double pair_truth(const pair_scene *s, double u, double v, bool *out_is_hidden) {
    int k, other;
    const double z = pair_hit(s, u, v, 0, &k);
    *out_is_hidden = true;
    if (!(z > 0)) return -1;
    const double disparity = s->f * s->baseline / z;
    const double there = pair_hit(s, u - disparity, v, s->baseline, &other);
    *out_is_hidden = fabs(there - z) > 1e-6 * z;
    return disparity;
}

// A wall, a slanted floor, and boxes before them: edges, slants, hidden places, thin things.
static inline pair_scene pair_room(double f, double cx, double cy) {
    const double far = 1e9;
    pair_scene s = {
        .n = 7, .f = f, .baseline = 0.15, .cx = cx, .cy = cy, .grain = 0.02, .contrast = 0.9, .noise = 1};
    s.plane[0] = (pair_plane){{0.2, 0, 1}, 5, -far, far, -far, far};
    s.plane[1] = (pair_plane){{0, 1, 0.05}, 0.9, -far, far, -far, far};
    s.plane[2] = (pair_plane){{0, 0, 1}, 2.0, -0.5, 0.1, -0.3, 0.5};
    s.plane[3] = (pair_plane){{0.5, 0, 1}, 2.8, 0.4, 1.2, -0.8, 0.7};
    s.plane[4] = (pair_plane){{0, 0, 1}, 1.7, 0.22, 0.26, -0.6, 0.6};
    s.plane[5] = (pair_plane){{0, 0.4, 1}, 3.2, -1.6, -0.7, -1.1, -0.2};
    s.plane[6] = (pair_plane){{0, 0, 1}, 1.5, -0.9, -0.7, 0.1, 0.4};
    return s;
}

#endif
