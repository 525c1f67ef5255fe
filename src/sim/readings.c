// Sensors in the state of a sim.
#include <string.h>

#include "model/robots.h"
#include "sim/sim.h"

static usi_sense_input input_of(const us_sim *s) {
    return (usi_sense_input){
        .q = s->now.q, .v = s->now.v, .battery_energy = s->now.battery_energy, .tick = s->now.tick[0]};
}

usi_encoder_reading usi_sim_read_encoder(const us_sim *s, int32_t encoder) {
    return usi_encoder_read(&s->model->encoder[encoder], &s->now.encoder[encoder], s->now.q, s->now.v,
                            s->model->step, s->now.tick[0]);
}

void usi_sim_sense(us_sim *s) {
    const usi_sense_input in = input_of(s);
    usi_sense(s->model, &in, s->now.sensor, s->now.reading);
}

void usi_sim_sense_one(us_sim *s, int32_t sensor) {
    const usi_sense_input in = input_of(s);
    usi_sense_one(s->model, &in, sensor, s->now.sensor, s->now.reading);
}

void usi_sim_sense_tree(us_sim *s, int32_t tree) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        if (k->kind == USI_SENSOR_BATTERY) continue;
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
    if (same && same->kind == k->kind && strcmp(same->name, k->name) == 0) return r->first_sensor + number;
    return usi_robot_find_sensor(m, r, (usi_sensor_kind)k->kind, k->name);
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

void usi_sim_carry_sensors(const us_sim *from, us_sim *to) {
    const us_model *m = to->model, *o = from->model;
    usi_sim_sense(to);
    for (int32_t i = 0; i < m->n_robot; i++) {
        const usi_robot_model *r = &m->robot[i], *was = find_robot(o, r->name);
        if (!was) continue;
        carry_encoders(from, to, r, was);
        for (int32_t k = 0; k < r->n_sensor; k++) {
            int32_t sensor = r->first_sensor + k, old = find_sensor(o, was, k, &m->sensor[sensor]);
            if (old < 0) continue;
            size_t n = (size_t)m->sensor[sensor].n_reading;
            to->now.sensor[sensor] = from->now.sensor[old];
            if (m->sensor[sensor].kind == USI_SENSOR_LIDAR)
                usi_lidar_carry(from, o->sensor[old].lidar, to, m->sensor[sensor].lidar);
            memcpy(to->now.reading + m->sensor[sensor].reading, usi_sim_reading(from, old),
                   n * sizeof(double));
        }
    }
}
