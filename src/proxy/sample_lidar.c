// Samples of lidars: clouds of points, and scans of one plane.
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "model/lidars.h"
#include "proxy/proxy__sample.h"

// Bytes of a point: x, y, z, intensity, ring and time, one behind the other.
enum { POINT_STEP = 22, RING_AT = 16, TIME_AT = 18, N_FIELD = 6 };
// Of sensor_msgs/PointField.
enum { FIELD_UINT16 = 4, FIELD_FLOAT32 = 7 };

size_t usi_lidar_sample_size(const us_model *m) {
    size_t most = 0;
    for (int32_t i = 0; i < m->n_lidar; i++) {
        const size_t n = (size_t)usi_lidar_n_point(&m->lidar[i]) * POINT_STEP + 4096;
        if (n > most) most = n;
    }
    return most;
}

// A point without a return is no number; ROS has it so in tables of points that have gaps.
static void put_point(uint8_t *to, const float from[4], uint16_t ring, float time) {
    const bool is_none = !isfinite(from[0]);
    const float none[4] = {NAN, NAN, NAN, 0};
    memcpy(to, is_none ? none : from, 4 * sizeof(float));
    memcpy(to + RING_AT, &ring, sizeof ring);
    memcpy(to + TIME_AT, &time, sizeof time);
}

static void move_point(const usi_lidar_shift *x, double share, const float from[4], float out[4]) {
    const us_vec3 p = us_vec3_make((double)from[0], (double)from[1], (double)from[2]);
    us_vec3 at[2];
    for (int k = 0; k < 2; k++)
        at[k] = us_vec3_add(us_mat3_mul_vec(&x->R[k], p), x->p[k]);
    const us_vec3 q = us_vec3_add(us_vec3_scale(1 - share, at[0]), us_vec3_scale(share, at[1]));
    out[0] = (float)q.x;
    out[1] = (float)q.y;
    out[2] = (float)q.z;
    out[3] = from[3];
}

// Rows of rings of what is true.
static void put_truth(const us_sim *sim, int32_t lidar, uint32_t row_step, uint8_t *to) {
    const usi_lidar *l = &sim->model->lidar[lidar];
    for (int64_t column = 0; column < l->n_column; column++) {
        for (int32_t ring = 0; ring < l->n_ring; ring++) {
            float point[4];
            usi_sim_lidar_truth(sim, lidar, column, ring, point);
            put_point(to + (size_t)ring * row_step + (size_t)column * POINT_STEP, point, (uint16_t)ring,
                      (float)usi_lidar_time_in_turn(l, column, ring));
        }
    }
}

// Columns of returns of rings to rows of rings, of one return after the other.
static void put_points(const us_sim *sim, int32_t lidar, const float (*from)[4], uint32_t row_step,
                       uint8_t *to) {
    const usi_lidar *l = &sim->model->lidar[lidar];
    const bool is_grid = l->def->pattern == US_LIDAR_GRID;
    usi_lidar_shift shift = {.last = 0};
    for (int64_t i = 0; i < usi_lidar_n_point(l); i++) {
        const int32_t ring = (int32_t)(i % l->n_ring), back = (int32_t)(i / l->n_ring % l->n_return);
        const int64_t column = i / l->n_ring / l->n_return;
        uint8_t *row = to + ((size_t)back * (size_t)l->n_ring + (size_t)ring) * row_step;
        const double time = usi_lidar_time_in_turn(l, column, ring);
        const float *point = from[i];
        float moved[4];
        const bool is_next = is_grid || i % ((int64_t)l->n_ring * l->n_return) == 0;
        if (l->def->is_deskewed && is_next) shift = usi_sim_lidar_shift(sim, lidar, column, ring);
        if (l->def->is_deskewed && isfinite(point[0])) {
            move_point(&shift, shift.last > 0 ? l->ring_time[ring] / shift.last : 0, point, moved);
            point = moved;
        }
        put_point(row + (size_t)column * POINT_STEP, point, (uint16_t)ring, (float)time);
    }
}

