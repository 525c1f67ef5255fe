// Height fields of sites: as large as the ground, in memory only where somebody is.
#include <stdio.h>

#include "geom/geom.h"

// A zone's end may miss a sample by rounding: 1e-6 of the spacing.
static const double SLACK = 1e-6;

static us_status outside(const us_layer_info *l, us_error *err) {
    double x = 0.5 * (l->n_x - 1) * l->dx, y = 0.5 * (l->n_y - 1) * l->dy;
    char remedy[200];
    snprintf(remedy, sizeof remedy, "write x0 y0 x1 y1 between %.9g %.9g and %.9g %.9g, with at least 2 samples each way", -x, -y, x, y);
    return us_error_set(err, US_ERR_VALUE, NULL, remedy, "the zone is empty, or reaches beyond the site");
}

static bool samples_between(double from, double to, double spacing, int32_t n, int32_t *out_first, int32_t *out_last) {
    double half = 0.5 * (n - 1), a = ceil(from / spacing + half - SLACK), b = floor(to / spacing + half + SLACK);
    if (!(a >= 0 && b <= n - 1 && b - a >= 1)) return false;
    *out_first = (int32_t)a, *out_last = (int32_t)b;
    return true;
}

us_status usi_field_zone(const us_site_info *info, const double zone[4], usi_window *out_window, us_error *err) {
    const us_layer_info *l = &info->layer[0];
    bool is_all = zone[0] == 0 && zone[1] == 0 && zone[2] == 0 && zone[3] == 0;
    *out_window = (usi_window){0, l->n_x - 1, 0, l->n_y - 1};
    if (!is_all && (!samples_between(zone[0], zone[2], l->dx, l->n_x, &out_window->i0, &out_window->i1) ||
                    !samples_between(zone[1], zone[3], l->dy, l->n_y, &out_window->j0, &out_window->j1)))
        return outside(l, err);
    int64_t n_x = out_window->i1 - out_window->i0 + 1, n_y = out_window->j1 - out_window->j0 + 1;
    // Cells and their two triangles are numbered by 32-bit integers.
    if (n_x * n_y > INT32_MAX / 2)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give the field a zone", "a height field of %lld by %lld samples is too large", (long long)n_x,
                            (long long)n_y);
    return US_OK;
}

us_status usi_field_open(const char *path, const double zone[4], double memory, const us_allocator *allocator, us_height_field **out_field,
                         us_error *err) {
    if (!(memory > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "write memory=\"200 MB\", for example", "%g bytes are no memory for tiles of a site", memory);
    us_site *site = NULL;
    us_status status = us_site_open(path, allocator, &site, err);
    if (status) return status;
    us_site_info info = us_site_get_info(site);
    const us_layer_info *l = &info.layer[0];
    usi_window w;
    status = usi_field_zone(&info, zone, &w, err);
    us_height_field *f = status ? NULL : usi_alloc(allocator, sizeof *f, USI_ALIGN);
    if (!f) {
        us_site_close(site);
        return status ? status : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a height field");
    }
    *f = (us_height_field){.allocator = *allocator, .bytes = sizeof *f, .dx = l->dx, .dy = l->dy, .low = l->low, .high = l->high};
    f->n_x = w.i1 - w.i0 + 1, f->n_y = w.j1 - w.j0 + 1;
    f->n_tile_x = (f->n_x - 2) / USI_FIELD_TILE + 1;
    f->hash = us_hash_bytes(info.hash, &w, sizeof w);
    status = usi_pager_create(site, w, memory < 0x1p62 ? (size_t)memory : SIZE_MAX, allocator, &f->pager, err);
    if (status) {
        usi_release(allocator, f, sizeof *f, USI_ALIGN);
        return status;
    }
    f->height = usi_pager_heights(f->pager);
    f->tile = usi_pager_extremes(f->pager);
    f->p_SF = us_vec3_make(0.5 * (w.i0 + w.i1 - (l->n_x - 1)) * l->dx, 0.5 * (w.j0 + w.j1 - (l->n_y - 1)) * l->dy, 0);
    *out_field = f;
    return US_OK;
}
