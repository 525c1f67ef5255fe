// Speed of multibody dynamics: forward dynamics and steps of chains, and an arm under PD, beside MuJoCo and
// ODE.
//
// The engines take turns: one round is one sample of each, and the first round only warms up. Before each
// sample the start state is restored, so every sample computes the same motion, and the hash of its end shows
// that it did. Times are CPU time of the thread. Compare ratios of one run; on a shared machine the times
// themselves wander by half. The exit code says whether everything ran, never how fast.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MAX_ENGINES = 8, CHAINS = 3, CHAIN_STEPS = 500 };
static const int32_t chain_sizes[CHAINS] = {6, 30, 100};

typedef struct options {
    bool is_json, is_full;
    int n_round;
} options;

// One engine on one scene.
typedef struct entry {
    const bench_engine *engine;
    void *self;
    bench_samples forward, step;  // us
    uint64_t hash;
    us_vec3 tip;
} entry;

typedef struct contest {
    bench_scene scene;
    int n;
    entry entry[MAX_ENGINES];
} contest;

static void close_contest(contest *c) {
    for (int i = 0; i < c->n; i++)
        c->entry[i].engine->destroy(c->entry[i].self);
    c->n = 0;
}

static bool open_contest(contest *c, const bench_engine *engines, int n_engine) {
    c->n = 0;
    for (int i = 0; i < n_engine; i++) {
        const bench_engine *e = &engines[i];
        if (c->scene.n_link > e->max_link || (c->scene.is_driven && !e->can_drive)) continue;
        void *self = e->create(&c->scene, e->variant);
        if (!self) {
            close_contest(c);
            return false;
        }
        c->entry[c->n++] = (entry){.engine = e, .self = self};
    }
    return true;
}

static bool sample_forward(entry *e, int n, double *out_us) {
    bool ok = true;
    e->engine->restore(e->self);
    double start = bench_cpu_now();
    for (int i = 0; i < n; i++)
        ok &= e->engine->forward(e->self);
    *out_us = (bench_cpu_now() - start) / n * 1e6;
    return ok;
}

// The arm's drives move between two poses, one each second.
static void new_target(entry *e, int i) {
    static const double poses[2][6] = {{0.8, 0.5, 1.2, -0.5, 0.9, 1.6}, {-0.8, -0.3, 0.7, 0.5, -0.9, -1.6}};
    if (i % 1000 == 0) e->engine->aim(e->self, poses[i / 1000 % 2]);
}

static bool sample_step(entry *e, bool is_driven, int n_run, int n_step, double *out_us) {
    bool ok = true;
    double total = 0;
    for (int run = 0; run < n_run && ok; run++) {
        e->engine->restore(e->self);
        double start = bench_cpu_now();
        for (int i = 0; i < n_step && ok; i++) {
            if (is_driven) new_target(e, i);
            ok = e->engine->step(e->self);
        }
        total += bench_cpu_now() - start;
    }
    *out_us = total / n_run / n_step * 1e6;
    return ok;
}

// Every sample ends in the same state, or the restored start was not the whole state.
static bool same_end(entry *e, int round, const char *scene) {
    uint64_t hash = e->engine->hash(e->self);
    bool ok = round == 0 || hash == e->hash;
    e->hash = hash;
    e->tip = e->engine->tip(e->self);
    if (!ok)
        fprintf(stderr, "bench: %s, %s: the state after round %d differs from that of the round before\n",
                e->engine->name, scene, round);
    return ok || e->engine->is_peer;
}

static bool run_rounds(contest *c, const options *o, int n_forward, int n_run, int n_step) {
    bool ok = true;
    for (int round = 0; round <= o->n_round && ok; round++) {
        for (int i = 0; i < c->n && ok; i++) {
            entry *e = &c->entry[i];
            double us = 0;
            if (n_forward && e->engine->forward) {
                ok = sample_forward(e, round ? n_forward : n_forward / 10 + 1, &us);
                if (round) bench_add(&e->forward, us);
            }
            ok = ok && sample_step(e, c->scene.is_driven, round ? n_run : 1, n_step, &us);
            if (round) bench_add(&e->step, us);
            ok = ok && same_end(e, round, c->scene.name);
        }
    }
    return ok;
}

