// Distance and depth of surfaces made of triangles: meshes and height fields.
//
// Apart, the distance is that of the nearest triangle. The depth where shapes overlap is a definition, since
// the shortest translation that frees a shape from a solid with hollows has no quick answer. It is the
// maximum of lower bounds of that translation:
//
//   off a triangle     the shortest translation that takes the whole shape off one triangle, taken alone
//   out of the solid   (closed meshes, and everything under a height field) for each of some balls in the
//                      shape, fixed to it: the distance of its middle to the surface, plus its radius
//
//            ___                middle above the face: the translation off the triangle says it all
//          /     \              .
//     ____|___.___|____ face    middle below: the translation off the triangle would be down; out of the
//          \_____/              solid, the ball in the shape says how far it is up
//
// The balls: every corner, or 16 points of a rim, or the ends of the axes, each with the shape's own radius;
// and the largest one round the middle (of triangles, polyhedra and intersections: round the mean of the
// others, with the shape's own radius). Of an intersection, its farthest points along six directions. Of a
// surface, its vertices. So
//
//   - the depth is never more than the true one (the shortest translation that frees the shape), and equals
//     it for spheres, on flat ground, and off a convex edge or corner that is not passed by;
//   - no bound changes by more than the shapes move, and so neither does the answer. The one exception is the
//     rim of a height field: its sides, under the rim, are no surface. What goes through them is under the
//     field at once.
//
// One traversal serves every search: down the tree of a mesh, or halving the blocks of a field, the nearer
// part first; boxes that are farther than the limit are left out.
#include "geom/surface.h"

#include "geom/contact_candidates.h"
#include "geom/intersection.h"
#include "geom/standoff.h"

#include <float.h>

// Minimum and maximum without the care for NaN of fmin and fmax, which costs a call.
static inline double fast_min(double a, double b) { return a < b ? a : b; }
static inline double fast_max(double a, double b) { return a > b ? a : b; }
static inline us_vec3 vec3_min(us_vec3 a, us_vec3 b) {
    return us_vec3_make(fast_min(a.x, b.x), fast_min(a.y, b.y), fast_min(a.z, b.z));
}
static inline us_vec3 vec3_max(us_vec3 a, us_vec3 b) {
    return us_vec3_make(fast_max(a.x, b.x), fast_max(a.y, b.y), fast_max(a.z, b.z));
}
static double box_distance(us_aabb a, us_aabb b) {
    us_vec3 d =
        vec3_max(vec3_max(us_vec3_sub(a.min, b.max), us_vec3_sub(b.min, a.max)), us_vec3_make(0, 0, 0));
    return us_vec3_norm(d);
}

// ---- the walk
// ----------------------------------------------------------------

// Traversal of a surface's triangles; the first member of each search.
typedef struct surface_walk surface_walk;
struct surface_walk {
    double limit;    // what is farther is skipped; `meet` lowers it
    us_vec3 toward;  // of two parts the one nearer to this point comes first
    double (*apart)(const surface_walk *w, us_aabb box);             // nothing in the box is nearer than this
    void (*meet)(surface_walk *w, us_vec3 a, us_vec3 b, us_vec3 c);  // one triangle
};

// Boxes that touch are not left out: what is in them may overlap.
static bool is_too_far(const surface_walk *w, us_aabb box) {
    double d = w->apart(w, box);
    return d > 0 && d >= w->limit;
}

static void walk_tree(surface_walk *w, const us_mesh *m, int32_t at) {
    const usi_bvh_node *node = &m->node[at];
    if (is_too_far(w, (us_aabb){node->min, node->max})) return;
    for (int32_t i = node->first; i < node->first + node->count; i++) {
        const int32_t *t = m->triangle[m->order[i]];
        w->meet(w, m->vertex[t[0]], m->vertex[t[1]], m->vertex[t[2]]);
    }
    if (node->count > 0) return;
    const us_aabb point = {w->toward, w->toward};
    const usi_bvh_node *left = &m->node[node->first], *right = left + 1;
    bool is_right_first = box_distance(point, (us_aabb){right->min, right->max}) <
                          box_distance(point, (us_aabb){left->min, left->max});
    walk_tree(w, m, node->first + is_right_first);
    walk_tree(w, m, node->first + !is_right_first);
}

