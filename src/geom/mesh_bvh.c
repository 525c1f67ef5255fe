// Triangle meshes: checks, whether the surface is closed, mass properties, and the tree of boxes.
//
// The tree is built from the top. A node's triangles are thrown into bins along the axis on which their
// centres spread most, and the split between two bins is taken that makes the expected work of a query least
// (surface area heuristic: a box is met by a random ray in proportion to its surface):
//
//        node            cost of a split = area(left) * n_left + area(right) * n_right
//     ___________
//    |  .  |   . |       bins ->   | . |   | . | . |   |
//    | . . |  .  |                         ^
//    |_____|_____|                    split here
//
// A tree of lopsided splits could be as deep as it has triangles, and a query walks it with a small stack; so
// below a certain depth nodes are simply halved by number, which ends after log2(n) more levels. No node is
// deeper than 61.
#include <string.h>

#include "geom/geom.h"
#include "geom/moments.h"
#include "geom/ray.h"

enum {
    LEAF = 4,  // triangles that are not split further: a test of 4 triangles costs about as much as two more
               // boxes
    BINS = 16,
    HALVE_AT = 30,  // depth from which nodes are halved by number
    STACK = 64,
};

typedef int32_t vertex_triple[3];

// ---- Closed or not ----

static size_t table_size(size_t n) {
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    return size;
}

// Gives vertices at the same place the number of the first of them. Deterministic: numbers come from the
// order of the vertices, not from the table.
static void weld(const us_vec3 *vertex, int32_t n, int32_t *slot, size_t n_slot, int32_t *same) {
    for (size_t s = 0; s < n_slot; s++)
        slot[s] = -1;
    for (int32_t i = 0; i < n; i++) {
        double key[3] = {vertex[i].x + 0.0, vertex[i].y + 0.0, vertex[i].z + 0.0};  // -0 and 0 are one place
        size_t s = us_hash_bytes(0, key, sizeof key) & (n_slot - 1);
        for (;; s = (s + 1) & (n_slot - 1)) {
            if (slot[s] < 0) {
                slot[s] = i;
                break;
            }
            us_vec3 d = us_vec3_sub(vertex[slot[s]], vertex[i]);
            if (d.x == 0 && d.y == 0 && d.z == 0) break;
        }
        same[i] = slot[s];
    }
}

typedef struct edge_balance {
    int32_t a, b;     // a < b; a = -1: free
    int32_t balance;  // triangles that run from a to b less those that run from b to a
} edge_balance;

static void count_side(edge_balance *sides, size_t n_slot, int32_t from, int32_t to) {
    int32_t key[2] = {from < to ? from : to, from < to ? to : from};
    size_t s = us_hash_bytes(0, key, sizeof key) & (n_slot - 1);
    while (sides[s].a >= 0 && (sides[s].a != key[0] || sides[s].b != key[1]))
        s = (s + 1) & (n_slot - 1);
    sides[s].a = key[0];
    sides[s].b = key[1];
    sides[s].balance += from < to ? 1 : -1;
}

// A surface is closed when every side is run as often one way as the other: then it encloses space, and
// tetrahedra from any point to its triangles add up to its volume. (Two solids that share an edge pass too.)
static bool is_closed(const us_mesh *mesh, edge_balance *sides, size_t n_slot) {
    for (size_t s = 0; s < n_slot; s++)
        sides[s] = (edge_balance){-1, -1, 0};
    for (int32_t t = 0; t < mesh->n_triangle; t++) {
        const int32_t *c = mesh->triangle[t];
        for (int k = 0; k < 3; k++)
            count_side(sides, n_slot, c[k], c[(k + 1) % 3]);
    }
    for (size_t s = 0; s < n_slot; s++) {
        if (sides[s].balance) return false;
    }
    return true;
}

// Needs no copy of the vertices: corners are taken from the middle of the box, so that little is lost far
// from the origin.
static us_inertia closed_inertia(const us_mesh *mesh, us_vec3 middle) {
    usi_moments M = {0};
    for (int32_t t = 0; t < mesh->n_triangle; t++) {
        us_vec3 p[3];
        for (int k = 0; k < 3; k++)
            p[k] = us_vec3_sub(mesh->vertex[mesh->triangle[t][k]], middle);
        usi_moments T = usi_moments_tetrahedron(p[0], p[1], p[2]);
        usi_moments_add(&M, &T);
    }
    if (M.m < 0) {
        // Inside out, as mirrored models are: turn all triangles round.
        for (int32_t t = 0; t < mesh->n_triangle; t++) {
            int32_t c = mesh->triangle[t][1];
            mesh->triangle[t][1] = mesh->triangle[t][2];
            mesh->triangle[t][2] = c;
        }
        M.m = -M.m;
        M.s = us_vec3_scale(-1, M.s);
        for (int i = 0; i < 6; i++)
            M.q[i] = -M.q[i];
    }
    return usi_moments_inertia(&M, middle);
}

