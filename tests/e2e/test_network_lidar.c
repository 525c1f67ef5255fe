// What a lidar says on the network: a real `understudy run` with the K10 on flat ground between walls, heard
// by a program on the same domain, and recorded.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net_peer.h"
#include "understudy/world.h"

// The ground is 1.6 m below the lidar, as far as the rover's springs let it.
#define SENSORS                                                                                         \
    "<sensor type='lidar' name='lidar' preset='hdl-32e' link='base' xyz='0.12 0 1.45' range-noise='0' " \
    "angle-noise='0' quantum='0'/>"                                                                     \
    "<sensor type='lidar' name='front' preset='scan-2d' link='base' xyz='0.4 0 0.5' range-noise='0' "   \
    "rate='20 Hz'/>"

static net_peer *peer;
static int32_t points, scan, frames;
static const char *const RECORDING = "lidar.mcap";

static int listen_to_it(void **state) {
    (void)state;
    net_write_k10("lidar.xml", SENSORS);
    unlink(RECORDING);
    peer = net_open("cyclone");
    points = net_listen(peer, "/k10/points", usi_type_point_cloud2);
    scan = net_listen(peer, "/k10/front/scan", usi_type_laser_scan);
    frames = net_listen(peer, "/tf_static", usi_type_tf_message);
    net_run("lidar.xml --headless --quiet --record %s", RECORDING);
    net_wait_match(peer, points);
    net_wait_match(peer, scan);
    const int64_t first = net_count(peer, points), other = net_count(peer, scan);
    NET_WAIT(net_count(peer, points) >= first + 12 && net_count(peer, scan) >= other + 20);
    return net_end(SIGINT) == 0 ? 0 : -1;
}

static int close_all(void **state) {
    net_close(peer);
    return net_teardown(state);
}

static float float_at(const uint8_t *bytes) {
    float x;
    memcpy(&x, bytes, sizeof x);
    return x;
}

static void clouds_have_the_layout_of_point_cloud2(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t offset;
        uint8_t type;
    } field[6] = {{"x", 0, 7},          {"y", 4, 7},     {"z", 8, 7},
                  {"intensity", 12, 7}, {"ring", 16, 4}, {"time", 18, 7}};
    const us_msg_point_cloud2 *m = net_decode(peer, points, -1);
    assert_int_equal(m->height, 32);
    assert_int_equal(m->width, 2171);
    assert_int_equal(m->point_step, 22);
    assert_int_equal(m->row_step, 22 * 2171);
    assert_int_equal(m->data._length, 22 * 2171 * 32);
    assert_false(m->is_dense);
    assert_false(m->is_bigendian);
    assert_int_equal(m->fields._length, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(m->fields._buffer[i].name, field[i].name);
        assert_int_equal(m->fields._buffer[i].offset, field[i].offset);
        assert_int_equal(m->fields._buffer[i].datatype, field[i].type);
        assert_int_equal(m->fields._buffer[i].count, 1);
    }
    assert_string_equal(m->header.frame_id, "k10/lidar");
}

static void points_lie_on_the_ground_in_rings_and_times_grow(void **state) {
    (void)state;
    const us_msg_point_cloud2 *m = net_decode(peer, points, -1);
    int n = 0;
    for (uint32_t ring = 0; ring < m->height; ring++) {
        float before = -1;
        for (uint32_t c = 0; c < m->width; c++) {
            const uint8_t *p = m->data._buffer + ring * m->row_step + c * m->point_step;
            uint16_t row;
            memcpy(&row, p + 16, sizeof row);
            assert_int_equal(row, ring);
            assert_true(float_at(p + 18) > before);
            before = float_at(p + 18);
            if (isnan(float_at(p))) continue;
            // The rover stands: the lidar is 1.45 m above the base, whose frame is on the ground.
            assert_true(fabs((double)float_at(p + 8) + 1.45) < 0.06);
            assert_true(float_at(p + 12) > 0 && float_at(p + 12) <= 255);
            n++;
        }
        assert_true(before < 0.1001f && before > 0.0999f);
    }
    // 16 of 32 rings look down steeply enough to get something back.
    assert_true(n > 16 * 2100);
}

