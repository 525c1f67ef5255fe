// Speed of rays: over ground of a million triangles and into a mesh, beside Embree and MuJoCo in the same run
// on the same rays; a sensor of 90 by 90 rays against every triangle one by one; a rover with a lidar.
//
// Rounds take turns, one of each caller after the other, so that what else the machine does hits all alike.
// Embree's calls are all tried, and its best one counts. Times are CPU time of the thread. The exit code says
// whether everything ran and agreed, never how fast.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench.h"
#include "geom/box_tree.h"
#include "geom/geom.h"
#include "geom/ray.h"
#include "proxy/tap.h"
#include "ray_peers.h"
#include "understudy/pace.h"
#include "understudy/proxy.h"
#include "understudy/query.h"
#include "understudy/spec.h"

static const double RANGE = 100;
static const char *embree_isa;  // NULL: all that there is

typedef struct rays {
    const char *name;
    int32_t n;
    usi_ray *ray;
    double *range;
    us_ray_hit *hit;
} rays;

static void free_rays(rays *r) {
    free(r->ray);
    free(r->range);
    free(r->hit);
}

static rays make_rays(const char *name, int32_t n) {
    rays r = {name, n, calloc((size_t)n, sizeof *r.ray), calloc((size_t)n, sizeof *r.range),
              calloc((size_t)n, sizeof *r.hit)};
    if (!r.ray || !r.range || !r.hit) {
        fprintf(stderr, "bench_ray: no memory\n");
        exit(1);
    }
    for (int32_t i = 0; i < n; i++)
        r.range[i] = RANGE;
    return r;
}

static const double PI = 3.14159265358979323846;

// An HDL-32E for a third of a turn, on a mast of 2 m: group by group, the beams of a group from the lowest
// up.
static rays lidar_rays(void) {
    rays r = make_rays("HDL-32E", 720 * 32);
    for (int32_t i = 0; i < r.n; i++) {
        const int32_t beam = i % 32;
        const double up = (-30.6667 + 1.3333 * beam) * PI / 180,
                     turn = 2 * PI * (i / 32) / 2170.0 +
                            0.00224 * beam / 32;  // NOLINT(bugprone-integer-division)
        r.ray[i] = (usi_ray){{0.3, 0.2, 2}, {cos(up) * cos(turn), cos(up) * sin(turn), sin(up)}};
    }
    return r;
}

static rays picture_rays(us_vec3 from, double down, int32_t width, int32_t height) {
    rays r = make_rays("picture", width * height);
    for (int32_t i = 0; i < r.n; i++) {
        const us_vec3 d = {1, -(i % width - 0.5 * (width - 1)) * 1.25 / width,
                           (0.5 * (height - 1) - i / width) * 1.25 / width -
                               down};  // NOLINT(bugprone-integer-division)
        r.ray[i] = (usi_ray){from, us_vec3_scale(1 / us_vec3_norm(d), d)};
    }
    return r;
}

static rays random_rays(int32_t n, double side) {
    rays r = make_rays("random", n);
    for (int32_t i = 0; i < n; i++) {
        double u[6];
        for (int k = 0; k < 6; k++)
            u[k] = 2 * us_random_uniform(5, (uint64_t)k, (uint64_t)i) - 1;
        const us_vec3 from = {side * u[0], side * u[1], side * u[2]}, to = {u[3], u[4], u[5]},
                      d = us_vec3_sub(to, from);
        r.ray[i] = (usi_ray){from, us_vec3_scale(1 / us_vec3_norm(d), d)};
    }
    return r;
}

// ---------------------------------------------------------------- ours and theirs

typedef struct contest {
    const char *scene;
    const us_geom *geom;  // one shape, or
    const us_sim *sim;    // a world
    ray_mesh mesh;        // the same surface for the peers
    rays *r;
    int n_round;
    bool is_json;
} contest;

static uint64_t hash_of(const rays *r) { return us_hash_bytes(0, r->hit, (size_t)r->n * sizeof *r->hit); }