// ---- The tree ----

// Coordinates are finite: without the care for NaN of fmin and fmax, which costs a call.
static inline us_vec3 min3(us_vec3 a, us_vec3 b) {
    return us_vec3_make(a.x < b.x ? a.x : b.x, a.y < b.y ? a.y : b.y, a.z < b.z ? a.z : b.z);
}
static inline us_vec3 max3(us_vec3 a, us_vec3 b) {
    return us_vec3_make(a.x > b.x ? a.x : b.x, a.y > b.y ? a.y : b.y, a.z > b.z ? a.z : b.z);
}

static us_aabb empty_box(void) {
    us_aabb b = {us_vec3_make(INFINITY, INFINITY, INFINITY), us_vec3_make(-INFINITY, -INFINITY, -INFINITY)};
    return b;
}

static void grow_box(us_aabb *b, us_aabb c) {
    b->min = min3(b->min, c.min);
    b->max = max3(b->max, c.max);
}

static us_aabb triangle_box(const us_mesh *mesh, int32_t t) {
    us_vec3 a = mesh->vertex[mesh->triangle[t][0]], b = mesh->vertex[mesh->triangle[t][1]],
            c = mesh->vertex[mesh->triangle[t][2]];
    us_aabb box = {min3(a, min3(b, c)), max3(a, max3(b, c))};
    return box;
}

static double along(us_vec3 a, int axis) { return axis == 0 ? a.x : axis == 1 ? a.y : a.z; }

// Twice the centre of a triangle's box along an axis.
static double centre2(const us_mesh *mesh, int32_t t, int axis) {
    us_aabb b = triangle_box(mesh, t);
    return along(b.min, axis) + along(b.max, axis);
}

static double half_area(us_aabb b) {
    us_vec3 d = us_vec3_sub(b.max, b.min);
    return d.x * d.y + d.y * d.z + d.z * d.x;
}

// Which bin a centre falls into: 0 .. BINS - 1.
static int bin_of(double centre, double low, double scale) {
    double x = (centre - low) * scale;
    return x < 0 ? 0 : x >= (double)BINS ? BINS - 1 : (int)x;
}

// Rearranges order[first .. first + count - 1] and returns how many go to the left: 1 .. count - 1.
static int32_t split(us_mesh *mesh, int32_t first, int32_t count, int depth) {
    int32_t half = count / 2;
    if (depth >= HALVE_AT) return half;
    us_aabb centres = empty_box();
    for (int32_t i = first; i < first + count; i++) {
        us_aabb b = triangle_box(mesh, mesh->order[i]);
        us_vec3 c = us_vec3_add(b.min, b.max);
        grow_box(&centres, (us_aabb){c, c});
    }
    us_vec3 spread = us_vec3_sub(centres.max, centres.min);
    int axis = spread.x >= spread.y && spread.x >= spread.z ? 0 : spread.y >= spread.z ? 1 : 2;
    double low = along(centres.min, axis), scale = (double)BINS / along(spread, axis);
    if (!(along(spread, axis) > 0) || !isfinite(scale)) return half;  // all centres in one place

    us_aabb box[BINS], right[BINS];
    int32_t n[BINS] = {0};
    for (int k = 0; k < BINS; k++)
        box[k] = empty_box();
    for (int32_t i = first; i < first + count; i++) {
        int k = bin_of(centre2(mesh, mesh->order[i], axis), low, scale);
        n[k]++;
        grow_box(&box[k], triangle_box(mesh, mesh->order[i]));
    }
    right[BINS - 1] = box[BINS - 1];
    for (int k = BINS - 2; k > 0; k--) {
        right[k] = box[k];
        grow_box(&right[k], right[k + 1]);
    }
    // Split below bin k. The outermost bins hold at least one triangle each, so that neither side is ever
    // empty.
    us_aabb left = box[0];
    int32_t n_left = n[0];
    int best = 1;
    double min_cost = INFINITY;
    for (int k = 1; k < BINS; k++) {
        double cost = half_area(left) * n_left + half_area(right[k]) * (count - n_left);
        if (cost < min_cost) {
            min_cost = cost;
            best = k;
        }
        grow_box(&left, box[k]);
        n_left += n[k];
    }
    int32_t i = first, j = first + count;
    while (i < j) {
        int32_t t = mesh->order[i];
        if (bin_of(centre2(mesh, t, axis), low, scale) < best) {
            i++;
        } else {
            j--;
            mesh->order[i] = mesh->order[j];
            mesh->order[j] = t;
        }
    }
    return i > first && i < first + count ? i - first : half;
}

