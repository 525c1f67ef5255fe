// Ground and ruts for viewers: surfaces of triangles, or layers of a grid map.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/view__scenery.h"

static const float EARTH[4] = {0.45F, 0.36F, 0.27F, 1.0F};
static char frame[] = "map";

// Heights over a rectangle, x fastest, its middle at the origin.
typedef struct surface {
    int32_t n_x, n_y;
    double dx, dy;  // m
    float *z;
} surface;

// ---------------------------------------------------------------- triangles

// Whether the cell from sample (i, j) on is left out.
typedef bool leave_out_function(const void *context, int32_t i, int32_t j);

static void draw_triangles(usi_scenery_message *m, const surface *s, us_pose X, const float rgba[4],
                           leave_out_function *is_out, const void *context,
                           us_msg_triangle_list_primitive *out) {
    *out = (us_msg_triangle_list_primitive){
        .pose = usi_scenery_pose(X),
        .color = {(double)rgba[0], (double)rgba[1], (double)rgba[2], (double)rgba[3]}};
    USI_SCENERY_TAKE(m, out->points, s->n_x * s->n_y);
    USI_SCENERY_TAKE(m, out->indices, 6 * (s->n_x - 1) * (s->n_y - 1));
    if (m->is_full) return;
    for (int32_t k = 0; k < s->n_x * s->n_y; k++) {
        const int32_t i = k % s->n_x, j = k / s->n_x;
        out->points._buffer[k] = (us_msg_point){(i - 0.5 * (s->n_x - 1)) * s->dx,
                                                (j - 0.5 * (s->n_y - 1)) * s->dy, (double)s->z[k]};
    }
    uint32_t *at = out->indices._buffer;
    for (int32_t j = 0; j + 1 < s->n_y; j++) {
        for (int32_t i = 0; i + 1 < s->n_x; i++) {
            if (is_out && is_out(context, i, j)) continue;
            const uint32_t a = (uint32_t)(j * s->n_x + i), b = a + 1, c = b + (uint32_t)s->n_x, d = c - 1;
            const uint32_t both[6] = {a, b, c, a, c, d};  // as they collide: along the rising diagonal
            memcpy(at, both, sizeof both);
            at += 6;
        }
    }
    out->indices._length = (uint32_t)(at - out->indices._buffer);
}

// ---------------------------------------------------------------- grid maps

static char *kept_text(usi_scenery_message *m, const char *text) {
    char *copy = usi_scenery_take(m, strlen(text) + 1, 1);
    if (copy) memcpy(copy, text, strlen(text));
    return copy;
}

// A map of square cells. The first row and column of a layer are those of the greatest x and y, and a layer's
// columns stand one after the other.
static us_msg_grid_map *begin_map(usi_scenery_message *m, int32_t n_x, int32_t n_y, double cell, us_pose X,
                                  const char *const *layers, int32_t n_layer) {
    us_msg_grid_map *out = usi_scenery_take(m, 1, sizeof *out);
    if (!out) return NULL;
    out->header = (us_msg_header){usi_scenery_time(m->time), frame};
    out->info = (us_msg_grid_map_info){cell, n_x * cell, n_y * cell, usi_scenery_pose(X)};
    USI_SCENERY_TAKE(m, out->layers, n_layer);
    USI_SCENERY_TAKE(m, out->basic_layers, 1);
    USI_SCENERY_TAKE(m, out->data, n_layer);
    if (m->is_full || !out->basic_layers._buffer || !out->layers._buffer || !out->data._buffer) return NULL;
    out->basic_layers._buffer[0] = kept_text(m, layers[0]);
    for (int32_t i = 0; i < n_layer && !m->is_full; i++) {
        us_msg_float32_multi_array *data = &out->data._buffer[i];
        out->layers._buffer[i] = kept_text(m, layers[i]);
        USI_SCENERY_TAKE(m, data->layout.dim, 2);
        USI_SCENERY_TAKE(m, data->data, n_x * n_y);
        if (m->is_full) break;
        data->layout.dim._buffer[0] =
            (us_msg_multi_array_dimension){usi_text("column_index"), (uint32_t)n_y, (uint32_t)(n_x * n_y)};
        data->layout.dim._buffer[1] =
            (us_msg_multi_array_dimension){usi_text("row_index"), (uint32_t)n_x, (uint32_t)n_x};
    }
    return m->is_full ? NULL : out;
}