// ---------------------------------------------------------------- reports

// The fastest peer's median (or least) time; NaN when no peer took part.
static double fastest_peer(const contest *c, bool is_step, double (*pick)(const bench_samples *)) {
    double best = NAN;
    for (int i = 0; i < c->n; i++) {
        const entry *e = &c->entry[i];
        if (e->engine->is_peer) best = fmin(best, pick(is_step ? &e->step : &e->forward));
    }
    return best;
}

static void print_cell(const bench_samples *s, int32_t n_dof, double best) {
    if (s->n == 0) {
        printf("  %9s %19s %7s %6s", "-", "", "", "");
        return;
    }
    char range[32], gain[16] = "";
    double median = bench_median(s);
    snprintf(range, sizeof range, "%.3f .. %.3f", bench_min(s), bench_max(s));
    if (isfinite(best)) snprintf(gain, sizeof gain, "%.2f", best / median);
    printf("  %9.3f %19s %7.1f %6s", median, range, 1e3 * median / n_dof, gain);
}

static void print_contest(const contest *c, const options *o) {
    double forward = fastest_peer(c, false, bench_median), step = fastest_peer(c, true, bench_median);
    int32_t n = c->scene.n_link;
    if (!o->is_json) {
        printf("\n%s\n%-20s  %9s %19s %7s %6s  %9s %19s %7s %6s  %-28s %s\n", c->scene.name, "", "fd us",
               "min .. max", "ns/dof", "gain", "step us", "min .. max", "ns/dof", "gain",
               "last link at the end", "state");
    }
    for (int i = 0; i < c->n; i++) {
        const entry *e = &c->entry[i];
        if (o->is_json) {
            bench_figure f = {c->scene.name,
                              e->engine->name,
                              e->engine->variant,
                              "fd",
                              "us",
                              &e->forward,
                              1e3 * bench_median(&e->forward) / n,
                              forward / bench_median(&e->forward),
                              0,
                              NULL};
            if (e->forward.n) bench_print_json(&f);
            f.metric = "step";
            f.samples = &e->step;
            f.ns_per_dof = 1e3 * bench_median(&e->step) / n;
            f.gain = step / bench_median(&e->step);
            f.hash = e->hash;
            f.tip = &e->tip;
            bench_print_json(&f);
            continue;
        }
        char name[40];
        snprintf(name, sizeof name, "%s %s", e->engine->name, e->engine->variant);
        printf("%-20s", name);
        print_cell(&e->forward, n, forward);
        print_cell(&e->step, n, step);
        printf("  %8.5f %9.5f %9.5f %016" PRIx64 "\n", e->tip.x, e->tip.y, e->tip.z, e->hash);
    }
    fflush(stdout);
}

static void print_single(const options *o, const char *scene, const char *variant, const char *metric,
                         const char *unit, double value) {
    if (!o->is_json) {
        printf("%-12s %-10s %-40s %10.4g %s\n", scene, variant, metric, value, unit);
        return;
    }
    bench_samples s = {1, {value}};
    bench_figure f = {scene, "understudy", variant, metric, unit, &s, NAN, NAN, 0, NULL};
    bench_print_json(&f);
}

static bool print_profile(const options *o, const bench_scene *scene, const char *variant) {
    us_profile p;
    double total = 0;
    if (!bench_understudy_profile(scene, variant, 20000, CHAIN_STEPS, &p)) return false;
    for (int i = 0; i < US_STAGE_COUNT; i++)
        total += p.seconds[i];
    for (int i = 0; i < US_STAGE_COUNT; i++) {
        char metric[64];
        snprintf(metric, sizeof metric, "stage %s, clock reading included", us_stage_name((us_stage)i));
        print_single(o, scene->name, variant, metric, "%", 100 * p.seconds[i] / total);
    }
    return true;
}

// ---------------------------------------------------------------- the benchmarks

