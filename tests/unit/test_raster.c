// Rasters: where samples come to lie, what they are worth in metres, and how files become one.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "raster_make.h"
#include "terrain/raster.h"

static const double DEGREE = 0.0174532925199432958;

static us_raster_def of(const char *const *files, int32_t n) {
    us_raster_def def = us_raster_def_default();
    def.file = files;
    def.n_file = n;
    return def;
}

static usi_raster *open_raster(const us_raster_def *def) {
    usi_raster *r = NULL;
    us_error err = {0};
    if (usi_raster_open(def, US_LAYER_NUMBER, NULL, &r, &err)) fail_msg("%s: %s", err.file, err.message);
    return r;
}

static double sample(usi_raster *r, int32_t i, int32_t j) {
    double z = 0;
    us_error err = {0};
    if (usi_raster_read(r, i, j, 1, 1, &z, &err)) fail_msg("%s: %s", err.file, err.message);
    return z;
}

static double frame_x(const usi_frame *f, int32_t i) { return f->x + (i - 0.5 * (f->n_x - 1)) * f->dx; }
static double frame_y(const usi_frame *f, int32_t j) { return f->y + (j - 0.5 * (f->n_y - 1)) * f->dy; }

static double counted(int band, int column, int row, double x, double y) {
    (void)x;
    (void)y;
    return 100 * band + column + 0.01 * row;
}

static double sloped(int band, int column, int row, double x, double y) {
    (void)band;
    (void)column;
    (void)row;
    return 0.25 * (x - 500000) - 0.5 * (y - 4000000);
}

// ---------------------------------------------------------------- places

static void a_map_in_metres_keeps_every_sample_as_it_is(void **state) {
    (void)state;
    // Coordinates of eight digits and pixels of a decimetre, not square.
    make_raster(&(raster_make){.path = "map.tif",
                               .n_x = 21,
                               .n_y = 11,
                               .gt = {12345678.25, 0.125, 0, -9876543.5, 0, -0.25},
                               .srs = "EPSG:32610",
                               .value = counted});
    const char *file = "map.tif";
    us_raster_def def = of(&file, 1);
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    assert_int_equal(f->n_x, 21);
    assert_int_equal(f->n_y, 11);
    // All of these are short in binary: exact.
    assert_true(f->dx == 0.125 && f->dy == 0.25);
    assert_true(f->x == 12345678.25 + 0.5 * 21 * 0.125 && f->y == -9876543.5 - 0.5 * 11 * 0.25);
    for (int32_t j = 0; j < 11; j++) {
        for (int32_t i = 0; i < 21; i++)
            assert_true(sample(r, i, j) == counted(1, i, 10 - j, 0, 0));
    }
    assert_false(usi_raster_info(r)->is_resampled);
    assert_string_equal(usi_raster_info(r)->reference, "WGS 84 / UTM zone 10N");
    usi_raster_close(r);
}

static double of_degrees(int band, int column, int row, double x, double y) {
    (void)band;
    (void)column;
    (void)row;
    return 1000 * (x - 7.25) + 3000 * (y - 47.5);
}

