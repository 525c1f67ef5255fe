// A world in several processes: who owns what, and when who goes on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "split_world.h"

static const double EXCHANGE = 0.01;  // s: ten steps

// Three carts far from each other, and a ball that nobody must own.
static const char *three(void) {
    static char text[8192];
    snprintf(text, sizeof text,
             "%s%s%s%s<object name='ball' xyz='20 0 0.5'><link name='core' density='500'><shape "
             "type='sphere' size='0.1'/></link></object>%s",
             split_head, split_cart("r1", 0, 0, 3), split_cart("r2", 5, 0, 2), split_cart("r3", 10, 0, -3),
             split_tail);
    return text;
}

#define assert_has(text, part)                                                         \
    do {                                                                               \
        if (!strstr((text), (part))) fail_msg("\"%s\" is not in: %s", (part), (text)); \
    } while (0)

// What one process alone says about its own arguments.
static void refuses(const char *own, double exchange, us_status status, const char *message,
                    const char *remedy) {
    split_net net;
    split_open(&net);
    const split_process *p = split_add(&net, three(), own, exchange);
    assert_int_equal(p->status, status);
    assert_has(p->err.message, message);
    assert_has(p->err.remedy, remedy);
    split_close(&net);
}

static void arguments_that_cannot_be_meant_are_refused(void **state) {
    (void)state;
    refuses("r1,rr2", EXCHANGE, US_ERR_NAME, "no robot or object \"rr2\"", "did you mean \"r2\"?");
    refuses("r1,r2,r1", EXCHANGE, US_ERR_NAME, "\"r1\" is named twice", "once");
    refuses(" , ", EXCHANGE, US_ERR_ARG, "nothing is named", "r1,r2");
    refuses("ball", EXCHANGE, US_ERR_NAME, "owns one robot at least", "add a robot");
    refuses("r1", 0.0105, US_ERR_VALUE, "0.0105 s is not a whole number of steps of 0.001 s", "multiple");
    refuses("r1", 0, US_ERR_VALUE, "0 s is not a whole number of steps", "multiple");
    refuses("r1", 60, US_ERR_VALUE, "60 s is not a whole number of steps", "multiple");
}

static void a_robot_of_two_processes_stops_them(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    const split_process *a = split_add(&net, three(), "r1,r2", EXCHANGE),
                        *b = split_add(&net, three(), "r2,r3", EXCHANGE);
    split_run(&net, 100, 5);
    // Whoever hears of it first: one at least, and no one makes a step.
    const split_process *told = a->status ? a : b;
    assert_int_equal(told->status, US_ERR_NAME);
    assert_has(told->err.message, "\"r2\" is owned twice");
    assert_has(told->err.message, told == a ? "process2" : "process1");
    assert_int_equal(us_sim_get_tick(a->sim), 0);
    assert_int_equal(us_sim_get_tick(b->sim), 0);
    split_close(&net);
}

static void a_robot_of_nobody_is_waited_for_and_named(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    net.timeout = 20;
    split_process *a = split_add(&net, three(), "r1", EXCHANGE);
    assert_false(split_run(&net, 100, 10));
    assert_int_equal(a->status, US_OK);
    assert_has(a->said, "no process owns r2, r3");
    split_run(&net, 100, 15);
    assert_int_equal(a->status, US_ERR_LIMIT);
    assert_has(a->err.message, "no process owns r2, r3; waited for 20 s");
    assert_has(a->err.remedy, "--own");
    split_close(&net);
}

