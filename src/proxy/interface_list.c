// A lidar's turn as lists of an interface's samples: points that came back, how many of each ring did, and
// all shots. They go ring by ring from the lowest up, each column by column. What has more
// points than a sequence may have goes on in the next sample.
#include <math.h>
#include <string.h>

#include "model/lidars.h"
#include "proxy/proxy__sample.h"

// Shots are counted row by row: rings from the lowest up, and of dual returns those of the second after them.
static size_t n_shot(const usi_lidar_list *t) { return (size_t)usi_lidar_n_point(t->l); }
static int32_t n_row(const usi_lidar_list *t) { return t->l->n_ring * t->l->n_return; }
static int64_t column_of(const usi_lidar_list *t, size_t shot) {
    return (int64_t)(shot % (size_t)t->l->n_column);
}
static int32_t row_of(const usi_lidar_list *t, size_t shot) {
    return (int32_t)(shot / (size_t)t->l->n_column);
}

// A frame lies in columns of rows.
static const float *shot_at(const usi_lidar_list *t, size_t shot) {
    return t->from[column_of(t, shot) * n_row(t) + row_of(t, shot)];
}

// ---------------------------------------------------------------- one sample after another

// The points from shot `first` on, as many as a sample holds.
static void choose(usi_lidar_list *t, size_t first) {
    t->first = t->end = first;
    t->n = 0;
    for (; t->end < n_shot(t); t->end++) {
        if (!isfinite(shot_at(t, t->end)[0])) continue;
        if (t->n == t->e->most_point) return;
        t->n++;
    }
}

// The points of a row that are in the sample at hand.
static uint32_t length_of_row(const usi_lidar_list *t, size_t row) {
    const size_t n_column = (size_t)t->l->n_column;
    uint32_t n = 0;
    for (size_t shot = row * n_column; shot < (row + 1) * n_column; shot++)
        n += shot >= t->first && shot < t->end && isfinite(shot_at(t, shot)[0]);
    return n;
}

static uint32_t count(void *context, int32_t first) {
    const usi_lidar_list *t = context;
    const usi_value_source source = t->e->value[first].source;
    return source == USI_VALUE_POINT ? t->n
           : source == USI_VALUE_ROW ? (uint32_t)n_row(t)
                                     : (uint32_t)n_shot(t);
}

static double part_of(const usi_lidar_list *t, size_t shot, int32_t part) {
    const float *p = shot_at(t, shot);
    const double x = (double)p[0], y = (double)p[1], z = (double)p[2];
    const int32_t ring = row_of(t, shot) % t->l->n_ring;
    switch (part) {
    case USI_POINT_RANGE:
        return isfinite(x) ? sqrt(x * x + y * y + z * z) : x;
    case USI_POINT_AZIMUTH:
        return atan2(y, x);
    case USI_POINT_ELEVATION:
        return atan2(z, hypot(x, y));
    case USI_POINT_INTENSITY:
        return isfinite(x) ? (double)p[3] : 0;
    case USI_POINT_RING:
        return ring;
    case USI_POINT_TIME:
        return usi_lidar_time_in_turn(t->l, column_of(t, shot), ring);
    default:
        return (double)p[part];
    }
}

static void fill(void *context, int32_t first, int32_t end, uint32_t i) {
    usi_lidar_list *t = context;
    size_t shot = i;
    if (t->e->value[first].source == USI_VALUE_POINT) {
        if (i == 0) t->next = t->first;
        while (!isfinite(shot_at(t, t->next)[0]))
            t->next++;
        shot = t->next++;
    }
    for (int32_t k = first; k < end; k++) {
        const usi_value *v = &t->e->value[k];
        const double x = v->source == USI_VALUE_ROW ? (double)length_of_row(t, i) : part_of(t, shot, v->part);
        t->values[k] = (usi_wire_value){.number = v->scale * x + v->offset};
    }
}

bool usi_lidar_list_begin(usi_lidar_list *t, const usi_sampling *w, const usi_endpoint *e) {
    const us_model *m = w->p->model;
    memset(t, 0, sizeof *t);
    t->list = (usi_member_list){count, fill, t};
    t->l = &m->lidar[e->lidar];
    t->e = e;
    t->values = w->p->values;
    t->from = usi_sim_lidar_points(w->sim, e->lidar);
    if (!t->from) return false;
    choose(t, 0);
    return true;
}

bool usi_lidar_list_go_on(usi_lidar_list *t) {
    if (t->end == n_shot(t)) return false;
    choose(t, t->end);
    return true;
}
