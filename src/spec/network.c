// How a robot appears on the network: the definitions that the spec keeps, one for each robot at most.
//
// A definition names drives and a link of its robot, so it is set after them. What it leaves open (the
// namespace, the prefix of the frames, the base) is filled in when it is set: whoever looks at it finds every
// text there.
#include "understudy/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/fault_target.h"
#include "spec/lidar_device.h"
#include "spec/publication.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"

const char *us_locomotion_name(us_locomotion kind) {
    static const char *const names[] = {"none", "skid", "ackermann", "all-wheel", "tripod"};
    return (unsigned)kind < (unsigned)US_LOCOMOTION_COUNT ? names[kind] : "?";
}

us_network_def us_network_def_default(void) {
    us_network_def d = {.group = -1,
                        .node = "driver",
                        .has_services = true,
                        .timeout = 0.5,
                        .track_scale = 1,
                        .battery_voltage = 24,
                        .motor_rate = 25,
                        .motor_counts = 4096};
    d.step_height = 0.05;
    d.step_time = 1;
    d.duty = 0.6;
    return d;
}

// ---------------------------------------------------------------- names

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Tokens of letters, digits and _, none beginning with a digit.
bool usi_is_ros_name(const char *text, bool allows_slash) {
    if (strlen(text) > USI_NETWORK_NAME_LIMIT) return false;
    bool is_start = true;
    for (; *text; text++) {
        if (*text == '/' && allows_slash && !is_start) {
            is_start = true;
            continue;
        }
        if (!is_letter(*text) && (is_start || !is_digit(*text))) return false;
        is_start = false;
    }
    return !is_start;
}

void usi_ros_name_make(const char *text, char *out, size_t cap) {
    size_t n = 0;
    if (is_digit(text[0]) && n + 1 < cap) out[n++] = '_';
    for (; *text && n + 1 < cap && n < USI_NETWORK_NAME_LIMIT; text++)
        out[n++] = is_letter(*text) || is_digit(*text) ? *text : '_';
    out[n] = 0;
}

bool usi_is_frame_prefix(const char *text) {
    if (text[0] == '/' || strlen(text) > USI_NETWORK_NAME_LIMIT) return false;
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~') return false;
    }
    return true;
}

bool usi_is_motor_name(const char *text) {
    if (strlen(text) != 4) return false;
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~' || *text == ';' || *text == ',') return false;
    }
    return true;
}

// ---------------------------------------------------------------- checks

static bool is_at_least_0(double x) { return isfinite(x) && x >= 0; }

static bool is_good_link(const us_link_model *l) {
    if (!is_at_least_0(l->delay) || !is_at_least_0(l->jitter) || !is_at_least_0(l->loss) || l->loss > 1 ||
        !is_at_least_0(l->bandwidth))
        return false;
    for (int32_t i = 0; i < 2 * l->n_outage; i++) {
        if (!is_at_least_0(l->outages[i]) || (i > 0 && l->outages[i] <= l->outages[i - 1])) return false;
    }
    return true;
}

static bool is_good_timing(const us_timing *t) {
    return isfinite(t->offset) && fabs(t->offset) <= 1e9 && isfinite(t->drift) && fabs(t->drift) <= 0.1 &&
           is_at_least_0(t->delay) && t->delay <= 1 && is_at_least_0(t->jitter) && t->jitter <= 1;
}

static bool is_good_noise(const us_noise *n) {
    return is_at_least_0(n->deviation) && is_at_least_0(n->memory) && n->memory <= US_NOISE_MEMORY_MAX &&
           is_at_least_0(n->step);
}

