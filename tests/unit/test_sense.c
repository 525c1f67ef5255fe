// Sensors: what they say of a state, where they sit, and what faults do to it and to the drives behind them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/robots.h"
#include "sim/sim.h"
#include "understudy/network.h"

static const double PI = 3.14159265358979323846;
static const double G = 9.81, STEP = 1e-3;

// A turntable about the vertical with an arm that slides on it, each with a drive. On the arm, 0.5 m from the
// axis when it is drawn in, sits an inertial unit, and another one that is turned by a quarter about x.
enum { TABLE, ARM };

typedef struct rig {
    us_spec *spec;
    us_model *model;
    us_sim *sim;
    const usi_robot_model *robot;
} rig;

static int32_t add_link(us_spec *spec, const char *name) {
    us_link_def link = us_link_def_default();
    int32_t i = -1;
    link.name = name;
    link.group = 0;
    link.inertia = (us_inertia){.mass = 1, .about_com = {0.1, 0.1, 0.1}};
    assert_int_equal(us_spec_add_link(spec, &link, &i), US_OK);
    return i;
}

static void add_joint(us_spec *spec, us_joint_type type, const char *name, int32_t parent, int32_t child,
                      us_vec3 axis, double kp, double kd) {
    us_joint_def joint = us_joint_def_default(type);
    int32_t i = -1;
    joint.name = name;
    joint.group = 0;
    joint.parent = parent;
    joint.child = child;
    joint.axis = axis;
    assert_int_equal(us_spec_add_joint(spec, &joint, &i), US_OK);
    us_drive_def drive = us_drive_def_default();
    drive.name = name;
    drive.joint = i;
    drive.kp = kp;
    drive.kd = kd;
    assert_int_equal(us_spec_add_drive(spec, &drive, NULL), US_OK);
}

static void rig_init(rig *r, double rate) {
    us_error err = {0};
    memset(r, 0, sizeof *r);
    assert_int_equal(us_spec_create(NULL, &r->spec), US_OK);
    us_world_settings world = *us_spec_view_world(r->spec);
    world.gravity = us_vec3_make(0, 0, -G);
    world.step = STEP;
    assert_int_equal(us_spec_set_world(r->spec, &world), US_OK);
    us_group_def group = {.name = "r"};
    assert_int_equal(us_spec_add_group(r->spec, &group, NULL), US_OK);
    int32_t table = add_link(r->spec, "r/table"), arm = add_link(r->spec, "r/arm");
    add_joint(r->spec, US_JOINT_CONTINUOUS, "r/turn", US_WORLD, table, us_vec3_make(0, 0, 1), 0, 1000);
    add_joint(r->spec, US_JOINT_PRISMATIC, "r/slide", table, arm, us_vec3_make(1, 0, 0), 1e5, 1e3);
    us_pose X = us_pose_identity(), Y;
    X.p = us_vec3_make(0.5, 0, 0);
    Y = X;
    Y.q = us_quat_exp(us_vec3_make(PI / 2, 0, 0));
    const us_sensor_def sensors[] = {{.name = "arm_imu", .link = arm, .X_BS = X, .rate = rate},
                                     {.name = "turned_imu", .link = arm, .X_BS = Y}};
    us_network_def network = us_network_def_default();
    network.group = 0;
    network.sensors = sensors;
    network.n_sensor = 2;
    assert_int_equal(us_spec_set_network(r->spec, &network), US_OK);
    us_status status = us_model_compile(r->spec, NULL, &r->model, &err);
    if (!status) status = us_sim_create(r->model, NULL, &r->sim, &err);
    if (status) fail_msg("%s", err.message);
    r->robot = &r->model->robot[0];
}

static void rig_fini(rig *r) {
    us_sim_destroy(r->sim);
    us_model_destroy(r->model);
    us_spec_destroy(r->spec);
}

static void run(rig *r, int n) {
    for (int i = 0; i < n; i++)
        assert_int_equal(us_sim_step(r->sim, NULL), US_OK);
}

static void near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g instead of %.17g, tolerance %.3g", value, expected, tolerance);
}

static int32_t imu(const rig *r, const char *name) {
    int32_t i = usi_robot_find_sensor(r->model, r->robot, "imu", name);
    assert_true(i >= 0);
    return i;
}

static void command(rig *r, double rate, double slide) {
    const double velocity[2] = {rate, 0}, position[2] = {0, slide};
    assert_int_equal(
        us_sim_step(r->sim, &(us_command){.drive_velocity = velocity, .drive_position = position}), US_OK);
}

