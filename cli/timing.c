// understudy timing: listens to a robot, and writes down how its clock and its computer show in what it
// sends, for a proxy to do the same.
//
// Samples that were made at one moment bear one stamp. Of each such moment the first arrival counts: arrival
// - stamp is what the clock is behind, the computer's delay and the transit through DDS, and only their sum
// can be seen. The transit time is measured beside it: a thread that sleeps until a given time and then
// writes, as a proxy's does, and how late that is heard here.
//
//     robot    moment .. stamp .. computes .. writes ----> arrival     quantiles of arrival - stamp
//     here              sleeps until a time .. writes ----> arrival     quantiles of the transit
//
// A proxy whose samples leave DELAY after their moment, and up to `jitter` later, has the same quantiles when
// its jitter is what the transit alone does not explain, and its stamps are ahead by the rest.
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bus.h"
#include "noise.h"
#include "understudy/network.h"

// From the moment of a sample until it leaves the proxy, s: room for a step that takes longer than usual, and
// less than an operator notices.
static const double DELAY = 5.5e-3;
// Stamps farther than this from the time of day are no time of day, s: ten years.
static const double NO_WALL = 3e8;
// How long the robot is waited for, s.
static const double PATIENCE = 10;
enum { PROBE_SIZE = 400, PROBES_PER_SECOND = 50, MAX_PER_SECOND = 4000, MIN_SAMPLES = 100, MAX_SOURCES = 32 };

static const char *const element = "understudy timing";

typedef struct moment {
    int64_t arrival, stamp;  // ns
} moment;

typedef struct listened {
    struct listener *listener;
    const us_message_type *type;
    int32_t source;                     // of us_topic_source_view
    const char *seconds, *nanoseconds;  // paths of its stamp; NULL: it has none
    int64_t n, first_stamp, last_stamp;
} listened;

typedef struct listener {
    pthread_mutex_t lock;
    listened topic[MAX_SOURCES];
    int32_t n_moment, cap, n_probe;
    moment *moments;
    double *transit;  // s
    us_bus *probe_bus;
    us_writer *probe;
    _Atomic bool is_over;
} listener;

// ---- listening ----

static void on_sample(void *context, const us_sample *sample) {
    listened *t = context;
    listener *l = t->listener;
    int64_t arrival = cli_wall_ns(), stamp = 0;
    if (t->seconds) {
        double s = us_message_get_number(t->type, sample->bytes, sample->length, t->seconds);
        double ns = us_message_get_number(t->type, sample->bytes, sample->length, t->nanoseconds);
        if (isnan(s) || isnan(ns)) return;
        stamp = (int64_t)s * 1000000000 + (int64_t)ns;
    }
    pthread_mutex_lock(&l->lock);
    if (t->n++ == 0) t->first_stamp = stamp;
    t->last_stamp = stamp;
    bool is_new = t->seconds && l->n_moment < l->cap &&
                  (l->n_moment == 0 || l->moments[l->n_moment - 1].stamp != stamp);
    if (is_new) l->moments[l->n_moment++] = (moment){arrival, stamp};
    pthread_mutex_unlock(&l->lock);
}

static void on_probe(void *context, const us_sample *sample) {
    listener *l = context;
    double late = 1e-9 * (double)(cli_wall_ns() - sample->source_time);
    pthread_mutex_lock(&l->lock);
    if (l->n_probe < l->cap) l->transit[l->n_probe++] = late;
    pthread_mutex_unlock(&l->lock);
}

static void *send_probes(void *context) {
    listener *l = context;
    unsigned char bytes[8 + PROBE_SIZE] = {0, 1, 0, 0, PROBE_SIZE % 256, PROBE_SIZE / 256};
    // As a proxy's sender does: before others, where that is allowed.
    pthread_setschedparam(pthread_self(), SCHED_FIFO,
                          &(struct sched_param){.sched_priority = sched_get_priority_min(SCHED_FIFO)});
    memset(bytes + 8, '-', PROBE_SIZE - 1);  // a text of dashes
    for (int64_t due = cli_wall_ns(); !atomic_load(&l->is_over);) {
        due += 1000000000 / PROBES_PER_SECOND;
        struct timespec t = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
        us_writer_write(l->probe, bytes, sizeof bytes, due);
    }
    return NULL;
}

