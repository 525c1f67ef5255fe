// How robots appear to others on the network: nodes, endpoints, types, qualities of service; frames that
// never move; several robots in one world.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <dds/dds.h>

#include "net_peer.h"

enum { MAX_ENDPOINT = 400 };
static us_endpoint endpoints[MAX_ENDPOINT];

static int32_t list(net_peer *p) {
    int32_t n = 0;
    assert_int_equal(us_bus_list(net_bus(p), endpoints, MAX_ENDPOINT, &n), US_OK);
    assert_true(n <= MAX_ENDPOINT);
    return n;
}

// How many endpoints belong to a node.
static int32_t n_of_node(net_peer *p, const char *node) {
    int32_t n = list(p), count = 0;
    for (int32_t i = 0; i < n; i++)
        count += strcmp(endpoints[i].node, node) == 0;
    return count;
}

static us_endpoint find(int32_t n, const char *topic, const us_message_type *type, bool is_writer) {
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &endpoints[i];
        if (!e->is_own && e->is_writer == is_writer && strcmp(e->topic, topic) == 0 &&
            strcmp(e->type, us_message_dds_name(type)) == 0)
            return *e;
    }
    fail_msg("no %s of %s with type %s", is_writer ? "writer" : "reader", topic, us_message_name(type));
    return (us_endpoint){0};
}

// ---------------------------------------------------------------- one robot

static const struct {
    const char *topic;
    const us_message_type *type;
    bool is_writer;
    us_qos qos;
} expected[] = {
    {"rt/k10/joint_states", usi_type_joint_state, true, {.is_reliable = true, .depth = 10}},
    {"rt/k10/odom", usi_type_odometry, true, {.is_reliable = true, .depth = 10}},
    {"rt/tf", usi_type_tf_message, true, {.is_reliable = true, .depth = 100}},
    {"rt/k10/imu/data", usi_type_imu, true, {.is_reliable = true, .depth = 10}},
    {"rt/k10/robot_description",
     usi_type_string,
     true,
     {.is_reliable = true, .is_transient_local = true, .depth = 1}},
    {"rt/k10/battery_state", usi_type_battery_state, true, {.is_reliable = true, .depth = 10}},
    {"rt/diagnostics", usi_type_diagnostic_array, true, {.is_reliable = true, .depth = 10}},
    {"rt/understudy/truth/k10/odom", usi_type_odometry, true, {.is_reliable = true, .depth = 10}},
    {"rt/understudy/truth/k10/imu", usi_type_imu, true, {.is_reliable = true, .depth = 10}},
    {"rt/understudy/truth/k10/battery", usi_type_battery_state, true, {.is_reliable = true, .depth = 10}},
    {"rt/k10/motor_group/status", usi_type_motor_group_status, true, {.is_reliable = true, .depth = 10}},
    {"rt/k10/locomotor/status", usi_type_locomotor_status, true, {.is_reliable = true, .depth = 10}},
    {"rt/k10/pose_estimator/status",
     usi_type_pose_estimator_status,
     true,
     {.is_reliable = true, .depth = 10}},
    {"rt/k10/navigator/status", usi_type_navigator_status, true, {.is_reliable = true, .depth = 10}},
    {"rt/rosout", usi_type_log, true, {.is_reliable = true, .is_transient_local = true, .depth = 1000}},
    {"rt/parameter_events", usi_type_parameter_event, true, {.is_reliable = true, .depth = 1000}},
    {"rt/k10/cmd_vel", usi_type_twist, false, {.is_reliable = true, .depth = 10}},
    {"rt/k10/cmd_vel_stamped", usi_type_twist_stamped, false, {.is_reliable = true, .depth = 10}},
    {"rt/k10/joint_trajectory", usi_type_joint_trajectory, false, {.is_reliable = true, .depth = 10}},
    {"rt/k10/joint_commands", usi_type_float64_multi_array, false, {.is_reliable = true, .depth = 10}},
    {"rt/k10/motor_group/command", usi_type_motor_group_command, false, {.is_reliable = true, .depth = 10}},
    {"rt/k10/locomotor/command", usi_type_locomotor_command, false, {.is_reliable = true, .depth = 10}},
    {"rt/k10/pose_estimator/command",
     usi_type_pose_estimator_command,
     false,
     {.is_reliable = true, .depth = 10}},
    {"rt/k10/navigator/command", usi_type_navigator_command, false, {.is_reliable = true, .depth = 10}},
};
enum {
    N_EXPECTED = sizeof expected / sizeof expected[0],
    N_ALL = N_EXPECTED + 2 * (6 + 8),    // the rover services, and what tools ask a node
    N_WORLD = 4 + 2 * 13 + (2 * 3 + 2),  // simulation_interfaces: services, and an action
};