static void other_scenes_and_steps_are_named(void **state) {
    (void)state;
    static char other[8192], slower[8192];
    snprintf(other, sizeof other, "%s", three());
    char *speed = strstr(other, "velocity='3'");
    assert_non_null(speed);
    speed[strlen("velocity='")] = '4';
    snprintf(slower, sizeof slower, "%s", three());
    char *step = strstr(slower, "step='1 ms'");
    assert_non_null(step);
    step[strlen("step='")] = '2';
    const struct {
        const char *scene;
        double exchange;
        const char *what;
    } cases[] = {{other, EXCHANGE, "has another scene"},
                 {slower, EXCHANGE, "has a step of 0.00"},
                 {three(), 0.02, "exchanges every 0.0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        split_net net;
        split_open(&net);
        const split_process *a = split_add(&net, three(), "r1,r2", EXCHANGE),
                            *b = split_add(&net, cases[i].scene, "r3", cases[i].exchange);
        split_run(&net, 100, 5);
        const split_process *told = a->status ? a : b;
        assert_int_equal(told->status, US_ERR_VALUE);
        assert_has(told->err.message, cases[i].what);
        assert_has(told->err.message, told == a ? "process2" : "process1");
        split_close(&net);
    }
}

static void what_a_loop_holds_together_has_one_owner(void **state) {
    (void)state;
    static char text[8192];
    snprintf(text, sizeof text,
             "%s%s%s<loop name='rod' type='point'><a link='r1/base' xyz='0.35 0 0.14'/><b link='r2/base' "
             "xyz='-0.35 0 0.14'/></loop>%s",
             split_head, split_cart("r1", 0, 0, 1), split_cart("r2", 0.7, 0, 1), split_tail);
    split_net net;
    split_open(&net);
    const split_process *a = split_add(&net, text, "r1", EXCHANGE),
                        *b = split_add(&net, text, "r2", EXCHANGE);
    split_run(&net, 100, 5);
    const split_process *told = a->status ? a : b;
    assert_int_equal(told->status, US_ERR_TREE);
    assert_has(told->err.message, "a loop holds \"r1\" and \"r2\" together");
    split_close(&net);
}

// Every robot as in one process, to the last bit, and the ball with the first process.
static void robots_that_do_not_meet_move_as_in_one_process(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    const split_process *one = split_add(&net, three(), NULL, 0),
                        *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                        *b = split_add(&net, three(), "r2", EXCHANGE);
    for (int64_t tick = 7; tick <= 1400; tick += 199) {
        assert_true(split_run(&net, tick, 5));
        assert_true(split_same(one, a, "r1") && split_same(one, a, "r3") && split_same(one, b, "r2") &&
                    split_same(one, a, "ball"));
    }
    // At an exchange point ghosts are where their owners have them; until then where they were at the last
    // one.
    assert_true(split_run(&net, 1420, 5));
    assert_true(split_run(&net, 1421, 5));
    assert_true(split_run(&net, 1430, 5));
    assert_false(split_same(one, b, "r1"));
    assert_true(usi_split_get_counts(a->split).n_awake == 0 &&
                usi_split_get_counts(b->split).n_predecessor == 0);
    assert_true(usi_split_get_counts(a->split).n_exchange >= 143);
    split_close(&net);
}

// Where all is far apart several stretches go by without a word; near each other none does. The bits are
// those of one process all the same.
static void what_is_far_apart_exchanges_less_often(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    net.n_interval = 4;
    const split_process *one = split_add(&net, three(), NULL, 0),
                        *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                        *b = split_add(&net, three(), "r2", EXCHANGE);
    for (int64_t tick = 7; tick <= 1400; tick += 199) {
        assert_true(split_run(&net, tick, 5));
        assert_true(split_same(one, a, "r1") && split_same(one, a, "r3") && split_same(one, b, "r2") &&
                    split_same(one, a, "ball"));
    }
    int64_t n_exchange = usi_split_get_counts(a->split).n_exchange;
    assert_in_range(n_exchange, 1400 / 40, 1400 / 40 + 1);
    assert_int_equal(usi_split_get_counts(b->split).n_exchange, n_exchange);
    split_close(&net);
    // Two carts that stand 5 cm apart: nearer than four stretches reach, 15 m/s2 * (0.04 s)^2 + 0.01 m for
    // each, and farther than one does.
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s%s", split_head, split_cart("r1", 0, 0, 0),
             split_cart("r2", 0.57, 0, 0), split_tail);
    split_open(&net);
    net.n_interval = 4;
    a = split_add(&net, text, "r1", EXCHANGE);
    split_add(&net, text, "r2", EXCHANGE);
    assert_true(split_run(&net, 1000, 5));
    assert_int_equal(usi_split_get_counts(a->split).n_exchange, 100);
    assert_int_equal(usi_split_get_counts(a->split).n_awake, 0);
    split_close(&net);
}

