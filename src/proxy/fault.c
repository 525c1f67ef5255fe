// Faults: how they come and go, what they do to the robot as time goes on, and how they are listed.
#include "proxy/fault.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "proxy/proxy__robot.h"
#include "sense/lidar_return.h"
#include "sim/sim.h"
#include "spec/sensor_kind.h"
#include "understudy/sensing.h"

// s that a computer takes to start, unless the fault has a time.
static const double BOOT_TIME = 5;

static int64_t ticks_of(const usi_robot *r, double seconds) {
    return (int64_t)ceil(seconds / r->proxy->step - 1e-6);
}

// ---------------------------------------------------------------- drives

static int32_t joint_of(const usi_robot *r, const char *joint) {
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        if (strcmp(r->model->firmware.joint[i].name, joint) == 0) return i;
    }
    return -1;
}

// The drive of a joint, in the robot's own count; -1: it has none.
static int32_t drive_of(const usi_robot *r, const char *joint) {
    int32_t i = joint_of(r, joint);
    return i >= 0 ? r->model->firmware.joint[i].drive : -1;
}

static us_status fail_robot(const char *robot, us_error *err) {
    return us_error_set(err, US_ERR_NAME, NULL, "name a robot that is on the network",
                        "there is no robot \"%.100s\" with a network interface", robot);
}

us_status usi_proxy_set_strength(us_proxy *p, us_sim *sim, const char *robot, const char *joint, double share,
                                 double *out_before, us_error *err) {
    int32_t index = us_proxy_find_robot(p, robot);
    if (index < 0 || !(share >= 0 && share <= 1)) return fail_robot(robot, err);
    const usi_robot *r = &p->robot[index];
    int32_t k = drive_of(r, joint);
    if (k < 0)
        return us_error_set(err, US_ERR_NAME, NULL,
                            "name a joint with a drive; \"understudy info\" lists them",
                            "\"%.100s/%.100s\" has no drive", robot, joint);
    if (share > 0 && share < 1 && !isfinite(p->model->drive[r->model->drive[k].index].limit))
        return us_error_set(err, US_ERR_VALUE, NULL, "give the drive a limit in the scene, or write dead",
                            "the drive of \"%.100s/%.100s\" has no limit of which a part could be left",
                            robot, joint);
    const us_drive drive = {r->model->drive[k].index};
    if (out_before) *out_before = us_sim_get_drive_strength(sim, drive);
    return us_sim_set_drive_strength(sim, drive, share);
}

// ---------------------------------------------------------------- the others

static void set_encoder(us_sim *sim, int32_t encoder, const usi_fault_words *words) {
    usi_encoder_state *e = &sim->now.encoder[encoder];
    const int64_t tick = us_sim_get_tick(sim);
    switch (words->fault) {
    case USI_FAULT_STUCK:
        e->held = usi_sim_read_encoder(sim, encoder).q;
        e->is_stuck = 1;
        break;
    case USI_FAULT_JUMP:
        e->offset += words->number[0];
        break;
    case USI_FAULT_DRIFT:
        e->offset = usi_encoder_offset(e, sim->model->step, tick);
        e->drift = words->number[0];
        e->since = tick;
        break;
    default:
        *e = (usi_encoder_state){.held = e->held};
        break;
    }
}

// What a fault adds to the three components of an inertial unit's angular velocity, then of its force.
static double *imu_offset(const us_sim *sim, int32_t sensor) {
    const usi_sensor *k = &sim->model->sensor[sensor];
    return sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_OFFSET) +
           usi_find_reading(k->kind, "spin.x");
}

static void set_imu(us_sim *sim, int32_t sensor, const usi_fault_words *words) {
    usi_sensor_state *e = &sim->now.sensor[sensor];
    double *offset = imu_offset(sim, sensor);
    e->is_stuck = words->fault == USI_FAULT_STUCK;
    if (e->is_stuck) return;
    // The force stands behind the angular velocity.
    for (int i = 0; i < 6; i++)
        offset[(i + 3) % 6] = words->fault == USI_FAULT_BIAS && i < words->n_number ? words->number[i] : 0;
    usi_sim_sense_one(sim, sensor);
}

