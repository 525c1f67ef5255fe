// What wheels and feet do to soft ground and it to them: feet that sink, regions of other ground, ruts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "soil_rig.h"

static const double PI = 3.14159265358979323846;

// ---- Feet ----

// A weightless foot on soil that is pressed by a force from above. Its mass is small, so that slow pressing
// is statics.
static const char *const foot_scene =
    "<scene name=\"foot\" version=\"1\"><parameter name=\"kc\" value=\"1400\"/><parameter name=\"n\" "
    "value=\"1\"/>"
    "<parameter name=\"shape\" value=\"box\"/><parameter name=\"size\" value=\"0.2 0.2 0.1\"/><parameter "
    "name=\"low\" value=\"0.05\"/>"
    "<parameter name=\"lie\" value=\"0\"/>"
    "<world step=\"1 ms\" gravity=\"0 0 0\"><shape name=\"ground\" type=\"plane\" surface=\"soil\"/></world>"
    "<material name=\"steel\"/><material name=\"soil\"><soil like=\"lunar\" kc=\"${kc}\" "
    "n=\"${n}\"/></material>"
    "<object name=\"foot\"><link name=\"foot\"><inertial mass=\"1\" inertia=\"0.01 0.01 0.01\"/>"
    "<shape type=\"${shape}\" size=\"${size}\" rpy=\"${lie} 0 0\" surface=\"steel\"/></link>"
    "<joint name=\"down\" type=\"prismatic\" parent=\"world\" child=\"foot\" axis=\"0 0 -1\" xyz=\"0 0 "
    "${low}\"/>"
    "<drive joint=\"down\"/></object></scene>";

// The force goes from one value to another within two seconds, softly at both ends, so that nothing swings
// over; and stays for half a second. How deep the foot is then.
static double press(soil_world *w, double from, double to) {
    for (int i = 0; i < 2500; i++) {
        double t = i < 2000 ? (i + 1) / 2000.0 : 1,
               force = from + (to - from) * t * t * t * (10 - 15 * t + 6 * t * t);
        us_command command = {.drive_torque = &force};
        if (us_sim_step(w->sim, &command)) fail_msg("%s", us_sim_view_error(w->sim)->message);
    }
    return soil_q(w, "foot/down");
}

static void a_plate_sinks_as_bekker_says_and_comes_back_along_the_line_of_unloading(void **state) {
    (void)state;
    soil_world w = soil_text(foot_scene, NULL);
    us_soil soil;
    assert_int_equal(us_sim_get_soil(w.sim, soil_material(&w, "soil"), &soil), US_OK);
    double at_100 = press(&w, 0, 100);
    printf("    100 N: %.5f mm\n", 1e3 * at_100);
    // 2500 Pa over (1400 / 0.1 m + 820000) Pa/m, to the digits that are written; the damper holds back 1e-6
    // of the load at the end.
    build_near("100 N", at_100, 2.9976e-3, 5e-8);
    // The stiffness of unloading grows with the depth, and acts on 0.04 m^2.
    double again = (soil.unload + soil.unload_depth * at_100) * 0.04;
    double at_50 = press(&w, 100, 50), back = press(&w, 50, 100), at_200 = press(&w, 100, 200),
           deep = press(&w, 200, 200);
    printf("    50 N: %.5f mm, 100 N again: %.5f mm, 200 N: %.5f mm\n", 1e3 * at_50, 1e3 * back,
           1e3 * at_200);
    build_near("unloaded to 50 N", at_50, at_100 - 50 / again, 1e-7);
    build_near("loaded again", back, at_100, 1e-7);
    build_near("200 N", at_200, 5.9952e-3, 1e-7);
    build_near("rests", deep, at_200, 1e-8);
    us_soil_contact soil_contact = soil_sunk(&w, "foot/foot");
    build_near("a quarter of the load on each part", soil_contact.force.z, 50, 1e-4);
    soil_free(&w);
}