static void nobody_goes_beyond_an_exchange_point_alone(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    split_process *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                  *b = split_add(&net, three(), "r2", EXCHANGE);
    assert_true(split_run(&net, 205, 5));
    split_kill(b);
    // It had said where it was at 200, and so the other comes to 210.
    assert_false(split_run(&net, 1000, 5));
    assert_int_equal(us_sim_get_tick(a->sim), 210);
    assert_int_equal(a->status, US_OK);
    assert_has(a->said, "at 0.21 s: the process process2, which owns r2, has not come to this exchange "
                        "point: waiting for it");
    split_run(&net, 1000, 60);
    assert_int_equal(a->status, US_ERR_LIMIT);
    assert_has(a->err.message,
               "process2, which owns r2, has not come to this exchange point; waited for 60 s");
    split_close(&net);
}

static void one_that_comes_back_takes_up_where_it_was_seen_last(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    split_process *one = split_add(&net, three(), NULL, 0), *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                  *b = split_add(&net, three(), "r2", EXCHANGE);
    assert_true(split_run(&net, 505, 5));
    split_kill(b);
    us_sim_destroy(one->sim);
    one->sim = NULL;
    assert_false(split_run(&net, 1000, 5));
    double x = split_position(a, "r2/base").x;
    const split_process *c = split_add(&net, three(), "r2", EXCHANGE);
    assert_true(split_run(&net, 1000, 10));
    assert_int_equal(a->status, US_OK);
    assert_int_equal(c->status, US_OK);
    assert_has(a->said, "process4 takes the place of one that has gone");
    assert_has(a->said, "all are there, going on");
    assert_has(c->said, "takes up at 0.5 s");
    // It rolls on at 2 rad/s on wheels of 0.1 m: half a second later 0.1 m further, less what the wheels
    // lose.
    double way = split_position(c, "r2/base").x - x;
    if (!(way > 0.09 && way < 0.11)) fail_msg("it went %g m", way);
    split_close(&net);
}

static void one_that_comes_back_has_its_faults_and_its_battery(void **state) {
    (void)state;
    static char text[8192];
    snprintf(text, sizeof text, "%s", three());
    // r2 gets a battery.
    static const char battery[] = "<battery capacity='100 Wh'/>";
    char *at = strstr(strstr(text, "name='r2'"), "</robot>");
    memmove(at + strlen(battery), at, strlen(at) + 1);
    memcpy(at, battery, strlen(battery));
    split_net net;
    split_open(&net);
    split_process *a = split_add(&net, text, "r1,r3", EXCHANGE), *b = split_add(&net, text, "r2", EXCHANGE);
    us_drive weak = us_model_find_drive(b->model, "r2/front_left");
    us_joint blocked = us_model_find_joint(b->model, "r2/front_right");
    us_battery cell = us_model_find_battery(b->model, "r2");
    assert_true(weak.i >= 0 && blocked.i >= 0 && cell.i >= 0);
    assert_true(split_run(&net, 495, 5));
    assert_int_equal(us_sim_set_drive_strength(b->sim, weak, 0.25), US_OK);
    assert_int_equal(us_sim_set_blockage(b->sim, blocked, 0.75), US_OK);
    assert_int_equal(us_sim_set_battery(b->sim, cell, 1234), US_OK);
    assert_true(split_run(&net, 505, 5));
    split_kill(b);
    assert_false(split_run(&net, 1000, 5));
    const split_process *c = split_add(&net, text, "r2", EXCHANGE);
    assert_true(split_run(&net, 600, 10));
    assert_int_equal(a->status, US_OK);
    for (int i = 0; i < 2; i++) {
        const us_sim *sim = i ? c->sim : a->sim;
        assert_true(us_sim_get_drive_strength(sim, weak) == 0.25);
        assert_true(us_sim_get_blockage(sim, blocked) == 0.75);
        assert_true(us_sim_get_battery(sim, cell).energy <= 1234);
        assert_true(us_sim_get_battery(sim, cell).energy > 1200);
    }
    split_close(&net);
}

