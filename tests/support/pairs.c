// See pairs.h.
#include "pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "geom/geom.h"

static struct {
    us_geom_kind a, b;
    uint64_t pose;
} place;

void pairs_at(us_geom_kind a, us_geom_kind b, uint64_t pose) {
    place.a = a;
    place.b = b;
    place.pose = pose;
}

void pairs_expect(bool holds, const char *what, double value, double limit) {
    if (holds) return;
    fail_msg("%s - %s, pose %llu: %s: %.12g against %.12g", us_geom_kind_name(place.a),
             us_geom_kind_name(place.b), (unsigned long long)place.pose, what, value, limit);
}

// ---- Chance ----

double pairs_random(uint64_t stream, uint64_t counter, double low, double high) {
    return low + (high - low) * us_random_uniform(7, stream, counter);
}

us_vec3 pairs_direction(uint64_t stream, uint64_t counter) {
    us_vec3 v = us_vec3_make(us_random_normal(7, stream, counter), us_random_normal(7, stream, counter + 1),
                             us_random_normal(7, stream, counter + 2));
    return us_vec3_scale(1 / us_vec3_norm(v), v);
}

us_quat pairs_rotation(uint64_t stream, uint64_t counter) {
    us_quat q = {us_random_normal(7, stream, counter), us_random_normal(7, stream, counter + 1),
                 us_random_normal(7, stream, counter + 2), us_random_normal(7, stream, counter + 3)};
    return us_quat_normalize(q);
}

void pairs_poses(double size_A, double size_B, uint64_t stream, us_pose *out_X_WA, us_pose *out_X_WB) {
    out_X_WA->q = pairs_rotation(stream, 100);
    out_X_WB->q = pairs_rotation(stream, 110);
    // Every eighth pair of poses has parallel axes: faces on faces and edges along edges.
    if (us_random_bits(7, stream, 120) % 8 == 0) out_X_WB->q = out_X_WA->q;
    out_X_WA->p = us_vec3_scale(pairs_random(stream, 130, 0, 2), pairs_direction(stream, 140));
    double apart = pairs_random(stream, 150, 0, 1.15) * (size_A + size_B);
    out_X_WB->p = us_vec3_add(out_X_WA->p, us_vec3_scale(apart, pairs_direction(stream, 160)));
}

// ---- Shapes ----

static us_vec3 point_in_box(uint64_t stream, uint64_t counter, double h) {
    return us_vec3_make(pairs_random(stream, counter, -h, h), pairs_random(stream, counter + 1, -h, h),
                        pairs_random(stream, counter + 2, -h, h));
}

static us_hull *random_hull(uint64_t stream, us_vec3 *p, int32_t n) {
    double h = exp(pairs_random(stream, 50, log(0.1), 0));
    for (int32_t i = 0; i < n; i++)
        p[i] = us_vec3_scale(h, pairs_direction(stream, 1000 + 10 * (uint64_t)i));
    us_hull *hull = NULL;
    assert_int_equal(us_hull_create(p, n, NULL, &hull, NULL), US_OK);
    return hull;
}

// A closed mesh that is not convex: a cube whose top is pressed in to a point, at a random size.
static us_mesh *random_mesh(uint64_t stream) {
    double h = exp(pairs_random(stream, 50, log(0.2), 0)), dent = pairs_random(stream, 51, -0.3, 0.6) * h;
    const us_vec3 v[9] = {{-h, -h, -h}, {h, -h, -h}, {h, h, -h}, {-h, h, -h}, {-h, -h, h},
                          {h, -h, h},   {h, h, h},   {-h, h, h}, {0, 0, dent}};
    const int32_t t[14][3] = {{0, 2, 1}, {0, 3, 2}, {0, 1, 5}, {0, 5, 4}, {1, 2, 6}, {1, 6, 5}, {2, 3, 7},
                              {2, 7, 6}, {3, 0, 4}, {3, 4, 7}, {4, 5, 8}, {5, 6, 8}, {6, 7, 8}, {7, 4, 8}};
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(v, 9, t, 14, NULL, &mesh, NULL), US_OK);
    return mesh;
}

