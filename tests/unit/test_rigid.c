// Rigid contact: complementarity holds, friction opposes sliding, redundant contacts have an answer, both
// solvers agree where they must.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contact/contact.h"

enum { MAX_POINT = 64, MAX_BODY = 32 };

// cmocka's own comparison works in single precision.
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static const double PI = 3.14159265358979323846;

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(23, stream, i);
}
static us_vec3 some_vector(uint64_t stream, uint64_t i, double size) {
    return us_vec3_make(uniform(stream, 3 * i, -size, size), uniform(stream, 3 * i + 1, -size, size),
                        uniform(stream, 3 * i + 2, -size, size));
}

typedef struct solid {
    double mass;
    us_vec3 I;  // in world axes
    us_vec3 at, v, w;
} solid;

typedef struct scene {
    solid body[MAX_BODY];
    int32_t n_body, n_point;
    int32_t a[MAX_POINT], b[MAX_POINT];
    us_vec3 p[MAX_POINT], d[MAX_POINT][3];
    double mu[MAX_POINT], offset[MAX_POINT];
    double A[9 * MAX_POINT * MAX_POINT], free[3 * MAX_POINT], g[3 * MAX_POINT];
} scene;

static scene *new_scene(void) {
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    return s;
}
static void add_box(scene *s, double mass, us_vec3 half, us_vec3 at, us_vec3 v) {
    double x = half.x * half.x, y = half.y * half.y, z = half.z * half.z;
    us_vec3 I = us_vec3_scale(mass / 3, us_vec3_make(y + z, x + z, x + y));
    s->body[s->n_body++] = (solid){mass, I, at, v, us_vec3_make(0, 0, 0)};
}
static void add_point(scene *s, int32_t a, int32_t b, us_vec3 p, us_vec3 n, double mu) {
    int32_t i = s->n_point++;
    us_quat q = us_quat_from_z(n);
    s->a[i] = a;
    s->b[i] = b;
    s->p[i] = p;
    s->mu[i] = mu;
    s->d[i][0] = n;
    s->d[i][1] = us_quat_rotate(q, us_vec3_make(1, 0, 0));
    s->d[i][2] = us_quat_rotate(q, us_vec3_make(0, 1, 0));
}
static void add_face(scene *s, int32_t a, int32_t b, us_vec3 at, double half, double mu) {
    for (int i = 0; i < 4; i++)
        add_point(s, a, b, us_vec3_add(at, us_vec3_make(i & 1 ? half : -half, i & 2 ? half : -half, 0)),
                  us_vec3_make(0, 0, 1), mu);
}

static us_vec3 divide(us_vec3 m, us_vec3 I) { return us_vec3_make(m.x / I.x, m.y / I.y, m.z / I.z); }

// The Delassus matrix and the velocities without impulses.
static void assemble(scene *s) {
    size_t n = 3 * (size_t)s->n_point;
    for (size_t i = 0; i < n; i++) {
        size_t p = i / 3;
        us_vec3 di = s->d[p][i % 3];
        s->free[i] = i % 3 == 0 ? s->offset[p] : 0;
        for (int32_t k = 0; k < s->n_body; k++) {
            double sign = (s->a[p] == k) - (s->b[p] == k);
            const solid *o = &s->body[k];
            s->free[i] +=
                sign * us_vec3_dot(di, us_vec3_add(o->v, us_vec3_cross(o->w, us_vec3_sub(s->p[p], o->at))));
        }
        for (size_t j = 0; j < n; j++) {
            size_t q = j / 3;
            us_vec3 dj = s->d[q][j % 3];
            s->A[i * n + j] = 0;
            for (int32_t k = 0; k < s->n_body; k++) {
                double sign = ((s->a[p] == k) - (s->b[p] == k)) * ((s->a[q] == k) - (s->b[q] == k));
                if (sign == 0) continue;
                const solid *o = &s->body[k];
                us_vec3 mi = us_vec3_cross(us_vec3_sub(s->p[p], o->at), di),
                        mj = us_vec3_cross(us_vec3_sub(s->p[q], o->at), dj);
                s->A[i * n + j] += sign * (us_vec3_dot(di, dj) / o->mass + us_vec3_dot(mi, divide(mj, o->I)));
            }
        }
    }
}

