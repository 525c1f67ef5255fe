// The noise of a robot's instruments: how the values in a recording scatter while the robot stands.
//
// A robot that stands has one value, which may drift: so of each stretch of time in which it stands, by its
// odometry, and of at most a minute (or 100 samples), the straight line through a value's samples is taken
// off. What is left is noise: its standard deviation, its correlation from one sample to the next, which for
// noise with the memory T is exp(-P / T) over the period P, and its grid, where the instrument knows steps
// alone. Components of one kind (joints, axes) are taken together. What a number of 32 bits on the wire
// cannot tell apart is no noise.
#include "noise.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "understudy/network.h"
#include "understudy/record.h"

enum { MAX_INDEX = 64, MIN_SAMPLES = 50 };

static const char *const element = "understudy timing";
static const double STILL = 0.02;            // m/s, rad/s: less is standing
static const int64_t SETTLING = 1000000000;  // ns of standing that are not counted
static const double MIN_CORRELATION = 0.1;   // less is white noise
static const double MIN_DEVIATION = 1e-9;
static const double COUNTED = 1e-6;  // m, rad: less than any encoder tells apart

typedef struct series {
    int32_t n, cap;
    double *x;
    int32_t *stretch;
} series;

typedef struct fitting {
    char prefix[128];
    int64_t still_since;  // ns; -1: it moves
    int32_t stretch;
    double seconds;  // of standing
    series of[US_NOISE_COUNT][MAX_INDEX];
    int64_t first[US_NOISE_COUNT], last[US_NOISE_COUNT];
    int32_t n_sample[US_NOISE_COUNT];
    double rounding[US_NOISE_COUNT];  // the step of a number of 32 bits at the largest value; 0: it has 64
    double turn[4];                   // reference of the orientation, x y z w
    bool has_turn;
} fitting;

static const char *const names[] = {
#define NOISE_NAME(code, name) [code] = name,
    US_NOISE_LIST(NOISE_NAME)
#undef NOISE_NAME
};

// ---- gathering ----

static void put(fitting *f, us_noise_kind kind, int index, double x) {
    if (index >= MAX_INDEX || !isfinite(x)) return;
    series *s = &f->of[kind][index];
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 1024;
        s->x = realloc(s->x, (size_t)s->cap * sizeof *s->x);
        s->stretch = realloc(s->stretch, (size_t)s->cap * sizeof *s->stretch);
        if (!s->x || !s->stretch) abort();
    }
    s->x[s->n] = x;
    s->stretch[s->n++] = f->stretch;
}

static void put_time(fitting *f, us_noise_kind kind, int64_t time) {
    if (f->n_sample[kind]++ == 0) f->first[kind] = time;
    f->last[kind] = time;
}

// Numbers of an array until there are no more.
static void put_array(fitting *f, us_noise_kind kind, const us_message_type *type, const us_recorded *m,
                      const char *member) {
    for (int i = 0; i < MAX_INDEX; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s[%d]", member, i);
        double x = us_message_get_number(type, m->bytes, m->length, path);
        if (isnan(x)) break;
        put(f, kind, i, x);
    }
    put_time(f, kind, m->log_time);
}

static void put_members(fitting *f, us_noise_kind kind, const us_message_type *type, const us_recorded *m,
                        const char *const *members) {
    for (int i = 0; members[i]; i++)
        put(f, kind, i, us_message_get_number(type, m->bytes, m->length, members[i]));
    put_time(f, kind, m->log_time);
}

// Members of 32 bits.
static void put_floats(fitting *f, us_noise_kind kind, const us_message_type *type, const us_recorded *m,
                       const char *member) {
    const double x = us_message_get_number(type, m->bytes, m->length, member);
    int exponent = 0;
    put(f, kind, 0, x);
    put_time(f, kind, m->log_time);
    (void)frexp(x, &exponent);
    if (isfinite(x)) f->rounding[kind] = fmax(f->rounding[kind], ldexp(1, exponent - FLT_MANT_DIG));
}

// The small angles by which an orientation is off the first one.
static void put_orientation(fitting *f, const us_message_type *type, const us_recorded *m) {
    static const char *const members[] = {"orientation.x", "orientation.y", "orientation.z", "orientation.w"};
    double q[4];
    for (int i = 0; i < 4; i++)
        q[i] = us_message_get_number(type, m->bytes, m->length, members[i]);
    if (!f->has_turn) memcpy(f->turn, q, sizeof q);
    f->has_turn = true;
    const double *r = f->turn;
    const double off[3] = {r[3] * q[0] - r[0] * q[3] - r[1] * q[2] + r[2] * q[1],
                           r[3] * q[1] + r[0] * q[2] - r[1] * q[3] - r[2] * q[0],
                           r[3] * q[2] - r[0] * q[1] + r[1] * q[0] - r[2] * q[3]};
    const double w = r[3] * q[3] + r[0] * q[0] + r[1] * q[1] + r[2] * q[2];
    for (int i = 0; i < 3; i++)
        put(f, US_NOISE_IMU_ORIENTATION, i, 2 * (w < 0 ? -off[i] : off[i]));
    put_time(f, US_NOISE_IMU_ORIENTATION, m->log_time);
}

