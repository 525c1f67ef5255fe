// Lidars: beams that fire within a step, each at its own time, and the frames that they make.
//
// Between the states before and after the step positions go straight and rotations turn evenly; a beam that
// fires at a share u of the step starts at the sensor's pose at u, and meets every shape at its pose at u.
//
//      before ----+----+----+----+----+---- now       + groups; their beams follow within microseconds
//                 u of each
//
// Groups do not know of each other: the threads of the sim share them, and each writes the points of its own.
// A group that the end of the step cuts in two keeps its first echoes in the state.
//
// Frames belong to the state: what a lidar says when its turn is whole was seen in many steps, and a snapshot
// in the middle of a turn goes on to the same frame. As soil does, they change in place, since a step that
// fails has not come to its sensors, and are saved with snapshots; the hash of the state has a digest of all
// points. The phase of the head follows from the tick.
#include <string.h>

#include "base/pool.h"
#include "base/random.h"
#include "base/sound.h"
#include "geom/geom.h"
#include "model/robots.h"
#include "sense/lidar_return.h"
#include "sim/sim__lidar.h"
#include "understudy/sensing.h"

// ---------------------------------------------------------------- memory

// Of one group.
static int32_t n_echo_of(const usi_lidar *l) { return l->def->n_beam * l->n_ray; }

// Bytes, for one group in each thread.
static size_t size_of_echoes(const us_sim *s) {
    return (size_t)usi_pool_n_thread(s->pool) * (size_t)s->lidars->n_echo * sizeof(usi_lidar_echo);
}

us_status usi_lidars_create(us_sim *s) {
    const us_model *m = s->model;
    const size_t n = (size_t)m->n_geom + 1;
    if (m->n_lidar == 0) return US_OK;
    usi_lidars *x = usi_alloc(&s->allocator, sizeof *x, _Alignof(usi_lidars));
    if (!x) return US_ERR_MEMORY;
    *x = (usi_lidars){0};
    s->lidars = x;
    x->state = usi_alloc(&s->allocator, m->lidar_size, USI_ALIGN);
    x->all = usi_alloc(&s->allocator, n * sizeof *x->all, _Alignof(usi_lidar_target));
    x->near = usi_alloc(&s->allocator, n * sizeof *x->near, _Alignof(usi_lidar_target));
    x->before = usi_alloc(&s->allocator, n * sizeof *x->before, _Alignof(us_pose));
    x->pager = usi_alloc(&s->allocator, n * sizeof(void *), _Alignof(void *));
    if (!x->state || !x->all || !x->near || !x->before || !x->pager) return US_ERR_MEMORY;
    memset(x->pager, 0, n * sizeof(void *));
    for (int32_t i = 0; i < m->n_lidar; i++)
        x->n_echo = x->n_echo > n_echo_of(&m->lidar[i]) ? x->n_echo : n_echo_of(&m->lidar[i]);
    x->echo = usi_alloc(&s->allocator, size_of_echoes(s), _Alignof(usi_lidar_echo));
    if (!x->echo) return US_ERR_MEMORY;
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
    usi_release(&s->allocator, x->all, n * sizeof *x->all, _Alignof(usi_lidar_target));
    usi_release(&s->allocator, x->near, n * sizeof *x->near, _Alignof(usi_lidar_target));
    usi_release(&s->allocator, x->before, n * sizeof *x->before, _Alignof(us_pose));
    usi_release(&s->allocator, x->pager, n * sizeof(void *), _Alignof(void *));
    usi_release(&s->allocator, x->echo, size_of_echoes(s), _Alignof(usi_lidar_echo));
    usi_release(&s->allocator, x, sizeof *x, _Alignof(usi_lidars));
    s->lidars = NULL;
}

static void clear_one(us_sim *s, int32_t i) {
    *usi_lidar_state_of(s, i) = (usi_lidar_state){.collected = -1, .whole = -1, .shown = -1};
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
    memset(s->lidars->all, 0xff, n * sizeof(usi_lidar_target));
    memset(s->lidars->near, 0xff, n * sizeof(usi_lidar_target));
    memset(s->lidars->before, 0xff, n * sizeof(us_pose));
    memset(s->lidars->echo, 0xff, size_of_echoes(s));
}

