// What a second process gains: ten rovers in one process against five in each of two that share their world.
//
//     bench_split [ROUNDS [SECONDS [EXCHANGE]]]
//
// Both run the same simulated time as fast as they can, in turns, and the medians of the rounds are compared:
// the wall time of the steps, waiting for each other included, as the program reports it; and the processor
// time per step of the whole process, its network included, the greater of the two. The second says what a
// machine with a free processor for each would gain at most. Beside them, in the same turns, run two
// processes of five rovers that know nothing of each other: what two processes can gain at all where they
// share caches and memory. Each figure is the difference of a run and one of the first second alone, so that
// loading, finding each other and the fall to the ground do not count. It fails when the two processes do not
// end where the one does.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

enum { DOMAIN = 191, MAX_ROUNDS = 99, ONE = 0, TWO, LIMIT, N_WAY };
static const char *const SCENE = US_SOURCE_DIR "/scenes/convoy.xml";
static const char *const FIRST = "r0,r1,r2,r3,r4", *const SECOND = "r5,r6,r7,r8,r9";

typedef struct result {
    double wall, cpu;  // s
    bool is_good;
} result;

// "ran 4 s (4000 steps) to t = 4 s in 1.31 s: ...".
static double wall_of(const char *path) {
    char line[1000];
    double wall = NAN;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strncmp(line, "ran ", 4) == 0 ? strstr(line, " s in ") : NULL;
        if (at) wall = atof(at + 6);
    }
    if (file) fclose(file);
    return wall;
}

static pid_t start(const char *out, const char *own, const char *seconds, const char *exchange,
                   const char *csv) {
    const char *alone[] = {SCENE,   "--offline", "--headless", "--rate",     "max", "--time",
                           seconds, "--csv",     csv,          "--csv-rate", "1",   NULL};
    const char *shared[] = {SCENE,   "--offline",  "--headless", "--rate",     "max", "--time",
                            seconds, "--csv",      csv,          "--csv-rate", "1",   "--own",
                            own,     "--exchange", exchange,     NULL};
    return bench_start_run(DOMAIN, out, own ? shared : alone);
}

// Half of the rovers, and nobody else.
static pid_t start_half(const char *out, const char *seconds, const char *csv) {
    return bench_start_run(DOMAIN, out,
                           (const char *[]){SCENE, "--offline", "--headless", "--rate", "max", "--time",
                                            seconds, "--csv", csv, "--csv-rate", "1", "--set", "n=5", NULL});
}

static result finish(pid_t pid, const char *out) {
    int status = 0;
    struct rusage used;
    wait4(pid, &status, 0, &used);
    result r = {.wall = wall_of(out), .is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0};
    r.cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
            1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    if (!r.is_good) bench_print_file(out);
    return r;
}

// The first and the last row of a file of values, as text.
static bool read_rows(const char *path, char *names, char *out, int cap) {
    FILE *file = fopen(path, "r");
    out[0] = 0;
    bool is_good = file && fgets(names, cap, file);
    while (is_good && fgets(out, cap, file))
        continue;
    if (file) fclose(file);
    return is_good && out[0] != 0;
}

// Whether two rows have the same numbers, digit by digit, for the robots from `first` to `last`: of the
// columns "r3/...".
static bool same_robots(const char *names, const char *a, const char *b, int first, int last) {
    int n_same = 0;
    while (*names && *a && *b) {
        size_t n = strcspn(names, ",\n"), x = strcspn(a, ",\n"), y = strcspn(b, ",\n");
        bool is_wanted =
            names[0] == 'r' && names[2] == '/' && names[1] - '0' >= first && names[1] - '0' <= last;
        if (is_wanted && (x != y || strncmp(a, b, x) != 0)) return false;
        n_same += is_wanted;
        names += n + (names[n] != 0);
        a += x + (a[x] != 0);
        b += y + (b[y] != 0);
    }
    return n_same > 0;
}

typedef struct files {
    char out[3][64], csv[3][64];
} files;

