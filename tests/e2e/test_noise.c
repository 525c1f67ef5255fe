// The values that a robot publishes do not tell who plays it: noise floors, correlations and steps of
// encoders, inertial unit, odometry and battery are the hardware's, once they were measured; and a noise
// floor that is 30 % off is found by the same classifier.
//
// The robots stand: then what their values do is noise. US_LONG_TESTS: a minute of each in each of 8 starts,
// else a few seconds.
#ifdef US_HAVE_SVM

#include "test_hardware_support.h"
#include "test_timing_classifier.h"
#include "understudy/math.h"

enum { HARDWARE, PROXY, WRONG, N_ROBOT };
enum { N_JOINT = 8, MAX_SAMPLE = 20000 };
enum {
    POSITION,
    VELOCITY = POSITION + N_JOINT,
    RATE = VELOCITY + N_JOINT,
    FORCE = RATE + 3,
    TURN = FORCE + 3
};
enum { ODOM = TURN + 3, VOLTAGE = ODOM + 5, N_SERIES };
enum { PER_SERIES = 5, N_VALUE = 13 * PER_SERIES };

// Nobody's instrument resolves less: a solver's wobble below it is no noise. m, rad, m/s ...
static const double FLOOR = 1e-8;

typedef struct samples {
    int n;
    double x[MAX_SAMPLE];
    double time[MAX_SAMPLE];
} samples;

typedef struct ear {
    pthread_mutex_t lock;
    samples of[N_SERIES];
    double reference[4];
    bool has_reference;
} ear;

static void put(ear *e, int series, double x) {
    samples *s = &e->of[series];
    if (s->n == MAX_SAMPLE) return;
    s->time[s->n] = clock_now();
    s->x[s->n++] = x;
}

static void hear_joints(void *context, const us_sample *s) {
    ear *e = context;
    const us_message_type *type = us_message_find("sensor_msgs/msg/JointState");
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < N_JOINT; i++) {
        char path[32];
        snprintf(path, sizeof path, "position[%d]", i);
        put(e, POSITION + i, number_in(type, s, path));
        snprintf(path, sizeof path, "velocity[%d]", i);
        put(e, VELOCITY + i, number_in(type, s, path));
    }
    pthread_mutex_unlock(&e->lock);
}

static void hear_inertia(void *context, const us_sample *s) {
    static const char *const paths[] = {"angular_velocity.x",    "angular_velocity.y",
                                        "angular_velocity.z",    "linear_acceleration.x",
                                        "linear_acceleration.y", "linear_acceleration.z"};
    ear *e = context;
    const us_message_type *type = us_message_find("sensor_msgs/msg/Imu");
    const double q[4] = {number_in(type, s, "orientation.w"), number_in(type, s, "orientation.x"),
                         number_in(type, s, "orientation.y"), number_in(type, s, "orientation.z")};
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < 6; i++)
        put(e, RATE + i, number_in(type, s, paths[i]));
    if (!e->has_reference) memcpy(e->reference, q, sizeof q);
    e->has_reference = true;
    const us_quat r = {e->reference[0], -e->reference[1], -e->reference[2], -e->reference[3]};
    const us_quat off = us_quat_mul(r, (us_quat){q[0], q[1], q[2], q[3]});
    put(e, TURN, 2 * off.x);
    put(e, TURN + 1, 2 * off.y);
    put(e, TURN + 2, 2 * off.z);
    pthread_mutex_unlock(&e->lock);
}

static void hear_odometry(void *context, const us_sample *s) {
    static const char *const paths[] = {"pose.pose.position.x", "pose.pose.position.y",
                                        "pose.pose.orientation.z", "twist.twist.linear.x",
                                        "twist.twist.angular.z"};
    ear *e = context;
    const us_message_type *type = us_message_find("nav_msgs/msg/Odometry");
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < 5; i++)
        put(e, ODOM + i, number_in(type, s, paths[i]));
    pthread_mutex_unlock(&e->lock);
}

