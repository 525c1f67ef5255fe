// From sensors as they are described to rows of the model: an inertial unit at the root's origin, those that
// were asked for, and the battery's gauge.
#include <math.h>
#include <stdio.h>

#include "model/compile.h"
#include "model/lidars.h"
#include "model/robots.h"
#include "spec/camera_device.h"
#include "spec/sensor_kind.h"

typedef struct builder {
    usi_build *b;
    us_model *m;
    usi_arena *arena;  // of the model
    const bool *is_off;
    usi_sensor *sensor;
    usi_lidar *lidar;
} builder;

#define TAKE(arena, n, type) \
    ((type *)usi_arena_alloc(arena, ((size_t)(n) + 1) * sizeof(type), _Alignof(type)))

int32_t usi_robot_find_sensor(const us_model *m, const usi_robot_model *r, const char *kind,
                              const char *name) {
    for (int32_t i = r->first_sensor; i < r->first_sensor + r->n_sensor; i++) {
        if ((!kind || usi_sensor_is(&m->sensor[i], kind)) && strcmp(m->sensor[i].name, name) == 0) return i;
    }
    return -1;
}

// Samples of a sensor that can be under way: those of its latency, and of a second more that a fault may add.
static int32_t count_pending(const us_model *m, const usi_sensor *s) {
    static const double more = 1;  // s
    if (s->kind->is_frame) return 0;
    const double rate = s->rate > 0 ? fmin(s->rate, 1 / m->step) : 1 / m->step;
    return (int32_t)ceil((s->latency + more) * rate) + 2;
}

static us_status add_sensor(const builder *k, usi_robot_model *r, const us_sensor_def *d, usi_sensor with) {
    us_model *m = k->m;
    const us_sensor_kind *kind = usi_sensor_kind_of(d);
    double *value = TAKE(k->arena, kind->n_parameter, double);
    us_error *err = k->b->err;
    char element[128];
    if (!value) return US_ERR_MEMORY;
    us_status status = usi_sensor_values(d, value, err);
    with.kind = kind;
    with.name = d->name;
    with.rate = d->rate;
    with.latency = d->latency;
    with.seed = d->seed;
    with.parameter = value;
    with.robot = (int32_t)(r - m->robot);
    with.phase = usi_robot_phase(with.robot) - (int64_t)llround(d->phase / m->step);
    with.reading = m->n_reading;
    with.part = m->n_sensor_part;
    with.battery = r->battery.i;
    with.max_pending = count_pending(m, &with);
    with.queue = m->n_pending;
    if (with.max_pending > USI_SENSOR_MAX_PENDING) {
        snprintf(element, sizeof element, "robot \"%.100s\"", r->name);
        const us_place place = {r->network->file, r->network->line, 0, element};
        return us_error_set(err, US_ERR_LIMIT, &place, "lower its rate or its latency",
                            "the sensor \"%.60s\" would have more than %d samples under way", d->name,
                            USI_SENSOR_MAX_PENDING);
    }
    m->n_reading += kind->n_reading;
    for (int i = 0; i < USI_SENSOR_PARTS; i++)
        m->n_sensor_part += usi_sensor_part_count(kind, (usi_sensor_part)i);
    m->n_pending += (size_t)with.max_pending * (size_t)usi_pending_size(kind);
    k->sensor[m->n_sensor++] = with;
    r->n_sensor++;
    return status;
}

// On a link, with the link's frame or one of its own. A lidar has a row of its own too.
static us_status add_on_link(const builder *k, usi_robot_model *r, const us_sensor_def *d) {
    us_model *m = k->m;
    const char *link = usi_name_without_group(k->b->spec->link[d->link].name, r->name),
               *name = usi_has_own_frame(d) ? d->name : link, *prefix = r->network->frame_prefix;
    const bool is_camera = usi_is_camera_def(d);
    if (is_camera) name = d->name;
    const char *ending = is_camera ? "_optical" : "";
    const size_t length = strlen(prefix) + strlen(name) + strlen(ending) + 1;
    char *frame = usi_arena_alloc(k->arena, length, 1);
    if (!frame) return US_ERR_MEMORY;
    snprintf(frame, length, "%s%s%s", prefix, name, ending);
    const int32_t index = m->n_sensor;
    us_status status = add_sensor(k, r, d,
                                  (usi_sensor){.lidar = m->n_lidar,
                                               .frame = frame,
                                               .body = d->link,
                                               .X_BS = d->X_BS,
                                               .is_lost = k->is_off[d->link]});
    if (status || !usi_is_lidar_def(d)) return status;
    status = usi_build_lidar(k->b, m, k->arena, d, index, &k->lidar[m->n_lidar]);
    if (!status) k->sensor[index].rate = 1 / k->lidar[m->n_lidar++].turn;
    return status;
}

// Hz: the usual unit samples as often as somebody sees it.
static double fastest_topic(const us_network_def *d, const char *source) {
    double rate = 0;
    for (int32_t i = 0; i < d->n_topic; i++) {
        if (strcmp(d->topics[i].source, source) == 0) rate = fmax(rate, d->topics[i].rate);
    }
    for (int32_t i = 0; i < d->n_binding; i++) {
        const us_binding *b = &d->bindings[i];
        const bool is_own = b->value && strncmp(b->value, "imu.", 4) == 0 &&
                            strcmp(b->sensor ? b->sensor : "imu", source) == 0;
        if (is_own) rate = fmax(rate, d->endpoints[b->endpoint].rate);
    }
    return rate > 0 ? rate : us_topic_source_view(USI_SOURCE_IMU)->rate;
}

static us_status add_all(const builder *k, usi_robot_model *r) {
    us_model *m = k->m;
    const us_network_def *d = r->network;
    us_status status = US_OK;
    r->first_sensor = m->n_sensor;
    us_sensor_def usual = {
        .name = "imu", .link = r->root.i, .X_BS = us_pose_identity(), .rate = fastest_topic(d, "imu")};
    if (usual.rate * m->step >= 1) usual.rate = 0;
    if (r->root.i >= 0 && !usi_find_sensor_def(d, usual.name)) status = add_on_link(k, r, &usual);
    for (int32_t j = 0; j < d->n_sensor && !status; j++)
        status = add_on_link(k, r, &d->sensors[j]);
    if (status || r->battery.i < 0) return status;
    const us_sensor_def gauge = {.kind = us_sensor_kind_find("battery"), .name = "battery"};
    return add_sensor(k, r, &gauge, (usi_sensor){.frame = r->base_frame, .body = -1});
}

us_status usi_build_sensors(usi_build *b, us_model *m, usi_robot_model *robot, const bool *is_off) {
    builder k = {.b = b, .m = m, .arena = &m->assets.arena, .is_off = is_off};
    int32_t n = 0, n_lidar = 0;
    for (int32_t i = 0; i < m->n_robot; i++) {
        n += 2 + robot[i].network->n_sensor;
        for (int32_t j = 0; j < robot[i].network->n_sensor; j++)
            n_lidar += usi_is_lidar_def(&robot[i].network->sensors[j]);
    }
    k.sensor = TAKE(k.arena, n, usi_sensor);
    k.lidar = TAKE(k.arena, n_lidar, usi_lidar);
    if (!k.sensor || !k.lidar) return US_ERR_MEMORY;
    m->sensor = k.sensor;
    m->lidar = k.lidar;
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_robot && !status; i++)
        status = add_all(&k, &robot[i]);
    return status;
}
