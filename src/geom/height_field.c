// Height fields: a rectangle of samples, copied. Those of a site: height_field_site.c.
#include <string.h>

#include "geom/geom.h"

static us_status check_field(const double *heights, int32_t n_x, int32_t n_y, double dx, double dy,
                             us_error *err) {
    if (n_x < 2 || n_y < 2) {
        return us_error_set(err, US_ERR_VALUE, NULL, "use at least 2 samples each way",
                            "a height field of %d by %d samples has no cell", (int)n_x, (int)n_y);
    }
    // Cells and their two triangles are numbered by 32-bit integers.
    if ((int64_t)n_x * n_y > INT32_MAX / 2) {
        return us_error_set(err, US_ERR_LIMIT, NULL, "split it into several fields",
                            "a height field of %d by %d samples is too large", (int)n_x, (int)n_y);
    }
    if (!(isfinite(dx) && isfinite(dy) && dx > 0 && dy > 0)) {
        return us_error_set(err, US_ERR_VALUE, NULL, "use a spacing above 0, finite",
                            "the spacing of a height field is %g by %g", dx, dy);
    }
    for (size_t i = 0; i < (size_t)n_x * (size_t)n_y; i++) {
        if (!isfinite(heights[i])) {
            return us_error_set(err, US_ERR_VALUE, NULL, "fill the hole from its neighbours",
                                "the height of sample (%zu, %zu) is not finite", i % (size_t)n_x,
                                i / (size_t)n_x);
        }
    }
    return US_OK;
}

// Minimum and maximum height of each tile of cells.
static void find_extremes(us_height_field *f, int32_t n_tile_y) {
    for (int32_t t = 0; t < f->n_tile_x * n_tile_y; t++) {
        int32_t i0 = t % f->n_tile_x * USI_FIELD_TILE, j0 = t / f->n_tile_x * USI_FIELD_TILE;
        double low = INFINITY, high = -INFINITY;
        for (int32_t j = j0; j <= j0 + USI_FIELD_TILE && j < f->n_y; j++) {
            for (int32_t i = i0; i <= i0 + USI_FIELD_TILE && i < f->n_x; i++) {
                double h = f->height[(size_t)j * (size_t)f->n_x + (size_t)i];
                low = fmin(low, h);
                high = fmax(high, h);
            }
        }
        f->tile[t][0] = low;
        f->tile[t][1] = high;
    }
}

// How many blocks of a level there are along an axis of n samples.
static int32_t n_block(int32_t n, int32_t level) { return ((n - 2) >> usi_peak_shift(level)) + 1; }

// Levels above the tiles, until one block is all.
static int32_t n_peak_level(int32_t n_x, int32_t n_y) {
    int32_t n = 0;
    while (n < USI_FIELD_PEAKS && (n_block(n_x, n) > 1 || n_block(n_y, n) > 1))
        n++;
    return n;
}

// Each level from the one below.
static void find_peaks(us_height_field *f) {
    for (int32_t level = 1; level <= f->n_peak; level++) {
        const int32_t n_u = n_block(f->n_x, level), n_v = n_block(f->n_y, level);
        double *peak = f->peak[level - 1];
        for (int32_t k = 0; k < n_u * n_v; k++)
            peak[k] = -INFINITY;
        for (int32_t v = 0; v < n_block(f->n_y, level - 1); v++) {
            for (int32_t u = 0; u < n_block(f->n_x, level - 1); u++) {
                double *to = &peak[(size_t)(v / 4) * (size_t)n_u + (size_t)(u / 4)];
                const int shift = usi_peak_shift(level - 1);
                *to = fmax(*to, usi_field_peak(f, level - 1, u << shift, v << shift));
            }
        }
    }
}

// Levels of caps, until one block is all; 0: too wide for floats to tell columns apart.
static int32_t n_cap_level(int32_t n_x, int32_t n_y) {
    const int32_t widest = 1 << 20;
    if (n_x > widest || n_y > widest) return 0;
    int32_t n = 1;
    while (n < USI_FIELD_CAPS && (usi_cap_width(n_x, n - 1) > 1 || usi_cap_width(n_y, n - 1) > 1))
        n++;
    return n;
}

static size_t n_cap_of(int32_t n_x, int32_t n_y, int32_t level) {
    return 16 * (size_t)usi_cap_fours(n_x, level) * (size_t)usi_cap_fours(n_y, level);
}

static size_t n_cap(int32_t n_x, int32_t n_y, int32_t n_level) {
    size_t n = 0;
    for (int32_t level = 0; level < n_level; level++)
        n += n_cap_of(n_x, n_y, level);
    return n;
}

static float above_all(double height) { return nextafterf((float)height, INFINITY); }
static inline double greater(double a, double b) { return a > b ? a : b; }

// Each level from the one below.
static void find_caps(us_height_field *f) {
    if (f->n_cap == 0) return;
    f->cap_bits = 1;
    while (1 << f->cap_bits < f->n_x || 1 << f->cap_bits < f->n_y)
        f->cap_bits++;
    memset(f->cap, 0, n_cap(f->n_x, f->n_y, f->n_cap) * sizeof *f->cap);
    for (int32_t j = 0; j < f->n_y - 1; j++) {
        const double *h = f->height + (size_t)j * (size_t)f->n_x, *above = h + f->n_x;
        for (int32_t i = 0; i < f->n_x - 1; i++)
            f->cap[usi_cap_index(f->n_x, 0, i, j)] =
                above_all(greater(greater(h[i], h[i + 1]), greater(above[i], above[i + 1])) - f->low);
    }
    const float *from = f->cap;
    for (int32_t level = 1; level < f->n_cap; level++) {
        float *to = f->cap + n_cap(f->n_x, f->n_y, level);
        for (int32_t j = 0; j < usi_cap_width(f->n_y, level - 1); j++) {
            for (int32_t i = 0; i < usi_cap_width(f->n_x, level - 1); i++) {
                float *high = &to[usi_cap_index(f->n_x, level, i >> 2, j >> 2)];
                const float one = from[usi_cap_index(f->n_x, level - 1, i, j)];
                if (one > *high) *high = one;
            }
        }
        from = to;
    }
}

