// A wheel on soft soil against published tables, closed forms and what must hold for every state.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contact/soil.h"
#include "understudy/soil.h"

#define DEG (M_PI / 180)

static us_soil fjs1(us_soil_lateral lateral) {
    us_soil soil;
    assert_true(us_soil_find("fjs1", &soil));
    soil.lateral = lateral;
    return soil;
}
static const us_soil_wheel small = {.radius = 0.09, .width = 0.11};
static const us_soil_wheel large = {.radius = 0.2, .width = 0.15};
static const us_soil_history earth = {.gravity = 9.81};

// Within half a unit of the last digit that the table prints, and a millionth for the quadrature.
static void expect(const char *what, double value, double table, double half_digit) {
    if (!(fabs(value - table) <= half_digit + 1e-6 * fabs(table)))
        fail_msg("%s: %.9g, the table has %.9g", what, value, table);
}

// To one part in a million.
static void expect_exact(const char *what, double value, double exact) {
    if (!(fabs(value - exact) <= 1e-6 * fabs(exact)))
        fail_msg("%s: %.10g instead of %.10g", what, value, exact);
}

static void one_state_has_the_forces_of_converged_quadrature(void **state) {
    (void)state;
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI);
    us_wheel_force f = us_soil_wheel_force(&soil, &small, earth, 0.015, 0.3, 15 * DEG);
    expect_exact("Fx", f.fx, 10.70539766);
    expect_exact("Fy shear", f.fy_shear, 21.06228221);
    expect_exact("Fb", f.fy_bulldoze, 4.677985);
    expect_exact("Fz", f.fz, 61.20645378);
    expect_exact("M", f.moment, 1.45239500);
    // One modulus for both directions.
    soil.lateral = US_LATERAL_ISOTROPIC;
    f = us_soil_wheel_force(&soil, &small, earth, 0.015, 0.3, 15 * DEG);
    expect_exact("isotropic Fx", f.fx, 10.2955582);
    expect_exact("isotropic Fy", f.fy_shear, 8.5799575);
    expect_exact("isotropic Fz", f.fz, 61.2694863);
    expect_exact("isotropic M", f.moment, 1.41402019);
}

static void a_given_sinkage_gives_the_forces_of_the_table(void **state) {
    (void)state;
    static const double slips[] = {-0.5, -0.2, 0, 0.2, 0.6}, angles[] = {0, 5, 15, 30};
    static const double table[5][4][4] = {
        {{-38.0730, 0, 60.1126, -3.07494},
         {-36.4379, 22.3435, 60.2080, -2.92308},
         {-33.5680, 37.8574, 60.3253, -2.65656},
         {-30.0734, 45.5297, 60.3929, -2.33198}},
        {{-15.9476, 0, 64.3665, -1.03854},
         {-15.0364, 16.7158, 64.2918, -0.95379},
         {-13.5964, 31.6748, 64.1681, -0.81983},
         {-12.0620, 41.1203, 64.0290, -0.67704}},
        {{-0.1338, 0, 65.8590, 0.41697},
         {-0.5396, 14.5046, 65.8581, 0.37910},
         {-1.1642, 28.7218, 65.8570, 0.32080},
         {-1.8084, 38.6075, 65.8564, 0.26067}},
        {{10.5412, 0, 62.5833, 1.42929},
         {9.3295, 11.5020, 62.6163, 1.31645},
         {7.3989, 23.6988, 62.6774, 1.13664},
         {5.3209, 32.9607, 62.7544, 0.94305}},
        {{22.1035, 0, 57.1307, 2.53199},
         {20.4707, 5.6174, 57.0871, 2.38014},
         {17.7067, 12.6199, 57.0463, 2.12305},
         {14.4971, 19.0431, 57.0462, 1.82442}},
    };
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++) {
            us_wheel_force f = us_soil_wheel_force(&soil, &small, earth, 0.015, slips[i], angles[j] * DEG);
            const double *t = table[i][j];
            expect("Fx", f.fx, t[0], 5e-5);
            expect("Fy", f.fy_shear, t[1], 5e-5);
            expect("Fz", f.fz, t[2], 5e-5);
            expect("M", f.moment, t[3], 5e-6);
            expect("Fb", f.fy_bulldoze, j > 0 ? 4.6780 : 0, 5e-5);
            expect("entry", f.entry, 0.58568, 1e-5);  // cut off, not rounded, there
        }
    }
}