static void set_lidar(us_sim *sim, int32_t sensor, const usi_fault_words *words) {
    static const double degree = 0.017453292519943295;
    usi_sensor_state *e = &sim->now.sensor[sensor];
    e->is_stuck = words->fault == USI_FAULT_FROZEN;
    e->offset[USI_LIDAR_IS_DEAD] = words->fault == USI_FAULT_DEAD;
    e->offset[USI_LIDAR_FAULT] = words->fault == USI_FAULT_BLIND   ? USI_LIDAR_HAS_SECTOR
                                 : words->fault == USI_FAULT_BEAMS ? USI_LIDAR_HAS_NO_BEAMS
                                 : words->fault == USI_FAULT_DIRT  ? USI_LIDAR_IS_DIRTY
                                                                   : USI_LIDAR_IS_WELL;
    const double unit = words->fault == USI_FAULT_BLIND ? degree : 1;
    const bool has_numbers = e->offset[USI_LIDAR_FAULT] != USI_LIDAR_IS_WELL;
    e->offset[USI_LIDAR_FIRST] = has_numbers ? unit * words->number[0] : 0;
    e->offset[USI_LIDAR_SECOND] = has_numbers && words->n_number > 1 ? unit * words->number[1] : 0;
}

// Faults that any sensor can have. Each adds to those that it has; ok takes them all.
static us_status set_sensor(us_sim *sim, us_sensor sensor, const usi_fault_words *words, us_error *err) {
    us_sensor_fault f = us_sim_get_sensor_fault(sim, sensor);
    const usi_sensor *k = &sim->model->sensor[sensor.i];
    double *offset = sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_OFFSET),
           *deviation = sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_DEVIATION);
    const int32_t at = usi_find_reading(k->kind, words->reading);
    const double x = words->number[0];
    switch (words->fault) {
    case USI_FAULT_DEAD:
        f.is_dead = true;
        break;
    case USI_FAULT_FROZEN:
        f.is_frozen = true;
        break;
    case USI_FAULT_NOISY:
        f.noise = x;
        break;
    case USI_FAULT_DELAYED:
        f.delay = x;
        break;
    case USI_FAULT_DROPPING:
        f.drop = x;
        break;
    case USI_FAULT_OFFSET:
        return us_sim_set_sensor_error(sim, sensor, words->reading, x, at >= 0 ? deviation[at] : 0, err);
    case USI_FAULT_NOISE:
        return us_sim_set_sensor_error(sim, sensor, words->reading, at >= 0 ? offset[at] : 0, x, err);
    default:
        f = us_sensor_fault_default();
        for (int32_t i = 0; i < k->kind->n_reading; i++)
            offset[i] = deviation[i] = 0;
        break;
    }
    us_status status = us_sim_set_sensor_fault(sim, sensor, &f);
    if (status)
        return us_error_set(err, status, NULL, "choose less, or lower its rate",
                            "\"%.60s\": so many samples cannot be under way", k->name);
    return US_OK;
}

// Without a time it lasts until somebody mends it. Mending lets it end at the next tick.
static int64_t end_of(const usi_robot *r, const us_sim *sim, const usi_fault_words *words) {
    int64_t tick = us_sim_get_tick(sim);
    return words->n_number > 0 ? tick + ticks_of(r, words->number[0]) : INT64_MAX;
}

static void set_computer(const usi_robot *r, const us_sim *sim, usi_robot_state *s,
                         const usi_fault_words *words) {
    usi_fault_state *f = &s->faults;
    int64_t tick = us_sim_get_tick(sim);
    switch (words->fault) {
    case USI_FAULT_BROWNOUT:
        usi_robot_forget(r, sim, s);
        f->power_until = end_of(r, sim, words);
        f->boot_until = 0;
        break;
    case USI_FAULT_REBOOT:
        // Without power it starts when that is back.
        if (!usi_has_power(s)) break;
        usi_robot_forget(r, sim, s);
        f->boot_until = tick + ticks_of(r, words->n_number > 0 ? words->number[0] : BOOT_TIME);
        break;
    default:
        if (words->part == USI_COMPONENT_POWER && !usi_has_power(s)) f->power_until = tick > 0 ? tick : 1;
        if (words->part == USI_COMPONENT_COMPUTER && f->boot_until > tick)
            f->boot_until = tick > 0 ? tick : 1;
        break;
    }
}

