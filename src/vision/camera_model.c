// Camera models.
//
// Every kind is an axis, a distance s from it, and a function h(s) that bends this distance:
//
//     kind       axis   s                       h(s)
//     pinhole    z      tan(angle)              s (1 + k1 s^2 + k2 s^4 + k3 s^6) / (1 + k4 s^2 + k5 s^4 + k6
//     s^6) fish-eye   z      angle                   s (1 + k1 s^2 + k2 s^4 + k3 s^6 + k4 s^8) CAHVOR     O
//     tan(angle)              s (1 + R0 + R1 s^2 + R2 s^4) CAHVORE    O      chi(angle, linearity)   the same
//
// A camera is one to one as far as h grows: that is `limit`, found by us_camera_prepare, since a polynomial
// may grow again later, and would put what is far outside into the middle of the picture. To invert h is
// Newton's method between bounds. The tangential part of Brown-Conrady is small and is inverted together with
// h in two dimensions, started from the radial answer.
//
// Brown (1971), with OpenCV's order of coefficients; equidistant: Kannala and Brandt (2006); CAHVOR:
// Yakimovsky and Cunningham (1978), Gennery's R and O; CAHVORE: Gennery, "Generalized camera calibration
// including fish-eye lenses" (2006).
#include <math.h>
#include <string.h>

#include "understudy/camera_model.h"

static const double PI = 3.14159265358979323846;

// A ray that lies farther than this from the axis of a perspective camera is as good as beside it (89.9
// degrees).
static const double MAX_TANGENT = 573;

us_camera_model us_camera_from_hfov(int32_t width, int32_t height, double hfov) {
    us_camera_model m = {.kind = US_CAMERA_PINHOLE, .width = width, .height = height};
    m.fx = m.fy = 0.5 * width / tan(0.5 * hfov);
    m.cx = 0.5 * (width - 1);
    m.cy = 0.5 * (height - 1);
    m.limit = MAX_TANGENT;
    return m;
}

us_camera_model us_camera_fisheye_from_hfov(int32_t width, int32_t height, double hfov) {
    us_camera_model m = us_camera_from_hfov(width, height, 1);
    m.kind = US_CAMERA_FISHEYE;
    m.fx = m.fy = width / hfov;
    m.limit = PI;
    return m;
}

// ---- the function that bends ----

// h(s) and its derivative.
static double bend(const us_camera_model *m, double s, double *out_slope) {
    const double s2 = s * s;
    if (m->kind == US_CAMERA_PINHOLE) {
        const double *k = m->k;
        const double top = 1 + s2 * (k[0] + s2 * (k[1] + s2 * k[4]));
        const double below = 1 + s2 * (k[5] + s2 * (k[6] + s2 * k[7]));
        const double top_slope = s * (2 * k[0] + s2 * (4 * k[1] + s2 * 6 * k[4]));
        const double below_slope = s * (2 * k[5] + s2 * (4 * k[6] + s2 * 6 * k[7]));
        // A denominator that reaches 0 ends the range as a slope that falls does.
        *out_slope = below > 0 ? (top + s * (top_slope - top * below_slope / below)) / below : -1;
        return s * top / below;
    }
    if (m->kind == US_CAMERA_FISHEYE) {
        const double *k = m->k;
        *out_slope = 1 + s2 * (3 * k[0] + s2 * (5 * k[1] + s2 * (7 * k[2] + s2 * 9 * k[3])));
        return s * (1 + s2 * (k[0] + s2 * (k[1] + s2 * (k[2] + s2 * k[3]))));
    }
    *out_slope = 1 + m->R.x + s2 * (3 * m->R.y + s2 * 5 * m->R.z);
    return s * (1 + m->R.x + s2 * (m->R.y + s2 * m->R.z));
}

// chi of CAHVORE: the distance from the axis in a picture without distortion.
static double chi_of(double theta, double linearity) {
    if (fabs(linearity) < 1e-9) return theta;
    return (linearity > 0 ? tan(linearity * theta) : sin(linearity * theta)) / linearity;
}

static double theta_of(double chi, double linearity) {
    if (fabs(linearity) < 1e-9) return chi;
    return (linearity > 0 ? atan(linearity * chi) : asin(fmax(-1, fmin(1, linearity * chi)))) / linearity;
}

// s at the angle theta; INFINITY where the kind has none.
static double distance_at(const us_camera_model *m, double theta) {
    if (m->kind == US_CAMERA_FISHEYE) return theta;
    if (m->kind == US_CAMERA_CAHVORE) {
        return theta * fabs(m->linearity) < 0.5 * PI - 1e-3 ? chi_of(theta, m->linearity) : (double)INFINITY;
    }
    return theta < 0.5 * PI ? fmin(tan(theta), MAX_TANGENT) : (double)INFINITY;
}