static double height_at(const us_height_field *f, int32_t i, int32_t j) {
    return f->height[(size_t)j * (size_t)f->n_x + (size_t)i];
}

// Cells i0 .. i1 - 1, j0 .. j1 - 1.
typedef struct cell_block {
    int32_t i0, i1, j0, j1;
} cell_block;

static cell_block whole_field(const us_height_field *f) { return (cell_block){0, f->n_x - 1, 0, f->n_y - 1}; }

// Large blocks only know the extremes of the whole field, smaller ones those of their tiles; single cells
// have their own.
static us_aabb block_box(const us_height_field *f, cell_block b) {
    us_vec3 min = usi_field_point(f, b.i0, b.j0), max = usi_field_point(f, b.i1, b.j1);
    min.z = f->low;
    max.z = f->high;
    if (b.i1 - b.i0 == 1 && b.j1 - b.j0 == 1) {
        double h[4] = {height_at(f, b.i0, b.j0), height_at(f, b.i1, b.j0), height_at(f, b.i0, b.j1),
                       height_at(f, b.i1, b.j1)};
        min.z = fast_min(fast_min(h[0], h[1]), fast_min(h[2], h[3]));
        max.z = fast_max(fast_max(h[0], h[1]), fast_max(h[2], h[3]));
        return (us_aabb){min, max};
    }
    int32_t t0 = b.i0 / USI_FIELD_TILE, t1 = (b.i1 - 1) / USI_FIELD_TILE, u0 = b.j0 / USI_FIELD_TILE,
            u1 = (b.j1 - 1) / USI_FIELD_TILE;
    if (t1 - t0 > 3 || u1 - u0 > 3) return (us_aabb){min, max};
    min.z = INFINITY;
    max.z = -INFINITY;
    for (int32_t u = u0; u <= u1; u++) {
        for (int32_t t = t0; t <= t1; t++) {
            const double *tile = f->tile[(size_t)u * (size_t)f->n_tile_x + (size_t)t];
            min.z = fast_min(min.z, tile[0]);
            max.z = fast_max(max.z, tile[1]);
        }
    }
    return (us_aabb){min, max};
}

// Where a block is halved: at the border of a tile as long as it has several.
static int32_t middle_of(int32_t from, int32_t to) {
    int32_t k = from + (to - from) / 2, tile = k / USI_FIELD_TILE * USI_FIELD_TILE;
    return tile > from ? tile : (tile + USI_FIELD_TILE < to ? tile + USI_FIELD_TILE : k);
}

// Halves the block along its longer side.
static void walk_block(surface_walk *w, const us_height_field *f, cell_block b) {
    if (is_too_far(w, block_box(f, b))) return;
    if (b.i1 - b.i0 == 1 && b.j1 - b.j0 == 1) {
        us_vec3 p = usi_field_point(f, b.i0, b.j0), q = usi_field_point(f, b.i1, b.j1);
        w->meet(w, p, usi_field_point(f, b.i1, b.j0), q);
        w->meet(w, p, q, usi_field_point(f, b.i0, b.j1));
        return;
    }
    bool is_wide = b.i1 - b.i0 > b.j1 - b.j0;
    cell_block half[2] = {b, b};
    int32_t k = is_wide ? middle_of(b.i0, b.i1) : middle_of(b.j0, b.j1);
    if (is_wide)
        half[0].i1 = half[1].i0 = k;
    else
        half[0].j1 = half[1].j0 = k;
    us_vec3 split = usi_field_point(f, half[1].i0, half[1].j0);
    bool is_upper_first = is_wide ? w->toward.x > split.x : w->toward.y > split.y;
    walk_block(w, f, half[is_upper_first]);
    walk_block(w, f, half[!is_upper_first]);
}

static void walk_surface(surface_walk *w, const us_geom *surface) {
    if (surface->kind == US_GEOM_MESH)
        walk_tree(w, surface->mesh, 0);
    else
        walk_block(w, surface->field, whole_field(surface->field));
}

// ---- off a triangle
// ----------------------------------------------------------------

