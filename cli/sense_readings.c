// understudy sense of a sensor with readings: a row for each sample, what it says and what is true.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "understudy/sensing.h"

static void write_head(FILE *out, const us_sensor_kind *k) {
    fputs("time [s]", out);
    for (int32_t i = 0; i < k->n_reading; i++) {
        const us_sensor_reading *r = &k->readings[i];
        const char *open = strcmp(r->unit, "1") == 0 ? "" : " [", *unit = open[0] ? r->unit : "",
                   *shut = open[0] ? "]" : "";
        fprintf(out, ",%s%s%s%s,true %s%s%s%s", r->name, open, unit, shut, r->name, open, unit, shut);
    }
    fputc('\n', out);
}

static void write_row(FILE *out, const us_sensor_kind *k, const us_sensor_sample *s, double step) {
    fprintf(out, "%.9g", (double)s->tick * step);
    for (int32_t i = 0; i < k->n_reading; i++)
        fprintf(out, ",%.9g,%.9g", s->reading[i], s->truth[i]);
    fputc('\n', out);
}

// The first sample is that of the start.
static int run_until(cli_world *world, us_sensor sensor, double time, FILE *out, int64_t *out_n) {
    const us_sensor_kind *k = us_model_get_sensor(world->model, sensor).kind;
    const double step = us_model_get_step(world->model);
    const int64_t n_step = (int64_t)llround(time / step);
    int64_t written = -1;
    write_head(out, k);
    for (int64_t i = 0; i <= n_step; i++) {
        if (i > 0 && us_sim_step(world->sim, NULL)) {
            cli_print_error(us_sim_view_error(world->sim));
            return CLI_RUN_FAILED;
        }
        const us_sensor_sample s = us_sim_view_sensor_sample(world->sim, sensor);
        if (s.tick == written) continue;
        written = s.tick;
        write_row(out, k, &s, step);
        (*out_n)++;
    }
    return CLI_OK;
}

int cli_sense_readings(cli_world *world, int32_t sensor, double time, const char *path) {
    const us_sensor_info info = us_model_get_sensor(world->model, (us_sensor){sensor});
    const size_t n = strlen(path);
    if (strcmp(path, "-") != 0 && (n < 5 || strcmp(path + n - 4, ".csv") != 0))
        return cli_fail(CLI_BAD_INPUT, "-o", "end it with .csv, or write - for the standard output",
                        "\"%s\": readings of the kind \"%s\" are written as a table", path, info.kind->name);
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    int64_t n_row = 0;
    int code = out ? run_until(world, (us_sensor){sensor}, time, out, &n_row) : CLI_OK;
    const bool is_bad = !out || ferror(out) || (out != stdout && fclose(out) != 0);
    if (is_bad) return cli_fail(CLI_CANNOT_WRITE, path, NULL, "cannot be written: %s", strerror(errno));
    if (code == CLI_OK && out != stdout)
        printf("%s: %lld samples of %s/%s (%s)\n", path, (long long)n_row, info.robot, info.name,
               info.kind->name);
    return code;
}

// ---- kinds ----

static void print_parameter(const us_sensor_parameter *p) {
    const char *unit = strcmp(p->unit, "1") == 0 ? "" : p->unit;
    printf("    %-20s ", p->name);
    switch (p->type) {
    case US_PARAMETER_CHOICE:
        for (int32_t i = 0; p->choices[i]; i++)
            printf("%s%s%s", i > 0 ? ", " : "", p->choices[i], i == (int32_t)p->usual ? " (usual)" : "");
        break;
    case US_PARAMETER_JOINT:
    case US_PARAMETER_LINK:
        printf("a %s of the robot", p->type == US_PARAMETER_JOINT ? "joint" : "link");
        break;
    default:
        printf("%.6g to %.6g%s%s, usual %.6g", p->low, p->high, unit[0] ? " " : "", unit, p->usual);
    }
    printf("%s. %s\n", p->is_fixed ? ", fixed" : "", p->about);
}

void cli_print_sensor_kinds(const us_spec *spec) {
    const us_sensor_kind *k = NULL;
    for (int32_t i = 0; (k = us_spec_view_sensor_kind(spec, i)); i++) {
        printf("%s: %s\n", k->name, k->about ? k->about : "");
        for (int32_t p = 0; p < k->n_parameter; p++)
            print_parameter(&k->parameters[p]);
        for (int32_t p = 0; p < k->n_preset; p++)
            printf("    preset %-13s %s\n", k->presets[p].name,
                   k->presets[p].about ? k->presets[p].about : "");
        for (int32_t r = 0; r < k->n_reading; r++)
            printf("%s%s%s%s", r == 0 ? "    gives " : ", ", k->readings[r].name,
                   strcmp(k->readings[r].unit, "1") == 0 ? "" : " ",
                   strcmp(k->readings[r].unit, "1") == 0 ? "" : k->readings[r].unit);
        if (k->n_reading > 0) printf("\n");
        if (k->n_reading > 0)
            printf("    as %s\n", k->message ? k->message : "understudy_msgs/msg/SensorReadings");
    }
}
