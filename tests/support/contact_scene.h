// Scenes with contact for tests: bodies with shapes, grounds, stacks and grasps, by the spec's calls.
//
// Built on build.h: a failed call fails the running cmocka test. Surfaces all have the material "default"
// unless said.
#ifndef TESTS_SUPPORT_CONTACT_SCENE_H
#define TESTS_SUPPORT_CONTACT_SCENE_H

#include "build.h"

// g = 9.81 along -z turned by the angle (rad) so that a level ground becomes a slope that falls along (cos
// direction, sin direction).
us_vec3 scene_gravity(double slope, double direction);

// A pair definition for all materials: the same static and kinetic coefficient, no viscous part, all else by
// default.
us_pair_def scene_pair(double friction);
// An empty world at 1 ms, semi-implicit, with that one row in its table.
us_spec *scene_spec(us_vec3 gravity, double friction);
us_spec *scene_spec_pair(us_vec3 gravity, double step, const us_pair_def *pair);
// The half space below z = 0.
void scene_ground(us_spec *spec);

// Moments of a box (full lengths) and of a ball.
us_vec3 scene_box_moments(double mass, us_vec3 size);
us_vec3 scene_ball_moments(double mass, double radius);
// Adds a shape to a link at p, not turned; the box with full lengths.
void scene_add_box(us_spec *spec, int32_t link, us_vec3 size, us_vec3 p);
void scene_add_ball(us_spec *spec, int32_t link, double radius, us_vec3 p);
// The same box as a mesh of twelve triangles, which a moving link has as their hull.
void scene_add_mesh(us_spec *spec, int32_t link, us_vec3 size, us_vec3 p);

// A body that floats, with the velocity v of its origin and angular velocity w, both in the world.
typedef struct scene_start {
    us_vec3 p;
    us_quat q;
    us_vec3 v, w;
} scene_start;
scene_start scene_at(double x, double y, double z);
int32_t scene_float(us_spec *spec, const char *name, double mass, us_vec3 moments, const scene_start *start);
int32_t scene_box(us_spec *spec, const char *name, double mass, us_vec3 size, const scene_start *start);
int32_t scene_ball(us_spec *spec, const char *name, double mass, double radius, const scene_start *start);

// Two fingers (links 0 and 1: 1 kg, 0.05 x 0.15 x 0.15, prismatic along x, velocities 0 and 1) that touch a
// row of n cubes (links 2 ..: 1 kg, side 0.1) at height 1, without ground.
us_spec *scene_grasp(int32_t n, double friction, double stiffness, bool as_meshes);

us_vec3 scene_position(const built *b, int32_t link);
us_vec3 scene_velocity(built *b, int32_t link);   // of its origin
us_vec3 scene_spin(built *b, int32_t link);       // angular velocity, world axes
double scene_tilt(const built *b, int32_t link);  // rad, of its z axis from the world's
// Sum of the forces of all contacts on a link.
us_vec3 scene_contact_force(const built *b, int32_t link);
// Energy of a box on the ground: motion, height, and what the springs of its contacts (k, N/m) hold: corners
// below the ground, and the anchors' stretch.
double scene_energy(built *b, int32_t box, us_vec3 size, double k);

#endif
