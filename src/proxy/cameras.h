// Pictures of robots' cameras: a thread of its own makes them from copies of the world, so that no picture
// holds up time. One that is asked for while others are made is left out, and counted.
#ifndef USI_PROXY_CAMERAS_H
#define USI_PROXY_CAMERAS_H

#include "understudy/camera.h"

typedef struct usi_cameras usi_cameras;

// For all cameras of a model; *out is NULL where there are none.
us_status usi_cameras_create(const us_model *model, const us_allocator *allocator, usi_cameras **out,
                             us_error *err);
void usi_cameras_destroy(usi_cameras *cameras);  // NULL is allowed
// Bytes of the largest picture of a model's cameras; 0: it has none.
size_t usi_cameras_sample_size(const us_model *model);

// At every publish, of each camera (a sensor of the model): a sample that was just taken is noticed, and a
// picture of it is asked for where `is_wanted`. `waits`: nothing is left out, for recordings.
void usi_cameras_notice(usi_cameras *cameras, const us_sim *sim, int32_t sensor, bool is_wanted, bool waits);
// All that are wanted were asked for: the thread begins.
void usi_cameras_start(usi_cameras *cameras);
// Whether a picture is made that the robot has by now; with `waits` it is waited for. It stays until it was
// done with.
bool usi_cameras_is_ready(usi_cameras *cameras, const us_sim *sim, int32_t sensor, bool waits);
void usi_cameras_done(usi_cameras *cameras, int32_t sensor);
// Of one that is ready: when it was taken, and when the sample before it (ticks; -1: there was none), and
// what was made. NULL: no such camera.
int64_t usi_cameras_tick(const usi_cameras *cameras, int32_t sensor, int64_t *out_before);
const us_camera_renderer *usi_cameras_view(const usi_cameras *cameras, int32_t sensor);
const us_camera_info *usi_cameras_info(const usi_cameras *cameras, int32_t sensor);
// Whether no pictures are being made.
bool usi_cameras_is_idle(usi_cameras *cameras);
// Pictures that were left out so far, of all cameras.
int64_t usi_cameras_n_dropped(const usi_cameras *cameras);

#endif