// 2 m by 2 m, of 2 to 4 cells along x and 2 or 3 along y.
static us_height_field *random_field(uint64_t stream) {
    double z[20];
    int32_t n_x = 3 + (int32_t)(us_random_bits(7, stream, 52) % 3),
            n_y = 3 + (int32_t)(us_random_bits(7, stream, 53) % 2);
    for (int i = 0; i < 20; i++)
        z[i] = pairs_random(stream, 60 + (uint64_t)i, -0.2, 0.2);
    us_height_field *f = NULL;
    assert_int_equal(us_height_field_create(z, n_x, n_y, 2.0 / (n_x - 1), 2.0 / (n_y - 1), NULL, &f, NULL),
                     US_OK);
    return f;
}

// A box cut by a plane, a long cylinder cut by a flat box, or a lens of two balls, each with its twin.
static void random_intersection(uint64_t stream, pairs_shape *out) {
    us_geom *g = &out->geom;
    us_geom_part *p = out->parts;
    g->parts = p;
    g->n_part = 2;
    g->radius *= 0.5;
    out->twin = *g;
    p[0].X_GP = p[1].X_GP = us_pose_identity();
    const double *s = g->size;
    // Flat sides take microseconds, curved ones a hundred: half of them are flat, a third are cylinders.
    const int tree[6] = {0, 0, 0, 1, 1, 2};
    switch (tree[us_random_bits(7, stream, 70) % 6]) {
    case 0: {
        us_vec3 n = pairs_direction(stream, 71), corner[32];
        double c = pairs_random(stream, 80, -0.3, 0.3) * fmin(s[0], fmin(s[1], s[2]));
        p[0].geom = (us_geom){.kind = US_GEOM_BOX, .size = {s[0], s[1], s[2]}};
        p[1].geom = (us_geom){.kind = US_GEOM_HALF_SPACE};
        p[1].X_GP = (us_pose){us_quat_from_z(n), us_vec3_scale(c, n)};
        int32_t n_corner = 0;
        for (int i = 0; i < 8; i++) {
            us_vec3 a = us_vec3_make(i & 1 ? s[0] : -s[0], i & 2 ? s[1] : -s[1], i & 4 ? s[2] : -s[2]);
            double at_a = us_vec3_dot(n, a) - c;
            if (at_a <= 0) corner[n_corner++] = a;
            for (int k = 1; k < 8; k *= 2) {
                us_vec3 b = us_vec3_make(k == 1 ? -a.x : a.x, k == 2 ? -a.y : a.y, k == 4 ? -a.z : a.z);
                double at_b = us_vec3_dot(n, b) - c;
                if (at_a < 0 && at_b > 0)
                    corner[n_corner++] =
                        us_vec3_add(a, us_vec3_scale(at_a / (at_a - at_b), us_vec3_sub(b, a)));
            }
        }
        assert_int_equal(us_hull_create(corner, n_corner, NULL, &out->hull, NULL), US_OK);
        out->twin = (us_geom){.kind = US_GEOM_CONVEX, .radius = g->radius, .hull = out->hull};
        break;
    }
    case 1:
        p[0].geom = (us_geom){.kind = US_GEOM_CYLINDER, .size = {s[0], s[1] + 1}};
        p[1].geom = (us_geom){.kind = US_GEOM_BOX, .size = {s[0] + 1, s[0] + 0.5, s[1]}};
        out->twin = (us_geom){.kind = US_GEOM_CYLINDER, .radius = g->radius, .size = {s[0], s[1]}};
        break;
    default:
        // Balls of radius size[0] at z = -size[1] and +size[1].
        g->size[1] = pairs_random(stream, 81, 0.1, 0.9) * s[0];
        for (int k = 0; k < 2; k++) {
            p[k].geom = (us_geom){.kind = US_GEOM_SPHERE, .radius = s[0]};
            p[k].X_GP.p.z = k ? s[1] : -s[1];
        }
        out->twin = *g;
        break;
    }
}

// Two to four convex parts of any kind.
static void random_union(uint64_t stream, pairs_shape *out) {
    out->geom.parts = out->parts;
    out->geom.n_part = 2 + (int32_t)(us_random_bits(7, stream, 199) % 3);
    out->geom.radius *= 0.2;
    for (int k = 0; k < 4; k++) {
        uint64_t at = 200 + 10 * (uint64_t)k;
        us_geom *g = &out->parts[k].geom;
        *g = (us_geom){.kind = (us_geom_kind)(us_random_bits(7, stream, at) % US_GEOM_CONVEX),
                       .radius = pairs_random(stream, at + 1, 0, 0.2)};
        for (int i = 0; i < 3; i++)
            g->size[i] = pairs_random(stream, at + 2 + (uint64_t)i, 0.05, 0.4);
        for (int i = 0; i < 4; i++)
            g->point[i] = point_in_box(stream, 300 + 20 * (uint64_t)k + 3 * (uint64_t)i, 0.4);
        out->parts[k].X_GP = (us_pose){pairs_rotation(stream, 400 + at),
                                       us_vec3_scale(0.5, pairs_direction(stream, 450 + at))};
    }
    out->size = 1.5;
}

