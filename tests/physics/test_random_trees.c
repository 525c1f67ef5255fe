// A thousand random trees with every kind of joint: the algorithms against each other, against finite
// differences, and against sums over single bodies that know nothing of recursion.
//
// Sizes: links of 0.1 to 10 kg and 5 to 50 cm, speeds up to 2, torques up to 10. The condition of such mass
// matrices goes up to about 1e5, so a solution has 1e-16 * 1e5 = 1e-11 of relative rounding, and torques
// computed back from accelerations likewise: 1e-10 leaves room for the worst of a thousand and none for a
// wrong term.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

enum { TREES = 1000, MAX_V = 128, MAX_BODY = 24 };

// The definitions are kept beside the model, so that poses can be found from the joint table's words alone.
typedef struct sample {
    built b;
    us_joint_def joint[MAX_BODY];
    double q[MAX_V + 32], v[MAX_V], tau[MAX_V], a[MAX_V];
    us_pose X[MAX_BODY];
    us_twist V[MAX_BODY];
} sample;

static sample *make_sample(uint64_t seed) {
    sample *s = calloc(1, sizeof *s);
    assert_non_null(s);
    uint64_t counter = 0;
    int32_t n_link = 1 + (int32_t)(us_random_bits(seed, 5, 0) % 14);
    us_spec *spec = build_random_tree(seed, n_link, US_INTEGRATOR_MIDPOINT);
    for (int32_t i = 0; i < n_link; i++)
        s->joint[i] = *us_spec_view_joint(spec, i);
    s->b = build_model(spec);
    assert_true(s->b.n.n_v <= MAX_V && s->b.n.n_body <= MAX_BODY);
    build_random_state(s->b.model, seed + 77, 2, s->q, s->v);
    for (int32_t i = 0; i < s->b.n.n_v; i++) {
        s->tau[i] = build_uniform(seed + 78, &counter, -10, 10);
        s->a[i] = build_uniform(seed + 78, &counter, -3, 3);
    }
    assert_int_equal(us_dyn_poses(s->b.dyn, s->q, s->X), US_OK);
    assert_int_equal(us_dyn_twists(s->b.dyn, s->q, s->v, s->V), US_OK);
    return s;
}

static void free_sample(sample *s) {
    build_free(&s->b);
    free(s);
}

static double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

static void set_column(double *out, us_vec3 w, us_vec3 v) {
    out[0] = w.x;
    out[1] = w.y;
    out[2] = w.z;
    out[3] = v.x;
    out[4] = v.y;
    out[5] = v.z;
}

// ---- The algorithms against each other ----

static void inverse_dynamics_of_forward_dynamics_gives_the_torques_back(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        double a[MAX_V], tau[MAX_V];
        us_wrench wrench[MAX_BODY];
        uint64_t counter = 1000;
        for (int32_t i = 0; i < s->b.n.n_body; i++)
            wrench[i] =
                (us_wrench){build_random_vec3(seed, &counter, 2), build_random_vec3(seed, &counter, 5)};
        const us_wrench *applied = seed % 2 ? wrench : NULL;
        assert_int_equal(us_dyn_forward(s->b.dyn, s->q, s->v, s->tau, applied, a), US_OK);
        assert_int_equal(us_dyn_inverse(s->b.dyn, s->q, s->v, a, applied, tau), US_OK);
        worst = larger(
            build_difference(tau, s->tau, s->b.n.n_v) / (build_greatest(s->tau, s->b.n.n_v) + 1e-300), worst);
        free_sample(s);
    }
    printf("    rnea(aba(tau)) - tau: worst %.2e of the greatest torque\n", worst);
    assert_true(worst <= 1e-10);
}

static void forward_dynamics_by_two_algorithms_agree(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        double a[MAX_V], c[MAX_V], k[MAX_V];
        int32_t rank = -1;
        assert_int_equal(us_dyn_forward(s->b.dyn, s->q, s->v, s->tau, NULL, a), US_OK);
        assert_int_equal(us_dyn_forward_crba(s->b.dyn, s->q, s->v, s->tau, NULL, c), US_OK);
        assert_int_equal(us_dyn_forward_constrained(s->b.dyn, s->q, s->v, s->tau, NULL, k, NULL, &rank),
                         US_OK);
        assert_int_equal(rank, 0);
        double size = build_greatest(a, s->b.n.n_v) + 1e-300;
        worst = larger(build_difference(a, c, s->b.n.n_v) / size, worst);
        worst = larger(build_difference(a, k, s->b.n.n_v) / size, worst);
        free_sample(s);
    }
    printf("    crba - aba: worst %.2e of the greatest acceleration\n", worst);
    assert_true(worst <= 1e-10);
}

