// A world that is edited while its robots drive: their firmware goes on to the last bit, and a recording with
// edits runs again.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "proxy/tap.h"
#include "proxy/verify.h"
#include "proxy_world.h"

static const char *const radio = "<network services='true'><uplink delay='30 ms' jitter='40 ms' "
                                 "loss='0.1'/><downlink delay='50 ms' loss='0.2'/></network>";

// Before the robot in the scene: without them all its indices are others.
static const char *const objects = "<object name='table' xyz='6 0 1'><link name='disc' density='500'><shape "
                                   "type='cylinder' size='0.3 0.1'/></link>"
                                   "<joint name='axle' type='continuous' parent='world' child='disc' axis='0 "
                                   "0 1'/><drive joint='axle' kd='1' velocity='2'/></object>"
                                   "<object name='crate' xyz='4 3 0.26'><link name='box' "
                                   "density='300'><shape type='box' size='0.5 0.5 0.5'/></link></object>";

static void command_at(proxy_world *w, int tick) {
    if (tick % 90 == 10) proxy_world_drive(w, 0.3, 0, tick % 180 == 10 ? 0.2 : -0.3);
    if (tick % 200 == 150) {
        us_msg_string m = {TEXT("MMOVFLSTT0.5,0.4,0.3")};
        proxy_world_post(w, "/k10/motors", usi_type_string, &m);
    }
    if (tick == 420) {
        us_msg_locomotor_command m = {
            .header.frame_id = TEXT(""), .sequence = 3, .mode = 2, .speed = 0.4, .distance = 0.2};
        proxy_world_post(w, "/k10/locomotor/command", usi_type_locomotor_command, &m);
    }
}

static void run(proxy_world *w, int from, int to) {
    for (int i = from; i < to; i++) {
        command_at(w, i);
        proxy_world_step(w, 1);
    }
}

// ---------------------------------------------------------------- edits, as lines of text

static void remove_group(us_spec *spec, const char *name) {
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_group; i++) {
        if (strcmp(us_spec_view_group(spec, i)->name, name) != 0) continue;
        assert_int_equal(us_spec_remove_group(spec, i), US_OK);
        return;
    }
    fail_msg("no group %s", name);
}

static void add_post(us_spec *spec, const char *name) {
    us_shape_def post = us_shape_def_default(US_SHAPE_CYLINDER);
    post.name = name;
    post.link = US_WORLD;
    post.size[0] = 0.1;
    post.size[1] = 1;
    // Where the robot comes by and hits it.
    post.X_BG.p = us_vec3_make(0.75, 0.3, 0.5);
    assert_int_equal(us_spec_add_shape(spec, &post, NULL), US_OK);
}

static void edit(us_spec *spec, const char *text) {
    if (strncmp(text, "remove ", 7) == 0) {
        remove_group(spec, text + 7);
    } else if (strncmp(text, "add ", 4) == 0) {
        add_post(spec, text + 4);
    } else {
        fail_msg("what is %s?", text);
    }
}

static us_status try_edit(proxy_world *w, us_spec *spec, us_error *err) {
    us_model *model = NULL;
    us_status status = us_model_compile(spec, NULL, &model, err);
    assert_int_equal(status, US_OK);
    status = us_proxy_replace(w->proxy, w->sim, model, err);
    if (status) {
        us_model_destroy(model);
        us_spec_destroy(spec);
        return status;
    }
    // Nothing of the old ones may be looked at any more.
    us_model_destroy(w->model);
    us_spec_destroy(w->spec);
    w->model = model;
    w->spec = spec;
    return US_OK;
}

static us_spec *copy_of(const proxy_world *w) {
    us_spec *spec = NULL;
    assert_int_equal(us_spec_copy(w->spec, &spec), US_OK);
    return spec;
}

static void apply(proxy_world *w, const char *text) {
    us_error err = {0};
    us_spec *spec = copy_of(w);
    edit(spec, text);
    us_status status = try_edit(w, spec, &err);
    if (status) fail_msg("%s: %s", err.element, err.message);
}

