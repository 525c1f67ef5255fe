// Materials of surfaces, the interaction of two of them, regions of a ground with another material, and maps
// of soil parameters: parts of a us_spec.
#ifndef UNDERSTUDY_MATERIAL_H
#define UNDERSTUDY_MATERIAL_H

#include "understudy/soil.h"

#ifdef __cplusplus
extern "C" {
#endif

// A named value: of a material, or of an interaction model.
typedef enum us_property_type {
    US_PROPERTY_STRING,
    US_PROPERTY_NUMBER,
    US_PROPERTY_INTEGER
} us_property_type;
typedef struct us_property {
    const char *key;
    us_property_type type;
    const char *text;  // string
    double number;
    int64_t integer;
} us_property;

// Material of a surface: a name that shapes refer to, with any properties that models look up.
typedef struct us_material_def {
    const char *name;
    const us_property *properties;
    int32_t n_property;
    bool is_soil;  // half spaces and height fields of the world with this material yield like `soil`
    us_soil soil;
    int32_t n_grouser;      // of wheels made of it, round the rim; default 0: smooth
    double grouser_height;  // m
    const char *file;
    int32_t line;
} us_material_def;

// Region of a ground with a material of its own: a polygon, or the samples of a mask that have a value, in
// the frame of a half space or height field of the world. Later ones lie over earlier ones.
typedef struct us_region_def {
    const char *name;
    const char *ground;     // the name of the shape
    const char *material;   // what it is made of at the start
    const double *corners;  // x and y of one after the other, m; closed by itself
    int32_t n_corner;
    const uint8_t *mask;  // in place of corners: n_x * n_y samples, x fastest, centred on the ground's frame
    int32_t n_x, n_y;
    double dx, dy;  // m
    int32_t value;  // of the mask, 1 to 255; 0: every sample that is not 0
    const char *file;
    int32_t line;
} us_region_def;

// Map of a soil parameter that varies over a ground: it replaces the material's own. Later ones lie over
// earlier ones.
typedef struct us_soil_map_def {
    const char *ground;    // the name of a half space or height field of the world
    const char *material;  // of which soil; NULL: of whatever soil the ground is made of at a place
    // A field of us_soil: "cohesion". Not repose_angle, critical_angle: deformable terrain flows alike
    // everywhere.
    const char *parameter;
    // n_x * n_y samples, x fastest, centred on the ground's frame, bilinear between them; NaN, as beyond the
    // last: what holds without the map. NULL: the layer "soil.PARAMETER" of the site that the ground is.
    const double *values;
    int32_t n_x, n_y;
    double dx, dy;  // m
    const char *file;
    int32_t line;
} us_soil_map_def;

// Contact parameters of two materials. Lengths in m, stiffness in N/m, per contact point.
typedef struct us_pair_values {
    double static_friction;   // tangential, while sticking; default 0.90
    double kinetic_friction;  // tangential, while sliding; default 0.80
    double viscous;           // N s/m, added while sliding; default 0.50
    // Damping ratio along the normal of a contact at rest, spring-damper model; default 0.35.
    double normal_static;
    double rotational;       // scale of the torsional friction; default 1.00
    double assumed_mass;     // kg, for critical damping where the mass is not known; default 40
    double restitution;      // 0 .. 1; default 0
    double reference_speed;  // m/s, at which a nonlinear spring-damper has that restitution; default 1
    double stiffness;        // 0: from the weight that the contact carries; default 0
    double damping_ratio;    // default 1
    // Radius of the patch that a single point represents; default 0: no torsional friction.
    double torsion_radius;
    double rolling_length;  // m, rolling torque over normal force; default 0
    // m/s: w of v / sqrt(v^2 + w^2), which weights the kinetic friction at the speed v; default 0: no
    // weighting.
    double transition_speed;
} us_pair_values;

// Row of the interaction table: materials A and B (any order; NULL: any) and the fidelity it is for (NULL:
// any) select a model by name and its parameters. The most specific row wins: both materials before one
// before none, then a fidelity before none, then the later row.
typedef struct us_pair_def {
    const char *material_a, *material_b, *fidelity;
    const char *model;  // "compliant", "spring-damper", "soil", or a registered one; NULL: soil, or compliant
    us_pair_values values;
    const us_property *parameters;  // for registered models
    int32_t n_parameter;
    const char *file;
    int32_t line;
} us_pair_def;

#ifdef __cplusplus
}
#endif
#endif
