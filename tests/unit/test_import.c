// Sites made of rasters: what they hold, what is filled, and what is refused with which words.
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator.h"
#include "raster_make.h"
#include "understudy/raster.h"
#include "understudy/spec.h"

enum { N_X = 300, N_Y = 270 };

static int remove_one(const char *path, const struct stat *about, int flag, struct FTW *where) {
    (void)about;
    (void)flag;
    (void)where;
    return remove(path);
}

// A directory that is not there yet.
static const char *fresh(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s.site", name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(access(path, F_OK), -1);
    return path;
}

static us_site *import_site(const us_site_import_def *def, const char *path, us_raster_info *out_info) {
    us_error err = {0};
    us_site *site = NULL;
    if (us_site_import(def, path, out_info, &err)) fail_msg("%s: %s", err.file, err.message);
    if (us_site_open(path, NULL, &site, &err)) fail_msg("%s: %s", err.file, err.message);
    return site;
}

static float height_at(const us_site *site, int32_t i, int32_t j) {
    static float tile[US_SITE_TILE * US_SITE_TILE];
    static uint64_t hash;  // of the site that the last tile is of
    static int32_t last_u = -1, last_v = -1;
    int32_t u = i / US_SITE_TILE, v = j / US_SITE_TILE, n_x, n_y;
    us_error err = {0};
    assert_true(us_site_tile_size(site, 0, 0, u, v, &n_x, &n_y));
    if (hash != us_site_get_info(site).hash || u != last_u || v != last_v) {
        if (us_site_read(site, 0, 0, u, v, tile, &err)) fail_msg("%s: %s", err.file, err.message);
        hash = us_site_get_info(site).hash;
        last_u = u;
        last_v = v;
    }
    return tile[(j - v * US_SITE_TILE) * n_x + i - u * US_SITE_TILE];
}

static void byte_at(const us_site *site, const char *layer, int32_t i, int32_t j, size_t each, uint8_t *out) {
    static uint8_t tile[4 * US_SITE_TILE * US_SITE_TILE];
    int32_t l = us_site_find_layer(site, layer), u = i / US_SITE_TILE, v = j / US_SITE_TILE, n_x, n_y;
    us_error err = {0};
    assert_true(l > 0);
    assert_true(us_site_tile_size(site, l, 0, u, v, &n_x, &n_y));
    if (us_site_read(site, l, 0, u, v, tile, &err)) fail_msg("%s: %s", err.file, err.message);
    memcpy(out, tile + each * (size_t)((j - v * US_SITE_TILE) * n_x + i - u * US_SITE_TILE), each);
}

static double hills(int band, int column, int row, double x, double y) {
    (void)band;
    (void)x;
    (void)y;
    return -4455.3 + 20 * sin(0.05 * column) * cos(0.03 * row);
}

static raster_make hilly(const char *path) {
    return (raster_make){.path = path,
                         .n_x = N_X,
                         .n_y = N_Y,
                         .type = GDT_Float32,
                         .gt = {8142406, 0.5, 0, -276455, 0, -0.75},
                         .srs = "EPSG:32610",
                         .value = hills};
}

static us_site_import_def of(const char *const *file) {
    us_site_import_def def = us_site_import_def_default();
    def.height.file = file;
    def.height.n_file = 1;
    return def;
}

// ---------------------------------------------------------------- what a site holds

typedef struct heard {
    double last;
    int n;
    bool is_backward;
} heard;

static void hear(void *context, double share) {
    heard *h = context;
    h->is_backward |= share < h->last;
    h->last = share;
    h->n++;
}