static void *save(const us_sim *sim, size_t *out_length) {
    us_sim_save(sim, NULL, 0, out_length);
    void *bytes = malloc(*out_length);
    assert_non_null(bytes);
    assert_int_equal(us_sim_save(sim, bytes, *out_length, out_length), US_OK);
    return bytes;
}

// ---------------------------------------------------------------- tests

static void a_robot_goes_on_in_another_model_as_in_a_world_that_was_made_of_it(void **state) {
    (void)state;
    proxy_world w, other;
    proxy_world_k10_behind(&w, objects, radio);
    // 12 ms after a command that is 30 to 70 ms under way.
    run(&w, 0, 292);
    size_t n = us_proxy_get_plugin(w.proxy).state_size, length = 0;
    void *memory = malloc(n);
    memcpy(memory, us_sim_view_plugin(w.sim, 0), n);
    us_body base = us_model_find_body(w.model, "k10/base");
    us_pose before = us_sim_get_pose(w.sim, base);
    apply(&w, "remove table");
    apply(&w, "add post");
    us_body now = us_model_find_body(w.model, "k10/base");
    assert_true(now.i >= 0 && now.i != base.i);
    us_pose after = us_sim_get_pose(w.sim, now);
    assert_memory_equal(memory, us_sim_view_plugin(w.sim, 0), n);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(us_sim_get_tick(w.sim), 292);
    free(memory);

    void *snapshot = save(w.sim, &length);
    proxy_world_of(&other, copy_of(&w));
    assert_int_equal(us_sim_restore(other.sim, snapshot, length), US_OK);
    free(snapshot);
    for (int i = 292; i < 700; i++) {
        run(&w, i, i + 1);
        run(&other, i, i + 1);
        if (us_sim_hash(w.sim) != us_sim_hash(other.sim)) fail_msg("other bits at tick %d", i + 1);
    }
    // It did something: it was told things, and drove.
    assert_true(us_proxy_get_counts(w.proxy, w.sim).n_command > 5);
    assert_true(us_sim_get_pose(w.sim, now).p.x > before.p.x + 0.02);
    proxy_world_fini(&other);
    proxy_world_fini(&w);
}

// Where the edit touches nothing near the robot it drives as if there had been none.
static void an_edit_elsewhere_changes_no_bit_of_the_robot(void **state) {
    (void)state;
    proxy_world w, plain;
    proxy_world_k10_behind(&w, objects, radio);
    proxy_world_k10_behind(&plain, objects, radio);
    run(&w, 0, 200);
    run(&plain, 0, 200);
    apply(&w, "remove table");
    apply(&w, "remove crate");
    run(&w, 200, 500);
    run(&plain, 200, 500);
    size_t n = us_proxy_get_plugin(w.proxy).state_size;
    assert_int_equal(n, us_proxy_get_plugin(plain.proxy).state_size);
    assert_memory_equal(us_sim_view_plugin(w.sim, 0), us_sim_view_plugin(plain.sim, 0), n);
    us_pose a = us_sim_get_pose(w.sim, us_model_find_body(w.model, "k10/base"));
    us_pose b = us_sim_get_pose(plain.sim, us_model_find_body(plain.model, "k10/base"));
    assert_true(a.p.x > 0.01);
    assert_memory_equal(&a, &b, sizeof a);
    proxy_world_fini(&plain);
    proxy_world_fini(&w);
}

typedef struct ear {
    const us_proxy *proxy;
    int n_fixed, n_joints;
} ear;

static void hear(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    (void)time;
    (void)bytes;
    (void)length;
    ear *e = context;
    const char *topic = usi_proxy_get_channel(e->proxy, channel).topic;
    e->n_fixed += strcmp(topic, "/tf_static") == 0;
    e->n_joints += strcmp(topic, "/arm/joint_states") == 0;
}

