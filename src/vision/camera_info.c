// Camera models as ROS 2's camera_info has them, and back.
//
// Pinhole and fish-eye have names there. CAHVOR and CAHVORE have not: for them the nearest model with a name
// is fitted to the rays of a grid of pixels by Gauss-Newton, and how far it is off is told.
#include <math.h>
#include <string.h>

#include "understudy/camera_model.h"

static void write_matrices(us_camera_info *info, const us_camera_model *m) {
    const double k[9] = {m->fx, 0, m->cx, 0, m->fy, m->cy, 0, 0, 1};
    const double p[12] = {m->fx, 0, m->cx, 0, 0, m->fy, m->cy, 0, 0, 0, 1, 0};
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(info->k, k, sizeof k);
    memcpy(info->p, p, sizeof p);
    memcpy(info->r, r, sizeof r);
}

static void write_named(us_camera_info *info, const us_camera_model *m) {
    const bool is_rational = m->k[5] != 0 || m->k[6] != 0 || m->k[7] != 0;
    info->distortion_model = m->kind == US_CAMERA_FISHEYE ? "equidistant"
                             : is_rational                ? "rational_polynomial"
                                                          : "plumb_bob";
    info->n_d = m->kind == US_CAMERA_FISHEYE ? 4 : is_rational ? 8 : 5;
    memcpy(info->d, m->k, (size_t)info->n_d * sizeof info->d[0]);
    write_matrices(info, m);
}

// ---- fit of a model with a name to rays ----

enum { GRID = 16, N_RAY = GRID * GRID, N_PARAMETER = 9 };

typedef struct ray_set {
    int32_t n;
    us_vec3 direction[N_RAY];
    double u[N_RAY], v[N_RAY];
} ray_set;

// The rays of a grid of pixels over the whole picture; the largest angle between a ray and the z axis.
static double collect_rays(const us_camera_model *m, ray_set *rays) {
    double widest = 0;
    rays->n = 0;
    for (int i = 0; i < N_RAY; i++) {
        const int column = i % GRID, row = i / GRID;
        const double u = (m->width - 1) * (double)column / (GRID - 1);
        const double v = (m->height - 1) * (double)row / (GRID - 1);
        us_vec3 direction;
        if (!us_camera_unproject(m, u, v, &direction, NULL)) continue;
        widest = fmax(widest, acos(fmax(-1, fmin(1, direction.z))));
        rays->direction[rays->n] = direction;
        rays->u[rays->n] = u;
        rays->v[rays->n] = v;
        rays->n++;
    }
    return widest;
}

// fx fy cx cy and the coefficients; a pinhole has five of them, a fish-eye four.
static void set_parameters(us_camera_model *m, const double x[N_PARAMETER]) {
    m->fx = x[0];
    m->fy = x[1];
    m->cx = x[2];
    m->cy = x[3];
    for (int i = 0; i < (m->kind == US_CAMERA_FISHEYE ? 4 : 5); i++)
        m->k[i] = x[4 + i];
}

// Solves A x = b of n rows by elimination with pivots; A is symmetric and damped, so that it has an inverse.
static bool solve(double A[N_PARAMETER][N_PARAMETER], double b[N_PARAMETER], int n) {
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int r = c + 1; r < n; r++)
            if (fabs(A[r][c]) > fabs(A[pivot][c])) pivot = r;
        if (!(fabs(A[pivot][c]) > 1e-300)) return false;
        for (int k = 0; k < n; k++) {
            const double t = A[c][k];
            A[c][k] = A[pivot][k];
            A[pivot][k] = t;
        }
        const double t = b[c];
        b[c] = b[pivot];
        b[pivot] = t;
        for (int r = c + 1; r < n; r++) {
            const double factor = A[r][c] / A[c][c];
            for (int k = c; k < n; k++)
                A[r][k] -= factor * A[c][k];
            b[r] -= factor * b[c];
        }
    }
    for (int c = n - 1; c >= 0; c--) {
        for (int k = c + 1; k < n; k++)
            b[c] -= A[c][k] * b[k];
        b[c] /= A[c][c];
    }
    return true;
}

// Adds the normal equations of one ray: derivatives by differences.
static bool add_ray(const us_camera_model *shape, const double x[N_PARAMETER], const ray_set *rays, int32_t i,
                    int n, double A[N_PARAMETER][N_PARAMETER], double b[N_PARAMETER]) {
    us_camera_model m = *shape;
    double J[2][N_PARAMETER], u, v, moved[N_PARAMETER];
    set_parameters(&m, x);
    if (!us_camera_project(&m, rays->direction[i], &u, &v)) return false;
    for (int k = 0; k < n; k++) {
        const double step = k < 4 ? 1e-4 : 1e-6;
        memcpy(moved, x, sizeof moved);
        moved[k] += step;
        set_parameters(&m, moved);
        double u2, v2;
        if (!us_camera_project(&m, rays->direction[i], &u2, &v2)) return false;
        J[0][k] = (u2 - u) / step;
        J[1][k] = (v2 - v) / step;
    }
    const double e[2] = {rays->u[i] - u, rays->v[i] - v};
    for (int row = 0; row < 2; row++)
        for (int r = 0; r < n; r++) {
            b[r] += J[row][r] * e[row];
            for (int c = 0; c < n; c++)
                A[r][c] += J[row][r] * J[row][c];
        }
    return true;
}