size_t usi_lidars_save(const us_sim *s, char *to) {
    if (!s->lidars) return 0;
    if (to) memcpy(to, s->lidars->state, s->model->lidar_size);
    return s->model->lidar_size;
}

// Turns are counted from the start of time: their groups and ticks must be numbers that can be counted.
static bool is_turn(const usi_lidar *l, int64_t turn) {
    return turn >= -1 && (double)turn * l->turn <= USI_MAX_TIME;
}

// Poses and points lie there byte by byte.
static bool is_frame_sound(const usi_lidar *l, const usi_lidar_state *t, const char *from, int k) {
    if (t->n_pose[k] < 0 || t->n_pose[k] > l->max_pose || t->first_tick[k] < 0 ||
        t->first_tick[k] > USI_MAX_TICK)
        return false;
    for (int64_t i = 0; i < t->n_pose[k]; i++) {
        us_pose X;
        memcpy(&X, from + l->pose[k] + (size_t)i * sizeof X, sizeof X);
        const double numbers[] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z};
        if (!usi_are_numbers(numbers, 7)) return false;
    }
    return true;
}

static bool is_lidar_sound(const usi_lidar *l, const char *from) {
    usi_lidar_state t;
    memcpy(&t, from + l->state, sizeof t);
    if ((t.which != 0 && t.which != 1) || !is_turn(l, t.collected) || !is_turn(l, t.whole) ||
        !is_turn(l, t.shown) || t.n_dropped < 0 || (t.is_held & ~1))
        return false;
    // A frame that is being collected or whole has the pose at its start.
    if ((t.collected >= 0 && t.n_pose[t.which] == 0) || (t.whole >= 0 && t.n_pose[1 - t.which] == 0))
        return false;
    return is_frame_sound(l, &t, from, 0) && is_frame_sound(l, &t, from, 1);
}

bool usi_lidars_are_sound(const us_sim *s, const char *from, size_t length) {
    const us_model *m = s->model;
    if (length != (s->lidars ? m->lidar_size : 0)) return false;
    for (int32_t i = 0; i < m->n_lidar; i++) {
        if (!is_lidar_sound(&m->lidar[i], from)) return false;
    }
    return true;
}

void usi_lidars_restore(us_sim *s, const char *from) {
    if (s->lidars) memcpy(s->lidars->state, from, s->model->lidar_size);
}

uint64_t usi_lidars_hash(const us_sim *s, uint64_t seed) {
    for (int32_t i = 0; s->lidars && i < s->model->n_lidar; i++)
        seed = us_hash_bytes(seed, usi_lidar_state_of(s, i), sizeof(usi_lidar_state));
    return seed;
}

void usi_lidar_carry(const us_sim *from, int32_t old, us_sim *to, int32_t lidar) {
    const usi_lidar *a = &from->model->lidar[old], *b = &to->model->lidar[lidar];
    const bool is_same = a->n_ring == b->n_ring && a->n_column == b->n_column && a->max_pose == b->max_pose &&
                         a->n_return == b->n_return && n_echo_of(a) == n_echo_of(b) &&
                         a->period == b->period && a->turn == b->turn;
    if (!is_same) return;
    // Its parts follow each other in one piece.
    const size_t size = b->pose[1] + (size_t)b->max_pose * sizeof(us_pose) - b->state;
    memcpy(to->lidars->state + b->state, from->lidars->state + a->state, size);
}

// Whether the head looks where a fault has made it blind.
static bool is_blinded(const usi_lidar *l, const usi_sensor_state *k, const usi_lidar_aim *aim) {
    return k->offset[USI_LIDAR_FAULT] == USI_LIDAR_HAS_SECTOR &&
           usi_lidar_is_between(l, aim, k->offset[USI_LIDAR_FIRST], k->offset[USI_LIDAR_SECOND]);
}

// Whether a fault has taken the beams of a ring.
static bool is_ring_lost(const usi_sensor_state *k, int32_t ring) {
    return k->offset[USI_LIDAR_FAULT] == USI_LIDAR_HAS_NO_BEAMS && ring >= k->offset[USI_LIDAR_FIRST] &&
           ring <= k->offset[USI_LIDAR_SECOND];
}

