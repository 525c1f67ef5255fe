// Distance between any two shapes: which method for which pair, and surfaces made of triangles.
//
//                 convex        half space     mesh            height field
//   convex        gjk + epa     one corner     tree of boxes   blocks of cells, under and near the shape
//   half space                  planes         corners         corners
//   mesh                                       both trees      tree and blocks
//   height field                                               blocks of both
//
// A union is the nearest of its parts. Every pair is computed in one fixed order (usi_is_swapped) and turned round afterwards
// if need be, so that both orders give the same bits. A radius, also that of a mesh or a union, is taken off at the end.
//
// Two half spaces have a distance only when their faces look at each other exactly; others overlap without end: US_ERR_ARG.
// An intersection counts as convex: its farthest points are found by cutting planes (meet.c), to 1e-7 of its size. One that is empty or without end
// is refused: US_ERR_ARG.
//
// What a surface of triangles answers. Apart, the distance is exact. Where a convex shape crosses the surface, each triangle by itself
// gives the shortest way off it, and the deepest counts: exact on flat ground and on ridges, a lower bound of the depth in a
// valley, where two sides push at once. The shortest way may lead through the surface into the solid. So for height fields
// and closed meshes a triangle that is touched on its face (not on its edge, where the neighbour has a say) pushes out along its normal:
//
//            ___                     middle above the face: the way off the triangle is up, as it should be
//          /     \                   middle below: the way off the triangle is down. Instead the whole
//     ____|___.___|____ face         shape is lifted over the plane of the face
//          \_____/
//
// A shape whose middle is under a height field is lifted over the triangle above its middle, however deep it is. A shape wholly inside
// a closed mesh is pushed out through the nearest face's plane: right for convex solids when that face is the nearest, an estimate otherwise.
// Mesh against mesh or height field is each triangle of the first as a shape of its own; a mesh wholly inside another is
// not told from one outside (surfaces, not solids).
#include "geom/meet.h"

#include <float.h>

// ---- a convex shape against triangles -----------------------------------------------------------------------------------

// Everything in the frame G of the surface. The shape is A, the surface B.
typedef struct search {
    const us_geom *shape;
    us_pose X_GS;
    us_aabb box;     // around the shape, radius included
    us_vec3 middle;  // a point inside it
    bool is_solid;   // the surface has an inside
    us_gap best;
    us_vec3 face_point, face_normal;  // of the triangle that gave the best
    bool is_on_face;                  // and whether it is touched on its face
} search;

// fmin and fmax take care of NaN, by a call; here there is none.
static inline double less(double a, double b) { return a < b ? a : b; }
static inline double more(double a, double b) { return a > b ? a : b; }
static inline us_vec3 vec3_min(us_vec3 a, us_vec3 b) { return us_vec3_make(less(a.x, b.x), less(a.y, b.y), less(a.z, b.z)); }
static inline us_vec3 vec3_max(us_vec3 a, us_vec3 b) { return us_vec3_make(more(a.x, b.x), more(a.y, b.y), more(a.z, b.z)); }
static double box_distance(const us_aabb *a, const us_aabb *b) {
    us_vec3 d = vec3_max(vec3_max(us_vec3_sub(a->min, b->max), us_vec3_sub(b->min, a->max)), us_vec3_make(0, 0, 0));
    return us_vec3_norm(d);
}
// Boxes that touch are not left out: the shapes in them may overlap.
static bool is_too_far(const search *s, us_vec3 min, us_vec3 max) {
    us_aabb box = {min, max};
    double d = box_distance(&s->box, &box);
    return d > 0 && d >= s->best.distance;
}
static double distance_to(const search *s, us_vec3 min, us_vec3 max) {
    us_aabb box = {min, max};
    return box_distance(&s->box, &box);
}

// The farthest point of a posed convex shape along the unit vector d, radius included.
static us_vec3 farthest(const us_geom *g, us_pose X_GS, us_vec3 d) {
    us_vec3 core = us_pose_point(X_GS, usi_core_support(g, us_quat_rotate(us_quat_conj(X_GS.q), d)));
    return us_vec3_add(core, us_vec3_scale(g->radius, d));
}

