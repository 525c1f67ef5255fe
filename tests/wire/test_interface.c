// Types read from files: the same as those that are built in, members by name, unions, keys.
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "understudy/interface.h"
#include "understudy/messages.h"
#include "wire/member.h"

static us_interface *load(const char *path) {
    us_interface_def def = us_interface_def_default();
    us_interface *interface_ = NULL;
    us_error err = {0};
    def.n_file = 1;
    def.files = &path;
    if (us_interface_load(&def, &interface_, &err))
        fail_msg("%s:%d: %s (%s)", err.file, (int)err.line, err.message, err.remedy);
    return interface_;
}

static us_interface *load_text(const char *text) {
    FILE *f = fopen("test.idl", "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return load("test.idl");
}

static const char *shared(void) {
    const char *root = getenv("US_SHARED");
    return root ? root : US_SOURCE_DIR "/../shared";
}

// ---------------------------------------------------------------- as others have them

static bool is_same_type(const us_message_type *a, const us_message_type *b) {
    bool same = a->n_field == b->n_field && a->least == b->least && strcmp(a->dds_name, b->dds_name) == 0;
    for (int32_t i = 0; i < a->n_field && same; i++) {
        const usi_message_field *f = &a->fields[i], *g = &b->fields[i];
        same = strcmp(f->name, g->name) == 0 && f->kind == g->kind && f->shape == g->shape &&
               f->count == g->count && f->bound == g->bound && f->least == g->least &&
               (f->kind != USI_KIND_MESSAGE || is_same_type(f->type, g->type));
    }
    return same;
}

// How many of the types that are built in stand below the directory as .msg files; all are the same there.
static int compare_with_files(const char *directory) {
    int n = 0;
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        char path[512];
        snprintf(path, sizeof path, "%s/%s.msg", directory, type->name);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        fclose(f);
        us_interface *interface_ = load(path);
        const us_message_type *read = us_interface_find(interface_, type->name);
        assert_non_null(read);
        if (!is_same_type(read, type)) fail_msg("%s differs", type->name);
        assert_string_equal(us_message_hash(read), us_message_hash(type));
        n++;
        us_interface_release(interface_);
    }
    return n;
}

static void messages_of_ros_are_read_as_they_are_built_in(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/data/network/ros2_msgs", shared());
    const int n = compare_with_files(path);
    if (n == 0) {
        print_message("skipped: there is no %s\n", path);
        skip();
    }
    assert_true(n > 20);
}

static void messages_of_our_ros_package_are_read_as_they_are_built_in(void **state) {
    (void)state;
    int n = 0;
    for (int32_t i = 0; i < us_message_n_type(); i++)
        n += strncmp(us_message_get_type(i)->name, "understudy_msgs/msg/", 20) == 0;
    assert_true(n > 10);
    assert_int_equal(compare_with_files(US_SOURCE_DIR "/ros"), n);
}

// A type of the file as it is built in. The hash is of all members by name and kind; those of ours that serve
// have the client's number in front, which is not of the service.
static void expect_built_in(const us_interface *interface_, const char *name) {
    const us_message_type *read = us_interface_find(interface_, name), *known = us_message_find(name);
    assert_non_null(known);
    const bool is_numbered = strcmp(known->fields[0].name, "guid") == 0;
    if (!read || (!is_numbered && !is_same_type(read, known))) fail_msg("%s differs", name);
    assert_string_equal(us_message_hash(read), us_message_hash(known));
    assert_true(strncmp(us_message_hash(read), "RIHS01_", 7) == 0);
}

static void services_of_our_ros_package_are_read_as_they_are_built_in(void **state) {
    (void)state;
    static const char directory[] = US_SOURCE_DIR "/ros/understudy_msgs/srv";
    int n = 0;
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[512], name[300];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".srv") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        us_interface *interface_ = load(path);
        for (int half = 0; half < 2; half++) {
            snprintf(name, sizeof name, "understudy_msgs/srv/%.*s_%s", (int)(dot - e->d_name), e->d_name,
                     half ? "Response" : "Request");
            expect_built_in(interface_, name);
        }
        us_interface_release(interface_);
        n++;
    }
    closedir(dir);
    assert_true(n >= 6);
}

