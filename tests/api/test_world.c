// A world on stage: commands and what comes of them, the queue, and memory.
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "live_world.h"
#include "wire/messages.h"
#include "world/world__inner.h"

// ---------------------------------------------------------------- time

static void pause_step_resume_and_rate_are_wishes_that_are_told(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    us_pace_request first = us_world_get_pace_request(host);
    assert_true(first.rate == 1 && !first.is_paused && first.n_step == 0);
    live_refused(host, "step", US_ERR_ARG, "pause first");
    live_done(host, "pause");
    us_pace_request paused = us_world_get_pace_request(host);
    assert_true(paused.is_paused && paused.change != first.change);
    live_done(host, "step 3");
    assert_int_equal(us_world_get_pace_request(host).n_step, 3);
    live_step(host, 1);
    assert_int_equal(us_world_get_pace_request(host).n_step, 2);
    live_done(host, "step 2");
    assert_int_equal(us_world_get_pace_request(host).n_step, 4);
    live_done(host, "resume");
    assert_true(!us_world_get_pace_request(host).is_paused && us_world_get_pace_request(host).n_step == 0);
    live_done(host, "rate max");
    assert_true(us_world_get_pace_request(host).rate == 0);
    live_done(host, "rate 2.5");
    assert_true(us_world_get_pace_request(host).rate == 2.5);
    us_world_destroy(host);
}

// ---------------------------------------------------------------- objects

static void commands_add_as_many_objects_as_they_may(void **state) {
    (void)state;
    us_spec *spec = live_load(live_plain_scene);
    us_world_def def = us_world_def_default();
    us_world *host = NULL;
    us_error err = {0};
    def.max_object = 3;
    live_ok(us_world_create(spec, &def, &host, &err), &err);
    us_spec_destroy(spec);
    live_done(host, "add box a size=0.1,0.1,0.1 at=5,0,2");
    live_done(host, "add box b size=0.1,0.1,0.1 at=6,0,2");
    live_done(host, "add box c size=0.1,0.1,0.1 at=7,0,2");
    live_refused(host, "add box d size=0.1,0.1,0.1 at=8,0,2", US_ERR_LIMIT, "--max-objects");
    // What is removed makes room, be it the scene's own; a reset does too.
    live_done(host, "remove stone");
    live_done(host, "add box d size=0.1,0.1,0.1 at=8,0,2");
    live_refused(host, "add box e size=0.1,0.1,0.1 at=9,0,2", US_ERR_LIMIT, "--max-objects");
    live_done(host, "reset");
    live_done(host, "add box e size=0.1,0.1,0.1 at=9,0,2");
    us_world_destroy(host);
    def.max_object = -1;
    spec = live_load(live_plain_scene);
    assert_int_equal(us_world_create(spec, &def, &host, &err), US_ERR_VALUE);
    us_spec_destroy(spec);
}

