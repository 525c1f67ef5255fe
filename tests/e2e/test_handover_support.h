// What the tests of hand-overs share: the hardware, a proxy of it on flat ground and the switch as programs,
// and an operator who drives and listens.
#ifndef UNDERSTUDY_TEST_HANDOVER_SUPPORT_H
#define UNDERSTUDY_TEST_HANDOVER_SUPPORT_H

#include "test_hardware_support.h"

enum { MAX_SEEN = 16384, MAX_LINE = 64 * 1024 };

static const double STEP = 0.02;  // both tell odom and joint_states 50 times a second

// One sample as the operator saw it.
typedef struct glimpse {
    int64_t stamp;
    double wall;  // s of CLOCK_MONOTONIC
    double pose[3], v[3];
} glimpse;

typedef struct track {
    _Atomic int32_t n;
    glimpse at[MAX_SEEN];
} track;

typedef struct theatre {
    us_bus *bus, *hardware_bus;
    us_writer *command, *request;
    track odom, joints, hardware_odom, told;  // told: velocities that reach the hardware
    pthread_t driver;
    pthread_mutex_t lock;  // guards what follows
    double vx, wz;
    int32_t n_line;
    char line[MAX_LINE];  // the last evidence
    char control[16];     // who is in control
    atomic_bool is_over;
    pid_t hardware, proxy, sw;
} theatre;

static inline void note(track *t, glimpse g) {
    int32_t n = atomic_load(&t->n);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    g.wall = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (n == MAX_SEEN) return;
    t->at[n] = g;
    atomic_store(&t->n, n + 1);
}

static inline int64_t stamp_in(const us_message_type *type, const us_sample *s) {
    return (int64_t)number_in(type, s, "header.stamp.sec") * 1000000000 +
           (int64_t)number_in(type, s, "header.stamp.nanosec");
}

static inline void see_odom(void *context, const us_sample *s) {
    const us_message_type *type = usi_type_odometry;
    glimpse g = {.stamp = stamp_in(type, s)};
    g.pose[0] = number_in(type, s, "pose.pose.position.x");
    g.pose[1] = number_in(type, s, "pose.pose.position.y");
    g.pose[2] = 2 * atan2(number_in(type, s, "pose.pose.orientation.z"),
                          number_in(type, s, "pose.pose.orientation.w"));
    g.v[0] = number_in(type, s, "twist.twist.linear.x");
    g.v[1] = number_in(type, s, "twist.twist.linear.y");
    g.v[2] = number_in(type, s, "twist.twist.angular.z");
    note(context, g);
}

static inline void see_joints(void *context, const us_sample *s) {
    note(context, (glimpse){.stamp = stamp_in(usi_type_joint_state, s)});
}

static inline void see_velocity(void *context, const us_sample *s) {
    note(context,
         (glimpse){.v = {number_in(usi_type_twist, s, "linear.x"), number_in(usi_type_twist, s, "linear.y"),
                         number_in(usi_type_twist, s, "angular.z")}});
}

static inline void see_evidence(void *context, const us_sample *s) {
    theatre *t = context;
    pthread_mutex_lock(&t->lock);
    if (s->length > 8)
        snprintf(t->line, sizeof t->line, "%.*s", (int)(s->length - 8), (const char *)s->bytes + 8);
    t->n_line++;
    pthread_mutex_unlock(&t->lock);
}

static inline void see_authority(void *context, const us_sample *s) {
    theatre *t = context;
    const char *at = memmem(s->bytes, s->length, "\"control\":\"", 11);
    pthread_mutex_lock(&t->lock);
    if (at) snprintf(t->control, sizeof t->control, "%.*s", (int)strcspn(at + 11, "\""), at + 11);
    pthread_mutex_unlock(&t->lock);
}

static inline bool controls(theatre *t, const char *who) {
    pthread_mutex_lock(&t->lock);
    bool is_it = strcmp(t->control, who) == 0;
    pthread_mutex_unlock(&t->lock);
    return is_it;
}