static search search_begin(const us_geom *shape, us_pose X_GS, bool is_solid, const us_gap *best) {
    search s = {.shape = shape, .X_GS = X_GS, .is_solid = is_solid};
    s.best.distance = best ? best->distance : DBL_MAX;
    us_vec3 p[6];
    for (int i = 0; i < 6; i++) {
        double sign = i % 2 ? 1 : -1;
        p[i] = farthest(shape, X_GS, us_vec3_make(i / 2 == 0 ? sign : 0, i / 2 == 1 ? sign : 0, i / 2 == 2 ? sign : 0));
        s.middle = us_vec3_add(s.middle, us_vec3_scale(1.0 / 6, p[i]));
    }
    s.box.min = us_vec3_make(p[0].x, p[2].y, p[4].z);
    s.box.max = us_vec3_make(p[1].x, p[3].y, p[5].z);
    return s;
}

// The shape lifted over a plane, when that is deeper than what was found before.
static void push_over(search *s, us_vec3 point, us_vec3 normal) {
    us_vec3 x = farthest(s->shape, s->X_GS, us_vec3_scale(-1, normal));
    double d = us_vec3_dot(normal, us_vec3_sub(x, point));
    if (d >= s->best.distance || d >= 0) return;
    s->best = (us_gap){d, x, us_vec3_sub(x, us_vec3_scale(d, normal)), normal};
}

// Whether a point of a triangle's plane lies in it, not on its border.
static bool is_within(us_vec3 q, const us_vec3 p[3], us_vec3 n, double twice_area) {
    for (int i = 0; i < 3; i++) {
        us_vec3 a = us_vec3_sub(p[i], q), b = us_vec3_sub(p[(i + 1) % 3], q);
        if (us_vec3_dot(n, us_vec3_cross(a, b)) <= 1e-9 * twice_area) return false;
    }
    return true;
}

// The point of a triangle nearest to q: by the region that q is in, corners first, then sides, then the face (Ericson, Real-time collision
// detection, 5.1.5).
static us_vec3 nearest_on_triangle(us_vec3 q, us_vec3 a, us_vec3 b, us_vec3 c) {
    us_vec3 ab = us_vec3_sub(b, a), ac = us_vec3_sub(c, a), aq = us_vec3_sub(q, a), bq = us_vec3_sub(q, b), cq = us_vec3_sub(q, c);
    double d1 = us_vec3_dot(ab, aq), d2 = us_vec3_dot(ac, aq), d3 = us_vec3_dot(ab, bq), d4 = us_vec3_dot(ac, bq);
    double d5 = us_vec3_dot(ab, cq), d6 = us_vec3_dot(ac, cq);
    if (d1 <= 0 && d2 <= 0) return a;
    if (d3 >= 0 && d4 <= d3) return b;
    if (d6 >= 0 && d5 <= d6) return c;
    double vc = d1 * d4 - d3 * d2, vb = d5 * d2 - d1 * d6, va = d3 * d6 - d5 * d4;
    if (vc <= 0 && d1 >= 0 && d3 <= 0 && d1 > d3) return us_vec3_add(a, us_vec3_scale(d1 / (d1 - d3), ab));
    if (vb <= 0 && d2 >= 0 && d6 <= 0 && d2 > d6) return us_vec3_add(a, us_vec3_scale(d2 / (d2 - d6), ac));
    double along = d4 - d3, back = d5 - d6;
    if (va <= 0 && along >= 0 && back >= 0 && along + back > 0) return us_vec3_add(b, us_vec3_scale(along / (along + back), us_vec3_sub(c, b)));
    double sum = va + vb + vc;
    return sum > 0 ? us_vec3_add(a, us_vec3_add(us_vec3_scale(vb / sum, ab), us_vec3_scale(vc / sum, ac))) : a;
}