static void velocity(const scene *s, int32_t p, double u[3]) {
    size_t n = 3 * (size_t)s->n_point;
    for (size_t r = 0; r < 3; r++) {
        size_t i = 3 * (size_t)p + r;
        u[r] = s->free[i];
        for (size_t k = 0; k < n; k++)
            u[r] += s->A[i * n + k] * s->g[k];
    }
}
static us_vec3 body_velocity(const scene *s, int32_t k) {
    us_vec3 v = s->body[k].v;
    for (int32_t p = 0; p < s->n_point; p++) {
        double sign = (s->a[p] == k) - (s->b[p] == k);
        for (int r = 0; r < 3; r++)
            v = us_vec3_add(v, us_vec3_scale(sign * s->g[3 * p + r] / s->body[k].mass, s->d[p][r]));
    }
    return v;
}

// The room is full of rubbish at the start, and no byte after it is touched.
static bool direct(scene *s) {
    size_t n = usi_rigid_work(s->n_point);
    double *work = malloc((n + 1) * sizeof *work), guard = 12345.678;
    assert_non_null(work);
    memset(work, 0xa5, n * sizeof *work);
    work[n] = guard;
    bool is_done = usi_rigid_direct(s->n_point, s->A, s->free, s->mu, s->g, work);
    assert_memory_equal(work + n, &guard, sizeof guard);
    free(work);
    return is_done;
}

// The largest violation of the conditions of contact and friction, in units of velocity and of velocity times
// impulse: the friction is that point of the circle that takes most out of the sliding.
static double violation(const scene *s) {
    double most = 0;
    for (int32_t p = 0; p < s->n_point; p++) {
        double u[3], gn = s->g[3 * p], t1 = s->g[3 * p + 1], t2 = s->g[3 * p + 2], limit = s->mu[p] * gn;
        velocity(s, p, u);
        most = fmax(most, fmax(-gn, fmax(-u[0], fabs(gn * u[0]))));
        double outside = hypot(t1, t2) - limit, brake = limit * hypot(u[1], u[2]);
        most = fmax(most, fmax(outside, fabs(t1 * u[1] + t2 * u[2] + brake)));
    }
    return most;
}

// ---------------------------------------------------------------- scenes

// A loose tower: each body on two or three points of the one below or of the ground, some of them at the
// side.
static scene *random_scene(uint64_t seed, int32_t n_body, int32_t n_each) {
    scene *s = new_scene();
    for (int32_t i = 0; i < n_body; i++) {
        uint64_t at = (uint64_t)i;
        add_box(s, uniform(seed, at, 0.5, 2), us_vec3_make(0.12, 0.1, 0.08),
                us_vec3_add(us_vec3_make(0, 0, 0.2 * i), some_vector(seed + 1, at, 0.02)),
                some_vector(seed + 2, at, 1));
        s->body[i].w = some_vector(seed + 3, at, 2);
        for (int32_t k = 0; k < n_each; k++) {
            uint64_t o = (uint64_t)(i * n_each + k);
            us_vec3 n = us_vec3_add(us_vec3_make(0, 0, 1), some_vector(seed + 4, o, 0.3));
            us_vec3 p = us_vec3_add(s->body[i].at,
                                    us_vec3_add(us_vec3_make(0, 0, -0.1), some_vector(seed + 5, o, 0.08)));
            double mu = o % 5 == 4 ? 0 : uniform(seed + 6, o, 0.05, 0.8);
            s->offset[s->n_point] = uniform(seed + 7, o, -0.1, 0.3);
            add_point(s, i, i - 1, p, us_vec3_scale(1 / us_vec3_norm(n), n), mu);
        }
    }
    assemble(s);
    return s;
}

