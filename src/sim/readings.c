// Sensors in the state of a sim.
#include <string.h>

#include "model/robots.h"
#include "sim/sim.h"

void usi_sim_sense(us_sim *s) {
    for (int32_t i = 0; i < s->model->n_sensor; i++)
        usi_sim_sense_one(s, i);
}

void usi_sim_sense_tree(us_sim *s, int32_t tree) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        if (k->body < 0) continue;
        int32_t node = m->body[k->body].node;
        if (node >= 0 && m->node[node].tree == tree) usi_sim_sense_one(s, i);
    }
}

// ---------------------------------------------------------------- another model

static const usi_robot_model *find_robot(const us_model *m, const char *name) {
    for (int32_t i = 0; i < m->n_robot; i++) {
        if (strcmp(m->robot[i].name, name) == 0) return &m->robot[i];
    }
    return NULL;
}

// Mostly the same number within the robot.
static int32_t find_sensor(const us_model *m, const usi_robot_model *r, int32_t number, const usi_sensor *k) {
    const usi_sensor *same = number < r->n_sensor ? &m->sensor[r->first_sensor + number] : NULL;
    if (same && usi_sensor_is(same, k->kind->name) && strcmp(same->name, k->name) == 0)
        return r->first_sensor + number;
    return usi_robot_find_sensor(m, r, k->kind->name, k->name);
}

static int32_t find_encoder(const us_model *m, const usi_robot_model *r, int32_t number, const char *name) {
    const int32_t n = r->firmware.n_joint;
    if (number < n && strcmp(m->encoder[r->first_encoder + number].name, name) == 0)
        return r->first_encoder + number;
    for (int32_t i = r->first_encoder; i < r->first_encoder + n; i++) {
        if (strcmp(m->encoder[i].name, name) == 0) return i;
    }
    return -1;
}

// One whose cable is torn now says for good what it said last.
static void carry_encoders(const us_sim *from, us_sim *to, const usi_robot_model *r,
                           const usi_robot_model *was) {
    const us_model *m = to->model;
    for (int32_t i = 0; i < r->firmware.n_joint; i++) {
        const usi_encoder *k = &m->encoder[r->first_encoder + i];
        usi_encoder_state *s = &to->now.encoder[r->first_encoder + i];
        const int32_t old = find_encoder(from->model, was, i, k->name);
        if (old < 0) continue;
        *s = from->now.encoder[old];
        if (k->is_lost) s->held = usi_sim_read_encoder(from, old).q;
    }
}

// Whether the numbers of a kind mean the same: an edit may have brought another version of a plug-in.
static bool is_same_kind(const us_sensor_kind *a, const us_sensor_kind *b) {
    if (a == b) return true;
    bool is_same =
        a->n_state == b->n_state && a->n_parameter == b->n_parameter && a->n_reading == b->n_reading;
    for (int32_t i = 0; i < a->n_parameter && is_same; i++)
        is_same = strcmp(a->parameters[i].name, b->parameters[i].name) == 0;
    return is_same;
}

// What was changed while it ran stays changed; what the new model has otherwise than the old one is new.
static void carry_sensor(const us_sim *from, int32_t old, us_sim *to, int32_t sensor) {
    const usi_sensor *a = &from->model->sensor[old], *b = &to->model->sensor[sensor];
    const us_sensor_kind *kind = b->kind;
    if (!is_same_kind(a->kind, kind)) return;
    usi_sensor_state *t = &to->now.sensor[sensor];
    *t = from->now.sensor[old];
    if (a->rate != b->rate) t->rate = b->rate;
    if (a->latency != b->latency) t->latency = b->latency;
    if (kind->is_frame) {
        usi_lidar_carry(from, a->lidar, to, b->lidar);
        return;
    }
    for (int i = 0; i < USI_SENSOR_PARTS; i++) {
        const usi_sensor_part part = (usi_sensor_part)i;
        const int32_t n = usi_sensor_part_count(kind, part);
        const double *x = from->now.sensor_part + usi_sensor_part_at(a, part);
        double *y = to->now.sensor_part + usi_sensor_part_at(b, part);
        for (int32_t k = 0; k < n; k++) {
            if (part != USI_SENSOR_PARAMETER || a->parameter[k] == b->parameter[k]) y[k] = x[k];
        }
    }
    memcpy(to->now.reading + b->reading, usi_sim_reading(from, old),
           (size_t)kind->n_reading * sizeof(double));
    usi_sensor_carry_queue(from, old, to, sensor);
}

void usi_sim_carry_sensors(const us_sim *from, us_sim *to) {
    const us_model *m = to->model, *o = from->model;
    usi_sim_sense(to);
    for (int32_t i = 0; i < m->n_robot; i++) {
        const usi_robot_model *r = &m->robot[i], *was = find_robot(o, r->name);
        if (!was) continue;
        carry_encoders(from, to, r, was);
        for (int32_t k = 0; k < r->n_sensor; k++) {
            int32_t sensor = r->first_sensor + k, old = find_sensor(o, was, k, &m->sensor[sensor]);
            if (old >= 0) carry_sensor(from, old, to, sensor);
        }
    }
}
