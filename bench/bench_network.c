// The network as its users feel it: how late things are, and what bad company does to the step.
//
//     bench_network [latency] [fleet] [hostile]
//
// Each part starts `understudy run` as a process of its own on a DDS domain of its own, and talks to it over the loopback.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "understudy/bus.h"
#include "wire/messages.h"

static int domain;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static us_bus *open_bus(void) {
    us_bus_def def = us_bus_def_default();
    us_error err = {0};
    us_bus *bus = NULL;
    def.domain = domain;
    if (us_bus_open(&def, &bus, &err)) {
        fprintf(stderr, "bench_network: %s\n", err.message);
        exit(1);
    }
    return bus;
}

// Starts the program; its summary goes to `out`.
static pid_t start(const char *scene, const char *seconds, const char *out) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    char number[16];
    snprintf(number, sizeof number, "%d", domain);
    setenv("ROS_DOMAIN_ID", number, 1);
    int file = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(file, 1);
    dup2(file, 2);
    execl(US_PROGRAM, "understudy", "run", scene, "--time", seconds, "--headless", (char *)NULL);
    _exit(127);
}

static void print_file(const char *path) {
    char line[1000];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) printf("    %s", line);
    if (file) fclose(file);
}

static void write_scene(const char *path, const char *network) {
    FILE *file = fopen(path, "w");
    fprintf(
        file,
        "<scene name='one' version='1'><world step='1 ms'><shape name='ground' type='half-space'/></world>"
        "<default name='wheel'><drive kd='4'/></default><robot name='cart' file='%s/models/cart.urdf' base='floating' default='wheel'>"
        "<drive joint='front_left'/><drive joint='front_right'/><drive joint='rear_left'/><drive joint='rear_right'/>"
        "<network timeout='0'>%s</network><locomotion type='skid'><wheel drive='front_left' radius='0.1'/><wheel drive='front_right' radius='0.1'/>"
        "<wheel drive='rear_left' radius='0.1'/><wheel drive='rear_right' radius='0.1'/></locomotion></robot></scene>",
        US_SOURCE_DIR, network);
    fclose(file);
}

// ---------------------------------------------------------------- latency

typedef struct watcher {
    _Atomic double level;  // wheel speed that counts as a change
    _Atomic bool is_rising;
    _Atomic int64_t seen;  // when it came; 0: not yet
    _Atomic double speed;
} watcher;

static void on_joints(void *context, const us_sample *sample) {
    watcher *w = context;
    double v = us_message_get_number(usi_type_joint_state, sample->bytes, sample->length, "velocity[0]");
    atomic_store(&w->speed, v);
    double level = atomic_load(&w->level);
    if (atomic_load(&w->seen) == 0 && (atomic_load(&w->is_rising) ? v > level : v < level)) atomic_store(&w->seen, now_ns());
}

static void latency(void) {
    enum { N = 200 };
    static double delay[N];
    watcher w = {0};
    w.seen = 1;
    write_scene("latency.xml", "<topic name='joint_states' rate='1000 Hz'/>");
    pid_t pid = start("latency.xml", "60", "latency.out");
    us_bus *bus = open_bus();
    us_reader *reader = NULL;
    us_writer *writer = NULL;
    us_error err = {0};
    us_topic_def in = {"/cart/joint_states", usi_type_joint_state, us_qos_for_topic("/cart/joint_states", usi_type_joint_state), -1};
    us_topic_def out = {"/cart/cmd_vel", usi_type_twist, us_qos_for_topic("/cart/cmd_vel", usi_type_twist), -1};
    if (us_bus_add_reader(bus, &in, on_joints, &w, &reader, &err) || us_bus_add_writer(bus, &out, &writer, &err)) exit(1);
    for (int i = 0; i < 500 && (us_reader_n_match(reader) == 0 || us_writer_n_match(writer) == 0); i++) nap(0.01);
    nap(1);
    int n = 0;
    for (int i = 0; i < N; i++) {
        bool is_rising = i % 2 == 0;
        // At odd times within the step.
        nap(0.05 + 1e-3 * us_random_uniform(1, 1, (uint64_t)i));
        double before = atomic_load(&w.speed);
        us_msg_twist m = {{is_rising ? 0.3 : 0, 0, 0}, {0, 0, 0}};
        uint8_t bytes[100];
        size_t length = 0;
        us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length);
        atomic_store(&w.is_rising, is_rising);
        atomic_store(&w.level, before + (is_rising ? 1e-3 : -1e-3));
        atomic_store(&w.seen, 0);
        int64_t t = now_ns();
        us_writer_write(writer, bytes, length, 0);
        for (int k = 0; k < 2000 && atomic_load(&w.seen) == 0; k++) nap(1e-4);
        if (atomic_load(&w.seen) > 0) delay[n++] = 1e-6 * (double)(atomic_load(&w.seen) - t);
    }
    kill(pid, SIGINT);
    waitpid(pid, NULL, 0);
    us_bus_close(bus);
    qsort(delay, (size_t)n, sizeof *delay, compare);
    if (n > 0)
        printf("latency   cmd_vel to the first changed joint_states, step 1 ms, %d of %d: median %.3f ms, 90 %% %.3f, worst %.3f\n", n, N,
               delay[n / 2], delay[n * 9 / 10], delay[n - 1]);
    else
        printf("latency   nothing moved\n");
    print_file("latency.out");
}

