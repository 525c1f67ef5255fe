// Gauss-Seidel over contact blocks: the laws hold at the solution, momentum is kept, and the answers are
// those of mechanics.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contact/contact.h"
#include "contact/contact__law.h"

enum { MAX_BODY = 64, MAX_BLOCK = 400 };

static const double STEP = 1e-3, GRAVITY = 9.81;

typedef struct heap {
    usi_free body[MAX_BODY];
    usi_block block[MAX_BLOCK];
    int32_t n_body, n_block;
    double k, c;  // of the points that are added
    double mu;
    us_vec3 O;
} heap;

// cmocka's own comparison works in single precision.
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(11, stream, i);
}
static us_vec3 some_vector(uint64_t stream, uint64_t i, double size) {
    return us_vec3_make(uniform(stream, 3 * i, -size, size), uniform(stream, 3 * i + 1, -size, size),
                        uniform(stream, 3 * i + 2, -size, size));
}

static heap *new_heap(double k, double mu) {
    heap *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    assert_non_null(s);
    memset(s, 0, sizeof *s);
    s->k = k;
    s->c = 2 * sqrt(k);
    s->mu = mu;
    s->O = us_vec3_make(0.3, -0.2, 0.15);  // not the centre of anything
    return s;
}

// A body with principal inertia (x, y, z) turned by q; a falling one has the weight's velocity already.
static int32_t add_body(heap *s, double mass, us_vec3 I, us_quat q, us_vec3 at, us_vec3 v, us_vec3 w) {
    usi_free *b = &s->body[s->n_body];
    us_mat3 R = us_quat_matrix(q);
    double inverse[3] = {I.x > 0 ? 1 / I.x : 0, I.y > 0 ? 1 / I.y : 0, I.z > 0 ? 1 / I.z : 0};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            b->inv_I[j][i] = 0;
            for (int p = 0; p < 3; p++)
                b->inv_I[j][i] += R.m[3 * i + p] * R.m[3 * j + p] * inverse[p];
        }
    }
    us_vec3 c = us_vec3_sub(at, s->O);
    b->c = usi_v4_from(c);
    b->c[3] = mass > 0 ? 1 / mass : 0;
    b->fw = usi_v4_from(w);
    b->fv = usi_v4_from(us_vec3_sub(v, us_vec3_cross(w, c)));
    return s->n_body++;
}
static int32_t add_box(heap *s, double mass, us_vec3 half, us_vec3 at, us_vec3 v) {
    double x = half.x * half.x, y = half.y * half.y, z = half.z * half.z;
    us_vec3 I = us_vec3_scale(mass / 3, us_vec3_make(y + z, x + z, x + y));
    return add_body(s, mass, I, us_quat_identity(), at, v, us_vec3_make(0, 0, 0));
}
static int32_t add_sphere(heap *s, double mass, double r, us_vec3 at, us_vec3 v, us_vec3 w) {
    double I = 0.4 * mass * r * r;
    return add_body(s, mass, us_vec3_make(I, I, I), us_quat_identity(), at, v, w);
}

static void set_row(heap *s, usi_block *k, int i, us_vec3 d, us_vec3 m) {
    (void)s;
    k->d[i] = usi_v4_from(d);
    k->m[i] = usi_v4_from(m);
}
static void set_compliance(heap *s, usi_block *k) {
    for (int i = 0; i < 3; i++)
        k->R[i] = 1 / (STEP * STEP * s->k + STEP * s->c);
    k->K[0] = k->K[1] = 1 / k->R[0];
}
static double erp(const heap *s) { return STEP * s->k / (STEP * s->k + s->c); }

// A contact point with normal n (from B to A) and gap phi; xi is the tangential stretch along its two
// tangents.
static usi_block *add_point(heap *s, int32_t a, int32_t b, us_vec3 p, us_vec3 n, double phi) {
    usi_block *k = &s->block[s->n_block++];
    us_quat q = us_quat_from_z(n);
    us_vec3 r = us_vec3_sub(p, s->O),
            d[3] = {n, us_quat_rotate(q, us_vec3_make(1, 0, 0)), us_quat_rotate(q, us_vec3_make(0, 1, 0))};
    *k = (usi_block){.law = USI_POINT, .n = 3, .a = a, .b_ = b, .mu = s->mu, .point = -1};
    for (int i = 0; i < 3; i++)
        set_row(s, k, i, d[i], us_vec3_cross(r, d[i]));
    set_compliance(s, k);
    k->b[0] = phi > 0 ? phi / STEP : erp(s) * phi / STEP;
    return k;
}

// Four corners of a face of side 2 half around `at`, normal z.
static void add_face(heap *s, int32_t a, int32_t b, us_vec3 at, double half, double phi) {
    for (int i = 0; i < 4; i++) {
        us_vec3 p = us_vec3_add(at, us_vec3_make(i & 1 ? half : -half, i & 2 ? half : -half, 0));
        add_point(s, a, b, p, us_vec3_make(0, 0, 1), phi);
    }
}

