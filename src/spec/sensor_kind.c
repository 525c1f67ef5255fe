// Kinds of sensors: whether one is as it must be, which ones a spec knows, and the values of parameters.
#include "spec/sensor_kind.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "spec/scene.h"
#include "spec/spec.h"
#include "understudy/wire.h"
#include "wire/member.h"

// Attributes of every <sensor>, and words of world commands.
static const char *const frame_words[] = {"name", "type",  "link",    "xyz",  "rpy",    "quat",
                                          "rate", "phase", "latency", "seed", "preset", "if"};

const us_sensor_kind *usi_sensor_kind_of(const us_sensor_def *d) {
    return d->kind ? d->kind : us_sensor_kind_view(0);
}

// ---------------------------------------------------------------- whether a kind is one

static bool is_word(const char *text) {
    if (!text || !((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'))) return false;
    for (const char *c = text; *c; c++) {
        const bool is_good = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                             (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' || *c == '.';
        if (!is_good) return false;
    }
    return strlen(text) < 60;
}

static us_status fail_name(const us_sensor_kind *k, const char *what, const char *name, const char *why,
                           us_error *err) {
    return us_error_set(err, US_ERR_NAME, NULL,
                        "use letters, digits, -, _ and ., beginning with a letter, and each name once",
                        "the kind of sensor \"%.60s\": its %s \"%.60s\" %s", k->name, what, name ? name : "",
                        why);
}

static us_status check_parameters(const us_sensor_kind *k, us_error *err) {
    for (int32_t i = 0; i < k->n_parameter; i++) {
        const us_sensor_parameter *p = &k->parameters[i];
        if (!is_word(p->name)) return fail_name(k, "parameter", p->name, "is no name", err);
        for (size_t w = 0; w < sizeof frame_words / sizeof *frame_words; w++) {
            if (strcmp(p->name, frame_words[w]) == 0)
                return fail_name(k, "parameter", p->name, "is an attribute that all sensors have", err);
        }
        if (usi_find_parameter(k, p->name) != i)
            return fail_name(k, "parameter", p->name, "is there twice", err);
        const bool has_range = p->type == US_PARAMETER_NUMBER || p->type == US_PARAMETER_WHOLE;
        if (!p->unit || !p->about || (unsigned)p->type > US_PARAMETER_LINK ||
            (p->type == US_PARAMETER_CHOICE && (!p->choices || !p->choices[0])) ||
            (has_range && !(p->low <= p->high)) ||
            (!isnan(p->usual) && usi_check_parameter(p, p->usual, NULL)))
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "give it a unit (\"1\": none), a line about it, and a usual value between low "
                "and high, or choices",
                "the kind of sensor \"%.60s\": the parameter \"%.60s\" is not whole", k->name, p->name);
    }
    return US_OK;
}

static us_status check_readings(const us_sensor_kind *k, us_error *err) {
    for (int32_t i = 0; i < k->n_reading; i++) {
        const us_sensor_reading *r = &k->readings[i];
        if (!is_word(r->name)) return fail_name(k, "reading", r->name, "is no name", err);
        if (usi_find_reading(k, r->name) != i) return fail_name(k, "reading", r->name, "is there twice", err);
        if (usi_find_parameter(k, r->name) >= 0)
            return fail_name(k, "reading", r->name, "is a parameter too", err);
        if (!r->unit)
            return us_error_set(err, US_ERR_VALUE, NULL, "give it one, \"1\" for none",
                                "the kind of sensor \"%.60s\": the reading \"%.60s\" has no unit", k->name,
                                r->name);
    }
    for (int32_t i = 0; i < k->n_member; i++) {
        const us_sensor_member *m = &k->members[i];
        const bool is_known =
            !m->value || usi_find_reading(k, m->value) >= 0 || usi_find_parameter(k, m->value) >= 0;
        if (!m->path || !is_known)
            return fail_name(k, "member", m->path, "is of no reading and no parameter", err);
    }
    return US_OK;
}

// The library knows the message, and it has the members.
static us_status check_message(const us_sensor_kind *k, us_error *err) {
    const us_message_type *type = k->message ? us_message_find(k->message) : NULL;
    usi_member m;
    if (!k->message && k->n_member == 0) return US_OK;
    if (!type)
        return us_error_set(
            err, US_ERR_NAME, NULL,
            "name a type that \"understudy topics --types\" knows, as sensor_msgs/msg/Range, or none",
            "the kind of sensor \"%.60s\": there is no type \"%.100s\"", k->name,
            k->message ? k->message : "");
    for (int32_t i = 0; i < k->n_member; i++) {
        us_error why = {0};
        us_status status = usi_member_find(type, k->members[i].path, -1, NULL, &m, &why);
        if (!status && (usi_member_is_whole(&m) || m.leaf->kind == USI_KIND_MESSAGE))
            status = us_error_set(&why, US_ERR_NAME, NULL, "name a single number or text",
                                  "%.100s is more than one", k->members[i].path);
        if (status)
            return us_error_set(err, US_ERR_NAME, NULL, why.remedy, "the kind of sensor \"%.60s\": %.200s",
                                k->name, why.message);
    }
    return US_OK;
}

static us_status check_presets(const us_sensor_kind *k, us_error *err) {
    for (int32_t i = 0; i < k->n_preset; i++) {
        const us_sensor_preset *p = &k->presets[i];
        if (!is_word(p->name)) return fail_name(k, "preset", p->name, "is no name", err);
        if (usi_find_preset(k, p->name) != i) return fail_name(k, "preset", p->name, "is there twice", err);
        for (int32_t s = 0; s < p->n; s++) {
            const int32_t at = usi_find_parameter(k, p->settings[s].parameter);
            if (at < 0) return fail_name(k, "preset", p->name, "sets what is no parameter", err);
            us_status status = usi_check_parameter(&k->parameters[at], p->settings[s].value, err);
            if (status) return status;
        }
    }
    return US_OK;
}

static bool is_count(int32_t n, int32_t max, const void *array) {
    return n >= 0 && n <= max && (n == 0 || array);
}

us_status us_sensor_kind_check(const us_sensor_kind *k, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!k)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a kind", "us_sensor_kind_check: the kind is NULL");
    // What comes first is looked at first: another version may have placed the rest elsewhere.
    if (k->abi != US_SENSOR_ABI || k->size != (int32_t)sizeof *k)
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "build it with the headers of this library: .abi = US_SENSOR_ABI, .size = "
                            "sizeof(us_sensor_kind)",
                            "a kind of sensor has abi %d and size %d, but this library knows abi %d and size "
                            "%d",
                            (int)k->abi, (int)k->size, US_SENSOR_ABI, (int)sizeof *k);
    if (!is_word(k->name))
        return us_error_set(err, US_ERR_NAME, NULL, "give it the name that <sensor type=\"...\"> will use",
                            "a kind of sensor has no name");
    if (!k->sample && !k->is_frame)
        return us_error_set(err, US_ERR_VALUE, NULL, "set its member sample",
                            "the kind of sensor \"%.60s\" has no function", k->name);
    if (k->is_frame && us_sensor_kind_find(k->name) != k)
        return us_error_set(err, US_ERR_VALUE, NULL, "make its readings numbers, and is_frame false",
                            "the kind of sensor \"%.60s\": frames are made by the library alone", k->name);
    if (!is_count(k->n_parameter, US_SENSOR_MAX_PARAMETER, k->parameters) ||
        !is_count(k->n_reading, US_SENSOR_MAX_READING, k->readings) ||
        !is_count(k->n_member, US_SENSOR_MAX_MEMBER, k->members) ||
        !is_count(k->n_preset, 1000, k->presets) || k->n_state < 0 || k->n_state > US_SENSOR_MAX_STATE ||
        (k->n_reading == 0 && !k->is_frame))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "at most 64 parameters, 64 members, 512 numbers of state, and 1 to 64 readings, "
                            "each with its array",
                            "the kind of sensor \"%.60s\" has %d parameters, %d readings, %d members, %d "
                            "numbers of state",
                            k->name, (int)k->n_parameter, (int)k->n_reading, (int)k->n_member,
                            (int)k->n_state);
    if (!(k->usual_rate >= 0) || !isfinite(k->usual_rate))
        return us_error_set(err, US_ERR_VALUE, NULL, "0 is a sample each step",
                            "the kind of sensor \"%.60s\" has no usual rate of 0 or more", k->name);
    us_status status = check_parameters(k, err);
    if (!status) status = check_readings(k, err);
    if (!status) status = check_presets(k, err);
    if (!status) status = check_message(k, err);
    return status;
}

