// Any text as a calibration file: what is refused says where and why, and what is taken is a camera that
// projects.
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "understudy/vision.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    us_calibration c;
    us_camera_model m;
    us_error err = {0};
    const us_status status = us_calibration_decode("fuzz.yaml", (const char *)data, size, &c, &err);
    if (status) {
        must(err.message[0] && err.remedy[0] && err.line >= 0);
        return 0;
    }
    must(us_camera_from_info(&c.info, c.width, c.height, &m, &err) == US_OK);
    for (int i = 0; i < 25; i++) {
        const double x = m.width * (i % 5) / 4.0, y = m.height * (double)(i / 5) / 4.0;
        us_vec3 ray;
        double u, v;
        if (!us_camera_unproject(&m, x, y, &ray, NULL)) continue;
        must(fabs(us_vec3_norm(ray) - 1) < 1e-9);
        if (us_camera_project(&m, ray, &u, &v)) must(isfinite(u) && isfinite(v));
    }
    // Both cameras from one file have no baseline: an error with a remedy, if it is no pair.
    us_rectification r;
    if (us_rectify_calibration(&c.info, &c.info, c.width, c.height, &r, &err)) must(err.remedy[0] != 0);
    return 0;
}