// By which of the two, on which threads.
typedef struct method {
    bool is_four;
    usi_pool *pool;
} method;
static method chosen;

// Solves with room that is full of rubbish at the start.
static int32_t solve(heap *s, int32_t min_sweep, int32_t max_sweep, double tol) {
    size_t bytes = chosen.is_four ? usi_gauss_seidel_four_bytes(s->n_body, s->n_block)
                                  : usi_gauss_seidel_bytes(s->n_body, s->n_block);
    char *work = malloc(bytes + 8);
    assert_non_null(work);
    memset(work, 0xa5, bytes + 8);
    int32_t n = chosen.is_four ? usi_gauss_seidel_four(s->body, s->n_body, s->block, s->n_block, min_sweep,
                                                       max_sweep, tol, work, chosen.pool)
                               : usi_gauss_seidel(s->body, s->n_body, s->block, s->n_block, min_sweep,
                                                  max_sweep, tol, work);
    for (int i = 0; i < 8; i++)
        assert_int_equal((unsigned char)work[bytes + (size_t)i], 0xa5);
    free(work);
    return n;
}

static void velocity_of(const heap *s, const usi_block *k, double u[3]) {
    usi_v4 w = usi_v4_zero(), v = usi_v4_zero();
    if (k->a >= 0) {
        w += s->body[k->a].w;
        v += s->body[k->a].v;
    }
    if (k->b_ >= 0) {
        w -= s->body[k->b_].w;
        v -= s->body[k->b_].v;
    }
    for (int i = 0; i < 3; i++)
        u[i] = usi_v4_dot(k->m[i], w) + usi_v4_dot(k->d[i], v);
}
static us_vec3 at_centre(const heap *s, int32_t i) {
    const usi_free *b = &s->body[i];
    return us_vec3_add(usi_v4_vec3(b->v), us_vec3_cross(usi_v4_vec3(b->w), usi_v4_vec3(b->c)));
}

// The largest violation of any block's law, as a velocity (R g).
static double law_error(const heap *s) {
    double most = 0;
    for (int32_t i = 0; i < s->n_block; i++) {
        usi_block k = s->block[i];
        double u[3], g[3];
        velocity_of(s, &k, u);
        usi_law_impulse(&k, u, true, g);
        for (int j = 0; j < 3 && j < k.n; j++)
            most = fmax(most, k.R[j > 0] * fabs(g[j] - k.g[j]));
    }
    return most;
}

// The largest difference between a body's change of motion and what the impulses give, m/s and rad/s.
static double momentum_error(const heap *s) {
    double most = 0;
    for (int32_t i = 0; i < s->n_body; i++) {
        const usi_free *b = &s->body[i];
        usi_v4 F = usi_v4_zero(), N = usi_v4_zero();
        for (int32_t j = 0; j < s->n_block; j++) {
            const usi_block *k = &s->block[j];
            double sign = (k->a == i) - (k->b_ == i);
            for (int r = 0; r < 3; r++) {
                F += sign * k->g[r] * k->d[r];
                N += sign * k->g[r] * k->m[r];
            }
        }
        usi_v4 about_c = N - usi_v4_cross(usi_v4_from(usi_v4_vec3(b->c)), F), dw = b->w - b->fw;
        usi_v4 dv = b->v - b->fv + usi_v4_cross(dw, usi_v4_from(usi_v4_vec3(b->c))), expected = usi_v4_zero();
        for (int r = 0; r < 3; r++)
            expected += b->inv_I[r] * about_c[r];
        for (int r = 0; r < 3; r++)
            most = fmax(most, fmax(fabs(dv[r] - F[r] * b->c[3]), fabs(dw[r] - expected[r])));
    }
    return most;
}

// ---------------------------------------------------------------- against mechanics

static void a_box_on_four_points_carries_its_weight(void **state) {
    (void)state;
    heap *s = new_heap(1e6, 0.5);
    double phi = -2.0 * GRAVITY / (4 * s->k);  // where four springs carry 2 kg
    add_box(s, 2, us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(0, 0, 0.1), us_vec3_make(0, 0, -GRAVITY * STEP));
    add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, phi);
    solve(s, 1, 2000, 1e-17);
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += s->block[i].g[0];
        assert_near(s->block[i].g[0], 2 * GRAVITY * STEP / 4, 1e-12);  // rounding of phi/h
    }
    assert_near(sum, 2 * GRAVITY * STEP, 1e-12);
    assert_near(us_vec3_norm(at_centre(s, 0)), 0, 1e-13);
    free(s);
}

