// Clouds of lidars on the network: the points that calls give, in the frame of each shot or in that of the
// beginning of the turn.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/tap.h"
#include "proxy_world.h"
#include "sense/lidar_return.h"
#include "sim/sim.h"
#include "understudy/messages.h"
#include "understudy/query.h"
#include "understudy/sensing.h"

enum { MEMORY = 8 << 20, MAX_POINT = 80000 };

// The last cloud of a topic.
typedef struct listener {
    const us_proxy *proxy;
    int64_t n;
    uint32_t height, width;
    float point[MAX_POINT][4];
    _Alignas(16) char memory[MEMORY];
} listener;

static listener ear;

static void listen(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    listener *x = context;
    const void *message = NULL;
    (void)time;
    if (strcmp(usi_proxy_get_channel(x->proxy, channel).topic, "/r/points") != 0) return;
    assert_int_equal(us_message_decode(us_message_find("sensor_msgs/msg/PointCloud2"), bytes, length,
                                       x->memory, MEMORY, &message, NULL),
                     US_OK);
    const us_msg_point_cloud2 *c = message;
    x->height = c->height;
    x->width = c->width;
    assert_true((size_t)c->height * c->width <= MAX_POINT);
    for (uint32_t i = 0; i < c->height * c->width; i++)
        memcpy(x->point[i], c->data._buffer + (size_t)i * c->point_step, sizeof x->point[i]);
    x->n++;
}

// A carrier that drives and turns between walls; how far points of the cloud are from those of the calls, and
// how far both kinds are apart.
static void compare(const char *lidar, bool is_deskewed, double *out_off, double *out_skew) {
    static us_lidar_point raw[MAX_POINT], straight[MAX_POINT];
    char scene[1200];
    proxy_world w;
    snprintf(
        scene, sizeof scene,
        "<scene name='s' version='1'><world step='1 ms' gravity='0 0 0'>"
        "<shape type='box' size='1 40 40' xyz='8.5 0 0'/><shape type='box' size='40 1 40' xyz='0 5.5 0'/>"
        "<shape type='plane' xyz='0 0 -2'/></world>"
        "<robot name='r' file='../tests/support/carrier.urdf'><sensor type='lidar' name='lidar' link='base' "
        "rpy='5 0 20 deg' %s%s/><network namespace='r'/></robot></scene>",
        lidar, is_deskewed ? " deskew='true'" : "");
    proxy_world_init(&w, scene);
    const us_lidar k = us_model_find_lidar(w.model, "r", "lidar");
    assert_int_equal(k.i, 0);
    ear.proxy = w.proxy;
    ear.n = 0;
    usi_proxy_set_tap(w.proxy, listen, &ear);
    us_lidar_frame f;
    const double speed = 1, spin = 0.5;
    assert_int_equal(us_sim_set_joint(w.sim, us_model_find_joint(w.model, "r/slide"), NULL, &speed), US_OK);
    assert_int_equal(us_sim_set_joint(w.sim, us_model_find_joint(w.model, "r/turn"), NULL, &spin), US_OK);
    for (int i = 0; i < 2000 && ear.n < 2; i++)
        proxy_world_step(&w, 1);
    assert_int_equal(ear.n, 2);
    usi_proxy_set_tap(w.proxy, NULL, NULL);
    assert_int_equal(us_sim_get_lidar_frame(w.sim, k, false, &f, raw, MAX_POINT), US_OK);
    assert_int_equal(us_sim_get_lidar_frame(w.sim, k, true, &f, straight, MAX_POINT), US_OK);
    assert_true((uint32_t)(f.n_ring * f.n_return) == ear.height && (uint32_t)f.n_column == ear.width);
    int n = 0;
    *out_off = *out_skew = 0;
    for (int32_t i = 0; i < f.n_ring * f.n_return * f.n_column; i++) {
        const us_lidar_point *p = is_deskewed ? &straight[i] : &raw[i];
        assert_true(isnan(p->x) == isnan(ear.point[i][0]));
        if (isnan(p->x)) continue;
        const double x = (double)(p->x - ear.point[i][0]), y = (double)(p->y - ear.point[i][1]),
                     z = (double)(p->z - ear.point[i][2]);
        *out_off = fmax(*out_off, sqrt(x * x + y * y + z * z));
        *out_skew =
            fmax(*out_skew, hypot((double)(raw[i].x - straight[i].x), (double)(raw[i].y - straight[i].y)));
        n++;
    }
    assert_true(n > 300);
    proxy_world_fini(&w);
}

static const char *const lidars[] = {
    "preset='hdl-32e' max-range='20 m' reach='0'",
    "preset='os1-32' max-range='20 m' reach='0'",
    "pattern='grid' window='40 40 deg' resolution='2 2 deg' period='0.2 ms' max-range='20 m'",
};

static void points_are_those_of_the_calls(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        double off, skew;
        compare(lidars[k], false, &off, &skew);
        assert_true(off == 0 && skew > 0.01);
    }
}

