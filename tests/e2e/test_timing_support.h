// Can it be told who plays, the hardware or the proxy? What the test of that hears: a recording of what
// operators see beside the numbers, and windows of it as lists of numbers for the classifier of
// test_timing_classifier.h.
#ifndef UNDERSTUDY_TEST_TIMING_SUPPORT_H
#define UNDERSTUDY_TEST_TIMING_SUPPORT_H

#include "test_hardware_support.h"
#include "test_timing_classifier.h"

// ---- what is heard ----

enum { JOINTS, ODOM, TF, IMU, MOTORS, N_FAST, BATTERY = N_FAST, DIAGNOSTICS, N_TOPIC, MAX_RECORD = 100000 };

static const struct {
    const char *topic, *type, *stamp;  // path of the header, with the dot
} said[N_TOPIC] = {
    [JOINTS] = {"/k10/joint_states", "sensor_msgs/msg/JointState", "header."},
    [ODOM] = {"/k10/odom", "nav_msgs/msg/Odometry", "header."},
    [TF] = {"/tf", "tf2_msgs/msg/TFMessage", "transforms[0].header."},
    [IMU] = {"/k10/imu/data", "sensor_msgs/msg/Imu", "header."},
    [MOTORS] = {"/k10/motor_group/status", "understudy_msgs/msg/MotorGroupStatus", "header."},
    [BATTERY] = {"/k10/battery_state", "sensor_msgs/msg/BatteryState", "header."},
    [DIAGNOSTICS] = {"/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", "header."},
};

typedef struct record {
    int64_t arrival, stamp, source;  // ns: here, in the header, of DDS
    int32_t topic, size;
    double frame;  // a number for its text
} record;

typedef struct ear {
    us_bus *bus;
    us_writer *request, *twist;
    us_reader *readers[N_TOPIC];
    pthread_mutex_t lock;
    int n;
    record record[MAX_RECORD];
    char authority[1024];
} ear;

static inline int64_t wall_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct channel {
    ear *ear;
    const us_message_type *type;
    int32_t topic;
} channel;

// Behind the stamp of a header stands the length of the frame's name, and the name.
static inline double frame_of(const us_sample *s, size_t header) {
    uint32_t length = 0;
    if (s->length < header + 12) return -1;
    memcpy(&length, (const uint8_t *)s->bytes + header + 8, sizeof length);
    double sum = length;
    for (uint32_t i = 0; i < length && header + 12 + i < s->length; i++)
        sum += (double)(i + 1) * ((const uint8_t *)s->bytes)[header + 12 + i];
    return sum;
}

static inline void hear(void *context, const us_sample *s) {
    const channel *c = context;
    int64_t arrival = wall_now();
    char seconds[64], nanoseconds[64];
    snprintf(seconds, sizeof seconds, "%sstamp.sec", said[c->topic].stamp);
    snprintf(nanoseconds, sizeof nanoseconds, "%sstamp.nanosec", said[c->topic].stamp);
    record r = {.arrival = arrival, .source = s->source_time, .topic = c->topic, .size = (int32_t)s->length};
    r.stamp =
        (int64_t)number_in(c->type, s, seconds) * 1000000000 + (int64_t)number_in(c->type, s, nanoseconds);
    r.frame = frame_of(s, c->topic == TF ? 8 : 4);
    pthread_mutex_lock(&c->ear->lock);
    if (c->ear->n < MAX_RECORD) c->ear->record[c->ear->n++] = r;
    pthread_mutex_unlock(&c->ear->lock);
}

static inline void hear_authority(void *context, const us_sample *s) {
    ear *e = context;
    pthread_mutex_lock(&e->lock);
    snprintf(e->authority, sizeof e->authority, "%s", (const char *)s->bytes + 8);
    pthread_mutex_unlock(&e->lock);
}

// Hears the robot from now on. Who listens beside takes the sender's time: while something else measures,
// nobody should.
static inline void begin_to_hear(ear *e) {
    static channel channels[N_TOPIC];
    for (int i = 0; i < N_TOPIC; i++) {
        channels[i] = (channel){e, us_message_find(said[i].type), i};
        assert_non_null(channels[i].type);
        us_qos qos = us_qos_for_topic(said[i].topic, channels[i].type);
        e->readers[i] = add_reader(e->bus, said[i].topic, channels[i].type, qos, hear, &channels[i]);
        WAIT_FOR(us_reader_n_match(e->readers[i]) > 0);
    }
}

static inline void stop_hearing(ear *e) {
    for (int i = 0; i < N_TOPIC; i++)
        us_reader_remove(e->readers[i]);
}

static inline ear *join_as_ear(int32_t domain) {
    ear *e = calloc(1, sizeof *e);
    assert_non_null(e);
    pthread_mutex_init(&e->lock, NULL);
    e->bus = open_bus("cyclone", domain);
    us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    add_reader(e->bus, "/understudy/authority", usi_type_string, latched, hear_authority, e);
    e->request = writer_to(e->bus, "/understudy/authority/request", usi_type_string);
    e->twist =
        add_writer(e->bus, "/k10/cmd_vel", usi_type_twist, us_qos_for_topic("/k10/cmd_vel", usi_type_twist));
    return e;
}

