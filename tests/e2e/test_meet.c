// Programs of ours and of ROS 2 on one machine meet in the cases in which two programs of ROS 2 meet.
//
// The machine is a network namespace with a loopback and one interface more. Theirs are meet_cyclone and
// meet_fastdds: plain DDS programs with the settings that the rmw layers of Humble and of Jazzy give. Ours is
// this program, started again. Each pair has a domain of its own, so that several run at a time.
//
// What is expected stands in a table. With US_LONG_TESTS all of it is run, and it is compared with its judge:
// two programs of theirs, one of them with our environment. Humble and Jazzy read the same variables in
// different ways: ours has to meet whom one of the two meets.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shell.h"
#include "test_bus_support.h"

enum { N_AT_A_TIME = 6, N_ENVIRONMENT = 7, N_THEIRS = 16, N_VENDOR = 2 };

// s: beyond what a busy machine needs; how long two are watched who must not meet; how long the judge waits,
// which is more than the 8 s after which Cyclone DDS announces itself again.
#define MEET_PATIENCE 40.0
#define APART_TIME 2.0
#define JUDGE_TIME 10.0

// ---- environments ----

typedef struct environment {
    const char *name, *range, *only, *peers;
} environment;

static const environment environments[N_ENVIRONMENT] = {
    {"nothing", NULL, NULL, NULL},
    {"SUBNET", "SUBNET", NULL, NULL},
    {"LOCALHOST", "LOCALHOST", NULL, NULL},
    {"SYSTEM_DEFAULT", "SYSTEM_DEFAULT", NULL, NULL},
    {"OFF", "OFF", NULL, NULL},
    {"localhost only", NULL, "1", NULL},
    {"a peer", NULL, NULL, "10.77.0.1"},
};

typedef struct program {
    const char *vendor;   // "cyclone" or "fastdds"
    const char *release;  // "humble" or "jazzy"; "ours"
    int environment;
} program;

static const program theirs[N_THEIRS] = {
    {"cyclone", "humble", 0}, {"cyclone", "humble", 5}, {"cyclone", "jazzy", 0}, {"cyclone", "jazzy", 2},
    {"cyclone", "jazzy", 3},  {"cyclone", "jazzy", 4},  {"cyclone", "jazzy", 5}, {"cyclone", "jazzy", 6},
    {"fastdds", "humble", 0}, {"fastdds", "humble", 5}, {"fastdds", "jazzy", 0}, {"fastdds", "jazzy", 2},
    {"fastdds", "jazzy", 3},  {"fastdds", "jazzy", 4},  {"fastdds", "jazzy", 5}, {"fastdds", "jazzy", 6},
};

// For each environment of ours, in the order above, who is met: + yes, - no, ! yes though two of theirs do
// not, ~ no though two of theirs do, over shared memory, which ours does without. The programs of theirs in
// the order above.
static const char *const expected[N_VENDOR][N_ENVIRONMENT] = {
    {
        "+!+++-++ +++++-++",
        "+-+++-++ +++++-++",
        "+!+++-++ +++++-++",
        "+-+-+--+ +++-+--+",
        "-------- --------",
        "-+++--++ +++++-++",
        "+!+++-++ +++++-++",
    },
    {
        "+!+++-++ +++++-++",
        "+-+++-++ +~+++-++",
        "+!+++-++ +++++-++",
        "+-+++-++ +~+++-++",
        "-------- --------",
        "+++++-++ +++++-++",
        "+!+++-++ +++++-++",
    },
};

// ---- programs ----

typedef struct child {
    pid_t pid;
    int in, out;
    char text[64];
    size_t n;
    double ready, met;  // when, s; 0: not yet
} child;

