// understudy terrain: ground from rasters, and what a site or a raster is.
#include "terrain.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "bus.h"
#include "understudy/raster.h"

// ---------------------------------------------------------------- what both have

typedef struct raster_options {
    int64_t band;
    double nodata;  // NaN: not given
    const char *reference, *unit;
    bool is_metric, is_local;
} raster_options;

#define RASTER_OPTIONS(o)                                                                            \
    {"band", CLI_INTEGER, &(o).band, "N", "which band has the heights, from 1 (the only one)"},      \
        {"nodata", CLI_NUMBER, &(o).nodata, "NUMBER",                                                \
         "a number that means a gap, in the unit of the file (as the file says)"},                   \
        {"unit", CLI_TEXT, &(o).unit, "UNIT",                                                        \
         "of the heights: m, ft, us-ft, km, or metres as a number (as the file says, or m)"},        \
        {"reference", CLI_TEXT, &(o).reference, "SYSTEM",                                            \
         "of files that name none: EPSG:32610, IAU_2015:49900, WKT, PROJ"},                          \
        {"metric", CLI_FLAG, &(o).is_metric, NULL,                                                   \
         "files that name no reference system are in plain metres"},                                 \
    {                                                                                                \
        "local", CLI_FLAG, &(o).is_local, NULL,                                                      \
            "lay a map projection into a local frame too: true to scale in the middle, east is east" \
    }

static us_raster_def definition(const raster_options *o, const cli_list *files) {
    us_raster_def def = us_raster_def_default();
    def.n_file = files->n;
    def.file = files->item;
    def.band = o->band < INT32_MIN || o->band > INT32_MAX ? -1 : (int32_t)o->band;
    if (!isnan(o->nodata)) def.nodata = &o->nodata;
    def.reference = o->reference;
    def.unit = o->unit;
    def.is_metric = o->is_metric;
    def.is_local = o->is_local;
    return def;
}

static int fail_with(const us_error *err) {
    cli_print_error(err);
    return err->code == US_ERR_MEMORY ? CLI_RUN_FAILED : CLI_BAD_INPUT;
}

void terrain_progress(void *context, double share) {
    int32_t *last = context, now = (int32_t)(1000 * share);
    if (now == *last) return;
    *last = now;
    char bar[64];
    cli_bar(share, bar, sizeof bar);
    cli_line_show("%s", bar);
}

// A projection that stretches the ground is worth a warning: wheels would rotate too often.
static void warn_of(const char *file, const us_raster_info *info) {
    if (fabs(info->stretch_x - 1) > 0.01 || fabs(info->stretch_y - 1) > 0.01)
        cli_warn("--local lays it into a frame that is true to scale",
                 "%s: in its middle a true metre is %.4g m of \"%s\" eastward and %.4g m northward", file,
                 info->stretch_x, info->reference, info->stretch_y);
    if (info->n_band > 1)
        cli_warn("use --band for another", "%s: heights are band %d of %d (%s, %s)", file, (int)info->band,
                 (int)info->n_band, info->colour, info->type);
}

// ---------------------------------------------------------------- what there is

static void print_raster(const char *file, const us_raster_info *info) {
    printf("%s\n", file);
    printf("file       %d x %d samples, band %d of %d, %s, %s\n", (int)info->file_n_x, (int)info->file_n_y,
           (int)info->band, (int)info->n_band, info->type, info->colour);
    printf("samples    %d x %d, %.9g m x %.9g m apart: %.9g m x %.9g m%s\n", (int)info->n_x, (int)info->n_y,
           info->dx, info->dy, (info->n_x - 1) * info->dx, (info->n_y - 1) * info->dy,
           info->is_resampled ? ", resampled" : "");
    printf("heights    %.9g to %.9g m", info->low, info->high);
    printf(info->unit[0] ? " (unit in the file: %s)\n" : " (the file names no unit)\n", info->unit);
    printf(info->n_gap ? "gaps       %lld\n" : "gaps       none\n", (long long)info->n_gap);
    printf("reference  %s\n", info->reference[0] ? info->reference : "none");
    printf("middle     %.12g east, %.12g north", info->middle.x, info->middle.y);
    if (!isnan(info->latitude)) printf("; latitude %.8f, longitude %.8f", info->latitude, info->longitude);
    printf("\nscale      a true metre is %.7g m eastward, %.7g m northward\n", info->stretch_x,
           info->stretch_y);
}

