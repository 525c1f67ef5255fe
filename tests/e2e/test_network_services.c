// The rover services as requests and replies: a client on the network asks, the robot answers with the
// numbers of the request.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "net_peer.h"
#include "understudy/service.h"

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

// How many endpoints of the robot there are for requests and replies, those of its node apart.
static int count_endpoints(bool counts_node) {
    int32_t n = 0, count = 0;
    assert_int_equal(us_bus_list(net_bus(p), endpoints, MAX_ENDPOINT, &n), US_OK);
    assert_true(n > 10 && n <= MAX_ENDPOINT);
    for (int32_t i = 0; i < n; i++) {
        if (endpoints[i].is_own) continue;
        if (!counts_node && strstr(endpoints[i].topic, "/driver/")) continue;
        bool asks = strncmp(endpoints[i].topic, "rq/k10/", 7) == 0,
             replies = strncmp(endpoints[i].topic, "rr/k10/", 7) == 0;
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
    start("<network/>", NULL);
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
    start("<network/>", "rmw_fastrtps_cpp");
    check_asking();
    end();
}

static void every_service_has_its_endpoints_and_answers_each_of_many(void **state) {
    (void)state;
    start("<network/>", NULL);
    int32_t motors = net_listen(p, "rr/k10/motor_groupReply", usi_type_motor_group_response);
    int32_t pose = net_listen(p, "rr/k10/pose_estimatorReply", usi_type_pose_estimator_response);
    int32_t navigator = net_listen(p, "rr/k10/navigatorReply", usi_type_navigator_response);
    us_writer *ask_motors = net_speak(p, "rq/k10/motor_groupRequest", usi_type_motor_group_request);
    us_writer *ask_pose = net_speak(p, "rq/k10/pose_estimatorRequest", usi_type_pose_estimator_request);
    us_writer *ask_navigator = net_speak(p, "rq/k10/navigatorRequest", usi_type_navigator_request);
    net_wait_match(p, motors);
    net_wait_match(p, pose);
    net_wait_match(p, navigator);
    NET_WAIT(count_endpoints(false) == 12);
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
    start("<network><uplink delay='0.4 s'/><downlink delay='0.3 s'/></network>", NULL);
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

static void a_robot_without_services_cannot_be_asked(void **state) {
    (void)state;
    start("<network services='false'/>", NULL);
    // Its reader stands beside those of the services, and the clock has run since all of them are there.
    us_writer *writer = net_speak(p, "/k10/navigator/command", usi_type_navigator_command);
    net_wait_until(p, 1);
    assert_int_equal(count_endpoints(true), 0);
    us_writer_remove(writer);
    end();
}

// ---------------------------------------------------------------- properties and waits

static void a_client_sets_properties_and_waits_for_the_end_of_a_motion(void **state) {
    (void)state;
    start("<network services='true'/>", NULL);
    int32_t set = net_listen(p, "rr/k10/propertiesReply", usi_type_properties_response);
    int32_t over = net_listen(p, "rr/k10/waitReply", usi_type_wait_response);
    int32_t went = net_listen(p, "rr/k10/navigatorReply", usi_type_navigator_response);
    us_writer *ask_set = net_speak(p, "rq/k10/propertiesRequest", usi_type_properties_request);
    us_writer *ask_wait = net_speak(p, "rq/k10/waitRequest", usi_type_wait_request);
    us_writer *ask_go = net_speak(p, "rq/k10/navigatorRequest", usi_type_navigator_request);
    net_wait_match(p, set);
    net_wait_match(p, over);
    net_wait_match(p, went);
    us_msg_properties_request m = {.guid = 1, .seq = 1};
    net_say(ask_set, usi_type_properties_request, &m);
    const us_msg_properties_response *all = net_decode(p, set, wait_reply(set, 1, 1));
    assert_true(all->accepted && all->properties._length > 20);
    assert_string_equal(all->properties._buffer[0].name, "limit.speed");
    assert_true(all->properties._buffer[0].value == 0.9);
    assert_string_equal(all->properties._buffer[0].unit, "m/s");
    assert_false(all->properties._buffer[0].writable);
    // The site's frame is a metre to the left of where the robot began.
    char *name = usi_text("site.y");
    double value = 1;
    m = (us_msg_properties_request){.guid = 1, .seq = 2, .mode = 2};
    m.names._buffer = &name;
    m.values._buffer = &value;
    m.names._length = m.values._length = 1;
    net_say(ask_set, usi_type_properties_request, &m);
    const us_msg_properties_response *one = net_decode(p, set, wait_reply(set, 1, 2));
    assert_true(one->accepted && one->properties._length == 1 && one->properties._buffer[0].value == 1);

    us_msg_point point = {0.6, -1, 0};
    us_msg_navigator_request go = {.guid = 1, .seq = 3};
    go.command = (us_msg_navigator_command){.header.frame_id = usi_text("k10/site"),
                                            .sequence = 40,
                                            .mode = 1,
                                            .speed = 0.5,
                                            .tolerance = 0.1,
                                            .timeout = 30};
    go.command.points._buffer = &point;
    go.command.points._length = 1;
    net_say(ask_go, usi_type_navigator_request, &go);
    assert_true(((const us_msg_navigator_response *)net_decode(p, went, wait_reply(went, 1, 3)))->accepted);
    us_msg_wait_request wait = {
        .guid = 1, .seq = 4, .service = usi_text("navigator"), .sequence = 40, .timeout = 0.1};
    net_say(ask_wait, usi_type_wait_request, &wait);
    wait.seq = 5;
    wait.timeout = 60;
    net_say(ask_wait, usi_type_wait_request, &wait);
    const us_msg_wait_response *early = net_decode(p, over, wait_reply(over, 1, 4));
    assert_false(early->accepted);
    assert_int_equal(early->error, 3);
    const us_msg_wait_response *late = net_decode(p, over, wait_reply(over, 1, 5));
    assert_true(late->accepted);
    assert_int_equal(late->state, 2);
    assert_int_equal(late->error, 0);
    end();
}

static bool is_paused(int32_t status) {
    if (net_count(p, status) == 0) return false;
    const us_msg_string *m = net_decode(p, status, -1);
    return strstr(m->data, "\"paused\":true") != NULL;
}

// While time stands the robot's computer does; the node's parameters are no part of it.
static void a_request_to_a_robot_of_a_paused_world_is_answered_when_time_goes_on(void **state) {
    (void)state;
    start("<network/>", NULL);
    int32_t replies = net_listen(p, "rr/k10/locomotorReply", usi_type_locomotor_response);
    int32_t status = net_listen(p, "/understudy/status", usi_type_string);
    us_writer *ask_robot = net_speak(p, "rq/k10/locomotorRequest", usi_type_locomotor_request);
    us_client *node = NULL;
    us_error err = {0};
    const us_client_def def = {"/k10/driver/list_parameters", usi_type_list_parameters_request,
                               usi_type_list_parameters_response, -1, US_DIALECT_CYCLONE};
    if (us_bus_add_client(net_bus(p), &def, &node, &err)) fail_msg("%s", err.message);
    us_writer *world = net_speak(p, "/understudy/command", usi_type_string);
    net_wait_match(p, replies);
    NET_WAIT(us_client_is_ready(node));
    net_say(world, usi_type_string, &(us_msg_string){usi_text("pause")});
    NET_WAIT(is_paused(status));
    const us_msg_locomotor_request m = arc(7, 1, 0.4);
    net_say(ask_robot, usi_type_locomotor_request, &m);
    // A node that was asked afterwards has answered: the robot could have.
    uint8_t bytes[4096];
    size_t length = 0;
    int64_t number = 0;
    const us_msg_list_parameters_request list = {0};
    assert_int_equal(us_message_encode(usi_type_list_parameters_request, &list, bytes, sizeof bytes, &length),
                     US_OK);
    // Asked again: the service may not have found us yet.
    const double until = net_clock() + NET_PATIENCE;
    uint8_t reply_bytes[4096];
    size_t n = 0;
    for (double next = 0; n == 0; net_nap()) {
        if (net_clock() > until) net_fail("waited for", "the parameters");
        if (net_clock() > next) {
            assert_int_equal(us_client_ask(node, bytes, length, &number), US_OK);
            next = net_clock() + 2;
        }
        assert_int_equal(us_client_take(node, reply_bytes, sizeof reply_bytes, &n, &number), US_OK);
    }
    assert_int_equal(net_count(p, replies), 0);
    net_say(world, usi_type_string, &(us_msg_string){usi_text("resume")});
    const us_msg_locomotor_response *reply = net_decode(p, replies, wait_reply(replies, 7, 1));
    assert_true(reply->accepted);
    us_client_remove(node);
    end();
}

// As a K10's own software has it: wheel speeds five times a second, telemetry 25 times.
static void motor_commands_come_at_five_hertz_and_telemetry_leaves_at_25(void **state) {
    (void)state;
    start("<network timeout='0.5 s'/>", NULL);
    int32_t status = net_listen(p, "/k10/motor_group/status", usi_type_motor_group_status);
    us_writer *writer = net_speak(p, "/k10/motor_group/command", usi_type_motor_group_command);
    net_wait_match(p, status);
    static const char *const names[] = {"front_left_drive", "front_right_drive", "rear_left_drive",
                                        "rear_right_drive"};
    us_msg_motor_profile profiles[4];
    for (int i = 0; i < 4; i++)
        profiles[i] = (us_msg_motor_profile){.name = usi_text(names[i]), .mode = 1, .value = 1.5};
    const double begin = net_time(p);
    const int64_t first = net_count(p, status);
    for (int i = 0; i < 15; i++) {
        us_msg_motor_group_command m = {.header.frame_id = usi_text(""), .sequence = (uint32_t)i + 1};
        m.motors._buffer = profiles;
        m.motors._length = 4;
        net_say(writer, usi_type_motor_group_command, &m);
        net_wait_until(p, begin + 0.2 * (i + 1));
    }
    // Never longer than the time-out without one: the wheels have gone on rolling.
    NET_WAIT(net_number(p, status, -1, "sequence") == 15);
    // Drives give way by torque over gain.
    assert_true(fabs(net_number(p, status, -1, "motors[1].velocity") - 1.5) < 0.1);
    const double rate = (double)(net_count(p, status) - first) / (net_time(p) - begin);
    // By the clock of the simulation; a sample at either end is one more or less, of 75.
    assert_true(fabs(rate - 25) < 1.5);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_answered_with_its_numbers),
        cmocka_unit_test(a_robot_on_another_vendor_answers_too),
        cmocka_unit_test(every_service_has_its_endpoints_and_answers_each_of_many),
        cmocka_unit_test(requests_and_replies_go_over_the_radio),
        cmocka_unit_test(a_robot_without_services_cannot_be_asked),
        cmocka_unit_test(a_client_sets_properties_and_waits_for_the_end_of_a_motion),
        cmocka_unit_test(a_request_to_a_robot_of_a_paused_world_is_answered_when_time_goes_on),
        cmocka_unit_test(motor_commands_come_at_five_hertz_and_telemetry_leaves_at_25),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