// 20 commands a second, as operators send them.
static inline void *keep_driving(void *context) {
    theatre *t = context;
    while (!atomic_load(&t->is_over)) {
        pthread_mutex_lock(&t->lock);
        us_msg_twist m = {.linear = {t->vx, 0, 0}, .angular = {0, 0, t->wz}};
        pthread_mutex_unlock(&t->lock);
        uint8_t bytes[128];
        size_t length = 0;
        if (!us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length))
            us_writer_write(t->command, bytes, length, 0);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return NULL;
}

static inline void drive(theatre *t, double vx, double wz) {
    pthread_mutex_lock(&t->lock);
    t->vx = vx;
    t->wz = wz;
    pthread_mutex_unlock(&t->lock);
}

static const char flat_scene[] =
    "<scene name='flat' version='1'><world step='1 ms'><shape name='ground' type='half-space' "
    "surface='soil'/></world>"
    "<material name='soil'/><material name='rubber'/><pair a='rubber' b='soil' static-friction='0.7' "
    "kinetic-friction='0.65'/>"
    "<default name='wheel'><drive kd='40'/></default><default name='steer'><drive kp='800' "
    "kd='60'/></default>"
    "<robot name='k10' file='" K10 "' base='floating' xyz='5 5 0'><surface link='*_wheel' surface='rubber'/>"
    "<drive joint='front_left_steer' default='steer'/><drive joint='rear_left_steer' default='steer'/>"
    "<drive joint='front_right_steer' default='steer'/><drive joint='rear_right_steer' default='steer'/>"
    "<drive joint='front_left_drive' default='wheel'/><drive joint='rear_left_drive' default='wheel'/>"
    "<drive joint='front_right_drive' default='wheel'/><drive joint='rear_right_drive' default='wheel'/>"
    "<network namespace='k10' timeout='0.5 s'/>"
    "<locomotion type='all-wheel' max-speed='0.9 m/s' max-turn='1.5 rad/s' max-acceleration='1 m/s^2'>"
    "<wheel drive='front_left_drive' steer='front_left_steer' radius='0.18 m'/>"
    "<wheel drive='front_right_drive' steer='front_right_steer' radius='0.18 m'/>"
    "<wheel drive='rear_left_drive' steer='rear_left_steer' radius='0.18 m'/>"
    "<wheel drive='rear_right_drive' steer='rear_right_steer' radius='0.18 m'/>"
    "</locomotion><battery capacity='500 Wh' idle='40 W' voltage='48 V'/></robot></scene>";

