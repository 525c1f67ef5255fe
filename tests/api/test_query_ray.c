// Rays and overlaps into a world: against closed forms, against every shape asked alone, against deformed
// ground.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "model/model.h"
#include "query_world.h"

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static us_sim_hit cast(const query_world *w, us_vec3 o, us_vec3 d, double range, const us_query_filter *f) {
    us_sim_hit hit;
    assert_int_equal(us_sim_cast_ray(w->sim, o, d, range, f, &hit), US_OK);
    return hit;
}

static const char *const few =
    "<scene name=\"few\" version=\"1\"><world step=\"1 ms\"><shape name=\"floor\" type=\"plane\"/></world>"
    "<object name=\"ball\" xyz=\"0 0 2\"><link name=\"ball\" density=\"1000\">"
    "<shape type=\"sphere\" size=\"0.5\"/></link></object>"
    "<object name=\"pair\" xyz=\"5 0 1\"><link name=\"one\" density=\"1000\">"
    "<shape type=\"box\" size=\"1 1 1\"/></link>"
    "<link name=\"two\" density=\"1000\"><shape type=\"box\" size=\"1 1 1\"/></link>"
    "<joint name=\"hinge\" type=\"revolute\" parent=\"one\" child=\"two\" axis=\"0 1 0\" xyz=\"0 0 1.5\"/>"
    "</object></scene>";

static void plane_and_sphere_are_hit_where_the_closed_forms_say(void **state) {
    (void)state;
    query_world w = query_world_text(few);
    uint64_t hash = us_sim_hash(w.sim);
    us_sim_hit hit = cast(&w, at(0, 0, 10), at(0, 0, -3), INFINITY, NULL);
    query_near("distance", hit.distance, 7.5, 1e-12);
    query_near_vec3("point", hit.point, at(0, 0, 2.5), 1e-12);
    query_near_vec3("normal", hit.normal, at(0, 0, 1), 1e-12);
    assert_int_equal(hit.body.i, query_body(&w, "ball/ball").i);
    assert_int_equal(us_model_get_geom(w.model, hit.geom).shape, hit.shape);
    // Past the ball by a chord, and beside it to the plane.
    double off = 0.3;
    hit = cast(&w, at(off, 0, 10), at(0, 0, -1), INFINITY, NULL);
    query_near("chord", hit.distance, 8 - sqrt(0.25 - off * off), 1e-12);
    hit = cast(&w, at(2, 3, 3), at(1, 0, -1), INFINITY, NULL);
    query_near("plane", hit.distance, 3 * sqrt(2), 1e-12);
    assert_int_equal(hit.body.i, -1);
    assert_true(hit.shape >= 0);
    query_near_vec3("point", hit.point, at(5, 3, 0), 1e-12);
    // The end of the ray.
    assert_int_equal(cast(&w, at(0, 0, 10), at(0, 0, -1), 7.5 - 1e-9, NULL).shape, -1);
    assert_true(cast(&w, at(0, 0, 10), at(0, 0, -1), 7.5 + 1e-9, NULL).shape >= 0);
    hit = cast(&w, at(0, 0, 10), at(0, 0, 1), INFINITY, NULL);
    assert_true(hit.distance == INFINITY && isnan(hit.point.x) && hit.geom == -1 && hit.body.i == -1);
    // From inside.
    hit = cast(&w, at(0, 0, 2.1), at(1, 0, 0), INFINITY, NULL);
    assert_true(hit.distance == 0);
    query_near_vec3("against the ray", hit.normal, at(-1, 0, 0), 1e-12);
    assert_true(us_sim_hash(w.sim) == hash);
    query_world_free(&w);
}