// ---------------------------------------------------------------- fleet

typedef struct ear {
    _Atomic int64_t n;
    _Atomic int64_t least;  // ns: smallest difference of arrival and stamp seen
    double *lateness;       // of all samples
    _Atomic int64_t n_lateness;
    int64_t cap;
    _Atomic int64_t first, last;  // stamps
} ear;

static void on_any(void *context, const us_sample *sample) {
    ear *e = context;
    int64_t i = atomic_fetch_add(&e->n_lateness, 1);
    if (i < e->cap) e->lateness[i] = (double)(now_ns() - sample->source_time);
    atomic_fetch_add(&e->n, 1);
}

static void fleet(void) {
    static const struct {
        const char *name;
        const us_message_type *type;
    } topics[] = {{"joint_states", usi_type_joint_state},
                  {"odom", usi_type_odometry},
                  {"imu/data", usi_type_imu},
                  {"battery_state", usi_type_battery_state},
                  {"motor_group/status", usi_type_motor_group_status}};
    const int n_robot = 50, seconds = 20;
    ear e = {.cap = 1000000};
    e.lateness = malloc((size_t)e.cap * sizeof *e.lateness);
    us_bus *bus = open_bus();
    us_error err = {0};
    for (int i = 0; i < n_robot; i++) {
        for (int k = 0; k < 6; k++) {
            char topic[100];
            const us_message_type *type = k < 5 ? topics[k].type : usi_type_odometry;
            if (k < 5) {
                snprintf(topic, sizeof topic, "/r%02d/%s", i, topics[k].name);
            } else {
                snprintf(topic, sizeof topic, "/understudy/truth/r%02d/odom", i);
            }
            us_reader *reader = NULL;
            us_topic_def def = {topic, type, us_qos_for_topic(topic, type), -1};
            if (us_bus_add_reader(bus, &def, on_any, &e, &reader, &err)) {
                printf("fleet     %s\n", err.message);
                exit(1);
            }
        }
    }
    pid_t pid = start(US_SOURCE_DIR "/scenes/fleet.xml", "25", "fleet.out");
    // The first seconds belong to discovery.
    nap(5);
    int64_t from = atomic_load(&e.n_lateness);
    nap(seconds - 5);
    int64_t to = atomic_load(&e.n_lateness);
    waitpid(pid, NULL, 0);
    us_bus_close(bus);
    int64_t n = to - from;
    qsort(e.lateness + from, (size_t)n, sizeof *e.lateness, compare);
    double least = n > 0 ? e.lateness[from] : 0;
    printf(
        "fleet     50 robots, 6 topics at 50 Hz: %.0f samples/s of 15000 (%lld); later than the earliest: median %.2f ms, 99 %% %.2f, worst %.2f\n",
        (double)n / (seconds - 5), (long long)n, 1e-6 * (e.lateness[from + n / 2] - least), 1e-6 * (e.lateness[from + n * 99 / 100] - least),
        1e-6 * (e.lateness[to - 1] - least));
    print_file("fleet.out");
    free(e.lateness);
}

// ---------------------------------------------------------------- hostile

static const char *const ONE_TOPIC = "/cart/joint_states";

// A process with a reliable reader that then does not run any more.
static pid_t stalled_reader(int slow_ms) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    us_bus *bus = open_bus();
    us_reader *reader = NULL;
    us_error err = {0};
    us_topic_def def = {ONE_TOPIC, usi_type_joint_state, {true, false, 0}, -1};
    if (us_bus_add_reader(bus, &def, NULL, NULL, &reader, &err)) _exit(1);
    for (int i = 0; i < 300 && us_reader_n_match(reader) == 0; i++) nap(0.01);
    if (slow_ms == 0) raise(SIGSTOP);
    for (;;) {
        char buf[4096];
        size_t length = 0;
        nap(1e-3 * slow_ms);
        us_reader_take(reader, buf, sizeof buf, &length, NULL);
    }
}

typedef struct flood {
    int port;
    _Atomic bool ends;
    _Atomic int64_t bytes;
} flood;

