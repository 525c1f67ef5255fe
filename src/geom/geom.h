// Data of hulls, meshes and height fields, and functions that the files of this room share.
#ifndef USI_GEOM_GEOM_H
#define USI_GEOM_GEOM_H

#include "base/memory.h"
#include "terrain/pager.h"
#include "understudy/geom.h"

// A convex polyhedron. Faces are flat polygons (coplanar triangles merged), counter-clockwise seen from
// outside.
struct us_hull {
    us_allocator allocator;
    size_t bytes;  // of the one block that holds this struct and all arrays
    int32_t n_vertex, n_face, n_edge;
    us_vec3 middle;            // mean of the vertices: a point inside
    us_vec3 *vertex;           // n_vertex
    us_vec3 *normal;           // n_face, unit, outwards
    double *offset;            // n_face: normal . x = offset on the face
    int32_t *face_start;       // n_face + 1: where a face's corners begin in face_vertex
    int32_t *face_vertex;      // corners
    int32_t (*edge)[4];        // n_edge: vertex, vertex, face, face
    int32_t *neighbour_start;  // n_vertex + 1: for climbing from vertex to vertex
    int32_t *neighbour;
};

// One node of a tree of boxes: leaves have count > 0 triangles order[first .. first + count - 1].
typedef struct usi_bvh_node {
    us_vec3 min, max;
    int32_t first, count;  // inner nodes: count 0, children first and first + 1
    uint32_t facing;       // bits of usi_facing, of the normals of its triangles and of their neighbours
} usi_bvh_node;

// Which of the six axis directions +x -x +y -y +z -z a normal is nearest to: 0 .. 5.
static inline int usi_facing(us_vec3 n) {
    double x = fabs(n.x), y = fabs(n.y), z = fabs(n.z);
    if (z >= x && z >= y) return n.z < 0 ? 5 : 4;
    return x >= y ? (n.x < 0 ? 1 : 0) : (n.y < 0 ? 3 : 2);
}

struct us_mesh {
    us_allocator allocator;
    size_t bytes;
    int32_t n_vertex, n_triangle, n_node;
    us_vec3 *vertex;
    int32_t (*triangle)[3];  // vertices at one place have one number
    int32_t *order;          // triangles in the order of the tree
    usi_bvh_node *node;
    int32_t (*neighbour)[3];  // triangle across the side from corner k to k + 1; -1: none
    int32_t *fan_start;       // n_vertex + 1: where a vertex's triangles begin in fan
    int32_t *fan;             // triangles at each vertex, by number
    bool is_closed;           // every edge has exactly two triangles
    us_inertia unit_inertia;
    struct usi_wide_tree *wide;  // for rays; NULL: the tree above does (ray_mesh.c)
    float *corner;               // of the wide tree's leaves
};

enum { USI_FIELD_TILE = USI_EXTREMES_CELLS, USI_FIELD_PEAKS = 6, USI_FIELD_CAPS = 8 };

struct us_height_field {
    us_allocator allocator;
    size_t bytes;
    int32_t n_x, n_y;
    double dx, dy;
    double low, high;   // extremes
    double *height;     // n_x * n_y, x fastest
    int32_t n_tile_x;   // tiles of USI_FIELD_TILE by USI_FIELD_TILE cells, those at the end smaller
    double (*tile)[2];  // extremes of each tile, x fastest
    // Maxima of blocks of tiles, for rays: peak[k] of 4^(k + 1) by 4^(k + 1) of them. Ground that is paged in
    // has none: what is known of it is known tile by tile.
    int32_t n_peak, n_peak_x[USI_FIELD_PEAKS];
    double *peak[USI_FIELD_PEAKS];
    // Caps, for packets of rays (ray_field_packet.c): heights over `low` that nothing of a cell, of a block
    // of 4 by 4 cells, and so on, exceeds. Level after level; the 16 of one block of the next level stand
    // together, in one line of the cache: usi_cap_index. 2^cap_bits columns and rows are at least as many as
    // there are. Ground that is paged in has none, nor has the widest.
    int32_t n_cap, cap_bits;
    float *cap;
    // Ground that is paged in from a site (height_field_site.c): heights and extremes may be read where a
    // client of the pager has requested them. NULL: all are in memory.
    struct usi_pager *pager;
    uint64_t hash;  // of the site and of the part of it that this is
    us_vec3 p_SF;   // m, of the field's middle in the site's frame
};

