// Convex decomposition of a closed mesh: cut by planes, greedily, until every part's hull is close to the
// solid.
//
//     +------+                  +------+        The part whose hull stands off the solid the most is cut in
//     |      |                  |      |        two. Of many planes the one is taken that leaves the smallest
//     |   +--'   . hull         |   a  |        volume in the two hulls together.
//     |   |    .                |......|......  <- plane
//     |   +--------+            |      b      |
//     +------------+            +-------------+
//
// Planes that are tried: across the three axes and the part's three principal axes, at quarters of its length
// and through the place where it is worst; and along both faces, and half way between them, of the deepest
// concave edges: what was drawn as boxes falls into the same boxes. A plane that passes a ring through its
// axis gains no volume at all although it is the only way to begin, so among equals the more even cut wins.
//
// A part is a soup of triangles, clipped at the planes; the caps of the cuts are never made, since a cap's
// rim spans it and a hull needs only corners. Whether a point is inside the solid is decided by the whole
// mesh. A triangle that lies in the plane goes to the side on which its back is.
//
// The hulls of the two sides of a plane lie on the two sides, so no two hulls of all share volume. At the
// end, parts whose common hull is good enough are joined again: a cut that was needed early may be of no use
// later.
#include <float.h>
#include <string.h>

#include "geom/moments.h"
#include "geom/standoff.h"

enum {
    MAX_PLANES = 64,
    MAX_EDGES = 12,      // concave edges that give planes, per cut
    SCORE_POINTS = 600,  // points that stand for a side when planes are compared
    ROUGH_POINTS = 100,  // points in a first comparison of all planes
    FINE_PLANES = 6,     // planes that are compared again with more points
    ROUNDS = 3,          // of cutting and joining
    MAX_JOINED = 64,     // parts beyond this are not tried for joining: the work grows as their square
};
// Relative to the mesh's size: nearer than this to a plane counts as on it.
static const double on_plane = 1e-9;
// How much an uneven cut costs, in volumes of the part: below what any true notch gives, above rounding.
static const double evenness = 0.02;
// What the bound on the error need not resolve, in max_error.
static const double unresolved = 0.2;

typedef struct plane {
    us_vec3 normal;
    double offset;
} plane;

typedef struct soup {
    int32_t n_vertex, n_triangle;
    us_vec3 *vertex;
    int32_t (*triangle)[3];
    char *block;
    size_t bytes;
} soup;

typedef struct convex_part {
    soup soup;  // empty after joining
    us_hull *hull;
    double volume;
    usi_standoff standoff;
    bool is_final;  // no plane helps
} convex_part;

// A side of the mesh at which it is concave.
typedef struct notch {
    us_vec3 a, b;  // ends
    us_vec3 n[2];  // normals of the two faces
    double depth;  // in the hull of the part that is being cut
} notch;

typedef struct decomposition {
    const us_mesh *mesh;
    us_allocator allocator;
    double max_error, size;
    notch *notch;
    int32_t n_notch, cap_notch;
    convex_part *part;
    int32_t n_part, max_part;
    us_error *err;
} decomposition;

// ---- Soups ----

static bool soup_alloc(const us_allocator *a, int32_t max_vertex, int32_t max_triangle, soup *out) {
    size_t bytes = 0, at_vertex = usi_carve(&bytes, (size_t)max_vertex, sizeof(us_vec3));
    size_t at_triangle = usi_carve(&bytes, (size_t)max_triangle, sizeof(int32_t[3]));
    *out = (soup){.block = usi_alloc(a, bytes, USI_ALIGN), .bytes = bytes};
    if (!out->block) return false;
    out->vertex = (us_vec3 *)(void *)(out->block + at_vertex);
    out->triangle = (int32_t(*)[3])(void *)(out->block + at_triangle);
    return true;
}
static void soup_free(const us_allocator *a, soup *s) {
    usi_release(a, s->block, s->bytes, USI_ALIGN);
    *s = (soup){0};
}

