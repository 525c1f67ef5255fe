// Ten rovers on a site at 1 m: what it takes in memory, and what reading tiles does to the steps.
//
//     bench_paging [SECONDS [SPEED [MEMORY_MB [KILOMETRES [DIRECTORY [BED_CM]]]]]]       20 s at 1 m/s, 200
//     MB, 4 km, /tmp/understudy-bench-site, 0
//
// With BED_CM the ground is sand in which they leave ruts: a patch of such columns over all of the site.
// The site is made tile by tile from a formula (20 km: 1.3 GB below DIRECTORY, which is removed afterwards).
// The rovers start all over it, some metres before a border of tiles each, and drive east. Steps within 20 of
// one in which a tile arrived or went count as loading. Times are those of the stepping thread: of the
// processor, which others on the machine do not change, and of the wall. The exit code says whether
// everything ran and stayed below 300 MB, never how fast.
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "understudy/terrain.h"

enum { ROVERS = 10, NEAR = 20, SETTLE = 1000 };

// ---------------------------------------------------------------- the site

static int32_t side;  // samples
static double half;   // m

static double smooth(double x, double y) {
    return 6 * sin(x / 400) * cos(y / 500) + 0.4 * sin(x / 37) * sin(y / 41);
}

static int remove_one(const char *path, const struct stat *about, int flag, struct FTW *where) {
    (void)about;
    (void)flag;
    (void)where;
    return remove(path);
}

static bool make_site(const char *path) {
    us_site_info info = {.n_layer = 1};
    info.layer[0] = (us_layer_info){
        .name = "height", .type = US_LAYER_NUMBER, .n_x = side, .n_y = side, .dx = 1, .dy = 1};
    us_site *site = NULL;
    us_error err = {0};
    us_status status = us_site_create(path, &info, NULL, &site, &err);
    static float samples[US_SITE_TILE * US_SITE_TILE];
    int32_t a, b;
    for (int32_t v = 0; us_site_tile_size(site, 0, 0, 0, v, &a, &b) && !status; v++) {
        for (int32_t u = 0; us_site_tile_size(site, 0, 0, u, v, &a, &b) && !status; u++) {
            double sx[US_SITE_TILE][2] = {0}, sy[US_SITE_TILE][2] = {0};
            for (int32_t i = 0; i < a; i++) {
                sx[i][0] = sin((u * US_SITE_TILE + i - half) / 400);
                sx[i][1] = sin((u * US_SITE_TILE + i - half) / 37);
            }
            for (int32_t j = 0; j < b; j++) {
                sy[j][0] = cos((v * US_SITE_TILE + j - half) / 500);
                sy[j][1] = sin((v * US_SITE_TILE + j - half) / 41);
            }
            for (int32_t k = 0; k < a * b; k++) {
                // Stones of up to a centimetre, so that the numbers cannot be packed into nothing.
                uint64_t at = (uint64_t)(v * US_SITE_TILE + k / a) * (uint64_t)side +
                              (uint64_t)(u * US_SITE_TILE + k % a);
                samples[k] = (float)(6 * sx[k % a][0] * sy[k / a][0] + 0.4 * sx[k % a][1] * sy[k / a][1] +
                                     0.01 * us_random_uniform(7, 1, at));
            }
            status = us_site_write(site, 0, u, v, samples, &err);
        }
    }
    if (!status) status = us_site_finish(site, NULL, NULL, &err);
    us_site_close(site);
    if (status) fprintf(stderr, "bench_paging: %s: %s\n  remedy: %s\n", err.file, err.message, err.remedy);
    return status == US_OK;
}

// ---------------------------------------------------------------- the world

static double speed;  // m/s

// Tiles begin at sample 256 u. Each rover is farther from the border than the last, so that tiles come one
// after another.
static double start_x(int k) {
    return floor((0.1 + 0.08 * k) * side / US_SITE_TILE) * US_SITE_TILE - half - 40 - 6 * speed * k;
}

static us_model *make_world(const char *path, double memory, double patch) {
    static char text[40000];
    size_t n = 0;
    n +=
        (size_t)snprintf(text + n, sizeof text - n,
                         "<scene version=\"1\"><material name=\"sand\"><soil "
                         "like=\"dry_sand\"/></material><world step=\"1 ms\">"
                         "<shape type=\"height-field\" file=\"%s\" memory=\"%g MB\"%s bed=\"%g cm\"/></world>"
                         "<default name=\"wheel\"><drive kd=\"40\"/></default><default name=\"steer\"><drive "
                         "kp=\"800\" kd=\"60\"/></default>",
                         path, memory, patch > 0 ? " surface=\"sand\"" : "", patch);
    for (int k = 0; k < ROVERS; k++) {
        double x = start_x(k), y = (0.81 - 1.62 * k / ROVERS) * half;
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            "<robot name=\"r%d\" file=\"../models/k10.urdf\" base=\"floating\" xyz=\"%.3f %.3f %.3f\">", k, x,
            y, smooth(x, y) + 0.15);
        static const char *const corner[] = {"front_left", "front_right", "rear_left", "rear_right"};
        for (int c = 0; c < 4; c++)
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "<drive joint=\"%s_steer\" default=\"steer\" position=\"0\"/><drive "
                                  "joint=\"%s_drive\" default=\"wheel\" velocity=\"%g\"/>",
                                  corner[c], corner[c], speed / 0.18);
        n += (size_t)snprintf(text + n, sizeof text - n, "</robot>");
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "</scene>");
    us_error err = {0};
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_status status = us_spec_load_text(text, n, US_SOURCE_DIR "/bench/paging.xml", NULL, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &model, &err);
    us_spec_destroy(spec);
    if (status) fprintf(stderr, "bench_paging: %s: %s\n", err.element, err.message);
    return model;
}

