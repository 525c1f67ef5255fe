// The network as its users feel it: how late things are, and what bad company does to the step.
//
//     bench_network [latency] [fleet] [hostile]
//
// Each part starts `understudy run` as a process of its own on a DDS domain of its own, and talks to it over
// the loopback.
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "understudy/bus.h"
#include "wire/messages.h"

static int domain;

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
    return bench_start_run(domain, out, (const char *const[]){scene, "--time", seconds, "--headless", NULL});
}

static void write_scene(const char *path, const char *network) {
    FILE *file = fopen(path, "w");
    fprintf(
        file,
        "<scene name='one' version='1'><world step='1 ms'><shape name='ground' type='half-space'/></world>"
        "<default name='wheel'><drive kd='4'/></default><robot name='cart' file='%s/models/cart.urdf' "
        "base='floating' default='wheel'>"
        "<drive joint='front_left'/><drive joint='front_right'/><drive joint='rear_left'/><drive "
        "joint='rear_right'/>"
        "<network timeout='0'>%s</network><locomotion type='skid'><wheel drive='front_left' "
        "radius='0.1'/><wheel drive='front_right' radius='0.1'/>"
        "<wheel drive='rear_left' radius='0.1'/><wheel drive='rear_right' "
        "radius='0.1'/></locomotion></robot></scene>",
        US_SOURCE_DIR, network);
    fclose(file);
}

// ---------------------------------------------------------------- the machine itself

enum { MAX_STALL = 1 << 16 };

// Times at which one processor ran nothing at all, not even a thread that goes before all others: the
// machine's own.
typedef struct stalls {
    pthread_t thread;
    int cpu;
    _Atomic bool ends;
    bool is_first;  // the thread really goes before the others
    int n;
    int64_t (*span)[2];
} stalls;

static void *watch_stalls(void *context) {
    stalls *s = context;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)s->cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    s->is_first =
        pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){.sched_priority = 90}) == 0;
    const int64_t period = 1000000;
    int64_t due = bench_now_ns() + period;
    while (!atomic_load(&s->ends)) {
        struct timespec at = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        int64_t now = bench_now_ns();
        if (now - due > period && s->n < MAX_STALL) {
            s->span[s->n][0] = due;
            s->span[s->n++][1] = now;
        }
        due = now + period;
    }
    return NULL;
}

static int start_watches(stalls *all) {
    int n = bench_n_cpu();
    for (int i = 0; i < n; i++) {
        all[i] = (stalls){.cpu = i, .span = malloc(MAX_STALL * sizeof *all[i].span)};
        pthread_create(&all[i].thread, NULL, watch_stalls, &all[i]);
    }
    return n;
}

static void end_watches(stalls *all, int n) {
    for (int i = 0; i < n; i++) {
        atomic_store(&all[i].ends, true);
        pthread_join(all[i].thread, NULL);
    }
}

// Whether a processor stood still in a time, or was still making good what it had missed: that takes no
// longer than the stall.
static bool was_stalled(const stalls *all, int n, int64_t from, int64_t to) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < all[i].n; k++) {
            int64_t begin = all[i].span[k][0], end = all[i].span[k][1];
            if (begin < to && end + (end - begin) > from) return true;
        }
    }
    return false;
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
    if (atomic_load(&w->seen) == 0 && (atomic_load(&w->is_rising) ? v > level : v < level))
        atomic_store(&w->seen, bench_now_ns());
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
    us_topic_def in = {"/cart/joint_states", usi_type_joint_state,
                       us_qos_for_topic("/cart/joint_states", usi_type_joint_state), -1};
    us_topic_def out = {"/cart/cmd_vel", usi_type_twist, us_qos_for_topic("/cart/cmd_vel", usi_type_twist),
                        -1};
    if (us_bus_add_reader(bus, &in, on_joints, &w, &reader, &err) ||
        us_bus_add_writer(bus, &out, &writer, &err))
        exit(1);
    for (int i = 0; i < 500 && (us_reader_n_match(reader) == 0 || us_writer_n_match(writer) == 0); i++)
        bench_nap(0.01);
    bench_nap(1);
    int n = 0;
    for (int i = 0; i < N; i++) {
        bool is_rising = i % 2 == 0;
        // At odd times within the step.
        bench_nap(0.05 + 1e-3 * us_random_uniform(1, 1, (uint64_t)i));
        double before = atomic_load(&w.speed);
        us_msg_twist m = {{is_rising ? 0.3 : 0, 0, 0}, {0, 0, 0}};
        uint8_t bytes[100];
        size_t length = 0;
        us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length);
        atomic_store(&w.is_rising, is_rising);
        atomic_store(&w.level, before + (is_rising ? 1e-3 : -1e-3));
        atomic_store(&w.seen, 0);
        int64_t t = bench_now_ns();
        us_writer_write(writer, bytes, length, 0);
        for (int k = 0; k < 2000 && atomic_load(&w.seen) == 0; k++)
            bench_nap(1e-4);
        if (atomic_load(&w.seen) > 0) delay[n++] = 1e-6 * (double)(atomic_load(&w.seen) - t);
    }
    kill(pid, SIGINT);
    waitpid(pid, NULL, 0);
    us_bus_close(bus);
    qsort(delay, (size_t)n, sizeof *delay, compare);
    if (n > 0)
        printf("latency   cmd_vel to the first changed joint_states, step 1 ms, %d of %d: median %.3f ms, 90 "
               "%% %.3f, worst %.3f\n",
               n, N, delay[n / 2], delay[n * 9 / 10], delay[n - 1]);
    else
        printf("latency   nothing moved\n");
    bench_print_file("latency.out");
}

