// understudy terrain random: a site from a seed.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bus.h"
#include "terrain.h"
#include "terrain_map.h"
#include "understudy/terrain.h"

static const char ELEMENT[] = "understudy terrain random";

enum { WHOLE = 4096, MAX_TABLE = 100000, MAX_NODES = 1 << 24 };

typedef struct settings {
    us_random_site_def def;
    const char *out, *size, *covariance, *method, *table, *craters, *rocks;
    const char *mean, *deviation;
    cli_list soil, soil_mean, soil_deviation;
    int64_t seed, threads;
    bool is_json;
    double *table_values, *table_at;
    terrain_map map[2 * US_SITE_LAYERS];  // of each layer, mean and deviation
} settings;

// Up to `most` numbers with commas between them; how many, or -1.
static int numbers(const char *text, int cap, double *out) {
    int n = 0;
    for (;; n++) {
        char *end;
        double x = strtod(text, &end);
        if (end == text || !isfinite(x) || n == cap || (*end && *end != ',')) return -1;
        out[n] = x;
        if (!*end) return n + 1;
        text = end + 1;
    }
}

// ---------------------------------------------------------------- what is asked for

static int read_size(settings *s) {
    double size[2] = {0}, spacing = s->def.height.spacing;
    int n = s->size ? numbers(s->size, 2, size) : 0;
    if (n < 1)
        return cli_fail(CLI_BAD_INPUT, ELEMENT,
                        "write --size 1000, or --size 2000,1000: metres eastward and northward",
                        "--size is %s", s->size ? "no size" : "missing");
    if (n == 1) size[1] = size[0];
    if (!(spacing > 0))
        return cli_fail(CLI_BAD_INPUT, ELEMENT, "write metres between samples, greater than 0",
                        "--spacing: %g", spacing);
    int32_t *nodes[] = {&s->def.height.n_x, &s->def.height.n_y};
    for (int i = 0; i < 2; i++) {
        double count = floor(size[i] / spacing + 0.5);
        if (!(count >= 2 && count <= (double)MAX_NODES))
            return cli_fail(CLI_BAD_INPUT, ELEMENT, "from 2 up to 16777216 samples each way",
                            "--size: %g m are %.0f samples %g m apart", size[i], count, spacing);
        *nodes[i] = (int32_t)count;
    }
    return CLI_GO_ON;
}

static int read_method(settings *s) {
    us_field_def *h = &s->def.height;
    static const char *const names[] = {"embed", "outer", "patch"};
    if (!s->method) {
        h->method = h->n_x <= WHOLE && h->n_y <= WHOLE ? US_FIELD_EMBED : US_FIELD_PATCH;
        return CLI_GO_ON;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(s->method, names[i]) == 0) {
            h->method = (us_field_method)i;
            return CLI_GO_ON;
        }
    }
    return cli_fail(CLI_BAD_INPUT, ELEMENT, "write embed, outer or patch", "--method: unknown method \"%s\"",
                    s->method);
}

// Lines of a distance and the covariance there, from 0 on; # begins a remark.
static int read_table(settings *s, bool has_variance) {
    us_field_def *h = &s->def.height;
    char *text = NULL;
    size_t length = 0;
    int code = cli_read_file(s->table, &text, &length), line_number = 0;
    if (code != CLI_GO_ON) return code;
    s->table_values = cli_allocate(MAX_TABLE, sizeof(double));
    s->table_at = cli_allocate(MAX_TABLE, sizeof(double));
    static const char remedy[] = "write lines of a distance in m and the covariance there, by growing "
                                 "distance, the first at 0 and its value the largest";
    char *next = NULL;
    for (char *line = strtok_r(text, "\n", &next); line && code == CLI_GO_ON;
         line = strtok_r(NULL, "\n", &next)) {
        line_number++;
        line[strcspn(line, "#\r")] = 0;
        if (line[strspn(line, " \t")] == 0) continue;
        char *end, *last;
        double r = strtod(line, &end), value = strtod(end, &last);
        int32_t n = h->n_table;
        bool is_next = n == 0 ? r == 0 : n < MAX_TABLE && r > s->table_at[n - 1] && isfinite(r);
        if (end == line || last == end || last[strspn(last, " \t")] || !isfinite(value) || !is_next) {
            code = cli_fail(CLI_BAD_INPUT, ELEMENT, remedy,
                            "%s: line %d, \"%.60s\", does not go on with the table", s->table, line_number,
                            line);
            break;
        }
        if (n > 0 && fabs(value) > s->table_values[0])
            code = cli_fail(CLI_BAD_INPUT, ELEMENT, remedy,
                            "%s: the covariance %g at %g m is greater than %g at 0", s->table, value, r,
                            s->table_values[0]);
        s->table_at[n] = r;
        s->table_values[h->n_table++] = value;
    }
    free(text);
    if (code != CLI_GO_ON) return code;
    if (h->n_table < 2 || !(s->table_values[0] > 0))
        return cli_fail(CLI_BAD_INPUT, ELEMENT, remedy, "%s: it has %d values, the first %g", s->table,
                        (int)h->n_table, h->n_table ? s->table_values[0] : 0);
    h->covariance = US_COVARIANCE_TABLE;
    h->table = s->table_values;
    h->table_at = s->table_at;
    if (!has_variance) h->variance = s->table_values[0];
    return CLI_GO_ON;
}

