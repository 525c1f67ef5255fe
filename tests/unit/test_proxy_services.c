// The rover services as requests: taken like commands, and what the reply says.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/proxy__robot.h"
#include "proxy_world.h"

static const char *const with_services = "<network services='true'/>";

// A robot whose firmware can be asked without a step: its state is a copy.
typedef struct bench {
    proxy_world w;
    const usi_robot *r;
    usi_robot_state *state;
    usi_firmware_state *s;
} bench;

static void open_bench(bench *b) {
    proxy_world_k10(&b->w, with_services);
    proxy_world_step(&b->w, 10);
    b->r = &b->w.proxy->robot[0];
    b->state = malloc(b->r->state_size);
    assert_non_null(b->state);
    memcpy(b->state, usi_view_state(b->r, b->w.sim), b->r->state_size);
    b->s = usi_firmware_of(b->r, b->state);
}

static void close_bench(bench *b) {
    free(b->state);
    proxy_world_fini(&b->w);
}

// A message as it lies in the mailbox.
static usi_motor_reason command(bench *b, usi_command_topic topic, const void *bytes, size_t length,
                                usi_reply *reply) {
    static union {
        usi_mail mail;
        uint8_t bytes[sizeof(usi_mail) + USI_MAIL_MAX];
    } box;
    box.mail = (usi_mail){.topic = (int32_t)topic, .length = (uint32_t)length};
    memcpy(&box.mail + 1, bytes, length);
    return usi_robot_command(b->r, b->w.sim, b->state, &box.mail, reply);
}

static usi_reply ask(bench *b, usi_command_topic topic, const void *request) {
    usi_reply reply;
    size_t length = 0;
    assert_int_equal(
        us_message_encode(usi_command_type((int32_t)topic), request, b->w.bytes, sizeof b->w.bytes, &length),
        US_OK);
    usi_motor_reason reason = command(b, topic, b->w.bytes, length, &reply);
    assert_true((reason == USI_MOTOR_GOOD) == reply.is_accepted);
    return reply;
}

// `refusal` "": accepted.
static void expect(const usi_reply *reply, usi_command_topic topic, uint64_t guid, int64_t seq,
                   const char *refusal) {
    assert_int_equal(reply->service + USI_COMMAND_ASK, (int)topic);
    assert_true(reply->guid == guid && reply->seq == seq);
    assert_int_equal(reply->is_accepted, refusal[0] == 0);
    if (refusal[0] ? !strstr(reply->message, refusal) : reply->message[0] != 0)
        fail_msg("\"%s\" rather than \"%s\"", reply->message, refusal);
}

static void every_service_takes_a_request_and_repeats_its_numbers(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    us_msg_motor_profile profile = {.name = usi_text("front_left_steer"), .mode = 2, .value = 0.2};
    us_msg_motor_group_request motors = {
        .guid = UINT64_MAX, .seq = INT64_MIN, .command = {.header.frame_id = usi_text(""), .sequence = 11}};
    motors.command.motors._buffer = &profile;
    motors.command.motors._length = 1;
    usi_reply reply = ask(&b, USI_COMMAND_ASK_MOTORS, &motors);
    expect(&reply, USI_COMMAND_ASK_MOTORS, UINT64_MAX, INT64_MIN, "");
    assert_int_equal(b.s->motors.sequence, 11);
    us_msg_locomotor_request arc = {
        .guid = 5,
        .seq = 1,
        .command = {.header.frame_id = usi_text(""), .sequence = 12, .mode = 2, .speed = 0.4, .distance = 1}};
    reply = ask(&b, USI_COMMAND_ASK_LOCOMOTOR, &arc);
    expect(&reply, USI_COMMAND_ASK_LOCOMOTOR, 5, 1, "");
    assert_int_equal(b.s->locomotor.sequence, 12);
    assert_int_equal(b.s->motion, USI_MOTION_ARC);
    us_msg_pose_estimator_request pose = {.guid = 5,
                                          .seq = 2,
                                          .command = {.header.frame_id = usi_text("map"),
                                                      .sequence = 13,
                                                      .mode = 1,
                                                      .pose = {{3, 4, 0}, {0, 0, 0, 1}}}};
    reply = ask(&b, USI_COMMAND_ASK_POSE, &pose);
    expect(&reply, USI_COMMAND_ASK_POSE, 5, 2, "");
    assert_int_equal(b.s->pose.sequence, 13);
    us_msg_point point = {5, 4, 0};
    us_msg_navigator_request go = {
        .guid = 6,
        .seq = 3,
        .command = {
            .header.frame_id = usi_text("map"), .sequence = 14, .mode = 1, .tolerance = 0.1, .speed = 0.3}};
    go.command.points._buffer = &point;
    go.command.points._length = 1;
    reply = ask(&b, USI_COMMAND_ASK_NAVIGATOR, &go);
    expect(&reply, USI_COMMAND_ASK_NAVIGATOR, 6, 3, "");
    assert_int_equal(b.s->navigator.sequence, 14);
    assert_int_equal(b.s->motion, USI_MOTION_NAVIGATE);
    assert_int_equal(b.s->n_command, 4);
    close_bench(&b);
}

