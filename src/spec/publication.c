// What a robot publishes: sources, sensors and the table of its topics.
#include "spec/publication.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "spec/camera_device.h"
#include "spec/lidar_device.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"

static const struct {
    us_topic_source source;
    const char *topic;
} table[USI_SOURCE_COUNT] = {
#define SOURCE_ROW(code, name, topic, type, rate, is_once) {{name, type, rate, is_once}, topic},
    USI_SOURCE_LIST(SOURCE_ROW)
#undef SOURCE_ROW
};

const char *usi_command_name(const us_network_def *def, int32_t topic) {
#define COMMAND_NAME(code, name) name,
    static const char *const names[] = {USI_COMMAND_LIST(COMMAND_NAME)};
#undef COMMAND_NAME
    if (topic == USI_COMMAND_TWIST && def->is_stamped) return "cmd_vel_unstamped";
    if (topic == USI_COMMAND_TWIST_STAMPED && def->is_stamped) return "cmd_vel";
    return topic >= 0 && topic < USI_COMMAND_COUNT ? names[topic] : NULL;
}

// ---------------------------------------------------------------- names

static bool is_source(int32_t i) { return i >= 0 && i < USI_SOURCE_COUNT; }

const us_topic_source *us_topic_source_view(int32_t i) { return is_source(i) ? &table[i].source : NULL; }

static void full_name(const char *namespace_, const char *name, char *out, size_t cap) {
    bool is_absolute = name[0] == '/' || !namespace_ || !namespace_[0];
    snprintf(out, cap, "%s%s%s%s", name[0] == '/' ? "" : "/", is_absolute ? "" : namespace_,
             is_absolute ? "" : "/", name);
}

static void truth_topic(const char *namespace_, char *out, size_t cap) {
    snprintf(out, cap, "/understudy/truth/%s/odom", namespace_ && namespace_[0] ? namespace_ : "robot");
}

void usi_sensor_truth_topic(const us_network_def *d, const char *sensor, char out[USI_TOPIC_NAME]) {
    const char *namespace_ = d->namespace_ && d->namespace_[0] ? d->namespace_ : "robot";
    snprintf(out, USI_TOPIC_NAME, "/understudy/truth/%s/%s", namespace_, sensor);
}

void us_topic_source_topic(int32_t i, const char *namespace_, char *buf, size_t cap) {
    if (!buf || cap == 0) return;
    buf[0] = 0;
    if (i == USI_SOURCE_TRUTH) {
        truth_topic(namespace_, buf, cap);
    } else if (is_source(i)) {
        full_name(namespace_, table[i].topic, buf, cap);
    }
}

const us_sensor_def *usi_find_sensor_def(const us_network_def *d, const char *name) {
    for (int32_t i = 0; i < d->n_sensor; i++) {
        if (strcmp(d->sensors[i].name, name) == 0) return &d->sensors[i];
    }
    return NULL;
}

// What a camera publishes beside its pictures, behind its name and a "/".
static const struct {
    const char *name;
    usi_source_kind source;
} camera_parts[] = {{"camera_info", USI_SOURCE_CAMERA_INFO}, {"depth", USI_SOURCE_DEPTH}};
enum { N_CAMERA_PART = sizeof camera_parts / sizeof *camera_parts };

static bool has_part(const us_sensor_def *s, int part) {
    return usi_is_camera_def(s) && (camera_parts[part].source != USI_SOURCE_DEPTH || usi_camera_has_depth(s));
}

static const us_sensor_def *find_camera_part(const us_network_def *d, const char *name,
                                             usi_source_kind *out_source) {
    const char *slash = strrchr(name, '/');
    for (int32_t i = 0; i < d->n_sensor && slash; i++) {
        const us_sensor_def *s = &d->sensors[i];
        const size_t n = (size_t)(slash - name);
        if (strlen(s->name) != n || strncmp(s->name, name, n) != 0) continue;
        for (int k = 0; k < N_CAMERA_PART; k++) {
            if (strcmp(slash + 1, camera_parts[k].name) != 0 || !has_part(s, k)) continue;
            *out_source = camera_parts[k].source;
            return s;
        }
    }
    return NULL;
}

const us_sensor_def *usi_find_source_sensor(const us_network_def *d, const char *source) {
    usi_source_kind part = USI_SOURCE_READINGS;
    const us_sensor_def *s = usi_find_sensor_def(d, source);
    return s ? s : find_camera_part(d, source, &part);
}

