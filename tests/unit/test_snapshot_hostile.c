// Snapshots whose checksum is right and whose contents lie: refused, or harmless.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/proxy__robot.h"
#include "proxy_world.h"
#include "sim/sim.h"

enum { HEADER = 32 };  // magic, model, length, check

// A rover and a stone on the ground, and commands on their way by a slow radio.
static void start(proxy_world *w) {
    proxy_world_k10_behind(
        w,
        "<object name='stone' xyz='3 0 0.3' base='floating'><link name='core'><inertial mass='5' "
        "inertia='0.1 0.1 0.1'/><shape type='box' size='0.4 0.4 0.4'/></link></object>",
        "<network><uplink delay='0.2 s'/></network>"
        "<fault at='100 s' what='imu=stuck'/>");
    for (int i = 0; i < 30; i++) {
        proxy_world_drive(w, 0.3, 0, 0.1);
        proxy_world_step(w, 10);
    }
}

static uint8_t *save(const us_sim *sim, size_t *length) {
    assert_int_equal(us_sim_save(sim, NULL, 0, length), US_OK);
    uint8_t *bytes = malloc(*length);
    assert_non_null(bytes);
    assert_int_equal(us_sim_save(sim, bytes, *length, length), US_OK);
    return bytes;
}

static void sign(uint8_t *bytes, size_t length) {
    uint64_t check = us_hash_bytes(0, bytes + HEADER, length - HEADER);
    memcpy(bytes + 24, &check, sizeof check);
}

// ---------------------------------------------------------------- lies, one by one

typedef struct target {
    us_sim *sim;
    usi_robot *r;
    usi_robot_state *s;
    usi_firmware_state *f;
    usi_contact_state *c;
} target;

static void no_lie(target *t) { (void)t; }
static void a_route_of_billions(target *t) {
    t->f->motion = USI_MOTION_NAVIGATE;
    t->f->n_route = 2000000000;
    t->f->next_route = 1900000000;
}
static void a_route_behind_its_end(target *t) { t->f->next_route = t->f->n_route + 1; }
static void a_long_trajectory(target *t) { t->f->n_trajectory = 2000000000; }
static void an_unknown_motion(target *t) { t->f->motion = 1000000; }
static void an_unknown_mode(target *t) { usi_firmware_drives(&t->r->model->firmware, t->f)[0].mode = 77; }
static void an_unknown_gait(target *t) { t->f->gait.kind = 1000000; }
static void a_text_without_end(target *t) { memset(t->f->refusal, 'A', sizeof t->f->refusal); }
static void a_status_without_end(target *t) {
    memset(t->f->navigator.message, 'B', sizeof t->f->navigator.message);
}
static void a_queue_beyond_its_room(target *t) { t->s->uplink.used = UINT64_C(1) << 40; }
static usi_link_item *first_item(target *t) {
    assert_true(t->s->uplink.used > 0);
    return (usi_link_item *)(void *)((char *)t->s + t->r->uplink_at);
}
static void a_message_beyond_the_queue(target *t) { first_item(t)->length = 0x7fffff00; }
static void a_message_of_no_topic(target *t) { first_item(t)->topic = 123456; }
static void a_mail_longer_than_its_message(target *t) {
    ((usi_mail *)(void *)(first_item(t) + 1))->length = 1u << 30;
}
static void a_mail_of_another_topic(target *t) { ((usi_mail *)(void *)(first_item(t) + 1))->topic = 1000; }
static void a_loss_of_more_than_all(target *t) { t->s->faults.loss = 7; }
static void a_shape_that_is_not_there(target *t) { t->c->touch[0].geom_b = 100000000; }
static void points_that_are_not_there(target *t) { t->c->touch[0].first = 100000000; }
static void more_points_than_there_are(target *t) { t->c->touch[0].n = 1000000; }
static void a_negative_number_of_points(target *t) { t->c->touch[0].n = -5; }
static void a_material_that_is_not_there(target *t) { t->c->touch[0].material = 100000000; }
static void friction_that_is_no_number(target *t) { t->c->pair[0].static_friction = NAN; }
static void a_point_at_infinity(target *t) { t->c->anchor[0].p_A.x = INFINITY; }
static void a_position_that_is_no_number(target *t) { t->sim->now.q[0] = NAN; }
static void a_place_beyond_the_world(target *t) { t->sim->now.q[4] = 1e300; }
static void a_rotation_of_no_length(target *t) {
    for (int i = 0; i < 4; i++)
        t->sim->now.q[t->r->model->base_q + i] = 0;
}
static void a_negative_tick(target *t) { t->sim->now.tick[0] = INT64_MIN; }
static void a_tick_in_ten_thousand_years(target *t) { t->sim->now.tick[0] = INT64_C(315000000000000); }
static void a_drive_of_double_strength(target *t) { t->sim->now.drive_strength[0] = 2; }
static void a_battery_with_more_than_it_holds(target *t) { t->sim->now.battery_energy[0] = 1e9; }
static void a_sensor_that_is_no_number(target *t) { t->sim->now.encoder[0].drift = NAN; }