static void a_refused_request_says_why_and_the_command_before_stays(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    us_msg_locomotor_request m = {
        .guid = 7,
        .seq = 1,
        .command = {.header.frame_id = usi_text(""), .sequence = 1, .mode = 2, .speed = 0.4, .distance = 1}};
    usi_reply reply = ask(&b, USI_COMMAND_ASK_LOCOMOTOR, &m);
    m.seq = 2;
    m.command.sequence = 2;
    m.command.speed = 8;
    reply = ask(&b, USI_COMMAND_ASK_LOCOMOTOR, &m);
    expect(&reply, USI_COMMAND_ASK_LOCOMOTOR, 7, 2, "speed 8 m/s is beyond the limit of 0.9 m/s");
    assert_int_equal(b.s->locomotor.sequence, 2);
    assert_int_equal(b.s->locomotor.state, 4);
    assert_string_equal(b.s->locomotor.message, reply.message);
    assert_int_equal(b.s->motion, USI_MOTION_ARC);
    assert_true(b.s->speed == 0.4);
    assert_non_null(strstr(b.s->refusal, "locomotor: speed 8 m/s"));
    us_msg_navigator_request nowhere = {
        .guid = 7, .seq = 3, .command = {.header.frame_id = usi_text("map"), .sequence = 3, .mode = 1}};
    reply = ask(&b, USI_COMMAND_ASK_NAVIGATOR, &nowhere);
    expect(&reply, USI_COMMAND_ASK_NAVIGATOR, 7, 3, "0 points");
    assert_int_equal(b.s->n_refused, 2);
    close_bench(&b);
}

static void what_is_no_request_and_what_is_none_have_no_reply(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    usi_reply reply;
    assert_int_not_equal(command(&b, USI_COMMAND_ASK_POSE, "\0\1\0\0abc", 7, &reply), USI_MOTOR_GOOD);
    assert_int_equal(reply.service, -1);
    us_msg_twist m = {{0.1, 0, 0}, {0, 0, 0}};
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, b.w.bytes, sizeof b.w.bytes, &length), US_OK);
    assert_int_equal(command(&b, USI_COMMAND_TWIST, b.w.bytes, length, &reply), USI_MOTOR_GOOD);
    assert_int_equal(reply.service, -1);
    close_bench(&b);
}

// Off the network nobody can be answered, and the robot obeys all the same: this is how a recording runs
// again.
static void a_request_moves_the_robot_without_a_network_and_is_answered_by_nothing(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, with_services);
    proxy_world_step(&w, 500);
    us_msg_locomotor_request m = {
        .guid = 1,
        .seq = 1,
        .command = {.header.frame_id = usi_text(""), .mode = 2, .speed = 0.5, .distance = 1}};
    assert_int_equal(proxy_world_post(&w, "/k10/locomotor", usi_type_locomotor_request, &m), US_OK);
    int64_t before = us_proxy_get_counts(w.proxy, w.sim).n_sample;
    assert_int_equal(us_sim_step(w.sim, NULL), US_OK);
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_sample, before);
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_command, 1);
    proxy_world_step(&w, 4000);
    // As by the topic: a metre, less what the wheels slip.
    assert_true(fabs(us_sim_get_pose(w.sim, us_model_find_body(w.model, "k10/base")).p.x - 1) < 0.05);
    proxy_world_fini(&w);
}

static bool has_topic(const proxy_world *w, const us_message_type *wanted) {
    const us_message_type *type = NULL;
    for (int32_t i = 0; us_proxy_command_topic(w->proxy, 0, i, &type); i++) {
        if (type == wanted) return true;
    }
    return false;
}