// A height that grows evenly with the longitude and latitude grows with x and y as a degree is long there.
static void check_degrees(const char *file, double latitude, double longitude, double a, double e2,
                          double per_longitude, double per_latitude) {
    us_raster_def def = of(&file, 1);
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    us_error err = {0};
    assert_int_equal(usi_raster_scan(r, NULL, NULL, NULL, &err), US_OK);
    const us_raster_info *info = usi_raster_info(r);
    assert_int_equal(info->n_gap, 0);
    assert_true(info->is_resampled);
    assert_true(fabs(info->latitude - latitude) < 1e-3);
    assert_true(fabs(info->longitude - longitude) < 1e-3);
    assert_true(fabs(info->stretch_x - 1) < 1e-6 && fabs(info->stretch_y - 1) < 1e-6);
    // The radii of curvature of an ellipsoid, along the meridian and across it.
    double s = sin(info->latitude * DEGREE), w = sqrt(1 - e2 * s * s), meridian = a * (1 - e2) / (w * w * w),
           across = a / w;
    // About the very middle: half a sample beside it a degree of longitude is longer or shorter by more than
    // is allowed here.
    int32_t i0 = (f->n_x - 1) / 2, i1 = f->n_x / 2, j0 = (f->n_y - 1) / 2, j1 = f->n_y / 2;
    double east =
        (sample(r, i1 + 2, j0) + sample(r, i1 + 2, j1) - sample(r, i0 - 2, j0) - sample(r, i0 - 2, j1)) /
        (2 * (i1 - i0 + 4) * f->dx);
    double north =
        (sample(r, i0, j1 + 2) + sample(r, i1, j1 + 2) - sample(r, i0, j0 - 2) - sample(r, i1, j0 - 2)) /
        (2 * (j1 - j0 + 4) * f->dy);
    // Central differences over a hundred metres: their own error is below 1e-8; a millionth is what is
    // promised.
    assert_true(fabs(east * across * cos(info->latitude * DEGREE) * DEGREE / per_longitude - 1) < 1e-6);
    assert_true(fabs(north * meridian * DEGREE / per_latitude - 1) < 1e-6);
    usi_raster_close(r);
}

static void degrees_become_metres_in_a_local_frame(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "degrees.tif",
                               .n_x = 201,
                               .n_y = 161,
                               .gt = {7.25 - 100.5e-4, 1e-4, 0, 47.5 + 80.5e-4, 0, -1e-4},
                               .srs = "EPSG:4326",
                               .value = of_degrees});
    check_degrees("degrees.tif", 47.5, 7.25, 6378137, 0.00669437999014, 1000, 3000);
}

static double of_moon(int band, int column, int row, double x, double y) {
    (void)band;
    (void)column;
    (void)row;
    return 1000 * (x - 200) + 3000 * (y + 20);
}

static void other_bodies_have_their_own_size_and_longitudes_beyond_180(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "moon.tif",
                               .n_x = 101,
                               .n_y = 101,
                               .gt = {200 - 50.5e-3, 1e-3, 0, -20 + 50.5e-3, 0, -1e-3},
                               .srs = "+proj=longlat +R=1737400 +no_defs",
                               .value = of_moon});
    check_degrees("moon.tif", -20, -160, 1737400, 0, 1000, 3000);
    make_raster(&(raster_make){.path = "mars.tif",
                               .n_x = 101,
                               .n_y = 101,
                               .gt = {200 - 50.5e-3, 1e-3, 0, -20 + 50.5e-3, 0, -1e-3},
                               .srs = "+proj=longlat +a=3396190 +b=3376200 +no_defs",
                               .value = of_moon});
    check_degrees("mars.tif", -20, -160, 3396190, 1 - (3376200.0 / 3396190) * (3376200.0 / 3396190), 1000,
                  3000);
}

// Samples of a plane: whatever the way they were laid, each has the height of its place.
static void check_plane(const us_raster_def *def, double tolerance) {
    usi_raster *r = open_raster(def);
    const usi_frame *f = usi_raster_frame(r);
    us_error err = {0};
    assert_int_equal(usi_raster_scan(r, NULL, NULL, NULL, &err), US_OK);
    assert_int_equal(usi_raster_info(r)->n_gap, 0);
    for (int32_t j = 0; j < f->n_y; j += 3) {
        for (int32_t i = 0; i < f->n_x; i += 3) {
            double z = sample(r, i, j), wanted = sloped(1, 0, 0, frame_x(f, i), frame_y(f, j));
            if (!(fabs(z - wanted) < tolerance))
                fail_msg("(%d, %d): %.9g is not %.9g", (int)i, (int)j, z, wanted);
        }
    }
    usi_raster_close(r);
}