bool usi_has_own_frame(const us_sensor_def *s) {
    const us_pose X = s->X_BS;
    return X.p.x != 0 || X.p.y != 0 || X.p.z != 0 || X.q.x != 0 || X.q.y != 0 || X.q.z != 0;
}

static int32_t find_own_source(const char *name) {
    // That of readings is the source of sensors of many names.
    for (int32_t i = 0; i < USI_SOURCE_READINGS; i++) {
        if (strcmp(table[i].source.name, name) == 0) return i;
    }
    return -1;
}

usi_source_kind usi_sensor_source(const us_sensor_def *s) {
    const us_sensor_kind *k = usi_sensor_kind_of(s);
    if (k == us_sensor_kind_view(0)) return USI_SOURCE_IMU;
    if (usi_is_camera_def(s)) return USI_SOURCE_IMAGE;
    if (!k->is_frame) return USI_SOURCE_READINGS;
    return s->lidar && usi_lidar_is_planar(s->lidar) ? USI_SOURCE_SCAN : USI_SOURCE_POINTS;
}

const char *usi_sensor_topic(const us_sensor_def *s) {
    const usi_source_kind source = usi_sensor_source(s);
    if (usi_is_frame_source((int32_t)source)) return table[source].topic;
    const char *own = usi_sensor_kind_of(s)->topic;
    return own ? own : "data";
}

int32_t usi_find_source(const us_network_def *d, const char *name) {
    const us_sensor_def *sensor = usi_find_sensor_def(d, name);
    const int32_t own = find_own_source(name);
    usi_source_kind part = USI_SOURCE_READINGS;
    if (!sensor && find_camera_part(d, name, &part)) return (int32_t)part;
    // No robot has a lidar anyway.
    return sensor ? (int32_t)usi_sensor_source(sensor) : usi_is_frame_source(own) ? -1 : own;
}

int32_t usi_find_source_by_topic(const char *topic) {
    for (int32_t i = 0; i <= USI_SOURCE_READINGS; i++) {
        // The truth's own topic is found by the source's name alone: "odom" is the robot's.
        const char *own = i == USI_SOURCE_TRUTH ? table[i].source.name : table[i].topic;
        if (strcmp(own, topic) == 0 || (own[0] == '/' && strcmp(own + 1, topic) == 0)) return i;
    }
    return -1;
}

const char *usi_publication_type(const us_network_def *d, const us_publication_def *t) {
    const us_sensor_def *sensor = usi_find_source_sensor(d, t->source);
    const int32_t source = usi_find_source(d, t->source);
    if (source == USI_SOURCE_READINGS && sensor->kind->message) return sensor->kind->message;
    return table[source].source.type;
}

double usi_publication_rate(const us_network_def *d, const char *name) {
    const us_sensor_def *sensor = usi_find_source_sensor(d, name);
    if (sensor && sensor->rate > 0) return sensor->rate;
    return table[usi_find_source(d, name)].source.rate;
}

void usi_endpoint_topic(const us_network_def *d, const char *name, char out[USI_TOPIC_NAME]) {
    if (strncmp(name, "dds:", 4) == 0) {
        snprintf(out, USI_TOPIC_NAME, "%s", name);
    } else {
        full_name(d->namespace_, name, out, USI_TOPIC_NAME);
    }
}

void usi_publication_topic(const us_network_def *d, const us_publication_def *t, char out[USI_TOPIC_NAME]) {
    full_name(d->namespace_, t->name, out, USI_TOPIC_NAME);
}

// ---------------------------------------------------------------- checks

static bool is_at_least_0(double x) { return isfinite(x) && x >= 0; }

static bool is_good_pose(us_pose X) {
    double n2 = X.q.w * X.q.w + X.q.x * X.q.x + X.q.y * X.q.y + X.q.z * X.q.z;
    return fabs(n2 - 1) < 1e-6 && isfinite(X.p.x) && isfinite(X.p.y) && isfinite(X.p.z);
}

static bool is_topic_name(const char *name) { return usi_is_ros_name(name + (name[0] == '/'), true); }