static void a_falling_box_is_stopped_by_implicit_springs(void **state) {
    (void)state;
    heap *s = new_heap(1e6, 0.5);
    add_box(s, 2, us_vec3_make(0.1, 0.1, 0.1), us_vec3_make(0, 0, 0.1), us_vec3_make(0, 0, -1));
    add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, 0);
    solve(s, 1, 500, 1e-16);
    // m (u - u0) = -4 u / R
    double u = -1 / (1 + 4 / (2 * s->block[0].R[0]));
    assert_near(at_centre(s, 0).z, u, 1e-13);
    free(s);
}

static void a_sliding_sphere_is_braked_along_its_path_in_every_direction(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        heap *s = new_heap(1e6, 0.3);
        double angle = 0.1 + i * 0.5, r = 0.2, m = 3, speed = 2;
        us_vec3 along = us_vec3_make(cos(angle), sin(angle), 0);
        us_vec3 v = us_vec3_scale(speed, along);
        v.z = -GRAVITY * STEP;
        add_sphere(s, m, r, us_vec3_make(0.4, 0.1, r), v, us_vec3_make(0, 0, 0));
        add_point(s, 0, -1, us_vec3_make(0.4, 0.1, 0), us_vec3_make(0, 0, 1), -m * GRAVITY / s->k);
        solve(s, 1, 50, 1e-16);
        us_vec3 now = at_centre(s, 0), w = usi_v4_vec3(s->body[0].w);
        double dv = 0.3 * GRAVITY * STEP, dw = 2.5 * dv / r;
        assert_near(now.x, (speed - dv) * along.x, 1e-12);
        assert_near(now.y, (speed - dv) * along.y, 1e-12);
        assert_near(w.x, -dw * along.y, 1e-12);
        assert_near(w.y, dw * along.x, 1e-12);
        assert_near(w.z, 0, 1e-15);
        free(s);
    }
}

static void an_oblique_impact_rolls_below_the_two_sevenths_limit_and_slips_above(void **state) {
    (void)state;
    // A hard sphere: the tangential impulse that makes it roll is 2/7 m vt, the normal one m vn; so it slips
    // when vt > 3.5 mu vn.
    for (int i = 0; i < 2; i++) {
        heap *s = new_heap(1e14, 0.4);
        double vt = i ? 1.5 : 1.3, m = 0.5, r = 0.1;
        add_sphere(s, m, r, us_vec3_make(0, 0, r), us_vec3_make(vt, 0, -1), us_vec3_make(0, 0, 0));
        add_point(s, 0, -1, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), 0);
        solve(s, 1, 50, 1e-16);
        double left = i ? vt - 0.4 : vt * 5 / 7;
        assert_near(at_centre(s, 0).x, left, 1e-6);  // the compliance is 1e-8 of the mass
        assert_near(at_centre(s, 0).z, 0, 1e-6);
        free(s);
    }
}

static void a_box_on_an_incline_slips_above_the_friction_angle_only(void **state) {
    (void)state;
    // Seen from the incline gravity leans; the direction of the lean is arbitrary.
    for (int i = 0; i < 20; i++) {
        double mu = 0.5, ratio = i % 2 ? 1.001 : 0.999, theta = atan(mu * ratio), turn = 0.3 * i;
        heap *s = new_heap(1e6, mu);
        us_vec3 v = us_vec3_scale(GRAVITY * STEP,
                                  us_vec3_make(sin(theta) * cos(turn), sin(theta) * sin(turn), -cos(theta)));
        add_box(s, 1, us_vec3_make(0.1, 0.1, 0.0001), us_vec3_make(0, 0, 0), v);  // flat: no tilting
        add_face(s, 0, -1, us_vec3_make(0, 0, 0), 0.1, -GRAVITY * cos(theta) / (4 * s->k));
        // The anchors are stretched to what holding asks for.
        for (int k = 0; k < 4; k++) {
            s->block[k].b[1] = erp(s) / STEP * GRAVITY * sin(theta) * cos(turn) / (4 * s->k);
            s->block[k].b[2] = erp(s) / STEP * GRAVITY * sin(theta) * sin(turn) / (4 * s->k);
        }
        solve(s, 1, 400, 1e-16);
        us_vec3 now = at_centre(s, 0);
        double slip = hypot(now.x, now.y), left = GRAVITY * STEP * (sin(theta) - mu * cos(theta));
        assert_near(slip, left > 0 ? left : 0, 1e-10);
        free(s);
    }
}

