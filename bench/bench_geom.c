// Speed of geometry: the broad phase with 30 to 10 000 moving boxes, shapes on terrain, rays against each
// kind, distances and contact of pairs.
//
// Every round does the same work and ends in the same hash; the first one only warms up. Times are CPU time
// of the thread. The exit code says whether everything ran and repeated itself, never how fast.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "geom/broad.h"
#include "geom/geom.h"
#include "geom/ray.h"

enum { STEPS = 20, MANY = 2000 };

typedef struct options {
    bool is_json;
    int n_round;
} options;

// One kind of work: `run` does `n` units of it and returns a hash of what came out, 0 on failure.
typedef struct work {
    const char *name, *metric;
    uint64_t (*run)(void *self);
    void *self;
    double n;
} work;

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(77, stream, i);
}
static us_vec3 in_cube(uint64_t stream, uint64_t i, double side) {
    return us_vec3_make(uniform(stream, 3 * i, -side, side), uniform(stream, 3 * i + 1, -side, side),
                        uniform(stream, 3 * i + 2, -side, side));
}
static us_pose some_pose(uint64_t stream, uint64_t i, double side) {
    return (us_pose){us_quat_exp(in_cube(stream, 2 * i, 2)), in_cube(stream, 2 * i + 1, side)};
}

static bool measure(const work *w, const options *o) {
    bench_samples samples = {0};
    uint64_t hash = 0;
    for (int round = 0; round <= o->n_round; round++) {
        double start = bench_cpu_now();
        uint64_t result = w->run(w->self);
        double ns = (bench_cpu_now() - start) / w->n * 1e9;
        if (result == 0 || (round > 0 && result != hash)) {
            fprintf(stderr, "%s, %s: %s\n", w->name, w->metric, result ? "two rounds differ" : "failed");
            return false;
        }
        hash = result;
        if (round > 0) bench_add(&samples, ns);
    }
    if (o->is_json) {
        bench_figure f = {w->name, "understudy", "geom", w->metric, "ns", &samples, NAN, NAN, hash, NULL};
        bench_print_json(&f);
    } else {
        printf("%-28s %-16s %9.1f ns  (%.1f .. %.1f)  %016" PRIx64 "\n", w->name, w->metric,
               bench_median(&samples), bench_min(&samples), bench_max(&samples), hash);
    }
    return true;
}

// ---------------------------------------------------------------- broad phase

typedef struct crowd {
    usi_broad *broad;
    usi_broad_box *start, *now;
    int32_t n;
    int64_t n_pair;  // of the last call
} crowd;

// Boxes of half length 0.35 .. 0.5, so many to the cubic metre that each overlaps about five others; all
// drift by 1 mm a step.
static uint64_t run_crowd(void *self) {
    crowd *c = self;
    uint64_t hash = 0;
    memcpy(c->now, c->start, (size_t)c->n * sizeof *c->now);
    for (int step = 0; step < STEPS; step++) {
        for (int32_t i = 0; i < c->n; i++) {
            double dx = i % 3 ? 0.001 : -0.001;
            c->now[i].box.min.x += dx;
            c->now[i].box.max.x += dx;
        }
        const usi_broad_pair *pairs;
        if (usi_broad_find(c->broad, c->now, c->n, &pairs, &c->n_pair, NULL) != US_OK) return 0;
        hash += (uint64_t)c->n_pair + 1;
        // The whole list once, outside of what a step would do.
        if (step == STEPS - 1) hash = us_hash_bytes(hash, pairs, (size_t)c->n_pair * sizeof *pairs);
    }
    return hash;
}

static bool bench_crowd(int32_t n, const options *o) {
    crowd c = {NULL, calloc((size_t)n, sizeof *c.start), calloc((size_t)n, sizeof *c.now), n, 0};
    usi_broad_def def = {n, n, 20 * (int64_t)n, NULL, 0, NULL};
    bool ok = c.start && c.now && usi_broad_create(&def, &c.broad, NULL) == US_OK;
    if (ok) {
        double side = 0.5 * cbrt(n / 1.05);
        for (int32_t i = 0; i < n; i++) {
            double h = uniform(2, (uint64_t)i, 0.35, 0.5);
            us_vec3 p = in_cube(1, (uint64_t)i, side), half = us_vec3_make(h, h, h);
            c.start[i] = (usi_broad_box){{us_vec3_sub(p, half), us_vec3_add(p, half)}, 1, 1, i};
        }
        char name[64];
        snprintf(name, sizeof name, "broad phase, %d boxes", n);
        work w = {name, "per box", run_crowd, &c, (double)n * STEPS};
        ok = measure(&w, o);
        if (ok && !o->is_json) printf("%-28s %.1f neighbours each\n", "", 2.0 * (double)c.n_pair / n);
    }
    usi_broad_destroy(c.broad);
    free(c.start);
    free(c.now);
    return ok;
}

