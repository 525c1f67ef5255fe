// Lidars: beams that fire within a step, each at its own time, and the frames that they make.
//
// Between the states before and after the step positions go straight and rotations turn evenly; a beam that
// fires at a share u of the step starts at the sensor's pose at u, and meets every shape at its pose at u.
//
//      before ----+----+----+----+----+---- now       + groups; their beams follow within microseconds
//                 u of each
//
// Few shapes can be met at all in a step: the head turns by some degrees in it, and what lies outside the
// wedge between its two ends, by the sphere around it, is left out. A shape in which the sensor itself is
// (range 0), its housing, does not stop the beams.
//
// Frames belong to the state: what a lidar says when its turn is whole was seen in many steps, and a snapshot
// in the middle of a turn goes on to the same frame. As soil does, they change in place, since a step that
// fails has not come to its sensors, and are saved with snapshots; the hash of the state has a digest of all
// points. The phase of the head follows from the tick.
#include "sense/lidar_return.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "geom/ray.h"
#include "model/robots.h"
#include "sim/sim__query.h"
#include "terrain/pager.h"

// A pose that moves within a step.
typedef struct course {
    us_pose X;      // at its start
    us_vec3 along;  // m in the whole of it
    us_vec3 turn;   // rotation vector of the whole of it, in its own axes
    bool is_still;
} course;

// A shape that beams may meet.
typedef struct target {
    course X_WG;
    us_vec3 centre, shift;  // of the sphere around it, in W, and how it moves in the step
    double radius;          // m, infinite: it has none
    us_vec3 corner[8];      // of its box, in its own frame
    int32_t geom;
    bool is_field;
    bool is_level;  // ground that keeps its form, with the world's axes: rays need not be turned
} target;

struct usi_lidars {
    char *state;  // of all lidars: usi_lidar has the places
    target *all, *near;
    us_pose *before;           // of all shapes
    usi_pager_client **pager;  // of all shapes; NULL where nothing is paged in
    int32_t n_near;
};
typedef struct usi_lidars usi_lidars;

static usi_lidar_state *state_of(const us_sim *s, int32_t i) {
    return (usi_lidar_state *)(void *)(s->lidars->state + s->model->lidar[i].state);
}
static float (*frame_of(const us_sim *s, const usi_lidar *l, int64_t which))[4] {
    return (float(*)[4])(void *)(s->lidars->state + l->frame[which]);
}
static us_pose *poses_of(const us_sim *s, const usi_lidar *l, int64_t which) {
    return (us_pose *)(void *)(s->lidars->state + l->pose[which]);
}

// ---------------------------------------------------------------- memory

us_status usi_lidars_create(us_sim *s) {
    const us_model *m = s->model;
    const size_t n = (size_t)m->n_geom + 1;
    if (m->n_lidar == 0) return US_OK;
    usi_lidars *x = usi_alloc(&s->allocator, sizeof *x, _Alignof(usi_lidars));
    if (!x) return US_ERR_MEMORY;
    *x = (usi_lidars){0};
    s->lidars = x;
    x->state = usi_alloc(&s->allocator, m->lidar_size, USI_ALIGN);
    x->all = usi_alloc(&s->allocator, n * sizeof *x->all, _Alignof(target));
    x->near = usi_alloc(&s->allocator, n * sizeof *x->near, _Alignof(target));
    x->before = usi_alloc(&s->allocator, n * sizeof *x->before, _Alignof(us_pose));
    x->pager = usi_alloc(&s->allocator, n * sizeof(void *), _Alignof(void *));
    if (!x->state || !x->all || !x->near || !x->before || !x->pager) return US_ERR_MEMORY;
    memset(x->pager, 0, n * sizeof(void *));
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_geom && !status; i++) {
        const us_geom *g = &m->geom[i].geom;
        if (g->kind == US_GEOM_HEIGHT_FIELD && g->field->pager)
            status = usi_pager_client_create(g->field->pager, &x->pager[i]);
    }
    usi_lidars_clear(s);
    return status;
}