// q is the point of a convex set nearest to the shape's middle: the set lies behind the plane through q, across the way to the middle. Is the
// shape in front of that plane, farther than the best so far?
static bool is_behind(const search *s, us_vec3 q) {
    us_vec3 v = us_vec3_sub(s->middle, q);
    double length = us_vec3_norm(v);
    if (!(length > 0) || length <= s->best.distance) return false;
    v = us_vec3_scale(1 / length, v);
    double distance = us_vec3_dot(v, us_vec3_sub(farthest(s->shape, s->X_GS, us_vec3_scale(-1, v)), q));
    // Above the best by more than rounding: what is equal is for the full computation to say.
    return distance > 0 && distance > s->best.distance + 1e-12 * length;
}

static void try_triangle(search *s, us_vec3 p0, us_vec3 p1, us_vec3 p2) {
    if (is_too_far(s, vec3_min(p0, vec3_min(p1, p2)), vec3_max(p0, vec3_max(p1, p2)))) return;
    if (s->best.distance < DBL_MAX && is_behind(s, nearest_on_triangle(s->middle, p0, p1, p2))) return;
    us_geom triangle = {.kind = US_GEOM_TRIANGLE, .point = {p0, p1, p2}};
    us_gap g = usi_convex_gap(s->shape, s->X_GS, &triangle, us_pose_identity());
    const us_vec3 p[3] = {p0, p1, p2};
    us_vec3 n = us_vec3_cross(us_vec3_sub(p1, p0), us_vec3_sub(p2, p0));
    double twice_area = us_vec3_norm(n);
    n = twice_area > 0 ? us_vec3_scale(1 / twice_area, n) : g.normal;
    bool is_on_face = twice_area > 0 && is_within(g.p_B, p, n, twice_area);
    if (s->is_solid && g.distance < 0 && is_on_face && us_vec3_dot(g.normal, n) < 0) {
        push_over(s, p0, n);
        return;
    }
    if (g.distance >= s->best.distance) return;
    s->best = g;
    s->face_point = p0;
    s->face_normal = n;
    s->is_on_face = is_on_face;
}

// ---- meshes -------------------------------------------------------------------------------------------------------------

static void search_node(search *s, const us_mesh *m, int32_t at) {
    const usi_bvh_node *node = &m->node[at];
    if (is_too_far(s, node->min, node->max)) return;
    for (int32_t i = node->first; i < node->first + node->count; i++) {
        const int32_t *t = m->triangle[m->order[i]];
        try_triangle(s, m->vertex[t[0]], m->vertex[t[1]], m->vertex[t[2]]);
    }
    if (node->count > 0) return;
    const usi_bvh_node *left = &m->node[node->first], *right = left + 1;
    bool is_right_nearer = distance_to(s, right->min, right->max) < distance_to(s, left->min, left->max);
    search_node(s, m, node->first + is_right_nearer);
    search_node(s, m, node->first + !is_right_nearer);
}

// How often the closed surface goes round q: 1 inside, 0 outside. The sum of the solid angles of all triangles (Van Oosterom, Strackee 1983).
static double winding(const us_mesh *m, us_vec3 q) {
    double sum = 0;
    for (int32_t i = 0; i < m->n_triangle; i++) {
        us_vec3 a = us_vec3_sub(m->vertex[m->triangle[i][0]], q), b = us_vec3_sub(m->vertex[m->triangle[i][1]], q);
        us_vec3 c = us_vec3_sub(m->vertex[m->triangle[i][2]], q);
        double la = us_vec3_norm(a), lb = us_vec3_norm(b), lc = us_vec3_norm(c);
        double above = us_vec3_dot(a, us_vec3_cross(b, c));
        double below = la * lb * lc + us_vec3_dot(a, b) * lc + us_vec3_dot(b, c) * la + us_vec3_dot(c, a) * lb;
        sum += atan2(above, below);
    }
    return sum / (2 * 3.14159265358979323846);
}

static void search_mesh(search *s, const us_mesh *m) {
    if (m->n_node == 0) return;
    search_node(s, m, 0);
}