// The tap stays, and frames that never move are told again only where an edit has moved them.
static void fixed_frames_are_told_again_when_they_are_others(void **state) {
    (void)state;
    proxy_world w;
    us_error err = {0};
    proxy_world_init(&w, "<scene name='arm' version='1'><world step='1 ms'/>"
                         "<object name='table' xyz='6 0 1'><link name='disc' density='500'><shape "
                         "type='sphere' size='0.3'/></link></object>"
                         "<robot name='arm' file='../models/arm6-gripper.urdf' base='fixed'/></scene>");
    ear e = {.proxy = w.proxy};
    usi_proxy_set_tap(w.proxy, hear, &e);
    proxy_world_step(&w, 100);
    assert_int_equal(e.n_fixed, 1);
    apply(&w, "remove table");
    proxy_world_step(&w, 100);
    assert_int_equal(e.n_fixed, 1);
    us_spec *spec = copy_of(&w);
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_joint; i++) {
        us_joint_def j = *us_spec_view_joint(spec, i);
        if (j.type != US_JOINT_FIXED || j.parent == US_WORLD) continue;
        j.X_PF.p.z += 0.01;
        assert_int_equal(us_spec_set_joint(spec, i, &j), US_OK);
    }
    assert_int_equal(try_edit(&w, spec, &err), US_OK);
    proxy_world_step(&w, 100);
    assert_int_equal(e.n_fixed, 2);
    // 50 Hz all the time.
    assert_int_equal(e.n_joints, 15);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- refusals

typedef void change(us_spec *spec);

static const us_network_def *network_of(const us_spec *spec) {
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_group; i++) {
        if (us_spec_view_network(spec, i)) return us_spec_view_network(spec, i);
    }
    return NULL;
}

static void lose_a_wheel(us_spec *spec) {
    us_spec_remove_link(spec, us_spec_find_link(spec, "k10/front_left_wheel"));
}
static void lose_the_robot(us_spec *spec) { remove_group(spec, "k10"); }
static void be_silent(us_spec *spec) {
    us_network_def n = *network_of(spec);
    n.is_off = true;
    assert_int_equal(us_spec_set_network(spec, &n), US_OK);
}
static void be_patient(us_spec *spec) {
    us_network_def n = *network_of(spec);
    n.timeout = 3;
    assert_int_equal(us_spec_set_network(spec, &n), US_OK);
}
static void speak_less(us_spec *spec) {
    us_network_def n = *network_of(spec);
    const us_publication_def odom = {"odom", NULL, 0};
    n.topics = &odom;
    n.n_topic = 1;
    assert_int_equal(us_spec_set_network(spec, &n), US_OK);
}
static void have_a_clear_radio(us_spec *spec) {
    us_network_def n = *network_of(spec);
    n.uplink = (us_link_model){0};
    assert_int_equal(us_spec_set_network(spec, &n), US_OK);
}
static void swap_motors(us_spec *spec) {
    us_network_def n = *network_of(spec);
    us_motor_def motors[2] = {n.motors[1], n.motors[0]};
    n.motors = motors;
    assert_int_equal(us_spec_set_network(spec, &n), US_OK);
}
static void drive_by_position(us_spec *spec) {
    int32_t i = us_spec_find_drive(spec, "k10/front_left_drive");
    us_drive_def d = *us_spec_view_drive(spec, i);
    d.kp = 10;
    assert_int_equal(us_spec_set_drive(spec, i, &d), US_OK);
}
static void be_slow(us_spec *spec) {
    us_world_settings world = *us_spec_view_world(spec);
    world.step = 0.002;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
}
static void have_no_clock(us_spec *spec) { assert_int_equal(us_spec_set_clock_rate(spec, 0), US_OK); }
static void make_a_robot_of_the_crate(us_spec *spec) {
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_group; i++) {
        if (strcmp(us_spec_view_group(spec, i)->name, "crate") != 0) continue;
        us_network_def n = us_network_def_default();
        n.group = i;
        assert_int_equal(us_spec_set_network(spec, &n), US_OK);
    }
}