// Every row belongs to something that is there; what it names is looked up with the model.
static bool is_interface_whole(const us_network_def *d) {
    bool ok = d->n_endpoint >= 0 && d->n_command >= 0 && d->n_binding >= 0 &&
              (d->n_endpoint == 0 || d->endpoints) && (d->n_command == 0 || d->commands) &&
              (d->n_binding == 0 || d->bindings) && (d->n_endpoint == 0 || d->interface_);
    for (int32_t i = 0; i < d->n_endpoint && ok; i++) {
        const us_endpoint_def *e = &d->endpoints[i];
        ok = e->topic && e->type && (!e->partition || strlen(e->partition) < US_PARTITION_TEXT) &&
             (unsigned)e->use <= (unsigned)US_ENDPOINT_CANCELED && is_at_least_0(e->rate) && e->depth >= 0 &&
             (e->use < US_ENDPOINT_TAKEN ||
              (e->of >= 0 && e->of < i && d->endpoints[e->of].use == US_ENDPOINT_SUBSCRIBE));
    }
    for (int32_t i = 0; i < d->n_command && ok; i++)
        ok = d->commands[i].action && d->commands[i].endpoint >= 0 && d->commands[i].endpoint < d->n_endpoint;
    for (int32_t i = 0; i < d->n_binding && ok; i++) {
        const us_binding *b = &d->bindings[i];
        ok = b->endpoint >= 0 && b->endpoint < d->n_endpoint && b->command >= -1 &&
             b->command < d->n_command &&
             (b->use == US_BINDING_WHEN || (b->use == US_BINDING_SET) == (b->command < 0)) &&
             (b->member || b->use == US_BINDING_GET) && (b->value || b->use != US_BINDING_GET) &&
             isfinite(b->scale) && b->scale != 0 && isfinite(b->offset);
    }
    return ok;
}

static us_status check_arrays(const us_network_def *d) {
    if (d->n_wheel < 0 || d->n_leg < 0 || d->n_motor < 0 || d->uplink.n_outage < 0 ||
        d->downlink.n_outage < 0)
        return US_ERR_ARG;
    if (d->uplink.n_outage > USI_OUTAGE_LIMIT || d->downlink.n_outage > USI_OUTAGE_LIMIT) return US_ERR_LIMIT;
    if (d->n_fault < 0 || (d->n_fault && !d->faults)) return US_ERR_ARG;
    if (d->n_sensor < 0 || (d->n_sensor && !d->sensors)) return US_ERR_ARG;
    if (d->n_topic < 0 || (d->n_topic && !d->topics)) return US_ERR_ARG;
    if (d->n_source < 0 || (d->n_source && !d->sources)) return US_ERR_ARG;
    if (d->n_source > USI_COMMAND_SOURCES) return US_ERR_LIMIT;
    if (!is_interface_whole(d)) return US_ERR_ARG;
    if (d->n_endpoint > USI_ENDPOINT_LIMIT || d->n_command > USI_INTERFACE_COMMAND_LIMIT ||
        d->n_binding > USI_BINDING_LIMIT)
        return US_ERR_LIMIT;
    if (d->n_fault > USI_SCRIPT_LIMIT || d->n_sensor > USI_SENSOR_LIMIT || d->n_topic > USI_TOPIC_LIMIT)
        return US_ERR_LIMIT;
    if ((d->n_wheel && !d->wheels) || (d->n_leg && !d->legs) || (d->n_motor && !d->motors) ||
        (d->n_line && !d->lines))
        return US_ERR_ARG;
    if ((d->uplink.n_outage && !d->uplink.outages) || (d->downlink.n_outage && !d->downlink.outages))
        return US_ERR_ARG;
    return US_OK;
}

static us_status check_numbers(const us_network_def *d) {
    const double rest[] = {d->timeout,          d->max_speed,    d->max_turn,        d->max_acceleration,
                           d->battery_capacity, d->battery_idle, d->battery_voltage, d->motor_rate};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (!is_at_least_0(rest[i])) return US_ERR_VALUE;
    }
    if (d->battery_capacity > 0 && d->battery_voltage == 0) return US_ERR_VALUE;
    if (!is_at_least_0(d->body_height) || !is_at_least_0(d->stance) || !is_at_least_0(d->step_height))
        return US_ERR_VALUE;
    if (!(d->step_time > 0) || !isfinite(d->step_time) || !(d->duty > 0.5 && d->duty < 1))
        return US_ERR_VALUE;
    if (!isfinite(d->track_scale) || d->track_scale <= 0) return US_ERR_VALUE;
    if (d->motor_port < 0 || d->motor_port > 65535) return US_ERR_VALUE;
    for (int i = 0; i < US_NOISE_COUNT; i++) {
        if (!is_good_noise(&d->noise[i])) return US_ERR_VALUE;
    }
    return is_good_link(&d->uplink) && is_good_link(&d->downlink) && is_good_timing(&d->timing)
               ? US_OK
               : US_ERR_VALUE;
}

