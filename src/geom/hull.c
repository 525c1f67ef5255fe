// Convex polyhedra around points, by Qhull.
//
// Qhull gives facets, and merges those that lie in one plane to within rounding. Points often come from files
// with 7 digits, where the faces of what was a box differ by more than that, so facets are merged up to 2e-7
// of the size: a contact on a face then is one polygon, not a fan of triangles that each claim the contact.
// What Qhull returns is trusted only after it was checked to be one closed surface (every side shared by
// exactly two faces, Euler's V - E + F = 2), flat and convex; otherwise it is built again with less merging.
//
//     face f is left of the edge v0 -> v1, seen from outside, face g right of it:
//
//              v1
//          f   ^   g          edge = { v0, v1, f, g },  v0 < v1
//              |
//              v0
//
// Points within 1e-6 of the size count as one. So no point lies farther outside its hull's faces than 1.5e-6
// of the size; the tip of a wedge may lose that much divided by the sine of its angle.
//
// The vertices keep the order of the points, except that in hulls with many of them 16 come first that are
// spread as widely as possible: the support function starts its climb from the best of these.
//
// Qhull takes its working memory from the C library's heap and gives all of it back before us_hull_create
// returns.
#include <libqhull_r/qhull_ra.h>
#include <stdio.h>
#include <string.h>

#include "geom/geom.h"

enum {
    N_SPREAD = 16,
    SPREAD_FROM = 48,  // hulls up to this size are searched one by one (shape_support.c)
};

// Flatter than this part of their size, points are taken to lie in a plane. Ten times what facets are merged
// by would hardly leave a solid.
static const double thinnest = 1e-5;

// Points nearer to each other than this, of the size, are taken as one.
static const double nearest = 1e-6;

// How far a point may lie outside a face, of the size: as far as it may be from the one it was taken for, and
// what facets are merged by.
static const double outermost = 1.5e-6;

// How much a face may be bent, in rad: what the support function may lose, of the size. Higher, and hulls of
// scanned points lose precision; lower, and boxes from files with 7 digits fall into triangles.
static const double steepest = 3e-6;

// From most to least merging; the last one triangulates, which leaves nothing to go wrong in the order of
// corners.
static const char *const attempts[] = {"qhull Pp C-0 C2e-7", "qhull Pp", "qhull Pp Qt"};

// What is needed while the hull is made; arrays by the largest size that n points can give (Euler: at most 2
// n faces, 6 n corners).
typedef struct scratch {
    int32_t n;        // points that are left after those that nearly coincide were taken out
    int32_t n_given;  // points in all
    int32_t *given;   // n: which of the given points each is
    int32_t *slot;    // n_slot: table of places
    size_t n_slot;
    double size;      // m: half of the longest side of the box around the points
    double *x;        // 3 n: points, moved and scaled into the box -1 .. 1
    int32_t *number;  // n: vertex of a point, -1 where it is none
    int32_t *vertex;  // n: point of a vertex
    int32_t *start;   // 2 n + 1: where faces begin in `corner`
    int32_t *corner;  // 6 n: points
    int32_t n_face, n_corner, n_vertex;
    char words[512];  // Qhull's own, when it fails
} scratch;

// ---- Points ----

static us_vec3 at(const scratch *s, int32_t i) {
    return us_vec3_make(s->x[3 * i], s->x[3 * i + 1], s->x[3 * i + 2]);
}

static double distance2(us_vec3 a, us_vec3 b) {
    us_vec3 d = us_vec3_sub(a, b);
    return us_vec3_dot(d, d);
}

// Moves and scales the points; false when they are all in one place.
static bool scale_points(scratch *s, const us_vec3 *points) {
    us_vec3 low = points[0], high = points[0];
    for (int32_t i = 1; i < s->n_given; i++) {
        low = us_vec3_make(fmin(low.x, points[i].x), fmin(low.y, points[i].y), fmin(low.z, points[i].z));
        high = us_vec3_make(fmax(high.x, points[i].x), fmax(high.y, points[i].y), fmax(high.z, points[i].z));
    }
    us_vec3 centre = us_vec3_add(us_vec3_scale(0.5, low), us_vec3_scale(0.5, high)),
            half = us_vec3_sub(high, centre);
    double size = fmax(half.x, fmax(half.y, half.z));
    if (!(size > 1e-150) || !isfinite(size)) return false;
    s->size = size;
    for (int32_t i = 0; i < s->n_given; i++) {
        us_vec3 d = us_vec3_sub(points[i], centre);
        s->x[3 * i] = d.x / size;
        s->x[3 * i + 1] = d.y / size;
        s->x[3 * i + 2] = d.z / size;
    }
    return true;
}

