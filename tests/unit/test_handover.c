// Parts of a hand-over: the way to a pose, the ramp, what counts as agreement, the line of evidence.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "kincontrol/odometry.h"
#include "switch/switch.h"
#include "wire/messages.h"

static const double degree = M_PI / 180;

static void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%.17g rather than %.17g", got, want);
}

// A rover that does as it is told within its limits reaches every pose around it.
static void the_way_leads_to_any_pose(void **state) {
    (void)state;
    us_handover_def def = us_switch_def_default().handover;
    double slowest = 0;
    for (uint64_t i = 0; i < 200; i++) {
        double from[3] = {0, 0, 0}, goal[3], v[2] = {0, 0}, left = INFINITY, time = 0;
        for (uint64_t k = 0; k < 3; k++)
            goal[k] = 3 * (2 * us_random_uniform(5, k, i) - 1);
        bool is_turning = false;
        for (;; time += 0.05) {
            double want[2];
            usi_match_steer(&def, from, goal, &is_turning, want, &left);
            assert_true(fabs(want[0]) <= def.match_speed && fabs(want[1]) <= def.match_yaw_rate);
            if (is_turning && want[0] == 0 && want[1] == 0) break;
            if (time > def.match_time)
                fail_msg("pose %.3f %.3f %.3f is not reached", goal[0], goal[1], goal[2]);
            for (int k = 0; k < 2; k++) {
                double most = 0.05 * (k ? def.yaw_acceleration : def.acceleration);
                v[k] += fmax(-most, fmin(most, want[k] - v[k]));
            }
            usi_odometry_move(from, (const double[3]){v[0], 0, v[1]}, 0.05);
        }
        slowest = fmax(slowest, time);
        assert_true(hypot(from[0] - goal[0], from[1] - goal[1]) < def.position);
        assert_true(fabs(remainder(from[2] - goal[2], 2 * M_PI)) < def.yaw);
    }
    print_message("200 poses within 4 m: %.1f s at most\n", slowest);
}

static const char description[] =
    "<?xml version='1.0'?><robot name='x'>"
    "<joint name=\"wheel\" type=\"continuous\"><limit effort=\"30\" velocity=\"6\"/></joint>"
    "<joint type='revolute' name='steer'><parent link='a'/><limit lower='-1' upper='1' effort='60'/></joint>"
    "<joint name='rocker' type='revolute'><limit lower='-1' upper='1' effort='0'/></joint>"
    "<joint name='free' type='revolute'><axis xyz='0 0 1'/></joint>"
    "<transmission name='t'><joint name='late'/></transmission>"
    "<joint name='late' type='prismatic'><limit effort='5'/></joint></robot>";

static void joints_with_a_motor_and_an_end_are_compared(void **state) {
    (void)state;
    static const char *const yes[] = {"steer", "late"}, *const no[] = {"wheel", "rocker", "free", "nobody",
                                                                       ""};
    for (size_t i = 0; i < 2; i++)
        assert_true(usi_handover_is_steered(description, yes[i]));
    for (size_t i = 0; i < 5; i++)
        assert_false(usi_handover_is_steered(description, no[i]));
    assert_false(usi_handover_is_steered(NULL, "steer"));
    assert_false(usi_handover_is_steered("<joint name='steer' type='revolute'", "steer"));
}