// The largest s up to which h grows. The steps of a quarter degree see every range of falling h that is
// wider.
static double growing_until(const us_camera_model *m) {
    enum { STEPS = 720 };
    double good = 0, slope;
    for (int i = 1; i <= STEPS; i++) {
        double s = distance_at(m, PI * i / STEPS);
        if (!isfinite(s)) break;
        bend(m, s, &slope);
        if (slope <= 0) {
            for (int k = 0; k < 60; k++) {
                const double middle = 0.5 * (good + s);
                bend(m, middle, &slope);
                if (slope > 0) {
                    good = middle;
                } else {
                    s = middle;
                }
            }
            return good;
        }
        good = s;
    }
    return good;
}

// The s whose h(s) is `bent`: Newton's steps, halved when they leave the bounds. False beyond `limit`.
static bool unbend(const us_camera_model *m, double bent, double *out_s) {
    double slope, low = 0, high = m->limit;
    if (!(bent <= bend(m, high, &slope))) return false;
    double s = fmin(bent, high);
    for (int i = 0; i < 100; i++) {
        const double error = bend(m, s, &slope) - bent;
        if (error > 0) {
            high = s;
        } else {
            low = s;
        }
        double next = slope > 0 ? s - error / slope : low;
        if (!(next >= low && next <= high)) next = 0.5 * (low + high);
        if (fabs(next - s) <= 1e-16 * (1 + s)) break;
        s = next;
    }
    *out_s = s;
    return true;
}

// ---- checks ----

static bool is_finite3(us_vec3 a) { return isfinite(a.x) && isfinite(a.y) && isfinite(a.z); }

static us_status check_vectors(const us_camera_model *m, const us_place *place, us_error *err) {
    const us_vec3 all[] = {m->C, m->A, m->H, m->V, m->O, m->R, m->E};
    for (int i = 0; i < 7; i++)
        if (!is_finite3(all[i]))
            return us_error_set(err, US_ERR_VALUE, place, "give finite numbers", "%c is not finite",
                                "CAHVORE"[i]);
    if (fabs(us_vec3_norm(m->A) - 1) > 1e-3 || fabs(us_vec3_norm(m->O) - 1) > 1e-3)
        return us_error_set(err, US_ERR_VALUE, place, "scale A and O to length 1",
                            "A has the length %g and O %g", us_vec3_norm(m->A), us_vec3_norm(m->O));
    const us_vec3 AH = us_vec3_cross(m->A, m->H), AV = us_vec3_cross(m->A, m->V);
    if (!(us_vec3_norm(us_vec3_cross(AH, AV)) > 1e-6 * us_vec3_norm(AH) * us_vec3_norm(AV)))
        return us_error_set(err, US_ERR_VALUE, place, "H is about f x + cx A, V about f y + cy A",
                            "A, H and V lie in one plane");
    if (!(fabs(m->linearity) <= 1))
        return us_error_set(err, US_ERR_VALUE, place, "give a number from -1 to 1", "linearity is %g",
                            m->linearity);
    return US_OK;
}

us_status us_camera_prepare(us_camera_model *m, us_error *err) {
    const us_place place = {.element = "camera model"};
    if (m->width < 1 || m->height < 1 || m->width > 65535 || m->height > 65535)
        return us_error_set(err, US_ERR_VALUE, &place, "give 1 to 65535 pixels each way",
                            "the picture has %d x %d pixels", (int)m->width, (int)m->height);
    if ((unsigned)m->kind >= US_CAMERA_KIND_COUNT)
        return us_error_set(err, US_ERR_VALUE, &place, "give one of us_camera_kind", "kind %d is unknown",
                            (int)m->kind);
    if (m->kind == US_CAMERA_CAHVOR || m->kind == US_CAMERA_CAHVORE) {
        const us_status status = check_vectors(m, &place, err);
        if (status) return status;
    } else {
        if (!(m->fx > 0 && m->fy > 0 && isfinite(m->fx) && isfinite(m->fy)))
            return us_error_set(err, US_ERR_VALUE, &place, "give focal lengths above 0, in pixels",
                                "fx is %g, fy is %g", m->fx, m->fy);
        if (!isfinite(m->cx) || !isfinite(m->cy))
            return us_error_set(err, US_ERR_VALUE, &place, "give a finite principal point",
                                "cx is %g, cy is %g", m->cx, m->cy);
        for (int i = 0; i < 8; i++)
            if (!isfinite(m->k[i]))
                return us_error_set(err, US_ERR_VALUE, &place, "give finite numbers",
                                    "distortion coefficient %d is not finite", i + 1);
    }
    const double limit = growing_until(m);
    if (!(limit > 0))
        return us_error_set(err, US_ERR_VALUE, &place, "check sign and order of the coefficients",
                            "the distortion turns the picture over at its middle");
    m->limit = limit;
    return US_OK;
}

