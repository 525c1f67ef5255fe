// Piles of boxes that fall, second by second: time of a step on one thread and on several, contact points,
// depth.
//
//     bench_pile [--side N ...] [--seconds S] [--rounds R] [--threads T]
//
// N^3 cubes, turned at random, fall 0.25 m and more onto a plane: the piles of the peers' scenes. Worlds with
// one and with T threads take turns step by step; of each step the least time of all rounds counts, which
// other programs at work on the machine disturb least. One thread by its processor time; the gain of several
// by the wall clock, over the steps. Points and depth are looked at every 25 steps. Every round must end in
// the same state, with any number of threads: the exit code says so.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { STEPS = 1000, LOOK = 25, MAX_SECONDS = 20 };

// What a run is asked for.
typedef struct options {
    int side[4], n_side;
    int seconds, rounds, threads;
} options;

// What is known of each second of a pile.
typedef struct second {
    double least[3][STEPS];  // s: one thread by its processor time and by the wall clock; several threads
    double n_point;          // mean
    double depth, deepest;   // m, largest; mean of the deepest point
    uint64_t hash;
} second;

static double wall_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double scatter(int k) {
    const double x = sin(12.9898 * (k + 1)) * 43758.5453;
    return x - floor(x);
}

// ---------------------------------------------------------------- the scene

static us_status add_box(us_spec *spec, int side, int k) {
    const double spacing = 0.36, size = 0.2, mass = 1, I = mass * size * size / 6;
    const int x = k % side, y = k / side % side, z = k / (side * side);
    us_vec3 axis = us_vec3_make(scatter(7 * k) - 0.5, scatter(7 * k + 1) - 0.5, scatter(7 * k + 2) - 0.5);
    const double half = 1.5 * scatter(7 * k + 3), along = sin(half) / us_vec3_norm(axis);
    char name[2][32];
    snprintf(name[0], sizeof name[0], "box%d", k);
    snprintf(name[1], sizeof name[1], "joint%d", k);
    us_link_def link = us_link_def_default();
    link.name = name[0];
    link.inertia = (us_inertia){mass, {0, 0, 0}, {I, I, I, 0, 0, 0}};
    us_joint_def joint = us_joint_def_default(US_JOINT_FLOATING);
    joint.name = name[1];
    joint.parent = US_WORLD;
    joint.child = k;
    const double q[7] = {cos(half),
                         along * axis.x,
                         along * axis.y,
                         along * axis.z,
                         spacing * (x - 0.5 * (side - 1)),
                         spacing * (y - 0.5 * (side - 1)),
                         0.25 + spacing * z};
    memcpy(joint.q0, q, sizeof q);
    us_shape_def shape = us_shape_def_default(US_SHAPE_BOX);
    shape.link = k;
    for (int i = 0; i < 3; i++)
        shape.size[i] = size;
    us_status status = us_spec_add_link(spec, &link, NULL);
    if (!status) status = us_spec_add_joint(spec, &joint, NULL);
    if (!status) status = us_spec_add_shape(spec, &shape, NULL);
    return status;
}

static us_status make_model(int side, us_model **out_model, us_error *err) {
    us_spec *spec = NULL;
    us_status status = us_spec_create(NULL, &spec);
    us_world_settings world = us_world_settings_default();
    world.integrator = US_INTEGRATOR_EULER;
    if (!status) status = us_spec_set_world(spec, &world);
    us_pair_def pair = us_pair_def_default();
    pair.values.static_friction = pair.values.kinetic_friction = 0.8;
    pair.values.viscous = pair.values.restitution = 0;
    if (!status) status = us_spec_add_pair(spec, &pair, NULL);
    us_shape_def ground = us_shape_def_default(US_SHAPE_HALF_SPACE);
    if (!status) status = us_spec_add_shape(spec, &ground, NULL);
    for (int k = 0; k < side * side * side && !status; k++)
        status = add_box(spec, side, k);
    if (!status) status = us_model_compile(spec, NULL, out_model, err);
    us_spec_destroy(spec);
    return status;
}

// ---------------------------------------------------------------- the run

static us_status run_step(us_sim *sim, double *least_cpu, double *least_wall) {
    const double cpu = bench_cpu_now(), wall = wall_now();
    const us_status status = us_sim_step(sim, NULL);
    if (least_cpu) *least_cpu = fmin(*least_cpu, bench_cpu_now() - cpu);
    *least_wall = fmin(*least_wall, wall_now() - wall);
    return status;
}