static void json_raster(cli_json *json, const char *file, const us_raster_info *info) {
    cli_json_begin(json, NULL, '{');
    cli_json_text(json, "kind", "raster");
    cli_json_text(json, "file", file);
    cli_json_integer(json, "width", info->n_x);
    cli_json_integer(json, "height", info->n_y);
    cli_json_numbers(json, "spacing", (const double[]){info->dx, info->dy}, 2);
    cli_json_number(json, "low", info->low);
    cli_json_number(json, "high", info->high);
    cli_json_integer(json, "gaps", info->n_gap);
    cli_json_text(json, "reference", info->reference);
    cli_json_numbers(json, "middle", (const double[]){info->middle.x, info->middle.y}, 2);
    cli_json_number(json, "latitude", info->latitude);
    cli_json_number(json, "longitude", info->longitude);
    cli_json_numbers(json, "stretch", (const double[]){info->stretch_x, info->stretch_y}, 2);
    cli_json_numbers(json, "file_size", (const double[]){info->file_n_x, info->file_n_y}, 2);
    cli_json_integer(json, "band", info->band);
    cli_json_integer(json, "bands", info->n_band);
    cli_json_text(json, "type", info->type);
    cli_json_text(json, "colour", info->colour);
    cli_json_text(json, "unit", info->unit);
    cli_json_bool(json, "resampled", info->is_resampled);
    cli_json_end(json);
}

static const char *layer_type_name(us_layer_type type) {
    static const char *const names[] = {
#define LAYER_NAME(code, name) name,
        US_LAYER_LIST(LAYER_NAME)
#undef LAYER_NAME
    };
    return names[type];
}

static void print_site(const char *path, const us_site_info *info) {
    const us_layer_info *h = &info->layer[0];
    printf("%s\n", path);
    printf("samples    %d x %d, %.9g m x %.9g m apart: %.9g m x %.9g m\n", (int)h->n_x, (int)h->n_y, h->dx,
           h->dy, (h->n_x - 1) * h->dx, (h->n_y - 1) * h->dy);
    printf("heights    %.9g to %.9g m: %.9g to %.9g about the origin\n", info->origin.z + h->low,
           info->origin.z + h->high, h->low, h->high);
    printf(info->n_gap ? "gaps       %lld, filled\n" : "gaps       none\n", (long long)info->n_gap);
    printf("reference  %s\n", info->reference[0] ? info->reference : "none");
    printf("origin     %.12g east, %.12g north, %.9g up\n", info->origin.x, info->origin.y, info->origin.z);
    printf("layers     name, kind, samples, spacing, levels\n");
    for (int32_t i = 0; i < info->n_layer; i++) {
        const us_layer_info *l = &info->layer[i];
        printf("  %-20s %-7s %d x %d  %.6g m x %.6g m  %d\n", l->name, layer_type_name(l->type), (int)l->n_x,
               (int)l->n_y, l->dx, l->dy, (int)l->n_level);
    }
    printf("hash       %016llx\n", (unsigned long long)info->hash);
}

static void json_site(cli_json *json, const char *path, const us_site_info *info) {
    const us_layer_info *h = &info->layer[0];
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)info->hash);
    cli_json_begin(json, NULL, '{');
    cli_json_text(json, "kind", "site");
    cli_json_text(json, "file", path);
    cli_json_integer(json, "width", h->n_x);
    cli_json_integer(json, "height", h->n_y);
    cli_json_numbers(json, "spacing", (const double[]){h->dx, h->dy}, 2);
    cli_json_number(json, "low", info->origin.z + h->low);
    cli_json_number(json, "high", info->origin.z + h->high);
    cli_json_integer(json, "gaps", info->n_gap);
    cli_json_text(json, "reference", info->reference);
    cli_json_text(json, "wkt", info->wkt);
    cli_json_vector(json, "origin", info->origin);
    cli_json_begin(json, "layers", '[');
    for (int32_t i = 0; i < info->n_layer; i++) {
        const us_layer_info *l = &info->layer[i];
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", l->name);
        cli_json_text(json, "kind", layer_type_name(l->type));
        cli_json_integer(json, "width", l->n_x);
        cli_json_integer(json, "height", l->n_y);
        cli_json_numbers(json, "spacing", (const double[]){l->dx, l->dy}, 2);
        cli_json_integer(json, "levels", l->n_level);
        if (l->type == US_LAYER_NUMBER) {
            cli_json_number(json, "low", l->low);
            cli_json_number(json, "high", l->high);
        }
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_text(json, "hash", hash);
    cli_json_end(json);
}

