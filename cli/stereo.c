// understudy stereo: disparities and points from two pictures.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "understudy/vision.h"

typedef struct settings {
    const char *method, *cost, *before, *after;  // NULL: the method's own
    int64_t n_disparity, min_disparity, window, prefilter_cap, texture, uniqueness, p1, p2, n_path,
        left_right;
    int64_t n_thread;
    double hfov, baseline;
    const char *left_calibration, *right_calibration;
    const char *disparity, *picture, *points, *rectified;
} settings;

typedef struct pair {
    us_image file[2];  // as they were read
    us_image grey[2];  // rectified
    us_rectification camera;
    bool has_scale;  // the camera is known, so that points can be told
} pair;

// ---- settings ----

static int choose(const char *option, const char *text, const char *const *names, int32_t n, int *out) {
    for (int32_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (int)i;
            return CLI_GO_ON;
        }
    const char *near = cli_nearest(text, names, n);
    char remedy[128] = "\"understudy help stereo\" lists what there is";
    if (near) snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", near);
    return cli_fail(CLI_BAD_INPUT, option, remedy, "\"%s\" is unknown", text);
}

// "median,speckle:100:1" into filters.
static int read_filters(const char *option, const char *text, us_filter *out, int32_t *out_n) {
    static const char *const names[US_FILTER_KIND_COUNT] = {"median", "blur", "normalize", "speckle", "fill"};
    int32_t n = 0;
    if (strcmp(text, "none") == 0) text = "";
    while (*text) {
        char word[32], name[32];
        const size_t length = strcspn(text, ",");
        if (n == US_FILTER_MAX || length >= sizeof word)
            return cli_fail(CLI_BAD_INPUT, option, "write up to 8 filters: median,speckle:100:1",
                            "\"%s\" is no list of filters", text);
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":"), word);
        int kind = 0;
        const int code = choose(option, name, names, US_FILTER_KIND_COUNT, &kind);
        if (code != CLI_GO_ON) return code;
        us_filter f = {.kind = (us_filter_kind)kind, .window = 9, .size = 100, .range = 1};
        int used = (int)strlen(name);
        if (f.kind == US_FILTER_NORMALIZE) sscanf(word, "normalize:%d%n", &f.window, &used);
        if (f.kind == US_FILTER_SPECKLE &&
            sscanf(word, "speckle:%d%n:%lf%n", &f.size, &used, &f.range, &used) < 1)
            used = (int)strlen(name);
        if (word[used])
            return cli_fail(CLI_BAD_INPUT, option, "write normalize:WINDOW or speckle:PIXELS:RANGE",
                            "\"%s\" is no filter", word);
        out[n++] = f;
        text += length + (text[length] == ',');
    }
    *out_n = n;
    return CLI_GO_ON;
}

static void take_number(int64_t from, int32_t *to) {
    if (from != INT64_MIN)
        *to = (int32_t)(from < INT32_MIN + 1 ? INT32_MIN + 1 : from > INT32_MAX ? INT32_MAX : from);
}

static int make_def(const settings *s, const pair *p, us_stereo_def *out) {
    static const char *const methods[] = {"block", "semi-global"};
    static const char *const costs[] = {"sad", "census5x5", "census9x7"};
    int method = US_STEREO_SEMI_GLOBAL, cost = 0;
    int code = s->method ? choose("--method", s->method, methods, 2, &method) : CLI_GO_ON;
    if (code != CLI_GO_ON) return code;
    us_stereo_def d = us_stereo_def_default((us_stereo_method)method, p->camera.width, p->camera.height);
    if (s->cost) {
        code = choose("--cost", s->cost, costs, 3, &cost);
        if (code != CLI_GO_ON) return code;
        d.cost = (us_stereo_cost)cost;
    }
    take_number(s->window, &d.window);
    // The usual prices of a window of sums, in proportion to its area.
    if (d.method == US_STEREO_SEMI_GLOBAL && d.cost == US_STEREO_SAD) {
        const int32_t side = d.window > 0 && d.window < 100 ? d.window : 1;
        d.p1 = 8 * side * side;
        d.p2 = 32 * side * side;
    }
    take_number(s->n_disparity, &d.n_disparity);
    take_number(s->min_disparity, &d.min_disparity);
    take_number(s->prefilter_cap, &d.prefilter_cap);
    take_number(s->texture, &d.texture);
    take_number(s->uniqueness, &d.uniqueness);
    take_number(s->p1, &d.p1);
    take_number(s->p2, &d.p2);
    take_number(s->n_path, &d.n_path);
    take_number(s->left_right, &d.left_right);
    if (s->before) code = read_filters("--before", s->before, d.before, &d.n_before);
    if (code == CLI_GO_ON && s->after) code = read_filters("--after", s->after, d.after, &d.n_after);
    *out = d;
    return code;
}