static void a_ball_sinks_as_its_rings_say(void **state) {
    (void)state;
    const char *const exponents[] = {"n=1", "n=0.7", "n=1.3"};
    const double n[] = {1, 0.7, 1.3}, radius = 0.1, load = 60, k = 820000;
    for (int i = 0; i < 3; i++) {
        const char *const parameters[] = {"kc=0", exponents[i], "shape=sphere", "size=0.1", "low=0.1", NULL};
        soil_world w = soil_text(foot_scene, parameters);
        double depth = press(&w, 0, load),
               closed = pow(load * (n[i] + 1) / (2 * PI * radius * k), 1 / (n[i] + 1));
        printf("    n = %.1f: %.5f mm, closed form %.5f mm\n", n[i], 1e3 * depth, 1e3 * closed);
        // F = 2 pi R k d^(n+1) / (n + 1); the damper holds back a little at the end.
        build_near("depth", depth, closed, 2e-5 * closed);
        soil_free(&w);
    }
}

static void a_capsule_sinks_as_its_lines_and_rings_say(void **state) {
    (void)state;
    const double radius = 0.1, straight = 0.2, load = 100, k = 820000;
    const char *const parameters[] = {"kc=0",    "shape=capsule",          "size=0.1 0.2",
                                      "low=0.1", "lie=1.5707963267948966", NULL};
    soil_world w = soil_text(foot_scene, parameters);
    double d = press(&w, 0, load);
    // For n = 1: rings of a whole ball, pi R k d^2, and lines of 4/3 sqrt(2 R d) k d each.
    double carried = PI * radius * k * d * d + straight * 4 / 3.0 * sqrt(2 * radius * d) * k * d;
    printf("    %.5f mm, which carry %.4f N of %.0f N\n", 1e3 * d, carried, load);
    // As for the ball: the damper holds back a little at the end.
    build_near("load", carried, load, 5e-5 * load);
    soil_free(&w);
}

// A stone that drops onto a slope of soil that friction and its own print can hold.
static const char *const stone_scene =
    "<scene name=\"stone\" version=\"1\"><parameter name=\"slope\" value=\"0.15\"/><parameter name=\"shape\" "
    "value=\"box\"/>"
    "<parameter name=\"size\" value=\"0.1 0.1 0.1\"/><parameter name=\"roll\" value=\"1.5708\"/><parameter "
    "name=\"pitch\" value=\"0\"/>"
    "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"61\" ny=\"61\" dx=\"0.1\" "
    "dy=\"0.1\" surface=\"soil\""
    " expression=\"${slope}*x\"/></world><material name=\"rock\"/><material name=\"soil\"><soil "
    "like=\"lunar\"/></material>"
    "<object name=\"stone\" xyz=\"0 0 0.12\"><link name=\"stone\" density=\"2600\">"
    "<shape type=\"${shape}\" size=\"${size}\" rpy=\"${roll} ${pitch} 0.5\" "
    "surface=\"rock\"/></link></object></scene>";

static void stones_of_every_form_come_to_rest_on_a_slope_and_none_climbs(void **state) {
    (void)state;
    static const char *const stones[][5] = {
        {"shape=sphere", "size=0.07"},
        {"shape=capsule", "size=0.07 0.12"},
        {"shape=capsule", "size=0.07 0.12", "roll=0.3"},
        {"shape=ellipsoid", "size=0.06 0.06 0.12"},
        {"shape=ellipsoid", "size=0.1 0.07 0.06", "roll=0.87", "pitch=0.35"},
        {"shape=cone", "size=0.07 0.12"},
        {"shape=box", "size=0.1 0.1 0.1", "roll=0.785"},
        {"shape=box", "size=0.14 0.22 0.1", "roll=0"},
        {"shape=lozenge", "size=0.1 0.2 0.05", "roll=1.22"}};
    for (size_t i = 0; i < sizeof stones / sizeof *stones; i++) {
        soil_world w = soil_text(stone_scene, stones[i]);
        us_body stone = us_model_find_body(us_sim_view_model(w.sim), "stone/stone");
        for (int t = 0; t < 15000; t++)
            assert_int_equal(us_sim_step(w.sim, NULL), US_OK);
        us_pose early = us_sim_get_pose(w.sim, stone);
        for (int t = 0; t < 5000; t++)
            assert_int_equal(us_sim_step(w.sim, NULL), US_OK);
        us_pose late = us_sim_get_pose(w.sim, stone);
        us_twist twist = us_sim_get_twist(w.sim, stone);
        printf("    %-16s %-22s x %8.5f m, in the last 5 s %.0e m; turns at %.0e rad/s\n", stones[i][0],
               stones[i][1], late.p.x, us_vec3_norm(us_vec3_sub(late.p, early.p)), us_vec3_norm(twist.w));
        // What stands is balanced to rounding. Faster than 1e-7 m/s it is balanced to the solver's tolerance,
        // and may tremble to and fro at that speed: a tenth of a second of it, not five seconds, is what it
        // may be off.
        assert_true(us_vec3_norm(us_vec3_sub(late.p, early.p)) < 1e-8);
        assert_true(us_vec3_norm(twist.w) < 1e-6);
        // It may come to lie a little higher than its middle was: not by more than the soil gives way.
        assert_true(late.p.x < 0.01);
        soil_free(&w);
    }
}

