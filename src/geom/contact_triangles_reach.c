// Which parts of a surface of triangles a convex shape can reach, and which of them can add anything.
#include "geom/geom__triangles.h"

// Where two depths are the same, over the size: parts that could only be deeper by less are left out.
#define SAME_SUPPORT 1e-6

const usi_feature *usi_surface_feature(usi_surface_query *t, us_vec3 d) {
    us_vec3 o = t->feature_direction;
    if (!t->has_feature || o.x != d.x || o.y != d.y || o.z != d.z) {
        usi_feature_find(t->A, t->X_FA, d, USI_FEATURE_POINTS, &t->feature);
        t->feature_direction = d;
        t->has_feature = true;
    }
    return &t->feature;
}

// How far the shape is above a box along the unit vector n.
static double height_over(const usi_surface_query *t, const us_aabb *box, us_vec3 n) {
    us_vec3 top = us_vec3_make(n.x < 0 ? box->min.x : box->max.x, n.y < 0 ? box->min.y : box->max.y,
                               n.z < 0 ? box->min.z : box->max.z);
    return usi_lowest_height(t, n) - us_vec3_dot(n, top);
}

// How far two boxes are apart, along the axes of the shape's own.
static double boxes_apart(const usi_surface_query *t, const us_aabb *box) {
    us_vec3 c = us_vec3_scale(0.5, us_vec3_add(box->min, box->max)), h = us_vec3_sub(box->max, c),
            d = us_vec3_sub(c, t->X_FA.p);
    double apart = -INFINITY;
    for (int k = 0; k < 3; k++) {
        us_vec3 a = usi_column(&t->R_FA, k);
        double reach = t->A->size[k] + t->A->radius + fabs(a.x) * h.x + fabs(a.y) * h.y + fabs(a.z) * h.z,
               between = fabs(us_vec3_dot(a, d)) - reach;
        apart = between > apart ? between : apart;
    }
    return apart;
}

double usi_surface_min_gap(const usi_surface_query *t, const us_aabb *box) {
    us_vec3 m = t->middle,
            q = us_vec3_make(m.x < box->min.x ? box->min.x : (m.x > box->max.x ? box->max.x : m.x),
                             m.y < box->min.y ? box->min.y : (m.y > box->max.y ? box->max.y : m.y),
                             m.z < box->min.z ? box->min.z : (m.z > box->max.z ? box->max.z : m.z)),
            v = us_vec3_sub(m, q);
    double length = us_vec3_norm(v), gap = -INFINITY;
    // The box lies behind the plane across the line from its nearest point to the shape's middle.
    if (length > 1e-6 * t->size) {
        v = us_vec3_scale(1 / length, v);
        gap = usi_lowest_height(t, v) - us_vec3_dot(v, q);
        if (gap > t->margin) return gap;
    }
    if (t->A->kind == US_GEOM_BOX) {
        double apart = boxes_apart(t, box);
        if (apart > 0) return apart > gap ? apart : gap;
    }
    if (gap > 0) return gap;
    // In reach: the flat side of the shape that looks at the surface says how deep.
    if (t->has_feature && t->feature.n > 2) return height_over(t, box, us_vec3_scale(-1, t->feature.normal));
    return gap;
}

bool usi_is_triangle_apart(const usi_surface_query *t, const us_vec3 v[3], us_vec3 n) {
    double height = us_vec3_dot(n, us_vec3_sub(t->middle, v[0])), best = INFINITY;
    if (!(height > 0)) return false;
    us_vec3 foot = usi_vec3_add_scaled(t->middle, -height, n), q = foot;
    for (int k = 0; k < 3; k++) {
        us_vec3 a = v[k], e = us_vec3_sub(v[k < 2 ? k + 1 : 0], a), d = us_vec3_sub(foot, a);
        if (us_vec3_dot(us_vec3_cross(e, n), d) <= 0) continue;
        double s = us_vec3_dot(e, d) / us_vec3_dot(e, e);
        us_vec3 p = usi_vec3_add_scaled(a, s < 0 ? 0 : (s > 1 ? 1 : s), e);
        d = us_vec3_sub(foot, p);
        double far = us_vec3_dot(d, d);
        if (far < best) {
            best = far;
            q = p;
        }
    }
    if (best == INFINITY) return false;  // the plane has been tried
    us_vec3 w = us_vec3_sub(t->middle, q);
    w = us_vec3_scale(1 / us_vec3_norm(w), w);
    return usi_lowest_height(t, w) - us_vec3_dot(w, q) > t->margin;
}

void usi_surface_count(usi_surface_query *t) {
    if (++t->n_visited != USI_PLAIN_TRIANGLES) return;
    t->is_pruned = true;
    usi_support_clear(&t->support);
    for (int32_t i = t->first; i < t->c->n; i++) {
        const usi_candidate *p = &t->c->at[i];
        usi_support_add(&t->support, p->normal, p->p_B, p->gap);
    }
}

bool usi_surface_is_open(const usi_surface_query *t, uint32_t facing, const us_aabb *box, double min_gap) {
    // Only what is under the shape can be touched.
    us_aabb b = *box;
    b.min =
        us_vec3_make(fmax(b.min.x, t->box.min.x), fmax(b.min.y, t->box.min.y), fmax(b.min.z, t->box.min.z));
    b.max =
        us_vec3_make(fmin(b.max.x, t->box.max.x), fmin(b.max.y, t->box.max.y), fmin(b.max.z, t->box.max.z));
    return usi_support_is_open(&t->support, facing, &b, min_gap, t->tolerance, SAME_SUPPORT * t->size);
}