void usi_lidars_destroy(us_sim *s) {
    usi_lidars *x = s->lidars;
    const size_t n = (size_t)s->model->n_geom + 1;
    if (!x) return;
    for (size_t i = 0; x->pager && i < n; i++)
        usi_pager_client_destroy(x->pager[i]);
    usi_release(&s->allocator, x->state, s->model->lidar_size, USI_ALIGN);
    usi_release(&s->allocator, x->all, n * sizeof *x->all, _Alignof(target));
    usi_release(&s->allocator, x->near, n * sizeof *x->near, _Alignof(target));
    usi_release(&s->allocator, x->before, n * sizeof *x->before, _Alignof(us_pose));
    usi_release(&s->allocator, x->pager, n * sizeof(void *), _Alignof(void *));
    usi_release(&s->allocator, x, sizeof *x, _Alignof(usi_lidars));
    s->lidars = NULL;
}

static void clear_one(us_sim *s, int32_t i) {
    *state_of(s, i) = (usi_lidar_state){.collected = -1, .whole = -1, .shown = -1};
}

void usi_lidars_clear(us_sim *s) {
    if (!s->lidars) return;
    memset(s->lidars->state, 0, s->model->lidar_size);
    for (int32_t i = 0; i < s->model->n_lidar; i++)
        clear_one(s, i);
}

void usi_lidars_poison(us_sim *s) {
    if (!s->lidars) return;
    const size_t n = (size_t)s->model->n_geom + 1;
    memset(s->lidars->all, 0xff, n * sizeof(target));
    memset(s->lidars->near, 0xff, n * sizeof(target));
    memset(s->lidars->before, 0xff, n * sizeof(us_pose));
}

size_t usi_lidars_save(const us_sim *s, char *to) {
    if (!s->lidars) return 0;
    if (to) memcpy(to, s->lidars->state, s->model->lidar_size);
    return s->model->lidar_size;
}

bool usi_lidars_are_sound(const us_sim *s, const char *from, size_t length) {
    const us_model *m = s->model;
    if (length != (s->lidars ? m->lidar_size : 0)) return false;
    for (int32_t i = 0; i < m->n_lidar; i++) {
        usi_lidar_state t;
        memcpy(&t, from + m->lidar[i].state, sizeof t);
        if (t.which != 0 && t.which != 1) return false;
        if (t.collected < -1 || t.whole < -1 || t.shown < -1) return false;
        for (int k = 0; k < 2; k++) {
            if (t.n_pose[k] < 0 || t.n_pose[k] > m->lidar[i].max_pose || t.first_tick[k] < 0) return false;
        }
    }
    return true;
}

void usi_lidars_restore(us_sim *s, const char *from) {
    if (s->lidars) memcpy(s->lidars->state, from, s->model->lidar_size);
}

uint64_t usi_lidars_hash(const us_sim *s, uint64_t seed) {
    for (int32_t i = 0; s->lidars && i < s->model->n_lidar; i++)
        seed = us_hash_bytes(seed, state_of(s, i), sizeof(usi_lidar_state));
    return seed;
}

void usi_lidar_carry(const us_sim *from, int32_t old, us_sim *to, int32_t lidar) {
    const usi_lidar *a = &from->model->lidar[old], *b = &to->model->lidar[lidar];
    const bool is_same = a->n_ring == b->n_ring && a->n_column == b->n_column && a->max_pose == b->max_pose &&
                         a->period == b->period && a->turn == b->turn;
    if (!is_same) return;
    // Its parts follow each other in one piece.
    const size_t size = b->pose[1] + (size_t)b->max_pose * sizeof(us_pose) - b->state;
    memcpy(to->lidars->state + b->state, from->lidars->state + a->state, size);
}

// ---------------------------------------------------------------- poses within a step

static course course_of(us_pose before, us_pose now) {
    const bool is_still = memcmp(&before, &now, sizeof now) == 0;
    course c = {before, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0), is_still};
    if (is_still) return c;
    c.along = us_vec3_sub(now.p, before.p);
    c.turn = us_quat_log(us_quat_mul(us_quat_conj(before.q), now.q));
    return c;
}

