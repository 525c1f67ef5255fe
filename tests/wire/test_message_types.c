// Which messages there are: names, hashes, schemas, and that each is what ROS 2 published.
#include "test_message_support.h"

#include <ctype.h>

static void both_names_of_every_type_find_it(void **state) {
    (void)state;
    assert_int_equal(us_message_n_type(), USI_MESSAGE_COUNT);
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        assert_ptr_equal(us_message_find(us_message_name(type)), type);
        // Two layouts of ros_discovery_info share a name on the wire; it finds today's.
        bool is_humble = strstr(us_message_name(type), "_humble") != NULL;
        const us_message_type *found = us_message_find(us_message_dds_name(type));
        assert_non_null(found);
        assert_true((found == type) == !is_humble);
        assert_int_equal(us_message_size(type), usi_message_descriptor(type)->m_size);
        if (!is_humble)
            assert_string_equal(us_message_dds_name(type), usi_message_descriptor(type)->m_typename);
    }
    assert_string_equal(us_message_dds_name(usi_type_humble_participant_entities_info),
                        us_message_dds_name(usi_type_participant_entities_info));
    assert_string_equal(us_message_dds_name(usi_type_twist), "geometry_msgs::msg::dds_::Twist_");
    assert_string_equal(us_message_name(usi_type_motor_group_request),
                        "understudy_msgs/srv/MotorGroup_Request");
    assert_string_equal(us_message_dds_name(usi_type_motor_group_request),
                        "understudy_msgs::srv::dds_::MotorGroup_Request_");
    assert_ptr_equal(us_message_get_type(USI_MESSAGE_TF_MESSAGE), us_message_find("tf2_msgs/msg/TFMessage"));
}

static void other_names_find_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"",
                                        "Twist",
                                        "geometry_msgs/Twist",
                                        "geometry_msgs/msg/Twis",
                                        "geometry_msgs/msg/Twist ",
                                        "geometry_msgs::msg::Twist",
                                        "geometry_msgs::msg::dds_::Twist",
                                        "geometry_msgs::msg::dds_::_",
                                        "::msg::dds_::Twist_",
                                        "geometry_msgs/msg/Twist\n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(us_message_find(names[i]));
    assert_null(us_message_find(NULL));
    assert_null(us_message_get_type(-1));
    assert_null(us_message_get_type(us_message_n_type()));
    char long_name[2000];
    memset(long_name, 'a', sizeof long_name);
    memcpy(long_name + 1000, "::msg::dds_::", 13);
    long_name[sizeof long_name - 1] = 0;
    assert_null(us_message_find(long_name));
}

// Published by ROS 2 (REP 2011) for the definitions of Iron and later.
static void hashes_are_those_that_ros_2_publishes(void **state) {
    (void)state;
    static const char *const known[][2] = {
        {"rosgraph_msgs/msg/Clock", "692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564"},
        {"std_msgs/msg/String", "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"},
        {"geometry_msgs/msg/Twist", "9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a"},
        {"geometry_msgs/msg/TwistStamped",
         "5f0fcd4f81d5d06ad9b4c4c63e3ea51b82d6ae4d0558f1d475229b1121db6f64"},
        {"nav_msgs/msg/Odometry", "3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0"},
        {"sensor_msgs/msg/Imu", "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"},
        {"sensor_msgs/msg/LaserScan", "64c191398013af96509d518dac71d5164f9382553fce5c1f8cca5be7924bd828"},
        {"sensor_msgs/msg/PointCloud2", "9198cabf7da3796ae6fe19c4cb3bdd3525492988c70522628af5daa124bae2b5"},
        {"sensor_msgs/msg/Image", "d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47"},
        {"sensor_msgs/msg/CompressedImage",
         "15640771531571185e2efc8a100baf923961a4d15d5569652e6cb6691e8e371a"},
        {"sensor_msgs/msg/CameraInfo", "b3dfd68ff46c9d56c80fd3bd4ed22c7a4ddce8c8348f2f59c299e73118e7e275"},
        {"sensor_msgs/msg/JointState", "a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"},
        {"tf2_msgs/msg/TFMessage", "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087"},
        {"sensor_msgs/msg/BatteryState", "4bee5dfce981c98faa6828b868307a0a73f992ed0789f374ee96c8f840e69741"},
        {"diagnostic_msgs/msg/DiagnosticArray",
         "5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e"},
        {"nav_msgs/msg/OccupancyGrid", "8d348150c12913a31ee0ec170fbf25089e4745d17035792a1ba94d6f0bc0cfc7"},
        {"nav_msgs/msg/Path", "1957a5bb3cee5da65c4e52e52b65a93df227efce4c20f8458b36e73066ca334b"},
        {"geometry_msgs/msg/PoseStamped", "10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8"},
        {"rcl_interfaces/msg/ParameterEvent",
         "043e627780fcad87a22d225bc2a037361dba713fca6a6b9f4b869a5aa0393204"},
        {"rcl_interfaces/msg/Log", "e28ce254ca8abc06abf92773b74602cdbf116ed34fbaf294fb9f81da9f318eac"},
        {"std_msgs/msg/Empty", "20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312"},
        {"rmw_dds_common/msg/ParticipantEntitiesInfo",
         "91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e"},
        {"simulation_interfaces/msg/Result",
         "cf43a306adff3337a0a47143d8f5689933bc70a30478f13b077dc1fe3bc5ad17"},
        {"simulation_interfaces/msg/Resource",
         "2bb1939cf80f8d2f284afba53cbec60b5ff33759bd39b714128ea8867a34c51a"},
        {"simulation_interfaces/msg/SimulatorFeatures",
         "8b101c8529bc0ea3dcf056078254768f39832b9ef0adaf93bd5cea96c0de3305"},
        {"simulation_interfaces/msg/EntityCategory",
         "43bdf7933fddf75f6970f7a8fe7078524355d821d390b3954bb46ac36c03dfe1"},
        {"simulation_interfaces/msg/EntityFilters",
         "8e7b12e8ea062f14c55de4877221fe1b7cd9749665a7ad8a4ab855fc4b148303"},
        {"simulation_interfaces/msg/EntityState",
         "2e0464a85eb80a939025075d6c20761eca6a4cb9d6baf2c0ba373467c8b598d0"},
        {"simulation_interfaces/msg/Spawnable",
         "8675aa686f0df1ed7874a6ec210fdce1ac1c07f4e49fc26ec7fb6fe729f6772e"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *hash = us_message_hash(us_message_find(known[i][0]));
        assert_memory_equal(hash, "RIHS01_", 7);
        assert_string_equal(hash + 7, known[i][1]);
    }
    // What is older than hashes has none; all others have one.
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        bool has_none = strstr(us_message_name(type), "_humble");
        assert_int_equal(strlen(us_message_hash(type)), has_none ? 0 : 71);
    }
}