static void a_site_holds_every_height_against_its_origin(void **state) {
    (void)state;
    raster_make m = hilly("hills.tif");
    make_raster(&m);
    const char *file = "hills.tif";
    us_site_import_def def = of(&file);
    heard h = {0};
    def.progress = hear;
    def.context = &h;
    us_raster_info raster;
    us_site *site = import_site(&def, fresh("hills"), &raster);
    assert_true(!h.is_backward && h.last == 1 && h.n > 4);
    us_site_info info = us_site_get_info(site);
    assert_int_equal(info.n_layer, 1);
    assert_int_equal(info.layer[0].n_x, N_X);
    assert_int_equal(info.layer[0].n_y, N_Y);
    assert_true(info.layer[0].dx == 0.5 && info.layer[0].dy == 0.75);
    assert_true(info.origin.x == 8142406 + 75 && info.origin.y == -276455 - 101.25);
    assert_true(info.origin.z == round(0.5 * (raster.low + raster.high)) && info.origin.z == -4455);
    assert_string_equal(info.reference, "WGS 84 / UTM zone 10N");
    assert_non_null(strstr(info.wkt, "UTM zone 10N"));
    assert_int_equal(info.n_gap, 0);
    assert_true(info.layer[0].low == (double)(float)(raster.low - info.origin.z));
    for (int32_t j = 0; j < N_Y; j += 7) {
        for (int32_t i = 0; i < N_X; i += 3)
            assert_true(height_at(site, i, j) ==
                        (float)((double)(float)hills(1, i, N_Y - 1 - j, 0, 0) - info.origin.z));
    }
    us_site_close(site);
    // Again: the same to the bit.
    us_site *again = import_site(&def, fresh("again"), NULL);
    assert_true(us_site_get_info(again).hash == info.hash);
    us_site_close(again);
}

static double plane(int column, int row) { return 0.5 * column - 0.25 * row; }

// A lone gap, gaps of two sizes across the border between two tiles, and a corner.
static bool is_gap(int column, int row) {
    return (column == 40 && row == 50) || (column >= 252 && column < 264 && row >= 100 && row < 120) ||
           (column > 290 && row < 6);
}

static double holed(int band, int column, int row, double x, double y) {
    (void)band;
    (void)x;
    (void)y;
    return is_gap(column, row) ? -9999 : plane(column, row);
}

static void gaps_are_an_error_until_filling_is_asked_for(void **state) {
    (void)state;
    raster_make m = hilly("holes.tif");
    m.has_nodata = true;
    m.nodata = -9999;
    m.value = holed;
    make_raster(&m);
    const char *file = "holes.tif", *path = fresh("holes");
    us_site_import_def def = of(&file);
    us_error err = {0};
    us_raster_info raster;
    assert_int_equal(us_site_import(&def, path, NULL, &err), US_ERR_VALUE);
    assert_string_equal(err.file, "holes.tif");
    assert_non_null(strstr(err.message, "295 of its 81000 samples"));
    assert_non_null(strstr(err.remedy, "--fill"));
    assert_int_equal(access("holes.site/site.json", F_OK), -1);
    def.is_filled = true;
    us_site *site = import_site(&def, path, &raster);
    us_site_info info = us_site_get_info(site);
    assert_int_equal(info.n_gap, 295);
    assert_int_equal(raster.n_gap, 295);
    // What sixteen values all around it say of a plane is the plane, but for rounding to 32 bits.
    assert_true(fabs((double)height_at(site, 40, N_Y - 1 - 50) + info.origin.z - plane(40, 50)) < 1e-5);
    double worst = 0, jump = 0, inside = 0;
    for (int row = 100; row < 120; row++) {
        for (int column = 252; column < 263; column++) {
            double z = (double)height_at(site, column, N_Y - 1 - row) + info.origin.z,
                   east = (double)height_at(site, column + 1, N_Y - 1 - row) + info.origin.z;
            worst = fmax(worst, fabs(z - plane(column, row)));
            double *step = column == US_SITE_TILE - 1 ? &jump : &inside;
            *step = fmax(*step, fabs(east - z));
        }
    }
    // Means of a rim that is 12 x 20 samples wide and rises by 6 + 5: nowhere further off than a quarter of
    // that; and between the two tiles, which do not meet in the gap's middle, where it is steepest, it is
    // less steep than inside one.
    assert_true(worst < 2.75);
    assert_true(jump > 0 && jump < inside);
    us_site_close(site);
}