static void a_damper_slows_a_sliding_point_mass_beside_friction(void **state) {
    (void)state;
    heap *s = new_heap(1e6, 0.3);
    add_body(s, 2, us_vec3_make(0, 0, 0), us_quat_identity(), us_vec3_make(0, 0, 0.1),
             us_vec3_make(1.5, -2, -GRAVITY * STEP), us_vec3_make(0, 0, 0));
    usi_block *k = add_point(s, 0, -1, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), -2 * GRAVITY / s->k);
    k->viscous = 0.7;
    k->b[1] = 0.02;
    k->b[2] = -0.03;
    solve(s, 1, 200, 1e-16);
    us_vec3 now = at_centre(s, 0);
    // Friction points against ut + b, the damper against ut.
    double u[2] = {now.x + 0.02, now.y - 0.03}, n = hypot(u[0], u[1]), load = 2 * GRAVITY * STEP;
    assert_near(2 * (now.x - 1.5), -0.3 * load * u[0] / n - 0.7 * now.x, 1e-12);
    assert_near(2 * (now.y + 2), -0.3 * load * u[1] / n - 0.7 * now.y, 1e-12);
    assert_true(law_error(s) < 1e-13);
    free(s);
}

static void tied_bodies_share_their_momentum(void **state) {
    (void)state;
    heap *s = new_heap(1e13, 0);
    add_sphere(s, 1, 0.1, us_vec3_make(0, 0, 0), us_vec3_make(3, 0, 0), us_vec3_make(0, 0, 0));
    add_sphere(s, 2, 0.1, us_vec3_make(0, 0, 0), us_vec3_make(0, 1, 0), us_vec3_make(0, 0, 0));
    usi_block *k = add_point(s, 0, 1, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), 0);
    k->law = USI_EQUAL;
    solve(s, 1, 50, 1e-16);
    for (int i = 0; i < 2; i++) {
        us_vec3 v = at_centre(s, i);
        assert_near(v.x, 1, 1e-6);  // the compliance is 1e-7 of the mass
        assert_near(v.y, 2.0 / 3, 1e-6);
        assert_near(v.z, 0, 1e-15);
    }
    free(s);
}

static usi_block *add_turn(heap *s, double torsion, double rolling) {
    usi_block *point = &s->block[s->n_block - 1], *k = &s->block[s->n_block++];
    *k = (usi_block){.law = USI_ROTATION,
                     .n = 3,
                     .a = point->a,
                     .b_ = point->b_,
                     .mu = torsion,
                     .limit = rolling,
                     .point = -1};
    for (int i = 0; i < 3; i++)
        k->m[i] = point->d[i];
    set_compliance(s, k);
    return k;
}

static void torsion_brakes_spin_by_its_limit_and_then_holds_it(void **state) {
    (void)state;
    double m = 2, r = 0.1, I = 0.4 * m * r * r, torsion = 0.01, change = torsion * m * GRAVITY * STEP / I;
    for (int i = 0; i < 2; i++) {
        heap *s = new_heap(1e6, 0.5);
        double spin = i ? 0.5 * change : 4 * change;
        add_sphere(s, m, r, us_vec3_make(0, 0, r), us_vec3_make(0, 0, -GRAVITY * STEP),
                   us_vec3_make(0, 0, spin));
        add_point(s, 0, -1, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), -m * GRAVITY / s->k);
        usi_block *k = add_turn(s, torsion, 0.003);
        solve(s, 1, 50, 1e-16);
        // Held: I (w - spin) = -w / R.
        assert_near(s->body[0].w[2], i ? spin / (1 + 1 / (k->R[0] * I)) : spin - change, 1e-12);
        assert_true(law_error(s) < 1e-14);
        free(s);
    }
}

static void swapping_the_bodies_of_a_block_swaps_the_signs_only(void **state) {
    (void)state;
    heap *s = new_heap(1e6, 0.3), *t = new_heap(1e6, 0.3);
    for (int i = 0; i < 2; i++) {
        heap *h = i ? t : s;
        add_box(h, 1, us_vec3_make(0.1, 0.2, 0.1), us_vec3_make(0, 0, 0.1), us_vec3_make(1, 0.5, -1));
        add_point(h, i ? -1 : 0, i ? 0 : -1, us_vec3_make(0.1, 0.2, 0), us_vec3_make(0, 0, i ? -1 : 1), 0);
        solve(h, 1, 100, 1e-16);
    }
    for (int i = 0; i < 3; i++) {
        assert_near(s->body[0].w[i], t->body[0].w[i], 1e-12);
        assert_near(s->body[0].v[i], t->body[0].v[i], 1e-12);
    }
    assert_true(fabs(s->body[0].w[0]) > 0.1);
    free(s);
    free(t);
}

// ---------------------------------------------------------------- many bodies