static int32_t soup_add(soup *s, us_vec3 p) {
    s->vertex[s->n_vertex] = p;
    return s->n_vertex++;
}

// The cut of a side with the plane, from the same end for both triangles at it.
static us_vec3 crossing(us_vec3 p, double at_p, us_vec3 q, double at_q) {
    double t = at_p / (at_p - at_q);
    return us_vec3_add(p, us_vec3_scale(t, us_vec3_sub(q, p)));
}

static us_vec3 triangle_normal(const us_vec3 *vertex, const int32_t *t) {
    return us_vec3_cross(us_vec3_sub(vertex[t[1]], vertex[t[0]]), us_vec3_sub(vertex[t[2]], vertex[t[0]]));
}

// What of `from` lies above the plane (sign 1) or below it (-1). `out` has room for all vertices and two
// more, and for two triangles, per triangle; `number` for all vertices.
static void cut(const soup *from, plane p, double sign, double near, int32_t *number, soup *out) {
    out->n_vertex = out->n_triangle = 0;
    for (int32_t v = 0; v < from->n_vertex; v++)
        number[v] = -1;
    for (int32_t i = 0; i < from->n_triangle; i++) {
        const int32_t *t = from->triangle[i];
        double at[3];
        bool is_above = false, is_in = true;
        for (int k = 0; k < 3; k++) {
            at[k] = sign * (us_vec3_dot(p.normal, from->vertex[t[k]]) - p.offset);
            if (fabs(at[k]) <= near) at[k] = 0;
            is_above = is_above || at[k] > 0;
            is_in = is_in && at[k] == 0;
        }
        if (is_in) is_above = sign * us_vec3_dot(p.normal, triangle_normal(from->vertex, t)) < 0;
        if (!is_above) continue;
        int32_t corner[4], n = 0;
        for (int k = 0; k < 3; k++) {
            int l = (k + 1) % 3;
            if (at[k] >= 0) {
                if (number[t[k]] < 0) number[t[k]] = soup_add(out, from->vertex[t[k]]);
                corner[n++] = number[t[k]];
            }
            if (at[k] * at[l] < 0) {
                bool is_up = t[k] < t[l];
                us_vec3 c = is_up ? crossing(from->vertex[t[k]], at[k], from->vertex[t[l]], at[l])
                                  : crossing(from->vertex[t[l]], at[l], from->vertex[t[k]], at[k]);
                corner[n++] = soup_add(out, c);
            }
        }
        for (int32_t k = 1; k + 1 < n; k++) {
            int32_t *made = out->triangle[out->n_triangle++];
            made[0] = corner[0];
            made[1] = corner[k];
            made[2] = corner[k + 1];
        }
    }
}

// ---- Hulls ----

static double hull_volume(const us_hull *h) {
    us_vec3 o = h->vertex[0];
    double sum = 0;
    for (int32_t f = 0; f < h->n_face; f++) {
        const int32_t *c = h->face_vertex + h->face_start[f];
        us_vec3 a = us_vec3_sub(h->vertex[c[0]], o);
        for (int32_t k = 1; k + 1 < h->face_start[f + 1] - h->face_start[f]; k++) {
            us_vec3 b = us_vec3_sub(h->vertex[c[k]], o), d = us_vec3_sub(h->vertex[c[k + 1]], o);
            sum += us_vec3_dot(a, us_vec3_cross(b, d)) / 6;
        }
    }
    return sum;
}

// The volume of the hull around every k-th of the points, about max_n of them; 0 when it has none.
static us_status points_volume(const decomposition *w, us_vec3 *points, int32_t n, int32_t max_n,
                               double *out_volume) {
    int32_t stride = 1 + n / max_n, kept = 0;
    for (int32_t i = 0; i < n; i += stride)
        points[kept++] = points[i];
    us_hull *hull = NULL;
    *out_volume = 0;
    us_status status = kept < 4 ? US_ERR_VALUE : us_hull_create(points, kept, &w->allocator, &hull, NULL);
    if (status == US_OK) *out_volume = hull_volume(hull);
    us_hull_destroy(hull);
    return status == US_ERR_MEMORY ? status : US_OK;
}

