// Height fields of sites: as large as the ground, in memory only where somebody is.
#include <stdio.h>
#include <string.h>

#include "geom/geom.h"

// A zone's end may miss a sample by rounding: 1e-6 of the spacing.
static const double SLACK = 1e-6;

static us_status outside(const us_layer_info *l, us_error *err) {
    double x = 0.5 * (l->n_x - 1) * l->dx, y = 0.5 * (l->n_y - 1) * l->dy;
    char remedy[200];
    snprintf(remedy, sizeof remedy,
             "write x0 y0 x1 y1 between %.9g %.9g and %.9g %.9g, with at least 2 samples each way", -x, -y, x,
             y);
    return us_error_set(err, US_ERR_VALUE, NULL, remedy, "the zone is empty, or reaches beyond the site");
}

static bool samples_between(double from, double to, double spacing, int32_t n, int32_t *out_first,
                            int32_t *out_last) {
    double half = 0.5 * (n - 1), a = ceil(from / spacing + half - SLACK),
           b = floor(to / spacing + half + SLACK);
    if (!(a >= 0 && b <= n - 1 && b - a >= 1)) return false;
    *out_first = (int32_t)a;
    *out_last = (int32_t)b;
    return true;
}

us_status usi_field_zone(const us_site_info *info, const double zone[4], usi_window *out_window,
                         us_error *err) {
    const us_layer_info *l = &info->layer[0];
    bool is_all = zone[0] == 0 && zone[1] == 0 && zone[2] == 0 && zone[3] == 0;
    *out_window = (usi_window){0, l->n_x - 1, 0, l->n_y - 1};
    if (!is_all && (!samples_between(zone[0], zone[2], l->dx, l->n_x, &out_window->i0, &out_window->i1) ||
                    !samples_between(zone[1], zone[3], l->dy, l->n_y, &out_window->j0, &out_window->j1)))
        return outside(l, err);
    int64_t n_x = out_window->i1 - out_window->i0 + 1, n_y = out_window->j1 - out_window->j0 + 1;
    // Cells and their two triangles are numbered by 32-bit integers.
    if (n_x * n_y > INT32_MAX / 2)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give the field a zone",
                            "a height field of %lld by %lld samples is too large", (long long)n_x,
                            (long long)n_y);
    return US_OK;
}

int32_t usi_field_layer(const us_site_info *info, const char *name) {
    for (int32_t i = 0; i < info->n_layer; i++) {
        const char *a = info->layer[i].name, *b = name;
        while (*a && (*a == *b || (*a == '-' && *b == '_') || (*a == '_' && *b == '-'))) {
            a++;
            b++;
        }
        if (!*a && !*b && info->layer[i].type == US_LAYER_NUMBER) return i;
    }
    return -1;
}

static us_status no_layer(const us_site_info *info, const char *name, us_error *err) {
    char known[300] = "";
    for (int32_t i = 0; i < info->n_layer; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "it has: ", info->layer[i].name);
    }
    return us_error_set(err, US_ERR_NAME, NULL, known, "the site has no layer \"%.40s\" of numbers", name);
}

// All samples of an axis that a place between two others may lie between.
static void samples_around(double from, double to, double spacing, int32_t n, int32_t *out_first,
                           int32_t *out_last) {
    double half = 0.5 * (n - 1), a = floor(from / spacing + half), b = ceil(to / spacing + half);
    *out_first = a > 0 ? (a < n - 2 ? (int32_t)a : n - 2) : 0;
    *out_last = b < n - 1 ? (b > *out_first ? (int32_t)b : *out_first + 1) : n - 1;
}

static us_status layer_zone(const us_site_info *info, int32_t layer, const double zone[4],
                            usi_window *out_window, us_error *err) {
    const us_layer_info *l = &info->layer[layer];
    us_status status = usi_field_zone(info, zone, out_window, err);
    if (status || layer == 0) return status;
    const us_layer_info *h = &info->layer[0];
    double x0 = (out_window->i0 - 0.5 * (h->n_x - 1)) * h->dx,
           x1 = (out_window->i1 - 0.5 * (h->n_x - 1)) * h->dx;
    double y0 = (out_window->j0 - 0.5 * (h->n_y - 1)) * h->dy,
           y1 = (out_window->j1 - 0.5 * (h->n_y - 1)) * h->dy;
    samples_around(x0, x1, l->dx, l->n_x, &out_window->i0, &out_window->i1);
    samples_around(y0, y1, l->dy, l->n_y, &out_window->j0, &out_window->j1);
    if ((int64_t)(out_window->i1 - out_window->i0 + 1) * (out_window->j1 - out_window->j0 + 1) >
        INT32_MAX / 2)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give the field a zone",
                            "the layer \"%s\" has too many samples there", l->name);
    return US_OK;
}

us_status usi_field_open(const char *path, const char *layer, const double zone[4], double memory,
                         const us_allocator *allocator, us_height_field **out_field, us_error *err) {
    if (!(memory > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "write memory=\"200 MB\", for example",
                            "invalid memory for tiles of a site: %g bytes", memory);
    us_site *site = NULL;
    us_status status = us_site_open(path, allocator, &site, err);
    if (status) return status;
    us_site_info info = us_site_get_info(site);
    int32_t which = layer ? usi_field_layer(&info, layer) : 0;
    const us_layer_info *l = &info.layer[which < 0 ? 0 : which];
    usi_window w = {0, 0, 0, 0};
    status = which < 0 ? no_layer(&info, layer, err) : layer_zone(&info, which, zone, &w, err);
    us_height_field *f = status ? NULL : usi_alloc(allocator, sizeof *f, USI_ALIGN);
    if (!f) {
        us_site_close(site);
        return status ? status : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a height field");
    }
    *f = (us_height_field){.allocator = *allocator,
                           .bytes = sizeof *f,
                           .dx = l->dx,
                           .dy = l->dy,
                           .low = l->low,
                           .high = l->high};
    f->n_x = w.i1 - w.i0 + 1;
    f->n_y = w.j1 - w.j0 + 1;
    f->n_tile_x = (f->n_x - 2) / USI_FIELD_TILE + 1;
    f->hash = us_hash_bytes(info.hash, &w, sizeof w);
    if (which > 0) f->hash = us_hash_bytes(f->hash, l->name, strlen(l->name));
    status = usi_pager_create(site, which, w, memory < 0x1p62 ? (size_t)memory : SIZE_MAX, allocator,
                              &f->pager, err);
    if (status) {
        usi_release(allocator, f, sizeof *f, USI_ALIGN);
        return status;
    }
    f->height = usi_pager_heights(f->pager);
    f->tile = usi_pager_extremes(f->pager);
    f->p_SF = us_vec3_make(0.5 * (w.i0 + w.i1 - (l->n_x - 1)) * l->dx,
                           0.5 * (w.j0 + w.j1 - (l->n_y - 1)) * l->dy, 0);
    *out_field = f;
    return US_OK;
}