static void a_turned_raster_is_laid_upright_inside_its_outline(void **state) {
    (void)state;
    double c = cos(0.4), s = sin(0.4);
    make_raster(&(raster_make){.path = "turned.tif",
                               .n_x = 80,
                               .n_y = 60,
                               .gt = {500000, 2 * c, 2 * s, 4000000, 2 * s, -2 * c},
                               .srs = "EPSG:32610",
                               .value = sloped});
    const char *file = "turned.tif";
    us_raster_def def = of(&file, 1);
    check_plane(&def, 1e-6);  // bilinear is exact on a plane; coordinates of 4e6 m are rounded to 1e-9
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    assert_true(usi_raster_info(r)->is_resampled);
    // Of 160 m x 120 m, turned by 23 degrees, more than half the side remains each way.
    assert_true(f->n_x * f->dx > 60 && f->n_y * f->dy > 60 && f->dx == f->dy);
    usi_raster_close(r);
}

static void a_raster_from_south_to_north_is_turned_round(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "upside.tif",
                               .n_x = 30,
                               .n_y = 20,
                               .gt = {500000, 2, 0, 4000000, 0, 3},
                               .srs = "EPSG:32610",
                               .value = sloped});
    const char *file = "upside.tif";
    us_raster_def def = of(&file, 1);
    check_plane(&def, 1e-6);
    usi_raster *r = open_raster(&def);
    // The same samples: the first and the last lie where those of the file do.
    assert_int_equal(usi_raster_frame(r)->n_x, 30);
    assert_int_equal(usi_raster_frame(r)->n_y, 20);
    assert_true(fabs(usi_raster_frame(r)->dy - 3) < 1e-9);
    usi_raster_close(r);
}

static void a_map_in_feet_becomes_the_same_map_in_metres(void **state) {
    (void)state;
    const double foot = 1200.0 / 3937;
    make_raster(&(raster_make){.path = "feet.tif",
                               .n_x = 40,
                               .n_y = 30,
                               .gt = {6000000, 10, 0, 2100000, 0, -10},
                               .srs = "EPSG:2227",
                               .value = counted});
    const char *file = "feet.tif";
    us_raster_def def = of(&file, 1);
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    const us_raster_info *info = usi_raster_info(r);
    assert_false(info->is_resampled);
    assert_true(fabs(f->dx - 10 * foot) < 1e-12);
    assert_true(fabs(f->x - 6000200 * foot) < 1e-8);
    // Where the file itself says that its middle lies.
    OGRSpatialReferenceH feet = OSRNewSpatialReference(NULL), degrees = NULL;
    assert_int_equal(OSRSetFromUserInput(feet, "EPSG:2227"), OGRERR_NONE);
    OSRSetAxisMappingStrategy(feet, OAMS_TRADITIONAL_GIS_ORDER);
    degrees = OSRCloneGeogCS(feet);
    OSRSetAxisMappingStrategy(degrees, OAMS_TRADITIONAL_GIS_ORDER);
    OGRCoordinateTransformationH t = OCTNewCoordinateTransformation(feet, degrees);
    double x = 6000200, y = 2099850;
    assert_true(OCTTransform(t, 1, &x, &y, NULL));
    assert_true(fabs(info->longitude - x) < 1e-10 && fabs(info->latitude - y) < 1e-10);
    OCTDestroyCoordinateTransformation(t);
    OSRDestroySpatialReference(feet);
    OSRDestroySpatialReference(degrees);
    usi_raster_close(r);
}

static void a_projection_that_stretches_is_told_and_undone_by_a_local_frame(void **state) {
    (void)state;
    // Web Mercator at 60 degrees north: one true metre is two.
    make_raster(&(raster_make){.path = "web.tif",
                               .n_x = 50,
                               .n_y = 50,
                               .gt = {1000000, 10, 0, 8399738, 0, -10},
                               .srs = "EPSG:3857",
                               .value = counted});
    const char *file = "web.tif";
    us_raster_def def = of(&file, 1);
    usi_raster *r = open_raster(&def);
    assert_true(fabs(usi_raster_info(r)->stretch_x - 2) < 0.01);
    assert_true(usi_raster_frame(r)->dx == 10);
    usi_raster_close(r);
    def.is_local = true;
    r = open_raster(&def);
    assert_true(fabs(usi_raster_info(r)->stretch_x - 1) < 1e-6);
    assert_true(fabs(usi_raster_frame(r)->dx - 5) < 0.05);
    usi_raster_close(r);
}