static void look(const us_sim *sim, second *s) {
    const int32_t n = us_sim_n_contact(sim);
    double deepest = 0;
    for (int32_t i = 0; i < n; i++)
        deepest = fmax(deepest, -us_sim_get_contact(sim, i).gap);
    s->n_point += (double)n * LOOK / STEPS;
    s->deepest += deepest * LOOK / STEPS;
    s->depth = fmax(s->depth, deepest);
}

// One round: both worlds from the start. False when one fails, or ends otherwise than in the first round.
static bool run_round(const us_model *model, const options *o, bool is_first, second *s) {
    us_sim *sim[2] = {NULL, NULL};
    us_error err = {0};
    us_status status = US_OK;
    for (int i = 0; i < (o->threads > 1 ? 2 : 1) && !status; i++) {
        us_sim_def def = us_sim_def_default();
        def.n_thread = i == 0 ? 1 : o->threads;
        status = us_sim_create(model, &def, &sim[i], &err);
    }
    bool is_same = true;
    for (int at = 0; at < o->seconds && !status; at++, s++) {
        for (int k = 0; k < STEPS && !status; k++) {
            status = run_step(sim[0], &s->least[0][k], &s->least[1][k]);
            if (is_first && k % LOOK == LOOK - 1) look(sim[0], s);
            if (!status && sim[1]) status = run_step(sim[1], NULL, &s->least[2][k]);
        }
        const uint64_t hash = us_sim_hash(sim[0]);
        if (is_first) s->hash = hash;
        is_same = is_same && hash == s->hash && (!sim[1] || us_sim_hash(sim[1]) == hash);
    }
    if (status) fprintf(stderr, "bench_pile: %s\n", us_status_text(status));
    if (!is_same) fprintf(stderr, "bench_pile: two runs differ\n");
    us_sim_destroy(sim[0]);
    us_sim_destroy(sim[1]);
    return !status && is_same;
}

static double mean_of(const double least[STEPS]) {
    double sum = 0;
    for (int k = 0; k < STEPS; k++)
        sum += least[k];
    return sum / STEPS;
}

static bool measure(int side, const options *o) {
    static second list[MAX_SECONDS];
    us_model *model = NULL;
    us_error err = {0};
    memset(list, 0, sizeof list);
    for (int i = 0; i < o->seconds; i++) {
        for (int k = 0; k < 3 * STEPS; k++)
            list[i].least[k / STEPS][k % STEPS] = INFINITY;
    }
    us_status status = make_model(side, &model, &err);
    if (status) fprintf(stderr, "bench_pile: %s %s\n", us_status_text(status), err.message);
    bool ok = !status;
    for (int i = 0; i < o->rounds && ok; i++)
        ok = run_round(model, o, i == 0, list);
    us_model_destroy(model);
    for (int i = 0; i < o->seconds && ok; i++) {
        const second *s = &list[i];
        const double one = mean_of(s->least[0]), wall = mean_of(s->least[1]);
        printf("box-pile-%-5d second %2d  %8.1f us a step  %8.0f steps/s  %7.0f points  %6.3f mm deep, mean "
               "%5.3f",
               side * side * side, i + 1, 1e6 * one, 1 / one, s->n_point, 1e3 * s->depth, 1e3 * s->deepest);
        if (o->threads > 1) printf("  %d threads %5.2f x", o->threads, wall / mean_of(s->least[2]));
        printf("  %016" PRIx64 "\n", s->hash);
    }
    return ok;
}

int main(int argc, char **argv) {
    options o = {.seconds = 4, .rounds = 1, .threads = 2};
    for (int i = 1; i + 1 < argc; i += 2) {
        const int value = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--side") && o.n_side < 4) o.side[o.n_side++] = value;
        if (!strcmp(argv[i], "--seconds")) o.seconds = value < MAX_SECONDS ? value : MAX_SECONDS;
        if (!strcmp(argv[i], "--rounds")) o.rounds = value;
        if (!strcmp(argv[i], "--threads")) o.threads = value;
    }
    if (o.n_side == 0) {
        o.side[0] = 6;
        o.side[1] = 10;
        o.n_side = 2;
    }
    bool ok = true;
    for (int i = 0; i < o.n_side; i++)
        ok = measure(o.side[i], &o) && ok;
    return ok ? 0 : 1;
}