static size_t place_slot(const scratch *s, const int32_t *cell) {
    return us_hash_bytes(0, cell, 3 * sizeof *cell) & (s->n_slot - 1);
}

static void cell_of(us_vec3 p, int32_t *out_cell) {
    // Scaled coordinates are within 1, so that these numbers are within half a million.
    out_cell[0] = (int32_t)floor(p.x / (2 * nearest));
    out_cell[1] = (int32_t)floor(p.y / (2 * nearest));
    out_cell[2] = (int32_t)floor(p.z / (2 * nearest));
}

// Whether a point that was kept is too near to p: it must be in one of the 27 cells around, since these are
// twice as wide as that.
static bool is_taken(const scratch *s, us_vec3 p) {
    int32_t cell[3];
    cell_of(p, cell);
    for (int k = 0; k < 27; k++) {
        int32_t around[3] = {cell[0] + k % 3 - 1, cell[1] + k / 3 % 3 - 1, cell[2] + k / 9 - 1};
        for (size_t i = place_slot(s, around); s->slot[i] >= 0; i = (i + 1) & (s->n_slot - 1)) {
            if (distance2(at(s, s->slot[i]), p) < nearest * nearest) return true;
        }
    }
    return false;
}

// Takes out every point that nearly coincides with one before it. Edges that short would have no direction to
// speak of.
static void thin_out(scratch *s) {
    for (size_t i = 0; i < s->n_slot; i++)
        s->slot[i] = -1;
    s->n = 0;
    for (int32_t i = 0; i < s->n_given; i++) {
        us_vec3 p = at(s, i);
        if (is_taken(s, p)) continue;
        int32_t cell[3];
        cell_of(p, cell);
        size_t free = place_slot(s, cell);
        while (s->slot[free] >= 0)
            free = (free + 1) & (s->n_slot - 1);
        s->slot[free] = s->n;
        s->x[3 * s->n] = p.x;
        s->x[3 * s->n + 1] = p.y;
        s->x[3 * s->n + 2] = p.z;
        s->given[s->n++] = i;
    }
}

// The extent of the points across the plane that fits them roughly: a far pair, the point farthest from their
// line, and the point farthest from the plane of the three. 2 is as thick as can be.
static double thickness(const scratch *s) {
    us_vec3 a = at(s, 0), b = a, n = us_vec3_make(0, 0, 0);
    double far = 0;
    for (int32_t i = 1; i < s->n; i++) {
        us_vec3 d = us_vec3_sub(at(s, i), a);
        if (us_vec3_dot(d, d) > far) {
            far = us_vec3_dot(d, d);
            b = at(s, i);
        }
    }
    us_vec3 u = us_vec3_sub(b, a);
    double wide = 0;
    for (int32_t i = 1; i < s->n; i++) {
        us_vec3 c = us_vec3_cross(u, us_vec3_sub(at(s, i), a));
        if (us_vec3_dot(c, c) > wide) {
            wide = us_vec3_dot(c, c);
            n = c;
        }
    }
    if (!(wide > 0)) return 0;
    n = us_vec3_scale(1 / sqrt(wide), n);
    double low = 0, high = 0;
    for (int32_t i = 1; i < s->n; i++) {
        double h = us_vec3_dot(n, us_vec3_sub(at(s, i), a));
        low = fmin(low, h);
        high = fmax(high, h);
    }
    // `wide` is the square of length times width.
    return fmin(high - low, sqrt(wide / far));
}

// ---- Qhull ----