static us_gap convex_mesh(const us_geom *shape, us_pose X_GS, const us_mesh *m) {
    search s = search_begin(shape, X_GS, m->is_closed, NULL);
    search_mesh(&s, m);
    if (m->is_closed && s.best.distance > 0 && s.best.distance < DBL_MAX) {
        // Nothing crosses: wholly outside or wholly inside. On a face its normal tells; on an edge only the whole surface does.
        bool is_inside = s.is_on_face ? us_vec3_dot(s.best.normal, s.face_normal) < 0 : winding(m, s.middle) > 0.5;
        if (is_inside) push_over(&s, s.face_point, s.face_normal);
    }
    return s.best;
}

// ---- height fields ------------------------------------------------------------------------------------------------------

static double height_at(const us_height_field *f, int32_t i, int32_t j) { return f->height[(size_t)j * (size_t)f->n_x + (size_t)i]; }

// Cells i0 .. i1 - 1, j0 .. j1 - 1. Large blocks only know the extremes of the whole field, smaller ones those of their tiles; single cells
// have their own.
static void block_box(const us_height_field *f, int32_t i0, int32_t i1, int32_t j0, int32_t j1, us_vec3 *min, us_vec3 *max) {
    *min = usi_field_point(f, i0, j0);
    *max = usi_field_point(f, i1, j1);
    min->z = f->low, max->z = f->high;
    if (i1 - i0 > 1 || j1 - j0 > 1) {
        int32_t t0 = i0 / USI_FIELD_TILE, t1 = (i1 - 1) / USI_FIELD_TILE, u0 = j0 / USI_FIELD_TILE, u1 = (j1 - 1) / USI_FIELD_TILE;
        if (t1 - t0 > 3 || u1 - u0 > 3) return;
        min->z = INFINITY, max->z = -INFINITY;
        for (int32_t u = u0; u <= u1; u++) {
            for (int32_t t = t0; t <= t1; t++) {
                const double *tile = f->tile[(size_t)u * (size_t)f->n_tile_x + (size_t)t];
                min->z = tile[0] < min->z ? tile[0] : min->z, max->z = tile[1] > max->z ? tile[1] : max->z;
            }
        }
        return;
    }
    double a = height_at(f, i0, j0), b = height_at(f, i1, j0), c = height_at(f, i0, j1), d = height_at(f, i1, j1);
    min->z = fmin(fmin(a, b), fmin(c, d)), max->z = fmax(fmax(a, b), fmax(c, d));
}

// Where a block is halved: at the border of a tile as long as it has several.
static int32_t middle_of(int32_t from, int32_t to) {
    int32_t k = from + (to - from) / 2, tile = k / USI_FIELD_TILE * USI_FIELD_TILE;
    return tile > from ? tile : (tile + USI_FIELD_TILE < to ? tile + USI_FIELD_TILE : k);
}

// Halves the block along its longer side, the nearer half first; what is farther than the best so far is left out.
static void search_block(search *s, const us_height_field *f, int32_t i0, int32_t i1, int32_t j0, int32_t j1) {
    us_vec3 min, max;
    block_box(f, i0, i1, j0, j1, &min, &max);
    if (is_too_far(s, min, max)) return;
    if (s->best.distance < DBL_MAX && is_behind(s, vec3_max(min, vec3_min(max, s->middle)))) return;
    if (i1 - i0 == 1 && j1 - j0 == 1) {
        us_vec3 p = usi_field_point(f, i0, j0), q = usi_field_point(f, i1, j1);
        try_triangle(s, p, usi_field_point(f, i1, j0), q);
        try_triangle(s, p, q, usi_field_point(f, i0, j1));
        return;
    }
    bool is_wide = i1 - i0 > j1 - j0;
    int32_t k = is_wide ? middle_of(i0, i1) : middle_of(j0, j1);
    double split = is_wide ? usi_field_point(f, k, j0).x : usi_field_point(f, i0, k).y;
    bool is_upper_first = (is_wide ? s->middle.x : s->middle.y) > split;
    for (int half = 0; half < 2; half++) {
        bool is_upper = (half == 1) != is_upper_first;
        if (is_wide)
            search_block(s, f, is_upper ? k : i0, is_upper ? i1 : k, j0, j1);
        else
            search_block(s, f, i0, i1, is_upper ? k : j0, is_upper ? j1 : k);
    }
}