// Both halves of a service have the hash of the whole, as nodes announce it.
static void services_have_the_hashes_of_ros(void **state) {
    (void)state;
    static const char *const known[][2] = {
        {"rcl_interfaces/srv/DescribeParameters",
         "845b484d71eb0673dae682f2e3ba3c4851a65a3dcfb97bddd82c5b57e91e4cff"},
        {"rcl_interfaces/srv/GetParameters",
         "bf9803d5c74cf989a5de3e0c2e99444599a627c7ff75f97b8c05b01003675cbc"},
        {"rcl_interfaces/srv/GetParameterTypes",
         "da199c878688b3e530bdfe3ca8f74cb9fa0c303101e980a9e8f260e25e1c80ca"},
        {"rcl_interfaces/srv/ListParameters",
         "3e6062bfbb27bfb8730d4cef2558221f51a11646d78e7bb30a1e83afac3aad9d"},
        {"rcl_interfaces/srv/SetParameters",
         "56eed9a67e169f9cb6c1f987bc88f868c14a8fc9f743a263bc734c154015d7e0"},
        {"rcl_interfaces/srv/SetParametersAtomically",
         "0e192ef259c07fc3c07a13191d27002222e65e00ccec653ca05e856f79285fcd"},
        {"simulation_interfaces/srv/GetEntities",
         "cb90004c48cd50f37732fb008e22c34c261dd680a723bf0f85d8437ea4498bf7"},
        {"simulation_interfaces/srv/GetEntitiesStates",
         "0a76170d0c1c90e1eaf805cfab78ea801d1f82df309a28c1f0fae4b570f19754"},
        {"simulation_interfaces/srv/GetSimulationState",
         "3362dcebee4b1afebbf9c4beee5c79c1455385aded62092a892d61fde8644f30"},
        {"simulation_interfaces/srv/GetSpawnables",
         "3e25fd827d8bcbd9db5e36ccb190efa22d6f6313897861268ab923bf091a992a"},
        {"simulation_interfaces/srv/ResetSimulation",
         "4ce285d7ff9b8ac70dcc95161f32bf54c05a6f4b13427990e41ab40c36c39646"},
        {"simulation_interfaces/srv/SpawnEntity",
         "66860313e11009faddbfc8568e5d410d1a11607fe75eeb1308671dc0406fe3a7"},
        {"simulation_interfaces/srv/StepSimulation",
         "913fe0653690ce6bf8f09f316e6a626747012e9fca31e26719910d417aa8565c"}};
    static const char *const halves[] = {"Request", "Response"};
    for (size_t i = 0; i < 2 * sizeof known / sizeof *known; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s_%s", known[i / 2][0], halves[i % 2]);
        const char *hash = us_message_hash(us_message_find(name));
        assert_memory_equal(hash, "RIHS01_", 7);
        assert_string_equal(hash + 7, known[i / 2][1]);
    }
    // The numbers of a request stand before what a .srv file says, and are no part of it: half of a service
    // and the other have one hash.
    assert_string_equal(us_message_hash(usi_type_locomotor_request),
                        us_message_hash(usi_type_locomotor_response));
}

