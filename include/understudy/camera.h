// Pictures of cameras: what a <sensor type="camera"> sees. docs/cameras.md has the mathematics.
//
// A picture is made by rays from the state of a sim, when somebody asks for it; nothing of it is part of the
// state. The same state gives the same bytes, for any number of threads. Every pixel has a ray of its own,
// along which its lens looks: pictures of lenses with distortion are as exact as those without.
#ifndef UNDERSTUDY_CAMERA_H
#define UNDERSTUDY_CAMERA_H

#include "understudy/camera_model.h"
#include "understudy/image.h"
#include "understudy/sensing.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_camera_renderer us_camera_renderer;

// For one camera of a model, which must outlive it. It takes all of its memory here: about 50 bytes for each
// pixel. n_thread counts the caller. NULL: the default allocator. US_ERR_ARG: the sensor is no camera, or
// there are no threads; US_ERR_VALUE: a material has a `texture` that is none.
US_API us_status us_camera_renderer_create(const us_model *model, us_sensor camera, int32_t n_thread,
                                           const us_allocator *allocator, us_camera_renderer **out_renderer,
                                           us_error *err);
US_API void us_camera_renderer_destroy(us_camera_renderer *renderer);  // NULL is allowed

// Makes the picture of the state that the sim has now, which is one of the renderer's model, and is not to
// be stepped meanwhile. Cost: about half a microsecond for each pixel and core, twice with shadows.
US_API us_status us_camera_renderer_render(us_camera_renderer *renderer, const us_sim *sim, us_error *err);

// What was made last; all is the renderer's, and changes with the next one. Rows from the top.
US_API us_image us_camera_renderer_view_image(const us_camera_renderer *renderer);
// m along the optical axis; INFINITY where nothing is seen.
US_API const float *us_camera_renderer_view_depth(const us_camera_renderer *renderer);
// Radiance, W/(m^2 sr), of red, green and blue light, of each as if all light were of its colour.
US_API const float (*us_camera_renderer_view_radiance(const us_camera_renderer *renderer))[3];
// The shape that each pixel sees, as us_sim_hit.geom counts them; -1: none.
US_API const int32_t *us_camera_renderer_view_shape(const us_camera_renderer *renderer);
US_API double us_camera_renderer_exposure(const us_camera_renderer *renderer);  // s, of the last picture
// Pose of the optical frame (x right, y down, z forward) in the world, of the last picture.
US_API us_pose us_camera_renderer_pose(const us_camera_renderer *renderer);

// The lens of a camera, in its optical frame; a sensor that is none: US_ERR_ARG.
US_API us_status us_model_get_camera(const us_model *model, us_sensor camera, us_camera_model *out_lens);

#ifdef __cplusplus
}
#endif
#endif
