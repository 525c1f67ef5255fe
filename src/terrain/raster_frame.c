// The frame that a raster is read in.
//
// A map projection in metres, whose rows run east from north to south, is a frame already: its samples stay
// where they are, and not one is interpolated. Feet become metres by a factor, in the coordinates and in the
// definition of the projection alike. Everything else is resampled:
//
//        ______________
//       /  ________   /   degrees, or rows that do not run east: the frame is upright and metric, the largest
//      /  |        | /    rectangle about the middle of the file's outline in which every sample lies between
//     /   |________|/     samples of the file, so that no sample is made up. For degrees it is the transverse
//    /_____________/      Mercator projection of the middle: a metre there is a metre, and x^2 / 2R^2 more at
//                         a distance x from the middle's meridian (3e-7 at 5 km on Earth).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "terrain/raster.h"

enum { N_EDGE = 32, N_HALVE = 50 };
// rad; maximum half diagonal of a local frame, as seen from the body's centre: 640 km on Earth, where the
// scale at its edge is 0.5 % off.
static const double MAX_LOCAL = 0.1;
static const double ROUNDING = 1e-6;  // of a sample: tolerance of the outline

bool usi_geo_inverse(const double gt[6], double out[6]) {
    double det = gt[1] * gt[5] - gt[2] * gt[4];
    for (int i = 0; i < 6; i++) {
        if (!isfinite(gt[i])) return false;
    }
    if (!(fabs(det) > 0)) return false;
    out[1] = gt[5] / det;
    out[2] = -gt[2] / det;
    out[4] = -gt[4] / det;
    out[5] = gt[1] / det;
    out[0] = -gt[0] * out[1] - gt[3] * out[2];
    out[3] = -gt[0] * out[4] - gt[3] * out[5];
    return true;
}

usi_base usi_base_of_frame(const usi_frame *f) {
    usi_base b = {.gt = {f->x - 0.5 * f->n_x * f->dx, f->dx, 0, f->y + 0.5 * f->n_y * f->dy, 0, -f->dy},
                  .srs = f->srs,
                  .east = f->n_x,
                  .south = f->n_y,
                  .unit = 1};
    usi_geo_inverse(b.gt, b.inverse);
    return b;
}

// ---------------------------------------------------------------- samples of the file to the frame, and back

typedef struct mapping {
    const usi_gdal *gdal;
    const usi_base *base;
    OGRCoordinateTransformationH there, back;  // NULL: a factor
    double factor;
    double longitude;  // of the middle, for a base in degrees: the others are within 180 degrees of it
} mapping;

static bool transform(const usi_gdal *gdal, OGRCoordinateTransformationH t, double *x, double *y) {
    int is_good = 0;
    return gdal->OCTTransformEx(t, 1, x, y, NULL, &is_good) && is_good && isfinite(*x) && isfinite(*y);
}

static bool to_frame(const mapping *m, double column, double row, double *x, double *y) {
    usi_geo_apply(m->base->gt, column, row, x, y);
    *x *= m->factor;
    *y *= m->factor;
    return !m->there || transform(m->gdal, m->there, x, y);
}

static bool to_file(const mapping *m, double x, double y, double *column, double *row) {
    if (m->back && !transform(m->gdal, m->back, &x, &y)) return false;
    if (m->base->is_degrees) x -= 360 * round((x - m->longitude) / 360);
    usi_geo_apply(m->base->inverse, x / m->factor, y / m->factor, column, row);
    return true;
}

static bool is_inside(const mapping *m, double x, double y) {
    double column, row;
    const usi_base *b = m->base;
    return to_file(m, x, y, &column, &row) && column >= b->west + 0.5 - ROUNDING &&
           column <= b->east - 0.5 + ROUNDING && row >= b->north + 0.5 - ROUNDING &&
           row <= b->south - 0.5 + ROUNDING;
}

// Whether a rectangle's edge lies inside: then all of it does, as the outline has no holes.
static bool is_edge_inside(const mapping *m, const double box[4]) {
    for (int k = 0; k <= N_EDGE; k++) {
        double t = (double)k / (double)N_EDGE, x = box[0] + t * (box[1] - box[0]),
               y = box[2] + t * (box[3] - box[2]);
        if (!is_inside(m, x, box[2]) || !is_inside(m, x, box[3]) || !is_inside(m, box[0], y) ||
            !is_inside(m, box[1], y))
            return false;
    }
    return true;
}

