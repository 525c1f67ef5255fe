// Robots with interfaces of their own, driven by a client that has nothing but the IDL: NASA's RAPID and a
// low-level interface of torques and gains. A real `understudy run` on one side, a bus with types from the
// files on the other.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"
#include "understudy/interface.h"
#include "understudy/record.h"

enum { CAP = 1 << 18 };

// A topic that the client hears: the newest sample is kept.
typedef struct ear {
    us_reader *reader;
    const us_message_type *type;
    uint8_t bytes[CAP];
    size_t length;
} ear;

static net_peer *peer;
static us_interface *types;

static us_interface *load(const char *const *files, int32_t n) {
    us_interface_def def = us_interface_def_default();
    us_interface *interface_ = NULL;
    us_error err = {0};
    def.n_file = n;
    def.files = files;
    if (us_interface_load(&def, &interface_, &err))
        fail_msg("%s:%d: %s (%s)", err.file, (int)err.line, err.message, err.remedy);
    return interface_;
}

static us_topic_def topic_of(const char *topic, const char *type, us_qos qos) {
    us_topic_def def = {topic, us_interface_find(types, type), qos, -1};
    assert_non_null(def.type);
    return def;
}

static ear *listen_to(const char *topic, const char *type, us_qos qos) {
    ear *e = calloc(1, sizeof *e);
    us_error err = {0};
    const us_topic_def def = topic_of(topic, type, qos);
    assert_non_null(e);
    e->type = def.type;
    if (us_bus_add_reader(net_bus(peer), &def, NULL, NULL, &e->reader, &err)) fail_msg("%s", err.message);
    return e;
}

static us_writer *speak_on(const char *topic, const char *type, us_qos qos) {
    us_writer *writer = NULL;
    us_error err = {0};
    const us_topic_def def = topic_of(topic, type, qos);
    if (us_bus_add_writer(net_bus(peer), &def, &writer, &err)) fail_msg("%s", err.message);
    return writer;
}

// Takes one sample more, if there is one.
static bool hear(ear *e) {
    uint8_t bytes[CAP];
    size_t n = 0;
    if (us_reader_take(e->reader, bytes, sizeof bytes, &n, NULL) || n == 0) return false;
    memcpy(e->bytes, bytes, n);
    e->length = n;
    return true;
}

static double number(const ear *e, const char *member) {
    return e->length ? us_message_get_number(e->type, e->bytes, e->length, member) : NAN;
}

static const char *text(const ear *e, const char *member) {
    static char found[300];
    if (!e->length || us_message_get_text(e->type, e->bytes, e->length, member, found, sizeof found))
        return "";
    return found;
}

static void say(us_writer *writer, const char *type, const us_member_value *values, int32_t n) {
    uint8_t bytes[CAP];
    size_t length = 0;
    us_error err = {0};
    if (us_message_compose(us_interface_find(types, type), values, n, bytes, sizeof bytes, &length, &err))
        fail_msg("%s (%s)", err.message, err.remedy);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
}

// ---------------------------------------------------------------- RAPID

static const us_qos reliable = {.is_reliable = true, .depth = 20},
                    latched = {.is_reliable = true, .is_transient_local = true, .depth = 1},
                    // As RAPID's profiles have them: samples are sent once, Acks kept.
    sent_once = {.depth = 5}, acks = {.is_reliable = true, .is_transient_local = true, .depth = 20};

// NASA's own files where they are; else ours, which have the same types.
static void load_rapid(void) {
    static const char *const names[] = {"Command",
                                        "Ack",
                                        "AccessControlState",
                                        "PositionSample",
                                        "JointSample",
                                        "FrameStoreConfig",
                                        "PointCloudConfig",
                                        "PointCloudSample"};
    enum { N_NAME = sizeof names / sizeof *names };
    static char paths[N_NAME][512];
    const char *files[N_NAME], *root = getenv("US_SHARED");
    for (int i = 0; i < N_NAME; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/data/network/rapid_idl/rapidDds/%s.idl",
                 root ? root : US_SOURCE_DIR "/../shared", names[i]);
        files[i] = paths[i];
    }
    FILE *f = fopen(paths[0], "r");
    if (f) {
        fclose(f);
        types = load(files, N_NAME);
        return;
    }
    print_message("NASA's files are skipped: there is no %s\n", paths[0]);
    files[0] = US_SOURCE_DIR "/scenes/interfaces/rapid.idl";
    types = load(files, 1);
}