// Slip, then sinkage (mm), pull, shear across, bulldozing and moment for each slip angle.
static void a_given_load_gives_the_sinkage_of_the_table(void **state) {
    (void)state;
    static const double slips[] = {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8}, angles[] = {0, 5, 15, 30};
    static const double table[8][4][5] = {
        {{14.817, -0.172, 0, 0, 0.4028},
         {14.817, -0.564, 14.192, 4.580, 0.3662},
         {14.817, -1.168, 28.135, 4.580, 0.3099},
         {14.817, -1.791, 37.855, 4.580, 0.2518}},
        {{14.953, 2.932, 0, 0, 0.7046},
         {14.950, 2.267, 13.671, 4.651, 0.6425},
         {14.946, 1.237, 27.329, 4.649, 0.5461},
         {14.941, 0.163, 37.027, 4.646, 0.4458}},
        {{15.085, 5.819, 0, 0, 0.9862},
         {15.081, 4.920, 13.125, 4.722, 0.9021},
         {15.073, 3.514, 26.468, 4.718, 0.7705},
         {15.065, 2.034, 36.126, 4.713, 0.6320}},
        {{15.341, 10.988, 0, 0, 1.4926},
         {15.336, 9.721, 11.964, 4.861, 1.3742},
         {15.326, 7.702, 24.582, 4.855, 1.1854},
         {15.313, 5.531, 34.092, 4.848, 0.9822}},
        {{15.589, 15.423, 0, 0, 1.9305},
         {15.585, 13.902, 10.720, 4.998, 1.7885},
         {15.577, 11.433, 22.469, 4.993, 1.5578},
         {15.564, 8.719, 31.717, 4.986, 1.3040}},
        {{15.831, 19.214, 0, 0, 2.3081},
         {15.832, 17.529, 9.399, 5.136, 2.1512},
         {15.828, 14.747, 20.121, 5.134, 1.8916},
         {15.818, 11.617, 28.958, 5.128, 1.5991}},
        {{16.318, 25.187, 0, 0, 2.9142},
         {16.329, 23.374, 6.544, 5.419, 2.7459},
         {16.340, 20.270, 14.664, 5.425, 2.4572},
         {16.344, 16.622, 22.051, 5.427, 2.1171}},
        {{16.827, 29.487, 0, 0, 3.3659},
         {16.850, 27.705, 3.414, 5.722, 3.2013},
         {16.881, 24.556, 8.045, 5.740, 2.9096},
         {16.904, 20.699, 12.738, 5.754, 2.5511}},
    };
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI);
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 4; j++) {
            double h = us_soil_wheel_sinkage(&soil, &small, earth, 64.68, slips[i], angles[j] * DEG);
            us_wheel_force f = us_soil_wheel_force(&soil, &small, earth, h, slips[i], angles[j] * DEG);
            const double *t = table[i][j];
            expect("sinkage", 1000 * h, t[0], 5e-4);
            expect("Fx", f.fx, t[1], 5e-4);
            expect("Fy", f.fy_shear, t[2], 5e-4);
            expect("Fb", f.fy_bulldoze, t[3], 5e-4);
            expect("M", f.moment, t[4], 5e-5);
            expect_exact("Fz", f.fz, 64.68);
        }
    }
}

static us_soil dry_sand(void) {
    us_soil soil = us_soil_default();
    soil.lateral = US_LATERAL_ISHIGAMI;
    return soil;
}