// The wheels of each kind of locomotion; see us_locomotion.
static us_status check_wheels(const us_spec *spec, const us_network_def *d) {
    if ((unsigned)d->locomotion >= (unsigned)US_LOCOMOTION_COUNT) return US_ERR_ARG;
    int32_t n_steer = 0;
    for (int32_t i = 0; i < d->n_wheel; i++) {
        const us_wheel_def *w = &d->wheels[i];
        if (!us_spec_view_drive(spec, w->drive) || (w->steer != -1 && !us_spec_view_drive(spec, w->steer)))
            return US_ERR_ARG;
        if (!isfinite(w->radius) || w->radius <= 0) return US_ERR_VALUE;
        n_steer += w->steer >= 0;
    }
    if (d->locomotion == US_LOCOMOTION_NONE) return d->n_wheel == 0 ? US_OK : US_ERR_VALUE;
    return usi_wheels_fit(d->locomotion, d->n_wheel, n_steer) ? US_OK : US_ERR_VALUE;
}

// Six legs and a height to stand at, and no joint twice.
static us_status check_legs(const us_spec *spec, const us_network_def *d) {
    int32_t used[3 * USI_LEG_COUNT], n_used = 0;
    if (d->locomotion != US_LOCOMOTION_TRIPOD) return d->n_leg == 0 ? US_OK : US_ERR_VALUE;
    if (d->n_leg != USI_LEG_COUNT || d->body_height == 0) return US_ERR_VALUE;
    for (int32_t i = 0; i < d->n_leg; i++) {
        const int32_t drives[3] = {d->legs[i].coxa, d->legs[i].femur, d->legs[i].tibia};
        for (int k = 0; k < 3; k++) {
            if (!us_spec_view_drive(spec, drives[k])) return US_ERR_ARG;
            for (int32_t j = 0; j < n_used; j++) {
                if (used[j] == drives[k]) return US_ERR_VALUE;
            }
            used[n_used++] = drives[k];
        }
    }
    return US_OK;
}

bool usi_wheels_fit(us_locomotion kind, int32_t n_wheel, int32_t n_steer) {
    if (kind == US_LOCOMOTION_TRIPOD) return n_wheel == 0;
    if (kind == US_LOCOMOTION_SKID) return n_wheel >= 2 && n_steer == 0;
    if (kind == US_LOCOMOTION_ACKERMANN) return n_steer >= 1 && n_steer < n_wheel;
    return n_wheel >= 2 && n_steer == n_wheel;
}

static us_status check_sensors(const us_spec *spec, const us_network_def *d) {
    us_status status = US_OK;
    for (int32_t i = 0; i < d->n_sensor && !status; i++)
        status = usi_check_sensor(spec, d, i, NULL);
    for (int32_t i = 0; i < d->n_topic && !status; i++)
        status = usi_check_publication(d, i, NULL);
    return status;
}

