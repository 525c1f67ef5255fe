// Numbers that vary over a site: given as a number, as an expression of x and y, or as a GeoTIFF.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "terrain_map.h"
#include "understudy/raster.h"
#include "understudy/spec.h"

// Nodes of an expression each way, at most: larger sites are interpolated between them.
enum { MAX_EXPRESSION = 1025 };

static bool is_raster(const char *text) {
    const char *end = strrchr(text, '.');
    return end && (strcmp(end, ".tif") == 0 || strcmp(end, ".tiff") == 0);
}

bool terrain_is_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

static int load_raster(const char *option, const char *file, const us_field_def *field, terrain_map *out) {
    us_raster_def def = us_raster_def_default();
    def.file = &file;
    def.n_file = 1;
    def.is_metric = true;
    def.unit = "1";  // numbers as they are
    us_raster_info info;
    us_error err = {0};
    double *samples = NULL;
    if (us_raster_load(&def, &info, &samples, &err)) {
        cli_print_error(&err);
        return CLI_BAD_INPUT;
    }
    const size_t n = (size_t)info.n_x * (size_t)info.n_y;
    *out = (terrain_map){.n_x = info.n_x, .n_y = info.n_y, .dx = info.dx, .dy = info.dy};
    out->value = cli_allocate(n, sizeof(double));
    memcpy(out->value, samples, n * sizeof(double));
    us_raster_release(&def, &info, samples);
    const double wide = (field->n_x - 1) * field->spacing, high = (field->n_y - 1) * field->spacing;
    if (wide > (out->n_x - 1) * out->dx * (1 + 1e-9) || high > (out->n_y - 1) * out->dy * (1 + 1e-9))
        return cli_fail(CLI_BAD_INPUT, option, "give a larger raster, or a smaller --size",
                        "%s covers %g m x %g m, and the site is %g m x %g m", file, (out->n_x - 1) * out->dx,
                        (out->n_y - 1) * out->dy, wide, high);
    return CLI_GO_ON;
}

// Expressions are those of a height field: a scene of one computes them.
static int load_expression(const char *option, const char *text, const us_field_def *field,
                           terrain_map *out) {
    if (strpbrk(text, "<>&\"'") || strlen(text) > 2000)
        return cli_fail(CLI_BAD_INPUT, option, "write a number, an expression of x and y, or a file .tif",
                        "it is none of these");
    out->n_x = field->n_x < MAX_EXPRESSION ? field->n_x : MAX_EXPRESSION;
    out->n_y = field->n_y < MAX_EXPRESSION ? field->n_y : MAX_EXPRESSION;
    out->dx = (field->n_x - 1) * field->spacing / (out->n_x - 1);
    out->dy = (field->n_y - 1) * field->spacing / (out->n_y - 1);
    char scene[2600];
    snprintf(scene, sizeof scene,
             "<scene name=\"map\" version=\"1\"><world><shape type=\"height-field\" nx=\"%d\" ny=\"%d\" "
             "dx=\"%.17g m\" dy=\"%.17g m\" expression=\"%s\"/></world></scene>",
             (int)out->n_x, (int)out->n_y, out->dx, out->dy, text);
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(scene, strlen(scene), option, NULL, &spec, &err)) {
        return cli_fail(CLI_BAD_INPUT, option, err.remedy, "\"%.200s\": %s", text, err.message);
    }
    const size_t n = (size_t)out->n_x * (size_t)out->n_y;
    out->value = cli_allocate(n, sizeof(double));
    memcpy(out->value, us_spec_view_shape(spec, 0)->heights, n * sizeof(double));
    us_spec_destroy(spec);
    return CLI_GO_ON;
}

// What lies between samples is between their values: these say all.
static int check_values(const char *option, const char *text, const terrain_map *m, double low) {
    for (size_t k = 0; k < (size_t)m->n_x * (size_t)m->n_y; k++) {
        if (isfinite(m->value[k]) && m->value[k] >= low) continue;
        const size_t j = k / (size_t)m->n_x, i = k % (size_t)m->n_x;
        return cli_fail(CLI_BAD_INPUT, option,
                        low < 0 ? "give a number for each place of the site"
                                : "give a number of 0 or more for each place of the site",
                        "\"%.200s\" is %g at x = %g m, y = %g m", text, m->value[k],
                        ((double)i - 0.5 * (m->n_x - 1)) * m->dx, ((double)j - 0.5 * (m->n_y - 1)) * m->dy);
    }
    return CLI_GO_ON;
}

int terrain_map_load(const char *option, const char *text, const us_field_def *field, double low,
                     terrain_map *out) {
    *out = (terrain_map){0};
    int code =
        is_raster(text) ? load_raster(option, text, field, out) : load_expression(option, text, field, out);
    out->x = 0.5 * (field->n_x - 1) * field->spacing;
    out->y = 0.5 * (field->n_y - 1) * field->spacing;
    return code == CLI_GO_ON ? check_values(option, text, out, low) : code;
}

// Bilinear between the samples, whose middle is the site's.
double terrain_map_at(const void *context, double x, double y) {
    const terrain_map *m = context;
    const double u = fmin(fmax((x - m->x) / m->dx + 0.5 * (m->n_x - 1), 0), m->n_x - 1),
                 v = fmin(fmax((y - m->y) / m->dy + 0.5 * (m->n_y - 1), 0), m->n_y - 1);
    const int32_t i = u < m->n_x - 1 ? (int32_t)u : m->n_x - 2, j = v < m->n_y - 1 ? (int32_t)v : m->n_y - 2;
    const double a = u - i, b = v - j, *z = m->value + (size_t)j * (size_t)m->n_x + i;
    const double south = a > 0 ? z[0] + a * (z[1] - z[0]) : z[0];
    if (!(b > 0)) return south;
    z += m->n_x;
    return south + b * ((a > 0 ? z[0] + a * (z[1] - z[0]) : z[0]) - south);
}