// ---------------------------------------------------------------- measuring

static double wall_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double resident_mb(const char *what) {
    char line[200];
    double kb = NAN;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, what, strlen(what)) == 0) kb = atof(line + strlen(what) + 1);
    }
    if (file) fclose(file);
    return kb / 1000 * 1.024;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// How the steps of both kinds are spread; and how many took longer than twice the median of all.
static void report(const char *what, const double *time, const bool *is_loading, int32_t n) {
    double *sorted = malloc((size_t)n * sizeof *sorted), twice = 0;
    for (int kind = 0; kind < 3 && sorted; kind++) {
        static const char *const names[] = {"all", "otherwise", "while loading"};
        int32_t m = 0, n_long = 0;
        for (int32_t i = SETTLE; i < n; i++) {
            if (kind == 0 || is_loading[i] == (kind == 2)) sorted[m++] = 1e6 * time[i];
        }
        if (m == 0) continue;
        qsort(sorted, (size_t)m, sizeof *sorted, compare);
        if (kind == 0) twice = 2 * sorted[m / 2];
        for (int32_t i = 0; i < m; i++)
            n_long += sorted[i] > twice;
        printf("  %-10s %-14s %8d steps: median %6.1f us, 99 %% %6.1f, 99.9 %% %7.1f, longest %8.1f; %.3f %% "
               "over twice the median\n",
               what, names[kind], m, sorted[m / 2], sorted[(int32_t)(0.99 * (m - 1))],
               sorted[(int32_t)(0.999 * (m - 1))], sorted[m - 1], 100.0 * n_long / m);
    }
    free(sorted);
}

static bool run(us_sim *sim, int32_t n) {
    double *cpu = calloc((size_t)n, sizeof *cpu), *wall = calloc((size_t)n, sizeof *wall);
    bool *is_loading = calloc((size_t)n, sizeof *is_loading);
    us_status status = cpu && wall && is_loading ? US_OK : US_ERR_MEMORY;
    us_paging before = us_sim_get_paging(sim);
    double begin = wall_now();
    for (int32_t i = 0; i < n && !status; i++) {
        double c = bench_cpu_now(), w = wall_now();
        status = us_sim_step(sim, NULL);
        cpu[i] = bench_cpu_now() - c;
        wall[i] = wall_now() - w;
        us_paging now = us_sim_get_paging(sim);
        if (now.n_read != before.n_read || now.n_drop != before.n_drop) {
            for (int32_t k = i - NEAR; k <= i + NEAR; k++) {
                if (k >= 0 && k < n) is_loading[k] = true;
            }
        }
        before = now;
    }
    if (status) {
        fprintf(stderr, "bench_paging: %s\n", us_sim_view_error(sim)->message);
    } else {
        double way = 0;
        for (int k = 0; k < ROVERS; k++) {
            char name[16];
            snprintf(name, sizeof name, "r%d/base", k);
            way += (us_sim_get_pose(sim, us_model_find_body(us_sim_view_model(sim), name)).p.x - start_x(k)) /
                   ROVERS;
        }
        printf("%g s simulated in %.1f s; %lld tiles read, %lld given back, %lld waits; now %d tiles, %.1f "
               "MB of %.0f; %.1f m driven\n",
               us_sim_get_time(sim), wall_now() - begin, (long long)before.n_read, (long long)before.n_drop,
               (long long)before.n_wait, before.n_resident, 1e-6 * (double)before.bytes,
               1e-6 * (double)before.memory, way);
        us_deformable_info patch = us_sim_get_deformable(sim, 0);
        if (us_sim_n_deformable(sim) > 0)
            printf("bed of %d x %d columns: %d tiles touched, %.1f MB; %lld columns may flow; ruts of %.1f "
                   "mm; hash %016llx\n",
                   (int)patch.n_x, (int)patch.n_y, (int)patch.n_touched, 1e-6 * (double)patch.bytes,
                   (long long)patch.n_active, -1e3 * patch.lowest, (unsigned long long)us_sim_hash(sim));
        report("processor", cpu, is_loading, n);
        report("wall", wall, is_loading, n);
    }
    free(cpu);
    free(wall);
    free(is_loading);
    return status == US_OK;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 20, memory = argc > 3 ? atof(argv[3]) : 200;
    double kilometres = argc > 4 ? atof(argv[4]) : 4;
    const char *path = argc > 5 ? argv[5] : "/tmp/understudy-bench-site";
    double patch = argc > 6 ? atof(argv[6]) : 0;
    speed = argc > 2 ? atof(argv[2]) : 1;
    side = (int32_t)(1000 * kilometres) + 1;
    half = 0.5 * (side - 1);
    double begin = wall_now();
    us_site *there = NULL;
    bool is_kept =
        us_site_open(path, NULL, &there, NULL) == US_OK && us_site_get_info(there).layer[0].n_x == side;
    us_site_close(there);
    bool ok = is_kept || make_site(path);
    printf("site of %g km in %.1f s\n", kilometres, wall_now() - begin);
    us_model *model = ok ? make_world(path, memory, patch) : NULL;
    us_sim *sim = NULL;
    ok = model && us_sim_create(model, NULL, &sim, NULL) == US_OK && run(sim, (int32_t)(1000 * seconds));
    double peak = resident_mb("VmHWM:"), now = resident_mb("VmRSS:");
    printf("resident: %.0f MB now, %.0f MB at most\n", now, peak);
    us_sim_destroy(sim);
    us_model_destroy(model);
    // A site that was there before stays.
    if (!is_kept) nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return ok && peak < 300 ? 0 : 1;
}