static void the_direct_solution_fulfils_complementarity_on_random_problems(void **state) {
    (void)state;
    int closed = 0, open = 0, sliding = 0, sticking = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        scene *s = random_scene(10 * seed, 1 + (int32_t)(seed % 6), 1 + (int32_t)(seed / 6 % 4));
        assert_true(direct(s));
        assert_true(violation(s) < 1e-9);  // velocities and impulses are of the order of 1
        for (int32_t p = 0; p < s->n_point; p++) {
            double u[3];
            velocity(s, p, u);
            open += s->g[3 * p] == 0;
            closed += s->g[3 * p] > 0;
            sliding += s->g[3 * p] > 0 && hypot(u[1], u[2]) > 1e-6;
            sticking += s->g[3 * p] > 0 && hypot(u[1], u[2]) < 1e-9;
        }
        free(s);
    }
    // The problems must contain all of it.
    assert_true(closed > 200 && open > 200 && sliding > 100 && sticking > 20);
}

static void the_iterative_solution_fulfils_the_conditions_on_the_circle(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        scene *s = random_scene(5000 + 10 * seed, 1 + (int32_t)(seed % 3), 1 + (int32_t)(seed / 6 % 3));
        int32_t n = usi_rigid_iterative(s->n_point, s->A, s->free, s->mu, s->g, 100000, 1e-13);
        assert_true(n < 100000);
        assert_true(violation(s) < 1e-9);  // changes of 1e-13 in a sweep that converges at 0.9999
        free(s);
    }
}

static void four_redundant_points_carry_a_box_evenly(void **state) {
    (void)state;
    scene *s = new_scene();
    add_box(s, 2, us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(0, 0, 0.1), us_vec3_make(0, 0, -0.00981));
    add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, 0.5);
    assemble(s);
    assert_true(direct(s));
    for (int i = 0; i < 4; i++) {
        assert_near(s->g[3 * i], 2 * 0.00981 / 4, 1e-8);  // the split is decided by a compliance of 1e-9
        assert_near(hypot(s->g[3 * i + 1], s->g[3 * i + 2]), 0, 1e-8);
    }
    assert_true(us_vec3_norm(body_velocity(s, 0)) < 1e-15);
    memset(s->g, 0, sizeof s->g);
    assert_true(usi_rigid_iterative(4, s->A, s->free, s->mu, s->g, 10000, 1e-16) < 10000);
    assert_true(us_vec3_norm(body_velocity(s, 0)) < 1e-13);
    free(s);
}

static void a_box_on_an_incline_slips_above_the_friction_angle_only(void **state) {
    (void)state;
    for (int i = 0; i < 32; i++) {
        double mu = 0.5, theta = atan(mu * (i % 2 ? 1.001 : 0.999)), turn = (i - i % 2) * PI / 16;
        scene *s = new_scene();
        us_vec3 v =
            us_vec3_scale(0.00981, us_vec3_make(sin(theta) * cos(turn), sin(theta) * sin(turn), -cos(theta)));
        add_box(s, 1, us_vec3_make(0.1, 0.1, 0.01), us_vec3_make(0, 0, 0.01), v);
        add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, mu);
        assemble(s);
        double left = fmax(0, 0.00981 * (sin(theta) - mu * cos(theta)));
        assert_true(usi_rigid_iterative(4, s->A, s->free, s->mu, s->g, 100000, 1e-17) < 100000);
        us_vec3 now = body_velocity(s, 0);
        assert_near(hypot(now.x, now.y), left, 1e-12);
        assert_true(direct(s));
        now = body_velocity(s, 0);
        assert_near(hypot(now.x, now.y), left, 1e-12);
        assert_near(now.z, 0, 1e-14);
        free(s);
    }
}

static void friction_has_no_preferred_direction(void **state) {
    (void)state;
    // A push along the surface of 0.999 and 1.001 times what friction holds, in 64 directions.
    for (int i = 0; i < 128; i++) {
        double mu = 0.5, theta = atan(mu * (i % 2 ? 1.001 : 0.999)), turn = (i - i % 2) * PI / 64;
        scene *s = new_scene();
        us_vec3 v =
            us_vec3_scale(0.00981, us_vec3_make(sin(theta) * cos(turn), sin(theta) * sin(turn), -cos(theta)));
        add_box(s, 1, us_vec3_make(0.1, 0.1, 0.01), us_vec3_make(0, 0, 0.01), v);
        add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, mu);
        assemble(s);
        assert_true(direct(s));
        us_vec3 now = body_velocity(s, 0);
        // Rounding of 0.00981 m/s, through four points that share it.
        double left = fmax(0, 0.00981 * (sin(theta) - mu * cos(theta)));
        assert_near(now.x, left * cos(turn), 1e-12);
        assert_near(now.y, left * sin(turn), 1e-12);
        assert_near(now.z, 0, 1e-14);
        free(s);
    }
}

