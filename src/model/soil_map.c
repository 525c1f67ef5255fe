// Numbers of a soil that vary over the ground: samples in memory, or a layer of a site that is paged in as
// its heights are.
//
//     o-----o-----o . . .      A map's samples lie around the middle of its ground. Between four of them the
//     number is bilinear, so that forces do |  *  |     |            not jump where a wheel comes from one
//     cell to the next. A sample that is missing stands for what holds without the o-----o-----x . . . map,
//     and so do all beyond the last: over one spacing the number goes over into that. .     .     .
//
// A map takes the place of the material's own number. Later maps lie over earlier ones.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geom/geom.h"
#include "model/compile.h"

// ---------------------------------------------------------------- at a place

static double sample(const usi_soil_map *r, int32_t i, int32_t j, double own) {
    if (i < 0 || j < 0 || i >= r->n_x || j >= r->n_y) return own;
    double value = r->value[(size_t)j * (size_t)r->n_x + (size_t)i];
    return isnan(value) ? own : value;
}

void usi_soil_map_apply(const us_model *m, int32_t geom, int32_t material, double x, double y,
                        us_soil *soil) {
    for (int32_t k = 0; k < m->n_soil_map; k++) {
        const usi_soil_map *r = &m->soil_map[k];
        if (r->geom != geom || (r->material >= 0 && r->material != material)) continue;
        double u = (x - r->x) / r->dx + 0.5 * (r->n_x - 1), v = (y - r->y) / r->dy + 0.5 * (r->n_y - 1);
        if (!(u > -1 && u < r->n_x && v > -1 && v < r->n_y)) continue;
        double *number = (double *)(void *)((char *)soil + r->number), own = *number, i = floor(u),
               j = floor(v);
        double a = sample(r, (int32_t)i, (int32_t)j, own), b = sample(r, (int32_t)i + 1, (int32_t)j, own);
        double c = sample(r, (int32_t)i, (int32_t)j + 1, own),
               d = sample(r, (int32_t)i + 1, (int32_t)j + 1, own);
        // In this form four equal samples give their number to the bit.
        a += (u - i) * (b - a);
        c += (u - i) * (d - c);
        *number = a + (v - j) * (c - a);
    }
}

// ---------------------------------------------------------------- checks

us_status usi_soil_map_check(const us_model *m, int32_t material, const us_soil *soil, us_error *err) {
    double kc = soil->kc, kphi = soil->kphi;
    for (int32_t k = 0; k < m->n_soil_map; k++) {
        const usi_soil_map *r = &m->soil_map[k];
        if (r->material >= 0 && r->material != material) continue;
        if (r->number == (int32_t)offsetof(us_soil, kc)) kc = fmin(kc, r->low);
        if (r->number == (int32_t)offsetof(us_soil, kphi)) kphi = fmin(kphi, r->low);
    }
    if (kc > 0 || kphi > 0) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, "give the soil a kphi above 0, everywhere",
                        "where maps have a 0, kc and kphi of the soil may both be 0: it carries nothing");
}

static us_status fail(usi_build *b, const us_soil_map_def *d, us_status code, const char *remedy,
                      const char *message) {
    return usi_build_fail(b, code, d->file, d->line, "soil-map", d->parameter, remedy, message);
}

// The range of the number that a map is of.
typedef struct range {
    double min, max;
} range;

// Samples of a site are 32 bits long: what only rounding has put beyond the end is good.
static bool is_in(range r, double x) { return (float)x >= (float)r.min && (float)x <= (float)r.max; }

static us_status fail_value(usi_build *b, const us_soil_map_def *d, range r, double value, double x,
                            double y) {
    char message[240];
    snprintf(message, sizeof message, "it is %g at x = %.9g, y = %.9g m of \"%.60s\", not from %g to %g",
             value, x, y, d->ground, r.min, r.max);
    return fail(b, d, US_ERR_VALUE,
                "mend it, leave the place without a value, or say by scale what its unit is: scale=\"1 deg\"",
                message);
}

static us_status warn(usi_build *b, const us_soil_map_def *d, const char *remedy, const char *message) {
    char element[128];
    snprintf(element, sizeof element, "soil-map \"%.100s\"", d->parameter);
    return usi_build_warn(b, d->file, d->line, element, remedy, message);
}

// Extremes and gaps of samples in memory.
static us_status scan(usi_build *b, const us_soil_map_def *d, range good, usi_soil_map *r,
                      int64_t *out_n_gap) {
    r->low = INFINITY;
    r->high = -INFINITY;
    for (int64_t k = 0; k < (int64_t)d->n_x * d->n_y; k++) {
        double value = d->values[k];
        *out_n_gap += isnan(value);
        if (isnan(value)) continue;
        if (!is_in(good, value)) {
            int64_t i = k % d->n_x, j = k / d->n_x;
            return fail_value(b, d, good, value, ((double)i - 0.5 * (d->n_x - 1)) * d->dx,
                              ((double)j - 0.5 * (d->n_y - 1)) * d->dy);
        }
        r->low = fmin(r->low, value);
        r->high = fmax(r->high, value);
    }
    return US_OK;
}

