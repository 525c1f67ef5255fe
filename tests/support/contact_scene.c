// See contact_scene.h.
#include "contact_scene.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

us_vec3 scene_gravity(double slope, double direction) {
    return us_vec3_make(9.81 * sin(slope) * cos(direction), 9.81 * sin(slope) * sin(direction),
                        -9.81 * cos(slope));
}

us_pair_def scene_pair(double friction) {
    us_pair_def pair = us_pair_def_default();
    pair.values.static_friction = pair.values.kinetic_friction = friction;
    pair.values.viscous = 0;
    return pair;
}

us_spec *scene_spec_pair(us_vec3 gravity, double step, const us_pair_def *pair) {
    us_spec *spec = build_spec_gravity(gravity, step, US_INTEGRATOR_EULER);
    assert_int_equal(us_spec_add_pair(spec, pair, NULL), US_OK);
    return spec;
}

us_spec *scene_spec(us_vec3 gravity, double friction) {
    us_pair_def pair = scene_pair(friction);
    return scene_spec_pair(gravity, 1e-3, &pair);
}

static void add_shape(us_spec *spec, const us_shape_def *shape) {
    assert_int_equal(us_spec_add_shape(spec, shape, NULL), US_OK);
}

void scene_ground(us_spec *spec) {
    us_shape_def shape = us_shape_def_default(US_SHAPE_HALF_SPACE);
    shape.link = US_WORLD;
    add_shape(spec, &shape);
}

us_vec3 scene_box_moments(double mass, us_vec3 s) {
    double x = s.x * s.x, y = s.y * s.y, z = s.z * s.z;
    return us_vec3_scale(mass / 12, us_vec3_make(y + z, z + x, x + y));
}

us_vec3 scene_ball_moments(double mass, double radius) {
    double i = 0.4 * mass * radius * radius;
    return us_vec3_make(i, i, i);
}

void scene_add_box(us_spec *spec, int32_t link, us_vec3 size, us_vec3 p) {
    us_shape_def shape = us_shape_def_default(US_SHAPE_BOX);
    shape.link = link;
    shape.size[0] = size.x;
    shape.size[1] = size.y;
    shape.size[2] = size.z;
    shape.X_BG.p = p;
    add_shape(spec, &shape);
}

void scene_add_ball(us_spec *spec, int32_t link, double radius, us_vec3 p) {
    us_shape_def shape = us_shape_def_default(US_SHAPE_SPHERE);
    shape.link = link;
    shape.size[0] = radius;
    shape.X_BG.p = p;
    add_shape(spec, &shape);
}

void scene_add_mesh(us_spec *spec, int32_t link, us_vec3 size, us_vec3 p) {
    // Two triangles per face, counter-clockwise from outside; corner bits are x, y, z.
    static const int32_t triangles[12][3] = {{0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6},
                                             {0, 1, 5}, {0, 5, 4}, {2, 6, 7}, {2, 7, 3},
                                             {0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5}};
    us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
    us_vec3 corner[8];
    for (int i = 0; i < 8; i++)
        corner[i] = us_vec3_make(i & 1 ? size.x / 2 : -size.x / 2, i & 2 ? size.y / 2 : -size.y / 2,
                                 i & 4 ? size.z / 2 : -size.z / 2);
    shape.link = link;
    shape.points = corner;
    shape.n_point = shape.n_vertex = 8;
    shape.triangles = triangles[0];
    shape.n_triangle = 12;
    shape.is_closed = true;
    shape.X_BG.p = p;
    add_shape(spec, &shape);
}

scene_start scene_at(double x, double y, double z) {
    return (scene_start){.p = us_vec3_make(x, y, z), .q = us_quat_identity()};
}

int32_t scene_float(us_spec *spec, const char *name, double mass, us_vec3 moments, const scene_start *start) {
    int32_t link = build_link(spec, name, mass, us_vec3_make(0, 0, 0), moments);
    us_joint_def joint = us_joint_def_default(US_JOINT_FLOATING);
    char joint_name[100];
    snprintf(joint_name, sizeof joint_name, "%s_float", name);
    us_quat q = start->q, back = us_quat_conj(q);
    us_vec3 w = us_quat_rotate(back, start->w), v = us_quat_rotate(back, start->v);
    const double q0[7] = {q.w, q.x, q.y, q.z, start->p.x, start->p.y, start->p.z},
                 v0[6] = {w.x, w.y, w.z, v.x, v.y, v.z};
    for (int i = 0; i < 7; i++)
        joint.q0[i] = q0[i];
    for (int i = 0; i < 6; i++)
        joint.v0[i] = v0[i];
    joint.parent = US_WORLD;
    joint.child = link;
    build_joint_def(spec, joint_name, &joint);
    return link;
}