// The cell of sample (i, j), counted from the least x and y.
static float *cell_of(us_msg_grid_map *map, int32_t layer, int32_t n_x, int32_t n_y, int32_t i, int32_t j) {
    return &map->data._buffer[layer].data._buffer[(n_y - 1 - j) * n_x + (n_x - 1 - i)];
}

// Between the samples, which may lie closer in one direction than in the other.
static float height_at(const surface *s, double x, double y) {
    const double at_x = fmin(fmax(x / s->dx + 0.5 * (s->n_x - 1), 0), s->n_x - 1),
                 at_y = fmin(fmax(y / s->dy + 0.5 * (s->n_y - 1), 0), s->n_y - 1);
    const int32_t i = (int32_t)fmin(floor(at_x), s->n_x - 2), j = (int32_t)fmin(floor(at_y), s->n_y - 2);
    const double fx = at_x - i, fy = at_y - j;
    const float *p = s->z + (size_t)j * (size_t)s->n_x + i, *q = p + s->n_x;
    return (float)((1 - fy) * ((1 - fx) * (double)p[0] + fx * (double)p[1]) +
                   fy * ((1 - fx) * (double)q[0] + fx * (double)q[1]));
}

// ---------------------------------------------------------------- ground

static const us_shape_def *find_ground(const us_spec *spec, int32_t *at) {
    const int32_t n = us_spec_get_counts(spec).n_shape;
    for (; *at < n; (*at)++) {
        const us_shape_def *shape = us_spec_view_shape(spec, *at);
        if (shape->kind == US_SHAPE_HEIGHT_FIELD && shape->link == US_WORLD) return shape;
    }
    return NULL;
}

// Samples of the finest level that has no more of them each way. False where they cannot be read.
static bool sample_ground(usi_scenery_message *m, const us_shape_def *shape, int32_t most, surface *out) {
    usi_ground ground;
    const us_allocator *a = &m->arena->allocator;
    if (usi_ground_open(shape, a, &ground, NULL)) return false;
    int32_t level = 0;
    while ((ground.n_x - 1) >> level >= most || (ground.n_y - 1) >> level >= most)
        level++;
    const double step = (double)((int64_t)1 << level);
    *out = (surface){.n_x = ((ground.n_x - 1) >> level) + 1,
                     .n_y = ((ground.n_y - 1) >> level) + 1,
                     .dx = ground.dx * step,
                     .dy = ground.dy * step};
    out->z = usi_scenery_take(m, (size_t)out->n_x * (size_t)out->n_y, sizeof *out->z);
    const bool is_good = out->n_x > 1 && out->n_y > 1 && out->z &&
                         !usi_ground_window(&ground, a, level, 0, 0, out->n_x, out->n_y, out->z, NULL);
    usi_ground_close(&ground);
    return is_good;
}

// Where the middle of its samples lies: the last of a level may end before the field does.
static us_pose middle_of(const us_shape_def *shape, const surface *s, int32_t n_x, int32_t n_y) {
    const us_vec3 off = {0.5 * ((s->n_x - 1) * s->dx - (n_x - 1) * shape->size[0]),
                         0.5 * ((s->n_y - 1) * s->dy - (n_y - 1) * shape->size[1]), 0};
    return us_pose_mul(shape->X_BG, (us_pose){{1, 0, 0, 0}, off});
}

typedef struct touched_ground {
    const us_sim *sim;
    const surface *s;
    us_pose X_WS;
    int32_t shape;
} touched_ground;