static void hear_battery(void *context, const us_sample *s) {
    ear *e = context;
    pthread_mutex_lock(&e->lock);
    put(e, VOLTAGE, number_in(us_message_find("sensor_msgs/msg/BatteryState"), s, "voltage"));
    pthread_mutex_unlock(&e->lock);
}

// ---- windows ----

typedef struct sums {
    double variance, next, later, fourth, same;
    int n;
} sums;

// Of one series in a window, about the straight line through it: its variance, its correlations over one and
// over four samples, its kurtosis, and how often a value is that of the sample before.
static void add_series(const samples *s, double from, double to, sums *out) {
    int first = 0, n = 0;
    while (first < s->n && s->time[first] < from)
        first++;
    while (first + n < s->n && s->time[first + n] < to)
        n++;
    if (n < 3) return;
    const double *x = s->x + first, middle = 0.5 * (n - 1);
    double mean = 0, slope = 0, spread = 0, r[MAX_SAMPLE];
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++) {
        slope += (i - middle) * (x[i] - mean);
        spread += (i - middle) * (i - middle);
    }
    double square = 0, next = 0, later = 0, fourth = 0, same = 0;
    for (int i = 0; i < n; i++) {
        r[i] = x[i] - mean - slope / spread * (i - middle);
        square += r[i] * r[i] / n;
        fourth += r[i] * r[i] * r[i] * r[i] / n;
        if (i >= 1) next += r[i] * r[i - 1] / n;
        if (i >= 4) later += r[i] * r[i - 4] / n;
        if (i >= 1) same += (x[i] == x[i - 1]) / (double)n;
    }
    const double floor_ = FLOOR * FLOOR, of = square + floor_;
    out->variance += square;
    out->next += square > floor_ ? next / of : 0;
    out->later += square > floor_ ? later / of : 0;
    out->fourth += square > floor_ ? fourth / (of * of) : 0;
    out->same += square > floor_ ? same : 0;
    out->n++;
}

static void put_series(const ear *e, int series, int n, double from, double to, double **out) {
    sums s = {0};
    for (int i = 0; i < n; i++)
        add_series(&e->of[series + i], from, to, &s);
    const double some = s.n > 0 ? s.n : 1;
    *(*out)++ = log(fmax(sqrt(s.variance / some), FLOOR));
    *(*out)++ = s.next / some;
    *(*out)++ = s.later / some;
    *(*out)++ = s.fourth / some;
    *(*out)++ = s.same / some;
}

static void make_window(const ear *e, double from, double to, double x[N_VALUE]) {
    double *out = x;
    put_series(e, POSITION, N_JOINT, from, to, &out);
    put_series(e, VELOCITY, N_JOINT, from, to, &out);
    for (int i = 0; i < 3; i++)
        put_series(e, RATE + i, 1, from, to, &out);
    for (int i = 0; i < 3; i++)
        put_series(e, FORCE + i, 1, from, to, &out);
    put_series(e, TURN, 3, from, to, &out);
    put_series(e, ODOM, 2, from, to, &out);
    put_series(e, ODOM + 2, 1, from, to, &out);
    put_series(e, ODOM + 3, 2, from, to, &out);
    put_series(e, VOLTAGE, 1, from, to, &out);
    assert_int_equal(out - x, N_VALUE);
}

// ---- robots ----

static ear ears[N_ROBOT];
static us_bus *buses[N_ROBOT];

static void listen_to(int robot) {
    static const struct {
        const char *topic, *type;
        us_sample_function *hear;
    } said[] = {{"/k10/joint_states", "sensor_msgs/msg/JointState", hear_joints},
                {"/k10/imu/data", "sensor_msgs/msg/Imu", hear_inertia},
                {"/k10/odom", "nav_msgs/msg/Odometry", hear_odometry},
                {"/k10/battery_state", "sensor_msgs/msg/BatteryState", hear_battery}};
    pthread_mutex_init(&ears[robot].lock, NULL);
    buses[robot] = open_bus("cyclone", test_domain_of(robot));
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        add_reader(buses[robot], said[i].topic, us_message_find(said[i].type), us_qos_sensor(), said[i].hear,
                   &ears[robot]);
}

