// Ruts on the page: which tiles of the patches have changed, and the ground that they lie on.
#include "view/view__ruts.h"

#include <math.h>
#include <string.h>

#include "view/view__asset.h"
#include "view/view__ground.h"

static const double PERIOD = 0.1;  // s between two looks at the patches

void usi_ruts_init(usi_ruts *ruts, const us_allocator *allocator) {
    memset(ruts, 0, sizeof *ruts);
    ruts->allocator = *allocator;
    ruts->oldest = ruts->newest = -1;
    pthread_mutex_init(&ruts->lock, NULL);
}

static void forget(usi_ruts *ruts) {
    const us_allocator *a = &ruts->allocator;
    for (int32_t i = 0; i < ruts->n; i++)
        usi_release(a, ruts->rut[i].change, USI_VIEW_RUT_COLUMNS * sizeof(int16_t), _Alignof(int16_t));
    for (int32_t i = 0; i < ruts->n_deformable; i++)
        usi_release(a, ruts->patch[i].slot, (size_t)ruts->patch[i].cap * sizeof *ruts->patch[i].slot,
                    _Alignof(max_align_t));
    ruts->n = ruts->n_deformable = 0;
    ruts->oldest = ruts->newest = -1;
    ruts->revision = 0;
}

void usi_ruts_fini(usi_ruts *ruts) {
    forget(ruts);
    usi_release(&ruts->allocator, ruts->rut, (size_t)ruts->cap * sizeof *ruts->rut, _Alignof(max_align_t));
    pthread_mutex_destroy(&ruts->lock);
}

// ---------------------------------------------------------------- taking

static void begin_revision(usi_ruts *ruts, const us_sim *sim, uint32_t revision) {
    forget(ruts);
    int32_t n = us_sim_n_deformable(sim);
    for (int32_t i = 0; i < n && i < USI_RUTS_DEFORMABLES; i++) {
        ruts->patch[ruts->n_deformable++] =
            (usi_deformable_view){.info = us_sim_get_deformable(sim, i), .is_behind = true};
    }
    ruts->revision = revision;
}

static int32_t tile_side(int32_t n, int32_t at) {
    return n - at * US_DEFORMABLE_TILE < US_DEFORMABLE_TILE ? n - at * US_DEFORMABLE_TILE
                                                            : US_DEFORMABLE_TILE;
}

static int32_t new_rut(usi_ruts *ruts, int32_t patch, int32_t u, int32_t v) {
    if (ruts->n >= USI_RUTS_TILES) return -1;
    if (usi_grow(&ruts->allocator, (void **)&ruts->rut, ruts->n, &ruts->cap, sizeof *ruts->rut)) return -1;
    int16_t *change = usi_alloc(&ruts->allocator, USI_VIEW_RUT_COLUMNS * sizeof *change, _Alignof(int16_t));
    if (!change) return -1;
    memset(change, 0, USI_VIEW_RUT_COLUMNS * sizeof *change);
    ruts->rut[ruts->n] =
        (usi_rut){.patch = patch, .u = u, .v = v, .older = -1, .newer = -1, .change = change};
    return ruts->n++;
}

// To the end of the list, with a new stamp.
static void renew(usi_ruts *ruts, int32_t i) {
    usi_rut *r = &ruts->rut[i];
    if (r->stamp) {
        if (r->older >= 0) ruts->rut[r->older].newer = r->newer;
        if (r->newer >= 0) ruts->rut[r->newer].older = r->older;
        if (ruts->oldest == i) ruts->oldest = r->newer;
        if (ruts->newest == i) ruts->newest = r->older;
    }
    r->older = ruts->newest;
    r->newer = -1;
    if (ruts->newest >= 0) ruts->rut[ruts->newest].newer = i;
    ruts->newest = i;
    if (ruts->oldest < 0) ruts->oldest = i;
    r->stamp = ++ruts->stamp;
}

