// Stereo matching: how fast and how right, beside OpenCV's matchers in the same run.
//
//     bench_stereo [--threads N] [--rounds N] [--only NAME]
//
// The pictures are rendered by rays into scenes of planes, so that every pixel's disparity is known. Bad are
// pixels whose disparity is wrong by more than one, of those that both cameras see; missing are those without
// one. Times are the least of several rounds, in which the engines take turns.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tests/support/stereo_pair.h"
#ifdef US_HAVE_OPENCV
#include "stereo_opencv.h"
#endif

enum { WIDTH = 640, HEIGHT = 480, N_SCENE = 4, N_ENGINE = 8 };

typedef struct engine {
    const char *name;
    us_stereo_def def;
    bool is_opencv, has_five_paths;
    us_stereo *own;
    double seconds;  // least
    uint64_t hash;
    int64_t n_bad[N_SCENE], n_missing[N_SCENE];
    double squares[N_SCENE];  // of errors below one pixel
    int64_t n_good[N_SCENE];
#ifdef US_HAVE_OPENCV
    opencv_stereo *opencv;
#endif
} engine;

// Of one thread the CPU time counts, which other programs disturb less.
static double now(int n_thread) {
    struct timespec t;
    clock_gettime(n_thread == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *const scene_names[N_SCENE] = {"room", "room, noisy", "slanted ground", "coarse texture"};

static pair_scene scene_of(int i) {
    pair_scene s = pair_room(554.256, 319.5, 239.5);
    if (i == 1) {
        s.noise = 4;
        s.contrast = 0.5;
    }
    if (i == 2) {
        s.n = 2;
        s.plane[0] = (pair_plane){{0, 0.8, 0.25}, 1.1, -1e9, 1e9, -1e9, 1e9};
        s.plane[1] = (pair_plane){{0.1, 0, 1}, 7, -1e9, 1e9, -1e9, 1e9};
    }
    if (i == 3) s.grain = 0.08;
    return s;
}

static bool engine_create(engine *e, int n_thread) {
#ifdef US_HAVE_OPENCV
    if (e->is_opencv) {
        e->opencv = opencv_stereo_create(&e->def, e->has_five_paths, n_thread);
        return e->opencv != NULL;
    }
#endif
    us_error err = {0};
    if (us_stereo_create(&e->def, n_thread, NULL, &e->own, &err) == US_OK) return true;
    fprintf(stderr, "%s: %s\n", e->name, err.message);
    return false;
}

static void engine_match(engine *e, const us_image *left, const us_image *right, float *out) {
#ifdef US_HAVE_OPENCV
    if (e->is_opencv) {
        if (!opencv_stereo_match(e->opencv, left, right, out)) fprintf(stderr, "%s: refused\n", e->name);
        return;
    }
#endif
    us_stereo_match(e->own, left, right, out);
}

static void engine_destroy(engine *e) {
#ifdef US_HAVE_OPENCV
    if (e->is_opencv) opencv_stereo_destroy(e->opencv);
#endif
    us_stereo_destroy(e->own);
}

static void judge(engine *e, int scene, const float *found, const float *truth) {
    const float invalid = us_stereo_invalid(&e->def);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = e->def.n_disparity; x < WIDTH; x++) {
            const double t = (double)truth[y * WIDTH + x], d = (double)found[y * WIDTH + x];
            if (t < 0 || t > e->def.n_disparity - 2) continue;
            if (found[y * WIDTH + x] == invalid) {
                e->n_missing[scene]++;
            } else if (fabs(d - t) > 1) {
                e->n_bad[scene]++;
            } else {
                e->n_good[scene]++;
                e->squares[scene] += (d - t) * (d - t);
            }
        }
}

static int make_engines(engine *engines) {
    us_stereo_def sgm = us_stereo_def_default(US_STEREO_SEMI_GLOBAL, WIDTH, HEIGHT), windows = sgm;
    windows.cost = US_STEREO_SAD;
    windows.window = 3;
    windows.p1 = 8 * 9;
    windows.p2 = 32 * 9;
    windows.prefilter_cap = 63;
    windows.uniqueness = 10;
    us_stereo_def wide = sgm;
    wide.cost = US_STEREO_CENSUS_9X7;
    us_stereo_def four = sgm;
    four.n_path = 4;
    const us_stereo_def block = us_stereo_def_default(US_STEREO_BLOCK, WIDTH, HEIGHT);
    int n = 0;
    engines[n++] = (engine){.name = "8 paths, census 5 x 5", .def = sgm};
    engines[n++] = (engine){.name = "8 paths, census 9 x 7", .def = wide};
    engines[n++] = (engine){.name = "8 paths, windows 3 x 3", .def = windows};
    engines[n++] = (engine){.name = "4 paths, census 5 x 5", .def = four};
    engines[n++] = (engine){.name = "blocks 9 x 9", .def = block};
#ifdef US_HAVE_OPENCV
    engines[n++] = (engine){.name = "OpenCV StereoSGBM MODE_HH", .def = windows, .is_opencv = true};
    engines[n++] =
        (engine){.name = "OpenCV StereoSGBM", .def = windows, .is_opencv = true, .has_five_paths = true};
    engines[n++] = (engine){.name = "OpenCV StereoBM", .def = block, .is_opencv = true};
#endif
    return n;
}

static void measure(engine *engines, int n, int n_thread, int n_round, const char *only) {
    us_image left, right;
    float *truth = malloc(sizeof(float) * WIDTH * HEIGHT), *found = malloc(sizeof(float) * WIDTH * HEIGHT);
    if (!truth || !found || us_image_create(US_PIXEL_MONO8, WIDTH, HEIGHT, NULL, &left) ||
        us_image_create(US_PIXEL_MONO8, WIDTH, HEIGHT, NULL, &right)) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    for (int scene = 0; scene < N_SCENE; scene++) {
        const pair_scene s = scene_of(scene);
        pair_render(&s, 0, 1, &left);
        pair_render(&s, s.baseline, 2, &right);
        for (int i = 0; i < WIDTH * HEIGHT; i++) {
            bool is_hidden;
            truth[i] = (float)pair_truth(&s, i % WIDTH, (double)(i / WIDTH), &is_hidden);
            if (is_hidden) truth[i] = -1;
        }
        for (int k = 0; k < (scene == 0 ? n_round : 1); k++)
            for (int i = 0; i < n; i++) {
                if (only && !strstr(engines[i].name, only)) continue;
                const double begin = now(n_thread);
                engine_match(&engines[i], &left, &right, found);
                const double seconds = now(n_thread) - begin;
                if (seconds < engines[i].seconds) engines[i].seconds = seconds;
                if (k > 0) continue;
                judge(&engines[i], scene, found, truth);
                engines[i].hash = us_hash_bytes(engines[i].hash, found, sizeof(float) * WIDTH * HEIGHT);
            }
    }
    us_image_destroy(&left, NULL);
    us_image_destroy(&right, NULL);
    free(truth);
    free(found);
}

int main(int argc, char **argv) {
    int n_thread = 1, n_round = 15;
    const char *only = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) n_thread = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--rounds") == 0) n_round = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    }
    engine engines[N_ENGINE] = {0};
    const int n = make_engines(engines);
    for (int i = 0; i < n; i++) {
        engines[i].seconds = INFINITY;
        if (!engine_create(&engines[i], n_thread)) return 1;
    }
    measure(engines, n, n_thread, n_round, only);
    printf("%d x %d pixels, 64 disparities, %d thread%s\n", WIDTH, HEIGHT, n_thread, n_thread > 1 ? "s" : "");
#ifdef US_HAVE_OPENCV
    printf("OpenCV %s\n", opencv_version());
#endif
    printf("%-27s %8s %9s   bad %% / missing %% / rms of the others, pixels: ", "", "ms", "frames/s");
    for (int s = 0; s < N_SCENE; s++)
        printf("%s%s", s ? "; " : "", scene_names[s]);
    printf("\n");
    for (int i = 0; i < n; i++) {
        engine *e = &engines[i];
        if (isfinite(e->seconds)) {
            printf("%-27s %8.2f %9.1f ", e->name, 1e3 * e->seconds, 1 / e->seconds);
            for (int s = 0; s < N_SCENE; s++) {
                const double all = (double)(e->n_bad[s] + e->n_missing[s] + e->n_good[s]);
                printf("  %5.2f /%5.2f / %.3f", 100 * (double)e->n_bad[s] / all,
                       100 * (double)e->n_missing[s] / all, sqrt(e->squares[s] / (double)e->n_good[s]));
            }
            printf("  %016llx\n", (unsigned long long)e->hash);
        }
        engine_destroy(e);
    }
    return 0;
}
