// Broken joints as the robot's network sees them, and a run with them that comes out the same bit for bit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "live_world.h"
#include "proxy/tap.h"
#include "wire/messages.h"

static const char *walker_scene;

// A crane on a mount that can break too: a boom on a hinge, a lift with a weight behind it, and a lamp that
// is bolted on.
#define SOLID(name, size, at)                                                     \
    "<link name='" name "'><inertial><origin xyz='" at "'/><mass value='5'/>"     \
    "<inertia ixx='0.3' ixy='0' ixz='0' iyy='0.3' iyz='0' izz='0.3'/></inertial>" \
    "<collision><origin xyz='" at "'/><geometry><box size='" size "'/></geometry></collision></link>"
#define HOLDS(parent, child, at) "<parent link='" parent "'/><child link='" child "'/><origin xyz='" at "'/>"
static const char crane_urdf[] = "<robot name='crane'>" SOLID("tower", "0.2 0.2 0.4", "0 0 0") SOLID(
    "boom", "1 0.1 0.1", "0.5 0 0") SOLID("weight", "0.2 0.2 0.2", "0 0 -0.2")
    SOLID("lamp", "0.1 0.1 0.1", "0.05 0 0") "<joint name='swing' type='continuous'>" HOLDS(
        "tower", "boom",
        "0.15 0 0") "<axis xyz='0 0 1'/></joint>"
                    "<joint name='lift' type='prismatic'>" HOLDS(
                        "boom", "weight",
                        "0.9 0 -0.1") "<axis xyz='0 0 -1'/><limit lower='0' upper='1' effort='500' "
                                      "velocity='1'/></joint>"
                                      "<joint name='bolt' type='fixed'>" HOLDS(
                                          "boom", "lamp",
                                          "1 0 0") "</joint>"
                                                   "<link name='tip'/><joint name='mark' type='fixed'>" HOLDS(
                                                       "boom", "tip", "1.1 0 0") "</joint></robot>";
static char crane_scene[8192];

static int make_scenes(void **state) {
    (void)state;
    walker_scene = live_walker_scene(false);
    char here[4096];
    FILE *file = fopen("breakage_crane.urdf", "wb");
    if (!file || !getcwd(here, sizeof here)) return -1;
    fputs(crane_urdf, file);
    fclose(file);
    snprintf(
        crane_scene, sizeof crane_scene,
        "<scene name='crane' version='1'><world step='1 ms'><shape name='ground' type='half-space'/></world>"
        "<robot name='crane' base='fixed' xyz='0 0 2' file='%s/breakage_crane.urdf'><joint name='lift' "
        "q='0.3'/>"
        "<drive joint='swing' kp='2000' kd='400' position='0.4'/><drive joint='lift' kp='5000' kd='500' "
        "position='0.3'/>"
        "</robot></scene>",
        here);
    return 0;
}

// ---------------------------------------------------------------- what the robot tells

enum { MAX_HEARD = 32 };

typedef struct heard {
    us_world *world;
    int n_joint, n_frame, level;
    char joint[MAX_HEARD][64], frame[MAX_HEARD][64], faults[1100];
    double position[MAX_HEARD], velocity[MAX_HEARD], effort[MAX_HEARD];
    us_pose X[MAX_HEARD];
} heard;

static void hear_frames(heard *h, const us_msg_tf_message *m) {
    for (uint32_t i = 0; i < m->transforms._length; i++) {
        const us_msg_transform_stamped *t = &m->transforms._buffer[i];
        int k = 0;
        while (k < h->n_frame && strcmp(h->frame[k], t->child_frame_id) != 0)
            k++;
        if (k == h->n_frame) h->n_frame++;
        assert_true(h->n_frame <= MAX_HEARD);
        snprintf(h->frame[k], sizeof h->frame[k], "%s", t->child_frame_id);
        const us_msg_quaternion *q = &t->transform.rotation;
        const us_msg_vector3 *p = &t->transform.translation;
        h->X[k] = (us_pose){{q->w, q->x, q->y, q->z}, {p->x, p->y, p->z}};
    }
}