static double far_off(int band, int column, int row, double x, double y) {
    (void)band;
    (void)row;
    (void)x;
    (void)y;
    return column == 0 ? 1 : -9999;
}

static void a_gap_too_far_from_any_value_is_not_made_up(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "far.tif",
                               .n_x = 600,
                               .n_y = 3,
                               .gt = {0, 1, 0, 0, 0, -1},
                               .srs = "EPSG:32610",
                               .has_nodata = true,
                               .nodata = -9999,
                               .value = far_off});
    const char *file = "far.tif";
    us_site_import_def def = of(&file);
    def.is_filled = true;
    us_error err = {0};
    assert_int_equal(us_site_import(&def, fresh("far"), NULL, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "512"));
    assert_int_equal(access("far.site/site.json", F_OK), -1);
}

// ---------------------------------------------------------------- photographs and masks

static double quarters(int band, int column, int row, double x, double y) {
    (void)column;
    (void)row;
    bool is_east = x > 500050, is_north = y > 4000050;
    if (band == 0) return (is_east ? 2 : 1) + (is_north ? 10 : 0);
    return band == 1 ? (is_east ? 200 : 40) : band == 2 ? (is_north ? 180 : 60) : 90;
}

static double numbered(int band, int column, int row, double x, double y) {
    (void)band;
    return quarters(0, column, row, x, y);
}

static double flat(int band, int column, int row, double x, double y) {
    (void)band;
    (void)x;
    (void)y;
    return 0.01 * (column + row);
}

static void photographs_and_masks_lie_where_the_ground_does(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "ground.tif",
                               .n_x = 50,
                               .n_y = 50,
                               .gt = {500000, 2, 0, 4000100, 0, -2},
                               .srs = "EPSG:32610",
                               .value = flat});
    // Finer, larger than the ground, and on a grid of its own.
    make_raster(&(raster_make){.path = "photo.tif",
                               .n_x = 300,
                               .n_y = 240,
                               .n_band = 3,
                               .type = GDT_Byte,
                               .gt = {499980.3, 0.5, 0, 4000110.2, 0, -0.5},
                               .srs = "EPSG:32610",
                               .value = quarters});
    // The western half alone.
    make_raster(&(raster_make){.path = "mask.tif",
                               .n_x = 60,
                               .n_y = 100,
                               .type = GDT_Byte,
                               .gt = {500000, 1, 0, 4000100, 0, -1},
                               .srs = "EPSG:32610",
                               .value = numbered});
    const char *file = "ground.tif", *photo = "photo.tif", *mask = "mask.tif";
    us_site_import_def def = of(&file);
    def.ortho = &photo;
    def.n_ortho = 1;
    def.region = &mask;
    def.n_region = 1;
    us_site *site = import_site(&def, fresh("ground"), NULL);
    us_site_info info = us_site_get_info(site);
    assert_int_equal(info.n_layer, 3);
    for (int32_t l = 1; l < 3; l++) {
        const us_layer_info *layer = &info.layer[l];
        // From the first sample of the ground to the last, and as fine as the file but for rounding to whole
        // samples.
        assert_true(fabs((layer->n_x - 1) * layer->dx - 98) < 1e-9 &&
                    fabs((layer->n_y - 1) * layer->dy - 98) < 1e-9);
        assert_true(fabs(layer->dx / (l == 1 ? 0.5 : 1) - 1) < 0.02);
        for (int32_t j = 0; j < layer->n_y; j += 5) {
            for (int32_t i = 0; i < layer->n_x; i += 5) {
                double x = info.origin.x + (i - 0.5 * (layer->n_x - 1)) * layer->dx,
                       y = info.origin.y + (j - 0.5 * (layer->n_y - 1)) * layer->dy;
                if (fabs(x - 500050) < 2 || fabs(y - 4000050) < 2)
                    continue;  // between two quarters it is interpolated
                uint8_t c[4];
                byte_at(site, layer->name, i, j, l == 1 ? 4 : 1, c);
                if (l == 1) {
                    assert_int_equal(c[0], (int)quarters(1, 0, 0, x, y));
                    assert_int_equal(c[1], (int)quarters(2, 0, 0, x, y));
                    assert_int_equal(c[2], 90);
                    assert_int_equal(c[3], 255);
                } else if (fabs(x - 500060) > 1) {
                    assert_int_equal(c[0], x < 500060 ? (int)quarters(0, 0, 0, x, y) : 0);
                }
            }
        }
    }
    us_site_close(site);
    // Somewhere else, and not a mask.
    us_error err = {0};
    make_raster(&(raster_make){.path = "away.tif",
                               .n_x = 30,
                               .n_y = 30,
                               .n_band = 3,
                               .type = GDT_Byte,
                               .gt = {600000, 1, 0, 4000100, 0, -1},
                               .srs = "EPSG:32610",
                               .value = quarters});
    const char *away = "away.tif";
    def.ortho = &away;
    assert_int_equal(us_site_import(&def, fresh("away"), NULL, &err), US_ERR_VALUE);
    assert_string_equal(err.file, "away.tif");
    assert_non_null(strstr(err.message, "outside"));
    def.n_ortho = 0;
    def.region = &file;
    assert_int_equal(us_site_import(&def, fresh("away"), NULL, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "0 to 255"));
}

