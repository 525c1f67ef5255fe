// The rovers of scenes/rovers.xml: six wheels that keep the ground, and a ledge that they climb.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy_world.h"

static const char *const rovers[] = {"rocky7", "fido", "k9", "rocky8"};
enum { N_ROVER = 4 };

static void open_world(proxy_world *w) {
    us_error err = {0};
    us_spec *spec = NULL;
    us_status status = us_spec_load(US_SOURCE_DIR "/scenes/rovers.xml", NULL, &spec, &err);
    if (status) print_message("%s:%d: %s\n", err.file, (int)err.line, err.message);
    assert_int_equal(status, US_OK);
    proxy_world_of(w, spec);
}

static us_pose pose_of(const proxy_world *w, const char *rover, const char *link) {
    char name[100];
    snprintf(name, sizeof name, "%s/%s", rover, link);
    us_body body = us_model_find_body(w->model, name);
    assert_true(body.i >= 0);
    return us_sim_get_pose(w->sim, body);
}

static double value_of(const proxy_world *w, const char *rover, const char *what) {
    char name[100];
    snprintf(name, sizeof name, "%s/%s", rover, what);
    int32_t id = us_sim_find_value(w->sim, name);
    assert_true(id >= 0);
    return us_sim_get_value(w->sim, id);
}

// How many wheels of a rover something pushes.
static int count_wheels(const proxy_world *w, const char *rover) {
    int n = 0;
    static const char *const places[] = {"front_left",   "front_right", "middle_left",
                                         "middle_right", "rear_left",   "rear_right"};
    for (int i = 0; i < 6; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s/%s_wheel", rover, places[i]);
        us_body wheel = us_model_find_body(w->model, name);
        bool is_touched = false;
        for (int32_t k = 0; k < us_sim_n_contact(w->sim); k++) {
            us_contact c = us_sim_get_contact(w->sim, k);
            is_touched |= (c.body_a.i == wheel.i || c.body_b.i == wheel.i) && us_vec3_norm(c.force) > 0;
        }
        n += is_touched;
    }
    return n;
}

static void they_stand_and_drive_on_six_wheels_and_climb_a_ledge(void **state) {
    (void)state;
    proxy_world w;
    open_world(&w);
    proxy_world_step(&w, 2000);
    us_pose from[N_ROVER];
    for (int i = 0; i < N_ROVER; i++) {
        from[i] = pose_of(&w, rovers[i], "base");
        if (count_wheels(&w, rovers[i]) != 6)
            fail_msg("%s stands on %d wheels", rovers[i], count_wheels(&w, rovers[i]));
    }
    proxy_world_step(&w, 4000);
    for (int i = 0; i < N_ROVER; i++) {
        double far = pose_of(&w, rovers[i], "base").p.x - from[i].p.x;
        // 0.08 m/s; a twentieth for bumps, which make the way longer, and for drives that lag behind by their
        // torque over kd.
        if (fabs(far / (0.08 * 4) - 1) > 0.05) fail_msg("%s went %.4f m", rovers[i], far);
    }
    double highest[N_ROVER] = {0};
    for (int k = 0; k < 52; k++) {
        proxy_world_step(&w, 250);
        for (int i = 0; i < N_ROVER; i++) {
            highest[i] = fmax(highest[i], pose_of(&w, rovers[i], "front_left_wheel").p.z);
            // Sides and body share the slope: the coupling holds to what a step of 1 ms leaves over.
            double sum = value_of(&w, rovers[i], "left_rocker.q") + value_of(&w, rovers[i], "right_rocker.q");
            if (fabs(sum) > 1e-4) fail_msg("%s: rockers %g apart", rovers[i], sum);
            us_vec3 up = us_quat_rotate(pose_of(&w, rovers[i], "base").q, us_vec3_make(0, 0, 1));
            if (up.z < cos(0.5)) fail_msg("%s tips over", rovers[i]);
        }
    }
    for (int i = 0; i < N_ROVER; i++) {
        // Rock stands as high above the soil as the wheels' radius, for Rocky 8 lower. Bumps are 3 cm.
        double radius = i == 0 ? 0.065 : 0.10, rock = i == 0 ? 0.07 : i == 3 ? 0.06 : 0.10;
        if (highest[i] < radius + rock - 0.005)
            fail_msg("%s: its front wheel came up to %.3f m", rovers[i], highest[i]);
        assert_true(isfinite(value_of(&w, rovers[i], "left_bogie.q")));
    }
    proxy_world_fini(&w);
}

static void they_go_where_they_are_told(void **state) {
    (void)state;
    proxy_world w;
    open_world(&w);
    proxy_world_step(&w, 500);
    us_pose from[N_ROVER];
    for (int i = 0; i < N_ROVER; i++)
        from[i] = pose_of(&w, rovers[i], "base");
    for (int k = 0; k < 60; k++) {
        for (int i = 0; i < N_ROVER; i++) {
            char topic[40];
            snprintf(topic, sizeof topic, "/%s/cmd_vel", rovers[i]);
            us_msg_twist m = {{-0.06, 0, 0}, {0, 0, 0.06}};
            assert_int_equal(proxy_world_post(&w, topic, usi_type_twist, &m), US_OK);
        }
        proxy_world_step(&w, 100);
    }
    for (int i = 0; i < N_ROVER; i++) {
        us_pose to = pose_of(&w, rovers[i], "base");
        double back = to.p.x - from[i].p.x,
               turned = 2 * atan2(to.q.z, to.q.w) - 2 * atan2(from[i].q.z, from[i].q.w);
        // Six seconds of backward driving and turning, less the time it takes to stop, steer and get going:
        // steered wheels wait for their angle.
        if (!(back < -0.2 && back > -0.4)) fail_msg("%s went %.3f m", rovers[i], back);
        if (!(turned > 0.18 && turned < 0.45)) fail_msg("%s turned %.3f rad", rovers[i], turned);
    }
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_stand_and_drive_on_six_wheels_and_climb_a_ledge),
        cmocka_unit_test(they_go_where_they_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