static void hear(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    heard *h = context;
    (void)time;
    static _Alignas(64) char memory[65536];
    usi_channel_info info = usi_proxy_get_channel(us_world_get_proxy(h->world), channel);
    const void *m = NULL;
    us_error err = {0};
    assert_int_equal(us_message_decode(info.type, bytes, length, memory, sizeof memory, &m, &err), US_OK);
    if (strcmp(info.topic, "/diagnostics") == 0) {
        const us_msg_diagnostic_status *s = &((const us_msg_diagnostic_array *)m)->status._buffer[0];
        h->level = s->level;
        for (uint32_t i = 0; i < s->values._length; i++) {
            if (strcmp(s->values._buffer[i].key, "faults") == 0)
                snprintf(h->faults, sizeof h->faults, "%s", s->values._buffer[i].value);
        }
    } else if (info.type == usi_type_joint_state) {
        const us_msg_joint_state *s = m;
        h->n_joint = (int)s->name._length;
        assert_true(h->n_joint <= MAX_HEARD);
        for (int i = 0; i < h->n_joint; i++) {
            snprintf(h->joint[i], sizeof h->joint[i], "%s", s->name._buffer[i]);
            h->position[i] = s->position._buffer[i];
            h->velocity[i] = s->velocity._buffer[i];
            h->effort[i] = s->effort._buffer[i];
        }
    } else if (info.type == usi_type_tf_message) {
        hear_frames(h, m);
    }
}

static us_pose frame_of(const heard *h, const char *name) {
    for (int i = 0; i < h->n_frame; i++) {
        if (strcmp(h->frame[i], name) == 0) return h->X[i];
    }
    fail_msg("there is no frame \"%s\"", name);
    return us_pose_identity();
}

static void assert_same_frame(us_pose a, us_pose b) {
    assert_true(us_vec3_norm(us_vec3_sub(a.p, b.p)) < 1e-12);
    us_quat d = us_quat_mul(us_quat_conj(a.q), b.q);
    assert_true(sqrt(d.x * d.x + d.y * d.y + d.z * d.z) < 1e-12);
}

static void the_firmware_goes_on_with_the_last_readings_behind_a_break(void **state) {
    (void)state;
    us_world *world = live_open(crane_scene);
    heard h = {.world = world};
    usi_proxy_set_tap(us_world_get_proxy(world), hear, &h);
    for (int32_t i = 0; i < usi_proxy_n_channel(us_world_get_proxy(world)); i++)
        usi_proxy_want_channel(us_world_get_proxy(world), i, true);
    live_step(world, 1200);
    heard before = h;
    assert_int_equal(before.n_joint, 2);
    assert_string_equal(h.faults, "none");
    assert_true(fabs(before.position[0] - 0.4) < 0.1 && fabs(before.position[1] - 0.3) < 0.05 &&
                fabs(before.effort[1]) > 1);
    live_reply r = live_say(world, "fault crane joint:swing=broken");
    assert_int_equal(r.status, US_OK);
    assert_string_equal(r.text, "crane/swing: broken");
    usi_proxy_resend_latched(us_world_get_proxy(world));
    live_step(world, 1000);
    assert_true(live_pose(world, "crane/boom").p.z < 1);
    assert_string_equal(h.faults, "swing broken");
    assert_int_equal(h.level, 2);
    assert_int_equal(h.n_joint, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(h.joint[i], before.joint[i]);
        assert_true(h.position[i] == before.position[i]);
        assert_true(h.velocity[i] == 0 && h.effort[i] == 0);
    }
    // The frames are those of a crane that has all its parts.
    assert_int_equal(h.n_frame, before.n_frame);
    assert_same_frame(frame_of(&h, "crane/boom"), frame_of(&before, "crane/boom"));
    assert_same_frame(frame_of(&h, "crane/weight"), frame_of(&before, "crane/weight"));
    assert_same_frame(frame_of(&h, "crane/lamp"), frame_of(&before, "crane/lamp"));
    us_world_destroy(world);
}