us_status usi_check_command_source(const us_network_def *d, int32_t i, const char **out_why) {
    static const char *const ways[] = {"network", "motor", "page", "foxglove", "world"};
    const us_command_source *c = &d->sources[i];
    const char *why = NULL;
    bool is_way = false;
    us_status status = US_ERR_NAME;
    for (size_t k = 0; k < sizeof ways / sizeof ways[0] && c->name; k++)
        is_way = is_way || strcmp(c->name, ways[k]) == 0;
    for (int32_t k = 0; k < i && !why && c->name; k++) {
        if (strcmp(d->sources[k].name, c->name) == 0) why = "there are two sources of that name";
        if (c->topic && d->sources[k].topic && strcmp(d->sources[k].topic, c->topic) == 0)
            why = "another source has this topic";
    }
    const char *topic = c->topic ? c->topic + (c->topic[0] == '/') : NULL;
    if (!c->name || strlen(c->name) > USI_COMMAND_SOURCE_NAME || !usi_is_ros_name(c->name, false)) {
        why = "its name is no name: use at most 20 letters, digits and _";
    } else if (is_way && c->topic) {
        why = "network, motor, page, foxglove and world have no topic of their own: use another name";
    } else if (!is_way && !c->topic) {
        why = "it is none of network, motor, page, foxglove and world, so it needs a topic";
    } else if (topic && !usi_is_ros_name(topic, true)) {
        why = "its topic is no name of a topic";
    } else if (!isfinite(c->hold) || c->hold < 0 || c->hold > 3600) {
        status = US_ERR_VALUE;
        why = "hold is from 0 to 3600 s";
    } else if (c->is_exclusive && is_way && strcmp(c->name, "network") != 0) {
        status = US_ERR_VALUE;
        why = "ownership is a matter of DDS: of network, or of a source with a topic";
    }
    if (out_why) *out_why = why;
    return why ? status : US_OK;
}

static us_status check_sources(const us_network_def *d) {
    us_status status = US_OK;
    for (int32_t i = 0; i < d->n_source && !status; i++)
        status = usi_check_command_source(d, i, NULL);
    return status;
}

static us_status check_motors(const us_spec *spec, const us_network_def *d) {
    for (int32_t i = 0; i < d->n_motor; i++) {
        const us_motor_def *m = &d->motors[i];
        if (!us_spec_view_drive(spec, m->drive)) return US_ERR_ARG;
        if (!memchr(m->name, 0, sizeof m->name) || !usi_is_motor_name(m->name)) return US_ERR_NAME;
        for (int32_t k = 0; k < i; k++) {
            if (strcmp(d->motors[k].name, m->name) == 0) return US_ERR_NAME;
        }
    }
    return US_OK;
}

// Inputs have a reading: of a joint with a drive, or of the battery. Outputs have none.
static us_status check_lines(const us_spec *spec, const us_network_def *d) {
    if (d->n_line > USI_LINE_LIMIT) return US_ERR_LIMIT;
    if (!(d->motor_counts > 0) || d->motor_counts > 1e9) return US_ERR_VALUE;
    for (int32_t i = 0; i < d->n_line; i++) {
        const us_line_def *l = &d->lines[i];
        const bool is_in = l->kind == US_LINE_DIGITAL_IN || l->kind == US_LINE_ANALOG_IN,
                   is_joint = l->value >= US_LINE_JOINT_POSITION && l->value <= US_LINE_JOINT_TORQUE,
                   is_battery = l->value >= US_LINE_BATTERY_CHARGE && l->value < US_LINE_VALUE_COUNT;
        if ((unsigned)l->kind >= US_LINE_KIND_COUNT || (unsigned)l->value >= US_LINE_VALUE_COUNT ||
            is_in != (l->value != US_LINE_NOTHING) || (is_joint && !us_spec_view_drive(spec, l->drive)))
            return US_ERR_ARG;
        if (!isfinite(l->scale) || !isfinite(l->offset) || !isfinite(l->threshold)) return US_ERR_VALUE;
        if (is_battery && !(d->battery_capacity > 0)) return US_ERR_NAME;
        if (!memchr(l->name, 0, sizeof l->name) || !usi_is_motor_name(l->name)) return US_ERR_NAME;
        for (int32_t k = 0; k < i; k++) {
            if (strcmp(d->lines[k].name, l->name) == 0) return US_ERR_NAME;
        }
    }
    return US_OK;
}

const char *us_line_kind_name(us_line_kind kind) {
    static const char *const names[] = {"digital-in", "digital-out", "analog-in", "analog-out"};
    return (unsigned)kind < (unsigned)US_LINE_KIND_COUNT ? names[kind] : "?";
}

const char *us_line_value_name(us_line_value value) {
    static const char *const names[] = {"",
                                        "joint.position",
                                        "joint.velocity",
                                        "joint.torque",
                                        "battery.charge",
                                        "battery.voltage",
                                        "battery.current"};
    return (unsigned)value < (unsigned)US_LINE_VALUE_COUNT ? names[value] : "?";
}