// ---------------------------------------------------------------- those that a spec knows

us_status usi_add_sensor_kind(us_spec *spec, const us_sensor_kind *kind, const us_place *place,
                              us_error *err) {
    us_error why = {0};
    us_status status = us_sensor_kind_check(kind, &why);
    if (status) return us_error_set(err, status, place, why.remedy, "%.300s", why.message);
    const us_sensor_kind *have = us_spec_find_sensor_kind(spec, kind->name);
    if (have == kind) return US_OK;
    if (have)
        return us_error_set(err, US_ERR_NAME, place, "give each kind its own name",
                            "there is another kind of sensor \"%.100s\" already", kind->name);
    status = usi_grow(&spec->texts.allocator, (void **)&spec->sensor_kind, spec->n_sensor_kind,
                      &spec->cap_sensor_kind, sizeof(void *));
    if (status)
        return us_error_set(err, status, place, "free memory",
                            "there is no memory for the kind of sensor \"%.100s\"", kind->name);
    spec->sensor_kind[spec->n_sensor_kind++] = kind;
    return US_OK;
}

us_status us_spec_add_sensor_kind(us_spec *spec, const us_sensor_kind *kind, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!spec || !kind)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a kind",
                            "us_spec_add_sensor_kind: an argument is NULL");
    return usi_add_sensor_kind(spec, kind, NULL, err);
}

const us_sensor_kind *us_spec_view_sensor_kind(const us_spec *spec, int32_t i) {
    int32_t n = 0;
    while (us_sensor_kind_view(n))
        n++;
    if (i < n) return us_sensor_kind_view(i);
    return spec && i - n < spec->n_sensor_kind ? spec->sensor_kind[i - n] : NULL;
}