static void a_filter_takes_shapes_out(void **state) {
    (void)state;
    query_world w = query_world_text(few);
    us_query_filter f = us_query_filter_default();
    us_body one = query_body(&w, "pair/one"), two = query_body(&w, "pair/two");
    assert_int_equal(cast(&w, at(5, 0, 10), at(0, 0, -1), 100, &f).body.i, two.i);
    f.except = two;
    assert_int_equal(cast(&w, at(5, 0, 10), at(0, 0, -1), 100, &f).body.i, one.i);
    f.except_object = true;
    us_sim_hit hit = cast(&w, at(5, 0, 10), at(0, 0, -1), 100, &f);
    assert_true(hit.body.i == -1 && hit.shape >= 0);
    f.except_world = true;
    assert_int_equal(cast(&w, at(5, 0, 10), at(0, 0, -1), 100, &f).shape, -1);
    f = us_query_filter_default();
    f.mask = 0;
    assert_int_equal(cast(&w, at(5, 0, 10), at(0, 0, -1), 100, &f).shape, -1);
    query_world_free(&w);
}

static void what_is_no_ray_is_refused(void **state) {
    (void)state;
    query_world w = query_world_text(few);
    us_sim_hit hit;
    assert_int_equal(us_sim_cast_ray(w.sim, at(0, 0, 1), at(0, 0, 0), 1, NULL, &hit), US_ERR_VALUE);
    assert_int_equal(hit.shape, -1);
    assert_int_equal(us_sim_cast_ray(w.sim, at(NAN, 0, 1), at(0, 0, 1), 1, NULL, &hit), US_ERR_VALUE);
    assert_int_equal(us_sim_cast_ray(w.sim, at(0, 0, 1), at(INFINITY, 0, 1), 1, NULL, &hit), US_ERR_VALUE);
    assert_int_equal(us_sim_cast_ray(w.sim, at(0, 0, 1), at(0, 0, 1), -1, NULL, &hit), US_ERR_VALUE);
    assert_int_equal(us_sim_cast_ray(w.sim, at(0, 0, 1), at(0, 0, 1), NAN, NULL, &hit), US_ERR_VALUE);
    assert_int_equal(us_sim_cast_ray(NULL, at(0, 0, 1), at(0, 0, 1), 1, NULL, &hit), US_ERR_ARG);
    assert_int_equal(us_sim_cast_ray(w.sim, at(0, 0, 1), at(0, 0, 1), 1, NULL, NULL), US_ERR_ARG);
    const us_vec3 o = at(0, 0, 1), none = at(0, 0, 0), up = at(0, 0, 1);
    bool is_hit = true;
    assert_int_equal(us_sim_any_hit(w.sim, 1, &o, &none, 1, NULL, &is_hit), US_ERR_VALUE);
    assert_int_equal(us_sim_any_hit(w.sim, 1, &o, &up, NAN, NULL, &is_hit), US_ERR_VALUE);
    assert_int_equal(us_sim_any_hit(NULL, 1, &o, &up, 1, NULL, &is_hit), US_ERR_ARG);
    assert_int_equal(us_sim_any_hit(w.sim, 1, &o, &up, 1, NULL, NULL), US_ERR_ARG);
    assert_false(is_hit);
    query_world_free(&w);
}

// ---------------------------------------------------------------- against every shape alone

static us_pose pose_of(const query_world *w, int32_t geom) {
    const usi_geom *g = &w->model->geom[geom];
    if (g->node < 0) return g->X_NG;
    us_pose X_WN = us_pose_mul(us_sim_get_pose(w->sim, (us_body){g->body}),
                               us_pose_inverse(w->model->body[g->body].X_NB));
    return us_pose_mul(X_WN, g->X_NG);
}