// Grows a box (west, east, south, north) from `inner`, which is inside, towards `outer`.
static void grow(const mapping *m, double inner[4], const double outer[4]) {
    double in = 0, out = 1, box[4];
    for (int n = 0; n <= N_HALVE; n++) {
        double t = n == 0 ? 1 : 0.5 * (in + out);
        for (int i = 0; i < 4; i++)
            box[i] = inner[i] + t * (outer[i] - inner[i]);
        if (is_edge_inside(m, box))
            in = t;
        else
            out = t;
        if (in == 1) break;
    }
    for (int i = 0; i < 4; i++)
        inner[i] += in * (outer[i] - inner[i]);
}

// The rectangle: grown on all sides alike first, then on each as far as it goes.
static bool find_rectangle(const mapping *m, double out_box[4]) {
    const usi_base *b = m->base;
    double middle[2], outer[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    if (!to_frame(m, 0.5 * (b->west + b->east), 0.5 * (b->north + b->south), &middle[0], &middle[1]))
        return false;
    for (int k = 0; k <= 4 * N_EDGE; k++) {
        double t = (double)(k % N_EDGE) / (double)N_EDGE, x, y;
        int side = k / N_EDGE % 4;
        double across = side == 0   ? t
                        : side == 1 ? 1
                        : side == 2 ? 1 - t
                                    : 0,
               down = side == 0   ? 0
                      : side == 1 ? t
                      : side == 2 ? 1
                                  : 1 - t;
        if (!to_frame(m, b->west + across * (b->east - b->west), b->north + down * (b->south - b->north), &x,
                      &y))
            return false;
        outer[0] = fmin(outer[0], x);
        outer[1] = fmax(outer[1], x);
        outer[2] = fmin(outer[2], y);
        outer[3] = fmax(outer[3], y);
    }
    double box[4] = {middle[0], middle[0], middle[1], middle[1]};
    grow(m, box, outer);
    for (int i = 0; i < 4; i++) {
        double further[4];
        memcpy(further, box, sizeof further);
        further[i] = outer[i];
        grow(m, box, further);
    }
    memcpy(out_box, box, sizeof box);
    return true;
}

// ---------------------------------------------------------------- reference systems

// Transverse Mercator about a place in degrees, on the body of `from`.
static OGRSpatialReferenceH local_srs(const usi_gdal *gdal, OGRSpatialReferenceH from, double latitude,
                                      double longitude) {
    OGRSpatialReferenceH srs = gdal->OSRCloneGeogCS(from);
    if (!srs) return NULL;
    char name[64];
    snprintf(name, sizeof name, "local, about %.6f %c %.6f %c", fabs(latitude), latitude < 0 ? 'S' : 'N',
             fabs(longitude), longitude < 0 ? 'W' : 'E');
    gdal->OSRSetProjCS(srs, name);
    gdal->OSRSetTM(srs, latitude, longitude, 1, 0, 0);
    gdal->OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

static OGRCoordinateTransformationH between(const usi_gdal *gdal, OGRSpatialReferenceH from,
                                            OGRSpatialReferenceH to) {
    return from && to ? gdal->OCTNewCoordinateTransformation(from, to) : NULL;
}

static void release(const usi_gdal *gdal, OGRCoordinateTransformationH t) {
    if (t) gdal->OCTDestroyCoordinateTransformation(t);
}

// Longitude and latitude of a place of a reference system; false when it has none.
static bool find_degrees(const usi_gdal *gdal, OGRSpatialReferenceH srs, double *x, double *y) {
    if (!srs || gdal->OSRIsLocal(srs)) return false;
    OGRSpatialReferenceH degrees = gdal->OSRCloneGeogCS(srs);
    if (!degrees) return false;
    gdal->OSRSetAxisMappingStrategy(degrees, OAMS_TRADITIONAL_GIS_ORDER);
    OGRCoordinateTransformationH t = between(gdal, srs, degrees);
    bool is_good = t && transform(gdal, t, x, y);
    release(gdal, t);
    gdal->OSRDestroySpatialReference(degrees);
    return is_good;
}

void usi_frame_place(const usi_gdal *gdal, const usi_frame *f, us_raster_info *info) {
    double longitude = f->x, latitude = f->y, east[2] = {0}, north[2] = {0};
    info->latitude = info->longitude = NAN;
    info->stretch_x = info->stretch_y = 1;
    if (!find_degrees(gdal, f->srs, &longitude, &latitude)) return;
    info->latitude = latitude;
    info->longitude = longitude;
    OGRSpatialReferenceH local = local_srs(gdal, f->srs, latitude, longitude);
    OGRCoordinateTransformationH t = between(gdal, f->srs, local);
    // A hundred metres each way: short beside any body, long beside rounding.
    const double step = 100;
    bool is_good = t != NULL;
    for (int side = -1; side <= 1 && is_good; side += 2) {
        double x = f->x + side * step, y = f->y, u = f->x, v = f->y + side * step;
        is_good = transform(gdal, t, &x, &y) && transform(gdal, t, &u, &v);
        east[0] += side * x;
        east[1] += side * y;
        north[0] += side * u;
        north[1] += side * v;
    }
    if (is_good && hypot(east[0], east[1]) > 0 && hypot(north[0], north[1]) > 0) {
        info->stretch_x = 2 * step / hypot(east[0], east[1]);
        info->stretch_y = 2 * step / hypot(north[0], north[1]);
    }
    release(gdal, t);
    if (local) gdal->OSRDestroySpatialReference(local);
}

bool usi_base_box(const usi_gdal *gdal, const usi_base *base, OGRSpatialReferenceH srs, const double gt[6],
                  int32_t n_x, int32_t n_y, double out_box[4]) {
    OGRCoordinateTransformationH t = NULL;
    if (srs && base->srs && !gdal->OSRIsSame(srs, base->srs) && !(t = between(gdal, srs, base->srs)))
        return false;
    double box[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    bool is_good = true;
    for (int k = 0; k <= N_EDGE && is_good; k++) {
        double s = (double)k / (double)N_EDGE,
               at[4][2] = {{s * n_x, 0}, {s * n_x, n_y}, {0, s * n_y}, {n_x, s * n_y}};
        for (int i = 0; i < 4 && is_good; i++) {
            double x, y, column, row;
            usi_geo_apply(gt, at[i][0], at[i][1], &x, &y);
            is_good = !t || transform(gdal, t, &x, &y);
            usi_geo_apply(base->inverse, x, y, &column, &row);
            box[0] = fmin(box[0], column);
            box[1] = fmax(box[1], column);
            box[2] = fmin(box[2], row);
            box[3] = fmax(box[3], row);
        }
    }
    release(gdal, t);
    memcpy(out_box, box, sizeof box);
    return is_good;
}

// ---------------------------------------------------------------- the plan

static us_status too_many(const char *file, double n_x, double n_y, us_error *err) {
    us_place place = {.file = file};
    return us_error_set(
        err, US_ERR_LIMIT, &place,
        "cut out the part that is needed: gdal_translate -projwin WEST NORTH EAST SOUTH IN.tif OUT.tif",
        "%.0f x %.0f samples are more than a site can have", n_x, n_y);
}

// Makes the local projection about the middle of a base, and the transformations to it and back.
static us_status make_local(const usi_gdal *gdal, const usi_base *base, const char *file, mapping *m,
                            usi_frame *f, us_error *err) {
    us_place place = {.file = file};
    double x, y;
    m->factor = 1;
    usi_geo_apply(base->gt, 0.5 * (base->west + base->east), 0.5 * (base->north + base->south), &x, &y);
    m->longitude = x;
    if (!find_degrees(gdal, base->srs, &x, &y))
        return us_error_set(err, US_ERR_VALUE, &place,
                            "leave out --local, or say by --reference where it lies",
                            "its middle has no longitude and latitude: there is no local frame about it");
    // A millionth of a degree is a decimetre: short numbers in the name, and the middle of the samples is
    // where origin says.
    f->srs = local_srs(gdal, base->srs, round(y * 1e6) / 1e6, round((x - 360 * round(x / 360)) * 1e6) / 1e6);
    m->there = between(gdal, base->srs, f->srs);
    m->back = between(gdal, f->srs, base->srs);
    if (m->there && m->back) return US_OK;
    release(gdal, m->there);
    release(gdal, m->back);
    return us_error_set(err, US_ERR_VALUE, &place, "say by --reference what its reference system is",
                        "a local frame cannot be made from its reference system");
}

// Makes an upright frame in metres for a base that is not one.
static us_status make_upright(const usi_gdal *gdal, const usi_base *base, bool is_local, const char *file,
                              usi_frame *f, us_error *err) {
    us_place place = {.file = file};
    mapping m = {.gdal = gdal, .base = base, .factor = base->unit};
    double column = 0.5 * (base->west + base->east), row = 0.5 * (base->north + base->south), box[4];
    us_status status = base->is_degrees || is_local ? make_local(gdal, base, file, &m, f, err) : US_OK;
    if (status) return status;

    // Spacing: one sample to the right and one down, at the middle.
    double at[3][2];
    bool is_good = to_frame(&m, column, row, &at[0][0], &at[0][1]) &&
                   to_frame(&m, column + 1, row, &at[1][0], &at[1][1]) &&
                   to_frame(&m, column, row + 1, &at[2][0], &at[2][1]) && find_rectangle(&m, box);
    release(gdal, m.there);
    release(gdal, m.back);
    if (!is_good)
        return us_error_set(
            err, US_ERR_VALUE, &place,
            "cut out the part that is needed: gdal_translate -projwin WEST NORTH EAST SOUTH IN.tif OUT.tif",
            "part of it lies where its projection has no place");
    f->dx = hypot(at[1][0] - at[0][0], at[1][1] - at[0][1]);
    f->dy = hypot(at[2][0] - at[0][0], at[2][1] - at[0][1]);
    // Rotated, columns run neither along x nor along y: the finer of the two both ways.
    if (fabs(at[1][1] - at[0][1]) > 0.1 * f->dx) f->dx = f->dy = fmin(f->dx, f->dy);
    double radius = base->srs && !gdal->OSRIsLocal(base->srs) ? gdal->OSRGetSemiMajor(base->srs, NULL) : 0;
    if ((base->is_degrees || is_local) && radius > 0 &&
        hypot(box[1] - box[0], box[3] - box[2]) > 2 * MAX_LOCAL * radius)
        return us_error_set(
            err, US_ERR_LIMIT, &place,
            "cut out the part that is needed: gdal_translate -projwin WEST NORTH EAST SOUTH IN.tif OUT.tif",
            "it is %.0f km wide: too much for a local frame, whose edges would be off by more than half a "
            "percent",
            hypot(box[1] - box[0], box[3] - box[2]) / 1000);

    // Samples.
    double n_x = floor((box[1] - box[0]) / f->dx + ROUNDING) + 1,
           n_y = floor((box[3] - box[2]) / f->dy + ROUNDING) + 1;
    if (!(n_x < INT32_MAX) || !(n_y < INT32_MAX)) return too_many(file, n_x, n_y, err);
    f->n_x = (int32_t)n_x;
    f->n_y = (int32_t)n_y;
    f->x = 0.5 * (box[0] + box[1]);
    f->y = 0.5 * (box[2] + box[3]);
    if (f->n_x < 2 || f->n_y < 2)
        return us_error_set(err, US_ERR_VALUE, &place, "use a raster with more samples",
                            "upright, %d x %d samples of it remain: they span no surface", (int)f->n_x,
                            (int)f->n_y);
    return US_OK;
}

us_status usi_frame_plan(const usi_gdal *gdal, const usi_base *base, bool is_local, const char *file,
                         usi_frame *out_frame, bool *out_is_same, us_error *err) {
    usi_frame f = {0};
    const double *gt = base->gt;
    us_status status = US_OK;
    *out_is_same = !base->is_degrees && !is_local && gt[2] == 0 && gt[4] == 0 && gt[1] > 0 && gt[5] < 0;
    if (!base->is_degrees && !is_local && base->srs) {
        f.srs = gdal->OSRClone(base->srs);
        if (f.srs && base->unit != 1) gdal->OSRSetLinearUnitsAndUpdateParameters(f.srs, "metre", 1);
    }
    if (*out_is_same) {
        double n_x = base->east - base->west, n_y = base->south - base->north;
        if (!(n_x < INT32_MAX) || !(n_y < INT32_MAX)) status = too_many(file, n_x, n_y, err);
        if (!status) {
            f.n_x = (int32_t)n_x;
            f.n_y = (int32_t)n_y;
        }
        f.dx = gt[1] * base->unit;
        f.dy = -gt[5] * base->unit;
        f.x = (gt[0] + 0.5 * (base->west + base->east) * gt[1]) * base->unit;
        f.y = (gt[3] + 0.5 * (base->north + base->south) * gt[5]) * base->unit;
    } else {
        status = make_upright(gdal, base, is_local, file, &f, err);
    }
    if (status && f.srs) gdal->OSRDestroySpatialReference(f.srs);
    if (!status) *out_frame = f;
    return status;
}