static void cast_in_world(const contest *c) {
    const rays *r = c->r;
    for (int32_t i = 0; i < r->n; i++) {
        us_sim_hit hit;
        us_sim_cast_rays(c->sim, 1, &r->ray[i].o, &r->ray[i].d, r->range[i], NULL, &hit);
        r->hit[i] = (us_ray_hit){hit.distance, hit.normal};
        if (hit.geom < 0) r->hit[i].normal = us_vec3_make(0, 0, 0);
    }
}

static void cast_one_by_one(const contest *c) {
    const rays *r = c->r;
    if (c->sim) {
        cast_in_world(c);
        return;
    }
    for (int32_t i = 0; i < r->n; i++)
        r->hit[i] = c->geom->field
                        ? usi_ray_cast_field(c->geom->field, r->ray[i], r->range[i], 0)
                        : us_geom_ray(c->geom, us_pose_identity(), r->ray[i].o, r->ray[i].d, r->range[i]);
}

static void cast_together(const contest *c) {
    usi_ray_cast_field_many(c->geom->field, c->r->n, c->r->ray, c->r->range, c->r->hit);
}

static void print(const contest *c, const char *engine, const char *variant, const bench_samples *s,
                  uint64_t hash) {
    if (c->is_json) {
        bench_figure f = {c->scene, engine, variant, c->r->name, "ns", s, NAN, NAN, hash, NULL};
        bench_print_json(&f);
    } else {
        printf("%-24s %-8s %-24s %9.1f ns  (%.1f .. %.1f)\n", c->scene, c->r->name, variant, bench_median(s),
               bench_min(s), bench_max(s));
    }
}

// Whether two hits may be called the same: by far nearly all rays must.
static bool is_same(double ours, double theirs) {
    return ours == theirs || fabs(ours - theirs) < 1e-3 || (ours > RANGE && theirs > RANGE);
}

static bool run_contest(const contest *c) {
    static const char *const own_name[] = {"one by one", "many"};
    bench_samples own[2] = {{0}}, theirs[RAY_EMBREE_CALLS] = {{0}};
    const bool has_many = c->geom && c->geom->kind == US_GEOM_HEIGHT_FIELD;
    ray_embree *peer = ray_embree_create(embree_isa, &c->mesh, c->r->n, &c->r->ray[0].o.x, RANGE);
    uint64_t hash[2] = {0};
    double *range = calloc((size_t)c->r->n, sizeof *range);
    int32_t n_other = 0;
    for (int round = 0; range && round <= c->n_round; round++) {
        for (int k = 0; k < 1 + has_many; k++) {
            const double start = bench_cpu_now();
            (k ? cast_together : cast_one_by_one)(c);
            const double ns = (bench_cpu_now() - start) * 1e9 / c->r->n;
            const uint64_t h = hash_of(c->r);
            if (round > 0 && h != hash[k]) return false;
            hash[k] = h;
            if (round > 0) bench_add(&own[k], ns);
        }
        for (int k = 0; peer && k < RAY_EMBREE_CALLS; k++) {
            const double ns = ray_embree_cast(peer, k, range) * 1e9 / c->r->n;
            if (round > 0) bench_add(&theirs[k], ns);
            for (int32_t i = 0; k == 0 && round == 0 && i < c->r->n; i++)
                n_other += !is_same(c->r->hit[i].range, range[i]);
        }
    }
    double best = INFINITY, ours = INFINITY;
    for (int k = 0; k < 1 + has_many; k++) {
        print(c, "understudy", own_name[k], &own[k], hash[k]);
        ours = fmin(ours, bench_min(&own[k]));
    }
    for (int k = 0; peer && k < RAY_EMBREE_CALLS; k++) {
        print(c, "embree", ray_embree_name(k), &theirs[k], 0);
        best = fmin(best, bench_min(&theirs[k]));
    }
    if (!c->is_json && peer)
        printf(
            "%-24s %-8s gain over Embree's best call %.2f (minima); %d of %d hits differ by more than 1 mm\n",
            c->scene, c->r->name, best / ours, (int)n_other, (int)c->r->n);
    ray_embree_destroy(peer);
    free(range);
    // Rays in floats past an edge: some.
    return (!has_many || hash[0] == hash[1]) && n_other <= c->r->n / 500;
}

// ---------------------------------------------------------------- terrain

enum { SIDE = 709 };  // samples: 708 * 708 * 2 triangles

