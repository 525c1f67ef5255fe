// Joints that break: what hung on them goes on as it moved, falls, lies on the ground, and is stumbled over.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "wire/messages.h"

static const double G = 9.81;

// The scene with the walker as it ships, on a plane in place of its rough ground.
static const char *walker_scene;

static int load_walker(void **state) {
    (void)state;
    walker_scene = live_walker_scene(true);
    return 0;
}

static us_twist twist_of(us_world *world, const char *link) {
    us_sim *sim = us_world_get_sim(world);
    return us_sim_get_twist(sim, us_model_find_body(us_sim_view_model(sim), link));
}

static double distance(us_vec3 a, us_vec3 b) { return us_vec3_norm(us_vec3_sub(a, b)); }

// ---------------------------------------------------------------- the moment itself

typedef struct motion {
    us_pose X;
    us_twist V;
} motion;

static void a_break_changes_neither_place_nor_velocity_of_anything(void **state) {
    (void)state;
    us_world *world = live_open(walker_scene);
    // In the middle of a swing, when the leg is fast.
    live_walk(world, 0.2, 1310);
    us_sim *sim = us_world_get_sim(world);
    int32_t n = us_model_get_counts(us_sim_view_model(sim)).n_body;
    static motion before[64];
    assert_true(n < 64);
    for (int32_t i = 0; i < n; i++)
        before[i] = (motion){us_sim_get_pose(sim, (us_body){i}), us_sim_get_twist(sim, (us_body){i})};
    us_momentum p = us_sim_get_momentum(sim);
    us_energy e = us_sim_get_energy(sim);
    double speed = live_value(world, "hexapod/front_left_femur.v");
    assert_true(us_vec3_norm(twist_of(world, "hexapod/front_left_tibia").v) > 0.2);
    live_done(world, "fault hexapod joint:front_left_femur=broken");
    assert_int_equal(us_model_get_counts(us_sim_view_model(sim)).n_body, n);
    double moved = 0, faster = 0;
    for (int32_t i = 0; i < n; i++) {
        us_pose X = us_sim_get_pose(sim, (us_body){i});
        us_twist V = us_sim_get_twist(sim, (us_body){i});
        us_quat d = us_quat_mul(us_quat_conj(before[i].X.q), X.q);
        moved = fmax(moved, distance(X.p, before[i].X.p) + sqrt(d.x * d.x + d.y * d.y + d.z * d.z));
        faster = fmax(faster, distance(V.v, before[i].V.v) + distance(V.w, before[i].V.w));
    }
    us_momentum q = us_sim_get_momentum(sim);
    us_energy f = us_sim_get_energy(sim);
    // The rotor stays behind with the motor: what it turned with was the joint's, 0.01 kg m^2.
    double rotor = 0.5 * 0.01 * speed * speed, lost = e.kinetic + e.potential - f.kinetic - f.potential;
    print_message("moved %.2g, faster %.2g; momentum %.2g N s, %.2g N m s; energy lost %.6g J of which the "
                  "rotor's %.6g J\n",
                  moved, faster, distance(p.linear, q.linear), distance(p.angular, q.angular), lost, rotor);
    // Rounding: poses of a metre and velocities of a metre per second come out of some ten products.
    assert_true(moved < 1e-12 && faster < 1e-12);
    assert_true(distance(p.linear, q.linear) < 1e-12 && distance(p.angular, q.angular) < 1e-12);
    assert_true(fabs(lost - rotor) < 1e-12);
    us_world_destroy(world);
}

// A rod of 0.5 m with all its mass at its end, let go level.
static const char swing_scene[] =
    "<scene name='swing' version='1'><world step='1 ms'/>"
    "<object name='swing' base='fixed' xyz='0 0 5'>"
    "<link name='post'><inertial mass='1' inertia='1 1 1'/></link>"
    "<link name='bob'><inertial mass='2' com='0.5 0 0' inertia='0.01 0.02 0.015'/></link>"
    "<joint name='hinge' type='revolute' parent='post' child='bob' axis='0 1 0'/>"
    "</object></scene>";

static us_vec3 middle_of_bob(us_world *world) {
    return us_pose_point(live_pose(world, "swing/bob"), us_vec3_make(0.5, 0, 0));
}

