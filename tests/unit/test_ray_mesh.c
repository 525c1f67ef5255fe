// Rays against meshes of many triangles, eight boxes and triangles at a time: bit for bit the hits of the
// plain walk over the binary tree, whatever the mesh's size and place, and wherever the ray goes by.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "geom/ray.h"

enum { N = 40, RAYS = 4000 };

static double uniform(int stream, int i) { return us_random_uniform(21, (uint64_t)stream, (uint64_t)i); }

// A bumpy ball about a point, of 2 (N - 1) N triangles and two caps; open: without the caps.
static us_mesh *ball(double size, us_vec3 middle, bool is_closed) {
    static us_vec3 vertex[N * N + 2];
    static int32_t triangle[2 * N * N][3];
    const double pi = acos(-1);
    int32_t n = 0;
    for (int32_t j = 0; j < N; j++) {
        for (int32_t i = 0; i < N; i++) {
            const double u = 2 * pi * i / N, v = pi * (j + 1) / (N + 1),
                         r = size * (1 + 0.2 * sin(3 * u) * sin(5 * v) + 0.02 * uniform(1, j * N + i));
            vertex[j * N + i] =
                us_vec3_add(middle, us_vec3_make(r * sin(v) * cos(u), r * sin(v) * sin(u), r * cos(v)));
            if (j + 1 == N) continue;
            const int32_t a = j * N + i, b = j * N + (i + 1) % N, c = a + N, d = b + N;
            memcpy(triangle[n++], (int32_t[3]){a, c, d}, sizeof *triangle);
            memcpy(triangle[n++], (int32_t[3]){a, d, b}, sizeof *triangle);
        }
    }
    vertex[N * N] = us_vec3_add(middle, us_vec3_make(0, 0, size));
    vertex[N * N + 1] = us_vec3_sub(middle, us_vec3_make(0, 0, size));
    for (int32_t i = 0; is_closed && i < N; i++) {
        memcpy(triangle[n++], (int32_t[3]){N * N, i, (i + 1) % N}, sizeof *triangle);
        const int32_t last = N * (N - 1);
        memcpy(triangle[n++], (int32_t[3]){N * N + 1, last + (i + 1) % N, last + i}, sizeof *triangle);
    }
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(vertex, N * N + 2, (const int32_t(*)[3])triangle, n, NULL, &mesh, NULL),
                     US_OK);
    assert_true(mesh->is_closed == is_closed);
    return mesh;
}

// Towards somewhere in the ball, a corner of it, or the middle of an edge; from outside, inside and far away;
// some along an axis.
static usi_ray ray_of(const us_mesh *mesh, double size, us_vec3 middle, int i) {
    const us_vec3 from[3] = {
        us_vec3_make(6 * uniform(2, i) - 3, 6 * uniform(3, i) - 3, 6 * uniform(4, i) - 3),
        us_vec3_make(0.3 * uniform(2, i), 0.3 * uniform(3, i), 0.3 * uniform(4, i)),
        us_vec3_make(3000 * uniform(2, i), 3000 * uniform(3, i), -2000 * uniform(4, i))};
    usi_ray l = {us_vec3_add(middle, us_vec3_scale(size, from[i % 3])), {0, 0, 1}};
    us_vec3 to =
        us_vec3_add(middle, us_vec3_scale(size, us_vec3_make(2 * uniform(5, i) - 1, 2 * uniform(6, i) - 1,
                                                             2 * uniform(7, i) - 1)));
    const int32_t *t = mesh->triangle[(int32_t)(uniform(8, i) * mesh->n_triangle)];
    if (i % 5 == 1) to = mesh->vertex[t[0]];
    if (i % 5 == 2) to = us_vec3_scale(0.5, us_vec3_add(mesh->vertex[t[0]], mesh->vertex[t[1]]));
    if (i % 5 == 3) {
        // Straight down on a corner, on to which axis-parallel planes of boxes are laid.
        l.o = us_vec3_add(mesh->vertex[t[0]], us_vec3_make(0, 0, 2 * size));
        to = mesh->vertex[t[0]];
    }
    const us_vec3 d = us_vec3_sub(to, l.o);
    if (us_vec3_norm(d) > 0) l.d = us_vec3_scale(1 / us_vec3_norm(d), d);
    return l;
}

