// What is in soil: wheels that sink and slip, feet and stones that stand in it.
//
// A wheel is a cylinder whose axle lies across the ground's normal. It has one point, under the hub, with two
// blocks:
//
//     rows of a point    along the resultant of the normal stress, which goes through the hub and leans
//     backward by what compaction resists;
//                        across, the anchor that holds a wheel at rest, fading out as it moves
//     rows of slip       along and across the wheel at the rim: the shear that the soil gives at this slip,
//     and how it changes with it
//
// Everything else is a foot: one point for a ball, four for other shapes, each with Bekker's pressure on its
// share of the area, remembering how deep it was pressed.
#ifndef USI_CONTACT_SOIL_H
#define USI_CONTACT_SOIL_H

#include "contact/contact_world.h"
#include "soil/deformable.h"

// Finds the points of a shape in a ground of soil: into the step's list, and their places in `sunk`.
// `before`: what touched in the last step, in soil; maybe in another one.
void usi_soil_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t,
                     bool is_same_place);
// The material of a ground at a place of its frame, that of the last region around it, or its own; and where
// a shape stands on it.
int32_t usi_ground_material_at(const us_model *m, const usi_contact_state *now, int32_t geom, double x,
                               double y);
int32_t usi_ground_material(const usi_contacts *c, const usi_contact_state *now, int32_t geom, int32_t shape);

// The soil under something: that of its material, with what maps say of the place.
const us_soil *usi_soil_contact_soil(const usi_contacts *c, const usi_contact_state *state,
                                     const usi_soil_contact *k);

// What the soil says of a point, for the generic rows: `law`, and what the point keeps. Of a wheel its forces
// are found here. False: the law of somebody else has no usable answer.
bool usi_soil_law(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                  usi_soil_contact *k, const us_touch *seen, double normal_velocity,
                  double memory[US_TOUCH_MEMORY], us_touch_law *law);
// What laws of somebody else keep for each point of the step, from the points that they go on from.
void usi_carry_law_state(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next);
// ground_nodes.c. Asks the ground models of somebody else, before the islands are solved.
void usi_ask_grounds(const usi_contacts *c, const usi_contact_state *now, const usi_contact_state *next);
// The name of one that gave no answer that can be used; NULL: all did.
const char *usi_silent_ground(const usi_contacts *c);
// What they are told: of the points in soil from `first` to `end`, the first that belongs to another body;
// with the impulse of a step on the ground (NULL: none). And a bed, which it may not write.
int32_t usi_ground_patch_end(const usi_contacts *c, int32_t first);
us_ground_node usi_ground_node(const usi_contacts *c, const usi_contact_state *state, int32_t i,
                               const us_vec3 *impulse);
us_ground_patch usi_ground_patch(const usi_contacts *c, const usi_contact_state *state, int32_t first,
                                 int32_t end, const us_ground_node *node);
us_ground usi_ground_of(const usi_contacts *c, const usi_contact_state *state, int32_t patch);
// Turns the generic rows of a wheel's point into those of its stress, and makes those of its slip.
void usi_soil_tilt(const usi_contacts *c, const usi_island *s, const usi_soil_contact *k, usi_block *point);
void usi_soil_slip_block(const usi_contacts *c, const usi_soil_contact *k, const usi_block *point,
                         usi_block *out);

// The height of a ground without its patch at a place of its own frame; clamped to its border. And with its
// patch.
double usi_ground_at(const usi_geom *g, double x, double y);
double usi_surface_at(const usi_geom *g, const usi_deformable *patch, double x, double y);

#endif
