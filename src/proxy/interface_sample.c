// Topics of a robot's own interface: what it sends on them. Every name was found with the model: a sample is
// a walk over its rows.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rate.h"
#include "model/lidars.h"
#include "proxy/proxy__sample.h"

// ---------------------------------------------------------------- names and network

// Where endpoint i leaves.
static usi_outlet *outlet_of(const usi_robot *r, int32_t i) {
    return &r->outlet[r->n_topic + USI_SERVICE_COUNT + i];
}

static us_qos qos_of(const us_endpoint_def *e) {
    us_qos qos = {.is_reliable = e->is_reliable, .is_transient_local = e->is_latched, .depth = e->depth};
    if (e->partition) snprintf(qos.partition, sizeof qos.partition, "%s", e->partition);
    return qos;
}

size_t usi_interface_sample_size(const us_model *m) {
    size_t most = 0;
    for (int32_t i = 0; i < m->n_robot; i++) {
        const usi_interface_model *own = &m->robot[i].interface_;
        for (int32_t k = 0; k < own->n_endpoint; k++)
            most = own->endpoint[k].size > most ? own->endpoint[k].size : most;
    }
    return most;
}

us_status usi_interface_make(us_proxy *p, usi_robot *r) {
    const usi_interface_model *own = &r->model->interface_;
    const size_t n = (size_t)own->n_inlet + 1;
    r->inlet_channel = usi_arena_alloc(&p->arena, n * sizeof *r->inlet_channel, _Alignof(int32_t));
    r->inlet_reader = usi_arena_alloc(&p->arena, n * sizeof(us_reader *), _Alignof(us_reader *));
    if (!r->inlet_channel || !r->inlet_reader) return US_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        r->inlet_reader[i] = NULL;
    r->types = us_interface_keep(r->model->network->interface_);
    for (int32_t i = 0; i < own->n_endpoint; i++) {
        const usi_endpoint *e = &own->endpoint[i];
        usi_outlet *out = outlet_of(r, i);
        out->type = e->type;
        out->channel = usi_channel_add(p, e->topic, e->type, true, r->index);
        if (out->channel < 0) return US_ERR_MEMORY;
        p->channel[out->channel].qos = qos_of(e->def);
    }
    for (int32_t i = 0; i < own->n_inlet; i++) {
        r->inlet_channel[i] = usi_channel_add(p, own->inlet[i].topic, own->inlet[i].type, false, r->index);
        if (r->inlet_channel[i] < 0) return US_ERR_MEMORY;
    }
    return US_OK;
}

us_status usi_interface_connect(us_proxy *p, usi_robot *r, int32_t node, us_error *err) {
    const usi_interface_model *own = &r->model->interface_;
    us_status status = US_OK;
    for (int32_t i = 0; i < own->n_endpoint && !status; i++) {
        const usi_endpoint *e = &own->endpoint[i];
        usi_outlet *out = outlet_of(r, i);
        // Answers of several kinds leave on one topic.
        for (int32_t k = 0; k < i && !out->writer; k++) {
            if (outlet_of(r, k)->channel == out->channel) out->writer = outlet_of(r, k)->writer;
        }
        out->is_shared = out->writer != NULL;
        const us_topic_def def = {e->topic, e->type, qos_of(e->def), node};
        if (!out->writer) status = us_bus_add_writer(p->bus, &def, &out->writer, err);
    }
    usi_subscription *to =
        usi_arena_alloc(&p->arena, ((size_t)own->n_inlet + 1) * sizeof *to, _Alignof(usi_subscription));
    if (!to)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the robots' network");
    for (int32_t i = 0; i < own->n_inlet && !status; i++) {
        const usi_inlet *inlet = &own->inlet[i];
        to[i] =
            (usi_subscription){r->mailbox, USI_COMMAND_COUNT + i, r->gate < 0 ? NULL : p->gate, r->gate, ""};
        const us_topic_def def = {inlet->topic, inlet->type, qos_of(inlet->def), node};
        status = us_bus_add_reader(p->bus, &def, usi_mailbox_on_sample, &to[i], &r->inlet_reader[i], err);
    }
    return status;
}