static void command(us_writer *writer, const char *id, const char *name, double x, double y) {
    const us_member_value values[] = {{"hdr.srcName", 0, "operator"},
                                      {"hdr.assetName", 0, "k10"},
                                      {"cmdName", 0, name},
                                      {"cmdId", 0, id},
                                      {"subsysName", 0, "Mobility"},
                                      {"arguments[0].s", 0, "k10/odom"},
                                      {"arguments[1].vec3d[0]", x, NULL},
                                      {"arguments[1].vec3d[1]", y, NULL}};
    say(writer, "rapid::Command", values, 8);
}

// The next Ack is this one: of this command, with RAPID's numbers of how it fares and has ended.
static void expect_ack(ear *ack, const char *id, double status, double completed) {
    NET_WAIT(hear(ack));
    if (strcmp(text(ack, "cmdId"), id) != 0 || number(ack, "status") != status ||
        number(ack, "completedStatus") != completed)
        fail_msg("%s %g %g in place of %s %g %g", text(ack, "cmdId"), number(ack, "status"),
                 number(ack, "completedStatus"), id, status, completed);
}
enum { EXECUTING = 1, COMPLETED = 3 };               // AckStatus
enum { NOT = 0, OK = 1, FAILED = 3, CANCELED = 4 };  // AckCompletedStatus

// What the lidar sees of level ground: each point lies on it.
static void look_at_the_cloud(ear *config, ear *cloud) {
    char member[64];
    NET_WAIT(hear(config));
    NET_WAIT(hear(cloud));
    assert_string_equal(text(config, "referenceFrame"), "k10/lidar");
    assert_true(number(config, "attributesMode[0]") == 1 && number(config, "attributesMode[1]") == 2);
    double n_point = 0;
    for (int ring = 0; ring < 32; ring++) {
        snprintf(member, sizeof member, "rowLengths[%d]", ring);
        n_point += number(cloud, member);
    }
    assert_true(isnan(number(cloud, "rowLengths[32]")));
    snprintf(member, sizeof member, "points[%d].xyz[2]", (int)n_point);
    assert_true(n_point > 4000 && isnan(number(cloud, member)));
    for (int i = 0; i < 100; i++) {
        const int at = i * (int)(n_point - 1) / 99;
        snprintf(member, sizeof member, "points[%d].xyz[2]", at);
        const double z = number(cloud, member) * number(cloud, "xyzScale[2]");
        // The lidar is 1.45 m above the base, whose origin is on the ground; beams hit the rover, too.
        assert_true(z > -1.6 && z < 0.1);
        snprintf(member, sizeof member, "points[%d].attributes[1]", at);
        assert_true(number(cloud, member) < 32);
    }
}