static us_pose course_at(const course *c, double u) {
    if (c->is_still) return c->X;
    return (us_pose){us_quat_mul(c->X.q, us_quat_exp(us_vec3_scale(u, c->turn))),
                     us_vec3_add(c->X.p, us_vec3_scale(u, c->along))};
}

static us_pose sensor_pose(const us_sim *s, const usi_sensor *k) {
    const usi_body *b = &s->model->body[k->body];
    us_pose X = b->X_NB;
    if (b->node >= 0)
        X = us_pose_mul(usi_link_pose(&s->dyn->link[b->node], s->dyn->origin[s->model->node[b->node].tree]),
                        X);
    X = us_pose_mul(X, k->X_BS);
    X.q = us_quat_normalize(X.q);
    return X;
}

static bool is_level(const us_sim *s, int32_t geom, us_pose X) {
    const us_geom *g = &s->model->geom[geom].geom;
    return g->kind == US_GEOM_HEIGHT_FIELD && g->radius == 0 && !usi_shape_patch(s, geom) && X.q.w == 1 &&
           X.q.x == 0 && X.q.y == 0 && X.q.z == 0;
}

static void find_targets(us_sim *s) {
    const us_model *m = s->model;
    usi_lidars *x = s->lidars;
    usi_kinematics(s->dyn, s->next.q, s->next.v, NULL);
    for (int32_t i = 0; i < m->n_geom; i++)
        x->before[i] = usi_shape_pose(s, i);
    usi_kinematics(s->dyn, s->now.q, s->now.v, NULL);
    for (int32_t i = 0; i < m->n_geom; i++) {
        const usi_geom *g = &m->geom[i];
        target *t = &x->all[i];
        const us_pose now = usi_shape_pose(s, i);
        *t = (target){.X_WG = course_of(x->before[i], now),
                      .geom = i,
                      .radius = g->reach,
                      .is_field = g->geom.kind == US_GEOM_HEIGHT_FIELD,
                      .is_level = is_level(s, i, now)};
        if (t->is_field || !isfinite(g->reach)) {
            t->radius = INFINITY;
            continue;
        }
        const us_aabb box = us_geom_box(&g->geom, us_pose_identity());
        const us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(box.min, box.max));
        for (int k = 0; k < 8; k++)
            t->corner[k] = us_vec3_make(k & 1 ? box.max.x : box.min.x, k & 2 ? box.max.y : box.min.y,
                                        k & 4 ? box.max.z : box.min.z);
        t->centre = us_pose_point(x->before[i], middle);
        t->shift = us_vec3_sub(us_pose_point(now, middle), t->centre);
    }
}

// Whether all corners of a shape's box lie in the cone above the highest beam or below the lowest: between
// them nothing of the shape can be seen, since these cones are convex. What carries a lidar is often there.
static bool is_beside_beams(const usi_lidar *l, const target *t, us_pose X_SW, double slack) {
    const us_pose X_SG = us_pose_mul(X_SW, t->X_WG.X);
    bool is_below = l->lowest<0, is_above = l->highest> 0;
    for (int k = 0; k < 8 && (is_below || is_above); k++) {
        const us_vec3 p = us_pose_point(X_SG, t->corner[k]);
        const double across = sqrt(p.x * p.x + p.y * p.y);
        is_below = is_below && p.z < l->lowest * (across + slack) - slack;
        is_above = is_above && p.z > l->highest * (across + slack) + slack;
    }
    return is_below || is_above;
}