static bool is_touched(const touched_ground *t, int32_t i, int32_t j) {
    const us_vec3 p_W = us_pose_point(t->X_WS, us_vec3_make((i - 0.5 * (t->s->n_x - 1)) * t->s->dx,
                                                            (j - 0.5 * (t->s->n_y - 1)) * t->s->dy, 0));
    for (int32_t b = 0; b < us_sim_n_deformable(t->sim) && b < USI_SCENERY_BEDS; b++) {
        const us_deformable_info bed = us_sim_get_deformable(t->sim, b);
        if (bed.shape != t->shape || bed.n_touched == 0) continue;
        const us_vec3 p = us_pose_point(us_pose_inverse(bed.X_WB), p_W);
        const double u = (p.x / bed.spacing + 0.5 * (bed.n_x - 1)) / US_DEFORMABLE_TILE,
                     v = (p.y / bed.spacing + 0.5 * (bed.n_y - 1)) / US_DEFORMABLE_TILE;
        if (u < 0 || v < 0 || u >= bed.n_tile_x || v >= bed.n_tile_y) continue;
        if (us_sim_find_deformable_tile(t->sim, b, (int32_t)u, (int32_t)v) >= 0) return true;
    }
    return false;
}

static bool is_under_ruts(const void *context, int32_t i, int32_t j) {
    const touched_ground *t = context;
    return is_touched(t, i, j) && is_touched(t, i + 1, j) && is_touched(t, i, j + 1) &&
           is_touched(t, i + 1, j + 1);
}

static const void *draw_grounds(usi_scenery_message *m, const usi_revision *revision, const us_sim *sim,
                                bool is_new) {
    us_msg_scene_update *out = usi_scenery_take(m, 1, sizeof *out);
    int32_t n = 0, at = 0;
    for (; find_ground(revision->spec, &at); at++)
        n++;
    if (!out || n == 0) return NULL;
    USI_SCENERY_TAKE(m, out->deletions, is_new);
    USI_SCENERY_TAKE(m, out->entities, n);
    if (m->is_full) return NULL;
    if (is_new)
        out->deletions._buffer[0] =
            (us_msg_scene_entity_deletion){usi_scenery_time(m->time), 1, usi_text("")};
    out->entities._length = 0;
    const us_shape_def *shape;
    for (at = 0; (shape = find_ground(revision->spec, &at)); at++) {
        surface s;
        if (!sample_ground(m, shape, USI_SCENERY_SAMPLES, &s)) continue;
        const us_pose X_WS = middle_of(shape, &s, shape->n_x, shape->n_y);
        const touched_ground touched = {sim, &s, X_WS, at};
        us_msg_scene_entity *e = &out->entities._buffer[out->entities._length++];
        char id[80];
        snprintf(id, sizeof id, "world/%.60s", shape->name ? shape->name : "ground");
        *e = usi_scenery_entity(m, kept_text(m, id));
        USI_SCENERY_TAKE(m, e->triangles, 1);
        if (m->is_full) return NULL;
        draw_triangles(m, &s, X_WS, shape->rgba, is_under_ruts, &touched, e->triangles._buffer);
    }
    return m->is_full ? NULL : out;
}

const void *usi_scenery_draw_ground(usi_scenery_message *m, const usi_revision *revision, const us_sim *sim,
                                    bool is_new) {
    if (m->sink->is_foxglove) return draw_grounds(m, revision, sim, is_new);
    static const char *const layers[] = {"elevation"};
    int32_t at = 0;
    surface s;
    const us_shape_def *shape = find_ground(revision->spec, &at);
    if (!shape || !sample_ground(m, shape, USI_SCENERY_CELLS, &s)) return NULL;
    us_pose X = middle_of(shape, &s, shape->n_x, shape->n_y);
    const double side = fmax(s.dx, s.dy), base = X.p.z;
    const int32_t n_x = (int32_t)floor((s.n_x - 1) * s.dx / side + 1e-9) + 1,
                  n_y = (int32_t)floor((s.n_y - 1) * s.dy / side + 1e-9) + 1;
    X.p.z = 0;  // heights are those of the frame
    us_msg_grid_map *map = begin_map(m, n_x, n_y, side, X, layers, 1);
    for (int32_t j = 0; j < n_y && map; j++) {
        for (int32_t i = 0; i < n_x; i++)
            *cell_of(map, 0, n_x, n_y, i, j) =
                (float)base + height_at(&s, (i - 0.5 * (n_x - 1)) * side, (j - 0.5 * (n_y - 1)) * side);
    }
    return map;
}

// ---------------------------------------------------------------- ruts

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static int32_t tile_side(int32_t n, int32_t at) {
    return least(n - at * US_DEFORMABLE_TILE, US_DEFORMABLE_TILE);
}

