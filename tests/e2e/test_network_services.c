// The rover services as requests and replies: a client on the network asks, the robot answers with the
// numbers of the request.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "net_peer.h"

enum { MAX_ENDPOINT = 400 };
static us_endpoint endpoints[MAX_ENDPOINT];

static net_peer *p;

static void start(const char *network, const char *rmw) {
    net_write_k10("k10.xml", network);
    p = net_open("cyclone");
    net_set_rmw(rmw);
    net_run("k10.xml --headless --quiet --rate 2");
    net_set_rmw(NULL);
    net_wait_until(p, 0.3);
}

static void end(void) {
    assert_int_equal(net_end(SIGINT), 0);
    net_close(p);
}

// How many endpoints of the robot there are for requests and replies.
static int count_endpoints(void) {
    int32_t n = 0, count = 0;
    assert_int_equal(us_bus_list(net_bus(p), endpoints, MAX_ENDPOINT, &n), US_OK);
    assert_true(n > 10 && n <= MAX_ENDPOINT);
    for (int32_t i = 0; i < n; i++) {
        if (endpoints[i].is_own) continue;
        bool asks = strncmp(endpoints[i].topic, "rq/", 3) == 0,
             replies = strncmp(endpoints[i].topic, "rr/", 3) == 0;
        if (asks || replies) assert_int_equal(endpoints[i].is_writer, replies);
        count += asks || replies;
    }
    return count;
}

// Waits for the reply with this number; replies to others are passed over.
static int64_t wait_reply(int32_t ear, uint64_t guid, int64_t seq) {
    double until = net_clock() + NET_PATIENCE;
    for (int64_t i = 0;;) {
        for (int64_t n = net_count(p, ear); i < n; i++) {
            if (net_number(p, ear, i, "guid") == (double)guid && net_number(p, ear, i, "seq") == (double)seq)
                return i;
        }
        if (net_clock() > until) net_fail("waited for", "a reply");
        net_nap();
    }
}

static const us_msg_locomotor_response *ask_locomotor(us_writer *writer, int32_t ear,
                                                      const us_msg_locomotor_request *m) {
    net_say(writer, usi_type_locomotor_request, m);
    return net_decode(p, ear, wait_reply(ear, m->guid, m->seq));
}

static us_msg_locomotor_request arc(uint64_t guid, int64_t seq, double speed) {
    return (us_msg_locomotor_request){
        .guid = guid,
        .seq = seq,
        .command = {
            .header.frame_id = usi_text(""), .sequence = 70, .mode = 2, .speed = speed, .distance = 0.3}};
}

// ---------------------------------------------------------------- on

static void check_asking(void) {
    int32_t replies = net_listen(p, "rr/k10/locomotorReply", usi_type_locomotor_response);
    int32_t status = net_listen(p, "/k10/locomotor/status", usi_type_locomotor_status);
    us_writer *writer = net_speak(p, "rq/k10/locomotorRequest", usi_type_locomotor_request);
    net_wait_match(p, replies);
    us_msg_locomotor_request m = arc(123456789, 1, 0.4);
    const us_msg_locomotor_response *reply = ask_locomotor(writer, replies, &m);
    assert_true(reply->accepted);
    assert_string_equal(reply->message, "");
    assert_int_equal(reply->status.sequence, 70);
    assert_int_equal(reply->status.state, 1);
    // What was asked for is done, and told on the topic.
    NET_WAIT(net_count(p, status) > 0 && net_number(p, status, -1, "sequence") == 70 &&
             net_number(p, status, -1, "state") == 2);
    m = arc(123456789, 2, 4);
    m.command.sequence = 71;
    reply = ask_locomotor(writer, replies, &m);
    assert_false(reply->accepted);
    assert_non_null(strstr(reply->message, "speed 4 m/s is beyond the limit of 0.9 m/s"));
    assert_int_equal(reply->status.sequence, 71);
    assert_int_equal(reply->status.state, 4);
    // Nothing was answered twice.
    assert_int_equal(net_count(p, replies), 2);
    us_writer_remove(writer);
}

static void a_request_is_answered_with_its_numbers(void **state) {
    (void)state;
    start("<network services='true'/>", NULL);
    check_asking();
    end();
}

static void a_robot_on_another_vendor_answers_too(void **state) {
    (void)state;
    net_peer *fast = net_open("fastdds");
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return;
    }
    net_close(fast);
    start("<network services='true'/>", "rmw_fastrtps_cpp");
    check_asking();
    end();
}