// The wedge that the head turns through in a step, grown by how the sensor itself turns: shapes behind one
// of its two planes are out of reach.
static void choose_targets(us_sim *s, const usi_lidar *l, const course *sensor, double from, double to) {
    usi_lidars *x = s->lidars;
    const double half = 0.5 * fabs(to - from) + l->widest + us_vec3_norm(sensor->turn) + 1e-6,
                 middle = 0.5 * (from + to), moved = us_vec3_norm(sensor->along);
    const us_quat q = sensor->X.q;
    const us_vec3 o = sensor->X.p;
    const us_vec3 left = us_quat_rotate(q, us_vec3_make(sin(middle + half), -cos(middle + half), 0)),
                  right = us_quat_rotate(q, us_vec3_make(-sin(middle - half), cos(middle - half), 0));
    const us_pose X_SW = us_pose_inverse(sensor->X);
    const double turned = us_vec3_norm(sensor->turn);
    const bool is_narrow = half < 1.5;
    x->n_near = 0;
    for (int32_t i = 0; i < s->model->n_geom; i++) {
        const target *t = &x->all[i];
        if (isfinite(t->radius)) {
            const us_vec3 v = us_vec3_sub(t->centre, o);
            const double r = t->radius + moved + us_vec3_norm(t->shift) + 1e-6, far = l->def->max_range + r;
            if (us_vec3_dot(v, v) > far * far) continue;
            if (is_narrow && (us_vec3_dot(v, left) < -r || us_vec3_dot(v, right) < -r)) continue;
            // Corners move by no more than this, seen from the sensor.
            const double slack = moved + us_vec3_norm(t->shift) + us_vec3_norm(t->X_WG.turn) * 2 * t->radius +
                                 turned * (us_vec3_norm(v) + t->radius) + 1e-6;
            if (is_beside_beams(l, t, X_SW, slack)) continue;
        }
        x->near[x->n_near++] = *t;
    }
}

// Tiles of ground within reach are read before the beams go out. Ground that cannot be read is not seen.
static void page_in(us_sim *s, us_vec3 o, double range) {
    usi_lidars *x = s->lidars;
    for (int32_t i = 0; i < x->n_near; i++) {
        target *t = &x->near[i];
        usi_pager_client *client = x->pager[t->geom];
        if (!client) continue;
        const us_height_field *f = s->model->geom[t->geom].geom.field;
        const us_vec3 p = us_pose_point(us_pose_inverse(t->X_WG.X), o);
        const double u = p.x / f->dx + 0.5 * (f->n_x - 1), v = p.y / f->dy + 0.5 * (f->n_y - 1),
                     a = range / f->dx + 2, b = range / f->dy + 2;
        usi_pager_begin(client);
        usi_pager_need(client, (usi_window){(int32_t)fmax(-2, fmin(f->n_x, u - a)),
                                            (int32_t)fmax(-2, fmin(f->n_x, u + a)),
                                            (int32_t)fmax(-2, fmin(f->n_y, v - b)),
                                            (int32_t)fmax(-2, fmin(f->n_y, v + b))});
        if (usi_pager_wait(client, NULL)) x->near[i--] = x->near[--x->n_near];
    }
}

// ---------------------------------------------------------------- beams

static bool may_meet(const target *t, us_vec3 o, us_vec3 d, double u, double range) {
    const us_vec3 v = us_vec3_sub(us_vec3_add(t->centre, us_vec3_scale(u, t->shift)), o);
    // A shape that turns about another point than its middle goes by an arc: a little more than its sphere.
    const double along = us_vec3_dot(v, d), r = t->radius * (1 + 1e-6) + 1e-6;
    return along > -r && along < range + r && us_vec3_dot(v, v) - along * along <= r * r;
}

static usi_lidar_hit cast_beam(const us_sim *s, us_vec3 o, us_vec3 d, double u, double range) {
    const usi_lidars *x = s->lidars;
    usi_lidar_hit best = {INFINITY, 0};
    for (int32_t i = 0; i < x->n_near; i++) {
        const target *t = &x->near[i];
        if (isfinite(t->radius) && !may_meet(t, o, d, u, best.range < range ? best.range : range)) continue;
        const double until = best.range < range ? best.range : range;
        const us_ray_hit hit = t->is_level
                                   ? usi_ray_cast_field(s->model->geom[t->geom].geom.field,
                                                        (usi_ray){us_vec3_sub(o, t->X_WG.X.p), d}, until, 0)
                                   : usi_shape_ray(s, t->geom, course_at(&t->X_WG, u), o, d, until);
        if (!(hit.range < best.range) || (hit.range == 0 && !t->is_field)) continue;
        best = (usi_lidar_hit){hit.range, fabs(us_vec3_dot(hit.normal, d))};
    }
    return best;
}