// Turns a face's corners round unless they run counter-clockwise about its outward normal. Which way Qhull
// lists them is a matter of how it was built.
static void orient(const scratch *s, int32_t *c, int32_t n, const double *outward) {
    us_vec3 sum = us_vec3_make(0, 0, 0), first = at(s, c[0]);
    for (int32_t k = 1; k + 1 < n; k++)
        sum = us_vec3_add(
            sum, us_vec3_cross(us_vec3_sub(at(s, c[k]), first), us_vec3_sub(at(s, c[k + 1]), first)));
    if (sum.x * outward[0] + sum.y * outward[1] + sum.z * outward[2] > 0) return;
    for (int32_t i = 0, j = n - 1; i < j; i++, j--) {
        int32_t swap = c[i];
        c[i] = c[j];
        c[j] = swap;
    }
}

// Copies the faces out of Qhull, corners counter-clockwise from outside. False when Qhull objects or gives
// what cannot be.
static bool copy_faces(qhT *qh, scratch *s) {
    // Qhull reports errors by a jump to here. Everything written after this point is behind `s`.
    if (setjmp(qh->errexit)) {
        qh->NOerrexit = True;
        return false;
    }
    qh->NOerrexit = False;
    facetT *facet;
    bool is_good = true;
    s->n_face = s->n_corner = 0;
    FORALLfacets {
        setT *set = qh_facet3vertex(qh, facet);
        int size = qh_setsize(qh, set);
        if (size < 3 || s->n_face >= 2 * s->n || s->n_corner + size > 6 * s->n) {
            is_good = false;
        } else {
            s->start[s->n_face++] = s->n_corner;
            for (int k = 0; k < size; k++) {
                const vertexT *vertex = SETelemt_(set, k, vertexT);
                s->corner[s->n_corner++] = (int32_t)qh_pointid(qh, vertex->point);
            }
            orient(s, s->corner + s->n_corner - size, size, facet->normal);
        }
        qh_settempfree(qh, &set);
        if (!is_good) break;
    }
    s->start[s->n_face] = s->n_corner;
    qh->NOerrexit = True;
    return is_good;
}

static bool run_qhull(scratch *s, const char *options) {
    char command[64];
    snprintf(command, sizeof command, "%s", options);
    memset(s->words, 0, sizeof s->words);
    // Qhull writes its messages to a file; this one is memory, so that nothing reaches the terminal.
    FILE *words = fmemopen(s->words, sizeof s->words - 1, "w");
    if (!words) return false;
    qhT qh;
    memset(&qh, 0, sizeof qh);
    qh_zero(&qh, words);
    bool is_good = qh_new_qhull(&qh, 3, s->n, s->x, False, command, words, words) == 0 && copy_faces(&qh, s);
    int n_long, n_bytes;
    qh_freeqhull(&qh, !qh_ALL);
    qh_memfreeshort(&qh, &n_long, &n_bytes);
    fclose(words);
    for (char *c = s->words; *c; c++) {
        if (*c == '\n') *c = 0;  // the first line says it
    }
    return is_good;
}

// ---- Vertices ----

// Numbers the vertices: s->vertex in the order of the points, with the widely spread ones moved to the front.
static void number_vertices(scratch *s) {
    for (int32_t i = 0; i < s->n; i++)
        s->number[i] = -1;
    for (int32_t k = 0; k < s->n_corner; k++)
        s->number[s->corner[k]] = 0;
    s->n_vertex = 0;
    for (int32_t i = 0; i < s->n; i++) {
        if (s->number[i] == 0) s->vertex[s->n_vertex++] = i;
    }
    if (s->n_vertex > SPREAD_FROM) {
        // Each next one is the vertex whose nearest among those chosen is farthest away.
        for (int32_t chosen = 1; chosen < N_SPREAD; chosen++) {
            int32_t best = chosen;
            double far = -1;
            for (int32_t v = chosen; v < s->n_vertex; v++) {
                double near = INFINITY;
                for (int32_t c = 0; c < chosen; c++)
                    near = fmin(near, distance2(at(s, s->vertex[v]), at(s, s->vertex[c])));
                if (near > far) {
                    far = near;
                    best = v;
                }
            }
            int32_t point = s->vertex[best];
            memmove(s->vertex + chosen + 1, s->vertex + chosen, (size_t)(best - chosen) * sizeof *s->vertex);
            s->vertex[chosen] = point;
        }
    }
    for (int32_t v = 0; v < s->n_vertex; v++)
        s->number[s->vertex[v]] = v;
}