// A point of the half plane through the axis of a lens, at z >= 0: its distance.
static double lens_distance(double R, double c, double across, double z) {
    double rim = sqrt(R * R - c * c), far = hypot(across, z + c);
    if (far <= R) return 0;
    return R * (z + c) / far >= c ? far - R : hypot(across - rim, z);
}

static double shape_size(const us_geom *g) {
    double far = 0;
    for (uint64_t i = 0; i < 200; i++)
        far = fmax(far, us_vec3_norm(pairs_support(g, pairs_direction(1, 10 * i))));
    return 1.02 * far;
}

void pairs_shape_make(us_geom_kind kind, uint64_t stream, pairs_shape *out) {
    memset(out, 0, sizeof *out);
    us_geom *g = &out->geom;
    g->kind = kind;
    bool is_swept = us_random_bits(7, stream, 0) % 2 || kind == US_GEOM_SPHERE;
    if (is_swept) g->radius = exp(pairs_random(stream, 1, log(0.01), log(0.5)));
    for (int i = 0; i < 3; i++)
        g->size[i] = exp(pairs_random(stream, 2 + (uint64_t)i, log(0.05), 0));
    double h = exp(pairs_random(stream, 10, log(0.1), 0));
    for (int i = 0; i < 4; i++)
        g->point[i] = point_in_box(stream, 20 + 3 * (uint64_t)i, h);
    us_vec3 p[64];
    if (kind == US_GEOM_CONVEX)
        g->hull = out->hull = random_hull(stream, p, 6 + (int32_t)(us_random_bits(7, stream, 15) % 54));
    if (kind == US_GEOM_MESH) {
        g->mesh = out->mesh = random_mesh(stream);
        out->size = 1.8;
    }
    if (kind == US_GEOM_HEIGHT_FIELD) {
        g->field = out->field = random_field(stream);
        out->size = 1.5;
    }
    out->twin = *g;
    if (kind == US_GEOM_INTERSECTION) random_intersection(stream, out);
    if (kind == US_GEOM_UNION) random_union(stream, out);
    if (kind <= US_GEOM_CONVEX || kind == US_GEOM_INTERSECTION) out->size = shape_size(&out->twin);
    if (kind == US_GEOM_HALF_SPACE) out->size = 0.3;
    bool is_surface = kind == US_GEOM_MESH || kind == US_GEOM_HEIGHT_FIELD;
    if (is_surface) {
        g->radius *= 0.2;
        out->size += g->radius;
    }
    assert_int_equal(us_geom_check(g, NULL), US_OK);
}

void pairs_shape_free(pairs_shape *s) {
    us_hull_destroy(s->hull);
    us_mesh_destroy(s->mesh);
    us_height_field_destroy(s->field);
}

// ---- Supports ----

static us_vec3 farthest_of(const us_vec3 *p, int32_t n, us_vec3 d) {
    int32_t best = 0;
    double most = us_vec3_dot(p[0], d);
    for (int32_t i = 1; i < n; i++) {
        double along = us_vec3_dot(p[i], d);
        if (along > most) {
            most = along;
            best = i;
        }
    }
    return p[best];
}