// Blocks of cells: level 0 are the tiles, level k the blocks of peak[k - 1]. The maximum height of the block
// around a cell; a block is of 2^shift by 2^shift cells.
static inline int usi_peak_shift(int32_t level) { return 3 + 2 * level; }
_Static_assert(USI_FIELD_TILE == 1 << 3, "a tile is a block of level 0");
static inline double usi_field_peak(const us_height_field *f, int32_t level, int32_t i, int32_t j) {
    const size_t u = (size_t)(i >> usi_peak_shift(level)), v = (size_t)(j >> usi_peak_shift(level));
    return level == 0 ? f->tile[v * (size_t)f->n_tile_x + u][1]
                      : f->peak[level - 1][v * (size_t)f->n_peak_x[level - 1] + u];
}

// How many blocks of caps of a level there are along an axis of n samples, and how many fours of them.
static inline int32_t usi_cap_width(int32_t n, int32_t level) { return ((n - 2) >> 2 * level) + 1; }
static inline int32_t usi_cap_fours(int32_t n, int32_t level) { return ((n - 2) >> (2 * level + 2)) + 1; }
// Where the cap of block (i, j) stands in its level.
static inline size_t usi_cap_index(int32_t n_x, int32_t level, int32_t i, int32_t j) {
    return ((size_t)(j >> 2) * (size_t)usi_cap_fours(n_x, level) + (size_t)(i >> 2)) * 16 +
           (size_t)((j & 3) << 2 | (i & 3));
}

// A cell's corner (i, j) is at x = (i - (n_x - 1)/2) dx. Cell (i, j) is split along the diagonal from (i, j)
// to (i+1, j+1): triangle 0 is (i,j) (i+1,j) (i+1,j+1), triangle 1 is (i,j) (i+1,j+1) (i,j+1), both
// counter-clockwise seen from above.
static inline us_vec3 usi_field_point(const us_height_field *f, int32_t i, int32_t j) {
    return us_vec3_make((i - 0.5 * (f->n_x - 1)) * f->dx, (j - 0.5 * (f->n_y - 1)) * f->dy,
                        f->height[(size_t)j * (size_t)f->n_x + (size_t)i]);
}

// A field of a site's heights, or of the samples in a zone of it: x0 y0 x1 y1, m, in the site's frame; all 0:
// everything. Reads no tile. `memory`: bytes that tiles may take. With the name of another layer of numbers,
// in which '-' is as good as '_': a field of its samples, all that a place in the zone may lie between.
// US_ERR_IO, US_ERR_SYNTAX name what is wrong with the site, US_ERR_VALUE with the zone, US_ERR_NAME: no such
// layer.
us_status usi_field_open(const char *path, const char *layer, const double zone[4], double memory,
                         const us_allocator *allocator, us_height_field **out_field, us_error *err);
// The layer of numbers of that name; -1: none.
int32_t usi_field_layer(const us_site_info *info, const char *name);
// The zone as a window of samples.
us_status usi_field_zone(const us_site_info *info, const double zone[4], usi_window *out_window,
                         us_error *err);

// The maximum height over the cells of a rectangle; -INFINITY when it meets none.
double usi_field_top(const us_height_field *f, double x0, double y0, double x1, double y1);

// Fills what the triangles of a mesh know of each other: fans, neighbours, facing of the nodes.
// mesh_topology.c.
void usi_mesh_connect(us_mesh *mesh);

static inline bool usi_is_convex(us_geom_kind kind) { return kind <= US_GEOM_CONVEX; }

// The support point of the core, the shape without its radius. Convex kinds only. d need not be of unit
// length, may be 0 (any point).
us_vec3 usi_core_support(const us_geom *g, us_vec3 d);

// Distance between the cores of two convex shapes posed in one frame, and depth where the cores overlap; then
// the radii are taken off.
us_gap usi_convex_gap(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB);

#endif