static void an_action_is_read_as_it_is_built_in(void **state) {
    (void)state;
    static const char *const parts[] = {"Goal",
                                        "Result",
                                        "Feedback",
                                        "SendGoal_Request",
                                        "SendGoal_Response",
                                        "GetResult_Request",
                                        "GetResult_Response",
                                        "FeedbackMessage"};
    mkdir("simulation_interfaces", 0777);
    mkdir("simulation_interfaces/action", 0777);
    FILE *f = fopen("simulation_interfaces/action/SimulateSteps.action", "w");
    assert_non_null(f);
    fputs("# Steps.\nuint64 steps\n---\nResult result  # of the standard\n---\n\nuint64 completed_steps\n"
          "uint64 remaining_steps\n",
          f);
    fclose(f);
    us_interface *interface_ = load("simulation_interfaces/action/SimulateSteps.action");
    for (int i = 0; i < 8; i++) {
        char name[100];
        snprintf(name, sizeof name, "simulation_interfaces/action/SimulateSteps_%s", parts[i]);
        expect_built_in(interface_, name);
    }
    us_interface_release(interface_);
}

static void every_file_of_rapid_is_read(void **state) {
    (void)state;
    static const char *const directories[] = {"rapidDds", "rapidExtDds", "rapidExtArcDds", "astrobee"};
    int n = 0;
    for (int i = 0; i < 4; i++) {
        char path[512], base[512], file[1024];
        snprintf(path, sizeof path, "%s/data/network/rapid_idl/%s", shared(), directories[i]);
        snprintf(base, sizeof base, "%s/data/network/rapid_idl/rapidDds/Message.idl", shared());
        DIR *dir = opendir(path);
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
            if (!strstr(e->d_name, ".idl")) continue;
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            // What a directory's files include may stand in that of the base.
            const char *files[] = {base, file};
            us_interface_def def = us_interface_def_default();
            us_interface *interface_ = NULL;
            us_error err = {0};
            def.n_file = 2;
            def.files = files;
            if (us_interface_load(&def, &interface_, &err))
                fail_msg("%s:%d: %s (%s)", err.file, (int)err.line, err.message, err.remedy);
            us_interface_release(interface_);
            n++;
        }
        if (dir) closedir(dir);
    }
    if (n == 0) {
        print_message("skipped: there is no %s/data/network/rapid_idl\n", shared());
        skip();
    }
    assert_true(n > 100);
}

static void the_profile_has_the_types_of_rapid(void **state) {
    (void)state;
    static const char *const names[] = {
        "Command",        "Ack",         "AccessControlState", "PositionConfig",
        "PositionSample", "JointConfig", "JointSample",        "FrameStoreConfig"};
    us_interface *own = load(US_SOURCE_DIR "/scenes/interfaces/rapid.idl");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], name[64];
        snprintf(path, sizeof path, "%s/data/network/rapid_idl/rapidDds/%s.idl", shared(), names[i]);
        snprintf(name, sizeof name, "rapid::%s", names[i]);
        const us_message_type *type = us_interface_find(own, name);
        assert_non_null(type);
        assert_true(us_message_has_key(type));
        FILE *f = fopen(path, "r");
        if (!f) {
            print_message("skipped: there is no %s\n", path);
            us_interface_release(own);
            skip();
        }
        fclose(f);
        us_interface *theirs = load(path);
        if (!is_same_type(type, us_interface_find(theirs, name))) fail_msg("%s differs", name);
        us_interface_release(theirs);
    }
    us_interface_release(own);
}

// ---------------------------------------------------------------- members

