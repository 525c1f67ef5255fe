// What the commands of the network share.
#include "bus.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

// s: how long a command that was stopped waits for others to acknowledge what it said last.
static const double LINGER = 0.1;

// ---- joining ----

us_status cli_bus_def(us_bus_def *def, const char *enclave, char text[US_BUS_TEXT], us_error *err) {
    static bool is_told;
    *def = us_bus_def_default();
    if (enclave) def->enclave = enclave;
    us_status status = us_bus_def_from_environment(def, text, US_BUS_TEXT, err);
    if (!status && def->notice && !is_told) {
        is_told = true;
        cli_warn("make keys (understudy keys --help), or unset ROS_SECURITY_ENABLE", "%s", def->notice);
    }
    return status;
}

int cli_bus_open(cli_bus *bus, bool is_hidden) {
    *bus = (cli_bus){0};
    us_error err = {0};
    char text[US_BUS_TEXT];
    us_bus_def def;
    us_status status = cli_bus_def(&def, NULL, text, &err);
    def.hide_from_graph = is_hidden;
    if (!status) status = us_bus_open(&def, &bus->bus, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    // A limit of something that was written, or of the machine.
    const bool is_written = status == US_ERR_LIMIT && err.element[0];
    return status == US_ERR_VALUE || status == US_ERR_NAME || is_written ? CLI_BAD_INPUT : CLI_RUN_FAILED;
}

void cli_hasten(us_bus *bus) {
    if (bus && cli_is_stopped()) (void)us_bus_set_linger(bus, LINGER);
}

void cli_bus_close(cli_bus *bus) {
    cli_hasten(bus->bus);
    us_bus_close(bus->bus);
    free(bus->endpoints);
    free(bus->participants);
    *bus = (cli_bus){0};
}

int cli_bus_add_node(cli_bus *bus, const char *name, int32_t *out_node) {
    char full[64];
    us_error err = {0};
    snprintf(full, sizeof full, "%s_%ld", name, (long)getpid());
    if (!us_bus_add_node(bus->bus, "/understudy", full, out_node, &err)) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_RUN_FAILED;
}

// ---- looking ----

static int compare(const void *left, const void *right) {
    const us_endpoint *a = left, *b = right;
    int order = strcmp(a->topic, b->topic);
    if (!order) order = strcmp(a->type, b->type);
    if (!order) order = (int)b->is_writer - (int)a->is_writer;
    if (!order) order = strcmp(a->node, b->node);
    return order ? order : memcmp(a->id, b->id, sizeof a->id);
}

// Names come from other programs: control characters must reach neither the terminal nor JSON.
static void make_printable(char *text) {
    for (; *text; text++) {
        if (*text < 0x20 || *text > 0x7e) *text = '?';
    }
}

// Between asking how many there are and getting them there may be more: asks again then.
static void list_endpoints(cli_bus *bus) {
    int32_t n = 0, cap = 0;
    us_endpoint *list = NULL;
    do {
        cap = n + 64;
        free(list);
        list = cli_allocate((size_t)cap, sizeof *list);
        if (us_bus_list(bus->bus, list, cap, &n)) n = 0;
    } while (n > cap);
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (list[i].is_own) continue;
        make_printable(list[i].topic);
        make_printable(list[i].type);
        make_printable(list[i].node);
        make_printable(list[i].hash);
        list[kept++] = list[i];
    }
    qsort(list, (size_t)kept, sizeof *list, compare);
    free(bus->endpoints);
    bus->endpoints = list;
    bus->n_endpoint = kept;
}

static void list_participants(cli_bus *bus) {
    int32_t n = 0, cap = 0;
    us_participant *list = NULL;
    do {
        cap = n + 16;
        free(list);
        list = cli_allocate((size_t)cap, sizeof *list);
        if (us_bus_list_participants(bus->bus, list, cap, &n)) n = 0;
    } while (n > cap);
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (list[i].is_own) continue;
        make_printable(list[i].host);
        make_printable(list[i].vendor);
        make_printable(list[i].enclave);
        list[kept++] = list[i];
    }
    free(bus->participants);
    bus->participants = list;
    bus->n_participant = kept;
}

bool cli_bus_discover(cli_bus *bus) {
    list_endpoints(bus);
    list_participants(bus);
    uint64_t print = 1;
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        print = us_hash_bytes(print, bus->endpoints[i].id, sizeof bus->endpoints[i].id);
        print = us_hash_bytes(print, bus->endpoints[i].node, strlen(bus->endpoints[i].node));
    }
    for (int32_t i = 0; i < bus->n_participant; i++)
        print = us_hash_bytes(print, bus->participants[i].id, sizeof bus->participants[i].id);
    bool is_new = print != bus->fingerprint;
    bus->fingerprint = print;
    return is_new;
}