// Bodies in a loose lattice, three by three in each layer, of unlike masses and inertias; points between
// neighbours and, all around, to the world.
static heap *random_heap(uint64_t seed, int32_t n_body, bool has_extras) {
    heap *s = new_heap(1e6, 0);
    for (int32_t i = 0; i < n_body; i++) {
        uint64_t at = (uint64_t)i;
        double m = uniform(seed, 1000 + at, 0.5, 2), size = 0.006 * m;
        us_vec3 I = us_vec3_scale(
            size, us_vec3_make(uniform(seed, 2000 + at, 0.6, 1), uniform(seed, 3000 + at, 0.6, 1), 1));
        int32_t column = i % 3, line = i / 3 % 3, layer = i / 9;
        us_vec3 p = us_vec3_add(us_vec3_scale(0.2, us_vec3_make(column, line, layer)),
                                some_vector(seed + 2, at, 0.02));
        add_body(s, m, I, us_quat_exp(some_vector(seed + 1, at, 2)), p, some_vector(seed + 3, at, 0.2),
                 some_vector(seed + 4, at, 1));
    }
    for (int32_t i = 0; i < 6 * n_body; i++) {
        // Every second point is where the last one was, a little aside.
        uint64_t at = (uint64_t)i;
        int32_t a = i / 6, way = i % 6 / 2,
                stride = way == 0   ? 1
                         : way == 1 ? 3
                                    : 9,
                place = way == 0   ? a % 3
                        : way == 1 ? a / 3 % 3
                                   : a / 9;
        int32_t b = place > 0 ? a - stride : -1;
        us_vec3 n = some_vector(seed + 5, at, 0.2),
                p = us_vec3_add(us_vec3_add(usi_v4_vec3(s->body[a].c), s->O),
                                some_vector(seed + 6, at, 0.04));
        double *axis[3] = {&n.x, &n.y, &n.z}, *side[3] = {&p.x, &p.y, &p.z};
        *axis[way] += 1;
        *side[way] -= 0.1;
        s->mu = i % 7 == 0 ? 0 : i % 29 == 0 ? 0.9 : uniform(seed, 4000 + at, 0.05, 0.6);
        usi_block *k = add_point(s, a, b, p, us_vec3_scale(1 / us_vec3_norm(n), n),
                                 uniform(seed, 5000 + at, -1e-4, 1e-4));
        k->b[1] = uniform(seed, 6000 + at, -0.02, 0.02);
        k->b[2] = uniform(seed, 7000 + at, -0.02, 0.02);
        for (int j = 0; j < 3; j++)
            k->g[j] = uniform(seed, 8000 + 3 * at + (uint64_t)j, -0.01, 0.05);
        if (!has_extras) continue;
        // Damped points are pressed firmly: the damper's law jumps where the normal impulse vanishes, and a
        // point just there may have no answer.
        if (i % 5 == 0) {
            k->viscous = uniform(seed, 9000 + at, 0, 0.02);
            k->b[0] = -0.3;
        }
        if (i % 6 == 1) add_turn(s, 0.01, 0.004);
        if (i % 13 == 2 && i % 6 != 1) {
            k->law = USI_EQUAL;
            k->n = 1 + i % 3;
        }
    }
    return s;
}

static void every_law_holds_at_the_solution_of_random_heaps(void **state) {
    (void)state;
    int slipping = 0, sticking = 0, open = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        heap *s = random_heap(100 * seed, 3 + (int32_t)(seed % 27), true);
        int32_t n = solve(s, 1, 20000, 1e-14);
        assert_true(n < 20000);
        // tol is the change of one sweep; what is left is larger by 1/(1 - rate of convergence), at most some
        // hundred.
        assert_true(law_error(s) < 1e-11);
        assert_true(momentum_error(s) < 1e-12);
        for (int32_t i = 0; i < s->n_block; i++) {
            const usi_block *k = &s->block[i];
            if (k->law != USI_POINT) continue;
            double limit = k->mu * k->g[0], t = hypot(k->g[1], k->g[2]);
            open += k->g[0] == 0;
            slipping += k->g[0] > 0 && t > 0.999999 * limit;
            sticking += k->g[0] > 0 && t <= 0.999999 * limit;
            assert_near(k->radius, limit, 0);
        }
        free(s);
    }
    // The heaps must contain all of it.
    assert_true(slipping > 200 && sticking > 200 && open > 200);
}

