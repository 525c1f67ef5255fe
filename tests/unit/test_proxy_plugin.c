// A proxy among other plug-ins of a sim: each keeps to its own state, whoever comes first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy_world.h"
#include "understudy/wire.h"

// A user's plug-in that counts its ticks, and keeps a pattern behind the count.
typedef struct counter {
    int64_t n;
    uint8_t pattern[200];
} counter;

static void start_counter(void *context, us_sim *sim, void *state) {
    (void)context;
    (void)sim;
    memset(((counter *)state)->pattern, 0x5a, sizeof((counter *)state)->pattern);
}

static us_status count(void *context, us_sim *sim, us_plugin_view *view, us_error *err) {
    (void)context;
    (void)sim;
    (void)err;
    ((counter *)view->state)->n++;
    return US_OK;
}

static us_plugin counter_plugin(int *context) {
    return (us_plugin){.version = US_PLUGIN_VERSION,
                       .name = "counter",
                       .state_size = sizeof(counter),
                       .context = context,
                       .start = start_counter,
                       .before = count};
}

// The world of `w` once more, with these plug-ins.
static void use_plugins(proxy_world *w, const us_plugin *plugins, int32_t n) {
    us_sim_def def = us_sim_def_default();
    us_error err = {0};
    us_sim_destroy(w->sim);
    w->sim = NULL;
    def.n_plugin = n;
    def.plugins = plugins;
    assert_int_equal(us_sim_create(w->model, &def, &w->sim, &err), US_OK);
}

static void drive(proxy_world *w) {
    const us_msg_twist twist = {.linear = {0.4, 0, 0}, .angular = {0, 0, 0.2}};
    proxy_world_post(w, "/k10/cmd_vel", usi_type_twist, &twist);
    proxy_world_step(w, 300);
}

static void check_counter(const us_sim *sim, int32_t i, int64_t n) {
    const counter *c = us_sim_view_plugin(sim, i);
    assert_int_equal(c->n, n);
    for (size_t k = 0; k < sizeof c->pattern; k++)
        assert_int_equal(c->pattern[k], 0x5a);
}

static void a_plugin_before_or_behind_the_proxy_changes_nothing_for_either(void **state) {
    (void)state;
    int context = 0;
    proxy_world alone, w;
    proxy_world_k10(&alone, "");
    drive(&alone);
    assert_true(us_proxy_get_counts(alone.proxy, alone.sim).n_command == 1);
    size_t n_q = (size_t)us_model_get_counts(alone.model).n_q;
    for (int first = 0; first < 2; first++) {
        proxy_world_k10(&w, "");
        us_plugin plugins[2];
        plugins[first ? 0 : 1] = counter_plugin(&context);
        plugins[first ? 1 : 0] = us_proxy_get_plugin(w.proxy);
        use_plugins(&w, plugins, 2);
        drive(&w);
        check_counter(w.sim, first ? 0 : 1, 300);
        assert_memory_equal(us_sim_view_q(w.sim), us_sim_view_q(alone.sim), n_q * sizeof(double));
        us_proxy_counts counts = us_proxy_get_counts(w.proxy, w.sim);
        assert_int_equal(counts.n_command, 1);
        // What looks at the robot's state between steps finds its own, too.
        char refusal[200];
        const us_msg_twist fast = {.linear = {5, 0, 0}};
        proxy_world_post(&w, "/k10/cmd_vel", usi_type_twist, &fast);
        proxy_world_step(&w, 1);
        us_proxy_last_refusal(w.proxy, w.sim, 0, refusal, sizeof refusal);
        assert_non_null(strstr(refusal, "speed 5 m/s is beyond"));
        check_counter(w.sim, first ? 0 : 1, 301);
        proxy_world_fini(&w);
    }
    proxy_world_fini(&alone);
}

static void two_networks_for_the_same_robots_are_refused(void **state) {
    (void)state;
    proxy_world w;
    us_proxy *second = NULL;
    proxy_world_k10(&w, "");
    assert_int_equal(us_proxy_create(w.model, NULL, &second, NULL), US_OK);
    us_plugin plugins[2] = {us_proxy_get_plugin(w.proxy), us_proxy_get_plugin(second)};
    use_plugins(&w, plugins, 2);
    assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_ARG);
    assert_non_null(strstr(us_sim_view_error(w.sim)->message, "two networks"));
    assert_int_equal(us_sim_get_tick(w.sim), 0);
    // The same one twice is no better.
    plugins[1] = plugins[0];
    use_plugins(&w, plugins, 2);
    assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_ARG);
    use_plugins(&w, plugins, 1);
    assert_int_equal(us_sim_step(w.sim, NULL), US_OK);
    us_proxy_destroy(second);
    proxy_world_fini(&w);
}

// All that a robot needs while it runs is in the model: drives, locomotion, battery, faults, topics, radio
// link. The spec's memory is gone; what still pointed there would be read here.
static void robots_run_without_the_spec_that_they_were_made_of(void **state) {
    (void)state;
    static const char inside[] =
        "<fault at='0.2 s' what='motor:front_left_drive=dead' for='0.1 s'/>"
        "<network><uplink delay='20 ms' loss='0.1'/><downlink delay='5 ms'/></network>";
    uint64_t hash[2];
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        proxy_world w;
        proxy_world_k10(&w, inside);
        if (is_gone) {
            us_spec_destroy(w.spec);
            w.spec = NULL;
        }
        for (int i = 0; i < 10; i++) {
            assert_int_equal(proxy_world_drive(&w, 0.3, 0, 0.2), US_OK);
            proxy_world_step(&w, 50);
        }
        assert_true(us_sim_get_pose(w.sim, us_model_find_body(w.model, "k10/base")).p.x > 0.02);
        hash[is_gone] = us_sim_hash(w.sim);
        proxy_world_fini(&w);
    }
    assert_true(hash[0] == hash[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(robots_run_without_the_spec_that_they_were_made_of),
        cmocka_unit_test(a_plugin_before_or_behind_the_proxy_changes_nothing_for_either),
        cmocka_unit_test(two_networks_for_the_same_robots_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
