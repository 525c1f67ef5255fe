// A robot with a camera: see camera_rig.h.
#include "camera_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void camera_rig_init_with(camera_rig *r, const char *world, const char *beside, const char *sensor,
                          int32_t n_thread) {
    char text[8000];
    us_error err = {0};
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text,
             "<scene name=\"s\" version=\"1\"><world step=\"1 ms\" gravity=\"0 0 0\">%s</world>%s"
             "<robot name=\"r\" file=\"" US_SOURCE_DIR "/tests/support/carrier.urdf\">"
             "<sensor type=\"camera\" name=\"eye\" link=\"base\" %s/>"
             "<network namespace=\"r\"/></robot></scene>",
             world, beside, sensor);
    us_status status = us_spec_load_text(text, strlen(text), "test.xml", NULL, &r->spec, &err);
    if (!status) status = us_model_compile(r->spec, NULL, &r->model, &err);
    if (!status) status = us_sim_create(r->model, NULL, &r->sim, &err);
    if (status) fail_msg("%s (%s)", err.message, err.remedy);
    r->camera = us_model_find_sensor(r->model, "r", "eye");
    assert_int_equal(us_model_get_camera(r->model, r->camera, &r->lens), US_OK);
    if (us_camera_renderer_create(r->model, r->camera, n_thread, NULL, &r->renderer, &err))
        fail_msg("%s (%s)", err.message, err.remedy);
    camera_rig_render(r);
}

void camera_rig_init(camera_rig *r, const char *world, const char *sensor, int32_t n_thread) {
    camera_rig_init_with(r, world, "", sensor, n_thread);
}

void camera_rig_render(camera_rig *r) {
    us_error err = {0};
    if (us_camera_renderer_render(r->renderer, r->sim, &err)) fail_msg("%s", err.message);
    r->image = us_camera_renderer_view_image(r->renderer);
    r->depth = us_camera_renderer_view_depth(r->renderer);
    r->radiance = us_camera_renderer_view_radiance(r->renderer);
    r->shape = us_camera_renderer_view_shape(r->renderer);
}

void camera_rig_fini(camera_rig *r) {
    us_camera_renderer_destroy(r->renderer);
    us_sim_destroy(r->sim);
    us_model_destroy(r->model);
    us_spec_destroy(r->spec);
}