us_vec3 pairs_support(const us_geom *g, us_vec3 d) {
    const double *s = g->size;
    double x = 0, y = 0;
    if (g->kind == US_GEOM_DISC || g->kind == US_GEOM_CYLINDER || g->kind == US_GEOM_CONE ||
        g->kind == US_GEOM_INTERSECTION) {
        double across = sqrt(d.x * d.x + d.y * d.y), inverse = across > 0 ? 1 / across : 0;
        x = inverse * d.x;
        y = inverse * d.y;
    }
    double sx = d.x < 0 ? -1 : 1, sy = d.y < 0 ? -1 : 1, sz = d.z < 0 ? -1 : 1;
    us_vec3 p = us_vec3_make(0, 0, 0);
    switch (g->kind) {
    case US_GEOM_SPHERE:
        break;
    case US_GEOM_CAPSULE:
        p.z = sz * s[0];
        break;
    case US_GEOM_LOZENGE:
        p = us_vec3_make(sx * s[0], sy * s[1], 0);
        break;
    case US_GEOM_DISC:
        p = us_vec3_make(x * s[0], y * s[0], 0);
        break;
    case US_GEOM_TRIANGLE:
        p = farthest_of(g->point, 3, d);
        break;
    case US_GEOM_BOX:
        p = us_vec3_make(sx * s[0], sy * s[1], sz * s[2]);
        break;
    case US_GEOM_CYLINDER:
        p = us_vec3_make(x * s[0], y * s[0], sz * s[1]);
        break;
    case US_GEOM_CONE: {
        us_vec3 tip = us_vec3_make(0, 0, s[1]), rim = us_vec3_make(x * s[0], y * s[0], -s[1]);
        p = us_vec3_dot(tip, d) > us_vec3_dot(rim, d) ? tip : rim;
        break;
    }
    case US_GEOM_ELLIPSOID: {
        double f = sqrt(s[0] * s[0] * d.x * d.x + s[1] * s[1] * d.y * d.y + s[2] * s[2] * d.z * d.z);
        if (f > 0) p = us_vec3_make(s[0] * s[0] * d.x / f, s[1] * s[1] * d.y / f, s[2] * s[2] * d.z / f);
        break;
    }
    case US_GEOM_TETRAHEDRON:
        p = farthest_of(g->point, 4, d);
        break;
    case US_GEOM_CONVEX:
        p = farthest_of(g->hull->vertex, g->hull->n_vertex, d);
        break;
    case US_GEOM_INTERSECTION: {
        double R = s[0], c = s[1], rim = sqrt(R * R - c * c);
        p = us_vec3_make(x * rim, y * rim, 0);
        if (fabs(d.z) * R > c) p = us_vec3_add(us_vec3_scale(R, d), us_vec3_make(0, 0, -sz * c));
        break;
    }
    default:
        fail_msg("no support for kind %d", (int)g->kind);
    }
    return us_vec3_add(p, us_vec3_scale(g->radius, d));
}

// ---- Distance of a point ----

static double segment_distance(us_vec3 p, us_vec3 a, us_vec3 b) {
    us_vec3 e = us_vec3_sub(b, a), r = us_vec3_sub(p, a);
    double ee = us_vec3_dot(e, e), t = ee > 0 ? fmin(1, fmax(0, us_vec3_dot(r, e) / ee)) : 0;
    return us_vec3_norm(us_vec3_sub(r, us_vec3_scale(t, e)));
}

static double triangle_distance(us_vec3 p, us_vec3 a, us_vec3 b, us_vec3 c) {
    us_vec3 e = us_vec3_sub(b, a), f = us_vec3_sub(c, a), r = us_vec3_sub(p, a), n = us_vec3_cross(e, f);
    double nn = us_vec3_dot(n, n);
    if (nn > 0) {
        double v = us_vec3_dot(us_vec3_cross(r, f), n) / nn, w = us_vec3_dot(us_vec3_cross(e, r), n) / nn;
        if (v >= 0 && w >= 0 && v + w <= 1) return fabs(us_vec3_dot(r, n)) / sqrt(nn);
    }
    return fmin(segment_distance(p, a, b), fmin(segment_distance(p, b, c), segment_distance(p, c, a)));
}

// The foot x_i = a_i^2 p_i / (a_i^2 + t) with t where it is on the surface; found by halving.
static double ellipsoid_distance(const double *a, us_vec3 at) {
    const double p[3] = {at.x, at.y, at.z};
    double inside = 0, low = 0, high = 0, d2 = 0;
    for (int i = 0; i < 3; i++) {
        inside += p[i] * p[i] / (a[i] * a[i]);
        high += a[i] * fabs(p[i]);
    }
    if (inside <= 1) return 0;
    high += 1e-300;
    for (int k = 0; k < 100; k++) {
        double t = 0.5 * (low + high), sum = 0;
        for (int i = 0; i < 3; i++)
            sum += a[i] * a[i] * p[i] * p[i] / ((a[i] * a[i] + t) * (a[i] * a[i] + t));
        if (sum > 1)
            low = t;
        else
            high = t;
    }
    for (int i = 0; i < 3; i++)
        d2 += pow(p[i] - a[i] * a[i] * p[i] / (a[i] * a[i] + high), 2);
    return sqrt(d2);
}