static int read_covariance(settings *s, bool has_variance) {
    us_field_def *h = &s->def.height;
    if (s->table && s->covariance && strcmp(s->covariance, "table") != 0)
        return cli_fail(CLI_BAD_INPUT, ELEMENT, "keep one of the two", "--table and --covariance %s",
                        s->covariance);
    if (s->table) return read_table(s, has_variance);
    if (!s->covariance) return CLI_GO_ON;
    h->covariance = us_covariance_find(s->covariance);
    if (h->covariance == US_COVARIANCE_TABLE)
        return cli_fail(CLI_BAD_INPUT, ELEMENT, "add --table FILE",
                        "--covariance table: it is not said which");
    if (h->covariance != US_COVARIANCE_COUNT) return CLI_GO_ON;
    const char *names[US_COVARIANCE_COUNT];
    for (int i = 0; i < US_COVARIANCE_COUNT; i++)
        names[i] = us_covariance_name((us_covariance)i);
    const char *near = cli_nearest(s->covariance, names, US_COVARIANCE_COUNT);
    char remedy[128];
    snprintf(remedy, sizeof remedy,
             near ? "did you mean %s?"
                  : "write exponential, gaussian, matern, fractal or spherical, or give a --table",
             near);
    return cli_fail(CLI_BAD_INPUT, ELEMENT, remedy, "--covariance: unknown covariance \"%s\"", s->covariance);
}

static int read_scatter(settings *s) {
    double x[4] = {0};
    us_crater_def *c = &s->def.craters;
    int n = s->craters ? numbers(s->craters, 4, x) : 0;
    if (n < 0 || (n > 0 && !(x[0] >= 0)))
        return cli_fail(CLI_BAD_INPUT, ELEMENT,
                        "write --craters DENSITY[,LEAST[,MOST[,SLOPE]]]: per km^2, m, m", "--craters: \"%s\"",
                        s->craters);
    if (n > 0) {
        c->density = 1e-6 * x[0];
        if (n > 1) {
            c->min_size = x[1];
            c->max_size = fmax(c->max_size, x[1]);
        }
        if (n > 2) c->max_size = x[2];
        if (n > 3) c->slope = x[3];
    }
    us_scatter_def *r = &s->def.rocks;
    n = s->rocks ? numbers(s->rocks, 3, x) : 0;
    if (n < 0 || (n > 0 && !(x[0] >= 0)))
        return cli_fail(CLI_BAD_INPUT, ELEMENT,
                        "write --rocks COVER[,LEAST[,MOST]]: a share of the ground, m, m", "--rocks: \"%s\"",
                        s->rocks);
    if (n > 0) {
        r->density = x[0];
        r->min_size = n > 1 ? x[1] : 2 * s->def.height.spacing;
        r->max_size = n > 2 ? x[2] : fmax(4 * r->min_size, r->max_size);
    }
    return CLI_GO_ON;
}

static int read_soils(settings *s) {
    us_random_site_def *def = &s->def;
    for (int32_t i = 0; i < s->soil.n; i++) {
        const char *text = s->soil.item[i], *equals = strchr(text, '=');
        double x[3];
        us_soil_field *soil = &def->soil[def->n_soil];
        size_t length = equals ? (size_t)(equals - text) : 0;
        if (length < 1 || length >= sizeof soil->name ||
            strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != length ||
            numbers(equals + 1, 3, x) != 3)
            return cli_fail(CLI_BAD_INPUT, ELEMENT,
                            "write --soil cohesion=MEAN,VARIANCE,LENGTH, for example cohesion=800,10000,30",
                            "--soil: \"%s\"", text);
        if (def->n_soil == US_SITE_LAYERS - 1)
            return cli_fail(CLI_BAD_INPUT, ELEMENT, "give fewer", "--soil: a site has at most %d of them",
                            US_SITE_LAYERS - 1);
        for (int32_t k = 0; k < def->n_soil; k++) {
            if (strlen(def->soil[k].name) == length && strncmp(def->soil[k].name, text, length) == 0)
                return cli_fail(CLI_BAD_INPUT, ELEMENT, "give it once", "--soil: \"%s\" is given twice",
                                def->soil[k].name);
        }
        memcpy(soil->name, text, length);
        soil->name[length] = 0;
        soil->field = def->height;
        if (def->height.covariance == US_COVARIANCE_TABLE) soil->field.covariance = US_COVARIANCE_EXPONENTIAL;
        soil->field.table = soil->field.table_at = NULL;
        soil->field.n_table = 0;
        soil->field.mean = x[0];
        soil->field.variance = x[1];
        soil->field.length = x[2];
        def->n_soil++;
    }
    return CLI_GO_ON;
}