// A turn's sector that a fault has blinded: the azimuth in the sensor's frame, counter-clockwise from one end
// to the other.
static bool is_blind(const usi_sensor_state *k, double azimuth) {
    if (k->offset[USI_LIDAR_HAS_SECTOR] == 0) return false;
    const double turn = 6.283185307179586, from = k->offset[USI_LIDAR_SECTOR_FROM],
                 width = k->offset[USI_LIDAR_SECTOR_TO] - from, at = azimuth - from;
    return at - turn * floor(at / turn) <= width - turn * floor(width / turn);
}

// ---------------------------------------------------------------- frames

typedef struct firing {
    us_sim *s;
    const usi_lidar *l;
    usi_lidar_state *t;
    usi_sensor_state *k;
    course X_WS;
    double start, end;  // s: of the step
    int64_t tick;       // at its end
} firing;

static void begin_turn(const firing *f, int64_t turn) {
    usi_lidar_state *t = f->t;
    t->collected = turn;
    t->is_partial = f->k->is_stuck;
    t->first_tick[t->which] = f->tick - 1;
    t->n_pose[t->which] = 1;
    poses_of(f->s, f->l, t->which)[0] = f->X_WS.X;
}

// Columns that a turn does not have are without returns.
static void end_turn(const firing *f, int64_t n_column) {
    usi_lidar_state *t = f->t;
    const usi_lidar *l = f->l;
    float(*point)[4] = frame_of(f->s, l, t->which);
    for (int64_t i = n_column * l->n_ring; i < (int64_t)l->n_column * l->n_ring; i++) {
        point[i][0] = INFINITY;
        point[i][1] = point[i][2] = point[i][3] = 0;
    }
    const bool is_good = !t->is_partial && !f->k->is_stuck;
    if (is_good) {
        t->whole = t->collected;
        t->which = 1 - t->which;
    }
    // A frozen one says the same again, and again that it is new.
    if (t->whole >= 0) {
        t->shown = t->collected;
        f->k->tick = f->tick;
    }
    t->collected = -1;
}

static void add_digest(usi_lidar_state *t, const float (*point)[4], int32_t n) {
    uint64_t h = t->digest;
    for (int32_t i = 0; i < n; i++) {
        uint64_t word[2];
        memcpy(word, point[i], sizeof word);
        h = (h ^ word[0]) * USI_GOLDEN;
        h = (h ^ (h >> 32) ^ word[1]) * USI_GOLDEN;
    }
    t->digest = h ^ (h >> 29);
}

// Those beams of a group that fire within the step.
static void fire_group(const firing *f, int64_t group, double time, int64_t turn) {
    const usi_lidar *l = f->l;
    usi_lidar_hit *hit = (usi_lidar_hit *)(void *)(f->s->lidars->state + l->hit);
    const double azimuth = l->def->start + l->spin * (time - (double)turn * l->turn), sine = sin(azimuth),
                 cosine = cos(azimuth), step = f->end - f->start, first = (time - f->start) / step;
    const us_pose X = course_at(&f->X_WS, first);
    const us_mat3 R = us_quat_matrix(X.q);
    const bool is_dark = is_blind(f->k, azimuth);
    for (int32_t i = 0; i < l->n_ring && !f->k->is_stuck; i++) {
        const usi_lidar_beam *b = &l->beam[i];
        const double at = time + b->time;
        if (at < f->start || at >= f->end) continue;
        if (is_dark) {
            hit[i] = (usi_lidar_hit){INFINITY, 0};
            continue;
        }
        // From the group's pose on, in some microseconds: to the first order in the angle.
        const double more = b->time / step;
        us_vec3 d = usi_lidar_direction(b, sine, cosine), o = X.p;
        if (!f->X_WS.is_still) {
            d = us_vec3_add(d, us_vec3_scale(more, us_vec3_cross(f->X_WS.turn, d)));
            o = us_vec3_add(o, us_vec3_scale(more, f->X_WS.along));
        }
        hit[i] = cast_beam(f->s, o, us_mat3_mul_vec(&R, d), first + more, l->def->max_range);
    }
    if (time + l->last_beam >= f->end) return;
    const int64_t column = group - usi_lidar_first(l, turn), n = usi_lidar_columns_of(l, turn);
    float(*point)[4] = frame_of(f->s, l, f->t->which) + column * l->n_ring;
    if (!f->k->is_stuck) {
        usi_lidar_points(f->s->model, l, group, sine, cosine, hit, point);
        add_digest(f->t, (const float(*)[4])point, l->n_ring);
    }
    if (column == n - 1) end_turn(f, n);
}