static void objects_are_added_and_fall(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    live_step(host, 20);
    uint64_t change = us_world_get_pace_request(host).change;
    live_reply r =
        live_say(host, "add box crate size=0.5,0.4,0.3 at=5,0,2 density=100 surface=rock velocity=1,0,0");
    assert_int_equal(r.status, US_OK);
    assert_string_equal(r.text, "crate: 6 kg");
    assert_int_equal(us_world_get_revision(host), 2);
    assert_true(us_world_get_pace_request(host).change != change);
    assert_int_equal(us_sim_get_tick(us_world_get_sim(host)), 20);
    assert_true(live_pose(host, "crate/body").p.z == 2);
    live_step(host, 100);
    // After t = 0.1 s of free fall: 0.5 g t^2 lower, v t further; the midpoint rule is exact for both but for
    // rounding.
    live_near(live_pose(host, "crate/body").p.z, 2 - 0.5 * 9.81 * 0.01, 1e-12);
    live_near(live_pose(host, "crate/body").p.x, 5.1, 1e-12);
    live_done(host, "add cylinder pillar size=0.1,1 at=0,3,0.5 mass=20 fixed=true");
    live_done(host, "add sphere ball size=0.1 at=0,3,1.2 mass=1 rpy=0,0,1");
    live_done(host, "add capsule pill size=0.1,0 at=7,3,0.2");
    live_done(host, "add cone hat size=0.2,0.3 at=7,4,0.2 rgba=1,0,0,1");
    live_done(host, "add ellipsoid egg size=0.1,0.2,0.3 at=7,5,0.4");
    assert_int_equal(us_world_get_revision(host), 7);
    live_step(host, 200);
    // The ball has come to lie on the pillar, which stands.
    assert_true(live_pose(host, "pillar/body").p.z == 0.5);
    assert_true(live_pose(host, "ball/body").p.z > 1.05);
    live_refused(host, "add box crate size=1,1,1", US_ERR_NAME, "already");
    live_refused(host, "add box slab size=1,1,1", US_ERR_NAME, "already");
    live_refused(host, "add box world size=1,1,1", US_ERR_NAME, "already");
    live_refused(host, "add box c size=1,1,1 surface=rok", US_ERR_NAME, "did you mean \"rock\"?");
    live_refused(host, "add box c size=1,1,1 surface=velvet", US_ERR_NAME,
                 "known: default, soil, rock, rubber");
    live_refused(host, "add box c size=1,1,nan", US_ERR_VALUE, "size");
    us_world_destroy(host);
}

static void loose_objects_move_within_the_epoch_and_standing_ones_begin_another(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    live_step(host, 10);
    us_quat before = live_pose(host, "stone/core").q;
    live_done(host, "move stone 1 2 3");
    assert_int_equal(us_world_get_revision(host), 1);
    assert_true(live_pose(host, "stone/core").p.x == 1 && live_pose(host, "stone/core").p.z == 3);
    us_quat after = live_pose(host, "stone/core").q;
    live_near(after.w * before.w + after.x * before.x + after.y * before.y + after.z * before.z, 1,
              1e-15);  // not turned: rounding of two quaternions
    live_done(host, "move stone/core 1 2 3 0 0 1");
    live_near(live_pose(host, "stone/core").q.z, sin(0.5), 1e-15);
    live_done(host, "raise stone 0.5");
    live_near(live_pose(host, "stone/core").p.z, 3.5, 1e-15);  // one addition of its own rounding
    live_done(host, "lower stone 1");
    live_near(live_pose(host, "stone/core").p.z, 2.5, 1e-15);
    live_done(host, "velocity stone 1 0 -2");
    live_done(host, "velocity stone 1 0 2 0 0 3");
    const us_body stone = us_model_find_body(us_world_view_model(host), "stone/core");
    const us_twist V = us_sim_get_twist(us_world_get_sim(host), stone);
    live_near(V.v.z, 2, 1e-14);  // turned into its own axes and back
    live_near(V.w.z, 3, 1e-14);
    assert_int_equal(us_world_get_revision(host), 1);
    live_refused(host, "velocity post 1 0 0", US_ERR_TREE, "stands on the world");
    live_refused(host, "velocity slab 1 0 0", US_ERR_TREE, "stands on the world");
    live_refused(host, "velocity ston 1 0 0", US_ERR_NAME, "did you mean \"stone\"?");

    live_done(host, "move post -4 1 0.5");
    assert_int_equal(us_world_get_revision(host), 2);
    assert_true(live_pose(host, "post/pole").p.x == -4);
    live_done(host, "raise post/pole 0.25");
    assert_true(live_pose(host, "post/pole").p.z == 0.75);
    live_done(host, "move slab 2 -4 0.05 0 0 0.5");
    live_done(host, "lower slab 0.02");
    const us_spec *spec = us_world_view_spec(host);
    live_near(us_spec_view_shape(spec, 1)->X_BG.p.x, 2, 0);
    live_near(us_spec_view_shape(spec, 1)->X_BG.p.z, 0.03, 1e-15);
    assert_int_equal(us_world_get_revision(host), 5);

    live_refused(host, "move ston 1 2 3", US_ERR_NAME, "did you mean \"stone\"?");
    live_refused(host, "move nothing-like-it 1 2 3", US_ERR_NAME, "name an object");
    live_refused(host, "move twin 1 2 3", US_ERR_NAME, "2 shapes");
    live_refused(host, "move post/gate 1 2 3", US_ERR_TREE, "held by \"post/pole\"");
    live_refused(host, "move frame 1 2 3", US_ERR_TREE, "2 joints");
    live_refused(host, "raise nobody 1", US_ERR_NAME, "no object");
    us_world_destroy(host);
}