static double roof(int band, int column, int row, double x, double y) {
    (void)band;
    (void)row;
    (void)x;
    (void)y;
    return column < 40 ? 0.4 * column : column < 60 ? 16 : 0.4 * (99 - column);
}

static void a_picture_is_lit_from_the_north_west(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "roof.tif",
                               .n_x = 100,
                               .n_y = 60,
                               .gt = {0, 1, 0, 0, 0, -1},
                               .srs = "EPSG:32610",
                               .value = roof});
    const char *file = "roof.tif";
    us_site_import_def def = of(&file);
    us_site *site = import_site(&def, fresh("roof"), NULL);
    us_error err = {0};
    assert_int_equal(us_site_write_hillshade(site, "roof.png", &err), US_OK);
    assert_int_equal(us_site_write_hillshade(site, "roof.tif/roof.png", &err), US_ERR_IO);
    assert_string_equal(err.file, "roof.tif/roof.png");
    us_site_close(site);
    GDALDatasetH png = GDALOpen("roof.png", GA_ReadOnly);
    assert_non_null(png);
    assert_int_equal(GDALGetRasterXSize(png), 100);
    assert_int_equal(GDALGetRasterYSize(png), 60);
    uint8_t line[100];
    assert_int_equal(
        GDALRasterIO(GDALGetRasterBand(png, 1), GF_Read, 0, 30, 100, 1, line, 100, 1, GDT_Byte, 0, 0),
        CE_None);
    GDALClose(png);
    // 255 times the cosine between the sun and the normals (-0.4, 0, 1), (0, 0, 1), (0.4, 0, 1).
    assert_int_equal(line[20], (int)lround(255 * (sqrt(0.5) + 0.2) / sqrt(1.16)));
    assert_int_equal(line[50], (int)lround(255 * sqrt(0.5)));
    assert_int_equal(line[80], (int)lround(255 * (sqrt(0.5) - 0.2) / sqrt(1.16)));
}

// ---------------------------------------------------------------- scenes

static double level(int band, int column, int row, double x, double y) {
    (void)band;
    (void)row;
    (void)x;
    (void)y;
    return 1000 + column % 3;
}

