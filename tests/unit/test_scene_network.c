// What a scene says about the network: what is read, what is filled in, what is warned of, and what edits of
// the spec make of it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "understudy/network.h"

// Products of two numbers as written, such as 500 Wh * 3600: exact or one rounding.
static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-14 * fabs(want))) fail_msg("%.17g rather than %.17g", got, want);
}

static us_spec *load(const char *text) {
    us_spec *spec = NULL;
    us_error err;
    // parts/cart.urdf: left, right and front roll, steer steers front, lift slides.
    us_status status =
        us_spec_load_text(text, strlen(text), US_SOURCE_DIR "/tests/bad/scene/inline.xml", NULL, &spec, &err);
    if (status) {
        char message[1500];
        us_error_format(&err, message, sizeof message);
        fail_msg("%s", message);
    }
    return spec;
}

#define DRIVES                                                                                             \
    "<drive joint='left' kd='1'/><drive joint='right' kd='1'/><drive joint='steer' kp='1' kd='1'/><drive " \
    "joint='front' kd='1'/><drive joint='lift' "                                                           \
    "kp='1' kd='1'/>"

// A scene with one robot that has all drives and `inside`.
static us_spec *load_cart(const char *inside) {
    char text[4000];
    int n = snprintf(
        text, sizeof text,
        "<scene version='1'><robot name='cart' file='parts/cart.urdf' base='floating'>%s%s</robot></scene>",
        DRIVES, inside);
    assert_true(n > 0 && n < (int)sizeof text);
    return load(text);
}

static int32_t drive(const us_spec *spec, const char *name) {
    int32_t i = us_spec_find_drive(spec, name);
    assert_true(i >= 0);
    return i;
}

static int n_warning(const us_spec *spec) { return us_spec_get_counts(spec).n_warning; }

static void one_warning(const us_spec *spec, const char *part) {
    assert_int_equal(n_warning(spec), 1);
    const us_error *w = us_spec_view_warning(spec, 0);
    if (!strstr(w->message, part)) fail_msg("\"%s\" is not in \"%s\"", part, w->message);
    assert_true(w->remedy[0] != 0 && w->line > 0);
}

// Of the first topic of a source; -1: there is none.
static double rate_of(const us_network_def *d, const char *source) {
    for (int32_t i = 0; i < d->n_topic; i++) {
        if (strcmp(d->topics[i].source, source) == 0) return d->topics[i].rate;
    }
    return -1;
}

// ---------------------------------------------------------------- reading

static void a_robot_that_says_nothing_speaks_under_its_own_name_with_every_default(void **state) {
    (void)state;
    us_spec *spec = load_cart("");
    const us_network_def *d = us_spec_view_network(spec, 0);
    assert_non_null(d);
    assert_int_equal(d->group, 0);
    assert_false(d->is_off);
    assert_string_equal(d->namespace_, "cart");
    assert_string_equal(d->frame_prefix, "cart/");
    assert_string_equal(d->node, "driver");
    assert_string_equal(d->base_frame, "cart/base");
    near(d->timeout, 0.5);
    assert_true(d->has_services);
    assert_false(d->is_stamped);
    assert_int_equal(d->locomotion, US_LOCOMOTION_NONE);
    assert_int_equal(d->n_wheel + d->n_motor + d->motor_port, 0);
    near(d->battery_capacity, 0);
    near(d->uplink.delay + d->uplink.loss + d->downlink.delay + d->downlink.bandwidth, 0);
    near(rate_of(d, "imu"), 100);
    near(rate_of(d, "odom"), 50);
    near(rate_of(d, "navigator"), 5);
    near(us_spec_get_clock_rate(spec), 200);
    assert_non_null(strstr(d->file, "inline.xml"));
    assert_int_equal(n_warning(spec), 0);
    us_spec_destroy(spec);
}

static void the_rover_of_the_first_scene_is_read_as_it_is_written(void **state) {
    (void)state;
    us_spec *spec = NULL;
    assert_int_equal(us_spec_load(US_SOURCE_DIR "/scenes/default.xml", NULL, &spec, NULL), US_OK);
    const us_network_def *d = us_spec_view_network(spec, 0);
    assert_string_equal(d->namespace_, "k10");
    assert_string_equal(d->frame_prefix, "k10/");
    assert_string_equal(d->base_frame, "k10/base");
    assert_int_equal(d->locomotion, US_LOCOMOTION_ALL_WHEEL);
    assert_int_equal(d->n_wheel, 4);
    assert_int_equal(d->wheels[1].drive, drive(spec, "k10/front_right_drive"));
    assert_int_equal(d->wheels[2].steer, drive(spec, "k10/rear_left_steer"));
    near(d->wheels[3].radius, 0.18);
    near(d->max_speed, 0.9);
    near(d->battery_capacity, 500 * 3600);
    near(d->battery_idle, 40);
    near(d->battery_voltage, 48);
    assert_int_equal(d->motor_port, 5010);
    assert_int_equal(d->n_motor, 8);
    assert_string_equal(d->motors[0].name, "FLDR");
    assert_int_equal(d->motors[7].drive, drive(spec, "k10/rear_right_steer"));
    // Only robots are on the network.
    for (int32_t i = 1; i < us_spec_get_counts(spec).n_group; i++)
        assert_null(us_spec_view_network(spec, i));
    us_spec_destroy(spec);
}