static void mass_matrix_columns_are_inverse_dynamics_of_unit_accelerations(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v;
        double *H = calloc((size_t)(n * n) + 1, sizeof *H), unit[MAX_V] = {0}, bias[MAX_V], column[MAX_V];
        assert_int_equal(us_dyn_mass_matrix(s->b.dyn, s->q, H), US_OK);
        assert_int_equal(us_dyn_bias(s->b.dyn, s->q, s->v, bias), US_OK);
        // A column is a difference of two torques: rounding is relative to the bias too.
        double size = larger(build_greatest(H, n * n), build_greatest(bias, n)) + 1e-300;
        for (int32_t i = 0; i < n; i++) {
            unit[i] = 1;
            assert_int_equal(us_dyn_inverse(s->b.dyn, s->q, s->v, unit, NULL, column), US_OK);
            unit[i] = 0;
            for (int32_t r = 0; r < n; r++)
                worst = larger(fabs(column[r] - bias[r] - H[r * n + i]) / size, worst);
        }
        free(H);
        free_sample(s);
    }
    printf("    columns: worst %.2e\n", worst);
    assert_true(worst <= 1e-10);
}

// ---- Kinematics against the joint table ----

static us_quat turn(us_vec3 axis, double angle) {
    return us_quat_exp(us_vec3_scale(angle / us_vec3_norm(axis), axis));
}

// X_FM as the joint table in spec.h says it.
static us_pose joint_motion(const us_joint_def *j, const double *q) {
    us_pose X = us_pose_identity();
    us_vec3 unit = us_vec3_scale(1 / us_vec3_norm(j->axis), j->axis);
    us_quat plane = us_quat_from_z(unit);
    switch (j->type) {
    case US_JOINT_REVOLUTE:
    case US_JOINT_CONTINUOUS:
        X.q = turn(unit, q[0]);
        break;
    case US_JOINT_PRISMATIC:
        X.p = us_vec3_scale(q[0], unit);
        break;
    case US_JOINT_HELICAL:
        X.q = turn(unit, q[0]);
        X.p = us_vec3_scale(j->pitch * q[0], unit);
        break;
    case US_JOINT_CYLINDRICAL:
        X.q = turn(unit, q[0]);
        X.p = us_vec3_scale(q[1], unit);
        break;
    case US_JOINT_UNIVERSAL:
        X.q = us_quat_mul(turn(unit, q[0]), turn(j->axis2, q[1]));
        break;
    case US_JOINT_SPHERICAL:
        X.q = (us_quat){q[0], q[1], q[2], q[3]};
        break;
    case US_JOINT_PLANAR:
        X.q = turn(unit, q[2]);
        X.p = us_quat_rotate(plane, us_vec3_make(q[0], q[1], 0));
        break;
    case US_JOINT_FLOATING:
        X.q = (us_quat){q[0], q[1], q[2], q[3]};
        X.p = us_vec3_make(q[4], q[5], q[6]);
        break;
    default:
        break;
    }
    return X;
}

// Greatest difference of two poses: length, and angle in rad.
static double pose_difference(us_pose A, us_pose B) {
    double angle = us_vec3_norm(us_quat_log(us_quat_mul(us_quat_conj(A.q), B.q)));
    return larger(us_vec3_norm(us_vec3_sub(A.p, B.p)), angle);
}

static void poses_follow_the_joint_table(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        us_pose X[MAX_BODY];
        for (int32_t i = 0; i < s->b.n.n_body; i++) {
            const us_joint_def *j = &s->joint[i];
            us_pose X_WP = j->parent < 0 ? us_pose_identity() : X[j->parent];
            X[i] = us_pose_mul(us_pose_mul(X_WP, j->X_PF),
                               joint_motion(j, s->q + us_model_get_joint(s->b.model, (us_joint){i}).first_q));
            X[i].q = us_quat_normalize(X[i].q);
            worst = larger(pose_difference(X[i], s->X[i]), worst);
        }
        free_sample(s);
    }
    printf("    poses: worst %.2e m or rad\n", worst);
    // Fourteen links, 30 roundings each, of poses within 10 m; a quaternion's angle is good to 1e-8 squared
    // only near 0, which atan2 in the logarithm avoids.
    assert_true(worst <= 1e-12);
}