us_status us_height_field_create(const double *heights, int32_t n_x, int32_t n_y, double dx, double dy,
                                 const us_allocator *allocator, us_height_field **out_field, us_error *err) {
    if (!heights || !out_field)
        return us_error_set(err, US_ERR_ARG, NULL, "give heights and a place for the result",
                            "an argument is NULL");
    us_status status = check_field(heights, n_x, n_y, dx, dy, err);
    if (status) return status;

    // One block holds the struct and both arrays.
    us_allocator a = allocator ? *allocator : us_allocator_default();
    size_t n = (size_t)n_x * (size_t)n_y, bytes = sizeof(us_height_field),
           at = usi_carve(&bytes, n, sizeof(double));
    int32_t n_tile_x = (n_x - 2) / USI_FIELD_TILE + 1, n_tile_y = (n_y - 2) / USI_FIELD_TILE + 1;
    size_t at_tile = usi_carve(&bytes, (size_t)n_tile_x * (size_t)n_tile_y, 2 * sizeof(double));
    const int32_t n_peak = n_peak_level(n_x, n_y);
    size_t at_peak[USI_FIELD_PEAKS];
    for (int32_t k = 0; k < n_peak; k++)
        at_peak[k] =
            usi_carve(&bytes, (size_t)n_block(n_x, k + 1) * (size_t)n_block(n_y, k + 1), sizeof(double));
    const int32_t n_level = n_cap_level(n_x, n_y);
    const size_t at_cap = usi_carve(&bytes, n_cap(n_x, n_y, n_level), sizeof(float));
    us_height_field *f = usi_alloc(&a, bytes, USI_ALIGN);
    if (!f)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL,
                            "no memory for a height field of %d by %d samples", (int)n_x, (int)n_y);
    *f = (us_height_field){.allocator = a,
                           .bytes = bytes,
                           .n_x = n_x,
                           .n_y = n_y,
                           .dx = dx,
                           .dy = dy,
                           .low = heights[0],
                           .high = heights[0],
                           .n_tile_x = n_tile_x,
                           .n_peak = n_peak,
                           .n_cap = n_level};
    f->height = (double *)((char *)f + at);
    f->tile = (double(*)[2])(void *)((char *)f + at_tile);

    for (size_t i = 0; i < n; i++) {
        f->height[i] = heights[i];
        f->low = fmin(f->low, heights[i]);
        f->high = fmax(f->high, heights[i]);
    }
    find_extremes(f, n_tile_y);
    for (int32_t k = 0; k < n_peak; k++) {
        f->n_peak_x[k] = n_block(n_x, k + 1);
        f->peak[k] = (double *)(void *)((char *)f + at_peak[k]);
    }
    find_peaks(f);
    f->cap = (float *)(void *)((char *)f + at_cap);
    find_caps(f);
    *out_field = f;
    return US_OK;
}

// The cells of one axis that lie between two coordinates: false when there are none.
static bool cells_between(double x0, double x1, double spacing, int32_t n, int32_t *out_first,
                          int32_t *out_last) {
    double half = 0.5 * (n - 1), a = x0 / spacing + half, b = x1 / spacing + half;
    if (!(b >= 0 && a <= n - 1)) return false;
    *out_first = a > 0 ? (a < n - 2 ? (int32_t)a : n - 2) : 0;
    *out_last = b < n - 2 ? (int32_t)b : n - 2;
    return true;
}

double usi_field_top(const us_height_field *f, double x0, double y0, double x1, double y1) {
    int32_t i0, i1, j0, j1;
    double top = -INFINITY;
    if (!cells_between(x0, x1, f->dx, f->n_x, &i0, &i1) || !cells_between(y0, y1, f->dy, f->n_y, &j0, &j1))
        return top;
    for (int32_t v = j0 / USI_FIELD_TILE; v <= j1 / USI_FIELD_TILE; v++) {
        for (int32_t u = i0 / USI_FIELD_TILE; u <= i1 / USI_FIELD_TILE; u++) {
            if (f->tile[(size_t)v * (size_t)f->n_tile_x + (size_t)u][1] <= top) continue;
            int32_t a = u * USI_FIELD_TILE, b = v * USI_FIELD_TILE, end_i = a + USI_FIELD_TILE,
                    end_j = b + USI_FIELD_TILE;
            for (int32_t j = b > j0 ? b : j0; j <= (end_j < j1 + 1 ? end_j : j1 + 1); j++) {
                const double *row = f->height + (size_t)j * (size_t)f->n_x;
                for (int32_t i = a > i0 ? a : i0; i <= (end_i < i1 + 1 ? end_i : i1 + 1); i++)
                    top = row[i] > top ? row[i] : top;
            }
        }
    }
    return top;
}

void us_height_field_destroy(us_height_field *field) {
    if (!field) return;
    us_allocator a = field->allocator;
    usi_pager_destroy(field->pager);
    usi_release(&a, field, field->bytes, USI_ALIGN);
}