static us_status load_scene(const char *file, us_spec **out_spec, us_error *err) {
    FILE *scene = fopen("scene.xml", "w");
    assert_non_null(scene);
    fprintf(scene,
            "<scene name=\"s\" version=\"1\"><world>\n<shape name=\"ground\" type=\"height-field\" "
            "file=\"%s\"/></world></scene>\n",
            file);
    fclose(scene);
    return us_spec_load("scene.xml", NULL, out_spec, err);
}

static void a_scene_has_the_heights_that_a_site_has(void **state) {
    (void)state;
    raster_make m = hilly("hills.tif");
    make_raster(&m);
    const char *file = "hills.tif";
    us_site_import_def def = of(&file);
    us_site *site = import_site(&def, fresh("hills"), NULL);
    us_spec *spec = NULL;
    us_error err = {0};
    if (load_scene(file, &spec, &err)) fail_msg("%s", err.message);
    us_shape_def s = *us_spec_view_shape(spec, 0);
    assert_int_equal(s.n_x, N_X);
    assert_int_equal(s.n_y, N_Y);
    assert_true(s.size[0] == 0.5 && s.size[1] == 0.75);
    for (int32_t j = 0; j < N_Y; j += 9) {
        for (int32_t i = 0; i < N_X; i += 5)
            assert_true(s.heights[j * N_X + i] == (double)height_at(site, i, j));
    }
    assert_int_equal(us_spec_get_counts(spec).n_warning, 0);
    us_spec_destroy(spec);
    us_site_close(site);
    m.has_nodata = true;
    m.nodata = -9999;
    m.value = holed;
    make_raster(&m);
    assert_int_equal(load_scene(file, &spec, &err), US_ERR_VALUE);
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(err.message, "have no value"));
    assert_non_null(strstr(err.remedy, "--fill"));
}

static void a_large_raster_in_a_scene_is_worth_a_warning_and_a_larger_one_refused(void **state) {
    (void)state;
    make_raster(&(raster_make){.path = "large.tif",
                               .n_x = 2001,
                               .n_y = 2001,
                               .type = GDT_Int16,
                               .gt = {0, 1, 0, 0, 0, -1},
                               .srs = "EPSG:32610",
                               .value = level});
    us_spec *spec = NULL;
    us_error err = {0};
    if (load_scene("large.tif", &spec, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->remedy, "terrain import"));
    us_spec_destroy(spec);
    make_raster(&(raster_make){.path = "huge.tif",
                               .n_x = 5000,
                               .n_y = 3300,
                               .type = GDT_Byte,
                               .gt = {0, 1, 0, 0, 0, -1},
                               .srs = "EPSG:32610",
                               .value = level});
    assert_int_equal(load_scene("huge.tif", &spec, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.remedy, "terrain import"));
}

// ---------------------------------------------------------------- refusals

static void assert_refused(const us_raster_def *def, us_status status, const char *message,
                           const char *remedy) {
    us_raster_info info;
    us_error err = {0};
    us_status got = us_raster_find_info(def, NULL, NULL, &info, &err);
    if (got != status || !strstr(err.message, message) || !strstr(err.remedy, remedy))
        fail_msg("%s: %d \"%s\" \"%s\" instead of %d \"%s\" \"%s\"", def->file[0], got, err.message,
                 err.remedy, status, message, remedy);
    assert_string_equal(err.file, def->file[0]);
}

static us_raster_def one(const char *const *file) {
    us_raster_def def = us_raster_def_default();
    def.file = file;
    def.n_file = 1;
    return def;
}

static double nothing(int band, int column, int row, double x, double y) {
    (void)band;
    (void)column;
    (void)row;
    (void)x;
    (void)y;
    return -1;
}