// By the region that q is in: corners first, then sides, then the face (Ericson, Real-time collision
// detection, 5.1.5).
us_vec3 usi_triangle_nearest(us_vec3 q, us_vec3 a, us_vec3 b, us_vec3 c) {
    us_vec3 ab = us_vec3_sub(b, a), ac = us_vec3_sub(c, a), aq = us_vec3_sub(q, a), bq = us_vec3_sub(q, b),
            cq = us_vec3_sub(q, c);
    double d1 = us_vec3_dot(ab, aq), d2 = us_vec3_dot(ac, aq), d3 = us_vec3_dot(ab, bq),
           d4 = us_vec3_dot(ac, bq);
    double d5 = us_vec3_dot(ab, cq), d6 = us_vec3_dot(ac, cq);
    if (d1 <= 0 && d2 <= 0) return a;
    if (d3 >= 0 && d4 <= d3) return b;
    if (d6 >= 0 && d5 <= d6) return c;
    double vc = d1 * d4 - d3 * d2, vb = d5 * d2 - d1 * d6, va = d3 * d6 - d5 * d4;
    if (vc <= 0 && d1 >= 0 && d3 <= 0 && d1 > d3) return us_vec3_add(a, us_vec3_scale(d1 / (d1 - d3), ab));
    if (vb <= 0 && d2 >= 0 && d6 <= 0 && d2 > d6) return us_vec3_add(a, us_vec3_scale(d2 / (d2 - d6), ac));
    double along = d4 - d3, back = d5 - d6;
    if (va <= 0 && along >= 0 && back >= 0 && along + back > 0)
        return us_vec3_add(b, us_vec3_scale(along / (along + back), us_vec3_sub(c, b)));
    double sum = va + vb + vc;
    return sum > 0 ? us_vec3_add(a, us_vec3_add(us_vec3_scale(vb / sum, ab), us_vec3_scale(vc / sum, ac)))
                   : a;
}

// A convex shape against triangles, everything in the frame G of the surface. The shape is A, the surface B.
typedef struct shape_search {
    surface_walk base;  // limit: of best; toward: a point inside the shape
    const us_geom *shape;
    us_pose X_GS;
    usi_intersection *meet;  // of an intersection, otherwise NULL
    us_aabb box;             // around the shape, radius included
    us_gap best;
} shape_search;

// The farthest point of the shape along the unit vector d, radius included.
static us_vec3 farthest(const shape_search *s, us_vec3 d) {
    us_vec3 d_S = us_quat_rotate(us_quat_conj(s->X_GS.q), d),
            core = s->meet ? usi_intersection_support(s->meet, d_S) : usi_core_support(s->shape, d_S);
    return us_vec3_add(us_pose_point(s->X_GS, core), us_vec3_scale(s->shape->radius, d));
}

// The distance of two boxes; or, where that would not do, of a plane across the line from the box's nearest
// point q to the shape's middle: the box is behind it.
static double apart_from_plane(const shape_search *s, us_vec3 q) {
    us_vec3 v = us_vec3_sub(s->base.toward, q);
    double length = us_vec3_norm(v);
    if (!(length > 0) || length <= s->base.limit) return 0;
    v = us_vec3_scale(1 / length, v);
    // Less rounding: what is equal is for the full computation to say.
    return us_vec3_dot(v, us_vec3_sub(farthest(s, us_vec3_scale(-1, v)), q)) - 1e-12 * length;
}

static double search_apart(const surface_walk *w, us_aabb box) {
    const shape_search *s = (const shape_search *)w;
    double d = box_distance(s->box, box);
    if ((d > 0 && d >= w->limit) || w->limit == DBL_MAX) return d;
    return fast_max(d, apart_from_plane(s, vec3_max(box.min, vec3_min(box.max, w->toward))));
}