usi_lidar_wear usi_lidar_wear_of(const usi_sensor_state *k) {
    const bool is_dirty = k->offset[USI_LIDAR_FAULT] == USI_LIDAR_IS_DIRTY;
    const double through = is_dirty ? 1 - k->offset[USI_LIDAR_FIRST] : 1;
    return (usi_lidar_wear){1 + k->scale, through * through};
}

us_status us_sim_hold_lidar(us_sim *s, us_lidar lidar, bool is_held) {
    if (!s || lidar.i < 0 || lidar.i >= s->model->n_lidar) return US_ERR_ARG;
    usi_lidar_state_of(s, lidar.i)->is_held = is_held;
    usi_report_input(s, &(usi_input){.kind = USI_INPUT_LIDAR_HOLD, .index = lidar.i, .other = is_held});
    return US_OK;
}

// ---------------------------------------------------------------- groups

// A group of beams that fires within the step, or a part of it.
typedef struct firing_group {
    int64_t group, k, turn;  // k: in its turn
    double time;
} firing_group;

enum { BATCH = 256 };

typedef struct firing {
    us_sim *s;
    const usi_lidar *l;
    usi_lidar_state *t;
    usi_sensor_state *k;
    usi_course X_WS;
    double start, end;  // s: of the step
    int64_t tick;       // at its end
    firing_group *batch;
    int32_t n_batch;
} firing;

static usi_lidar_echo *kept_echo(const firing *f) {
    return (usi_lidar_echo *)(void *)(f->s->lidars->state + f->l->echo);
}

static us_vec3 unit(us_vec3 a) { return us_vec3_scale(1 / us_vec3_norm(a), a); }

static void add_line(const firing *f, usi_lidar_lines *x, us_vec3 o, us_vec3 d, double u,
                     usi_lidar_echo *to) {
    x->o[x->n] = o;
    x->d[x->n] = d;
    x->u[x->n] = u;
    x->to[x->n++] = to;
    if (x->n < USI_LIDAR_LINES) return;
    usi_lidar_cast(f->s, f->l, x);
    x->n = 0;
}

// A beam, from o along d: a line, or several that stand for its cone.
static void add_beam(const firing *f, usi_lidar_lines *x, us_vec3 o, us_vec3 d, double u,
                     usi_lidar_echo *out) {
    const usi_lidar *l = f->l;
    if (l->n_ray == 1) {
        add_line(f, x, o, d, u, out);
        return;
    }
    // Across: any two directions do that turn with the beam. Lines lie symmetrically around it.
    const us_vec3 axis = fabs(d.z) < 0.9 ? us_vec3_make(0, 0, 1) : us_vec3_make(1, 0, 0),
                  left = unit(us_vec3_cross(axis, d)), up = us_vec3_cross(d, left);
    for (int32_t i = 0; i < l->n_ray; i++) {
        const usi_lidar_ray *r = &l->ray[i];
        const us_vec3 off = us_vec3_add(us_vec3_scale(tan(r->left), left), us_vec3_scale(tan(r->up), up));
        add_line(f, x, o, unit(us_vec3_add(d, off)), u, &out[i]);
    }
}