static void dry_sand_and_mars_have_the_forces_of_their_tables(void **state) {
    (void)state;
    static const double sand[][4] = {{0, 23.116, -25.071, 2.9515},   {0.05, 23.194, -14.886, 5.0530},
                                     {0.1, 23.290, -6.153, 6.8710},  {0.2, 23.533, 7.806, 9.8253},
                                     {0.3, 23.840, 18.163, 12.0831}, {0.4, 24.211, 25.851, 13.8298},
                                     {0.6, 25.148, 35.667, 16.2761}, {0.8, 26.376, 40.591, 17.8342}};
    us_soil soil = dry_sand();
    for (size_t i = 0; i < sizeof sand / sizeof sand[0]; i++) {
        double h = us_soil_wheel_sinkage(&soil, &large, earth, 200, sand[i][0], 0);
        us_wheel_force f = us_soil_wheel_force(&soil, &large, earth, h, sand[i][0], 0);
        expect("sinkage", 1000 * h, sand[i][1], 5e-4);
        expect("Fx", f.fx, sand[i][2], 5e-4);
        expect("M", f.moment, sand[i][3], 5e-5);
    }
    static const double across[][3] = {
        {0, 53.668, 6.650}, {0.2, 43.953, 6.855}, {0.4, 34.104, 7.195}, {0.8, 12.456, 8.329}};
    for (size_t i = 0; i < sizeof across / sizeof across[0]; i++) {
        double h = us_soil_wheel_sinkage(&soil, &large, earth, 200, across[i][0], 15 * DEG);
        us_wheel_force f = us_soil_wheel_force(&soil, &large, earth, h, across[i][0], 15 * DEG);
        expect("Fy", f.fy_shear, across[i][1], 5e-4);
        expect("Fb", f.fy_bulldoze, across[i][2], 5e-4);
    }
    static const double mars[][4] = {{0, 16.297, -5.941, 1.2652},
                                     {0.1, 16.528, 7.708, 3.1220},
                                     {0.2, 16.789, 17.724, 4.5068},
                                     {0.4, 17.426, 30.497, 6.3403},
                                     {0.6, 18.252, 37.311, 7.4172}};
    assert_true(us_soil_find("mars_crusty", &soil));
    soil.cohesion = 500;
    soil.lateral = US_LATERAL_ISHIGAMI;
    const us_soil_wheel rover = {.radius = 0.13, .width = 0.16};
    for (size_t i = 0; i < sizeof mars / sizeof mars[0]; i++) {
        us_soil_history load = {.gravity = 3.72};
        double h = us_soil_wheel_sinkage(&soil, &rover, load, 108, mars[i][0], 0);
        us_wheel_force f = us_soil_wheel_force(&soil, &rover, load, h, mars[i][0], 0);
        expect("sinkage", 1000 * h, mars[i][1], 5e-4);
        expect("Fx", f.fx, mars[i][2], 5e-4);
        expect("M", f.moment, mars[i][3], 5e-5);
    }
}

// A wheel of weight W that keeps its speed on a slope: Fz = W cos, Fx = W sin. The slip by halving; NaN when
// full slip does not pull enough.
static double climb(const us_soil *soil, const us_soil_wheel *wheel, double weight, double slope,
                    double *out_h, double *out_moment) {
    double low = 0, high = 0.97;
    for (int i = 0; i < 60; i++) {
        double s = i == 0 ? high : 0.5 * (low + high);
        double h = us_soil_wheel_sinkage(soil, wheel, earth, weight * cos(slope), s, 0);
        us_wheel_force f = us_soil_wheel_force(soil, wheel, earth, h, s, 0);
        *out_h = h;
        *out_moment = f.moment;
        if (i == 0 && f.fx < weight * sin(slope)) return NAN;
        if (i == 0) continue;
        if (f.fx < weight * sin(slope))
            low = s;
        else
            high = s;
    }
    return low;
}

