// Sensors of a sim: when they sample, what is under way, what is wrong with them. See sensors.h.
//
//      due          due + latency
//       |  truth        |
//       +--> sample ----+--> reading
//          (its faults)
//
// Between samples nothing is done: `wake` is the next tick at which there is something to do. A kind that
// uses the specific force is looked at one tick before it is due too, for the velocity of its point: the
// force is a mean over the last step.
#include "sim/sensors.h"

#include <math.h>
#include <string.h>

#include "base/rate.h"
#include "base/sound.h"
#include "model/robots.h"
#include "sense/sensor_motion.h"
#include "sim/sim__sensors.h"

// Random numbers of the frame's own, beyond those that kinds use.
enum { DRAW_DROP = 0xfe00, DRAW_DEVIATION = 0xff00 };

// Behind what a kind writes: numbers that it must leave alone.
enum { N_GUARD = 8, WORK = US_SENSOR_MAX_STATE + 2 * US_SENSOR_MAX_READING + 4 * N_GUARD };
static const uint64_t GUARD = UINT64_C(0x7ff4dead5e50600d);  // a signalling not-a-number

static double *part_of(const usi_state *t, const usi_sensor *k, usi_sensor_part part) {
    return t->sensor_part + usi_sensor_part_at(k, part);
}

// ---------------------------------------------------------------- time

// The first tick after this one at which it samples: at its rate, at most once a step.
static int64_t next_due(const us_model *m, const usi_sensor *k, double rate, int64_t tick) {
    if (rate <= 0) return tick + 1;
    const double per_step = m->step * rate;
    if (per_step < 1e-15) return INT64_MAX;  // in more than a million years
    const double n = usi_times_due(rate, m->step, tick + k->phase) + 1;
    int64_t due = (int64_t)floor((n - 1e-6) / per_step) - k->phase - 1;
    if (due <= tick) due = tick + 1;
    while (!usi_is_due(rate, m->step, due + k->phase))
        due++;
    return due;
}

int64_t usi_sensor_latency_ticks(const us_model *m, const usi_sensor_state *k) {
    const double latency = k->latency + k->delay;
    return latency > 0 ? (int64_t)ceil(latency / m->step - 1e-6) : 0;
}

// ---------------------------------------------------------------- queues

static double *slot(const us_sim *s, const usi_sensor *k, int64_t place) {
    return s->pending + k->queue + (size_t)(place % k->max_pending) * (size_t)usi_pending_size(k->kind);
}

static int64_t ticks_in(const double *slot, int which) {
    int64_t tick;
    memcpy(&tick, slot + which, sizeof tick);
    return tick;
}

static void set_wake(const us_sim *s, const usi_sensor *k, usi_sensor_state *t, bool is_moved) {
    t->wake = k->kind->uses_force && !is_moved ? t->due - 1 : t->due;
    if (t->n_pending == 0) return;
    const int64_t arrives = ticks_in(slot(s, k, t->first), USI_PENDING_DUE);
    if (arrives < t->wake) t->wake = arrives;
}

// From now on it says this.
static void say(us_sim *s, const usi_sensor *k, usi_sensor_state *t, int64_t taken, const double *reading) {
    memcpy(s->now.reading + k->reading, reading, (size_t)k->kind->n_reading * sizeof *reading);
    t->tick_before = t->tick;
    t->tick = taken;
    t->delivered = s->now.tick[0];
}

static void deliver(us_sim *s, const usi_sensor *k, usi_sensor_state *t) {
    while (t->n_pending > 0) {
        const double *head = slot(s, k, t->first);
        if (ticks_in(head, USI_PENDING_DUE) > s->now.tick[0]) return;
        say(s, k, t, ticks_in(head, USI_PENDING_TICK), head + USI_PENDING_READING);
        t->first = (t->first + 1) % k->max_pending;
        t->n_pending--;
    }
}

// No sample overtakes another.
static void send(us_sim *s, const usi_sensor *k, usi_sensor_state *t, const double *reading) {
    const int64_t tick = s->now.tick[0], latency = usi_sensor_latency_ticks(s->model, t);
    int64_t due = tick + latency;
    if (latency == 0 && t->n_pending == 0) {
        say(s, k, t, tick, reading);
        return;
    }
    if (t->n_pending == k->max_pending) {
        t->n_lost++;
        return;
    }
    if (t->n_pending > 0) {
        const int64_t last = ticks_in(slot(s, k, t->first + t->n_pending - 1), USI_PENDING_DUE);
        if (last > due) due = last;
    }
    double *to = slot(s, k, t->first + t->n_pending++);
    memcpy(to + USI_PENDING_TICK, &tick, sizeof tick);
    memcpy(to + USI_PENDING_DUE, &due, sizeof due);
    memcpy(to + USI_PENDING_READING, reading, (size_t)k->kind->n_reading * sizeof *reading);
}