// ---- Regions ----

static const char *const region_scene =
    "<scene name=\"region\" version=\"1\">"
    "<world step=\"1 ms\"><shape name=\"ground\" type=\"plane\" surface=\"sand\"/>"
    "<region name=\"slab\" ground=\"ground\" surface=\"rock\" polygon=\"0.2 -1 9 -1 9 1 0.2 1\"/></world>"
    "<material name=\"aluminium\"/><material name=\"rock\"/><material name=\"sand\"><soil "
    "like=\"fjs1\"/></material>"
    "<object name=\"rig\">"
    "<link name=\"carriage\"><inertial mass=\"5\" inertia=\"0.1 0.1 0.1\"/></link>"
    "<link name=\"lift\"><inertial mass=\"0.5\" inertia=\"0.01 0.01 0.01\"/></link>"
    "<link name=\"wheel\"><inertial mass=\"6\" inertia=\"0.03 0.03 0.03\"/>"
    "<shape type=\"cylinder\" size=\"0.09 0.11\" rpy=\"-90 0 0 deg\" surface=\"aluminium\"/></link>"
    "<joint name=\"travel\" type=\"prismatic\" parent=\"world\" child=\"carriage\" axis=\"1 0 0\" v=\"0.1\"/>"
    "<joint name=\"sink\" type=\"prismatic\" parent=\"carriage\" child=\"lift\" axis=\"0 0 1\" xyz=\"0 0 "
    "0.09\"/>"
    "<joint name=\"spin\" type=\"continuous\" parent=\"lift\" child=\"wheel\" axis=\"0 1 0\" v=\"1.1111\"/>"
    "<drive joint=\"travel\" kd=\"1e7\" velocity=\"0.1\"/><drive joint=\"spin\" kd=\"1e5\" "
    "velocity=\"1.1111\"/>"
    "</object></scene>";

static void a_wheel_rises_from_soil_onto_rock_and_sinks_when_the_rock_becomes_soil(void **state) {
    (void)state;
    soil_world w = soil_text(region_scene, NULL);
    soil_steps(&w, 1500);
    double in_sand = soil_q(&w, "rig/sink"), fastest = 0, highest = -1;
    assert_true(soil_sunk(&w, "rig/wheel").is_wheel);
    assert_true(in_sand < -0.012);
    for (int i = 0; i < 2500; i++) {
        soil_steps(&w, 1);
        fastest = fmax(fastest, soil_v(&w, "rig/sink"));
        highest = fmax(highest, soil_q(&w, "rig/sink"));
    }
    double on_rock = soil_q(&w, "rig/sink");
    printf("    in sand %.3f mm, on rock %.4f mm, risen with %.3f m/s at most, up to %.2f mm\n",
           1e3 * in_sand, 1e3 * on_rock, fastest, 1e3 * highest);
    assert_int_equal(soil_sunk(&w, "rig/wheel").body.i, -1);
    // It climbs out of the rock at a tenth of a metre per second and is not thrown up: v^2 / 2 g is half a
    // millimetre.
    assert_true(fastest < 0.11 && highest < 6e-4);
    assert_true(on_rock > -1e-3 && on_rock <= 1e-6);
    assert_int_equal(us_sim_set_region(w.sim, 0, soil_material(&w, "sand")), US_OK);
    soil_steps(&w, 1500);
    // The same soil: the same sinkage, to what the load wanders.
    build_near("in sand again", soil_q(&w, "rig/sink"), in_sand, 1e-6);
    soil_free(&w);
}

