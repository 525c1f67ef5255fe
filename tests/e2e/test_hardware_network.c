// The stand-in hardware as others on the network see it: the same robot as the proxy's, a computer that
// reboots, a link that loses, a clock of its own.
#include "test_hardware_support.h"

// Gone from the network, then there again: at rest, at the origin of its odometry.
static void expect_reboot(operator_ *o, double least) {
    heard h;
    double before = listen(o).gap;
    assert_true(before < least);
    o->is_quiet = true;
    WAIT_FOR(us_reader_n_match(o->odom) == 0);
    int64_t n = listen(o).n;
    WAIT_FOR(us_reader_n_match(o->odom) == 1);
    WAIT_DRIVING(o, h.n > n + 5);
    assert_true(h.gap >= least);
    assert_true(is_still(&h));
    assert_near(hypot(h.x, h.y), 0, 0.01);
    assert_near(h.yaw, 0, 0.01);
    pthread_mutex_lock(&o->lock);
    o->heard.gap = 0;
    pthread_mutex_unlock(&o->lock);
    WAIT_FOR(us_writer_n_match(o->twist) > 0 && us_writer_n_match(o->reboot) > 0);
    o->is_quiet = false;
}

static void a_reboot_is_silence_and_a_fresh_start(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("--reboot-time 1");
    operator_ *o = join_as_operator();
    heard h;
    command(o, 0.4, 0, 0, false);
    WAIT_DRIVING(o, h.x > 0.2);
    send(o->reboot, usi_type_bool, &(us_msg_bool){.data = true});
    expect_reboot(o, 1);
    // It can be driven again.
    WAIT_DRIVING(o, h.x > 0.2);
    kill(pid, SIGUSR1);
    expect_reboot(o, 1);
    leave(o);
    end(pid);
}

static void its_link_and_clock_are_as_bad_as_told(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("--latency 0.2 --jitter 0.05 --drop 0.5 --clock-offset 1000 --seed 7");
    operator_ *o = join_as_operator();
    heard h;
    WAIT_FOR((h = listen(o), h.n >= 100));
    double n_made = (h.stamp - h.first_stamp) * 50 + 1;
    // Half of the samples; four standard deviations of 200 throws are 0.14.
    assert_near((double)h.n / n_made, 0.5, 0.15);
    // The clock is 1000 s ahead, and each sample at least 0.2 s under way; 1 ms: the two clocks are read one
    // after the other.
    assert_true(h.late + 1000 > 0.199);
    assert_true(h.late + 1000 < 10);
    leave(o);
    end(pid);
}

// ---- the same interface as the proxy's ----

enum { MAX_LINES = 64 };
typedef struct lines {
    int n;
    char text[MAX_LINES][400];
} lines;

static int compare_lines(const void *a, const void *b) { return strcmp(a, b); }

// Every endpoint of the robot's node: direction, topic, type, its hash, quality of service.
static lines endpoints_of_robot(us_bus *bus) {
    enum { CAP = 256 };
    static us_endpoint all[CAP];
    lines found = {0};
    int32_t n = 0;
    assert_int_equal(us_bus_list(bus, all, CAP, &n), US_OK);
    assert_true(n <= CAP);
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &all[i];
        if (strcmp(e->node, "/k10/driver") != 0) continue;
        assert_true(found.n < MAX_LINES);
        snprintf(found.text[found.n++], sizeof found.text[0], "%s %s %s %s%s%s %d",
                 e->is_writer ? "says" : "hears", e->topic, e->type, e->hash,
                 e->qos.is_reliable ? " reliable" : "", e->qos.is_transient_local ? " latched" : "",
                 (int)e->qos.depth);
    }
    qsort(found.text, (size_t)found.n, sizeof found.text[0], compare_lines);
    return found;
}

// Direction and topic of the lines of `a` that are not in `b`, one after the other.
static void difference(const lines *a, const lines *b, char *out, size_t cap) {
    out[0] = 0;
    for (int i = 0; i < a->n; i++) {
        if (b->n > 0 && bsearch(a->text[i], b->text, (size_t)b->n, sizeof b->text[0], compare_lines))
            continue;
        char who[16] = "", topic[256] = "";
        sscanf(a->text[i], "%15s %255s", who, topic);
        size_t n = strlen(out);
        snprintf(out + n, cap - n, "%s %s\n", who, topic);
    }
}

// A sample as text, without its numbers: frames, names, keys.
static char *words_of(const char *topic) {
    double until = clock_now() + PATIENCE;
    for (;;) {
        outcome a = run("echo %s --count 1 --timeout 5", topic);
        if (a.code == 0 && a.out[0]) {
            size_t n = strlen(a.out);
            char *words = calloc(n + 2, 1), *to = words;
            assert_non_null(words);
            for (char *rest = a.out, *line; (line = strsep(&rest, "\n")) != NULL;) {
                const char *last = strrchr(line, ' ');
                char *stop = NULL;
                last = last ? last + 1 : line;
                strtod(last, &stop);
                if (stop != last && *stop == 0) continue;
                to += sprintf(to, "%s\n", line);
            }
            return words;
        }
        if (clock_now() > until) fail_msg("nothing on %s: %s", topic, a.err);
    }
}