void usi_interface_disconnect(usi_robot *r) {
    for (int32_t i = 0; r->inlet_reader && i < r->model->interface_.n_inlet; i++) {
        if (r->inlet_reader[i]) us_reader_remove(r->inlet_reader[i]);
    }
}

// ---------------------------------------------------------------- values

typedef struct answer_parts {
    const usi_wire_value *copy;  // USI_COPIES
    const char *why;
} answer_parts;

// What one sample knows already: a rotation is worked out once.
typedef struct gathering {
    usi_sampling *w;
    const answer_parts *answer;
    usi_value_source source;  // of the motion below; USI_VALUE_NUMBER: none
    int32_t index;
    double part[USI_PARTS];
} gathering;

static void put_vector(double *to, us_vec3 v) {
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
}

static void put_pose(double *part, us_pose X) {
    const us_quat q = X.q;
    put_vector(part + USI_PART_POSITION, X.p);
    part[USI_PART_QUATERNION] = q.w;
    put_vector(part + USI_PART_QUATERNION + 1, us_vec3_make(q.x, q.y, q.z));
    for (int c = 0; c < 3; c++) {
        const us_vec3 column = us_quat_rotate(q, us_vec3_make(c == 0, c == 1, c == 2));
        part[USI_PART_MATRIX + c] = column.x;
        part[USI_PART_MATRIX + 3 + c] = column.y;
        part[USI_PART_MATRIX + 6 + c] = column.z;
    }
    const double sine = fmax(-1, fmin(1, 2 * (q.w * q.y - q.z * q.x)));
    part[USI_PART_RPY] = atan2(2 * (q.w * q.x + q.y * q.z), 1 - 2 * (q.x * q.x + q.y * q.y));
    part[USI_PART_RPY + 1] = asin(sine);
    part[USI_PART_RPY + 2] = atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z));
}

static us_pose planar(const double at[3]) {
    return (us_pose){{cos(0.5 * at[2]), 0, 0, sin(0.5 * at[2])}, us_vec3_make(at[0], at[1], 0)};
}

static void gather_imu(gathering *g, int32_t sensor) {
    const double *x = usi_sim_reading(g->w->sim, sensor);
    put_pose(g->part, (us_pose){{x[0], x[1], x[2], x[3]}, us_vec3_make(0, 0, 0)});
    memcpy(g->part + USI_PART_SPIN, x + 4, 3 * sizeof *x);
    memcpy(g->part + USI_PART_ACCELERATION, x + 7, 3 * sizeof *x);
}

// The motion that a value is a part of.
static void gather(gathering *g, const usi_value *v) {
    const usi_firmware_state *f = g->w->firmware;
    if (g->source == v->source && g->index == v->index) return;
    g->source = v->source;
    g->index = v->index;
    memset(g->part, 0, sizeof g->part);
    if (v->source == USI_VALUE_IMU) {
        gather_imu(g, v->index);
    } else if (v->source == USI_VALUE_FRAME) {
        put_pose(g->part, usi_sampling_frame(g->w, &g->w->r->model->frame[v->index]));
    } else {
        us_pose X = planar(f->odom);
        if (v->source == USI_VALUE_POSE) X = us_pose_mul(planar(f->pose_offset), X);
        put_pose(g->part, X);
        g->part[USI_PART_VELOCITY] = f->odom_v[0];
        g->part[USI_PART_VELOCITY + 1] = f->odom_v[1];
        g->part[USI_PART_SPIN + 2] = f->odom_v[2];
    }
}

static double joint_torque(const usi_sampling *w, int32_t joint) {
    const int32_t drive = w->r->model->firmware.joint[joint].drive;
    return drive >= 0 ? us_sim_view_torque(w->sim)[w->r->model->drive[drive].index] : 0;
}