static void build_tree(us_mesh *mesh) {
    struct {
        int32_t node, depth;
    } stack[STACK];
    int n_stack = 0;
    for (int32_t t = 0; t < mesh->n_triangle; t++)
        mesh->order[t] = t;
    mesh->n_node = 1;
    mesh->node[0].first = 0;
    mesh->node[0].count = mesh->n_triangle;
    stack[n_stack].node = 0;
    stack[n_stack++].depth = 0;
    while (n_stack > 0) {
        usi_bvh_node *node = &mesh->node[stack[--n_stack].node];
        int32_t depth = stack[n_stack].depth, first = node->first, count = node->count;
        us_aabb b = empty_box();
        for (int32_t i = first; i < first + count; i++)
            grow_box(&b, triangle_box(mesh, mesh->order[i]));
        node->min = b.min;
        node->max = b.max;
        if (count <= LEAF) continue;
        int32_t n_left = split(mesh, first, count, depth), child = mesh->n_node;
        mesh->n_node += 2;
        node->first = child;
        node->count = 0;
        mesh->node[child].first = first;
        mesh->node[child].count = n_left;
        mesh->node[child + 1].first = first + n_left;
        mesh->node[child + 1].count = count - n_left;
        stack[n_stack].node = child + 1;
        stack[n_stack++].depth = depth + 1;
        stack[n_stack].node = child;
        stack[n_stack++].depth = depth + 1;
    }
}

// ---- Creation ----

static us_status check_input(const us_vec3 *vertices, int32_t n_vertex, const vertex_triple *triangles,
                             int32_t n_triangle, us_error *err) {
    if (n_vertex < 3 || n_triangle < 1) {
        return us_error_set(err, US_ERR_VALUE, NULL, "give at least one triangle",
                            "a mesh of %d vertices and %d triangles", (int)n_vertex, (int)n_triangle);
    }
    // Three sides of every triangle, and twice as many nodes as triangles, are numbered by 32-bit integers.
    if (n_triangle > INT32_MAX / 4) {
        return us_error_set(err, US_ERR_LIMIT, NULL, "split it into several meshes",
                            "a mesh of %d triangles is too large", (int)n_triangle);
    }
    for (int32_t i = 0; i < n_vertex; i++) {
        if (!isfinite(vertices[i].x) || !isfinite(vertices[i].y) || !isfinite(vertices[i].z)) {
            return us_error_set(err, US_ERR_VALUE, NULL, "use finite coordinates",
                                "vertex %d of a mesh is not finite", (int)i);
        }
    }
    for (int32_t t = 0; t < n_triangle; t++) {
        for (int k = 0; k < 3; k++) {
            if (triangles[t][k] < 0 || triangles[t][k] >= n_vertex) {
                return us_error_set(err, US_ERR_VALUE, NULL, "number the vertices from 0",
                                    "triangle %d of a mesh has vertex %d of %d", (int)t, (int)triangles[t][k],
                                    (int)n_vertex);
            }
        }
    }
    return US_OK;
}

// Copies the triangles, with one number for all vertices at one place, but not those with two corners there:
// they are lines, and what touches them touches their neighbours.
static void copy_triangles(us_mesh *mesh, const int32_t (*triangles)[3], int32_t n, const int32_t *same) {
    for (int32_t t = 0; t < n; t++) {
        const int32_t c[3] = {same[triangles[t][0]], same[triangles[t][1]], same[triangles[t][2]]};
        if (c[0] == c[1] || c[1] == c[2] || c[2] == c[0]) continue;
        memcpy(mesh->triangle[mesh->n_triangle++], c, sizeof(vertex_triple));
    }
}

// Inertia at density 1; NAN when the surface is not closed.
static us_inertia unit_inertia(const us_mesh *mesh) {
    us_vec3 none = us_vec3_make(NAN, NAN, NAN);
    if (!mesh->is_closed)
        return (us_inertia){.mass = NAN, .com = none, .about_com = {NAN, NAN, NAN, NAN, NAN, NAN}};
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(mesh->node[0].min, mesh->node[0].max));
    return closed_inertia(mesh, middle);
}