// Those beams of a group that fire within the step, from the lowest up. `echo` has those that fired before.
static void cast_group(const firing *f, const firing_group *g, const usi_lidar_aim *aim,
                       usi_lidar_echo *echo) {
    const usi_lidar *l = f->l;
    const double step = f->end - f->start, first = (g->time - f->start) / step;
    const us_pose X = usi_course_at(&f->X_WS, first);
    const us_mat3 R = us_quat_matrix(X.q);
    const bool sees_nothing = usi_lidar_is_blind(l, aim), is_lost = is_blinded(l, f->k, aim);
    bool fires[US_LIDAR_MAX_BEAM] = {false};
    usi_lidar_lines lines;
    lines.n = 0;
    for (int32_t k = 0; k < l->def->n_beam; k++) {
        const int32_t i = l->by_ring[k];
        const usi_lidar_beam *b = &l->beam[i];
        const double at = g->time + b->time;
        fires[i] = at >= f->start && at < f->end;
        if (!fires[i]) continue;
        if (sees_nothing) {
            for (int32_t j = 0; j < l->n_ray; j++)
                echo[i * l->n_ray + j] = (usi_lidar_echo){.range = INFINITY};
            continue;
        }
        // From the group's pose on, in some microseconds: to the first order in the angle.
        const double more = b->time / step;
        us_vec3 d = usi_lidar_direction(l, b, aim), o = X.p;
        if (!f->X_WS.is_still) {
            d = us_vec3_add(d, us_vec3_scale(more, us_vec3_cross(f->X_WS.turn, d)));
            o = us_vec3_add(o, us_vec3_scale(more, f->X_WS.along));
        }
        add_beam(f, &lines, o, us_mat3_mul_vec(&R, d), first + more, &echo[i * l->n_ray]);
    }
    usi_lidar_cast(f->s, l, &lines);
    for (int32_t i = 0; l->n_ray > 1 && !sees_nothing && i < l->def->n_beam; i++) {
        if (fires[i]) usi_lidar_mix(l, &echo[i * l->n_ray]);
    }
    for (int32_t i = 0; i < l->def->n_beam; i++) {
        if (fires[i]) echo[i * l->n_ray].is_lost = is_lost || is_ring_lost(f->k, l->beam[i].ring);
    }
}

static usi_lidar_aim aim_of(const firing *f, const firing_group *g) {
    return usi_lidar_aim_at(f->l, g->group, g->time, g->time - (double)g->turn * f->l->turn);
}

// A group that ends within the step: its points. Any thread may do it.
static void fire_group(void *context, int32_t i, int32_t thread) {
    const firing *f = context;
    const firing_group *g = &f->batch[i];
    const usi_lidars *x = f->s->lidars;
    usi_lidar_echo *echo = x->echo + (size_t)thread * (size_t)x->n_echo;
    const usi_lidar_aim aim = aim_of(f, g);
    if (g->time < f->start) memcpy(echo, kept_echo(f), (size_t)n_echo_of(f->l) * sizeof *echo);
    cast_group(f, g, &aim, echo);
    const usi_lidar_wear wear = usi_lidar_wear_of(f->k);
    usi_lidar_points(f->s->model, f->l, &wear, g->group, g->k, &aim, echo,
                     usi_lidar_frame_of(f->s, f->l, f->t->which),
                     usi_lidar_truth_of(f->s, f->l, f->t->which));
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

// The groups of the batch, by all threads of the sim; their digest in the order in which they fired.
static void fire_batch(firing *f) {
    const usi_lidar *l = f->l;
    enum { GRAIN = 4 };
    const int32_t n = f->k->is_stuck ? 0 : f->n_batch;
    f->n_batch = 0;
    usi_pool_run(f->s->pool, n, GRAIN, fire_group, f);
    const float(*point)[4] = (const float(*)[4])usi_lidar_frame_of(f->s, l, f->t->which);
    const bool is_grid = l->def->pattern == US_LIDAR_GRID;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < l->n_return; j++)
            add_digest(f->t, &point[usi_lidar_place(l, f->batch[i].k, 0, j)], is_grid ? 1 : l->n_ring);
    }
}

// ---------------------------------------------------------------- frames

static void begin_turn(const firing *f, int64_t turn) {
    usi_lidar_state *t = f->t;
    if (t->is_held) {
        t->n_dropped++;
        return;
    }
    t->collected = turn;
    t->is_partial = f->k->is_stuck;
    t->first_tick[t->which] = f->tick - 1;
    t->n_pose[t->which] = 1;
    usi_lidar_poses_of(f->s, f->l, t->which)[0] = f->X_WS.X;
}

