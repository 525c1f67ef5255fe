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
#include "sim/sim__lidar.h"
#include "soil/deformable.h"
#include "understudy/sensing.h"

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

// ---------------------------------------------------------------- of sensors and of ground

// What these lies are told of: the sensor "laser", the first lidar and the first bed of a world.
typedef struct part {
    us_sim *sim;
    usi_sensor_state *k;
    int32_t lidar;  // among the sensors
    usi_lidar_state *l;
    us_pose *pose[2];  // of the lidar's two frames
    usi_deformable *bed;
} part;

static void a_sensor_that_has_counted_to_the_end(part *t) { t->k->n_sample = INT64_MAX; }
static void losses_to_the_end(part *t) { t->k->n_lost = INT64_MAX; }
static void a_latency_of_an_age(part *t) { t->k->latency = 1e12; }
static void a_delay_of_an_age(part *t) { t->k->delay = 1e12; }
static void a_rate_beyond_all(part *t) { t->k->rate = 1e12; }
static void more_samples_on_their_way_than_there_is_room(part *t) {
    t->k->n_pending = t->sim->model->sensor[t->k - t->sim->now.sensor].max_pending + 1;
}
static void a_lidar_that_is_to_be_sampled(part *t) { t->sim->now.sensor[t->lidar].wake = 0; }
static void a_turn_at_the_end_of_numbers(part *t) { t->l->whole = INT64_MAX; }
static void a_turn_that_is_collected_there(part *t) { t->l->collected = INT64_MAX / 2; }
static void a_turn_that_is_shown_there(part *t) { t->l->shown = INT64_MAX; }
static void a_third_frame(part *t) { t->l->which = 2; }
static void poses_that_are_not_there(part *t) { t->l->n_pose[0] = 1 << 30; }
static void a_frame_that_begins_nowhere(part *t) { t->l->n_pose[1 - t->l->which] = 0; }
static void a_pose_that_is_no_number(part *t) { t->pose[1 - t->l->which][0].p.y = NAN; }
static void a_pose_without_end(part *t) { t->pose[t->l->which][0].q.w = INFINITY; }
static void a_frame_after_all_ticks(part *t) { t->l->first_tick[0] = INT64_MAX; }
static void a_column_higher_than_a_mountain(part *t) { t->bed->tile[1].change[5] = INT32_MAX; }
static void a_column_below_the_rock(part *t) { t->bed->tile[1].change[4000] = INT32_MIN; }
static void fewer_columns_lost_than_none(part *t) { t->bed->n_lost = INT64_MIN; }
static void more_columns_lost_than_there_are(part *t) { t->bed->n_lost = INT64_MAX; }
static void more_columns_in_the_queue_than_it_holds(part *t) { t->bed->n = t->bed->cap + 1; }

typedef struct part_lie {
    const char *name;
    void (*tell)(part *t);
} part_lie;

static const part_lie sensor_lies[] = {
    LIE(a_sensor_that_has_counted_to_the_end),
    LIE(losses_to_the_end),
    LIE(a_latency_of_an_age),
    LIE(a_delay_of_an_age),
    LIE(a_rate_beyond_all),
    LIE(more_samples_on_their_way_than_there_is_room),
    LIE(a_lidar_that_is_to_be_sampled),
    LIE(a_turn_at_the_end_of_numbers),
    LIE(a_turn_that_is_collected_there),
    LIE(a_turn_that_is_shown_there),
    LIE(a_third_frame),
    LIE(poses_that_are_not_there),
    LIE(a_frame_that_begins_nowhere),
    LIE(a_pose_that_is_no_number),
    LIE(a_pose_without_end),
    LIE(a_frame_after_all_ticks),
};
static const part_lie ground_lies[] = {
    LIE(a_column_higher_than_a_mountain),
    LIE(a_column_below_the_rock),
    LIE(fewer_columns_lost_than_none),
    LIE(more_columns_lost_than_there_are),
    LIE(more_columns_in_the_queue_than_it_holds),
};

static part part_of(us_sim *sim) {
    const us_sensor laser = us_model_find_sensor(sim->model, "r", "laser");
    part t = {.sim = sim, .k = laser.i < 0 ? NULL : &sim->now.sensor[laser.i], .bed = sim->patch};
    if (!sim->lidars) return t;
    t.lidar = sim->model->lidar[0].sensor;
    t.l = usi_lidar_state_of(sim, 0);
    for (int k = 0; k < 2; k++)
        t.pose[k] = usi_lidar_poses_of(sim, &sim->model->lidar[0], k);
    return t;
}

static void refuse_each(us_sim *sim, const part_lie *lie, size_t n) {
    size_t length = 0, lying_length = 0;
    uint8_t *good = save(sim, &length);
    for (size_t i = 0; i < n; i++) {
        const uint64_t hash = us_sim_hash(sim);
        part t = part_of(sim);
        lie[i].tell(&t);
        uint8_t *lying = save(sim, &lying_length);
        assert_int_equal(us_sim_restore(sim, good, length), US_OK);
        const us_status status = us_sim_restore(sim, lying, lying_length);
        if (status != US_ERR_SNAPSHOT) fail_msg("%s: status %d", lie[i].name, (int)status);
        if (us_sim_hash(sim) != hash) fail_msg("%s: has changed something", lie[i].name);
        free(lying);
    }
    free(good);
}

static void lies_of_sensors_and_lidars_are_refused(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(&w,
                     "<scene name='s' version='1'><world step='1 ms'><shape name='rock' type='sphere' "
                     "size='1' xyz='3 0 1'/></world><robot name='r' file='../tests/support/carrier.urdf'>"
                     "<sensor type='range' name='laser' preset='laser' link='base' rate='50 Hz' "
                     "latency='0.1 s'/><sensor type='lidar' name='lidar' link='base' elevations='0 3 deg' "
                     "columns='36' rate='20 Hz' max-range='20'/><network/></robot></scene>");
    // Into the middle of a turn, with samples on their way.
    proxy_world_step(&w, 225);
    const part t = part_of(w.sim);
    assert_true(t.k->n_pending > 0 && t.l->whole >= 0 && t.l->collected >= 0);
    refuse_each(w.sim, sensor_lies, sizeof sensor_lies / sizeof sensor_lies[0]);
    proxy_world_step(&w, 50);
    proxy_world_fini(&w);
}

static void lies_of_ground_are_refused(void **state) {
    (void)state;
    us_spec *spec = NULL;
    proxy_world w;
    assert_int_equal(us_spec_load(US_SOURCE_DIR "/scenes/default.xml", NULL, &spec, NULL), US_OK);
    proxy_world_of(&w, spec);
    proxy_world_step(&w, 300);
    assert_true(w.sim->patch && w.sim->patch->n_tile > 0);
    refuse_each(w.sim, ground_lies, sizeof ground_lies / sizeof ground_lies[0]);
    proxy_world_step(&w, 50);
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
    static const char *const names[] = {
        "instruments", "lidar",   "default",      "slope",    "hexapod-breakage", "rapid", "low-level",
        "faults",      "gripper", "hexapod-sand", "four-bar", "every-joint",      "convoy"};
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
        cmocka_unit_test(lies_of_sensors_and_lidars_are_refused),
        cmocka_unit_test(lies_of_ground_are_refused),
        cmocka_unit_test(changes_at_random_do_no_harm),
        cmocka_unit_test(nor_do_they_in_the_scenes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