// ---- The hull ----

static us_hull *alloc_hull(const us_allocator *a, const scratch *s) {
    size_t bytes = sizeof(us_hull), nv = (size_t)s->n_vertex, nf = (size_t)s->n_face,
           nc = (size_t)s->n_corner;
    size_t at_vertex = usi_carve(&bytes, nv, sizeof(us_vec3)),
           at_normal = usi_carve(&bytes, nf, sizeof(us_vec3));
    size_t at_offset = usi_carve(&bytes, nf, sizeof(double)),
           at_start = usi_carve(&bytes, nf + 1, sizeof(int32_t));
    size_t at_corner = usi_carve(&bytes, nc, sizeof(int32_t)),
           at_edge = usi_carve(&bytes, nc / 2, sizeof(int32_t[4]));
    size_t at_around = usi_carve(&bytes, nv + 1, sizeof(int32_t)),
           at_neighbour = usi_carve(&bytes, nc, sizeof(int32_t));
    char *block = usi_alloc(a, bytes, USI_ALIGN);
    if (!block) return NULL;
    memset(block, 0, bytes);
    us_hull *h = (us_hull *)(void *)block;
    h->allocator = *a;
    h->bytes = bytes;
    h->n_vertex = s->n_vertex;
    h->n_face = s->n_face;
    h->n_edge = s->n_corner / 2;
    h->vertex = (us_vec3 *)(void *)(block + at_vertex);
    h->normal = (us_vec3 *)(void *)(block + at_normal);
    h->offset = (double *)(void *)(block + at_offset);
    h->face_start = (int32_t *)(void *)(block + at_start);
    h->face_vertex = (int32_t *)(void *)(block + at_corner);
    h->edge = (int32_t(*)[4])(void *)(block + at_edge);
    h->neighbour_start = (int32_t *)(void *)(block + at_around);
    h->neighbour = (int32_t *)(void *)(block + at_neighbour);
    return h;
}

// The middle, and normals from all corners of a face (Newell: the sum of the cross products of neighbours),
// offsets so that no corner sticks out.
static bool make_planes(us_hull *h) {
    us_vec3 all = us_vec3_make(0, 0, 0);
    for (int32_t i = 0; i < h->n_vertex; i++)
        all = us_vec3_add(all, h->vertex[i]);
    h->middle = us_vec3_scale(1.0 / h->n_vertex, all);
    for (int32_t f = 0; f < h->n_face; f++) {
        const int32_t *c = h->face_vertex + h->face_start[f];
        int32_t n = h->face_start[f + 1] - h->face_start[f];
        us_vec3 sum = us_vec3_make(0, 0, 0), first = h->vertex[c[0]];
        for (int32_t k = 1; k + 1 < n; k++) {
            sum = us_vec3_add(sum, us_vec3_cross(us_vec3_sub(h->vertex[c[k]], first),
                                                 us_vec3_sub(h->vertex[c[k + 1]], first)));
        }
        double length = us_vec3_norm(sum);
        if (!(length > 0)) return false;
        h->normal[f] = us_vec3_scale(1 / length, sum);
        h->offset[f] = -INFINITY;
        for (int32_t k = 0; k < n; k++)
            h->offset[f] = fmax(h->offset[f], us_vec3_dot(h->normal[f], h->vertex[c[k]]));
    }
    return true;
}