static void what_breaks_off_a_swing_flies_on_a_parabola(void **state) {
    (void)state;
    us_world *world = live_open(swing_scene);
    live_step(world, 400);
    us_twist V = twist_of(world, "swing/bob");
    us_vec3 arm = us_vec3_sub(middle_of_bob(world), live_pose(world, "swing/bob").p),
            from = middle_of_bob(world);
    us_vec3 v = us_vec3_add(V.v, us_vec3_cross(V.w, arm));
    assert_true(us_vec3_norm(v) > 1);
    live_done(world, "fault swing joint:hinge=broken");
    live_step(world, 700);
    const double t = 0.7;
    us_vec3 there = us_vec3_add(from, us_vec3_make(v.x * t, v.y * t, v.z * t - 0.5 * G * t * t)),
            to = middle_of_bob(world);
    print_message("off the parabola by %.2g m after %.1f s\n", distance(to, there), t);
    // A free body's momentum is kept to rounding, and the midpoint rule is exact for constant acceleration.
    assert_true(distance(to, there) < 1e-11);
    assert_true(distance(twist_of(world, "swing/bob").w, V.w) < 1e-9);  // it turns about a principal axis
    us_world_destroy(world);
}

// ---------------------------------------------------------------- what held it

// A plate on a post, a ball that a strut holds 5 cm above it, and a ball that is half inside its edge.
static const char plate_scene[] =
    "<scene name='plate' version='1'><world step='1 ms'>"
    "<shape name='ground' type='half-space'/></world>"
    "<object name='plate' base='fixed' xyz='0 0 1'>"
    "<link name='plate'><inertial mass='1' inertia='1 1 1'/><shape type='box' size='1 1 0.02'/></link>"
    "<link name='above'><inertial mass='1' inertia='0.004 0.004 0.004'/><shape type='sphere' "
    "size='0.1'/></link>"
    "<link name='inside'><inertial mass='1' inertia='0.004 0.004 0.004'/><shape type='sphere' "
    "size='0.1'/></link>"
    "<joint name='strut' type='fixed' parent='plate' child='above' xyz='-0.2 0 0.16'/>"
    "<joint name='rivet' type='fixed' parent='plate' child='inside' xyz='0.3 0 0'/>"
    "</object></scene>";

static void what_falls_on_its_former_robot_stays_there(void **state) {
    (void)state;
    us_world *world = live_open(plate_scene);
    live_step(world, 10);
    live_near(live_pose(world, "plate/above").p.z, 1.16, 1e-12);
    live_done(world, "fault plate joint:strut=broken");
    live_step(world, 1000);
    // Its surface stands on the plate's, at 1.01 m, by the little that a contact gives way.
    live_near(live_pose(world, "plate/above").p.z, 1.11, 1e-3);
    us_world_destroy(world);
}

static void what_overlaps_at_the_joint_is_not_shot_away(void **state) {
    (void)state;
    us_world *world = live_open(plate_scene);
    live_done(world, "fault plate joint:rivet=broken");
    double fastest = 0;
    for (int i = 0; i < 300; i++) {
        live_step(world, 1);
        us_vec3 v = twist_of(world, "plate/inside").v;
        fastest = fmax(fastest, us_vec3_norm(v) - G * 1e-3 * (i + 1));
    }
    // It falls as if nothing were there: 0.3 s, 0.441 m.
    assert_true(fabs(fastest) < 1e-9);
    // The ticks in which it just clears the plate are the contact's, which is of first order: g h^2 / 2, 5
    // micrometres.
    live_near(live_pose(world, "plate/inside").p.z, 1 - 0.5 * G * 0.09, 1e-5);
    // Once apart they collide: back under the plate, it is thrown against it and does not come through.
    live_done(world, "move plate/inside 0.3 0 0.8");
    live_done(world, "add sphere hammer size=0.05 mass=20 at=0.3,0,0.6 velocity=0,0,6");
    double highest = 0;
    for (int i = 0; i < 200; i++) {
        live_step(world, 1);
        highest = fmax(highest, live_pose(world, "plate/inside").p.z);
    }
    print_message("highest %.4f m, the plate's lower side is at 0.99 m\n", highest);
    assert_true(highest > 0.88 && highest < 0.92);
    us_world_destroy(world);
}

