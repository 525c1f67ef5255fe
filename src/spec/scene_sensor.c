// <sensor> inside <robot>: what all sensors have, and the parameters of its kind as attributes.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "spec/publication.h"
#include "spec/scene.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"

// Attributes that all sensors have. Those of lidars are checked by scene_lidar.c.
static const char *const common[] = {"name", "type",  "link",    "xyz",  "rpy",   "quat",
                                     "rate", "phase", "latency", "seed", "preset"};
enum { N_COMMON = sizeof common / sizeof *common };

// The kind that is written, by its name.
static us_status find_kind(usi_reader *r, const xmlNode *node, const us_sensor_kind **out) {
    const char *type = usi_xml_attr(node, "type");
    *out = us_spec_find_sensor_kind(r->spec, type);
    if (*out) return US_OK;
    enum { MAX_KIND = 64 };
    const char *known[MAX_KIND];
    const us_sensor_kind *k = NULL;
    int32_t n = 0;
    while (n < MAX_KIND && (k = us_spec_view_sensor_kind(r->spec, n)))
        known[n++] = k->name;
    us_error why = {0};
    usi_fail_unknown("type of sensor", type, known, n, &why);
    return usi_fail(r, US_ERR_VALUE, node, why.remedy, "type: invalid value \"%.60s\"", type);
}

// A joint or link of the robot by the name that is written.
static us_status find_reference(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                                const us_sensor_parameter *p, double *out) {
    int32_t at = -1;
    us_status status = p->type == US_PARAMETER_JOINT ? usi_scene_find_joint(r, group, node, p->name, &at)
                                                     : usi_scene_find_link(r, group, node, p->name, &at);
    if (!status && at < 0)
        status =
            usi_fail(r, US_ERR_NAME, node, "name one of the robot's own", "%s: it is the world", p->name);
    *out = at;
    return status;
}

static bool is_among(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], name) == 0) return true;
    }
    return false;
}

static us_status fail_attribute(usi_reader *r, const xmlNode *node, const us_sensor_kind *k, const char *name,
                                const char *const *more, size_t n_more) {
    enum { MAX_KNOWN = N_COMMON + US_SENSOR_MAX_PARAMETER + 32 };
    const char *known[MAX_KNOWN];
    int32_t n = 0;
    for (size_t i = 0; i < n_more && i < 32; i++)
        known[n++] = more[i];
    for (int32_t i = 0; i < k->n_parameter; i++)
        known[n++] = k->parameters[i].name;
    for (int32_t i = 0; i < N_COMMON; i++)
        known[n++] = common[i];
    us_error why = {0};
    usi_fail_unknown("attribute", name, known, n, &why);
    return usi_fail(r, US_ERR_SCHEMA, node, why.remedy, "%.60s: a sensor of the type \"%s\" has none", name,
                    k->name);
}

us_status usi_scene_sensor_attributes(usi_reader *r, const xmlNode *node, const us_sensor_kind *k,
                                      const char *const *more, size_t n_more) {
    for (const xmlAttr *a = node->properties; a; a = a->next) {
        const char *name = (const char *)a->name;
        if (a->ns || is_among(name, common, N_COMMON) || is_among(name, more, n_more)) continue;
        if (usi_find_parameter(k, name) < 0) return fail_attribute(r, node, k, name, more, n_more);
    }
    return US_OK;
}

// The kind's parameters.
static us_status read_settings(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                               us_sensor_def *s) {
    const us_sensor_kind *k = s->kind;
    us_sensor_setting *settings = usi_reader_alloc(r, (US_SENSOR_MAX_PARAMETER + 1) * sizeof *settings);
    if (!settings) return usi_fail_memory(r);
    s->settings = settings;
    us_status status = US_OK;
    for (int32_t i = 0; i < k->n_parameter && !status; i++) {
        const us_sensor_parameter *p = &k->parameters[i];
        const char *text = usi_xml_attr(node, p->name);
        us_error why = {0};
        double value = 0;
        if (!text) continue;
        if (usi_is_reference(p)) {
            status = find_reference(r, group, node, p, &value);
        } else {
            status = usi_read_parameter(p, text, &value, &why);
            if (status) return usi_fail(r, status, node, why.remedy, "%.300s", why.message);
        }
        settings[s->n_setting++] = (us_sensor_setting){p->name, value};
    }
    return status;
}