const us_sensor_kind *us_spec_find_sensor_kind(const us_spec *spec, const char *name) {
    const us_sensor_kind *k = NULL;
    for (int32_t i = 0; name && (k = us_spec_view_sensor_kind(spec, i)); i++) {
        if (strcmp(k->name, name) == 0) return k;
    }
    return NULL;
}

// ---------------------------------------------------------------- parts by name

int32_t usi_find_parameter(const us_sensor_kind *k, const char *name) {
    for (int32_t i = 0; i < k->n_parameter; i++) {
        if (k->parameters[i].name && strcmp(k->parameters[i].name, name) == 0) return i;
    }
    return -1;
}

int32_t usi_find_reading(const us_sensor_kind *k, const char *name) {
    for (int32_t i = 0; i < k->n_reading; i++) {
        if (k->readings[i].name && strcmp(k->readings[i].name, name) == 0) return i;
    }
    return -1;
}

int32_t usi_find_preset(const us_sensor_kind *k, const char *name) {
    for (int32_t i = 0; i < k->n_preset; i++) {
        if (k->presets[i].name && strcmp(k->presets[i].name, name) == 0) return i;
    }
    return -1;
}

// ---------------------------------------------------------------- values

static int32_t count_choices(const us_sensor_parameter *p) {
    int32_t n = 0;
    while (p->choices[n])
        n++;
    return n;
}

us_status usi_check_parameter(const us_sensor_parameter *p, double value, us_error *err) {
    if (usi_is_reference(p)) return US_OK;
    const bool is_choice = p->type == US_PARAMETER_CHOICE;
    const double low = is_choice ? 0 : p->low, high = is_choice ? count_choices(p) - 1 : p->high;
    char remedy[160];
    snprintf(remedy, sizeof remedy, "write a number from %.9g to %.9g%s%s", low, high,
             strcmp(p->unit, "1") == 0 ? "" : " ", strcmp(p->unit, "1") == 0 ? "" : p->unit);
    if (!(value >= low && value <= high))
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%.60s: %.9g is out of range", p->name, value);
    if (p->type != US_PARAMETER_NUMBER && value != floor(value))
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%.60s: %.9g is no whole number", p->name,
                            value);
    return US_OK;
}

us_status usi_read_parameter(const us_sensor_parameter *p, const char *text, double *out, us_error *err) {
    us_status status = US_OK;
    if (p->type == US_PARAMETER_CHOICE) {
        const int32_t n = count_choices(p);
        for (int32_t i = 0; i < n; i++) {
            *out = i;
            if (strcmp(p->choices[i], text) == 0) return US_OK;
        }
        us_error why = {0};
        usi_fail_unknown(p->name, text, p->choices, n, &why);
        return us_error_set(err, US_ERR_VALUE, NULL, why.remedy, "%.60s: %.200s", p->name, why.message);
    }
    us_error why = {0};
    status = usi_measure_in(text, p->unit, out, &why);
    if (status) return us_error_set(err, status, NULL, why.remedy, "%.60s: %.300s", p->name, why.message);
    return usi_check_parameter(p, *out, err);
}

static us_status set_values(const us_sensor_kind *k, int32_t n, const us_sensor_setting *settings,
                            double *out, us_error *err) {
    const char *known[US_SENSOR_MAX_PARAMETER];
    us_status status = US_OK;
    for (int32_t i = 0; i < n && !status; i++) {
        const char *name = settings[i].parameter ? settings[i].parameter : "";
        const int32_t at = usi_find_parameter(k, name);
        for (int32_t p = 0; p < k->n_parameter; p++)
            known[p] = k->parameters[p].name;
        if (at < 0) return usi_fail_unknown("parameter", name, known, k->n_parameter, err);
        status = usi_check_parameter(&k->parameters[at], settings[i].value, err);
        out[at] = settings[i].value;
    }
    return status;
}

us_status usi_sensor_values(const us_sensor_def *d, double *out, us_error *err) {
    const us_sensor_kind *k = usi_sensor_kind_of(d);
    us_status status = US_OK;
    for (int32_t i = 0; i < k->n_parameter; i++)
        out[i] = k->parameters[i].usual;
    if (d->preset) {
        const int32_t at = usi_find_preset(k, d->preset);
        const char *known[1000];
        for (int32_t i = 0; i < k->n_preset; i++)
            known[i] = k->presets[i].name;
        if (at < 0) return usi_fail_unknown("preset", d->preset, known, k->n_preset, err);
        status = set_values(k, k->presets[at].n, k->presets[at].settings, out, err);
    }
    if (!status) status = set_values(k, d->n_setting, d->settings, out, err);
    for (int32_t i = 0; i < k->n_parameter && !status; i++) {
        if (!isnan(out[i])) continue;
        status =
            us_error_set(err, US_ERR_VALUE, NULL, k->parameters[i].about,
                         "%.60s: a sensor of the type \"%.60s\" needs it", k->parameters[i].name, k->name);
    }
    return status;
}
