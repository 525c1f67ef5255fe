// Tiles of ground for the page: cut out of a height field's samples, or put together from the tiles of a
// site.
#include "view/view__ground.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : least(i, n - 1); }

us_status usi_ground_open(const us_shape_def *shape, const us_allocator *allocator, usi_ground *out,
                          us_error *err) {
    bool is_ground = shape->kind == US_SHAPE_HEIGHT_FIELD && (shape->heights || shape->site);
    *out = (usi_ground){.heights = shape->site ? NULL : shape->heights,
                        .n_x = shape->n_x,
                        .n_y = shape->n_y,
                        .dx = shape->size[0],
                        .dy = shape->size[1],
                        .n_level = 1,
                        .colour_index = -1};
    if (is_ground && shape->site) {
        us_status status = us_site_open(shape->site, allocator, &out->site, err);
        if (status) return status;
        us_site_info info = us_site_get_info(out->site);
        out->height = info.layer[0];
        out->n_x = out->height.n_x;
        out->n_y = out->height.n_y;
        out->dx = out->height.dx;
        out->dy = out->height.dy;
        out->colour_index = us_site_find_layer(out->site, "colour");
        if (out->colour_index >= 0) out->colour = info.layer[out->colour_index];
        if (out->colour_index >= 0 && out->colour.type != US_LAYER_COLOUR) out->colour_index = -1;
    }
    if (!is_ground || out->n_x < 2 || out->n_y < 2) {
        usi_ground_close(out);
        return us_error_set(err, US_ERR_NAME, NULL, "see \"ground\" in /api/world",
                            "this shape has no tiles of ground");
    }
    int64_t cells = (out->n_x > out->n_y ? out->n_x : out->n_y) - 1;
    while (((int64_t)USI_GROUND_TILE << (out->n_level - 1)) < cells)
        out->n_level++;
    return US_OK;
}

void usi_ground_close(usi_ground *ground) {
    us_site_close(ground->site);
    ground->site = NULL;
}

void usi_ground_extremes(const usi_ground *ground, double *out_low, double *out_high) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0, n = ground->site ? 0 : (size_t)ground->n_x * (size_t)ground->n_y; i < n; i++) {
        low = fmin(low, ground->heights[i]);
        high = fmax(high, ground->heights[i]);
    }
    *out_low = ground->site ? ground->height.low : low;
    *out_high = ground->site ? ground->height.high : high;
}

// ---------------------------------------------------------------- windows

// A window of a layer: the tiles of the site that it meets, one after another, each of `each` bytes a sample.
// Steps of 2^skip samples of the level.
typedef struct window {
    int32_t layer, level, skip;
    int64_t i0, j0, n_x, n_y;  // of the level
    int32_t n_i, n_j;
    size_t each;
} window;

static us_status read_site(const us_site *site, const us_allocator *allocator, const window *w, void *out,
                           us_error *err) {
    const size_t room = (size_t)US_SITE_TILE * US_SITE_TILE * w->each;
    uint8_t *tile = usi_alloc(allocator, room, _Alignof(max_align_t));
    if (!tile) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a tile of the site");
    // Both coordinates grow with the window's: each tile is met in one rectangle of it.
    us_status status = US_OK;
    for (int32_t j = 0, j_end; j < w->n_j && !status; j = j_end) {
        int64_t v = within((w->j0 + j) * (1 << w->skip), w->n_y) / US_SITE_TILE;
        for (j_end = j + 1;
             j_end < w->n_j && within((w->j0 + j_end) * (1 << w->skip), w->n_y) / US_SITE_TILE == v;)
            j_end++;
        for (int32_t i = 0, i_end; i < w->n_i && !status; i = i_end) {
            int64_t u = within((w->i0 + i) * (1 << w->skip), w->n_x) / US_SITE_TILE;
            for (i_end = i + 1;
                 i_end < w->n_i && within((w->i0 + i_end) * (1 << w->skip), w->n_x) / US_SITE_TILE == u;)
                i_end++;
            int32_t side_x = 0, side_y = 0;
            if (!us_site_tile_size(site, w->layer, w->level, (int32_t)u, (int32_t)v, &side_x, &side_y))
                status = us_error_set(err, US_ERR_NAME, NULL, NULL, "the site has no such tile");
            if (!status) status = us_site_read(site, w->layer, w->level, (int32_t)u, (int32_t)v, tile, err);
            for (int32_t b = j; b < j_end && !status; b++) {
                int64_t y = within(within((w->j0 + b) * (1 << w->skip), w->n_y) - v * US_SITE_TILE, side_y);
                for (int32_t a = i; a < i_end; a++) {
                    int64_t x =
                        within(within((w->i0 + a) * (1 << w->skip), w->n_x) - u * US_SITE_TILE, side_x);
                    memcpy((uint8_t *)out + ((size_t)b * (size_t)w->n_i + (size_t)a) * w->each,
                           tile + (size_t)(y * side_x + x) * w->each, w->each);
                }
            }
        }
    }
    usi_release(allocator, tile, room, _Alignof(max_align_t));
    return status;
}

// The samples of a layer at one of its levels, or at a coarser one than it has: every so many of its
// coarsest.
static window window_of(const us_layer_info *layer, int32_t index, int32_t level) {
    int32_t kept = level < layer->n_level ? level : layer->n_level - 1;
    int64_t step = (int64_t)1 << kept;
    return (window){.layer = index,
                    .level = kept,
                    .skip = level - kept,
                    .n_x = (layer->n_x + step - 1) / step,
                    .n_y = (layer->n_y + step - 1) / step,
                    .each = layer->type == US_LAYER_REGION ? 1 : 4};
}