// Of a whole package of ours, file by file: the same hash and the same definition as of the types that are
// built in, which are those of rosidl.
static void hashes_and_definitions_are_those_of_ros(void **state) {
    (void)state;
    int n = 0;
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        char path[512];
        if (strncmp(type->name, "understudy_msgs/msg/", 20) != 0) continue;
        snprintf(path, sizeof path, US_SOURCE_DIR "/ros/understudy_msgs/msg/%s.msg", type->name + 20);
        us_interface *own = load(path);
        const us_message_type *read = us_interface_find(own, type->name);
        assert_non_null(read);
        assert_string_equal(us_message_hash(read), us_message_hash(type));
        assert_string_equal(us_message_schema(read), us_message_schema(type));
        us_interface_release(own);
        n++;
    }
    assert_true(n > 8);
    // From IDL with the names of ROS, and with every form of a member.
    us_interface *own = load_text("module geometry_msgs { module msg { module dds_ {"
                                  "struct Vector3_ { double x; double y; double z; };"
                                  "struct Twist_ { Vector3_ linear; Vector3_ angular; };"
                                  "struct All_ { sequence<string<8>, 4> names; sequence<octet> data;"
                                  "float f[3]; boolean b; Vector3_ v; };"
                                  "}; }; };");
    const us_message_type *twist = us_interface_find(own, "geometry_msgs/msg/Twist");
    assert_string_equal(us_message_hash(twist),
                        "RIHS01_9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a");
    assert_string_equal(us_message_schema(us_interface_find(own, "geometry_msgs/msg/All")),
                        "string<=8[<=4] names\nbyte[] data\nfloat32[3] f\nbool b\ngeometry_msgs/Vector3 v\n"
                        "=========================================================================="
                        "======\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n");
    us_interface_release(own);
    // The halves of a service have the hash of the whole. Those that are built in have the number of the
    // request before their own members, which no definition knows.
    FILE *in = fopen(US_SOURCE_DIR "/idl/rcl_interfaces_srvs.idl", "r"), *out = fopen("services.idl", "w");
    char line[400];
    assert_non_null(in);
    assert_non_null(out);
    while (fgets(line, sizeof line, in)) {
        if (strstr(line, "guid;") || strstr(line, "seq;")) continue;
        if (strncmp(line, "#include \"", 10) == 0) {
            fprintf(out, "#include \"%s/idl/%s", US_SOURCE_DIR, line + 10);
        } else {
            fputs(line, out);
        }
    }
    fclose(in);
    fclose(out);
    us_interface_def def = us_interface_def_default();
    const char *files[] = {"services.idl"};
    us_error err = {0};
    def.n_file = 1;
    def.files = files;
    if (us_interface_load(&def, &own, &err)) fail_msg("%s:%d: %s", err.file, (int)err.line, err.message);
    n = 0;
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i), *read = us_interface_find(own, type->name);
        if (!strstr(type->name, "/srv/") || !read) continue;
        assert_string_equal(us_message_hash(read), us_message_hash(type));
        n++;
    }
    assert_true(n >= 8);
    us_interface_release(own);
    // Names of others have no hash, and a definition where it can be written.
    own = load_text("module rover { module arm { struct Joint { float q; }; };"
                    "struct State { @key long id; arm::Joint joint[2]; };"
                    "union Either switch (long) { case 0: long a; case 1: float b; };"
                    "struct Holds { Either e; }; };");
    const us_message_type *state_type = us_interface_find(own, "rover::State");
    assert_string_equal(us_message_hash(state_type), "");
    assert_non_null(strstr(us_message_schema(state_type), "int32 id\nrover_arm/Joint[2] joint\n"));
    assert_non_null(strstr(us_message_schema(state_type), "MSG: rover_arm/Joint\nfloat32 q\n"));
    assert_string_equal(us_message_schema(us_interface_find(own, "rover::Holds")), "");
    us_interface_release(own);
}