static void slopes_are_climbed_with_the_slip_of_the_table_or_not_at_all(void **state) {
    (void)state;
    static const double a[][4] = {{0, 0.00267, 14.824, 0.41948},  {5, 0.09730, 15.039, 0.96618},
                                  {10, 0.20969, 15.206, 1.50743}, {15, 0.35072, 15.345, 2.04067},
                                  {20, 0.54186, 15.506, 2.56569}, {25, 0.83702, 15.837, 3.09005}};
    static const double b[][4] = {
        {0, 0.14043, 23.380, 8.16433}, {5, 0.29248, 23.759, 11.87997}, {10, 0.58483, 24.832, 15.86815}};
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI), sand = dry_sand();
    double h = 0, m = 0;
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++) {
        expect("slip", climb(&soil, &small, 64.68, a[i][0] * DEG, &h, &m), a[i][1], 5e-6);
        expect("sinkage", 1000 * h, a[i][2], 5e-4);
        expect("M", m, a[i][3], 5e-6);
    }
    for (size_t i = 0; i < sizeof b / sizeof b[0]; i++) {
        expect("slip", climb(&sand, &large, 200, b[i][0] * DEG, &h, &m), b[i][1], 5e-6);
        expect("sinkage", 1000 * h, b[i][2], 5e-4);
        expect("M", m, b[i][3], 5e-6);
    }
    assert_true(isnan(climb(&sand, &large, 200, 15 * DEG, &h, &m)));
}

static void without_friction_the_closed_forms_come_out(void **state) {
    (void)state;
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI);
    soil.cohesion = soil.friction_angle = soil.peak_angle = soil.peak_angle_slip = soil.exit_ratio = 0;
    double h = 0.02, k = soil.kc / small.width + soil.kphi, entry = acos(1 - h / small.radius);
    us_wheel_force f = us_soil_wheel_force(&soil, &small, earth, h, 0, 0);
    expect_exact("compaction resistance", f.fx, -small.width * k * h * h / 2);
    expect_exact("the same as printed", f.fx, -18.1820);
    expect_exact("load", f.fz,
                 k * small.width * small.radius * small.radius * (entry / 2 - sin(2 * entry) / 4));
    expect_exact("the same as printed", f.fz, 70.253428);
    // Any exponent: the resistance is the work of pressing a strip.
    soil.n = 1.3;
    f = us_soil_wheel_force(&soil, &small, earth, h, 0, 0);
    expect_exact("compaction resistance", f.fx, -small.width * k * pow(h, 2.3) / 2.3);
}

static void the_force_grows_with_sinkage_as_published(void **state) {
    (void)state;
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI);
    double h = us_soil_wheel_sinkage(&soil, &small, earth, 64.68, 0, 0), d = 1e-6;
    double slope = (us_soil_wheel_force(&soil, &small, earth, h + d, 0, 0).fz -
                    us_soil_wheel_force(&soil, &small, earth, h - d, 0, 0).fz) /
                   (2 * d);
    // Printed with one digit behind the point.
    if (fabs(slope - 6410.1) > 0.1) fail_msg("dFz/dh %.3f", slope);
}

static double uniform(uint64_t *counter, double from, double to) {
    return from + (to - from) * us_random_uniform(7, 1, (*counter)++);
}

