// Sites from a seed: fields, craters and rocks, tile by tile.
//
// Parts of a field have the size of the method; each is divided into the tiles of the site, which its borders
// are multiples of. Craters and rocks are functions of their places alone, so that each tile computes those
// that reach it, and only one tile is in memory.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "understudy/terrain.h"

enum { TILE = US_SITE_TILE };
static const uint64_t SOIL_STREAM = 0x736f696c;

typedef struct site_maker {
    const us_random_site_def *def;
    us_site *site;
    us_random_site_info info;
    int32_t layer;
    int64_t n_done, n_all;  // tiles
    // Sums about the first value, so that a large mean costs no digits.
    double shift, sum, square;
    int64_t n_sum;
    double *ground;  // TILE x TILE
    float *samples;
    int32_t x, y, n_x, n_y;  // nodes of the tile at hand
} site_maker;

us_random_site_def us_random_site_def_default(void) {
    us_random_site_def def = {.allocator = us_allocator_default(),
                              .height = us_field_def_default(),
                              .craters = us_crater_def_default()};
    def.rocks = us_scatter_def_default(US_SCATTER_ROCKS);
    def.rocks.density = 0;
    return def;
}

static us_status add_rock(void *context, const us_scatter_instance *rock, us_error *err) {
    (void)err;
    site_maker *k = context;
    double spacing = k->def->height.spacing, r = 0.5 * rock->diameter;
    // It is counted where its middle is.
    double at_x = rock->x / spacing - k->x, at_y = rock->y / spacing - k->y;
    if (at_x >= 0 && at_x < k->n_x && at_y >= 0 && at_y < k->n_y) k->info.n_rock++;
    for (int32_t j = (int32_t)fmax(ceil(at_y - r / spacing), 0); j < k->n_y && j <= at_y + r / spacing; j++) {
        for (int32_t i = (int32_t)fmax(ceil(at_x - r / spacing), 0); i < k->n_x && i <= at_x + r / spacing;
             i++) {
            double dx = ((double)k->x + i) * spacing - rock->x, dy = ((double)k->y + j) * spacing - rock->y,
                   s = 1 - (dx * dx + dy * dy) / (r * r);
            if (s > 0) k->ground[j * TILE + i] += rock->height * sqrt(s);
        }
    }
    return US_OK;
}

static us_status add_craters_and_rocks(site_maker *k, us_error *err) {
    const us_random_site_def *def = k->def;
    us_status status = US_OK;
    if (def->craters.density != 0) {
        us_crater_def craters = def->craters;
        craters.seed = def->height.seed;
        status =
            us_crater_add(&craters, def->height.spacing, k->x, k->y, k->n_x, k->n_y, TILE, k->ground, err);
    }
    if (def->rocks.density != 0 && status == US_OK) {
        us_scatter_def rocks = def->rocks;
        double reach = 0.5 * rocks.max_size, spacing = def->height.spacing;
        rocks.seed = def->height.seed;
        rocks.x0 = k->x * spacing - reach;
        rocks.x1 = (k->x + k->n_x) * spacing + reach;
        rocks.y0 = k->y * spacing - reach;
        rocks.y1 = (k->y + k->n_y) * spacing + reach;
        status = us_scatter_visit(&rocks, add_rock, k, err);
    }
    return status;
}

static us_status write_tile(site_maker *k, const us_field_part *part, int32_t u, int32_t v, us_error *err) {
    us_random_layer *info = &k->info.layer[k->layer];
    us_site_tile_size(k->site, k->layer, 0, u, v, &k->n_x, &k->n_y);
    k->x = u * TILE;
    k->y = v * TILE;
    for (int32_t j = 0; j < k->n_y; j++)
        memcpy(k->ground + (size_t)j * TILE,
               part->values + (size_t)(k->y + j - part->y) * (size_t)part->stride + (k->x - part->x),
               sizeof(double) * (size_t)k->n_x);
    us_status status = k->layer == 0 ? add_craters_and_rocks(k, err) : US_OK;
    if (status != US_OK) return status;
    if (k->n_sum == 0) k->shift = k->ground[0];
    for (int32_t j = 0; j < k->n_y; j++) {
        for (int32_t i = 0; i < k->n_x; i++) {
            double value = k->ground[j * TILE + i];
            if (k->layer > 0 && value < 0) {
                value = 0;
                info->n_raised++;
            }
            info->low = k->n_sum == 0 && i == 0 && j == 0 ? value : value < info->low ? value : info->low;
            info->high = k->n_sum == 0 && i == 0 && j == 0 ? value : value > info->high ? value : info->high;
            k->sum += value - k->shift;
            k->square += (value - k->shift) * (value - k->shift);
            k->samples[(size_t)j * (size_t)k->n_x + (size_t)i] = (float)value;
        }
    }
    k->n_sum += (int64_t)k->n_x * k->n_y;
    k->n_done++;
    // Making the coarser levels takes a fifth of the time.
    if (k->def->progress) k->def->progress(k->def->context, 0.8 * (double)k->n_done / (double)k->n_all);
    return us_site_write(k->site, k->layer, u, v, k->samples, err);
}