// ---------------------------------------------------------------- heights

static double worth(const raster_make *m, const char *unit) {
    make_raster(m);
    us_raster_def def = of(&m->path, 1);
    def.unit = unit;
    usi_raster *r = open_raster(&def);
    double z = sample(r, 3, 0);
    usi_raster_close(r);
    return z;
}

static void heights_are_in_metres_whatever_the_unit(void **state) {
    (void)state;
    raster_make m = {.path = "unit.tif",
                     .n_x = 5,
                     .n_y = 4,
                     .gt = {0, 1, 0, 0, 0, -1},
                     .srs = "EPSG:32610",
                     .value = counted};
    double value = counted(1, 3, 3, 0, 0);
    assert_true(worth(&m, NULL) == value);
    m.unit = "ft";
    assert_true(worth(&m, NULL) == value * 0.3048);
    assert_true(worth(&m, "m") == value);  // the caller knows better
    m.unit = "US survey foot";
    assert_true(worth(&m, NULL) == value * (1200.0 / 3937));
    m.unit = "km";
    assert_true(worth(&m, NULL) == value * 1000);
    m.unit = NULL;
    assert_true(worth(&m, "0.1") == value * 0.1);
    m.scale = 0.5;
    m.offset = 10;
    m.unit = "ft";
    assert_true(fabs(worth(&m, NULL) - (0.5 * value + 10) * 0.3048) < 1e-12);
    // The vertical part of a compound reference system: NAVD88 in US feet.
    m = (raster_make){.path = "compound.tif",
                      .n_x = 5,
                      .n_y = 4,
                      .gt = {0, 1, 0, 0, 0, -1},
                      .srs = "EPSG:26910+6360",
                      .value = counted};
    assert_true(fabs(worth(&m, NULL) - value * (1200.0 / 3937)) < 1e-9);
}

static double small(int band, int column, int row, double x, double y) {
    (void)x;
    (void)y;
    return band + column % 7 + row % 5;
}

static void every_type_of_number_is_read(void **state) {
    (void)state;
    static const GDALDataType types[] = {GDT_Byte,  GDT_UInt16,  GDT_Int16,  GDT_UInt32,
                                         GDT_Int32, GDT_Float32, GDT_Float64};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        make_raster(&(raster_make){.path = "type.tif",
                                   .n_x = 9,
                                   .n_y = 7,
                                   .type = types[k],
                                   .gt = {0, 1, 0, 0, 0, -1},
                                   .srs = "EPSG:32610",
                                   .value = small});
        const char *file = "type.tif";
        us_raster_def def = of(&file, 1);
        usi_raster *r = open_raster(&def);
        for (int32_t i = 0; i < 9; i++)
            assert_true(sample(r, i, 2) == small(1, i, 4, 0, 0));
        assert_string_equal(usi_raster_info(r)->type, GDALGetDataTypeName(types[k]));
        usi_raster_close(r);
    }
}

static double holed(int band, int column, int row, double x, double y) {
    (void)band;
    if (column == 3 && row == 2) return NAN;
    if (column > 5 && row > 4) return -32767;
    return sloped(1, 0, 0, x, y);
}