static void every_state_loses_energy_and_mirrors(void **state) {
    (void)state;
    uint64_t counter = 0;
    for (int i = 0; i < 20000; i++) {
        us_soil soil;
        assert_true(us_soil_get(i % 10, NULL, &soil, NULL));
        soil.lateral = i & 1 ? US_LATERAL_ISHIGAMI : US_LATERAL_ISOTROPIC;
        us_soil_history load = {.gravity = 9.81, .pressed = i % 3 == 0 ? uniform(&counter, 0, 0.04) : 0};
        double h = uniform(&counter, 1e-4, 0.4 * small.radius), v = uniform(&counter, -1, 1),
               vy = uniform(&counter, -1, 1), w = uniform(&counter, -1, 1) / small.radius;
        us_wheel_reaction a = us_soil_wheel_reaction(&soil, &small, load, h, v, vy, w);
        double power = a.moment.y * w - a.force.x * v - a.force.y * vy;
        // Lost power is not negative; rounding of sums of some 1e3 W.
        if (!(power >= -1e-9 * (1 + fabs(a.force.z))))
            fail_msg("gains %g W at v %g %g w %g h %g soil %d", -power, v, vy, w, h, i % 10);
        us_wheel_reaction b = us_soil_wheel_reaction(&soil, &small, load, h, -v, vy, -w),
                          c = us_soil_wheel_reaction(&soil, &small, load, h, v, -vy, w);
        assert_true(b.force.x == -a.force.x && b.force.z == a.force.z && b.moment.y == -a.moment.y &&
                    b.force.y == a.force.y);
        assert_true(c.force.x == a.force.x && c.force.z == a.force.z && c.moment.y == a.moment.y &&
                    c.force.y == -a.force.y);
        assert_true(isfinite(a.force.x) && isfinite(a.force.y) && isfinite(a.force.z) &&
                    isfinite(a.moment.y));
    }
}

static void a_wheel_that_slides_back_while_it_turns_forward_has_no_jump_in_its_forces(void **state) {
    (void)state;
    us_soil soil = fjs1(US_LATERAL_ISOTROPIC);
    const double spin = 0.3 / small.radius;
    us_wheel_reaction before = us_soil_wheel_reaction(&soil, &small, earth, 0.015, 0.01, 0, spin);
    double first = before.force.x;
    for (int i = 1; i <= 400; i++) {
        double v = 0.01 - 0.001 * i;  // from slow climbing through the spot to faster than the rim
        us_wheel_reaction a = us_soil_wheel_reaction(&soil, &small, earth, 0.015, v, 0, spin);
        // All in all the force changes by 60 N over 0.3 m/s: 0.2 N in a step, half of it more where the
        // slopes are steepest.
        if (!(fabs(a.force.x - before.force.x) < 0.5))
            fail_msg("at %g m/s the pull jumps from %g to %g N", v, before.force.x, a.force.x);
        assert_true(fabs(a.force.z - before.force.z) < 0.5 && fabs(a.moment.y - before.moment.y) < 0.05);
        before = a;
    }
    assert_true(before.force.x > first + 20);  // the soil behind resists too
}

static void pull_and_moment_grow_with_slip_and_the_side_gives_way(void **state) {
    (void)state;
    us_soil soil = fjs1(US_LATERAL_ISHIGAMI);
    us_wheel_force before = us_soil_wheel_force(&soil, &small, earth, 0.015, 0, 0.2);
    for (int i = 1; i <= 98; i++) {
        us_wheel_force f = us_soil_wheel_force(&soil, &small, earth, 0.015, 0.01 * i, 0.2);
        assert_true(f.fx > before.fx && f.moment > before.moment && f.fy_shear < before.fy_shear &&
                    f.fz < before.fz);
        before = f;
    }
}

static void no_sinkage_no_force_and_deep_sinkage_is_told(void **state) {
    (void)state;
    us_soil soil = us_soil_default();
    us_wheel_force none = us_soil_wheel_force(&soil, &small, earth, 0, 0.5, 0.1),
                   thin = us_soil_wheel_force(&soil, &small, earth, 1e-12, 0.5, 0.1);
    assert_true(none.fx == 0 && none.fz == 0 && none.moment == 0);
    // Continuous: of a wheel that touches by a picometre, cohesion alone on 0.4 mm^2.
    assert_true(fabs(thin.fx) < 1e-3 && fabs(thin.fz) < 1e-3);
    us_wheel_force deep = us_soil_wheel_force(&soil, &small, earth, 0.2, 0.5, 0.1);
    assert_true(deep.is_buried && isfinite(deep.fz) && isfinite(deep.moment));
    assert_true(isnan(us_soil_wheel_sinkage(&soil, &small, earth, 1e9, 0, 0)));
}