// The mean and the deviation of each place, of the heights (layer 0) or of a soil's parameter.
static int read_maps(settings *s, int32_t layer, us_field_def *field, const char *mean,
                     const char *deviation) {
    double number;
    terrain_map *map = &s->map[2 * (ptrdiff_t)layer];
    int code = CLI_GO_ON;
    if (mean && terrain_is_number(mean, &number)) {
        field->mean = number;
    } else if (mean) {
        code = terrain_map_load(layer ? "--soil-mean" : "--mean", mean, &s->def.height, -INFINITY, &map[0]);
        field->mean_at = terrain_map_at;
        field->mean_context = &map[0];
    }
    if (code != CLI_GO_ON || !deviation) return code;
    if (terrain_is_number(deviation, &number) && number >= 0) {
        field->variance = number * number;
        return CLI_GO_ON;
    }
    field->deviation_at = terrain_map_at;
    field->deviation_context = &map[1];
    return terrain_map_load(layer ? "--soil-deviation" : "--deviation", deviation, &s->def.height, 0,
                            &map[1]);
}

// What a list of NAME=... says of a soil's parameter; NULL: nothing.
static const char *said_of(const cli_list *list, const char *name) {
    const size_t length = strlen(name);
    for (int32_t i = 0; i < list->n; i++) {
        if (strncmp(list->item[i], name, length) == 0 && list->item[i][length] == '=')
            return list->item[i] + length + 1;
    }
    return NULL;
}

static int check_names(const settings *s, const cli_list *list, const char *option) {
    for (int32_t i = 0; i < list->n; i++) {
        const size_t length = strcspn(list->item[i], "=");
        bool is_known = false;
        for (int32_t k = 0; k < s->def.n_soil; k++)
            is_known |= strlen(s->def.soil[k].name) == length &&
                        strncmp(s->def.soil[k].name, list->item[i], length) == 0 && list->item[i][length];
        if (!is_known)
            return cli_fail(CLI_BAD_INPUT, ELEMENT,
                            "write NAME=EXPRESSION or NAME=FILE.tif, of a NAME that a --soil gives",
                            "%s: \"%s\"", option, list->item[i]);
    }
    return CLI_GO_ON;
}

static int read_all_maps(settings *s, bool has_variance) {
    if (s->deviation && has_variance)
        return cli_fail(CLI_BAD_INPUT, ELEMENT, "keep one of the two", "--variance and --deviation");
    int code = read_maps(s, 0, &s->def.height, s->mean, s->deviation);
    if (code == CLI_GO_ON) code = check_names(s, &s->soil_mean, "--soil-mean");
    if (code == CLI_GO_ON) code = check_names(s, &s->soil_deviation, "--soil-deviation");
    for (int32_t i = 0; i < s->def.n_soil && code == CLI_GO_ON; i++) {
        us_soil_field *soil = &s->def.soil[i];
        code = read_maps(s, i + 1, &soil->field, said_of(&s->soil_mean, soil->name),
                         said_of(&s->soil_deviation, soil->name));
    }
    return code;
}

// ---------------------------------------------------------------- what came out

static void print_layer(const char *name, const char *unit, const us_field_def *asked,
                        const us_random_layer *got) {
    printf("%-12s mean %.6g, variance %.6g, from %.6g to %.6g%s (asked for: ", name, got->mean, got->variance,
           got->low, got->high, unit);
    if (asked->mean_at)
        printf("mean of each place, ");
    else
        printf("mean %.6g, ", asked->mean);
    if (asked->deviation_at)
        printf("deviation of each place, ");
    else
        printf("variance %.6g, ", asked->variance);
    printf("%s", us_covariance_name(asked->covariance));
    if (asked->covariance != US_COVARIANCE_TABLE) printf(", length %.6g m", asked->length);
    if (asked->covariance == US_COVARIANCE_MATERN || asked->covariance == US_COVARIANCE_FRACTAL)
        printf(", smoothness %.3g", asked->smoothness);
    puts(")");
    if (got->n_raised) printf("%-12s %lld samples were below 0 and are 0\n", "", (long long)got->n_raised);
}