// ---------------------------------------------------------------- fleet

typedef struct ear {
    _Atomic int64_t n;  // samples so far
    int64_t cap;
    struct arrival {
        int64_t at;       // ns: now_ns when it came
        double lateness;  // ns: that less its stamp
    } * arrivals;
} ear;

static void on_any(void *context, const us_sample *sample) {
    ear *e = context;
    int64_t i = atomic_fetch_add(&e->n, 1), now = bench_now_ns();
    if (i < e->cap) e->arrivals[i] = (struct arrival){now, (double)(now - sample->source_time)};
}

static int compare_arrivals(const void *a, const void *b) {
    double x = ((const struct arrival *)a)->lateness, y = ((const struct arrival *)b)->lateness;
    return x < y ? -1 : x > y;
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
    e.arrivals = malloc((size_t)e.cap * sizeof *e.arrivals);
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
    stalls watches[BENCH_MAX_CPU];
    int n_watch = start_watches(watches);
    // The first seconds belong to discovery.
    bench_nap(5);
    int64_t from = atomic_load(&e.n);
    bench_nap(seconds - 5);
    int64_t to = atomic_load(&e.n);
    waitpid(pid, NULL, 0);
    end_watches(watches, n_watch);
    us_bus_close(bus);
    int64_t n = to - from, n_over = 0, n_over_own = 0;
    struct arrival *a = e.arrivals + from;
    qsort(a, (size_t)n, sizeof *a, compare_arrivals);
    double least = a[0].lateness, worst = 0, stall = 0;
    for (int64_t i = n - 1; i >= 0 && (worst == 0 || a[i].lateness - least > 20e6); i--) {
        double late = a[i].lateness - least;
        bool is_own = !was_stalled(watches, n_watch, a[i].at - (int64_t)late, a[i].at);
        n_over += late > 20e6;
        n_over_own += is_own && late > 20e6;
        if (is_own && late > worst) worst = late;
    }
    int n_stall = 0;
    for (int i = 0; i < n_watch; i++) {
        for (int k = 0; k < watches[i].n; k++) {
            double length = (double)(watches[i].span[k][1] - watches[i].span[k][0]);
            n_stall += length > 5e6;
            if (length > stall) stall = length;
        }
        free(watches[i].span);
    }
    printf("fleet     50 robots, 6 topics at 50 Hz: %.0f samples/s of 15000; later than the earliest: median "
           "%.2f ms, 99 %% %.2f, worst %.2f (%lld "
           "above 20)\n",
           (double)n / (seconds - 5), 1e-6 * (a[n / 2].lateness - least),
           1e-6 * (a[n * 99 / 100].lateness - least), 1e-6 * (a[n - 1].lateness - least), (long long)n_over);
    printf("          processors stood still %d times for more than 5 ms, at most %.2f%s; of the samples "
           "that no such time touched: worst %.2f ms, "
           "%lld above 20\n",
           n_stall, 1e-6 * stall, watches[0].is_first ? "" : " (watched without priority)", 1e-6 * worst,
           (long long)n_over_own);
    bench_print_file("fleet.out");
    free(e.arrivals);
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
    us_topic_def def = {ONE_TOPIC, usi_type_joint_state, {.is_reliable = true}, -1};
    if (us_bus_add_reader(bus, &def, NULL, NULL, &reader, &err)) _exit(1);
    for (int i = 0; i < 300 && us_reader_n_match(reader) == 0; i++)
        bench_nap(0.01);
    if (slow_ms == 0) raise(SIGSTOP);
    for (;;) {
        char buf[4096];
        size_t length = 0;
        bench_nap(1e-3 * slow_ms);
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
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)f->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned char packet[8192];
    for (size_t i = 0; i < sizeof packet; i++)
        packet[i] = (unsigned char)us_random_bits(3, (uint64_t)f->port, i);
    int64_t begin = bench_now_ns(), sent = 0;
    for (uint64_t n = 0; !atomic_load(&f->ends); n++) {
        memcpy(packet, n & 1 ? "RTPS" : "junk", 4);
        packet[4] = 2;
        packet[5] = 1;
        packet[20 + n % 60] = (unsigned char)n;
        size_t size = 200 + (size_t)(n * 977 % (sizeof packet - 200));
        if (sendto(s, packet, size, 0, (struct sockaddr *)&to, sizeof to) > 0) sent += (int64_t)size;
        while ((double)sent > 50e6 * 1e-9 * (double)(bench_now_ns() - begin) && !atomic_load(&f->ends))
            bench_nap(5e-4);
    }
    atomic_store(&f->bytes, sent);
    close(s);
    return NULL;
}