static void gaps_are_nodata_and_what_is_not_a_number(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "gaps.tif",
                               .n_x = 10,
                               .n_y = 8,
                               .type = GDT_Float32,
                               .gt = {500000, 1, 0, 4000000, 0, -1},
                               .srs = "EPSG:32610",
                               .has_nodata = true,
                               .nodata = -32767,
                               .value = holed});
    const char *file = "gaps.tif";
    us_raster_def def = of(&file, 1);
    usi_raster *r = open_raster(&def);
    us_error err = {0};
    int32_t first[2] = {-1, -1};
    assert_int_equal(usi_raster_scan(r, NULL, NULL, first, &err), US_OK);
    assert_int_equal(usi_raster_info(r)->n_gap, 1 + 4 * 3);
    assert_int_equal(first[0], 6);
    assert_int_equal(first[1], 0);
    assert_true(isnan(sample(r, 3, 5)) && isnan(sample(r, 9, 2)) && isfinite(sample(r, 5, 0)));
    // The extremes are those of what is there: the plane's north-west and south-east corners, but for the
    // gap.
    assert_true(usi_raster_info(r)->low > -10 && usi_raster_info(r)->high < 10);
    usi_raster_close(r);
}

static double margin(int band, int column, int row, double x, double y) {
    (void)band;
    (void)x;
    (void)y;
    return column == 0 || row == 0 ? 0 : 50 + column;
}

static void a_number_that_means_a_gap_can_be_said(void **state) {
    (void)state;
    static const char *const files[] = {"margin.tif", "margin_degrees.tif"};
    make_raster(&(raster_make){.path = files[0],
                               .n_x = 12,
                               .n_y = 9,
                               .gt = {500000, 1, 0, 4000000, 0, -1},
                               .srs = "EPSG:32610",
                               .unit = "ft",
                               .value = margin});
    make_raster(&(raster_make){.path = files[1],
                               .n_x = 12,
                               .n_y = 9,
                               .gt = {7, 1e-4, 0, 47, 0, -1e-4},
                               .srs = "EPSG:4326",
                               .unit = "ft",
                               .value = margin});
    const double zero = 0;
    for (int k = 0; k < 2; k++) {
        us_raster_def def = of(&files[k], 1);
        us_raster_info info;
        us_error err = {0};
        assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_OK);
        assert_true(info.n_gap == 0 && info.low < 10);
        def.nodata = &zero;
        assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_OK);
        assert_true(info.n_gap > 0 && info.low > 51 * 0.3048 - 1e-9);
        if (k == 0) assert_int_equal(info.n_gap, 12 + 8);
    }
}

// A ramp from -100 to 120 with a corner that is not there: its samples would be -128, far from the ramp.
static bool is_in_corner(int column, int row) { return column < 6 && row < 5; }
static double ramp(int band, int column, int row, double x, double y) {
    (void)x;
    (void)y;
    const bool is_gap = is_in_corner(column, row);
    if (band != 1) return is_gap ? 0 : 255;
    return is_gap ? -128 : -100 + 5 * column + 4 * row;
}
static double whole_ramp(int band, int column, int row, double x, double y) {
    (void)band;
    return column + row < 0 ? 0 : 5.0 * column + 4.0 * row - 100 + 0 * (x + y);
}

// Opens one file, and compares what is there with the ramp: on its own grid exactly; resampled to within the
// two samples by which the frame's margins may differ, 10 m, where a mean with the corner would be 25 m off.
// Returns the number of gaps.
static int64_t check_ramp(const char *file, const us_raster_def *settings, bool is_resampled) {
    us_raster_def def = *settings;
    def.file = &file;
    def.n_file = 1;
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    us_error err = {0};
    assert_int_equal(usi_raster_scan(r, NULL, NULL, NULL, &err), US_OK);
    const us_raster_info *info = usi_raster_info(r);
    assert_int_equal(info->is_resampled, is_resampled);
    // Nothing between the ramp and what its corner has: a gap takes no part in any mean.
    assert_true(info->low > -85 && info->high < 125);
    for (int32_t j = 0; j < f->n_y; j++) {
        for (int32_t i = 0; i < f->n_x; i++) {
            double z = sample(r, i, j), a = (i + 0.5) * 30 / f->n_x - 0.5, b = 20 - (j + 0.5) * 20 / f->n_y;
            double truth = -100 + 5 * a + 4 * (b - 0.5);
            if (isfinite(z) && !is_resampled) assert_true(z == truth);
            if (isfinite(z) && is_resampled) assert_true(fabs(z - truth) < 10);
            const bool is_gap = a < 4 && b<3.5, is_there = a> 6 || b > 6;
            if (is_gap) assert_true(isnan(z));
            if (is_there && !is_resampled) assert_true(isfinite(z));
        }
    }
    int64_t n = info->n_gap;
    usi_raster_close(r);
    return n;
}

