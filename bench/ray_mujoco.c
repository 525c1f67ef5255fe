// MuJoCo's mj_ray over a height field.
#include "ray_peers.h"

#ifdef US_HAVE_MUJOCO

#include <math.h>
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

static mjModel *load(int32_t n_x, int32_t n_y, double apart, double low, double high) {
    char path[] = "/tmp/understudy-bench-XXXXXX.xml", err[1000] = "no temporary file";
    const int fd = mkstemps(path, 4);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    mjModel *m = NULL;
    if (f) {
        fprintf(f,
                "<mujoco><size nconmax=\"10\" njmax=\"10\"/><asset><hfield name=\"h\" nrow=\"%d\" "
                "ncol=\"%d\" size=\"%.17g %.17g %.17g 1\"/></asset>"
                "<worldbody><geom type=\"hfield\" hfield=\"h\" pos=\"0 0 %.17g\"/></worldbody></mujoco>",
                (int)n_y, (int)n_x, 0.5 * (n_x - 1) * apart, 0.5 * (n_y - 1) * apart, high - low, low);
        if (fclose(f) == 0) m = mj_loadXML(path, NULL, err, sizeof err);
    }
    if (fd >= 0) unlink(path);
    if (!m) fprintf(stderr, "bench: mujoco: %s\n", err);
    return m;
}

bool ray_mujoco(const double *heights, int32_t n_x, int32_t n_y, double apart, int32_t n_ray,
                const double *rays, double *out_seconds) {
    double low = INFINITY, high = -INFINITY;
    for (int32_t i = 0; i < n_x * n_y; i++) {
        low = fmin(low, heights[i]);
        high = fmax(high, heights[i]);
    }
    mjModel *m = load(n_x, n_y, apart, low, high);
    mjData *d = m ? mj_makeData(m) : NULL;
    if (!d) return false;
    for (int32_t i = 0; i < n_x * n_y; i++)
        m->hfield_data[i] = (float)((heights[i] - low) / (high - low));
    mj_forward(m, d);
    const double start = bench_cpu_now();
    for (int32_t i = 0; i < n_ray; i++) {
        int geom = -1;
        mj_ray(m, d, rays + 6 * (size_t)i, rays + 6 * (size_t)i + 3, NULL, 1, -1, &geom);
    }
    *out_seconds = (bench_cpu_now() - start) / n_ray;
    mj_deleteData(d);
    mj_deleteModel(m);
    return true;
}

#else

bool ray_mujoco(const double *heights, int32_t n_x, int32_t n_y, double apart, int32_t n_ray,
                const double *rays, double *out_seconds) {
    (void)heights, (void)n_x, (void)n_y, (void)apart, (void)n_ray, (void)rays, (void)out_seconds;
    return false;
}

#endif
