// Triangles for pictures of depths.
//
// Shapes with flat faces are drawn as they are. Round ones are drawn over directions: the farthest points in
// directions that go round in n steps and from pole to pole in n / 2, joined as the directions are:
//
//     directions          /\  /\               shape       ______
//     from pole to pole  /__\/__\                         |\    /|     a cylinder: both caps, and a prism
//                        \  /\  /                         | \__/ |
//
// A circle of radius r has its chords r (1 - cos(pi / n)) inside, which is the error that n follows from.
#include "sim/depth_mesh.h"

#include <math.h>

#include "contact/soil.h"
#include "geom/geom.h"
#include "sim/sim__query.h"

static const double PI = 3.14159265358979323846;
// A half space is drawn as rings around the place under the sensor, each so much wider than the last one.
static const double RING_GROWTH = 1.25;
enum { RINGS = 64, SPOKES = 96, MIN_ROUND = 24, MAX_ROUND = 2048, MAX_TRIANGLE = 50000000 };

typedef struct mesh_maker {
    usi_depth_mesh *m;
    double facet;
    us_status status;
} mesh_maker;

static uint32_t add_point(mesh_maker *k, us_vec3 p) {
    usi_depth_mesh *m = k->m;
    if (!k->status)
        k->status = usi_grow(&m->allocator, (void **)&m->point, m->n_point, &m->cap_point, sizeof *m->point);
    if (k->status) return 0;
    m->point[m->n_point] = p;
    return (uint32_t)m->n_point++;
}

static void add_triangle(mesh_maker *k, uint32_t a, uint32_t b, uint32_t c) {
    usi_depth_mesh *m = k->m;
    if (!k->status && m->n_triangle == MAX_TRIANGLE) k->status = US_ERR_LIMIT;
    if (!k->status)
        k->status =
            usi_grow(&m->allocator, (void **)&m->corner, m->n_triangle, &m->cap_triangle, sizeof *m->corner);
    if (k->status) return;
    uint32_t *corner = m->corner[m->n_triangle++];
    corner[0] = a;
    corner[1] = b;
    corner[2] = c;
}

// ---------------------------------------------------------------- flat faces

// A table of points, row by row, each cell two triangles.
static void add_cells(mesh_maker *k, uint32_t first, int32_t n_x, int32_t n_y) {
    for (int32_t j = 0; j + 1 < n_y; j++) {
        for (int32_t i = 0; i + 1 < n_x; i++) {
            const uint32_t a = first + (uint32_t)(j * n_x + i), b = a + 1, d = a + (uint32_t)n_x, c = d + 1;
            add_triangle(k, a, b, c);
            add_triangle(k, a, c, d);
        }
    }
}

static void add_box(mesh_maker *k, const double *size, us_pose X) {
    const uint32_t first = (uint32_t)k->m->n_point;
    static const uint8_t face[6][4] = {{0, 2, 6, 4}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                       {2, 3, 7, 6}, {0, 1, 3, 2}, {4, 5, 7, 6}};
    for (int i = 0; i < 8; i++)
        add_point(k, us_pose_point(X, us_vec3_make(i & 1 ? size[0] : -size[0], i & 2 ? size[1] : -size[1],
                                                   i & 4 ? size[2] : -size[2])));
    for (int i = 0; i < 6; i++) {
        add_triangle(k, first + face[i][0], first + face[i][1], first + face[i][2]);
        add_triangle(k, first + face[i][0], first + face[i][2], first + face[i][3]);
    }
}

static void add_hull(mesh_maker *k, const us_hull *h, us_pose X) {
    const uint32_t first = (uint32_t)k->m->n_point;
    for (int32_t i = 0; i < h->n_vertex; i++)
        add_point(k, us_pose_point(X, h->vertex[i]));
    for (int32_t f = 0; f < h->n_face; f++) {
        const int32_t *corner = h->face_vertex + h->face_start[f],
                      n = h->face_start[f + 1] - h->face_start[f];
        for (int32_t i = 2; i < n; i++)
            add_triangle(k, first + (uint32_t)corner[0], first + (uint32_t)corner[i - 1],
                         first + (uint32_t)corner[i]);
    }
}

static void add_mesh(mesh_maker *k, const us_mesh *mesh, us_pose X) {
    const uint32_t first = (uint32_t)k->m->n_point;
    for (int32_t i = 0; i < mesh->n_vertex; i++)
        add_point(k, us_pose_point(X, mesh->vertex[i]));
    for (int32_t t = 0; t < mesh->n_triangle; t++) {
        const int32_t *c = mesh->triangle[t];
        add_triangle(k, first + (uint32_t)c[0], first + (uint32_t)c[1], first + (uint32_t)c[2]);
    }
}

