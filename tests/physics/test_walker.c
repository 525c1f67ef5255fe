// The walker of models/hexapod.urdf on its legs: it goes where it is told, turns, stands, and crosses rough
// ground.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "proxy_world.h"

static const double PI = 3.14159265358979323846;

// The scene as it ships, on its rough ground or on a plane.
static void open_world(proxy_world *w, bool is_flat) {
    us_error err = {0};
    us_spec *spec = NULL;
    const char *text = live_walker_scene(is_flat);
    us_status status =
        us_spec_load_text(text, strlen(text), US_SOURCE_DIR "/scenes/hexapod.xml", NULL, &spec, &err);
    if (status) print_message("%s:%d: %s\n", err.file, (int)err.line, err.message);
    assert_int_equal(status, US_OK);
    proxy_world_of(w, spec);
}

static void open_sand(proxy_world *w) {
    us_error err = {0};
    us_spec *spec = NULL;
    const char *const parameters[] = {"relief=0"};
    us_load_def def = us_load_def_default();
    def.n_parameter = 1;
    def.parameters = parameters;
    us_status status = us_spec_load(US_SOURCE_DIR "/scenes/hexapod-sand.xml", &def, &spec, &err);
    if (status) print_message("%s:%d: %s\n", err.file, (int)err.line, err.message);
    assert_int_equal(status, US_OK);
    proxy_world_of(w, spec);
}

static us_pose pose_of(const proxy_world *w) {
    return us_sim_get_pose(w->sim, us_model_find_body(w->model, "hexapod/base"));
}

static double yaw_of(us_quat q) {
    return atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z));
}

// cmd_vel renewed ten times a second.
static void walk(proxy_world *w, double vx, double vy, double wz, double seconds) {
    us_msg_twist m = {{vx, vy, 0}, {0, 0, wz}};
    for (int i = 0; i < (int)lround(10 * seconds); i++) {
        assert_int_equal(proxy_world_post(w, "/hexapod/cmd_vel", usi_type_twist, &m), US_OK);
        proxy_world_step(w, 100);
    }
}

static void it_walks_a_metre_straight_at_the_speed_it_is_told(void **state) {
    (void)state;
    proxy_world w;
    open_world(&w, true);
    proxy_world_step(&w, 500);
    walk(&w, 0.2, 0, 0, 1);  // it has come up to speed
    us_pose from = pose_of(&w);
    walk(&w, 0.2, 0, 0, 5);
    us_pose to = pose_of(&w);
    double far = to.p.x - from.p.x;
    print_message("walked %.4f m of 1 m, aside %.4f m, turned %.4f rad, height %.4f m\n", far,
                  to.p.y - from.p.y, yaw_of(to.q) - yaw_of(from.q), to.p.z);
    // A tenth: feet give way to the load they take over, and a step is not done in the middle of one.
    assert_true(fabs(far - 1) < 0.1);
    assert_true(fabs(to.p.y - from.p.y) < 0.05);
    assert_true(fabs(yaw_of(to.q)) < 0.05);
    // Drives that carry it give way by some millimetres.
    assert_true(fabs(to.p.z - 0.2) < 0.015);
    proxy_world_fini(&w);
}

// At rest in sand the feet carry the weight, and nothing goes on moving.
static void on_sand_it_stands_still_on_feet_that_have_sunk(void **state) {
    (void)state;
    proxy_world w;
    open_sand(&w);
    proxy_world_step(&w, 3000);
    double carried = 0, deepest = 0, fastest = 0, mass = 0;
    int32_t n = us_sim_n_soil_contact(w.sim);
    for (int32_t i = 0; i < n; i++) {
        us_soil_contact k = us_sim_get_soil_contact(w.sim, i);
        carried += k.force.z;
        deepest = fmax(deepest, k.sinkage);
    }
    us_model_counts counts = us_model_get_counts(w.model);
    for (int32_t i = 0; i < counts.n_v; i++)
        fastest = fmax(fastest, fabs(us_sim_view_v(w.sim)[i]));
    for (int32_t i = 0; i < counts.n_body; i++)
        mass += us_model_get_inertia(w.model, (us_body){i}).mass;
    print_message("%d points carry %.6f N of %.6f N, deepest %.2f mm, fastest %.1e\n", (int)n, carried,
                  mass * 9.81, 1e3 * deepest, fastest);
    assert_true(n >= 6);
    // The balance of the contact solve is good to 1e-6 of the weight.
    assert_true(fabs(carried - mass * 9.81) < 1e-4);
    assert_true(deepest > 1e-3 && deepest < 0.03);
    assert_true(fastest < 1e-5);
    proxy_world_fini(&w);
}