// Every second column, and the last ones.
static int32_t column_of(int32_t k, int32_t side) { return least(2 * k, side - 1); }

static void draw_tile(usi_scenery_message *m, const us_sim *sim, int32_t bed, int32_t u, int32_t v,
                      us_msg_scene_entity *out) {
    const us_deformable_info info = us_sim_get_deformable(sim, bed);
    const int32_t n_x = tile_side(info.n_x, u), n_y = tile_side(info.n_y, v);
    surface s = {.n_x = n_x / 2 + 1, .n_y = n_y / 2 + 1, .dx = 2 * info.spacing, .dy = 2 * info.spacing};
    float *all = usi_scenery_take(m, (size_t)US_DEFORMABLE_TILE * US_DEFORMABLE_TILE, sizeof *all);
    s.z = usi_scenery_take(m, (size_t)s.n_x * (size_t)s.n_y, sizeof *s.z);
    char id[60];
    snprintf(id, sizeof id, "ruts/%d/%d_%d", (int)bed, (int)u, (int)v);
    *out = usi_scenery_entity(m, kept_text(m, id));
    USI_SCENERY_TAKE(m, out->triangles, 1);
    if (m->is_full || s.n_x < 2 || s.n_y < 2 ||
        us_sim_get_deformable_tile(sim, bed, u, v, all, NULL) != US_OK) {
        out->triangles._length = 0;
        return;
    }
    for (int32_t k = 0; k < s.n_x * s.n_y; k++)
        s.z[k] = all[column_of(k / s.n_x, n_y) * n_x + column_of(k % s.n_x, n_x)];
    us_msg_triangle_list_primitive *t = out->triangles._buffer;
    draw_triangles(m, &s, info.X_WB, EARTH, NULL, NULL, t);
    if (m->is_full) return;
    // Columns stand where they are in the bed.
    for (int32_t k = 0; k < s.n_x * s.n_y; k++) {
        const int32_t i = u * US_DEFORMABLE_TILE + column_of(k % s.n_x, n_x),
                      j = v * US_DEFORMABLE_TILE + column_of(k / s.n_x, n_y);
        t->points._buffer[k].x = (i - 0.5 * (info.n_x - 1)) * info.spacing;
        t->points._buffer[k].y = (j - 0.5 * (info.n_y - 1)) * info.spacing;
    }
}

// The tiles that are other than they were sent, a few at a time.
static const void *draw_tiles(usi_scenery_message *m, const us_sim *sim, int32_t bed, int32_t n_touched,
                              usi_scenery_bed *sent, const us_allocator *allocator) {
    us_msg_scene_update *out = usi_scenery_take(m, 1, sizeof *out);
    if (!out) return NULL;
    USI_SCENERY_TAKE(m, out->entities, USI_SCENERY_TILES);
    if (m->is_full) return NULL;
    out->entities._length = 0;
    sent->is_behind = false;
    for (int32_t k = 0; k < n_touched; k++) {
        int32_t u = 0, v = 0;
        if (us_sim_get_deformable_touched(sim, bed, k, &u, &v)) continue;
        const uint32_t version = us_sim_get_deformable_version(sim, bed, u, v);
        if (k < sent->n && sent->version[k] == version) continue;
        if (out->entities._length == USI_SCENERY_TILES) {
            sent->is_behind = true;
            break;
        }
        if (k >= sent->n) {
            if (usi_grow(allocator, (void **)&sent->version, sent->n, &sent->cap, sizeof *sent->version))
                return NULL;
            sent->n = k + 1;
        }
        sent->version[k] = version;
        draw_tile(m, sim, bed, u, v, &out->entities._buffer[out->entities._length++]);
    }
    return m->is_full || out->entities._length == 0 ? NULL : out;
}

// The rectangle of tiles that were touched.
typedef struct tile_box {
    int32_t u0, v0, u1, v1;
} tile_box;

static tile_box touched_box(const us_sim *sim, int32_t bed, int32_t n_touched) {
    tile_box box = {INT32_MAX, INT32_MAX, -1, -1};
    for (int32_t k = 0; k < n_touched; k++) {
        int32_t u = 0, v = 0;
        if (us_sim_get_deformable_touched(sim, bed, k, &u, &v)) continue;
        box =
            (tile_box){least(box.u0, u), least(box.v0, v), u > box.u1 ? u : box.u1, v > box.v1 ? v : box.v1};
    }
    return box;
}