static void set_text(usi_wire_value *out, const char *text) {
    out->text = text;
    out->length = (uint32_t)strlen(text);
}

// Time that is scaled to whole units (ms, us, ns) is a count, which a double need not hold.
static void set_time(usi_wire_value *out, const usi_value *v, int64_t stamp) {
    const double ns = 1e9 / v->scale;
    const int64_t each = ns >= 1 && ns < 1e18 ? (int64_t)llround(ns) : 0;
    out->is_whole = v->offset == 0 && each > 0 && fabs(ns - (double)each) < 1e-9 * ns;
    if (out->is_whole) out->whole = stamp / each;
    out->number = 1e-9 * (double)stamp * v->scale + v->offset;
}

static usi_wire_value evaluate(gathering *g, const usi_value *v, const usi_message_field *leaf) {
    const usi_sampling *w = g->w;
    usi_wire_value out = {0};
    double x = 0;
    const int64_t stamp = usi_timing_stamp(w->p, w->r, w->of_time), seconds = stamp / 1000000000;
    switch (v->source) {
    case USI_VALUE_TEXT:
        out.text = v->text;
        out.length = v->length;
        return out;
    case USI_VALUE_CONTROLLER:
        set_text(&out, usi_source_in_force(w->r, w->s, us_sim_get_tick(w->sim)));
        return out;
    case USI_VALUE_REFUSAL:
        set_text(&out, g->answer ? g->answer->why : "");
        return out;
    case USI_VALUE_COPY:
        if (g->answer) out = g->answer->copy[v->index];
        return out;
    case USI_VALUE_TIME:
        set_time(&out, v, stamp);
        // A fraction of a second keeps its fraction.
        out.is_whole = out.is_whole && leaf->kind < USI_KIND_FLOAT32;
        return out;
    case USI_VALUE_SECONDS:
        x = (double)seconds;
        break;
    case USI_VALUE_NANOSECONDS:
        x = (double)(stamp % 1000000000);
        break;
    case USI_VALUE_JOINT_POSITION:
        x = usi_noise_add(w, US_NOISE_JOINT_POSITION, v->index, usi_read_q(w->r, w->sim, v->index));
        break;
    case USI_VALUE_JOINT_VELOCITY:
        x = usi_noise_add(w, US_NOISE_JOINT_VELOCITY, v->index, usi_read_v(w->r, w->sim, v->index));
        break;
    case USI_VALUE_JOINT_TORQUE:
        x = joint_torque(w, v->index);
        break;
    case USI_VALUE_BATTERY:
        x = usi_sim_reading(w->sim, v->index)[v->part];
        break;
    case USI_VALUE_READING:
        x = usi_sampling_numbers(w)[v->part];
        break;
    case USI_VALUE_PARAMETER:
        x = w->sim->now.sensor_part[usi_sensor_part_at(&w->p->model->sensor[v->index], USI_SENSOR_PARAMETER) +
                                    v->part];
        break;
    case USI_VALUE_NUMBER:
        break;
    default:
        gather(g, v);
        x = g->part[v->part];
    }
    if (v->is_squared) x *= x;
    out.number = v->scale * x + v->offset;
    return out;
}

// ---------------------------------------------------------------- samples

static void pass(usi_sampling *w, size_t length) {
    if (length > w->p->n_byte)
        w->p->n_too_long++;
    else
        usi_sampling_pass(w, length);
}

static void send_members(usi_sampling *w, const usi_endpoint *e, const answer_parts *answer) {
    us_proxy *p = w->p;
    usi_lidar_list turn;
    gathering g = {.w = w, .answer = answer};
    for (int32_t k = 0; k < e->n; k++) {
        if (!usi_value_is_list(e->value[k].source))
            p->values[k] = evaluate(&g, &e->value[k], e->member[k].leaf);
    }
    if (e->lidar < 0) {
        pass(w, usi_members_write(e->type, e->member, p->values, e->n, NULL, p->bytes, p->n_byte));
        return;
    }
    for (bool has_more = usi_lidar_list_begin(&turn, w, e); has_more; has_more = usi_lidar_list_go_on(&turn))
        pass(w, usi_members_write(e->type, e->member, p->values, e->n, &turn.list, p->bytes, p->n_byte));
}

