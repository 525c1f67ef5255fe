// The mechanisms that several tests use: see build.h.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "build.h"

static const us_vec3 X = {1, 0, 0}, Y = {0, 1, 0}, Z = {0, 0, 1}, ORIGIN = {0, 0, 0};

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

us_spec *build_pendulum(double moment, double q0, double step, us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    int32_t bob = build_link(spec, "bob", 1, at(0, 0, -1), at(moment, moment, moment));
    build_joint(spec, "hinge", US_JOINT_REVOLUTE, US_WORLD, bob, ORIGIN, Y, q0, 0);
    return spec;
}

us_spec *build_double_pendulum(double step, us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    const us_vec3 rod = at(1.0 / 12, 1.0 / 12, 0), com = at(0, 0, -0.5);
    int32_t upper = build_link(spec, "upper", 1, com, rod), lower = build_link(spec, "lower", 1, com, rod);
    build_joint(spec, "shoulder", US_JOINT_REVOLUTE, US_WORLD, upper, ORIGIN, Y, 0.5, 1);
    build_joint(spec, "elbow", US_JOINT_REVOLUTE, upper, lower, at(0, 0, -1), Y, -0.3, 2);
    return spec;
}

us_spec *build_branched_tree(void) {
    static const int32_t parents[8] = {-1, 0, 1, 2, 3, 4, 1, 6};
    const us_vec3 axes[8] = {Z, Y, Y, Z, Y, X, Y, Z};
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "link%d", i);
        build_link(spec, name, 1 + 0.5 * i, at(0.02 * i, 0.01, 0.1), at(0.01 * (i + 1), 0.02, 0.03));
    }
    for (int32_t i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "joint%d", i);
        build_joint(spec, name, i == 6 ? US_JOINT_PRISMATIC : US_JOINT_REVOLUTE, parents[i], i,
                    at(0.1 * i, 0.05 * (i % 2), 0.2), axes[i], 0.1 * (i + 1), (i % 2 ? -0.2 : 0.2) * (i + 1));
    }
    return spec;
}

us_spec *build_chain(int32_t n, double step, us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    const double a = 0.2, b = 0.05;
    for (int32_t i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof name, "link%d", i);
        int32_t link = build_link(spec, name, 1, at(0.1, 0, 0),
                                  at((b * b + b * b) / 12, (a * a + b * b) / 12, (a * a + b * b) / 12));
        snprintf(name, sizeof name, "joint%d", i);
        build_joint(spec, name, US_JOINT_REVOLUTE, i ? link - 1 : US_WORLD, link, at(i ? 0.2 : 0, 0, 0),
                    i % 2 ? Z : Y, 0.1, 0);
    }
    return spec;
}

us_spec *build_rocker_differential(double lever, double step, us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    const double l2 = lever * lever;
    // Moments about the centre of mass such that those about the axis are 5, 2 and 2 for any lever.
    int32_t chassis = build_link(spec, "chassis", 10, at(0, 0, -lever), at(5, 5 - 10 * l2, 5));
    int32_t left = build_link(spec, "left", 2, at(lever, 0, 0), at(2, 2 - 2 * l2, 2));
    int32_t right = build_link(spec, "right", 2, at(0, 0, -lever), at(2, 2 - 2 * l2, 2));
    build_joint(spec, "pitch", US_JOINT_REVOLUTE, US_WORLD, chassis, ORIGIN, Y, 0, 0);
    int32_t ql = build_joint(spec, "left_rocker", US_JOINT_REVOLUTE, chassis, left, at(0, 0.4, 0), Y, 0, 0);
    int32_t qr =
        build_joint(spec, "right_rocker", US_JOINT_REVOLUTE, chassis, right, at(0, -0.4, 0), Y, 0, 0);
    build_coupling(spec, "differential", ql, 1, qr, 1, 0);
    return spec;
}

