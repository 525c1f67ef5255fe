// What the tests of examples/hardware share: the program, and one who listens to it and commands it.
#ifndef UNDERSTUDY_TEST_HARDWARE_SUPPORT_H
#define UNDERSTUDY_TEST_HARDWARE_SUPPORT_H

#include <math.h>
#include <pthread.h>

#include "test_network_support.h"

static const char *const hardware = US_BINARY_DIR "/examples/k10_hardware";
#define K10 US_SOURCE_DIR "/models/k10.urdf"

// Where the program is not built there is nothing to look at.
#define NEEDS_HARDWARE()                                           \
    do {                                                           \
        if (access(hardware, X_OK) != 0) {                         \
            print_message("skipped: %s is not there\n", hardware); \
            skip();                                                \
        }                                                          \
    } while (0)

// The programs of test_network_support.h are the one that US_PROGRAM names.
static char *own_program;

static inline void use_hardware(void) {
    const char *own = getenv("US_PROGRAM");
    own_program = own ? strdup(own) : NULL;
    setenv("US_PROGRAM", hardware, 1);
}

static inline void use_understudy(void) {
    if (own_program) {
        setenv("US_PROGRAM", own_program, 1);
    } else {
        unsetenv("US_PROGRAM");
    }
    free(own_program);
    own_program = NULL;
}

static inline pid_t start_hardware(const char *options) {
    use_hardware();
    pid_t pid = start("hardware", "%s %s", K10, options);
    use_understudy();
    return pid;
}

// ---- one who listens and commands ----

typedef struct heard {
    int64_t n;
    double stamp, gap, late;  // s: of the newest; the longest between two; the least that one was under way
    double first_stamp;
    double x, y, yaw, vx, vy, wz;
    double sum_wz, sum_gyro;  // of odom and of the inertial unit
    int64_t n_gyro;
    double pitch;  // by the inertial unit, while it looks along x
    char diagnostics[4096];
} heard;

typedef struct operator_ {
    us_bus *bus;
    us_reader *odom;
    us_writer *twist, *stamped, *emergency, *reboot;
    pthread_mutex_t lock;
    heard heard;
    double vx, vy, wz, sent, longest_pause;  // what is commanded, when last, and how late at most
    bool is_stamped, is_quiet;
} operator_;

static inline double number_in(const us_message_type *type, const us_sample *s, const char *path) {
    return us_message_get_number(type, s->bytes, s->length, path);
}

static inline void hear_odom(void *context, const us_sample *s) {
    operator_ *o = context;
    const us_message_type *type = usi_type_odometry;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&o->lock);
    heard *h = &o->heard;
    double stamp = number_in(type, s, "header.stamp.sec") + 1e-9 * number_in(type, s, "header.stamp.nanosec");
    double late = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - stamp;
    if (h->n == 0) h->first_stamp = stamp;
    if (h->n > 0 && stamp - h->stamp > h->gap) h->gap = stamp - h->stamp;
    if (h->n == 0 || late < h->late) h->late = late;
    h->stamp = stamp;
    h->x = number_in(type, s, "pose.pose.position.x");
    h->y = number_in(type, s, "pose.pose.position.y");
    h->yaw = 2 * atan2(number_in(type, s, "pose.pose.orientation.z"),
                       number_in(type, s, "pose.pose.orientation.w"));
    h->vx = number_in(type, s, "twist.twist.linear.x");
    h->vy = number_in(type, s, "twist.twist.linear.y");
    h->wz = number_in(type, s, "twist.twist.angular.z");
    h->sum_wz += h->wz;
    h->n++;
    pthread_mutex_unlock(&o->lock);
}

static inline void hear_imu(void *context, const us_sample *s) {
    operator_ *o = context;
    pthread_mutex_lock(&o->lock);
    o->heard.sum_gyro += number_in(usi_type_imu, s, "angular_velocity.z");
    o->heard.n_gyro++;
    // Nose up is a turn about -y.
    o->heard.pitch = -2 * asin(number_in(usi_type_imu, s, "orientation.y"));
    pthread_mutex_unlock(&o->lock);
}

static inline void hear_diagnostics(void *context, const us_sample *s) {
    operator_ *o = context;
    size_t length = 0;
    us_error err = {0};
    pthread_mutex_lock(&o->lock);
    us_message_print(usi_type_diagnostic_array, s->bytes, s->length, 0, o->heard.diagnostics,
                     sizeof o->heard.diagnostics, &length, &err);
    pthread_mutex_unlock(&o->lock);
}