static void commands_to_what_is_lost_are_taken_and_do_nothing(void **state) {
    (void)state;
    us_world *world = live_open(crane_scene);
    us_sim *sim = us_world_get_sim(world);
    live_step(world, 500);
    live_done(world, "fault crane joint:swing=broken");
    live_step(world, 3000);
    double data[2] = {-0.5, 0.1};
    us_msg_float64_multi_array m = {.data = {._buffer = data, ._length = 2, ._maximum = 2}};
    uint8_t bytes[256];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_float64_multi_array, &m, bytes, sizeof bytes, &length),
                     US_OK);
    assert_int_equal(us_proxy_post(us_world_get_proxy(world), "/crane/joint_commands",
                                   usi_type_float64_multi_array, "test", bytes, length),
                     US_OK);
    us_pose boom = live_pose(world, "crane/boom");
    live_step(world, 500);
    us_proxy_counts n = us_proxy_get_counts(us_world_get_proxy(world), sim);
    assert_int_equal(n.n_command, 1);
    assert_int_equal(n.n_refused, 0);
    // Neither the drive at the break nor the one behind it, which has no current.
    assert_true(us_vec3_norm(us_vec3_sub(live_pose(world, "crane/boom").p, boom.p)) < 1e-3);
    assert_true(us_sim_view_torque(sim)[0] == 0 && us_sim_view_torque(sim)[1] == 0);
    us_world_destroy(world);
}

static void bolts_and_mounts_break_too_and_twice_is_once(void **state) {
    (void)state;
    us_world *world = live_open(crane_scene);
    heard h = {.world = world};
    usi_proxy_set_tap(us_world_get_proxy(world), hear, &h);
    for (int32_t i = 0; i < usi_proxy_n_channel(us_world_get_proxy(world)); i++)
        usi_proxy_want_channel(us_world_get_proxy(world), i, true);
    live_step(world, 1001);
    heard before = h;
    live_done(world, "fault crane joint:bolt=broken");
    live_done(world, "fault crane joint:bolt=broken");
    usi_proxy_resend_latched(us_world_get_proxy(world));
    live_step(world, 1000);
    assert_true(live_pose(world, "crane/lamp").p.z < 0.2);
    assert_same_frame(frame_of(&h, "crane/lamp"), frame_of(&before, "crane/lamp"));
    assert_string_equal(h.faults, "bolt broken");
    // Without its mount the whole crane falls; its cables are its own, and the drive goes on holding.
    live_done(world, "fault crane joint:fixed_base=broken");
    live_step(world, 1000);
    assert_true(live_pose(world, "crane/tower").p.z < 1);
    assert_string_equal(h.faults, "fixed_base broken; bolt broken");
    assert_true(fabs(h.position[1] - 0.3) < 0.1 && h.effort[1] != 0);
    live_done(world, "reset");
    live_step(world, 1001);
    assert_string_equal(h.faults, "none");
    live_near(live_pose(world, "crane/tower").p.z, 2, 1e-12);
    live_near(frame_of(&h, "crane/weight").p.z, frame_of(&before, "crane/weight").p.z, 1e-9);
    us_world_destroy(world);
}

static void breaks_that_cannot_be_are_refused(void **state) {
    (void)state;
    us_world *world = live_open(crane_scene);
    live_refused(world, "fault cran joint:swing=broken", US_ERR_NAME, "did you mean \"crane\"?");
    live_refused(world, "fault crane joint:swung=broken", US_ERR_NAME, "did you mean \"swing\"?");
    live_refused(world, "fault crane joint:swing", US_ERR_SYNTAX, "write joint:JOINT=broken");
    live_refused(world, "fault crane joint:swing=loose", US_ERR_NAME, "known: ok, broken");
    live_refused(world, "fault crane joint:mark=broken", US_ERR_MASS, "has no mass");
    live_done(world, "fault crane joint:swing=ok");
    live_done(world, "fault crane joint:swing=broken");
    live_refused(world, "fault crane joint:swing=ok", US_ERR_ARG, "reset, or restore");
    live_refused(world, "joint crane/swing 0.1", US_ERR_ARG, "is broken");
    // What came off goes by its own name.
    live_done(world, "move crane/boom 3 3 1");
    live_near(live_pose(world, "crane/boom").p.x, 3, 1e-12);
    live_near(live_pose(world, "crane/tower").p.x, 0, 1e-12);
    us_world_destroy(world);
    world = live_open(walker_scene);
    live_refused(world, "fault hexapod joint:floating_base=broken", US_ERR_ARG, "nothing to break");
    us_world_destroy(world);
}

