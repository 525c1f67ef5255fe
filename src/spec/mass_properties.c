// Mass properties of shapes at density 1, and of several shapes together.
#include "math/inertia.h"
#include "spec/mesh_file.h"

#include <string.h>

static const double pi = 3.14159265358979323846;

us_inertia usi_shape_unit_inertia(const us_shape_def *shape) {
    us_inertia I = {0};
    const double *s = shape->size;
    switch (shape->kind) {
    case US_SHAPE_BOX:
        I.mass = s[0] * s[1] * s[2];
        I.about_com[0] = I.mass / 12 * (s[1] * s[1] + s[2] * s[2]);
        I.about_com[1] = I.mass / 12 * (s[0] * s[0] + s[2] * s[2]);
        I.about_com[2] = I.mass / 12 * (s[0] * s[0] + s[1] * s[1]);
        break;
    case US_SHAPE_SPHERE:
        I.mass = 4.0 / 3 * pi * s[0] * s[0] * s[0];
        I.about_com[0] = I.about_com[1] = I.about_com[2] = 0.4 * I.mass * s[0] * s[0];
        break;
    case US_SHAPE_CYLINDER:
        I.mass = pi * s[0] * s[0] * s[1];
        I.about_com[0] = I.about_com[1] = I.mass / 12 * (3 * s[0] * s[0] + s[1] * s[1]);
        I.about_com[2] = 0.5 * I.mass * s[0] * s[0];
        break;
    case US_SHAPE_CAPSULE: {
        // A cylinder and a sphere cut in two: the halves' centres of mass lie 3/8 r beyond the cylinder's
        // ends, and a half has the moment 83/320 m r^2 (m: of the half) about an axis across through its own
        // centre of mass.
        double r = s[0], l = s[1], cylinder = pi * r * r * l, half = 2.0 / 3 * pi * r * r * r,
               d = 0.5 * l + 0.375 * r;
        I.mass = cylinder + 2 * half;
        I.about_com[0] = I.about_com[1] =
            cylinder / 12 * (3 * r * r + l * l) + 2 * half * (83.0 / 320 * r * r + d * d);
        I.about_com[2] = 0.5 * cylinder * r * r + 2 * 0.4 * half * r * r;
        break;
    }
    default:
        I = shape->unit_inertia;
        break;
    }
    return I;
}

void usi_inertia_rotate(const us_quat *q_AB, const double in_B[6], double out_A[6]) {
    us_mat3 R = us_quat_matrix(*q_AB);
    const double *m = R.m;
    double I[9] = {in_B[0], in_B[3], in_B[4], in_B[3], in_B[1], in_B[5], in_B[4], in_B[5], in_B[2]}, RI[9],
           A[9];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            RI[3 * i + j] = m[3 * i] * I[j] + m[3 * i + 1] * I[3 + j] + m[3 * i + 2] * I[6 + j];
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            A[3 * i + j] = RI[3 * i] * m[3 * j] + RI[3 * i + 1] * m[3 * j + 1] + RI[3 * i + 2] * m[3 * j + 2];
    }
    double out[6] = {A[0], A[4], A[8], 0.5 * (A[1] + A[3]), 0.5 * (A[2] + A[6]), 0.5 * (A[5] + A[7])};
    memcpy(out_A, out, sizeof out);
}

us_inertia usi_inertia_add(const us_inertia *a, const us_inertia *b) {
    us_inertia sum = {.mass = a->mass + b->mass};
    if (!(sum.mass > 0)) return sum;
    sum.com = us_vec3_scale(1 / sum.mass,
                            us_vec3_add(us_vec3_scale(a->mass, a->com), us_vec3_scale(b->mass, b->com)));
    for (int i = 0; i < 6; i++)
        sum.about_com[i] = a->about_com[i] + b->about_com[i];
    usi_inertia_add_point(sum.about_com, a->mass, us_vec3_sub(a->com, sum.com));
    usi_inertia_add_point(sum.about_com, b->mass, us_vec3_sub(b->com, sum.com));
    return sum;
}

us_inertia usi_shape_inertia(const us_shape_def *shape, double density) {
    us_inertia unit = shape->unit_inertia,
               I = {.mass = density * unit.mass, .com = us_pose_point(shape->X_BG, unit.com)};
    usi_inertia_rotate(&shape->X_BG.q, unit.about_com, I.about_com);
    for (int i = 0; i < 6; i++)
        I.about_com[i] *= density;
    return I;
}

// ---- Surfaces made of triangles ----

// Open addressing over arrays of keys: slot s is taken when slot[s] >= 0. Numbers are given in the order of
// first appearance, so that the result does not depend on the hash.
static size_t table_size(size_t n) {
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    return size;
}

static void weld_corners(usi_surface *surface, int32_t *slot, size_t n_slot) {
    for (size_t s = 0; s < n_slot; s++)
        slot[s] = -1;
    surface->n_vertex = 0;
    for (int32_t c = 0; c < 3 * surface->n_triangle; c++) {
        double *v = surface->vertex + 3 * (size_t)c;
        for (int k = 0; k < 3; k++)
            v[k] += 0.0;  // -0 and 0 are the same place
        size_t s = us_hash_bytes(0, v, 3 * sizeof *v) & (n_slot - 1);
        // A slot holds the first corner at its place; the corner knows the vertex.
        while (slot[s] >= 0 && memcmp(surface->vertex + 3 * (size_t)slot[s], v, 3 * sizeof *v) != 0)
            s = (s + 1) & (n_slot - 1);
        if (slot[s] < 0) {
            slot[s] = c;
            surface->corner[c] = surface->n_vertex++;
        } else {
            surface->corner[c] = surface->corner[slot[s]];
        }
    }
}