// ---------------------------------------------------------------- where they sit

static void a_unit_on_a_turntable_feels_rate_pull_and_gravity_at_its_own_place(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 0);
    assert_int_equal(r.robot->n_sensor, 3);
    assert_int_equal(r.model->n_encoder, 2);
    command(&r, 3, 0.2);
    run(&r, 3000);
    // Towards the axis with w^2 r. A drive of 1e5 N/m gives way by 6.3 N / 1e5, and the chord of a step lags
    // the arc by half of the turn in it, w h / 2: 0.15 % of the pull across.
    const double *x = usi_sim_reading(r.sim, imu(&r, "arm_imu")), w = us_sim_view_v(r.sim)[TABLE],
                 radius = 0.5 + us_sim_view_q(r.sim)[ARM], pull = w * w * radius;
    near(radius, 0.7, 1e-3);
    near(w, 3, 1e-9);
    near(x[4], 0, 1e-12);
    near(x[5], 0, 1e-12);
    near(x[6], w, 1e-12);
    near(x[7], -pull, 1e-4 * pull);
    near(x[8], 0, 1.6e-3 * pull);
    near(x[9], G, 1e-9);
    // Its orientation is the table's.
    near(fabs(x[0]), fabs(cos(0.5 * us_sim_view_q(r.sim)[TABLE])), 1e-9);
    // The other one, at the same place: its y is up and its z is against the other's y.
    const double *y = usi_sim_reading(r.sim, imu(&r, "turned_imu"));
    near(y[7], x[7], 1e-9);
    near(y[8], x[9], 1e-9);
    near(y[9], -x[8], 1e-9);
    near(y[5], x[6], 1e-9);
    // The one at the root is on the axis.
    const double *root = usi_sim_reading(r.sim, imu(&r, "imu"));
    near(root[7], 0, 1e-9);
    near(root[8], 0, 1e-9);
    near(root[9], G, 1e-9);
    near(root[6], w, 1e-12);
    rig_fini(&r);
}

static void a_unit_feels_the_jerk_of_a_joint_that_starts(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 0);
    command(&r, 0, 0.1);
    // The arm alone moves: along x by the change of its velocity over the step.
    const double *x = usi_sim_reading(r.sim, imu(&r, "arm_imu"));
    near(x[7], us_sim_view_v(r.sim)[ARM] / STEP, 1e-6);
    assert_true(x[7] > 1);
    rig_fini(&r);
}

static void a_unit_samples_as_often_as_its_rate_says(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 100);
    const int32_t slow = imu(&r, "arm_imu"), fast = imu(&r, "turned_imu");
    command(&r, 3, 0.2);
    int n_slow = 0, n_fast = 0;
    for (int i = 1; i < 200; i++) {
        double before[2] = {usi_sim_reading(r.sim, slow)[6], usi_sim_reading(r.sim, fast)[0]};
        run(&r, 1);
        n_slow += usi_sim_reading(r.sim, slow)[6] != before[0];
        n_fast += usi_sim_reading(r.sim, fast)[0] != before[1];
    }
    assert_true(n_fast == 199);
    // Once the table turns evenly its rate changes no more, to the last bit.
    assert_true(n_slow >= 3 && n_slow <= 20);
    rig_fini(&r);
}

// The samples in between are left out, and that changes none of the others.
static void a_unit_with_a_rate_reads_the_same_bits_when_it_is_due(void **state) {
    (void)state;
    static const double rates[] = {1, 7, 30, 100, 333, 999, 1000};
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
        rig slow, fast;
        rig_init(&slow, rates[k]);
        rig_init(&fast, 0);
        const int32_t unit = imu(&slow, "arm_imu");
        int64_t n = 0;
        command(&slow, 3, 0.2);
        command(&fast, 3, 0.2);
        for (int i = 1; i < 1100; i++) {
            run(&slow, 1);
            run(&fast, 1);
            if (slow.sim->now.sensor[unit].tick != us_sim_get_tick(slow.sim)) continue;
            assert_memory_equal(usi_sim_reading(slow.sim, unit), usi_sim_reading(fast.sim, unit),
                                10 * sizeof(double));
            n++;
        }
        // As many as fit into 1.1 s, give or take the phase.
        assert_true(fabs((double)n - 1.1 * rates[k]) <= 2);
        rig_fini(&slow);
        rig_fini(&fast);
    }
}

// ---------------------------------------------------------------- faults

