// Topics of cameras: what pictures, depths and camera_info say, when they come, and what faults make of them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "proxy/cameras.h"
#include "proxy/proxy__robot.h"
#include "proxy/tap.h"
#include "proxy_world.h"
#include "sim/sim.h"

// What has arrived of one camera.
typedef struct heard {
    us_proxy *proxy;
    int32_t image, info, depth;  // channels
    int n_image, n_info, n_depth;
    double image_stamp[200], info_stamp[200], depth_stamp[200];
    uint32_t width, height;
    char encoding[16], frame[64], model[32];
    uint8_t picture[64 * 48 * 3];
    float distance[64 * 48];
    double k[9], d[8];
} heard;

static double stamp_of(const us_msg_header *h) { return h->stamp.sec + 1e-9 * (double)h->stamp.nanosec; }

static void on_image(heard *h, const us_msg_image *m, bool is_depth) {
    assert_int_equal(m->data._length, 64 * 48 * (is_depth ? 4 : 3));
    if (is_depth) {
        assert_string_equal(m->encoding, "32FC1");
        memcpy(h->distance, m->data._buffer, sizeof h->distance);
        h->depth_stamp[h->n_depth++] = stamp_of(&m->header);
        return;
    }
    h->width = m->width;
    h->height = m->height;
    assert_int_equal(m->step, 64 * 3);
    snprintf(h->encoding, sizeof h->encoding, "%s", m->encoding);
    snprintf(h->frame, sizeof h->frame, "%s", m->header.frame_id);
    memcpy(h->picture, m->data._buffer, sizeof h->picture);
    h->image_stamp[h->n_image++] = stamp_of(&m->header);
}

static void on_info(heard *h, const us_msg_camera_info *m) {
    assert_int_equal(m->width, 64);
    assert_int_equal(m->height, 48);
    assert_int_equal(m->d._length, 5);
    snprintf(h->model, sizeof h->model, "%s", m->distortion_model);
    memcpy(h->k, m->k, sizeof h->k);
    memcpy(h->d, m->d._buffer, 5 * sizeof *h->d);
    h->info_stamp[h->n_info++] = stamp_of(&m->header);
}

static void on_sample(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    static uint64_t memory[8192];
    heard *h = context;
    const void *m = NULL;
    (void)time;
    if (channel != h->image && channel != h->info && channel != h->depth) return;
    const us_message_type *type = usi_proxy_get_channel(h->proxy, channel).type;
    assert_int_equal(us_message_decode(type, bytes, length, memory, sizeof memory, &m, NULL), US_OK);
    if (channel == h->info)
        on_info(h, m);
    else
        on_image(h, m, channel == h->depth);
}

static int32_t find(const us_proxy *proxy, const char *topic) {
    for (int32_t i = 0; i < usi_proxy_n_channel(proxy); i++) {
        const usi_channel_info c = usi_proxy_get_channel(proxy, i);
        if (c.is_out && strcmp(c.topic, topic) == 0) return i;
    }
    return -1;
}

static heard *listen(proxy_world *w, const char *sensor) {
    char inside[600];
    snprintf(
        inside, sizeof inside,
        "<sensor type='camera' name='eye' link='base' xyz='0.5 0 1' rpy='0 0.6 0' width='64' height='48' "
        "rate='10 Hz' %s/><network namespace='k10'/>",
        sensor);
    proxy_world_k10(w, inside);
    heard *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->proxy = w->proxy;
    h->image = find(w->proxy, "/k10/eye/image_raw");
    h->info = find(w->proxy, "/k10/eye/camera_info");
    h->depth = find(w->proxy, "/k10/eye/depth/image_raw");
    usi_proxy_set_tap(w->proxy, on_sample, h);
    return h;
}

static void end(proxy_world *w, heard *h) {
    usi_proxy_set_tap(w->proxy, NULL, NULL);
    proxy_world_fini(w);
    free(h);
}

