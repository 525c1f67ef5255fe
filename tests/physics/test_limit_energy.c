// Links of any weight that fall against the limits of their joints: they gain no energy.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "build.h"

enum { MAX_LINK = 4 };

// An arm that carries fingers down to a millionth of its weight, each with limits, in random poses from rest.
static us_spec *random_arm(uint64_t seed, us_integrator integrator, double *out_scale) {
    uint64_t at = 0;
    const double step = pow(10, build_uniform(seed, &at, -4, -2.7));
    us_spec *spec = build_spec(9.81, step, integrator);
    const int32_t n = 2 + (int32_t)build_uniform(seed, &at, 0, MAX_LINK - 1);
    double mass = 1, length = 0.4, reach = 0;
    *out_scale = 0;
    for (int32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%d", (int)i);
        reach += length;
        *out_scale += mass * 9.81 * reach;
        const double moment = mass * length * length * build_uniform(seed, &at, 0.02, 0.3);
        const int32_t link = build_link(spec, name, mass, us_vec3_make(0, 0, -0.5 * length),
                                        us_vec3_make(moment, moment, moment));
        us_joint_def joint =
            build_joint_at(US_JOINT_REVOLUTE, i - 1, link,
                           us_vec3_make(i ? 0.1 * length : 0, 0, i ? -length : 0), us_vec3_make(0, 1, 0));
        joint.has_limits = i > 0;
        joint.lower = -build_uniform(seed, &at, 0, 0.5);
        joint.upper = build_uniform(seed, &at, 0.1, 1);
        joint.q0[0] =
            i ? build_uniform(seed, &at, joint.lower, joint.upper) : build_uniform(seed, &at, -2, 2);
        snprintf(name, sizeof name, "j%d", (int)i);
        build_joint_def(spec, name, &joint);
        mass *= pow(10, -build_uniform(seed, &at, 0, 3));
        length *= build_uniform(seed, &at, 0.05, 0.9);
    }
    return spec;
}

static double greatest_gain(uint64_t seed, us_integrator integrator) {
    double scale, gain = 0;
    built b = build_sim(random_arm(seed, integrator, &scale));
    const double start = build_total_energy(&b);
    const int64_t n = (int64_t)(2 / us_model_get_step(b.model));
    for (int64_t i = 0; i < n; i += 10) {
        build_step(&b, 10, NULL);
        gain = fmax(gain, (build_total_energy(&b) - start) / scale);
    }
    build_free(&b);
    return gain;
}

static void limits_give_no_energy(void **state) {
    (void)state;
    // The midpoint rule swings by some (step * frequency)^2 / 24 of a link's energy: of the fastest ones,
    // which are the lightest.
    static const struct {
        us_integrator integrator;
        double bound;
    } cases[] = {{US_INTEGRATOR_MIDPOINT, 1e-3}, {US_INTEGRATOR_RK4, 1e-3}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        for (uint64_t seed = 0; seed < 60; seed++) {
            const double gain = greatest_gain(seed, cases[k].integrator);
            if (!(gain <= cases[k].bound))
                fail_msg("integrator %d, seed %d: %g", (int)cases[k].integrator, (int)seed, gain);
        }
    }
}

// A weight on a slide that fell onto its lower limit: what holds it is 1e5 1/s^2 times its mass, or 1e5 N/m.
static void limits_hold_any_weight(void **state) {
    (void)state;
    for (double mass = 1e-3; mass < 1e6; mass *= 10) {
        us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
        const int32_t link = build_link(spec, "l", mass, us_vec3_make(0, 0, 0), us_vec3_make(1, 1, 1));
        us_joint_def joint =
            build_joint_at(US_JOINT_PRISMATIC, -1, link, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1));
        joint.has_limits = true;
        joint.lower = -0.1;
        joint.upper = 1;
        build_joint_def(spec, "j", &joint);
        built b = build_sim(spec);
        build_step(&b, 3000, NULL);
        // At rest to rounding: the decay is critical, with 316 1/s or faster.
        build_near("how far it gives way", joint.lower - us_sim_view_q(b.sim)[0],
                   9.81 * mass / (1e5 * fmax(1, mass)), 1e-12);
        build_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits_give_no_energy),
                                       cmocka_unit_test(limits_hold_any_weight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
