// What an interface of a robot's own costs: the low-level profile, a state with six motors out and a command
// with gains in, 500 of each per second, against the same robot without either.
//
//     bench_interface [ROUNDS]
//
// `understudy run` is a process of its own; its processor time is that of all its threads as the kernel
// counts them, so that what else runs on the machine hardly matters. This program is the client.
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "process.h"
#include "understudy/bus.h"
#include "understudy/interface.h"

enum { DOMAIN = 186, RATE = 500, SECONDS = 10, MAX_ROUND = 100, N_MOTOR = 6 };

static const char *const SCENE = US_SOURCE_DIR "/scenes/low-level.xml";
static const char *const TYPES = US_SOURCE_DIR "/scenes/interfaces/low_level.idl";

static us_interface *types;
static _Atomic int64_t n_state;
static int64_t n_command;

static void end_badly(const us_error *err) {
    fprintf(stderr, "bench_interface: %s (%s)\n", err->message, err->remedy);
    exit(1);
}

// s: of all threads of a process so far.
static double used_by_all(pid_t pid) {
    char path[300];
    double sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        long long ns = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, e->d_name);
        FILE *file = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%lld", &ns) == 1) sum += 1e-9 * (double)ns;
        if (file) fclose(file);
    }
    if (dir) closedir(dir);
    return sum;
}

static void on_state(void *context, const us_sample *sample) {
    (void)context;
    (void)sample;
    atomic_fetch_add(&n_state, 1);
}

static size_t make_command(uint8_t *bytes, size_t cap) {
    static const char *const members[] = {"mode", "q", "kp", "kd"};
    static const double numbers[] = {1, 0.3, 800, 60};
    us_member_value values[4 * N_MOTOR];
    char names[4 * N_MOTOR][32];
    size_t length = 0;
    us_error err = {0};
    for (int i = 0; i < 4 * N_MOTOR; i++) {
        snprintf(names[i], sizeof names[i], "motor[%d].%s", i / 4, members[i % 4]);
        values[i] = (us_member_value){names[i], numbers[i % 4], NULL};
    }
    if (us_message_compose(us_interface_find(types, "low_level::Command"), values, 4 * N_MOTOR, bytes, cap,
                           &length, &err))
        end_badly(&err);
    return length;
}

// Commands at the rate, or none, until the time is over.
static void speak(us_writer *writer, const uint8_t *bytes, size_t length, bool commands) {
    const int64_t from = bench_now_ns();
    for (int64_t i = 1; i <= (int64_t)SECONDS * RATE; i++) {
        const int64_t due = from + i * 1000000000 / RATE;
        struct timespec at = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        if (commands) n_command += us_writer_write(writer, bytes, length, 0) == US_OK;
    }
}

// Of a core: what the robot uses, with both or without either.
static double run(us_bus *bus, bool is_with) {
    char rate[32];
    us_error err = {0};
    us_reader *reader = NULL;
    us_writer *writer = NULL;
    uint8_t bytes[1024];
    const size_t length = make_command(bytes, sizeof bytes);
    const us_qos qos = {.depth = 1};
    snprintf(rate, sizeof rate, "rate=%d Hz", is_with ? RATE : 1);
    const us_topic_def in = {"/arm/lowstate", us_interface_find(types, "low_level::State"), qos, -1},
                       out = {"/arm/lowcmd", us_interface_find(types, "low_level::Command"), qos, -1};
    if (us_bus_add_reader(bus, &in, on_state, NULL, &reader, &err) ||
        us_bus_add_writer(bus, &out, &writer, &err))
        end_badly(&err);
    const pid_t pid = bench_start_run(
        DOMAIN, "interface.out", (const char *const[]){SCENE, "--headless", "--quiet", "--set", rate, NULL});
    for (int i = 0; i < 3000 && us_writer_n_match(writer) == 0; i++)
        bench_nap(0.01);
    bench_nap(1);  // discovery goes on for a while
    atomic_store(&n_state, 0);
    n_command = 0;
    const double before = used_by_all(pid);
    const int64_t from = bench_now_ns();
    speak(writer, bytes, length, is_with);
    const double share = (used_by_all(pid) - before) / (1e-9 * (double)(bench_now_ns() - from));
    kill(pid, SIGINT);
    waitpid(pid, NULL, 0);
    us_reader_remove(reader);
    us_writer_remove(writer);
    return share;
}

int main(int argc, char **argv) {
    const int n = argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) <= MAX_ROUND ? atoi(argv[1]) : 3;
    double with[MAX_ROUND], without[MAX_ROUND], more[MAX_ROUND];
    us_interface_def def = us_interface_def_default();
    us_bus_def bus_def = us_bus_def_default();
    us_bus *bus = NULL;
    us_error err = {0};
    def.n_file = 1;
    def.files = &TYPES;
    bus_def.domain = DOMAIN;
    if (us_interface_load(&def, &types, &err) || us_bus_open(&bus_def, &bus, &err)) end_badly(&err);
    for (int i = 0; i < n; i++) {
        without[i] = run(bus, false);
        with[i] = run(bus, true);
        more[i] = with[i] - without[i];
        printf("round %d   without %.2f %% of a core, with %.2f %%; %lld states came, %lld commands went\n",
               i, 100 * without[i], 100 * with[i], (long long)atomic_load(&n_state), (long long)n_command);
        fflush(stdout);
    }
    printf(
        "interface %d states and %d commands a second: %.2f %% of a core (%.2f %% with, %.2f %% without)\n",
        RATE, RATE, 100 * bench_median_of(more, n), 100 * bench_median_of(with, n),
        100 * bench_median_of(without, n));
    us_bus_close(bus);
    us_interface_release(types);
    return 0;
}
