// Laws of soil of one's own: what soil does to the wheels and feet in it.
//
// A law is chosen for two materials by <pair model="NAME">, as an interaction model is, and acts where one of
// them is a ground of soil. It is a const struct that begins with `abi` and `size`, and says beforehand how
// much state it has: that is part of the world's state, saved, hashed and replayed with it. A law must not
// allocate, block or keep anything elsewhere: the same touch and state must give the same answer.
#ifndef UNDERSTUDY_SOIL_LAW_H
#define UNDERSTUDY_SOIL_LAW_H

#include "understudy/interaction.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { US_SOIL_LAW_ABI = 1, US_SOIL_LAW_STATE = 16 };

// A wheel or foot in soil before the step is solved. A wheel's axes: x its heading, y the axle to the left, z
// the soil's normal. A wheel is a cylinder across the ground; anything else is a foot, with one touch for
// each of its points.
typedef struct us_soil_touch {
    double step;              // s
    bool is_wheel;            // otherwise a foot: wheel, vx, vy and spin are 0
    us_soil_wheel wheel;      // its whole width, though a part of it may lie in another soil
    us_soil_history history;  // of the soil before a wheel
    double radius, area;      // of a foot: m, of a ball; or else m^2, its point's share of the sole
    double sinkage;           // m, below the surface that is there
    double sinking;           // m/s, how fast it gets deeper
    double vx, vy, spin;      // m/s of the hub; rad/s, positive drives forward
    double motion;            // wheels: 0 at rest, where friction holds it, to 1 where shear and lean act
    double mass;              // kg, an estimate of what the contact moves
    double carried;           // N, what was carried here in the last step, along the normal; 0 at first
    us_vec3 place;            // m, in the world
    const us_soil *soil;      // of the place
    const char *material_soil, *material_body;
    const us_pair_values *values;
    const us_property *parameters;  // of the pair's row
    int32_t n_parameter;
} us_soil_touch;

// What the soil does to it. On entry it holds the answer of the library's own law.
typedef struct us_soil_answer {
    us_vec3 force;     // N, on the body: z presses up; wheels: x pull and y side force, in motion
    double moment;     // N m, wheels: what the soil takes from the axle, in motion. moment / radius is the
                       // shear along the rim, and force.x less that the lean of the normal stress
    double stiffness;  // N/m, greater than 0: how force.z grows with the sinkage
    double damping;    // N s/m: and with its rate. force.z is without it
    double drag[2];   // N s/m, greater than 0, wheels: how the shear along and the side force fall as the rim
                      // goes faster over the soil
    double friction;  // largest force along the ground over the load, of what rests
    double hold;      // N/m, greater than 0: how stiffly it is held there
    double torsion;   // m, of what rests: largest torque about the normal over the largest friction
    double rolling;   // m, feet: largest torque against rolling over the load. A wheel at rest has that of
                      // its lean
} us_soil_answer;

typedef struct us_soil_law {
    int32_t abi;       // US_SOIL_LAW_ABI
    int32_t size;      // sizeof(us_soil_law)
    const char *name;  // as in <pair model="...">
    int32_t n_state;   // numbers that each touch keeps, up to US_SOIL_LAW_STATE; 0 for a new one
    int32_t reserved;  // 0
    void *user;        // passed to `act`
    // Called once per touch and solve of a step, from any thread. False: it has no answer, and the step
    // fails.
    bool (*act)(const us_soil_touch *touch, double *state, us_soil_answer *answer, void *user);
} us_soil_law;

// Registers a law with a spec. The name must be new; the same law again changes nothing. `user` must outlive
// every model compiled from the spec. Errors: US_ERR_VALUE for another abi or size, a law without `act` or
// with too much state, US_ERR_NAME for a name that is missing or taken.
US_API us_status us_spec_add_soil_law(us_spec *spec, const us_soil_law *law, us_error *err);

// The same for every law in a shared library: us_spec_load_plugin, <plugin file="libmine.so"/>. It exports a
// function of this type under the name "us_plugin_soil_laws":
//     US_API const us_soil_law *us_plugin_soil_laws(int32_t *out_n) { ... }
typedef const us_soil_law *(*us_plugin_soil_law_function)(int32_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
