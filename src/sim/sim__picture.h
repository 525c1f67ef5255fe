// What the files of cameras share: a scene that stands still, rays into it some at a time, and what a place
// that was met looks like.
#ifndef USI_SIM_SIM__PICTURE_H
#define USI_SIM_SIM__PICTURE_H

#include "sense/reflectance.h"
#include "sim/sim__query.h"
#include "terrain/pager.h"
#include "understudy/model.h"

// A shape that rays may meet.
typedef struct usi_picture_target {
    us_pose X_WG;
    us_vec3 centre;     // of the sphere around it, in W
    double radius;      // m; infinite: it has none
    us_vec3 corner[8];  // of its box, in W
    int32_t geom;
    bool is_field;
    bool is_level;  // ground with the world's axes: rays need not be turned
} usi_picture_target;

// The shapes of a sim at one moment, but for those in the world's tree.
typedef struct usi_picture_scene {
    const us_sim *sim;
    us_allocator allocator;
    usi_picture_target *target;  // ground last: what stands before it ends its rays early
    usi_pager_client **pager;    // of all shapes; NULL where nothing is paged in
    us_vec3 eye;                 // paged ground is there around it
    double reach;                // m
    int32_t n, n_solid;          // all; those that are no ground
    size_t n_geom;
    bool is_paged;
} usi_picture_scene;

// picture_cast.c: memory for the scenes of a model, and its release; what there is in the state that the sim
// has now, seen from a point, with paged ground read as far as `reach`. Ground that cannot be read is not
// seen.
us_status usi_picture_scene_init(usi_picture_scene *x, const us_model *m, const us_allocator *allocator);
void usi_picture_scene_fini(usi_picture_scene *x);
void usi_picture_scene_take(usi_picture_scene *x, const us_sim *s, us_vec3 eye, double reach);

// Rays of neighbouring pixels: 8 by 8 of them.
enum { USI_PICTURE_TILE = 8, USI_PICTURE_RAYS = USI_PICTURE_TILE * USI_PICTURE_TILE };
typedef struct usi_picture_rays {
    int32_t n;
    us_vec3 o[USI_PICTURE_RAYS], d[USI_PICTURE_RAYS];  // d is unit
    us_ray_hit hit[USI_PICTURE_RAYS];                  // range infinite: none
    int32_t geom[USI_PICTURE_RAYS];                    // -1: none
} usi_picture_rays;

// The first thing that each ray meets. A shape that a ray begins in does not stop it.
void usi_picture_cast(const usi_picture_scene *x, usi_picture_rays *rays);
// Whether anything is between points, of which rays->o has n, and what lies in the direction `toward` (unit).
// A point in a shape is dark. Any thread may call both.
void usi_picture_cover(const usi_picture_scene *x, int32_t n, const us_vec3 *p, us_vec3 toward,
                       bool *out_is_dark);

// picture_lamp.c: the lamps that shine, with their places as usi_shapes_start has found them; and how much
// light of one arrives at n places (at most a tile), W/m^2 square to its direction, which is given too.
enum { USI_PICTURE_LAMPS = 32 };
typedef struct usi_picture_lamp {
    us_vec3 place, axis;
    double cosine;     // of half its cone
    double intensity;  // W/sr
    double colour[3];
} usi_picture_lamp;
int32_t usi_picture_lamps(const us_sim *s, usi_picture_lamp out[USI_PICTURE_LAMPS]);
void usi_picture_shine(const usi_picture_scene *x, const usi_picture_lamp *lamp, bool has_shadow, int32_t n,
                       const us_vec3 *p, double *out_irradiance, us_vec3 *out_toward);

// picture_surface.c: how surfaces of a material look. US_ERR_VALUE: a property of it is none that a camera
// could see.
typedef struct usi_picture_surface {
    usi_reflector law;
    double ground, other;  // contrast of the texture, of ground and of other shapes
} usi_picture_surface;
us_status usi_picture_surface_read(const us_material_def *d, usi_picture_surface *out, us_error *err);

// picture_texture.c: by how much the ground is brighter at a place of its frame than on average, 1 in the
// mean: grains of all sizes from half a metre down to what a pixel of the size `footprint` (m) still shows.
// `contrast` is the deviation. The same place always looks the same.
double usi_picture_texture(double x, double y, double footprint, double contrast);

#endif