// ---- pictures ----

static int fail_library(const char *element, us_status status, us_error *err) {
    if (!err->message[0])
        us_error_set(err, status, &(us_place){.element = element}, NULL, "%s", us_status_text(status));
    cli_print_error(err);
    return cli_input_code(err);
}

static int read_pictures(const char *const path[2], pair *p) {
    us_error err = {0};
    for (int i = 0; i < 2; i++) {
        us_status status = us_image_read_png(path[i], NULL, &p->file[i], &err);
        if (!status)
            status = us_image_create(US_PIXEL_MONO8, p->file[i].width, p->file[i].height, NULL, &p->grey[i]);
        if (status) return fail_library(path[i], status, &err);
        us_image_to_mono8(&p->file[i], &p->grey[i]);
    }
    if (p->file[0].width != p->file[1].width || p->file[0].height != p->file[1].height)
        return cli_fail(CLI_BAD_INPUT, path[1], "give two pictures that were taken together",
                        "has %d x %d pixels, and %s %d x %d", (int)p->file[1].width, (int)p->file[1].height,
                        path[0], (int)p->file[0].width, (int)p->file[0].height);
    p->camera = (us_rectification){.width = p->file[0].width, .height = p->file[0].height};
    return CLI_GO_ON;
}

static int rectify_side(const us_calibration *c, us_quat q_SN, double cx, pair *p, int side) {
    us_error err = {0};
    us_camera_model model;
    us_image to = {0};
    us_remap *map = NULL;
    us_status status = us_camera_from_info(&c->info, c->width, c->height, &model, &err);
    if (!status) status = us_image_create(US_PIXEL_MONO8, p->camera.width, p->camera.height, NULL, &to);
    if (!status) status = us_remap_create(&model, &p->camera, q_SN, cx, NULL, &map);
    if (!status) status = us_remap_apply(map, &p->grey[side], &to);
    us_remap_destroy(map);
    if (status) {
        us_image_destroy(&to, NULL);
        return fail_library("rectification", status, &err);
    }
    us_image_destroy(&p->grey[side], NULL);
    p->grey[side] = to;
    return CLI_GO_ON;
}

static int rectify(const settings *s, pair *p) {
    const char *const path[2] = {s->left_calibration, s->right_calibration};
    us_calibration c[2];
    us_error err = {0};
    for (int i = 0; i < 2; i++) {
        const us_status status = us_calibration_read(path[i], &c[i], &err);
        if (status) return fail_library(path[i], status, &err);
        if (c[i].width != p->camera.width || c[i].height != p->camera.height)
            return cli_fail(CLI_BAD_INPUT, path[i], "give the calibration of this camera at this size",
                            "is for %d x %d pixels, and the pictures have %d x %d", (int)c[i].width,
                            (int)c[i].height, (int)p->camera.width, (int)p->camera.height);
    }
    const us_status status =
        us_rectify_calibration(&c[0].info, &c[1].info, c[0].width, c[0].height, &p->camera, &err);
    if (status) return fail_library(path[1], status, &err);
    p->has_scale = true;
    int code = rectify_side(&c[0], p->camera.q_LN, p->camera.cx_left, p, 0);
    if (code == CLI_GO_ON) code = rectify_side(&c[1], p->camera.q_RN, p->camera.cx_right, p, 1);
    return code;
}