// ---- Ruts ----

#define RUT_WHEEL(i, x)                                                                              \
    "<link name=\"lift" i "\"><inertial mass=\"0.5\" inertia=\"0.01 0.01 0.01\"/></link>"            \
    "<link name=\"wheel" i "\"><inertial mass=\"6\" inertia=\"0.03 0.03 0.03\"/>"                    \
    "<shape type=\"cylinder\" size=\"0.09 0.11\" rpy=\"-90 0 0 deg\" surface=\"aluminium\"/></link>" \
    "<joint name=\"sink" i "\" type=\"prismatic\" parent=\"carriage\" child=\"lift" i                \
    "\" axis=\"0 0 1\" xyz=\"" x " 0 0.09\"/>"                                                       \
    "<joint name=\"spin" i "\" type=\"continuous\" parent=\"lift" i "\" child=\"wheel" i             \
    "\" axis=\"0 1 0\" v=\"${rate}\"/>"                                                              \
    "<drive joint=\"spin" i "\" kd=\"1e5\" velocity=\"${rate}\"/>"
// Two wheels in line, 0.4 m apart, in a patch of columns of 1 cm.
static const char *const rut_scene =
    "<scene name=\"rut\" version=\"1\"><parameter name=\"compaction\" value=\"0.3\"/>"
    "<parameter name=\"soil\" value=\"fjs1\"/><parameter name=\"dig\" value=\"0\"/>"
    "<parameter name=\"rate\" value=\"1.2346\"/>"
    "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"61\" ny=\"25\" dx=\"0.04\" "
    "dy=\"0.04\" expression=\"0\" surface=\"sand\" "
    "bed=\"1 cm\"/></world>"
    "<material name=\"aluminium\"/><material name=\"sand\"><soil like=\"${soil}\" "
    "compaction=\"${compaction}\" slip-sinkage=\"${dig}\"/></material>"
    "<object name=\"rig\">"
    "<link name=\"carriage\"><inertial mass=\"5\" inertia=\"0.1 0.1 0.1\"/></link>" RUT_WHEEL("0", "0")
        RUT_WHEEL("1", "-0.4") "<joint name=\"travel\" type=\"prismatic\" parent=\"world\" "
                               "child=\"carriage\" axis=\"1 0 0\" xyz=\"-0.5 0 0\" v=\"0.1\"/>"
                               "<drive joint=\"travel\" kd=\"1e7\" velocity=\"0.1\"/>"
                               "</object></scene>";

// The change of every column, micrometres, x fastest.
static int32_t *changes(const soil_world *w, us_deformable_info *out_patch) {
    us_deformable_info patch = us_sim_get_deformable(w->sim, 0);
    int32_t *out = calloc((size_t)patch.n_x * (size_t)patch.n_y, sizeof *out);
    assert_non_null(out);
    for (int32_t v = 0; v < patch.n_tile_y; v++) {
        for (int32_t u = 0; u < patch.n_tile_x; u++) {
            float change[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE];
            int32_t x1 = (u + 1) * US_DEFORMABLE_TILE < patch.n_x ? (u + 1) * US_DEFORMABLE_TILE : patch.n_x;
            int32_t y1 = (v + 1) * US_DEFORMABLE_TILE < patch.n_y ? (v + 1) * US_DEFORMABLE_TILE : patch.n_y;
            assert_int_equal(us_sim_get_deformable_tile(w->sim, 0, u, v, NULL, change), US_OK);
            for (int32_t y = v * US_DEFORMABLE_TILE, k = 0; y < y1; y++) {
                // Whole micrometres below 16 m are kept by a float's digits.
                for (int32_t x = u * US_DEFORMABLE_TILE; x < x1; x++, k++)
                    out[y * patch.n_x + x] = (int32_t)lrint(1e6 * (double)change[k]);
            }
        }
    }
    *out_patch = patch;
    return out;
}

static int64_t sum_of(const int32_t *change, const us_deformable_info *patch) {
    int64_t sum = 0;
    for (int32_t i = 0; i < patch->n_x * patch->n_y; i++)
        sum += change[i];
    return sum;
}

static double value_of(const soil_world *w, const char *name) {
    int32_t id = us_sim_find_value(w->sim, name);
    if (id < 0) fail_msg("\"%s\" is not known", name);
    return us_sim_get_value(w->sim, id);
}