// "k10/mast" of the robot "k10" is "mast".
static bool is_link_of(const us_spec *spec, int32_t group, const char *name) {
    const char *robot = spec->group[group].name ? spec->group[group].name : "";
    size_t n = strlen(robot) + (robot[0] != 0);
    for (int32_t i = 0; i < spec->n_link; i++) {
        const us_link_def *l = &spec->link[i];
        if (l->group == group && strlen(l->name) > n && strcmp(l->name + n, name) == 0) return true;
    }
    return false;
}

// A joint or link that a parameter names is the robot's.
static us_status check_references(const us_spec *spec, const us_sensor_def *s, const double *value,
                                  us_error *err) {
    const us_sensor_kind *k = usi_sensor_kind_of(s);
    const int32_t group = us_spec_view_link(spec, s->link)->group;
    for (int32_t i = 0; i < k->n_parameter; i++) {
        const us_sensor_parameter *p = &k->parameters[i];
        if (!usi_is_reference(p) || value[i] == -1) continue;
        const bool is_joint = p->type == US_PARAMETER_JOINT;
        const int32_t n = is_joint ? spec->n_joint : spec->n_link;
        const int32_t at =
            value[i] >= 0 && value[i] < n && value[i] == floor(value[i]) ? (int32_t)value[i] : -1;
        if (at < 0 || (is_joint ? spec->joint[at].group : spec->link[at].group) != group)
            return us_error_set(err, US_ERR_ARG, NULL, "name one of the robot's own",
                                "%.60s: the robot has no such %s", p->name, is_joint ? "joint" : "link");
    }
    return US_OK;
}

static us_status check_kind(const us_spec *spec, const us_sensor_def *s, us_error *err) {
    const us_sensor_kind *k = usi_sensor_kind_of(s);
    double value[US_SENSOR_MAX_PARAMETER];
    us_status status = us_sensor_kind_check(k, err);
    if (!status && (s->n_setting < 0 || (s->n_setting > 0 && !s->settings)))
        status = us_error_set(err, US_ERR_ARG, NULL, "pass an array", "the sensor's settings are missing");
    if (!status) status = usi_sensor_values(s, value, err);
    if (!status) status = check_references(spec, s, value, err);
    if (status) return status;
    if (s->latency > USI_SENSOR_MAX_LATENCY)
        return us_error_set(err, US_ERR_VALUE, NULL, "write a time from 0 to 10 s",
                            "latency: %g s is out of range", s->latency);
    if (k->is_frame && s->latency * s->rate >= 1)
        return us_error_set(err, US_ERR_VALUE, NULL, "write less than the time of a turn",
                            "latency: %g s is more than one turn of a lidar takes", s->latency);
    if (k->is_frame && s->phase > 0)
        return us_error_set(err, US_ERR_VALUE, NULL, "leave it out; start is where its turns begin",
                            "phase: a lidar has none");
    if (s->phase > 0 && (s->rate <= 0 || s->phase * s->rate > 1 + 1e-9))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a time from 0 to one period of its rate",
                            "phase: %g s is out of range", s->phase);
    return US_OK;
}

us_status usi_check_sensor(const us_spec *spec, const us_network_def *d, int32_t i, us_error *err) {
    static const char *const name_remedy =
        "use letters, digits and _, not starting with a digit, with / between parts and not around them";
    const us_sensor_def *s = &d->sensors[i];
    const us_link_def *link = us_spec_view_link(spec, s->link);
    if (!link || link->group != d->group)
        return us_error_set(err, US_ERR_ARG, NULL, "name a link of the robot",
                            "the sensor is on no link of the robot");
    if (!is_at_least_0(s->rate) || !is_at_least_0(s->phase) || !is_at_least_0(s->latency) ||
        !is_good_pose(s->X_BS))
        return us_error_set(err, US_ERR_VALUE, NULL, "write finite numbers of 0 or more",
                            "a number of the sensor is out of range");
    if (!s->name || !usi_is_ros_name(s->name, true))
        return us_error_set(err, US_ERR_NAME, NULL, name_remedy, "name: \"%.60s\" is no name of a sensor",
                            s->name ? s->name : "");
    us_status status = check_kind(spec, s, err);
    if (status) return status;
    if (usi_is_lidar_def(s)) {
        if (!s->lidar)
            return us_error_set(err, US_ERR_ARG, NULL, "give it a us_lidar_def", "the lidar has no beams");
        status = usi_check_lidar(s->lidar, s->rate, err);
        if (status) return status;
    }
    if (usi_is_camera_def(s)) {
        status = usi_check_camera(s, err);
        if (status) return status;
    }
    int32_t own = find_own_source(s->name);
    // A lidar may be called "lidar" or "scanner", whichever it is.
    const bool is_its_own =
        usi_is_lidar_def(s) ? usi_is_frame_source(own) : own == (int32_t)usi_sensor_source(s);
    if (own >= 0 && !is_its_own)
        return us_error_set(err, US_ERR_NAME, NULL, "give it another name", "name: \"%s\" is published on %s",
                            s->name, table[own].topic);
    for (int32_t k = 0; k < i; k++) {
        if (strcmp(d->sensors[k].name, s->name) == 0)
            return us_error_set(err, US_ERR_NAME, NULL, "give each sensor of a robot its own name",
                                "the name \"%.60s\" is used twice", s->name);
    }
    if (usi_has_own_frame(s) && is_link_of(spec, d->group, s->name))
        return us_error_set(
            err, US_ERR_NAME, NULL, "name it otherwise, or put it on that link without xyz and rpy",
            "name: a link of the robot is called \"%.60s\", and its frame would be this one", s->name);
    return US_OK;
}