static void a_sim_reports_the_same_poses_and_twists(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        us_error err;
        assert_int_equal(us_sim_create(s->b.model, NULL, &s->b.sim, &err), US_OK);
        assert_int_equal(us_sim_set_state(s->b.sim, s->q, s->v), US_OK);
        for (int32_t i = 0; i < s->b.n.n_body; i++) {
            us_twist V = us_sim_get_twist(s->b.sim, (us_body){i});
            worst = larger(pose_difference(us_sim_get_pose(s->b.sim, (us_body){i}), s->X[i]), worst);
            worst = larger(us_vec3_norm(us_vec3_sub(V.w, s->V[i].w)), worst);
            worst = larger(us_vec3_norm(us_vec3_sub(V.v, s->V[i].v)), worst);
        }
        free_sample(s);
    }
    printf("    sim: worst %.2e m, rad or m/s\n", worst);
    assert_true(worst <= 1e-12);  // two ways to multiply the same dozen rotations
}

// ---- Derivatives ----

static void jacobians_equal_finite_differences(void **state) {
    (void)state;
    // Central differences: h^2 times third derivatives (lengths of a few metres) + 1e-16 * 10 / h, least near
    // h = 1e-5: 1e-9.
    const double h = 1e-5;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v, body = (int32_t)(us_random_bits(seed, 6, 0) % (uint64_t)s->b.n.n_body);
        uint64_t counter = 500;
        us_vec3 p = build_random_vec3(seed, &counter, 0.5);
        double J[6 * MAX_V + 6], dq[MAX_V] = {0}, q[MAX_V + 32];
        assert_int_equal(us_dyn_jacobian(s->b.dyn, s->q, (us_body){body}, p, J), US_OK);
        for (int32_t i = 0; i < n; i++) {
            us_pose X[2][MAX_BODY];
            for (int side = 0; side < 2; side++) {
                dq[i] = side ? h : -h;
                assert_int_equal(us_dyn_add(s->b.model, s->q, dq, q), US_OK);
                assert_int_equal(us_dyn_poses(s->b.dyn, q, X[side]), US_OK);
            }
            dq[i] = 0;
            us_vec3 v = us_vec3_scale(
                0.5 / h, us_vec3_sub(us_pose_point(X[1][body], p), us_pose_point(X[0][body], p)));
            us_vec3 w =
                us_vec3_scale(0.5 / h, us_quat_log(us_quat_mul(X[1][body].q, us_quat_conj(X[0][body].q))));
            double column[6];
            set_column(column, w, v);
            for (int r = 0; r < 6; r++)
                worst = larger(fabs(column[r] - J[r * n + i]), worst);
        }
        free_sample(s);
    }
    printf("    jacobian - finite difference: worst %.2e\n", worst);
    assert_true(worst <= 1e-8);
}

static void twists_are_jacobian_times_velocity(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v;
        for (int32_t body = 0; body < s->b.n.n_body; body++) {
            double J[6 * MAX_V + 6], twist[6];
            assert_int_equal(us_dyn_jacobian(s->b.dyn, s->q, (us_body){body}, us_vec3_make(0, 0, 0), J),
                             US_OK);
            set_column(twist, s->V[body].w, s->V[body].v);
            for (int r = 0; r < 6; r++) {
                for (int32_t i = 0; i < n; i++)
                    twist[r] -= J[r * n + i] * s->v[i];
                worst = larger(fabs(twist[r]), worst);
            }
        }
        free_sample(s);
    }
    printf("    twist - J v: worst %.2e\n", worst);
    assert_true(worst <= 1e-12);  // sums of up to 60 terms of size 10
}

