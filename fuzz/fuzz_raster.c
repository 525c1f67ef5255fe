// Any bytes as a GeoTIFF: information, or a refusal with file and remedy. GDAL reads files, so that it is
// one.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "understudy/raster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    if (status && (!err.message[0] || !err.remedy[0])) abort();
    unlink(path);
    return 0;
}
