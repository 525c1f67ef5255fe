// Questions to a world that steps: rays, overlaps, contact events, joint reactions, frames of lidars.
//
// All of them leave the sim's state as it is and allocate nothing. As every function of a us_sim they belong
// to the thread that has it.
#ifndef UNDERSTUDY_QUERY_H
#define UNDERSTUDY_QUERY_H

#include "understudy/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which shapes a ray or an overlap sees.
typedef struct us_query_filter {
    uint32_t mask;       // shapes with a group of these; default all
    us_body except;      // no shapes of this body; default -1: of all
    bool except_object;  // nor of any body that joints connect with it; default false
    bool except_world;   // no shapes of the world itself; default false
} us_query_filter;
US_API us_query_filter us_query_filter_default(void);

typedef struct us_sim_hit {
    us_body body;     // -1: the world, or nothing
    int32_t shape;    // of the spec; -1: nothing was hit
    int32_t geom;     // for us_model_get_geom; -1: nothing was hit
    double distance;  // m along the ray; infinite: nothing was hit
    us_vec3 point;    // m, in W; NaN: nothing was hit
    us_vec3 normal;   // unit, in W, outwards
    // What the surface is made of there: on ground with regions, of the region. -1: nothing was hit.
    us_material material;
    // Where on a height field, for a picture that lies over it: 0 to 1 along x and along y. NaN on others.
    double u, v;
} us_sim_hit;

// The first shape that a ray meets within max_distance (m, may be infinite). The direction may have any
// length but 0. A ray that begins inside a solid shape hits it at distance 0, the normal against the ray. Of
// equal distances the shape of the lower index counts. Shapes are as they were written, without their
// margins; deformable ground has the heights that it has now. `filter` may be NULL: all shapes.
// US_ERR_VALUE: a number is not finite, or the direction is 0. US_ERR_IO, US_ERR_LIMIT: ground that is paged
// in cannot be had. The hit is then that of nothing. Cost: the kinematics, a box per shape, and the rays into
// those boxes that the ray crosses.
US_API us_status us_sim_cast_ray(const us_sim *sim, us_vec3 origin_W, us_vec3 direction_W,
                                 double max_distance, const us_query_filter *filter, us_sim_hit *out_hit);
// n rays at once: kinematics and boxes are found once for all of them. On an error the hits mean nothing.
US_API us_status us_sim_cast_rays(const us_sim *sim, int32_t n, const us_vec3 *origins_W,
                                  const us_vec3 *directions_W, double max_distance,
                                  const us_query_filter *filter, us_sim_hit *out_hits);
// Whether anything is in the way of each of n rays: lines of sight, shadows. Less work than the first hit of
// each, since nothing is asked about a ray that has met one shape.
US_API us_status us_sim_any_hit(const us_sim *sim, int32_t n, const us_vec3 *origins_W,
                                const us_vec3 *directions_W, double max_distance,
                                const us_query_filter *filter, bool *out_is_hit);

// The shapes that a shape at a pose would overlap or touch, in the order of their indices
// (us_model_get_geom): the first `cap` of them go to out_geoms, which may be NULL when cap is 0; *out_n is
// how many there are. Deformable ground that has changed under the shape's box is taken column by column,
// each flat at its present height. US_ERR_ARG, US_ERR_VALUE: a geom or pose that us_geom_check or
// us_geom_distance refuses; US_ERR_IO, US_ERR_LIMIT: as us_sim_cast_ray. Cost: a box per shape, and a
// distance to each shape whose box overlaps.
US_API us_status us_sim_overlap(const us_sim *sim, const us_geom *geom, us_pose X_WG,
                                const us_query_filter *filter, int32_t *out_geoms, int32_t cap,
                                int32_t *out_n);

// Pairs of shapes that began or ceased to touch in the last step. Touching is having a contact point
// (us_sim_get_contact): points appear when the surfaces are nearer than half a millimetre plus what they move
// in a step, some time before they push. None before the first step and after us_sim_reset, us_sim_restore
// and us_sim_replace: the step after a restore compares with the contacts that were restored, as the step
// after the snapshot did. What was moved by hand has lost its contacts: if it still touches, they begin anew.
typedef struct us_contact_event {
    us_body body_a, body_b;    // -1: the world
    int32_t shape_a, shape_b;  // of the spec; a and b as in us_contact
    bool is_begin;             // otherwise they ceased to touch
} us_contact_event;
US_API int32_t us_sim_n_contact_event(const us_sim *sim);
US_API us_contact_event us_sim_get_contact_event(const us_sim *sim, int32_t i);  // shapes -1 for a bad index