static void loops_hold_and_couplings_through_a_break_end(void **state) {
    (void)state;
    static char text[65536];
    us_error err = {0};
    us_spec *spec = NULL;
    // A four-bar whose coupler comes off the crank hangs on the rocker by the point that closes its loop.
    FILE *file = fopen(US_SOURCE_DIR "/scenes/four-bar.xml", "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    us_world *world = live_open(text);
    us_sim *sim = us_world_get_sim(world);
    live_step(world, 500);
    us_energy before = us_sim_get_energy(sim);
    live_done(world, "fault bars joint:coupler_pivot=broken");
    us_energy after = us_sim_get_energy(sim);
    assert_true(fabs(before.kinetic + before.potential - after.kinetic - after.potential) < 1e-12);
    live_step(world, 1000);
    assert_true(us_sim_get_closure(sim) < 1e-9);
    us_vec3 crank = us_pose_point(live_pose(world, "bars/crank"), us_vec3_make(0, 0, 1));
    assert_true(distance(crank, live_pose(world, "bars/coupler").p) > 0.1);
    us_world_destroy(world);
    // The K10's differential couples its rockers; without one of them it couples nothing.
    live_ok(us_spec_load(US_SOURCE_DIR "/scenes/slope.xml", NULL, &spec, &err), &err);
    us_model *whole = NULL, *broken = NULL;
    live_ok(us_model_compile(spec, NULL, &whole, &err), &err);
    int32_t i = us_spec_find_joint(spec, "k10/left_rocker");
    us_joint_def rocker = *us_spec_view_joint(spec, i);
    rocker.is_broken = true;
    assert_int_equal(us_spec_set_joint(spec, i, &rocker), US_OK);
    live_ok(us_model_compile(spec, NULL, &broken, &err), &err);
    us_model_counts n = us_model_get_counts(whole), m = us_model_get_counts(broken);
    assert_int_equal(n.n_row, 1);
    assert_int_equal(m.n_row, 0);
    assert_int_equal(m.n_tree, n.n_tree + 1);
    assert_int_equal(m.n_v, n.n_v + 5);
    us_joint_info info = us_model_get_joint(broken, (us_joint){i});
    assert_true(info.type == US_JOINT_FLOATING && info.parent.i == US_WORLD);
    us_model_destroy(whole);
    us_model_destroy(broken);
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- the walker

static void a_lost_leg_comes_to_rest_on_the_ground(void **state) {
    (void)state;
    us_world *world = live_open(walker_scene);
    live_step(world, 500);
    live_done(world, "fault hexapod joint:middle_left_femur=broken");
    live_step(world, 4000);
    us_vec3 femur = us_pose_point(live_pose(world, "hexapod/middle_left_femur"), us_vec3_make(0.085, 0, 0));
    us_vec3 tibia = us_pose_point(live_pose(world, "hexapod/middle_left_tibia"), us_vec3_make(0, 0, -0.11));
    print_message("femur at %.3f m, tibia at %.3f m, %.2g m/s; the body at %.3f m\n", femur.z, tibia.z,
                  us_vec3_norm(twist_of(world, "hexapod/middle_left_tibia").v),
                  live_pose(world, "hexapod/base").p.z);
    // On the ground, flat or as a tent that the limits of its knee prop up: the middle of neither part is
    // higher than half its length.
    assert_true(femur.z > 0.01 && femur.z < 0.09 && tibia.z > 0.01 && tibia.z < 0.12);
    assert_true(us_vec3_norm(twist_of(world, "hexapod/middle_left_femur").v) < 1e-4);
    assert_true(us_vec3_norm(twist_of(world, "hexapod/middle_left_tibia").v) < 1e-4);
    // Five legs carry the rest.
    live_near(live_pose(world, "hexapod/base").p.z, 0.2, 0.02);
    us_world_destroy(world);
}

// How a walker that has lost its front left leg fares where its rear leg comes to the place: from 8 s to 12.6
// s after the break.
typedef struct stumble {
    int n_kick;              // ticks in which something of the walker touches the lost leg
    double hardest;          // N, of these
    double highest, lowest;  // m, of the body's middle
    double shake;            // rad/s, of pitch and roll: root of the mean square
    us_vec3 to;
} stumble;

static bool is_lost(const us_model *m, us_body body) {
    const char *name = body.i >= 0 ? us_model_body_name(m, body) : "";
    return strcmp(name, "hexapod/front_left_femur") == 0 || strcmp(name, "hexapod/front_left_tibia") == 0;
}

// The greatest force between the lost leg and the rest of the walker; 0: they do not touch.
static double kick_of(const us_sim *sim) {
    double most = 0;
    for (int32_t k = 0; k < us_sim_n_contact(sim); k++) {
        us_contact c = us_sim_get_contact(sim, k);
        if (c.body_a.i < 0 || c.body_b.i < 0 ||
            is_lost(us_sim_view_model(sim), c.body_a) == is_lost(us_sim_view_model(sim), c.body_b))
            continue;
        most = fmax(most, us_vec3_norm(c.force));
    }
    return most;
}

static stumble walk_without_leg(bool is_cleared) {
    us_world *world = live_open(walker_scene);
    us_sim *sim = us_world_get_sim(world);
    stumble out = {.lowest = 1};
    live_walk(world, 0.2, 2000);
    live_done(world, "fault hexapod joint:front_left_femur=broken");
    // Somebody takes the leg away: the same walker, and nothing to stumble over.
    if (is_cleared) live_done(world, "move hexapod/front_left_femur 0 3 0.1");
    live_walk(world, 0.2, 8000);
    double sum = 0;
    const int n = 460;
    for (int i = 0; i < n; i++) {
        live_walk(world, 0.2, 10);
        double kick = kick_of(sim);
        us_pose X = live_pose(world, "hexapod/base");
        us_vec3 w = us_quat_rotate(us_quat_conj(X.q), twist_of(world, "hexapod/base").w);
        out.n_kick += kick > 0;
        out.hardest = fmax(out.hardest, kick);
        out.highest = fmax(out.highest, X.p.z);
        out.lowest = fmin(out.lowest, X.p.z);
        sum += w.x * w.x + w.y * w.y;
        out.to = X.p;
    }
    out.shake = sqrt(sum / n);
    print_message("leg %s: touched in %3d of %d looks, up to %3.0f N; height %.3f .. %.3f m, shaking %.3f "
                  "rad/s, comes to %.3f %.3f\n",
                  is_cleared ? "away  " : "in way", out.n_kick, n, out.hardest, out.lowest, out.highest,
                  out.shake, out.to.x, out.to.y);
    us_world_destroy(world);
    return out;
}

static void the_walker_stumbles_over_its_lost_leg(void **state) {
    (void)state;
    stumble in_way = walk_without_leg(false), away = walk_without_leg(true);
    assert_int_equal(away.n_kick, 0);
    // The rear foot treads on the leg, with a good part of the walker's 118 N.
    assert_true(in_way.n_kick > 20 && in_way.hardest > 20);
    // It is lifted by some of the leg's thickness, is shaken, and comes to another place.
    assert_true(in_way.highest > away.highest + 0.01);
    assert_true(in_way.shake > 1.05 * away.shake);
    assert_true(hypot(in_way.to.x - away.to.x, in_way.to.y - away.to.y) > 0.01);
}

// ---------------------------------------------------------------- others

static void a_rover_that_loses_a_wheel_drives_off_without_it(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    live_step(world, 500);
    live_done(world, "fault k10 joint:front_left_drive=broken");
    live_step(world, 1000);
    // Its fork stands on the wheel, until it drives off.
    assert_true(distance(live_pose(world, "k10/front_left_fork").p,
                         live_pose(world, "k10/front_left_wheel").p) < 0.3);
    for (int i = 0; i < 40; i++) {
        live_drive(world, 0.4);
        live_step(world, 100);
    }
    us_pose X = live_pose(world, "k10/base"), wheel = live_pose(world, "k10/front_left_wheel");
    us_vec3 up = us_quat_rotate(X.q, us_vec3_make(0, 0, 1));
    double tilt = acos(up.z), apart = distance(live_pose(world, "k10/front_left_fork").p, wheel.p);
    print_message("tilt %.3f rad, the wheel %.3f m from its fork and at a height of %.3f m\n", tilt, apart,
                  wheel.p.z);
    // A corner of the rover is down by part of the wheel's 0.18 m, over a wheelbase of about a metre.
    assert_true(tilt > 0.05 && tilt < 0.3);
    // The wheel lies (0.06 m) or still stands (0.18 m).
    assert_true(apart > 0.4 && wheel.p.z > 0.055 && wheel.p.z < 0.185);
    us_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_break_changes_neither_place_nor_velocity_of_anything),
        cmocka_unit_test(what_breaks_off_a_swing_flies_on_a_parabola),
        cmocka_unit_test(what_falls_on_its_former_robot_stays_there),
        cmocka_unit_test(what_overlaps_at_the_joint_is_not_shot_away),
        cmocka_unit_test(loops_hold_and_couplings_through_a_break_end),
        cmocka_unit_test(a_lost_leg_comes_to_rest_on_the_ground),
        cmocka_unit_test(the_walker_stumbles_over_its_lost_leg),
        cmocka_unit_test(a_rover_that_loses_a_wheel_drives_off_without_it),
    };
    return cmocka_run_group_tests_name("breakage", tests, load_walker, NULL);
}