static void compare(double size, us_vec3 middle, bool is_closed) {
    us_mesh *mesh = ball(size, middle, is_closed);
    int n_hit = 0;
    for (int i = 0; i < RAYS; i++) {
        const usi_ray l = ray_of(mesh, size, middle, i);
        const double range = i % 7 == 0 ? 2 * size * uniform(9, i) : i % 7 == 1 ? INFINITY : 1e4 * size;
        const us_ray_hit fast = usi_ray_cast_mesh(mesh, l, range, 0),
                         plain = usi_ray_cast_mesh_plain(mesh, l, range, 0);
        assert_memory_equal(&fast, &plain, sizeof fast);
        n_hit += isfinite(fast.range);
    }
    assert_true(n_hit > RAYS / 2);
    us_mesh_destroy(mesh);
}

static void hits_are_those_of_the_plain_walk(void **state) {
    (void)state;
    const us_vec3 here = {0, 0, 0};
    compare(1, here, true);
    compare(1, here, false);
    // Small and large, near and far: floats see the mesh from its own middle.
    compare(1e-3, us_vec3_make(1, 2, 3), true);
    compare(1e4, us_vec3_make(-5e4, 3e4, 0), true);
    compare(2, us_vec3_make(4e5, 3e6, 100), false);
}

// Two sheets in one place: the triangle with the lower number counts, in either walk.
static void triangles_in_one_place_are_told_apart_by_their_numbers(void **state) {
    (void)state;
    enum { SIDE = 8 };
    static us_vec3 vertex[(SIDE + 1) * (SIDE + 1)];
    static int32_t triangle[4 * SIDE * SIDE][3];
    int32_t n = 0;
    for (int32_t i = 0; i < (SIDE + 1) * (SIDE + 1); i++)
        vertex[i] = us_vec3_make(i % (SIDE + 1), i / (SIDE + 1), 0);  // NOLINT(bugprone-integer-division)
    for (int sheet = 0; sheet < 2; sheet++) {
        for (int32_t k = 0; k < SIDE * SIDE; k++) {
            const int32_t a = k / SIDE * (SIDE + 1) + k % SIDE, b = a + 1, c = b + SIDE + 1, d = c - 1;
            memcpy(triangle[n++], sheet ? (int32_t[3]){a, c, b} : (int32_t[3]){a, b, c}, sizeof *triangle);
            memcpy(triangle[n++], sheet ? (int32_t[3]){a, d, c} : (int32_t[3]){a, c, d}, sizeof *triangle);
        }
    }
    us_mesh *mesh = NULL;
    assert_int_equal(
        us_mesh_create(vertex, (SIDE + 1) * (SIDE + 1), (const int32_t(*)[3])triangle, n, NULL, &mesh, NULL),
        US_OK);
    for (int i = 0; i < RAYS; i++) {
        const us_vec3 o = {SIDE * uniform(1, i), SIDE * uniform(2, i), 3}, to = {SIDE * uniform(3, i), 4, 0},
                      d = us_vec3_sub(to, o);
        const usi_ray l = {o, us_vec3_scale(1 / us_vec3_norm(d), d)};
        const us_ray_hit fast = usi_ray_cast_mesh(mesh, l, 100, 0),
                         plain = usi_ray_cast_mesh_plain(mesh, l, 100, 0);
        assert_memory_equal(&fast, &plain, sizeof fast);
        assert_true(fabs(fast.range * l.d.z + 3) < 1e-12);
    }
    us_mesh_destroy(mesh);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_are_those_of_the_plain_walk),
        cmocka_unit_test(triangles_in_one_place_are_told_apart_by_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