// Down to the last subnormal depth: forces fall with it, and never turn round.
static void the_least_sinkage_gives_the_least_force(void **state) {
    (void)state;
    for (int32_t i = 0;; i++) {
        const char *name;
        us_soil soil;
        if (!us_soil_get(i, &name, &soil, NULL)) break;
        for (int k = 0; k < 3; k++) {
            us_soil_history history = {.gravity = 9.81, .pressed = k == 1 ? 1e-5 : k == 2 ? 0.03 : 0};
            double before = 0;
            for (double h = 0x1p-1074; h < 1e-3; h *= 2) {
                us_wheel_force f = us_soil_wheel_force(&soil, &large, history, h, 0.2, 0.1);
                double most = 2e6 * sqrt(h);  // N: cohesion and stress of 1e6 Pa on the arc
                if (!(f.fz >= -1e-15 * most && fabs(f.fx) <= most && fabs(f.moment) <= most && f.fz <= most))
                    fail_msg("%s, %g m: Fz %g N, Fx %g N, M %g N m", name, h, f.fz, f.fx, f.moment);
                // The cosines of angles below 1e-6 rad differ by their last digits: there it is small, no
                // more.
                if (h > 1e-12 && !(f.fz >= before * (1 - 1e-3)))
                    fail_msg("%s, %g m: the load falls to %g", name, h, f.fz);
                before = f.fz;
            }
        }
    }
}

static void a_second_wheel_in_the_rut_sinks_hardly_deeper(void **state) {
    (void)state;
    us_soil soil = us_soil_default();
    double first = us_soil_wheel_sinkage(&soil, &large, earth, 200, 0.1, 0);
    us_soil_history rut = {.gravity = 9.81, .pressed = first};
    double lies = us_soil_rut_depth(&soil, large.width, first);
    assert_true(lies > 0 && lies < first);
    double second = lies + us_soil_wheel_sinkage(&soil, &large, rut, 200, 0.1, 0);
    // The stress of the second pass rises along the steep line and carries on a shorter arc: a little deeper,
    // not a second time as deep.
    if (!(second > 0.9 * first && second < 1.3 * first))
        fail_msg("first pass %g m, second %g m", first, second);
    // Reloading lies on the unloading line: at the depth pressed before it has the stress of then.
    us_soil plate = soil;
    plate.cohesion = plate.friction_angle = 0;
    us_wheel_force again = us_soil_wheel_force(&plate, &large, rut, first - lies, 0, 0);
    double k = soil.kc / large.width + soil.kphi;
    expect_exact("stress at the depth pressed before", k * pow(first, soil.n),
                 us_soil_reload_stiffness(&soil, large.width, first) * (first - lies));
    assert_true(again.peak_stress < k * pow(first, soil.n));
}

// The stress of a plate that was pressed to a depth, released and pressed again, by Wong's formula itself:
// p = p_u - ku (z_u - z), ku = k0 + Au z_u, where these are published and steeper than the fresh curve.
static void pressed_soil_follows_the_published_line(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double k0, a, deepest[3];
    } rows[] = {{"dry_sand", 0, 503e6, {0.01, 0.03, 0.1}}, {"sandy_loam", 0, 86e6, {0.12, 0.2, 0.4}}};
    for (int i = 0; i < 2; i++) {
        us_soil soil;
        assert_true(us_soil_find(rows[i].name, &soil));
        for (int j = 0; j < 3; j++) {
            double zu = rows[i].deepest[j], k = soil.kc / large.width + soil.kphi, pu = k * pow(zu, soil.n),
                   ku = rows[i].k0 + rows[i].a * zu;
            expect_exact("stiffness", us_soil_reload_stiffness(&soil, large.width, zu), ku);
            expect_exact("rut", us_soil_rut_depth(&soil, large.width, zu), zu - pu / ku);
        }
    }
}