static void a_wheel_leaves_a_rut_as_deep_as_it_sinks_and_the_next_one_hardly_more(void **state) {
    (void)state;
    soil_world w = soil_text(rut_scene, NULL);
    soil_steps(&w, 6000);
    // The front wheel is at x = 0.1, the rear one at -0.3: 0 lies in the front wheel's rut, and nothing has
    // flowed over it but its walls.
    us_deformable_info patch;
    int32_t *change = changes(&w, &patch);
    double front = -soil_q(&w, "rig/sink0"), rear = -soil_q(&w, "rig/sink1");
    int32_t x = (patch.n_x - 1) / 2, y = (patch.n_y - 1) / 2;
    double rut = -1e-6 * change[y * patch.n_x + x];
    us_soil_contact first = soil_sunk(&w, "rig/wheel0"), second = soil_sunk(&w, "rig/wheel1");
    printf("    front %.3f mm, rut %.3f mm, rear %.3f mm below the fresh ground; sinkage %.3f and %.3f mm; "
           "highest %.2f mm\n",
           1e3 * front, 1e3 * rut, 1e3 * rear, 1e3 * first.sinkage, 1e3 * second.sinkage,
           1e3 * patch.highest);
    // Columns are whole micrometres, and the front wheel stands as deep as when it was here to a few of them.
    build_near("rut", rut, front, 3e-6);
    // The rear one is carried a little by what has fallen in from the walls.
    assert_true(rear > 0.95 * front && rear < 1.05 * front);
    assert_true(second.sinkage < 0.35 * first.sinkage);
    assert_true(patch.highest > 1e-3);
    // By name, as recordings and scopes have it.
    assert_true(value_of(&w, "rig/wheel0.sinkage") == first.sinkage &&
                value_of(&w, "rig/wheel0.slip") == first.slip);
    assert_true(value_of(&w, "rig/wheel0.slip-angle") == first.slip_angle &&
                value_of(&w, "rig/wheel0.moment") == first.moment);
    assert_true(value_of(&w, "rig/wheel0.pull") == first.force.x &&
                value_of(&w, "rig/wheel0.side") == first.force.y);
    assert_true(value_of(&w, "rig/wheel0.load") == first.force.z && value_of(&w, "rig/carriage.load") == 0);
    free(change);
    soil_free(&w);
}

// In soils whose published stiffness of unloading is small at millimetres of depth, too.
static void the_second_wheel_in_a_rut_sinks_no_deeper_in_clay_and_loam(void **state) {
    (void)state;
    static const char *const soils[] = {"soil=clay", "soil=sandy_loam", "soil=heavy_clay"};
    for (int i = 0; i < 3; i++) {
        const char *const parameters[] = {soils[i], NULL};
        soil_world w = soil_text(rut_scene, parameters);
        soil_steps(&w, 7000);
        double front = -soil_q(&w, "rig/sink0"), rear = -soil_q(&w, "rig/sink1");
        printf("    %s: front %.4f mm, rear %.4f mm below the fresh ground\n", soils[i], 1e3 * front,
               1e3 * rear);
        // What has fallen in from the walls carries the rear one a little; depths pressed are kept in steps
        // of 10 um.
        assert_true(front > 0 && rear > 0.8 * front - 1e-5 && rear < 1.1 * front + 1e-5);
        soil_free(&w);
    }
}