// ---------------------------------------------------------------- a sample

static void make_view(const us_sim *s, int32_t i, const usi_sensor_motion *at, double interval,
                      us_sensor_view *out) {
    static const uint64_t noise_stream = UINT64_C(2) << 32;  // beside those of the radio links
    const us_model *m = s->model;
    const usi_sensor *k = &m->sensor[i];
    *out = (us_sensor_view){.sim = s,
                            .user = k->kind->user,
                            .tick = s->now.tick[0],
                            .time = (double)s->now.tick[0] * m->step,
                            .interval = interval,
                            .sensor = i,
                            .body = k->body,
                            .battery = k->battery,
                            .battery_energy = k->battery >= 0 ? s->now.battery_energy[k->battery] : 0,
                            .X_WS = at->X,
                            .v_WS = at->v,
                            .w_WS = at->w,
                            .parameter = part_of(&s->now, k, USI_SENSOR_PARAMETER),
                            .seed = m->seed + UINT64_C(0x9e3779b97f4a7c15) * k->seed,
                            .stream = noise_stream + (uint64_t)i};
}

// Its texts are empty: what stands behind their ends is not read, and a sample has no time for a kilobyte.
static void clear_error(us_error *err) {
    err->code = US_OK;
    err->line = err->column = 0;
    err->file[0] = err->element[0] = err->message[0] = err->remedy[0] = 0;
}

static usi_sensor_motion motion_of(const us_sim *s, const usi_sensor *k) {
    const usi_sensor_motion still = {us_pose_identity(), us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0)};
    return k->body < 0 ? still : usi_sensor_move(s->model, k->body, k->X_BS, s->now.q, s->now.v);
}

static void keep_motion(const us_sim *s, usi_sensor_state *t, const usi_sensor_motion *at) {
    t->before[0] = at->v.x;
    t->before[1] = at->v.y;
    t->before[2] = at->v.z;
    t->moved = s->now.tick[0];
}

static us_vec3 force_of(const us_sim *s, const usi_sensor_state *t, us_vec3 v, double interval) {
    const us_vec3 before = us_vec3_make(t->before[0], t->before[1], t->before[2]);
    const us_vec3 fall = us_vec3_scale(-1, s->model->gravity);
    const int64_t ticks = s->now.tick[0] - t->moved;
    if (interval == 0 || ticks <= 0) return fall;
    return us_vec3_add(fall, us_vec3_scale(1 / ((double)ticks * s->model->step), us_vec3_sub(v, before)));
}

static us_status fail(us_sim *s, const usi_sensor *k, const char *remedy, const char *what,
                      const char *name) {
    return us_error_set(&s->error, US_ERR_VALUE, NULL, remedy,
                        "tick %lld: sensor \"%.60s/%.60s\" of the kind \"%.60s\": %s%.60s",
                        (long long)s->now.tick[0], s->model->robot[k->robot].name, k->name, k->kind->name,
                        what, name);
}

// A block of what the kind writes, with guards behind it.
static double *guard_after(double *block, int32_t n) {
    for (int i = 0; i < N_GUARD; i++)
        memcpy(block + n + i, &GUARD, sizeof GUARD);
    return block + n + N_GUARD;
}

static bool is_guarded(const double *block, int32_t n) {
    uint64_t wrong = 0;
    for (int i = 0; i < N_GUARD; i++) {
        uint64_t word;
        memcpy(&word, block + n + i, sizeof word);
        wrong |= word ^ GUARD;
    }
    return wrong == 0;
}

static us_status check_written(us_sim *s, const usi_sensor *k, const double *memory, const double *truth,
                               const double *reading) {
    const us_sensor_kind *kind = k->kind;
    const char *const overrun = "write no more numbers than are declared";
    if (!is_guarded(memory, kind->n_state)) return fail(s, k, overrun, "it wrote beyond its state", "");
    if (!is_guarded(truth, kind->n_reading) || !is_guarded(reading, kind->n_reading))
        return fail(s, k, overrun, "it wrote beyond its readings", "");
    for (int32_t i = 0; i < kind->n_state; i++) {
        if (!usi_are_numbers(&memory[i], 1))
            return fail(s, k, "check what it computes from its inputs",
                        "a number of its state is not finite, or beyond 1e12", "");
    }
    for (int32_t i = 0; i < kind->n_reading; i++) {
        if (!usi_are_numbers(&truth[i], 1) || !usi_are_numbers(&reading[i], 1))
            return fail(s, k, "set the truth and the reading of each to a finite number",
                        usi_are_numbers(&truth[i], 1) ? "it gave no finite reading (up to 1e12) of "
                                                      : "it gave no finite truth (up to 1e12) of ",
                        kind->readings[i].name);
    }
    return US_OK;
}