static void a_stuck_encoder_lets_its_drive_give_the_same_torque_whatever_the_joint_does(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 0);
    command(&r, 0, 0);
    run(&r, 100);
    const int32_t encoder = r.robot->first_encoder + ARM;
    const double held = usi_sim_read_encoder(r.sim, encoder).q;
    r.sim->now.encoder[encoder].is_stuck = 1;
    r.sim->now.encoder[encoder].held = held;
    command(&r, 0, 0.01);
    for (int i = 0; i < 50; i++) {
        near(us_sim_view_torque(r.sim)[ARM], 1e5 * (0.01 - held), 1e-6);
        near(usi_sim_read_encoder(r.sim, encoder).q, held, 0);
        near(usi_sim_read_encoder(r.sim, encoder).v, 0, 0);
        run(&r, 1);
    }
    // It has gone far beyond what was commanded: 1000 N on 1 kg for 50 ms.
    near(us_sim_view_q(r.sim)[ARM], 0.5 * 1000 * 0.051 * 0.051, 0.1);
    rig_fini(&r);
}

static void an_offset_moves_the_joint_and_a_drift_goes_on(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 0);
    const int32_t encoder = r.robot->first_encoder + ARM;
    command(&r, 0, 0.1);
    run(&r, 500);
    near(us_sim_view_q(r.sim)[ARM], 0.1, 1e-6);
    r.sim->now.encoder[encoder].offset = 0.02;
    near(usi_sim_read_encoder(r.sim, encoder).q, 0.12, 1e-6);
    run(&r, 500);
    near(us_sim_view_q(r.sim)[ARM], 0.08, 1e-6);
    near(usi_sim_read_encoder(r.sim, encoder).q, 0.1, 1e-6);
    r.sim->now.encoder[encoder].drift = 0.05;
    r.sim->now.encoder[encoder].since = us_sim_get_tick(r.sim);
    run(&r, 500);
    // The loop follows the reading, whose rate it sees as its own.
    near(usi_encoder_offset(&r.sim->now.encoder[encoder], STEP, us_sim_get_tick(r.sim)), 0.02 + 0.05 * 0.5,
         1e-9);
    near(usi_sim_read_encoder(r.sim, encoder).q, 0.1, 1e-4);
    near(us_sim_view_v(r.sim)[ARM], -0.05, 1e-3);
    rig_fini(&r);
}

static void a_bias_and_a_stuck_unit_change_nothing_but_what_is_read(void **state) {
    (void)state;
    rig r, plain;
    rig_init(&r, 0);
    rig_init(&plain, 0);
    const int32_t unit = imu(&r, "arm_imu");
    // Of the force, then of the angular velocity; an offset for each reading, of which the first four turn
    // it.
    const double bias[6] = {1, 2, 3, 0.1, 0.2, 0.3};
    double *offset = r.sim->now.sensor_part + usi_sensor_part_at(&r.model->sensor[unit], USI_SENSOR_OFFSET);
    memcpy(offset + 7, bias, 3 * sizeof *bias);
    memcpy(offset + 4, bias + 3, 3 * sizeof *bias);
    command(&r, 3, 0.1);
    command(&plain, 3, 0.1);
    run(&r, 100);
    run(&plain, 100);
    const double *x = usi_sim_reading(r.sim, unit), *y = usi_sim_reading(plain.sim, unit);
    for (int i = 0; i < 3; i++) {
        near(x[7 + i] - y[7 + i], bias[i], 1e-12);
        near(x[4 + i] - y[4 + i], bias[3 + i], 1e-12);
    }
    r.sim->now.sensor[unit].is_stuck = 1;
    double held[10];
    memcpy(held, x, sizeof held);
    run(&r, 100);
    run(&plain, 100);
    assert_memory_equal(usi_sim_reading(r.sim, unit), held, sizeof held);
    assert_memory_equal(us_sim_view_q(r.sim), us_sim_view_q(plain.sim), 2 * sizeof(double));
    rig_fini(&r);
    rig_fini(&plain);
}

// ---------------------------------------------------------------- state

static void readings_and_faults_are_in_the_snapshot(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 30);
    command(&r, 2, 0.1);
    run(&r, 50);
    r.sim->now.encoder[r.robot->first_encoder + ARM].drift = 0.1;
    run(&r, 25);
    size_t length = 0;
    us_sim_save(r.sim, NULL, 0, &length);
    void *snapshot = malloc(length);
    assert_int_equal(us_sim_save(r.sim, snapshot, length, NULL), US_OK);
    run(&r, 100);
    uint64_t hash = us_sim_hash(r.sim);
    us_sim_poison(r.sim);
    assert_int_equal(us_sim_restore(r.sim, snapshot, length), US_OK);
    run(&r, 100);
    assert_true(us_sim_hash(r.sim) == hash);
    free(snapshot);
    rig_fini(&r);
}

