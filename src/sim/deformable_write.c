// The ground of a patch as a GeoTIFF: band 1 its height, band 2 how it has changed.
//
// Ground that came from a raster or a site lies where its source says, on Earth or elsewhere: the shape's
// frame is the local frame of the source, moved to its origin. Other ground lies in the world, in plain
// metres. Rows are made as they are asked for, from the north, a row of tiles at a time.
#include <limits.h>
#include <string.h>

#include "sim/sim.h"
#include "understudy/raster.h"

// Columns; a GeoTIFF of 16 GB before it is packed.
static const double MAX_COLUMNS = 2e9;

typedef struct writing {
    const us_sim *sim;
    int32_t patch;
    us_deformable_info info;
    int32_t x0, y0, x1, y1;  // columns; to and without the last
    int32_t v;               // the row of tiles that is here; -1: none yet
    double up;               // m, added to heights
    float *height, *change;  // US_DEFORMABLE_TILE rows of x1 - x0
} writing;

static int32_t min_of(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t max_of(int32_t a, int32_t b) { return a > b ? a : b; }

static us_status read_tiles(writing *w, int32_t v) {
    float height[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE], change[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE];
    const size_t wide = (size_t)(w->x1 - w->x0);
    int32_t n_y = min_of(w->info.n_y - v * US_DEFORMABLE_TILE, US_DEFORMABLE_TILE);
    for (int32_t u = w->x0 / US_DEFORMABLE_TILE; u * US_DEFORMABLE_TILE < w->x1; u++) {
        int32_t x = u * US_DEFORMABLE_TILE, n_x = min_of(w->info.n_x - x, US_DEFORMABLE_TILE),
                from = max_of(x, w->x0), to = min_of(x + n_x, w->x1);
        us_status status = us_sim_get_deformable_tile(w->sim, w->patch, u, v, height, change);
        if (status) return status;
        for (int32_t j = 0; j < n_y; j++) {
            const size_t at = (size_t)j * wide + (size_t)(from - w->x0),
                         source = (size_t)(j * n_x + from - x);
            memcpy(w->height + at, height + source, (size_t)(to - from) * sizeof *height);
            memcpy(w->change + at, change + source, (size_t)(to - from) * sizeof *change);
        }
    }
    w->v = v;
    return US_OK;
}

static us_status give_row(void *context, int32_t band, int32_t y, float *out, us_error *err) {
    writing *w = context;
    int32_t row = w->y0 + y;
    us_status status = row / US_DEFORMABLE_TILE == w->v ? US_OK : read_tiles(w, row / US_DEFORMABLE_TILE);
    if (status) {
        const us_error *why = &w->sim->contacts->residency_error;
        return us_error_set(err, status, NULL, why->remedy, "the ground below the bed cannot be read: %.300s",
                            why->message);
    }
    const size_t wide = (size_t)(w->x1 - w->x0);
    const float *from = (band == 0 ? w->height : w->change) + (size_t)(row % US_DEFORMABLE_TILE) * wide;
    for (size_t i = 0; i < wide; i++)
        out[i] = band == 0 ? (float)((double)from[i] + w->up) : from[i];
    return US_OK;
}

// The tiles that have changed, all together.
static bool find_changed(writing *w) {
    w->x0 = w->y0 = INT_MAX;
    w->x1 = w->y1 = 0;
    for (int32_t k = 0; k < w->info.n_touched; k++) {
        int32_t u, v;
        us_sim_get_deformable_touched(w->sim, w->patch, k, &u, &v);
        if (us_sim_get_deformable_version(w->sim, w->patch, u, v) == 0) continue;
        w->x0 = min_of(w->x0, u * US_DEFORMABLE_TILE);
        w->x1 = max_of(w->x1, min_of((u + 1) * US_DEFORMABLE_TILE, w->info.n_x));
        w->y0 = min_of(w->y0, v * US_DEFORMABLE_TILE);
        w->y1 = max_of(w->y1, min_of((v + 1) * US_DEFORMABLE_TILE, w->info.n_y));
    }
    return w->x1 > 0;
}

// The columns between two places of one axis, which lies about the middle of n of them.
static bool columns_between(double from, double to, double spacing, int32_t n, int32_t *out_first,
                            int32_t *out_end) {
    const double slack = 1e-6;  // of the spacing: a border may miss a column by rounding
    double a = fmax(ceil(from / spacing + 0.5 * (n - 1) - slack), 0),
           b = fmin(floor(to / spacing + 0.5 * (n - 1) + slack), n - 1);
    if (!(b >= a)) return false;
    *out_first = (int32_t)a;
    *out_end = (int32_t)b + 1;
    return true;
}

static us_status choose(writing *w, const us_shape_def *ground, us_pose X_GB, const double *zone,
                        us_error *err) {
    w->x0 = w->y0 = 0;
    w->x1 = w->info.n_x;
    w->y1 = w->info.n_y;
    if (zone) {
        double s = w->info.spacing, x = X_GB.p.x, y = X_GB.p.y;
        if (!columns_between(zone[0] - x, zone[2] - x, s, w->info.n_x, &w->x0, &w->x1) ||
            !columns_between(zone[1] - y, zone[3] - y, s, w->info.n_y, &w->y0, &w->y1))
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "write x0 y0 x1 y1, m in the ground's frame, with x0 below x1 and y0 below y1",
                "no column of the bed lies between %g %g and %g %g", zone[0], zone[1], zone[2], zone[3]);
    } else if (ground->site && !find_changed(w)) {
        return us_error_set(err, US_ERR_VALUE, NULL, "name the zone that is wanted, x0 y0 x1 y1 in metres",
                            "nothing has changed the ground yet");
    }
    double n = (double)(w->x1 - w->x0) * (double)(w->y1 - w->y0);
    if (n > MAX_COLUMNS)
        return us_error_set(err, US_ERR_LIMIT, NULL, "name the zone that is wanted, x0 y0 x1 y1 in metres",
                            "what was touched lies in %d by %d columns: too many for one raster",
                            (int)(w->x1 - w->x0), (int)(w->y1 - w->y0));
    return US_OK;
}

