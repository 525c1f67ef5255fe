// What lidars saw on the page: turns taken from the sim, thinned and packed.
#include "view/view__clouds.h"

#include <math.h>
#include <string.h>

#include "model/lidars.h"
#include "sim/sim.h"

void usi_clouds_init(usi_clouds *clouds, const us_allocator *allocator) {
    memset(clouds, 0, sizeof *clouds);
    clouds->allocator = *allocator;
    pthread_mutex_init(&clouds->lock, NULL);
}

static void forget(usi_clouds *clouds) {
    for (int32_t i = 0; i < clouds->n; i++) {
        usi_cloud *c = &clouds->cloud[i];
        usi_release(&clouds->allocator, c->point, (size_t)c->cap * USI_VIEW_POINT_SIZE, 1);
        *c = (usi_cloud){0};
    }
    clouds->n = 0;
}

void usi_clouds_fini(usi_clouds *clouds) {
    forget(clouds);
    pthread_mutex_destroy(&clouds->lock);
}

// ---------------------------------------------------------------- taking

static bool room(usi_clouds *clouds, usi_cloud *c, int32_t n) {
    if (n <= c->cap) return true;
    uint8_t *point = usi_alloc(&clouds->allocator, (size_t)n * USI_VIEW_POINT_SIZE, 1);
    if (!point) return false;
    usi_release(&clouds->allocator, c->point, (size_t)c->cap * USI_VIEW_POINT_SIZE, 1);
    c->point = point;
    c->cap = n;
    return true;
}

// A coordinate in units from the origin, with room for a point that noise moved beyond the range.
static int16_t rounded(double x, double unit) {
    return (int16_t)lrint(fmin(fmax(x / unit, -INT16_MAX), INT16_MAX));
}

static void take_points(const us_sim *sim, int32_t lidar, usi_cloud *c, int64_t n_column, int64_t stride) {
    const usi_lidar *l = &sim->model->lidar[lidar];
    const float(*from)[4] = usi_sim_lidar_points(sim, lidar);
    const int32_t n_row = l->n_ring * l->n_return;
    uint8_t *at = c->point;
    for (int64_t column = 0; column < n_column; column += stride) {
        us_pose X_WS = usi_sim_lidar_pose(sim, lidar, column, 0);
        for (int32_t row = 0; row < n_row; row++) {
            const float *p = from[column * n_row + row];
            const int32_t ring = row % l->n_ring;
            if (!isfinite(p[0])) continue;
            // Between the rows of a window there are seconds, between rings microseconds.
            if (l->def->pattern == US_LIDAR_GRID) X_WS = usi_sim_lidar_pose(sim, lidar, column, ring);
            const us_vec3 p_W = us_pose_point(X_WS, us_vec3_make((double)p[0], (double)p[1], (double)p[2]));
            const double unit = (double)c->head.unit;
            const int16_t place[3] = {rounded(p_W.x - c->head.origin[0], unit),
                                      rounded(p_W.y - c->head.origin[1], unit),
                                      rounded(p_W.z - c->head.origin[2], unit)};
            at = usi_view_put_point(at, place, (uint8_t)fminf(fmaxf(p[3], 0), 255), (uint8_t)ring);
        }
    }
    c->n = (int32_t)((at - c->point) / USI_VIEW_POINT_SIZE);
}