static void operators_see_the_same_robot_as_the_proxy(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    // What the proxy has beside: the truth, a lidar and its frame, trajectories, the rover services but for
    // the motors', requests, and what ROS 2 wants of a node.
    static const char proxy_alone[] = "hears rq/k10/driver/describe_parametersRequest\n"
                                      "hears rq/k10/driver/get_logger_levelsRequest\n"
                                      "hears rq/k10/driver/get_parameter_typesRequest\n"
                                      "hears rq/k10/driver/get_parametersRequest\n"
                                      "hears rq/k10/driver/list_parametersRequest\n"
                                      "hears rq/k10/driver/set_logger_levelsRequest\n"
                                      "hears rq/k10/driver/set_parametersRequest\n"
                                      "hears rq/k10/driver/set_parameters_atomicallyRequest\n"
                                      "hears rq/k10/locomotorRequest\n"
                                      "hears rq/k10/motor_groupRequest\n"
                                      "hears rq/k10/navigatorRequest\n"
                                      "hears rq/k10/pose_estimatorRequest\n"
                                      "hears rq/k10/propertiesRequest\n"
                                      "hears rq/k10/waitRequest\n"
                                      "hears rt/k10/joint_trajectory\n"
                                      "hears rt/k10/locomotor/command\n"
                                      "hears rt/k10/navigator/command\n"
                                      "hears rt/k10/pose_estimator/command\n"
                                      "says rr/k10/driver/describe_parametersReply\n"
                                      "says rr/k10/driver/get_logger_levelsReply\n"
                                      "says rr/k10/driver/get_parameter_typesReply\n"
                                      "says rr/k10/driver/get_parametersReply\n"
                                      "says rr/k10/driver/list_parametersReply\n"
                                      "says rr/k10/driver/set_logger_levelsReply\n"
                                      "says rr/k10/driver/set_parametersReply\n"
                                      "says rr/k10/driver/set_parameters_atomicallyReply\n"
                                      "says rr/k10/locomotorReply\n"
                                      "says rr/k10/motor_groupReply\n"
                                      "says rr/k10/navigatorReply\n"
                                      "says rr/k10/pose_estimatorReply\n"
                                      "says rr/k10/propertiesReply\n"
                                      "says rr/k10/waitReply\n"
                                      "says rt/k10/locomotor/status\n"
                                      "says rt/k10/navigator/status\n"
                                      "says rt/k10/points\n"
                                      "says rt/k10/pose_estimator/status\n"
                                      "says rt/parameter_events\n"
                                      "says rt/rosout\n"
                                      "says rt/tf_static\n"
                                      "says rt/understudy/truth/k10/battery\n"
                                      "says rt/understudy/truth/k10/imu\n"
                                      "says rt/understudy/truth/k10/lidar\n"
                                      "says rt/understudy/truth/k10/odom\n";
    // What only a thing has that can be switched off.
    static const char hardware_alone[] = "hears rt/k10/emergency_stop\n"
                                         "hears rt/k10/reboot\n";
    static lines a, b;
    char more[4096], less[4096];
    int32_t here = test_domain(), there = quiet_domain();
    use_domain(here);
    pid_t robot = start_hardware("");
    use_domain(there);
    pid_t proxy = start("proxy", "run %s --headless --quiet --set motor_port=0", scene);
    us_bus *bus_here = open_bus("cyclone", here), *bus_there = open_bus("cyclone", there);
    double until = clock_now() + PATIENCE;
    for (;;) {
        a = endpoints_of_robot(bus_there);
        b = endpoints_of_robot(bus_here);
        difference(&a, &b, more, sizeof more);
        difference(&b, &a, less, sizeof less);
        if (strcmp(more, proxy_alone) == 0 && strcmp(less, hardware_alone) == 0) break;
        if (clock_now() > until) {
            // More than a message of the test library holds.
            fprintf(stderr, "the proxy alone:\n%sthe hardware alone:\n%s", more, less);
            fail_msg("these are not the differences that are known");
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    us_bus_close(bus_here);
    us_bus_close(bus_there);
    static const char *const topics[] = {
        "/k10/joint_states",     "/k10/odom",          "/tf",
        "/k10/imu/data",         "/k10/battery_state", "/k10/motor_group/status",
        "/k10/robot_description"};
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        use_domain(there);
        char *said_there = words_of(topics[i]);
        use_domain(here);
        char *said_here = words_of(topics[i]);
        assert_string_equal(said_here, said_there);
        free(said_here);
        free(said_there);
    }
    end(robot);
    end(proxy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reboot_is_silence_and_a_fresh_start, use_own_domain, kill_the_rest),
        cmocka_unit_test_setup_teardown(its_link_and_clock_are_as_bad_as_told, use_own_domain, kill_the_rest),
        cmocka_unit_test_setup_teardown(operators_see_the_same_robot_as_the_proxy, use_own_domain,
                                        kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
