// Interaction models: how two surfaces touch, and how to add a model.
//
// A model gets one contact point and returns the normal force now, its derivatives by gap and speed, and the
// friction. The solver takes that as implicit rows: stiff laws are stable at any step. Models have no state
// but a few numbers in the contact's memory, which is part of the world's state.
#ifndef UNDERSTUDY_INTERACTION_H
#define UNDERSTUDY_INTERACTION_H

#include <string.h>

#include "understudy/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { US_INTERACTION_VERSION = 1, US_TOUCH_MEMORY = 2 };

// One contact point before the step is solved. World axes.
typedef struct us_touch {
    double step;             // s
    double gap;              // m, negative where the shapes overlap
    us_vec3 point, normal;   // from B to A
    us_vec3 velocity;        // m/s, of A's surface against B's
    double normal_velocity;  // m/s, negative when closing
    double mass;             // kg, an estimate of what the contact moves
    double load;             // N, weight of all bodies that are connected through contacts
    bool is_new;             // the contact was not there in the last step
    const char *material_a, *material_b;
    const us_pair_values *values;
    const us_property *parameters;  // of the pair's row
    int32_t n_parameter;
} us_touch;

// Result of the model. On entry it holds that of the model "compliant".
typedef struct us_touch_law {
    double force;  // N, at this gap and speed; less than 0 counts as 0 after the step's change
    // N/m, N s/m: minus the force's derivatives by gap and by normal velocity; not negative, not both 0.
    double stiffness, damping;
    double tangent_stiffness, tangent_damping;  // of the anchor; the stiffness is greater than 0
    double static_friction, kinetic_friction;
    double viscous;      // N s/m, of sliding
    double restitution;  // the normal speed after an impact over that before; 0: the force alone decides
    double torsion;      // m, torsional torque over normal force
    double rolling;      // m, rolling torque over normal force
    double transition;   // m/s: kinetic friction at the speed v is weighted by v / sqrt(v^2 + transition^2)
} us_touch_law;

typedef struct us_interaction {
    int32_t version;   // US_INTERACTION_VERSION
    const char *name;  // as in <pair model="...">
    void *user;        // passed to `touch`
    // Called once per contact point and step, from any thread. Must not allocate, block or keep state
    // elsewhere: the same touch and memory must give the same law. `memory` is 0 for a new contact. False:
    // the model has no result; the step fails.
    bool (*touch)(const us_touch *touch, double memory[US_TOUCH_MEMORY], us_touch_law *law, void *user);
} us_interaction;

// Registers a model with a spec. The name must be new; the same model again changes nothing. `user` must
// outlive every model compiled from the spec. Errors: US_ERR_VALUE for another version or a model without
// `touch`, US_ERR_NAME for a name that is missing or taken.
US_API us_status us_spec_add_interaction(us_spec *spec, const us_interaction *model, us_error *err);

// The same for every model in a shared library, which exports a function of this type under the name
// "us_plugin_interactions":
//     US_API const us_interaction *us_plugin_interactions(int32_t *out_n) { ... }
// The library is code that runs with the program's rights. It stays loaded until the program ends. A relative
// path starts at the working directory; in a scene, <plugin file="libmine.so"/>, at the scene file. Errors:
// US_ERR_IO when it cannot be loaded, and those of us_spec_add_interaction.
typedef const us_interaction *(*us_plugin_function)(int32_t *out_n);
US_API us_status us_spec_load_plugin(us_spec *spec, const char *path, us_error *err);

// A number or integer among properties; `otherwise` when there is none of that key. Here, so that a plug-in
// needs no library.
static inline double us_property_number(const us_property *properties, int32_t n, const char *key,
                                        double otherwise) {
    for (int32_t i = 0; i < n; i++) {
        if (properties[i].type == US_PROPERTY_STRING || strcmp(properties[i].key, key) != 0) continue;
        return properties[i].type == US_PROPERTY_INTEGER ? (double)properties[i].integer
                                                         : properties[i].number;
    }
    return otherwise;
}

// The speed-dependence a of a nonlinear spring-damper f = k d^n (1 - a v) that has restitution e (0 < e < 1)
// at impact speed v: solves ln((1 + D) / (1 - e D)) = D (1 + e), D = a v. Exact for every k, n and mass.
// Infinite for e = 0, 0 for e = 1; NaN for what is neither a restitution nor a speed.
US_API double us_restitution_damping(double e, double v);
// And back: the restitution at impact speed v.
US_API double us_damping_restitution(double a, double v);

#ifdef __cplusplus
}
#endif
#endif
