// Any bytes as a GeoTIFF: information and samples, or a refusal with file and remedy. GDAL reads files, so
// that it is one.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "understudy/raster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_say(us_status status, const us_error *err) {
    if (status && (!err->message[0] || !err->remedy[0])) abort();
}

// All samples, where they are not so many that this takes the time of other inputs.
static void load(const us_raster_def *def, const us_raster_info *info) {
    us_raster_info loaded;
    us_error err = {0};
    double *samples = NULL;
    if ((int64_t)info->n_x * info->n_y > 1 << 20) return;
    const us_status status = us_raster_load(def, &loaded, &samples, &err);
    must_say(status, &err);
    if (status) return;
    if (loaded.n_x != info->n_x || loaded.n_y != info->n_y) abort();
    volatile uint64_t kept =
        us_hash_bytes(0, samples, (size_t)loaded.n_x * (size_t)loaded.n_y * sizeof *samples);
    (void)kept;
    us_raster_release(def, &loaded, samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    if (!path[0]) snprintf(path, sizeof path, "/tmp/understudy-fuzz-%d.tif", (int)getpid());
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    size_t n = size ? fwrite(data, 1, size, file) : 0;
    if (fclose(file) != 0 || n != size) return 0;
    const char *name = path;
    us_raster_def def = us_raster_def_default();
    def.file = &name;
    def.n_file = 1;
    def.is_geotiff = true;
    us_raster_info info;
    us_error err = {0};
    us_status status = us_raster_find_info(&def, NULL, NULL, &info, &err);
    must_say(status, &err);
    if (!status) load(&def, &info);
    unlink(path);
    return 0;
}