static void other_robots_are_refused_and_nothing_changes(void **state) {
    (void)state;
    static const struct {
        change *how;
        us_status status;
        const char *says;  // in the element or message
    } cases[] = {
        {lose_a_wheel, US_ERR_TREE, "k10"},
        {lose_the_robot, US_ERR_NAME, "k10"},
        {be_silent, US_ERR_NAME, "k10"},
        {make_a_robot_of_the_crate, US_ERR_NAME, "k10"},
        {be_patient, US_ERR_VALUE, "network"},
        {speak_less, US_ERR_VALUE, "network"},
        {have_a_clear_radio, US_ERR_VALUE, "network"},
        {swap_motors, US_ERR_VALUE, "network"},
        {drive_by_position, US_ERR_TREE, "k10"},
        {be_slow, US_ERR_VALUE, "step"},
        {have_no_clock, US_ERR_VALUE, "clock"},
    };
    proxy_world w, plain;
    proxy_world_k10_behind(&w, objects, radio);
    proxy_world_k10_behind(&plain, objects, radio);
    run(&w, 0, 205);
    run(&plain, 0, 205);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        us_error err = {0};
        us_spec *spec = copy_of(&w);
        cases[i].how(spec);
        us_status status = try_edit(&w, spec, &err);
        if (status != cases[i].status ||
            (!strstr(err.message, cases[i].says) && !strstr(err.element, cases[i].says)) || !err.remedy[0])
            fail_msg("case %d: status %d, \"%s\" at \"%s\", remedy \"%s\"", (int)i, (int)status, err.message,
                     err.element, err.remedy);
        assert_ptr_equal(us_sim_view_model(w.sim), w.model);
        run(&w, 205 + (int)i, 206 + (int)i);
        run(&plain, 205 + (int)i, 206 + (int)i);
        assert_true(us_sim_hash(w.sim) == us_sim_hash(plain.sim));
    }
    // A sim with another model than the proxy's, and arguments that are missing.
    assert_int_equal(us_proxy_replace(w.proxy, plain.sim, w.model, NULL), US_ERR_ARG);
    assert_int_equal(us_proxy_replace(NULL, w.sim, w.model, NULL), US_ERR_ARG);
    assert_int_equal(us_proxy_replace(w.proxy, w.sim, NULL, NULL), US_ERR_ARG);
    // The same model may be given again.
    uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_proxy_replace(w.proxy, w.sim, w.model, NULL), US_OK);
    assert_true(us_sim_hash(w.sim) == hash);
    proxy_world_fini(&plain);
    proxy_world_fini(&w);
}

static void without_memory_nothing_changes(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    proxy_world w;
    us_error err = {0};
    proxy_world_k10_behind(&w, objects, radio);
    us_sim_destroy(w.sim);
    us_proxy_destroy(w.proxy);
    us_proxy_def proxy_def = us_proxy_def_default();
    proxy_def.allocator = t.allocator;
    assert_int_equal(us_proxy_create(w.model, &proxy_def, &w.proxy, &err), US_OK);
    us_plugin part = us_proxy_get_plugin(w.proxy);
    us_sim_def def = us_sim_def_default();
    def.allocator = t.allocator;
    def.n_plugin = 1;
    def.plugins = &part;
    assert_int_equal(us_sim_create(w.model, &def, &w.sim, &err), US_OK);
    run(&w, 0, 120);
    uint64_t hash = us_sim_hash(w.sim);
    int64_t live = t.n_live;
    int n_failed = 0;
    us_spec *spec = copy_of(&w);
    us_model *model = NULL;
    remove_group(spec, "table");
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    for (int64_t k = 1;; k++) {
        t.fail_at = t.n_alloc + k;
        us_status status = us_proxy_replace(w.proxy, w.sim, model, &err);
        if (!status) break;
        n_failed++;
        assert_int_equal(status, US_ERR_MEMORY);
        assert_int_equal(err.code, US_ERR_MEMORY);
        assert_int_equal(t.n_live, live);
        assert_true(us_sim_hash(w.sim) == hash);
    }
    t.fail_at = 0;
    assert_true(n_failed > 10);
    us_model_destroy(w.model);
    us_spec_destroy(w.spec);
    w.model = model;
    w.spec = spec;
    // Edits there and back leave nothing behind.
    live = t.n_live;
    for (int i = 0; i < 5; i++) {
        run(&w, 120 + i, 121 + i);
        us_spec *again = copy_of(&w);
        assert_int_equal(try_edit(&w, again, &err), US_OK);
        assert_int_equal(t.n_live, live);
    }
    proxy_world_fini(&w);
    test_allocator_check(&t);
}

