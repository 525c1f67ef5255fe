#include "net_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "domain.h"

// ---------------------------------------------------------------- time

double net_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void net_nap(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

int32_t net_domain(void) { return test_domain_of(0); }

// ---------------------------------------------------------------- files

void net_write_text(const char *path, const char *format, ...) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    va_list args;
    va_start(args, format);
    assert_true(vfprintf(file, format, args) >= 0);
    va_end(args);
    assert_int_equal(fclose(file), 0);
}

char *net_read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t cap = 1 << 20;
    char *text = malloc(cap);
    assert_non_null(text);
    size_t n = fread(text, 1, cap - 1, file);
    text[n] = 0;
    fclose(file);
    return text;
}

void net_write_k10(const char *path, const char *inside) {
    net_write_scene(path, "<shape name='ground' type='half-space'/>", "", inside);
}

void net_write_scene(const char *path, const char *world, const char *materials, const char *inside) {
    net_write_text(
        path,
        "<scene name='flat' version='1'><world step='1 ms'>%s</world>%s"
        "<default name='wheel'><drive kd='40'/></default><default name='steer'><drive kp='800' "
        "kd='60'/></default>"
        "<robot name='k10' file='" US_SOURCE_DIR "/models/k10.urdf' base='floating'>"
        "<drive joint='front_left_steer' default='steer'/><drive joint='rear_left_steer' default='steer'/>"
        "<drive joint='front_right_steer' default='steer'/><drive joint='rear_right_steer' default='steer'/>"
        "<drive joint='front_left_drive' default='wheel'/><drive joint='rear_left_drive' default='wheel'/>"
        "<drive joint='front_right_drive' default='wheel'/><drive joint='rear_right_drive' default='wheel'/>"
        "<locomotion type='all-wheel' max-speed='0.9 m/s' max-turn='1.5 rad/s' max-acceleration='1 m/s^2'>"
        "<wheel drive='front_left_drive' steer='front_left_steer' radius='0.18 m'/>"
        "<wheel drive='front_right_drive' steer='front_right_steer' radius='0.18 m'/>"
        "<wheel drive='rear_left_drive' steer='rear_left_steer' radius='0.18 m'/>"
        "<wheel drive='rear_right_drive' steer='rear_right_steer' radius='0.18 m'/>"
        "</locomotion><battery capacity='1 Wh' idle='40 W' voltage='48 V'/>%s</robot></scene>\n",
        world, materials, inside);
}

// ---------------------------------------------------------------- the program

static pid_t running;
static const char *rmw;
static const char *const OUTPUT = "run.out";

static void kill_running(void) {
    if (running <= 0) return;
    kill(running, SIGKILL);
    waitpid(running, NULL, 0);
    running = 0;
}

int net_teardown(void **state) {
    (void)state;
    kill_running();
    return 0;
}

static const char *static_peers;
void net_set_static_peers(const char *peers) { static_peers = peers; }

void net_set_rmw(const char *name) { rmw = name; }

// The program's environment: this one's, with the settings of the network as they are asked for.
static char **make_environment(const char *domain) {
    static const char *const names[] = {"ROS_DOMAIN_ID=",      "ROS_AUTOMATIC_DISCOVERY_RANGE=",
                                        "ROS_STATIC_PEERS=",   "RMW_IMPLEMENTATION=",
                                        "ROS_LOCALHOST_ONLY=", "CYCLONEDDS_URI="};
    const char *const values[] = {domain, "LOCALHOST", static_peers, rmw, NULL, NULL};
    enum { N_NAME = sizeof names / sizeof *names };
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **out = calloc(n + N_NAME + 1, sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        bool is_set_here = false;
        for (size_t j = 0; j < N_NAME; j++)
            is_set_here = is_set_here || strncmp(environ[i], names[j], strlen(names[j])) == 0;
        if (!is_set_here) out[k++] = strdup(environ[i]);
    }
    for (size_t j = 0; j < N_NAME; j++) {
        if (!values[j]) continue;
        const size_t length = strlen(names[j]) + strlen(values[j]) + 1;
        out[k] = malloc(length);
        assert_non_null(out[k]);
        snprintf(out[k++], length, "%s%s", names[j], values[j]);
    }
    return out;
}

static void free_environment(char **environment) {
    for (char **at = environment; *at; at++)
        free(*at);
    free(environment);
}

