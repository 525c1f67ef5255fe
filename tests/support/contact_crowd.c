// See contact_crowd.h.
#include "contact_crowd.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

int32_t crowd_rover(us_spec *spec, const char *name, us_vec3 p, double wheel_speed) {
    const us_vec3 zero = {0, 0, 0}, y = {0, 1, 0}, body = {0.6, 0.3, 0.1};
    const double radius = 0.1, width = 0.06, mass = 1;
    char text[64];
    snprintf(text, sizeof text, "%s_chassis", name);
    scene_start at = scene_at(p.x, p.y, p.z);
    int32_t chassis = scene_box(spec, text, 20, body, &at);
    for (int i = 0; i < 4; i++) {
        double moment = mass * (3 * radius * radius + width * width) / 12;
        snprintf(text, sizeof text, "%s_wheel%d", name, i);
        int32_t wheel =
            build_link(spec, text, mass, zero, us_vec3_make(moment, 0.5 * mass * radius * radius, moment));
        us_joint_def joint = build_joint_at(US_JOINT_CONTINUOUS, chassis, wheel,
                                            us_vec3_make(i & 1 ? 0.25 : -0.25, i & 2 ? 0.2 : -0.2, -0.05), y);
        int32_t index = build_joint_def(spec, text, &joint);
        us_shape_def shape = us_shape_def_default(US_SHAPE_CYLINDER);
        shape.link = wheel;
        shape.size[0] = radius;
        shape.size[1] = width;
        shape.X_BG.q = us_quat_from_rpy(acos(0), 0, 0);
        assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
        us_drive_def drive = us_drive_def_default();
        drive.name = text;
        drive.joint = index;
        drive.kd = 5;
        drive.velocity = wheel_speed;
        drive.limit = 4;
        assert_int_equal(us_spec_add_drive(spec, &drive, NULL), US_OK);
    }
    return chassis;
}

static void add_columns(us_spec *spec, int32_t n) {
    const us_vec3 size = {0.2, 0.2, 0.2};
    char name[32];
    for (int32_t c = 0; c < n; c++) {
        int32_t column = c % 5, line = c / 5;
        for (int32_t k = 0; k < 6; k++) {
            snprintf(name, sizeof name, "column%d_%d", c, k);
            scene_start at = scene_at(0.5 * column + 0.002 * (k % 2), 0.5 * line, 0.1 + 0.2005 * k);
            scene_box(spec, name, 1 + 0.1 * k, size, &at);
        }
    }
}

static void add_pile(us_spec *spec, int32_t n) {
    const uint64_t seed = 7;
    uint64_t counter = 0;
    char name[32];
    // Four walls keep it together.
    for (int i = 0; n > 0 && i < 4; i++) {
        double side = i & 1 ? 0.4 : -0.4;
        us_vec3 size = i < 2 ? us_vec3_make(0.1, 0.9, 2) : us_vec3_make(0.9, 0.1, 2);
        scene_add_box(spec, US_WORLD, size,
                      us_vec3_make(-3.76 + (i < 2 ? side : 0), 0.24 + (i < 2 ? 0 : side), 0));
    }
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "pile%d", i);
        int32_t column = i % 4, line = i / 4 % 4, layer = i / 16;
        double x = build_uniform(seed, &counter, -0.02, 0.02), y = build_uniform(seed, &counter, -0.02, 0.02);
        scene_start at = scene_at(-4 + 0.16 * column + x, 0.16 * line + y, 0.1 + 0.17 * layer);
        at.q = build_random_rotation(seed, &counter);
        if (i % 3 == 0) scene_ball(spec, name, 0.5, 0.07, &at);
        if (i % 3 == 1) scene_box(spec, name, 0.5, us_vec3_make(0.12, 0.1, 0.08), &at);
        if (i % 3 != 2) continue;
        int32_t link = scene_float(spec, name, 0.5, scene_ball_moments(0.5, 0.07), &at);
        us_shape_def shape = us_shape_def_default(US_SHAPE_CAPSULE);
        shape.link = link;
        shape.size[0] = 0.04;
        shape.size[1] = 0.08;
        assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
    }
}

us_spec *crowd_spec(int32_t n_column, int32_t n_rover, int32_t n_pile, const char *solver) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.6);
    us_world_settings world = *us_spec_view_world(spec);
    if (solver) world.solver = solver;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    scene_ground(spec);
    add_columns(spec, n_column);
    char name[32];
    for (int32_t i = 0; i < n_rover; i++) {
        snprintf(name, sizeof name, "rover%d", i);
        crowd_rover(spec, name, us_vec3_make(1.2 * i, -2, 0.151), 3.0 + i);
    }
    add_pile(spec, n_pile);
    return spec;
}