// ---------------------------------------------------------------- shapes

typedef struct pair {
    const us_geom *A, *B;
} pair;

static uint64_t run_rays(void *self) {
    const us_geom *g = self;
    double sum = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        us_vec3 o = us_vec3_make(-3, 1.5 * (double)(i % 40) / 20 - 1.5, 2),
                target = us_vec3_make(0.3, 1.5 * (double)(i / 40) / 25 - 1.5, 0), d = us_vec3_sub(target, o);
        us_ray_hit hit = us_geom_ray(g, us_pose_identity(), o, us_vec3_scale(1 / us_vec3_norm(d), d), 100);
        if (hit.range < INFINITY) sum += hit.range + hit.normal.x;
    }
    return us_hash_bytes(0, &sum, sizeof sum);
}

static us_pose pose_of(uint64_t i) {
    static us_pose poses[MANY];
    static bool is_made = false;
    for (uint64_t k = 0; k < MANY && !is_made; k++)
        poses[k] = some_pose(5, k, 1.2);
    is_made = true;
    return poses[i];
}

static uint64_t run_distance(void *self) {
    const pair *p = self;
    double sum = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        us_gap gap;
        if (us_geom_distance(p->A, us_pose_identity(), p->B, pose_of(i), &gap) != US_OK) return 0;
        sum += gap.distance;
    }
    return us_hash_bytes(0, &sum, sizeof sum);
}

static uint64_t run_contact(void *self) {
    const pair *p = self;
    double sum = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        us_manifold m;
        if (us_geom_contact(p->A, us_pose_identity(), p->B, pose_of(i), 0.01, &m) != US_OK) return 0;
        for (int32_t k = 0; k < m.n; k++)
            sum += m.gap[k];
    }
    return us_hash_bytes(0, &sum, sizeof sum);
}

static us_mesh *ball_mesh(void) {
    enum { N = 64 };
    static us_vec3 vertex[N * N];
    static int32_t triangle[2 * N * (N - 1)][3];
    int32_t n = 0;
    for (int32_t j = 0; j < N; j++) {
        for (int32_t i = 0; i < N; i++) {
            double u = 6.283185307179586 * i / N, v = 3.0 * (j + 0.5) / N + 0.07;
            vertex[j * N + i] = us_vec3_make(sin(v) * cos(u), sin(v) * sin(u), cos(v));
            if (j + 1 == N) continue;
            int32_t a = j * N + i, b = j * N + (i + 1) % N, c = a + N, d = b + N;
            triangle[n][0] = a;
            triangle[n][1] = c;
            triangle[n++][2] = d;
            triangle[n][0] = a;
            triangle[n][1] = d;
            triangle[n++][2] = b;
        }
    }
    us_mesh *mesh = NULL;
    us_mesh_create(vertex, N * N, (const int32_t(*)[3])triangle, n, NULL, &mesh, NULL);
    return mesh;
}

static us_height_field *hills(void) {
    enum { N = 256 };
    static double h[N * N];
    for (int i = 0; i < N * N; i++)
        h[i] = 0.1 * sin(0.1 * (i % N)) * cos(0.13 * (i / N));
    us_height_field *field = NULL;
    us_height_field_create(h, N, N, 0.02, 0.02, NULL, &field, NULL);
    return field;
}

static us_hull *cut_ball(void) {
    us_vec3 p[40];
    for (uint64_t i = 0; i < 40; i++) {
        us_vec3 a = in_cube(9, i, 1);
        p[i] = us_vec3_scale(1 / us_vec3_norm(a), a);
    }
    us_hull *hull = NULL;
    us_hull_create(p, 40, NULL, &hull, NULL);
    return hull;
}

// ---------------------------------------------------------------- on the ground

typedef struct ground {
    const us_geom *shape;
    us_geom field;
    us_pose pose[MANY];
} ground;

static uint64_t run_ground(void *self) {
    const ground *g = self;
    double sum = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        us_manifold m;
        if (us_geom_contact(g->shape, g->pose[i], &g->field, us_pose_identity(), 0.001, &m) != US_OK)
            return 0;
        for (int32_t k = 0; k < m.n; k++)
            sum += m.gap[k];
    }
    return us_hash_bytes(0, &sum, sizeof sum);
}