static void the_driver_has_the_endpoints_of_the_robot(void **state) {
    (void)state;
    net_write_k10("k10.xml", "");
    net_run("k10.xml --headless --quiet");
    net_peer *p = net_open("cyclone");
    NET_WAIT(n_of_node(p, "/k10/driver") == N_ALL);
    // The world's own commands and status, and the topics of a switch, are told a moment later.
    NET_WAIT(n_of_node(p, "/understudy/world") == N_WORLD);
    int32_t n = list(p);
    for (int i = 0; i < N_EXPECTED; i++) {
        us_endpoint e = find(n, expected[i].topic, expected[i].type, expected[i].is_writer);
        assert_string_equal(e.node, "/k10/driver");
        assert_string_equal(e.hash, us_message_hash(expected[i].type));
        assert_int_equal(strncmp(e.hash, "RIHS01_", 7), 0);
        assert_true(e.is_xcdr1);
        assert_true(e.qos.is_reliable == expected[i].qos.is_reliable &&
                    e.qos.is_transient_local == expected[i].qos.is_transient_local);
        // The depth is told to others with durability only, and by some vendors not at all.
        if (e.qos.is_transient_local) assert_int_equal(e.qos.depth, expected[i].qos.depth);
    }
    us_endpoint clock = find(n, "rt/clock", usi_type_clock, true);
    assert_string_equal(clock.node, "/understudy/simulation");

    us_participant others[10];
    int32_t n_other = 0, n_program = 0;
    assert_int_equal(us_bus_list_participants(net_bus(p), others, 10, &n_other), US_OK);
    for (int32_t i = 0; i < n_other && i < 10; i++) {
        if (others[i].is_own) continue;
        n_program++;
        assert_string_equal(others[i].vendor, "cyclone");
        assert_string_equal(others[i].enclave, "/");
        assert_int_equal(others[i].n_node, 3);  // driver, simulation, world
    }
    assert_int_equal(n_program, 1);
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

// What a ROS 2 program reads, read without our bus: the topic ros_discovery_info through the vendor's own
// interface.
static void ros_discovery_info_names_nodes_and_endpoints(void **state) {
    (void)state;
    net_write_k10("k10.xml", "");
    net_run("k10.xml --headless --quiet");
    // Our bus makes the domain, with the loopback as its only interface; the reader is the vendor's own.
    net_peer *p = net_open("cyclone");
    NET_WAIT(n_of_node(p, "/k10/driver") == N_ALL);
    dds_entity_t participant = dds_create_participant((dds_domainid_t)net_domain(), NULL, NULL);
    assert_true(participant > 0);
    dds_entity_t topic =
        dds_create_topic(participant, usi_message_descriptor(usi_type_participant_entities_info),
                         "ros_discovery_info", NULL, NULL);
    assert_true(topic > 0);
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, 0);
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dds_entity_t reader = dds_create_reader(participant, topic, qos, NULL);
    dds_delete_qos(qos);
    assert_true(reader > 0);

    // The program's participant is the one that is not ours.
    us_participant others[10];
    int32_t n_other = 0;
    uint8_t program[16] = {0};
    assert_int_equal(us_bus_list_participants(net_bus(p), others, 10, &n_other), US_OK);
    for (int32_t i = 0; i < n_other && i < 10; i++) {
        if (!others[i].is_own && others[i].n_node > 0) memcpy(program, others[i].id, sizeof program);
    }
    bool has_driver = false;
    double until = net_clock() + NET_PATIENCE;
    while (!has_driver) {
        if (net_clock() > until) net_fail("waited for", "ros_discovery_info");
        net_nap();
        void *samples[1] = {NULL};
        dds_sample_info_t info;
        if (dds_take(reader, samples, &info, 1, 1) != 1) continue;
        const us_msg_participant_entities_info *m = samples[0];
        for (uint32_t i = 0; info.valid_data && memcmp(m->gid.data, program, 16) == 0 &&
                             i < m->node_entities_info_seq._length;
             i++) {
            const us_msg_node_entities_info *node = &m->node_entities_info_seq._buffer[i];
            if (strcmp(node->node_name, "driver") != 0) continue;
            has_driver = true;
            assert_string_equal(node->node_namespace, "/k10");
            assert_int_equal(node->writer_gid_seq._length + node->reader_gid_seq._length, N_ALL);
            // Each id is an endpoint that discovery knows, of that kind.
            int32_t n = list(p), n_found = 0;
            for (int32_t k = 0; k < n; k++) {
                uint32_t n_id =
                    endpoints[k].is_writer ? node->writer_gid_seq._length : node->reader_gid_seq._length;
                const us_msg_gid *ids =
                    endpoints[k].is_writer ? node->writer_gid_seq._buffer : node->reader_gid_seq._buffer;
                for (uint32_t j = 0; j < n_id; j++)
                    n_found += memcmp(ids[j].data, endpoints[k].id, 16) == 0;
            }
            assert_int_equal(n_found, N_ALL);
        }
        dds_return_loan(reader, samples, 1);
    }
    dds_delete(participant);
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

// ---------------------------------------------------------------- frames

// The parent of a frame by what was said last on a topic, of any robot; false when it is not told there.
static bool parent_of(net_peer *p, int32_t ear, const char *frame, char *out, size_t cap) {
    for (int64_t i = net_count(p, ear) - 1; i >= 0; i--) {
        const us_msg_tf_message *m = net_decode(p, ear, i);
        for (uint32_t k = 0; k < m->transforms._length; k++) {
            if (strcmp(m->transforms._buffer[k].child_frame_id, frame) != 0) continue;
            snprintf(out, cap, "%s", m->transforms._buffer[k].header.frame_id);
            return true;
        }
    }
    return false;
}

static void frames_that_never_move_reach_late_comers_of_every_robot(void **state) {
    (void)state;
    static const char *const links[] = {"shoulder", "flange", "palm", "left_finger", "right_finger"};
    net_write_text("arms.xml",
                   "<scene name='arms' version='1'><world step='2 ms'/>"
                   "<robot name='left' file='" US_SOURCE_DIR "/models/arm6-gripper.urdf' xyz='0 1 0'/>"
                   "<robot name='right' file='" US_SOURCE_DIR
                   "/models/arm6-gripper.urdf' xyz='0 -1 0'/></scene>\n%s",
                   "");
    net_run("arms.xml --headless --quiet");
    net_peer *first = net_open("cyclone");
    net_wait_until(first, 0.3);
    net_peer *p = net_open("cyclone");
    int32_t tf = net_listen(p, "/tf", usi_type_tf_message),
            fixed = net_listen(p, "/tf_static", usi_type_tf_message);
    // One message of each robot: what was said before this reader was there.
    NET_WAIT(net_count(p, fixed) == 2);
    for (int robot = 0; robot < 2; robot++) {
        const char *name = robot == 0 ? "left" : "right";
        char root[100];
        snprintf(root, sizeof root, "%s/base", name);
        for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
            char frame[100], parent[100];
            snprintf(frame, sizeof frame, "%s/%s", name, links[i]);
            for (int depth = 0; strcmp(frame, root) != 0; depth++) {
                // What moves is told again and again: the first of a robot may be yet to come.
                NET_WAIT(parent_of(p, tf, frame, parent, sizeof parent) ||
                         parent_of(p, fixed, frame, parent, sizeof parent));
                if (depth > 20) fail_msg("%s hangs on nothing", frame);
                snprintf(frame, sizeof frame, "%s", parent);
            }
        }
    }
    net_close(p);
    net_close(first);
    assert_int_equal(net_end(SIGINT), 0);
}

