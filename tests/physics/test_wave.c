// A walker that has lost a leg and is told so goes on with the other five: a wave gait carries it level,
// where tripods do not.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "understudy/proxy.h"
#include "wire/messages.h"

static void post(us_world *world, const char *topic, const us_message_type *type, const void *message) {
    uint8_t bytes[512];
    size_t length = 0;
    assert_int_equal(us_message_encode(type, message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_proxy_post(us_world_get_proxy(world), topic, type, "test", bytes, length), US_OK);
}

static void tell_gait(us_world *world, const char *text) {
    char line[100];
    snprintf(line, sizeof line, "%s", text);
    post(world, "/hexapod/gait", usi_type_string, &(us_msg_string){line});
}

static const double PI = 3.14159265358979323846;

static double yaw_of(us_world *world) {
    us_quat q = live_pose(world, "hexapod/base").q;
    return atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z));
}

typedef struct way {
    double far, aside, tilt;  // m ahead of where it stood and to the left of it; rad at most
} way;

static way walk(us_world *world, double vx, double wz, double seconds) {
    us_pose from = live_pose(world, "hexapod/base");
    us_vec3 ahead = us_quat_rotate(from.q, us_vec3_make(1, 0, 0)),
            left = us_quat_rotate(from.q, us_vec3_make(0, 1, 0));
    way w = {0};
    for (int i = 0; i < (int)lround(20 * seconds); i++) {
        us_msg_twist m = {{vx, 0, 0}, {0, 0, wz}};
        post(world, "/hexapod/cmd_vel", usi_type_twist, &m);
        live_step(world, 50);
        us_vec3 up = us_quat_rotate(live_pose(world, "hexapod/base").q, us_vec3_make(0, 0, 1));
        w.tilt = fmax(w.tilt, acos(fmin(up.z, 1)));
    }
    us_vec3 moved = us_vec3_sub(live_pose(world, "hexapod/base").p, from.p);
    w.far = us_vec3_dot(moved, ahead);
    w.aside = us_vec3_dot(moved, left);
    return w;
}

static us_world *open_flat(void) {
    static char text[65536];
    FILE *file = fopen(US_SOURCE_DIR "/scenes/hexapod-breakage.xml", "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    // The test breaks things itself.
    char *at = strstr(text, "value=\"4 s\"");
    assert_non_null(at);
    memcpy(at, "value=\"9e9\"", strlen("value=\"9e9\""));
    return live_open(text);
}

static void print_way(const char *what, way w) {
    print_message("%-32s %.3f m ahead, %.3f m aside, tilted by up to %.1f deg\n", what, w.far, w.aside,
                  w.tilt * 180 / PI);
}

static void on_five_legs_it_gets_on_and_stays_level(void **state) {
    (void)state;
    static const char *const lost[] = {"front_left", "middle_right", "rear_left"};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        char text[100];
        us_world *world = open_flat();
        walk(world, 0.1, 0, 1);
        snprintf(text, sizeof text, "fault hexapod joint:%s_femur=broken", lost[i]);
        live_done(world, text);
        snprintf(text, sizeof text, "wave %s_femur", lost[i]);
        tell_gait(world, text);
        // The leg is gone at once: until the feet have gone to where five of them carry it, it leans.
        way first = walk(world, 0, 0, 6), w = walk(world, 0.05, 0, 12);
        print_way("its feet go to their places", first);
        print_way(lost[i], w);
        // Nine tenths of what it was told, and half a length of itself aside: nobody looks where it goes.
        assert_true(w.far > 0.9 * 0.6 && w.far < 1.1 * 0.6);
        assert_true(fabs(w.aside) < 0.15);
        assert_true(first.tilt < 15 * PI / 180);
        // It does not tip from foot to foot: four always carry it, and their drives give way by millimetres.
        assert_true(w.tilt < 2 * PI / 180);
        // And turns.
        double from = yaw_of(world);
        walk(world, 0, 0.15, 6);
        double turned = remainder(yaw_of(world) - from, 2 * PI);
        print_message("turned %.3f rad of 0.9\n", turned);
        assert_true(turned > 0.7 && turned < 1.1);
        us_world_destroy(world);
    }
}

// What it is spared: the same with tripods, of which one has two legs.
static void by_tripods_it_tips_from_step_to_step(void **state) {
    (void)state;
    us_world *world = open_flat();
    walk(world, 0.1, 0, 1);
    live_done(world, "fault hexapod joint:front_left_femur=broken");
    walk(world, 0, 0, 2);
    way w = walk(world, 0.05, 0, 6);
    print_way("by tripods", w);
    assert_true(w.tilt > 6 * PI / 180);
    us_world_destroy(world);
}

static void a_gait_that_is_none_is_refused_with_the_reason(void **state) {
    (void)state;
    us_world *world = open_flat();
    static const char *const bad[] = {"gallop", "", "tripod front_left_femur", "wave neck",
                                      "wave front_left_femur front_right_tibia rear_left_coxa"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tell_gait(world, bad[i]);
        live_step(world, 1);
        assert_int_equal(us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world)).n_refused,
                         (int64_t)i + 1);
    }
    static const char *const good[] = {"wave", " wave  front_left_coxa front_left_tibia", "tripod"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        tell_gait(world, good[i]);
        live_step(world, 1);
        assert_int_equal(us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world)).n_command,
                         (int64_t)i + 1);
    }
    us_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_five_legs_it_gets_on_and_stays_level),
        cmocka_unit_test(by_tripods_it_tips_from_step_to_step),
        cmocka_unit_test(a_gait_that_is_none_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests_name("wave", tests, NULL, NULL);
}
