// Sites for tests.
#include "site_make.h"

#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int remove_one(const char *path, const struct stat *about, int flag, struct FTW *where) {
    (void)about;
    (void)flag;
    (void)where;
    return remove(path);
}

void site_clear(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

float site_hills(double x, double y) {
    return (float)(2 * sin(x / 61) * cos(y / 67) + 0.05 * sin(x / 3.1 + y / 2.7) +
                   0.02 * cos(x * 0.9 - y * 0.4));
}

static float sample(int32_t i, int32_t j, int32_t n_x, int32_t n_y, double dx, double dy,
                    site_height height) {
    return height((i - 0.5 * (n_x - 1)) * dx, (j - 0.5 * (n_y - 1)) * dy);
}

void site_make(const char *path, int32_t n_x, int32_t n_y, double dx, double dy, site_height height) {
    site_clear(path);
    us_site_info info = {.n_layer = 1};
    info.layer[0] = (us_layer_info){
        .name = "height", .type = US_LAYER_NUMBER, .n_x = n_x, .n_y = n_y, .dx = dx, .dy = dy};
    us_site *site = NULL;
    us_error err = {0};
    us_status status = us_site_create(path, &info, NULL, &site, &err);
    static float samples[US_SITE_TILE * US_SITE_TILE];
    int32_t a, b;
    for (int32_t v = 0; us_site_tile_size(site, 0, 0, 0, v, &a, &b) && !status; v++) {
        for (int32_t u = 0; us_site_tile_size(site, 0, 0, u, v, &a, &b) && !status; u++) {
            for (int32_t k = 0; k < a * b; k++)
                samples[k] =
                    sample(u * US_SITE_TILE + k % a, v * US_SITE_TILE + k / a, n_x, n_y, dx, dy, height);
            status = us_site_write(site, 0, u, v, samples, &err);
        }
    }
    if (!status) status = us_site_finish(site, NULL, NULL, &err);
    us_site_close(site);
    if (status) fail_msg("%s: %s", err.file, err.message);
}

double *site_heights(int32_t n_x, int32_t n_y, double dx, double dy, site_height height) {
    double *out = malloc((size_t)n_x * (size_t)n_y * sizeof *out);
    assert_non_null(out);
    for (int32_t j = 0; j < n_y; j++)
        for (int32_t i = 0; i < n_x; i++)
            out[(size_t)j * (size_t)n_x + (size_t)i] = (double)sample(i, j, n_x, n_y, dx, dy, height);
    return out;
}