static inline us_writer *writer_to(us_bus *bus, const char *topic, const us_message_type *type) {
    us_writer *writer = add_writer(bus, topic, type, us_qos_for_topic(topic, type));
    WAIT_FOR(us_writer_n_match(writer) > 0);
    return writer;
}

static inline operator_ *join_as_operator(void) {
    operator_ *o = calloc(1, sizeof *o);
    assert_non_null(o);
    pthread_mutex_init(&o->lock, NULL);
    o->bus = open_bus("cyclone", (int32_t)strtol(getenv("ROS_DOMAIN_ID"), NULL, 10));
    us_qos qos = {.is_reliable = true};
    o->odom = add_reader(o->bus, "/k10/odom", usi_type_odometry, qos, hear_odom, o);
    add_reader(o->bus, "/k10/imu/data", usi_type_imu, qos, hear_imu, o);
    add_reader(o->bus, "/diagnostics", usi_type_diagnostic_array, qos, hear_diagnostics, o);
    o->twist = writer_to(o->bus, "/k10/cmd_vel", usi_type_twist);
    o->stamped = writer_to(o->bus, "/k10/cmd_vel_stamped", usi_type_twist_stamped);
    o->emergency = writer_to(o->bus, "/k10/emergency_stop", usi_type_bool);
    o->reboot = writer_to(o->bus, "/k10/reboot", usi_type_bool);
    return o;
}

static inline void leave(operator_ *o) {
    us_bus_close(o->bus);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

static inline heard listen(operator_ *o) {
    pthread_mutex_lock(&o->lock);
    heard h = o->heard;
    pthread_mutex_unlock(&o->lock);
    return h;
}

static inline void send(us_writer *writer, const us_message_type *type, const void *message) {
    uint8_t bytes[2048];
    size_t length = 0;
    assert_int_equal(us_message_encode(type, message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
}

// Repeats the command, as operators do: 20 times a second. Always true, so that it can stand in a condition
// that is waited for.
static inline bool steer(operator_ *o) {
    double now = clock_now();
    if (o->is_quiet || now - o->sent < 0.05) return true;
    if (o->sent > 0 && now - o->sent > o->longest_pause) o->longest_pause = now - o->sent;
    o->sent = now;
    us_msg_twist m = {.linear = {o->vx, o->vy, 0}, .angular = {0, 0, o->wz}};
    us_msg_twist_stamped stamped = {.twist = m};
    if (o->is_stamped) {
        send(o->stamped, usi_type_twist_stamped, &stamped);
    } else {
        send(o->twist, usi_type_twist, &m);
    }
    return true;
}

static inline void command(operator_ *o, double vx, double vy, double wz, bool is_stamped) {
    o->vx = vx;
    o->vy = vy;
    o->wz = wz;
    o->is_stamped = is_stamped;
    o->sent = 0;
    steer(o);
}

static inline bool is_still(const heard *h) { return hypot(h->vx, h->vy) < 0.01 && fabs(h->wz) < 0.01; }

#define WAIT_DRIVING(o, condition) WAIT_FOR((steer(o), h = listen(o), (condition)))

// What the odometry says of `time` seconds of the robot's own clock, once the robot is under way: mean
// velocities.
static inline heard measure(operator_ *o, double time) {
    heard h, from;
    for (int attempt = 0;; attempt++) {
        double wanted = hypot(o->vx, o->vy) + fabs(o->wz);
        WAIT_DRIVING(o, hypot(h.vx, h.vy) + fabs(h.wz) > 0.8 * wanted);
        double under_way = listen(o).stamp;
        WAIT_DRIVING(o, h.stamp > under_way + 0.3);
        from = h;
        o->longest_pause = 0;
        WAIT_DRIVING(o, h.stamp > from.stamp + time);
        // A machine that kept the commands back for long has stopped the robot, as it should.
        if (o->longest_pause < 0.3) break;
        if (attempt > 5) fail_msg("the machine is too busy");
    }
    double span = h.stamp - from.stamp, dx = h.x - from.x, dy = h.y - from.y,
           turned = remainder(h.yaw - from.yaw, 2 * M_PI);
    double mean = from.yaw + 0.5 * turned;
    heard result = {.wz = turned / span};
    result.vx = (cos(mean) * dx + sin(mean) * dy) / span;
    result.vy = (cos(mean) * dy - sin(mean) * dx) / span;
    result.sum_wz = (h.sum_wz - from.sum_wz) / (double)(h.n - from.n);
    result.sum_gyro = (h.sum_gyro - from.sum_gyro) / (double)(h.n_gyro - from.n_gyro);
    return result;
}

#endif