static inline theatre *open_theatre(const char *hardware_options, const char *switch_options) {
    theatre *t = calloc(1, sizeof *t);
    assert_non_null(t);
    pthread_mutex_init(&t->lock, NULL);
    char options[256];
    snprintf(options, sizeof options, "--domain %d %s", (int)test_domain_of(1), hardware_options);
    write_text("flat.xml", flat_scene);
    remove("evidence.jsonl");
    t->hardware = start_hardware(options);
    use_domain(test_domain_of(2));
    t->proxy = start("proxy", "run flat.xml --headless --record run.mcap");
    use_domain(test_domain_of(0));
    t->sw = start("switch",
                  "switch k10 --visible --operators %d --hardware %d --proxy %d --evidence evidence.jsonl %s",
                  (int)test_domain_of(0), (int)test_domain_of(1), (int)test_domain_of(2), switch_options);
    us_qos reliable = {.is_reliable = true};
    t->bus = open_bus("cyclone", test_domain_of(0));
    t->hardware_bus = open_bus("cyclone", test_domain_of(1));
    add_reader(t->bus, "/k10/odom", usi_type_odometry, reliable, see_odom, &t->odom);
    add_reader(t->bus, "/k10/joint_states", usi_type_joint_state, reliable, see_joints, &t->joints);
    us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    add_reader(t->bus, "/understudy/authority", usi_type_string, latched, see_authority, t);
    add_reader(t->bus, "/understudy/handover", usi_type_string, reliable, see_evidence, t);
    add_reader(t->hardware_bus, "/k10/odom", usi_type_odometry, reliable, see_odom, &t->hardware_odom);
    add_reader(t->hardware_bus, "/k10/cmd_vel", usi_type_twist, reliable, see_velocity, &t->told);
    t->command =
        add_writer(t->bus, "/k10/cmd_vel", usi_type_twist, us_qos_for_topic("/k10/cmd_vel", usi_type_twist));
    t->request = add_writer(t->bus, "/understudy/authority/request", usi_type_string,
                            (us_qos){.is_reliable = true, .depth = 10});
    WAIT_FOR(us_writer_n_match(t->command) > 0 && us_writer_n_match(t->request) > 0);
    assert_int_equal(pthread_create(&t->driver, NULL, keep_driving, t), 0);
    WAIT_FOR(atomic_load(&t->hardware_odom.n) > 5);
    // It may have come late on a busy machine: then the proxy plays already.
    for (double until = clock_now() + PATIENCE; !controls(t, "hardware");) {
        if (clock_now() > until) fail_msg("the hardware does not get control");
        write_text_message(t->request, "k10 hardware anyway");
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    int32_t n = atomic_load(&t->odom.n);
    WAIT_FOR(atomic_load(&t->odom.n) > n + 5 && atomic_load(&t->joints.n) > 5);
    return t;
}

static inline void close_theatre(theatre *t) {
    atomic_store(&t->is_over, true);
    pthread_join(t->driver, NULL);
    us_bus_close(t->bus);
    us_bus_close(t->hardware_bus);
    end(t->sw);
    end(t->proxy);
    if (t->hardware) end(t->hardware);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static inline int32_t n_line(theatre *t) {
    pthread_mutex_lock(&t->lock);
    int32_t n = t->n_line;
    pthread_mutex_unlock(&t->lock);
    return n;
}

// The next line of evidence, as a text that lives until the next one.
static inline cJSON *next_evidence(theatre *t, int32_t after) {
    static char line[MAX_LINE];
    WAIT_FOR(n_line(t) > after);
    pthread_mutex_lock(&t->lock);
    memcpy(line, t->line, sizeof line);
    pthread_mutex_unlock(&t->lock);
    return parse_json(line);
}

static inline glimpse latest(track *t) { return t->at[atomic_load(&t->n) - 1]; }

// Asks until it is done: the proxy may not have been found yet. The caller deletes the evidence.
static inline cJSON *hand_over(theatre *t, const char *request) {
    for (double until = clock_now() + PATIENCE;;) {
        int32_t n = n_line(t);
        write_text_message(t->request, request);
        cJSON *line = next_evidence(t, n);
        if (strcmp(member(line, "verdict")->valuestring, "done") == 0) return line;
        if (clock_now() > until) fail_msg("refused: %s", member(line, "why")->valuestring);
        cJSON_Delete(line);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

static inline bool is_at_rest(theatre *t, int64_t since) {
    glimpse g = latest(&t->odom);
    return g.stamp > since + 300000000 && hypot(g.v[0], g.v[1]) < 0.01 && fabs(g.v[2]) < 0.01;
}

// Asks until it is refused with this reason: on a busy machine one may be silent just then. The caller
// deletes the evidence.
static inline cJSON *refusal_of(theatre *t, const char *request, const char *reason) {
    for (double until = clock_now() + PATIENCE;;) {
        int32_t n = n_line(t);
        write_text_message(t->request, request);
        cJSON *line = next_evidence(t, n);
        const char *why = member(line, "why")->valuestring;
        assert_string_equal(member(line, "verdict")->valuestring, "refused");
        if (strstr(why, reason)) return line;
        if (clock_now() > until) fail_msg("\"%s\" is not in: %s", reason, why);
        cJSON_Delete(line);
    }
}

// It moves as asked, and has for `time` seconds of its stamps. A machine that kept commands back has stopped
// it: then from the beginning.
static inline void wait_steady(theatre *t, double speed, double time) {
    double until = clock_now() + PATIENCE;
    int64_t since = latest(&t->odom).stamp;
    for (int32_t seen = atomic_load(&t->odom.n);; seen++) {
        while (atomic_load(&t->odom.n) <= seen) {
            if (clock_now() > until) fail_msg("it does not move with %g m/s", speed);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        const glimpse *g = &t->odom.at[seen];
        if (fabs(g->v[0] - speed) > 0.03) since = g->stamp;
        if (1e-9 * (double)(g->stamp - since) > time) return;
    }
}

static inline bool is_hardwares(const theatre *t, int64_t stamp) {
    for (int32_t i = atomic_load(&t->hardware_odom.n) - 1; i >= 0; i--) {
        if (t->hardware_odom.at[i].stamp == stamp) return true;
    }
    return false;
}

// What an operator notices at a change of source.
typedef struct jump {
    double position, yaw,
        speed;            // m, rad, m/s: against the line of the samples before, extrapolated by the stamps
    double stamps, wall;  // s: between joint_states
    int64_t at;           // stamp of the last sample before it
} jump;

// The line: from the last sample on with the mean velocity of the last ten.
static inline jump measure_jump(theatre *t, int32_t from, bool to_proxy) {
    jump j = {NAN, NAN, NAN, NAN, NAN, 0};
    int32_t n = atomic_load(&t->odom.n), k = from > 11 ? from : 11;
    while (k < n && is_hardwares(t, t->odom.at[k].stamp) == to_proxy)
        k++;
    assert_true(k < n);
    const glimpse *last = &t->odom.at[k - 1], *first = &t->odom.at[k - 11], *new = &t->odom.at[k];
    double span = 1e-9 * (double)(last->stamp - first->stamp), dt = 1e-9 * (double)(new->stamp - last->stamp);
    double turn = remainder(last->pose[2] - first->pose[2], 2 * M_PI) / span, v[3] = {0};
    for (int32_t i = k - 10; i < k; i++) {
        for (int m = 0; m < 3; m++)
            v[m] += 0.1 * t->odom.at[i].v[m];
    }
    // The speed along the arc is that of the chord, within 1e-5 at a tenth of a radian.
    double way = hypot(last->pose[0] - first->pose[0], last->pose[1] - first->pose[1]) / span * dt,
           middle = last->pose[2] + 0.5 * turn * dt;
    double x = last->pose[0] + way * cos(middle), y = last->pose[1] + way * sin(middle);
    j.at = last->stamp;
    j.position = hypot(new->pose[0] - x, new->pose[1] - y);
    j.yaw = fabs(remainder(new->pose[2] - last->pose[2] - turn *dt, 2 * M_PI));
    j.speed = hypot(new->v[0] - v[0], new->v[1] - v[1]);
    for (int32_t i = 1; i < atomic_load(&t->joints.n); i++) {
        if (t->joints.at[i].wall < last->wall || is_hardwares(t, t->joints.at[i].stamp) == to_proxy) continue;
        j.stamps = 1e-9 * (double)(t->joints.at[i].stamp - t->joints.at[i - 1].stamp);
        j.wall = t->joints.at[i].wall - t->joints.at[i - 1].wall;
        break;
    }
    return j;
}

static inline void keep_worst(jump *worst, jump j) {
    worst->position = fmax(worst->position, j.position);
    worst->yaw = fmax(worst->yaw, j.yaw);
    worst->speed = fmax(worst->speed, j.speed);
    worst->stamps = fmax(worst->stamps, j.stamps);
    worst->wall = fmax(worst->wall, j.wall);
}

static inline void print_jump(const char *what, jump j) {
    print_message(
        "%s: %.2f mm, %.3f deg, %.1f mm/s; joint_states %.1f ms apart by stamps, %.1f ms by the wall\n", what,
        1e3 * j.position, j.yaw * 180 / M_PI, 1e3 * j.speed, 1e3 * j.stamps, 1e3 * j.wall);
}

#endif