// ---- pinhole and fish-eye ----

// Brown-Conrady of a point of the plane z = 1, with the Jacobian J = [du/dx du/dy; dv/dx dv/dy].
static void brown(const us_camera_model *m, double x, double y, double *out_x, double *out_y, double J[4]) {
    const double s2 = x * x + y * y, s = sqrt(s2), p1 = m->k[2], p2 = m->k[3];
    double slope = 1;
    // f = h / s and f' / s: f' = (h' - f) / s.
    const double f = s > 1e-12 ? bend(m, s, &slope) / s : 1;
    const double g = s > 1e-6 ? (slope - f) / s2 : 2 * (m->k[0] - m->k[5]);
    *out_x = x * f + 2 * p1 * x * y + p2 * (s2 + 2 * x * x);
    *out_y = y * f + p1 * (s2 + 2 * y * y) + 2 * p2 * x * y;
    J[0] = f + g * x * x + 2 * p1 * y + 6 * p2 * x;
    J[1] = J[2] = g * x * y + 2 * p1 * x + 2 * p2 * y;
    J[3] = f + g * y * y + 6 * p1 * y + 2 * p2 * x;
}

static bool project_pinhole(const us_camera_model *m, us_vec3 p, double *out_u, double *out_v) {
    if (!(p.z > 0)) return false;
    const double x = p.x / p.z, y = p.y / p.z;
    if (!(x * x + y * y <= m->limit * m->limit)) return false;
    double xd, yd, J[4];
    brown(m, x, y, &xd, &yd, J);
    *out_u = m->fx * xd + m->cx;
    *out_v = m->fy * yd + m->cy;
    return true;
}

static bool unproject_pinhole(const us_camera_model *m, double u, double v, us_vec3 *out_direction) {
    const double xd = (u - m->cx) / m->fx, yd = (v - m->cy) / m->fy, bent = hypot(xd, yd);
    double s, x = xd, y = yd;
    const bool has_tangential = m->k[2] != 0 || m->k[3] != 0;
    if (bent > 0) {
        if (unbend(m, bent, &s)) {
            x *= s / bent;
            y *= s / bent;
        } else {
            // The tangential part may still bring it inside.
            if (!has_tangential) return false;
            x *= m->limit / bent;
            y *= m->limit / bent;
        }
    }
    double error = 0;
    for (int i = 0; has_tangential && i < 30; i++) {
        double at_x, at_y, J[4];
        brown(m, x, y, &at_x, &at_y, J);
        const double ex = xd - at_x, ey = yd - at_y, det = J[0] * J[3] - J[1] * J[2];
        error = fabs(ex) + fabs(ey);
        if (!(det > 0)) return false;
        const double dx = (J[3] * ex - J[1] * ey) / det, dy = (J[0] * ey - J[2] * ex) / det;
        x += dx;
        y += dy;
        if (fabs(dx) + fabs(dy) <= 1e-16 * (1 + bent)) break;
    }
    if (!(error < 1e-9 * (1 + bent)) || !(x * x + y * y <= m->limit * m->limit)) return false;
    const double scale = 1 / sqrt(x * x + y * y + 1);
    *out_direction = us_vec3_make(scale * x, scale * y, scale);
    return true;
}

static bool project_fisheye(const us_camera_model *m, us_vec3 p, double *out_u, double *out_v) {
    const double across = hypot(p.x, p.y), theta = atan2(across, p.z);
    if (!(theta <= m->limit) || !(across > 0 || p.z > 0)) return false;
    double slope;
    const double scale = across > 0 ? bend(m, theta, &slope) / across : 0;
    *out_u = m->fx * scale * p.x + m->cx;
    *out_v = m->fy * scale * p.y + m->cy;
    return true;
}

static bool unproject_fisheye(const us_camera_model *m, double u, double v, us_vec3 *out_direction) {
    const double xd = (u - m->cx) / m->fx, yd = (v - m->cy) / m->fy, bent = hypot(xd, yd);
    double theta;
    if (!unbend(m, bent, &theta)) return false;
    const double scale = bent > 0 ? sin(theta) / bent : 0;
    *out_direction = us_vec3_make(scale * xd, scale * yd, cos(theta));
    return true;
}

// ---- CAHVOR and CAHVORE ----

// How far the entrance pupil of CAHVORE lies along O, for a ray at the angle theta: (theta / sin(theta) - 1)
// (E0 + E1 theta^2 + E2 theta^4).
static double pupil(const us_camera_model *m, double theta) {
    const double t2 = theta * theta, size = m->E.x + t2 * (m->E.y + t2 * m->E.z);
    return (theta < 1e-4 ? t2 / 6 : theta / sin(theta) - 1) * size;
}

