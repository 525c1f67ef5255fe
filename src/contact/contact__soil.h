// Soil beside soil.c: laws of somebody else, and wheels that lie in several soils.
#ifndef USI_CONTACT_CONTACT__SOIL_H
#define USI_CONTACT_CONTACT__SOIL_H

#include "contact/soil.h"
#include "understudy/soil_law.h"

// soil_law.c. What acts between something in soil and that soil, as in usi_contacts.pair_model.
static inline int32_t usi_soil_model(const usi_contacts *c, const usi_soil_contact *k) {
    const us_model *m = c->model;
    return c->pair_model[k->material * m->n_material + m->geom[k->geom].material];
}
static inline bool usi_has_own_law(const usi_contacts *c, const usi_soil_contact *k) {
    return c->model->n_soil_law > 0 && usi_soil_model(c, k) < USI_MODEL_SOIL;
}
// Asks a registered law; `a`, or `law` of a foot, holds the answer of the library's own. Writes the state
// that the law keeps. False: it gave none that can be used.
bool usi_soil_ask(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                  const usi_soil_contact *k, const us_soil *soil, const us_touch *seen,
                  double normal_velocity, us_soil_answer *a);
bool usi_soil_ask_foot(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                       usi_soil_contact *k, const us_soil *soil, const us_touch *seen, double normal_velocity,
                       us_touch_law *law);

// ground_nodes.c. Whether a ground model of somebody else acts between the two; then the points of the shape:
// one for each column under it.
bool usi_ground_model_acts(const usi_contacts *c, const usi_touch *t);
void usi_ground_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t);
enum { USI_NODE_SHIFT = 48 };
#define USI_NODE_FEATURE ((uint64_t)1 << USI_NODE_SHIFT)  // and the number of the column
bool usi_node_law(usi_soil_contact *k, double mass, double normal_velocity, us_touch_law *law);

// soil.c. Adds a point of something in soil, whose place is to be filled in; NULL: there is no room. The soil
// there as maps have it; and the ground's normal in its own frame.
usi_point_now *usi_add_soil_point(usi_contacts *c, usi_touch *t, uint64_t feature, usi_soil_contact **out);
void usi_look_at_soil_maps(usi_contacts *c, const usi_contact_state *now, const usi_soil_contact *k, double x,
                           double y);
us_vec3 usi_ground_normal(const usi_geom *g, double x, double y, double reach);

// soil_split.c. The part of a wheel's width that lies in one soil.
typedef struct usi_wheel_part {
    int32_t material;
    double share, aside;  // as in usi_soil_contact
} usi_wheel_part;
enum { USI_WHEEL_PARTS = 4 };
// The parts of a wheel on a ground with regions, by material. What lies on no soil, or by another model,
// counts as the soil under the hub, t->material. At least one.
int32_t usi_split_wheel(const usi_contacts *c, const usi_contact_state *now, const usi_touch *t, us_vec3 hub,
                        us_vec3 axle, double width, usi_wheel_part out[USI_WHEEL_PARTS]);

#endif
