// Can it be told who plays, the hardware or the proxy? What the tests of that share: a recording of what operators see beside the numbers, windows of
// it as lists of numbers, and a classifier that tries.
//
// Hardware and proxy are in control in turns, for a block of some windows each, so that what else the machine does meets both. A fold is one block of
// each: what is tested was heard at another time than what was learned from, and neighbouring windows are never in both.
#ifndef UNDERSTUDY_TEST_TIMING_SUPPORT_H
#define UNDERSTUDY_TEST_TIMING_SUPPORT_H

#include <libsvm/svm.h>

#include "test_hardware_support.h"

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
    for (uint32_t i = 0; i < length && header + 12 + i < s->length; i++) sum += (double)(i + 1) * ((const uint8_t *)s->bytes)[header + 12 + i];
    return sum;
}

static inline void hear(void *context, const us_sample *s) {
    const channel *c = context;
    int64_t arrival = wall_now();
    char seconds[64], nanoseconds[64];
    snprintf(seconds, sizeof seconds, "%sstamp.sec", said[c->topic].stamp);
    snprintf(nanoseconds, sizeof nanoseconds, "%sstamp.nanosec", said[c->topic].stamp);
    record r = {.arrival = arrival, .source = s->source_time, .topic = c->topic, .size = (int32_t)s->length};
    r.stamp = (int64_t)number_in(c->type, s, seconds) * 1000000000 + (int64_t)number_in(c->type, s, nanoseconds);
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

// Hears the robot from now on. Who listens beside takes the sender's time: while something else measures, nobody should.
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
    for (int i = 0; i < N_TOPIC; i++) us_reader_remove(e->readers[i]);
}

static inline ear *join_as_ear(int32_t domain) {
    ear *e = calloc(1, sizeof *e);
    assert_non_null(e);
    pthread_mutex_init(&e->lock, NULL);
    e->bus = open_bus("cyclone", domain);
    us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    add_reader(e->bus, "/understudy/authority", usi_type_string, latched, hear_authority, e);
    e->request = writer_to(e->bus, "/understudy/authority/request", usi_type_string);
    e->twist = writer_to(e->bus, "/k10/cmd_vel", usi_type_twist);
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
        x += cos(angle), y += sin(angle);
    }
    pthread_mutex_unlock(&e->lock);
    return atan2(y, x) / (2 * 3.14159265358979);
}

// ---- windows ----

static const double WINDOW = 0.5, SETTLE = 0.4;  // s; after a change of control
enum { N_QUANTILE = 5, PER_FAST = 17, N_BURST = 4, N_FEATURE = N_FAST * PER_FAST + 2 * (N_TOPIC - N_FAST) + N_BURST, MAX_WINDOW = 512 };

typedef struct window {
    int pair;      // of blocks: one of each
    double label;  // +1: the hardware
    double x[N_FEATURE];
} window;

static inline int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static inline void put_quantiles(double *x, int n, int n_quantile, double **out) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    for (int k = 0; k < n_quantile; k++) *(*out)++ = n > 0 ? x[(int)((double)(n - 1) * k / (n_quantile - 1) + 0.5)] : 0;
}

// Of one topic: how many; times between arrivals; between stamps; arrival after stamp, and how that changes; size, frame, time of DDS after stamp.
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
        size += r[i].size, frame += r[i].frame, source += 1e-9 * (double)(r[i].source - r[i].stamp);
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
        for (j = i + 1; j < n && r[j].stamp == r[i].stamp; j++) n_wrong += r[j].topic < r[j - 1].topic && r[j].topic != MOTORS;
        if (j - i >= 4 && n_span < 1000) spans[n_span++] = 1e-9 * (double)(r[j - 1].arrival - r[i].arrival);
    }
    put_quantiles(spans, n_span, 3, out);
    *(*out)++ = n_wrong;
}

static inline void make_features(const record *r, int n, double x[N_FEATURE]) {
    double *out = x;
    for (int i = 0; i < N_FAST; i++) put_topic(r, n, i, &out);
    for (int i = N_FAST; i < N_TOPIC; i++) {
        double number = 0, size = 0;
        for (int k = 0; k < n; k++) {
            if (r[k].topic == i) number++, size += r[k].size;
        }
        *out++ = number;
        *out++ = number > 0 ? size / number : 0;
    }
    put_bursts(r, n, &out);
    assert_int_equal(out - x, N_FEATURE);
}

