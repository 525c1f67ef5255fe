// understudy keys as a user types it, judged by the program openssl; what the environment asks of every
// command; and a robot, its proxy and a switch with keys of their own.
#include <sched.h>
#include <sys/stat.h>

#include "shell.h"
#include "test_network_support.h"

static void use_security(const char *enable, const char *strategy, const char *keystore,
                         const char *enclave) {
    const char *const values[][2] = {{"ROS_SECURITY_ENABLE", enable},
                                     {"ROS_SECURITY_STRATEGY", strategy},
                                     {"ROS_SECURITY_KEYSTORE", keystore},
                                     {"ROS_SECURITY_ENCLAVE_OVERRIDE", enclave}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i][1])
            setenv(values[i][0], values[i][1], 1);
        else
            unsetenv(values[i][0]);
    }
}

static int use_none(void **state) {
    (void)state;
    use_security(NULL, NULL, NULL, NULL);
    return shell("rm -rf keystore other") ? 0 : -1;
}

// ---------------------------------------------------------------- keystores

static void openssl_accepts_what_was_made(void **state) {
    (void)state;
    static const char *const enclaves[] = {"/", "/rover", "/fleet/rover_1", "/a/b/c/d/e"};
    assert_code(run("keys create keystore --days 20"), 0);
    for (size_t i = 0; i < sizeof enclaves / sizeof enclaves[0]; i++) {
        char dir[300];
        assert_code(run("keys add keystore %s --publish /odom,/tf --subscribe /cmd_vel", enclaves[i]), 0);
        snprintf(dir, sizeof dir, "keystore/enclaves%s", enclaves[i]);
        assert_true(
            shell("openssl verify -x509_strict -CAfile %s/identity_ca.cert.pem %s/cert.pem >judge.txt 2>&1",
                  dir, dir));
        assert_true(
            shell("openssl smime -verify -text -in %s/governance.p7s -CAfile %s/permissions_ca.cert.pem "
                  "-out judge.txt 2>judge.err",
                  dir, dir));
        assert_true(shell("tr -d '\\r' <judge.txt | cmp - keystore/enclaves/governance.xml"));
        assert_true(
            shell("openssl smime -verify -text -in %s/permissions.p7s -CAfile %s/permissions_ca.cert.pem "
                  "-out judge.txt 2>judge.err",
                  dir, dir));
        assert_true(shell("tr -d '\\r' <judge.txt | cmp - %s/permissions.xml", dir));
        assert_true(
            shell("xmllint --noout %s/permissions.xml 2>/dev/null || ! command -v xmllint >/dev/null", dir));
        assert_true(shell("test \"$(stat -c %%a %s/key.pem)\" = 600", dir));
        // the key is the certificate's, of P-256, and named after the enclave
        assert_true(
            shell("openssl pkey -in %s/key.pem -pubout >key.txt && openssl x509 -in %s/cert.pem -noout "
                  "-pubkey | cmp - key.txt",
                  dir, dir));
        assert_true(shell("openssl x509 -in %s/cert.pem -noout -text | grep -q prime256v1", dir));
        assert_true(shell("openssl x509 -in %s/cert.pem -noout -subject | grep -qx 'subject=CN = %s'", dir,
                          enclaves[i]));
        assert_true(shell("openssl x509 -in %s/cert.pem -noout -checkend $((364*86400)) >judge.txt", dir));
        assert_false(shell("openssl x509 -in %s/cert.pem -noout -checkend $((366*86400)) >judge.txt", dir));
    }
    assert_true(shell(
        "test \"$(stat -c %%a keystore/private keystore/private/ca.key.pem | tr '\\n' ' ')\" = '700 600 '"));
    assert_true(shell("test \"$(stat -c %%a keystore/enclaves/*/key.pem | sort -u)\" = 600"));
    outcome a = run("keys list keystore --json");
    cJSON *list = parse_json(a.out);
    assert_int_equal(cJSON_GetArraySize(list), 4);
    for (int i = 0; i < 4; i++) {
        assert_true(cJSON_IsTrue(member(cJSON_GetArrayItem(list, i), "good")));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(member(cJSON_GetArrayItem(list, i), "serial")->valuestring,
                                    member(cJSON_GetArrayItem(list, k), "serial")->valuestring);
    }
    cJSON_Delete(list);
}