// Whether the robot stands, by a sample of its odometry.
static void watch_motion(fitting *f, const us_message_type *type, const us_recorded *m) {
    const double v[] = {us_message_get_number(type, m->bytes, m->length, "twist.twist.linear.x"),
                        us_message_get_number(type, m->bytes, m->length, "twist.twist.linear.y"),
                        us_message_get_number(type, m->bytes, m->length, "twist.twist.angular.z")};
    const bool is_still = fabs(v[0]) < STILL && fabs(v[1]) < STILL && fabs(v[2]) < STILL;
    if (is_still && f->still_since < 0) f->still_since = m->log_time;
    if (!is_still && f->still_since >= 0) {
        if (m->log_time - f->still_since > SETTLING)
            f->seconds += 1e-9 * (double)(m->log_time - f->still_since - SETTLING);
        f->still_since = -1;
        f->stretch++;
    }
}

static void take_message(fitting *f, const us_channel_info *c, const us_recorded *m) {
    static const char *const position[] = {"pose.pose.position.x", "pose.pose.position.y", NULL};
    static const char *const speed[] = {"twist.twist.linear.x", "twist.twist.linear.y", NULL};
    static const char *const yaw_rate[] = {"twist.twist.angular.z", NULL};
    static const char *const rate[] = {"angular_velocity.x", "angular_velocity.y", "angular_velocity.z",
                                       NULL};
    static const char *const force[] = {"linear_acceleration.x", "linear_acceleration.y",
                                        "linear_acceleration.z", NULL};
    const us_message_type *type = us_message_find(c->type);
    if (!type || strncmp(c->topic, f->prefix, strlen(f->prefix)) != 0) return;
    const char *kind = c->type;
    const bool is_odom = strcmp(kind, "nav_msgs/msg/Odometry") == 0;
    if (is_odom) watch_motion(f, type, m);
    if (f->still_since < 0 || m->log_time - f->still_since < SETTLING) return;
    if (is_odom) {
        put_members(f, US_NOISE_ODOM_POSITION, type, m, position);
        put_members(f, US_NOISE_ODOM_SPEED, type, m, speed);
        put_members(f, US_NOISE_ODOM_YAW_RATE, type, m, yaw_rate);
        const double z = us_message_get_number(type, m->bytes, m->length, "pose.pose.orientation.z"),
                     w = us_message_get_number(type, m->bytes, m->length, "pose.pose.orientation.w");
        put(f, US_NOISE_ODOM_YAW, 0, 2 * atan2(z, w));
        put_time(f, US_NOISE_ODOM_YAW, m->log_time);
    } else if (strcmp(kind, "sensor_msgs/msg/JointState") == 0) {
        put_array(f, US_NOISE_JOINT_POSITION, type, m, "position");
        put_array(f, US_NOISE_JOINT_VELOCITY, type, m, "velocity");
    } else if (strcmp(kind, "sensor_msgs/msg/Imu") == 0) {
        put_orientation(f, type, m);
        put_members(f, US_NOISE_IMU_RATE, type, m, rate);
        put_members(f, US_NOISE_IMU_ACCELERATION, type, m, force);
    } else if (strcmp(kind, "sensor_msgs/msg/BatteryState") == 0) {
        put_floats(f, US_NOISE_BATTERY_VOLTAGE, type, m, "voltage");
        put_floats(f, US_NOISE_BATTERY_CURRENT, type, m, "current");
        put_floats(f, US_NOISE_BATTERY_CHARGE, type, m, "percentage");
    }
}

// ---- fitting ----