static void a_wheel_that_stops_in_its_patch_stays_whichever_way_it_trembles(void **state) {
    (void)state;
    soil_world w = soil_text(rut_scene, NULL);
    soil_steps(&w, 4000);
    // Stopped, the rims go to and fro by a tenth of a micrometre per second.
    double highest = -1, lowest = 1, least = 1e9;
    for (int i = 0; i < 4000; i++) {
        double tremble = (i & 1 ? 1e-7 : -1e-7), speed[3] = {tremble, tremble, 0};
        us_command command = {.drive_velocity = speed};
        if (us_sim_step(w.sim, &command)) fail_msg("%s", us_sim_view_error(w.sim)->message);
        if (i < 1000) continue;
        double q = soil_q(&w, "rig/sink0");
        highest = fmax(highest, q);
        lowest = fmin(lowest, q);
        least = fmin(least, soil_sunk(&w, "rig/wheel0").sinkage);
    }
    printf("    between %.4f and %.4f mm, sinkage %.3f mm\n", 1e3 * lowest, 1e3 * highest, 1e3 * least);
    // It stands in the soil that it came to, and does not fall into the rut behind it: there the sinkage
    // would be 4 mm.
    assert_true(highest - lowest < 1e-6 && least > 0.014);
    // And the soil around it has come to rest: nothing flows, nothing is looked at, the patch stays as it is.
    for (int i = 0; i < 20000 && us_sim_get_deformable(w.sim, 0).n_active > 0; i++) {
        double still[3] = {0};
        if (us_sim_step(w.sim, &(us_command){.drive_velocity = still}))
            fail_msg("%s", us_sim_view_error(w.sim)->message);
    }
    us_deformable_info patch = us_sim_get_deformable(w.sim, 0);
    assert_int_equal(patch.n_active, 0);
    soil_steps(&w, 100);
    assert_true(us_sim_get_deformable(w.sim, 0).n_active == 0 &&
                us_sim_get_deformable(w.sim, 0).digest == patch.digest);
    soil_free(&w);
}

static void no_grain_is_lost_but_to_compaction(void **state) {
    (void)state;
    const char *const shares[] = {"compaction=0", "compaction=0.3", "compaction=1"};
    int64_t sum[3];
    double highest[3];
    for (int i = 0; i < 3; i++) {
        const char *const parameters[] = {shares[i], NULL};
        us_deformable_info patch;
        soil_world w = soil_text(rut_scene, parameters);
        soil_steps(&w, 6000);
        int32_t *change = changes(&w, &patch);
        sum[i] = sum_of(change, &patch);
        highest[i] = patch.highest;
        printf("    %s: %lld um of columns gone, highest %.2f mm\n", shares[i], (long long)-sum[i],
               1e3 * patch.highest);
        free(change);
        soil_free(&w);
    }
    // What is pressed comes up beside it, to the last micrometre of a column; or it is compacted
    // and nothing rises.
    assert_int_equal(sum[0], 0);
    assert_true(highest[2] == 0);
    // What flows back into the rut is pressed again, so that the share is not exactly 0.3 of all that is
    // pressed with full compaction.
    double share = (double)sum[1] / (double)sum[2];
    assert_true(sum[2] < 0 && share > 0.25 && share < 0.45);
}

// A wheel that slips more leaves a deeper rut, and what it has dug lies behind it and beside the rut.
static void ruts_deepen_with_slip_and_no_grain_is_lost(void **state) {
    (void)state;
    static const char *const rates[] = {"rate=1.1112", "rate=1.3889", "rate=1.8519", "rate=2.7778"};
    double before = 0;
    for (int i = 0; i < 4; i++) {
        const char *const parameters[] = {"compaction=0", "dig=0.75", rates[i], NULL};
        us_deformable_info patch;
        soil_world w = soil_text(rut_scene, parameters);
        soil_steps(&w, 6000);
        int32_t *change = changes(&w, &patch);
        double rut = -1e-6 * change[(patch.n_y - 1) / 2 * patch.n_x + (patch.n_x - 1) / 2];
        us_soil_contact k = soil_sunk(&w, "rig/wheel0");
        printf("    slip %.3f: sinkage %.2f mm, rut %.2f mm\n", k.slip, 1e3 * k.sinkage, 1e3 * rut);
        // Each slip has its own depth, a tenth of a millimetre apart at least.
        assert_true(rut > before + 1e-4 && rut < k.sinkage + 1e-4);
        assert_int_equal(sum_of(change, &patch), 0);
        before = rut;
        free(change);
        soil_free(&w);
    }
}