// Of two processes: the slower one counts.
static result finish_both(pid_t first, pid_t second, const files *f) {
    result a = finish(first, f->out[1]), b = finish(second, f->out[2]);
    return (result){
        .wall = fmax(a.wall, b.wall), .cpu = fmax(a.cpu, b.cpu), .is_good = a.is_good && b.is_good};
}

// Ten in one process, then five in each of two, without and with each other. False when a run fails, or the
// two do not end where the one does.
static bool run_all(const files *f, const char *seconds, const char *exchange, result out[N_WAY]) {
    static char names[1 << 20], row[3][1 << 20];
    pid_t first = start_half(f->out[1], seconds, f->csv[1]),
          second = start_half(f->out[2], seconds, f->csv[2]);
    out[LIMIT] = finish_both(first, second, f);
    out[ONE] = finish(start(f->out[0], NULL, seconds, exchange, f->csv[0]), f->out[0]);
    first = start(f->out[1], FIRST, seconds, exchange, f->csv[1]);
    second = start(f->out[2], SECOND, seconds, exchange, f->csv[2]);
    out[TWO] = finish_both(first, second, f);
    if (!out[ONE].is_good || !out[TWO].is_good || !out[LIMIT].is_good) return false;
    for (int i = 0; i < 3; i++) {
        if (!read_rows(f->csv[i], names, row[i], sizeof row[i])) return false;
    }
    if (same_robots(names, row[0], row[1], 0, 4) && same_robots(names, row[0], row[2], 5, 9)) return true;
    printf("the two processes do not end where the one does\n");
    return false;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    double seconds = argc > 2 ? atof(argv[2]) : 10;
    const char *exchange = argc > 3 ? argv[3] : "0.01", *brief = "1";
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = 5;
    double wall[N_WAY][MAX_ROUNDS], cpu[N_WAY][MAX_ROUNDS], us = 1e6 / (seconds / 1e-3);
    char whole[32];
    snprintf(whole, sizeof whole, "%.17g", seconds + atof(brief));
    files f;
    for (int i = 0; i < 3; i++) {
        snprintf(f.out[i], sizeof f.out[i], "/tmp/bench_split_%d_%d.txt", (int)getpid(), i);
        snprintf(f.csv[i], sizeof f.csv[i], "/tmp/bench_split_%d_%d.csv", (int)getpid(), i);
    }
    bool is_good = true;
    for (int k = 0; k < rounds && is_good; k++) {
        result begin[N_WAY], all[N_WAY];
        is_good = run_all(&f, brief, exchange, begin) && run_all(&f, whole, exchange, all);
        for (int i = 0; i < N_WAY && is_good; i++) {
            wall[i][k] = all[i].wall - begin[i].wall;
            cpu[i][k] = all[i].cpu - begin[i].cpu;
        }
    }
    for (int i = 0; i < 3; i++) {
        unlink(f.out[i]);
        unlink(f.csv[i]);
    }
    if (!is_good) return 1;
    double w[N_WAY], c[N_WAY];
    for (int i = 0; i < N_WAY; i++) {
        w[i] = bench_median_of(wall[i], rounds);
        c[i] = bench_median_of(cpu[i], rounds);
    }
    printf("ten rovers, %g s in steps of 1 ms, exchange every %s s, medians of %d rounds\n", seconds,
           exchange, rounds);
    printf("  wall time per step       one process %6.1f us   two %6.1f us   ratio %.2f\n", us * w[ONE],
           us * w[TWO], w[ONE] / w[TWO]);
    printf("  processor time per step  one process %6.1f us   two %6.1f us   ratio %.2f\n", us * c[ONE],
           us * c[TWO], c[ONE] / c[TWO]);
    printf("  limit: two processes that do not talk   wall %6.1f us, ratio %.2f   processor %6.1f us, ratio "
           "%.2f\n",
           us * w[LIMIT], w[ONE] / w[LIMIT], us * c[LIMIT], c[ONE] / c[LIMIT]);
    return 0;
}