// The fault that `after` names; -1: there is none.
int32_t usi_script_find(const us_fault_def *faults, int32_t n, const char *name) {
    for (int32_t i = 0; i < n; i++) {
        if (faults[i].name && strcmp(faults[i].name, name) == 0) return i;
    }
    return -1;
}

// Only what stands before it comes first: so that they never wait for each other.
static us_status check_faults(const us_spec *spec, const us_network_def *d) {
    for (int32_t i = 0; i < d->n_fault; i++) {
        const us_fault_def *f = &d->faults[i];
        usi_fault_words words;
        usi_condition condition;
        if (!f->what || !is_at_least_0(f->at) || !is_at_least_0(f->duration)) return US_ERR_VALUE;
        if (f->name && usi_script_find(d->faults, i, f->name) >= 0) return US_ERR_NAME;
        if (f->after && usi_script_find(d->faults, i, f->after) < 0) return US_ERR_NAME;
        us_status status = usi_fault_check(spec, d, f->what, &words, NULL);
        if (!status && f->when) status = usi_condition_read(spec, d, f->when, &condition, NULL);
        if (status) return status;
    }
    return US_OK;
}

// Names and ports that are taken already.
static us_status check_others(const us_spec *spec, const us_network_def *d) {
    for (int32_t i = 0; i < spec->n_network && !d->is_off; i++) {
        const us_network_def *other = &spec->network[i];
        if (other->group == d->group || other->is_off) continue;
        if (strcmp(other->namespace_, d->namespace_) == 0) return US_ERR_NAME;
        if (d->motor_port && other->motor_port == d->motor_port) return US_ERR_VALUE;
    }
    return US_OK;
}

// ---------------------------------------------------------------- keeping

int32_t usi_group_root(const us_spec *spec, int32_t group) {
    for (int32_t i = 0; i < spec->n_link; i++) {
        if (spec->link[i].group != group) continue;
        bool is_root = true;
        for (int32_t j = 0; j < spec->n_joint && is_root; j++) {
            const us_joint_def *joint = &spec->joint[j];
            const us_link_def *parent = us_spec_view_link(spec, joint->parent);
            if (joint->child == i && parent && parent->group == group) is_root = false;
        }
        if (is_root) return i;
    }
    return -1;
}

// The texts that were left open, for a moment: us_spec_set_network copies them.
typedef struct open_texts {
    char namespace_[USI_NETWORK_NAME_LIMIT + 2];
    char frame_prefix[USI_NETWORK_NAME_LIMIT + 2];
} open_texts;

static us_status fill_in(const us_spec *spec, us_network_def *d, open_texts *texts) {
    const char *name = spec->group[d->group].name ? spec->group[d->group].name : "";
    if (!d->namespace_) {
        usi_ros_name_make(name, texts->namespace_, sizeof texts->namespace_);
        d->namespace_ = texts->namespace_;
    } else if (d->namespace_[0] && !usi_is_ros_name(d->namespace_, true)) {
        return US_ERR_NAME;
    }
    if (!d->frame_prefix) {
        snprintf(texts->frame_prefix, sizeof texts->frame_prefix, "%.*s%s", USI_NETWORK_NAME_LIMIT, name,
                 name[0] ? "/" : "");
        d->frame_prefix = texts->frame_prefix;
    } else if (!usi_is_frame_prefix(d->frame_prefix)) {
        return US_ERR_NAME;
    }
    if (!d->node) d->node = "driver";
    if (!usi_is_ros_name(d->node, false)) return US_ERR_NAME;
    int32_t base = d->base_frame ? us_spec_find_link(spec, d->base_frame) : usi_group_root(spec, d->group);
    if (base < 0 || spec->link[base].group != d->group) return US_ERR_ARG;
    d->base_frame = spec->link[base].name;
    return US_OK;
}

static bool keep_text(usi_arena *arena, const char **text) {
    bool ok = true;
    *text = usi_arena_text(arena, *text, &ok);
    return ok;
}