// A wheel that spins on the spot digs itself in, throws the soil behind itself, and stays there.
static const char *const spin_scene =
    "<scene name=\"spin\" version=\"1\"><parameter name=\"soil\" value=\"lunar\"/>"
    "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"41\" ny=\"21\" dx=\"0.05\" "
    "dy=\"0.05\" expression=\"0\" surface=\"sand\" bed=\"1 cm\"/></world>"
    "<material name=\"aluminium\"/><material name=\"sand\"><soil like=\"${soil}\" "
    "compaction=\"0\"/></material>"
    "<object name=\"rig\">"
    "<link name=\"lift\"><inertial mass=\"0.5\" inertia=\"0.01 0.01 0.01\"/></link>"
    "<link name=\"wheel\"><inertial mass=\"6\" inertia=\"0.03 0.03 0.03\"/>"
    "<shape type=\"cylinder\" size=\"0.09 0.11\" rpy=\"-90 0 0 deg\" surface=\"aluminium\"/></link>"
    "<joint name=\"sink\" type=\"prismatic\" parent=\"world\" child=\"lift\" axis=\"0 0 1\" xyz=\"0 0 "
    "0.09\"/>"
    "<joint name=\"spin\" type=\"continuous\" parent=\"lift\" child=\"wheel\" axis=\"0 1 0\"/>"
    "<drive joint=\"spin\" kd=\"1e5\" velocity=\"2\"/></object></scene>";

static void a_wheel_that_spins_on_the_spot_digs_itself_in(void **state) {
    (void)state;
    static const char *const soils[] = {"soil=dry_sand", "soil=lunar", "soil=mars_drift", "soil=clay"};
    for (int i = 0; i < 4; i++) {
        const char *const parameters[] = {soils[i], NULL};
        soil_world w = soil_text(spin_scene, parameters);
        double depth[4];
        for (int k = 0; k < 4; k++) {
            soil_steps(&w, 1500);
            depth[k] = -soil_q(&w, "rig/sink");
        }
        us_deformable_info patch;
        int32_t *change = changes(&w, &patch);
        int32_t y = (patch.n_y - 1) / 2, behind = 0, ahead = 0;
        for (int32_t x = 0; x < patch.n_x; x++) {
            int32_t *most = x < (patch.n_x - 1) / 2 ? &behind : &ahead;
            if (change[y * patch.n_x + x] > *most) *most = change[y * patch.n_x + x];
        }
        printf("    %s: %.1f, %.1f, %.1f, %.1f mm deep after 3, 6, 9, 12 rad; %.1f mm high behind it, %.1f "
               "ahead\n",
               soils[i], 1e3 * depth[0], 1e3 * depth[1], 1e3 * depth[2], 1e3 * depth[3], 1e-3 * behind,
               1e-3 * ahead);
        assert_true(depth[1] > depth[0] + 1e-4 && depth[2] > depth[1] + 1e-5 && depth[3] > depth[2]);
        assert_true(behind > ahead + 1000);
        assert_int_equal(sum_of(change, &patch), 0);
        // It stays where it is when the wheel stands.
        double zero = 0;
        assert_int_equal(us_sim_step(w.sim, &(us_command){.drive_velocity = &zero}), US_OK);
        soil_steps(&w, 4000);
        double before = soil_q(&w, "rig/sink");
        soil_steps(&w, 1000);
        build_near("stays", soil_q(&w, "rig/sink"), before, 1e-8);
        printf("        stopped, it stands at %.1f mm\n", -1e3 * before);
        // Without the shear that pulled it down it may rise by what it presses, not out of its hole.
        assert_true(-before > 0.85 * depth[3]);
        free(change);
        soil_free(&w);
    }
}

