// Speed of random ground: whole fields by embedding, fields in patches, craters and rocks.
//
//     bench_terrain [ROUNDS]
//
// Every round does the same work and ends in the same hash; the first one only warms up. Times are CPU time
// of the process, on one thread. The exit code says whether everything ran and repeated itself, never how
// fast.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "understudy/terrain.h"

enum { WHOLE = 4096, PATCHES = 3072, GROUND = 1024 };

typedef struct work {
    double *values;
    uint64_t hash;
} work;

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static us_status make_whole(work *w) {
    us_field_def def = us_field_def_default();
    def.n_x = def.n_y = WHOLE;
    def.length = 50;
    us_status status = us_field_make(&def, w->values, NULL, NULL);
    w->hash = us_hash_bytes(0, w->values, sizeof(double) * WHOLE * WHOLE);
    return status;
}

static us_status hash_part(void *context, const us_field_part *part, us_error *err) {
    (void)err;
    work *w = context;
    for (int32_t j = 0; j < part->n_y; j += 64)
        w->hash = us_hash_bytes(w->hash, part->values + (size_t)j * (size_t)part->stride,
                                sizeof(double) * (size_t)part->n_x);
    return US_OK;
}

static us_status make_patches(work *w) {
    us_field_def def = us_field_def_default();
    def.n_x = def.n_y = PATCHES;
    def.method = US_FIELD_PATCH;
    def.length = 500;
    return us_field_visit_parts(&def, hash_part, w, NULL, NULL);
}

static us_status make_craters(work *w) {
    us_crater_def def = us_crater_def_default();
    def.density = 1e-3;
    memset(w->values, 0, sizeof(double) * GROUND * GROUND);
    us_status status = us_crater_add(&def, 1, 0, 0, GROUND, GROUND, GROUND, w->values, NULL);
    w->hash = us_hash_bytes(0, w->values, sizeof(double) * GROUND * GROUND);
    return status;
}

static us_status hash_thing(void *context, const us_scatter_instance *thing, us_error *err) {
    (void)err;
    work *w = context;
    w->hash = us_hash_bytes(w->hash, thing, sizeof *thing);
    return US_OK;
}

static us_status make_rocks(work *w) {
    us_scatter_def def = us_scatter_def_default(US_SCATTER_ROCKS);
    def.x1 = def.y1 = 200;
    return us_scatter_visit(&def, hash_thing, w, NULL);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        us_status (*make)(work *w);
        double n;
        const char *unit;
    } rows[] = {
        {"embedding, 4096 x 4096 nodes", make_whole, (double)WHOLE * WHOLE, "node"},
        {"patches, 3072 x 3072 nodes", make_patches, (double)PATCHES * PATCHES, "node"},
        {"craters, 1000 per km^2 on 1024 x 1024 nodes", make_craters, (double)GROUND * GROUND, "node"},
        {"rocks, 5 % of 200 m x 200 m", make_rocks, 40000, "m^2"}};
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    if (rounds < 1 || rounds > BENCH_MAX_ROUNDS) rounds = 5;
    work w = {.values = malloc(sizeof(double) * WHOLE * WHOLE)};
    if (!w.values) return 1;
    int code = 0;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        double seconds[BENCH_MAX_ROUNDS];
        uint64_t first = 0;
        for (int r = -1; r < rounds; r++) {
            w.hash = 0;
            double start = cpu_seconds();
            if (rows[k].make(&w) != US_OK) code = 1;
            if (r >= 0) seconds[r] = cpu_seconds() - start;
            if (r < 0) first = w.hash;
            if (w.hash != first) code = 1;
        }
        qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
        printf("%-46s %8.3f s  (%.3f to %.3f)  %8.1f ns a %-5s hash %016" PRIx64 "\n", rows[k].name,
               seconds[rounds / 2], seconds[0], seconds[rounds - 1], 1e9 * seconds[rounds / 2] / rows[k].n,
               rows[k].unit, first);
    }
    free(w.values);
    if (code) fputs("bench_terrain: something failed or did not repeat itself\n", stderr);
    return code;
}