// Hull, volume and error of a part from its soup.
static us_status part_finish(const decomposition *w, convex_part *p, us_error *err) {
    us_status status = us_hull_create(p->soup.vertex, p->soup.n_vertex, &w->allocator, &p->hull, err);
    if (status) return status;
    p->volume = hull_volume(p->hull);
    p->standoff = usi_hull_standoff(p->hull, w->mesh, unresolved * w->max_error, INFINITY);
    return US_OK;
}
static void part_free(const decomposition *w, convex_part *p) {
    us_hull_destroy(p->hull);
    soup_free(&w->allocator, &p->soup);
    *p = (convex_part){0};
}

// ---- Concave edges ----

typedef struct triangle_side {
    us_vec3 a, b;  // a before b in the order of coordinates
    int32_t triangle;
    bool is_up;  // the triangle runs from a to b
} triangle_side;

static int compare_points(us_vec3 a, us_vec3 b) {
    if (a.x != b.x) return a.x < b.x ? -1 : 1;
    if (a.y != b.y) return a.y < b.y ? -1 : 1;
    return a.z == b.z ? 0 : a.z < b.z ? -1 : 1;
}
static int compare_sides(const triangle_side *s, const triangle_side *t) {
    int order = compare_points(s->a, t->a);
    if (!order) order = compare_points(s->b, t->b);
    if (!order) order = (s->is_up < t->is_up) - (s->is_up > t->is_up);
    return order ? order : (s->triangle > t->triangle) - (s->triangle < t->triangle);
}

// Heap sort: in place, and the same everywhere.
static void sift(triangle_side *s, size_t from, size_t n) {
    triangle_side x = s[from];
    for (size_t child = 2 * from + 1; child < n; child = 2 * from + 1) {
        if (child + 1 < n && compare_sides(&s[child], &s[child + 1]) < 0) child++;
        if (compare_sides(&x, &s[child]) >= 0) break;
        s[from] = s[child];
        from = child;
    }
    s[from] = x;
}
static void sort_sides(triangle_side *s, size_t n) {
    for (size_t i = n / 2; i-- > 0;)
        sift(s, i, n);
    for (size_t i = n; i-- > 1;) {
        triangle_side x = s[0];
        s[0] = s[i];
        s[i] = x;
        sift(s, 0, i);
    }
}

// Keeps the edge of two triangles when the second's third corner is above the first's plane.
static us_status add_notch(decomposition *w, const triangle_side *s, const triangle_side *t) {
    const us_mesh *m = w->mesh;
    us_vec3 n[2] = {triangle_normal(m->vertex, m->triangle[s->triangle]),
                    triangle_normal(m->vertex, m->triangle[t->triangle])};
    for (int k = 0; k < 2; k++) {
        double length = us_vec3_norm(n[k]);
        if (!(length > 0)) return US_OK;
        n[k] = us_vec3_scale(1 / length, n[k]);
    }
    double above = 0;
    for (int k = 0; k < 3; k++)
        above = fmax(above, us_vec3_dot(n[0], us_vec3_sub(m->vertex[m->triangle[t->triangle][k]], s->a)));
    if (!(above > 1e-6 * w->size)) return US_OK;
    us_status status =
        usi_grow(&w->allocator, (void **)&w->notch, w->n_notch, &w->cap_notch, sizeof *w->notch);
    if (!status) w->notch[w->n_notch++] = (notch){s->a, s->b, {n[0], n[1]}, 0};
    return status;
}