static void composed_bytes_are_those_of_the_encoder(void **state) {
    (void)state;
    const us_message_type *type = us_message_find("nav_msgs/msg/Odometry");
    us_msg_odometry m = {.header = {{12, 34}, (char *)(uintptr_t) "odom"},
                         .child_frame_id = (char *)(uintptr_t) "base"};
    m.pose.pose.position.y = 1.5;
    m.pose.covariance[7] = -2;
    m.twist.twist.angular.z = 0.25;
    const us_member_value values[] = {{"twist.twist.angular.z", 0.25, NULL}, {"header.stamp.sec", 12, NULL},
                                      {"header.stamp.nanosec", 34, NULL},    {"header.frame_id", 0, "odom"},
                                      {"child_frame_id", 0, "base"},         {"pose.covariance[7]", -2, NULL},
                                      {"pose.pose.position.y", 1.5, NULL}};
    uint8_t encoded[2048], composed[2048];
    size_t n = 0, k = 0;
    us_error err = {0};
    assert_int_equal(us_message_encode(type, &m, encoded, sizeof encoded, &n), US_OK);
    assert_int_equal(us_message_compose(type, values, 7, composed, sizeof composed, &k, &err), US_OK);
    assert_int_equal(n, k);
    assert_memory_equal(encoded, composed, n);
    assert_true(us_message_get_number(type, composed, k, "pose.covariance[7]") == -2);
    assert_true(isnan(us_message_get_number(type, composed, k, "pose.covariance[36]")));
    assert_true(isnan(us_message_get_number(type, composed, k, "pose.covariance")));
    char text[16];
    assert_int_equal(us_message_get_text(type, composed, k, "child_frame_id", text, sizeof text), US_OK);
    assert_string_equal(text, "base");
    assert_int_equal(us_message_get_text(type, composed, k, "child_frame_id", text, 4), US_ERR_LIMIT);
    assert_int_equal(us_message_compose(type, values, 7, composed, 40, &k, &err), US_ERR_LIMIT);
    const us_member_value twice[] = {values[1], values[1]}, wrong = {"header.stamp", 1, NULL},
                          absent = {"header.stamps", 1, NULL};
    assert_int_equal(us_message_compose(type, twice, 2, composed, sizeof composed, &k, &err), US_ERR_NAME);
    assert_int_equal(us_message_compose(type, &wrong, 1, composed, sizeof composed, &k, &err), US_ERR_VALUE);
    assert_int_equal(us_message_compose(type, &absent, 1, composed, sizeof composed, &k, &err), US_ERR_NAME);
    assert_non_null(strstr(err.remedy, "stamp"));
}

static void unions_and_arrays_of_arrays_keep_their_places(void **state) {
    (void)state;
    us_interface *i =
        load_text("module a {\n"
                  "enum E { ZERO, @value(7) SEVEN };\n"
                  "union U switch (E) { case ZERO: long n; case SEVEN: double x[2]; default: string s; };\n"
                  "typedef float Row[2];\n"
                  "struct S { sequence<U> u; Row row[2]; sequence<Row> rows; octet end; };\n"
                  "const long N = 3 << 2 | 1;\n};\n");
    const us_message_type *type = us_interface_find(i, "a::S");
    assert_non_null(type);
    assert_true(us_interface_get_constant(i, "N") == 13 && us_interface_get_constant(i, "a::SEVEN") == 7);
    assert_true(isnan(us_interface_get_constant(i, "EIGHT")));
    const us_member_value values[] = {{"u[0].x[1]", 2.5, NULL}, {"u[1].n", -4, NULL},    {"u[2].s", 0, "hi"},
                                      {"row[3]", 1, NULL},      {"rows[1][0]", 8, NULL}, {"end", 200, NULL}};
    static const uint8_t expected[] = {0, 1, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0,
                                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 64};
    uint8_t bytes[256];
    char text[512];
    size_t n = 0;
    us_error err = {0};
    assert_int_equal(us_message_compose(type, values, 6, bytes, sizeof bytes, &n, &err), US_OK);
    // The first union: its discriminant, padding to 8, and its two numbers.
    assert_memory_equal(bytes, expected, sizeof expected);
    for (size_t k = 0; k < 6; k++) {
        if (values[k].text) continue;
        assert_true(us_message_get_number(type, bytes, n, values[k].member) == values[k].number);
    }
    assert_int_equal(us_message_get_text(type, bytes, n, "u[2].s", text, sizeof text), US_OK);
    assert_string_equal(text, "hi");
    assert_true(isnan(us_message_get_number(type, bytes, n, "u[0].n")));
    assert_true(us_message_get_number(type, bytes, n, "u[0]._d") == 7);
    assert_int_equal(us_message_print(type, bytes, n, 0, text, sizeof text, NULL, &err), US_OK);
    assert_non_null(strstr(text, "s: hi"));
    const us_member_value both[] = {{"u[0].n", 1, NULL}, {"u[0].s", 0, "x"}};
    assert_int_equal(us_message_compose(type, both, 2, bytes, sizeof bytes, &n, &err), US_ERR_NAME);
    us_interface_release(i);
}