// A wheel, a ball, a capsule and a box put down on rolling hills, up to a millimetre deep.
static bool bench_ground(double step, const options *o) {
    enum { N = 256 };
    static double h[N * N];
    static ground g;
    const us_geom shape[] = {{.kind = US_GEOM_CYLINDER, .size = {0.2, 0.075}},
                             {.kind = US_GEOM_SPHERE, .radius = 0.1},
                             {.kind = US_GEOM_CAPSULE, .radius = 0.1, .size = {0.15}},
                             {.kind = US_GEOM_BOX, .size = {0.1, 0.1, 0.1}}};
    for (int i = 0; i < N * N; i++) {
        double x = (i % N - 127.5) * step,
               y = ((double)(i / N) - 127.5) * step;  // NOLINT(bugprone-integer-division)
        h[i] = 0.2 * sin(0.5236 * x) * cos(0.6283 * y) + 0.05 * sin(2.0268 * x);
    }
    us_height_field *field = NULL;
    bool ok = us_height_field_create(h, N, N, step, step, NULL, &field, NULL) == US_OK;
    g.field = (us_geom){.kind = US_GEOM_HEIGHT_FIELD, .field = field};
    for (size_t s = 0; ok && s < sizeof shape / sizeof *shape; s++) {
        g.shape = &shape[s];
        for (uint64_t i = 0; i < MANY; i++) {
            double lying = shape[s].kind == US_GEOM_BOX ? 0 : 1.5707963;
            us_quat roll = us_quat_from_rpy(lying + uniform(31, i, -0.1, 0.1), 0, 0),
                    yaw = us_quat_from_rpy(0, 0, uniform(32, i, 0, 6));
            g.pose[i] = (us_pose){us_quat_mul(yaw, roll), {uniform(33, i, -4, 4), uniform(34, i, -4, 4), 1}};
            for (int k = 0; k < 3; k++) {
                us_gap gap;
                if (us_geom_distance(&shape[s], g.pose[i], &g.field, us_pose_identity(), &gap) != US_OK)
                    return false;
                g.pose[i].p.z -= gap.distance + uniform(35, i, 0, 0.001);
            }
        }
        char name[64];
        snprintf(name, sizeof name, "%s, cells of %g m", us_geom_kind_name(shape[s].kind), step);
        work w = {name, "on the ground", run_ground, &g, MANY};
        ok = measure(&w, o);
    }
    us_height_field_destroy(field);
    return ok;
}

// ---------------------------------------------------------------- rays over a wide ground

enum { SCAN = 36000 };  // rays: half a turn of a lidar of 32 lasers

typedef struct scan {
    const us_height_field *field;
    bool is_by_cells;
} scan;

// From a mast in the middle of the ground, 32 rays a column from 31 degrees down to 11 up.
static usi_ray scan_ray[SCAN];

static void make_scan(void) {
    for (int i = 0; i < SCAN; i++) {
        double azimuth = 2 * acos(-1) * i / SCAN, elevation = -0.535 + 0.721 * (i % 32) / 31;
        scan_ray[i] = (usi_ray){
            {0.3, 0.2, 1.5}, {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth), sin(elevation)}};
    }
}

static uint64_t run_scan(void *self) {
    const scan *s = self;
    double sum = 1;
    for (int i = 0; i < SCAN; i++) {
        us_ray_hit hit = s->is_by_cells ? usi_ray_cast_field_by_cells(s->field, scan_ray[i], 100)
                                        : usi_ray_cast_field(s->field, scan_ray[i], 100, 0);
        if (hit.range < INFINITY) sum += hit.range + hit.normal.x;
    }
    return us_hash_bytes(0, &sum, sizeof sum);
}

// A million triangles: 708 by 708 cells of 0.1 m and of 0.5 m, hills of half a metre.
static bool bench_scan(const options *o) {
    enum { N = 709 };
    static double h[N * N];
    for (int i = 0; i < N * N; i++)
        h[i] = 0.5 * sin(0.06 * (i % N)) * cos(0.045 * (i / N)) + 0.02 * uniform(8, (uint64_t)i, -1, 1);
    bool ok = true;
    make_scan();
    for (int k = 0; ok && k < 2; k++) {
        us_height_field *field = NULL;
        const double apart = k == 0 ? 0.1 : 0.5;
        char name[64];
        ok = us_height_field_create(h, N, N, apart, apart, NULL, &field, NULL) == US_OK;
        snprintf(name, sizeof name, "1 M triangles, %.1f m", apart);
        scan blocks = {field, false}, cells = {field, true};
        work fast = {name, "ray", run_scan, &blocks, SCAN},
             plain = {name, "ray by cells", run_scan, &cells, SCAN};
        ok = ok && measure(&fast, o) && measure(&plain, o);
        us_height_field_destroy(field);
    }
    return ok;
}