// Every face as a fan of triangles; 0 behind all faces.
static double hull_distance(const us_hull *h, us_vec3 p) {
    double least = INFINITY;
    bool is_inside = true;
    for (int32_t f = 0; f < h->n_face; f++) {
        if (us_vec3_dot(h->normal[f], p) > h->offset[f]) is_inside = false;
        const int32_t *c = h->face_vertex + h->face_start[f];
        for (int32_t k = 1; k + 1 < h->face_start[f + 1] - h->face_start[f]; k++)
            least = fmin(least, triangle_distance(p, h->vertex[c[0]], h->vertex[c[k]], h->vertex[c[k + 1]]));
    }
    return is_inside ? 0 : least;
}

static double tetrahedron_distance(const us_vec3 *q, us_vec3 p) {
    const int face[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    double least = INFINITY;
    bool is_inside = true;
    for (int i = 0; i < 4; i++) {
        us_vec3 a = q[face[i][0]], b = q[face[i][1]], c = q[face[i][2]],
                n = us_vec3_cross(us_vec3_sub(b, a), us_vec3_sub(c, a));
        if (us_vec3_dot(n, us_vec3_sub(p, a)) * us_vec3_dot(n, us_vec3_sub(q[face[i][3]], a)) <= 0)
            is_inside = false;
        least = fmin(least, triangle_distance(p, a, b, c));
    }
    return is_inside ? 0 : least;
}

double pairs_point_distance(const us_geom *g, us_vec3 p) {
    const double *s = g->size;
    double across = sqrt(p.x * p.x + p.y * p.y), d = 0;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        d = us_vec3_norm(p);
        break;
    case US_GEOM_CAPSULE:
        d = segment_distance(p, us_vec3_make(0, 0, -s[0]), us_vec3_make(0, 0, s[0]));
        break;
    case US_GEOM_LOZENGE:
        d = sqrt(pow(fmax(0, fabs(p.x) - s[0]), 2) + pow(fmax(0, fabs(p.y) - s[1]), 2) + p.z * p.z);
        break;
    case US_GEOM_DISC:
        d = hypot(fmax(0, across - s[0]), p.z);
        break;
    case US_GEOM_TRIANGLE:
        d = triangle_distance(p, g->point[0], g->point[1], g->point[2]);
        break;
    case US_GEOM_BOX:
        d = sqrt(pow(fmax(0, fabs(p.x) - s[0]), 2) + pow(fmax(0, fabs(p.y) - s[1]), 2) +
                 pow(fmax(0, fabs(p.z) - s[2]), 2));
        break;
    case US_GEOM_CYLINDER:
        d = hypot(fmax(0, across - s[0]), fmax(0, fabs(p.z) - s[1]));
        break;
    case US_GEOM_CONE: {
        // The half plane through p and the axis: a triangle.
        us_vec3 q = us_vec3_make(across, 0, p.z), tip = us_vec3_make(0, 0, s[1]),
                rim = us_vec3_make(s[0], 0, -s[1]), foot = us_vec3_make(0, 0, -s[1]);
        d = triangle_distance(q, foot, rim, tip);
        break;
    }
    case US_GEOM_ELLIPSOID:
        d = ellipsoid_distance(s, p);
        break;
    case US_GEOM_TETRAHEDRON:
        d = tetrahedron_distance(g->point, p);
        break;
    case US_GEOM_CONVEX:
        d = hull_distance(g->hull, p);
        break;
    case US_GEOM_INTERSECTION:
        d = lens_distance(s[0], s[1], across, fabs(p.z));
        break;
    default:
        fail_msg("no distance for kind %d", (int)g->kind);
    }
    return fmax(0, d - g->radius);
}

// ---- The reference ----

// Two shapes, posed; made once for many directions.
typedef struct duo {
    const us_geom *A, *B;
    us_mat3 R_AW, R_BW;
    us_vec3 p_BA_W;
} duo;