us_status us_sim_write_deformable(const us_sim *sim, int32_t patch, const us_shape_def *ground,
                                  const double zone[4], const char *path, double out_zone[4], us_error *err) {
    static const char *const bands[] = {"height", "change"};
    writing w = {.sim = sim, .patch = patch, .info = us_sim_get_deformable(sim, patch), .v = -1};
    if (w.info.shape < 0 || !ground || !path)
        return us_error_set(err, US_ERR_ARG, NULL, "give a bed, its ground and a file name",
                            "there is no such bed");
    us_pose X_GB = us_pose_mul(us_pose_inverse(ground->X_BG), w.info.X_WB);
    us_status status = choose(&w, ground, X_GB, zone, err);
    if (status) return status;
    us_site *site = NULL;
    const char *wkt = ground->wkt;
    us_vec3 origin = ground->origin;
    if (ground->site) {
        status = us_site_open(ground->site, &sim->allocator, &site, err);
        if (status) return status;
        wkt = us_site_get_info(site).wkt;
        origin = us_site_get_info(site).origin;
    }
    const bool is_placed = site || wkt;
    double s = w.info.spacing, x = (0.5 * (w.x0 + w.x1 - 1) - 0.5 * (w.info.n_x - 1)) * s,
           y = (0.5 * (w.y0 + w.y1 - 1) - 0.5 * (w.info.n_y - 1)) * s;
    us_vec3 p_BM = us_vec3_make(x, y, 0), p_GM = us_pose_point(X_GB, p_BM);
    us_raster_write_def def = {.n_x = w.x1 - w.x0,
                               .n_y = w.y1 - w.y0,
                               .dx = s,
                               .dy = s,
                               .n_band = 2,
                               .band = bands,
                               .row = give_row,
                               .context = &w};
    def.reference = wkt;
    def.middle = is_placed ? us_vec3_add(origin, p_GM) : us_pose_point(w.info.X_WB, p_BM);
    def.yaw = is_placed ? 0 : 2 * atan2(w.info.X_WB.q.z, w.info.X_WB.q.w);
    w.up = is_placed ? origin.z : w.info.X_WB.p.z;
    size_t size = (size_t)def.n_x * US_DEFORMABLE_TILE * sizeof(float);
    w.height = usi_alloc(&sim->allocator, 2 * size, USI_ALIGN);
    if (w.height) w.change = w.height + size / sizeof(float);
    status = w.height ? us_raster_write(&def, path, err)
                      : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for rows of %d columns",
                                     (int)def.n_x);
    if (out_zone) {
        out_zone[0] = p_GM.x - 0.5 * (def.n_x - 1) * s;
        out_zone[2] = p_GM.x + 0.5 * (def.n_x - 1) * s;
        out_zone[1] = p_GM.y - 0.5 * (def.n_y - 1) * s;
        out_zone[3] = p_GM.y + 0.5 * (def.n_y - 1) * s;
    }
    usi_release(&sim->allocator, w.height, 2 * size, USI_ALIGN);
    us_site_close(site);
    return status;
}