static void bytes_with_a_sign_are_numbers_below_zero_too(void **state) {
    (void)state;
    raster_make m = {.path = "signed.tif",
                     .n_x = 30,
                     .n_y = 20,
                     .is_signed_byte = true,
                     .gt = {500000, 1, 0, 4000000, 0, -1},
                     .srs = "EPSG:32610",
                     .value = whole_ramp};
    make_raster(&m);
    const char *file = m.path;
    us_raster_def def = of(&file, 1);
    us_raster_info info;
    us_error err = {0};
    assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_OK);
    assert_string_equal(info.type, "Int8");
    assert_true(info.low == -100 && info.high == 5 * 29 + 4 * 19 - 100 && info.n_gap == 0);

    m.value = ramp;
    m.has_nodata = true;
    m.nodata = -128;
    make_raster(&m);
    assert_int_equal(check_ramp(file, &def, false), 30);
    // In degrees it is resampled: what is between 0 and -1 is between 0 and -1, not between 0 and 255.
    m.srs = "EPSG:4326";
    m.gt[0] = 7;
    m.gt[3] = 47;
    m.gt[1] = 1e-4;
    m.gt[5] = -1e-4;
    make_raster(&m);
    assert_true(check_ramp(file, &def, true) > 0);
    // Without the file's own, the number can be said.
    m.has_nodata = false;
    make_raster(&m);
    const double gap = -128;
    def.nodata = &gap;
    assert_true(check_ramp(file, &def, true) > 0);
    // Regions have no sign.
    usi_raster *r = NULL;
    assert_int_equal(usi_raster_open(&def, US_LAYER_REGION, NULL, &r, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "these are Int8"));
}

static void alpha_and_masks_are_gaps_resampled_or_not(void **state) {
    (void)state;
    static const GDALDataType types[] = {GDT_Int16, GDT_Float32};
    const char *file = "alpha.tif", *files[] = {"alpha.tif", "beside.tif"};
    us_raster_def def = of(&file, 1);
    // By alpha; by a mask; by alpha, with a number that means a gap beside it, which no sample has.
    for (int k = 0; k < 12; k++) {
        const bool is_geographic = k % 2, has_mask = k / 4 == 1;
        raster_make m = {.path = file,
                         .n_x = 30,
                         .n_y = 20,
                         .n_band = has_mask ? 1 : 2,
                         .type = types[k / 2 % 2],
                         .gt = {500000, 1, 0, 4000000, 0, -1},
                         .srs = "EPSG:32610",
                         .has_alpha = !has_mask,
                         .has_mask = has_mask,
                         .has_nodata = k / 4 == 2,
                         .nodata = -9999,
                         .value = ramp};
        if (is_geographic) {
            m.srs = "EPSG:4326";
            const double degrees[6] = {7, 1e-4, 0, 47, 0, -1e-4};
            memcpy(m.gt, degrees, sizeof m.gt);
        }
        make_raster(&m);
        int64_t n = check_ramp(file, &def, is_geographic);
        if (!is_geographic) assert_int_equal(n, 30);

        // A second file goes on to the east: the corner is missing still, and nothing else is.
        m.path = files[1];
        m.gt[0] += 30 * m.gt[1];
        m.n_band = 1;
        m.has_alpha = m.has_mask = false;
        m.value = whole_ramp;
        make_raster(&m);
        us_raster_def both = of(files, 2);
        us_raster_info info;
        us_error err = {0};
        assert_int_equal(us_raster_find_info(&both, NULL, NULL, &info, &err), US_OK);
        assert_true(info.low >= -100 && info.n_gap > 0);
        if (!is_geographic) assert_int_equal(info.n_gap, 30);
    }
}