static us_height_field *terrain(double apart, int32_t n) {
    double *h = calloc((size_t)n * (size_t)n, sizeof *h);
    us_height_field *f = NULL;
    for (int32_t i = 0; h && i < n * n; i++)
        h[i] = 0.5 * sin(0.06 * (i % n)) * cos(0.045 * (i / n)) +
               0.02 * (2 * us_random_uniform(77, 8, (uint64_t)i) - 1);  // NOLINT(bugprone-integer-division)
    if (h) us_height_field_create(h, n, n, apart, apart, NULL, &f, NULL);
    free(h);
    return f;
}

static void free_mesh(ray_mesh *m) {
    free(m->vertex);
    free(m->triangle);
}

static ray_mesh mesh_of_field(const us_height_field *f) {
    const size_t n = (size_t)f->n_x * (size_t)f->n_y, cells = (size_t)(f->n_x - 1) * (size_t)(f->n_y - 1);
    ray_mesh m = {.vertex = calloc(n, sizeof *m.vertex), .triangle = calloc(2 * cells, sizeof *m.triangle)};
    if (!m.vertex || !m.triangle) exit(1);
    for (int32_t j = 0; j < f->n_y; j++) {
        for (int32_t i = 0; i < f->n_x; i++)
            m.vertex[m.n_vertex++] = usi_field_point(f, i, j);
    }
    for (int32_t j = 0; j < f->n_y - 1; j++) {
        for (int32_t i = 0; i < f->n_x - 1; i++) {
            const int32_t a = j * f->n_x + i, b = a + 1, c = b + f->n_x, d = a + f->n_x;
            memcpy(m.triangle[m.n_triangle++], (int32_t[3]){a, b, c}, sizeof *m.triangle);
            memcpy(m.triangle[m.n_triangle++], (int32_t[3]){a, c, d}, sizeof *m.triangle);
        }
    }
    return m;
}

static bool bench_mujoco(const us_height_field *f, const rays *r, bool is_json) {
    enum { FEW = 400 };
    double theirs = 0, ours = 0;
    rays few = make_rays(r->name, FEW);
    for (int32_t i = 0; i < FEW; i++)
        few.ray[i] = r->ray[(int64_t)i * r->n / FEW];
    const bool has_peer = ray_mujoco(f->height, f->n_x, f->n_y, f->dx, FEW, &few.ray[0].o.x, &theirs);
    for (int round = 0; round < 20; round++) {
        const double start = bench_cpu_now();
        usi_ray_cast_field_many(f, r->n, r->ray, r->range, r->hit);
        const double s = (bench_cpu_now() - start) / r->n;
        ours = round == 0 || s < ours ? s : ours;
    }
    if (has_peer && !is_json)
        printf("%-24s %-8s mj_ray %.0f ns: gain %.0f\n", "1 M triangles", r->name, theirs * 1e9,
               theirs / ours);
    free_rays(&few);
    return true;
}

static bool bench_terrain_rays(int n_round, bool is_json) {
    bool ok = true;
    for (int k = 0; ok && k < 2; k++) {
        const double apart = k == 0 ? 0.1 : 0.5;
        us_height_field *f = terrain(apart, SIDE);
        if (!f) return false;
        const us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
        char name[64];
        snprintf(name, sizeof name, "1 M triangles, %.1f m", apart);
        rays r[] = {lidar_rays(), picture_rays(us_vec3_make(-25, 0.2, 2.5), 0.2, 640, 480)};
        ray_mesh mesh = mesh_of_field(f);
        for (size_t i = 0; ok && i < sizeof r / sizeof *r; i++) {
            const contest c = {name, &g, NULL, mesh, &r[i], n_round, is_json};
            ok = run_contest(&c) && (k || bench_mujoco(f, &r[i], is_json));
        }
        for (size_t i = 0; i < sizeof r / sizeof *r; i++)
            free_rays(&r[i]);
        free_mesh(&mesh);
        us_height_field_destroy(f);
    }
    return ok;
}

// ---------------------------------------------------------------- a mesh

