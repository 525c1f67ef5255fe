// understudy replay --verify: a run proves to be the same bit by bit, or the first tick that is not is named.
#include "test_network_support.h"

#include <limits.h>
#include <sys/stat.h>

#include "understudy/record.h"

static void verify_proves_a_run_that_was_driven(void **state) {
    (void)state;
    use_domain(quiet_domain());
    pid_t pid =
        start("recorded", "run %s --headless --set motor_port=0 --seed 7 --record driven.mcap", scene);
    outcome a = run("drive k10 --v 0.5 --w 0.3 --time 1");
    // A machine that is busy with other tests may start the robot too late for the first try.
    if (a.code == 3) a = run("drive k10 --v 0.5 --w 0.3 --time 1");
    assert_code(a, 0);
    end(pid);
    outcome b = run("replay driven.mcap --verify --trust");
    assert_code(b, 0);
    long long n_tick = 0, n_command = 0;
    // NOLINTNEXTLINE(cert-err34-c): the count of what was read is all that is asked for
    assert_int_equal(sscanf(b.out, "same: %lld ticks, %lld commands", &n_tick, &n_command), 2);
    assert_true(n_tick > 100);
    assert_true(n_command > 2);
}

static void verify_proves_a_run_with_faults(void **state) {
    (void)state;
    use_domain(quiet_domain());
    pid_t pid = start("faults", "run %s --headless --set motor_port=0 --record faults.mcap", scene);
    static const char *const faults[] = {"motor:front_left_drive=weak:0.3", "motor:rear_left_drive=blocked:4",
                                         "motor:rear_right_drive=dead", "motor:rear_left_drive=ok"};
    for (int i = 0; i < 4; i++) {
        outcome a = run("fault k10 %s", faults[i]);
        // A machine that is busy with other tests may start the world too late for the first try.
        if (a.code == 3) a = run("fault k10 %s", faults[i]);
        assert_code(a, 0);
    }
    end(pid);
    outcome b = run("replay faults.mcap --verify --trust");
    assert_code(b, 0);
    assert_has(b.out, "same: ");
    assert_has(b.out, " 4 commands");
}

static void verify_refuses_another_model(void **state) {
    (void)state;
    assert_code(run("run %s --headless --offline --set motor_port=0 --set speed=0.3 --time 0.2 --rate max "
                    "--record short.mcap",
                    scene),
                0);
    outcome a = run("replay short.mcap --verify --trust");
    assert_code(a, 0);
    assert_has(a.out, "same: 200 ticks, 0 commands");
    outcome b = run("replay short.mcap --verify --trust --set speed=0.4");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "parameters (--set)");
    write_text("other.xml", pendulum_scene);
    outcome c = run("replay short.mcap --verify --scene other.xml");
    assert_int_equal(c.code, 2);
    write_text("recorded.xml", pendulum_scene);
    assert_code(run("run recorded.xml --headless --offline --time 0.2 --rate max --record pendulum.mcap"), 0);
    char changed[4096];
    const char *mass = strstr(pendulum_scene, "mass=\"1\"");
    assert_non_null(mass);
    snprintf(changed, sizeof changed, "%.*smass=\"2\"%s", (int)(mass - pendulum_scene), pendulum_scene,
             mass + strlen("mass=\"1\""));
    write_text("recorded.xml", changed);
    outcome d = run("replay pendulum.mcap --verify --trust");
    assert_int_equal(d.code, 2);
    assert_has(d.err, "differs from line 5 on");
    // The text inside the recording is as it was.
    assert_code(run("replay pendulum.mcap --verify"), 0);
    write_text("recorded.xml", pendulum_scene);
    assert_code(run("replay pendulum.mcap --verify --trust"), 0);
}

static const char *const keys[] = {"version", "scene", "base", "parameters", "search", "seed", "model"};
enum { N_KEY = sizeof keys / sizeof keys[0] };

// A recording, and one that is to begin as it did.
typedef struct pair_of_recordings {
    us_recording *in;
    us_recorder *out;
} pair_of_recordings;

// The state at the start is copied. Metadata: `values` where they are given, else the same.
static pair_of_recordings start_copy(const char *from, const char *to, const char *const *values) {
    us_error err = {0};
    pair_of_recordings p = {NULL, NULL};
    us_recorder_def def = us_recorder_def_default();
    def.path = to;
    expect_ok(us_recording_open(from, NULL, &p.in, &err), &err);
    expect_ok(us_recorder_open(&def, &p.out, &err), &err);
    const char *same[N_KEY];
    for (int i = 0; i < N_KEY; i++)
        same[i] = us_recording_find_metadata(p.in, "understudy", keys[i]);
    assert_int_equal(us_recorder_set_metadata(p.out, "understudy", N_KEY, keys, values ? values : same),
                     US_OK);
    size_t length;
    const void *state = us_recording_find_attachment(p.in, "state", &length);
    assert_int_equal(us_recorder_attach(p.out, "state", "application/octet-stream", state, length), US_OK);
    return p;
}