static void fill_tile(us_msg_grid_map *map, const us_deformable_info *info, tile_box box, int32_t step,
                      const int32_t n[2], int32_t u, int32_t v, const float *height, const float *change) {
    const int32_t n_x = tile_side(info->n_x, u), n_y = tile_side(info->n_y, v);
    for (int32_t y = 0; y < n_y; y++) {
        const int32_t j = (v - box.v0) * US_DEFORMABLE_TILE + y;
        if (j % step || j / step >= n[1]) continue;
        for (int32_t x = 0; x < n_x; x++) {
            const int32_t i = (u - box.u0) * US_DEFORMABLE_TILE + x;
            if (i % step || i / step >= n[0]) continue;
            *cell_of(map, 0, n[0], n[1], i / step, j / step) = height[y * n_x + x] + (float)info->X_WB.p.z;
            *cell_of(map, 1, n[0], n[1], i / step, j / step) = change[y * n_x + x];
        }
    }
}

// All that was touched, as it is now; what was not is no number.
static const void *draw_rut_map(usi_scenery_message *m, const us_sim *sim, int32_t bed,
                                const us_deformable_info *info) {
    static const char *const layers[] = {"elevation", "change"};
    const tile_box box = touched_box(sim, bed, info->n_touched);
    const int32_t end_x = least((box.u1 + 1) * US_DEFORMABLE_TILE, info->n_x),
                  end_y = least((box.v1 + 1) * US_DEFORMABLE_TILE, info->n_y),
                  first_x = box.u0 * US_DEFORMABLE_TILE, first_y = box.v0 * US_DEFORMABLE_TILE;
    const int32_t most = end_x - first_x > end_y - first_y ? end_x - first_x : end_y - first_y,
                  step = (most + USI_SCENERY_CELLS - 1) / USI_SCENERY_CELLS;
    const int32_t n[2] = {(end_x - first_x + step - 1) / step, (end_y - first_y + step - 1) / step};
    const us_vec3 p_BC = {(first_x + 0.5 * step * (n[0] - 1) - 0.5 * (info->n_x - 1)) * info->spacing,
                          (first_y + 0.5 * step * (n[1] - 1) - 0.5 * (info->n_y - 1)) * info->spacing, 0};
    us_pose X = us_pose_mul(info->X_WB, (us_pose){{1, 0, 0, 0}, p_BC});
    X.p.z = 0;
    us_msg_grid_map *map = begin_map(m, n[0], n[1], step * info->spacing, X, layers, 2);
    const size_t columns = (size_t)US_DEFORMABLE_TILE * US_DEFORMABLE_TILE;
    float *height = usi_scenery_take(m, columns, sizeof *height);
    float *change = usi_scenery_take(m, columns, sizeof *change);
    if (m->is_full) return NULL;
    for (int layer = 0; layer < 2; layer++) {
        for (int32_t k = 0; k < n[0] * n[1]; k++)
            map->data._buffer[layer].data._buffer[k] = NAN;
    }
    for (int32_t k = 0; k < info->n_touched; k++) {
        int32_t u = 0, v = 0;
        if (us_sim_get_deformable_touched(sim, bed, k, &u, &v) ||
            us_sim_get_deformable_tile(sim, bed, u, v, height, change))
            continue;
        fill_tile(map, info, box, step, n, u, v, height, change);
    }
    return map;
}

const void *usi_scenery_draw_ruts(usi_scenery_message *m, const us_sim *sim, int32_t bed,
                                  usi_scenery_bed *sent, const us_allocator *allocator) {
    const us_deformable_info info = us_sim_get_deformable(sim, bed);
    if (info.n_touched == 0 || (info.digest == sent->digest && !sent->is_behind)) return NULL;
    const void *out = m->sink->is_foxglove ? draw_tiles(m, sim, bed, info.n_touched, sent, allocator)
                                           : draw_rut_map(m, sim, bed, &info);
    if (!m->is_full) sent->digest = info.digest;
    return out;
}