// The same where the points are several stretches apart: it was seen last at 0.48 s, and the others wait for
// it at 0.52 s.
static void one_that_comes_back_finds_the_points_that_are_far_apart(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    net.n_interval = 4;
    split_process *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                  *b = split_add(&net, three(), "r2", EXCHANGE);
    assert_true(split_run(&net, 505, 5));
    split_kill(b);
    assert_false(split_run(&net, 1000, 5));
    assert_int_equal(us_sim_get_tick(a->sim), 520);
    const split_process *c = split_add(&net, three(), "r2", EXCHANGE);
    assert_true(split_run(&net, 1000, 10));
    assert_int_equal(a->status, US_OK);
    assert_int_equal(c->status, US_OK);
    assert_has(c->said, "takes up at 0.48 s");
    split_close(&net);
}

// An intruder while all is well is not heard; the duplicate learns why.
static void a_second_owner_that_comes_late_is_refused(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    split_process *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                  *b = split_add(&net, three(), "r2", EXCHANGE);
    assert_true(split_run(&net, 300, 5));
    const split_process *c = split_add(&net, three(), "r2", EXCHANGE);
    split_run(&net, 1000, 5);
    assert_int_equal(c->status, US_ERR_NAME);
    assert_has(c->err.message, "\"r2\" is owned twice: by this process and by process2");
    assert_int_equal(us_sim_get_tick(a->sim), 1000);
    assert_int_equal(us_sim_get_tick(b->sim), 1000);
    split_close(&net);
}

static void bytes_that_are_no_message_change_nothing(void **state) {
    (void)state;
    split_net net;
    split_open(&net);
    const split_process *one = split_add(&net, three(), NULL, 0),
                        *a = split_add(&net, three(), "r1,r3", EXCHANGE),
                        *b = split_add(&net, three(), "r2", EXCHANGE);
    uint8_t noise[600];
    for (int round = 0; round < 50; round++) {
        assert_true(split_run(&net, 10 * round + 3, 5));
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)us_random_bits(7, (uint64_t)round, i);
        // Half of them have the header of a message.
        if (round % 2) memcpy(noise, (const uint8_t[]){0, 1, 0, 0, 1, 0, 0, 0}, 8);
        usi_split_receive(a->split, noise, (size_t)round * 12, net.now_ns);
    }
    assert_true(split_same(one, a, "r1") && split_same(one, b, "r2"));
    split_close(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_that_cannot_be_meant_are_refused),
        cmocka_unit_test(a_robot_of_two_processes_stops_them),
        cmocka_unit_test(a_robot_of_nobody_is_waited_for_and_named),
        cmocka_unit_test(other_scenes_and_steps_are_named),
        cmocka_unit_test(what_a_loop_holds_together_has_one_owner),
        cmocka_unit_test(robots_that_do_not_meet_move_as_in_one_process),
        cmocka_unit_test(nobody_goes_beyond_an_exchange_point_alone),
        cmocka_unit_test(one_that_comes_back_takes_up_where_it_was_seen_last),
        cmocka_unit_test(one_that_comes_back_has_its_faults_and_its_battery),
        cmocka_unit_test(a_second_owner_that_comes_late_is_refused),
        cmocka_unit_test(bytes_that_are_no_message_change_nothing),
        cmocka_unit_test(what_is_far_apart_exchanges_less_often),
        cmocka_unit_test(one_that_comes_back_finds_the_points_that_are_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
