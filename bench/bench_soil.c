// Rovers on slopes of every soil of the library, and a wheel against what others have measured.
//
//     bench_soil slopes SOURCE_DIRECTORY            the tables of docs/wheel-soil.md
//     bench_soil slopes SOURCE_DIRECTORY k10 lunar  the row of one rover in one soil
//     bench_soil wheel FILE.csv [NAME=VALUE ...]    errors against measured wheels
//
// FILE has a header with these columns, in any order: radius, width (m), load, pull (N), slip, sinkage (m),
// and where there are lugs grousers (count) and lug (m, their height); lines that begin with # are left out.
// NAME=VALUE: `soil`, a soil of the library (dry_sand), and parameters of it as in <soil>. The exit code is 1
// where the mean error of the pull is more than 0.12 of the load for smooth wheels or 0.15 for lugged ones,
// or that of the sinkage is more than 40 %; 2 for a file or a parameter that cannot be used.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "understudy/model.h"
#include "understudy/sim.h"
#include "understudy/soil.h"

static const double MAX_SMOOTH = 0.12, MAX_LUGGED = 0.15, MAX_SINKAGE = 0.4, GRAVITY = 9.81;

// ---------------------------------------------------------------- slopes

enum { N_SLOPE = 6, SLOPE_STEP = 5, SECONDS = 20 };

static us_soil_contact wheel_of(const us_sim *sim, const us_model *model, const char *name) {
    const us_body wheel = us_model_find_body(model, name);
    for (int32_t i = 0; i < us_sim_n_soil_contact(sim); i++) {
        const us_soil_contact k = us_sim_get_soil_contact(sim, i);
        if (k.body.i == wheel.i) return k;
    }
    return us_sim_get_soil_contact(sim, -1);
}

// One cell of the table; false when the rover cannot be run.
static bool print_slope(const char *source, const char *rover, const char *soil_name, int slope_deg) {
    char path[1024], slope[32], soil[64], front[64], rear[64];
    snprintf(path, sizeof path, "%s/bench/slope-%s.xml", source, rover);
    snprintf(slope, sizeof slope, "slope=%d deg", slope_deg);
    snprintf(soil, sizeof soil, "soil=%s", soil_name);
    snprintf(front, sizeof front, "%s/front_left_wheel", rover);
    snprintf(rear, sizeof rear, "%s/rear_left_wheel", rover);
    const char *const parameters[] = {slope, soil};
    us_load_def def = us_load_def_default();
    def.parameters = parameters;
    def.n_parameter = 2;
    us_error err = {.code = US_OK};
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_status status = us_model_load(path, &def, &model, &err);
    if (!status) status = us_sim_create(model, NULL, &sim, &err);
    for (int i = 0; i < 1000 * SECONDS && !status; i++)
        status = us_sim_step(sim, NULL);
    if (status) {
        fprintf(stderr, "%s, %s, %s: %s\n", path, slope, soil,
                err.code ? err.message : us_sim_view_error(sim)->message);
    } else {
        const us_soil_contact a = wheel_of(sim, model, front), b = wheel_of(sim, model, rear);
        if (a.is_buried || b.is_buried)
            printf(" buried |");
        else if (us_sim_get_twist(sim, (us_body){0}).v.x < -0.05 || fmin(a.slip, b.slip) < -0.99)
            printf(" slides back |");
        else if (fmax(a.slip, b.slip) > 0.99)
            printf(" digs in |");
        else
            printf(" %.2f / %.2f |", a.slip, b.slip);
        fflush(stdout);
    }
    us_sim_destroy(sim);
    us_model_destroy(model);
    return !status;
}

// The row of a soil; false when the rover cannot be run.
static bool print_row(const char *source, const char *rover, const char *soil_name) {
    printf("| `%s` |", soil_name);
    for (int i = 0; i < N_SLOPE; i++) {
        if (!print_slope(source, rover, soil_name, SLOPE_STEP * i)) return false;
    }
    printf("\n");
    return true;
}

static int print_slopes(const char *source) {
    static const char *const rovers[][2] = {{"k10", "K10"}, {"rocky7", "Rocky 7"}};
    for (int r = 0; r < 2; r++) {
        const char *name;
        printf("| %s |", rovers[r][1]);
        for (int i = 0; i < N_SLOPE; i++)
            printf(" %d° |", SLOPE_STEP * i);
        printf("\n|---|---|---|---|---|---|---|\n");
        for (int32_t k = 0; us_soil_get(k, &name, NULL, NULL); k++) {
            if (!print_row(source, rovers[r][0], name)) return 1;
        }
        printf("\n");
    }
    return 0;
}

// ---------------------------------------------------------------- wheels

enum { RADIUS, WIDTH, LOAD, SLIP, PULL, SINKAGE, GROUSERS, LUG, N_COLUMN };
static const char *const columns[N_COLUMN] = {"radius", "width",   "load",     "slip",
                                              "pull",   "sinkage", "grousers", "lug"};

// The columns of a header; false when one of the first six is missing or one is not known.
static bool read_header(char *line, int out_column[16], int *out_n) {
    int seen = 0;
    *out_n = 0;
    for (char *at = strtok(line, ", \t\r\n"); at; at = strtok(NULL, ", \t\r\n")) {
        int k = 0;
        while (k < N_COLUMN && strcmp(at, columns[k]) != 0)
            k++;
        if (k == N_COLUMN || *out_n == 16) {
            fprintf(stderr,
                    "column \"%s\" is not known: radius, width, load, slip, pull, sinkage, grousers, lug\n",
                    at);
            return false;
        }
        seen |= 1 << k;
        out_column[(*out_n)++] = k;
    }
    for (int k = 0; k < GROUSERS; k++) {
        if (seen >> k & 1) continue;
        fprintf(stderr, "the column \"%s\" is missing: name it in the first line\n", columns[k]);
        return false;
    }
    return true;
}