// Shapes of every kind that a scene can have, some on joints, on a wavy field.
static const char *const many =
    "<scene name=\"many\" version=\"1\"><world step=\"1 ms\">"
    "<shape type=\"height-field\" nx=\"41\" ny=\"41\" dx=\"0.25\" dy=\"0.25\" "
    "expression=\"0.3*sin(x)*cos(2*y)\"/>"
    "<shape type=\"cylinder\" size=\"0.3 2\" xyz=\"-2 -2 1\" rpy=\"20 0 0 deg\"/></world>"
    "<object name=\"a\" xyz=\"0 0 2\"><link name=\"l\" density=\"500\"><shape type=\"box\" size=\"1 0.5 "
    "0.7\" rpy=\"10 20 30 deg\"/></link><link name=\"m\" density=\"500\"><shape type=\"capsule\" size=\"0.2 "
    "0.8\" xyz=\"0 0 0.4\"/></link><joint name=\"j\" type=\"revolute\" parent=\"l\" child=\"m\" axis=\"1 0 "
    "0\" xyz=\"0.6 0 0\" q=\"40 deg\"/></object>"
    "<object name=\"b\" xyz=\"2 1 1.5\" rpy=\"30 0 10 deg\"><link name=\"l\" density=\"500\"><shape "
    "type=\"cylinder\" size=\"0.4 0.6\"/></link></object>"
    "<object name=\"c\" xyz=\"-1 2 1.2\"><link name=\"l\" density=\"500\"><shape type=\"cone\" size=\"0.5 "
    "0.9\"/></link></object>"
    "<object name=\"d\" xyz=\"-2 0 1.4\"><link name=\"l\" density=\"500\"><shape type=\"ellipsoid\" "
    "size=\"0.5 0.3 0.7\"/></link></object>"
    "<object name=\"e\" xyz=\"1 -2 1\"><link name=\"l\" density=\"500\"><shape type=\"sphere\" size=\"0.4\"/>"
    "<shape type=\"sphere\" size=\"0.2\" xyz=\"0.4 0 0.3\"/></link></object></scene>";

static void random_rays_hit_what_the_nearest_of_all_shapes_says(void **state) {
    (void)state;
    query_world w = query_world_text(many);
    int n_hit = 0, n_miss = 0;
    uint64_t k = 0;
    for (int round = 0; round < 4; round++) {
        enum { N = 300 };
        us_vec3 o[N], d[N];
        us_sim_hit hits[N];
        for (int i = 0; i < N; i++) {
            double r[6];
            for (int c = 0; c < 6; c++)
                r[c] = us_random_uniform(7, 1, k++);
            o[i] = at(8 * r[0] - 4, 8 * r[1] - 4, 4 * r[2]);
            d[i] = at(2 * r[3] - 1, 2 * r[4] - 1, 2 * r[5] - 1);
        }
        bool is_hit[N];
        assert_int_equal(us_sim_cast_rays(w.sim, N, o, d, 6, NULL, hits), US_OK);
        assert_int_equal(us_sim_any_hit(w.sim, N, o, d, 6, NULL, is_hit), US_OK);
        for (int i = 0; i < N; i++) {
            double best = INFINITY;
            assert_int_equal(is_hit[i], isfinite(hits[i].distance));
            us_vec3 u = us_vec3_scale(1 / us_vec3_norm(d[i]), d[i]), normal = at(NAN, NAN, NAN);
            for (int32_t g = 0; g < w.model->n_geom; g++) {
                us_ray_hit hit = us_geom_ray(&w.model->geom[g].geom, pose_of(&w, g), o[i], u, 6);
                if (hit.range < best) {
                    best = hit.range;
                    normal = hit.normal;
                }
            }
            // The poses come by two ways, and a grazing ray magnifies their rounding.
            if (isfinite(best) != isfinite(hits[i].distance))
                fail_msg("ray %d: hit %g, judge %g", i, hits[i].distance, best);
            if (!isfinite(best)) {
                n_miss++;
                continue;
            }
            n_hit++;
            query_near("distance", hits[i].distance, best, 1e-7);
            query_near_vec3("normal", hits[i].normal, normal, 1e-5);
            query_near_vec3("point", hits[i].point, us_vec3_add(o[i], us_vec3_scale(hits[i].distance, u)),
                            1e-9);
            us_sim_hit alone = cast(&w, o[i], d[i], 6, NULL);
            assert_true(memcmp(&alone.normal, &hits[i].normal, sizeof alone.normal) == 0);
            assert_true(alone.distance == hits[i].distance && alone.geom == hits[i].geom &&
                        alone.body.i == hits[i].body.i && alone.shape == hits[i].shape);
        }
        query_world_step(&w, 200);
    }
    assert_true(n_hit > 300 && n_miss > 100);
    query_world_free(&w);
}