static void scan(const firing *f) {
    const usi_lidar *l = f->l;
    usi_lidar_state *t = f->t;
    int64_t group = (int64_t)floor((f->start - l->last_beam) / l->period) - 1;
    for (group = group < 0 ? 0 : group; usi_lidar_group_time(l, group) < f->end; group++) {
        const double time = usi_lidar_group_time(l, group);
        if (time + l->last_beam < f->start) continue;
        const int64_t turn = usi_lidar_turn_of(l, group), column = group - usi_lidar_first(l, turn);
        if (column >= usi_lidar_columns_of(l, turn)) continue;
        if (column == 0 && time >= f->start) begin_turn(f, turn);
        if (t->collected == turn) fire_group(f, group, time, turn);
        // The rest of the turn has not been seen from its beginning.
    }
    if (t->collected < 0) return;
    if (f->k->is_stuck) t->is_partial = 1;
    const int64_t n = t->n_pose[t->which];
    if (n < l->max_pose) {
        poses_of(f->s, l, t->which)[n] = course_at(&f->X_WS, 1);
        t->n_pose[t->which] = n + 1;
    }
}

void usi_lidars_step(us_sim *s) {
    const us_model *m = s->model;
    const int64_t tick = s->now.tick[0];
    find_targets(s);
    for (int32_t i = 0; i < m->n_lidar; i++) {
        const usi_lidar *l = &m->lidar[i];
        const usi_sensor *sensor = &m->sensor[l->sensor];
        firing f = {.s = s,
                    .l = l,
                    .t = state_of(s, i),
                    .k = &s->now.sensor[l->sensor],
                    .start = (double)(tick - 1) * m->step,
                    .end = (double)tick * m->step,
                    .tick = tick};
        if (f.k->offset[USI_LIDAR_IS_DEAD] != 0 || sensor->is_lost) {
            f.t->collected = -1;
            continue;
        }
        usi_kinematics(s->dyn, s->next.q, s->next.v, NULL);
        const us_pose before = sensor_pose(s, sensor);
        usi_kinematics(s->dyn, s->now.q, s->now.v, NULL);
        f.X_WS = course_of(before, sensor_pose(s, sensor));
        const double turn = floor(f.start / l->turn) * l->turn;
        choose_targets(s, l, &f.X_WS, l->def->start + l->spin * (f.start - l->last_beam - turn),
                       l->def->start + l->spin * (f.end - turn));
        page_in(s, before.p, l->def->max_range);
        scan(&f);
    }
}

// ---------------------------------------------------------------- questions

int32_t us_model_n_lidar(const us_model *m) { return m ? m->n_lidar : 0; }

static const usi_sensor *sensor_row(const us_model *m, us_lidar lidar) {
    if (!m || lidar.i < 0 || lidar.i >= m->n_lidar) return NULL;
    return &m->sensor[m->lidar[lidar.i].sensor];
}

const char *us_model_lidar_robot(const us_model *m, us_lidar lidar) {
    const usi_sensor *k = sensor_row(m, lidar);
    return k ? m->robot[k->robot].name : "";
}

const char *us_model_lidar_name(const us_model *m, us_lidar lidar) {
    const usi_sensor *k = sensor_row(m, lidar);
    return k ? k->name : "";
}