static void requests_are_taken_unless_the_scene_says_no(void **state) {
    (void)state;
    proxy_world w;
    us_msg_locomotor_request m = {.guid = 1, .seq = 1, .command.header.frame_id = usi_text("")};
    proxy_world_k10(&w, "<network services='false'/>");
    assert_false(has_topic(&w, usi_type_locomotor_request));
    assert_int_equal(proxy_world_post(&w, "/k10/locomotor", usi_type_locomotor_request, &m), US_ERR_NAME);
    proxy_world_fini(&w);
    proxy_world_k10(&w, "");
    assert_true(has_topic(&w, usi_type_locomotor_request) && has_topic(&w, usi_type_motor_group_request));
    proxy_world_fini(&w);
    // An arm has motors and no wheels.
    proxy_world_init(
        &w, "<scene name='a' version='1'><world step='1 ms'/><robot name='arm' file='../models/arm6.urdf'>"
            "<drive joint='joint1' kp='4000' kd='400'/><network services='true'/></robot></scene>");
    assert_true(has_topic(&w, usi_type_motor_group_request));
    assert_false(has_topic(&w, usi_type_locomotor_request));
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- kinds of errors, frames, properties, waits

static usi_reply navigate(bench *b, const char *frame, double x, double y, double timeout) {
    us_msg_point point = {x, y, 0};
    us_msg_navigator_request m = {.guid = 3, .seq = 4};
    m.command = (us_msg_navigator_command){.header.frame_id = usi_text(frame),
                                           .mode = 1,
                                           .speed = 0.5,
                                           .tolerance = 0.1,
                                           .timeout = timeout,
                                           .sequence = 9};
    m.command.points._buffer = &point;
    m.command.points._length = 1;
    return ask(b, USI_COMMAND_ASK_NAVIGATOR, &m);
}

static void a_refusal_has_a_kind_in_reply_and_status(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    usi_reply reply = navigate(&b, "mars", 1, 2, 0);
    assert_int_equal(reply.error, US_ROVER_UNKNOWN_NAME);
    assert_int_equal(b.s->navigator.error, US_ROVER_UNKNOWN_NAME);
    reply = navigate(&b, "", NAN, 2, 0);
    assert_int_equal(reply.error, US_ROVER_BAD_VALUE);
    reply = navigate(&b, "", 1, 2, -1);
    assert_int_equal(reply.error, US_ROVER_BAD_VALUE);
    us_msg_motor_profile profile = {.name = usi_text("nobody"), .mode = 2, .value = 0.2};
    us_msg_motor_group_request motors = {.command = {.header.frame_id = usi_text("")}};
    motors.command.motors._buffer = &profile;
    motors.command.motors._length = 1;
    reply = ask(&b, USI_COMMAND_ASK_MOTORS, &motors);
    assert_int_equal(reply.error, US_ROVER_UNKNOWN_NAME);
    reply = navigate(&b, "", 1, 2, 5);
    assert_true(reply.is_accepted && reply.error == US_ROVER_FINE);
    // A step of 1 ms: 5 s.
    assert_int_equal(b.s->deadline - us_sim_get_tick(b.w.sim), 5000);
    close_bench(&b);
}

static void points_are_of_the_frame_that_the_header_names(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    // The robot stands at (10, 0) and looks along y; its site is at (100, 0), turned round.
    const double pose[3] = {10, 0, 1.5707963267948966}, site[3] = {100, 0, 3.141592653589793};
    usi_firmware_readings in = usi_robot_read(b.r, b.w.sim, b.state);
    usi_firmware_request c = {.fw = &b.r->model->firmware, .s = b.s, .in = &in};
    usi_firmware_set_pose(&c, pose);
    memcpy(b.s->setting.site, site, sizeof site);
    const struct {
        const char *frame;
        double x, y;
    } cases[] = {{"", 1, 2}, {"map", 1, 2}, {"k10/site", 99, -2}, {"k10/base", 8, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const usi_reply reply = navigate(&b, cases[i].frame, 1, 2, 0);
        if (!reply.is_accepted) fail_msg("%s: %s", cases[i].frame, reply.message);
        assert_true(fabs(b.s->route[0][0] - cases[i].x) < 1e-9 && fabs(b.s->route[0][1] - cases[i].y) < 1e-9);
    }
    close_bench(&b);
}

static usi_reply properties(bench *b, uint8_t mode, const char *name, double value) {
    char *names[2] = {usi_text(name), usi_text("site.y")};
    double values[2] = {value, 7};
    us_msg_properties_request m = {.guid = 1, .seq = 2, .mode = mode};
    m.names._buffer = names;
    m.values._buffer = values;
    m.names._length = m.values._length = 2;
    return ask(b, USI_COMMAND_ASK_PROPERTIES, &m);
}

static void properties_are_listed_got_and_set_all_or_none(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    usi_reply reply = properties(&b, 0, "", 0);
    assert_true(reply.is_accepted && reply.n_property > 20);
    reply = properties(&b, 1, "limit.speed", 0);
    assert_true(reply.is_accepted && reply.n_property == 2);
    reply = properties(&b, 2, "site.x", -3);
    assert_true(reply.is_accepted);
    assert_true(b.s->setting.site[0] == -3 && b.s->setting.site[1] == 7);
    reply = properties(&b, 2, "navigator.speed", 99);
    assert_int_equal(reply.error, US_ROVER_BAD_VALUE);
    b.s->setting.site[1] = 1;
    reply = properties(&b, 2, "limit.speed", 1);
    assert_int_equal(reply.error, US_ROVER_NOT_SUPPORTED);
    assert_true(b.s->setting.site[1] == 1);
    reply = properties(&b, 1, "wings", 1);
    assert_int_equal(reply.error, US_ROVER_UNKNOWN_NAME);
    reply = properties(&b, 3, "site.x", 1);
    assert_int_equal(reply.error, US_ROVER_BAD_VALUE);
    close_bench(&b);
}

static usi_reply wait_for(bench *b, const char *service, uint32_t sequence, double timeout) {
    us_msg_wait_request m = {.guid = 5, .seq = 6, .sequence = sequence, .timeout = timeout};
    m.service = usi_text(service);
    usi_reply reply;
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_wait_request, &m, b->w.bytes, sizeof b->w.bytes, &length),
                     US_OK);
    // To have asked is no refusal, whatever the answer is.
    assert_int_equal(command(b, USI_COMMAND_ASK_WAIT, b->w.bytes, length, &reply), USI_MOTOR_GOOD);
    return reply;
}