static void objects_links_and_shapes_of_the_world_are_removed(void **state) {
    (void)state;
    us_world *host = live_open(live_robot_scene);
    live_step(host, 5);
    live_done(host, "remove stone");
    assert_false(live_has_link(host, "stone/core"));
    live_done(host, "remove post/gate");
    assert_true(live_has_link(host, "post/pole") && !live_has_link(host, "post/gate"));
    live_done(host, "remove slab");
    assert_int_equal(us_spec_get_counts(us_world_view_spec(host)).n_shape > 0, 1);
    live_done(host, "add box stone size=0.1,0.1,0.1 at=3,0,1");
    live_done(host, "remove stone/body");
    live_refused(host, "move stone 0 0 1", US_ERR_NAME, "no object");
    live_refused(host, "remove slab", US_ERR_NAME, "no object");
    live_refused(host, "remove k10", US_ERR_ARG, "robots stay");
    live_refused(host, "remove k10/front_left_wheel", US_ERR_ARG, "robots stay");
    live_step(host, 5);
    us_world_destroy(host);
}

static void a_robot_is_put_elsewhere_and_drives_on_through_edits(void **state) {
    (void)state;
    us_world *host = live_open(live_robot_scene);
    live_step(host, 50);
    live_done(host, "move k10 0 0 0.05 0 0 1.57");
    assert_int_equal(us_world_get_revision(host), 1);
    us_msg_twist twist = {{0.4, 0, 0}, {0, 0, 0}};
    uint8_t bytes[128];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &twist, bytes, sizeof bytes, &length), US_OK);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(
            us_proxy_post(us_world_get_proxy(host), "/k10/cmd_vel", usi_type_twist, "test", bytes, length),
            US_OK);
        live_step(host, 100);
        if (i == 4) live_done(host, "add box crate size=0.3,0.3,0.3 at=4,4,1");
    }
    // Along y, for it was turned: it accelerates at 1 m/s^2 to 0.4 m/s, and has 0.92 s left at that speed; it
    // may slip and steer a little.
    assert_true(live_pose(host, "k10/base").p.y > 0.2);
    assert_int_equal(us_proxy_get_counts(us_world_get_proxy(host), us_world_get_sim(host)).n_command, 10);
    us_world_destroy(host);
}

// ---------------------------------------------------------------- pairs and joints

static void a_pair_changes_what_it_says_and_keeps_friction_in_order(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    const us_model *model = us_world_view_model(host);
    us_material rock = us_model_find_material(model, "rock"), soil = us_model_find_material(model, "soil");
    us_pair_values v;
    live_done(host, "pair rock soil static-friction=0.9 restitution=0.5");
    assert_int_equal(us_sim_get_pair(us_world_get_sim(host), soil, rock, &v), US_OK);
    assert_true(v.static_friction == 0.9 && v.kinetic_friction == 0.6 && v.restitution == 0.5);
    live_reply r = live_say(host, "pair soil rock static-friction=0.4");
    assert_string_equal(r.text, "kinetic-friction goes down with it");
    assert_int_equal(us_sim_get_pair(us_world_get_sim(host), soil, rock, &v), US_OK);
    assert_true(v.static_friction == 0.4 && v.kinetic_friction == 0.4);
    r = live_say(host, "pair soil rock kinetic-friction=0.5");
    assert_string_equal(r.text, "static-friction goes up with it");
    live_done(host, "pair soil soil friction=0.3");
    assert_int_equal(us_world_get_revision(host), 1);
    live_refused(host, "pair rock soil static-friction=0.3 kinetic-friction=0.4", US_ERR_VALUE,
                 "above the static friction");
    live_refused(host, "pair rok soil static-friction=0.3", US_ERR_NAME, "did you mean \"rock\"?");
    live_refused(host, "pair rock velvet static-friction=0.3", US_ERR_NAME, "known: default");
    live_refused(host, "pair rock soil restitution=2", US_ERR_VALUE, "from 0 to 1");
    live_done(host, "pair rock soil model=spring-damper");
    assert_string_equal(us_sim_get_pair_model(us_world_get_sim(host), soil, rock), "spring-damper");
    live_refused(host, "pair rock soil model=magic", US_ERR_NAME, "no interaction model \"magic\"");
    live_refused(host, "pair rock soil model=soil", US_ERR_VALUE, "cannot act between these materials");
    // It holds on in the next epoch.
    live_done(host, "add box crate size=1,1,1 at=0,0,9");
    model = us_world_view_model(host);
    assert_int_equal(us_sim_get_pair(us_world_get_sim(host), us_model_find_material(model, "rock"),
                                     us_model_find_material(model, "soil"), &v),
                     US_OK);
    assert_true(v.static_friction == 0.5);
    us_world_destroy(host);
}