// The greatest size of a change. Sizes of floats are in the order of their bits, and whole numbers are
// compared eight at a time.
static float greatest(const float *x, int32_t n) {
    uint32_t most = 0;
    for (int32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    float size;
    memcpy(&size, &most, sizeof size);
    return size;
}

// As whole numbers of a unit that fits the tile's greatest change. Columns that the last tiles of a patch do
// not have are 0.
static void copy(usi_ruts *ruts, int32_t i, const us_sim *sim, uint32_t version) {
    usi_rut *r = &ruts->rut[i];
    const us_deformable_info *patch = &ruts->patch[r->patch].info;
    const int32_t n_x = tile_side(patch->n_x, r->u), n_y = tile_side(patch->n_y, r->v);
    bool is_known =
        version && us_sim_get_deformable_tile(sim, r->patch, r->u, r->v, NULL, ruts->scratch) == US_OK;
    const float most = is_known ? greatest(ruts->scratch, n_x * n_y) : 0,
                scale = most > 0 ? INT16_MAX / most : 0, unit = most / INT16_MAX;
    bool is_other = r->stamp == 0 || unit != r->unit;
    for (int32_t y = 0; y < n_y; y++) {
        int16_t row[US_DEFORMABLE_TILE] = {0};
        for (int32_t x = 0; x < n_x && most > 0; x++)
            row[x] = (int16_t)lrintf(ruts->scratch[y * n_x + x] * scale);
        is_other |= memcmp(row, &r->change[y * US_DEFORMABLE_TILE], sizeof row) != 0;
        memcpy(&r->change[y * US_DEFORMABLE_TILE], row, sizeof row);
    }
    r->version = version;
    r->unit = unit;
    if (is_other) renew(ruts, i);
}

// Makes the list of a patch's touched tiles longer. False: there is no memory.
static bool list_touched(usi_ruts *ruts, usi_deformable_view *patch, int32_t n) {
    for (; patch->n < n; patch->n++) {
        if (usi_grow(&ruts->allocator, (void **)&patch->slot, patch->n, &patch->cap, sizeof *patch->slot))
            return false;
        patch->slot[patch->n] = -1;
    }
    return true;
}

// After time has jumped the touched tiles are others, and numbered otherwise. What is untouched now is level
// again.
static void find_again(usi_ruts *ruts, const us_sim *sim) {
    for (int32_t i = 0; i < ruts->n_deformable; i++) {
        ruts->patch[i].n = ruts->patch[i].next = 0;
        ruts->patch[i].is_behind = true;
    }
    for (int32_t i = 0; i < ruts->n; i++) {
        usi_rut *r = &ruts->rut[i];
        usi_deformable_view *patch = &ruts->patch[r->patch];
        int32_t k = us_sim_find_deformable_tile(sim, r->patch, r->u, r->v);
        // Versions of another past say nothing. Tiles that are the same all the same are not sent again.
        r->version = UINT32_MAX;
        if (k < 0)
            copy(ruts, i, sim, 0);
        else if (list_touched(ruts, patch, k + 1))
            patch->slot[k] = i;
    }
}

// Looks round a patch's touched tiles from where it last stopped; how many may still be taken with this
// frame.
static int32_t look_at_patch(usi_ruts *ruts, const us_sim *sim, int32_t b, int32_t left) {
    usi_deformable_view *patch = &ruts->patch[b];
    us_deformable_info info = us_sim_get_deformable(sim, b);
    if (!patch->is_behind && info.digest == patch->digest) return left;
    patch->is_behind = false;
    if (!list_touched(ruts, patch, info.n_touched)) return left;
    const int32_t n = info.n_touched;
    for (int32_t k = 0; k < n; k++, patch->next = patch->next + 1 < n ? patch->next + 1 : 0) {
        int32_t u = 0, v = 0, *slot = &patch->slot[patch->next];
        us_sim_get_deformable_touched(sim, b, patch->next, &u, &v);
        uint32_t version = us_sim_get_deformable_version(sim, b, u, v);
        if (*slot >= 0 ? ruts->rut[*slot].version == version : version == 0) continue;
        if (left == 0) {
            patch->is_behind = true;
            break;
        }
        if (*slot < 0 && (*slot = new_rut(ruts, b, u, v)) < 0) continue;
        copy(ruts, *slot, sim, version);
        left--;
    }
    patch->digest = info.digest;
    return left;
}

void usi_ruts_take(usi_ruts *ruts, const us_sim *sim, uint32_t revision, uint64_t jump, double now) {
    if (now < ruts->due && ruts->revision == revision) return;
    if (pthread_mutex_trylock(&ruts->lock)) return;
    ruts->due = now + PERIOD;
    if (ruts->revision != revision) begin_revision(ruts, sim, revision);
    if (ruts->jump != jump) {
        ruts->jump = jump;
        find_again(ruts, sim);
    }
    int32_t left = USI_RUTS_AT_ONCE;
    for (int32_t i = 0; i < ruts->n_deformable; i++) {
        left = look_at_patch(ruts, sim, i, left);
        if (ruts->patch[i].is_behind) ruts->due = now;
    }
    pthread_mutex_unlock(&ruts->lock);
}

// ---------------------------------------------------------------- giving

int32_t usi_ruts_put(usi_ruts *ruts, uint32_t revision, uint64_t *stamp, uint8_t *at) {
    int32_t n = 0;
    pthread_mutex_lock(&ruts->lock);
    if (ruts->revision == revision && ruts->n > 0 && ruts->stamp > *stamp) {
        int32_t i = ruts->newest;
        while (ruts->rut[i].older >= 0 && ruts->rut[ruts->rut[i].older].stamp > *stamp)
            i = ruts->rut[i].older;
        for (; i >= 0 && n < USI_RUTS_IN_FRAME; i = ruts->rut[i].newer, n++) {
            const usi_rut *r = &ruts->rut[i];
            at = usi_view_put_rut(at, r->patch, r->u, r->v, r->unit, r->change);
            *stamp = r->stamp;
        }
    }
    pthread_mutex_unlock(&ruts->lock);
    return n;
}

bool usi_ruts_get_deformables(usi_ruts *ruts, uint32_t revision, int32_t *out_n,
                              us_deformable_info out[USI_RUTS_DEFORMABLES]) {
    pthread_mutex_lock(&ruts->lock);
    bool is_there = ruts->revision == revision;
    *out_n = is_there ? ruts->n_deformable : 0;
    for (int32_t i = 0; i < *out_n; i++)
        out[i] = ruts->patch[i].info;
    pthread_mutex_unlock(&ruts->lock);
    return is_there;
}

// ---------------------------------------------------------------- the ground below

// The height of a cell's two triangles, split as in a collision, at a place within it.
static double height_in(const float *z, int32_t n_i, double x, double y) {
    int64_t i = (int64_t)floor(x), j = (int64_t)floor(y);
    const float *p = z + j * n_i + i, *q = p + n_i;
    double fx = x - (double)i, fy = y - (double)j;
    if (fx >= fy) return p[0] + fx * (p[1] - p[0]) + fy * (q[1] - p[1]);
    return p[0] + fy * (q[0] - p[0]) + fx * (q[1] - q[0]);
}

static double clamped(double x, double low, double high) { return fmin(fmax(x, low), high); }

// Where column (i, j) of a patch lies on the ground, in samples.
static us_vec3 sample_of(const usi_ground *ground, const us_deformable_info *patch, us_pose X_GB, int64_t i,
                         int64_t j) {
    us_vec3 p_BC = {(clamped((double)i, 0, patch->n_x - 1) - 0.5 * (patch->n_x - 1)) * patch->spacing,
                    (clamped((double)j, 0, patch->n_y - 1) - 0.5 * (patch->n_y - 1)) * patch->spacing, 0};
    us_vec3 p_GC = us_pose_point(X_GB, p_BC);
    return (us_vec3){clamped(p_GC.x / ground->dx + 0.5 * (ground->n_x - 1), 0, ground->n_x - 1),
                     clamped(p_GC.y / ground->dy + 0.5 * (ground->n_y - 1), 0, ground->n_y - 1), X_GB.p.z};
}

static us_status fill(const usi_ground *ground, const us_deformable_info *patch, us_pose X_GB, int32_t u,
                      int32_t v, const us_allocator *allocator, float *out, us_error *err) {
    const int64_t i0 = (int64_t)u * US_DEFORMABLE_TILE - 1, j0 = (int64_t)v * US_DEFORMABLE_TILE - 1;
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int k = 0; k < 4; k++) {
        us_vec3 p = sample_of(ground, patch, X_GB, i0 + (k & 1) * (USI_RUTS_DEFORMABLE_SIDE - 1),
                              j0 + (k >> 1) * (USI_RUTS_DEFORMABLE_SIDE - 1));
        low[0] = fmin(low[0], p.x);
        high[0] = fmax(high[0], p.x);
        low[1] = fmin(low[1], p.y);
        high[1] = fmax(high[1], p.y);
    }
    // One more each way: for the far side of the last cell, and because a turned tile may bulge by rounding.
    int64_t x0 = (int64_t)floor(low[0]) - 1, y0 = (int64_t)floor(low[1]) - 1;
    int64_t n_i = (int64_t)floor(high[0]) + 3 - x0, n_j = (int64_t)floor(high[1]) + 3 - y0;
    if (!(n_i > 0 && n_j > 0 && n_i * n_j <= USI_RUTS_CELLS))
        return us_error_set(err, US_ERR_LIMIT, NULL, "use columns that are not much coarser than the ground",
                            "a tile of the bed is too large to show");
    size_t size = (size_t)(n_i * n_j) * sizeof(float);
    float *z = usi_alloc(allocator, size, _Alignof(float));
    if (!z) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the ground below a bed");
    us_status status = usi_ground_window(ground, allocator, 0, x0, y0, (int32_t)n_i, (int32_t)n_j, z, err);
    for (int64_t j = 0; j < USI_RUTS_DEFORMABLE_SIDE && !status; j++) {
        for (int64_t i = 0; i < USI_RUTS_DEFORMABLE_SIDE; i++) {
            us_vec3 p = sample_of(ground, patch, X_GB, i0 + i, j0 + j);
            *out++ = (float)(height_in(z, (int32_t)n_i, p.x - (double)x0, p.y - (double)y0) - p.z);
        }
    }
    usi_release(allocator, z, size, _Alignof(float));
    return status;
}