static void every_service_has_its_endpoints_and_answers_each_of_many(void **state) {
    (void)state;
    start("<network services='true'/>", NULL);
    int32_t motors = net_listen(p, "rr/k10/motor_groupReply", usi_type_motor_group_response);
    int32_t pose = net_listen(p, "rr/k10/pose_estimatorReply", usi_type_pose_estimator_response);
    int32_t navigator = net_listen(p, "rr/k10/navigatorReply", usi_type_navigator_response);
    us_writer *ask_motors = net_speak(p, "rq/k10/motor_groupRequest", usi_type_motor_group_request);
    us_writer *ask_pose = net_speak(p, "rq/k10/pose_estimatorRequest", usi_type_pose_estimator_request);
    us_writer *ask_navigator = net_speak(p, "rq/k10/navigatorRequest", usi_type_navigator_request);
    net_wait_match(p, motors);
    net_wait_match(p, pose);
    net_wait_match(p, navigator);
    NET_WAIT(count_endpoints() == 8);
    // Two clients at once: each finds its own.
    us_msg_motor_profile profile = {.name = usi_text("front_right_steer"), .mode = 2, .value = 0.1};
    enum { N = 20 };
    for (int i = 0; i < N; i++) {
        us_msg_motor_group_request m = {
            .guid = i % 2 ? 1001 : 1002,
            .seq = i / 2,
            .command = {.header.frame_id = usi_text(""), .sequence = 100 + (uint32_t)i}};
        m.command.motors._buffer = &profile;
        m.command.motors._length = 1;
        net_say(ask_motors, usi_type_motor_group_request, &m);
    }
    for (int i = 0; i < N; i++) {
        const us_msg_motor_group_response *reply =
            net_decode(p, motors, wait_reply(motors, i % 2 ? 1001 : 1002, i / 2));
        assert_true(reply->accepted);
        assert_int_equal(reply->status.sequence, 100 + i);
        assert_int_equal(reply->status.motors._length, 8);
    }
    us_msg_pose_estimator_request set = {.guid = 1,
                                         .seq = 1,
                                         .command = {.header.frame_id = usi_text("map"),
                                                     .sequence = 3,
                                                     .mode = 1,
                                                     .pose = {{10, 20, 0}, {0, 0, 0, 1}}}};
    net_say(ask_pose, usi_type_pose_estimator_request, &set);
    int64_t at = wait_reply(pose, 1, 1);
    // The reply has the pose as it is from now on. The robot stands, by odometry within a hundredth of a
    // metre.
    assert_true(fabs(net_number(p, pose, at, "status.pose.pose.position.x") - 10) < 0.01);
    us_msg_navigator_request nowhere = {
        .guid = 1, .seq = 2, .command = {.header.frame_id = usi_text("map"), .sequence = 4, .mode = 7}};
    net_say(ask_navigator, usi_type_navigator_request, &nowhere);
    const us_msg_navigator_response *reply = net_decode(p, navigator, wait_reply(navigator, 1, 2));
    assert_false(reply->accepted);
    assert_non_null(strstr(reply->message, "navigator mode 7"));
    end();
}

static void requests_and_replies_go_over_the_radio(void **state) {
    (void)state;
    start("<network services='true'><uplink delay='0.4 s'/><downlink delay='0.3 s'/></network>", NULL);
    int32_t replies = net_listen(p, "rr/k10/locomotorReply", usi_type_locomotor_response);
    us_writer *writer = net_speak(p, "rq/k10/locomotorRequest", usi_type_locomotor_request);
    net_wait_match(p, replies);
    double sent = net_time(p);
    us_msg_locomotor_request m = arc(55, 66, 0.4);
    const us_msg_locomotor_response *reply = ask_locomotor(writer, replies, &m);
    assert_true(reply->accepted);
    double stamp = reply->status.header.stamp.sec + 1e-9 * reply->status.header.stamp.nanosec;
    // It was taken after the way there, and came after the way back; the clock is told every 5 ms, so that
    // what was heard of it is a little old.
    assert_true(stamp >= sent + 0.4);
    assert_true(net_get(p, replies, wait_reply(replies, 55, 66)).clock >= stamp + 0.3 - 0.02);
    end();
}

// ---------------------------------------------------------------- off

static void without_the_setting_nobody_can_ask(void **state) {
    (void)state;
    start("", NULL);
    // Its reader stands beside those of the services, and the clock has run since all of them are there.
    us_writer *writer = net_speak(p, "/k10/navigator/command", usi_type_navigator_command);
    net_wait_until(p, 1);
    assert_int_equal(count_endpoints(), 0);
    us_writer_remove(writer);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_answered_with_its_numbers),
        cmocka_unit_test(a_robot_on_another_vendor_answers_too),
        cmocka_unit_test(every_service_has_its_endpoints_and_answers_each_of_many),
        cmocka_unit_test(requests_and_replies_go_over_the_radio),
        cmocka_unit_test(without_the_setting_nobody_can_ask),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