us_status usi_ground_window(const usi_ground *ground, const us_allocator *allocator, int32_t level,
                            int64_t i0, int64_t j0, int32_t n_i, int32_t n_j, float *out, us_error *err) {
    if (ground->site) {
        window w = window_of(&ground->height, 0, level);
        w.i0 = i0;
        w.j0 = j0;
        w.n_i = n_i;
        w.n_j = n_j;
        return read_site(ground->site, allocator, &w, out, err);
    }
    for (int32_t j = 0; j < n_j; j++) {
        const double *row =
            ground->heights + within((j0 + j) * ((int64_t)1 << level), ground->n_y) * ground->n_x;
        for (int32_t i = 0; i < n_i; i++)
            *out++ = (float)row[within((i0 + i) * ((int64_t)1 << level), ground->n_x)];
    }
    return US_OK;
}

// ---------------------------------------------------------------- tiles

static us_status check_tile(const usi_ground *ground, int32_t level, int32_t u, int32_t v, us_error *err) {
    int64_t side = level >= 0 && level < ground->n_level ? (int64_t)USI_GROUND_TILE << level : 0;
    if (side && u >= 0 && v >= 0 && u * side < ground->n_x - 1 && v * side < ground->n_y - 1) return US_OK;
    return us_error_set(err, US_ERR_NAME, NULL, "see \"ground\" in /api/world",
                        "there is no tile %d, %d of level %d", (int)u, (int)v, (int)level);
}

us_status usi_ground_tile(const usi_ground *ground, const us_allocator *allocator, int32_t level, int32_t u,
                          int32_t v, float *out, us_error *err) {
    us_status status = check_tile(ground, level, u, v, err);
    if (status) return status;
    return usi_ground_window(ground, allocator, level, (int64_t)u * USI_GROUND_TILE - USI_GROUND_BORDER,
                             (int64_t)v * USI_GROUND_TILE - USI_GROUND_BORDER, USI_GROUND_SIDE,
                             USI_GROUND_SIDE, out, err);
}

us_status usi_ground_photo(const usi_ground *ground, const us_allocator *allocator, int32_t level, int32_t u,
                           int32_t v, uint8_t *out, us_error *err) {
    us_status status = check_tile(ground, level, u, v, err);
    if (status) return status;
    double side = (double)((int64_t)USI_GROUND_TILE << level), width = ground->dx * side,
           height = ground->dy * side;
    return usi_ground_picture(ground, allocator, u * width - 0.5 * (ground->n_x - 1) * ground->dx,
                              v * height - 0.5 * (ground->n_y - 1) * ground->dy, width, height,
                              USI_GROUND_PIXELS, out, err);
}

// ---------------------------------------------------------------- the photograph

// Where the middles of a image's pixels lie along one axis, in colours of a level. One of level k is the
// mean of 2^k, and lies in their middle.
typedef struct span {
    double at, step;
    int64_t first;  // that is needed
    int32_t n;
} span;

static span span_of(double from, double size, int32_t n_pixel, int32_t n, double spacing, int32_t level) {
    double many = (double)((int64_t)1 << level), step = size / n_pixel;
    span s = {.at = ((from + 0.5 * step) / spacing + 0.5 * (n - 1) - 0.5 * (many - 1)) / many,
              .step = step / (spacing * many)};
    // Beyond the photograph's edge it goes on as it ends: there is no need to look far.
    s.first = (int64_t)floor(fmin(fmax(s.at, -1), n));
    s.n = (int32_t)(floor(fmin(fmax(s.at + s.step * (n_pixel - 1), -1), n)) - (double)s.first) + 2;
    return s;
}

static double within_span(const span *s, int32_t pixel) {
    return fmin(fmax(s->at + pixel * s->step - (double)s->first, 0), s->n - 1.001);
}

us_status usi_ground_picture(const usi_ground *ground, const us_allocator *allocator, double x, double y,
                             double width, double height, int32_t n, uint8_t *out, us_error *err) {
    if (ground->colour_index < 0)
        return us_error_set(err, US_ERR_NAME, NULL, NULL, "this ground has no photograph");
    const us_layer_info *layer = &ground->colour;
    int32_t k = 0;
    while (k + 1 < layer->n_level && layer->dx * (double)((int64_t)2 << k) <= width / n)
        k++;
    span across = span_of(x, width, n, layer->n_x, layer->dx, k),
         up = span_of(y, height, n, layer->n_y, layer->dy, k);
    window w = window_of(layer, ground->colour_index, k);
    w.i0 = across.first;
    w.j0 = up.first;
    w.n_i = across.n;
    w.n_j = up.n;
    size_t size = (size_t)w.n_i * (size_t)w.n_j * 4;
    uint8_t *colours = usi_alloc(allocator, size, 4);
    if (!colours)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a photograph of the ground");
    us_status status = read_site(ground->site, allocator, &w, colours, err);
    for (int32_t b = 0; b < n && !status; b++) {
        double fy = within_span(&up, b);
        int32_t j = (int32_t)fy;
        for (int32_t a = 0; a < n; a++) {
            double fx = within_span(&across, a);
            int32_t i = (int32_t)fx;
            const uint8_t *p = colours + 4 * ((size_t)j * (size_t)w.n_i + (size_t)i),
                          *q = p + 4 * (size_t)w.n_i;
            for (int c = 0; c < 4; c++) {
                double low = p[c] + (fx - i) * (p[4 + c] - p[c]), high = q[c] + (fx - i) * (q[4 + c] - q[c]);
                *out++ = (uint8_t)lrint(low + (fy - j) * (high - low));
            }
        }
    }
    usi_release(allocator, colours, size, 4);
    return status;
}