static void link_accelerations_are_the_rate_of_twists(void **state) {
    (void)state;
    const double h =
        1e-5;  // as above; twists are products of speeds of a few units, third derivatives up to 1e3
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v;
        us_twist A[MAX_BODY], V[2][MAX_BODY];
        assert_int_equal(us_dyn_accelerations(s->b.dyn, s->q, s->v, s->a, A), US_OK);
        for (int side = 0; side < 2; side++) {
            double t = side ? h : -h, dq[MAX_V], v[MAX_V], q[MAX_V + 32];
            for (int32_t i = 0; i < n; i++) {
                dq[i] = t * s->v[i] + 0.5 * t * t * s->a[i];
                v[i] = s->v[i] + t * s->a[i];
            }
            assert_int_equal(us_dyn_add(s->b.model, s->q, dq, q), US_OK);
            assert_int_equal(us_dyn_twists(s->b.dyn, q, v, V[side]), US_OK);
        }
        for (int32_t i = 0; i < s->b.n.n_body; i++) {
            us_vec3 w = us_vec3_scale(0.5 / h, us_vec3_sub(V[1][i].w, V[0][i].w)),
                    v = us_vec3_scale(0.5 / h, us_vec3_sub(V[1][i].v, V[0][i].v));
            double size = 1 + us_vec3_norm(A[i].w) + us_vec3_norm(A[i].v);
            worst = larger(us_vec3_norm(us_vec3_sub(w, A[i].w)) / size, worst);
            worst = larger(us_vec3_norm(us_vec3_sub(v, A[i].v)) / size, worst);
        }
        free_sample(s);
    }
    printf("    acceleration - rate of twist: worst %.2e\n", worst);
    assert_true(worst <= 1e-7);
}

// ---- Dynamics against sums over single bodies ----

static us_vec3 world_moment(const us_inertia *I, us_quat q, us_vec3 a) {
    const double *m = I->about_com;
    us_vec3 b = us_quat_rotate(us_quat_conj(q), a);
    us_vec3 r = us_vec3_make(m[0] * b.x + m[3] * b.y + m[4] * b.z, m[3] * b.x + m[1] * b.y + m[5] * b.z,
                             m[4] * b.x + m[5] * b.y + m[2] * b.z);
    return us_quat_rotate(q, r);
}

// tau = sum over bodies of J^T (I dw/dt + w x I w, m (a - g)) at the centre of mass, plus armature, dampers
// and springs.
static void inverse_dynamics_is_newton_and_euler_summed_over_bodies(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v;
        double tau[MAX_V], sum[MAX_V] = {0};
        us_twist A[MAX_BODY];
        assert_int_equal(us_dyn_inverse(s->b.dyn, s->q, s->v, s->a, NULL, tau), US_OK);
        assert_int_equal(us_dyn_accelerations(s->b.dyn, s->q, s->v, s->a, A), US_OK);
        for (int32_t body = 0; body < s->b.n.n_body; body++) {
            double J[6 * MAX_V + 6], load[6];
            us_inertia I = us_model_get_inertia(s->b.model, (us_body){body});
            assert_int_equal(us_dyn_jacobian(s->b.dyn, s->q, (us_body){body}, I.com, J), US_OK);
            us_vec3 w = s->V[body].w, r = us_quat_rotate(s->X[body].q, I.com);
            us_vec3 a = us_vec3_add(
                A[body].v, us_vec3_add(us_vec3_cross(A[body].w, r), us_vec3_cross(w, us_vec3_cross(w, r))));
            us_vec3 moment = us_vec3_add(world_moment(&I, s->X[body].q, A[body].w),
                                         us_vec3_cross(w, world_moment(&I, s->X[body].q, w)));
            set_column(load, moment, us_vec3_scale(I.mass, us_vec3_sub(a, us_model_get_gravity(s->b.model))));
            for (int32_t i = 0; i < n; i++) {
                for (int k = 0; k < 6; k++)
                    sum[i] += J[k * n + i] * load[k];
            }
        }
        for (int32_t i = 0; i < s->b.n.n_joint; i++) {
            us_joint_info info = us_model_get_joint(s->b.model, (us_joint){i});
            for (int32_t k = 0; k < info.n_v; k++) {
                const us_joint_def *j = &s->joint[i];
                sum[info.first_v + k] +=
                    j->armature * s->a[info.first_v + k] + j->damping * s->v[info.first_v + k];
                if (j->stiffness > 0)
                    sum[info.first_v + k] += j->stiffness * (s->q[info.first_q + k] - j->rest);
            }
        }
        worst = larger(build_difference(tau, sum, n) / (1 + build_greatest(tau, n)), worst);
        free_sample(s);
    }
    printf("    rnea - sum over bodies: worst %.2e\n", worst);
    assert_true(worst <= 1e-11);  // rounding of a few hundred terms
}