static void random_shapes_overlap_what_distances_say(void **state) {
    (void)state;
    query_world w = query_world_text(many);
    uint64_t k = 0;
    int n_met = 0, n_free = 0;
    for (int i = 0; i < 400; i++) {
        double r[8];
        for (int c = 0; c < 8; c++)
            r[c] = us_random_uniform(8, 1, k++);
        us_geom geom = {.kind = i % 2 ? US_GEOM_BOX : US_GEOM_CAPSULE, .radius = i % 2 ? 0 : 0.2};
        geom.size[0] = 0.2 + 0.5 * r[0];
        geom.size[1] = 0.2 + 0.5 * r[1];
        geom.size[2] = 0.2 + 0.5 * r[2];
        us_pose X = {us_quat_exp(at(3 * r[3], 3 * r[4], 3 * r[5])), at(8 * r[5] - 4, 8 * r[6] - 4, 3 * r[7])};
        int32_t found[16], n = -1, want[16], n_want = 0;
        assert_int_equal(us_sim_overlap(w.sim, &geom, X, NULL, found, 16, &n), US_OK);
        for (int32_t g = 0; g < w.model->n_geom; g++) {
            us_gap gap;
            assert_int_equal(us_geom_distance(&geom, X, &w.model->geom[g].geom, pose_of(&w, g), &gap), US_OK);
            if (gap.distance <= 0) want[n_want++] = g;
        }
        assert_int_equal(n, n_want);
        for (int32_t g = 0; g < n; g++)
            assert_int_equal(found[g], want[g]);
        n_met += n;
        n_free += n == 0;
        // Too little room says how much there is.
        int32_t n_again;
        assert_int_equal(us_sim_overlap(w.sim, &geom, X, NULL, NULL, 0, &n_again), US_OK);
        assert_int_equal(n_again, n);
        us_query_filter f = us_query_filter_default();
        f.except_world = true;
        assert_int_equal(us_sim_overlap(w.sim, &geom, X, &f, found, 16, &n_again), US_OK);
        for (int32_t g = 0; g < n_again; g++)
            assert_true(w.model->geom[found[g]].body >= 0);
    }
    if (!(n_met > 100 && n_free > 50)) fail_msg("%d overlaps, %d shapes are free", n_met, n_free);
    us_geom bad = {.kind = US_GEOM_BOX, .size = {-1, 1, 1}}, good = {.kind = US_GEOM_SPHERE, .radius = 1};
    int32_t n;
    assert_int_not_equal(us_sim_overlap(w.sim, &bad, us_pose_identity(), NULL, NULL, 0, &n), US_OK);
    us_pose nowhere = {us_quat_identity(), at(NAN, 0, 0)};
    assert_int_equal(us_sim_overlap(w.sim, &good, nowhere, NULL, NULL, 0, &n), US_ERR_VALUE);
    query_world_free(&w);
}

static void rays_allocate_nothing(void **state) {
    (void)state;
    test_allocator counting;
    test_allocator_init(&counting);
    us_load_def load = us_load_def_default();
    load.allocator = counting.allocator;
    us_spec *spec = NULL;
    us_error err = US_ZERO;
    assert_int_equal(us_spec_load_text(many, strlen(many), "many.xml", &load, &spec, &err), US_OK);
    query_world w = {NULL, NULL};
    assert_int_equal(us_model_compile(spec, &load.allocator, &w.model, &err), US_OK);
    us_spec_destroy(spec);
    us_sim_def def = us_sim_def_default();
    def.allocator = counting.allocator;
    assert_int_equal(us_sim_create(w.model, &def, &w.sim, &err), US_OK);
    query_world_step(&w, 100);
    const int64_t before = counting.n_alloc;
    for (int i = 0; i < 20; i++)
        cast(&w, at(0.1 * i, 0, 5), at(0, 0.1, -1), 100, NULL);
    us_geom ball = {.kind = US_GEOM_SPHERE, .radius = 1};
    int32_t n;
    assert_int_equal(us_sim_overlap(w.sim, &ball, us_pose_identity(), NULL, NULL, 0, &n), US_OK);
    for (int32_t j = 0; j < us_model_get_counts(w.model).n_joint; j++)
        us_sim_get_joint_reaction(w.sim, (us_joint){j});
    assert_true(counting.n_alloc == before);
    query_world_free(&w);
    test_allocator_check(&counting);
}

