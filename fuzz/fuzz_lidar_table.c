// Any text as a table of beams of a lidar: what is refused says where and why, what is taken has finite
// numbers, and a lidar of them is refused with a remedy or has beams that look somewhere.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spec/lidar_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static us_lidar_beam beams[US_LIDAR_MAX_BEAM];
    us_error err = {0};
    int32_t n = 0, line = 0;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const us_status status = usi_lidar_read_table(text, beams, &n, &line, &err);
    free(text);
    if (status) {
        must(err.message[0] && err.remedy[0] && line >= 0);
        return 0;
    }
    must(n > 0 && n <= US_LIDAR_MAX_BEAM);
    for (int32_t i = 0; i < n; i++)
        must(isfinite(beams[i].elevation) && isfinite(beams[i].azimuth) && isfinite(beams[i].time));
    us_lidar_def d = us_lidar_def_default();
    d.n_beam = n;
    d.beams = beams;
    d.columns = 360;
    d.max_range = 100;
    if (usi_check_lidar(&d, 10, &err)) {
        must(err.message[0] && err.remedy[0]);
        return 0;
    }
    for (int32_t i = 0; i < n; i++)
        must(fabs(beams[i].elevation) < 1.6 && beams[i].time >= 0 && beams[i].time < 1.0 / 3600);
    return 0;
}
