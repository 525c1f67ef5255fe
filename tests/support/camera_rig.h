// A robot of one link with a camera, in a world that is written as text: it stands at the origin and looks
// along x, or wherever its attributes say.
#ifndef US_TEST_CAMERA_RIG_H
#define US_TEST_CAMERA_RIG_H

#include "understudy/camera.h"

typedef struct camera_rig {
    us_spec *spec;
    us_model *model;
    us_sim *sim;
    us_sensor camera;
    us_camera_model lens;
    us_camera_renderer *renderer;
    us_image image;
    const float *depth;
    const float (*radiance)[3];
    const int32_t *shape;
} camera_rig;

// `world` has the <light> and what there is to see, `sensor` the attributes of the camera.
void camera_rig_init(camera_rig *r, const char *world, const char *sensor, int32_t n_thread);
// The same with what stands beside the <world>.
void camera_rig_init_with(camera_rig *r, const char *world, const char *beside, const char *sensor,
                          int32_t n_thread);
void camera_rig_fini(camera_rig *r);
void camera_rig_render(camera_rig *r);

#endif