us_spec *build_rocker_bar(double step, us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    int32_t chassis = build_link(spec, "chassis", 10, at(0, 0, -0.2), at(0.5, 1, 1));
    int32_t bar = build_link(spec, "bar", 1, ORIGIN, at(0.05, 0.01, 0.05));
    build_joint(spec, "pitch", US_JOINT_REVOLUTE, US_WORLD, chassis, ORIGIN, Y, 0.3, 0);
    build_joint(spec, "bar_pivot", US_JOINT_REVOLUTE, chassis, bar, at(-0.5, 0, 0.3), Z, 0, 0);
    for (int side = 0; side < 2; side++) {
        const double y = side ? -0.4 : 0.4;
        char name[24];
        snprintf(name, sizeof name, "rocker%d", side);
        int32_t rocker = build_link(spec, name, 3, at(side ? 0 : 0.1, 0, -0.2), at(0.1, 0.2, 0.2));
        snprintf(name, sizeof name, "rocker_pivot%d", side);
        build_joint(spec, name, US_JOINT_REVOLUTE, chassis, rocker, at(0, y, 0), Y, 0, side ? -1 : 1);
        snprintf(name, sizeof name, "rod%d", side);
        int32_t rod = build_link(spec, name, 0.2, at(0.25, 0, 0), at(1e-4, 0.2 * 0.25 / 12, 0.2 * 0.25 / 12));
        us_joint_def def = build_joint_at(US_JOINT_UNIVERSAL, bar, rod, at(0, y, 0), Z);
        def.axis2 = Y;
        snprintf(name, sizeof name, "rod_pivot%d", side);
        build_joint_def(spec, name, &def);
        snprintf(name, sizeof name, "rod_end%d", side);
        build_loop(spec, name, US_LOOP_POINT, rod, at(0.5, 0, 0), rocker, at(0, 0, 0.3));
    }
    return spec;
}

us_spec *build_four_bar(double crank, double coupler, double rocker, double ground, double q0, double v0,
                        double step, us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    const us_vec3 up = at(0, -1, 0);  // angles about -y turn x towards z
    const double length[3] = {crank, coupler, rocker};
    static const char *const names[3] = {"crank", "coupler", "rocker"};
    int32_t link[3];
    for (int i = 0; i < 3; i++) {
        const double I = length[i] * length[i] / 12;
        link[i] = build_link(spec, names[i], 1, at(0.5 * length[i], 0, 0), at(0.001, I, I));
    }
    // Where coupler and rocker meet: two circles, the upper intersection.
    const double px = crank * cos(q0), pz = crank * sin(q0), dx = ground - px, dz = -pz, d = hypot(dx, dz);
    const double along = (coupler * coupler - rocker * rocker + d * d) / (2 * d),
                 off = sqrt(coupler * coupler - along * along);
    const double cx = px + (along * dx - off * dz) / d, cz = pz + (along * dz + off * dx) / d;
    build_joint(spec, "crank_pivot", US_JOINT_REVOLUTE, US_WORLD, link[0], ORIGIN, up, q0, v0);
    build_joint(spec, "coupler_pivot", US_JOINT_REVOLUTE, link[0], link[1], at(crank, 0, 0), up,
                atan2(cz - pz, cx - px) - q0, 0);
    build_joint(spec, "rocker_pivot", US_JOINT_REVOLUTE, US_WORLD, link[2], at(ground, 0, 0), up,
                atan2(cz, cx - ground), 0);
    build_loop(spec, "closure", US_LOOP_POINT, link[1], at(coupler, 0, 0), link[2], at(rocker, 0, 0));
    return spec;
}

us_spec *build_four_bars(int32_t n, double step, us_integrator integrator) {
    us_spec *spec = build_spec_gravity(at(0, -9.81, 0), step, integrator);
    char name[24];
    for (int32_t i = 0; i <= n; i++) {
        snprintf(name, sizeof name, "upright%d", i);
        int32_t rod = build_link(spec, name, 1, at(0, 0.5, 0), at(1.0 / 12, 0, 1.0 / 12));
        snprintf(name, sizeof name, "foot%d", i);
        build_joint(spec, name, US_JOINT_REVOLUTE, US_WORLD, rod, at(i, 0, 0), Z, 0, -1);
    }
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "level%d", i);
        int32_t rod = build_link(spec, name, 1, at(0.5, 0, 0), at(0, 1.0 / 12, 1.0 / 12));
        snprintf(name, sizeof name, "head%d", i);
        build_joint(spec, name, US_JOINT_REVOLUTE, i, rod, at(0, 1, 0), Z, 0, 1);
        snprintf(name, sizeof name, "closure%d", i);
        build_loop(spec, name, US_LOOP_POINT, rod, at(1, 0, 0), i + 1, at(0, 1, 0));
    }
    return spec;
}

