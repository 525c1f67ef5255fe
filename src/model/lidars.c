// From lidars as they are described to tables of beams, and where their frames lie in a sim.
#include "model/lidars.h"

static const double PI = 3.14159265358979323846;

// The rank of a beam among all by elevation; of equal ones the first is lower.
static int32_t ring_of(const us_lidar_def *d, int32_t beam) {
    int32_t ring = 0;
    for (int32_t i = 0; i < d->n_beam; i++) {
        const double up = d->beams[i].elevation, own = d->beams[beam].elevation;
        ring += up < own || (up == own && i < beam);
    }
    return ring;
}

static void lay_out(us_model *m, usi_lidar *l) {
    const size_t points = (size_t)l->n_ring * (size_t)l->n_column;
    size_t at = m->lidar_size;
    l->state = usi_carve(&at, 1, sizeof(usi_lidar_state));
    l->hit = usi_carve(&at, (size_t)l->n_ring, sizeof(usi_lidar_hit));
    for (int k = 0; k < 2; k++) {
        l->frame[k] = usi_carve(&at, points, 4 * sizeof(float));
        l->pose[k] = usi_carve(&at, (size_t)l->max_pose, sizeof(us_pose));
    }
    m->lidar_size = at;
}

us_status usi_build_lidar(us_model *m, usi_arena *arena, const us_sensor_def *s, int32_t sensor,
                          usi_lidar *out) {
    const us_lidar_def *d = s->lidar;
    usi_lidar_beam *beam = usi_arena_alloc(arena, (size_t)d->n_beam * sizeof *beam, _Alignof(usi_lidar_beam));
    if (!beam) return US_ERR_MEMORY;
    *out = (usi_lidar){.def = d,
                       .beam = beam,
                       .sensor = sensor,
                       .n_ring = d->n_beam,
                       .n_column = (int32_t)usi_lidar_columns(d, s->rate),
                       .turn = 1 / s->rate,
                       .period = d->columns > 0 ? 1 / (s->rate * d->columns) : d->period,
                       .spin = copysign(2 * PI * s->rate, d->sweep),
                       .max_pose = (int32_t)fmin(ceil(1 / (s->rate * m->step)), 1e6) + 3};
    for (int32_t i = 0; i < d->n_beam; i++) {
        const us_lidar_beam *b = &d->beams[i];
        const double turn = b->azimuth + out->spin * b->time;
        beam[i] = (usi_lidar_beam){.sin_up = sin(b->elevation),
                                   .cos_up = cos(b->elevation),
                                   .sin_turn = sin(turn),
                                   .cos_turn = cos(turn),
                                   .time = b->time,
                                   .ring = ring_of(d, i)};
        out->last_beam = fmax(out->last_beam, b->time);
        out->widest = fmax(out->widest, fabs(turn));
        // Not quite vertical, so that it stays finite.
        const double slope = tan(fmax(-1.5, fmin(1.5, b->elevation)));
        out->lowest = i == 0 ? slope : fmin(out->lowest, slope);
        out->highest = i == 0 ? slope : fmax(out->highest, slope);
    }
    lay_out(m, out);
    return US_OK;
}
