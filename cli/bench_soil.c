// understudy bench wheel-soil: a single-wheel rig, simulated, over slips and slip angles.
//
// Each point is a run of its own: the carriage goes at its speed, the wheel turns at the speed that makes the
// slip, and the run goes on until the forces stand still. What is written is what the soil gave in the last
// step. The same curves come from laboratories, so that a soil can be fitted to what was measured there.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { N_SLIP = 16, MAX_ANGLE = CLI_PLOT_LINES, N_VALUE = 4 };
static const double FIRST_SLIP = -0.6, SLIP_STEP = 0.1;
// Steps between two looks; and how much the forces may differ between them, of the max of them, to stand
// still.
enum { LOOK = 100, MAX_LOOK = 200 };
static const double STILL = 1e-7;

typedef enum value { PULL, SIDE, TORQUE, SINKAGE } value;
static const struct {
    const char *key, *title, *label;
    double scale;
} values[N_VALUE] = {{"pull", "drawbar pull", "N", 1},
                     {"side", "side force", "N", 1},
                     {"torque", "torque", "N m", 1},
                     {"sinkage", "sinkage", "mm", 1e3}};

typedef struct curve {
    double angle_deg;
    char name[24];
    double slip[N_SLIP], y[N_VALUE][N_SLIP];
    bool is_settled[N_SLIP], is_buried[N_SLIP];
} curve;

typedef struct request {
    cli_load load;       // file NULL: the rig inside the program
    const char *soil;    // NULL: the scene's
    us_soil in;          // what the wheel was in, found by the first run
    const char *system;  // names the scene in messages
} request;

static int read_scene(const request *r, const cli_list *set, cli_world *world) {
    cli_load load = r->load;
    load.set = *set;
    if (load.file) return cli_load_spec(&load, US_BASE_FIXED, world);
    us_load_def def = us_load_def_default();
    def.n_parameter = set->n;
    def.parameters = set->item;
    if (us_spec_load_text(cli_single_wheel, cli_single_wheel_length, r->system, &def, &world->spec,
                          &world->error) == US_OK)
        return CLI_GO_ON;
    cli_print_error(&world->error);
    return CLI_BAD_INPUT;
}

// The first wheel that is in soil; body -1: none.
static us_soil_contact wheel_of(const us_sim *sim) {
    for (int32_t i = 0; i < us_sim_n_soil_contact(sim); i++) {
        us_soil_contact info = us_sim_get_soil_contact(sim, i);
        if (info.is_wheel) return info;
    }
    return us_sim_get_soil_contact(sim, -1);
}

static int run_point(request *r, curve *c, int32_t i) {
    char slip[48], angle[48], soil[96];
    cli_list set = r->load.set;
    if (set.n + 3 > CLI_LIST_MAX)
        return cli_fail(CLI_BAD_INPUT, "understudy bench wheel-soil", "name fewer parameters",
                        "--set is there too often");
    snprintf(slip, sizeof slip, "slip=%.17g", c->slip[i]);
    snprintf(angle, sizeof angle, "angle=%.17g deg", c->angle_deg);
    set.item[set.n++] = slip;
    set.item[set.n++] = angle;
    if (r->soil) {
        snprintf(soil, sizeof soil, "soil=%s", r->soil);
        set.item[set.n++] = soil;
    }
    cli_world world = {0};
    int code = read_scene(r, &set, &world);
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) code = cli_create_sim(&world, NULL);
    us_soil_contact now = {.body = {-1}};
    us_vec3 before = {0};
    for (int32_t look = 0; code == CLI_GO_ON && look < MAX_LOOK && !c->is_settled[i]; look++) {
        us_status status = US_OK;
        for (int32_t k = 0; k < LOOK && status == US_OK; k++)
            status = us_sim_step(world.sim, NULL);
        if (status != US_OK) {
            cli_print_error(us_sim_view_error(world.sim));
            code = CLI_RUN_FAILED;
            break;
        }
        now = wheel_of(world.sim);
        c->is_settled[i] =
            look > 0 && us_vec3_norm(us_vec3_sub(now.force, before)) <= STILL * us_vec3_norm(now.force);
        before = now.force;
    }
    if (code == CLI_GO_ON && now.body.i < 0)
        code = cli_fail(CLI_BAD_INPUT, r->system,
                        "the ground needs a material with <soil>, and the wheel is a cylinder",
                        "no wheel is in soil");
    if (code == CLI_GO_ON) {
        us_sim_get_soil(world.sim, now.soil, &r->in);
        c->y[PULL][i] = now.force.x;
        c->y[SIDE][i] = now.force.y;
        c->y[TORQUE][i] = now.moment;
        c->y[SINKAGE][i] = now.sinkage;
        c->is_buried[i] = now.is_buried;
        // What is nothing but rounding is nothing.
        for (int32_t v = 0; v < N_VALUE; v++)
            c->y[v][i] = fabs(c->y[v][i]) < 1e-12 * us_vec3_norm(now.force) ? 0 : c->y[v][i];
    }
    cli_world_fini(&world);
    return code;
}