static us_status fail_source(const us_network_def *d, const char *name, us_error *err) {
    const char *known[USI_SOURCE_COUNT + USI_SENSOR_LIMIT];
    int32_t n = 0;
    for (int32_t i = 0; i < USI_SOURCE_READINGS; i++) {
        if (!usi_is_frame_source(i)) known[n++] = table[i].source.name;
    }
    for (int32_t i = 0; i < d->n_sensor && i < USI_SENSOR_LIMIT; i++)
        known[n++] = d->sensors[i].name;
    return usi_fail_unknown("source of a topic", name, known, n, err);
}

us_status usi_check_publication(const us_network_def *d, int32_t i, us_error *err) {
    const us_publication_def *t = &d->topics[i];
    if (!t->source || usi_find_source(d, t->source) < 0)
        return fail_source(d, t->source ? t->source : "", err);
    if (!is_at_least_0(t->rate))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a rate of 0 or more", "the rate is out of range");
    if (t->name && !is_topic_name(t->name))
        return us_error_set(
            err, US_ERR_NAME, NULL,
            "use letters, digits and _, not starting with a digit, with / between parts; with / in front it "
            "is not below the robot's namespace",
            "name: \"%.60s\" is no name of a topic", t->name);
    return US_OK;
}

// Names that are not the robot's to publish on.
static const char *owner_of(const us_network_def *d, const us_publication_def *t, const char *topic) {
    char other[USI_TOPIC_NAME];
    for (int32_t k = 0; k < USI_COMMAND_ASK; k++) {
        full_name(d->namespace_, usi_command_name(d, k), other, sizeof other);
        if (strcmp(topic, other) == 0) return "what the robot listens to";
    }
    if (strcmp(topic, "/clock") == 0) return "the simulation's clock";
    truth_topic(d->namespace_, other, sizeof other);
    bool is_truth = usi_find_source(d, t->source) == USI_SOURCE_TRUTH && strcmp(topic, other) == 0;
    return strncmp(topic, "/understudy/", 12) == 0 && !is_truth ? "the simulator's own" : NULL;
}

// Another robot's publication on the same topic, of another type: NULL when there is none.
static const char *conflict_with_others(const us_spec *spec, const us_network_def *d, const char *topic,
                                        const char *type) {
    char other[USI_TOPIC_NAME];
    for (int32_t i = 0; i < spec->n_network; i++) {
        const us_network_def *o = &spec->network[i];
        for (int32_t k = 0; k < o->n_topic && o->group != d->group && !o->is_off; k++) {
            usi_publication_topic(o, &o->topics[k], other);
            const char *its = usi_publication_type(o, &o->topics[k]);
            if (o->topics[k].rate > 0 && strcmp(other, topic) == 0 && strcmp(its, type) != 0) return its;
        }
    }
    return NULL;
}

