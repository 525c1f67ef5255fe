// Rectification: two ideal cameras, side by side, that see what the real ones saw.
//
// The ideal frame N has x along the baseline and looks as near as can be where the left camera looks: y =
// z_left x x, z = x x y (Fusiello, Trucco and Verri 2000). Every point then lies in the same row of both
// pictures. A table says for each pixel of an ideal picture where it comes from in the real one; applying it
// is a bilinear look-up.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "understudy/vision.h"

static const us_place here = {.element = "stereo rig"};

// The focal length in the middle of a picture, pixels: of a pinhole it is fx; of other kinds how fast a pixel
// moves with the angle.
static double focal_of(const us_camera_model *m) {
    if (m->kind == US_CAMERA_PINHOLE) return m->fx;
    us_vec3 a, b;
    const double u = 0.5 * (m->width - 1), v = 0.5 * (m->height - 1);
    if (!us_camera_unproject(m, u - 1, v, &a, NULL) || !us_camera_unproject(m, u + 1, v, &b, NULL)) return 0;
    return 2 / us_vec3_norm(us_vec3_sub(a, b));
}

us_status us_rectify_rig(const us_stereo_rig *rig, us_rectification *out, us_error *err) {
    if (!rig || !out) return US_ERR_ARG;
    const double baseline = us_vec3_norm(rig->X_LR.p);
    if (!(baseline > 1e-9) || !isfinite(baseline))
        return us_error_set(err, US_ERR_VALUE, &here,
                            "give the right camera's place in the left one's optical frame",
                            "the cameras stand in one point");
    if (!(rig->X_LR.p.x > 0.1 * baseline))
        return us_error_set(err, US_ERR_VALUE, &here,
                            "exchange left and right, or set the cameras side by side",
                            "the right camera does not stand to the right of the left one");
    if (rig->left.width != rig->right.width || rig->left.height != rig->right.height)
        return us_error_set(err, US_ERR_VALUE, &here, "give cameras of one size",
                            "the cameras have %d x %d and %d x %d pixels", (int)rig->left.width,
                            (int)rig->left.height, (int)rig->right.width, (int)rig->right.height);
    const us_vec3 z_left = us_vec3_make(0, 0, 1), x = us_vec3_scale(1 / baseline, rig->X_LR.p);
    us_vec3 y = us_vec3_cross(z_left, x);
    if (!(us_vec3_norm(y) > 1e-3))
        return us_error_set(err, US_ERR_VALUE, &here, "set the cameras side by side",
                            "one camera stands before the other");
    y = us_vec3_scale(1 / us_vec3_norm(y), y);
    const us_vec3 z = us_vec3_cross(x, y);
    // Columns are the axes of N in the left optical frame.
    us_rectification r = {.width = rig->left.width, .height = rig->left.height, .baseline = baseline};
    r.q_LN = us_quat_from_matrix((us_mat3){{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}});
    r.q_RN = us_quat_mul(us_quat_conj(rig->X_LR.q), r.q_LN);
    if (!(us_quat_rotate(us_quat_conj(r.q_RN), z_left).z > 0.2))
        return us_error_set(err, US_ERR_VALUE, &here, "turn the cameras towards each other",
                            "the cameras look more than 78 degrees apart");
    r.f = fmin(focal_of(&rig->left), focal_of(&rig->right));
    if (!(r.f > 0))
        return us_error_set(err, US_ERR_VALUE, &here, "check the camera models",
                            "a camera sees nothing in its middle");
    r.cx_left = r.cx_right = 0.5 * (r.width - 1);
    r.cy = 0.5 * (r.height - 1);
    if (rig->left.kind == US_CAMERA_PINHOLE && rig->right.kind == US_CAMERA_PINHOLE) {
        r.cx_left = r.cx_right = 0.5 * (rig->left.cx + rig->right.cx);
        r.cy = 0.5 * (rig->left.cy + rig->right.cy);
    }
    *out = r;
    return US_OK;
}