void net_run(const char *format, ...) {
    enum { MAX_ARGUMENT = 40 };
    char line[4096] = "", *arguments[MAX_ARGUMENT + 1], number[16], name[] = "understudy", command[] = "run";
    kill_running();
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    int n = 0;
    arguments[n++] = name;
    arguments[n++] = command;
    for (char *rest = line, *part; n < MAX_ARGUMENT && (part = strsep(&rest, " ")) != NULL;)
        arguments[n++] = part;
    arguments[n] = NULL;
    snprintf(number, sizeof number, "%d", (int)net_domain());
    // Made before the fork: between fork and exec a lock of the allocator that another thread held stays
    // held.
    char **environment = make_environment(number);
    const char *path = getenv("US_PROGRAM");
    pid_t parent = getpid();
    running = fork();
    assert_true(running >= 0);
    if (running > 0) {
        free_environment(environment);
        return;
    }
    // Here it is the child. It does not outlive a test that dies.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    int out = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0666), in = open("/dev/null", O_RDONLY);
    if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
    execve(path ? path : US_PROGRAM, arguments, environment);
    _exit(127);
}

int net_process(void) { return running; }

int net_end(int signal_number) {
    int status = 0;
    assert_true(running > 0);
    if (signal_number) kill(running, signal_number);
    double until = net_clock() + NET_PATIENCE;
    while (waitpid(running, &status, WNOHANG) == 0) {
        if (net_clock() > until) net_fail("waited for", "the end of the program");
        net_nap();
    }
    running = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *net_output(void) {
    static char text[1 << 16];
    FILE *file = fopen(OUTPUT, "rb");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file) fclose(file);
    return text;
}

void net_fail(const char *what, const char *detail) {
    kill_running();
    fail_msg("%s: %s\nthe program said:\n%s", what, detail, net_output());
}

int net_free_port(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_true(s >= 0);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&at, &size), 0);
    close(s);
    return ntohs(at.sin_port);
}

// ---------------------------------------------------------------- the peer

typedef struct listener {
    net_peer *p;
    const us_message_type *type;
    us_reader *reader;
    net_heard *heard;
    int64_t n, cap;
} listener;

struct net_peer {
    us_bus *bus;
    pthread_mutex_t lock;
    listener ears[NET_EARS];  // the first is that of /clock
    int32_t n_ear;
    int64_t n_heard;
    double clock;
};

static void expect_ok(us_status status, const us_error *err) {
    if (status == US_OK) return;
    char text[1200];
    us_error_format(err, text, sizeof text);
    net_fail(us_status_text(status), text);
}

static double seconds(const us_message_type *type, const void *bytes, size_t length, const char *path) {
    char full[100];
    snprintf(full, sizeof full, "%s.sec", path);
    double s = us_message_get_number(type, bytes, length, full);
    snprintf(full, sizeof full, "%s.nanosec", path);
    return s + 1e-9 * us_message_get_number(type, bytes, length, full);
}

// Runs on a thread of the vendor.
static void hear(void *context, const us_sample *sample) {
    listener *e = context;
    net_peer *p = e->p;
    pthread_mutex_lock(&p->lock);
    if (e->n == e->cap) {
        int64_t cap = e->cap ? 2 * e->cap : 256;
        net_heard *more = realloc(e->heard, (size_t)cap * sizeof *more);
        if (more) {
            e->heard = more;
            e->cap = cap;
        }
    }
    uint8_t *bytes = malloc(sample->length + 1);
    if (bytes && e->n < e->cap) {
        memcpy(bytes, sample->bytes, sample->length);
        e->heard[e->n++] = (net_heard){bytes, sample->length, p->n_heard++, p->clock};
        if (e == &p->ears[0]) p->clock = seconds(e->type, bytes, sample->length, "clock");
    } else {
        free(bytes);
    }
    pthread_mutex_unlock(&p->lock);
}

net_peer *net_open(const char *vendor) {
    us_bus_def def = us_bus_def_default();
    us_error err = {0};
    us_bus *bus = NULL;
    def.vendor = vendor;
    def.domain = net_domain();
    us_status status = us_bus_open(&def, &bus, &err);
    if (status && strstr(err.message, "libunderstudy-")) return NULL;
    expect_ok(status, &err);
    net_peer *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->bus = bus;
    p->clock = -1;
    pthread_mutex_init(&p->lock, NULL);
    net_listen(p, "/clock", usi_type_clock);
    return p;
}