static void disagreement_says_what_differs_and_by_how_much(void **state) {
    (void)state;
    us_handover_def def = us_switch_def_default().handover;
    char why[160];
    usi_handover_difference d = {.position = 0.09,
                                 .yaw = 4 * degree,
                                 .speed = 0.04,
                                 .yaw_rate = 0.09,
                                 .joint = 4 * degree,
                                 .name = "front_left_steer"};
    assert_true(usi_handover_agree(&def, &d, why, sizeof why));
    assert_string_equal(why, "");
    d.position = 0.25;
    d.joint = 12 * degree;
    assert_false(usi_handover_agree(&def, &d, why, sizeof why));
    assert_string_equal(why, "the states differ: position 0.25 m (limit 0.1), front_left_steer 12 deg (5)");
    // What is not told is not compared.
    d = (usi_handover_difference){.position = NAN, .yaw = NAN, .speed = NAN, .yaw_rate = NAN, .joint = NAN};
    assert_true(usi_handover_agree(&def, &d, why, sizeof why));
    // And what does not fit is cut, not written beyond the end.
    d = (usi_handover_difference){
        .position = 1e9, .yaw = 1e9, .speed = 1e9, .yaw_rate = 1e9, .joint = 1e9, .name = "a"};
    char small[24];
    assert_false(usi_handover_agree(&def, &d, small, sizeof small));
    assert_true(strlen(small) < sizeof small);
}

// ---- the ramp ----

static us_switch *ramping_switch(void) {
    us_switch *sw = calloc(1, sizeof *sw);
    assert_non_null(sw);
    sw->handover.def = us_switch_def_default().handover;
    pthread_mutex_init(&sw->handover.lock, NULL);
    sw->handover.is_ramping = true;
    sw->handover.ramp_time = usi_switch_now();
    return sw;
}

static double pass(us_switch *sw, const usi_route *route, const void *message, int64_t pause,
                   const char *path, bool *out_is_given) {
    uint8_t bytes[512], buf[512];
    us_sample given = {.bytes = bytes}, limited;
    assert_int_equal(us_message_encode(route->type, message, bytes, sizeof bytes, &given.length), US_OK);
    sw->handover.ramp_time = usi_switch_now() - pause;
    const us_sample *out = usi_handover_ramp(sw, route, &given, true, &limited, buf, sizeof buf);
    if (out_is_given) *out_is_given = out == &given;
    return us_message_get_number(route->type, out->bytes, out->length, path);
}

static void first_velocities_rise_at_the_given_rate_and_then_cross_as_they_are(void **state) {
    (void)state;
    us_switch *sw = ramping_switch();
    usi_route route = {.sw = sw, .is_command = true, .type = usi_type_twist};
    us_msg_twist asked = {.linear = {0.3, 0.4, 0.7}, .angular = {0.1, 0.2, -0.01}};
    bool is_given = false;
    double before = 0, length = 0;
    int n = 0;
    for (; !is_given; n++) {
        assert_true(n < 100);
        double x = pass(sw, &route, &asked, 50000000, "linear.x", &is_given);
        // 0.5 m/s at 0.5 m/s^2 takes a second: 20 commands, of which each has its share of 0.3; fewer where
        // the machine made a pause, which counts as 0.1 s at most.
        assert_true(is_given || (x - before >= 0.015 - 1e-12 && x - before <= 0.03 + 1e-12));
        before = x;
        length = hypot(sw->handover.ramp[0], sw->handover.ramp[1]);
        if (!is_given) near(sw->handover.ramp[1], 4.0 / 3 * sw->handover.ramp[0], 1e-9);
    }
    assert_in_range(n, 10, 21);
    near(length, 0.5, 0);
    assert_false(sw->handover.is_ramping);
    near(pass(sw, &route, &(us_msg_twist){.linear.x = -0.9}, 50000000, "linear.x", &is_given), -0.9, 0);
    assert_true(is_given);
    near(sw->handover.requested[0], -0.9, 0);

    // A long pause is no excuse for a step; what is no velocity of the body is as it was asked.
    sw->handover.is_ramping = true;
    memset(sw->handover.ramp, 0, sizeof sw->handover.ramp);
    us_msg_twist_stamped stamped = {.header.frame_id = usi_text("base"),
                                    .twist = {.linear = {0.8, 0, 0}, .angular = {0.1, 0, 0.9}}};
    route.type = usi_type_twist_stamped;
    near(pass(sw, &route, &stamped, INT64_C(5000000000), "twist.linear.x", &is_given), 0.05, 1e-12);
    assert_false(is_given);
    near(pass(sw, &route, &stamped, INT64_C(5000000000), "twist.angular.z", NULL), 0.2, 1e-12);
    near(pass(sw, &route, &stamped, INT64_C(5000000000), "twist.angular.x", NULL), 0.1, 0);
    // Others' topics are not looked at.
    route.type = usi_type_string;
    pass(sw, &route, &(us_msg_string){usi_text("hello")}, 0, "data", &is_given);
    assert_true(is_given);
    // A command that is no number is not made into one.
    route.type = usi_type_twist;
    pass(sw, &route, &(us_msg_twist){.linear.x = NAN}, 0, "linear.x", &is_given);
    assert_true(is_given);
    pthread_mutex_destroy(&sw->handover.lock);
    free(sw);
}