// Another bus, so that the probes take the path of samples of another process.
static us_status open_probe(listener *l, us_bus *bus, us_error *err) {
    us_bus_def def;
    char text[US_BUS_TEXT];
    us_topic_def topic = {.topic = "/understudy/timing",
                          .type = us_message_find("std_msgs/msg/String"),
                          .qos = {.is_reliable = true, .depth = 10}};
    us_reader *reader = NULL;
    us_status status = cli_bus_def(&def, NULL, text, err);
    def.hide_from_graph = true;
    def.domain = us_bus_domain(bus);
    topic.node = -1;
    if (!status) status = us_bus_open(&def, &l->probe_bus, err);
    if (!status) status = us_bus_add_writer(l->probe_bus, &topic, &l->probe, err);
    return status ? status : us_bus_add_reader(bus, &topic, on_probe, l, &reader, err);
}

// ---- what the robot says ----

// The topic of DDS: of the robot itself, or of the one that a switch lets be heard beside it, in mode
// "shadow" or "mirror".
static void name_topic(const char *robot, const char *mode, int32_t source, char out[CLI_NAME_MAX]) {
    char topic[CLI_NAME_MAX / 2];
    us_topic_source_topic(source, mode ? "" : robot, topic, sizeof topic);
    if (mode) {
        snprintf(out, CLI_NAME_MAX, "rt/understudy/%s/%s%s", mode, robot, topic);
    } else {
        snprintf(out, CLI_NAME_MAX, "rt%s", topic);
    }
}

// Sources that the robot itself has: all but the truth.
static bool is_own_source(int32_t source) {
    return source < MAX_SOURCES && strcmp(us_topic_source_view(source)->name, "truth") != 0;
}

// The endpoint that writes it, or NULL. Nodes of others may write /tf too.
static const us_endpoint *find_writer(const cli_bus *bus, const char *robot, const char *mode,
                                      int32_t source) {
    char topic[CLI_NAME_MAX];
    size_t n = strlen(robot);
    name_topic(robot, mode, source, topic);
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        const us_endpoint *e = &bus->endpoints[i];
        bool is_own =
            mode || (e->node[0] == '/' && strncmp(e->node + 1, robot, n) == 0 && e->node[1 + n] == '/');
        if (e->is_writer && is_own && strcmp(e->topic, topic) == 0) return e;
    }
    return NULL;
}

static bool is_there(const cli_bus *bus, const char *robot, const char *mode) {
    for (int32_t k = 0; us_topic_source_view(k); k++) {
        if (is_own_source(k) && find_writer(bus, robot, mode, k)) return true;
    }
    return false;
}

static us_status listen_to(listener *l, cli_bus *bus, const char *robot, const char *mode, int32_t source,
                           us_error *err) {
    listened *t = &l->topic[source];
    const us_endpoint *writer = find_writer(bus, robot, mode, source);
    if (writer) t->type = us_message_find(writer->type);
    if (!t->type) return US_OK;
    t->listener = l;
    t->source = source;
    const char *type = us_topic_source_view(source)->type;
    if (strcmp(type, "tf2_msgs/msg/TFMessage") == 0) {
        t->seconds = "transforms[0].header.stamp.sec";
        t->nanoseconds = "transforms[0].header.stamp.nanosec";
    } else if (strcmp(type, "std_msgs/msg/String") != 0) {
        t->seconds = "header.stamp.sec";
        t->nanoseconds = "header.stamp.nanosec";
    }
    us_topic_def def = {.topic = writer->topic,
                        .type = t->type,
                        .qos = cli_qos_for_reader(bus, writer->topic, 100),
                        .node = -1};
    def.qos.is_transient_local = false;
    us_reader *reader = NULL;
    return us_bus_add_reader(bus->bus, &def, on_sample, t, &reader, err);
}

// ---- what follows ----

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, int32_t n, double share) {
    return sorted[(int32_t)(share * (double)(n - 1))];
}

typedef struct found {
    bool is_wall;
    double offset, drift, jitter;
} found;

static double rate_of(const listened *t) {
    if (!t->type) return 0;
    if (us_topic_source_view(t->source)->is_once || t->n < 2 || t->last_stamp <= t->first_stamp) return 1;
    double rate = 1e9 * (double)(t->n - 1) / (double)(t->last_stamp - t->first_stamp),
           whole = nearbyint(rate);
    return whole > 0 && fabs(rate - whole) < 2e-3 * whole ? whole : rate;
}