// 50 MB/s of random bytes to a UDP port, half of them beginning like RTPS.
static void *flood_port(void *context) {
    flood *f = context;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned char packet[8192];
    for (size_t i = 0; i < sizeof packet; i++) packet[i] = (unsigned char)us_random_bits(3, (uint64_t)f->port, i);
    int64_t begin = now_ns(), sent = 0;
    for (uint64_t n = 0; !atomic_load(&f->ends); n++) {
        memcpy(packet, n & 1 ? "RTPS" : "junk", 4);
        packet[4] = 2, packet[5] = 1;
        packet[20 + n % 60] = (unsigned char)n;
        size_t size = 200 + (size_t)(n * 977 % (sizeof packet - 200));
        if (sendto(s, packet, size, 0, (struct sockaddr *)&to, sizeof to) > 0) sent += (int64_t)size;
        while ((double)sent > 50e6 * 1e-9 * (double)(now_ns() - begin) && !atomic_load(&f->ends)) nap(5e-4);
    }
    atomic_store(&f->bytes, sent);
    close(s);
    return NULL;
}

// Processor time that the simulation's thread has used so far, s: what others take from it does not count.
static double used_by(pid_t pid) {
    char path[64];
    long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%lld", &ns) != 1) ns = 0;
    if (file) fclose(file);
    return 1e-9 * (double)ns;
}

// Wall time of a step as the program itself reports it: "step 12 us".
static double step_time(const char *path) {
    char line[1000];
    double us = NAN;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "step ");
        if (at) us = atof(at + 5);
    }
    if (file) fclose(file);
    return us;
}

static void hostile(void) {
    double step[3], used[3];
    for (int round = 0; round < 3; round++) {
        write_scene("hostile.xml", "<topic name='joint_states' rate='200 Hz'/>");
        ear e = {.cap = 100000};
        e.lateness = malloc((size_t)e.cap * sizeof *e.lateness);
        us_bus *bus = open_bus();
        us_reader *reader = NULL;
        us_error err = {0};
        us_topic_def def = {ONE_TOPIC, usi_type_joint_state, {true, false, 0}, -1};
        if (us_bus_add_reader(bus, &def, on_any, &e, &reader, &err)) exit(1);
        pid_t bad[11];
        int n_bad = round >= 1 ? 11 : 0;
        pid_t pid = start("hostile.xml", "12", "hostile.out");
        for (int i = 0; i < n_bad; i++) bad[i] = stalled_reader(i < 5 ? 200 : 0);
        // Discovery and user ports of the first participants of this domain, as RTPS counts them.
        static flood floods[6];
        pthread_t threads[6];
        int n_flood = round == 2 ? 6 : 0;
        for (int i = 0; i < n_flood; i++) {
            floods[i].port = 7400 + 250 * domain + 10 + i;
            floods[i].ends = false;
            pthread_create(&threads[i], NULL, flood_port, &floods[i]);
        }
        nap(3);
        int64_t from = atomic_load(&e.n);
        double before = used_by(pid);
        nap(6);
        int64_t n = atomic_load(&e.n) - from;
        used[round] = 1e6 * (used_by(pid) - before) / 6000;
        int64_t bytes = 0;
        for (int i = 0; i < n_flood; i++) {
            atomic_store(&floods[i].ends, true);
            pthread_join(threads[i], NULL);
            bytes += floods[i].bytes;
        }
        waitpid(pid, NULL, 0);
        int64_t total = atomic_load(&e.n);
        for (int i = 0; i < n_bad; i++) {
            kill(bad[i], SIGKILL);
            waitpid(bad[i], NULL, 0);
        }
        us_bus_close(bus);
        step[round] = step_time("hostile.out");
        static const char *const names[] = {"alone", "10 slow or stalled readers, 1 that never acknowledges",
                                            "and 50 MB/s of garbage on each of six ports"};
        printf("hostile   %-54s processor time per tick %.2f us (%.2f x), wall time of a step %.2f us (%.2f x)\n", names[round], used[round],
               used[round] / used[0], step[round], step[round] / step[0]);
        printf("          good reader got %lld in 6 s (1200 sent), %lld in all; garbage %.0f MB\n", (long long)n, (long long)total,
               1e-6 * (double)bytes);
        free(e.lateness);
    }
}

int main(int argc, char **argv) {
    domain = 1 + (int)(getpid() % 200);
    bool all = argc == 1;
    char dir[] = "/tmp/bench_network.XXXXXX";
    if (!mkdtemp(dir) || chdir(dir) != 0) return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc || all; i++) {
        const char *what = all ? "" : argv[i];
        if (all || strcmp(what, "latency") == 0) latency();
        if (all || strcmp(what, "fleet") == 0) fleet();
        if (all || strcmp(what, "hostile") == 0) hostile();
        all = false;
    }
    return 0;
}
