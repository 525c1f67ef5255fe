// Runs a fuzz target without libFuzzer, where the library is built with sanitizers for the tests: first every
// seed of the committed corpus, then changed ones, for some seconds of the processor.
//
//     fuzz_run_NAME CORPUS [SECONDS [BEGIN]]      default 2 s, 0; with US_LONG_TESTS in the environment 60 s
//
// Which changed ones follows from BEGIN alone: the same number gives the same in the same order. SIGTERM and
// SIGINT end it early, with its count. An input that takes more than 10 s is a finding, as one is that a
// sanitizer reports; it is kept in a file.
//
// libFuzzer, which looks for new paths, is behind ./dev fuzz.
#include <dirent.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { MAX_SEED = 512, MAX_LENGTH = 1 << 18, MAX_SECONDS = 10 };

typedef struct seed {
    uint8_t *bytes;
    size_t length;
} seed;

static seed seeds[MAX_SEED];
static int n_seed;
static const uint8_t *current;
static size_t n_current;

// The input that brought the end, for those who look for the reason.
static void keep_input(void) {
    char path[64];
    snprintf(path, sizeof path, "crash-%d", (int)getpid());
    FILE *file = fopen(path, "wb");
    if (!file) return;
    if (fwrite(current, 1, n_current, file) == n_current) fprintf(stderr, "the input is in %s\n", path);
    fclose(file);
}

// The program ends here, so that what a handler may not call does no harm.
static void take_too_long(int number) {
    (void)number;
    fprintf(stderr, "FINDING: an input takes more than %d s\n", MAX_SECONDS);
    keep_input();
    _exit(1);
}

static volatile sig_atomic_t is_over;
static void end_early(int number) {
    (void)number;
    is_over = 1;
}

// Seconds of the processor that this program has had.
static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(const uint8_t *bytes, size_t length) {
    // As long as it is, so that a byte too far is seen.
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy) return;
    memcpy(copy, bytes, length);
    current = copy;
    n_current = length;
    const struct itimerval limit = {.it_value = {.tv_sec = MAX_SECONDS}};
    setitimer(ITIMER_PROF, &limit, NULL);
    LLVMFuzzerTestOneInput(copy, length);
    free(copy);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void read_seed(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(MAX_LENGTH);
    if (!file || !bytes || n_seed == MAX_SEED) exit(2);
    seeds[n_seed++] = (seed){bytes, fread(bytes, 1, MAX_LENGTH, file)};
    fclose(file);
}

// In the order of their names, whatever the directory's.
static void read_corpus(const char *directory) {
    char *names[MAX_SEED], path[4096];
    int n = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e && n < MAX_SEED; e = readdir(dir)) {
        if (e->d_name[0] != '.') names[n++] = strdup(e->d_name);
    }
    if (dir) closedir(dir);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        read_seed(path);
        free(names[i]);
    }
}

static uint64_t random_state;
static uint64_t roll(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

static size_t change(uint8_t *bytes, size_t length) {
    static const uint64_t odd[] = {
        0,          1,          UINT64_MAX, 0x7f,   0x80,  0xff,        0xffff,
        0x7fffffff, 0x80000000, 0xffffffff, 0x7ff8, 1000u, 0x100000000, 0x7ff0000000000000};
    size_t at = length ? roll() % length : 0, n = 1 + roll() % 16;
    switch (roll() % 6) {
    case 0:
        if (length) bytes[at] ^= (uint8_t)(1u << roll() % 8);
        return length;
    case 1:
    case 2: {
        uint64_t value = roll() & 1 ? odd[roll() % (sizeof odd / sizeof odd[0])] : roll() * roll();
        size_t width = (size_t)1 << roll() % 4;
        if (width > length - at) width = length - at;
        memcpy(bytes + at, &value, width);
        return length;
    }
    case 3:  // taken out
        if (n > length - at) n = length - at;
        memmove(bytes + at, bytes + at + n, length - at - n);
        return length - n;
    case 4:  // twice
        if (n > length - at) n = length - at;
        if (length + n > MAX_LENGTH) return length;
        memmove(bytes + at + n, bytes + at, length - at);
        return length + n;
    default: {  // the rest is that of another
        const seed *other = &seeds[roll() % (uint64_t)n_seed];
        if (other->length == 0) return length;
        size_t from = roll() % other->length, rest = other->length - from;
        if (rest > MAX_LENGTH - at) rest = MAX_LENGTH - at;
        memcpy(bytes + at, other->bytes + from, rest);
        return at + rest;
    }
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS [SECONDS [BEGIN]]\n", argv[0]);
        return 2;
    }
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_input);
    signal(SIGPROF, take_too_long);
    signal(SIGTERM, end_early);
    signal(SIGINT, end_early);
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : getenv("US_LONG_TESTS") ? 60 : 2;
    const uint64_t begin = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    read_corpus(argv[1]);
    if (n_seed == 0) {
        fprintf(stderr, "%s has no seeds\n", argv[1]);
        return 1;
    }
    for (int i = 0; i < n_seed; i++)
        run(seeds[i].bytes, seeds[i].length);
    static uint8_t bytes[MAX_LENGTH];
    const double until = processor_time() + seconds;
    uint64_t n = 0;
    do {
        random_state = n + 1 + begin * UINT64_C(0x9e3779b97f4a7c15);
        const seed *from = &seeds[n % (uint64_t)n_seed];
        size_t length = from->length;
        memcpy(bytes, from->bytes, length);
        for (uint64_t k = 1 + roll() % 5; k > 0; k--)
            length = change(bytes, length);
        run(bytes, length);
        n++;
    } while (processor_time() < until && !is_over);
    printf("%d seeds, %llu changed ones from %llu on, %.0f s of the processor\n", n_seed,
           (unsigned long long)n, (unsigned long long)begin, processor_time());
    for (int i = 0; i < n_seed; i++)
        free(seeds[i].bytes);
    return 0;
}