static void set_link(usi_robot *r, const us_sim *sim, usi_robot_state *s, const usi_fault_words *words) {
    usi_fault_state *f = &s->faults;
    usi_link_queue uplink = {&s->uplink, (char *)s + r->uplink_at, r->uplink_size};
    switch (words->fault) {
    case USI_FAULT_OUTAGE:
        f->outage_until = end_of(r, sim, words);
        // What is on its way when the link goes out does not arrive.
        s->uplink.n_lost += usi_link_count(&uplink);
        usi_link_clear(&uplink);
        r->downlink_head.n_lost += usi_link_count(&r->downlink);
        usi_link_clear(&r->downlink);
        break;
    case USI_FAULT_LOSS:
        f->loss = words->number[0];
        break;
    case USI_FAULT_DELAY:
        f->delay = words->number[0];
        break;
    default:
        f->outage_until = 0;
        f->loss = f->delay = 0;
        break;
    }
}

static us_status fail_sensor(const us_model *m, const usi_robot_model *r, const usi_fault_words *words,
                             const char *kind, us_error *err) {
    const char *known[USI_SENSOR_LIMIT + 1];
    int32_t n = 0;
    for (int32_t i = r->first_sensor; i < r->first_sensor + r->n_sensor; i++) {
        if ((!kind || usi_sensor_is(&m->sensor[i], kind)) && n <= USI_SENSOR_LIMIT)
            known[n++] = m->sensor[i].name;
    }
    return usi_fail_unknown(usi_fault_component_title(words->part), words->name, known, n, err);
}

typedef struct fault_search {
    const char *what;
    size_t length;
    char *out;
    size_t cap;
} fault_search;

static void find_text(void *context, const char *what, const char *text) {
    fault_search *x = context;
    if (strncmp(what, x->what, x->length) != 0) return;
    size_t at = strlen(x->out);
    snprintf(x->out + at, x->cap - at, "%s%s", at > 0 ? "; " : "", text);
}

us_status usi_proxy_set_fault(us_proxy *p, us_sim *sim, const char *robot, const usi_fault_words *words,
                              char *reply, size_t cap, us_error *err) {
    int32_t index = us_proxy_find_robot(p, robot);
    if (index < 0) return fail_robot(robot, err);
    usi_robot *r = &p->robot[index];
    usi_robot_state *s = usi_take_state(r, sim);
    if (!s) return fail_robot(robot, err);
    int32_t joint = words->part == USI_COMPONENT_ENCODER ? joint_of(r, words->name) : -1;
    if (words->part == USI_COMPONENT_ENCODER && joint < 0)
        return us_error_set(err, US_ERR_NAME, NULL,
                            "name a joint with one coordinate; \"understudy info\" lists them",
                            "\"%.100s/%.100s\" has no encoder", robot, words->name);
    const bool is_any = words->part == USI_COMPONENT_SENSOR,
               is_sensor = is_any || words->part == USI_COMPONENT_IMU || words->part == USI_COMPONENT_LIDAR;
    const char *kind = is_any ? NULL : words->part == USI_COMPONENT_IMU ? "imu" : "lidar";
    int32_t sensor = is_sensor ? usi_robot_find_sensor(p->model, r->model, kind, words->name) : -1;
    if (is_sensor && sensor < 0) return fail_sensor(p->model, r->model, words, kind, err);
    switch (words->part) {
    case USI_COMPONENT_ENCODER:
        set_encoder(sim, r->model->first_encoder + joint, words);
        break;
    case USI_COMPONENT_IMU:
        set_imu(sim, sensor, words);
        break;
    case USI_COMPONENT_LIDAR:
        set_lidar(sim, sensor, words);
        break;
    case USI_COMPONENT_SENSOR: {
        us_status status = set_sensor(sim, (us_sensor){sensor}, words, err);
        if (status) return status;
        break;
    }
    case USI_COMPONENT_POWER:
    case USI_COMPONENT_COMPUTER:
        set_computer(r, sim, s, words);
        break;
    case USI_COMPONENT_LINK:
        set_link(r, sim, s, words);
        break;
    default:
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "faults of motors are set by usi_proxy_set_strength");
    }
    // What it is like now, in the words of the diagnostics.
    char what[USI_FAULT_TEXT], text[300] = "";
    const bool is_named =
        joint >= 0 || (sensor >= 0 && strcmp(words->name, usi_fault_component_name(words->part)) != 0);
    const char *name = is_named ? words->name : "";
    snprintf(what, sizeof what, "%s%s%.200s=", usi_fault_component_name(words->part), is_named ? ":" : "",
             name);
    fault_search x = {what, strlen(what), text, sizeof text};
    usi_proxy_each_fault(p, sim, index, find_text, &x);
    if (text[0]) {
        snprintf(reply, cap, "%s: %s", robot, text);
    } else {
        snprintf(reply, cap, "%s: %s%s%.200s ok", robot, usi_fault_component_name(words->part),
                 is_named ? " " : "", name);
    }
    return US_OK;
}