static bool read_row(char *line, const int *column, int n, double out[N_COLUMN]) {
    char *at = line;
    for (int k = 0; k < N_COLUMN; k++)
        out[k] = 0;
    for (int i = 0; i < n; i++) {
        char *end;
        out[column[i]] = strtod(at, &end);
        if (end == at || !isfinite(out[column[i]])) return false;
        at = end + strspn(end, ", \t");
    }
    return out[RADIUS] > 0 && out[WIDTH] > 0 && out[LOAD] > 0 && fabs(out[SLIP]) <= 1 && out[SINKAGE] > 0 &&
           out[GROUSERS] >= 0 && out[LUG] >= 0;
}

typedef struct sums {
    int n;
    double pull, sinkage;  // of the errors: of the load, and of what was measured
} sums;

static bool judge(const us_soil *soil, const double x[N_COLUMN], sums *sum) {
    us_soil_wheel wheel = {
        .radius = x[RADIUS], .width = x[WIDTH], .grouser_height = x[LUG], .n_grouser = (int32_t)x[GROUSERS]};
    const us_soil_history fresh = {0, GRAVITY};
    const double z = us_soil_wheel_rolling_sinkage(soil, &wheel, fresh, x[LOAD], x[SLIP], 0);
    if (!isfinite(z)) {
        fprintf(stderr, "the soil does not carry %g N at a slip of %g\n", x[LOAD], x[SLIP]);
        return false;
    }
    wheel.dug = us_soil_wheel_dug(soil, &wheel, z, x[SLIP]);
    const us_wheel_force f = us_soil_wheel_force(soil, &wheel, fresh, z, x[SLIP], 0);
    printf("%6.2f %8.1f N: pull %8.2f N, measured %8.2f; sinkage %6.2f mm, measured %6.2f\n", x[SLIP],
           x[LOAD], f.fx, x[PULL], 1e3 * z, 1e3 * x[SINKAGE]);
    sum->n++;
    sum->pull += fabs(f.fx - x[PULL]) / x[LOAD];
    sum->sinkage += fabs(z - x[SINKAGE]) / x[SINKAGE];
    return true;
}

static int say(const char *name, const sums *s, double max_pull) {
    if (s->n == 0) return 0;
    const double pull = s->pull / s->n, sinkage = s->sinkage / s->n;
    const bool ok = pull <= max_pull && sinkage <= MAX_SINKAGE;
    printf("%s wheels, %d points: pull off by %.4f of the load (%.2f at most), sinkage by %.1f %% (%.0f %%): "
           "%s\n",
           name, s->n, pull, max_pull, 100 * sinkage, 100 * MAX_SINKAGE, ok ? "holds" : "does not hold");
    return ok ? 0 : 1;
}

// `soil=NAME`, or a parameter of it.
static bool set_parameter(us_soil *soil, const char *text) {
    char name[64];
    const char *is = strchr(text, '=');
    if (!is || is == text || (size_t)(is - text) >= sizeof name) return false;
    memcpy(name, text, (size_t)(is - text));
    name[is - text] = 0;
    if (strcmp(name, "soil") == 0) return us_soil_find(is + 1, soil);
    char *end;
    double min, max, *at = us_soil_parameter(soil, name, &min, &max);
    const double x = strtod(is + 1, &end);
    if (!at || end == is + 1 || *end || !(x >= min && x <= max)) return false;
    *at = x;
    return true;
}

static int compare_wheels(int argc, char **argv) {
    us_soil soil = us_soil_default();
    for (int i = 1; i < argc; i++) {
        if (set_parameter(&soil, argv[i])) continue;
        fprintf(stderr, "\"%s\" is no soil and no parameter of one: see docs/wheel-soil.md\n", argv[i]);
        return 2;
    }
    FILE *in = fopen(argv[0], "r");
    if (!in) {
        fprintf(stderr, "%s cannot be read: name a file of measured wheels\n", argv[0]);
        return 2;
    }
    char line[1024];
    int column[16], n = 0, number = 0, code = 0;
    sums smooth = {0}, lugged = {0};
    while (code == 0 && fgets(line, sizeof line, in)) {
        double x[N_COLUMN];
        number++;
        if (line[0] == '#' || line[strspn(line, " \t\r\n")] == 0) continue;
        if (n == 0) {
            code = read_header(line, column, &n) ? 0 : 2;
        } else if (!read_row(line, column, n, x)) {
            fprintf(stderr, "%s, line %d: %d numbers are wanted, lengths and loads greater than 0\n", argv[0],
                    number, n);
            code = 2;
        } else if (!judge(&soil, x, x[LUG] > 0 ? &lugged : &smooth)) {
            code = 1;
        }
    }
    fclose(in);
    if (code == 0 && smooth.n + lugged.n == 0) {
        fprintf(stderr, "%s has no row\n", argv[0]);
        code = 2;
    }
    if (code != 0) return code;
    return say("smooth", &smooth, MAX_SMOOTH) | say("lugged", &lugged, MAX_LUGGED);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "slopes") == 0) return print_slopes(argv[2]);
    if (argc == 5 && strcmp(argv[1], "slopes") == 0) return print_row(argv[2], argv[3], argv[4]) ? 0 : 1;
    if (argc >= 3 && strcmp(argv[1], "wheel") == 0) return compare_wheels(argc - 2, argv + 2);
    fprintf(stderr,
            "bench_soil slopes SOURCE_DIRECTORY [ROVER SOIL]\nbench_soil wheel FILE.csv [NAME=VALUE ...]\n");
    return 2;
}