static void both_solvers_agree_on_a_tower_that_slides_and_tips(void **state) {
    (void)state;
    // A tower that slides and tips along x, so that nothing moves in y.
    for (int n = 1; n <= 5; n++) {
        scene *s = new_scene();
        for (int i = 0; i < n; i++) {
            add_box(s, 1 + 0.1 * i, us_vec3_make(0.1, 0.1, 0.05), us_vec3_make(0.01 * i, 0, 0.05 + 0.1 * i),
                    us_vec3_make(0.3 + 0.2 * i, 0, -0.5));
            add_point(s, i, i - 1, us_vec3_make(0.08, 0, 0.1 * i), us_vec3_make(0, 0, 1), 0.3);
            add_point(s, i, i - 1, us_vec3_make(-0.08, 0, 0.1 * i), us_vec3_make(0, 0, 1), 0.3);
        }
        assemble(s);
        assert_true(direct(s));
        us_vec3 by_direct[MAX_BODY];
        for (int i = 0; i < n; i++)
            by_direct[i] = body_velocity(s, i);
        memset(s->g, 0, sizeof s->g);
        assert_true(usi_rigid_iterative(s->n_point, s->A, s->free, s->mu, s->g, 200000, 1e-14) < 200000);
        for (int i = 0; i < n; i++)
            assert_true(us_vec3_norm(us_vec3_sub(by_direct[i], body_velocity(s, i))) < 1e-9);
        assert_true(by_direct[0].x > 0.01);
        free(s);
    }
}

static void a_stack_of_ten_on_redundant_points_stands(void **state) {
    (void)state;
    scene *s = new_scene();
    for (int i = 0; i < 10; i++) {
        add_box(s, 1, us_vec3_make(0.05, 0.05, 0.05), us_vec3_make(0, 0, 0.05 + 0.1 * i),
                us_vec3_make(0, 0, -0.00981));
        add_face(s, i, i - 1, us_vec3_make(0, 0, 0.1 * i), 0.05, 0.6);
    }
    assemble(s);
    assert_true(direct(s));
    for (int i = 0; i < 10; i++) {
        double carried = 0;
        for (int k = 0; k < 4; k++)
            carried += s->g[3 * (4 * i + k)];
        assert_near(carried, (10 - i) * 0.00981, 1e-10);
        assert_true(us_vec3_norm(body_velocity(s, i)) < 1e-11);
    }
    free(s);
}

// Boxes on each other, thrown about, with `n_ring` rings of four points between each two: more points than a
// box has freedoms.
static scene *redundant_tower(uint64_t seed, int32_t n_body, int n_ring) {
    scene *s = new_scene();
    for (int32_t i = 0; i < n_body; i++) {
        uint64_t at = (uint64_t)i;
        add_box(s, uniform(seed, at, 0.5, 2), us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(0, 0, 0.1 + 0.2 * i),
                some_vector(seed + 1, at, 1));
        s->body[i].w = some_vector(seed + 2, at, 2);
        double mu = uniform(seed + 3, at, 0.05, 1.2);
        for (int k = 0; k < n_ring; k++)
            add_face(s, i, i - 1, us_vec3_make(0, 0, 0.2 * i), 0.1 - 0.04 * k, mu);
    }
    assemble(s);
    return s;
}