static const struct {
    const char *name;
    void (*tell)(target *t);
} lies[] = {
#define LIE(f) \
    { #f, f }
    LIE(no_lie),
    LIE(a_route_of_billions),
    LIE(a_route_behind_its_end),
    LIE(a_long_trajectory),
    LIE(an_unknown_motion),
    LIE(an_unknown_mode),
    LIE(an_unknown_gait),
    LIE(a_text_without_end),
    LIE(a_status_without_end),
    LIE(a_queue_beyond_its_room),
    LIE(a_message_beyond_the_queue),
    LIE(a_message_of_no_topic),
    LIE(a_mail_longer_than_its_message),
    LIE(a_mail_of_another_topic),
    LIE(a_loss_of_more_than_all),
    LIE(a_shape_that_is_not_there),
    LIE(points_that_are_not_there),
    LIE(more_points_than_there_are),
    LIE(a_negative_number_of_points),
    LIE(a_material_that_is_not_there),
    LIE(friction_that_is_no_number),
    LIE(a_point_at_infinity),
    LIE(a_position_that_is_no_number),
    LIE(a_place_beyond_the_world),
    LIE(a_rotation_of_no_length),
    LIE(a_negative_tick),
    LIE(a_tick_in_ten_thousand_years),
    LIE(a_drive_of_double_strength),
    LIE(a_battery_with_more_than_it_holds),
    LIE(a_sensor_that_is_no_number),
};

static void every_lie_is_refused_and_the_truth_is_not(void **state) {
    (void)state;
    proxy_world w;
    start(&w);
    size_t length = 0, lying_length = 0;
    uint8_t *good = save(w.sim, &length);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        assert_int_equal(us_sim_restore(w.sim, good, length), US_OK);
        const uint64_t hash = us_sim_hash(w.sim);
        target t = {.sim = w.sim, .r = &w.proxy->robot[0], .c = &w.sim->now.contact};
        t.s = usi_take_state(t.r, w.sim);
        t.f = usi_firmware_of(t.r, t.s);
        assert_true(t.c->n_touch[0] > 0 && t.c->n_anchor[0] > 0);
        lies[i].tell(&t);
        uint8_t *lying = save(w.sim, &lying_length);
        assert_int_equal(us_sim_restore(w.sim, good, length), US_OK);
        us_status status = us_sim_restore(w.sim, lying, lying_length);
        if (status != (i == 0 ? US_OK : US_ERR_SNAPSHOT))
            fail_msg("%s: status %d", lies[i].name, (int)status);
        // What was refused has changed nothing.
        assert_true(us_sim_hash(w.sim) == hash);
        free(lying);
    }
    proxy_world_step(&w, 100);
    free(good);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- at random

static uint64_t random_state;
static uint64_t roll(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

static void change(uint8_t *bytes, size_t length) {
    static const uint64_t odd[] = {0,
                                   1,
                                   UINT64_MAX,
                                   UINT64_C(1) << 31,
                                   UINT64_C(1) << 63,
                                   0x7ff8000000000000,
                                   0x7fefffffffffffff,
                                   0x7fffffff,
                                   1000000000,
                                   0x4059000000000000};
    const size_t width = (size_t)1 << (roll() & 3);
    size_t at = HEADER + roll() % (length - HEADER - 8);
    if (roll() & 1) at = at / 8 * 8;
    const uint64_t value = roll() & 1 ? odd[roll() % (sizeof odd / sizeof odd[0])] : roll() * roll();
    memcpy(bytes + at, &value, width);
}

// Snapshots with changes are refused, or the world goes on for three steps. How many of n were taken.
static int restore_changed(proxy_world *w, int n) {
    size_t length = 0;
    uint8_t *good = save(w->sim, &length), *bad = malloc(length);
    int n_taken = 0;
    for (int i = 0; i < n; i++) {
        random_state = (uint64_t)i + 1;
        memcpy(bad, good, length);
        for (uint64_t k = 1 + roll() % 4; k > 0; k--)
            change(bad, length);
        sign(bad, length);
        if (us_sim_restore(w->sim, bad, length)) continue;
        n_taken++;
        for (int k = 0; k < 3; k++) {
            // A step may fail, with a clear error.
            if (us_sim_step(w->sim, NULL)) break;
            us_proxy_publish(w->proxy, w->sim);
        }
    }
    assert_int_equal(us_sim_restore(w->sim, good, length), US_OK);
    proxy_world_step(w, 10);
    free(good);
    free(bad);
    return n_taken;
}

static void changes_at_random_do_no_harm(void **state) {
    (void)state;
    const int n = getenv("US_LONG_TESTS") ? 200000 : 1500;
    proxy_world w;
    start(&w);
    const int n_taken = restore_changed(&w, n);
    // Most bytes are numbers of which any value is a state: a test that refuses all tests nothing.
    print_message("%d of %d were taken\n", n_taken, n);
    assert_true(n_taken > n / 20 && n_taken < n);
    proxy_world_fini(&w);
}

// What a rover on flat ground does not have: soil, beams, legs, breakage, loops, interfaces, gains, a script.
static void nor_do_they_in_the_scenes(void **state) {
    (void)state;
    static const char *const names[] = {"lidar",        "default",   "slope",       "hexapod-breakage",
                                        "rapid",        "low-level", "faults",      "gripper",
                                        "hexapod-sand", "four-bar",  "every-joint", "convoy"};
    const int n = getenv("US_LONG_TESTS") ? 1000 : 40;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/scenes/%s.xml", US_SOURCE_DIR, names[i]);
        us_spec *spec = NULL;
        assert_int_equal(us_spec_load(path, NULL, &spec, NULL), US_OK);
        proxy_world w;
        proxy_world_of(&w, spec);
        proxy_world_step(&w, 50);
        const int n_taken = restore_changed(&w, n);
        print_message("%s: %d of %d were taken\n", names[i], n_taken, n);
        assert_true(n_taken > 0);
        proxy_world_fini(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_lie_is_refused_and_the_truth_is_not),
        cmocka_unit_test(changes_at_random_do_no_harm),
        cmocka_unit_test(nor_do_they_in_the_scenes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