static void set_variable(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static bool start(const program *p, int32_t domain, const char *out, const char *in, child *c) {
    const environment *e = &environments[p->environment];
    const bool is_ours = strcmp(p->release, "ours") == 0;
    char path[512], number[16];
    snprintf(path, sizeof path, "%s/tests/e2e/meet_%s", US_BINARY_DIR, p->vendor);
    snprintf(number, sizeof number, "%d", (int)domain);
    set_variable("ROS_AUTOMATIC_DISCOVERY_RANGE", e->range);
    set_variable("ROS_LOCALHOST_ONLY", e->only);
    set_variable("ROS_STATIC_PEERS", e->peers);
    set_variable("ROS_DOMAIN_ID", number);
    set_variable("RMW_IMPLEMENTATION",
                 strcmp(p->vendor, "cyclone") == 0 ? "rmw_cyclonedds_cpp" : "rmw_fastrtps_cpp");
    const char *arguments[] = {
        is_ours ? "/proc/self/exe" : path, is_ours ? "--ours" : p->release, number, out, in, NULL};
    int to[2], from[2];
    *c = (child){.pid = -1};
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    union {
        const char **in;
        char *const *out;
    } list = {.in = arguments};
    const int failed = posix_spawn(&c->pid, arguments[0], &actions, NULL, list.out, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    c->in = to[1];
    c->out = from[0];
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    return !failed;
}

// What it has said since. False when it has ended.
static bool listen_to(child *c) {
    const ssize_t n = read(c->out, c->text + c->n, sizeof c->text - 1 - c->n);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
    if (n > 0) c->n += (size_t)n;
    c->text[c->n] = 0;
    if (c->ready == 0 && strstr(c->text, "ready\n")) c->ready = clock_now();
    if (c->met == 0 && strstr(c->text, "met\n")) c->met = clock_now();
    return true;
}

static void end(child *c) {
    if (c->pid <= 0) return;
    close(c->in);
    close(c->out);
    waitpid(c->pid, NULL, 0);
    c->pid = -1;
}

// ---- pairs ----

typedef struct pair {
    program first, second;
    double patience;  // s, from when both have joined
    int32_t domain;
    int step;  // 0 not begun, 1 the first begun, 2 both, 3 over
    child children[2];
    bool has_met;
    double time;  // s, from when the second had joined
} pair;

static void name_pair(const pair *p, char out[200]) {
    snprintf(out, 200, "%s %s (%s) and then %s %s (%s)", p->first.release, p->first.vendor,
             environments[p->first.environment].name, p->second.release, p->second.vendor,
             environments[p->second.environment].name);
}

static void fail_pair(const pair *p, const char *what) {
    char name[200];
    name_pair(p, name);
    fail_msg("%s: %s", name, what);
}

// The second begins when the first has joined.
static void advance(pair *p) {
    child *a = &p->children[0], *b = &p->children[1];
    if (p->step == 0) {
        if (!start(&p->first, p->domain, "a", "b", a)) fail_pair(p, "the first does not start");
        p->step = 1;
        return;
    }
    if (!listen_to(a)) fail_pair(p, "the first has ended");
    if (p->step == 1) {
        if (a->ready == 0) return;
        if (!start(&p->second, p->domain, "b", "a", b)) fail_pair(p, "the second does not start");
        p->step = 2;
        return;
    }
    if (!listen_to(b)) fail_pair(p, "the second has ended");
    p->has_met = a->met > 0 && b->met > 0;
    if (b->ready == 0 || (!p->has_met && clock_now() < b->ready + p->patience)) return;
    if (p->has_met) p->time = fmax(a->met, b->met) - b->ready;
    end(a);
    end(b);
    p->step = 3;
}

static void run_pairs(pair *pairs, int n) {
    int n_over = 0;
    while (n_over < n) {
        int n_running = 0;
        n_over = 0;
        for (int i = 0; i < n && n_running < N_AT_A_TIME; i++) {
            pair *p = &pairs[i];
            p->domain = 1 + i % 200;
            if (p->step < 3) {
                advance(p);
                n_running++;
            }
            n_over += p->step == 3;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

// ---- the machine ----

static bool has_fastdds_program(void) { return access(US_BINARY_DIR "/tests/e2e/meet_fastdds", X_OK) == 0; }

static int make_machine(void **state) {
    (void)state;
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        fprintf(stderr, "no network namespace (%s): run as root, or allow user namespaces\n",
                strerror(errno));
        return -1;
    }
    // Nobody stands at the other end of the wire. Without IPv6 the kernel itself says nothing on it.
    const bool is_made =
        shell("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; "
              "ip link set lo up && ip link add us type veth peer name them && "
              "ip addr add 10.77.0.1/24 dev us && ip link set us up && ip link set them up && "
              "ip route add default via 10.77.0.2 dev us");
    if (!is_made) fprintf(stderr, "the interfaces cannot be made: install iproute2\n");
    return is_made ? 0 : -1;
}

// Packets that have left the machine.
static long n_sent(void) {
    FILE *file = fopen("/proc/self/net/dev", "r");
    char line[512];
    long n = -1;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "us:");
        if (at && sscanf(at + 3, "%*d %*d %*d %*d %*d %*d %*d %*d %*d %ld", &n) != 1) n = -1;
    }
    fclose(file);
    assert_true(n >= 0);
    return n;
}

// ---- tests ----

static char expect_of(int vendor, int env, int them) {
    const char *row = expected[vendor][env];
    return row[them + (them >= 8)];
}

static bool is_apart(char answer) { return answer == '-' || answer == '~'; }

static const char *const vendors[N_VENDOR] = {"cyclone", "fastdds"};

// All, or a part of it that has every environment and everybody of theirs.
static bool is_chosen(int vendor, int env, int them) {
    if (getenv("US_LONG_TESTS")) return true;
    if (vendor == 0) return env == 0 || env == 5 || them % 4 == env % 4;
    return them % 4 == env % 4;
}

static void ours_meet_whom_theirs_meet(void **state) {
    (void)state;
    static pair pairs[N_VENDOR * N_ENVIRONMENT * N_THEIRS];
    static char meets[N_VENDOR * N_ENVIRONMENT * N_THEIRS];
    int n = 0, n_wrong = 0;
    for (int v = 0; v < (has_fastdds_program() ? N_VENDOR : 1); v++) {
        for (int e = 0; e < N_ENVIRONMENT; e++) {
            for (int t = 0; t < N_THEIRS; t++) {
                if (!is_chosen(v, e, t) || (!has_fastdds_program() && t >= 8)) continue;
                const program ours = {vendors[v], "ours", e};
                const bool is_first = (v + e + t) % 2 == 0;
                const char answer = expect_of(v, e, t);
                meets[n] = answer;
                pairs[n++] = (pair){.first = is_first ? ours : theirs[t],
                                    .second = is_first ? theirs[t] : ours,
                                    .patience = is_apart(answer) ? APART_TIME : MEET_PATIENCE};
            }
        }
    }
    if (!getenv("US_LONG_TESTS")) assert_true(n >= (has_fastdds_program() ? 60 : 20));
    run_pairs(pairs, n);
    for (int i = 0; i < n; i++) {
        if (pairs[i].has_met != is_apart(meets[i])) continue;
        char name[200];
        name_pair(&pairs[i], name);
        print_error("%s: %s\n", name, pairs[i].has_met ? "met" : "did not meet");
        n_wrong++;
    }
    print_message("%d pairs\n", n);
    assert_int_equal(n_wrong, 0);
}

// The judge: two of theirs.
static void the_table_says_what_theirs_do(void **state) {
    (void)state;
    static pair pairs[2 * N_VENDOR * N_ENVIRONMENT * N_THEIRS];
    if (!getenv("US_LONG_TESTS") || !has_fastdds_program()) {
        print_message("skipped: with US_LONG_TESTS and Fast DDS\n");
        return;
    }
    int n = 0, n_wrong = 0;
    for (int i = 0; i < N_VENDOR * N_ENVIRONMENT * N_THEIRS * 2; i++) {
        const int t = i / 2 % N_THEIRS, e = i / 2 / N_THEIRS % N_ENVIRONMENT;
        const program like_ours = {vendors[i / 2 / N_THEIRS / N_ENVIRONMENT], i % 2 ? "jazzy" : "humble", e};
        pairs[n++] = (pair){.first = like_ours, .second = theirs[t], .patience = JUDGE_TIME};
    }
    run_pairs(pairs, n);
    for (int i = 0; i < n; i += 2) {
        const int t = i / 2 % N_THEIRS, e = i / 2 / N_THEIRS % N_ENVIRONMENT,
                  v = i / 2 / N_THEIRS / N_ENVIRONMENT;
        // OFF is a word of later releases; where Humble would not know it, ours does.
        const bool met = (pairs[i].has_met && e != 4) || pairs[i + 1].has_met;
        const char answer = expect_of(v, e, t);
        if (met == (answer == '+' || answer == '~')) continue;
        char name[200];
        name_pair(&pairs[i + 1], name);
        print_error("%s: two of theirs %s\n", name, met ? "met" : "did not meet");
        n_wrong++;
    }
    assert_int_equal(n_wrong, 0);
}

// Without settings, in both orders: the mean of some tries is no more than theirs and half a second.
static void ours_are_found_as_soon_as_theirs(void **state) {
    (void)state;
    enum { N_TRY = 8, N_KIND = 4 };
    static const int kinds[N_KIND] = {0, 2, 8, 10};
    static pair pairs[2 * N_KIND * 2 * N_TRY];
    if (!getenv("US_LONG_TESTS") || !has_fastdds_program()) {
        print_message("skipped: with US_LONG_TESTS and Fast DDS\n");
        return;
    }
    double mean[N_KIND][2][2] = {{{0}}};  // s, by kind, order, and who: theirs, ours
    int n = 0;
    for (int k = 0; k < N_KIND; k++) {
        for (int i = 0; i < 2 * 2 * N_TRY; i++) {
            const program p = {"cyclone", i % 2 ? "ours" : "jazzy", 0}, them = theirs[kinds[k]];
            const bool is_first = i / 2 % 2 == 0;
            pairs[n++] = (pair){
                .first = is_first ? p : them, .second = is_first ? them : p, .patience = MEET_PATIENCE};
        }
    }
    run_pairs(pairs, n);
    for (int i = 0; i < n; i++) {
        if (!pairs[i].has_met) fail_pair(&pairs[i], "did not meet");
        mean[i / (4 * N_TRY)][i / 2 % 2][i % 2] += pairs[i].time / N_TRY;
    }
    for (int k = 0; k < N_KIND; k++) {
        for (int order = 0; order < 2; order++) {
            const double *m = mean[k][order];
            print_message("%s %s, %s: theirs %.2f s, ours %.2f s\n", theirs[kinds[k]].release,
                          theirs[kinds[k]].vendor, order ? "first" : "second", m[0], m[1]);
            assert_true(m[1] <= m[0] + 0.5);
        }
    }
}

// Two of ours that meet, and one of theirs that ours answers: the network hears of none of it.
static void nothing_leaves_the_machine(void **state) {
    (void)state;
    for (int v = 0; v < (has_fastdds_program() ? N_VENDOR : 1); v++) {
        for (int e = 0; e < N_ENVIRONMENT; e++) {
            if (e == 1 || e == 3 || e == 4) continue;  // those who ask for the network, or for nobody
            const program ours = {vendors[v], "ours", e};
            const long before = n_sent();
            pair p = {.first = ours, .second = ours, .patience = MEET_PATIENCE};
            run_pairs(&p, 1);
            if (!p.has_met) fail_pair(&p, "did not meet");
            if (n_sent() != before) fail_pair(&p, "packets left the machine");
        }
    }
    // The count would show it.
    const long before = n_sent();
    pair p = {.first = {"cyclone", "ours", 1}, .second = {"cyclone", "ours", 1}, .patience = MEET_PATIENCE};
    run_pairs(&p, 1);
    assert_true(p.has_met);
    assert_true(n_sent() > before);
}

// ---- ours ----

static atomic_bool is_heard;

static void on_sample(void *context, const us_sample *sample) {
    (void)context;
    if (sample->length >= 13 && memcmp((const char *)sample->bytes + 8, "here", 5) == 0)
        atomic_store(&is_heard, true);
}

static int be_ours(char **arguments) {
    us_bus_def def = us_bus_def_default();
    us_error err = {0};
    char text[US_BUS_TEXT], topic[2][64];
    us_bus *bus = NULL;
    us_writer *writer = NULL;
    us_reader *reader = NULL;
    const us_qos qos = {.is_reliable = true, .depth = 10};
    for (int i = 0; i < 2; i++)
        snprintf(topic[i], sizeof topic[i], "/meet/%s", arguments[i + 3]);
    if (us_bus_def_from_environment(&def, text, sizeof text, &err) || us_bus_open(&def, &bus, &err) ||
        us_bus_add_writer(bus, &(us_topic_def){topic[0], usi_type_string, qos, -1}, &writer, &err) ||
        us_bus_add_reader(bus, &(us_topic_def){topic[1], usi_type_string, qos, -1}, on_sample, NULL, &reader,
                          &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    bool has_met = false;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    static const uint8_t here[] = {0, 1, 0, 0, 5, 0, 0, 0, 'h', 'e', 'r', 'e', 0};
    while (poll(&in, 1, 10) == 0) {
        if (us_writer_n_match(writer) == 0) continue;
        us_writer_write(writer, here, sizeof here, 0);
        if (has_met || !atomic_load(&is_heard)) continue;
        has_met = true;
        printf("met\n");
        fflush(stdout);
    }
    us_bus_set_linger(bus, 0);
    us_bus_close(bus);
    return 0;
}

int main(int n, char **arguments) {
    if (n == 5 && strcmp(arguments[1], "--ours") == 0) return be_ours(arguments);
    unsetenv("CYCLONEDDS_URI");
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        // First: the kernel tells of groups that others have left some seconds later.
        cmocka_unit_test(nothing_leaves_the_machine),
        cmocka_unit_test(ours_meet_whom_theirs_meet),
        cmocka_unit_test(the_table_says_what_theirs_do),
        cmocka_unit_test(ours_are_found_as_soon_as_theirs),
    };
    return cmocka_run_group_tests(tests, make_machine, NULL);
}