us_lidar us_model_find_lidar(const us_model *m, const char *robot, const char *sensor) {
    for (int32_t i = 0; m && robot && sensor && i < m->n_lidar; i++) {
        const us_lidar l = {i};
        if (strcmp(us_model_lidar_robot(m, l), robot) == 0 && strcmp(us_model_lidar_name(m, l), sensor) == 0)
            return l;
    }
    return (us_lidar){-1};
}

// The sensor's pose at a time of a frame, as the beams had it.
static us_pose pose_at(const us_sim *s, const usi_lidar *l, const usi_lidar_state *t, int64_t which,
                       double time) {
    const us_pose *pose = poses_of(s, l, which);
    const double ticks = time / s->model->step - (double)t->first_tick[which];
    int64_t i = (int64_t)floor(ticks + 1e-9);
    if (i > t->n_pose[which] - 2) i = t->n_pose[which] - 2;
    if (i < 0) return pose[0];
    const course c = course_of(pose[i], pose[i + 1]);
    return course_at(&c, ticks - (double)i);
}

static us_lidar_point point_of(const float from[4], double time, const usi_lidar_beam *b) {
    us_lidar_point p = {from[0], from[1], from[2], from[3], (float)(time + b->time), b->ring};
    if (!isfinite(from[0])) p.x = p.y = p.z = NAN;
    return p;
}

us_status us_sim_get_lidar_frame(const us_sim *s, us_lidar lidar, bool is_deskewed, us_lidar_frame *out_frame,
                                 us_lidar_point *points, int32_t cap) {
    if (!s || !out_frame || lidar.i < 0 || lidar.i >= s->model->n_lidar) return US_ERR_ARG;
    const usi_lidar *l = &s->model->lidar[lidar.i];
    const usi_lidar_state *t = state_of(s, lidar.i);
    const int64_t which = 1 - t->which, first = usi_lidar_first(l, t->whole),
                  n = t->whole >= 0 ? usi_lidar_columns_of(l, t->whole) : 0;
    const double start = t->whole >= 0 ? usi_lidar_group_time(l, first) : 0;
    *out_frame =
        (us_lidar_frame){.turn = t->shown,
                         .time = t->shown >= 0 ? usi_lidar_group_time(l, usi_lidar_first(l, t->shown)) : 0,
                         .n_ring = l->n_ring,
                         .n_column = l->n_column,
                         .X_WS = us_pose_identity()};
    if (t->whole >= 0) out_frame->X_WS = pose_at(s, l, t, which, start);
    if (!points) return US_OK;
    if (cap < l->n_ring * l->n_column) return US_ERR_LIMIT;
    const us_pose X_SW = us_pose_inverse(out_frame->X_WS);
    const float(*from)[4] = (const float(*)[4])frame_of(s, l, which);
    for (int64_t c = 0; c < l->n_column; c++) {
        const double time = usi_lidar_group_time(l, first + c) - start;
        for (int32_t i = 0; i < l->n_ring; i++) {
            const usi_lidar_beam *b = &l->beam[i];
            us_lidar_point *p = &points[(int64_t)b->ring * l->n_column + c];
            static const float none[4] = {INFINITY, 0, 0, 0};
            *p = point_of(c < n ? from[c * l->n_ring + b->ring] : none, time, b);
            if (!is_deskewed || !isfinite(p->x)) continue;
            const us_pose X = us_pose_mul(X_SW, pose_at(s, l, t, which, start + time + b->time));
            const us_vec3 moved = us_pose_point(X, us_vec3_make((double)p->x, (double)p->y, (double)p->z));
            p->x = (float)moved.x;
            p->y = (float)moved.y;
            p->z = (float)moved.z;
        }
    }
    return US_OK;
}

const float (*usi_sim_lidar_points(const us_sim *s, int32_t lidar))[4] {
    const usi_lidar_state *t = state_of(s, lidar);
    return t->whole >= 0 ? (const float(*)[4])frame_of(s, &s->model->lidar[lidar], 1 - t->which) : NULL;
}

int64_t usi_sim_lidar_turn(const us_sim *s, int32_t lidar, int64_t *out_whole) {
    const usi_lidar_state *t = state_of(s, lidar);
    *out_whole = t->whole;
    return t->shown;
}