// What a fault adds at the instrument.
static void add_faults(const us_sim *s, const usi_sensor *k, const usi_sensor_state *t,
                       const us_sensor_view *view, const double *truth, double *reading) {
    const double *offset = part_of(&s->now, k, USI_SENSOR_OFFSET),
                 *deviation = part_of(&s->now, k, USI_SENSOR_DEVIATION);
    for (int32_t i = 0; i < k->kind->n_reading; i++) {
        if (k->kind->readings[i].is_exact) continue;
        if (t->scale != 0) reading[i] += t->scale * (reading[i] - truth[i]);
        if (deviation[i] > 0) reading[i] += deviation[i] * us_sensor_normal(view, DRAW_DEVIATION + i);
        reading[i] += offset[i];
    }
}

// A sample now. `is_start`: the kind starts before it.
static us_status sample(us_sim *s, int32_t i, bool is_start, bool is_set) {
    const usi_sensor *k = &s->model->sensor[i];
    const us_sensor_kind *kind = k->kind;
    usi_sensor_state *t = &s->now.sensor[i];
    const int64_t tick = s->now.tick[0];
    double work[WORK];
    double *memory = work, *truth = guard_after(memory, kind->n_state),
           *reading = guard_after(truth, kind->n_reading);
    guard_after(reading, kind->n_reading);
    const size_t state_bytes = (size_t)kind->n_state * sizeof(double),
                 bytes = (size_t)kind->n_reading * sizeof(double);
    const usi_sensor_motion at = motion_of(s, k);
    const double interval =
        is_start || is_set || t->sampled < 0 ? 0 : (double)(tick - t->sampled) * s->model->step;
    us_error why;
    clear_error(&why);
    us_sensor_view view;
    make_view(s, i, &at, interval, &view);
    view.why = &why;
    if (kind->uses_force) {
        view.force = force_of(s, t, at.v, interval);
        keep_motion(s, t, &at);
    }
    memcpy(memory, part_of(&s->now, k, USI_SENSOR_MEMORY), state_bytes);
    for (int32_t n = 0; n < kind->n_reading; n++)
        truth[n] = reading[n] = NAN;
    if (is_start && kind->start) kind->start(&view, memory);
    if (!kind->sample(&view, memory, truth, reading))
        return why.message[0] ? fail(s, k, why.remedy, why.message, "")
                              : fail(s, k, "see what the kind says of its limits", "it gave no sample", "");
    us_status status = check_written(s, k, memory, truth, reading);
    if (status) return status;
    memcpy(part_of(&s->now, k, USI_SENSOR_MEMORY), memory, state_bytes);
    memcpy(part_of(&s->now, k, USI_SENSOR_TRUTH), truth, bytes);
    t->sampled = tick;
    t->n_sample++;
    t->due = next_due(s->model, k, t->rate, tick);
    double *said = part_of(&s->now, k, USI_SENSOR_SAMPLE);
    if (!t->is_stuck && (!k->is_lost || is_start)) {
        add_faults(s, k, t, &view, truth, reading);
        memcpy(said, reading, bytes);
    }
    // What it said before it was switched on is what it would have said.
    if (is_start) memcpy(s->now.reading + k->reading, said, bytes);
    const bool is_dropped = t->drop > 0 && us_sensor_uniform(&view, DRAW_DROP) < t->drop;
    if (t->is_dead || is_dropped)
        t->n_lost++;
    else
        send(s, k, t, said);
    return US_OK;
}

// ---------------------------------------------------------------- all of them

us_status usi_sensors_start(us_sim *s) {
    const us_model *m = s->model;
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_sensor && !status; i++) {
        const usi_sensor *k = &m->sensor[i];
        usi_sensor_state *t = &s->now.sensor[i];
        *t = (usi_sensor_state){.rate = k->rate,
                                .latency = k->latency,
                                .sampled = -1,
                                .tick = -1,
                                .tick_before = -1,
                                .delivered = -1,
                                .moved = -1};
        memcpy(part_of(&s->now, k, USI_SENSOR_PARAMETER), k->parameter,
               (size_t)k->kind->n_parameter * sizeof(double));
        if (k->kind->is_frame) {
            t->wake = INT64_MAX;
            t->tick = 0;
            continue;
        }
        status = sample(s, i, true, true);
        set_wake(s, k, t, false);
    }
    return status;
}