// What a number of a window is about.
static inline void name_feature(int f, char *out, size_t cap) {
    static const char *const parts[PER_FAST] = {"samples",    "between 0 %", "between 25 %", "between 50 %", "between 75 %", "between 100 %",
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

// The numbers that differ most, in spreads: where to look when they can be told apart.
static inline void print_telling(const window *w, int n) {
    bool is_said[N_FEATURE] = {false};
    for (int k = 0; k < 8; k++) {
        double best = 0, best_mean[2] = {0};
        int which = -1;
        for (int f = 0; f < N_FEATURE; f++) {
            double mean[2] = {0}, spread = 0;
            for (int i = 0; i < n; i++) mean[w[i].label < 0] += 2 * w[i].x[f] / n;
            for (int i = 0; i < n; i++) spread += pow(w[i].x[f] - mean[w[i].label < 0], 2) / n;
            double apart = fabs(mean[0] - mean[1]) / (sqrt(spread) + 1e-12);
            if (!is_said[f] && apart > best) best = apart, which = f, best_mean[0] = mean[0], best_mean[1] = mean[1];
        }
        if (which < 0) return;
        char name[128];
        is_said[which] = true;
        name_feature(which, name, sizeof name);
        print_message("    %-44s hardware %.9g, proxy %.9g: %.2f spreads apart\n", name, best_mean[0], best_mean[1], best);
    }
}

// Lets both play in turns, n_pair blocks each, and cuts what is heard into windows.
static inline int record_windows(ear *e, int n_pair, int per_block, window *windows) {
    static const char *const who[] = {"hardware", "proxy"};
    int n = 0;
    for (int pair = 0; pair < n_pair; pair++) {
        for (int k = 0; k < 2; k++) {
            // Who begins changes too.
            int which = (k + pair) % 2;
            ask_for(e, who[which]);
            drive(e, SETTLE);
            pthread_mutex_lock(&e->lock);
            e->n = 0;
            pthread_mutex_unlock(&e->lock);
            int64_t begin = wall_now();
            drive(e, WINDOW * per_block + 0.02);
            pthread_mutex_lock(&e->lock);
            for (int w = 0, at = 0; w < per_block; w++) {
                int64_t until = begin + (int64_t)(1e9 * WINDOW * (w + 1));
                int first = at;
                while (at < e->n && e->record[at].arrival < until) at++;
                assert_true(n < MAX_WINDOW);
                windows[n] = (window){.pair = pair, .label = which == 0 ? 1 : -1};
                make_features(e->record + first, at - first, windows[n++].x);
            }
            pthread_mutex_unlock(&e->lock);
        }
    }
    return n;
}

// ---- the classifier ----

typedef struct scale {
    double mean[N_FEATURE], spread[N_FEATURE];
} scale;

// Only windows of pairs that `is_used` names.
static inline scale scale_of(const window *w, int n, const bool *is_used) {
    scale s = {0};
    double number = 0;
    for (int i = 0; i < n; i++) number += is_used[w[i].pair];
    for (int f = 0; f < N_FEATURE; f++) {
        for (int i = 0; i < n; i++) s.mean[f] += is_used[w[i].pair] ? w[i].x[f] / number : 0;
        for (int i = 0; i < n; i++) s.spread[f] += is_used[w[i].pair] ? pow(w[i].x[f] - s.mean[f], 2) / number : 0;
        s.spread[f] = sqrt(s.spread[f]);
    }
    return s;
}

// As the library wants it. A hiccup of the machine is a hiccup, however long: at most 4 spreads.
static inline void scaled(const window *w, const scale *s, struct svm_node x[N_FEATURE + 1]) {
    for (int f = 0; f < N_FEATURE; f++) {
        double value = s->spread[f] > 1e-12 ? (w->x[f] - s->mean[f]) / s->spread[f] : 0;
        x[f] = (struct svm_node){f + 1, fmax(-4, fmin(4, value))};
    }
    x[N_FEATURE].index = -1;
}

// Learns from the pairs that is_used names and counts how many windows of the pair `held_out` it tells right.
static inline int count_right(const window *w, int n, const bool *is_used, int held_out, double c, double gamma) {
    static struct svm_node nodes[MAX_WINDOW][N_FEATURE + 1];
    struct svm_node *x[MAX_WINDOW], probe[N_FEATURE + 1];
    double y[MAX_WINDOW];
    scale s = scale_of(w, n, is_used);
    struct svm_problem problem = {.y = y, .x = x};
    for (int i = 0; i < n; i++) {
        if (!is_used[w[i].pair]) continue;
        scaled(&w[i], &s, nodes[problem.l]);
        x[problem.l] = nodes[problem.l];
        y[problem.l++] = w[i].label;
    }
    struct svm_parameter parameter = {.svm_type = C_SVC, .kernel_type = RBF, .gamma = gamma, .C = c, .cache_size = 10, .eps = 1e-3, .shrinking = 1};
    assert_null(svm_check_parameter(&problem, &parameter));
    struct svm_model *model = svm_train(&problem, &parameter);
    int n_right = 0;
    for (int i = 0; i < n; i++) {
        if (w[i].pair != held_out) continue;
        scaled(&w[i], &s, probe);
        n_right += svm_predict(model, probe) == w[i].label;
    }
    svm_free_and_destroy_model(&model);
    return n_right;
}

static inline void be_silent(const char *text) { (void)text; }

// Share of windows told right by classifiers that have not heard them. C and gamma are chosen within what is learned from.
static inline double held_out_accuracy(const window *w, int n, int n_pair) {
    static const double cs[] = {0.3, 3, 30}, gammas[] = {0.1 / N_FEATURE, 1.0 / N_FEATURE, 5.0 / N_FEATURE};
    bool is_used[MAX_WINDOW];
    int n_right = 0;
    svm_set_print_string_function(be_silent);
    for (int out = 0; out < n_pair; out++) {
        int best = -1, best_c = 0, best_gamma = 0;
        for (int i = 0; i < 9; i++) {
            int right = 0;
            for (int in = 0; in < n_pair; in++) {
                for (int k = 0; k < n_pair; k++) is_used[k] = k != out && k != in;
                if (in != out) right += count_right(w, n, is_used, in, cs[i / 3], gammas[i % 3]);
            }
            if (right > best) best = right, best_c = i / 3, best_gamma = i % 3;
        }
        for (int k = 0; k < n_pair; k++) is_used[k] = k != out;
        n_right += count_right(w, n, is_used, out, cs[best_c], gammas[best_gamma]);
    }
    return (double)n_right / n;
}

// The largest share of n throws of a coin that comes up by chance: beyond it lies 1 in 2000, and as much below 1 - that.
static inline double chance_bound(int n) {
    double below = 0;
    int k = -1;
    while (below < 1 - 0.0005) {
        k++;
        below += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
    }
    return (double)k / n;
}

#endif