// ---- output ----

// How long the forces of one wheel take, with the soil of the runs.
static cli_figure time_forces(const us_soil *soil) {
    enum { N_CALL = 5000 };
    const us_soil_wheel wheel = {.radius = 0.09, .width = 0.11};
    double samples[CLI_BENCH_SAMPLE], sum = 0;
    for (int32_t i = -1; i < CLI_BENCH_SAMPLE; i++) {
        double begin = cli_bench_seconds();
        for (int32_t k = 0; k < N_CALL; k++) {
            double share = (double)k / (double)N_CALL;
            sum += us_soil_wheel_reaction(soil, &wheel, (us_soil_history){0, 9.81}, 0.01 + 0.01 * share, 0.03,
                                          0.005, 0.35 + 0.1 * share)
                       .force.x;
        }
        if (i >= 0) samples[i] = (cli_bench_seconds() - begin) / (double)N_CALL;
    }
    cli_figure out = cli_bench_figure(samples);
    // The sum is looked at, so that the calls are made.
    return isfinite(sum) ? out : (cli_figure){NAN, NAN, NAN};
}

static void print_curve(const curve *c) {
    printf("\nslip angle %g deg\n%6s %10s %10s %10s %12s\n", c->angle_deg, "slip", "pull N", "side N",
           "torque N m", "sinkage mm");
    for (int32_t i = 0; i < N_SLIP; i++) {
        printf("%6.2f %10.3f %10.3f %10.4f %12.3f%s%s\n", c->slip[i], c->y[PULL][i], c->y[SIDE][i],
               c->y[TORQUE][i], 1e3 * c->y[SINKAGE][i], c->is_settled[i] ? "" : "  does not stand still",
               c->is_buried[i] ? "  buried" : "");
    }
}

static void print_json(const request *r, const curve *curves, int32_t n, cli_figure time) {
    cli_json json = {.out = stdout, .is_compact = true};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "scene", r->system);
    cli_json_text(&json, "soil", r->soil);
    cli_json_text(&json, "version", us_version());
    cli_json_begin(&json, "forces", '{');
    cli_json_number(&json, "median_ns", 1e9 * time.median);
    cli_json_number(&json, "min_ns", 1e9 * time.min);
    cli_json_number(&json, "max_ns", 1e9 * time.max);
    cli_json_end(&json);
    cli_json_begin(&json, "curves", '[');
    for (int32_t i = 0; i < n; i++) {
        const curve *c = &curves[i];
        bool is_settled = true;
        for (int32_t k = 0; k < N_SLIP; k++)
            is_settled = is_settled && c->is_settled[k];
        cli_json_begin(&json, NULL, '{');
        cli_json_number(&json, "angle_deg", c->angle_deg);
        cli_json_bool(&json, "settled", is_settled);
        cli_json_numbers(&json, "slip", c->slip, N_SLIP);
        for (int32_t v = 0; v < N_VALUE; v++)
            cli_json_numbers(&json, values[v].key, c->y[v], N_SLIP);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}

static int draw(const char *path, const request *r, curve *curves, int32_t n) {
    cli_line line[N_VALUE][MAX_ANGLE];
    cli_panel panel[N_VALUE];
    char title[128], label[N_VALUE][32];
    for (int32_t v = 0; v < N_VALUE; v++) {
        for (int32_t i = 0; i < n; i++) {
            for (int32_t k = 0; k < N_SLIP; k++)
                curves[i].y[v][k] *= values[v].scale;
            line[v][i] = (cli_line){curves[i].name, curves[i].slip, curves[i].y[v], N_SLIP};
        }
        snprintf(label[v], sizeof label[v], "%s", values[v].label);
        panel[v] = (cli_panel){values[v].title, "slip", label[v], line[v], n};
    }
    snprintf(title, sizeof title, "a wheel in soil: %s", r->soil ? r->soil : r->system);
    return cli_plot(path, title, panel, N_VALUE);
}