static void search_meet(surface_walk *w, us_vec3 a, us_vec3 b, us_vec3 c) {
    shape_search *s = (shape_search *)w;
    double d = box_distance(s->box, (us_aabb){vec3_min(a, vec3_min(b, c)), vec3_max(a, vec3_max(b, c))});
    if (d > 0 && d >= w->limit) return;
    if (w->limit < DBL_MAX) {
        d = apart_from_plane(s, usi_triangle_nearest(w->toward, a, b, c));
        if (d > 0 && d >= w->limit) return;
    }
    us_geom triangle = {.kind = US_GEOM_TRIANGLE, .point = {a, b, c}};
    us_gap g = usi_convex_gap_cached(s->shape, s->X_GS, s->meet, &triangle, us_pose_identity());
    if (g.distance >= w->limit) return;
    s->best = g;
    w->limit = g.distance;
}

static shape_search search_begin(const us_geom *shape, us_pose X_GS, usi_intersection *meet, double limit) {
    shape_search s = {.base = {.limit = limit, .apart = search_apart, .meet = search_meet},
                      .shape = shape,
                      .X_GS = X_GS,
                      .meet = meet};
    s.best.distance = limit;
    us_vec3 p[6], sum = us_vec3_make(0, 0, 0);
    for (int i = 0; i < 6; i++) {
        double sign = i % 2 ? 1 : -1;
        p[i] =
            farthest(&s, us_vec3_make(i / 2 == 0 ? sign : 0, i / 2 == 1 ? sign : 0, i / 2 == 2 ? sign : 0));
        sum = us_vec3_add(sum, p[i]);
    }
    s.base.toward = us_vec3_scale(1.0 / 6, sum);
    s.box = (us_aabb){us_vec3_make(p[0].x, p[2].y, p[4].z), us_vec3_make(p[1].x, p[3].y, p[5].z)};
    return s;
}

// ---- out of the solid
// ----------------------------------------------------------------

// The point of a surface nearest to a point.
typedef struct nearest_search {
    surface_walk base;  // toward: the point; limit: its distance
    us_vec3 q, face;    // the nearest point, and the normal (of any length) of the triangle it is on
} nearest_search;

static double nearest_apart(const surface_walk *w, us_aabb box) {
    return box_distance((us_aabb){w->toward, w->toward}, box);
}

static void nearest_meet(surface_walk *w, us_vec3 a, us_vec3 b, us_vec3 c) {
    nearest_search *n = (nearest_search *)w;
    us_vec3 q = usi_triangle_nearest(w->toward, a, b, c);
    double d = us_vec3_norm(us_vec3_sub(q, w->toward));
    if (d >= w->limit) return;
    w->limit = d;
    n->q = q;
    n->face = us_vec3_cross(us_vec3_sub(b, a), us_vec3_sub(c, a));
}

// How far a point is under a height field, straight up; below 0 over it and beside it.
static double depth_under(const us_height_field *f, us_vec3 p) {
    double x = p.x / f->dx + 0.5 * (f->n_x - 1), y = p.y / f->dy + 0.5 * (f->n_y - 1);
    if (!(x >= 0 && y >= 0 && x <= f->n_x - 1 && y <= f->n_y - 1)) return -1;
    int32_t i = (int32_t)fmin(floor(x), f->n_x - 2), j = (int32_t)fmin(floor(y), f->n_y - 2);
    double u = x - i, v = y - j, low = height_at(f, i, j), high = height_at(f, i + 1, j + 1);
    double side = u > v ? height_at(f, i + 1, j) : height_at(f, i, j + 1);
    // Along x and then along y over the one triangle, the other way round over the other.
    double surface =
        u > v ? low + u * (side - low) + v * (high - side) : low + v * (side - low) + u * (high - side);
    return surface - p.z;
}

static bool is_solid(const us_geom *surface) {
    return surface->kind == US_GEOM_HEIGHT_FIELD || surface->mesh->is_closed;
}

static bool is_in_box(us_vec3 p, us_vec3 min, us_vec3 max) {
    return p.x >= min.x && p.y >= min.y && p.z >= min.z && p.x <= max.x && p.y <= max.y && p.z <= max.z;
}

static bool is_inside(const us_geom *surface, us_vec3 p) {
    if (surface->kind == US_GEOM_HEIGHT_FIELD) return depth_under(surface->field, p) > 0;
    const us_mesh *m = surface->mesh;
    return is_in_box(p, m->node[0].min, m->node[0].max) && usi_mesh_contains(m, p);
}