static void a_joint_is_set_within_its_limits(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    us_sim *sim = us_world_get_sim(host);
    live_done(host, "joint post/hinge 0.5");
    assert_true(us_sim_get_value(sim, us_sim_find_value(sim, "post/hinge.q")) == 0.5);
    live_done(host, "joint post/hinge -0.5 2");
    assert_true(us_sim_get_value(sim, us_sim_find_value(sim, "post/hinge.v")) == 2);
    live_refused(host, "joint post/hinge 1.5", US_ERR_VALUE, "from -1 to 1");
    live_refused(host, "joint post/hing 0", US_ERR_NAME, "did you mean \"post/hinge\"?");
    live_refused(host, "joint elephant 0", US_ERR_NAME, "understudy info");
    live_refused(host, "joint stone/floating_base 0", US_ERR_ARG, "write move");
    live_refused(host, "joint post/hinge inf", US_ERR_VALUE, "position");
    us_world_destroy(host);
}

// ---------------------------------------------------------------- the queue

static void the_queue_has_bounds_and_keeps_its_order(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    live_reply r = {0};
    char text[64], longest[4098];
    for (int i = 0; i < 64; i++) {
        snprintf(text, sizeof text, "rate %d", i + 1);
        assert_int_equal(us_world_post(host, "test", text, live_on_reply, &r, i), US_OK);
    }
    assert_int_equal(us_world_post(host, "test", "pause", live_on_reply, &r, 64), US_ERR_LIMIT);
    us_world_poll(host);
    assert_int_equal(r.n, 64);
    assert_int_equal(r.id, 63);
    assert_true(us_world_get_pace_request(host).rate == 64 && !us_world_get_pace_request(host).is_paused);
    memset(longest, 'a', sizeof longest);
    longest[4097] = 0;
    assert_int_equal(us_world_post(host, "test", longest, live_on_reply, &r, 0), US_ERR_LIMIT);
    assert_int_equal(us_world_post(host, "test", NULL, live_on_reply, &r, 0), US_ERR_ARG);
    longest[4096] = 0;
    assert_int_equal(us_world_post(host, "test", longest, live_on_reply, &r, 1), US_OK);
    us_world_poll(host);
    assert_int_equal(r.status, US_ERR_NAME);
    us_world_destroy(host);
}

static void nobody_is_answered_who_was_forgotten(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    live_reply gone = {0}, stays = {0};
    assert_int_equal(us_world_post(host, "a", "pause", live_on_reply, &gone, 1), US_OK);
    assert_int_equal(us_world_post(host, NULL, "rate 3", live_on_reply, &stays, 2), US_OK);
    us_world_forget(host, &gone);
    us_world_poll(host);
    assert_int_equal(gone.n, 0);
    assert_int_equal(stays.n, 1);
    // What was said is done all the same.
    assert_true(us_world_get_pace_request(host).is_paused);
    us_world_destroy(host);
}

typedef struct poster {
    us_world *host;
    int n_taken;
} poster;