// ---------------------------------------------------------------- several robots

static void a_command_to_one_robot_moves_that_one_only(void **state) {
    (void)state;
    enum { N = 3 };
    int32_t odom[N], joints[N], truth[N];
    double x[N], y[N];
    net_run(US_SOURCE_DIR "/scenes/fleet.xml --set n=3 --headless --quiet");
    net_peer *p = net_open("cyclone");
    for (int i = 0; i < N; i++) {
        char topic[100];
        snprintf(topic, sizeof topic, "/r0%d/odom", i);
        odom[i] = net_listen(p, topic, usi_type_odometry);
        snprintf(topic, sizeof topic, "/r0%d/joint_states", i);
        joints[i] = net_listen(p, topic, usi_type_joint_state);
        snprintf(topic, sizeof topic, "/understudy/truth/r0%d/odom", i);
        truth[i] = net_listen(p, topic, usi_type_odometry);
    }
    for (int i = 0; i < N; i++) {
        char node[100], frame[100];
        snprintf(node, sizeof node, "/r0%d/driver", i);
        NET_WAIT(n_of_node(p, node) > 0);
        net_wait_after(p, truth[i], 0.5);
        NET_WAIT(net_count(p, odom[i]) > 0 && net_count(p, joints[i]) > 0);
        const us_msg_odometry *m = net_decode(p, odom[i], -1);
        snprintf(frame, sizeof frame, "r0%d/odom", i);
        assert_string_equal(m->header.frame_id, frame);
        snprintf(frame, sizeof frame, "r0%d/base", i);
        assert_string_equal(m->child_frame_id, frame);
        x[i] = net_number(p, truth[i], -1, "pose.pose.position.x");
        y[i] = net_number(p, truth[i], -1, "pose.pose.position.y");
    }
    assert_int_equal(n_of_node(p, "/r03/driver"), 0);

    us_writer *writer = net_speak(p, "/r01/cmd_vel", usi_type_twist);
    us_msg_twist m = {.linear.x = 0.5};
    double until = net_clock() + NET_PATIENCE;
    while (net_number(p, truth[1], -1, "pose.pose.position.x") < x[1] + 0.3) {
        if (net_clock() > until) net_fail("waited for", "r01 to move");
        net_say(writer, usi_type_twist, &m);
        for (int i = 0; i < 50; i++)
            net_nap();
    }
    double now = net_time(p);
    for (int i = 0; i < N; i += 2) {
        // The others stand: contact with the ground gives way by micrometres.
        int64_t k = net_wait_after(p, truth[i], now);
        assert_true(fabs(net_number(p, truth[i], k, "pose.pose.position.x") - x[i]) < 1e-4);
        assert_true(fabs(net_number(p, truth[i], k, "pose.pose.position.y") - y[i]) < 1e-4);
        assert_true(fabs(net_number(p, joints[i], -1, "velocity[0]")) < 1e-3);
    }
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

static void a_skid_robot_turns_by_the_track_that_its_scene_says(void **state) {
    (void)state;
    // In free space, where nothing hinders a wheel.
    static const char cart[] =
        "<robot name='%s' file='" US_SOURCE_DIR
        "/models/cart.urdf' base='floating' default='wheel' xyz='0 %d 0'>"
        "<drive joint='front_left'/><drive joint='front_right'/><drive joint='rear_left'/><drive "
        "joint='rear_right'/>"
        "<network timeout='0 s'/><locomotion type='skid' track-scale='%g'>"
        "<wheel drive='front_left' radius='0.1'/><wheel drive='front_right' radius='0.1'/>"
        "<wheel drive='rear_left' radius='0.1'/><wheel drive='rear_right' "
        "radius='0.1'/></locomotion></robot>";
    static const double scale[] = {1, 1.5};
    char robots[2][1000];
    for (int i = 0; i < 2; i++)
        snprintf(robots[i], sizeof robots[i], cart, i == 0 ? "a" : "b", 2 * i, scale[i]);
    net_write_text("skid.xml",
                   "<scene name='skid' version='1'><world step='2 ms' gravity='0 0 0'/><default "
                   "name='wheel'><drive kd='4'/></default>%s%s</scene>\n",
                   robots[0], robots[1]);
    net_run("skid.xml --headless --quiet");
    net_peer *p = net_open("cyclone");
    for (int i = 0; i < 2; i++) {
        int32_t joints = net_listen(p, i == 0 ? "/a/joint_states" : "/b/joint_states", usi_type_joint_state);
        us_writer *writer = net_speak(p, i == 0 ? "/a/cmd_vel" : "/b/cmd_vel", usi_type_twist);
        net_say(writer, usi_type_twist, &(us_msg_twist){.angular.z = 0.5});
        NET_WAIT(net_count(p, joints) > 0 && net_number(p, joints, -1, "velocity[1]") > 0.9);
        // Wheels of 0.1 m at 0.2 m from the middle; a drive gives way by damping 0.02 over gain 4: half a
        // percent.
        double speed = 0.5 * 0.2 * scale[i] / 0.1;
        NET_WAIT(fabs(net_number(p, joints, -1, "velocity[1]") / speed - 1) < 0.01 &&
                 fabs(net_number(p, joints, -1, "velocity[0]") / speed + 1) < 0.01);
    }
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

static void a_robot_on_another_vendor_is_heard_and_driven(void **state) {
    (void)state;
    net_peer *fast = net_open("fastdds");
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return;
    }
    net_close(fast);
    net_set_rmw("rmw_fastrtps_cpp");
    net_run(US_SOURCE_DIR "/scenes/fleet.xml --set n=1 --headless --quiet");
    net_set_rmw(NULL);
    net_peer *p = net_open("cyclone");
    int32_t odom = net_listen(p, "/r00/odom", usi_type_odometry);
    us_writer *writer = net_speak(p, "/r00/cmd_vel", usi_type_twist);
    NET_WAIT(n_of_node(p, "/r00/driver") > 0 && net_count(p, odom) > 0);
    us_participant others[10];
    int32_t n_other = 0, n_fast = 0;
    assert_int_equal(us_bus_list_participants(net_bus(p), others, 10, &n_other), US_OK);
    for (int32_t i = 0; i < n_other && i < 10; i++)
        n_fast += !others[i].is_own && strcmp(others[i].vendor, "fastdds") == 0;
    assert_int_equal(n_fast, 1);
    double until = net_clock() + NET_PATIENCE;
    while (net_number(p, odom, -1, "pose.pose.position.x") < 0.2) {
        if (net_clock() > until) net_fail("waited for", "r00 to move");
        net_say(writer, usi_type_twist, &(us_msg_twist){.linear.x = 0.5});
        for (int i = 0; i < 50; i++)
            net_nap();
    }
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_has_the_endpoints_of_the_robot),
        cmocka_unit_test(ros_discovery_info_names_nodes_and_endpoints),
        cmocka_unit_test(frames_that_never_move_reach_late_comers_of_every_robot),
        cmocka_unit_test(a_command_to_one_robot_moves_that_one_only),
        cmocka_unit_test(a_skid_robot_turns_by_the_track_that_its_scene_says),
        cmocka_unit_test(a_robot_on_another_vendor_is_heard_and_driven),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