// What its clock gains shows in its stamps: they should be a whole number of the periods of the topic's rate
// apart. By the fastest topic.
static double drift_of(const listener *l) {
    const listened *best = NULL;
    for (int i = 0; i < MAX_SOURCES; i++) {
        const listened *t = &l->topic[i];
        if (t->seconds && t->n > MIN_SAMPLES && (!best || t->n > best->n)) best = t;
    }
    if (!best) return 0;
    double periods = 1e-9 * (double)(best->last_stamp - best->first_stamp) * rate_of(best),
           whole = nearbyint(periods);
    return fabs(periods / whole - 1) < 1e-9 ? 0 : periods / whole - 1;
}

// arrival - stamp of each moment, s, in order; the caller frees it.
static double *late_of(const listener *l, double drift) {
    double *late = cli_allocate((size_t)l->n_moment, sizeof *late);
    for (int32_t i = 0; i < l->n_moment; i++) {
        const moment *m = &l->moments[i];
        late[i] =
            1e-9 * (double)(m->arrival - m->stamp) + drift * 1e-9 * (double)(m->stamp - l->moments[0].stamp);
    }
    qsort(late, (size_t)l->n_moment, sizeof *late, compare);
    return late;
}

// What a busy machine does to arrivals it does to the latest: they are left out. The first few say where a
// jitter begins better than its middle does.
static const double FIRST = 0.05, LAST = 0.8;
static double begin_of(const double *sorted, int32_t n) { return quantile(sorted, n, FIRST); }
static double spread_of(const double *sorted, int32_t n) {
    return quantile(sorted, n, LAST) - quantile(sorted, n, FIRST);
}

static found work_out(const listener *l) {
    found f = {.drift = drift_of(l)};
    double *late = late_of(l, f.drift);
    f.is_wall = fabs(late[0]) < NO_WALL;
    qsort(l->transit, (size_t)l->n_probe, sizeof *l->transit, compare);
    double own = spread_of(late, l->n_moment), transit = spread_of(l->transit, l->n_probe);
    if (own > transit) f.jitter = sqrt(own * own - transit * transit) / (LAST - FIRST);
    f.offset = DELAY + FIRST * f.jitter + begin_of(l->transit, l->n_probe) - begin_of(late, l->n_moment);
    free(late);
    return f;
}

// What the <timing> of a proxy lacks that was heard at the same time.
static void print_lack(const listener *robot, const listener *proxy) {
    double *a = late_of(robot, drift_of(robot)), *b = late_of(proxy, drift_of(proxy));
    double offset = begin_of(b, proxy->n_moment) - begin_of(a, robot->n_moment);
    printf("<!-- the proxy, %d moments: to its offset add %.4f ms -->\n", (int)proxy->n_moment, 1e3 * offset);
    free(a);
    free(b);
}

static void print_found(const listener *l, const found *f, double seconds) {
    printf("<!-- measured for %.6g s, %d moments; it belongs into <network> -->\n", seconds,
           (int)l->n_moment);
    for (int32_t i = 0; us_topic_source_view(i); i++) {
        if (is_own_source(i))
            printf("<topic source=\"%s\" rate=\"%.6g Hz\"/>\n", us_topic_source_view(i)->name,
                   rate_of(&l->topic[i]));
    }
    if (f->is_wall) {
        printf("<timing clock=\"wall\" offset=\"%.9g ms\" drift=\"%.3g\" delay=\"%.6g ms\" jitter=\"%.4g "
               "ms\"/>\n",
               1e3 * f->offset, f->drift, 1e3 * DELAY, 1e3 * f->jitter);
    }
}

// ---- the command ----

// Finds the robot, or its proxy beside it, and begins to listen.
static int begin(listener *l, cli_bus *bus, const char *robot, bool is_proxy, double seconds) {
    const char *mode = NULL;
    double until = cli_clock() + PATIENCE;
    for (;;) {
        cli_bus_settle(bus, 3);
        if (is_proxy)
            mode = is_there(bus, robot, "mirror") && !is_there(bus, robot, "shadow") ? "mirror" : "shadow";
        if (is_there(bus, robot, mode)) break;
        if (cli_clock() < until && !cli_is_stopped()) continue;
        if (is_proxy)
            return cli_fail(CLI_RUN_FAILED, element,
                            "run understudy switch with --visible, and understudy switch ROBOT --to shadow",
                            "no proxy is heard beside \"%.60s\"", robot);
        return cli_fail(CLI_RUN_FAILED, element, "start it; understudy topics lists who is there",
                        "no robot \"%.60s\" is heard", robot);
    }
    l->cap = (int32_t)(seconds + 1) * MAX_PER_SECOND;
    l->moments = cli_allocate((size_t)l->cap, sizeof *l->moments);
    l->transit = cli_allocate((size_t)l->cap, sizeof *l->transit);
    pthread_mutex_init(&l->lock, NULL);
    us_error err = {0};
    us_status status = US_OK;
    for (int32_t i = 0; us_topic_source_view(i) && !status; i++) {
        if (is_own_source(i)) status = listen_to(l, bus, robot, mode, i, &err);
    }
    if (status) cli_print_error(&err);
    return status ? CLI_RUN_FAILED : CLI_GO_ON;
}