// Cost per link at 100 links over that at 30, from the medians.
static double growth(const bench_samples *at_30, const bench_samples *at_100) {
    return bench_median(at_100) / 100 / (bench_median(at_30) / 30);
}

static bool bench_chains(const options *o, const bench_engine *engines, int n_engine) {
    static contest c[CHAINS];
    bool ok = true;
    for (int k = 0; k < CHAINS && ok; k++) {
        int32_t n = chain_sizes[k];
        bench_scene_chain(n, &c[k].scene);
        ok = open_contest(&c[k], engines, n_engine);
        // About 10 ms per sample for the fast ones.
        ok = ok && run_rounds(&c[k], o, 120000 / n, n <= 6 ? 20 : n <= 30 ? 4 : 1, CHAIN_STEPS);
        if (ok) print_contest(&c[k], o);
        close_contest(&c[k]);
    }
    if (!ok) return false;
    if (!o->is_json) printf("\n");
    // Our engines come first in every contest, so the entries correspond.
    print_single(o, "chain", "euler", "fd: cost per link, 100 over 30", "",
                 growth(&c[1].entry[0].forward, &c[2].entry[0].forward));
    print_single(o, "chain", "euler", "step: cost per link, 100 over 30", "",
                 growth(&c[1].entry[0].step, &c[2].entry[0].step));
    ok = print_profile(o, &c[1].scene, "euler");
    return ok;
}

static bool bench_arm(const options *o, const bench_engine *engines, int n_engine) {
    static contest c;
    if (!bench_scene_arm(&c.scene)) return false;
    bool ok = open_contest(&c, engines, n_engine) && run_rounds(&c, o, 20000, 1, 20000);
    if (ok) print_contest(&c, o);
    if (ok && !o->is_json) printf("\n");
    for (int i = 0; i < c.n && ok; i++) {
        entry *e = &c.entry[i];
        if (e->engine->is_peer) continue;
        double us = bench_median(&e->step);
        if (o->is_full) ok = sample_step(e, true, 1, 10000000, &us);
        print_single(o, c.scene.name, e->engine->variant, "simulated seconds per CPU second", "",
                     1e6 * c.scene.step / us);
        print_single(o, c.scene.name, e->engine->variant,
                     o->is_full ? "CPU time of 10 000 s, run in full"
                                : "CPU time of 10 000 s, from the median",
                     "s", 1e7 * us * 1e-6);
    }
    ok = ok && print_profile(o, &c.scene, "midpoint");
    close_contest(&c);
    return ok;
}

static int usage(FILE *to) {
    fprintf(to,
            "usage: bench_dynamics [--json] [--rounds N] [--full]\n"
            "  --json      one line of JSON per figure instead of the tables\n"
            "  --rounds N  samples per figure, 1 .. %d (default 9)\n"
            "  --full      run all 10 000 simulated seconds of the arm instead of 20\n",
            BENCH_MAX_ROUNDS);
    return to == stderr ? 2 : 0;
}

int main(int argc, char **argv) {
    options o = {false, false, 9};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            o.is_json = true;
        } else if (strcmp(argv[i], "--full") == 0) {
            o.is_full = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            o.n_round = atoi(argv[++i]);
        } else {
            return usage(strcmp(argv[i], "--help") == 0 ? stdout : stderr);
        }
    }
    if (o.n_round < 1 || o.n_round > BENCH_MAX_ROUNDS) return usage(stderr);
    bench_engine engines[MAX_ENGINES];
    int n = bench_engines_understudy(engines, MAX_ENGINES);
    n += bench_engines_mujoco(engines + n, MAX_ENGINES - n);
    n += bench_engines_ode(engines + n, MAX_ENGINES - n);
    if (!o.is_json) {
        printf("CPU time of the thread; median of %d interleaved rounds after a warm-up; gain: time of the "
               "fastest peer over this one's.\n",
               o.n_round);
        if (n <= 2) printf("No peer was there when this was built (libmujoco-dev, libode-dev).\n");
    }
    return bench_chains(&o, engines, n) && bench_arm(&o, engines, n) ? 0 : 1;
}