static void a_schema_holds_every_type_inside_once(void **state) {
    (void)state;
    assert_string_equal(us_message_schema(usi_type_string), "string data\n");
    assert_string_equal(us_message_schema(usi_type_empty), "");
    assert_string_equal(us_message_schema(usi_type_twist),
                        "geometry_msgs/Vector3 linear\n"
                        "geometry_msgs/Vector3 angular\n"
                        "================================================================================\n"
                        "MSG: geometry_msgs/Vector3\n"
                        "float64 x\n"
                        "float64 y\n"
                        "float64 z\n");
    assert_string_equal(us_message_schema(usi_type_participant_entities_info),
                        "rmw_dds_common/Gid gid\n"
                        "rmw_dds_common/NodeEntitiesInfo[] node_entities_info_seq\n"
                        "================================================================================\n"
                        "MSG: rmw_dds_common/Gid\n"
                        "uint8[16] data\n"
                        "================================================================================\n"
                        "MSG: rmw_dds_common/NodeEntitiesInfo\n"
                        "string<=256 node_namespace\n"
                        "string<=256 node_name\n"
                        "rmw_dds_common/Gid[] reader_gid_seq\n"
                        "rmw_dds_common/Gid[] writer_gid_seq\n");
}

static void no_type_is_an_empty_answer(void **state) {
    (void)state;
    assert_string_equal(us_message_name(NULL), "");
    assert_string_equal(us_message_dds_name(NULL), "");
    assert_string_equal(us_message_hash(NULL), "");
    assert_string_equal(us_message_schema(NULL), "");
    assert_int_equal(us_message_size(NULL), 0);
}

// ---- against the published .msg files
// ----------------------------------------------------------------

// The definition of one type as the first part of its schema has it: "type name" per line, types of the own
// package written in full.
static char *read_definition(const char *path, const char *package) {
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    size_t n = 0, cap = 1 << 14;
    char *text = calloc(1, cap), line[1024];
    assert_non_null(text);
    while (fgets(line, sizeof line, file)) {
        char type[256], name[256], rest[8] = "";
        line[strcspn(line, "#\n")] = 0;
        int n_word = sscanf(line, "%255s %255s %7s", type, name, rest);
        // A constant is "type NAME=value" or "type NAME = value"; a default value may follow a member's name.
        if (n_word < 2 || strchr(name, '=') || rest[0] == '=') continue;
        bool is_own = isupper((unsigned char)type[0]) != 0;
        bool is_char = strncmp(type, "char", 4) == 0;  // .msg has char for what is uint8 everywhere else
        n += (size_t)snprintf(text + n, cap - n, "%s%s%s%s %s\n", is_own ? package : "", is_own ? "/" : "",
                              is_char ? "uint8" : "", type + (is_char ? 4 : 0), name);
        assert_true(n < cap);
    }
    fclose(file);
    return text;
}

static void members_are_those_of_the_published_definitions(void **state) {
    (void)state;
    int n_compared = 0;
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const char *name = us_message_name(us_message_get_type(i));
        if (strncmp(name, "understudy_msgs/", 16) == 0 || strstr(name, "_humble")) continue;
        char path[1024], package[128];
        snprintf(path, sizeof path, "%s/../shared/data/network/ros2_msgs/%s.msg", US_SOURCE_DIR, name);
        snprintf(package, sizeof package, "%.*s", (int)strcspn(name, "/"), name);
        char *expected = read_definition(path, package);
        if (!expected) {
            print_message("skipped: no %s\n", path);
            skip();
        }
        const char *schema = us_message_schema(us_message_get_type(i)), *end = strstr(schema, "======");
        size_t length = end ? (size_t)(end - schema) : strlen(schema);
        if (strlen(expected) != length || memcmp(expected, schema, length) != 0)
            fail_msg("%s\nexpected:\n%sfound:\n%.*s", name, expected, (int)length, schema);
        free(expected);
        n_compared++;
    }
    assert_true(n_compared > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_names_of_every_type_find_it),
        cmocka_unit_test(other_names_find_nothing),
        cmocka_unit_test(hashes_are_those_that_ros_2_publishes),
        cmocka_unit_test(services_have_the_hashes_of_ros),
        cmocka_unit_test(a_schema_holds_every_type_inside_once),
        cmocka_unit_test(no_type_is_an_empty_answer),
        cmocka_unit_test(members_are_those_of_the_published_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