// What happened at which moment of the last step, in the order of time: with us_sim_def.enable_events, or
// conditions. None before the first step and after us_sim_reset, us_sim_restore and us_sim_replace. Of each
// condition and each limit the first passage in a step (adaptive: in a sub-step) is reported; one that passes
// and comes back between two looks is not seen.
//
// How exact the time is: of conditions and limits under `adaptive` the order of its continuous extension (4),
// under rk4 and midpoint that of a cubic through both ends of the step, whose velocities are taken as a
// straight line; of trees that contact moves the first order. Impacts: where the gap at the start of the step
// closes by the velocities there, and of free bodies by what accelerates them: exact for a ball on a plane.
typedef enum us_event_kind {
    US_EVENT_IMPACT,    // shapes begin to push each other
    US_EVENT_LIMIT,     // a joint passes an end of its range
    US_EVENT_CONDITION  // a us_condition passes 0
} us_event_kind;
typedef struct us_event {
    us_event_kind kind;
    double time;               // s, since the start
    int32_t index;             // of the condition, or of the limited joint's velocity in v; impacts: -1
    int32_t direction;         // 1: g, or q less the limit, becomes positive, -1: negative; impacts: 0
    double limit;              // rad, m: the end of the range that was passed; otherwise 0
    double speed;              // m/s, of impacts: at which the shapes come together; otherwise 0
    int32_t shape_a, shape_b;  // of impacts: as in us_contact; otherwise -1
} us_event;
US_API int32_t us_sim_n_event(const us_sim *sim);
US_API us_event us_sim_get_event(const us_sim *sim, int32_t i);  // index -2 and NaN for a bad index

// The wrench that a joint's parent exerts on its child through the joint, as a mean over the last step:
// moment about the child's origin and force, world axes. By inverse dynamics: what the motion of all that
// hangs on the joint needed, less gravity, contact forces, loop closures and applied wrenches. Along the
// joint's free directions it is what drives, springs, dampers, friction and limits gave, less what rotor
// inertia (armature) took; of a floating joint it is 0, up to the integrator's error and torques that a
// command gave its coordinates. NaN for a bad index, before the first step, after reset, restore, replace and
// changes by hand. Cost: the kinematics, and all bodies, loops and contacts.
US_API us_wrench us_sim_get_joint_reaction(const us_sim *sim, us_joint joint);
// The wrench that the second link of a loop (of the spec) exerts on the first through the closure, as a mean
// over the last step: moment about the loop's point and force, world axes. Where a mechanism is held more
// often than needed, as every planar loop is across its plane, rows that depend on others carry nothing: one
// of many possible answers, which the joints' reactions fit. NaN as above.
US_API us_wrench us_sim_get_loop_reaction(const us_sim *sim, int32_t loop);

// ---- frames of lidars (understudy/lidar.h) ----

// A lidar of a model; -1: none.
typedef struct us_lidar {
    int32_t i;
} us_lidar;
US_API int32_t us_model_n_lidar(const us_model *model);
US_API us_lidar us_model_find_lidar(const us_model *model, const char *robot, const char *sensor);
// Which it is. The texts belong to the model. "" for an index beyond the last.
US_API const char *us_model_lidar_robot(const us_model *model, us_lidar lidar);
US_API const char *us_model_lidar_name(const us_model *model, us_lidar lidar);

typedef struct us_lidar_point {
    float x, y, z;    // m, in the sensor's frame; NaN: no return
    float intensity;  // 0 to 255
    float time;       // s after the beginning of the turn
    int32_t ring;     // 0 is the lowest
} us_lidar_point;

typedef struct us_lidar_frame {
    int64_t turn;              // its number since the start; -1: there is none yet
    double time;               // s: when the turn began
    int32_t n_ring, n_column;  // of the table of points; the last column of a turn may be empty
    int32_t n_return;          // such tables, one after the other: 2 of a lidar with dual returns
    us_pose X_WS;              // of the sensor when the turn began
    int64_t n_dropped;         // turns that us_sim_hold_lidar has left out so far
} us_lidar_frame;

// The last whole turn. `points` gets n_return times n_ring rows of n_column points; NULL: the frame alone.
// They are in the frame that the sensor had at the time of each; with `is_deskewed`, in the one it had when
// the turn began, by its true motion. US_ERR_ARG: no such lidar. US_ERR_LIMIT: `cap` points are too few.
// Cost: some nanoseconds for each point.
US_API us_status us_sim_get_lidar_frame(const us_sim *sim, us_lidar lidar, bool is_deskewed,
                                        us_lidar_frame *out_frame, us_lidar_point *points, int32_t cap);

#ifdef __cplusplus
}
#endif
#endif