static void lines_of_the_link_are_read_and_checked(void **state) {
    (void)state;
    us_spec *spec = load_cart(
        "<motors port='5010' counts='500'><motor name='LIFT' joint='lift'/>"
        "<line name='LIMI' type='digital-in' value='joint.position' joint='lift' threshold='0.4'/>"
        "<line name='VELO' type='analog-in' value='joint.velocity' joint='left' scale='2' offset='-1'/>"
        "<line name='LAMP' type='digital-out'/></motors>");
    us_network_def d = *us_spec_view_network(spec, 0);
    near(d.motor_counts, 500);
    assert_int_equal(d.n_line, 3);
    assert_string_equal(d.lines[0].name, "LIMI");
    assert_int_equal(d.lines[0].kind, US_LINE_DIGITAL_IN);
    assert_int_equal(d.lines[0].value, US_LINE_JOINT_POSITION);
    assert_int_equal(d.lines[0].drive, drive(spec, "cart/lift"));
    near(d.lines[0].threshold, 0.4);
    near(d.lines[1].scale, 2);
    near(d.lines[1].offset, -1);
    assert_int_equal(d.lines[2].kind, US_LINE_DIGITAL_OUT);
    assert_int_equal(d.lines[2].drive, -1);
    // By calls: what a file could not say either.
    us_line_def line = d.lines[1];
    d.lines = &line;
    d.n_line = 1;
    assert_int_equal(us_spec_set_network(spec, &d), US_OK);
    line.scale = NAN;
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_VALUE);
    line = (us_line_def){
        .name = "VBAT", .kind = US_LINE_ANALOG_IN, .value = US_LINE_BATTERY_VOLTAGE, .drive = -1};
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_NAME);
    line = (us_line_def){.name = "LAMP", .kind = US_LINE_DIGITAL_IN, .drive = -1};
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_ARG);
    line = (us_line_def){.name = "L", .kind = US_LINE_DIGITAL_OUT, .drive = -1};
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_NAME);
    d.n_line = 33;
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_LIMIT);
    us_spec_destroy(spec);
}

static void everything_that_can_be_written_is_read_in_si_units(void **state) {
    (void)state;
    us_spec *spec = load_cart(
        "<network namespace='mars/cart' frame-prefix='c_' node='brain' base='fork' timeout='1500 ms' "
        "services='true' cmd-vel='TwistStamped'>"
        "<topic name='odom' rate='20 Hz'/><topic name='imu/data' rate='0.4 kHz'/><topic name='tf' rate='0'/>"
        "<uplink delay='1.3 s' jitter='100 ms' loss='0.02' bandwidth='1.5 kB/s' outages='10 20 50 60 s'/>"
        "<downlink delay='2 s' outages='1 min 90 s'/>"
        "<timing clock='wall' offset='-3 ms' drift='2e-5' delay='1.5 ms' jitter='250 us'/></network>"
        "<locomotion type='ackermann' max-speed='3.6 km/h' max-turn='90 deg/s' max-acceleration='0.5 m/s^2'>"
        "<wheel drive='left' radius='20 cm'/><wheel drive='right' radius='20 cm'/>"
        "<wheel drive='front' steer='steer' radius='100 mm'/></locomotion>"
        "<battery capacity='2 kWh' idle='0.1 kW' voltage='36000 mV'/>"
        "<motors port='6000' rate='10 Hz'><motor name='a-1.' joint='lift'/></motors>");
    const us_network_def *d = us_spec_view_network(spec, 0);
    assert_string_equal(d->namespace_, "mars/cart");
    assert_string_equal(d->frame_prefix, "c_");
    assert_string_equal(d->node, "brain");
    assert_string_equal(d->base_frame, "cart/fork");
    near(d->timeout, 1.5);
    assert_true(d->has_services);
    assert_true(d->is_stamped);
    near(rate_of(d, "odom"), 20);
    near(rate_of(d, "imu"), 400);
    near(rate_of(d, "tf"), 0);
    near(rate_of(d, "truth"), 50);
    near(d->uplink.delay, 1.3);
    near(d->uplink.jitter, 0.1);
    near(d->uplink.loss, 0.02);
    near(d->uplink.bandwidth, 1500);
    assert_int_equal(d->uplink.n_outage, 2);
    const double up[] = {10, 20, 50, 60};
    for (int i = 0; i < 4; i++)
        near(d->uplink.outages[i], up[i]);
    near(d->downlink.delay, 2);
    near(d->downlink.bandwidth, 0);
    assert_true(d->timing.is_wall);
    near(d->timing.offset, -0.003);
    near(d->timing.drift, 2e-5);
    near(d->timing.delay, 0.0015);
    near(d->timing.jitter, 250e-6);
    assert_int_equal(d->downlink.n_outage, 1);
    near(d->downlink.outages[0], 60);
    near(d->downlink.outages[1], 90);
    assert_int_equal(d->locomotion, US_LOCOMOTION_ACKERMANN);
    near(d->max_speed, 1);
    near(d->max_turn, 1.57079632679489662);
    near(d->max_acceleration, 0.5);
    assert_int_equal(d->wheels[0].steer, -1);
    assert_int_equal(d->wheels[2].drive, drive(spec, "cart/front"));
    assert_int_equal(d->wheels[2].steer, drive(spec, "cart/steer"));
    near(d->wheels[0].radius, 0.2);
    near(d->wheels[2].radius, 0.1);
    near(d->battery_capacity, 7.2e6);
    near(d->battery_idle, 100);
    near(d->battery_voltage, 36);
    assert_string_equal(d->motors[0].name, "a-1.");
    near(d->motor_rate, 10);
    assert_int_equal(n_warning(spec), 0);
    us_spec_destroy(spec);
}

