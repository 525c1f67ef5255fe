// A robot of one link with a lidar, in a world that is written as text: it stands at the origin, or moves
// along x and turns about z.
#ifndef US_TEST_LIDAR_RIG_H
#define US_TEST_LIDAR_RIG_H

#include <math.h>

#include "model/lidars.h"
#include "sim/sim.h"
#include "understudy/model.h"

static const double DEGREE = 3.14159265358979323846 / 180;

// Without noise, as far as a float holds a point at 50 m: 4e-6 m, and a little for three of them.
#define PLAIN \
    "range-noise=\"0\" angle-noise=\"0\" quantum=\"0\" reach=\"0\" max-range=\"100 m\" min-range=\"0\""
static const double FLOAT = 1e-5;

typedef struct lidar_rig {
    us_spec *spec;
    us_model *model;
    us_sim *sim;
    us_lidar lidar;
    us_lidar_frame frame;
    us_lidar_point *point;
    int32_t n;
} lidar_rig;

// `world` has what is around it, `sensor` the attributes of the lidar, m/s and rad/s.
void lidar_rig_init(lidar_rig *r, const char *world, const char *sensor, double speed, double spin);
// The same with threads, and with what stands beside the <world>.
void lidar_rig_init_with(lidar_rig *r, const char *world, const char *beside, const char *sensor,
                         double speed, double spin, int32_t n_thread);
void lidar_rig_fini(lidar_rig *r);
void lidar_rig_step(lidar_rig *r, int n);
// Until a turn of this number is whole.
void lidar_rig_see(lidar_rig *r, int64_t turn, bool is_deskewed);

static inline const us_lidar_point *lidar_rig_at(const lidar_rig *r, int32_t ring, int32_t column) {
    return &r->point[ring * r->frame.n_column + column];
}
static inline double range_of(const us_lidar_point *p) {
    return sqrt((double)p->x * (double)p->x + (double)p->y * (double)p->y + (double)p->z * (double)p->z);
}

#endif
