// Clock, order statistics, JSON.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

double bench_cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_add(bench_samples *s, double value) {
    if (s->n < BENCH_MAX_ROUNDS) s->value[s->n++] = value;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const bench_samples *s) {
    if (s->n == 0) return NAN;
    double sorted[BENCH_MAX_ROUNDS];
    memcpy(sorted, s->value, (size_t)s->n * sizeof *sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, compare);
    return 0.5 * (sorted[(s->n - 1) / 2] + sorted[s->n / 2]);
}

double bench_min(const bench_samples *s) {
    double r = NAN;
    for (int i = 0; i < s->n; i++)
        r = fmin(r, s->value[i]);
    return r;
}

double bench_max(const bench_samples *s) {
    double r = NAN;
    for (int i = 0; i < s->n; i++)
        r = fmax(r, s->value[i]);
    return r;
}

// JSON has no NaN.
static void number(const char *key, double x) {
    if (isfinite(x)) printf(",\"%s\":%.6g", key, x);
}

void bench_print_json(const bench_figure *f) {
    printf(
        "{\"name\":\"%s\",\"engine\":\"%s\",\"variant\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"runs\":%d",
        f->scene, f->engine, f->variant, f->metric, f->unit, f->samples->n);
    number("value", bench_median(f->samples));
    number("min", bench_min(f->samples));
    number("max", bench_max(f->samples));
    number("ns_per_dof", f->ns_per_dof);
    number("gain", f->gain);
    if (f->hash) printf(",\"hash\":\"%016llx\"", (unsigned long long)f->hash);
    if (f->tip) printf(",\"tip\":[%.5f,%.5f,%.5f]", f->tip->x, f->tip->y, f->tip->z);
    printf("}\n");
}
