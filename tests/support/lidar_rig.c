// A robot with a lidar: see lidar_rig.h.
#include "lidar_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void lidar_rig_init_with(lidar_rig *r, const char *world, const char *beside, const char *sensor,
                         double speed, double spin, int32_t n_thread) {
    char text[40000];
    us_error err = {0};
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text,
             "<scene name=\"s\" version=\"1\"><world step=\"1 ms\" gravity=\"0 0 0\">%s</world>%s"
             "<robot name=\"r\" file=\"" US_SOURCE_DIR "/tests/support/carrier.urdf\">"
             "<sensor type=\"lidar\" name=\"lidar\" link=\"base\" %s/>"
             "<network namespace=\"r\"/></robot></scene>",
             world, beside, sensor);
    us_sim_def def = us_sim_def_default();
    def.n_thread = n_thread;
    us_status status = us_spec_load_text(text, strlen(text), "test.xml", NULL, &r->spec, &err);
    if (!status) status = us_model_compile(r->spec, NULL, &r->model, &err);
    if (!status) status = us_sim_create(r->model, &def, &r->sim, &err);
    if (status) fail_msg("%s (%s)", err.message, err.remedy);
    const us_joint slide = us_model_find_joint(r->model, "r/slide"),
                   turn = us_model_find_joint(r->model, "r/turn");
    assert_int_equal(us_sim_set_joint(r->sim, slide, NULL, &speed), US_OK);
    assert_int_equal(us_sim_set_joint(r->sim, turn, NULL, &spin), US_OK);
    r->lidar = us_model_find_lidar(r->model, "r", "lidar");
    assert_int_equal(r->lidar.i, 0);
    assert_int_equal(us_sim_get_lidar_frame(r->sim, r->lidar, false, &r->frame, NULL, 0), US_OK);
    assert_int_equal(r->frame.turn, -1);
    r->n = r->frame.n_return * r->frame.n_ring * r->frame.n_column;
    r->point = malloc((size_t)r->n * sizeof *r->point);
    assert_non_null(r->point);
}

void lidar_rig_init(lidar_rig *r, const char *world, const char *sensor, double speed, double spin) {
    lidar_rig_init_with(r, world, "", sensor, speed, spin, 1);
}

void lidar_rig_fini(lidar_rig *r) {
    free(r->point);
    us_sim_destroy(r->sim);
    us_model_destroy(r->model);
    us_spec_destroy(r->spec);
}

void lidar_rig_step(lidar_rig *r, int n) {
    for (int i = 0; i < n; i++)
        assert_int_equal(us_sim_step(r->sim, NULL), US_OK);
}

void lidar_rig_see(lidar_rig *r, int64_t turn, bool is_deskewed) {
    for (int i = 0; i < 60000; i++) {
        assert_int_equal(us_sim_get_lidar_frame(r->sim, r->lidar, is_deskewed, &r->frame, NULL, 0), US_OK);
        if (r->frame.turn >= turn) break;
        lidar_rig_step(r, 1);
    }
    assert_int_equal(r->frame.turn, turn);
    assert_int_equal(us_sim_get_lidar_frame(r->sim, r->lidar, is_deskewed, &r->frame, r->point, r->n), US_OK);
}