static duo duo_of(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    return (duo){A, B, us_quat_matrix(us_quat_conj(X_WA.q)), us_quat_matrix(us_quat_conj(X_WB.q)),
                 us_vec3_sub(X_WA.p, X_WB.p)};
}

static double separation(const duo *d, us_vec3 n) {
    us_vec3 n_A = us_mat3_mul_vec(&d->R_AW, us_vec3_scale(-1, n)), n_B = us_mat3_mul_vec(&d->R_BW, n);
    return us_vec3_dot(n, d->p_BA_W) - us_vec3_dot(n_A, pairs_support(d->A, n_A)) -
           us_vec3_dot(n_B, pairs_support(d->B, n_B));
}

double pairs_separation(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_vec3 n) {
    duo d = duo_of(A, X_WA, B, X_WB);
    return separation(&d, n);
}

static us_vec3 unit(us_vec3 v) { return us_vec3_scale(1 / us_vec3_norm(v), v); }

// Steps around n of one length, ever shorter.
static double refine(const duo *d, us_vec3 n, double best) {
    for (double step = 0.2; step > 1e-5;) {
        us_vec3 side = fabs(n.x) < 0.6 ? us_vec3_make(1, 0, 0) : us_vec3_make(0, 1, 0),
                u = unit(us_vec3_cross(n, side));
        us_vec3 v = us_vec3_cross(n, u), to = n;
        bool is_better = false;
        for (int k = 0; k < 8; k++) {
            const double c = 0.70710678118654752, x[8] = {1, c, 0, -c, -1, -c, 0, c},
                         y[8] = {0, c, 1, c, 0, -c, -1, -c};
            us_vec3 m = unit(us_vec3_add(
                n, us_vec3_scale(step, us_vec3_add(us_vec3_scale(x[k], u), us_vec3_scale(y[k], v)))));
            double s = separation(d, m);
            if (s > best) {
                best = s;
                to = m;
                is_better = true;
            }
        }
        n = to;
        if (!is_better) step *= 0.25;
    }
    return best;
}

enum { SAMPLES = 100, STARTS = 3 };

// A spiral of points, evenly spread over the unit sphere.
static const us_vec3 *sphere_samples(void) {
    static us_vec3 sample[SAMPLES];
    if (sample[0].z == 0)
        for (int i = 0; i < SAMPLES; i++) {
            double z = 1 - (2 * i + 1.0) / SAMPLES, r = sqrt(1 - z * z), turn = 2.39996322972865332 * i;
            sample[i] = us_vec3_make(r * cos(turn), r * sin(turn), z);
        }
    return sample;
}

double pairs_best_separation(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    duo d = duo_of(A, X_WA, B, X_WB);
    us_vec3 start[STARTS];
    const us_vec3 *sample = sphere_samples();
    double value[STARTS] = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < SAMPLES; i++) {
        us_vec3 n = sample[i];
        double s = separation(&d, n);
        // Of starts near each other only the better one counts.
        int at = STARTS - 1;
        for (int k = 0; k < STARTS; k++)
            if (value[k] > -INFINITY && us_vec3_dot(start[k], n) > 0.85) at = k;
        if (s <= value[at]) continue;
        value[at] = s;
        start[at] = n;
        for (; at > 0 && value[at] > value[at - 1]; at--) {
            double t = value[at];
            us_vec3 u = start[at];
            value[at] = value[at - 1];
            start[at] = start[at - 1];
            value[at - 1] = t;
            start[at - 1] = u;
        }
    }
    double best = -INFINITY;
    for (int k = 0; k < STARTS && value[k] > -INFINITY; k++)
        best = fmax(best, refine(&d, start[k], value[k]));
    return best;
}

// ---- Checks ----

void pairs_check_exchange(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, const us_gap *g) {
    us_gap t;
    assert_int_equal(us_geom_distance(B, X_WB, A, X_WA, &t), US_OK);
    // The same shape in the same place twice: nothing is exchanged.
    if (!memcmp(A, B, sizeof *A) && !memcmp(&X_WA, &X_WB, sizeof X_WA)) return;
    bool is_same = t.distance == g->distance && !memcmp(&t.p_A, &g->p_B, sizeof t.p_A) &&
                   !memcmp(&t.p_B, &g->p_A, sizeof t.p_A) && t.normal.x == -g->normal.x &&
                   t.normal.y == -g->normal.y && t.normal.z == -g->normal.z;
    pairs_expect(is_same, "exchanged, the distance differs", t.distance, g->distance);
}