// The camera of pictures that are rectified already.
static int take_geometry(const settings *s, pair *p) {
    if (!s->left_calibration != !s->right_calibration)
        return cli_fail(CLI_BAD_INPUT, s->left_calibration ? "--right-calibration" : "--left-calibration",
                        "give both files", "one camera's calibration is not enough");
    if (s->left_calibration && !isnan(s->baseline))
        return cli_fail(CLI_BAD_INPUT, "--baseline", "leave it out", "the calibration says the baseline");
    if (s->left_calibration) return rectify(s, p);
    if (isnan(s->baseline)) return CLI_GO_ON;
    if (!(s->baseline > 0 && s->baseline < 1e4))
        return cli_fail(CLI_BAD_INPUT, "--baseline", "write metres, above 0", "%g m is no baseline",
                        s->baseline);
    if (!(s->hfov > 0 && s->hfov < 179))
        return cli_fail(CLI_BAD_INPUT, "--hfov", "write degrees from 0 to 179",
                        "%g degrees are no field of view", s->hfov);
    const us_camera_model m =
        us_camera_from_hfov(p->camera.width, p->camera.height, s->hfov * 0.017453292519943295);
    p->camera.f = m.fx;
    p->camera.cx_left = p->camera.cx_right = m.cx;
    p->camera.cy = m.cy;
    p->camera.baseline = s->baseline;
    p->has_scale = true;
    return CLI_GO_ON;
}

// ---- what is written ----

static int write_picture(const us_image *image, const char *path) {
    us_error err = {0};
    if (us_image_write_png(image, path, &err) == US_OK) return CLI_GO_ON;
    cli_print_error(&err);
    return cli_output_code(&err);
}

// Disparity * 256 in 16 bits, 0 where there is none.
static int write_disparity(const float *d, float invalid, const pair *p, const char *path) {
    us_image out;
    if (us_image_create(US_PIXEL_MONO16, p->camera.width, p->camera.height, NULL, &out))
        return cli_fail(CLI_RUN_FAILED, path, NULL, "out of memory");
    for (int32_t i = 0; i < out.width * out.height; i++)
        if (d[i] != invalid)
            ((uint16_t *)out.pixels)[i] = (uint16_t)fmin(65535, fmax(0, round(256 * (double)d[i])));
    const int code = write_picture(&out, path);
    us_image_destroy(&out, NULL);
    return code;
}

// Near is red, then yellow, green and blue; black: none.
static int write_colours(const float *d, const us_stereo_def *def, const pair *p, const char *path) {
    static const double stop[5][3] = {
        {49, 54, 149}, {116, 173, 209}, {255, 255, 191}, {253, 174, 97}, {165, 0, 38}};
    us_image out;
    if (us_image_create(US_PIXEL_RGB8, p->camera.width, p->camera.height, NULL, &out))
        return cli_fail(CLI_RUN_FAILED, path, NULL, "out of memory");
    for (int32_t i = 0; i < out.width * out.height; i++) {
        if (d[i] == us_stereo_invalid(def)) continue;
        const double share = ((double)d[i] - def->min_disparity) / def->n_disparity,
                     at = 4 * fmin(1, fmax(0, share));
        const int k = at < 3 ? (int)at : 3;
        for (int c = 0; c < 3; c++)
            ((uint8_t *)out.pixels)[3 * i + c] =
                (uint8_t)lround(stop[k][c] + (at - k) * (stop[k + 1][c] - stop[k][c]));
    }
    const int code = write_picture(&out, path);
    us_image_destroy(&out, NULL);
    return code;
}

static int write_points(const float *d, float invalid, const pair *p, const char *path) {
    const int32_t size = p->camera.width * p->camera.height;
    us_stereo_point *points = cli_allocate((size_t)size, sizeof *points);
    const int32_t n = us_stereo_points(&p->camera, d, invalid, &p->grey[0], points);
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (out)
        fprintf(
            out,
            "ply\nformat ascii 1.0\ncomment optical frame of the left camera: x right, y down, z forward\n"
            "element vertex %d\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\n"
            "property uchar green\nproperty uchar blue\nend_header\n",
            (int)n);
    for (int32_t i = 0; out && i < size; i++) {
        const us_stereo_point *q = &points[i];
        if (isnan(q->x)) continue;
        fprintf(out, "%.6g %.6g %.6g %d %d %d\n", (double)q->x, (double)q->y, (double)q->z, q->grey, q->grey,
                q->grey);
    }
    free(points);
    if (!out || ferror(out) || (out != stdout && fclose(out) != 0))
        return cli_fail(CLI_CANNOT_WRITE, path, NULL, "cannot be written: %s", strerror(errno));
    return CLI_GO_ON;
}