// ---------------------------------------------------------------- many files

static double thousand(int band, int column, int row, double x, double y) {
    return 1000 + counted(band, column, row, x, y);
}

static void of_several_files_the_first_wins(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "left.tif",
                               .n_x = 10,
                               .n_y = 10,
                               .gt = {500000, 2, 0, 4000000, 0, -2},
                               .srs = "EPSG:32610",
                               .value = counted});
    // Six columns further east and four rows further north.
    make_raster(&(raster_make){.path = "right.tif",
                               .n_x = 10,
                               .n_y = 10,
                               .gt = {500012, 2, 0, 4000008, 0, -2},
                               .srs = "EPSG:32610",
                               .value = thousand});
    const char *files[] = {"left.tif", "right.tif"}, *other[] = {"right.tif", "left.tif"};
    us_raster_def def = of(files, 2);
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    assert_int_equal(f->n_x, 16);
    assert_int_equal(f->n_y, 14);
    assert_true(f->x == 500016 && f->y == 3999994);
    assert_true(sample(r, 8, 9) == counted(1, 8, 0, 0, 0));           // both
    assert_true(sample(r, 12, 9) == 1000 + counted(1, 6, 4, 0, 0));   // the second alone
    assert_true(isnan(sample(r, 0, 13)) && isnan(sample(r, 15, 0)));  // neither
    us_error err = {0};
    assert_int_equal(usi_raster_scan(r, NULL, NULL, NULL, &err), US_OK);
    assert_int_equal(usi_raster_info(r)->n_gap, 16 * 14 - 200 + 4 * 6);
    usi_raster_close(r);
    def.file = other;
    r = open_raster(&def);
    assert_true(sample(r, 8, 9) == 1000 + counted(1, 2, 4, 0, 0));
    usi_raster_close(r);
}

static void files_between_samples_and_in_other_projections_are_resampled(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "a.tif",
                               .n_x = 20,
                               .n_y = 20,
                               .gt = {500000, 2, 0, 4000000, 0, -2},
                               .srs = "EPSG:32610",
                               .value = sloped});
    // Half as fine, not on the same grid, and over the whole of what both need.
    make_raster(&(raster_make){.path = "b.tif",
                               .n_x = 40,
                               .n_y = 12,
                               .gt = {500030.7, 1, 0, 4000000, 0, -3.5},
                               .srs = "EPSG:32610",
                               .value = sloped});
    const char *files[] = {"a.tif", "b.tif"};
    us_raster_def def = of(files, 2);
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    assert_true(f->dx == 2 && f->n_x == 36);
    int32_t j = f->n_y / 2;
    for (int32_t i = 0; i < f->n_x - 1; i++)
        assert_true(fabs(sample(r, i, j) - sloped(1, 0, 0, frame_x(f, i), frame_y(f, j))) < 1e-6);
    usi_raster_close(r);
    // The same ground in the neighbouring zone of UTM: its file has the heights of the first one's
    // coordinates.
    OGRSpatialReferenceH near = OSRNewSpatialReference(NULL), far = OSRNewSpatialReference(NULL);
    assert_int_equal(OSRSetFromUserInput(near, "EPSG:32610"), OGRERR_NONE);
    assert_int_equal(OSRSetFromUserInput(far, "EPSG:32611"), OGRERR_NONE);
    OGRCoordinateTransformationH t = OCTNewCoordinateTransformation(near, far);
    double x = 500080, y = 3999980;
    assert_true(OCTTransform(t, 1, &x, &y, NULL));
    OCTDestroyCoordinateTransformation(t);
    OSRDestroySpatialReference(near);
    OSRDestroySpatialReference(far);
    make_raster(&(raster_make){.path = "c.tif",
                               .n_x = 60,
                               .n_y = 60,
                               .gt = {x - 60, 2, 0, y + 60, 0, -2},
                               .srs = "EPSG:32611",
                               .value = thousand});
    const char *zones[] = {"a.tif", "c.tif"};
    def.file = zones;
    r = open_raster(&def);
    f = usi_raster_frame(r);
    int32_t i = (int32_t)round((500080 - frame_x(f, 0)) / f->dx);
    j = (int32_t)round((3999980 - frame_y(f, 0)) / f->dy);
    // The middle of the second file: between its columns 29 and 30 and rows 29 and 30, within a sample's
    // half.
    assert_true(fabs(sample(r, i, j) - (1100 + 29.5 + 0.01 * 29.5)) < 1.1);
    assert_true(sample(r, 5, (int32_t)round((4000000 - 1 - frame_y(f, 0)) / f->dy)) <
                900);  // the first file's
    usi_raster_close(r);
}