void pairs_check_motion(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                        const us_gap *g, uint64_t stream, double noise) {
    // A half space has no size to turn.
    bool is_B = A->geom.kind == US_GEOM_HALF_SPACE;
    us_pose *X = is_B ? &X_WB : &X_WA;
    double step = pow(10, pairs_random(stream, 490, -8, -2)),
           angle = pow(10, pairs_random(stream, 491, -8, -2));
    X->p = us_vec3_add(X->p, us_vec3_scale(step, pairs_direction(stream, 500)));
    X->q = us_quat_mul(us_quat_exp(us_vec3_scale(angle, pairs_direction(stream, 510))), X->q);
    us_gap moved;
    assert_int_equal(us_geom_distance(&A->geom, X_WA, &B->geom, X_WB, &moved), US_OK);
    double change = fabs(moved.distance - g->distance),
           most = step + angle * (is_B ? B->size : A->size) + noise * (A->size + B->size);
    pairs_expect(change <= most, "moved a little, the distance changes by", change, most);
}

void pairs_check_contact(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, const us_gap *g,
                         double size) {
    const double margin = 0.05;
    us_manifold m;
    assert_int_equal(us_geom_contact(A, X_WA, B, X_WB, margin, &m), US_OK);
    // 1e-6: at the margin the two may differ by what they differ anyway.
    if (g->distance > margin + 1e-6 * size) {
        pairs_expect(m.n == 0, "contact points beyond the margin, distance", g->distance, margin);
        return;
    }
    if (g->distance > margin - 1e-6 * size) return;
    pairs_expect(m.n >= 1 && m.n <= US_MANIFOLD_POINTS, "number of contact points, distance", m.n,
                 g->distance);
    double deepest = INFINITY;
    for (int32_t i = 0; i < m.n; i++) {
        double gap = us_vec3_dot(m.normal[i], us_vec3_sub(m.p_A[i], m.p_B[i]));
        pairs_expect(fabs(gap - m.gap[i]) <= 1e-9 * size, "gap is not normal . (p_A - p_B)", m.gap[i], gap);
        pairs_expect(fabs(us_vec3_norm(m.normal[i]) - 1) < 1e-9, "length of a normal",
                     us_vec3_norm(m.normal[i]), 1);
        deepest = fmin(deepest, m.gap[i]);
    }
    // A tenth of a permille: flat contacts are preferred to slightly deeper edges.
    pairs_expect(fabs(deepest - g->distance) <= 1e-3 * size, "deepest contact point", deepest, g->distance);
    if (A->kind > US_GEOM_CONVEX || B->kind > US_GEOM_CONVEX) return;
    for (int32_t i = 0; i < m.n; i++) {
        double a = pairs_point_distance(A, us_pose_point(us_pose_inverse(X_WA), m.p_A[i]));
        double b = pairs_point_distance(B, us_pose_point(us_pose_inverse(X_WB), m.p_B[i]));
        pairs_expect(a <= 2e-3 * size, "p_A of a contact point is off A by", a, 2e-3 * size);
        pairs_expect(b <= 2e-3 * size, "p_B of a contact point is off B by", b, 2e-3 * size);
    }
}

