#include "soil_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void check(us_status status, const us_error *err) {
    if (status != US_OK) fail_msg("%s: %s", err->element, err->message);
}

static us_load_def load_def(const char *const *parameters) {
    us_load_def def = us_load_def_default();
    while (parameters && parameters[def.n_parameter])
        def.n_parameter++;
    def.parameters = parameters;
    return def;
}

static soil_world begin(us_spec *spec, int32_t n_thread) {
    soil_world w = {0};
    us_error err = {.code = US_OK};
    check(us_model_compile(spec, NULL, &w.model, &err), &err);
    us_spec_destroy(spec);
    us_sim_def def = us_sim_def_default();
    def.n_thread = n_thread;
    check(us_sim_create(w.model, &def, &w.sim, &err), &err);
    return w;
}

soil_world soil_file(const char *path, const char *const *parameters) {
    us_load_def def = load_def(parameters);
    us_error err = {.code = US_OK};
    us_spec *spec = NULL;
    char full[512];
    snprintf(full, sizeof full, "%s/%s", US_SOURCE_DIR, path);
    check(us_spec_load(full, &def, &spec, &err), &err);
    return begin(spec, 1);
}

static us_spec *read_text(const char *text, const char *const *parameters) {
    us_load_def def = load_def(parameters);
    us_error err = {.code = US_OK};
    us_spec *spec = NULL;
    check(us_spec_load_text(text, strlen(text), "test.xml", &def, &spec, &err), &err);
    return spec;
}

soil_world soil_text(const char *text, const char *const *parameters) {
    return begin(read_text(text, parameters), 1);
}

soil_world soil_text_threads(const char *text, int32_t n_thread) {
    return begin(read_text(text, NULL), n_thread);
}

soil_world soil_text_maps(const char *text, const us_soil_map_def *maps, int32_t n_map) {
    us_spec *spec = read_text(text, NULL);
    for (int32_t i = 0; i < n_map; i++)
        assert_int_equal(us_spec_add_soil_map(spec, &maps[i], NULL), US_OK);
    return begin(spec, 1);
}

void soil_free(soil_world *w) {
    us_sim_destroy(w->sim);
    us_model_destroy(w->model);
    *w = (soil_world){0};
}

void soil_steps(soil_world *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        check(us_sim_step(w->sim, NULL), us_sim_view_error(w->sim));
}

void soil_settle(soil_world *w, double share, int64_t most) {
    int32_t n = us_model_get_counts(w->model).n_drive;
    double before[8] = {0};
    assert_true(n <= 8);
    for (int64_t done = 0; done < most; done += 100) {
        double greatest = 0, change = 0;
        soil_steps(w, 100);
        for (int32_t i = 0; i < n; i++) {
            double now = us_sim_view_torque(w->sim)[i];
            greatest = fmax(greatest, fabs(now));
            change = fmax(change, fabs(now - before[i]));
            before[i] = now;
        }
        if (done > 0 && change <= share * greatest) return;
    }
}

double soil_q(const soil_world *w, const char *joint) {
    us_joint j = us_model_find_joint(w->model, joint);
    assert_true(j.i >= 0);
    return us_sim_view_q(w->sim)[us_model_get_joint(w->model, j).first_q];
}

double soil_v(const soil_world *w, const char *joint) {
    us_joint j = us_model_find_joint(w->model, joint);
    assert_true(j.i >= 0);
    return us_sim_view_v(w->sim)[us_model_get_joint(w->model, j).first_v];
}

double soil_torque(const soil_world *w, const char *drive) {
    us_drive d = us_model_find_drive(w->model, drive);
    assert_true(d.i >= 0);
    return us_sim_view_torque(w->sim)[d.i];
}

us_material soil_material(const soil_world *w, const char *name) {
    us_material m = us_model_find_material(w->model, name);
    assert_true(m.i >= 0);
    return m;
}

us_soil_contact soil_sunk(const soil_world *w, const char *body) {
    us_body b = us_model_find_body(w->model, body);
    us_soil_contact out = us_sim_get_soil_contact(w->sim, -1);
    assert_true(b.i >= 0);
    for (int32_t i = 0; i < us_sim_n_soil_contact(w->sim); i++) {
        us_soil_contact s = us_sim_get_soil_contact(w->sim, i);
        if (s.body.i == b.i && (out.body.i < 0 || s.sinkage > out.sinkage)) out = s;
    }
    return out;
}