static void the_schema_knows_every_topic_and_every_kind_of_locomotion(void **state) {
    (void)state;
    static const char *const topics[] = {"joint_states",
                                         "odom",
                                         "tf",
                                         "tf_static",
                                         "imu/data",
                                         "robot_description",
                                         "battery_state",
                                         "diagnostics",
                                         "truth",
                                         "motor_group/status",
                                         "locomotor/status",
                                         "pose_estimator/status",
                                         "navigator/status"};
    // The last six are those of lidars, of other sensors and of cameras, which a cart has none of.
    enum { N_OWN = sizeof topics / sizeof *topics };
    assert_non_null(us_topic_source_view(N_OWN + 5));
    assert_null(us_topic_source_view(N_OWN + 6));
    for (int i = 0; i < N_OWN; i++) {
        char inside[200];
        snprintf(inside, sizeof inside, "<network><topic name='%s' rate='7 Hz'/></network>", topics[i]);
        us_spec *spec = load_cart(inside);
        for (int k = 0; k < N_OWN; k++) {
            const us_topic_source *s = us_topic_source_view(k);
            near(rate_of(us_spec_view_network(spec, 0), s->name), k == i ? 7 : s->rate);
        }
        us_spec_destroy(spec);
    }
    assert_null(us_topic_source_view(-1));
    const char *const wheels[US_LOCOMOTION_COUNT] = {
        NULL, "<wheel drive='left' radius='1'/><wheel drive='right' radius='1'/>",
        "<wheel drive='left' radius='1'/><wheel drive='front' steer='steer' radius='1'/>",
        "<wheel drive='left' steer='right' radius='1'/><wheel drive='front' steer='steer' radius='1'/>"};
    for (int i = 1; i < US_LOCOMOTION_TRIPOD; i++) {
        char inside[400];
        snprintf(inside, sizeof inside, "<locomotion type='%s'>%s</locomotion>",
                 us_locomotion_name((us_locomotion)i), wheels[i]);
        us_spec *spec = load_cart(inside);
        // In the last of them "right" steers, and its drive has no kp.
        assert_int_equal(n_warning(spec), i == US_LOCOMOTION_ALL_WHEEL);
        assert_int_equal(us_spec_view_network(spec, 0)->locomotion, i);
        us_spec_destroy(spec);
    }
    assert_string_equal(us_locomotion_name(US_LOCOMOTION_COUNT), "?");
}