// The photograph of the tile, from its first column to the next tile's.
static us_status photograph(const usi_ground *ground, const us_deformable_info *patch, us_pose X_GB,
                            int32_t u, int32_t v, const us_allocator *allocator, uint8_t *out,
                            us_error *err) {
    us_vec3 p_BC = {(u * US_DEFORMABLE_TILE - 0.5 * (patch->n_x - 1)) * patch->spacing,
                    (v * US_DEFORMABLE_TILE - 0.5 * (patch->n_y - 1)) * patch->spacing, 0};
    us_vec3 p_GC = us_pose_point(X_GB, p_BC);
    double side = (double)US_DEFORMABLE_TILE * patch->spacing;
    return usi_ground_picture(ground, allocator, p_GC.x, p_GC.y, side, side, USI_RUTS_PIXELS, out, err);
}

us_status usi_ruts_ground(usi_ruts *ruts, const usi_revision *revision, const char *name,
                          const us_allocator *allocator, void **out_bytes, size_t *out_length,
                          us_error *err) {
    us_deformable_info patches[USI_RUTS_DEFORMABLES];
    int32_t n_deformable, at[3];
    const char *ending = "";
    usi_ground ground;
    usi_ruts_get_deformables(ruts, revision->number, &n_deformable, patches);
    bool is_name = usi_asset_scan(name, "/_", at, &ending) && at[0] < n_deformable,
         is_photo = strcmp(ending, ".photo") == 0;
    const us_deformable_info *patch =
        is_name && (is_photo || strcmp(ending, ".field") == 0) ? &patches[at[0]] : NULL;
    const us_shape_def *shape = patch ? us_spec_view_shape(revision->spec, patch->shape) : NULL;
    if (!shape || at[1] >= patch->n_tile_x || at[2] >= patch->n_tile_y)
        return us_error_set(err, US_ERR_NAME, NULL, "take the names from the message \"beds\"",
                            "there is no tile \"%.60s\" of a bed", name);
    us_status status = usi_ground_open(shape, allocator, &ground, err);
    if (status) return status;
    us_pose X_GB = us_pose_mul(us_pose_inverse(shape->X_BG), patch->X_WB);
    usi_bytes bytes;
    usi_bytes_init(&bytes, allocator, USI_ASSET_LIMIT);
    void *room =
        usi_bytes_room(&bytes, 4 * (size_t)(is_photo ? USI_RUTS_PIXELS * USI_RUTS_PIXELS
                                                     : USI_RUTS_DEFORMABLE_SIDE * USI_RUTS_DEFORMABLE_SIDE));
    if (!room) {
        status = US_ERR_MEMORY;
    } else if (is_photo) {
        status = photograph(&ground, patch, X_GB, at[1], at[2], allocator, room, err);
    } else {
        status = fill(&ground, patch, X_GB, at[1], at[2], allocator, room, err);
    }
    usi_ground_close(&ground);
    char *taken = NULL;
    if (!status) {
        status = usi_bytes_take(&bytes, &taken, out_length);
    } else {
        usi_bytes_fini(&bytes);
    }
    *out_bytes = taken;
    return status;
}
