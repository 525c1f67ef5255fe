// Contact points of a convex shape on a mesh by the general method: the triangles in those leaves of the tree
// that meet the shape's box.
#include "geom/geom__triangles.h"

enum { MAX_TRIANGLES = 512, MAX_TREE_DEPTH = 96, MAX_RIM = 32 };

// Triangle `index` with its neighbours among the n triangles of the list.
static void mesh_facet(const us_mesh *m, const int32_t *list, int32_t n, int32_t index, usi_facet *f) {
    const int32_t *v = m->triangle[index];
    f->index = (uint32_t)index;
    for (int k = 0; k < 3; k++) {
        f->v[k] = m->vertex[v[k]];
        f->vertex[k] = (uint32_t)v[k];
    }
    f->normal = usi_vec3_unit(us_vec3_cross(us_vec3_sub(f->v[1], f->v[0]), us_vec3_sub(f->v[2], f->v[0])),
                              us_vec3_make(0, 0, 0));
    f->offset = us_vec3_dot(f->normal, f->v[0]);
    for (int k = 0; k < 3; k++) {
        int32_t a = v[k], b = v[(k + 1) % 3];
        f->neighbour[k] = -1;
        f->across[k] =
            usi_vec3_add_scaled(f->v[k], -us_vec3_norm(us_vec3_sub(f->v[(k + 1) % 3], f->v[k])), f->normal);
        for (int32_t i = 0; i < n && f->neighbour[k] < 0; i++) {
            const int32_t *w = m->triangle[list[i]];
            for (int s = 0; s < 3 && list[i] != index; s++) {
                if (w[s] == b && w[(s + 1) % 3] == a) {
                    f->neighbour[k] = list[i];
                    f->across[k] = m->vertex[w[(s + 2) % 3]];
                }
            }
        }
    }
}

// Triangles in the leaves that meet the shape's box, at most MAX_TRIANGLES; returns how many.
static inline int32_t triangles_in_box(const us_mesh *m, const us_aabb *box, int32_t *list) {
    int32_t stack[MAX_TREE_DEPTH], n = 0, depth = 0;
    if (m->n_node > 0) stack[depth++] = 0;
    while (depth > 0) {
        const usi_bvh_node *node = &m->node[stack[--depth]];
        if (node->min.x > box->max.x || node->max.x < box->min.x || node->min.y > box->max.y ||
            node->max.y < box->min.y || node->min.z > box->max.z || node->max.z < box->min.z) {
            continue;
        }
        if (node->count > 0) {
            for (int32_t i = 0; i < node->count && n < MAX_TRIANGLES; i++)
                list[n++] = m->order[node->first + i];
        } else if (depth + 2 <= MAX_TREE_DEPTH) {
            stack[depth++] = node->first + 1;
            stack[depth++] = node->first;
        }
    }
    return n;
}

// Far ends of the edges that leave a vertex, among n triangles of the list; returns how many.
static inline int32_t rim_of(const us_mesh *m, const int32_t *list, int32_t n, int32_t vertex,
                             us_vec3 rim[MAX_RIM]) {
    int32_t r = 0;
    for (int32_t k = 0; k < n; k++) {
        const int32_t *w = m->triangle[list[k]];
        for (int q = 0; q < 3; q++) {
            if (w[q] != vertex || r + 2 > MAX_RIM) continue;
            rim[r++] = m->vertex[w[(q + 1) % 3]];
            rim[r++] = m->vertex[w[(q + 2) % 3]];
        }
    }
    return r;
}

void usi_contact_mesh(const us_geom *A, us_pose X_WA, const us_mesh *m, double radius, us_pose X_WB,
                      double margin, usi_candidates *c) {
    usi_surface_query t;
    usi_surface_begin(&t, A, X_WA, X_WB, margin + radius, c);
    int32_t list[MAX_TRIANGLES];
    const int32_t n = triangles_in_box(m, &t.box, list);
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(t.box.min, t.box.max));
    for (int32_t i = 0; i < n; i++) {
        // Plane: most triangles are out of reach.
        const int32_t *v = m->triangle[list[i]];
        us_vec3 a = m->vertex[v[0]];
        us_vec3 normal =
            usi_vec3_unit(us_vec3_cross(us_vec3_sub(m->vertex[v[1]], a), us_vec3_sub(m->vertex[v[2]], a)),
                          us_vec3_make(0, 0, 0));
        double offset = us_vec3_dot(normal, a);
        if (us_vec3_dot(normal, normal) == 0 || us_vec3_dot(normal, middle) < offset ||
            usi_lowest_height(&t, normal) - offset > t.margin)
            continue;

        // Face, its ridges, its corners as peaks.
        usi_facet face;
        mesh_facet(m, list, n, list[i], &face);
        usi_collide_facet(&t, &face);
        for (int s = 0; s < 3; s++) {
            us_vec3 rim[MAX_RIM], outward = face.normal;
            double distance;
            if (!usi_is_peak_near(&t, face.v[s], face.vertex[s], &distance, &outward)) continue;
            const int32_t n_rim = rim_of(m, list, n, v[s], rim);
            usi_collide_peak(&t, face.v[s], face.vertex[s], face.normal, distance, outward, rim, n_rim);
        }
    }
    usi_surface_end(&t, X_WB, radius);
}