// Another way to the same answer: all rows at once, each a small step towards its law, on the dense matrix of
// all rows.
static void slow_reference(const heap *s, double *g, int n_step) {
    size_t n = 3 * (size_t)s->n_block;
    double *A = calloc(n * n + 2 * n, sizeof *A), *u0 = A + n * n, *u = u0 + n, widest = 0;
    assert_non_null(A);
    for (size_t i = 0; i < n; i++) {
        const usi_block *k = &s->block[i / 3];
        double row = 0;
        for (size_t j = 0; j < n; j++) {
            const usi_block *l = &s->block[j / 3];
            for (int32_t body = 0; body < s->n_body; body++) {
                double sign = ((k->a == body) - (k->b_ == body)) * ((l->a == body) - (l->b_ == body));
                if (sign == 0) continue;
                const usi_free *f = &s->body[body];
                us_vec3 c = usi_v4_vec3(f->c), di = usi_v4_vec3(k->d[i % 3]), dj = usi_v4_vec3(l->d[j % 3]);
                us_vec3 mi = us_vec3_sub(usi_v4_vec3(k->m[i % 3]), us_vec3_cross(c, di)),
                        mj = us_vec3_sub(usi_v4_vec3(l->m[j % 3]), us_vec3_cross(c, dj));
                usi_v4 turned = f->inv_I[0] * mj.x + f->inv_I[1] * mj.y + f->inv_I[2] * mj.z;
                A[i * n + j] += sign * (us_vec3_dot(di, dj) * f->c[3] + us_vec3_dot(mi, usi_v4_vec3(turned)));
            }
            row += fabs(A[i * n + j]);
        }
        widest = fmax(widest, row + k->R[0]);
        for (int side = 0; side < 2; side++) {
            int32_t body = side ? k->b_ : k->a;
            if (body < 0) continue;
            u0[i] += (side ? -1 : 1) *
                     (usi_v4_dot(k->m[i % 3], s->body[body].fw) + usi_v4_dot(k->d[i % 3], s->body[body].fv));
        }
    }
    double pace = 1 / widest;
    memset(g, 0, n * sizeof *g);
    for (int step = 0; step < n_step; step++) {
        for (size_t i = 0; i < n; i++) {
            u[i] = u0[i];
            for (size_t j = 0; j < n; j++)
                u[i] += A[i * n + j] * g[j];
        }
        for (size_t p = 0; p < n / 3; p++) {
            const usi_block *k = &s->block[p];
            double *x = g + 3 * p;
            for (size_t r = 0; r < 3; r++)
                x[r] -= pace * (u[3 * p + r] + k->b[r] + k->R[r] * x[r]);
            if (x[0] < 0) x[0] = 0;
            double t = hypot(x[1], x[2]), limit = k->mu * x[0];
            if (t > limit) {
                x[1] *= limit / t;
                x[2] *= limit / t;
            }
        }
    }
    free(A);
}

static void small_heaps_agree_with_a_slow_dense_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        heap *s = random_heap(7000 + 100 * seed, 3, false);
        double g[54];
        solve(s, 1, 20000, 1e-15);
        slow_reference(s, g, 20000);
        for (int i = 0; i < 54; i++)
            assert_near(g[i], s->block[i / 3].g[i % 3], 1e-9);  // where the slow one has come to in its steps
        free(s);
    }
}

static void a_row_of_boxes_pressed_together_moves_as_its_mirror_image(void **state) {
    (void)state;
    enum { N = 9 };
    heap *s = new_heap(1e6, 0.8);
    double half = 0.05, press = 100;
    for (int i = 0; i < N; i++)
        add_box(s, 1, us_vec3_make(half, half, half), us_vec3_make(2 * half * i, 0, 0),
                us_vec3_make(0, 0, -GRAVITY * STEP));
    for (int i = 0; i <= N; i++) {
        for (int c = 0; c < 4; c++) {
            us_vec3 p = us_vec3_make(half * (2 * i - 1), c & 1 ? half : -half, c & 2 ? half : -half);
            add_point(s, i < N ? i : -1, i - 1, p, us_vec3_make(1, 0, 0), -press / (4 * s->k));
        }
    }
    solve(s, 1, 5000, 1e-15);
    double carried = 0, fall = 0;
    for (int i = 0; i < N; i++) {
        us_vec3 left = at_centre(s, i), right = at_centre(s, N - 1 - i);
        assert_near(left.z, right.z, 1e-12);  // the sweeps are not symmetric, their limit is
        assert_near(left.x, -right.x, 1e-12);
        assert_near(left.y, 0, 1e-12);
        fall += left.z;
    }
    for (int c = 0; c < 4; c++) {
        for (int r = 0; r < 3; r++) {
            carried += s->block[c].g[r] * s->block[c].d[r][2] -
                       s->block[4 * N + c].g[r] * s->block[4 * N + c].d[r][2];
        }
    }
    assert_near(carried, N * GRAVITY * STEP + fall, 1e-12);  // the walls take all momentum that is gone
    assert_true(at_centre(s, N / 2).z < at_centre(s, 0).z && at_centre(s, 0).z < 0);
    assert_true(law_error(s) < 1e-12);
    free(s);
}