static int wait_and_probe(listener *l, us_bus *bus, double seconds) {
    us_error err = {0};
    pthread_t thread;
    if (open_probe(l, bus, &err)) {
        cli_print_error(&err);
        return CLI_RUN_FAILED;
    }
    if (pthread_create(&thread, NULL, send_probes, l))
        return cli_fail(CLI_RUN_FAILED, element, "end other programs", "no thread left");
    cli_measure(seconds);
    atomic_store(&l->is_over, true);
    pthread_join(thread, NULL);
    return CLI_GO_ON;
}

static int run(const cli_command *command, int argc, char **argv) {
    double seconds = 60;
    bool is_both = false;
    const char *recording = NULL;
    const cli_option table[] = {
        {"time", CLI_NUMBER, &seconds, "S", "how long to listen (60)"},
        {"both", CLI_FLAG, &is_both, NULL,
         "listen to its proxy too, which a switch with --visible in mode shadow or mirror lets through, and "
         "report what that lacks"},
        {"noise", CLI_TEXT, &recording, "RECORDING",
         "from an MCAP file of the robot standing: the noise of its instruments"},
    };
    const char *robot = NULL;
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &robot);
    if (code != CLI_GO_ON) return code;
    if (!(seconds > 0 && seconds <= 3600))
        return cli_fail(CLI_BAD_INPUT, element, "write --time S with S from 1 to 3600",
                        "--time: invalid time");
    if (robot[0] == '/') robot++;
    if (recording) return cli_noise_fit(robot, recording);
    cli_catch_stop(NULL);
    static listener l[2];
    cli_bus bus;
    int n = is_both ? 2 : 1;
    code = cli_bus_open(&bus, true);
    if (code != CLI_GO_ON) return code;
    for (int i = 0; i < n && code == CLI_GO_ON; i++)
        code = begin(&l[i], &bus, robot, i == 1, seconds);
    if (code == CLI_GO_ON) code = wait_and_probe(&l[0], bus.bus, seconds);
    cli_bus_close(&bus);  // from here on nothing is heard any more
    us_bus_close(l[0].probe_bus);
    for (int i = 0; i < n && code == CLI_GO_ON; i++) {
        if (l[i].n_moment < MIN_SAMPLES || l[0].n_probe < MIN_SAMPLES)
            code = cli_fail(CLI_RUN_FAILED, element, "listen for longer: --time",
                            "%d moments and %d probes are too few", (int)l[i].n_moment, (int)l[0].n_probe);
    }
    if (code == CLI_GO_ON) {
        found f = work_out(&l[0]);
        print_found(&l[0], &f, seconds);
        if (is_both) print_lack(&l[0], &l[1]);
        code = CLI_OK;
    }
    for (int i = 0; i < 2; i++) {
        free(l[i].moments);
        free(l[i].transit);
    }
    return code;
}

const cli_command cli_command_timing = {
    .name = "timing",
    .operand = "ROBOT",
    .needs_operand = true,
    .summary = "how a robot's clock and computer show in what it sends",
    .about = "Listens to a robot, and prints the elements for the <network> of its proxy: which topics at "
             "which rates, whose stamps by\n"
             "which clock, how long after the moment they leave, and how much that varies. With --both it "
             "listens to the robot's proxy\n"
             "at the same time, and reports what that lacks. With --noise it reads a recording of a robot "
             "that stands, and prints\n"
             "what its instruments add to the values that it sends.\n"
             "\n"
             "Examples:\n"
             "  understudy timing k10\n"
             "  understudy timing k10 --both\n"
             "  understudy timing k10 --noise k10.mcap\n",
    .run = run,
};