static void drive_by_rapid(void) {
    peer = net_open("cyclone");
    load_rapid();
    ear *ack = listen_to("dds:rapid_ack", "rapid::Ack", acks);
    ear *position = listen_to("dds:rapid_position_sample", "rapid::PositionSample", sent_once);
    ear *joints = listen_to("dds:rapid_joint_sample", "rapid::JointSample", latched);
    ear *access = listen_to("dds:rapid_accesscontrol_state", "rapid::AccessControlState", latched);
    ear *config = listen_to("dds:rapid_pointcloud_config", "rapid::PointCloudConfig", latched);
    ear *cloud = listen_to("dds:rapid_pointcloud_sample", "rapid::PointCloudSample", sent_once);
    us_writer *writer = speak_on("dds:rapid_command", "rapid::Command", reliable);
    net_run("%s/scenes/rapid.xml --headless --quiet", US_SOURCE_DIR);
    NET_WAIT(us_writer_n_match(writer) == 1 && us_reader_n_match(ack->reader) == 1);
    NET_WAIT(hear(position) && hear(joints) && hear(access));
    assert_string_equal(text(position, "hdr.assetName"), "k10");
    // A matrix of a rotation about z, at rest.
    assert_true(fabs(number(position, "pose.rot[8]") - 1) < 1e-6 &&
                fabs(number(position, "pose.rot[0]") - 1) < 1e-3);
    // The eight joints of K10's motor group, and not one more.
    assert_true(isfinite(number(joints, "anglePos[7]")) && isnan(number(joints, "anglePos[8]")));
    // Who comes late gets the frames.
    ear *frames = listen_to("dds:rapid_framestore_config", "rapid::FrameStoreConfig", latched);
    NET_WAIT(hear(frames));
    assert_true(strstr(text(frames, "frames[0].name"), "k10/") != NULL);

    look_at_the_cloud(config, cloud);

    command(writer, "operator-1", "simpleMove", 3, 0);
    expect_ack(ack, "operator-1", EXECUTING, NOT);
    NET_WAIT(hear(position) && number(position, "pose.xyz[0]") > 0.3);
    NET_WAIT(hear(joints) && number(joints, "angleVel[0]") > 0.5);
    command(writer, "operator-2", "stopAllMotion", 0, 0);
    // A stop ends what was on its way, and is done itself.
    expect_ack(ack, "operator-1", COMPLETED, CANCELED);
    expect_ack(ack, "operator-2", EXECUTING, NOT);
    expect_ack(ack, "operator-2", COMPLETED, OK);
    NET_WAIT(hear(joints) && fabs(number(joints, "angleVel[0]")) < 0.02);
    assert_true(number(position, "pose.xyz[0]") < 3);
    // Nobody knows this one, and is told.
    command(writer, "operator-3", "jump", 0, 0);
    expect_ack(ack, "operator-3", COMPLETED, FAILED);
    assert_true(text(ack, "message")[0] != 0);
    // One that gets to its end says so then, and not before.
    NET_WAIT(hear(position) && fabs(number(position, "velocity.xyz[0]")) < 0.01);
    const double x = number(position, "pose.xyz[0]") + 0.6;
    command(writer, "operator-4", "simpleMove", x, 0);
    expect_ack(ack, "operator-4", EXECUTING, NOT);
    command(writer, "operator-5", "noOp", 0, 0);
    expect_ack(ack, "operator-5", EXECUTING, NOT);
    expect_ack(ack, "operator-5", COMPLETED, OK);
    expect_ack(ack, "operator-4", COMPLETED, OK);
    const double stamp = number(ack, "hdr.timeStamp");
    NET_WAIT(hear(position) && number(position, "hdr.timeStamp") >= stamp);
    assert_true(fabs(number(position, "pose.xyz[0]") - x) <
                0.12);  // within the command's 0.1, and one sample
    // One goal takes the place of another, whoever sets it.
    command(writer, "operator-6", "simpleMove", x + 2, 0);
    expect_ack(ack, "operator-6", EXECUTING, NOT);
    command(writer, "operator-7", "simpleMove", x + 3, 0);
    expect_ack(ack, "operator-6", COMPLETED, CANCELED);
    expect_ack(ack, "operator-7", EXECUTING, NOT);
    us_writer *twist = net_speak(peer, "/k10/cmd_vel", usi_type_twist);
    net_say(twist, usi_type_twist, &(us_msg_twist){.linear.x = 0.1});
    expect_ack(ack, "operator-7", COMPLETED, CANCELED);
    assert_int_equal(net_end(SIGINT), 0);
    net_close(peer);
    free(ack);
    free(position);
    free(joints);
    free(access);
    free(frames);
    free(config);
    free(cloud);
    us_interface_release(types);
}

static void a_client_of_rapid_drives_the_rover(void **state) {
    (void)state;
    drive_by_rapid();
}

static void a_client_of_rapid_drives_a_rover_over_fast_dds(void **state) {
    (void)state;
    net_peer *fast = net_open("fastdds");
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        skip();
    }
    net_close(fast);
    net_set_rmw("rmw_fastrtps_cpp");
    drive_by_rapid();
    net_set_rmw(NULL);
}

// ---------------------------------------------------------------- low level

static void hold(us_writer *writer, double goal) {
    us_member_value values[6 * 4];
    char names[24][32];
    for (int i = 0; i < 24; i++) {
        static const char *const members[] = {"mode", "q", "kp", "kd"};
        const double numbers[] = {1, goal, i / 4 < 3 ? 4000 : 800, i / 4 < 3 ? 400 : 60};
        snprintf(names[i], sizeof names[i], "motor[%d].%s", i / 4, members[i % 4]);
        values[i] = (us_member_value){names[i], numbers[i % 4], NULL};
    }
    say(writer, "low_level::Command", values, 24);
}