// A stack stepped with what the law says about gaps and stretch; points stay where they are.
static void four_sweeps_hold_a_stack_of_ten(void **state) {
    (void)state;
    enum { N = 10, STEPS = 3000 };
    heap *s = new_heap(1e6, 0.5);
    double half = 0.05, phi[4 * N] = {0}, xi[4 * N][2] = {{0}}, early = 0, late = 0;
    for (int i = 0; i < N; i++) {
        add_box(s, 1, us_vec3_make(half, half, half), us_vec3_make(0.01 * (i % 2), 0, half * (2 * i + 1)),
                us_vec3_make(0, 0, 0));
        add_face(s, i, i - 1, us_vec3_make(0, 0, 2 * half * i), 0.9 * half, 0);
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < N; i++) {
            s->body[i].fw = s->body[i].w;
            s->body[i].fv = s->body[i].v + usi_v4_set(0, 0, -GRAVITY * STEP);
        }
        for (int i = 0; i < 4 * N; i++) {
            s->block[i].b[0] = erp(s) * phi[i] / STEP;
            for (int j = 0; j < 2; j++)
                s->block[i].b[1 + j] = erp(s) * xi[i][j] / STEP;
        }
        assert_int_equal(solve(s, 4, 4, 1e-9), 4);
        for (int i = 0; i < 4 * N; i++) {
            double u[3];
            velocity_of(s, &s->block[i], u);
            phi[i] += STEP * u[0];
            for (int j = 0; j < 2; j++)
                xi[i][j] = (s->c * xi[i][j] - s->block[i].g[1 + j]) / (STEP * s->k + s->c);
        }
        double speed = us_vec3_norm(at_centre(s, N - 1));
        if (step >= 500 && step < 1000) early = fmax(early, speed);
        if (step >= STEPS - 500) late = fmax(late, speed);
    }
    // Each face carries what is above it, but for what is left of the stack's slow swaying, which dies out.
    for (int i = 0; i < N; i++) {
        double carried = 0;
        for (int c = 0; c < 4; c++)
            carried += s->block[4 * i + c].g[0];
        assert_near(carried / ((N - i) * GRAVITY * STEP), 1, 1e-3);
    }
    assert_true(late < 0.5 * early && late < 5e-3);
    free(s);
}

// ---------------------------------------------------------------- the sweeps themselves

static void a_warm_start_at_the_solution_is_done_after_one_sweep(void **state) {
    (void)state;
    heap *s = random_heap(42, 18, true);
    int32_t first = solve(s, 1, 20000, 1e-13);
    usi_v4 v = s->body[3].v;
    assert_true(first > 10);
    assert_int_equal(solve(s, 1, 20000, 1e-11), 1);
    for (int i = 0; i < 3; i++)
        assert_near(s->body[3].v[i], v[i], 1e-11);
    free(s);
}

static void sweeps_stay_between_their_bounds(void **state) {
    (void)state;
    heap *s = random_heap(43, 18, true);
    assert_int_equal(solve(s, 0, 0, 1), 0);
    assert_true(momentum_error(s) < 1e-12);  // the start values alone, and the twists that belong to them
    assert_int_equal(solve(s, 3, 3, 1), 3);
    assert_int_equal(solve(s, 5, 50, 1e9), 5);
    assert_int_equal(solve(s, 1, 7, 0), 7);
    free(s);
}

static void a_heap_without_blocks_keeps_its_free_motion(void **state) {
    (void)state;
    heap *s = random_heap(44, 5, false);
    s->n_block = 0;
    solve(s, 1, 10, 1e-9);
    for (int i = 0; i < 5; i++) {
        assert_memory_equal(&s->body[i].w, &s->body[i].fw, 3 * sizeof(double));
        for (int j = 0; j < 3; j++)
            assert_near(s->body[i].v[j], s->body[i].fv[j], 0);
    }
    free(s);
}

static void the_same_heap_gives_the_same_bits(void **state) {
    (void)state;
    heap *s = random_heap(45, 27, true), *t = random_heap(45, 27, true);
    solve(s, 4, 4, 0);
    solve(t, 4, 4, 0);
    assert_memory_equal(s->body, t->body, (size_t)s->n_body * sizeof *s->body);
    for (int32_t i = 0; i < s->n_block; i++)
        assert_memory_equal(s->block[i].g, t->block[i].g, sizeof s->block[i].g);
    free(s);
    free(t);
}

// ---------------------------------------------------------------- four at a time

// Faces of one to five points between neighbours of a wall of boxes, pressed and pushed at random.
static heap *random_wall(uint64_t seed) {
    heap *s = new_heap(1e6, 0.5);
    for (int32_t i = 0; i < 60; i++) {
        us_vec3 at = us_vec3_make(0.2 * (i % 6) + 0.1 * (i / 6 % 2), 0, 0.2 * (i / 6));
        us_vec3 v = us_vec3_add(some_vector(seed, (uint64_t)i, 0.3), us_vec3_make(0, 0, -0.1));
        add_box(s, uniform(seed, 500 + (uint64_t)i, 0.5, 2), us_vec3_make(0.1, 0.1, 0.1), at, v);
        for (int32_t side = 0; side < 2; side++) {
            const int32_t b = i < 6 ? -1 : i - 6 - side;
            const uint64_t pair = (uint64_t)(2 * i + side);
            us_vec3 n = us_vec3_add(us_vec3_make(0, 0, 1), some_vector(seed + 1, pair, 0.3));
            n = us_vec3_scale(1 / us_vec3_norm(n), n);
            s->mu = uniform(seed, 800 + pair, 0.05, 0.9);
            const int32_t n_point = 1 + (int32_t)uniform(seed, 900 + pair, 0, 4.99);
            for (int32_t k = 0; k < n_point && s->n_block < MAX_BLOCK; k++) {
                const uint64_t point = 8 * pair + (uint64_t)k;
                us_vec3 p =
                    us_vec3_add(us_vec3_sub(at, us_vec3_make(0, 0, 0.1)), some_vector(seed + 2, point, 0.1));
                usi_block *block = add_point(s, i, b, p, n, uniform(seed, 3000 + point, -1e-4, 5e-5));
                block->b[1] = uniform(seed, 4000 + point, -0.02, 0.02);
                block->g[0] = uniform(seed, 5000 + point, 0, 0.05);
                if (seed % 2) block->viscous = uniform(seed, 6000 + point, 0, 0.02);
            }
        }
    }
    return s;
}

