// understudy bench: how long forward dynamics and steps take, with the hash of the state they lead to.
//
// Each figure is the median of nine samples after a warm-up, with min and max beside it, in CPU time
// of the thread. Every sample begins with the same state and ends with the same one, whose hash is printed: a
// program that is faster because it computes something else shows it.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { N_SAMPLE = CLI_BENCH_SAMPLE };
// A sample lasts at min this long, so that reading the clock (0.4 us) does not show.
static const double SAMPLE_SECONDS = 5e-3;

typedef cli_figure figure;

typedef struct report {
    char name[256];
    us_model_counts n;
    double step;
    us_integrator integrator;
    int64_t n_step;  // per sample
    figure forward, one_step;
    uint64_t hash;
    us_profile profile;
} report;

double cli_bench_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

figure cli_bench_figure(double samples[N_SAMPLE]) {
    qsort(samples, N_SAMPLE, sizeof *samples, compare);
    return (figure){samples[N_SAMPLE / 2], samples[0], samples[N_SAMPLE - 1]};
}

// ---- scenes built by calls ----

// A revolute link on `parent`. Returns its index, or -1.
static int32_t add_link(us_spec *spec, const char *name, int32_t parent, us_vec3 p_PF, us_vec3 axis,
                        us_inertia inertia, double q0) {
    us_link_def link = us_link_def_default();
    us_joint_def joint = us_joint_def_default(US_JOINT_REVOLUTE);
    char joint_name[64];
    snprintf(joint_name, sizeof joint_name, "%s_joint", name);
    link.name = name;
    link.inertia = inertia;
    joint.name = joint_name;
    joint.parent = parent;
    joint.X_PF.p = p_PF;
    joint.axis = axis;
    joint.q0[0] = q0;
    int32_t unused;
    if (us_spec_add_link(spec, &link, &joint.child) != US_OK ||
        us_spec_add_joint(spec, &joint, &unused) != US_OK)
        return -1;
    return joint.child;
}

// n bars of 0.2 m hanging from the world, their axes y and z by turns.
static bool build_chain(us_spec *spec, int32_t n) {
    const us_inertia bar = {1, {0.1, 0, 0}, {4.16667e-4, 3.541667e-3, 3.541667e-3, 0, 0, 0}};
    int32_t parent = US_WORLD;
    for (int32_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "link%d", (int)i);
        parent = add_link(spec, name, parent, us_vec3_make(i > 0 ? 0.2 : 0, 0, 0),
                          us_vec3_make(0, i % 2 == 0, i % 2), bar, 0.1);
        if (parent < 0) return false;
    }
    return true;
}

// A six-axis arm held in a pose by a PD drive on each joint.
static bool build_arm(us_spec *spec) {
    static const struct {
        us_vec3 p_PF, axis;
        us_inertia inertia;
        double q0, kp, kd;
    } links[6] = {
        {{0, 0, 0.13}, {0, 0, 1}, {7.8, {0, 0, 0}, {0.031, 0.031, 0.022, 0, 0, 0}}, 0.2, 2000, 100},
        {{0, 0.22, 0}, {0, 1, 0}, {12.9, {0, 0, 0.31}, {0.42, 0.42, 0.036, 0, 0, 0}}, -0.9, 2000, 100},
        {{0, -0.17, 0.61}, {0, 1, 0}, {3.9, {0, 0, 0.29}, {0.11, 0.11, 0.011, 0, 0, 0}}, 1.2, 1000, 50},
        {{0, 0, 0.57}, {0, 1, 0}, {2.0, {0, 0.11, 0}, {0.0051, 0.0051, 0.0055, 0, 0, 0}}, -0.3, 400, 10},
        {{0, 0.11, 0}, {0, 0, 1}, {2.0, {0, 0, 0.11}, {0.0051, 0.0051, 0.0055, 0, 0, 0}}, 0.4, 400, 10},
        {{0, 0, 0.12}, {0, 1, 0}, {0.37, {0, 0.06, 0}, {0.00053, 0.00053, 0.00058, 0, 0, 0}}, 0.1, 100, 2},
    };
    int32_t parent = US_WORLD;
    for (int32_t i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "axis%d", (int)i + 1);
        parent = add_link(spec, name, parent, links[i].p_PF, links[i].axis, links[i].inertia, links[i].q0);
        if (parent < 0) return false;
        us_drive_def drive = us_drive_def_default();
        drive.name = name;
        drive.joint = i;
        drive.kp = links[i].kp;
        drive.kd = links[i].kd;
        drive.position = links[i].q0;
        int32_t unused;
        if (us_spec_add_drive(spec, &drive, &unused) != US_OK) return false;
    }
    return true;
}