static void a_state_that_is_set_is_seen_at_once(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 0);
    const double q = 0.3, v = 0;
    run(&r, 10);
    assert_int_equal(us_sim_set_joint(r.sim, (us_joint){ARM}, &q, &v), US_OK);
    near(usi_sim_read_encoder(r.sim, r.robot->first_encoder + ARM).q, 0.3, 0);
    const double all_q[2] = {1, -0.2}, all_v[2] = {2, 0};
    assert_int_equal(us_sim_set_state(r.sim, all_q, all_v), US_OK);
    near(usi_sim_read_encoder(r.sim, r.robot->first_encoder + TABLE).q, 1, 0);
    near(usi_sim_read_encoder(r.sim, r.robot->first_encoder + TABLE).v, 2, 0);
    near(usi_sim_reading(r.sim, imu(&r, "arm_imu"))[6], 2, 1e-12);
    near(usi_sim_reading(r.sim, imu(&r, "arm_imu"))[9], G, 1e-12);
    assert_int_equal(us_sim_reset(r.sim), US_OK);
    near(usi_sim_read_encoder(r.sim, r.robot->first_encoder + ARM).q, 0, 0);
    rig_fini(&r);
}

static void another_model_with_the_same_robot_goes_on_with_its_sensors(void **state) {
    (void)state;
    rig r;
    us_model *model = NULL;
    rig_init(&r, 0);
    command(&r, 2, 0.1);
    run(&r, 200);
    r.sim->now.encoder[r.robot->first_encoder + ARM].offset = 0.01;
    run(&r, 1);
    double before[10];
    memcpy(before, usi_sim_reading(r.sim, imu(&r, "arm_imu")), sizeof before);
    assert_int_equal(us_model_compile(r.spec, NULL, &model, NULL), US_OK);
    uint64_t hash = us_sim_hash(r.sim);
    assert_int_equal(us_sim_replace(r.sim, model, NULL), US_OK);
    assert_true(us_sim_hash(r.sim) == hash);
    assert_memory_equal(usi_sim_reading(r.sim, imu(&r, "arm_imu")), before, sizeof before);
    us_model_destroy(r.model);
    r.model = model;
    rig_fini(&r);
}

static void sensors_that_cannot_be_are_refused(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 0);
    us_network_def network = *us_spec_view_network(r.spec, 0);
    network.n_topic = 0;
    const us_sensor_def good = network.sensors[0];
    us_sensor_def bad[2] = {good, good};
    network.sensors = bad;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_NAME);
    network.n_sensor = 1;
    bad[0].name = "odom";
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_NAME);
    // With a pose of its own it has a frame of its own, and "arm" is a link's.
    bad[0].name = "arm";
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_NAME);
    bad[0].name = "1 imu";
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_NAME);
    bad[0] = good;
    bad[0].link = 99;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_ARG);
    bad[0] = good;
    bad[0].rate = -1;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_VALUE);
    bad[0] = good;
    bad[0].settings = &(const us_sensor_setting){"spin-noise", NAN};
    bad[0].n_setting = 1;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_VALUE);
    bad[0] = good;
    bad[0].X_BS.q.w = 2;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_VALUE);
    network.n_sensor = 33;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_ERR_LIMIT);
    network.n_sensor = 1;
    bad[0] = good;
    assert_int_equal(us_spec_set_network(r.spec, &network), US_OK);
    rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_on_a_turntable_feels_rate_pull_and_gravity_at_its_own_place),
        cmocka_unit_test(a_unit_feels_the_jerk_of_a_joint_that_starts),
        cmocka_unit_test(a_unit_samples_as_often_as_its_rate_says),
        cmocka_unit_test(a_unit_with_a_rate_reads_the_same_bits_when_it_is_due),
        cmocka_unit_test(a_stuck_encoder_lets_its_drive_give_the_same_torque_whatever_the_joint_does),
        cmocka_unit_test(an_offset_moves_the_joint_and_a_drift_goes_on),
        cmocka_unit_test(a_bias_and_a_stuck_unit_change_nothing_but_what_is_read),
        cmocka_unit_test(readings_and_faults_are_in_the_snapshot),
        cmocka_unit_test(a_state_that_is_set_is_seen_at_once),
        cmocka_unit_test(another_model_with_the_same_robot_goes_on_with_its_sensors),
        cmocka_unit_test(sensors_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