static void a_wrench_on_a_link_acts_through_the_jacobian_transposed(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v, body = (int32_t)(us_random_bits(seed, 6, 1) % (uint64_t)s->b.n.n_body);
        uint64_t counter = 600;
        us_wrench wrench[MAX_BODY];
        memset(wrench, 0, sizeof wrench);
        wrench[body] =
            (us_wrench){build_random_vec3(seed, &counter, 5), build_random_vec3(seed, &counter, 5)};
        double J[6 * MAX_V + 6], load[6], tau[MAX_V], a[3][MAX_V], bias[2][MAX_V];
        set_column(load, wrench[body].n, wrench[body].f);
        assert_int_equal(us_dyn_jacobian(s->b.dyn, s->q, (us_body){body}, us_vec3_make(0, 0, 0), J), US_OK);
        for (int32_t i = 0; i < n; i++) {
            tau[i] = s->tau[i];
            for (int k = 0; k < 6; k++)
                tau[i] += J[k * n + i] * load[k];
        }
        assert_int_equal(us_dyn_forward(s->b.dyn, s->q, s->v, tau, NULL, a[0]), US_OK);
        assert_int_equal(us_dyn_forward(s->b.dyn, s->q, s->v, s->tau, wrench, a[1]), US_OK);
        assert_int_equal(us_dyn_forward_crba(s->b.dyn, s->q, s->v, s->tau, wrench, a[2]), US_OK);
        assert_int_equal(us_dyn_inverse(s->b.dyn, s->q, s->v, s->a, NULL, bias[0]), US_OK);
        assert_int_equal(us_dyn_inverse(s->b.dyn, s->q, s->v, s->a, wrench, bias[1]), US_OK);
        double size = build_greatest(a[0], n) + 1e-300;
        worst = larger(build_difference(a[0], a[1], n) / size, worst);
        worst = larger(build_difference(a[0], a[2], n) / size, worst);
        for (int32_t i = 0; i < n; i++)
            worst = larger(fabs(bias[0][i] - bias[1][i] - (tau[i] - s->tau[i])) /
                               (1 + build_greatest(bias[0], n)),
                           worst);
        free_sample(s);
    }
    printf("    wrench - J^T wrench: worst %.2e\n", worst);
    assert_true(worst <= 1e-10);
}

// ---- Energy and momentum ----

static void kinetic_energy_is_half_v_H_v(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v;
        double *H = calloc((size_t)(n * n) + 1, sizeof *H), sum = 0;
        us_energy e;
        assert_int_equal(us_dyn_mass_matrix(s->b.dyn, s->q, H), US_OK);
        assert_int_equal(us_dyn_energy(s->b.dyn, s->q, s->v, &e), US_OK);
        for (int32_t i = 0; i < n; i++) {
            for (int32_t k = 0; k < n; k++)
                sum += 0.5 * s->v[i] * H[i * n + k] * s->v[k];
        }
        worst = larger(fabs(sum - e.kinetic) / (1e-6 + build_greatest(H, n * n)), worst);
        free(H);
        free_sample(s);
    }
    printf("    kinetic energy: worst %.2e\n", worst);
    assert_true(worst <= 1e-12);
}