static bool fit(us_camera_model *m, const ray_set *rays) {
    const int n = m->kind == US_CAMERA_FISHEYE ? 8 : 9;
    double x[N_PARAMETER] = {m->fx, m->fy, m->cx, m->cy};
    for (int round = 0; round < 30; round++) {
        double A[N_PARAMETER][N_PARAMETER] = {{0}}, b[N_PARAMETER] = {0};
        for (int32_t i = 0; i < rays->n; i++)
            if (!add_ray(m, x, rays, i, n, A, b)) return false;
        for (int k = 0; k < n; k++)
            A[k][k] *= 1 + 1e-12;
        if (!solve(A, b, n)) return false;
        for (int k = 0; k < n; k++)
            x[k] += b[k];
    }
    set_parameters(m, x);
    return true;
}

static double largest_error(const us_camera_model *m, const ray_set *rays) {
    double largest = 0, u, v;
    for (int32_t i = 0; i < rays->n; i++) {
        if (!us_camera_project(m, rays->direction[i], &u, &v)) return INFINITY;
        largest = fmax(largest, hypot(u - rays->u[i], v - rays->v[i]));
    }
    return largest;
}

static us_status write_fitted(us_camera_info *info, const us_camera_model *m, us_error *err) {
    const us_place place = {.element = "camera model"};
    ray_set rays;
    const double widest = collect_rays(m, &rays);
    us_camera_model named = {.kind = widest < 1.0472 ? US_CAMERA_PINHOLE : US_CAMERA_FISHEYE,
                             .width = m->width,
                             .height = m->height};
    // H is about f x + cx A: its part across A has the length f.
    const double cx = us_vec3_dot(m->H, m->A), cy = us_vec3_dot(m->V, m->A);
    named.fx = us_vec3_norm(us_vec3_sub(m->H, us_vec3_scale(cx, m->A)));
    named.fy = us_vec3_norm(us_vec3_sub(m->V, us_vec3_scale(cy, m->A)));
    named.cx = cx;
    named.cy = cy;
    // While the coefficients are sought, no ray is out of range.
    named.limit = INFINITY;
    if (rays.n < N_RAY / 2 || !fit(&named, &rays) || us_camera_prepare(&named, err) ||
        !isfinite(info->max_error = largest_error(&named, &rays)))
        return us_error_set(err, US_ERR_VALUE, &place, "check A, H, V and O: the camera looks along +z",
                            "no Brown-Conrady and no equidistant model comes near this CAHVOR camera");
    write_named(info, &named);
    return US_OK;
}

us_status us_camera_get_info(const us_camera_model *m, us_camera_info *out_info, us_error *err) {
    us_camera_info info = {0};
    if (m->kind == US_CAMERA_CAHVOR || m->kind == US_CAMERA_CAHVORE) {
        const us_status status = write_fitted(&info, m, err);
        if (status) return status;
    } else {
        write_named(&info, m);
    }
    *out_info = info;
    return US_OK;
}

us_status us_camera_from_info(const us_camera_info *info, int32_t width, int32_t height,
                              us_camera_model *out_camera, us_error *err) {
    const us_place place = {.element = "camera_info"};
    static const struct {
        const char *name;
        int32_t at_least, at_most;
    } known[] = {{"plumb_bob", 0, 5}, {"rational_polynomial", 8, 8}, {"equidistant", 4, 4}};
    us_camera_model m = {.width = width, .height = height};
    m.fx = info->k[0];
    m.fy = info->k[4];
    m.cx = info->k[2];
    m.cy = info->k[5];
    for (int i = 0; info->distortion_model && i < 3; i++) {
        if (strcmp(info->distortion_model, known[i].name) != 0) continue;
        if (info->n_d < known[i].at_least || info->n_d > known[i].at_most)
            return us_error_set(err, US_ERR_VALUE, &place, "give as many coefficients as the model has",
                                "%s has %d coefficients, not %d", known[i].name, (int)known[i].at_most,
                                (int)info->n_d);
        m.kind = i == 2 ? US_CAMERA_FISHEYE : US_CAMERA_PINHOLE;
        memcpy(m.k, info->d, (size_t)info->n_d * sizeof m.k[0]);
        const us_status status = us_camera_prepare(&m, err);
        if (!status) *out_camera = m;
        return status;
    }
    return us_error_set(err, US_ERR_VALUE, &place, "write plumb_bob, rational_polynomial or equidistant",
                        "the distortion model \"%s\" is not known",
                        info->distortion_model ? info->distortion_model : "");
}