static void write_scene(const char *path, const char *noise, double factor) {
    static char text[1 << 16], scaled[8192];
    FILE *in = fopen(US_SOURCE_DIR "/scenes/flat.xml", "r"), *out = fopen(path, "w");
    assert_true(in && out);
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    // the deviations by a factor
    size_t n = 0;
    for (const char *at = noise; *at && n < sizeof scaled - 64;) {
        if (strncmp(at, "deviation=\"", 11) != 0) {
            scaled[n++] = *at++;
            continue;
        }
        char *end = NULL;
        const double deviation = strtod(at + 11, &end);
        n += (size_t)snprintf(scaled + n, 64, "deviation=\"%.6g", factor * deviation);
        at = end;
    }
    scaled[n] = 0;
    static const char network[] = "<network namespace=\"k10\" timeout=\"0.5 s\"/>", models[] = "../models/";
    char *place = strstr(text, network), *model = strstr(text, models);
    assert_true(place && model && model < place);
    fprintf(out, "%.*s%s/models/%.*s<network namespace=\"k10\" timeout=\"0.5 s\">\n%s</network>%s",
            (int)(model - text), text, US_SOURCE_DIR, (int)(place - model - (int)sizeof models + 1),
            model + sizeof models - 1, scaled, place + sizeof network - 1);
    assert_int_equal(fclose(out), 0);
}

// What `understudy timing --noise` finds in a recording of the hardware standing.
static void learn_noise(int seconds, char *out, size_t cap) {
    int status = 0;
    use_domain(test_domain_of(HARDWARE));
    pid_t robot = start_hardware("--seed 100");
    pid_t recorder = start("record", "record hardware.mcap --time %d --quiet", seconds);
    assert_int_equal(waitpid(recorder, &status, 0), recorder);
    forget(recorder);
    assert_int_equal(exit_code(status), 0);
    end(robot);
    pid_t fit = start("fit", "timing k10 --noise hardware.mcap");
    assert_int_equal(waitpid(fit, &status, 0), fit);
    forget(fit);
    assert_int_equal(exit_code(status), 0);
    FILE *in = fopen("fit.out", "r");
    assert_non_null(in);
    out[fread(out, 1, cap - 1, in)] = 0;
    fclose(in);
    print_message("%s", out);
}

static void expect_noise(const char *text, const char *kind, double deviation, double memory) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "of=\"%s\" deviation=\"", kind);
    const char *at = strstr(text, wanted);
    if (!at) fail_msg("no noise of %s is found", kind);
    const double found = strtod(at + strlen(wanted), NULL);
    // 11 s of at least 550 samples of at least 3 components: 2.5 % is twice the spread of what is estimated
    // for white noise; with a memory of 2.5 samples there are as many less that count.
    assert_true(fabs(found / deviation - 1) < (memory > 0 ? 0.1 : 0.05));
    const char *end = strstr(at, "/>"), *remembered = strstr(at, "memory=\"");
    if (memory == 0) {
        assert_true(!remembered || remembered > end);
    } else {
        assert_true(remembered && remembered < end);
        assert_true(fabs(strtod(remembered + 8, NULL) / memory - 1) < 0.15);
    }
}