static void on_sand_it_walks_and_leaves_prints(void **state) {
    (void)state;
    proxy_world w;
    open_sand(&w);
    proxy_world_step(&w, 500);
    walk(&w, 0.2, 0, 0, 1);
    us_pose from = pose_of(&w);
    walk(&w, 0.2, 0, 0, 5);
    us_pose to = pose_of(&w);
    us_deformable_info patch = us_sim_get_deformable(w.sim, 0);
    print_message("walked %.4f m of 1 m, height %.4f m; prints %.1f mm deep, heaps %.1f mm high\n",
                  to.p.x - from.p.x, to.p.z, -1e3 * patch.lowest, 1e3 * patch.highest);
    // Sand gives way under each push: it gets along, more slowly than on a plane.
    assert_true(to.p.x - from.p.x > 0.7 && to.p.x - from.p.x < 1.1);
    assert_true(to.p.z > 0.16 && to.p.z < 0.21);
    assert_true(patch.lowest < -1e-3 && patch.highest > 1e-5);
    proxy_world_fini(&w);
}

static void it_walks_sideways_and_turns_on_the_spot(void **state) {
    (void)state;
    proxy_world w;
    open_world(&w, true);
    walk(&w, 0, 0.1, 0, 4);
    us_pose side = pose_of(&w);
    assert_true(side.p.y > 0.3 && side.p.y < 0.44);
    assert_true(fabs(side.p.x) < 0.04);
    walk(&w, 0, 0, 0, 2);
    walk(&w, 0, 0, 0.5, 1);  // it has come up to speed
    us_pose from = pose_of(&w);
    walk(&w, 0, 0, 0.5, 4);
    us_pose to = pose_of(&w);
    double turned = remainder(yaw_of(to.q) - yaw_of(from.q), 2 * PI);
    print_message("turned %.4f rad of 2, moved %.4f m\n", turned,
                  hypot(to.p.x - from.p.x, to.p.y - from.p.y));
    assert_true(fabs(turned - 2) < 0.2);
    assert_true(hypot(to.p.x - from.p.x, to.p.y - from.p.y) < 0.05);
    proxy_world_fini(&w);
}

static void told_to_stop_it_stands_without_creeping(void **state) {
    (void)state;
    proxy_world w;
    open_world(&w, true);
    walk(&w, 0.2, 0, 0.2, 3);
    walk(&w, 0, 0, 0, 3);
    us_pose from = pose_of(&w);
    proxy_world_step(&w, 5000);
    us_pose to = pose_of(&w);
    double moved = us_vec3_norm(us_vec3_sub(to.p, from.p)),
           turned = remainder(yaw_of(to.q) - yaw_of(from.q), 2 * PI);
    print_message("crept %.3g m and %.3g rad in 5 s\n", moved, turned);
    // Feet stick by anchors that do not give way: what is left is the end of its settling.
    assert_true(moved < 1e-4 && fabs(turned) < 1e-4);
    proxy_world_fini(&w);
}

static void it_crosses_rough_ground_and_knows_about_where_it_is(void **state) {
    (void)state;
    proxy_world w;
    open_world(&w, false);
    walk(&w, 0.2, 0, 0, 10);
    us_pose to = pose_of(&w);
    us_vec3 up = us_quat_rotate(to.q, us_vec3_make(0, 0, 1));
    print_message("rough: x %.3f y %.3f z %.3f, tilt %.3f rad\n", to.p.x, to.p.y, to.p.z,
                  acos(fmin(up.z, 1)));
    // Feet that come down late or early slip a little: three quarters of the way at least, and not far aside.
    assert_true(to.p.x > 1.5 && to.p.x < 2.1);
    assert_true(fabs(to.p.y) < 0.4);
    assert_true(up.z > cos(0.25));
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_walks_a_metre_straight_at_the_speed_it_is_told),
        cmocka_unit_test(on_sand_it_stands_still_on_feet_that_have_sunk),
        cmocka_unit_test(on_sand_it_walks_and_leaves_prints),
        cmocka_unit_test(it_walks_sideways_and_turns_on_the_spot),
        cmocka_unit_test(told_to_stop_it_stands_without_creeping),
        cmocka_unit_test(it_crosses_rough_ground_and_knows_about_where_it_is),
    };
    return cmocka_run_group_tests_name("walker", tests, NULL, NULL);
}