static us_status warn_of_gaps(usi_build *b, const us_soil_map_def *d, const us_height_field *ground,
                              const usi_soil_map *r, int64_t n_gap) {
    char message[240];
    static const char *const remedy = "fill them, or leave them: the material's own number holds there";
    if (n_gap > 0) {
        snprintf(message, sizeof message, "%lld of its %lld samples have no value", (long long)n_gap,
                 (long long)r->n_x * r->n_y);
        return warn(b, d, remedy, message);
    }
    // Half a sample: pixels end there, though samples do not.
    double x = 0.5 * r->n_x * r->dx, y = 0.5 * r->n_y * r->dy;
    if (!ground || (r->x - x <= -0.5 * (ground->n_x - 1) * ground->dx &&
                    r->x + x >= 0.5 * (ground->n_x - 1) * ground->dx &&
                    r->y - y <= -0.5 * (ground->n_y - 1) * ground->dy &&
                    r->y + y >= 0.5 * (ground->n_y - 1) * ground->dy))
        return US_OK;
    snprintf(message, sizeof message, "it has %.6g x %.6g m of a ground of %.6g x %.6g m", 2 * x, 2 * y,
             (ground->n_x - 1) * ground->dx, (ground->n_y - 1) * ground->dy);
    return warn(b, d, "beyond it the material's own number holds: give a larger one, or leave it", message);
}

// ---------------------------------------------------------------- layers of sites

// Extremes are known of a layer as a whole. One that goes out of the range anywhere is searched for where
// that is.
static us_status search(usi_build *b, const us_soil_map_def *d, const char *path, const char *layer,
                        range good, const usi_soil_map *r) {
    us_site *site = NULL;
    us_status status = us_site_open(path, &b->arena.allocator, &site, b->err);
    if (status) return status;
    us_site_info info = us_site_get_info(site);
    int32_t i = usi_field_layer(&info, layer), n_x = 0, n_y = 0;
    float *samples =
        usi_arena_alloc(&b->arena, US_SITE_TILE * US_SITE_TILE * sizeof *samples, _Alignof(float));
    if (!samples) status = usi_build_out_of_memory(b);
    const us_layer_info *l = &info.layer[i < 0 ? 0 : i];
    double dx = 0.5 * r->n_x * r->dx, dy = 0.5 * r->n_y * r->dy, middle_x = r->paged->p_SF.x,
           middle_y = r->paged->p_SF.y;
    for (int32_t v = 0; !status && us_site_tile_size(site, i, 0, 0, v, &n_x, &n_y); v++) {
        for (int32_t u = 0; !status && us_site_tile_size(site, i, 0, u, v, &n_x, &n_y); u++) {
            status = us_site_read(site, i, 0, u, v, samples, b->err);
            for (int32_t k = 0; k < n_x * n_y && !status; k++) {
                int32_t row = v * US_SITE_TILE + k / n_x, column = u * US_SITE_TILE + k % n_x;
                double x = (column - 0.5 * (l->n_x - 1)) * l->dx, y = (row - 0.5 * (l->n_y - 1)) * l->dy;
                bool is_here = fabs(x - middle_x) < dx && fabs(y - middle_y) < dy;
                if (is_here && !is_in(good, (double)samples[k]))
                    status = fail_value(b, d, good, (double)samples[k], x, y);
            }
        }
    }
    us_site_close(site);
    return status;
}

static us_status open_layer(usi_build *b, us_model *m, const us_soil_map_def *d, range good,
                            usi_soil_map *r) {
    const usi_geom *g = &m->geom[r->geom];
    const us_shape_def *shape = &b->spec->shape[g->shape];
    if (!shape->site)
        return fail(b, d, US_ERR_VALUE, "give it samples: file=\"FILE.tif\"",
                    "its ground is no site, which may have such a layer, and it has no samples itself");
    char name[32];
    us_error why;
    snprintf(name, sizeof name, "soil.%.26s", d->parameter);
    us_status status = usi_geometry_layer(&m->assets, shape, name, &r->paged, &why);
    if (status) return fail(b, d, status, why.remedy, why.message);
    const us_height_field *f = r->paged;
    r->n_x = f->n_x;
    r->n_y = f->n_y;
    r->dx = f->dx;
    r->dy = f->dy;
    r->value = f->height;
    r->low = f->low;
    r->high = f->high;
    r->x = f->p_SF.x - g->geom.field->p_SF.x;
    r->y = f->p_SF.y - g->geom.field->p_SF.y;
    if (!is_in(good, f->low) || !is_in(good, f->high)) status = search(b, d, shape->site, name, good, r);
    return status ? status : warn_of_gaps(b, d, g->geom.field, r, 0);
}

