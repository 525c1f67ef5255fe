// A height field over any shape: samples of its upper side, or a volume that contains it.
//
// Samples: one ray from above per node; where it misses, the bottom of the shape's box. Overhangs are filled.
//
// A volume that contains the shape: over each cell a flat plate of the cell's size is lowered until it
// touches the shape. It may be lowered by its distance from the shape and meet nothing (conservative
// advancement), so no thin spike between the rays is missed:
//
//       =====  plate              A node is as high as the highest plate of the cells around it, and so no
//         | distance              corner of a cell's two triangles is below anything in the cell.
//        /\    ______
//     __/  \__/      \__
//
// Beside a steep wall the distance is that from the wall, and shrinks no faster than the plate comes down;
// the plate stops after a number of steps, too high rather than too low.
#include "geom/geom.h"

// Relative to the height of the box: how near the plate comes.
static const double NEAR = 1e-6;
enum { MAX_STEPS = 100 };

typedef struct upper_side {
    const us_geom *geom;
    us_aabb box;
    int32_t n_x, n_y;
    double dx, dy;
    double *height;
} upper_side;

static double *node_at(const upper_side *t, int32_t i, int32_t j) {
    return &t->height[(size_t)j * (size_t)t->n_x + (size_t)i];
}

// The shape's highest point over (x, y), in G; the box's bottom where there is none.
static double top_at(const upper_side *t, double x, double y) {
    double above = t->box.max.z - t->box.min.z + 1;
    us_ray_hit hit = us_geom_ray(t->geom, us_pose_identity(), us_vec3_make(x, y, t->box.min.z + above),
                                 us_vec3_make(0, 0, -1), above);
    return hit.range <= above ? t->box.min.z + above - hit.range : t->box.min.z;
}

static void sample(const upper_side *t) {
    for (int32_t j = 0; j < t->n_y; j++)
        for (int32_t i = 0; i < t->n_x; i++)
            *node_at(t, i, j) = top_at(t, t->box.min.x + i * t->dx, t->box.min.y + j * t->dy);
}

// Where the plate over a cell comes to rest.
static us_status lower_plate(const upper_side *t, int32_t i, int32_t j, double *out_z) {
    us_geom plate = {.kind = US_GEOM_LOZENGE, .size = {0.5 * t->dx, 0.5 * t->dy}};
    us_pose X = us_pose_identity();
    X.p = us_vec3_make(t->box.min.x + (i + 0.5) * t->dx, t->box.min.y + (j + 0.5) * t->dy, t->box.max.z);
    double near = NEAR * (t->box.max.z - t->box.min.z);
    for (int step = 0; step < MAX_STEPS && X.p.z > t->box.min.z; step++) {
        us_gap gap;
        us_status status = us_geom_distance(&plate, X, t->geom, us_pose_identity(), &gap);
        if (status) return status;
        if (!(gap.distance > near)) break;
        X.p.z -= gap.distance;
    }
    *out_z = fmax(X.p.z, t->box.min.z);
    return US_OK;
}

static us_status cover(const upper_side *t) {
    for (int32_t k = 0; k < t->n_x * t->n_y; k++)
        t->height[k] = t->box.min.z;
    for (int32_t j = 0; j < t->n_y - 1; j++) {
        for (int32_t i = 0; i < t->n_x - 1; i++) {
            double z;
            us_status status = lower_plate(t, i, j, &z);
            if (status) return status;
            for (int32_t k = 0; k < 4; k++) {
                double *h = node_at(t, i + k % 2, j + k / 2);
                *h = fmax(*h, z);
            }
        }
    }
    return US_OK;
}

// Maximum difference in height at the nodes and in the middle of each triangle, by rays.
static double error_of(const upper_side *t) {
    double max_error = 0;
    for (int32_t j = 0; j < t->n_y; j++) {
        for (int32_t i = 0; i < t->n_x; i++) {
            double x = t->box.min.x + i * t->dx, y = t->box.min.y + j * t->dy, h = *node_at(t, i, j);
            max_error = fmax(max_error, fabs(h - top_at(t, x, y)));
            if (i == t->n_x - 1 || j == t->n_y - 1) continue;
            double far = *node_at(t, i + 1, j + 1), low = (h + far + *node_at(t, i + 1, j)) / 3,
                   high = (h + far + *node_at(t, i, j + 1)) / 3;
            max_error = fmax(max_error, fabs(low - top_at(t, x + t->dx * 2 / 3, y + t->dy / 3)));
            max_error = fmax(max_error, fabs(high - top_at(t, x + t->dx / 3, y + t->dy * 2 / 3)));
        }
    }
    return max_error;
}

us_status us_height_field_create_from(const us_geom *geom, int32_t n_x, int32_t n_y, bool is_bound,
                                      const us_allocator *allocator, us_height_field **out_field,
                                      us_pose *out_X_GF, double *out_error, us_error *err) {
    if (!geom || !out_field || !out_X_GF)
        return us_error_set(err, US_ERR_ARG, NULL, "give a shape and places for the results",
                            "an argument is NULL");
    us_status status = us_geom_check(geom, err);
    if (status) return status;
    if (n_x < 2 || n_y < 2 || (int64_t)n_x * n_y > INT32_MAX / 2)
        return us_error_set(err, n_x < 2 || n_y < 2 ? US_ERR_VALUE : US_ERR_LIMIT, NULL,
                            "use 2 to 32000 samples each way", "a height field cannot have %d by %d samples",
                            (int)n_x, (int)n_y);
    us_aabb box = us_geom_box(geom, us_pose_identity());
    us_vec3 side = us_vec3_sub(box.max, box.min);
    if (!isfinite(us_vec3_dot(side, side)) || !(side.x > 0 && side.y > 0))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "use a shape with an end on every side, and a radius where it has no width",
                            "a %s of %g by %g m has no height field over it", us_geom_kind_name(geom->kind),
                            side.x, side.y);
    us_allocator a = allocator ? *allocator : us_allocator_default();
    size_t bytes = (size_t)n_x * (size_t)n_y * sizeof(double);
    upper_side t = {
        .geom = geom, .box = box, .n_x = n_x, .n_y = n_y, .dx = side.x / (n_x - 1), .dy = side.y / (n_y - 1)};
    t.height = usi_alloc(&a, bytes, USI_ALIGN);
    if (!t.height)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL,
                            "no memory for a height field of %d by %d samples", (int)n_x, (int)n_y);
    if (is_bound)
        status = cover(&t);
    else
        sample(&t);
    us_height_field *field = NULL;
    if (status)
        us_error_set(err, status, NULL, "give the intersection something in common to its parts",
                     "the shape has no distance from others");
    else
        status = us_height_field_create(t.height, n_x, n_y, t.dx, t.dy, &a, &field, err);
    if (!status) {
        *out_field = field;
        *out_X_GF = us_pose_identity();
        out_X_GF->p = us_vec3_make(0.5 * (box.min.x + box.max.x), 0.5 * (box.min.y + box.max.y), 0);
        if (out_error) *out_error = error_of(&t);
    }
    usi_release(&a, t.height, bytes, USI_ALIGN);
    return status;
}