static void add_corners(mesh_maker *k, const us_vec3 *p, int n, us_pose X) {
    static const uint8_t face[4][3] = {{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}};
    const uint32_t first = (uint32_t)k->m->n_point;
    for (int i = 0; i < n; i++)
        add_point(k, us_pose_point(X, p[i]));
    for (int i = 0; i < (n == 4 ? 4 : 1); i++)
        add_triangle(k, first + face[i][0], first + face[i][1], first + face[i][2]);
}

// ---------------------------------------------------------------- round shapes

static int32_t steps_round(const mesh_maker *k, const us_geom *g) {
    const us_aabb box = us_geom_box(g, us_pose_identity());
    const us_vec3 side = us_vec3_sub(box.max, box.min);
    const double r = 0.5 * fmax(side.x, fmax(side.y, side.z)), share = fmin(1, k->facet / r),
                 n = PI / acos(1 - share);
    return 4 * (int32_t)ceil(0.25 * fmin(MAX_ROUND, fmax(MIN_ROUND, n)));
}

static void add_round(mesh_maker *k, const us_geom *g, us_pose X) {
    const int32_t n = steps_round(k, g), rows = n / 2;
    const uint32_t first = (uint32_t)k->m->n_point;
    for (int32_t j = 1; j < rows; j++) {
        const double up = PI * j / rows - 0.5 * PI;
        for (int32_t i = 0; i < n; i++) {
            const double turn = 2 * PI * i / n;
            const us_vec3 d = us_vec3_make(cos(up) * cos(turn), cos(up) * sin(turn), sin(up));
            add_point(k, us_pose_point(X, us_geom_support(g, d)));
        }
    }
    const uint32_t low = add_point(k, us_pose_point(X, us_geom_support(g, us_vec3_make(0, 0, -1)))),
                   high = add_point(k, us_pose_point(X, us_geom_support(g, us_vec3_make(0, 0, 1)))),
                   top = first + (uint32_t)((rows - 2) * n);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t a = (uint32_t)i, b = (uint32_t)((i + 1) % n);
        add_triangle(k, low, first + a, first + b);
        add_triangle(k, high, top + a, top + b);
        for (int32_t j = 0; j + 2 < rows; j++) {
            const uint32_t row = first + (uint32_t)(j * n), next = row + (uint32_t)n;
            add_triangle(k, row + a, row + b, next + b);
            add_triangle(k, row + a, next + b, next + a);
        }
    }
}

// Rings that are placed with the sensor.
static void add_plane(mesh_maker *k) {
    const uint32_t first = (uint32_t)k->m->n_point;
    for (int32_t j = 0; j < RINGS; j++) {
        for (int32_t i = 0; i <= SPOKES; i++) {
            const double turn = 2 * PI * (i % SPOKES) / SPOKES, r = j == 0 ? 0 : pow(RING_GROWTH, j - 1);
            add_point(k, us_vec3_make(r * cos(turn), r * sin(turn), 0));
        }
    }
    add_cells(k, first, SPOKES + 1, RINGS);
}

// ---------------------------------------------------------------- all

static void add_geom(mesh_maker *k, const us_geom *g, us_pose X) {
    const bool is_flat = g->radius == 0;
    if (g->kind == US_GEOM_UNION) {
        for (int32_t i = 0; i < g->n_part && !k->status; i++)
            add_geom(k, &g->parts[i].geom, us_pose_mul(X, g->parts[i].X_GP));
    } else if (g->kind == US_GEOM_BOX && is_flat) {
        add_box(k, g->size, X);
    } else if (g->kind == US_GEOM_TRIANGLE && is_flat) {
        add_corners(k, g->point, 3, X);
    } else if (g->kind == US_GEOM_TETRAHEDRON && is_flat) {
        add_corners(k, g->point, 4, X);
    } else if (g->kind == US_GEOM_CONVEX && is_flat) {
        add_hull(k, g->hull, X);
    } else if (g->kind == US_GEOM_MESH) {
        add_mesh(k, g->mesh, X);
    } else if (usi_is_convex(g->kind) || g->kind == US_GEOM_INTERSECTION) {
        add_round(k, g, X);
    }
}

// Ground: its samples, or the columns of the soil on it; both are given their heights when they are placed.
static void add_ground(mesh_maker *k, const us_model *model, const usi_geom *g) {
    const us_height_field *f = g->geom.field;
    const usi_deformable_row *row = g->patch >= 0 ? &model->patch[g->patch] : NULL;
    const uint32_t first = (uint32_t)k->m->n_point;
    const int32_t n_x = row ? row->n_x : f->n_x, n_y = row ? row->n_y : f->n_y;
    const double dx = row ? row->spacing : f->dx, dy = row ? row->spacing : f->dy;
    for (int32_t j = 0; j < n_y && !k->status; j++) {
        for (int32_t i = 0; i < n_x && !k->status; i++)
            add_point(k, us_vec3_make((i - 0.5 * (n_x - 1)) * dx, (j - 0.5 * (n_y - 1)) * dy, 0));
    }
    add_cells(k, first, n_x, n_y);
}