// Columns that a turn does not have are without returns.
static void end_turn(const firing *f, int64_t n_column) {
    usi_lidar_state *t = f->t;
    const usi_lidar *l = f->l;
    float(*point)[4] = usi_lidar_frame_of(f->s, l, t->which);
    if (l->def->pattern != US_LIDAR_GRID) {
        for (int64_t i = usi_lidar_place(l, n_column, 0, 0); i < usi_lidar_n_point(l); i++) {
            point[i][0] = INFINITY;
            point[i][1] = point[i][2] = point[i][3] = 0;
        }
        float *truth = usi_lidar_truth_of(f->s, l, t->which);
        for (int64_t i = usi_lidar_truth_place(l, n_column, 0); i < (int64_t)l->n_column * l->n_ring; i++)
            truth[i] = INFINITY;
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

// The last group of a step may end in the next one: what it has met so far is kept.
static void begin_group(const firing *f, const firing_group *g) {
    const usi_lidar_aim aim = aim_of(f, g);
    if (!f->k->is_stuck) cast_group(f, g, &aim, kept_echo(f));
}

static void scan(firing *f) {
    const usi_lidar *l = f->l;
    usi_lidar_state *t = f->t;
    int64_t group = (int64_t)floor((f->start - l->last_beam) / l->period) - 1;
    for (group = group < 0 ? 0 : group; usi_lidar_group_time(l, group) < f->end; group++) {
        const double time = usi_lidar_group_time(l, group);
        if (time + l->last_beam < f->start) continue;
        const int64_t turn = usi_lidar_turn_of(l, group), k = group - usi_lidar_first(l, turn),
                      n = usi_lidar_columns_of(l, turn);
        if (k >= n) continue;
        if (k == 0 && time >= f->start) begin_turn(f, turn);
        // The rest of the turn has not been seen from its beginning.
        if (t->collected != turn) continue;
        const firing_group g = {group, k, turn, time};
        if (time + l->last_beam >= f->end) {
            fire_batch(f);
            begin_group(f, &g);
            break;
        }
        f->batch[f->n_batch++] = g;
        if (k == n - 1 || f->n_batch == BATCH) fire_batch(f);
        if (k == n - 1) end_turn(f, n);
    }
    fire_batch(f);
    if (t->collected < 0) return;
    if (f->k->is_stuck) t->is_partial = 1;
    const int64_t n = t->n_pose[t->which];
    if (n < l->max_pose) {
        usi_lidar_poses_of(f->s, l, t->which)[n] = usi_course_at(&f->X_WS, 1);
        t->n_pose[t->which] = n + 1;
    }
}

// The azimuths between which the head looks within a step.
static void find_wedge(const firing *f, double out[2]) {
    const usi_lidar *l = f->l;
    const double turn = floor(f->start / l->turn) * l->turn;
    out[0] = out[1] = 0;
    if (l->def->pattern != US_LIDAR_SPIN) return;
    out[0] = l->def->start + l->spin * (f->start - l->last_beam - turn);
    out[1] = l->def->start + l->spin * (f->end - turn);
}

void usi_lidars_step(us_sim *s) {
    const us_model *m = s->model;
    const int64_t tick = s->now.tick[0];
    usi_lidar_find_targets(s);
    for (int32_t i = 0; i < m->n_lidar; i++) {
        const usi_lidar *l = &m->lidar[i];
        const usi_sensor *sensor = &m->sensor[l->sensor];
        firing_group batch[BATCH];
        firing f = {.s = s,
                    .batch = batch,
                    .l = l,
                    .t = usi_lidar_state_of(s, i),
                    .k = &s->now.sensor[l->sensor],
                    .start = (double)(tick - 1) * m->step,
                    .end = (double)tick * m->step,
                    .tick = tick};
        if (f.k->offset[USI_LIDAR_IS_DEAD] != 0 || f.k->is_dead || sensor->is_lost) {
            f.t->collected = -1;
            continue;
        }
        usi_kinematics(s->dyn, s->next.q, s->next.v, NULL);
        const us_pose before = usi_lidar_pose(s, sensor);
        usi_kinematics(s->dyn, s->now.q, s->now.v, NULL);
        f.X_WS = usi_course_of(before, usi_lidar_pose(s, sensor));
        double wedge[2];
        find_wedge(&f, wedge);
        usi_lidar_choose_targets(s, l, &f.X_WS, wedge[0], wedge[1]);
        scan(&f);
    }
}