// A bumpy ball of 100 000 triangles.
static ray_mesh rock(void) {
    enum { N = 224 };
    ray_mesh m = {.vertex = calloc((size_t)N * N, sizeof *m.vertex),
                  .triangle = calloc((size_t)2 * N * N, sizeof *m.triangle)};
    if (!m.vertex || !m.triangle) exit(1);
    for (int32_t j = 0; j < N; j++) {
        for (int32_t i = 0; i < N; i++) {
            const double u = 2 * PI * i / N, v = 3.0 * (j + 0.5) / N + 0.07;
            const double radius =
                1 + 0.1 * sin(5 * u) * sin(4 * v) + 0.004 * us_random_uniform(9, 9, (uint64_t)(j * N + i));
            m.vertex[m.n_vertex++] =
                us_vec3_make(radius * sin(v) * cos(u), radius * sin(v) * sin(u), radius * cos(v));
            if (j + 1 == N) continue;
            const int32_t a = j * N + i, b = j * N + (i + 1) % N, c = a + N, d = b + N;
            memcpy(m.triangle[m.n_triangle++], (int32_t[3]){a, c, d}, sizeof *m.triangle);
            memcpy(m.triangle[m.n_triangle++], (int32_t[3]){a, d, b}, sizeof *m.triangle);
        }
    }
    return m;
}

static bool bench_mesh(int n_round, bool is_json) {
    ray_mesh m = rock();
    us_mesh *mesh = NULL;
    if (us_mesh_create(m.vertex, m.n_vertex, (const int32_t(*)[3])m.triangle, m.n_triangle, NULL, &mesh,
                       NULL))
        return false;
    const us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh};
    rays r[] = {picture_rays(us_vec3_make(-3, 0, 0), 0, 320, 240), random_rays(50000, 3)};
    bool ok = true;
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
        const contest c = {"100 k triangles", &g, NULL, m, &r[i], n_round, is_json};
        ok = ok && run_contest(&c);
        free_rays(&r[i]);
    }
    us_mesh_destroy(mesh);
    free_mesh(&m);
    return ok;
}

// ---------------------------------------------------------------- rocks

enum { ROCKS = 2000, ROCK_SIDES = 7 };

// The corners of a rock: two rings of seven around an axis, and two tips.
static void rock_corners(int i, us_vec3 *out) {
    const double r = 0.1 + 0.4 * us_random_uniform(3, 1, (uint64_t)i),
                 x = 80 * us_random_uniform(3, 2, (uint64_t)i) - 40,
                 y = 80 * us_random_uniform(3, 3, (uint64_t)i) - 40;
    for (int k = 0; k < 2 * ROCK_SIDES; k++) {
        const double turn = 2 * PI * (k % ROCK_SIDES + 0.5 * (k / ROCK_SIDES)) / ROCK_SIDES;
        out[k] = us_vec3_make(x + r * cos(turn), y + r * sin(turn), k < ROCK_SIDES ? -0.3 * r : 0.3 * r);
    }
    out[2 * ROCK_SIDES] = us_vec3_make(x, y, -0.7 * r);
    out[2 * ROCK_SIDES + 1] = us_vec3_make(x, y, 0.7 * r);
}

// Their triangles for the peers.
static void add_rock(ray_mesh *m, const us_vec3 *p) {
    const int32_t first = m->n_vertex, low = first + 2 * ROCK_SIDES, high = low + 1;
    memcpy(m->vertex + first, p, (2 * ROCK_SIDES + 2) * sizeof *p);
    m->n_vertex += 2 * ROCK_SIDES + 2;
    for (int32_t k = 0; k < ROCK_SIDES; k++) {
        const int32_t a = first + k, b = first + (k + 1) % ROCK_SIDES, c = a + ROCK_SIDES, d = b + ROCK_SIDES;
        const int32_t t[4][3] = {{low, b, a}, {a, b, c}, {b, d, c}, {high, c, d}};
        memcpy(m->triangle[m->n_triangle], t, sizeof t);
        m->n_triangle += 4;
    }
}