us_status usi_depth_mesh_init(usi_depth_mesh *m, const us_model *model, double facet,
                              const us_allocator *allocator, us_error *err) {
    const size_t n = (size_t)model->n_geom + 1;
    *m = (usi_depth_mesh){.allocator = *allocator, .n_geom = model->n_geom};
    mesh_maker k = {m, facet, US_OK};
    m->first_point = usi_alloc(&m->allocator, n * sizeof *m->first_point, _Alignof(int32_t));
    m->first_triangle = usi_alloc(&m->allocator, n * sizeof *m->first_triangle, _Alignof(int32_t));
    if (!m->first_point || !m->first_triangle) k.status = US_ERR_MEMORY;
    for (int32_t i = 0; i <= m->n_geom && !k.status; i++) {
        m->first_point[i] = m->n_point;
        m->first_triangle[i] = m->n_triangle;
        if (i == m->n_geom) break;
        const usi_geom *g = &model->geom[i];
        if (g->geom.kind == US_GEOM_HEIGHT_FIELD && g->geom.field->pager)
            return us_error_set(err, US_ERR_LIMIT, NULL, "cut the zone that is seen out of it",
                                "ground that is paged in cannot be drawn as a whole");
        if (g->geom.kind == US_GEOM_HEIGHT_FIELD)
            add_ground(&k, model, g);
        else if (g->geom.kind == US_GEOM_HALF_SPACE)
            add_plane(&k);
        else
            add_geom(&k, &g->geom, us_pose_identity());
    }
    if (k.status == US_ERR_LIMIT)
        return us_error_set(err, US_ERR_LIMIT, NULL, "take a coarser `facet`, or fewer shapes",
                            "more than %d triangles", (int)MAX_TRIANGLE);
    return k.status ? us_error_set(err, k.status, NULL, NULL, "no memory for triangles") : US_OK;
}

void usi_depth_mesh_fini(usi_depth_mesh *m) {
    const us_allocator *a = &m->allocator;
    const size_t n = (size_t)m->n_geom + 1;
    usi_release(a, m->point, (size_t)m->cap_point * sizeof *m->point, _Alignof(max_align_t));
    usi_release(a, m->corner, (size_t)m->cap_triangle * sizeof *m->corner, _Alignof(max_align_t));
    usi_release(a, m->first_point, n * sizeof *m->first_point, _Alignof(int32_t));
    usi_release(a, m->first_triangle, n * sizeof *m->first_triangle, _Alignof(int32_t));
}

// A shape in which the sensor is does not stop its beams.
static bool is_around(const us_sim *s, int32_t geom, us_pose X_WG, us_vec3 o) {
    const us_geom *g = &s->model->geom[geom].geom;
    return g->kind != US_GEOM_HEIGHT_FIELD && us_geom_ray(g, X_WG, o, us_vec3_make(1, 0, 0), 1e-9).range == 0;
}

void usi_depth_mesh_place(const usi_depth_mesh *m, const us_sim *s, us_pose X_WS, us_vec3 *out_points) {
    usi_shapes_start(s);
    const us_pose X_SW = us_pose_inverse(X_WS);
    for (int32_t i = 0; i < m->n_geom; i++) {
        const usi_geom *g = &s->model->geom[i];
        const us_pose X_WG = usi_shape_pose(s, i), X_SG = us_pose_mul(X_SW, X_WG);
        const us_mat3 R = us_quat_matrix(X_SG.q);
        const usi_deformable *patch = usi_shape_patch(s, i);
        const bool is_hidden = is_around(s, i, X_WG, X_WS.p),
                   is_ground = g->geom.kind == US_GEOM_HEIGHT_FIELD,
                   is_plane = g->geom.kind == US_GEOM_HALF_SPACE;
        us_vec3 under = us_pose_point(us_pose_inverse(X_WG), X_WS.p);
        const double reach = fmax(fabs(under.z), 1e-6);
        for (int32_t k = m->first_point[i]; k < m->first_point[i + 1]; k++) {
            us_vec3 p = m->point[k];
            if (is_ground) p.z = usi_surface_at(g, patch, p.x, p.y);
            if (is_plane) p = us_vec3_make(under.x + reach * p.x, under.y + reach * p.y, g->geom.radius);
            out_points[k] = is_hidden ? us_vec3_make(0, 0, 0) : us_vec3_add(us_mat3_mul_vec(&R, p), X_SG.p);
        }
    }
}