static void a_sim_that_was_replaced_alone_is_refused_by_the_proxy(void **state) {
    (void)state;
    proxy_world w;
    us_error err = {0};
    proxy_world_k10_behind(&w, objects, "");
    run(&w, 0, 20);
    us_spec *spec = copy_of(&w);
    us_model *model = NULL;
    remove_group(spec, "table");
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    assert_int_equal(us_sim_replace(w.sim, model, &err), US_OK);
    uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_ARG);
    assert_true(strstr(us_sim_view_error(w.sim)->remedy, "us_proxy_replace") != NULL);
    us_proxy_publish(w.proxy, w.sim);
    assert_int_equal(us_sim_reset(w.sim), US_OK);
    assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_ARG);
    assert_true(us_sim_hash(w.sim) != hash);
    assert_int_equal(us_sim_get_tick(w.sim), 0);
    us_sim_destroy(w.sim);
    w.sim = NULL;
    us_model_destroy(model);
    us_spec_destroy(spec);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- threads

typedef struct poster {
    us_proxy *proxy;
    _Atomic bool is_done;
    _Atomic int64_t n_posted;
} poster;

// What the threads of the bus and of the page do all the time.
static void *post_all_the_time(void *context) {
    poster *x = context;
    uint8_t bytes[128];
    size_t length = 0;
    us_msg_twist m = {{0.2, 0, 0}, {0, 0, 0.1}};
    if (us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length)) return NULL;
    while (!atomic_load(&x->is_done)) {
        const us_message_type *type = NULL;
        const char *topic = us_proxy_command_topic(x->proxy, us_proxy_find_robot(x->proxy, "k10"), 0, &type);
        if (!topic || strcmp(us_proxy_robot_name(x->proxy, 0), "k10") != 0) return NULL;
        if (us_proxy_post(x->proxy, topic, type, "thread", bytes, length) == US_OK)
            atomic_fetch_add(&x->n_posted, 1);
        for (int32_t i = 0; i < usi_proxy_n_channel(x->proxy); i++) {
            if (usi_proxy_get_channel(x->proxy, i).topic[0] != '/') return NULL;
        }
    }
    return x;
}