// The walker of models/ with a drive for each joint, and `how` among the attributes of its <locomotion>.
static us_spec *load_walker(const char *how) {
    static const char *const legs[] = {"front_left",  "middle_left",  "rear_left",
                                       "front_right", "middle_right", "rear_right"};
    char text[8000];
    int n =
        snprintf(text, sizeof text,
                 "<scene version='1'><robot name='six' file='../../../models/hexapod.urdf' base='floating'>");
    for (int i = 0; i < 18; i++) {
        static const char *const parts[] = {"coxa", "femur", "tibia"};
        n += snprintf(text + n, sizeof text - (size_t)n, "<drive joint='%s_%s' kp='%d' kd='1'/>", legs[i / 3],
                      parts[i % 3], i != 17);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "<locomotion type='tripod' %s>", how);
    for (int i = 0; i < 6; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "<leg coxa='%s_coxa' femur='%s_femur' tibia='%s_tibia'/>", legs[i], legs[i], legs[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "</locomotion></robot></scene>");
    assert_true(n > 0 && n < (int)sizeof text);
    return load(text);
}

static void six_legs_make_a_tripod(void **state) {
    (void)state;
    us_spec *spec =
        load_walker("body-height='20 cm' stance='0.25 m' step-height='70 mm' step-time='1.5 s' duty='0.7'");
    const us_network_def *d = us_spec_view_network(spec, 0);
    assert_int_equal(d->locomotion, US_LOCOMOTION_TRIPOD);
    assert_int_equal(d->n_leg, 6);
    assert_int_equal(d->n_wheel, 0);
    near(d->body_height, 0.2);
    near(d->stance, 0.25);
    near(d->step_height, 0.07);
    near(d->step_time, 1.5);
    near(d->duty, 0.7);
    assert_int_equal(d->legs[1].tibia, drive(spec, "six/middle_left_tibia"));
    assert_int_equal(d->legs[5].coxa, drive(spec, "six/rear_right_coxa"));
    one_warning(spec, "tibia: the drive of \"rear_right_tibia\" has no kp");
    // An edit that takes a leg takes the gait; drives before it keep their place in the others'.
    us_spec *copy = NULL;
    assert_int_equal(us_spec_copy(spec, &copy), US_OK);
    assert_int_equal(us_spec_remove_link(copy, us_spec_find_link(copy, "six/front_left_tibia")), US_OK);
    assert_int_equal(us_spec_view_network(copy, 0)->locomotion, US_LOCOMOTION_NONE);
    assert_int_equal(us_spec_view_network(copy, 0)->n_leg, 0);
    us_spec_destroy(copy);
    us_network_def bad = *d;
    us_leg_def legs[6];
    memcpy(legs, d->legs, sizeof legs);
    bad.legs = legs;
    legs[3].femur = legs[0].coxa;
    assert_int_equal(us_spec_set_network(spec, &bad), US_ERR_VALUE);
    legs[3].femur = 99;
    assert_int_equal(us_spec_set_network(spec, &bad), US_ERR_ARG);
    memcpy(legs, us_spec_view_network(spec, 0)->legs, sizeof legs);
    bad.n_leg = 5;
    assert_int_equal(us_spec_set_network(spec, &bad), US_ERR_VALUE);
    bad.n_leg = 6;
    bad.duty = 0.5;
    assert_int_equal(us_spec_set_network(spec, &bad), US_ERR_VALUE);
    bad.duty = 0.6;
    bad.body_height = 0;
    assert_int_equal(us_spec_set_network(spec, &bad), US_ERR_VALUE);
    bad.body_height = 0.2;
    bad.locomotion = US_LOCOMOTION_NONE;
    assert_int_equal(us_spec_set_network(spec, &bad), US_ERR_VALUE);
    us_spec_destroy(spec);
    spec = load_walker("body-height='20 cm'");
    d = us_spec_view_network(spec, 0);
    near(d->step_height, 0.05);
    near(d->step_time, 1);
    near(d->duty, 0.6);
    assert_true(d->stance == 0);
    us_spec_destroy(spec);
}

static void drives_may_stand_outside_the_robot(void **state) {
    (void)state;
    us_spec *spec = load("<scene version='1'><robot name='cart' file='parts/cart.urdf'><motors "
                         "port='1'><motor name='LEFT' joint='left'/></motors></robot>"
                         "<drive joint='cart/left' kd='1'/></scene>");
    assert_int_equal(us_spec_view_network(spec, 0)->motors[0].drive, drive(spec, "cart/left"));
    us_spec_destroy(spec);
}

static void the_outermost_file_says_the_rate_of_the_clock(void **state) {
    (void)state;
    us_spec *spec = load("<scene version='1'><world clock-rate='20 Hz'/></scene>");
    near(us_spec_get_clock_rate(spec), 20);
    us_spec_destroy(spec);
    spec = load(
        "<scene version='1'><world clock-rate='0'/><include file='../../../scenes/pendulum.xml'/></scene>");
    near(us_spec_get_clock_rate(spec), 0);
    us_spec_destroy(spec);
    assert_true(isnan(us_spec_get_clock_rate(NULL)));
}

static void a_lone_robot_file_speaks_without_a_namespace(void **state) {
    (void)state;
    us_spec *spec = NULL;
    assert_int_equal(us_spec_load(US_SOURCE_DIR "/tests/bad/scene/parts/cart.urdf", NULL, &spec, NULL),
                     US_OK);
    assert_non_null(us_spec_view_network(spec, 0));
    assert_string_equal(us_spec_view_network(spec, 0)->namespace_, "");
    assert_string_equal(us_spec_view_network(spec, 0)->frame_prefix, "");
    assert_string_equal(us_spec_view_network(spec, 0)->base_frame, "base");
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- fleets

static void the_fleet_has_fifty_carts_each_under_its_own_name_with_six_topics(void **state) {
    (void)state;
    us_spec *spec = NULL;
    assert_int_equal(us_spec_load(US_SOURCE_DIR "/scenes/fleet.xml", NULL, &spec, NULL), US_OK);
    us_spec_counts n = us_spec_get_counts(spec);
    assert_int_equal(n.n_group, 50);
    assert_int_equal(n.n_drive, 200);
    assert_int_equal(n.n_warning, 0);
    for (int32_t i = 0; i < 50; i++) {
        const us_network_def *d = us_spec_view_network(spec, i);
        char name[16];
        snprintf(name, sizeof name, "r%02d", (int)i);
        assert_string_equal(d->namespace_, name);
        assert_int_equal(d->n_wheel, 4);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(d->wheels[k].drive, 4 * i + k);
            near(us_spec_view_drive(spec, d->wheels[k].drive)->kd, 4);
        }
        int n_on = 0;
        for (int k = 0; k < d->n_topic; k++) {
            n_on += d->topics[k].rate > 0;
            if (d->topics[k].rate > 0) near(d->topics[k].rate, 50);
        }
        assert_int_equal(n_on, 6);
    }
    us_spec_destroy(spec);
}

static void what_is_repeated_knows_its_count_and_the_line_in_which_it_was_written(void **state) {
    (void)state;
    us_spec *spec =
        load("<scene version='1'>\n<parameter name='n' value='2'/><parameter name='gap' value='50 cm'/>\n"
             "<repeat name='i' count='${n+1}' start='-1'>\n"
             "<object name='b${i+1}' xyz='${gap*i} 0 0'><link name='l'><inertial mass='1'/></link></object>\n"
             "<exclude a='b${i+1}/l' b='world'/></repeat>\n"
             "<repeat name='i' count='1'><object name='last'><link name='l'><inertial "
             "mass='1'/></link></object></repeat></scene>");
    us_spec_counts n = us_spec_get_counts(spec);
    assert_int_equal(n.n_group, 4);
    assert_int_equal(n.n_exclude, 3);
    for (int32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", (int)i);
        const us_group_def *g = us_spec_view_group(spec, i);
        assert_string_equal(g->name, name);
        assert_int_equal(g->line, 4);
        assert_non_null(strstr(g->file, "inline.xml"));
        near(us_spec_view_joint(spec, i)->q0[4], 0.5 * (i - 1));
        assert_int_equal(us_spec_view_exclude(spec, i)->link_a, i);
    }
    assert_string_equal(us_spec_view_group(spec, 3)->name, "last");
    us_spec_destroy(spec);
}

static void a_repeat_in_an_included_file_keeps_that_file(void **state) {
    (void)state;
    us_spec *spec = load("<scene version='1'>\n<parameter name='n' value='2'/><include "
                         "file='../../../scenes/fleet.xml'/></scene>");
    // The outermost file has the last word on parameters: two carts.
    assert_int_equal(us_spec_get_counts(spec).n_group, 2);
    assert_non_null(strstr(us_spec_view_network(spec, 1)->file, "fleet.xml"));
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- warnings

static void what_is_doubtful_becomes_a_warning(void **state) {
    (void)state;
    us_spec *spec = load_cart("<network><topic name='odom' rate='2 kHz'/></network>");
    one_warning(spec, "rate: 2000 Hz is more than one sample in each step of 0.001 s");
    near(rate_of(us_spec_view_network(spec, 0), "odom"), 2000);
    us_spec_destroy(spec);
    // One per step exactly is no more than one per step.
    spec = load("<scene version='1'><world step='3 ms' clock-rate='${1/0.003}'/></scene>");
    assert_int_equal(n_warning(spec), 0);
    us_spec_destroy(spec);
    spec = load("<scene version='1'><world step='10 ms' clock-rate='200 Hz'/></scene>");
    one_warning(spec, "clock-rate: 200 Hz");
    us_spec_destroy(spec);
    // The defaults are nobody's mistake.
    spec =
        load("<scene version='1'><world step='50 ms'/><robot name='cart' file='parts/cart.urdf'/></scene>");
    assert_int_equal(n_warning(spec), 0);
    us_spec_destroy(spec);
    spec = load("<scene version='1'><robot name='cart' file='parts/cart.urdf'><drive joint='left' "
                "kp='1'/><drive joint='right' kd='1'/>"
                "<locomotion type='skid'><wheel drive='left' radius='1'/><wheel drive='right' "
                "radius='1'/></locomotion></robot></scene>");
    one_warning(spec, "drive: the drive of \"left\" has no kd");
    us_spec_destroy(spec);
    spec = load("<scene version='1'><robot name='2-carts' file='parts/cart.urdf'/></scene>");
    one_warning(spec, "the robot's topics are under \"/_2_carts\"");
    assert_string_equal(us_spec_view_network(spec, 0)->namespace_, "_2_carts");
    assert_string_equal(us_spec_view_network(spec, 0)->frame_prefix, "2-carts/");
    us_spec_destroy(spec);
    spec = load("<scene version='1'><robot name='a' file='parts/cart.urdf'><network frame-prefix=''/></robot>"
                "<robot name='b' file='parts/cart.urdf'><network frame-prefix=''/></robot></scene>");
    one_warning(spec, "frame-prefix: that of \"a\" is the same");
    us_spec_destroy(spec);
}

static void a_robot_that_is_off_shares_its_names_with_anybody(void **state) {
    (void)state;
    us_spec *spec = load("<scene version='1'><robot name='a' file='parts/cart.urdf'><network "
                         "enabled='false'/><motors port='5010'/></robot>"
                         "<robot name='b' file='parts/cart.urdf'><network namespace='a'/><motors "
                         "port='5010'/></robot></scene>");
    assert_true(us_spec_view_network(spec, 0)->is_off);
    assert_false(us_spec_view_network(spec, 1)->is_off);
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- by calls

static void a_definition_is_copied_and_replaced_by_the_next_one(void **state) {
    (void)state;
    us_spec *spec = load_cart("");
    char name[] = "somebody";
    double outages[] = {1, 2};
    us_wheel_def wheels[] = {{drive(spec, "cart/left"), -1, 0.1}, {drive(spec, "cart/right"), -1, 0.1}};
    us_network_def d = us_network_def_default();
    d.group = 0;
    d.namespace_ = name;
    d.locomotion = US_LOCOMOTION_SKID;
    d.n_wheel = 2;
    d.wheels = wheels;
    d.uplink.n_outage = 1;
    d.uplink.outages = outages;
    assert_int_equal(us_spec_set_network(spec, &d), US_OK);
    name[0] = 'x';
    wheels[0].radius = 7;
    outages[0] = -1;
    const us_network_def *v = us_spec_view_network(spec, 0);
    assert_string_equal(v->namespace_, "somebody");
    near(v->wheels[0].radius, 0.1);
    near(v->uplink.outages[0], 1);
    d = us_network_def_default();
    d.group = 0;
    assert_int_equal(us_spec_set_network(spec, &d), US_OK);
    assert_int_equal(us_spec_view_network(spec, 0)->n_wheel, 0);
    assert_string_equal(us_spec_view_network(spec, 0)->namespace_, "cart");
    us_spec_destroy(spec);
}

static void set_topic(us_publication_def *t, const char *source, const char *name, double rate) {
    *t = (us_publication_def){source, name, rate};
}

static void what_cannot_be_is_refused_and_nothing_changes(void **state) {
    (void)state;
    us_spec *spec = load("<scene version='1'><robot name='cart' file='parts/cart.urdf'>" DRIVES "</robot>"
                         "<robot name='other' file='parts/cart.urdf'><motors port='5010'/></robot></scene>");
    us_wheel_def wheels[] = {{0, -1, 1}, {1, -1, 1}};
    us_motor_def motors[] = {{"ABCD", 0}, {"EFGH", 1}};
    double outages[] = {1, 2};
    us_network_def good = us_network_def_default();
    good.group = 0;
    good.locomotion = US_LOCOMOTION_SKID;
    good.n_wheel = 2;
    good.wheels = wheels;
    good.n_motor = 2;
    good.motors = motors;
    good.motor_port = 5011;
    good.uplink.n_outage = 1;
    good.uplink.outages = outages;
    assert_int_equal(us_spec_set_network(spec, &good), US_OK);
#define REFUSED(change, status)                                             \
    {                                                                       \
        us_network_def d = good;                                            \
        d.node = "never";                                                   \
        change;                                                             \
        assert_int_equal(us_spec_set_network(spec, &d), status);            \
        assert_string_equal(us_spec_view_network(spec, 0)->node, "driver"); \
        wheels[0] = (us_wheel_def){0, -1, 1};                               \
        motors[0] = (us_motor_def){"ABCD", 0};                              \
        outages[0] = 1;                                                     \
    }
    REFUSED(d.group = -1, US_ERR_ARG)
    REFUSED(d.group = 2, US_ERR_ARG)
    REFUSED(d.wheels = NULL, US_ERR_ARG)
    REFUSED(d.n_wheel = -1, US_ERR_ARG)
    REFUSED(d.motors = NULL, US_ERR_ARG)
    REFUSED(d.uplink.outages = NULL, US_ERR_ARG)
    REFUSED(wheels[0].drive = 99, US_ERR_ARG)
    REFUSED(wheels[0].steer = 99, US_ERR_ARG)
    REFUSED(motors[0].drive = -1, US_ERR_ARG)
    REFUSED(d.base_frame = "cart/nothing", US_ERR_ARG)
    REFUSED(d.base_frame = "other/base", US_ERR_ARG)
    REFUSED(d.locomotion = US_LOCOMOTION_COUNT, US_ERR_ARG)
    REFUSED(d.locomotion = US_LOCOMOTION_ALL_WHEEL, US_ERR_VALUE)
    REFUSED(d.locomotion = US_LOCOMOTION_NONE, US_ERR_VALUE)
    REFUSED(wheels[0].radius = 0, US_ERR_VALUE)
    REFUSED(wheels[0].radius = NAN, US_ERR_VALUE)
    us_publication_def topics[] = {{"tf", NULL, 50}, {"odom", "wheels", 1}};
    REFUSED((d.n_topic = 2, d.topics = NULL), US_ERR_ARG)
    REFUSED((d.n_topic = -1, d.topics = topics), US_ERR_ARG)
    REFUSED((d.n_topic = 129, d.topics = topics), US_ERR_LIMIT)
    set_topic(&topics[0], "tf", NULL, -1);
    REFUSED((d.n_topic = 2, d.topics = topics), US_ERR_VALUE)
    set_topic(&topics[0], "tf", NULL, NAN);
    REFUSED((d.n_topic = 2, d.topics = topics), US_ERR_VALUE)
    set_topic(&topics[0], "lidar", NULL, 1);
    REFUSED((d.n_topic = 2, d.topics = topics), US_ERR_NAME)
    set_topic(&topics[0], NULL, "name", 1);
    REFUSED((d.n_topic = 2, d.topics = topics), US_ERR_NAME)
    set_topic(&topics[0], "odom", "wheels", 1);
    REFUSED((d.n_topic = 2, d.topics = topics), US_ERR_NAME)
    set_topic(&topics[0], "odom", "a b", 1);
    REFUSED((d.n_topic = 2, d.topics = topics), US_ERR_NAME)
    REFUSED(d.timeout = INFINITY, US_ERR_VALUE)
    REFUSED(d.max_speed = -1, US_ERR_VALUE)
    REFUSED(d.uplink.loss = 1.5, US_ERR_VALUE)
    REFUSED(d.downlink.delay = NAN, US_ERR_VALUE)
    REFUSED(outages[0] = 2, US_ERR_VALUE)
    REFUSED((d.battery_capacity = 1, d.battery_voltage = 0), US_ERR_VALUE)
    REFUSED(d.motor_port = 65536, US_ERR_VALUE)
    REFUSED(d.motor_port = 5010, US_ERR_VALUE)
    REFUSED(memcpy(motors[0].name, "AB", 3), US_ERR_NAME)
    REFUSED(memcpy(motors[0].name, "ABCDE", 5), US_ERR_NAME)
    REFUSED(memcpy(motors[0].name, "EFGH", 5), US_ERR_NAME)
    REFUSED(d.namespace_ = "other", US_ERR_NAME)
    REFUSED(d.namespace_ = "a//b", US_ERR_NAME)
    REFUSED(d.namespace_ = "a/", US_ERR_NAME)
    REFUSED(d.frame_prefix = "a b", US_ERR_NAME)
    REFUSED(d.node = "a/b", US_ERR_NAME)
    REFUSED(d.uplink.n_outage = 33, US_ERR_LIMIT)
#undef REFUSED
    assert_int_equal(us_spec_set_network(NULL, &good), US_ERR_ARG);
    assert_int_equal(us_spec_set_network(spec, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_set_clock_rate(spec, -1), US_ERR_VALUE);
    assert_int_equal(us_spec_set_clock_rate(NULL, 1), US_ERR_ARG);
    assert_null(us_spec_view_network(spec, 7));
    assert_null(us_spec_view_network(NULL, 0));
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- edits

static us_spec *two_carts(void) {
    return load("<scene version='1'><world clock-rate='77 Hz'/><robot name='a' file='parts/cart.urdf'>" DRIVES
                "</robot>"
                "<robot name='b' file='parts/cart.urdf'>" DRIVES
                "<network base='fork'/><locomotion type='ackermann'><wheel drive='left' radius='1'/><wheel "
                "drive='right' radius='1'/>"
                "<wheel drive='front' steer='steer' radius='2'/></locomotion>"
                "<motors port='5010'><motor name='LEFT' joint='left'/><motor name='FRNT' "
                "joint='front'/><motor name='LIFT' joint='lift'/></motors>"
                "</robot></scene>");
}

static void a_copy_of_the_spec_has_the_same_network(void **state) {
    (void)state;
    us_spec *spec = two_carts(), *copy = NULL;
    assert_int_equal(us_spec_copy(spec, &copy), US_OK);
    us_spec_destroy(spec);
    const us_network_def *d = us_spec_view_network(copy, 1);
    assert_string_equal(d->namespace_, "b");
    assert_string_equal(d->base_frame, "b/fork");
    assert_int_equal(d->n_wheel, 3);
    assert_int_equal(d->wheels[2].steer, drive(copy, "b/steer"));
    assert_int_equal(d->n_motor, 3);
    near(us_spec_get_clock_rate(copy), 77);
    us_spec_destroy(copy);
}

static void the_network_of_a_robot_goes_with_it_and_that_of_others_follows_their_new_indices(void **state) {
    (void)state;
    us_spec *spec = two_carts();
    assert_int_equal(us_spec_remove_group(spec, 0), US_OK);
    const us_network_def *d = us_spec_view_network(spec, 0);
    assert_string_equal(d->namespace_, "b");
    assert_null(us_spec_view_network(spec, 1));
    assert_int_equal(d->wheels[2].drive, drive(spec, "b/front"));
    assert_int_equal(d->wheels[2].steer, drive(spec, "b/steer"));
    assert_int_equal(d->motors[2].drive, drive(spec, "b/lift"));
    us_spec_destroy(spec);
}

static void a_robot_that_loses_links_keeps_the_rest_of_its_wheels_and_motors(void **state) {
    (void)state;
    us_spec *spec = two_carts();
    assert_int_equal(us_spec_remove_link(spec, us_spec_find_link(spec, "b/fork")),
                     US_OK);  // and the wheel below it
    const us_network_def *d = us_spec_view_network(spec, 1);
    assert_string_equal(d->base_frame, "b/base");
    assert_int_equal(d->n_wheel, 2);
    assert_int_equal(d->wheels[1].drive, drive(spec, "b/right"));
    assert_int_equal(d->n_motor, 2);
    assert_string_equal(d->motors[1].name, "LIFT");
    assert_int_equal(d->motors[1].drive, drive(spec, "b/lift"));
    // What is left can be copied, though nobody could write an Ackermann robot without steering.
    us_spec *copy = NULL;
    assert_int_equal(us_spec_copy(spec, &copy), US_OK);
    assert_int_equal(us_spec_view_network(copy, 1)->n_wheel, 2);
    us_spec_destroy(copy);
    assert_int_equal(us_spec_remove_link(spec, us_spec_find_link(spec, "b/left_wheel")), US_OK);
    assert_int_equal(us_spec_remove_link(spec, us_spec_find_link(spec, "b/right_wheel")), US_OK);
    assert_int_equal(us_spec_view_network(spec, 1)->locomotion, US_LOCOMOTION_NONE);
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- memory

static void fail_memory_everywhere(const char *scene) {
    us_status status = US_ERR_MEMORY;
    int n = 1;
    for (; status != US_OK && n < 10000; n++) {
        test_allocator memory;
        test_allocator_init(&memory);
        memory.fail_at = n;
        us_load_def def = us_load_def_default();
        def.allocator = memory.allocator;
        us_spec *spec = NULL, *copy = NULL;
        us_error err;
        status = us_spec_load(scene, &def, &spec, &err);
        if (!status) status = us_spec_copy(spec, &copy);
        if (status) assert_int_equal(status, US_ERR_MEMORY);
        us_spec_destroy(copy);
        us_spec_destroy(spec);
        test_allocator_check(&memory);
    }
    assert_true(n > 10 && n < 10000);
}

static void memory_that_ends_anywhere_while_a_network_is_read_gives_a_clean_error(void **state) {
    (void)state;
    fail_memory_everywhere(US_SOURCE_DIR "/scenes/arm.xml");
    fail_memory_everywhere(US_SOURCE_DIR "/scenes/faults.xml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_the_link_are_read_and_checked),
        cmocka_unit_test(a_robot_that_says_nothing_speaks_under_its_own_name_with_every_default),
        cmocka_unit_test(the_rover_of_the_first_scene_is_read_as_it_is_written),
        cmocka_unit_test(everything_that_can_be_written_is_read_in_si_units),
        cmocka_unit_test(the_schema_knows_every_topic_and_every_kind_of_locomotion),
        cmocka_unit_test(six_legs_make_a_tripod),
        cmocka_unit_test(drives_may_stand_outside_the_robot),
        cmocka_unit_test(the_outermost_file_says_the_rate_of_the_clock),
        cmocka_unit_test(a_lone_robot_file_speaks_without_a_namespace),
        cmocka_unit_test(the_fleet_has_fifty_carts_each_under_its_own_name_with_six_topics),
        cmocka_unit_test(what_is_repeated_knows_its_count_and_the_line_in_which_it_was_written),
        cmocka_unit_test(a_repeat_in_an_included_file_keeps_that_file),
        cmocka_unit_test(what_is_doubtful_becomes_a_warning),
        cmocka_unit_test(a_robot_that_is_off_shares_its_names_with_anybody),
        cmocka_unit_test(a_definition_is_copied_and_replaced_by_the_next_one),
        cmocka_unit_test(what_cannot_be_is_refused_and_nothing_changes),
        cmocka_unit_test(a_copy_of_the_spec_has_the_same_network),
        cmocka_unit_test(the_network_of_a_robot_goes_with_it_and_that_of_others_follows_their_new_indices),
        cmocka_unit_test(a_robot_that_loses_links_keeps_the_rest_of_its_wheels_and_motors),
        cmocka_unit_test(memory_that_ends_anywhere_while_a_network_is_read_gives_a_clean_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