static void scans_follow_rep_117(void **state) {
    (void)state;
    const us_msg_laser_scan *m = net_decode(peer, scan, -1);
    assert_string_equal(m->header.frame_id, "k10/front");
    assert_int_equal(m->ranges._length, 1081);
    assert_int_equal(m->intensities._length, 1081);
    assert_true(fabs((double)m->angle_min + 0.75 * acos(-1)) < 1e-6);
    assert_true(fabs((double)m->angle_max - 0.75 * acos(-1)) < 1e-5);
    assert_true(fabs((double)m->angle_increment - acos(-1) / 720) < 1e-8);
    assert_true(fabs((double)m->scan_time - 0.05) < 1e-7);
    assert_true(fabs((double)m->time_increment - 0.05 / 1440) < 1e-9);
    assert_true(m->range_min == 0.1f && m->range_max == 30);
    for (uint32_t i = 0; i < m->ranges._length; i++) {
        const float r = m->ranges._buffer[i];
        assert_false(isnan(r));
        assert_true(isinf(r) || (r >= 0.1f && r <= 30.1f));
    }
    // Straight ahead there is nothing, and behind is the rover itself.
    assert_true(m->ranges._buffer[540] == INFINITY);
}

// Best effort may lose samples on a machine that is busy, but none that is written is lost on the way to the
// recorder: turn after turn, ten to the second, but for those that a run that was behind has left out.
static void every_turn_is_recorded_and_runs_again_to_the_same_bits(void **state) {
    (void)state;
    us_error err = {0};
    us_recording *recording = NULL;
    us_allocator allocator = us_allocator_default();
    if (us_recording_open(RECORDING, &allocator, &recording, &err)) fail_msg("%s", err.message);
    us_recorded message;
    bool has = true;
    int64_t n = 0, n_scan = 0, before = -1;
    while (has) {
        if (us_recording_next(recording, &message, &has, &err)) fail_msg("%s", err.message);
        if (!has) break;
        const char *topic = us_recording_get_channel(recording, message.channel).topic;
        n_scan += strcmp(topic, "/k10/front/scan") == 0;
        if (strcmp(topic, "/k10/points") != 0) continue;
        assert_true(message.length > 22 * 2171 * 32);
        const int64_t since = message.log_time - before, turns = (since + 50000000) / 100000000;
        if (before >= 0) assert_true(turns >= 1 && llabs(since - 100000000 * turns) <= 1000000);
        before = message.log_time;
        n++;
    }
    assert_true(n >= 12 && n_scan >= n);
    us_spec *spec = NULL;
    us_verify_result result;
    // Where the run was behind, the turns that were left out are in the recording as commands to the world.
    us_status status = us_spec_load("lidar.xml", NULL, &spec, &err);
    if (!status) status = us_world_verify(spec, recording, NULL, NULL, &result, &err);
    if (status) fail_msg("%s", err.message);
    us_spec_destroy(spec);
    us_recording_close(recording);
}

static void frames_and_stamps_are_those_of_the_sensor(void **state) {
    (void)state;
    const us_msg_tf_message *m = net_decode(peer, frames, -1);
    int n = 0;
    for (uint32_t i = 0; i < m->transforms._length; i++) {
        const us_msg_transform_stamped *t = &m->transforms._buffer[i];
        if (strcmp(t->child_frame_id, "k10/lidar") != 0) continue;
        assert_string_equal(t->header.frame_id, "k10/base");
        assert_true(fabs(t->transform.translation.z - 1.45) < 1e-12);
        n++;
    }
    assert_int_equal(n, 1);
    // A turn is stamped with its beginning: a multiple of 46.08 us, just after one of 0.1 s.
    for (int64_t k = 0; k < net_count(peer, points); k++) {
        const double stamp = net_stamp(peer, points, k), turn = floor(stamp / 0.1 + 1e-6);
        assert_true(stamp - 0.1 * turn < 46.08e-6 + 1e-8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clouds_have_the_layout_of_point_cloud2),
        cmocka_unit_test(points_lie_on_the_ground_in_rings_and_times_grow),
        cmocka_unit_test(scans_follow_rep_117),
        cmocka_unit_test(frames_and_stamps_are_those_of_the_sensor),
        cmocka_unit_test(every_turn_is_recorded_and_runs_again_to_the_same_bits),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, listen_to_it, close_all);
}