static bool is_at(ear *lowstate, us_writer *writer, double goal) {
    hold(writer, goal);
    hear(lowstate);
    // Gravity bends joints 2 and 3 by some hundredths of a radian at these gains.
    for (int i = 0; i < 6; i++) {
        char member[32];
        snprintf(member, sizeof member, "motor[%d].q", i);
        if (!(fabs(number(lowstate, member) - goal) < 0.15)) return false;
    }
    return true;
}

static void a_low_level_client_holds_the_arm_by_gains_of_its_own(void **state) {
    (void)state;
    const char *const file = US_SOURCE_DIR "/scenes/interfaces/low_level.idl";
    const us_qos newest = {.is_reliable = false, .depth = 1};
    peer = net_open("cyclone");
    types = load(&file, 1);
    ear *lowstate = listen_to("/arm/lowstate", "low_level::State", newest);
    us_writer *writer = speak_on("/arm/lowcmd", "low_level::Command", newest);
    net_run("%s/scenes/low-level.xml --headless --quiet", US_SOURCE_DIR);
    NET_WAIT(us_writer_n_match(writer) == 1 && hear(lowstate));
    NET_WAIT(is_at(lowstate, writer, 0.3));
    NET_WAIT(is_at(lowstate, writer, -0.2));
    // At rest on a fixed base the accelerometer has the weight, and the base's rotation is none.
    assert_true(fabs(number(lowstate, "imu.accelerometer[2]") - 9.81) < 0.05);
    assert_true(fabs(number(lowstate, "imu.quaternion[0]") - 1) < 1e-6);
    assert_true(number(lowstate, "motor[11].q") == 0);
    assert_int_equal(net_end(SIGINT), 0);
    net_close(peer);
    free(lowstate);
    us_interface_release(types);
}

// ---------------------------------------------------------------- two robots on one topic

// A robot as RAPID has several: the same topics, told apart by the name in the header.
static void write_asset(char *to, size_t cap, const char *name) {
    snprintf(to, cap,
             "<robot name='%s' file='%s/models/arm6.urdf'><network>"
             "<interface file='%s/scenes/interfaces/rapid.idl'>"
             "<publish topic='dds:rapid_accesscontrol_state' type='rapid::AccessControlState' rate='10 Hz'>"
             "<set member='hdr.assetName' text='%s'/></publish>"
             "<subscribe topic='dds:rapid_command' type='rapid::Command'>"
             "<when member='hdr.assetName' is='%s'/>"
             "<command do='stop'><when member='cmdName' is='stopAllMotion'/></command>"
             "<answer on='taken' topic='dds:rapid_ack' type='rapid::Ack' latched='true'>"
             "<set member='hdr.assetName' text='%s'/><set member='cmdId' copy='cmdId'/>"
             "<set member='status' number='ACK_EXECUTING'/></answer>"
             "<answer on='refused' topic='dds:rapid_ack' type='rapid::Ack' latched='true'>"
             "<set member='hdr.assetName' text='%s'/><set member='cmdId' copy='cmdId'/>"
             "<set member='status' number='ACK_COMPLETED'/></answer>"
             "</subscribe></interface></network></robot>",
             name, US_SOURCE_DIR, US_SOURCE_DIR, name, name, name, name);
}

static void command_asset(us_writer *writer, const char *asset, const char *id, const char *name) {
    const us_member_value values[] = {{"hdr.assetName", 0, asset}, {"cmdName", 0, name}, {"cmdId", 0, id}};
    say(writer, "rapid::Command", values, 3);
}

// The next Ack of all: from this robot to this command.
static void expect_asset_ack(ear *ack, const char *asset, const char *id, double status) {
    NET_WAIT(hear(ack));
    char who[40];
    snprintf(who, sizeof who, "%.39s", text(ack, "hdr.assetName"));
    if (strcmp(who, asset) != 0 || strcmp(text(ack, "cmdId"), id) != 0 || number(ack, "status") != status)
        fail_msg("%s answers %s with %g, not %s %s with %g", who, text(ack, "cmdId"), number(ack, "status"),
                 asset, id, status);
}