static us_status find_notches(decomposition *w) {
    const us_mesh *m = w->mesh;
    size_t n = 3 * (size_t)m->n_triangle;
    triangle_side *sides = usi_alloc(&w->allocator, n * sizeof *sides, USI_ALIGN);
    if (!sides) return US_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const int32_t *t = m->triangle[i / 3];
        us_vec3 a = m->vertex[t[i % 3]], b = m->vertex[t[(i + 1) % 3]];
        bool is_up = compare_points(a, b) < 0;
        sides[i] = (triangle_side){is_up ? a : b, is_up ? b : a, (int32_t)(i / 3), is_up};
    }
    sort_sides(sides, n);
    us_status status = US_OK;
    for (size_t i = 0; i + 1 < n && !status; i++) {
        const triangle_side *s = &sides[i], *t = s + 1;
        // Sides in one place come with those upwards first: this is where the two directions meet.
        bool is_pair = s->is_up && !t->is_up && !compare_points(s->a, t->a) && !compare_points(s->b, t->b);
        if (is_pair) status = add_notch(w, s, t);
    }
    usi_release(&w->allocator, sides, n * sizeof *sides, USI_ALIGN);
    return status;
}

// How deep the middle of what a hull holds of an edge lies in it; below 0: it holds nothing.
static double notch_depth(const notch *e, const us_hull *h, double size) {
    double from = 0, to = 1, depth = DBL_MAX;
    us_vec3 along = us_vec3_sub(e->b, e->a);
    for (int32_t f = 0; f < h->n_face; f++) {
        double room = h->offset[f] - us_vec3_dot(h->normal[f], e->a),
               speed = us_vec3_dot(h->normal[f], along);
        if (speed > 0) to = fmin(to, room / speed);
        if (speed < 0) from = fmax(from, room / speed);
        if (speed == 0 && room < 0) return -1;
    }
    if (!((to - from) * us_vec3_norm(along) > 1e-6 * size)) return -1;
    us_vec3 middle = us_vec3_add(e->a, us_vec3_scale(0.5 * (from + to), along));
    for (int32_t f = 0; f < h->n_face; f++)
        depth = fmin(depth, h->offset[f] - us_vec3_dot(h->normal[f], middle));
    return depth;
}

// ---- Planes to try ----

typedef struct planes {
    int n;
    plane at[MAX_PLANES];
} planes;

// Adds a plane unless there is one like it.
static void planes_add(planes *p, us_vec3 normal, us_vec3 through, double size) {
    double length = us_vec3_norm(normal);
    if (p->n == MAX_PLANES || !(length > 1e-9)) return;
    plane x = {us_vec3_scale(1 / length, normal), 0};
    x.offset = us_vec3_dot(x.normal, through);
    for (int i = 0; i < p->n; i++) {
        double sign = us_vec3_dot(p->at[i].normal, x.normal) < 0 ? -1 : 1;
        us_vec3 difference = us_vec3_sub(us_vec3_scale(sign, p->at[i].normal), x.normal);
        if (us_vec3_norm(difference) < 1e-6 && fabs(sign * p->at[i].offset - x.offset) < 1e-6 * size) return;
    }
    p->at[p->n++] = x;
}

// Second moments of the soup's surface, each triangle as a weight at its middle.
static void soup_axes(const soup *s, us_vec3 axis[3]) {
    double total = 0, A[3][3] = {{0}}, V[3][3];
    us_vec3 mean = us_vec3_make(0, 0, 0);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < s->n_triangle; i++) {
            const int32_t *t = s->triangle[i];
            double area = us_vec3_norm(triangle_normal(s->vertex, t));
            us_vec3 c = us_vec3_scale(
                1.0 / 3, us_vec3_add(s->vertex[t[0]], us_vec3_add(s->vertex[t[1]], s->vertex[t[2]])));
            if (pass == 0) {
                total += area;
                mean = us_vec3_add(mean, us_vec3_scale(area, c));
                continue;
            }
            us_vec3 d = us_vec3_sub(c, mean);
            double x[3] = {d.x, d.y, d.z};
            for (int k = 0; k < 9; k++)
                A[k / 3][k % 3] += area * x[k / 3] * x[k % 3];
        }
        if (pass == 0) mean = us_vec3_scale(total > 0 ? 1 / total : 0, mean);
    }
    usi_principal_axes(A, V);
    for (int k = 0; k < 3; k++)
        axis[k] = us_vec3_make(V[0][k], V[1][k], V[2][k]);
}

