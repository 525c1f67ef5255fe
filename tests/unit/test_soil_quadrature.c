// The integrals over a wheel's rim against an independent quadrature.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "understudy/soil.h"

static const us_soil_history earth = {.gravity = 9.81};

static double uniform(uint64_t *counter, double from, double to) {
    return from + (to - from) * us_random_uniform(7, 1, (*counter)++);
}

// The forces by the formulas of docs/wheel-soil.md as they stand, Ishigami's shear, by Simpson's rule on
// panels that crowd towards entry and exit by powers of two, cut where the slip distance changes sign.
typedef struct judged {
    double fx, fz, moment;
} judged;

typedef struct state_now {
    us_soil soil;
    double r, b, h, s, entry, exit, peak, advance;
} state_now;

static double slip_distance(const state_now *c, double th) {
    return c->r * (c->entry - th - c->advance * (sin(c->entry) - sin(th)));
}

static judged judge_at(const state_now *c, double th, bool is_front) {
    double te = is_front ? th : c->entry - (th - c->exit) / (c->peak - c->exit) * (c->entry - c->peak);
    double z = c->r * 2 * sin(0.5 * (c->entry + te)) * sin(0.5 * (c->entry - te)),
           sigma = z > 0 ? (c->soil.kc / c->b + c->soil.kphi) * pow(z, c->soil.n) : 0;
    double j = slip_distance(c, th), tau = (c->soil.cohesion + sigma * tan(c->soil.friction_angle)) *
                                           copysign(-expm1(-fabs(j) / c->soil.shear_x), j);
    return (judged){tau * cos(th) - sigma * sin(th), tau * sin(th) + sigma * cos(th), tau};
}

static void judge_panel(const state_now *c, double from, double to, bool is_front, judged *sum) {
    enum { N = 16 };
    double d = (to - from) / N;
    for (int i = 0; i <= N; i++) {
        judged f = judge_at(c, from + d * i, is_front);
        double w = fabs(d) / 3 * (i == 0 || i == N ? 1 : i & 1 ? 4 : 2);
        sum->fx += w * f.fx;
        sum->fz += w * f.fz;
        sum->moment += w * f.moment;
    }
}

static judged judge(const state_now *c) {
    judged sum = {0};
    for (int part = 0; part < 2; part++) {
        double zero = part == 0 ? c->entry : c->exit, length = c->peak - zero;
        // Each octave in eight panels, each panel cut where the sign changes, found by halving.
        for (int octave = 0; octave < 45; octave++) {
            for (int k = 0; k < 8; k++) {
                double high = ldexp(1 + (k + 1) / 8.0, -octave - 1), low = ldexp(1 + k / 8.0, -octave - 1);
                double a = zero + length * low, b = zero + length * high, x = a, y = b;
                double at_a = slip_distance(c, a), at_b = slip_distance(c, b);
                if (at_a * at_b < 0) {
                    for (int n = 0; n < 60; n++) {
                        double m = 0.5 * (x + y);
                        if (slip_distance(c, m) * at_a > 0)
                            x = m;
                        else
                            y = m;
                    }
                    judge_panel(c, a, x, part == 0, &sum);
                    judge_panel(c, x, b, part == 0, &sum);
                } else {
                    judge_panel(c, a, b, part == 0, &sum);
                }
            }
        }
    }
    sum.fx *= c->r * c->b;
    sum.fz *= c->r * c->b;
    sum.moment *= c->r * c->r * c->b;
    return sum;
}

static void the_integrals_are_those_of_fine_quadrature_for_random_soils_wheels_and_slips(void **state) {
    (void)state;
    uint64_t counter = 5000;
    double worst[2] = {0};
    for (int i = 0; i < (getenv("US_LONG_TESTS") ? 20000 : 600); i++) {
        state_now c = {.r = uniform(&counter, 0.05, 0.3), .b = uniform(&counter, 0.05, 0.25)};
        const char *name;
        assert_true(us_soil_get(i % 10, &name, &c.soil, NULL));
        if (i % 3 == 0) {
            c.soil.n = uniform(&counter, 0.3, 1.8);
            c.soil.kphi *= pow(0.02, 1 - c.soil.n);
            c.soil.shear_x = uniform(&counter, 0.006, 0.04);
            c.soil.exit_ratio = uniform(&counter, 0, 1);
        }
        c.soil.lateral = US_LATERAL_ISHIGAMI;
        c.soil.shear_x_angle = c.soil.shear_radius = 0;
        c.h = uniform(&counter, 0.02, 0.4) * c.r;
        c.s = i % 4 == 0 ? uniform(&counter, -0.1, 0) : uniform(&counter, -0.97, 1);
        c.entry = acos(1 - c.h / c.r);
        c.exit = -acos(1 - c.soil.exit_ratio * c.h / c.r);
        c.peak = (c.soil.peak_angle + c.soil.peak_angle_slip * fabs(c.s)) * c.entry;
        c.advance = c.s >= 0 ? 1 - c.s : 1 / (1 + c.s);
        us_soil_wheel wheel = {.radius = c.r, .width = c.b};
        us_wheel_force f = us_soil_wheel_force(&c.soil, &wheel, earth, c.h, c.s, 0);
        judged exact = judge(&c);
        // Over all that acts on the arc.
        double scale = fabs(exact.fz) + fabs(exact.moment) / c.r,
               off = fmax(fmax(fabs(f.fx - exact.fx), fabs(f.fz - exact.fz)),
                          fabs(f.moment - exact.moment) / c.r) /
                     scale;
        worst[c.s < 0] = fmax(worst[c.s < 0], off);
        if (!(off <= 1e-6))
            fail_msg("%s n %g, r %g b %g h %g slip %g: off by %g (Fx %.9g, exact %.9g)", name, c.soil.n, c.r,
                     c.b, c.h, c.s, off, f.fx, exact.fx);
    }
    printf("    worst %.1e driving, %.1e braking\n", worst[0], worst[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_integrals_are_those_of_fine_quadrature_for_random_soils_wheels_and_slips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