static us_status keep_samples(usi_build *b, us_model *m, const us_soil_map_def *d, range good,
                              usi_soil_map *r) {
    const us_height_field *ground =
        m->geom[r->geom].geom.kind == US_GEOM_HEIGHT_FIELD ? m->geom[r->geom].geom.field : NULL;
    int64_t n_gap = 0;
    us_status status = scan(b, d, good, r, &n_gap);
    if (status) return status;
    size_t bytes = (size_t)d->n_x * (size_t)d->n_y * sizeof(double);
    double *values = usi_arena_alloc(&m->assets.arena, bytes, _Alignof(double));
    if (!values) return usi_build_out_of_memory(b);
    memcpy(values, d->values, bytes);
    r->n_x = d->n_x;
    r->n_y = d->n_y;
    r->dx = d->dx;
    r->dy = d->dy;
    r->value = values;
    // A part of a site lies where it does in the whole, and so does what lies over it.
    if (ground) {
        r->x = -ground->p_SF.x;
        r->y = -ground->p_SF.y;
    }
    return warn_of_gaps(b, d, ground, r, n_gap);
}

// ---------------------------------------------------------------- all of them

static us_status read_map(usi_build *b, us_model *m, const us_soil_map_def *d, usi_soil_map *r) {
    us_soil probe = us_soil_default();
    range good;
    const double *number = us_soil_parameter(&probe, d->parameter, &good.min, &good.max);
    if (!number)
        return fail(b, d, US_ERR_NAME, "name a number of a <soil>: cohesion, kphi, ...",
                    "a soil has no such number");
    ptrdiff_t at = (const char *)number - (const char *)&probe;
    r->number = (int32_t)at;
    r->geom = usi_build_ground(b, m, d->ground);
    if (r->geom < 0)
        return fail(b, d, US_ERR_NAME, "give the name of a plane or height field of the world that collides",
                    "there is no such ground");
    if (!m->geom[r->geom].is_soil)
        return fail(b, d, US_ERR_VALUE,
                    "give the ground, or a region of it, a surface whose <material> has a <soil>",
                    "nothing of its ground gives way");
    r->material = d->material ? usi_find_material(m, d->material) : -1;
    if (d->material && r->material < 0)
        return usi_build_unknown_material(b, m, d->file, d->line, "soil-map", d->parameter, d->material);
    if (d->material && !m->material[r->material].is_soil)
        return fail(b, d, US_ERR_VALUE, "name a material that has a <soil>", "its material is no soil");
    m->geom[r->geom].has_soil_map = 1;
    // Those of usi_deformable_law_of.
    if (number == &probe.repose_angle || number == &probe.critical_angle || number == &probe.cohesion ||
        number == &probe.density || number == &probe.friction_angle || number == &probe.max_curvature)
        m->geom[r->geom].has_flow_map = 1;
    return d->values ? keep_samples(b, m, d, good, r) : open_layer(b, m, d, good, r);
}

us_status usi_build_soil_maps(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    if (s->n_soil_map == 0) return US_OK;
    usi_soil_map *rows =
        usi_arena_alloc(&m->assets.arena, (size_t)s->n_soil_map * sizeof *rows, _Alignof(usi_soil_map));
    if (!rows) return usi_build_out_of_memory(b);
    memset(rows, 0, (size_t)s->n_soil_map * sizeof *rows);
    m->soil_map = rows;
    for (int32_t i = 0; i < s->n_soil_map; i++) {
        us_status status = read_map(b, m, &s->soil_map[i], &rows[i]);
        if (status) return status;
        m->n_soil_map++;
    }
    for (int32_t i = 0; i < m->n_material; i++) {
        us_error why;
        if (m->material[i].is_soil && usi_soil_map_check(m, i, &m->material[i].soil, &why))
            return usi_build_fail(b, US_ERR_VALUE, s->soil_map[0].file, s->soil_map[0].line, "material",
                                  m->material[i].name, why.remedy, why.message);
    }
    return US_OK;
}

uint64_t usi_soil_maps_hash(const us_model *m, uint64_t seed) {
    uint64_t h = seed;
    for (int32_t i = 0; i < m->n_soil_map; i++) {
        const usi_soil_map *r = &m->soil_map[i];
        const int32_t whole[] = {r->geom, r->material, r->number, r->n_x, r->n_y};
        const double numbers[] = {r->dx, r->dy, r->x, r->y};
        h = us_hash_bytes(us_hash_bytes(h, whole, sizeof whole), numbers, sizeof numbers);
        if (r->paged)
            h = us_hash_bytes(h, &r->paged->hash, sizeof r->paged->hash);
        else
            h = us_hash_bytes(h, r->value, (size_t)r->n_x * (size_t)r->n_y * sizeof *r->value);
    }
    return h;
}