// A step, and time for the thread that makes pictures, where one is being made.
static void step(proxy_world *w, const heard *h, int n) {
    const us_sensor eye = us_model_find_sensor(w->model, "k10", "eye");
    for (int i = 0; i < n; i++) {
        proxy_world_step(w, 1);
        for (int k = 0; k < 30000; k++) {
            const us_camera_renderer *any = usi_cameras_view(h->proxy->cameras, eye.i);
            if (!any || usi_cameras_is_idle(h->proxy->cameras)) break;
            if (k == 29999) fail_msg("a picture is not made in 30 s");
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
}

// ---------------------------------------------------------------- tests

static void pictures_depths_and_info_have_the_stamp_of_their_sample(void **state) {
    (void)state;
    proxy_world w;
    heard *h = listen(&w, "depth='yes' k1='-0.1' latency='30 ms'");
    assert_true(h->image >= 0 && h->info >= 0 && h->depth >= 0);
    step(&w, h, 1000);
    assert_int_equal(h->n_info, 10);
    assert_true(h->n_image >= 9 && h->n_image <= 10);
    assert_int_equal(h->n_depth, h->n_image);
    for (int i = 0; i < h->n_image; i++) {
        // The first sample is that of the start, before anybody could listen.
        assert_true(h->image_stamp[i] == h->info_stamp[i + h->n_info - h->n_image]);
        assert_true(h->image_stamp[i] == h->depth_stamp[i]);
    }
    assert_string_equal(h->encoding, "rgb8");
    assert_string_equal(h->frame, "k10/eye_optical");
    assert_string_equal(h->model, "plumb_bob");
    assert_true(h->d[0] == -0.1 && h->k[8] == 1);
    // fov 60 degrees; the principal point between the middle pixels.
    assert_true(fabs(h->k[0] - 32 / tan(0.5 * 1.0471975511965976)) < 1e-9);
    assert_true(h->k[2] == 31.5 && h->k[5] == 23.5);
    // It looks down by 0.6 rad from a metre or so: the middle of the ground is about 1.8 m away.
    assert_true(h->distance[24 * 64 + 32] > 1.5f && h->distance[24 * 64 + 32] < 2.2f);
    assert_true(h->picture[3 * (24 * 64 + 32)] > 20);
    end(&w, h);
}

static void the_picture_of_a_topic_is_that_of_the_renderer(void **state) {
    (void)state;
    proxy_world w;
    heard *h = listen(&w, "");
    assert_int_equal(h->depth, -1);
    const us_sensor eye = us_model_find_sensor(w.model, "k10", "eye");
    us_camera_renderer *own = NULL;
    assert_int_equal(us_camera_renderer_create(w.model, eye, 1, NULL, &own, NULL), US_OK);
    int checked = 0;
    for (int i = 0; i < 400; i++) {
        const int before = h->n_image;
        step(&w, h, 1);
        if (us_sim_view_sensor_sample(w.sim, eye).tick == us_sim_get_tick(w.sim))
            assert_int_equal(us_camera_renderer_render(own, w.sim, NULL), US_OK);
        if (h->n_image == before) continue;
        assert_memory_equal(h->picture, us_camera_renderer_view_image(own).pixels, sizeof h->picture);
        checked++;
    }
    assert_true(checked >= 3);
    us_camera_renderer_destroy(own);
    end(&w, h);
}

static void nobody_s_picture_is_not_made(void **state) {
    (void)state;
    proxy_world w;
    heard *h = listen(&w, "");
    usi_proxy_want_channel(w.proxy, h->image, false);
    step(&w, h, 500);
    assert_int_equal(h->n_image, 0);
    assert_int_equal(h->n_info, 5);
    usi_proxy_want_channel(w.proxy, h->image, true);
    step(&w, h, 300);
    assert_true(h->n_image >= 2);
    assert_int_equal(usi_cameras_n_dropped(w.proxy->cameras), 0);
    end(&w, h);
}

static void a_dead_camera_gives_none_and_a_frozen_one_the_same(void **state) {
    (void)state;
    proxy_world w;
    heard *h = listen(&w, "");
    const us_sensor eye = us_model_find_sensor(w.model, "k10", "eye");
    step(&w, h, 350);
    assert_true(h->n_image >= 3);
    us_sensor_fault fault = us_sensor_fault_default();
    fault.is_frozen = true;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &fault), US_OK);
    uint8_t before[sizeof h->picture];
    memcpy(before, h->picture, sizeof before);
    const int n = h->n_image;
    assert_int_equal(proxy_world_drive(&w, 0.5, 0, 0), US_OK);
    step(&w, h, 400);
    assert_true(h->n_image >= n + 3);
    assert_memory_equal(h->picture, before, sizeof before);
    assert_true(h->image_stamp[h->n_image - 1] > h->image_stamp[n - 1]);
    fault = us_sensor_fault_default();
    fault.is_dead = true;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &fault), US_OK);
    step(&w, h, 50);
    const int last = h->n_image;
    step(&w, h, 300);
    assert_int_equal(h->n_image, last);
    end(&w, h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_depths_and_info_have_the_stamp_of_their_sample),
        cmocka_unit_test(the_picture_of_a_topic_is_that_of_the_renderer),
        cmocka_unit_test(nobody_s_picture_is_not_made),
        cmocka_unit_test(a_dead_camera_gives_none_and_a_frozen_one_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
