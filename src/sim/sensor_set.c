// What programs see of sensors between steps, and what they change.
#include <math.h>
#include <string.h>

#include "base/text_value.h"
#include "model/robots.h"
#include "sim/sim__sensors.h"
#include "spec/publication.h"
#include "spec/sensor_kind.h"
#include "understudy/sensing.h"

// ---------------------------------------------------------------- which there are

static const usi_sensor *row(const us_model *m, us_sensor sensor) {
    return m && sensor.i >= 0 && sensor.i < m->n_sensor ? &m->sensor[sensor.i] : NULL;
}

int32_t us_model_n_sensor(const us_model *m) { return m ? m->n_sensor : 0; }

us_sensor_info us_model_get_sensor(const us_model *m, us_sensor sensor) {
    const usi_sensor *k = row(m, sensor);
    if (!k) return (us_sensor_info){.robot = "", .name = "", .frame = "", .body = {-1}, .lidar = {-1}};
    return (us_sensor_info){.kind = k->kind,
                            .robot = m->robot[k->robot].name,
                            .name = k->name,
                            .frame = k->frame ? k->frame : "",
                            .body = {k->body},
                            .X_BS = k->X_BS,
                            .lidar = {k->kind->is_frame ? k->lidar : -1}};
}

us_sensor us_model_find_sensor(const us_model *m, const char *robot, const char *name) {
    for (int32_t i = 0; m && robot && name && i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        if (strcmp(k->name, name) == 0 && strcmp(m->robot[k->robot].name, robot) == 0) return (us_sensor){i};
    }
    return (us_sensor){-1};
}

// ---------------------------------------------------------------- what they say

us_sensor_sample us_sim_view_sensor_sample(const us_sim *s, us_sensor sensor) {
    const usi_sensor *k = s ? row(s->model, sensor) : NULL;
    if (!k) return (us_sensor_sample){.tick = -1};
    const usi_sensor_state *t = &s->now.sensor[sensor.i];
    const bool is_there = !k->kind->is_frame;
    return (us_sensor_sample){
        .tick = t->sampled,
        .number = t->n_sample,
        .n_lost = t->n_lost,
        .truth = is_there ? s->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_TRUTH) : NULL,
        .reading = is_there ? s->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_SAMPLE) : NULL};
}

us_sensor_sample us_sim_view_sensor_reading(const us_sim *s, us_sensor sensor) {
    us_sensor_sample said = us_sim_view_sensor_sample(s, sensor);
    if (!said.reading) return said;
    const usi_sensor_state *t = &s->now.sensor[sensor.i];
    said.tick = t->tick;
    said.truth = NULL;
    said.reading = usi_sim_reading(s, sensor.i);
    return said;
}

// ---------------------------------------------------------------- parameters

// Behind those of the kind stand the frame's.
enum { FRAME_RATE, FRAME_LATENCY, N_FRAME };
static const char *const frame_names[N_FRAME] = {"rate", "latency"};

int32_t usi_find_setting(const us_sensor_kind *k, const char *name) {
    for (int32_t i = 0; name && i < N_FRAME; i++) {
        if (strcmp(frame_names[i], name) == 0) return k->n_parameter + i;
    }
    return name ? usi_find_parameter(k, name) : -1;
}

static double *parameter(const us_sim *s, int32_t sensor, int32_t at) {
    const usi_sensor *k = &s->model->sensor[sensor];
    usi_sensor_state *t = &s->now.sensor[sensor];
    if (at == k->kind->n_parameter + FRAME_RATE) return &t->rate;
    if (at == k->kind->n_parameter + FRAME_LATENCY) return &t->latency;
    return s->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_PARAMETER) + at;
}

double usi_sim_setting(const us_sim *s, int32_t sensor, int32_t at) {
    return at >= 0 && at < s->model->sensor[sensor].kind->n_parameter + N_FRAME ? *parameter(s, sensor, at)
                                                                                : NAN;
}

double us_sim_get_sensor_parameter(const us_sim *s, us_sensor sensor, const char *name) {
    const usi_sensor *k = s ? row(s->model, sensor) : NULL;
    const int32_t at = k ? usi_find_setting(k->kind, name) : -1;
    return at >= 0 ? *parameter(s, sensor.i, at) : NAN;
}