static void bad_files_are_refused_with_the_file_and_a_remedy(void **state) {
    (void)state;
    const char *file = "nowhere.tif";
    us_raster_def def = one(&file);
    assert_refused(&def, US_ERR_IO, "does not exist", "check the name");
    file = "words.tif";
    FILE *words = fopen(file, "w");
    assert_non_null(words);
    fputs("these are words\n", words);
    fclose(words);
    assert_refused(&def, US_ERR_IO, "cannot be opened", "GeoTIFF");
    raster_make m = hilly("bad.tif");
    file = "bad.tif";
    make_raster(&m);
    def.band = 2;
    assert_refused(&def, US_ERR_VALUE, "there is no band 2", "count from 1");
    def.band = 0;
    // Cut off: in its samples.
    struct stat about;
    assert_int_equal(stat(file, &about), 0);
    assert_int_equal(truncate(file, about.st_size * 2 / 3), 0);
    assert_refused(&def, US_ERR_IO, "cannot be read", "again");
    m.n_x = m.n_y = 1;
    make_raster(&m);
    assert_refused(&def, US_ERR_VALUE, "1 x 1", "2 x 2");
    m = hilly("bad.tif");
    m.unit = "fathom";
    make_raster(&m);
    assert_refused(&def, US_ERR_VALUE, "fathom", "--unit");
    def.unit = "parsec";
    assert_refused(&def, US_ERR_VALUE, "parsec", "us-ft");
    def.unit = NULL;
    m.unit = NULL;
    m.type = GDT_CFloat32;
    make_raster(&m);
    assert_refused(&def, US_ERR_VALUE, "complex", "plain numbers");
    m = hilly("bad.tif");
    m.n_band = 3;
    make_raster(&m);
    assert_refused(&def, US_ERR_VALUE, "3 bands", "--band");
    m = hilly("bad.tif");
    m.has_no_place = true;
    make_raster(&m);
    assert_refused(&def, US_ERR_VALUE, "where its samples lie", "world file");
    make_raster(&(raster_make){.path = "bad.tif",
                               .n_x = 360,
                               .n_y = 180,
                               .gt = {-180, 1, 0, 90, 0, -1},
                               .srs = "EPSG:4326",
                               .value = hills});
    assert_refused(&def, US_ERR_LIMIT, "too much for a local frame", "-projwin");
    def.n_file = 0;
    us_error err = {0};
    us_raster_info info;
    assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_ERR_ARG);
    assert_int_equal(us_raster_find_info(NULL, NULL, NULL, &info, &err), US_ERR_ARG);
    // Whoever wants to know what it is may; a site of nothing there is not.
    m = hilly("bad.tif");
    m.has_nodata = true;
    m.nodata = -1;
    m.value = nothing;
    make_raster(&m);
    def.n_file = 1;
    assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_OK);
    assert_true(isnan(info.low) && info.n_gap == (int64_t)N_X * N_Y);
    us_site_import_def site = of(&file);
    site.is_filled = true;
    assert_int_equal(us_site_import(&site, fresh("bad"), NULL, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "no sample of it has a value"));
}

static void a_file_without_a_reference_system_needs_a_word_about_it(void **state) {
    (void)state;
    raster_make m = hilly("plain.tif");
    m.srs = NULL;
    make_raster(&m);
    const char *file = "plain.tif";
    us_raster_def def = one(&file);
    assert_refused(&def, US_ERR_VALUE, "no reference system", "--metric");
    us_raster_info info;
    us_error err = {0};
    def.is_metric = true;
    assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_OK);
    assert_true(info.dx == 0.5 && info.reference[0] == 0 && isnan(info.latitude) && info.stretch_x == 1);
    def.is_metric = false;
    def.reference = "EPSG:26910";
    assert_int_equal(us_raster_find_info(&def, NULL, NULL, &info, &err), US_OK);
    assert_string_equal(info.reference, "NAD83 / UTM zone 10N");
    def.reference = "the moon, somewhere";
    assert_refused(&def, US_ERR_VALUE, "invalid reference system", "EPSG:");
    def.reference = "http://localhost/crs";
    assert_refused(&def, US_ERR_VALUE, "invalid reference system", "EPSG:");
}

