// Samples of cameras: pictures, pictures of depths, and what ROS 2 knows of a lens.
#include <string.h>

#include "proxy/cameras.h"
#include "proxy/proxy__sample.h"

void usi_sample_image(usi_sampling *w) {
    static const char *const encoding[US_PIXEL_FORMAT_COUNT] = {[US_PIXEL_MONO8] = "mono8",
                                                                [US_PIXEL_MONO16] = "mono16",
                                                                [US_PIXEL_RGB8] = "rgb8",
                                                                [US_PIXEL_RGB16] = "rgb16"};
    const us_camera_renderer *camera = usi_cameras_view(w->p->cameras, w->sensor);
    if (!camera) return;
    const us_image image = us_camera_renderer_view_image(camera);
    us_msg_image m = {.height = (uint32_t)image.height,
                      .width = (uint32_t)image.width,
                      .encoding = usi_text(encoding[image.format]),
                      .step = (uint32_t)image.stride};
    usi_sampling_head(w, &m.header, w->p->model->sensor[w->sensor].frame);
    m.data._buffer = image.pixels;
    m.data._length = m.data._maximum = (uint32_t)(image.stride * (size_t)image.height);
    usi_sampling_send(w, &m);
}

// REP 118: m along the optical axis as floats; where nothing is seen, infinity.
void usi_sample_depth(usi_sampling *w) {
    const us_camera_renderer *camera = usi_cameras_view(w->p->cameras, w->sensor);
    if (!camera) return;
    const us_image image = us_camera_renderer_view_image(camera);
    const size_t n = (size_t)image.width * (size_t)image.height;
    us_msg_image m = {.height = (uint32_t)image.height,
                      .width = (uint32_t)image.width,
                      .encoding = usi_text("32FC1"),
                      .step = (uint32_t)image.width * (uint32_t)sizeof(float)};
    USI_SAMPLING_TAKE(w, m.data, n * sizeof(float));
    if (m.data._length == 0) return;
    usi_sampling_head(w, &m.header, w->p->model->sensor[w->sensor].frame);
    memcpy(m.data._buffer, us_camera_renderer_view_depth(camera), n * sizeof(float));
    usi_sampling_send(w, &m);
}

void usi_sample_camera_info(usi_sampling *w) {
    const us_camera_info *info = usi_cameras_info(w->p->cameras, w->sensor);
    const us_camera_renderer *camera = usi_cameras_view(w->p->cameras, w->sensor);
    if (!info || !camera) return;
    const us_image image = us_camera_renderer_view_image(camera);
    us_msg_camera_info m = {.height = (uint32_t)image.height,
                            .width = (uint32_t)image.width,
                            .distortion_model = usi_text(info->distortion_model)};
    USI_SAMPLING_TAKE(w, m.d, info->n_d);
    if ((int32_t)m.d._length != info->n_d) return;
    usi_sampling_head(w, &m.header, w->p->model->sensor[w->sensor].frame);
    memcpy(m.d._buffer, info->d, (size_t)info->n_d * sizeof *info->d);
    memcpy(m.k, info->k, sizeof m.k);
    memcpy(m.r, info->r, sizeof m.r);
    memcpy(m.p, info->p, sizeof m.p);
    usi_sampling_send(w, &m);
}