static void planes_of_notches(decomposition *w, const convex_part *p, planes *out) {
    for (int32_t i = 0; i < w->n_notch; i++)
        w->notch[i].depth = notch_depth(&w->notch[i], p->hull, w->size);
    for (int k = 0; k < MAX_EDGES; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < w->n_notch; i++)
            if (w->notch[i].depth > 1e-6 * w->size && (best < 0 || w->notch[i].depth > w->notch[best].depth))
                best = i;
        if (best < 0) return;
        notch *e = &w->notch[best];
        e->depth = -1;
        planes_add(out, e->n[0], e->a, w->size);
        planes_add(out, e->n[1], e->a, w->size);
        planes_add(out, us_vec3_sub(e->n[0], e->n[1]), e->a, w->size);
    }
}

static void find_planes(decomposition *w, const convex_part *p, planes *out) {
    us_vec3 axis[6] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    out->n = 0;
    planes_of_notches(w, p, out);
    soup_axes(&p->soup, axis + 3);
    for (int i = 0; i < 6; i++) {
        double low = DBL_MAX, high = -DBL_MAX;
        for (int32_t v = 0; v < p->hull->n_vertex; v++) {
            double x = us_vec3_dot(axis[i], p->hull->vertex[v]);
            low = fmin(low, x);
            high = fmax(high, x);
        }
        for (int k = 1; k < 4; k++)
            planes_add(out, axis[i], us_vec3_scale(low + 0.25 * k * (high - low), axis[i]), w->size);
        planes_add(out, axis[i], p->standoff.q, w->size);
    }
}

// ---- Cutting and joining ----

// The volume that a plane leaves in the two hulls, and what an uneven cut costs; DBL_MAX when a side has
// none.
static us_status score_plane(const decomposition *w, const convex_part *p, plane at, int32_t max_n,
                             soup *scratch, int32_t *number, double *out_score) {
    double volume[2] = {0, 0};
    *out_score = DBL_MAX;
    for (int k = 0; k < 2; k++) {
        cut(&p->soup, at, k ? -1 : 1, on_plane * w->size, number, scratch);
        us_status status = points_volume(w, scratch->vertex, scratch->n_vertex, max_n, &volume[k]);
        if (status) return status;
        if (!(volume[k] > 0)) return US_OK;
    }
    *out_score = volume[0] + volume[1] + evenness * fabs(volume[0] - volume[1]);
    return US_OK;
}

// Compares the planes by the volume they leave: all of them by few points, the best of these by many.
// *out_best is -1 when none cuts the part in two that have volume.
static us_status choose_plane(decomposition *w, const convex_part *p, const planes *all, soup *scratch,
                              int32_t *number, int *out_best) {
    double rough[MAX_PLANES], min_score = DBL_MAX;
    const bool is_large = p->soup.n_vertex > ROUGH_POINTS;
    *out_best = -1;
    for (int i = 0; i < all->n && is_large; i++) {
        us_status status = score_plane(w, p, all->at[i], ROUGH_POINTS, scratch, number, &rough[i]);
        if (status) return status;
    }
    for (int i = 0; i < all->n; i++) {
        int n_better = 0;
        for (int j = 0; j < all->n && is_large; j++)
            n_better += rough[j] < rough[i] || (rough[j] == rough[i] && j < i);
        if (n_better >= FINE_PLANES) continue;
        double score;
        us_status status = score_plane(w, p, all->at[i], SCORE_POINTS, scratch, number, &score);
        if (status) return status;
        if (score < min_score - 1e-9 * p->volume) {
            min_score = score;
            *out_best = i;
        }
    }
    return US_OK;
}