typedef struct edge_use {
    int32_t a, b;                   // a < b; a = -1: free slot
    int32_t n_forward, n_backward;  // triangles that run from a to b, and from b to a
} edge_use;

static void count_edge(edge_use *edges, size_t n_slot, int32_t from, int32_t to) {
    int32_t key[2] = {from < to ? from : to, from < to ? to : from};
    size_t s = us_hash_bytes(0, key, sizeof key) & (n_slot - 1);
    while (edges[s].a >= 0 && (edges[s].a != key[0] || edges[s].b != key[1]))
        s = (s + 1) & (n_slot - 1);
    edges[s].a = key[0];
    edges[s].b = key[1];
    if (from < to) {
        edges[s].n_forward++;
    } else {
        edges[s].n_backward++;
    }
}

static void look_at_edges(usi_surface *surface, edge_use *edges, size_t n_slot) {
    for (size_t s = 0; s < n_slot; s++)
        edges[s] = (edge_use){.a = -1};
    bool has_edge = false;
    for (int32_t t = 0; t < surface->n_triangle; t++) {
        const int32_t *c = surface->corner + 3 * (size_t)t;
        if (c[0] == c[1] || c[1] == c[2] || c[2] == c[0]) continue;
        has_edge = true;
        for (int k = 0; k < 3; k++)
            count_edge(edges, n_slot, c[k], c[(k + 1) % 3]);
    }
    surface->is_closed = surface->is_oriented = has_edge;
    for (size_t s = 0; s < n_slot; s++) {
        if (edges[s].a < 0) continue;
        if (edges[s].n_forward + edges[s].n_backward != 2) surface->is_closed = false;
        if (edges[s].n_forward != 1 || edges[s].n_backward != 1) surface->is_oriented = false;
    }
}

void usi_surface_box(usi_surface *surface) {
    for (size_t k = 0; k < 3; k++) {
        double low = surface->n_triangle ? surface->vertex[k] : 0, high = low;
        for (size_t c = 1; c < 3 * (size_t)surface->n_triangle; c++) {
            double x = surface->vertex[3 * c + k];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        surface->low[k] = low;
        surface->high[k] = high;
    }
}

us_status usi_surface_weld(const us_allocator *a, usi_surface *surface) {
    size_t n_corner = 3 * (size_t)surface->n_triangle, n_slot = table_size(n_corner);
    int32_t *slot = usi_alloc(a, n_slot * sizeof *slot, _Alignof(int32_t));
    if (slot) weld_corners(surface, slot, n_slot);
    usi_release(a, slot, n_slot * sizeof *slot, _Alignof(int32_t));
    edge_use *edges = slot ? usi_alloc(a, n_slot * sizeof *edges, _Alignof(edge_use)) : NULL;
    if (!edges) return US_ERR_MEMORY;
    look_at_edges(surface, edges, n_slot);
    usi_release(a, edges, n_slot * sizeof *edges, _Alignof(edge_use));
    return US_OK;
}

// Each triangle and a point o span a tetrahedron, whose volume counts positive when the triangle is seen from
// outside. Inside a closed surface the overlaps cancel, whatever o is; o in the middle of the vertices keeps
// the rounding small. Of one with corners 0, a, b, c: volume a . (b x c) / 6, first moment V (a + b + c) / 4,
// second moments integral x y dV = V/20 (sum over corners of x y + (sum of x)(sum of y)).
bool usi_surface_unit_inertia(const usi_surface *surface, us_inertia *out) {
    size_t n_corner = 3 * (size_t)surface->n_triangle;
    const double *low = surface->low, *high = surface->high;
    double o[3] = {0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2])};
    double V = 0, S[3] = {0}, P[6] = {0};  // volume; integral of x, y, z; of xx yy zz xy xz yz
    for (size_t t = 0; t < n_corner / 3; t++) {
        double p[3][3], sum[3];
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < 3; k++)
                p[i][k] = surface->vertex[9 * t + (size_t)(3 * i + k)] - o[k];
        }
        for (int k = 0; k < 3; k++)
            sum[k] = p[0][k] + p[1][k] + p[2][k];
        double v = (p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) +
                    p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2]) +
                    p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0])) /
                   6;
        V += v;
        for (int k = 0; k < 3; k++)
            S[k] += v * sum[k] / 4;
        static const int first[6] = {0, 1, 2, 0, 0, 1}, second[6] = {0, 1, 2, 1, 2, 2};
        for (int e = 0; e < 6; e++) {
            int i = first[e], j = second[e];
            P[e] += v / 20 * (p[0][i] * p[0][j] + p[1][i] * p[1][j] + p[2][i] * p[2][j] + sum[i] * sum[j]);
        }
    }
    // A surface turned inside out has everything negative.
    double sign = V < 0 ? -1 : 1, box = (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]);
    V *= sign;
    if (!(V > 1e-9 * box) || !isfinite(V)) return false;
    us_vec3 c = us_vec3_make(sign * S[0] / V, sign * S[1] / V, sign * S[2] / V);
    us_inertia I = {.mass = V, .com = {o[0] + c.x, o[1] + c.y, o[2] + c.z}};
    for (int e = 0; e < 6; e++)
        P[e] *= sign;
    double about_o[6] = {P[1] + P[2], P[0] + P[2], P[0] + P[1], -P[3], -P[4], -P[5]};
    memcpy(I.about_com, about_o, sizeof about_o);
    usi_inertia_add_point(I.about_com, -V, c);
    *out = I;
    return true;
}