static int show_site(const char *path, bool is_json, const char *picture) {
    us_error err = {0};
    us_site *site = NULL;
    if (us_site_open(path, NULL, &site, &err)) return fail_with(&err);
    us_site_info info = us_site_get_info(site);
    cli_json json = {.out = stdout};
    if (is_json)
        json_site(&json, path, &info);
    else
        print_site(path, &info);
    us_status status = picture ? us_site_write_hillshade(site, picture, &err) : US_OK;
    us_site_close(site);
    if (!status) return CLI_OK;
    int bad = fail_with(&err);
    return status == US_ERR_IO && strcmp(err.file, picture) == 0 ? CLI_CANNOT_WRITE : bad;
}

int terrain_info(int argc, char **argv) {
    raster_options o = {.nodata = NAN};
    cli_list files = {0};
    bool is_json = false;
    const char *picture = NULL;
    const cli_option options[] = {
        {"FILE", CLI_REST, &files, NULL, NULL},
        {"json", CLI_FLAG, &is_json, NULL, "as JSON"},
        {"picture", CLI_TEXT, &picture, "FILE", "also draw the site, lit from the north-west, into a PNG"},
        RASTER_OPTIONS(o)};
    static const cli_command command = {.name = "terrain info",
                                        .operand = "SITE|FILE",
                                        .needs_operand = true,
                                        .summary = "what a site or a raster of heights is",
                                        .about =
                                            "Of a site: samples, spacing, extremes, reference system and "
                                            "origin, layers. Of rasters: the same, as an import\n"
                                            "with the same options would lay them; all of it is read once.\n"
                                            "\n"
                                            "  understudy terrain info site/\n"
                                            "  understudy terrain info dem.tif --json\n"};
    const char *file = NULL;
    int code = cli_parse(&command, options, sizeof options / sizeof *options, argc, argv, &file);
    if (code != CLI_GO_ON) return code;
    struct stat about;
    if (files.n == 0 && stat(file, &about) == 0 && S_ISDIR(about.st_mode))
        return show_site(file, is_json, picture);
    if (picture)
        return cli_fail(CLI_BAD_INPUT, "understudy terrain info", "import it first",
                        "--picture draws a site, and \"%s\" is none", file);
    cli_list all = {.n = 1, .item = {file}};
    for (int32_t i = 0; i < files.n && all.n < CLI_LIST_MAX; i++)
        all.item[all.n++] = files.item[i];
    us_raster_def def = definition(&o, &all);
    us_raster_info info;
    us_error err = {0};
    bool is_live = cli_is_terminal(stderr);
    int32_t last = -1;
    us_status status = us_raster_find_info(&def, is_live ? terrain_progress : NULL, &last, &info, &err);
    if (is_live) cli_line_clear();
    if (status) return fail_with(&err);
    cli_json json = {.out = stdout};
    if (is_json)
        json_raster(&json, file, &info);
    else
        print_raster(file, &info);
    return CLI_OK;
}

// ---------------------------------------------------------------- import