static void send(usi_sampling *w, int32_t i, const answer_parts *answer) {
    const usi_endpoint *e = &w->r->model->interface_.endpoint[i];
    w->outlet = w->r->n_topic + USI_SERVICE_COUNT + i;
    w->of_time = e->lidar < 0 ? w->time : usi_lidar_sample_time(w->sim, e->lidar);
    send_members(w, e, answer);
}

// A kind that names members of a message has them; any other sends names, units and values.
void usi_sample_readings(usi_sampling *w) {
    const usi_endpoint *e = w->r->model->topic[w->outlet].message;
    if (e) {
        send_members(w, e, NULL);
        return;
    }
    const usi_sensor *k = &w->p->model->sensor[w->sensor];
    const int32_t n = k->kind->n_reading;
    us_msg_sensor_readings m = {.kind = usi_text(k->kind->name)};
    usi_sampling_head(w, &m.header, k->frame ? k->frame : "");
    USI_SAMPLING_TAKE(w, m.names, n);
    USI_SAMPLING_TAKE(w, m.units, n);
    USI_SAMPLING_TAKE(w, m.values, n);
    if (m.values._length == 0) return;
    for (int32_t i = 0; i < n; i++) {
        m.names._buffer[i] = usi_text(k->kind->readings[i].name);
        m.units._buffer[i] = usi_text(k->kind->readings[i].unit);
        m.values._buffer[i] = usi_sampling_numbers(w)[i];
    }
    usi_sampling_send(w, &m);
}

static bool is_listened(const us_proxy *p, const usi_robot *r, int32_t i) {
    const int32_t channel = outlet_of(r, i)->channel;
    return p->outbox || p->record.sample ||
           (p->tap && atomic_load_explicit(&p->channel[channel].is_wanted, memory_order_relaxed));
}

// A lidar's turn leaves when it is whole.
static bool is_due(const us_proxy *p, const us_sim *sim, const usi_endpoint *e, int64_t phase) {
    if (e->lidar >= 0) return usi_lidar_is_due(sim, p->model->lidar[e->lidar].sensor, e->def->rate);
    return usi_is_due(e->def->rate, p->step, phase);
}

void usi_interface_publish(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                           bool is_first, usi_sink sink) {
    const usi_interface_model *own = &r->model->interface_;
    if (own->n_endpoint == 0) return;
    usi_sampling w = usi_sampling_begin(p, r, sim, s);
    w.sink = sink;
    const int64_t phase = us_sim_get_tick(sim) + usi_robot_phase(r->number);
    for (int32_t i = 0; i < own->n_endpoint; i++) {
        const us_endpoint_def *e = own->endpoint[i].def;
        if (e->use != US_ENDPOINT_PUBLISH) continue;
        const bool is_once = e->rate == 0;
        if (sink != USI_SINK_ALL && !(is_once && outlet_of(r, i)->is_sent)) continue;
        if (is_once ? is_first : is_listened(p, r, i) && is_due(p, sim, &own->endpoint[i], phase))
            send(&w, i, NULL);
    }
}

void usi_interface_send_answer(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                               int32_t inlet, int32_t answer, const usi_wire_value *copy, const char *why) {
    const int32_t endpoint = r->model->interface_.inlet[inlet].answer[answer];
    if (endpoint < 0) return;
    usi_sampling w = usi_sampling_begin(p, r, sim, s);
    const answer_parts parts = {copy, why};
    send(&w, endpoint, &parts);
    if (p->outbox) usi_outbox_ring(p->outbox);
}
