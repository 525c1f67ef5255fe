// Narrow phase: contact points of any two shapes, by the method for their kinds.
//
//                     convex                half space    mesh, height field        union
//   convex            features that face    support       triangle by triangle      part by part
//                     each other            feature
//   all other pairs   one point from us_geom_distance, where that knows the pair
//
// Before these the closed forms are tried (contact_closed_form.c): spheres, capsules, boxes, wheels on
// terrain, which is most of what there is.
//
// The kinds have an order; a pair in the other order is computed exchanged and swapped back.
#include "geom/contact_support.h"

// Swaps A and B in the candidates from `first` on.
static void swap_shapes(usi_candidates *c, int32_t first) {
    for (int32_t i = first; i < c->n; i++) {
        usi_candidate *p = &c->at[i];
        us_vec3 t = p->p_A;
        p->p_A = p->p_B;
        p->p_B = t;
        p->normal = us_vec3_scale(-1, p->normal);
    }
}

// A single point from the distance, for pairs without a better method.
static us_status distance_point(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                                usi_candidates *c) {
    us_gap g;
    us_status status = us_geom_distance(A, X_WA, B, X_WB, &g);
    if (status == US_OK) usi_candidates_add(c, margin, g.normal, g.p_A, g.p_B, 1ull << 53);
    return status;
}

static us_status gather(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                        usi_candidates *c);

// The parts of a union one after another. Ids are mixed with the part's index.
static us_status gather_parts(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                              usi_candidates *c) {
    us_aabb box = us_geom_box(B, X_WB);
    const int32_t start = c->n;
    for (int32_t k = 0; k < A->n_part; k++) {
        const us_geom_part *part = &A->parts[k];
        us_pose X_WP = us_pose_mul(X_WA, part->X_GP);
        us_geom geom = part->geom;
        geom.radius += A->radius;  // a sphere sweeps a union part by part
        us_aabb b = us_geom_box(&geom, X_WP);
        bool is_apart = b.min.x > box.max.x + margin || b.max.x < box.min.x - margin ||
                        b.min.y > box.max.y + margin || b.max.y < box.min.y - margin ||
                        b.min.z > box.max.z + margin || b.max.z < box.min.z - margin;
        if (is_apart) continue;
        usi_candidates_make_room(c, start);
        int32_t first = c->n;
        us_status status = gather(&geom, X_WP, B, X_WB, margin, c);
        if (status) return status;
        for (int32_t i = first; i < c->n; i++)
            c->at[i].id = c->at[i].id * 31 + (uint64_t)(k + 1) * 0x9E3779B97F4A7C15u;
    }
    return US_OK;
}

static void add_manifold(const us_manifold *m, usi_candidates *c) {
    for (int32_t i = 0; i < m->n && c->n < USI_CANDIDATES; i++) {
        usi_candidate *p = &c->at[c->n++];
        p->normal = m->normal[i];
        p->p_A = m->p_A[i];
        p->p_B = m->p_B[i];
        p->gap = m->gap[i];
        p->id = m->feature[i];
    }
}

// The pairs that have no closed form.
static us_status gather_general(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                                usi_candidates *c) {
    if (A->kind == US_GEOM_UNION) return gather_parts(A, X_WA, B, X_WB, margin, c);
    if (usi_is_convex(A->kind)) {
        if (usi_is_convex(B->kind)) {
            if (A->kind == US_GEOM_CAPSULE && B->kind == US_GEOM_CAPSULE) {
                usi_contact_capsules(A, X_WA, B, X_WB, margin, c);
            } else {
                usi_contact_convex(A, X_WA, B, X_WB, margin, c);
            }
            return US_OK;
        }
        switch (B->kind) {
        case US_GEOM_HALF_SPACE:
            // The radius lifts the plane.
            X_WB.p = usi_vec3_add_scaled(X_WB.p, B->radius, us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1)));
            usi_contact_half_space(A, X_WA, X_WB, margin, c);
            return US_OK;
        case US_GEOM_HEIGHT_FIELD:
            usi_contact_field(A, X_WA, B->field, B->radius, X_WB, margin, c);
            return US_OK;
        case US_GEOM_MESH:
            usi_contact_mesh(A, X_WA, B->mesh, B->radius, X_WB, margin, c);
            return US_OK;
        default:
            break;
        }
    }
    if (B->kind == US_GEOM_UNION || (usi_is_convex(B->kind) && A->kind != US_GEOM_INTERSECTION)) {
        int32_t first = c->n;
        us_status status = gather(B, X_WB, A, X_WA, margin, c);
        swap_shapes(c, first);
        return status;
    }
    return distance_point(A, X_WA, B, X_WB, margin, c);
}

static us_status gather(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                        usi_candidates *c) {
    us_manifold quick;
    if (usi_contact_closed_form(A, &X_WA, B, &X_WB, margin, &quick)) {
        add_manifold(&quick, c);
        return US_OK;
    }
    return gather_general(A, X_WA, B, X_WB, margin, c);
}

us_status us_geom_contact(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                          us_manifold *out_manifold) {
    if (!A || !B || !out_manifold || !(margin >= 0) || isinf(margin)) return US_ERR_ARG;
    if (usi_contact_closed_form(A, &X_WA, B, &X_WB, margin, out_manifold)) return US_OK;
    usi_candidates c;
    c.n = 0;
    us_status status = gather_general(A, X_WA, B, X_WB, margin, &c);
    if (status) return status;
    usi_candidates_to_manifold(&c, 0, out_manifold);
    return US_OK;
}