int terrain_import(int argc, char **argv) {
    raster_options o = {.nodata = NAN};
    us_site_import_def def = us_site_import_def_default();
    cli_list files = {0}, ortho = {0}, regions = {0};
    const char *out = NULL, *file = NULL;
    const cli_option options[] = {
        {"FILE", CLI_REST, &files, NULL, NULL},
        {"-o", CLI_TEXT, &out, "DIR", "the site: a directory that is new or empty"},
        {"ortho", CLI_LIST, &ortho, "FILE", "a photograph from above"},
        {"regions", CLI_LIST, &regions, "FILE", "a mask of regions, 0 to 255"},
        {"fill", CLI_FLAG, &def.is_filled, NULL, "fill gaps from the nearest values around them"},
        RASTER_OPTIONS(o)};
    static const cli_command command = {
        .name = "terrain import",
        .operand = "FILE",
        .needs_operand = true,
        .summary = "makes a site of rasters of heights",
        .about = "GeoTIFF, and whatever else GDAL reads. Where several files have a height the first wins; "
                 "they may be in\n"
                 "different projections: the first one's is taken. Degrees become a local frame in metres.\n"
                 "\n"
                 "  understudy terrain import dem.tif --ortho photo.tif -o site/\n"
                 "  understudy terrain import fine.tif coarse.tif --fill -o site/\n"
                 "  understudy terrain import old.tif --unit ft --reference EPSG:26710 -o site/\n"};
    int code = cli_parse(&command, options, sizeof options / sizeof *options, argc, argv, &file);
    if (code != CLI_GO_ON) return code;
    if (!out)
        return cli_fail(CLI_BAD_INPUT, "understudy terrain import", "add -o DIR",
                        "it is not said where the site is to be");
    cli_list all = {.n = 1, .item = {file}};
    for (int32_t i = 0; i < files.n && all.n < CLI_LIST_MAX; i++)
        all.item[all.n++] = files.item[i];
    bool is_live = cli_is_terminal(stderr);
    int32_t last = -1;
    def.height = definition(&o, &all);
    def.ortho = ortho.item;
    def.n_ortho = ortho.n;
    def.region = regions.item;
    def.n_region = regions.n;
    def.progress = is_live ? terrain_progress : NULL;
    def.context = &last;
    us_raster_info info;
    us_error err = {0};
    us_status status = us_site_import(&def, out, &info, &err);
    if (is_live) cli_line_clear();
    if (status) {
        // What could not be written lies in the site, or is it.
        size_t length = strlen(out);
        while (length > 1 && out[length - 1] == '/')
            length--;
        char next = strncmp(err.file, out, length) == 0 ? err.file[length] : '?';
        bool is_ours = status == US_ERR_IO && (next == 0 || next == '/');
        int bad = fail_with(&err);
        return is_ours ? CLI_CANNOT_WRITE : bad;
    }
    warn_of(file, &info);
    return show_site(out, false, NULL);
}

// ---------------------------------------------------------------- which

static int run_terrain(const cli_command *command, int argc, char **argv) {
    static const struct {
        const char *name, *summary;
        int (*run)(int argc, char **argv);
    } parts[] = {{"import", "makes a site of rasters of heights (GeoTIFF)", terrain_import},
                 {"random", "makes a site from a seed", terrain_random},
                 {"info", "what a site or a raster of heights is", terrain_info}};
    enum { N_PART = sizeof parts / sizeof *parts };
    const char *names[N_PART];
    for (int i = 0; i < N_PART; i++) {
        names[i] = parts[i].name;
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0) return parts[i].run(argc - 1, argv + 1);
    }
    bool is_help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc > 1 && !is_help) {
        const char *near = cli_nearest(argv[1], names, N_PART);
        char remedy[128];
        snprintf(remedy, sizeof remedy,
                 near ? "did you mean \"understudy terrain %s\"?" : "write import, random or info", near);
        return cli_fail(CLI_BAD_INPUT, "understudy terrain", remedy, "unknown part \"%s\"", argv[1]);
    }
    if (!is_help)
        return cli_fail(CLI_BAD_INPUT, "understudy terrain", "write import, random or info after it",
                        "it is not said what to do");
    printf("%s: %s\n\nUsage: understudy %s PART ...\n\nParts:\n", command->name, command->summary,
           command->name);
    for (int i = 0; i < N_PART; i++)
        printf("  %-8s %s\n", parts[i].name, parts[i].summary);
    fputs("\nOptions:\n  --help                  this text; after a part, the text about it\n\n", stdout);
    fputs(command->about, stdout);
    return CLI_OK;
}

const cli_command cli_command_terrain = {
    .name = "terrain",
    .operand = "PART",
    .needs_operand = true,
    .summary = "ground on disk: makes sites of rasters or from a seed, shows them",
    .about = "  understudy terrain import dem.tif --ortho photo.tif -o site/\n"
             "  understudy terrain info site/\n",
    .run = run_terrain};