static bool bench_rocks(int n_round, bool is_json) {
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_error err = {0};
    ray_mesh m = {.vertex = calloc((size_t)ROCKS * (2 * ROCK_SIDES + 2), sizeof *m.vertex),
                  .triangle = calloc((size_t)ROCKS * 4 * ROCK_SIDES, sizeof *m.triangle)};
    bool ok = m.vertex && m.triangle && us_spec_create(NULL, &spec) == US_OK;
    for (int i = 0; ok && i < ROCKS; i++) {
        us_vec3 corner[2 * ROCK_SIDES + 2];
        us_shape_def shape = us_shape_def_default(US_SHAPE_CONVEX);
        rock_corners(i, corner);
        add_rock(&m, corner);
        shape.link = -1;
        shape.points = corner;
        shape.n_point = 2 * ROCK_SIDES + 2;
        ok = us_spec_add_shape(spec, &shape, NULL) == US_OK;
    }
    ok = ok && us_model_compile(spec, NULL, &model, &err) == US_OK &&
         us_sim_create(model, NULL, &sim, &err) == US_OK;
    if (!ok) fprintf(stderr, "bench_ray: rocks: %s\n", err.message);
    rays r = lidar_rays();
    for (int32_t i = 0; i < r.n; i++)
        r.ray[i].o.z = 1;
    const contest c = {"2000 rocks", NULL, sim, m, &r, n_round, is_json};
    ok = ok && run_contest(&c);
    free_rays(&r);
    us_sim_destroy(sim);
    us_model_destroy(model);
    us_spec_destroy(spec);
    free_mesh(&m);
    return ok;
}

// What rays have made anew when something is edited: ground and ruts nothing, the world's rocks their tree.
static bool bench_edit(bool is_json) {
    static us_aabb box[ROCKS];
    const us_allocator allocator = us_allocator_default();
    double best = INFINITY;
    bool ok = true;
    for (int i = 0; i < ROCKS; i++) {
        us_vec3 corner[2 * ROCK_SIDES + 2];
        rock_corners(i, corner);
        box[i] = (us_aabb){corner[0], corner[0]};
        for (int k = 1; k < 2 * ROCK_SIDES + 2; k++) {
            const us_vec3 p = corner[k], a = box[i].min, b = box[i].max;
            box[i].min = us_vec3_make(fmin(a.x, p.x), fmin(a.y, p.y), fmin(a.z, p.z));
            box[i].max = us_vec3_make(fmax(b.x, p.x), fmax(b.y, p.y), fmax(b.z, p.z));
        }
    }
    for (int round = 0; ok && round < 20; round++) {
        usi_box_tree *tree = NULL;
        const double start = bench_cpu_now();
        ok = usi_box_tree_create(box, ROCKS, &allocator, &tree) == US_OK;
        best = fmin(best, bench_cpu_now() - start);
        usi_box_tree_destroy(tree);
    }
    if (!is_json)
        printf("%-24s an edit: the tree of their boxes is made anew in %.2f ms; of ground nothing is\n",
               "2000 rocks", 1e3 * best);
    return ok;
}

// ---------------------------------------------------------------- one by one, and many

// Moeller and Trumbore's test.
static double meet_triangle(const us_vec3 *p, usi_ray l) {
    const us_vec3 e = us_vec3_sub(p[1], p[0]), f = us_vec3_sub(p[2], p[0]), s = us_vec3_sub(l.o, p[0]),
                  h = us_vec3_cross(l.d, f), q = us_vec3_cross(s, e);
    const double a = us_vec3_dot(e, h), u = us_vec3_dot(s, h) / a, v = us_vec3_dot(l.d, q) / a,
                 t = us_vec3_dot(f, q) / a;
    return u >= 0 && v >= 0 && u + v <= 1 && t >= 0 ? t : INFINITY;
}