// ---- evidence ----

static void evidence_is_one_line_of_json_whatever_names_there_are(void **state) {
    (void)state;
    us_handover_def def = us_switch_def_default().handover;
    usi_handover_record *r = calloc(1, sizeof *r);
    char *line = malloc(USI_HANDOVER_LINE);
    assert_true(r && line);
    r->from = US_SWITCH_PROXY;
    r->is_refused = true;
    r->lag = NAN;
    snprintf(r->why, sizeof r->why, "a \"quoted\" \\ reason\nof two lines");
    for (int k = 0; k < 2; k++) {
        for (int s = 0; s < 2; s++) {
            usi_estimate *e = k ? &r->after[s] : &r->before[s];
            e->odom_heard = 1;
            e->X_OB = us_pose_identity();
            e->charge = NAN;
            e->n_joint = USI_MAX_ESTIMATE_JOINT;
            for (int i = 0; i < e->n_joint; i++) {
                usi_estimate_joint *j = &e->joint[i];
                // Twice as long on the line as it is.
                memset(j->name, i % 2 ? '"' : '\\', sizeof j->name - 1);
                j->name[0] = '\t';
                j->position = -1.23456789012e-100;
                j->velocity = i % 2 ? -9.87654321098e100 : NAN;
            }
        }
    }
    size_t n = usi_evidence_write(r, &def, "k10", line, USI_HANDOVER_LINE);
    assert_int_equal(n, strlen(line));
    assert_null(strchr(line, '\n'));
    cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItem(json, "verdict")->valuestring, "refused");
    assert_string_equal(cJSON_GetObjectItem(json, "why")->valuestring, "a \"quoted\" \\ reason of two lines");
    const cJSON *proxy = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "after"), "proxy");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(proxy, "joints")), USI_MAX_ESTIMATE_JOINT);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(proxy, "charge")));
    cJSON_Delete(json);
    free(line);
    free(r);
}

static void limits_that_are_none_are_refused(void **state) {
    (void)state;
    us_error err = {0};
    us_handover_def def = us_switch_def_default().handover;
    assert_int_equal(usi_handover_check_def(&def, &err), US_OK);
    def.acceleration = def.yaw_acceleration = 0;
    assert_int_equal(usi_handover_check_def(&def, &err), US_OK);
    def.acceleration = -1;
    assert_int_equal(usi_handover_check_def(&def, &err), US_ERR_VALUE);
    def = us_switch_def_default().handover;
    def.position = NAN;
    assert_int_equal(usi_handover_check_def(&def, &err), US_ERR_VALUE);
    assert_true(err.remedy[0] != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_leads_to_any_pose),
        cmocka_unit_test(joints_with_a_motor_and_an_end_are_compared),
        cmocka_unit_test(disagreement_says_what_differs_and_by_how_much),
        cmocka_unit_test(first_velocities_rise_at_the_given_rate_and_then_cross_as_they_are),
        cmocka_unit_test(evidence_is_one_line_of_json_whatever_names_there_are),
        cmocka_unit_test(limits_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