void net_close(net_peer *p) {
    // No callback runs afterwards.
    us_bus_close(p->bus);
    for (int32_t i = 0; i < p->n_ear; i++) {
        for (int64_t k = 0; k < p->ears[i].n; k++)
            free(p->ears[i].heard[k].bytes);
        free(p->ears[i].heard);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

us_bus *net_bus(net_peer *p) { return p->bus; }

double net_time(net_peer *p) {
    pthread_mutex_lock(&p->lock);
    double time = p->clock;
    pthread_mutex_unlock(&p->lock);
    return time;
}

void net_wait_until(net_peer *p, double time) { NET_WAIT(net_time(p) >= time); }

// ---------------------------------------------------------------- listening

int32_t net_listen(net_peer *p, const char *topic, const us_message_type *type) {
    us_error err = {0};
    assert_true(p->n_ear < NET_EARS);
    listener *e = &p->ears[p->n_ear++];
    *e = (listener){.p = p, .type = type};
    us_qos qos = us_qos_for_topic(topic, type);
    // All is kept: a late look misses nothing.
    qos.depth = 0;
    expect_ok(us_bus_add_reader(p->bus, &(us_topic_def){topic, type, qos, -1}, hear, e, &e->reader, &err),
              &err);
    return p->n_ear - 1;
}

void net_wait_match(net_peer *p, int32_t ear) { NET_WAIT(us_reader_n_match(p->ears[ear].reader) > 0); }

int64_t net_count(net_peer *p, int32_t ear) {
    pthread_mutex_lock(&p->lock);
    int64_t n = p->ears[ear].n;
    pthread_mutex_unlock(&p->lock);
    return n;
}

net_heard net_get(net_peer *p, int32_t ear, int64_t i) {
    pthread_mutex_lock(&p->lock);
    int64_t n = p->ears[ear].n, at = i < 0 ? n + i : i;
    net_heard heard = at >= 0 && at < n ? p->ears[ear].heard[at] : (net_heard){0};
    pthread_mutex_unlock(&p->lock);
    assert_non_null(heard.bytes);
    return heard;
}

double net_number(net_peer *p, int32_t ear, int64_t i, const char *path) {
    net_heard heard = net_get(p, ear, i);
    return us_message_get_number(p->ears[ear].type, heard.bytes, heard.length, path);
}

double net_stamp(net_peer *p, int32_t ear, int64_t i) {
    net_heard heard = net_get(p, ear, i);
    const us_message_type *type = p->ears[ear].type;
    const char *path = type == usi_type_clock        ? "clock"
                       : type == usi_type_tf_message ? "transforms[0].header.stamp"
                                                     : "header.stamp";
    return seconds(type, heard.bytes, heard.length, path);
}

const void *net_decode(net_peer *p, int32_t ear, int64_t i) {
    static _Alignas(16) uint8_t memory[1 << 22];
    net_heard heard = net_get(p, ear, i);
    const void *message = NULL;
    us_error err = {0};
    expect_ok(us_message_decode(p->ears[ear].type, heard.bytes, heard.length, memory, sizeof memory, &message,
                                &err),
              &err);
    return message;
}

int64_t net_wait_after(net_peer *p, int32_t ear, double time) {
    int64_t from = 0;
    double until = net_clock() + NET_PATIENCE;
    for (;;) {
        for (int64_t n = net_count(p, ear); from < n; from++) {
            if (net_stamp(p, ear, from) > time) return from;
        }
        if (net_clock() > until) net_fail("waited for", us_message_name(p->ears[ear].type));
        net_nap();
    }
}

// ---------------------------------------------------------------- speaking

us_writer *net_speak(net_peer *p, const char *topic, const us_message_type *type) {
    us_error err = {0};
    us_writer *writer = NULL;
    expect_ok(us_bus_add_writer(p->bus, &(us_topic_def){topic, type, us_qos_for_topic(topic, type), -1},
                                &writer, &err),
              &err);
    NET_WAIT(us_writer_n_match(writer) > 0);
    return writer;
}

void net_say(us_writer *writer, const us_message_type *type, const void *message) {
    uint8_t bytes[1 << 14];
    size_t length = 0;
    assert_int_equal(us_message_encode(type, message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
}