void usi_sample_points(usi_sampling *w) {
    const us_model *m = w->p->model;
    const usi_sensor *k = &m->sensor[w->sensor];
    const usi_lidar *l = &m->lidar[k->lidar];
    const float(*from)[4] = usi_sim_lidar_points(w->sim, k->lidar);
    static const char *const name[N_FIELD] = {"x", "y", "z", "intensity", "ring", "time"};
    static const uint32_t offset[N_FIELD] = {0, 4, 8, 12, RING_AT, TIME_AT};
    us_msg_point_cloud2 c = {0};
    if (!from) return;
    usi_sampling_head(w, &c.header, k->frame);
    USI_SAMPLING_TAKE(w, c.fields, N_FIELD);
    const int32_t n_return = w->is_truth ? 1 : l->n_return;
    USI_SAMPLING_TAKE(w, c.data, (size_t)l->n_column * (size_t)l->n_ring * (size_t)n_return * POINT_STEP);
    if (c.data._length == 0) return;
    for (int i = 0; i < N_FIELD; i++)
        c.fields._buffer[i] = (us_msg_point_field){.name = usi_text(name[i]),
                                                   .offset = offset[i],
                                                   .datatype = i == 4 ? FIELD_UINT16 : FIELD_FLOAT32,
                                                   .count = 1};
    c.height = (uint32_t)(l->n_ring * n_return);
    c.width = (uint32_t)l->n_column;
    c.point_step = POINT_STEP;
    c.row_step = POINT_STEP * c.width;
    if (w->is_truth)
        put_truth(w->sim, k->lidar, c.row_step, c.data._buffer);
    else
        put_points(w->sim, k->lidar, from, c.row_step, c.data._buffer);
    usi_sampling_send(w, &c);
}

// REP 117: what is too near is minus infinity, and where nothing came back plus infinity.
void usi_sample_scan(usi_sampling *w) {
    const us_model *m = w->p->model;
    const usi_sensor *k = &m->sensor[w->sensor];
    const usi_lidar *l = &m->lidar[k->lidar];
    const float(*from)[4] = usi_sim_lidar_points(w->sim, k->lidar);
    us_msg_laser_scan c = {0};
    if (!from) return;
    usi_sampling_head(w, &c.header, k->frame);
    USI_SAMPLING_TAKE(w, c.ranges, l->n_column);
    USI_SAMPLING_TAKE(w, c.intensities, l->n_column);
    if (c.intensities._length == 0) return;
    const double apart = l->spin * l->period;
    c.angle_min = (float)l->def->start;
    c.angle_increment = (float)apart;
    c.angle_max = (float)(l->def->start + apart * (l->n_column - 1));
    c.time_increment = (float)l->period;
    c.scan_time = (float)l->turn;
    c.range_min = (float)l->def->min_range;
    c.range_max = (float)l->def->max_range;
    for (int32_t i = 0; i < l->n_column; i++) {
        float truth[4];
        if (w->is_truth) usi_sim_lidar_truth(w->sim, k->lidar, i, 0, truth);
        const float *point = w->is_truth ? truth : from[i];
        const double x = (double)point[0], y = (double)point[1], z = (double)point[2];
        c.ranges._buffer[i] = isfinite(x) ? (float)sqrt(x * x + y * y + z * z) : point[0];
        c.intensities._buffer[i] = point[3];
    }
    usi_sampling_send(w, &c);
}

// When the turn began that a sample shows, ns.
int64_t usi_lidar_sample_time(const us_sim *sim, int32_t lidar) {
    const usi_lidar *l = &sim->model->lidar[lidar];
    int64_t whole;
    const int64_t turn = usi_sim_lidar_turn(sim, lidar, &whole);
    return turn < 0 ? 0 : llround(1e9 * usi_lidar_group_time(l, usi_lidar_first(l, turn)));
}

// A fault loses some of the frames: which ones follows from the seeds and the tick.
static bool is_dropped(const us_sim *sim, int32_t sensor) {
    static const uint64_t drop_stream = UINT64_C(5) << 32;  // beside those of links, sensors and instruments
    const double drop = sim->now.sensor[sensor].drop;
    const uint64_t seed = sim->model->seed + USI_GOLDEN * sim->model->sensor[sensor].seed;
    return drop > 0 && us_random_uniform(seed, drop_stream + (uint64_t)sensor,
                                         (uint64_t)sim->now.sensor[sensor].tick) < drop;
}

bool usi_lidar_truth_is_due(const us_sim *sim, int32_t sensor) {
    int64_t whole;
    return usi_sim_lidar_turn(sim, sim->model->sensor[sensor].lidar, &whole) >= 0 &&
           sim->now.sensor[sensor].tick == us_sim_get_tick(sim);
}

// A turn has become whole at this tick, and its number is one of those that the topic's rate lets through.
bool usi_lidar_is_due(const us_sim *sim, int32_t sensor, double rate) {
    const us_model *m = sim->model;
    const usi_sensor_state *k = &sim->now.sensor[sensor];
    int64_t whole;
    const int64_t turn = usi_sim_lidar_turn(sim, m->sensor[sensor].lidar, &whole);
    if (turn < 0 || k->tick + usi_sensor_latency_ticks(m, k) != us_sim_get_tick(sim)) return false;
    if (is_dropped(sim, sensor)) return false;
    const double share = rate / m->sensor[sensor].rate;
    return share >= 1 || floor((double)(turn + 1) * share + 1e-9) > floor((double)turn * share + 1e-9);
}