static void end_copy(pair_of_recordings p) {
    us_error err = {0};
    expect_ok(us_recorder_close(p.out, &err), &err);
    us_recording_close(p.in);
}

// The recording again, with another hash at one tick.
static void copy_with_wrong_hash(const char *from, const char *to, int64_t tick) {
    us_error err = {0};
    const pair_of_recordings p = start_copy(from, to, NULL);
    us_recorded message;
    for (bool has = true;;) {
        expect_ok(us_recording_next(p.in, &message, &has, &err), &err);
        if (!has) break;
        us_channel_info channel = us_recording_get_channel(p.in, message.channel);
        const us_message_type *type = us_message_find(channel.type);
        int32_t index = us_recorder_add_channel(p.out, channel.topic, type, &err);
        uint8_t *copy = malloc(message.length);
        assert_non_null(copy);
        memcpy(copy, message.bytes, message.length);
        bool is_wrong = type == usi_type_tick_hash &&
                        us_message_get_number(type, message.bytes, message.length, "tick") == (double)tick;
        if (is_wrong) copy[12] ^= 1;  // header 4, tick 8, then the hash
        assert_int_equal(
            us_recorder_write(p.out, index, message.log_time, message.publish_time, copy, message.length),
            US_OK);
        free(copy);
    }
    end_copy(p);
}

static void verify_names_the_first_tick_that_differs(void **state) {
    (void)state;
    assert_code(
        run("run %s --headless --offline --set motor_port=0 --time 0.2 --rate max --record good.mcap", scene),
        0);
    copy_with_wrong_hash("good.mcap", "wrong.mcap", 123);
    assert_code(run("replay good.mcap --verify --trust"), 0);
    outcome a = run("replay wrong.mcap --verify --trust");
    assert_int_equal(a.code, 3);
    assert_has(a.out, "different: tick 123 ");
    assert_has(a.err, "remedy:");
}

// A library whose code runs when it is loaded leaves a file behind.
static void build_plugin(void) {
    write_text("trap.c",
               "#include <stdio.h>\n"
               "__attribute__((constructor)) static void spring(void) { FILE *f = fopen(\"sprung\", \"w\"); "
               "if (f) fclose(f); }\n");
    assert_int_equal(system("cc -shared -fPIC -o trap.so trap.c"), 0);
}

// A recording with this scene inside it, of which all else is that of another one.
static void copy_with_scene(const char *from, const char *to, const char *path, const char *text,
                            const char *search, const char *parameters) {
    const char *const values[N_KEY] = {"0", path, "", parameters, search, "0", "0123456789abcdef"};
    const pair_of_recordings p = start_copy(from, to, values);
    if (text)
        assert_int_equal(us_recorder_attach(p.out, "scene", "application/xml", text, strlen(text)), US_OK);
    end_copy(p);
}

static void nothing_that_a_recording_names_is_loaded(void **state) {
    (void)state;
    build_plugin();
    remove("sprung");
    write_text("own.xml", pendulum_scene);
    assert_code(run("run own.xml --headless --offline --time 0.05 --rate max --record own.mcap"), 0);
    char trap[PATH_MAX], text[2 * PATH_MAX], secret[PATH_MAX];
    assert_non_null(realpath("trap.so", trap));
    assert_non_null(realpath("own.xml", secret));
    static const char *const scenes[] = {
        "<scene name='a' version='1'><plugin file='%s'/><world/></scene>",
        "<scene name='a' version='1'><include file='%s'/><world/></scene>",
        "<scene name='a' version='1'><world/><robot name='r' file='%s'/></scene>",
        "<scene name='a' version='1'><world><shape type='mesh' file='%s'/></world></scene>",
        "<scene name='a' version='1'><world><shape type='mesh' file='file://%s'/></world></scene>",
        "<scene name='a' version='1'><world><shape type='convex' file='%s'/></world></scene>",
        "<scene name='a' version='1'><world><shape type='height-field' nx='2' ny='2' dx='1' dy='1' "
        "file='%s'/></world></scene>",
        "<scene name='a' version='1'><world><shape type='height-field' file='%s.tif'/></world></scene>",
        "<scene name='a' version='1'><world><shape type='height-field' file='%s/'/></world></scene>",
        "<robot name='r'><link name='l'><visual><geometry><mesh filename='%s'/></geometry></visual></link>"
        "</robot>",
    };
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
        snprintf(text, sizeof text, scenes[i], i == 0 ? trap : secret);
        copy_with_scene("own.mcap", "strange.mcap", secret, text, "", "");
        outcome a = run("replay strange.mcap --verify");
        assert_int_equal(a.code, 2);
        assert_has(a.err, "what was recorded wants to load the ");
        assert_has(a.err, i == 0 ? trap : secret);
        assert_has(a.err, "--trust");
        assert_int_not_equal(access("sprung", F_OK), 0);
    }
    // The scene's file itself, when its text is not inside.
    copy_with_scene("own.mcap", "strange.mcap", secret, NULL, "", "");
    outcome b = run("replay strange.mcap --verify");
    assert_int_equal(b.code, 2);
    assert_has(b.err, secret);
    assert_has(b.err, "--trust");
    // With the word of the user it is loaded: the trap springs, so that the test can tell.
    snprintf(text, sizeof text, scenes[0], trap);
    write_text("plugged.xml", text);
    copy_with_scene("own.mcap", "strange.mcap", "plugged.xml", text, "", "");
    assert_int_equal(run("replay strange.mcap --verify --trust").code, 2);
    assert_int_equal(access("sprung", F_OK), 0);
}