// Every side that runs upwards (from the lower to the higher vertex) makes an edge, in the bucket of its
// lower vertex; every side that runs downwards must find its edge there, and find it without a second face.
static bool make_edges(us_hull *h) {
    int32_t *bucket = h->neighbour_start, n_edge = 0;  // borrowed until the neighbours are made
    for (int32_t f = 0; f < h->n_face; f++) {
        for (int32_t k = h->face_start[f], end = h->face_start[f + 1]; k < end; k++) {
            int32_t a = h->face_vertex[k], b = h->face_vertex[k + 1 < end ? k + 1 : h->face_start[f]];
            if (a < b) {
                bucket[a + 1]++;
                n_edge++;
            }
        }
    }
    if (n_edge != h->n_edge || h->face_start[h->n_face] != 2 * n_edge) return false;
    for (int32_t v = 0; v < h->n_vertex; v++)
        bucket[v + 1] += bucket[v];
    for (int32_t e = 0; e < n_edge; e++)
        h->edge[e][0] = -1;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t f = 0; f < h->n_face; f++) {
            for (int32_t k = h->face_start[f], end = h->face_start[f + 1]; k < end; k++) {
                int32_t a = h->face_vertex[k], b = h->face_vertex[k + 1 < end ? k + 1 : h->face_start[f]];
                int32_t low = a < b ? a : b, high = a < b ? b : a, e = bucket[low];
                if (a == b) return false;
                if ((a < b) != (pass == 0)) continue;
                while (e < bucket[low + 1] && h->edge[e][0] >= 0 && h->edge[e][1] != high)
                    e++;
                if (e == bucket[low + 1]) return false;
                if (pass == 0) {
                    if (h->edge[e][0] >= 0) return false;  // two faces run the same way
                    h->edge[e][0] = low;
                    h->edge[e][1] = high;
                    h->edge[e][2] = f;
                    h->edge[e][3] = -1;
                } else {
                    if (h->edge[e][0] < 0 || h->edge[e][3] >= 0) return false;
                    h->edge[e][3] = f;
                }
            }
        }
    }
    return h->n_vertex - h->n_edge + h->n_face == 2;
}

static void make_neighbours(us_hull *h) {
    for (int32_t v = 0; v <= h->n_vertex; v++)
        h->neighbour_start[v] = 0;
    for (int32_t e = 0; e < h->n_edge; e++) {
        h->neighbour_start[h->edge[e][0]]++;
        h->neighbour_start[h->edge[e][1]]++;
    }
    // First each start is the end of its bucket; filling from the back moves it to the beginning.
    for (int32_t v = 1; v <= h->n_vertex; v++)
        h->neighbour_start[v] += h->neighbour_start[v - 1];
    for (int32_t e = h->n_edge - 1; e >= 0; e--) {
        h->neighbour[--h->neighbour_start[h->edge[e][0]]] = h->edge[e][1];
        h->neighbour[--h->neighbour_start[h->edge[e][1]]] = h->edge[e][0];
    }
}

// Whether the hull can be relied on. No point may stick out of a face by more than merging explains. And the
// climb of the support function must not come to rest early: on a face whose corners are off its plane by e,
// a corner with sides of length l can look like a summit to directions that lean by e / l, although the far
// end of the face is higher by its whole length times that.
static bool is_sound(const us_hull *h, const scratch *s, const us_vec3 *points) {
    // At most 1e8 comparisons (0.1 s): of very many points every k-th is tested.
    int64_t stride = 1 + (int64_t)s->n_given * h->n_face / 100000000;
    for (int32_t f = 0; f < h->n_face; f++) {
        const int32_t *c = h->face_vertex + h->face_start[f];
        int32_t n = h->face_start[f + 1] - h->face_start[f];
        double off = 0, shortest = INFINITY;
        for (int32_t k = 0; k < n; k++) {
            us_vec3 v = h->vertex[c[k]];
            off = fmax(off, h->offset[f] - us_vec3_dot(h->normal[f], v));
            shortest = fmin(shortest, us_vec3_norm(us_vec3_sub(h->vertex[c[(k + 1) % n]], v)));
        }
        if (n > 3 && !(off <= steepest * shortest)) return false;
        for (int64_t i = 0; i < s->n_given; i += stride) {
            if (!(us_vec3_dot(h->normal[f], points[i]) <= h->offset[f] + outermost * s->size)) return false;
        }
    }
    return true;
}