// `r` of a camera_info takes the real frame to the ideal one; q_SN is the way back.
static bool rotation_of(const double r[9], us_quat *out) {
    const us_mat3 back = {{r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            double dot = 0;
            for (int c = 0; c < 3; c++)
                dot += r[3 * i + c] * r[3 * k + c];
            if (!(fabs(dot - (i == k)) < 1e-3)) return false;
        }
    *out = us_quat_from_matrix(back);
    return true;
}

us_status us_rectify_calibration(const us_camera_info *left, const us_camera_info *right, int32_t width,
                                 int32_t height, us_rectification *out, us_error *err) {
    if (!left || !right || !out) return US_ERR_ARG;
    us_rectification r = {.width = width, .height = height, .f = left->p[0], .cx_left = left->p[2]};
    r.cx_right = right->p[2];
    r.cy = left->p[6];
    if (!(r.f > 0) || !isfinite(r.f) || fabs(left->p[0] - right->p[0]) > 1e-6 * r.f ||
        fabs(left->p[5] - r.f) > 1e-6 * r.f || !(fabs(left->p[6] - right->p[6]) < 1e-6 * r.f) ||
        !isfinite(r.cx_left) || !isfinite(r.cx_right))
        return us_error_set(
            err, US_ERR_VALUE, &here, "calibrate the two cameras together",
            "the projection matrices are not those of a rectified pair: f %g and %g, cy %g and %g",
            left->p[0], right->p[0], left->p[6], right->p[6]);
    r.baseline = (left->p[3] - right->p[3]) / r.f;
    if (!(r.baseline > 0) || !isfinite(r.baseline))
        return us_error_set(err, US_ERR_VALUE, &here,
                            "exchange left and right, or calibrate the two cameras together",
                            "the right camera's projection matrix gives a baseline of %g m", r.baseline);
    if (!rotation_of(left->r, &r.q_LN) || !rotation_of(right->r, &r.q_RN))
        return us_error_set(err, US_ERR_VALUE, &here, "calibrate the two cameras together",
                            "a rectification matrix is no rotation");
    *out = r;
    return US_OK;
}

// ---- tables ----

// Where a pixel comes from: the upper left one of four, and how far to the right and down of it, in 256ths.
// No pixel is at all four corners of what lies outside.
typedef struct source {
    int32_t x, y;  // x is -1: not seen
    uint16_t right, down;
} source;

struct us_remap {
    us_allocator allocator;
    int32_t width, height, from_width, from_height;
    size_t size;
    source table[];
};

static source source_of(const us_camera_model *m, us_vec3 ray) {
    double u, v;
    source s = {-1, 0, 0, 0};
    if (!us_camera_project(m, ray, &u, &v)) return s;
    if (!(u >= 0 && v >= 0 && u <= m->width - 1 && v <= m->height - 1)) return s;
    const int64_t fixed_u = llround(u * 256), fixed_v = llround(v * 256);
    s.x = (int32_t)(fixed_u >> 8);
    s.y = (int32_t)(fixed_v >> 8);
    s.right = (uint16_t)(fixed_u & 255);
    s.down = (uint16_t)(fixed_v & 255);
    return s;
}

us_status us_remap_create(const us_camera_model *camera, const us_rectification *to, us_quat q_SN, double cx,
                          const us_allocator *allocator, us_remap **out_remap) {
    if (!camera || !to || !out_remap || to->width < 1 || to->height < 1 || !(to->f > 0)) return US_ERR_ARG;
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    const size_t size = sizeof(us_remap) + (size_t)to->width * to->height * sizeof(source);
    us_remap *map = usi_alloc(&a, size, USI_ALIGN);
    if (!map) return US_ERR_MEMORY;
    *map = (us_remap){.allocator = a,
                      .width = to->width,
                      .height = to->height,
                      .from_width = camera->width,
                      .from_height = camera->height,
                      .size = size};
    for (int32_t y = 0; y < to->height; y++)
        for (int32_t x = 0; x < to->width; x++) {
            const us_vec3 ray = us_vec3_make((x - cx) / to->f, (y - to->cy) / to->f, 1);
            map->table[(size_t)y * to->width + x] = source_of(camera, us_quat_rotate(q_SN, ray));
        }
    *out_remap = map;
    return US_OK;
}

void us_remap_destroy(us_remap *map) {
    if (!map) return;
    const us_allocator a = map->allocator;
    usi_release(&a, map, map->size, USI_ALIGN);
}

us_status us_remap_apply(const us_remap *map, const us_image *from, us_image *to) {
    if (!map || !from || !to || from->format != US_PIXEL_MONO8 || to->format != US_PIXEL_MONO8 ||
        from->width != map->from_width || from->height != map->from_height || to->width != map->width ||
        to->height != map->height)
        return US_ERR_ARG;
    const uint8_t *pixels = from->pixels;
    for (int32_t y = 0; y < to->height; y++) {
        uint8_t *row = (uint8_t *)to->pixels + (size_t)y * to->stride;
        for (int32_t x = 0; x < to->width; x++) {
            const source *s = &map->table[(size_t)y * to->width + x];
            row[x] = 0;
            if (s->x < 0) continue;
            // The last column and row have nothing beyond them, and no weight there.
            const size_t i = (size_t)s->y * from->stride + s->x, right = s->right ? 1 : 0;
            const size_t down = s->down ? from->stride : 0;
            const uint32_t above = pixels[i] * (256u - s->right) + pixels[i + right] * (uint32_t)s->right;
            const uint32_t below =
                pixels[i + down] * (256u - s->right) + pixels[i + down + right] * (uint32_t)s->right;
            row[x] = (uint8_t)((above * (256u - s->down) + below * s->down + 32768) >> 16);
        }
    }
    return US_OK;
}