static int less(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_summary(FILE *out, const float *d, const us_stereo_def *def, const pair *p,
                          double seconds) {
    const int32_t size = def->width * def->height;
    float *valid = cli_allocate((size_t)size, sizeof *valid);
    int32_t n = 0;
    for (int32_t i = 0; i < size; i++)
        if (d[i] != us_stereo_invalid(def)) valid[n++] = d[i];
    qsort(valid, (size_t)n, sizeof *valid, less);
    fprintf(out, "%d x %d pixels, %d disparities from %d: %.1f %% of the pixels have one, in %.1f ms\n",
            (int)def->width, (int)def->height, (int)def->n_disparity, (int)def->min_disparity,
            100.0 * n / size, 1e3 * seconds);
    if (n > 0)
        fprintf(out, "disparity %.2f to %.2f pixels, median %.2f\n", (double)valid[0], (double)valid[n - 1],
                (double)valid[n / 2]);
    const double median = n > 0 ? (double)valid[n / 2] - (p->camera.cx_left - p->camera.cx_right) : 0;
    if (p->has_scale && median > 0)
        fprintf(out, "f %.3f pixels, baseline %.4g m: the median is %.3f m away\n", p->camera.f,
                p->camera.baseline, p->camera.f * p->camera.baseline / median);
    free(valid);
}

static int write_rectified(const pair *p, const char *prefix) {
    int code = CLI_GO_ON;
    for (int i = 0; i < 2 && code == CLI_GO_ON; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s-%s.png", prefix, i ? "right" : "left");
        code = write_picture(&p->grey[i], path);
    }
    return code;
}

static int match(const settings *s, pair *p) {
    us_stereo_def def;
    us_stereo *stereo = NULL;
    us_error err = {0};
    int code = make_def(s, p, &def);
    if (code != CLI_GO_ON) return code;
    if (s->n_thread < 1 || s->n_thread > 256)
        return cli_fail(CLI_BAD_INPUT, "--threads", "write a number from 1 to 256",
                        "%lld threads cannot be had", (long long)s->n_thread);
    const us_status status = us_stereo_create(&def, (int32_t)s->n_thread, NULL, &stereo, &err);
    if (status) return fail_library("stereo", status, &err);
    float *disparity = cli_allocate((size_t)def.width * (size_t)def.height, sizeof *disparity);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    us_stereo_match(stereo, &p->grey[0], &p->grey[1], disparity);
    clock_gettime(CLOCK_MONOTONIC, &end);
    us_stereo_destroy(stereo);
    const float invalid = us_stereo_invalid(&def);
    if (s->rectified) code = write_rectified(p, s->rectified);
    if (code == CLI_GO_ON && s->disparity) code = write_disparity(disparity, invalid, p, s->disparity);
    if (code == CLI_GO_ON && s->picture) code = write_colours(disparity, &def, p, s->picture);
    if (code == CLI_GO_ON && s->points) code = write_points(disparity, invalid, p, s->points);
    if (code == CLI_GO_ON) {
        const bool is_out_taken = s->points && strcmp(s->points, "-") == 0;
        print_summary(is_out_taken ? stderr : stdout, disparity, &def, p,
                      (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
        code = CLI_OK;
    }
    free(disparity);
    return code;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *left = NULL;
    cli_list rest = {0};
    settings s = {.n_disparity = INT64_MIN,
                  .min_disparity = INT64_MIN,
                  .window = INT64_MIN,
                  .prefilter_cap = INT64_MIN,
                  .texture = INT64_MIN,
                  .uniqueness = INT64_MIN,
                  .p1 = INT64_MIN,
                  .p2 = INT64_MIN,
                  .n_path = INT64_MIN,
                  .left_right = INT64_MIN,
                  .n_thread = 1,
                  .hfov = 60,
                  .baseline = NAN};
    const cli_option table[] = {
        {"RIGHT.png", CLI_REST, &rest, NULL, "the right picture"},
        {"-o", CLI_TEXT, &s.disparity, "FILE.png",
         "disparities as 16 bits: pixels * 256, and 0 where there is none"},
        {"picture", CLI_TEXT, &s.picture, "FILE.png", "disparities as colours: near is red, none is black"},
        {"points", CLI_TEXT, &s.points, "FILE.ply", "the points; needs --baseline or calibrations"},
        {"hfov", CLI_NUMBER, &s.hfov, "DEG", "how wide the pictures see (60)"},
        {"baseline", CLI_NUMBER, &s.baseline, "M", "how far the cameras are apart"},
        {"left-calibration", CLI_TEXT, &s.left_calibration, "FILE.yaml",
         "as camera_calibration of ROS 2 writes it:"},
        {"right-calibration", CLI_TEXT, &s.right_calibration, "FILE.yaml",
         "the pictures are rectified by these"},
        {"rectified", CLI_TEXT, &s.rectified, "PREFIX",
         "write what is matched: PREFIX-left.png and PREFIX-right.png"},
        {"method", CLI_TEXT, &s.method, "NAME", "semi-global (as is) or block"},
        {"cost", CLI_TEXT, &s.cost, "NAME", "of semi-global: census5x5 (as is), census9x7, sad"},
        {"disparities", CLI_INTEGER, &s.n_disparity, "N", "how many are tried, a multiple of 16 (64)"},
        {"from", CLI_INTEGER, &s.min_disparity, "N", "the first of them (0)"},
        {"window", CLI_INTEGER, &s.window, "N", "of sad: 1 to 21, odd (9)"},
        {"prefilter-cap", CLI_INTEGER, &s.prefilter_cap, "N", "of sad: gradients are cut at this (31)"},
        {"texture", CLI_INTEGER, &s.texture, "N", "of block: least sum of gradients in a window (810)"},
        {"uniqueness", CLI_INTEGER, &s.uniqueness, "PERCENT", "how much more the second best must cost (15)"},
        {"p1", CLI_INTEGER, &s.p1, "N", "of semi-global: price of a step by one disparity (10)"},
        {"p2", CLI_INTEGER, &s.p2, "N", "of semi-global: price of a larger step (90)"},
        {"paths", CLI_INTEGER, &s.n_path, "N", "of semi-global: 4 or 8 (8)"},
        {"left-right", CLI_INTEGER, &s.left_right, "N", "how much left and right may disagree (1); -1: any"},
        {"before", CLI_TEXT, &s.before, "FILTERS", "of the pictures: median, blur, normalize:WINDOW (none)"},
        {"after", CLI_TEXT, &s.after, "FILTERS",
         "of the disparities: median, speckle:PIXELS:RANGE, fill (median,speckle:100:1)"},
        {"threads", CLI_INTEGER, &s.n_thread, "N", "how many threads (1)"},
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &left);
    if (code != CLI_GO_ON) return code;
    if (rest.n != 1)
        return cli_fail(CLI_BAD_INPUT, "stereo", "understudy stereo LEFT.png RIGHT.png -o disparity.png",
                        rest.n ? "more than two pictures are given" : "there is no right picture");
    pair p = {0};
    const char *const path[2] = {left, rest.item[0]};
    code = read_pictures(path, &p);
    if (code == CLI_GO_ON) code = take_geometry(&s, &p);
    if (code == CLI_GO_ON && s.points && !p.has_scale)
        code = cli_fail(CLI_BAD_INPUT, "--points", "add --baseline and --hfov, or both calibrations",
                        "without the cameras nobody knows how far things are");
    if (code == CLI_GO_ON) code = match(&s, &p);
    for (int i = 0; i < 2; i++) {
        us_image_destroy(&p.file[i], NULL);
        us_image_destroy(&p.grey[i], NULL);
    }
    return code;
}

const cli_command cli_command_stereo = {
    .name = "stereo",
    .operand = "LEFT.png",
    .needs_operand = true,
    .summary = "match two pictures: disparities, and a cloud of points",
    .about =
        "The pictures are rectified already, or are rectified by two calibrations.\n"
        "\n"
        "  understudy stereo left.png right.png -o disparity.png --picture colours.png\n"
        "  understudy stereo left.png right.png --hfov 60 --baseline 0.15 --points cloud.ply\n"
        "  understudy stereo left.png right.png --left-calibration left.yaml \\\n"
        "             --right-calibration right.yaml --points cloud.ply\n"
        "  understudy stereo left.png right.png --method block --window 11 --after median,fill -o d.png\n",
    .run = run,
};
