// understudy sense, of a camera: its picture as PNG, or the depths of it as PFM.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "understudy/camera.h"

static bool ends_with(const char *path, const char *ending) {
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

// Portable float map: rows from the bottom, little-endian.
static bool write_depth(const char *path, const us_image *image, const float *depth) {
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (!out) return false;
    fprintf(out, "Pf\n%d %d\n-1.0\n", (int)image->width, (int)image->height);
    for (int32_t v = image->height - 1; v >= 0; v--)
        fwrite(depth + (size_t)v * (size_t)image->width, sizeof *depth, (size_t)image->width, out);
    const bool is_good = !ferror(out);
    return out == stdout ? is_good : fclose(out) == 0 && is_good;
}

static int write_picture(const us_camera_renderer *camera, const char *path) {
    const us_image image = us_camera_renderer_view_image(camera);
    us_error err = {0};
    if (ends_with(path, ".pfm")) {
        if (!write_depth(path, &image, us_camera_renderer_view_depth(camera)))
            return cli_fail(CLI_CANNOT_WRITE, path, NULL, "cannot be written: %s", strerror(errno));
    } else if (us_image_write_png(&image, path, &err)) {
        cli_print_error(&err);
        return CLI_CANNOT_WRITE;
    }
    printf("%s: %d x %d pixels, exposed for %.3g s\n", path, (int)image.width, (int)image.height,
           us_camera_renderer_exposure(camera));
    return CLI_OK;
}

int cli_sense_camera(cli_world *world, int32_t sensor, double time, const char *path) {
    us_camera_renderer *camera = NULL;
    us_error err = {0};
    const double step = us_model_get_step(world->model);
    if (!ends_with(path, ".png") && !ends_with(path, ".pfm"))
        return cli_fail(CLI_BAD_INPUT, "-o", "end it with .png, or .pfm for depths",
                        "\"%s\" is of no kind that a camera can be written to", path);
    for (int64_t i = 0; (double)i * step < time - 1e-9; i++) {
        if (us_sim_step(world->sim, NULL)) {
            cli_print_error(us_sim_view_error(world->sim));
            return CLI_RUN_FAILED;
        }
    }
    us_status status = us_camera_renderer_create(world->model, (us_sensor){sensor}, 1, NULL, &camera, &err);
    if (!status) status = us_camera_renderer_render(camera, world->sim, &err);
    if (status) cli_print_error(&err);
    const int code = status ? CLI_BAD_INPUT : write_picture(camera, path);
    us_camera_renderer_destroy(camera);
    return code;
}