static int read_angles(const cli_list *list, curve *curves, int32_t *out_n) {
    static const double usual[] = {0, 5, 15, 30};
    *out_n = list->n > 0 ? list->n : (int32_t)(sizeof usual / sizeof usual[0]);
    if (*out_n > MAX_ANGLE)
        return cli_fail(CLI_BAD_INPUT, "understudy bench wheel-soil", "name at most eight",
                        "--angle is there too often");
    for (int32_t i = 0; i < *out_n; i++) {
        char *end = NULL;
        double angle = list->n > 0 ? strtod(list->item[i], &end) : usual[i];
        if (end && (end == list->item[i] || *end || !(fabs(angle) <= 80)))
            return cli_fail(CLI_BAD_INPUT, "understudy bench wheel-soil", "write degrees from -80 to 80",
                            "--angle: \"%s\"", list->item[i]);
        curves[i].angle_deg = angle;
        snprintf(curves[i].name, sizeof curves[i].name, "%g deg", angle);
        for (int32_t k = 0; k < N_SLIP; k++)
            curves[i].slip[k] = round(100 * (FIRST_SLIP + SLIP_STEP * k)) / 100;
    }
    return CLI_GO_ON;
}

static const cli_command soil_command = {
    .name = "bench wheel-soil",
    .summary = "pull, side force, torque and sinkage of a wheel in soil over slip",
    .about = "Runs a single-wheel rig (scenes/single-wheel.xml, which is inside the program) at slips from "
             "-0.6 to 0.9 until the forces stand still.\n"
             "Another wheel: --set radius=0.2 --set width=0.15 --set weight=200. A scene of one's own has "
             "parameters slip and angle.\n"
             "At the end: how long the forces of one wheel take to compute, median [min .. max].\n"
             "\nExamples:\n"
             "  understudy bench wheel-soil --soil lunar --plot wheel.svg\n"
             "  understudy bench wheel-soil --angle 0 --angle 20 --json\n",
};

int cli_bench_soil(int argc, char **argv) {
    request r = {.system = "single-wheel.xml"};
    cli_list angles = {0};
    const char *plot = NULL, *unused = NULL;
    bool is_json = false;
    const cli_option table[] = {
        {"soil", CLI_TEXT, &r.soil, "NAME", "a soil of the library (the scene's: fjs1)"},
        {"angle", CLI_LIST, &angles, "DEG", "slip angle; more than once for more (0, 5, 15 and 30)"},
        {"plot", CLI_TEXT, &plot, "FILE", "draw the curves: .svg, or .png where gnuplot is installed"},
        {"json", CLI_FLAG, &is_json, NULL, "one line of JSON"},
        {"scene", CLI_TEXT, &r.load.file, "FILE", "another rig"},
        {"set", CLI_LIST, &r.load.set, "NAME=VALUE",
         "another value for a <parameter> of the rig: radius, width, weight, speed, lateral, step, dig, "
         "grousers, lug"},
    };
    static curve curves[MAX_ANGLE];
    int32_t n = 0;
    int code = cli_parse(&soil_command, table, sizeof table / sizeof table[0], argc, argv, &unused);
    if (code == CLI_GO_ON) code = read_angles(&angles, curves, &n);
    if (code == CLI_GO_ON && plot) code = cli_plot_check(plot);
    if (code == CLI_GO_ON && r.soil && !us_soil_find(r.soil, NULL)) {
        const char *names[32];
        int32_t n_name = 0;
        while (n_name < 32 && us_soil_get(n_name, &names[n_name], NULL, NULL))
            n_name++;
        const char *near = cli_nearest(r.soil, names, n_name);
        char remedy[128] = "docs/wheel-soil.md has their names";
        if (near) snprintf(remedy, sizeof remedy, "did you mean %s?", near);
        code = cli_fail(CLI_BAD_INPUT, "understudy bench wheel-soil", remedy, "unknown soil \"%s\"", r.soil);
    }
    if (code != CLI_GO_ON) return code;
    if (r.load.file) r.system = r.load.file;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < N_SLIP; k++) {
            code = run_point(&r, &curves[i], k);
            if (code != CLI_GO_ON) return code;
        }
        if (!is_json) print_curve(&curves[i]);
        fflush(stdout);
    }
    cli_figure time = time_forces(&r.in);
    if (is_json) {
        print_json(&r, curves, n, time);
    } else {
        printf("\nforces of one wheel: %.3f us [%.3f .. %.3f]\n", 1e6 * time.median, 1e6 * time.min,
               1e6 * time.max);
    }
    code = plot ? draw(plot, &r, curves, n) : CLI_GO_ON;
    return code == CLI_GO_ON ? CLI_OK : code;
}