// The way out for a ball with its middle in the solid, where that is deeper than the best so far. The ball is
// of A, the surface B.
static void try_ball(const us_geom *surface, us_vec3 p, double r, us_gap *best) {
    if (surface->kind == US_GEOM_HEIGHT_FIELD) {
        // No way to the surface is longer than the one straight up.
        double up = depth_under(surface->field, p);
        if (!(up > 0) || up + r <= -best->distance) return;
    } else if (!is_in_box(p, surface->mesh->node[0].min, surface->mesh->node[0].max)) {
        return;
    }
    nearest_search to = {.base = {DBL_MAX, p, nearest_apart, nearest_meet}, .q = p, .face = {0, 0, 1}};
    walk_surface(&to.base, surface);
    double d = to.base.limit;
    if (d + r <= -best->distance || !is_inside(surface, p)) return;
    us_vec3 face = usi_vec3_unit(to.face, us_vec3_make(0, 0, 1));
    // On the surface the offset to it has no direction.
    us_vec3 n = d > 1e-10 * us_vec3_norm(to.q) ? us_vec3_scale(1 / d, us_vec3_sub(to.q, p)) : face;
    // The normal first, so that the points are this far apart to the last bit but one.
    *best = (us_gap){-d - r, us_vec3_sub(to.q, us_vec3_scale(d + r, n)), to.q, n};
}

// The largest ball round the middle that is known to lie in the shape.
static double ball_in_middle(const us_geom *g, us_vec3 *out_p) {
    const double *s = g->size;
    us_vec3 sum = us_vec3_make(0, 0, 0);
    int32_t n = g->kind == US_GEOM_TRIANGLE      ? 3
                : g->kind == US_GEOM_TETRAHEDRON ? 4
                : g->kind == US_GEOM_CONVEX      ? g->hull->n_vertex
                                                 : 0;
    const us_vec3 *corner = g->kind == US_GEOM_CONVEX ? g->hull->vertex : g->point;
    for (int32_t i = 0; i < n; i++)
        sum = us_vec3_add(sum, corner[i]);
    *out_p = n > 0 ? us_vec3_scale(1.0 / n, sum) : sum;
    switch (g->kind) {
    case US_GEOM_BOX:
    case US_GEOM_ELLIPSOID:
        return g->radius + fast_min(s[0], fast_min(s[1], s[2]));
    case US_GEOM_CYLINDER:
        return g->radius + fast_min(s[0], s[1]);
    case US_GEOM_CONE: {
        // The circle in the triangle that is the cone seen from its side.
        double side = s[0] + sqrt(s[0] * s[0] + 4 * s[1] * s[1]), r = side > 0 ? 2 * s[0] * s[1] / side : 0;
        out_p->z = r - s[1];
        return g->radius + r;
    }
    default:
        return g->radius;
    }
}

enum { RIM = 16 };

// Corners, points of the rims, ends of the axes: how many, and where.
static int32_t n_corner(const us_geom *g) {
    switch (g->kind) {
    case US_GEOM_CAPSULE:
        return 2;
    case US_GEOM_LOZENGE:
        return 4;
    case US_GEOM_DISC:
        return RIM;
    case US_GEOM_TRIANGLE:
        return 3;
    case US_GEOM_BOX:
        return 8;
    case US_GEOM_CYLINDER:
        return 2 * RIM + 2;
    case US_GEOM_CONE:
        return RIM + 1;
    case US_GEOM_ELLIPSOID:
    case US_GEOM_INTERSECTION:
        return 6;
    case US_GEOM_TETRAHEDRON:
        return 4;
    case US_GEOM_CONVEX:
        return g->hull->n_vertex;
    default:
        return 0;
    }
}