int32_t scene_box(us_spec *spec, const char *name, double mass, us_vec3 size, const scene_start *start) {
    int32_t link = scene_float(spec, name, mass, scene_box_moments(mass, size), start);
    scene_add_box(spec, link, size, us_vec3_make(0, 0, 0));
    return link;
}

int32_t scene_ball(us_spec *spec, const char *name, double mass, double radius, const scene_start *start) {
    int32_t link = scene_float(spec, name, mass, scene_ball_moments(mass, radius), start);
    scene_add_ball(spec, link, radius, us_vec3_make(0, 0, 0));
    return link;
}

us_spec *scene_grasp(int32_t n, double friction, double stiffness, bool as_meshes) {
    us_pair_def pair = scene_pair(friction);
    pair.values.stiffness = stiffness;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    void (*add)(us_spec *, int32_t, us_vec3, us_vec3) = as_meshes ? scene_add_mesh : scene_add_box;
    const us_vec3 zero = {0, 0, 0}, x = {1, 0, 0}, finger = {0.05, 0.15, 0.15}, cube = {0.1, 0.1, 0.1};
    static const char *const names[2][2] = {{"left", "left_slide"}, {"right", "right_slide"}};
    for (int i = 0; i < 2; i++) {
        int32_t link = build_link(spec, names[i][0], 1, zero, scene_box_moments(1, finger));
        build_joint(spec, names[i][1], US_JOINT_PRISMATIC, US_WORLD, link,
                    us_vec3_make((i ? 1 : -1) * (0.05 * n + 0.025), 0, 1), x, 0, 0);
        add(spec, link, finger, zero);
    }
    for (int32_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "cube%d", i);
        scene_start start = scene_at(-0.05 * n + 0.05 + 0.1 * i, 0, 1);
        int32_t link = scene_float(spec, name, 1, scene_box_moments(1, cube), &start);
        add(spec, link, cube, zero);
    }
    return spec;
}

us_vec3 scene_position(const built *b, int32_t link) { return us_sim_get_pose(b->sim, (us_body){link}).p; }
us_vec3 scene_velocity(built *b, int32_t link) { return us_sim_get_twist(b->sim, (us_body){link}).v; }
us_vec3 scene_spin(built *b, int32_t link) { return us_sim_get_twist(b->sim, (us_body){link}).w; }

double scene_tilt(const built *b, int32_t link) {
    us_vec3 z = us_quat_rotate(us_sim_get_pose(b->sim, (us_body){link}).q, us_vec3_make(0, 0, 1));
    return atan2(hypot(z.x, z.y), z.z);
}

us_vec3 scene_contact_force(const built *b, int32_t link) {
    us_vec3 sum = {0, 0, 0};
    for (int32_t i = 0; i < us_sim_n_contact(b->sim); i++) {
        us_contact c = us_sim_get_contact(b->sim, i);
        if (c.body_a.i == link) sum = us_vec3_add(sum, c.force);
        if (c.body_b.i == link) sum = us_vec3_sub(sum, c.force);
    }
    return sum;
}

double scene_energy(built *b, int32_t box, us_vec3 size, double k) {
    double sum = build_total_energy(b);
    us_pose X = us_sim_get_pose(b->sim, (us_body){box});
    for (int i = 0; i < 8; i++) {
        us_vec3 corner = us_vec3_make(i & 1 ? size.x / 2 : -size.x / 2, i & 2 ? size.y / 2 : -size.y / 2,
                                      i & 4 ? size.z / 2 : -size.z / 2);
        double depth = fmax(0, -us_pose_point(X, corner).z);
        sum += 0.5 * k * depth * depth;
    }
    for (int32_t i = 0; i < us_sim_n_contact(b->sim); i++) {
        us_vec3 xi = us_sim_get_contact(b->sim, i).stretch;
        sum += 0.5 * k * us_vec3_dot(xi, xi);
    }
    return sum;
}
