// Where a step's time goes: microseconds per stage, for scenes with contact. The stages are read from the
// wall clock; beside them stands the processor time of a step, and how much faster than real time that is: of
// every 25 steps the least of five runs, which other programs at work on the machine disturb least.
//
//     bench_stages [SCENE.xml ...]
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { CHUNK = 25, ROUNDS = 5, MAX_CHUNKS = 2000 };

// A second to settle, then four that count. The processor time of each chunk of steps goes to `least` where
// it is less than what is there.
static us_status run(const us_model *model, double least[MAX_CHUNKS], int n_chunk, us_profile *out_profile,
                     int32_t *out_contacts, us_error *err) {
    us_sim *sim = NULL;
    us_sim_def def = us_sim_def_default();
    def.enable_profile = true;
    us_status status = us_sim_create(model, &def, &sim, err);
    if (status) return status;
    for (int i = 0; i < n_chunk / 4 * CHUNK && !status; i++)
        status = us_sim_step(sim, NULL);
    us_sim_take_profile(sim);
    for (int k = 0; k < n_chunk && !status; k++) {
        double start = bench_cpu_now();
        for (int i = 0; i < CHUNK && !status; i++)
            status = us_sim_step(sim, NULL);
        double time = bench_cpu_now() - start;
        if (time < least[k]) least[k] = time;
    }
    if (status) *err = *us_sim_view_error(sim);
    *out_profile = us_sim_take_profile(sim);
    *out_contacts = us_sim_n_contact(sim);
    us_sim_destroy(sim);
    return status;
}

static bool measure(const char *path) {
    static double least[MAX_CHUNKS];
    us_error err;
    us_model *model = NULL;
    us_load_def load = us_load_def_default();
    us_profile p = {0};
    int32_t n_contact = 0;
    us_status status = us_model_load(path, &load, &model, &err);
    int n_chunk = status ? 0 : (int)(4 / us_model_get_step(model)) / CHUNK;
    if (n_chunk > MAX_CHUNKS) n_chunk = MAX_CHUNKS;
    for (int k = 0; k < n_chunk; k++)
        least[k] = INFINITY;
    for (int round = 0; round < ROUNDS && !status; round++)
        status = run(model, least, n_chunk, &p, &n_contact, &err);
    if (status) {
        char text[1000];
        us_error_format(&err, text, sizeof text);
        fprintf(stderr, "bench_stages: %s\n", text);
        us_model_destroy(model);
        return false;
    }
    double all = 0, cpu = 0, n = (double)n_chunk * CHUNK;
    const char *name = strrchr(path, '/');
    for (int k = 0; k < n_chunk; k++)
        cpu += least[k] / n;
    for (int k = 0; k < US_STAGE_COUNT; k++)
        all += p.seconds[k];
    printf("%-24s %4d contacts  %8.2f us", name ? name + 1 : path, n_contact, 1e6 * all / n);
    for (int k = 0; k < US_STAGE_COUNT; k++)
        printf("  %s %.2f", us_stage_name((us_stage)k), 1e6 * p.seconds[k] / n);
    printf("  processor %.2f us, %.0f x real time\n", 1e6 * cpu, us_model_get_step(model) / cpu);
    us_model_destroy(model);
    return true;
}

int main(int argc, char **argv) {
    static const char *const scenes[] = {
        "bench/k10-terrain", "bench/k10-soil", "bench/k10-ruts", "scenes/default", "scenes/stack",
        "scenes/grasp",      "scenes/gripper", "scenes/marbles", "scenes/slope",   "scenes/arm"};
    bool ok = true;
    printf("microseconds per step and stage, after a second of settling\n");
    for (int i = 1; i < argc; i++)
        ok = measure(argv[i]) && ok;
    for (size_t i = 0; argc == 1 && i < sizeof scenes / sizeof *scenes; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.xml", US_SOURCE_DIR, scenes[i]);
        ok = measure(path) && ok;
    }
    return ok ? 0 : 1;
}