static us_status fail_name(const us_sensor_kind *k, const char *name, us_error *err) {
    const char *known[US_SENSOR_MAX_PARAMETER + N_FRAME];
    int32_t n = 0;
    for (int32_t i = 0; i < k->n_parameter; i++)
        known[n++] = k->parameters[i].name;
    for (int32_t i = 0; i < N_FRAME; i++)
        known[n++] = frame_names[i];
    return usi_fail_unknown("parameter", name ? name : "", known, n, err);
}

// As many samples may be under way as there is room for; of a lidar, one frame.
static bool has_room(const us_sim *s, const usi_sensor *k, double rate, double latency) {
    const double each = rate > 0 ? fmin(rate, 1 / s->model->step) : 1 / s->model->step;
    return k->kind->is_frame ? latency * rate < 1 : ceil(latency * each) + 2 <= k->max_pending;
}

// Rate and latency: as many samples may be under way as there is room for.
static us_status check_time(const us_sim *s, const usi_sensor *k, int32_t sensor, const char *name,
                            double rate, double latency, us_error *err) {
    const bool is_rate = strcmp(name, "rate") == 0;
    if (k->kind->is_frame && is_rate)
        return us_error_set(err, US_ERR_VALUE, NULL, "change it in the scene",
                            "rate: frames of \"%.60s\" have the size that the rate in the scene gives them",
                            k->name);
    if (is_rate && !(rate >= 0 && rate <= USI_SENSOR_MAX_RATE))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a number from 0 (each step) to 1000000 Hz",
                            "rate: %.9g is out of range", rate);
    if (!(latency >= 0 && latency <= USI_SENSOR_MAX_LATENCY))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a time from 0 to 10 s",
                            "latency: %.9g is out of range", latency);
    if (!has_room(s, k, rate, latency + s->now.sensor[sensor].delay))
        return us_error_set(err, US_ERR_LIMIT, NULL,
                            "lower the rate or the latency, or write a longer latency into the scene",
                            "%s: more than %d samples would be under way", name,
                            k->kind->is_frame ? 1 : (int)k->max_pending - 2);
    return US_OK;
}

us_status us_sim_set_sensor_parameter(us_sim *s, us_sensor sensor, const char *name, double value,
                                      us_error *err) {
    const usi_sensor *k = s ? row(s->model, sensor) : NULL;
    if (!k)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a sensor of the model", "there is no such sensor");
    const int32_t at = usi_find_setting(k->kind, name), n = k->kind->n_parameter;
    const us_sensor_parameter *p = at >= 0 && at < n ? &k->kind->parameters[at] : NULL;
    if (at < 0) return fail_name(k->kind, name, err);
    if (p && (p->is_fixed || usi_is_reference(p)))
        return us_error_set(err, US_ERR_VALUE, NULL, "change it in the scene",
                            "%.60s: it cannot be changed while the sensor runs", name);
    usi_sensor_state *t = &s->now.sensor[sensor.i];
    us_status status = p ? usi_check_parameter(p, value, err)
                         : check_time(s, k, sensor.i, name, at == n + FRAME_RATE ? value : t->rate,
                                      at == n + FRAME_LATENCY ? value : t->latency, err);
    if (status) return status;
    *parameter(s, sensor.i, at) = value;
    if (at == n + FRAME_RATE) usi_sensor_reschedule(s, sensor.i);
    usi_report_input(s, &(usi_input){USI_INPUT_SENSOR, sensor.i, at, 1, &value});
    return US_OK;
}

// ---------------------------------------------------------------- faults

us_sensor_fault us_sensor_fault_default(void) { return (us_sensor_fault){.noise = 1}; }

us_sensor_fault us_sim_get_sensor_fault(const us_sim *s, us_sensor sensor) {
    if (!s || !row(s->model, sensor)) return us_sensor_fault_default();
    const usi_sensor_state *t = &s->now.sensor[sensor.i];
    return (us_sensor_fault){t->is_dead != 0, t->is_stuck != 0, 1 + t->scale, t->delay, t->drop};
}