static void commands_come_from_other_threads_while_the_world_is_edited(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10_behind(&w, objects, "");
    poster x = {.proxy = w.proxy};
    pthread_t thread;
    void *good = NULL;
    assert_int_equal(pthread_create(&thread, NULL, post_all_the_time, &x), 0);
    while (atomic_load(&x.n_posted) == 0)
        sched_yield();
    apply(&w, "remove table");
    for (int i = 0; i < 30; i++) {
        // Each makes all of spec and model anew, and destroys the old.
        us_error err = {0};
        assert_int_equal(try_edit(&w, copy_of(&w), &err), US_OK);
        proxy_world_step(&w, 3);
    }
    atomic_store(&x.is_done, true);
    pthread_join(thread, &good);
    proxy_world_step(&w, 1);
    assert_ptr_equal(good, &x);
    assert_true(us_proxy_get_counts(w.proxy, w.sim).n_command > 0);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- recordings

// Commands to robots and to the world, some at the same tick, and a material changed at the start of the
// recording.
static const struct {
    int tick;
    const char *text;
} world_commands[] = {{60, "remove table"}, {100, "add post"}, {100, "remove crate"}, {250, "add post 2"}};

static void record_run(const char *path) {
    proxy_world w;
    us_error err = {0};
    us_recorder *recorder = NULL;
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    proxy_world_k10_behind(&w, objects, radio);
    run(&w, 0, 40);
    assert_int_equal(us_recorder_open(&def, &recorder, &err), US_OK);
    size_t length = 0;
    void *snapshot = save(w.sim, &length);
    assert_int_equal(us_recorder_attach(recorder, "state", "application/octet-stream", snapshot, length),
                     US_OK);
    free(snapshot);
    // Without a recorder there is nothing to note.
    usi_world_recording_note(&w.recording, w.sim, "test", "not recorded");
    proxy_world_record(&w, recorder);
    for (int i = 40; i < 400; i++) {
        for (size_t k = 0; k < sizeof world_commands / sizeof world_commands[0]; k++) {
            if (world_commands[k].tick != i) continue;
            usi_world_recording_note(&w.recording, w.sim, "test", world_commands[k].text);
            apply(&w, world_commands[k].text);
        }
        run(&w, i, i + 1);
    }
    proxy_world_record(&w, NULL);
    assert_int_equal(us_recorder_close(recorder, &err), US_OK);
    proxy_world_fini(&w);
}

typedef struct again {
    proxy_world w;
    int n;
    bool forgets;  // one of them
} again;

static us_status apply_again(void *context, us_proxy *proxy, us_sim *sim, const char *source,
                             const char *text, us_error *err) {
    again *x = context;
    assert_ptr_equal(proxy, x->w.proxy);
    assert_string_equal(source, "test");
    assert_string_equal(text, world_commands[x->n].text);
    assert_int_equal(us_sim_get_tick(sim), world_commands[x->n].tick);
    x->n++;
    if (x->forgets && x->n == 2) return US_OK;
    if (x->forgets && x->n == 4) return us_error_set(err, US_ERR_VALUE, NULL, "", "not this one");
    apply(&x->w, text);
    return US_OK;
}

static us_status verify(const char *path, again *x, us_verify_result *out_result, us_error *err) {
    us_recording *recording = NULL;
    const usi_verify_def def = {.world = apply_again, .world_context = x};
    x->n = 0;
    proxy_world_k10_behind(&x->w, objects, radio);
    assert_int_equal(us_recording_open(path, NULL, &recording, err), US_OK);
    us_status status = usi_proxy_verify(x->w.proxy, x->w.sim, recording, &def, out_result, err);
    us_recording_close(recording);
    proxy_world_fini(&x->w);
    return status;
}

static void a_recording_with_edits_runs_again_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_verify_result result = {0};
    again x = {.forgets = false};
    record_run("edits.mcap");
    us_status status = verify("edits.mcap", &x, &result, &err);
    if (status) fail_msg("%s", err.message);
    assert_int_equal(x.n, 4);
    assert_int_equal(result.first_tick, 40);
    assert_int_equal(result.n_tick, 360);
    assert_int_equal(result.bad_tick, -1);
    assert_true(result.n_command > 4 + 3);

    // The hash sees an edit that is left out, at the first tick after it.
    x.forgets = true;
    assert_int_equal(verify("edits.mcap", &x, &result, &err), US_ERR_DIVERGED);
    assert_int_equal(result.bad_tick, 101);

    // Who does not know the world's commands says so.
    proxy_world w;
    us_recording *recording = NULL;
    proxy_world_k10_behind(&w, objects, radio);
    assert_int_equal(us_recording_open("edits.mcap", NULL, &recording, &err), US_OK);
    assert_int_equal(us_proxy_verify(w.model, recording, NULL, NULL, &result, &err), US_ERR_NAME);
    assert_non_null(strstr(err.remedy, "us_world_verify"));
    us_recording_close(recording);
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_robot_goes_on_in_another_model_as_in_a_world_that_was_made_of_it),
        cmocka_unit_test(an_edit_elsewhere_changes_no_bit_of_the_robot),
        cmocka_unit_test(fixed_frames_are_told_again_when_they_are_others),
        cmocka_unit_test(other_robots_are_refused_and_nothing_changes),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(a_sim_that_was_replaced_alone_is_refused_by_the_proxy),
        cmocka_unit_test(commands_come_from_other_threads_while_the_world_is_edited),
        cmocka_unit_test(a_recording_with_edits_runs_again_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