static void tiles_of_degrees_are_joined_before_they_are_resampled(void **state) {
    (void)state;
    // Three that touch but do not overlap; they differ in type and nodata.
    static const char *const files[] = {"tile0.tif", "tile1.tif", "tile2.tif"};
    for (int k = 0; k < 3; k++)
        make_raster(&(raster_make){.path = files[k],
                                   .n_x = 40,
                                   .n_y = 60,
                                   .type = k == 1 ? GDT_Float32 : GDT_Float64,
                                   .gt = {7.25 + (k - 1.5) * 40e-4, 1e-4, 0, 47.5 + 30e-4, 0, -1e-4},
                                   .srs = "EPSG:4326",
                                   .has_nodata = k != 0,
                                   .nodata = -9999 - k,
                                   .value = of_degrees});
    us_raster_def def = of(files, 3);
    usi_raster *r = open_raster(&def);
    const usi_frame *f = usi_raster_frame(r);
    us_error err = {0};
    assert_int_equal(usi_raster_scan(r, NULL, NULL, NULL, &err), US_OK);
    assert_int_equal(usi_raster_info(r)->n_gap, 0);
    assert_true(f->n_x > 115 && f->n_y > 55);
    // The ground rises evenly from west to east, over both seams, 0.1 m in each sample; a parallel bends away
    // from y = const by 2e-4 of that. Without joining a seam has a step of half as much.
    int32_t j = f->n_y / 2;
    double step = (sample(r, f->n_x - 2, j) - sample(r, 1, j)) / (f->n_x - 3);
    assert_true(fabs(step - 0.1) < 1e-3);
    for (int32_t i = 1; i < f->n_x - 2; i++)
        assert_true(fabs(sample(r, i + 1, j) - sample(r, i, j) - step) < 1e-3 * step);
    usi_raster_close(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_in_metres_keeps_every_sample_as_it_is),
        cmocka_unit_test(degrees_become_metres_in_a_local_frame),
        cmocka_unit_test(other_bodies_have_their_own_size_and_longitudes_beyond_180),
        cmocka_unit_test(a_turned_raster_is_laid_upright_inside_its_outline),
        cmocka_unit_test(a_raster_from_south_to_north_is_turned_round),
        cmocka_unit_test(a_map_in_feet_becomes_the_same_map_in_metres),
        cmocka_unit_test(a_projection_that_stretches_is_told_and_undone_by_a_local_frame),
        cmocka_unit_test(heights_are_in_metres_whatever_the_unit),
        cmocka_unit_test(every_type_of_number_is_read),
        cmocka_unit_test(gaps_are_nodata_and_what_is_not_a_number),
        cmocka_unit_test(a_number_that_means_a_gap_can_be_said),
        cmocka_unit_test(bytes_with_a_sign_are_numbers_below_zero_too),
        cmocka_unit_test(alpha_and_masks_are_gaps_resampled_or_not),
        cmocka_unit_test(of_several_files_the_first_wins),
        cmocka_unit_test(tiles_of_degrees_are_joined_before_they_are_resampled),
        cmocka_unit_test(files_between_samples_and_in_other_projections_are_resampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