static us_status side_of(const decomposition *w, const soup *from, plane p, double sign, soup *scratch,
                         int32_t *number, convex_part *out) {
    cut(from, p, sign, on_plane * w->size, number, scratch);
    *out = (convex_part){0};
    if (!soup_alloc(&w->allocator, scratch->n_vertex, scratch->n_triangle, &out->soup)) return US_ERR_MEMORY;
    out->soup.n_vertex = scratch->n_vertex;
    out->soup.n_triangle = scratch->n_triangle;
    memcpy(out->soup.vertex, scratch->vertex, (size_t)scratch->n_vertex * sizeof *scratch->vertex);
    memcpy(out->soup.triangle, scratch->triangle, (size_t)scratch->n_triangle * sizeof *scratch->triangle);
    us_status status = part_finish(w, out, NULL);
    if (status) part_free(w, out);
    return status;
}

// Cuts one part in two, or marks it as one that cannot be.
static us_status split(decomposition *w, int32_t which) {
    convex_part *p = &w->part[which], half[2] = {0};
    size_t bytes = (size_t)p->soup.n_vertex * sizeof(int32_t);
    int32_t *number = usi_alloc(&w->allocator, bytes, USI_ALIGN);
    soup scratch = {0};
    us_status status = US_ERR_MEMORY;
    planes all;
    int best = -1;
    p->is_final = true;
    if (!number || !soup_alloc(&w->allocator, p->soup.n_vertex + 2 * p->soup.n_triangle,
                               2 * p->soup.n_triangle, &scratch))
        goto done;
    find_planes(w, p, &all);
    status = choose_plane(w, p, &all, &scratch, number, &best);
    if (status || best < 0) goto done;
    for (int k = 0; k < 2 && !status; k++)
        status = side_of(w, &p->soup, all.at[best], k ? -1 : 1, &scratch, number, &half[k]);
    if (status) {
        part_free(w, &half[0]);
        // A side that is a solid by every k-th of its points, but not by all of them: as good as none.
        if (status != US_ERR_MEMORY) status = US_OK;
        goto done;
    }
    part_free(w, p);
    *p = half[0];
    w->part[w->n_part++] = half[1];
done:
    soup_free(&w->allocator, &scratch);
    usi_release(&w->allocator, number, bytes, USI_ALIGN);
    return status;
}

// The corners of two parts; *out_n of them, the caller's. NULL: no memory.
static us_vec3 *common_corners(const decomposition *w, const convex_part *a, const convex_part *b,
                               int32_t *out_n) {
    const size_t n_a = (size_t)a->hull->n_vertex, n_b = (size_t)b->hull->n_vertex;
    us_vec3 *points = usi_alloc(&w->allocator, (n_a + n_b) * sizeof *points, USI_ALIGN);
    *out_n = (int32_t)(n_a + n_b);
    if (!points) return NULL;
    memcpy(points, a->hull->vertex, n_a * sizeof *points);
    memcpy(points + n_a, b->hull->vertex, n_b * sizeof *points);
    return points;
}

// The hull around two parts.
static us_status common_hull(const decomposition *w, const convex_part *a, const convex_part *b,
                             us_hull **out) {
    int32_t n;
    us_vec3 *points = common_corners(w, a, b, &n);
    if (!points) return US_ERR_MEMORY;
    us_status status = us_hull_create(points, n, &w->allocator, out, NULL);
    usi_release(&w->allocator, points, (size_t)n * sizeof *points, USI_ALIGN);
    return status;
}

// Parts that were cut from each other touch; what is apart has another part between, which is to be joined
// first.
static bool is_apart(const decomposition *w, const convex_part *a, const convex_part *b) {
    const us_geom a_geom = {.kind = US_GEOM_CONVEX, .hull = a->hull},
                  b_geom = {.kind = US_GEOM_CONVEX, .hull = b->hull};
    const us_aabb A = us_geom_box(&a_geom, us_pose_identity()), B = us_geom_box(&b_geom, us_pose_identity());
    double x = fmax(A.min.x - B.max.x, B.min.x - A.max.x), y = fmax(A.min.y - B.max.y, B.min.y - A.max.y),
           z = fmax(A.min.z - B.max.z, B.min.z - A.max.z);
    return fmax(x, fmax(y, z)) > w->max_error;
}

