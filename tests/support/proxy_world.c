#include "proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void proxy_world_of(proxy_world *w, us_spec *spec) {
    us_error err = {0};
    memset(w, 0, sizeof *w);
    w->spec = spec;
    us_status status = us_model_compile(w->spec, NULL, &w->model, &err);
    if (!status) status = us_proxy_create(w->model, NULL, &w->proxy, &err);
    if (!status) {
        us_plugin part = us_proxy_get_plugin(w->proxy);
        us_sim_def def = us_sim_def_default();
        def.n_plugin = 1;
        def.plugins = &part;
        status = us_sim_create(w->model, &def, &w->sim, &err);
    }
    if (status) print_message("%s:%d: %s\n", err.file, (int)err.line, err.message);
    assert_int_equal(status, US_OK);
}

void proxy_world_init(proxy_world *w, const char *scene) {
    us_error err = {0};
    us_spec *spec = NULL;
    us_status status =
        us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err);
    if (status) print_message("%s:%d: %s\n", err.file, (int)err.line, err.message);
    assert_int_equal(status, US_OK);
    proxy_world_of(w, spec);
}

void proxy_world_fini(proxy_world *w) {
    us_sim_destroy(w->sim);
    us_proxy_destroy(w->proxy);
    us_model_destroy(w->model);
    us_spec_destroy(w->spec);
}

void proxy_world_k10(proxy_world *w, const char *inside) { proxy_world_k10_behind(w, "", inside); }

void proxy_world_k10_behind(proxy_world *w, const char *objects, const char *inside) {
    char scene[8192];
    snprintf(
        scene, sizeof scene,
        "<scene name='flat' version='1'><world step='1 ms'><shape name='ground' type='half-space'/></world>"
        "<default name='wheel'><drive kd='40'/></default><default name='steer'><drive kp='800' "
        "kd='60'/></default>%s"
        "<robot name='k10' file='../models/k10.urdf' base='floating' xyz='0 0 0.0'>"
        "<drive joint='front_left_steer' default='steer'/><drive joint='rear_left_steer' default='steer'/>"
        "<drive joint='front_right_steer' default='steer'/><drive joint='rear_right_steer' default='steer'/>"
        "<drive joint='front_left_drive' default='wheel'/><drive joint='rear_left_drive' default='wheel'/>"
        "<drive joint='front_right_drive' default='wheel'/><drive joint='rear_right_drive' default='wheel'/>"
        "<locomotion type='all-wheel' max-speed='0.9 m/s' max-turn='1.5 rad/s' max-acceleration='1 m/s^2'>"
        "<wheel drive='front_left_drive' steer='front_left_steer' radius='0.18 m'/><wheel "
        "drive='front_right_drive' steer='front_right_steer' "
        "radius='0.18 m'/>"
        "<wheel drive='rear_left_drive' steer='rear_left_steer' radius='0.18 m'/><wheel "
        "drive='rear_right_drive' steer='rear_right_steer' "
        "radius='0.18 m'/>"
        "</locomotion><battery capacity='1 Wh' idle='40 W' voltage='48 V'/>"
        "<motors port='5010'><motor name='FLDR' joint='front_left_drive'/><motor name='FLST' "
        "joint='front_left_steer'/></motors>%s</robot></scene>",
        objects, inside);
    proxy_world_init(w, scene);
}

us_status proxy_world_post(proxy_world *w, const char *topic, const us_message_type *type,
                           const void *message) {
    size_t length = 0;
    assert_int_equal(us_message_encode(type, message, w->bytes, sizeof w->bytes, &length), US_OK);
    return us_proxy_post(w->proxy, topic, type, "test", w->bytes, length);
}

us_status proxy_world_drive(proxy_world *w, double vx, double vy, double wz) {
    us_msg_twist m = {{vx, vy, 0}, {0, 0, wz}};
    return proxy_world_post(w, "/k10/cmd_vel", usi_type_twist, &m);
}

void proxy_world_step(proxy_world *w, int n) {
    for (int i = 0; i < n; i++) {
        us_status status = us_sim_step(w->sim, NULL);
        if (status) print_message("%s\n", us_sim_view_error(w->sim)->message);
        assert_int_equal(status, US_OK);
        us_proxy_publish(w->proxy, w->sim);
        usi_world_recording_tick(&w->recording, w->sim);
    }
}

void proxy_world_record(proxy_world *w, us_recorder *recorder) {
    us_error err = {0};
    us_allocator a = us_allocator_default();
    usi_world_recording_end(&w->recording);
    if (recorder)
        assert_int_equal(usi_world_recording_begin(&w->recording, &a, w->proxy, recorder, &err), US_OK);
}
