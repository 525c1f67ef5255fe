// What the triangles of a mesh know of each other: the fan of triangles around each vertex, the neighbour
// across each side, and which way the surface looks in each node of the tree.
//
// The neighbour across the side from a to b is a triangle that runs from b to a. Where several do (two solids
// that share an edge, a sheet that ends on another) it is the first that one meets when turning round the
// side from the triangle's outer face through free space:
//
//         \  | <- this one        seen along the side: what touches the triangle from outside can
//     free \ |                    touch the nearest of them, and nothing behind it
//    ______ \|______
//     face   a,b
#include "geom/geom.h"

static us_vec3 area_normal(const us_mesh *m, int32_t t) {
    const int32_t *c = m->triangle[t];
    us_vec3 a = m->vertex[c[0]];
    return us_vec3_cross(us_vec3_sub(m->vertex[c[1]], a), us_vec3_sub(m->vertex[c[2]], a));
}

static void find_fans(us_mesh *m) {
    // Counted one place later, so that after filling each start is where it belongs.
    for (int32_t v = 0; v <= m->n_vertex; v++)
        m->fan_start[v] = 0;
    for (int32_t t = 0; t < m->n_triangle; t++) {
        for (int k = 0; k < 3; k++) {
            int32_t after = m->triangle[t][k] + 2;
            if (after <= m->n_vertex) m->fan_start[after]++;
        }
    }
    for (int32_t v = 2; v <= m->n_vertex; v++)
        m->fan_start[v] += m->fan_start[v - 1];
    for (int32_t t = 0; t < m->n_triangle; t++) {
        for (int k = 0; k < 3; k++)
            m->fan[m->fan_start[m->triangle[t][k] + 1]++] = t;
    }
}

static int32_t fan_size(const us_mesh *m, int32_t v) { return m->fan_start[v + 1] - m->fan_start[v]; }

// The corner of triangle t opposite to its side from b to a; -1: it has no such side.
static int32_t far_corner(const us_mesh *m, int32_t t, int32_t b, int32_t a) {
    const int32_t *c = m->triangle[t];
    for (int k = 0; k < 3; k++)
        if (c[k] == b && c[(k + 1) % 3] == a) return c[(k + 2) % 3];
    return -1;
}

// How far one turns round the side k of triangle t, from its outer face to the triangle with that far corner:
// above 0, at most 2 pi. The back of a sheet without thickness comes last.
static double turn(const us_mesh *m, int32_t t, int k, int32_t corner) {
    const double pi = 3.14159265358979323846;
    const int32_t *c = m->triangle[t];
    us_vec3 a = m->vertex[c[k]], u = us_vec3_sub(m->vertex[c[(k + 1) % 3]], a), n = area_normal(m, t),
            in = us_vec3_cross(n, u), d = us_vec3_sub(m->vertex[corner], a);
    double angle = atan2(us_vec3_dot(d, n) / us_vec3_norm(n), us_vec3_dot(d, in) / us_vec3_norm(in));
    return angle > 1e-9 ? angle : angle + 2 * pi;
}

static int32_t find_neighbour(const us_mesh *m, int32_t t, int k) {
    int32_t a = m->triangle[t][k], b = m->triangle[t][(k + 1) % 3], best = -1, best_corner = -1;
    // A vertex may have any number of triangles: the smaller fan of the two is searched.
    int32_t v = fan_size(m, a) < fan_size(m, b) ? a : b;
    double min_turn = INFINITY;
    for (int32_t i = m->fan_start[v]; i < m->fan_start[v + 1]; i++) {
        int32_t corner = far_corner(m, m->fan[i], b, a);
        if (corner < 0) continue;
        if (best < 0) {
            best = m->fan[i];
            best_corner = corner;
            continue;
        }
        if (min_turn == INFINITY) min_turn = turn(m, t, k, best_corner);
        double x = turn(m, t, k, corner);
        if (x < min_turn) {
            min_turn = x;
            best = m->fan[i];
        }
    }
    return best;
}

// Children have higher numbers than their parents.
static void find_facing(us_mesh *m) {
    for (int32_t i = m->n_node - 1; i >= 0; i--) {
        usi_bvh_node *node = &m->node[i];
        node->facing = node->count > 0 ? 0 : m->node[node->first].facing | m->node[node->first + 1].facing;
        for (int32_t j = node->first; j < node->first + node->count; j++) {
            int32_t t = m->order[j];
            node->facing |= 1u << usi_facing(area_normal(m, t));
            for (int k = 0; k < 3; k++)
                if (m->neighbour[t][k] >= 0)
                    node->facing |= 1u << usi_facing(area_normal(m, m->neighbour[t][k]));
        }
    }
}

void usi_mesh_connect(us_mesh *mesh) {
    find_fans(mesh);
    for (int32_t t = 0; t < mesh->n_triangle; t++) {
        for (int k = 0; k < 3; k++)
            mesh->neighbour[t][k] = find_neighbour(mesh, t, k);
    }
    find_facing(mesh);
}