// 90 by 90 rays into ground of 2 by 300 by 300 triangles, every ray against every triangle, a few of the
// rays.
static bool bench_plain(bool is_json) {
    enum { FEW = 40 };
    us_height_field *f = terrain(0.1, 301);
    if (!f) return false;
    rays r = picture_rays(us_vec3_make(-10, 0.2, 2.5), 0.4, 90, 90);
    ray_mesh m = mesh_of_field(f);
    double sum = 0, ours = INFINITY;
    const double start = bench_cpu_now();
    bool ok = true;
    for (int k = 0; k < 20; k++) {
        const double from = bench_cpu_now();
        usi_ray_cast_field_many(f, r.n, r.ray, r.range, r.hit);
        ours = fmin(ours, (bench_cpu_now() - from) / r.n);
    }
    const double begin = bench_cpu_now();
    for (int32_t k = 0; k < FEW; k++) {
        const int32_t i = k * (r.n / FEW);
        double best = INFINITY;
        for (int32_t t = 0; t < m.n_triangle; t++) {
            const us_vec3 p[3] = {m.vertex[m.triangle[t][0]], m.vertex[m.triangle[t][1]],
                                  m.vertex[m.triangle[t][2]]};
            best = fmin(best, meet_triangle(p, r.ray[i]));
        }
        ok = ok && (best == INFINITY ? r.hit[i].range == INFINITY : fabs(best - r.hit[i].range) < 1e-6);
        sum += best == INFINITY ? 0 : best;
    }
    const double theirs = (bench_cpu_now() - begin) / FEW;
    if (!is_json)
        printf("%-24s %-8s every triangle one by one %.0f ns, ours %.1f ns: gain %.0f\n", "90 by 90 rays",
               "picture", theirs * 1e9, ours * 1e9, theirs / ours);
    free_rays(&r);
    free_mesh(&m);
    us_height_field_destroy(f);
    return ok && sum > 0 && begin >= start;
}

static bool bench_linear(bool is_json) {
    us_height_field *f = terrain(0.1, SIDE);
    if (!f) return false;
    rays all = lidar_rays();
    for (int32_t n = all.n / 64; n <= all.n; n *= 4) {
        double best = INFINITY;
        for (int round = 0; round < 30; round++) {
            // Any n of them, spread over the turn.
            const double start = bench_cpu_now();
            for (int32_t k = 0; k < n / 32; k++) {
                const int64_t first = (int64_t)k * (all.n / 32) / (n / 32) * 32;
                usi_ray_cast_field_many(f, 32, all.ray + first, all.range, all.hit);
            }
            best = fmin(best, bench_cpu_now() - start);
        }
        if (!is_json)
            printf("%-24s %-8s %6d rays: %.1f ns each\n", "cost", "HDL-32E", (int)n, best * 1e9 / n);
    }
    free_rays(&all);
    us_height_field_destroy(f);
    return true;
}

// ---------------------------------------------------------------- a rover with a lidar

static const char *const yard =
    "<scene name='yard' version='1'><world step='1 ms'>"
    "<shape name='ground' type='height-field' nx='401' ny='401' dx='0.2' dy='0.2' "
    "expression='0.04*noise(x/1.5, y/1.5) + 0.6*noise(x/14+3, y/14) + 0.004*pow(max(0, hypot(x, y) - 8), "
    "2)'/>"
    "<shape type='sphere' size='0.8' xyz='5 1 0.2'/><shape type='cylinder' size='0.3 3' xyz='-4 3 "
    "1'/></world>"
    "<repeat name='i' count='%d'><robot name='k${i}' file='" US_SOURCE_DIR
    "/models/k10.urdf' base='floating' xyz='0 ${4*i-8} 0.4'>"
    "<drive joint='front_left_drive' kd='40' velocity='2 rad/s'/><drive joint='front_right_drive' kd='40' "
    "velocity='2 rad/s'/><drive joint='rear_left_drive' kd='40' velocity='2 rad/s'/><drive "
    "joint='rear_right_drive' kd='40' velocity='2 rad/s'/>%s</robot></repeat></scene>";
static const char *const eye =
    "<sensor type='lidar' name='lidar' preset='hdl-32e' link='base' xyz='0.12 0 1.45'/>";

// Half a second of five rovers with a lidar each, or without: CPU seconds, and by the clock. With a proxy all
// topics of the robots are made, clouds among them, as for somebody who listens to everything.
typedef struct rovers {
    us_model *model;
    us_proxy *proxy;
    us_sim *sim;
    double cpu, wall;
    int64_t bytes;
} rovers;

static void count_bytes(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    (void)channel, (void)time, (void)bytes;
    *(int64_t *)context += (int64_t)length;
}