// "arm", "chain-N" or a file. Built scenes step as most engines do, semi-implicitly; a file steps as it says.
static int make_world(const cli_load *load, cli_world *world) {
    char *end;
    bool is_arm = strcmp(load->file, "arm") == 0, is_chain = strncmp(load->file, "chain-", 6) == 0;
    long n = is_chain ? strtol(load->file + 6, &end, 10) : 0;
    if (is_chain && (*end || n < 1 || n > 10000))
        return cli_fail(CLI_BAD_INPUT, load->file, "write chain-N with N between 1 and 10000", "not a chain");
    if (!is_arm && !is_chain) return cli_load_spec(load, US_BASE_FIXED, world);
    us_allocator allocator = us_allocator_default();
    if (us_spec_create(&allocator, &world->spec) != US_OK ||
        !(is_arm ? build_arm(world->spec) : build_chain(world->spec, (int32_t)n))) {
        return cli_fail(CLI_RUN_FAILED, load->file, "close other programs",
                        "the scene cannot be built: out of memory");
    }
    us_world_settings def = us_world_settings_default();
    def.name = load->file;
    def.integrator = US_INTEGRATOR_EULER;
    return us_spec_set_world(world->spec, &def) == US_OK
               ? CLI_GO_ON
               : cli_fail(CLI_RUN_FAILED, load->file, NULL, "the world cannot be set");
}

static int set_integrator(us_spec *spec, us_integrator integrator) {
    us_world_settings def = *us_spec_view_world(spec);
    char *name = def.name ? strdup(def.name) : NULL;
    def.name = name;
    def.integrator = integrator;
    us_status status = us_spec_set_world(spec, &def);
    free(name);
    return status == US_OK ? CLI_GO_ON
                           : cli_fail(CLI_BAD_INPUT, "understudy bench", NULL,
                                      "the integrator cannot be set: %s", us_status_text(status));
}

// ---- measuring ----

static us_status measure_forward(const us_model *model, const us_sim *sim, figure *out) {
    us_model_counts n = us_model_get_counts(model);
    us_dyn *dyn;
    us_status status = us_dyn_create(model, NULL, &dyn);
    if (status != US_OK) return status;
    double *tau = cli_allocate((size_t)n.n_v, sizeof *tau), *a = cli_allocate((size_t)n.n_v, sizeof *a),
           samples[N_SAMPLE];
    const double *q = us_sim_view_q(sim), *v = us_sim_view_v(sim);
    int64_t n_call = 1;
    for (int32_t i = -1; i < N_SAMPLE && status == US_OK;) {
        double start = cli_bench_seconds();
        for (int64_t k = 0; k < n_call && status == US_OK; k++)
            status = us_dyn_forward(dyn, q, v, tau, NULL, a);
        double spent = cli_bench_seconds() - start;
        // Warm-up: more calls until a sample is long enough.
        if (i < 0 && spent < SAMPLE_SECONDS) {
            n_call *= 2;
            continue;
        }
        if (i >= 0) samples[i] = spent / (double)n_call;
        i++;
    }
    if (status == US_OK) *out = cli_bench_figure(samples);
    free(tau);
    free(a);
    us_dyn_destroy(dyn);
    return status;
}

// Restores and steps n_step times; the time of the steps alone.
static us_status time_steps(us_sim *sim, const void *start, size_t length, int64_t n_step,
                            double *out_seconds) {
    us_status status = us_sim_restore(sim, start, length);
    double begin = cli_bench_seconds();
    for (int64_t k = 0; k < n_step && status == US_OK; k++)
        status = us_sim_step(sim, NULL);
    *out_seconds = cli_bench_seconds() - begin;
    return status;
}

