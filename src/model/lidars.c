// From lidars as they are described to tables of beams, and where their frames lie in a sim.
#include "model/lidars.h"

#include <stdio.h>
#include <string.h>

#include "model/compile.h"

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
    size_t at = m->lidar_size;
    l->state = usi_carve(&at, 1, sizeof(usi_lidar_state));
    l->echo = usi_carve(&at, (size_t)(l->def->n_beam * l->n_ray), sizeof(usi_lidar_echo));
    for (int k = 0; k < 2; k++) {
        l->frame[k] = usi_carve(&at, (size_t)usi_lidar_n_point(l), 4 * sizeof(float));
        l->truth[k] = usi_carve(&at, (size_t)l->n_column * (size_t)l->n_ring, sizeof(float));
        l->pose[k] = usi_carve(&at, (size_t)l->max_pose, sizeof(us_pose));
    }
    m->lidar_size = at;
}

// ---------------------------------------------------------------- beams

static us_status make_beams(usi_arena *arena, usi_lidar *l) {
    const us_lidar_def *d = l->def;
    usi_lidar_beam *beam = usi_arena_alloc(arena, (size_t)d->n_beam * sizeof *beam, _Alignof(usi_lidar_beam));
    int32_t *by_ring = usi_arena_alloc(arena, (size_t)d->n_beam * sizeof *by_ring, _Alignof(int32_t));
    double *time = usi_arena_alloc(arena, (size_t)l->n_ring * sizeof *time, _Alignof(double));
    if (!beam || !time || !by_ring) return US_ERR_MEMORY;
    memset(time, 0, (size_t)l->n_ring * sizeof *time);
    l->beam = beam;
    l->ring_time = time;
    l->by_ring = by_ring;
    for (int32_t i = 0; i < d->n_beam; i++) {
        const us_lidar_beam *b = &d->beams[i];
        const double turn = b->azimuth + l->spin * b->time;
        beam[i] = (usi_lidar_beam){.sin_up = sin(b->elevation),
                                   .cos_up = cos(b->elevation),
                                   .sin_turn = sin(turn),
                                   .cos_turn = cos(turn),
                                   .time = b->time,
                                   .ring = ring_of(d, i)};
        time[beam[i].ring] = b->time;
        by_ring[beam[i].ring] = i;
        l->last_beam = fmax(l->last_beam, b->time);
    }
    return US_OK;
}

// What all beams together may see: between two elevations, and so far to the left and the right of the head.
static void bound(usi_lidar *l) {
    const us_lidar_def *d = l->def;
    const double half = 0.5 * d->divergence;
    double low = INFINITY, high = -INFINITY, wide = 0;
    for (int32_t i = 0; i < d->n_beam; i++) {
        const us_lidar_beam *b = &d->beams[i];
        low = fmin(low, b->elevation);
        high = fmax(high, b->elevation);
        wide = fmax(wide, fabs(b->azimuth + l->spin * b->time));
    }
    if (d->pattern == US_LIDAR_GRID) {
        low = -(high = 0.5 * d->window[1]);
        wide = 0.5 * d->window[0];
    }
    if (d->pattern == US_LIDAR_ROSETTE) low = -(high = wide = fabs(d->bend[0]) + fabs(d->bend[1]));
    // A cone around a beam that looks up is wide seen from above. Not quite vertical, so that it stays
    // finite.
    const double steep = fmin(1.5, fmax(fabs(low), fabs(high)) + half);
    l->widest = half > 0 ? wide + half / cos(steep) : wide;
    l->lowest = tan(fmax(-1.5, fmin(1.5, low - half)));
    l->highest = tan(fmax(-1.5, fmin(1.5, high + half)));
}

// Lines that stand for a cone in which light is spread evenly: its axis, and others on a circle so far out
// that all together are as far from the axis, in the mean square, as the light.
//
//     mean square of the cone: a^2 / 2, a half the opening;   of n lines: (n - 1) / n c^2
static void spread(usi_lidar *l) {
    const us_lidar_def *d = l->def;
    l->n_ray = d->divergence > 0 ? d->n_ray : 1;
    l->ray[0] = (usi_lidar_ray){0, 0};
    for (int32_t i = 1; i < l->n_ray; i++) {
        const double out = 0.5 * d->divergence * sqrt(0.5 * l->n_ray / (l->n_ray - 1)),
                     turn = 2 * PI * (i - 1) / (l->n_ray - 1);
        l->ray[i].left = out * cos(turn);
        l->ray[i].up = out * sin(turn);
    }
}

// ---------------------------------------------------------------- surfaces and dust