// ---------------------------------------------------------------- time

void usi_robot_age_faults(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    const int64_t tick = us_sim_get_tick(sim);
    usi_fault_state *f = &s->faults;
    if (f->outage_until != 0 && tick >= f->outage_until) f->outage_until = 0;
    if (f->power_until != 0 && tick >= f->power_until) {
        f->power_until = 0;
        f->boot_until = tick + ticks_of(r, BOOT_TIME);
    }
    if (f->boot_until != 0 && tick >= f->boot_until) {
        f->boot_until = 0;
        f->boot_tick = tick + 1;
        f->n_boot++;
        usi_firmware_readings in = usi_robot_read(r, sim, s);
        usi_firmware_restart(&r->model->firmware, usi_firmware_of(r, s), &in);
    }
}

us_link_model usi_link_now(const us_link_model *scene, const usi_robot_state *s, int64_t tick) {
    us_link_model m = *scene;
    const usi_fault_state *f = &s->faults;
    m.delay += f->delay;
    if (f->loss > 0) m.loss = 1 - (1 - m.loss) * (1 - f->loss);
    if (f->outage_until > tick) m.loss = 1;
    return m;
}

// ---------------------------------------------------------------- listing

typedef struct fault_lister {
    usi_fault_function *each;
    void *context;
    const usi_robot *r;
    const us_sim *sim;
    const usi_robot_state *s;
} fault_lister;

static void list_drives(const fault_lister *t) {
    const usi_robot *r = t->r;
    char what[300], text[300];
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        const us_joint joint =
            us_model_get_drive_joint(r->proxy->model, (us_drive){r->model->drive[k].index});
        const us_drive drive = {r->model->drive[k].index};
        double blockage = us_sim_get_blockage(t->sim, joint);
        double strength = us_sim_get_drive_strength(t->sim, drive);
        const char *name = r->model->firmware.joint[r->model->firmware.drive[k].joint].name;
        // Beside a break nothing else matters.
        if ((strength == 1 && blockage == 0) || r->model->drive[k].is_broken) continue;
        if (blockage > 0) {
            snprintf(what, sizeof what, "motor:%.200s=blocked:%.4g", name, blockage);
            snprintf(text, sizeof text, "%.100s blocked by %.4g", name, blockage);
        } else if (strength == 0) {
            snprintf(what, sizeof what, "motor:%.200s=dead", name);
            snprintf(text, sizeof text, "%.100s dead", name);
        } else {
            snprintf(what, sizeof what, "motor:%.200s=weak:%.4g", name, strength);
            snprintf(text, sizeof text, "%.100s weak, %.4g of its strength", name, strength);
        }
        t->each(t->context, what, text);
    }
}

static void list_broken(const fault_lister *t) {
    char what[300], text[300];
    for (int32_t i = 0; i < t->r->model->n_broken; i++) {
        const char *name = t->r->model->broken[i];
        snprintf(what, sizeof what, "joint:%.200s=broken", name);
        snprintf(text, sizeof text, "%.200s broken", name);
        t->each(t->context, what, text);
    }
}

static void list_encoders(const fault_lister *t) {
    char what[300], text[300];
    for (int32_t i = 0; i < t->r->model->firmware.n_joint; i++) {
        const char *name = t->r->model->firmware.joint[i].name;
        const usi_encoder_state *e = &t->sim->now.encoder[t->r->model->first_encoder + i];
        const double offset = usi_encoder_offset(e, t->sim->model->step, us_sim_get_tick(t->sim));
        if (!e->is_stuck && offset == 0 && e->drift == 0) continue;
        if (e->is_stuck) {
            snprintf(what, sizeof what, "encoder:%.200s=stuck", name);
            snprintf(text, sizeof text, "encoder of %.100s stuck at %.4g", name, usi_read_q(t->r, t->sim, i));
        } else if (e->drift != 0) {
            snprintf(what, sizeof what, "encoder:%.200s=drift:%.4g", name, e->drift);
            snprintf(text, sizeof text, "encoder of %.100s off by %.4g, drifting by %.4g/s", name, offset,
                     e->drift);
        } else {
            snprintf(what, sizeof what, "encoder:%.200s=jump:%.4g", name, offset);
            snprintf(text, sizeof text, "encoder of %.100s off by %.4g", name, offset);
        }
        t->each(t->context, what, text);
    }
}

