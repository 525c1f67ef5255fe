// Sources of commands on a real network: topics of their own with priorities, and exclusive ownership.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "net_peer.h"

static double speed_of(net_peer *p, int32_t odom) { return net_number(p, odom, -1, "twist.twist.linear.x"); }

// Sends both velocities ten times a second until the robot is that fast, and for a second of its time more.
static void drive_both(net_peer *p, int32_t odom, us_writer *const writer[2], const double speed[2],
                       double wanted) {
    double until = net_clock() + NET_PATIENCE, sent = -1, reached = -1;
    while (reached < 0 || net_time(p) < reached + 1) {
        if (net_clock() > until) net_fail("waited for", "the speed");
        if (net_clock() > sent + 0.05) {
            for (int i = 0; i < 2; i++) {
                const us_msg_twist m = {{speed[i], 0, 0}, {0, 0, 0}};
                if (writer[i]) net_say(writer[i], usi_type_twist, &m);
            }
            sent = net_clock();
        }
        const bool is_there = fabs(speed_of(p, odom) - wanted) < 0.02;
        if (is_there && reached < 0) reached = net_time(p);
        if (!is_there) reached = -1;
        net_nap();
    }
}

static net_peer *begin(const char *inside, int32_t *out_odom) {
    net_write_k10("k10.xml", inside);
    net_peer *p = net_open("cyclone");
    *out_odom = net_listen(p, "/k10/odom", usi_type_odometry);
    net_run("k10.xml --headless --quiet --rate 2");
    net_wait_match(p, *out_odom);
    net_wait_after(p, *out_odom, 0.3);
    return p;
}

static void finish(net_peer *p) {
    assert_int_equal(net_end(SIGINT), 0);
    net_close(p);
}

static void an_operator_takes_the_robot_from_its_autonomy_and_gives_it_back(void **state) {
    (void)state;
    int32_t odom;
    net_peer *p =
        begin("<network><source name='operator' topic='operator/cmd_vel' priority='10'/></network>", &odom);
    us_writer *autonomy = net_speak(p, "/k10/cmd_vel", usi_type_twist),
              *operator_ = net_speak(p, "/k10/operator/cmd_vel", usi_type_twist);
    drive_both(p, odom, (us_writer *[2]){autonomy, NULL}, (double[2]){0.2, 0}, 0.2);
    drive_both(p, odom, (us_writer *[2]){autonomy, operator_}, (double[2]){0.2, -0.3}, -0.3);
    drive_both(p, odom, (us_writer *[2]){autonomy, NULL}, (double[2]){0.2, 0}, 0.2);
    finish(p);
}

static us_writer *speak_exclusively(net_peer *p, int32_t strength) {
    us_topic_def def = {.topic = "/k10/cmd_vel",
                        .type = usi_type_twist,
                        .qos = {.is_reliable = true, .depth = 1, .is_exclusive = true, .strength = strength},
                        .node = -1};
    us_writer *writer = NULL;
    us_error err = {0};
    if (us_bus_add_writer(net_bus(p), &def, &writer, &err)) fail_msg("%s", err.message);
    NET_WAIT(us_writer_n_match(writer) > 0);
    return writer;
}

static void of_exclusive_writers_the_strongest_is_heard(void **state) {
    (void)state;
    int32_t odom;
    net_peer *p = begin("<network><source name='network' ownership='exclusive'/></network>", &odom);
    us_writer *weak = speak_exclusively(p, 1);
    drive_both(p, odom, (us_writer *[2]){weak, NULL}, (double[2]){0.2, 0}, 0.2);
    us_writer *strong = speak_exclusively(p, 5);
    drive_both(p, odom, (us_writer *[2]){weak, strong}, (double[2]){0.2, -0.3}, -0.3);
    // When the strongest leaves, the next one is heard.
    us_writer_remove(strong);
    drive_both(p, odom, (us_writer *[2]){weak, NULL}, (double[2]){0.2, 0}, 0.2);
    finish(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_takes_the_robot_from_its_autonomy_and_gives_it_back),
        cmocka_unit_test(of_exclusive_writers_the_strongest_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