// True while a program that publishes its nodes has not been received: its endpoints have no names yet.
static bool is_name_missing(const cli_bus *bus) {
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        const us_endpoint *e = &bus->endpoints[i];
        if (!e->is_writer || strcmp(e->topic, "ros_discovery_info") != 0) continue;
        bool has_name = false, has_topic = false;
        for (int32_t k = 0; k < bus->n_endpoint && !has_name; k++) {
            const us_endpoint *own = &bus->endpoints[k];
            if (memcmp(own->participant, e->participant, sizeof e->participant) != 0) continue;
            has_name = own->node[0] != 0;
            has_topic = has_topic || cli_is_ros_topic(own->topic);
        }
        if (has_topic && !has_name) return true;
    }
    return false;
}

void cli_bus_settle(cli_bus *bus, double timeout) {
    const double quiet = 0.3;
    double now = cli_clock(), until = now + timeout, last = now;
    for (;;) {
        if (cli_bus_discover(bus)) last = cli_clock();
        now = cli_clock();
        // Discovery may not be complete yet.
        bool is_quiet =
            bus->n_participant > 0 && bus->n_endpoint > 0 && now - last >= quiet && !is_name_missing(bus);
        if (is_quiet || now >= until || cli_is_stopped()) return;
        cli_pause(0.02);
    }
}

// ---- topics ----

void cli_ros_topic(const char *dds, char out[CLI_NAME_MAX]) {
    snprintf(out, CLI_NAME_MAX, "%s", cli_is_ros_topic(dds) ? dds + 2 : dds);
}

void cli_ros_type(const char *dds, char out[CLI_NAME_MAX]) {
    const char *middle = strstr(dds, "::dds_::");
    size_t length = strlen(dds);
    const char *first = middle ? strstr(dds, "::") : NULL;
    if (!first || first >= middle || dds[length - 1] != '_' || length >= CLI_NAME_MAX) {
        snprintf(out, CLI_NAME_MAX, "%s", dds);
        return;
    }
    const char *name = middle + strlen("::dds_::");
    snprintf(out, CLI_NAME_MAX, "%.*s/%.*s/%.*s", (int)(first - dds), dds, (int)(middle - first - 2),
             first + 2, (int)(dds + length - 1 - name), name);
}

void cli_bus_topic(const char *dds, char out[CLI_NAME_MAX]) {
    if (cli_is_ros_topic(dds)) {
        cli_ros_topic(dds, out);
    } else {
        snprintf(out, CLI_NAME_MAX, "dds:%.*s", CLI_NAME_MAX - 5, dds);
    }
}

int cli_read_interface(const cli_list *files, us_interface **out_types) {
    *out_types = NULL;
    if (files->n == 0) return CLI_GO_ON;
    us_error err = {0};
    us_interface_def def = us_interface_def_default();
    def.n_file = files->n;
    def.files = files->item;
    if (!us_interface_load(&def, out_types, &err)) return CLI_GO_ON;
    cli_print_error(&err);
    return cli_input_code(&err);
}

const us_message_type *cli_find_type(const us_interface *types, const char *name) {
    const us_message_type *own = types ? us_interface_find(types, name) : NULL;
    return own ? own : us_message_find(name);
}

bool cli_dds_topic(const char *topic, char out[CLI_NAME_MAX]) {
    const bool is_plain = strncmp(topic, "dds:", 4) == 0;
    if (is_plain) topic += 4;
    int n = snprintf(out, CLI_NAME_MAX,
                     is_plain || cli_is_ros_topic(topic) ? "%s"
                     : topic[0] == '/'                   ? "rt%s"
                                                         : "rt/%s",
                     topic);
    return n > 0 && n < CLI_NAME_MAX;
}

us_qos cli_qos_for_reader(const cli_bus *bus, const char *dds_topic, int32_t depth) {
    us_qos qos = {.is_reliable = true, .is_transient_local = true, .depth = depth};
    int32_t n = 0;
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        const us_endpoint *e = &bus->endpoints[i];
        if (!e->is_writer || strcmp(e->topic, dds_topic) != 0) continue;
        n++;
        qos.is_reliable = qos.is_reliable && e->qos.is_reliable;
        qos.is_transient_local = qos.is_transient_local && e->qos.is_transient_local;
        if (!qos.partition[0]) snprintf(qos.partition, sizeof qos.partition, "%s", e->partitions);
    }
    // Best effort and volatile matches every writer.
    if (n == 0) qos.is_reliable = qos.is_transient_local = false;
    return qos;
}

