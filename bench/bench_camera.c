// Pictures of cameras: how long one takes, by what is in it.
//
//     bench_camera SCENE ROBOT/SENSOR [--threads N] [--rounds N]
//
// One row for each set of parameters, which the scene's own come first of. Times are the least of several
// rounds, in which the sets take turns; of one thread the CPU time counts, which other programs disturb less.
// The hash of the bytes shows a change that was not meant.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "understudy/camera.h"

typedef struct setting {
    const char *name;
    double shadows, noise;  // negative: as in the scene
    double seconds;         // least
    uint64_t hash;
} setting;

static double now(int n_thread) {
    struct timespec t;
    clock_gettime(n_thread == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const us_error *err) {
    fprintf(stderr, "bench_camera: %s (%s)\n", err->message, err->remedy);
    return 1;
}

static us_status take(us_camera_renderer *camera, us_sim *sim, us_sensor sensor, setting *s, int n_thread,
                      us_error *err) {
    us_status status = US_OK;
    if (s->shadows >= 0) status = us_sim_set_sensor_parameter(sim, sensor, "shadows", s->shadows, err);
    if (!status && s->noise >= 0) status = us_sim_set_sensor_parameter(sim, sensor, "noise", s->noise, err);
    if (status) return status;
    const double start = now(n_thread);
    status = us_camera_renderer_render(camera, sim, err);
    const double seconds = now(n_thread) - start;
    if (s->seconds == 0 || seconds < s->seconds) s->seconds = seconds;
    const us_image image = us_camera_renderer_view_image(camera);
    s->hash = us_hash_bytes(0, image.pixels, image.stride * (size_t)image.height);
    return status;
}

static us_status run(const char *scene, const char *name, int n_thread, int n_round, us_error *err) {
    // What the scene has is measured before anything is changed.
    setting settings[] = {{"as in the scene", -1, -1, 0, 0},
                          {"soft shadows, noise", 2, 1, 0, 0},
                          {"hard shadows, noise", 1, 1, 0, 0},
                          {"hard shadows", 1, 0, 0, 0},
                          {"no shadows", 0, 0, 0, 0}};
    char robot[100] = "";
    const char *slash = strchr(name, '/');
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_camera_renderer *camera = NULL;
    if (slash) snprintf(robot, sizeof robot, "%.*s", (int)(slash - name), name);
    us_status status = us_model_load(scene, NULL, &model, err);
    if (!status) status = us_sim_create(model, NULL, &sim, err);
    const us_sensor sensor = us_model_find_sensor(model, robot, slash ? slash + 1 : name);
    if (!status) status = us_camera_renderer_create(model, sensor, n_thread, NULL, &camera, err);
    for (int i = 0; i < n_round && !status; i++)
        status = take(camera, sim, sensor, &settings[0], n_thread, err);
    for (int i = 0; i < n_round && !status; i++) {
        for (size_t k = 1; k < sizeof settings / sizeof *settings && !status; k++)
            status = take(camera, sim, sensor, &settings[k], n_thread, err);
    }
    const us_image image = us_camera_renderer_view_image(camera);
    if (!status)
        printf("%s %s, %d x %d pixels, %d thread(s)\n", scene, name, (int)image.width, (int)image.height,
               n_thread);
    for (size_t k = 0; k < sizeof settings / sizeof *settings && !status; k++)
        printf("  %-20s %8.1f ms  %6.1f frames/s  %016llx\n", settings[k].name, 1e3 * settings[k].seconds,
               1 / settings[k].seconds, (unsigned long long)settings[k].hash);
    us_camera_renderer_destroy(camera);
    us_sim_destroy(sim);
    us_model_destroy(model);
    return status;
}

int main(int argc, char **argv) {
    int n_thread = 1, n_round = 5;
    us_error err = {.code = US_OK};
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) n_thread = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--rounds") == 0) n_round = atoi(argv[i + 1]);
    }
    if (argc < 3 || n_thread < 1 || n_round < 1) {
        fprintf(stderr, "usage: bench_camera SCENE ROBOT/SENSOR [--threads N] [--rounds N]\n");
        return 2;
    }
    return run(argv[1], argv[2], n_thread, n_round, &err) ? fail(&err) : 0;
}