static void print_report(const settings *s, const us_random_site_info *info, double seconds) {
    static const char *const methods[] = {"circulant embedding, exact", "outer products, for comparison",
                                          "patches"};
    const us_random_site_def *def = &s->def;
    const us_field_def *h = &def->height;
    printf("%s\n%-12s %d x %d, %.6g m apart: %.6g m x %.6g m\n%-12s %llu; %s\n", s->out, "samples",
           (int)h->n_x, (int)h->n_y, h->spacing, (h->n_x - 1) * h->spacing, (h->n_y - 1) * h->spacing, "seed",
           (unsigned long long)h->seed, methods[h->method]);
    print_layer("heights", " m", h, &info->layer[0]);
    for (int32_t i = 0; i < def->n_soil; i++)
        print_layer(def->soil[i].name, "", &def->soil[i].field, &info->layer[i + 1]);
    if (def->craters.density > 0)
        printf("%-12s %.6g per km^2 of %.4g to %.4g m, on the heights\n", "craters",
               1e6 * def->craters.density, def->craters.min_size, def->craters.max_size);
    if (def->rocks.density > 0)
        printf("%-12s %lld of %.4g to %.4g m, on the heights\n", "rocks", (long long)info->n_rock,
               def->rocks.min_size, def->rocks.max_size);
    printf("%-12s %.2f s\n", "time", seconds);
}