static void *post_many(void *context) {
    poster *p = context;
    for (int i = 0; i < 2000; i++)
        p->n_taken += us_world_post(p->host, "thread", "rate 2", NULL, NULL, i) == US_OK;
    return NULL;
}

static void threads_post_while_the_world_turns(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    poster posters[3];
    pthread_t threads[3];
    uint64_t before = us_world_get_pace_request(host).change;
    for (int i = 0; i < 3; i++) {
        posters[i] = (poster){host, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    for (int i = 0; i < 50; i++)
        live_step(host, 1);
    int n = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        n += posters[i].n_taken;
    }
    us_world_poll(host);
    // Each that was taken has changed the wish once.
    assert_int_equal(us_world_get_pace_request(host).change - before, n);
    us_world_destroy(host);
}

// ---------------------------------------------------------------- others who look

typedef struct looker {
    us_world *host;
    _Atomic bool is_done;
    _Atomic int64_t n_look;
    bool is_good;
} looker;

// As the page's thread does: a world that was taken stays whole, whatever becomes of the stage.
static void *look(void *context) {
    looker *l = context;
    l->is_good = true;
    while (!atomic_load(&l->is_done)) {
        usi_revision *world = usi_world_take_revision(l->host);
        int32_t n = us_spec_get_counts(world->spec).n_link;
        l->is_good = l->is_good && n == us_model_get_counts(world->model).n_body &&
                     n == (int32_t)(world->number % 2 ? 5 : 6);
        usi_revision_unref(world);
        atomic_fetch_add(&l->n_look, 1);
    }
    return NULL;
}

static void a_world_that_was_taken_stays_whole_through_edits(void **state) {
    (void)state;
    us_world *host = live_open(live_plain_scene);
    looker l = {.host = host};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
    // It looks before the edits begin, and goes on while they are made.
    while (atomic_load(&l.n_look) == 0)
        sched_yield();
    for (int i = 0; i < 30; i++) {
        // Five links at odd revisions, six at even ones.
        live_done(host, "add box crate size=1,1,1 at=0,0,3");
        live_step(host, 2);
        live_done(host, "remove crate");
    }
    atomic_store(&l.is_done, true);
    pthread_join(thread, NULL);
    assert_true(l.is_good);
    assert_int_equal(us_world_get_revision(host), 61);
    us_world_destroy(host);
}

typedef struct log_book {
    int32_t n, level;
    char text[1600];
} log_book;

static void write_log(void *context, int32_t level, const char *text) {
    log_book *log = context;
    log->n++;
    log->level = level;
    snprintf(log->text, sizeof log->text, "%s", text);
}

static void the_log_tells_of_refusals_and_of_what_concerns_all(void **state) {
    (void)state;
    us_error err = {0};
    log_book log = {0};
    us_spec *spec = live_load(live_plain_scene);
    us_world *host = NULL;
    us_world_def def = us_world_def_default();
    def.log = write_log;
    def.log_context = &log;
    live_ok(us_world_create(spec, &def, &host, &err), &err);
    us_spec_destroy(spec);
    live_say(host, "puase");
    assert_int_equal(log.level, 1);
    assert_non_null(strstr(log.text, "test: puase: there is no command"));
    live_say(host, "reset");
    assert_int_equal(log.level, 0);
    assert_string_equal(log.text, "test: reset");
    int32_t n = log.n;
    // A slider that is drawn would fill it.
    live_done(host, "pair rock soil friction=0.5");
    assert_int_equal(log.n, n);
    // A name from the network has no line breaks to make.
    assert_int_equal(us_world_post(host, "a\nb", "pause\x1b[2J", NULL, NULL, 0), US_OK);
    us_world_poll(host);
    assert_null(strpbrk(log.text, "\n\x1b"));
    us_world_destroy(host);
}

// ---------------------------------------------------------------- the rest

static void a_bad_scene_or_rate_makes_no_host(void **state) {
    (void)state;
    us_error err = {0};
    us_world *host = NULL;
    us_spec *spec = live_load(live_plain_scene);
    us_world_def def = us_world_def_default();
    def.rate = NAN;
    assert_int_equal(us_world_create(spec, &def, &host, &err), US_ERR_VALUE);
    def.rate = -1;
    assert_int_equal(us_world_create(spec, &def, &host, &err), US_ERR_VALUE);
    assert_int_equal(us_world_create(NULL, NULL, &host, &err), US_ERR_ARG);
    assert_int_equal(us_world_create(spec, NULL, NULL, &err), US_ERR_ARG);
    us_joint_def joint = *us_spec_view_joint(spec, 0);
    joint.name = "again";
    assert_int_equal(us_spec_add_joint(spec, &joint, NULL), US_OK);  // the link is held twice
    assert_int_equal(us_world_create(spec, NULL, &host, &err), US_ERR_TREE);
    assert_null(host);
    us_spec_destroy(spec);
    us_world_destroy(NULL);
}

static void memory_comes_from_the_allocator_and_goes_back(void **state) {
    (void)state;
    test_allocator memory;
    test_allocator_init(&memory);
    us_error err = {0};
    us_world *host = NULL;
    us_spec *spec = live_load(live_plain_scene);
    us_world_def def = us_world_def_default();
    def.allocator = def.proxy.allocator = memory.allocator;
    live_ok(us_world_create(spec, &def, &host, &err), &err);
    live_done(host, "snapshot a");
    live_done(host, "add box crate size=1,1,1 at=0,0,3");
    live_done(host, "snapshot b");
    live_step(host, 5);
    live_done(host, "restore a");
    live_done(host, "forget a");
    live_done(host, "remove stone");
    us_world_destroy(host);
    test_allocator_check(&memory);
    us_spec_destroy(spec);
}

// Whichever allocation fails: the command is refused and the world goes on as it was.
static void an_edit_without_memory_changes_nothing(void **state) {
    (void)state;
    test_allocator memory;
    test_allocator_init(&memory);
    us_error err = {0};
    us_world *host = NULL;
    us_spec *spec = live_load(live_plain_scene);
    us_world_def def = us_world_def_default();
    def.allocator = def.proxy.allocator = memory.allocator;
    live_ok(us_world_create(spec, &def, &host, &err), &err);
    live_step(host, 5);
    int n_refused = 0;
    for (int64_t k = 1; k < 400; k++) {
        uint64_t hash = us_sim_hash(us_world_get_sim(host));
        memory.fail_at = memory.n_alloc + k;
        live_reply r = live_say(host, "add box crate size=1,1,1 at=0,0,3");
        memory.fail_at = 0;
        if (r.status == US_OK) break;
        n_refused++;
        assert_int_equal(r.status, US_ERR_MEMORY);
        assert_true(us_sim_hash(us_world_get_sim(host)) == hash);
        assert_int_equal(us_world_get_revision(host), 1);
    }
    assert_true(n_refused > 5);
    assert_int_equal(us_world_get_revision(host), 2);
    live_step(host, 5);
    us_world_destroy(host);
    test_allocator_check(&memory);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pause_step_resume_and_rate_are_wishes_that_are_told),
        cmocka_unit_test(commands_add_as_many_objects_as_they_may),
        cmocka_unit_test(objects_are_added_and_fall),
        cmocka_unit_test(loose_objects_move_within_the_epoch_and_standing_ones_begin_another),
        cmocka_unit_test(objects_links_and_shapes_of_the_world_are_removed),
        cmocka_unit_test(a_robot_is_put_elsewhere_and_drives_on_through_edits),
        cmocka_unit_test(a_pair_changes_what_it_says_and_keeps_friction_in_order),
        cmocka_unit_test(a_joint_is_set_within_its_limits),
        cmocka_unit_test(the_queue_has_bounds_and_keeps_its_order),
        cmocka_unit_test(nobody_is_answered_who_was_forgotten),
        cmocka_unit_test(threads_post_while_the_world_turns),
        cmocka_unit_test(a_world_that_was_taken_stays_whole_through_edits),
        cmocka_unit_test(the_log_tells_of_refusals_and_of_what_concerns_all),
        cmocka_unit_test(a_bad_scene_or_rate_makes_no_host),
        cmocka_unit_test(memory_comes_from_the_allocator_and_goes_back),
        cmocka_unit_test(an_edit_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
