#include "query_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void must(us_status status, const us_error *err) {
    if (status) fail_msg("%s: %s (%s)", us_status_text(status), err->message, err->remedy);
}

static query_world make(us_spec *spec) {
    query_world w = {NULL, NULL};
    us_error err = US_ZERO;
    must(us_model_compile(spec, NULL, &w.model, &err), &err);
    us_spec_destroy(spec);
    must(us_sim_create(w.model, NULL, &w.sim, &err), &err);
    return w;
}

query_world query_world_text(const char *scene) {
    us_spec *spec = NULL;
    us_error err = US_ZERO;
    must(us_spec_load_text(scene, strlen(scene), "test.xml", NULL, &spec, &err), &err);
    return make(spec);
}

query_world query_world_file(const char *name) {
    us_spec *spec = NULL;
    us_error err = US_ZERO;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", US_SOURCE_DIR, name);
    must(us_spec_load(path, NULL, &spec, &err), &err);
    return make(spec);
}

void query_world_step(query_world *w, int n) {
    for (int i = 0; i < n; i++)
        must(us_sim_step(w->sim, NULL), us_sim_view_error(w->sim));
}

void query_world_free(query_world *w) {
    us_sim_destroy(w->sim);
    us_model_destroy(w->model);
}

us_body query_body(const query_world *w, const char *name) {
    us_body body = us_model_find_body(w->model, name);
    if (body.i < 0) fail_msg("no body \"%s\"", name);
    return body;
}

us_joint query_joint(const query_world *w, const char *name) {
    us_joint joint = us_model_find_joint(w->model, name);
    if (joint.i < 0) fail_msg("no joint \"%s\"", name);
    return joint;
}

void query_near(const char *what, double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%s: %.17g rather than %.17g", what, got, want);
}

void query_near_vec3(const char *what, us_vec3 got, us_vec3 want, double tolerance) {
    if (!(us_vec3_norm(us_vec3_sub(got, want)) <= tolerance))
        fail_msg("%s: %g %g %g rather than %g %g %g", what, got.x, got.y, got.z, want.x, want.y, want.z);
}