static void keys_say_what_is_wrong(void **state) {
    (void)state;
    outcome a = run("keys creat keystore");
    assert_code(a, 2);
    assert_has(a.err, "did you mean create?");
    assert_code(run("keys create"), 2);
    assert_code(run("keys create keystore --domains 7-3"), 2);
    assert_code(run("keys create keystore --domains 231"), 2);
    assert_code(run("keys create keystore --days -1"), 2);
    assert_code(run("keys create /proc/keystore"), 4);
    a = run("keys list keystore");
    assert_code(a, 2);
    assert_has(a.err, "understudy keys create");
    a = run("keys add keystore /rover");
    assert_code(a, 4);
    assert_has(a.err, "keystore/public/identity_ca.cert.pem");
    assert_code(run("keys create keystore"), 0);
    a = run("keys create keystore");
    assert_code(a, 4);
    assert_has(a.err, "not empty");
    static const char *const bad[] = {"rover", "/../etc", "/a//b", "/a/", "/a;b", "/a<b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_code(run("keys add keystore %s", bad[i]), 2);
    assert_code(run("keys add keystore /%.70s",
                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
                2);
    assert_code(run("keys add keystore"), 2);
    assert_code(run("keys add keystore /rover --publish <topic>"), 2);
    assert_code(run("keys add keystore /rover --as nobody"), 2);
    a = run("keys list keystore");
    assert_code(a, 0);
    assert_int_equal(strlen(a.out), 0);
}

// ---------------------------------------------------------------- the environment

static void enforce_without_keys_does_not_start(void **state) {
    (void)state;
    use_security("true", "Enforce", NULL, NULL);
    outcome a = run("topics --wait 0.1");
    assert_code(a, 2);
    assert_has(a.err, "ROS_SECURITY_KEYSTORE");
    use_security("true", "Enforce", "keystore", "/rover");
    a = run("run %s/scenes/default.xml --headless --time 0.1", US_SOURCE_DIR);
    assert_code(a, 3);
    assert_has(a.err, "keystore/enclaves/rover/identity_ca.cert.pem");
    assert_has(a.err, "understudy keys add keystore /rover");
    // with keys it does; and the words of the remedy are those that make them
    use_security(NULL, NULL, NULL, NULL);
    assert_code(run("keys create keystore"), 0);
    assert_code(run("keys add keystore /rover"), 0);
    use_security("true", "Enforce", "keystore", "/rover");
    assert_code(run("run %s/scenes/default.xml --headless --time 0.1 --quiet", US_SOURCE_DIR), 0);
    assert_true(unlink("keystore/enclaves/rover/permissions.p7s") == 0);
    a = run("topics --wait 0.1");
    assert_code(a, 3);
    assert_has(a.err, "rover/permissions.p7s");
}

static void permissive_without_keys_warns_once_and_runs_open(void **state) {
    (void)state;
    use_security("true", "Permissive", "keystore", "/rover");
    outcome a = run("run %s/scenes/default.xml --headless --time 0.1 --quiet", US_SOURCE_DIR);
    assert_code(a, 0);
    const char *first = strstr(a.err, "open to everybody");
    assert_non_null(first);
    assert_null(strstr(first + 1, "open to everybody"));
    use_security("true", NULL, NULL, NULL);
    a = run("topics --wait 0.1");
    assert_code(a, 0);
    assert_has(a.err, "ROS_SECURITY_KEYSTORE is not set");
    // keys that are there and do not hold are an error all the same
    use_security(NULL, NULL, NULL, NULL);
    assert_code(run("keys create keystore"), 0);
    assert_code(run("keys add keystore /rover"), 0);
    assert_true(shell("sed -i 's/ENCRYPT/NONE/' keystore/enclaves/rover/governance.p7s"));
    use_security("true", "Permissive", "keystore", "/rover");
    a = run("topics --wait 0.1");
    assert_code(a, 2);
    assert_has(a.err, "rover/governance.p7s");
    assert_has(a.err, "signature does not hold");
}

static void other_values_are_refused(void **state) {
    (void)state;
    use_security("yes", NULL, NULL, NULL);
    outcome a = run("topics --wait 0.1");
    assert_code(a, 2);
    assert_has(a.err, "ROS_SECURITY_ENABLE");
    use_security("true", "enforce", NULL, NULL);
    a = run("topics --wait 0.1");
    assert_code(a, 2);
    assert_has(a.err, "Enforce or Permissive");
    use_security("false", "Enforce", NULL, NULL);
    a = run("topics --wait 0.1");
    assert_code(a, 0);
    assert_lacks(a.err, "SECURITY");
}

// ---------------------------------------------------------------- the switch

static bool has(const char *path, const char *part) {
    char *text = read_text(path);
    bool is_there = text && strstr(text, part);
    free(text);
    return is_there;
}

// Hardware, proxy, switch and operator: five enclaves of one keystore, each allowed in its own domains alone.
static void a_switch_works_between_secured_domains(void **state) {
    (void)state;
    const int32_t o = test_domain_of(0), h = test_domain_of(1), p = test_domain_of(2);
    assert_code(run("keys create keystore"), 0);
    assert_code(run("keys add keystore /operator /switch/operators --domains %d", o), 0);
    assert_code(run("keys add keystore /hardware /switch/hardware --domains %d", h), 0);
    assert_code(run("keys add keystore /proxy /switch/proxy --domains %d", p), 0);
    const char *scene_file = US_SOURCE_DIR "/scenes/default.xml";
    use_domain(h);
    use_security("true", "Enforce", "keystore", "/hardware");
    start("hardware", "run %s --headless --quiet --set motor_port=0", scene_file);
    use_domain(p);
    use_security("true", "Enforce", "keystore", "/proxy");
    start("proxy", "run %s --headless --quiet --set motor_port=0", scene_file);
    use_domain(o);
    use_security("true", "Enforce", "keystore", NULL);
    pid_t sw =
        start("switch",
              "switch k10 --visible --operators %d --hardware %d --proxy %d --watchdog 10 --enclave "
              "/switch/operators "
              "--hardware-enclave /switch/hardware --proxy-enclave /switch/proxy --plain --evidence none",
              o, h, p);
    WAIT_FOR(has("switch.out", "the hardware is heard") && has("switch.out", "the proxy is heard"));
    use_security("true", "Enforce", "keystore", "/operator");
    outcome a = run("echo /k10/odom --count 1 --timeout 20 --field child_frame_id");
    assert_code(a, 0);
    assert_has(a.out, "k10/");
    a = run("switch k10 --visible --to proxy --wait 10");
    assert_code(a, 0);
    // Operators have no keys of the proxy's domain; who looks after the proxy has.
    a = run("switch k10 --proxy %d --status", p);
    assert_code(a, 2);
    assert_has(a.err, "not meant for domain");
    use_security("true", "Enforce", "keystore", NULL);
    a = run("switch k10 --proxy %d --proxy-enclave /proxy --status --wait 10", p);
    assert_code(a, 0);
    assert_has(a.out, "in control: proxy");
    use_security("true", "Enforce", "keystore", "/operator");
    assert_code(run("drive k10 --v 0.2 --time 0.5 --quiet"), 0);
    // without keys there is nobody
    use_security(NULL, NULL, NULL, NULL);
    assert_code(run("echo /k10/odom --count 1 --timeout 1"), 3);
    // keys of one domain are no keys of another
    use_security("true", "Enforce", "keystore", "/operator");
    use_domain(h);
    a = run("topics --wait 0.1");
    assert_code(a, 2);
    assert_has(a.err, "not meant for domain");
    end(sw);
    kill_the_rest(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(openssl_accepts_what_was_made, use_none),
        cmocka_unit_test_setup(keys_say_what_is_wrong, use_none),
        cmocka_unit_test_setup(enforce_without_keys_does_not_start, use_none),
        cmocka_unit_test_setup(permissive_without_keys_warns_once_and_runs_open, use_none),
        cmocka_unit_test_setup(other_values_are_refused, use_none),
        cmocka_unit_test_setup(a_switch_works_between_secured_domains, use_none),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