// What the common hull of two parts, by about SCORE_POINTS of their corners, adds to their volumes; infinite
// where they cannot be joined.
static us_status joining_cost(const decomposition *w, int32_t i, int32_t j, double *out) {
    const convex_part *a = &w->part[i], *b = &w->part[j];
    *out = INFINITY;
    if (is_apart(w, a, b)) return US_OK;
    int32_t n;
    us_vec3 *points = common_corners(w, a, b, &n);
    if (!points) return US_ERR_MEMORY;
    double volume;
    us_status status = points_volume(w, points, n, SCORE_POINTS, &volume);
    if (!status && volume > 0) *out = volume - a->volume - b->volume;
    usi_release(&w->allocator, points, (size_t)n * sizeof *points, USI_ALIGN);
    return status;
}

static us_status try_join(decomposition *w, int32_t i, int32_t j, bool *out_joined) {
    convex_part joined = {.is_final = true};
    *out_joined = false;
    us_status status = common_hull(w, &w->part[i], &w->part[j], &joined.hull);
    if (status) return status == US_ERR_MEMORY ? status : US_OK;
    joined.volume = hull_volume(joined.hull);
    joined.standoff = usi_hull_standoff(joined.hull, w->mesh, unresolved * w->max_error, w->max_error);
    if (joined.standoff.bound > w->max_error) {
        part_free(w, &joined);
        return US_OK;
    }
    part_free(w, &w->part[i]);
    part_free(w, &w->part[j]);
    w->part[i] = joined;
    // The last one takes the free place.
    w->part[j] = w->part[--w->n_part];
    w->part[w->n_part] = (convex_part){0};
    *out_joined = true;
    return US_OK;
}

// Joins the cheapest pair that stays good enough, again and again. cost[i][j], i < j; infinite where it was
// tried in vain.
static us_status join_parts(decomposition *w, double (*cost)[MAX_JOINED], bool *out_any) {
    us_status status = US_OK;
    *out_any = false;
    if (w->n_part > MAX_JOINED) return US_OK;
    for (int32_t i = 0; i < w->n_part && !status; i++)
        for (int32_t j = i + 1; j < w->n_part && !status; j++)
            status = joining_cost(w, i, j, &cost[i][j]);
    while (!status) {
        int32_t a = -1, b = -1, last = w->n_part - 1;
        for (int32_t i = 0; i < w->n_part; i++)
            for (int32_t j = i + 1; j < w->n_part; j++)
                if (isfinite(cost[i][j]) && (a < 0 || cost[i][j] < cost[a][b])) {
                    a = i;
                    b = j;
                }
        if (a < 0) break;
        bool is_joined;
        status = try_join(w, a, b, &is_joined);
        cost[a][b] = INFINITY;
        if (status || !is_joined) continue;
        *out_any = true;
        for (int32_t i = 0; i < w->n_part && !status; i++) {
            // The part that moved to place b takes its costs along; those of the joined one are new.
            if (i != b && b < w->n_part) cost[i < b ? i : b][i < b ? b : i] = cost[i][last];
        }
        for (int32_t i = 0; i < w->n_part && !status; i++)
            if (i != a)
                status = joining_cost(w, i < a ? i : a, i < a ? a : i, &cost[i < a ? i : a][i < a ? a : i]);
    }
    return status;
}

static us_status cut_parts(decomposition *w) {
    for (;;) {
        int32_t worst = -1;
        for (int32_t i = 0; i < w->n_part; i++) {
            bool is_good = w->part[i].is_final || w->part[i].standoff.bound <= w->max_error;
            if (!is_good && (worst < 0 || w->part[i].standoff.bound > w->part[worst].standoff.bound))
                worst = i;
        }
        if (worst < 0 || w->n_part == w->max_part) return US_OK;
        us_status status = split(w, worst);
        if (status) return status;
    }
}