// Lifts a shape whose middle is under the surface over the triangle above its middle.
static void lift_out(search *s, const us_height_field *f) {
    double x = s->middle.x / f->dx + 0.5 * (f->n_x - 1), y = s->middle.y / f->dy + 0.5 * (f->n_y - 1);
    if (!(x >= 0 && y >= 0 && x <= f->n_x - 1 && y <= f->n_y - 1)) return;
    int32_t i = (int32_t)fmin(floor(x), f->n_x - 2), j = (int32_t)fmin(floor(y), f->n_y - 2);
    bool is_lower = x - i > y - j;
    us_vec3 p = usi_field_point(f, i, j), q = usi_field_point(f, i + 1, j + 1);
    us_vec3 r = is_lower ? usi_field_point(f, i + 1, j) : usi_field_point(f, i, j + 1);
    us_vec3 n = us_vec3_cross(us_vec3_sub(q, p), us_vec3_sub(r, p));
    if (n.z < 0) n = us_vec3_scale(-1, n);
    n = us_vec3_scale(1 / us_vec3_norm(n), n);
    if (us_vec3_dot(n, us_vec3_sub(s->middle, p)) < 0) push_over(s, p, n);
}

static void search_field(search *s, const us_height_field *f) {
    lift_out(s, f);
    search_block(s, f, 0, f->n_x - 1, 0, f->n_y - 1);
}

// ---- surface against surface --------------------------------------------------------------------------------------------

// One triangle of A at a time, as a shape of its own, in the frame of B.
typedef struct duel {
    const us_geom *B;
    us_pose X_BA;
    us_aabb box;  // around B
    us_gap best;
} duel;

static void duel_triangle(duel *d, us_vec3 p0, us_vec3 p1, us_vec3 p2) {
    us_geom triangle = {.kind = US_GEOM_TRIANGLE, .point = {us_pose_point(d->X_BA, p0), us_pose_point(d->X_BA, p1), us_pose_point(d->X_BA, p2)}};
    search s = search_begin(&triangle, us_pose_identity(), d->B->kind == US_GEOM_HEIGHT_FIELD, &d->best);
    if (d->B->kind == US_GEOM_MESH)
        search_mesh(&s, d->B->mesh);
    else
        search_field(&s, d->B->field);
    if (s.best.distance < d->best.distance) d->best = s.best;
}

// Whether a box of A's frame is farther from B's than the best so far.
static bool duel_is_too_far(const duel *d, us_vec3 min, us_vec3 max) {
    us_aabb box = {us_vec3_make(DBL_MAX, DBL_MAX, DBL_MAX), us_vec3_make(-DBL_MAX, -DBL_MAX, -DBL_MAX)};
    for (int i = 0; i < 8; i++) {
        us_vec3 p = us_pose_point(d->X_BA, us_vec3_make(i & 1 ? max.x : min.x, i & 2 ? max.y : min.y, i & 4 ? max.z : min.z));
        box.min = vec3_min(box.min, p);
        box.max = vec3_max(box.max, p);
    }
    double distance = box_distance(&d->box, &box);
    return distance > 0 && distance >= d->best.distance;
}

static void duel_node(duel *d, const us_mesh *m, int32_t at) {
    const usi_bvh_node *node = &m->node[at];
    if (duel_is_too_far(d, node->min, node->max)) return;
    for (int32_t i = node->first; i < node->first + node->count; i++) {
        const int32_t *t = m->triangle[m->order[i]];
        duel_triangle(d, m->vertex[t[0]], m->vertex[t[1]], m->vertex[t[2]]);
    }
    if (node->count > 0) return;
    duel_node(d, m, node->first);
    duel_node(d, m, node->first + 1);
}

