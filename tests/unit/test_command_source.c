// Who commands a robot when several do.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "proxy/proxy__robot.h"
#include "proxy_world.h"

static const char network_id[] = "0110aabbccddeeff00112233445566ff";
static const char *const senders[] = {network_id, "motor:1", "page:3",
                                      "operator:0110aabbccddeeff00112233445566ff"};
enum { N_SENDER = 4 };

static us_status post_twist(proxy_world *w, const char *sender, double vx) {
    const us_msg_twist m = {{vx, 0, 0}, {0, 0, 0}};
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, w->bytes, sizeof w->bytes, &length), US_OK);
    return us_proxy_post(w->proxy, "/k10/cmd_vel", usi_type_twist, sender, w->bytes, length);
}

static double wanted(const proxy_world *w) {
    const usi_robot *r = &w->proxy->robot[0];
    return usi_view_firmware(r, usi_view_state(r, w->sim))->want[0];
}

// What is taken changes what the firmware wants within the tick.
static bool takes(proxy_world *w, const char *sender, double vx) {
    const int64_t before = us_proxy_get_counts(w->proxy, w->sim).n_command;
    assert_int_equal(post_twist(w, sender, vx), US_OK);
    proxy_world_step(w, 1);
    const bool is_taken = us_proxy_get_counts(w->proxy, w->sim).n_command > before;
    if (is_taken) assert_true(wanted(w) == vx);
    return is_taken;
}

static void operators_go_before_autonomy_until_they_let_go(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<network namespace='k10'><source name='operator' topic='operator/cmd_vel' "
                        "priority='10' hold='0.2 s'/><source name='page' priority='-1'/></network>");
    assert_true(takes(&w, network_id, 0.1));
    assert_true(takes(&w, senders[3], 0.2));
    assert_false(takes(&w, network_id, 0.1));
    char why[200];
    us_proxy_last_refusal(w.proxy, w.sim, 0, why, sizeof why);
    assert_string_equal(why, "cmd_vel: operator commands, with priority 10 over 0");
    assert_true(wanted(&w) == 0.2);
    proxy_world_step(&w, 150);
    assert_false(takes(&w, network_id, 0.1));
    proxy_world_step(&w, 60);
    assert_true(takes(&w, network_id, 0.1));
    // Sources that are not named have priority 0 and hold nobody off.
    assert_true(takes(&w, "page:1", 0.3));
    assert_true(takes(&w, "motor:7", 0.2));
    proxy_world_fini(&w);
}

static void stops_are_obeyed_whoever_sends_them(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<network namespace='k10' services='true'><source name='operator' "
                        "topic='/stick' priority='10' hold='10 s'/></network>");
    assert_true(takes(&w, senders[3], 0.2));
    const us_msg_locomotor_command drive = {.mode = 1, .speed = 0.1}, stop = {.mode = 0};
    const us_msg_navigator_command halt = {.mode = 0};
    size_t length = 0;
    us_message_encode(usi_type_locomotor_command, &drive, w.bytes, sizeof w.bytes, &length);
    us_proxy_post(w.proxy, "/k10/locomotor/command", usi_type_locomotor_command, network_id, w.bytes, length);
    proxy_world_step(&w, 1);
    assert_true(wanted(&w) == 0.2);
    // A velocity of 0 is no stop: others say so all the time.
    assert_false(takes(&w, network_id, 0));
    us_message_encode(usi_type_locomotor_command, &stop, w.bytes, sizeof w.bytes, &length);
    us_proxy_post(w.proxy, "/k10/locomotor/command", usi_type_locomotor_command, network_id, w.bytes, length);
    proxy_world_step(&w, 1);
    assert_true(wanted(&w) == 0);
    assert_true(takes(&w, senders[3], 0.2));
    us_message_encode(usi_type_navigator_command, &halt, w.bytes, sizeof w.bytes, &length);
    us_proxy_post(w.proxy, "/k10/navigator/command", usi_type_navigator_command, "page:1", w.bytes, length);
    proxy_world_step(&w, 1);
    assert_true(wanted(&w) == 0);
    proxy_world_fini(&w);
}