static bool fill_hull(us_hull *h, const scratch *s, const us_vec3 *points) {
    for (int32_t v = 0; v < h->n_vertex; v++)
        h->vertex[v] = points[s->given[s->vertex[v]]];
    for (int32_t f = 0; f <= h->n_face; f++)
        h->face_start[f] = s->start[f];
    for (int32_t k = 0; k < s->n_corner; k++)
        h->face_vertex[k] = s->number[s->corner[k]];
    if (!make_edges(h) || !make_planes(h)) return false;
    make_neighbours(h);
    return is_sound(h, s, points);
}

static us_status make_hull(scratch *s, const us_vec3 *points, const us_allocator *a, us_hull **out_hull,
                           us_error *err) {
    bool is_solid = scale_points(s, points);
    if (is_solid) thin_out(s);
    if (!is_solid || s->n < 4 || thickness(s) < thinnest) {
        return us_error_set(
            err, US_ERR_VALUE, NULL, "use a triangle, a lozenge or a box of no thickness, with a radius",
            "%d points lie in a plane, on a line or in one place: their hull has no volume", (int)s->n_given);
    }
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        if (!run_qhull(s, attempts[i])) continue;
        number_vertices(s);
        us_hull *h = alloc_hull(a, s);
        if (!h)
            return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a hull of %d vertices",
                                (int)s->n_vertex);
        if (fill_hull(h, s, points)) {
            *out_hull = h;
            return US_OK;
        }
        us_hull_destroy(h);
    }
    return us_error_set(err, US_ERR_VALUE, NULL, "leave out points that nearly coincide",
                        "Qhull makes no hull of %d points: %s", (int)s->n_given,
                        s->words[0] ? s->words : "its faces do not close");
}

us_status us_hull_create(const us_vec3 *points, int32_t n, const us_allocator *allocator, us_hull **out_hull,
                         us_error *err) {
    if (!points || !out_hull)
        return us_error_set(err, US_ERR_ARG, NULL, "give points and a place for the result",
                            "an argument is NULL");
    if (n < 4)
        return us_error_set(err, US_ERR_VALUE, NULL, "give at least 4 points", "%d points enclose nothing",
                            (int)n);
    if (n > INT32_MAX / 8)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give fewer points", "a hull of %d points is too large",
                            (int)n);
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(points[i].x) || !isfinite(points[i].y) || !isfinite(points[i].z)) {
            return us_error_set(err, US_ERR_VALUE, NULL, "use finite coordinates",
                                "point %d of a hull is not finite", (int)i);
        }
    }
    us_allocator a = allocator ? *allocator : us_allocator_default();
    size_t bytes = 0, count = (size_t)n;
    size_t at_x = usi_carve(&bytes, 3 * count, sizeof(double)),
           at_number = usi_carve(&bytes, count, sizeof(int32_t));
    size_t at_vertex = usi_carve(&bytes, count, sizeof(int32_t)),
           at_start = usi_carve(&bytes, 2 * count + 1, sizeof(int32_t));
    size_t at_corner = usi_carve(&bytes, 6 * count, sizeof(int32_t));
    size_t at_given = usi_carve(&bytes, count, sizeof(int32_t)), n_slot = 16;
    while (n_slot < 2 * count)
        n_slot *= 2;
    size_t at_slot = usi_carve(&bytes, n_slot, sizeof(int32_t));
    char *block = usi_alloc(&a, bytes, USI_ALIGN);
    if (!block)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a hull of %d points", (int)n);
    scratch s = {.n_given = n,
                 .n_slot = n_slot,
                 .given = (int32_t *)(void *)(block + at_given),
                 .slot = (int32_t *)(void *)(block + at_slot),
                 .x = (double *)(void *)(block + at_x),
                 .number = (int32_t *)(void *)(block + at_number),
                 .vertex = (int32_t *)(void *)(block + at_vertex),
                 .start = (int32_t *)(void *)(block + at_start),
                 .corner = (int32_t *)(void *)(block + at_corner)};
    us_status status = make_hull(&s, points, &a, out_hull, err);
    usi_release(&a, block, bytes, USI_ALIGN);
    return status;
}

void us_hull_destroy(us_hull *hull) {
    if (!hull) return;
    us_allocator a = hull->allocator;
    usi_release(&a, hull, hull->bytes, USI_ALIGN);
}