// The DDS names of the topics, each once. Caller frees the array.
static const char **list_topics(const cli_bus *bus, int32_t *out_n) {
    const char **names = cli_allocate((size_t)bus->n_endpoint, sizeof *names);
    int32_t n = 0;
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        const char *topic = bus->endpoints[i].topic;
        if (cli_is_ros_topic(topic) && (n == 0 || strcmp(names[n - 1], topic + 2) != 0))
            names[n++] = topic + 2;
    }
    *out_n = n;
    return names;
}

bool cli_bus_nearest(const cli_bus *bus, const char *topic, char out[CLI_NAME_MAX]) {
    int32_t n = 0;
    const char **names = list_topics(bus, &n);
    // A name without the robot before it ends like the one that is meant.
    const char *near = cli_nearest(topic, names, n);
    if (!near && topic[0] == '/') near = cli_nearest(topic + 1, names, n);
    if (near) snprintf(out, CLI_NAME_MAX, "%s", near);
    free(names);
    return near != NULL;
}

int32_t cli_bus_n_topic(const cli_bus *bus) {
    int32_t n = 0;
    free(list_topics(bus, &n));
    return n;
}

const char *cli_qos_text(us_qos qos) {
    if (qos.is_reliable) return qos.is_transient_local ? "reliable, transient local" : "reliable";
    return qos.is_transient_local ? "best effort, transient local" : "best effort";
}

// ---- time and signals ----

static int64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double cli_clock(void) { return 1e-9 * (double)read_clock(CLOCK_MONOTONIC); }

int64_t cli_wall_ns(void) { return read_clock(CLOCK_REALTIME); }

static volatile sig_atomic_t stop_requested;
static void (*last_rites)(void);
static struct sigaction before[NSIG];  // what each signal did before; zeros: what the system does

// Ends the program as the signal would have: by what was set before, which may have something to say.
static void on_end(int number) {
    if (last_rites) last_rites();
    sigaction(number, &before[number], NULL);
    raise(number);
}

static void on_stop(int number) {
    if (stop_requested) on_end(number);
    stop_requested = 1;
}

void cli_catch_stop(void (*rites)(void)) {
    static const int ends[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    last_rites = rites;
    struct sigaction stop = {.sa_handler = on_stop}, end = {.sa_handler = on_end};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&end.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    // A file that may not become larger is a write error like any other.
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGXFSZ, &ignore, NULL);
    for (size_t i = 0; rites && i < sizeof ends / sizeof ends[0]; i++)
        sigaction(ends[i], &end, &before[ends[i]]);
}

double cli_standstill(double *last) {
    const double now = cli_clock(), gap = now - *last;
    *last = now;
    return gap > 1 ? gap : 0;
}

void cli_measure(double seconds) {
    double last = cli_clock();
    const double until = last + seconds;
    while (!cli_is_stopped() && last < until) {
        cli_pause(0.05);
        const double gap = cli_standstill(&last);
        if (gap > 0)
            cli_warn("measure again, and let nothing stop this program meanwhile",
                     "stood still for %.1f s: what was measured in that time is wrong", gap);
    }
}

void cli_note_stop(void) { stop_requested = 1; }

bool cli_is_stopped(void) { return stop_requested != 0; }

void cli_pause(double seconds) {
    if (seconds <= 0) return;
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

// ---- a line that is rewritten ----

void cli_line_show(const char *format, ...) {
    char text[512];
    struct winsize size;
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1 : 79;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "\r%.*s\033[K", width, text);
    fflush(stderr);
}

void cli_line_clear(void) {
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

void cli_bar(double share, char *out, size_t cap) {
    static const char full[] = "########################", empty[] = "........................";
    const int length = (int)sizeof full - 1;
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    int n = (int)(share * length);
    snprintf(out, cap, "%3.0f %% [%.*s%.*s]", 100 * share, n, full, length - n, empty);
}

bool cli_is_listed(const char *list, const char *topic) {
    if (!list) return true;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        const char *name = topic + (at[0] == '/' ? 0 : 1);
        if (strlen(name) == n && strncmp(at, name, n) == 0) return true;
        at += n + (at[n] ? 1 : 0);
    }
    return false;
}