// Random priorities, holds and commands against a model that looks through all that was taken so far.
static void the_one_with_the_highest_priority_that_commanded_lately_is_obeyed(void **state) {
    (void)state;
    static const char *const names[N_SENDER] = {"network", "motor", "page", "operator"};
    enum { N_COMMAND = 300 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t at = 0;
        int priority[N_SENDER], hold[N_SENDER], n = 0;
        char inside[800];
        n += snprintf(inside, sizeof inside, "<network namespace='k10' timeout='0 s'>");
        for (int i = 0; i < N_SENDER; i++) {
            priority[i] = (int)build_uniform(seed, &at, -2, 3);
            hold[i] = (int)build_uniform(seed, &at, 0, 60);
            n += snprintf(inside + n, sizeof inside - (size_t)n,
                          "<source name='%s' priority='%d' hold='%d ms'%s/>", names[i], priority[i], hold[i],
                          i == 3 ? " topic='operator/cmd_vel'" : "");
        }
        snprintf(inside + n, sizeof inside - (size_t)n, "</network>");
        proxy_world w;
        proxy_world_k10(&w, inside);
        int64_t last[N_SENDER] = {-1000, -1000, -1000, -1000};
        for (int k = 0; k < N_COMMAND; k++) {
            const int who = (int)build_uniform(seed, &at, 0, N_SENDER);
            const int64_t tick = us_sim_get_tick(w.sim);
            bool should = true;
            for (int i = 0; i < N_SENDER; i++)
                should = should && !(priority[i] > priority[who] && tick - last[i] <= hold[i]);
            const bool is_taken = takes(&w, senders[who], 0.001 * (k + 1));
            if (is_taken != should)
                fail_msg("seed %d, command %d of %s: taken %d", (int)seed, k, names[who], is_taken);
            if (is_taken) last[who] = tick;
            proxy_world_step(&w, (int)build_uniform(seed, &at, 0, 20));
        }
        proxy_world_fini(&w);
    }
}

static void a_snapshot_remembers_who_commands(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<network namespace='k10'><source name='page' priority='1' hold='1 s'/></network>");
    assert_true(takes(&w, "page:1", 0.2));
    size_t size = 0;
    assert_int_equal(us_sim_save(w.sim, NULL, 0, &size), US_OK);
    void *saved = malloc(size);
    assert_int_equal(us_sim_save(w.sim, saved, size, &size), US_OK);
    proxy_world_step(&w, 2000);
    assert_true(takes(&w, network_id, 0.1));
    assert_int_equal(us_sim_restore(w.sim, saved, size), US_OK);
    assert_false(takes(&w, network_id, 0.1));
    free(saved);
    proxy_world_fini(&w);
}

static void wrong_sources_are_told(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"<source name='operator' priority='1'/>", "needs a topic"},
        {"<source name='page' topic='x'/>", "no topic of their own"},
        {"<source name='page'/><source name='page'/>", "two sources"},
        {"<source name='a' topic='t'/><source name='b' topic='t'/>", "another source has this topic"},
        {"<source name='a' topic='1t'/>", "no name of a topic"},
        {"<source name='motor' ownership='exclusive'/>", "matter of DDS"},
        {"<source name='page' hold='7200 s'/>", "hold is from"},
        {"<source name='page' priority='high'/>", "priority"},
        {"<source name='abcdefghijklmnopqrstu' topic='t'/>", "no name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char scene[600];
        us_spec *spec = NULL;
        us_error err = {0};
        snprintf(scene, sizeof scene,
                 "<scene version='1'><robot name='k10' file='../models/k10.urdf' base='floating'>"
                 "<network>%s</network></robot></scene>",
                 cases[i].text);
        us_status status =
            us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err);
        if (!status || !strstr(err.message, cases[i].why) || err.line == 0 || !err.remedy[0])
            fail_msg("%s: %s", cases[i].text, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_go_before_autonomy_until_they_let_go),
        cmocka_unit_test(stops_are_obeyed_whoever_sends_them),
        cmocka_unit_test(the_one_with_the_highest_priority_that_commanded_lately_is_obeyed),
        cmocka_unit_test(a_snapshot_remembers_who_commands),
        cmocka_unit_test(wrong_sources_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