static void take_turn(usi_clouds *clouds, const us_sim *sim, int32_t lidar, int32_t wanted) {
    usi_cloud *c = &clouds->cloud[lidar];
    const usi_lidar *l = &sim->model->lidar[lidar];
    us_lidar_frame f;
    if (us_sim_get_lidar_frame(sim, (us_lidar){lidar}, false, &f, NULL, 0) || f.turn < 0) return;
    if (c->stamp != 0 && c->turn == f.turn) return;
    int64_t whole;  // a frozen lidar shows it again and again
    usi_sim_lidar_turn(sim, lidar, &whole);
    const int64_t n_row = (int64_t)l->n_ring * l->n_return, n_group = usi_lidar_columns_of(l, whole),
                  n_column = n_group < l->n_column ? n_group : l->n_column,
                  stride = (n_column * n_row + wanted - 1) / wanted;
    if (!room(clouds, c, (int32_t)((n_column + stride - 1) / stride * n_row))) return;
    const us_vec3 p = f.X_WS.p;
    c->turn = f.turn;
    c->time = f.time;
    c->tick = us_sim_get_tick(sim);
    // The range is 30000 units, so that what the sensor moved within a turn has room.
    c->head = (usi_view_cloud){
        .lidar = (uint32_t)lidar, .unit = (float)(l->def->max_range / 30000), .origin = {p.x, p.y, p.z}};
    take_points(sim, lidar, c, n_column, stride);
    c->stamp = ++clouds->stamp;
}

void usi_clouds_take(usi_clouds *clouds, const us_sim *sim, uint32_t revision, uint64_t jump,
                     int32_t wanted) {
    if (wanted <= 0 || pthread_mutex_trylock(&clouds->lock)) return;
    if (clouds->revision != revision) {
        forget(clouds);
        const int32_t n = us_model_n_lidar(us_sim_view_model(sim));
        clouds->n = n < USI_CLOUDS_LIDARS ? n : USI_CLOUDS_LIDARS;
        clouds->revision = revision;
    }
    // After time has jumped a turn of the same number may be another one.
    for (int32_t i = 0; i < clouds->n && clouds->jump != jump; i++)
        clouds->cloud[i].turn = -1;
    clouds->jump = jump;
    for (int32_t i = 0; i < clouds->n; i++)
        take_turn(clouds, sim, i, wanted);
    pthread_mutex_unlock(&clouds->lock);
}

// ---------------------------------------------------------------- giving

static const usi_cloud *oldest_after(const usi_clouds *clouds, uint64_t stamp) {
    const usi_cloud *found = NULL;
    for (int32_t i = 0; i < clouds->n; i++) {
        const usi_cloud *c = &clouds->cloud[i];
        if (c->stamp > stamp && (!found || c->stamp < found->stamp)) found = c;
    }
    return found;
}

static bool put(const usi_clouds *clouds, const usi_cloud *c, int32_t wanted, usi_bytes *out) {
    const int32_t stride = (c->n + wanted - 1) / wanted, n = stride > 0 ? (c->n + stride - 1) / stride : 0;
    const usi_view_head head = {.kind = USI_VIEW_POINTS,
                                .epoch = clouds->revision,
                                .time = c->time,
                                .tick = c->tick,
                                .n = (uint32_t)n};
    out->length = 0;
    out->status = US_OK;
    uint8_t *at =
        usi_bytes_room(out, USI_VIEW_HEAD_SIZE + USI_VIEW_CLOUD_SIZE + (size_t)n * USI_VIEW_POINT_SIZE);
    if (!at) return false;
    at = usi_view_put_cloud(usi_view_put_head(at, &head), &c->head);
    for (int32_t i = 0; i < c->n; i += stride) {
        memcpy(at, c->point + (size_t)i * USI_VIEW_POINT_SIZE, USI_VIEW_POINT_SIZE);
        at += USI_VIEW_POINT_SIZE;
    }
    return true;
}

bool usi_clouds_put(usi_clouds *clouds, uint32_t revision, int32_t wanted, uint64_t *stamp, usi_bytes *out) {
    bool is_there = false;
    if (wanted <= 0) return false;
    pthread_mutex_lock(&clouds->lock);
    const usi_cloud *c = clouds->revision == revision ? oldest_after(clouds, *stamp) : NULL;
    if (c) {
        is_there = put(clouds, c, wanted, out);
        *stamp = c->stamp;
    }
    pthread_mutex_unlock(&clouds->lock);
    return is_there;
}