// Sums of squares about the straight line, and of products of neighbours, of one stretch; and what they are
// divided by.
static void add_stretch(const double *x, int32_t n, double sums[4]) {
    if (n < MIN_SAMPLES) return;
    double mean = 0, slope = 0, spread = 0;
    const double middle = 0.5 * (n - 1);
    for (int32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (int32_t i = 0; i < n; i++) {
        slope += (i - middle) * (x[i] - mean);
        spread += (i - middle) * (i - middle);
    }
    slope /= spread;
    double before = 0;
    for (int32_t i = 0; i < n; i++) {
        const double r = x[i] - mean - slope * (i - middle);
        sums[0] += r * r;
        if (i > 0) sums[1] += r * before;
        before = r;
    }
    sums[2] += n - 2;
    sums[3] += n - 1;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// The grid on which all values lie; 0: there is none. Values that seldom repeat lie on none.
static double find_step(const series *s) {
    double *sorted = cli_allocate((size_t)s->n, sizeof *sorted), step = INFINITY;
    int32_t n_gap = 0;
    memcpy(sorted, s->x, (size_t)s->n * sizeof *sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, compare);
    for (int32_t i = 1; i < s->n; i++) {
        const double gap = sorted[i] - sorted[i - 1];
        if (gap <= 1e-12) continue;
        n_gap++;
        step = fmin(step, gap);
    }
    bool is_grid = n_gap > 0 && n_gap < s->n / 4;
    for (int32_t i = 1; i < s->n && is_grid; i++) {
        const double steps = (sorted[i] - sorted[i - 1]) / step;
        is_grid = fabs(steps - nearbyint(steps)) < 0.05;
    }
    free(sorted);
    return is_grid ? step : 0;
}

static us_noise fit(const fitting *f, us_noise_kind kind) {
    us_noise out = {0};
    double sums[4] = {0};
    const double period = 1e-9 * (double)(f->last[kind] - f->first[kind]) / (f->n_sample[kind] - 1);
    const int32_t most = (int32_t)fmax(2 * MIN_SAMPLES, 60 / fmax(period, 1e-3));
    for (int i = 0; i < MAX_INDEX; i++) {
        const series *s = &f->of[kind][i];
        for (int32_t from = 0, to; from < s->n; from = to) {
            for (to = from; to < s->n && to - from < most && s->stretch[to] == s->stretch[from];)
                to++;
            add_stretch(s->x + from, to - from, sums);
        }
        if (s->n >= MIN_SAMPLES && out.step == 0) out.step = find_step(s);
    }
    if (sums[2] <= 0) return (us_noise){0};
    // Odometry that counts does not change at all while the robot stands; a simulated robot wobbles by
    // nanometres.
    const bool is_odometry = kind >= US_NOISE_ODOM_POSITION && kind <= US_NOISE_ODOM_YAW_RATE;
    if (sums[0] < 1e-24 * sums[2] && is_odometry) return (us_noise){.step = COUNTED};
    const double variance = sums[0] / sums[2], correlation = variance > 0 ? sums[1] / sums[3] / variance : 0;
    // Half a step of the number at most: rounding.
    if (variance <= 0.25 * f->rounding[kind] * f->rounding[kind]) return (us_noise){0};
    // A grid scatters by itself: a twelfth of its square.
    out.deviation = sqrt(fmax(0, variance - out.step * out.step / 12));
    if (correlation > MIN_CORRELATION && correlation < 1)
        out.memory = fmin(-period / log(correlation), US_NOISE_MEMORY_MAX);
    return out;
}

static void print_noise(const fitting *f) {
    printf("<!-- of %.6g s in which the robot stood; it belongs into <network> -->\n", f->seconds);
    for (int i = 0; i < US_NOISE_COUNT; i++) {
        const us_noise n = fit(f, (us_noise_kind)i);
        if (n.deviation < MIN_DEVIATION && n.step == 0) continue;
        printf("<noise of=\"%s\" deviation=\"%.4g\"", names[i], n.deviation);
        if (n.memory > 0) printf(" memory=\"%.4g s\"", n.memory);
        if (n.step > 0 && i != US_NOISE_IMU_ORIENTATION) printf(" step=\"%.6g\"", n.step);
        printf("/>\n");
    }
}

int cli_noise_fit(const char *robot, const char *path) {
    static fitting f;
    us_error err = {0};
    us_recording *recording = NULL;
    const us_allocator allocator = us_allocator_default();
    us_status status = us_recording_open(path, &allocator, &recording, &err);
    snprintf(f.prefix, sizeof f.prefix, "/%.100s/", robot);
    f.still_since = -1;
    int64_t last = 0;
    for (bool has = true; !status && has;) {
        us_recorded m;
        status = us_recording_next(recording, &m, &has, &err);
        if (status || !has) break;
        const us_channel_info c = us_recording_get_channel(recording, m.channel);
        take_message(&f, &c, &m);
        last = m.log_time;
    }
    if (f.still_since >= 0 && last - f.still_since > SETTLING)
        f.seconds += 1e-9 * (double)(last - f.still_since - SETTLING);
    us_recording_close(recording);
    int code = CLI_OK;
    if (status) {
        cli_print_error(&err);
        code = CLI_BAD_INPUT;
    } else if (f.n_sample[US_NOISE_ODOM_POSITION] < MIN_SAMPLES) {
        code = cli_fail(CLI_RUN_FAILED, element,
                        "record a robot that stands for a minute: understudy record FILE",
                        "the recording has %d samples of %sodom while it stands, which is too few",
                        (int)f.n_sample[US_NOISE_ODOM_POSITION], f.prefix);
    } else {
        print_noise(&f);
    }
    for (int i = 0; i < US_NOISE_COUNT * MAX_INDEX; i++) {
        free(f.of[i / MAX_INDEX][i % MAX_INDEX].x);
        free(f.of[i / MAX_INDEX][i % MAX_INDEX].stretch);
    }
    return code;
}