// Between the first and the last beam of a group, 36 us, shares of the time leave out accelerations and turns
// of second order, some nanometres; floats hold 20 m to 2 um.
static void points_are_straight_when_that_is_asked_for(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        double off, skew;
        compare(lidars[k], true, &off, &skew);
        if (!(off < 5e-6 && skew > 0.01)) fail_msg("%s: off by %g m of %g", lidars[k], off, skew);
    }
}

// ---------------------------------------------------------------- truth

// How far a cloud's points are from the walls of a room, and how many are on them.
typedef struct room_listener {
    const us_proxy *proxy;
    const char *topic;
    int n_cloud, n_point, n_none;
    double off;
    _Alignas(16) char memory[MEMORY];
} room_listener;

static room_listener robots, truths;

static void look_at_room(room_listener *x, const void *bytes, size_t length) {
    const void *message = NULL;
    assert_int_equal(us_message_decode(us_message_find("sensor_msgs/msg/PointCloud2"), bytes, length,
                                       x->memory, MEMORY, &message, NULL),
                     US_OK);
    const us_msg_point_cloud2 *c = message;
    x->n_cloud++;
    x->n_point = x->n_none = 0;
    x->off = 0;
    for (uint32_t i = 0; i < c->height * c->width; i++) {
        float p[3];
        memcpy(p, c->data._buffer + (size_t)i * c->point_step, sizeof p);
        if (isnan(p[0])) {
            x->n_none++;
            continue;
        }
        // Walls at 3 m ahead and behind, 2 m left and right, 1 m below and above.
        const double out = fmax(fmax(fabs((double)p[0]) - 3, fabs((double)p[1]) - 2), fabs((double)p[2]) - 1);
        x->off = fmax(x->off, fabs(out));
        x->n_point++;
    }
}

static void listen_to_both(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    const char *topic = usi_proxy_get_channel(robots.proxy, channel).topic;
    (void)context, (void)time;
    if (strcmp(topic, robots.topic) == 0) look_at_room(&robots, bytes, length);
    if (strcmp(topic, truths.topic) == 0) look_at_room(&truths, bytes, length);
}

// The truth of a cloud has no noise, no faults and no latency; the robot's has all three.
static void the_truth_of_a_cloud_is_exact(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(
        &w,
        "<scene name='s' version='1'><world step='1 ms' gravity='0 0 0'>"
        "<shape type='box' size='1 20 20' xyz='3.5 0 0'/><shape type='box' size='1 20 20' xyz='-3.5 0 0'/>"
        "<shape type='box' size='20 1 20' xyz='0 2.5 0'/><shape type='box' size='20 1 20' xyz='0 -2.5 0'/>"
        "<shape type='box' size='20 20 1' xyz='0 0 1.5'/><shape type='box' size='20 20 1' xyz='0 0 -1.5'/>"
        "</world><robot name='r' file='../tests/support/carrier.urdf'><sensor type='lidar' name='lidar' "
        "link='base' preset='os1-32' latency='50 ms' max-range='20 m'/><network namespace='r'/></robot>"
        "</scene>");
    robots.proxy = truths.proxy = w.proxy;
    robots.topic = "/r/points";
    truths.topic = "/understudy/truth/r/lidar";
    usi_proxy_set_tap(w.proxy, listen_to_both, NULL);
    proxy_world_step(&w, 120);
    // A turn takes 100 ms; the robot has it 50 ms later.
    assert_int_equal(truths.n_cloud, 1);
    assert_int_equal(robots.n_cloud, 0);
    proxy_world_step(&w, 100);
    assert_int_equal(truths.n_cloud, 2);
    assert_int_equal(robots.n_cloud, 1);
    assert_int_equal(truths.n_none, 0);
    assert_true(truths.n_point == 32 * 1024 && truths.off < 2e-6);
    assert_true(robots.n_point > 30000 && robots.off > 0.02);
    // A fault that blinds the robot's leaves the truth whole.
    us_sensor_fault noisy = us_sensor_fault_default();
    const us_sensor sensor = us_model_find_sensor(w.model, "r", "lidar");
    noisy.noise = 5;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, sensor, &noisy), US_OK);
    w.sim->now.sensor[sensor.i].offset[USI_LIDAR_FAULT] = USI_LIDAR_HAS_NO_BEAMS;
    w.sim->now.sensor[sensor.i].offset[USI_LIDAR_FIRST] = 4;
    w.sim->now.sensor[sensor.i].offset[USI_LIDAR_SECOND] = 11;
    proxy_world_step(&w, 300);
    assert_true(truths.n_point == 32 * 1024 && truths.off < 2e-6);
    assert_true(robots.n_none >= 8 * 1024 && robots.off > 0.1);
    usi_proxy_set_tap(w.proxy, NULL, NULL);
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_those_of_the_calls),
        cmocka_unit_test(points_are_straight_when_that_is_asked_for),
        cmocka_unit_test(the_truth_of_a_cloud_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