static void list_imu(const fault_lister *t, int32_t sensor) {
    const usi_sensor_state *e = &t->sim->now.sensor[sensor];
    const double *offset = imu_offset(t->sim, sensor);
    const double b[6] = {offset[3], offset[4], offset[5], offset[0], offset[1], offset[2]};
    const char *name = t->sim->model->sensor[sensor].name;
    const bool is_named = strcmp(name, "imu") != 0;
    char part[220], called[220], what[400], text[400];
    snprintf(part, sizeof part, "imu%s%.200s", is_named ? ":" : "", is_named ? name : "");
    snprintf(called, sizeof called, "inertial sensor%s%.200s", is_named ? " " : "", is_named ? name : "");
    if (e->is_stuck) {
        snprintf(what, sizeof what, "%s=stuck", part);
        snprintf(text, sizeof text, "%s stuck", called);
    } else if (b[0] != 0 || b[1] != 0 || b[2] != 0 || b[3] != 0 || b[4] != 0 || b[5] != 0) {
        snprintf(what, sizeof what, "%s=bias:%.4g,%.4g,%.4g,%.4g,%.4g,%.4g", part, b[0], b[1], b[2], b[3],
                 b[4], b[5]);
        snprintf(text, sizeof text, "%s off by %.4g %.4g %.4g m/s^2, %.4g %.4g %.4g rad/s", called, b[0],
                 b[1], b[2], b[3], b[4], b[5]);
    } else {
        return;
    }
    t->each(t->context, what, text);
}

static void list_lidar(const fault_lister *t, int32_t sensor) {
    static const double degree = 0.017453292519943295;
    const usi_sensor_state *e = &t->sim->now.sensor[sensor];
    const char *name = t->sim->model->sensor[sensor].name;
    const bool is_named = strcmp(name, "lidar") != 0;
    char part[220], called[220], what[400], text[400];
    snprintf(part, sizeof part, "lidar%s%.200s", is_named ? ":" : "", is_named ? name : "");
    snprintf(called, sizeof called, "lidar%s%.200s", is_named ? " " : "", is_named ? name : "");
    if (e->is_stuck) {
        snprintf(what, sizeof what, "%s=frozen", part);
        snprintf(text, sizeof text, "%s frozen", called);
    } else if (e->offset[USI_LIDAR_IS_DEAD] != 0) {
        snprintf(what, sizeof what, "%s=dead", part);
        snprintf(text, sizeof text, "%s dead", called);
    } else if (e->offset[USI_LIDAR_FAULT] == USI_LIDAR_HAS_SECTOR) {
        const double from = e->offset[USI_LIDAR_FIRST] / degree, to = e->offset[USI_LIDAR_SECOND] / degree;
        snprintf(what, sizeof what, "%s=blind:%.4g,%.4g", part, from, to);
        snprintf(text, sizeof text, "%s blind from %.4g to %.4g deg", called, from, to);
    } else if (e->offset[USI_LIDAR_FAULT] == USI_LIDAR_HAS_NO_BEAMS) {
        const double first = e->offset[USI_LIDAR_FIRST], last = e->offset[USI_LIDAR_SECOND];
        snprintf(what, sizeof what, "%s=beams:%.4g,%.4g", part, first, last);
        snprintf(text, sizeof text, "%s without the beams of rings %.4g to %.4g", called, first, last);
    } else if (e->offset[USI_LIDAR_FAULT] == USI_LIDAR_IS_DIRTY) {
        const double share = e->offset[USI_LIDAR_FIRST];
        snprintf(what, sizeof what, "%s=dirt:%.4g", part, share);
        snprintf(text, sizeof text, "%s dirty: %.4g of the light is lost each way", called, share);
    } else {
        return;
    }
    t->each(t->context, what, text);
}

US_PRINTF(5, 6)
static void list_one(const fault_lister *t, const char *sensor, const char *what, const char *called,
                     const char *format, ...) {
    char numbers[120], full[400], text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(numbers, sizeof numbers, format, args);
    va_end(args);
    snprintf(full, sizeof full, "sensor:%.200s=%s%s", sensor, what, numbers);
    snprintf(text, sizeof text, "%.200s %s%s", sensor, called, numbers[0] ? numbers + 1 : "");
    t->each(t->context, full, text);
}