static inline void leave_as_ear(ear *e) {
    us_bus_close(e->bus);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static inline bool is_mode(ear *e, const char *mode) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"mode\":\"%s\"", mode);
    pthread_mutex_lock(&e->lock);
    bool is = strstr(e->authority, wanted) != NULL;
    pthread_mutex_unlock(&e->lock);
    return is;
}

// Asks until it is so: the one who is asked for may not be there yet.
static inline void ask_for(ear *e, const char *mode) {
    double until = clock_now() + PATIENCE;
    while (!is_mode(e, mode)) {
        if (clock_now() > until) fail_msg("the switch does not change to %s", mode);
        write_text_message(e->request, mode);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

// Drives to and fro, the same for both, for so many seconds.
static inline void drive(ear *e, double seconds) {
    for (double now = clock_now(), until = now + seconds; now < until; now = clock_now()) {
        us_msg_twist m = {.linear.x = 0.2 * sin(2 * 3.14159265358979 * now / 2)};
        send(e->twist, usi_type_twist, &m);
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * fmax(fmin(0.1, until - now), 1e-3))}, NULL);
    }
}

// Where in the 10 ms of the fastest topic the one in control speaks, 0 to 1.
static inline double phase_of(ear *e, const char *who) {
    double x = 0, y = 0;
    ask_for(e, who);
    drive(e, 0.1);
    pthread_mutex_lock(&e->lock);
    e->n = 0;
    pthread_mutex_unlock(&e->lock);
    drive(e, 0.5);
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->n; i++) {
        double angle = 2 * 3.14159265358979 * (double)(e->record[i].arrival % 10000000) / 1e7;
        x += cos(angle);
        y += sin(angle);
    }
    pthread_mutex_unlock(&e->lock);
    return atan2(y, x) / (2 * 3.14159265358979);
}

// ---- windows ----

static const double WINDOW = 0.5,
                    SETTLE = 1.2;  // s; after a change of control, until all has been heard once
enum {
    N_QUANTILE = 5,
    PER_FAST = 17,
    N_BURST = 4,
    N_FEATURE = N_FAST * PER_FAST + 2 * (N_TOPIC - N_FAST) + N_BURST
};

static inline void put_quantiles(double *x, int n, int n_quantile, double **out) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    for (int k = 0; k < n_quantile; k++)
        *(*out)++ = n > 0 ? x[(int)((double)(n - 1) * k / (n_quantile - 1) + 0.5)] : 0;
}

// Of one topic: how many; times between arrivals; between stamps; arrival after stamp, and how that changes;
// size, frame, time of DDS after stamp.
static inline void put_topic(const record *r, int n, int topic, double **out) {
    double between[1000], stamps[1000], late[1000], change = 0, size = 0, source = 0, frame = 0;
    const record *before = NULL;
    int number = 0, pairs = 0;
    for (int i = 0; i < n && number < 1000; i++) {
        if (r[i].topic != topic) continue;
        late[number] = 1e-9 * (double)(r[i].arrival - r[i].stamp);
        if (before) {
            between[pairs] = 1e-9 * (double)(r[i].arrival - before->arrival);
            stamps[pairs] = 1e-9 * (double)(r[i].stamp - before->stamp);
            change += pow(late[number] - late[number - 1], 2);
            pairs++;
        }
        size += r[i].size;
        frame += r[i].frame;
        source += 1e-9 * (double)(r[i].source - r[i].stamp);
        before = &r[i];
        number++;
    }
    double some = number > 0 ? number : 1;
    *(*out)++ = number;
    put_quantiles(between, pairs, N_QUANTILE, out);
    put_quantiles(stamps, pairs, 3, out);
    put_quantiles(late, number, N_QUANTILE, out);
    *(*out)++ = sqrt(change / some);
    *(*out)++ = size / some + frame / some;
    *(*out)++ = source / some;
}

// Samples of one stamp: how far apart they arrive, and how many are not in the usual order.
static inline void put_bursts(const record *r, int n, double **out) {
    double spans[1000];
    int n_span = 0, n_wrong = 0;
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && r[j].stamp == r[i].stamp; j++)
            n_wrong += r[j].topic < r[j - 1].topic && r[j].topic != MOTORS;
        if (j - i >= 4 && n_span < 1000) spans[n_span++] = 1e-9 * (double)(r[j - 1].arrival - r[i].arrival);
    }
    put_quantiles(spans, n_span, 3, out);
    *(*out)++ = n_wrong;
}

// Of the last one of a topic that was heard, be it `before` this window.
static inline double last_size(const record *r, int n, int before, int topic) {
    for (int k = n - 1; k >= -before; k--) {
        if (r[k].topic == topic) return r[k].size;
    }
    return 0;
}