// A copy of n things of `each` bytes; NULL for none. False without memory.
static bool keep_array(usi_arena *arena, const void *from, int32_t n, size_t each, void **out) {
    *out = n > 0 ? usi_arena_alloc(arena, (size_t)n * each, _Alignof(max_align_t)) : NULL;
    if (*out) memcpy(*out, from, (size_t)n * each);
    return n == 0 || *out;
}

static bool keep_binding(usi_arena *arena, us_binding *b) {
    return keep_text(arena, &b->member) && keep_text(arena, &b->value) && keep_text(arena, &b->copy) &&
           keep_text(arena, &b->text) && keep_text(arena, &b->joints) && keep_text(arena, &b->sensor) &&
           keep_text(arena, &b->axes) && keep_text(arena, &b->order);
}

static bool keep_settings(usi_arena *arena, us_sensor_def *d) {
    void *settings = NULL;
    bool ok = keep_array(arena, d->settings, d->n_setting, sizeof *d->settings, &settings);
    for (int32_t i = 0; i < d->n_setting && ok; i++)
        ok = keep_text(arena, &((us_sensor_setting *)settings + i)->parameter);
    d->settings = settings;
    return ok;
}

static bool keep_network(usi_arena *arena, us_network_def *d) {
    void *wheels = NULL, *legs = NULL, *motors = NULL, *up = NULL, *down = NULL, *faults = NULL,
         *sensors = NULL, *topics = NULL, *sources = NULL, *endpoints = NULL, *commands = NULL,
         *bindings = NULL, *lines = NULL;
    bool ok = keep_text(arena, &d->namespace_) && keep_text(arena, &d->frame_prefix) &&
              keep_text(arena, &d->node) && keep_text(arena, &d->base_frame) && keep_text(arena, &d->file);
    ok = ok && keep_array(arena, d->wheels, d->n_wheel, sizeof *d->wheels, &wheels);
    ok = ok && keep_array(arena, d->legs, d->n_leg, sizeof *d->legs, &legs);
    ok = ok && keep_array(arena, d->motors, d->n_motor, sizeof *d->motors, &motors);
    ok = ok && keep_array(arena, d->lines, d->n_line, sizeof *d->lines, &lines);
    ok = ok && keep_array(arena, d->uplink.outages, 2 * d->uplink.n_outage, sizeof(double), &up);
    ok = ok && keep_array(arena, d->downlink.outages, 2 * d->downlink.n_outage, sizeof(double), &down);
    ok = ok && keep_array(arena, d->faults, d->n_fault, sizeof *d->faults, &faults);
    ok = ok && keep_array(arena, d->sensors, d->n_sensor, sizeof *d->sensors, &sensors);
    ok = ok && keep_array(arena, d->topics, d->n_topic, sizeof *d->topics, &topics);
    ok = ok && keep_array(arena, d->sources, d->n_source, sizeof *d->sources, &sources);
    ok = ok && keep_array(arena, d->endpoints, d->n_endpoint, sizeof *d->endpoints, &endpoints);
    ok = ok && keep_array(arena, d->commands, d->n_command, sizeof *d->commands, &commands);
    ok = ok && keep_array(arena, d->bindings, d->n_binding, sizeof *d->bindings, &bindings);
    for (int32_t i = 0; i < d->n_endpoint && ok; i++) {
        us_endpoint_def *e = (us_endpoint_def *)endpoints + i;
        ok = keep_text(arena, &e->topic) && keep_text(arena, &e->type) && keep_text(arena, &e->partition);
    }
    for (int32_t i = 0; i < d->n_command && ok; i++)
        ok = keep_text(arena, &((us_interface_command *)commands + i)->action);
    for (int32_t i = 0; i < d->n_binding && ok; i++)
        ok = keep_binding(arena, (us_binding *)bindings + i);
    for (int32_t i = 0; i < d->n_source && ok; i++) {
        us_command_source *c = (us_command_source *)sources + i;
        ok = keep_text(arena, &c->name) && keep_text(arena, &c->topic);
    }
    for (int32_t i = 0; i < d->n_sensor && ok; i++) {
        us_sensor_def *sensor = (us_sensor_def *)sensors + i;
        sensor->kind = usi_sensor_kind_of(sensor);
        ok = keep_text(arena, &sensor->name) && keep_text(arena, &sensor->preset) &&
             keep_settings(arena, sensor);
        if (ok && sensor->lidar) ok = (sensor->lidar = usi_lidar_copy(arena, sensor->lidar)) != NULL;
    }
    for (int32_t i = 0; i < d->n_topic && ok; i++) {
        us_publication_def *t = (us_publication_def *)topics + i;
        ok = keep_text(arena, &t->source) && keep_text(arena, &t->name);
    }
    for (int32_t i = 0; i < d->n_fault && ok; i++) {
        us_fault_def *f = (us_fault_def *)faults + i;
        ok = keep_text(arena, &f->name) && keep_text(arena, &f->after) && keep_text(arena, &f->when) &&
             keep_text(arena, &f->what) && keep_text(arena, &f->file);
    }
    d->wheels = wheels;
    d->legs = legs;
    d->motors = motors;
    d->lines = lines;
    d->sensors = sensors;
    d->topics = topics;
    d->sources = sources;
    d->endpoints = endpoints;
    d->commands = commands;
    d->bindings = bindings;
    d->faults = faults;
    d->uplink.outages = up;
    d->downlink.outages = down;
    return ok;
}