static bool rovers_init(rovers *x, int n, const char *sensor, int32_t n_thread, bool has_proxy) {
    char text[3000];
    us_spec *spec = NULL;
    us_error err = {0};
    us_sim_def def = us_sim_def_default();
    snprintf(text, sizeof text, yard, n, sensor);
    *x = (rovers){.cpu = INFINITY, .wall = INFINITY};
    def.n_thread = n_thread;
    us_status status = us_spec_load_text(text, strlen(text), "yard.xml", NULL, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &x->model, &err);
    us_plugin part;
    if (!status && has_proxy) {
        status = us_proxy_create(x->model, NULL, &x->proxy, &err);
        if (!status) {
            part = us_proxy_get_plugin(x->proxy);
            def.n_plugin = 1;
            def.plugins = &part;
            usi_proxy_set_tap(x->proxy, count_bytes, &x->bytes);
            // The truth is not the robot's.
            for (int32_t i = 0; i < usi_proxy_n_channel(x->proxy); i++)
                usi_proxy_want_channel(
                    x->proxy, i,
                    strncmp(usi_proxy_get_channel(x->proxy, i).topic, "/understudy/truth/", 18) != 0);
        }
    }
    if (!status) status = us_sim_create(x->model, &def, &x->sim, &err);
    if (status) fprintf(stderr, "bench_ray: five rovers: %s\n", err.message);
    us_spec_destroy(spec);
    return status == US_OK;
}

static bool rovers_run(rovers *x) {
    const double cpu = bench_cpu_now();
    const int64_t wall = us_clock_ns();
    for (int k = 0; k < 500; k++) {
        if (us_sim_step(x->sim, NULL)) return false;
        if (x->proxy) us_proxy_publish(x->proxy, x->sim);
    }
    x->cpu = fmin(x->cpu, bench_cpu_now() - cpu);
    x->wall = fmin(x->wall, 1e-9 * (double)(us_clock_ns() - wall));
    return true;
}

// What the lidars of n rovers cost is what the rovers take longer with them.
static bool bench_rovers(int n, bool is_json) {
    enum { WITH, WITHOUT, SHARED, PACKED, UNPACKED, N };
    static const struct {
        int32_t n_thread;
        bool has_lidar, has_proxy;
    } what[N] = {{1, true, false}, {1, false, false}, {2, true, false}, {1, true, true}, {1, false, true}};
    rovers all[N] = {0};
    char name[40];
    bool ok = true;
    snprintf(name, sizeof name, n == 1 ? "a K10" : "%d K10", n);
    for (int k = 0; ok && k < N; k++)
        ok = rovers_init(&all[k], n, what[k].has_lidar ? eye : "", what[k].n_thread, what[k].has_proxy);
    for (int round = 0; ok && round < 8; round++) {
        for (int k = 0; ok && k < N; k++)
            ok = rovers_run(&all[k]);
    }
    if (ok && !is_json) {
        printf("%-24s a HDL-32E with noise: %.1f times real time on one core; with packing too: %.1f\n", name,
               n * 0.5 / (all[WITH].cpu - all[WITHOUT].cpu), n * 0.5 / (all[PACKED].cpu - all[UNPACKED].cpu));
        printf("%-24s dynamics and a HDL-32E each: %.1f times real time on one core, %.1f on two threads\n",
               name, 0.5 / all[WITH].cpu, 0.5 / all[SHARED].wall);
    }
    for (int k = 0; k < N; k++) {
        us_sim_destroy(all[k].sim);
        us_proxy_destroy(all[k].proxy);
        us_model_destroy(all[k].model);
    }
    return ok;
}

int main(int argc, char **argv) {
    bool is_json = false;
    int n_round = 9;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            n_round = atoi(argv[++i]);
        else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc)
            embree_isa = argv[++i];
        else if (strcmp(argv[i], "--full") != 0) {
            fprintf(stderr, "usage: bench_ray [--json] [--rounds N] [--isa WHAT-EMBREE-MAY-USE]\n");
            return 2;
        }
    }
    bool ok = bench_terrain_rays(n_round, is_json) && bench_mesh(n_round, is_json) &&
              bench_rocks(n_round, is_json) && bench_edit(is_json) && bench_plain(is_json) &&
              bench_linear(is_json) && bench_rovers(1, is_json) && bench_rovers(5, is_json);
    return ok ? 0 : 1;
}