// What list_imu and list_lidar have is not said twice.
static void list_sensor(const fault_lister *t, int32_t sensor) {
    const usi_sensor *k = &t->sim->model->sensor[sensor];
    const us_sensor_fault f = us_sim_get_sensor_fault(t->sim, (us_sensor){sensor});
    const bool is_imu = usi_sensor_is(k, "imu"), is_told = is_imu || k->kind->is_frame;
    const double *offset = t->sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_OFFSET),
                 *deviation = t->sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_DEVIATION);
    if (f.is_dead) list_one(t, k->name, "dead", "dead", "%s", "");
    if (f.is_frozen && !is_told) list_one(t, k->name, "frozen", "frozen", "%s", "");
    if (f.noise != 1) list_one(t, k->name, "noisy", "has its error times ", ":%.4g", f.noise);
    if (f.delay > 0) list_one(t, k->name, "delayed", "late by s ", ":%.4g", f.delay);
    if (f.drop > 0) list_one(t, k->name, "dropping", "loses a share of ", ":%.4g", f.drop);
    for (int32_t i = 0; i < k->kind->n_reading; i++) {
        const char *name = k->kind->readings[i].name;
        if (offset[i] != 0 && !is_imu)
            list_one(t, k->name, "offset", "off: ", ":%.60s,%.4g", name, offset[i]);
        if (deviation[i] > 0) list_one(t, k->name, "noise", "noise: ", ":%.60s,%.4g", name, deviation[i]);
    }
}

static void list_sensors(const fault_lister *t) {
    const usi_robot_model *r = t->r->model;
    for (int32_t i = r->first_sensor; i < r->first_sensor + r->n_sensor; i++) {
        if (usi_sensor_is(&t->sim->model->sensor[i], "imu")) list_imu(t, i);
        if (t->sim->model->sensor[i].kind->is_frame) list_lidar(t, i);
        list_sensor(t, i);
    }
}

// "until 12.5 s", or nothing where nobody knows.
static void until(const usi_robot *r, int64_t tick, char *out, size_t cap) {
    out[0] = 0;
    if (tick != INT64_MAX) snprintf(out, cap, " until %.3f s", (double)tick * r->proxy->step);
}

static void list_rest(const fault_lister *t) {
    const usi_fault_state *f = &t->s->faults;
    char what[100], text[100], end[40];
    if (f->power_until != 0) {
        until(t->r, f->power_until, end, sizeof end);
        snprintf(text, sizeof text, "no power%s", end);
        t->each(t->context, "power=brownout", text);
    }
    if (f->boot_until != 0) {
        until(t->r, f->boot_until, end, sizeof end);
        snprintf(text, sizeof text, "computer starts%s", end);
        t->each(t->context, "computer=reboot", text);
    }
    if (f->outage_until != 0) {
        until(t->r, f->outage_until, end, sizeof end);
        snprintf(text, sizeof text, "link out%s", end);
        t->each(t->context, "link=outage", text);
    }
    if (f->loss > 0) {
        snprintf(what, sizeof what, "link=loss:%.4g", f->loss);
        snprintf(text, sizeof text, "link loses %.4g of all", f->loss);
        t->each(t->context, what, text);
    }
    if (f->delay > 0) {
        snprintf(what, sizeof what, "link=delay:%.4g", f->delay);
        snprintf(text, sizeof text, "link late by %.4g s", f->delay);
        t->each(t->context, what, text);
    }
}

static void list_all(const usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                     usi_fault_function *each, void *context) {
    const fault_lister t = {each, context, r, sim, s};
    list_drives(&t);
    list_broken(&t);
    list_encoders(&t);
    list_sensors(&t);
    list_rest(&t);
}

void usi_proxy_each_fault(const us_proxy *p, const us_sim *sim, int32_t robot, usi_fault_function *each,
                          void *context) {
    if (robot < 0 || robot >= p->n_robot) return;
    const usi_robot *r = &p->robot[robot];
    const usi_robot_state *s = usi_view_state(r, sim);
    if (s) list_all(r, sim, s, each, context);
}

typedef struct fault_text {
    char *out;
    size_t cap, at;
    int32_t n;
} fault_text;

static void append(void *context, const char *what, const char *text) {
    fault_text *l = context;
    (void)what;
    l->n++;
    if (l->at + strlen(text) + 2 >= l->cap) return;
    snprintf(l->out + l->at, l->cap - l->at, "%s%s", l->at > 0 ? "; " : "", text);
    l->at += strlen(l->out + l->at);
}

int32_t usi_robot_list_faults(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, char *out,
                              size_t cap) {
    fault_text l = {out, cap, 0, 0};
    out[0] = 0;
    list_all(r, sim, s, append, &l);
    return l.n;
}