static us_status measure_step(us_sim *sim, int64_t n_step, figure *out, uint64_t *out_hash) {
    size_t length = 0;
    us_status status = us_sim_save(sim, NULL, 0, &length);
    void *start = cli_allocate(length, 1);
    double samples[N_SAMPLE], spent = 0;
    if (status == US_OK) status = us_sim_save(sim, start, length, &length);
    if (status == US_OK) status = time_steps(sim, start, length, n_step, &spent);  // warm-up
    int64_t n_repeat = spent > 0 && spent < SAMPLE_SECONDS ? (int64_t)ceil(SAMPLE_SECONDS / spent) : 1;
    for (int32_t i = 0; i < N_SAMPLE && status == US_OK; i++) {
        double sum = 0;
        for (int64_t k = 0; k < n_repeat && status == US_OK; k++) {
            status = time_steps(sim, start, length, n_step, &spent);
            sum += spent;
        }
        samples[i] = sum / (double)(n_repeat * n_step);
    }
    if (status == US_OK) {
        *out = cli_bench_figure(samples);
        *out_hash = us_sim_hash(sim);
        us_sim_restore(sim, start, length);
    }
    free(start);
    return status;
}

// Where the time goes, in a sim of its own: reading the clock inside the step costs time.
static us_status measure_profile(const us_model *model, int64_t n_step, us_profile *out) {
    us_sim_def def = us_sim_def_default();
    def.enable_profile = true;
    us_sim *sim;
    us_status status = us_sim_create(model, &def, &sim, NULL);
    if (status != US_OK) return status;
    for (int64_t k = 0; k < n_step && status == US_OK; k++)
        status = us_sim_step(sim, NULL);
    *out = us_sim_take_profile(sim);
    us_sim_destroy(sim);
    return status;
}

static int measure(const cli_load *load, const char *integrator, int64_t n_step, report *out) {
    cli_world world = {0};
    int code = make_world(load, &world);
    if (code == CLI_GO_ON && integrator) {
        int32_t which = 0;
        while (which < US_INTEGRATOR_COUNT &&
               strcmp(us_integrator_name((us_integrator)which), integrator) != 0)
            which++;
        code = which < US_INTEGRATOR_COUNT
                   ? set_integrator(world.spec, (us_integrator)which)
                   : cli_fail(CLI_BAD_INPUT, "understudy bench", "write midpoint, euler, rk4 or adaptive",
                              "unknown integrator \"%s\"", integrator);
    }
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) code = cli_create_sim(&world, NULL);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        *out = (report){.n = us_model_get_counts(world.model),
                        .step = us_model_get_step(world.model),
                        .integrator = us_model_get_integrator(world.model),
                        .n_step = n_step};
        snprintf(out->name, sizeof out->name, "%s", load->file);
        us_status status = measure_forward(world.model, world.sim, &out->forward);
        if (status == US_OK) status = measure_step(world.sim, n_step, &out->one_step, &out->hash);
        if (status == US_OK) status = measure_profile(world.model, n_step, &out->profile);
        if (status != US_OK) {
            const us_error *err = us_sim_view_error(world.sim);
            if (err && err->code != US_OK) {
                cli_print_error(err);
                code = CLI_RUN_FAILED;
            } else {
                code = cli_fail(CLI_RUN_FAILED, load->file, NULL, "cannot be measured: %s",
                                us_status_text(status));
            }
        }
    }
    cli_world_fini(&world);
    return code;
}

// ---- output ----

static double per_dof(const report *r, double seconds) {
    return r->n.n_v > 0 ? 1e9 * seconds / r->n.n_v : NAN;
}

static void print_row(const report *r) {
    const figure *f = &r->forward, *s = &r->one_step;
    printf("%-16s %5d %9.3f [%.3f .. %.3f] %7.1f %9.3f [%.3f .. %.3f] %7.1f %10.0f %9.0fx  %016llx\n",
           r->name, (int)r->n.n_v, 1e6 * f->median, 1e6 * f->min, 1e6 * f->max, per_dof(r, f->median),
           1e6 * s->median, 1e6 * s->min, 1e6 * s->max, per_dof(r, s->median), 1 / s->median,
           r->step / s->median, (unsigned long long)r->hash);
    printf("                 %s, %lld steps of %g s;", us_integrator_name(r->integrator),
           (long long)r->n_step, r->step);
    double sum = 0;
    for (int32_t i = 0; i < US_STAGE_COUNT; i++)
        sum += r->profile.seconds[i];
    for (int32_t i = 0; i < US_STAGE_COUNT; i++)
        printf(" %s %.0f %%", us_stage_name((us_stage)i), sum > 0 ? 100 * r->profile.seconds[i] / sum : 0);
    printf("\n");
}

