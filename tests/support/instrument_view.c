#include "instrument_view.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool is_noise(const char *name) {
    static const char *const words[] = {"noise", "bias", "density", "drift", "nonlinearity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(name, words[i]) && !strstr(name, "time")) return true;
    }
    return false;
}

instrument instrument_make(const char *kind, const us_sim *sim, us_pose X_WS) {
    instrument s = {.kind = us_sensor_kind_find(kind)};
    if (!s.kind) fail_msg("no kind \"%s\"", kind);
    s.view = (us_sensor_view){.sim = sim, .body = -1, .battery = -1, .X_WS = X_WS, .seed = 5, .stream = 77};
    for (int32_t i = 0; i < s.kind->n_parameter; i++) {
        const us_sensor_parameter *p = &s.kind->parameters[i];
        s.parameter[i] = is_noise(p->name) ? 0 : p->usual;
    }
    return s;
}

void instrument_set(instrument *s, const char *parameter, double value) {
    for (int32_t i = 0; i < s->kind->n_parameter; i++) {
        if (strcmp(s->kind->parameters[i].name, parameter) == 0) {
            s->parameter[i] = value;
            return;
        }
    }
    fail_msg("%s has no parameter \"%s\"", s->kind->name, parameter);
}

void instrument_sample(instrument *s, double interval) {
    s->view.interval = interval;
    s->view.time += interval;
    s->view.tick++;
    s->view.parameter = s->parameter;
    if (!s->is_started && s->kind->start) s->kind->start(&s->view, s->state);
    s->is_started = true;
    for (int32_t i = 0; i < s->kind->n_reading; i++)
        s->truth[i] = s->reading[i] = NAN;
    if (!s->kind->sample(&s->view, s->state, s->truth, s->reading))
        fail_msg("%s gave no sample", s->kind->name);
    for (int32_t i = 0; i < s->kind->n_reading; i++) {
        if (!isfinite(s->truth[i]) || !isfinite(s->reading[i]))
            fail_msg("%s: %s is not finite", s->kind->name, s->kind->readings[i].name);
    }
}

void instrument_refuses(instrument *s, const char *why) {
    us_error error = {.code = US_OK};
    s->view.parameter = s->parameter;
    s->view.why = &error;
    if (s->kind->start) s->kind->start(&s->view, s->state);
    if (s->kind->sample(&s->view, s->state, s->truth, s->reading))
        fail_msg("%s gave a sample", s->kind->name);
    if (!strstr(error.message, why) || !error.remedy[0])
        fail_msg("%s: \"%s\" (%s) is not \"%s\"", s->kind->name, error.message, error.remedy, why);
    s->view.why = NULL;
}

static int32_t index_of(const instrument *s, const char *reading) {
    for (int32_t i = 0; i < s->kind->n_reading; i++) {
        if (strcmp(s->kind->readings[i].name, reading) == 0) return i;
    }
    fail_msg("%s has no reading \"%s\"", s->kind->name, reading);
    return 0;
}

double instrument_truth(const instrument *s, const char *reading) { return s->truth[index_of(s, reading)]; }
double instrument_reading(const instrument *s, const char *reading) {
    return s->reading[index_of(s, reading)];
}

static us_vec3 three(const instrument *s, const double *from, const char *prefix) {
    double x[3];
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%c", prefix, 'x' + i);
        x[i] = from[index_of(s, name)];
    }
    return us_vec3_make(x[0], x[1], x[2]);
}
us_vec3 instrument_truth3(const instrument *s, const char *prefix) { return three(s, s->truth, prefix); }
us_vec3 instrument_reading3(const instrument *s, const char *prefix) { return three(s, s->reading, prefix); }