static us_vec3 corner_of(const us_geom *g, usi_intersection *meet, int32_t i) {
    const double *s = g->size, sign = i % 2 ? 1 : -1;
    if (g->kind == US_GEOM_TRIANGLE || g->kind == US_GEOM_TETRAHEDRON) return g->point[i];
    if (g->kind == US_GEOM_CONVEX) return g->hull->vertex[i];
    if (g->kind == US_GEOM_ELLIPSOID)
        return us_vec3_make(i / 2 == 0 ? sign * s[0] : 0, i / 2 == 1 ? sign * s[1] : 0,
                            i / 2 == 2 ? sign * s[2] : 0);
    if (g->kind == US_GEOM_INTERSECTION) {
        // The farthest points along six directions near its axes: not along them, where a face may lie
        // across.
        const double d[3] = {sign, 0.31 * sign, 0.17 * sign};
        return usi_intersection_support(meet, us_vec3_make(d[i / 2], d[(i / 2 + 1) % 3], d[(i / 2 + 2) % 3]));
    }
    if (g->kind == US_GEOM_CAPSULE) return us_vec3_make(0, 0, sign * s[0]);
    if (g->kind == US_GEOM_LOZENGE || g->kind == US_GEOM_BOX)
        return us_vec3_make(sign * s[0], i / 2 % 2 ? s[1] : -s[1],
                            g->kind == US_GEOM_BOX ? (i / 4 ? s[2] : -s[2]) : 0);
    // Rims; after them the middles of a cylinder's ends, or the tip of a cone.
    static const double c[RIM] = {1,  0.92387953251128674,  0.70710678118654752,  0.38268343236508977,
                                  0,  -0.38268343236508977, -0.70710678118654752, -0.92387953251128674,
                                  -1, -0.92387953251128674, -0.70710678118654752, -0.38268343236508977,
                                  0,  0.38268343236508977,  0.70710678118654752,  0.92387953251128674};
    double z = g->kind == US_GEOM_DISC   ? 0
               : g->kind == US_GEOM_CONE ? -s[1]
               : i < RIM || i == 2 * RIM ? -s[1]
                                         : s[1];
    if (g->kind == US_GEOM_CONE && i == RIM) return us_vec3_make(0, 0, s[1]);
    if (i >= 2 * RIM) return us_vec3_make(0, 0, z);
    return us_vec3_make(s[0] * c[i % RIM], s[0] * c[(i + RIM - RIM / 4) % RIM], z);
}

static void try_balls(shape_search *s, const us_geom *surface) {
    us_vec3 p;
    double r = ball_in_middle(s->shape, &p);
    us_vec3 sum = us_vec3_make(0, 0, 0);
    int32_t n = n_corner(s->shape);
    for (int32_t i = 0; i < n; i++) {
        us_vec3 corner = corner_of(s->shape, s->meet, i);
        sum = us_vec3_add(sum, corner);
        try_ball(surface, us_pose_point(s->X_GS, corner), s->shape->radius, &s->best);
    }
    if (s->meet) p = us_vec3_scale(1.0 / n, sum);
    try_ball(surface, us_pose_point(s->X_GS, p), r, &s->best);
}

us_gap usi_surface_gap_convex(const us_geom *shape, us_pose X_GS, const us_geom *surface) {
    usi_intersection meet;
    bool is_meeting = shape->kind == US_GEOM_INTERSECTION;
    if (is_meeting && (!usi_intersection_init(&meet, shape) ||
                       isnan(usi_intersection_support(&meet, us_vec3_make(0, 0, 1)).x)))
        return (us_gap){.distance = NAN};
    shape_search s = search_begin(shape, X_GS, is_meeting ? &meet : NULL, DBL_MAX);
    walk_surface(&s.base, surface);
    // Where nothing crosses a closed mesh, one point of the shape decides for all of it.
    bool may_be_inside = is_solid(surface) && (surface->kind == US_GEOM_HEIGHT_FIELD ||
                                               s.best.distance <= 0 || is_inside(surface, s.base.toward));
    if (may_be_inside) try_balls(&s, surface);
    return s.best;
}

// ---- surface against surface
// ----------------------------------------------------------------

// One triangle of A at a time, as a shape of its own, in the frame of B. The walk is over A, in A's frame.
typedef struct surface_pair {
    surface_walk base;
    const us_geom *B;
    us_pose X_BA;
    us_aabb box;  // around B
    us_gap best;
} surface_pair;