static void redundant_points_are_solved_as_exactly_as_others(void **state) {
    (void)state;
    int n_solved = 0, n = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        scene *s = redundant_tower(20000 + 10 * seed, 1 + (int32_t)(seed % 3), 1 + (int)(seed / 3 % 2));
        bool is_solved = direct(s);
        n++;
        n_solved += is_solved;
        if (is_solved) assert_true(violation(s) < 1e-9);  // velocities and impulses are of the order of 1
        free(s);
    }
    // Where it pivots in circles it says so.
    print_message("    %d of %d solved\n", n_solved, n);
    assert_int_equal(n_solved, n);
}

static void a_box_on_eight_points_is_carried_evenly_by_all_of_them(void **state) {
    (void)state;
    scene *s = new_scene();
    add_box(s, 2, us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(0, 0, 0.1), us_vec3_make(0.002, 0.001, -0.00981));
    add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, 0.5);
    add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.05, 0.5);
    assemble(s);
    assert_true(direct(s));
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += s->g[3 * i];
        assert_true(s->g[3 * i] >
                    0.1 * 2 * 0.00981 / 8);  // the push along tips it a little onto some of them
    }
    assert_near(sum, 2 * 0.00981, 1e-15);
    assert_true(us_vec3_norm(body_velocity(s, 0)) < 1e-15);
    free(s);
}

static void a_point_that_parts_gets_no_impulse_and_one_without_friction_only_a_normal_one(void **state) {
    (void)state;
    for (int is_direct = 0; is_direct < 2; is_direct++) {
        scene *s = new_scene();
        add_box(s, 1, us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(0, 0, 0.1), us_vec3_make(1, 0.5, 0.2));
        add_box(s, 1, us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(2, 0, 0.1), us_vec3_make(1, 0.5, -0.2));
        add_point(s, 0, -1, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), 0.5);
        add_point(s, 1, -1, us_vec3_make(2, 0, 0), us_vec3_make(0, 0, 1), 0);
        assemble(s);
        if (is_direct) {
            assert_true(direct(s));
        } else {
            usi_rigid_iterative(2, s->A, s->free, s->mu, s->g, 100, 1e-16);
        }
        for (int i = 0; i < 3; i++)
            assert_near(s->g[i], 0, 0);
        assert_near(s->g[3], 0.2, 1e-15);
        assert_near(s->g[4], 0, 0);
        assert_near(s->g[5], 0, 0);
        free(s);
    }
}

static void what_cannot_be_solved_is_refused_and_leaves_the_impulses_alone(void **state) {
    (void)state;
    // Two things that cannot move, one through the other; and a matrix that says a push pulls.
    for (int i = 0; i < 2; i++) {
        scene *s = new_scene();
        s->n_point = 1;
        s->mu[0] = 0;
        s->free[0] = -1;
        s->g[0] = 7;
        if (i) {
            s->A[0] = -1;
            s->A[4] = 2;
            s->A[8] = 2;
        }
        assert_false(direct(s));
        assert_near(s->g[0], 7, 0);
        free(s);
    }
}

static void the_same_problem_gives_the_same_bits(void **state) {
    (void)state;
    scene *s = random_scene(77, 6, 4), *t = random_scene(77, 6, 4);
    assert_true(direct(s) && direct(t));
    assert_memory_equal(s->g, t->g, sizeof s->g);
    free(s);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_direct_solution_fulfils_complementarity_on_random_problems),
        cmocka_unit_test(the_iterative_solution_fulfils_the_conditions_on_the_circle),
        cmocka_unit_test(four_redundant_points_carry_a_box_evenly),
        cmocka_unit_test(a_box_on_an_incline_slips_above_the_friction_angle_only),
        cmocka_unit_test(friction_has_no_preferred_direction),
        cmocka_unit_test(both_solvers_agree_on_a_tower_that_slides_and_tips),
        cmocka_unit_test(a_stack_of_ten_on_redundant_points_stands),
        cmocka_unit_test(redundant_points_are_solved_as_exactly_as_others),
        cmocka_unit_test(a_box_on_eight_points_is_carried_evenly_by_all_of_them),
        cmocka_unit_test(a_point_that_parts_gets_no_impulse_and_one_without_friction_only_a_normal_one),
        cmocka_unit_test(what_cannot_be_solved_is_refused_and_leaves_the_impulses_alone),
        cmocka_unit_test(the_same_problem_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
