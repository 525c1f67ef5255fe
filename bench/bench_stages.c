// Where a step's time goes: microseconds per stage, for scenes with contact. The stages are read from the wall clock; beside them stands the
// processor time of a step, and how much faster than real time that is.
//
//     bench_stages [SCENE.xml ...]
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static bool measure(const char *path) {
    us_error err;
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_load_def load = us_load_def_default();
    us_sim_def def = us_sim_def_default();
    def.enable_profile = true;
    us_status status = us_model_load(path, &load, &model, &err);
    if (!status) status = us_sim_create(model, &def, &sim, &err);
    if (status) {
        char text[1000];
        us_error_format(&err, text, sizeof text);
        fprintf(stderr, "bench_stages: %s\n", text);
        us_model_destroy(model);
        return false;
    }
    // A second to settle, then four that count.
    int settle = (int)(1 / us_model_get_step(model)), n = 4 * settle;
    for (int i = 0; i < settle && !status; i++) status = us_sim_step(sim, NULL);
    us_sim_take_profile(sim);
    double start = bench_cpu_now();
    for (int i = 0; i < n && !status; i++) status = us_sim_step(sim, NULL);
    double cpu = (bench_cpu_now() - start) / (double)n;
    us_profile p = us_sim_take_profile(sim);
    const char *name = strrchr(path, '/');
    double all = 0;
    for (int k = 0; k < US_STAGE_COUNT; k++) all += p.seconds[k];
    printf("%-24s %4d contacts  %8.2f us", name ? name + 1 : path, us_sim_n_contact(sim), 1e6 * all / (double)n);
    for (int k = 0; k < US_STAGE_COUNT; k++) printf("  %s %.2f", us_stage_name((us_stage)k), 1e6 * p.seconds[k] / (double)n);
    printf("  processor %.2f us, %.0f x real time%s\n", 1e6 * cpu, us_model_get_step(model) / cpu, status ? "  FAILED" : "");
    us_sim_destroy(sim);
    us_model_destroy(model);
    return !status;
}

int main(int argc, char **argv) {
    static const char *const scenes[] = {"bench/k10-terrain", "scenes/default", "scenes/stack", "scenes/grasp",
                                         "scenes/gripper",    "scenes/marbles", "scenes/slope", "scenes/arm"};
    bool ok = true;
    printf("microseconds per step and stage, after a second of settling\n");
    for (int i = 1; i < argc; i++) ok = measure(argv[i]) && ok;
    for (size_t i = 0; argc == 1 && i < sizeof scenes / sizeof *scenes; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.xml", US_SOURCE_DIR, scenes[i]);
        ok = measure(path) && ok;
    }
    return ok ? 0 : 1;
}