// Numbers of Hairer and Wanner, Solving Ordinary Differential Equations II, section VII.7. The spring between
// the fixed point C and the point D of body 3 is a telescope: a hinge at C and a slide with the spring, both
// of next to no inertia, whose end is held at D by a loop.
us_spec *build_andrews(double step, us_integrator integrator, double tolerance) {
    const double xa = -0.06934, ya = -0.00227, xb = -0.03635, yb = 0.03273, xc = 0.014, yc = 0.072;
    const double d = 0.028, da = 0.0115, e = 0.02, ea = 0.01421, zf = 0.02, fa = 0.01421, rr = 0.007,
                 ra = 0.00092, ss = 0.035;
    const double sa = 0.01874, sb = 0.01043, sc = 0.018, sd = 0.02, ta = 0.02308, tb = 0.00916, u = 0.04,
                 ua = 0.01228, ub = 0.00449, zt = 0.04;
    const double stiffness = 4530, slack = 0.07785;
    static const double mass[7] = {0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498};
    static const double moment[7] = {2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5};
    static const double start[7] = {-0.0617138900142764496, 0,
                                    0.455279819163070380,   0.222668390165885885,
                                    0.487364979543842550,   -0.222668390165885885,
                                    1.23054744454982119};
    const us_vec3 com[7] = {at(ra, 0, 0),  at(-da, 0, 0),     at(sa, sb, 0), at(0, ea - e, 0),
                            at(ta, tb, 0), at(zf - fa, 0, 0), at(ua, ub, 0)};
    const us_vec3 pivot[7] = {ORIGIN,        at(rr, 0, 0), at(xb, yb, 0), at(zt, 0, 0),
                              at(xa, ya, 0), at(0, -u, 0), at(xa, ya, 0)};
    static const int32_t parent[7] = {US_WORLD, 0, US_WORLD, 4, US_WORLD, 6, US_WORLD};
    static const char *const names[7] = {"beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon"};
    us_spec *spec = build_spec(0, step, integrator);
    us_world_settings world = *us_spec_view_world(spec);
    world.tolerance = tolerance;
    us_spec_set_world(spec, &world);
    char name[24];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "K%d", i + 1);
        build_link(spec, name, mass[i], com[i], at(moment[i], moment[i], moment[i]));
    }
    for (int32_t i = 0; i < 7; i++)
        build_joint(spec, names[i], US_JOINT_CONTINUOUS, parent[i], i, pivot[i], Z, start[i], 0);
    const us_vec3 end2 = at(-d, 0, 0), point_D = at(sd, -sc, 0);
    build_loop(spec, "E3", US_LOOP_POINT, 1, end2, 2, at(0, -ss, 0));
    build_loop(spec, "E4", US_LOOP_POINT, 1, end2, 3, at(0, -e, 0));
    build_loop(spec, "E6", US_LOOP_POINT, 1, end2, 5, at(zf, 0, 0));
    const double xd = xb + sd * cos(start[2]) + sc * sin(start[2]) - xc,
                 yd = yb + sd * sin(start[2]) - sc * cos(start[2]) - yc;
    int32_t tube = build_link(spec, "tube", 0, ORIGIN, ORIGIN),
            piston = build_link(spec, "piston", 0, ORIGIN, ORIGIN);
    us_joint_def swing = build_joint_at(US_JOINT_CONTINUOUS, US_WORLD, tube, at(xc, yc, 0), Z),
                 slide = build_joint_at(US_JOINT_PRISMATIC, tube, piston, ORIGIN, X);
    // 1e-11 kg m^2 and kg: a hundred-thousandth of the smallest part, and 1e-8 of the motion. With less, the
    // spring's force over this mass leaves rounding in the telescope's acceleration that error control would
    // chase.
    swing.armature = slide.armature = 1e-11;
    swing.q0[0] = atan2(yd, xd);
    slide.q0[0] = hypot(xd, yd);
    slide.stiffness = stiffness;
    slide.rest = slack;
    build_joint_def(spec, "swing", &swing);
    build_joint_def(spec, "slide", &slide);
    build_loop(spec, "D", US_LOOP_POINT, piston, ORIGIN, 2, point_D);
    return spec;
}

us_spec *build_floating_arm(double gravity, double step, us_integrator integrator) {
    us_spec *spec = build_spec(gravity, step, integrator);
    int32_t base = build_link(spec, "base", 5, at(0.05, -0.02, 0.03), at(0.2, 0.3, 0.25));
    us_joint_def root = build_joint_at(US_JOINT_FLOATING, US_WORLD, base, at(1, 2, 3), X);
    const double twist[6] = {0.3, -0.2, 0.5, 0.4, -0.1, 0.2};
    memcpy(root.v0, twist, sizeof twist);
    build_joint_def(spec, "root", &root);
    const us_vec3 axes[3] = {Z, Y, X};
    for (int32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "link%d", i);
        int32_t link = build_link(spec, name, 1 + i, at(0.2, 0.03, 0), at(0.01, 0.04, 0.05));
        snprintf(name, sizeof name, "joint%d", i);
        build_joint(spec, name, US_JOINT_REVOLUTE, link - 1, link, at(i ? 0.4 : 0.2, 0, 0.1), axes[i],
                    0.2 * i, 1.5 - i);
    }
    return spec;
}