// Who is meant obeys, refuses and answers; the other one says nothing. The next Ack is always that of the
// command behind, so one too many would be seen.
static void share_topics(const char *vendor) {
    char a[2048], b[2048];
    net_set_rmw(vendor);
    peer = net_open("cyclone");
    load_rapid();
    write_asset(a, sizeof a, "anna");
    write_asset(b, sizeof b, "bert");
    net_write_text("shared.xml", "<scene name='shared' version='1'><world step='1 ms'/>%s%s</scene>", a, b);
    ear *ack = listen_to("dds:rapid_ack", "rapid::Ack", acks);
    ear *access = listen_to("dds:rapid_accesscontrol_state", "rapid::AccessControlState", reliable);
    us_writer *writer = speak_on("dds:rapid_command", "rapid::Command", reliable);
    net_run("shared.xml --headless --quiet --record shared.mcap");
    NET_WAIT(us_writer_n_match(writer) == 2 && us_reader_n_match(ack->reader) == 2);
    NET_WAIT(hear(access) && strcmp(text(access, "hdr.assetName"), "anna") == 0);
    NET_WAIT(hear(access) && strcmp(text(access, "hdr.assetName"), "bert") == 0);
    for (int i = 0; i < 5; i++) {
        char id[20];
        snprintf(id, sizeof id, "command-%d", i);
        command_asset(writer, "bert", id, "stopAllMotion");
        expect_asset_ack(ack, "bert", id, EXECUTING);
        command_asset(writer, "anna", id, "jump");
        expect_asset_ack(ack, "anna", id, COMPLETED);
        command_asset(writer, "carl", id, "jump");
    }
    // Both are in the recording, each with what it said.
    assert_int_equal(net_end(SIGINT), 0);
    us_recording *recording = NULL;
    us_error err = {0};
    int n[2] = {0, 0};
    if (us_recording_open("shared.mcap", NULL, &recording, &err)) fail_msg("%s", err.message);
    us_recorded m;
    for (bool has = true; !us_recording_next(recording, &m, &has, &err) && has;) {
        char who[40];
        if (!strstr(us_recording_get_channel(recording, m.channel).topic, "rapid_ack")) continue;
        assert_int_equal(us_message_get_text(us_interface_find(types, "rapid::Ack"), m.bytes, m.length,
                                             "hdr.assetName", who, sizeof who),
                         US_OK);
        n[strcmp(who, "bert") == 0]++;
    }
    us_recording_close(recording);
    assert_true(n[0] == 5 && n[1] == 5);
    net_close(peer);
    free(ack);
    free(access);
    us_interface_release(types);
    net_set_rmw(NULL);
}

static void two_robots_share_topics_and_only_the_one_that_is_meant_answers(void **state) {
    (void)state;
    share_topics(NULL);
    net_peer *fast = net_open("fastdds");
    if (!fast) return;
    net_close(fast);
    share_topics("rmw_fastrtps_cpp");
}

// Who asks in another partition of DDS meets nobody.
static void a_topic_is_in_the_partitions_that_the_scene_names(void **state) {
    (void)state;
    const char *const file = US_SOURCE_DIR "/scenes/interfaces/low_level.idl";
    const us_qos in_lab = {.depth = 1, .partition = "lab"}, nowhere = {.depth = 1};
    peer = net_open("cyclone");
    types = load(&file, 1);
    net_write_text(
        "partition.xml",
        "<scene name='partition' version='1'><world step='1 ms'/><robot name='arm' "
        "file='%s/models/arm6.urdf'>"
        "<network><interface file='%s'><publish topic='state' type='low_level::State' partition='lab,arm'>"
        "<set member='tick' value='time' unit='ms'/></publish></interface></network></robot></scene>",
        US_SOURCE_DIR, file);
    ear *inside = listen_to("/arm/state", "low_level::State", in_lab);
    ear *outside = listen_to("/arm/state", "low_level::State", nowhere);
    net_run("partition.xml --headless --quiet");
    NET_WAIT(hear(inside) && number(inside, "tick") > 200);
    assert_int_equal(us_reader_n_match(outside->reader), 0);
    assert_int_equal(net_end(SIGINT), 0);
    net_close(peer);
    free(inside);
    free(outside);
    us_interface_release(types);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_of_rapid_drives_the_rover),
        cmocka_unit_test(a_client_of_rapid_drives_a_rover_over_fast_dds),
        cmocka_unit_test(a_low_level_client_holds_the_arm_by_gains_of_its_own),
        cmocka_unit_test(two_robots_share_topics_and_only_the_one_that_is_meant_answers),
        cmocka_unit_test(a_topic_is_in_the_partitions_that_the_scene_names),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