us_status usi_check_publications(const us_spec *spec, const us_network_def *d, int32_t *out_which,
                                 us_error *err) {
    char topic[USI_TOPIC_NAME], other[USI_TOPIC_NAME];
    for (int32_t i = 0; i < d->n_topic; i++) {
        const us_publication_def *t = &d->topics[i];
        *out_which = i;
        if (t->rate == 0) continue;
        usi_publication_topic(d, t, topic);
        for (int32_t k = 0; k < i; k++) {
            usi_publication_topic(d, &d->topics[k], other);
            if (d->topics[k].rate == 0 || strcmp(topic, other) != 0) continue;
            return us_error_set(err, US_ERR_NAME, NULL,
                                "give each its own name, or one of them the rate 0: sources without a "
                                "<topic> are published too",
                                "the topic \"%.100s\" is published twice: from \"%.60s\" and from \"%.60s\"",
                                topic, d->topics[k].source, t->source);
        }
        const char *owner = owner_of(d, t, topic);
        if (owner)
            return us_error_set(err, US_ERR_NAME, NULL, "give it another name", "the topic \"%.100s\" is %s",
                                topic, owner);
        const char *type = usi_publication_type(d, t);
        const char *others = d->is_off ? NULL : conflict_with_others(spec, d, topic, type);
        if (others)
            return us_error_set(err, US_ERR_NAME, NULL, "give it another name",
                                "the topic \"%.100s\" is another robot's, with samples of %s", topic, others);
    }
    return US_OK;
}

// ---------------------------------------------------------------- the whole table

static bool is_named(const us_network_def *d, const char *source) {
    for (int32_t i = 0; i < d->n_topic; i++) {
        if (strcmp(d->topics[i].source, source) == 0) return true;
    }
    return false;
}

// The topic on which a source is published by default; NULL without memory.
static const char *own_topic(usi_arena *arena, const us_network_def *d, const char *source) {
    int32_t i = find_own_source(source);
    const us_sensor_def *sensor = usi_find_sensor_def(d, source);
    if (sensor && usi_is_frame_source(i)) return usi_sensor_topic(sensor);
    if (i >= 0 && i != USI_SOURCE_TRUTH) return table[i].topic;
    char topic[USI_TOPIC_NAME];
    bool is_good = true;
    if (i == USI_SOURCE_TRUTH) {
        truth_topic(d->namespace_, topic, sizeof topic);
    } else {
        usi_source_kind part = USI_SOURCE_READINGS;
        const us_sensor_def *camera = sensor ? NULL : find_camera_part(d, source, &part);
        const char *last = sensor   ? usi_sensor_topic(sensor)
                           : camera ? strchr(table[part].topic, '/')
                                    : "data";
        snprintf(topic, sizeof topic, "%s%s%s", source, last && last[0] != '/' ? "/" : "", last ? last : "");
    }
    return usi_arena_text(arena, topic, &is_good);
}

bool usi_complete_publications(usi_arena *arena, us_network_def *d) {
    size_t cap = (size_t)d->n_topic + USI_SOURCE_COUNT + (1 + N_CAMERA_PART) * (size_t)d->n_sensor;
    us_publication_def *out = usi_arena_alloc(arena, cap * sizeof *out, _Alignof(us_publication_def));
    if (!out) return false;
    int32_t n = 0;
    for (int32_t i = 0; i < USI_SOURCE_READINGS; i++) {
        const char *name = table[i].source.name;
        if (!is_named(d, name) && usi_find_source(d, name) >= 0)
            out[n++] = (us_publication_def){.source = name, .rate = usi_publication_rate(d, name)};
    }
    for (int32_t i = 0; i < d->n_sensor; i++) {
        const char *name = d->sensors[i].name;
        if (find_own_source(name) < 0 && !is_named(d, name))
            out[n++] = (us_publication_def){.source = name, .rate = usi_publication_rate(d, name)};
        for (int k = 0; k < N_CAMERA_PART; k++) {
            if (!has_part(&d->sensors[i], k)) continue;
            char text[USI_TOPIC_NAME];
            bool is_text = true;
            snprintf(text, sizeof text, "%s/%s", name, camera_parts[k].name);
            if (is_named(d, text)) continue;
            const char *part = usi_arena_text(arena, text, &is_text);
            if (!is_text) return false;
            out[n++] = (us_publication_def){.source = part, .rate = usi_publication_rate(d, part)};
        }
    }
    // Those that were written stand last: of two that do not go together, one of them is wrong.
    for (int32_t i = 0; i < d->n_topic; i++)
        out[n++] = d->topics[i];
    bool is_good = true;
    for (int32_t i = 0; i < n; i++) {
        if (!out[i].name) out[i].name = own_topic(arena, d, out[i].source);
        is_good = is_good && out[i].name;
    }
    d->topics = out;
    d->n_topic = n;
    return is_good;
}