static us_aabb surface_box(const us_geom *g) {
    if (g->kind == US_GEOM_MESH) return (us_aabb){g->mesh->node[0].min, g->mesh->node[0].max};
    us_aabb box = block_box(g->field, whole_field(g->field));
    box.min.z = g->field->low;
    box.max.z = g->field->high;
    return box;
}

static us_aabb posed_box(us_aabb box, us_pose X) {
    us_aabb out = {us_vec3_make(DBL_MAX, DBL_MAX, DBL_MAX), us_vec3_make(-DBL_MAX, -DBL_MAX, -DBL_MAX)};
    for (int i = 0; i < 8; i++) {
        us_vec3 p =
            us_pose_point(X, us_vec3_make(i & 1 ? box.max.x : box.min.x, i & 2 ? box.max.y : box.min.y,
                                          i & 4 ? box.max.z : box.min.z));
        out.min = vec3_min(out.min, p);
        out.max = vec3_max(out.max, p);
    }
    return out;
}

static double duel_apart(const surface_walk *w, us_aabb box) {
    const surface_pair *d = (const surface_pair *)w;
    return box_distance(d->box, posed_box(box, d->X_BA));
}

static void duel_meet(surface_walk *w, us_vec3 a, us_vec3 b, us_vec3 c) {
    surface_pair *d = (surface_pair *)w;
    us_geom triangle = {
        .kind = US_GEOM_TRIANGLE,
        .point = {us_pose_point(d->X_BA, a), us_pose_point(d->X_BA, b), us_pose_point(d->X_BA, c)}};
    shape_search s = search_begin(&triangle, us_pose_identity(), NULL, w->limit);
    walk_surface(&s.base, d->B);
    if (s.best.distance >= w->limit) return;
    d->best = s.best;
    w->limit = s.best.distance;
}

// The vertices of A that are inside the solid B.
static us_gap try_vertices(const us_geom *A, us_pose X_BA, const us_geom *B, us_gap best) {
    if (!is_solid(B)) return best;
    if (A->kind == US_GEOM_MESH) {
        for (int32_t i = 0; i < A->mesh->n_vertex; i++)
            try_ball(B, us_pose_point(X_BA, A->mesh->vertex[i]), 0, &best);
        return best;
    }
    // Of a field only those that can be in B's box, which for a field goes down without end.
    const us_height_field *f = A->field;
    us_aabb all = surface_box(A), near = all;
    if (B->kind == US_GEOM_MESH) near = posed_box(surface_box(B), us_pose_inverse(X_BA));
    double x = 0.5 * (f->n_x - 1), y = 0.5 * (f->n_y - 1);
    int32_t i0 = (int32_t)fmax(0, ceil(near.min.x / f->dx + x)),
            i1 = (int32_t)fmin(f->n_x - 1, floor(near.max.x / f->dx + x));
    int32_t j0 = (int32_t)fmax(0, ceil(near.min.y / f->dy + y)),
            j1 = (int32_t)fmin(f->n_y - 1, floor(near.max.y / f->dy + y));
    for (int32_t j = j0; j <= j1; j++)
        for (int32_t i = i0; i <= i1; i++)
            try_ball(B, us_pose_point(X_BA, usi_field_point(f, i, j)), 0, &best);
    return best;
}

us_gap usi_surface_gap(const us_geom *A, us_pose X_BA, const us_geom *B) {
    us_pose X_AB = us_pose_inverse(X_BA);
    us_aabb box = surface_box(B);
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(box.min, box.max));
    surface_pair d = {.base = {DBL_MAX, us_pose_point(X_AB, middle), duel_apart, duel_meet},
                      .B = B,
                      .X_BA = X_BA,
                      .box = box,
                      .best = {.distance = DBL_MAX}};
    walk_surface(&d.base, A);
    us_gap best = try_vertices(A, X_BA, B, d.best);
    us_gap of_B = try_vertices(B, X_AB, A, (us_gap){.distance = best.distance});
    if (of_B.distance < best.distance)
        best = usi_gap_swapped((us_gap){of_B.distance, us_pose_point(X_BA, of_B.p_A),
                                        us_pose_point(X_BA, of_B.p_B), us_quat_rotate(X_BA.q, of_B.normal)});
    return best;
}