static void a_wait_is_answered_when_the_command_has_ended(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    usi_reply reply = wait_for(&b, "camera", 0, 1);
    assert_int_equal(reply.error, US_ROVER_UNKNOWN_NAME);
    reply = wait_for(&b, "navigator", 0, NAN);
    assert_int_equal(reply.error, US_ROVER_BAD_VALUE);
    // Nothing is under way: at once.
    reply = wait_for(&b, "navigator", 0, 1);
    assert_true(reply.is_accepted && reply.service >= 0 && reply.state == US_ROVER_IDLE);
    assert_true(navigate(&b, "", 5, 0, 0).is_accepted);
    reply = wait_for(&b, "navigator", 8, 1);
    assert_int_equal(reply.error, US_ROVER_INTERRUPTED);
    reply = wait_for(&b, "navigator", 9, 0);
    assert_int_equal(reply.error, US_ROVER_TIMEOUT);
    // It goes on: the reply comes later, for as many as there is room.
    for (int i = 0; i < USI_MAX_WAIT; i++) {
        reply = wait_for(&b, "navigator", 9, i == 0 ? 0.002 : 100);
        assert_int_equal(reply.service, -1);
    }
    reply = wait_for(&b, "navigator", 9, 1);
    assert_int_equal(reply.error, US_ROVER_BUSY);
    usi_robot *r = &b.w.proxy->robot[0];
    usi_waits_serve(b.w.proxy, r, b.w.sim, b.state);
    assert_true(r->wait[0].is_used);
    usi_waits_serve(b.w.proxy, r, b.w.sim, b.state);
    assert_false(r->wait[0].is_used);
    assert_true(r->wait[1].is_used);
    b.s->navigator.state = US_ROVER_DONE;
    usi_waits_serve(b.w.proxy, r, b.w.sim, b.state);
    for (int i = 0; i < USI_MAX_WAIT; i++)
        assert_false(r->wait[i].is_used);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_has_a_kind_in_reply_and_status),
        cmocka_unit_test(points_are_of_the_frame_that_the_header_names),
        cmocka_unit_test(properties_are_listed_got_and_set_all_or_none),
        cmocka_unit_test(a_wait_is_answered_when_the_command_has_ended),
        cmocka_unit_test(every_service_takes_a_request_and_repeats_its_numbers),
        cmocka_unit_test(a_refused_request_says_why_and_the_command_before_stays),
        cmocka_unit_test(what_is_no_request_and_what_is_none_have_no_reply),
        cmocka_unit_test(a_request_moves_the_robot_without_a_network_and_is_answered_by_nothing),
        cmocka_unit_test(requests_are_taken_unless_the_scene_says_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