static void json_report(const settings *s, const us_random_site_info *info, double seconds) {
    const us_random_site_def *def = &s->def;
    const us_field_def *h = &def->height;
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "file", s->out);
    cli_json_integer(&json, "width", h->n_x);
    cli_json_integer(&json, "height", h->n_y);
    cli_json_number(&json, "spacing", h->spacing);
    cli_json_integer(&json, "seed", (int64_t)h->seed);
    cli_json_begin(&json, "layers", '[');
    for (int32_t i = 0; i <= def->n_soil; i++) {
        const us_random_layer *l = &info->layer[i];
        cli_json_begin_short(&json, NULL, '{');
        cli_json_text(&json, "name", i == 0 ? "height" : def->soil[i - 1].name);
        cli_json_number(&json, "mean", l->mean);
        cli_json_number(&json, "variance", l->variance);
        cli_json_number(&json, "low", l->low);
        cli_json_number(&json, "high", l->high);
        cli_json_number(&json, "clipped", l->field.clipped);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_integer(&json, "rocks", info->n_rock);
    cli_json_number(&json, "seconds", seconds);
    cli_json_end(&json);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int make(settings *s) {
    us_random_site_def *def = &s->def;
    bool is_live = cli_is_terminal(stderr);
    int32_t last = -1;
    if (is_live) {
        def->progress = terrain_progress;
        def->context = &last;
    }
    us_error err = {0};
    us_random_site_info info;
    double start = seconds_now();
    const bool was_there = access(s->out, F_OK) == 0;
    us_status status = us_site_make_random(def, s->out, &info, &err);
    if (is_live) cli_line_clear();
    if (status != US_OK) {
        cli_print_error(&err);
        // All that it needs to read was read before: a directory that is in use, or a disk that fails.
        const bool is_taken = was_there && strcmp(err.file, s->out) == 0;
        return status == US_ERR_MEMORY            ? CLI_RUN_FAILED
               : status == US_ERR_IO && !is_taken ? CLI_CANNOT_WRITE
                                                  : CLI_BAD_INPUT;
    }
    if (info.layer[0].field.clipped > 1e-3)
        cli_warn("take a named covariance, or a table that falls off more slowly near 0",
                 "no ground has such a covariance: %.2g of the variance was moved to the nearest one that "
                 "there is",
                 info.layer[0].field.clipped);
    if (s->is_json)
        json_report(s, &info, seconds_now() - start);
    else
        print_report(s, &info, seconds_now() - start);
    return CLI_OK;
}

static const cli_command command = {
    .name = "terrain random",
    .summary = "makes a site from a seed",
    .about =
        "Heights are a normal random field of the mean, variance and covariance asked for, exact up "
        "to 4096 samples each\n"
        "way, within 1e-3 of the variance for sites of any size; the same bits on every machine. "
        "Craters and rocks are\n"
        "added to it.\n"
        "\n"
        "  understudy terrain random -o site/ --size 1000 --variance 25 --length 200 --seed 7\n"
        "  understudy terrain random -o moon/ --size 20000 --variance 400 --length 3000 --craters "
        "100 --seed 7\n"
        "  understudy terrain random -o slope/ --size 500 --mean 0.1*x --deviation 0.5+0.002*y --length 50\n"
        "  understudy terrain random -o field/ --size 500 --soil cohesion=800,10000,30 --soil "
        "friction-angle=0.6,0.002,30\n"};

static int check_settings(const settings *s) {
    if (!s->out) return cli_fail(CLI_BAD_INPUT, ELEMENT, "add -o DIR", "no directory is given for the site");
    if (s->threads < 1 || s->threads > 256)
        return cli_fail(CLI_BAD_INPUT, ELEMENT, "write 1 to 256", "--threads: %lld", (long long)s->threads);
    return CLI_GO_ON;
}

int terrain_random(int argc, char **argv) {
    settings s = {.def = us_random_site_def_default(), .threads = 1};
    us_field_def *h = &s.def.height;
    h->covariance = US_COVARIANCE_FRACTAL;
    h->length = 200;
    double variance = NAN;
    const cli_option options[] = {
        {"-o", CLI_TEXT, &s.out, "DIR", "the site: a directory that is new or empty"},
        {"size", CLI_TEXT, &s.size, "M[,M]", "metres eastward and northward; one sample for each spacing"},
        {"spacing", CLI_NUMBER, &h->spacing, "M", "metres between samples (1)"},
        {"seed", CLI_INTEGER, &s.seed, "N", "the same seed, the same ground (0)"},
        {"mean", CLI_TEXT, &s.mean, "M", "mean height (0), an expression of x and y, or a file .tif"},
        {"variance", CLI_NUMBER, &variance, "M2", "of the heights, m^2 (1)"},
        {"deviation", CLI_TEXT, &s.deviation, "M", "instead: m, an expression of x and y, or a file .tif"},
        {"covariance", CLI_TEXT, &s.covariance, "NAME",
         "exponential, gaussian, matern, fractal (default) or spherical"},
        {"length", CLI_NUMBER, &h->length, "M", "its length (200)"},
        {"smoothness", CLI_NUMBER, &h->smoothness, "S", "of matern; of fractal the Hurst exponent (0.8)"},
        {"table", CLI_TEXT, &s.table, "FILE", "the covariance in lines of distance and value instead"},
        {"method", CLI_TEXT, &s.method, "NAME",
         "embed: exact (up to 4096 samples each way); patch: any size; outer: to compare"},
        {"craters", CLI_TEXT, &s.craters, "N[,...]",
         "for each km^2; then min and max diameter, slope (10,500,2)"},
        {"rocks", CLI_TEXT, &s.rocks, "SHARE[,...]", "of the ground covered; then min and max diameter"},
        {"soil", CLI_LIST, &s.soil, "NAME=...", "a parameter of the soil as a field: MEAN,VARIANCE,LENGTH"},
        {"soil-mean", CLI_LIST, &s.soil_mean, "NAME=...",
         "its mean: an expression of x and y, or a file .tif"},
        {"soil-deviation", CLI_LIST, &s.soil_deviation, "NAME=...", "its standard deviation, likewise"},
        {"threads", CLI_INTEGER, &s.threads, "N", "the ground is the same for any number (1)"},
        {"json", CLI_FLAG, &s.is_json, NULL, "the report as JSON"},
    };
    const char *operand = NULL;
    int code = cli_parse(&command, options, sizeof options / sizeof *options, argc, argv, &operand);
    if (code != CLI_GO_ON) return code;
    code = check_settings(&s);
    if (code != CLI_GO_ON) return code;
    if (!isnan(variance)) h->variance = variance;
    h->seed = (uint64_t)s.seed;
    h->n_thread = (int32_t)s.threads;
    code = read_size(&s);
    if (code == CLI_GO_ON) code = read_method(&s);
    if (code == CLI_GO_ON) code = read_covariance(&s, !isnan(variance));
    if (code == CLI_GO_ON) code = read_scatter(&s);
    if (code == CLI_GO_ON) code = read_soils(&s);
    if (code == CLI_GO_ON) code = read_all_maps(&s, !isnan(variance));
    if (code == CLI_GO_ON) code = make(&s);
    free(s.table_values);
    free(s.table_at);
    for (int i = 0; i < 2 * US_SITE_LAYERS; i++)
        free(s.map[i].value);
    return code;
}