// ---------------------------------------------------------------- deformed ground

static const char *const rut =
    "<scene name=\"rut\" version=\"1\"><world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" "
    "nx=\"81\" ny=\"81\" dx=\"0.05\" dy=\"0.05\" expression=\"0.02*sin(3*x)\" surface=\"sand\" bed=\"5 cm\"/>"
    "</world><material name=\"steel\"/><material name=\"sand\"><soil like=\"dry_sand\"/></material>"
    "<object name=\"ball\" xyz=\"0.2 0.1 0.2\"><link name=\"ball\" density=\"7000\"><shape type=\"sphere\" "
    "size=\"0.12\" surface=\"steel\"/></link></object></scene>";

// The present surface, from the patch's columns: what they changed between four of them, on the field as
// written.
static double surface(const query_world *w, double x, double y) {
    us_deformable_info patch = us_sim_get_deformable(w->sim, 0);
    double u = x / patch.spacing + 0.5 * (patch.n_x - 1), v = y / patch.spacing + 0.5 * (patch.n_y - 1);
    int32_t i = (int32_t)u, j = (int32_t)v;
    double change = 0;
    for (int k = 0; k < 4; k++) {
        static float tile[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE];
        int32_t a = i + (k & 1), b = j + (k >> 1), tu = a / US_DEFORMABLE_TILE, tv = b / US_DEFORMABLE_TILE;
        int32_t width = patch.n_x - tu * US_DEFORMABLE_TILE;
        if (width > US_DEFORMABLE_TILE) width = US_DEFORMABLE_TILE;
        assert_int_equal(us_sim_get_deformable_tile(w->sim, 0, tu, tv, NULL, tile), US_OK);
        double share = (k & 1 ? u - i : 1 - (u - i)) * (k >> 1 ? v - j : 1 - (v - j));
        change += share * (double)tile[(b % US_DEFORMABLE_TILE) * width + a % US_DEFORMABLE_TILE];
    }
    us_ray_hit field = us_geom_ray(&w->model->geom[0].geom, pose_of(w, 0), at(x, y, 1), at(0, 0, -1), 10);
    return 1 - field.range + change;
}

static void rays_see_the_ruts(void **state) {
    (void)state;
    query_world w = query_world_text(rut);
    query_world_step(&w, 400);
    us_query_filter ground = us_query_filter_default();
    ground.except = query_body(&w, "ball/ball");
    double deepest = 0;
    for (int i = 0; i < 60; i++) {
        double x = 0.2 + 0.3 * (us_random_uniform(1, 1, (uint64_t)i) - 0.5),
               y = 0.1 + 0.3 * (us_random_uniform(1, 2, (uint64_t)i) - 0.5);
        us_sim_hit hit = cast(&w, at(x, y, 2), at(0, 0, -1), 10, &ground);
        // Columns are told as floats.
        query_near("height", hit.point.z, surface(&w, x, y), 1e-6);
        double flat =
            us_geom_ray(&w.model->geom[0].geom, pose_of(&w, 0), at(x, y, 2), at(0, 0, -1), 10).range;
        deepest = fmax(deepest, hit.distance - flat);
    }
    assert_true(deepest > 2e-3);  // the ball has sunk in, and the rays see it
    // Slanting rays: nowhere before the hit are they below the surface, and at it they are on it.
    int n_hit = 0;
    for (int i = 0; i < 40; i++) {
        double angle = 2 * 3.14159265358979 * us_random_uniform(2, 1, (uint64_t)i);
        us_vec3 o = at(0.2 + 1.2 * cos(angle), 0.1 + 1.2 * sin(angle), 0.25),
                d = at(0.2 - o.x, 0.1 - o.y, -0.24 + 0.02 * us_random_uniform(2, 2, (uint64_t)i));
        us_sim_hit hit = cast(&w, o, d, 10, &ground);
        us_vec3 u = us_vec3_scale(1 / us_vec3_norm(d), d);
        assert_true(isfinite(hit.distance));
        n_hit++;
        query_near("on the surface", hit.point.z, surface(&w, hit.point.x, hit.point.y), 1e-6);
        for (double t = 0; t < hit.distance - 1e-4; t += 0.01) {
            us_vec3 p = us_vec3_add(o, us_vec3_scale(t, u));
            assert_true(p.z > surface(&w, p.x, p.y) - 1e-6);
        }
        query_near("normal", us_vec3_norm(hit.normal), 1, 1e-12);
        assert_true(us_vec3_dot(hit.normal, u) < 0);
    }
    assert_int_equal(n_hit, 40);
    // A small ball in the rut's free space: free of the ground as it is, but not as it was.
    us_sim_hit bottom = cast(&w, at(0.2, 0.1, 2), at(0, 0, -1), 10, &ground);
    us_geom bead = {.kind = US_GEOM_SPHERE, .radius = 1e-3};
    us_pose above = {us_quat_identity(), at(0.2, 0.1, bottom.point.z + 2e-3)};
    us_gap gap;
    assert_int_equal(us_geom_distance(&bead, above, &w.model->geom[0].geom, pose_of(&w, 0), &gap), US_OK);
    int32_t n = -1;
    assert_int_equal(us_sim_overlap(w.sim, &bead, above, &ground, NULL, 0, &n), US_OK);
    assert_true(gap.distance < 0);
    assert_int_equal(n, 0);
    above.p.z = bottom.point.z;
    assert_int_equal(us_sim_overlap(w.sim, &bead, above, &ground, NULL, 0, &n), US_OK);
    assert_int_equal(n, 1);
    query_world_free(&w);
}