// The angle of the ray from the moving pupil to the point at `along` O and `across` it: (along - pupil)
// sin(theta) = across cos(theta), by Newton's method.
static bool solve_theta(const us_camera_model *m, double along, double across, double *out_theta) {
    double theta = atan2(across, along);
    for (int i = 0; i < 50; i++) {
        const double s = sin(theta), c = cos(theta), t2 = theta * theta;
        const double size = m->E.x + t2 * (m->E.y + t2 * m->E.z);
        const double size_slope = theta * (2 * m->E.y + t2 * 4 * m->E.z);
        const double error = along * s - across * c - (theta - s) * size;
        const double slope = along * c + across * s - (1 - c) * size - (theta - s) * size_slope;
        if (!(slope > 0)) return false;  // nearer than the pupil moves
        const double step = error / slope;
        theta -= step;
        if (fabs(step) < 1e-15 * (1 + fabs(theta))) break;
    }
    *out_theta = theta;
    return isfinite(theta) && theta >= 0 && theta < PI;
}

static bool project_cahvor(const us_camera_model *m, us_vec3 p, double *out_u, double *out_v) {
    const us_vec3 from_C = us_vec3_sub(p, m->C);
    const double along = us_vec3_dot(from_C, m->O);
    const us_vec3 side = us_vec3_sub(from_C, us_vec3_scale(along, m->O));
    const double across = us_vec3_norm(side);
    double s, depth = along;
    if (m->kind == US_CAMERA_CAHVOR) {
        if (!(along > 0)) return false;
        s = across / along;
    } else {
        double theta;
        if (!(across > 0 || along > 0) || !solve_theta(m, along, across, &theta)) return false;
        s = distance_at(m, theta);
        if (s > 0) depth = across / s;
    }
    if (!(s <= m->limit)) return false;
    double slope;
    const double stretch = s > 0 ? bend(m, s, &slope) / s : 1;
    const us_vec3 bent = us_vec3_add(us_vec3_scale(depth, m->O), us_vec3_scale(stretch, side));
    const double forward = us_vec3_dot(bent, m->A);
    if (!(forward > 0)) return false;
    *out_u = us_vec3_dot(bent, m->H) / forward;
    *out_v = us_vec3_dot(bent, m->V) / forward;
    return true;
}

static bool unproject_cahvor(const us_camera_model *m, double u, double v, us_vec3 *out_direction,
                             us_vec3 *out_origin) {
    // The ray that the bent point lies on is at right angles to H - u A and to V - v A.
    us_vec3 ray =
        us_vec3_cross(us_vec3_sub(m->V, us_vec3_scale(v, m->A)), us_vec3_sub(m->H, us_vec3_scale(u, m->A)));
    if (us_vec3_dot(ray, m->A) < 0) ray = us_vec3_scale(-1, ray);
    const double along = us_vec3_dot(ray, m->O);
    if (!(along > 0)) return false;
    const us_vec3 side = us_vec3_sub(ray, us_vec3_scale(along, m->O));
    const double across = us_vec3_norm(side);
    double s;
    if (!unbend(m, across / along, &s)) return false;
    const double theta = m->kind == US_CAMERA_CAHVOR ? atan(s) : theta_of(s, m->linearity);
    const double scale = across > 0 ? sin(theta) / across : 0;
    *out_direction = us_vec3_add(us_vec3_scale(cos(theta), m->O), us_vec3_scale(scale, side));
    *out_direction = us_vec3_scale(1 / us_vec3_norm(*out_direction), *out_direction);
    *out_origin = m->C;
    if (m->kind == US_CAMERA_CAHVORE) *out_origin = us_vec3_add(m->C, us_vec3_scale(pupil(m, theta), m->O));
    return true;
}

bool us_camera_project(const us_camera_model *m, us_vec3 p, double *out_u, double *out_v) {
    if (m->kind == US_CAMERA_PINHOLE) return project_pinhole(m, p, out_u, out_v);
    if (m->kind == US_CAMERA_FISHEYE) return project_fisheye(m, p, out_u, out_v);
    return project_cahvor(m, p, out_u, out_v);
}

bool us_camera_unproject(const us_camera_model *m, double u, double v, us_vec3 *out_direction,
                         us_vec3 *out_origin) {
    us_vec3 origin = {0, 0, 0};
    bool is_seen;
    if (m->kind == US_CAMERA_PINHOLE) {
        is_seen = unproject_pinhole(m, u, v, out_direction);
    } else if (m->kind == US_CAMERA_FISHEYE) {
        is_seen = unproject_fisheye(m, u, v, out_direction);
    } else {
        is_seen = unproject_cahvor(m, u, v, out_direction, &origin);
    }
    if (is_seen && out_origin) *out_origin = origin;
    return is_seen;
}