// ---------------------------------------------------------------- the same again

static void snapshots_bring_the_whole_robot_back_and_the_broken_one(void **state) {
    (void)state;
    us_world *world = live_open(walker_scene);
    us_sim *sim = us_world_get_sim(world);
    live_step(world, 1);
    uint64_t start = us_sim_hash(sim);
    live_walk(world, 0.15, 700);
    live_done(world, "snapshot whole");
    live_walk(world, 0.15, 300);
    uint64_t whole = us_sim_hash(sim);
    live_done(world, "fault hexapod joint:front_left_femur=broken");
    live_walk(world, 0.15, 40);  // the leg is still in the air
    live_done(world, "snapshot broken");
    live_walk(world, 0.15, 600);
    uint64_t broken = us_sim_hash(sim);
    live_done(world, "restore whole");
    live_walk(world, 0.15, 300);
    assert_true(us_sim_hash(sim) == whole);
    live_done(world, "restore broken");
    us_sim_poison(sim);
    live_walk(world, 0.15, 600);
    assert_true(us_sim_hash(sim) == broken);
    live_done(world, "reset");
    live_step(world, 1);
    assert_true(us_sim_hash(sim) == start);
    us_world_destroy(world);
}

static void other_edits_leave_what_is_broken_as_it_is(void **state) {
    (void)state;
    us_world *world = live_open(walker_scene);
    live_walk(world, 0.15, 500);
    live_done(world, "fault hexapod joint:front_left_femur=broken");
    live_walk(world, 0.15, 1500);
    us_pose leg = live_pose(world, "hexapod/front_left_femur"),
            other = live_pose(world, "hexapod/rear_right_tibia");
    live_done(world, "add box crate size=0.3,0.3,0.3 at=3,0,0.3");
    live_done(world, "fault hexapod joint:rear_right_tibia=broken");
    live_done(world, "fault hexapod motor:middle_left_coxa=blocked");
    assert_true(memcmp(&leg,
                       &(us_pose){live_pose(world, "hexapod/front_left_femur").q,
                                  live_pose(world, "hexapod/front_left_femur").p},
                       sizeof leg) == 0);
    assert_true(us_vec3_norm(us_vec3_sub(live_pose(world, "hexapod/rear_right_tibia").p, other.p)) < 1e-12);
    live_walk(world, 0.15, 1000);
    // The leg lies where it lay: what it rests on has gone on too.
    assert_true(us_vec3_norm(us_vec3_sub(live_pose(world, "hexapod/front_left_femur").p, leg.p)) < 0.02);
    us_world_destroy(world);
}

static void recordings_with_breaks_verify_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(walker_scene);
    // One is broken when the recording begins, and still falls; another breaks while it goes on.
    live_walk(world, 0.2, 300);
    live_done(world, "fault hexapod joint:front_left_femur=broken");
    live_walk(world, 0.2, 50);
    live_ok(us_world_record(world, "breakage.mcap", &err), &err);
    live_walk(world, 0.2, 800);
    live_done(world, "fault hexapod joint:rear_right_tibia=broken");
    live_walk(world, 0.2, 700);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    us_verify_result result = live_verify(walker_scene, "breakage.mcap");
    assert_int_equal(result.first_tick, 350);
    assert_int_equal(result.n_tick, 1500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_firmware_goes_on_with_the_last_readings_behind_a_break),
        cmocka_unit_test(commands_to_what_is_lost_are_taken_and_do_nothing),
        cmocka_unit_test(bolts_and_mounts_break_too_and_twice_is_once),
        cmocka_unit_test(breaks_that_cannot_be_are_refused),
        cmocka_unit_test(snapshots_bring_the_whole_robot_back_and_the_broken_one),
        cmocka_unit_test(other_edits_leave_what_is_broken_as_it_is),
        cmocka_unit_test(recordings_with_breaks_verify_bit_for_bit),
    };
    return cmocka_run_group_tests_name("breakage", tests, make_scenes, NULL);
}