static const char *const paved =
    "<scene name=\"paved\" version=\"1\">"
    "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"41\" ny=\"21\" dx=\"0.25\" "
    "dy=\"0.25\" "
    "expression=\"0.1*x\" xyz=\"10 0 0\"/>"
    "<region name=\"slab\" ground=\"ground\" surface=\"rock\" polygon=\"1 1 2 1 2 2 1 2\"/></world>"
    "<material name=\"rock\"/><material name=\"steel\"/>"
    "<object name=\"box\" xyz=\"7 0 3\"><link name=\"l\" density=\"500\"><shape type=\"box\" size=\"1 1 1\" "
    "surface=\"steel\"/></link></object></scene>";

static void hits_say_what_the_place_is_made_of_and_where_it_is(void **state) {
    (void)state;
    query_world w = query_world_text(paved);
    const us_vec3 down = at(0, 0, -1);
    us_sim_hit hit = cast(&w, at(11.5, 1.5, 9), down, INFINITY, NULL);
    assert_string_equal(us_model_material_name(w.model, hit.material), "rock");
    query_near("height", hit.point.z, 0.15, 1e-12);
    query_near("u", hit.u, 0.5 + 1.5 / 10, 1e-12);
    query_near("v", hit.v, 0.5 + 1.5 / 5, 1e-12);
    hit = cast(&w, at(12.5, 1.5, 9), down, INFINITY, NULL);
    assert_int_equal(hit.material.i, 0);
    query_near("u", hit.u, 0.75, 1e-12);
    hit = cast(&w, at(7, 0, 9), down, INFINITY, NULL);
    assert_string_equal(us_model_material_name(w.model, hit.material), "steel");
    assert_true(isnan(hit.u) && isnan(hit.v));
    hit = cast(&w, at(0, 0, 9), at(0, 0, 1), INFINITY, NULL);
    assert_true(hit.material.i == -1 && isnan(hit.u));
    query_world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plane_and_sphere_are_hit_where_the_closed_forms_say),
        cmocka_unit_test(a_filter_takes_shapes_out),
        cmocka_unit_test(what_is_no_ray_is_refused),
        cmocka_unit_test(random_rays_hit_what_the_nearest_of_all_shapes_says),
        cmocka_unit_test(random_shapes_overlap_what_distances_say),
        cmocka_unit_test(rays_allocate_nothing),
        cmocka_unit_test(rays_see_the_ruts),
        cmocka_unit_test(hits_say_what_the_place_is_made_of_and_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