us_network_def *usi_network_copy(usi_arena *arena, const us_network_def *def) {
    us_network_def *copy = usi_arena_alloc(arena, sizeof *copy, _Alignof(us_network_def));
    if (!copy) return NULL;
    *copy = *def;
    return keep_network(arena, copy) ? copy : NULL;
}

us_status usi_network_put(us_spec *spec, const us_network_def *def) {
    us_network_def copy = *def;
    us_status status = usi_grow(&spec->texts.allocator, (void **)&spec->network, spec->n_network,
                                &spec->cap_network, sizeof copy);
    if (status) return status;
    if (!keep_network(&spec->texts, &copy)) return US_ERR_MEMORY;
    int32_t i = 0;
    while (i < spec->n_network && spec->network[i].group != copy.group)
        i++;
    us_interface_keep(copy.interface_);
    if (i < spec->n_network) us_interface_release(spec->network[i].interface_);
    spec->network[i] = copy;
    if (i == spec->n_network) spec->n_network++;
    return US_OK;
}

us_status usi_network_set(us_spec *spec, const us_network_def *def, int32_t *out_topic, us_error *err) {
    if (!spec || !def || !us_spec_view_group(spec, def->group)) return US_ERR_ARG;
    us_network_def d = *def;
    open_texts texts;
    us_status status = check_arrays(&d);
    if (!status) status = check_numbers(&d);
    if (!status) status = check_wheels(spec, &d);
    if (!status) status = check_legs(spec, &d);
    if (!status) status = check_motors(spec, &d);
    if (!status) status = check_lines(spec, &d);
    if (!status) status = check_sources(&d);
    if (!status) status = check_sensors(spec, &d);
    if (!status) status = check_faults(spec, &d);
    if (!status) status = fill_in(spec, &d, &texts);
    if (!status) status = check_others(spec, &d);
    if (!status && !usi_complete_publications(&spec->texts, &d)) status = US_ERR_MEMORY;
    if (status) return status;
    int32_t topic = -1;
    status = usi_check_publications(spec, &d, &topic, err);
    if (status && out_topic) *out_topic = topic - (d.n_topic - def->n_topic);
    return status ? status : usi_network_put(spec, &d);
}

us_status us_spec_set_network(us_spec *spec, const us_network_def *def) {
    return usi_network_set(spec, def, NULL, NULL);
}

const us_network_def *us_spec_view_network(const us_spec *spec, int32_t group) {
    for (int32_t i = 0; spec && i < spec->n_network; i++) {
        if (spec->network[i].group == group) return &spec->network[i];
    }
    return NULL;
}

us_status us_spec_set_clock_rate(us_spec *spec, double rate) {
    if (!spec) return US_ERR_ARG;
    if (!is_at_least_0(rate)) return US_ERR_VALUE;
    spec->clock_rate = rate;
    return US_OK;
}

double us_spec_get_clock_rate(const us_spec *spec) { return spec ? spec->clock_rate : NAN; }