static void what_a_foot_presses_out_lies_around_it_and_comes_to_rest(void **state) {
    (void)state;
    static const char *const feet[] = {"type=\"box\" size=\"0.12 0.12 0.12\"",
                                       "type=\"sphere\" size=\"0.1\""};
    for (int i = 0; i < 2; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "<scene name=\"foot\" version=\"1\"><material name=\"sand\"><soil like=\"lunar\" "
                 "cohesion=\"0\" compaction=\"0.3\"/></material>"
                 "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"41\" ny=\"41\" "
                 "dx=\"0.05\" dy=\"0.05\" "
                 "expression=\"0\" surface=\"sand\" bed=\"1 cm\"/></world>"
                 "<object name=\"foot\" xyz=\"0 0 0.11\"><link name=\"l\" density=\"8000\"><shape "
                 "%s/></link></object></scene>",
                 feet[i]);
        soil_world w = soil_text(text, NULL);
        soil_steps(&w, 3000);
        us_deformable_info patch;
        int32_t *change = changes(&w, &patch);
        assert_int_equal(patch.n_active, 0);
        double pressed = 0, risen = 0;
        for (int32_t k = 0; k < patch.n_x * patch.n_y; k++) {
            pressed -= fmin(change[k], 0);
            risen += fmax(change[k], 0);
        }
        printf("    %s: %.4g of what was pressed has come up\n", feet[i], risen / pressed);
        // A box goes straight down, and presses nothing twice. A ball widens its print, and presses what had
        // come up there down again.
        if (i == 0) build_near("risen", risen / pressed, 0.7, 1e-3);
        assert_true(risen < 0.7001 * pressed && risen > 0.4 * pressed);
        soil_steps(&w, 1000);
        assert_true(us_sim_get_deformable(w.sim, 0).digest == patch.digest);
        // What it carries is its weight, by name.
        double volume = i == 0 ? 0.12 * 0.12 * 0.12 : 4 * M_PI / 3 * 0.1 * 0.1 * 0.1;
        build_near("load", value_of(&w, "foot/l.load"), 8000 * volume * 9.81, 1e-3);
        build_near("sinkage", value_of(&w, "foot/l.sinkage"), soil_sunk(&w, "foot/l").sinkage, 1e-12);
        assert_true(value_of(&w, "foot/l.slip") == 0);
        free(change);
        soil_free(&w);
    }
}

static void rock_beside_the_soil_is_not_pressed(void **state) {
    (void)state;
    // The middle of the box is over sand, its eastern third over rock.
    soil_world w = soil_text("<scene name=\"border\" version=\"1\"><material name=\"sand\"><soil "
                             "like=\"lunar\"/></material><material name=\"rock\"/>"
                             "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"41\" "
                             "ny=\"41\" dx=\"0.05\" dy=\"0.05\" "
                             "expression=\"0\" surface=\"sand\" bed=\"1 cm\"/>"
                             "<region name=\"slab\" ground=\"ground\" surface=\"rock\" polygon=\"0.022 -1 1 "
                             "-1 1 1 0.022 1\"/></world>"
                             "<object name=\"foot\" xyz=\"0 0 0.11\"><link name=\"l\" "
                             "density=\"8000\"><shape type=\"box\" size=\"0.12 0.12 0.12\"/>"
                             "</link></object></scene>",
                             NULL);
    soil_steps(&w, 3000);
    us_deformable_info patch;
    int32_t *change = changes(&w, &patch);
    int32_t sand = 0, rock = 0;
    for (int32_t k = 0; k < patch.n_x * patch.n_y; k++) {
        double x = (k % patch.n_x - 0.5 * (patch.n_x - 1)) * patch.spacing;
        int32_t *deepest = x > 0.022 ? &rock : &sand;
        if (change[k] < *deepest) *deepest = change[k];
    }
    printf("    sand pressed by %.2f mm, rock by %.2f mm\n", -1e-3 * sand, -1e-3 * rock);
    assert_true(sand < -1000 && rock == 0);
    free(change);
    soil_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plate_sinks_as_bekker_says_and_comes_back_along_the_line_of_unloading),
        cmocka_unit_test(a_ball_sinks_as_its_rings_say),
        cmocka_unit_test(a_capsule_sinks_as_its_lines_and_rings_say),
        cmocka_unit_test(stones_of_every_form_come_to_rest_on_a_slope_and_none_climbs),
        cmocka_unit_test(a_wheel_rises_from_soil_onto_rock_and_sinks_when_the_rock_becomes_soil),
        cmocka_unit_test(a_wheel_leaves_a_rut_as_deep_as_it_sinks_and_the_next_one_hardly_more),
        cmocka_unit_test(the_second_wheel_in_a_rut_sinks_no_deeper_in_clay_and_loam),
        cmocka_unit_test(a_wheel_that_stops_in_its_patch_stays_whichever_way_it_trembles),
        cmocka_unit_test(no_grain_is_lost_but_to_compaction),
        cmocka_unit_test(ruts_deepen_with_slip_and_no_grain_is_lost),
        cmocka_unit_test(a_wheel_that_spins_on_the_spot_digs_itself_in),
        cmocka_unit_test(what_a_foot_presses_out_lies_around_it_and_comes_to_rest),
        cmocka_unit_test(rock_beside_the_soil_is_not_pressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