static bool bench_shapes(const options *o) {
    us_mesh *mesh = ball_mesh();
    us_height_field *field = hills();
    us_hull *hull = cut_ball();
    bool ok = mesh && field && hull;
    us_geom g[] = {
        {.kind = US_GEOM_SPHERE, .radius = 1},
        {.kind = US_GEOM_CAPSULE, .radius = 0.5, .size = {0.7}},
        {.kind = US_GEOM_LOZENGE, .radius = 0.2, .size = {0.9, 0.7}},
        {.kind = US_GEOM_DISC, .radius = 0.2, .size = {0.9}},
        {.kind = US_GEOM_TRIANGLE, .radius = 0.1, .point = {{-1, -1, 0}, {1, -1, 0}, {0, 1, 0}}},
        {.kind = US_GEOM_BOX, .size = {0.8, 0.7, 0.6}},
        {.kind = US_GEOM_BOX, .radius = 0.1, .size = {0.7, 0.6, 0.5}},
        {.kind = US_GEOM_CYLINDER, .size = {0.8, 0.7}},
        {.kind = US_GEOM_CYLINDER, .radius = 0.1, .size = {0.7, 0.6}},
        {.kind = US_GEOM_CONE, .size = {0.9, 0.7}},
        {.kind = US_GEOM_ELLIPSOID, .size = {0.9, 0.7, 0.5}},
        {.kind = US_GEOM_TETRAHEDRON, .point = {{-1, -1, -0.5}, {1, -1, -0.5}, {0, 1, -0.5}, {0, 0, 1}}},
        {.kind = US_GEOM_CONVEX, .hull = hull},
        {.kind = US_GEOM_HALF_SPACE},
        {.kind = US_GEOM_MESH, .mesh = mesh},
        {.kind = US_GEOM_HEIGHT_FIELD, .field = field},
    };
    enum { N = sizeof g / sizeof *g };
    char name[64];
    for (int i = 0; ok && i < N; i++) {
        snprintf(name, sizeof name, "%s%s", us_geom_kind_name(g[i].kind),
                 g[i].radius > 0 && g[i].kind != US_GEOM_SPHERE ? ", swept" : "");
        work w = {name, "ray", run_rays, &g[i], MANY};
        ok = measure(&w, o);
    }
    // Places in g: what meets what.
    const int meet[][2] = {{0, 0}, {0, 5}, {1, 1}, {5, 5}, {7, 5}, {10, 5}, {12, 12}, {13, 5}};
    for (size_t i = 0; ok && i < sizeof meet / sizeof *meet; i++) {
        pair p = {&g[meet[i][0]], &g[meet[i][1]]};
        snprintf(name, sizeof name, "%s and %s", us_geom_kind_name(p.A->kind), us_geom_kind_name(p.B->kind));
        work distance = {name, "distance", run_distance, &p, MANY},
             contact = {name, "contact", run_contact, &p, MANY};
        ok = measure(&distance, o) && measure(&contact, o);
    }
    us_mesh_destroy(mesh);
    us_height_field_destroy(field);
    us_hull_destroy(hull);
    return ok;
}

int main(int argc, char **argv) {
    options o = {false, 5};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            o.is_json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            o.n_round = atoi(argv[++i]);
        else if (strcmp(argv[i], "--full") != 0) {
            fprintf(stderr, "usage: bench_geom [--json] [--rounds N]\n");
            return 2;
        }
    }
    if (o.n_round < 1) o.n_round = 1;
    if (o.n_round > BENCH_MAX_ROUNDS) o.n_round = BENCH_MAX_ROUNDS;
    bool ok = bench_crowd(30, &o) && bench_crowd(100, &o) && bench_crowd(1000, &o) &&
              bench_crowd(10000, &o) && bench_ground(0.25, &o) && bench_ground(0.05, &o) &&
              bench_shapes(&o) && bench_scan(&o);
    return ok ? 0 : 1;
}