static us_status fail_preset(usi_reader *r, const xmlNode *node, const us_sensor_def *s) {
    enum { MAX_KNOWN = 32 };
    const char *known[MAX_KNOWN];
    int32_t n = 0;
    for (; n < s->kind->n_preset && n < MAX_KNOWN; n++)
        known[n] = s->kind->presets[n].name;
    us_error why = {.remedy = "leave it out"};
    if (n > 0) usi_fail_unknown("preset", s->preset, known, n, &why);
    return usi_fail(r, US_ERR_SCHEMA, node, why.remedy,
                    "preset: a sensor of the type \"%s\" has no \"%.60s\"", s->kind->name, s->preset);
}

// A seed is any whole number that a double holds.
static us_status read_seed(usi_reader *r, const xmlNode *node, uint64_t *out) {
    const usi_look look = usi_look_at(node);
    double seed = 0;
    us_status status = usi_look_positive(r, &look, "seed", USI_PLAIN, false, &seed);
    if (!status && (seed != floor(seed) || seed > 9007199254740992.0))
        status =
            usi_fail(r, US_ERR_VALUE, node, "write a whole number from 0 to 2^53", "seed: %g is none", seed);
    *out = status ? 0 : (uint64_t)seed;
    return status;
}

static us_status read_sensor(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                             us_network_def *d, us_sensor_def *s) {
    us_error why = {0};
    const usi_look look = usi_look_at(node);
    *s = (us_sensor_def){.name = usi_xml_attr(node, "name"), .X_BS = us_pose_identity()};
    // A <light> is a lamp, which says how much it shines.
    us_status status = US_OK;
    if (strcmp((const char *)node->name, "light") == 0)
        s->kind = us_sensor_kind_find("lamp");
    else
        status = find_kind(r, node, &s->kind);
    if (!status) status = usi_scene_find_link(r, group, node, "link", &s->link);
    if (!status && s->link == US_WORLD)
        status = usi_fail(r, US_ERR_NAME, node, "name a link of the robot", "link: the world has no sensors");
    if (!status) status = usi_scene_pose(r, node, &s->X_BS);
    if (status) return status;
    s->rate = s->kind->usual_rate;
    if (s->kind->is_frame)
        status = usi_scene_lidar(r, node, s);
    else
        status = usi_scene_sensor_attributes(r, node, s->kind, NULL, 0);
    if (!s->kind->is_frame) s->preset = usi_xml_attr(node, "preset");
    if (!status && s->preset && usi_find_preset(s->kind, s->preset) < 0) status = fail_preset(r, node, s);
    if (!status) status = usi_look_positive(r, &look, "rate", USI_FREQUENCY, false, &s->rate);
    if (!status) status = usi_look_positive(r, &look, "phase", USI_TIME, false, &s->phase);
    if (!status) status = usi_look_positive(r, &look, "latency", USI_TIME, false, &s->latency);
    if (!status) status = read_settings(r, group, node, s);
    if (!status) status = read_seed(r, node, &s->seed);
    if (status) return status;
    status = usi_check_sensor(r->spec, d, d->n_sensor, &why);
    if (status) return usi_fail(r, status, node, why.remedy, "%.300s", why.message);
    const double step = us_spec_view_world(r->spec)->step;
    if (s->rate * step <= 1 + 1e-9) return US_OK;
    return usi_warn(r, node, "lower the rate, or the step of the <world>",
                    "rate: %g Hz is more than one sample in each step of %g s: one is taken", s->rate, step);
}

us_status usi_scene_sensors(usi_reader *r, const usi_scene_group *group, us_network_def *d) {
    us_sensor_def *sensors = usi_reader_alloc(r, USI_SENSOR_LIMIT * sizeof *sensors);
    if (!sensors) return usi_fail_memory(r);
    d->sensors = sensors;
    us_status status = US_OK;
    static const char *const elements[] = {"sensor", "light"};
    for (int k = 0; k < 2; k++) {
        for (const xmlNode *n = usi_xml_child(group->node, elements[k]); n && !status;
             n = usi_xml_next(n, elements[k])) {
            if (d->n_sensor == USI_SENSOR_LIMIT)
                return usi_fail(r, US_ERR_LIMIT, n, "write fewer",
                                "a robot has at most %d sensors and lights", USI_SENSOR_LIMIT);
            status = read_sensor(r, group, n, d, &sensors[d->n_sensor]);
            if (!status) d->n_sensor++;
        }
    }
    return status;
}