us_spec *build_heavy_top(double theta, double spin, double precession, double step,
                         us_integrator integrator) {
    us_spec *spec = build_spec(9.81, step, integrator);
    // 0.02 about the pivot across the axis is 0.02 - m l^2 = 0.01 about the centre of mass.
    int32_t top = build_link(spec, "top", 1, at(0, 0, 0.1), at(0.01, 0.01, 0.01));
    us_joint_def ball = build_joint_at(US_JOINT_SPHERICAL, US_WORLD, top, ORIGIN, X);
    ball.q0[0] = cos(0.5 * theta);
    ball.q0[2] = sin(0.5 * theta);
    // The vertical in the top's axes is (-sin theta, 0, cos theta); what it has along z is part of the spin.
    ball.v0[0] = -precession * sin(theta);
    ball.v0[2] = spin;
    build_joint_def(spec, "ball", &ball);
    return spec;
}

// A solid box of random sides in random axes: always a body that could exist.
static us_inertia random_inertia(uint64_t seed, uint64_t *counter) {
    us_inertia I;
    memset(&I, 0, sizeof I);
    I.mass = 0.1 * exp(build_uniform(seed, counter, 0, 4.6));
    I.com = build_random_vec3(seed, counter, 0.2);
    const double a = build_uniform(seed, counter, 0.05, 0.5), b = build_uniform(seed, counter, 0.05, 0.5),
                 c = build_uniform(seed, counter, 0.05, 0.5);
    const double m[3] = {I.mass / 12 * (b * b + c * c), I.mass / 12 * (a * a + c * c),
                         I.mass / 12 * (a * a + b * b)};
    us_mat3 R = us_quat_matrix(build_random_rotation(seed, counter));
    static const int row[6] = {0, 1, 2, 0, 0, 1}, column[6] = {0, 1, 2, 1, 2, 2};
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < 3; i++)
            I.about_com[k] += R.m[3 * row[k] + i] * m[i] * R.m[3 * column[k] + i];
    }
    return I;
}

us_spec *build_random_tree(uint64_t seed, int32_t n_link, us_integrator integrator) {
    us_spec *spec = build_spec_gravity(at(0.5, -0.3, -9.81), 1e-3, integrator);
    uint64_t counter = 0;
    for (int32_t i = 0; i < n_link; i++) {
        char name[24];
        snprintf(name, sizeof name, "link%d", i);
        us_link_def link = us_link_def_default();
        link.name = name;
        link.inertia = random_inertia(seed, &counter);
        us_spec_add_link(spec, &link, NULL);
        // Half of the links go on where the last one ended, one in ten starts a tree of its own.
        double where = build_uniform(seed, &counter, 0, 1), pick = build_uniform(seed, &counter, 0, 1);
        int32_t parent = i == 0 || where < 0.1 ? US_WORLD : where < 0.6 ? i - 1 : (int32_t)(pick * i);
        us_joint_type type = (us_joint_type)(build_uniform(seed, &counter, 0, 1) * US_JOINT_COUNT);
        if (i == 0 && build_uniform(seed, &counter, 0, 1) < 0.4) type = US_JOINT_FLOATING;
        us_joint_def j = build_joint_at(type, parent, i, build_random_vec3(seed, &counter, 0.5),
                                        build_random_vec3(seed, &counter, 1));
        j.X_PF.q = build_random_rotation(seed, &counter);
        j.axis2 = us_vec3_cross(j.axis, build_random_vec3(seed, &counter, 1));
        j.axis2 = us_vec3_add(j.axis2, us_vec3_scale(build_uniform(seed, &counter, -0.5, 0.5), j.axis));
        j.pitch = build_uniform(seed, &counter, -0.2, 0.2);
        bool is_ball = type == US_JOINT_SPHERICAL || type == US_JOINT_FLOATING;
        if (build_uniform(seed, &counter, 0, 1) < 0.3) j.armature = build_uniform(seed, &counter, 0, 0.5);
        if (build_uniform(seed, &counter, 0, 1) < 0.3) j.damping = build_uniform(seed, &counter, 0, 2);
        if (build_uniform(seed, &counter, 0, 1) < 0.3 && !is_ball) {
            j.stiffness = build_uniform(seed, &counter, 0, 50);
            j.rest = build_uniform(seed, &counter, -1, 1);
        }
        snprintf(name, sizeof name, "joint%d", i);
        build_joint_def(spec, name, &j);
    }
    return spec;
}