us_status us_sim_set_sensor_fault(us_sim *s, us_sensor sensor, const us_sensor_fault *f) {
    const usi_sensor *k = s ? row(s->model, sensor) : NULL;
    if (!k || !f) return US_ERR_ARG;
    usi_sensor_state *t = &s->now.sensor[sensor.i];
    if (!(f->noise >= 0 && f->noise <= 1e6) || !(f->drop >= 0 && f->drop <= 1) ||
        !(f->delay >= 0 && f->delay <= USI_SENSOR_MAX_DELAY))
        return US_ERR_VALUE;
    if (!has_room(s, k, t->rate, t->latency + f->delay)) return US_ERR_VALUE;
    t->is_dead = f->is_dead;
    t->is_stuck = f->is_frozen;
    t->scale = f->noise - 1;
    t->delay = f->delay;
    t->drop = f->drop;
    const double number[] = {f->is_dead, f->is_frozen, f->noise, f->delay, f->drop};
    usi_report_input(s, &(usi_input){USI_INPUT_SENSOR_FAULT, sensor.i, 0, 5, number});
    return US_OK;
}

us_status us_sim_set_sensor_error(us_sim *s, us_sensor sensor, const char *reading, double offset,
                                  double deviation, us_error *err) {
    const usi_sensor *k = s ? row(s->model, sensor) : NULL;
    if (!k || !reading)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a sensor of the model, and a reading",
                            "there is no such sensor");
    const int32_t at = usi_find_reading(k->kind, reading);
    const char *known[US_SENSOR_MAX_READING];
    int32_t n = 0;
    for (int32_t i = 0; i < k->kind->n_reading; i++) {
        if (!k->kind->readings[i].is_exact) known[n++] = k->kind->readings[i].name;
    }
    if (at < 0) return usi_fail_unknown("reading", reading, known, n, err);
    if (k->kind->readings[at].is_exact)
        return us_error_set(err, US_ERR_VALUE, NULL, n > 0 ? "choose another reading" : NULL,
                            "%.60s: it is part of a rotation, or a code: nothing can be added to it",
                            reading);
    if (!isfinite(offset) || fabs(offset) > 1e12 || !(deviation >= 0 && deviation <= 1e12))
        return us_error_set(err, US_ERR_VALUE, NULL, "write finite numbers, the deviation 0 or more",
                            "%.60s: a number is out of range", reading);
    s->now.sensor_part[usi_sensor_part_at(k, USI_SENSOR_OFFSET) + at] = offset;
    s->now.sensor_part[usi_sensor_part_at(k, USI_SENSOR_DEVIATION) + at] = deviation;
    const double number[] = {offset, deviation};
    usi_report_input(s, &(usi_input){USI_INPUT_SENSOR_ERROR, sensor.i, at, 2, number});
    return US_OK;
}

// ---------------------------------------------------------------- inputs again

static us_status apply_parameter(us_sim *s, us_sensor sensor, const usi_input *in) {
    const us_sensor_kind *k = s->model->sensor[sensor.i].kind;
    if (in->n != 1 || in->other < 0 || in->other >= k->n_parameter + N_FRAME) return US_ERR_ARG;
    const char *name =
        in->other < k->n_parameter ? k->parameters[in->other].name : frame_names[in->other - k->n_parameter];
    return us_sim_set_sensor_parameter(s, sensor, name, in->number[0], NULL);
}

us_status usi_sim_apply_sensor_input(us_sim *s, const usi_input *in) {
    const us_sensor sensor = {in->index};
    const usi_sensor *k = row(s->model, sensor);
    const double *x = in->number;
    if (!k) return US_ERR_ARG;
    if (in->kind == USI_INPUT_SENSOR) return apply_parameter(s, sensor, in);
    if (in->kind == USI_INPUT_SENSOR_ERROR) {
        if (in->n != 2 || in->other < 0 || in->other >= k->kind->n_reading) return US_ERR_ARG;
        return us_sim_set_sensor_error(s, sensor, k->kind->readings[in->other].name, x[0], x[1], NULL);
    }
    if (in->n != 5) return US_ERR_ARG;
    const us_sensor_fault f = {x[0] != 0, x[1] != 0, x[2], x[3], x[4]};
    return us_sim_set_sensor_fault(s, sensor, &f);
}