static void check_convex_pose(const pairs_shape *A, const pairs_shape *B, uint64_t pose, int *n_overlap) {
    us_pose X_WA, X_WB;
    us_gap g;
    pairs_poses(A->size, B->size, pose, &X_WA, &X_WB);
    double size = A->size + B->size;
    assert_int_equal(us_geom_distance(&A->geom, X_WA, &B->geom, X_WB, &g), US_OK);
    bool is_number = isfinite(g.distance) && isfinite(us_vec3_dot(g.p_A, g.p_B)) &&
                     fabs(us_vec3_norm(g.normal) - 1) < 1e-9;
    pairs_expect(is_number, "the answer is no number, or the normal no unit", g.distance,
                 us_vec3_norm(g.normal));
    // Distances are known to rounding, depths of round bodies to 1e-6, all of intersections to about 1e-6.
    // Promised are 1e-4.
    bool is_cut = A->geom.kind == US_GEOM_INTERSECTION || B->geom.kind == US_GEOM_INTERSECTION,
         is_apart = g.distance > 0;
    const double enough = (is_cut ? 1e-5 : 1e-6) * size;
    us_vec3 rest = us_vec3_sub(us_vec3_sub(g.p_A, g.p_B), us_vec3_scale(g.distance, g.normal));
    pairs_expect(us_vec3_norm(rest) <= enough, "p_A - p_B is not distance * normal, by", us_vec3_norm(rest),
                 enough);
    // The first proof.
    double s = pairs_separation(&A->twin, X_WA, &B->twin, X_WB, g.normal);
    pairs_expect(fabs(s - g.distance) <= enough, "separation along the normal", s, g.distance);
    // The second. Deep within each other the points are on the surface only to the precision of the
    // direction.
    double a = pairs_point_distance(&A->twin, us_pose_point(us_pose_inverse(X_WA), g.p_A));
    double b = pairs_point_distance(&B->twin, us_pose_point(us_pose_inverse(X_WB), g.p_B));
    const double off = is_apart ? enough : 1e-4 * size;
    pairs_expect(a <= off, "p_A is off A by", a, off);
    pairs_expect(b <= off, "p_B is off B by", b, off);
    if (!is_apart) {
        double best = pairs_best_separation(&A->twin, X_WA, &B->twin, X_WB);
        // A cone or a cylinder deep in another has edges that EPA's faces follow to a few 1e-6.
        pairs_expect(best <= g.distance + 2e-5 * size, "a sampled direction is a shorter way out", best,
                     g.distance);
        ++*n_overlap;
    }
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    pairs_check_motion(A, X_WA, B, X_WB, &g, pose, is_cut ? 1e-5 : is_apart ? 1e-8 : 1e-6);
    pairs_check_contact(&A->geom, X_WA, &B->geom, X_WB, &g, size);
}

void pairs_check_convex(us_geom_kind a, us_geom_kind b, int n_pose) {
    enum { SHAPES = 50 };
    int per_shape = n_pose < SHAPES ? 1 : n_pose / SHAPES, n_overlap = 0;
    for (int i = 0; i < SHAPES; i++) {
        pairs_shape A, B;
        uint64_t stream = 1000000u * (uint64_t)((int)a * US_GEOM_COUNT + (int)b) + 10000u * (uint64_t)i;
        pairs_shape_make(a, stream + 1, &A);
        pairs_shape_make(b, stream + 2, &B);
        for (int k = 0; k < per_shape; k++) {
            uint64_t pose = stream + 10 + (uint64_t)k;
            pairs_at(a, b, pose);
            check_convex_pose(&A, &B, pose, &n_overlap);
        }
        pairs_shape_free(&A);
        pairs_shape_free(&B);
    }
    // Poses are drawn so that neither side of the question is left out.
    int n = SHAPES * per_shape;
    pairs_expect(n_overlap > n / 20 && n_overlap < n - n / 20, "overlapping poses, of", n_overlap, n);
}

// ---- Programs ----

typedef struct job {
    us_geom_kind a, b;
    int n_pose;
} job;

static void run_job(void **state) {
    const job *j = *state;
    pairs_check_convex(j->a, j->b, j->n_pose);
}

int pairs_run_with(us_geom_kind a, us_geom_kind first, us_geom_kind last, int n_pose) {
    static job jobs[US_GEOM_COUNT];
    static char names[US_GEOM_COUNT][96];
    static struct CMUnitTest tests[US_GEOM_COUNT];
    size_t n = 0;
    for (int b = (int)first; b <= (int)last; b++) {
        if (!pairs_is_convex((us_geom_kind)b)) continue;
        jobs[n] = (job){a, (us_geom_kind)b, n_pose};
        snprintf(names[n], sizeof names[n], "%s_and_%s_are_as_far_apart_or_as_deep_as_the_reference_says",
                 us_geom_kind_name(a), us_geom_kind_name((us_geom_kind)b));
        tests[n] = (struct CMUnitTest){names[n], run_job, NULL, NULL, &jobs[n]};
        n++;
    }
    return _cmocka_run_group_tests("pairs", tests, n, NULL, NULL);
}

int pairs_run(us_geom_kind first, us_geom_kind last, int n_pose) {
    int n_failed = 0;
    for (int a = (int)first; a <= (int)last; a++)
        n_failed += pairs_run_with((us_geom_kind)a, (us_geom_kind)a, US_GEOM_CONVEX, n_pose);
    return n_failed;
}