static void duel_block(duel *d, const us_height_field *f, int32_t i0, int32_t i1, int32_t j0, int32_t j1) {
    us_vec3 min, max;
    block_box(f, i0, i1, j0, j1, &min, &max);
    if (duel_is_too_far(d, min, max)) return;
    if (i1 - i0 == 1 && j1 - j0 == 1) {
        us_vec3 p = usi_field_point(f, i0, j0), q = usi_field_point(f, i1, j1);
        duel_triangle(d, p, usi_field_point(f, i1, j0), q);
        duel_triangle(d, p, q, usi_field_point(f, i0, j1));
        return;
    }
    bool is_wide = i1 - i0 > j1 - j0;
    int32_t k = is_wide ? middle_of(i0, i1) : middle_of(j0, j1);
    duel_block(d, f, i0, is_wide ? k : i1, j0, is_wide ? j1 : k);
    duel_block(d, f, is_wide ? k : i0, i1, is_wide ? j0 : k, j1);
}

static us_gap surface_surface(const us_geom *A, const us_geom *B, us_pose X_BA) {
    duel d = {.B = B, .X_BA = X_BA, .best = {.distance = DBL_MAX}};
    if (B->kind == US_GEOM_MESH)
        d.box = (us_aabb){B->mesh->node[0].min, B->mesh->node[0].max};
    else {
        // A height field is solid: everything under it is in its box.
        block_box(B->field, 0, B->field->n_x - 1, 0, B->field->n_y - 1, &d.box.min, &d.box.max);
        d.box.min.z = -DBL_MAX, d.box.max.z = B->field->high;
    }
    if (A->kind == US_GEOM_MESH)
        duel_node(&d, A->mesh, 0);
    else
        duel_block(&d, A->field, 0, A->field->n_x - 1, 0, A->field->n_y - 1);
    return d.best;
}

// ---- half spaces --------------------------------------------------------------------------------------------------------

// The half space is A; x is the point of B (in W) that is deepest in it.
static us_gap half_space_gap(us_pose X_WA, us_vec3 x) {
    us_vec3 n = us_quat_rotate(X_WA.q, us_vec3_make(0, 0, 1));
    double d = us_vec3_dot(n, us_vec3_sub(x, X_WA.p));
    return (us_gap){d, us_vec3_sub(x, us_vec3_scale(d, n)), x, us_vec3_scale(-1, n)};
}

// The corner of a surface that is farthest along d (of its own frame).
static us_vec3 farthest_corner(const us_geom *g, us_vec3 d) {
    int32_t n = g->kind == US_GEOM_MESH ? g->mesh->n_vertex : g->field->n_x * g->field->n_y;
    us_vec3 best = us_vec3_make(0, 0, 0);
    double most = -DBL_MAX;
    for (int32_t i = 0; i < n; i++) {
        us_vec3 p = g->kind == US_GEOM_MESH ? g->mesh->vertex[i] : usi_field_point(g->field, i % g->field->n_x, i / g->field->n_x);
        double along = us_vec3_dot(p, d);
        if (along > most) most = along, best = p;
    }
    return best;
}

// Cores of A, a half space, and B, a half space or a surface.
static us_status half_space_core(us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    us_vec3 n = us_quat_rotate(X_WA.q, us_vec3_make(0, 0, 1));
    if (B->kind != US_GEOM_HALF_SPACE) {
        us_vec3 d_B = us_quat_rotate(us_quat_conj(X_WB.q), us_vec3_scale(-1, n));
        *out = half_space_gap(X_WA, us_pose_point(X_WB, farthest_corner(B, d_B)));
        return US_OK;
    }
    us_vec3 m = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1)), sum = us_vec3_add(n, m);
    // Within the rounding of two rotations they are parallel.
    if (us_vec3_norm(sum) > 1e-12) return US_ERR_ARG;
    *out = half_space_gap(X_WA, X_WB.p);
    return US_OK;
}

// ---- every pair ---------------------------------------------------------------------------------------------------------

static bool is_convex(us_geom_kind kind) { return usi_is_convex(kind) || kind == US_GEOM_INTERSECTION; }