us_status usi_sensors_step(us_sim *s) {
    const us_model *m = s->model;
    const int64_t tick = s->now.tick[0];
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_sensor && !status; i++) {
        usi_sensor_state *t = &s->now.sensor[i];
        if (tick < t->wake) continue;
        const usi_sensor *k = &m->sensor[i];
        bool is_moved = false;
        deliver(s, k, t);
        if (tick >= t->due) {
            status = sample(s, i, false, false);
        } else if (k->kind->uses_force && tick + 1 >= t->due) {
            const usi_sensor_motion at = motion_of(s, k);
            keep_motion(s, t, &at);
            is_moved = true;
        }
        set_wake(s, k, t, is_moved);
    }
    return status;
}

void usi_sensor_reschedule(us_sim *s, int32_t sensor) {
    const usi_sensor *k = &s->model->sensor[sensor];
    usi_sensor_state *t = &s->now.sensor[sensor];
    t->due = next_due(s->model, k, t->rate, s->now.tick[0]);
    set_wake(s, k, t, false);
}

void usi_sim_sense_one(us_sim *s, int32_t sensor) {
    const usi_sensor *k = &s->model->sensor[sensor];
    if (k->kind->is_frame) return;
    // The next step tells of it.
    if (sample(s, sensor, false, true)) s->has_sensor_failed = true;
    set_wake(s, k, &s->now.sensor[sensor], false);
}

// ---------------------------------------------------------------- queues as part of the state

us_status usi_sensors_create(us_sim *s) {
    if (s->model->n_pending == 0) return US_OK;
    s->pending = usi_alloc(&s->allocator, s->model->n_pending * sizeof *s->pending, _Alignof(double));
    return s->pending ? US_OK : US_ERR_MEMORY;
}

void usi_sensors_destroy(us_sim *s) {
    if (s->pending)
        usi_release(&s->allocator, s->pending, s->model->n_pending * sizeof *s->pending, _Alignof(double));
}

static size_t slot_bytes(const usi_sensor *k) { return (size_t)usi_pending_size(k->kind) * sizeof(double); }

size_t usi_sensors_length(const us_model *m, const usi_sensor_state *state) {
    size_t length = 0;
    for (int32_t i = 0; i < m->n_sensor; i++)
        length += (size_t)state[i].n_pending * slot_bytes(&m->sensor[i]);
    return length;
}

size_t usi_sensors_save(const us_sim *s, char *to) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_sensor && to; i++) {
        const usi_sensor *k = &m->sensor[i];
        const usi_sensor_state *t = &s->now.sensor[i];
        for (int64_t n = 0; n < t->n_pending; n++, to += slot_bytes(k))
            memcpy(to, slot(s, k, t->first + n), slot_bytes(k));
    }
    return usi_sensors_length(m, s->now.sensor);
}

bool usi_sensors_are_sound(const us_model *m, const usi_sensor_state *state, const char *from) {
    for (int32_t i = 0; i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        int64_t before = 0;
        for (int64_t n = 0; n < state[i].n_pending; n++, from += slot_bytes(k)) {
            double entry[USI_PENDING_READING + US_SENSOR_MAX_READING];
            memcpy(entry, from, slot_bytes(k));
            const int64_t taken = ticks_in(entry, USI_PENDING_TICK), due = ticks_in(entry, USI_PENDING_DUE);
            if (taken < 0 || due < taken || due < before || due > USI_MAX_TICK) return false;
            if (!usi_are_numbers(entry + USI_PENDING_READING, (size_t)k->kind->n_reading)) return false;
            before = due;
        }
    }
    return true;
}

void usi_sensors_restore(us_sim *s, const char *from) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        const usi_sensor_state *t = &s->now.sensor[i];
        for (int64_t n = 0; n < t->n_pending; n++, from += slot_bytes(k))
            memcpy(slot(s, k, t->first + n), from, slot_bytes(k));
    }
}

uint64_t usi_sensors_hash(const us_sim *s, uint64_t seed) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        const usi_sensor_state *t = &s->now.sensor[i];
        for (int64_t n = 0; n < t->n_pending; n++)
            seed = us_hash_bytes(seed, slot(s, k, t->first + n), slot_bytes(k));
    }
    return seed;
}

void usi_sensor_carry_queue(const us_sim *from, int32_t old, us_sim *to, int32_t sensor) {
    const usi_sensor *a = &from->model->sensor[old], *b = &to->model->sensor[sensor];
    const usi_sensor_state *was = &from->now.sensor[old];
    usi_sensor_state *t = &to->now.sensor[sensor];
    t->first = a->max_pending == b->max_pending ? was->first : 0;
    t->n_pending = was->n_pending < b->max_pending ? was->n_pending : b->max_pending;
    t->n_lost += was->n_pending - t->n_pending;
    for (int64_t n = 0; n < t->n_pending; n++)
        memcpy(slot(to, b, t->first + n), slot(from, a, was->first + n), slot_bytes(b));
}