// Whatever was pressed before: at no sinkage below its surface does soil carry less than fresh soil does, and
// the next wheel of the same weight sinks no deeper below the rut than the first below the fresh surface.
static void soil_that_was_pressed_is_never_softer_than_fresh_soil(void **state) {
    (void)state;
    for (int32_t i = 0;; i++) {
        const char *name;
        us_soil soil;
        if (!us_soil_get(i, &name, &soil, NULL)) break;
        // N; snow does not carry more.
        double weight = strcmp(name, "snow") == 0 ? 40 : 245, worst = 0,
               first = us_soil_wheel_sinkage(&soil, &large, earth, weight, 0.1, 0);
        assert_true(first > 0);
        for (double pressed = 1e-6; pressed < 0.15; pressed *= 1.3) {
            us_soil_history rut = {.gravity = 9.81, .pressed = pressed};
            double lies = us_soil_rut_depth(&soil, large.width, pressed);
            assert_true(lies >= 0 && lies < pressed);
            // The line meets the fresh curve where it left it.
            double k = soil.kc / large.width + soil.kphi;
            expect_exact("meets", us_soil_reload_stiffness(&soil, large.width, pressed) * (pressed - lies),
                         k * pow(pressed, soil.n));
            for (double h = 1e-5; h < 0.1; h *= 1.7) {
                double now = us_soil_wheel_force(&soil, &large, rut, h, 0, 0).peak_stress,
                       fresh = us_soil_wheel_force(&soil, &large, earth, h, 0, 0).peak_stress;
                if (!(now >= fresh * (1 - 1e-9)))
                    fail_msg("%s pressed to %g m carries %g Pa at %g m, fresh %g Pa", name, pressed, now, h,
                             fresh);
            }
            worst = fmax(worst, us_soil_wheel_sinkage(&soil, &large, rut, weight, 0.1, 0) / first);
        }
        printf("    %-12s first wheel %.3f mm, the next at most %.4f of that below the rut\n", name,
               1e3 * first, worst);
        if (!(worst <= 1 + 1e-6)) fail_msg("%s: the next wheel sinks %g times as deep", name, worst);
    }
}

// Published soils have a negative kc; they hold for wheels that are wide enough.
static void a_negative_kc_is_a_soil_where_it_carries(void **state) {
    (void)state;
    us_error err = {0};
    us_soil soil = us_soil_default();
    soil.kc = -5000;
    assert_int_equal(us_soil_check(&soil, &err), US_OK);
    expect_exact("modulus", us_soil_modulus(&soil, 0.1), soil.kphi - 50000);
    double h = us_soil_wheel_sinkage(&soil, &large, earth, 200, 0.1, 0);
    us_soil plain = us_soil_default();
    assert_true(h > us_soil_wheel_sinkage(&plain, &large, earth, 200, 0.1, 0));
    // A blade: nothing falls through.
    assert_true(us_soil_modulus(&soil, 1e-4) > 0);
    soil.kphi = 0;
    assert_int_equal(us_soil_check(&soil, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "carries nothing"));
}

static void the_library_is_sound_and_bad_soils_are_named(void **state) {
    (void)state;
    const char *name = NULL, *source = NULL;
    us_soil soil;
    int32_t n = 0;
    us_error err = {0};
    for (; us_soil_get(n, &name, &soil, &source); n++) {
        assert_int_equal(us_soil_check(&soil, &err), US_OK);
        assert_true(name[0] && source[0]);
        us_soil again;
        assert_true(us_soil_find(name, &again));
        assert_memory_equal(&soil, &again, sizeof soil);
    }
    assert_true(n >= 9);
    assert_false(us_soil_find("custard", &soil));
    soil = us_soil_default();
    *us_soil_parameter(&soil, "n", NULL, NULL) = 7;
    assert_int_equal(us_soil_check(&soil, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "n of the soil is 7"));
    soil = us_soil_default();
    soil.critical_angle = 0.1;
    assert_int_equal(us_soil_check(&soil, &err), US_ERR_VALUE);
    assert_null(us_soil_parameter(&soil, "colour", NULL, NULL));
}