static void a_directory_that_cannot_be_used_is_named(void **state) {
    (void)state;
    raster_make m = hilly("hills.tif");
    make_raster(&m);
    const char *file = "hills.tif";
    us_site_import_def def = of(&file);
    us_error err = {0};
    const char *path = fresh("used");
    assert_int_equal(mkdir(path, 0777), 0);
    FILE *other = fopen("used.site/other", "w");
    assert_non_null(other);
    fclose(other);
    assert_int_equal(us_site_import(&def, path, NULL, &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "not empty"));
    assert_int_equal(us_site_import(&def, "hills.tif/site", NULL, &err), US_ERR_IO);
    assert_string_equal(err.file, "hills.tif/site");
    // A disk that is full after 20 kB, as far as a process can be told so.
    struct rlimit before, small = {.rlim_cur = 20000};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    path = fresh("full");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    us_status status = us_site_import(&def, path, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, US_ERR_IO);
    assert_non_null(strstr(err.file, "full.site/height/0/"));
    assert_true(err.remedy[0] != 0);
    assert_int_equal(access("full.site/site.json", F_OK), -1);
}

static void without_memory_an_import_ends_and_leaves_nothing_behind(void **state) {
    (void)state;
    raster_make m = hilly("hills.tif");
    m.n_x = 20;
    m.n_y = 10;
    make_raster(&m);
    const char *file = "hills.tif";
    us_status status = US_ERR_MEMORY;
    int64_t n = 0;
    while (status == US_ERR_MEMORY && n < 200) {
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = ++n;
        us_site_import_def def = of(&file);
        def.height.allocator = t.allocator;
        us_error err = {0};
        status = us_site_import(&def, fresh("memory"), NULL, &err);
        if (status != US_OK && status != US_ERR_MEMORY) fail_msg("allocation %d: %s", (int)n, err.message);
        assert_int_equal(access("memory.site/site.json", F_OK), status ? -1 : 0);
        test_allocator_check(&t);
    }
    assert_int_equal(status, US_OK);
    assert_true(n > 8);
}

static void *look(void *context) {
    const char *file = context;
    us_raster_def def = one(&file);
    for (int k = 0; k < 8; k++) {
        us_raster_info info;
        us_error err = {0};
        if (us_raster_find_info(&def, NULL, NULL, &info, &err) || info.n_x != N_X) return context;
    }
    return NULL;
}

static void threads_read_files_of_their_own_at_the_same_time(void **state) {
    (void)state;
    static char names[4][16];
    pthread_t thread[4];
    for (int k = 0; k < 4; k++) {
        snprintf(names[k], sizeof names[k], "thread%d.tif", k);
        raster_make m = hilly(names[k]);
        make_raster(&m);
    }
    for (int k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, look, names[k]), 0);
    for (int k = 0; k < 4; k++) {
        void *bad = NULL;
        assert_int_equal(pthread_join(thread[k], &bad), 0);
        assert_null(bad);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_read_files_of_their_own_at_the_same_time),
        cmocka_unit_test(a_site_holds_every_height_against_its_origin),
        cmocka_unit_test(gaps_are_an_error_until_filling_is_asked_for),
        cmocka_unit_test(a_gap_too_far_from_any_value_is_not_made_up),
        cmocka_unit_test(photographs_and_masks_lie_where_the_ground_does),
        cmocka_unit_test(a_picture_is_lit_from_the_north_west),
        cmocka_unit_test(a_scene_has_the_heights_that_a_site_has),
        cmocka_unit_test(a_large_raster_in_a_scene_is_worth_a_warning_and_a_larger_one_refused),
        cmocka_unit_test(bad_files_are_refused_with_the_file_and_a_remedy),
        cmocka_unit_test(a_file_without_a_reference_system_needs_a_word_about_it),
        cmocka_unit_test(a_directory_that_cannot_be_used_is_named),
        cmocka_unit_test(without_memory_an_import_ends_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