// The accelerations are given and the torques found, so that no light link accelerates at 1e5 and spoils the
// difference quotient.
static void the_rate_of_energy_is_the_power_of_torques_less_that_of_dampers(void **state) {
    (void)state;
    const double h = 1e-5;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        int32_t n = s->b.n.n_v;
        double tau[MAX_V], power = 0, size = 1;
        us_energy e[2];
        assert_int_equal(us_dyn_inverse(s->b.dyn, s->q, s->v, s->a, NULL, tau), US_OK);
        for (int side = 0; side < 2; side++) {
            double t = side ? h : -h, dq[MAX_V], v[MAX_V], q[MAX_V + 32];
            for (int32_t i = 0; i < n; i++) {
                dq[i] = t * s->v[i] + 0.5 * t * t * s->a[i];
                v[i] = s->v[i] + t * s->a[i];
            }
            assert_int_equal(us_dyn_add(s->b.model, s->q, dq, q), US_OK);
            assert_int_equal(us_dyn_energy(s->b.dyn, q, v, &e[side]), US_OK);
            size += fabs(e[side].kinetic) + fabs(e[side].potential);
        }
        for (int32_t i = 0; i < s->b.n.n_joint; i++) {
            us_joint_info info = us_model_get_joint(s->b.model, (us_joint){i});
            for (int32_t k = info.first_v; k < info.first_v + info.n_v; k++)
                power += s->v[k] * (tau[k] - s->joint[i].damping * s->v[k]);
        }
        double rate = (e[1].kinetic + e[1].potential - e[0].kinetic - e[0].potential) / (2 * h);
        worst = larger(fabs(rate - power) / size, worst);
        free_sample(s);
    }
    printf("    dE/dt - power: worst %.2e of the energy per second\n", worst);
    // Rounding of the energies over 2 h: 1e-15 / 2e-5 = 5e-11; truncation h^2 / 6 times rates cubed, about
    // 1e3: 2e-8.
    assert_true(worst <= 1e-7);
}

static void momentum_is_the_sum_over_bodies(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        sample *s = make_sample(seed);
        us_momentum p;
        us_vec3 moment = {0, 0, 0}, linear = {0, 0, 0}, angular = {0, 0, 0};
        double mass = 0;
        assert_int_equal(us_dyn_momentum(s->b.dyn, s->q, s->v, &p), US_OK);
        for (int32_t i = 0; i < s->b.n.n_body; i++) {
            us_inertia I = us_model_get_inertia(s->b.model, (us_body){i});
            bool is_moving = false;  // a body that only fixed joints hold on the world does not count
            for (int32_t k = i; k >= 0; k = s->joint[k].parent)
                is_moving = is_moving || s->joint[k].type != US_JOINT_FIXED;
            if (!is_moving) continue;
            us_vec3 c = us_pose_point(s->X[i], I.com),
                    v = us_vec3_add(s->V[i].v, us_vec3_cross(s->V[i].w, us_quat_rotate(s->X[i].q, I.com)));
            us_vec3 f = us_vec3_scale(I.mass, v);
            mass += I.mass;
            moment = us_vec3_add(moment, us_vec3_scale(I.mass, c));
            linear = us_vec3_add(linear, f);
            angular = us_vec3_add(angular,
                                  us_vec3_add(us_vec3_cross(c, f), world_moment(&I, s->X[i].q, s->V[i].w)));
        }
        us_vec3 com = mass > 0 ? us_vec3_scale(1 / mass, moment) : us_vec3_make(0, 0, 0);
        angular = us_vec3_sub(angular, us_vec3_cross(com, linear));
        double size = 1 + us_vec3_norm(linear) + us_vec3_norm(angular) + mass;
        worst = larger(fabs(p.mass - mass) / size, worst);
        worst = larger(us_vec3_norm(us_vec3_sub(p.com, com)), worst);
        worst = larger(us_vec3_norm(us_vec3_sub(p.linear, linear)) / size, worst);
        worst = larger(us_vec3_norm(us_vec3_sub(p.angular, angular)) / size, worst);
        free_sample(s);
    }
    printf("    momentum: worst %.2e\n", worst);
    assert_true(worst <= 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_dynamics_of_forward_dynamics_gives_the_torques_back),
        cmocka_unit_test(forward_dynamics_by_two_algorithms_agree),
        cmocka_unit_test(mass_matrix_columns_are_inverse_dynamics_of_unit_accelerations),
        cmocka_unit_test(poses_follow_the_joint_table),
        cmocka_unit_test(a_sim_reports_the_same_poses_and_twists),
        cmocka_unit_test(jacobians_equal_finite_differences),
        cmocka_unit_test(twists_are_jacobian_times_velocity),
        cmocka_unit_test(link_accelerations_are_the_rate_of_twists),
        cmocka_unit_test(inverse_dynamics_is_newton_and_euler_summed_over_bodies),
        cmocka_unit_test(a_wrench_on_a_link_acts_through_the_jacobian_transposed),
        cmocka_unit_test(kinetic_energy_is_half_v_H_v),
        cmocka_unit_test(the_rate_of_energy_is_the_power_of_torques_less_that_of_dampers),
        cmocka_unit_test(momentum_is_the_sum_over_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