static void record_round(trial *both, trial *wrong, int round, double window) {
    pid_t pids[N_ROBOT];
    const int seed = 10 * round + 1;
    char options[32];
    snprintf(options, sizeof options, "--seed %d", seed);
    use_domain(test_domain_of(HARDWARE));
    pids[HARDWARE] = start_hardware(options);
    for (int i = PROXY; i < N_ROBOT; i++) {
        use_domain(test_domain_of(i));
        pids[i] = start(i == PROXY ? "proxy" : "wrong", "run %s.xml --headless --quiet --seed %d",
                        i == PROXY ? "proxy" : "wrong", seed + i);
    }
    for (int i = 0; i < N_ROBOT; i++) {
        pthread_mutex_lock(&ears[i].lock);
        memset(ears[i].of, 0, sizeof ears[i].of);
        ears[i].has_reference = false;
        pthread_mutex_unlock(&ears[i].lock);
    }
    for (int i = 0; i < N_ROBOT; i++)
        WAIT_FOR(ears[i].of[ODOM].n > 0 && ears[i].of[RATE].n > 0);
    // They come to rest.
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    const double begin = clock_now();
    const double length = window * both->n_per_start + 0.2;
    nanosleep(&(struct timespec){.tv_sec = (time_t)length, .tv_nsec = (long)(1e9 * fmod(length, 1))}, NULL);
    for (int i = 0; i < N_ROBOT; i++) {
        end(pids[i]);
        for (int w = 0; w < both->n_per_start; w++) {
            const double from = begin + window * w;
            if (i != WRONG) make_window(&ears[i], from, from + window, window_of(both, round, i == PROXY, w));
            if (i != PROXY)
                make_window(&ears[i], from, from + window, window_of(wrong, round, i == WRONG, w));
        }
    }
}

// The numbers that differ most, in spreads from window to window.
static void print_telling(trial *t) {
    static const char *const series[] = {
        "encoders", "their velocities", "rate x",        "rate y",   "rate z",      "force x", "force y",
        "force z",  "orientation",      "odom position", "odom yaw", "odom speeds", "voltage"};
    static const char *const parts[] = {"log deviation", "next", "later", "fourth", "same"};
    for (int f = 0; f < t->n_feature; f++) {
        double mean[2] = {0}, spread = 0;
        const int n = n_window_of(t);
        for (int i = 0; i < n; i++)
            mean[kind_of(t, i)] += 2 * t->x[i][f] / n;
        for (int i = 0; i < n; i++)
            spread += pow(t->x[i][f] - mean[kind_of(t, i)], 2) / n;
        const double apart = fabs(mean[0] - mean[1]) / (sqrt(spread) + 1e-12);
        if (apart > 0.8)
            print_message("    %s, %s: %.5g and %.5g, %.2f spreads apart\n", series[f / PER_SERIES],
                          parts[f % PER_SERIES], mean[0], mean[1], apart);
    }
}

static void values_do_not_tell_who_plays(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    const double window = is_long ? 4 : 1;
    static trial both, wrong;
    static char noise[8192];
    both = wrong = (trial){.n_round = 8, .n_per_start = is_long ? 15 : 3, .n_feature = N_VALUE};
    // The longer a window, the better noise has to be known.
    learn_noise(is_long ? 120 : 12, noise, sizeof noise);
    expect_noise(noise, "joint-position", 2e-4, 0);
    expect_noise(noise, "joint-velocity", 5.6e-4, 0.05);
    expect_noise(noise, "imu-orientation", 5e-4, 0);
    expect_noise(noise, "imu-rate", 2e-3, 0);
    expect_noise(noise, "imu-acceleration", 0.03, 0);
    // The battery has no noise: its numbers of 32 bits are rounded on both sides.
    assert_null(strstr(noise, "battery-"));
    write_scene("proxy.xml", noise, 1);
    write_scene("wrong.xml", noise, 1.3);
    for (int i = 0; i < N_ROBOT; i++)
        listen_to(i);
    for (int r = 0; r < both.n_round; r++)
        record_round(&both, &wrong, r, window);
    for (int i = 0; i < N_ROBOT; i++)
        us_bus_close(buses[i]);
    print_telling(&both);
    const verdict v = judge(&both), w = judge(&wrong);
    print_message(
        "hardware and proxy: of %d windows of %g s %.3f are told right, as well or better in %.1f %% of "
        "guesses; with noise 30 %% higher %.3f, %.1f %%\n",
        n_window_of(&both), window, v.right, 100 * v.chance, w.right, 100 * w.chance);
    assert_true(w.chance <= 0.01);
    // Two that are alike have a chance above 10 % in nine of ten runs, above 1 % in all but one of 128.
    assert_true(v.chance > (is_long ? 0.1 : 0.01));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_do_not_tell_who_plays, use_own_domain, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

#else

#include <stdio.h>

int main(void) {
    printf("skipped: libsvm is not there\n");
    return 0;
}

#endif