static void json_figure(cli_json *json, const char *key, const report *r, const figure *f) {
    cli_json_begin(json, key, '{');
    cli_json_number(json, "median_ns", 1e9 * f->median);
    cli_json_number(json, "min_ns", 1e9 * f->min);
    cli_json_number(json, "max_ns", 1e9 * f->max);
    cli_json_number(json, "ns_per_dof", per_dof(r, f->median));
    cli_json_end(json);
}

static void print_json(const report *r) {
    cli_json json = {.out = stdout, .is_compact = true};
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "scene", r->name);
    cli_json_text(&json, "version", us_version());
    cli_json_integer(&json, "n_v", r->n.n_v);
    cli_json_integer(&json, "n_row", r->n.n_row);
    cli_json_text(&json, "integrator", us_integrator_name(r->integrator));
    cli_json_number(&json, "step", r->step);
    cli_json_integer(&json, "steps", r->n_step);
    cli_json_integer(&json, "samples", N_SAMPLE);
    json_figure(&json, "forward_dynamics", r, &r->forward);
    json_figure(&json, "one_step", r, &r->one_step);
    cli_json_number(&json, "steps_per_second", 1 / r->one_step.median);
    cli_json_number(&json, "real_time_factor", r->step / r->one_step.median);
    cli_json_begin(&json, "profile_ns", '{');
    for (int32_t i = 0; i < US_STAGE_COUNT; i++) {
        cli_json_number(&json, us_stage_name((us_stage)i),
                        r->profile.n_step > 0 ? 1e9 * r->profile.seconds[i] / (double)r->profile.n_step : 0);
    }
    cli_json_end(&json);
    cli_json_text(&json, "hash", hash);
    cli_json_end(&json);
}

static int run(const cli_command *command, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "wheel-soil") != 0) continue;
        // A mode with options of its own: what is left of the arguments.
        for (int k = i; k + 1 < argc; k++)
            argv[k] = argv[k + 1];
        return cli_bench_soil(argc - 1, argv);
    }
    cli_load load = {0};
    const char *integrator = NULL;
    int64_t n_step = 500;
    bool is_json = false;
    const cli_option table[] = {
        {"steps", CLI_INTEGER, &n_step, "N", "steps per sample (500)"},
        {"integrator", CLI_TEXT, &integrator, "NAME",
         "midpoint, euler, rk4 or adaptive (the scene's; built scenes: euler)"},
        {"json", CLI_FLAG, &is_json, NULL, "one line of JSON per scene"},
        CLI_LOAD_OPTIONS(load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &load.file);
    if (code != CLI_GO_ON) return code;
    if (n_step < 1 || n_step > 1000000000)
        return cli_fail(CLI_BAD_INPUT, "understudy bench", "write --steps N with N between 1 and 1000000000",
                        "--steps is out of range");
    const char *const all[] = {"chain-6", "chain-30", "chain-100", "arm"}, *const one[] = {load.file};
    const char *const *scenes = load.file ? one : all;
    int32_t n_scene = load.file ? 1 : (int32_t)(sizeof all / sizeof all[0]);
    if (!is_json)
        printf("%-16s %5s %-32s %7s %-32s %7s %10s %10s  %s\n", "scene", "n_v",
               "forward dynamics us [min .. max]", "ns/dof", "step us [min .. max]", "ns/dof", "steps/s",
               "real time", "hash of the state after");
    for (int32_t i = 0; i < n_scene; i++) {
        report r;
        load.file = scenes[i];
        code = measure(&load, integrator, n_step, &r);
        if (code != CLI_GO_ON) return code;
        if (is_json) {
            print_json(&r);
        } else {
            print_row(&r);
        }
        fflush(stdout);
    }
    return CLI_OK;
}

const cli_command cli_command_bench = {
    .name = "bench",
    .operand = "SCENE",
    .needs_operand = false,
    .summary = "measure forward dynamics and steps",
    .about =
        "SCENE is a file, \"arm\" (six axes under PD) or \"chain-N\" (N links); without one: chain-6, "
        "chain-30, chain-100 and arm.\n"
        "\"wheel-soil\" measures a wheel in soil instead, over slips: understudy bench wheel-soil --help.\n"
        "Median, min and max of 9 samples, in CPU time; the state is restored before each, and its "
        "hash after it is shown.\n",
    .run = run,
};