typedef struct hostile_round {
    double step;             // us: wall time of a step
    double used;             // us: processor time per tick
    int64_t n_good, n_lost;  // samples of the good reader
} hostile_round;

// Counts the samples of a topic of 200 Hz, and those left out between them by their stamps.
typedef struct counter {
    _Atomic int64_t n, n_lost;
    int64_t last;  // stamp, ns
} counter;

static void count_sample(void *context, const us_sample *sample) {
    counter *c = context;
    double sec =
        us_message_get_number(usi_type_joint_state, sample->bytes, sample->length, "header.stamp.sec");
    double ns =
        us_message_get_number(usi_type_joint_state, sample->bytes, sample->length, "header.stamp.nanosec");
    int64_t stamp = (int64_t)sec * 1000000000 + (int64_t)ns;
    if (c->last > 0) atomic_fetch_add(&c->n_lost, (stamp - c->last + 2500000) / 5000000 - 1);
    c->last = stamp;
    atomic_fetch_add(&c->n, 1);
}

// Company: 0 alone, 1 bad readers, 2 garbage too.
static hostile_round run_hostile(int company) {
    hostile_round result;
    write_scene("hostile.xml", "<topic name='joint_states' rate='200 Hz'/>");
    counter c = {0};
    us_bus *bus = open_bus();
    us_reader *reader = NULL;
    us_error err = {0};
    us_topic_def def = {ONE_TOPIC, usi_type_joint_state, {.is_reliable = true}, -1};
    if (us_bus_add_reader(bus, &def, count_sample, &c, &reader, &err)) exit(1);
    pid_t bad[11];
    int n_bad = company >= 1 ? 11 : 0;
    pid_t pid = start("hostile.xml", "9", "hostile.out");
    for (int i = 0; i < n_bad; i++)
        bad[i] = stalled_reader(i < 5 ? 200 : 0);
    // Discovery and user ports of the first participants of this domain, as RTPS counts them.
    static flood floods[6];
    pthread_t threads[6];
    int n_flood = company == 2 ? 6 : 0;
    for (int i = 0; i < n_flood; i++) {
        floods[i].port = 7400 + 250 * domain + 10 + i;
        floods[i].ends = false;
        pthread_create(&threads[i], NULL, flood_port, &floods[i]);
    }
    bench_nap(3);
    double before = bench_used_by(pid);
    bench_nap(5);
    result.used = 1e6 * (bench_used_by(pid) - before) / 5000;
    for (int i = 0; i < n_flood; i++) {
        atomic_store(&floods[i].ends, true);
        pthread_join(threads[i], NULL);
        if ((double)floods[i].bytes < 0.8 * 50e6 * 8)
            printf("          (garbage on port %d: only %.0f MB)\n", floods[i].port,
                   1e-6 * (double)floods[i].bytes);
    }
    waitpid(pid, NULL, 0);
    bench_end_processes(bad, n_bad);
    us_bus_close(bus);
    result.n_good = atomic_load(&c.n);
    result.n_lost = atomic_load(&c.n_lost);
    result.step = bench_step_time("hostile.out");
    return result;
}

static void hostile(void) {
    enum { N = 5 };
    static const char *const names[] = {"alone", "10 slow or stalled readers, 1 that never acknowledges",
                                        "and 50 MB/s of garbage on each of six ports"};
    double used[3][N], step[3][N];
    int64_t n_good[3] = {0}, n_lost[3] = {0};
    pid_t awake[BENCH_MAX_CPU];
    int n_awake = bench_keep_awake(awake);
    for (int i = 0; i < N; i++) {
        for (int company = 0; company < 3; company++) {
            hostile_round r = run_hostile(company);
            used[company][i] = r.used;
            step[company][i] = r.step;
            n_good[company] += r.n_good;
            n_lost[company] += r.n_lost;
            printf("          round %d, %-54s processor time per tick %.2f us, wall time of a step %.2f us, "
                   "good reader %lld, lost %lld\n",
                   i + 1, names[company], r.used, r.step, (long long)r.n_good, (long long)r.n_lost);
        }
    }
    bench_end_processes(awake, n_awake);
    double base_used = bench_median_of(used[0], N), base_step = bench_median_of(step[0], N);
    for (int company = 0; company < 3; company++) {
        printf("hostile   %-54s processor time per tick %.2f us (%.2f x), wall time of a step %.2f us (%.2f "
               "x), medians of %d; good reader got %lld, "
               "lost %lld\n",
               names[company], bench_median_of(used[company], N),
               bench_median_of(used[company], N) / base_used, bench_median_of(step[company], N),
               bench_median_of(step[company], N) / base_step, N, (long long)n_good[company],
               (long long)n_lost[company]);
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