// A material's own number from 0 up to a limit, if it has one.
static us_status read_share(usi_build *b, const us_material_def *material, const char *key, double most,
                            double *out) {
    for (int32_t i = 0; i < material->n_property; i++) {
        const us_property *p = &material->properties[i];
        char message[160];
        if (strcmp(p->key, key) != 0) continue;
        const double x = p->type == US_PROPERTY_INTEGER ? (double)p->integer : p->number;
        if (p->type != US_PROPERTY_STRING && x >= 0 && x <= most) {
            *out = x;
            continue;
        }
        snprintf(message, sizeof message, "%s: this is no share of light that a lidar could see", key);
        return usi_build_fail(b, US_ERR_VALUE, material->file, material->line, "material", material->name,
                              most > 1 ? "write a <number> from 0 to 1000" : "write a <number> from 0 to 1",
                              message);
    }
    return US_OK;
}

static us_status look_at_materials(usi_build *b, const us_model *m, usi_arena *arena, usi_lidar *l) {
    usi_lidar_surface *surface =
        usi_arena_alloc(arena, (size_t)m->n_material * sizeof *surface, _Alignof(usi_lidar_surface));
    if (!surface) return US_ERR_MEMORY;
    l->surface = surface;
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_material && !status; i++) {
        surface[i] = (usi_lidar_surface){l->def->reflectivity, 0};
        status = read_share(b, &m->material[i], "reflectivity", 1, &surface[i].reflectivity);
        if (!status)
            status = read_share(b, &m->material[i], "retroreflection", 1000, &surface[i].retroreflection);
    }
    return status;
}

// Light that dust sends back from one length of the pulse, m, is that of a surface of the reflectivity
// pi backscatter m. Grains come and go, so that it is that times a number of the exponential distribution,
// and is seen when it is more than what is needed: with P as much as is needed in the mean, with the chance
// exp(-1 / P). `dust` has the chance that any length up to one was seen.
static us_status fill_with_dust(usi_arena *arena, usi_lidar *l) {
    enum { MAX_LENGTH = 4096 };
    const us_lidar_def *d = l->def;
    if (!(d->backscatter > 0)) return US_OK;
    double *dust = usi_arena_alloc(arena, MAX_LENGTH * sizeof *dust, _Alignof(double)), none = 1;
    if (!dust) return US_ERR_MEMORY;
    l->dust = dust;
    l->dust_from = fmax(d->min_range, 0.1);
    for (; l->n_dust < MAX_LENGTH; l->n_dust++) {
        const double r = l->dust_from + (l->n_dust + 0.5) * d->pulse;
        if (r > d->max_range) break;
        none *= 1 - exp(-1 / usi_lidar_dust_power(d, r));
        dust[l->n_dust] = 1 - none;
    }
    return US_OK;
}

us_status usi_build_lidar(usi_build *b, us_model *m, usi_arena *arena, const us_sensor_def *s, int32_t sensor,
                          usi_lidar *out) {
    const us_lidar_def *d = s->lidar;
    const bool is_grid = d->pattern == US_LIDAR_GRID;
    const int32_t n_column = (int32_t)usi_lidar_columns(d, s->rate), n_row = (int32_t)usi_lidar_rows(d);
    *out = (usi_lidar){.def = d,
                       .sensor = sensor,
                       .n_ring = is_grid ? n_row : d->n_beam,
                       .n_column = n_column,
                       .n_return = d->returns == US_LIDAR_DUAL ? 2 : 1,
                       .n_group = is_grid ? (int64_t)n_row * n_column : d->columns,
                       .turn = is_grid ? d->period * n_row * n_column : 1 / s->rate,
                       .period = d->columns > 0 ? 1 / (s->rate * d->columns) : d->period,
                       .spin = d->pattern == US_LIDAR_SPIN ? copysign(2 * PI * s->rate, d->sweep) : 0};
    out->max_pose = (int32_t)fmin(ceil(out->turn / m->step), USI_LIDAR_MAX_STEP) + 3;
    if (out->turn / m->step > USI_LIDAR_MAX_STEP)
        return usi_build_fail(b, US_ERR_LIMIT, NULL, 0, "sensor", s->name,
                              "make its window smaller, its steps larger, or the step of the world longer",
                              "a frame takes more than a million steps of the world");
    us_status status = make_beams(arena, out);
    if (status) return status;
    bound(out);
    spread(out);
    status = look_at_materials(b, m, arena, out);
    if (!status) status = fill_with_dust(arena, out);
    lay_out(m, out);
    return status;
}