static us_status check(const us_geom *g) {
    if (!g || (int)g->kind < 0 || g->kind >= US_GEOM_COUNT) return US_ERR_ARG;
    if (g->kind == US_GEOM_CONVEX && !g->hull) return US_ERR_ARG;
    if (g->kind == US_GEOM_MESH && (!g->mesh || g->mesh->n_node < 1)) return US_ERR_ARG;
    if (g->kind == US_GEOM_HEIGHT_FIELD && (!g->field || g->field->n_x < 2 || g->field->n_y < 2)) return US_ERR_ARG;
    if (g->kind != US_GEOM_UNION && g->kind != US_GEOM_INTERSECTION) return US_OK;
    if (!g->parts || g->n_part < 1) return US_ERR_ARG;
    for (int32_t i = 0; i < g->n_part; i++) {
        us_geom_kind kind = g->parts[i].geom.kind;
        bool may_meet = is_convex(kind) || kind == US_GEOM_HALF_SPACE;
        if (check(&g->parts[i].geom) || (g->kind == US_GEOM_INTERSECTION && !may_meet)) return US_ERR_ARG;
    }
    return US_OK;
}

static us_status distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out);

// B is a union.
static us_status to_union(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    us_gap best = {.distance = INFINITY};
    for (int32_t i = 0; i < B->n_part; i++) {
        us_gap g;
        us_status status = distance(A, X_WA, &B->parts[i].geom, us_pose_mul(X_WB, B->parts[i].X_GP), &g);
        if (status) return status;
        if (i == 0 || g.distance < best.distance) best = g;
    }
    *out = usi_gap_swept(best, 0, B->radius);
    return US_OK;
}

static us_gap posed(us_gap g, us_pose X_WG) {
    return (us_gap){g.distance, us_pose_point(X_WG, g.p_A), us_pose_point(X_WG, g.p_B), us_quat_rotate(X_WG.q, g.normal)};
}

// A before B: kinds in the order of the list, but that an intersection comes before what is not convex.
static us_status ordered(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    if (B->kind == US_GEOM_INTERSECTION && !is_convex(A->kind)) {
        us_status status = ordered(B, X_WB, A, X_WA, out);
        if (!status) *out = usi_gap_turned(*out);
        return status;
    }
    if (B->kind == US_GEOM_UNION) return to_union(A, X_WA, B, X_WB, out);
    if (is_convex(B->kind)) {
        *out = usi_convex_gap(A, X_WA, B, X_WB);
        return US_OK;
    }
    if (is_convex(A->kind) && B->kind == US_GEOM_HALF_SPACE) {
        us_vec3 n = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1));
        *out = usi_gap_swept(usi_gap_turned(half_space_gap(X_WB, farthest(A, X_WA, us_vec3_scale(-1, n)))), 0, B->radius);
        return US_OK;
    }
    us_pose X_BA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    if (is_convex(A->kind)) {
        if (B->kind == US_GEOM_MESH)
            *out = convex_mesh(A, X_BA, B->mesh);
        else {
            search s = search_begin(A, X_BA, true, NULL);
            search_field(&s, B->field);
            *out = s.best;
        }
        *out = usi_gap_swept(posed(*out, X_WB), 0, B->radius);
        return US_OK;
    }
    us_status status = US_OK;
    if (A->kind == US_GEOM_HALF_SPACE)
        status = half_space_core(X_WA, B, X_WB, out);
    else
        *out = posed(surface_surface(A, B, X_BA), X_WB);
    if (!status) *out = usi_gap_swept(*out, A->radius, B->radius);
    return status;
}

static us_status distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    if (!usi_is_swapped(A, X_WA, B, X_WB)) return ordered(A, X_WA, B, X_WB, out);
    us_status status = ordered(B, X_WB, A, X_WA, out);
    if (!status) *out = usi_gap_turned(*out);
    return status;
}

us_status us_geom_distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out_gap) {
    if (!out_gap || check(A) || check(B)) return US_ERR_ARG;
    us_gap gap;
    us_status status = distance(A, X_WA, B, X_WB, &gap);
    // Poses and sizes are numbers, so this is an intersection that is empty or without end.
    if (!status && isnan(gap.distance)) status = US_ERR_ARG;
    if (!status) *out_gap = gap;
    return status;
}