// ---------------------------------------------------------------- keys

static void a_key_is_the_same_from_a_sample_and_from_itself(void **state) {
    (void)state;
    us_interface *i = load_text("struct H { string<8> a; //@key\n long x; @key short b; };\n"
                                "struct S { H h; //@key\n double y; long id; };\n"
                                "#pragma keylist S id\n"
                                "struct T { @key long n; };\n");
    const us_message_type *type = us_interface_find(i, "S");
    const us_member_value values[] = {
        {"h.a", 0, "abc"}, {"h.x", 9, NULL}, {"h.b", 258, NULL}, {"id", 5, NULL}, {"y", 1, NULL}};
    static const uint8_t key[] = {4, 0, 0, 0, 'a', 'b', 'c', 0, 2, 1, 0, 0, 5, 0, 0, 0};
    static const uint8_t big[] = {0, 0, 0, 4, 'a', 'b', 'c', 0, 1, 2, 0, 0, 0, 0, 0, 5};
    uint8_t bytes[128], found[64], alone[64] = {0, 1, 0, 0};
    size_t n = 0;
    us_error err = {0};
    assert_int_equal(us_message_compose(type, values, 5, bytes, sizeof bytes, &n, &err), US_OK);
    assert_int_equal(usi_key_read(type, bytes, n, false, true, found, sizeof found), sizeof key);
    assert_memory_equal(found, key, sizeof key);
    memcpy(alone + 4, key, sizeof key);
    assert_int_equal(usi_key_read(type, alone, 4 + sizeof key, true, false, found, sizeof found), sizeof big);
    assert_memory_equal(found, big, sizeof big);
    assert_int_equal(usi_key_read(type, bytes, n - 20, false, true, found, sizeof found), SIZE_MAX);
    assert_int_equal(usi_key_bound(us_interface_find(i, "T")), 4);
    assert_true(usi_key_bound(type) > 16);
    us_interface_release(i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_ros_are_read_as_they_are_built_in),
        cmocka_unit_test(messages_of_our_ros_package_are_read_as_they_are_built_in),
        cmocka_unit_test(services_of_our_ros_package_are_read_as_they_are_built_in),
        cmocka_unit_test(an_action_is_read_as_it_is_built_in),
        cmocka_unit_test(every_file_of_rapid_is_read),
        cmocka_unit_test(the_profile_has_the_types_of_rapid),
        cmocka_unit_test(hashes_and_definitions_are_those_of_ros),
        cmocka_unit_test(composed_bytes_are_those_of_the_encoder),
        cmocka_unit_test(unions_and_arrays_of_arrays_keep_their_places),
        cmocka_unit_test(a_key_is_the_same_from_a_sample_and_from_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