static us_status write_part(void *context, const us_field_part *part, us_error *err) {
    site_maker *k = context;
    us_status status = US_OK;
    for (int32_t v = part->y / TILE; v * TILE < part->y + part->n_y && status == US_OK; v++) {
        for (int32_t u = part->x / TILE; u * TILE < part->x + part->n_x && status == US_OK; u++)
            status = write_tile(k, part, u, v, err);
    }
    return status;
}

static us_status make_layer(site_maker *k, int32_t layer, const us_field_def *field, us_error *err) {
    us_random_layer *info = &k->info.layer[layer];
    k->layer = layer;
    k->shift = k->sum = k->square = 0;
    k->n_sum = 0;
    us_status status = us_field_visit_parts(field, write_part, k, &info->field, err);
    if (status != US_OK) return status;
    double n = (double)k->n_sum, mean = k->sum / n;
    info->mean = k->shift + mean;
    info->variance = k->square / n - mean * mean;
    return US_OK;
}

static void finish_progress(void *context, double share) {
    const site_maker *k = context;
    k->def->progress(k->def->context, 0.8 + 0.2 * share);
}

// Reports errors of the definition before a directory is made: craters and rocks are made on an empty ground.
static us_status check(const us_random_site_def *def, us_error *err) {
    double nothing = 0;
    if (!isnan(us_field_covariance(&def->height, 0))) {
        us_status status =
            def->craters.density != 0 ? us_crater_add(&def->craters, 1, 0, 0, 0, 0, 0, &nothing, err) : US_OK;
        us_scatter_def rocks = def->rocks;
        rocks.x0 = rocks.x1 = rocks.y0 = rocks.y1 = 0;
        if (status == US_OK && rocks.density != 0) status = us_scatter_visit(&rocks, add_rock, NULL, err);
        if (status == US_OK && rocks.density != 0 && rocks.min_size < 2 * def->height.spacing)
            status = us_error_set(err, US_ERR_VALUE, NULL,
                                  "give larger rocks, a smaller spacing, or scatter rocks in the scene",
                                  "rocks of %g m do not show in samples %g m apart", rocks.min_size,
                                  def->height.spacing);
        if (status != US_OK) return status;
    } else {
        return us_field_make(&def->height, &nothing, NULL, err);  // which says what is wrong
    }
    if (def->n_soil < 0 || def->n_soil >= US_SITE_LAYERS)
        return us_error_set(err, US_ERR_VALUE, NULL, "give fewer", "%d parameters of soils, of at most %d",
                            (int)def->n_soil, US_SITE_LAYERS - 1);
    for (int32_t i = 0; i < def->n_soil; i++) {
        us_field_def field = def->soil[i].field;
        field.n_x = field.n_y = 1;
        if (isnan(us_field_covariance(&field, 0))) return us_field_make(&field, &nothing, NULL, err);
    }
    return US_OK;
}

us_status us_site_make_random(const us_random_site_def *def, const char *path, us_random_site_info *out_info,
                              us_error *err) {
    if (!def || !path)
        return us_error_set(err, US_ERR_ARG, NULL, "give a definition and a directory",
                            "an argument is missing");
    us_status status = check(def, err);
    if (status != US_OK) return status;
    const us_field_def *height = &def->height;
    us_site_info info = {.n_layer = 1 + def->n_soil, .origin = {0, 0, height->mean}, .wkt = ""};
    for (int32_t i = 0; i < info.n_layer; i++) {
        us_layer_info *l = &info.layer[i];
        *l = (us_layer_info){.type = US_LAYER_NUMBER,
                             .n_x = height->n_x,
                             .n_y = height->n_y,
                             .dx = height->spacing,
                             .dy = height->spacing};
        if (i == 0)
            snprintf(l->name, sizeof l->name, "height");
        else
            snprintf(l->name, sizeof l->name, "soil.%.23s", def->soil[i - 1].name);
    }
    site_maker k = {.def = def};
    k.ground = usi_alloc(&def->allocator, sizeof(double) * TILE * TILE, 64);
    k.samples = usi_alloc(&def->allocator, sizeof(float) * TILE * TILE, 64);
    if (!k.ground || !k.samples)
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a tile");
    if (status == US_OK) status = us_site_create(path, &info, &def->allocator, &k.site, err);
    k.n_all = (int64_t)info.n_layer * ((height->n_x - 1) / TILE + 1) * ((height->n_y - 1) / TILE + 1);
    for (int32_t i = 0; i < info.n_layer && status == US_OK; i++) {
        us_field_def field = i == 0 ? *height : def->soil[i - 1].field;
        field.n_x = height->n_x;
        field.n_y = height->n_y;
        field.spacing = height->spacing;
        field.seed = height->seed;
        if (i == 0)
            field.mean = 0;
        else
            field.stream = height->stream + SOIL_STREAM + (uint64_t)i;
        status = make_layer(&k, i, &field, err);
    }
    if (status == US_OK) status = us_site_finish(k.site, def->progress ? finish_progress : NULL, &k, err);
    us_site_close(k.site);
    usi_release(&def->allocator, k.ground, sizeof(double) * TILE * TILE, 64);
    usi_release(&def->allocator, k.samples, sizeof(float) * TILE * TILE, 64);
    if (status != US_OK || !out_info) return status;
    k.info.layer[0].mean += height->mean;
    k.info.layer[0].low += height->mean;
    k.info.layer[0].high += height->mean;
    *out_info = k.info;
    return US_OK;
}