static us_status decompose(decomposition *w) {
    const us_mesh *m = w->mesh;
    convex_part *first = &w->part[0];
    size_t bytes = (size_t)m->n_vertex * sizeof(int32_t);
    int32_t *number = usi_alloc(&w->allocator, bytes, USI_ALIGN);
    if (!number ||
        !soup_alloc(&w->allocator, m->n_vertex + 2 * m->n_triangle, 2 * m->n_triangle, &first->soup)) {
        usi_release(&w->allocator, number, bytes, USI_ALIGN);
        return US_ERR_MEMORY;
    }
    // Everything above a plane below everything: a copy, without vertices that no triangle has.
    soup whole = {
        .n_vertex = m->n_vertex, .n_triangle = m->n_triangle, .vertex = m->vertex, .triangle = m->triangle};
    plane below = {us_vec3_make(0, 0, 1), m->node[0].min.z - w->size};
    cut(&whole, below, 1, on_plane * w->size, number, &first->soup);
    usi_release(&w->allocator, number, bytes, USI_ALIGN);
    w->n_part = 1;
    us_status status = part_finish(w, first, w->err);
    if (!status) status = find_notches(w);
    double(*cost)[MAX_JOINED] =
        status ? NULL : usi_alloc(&w->allocator, sizeof(double[MAX_JOINED][MAX_JOINED]), USI_ALIGN);
    if (!status && !cost) status = US_ERR_MEMORY;
    bool is_joined = true;
    for (int round = 0; round < ROUNDS && is_joined && !status; round++) {
        status = cut_parts(w);
        if (!status) status = join_parts(w, cost, &is_joined);
    }
    usi_release(&w->allocator, cost, sizeof(double[MAX_JOINED][MAX_JOINED]), USI_ALIGN);
    return status;
}

us_status us_mesh_decompose(const us_mesh *mesh, double max_error, int32_t max_part,
                            const us_allocator *allocator, us_hull **out_hulls, int32_t *out_n,
                            double *out_error, us_error *err) {
    if (!mesh || !out_hulls || !out_n || !out_error) {
        return us_error_set(err, US_ERR_ARG, NULL, "give a mesh and places for the results",
                            "an argument is NULL");
    }
    if (!(max_error > 0) || !isfinite(max_error)) {
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "use a length above 0, for example 1 % of the mesh's size",
                            "the error allowed to parts is %g m", max_error);
    }
    if (max_part < 1)
        return us_error_set(err, US_ERR_VALUE, NULL, "allow at least one",
                            "a mesh is to be cut into at most %d parts", (int)max_part);
    if (!mesh->is_closed) {
        return us_error_set(err, US_ERR_MESH, NULL, "close its holes, or use its hull",
                            "an open mesh of %d triangles encloses no solid to be cut",
                            (int)mesh->n_triangle);
    }
    us_vec3 diagonal = us_vec3_sub(mesh->node[0].max, mesh->node[0].min);
    decomposition w = {.mesh = mesh,
                       .allocator = allocator ? *allocator : us_allocator_default(),
                       .max_error = max_error,
                       .size = 0.5 * fmax(diagonal.x, fmax(diagonal.y, diagonal.z)),
                       .max_part = max_part,
                       .err = err};
    size_t bytes = (size_t)max_part * sizeof(convex_part);
    w.part = usi_alloc(&w.allocator, bytes, USI_ALIGN);
    if (!w.part)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory to cut a mesh into %d parts",
                            (int)max_part);
    memset(w.part, 0, bytes);
    us_status status = decompose(&w);
    double error = 0;
    for (int32_t i = 0; i < w.n_part && !status; i++) {
        error = fmax(error, w.part[i].standoff.bound);
        out_hulls[i] = w.part[i].hull;
        w.part[i].hull = NULL;
    }
    if (!status) {
        *out_n = w.n_part;
        *out_error = error;
    }
    for (int32_t i = 0; i < w.n_part; i++)
        part_free(&w, &w.part[i]);
    usi_release(&w.allocator, w.part, bytes, USI_ALIGN);
    usi_release(&w.allocator, w.notch, (size_t)w.cap_notch * sizeof *w.notch, _Alignof(max_align_t));
    if (status == US_ERR_MEMORY)
        us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory to cut a mesh of %d triangles",
                     (int)mesh->n_triangle);
    return status;
}