static inline void make_features(const record *r, int n, int before, double x[N_FEATURE]) {
    double *out = x;
    for (int i = 0; i < N_FAST; i++)
        put_topic(r, n, i, &out);
    for (int i = N_FAST; i < N_TOPIC; i++) {
        double number = 0;
        for (int k = 0; k < n; k++)
            number += r[k].topic == i;
        *out++ = number;
        *out++ = last_size(r, n, before, i);
    }
    put_bursts(r, n, &out);
    assert_int_equal(out - x, N_FEATURE);
}

// What it would be if its stamps were so much earlier, s.
static inline void shift_stamps(double x[N_FEATURE], double by) {
    for (int i = 0; i < N_FAST; i++) {
        for (int k = 0; k < N_QUANTILE; k++)
            x[i * PER_FAST + 9 + k] += by;
    }
}

// What a number of a window is about.
static inline void name_feature(int f, char *out, size_t cap) {
    static const char *const parts[PER_FAST] = {
        "samples",    "between 0 %", "between 25 %", "between 50 %", "between 75 %", "between 100 %",
        "stamps 0 %", "stamps 50 %", "stamps 100 %", "late 0 %",     "late 25 %",    "late 50 %",
        "late 75 %",  "late 100 %",  "late changes", "size, frame",  "source"};
    static const char *const bursts[N_BURST] = {"span 0 %", "span 50 %", "span 100 %", "wrong order"};
    int slow = f - N_FAST * PER_FAST, burst = f - (N_FEATURE - N_BURST);
    if (slow < 0) {
        snprintf(out, cap, "%s: %s", said[f / PER_FAST].topic, parts[f % PER_FAST]);
    } else if (burst < 0) {
        snprintf(out, cap, "%s: %s", said[N_FAST + slow / 2].topic, slow % 2 ? "size" : "samples");
    } else {
        snprintf(out, cap, "bursts: %s", bursts[burst]);
    }
}

// The numbers that differ most between the two, in spreads from start to start: where to look when they can
// be told apart.
static inline void print_telling(trial *t) {
    double apart[N_FEATURE], mean[N_FEATURE][2];
    memset(mean, 0, sizeof mean);
    for (int f = 0; f < N_FEATURE; f++) {
        double of_start[MAX_ROUND][2] = {{0}}, spread = 0;
        for (int i = 0; i < n_window_of(t); i++)
            of_start[round_of(t, i)][kind_of(t, i)] += t->x[i][f] / t->n_per_start;
        for (int r = 0; r < t->n_round; r++) {
            mean[f][0] += of_start[r][0] / t->n_round;
            mean[f][1] += of_start[r][1] / t->n_round;
        }
        for (int r = 0; r < t->n_round; r++)
            spread += pow(of_start[r][0] - mean[f][0], 2) + pow(of_start[r][1] - mean[f][1], 2);
        apart[f] = fabs(mean[f][0] - mean[f][1]) / (sqrt(spread / (2 * t->n_round)) + 1e-12);
    }
    for (int k = 0; k < 8; k++) {
        int which = 0;
        char name[128];
        for (int f = 0; f < N_FEATURE; f++)
            which = apart[f] > apart[which] ? f : which;
        name_feature(which, name, sizeof name);
        print_message("    %-44s %.9g and %.9g: %.2f spreads apart\n", name, mean[which][0], mean[which][1],
                      apart[which]);
        apart[which] = 0;
    }
}

// From stamp to arrival in a round: what differs from start to start.
static inline void print_start(trial *t, int round) {
    double late[2] = {0};
    for (int kind = 0; kind < 2; kind++) {
        for (int w = 0; w < t->n_per_start; w++)
            late[kind] += window_of(t, round, kind, w)[IMU * PER_FAST + 10] / t->n_per_start;
    }
    print_message(
        "    round %d: a quarter of /k10/imu/data %.0f us after the stamp, and the proxy's %.0f us later\n",
        round + 1, 1e6 * late[0], 1e6 * (late[1] - late[0]));
}

// Lets one play for a while, and cuts what is heard into windows.
static inline void record_windows(ear *e, const char *who, trial *t, int round, int kind) {
    ask_for(e, who);
    drive(e, 0.1);
    pthread_mutex_lock(&e->lock);
    e->n = 0;
    pthread_mutex_unlock(&e->lock);
    drive(e, SETTLE);
    int64_t begin = wall_now();
    drive(e, WINDOW * t->n_per_start + 0.02);
    pthread_mutex_lock(&e->lock);
    int at = 0;
    while (at < e->n && e->record[at].arrival < begin)
        at++;
    for (int w = 0; w < t->n_per_start; w++) {
        int64_t until = begin + (int64_t)(1e9 * WINDOW * (w + 1));
        int first = at;
        while (at < e->n && e->record[at].arrival < until)
            at++;
        make_features(e->record + first, at - first, first, window_of(t, round, kind, w));
    }
    pthread_mutex_unlock(&e->lock);
}

#endif