us_status us_mesh_create(const us_vec3 *vertices, int32_t n_vertex, const int32_t (*triangles)[3],
                         int32_t n_triangle, const us_allocator *allocator, us_mesh **out_mesh,
                         us_error *err) {
    if (!vertices || !triangles || !out_mesh) {
        return us_error_set(err, US_ERR_ARG, NULL, "give vertices, triangles and a place for the result",
                            "an argument is NULL");
    }
    us_status status = check_input(vertices, n_vertex, triangles, n_triangle, err);
    if (status) return status;
    us_allocator a = allocator ? *allocator : us_allocator_default();

    size_t nv = (size_t)n_vertex, nt = (size_t)n_triangle, bytes = sizeof(us_mesh);
    size_t at_vertex = usi_carve(&bytes, nv, sizeof(us_vec3)),
           at_triangle = usi_carve(&bytes, nt, sizeof(vertex_triple));
    size_t at_order = usi_carve(&bytes, nt, sizeof(int32_t)),
           at_node = usi_carve(&bytes, 2 * nt - 1, sizeof(usi_bvh_node));
    size_t at_neighbour = usi_carve(&bytes, nt, sizeof(vertex_triple)),
           at_fan_start = usi_carve(&bytes, nv + 1, sizeof(int32_t)),
           at_fan = usi_carve(&bytes, 3 * nt, sizeof(int32_t));
    size_t n_slot = table_size(nv), n_side = table_size(3 * nt), scratch_bytes = 0;
    size_t at_same = usi_carve(&scratch_bytes, nv, sizeof(int32_t)),
           at_slot = usi_carve(&scratch_bytes, n_slot, sizeof(int32_t));
    size_t at_side = usi_carve(&scratch_bytes, n_side, sizeof(edge_balance));

    us_mesh *mesh = usi_alloc(&a, bytes, USI_ALIGN);
    char *scratch = usi_alloc(&a, scratch_bytes, USI_ALIGN);
    if (!mesh || !scratch) {
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a mesh of %d triangles",
                              (int)n_triangle);
        goto done;
    }
    // Nodes are filled as they are made; cleared first, so that the unused ones are not garbage.
    memset((void *)mesh, 0, bytes);
    mesh->allocator = a;
    mesh->bytes = bytes;
    mesh->vertex = (us_vec3 *)((char *)mesh + at_vertex);
    mesh->triangle = (vertex_triple *)((char *)mesh + at_triangle);
    mesh->order = (int32_t *)((char *)mesh + at_order);
    mesh->node = (usi_bvh_node *)((char *)mesh + at_node);
    mesh->neighbour = (vertex_triple *)((char *)mesh + at_neighbour);
    mesh->fan_start = (int32_t *)((char *)mesh + at_fan_start);
    mesh->fan = (int32_t *)((char *)mesh + at_fan);
    mesh->n_vertex = n_vertex;
    memcpy(mesh->vertex, vertices, nv * sizeof *vertices);

    int32_t *same = (int32_t *)(scratch + at_same);
    weld(mesh->vertex, n_vertex, (int32_t *)(scratch + at_slot), n_slot, same);
    copy_triangles(mesh, triangles, n_triangle, same);
    if (mesh->n_triangle == 0) {
        status =
            us_error_set(err, US_ERR_VALUE, NULL, "give at least one triangle with three different corners",
                         "all triangles of a mesh are lines or points");
        goto done;
    }
    build_tree(mesh);
    mesh->is_closed = is_closed(mesh, (edge_balance *)(void *)(scratch + at_side), n_side);
    mesh->unit_inertia = unit_inertia(mesh);
    usi_mesh_connect(mesh);
    if (usi_mesh_widen(mesh))
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a mesh of %d triangles",
                              (int)n_triangle);

done:
    usi_release(&a, scratch, scratch_bytes, USI_ALIGN);
    if (status) {
        usi_release(&a, mesh, bytes, USI_ALIGN);
        return status;
    }
    *out_mesh = mesh;
    return US_OK;
}

void us_mesh_destroy(us_mesh *mesh) {
    if (!mesh) return;
    us_allocator a = mesh->allocator;
    usi_mesh_narrow(mesh);
    usi_release(&a, mesh, mesh->bytes, USI_ALIGN);
}