static double largest_difference(const heap *s, const heap *t) {
    double most = 0;
    for (int32_t i = 0; i < s->n_body; i++) {
        for (int k = 0; k < 3; k++)
            most = fmax(most, fmax(fabs(s->body[i].v[k] - t->body[i].v[k]),
                                   0.1 * fabs(s->body[i].w[k] - t->body[i].w[k])));
    }
    for (int32_t i = 0; i < s->n_block; i++) {
        for (int k = 0; k < 3; k++)
            most = fmax(most, fabs(s->block[i].g[k] - t->block[i].g[k]));
    }
    return most;
}

static void four_at_a_time_make_the_same_sweeps_as_one_by_one(void **state) {
    (void)state;
    const method before = chosen;
    for (uint64_t seed = 0; seed < 60; seed++) {
        for (int kind = 0; kind < 2; kind++) {
            heap *s = kind ? random_wall(seed) : random_heap(100 * seed, 27, true),
                 *t = kind ? random_wall(seed) : random_heap(100 * seed, 27, true);
            chosen = (method){.is_four = false};
            solve(s, 6, 6, 0);
            chosen = (method){.is_four = true};
            solve(t, 6, 6, 0);
            // Velocities of 1, and impulses: rounding, times what six sweeps of a jamming point make of it.
            assert_true(largest_difference(s, t) < 1e-11);
            free(s);
            free(t);
        }
    }
    chosen = before;
}

static void threads_change_no_bit(void **state) {
    (void)state;
    const method before = chosen;
    for (int32_t n_thread = 2; n_thread <= 3; n_thread++) {
        usi_pool *pool = NULL;
        assert_int_equal(usi_pool_create(n_thread, NULL, &pool), US_OK);
        for (uint64_t seed = 0; seed < 10; seed++) {
            heap *s = random_wall(seed), *t = random_wall(seed);
            assert_true(s->n_block > 300);
            chosen = (method){.is_four = true};
            const int32_t n = solve(s, 4, 10, 1e-5);
            chosen.pool = pool;
            assert_int_equal(solve(t, 4, 10, 1e-5), n);
            assert_memory_equal(s->body, t->body, sizeof s->body);
            assert_memory_equal(s->block, t->block, sizeof s->block);
            free(s);
            free(t);
        }
        usi_pool_destroy(pool);
    }
    chosen = before;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_on_four_points_carries_its_weight),
        cmocka_unit_test(a_falling_box_is_stopped_by_implicit_springs),
        cmocka_unit_test(a_sliding_sphere_is_braked_along_its_path_in_every_direction),
        cmocka_unit_test(an_oblique_impact_rolls_below_the_two_sevenths_limit_and_slips_above),
        cmocka_unit_test(a_box_on_an_incline_slips_above_the_friction_angle_only),
        cmocka_unit_test(a_damper_slows_a_sliding_point_mass_beside_friction),
        cmocka_unit_test(tied_bodies_share_their_momentum),
        cmocka_unit_test(torsion_brakes_spin_by_its_limit_and_then_holds_it),
        cmocka_unit_test(swapping_the_bodies_of_a_block_swaps_the_signs_only),
        cmocka_unit_test(every_law_holds_at_the_solution_of_random_heaps),
        cmocka_unit_test(small_heaps_agree_with_a_slow_dense_reference),
        cmocka_unit_test(a_row_of_boxes_pressed_together_moves_as_its_mirror_image),
        cmocka_unit_test(four_sweeps_hold_a_stack_of_ten),
        cmocka_unit_test(a_warm_start_at_the_solution_is_done_after_one_sweep),
        cmocka_unit_test(sweeps_stay_between_their_bounds),
        cmocka_unit_test(a_heap_without_blocks_keeps_its_free_motion),
        cmocka_unit_test(the_same_heap_gives_the_same_bits),
        cmocka_unit_test(four_at_a_time_make_the_same_sweeps_as_one_by_one),
        cmocka_unit_test(threads_change_no_bit),
    };
    // All of them twice: one point after the other, and four pairs at a time.
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    chosen.is_four = true;
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