// What the solver is told of how the shear falls as the rim goes faster over the soil is how the shear does
// fall, also where slip fades out.
static void the_slope_of_the_rows_is_that_of_the_force_at_a_few_millimetres_per_second(void **state) {
    (void)state;
    us_soil soil[1] = {fjs1(US_LATERAL_ISOTROPIC)};
    usi_geom ground = {.has_soil_map = false};
    const us_model model = {.geom = &ground, .n_geom = 1};
    const usi_contacts contacts = {.model = &model};
    usi_contact_state next = {.soil = soil};
    const us_touch seen = {.mass = 6.6};
    static const double speeds[] = {2e-3, 3e-3, 4e-3, 8e-3};
    for (int i = 0; i < 4; i++) {
        double memory[US_TOUCH_MEMORY] = {0}, v = speeds[i], r = small.radius;
        us_touch_law law;
        usi_soil_contact k = {.wheel = small,
                              .load = earth,
                              .sinkage = 0.015,
                              .vx = 0.7 * v,
                              .spin = v / r,
                              .direction = 1,
                              .share = 1,
                              .is_wheel = 1};
        assert_true(usi_soil_law(&contacts, &next, &next, &k, &seen, 0, memory, &law));
        double d = 0.01 * v, shear[2];
        for (int side = 0; side < 2; side++)
            shear[side] = us_soil_wheel_reaction_faded(soil, &small, earth, k.sinkage, k.vx + (side ? d : -d),
                                                       0, k.spin, k.blend)
                              .moment.y /
                          r;
        double slope = (shear[0] - shear[1]) / (2 * d);
        printf("    %g mm/s: blend %.3f, slope %.1f N s/m, in the rows %.1f\n", 1e3 * v, k.blend, slope,
               k.drag[0]);
        assert_true(k.blend > 0.1);
        // The rows take the difference over 2 % of the speed to one side, where the curve bends by a few
        // percent.
        if (fabs(k.drag[0] - slope) > 0.05 * slope)
            fail_msg("at %g m/s: %g N s/m instead of %g", v, k.drag[0], slope);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_state_has_the_forces_of_converged_quadrature),
        cmocka_unit_test(a_given_sinkage_gives_the_forces_of_the_table),
        cmocka_unit_test(a_given_load_gives_the_sinkage_of_the_table),
        cmocka_unit_test(dry_sand_and_mars_have_the_forces_of_their_tables),
        cmocka_unit_test(slopes_are_climbed_with_the_slip_of_the_table_or_not_at_all),
        cmocka_unit_test(without_friction_the_closed_forms_come_out),
        cmocka_unit_test(the_force_grows_with_sinkage_as_published),
        cmocka_unit_test(every_state_loses_energy_and_mirrors),
        cmocka_unit_test(a_wheel_that_slides_back_while_it_turns_forward_has_no_jump_in_its_forces),
        cmocka_unit_test(pull_and_moment_grow_with_slip_and_the_side_gives_way),
        cmocka_unit_test(no_sinkage_no_force_and_deep_sinkage_is_told),
        cmocka_unit_test(the_least_sinkage_gives_the_least_force),
        cmocka_unit_test(a_second_wheel_in_the_rut_sinks_hardly_deeper),
        cmocka_unit_test(pressed_soil_follows_the_published_line),
        cmocka_unit_test(soil_that_was_pressed_is_never_softer_than_fresh_soil),
        cmocka_unit_test(a_negative_kc_is_a_soil_where_it_carries),
        cmocka_unit_test(the_library_is_sound_and_bad_soils_are_named),
        cmocka_unit_test(the_slope_of_the_rows_is_that_of_the_force_at_a_few_millimetres_per_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