static void a_recording_cannot_choose_files_for_my_own_scene(void **state) {
    (void)state;
    write_text(
        "chosen.xml",
        "<scene name='a' version='1'><parameter name='part' value='none.xml'/><include file='${part}'/>"
        "<world/></scene>");
    write_text("base.xml", pendulum_scene);
    assert_code(run("run base.xml --headless --offline --time 0.05 --rate max --record base.mcap"), 0);
    copy_with_scene("base.mcap", "steered.mcap", "chosen.xml", "", "/etc", "part=/etc/passwd");
    outcome a = run("replay steered.mcap --verify --scene chosen.xml");
    assert_int_equal(a.code, 2);
    assert_has(a.err, "sets a parameter to a path: part=/etc/passwd");
    assert_has(a.err, "not searched for meshes: /etc");
    outcome b = run("replay steered.mcap --verify --scene chosen.xml --set part=/etc/passwd");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "/etc/passwd");
    assert_int_equal(run("replay steered.mcap --trust").code, 2);
}

static void a_recording_that_is_lost_ends_with_an_error(void **state) {
    (void)state;
    use_domain(quiet_domain());
    pid_t pid = start("losing", "run %s --headless --offline --set motor_port=0 --record losing.mcap", scene);
    // Until something is in it.
    struct stat about = {0};
    WAIT_FOR(stat("losing.mcap", &about) == 0 && about.st_size > 100000);
    assert_int_equal(remove("losing.mcap"), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(wait_for_end(pid), 4);
    // A file that may not become larger, from the start or in the middle.
    write_text("limited.sh", "ulimit -f 100; exec \"$@\"\n");
    char command[PATH_MAX * 3];
    snprintf(command, sizeof command,
             "bash limited.sh %s run %s --headless --offline --set motor_port=0 --time 5 --rate max --record "
             "limited.mcap >limited.out 2>limited.err",
             US_PROGRAM, scene);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4);
}

static void compare_names_the_numbers_that_differ(void **state) {
    (void)state;
    const char *made =
        "run %s --headless --offline --set motor_port=0 --set speed=%s --time 0.5 --rate max --record %s";
    assert_code(run(made, scene, "0.3", "one.mcap"), 0);
    assert_code(run(made, scene, "0.3", "two.mcap"), 0);
    assert_code(run(made, scene, "0.4", "three.mcap"), 0);
    outcome a = run("replay one.mcap --compare two.mcap --tolerance 0");
    assert_code(a, 0);
    assert_has(a.out, "same: 0 of ");
    outcome b = run("replay one.mcap --compare three.mcap --topics /k10/odom,joint_states");
    assert_code(b, 0);
    assert_has(b.out, "/k10/odom pose.pose.position.x");
    assert_has(b.out, "different: ");
    outcome c = run("replay one.mcap --compare three.mcap --tolerance 1e-4 --topics k10/odom");
    assert_int_equal(c.code, 1);
    assert_has(c.out, "from 0.");
    assert_has(c.out, "beyond the tolerance of 0.0001");
    assert_code(run("replay one.mcap --compare three.mcap --tolerance 1e6"), 0);
    assert_int_equal(run("replay one.mcap --compare none.mcap").code, 2);
    assert_int_equal(run("replay one.mcap --compare two.mcap --topics /nothing").code, 2);
    assert_int_equal(run("replay one.mcap --compare two.mcap --verify").code, 2);
    assert_int_equal(run("replay one.mcap --compare two.mcap --tolerance -1").code, 2);
    assert_int_equal(run("replay one.mcap --tolerance 1").code, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(verify_proves_a_run_that_was_driven, use_own_domain),
        cmocka_unit_test_setup(verify_proves_a_run_with_faults, use_own_domain),
        cmocka_unit_test_setup(verify_refuses_another_model, use_own_domain),
        cmocka_unit_test_setup(verify_names_the_first_tick_that_differs, use_own_domain),
        cmocka_unit_test_setup(nothing_that_a_recording_names_is_loaded, use_own_domain),
        cmocka_unit_test_setup(a_recording_cannot_choose_files_for_my_own_scene, use_own_domain),
        cmocka_unit_test_setup(a_recording_that_is_lost_ends_with_an_error, use_own_domain),
        cmocka_unit_test_setup(compare_names_the_numbers_that_differ, use_own_domain),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
