// Spec: the editable description of a world, as it is written in files, with names everywhere.
//
// A spec comes from a file (us_spec_load: a scene or a robot) or is built by calls (us_spec_create,
// us_spec_add_...), and is compiled to a model (us_model_compile). Adding copies the definition and every
// text in it. Indices count from 0 in the order of adding. Checks that need the whole (unique names, tree,
// masses) happen when the model is compiled. Errors leave the spec unchanged. A spec belongs to one thread at
// a time.
#ifndef UNDERSTUDY_SPEC_H
#define UNDERSTUDY_SPEC_H

#include "understudy/material.h"
#include "understudy/sky.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_spec us_spec;

enum { US_WORLD = -1 };  // the world, where a link index is expected

// X(code, name, n_q, n_v): positions and velocities of each kind of joint. The coordinates, F before and M
// after the joint:
//   revolute, continuous   angle about `axis`
//   prismatic              distance along `axis`
//   helical                angle about `axis`; moves by pitch * angle along it
//   cylindrical            angle about, distance along `axis`
//   universal              angle about `axis` (fixed in F), then about `axis2` (fixed in M)
//   spherical              quaternion q_FM; velocity is the angular velocity w_FM in M
//   planar                 x, y in the plane normal to `axis`, then the angle about it
//   floating               quaternion q_FM and position p_FM; velocity is (w_FM, v_FM) in M
#define US_JOINT_LIST(X)                         \
    X(US_JOINT_FIXED, "fixed", 0, 0)             \
    X(US_JOINT_REVOLUTE, "revolute", 1, 1)       \
    X(US_JOINT_CONTINUOUS, "continuous", 1, 1)   \
    X(US_JOINT_PRISMATIC, "prismatic", 1, 1)     \
    X(US_JOINT_HELICAL, "helical", 1, 1)         \
    X(US_JOINT_CYLINDRICAL, "cylindrical", 2, 2) \
    X(US_JOINT_UNIVERSAL, "universal", 2, 2)     \
    X(US_JOINT_SPHERICAL, "spherical", 4, 3)     \
    X(US_JOINT_PLANAR, "planar", 3, 3)           \
    X(US_JOINT_FLOATING, "floating", 7, 6)

typedef enum us_joint_type {
#define US_JOINT_ENUM(code, name, nq, nv) code,
    US_JOINT_LIST(US_JOINT_ENUM)
#undef US_JOINT_ENUM
        US_JOINT_COUNT
} us_joint_type;

US_API const char *us_joint_type_name(us_joint_type type);  // "?" outside the list
US_API int32_t us_joint_type_n_q(us_joint_type type);       // positions; 0 outside the list
US_API int32_t us_joint_type_n_v(us_joint_type type);       // velocities; 0 outside the list

typedef enum us_integrator {
    US_INTEGRATOR_MIDPOINT,  // second order, keeps energy, implicit springs and dampers: the default
    US_INTEGRATOR_EULER,     // semi-implicit, first order, implicit springs and dampers
    US_INTEGRATOR_RK4,       // fourth order, explicit
    US_INTEGRATOR_ADAPTIVE,  // error-controlled (Dormand-Prince 5(4)), explicit, sub-steps inside each tick
    US_INTEGRATOR_COUNT
} us_integrator;

// "midpoint", "euler", "rk4", "adaptive"; "?" outside the list.
US_API const char *us_integrator_name(us_integrator integrator);

// Settings of the whole world.
typedef struct us_world_settings {
    const char *name;
    us_vec3 gravity;           // m/s^2, in W; default (0, 0, -9.81)
    double step;               // s; default 1e-3
    us_integrator integrator;  // default midpoint
    double tolerance;  // adaptive only: maximum error of a sub-step, relative to 1 + |value|; default 1e-9
    double duration;   // s; of `understudy run` without --time; 0: until stopped
    uint64_t seed;     // of every random number; default 1
    us_sky sky;        // where its frame lies on a planet, and the date of its start; default: nowhere
    // Contact solver: "newton" (default), "gauss-seidel", "rigid-direct", "rigid-iterative".
    const char *solver;
    const char *fidelity;  // selects rows of the interaction table; default "": those without one
    int32_t max_contact;   // contact points that there is room for at first; 0: by the number of shapes
} us_world_settings;

// One robot or object. Names inside are "group/name"; a robot file loaded alone has the group name "".
typedef struct us_group_def {
    const char *name, *tags;  // tags: words with blanks between them; NULL: none
    const char *file;         // source file; NULL when built by calls
    int32_t line;
    bool is_floating, is_added;  // is_added: while the world runs, by a world command
    bool excludes_overlaps;      // its links that overlap at the start never collide
} us_group_def;

typedef struct us_link_def {
    const char *name;
    int32_t group;       // -1: none
    us_inertia inertia;  // mass 0: massless; allowed where something else gives the joint inertia
    int32_t level;       // of detail: which of its shapes collide; default 0
    const char *file;    // source file; NULL when built by calls
    int32_t line;
} us_link_def;

typedef struct us_joint_def {
    const char *name;
    int32_t group;  // -1: none
    us_joint_type type;
    int32_t parent;  // link or US_WORLD
    int32_t child;   // link
    us_pose X_PF;    // the joint's frame in the parent; the child's frame coincides with it at q = 0
    us_vec3 axis;    // in F; need not be of unit length; default x, as in URDF
    us_vec3 axis2;   // universal only, in F at q = 0; default y
    double pitch;    // helical only, m/rad
    // The following hold for every coordinate of the joint.
    double damping;  // N m s or N s/m: torque = -damping * velocity (implicit)
    // N m/rad or N/m, rad or m: torque = -stiffness * (q - rest); not for spherical and floating joints.
    double stiffness, rest;
    double armature;          // kg m^2 or kg, rotor inertia seen at the joint
    double friction;          // N m or N, dry
    double blockage;          // N m or N, dry friction that a fault adds; default 0
    bool is_broken;           // a fault: the child floats, the other fields are as before; default false
    bool has_limits;          // for joints with one coordinate
    double lower, upper;      // rad or m
    double effort, velocity;  // limits as written; 0: none given
    double q0[7], v0[6];      // start state, in the coordinates of US_JOINT_LIST
    const char *file;
    int32_t line;
} us_joint_def;

typedef enum us_shape_kind {
    US_SHAPE_BOX,       // size: full lengths x y z
    US_SHAPE_SPHERE,    // size: radius
    US_SHAPE_CYLINDER,  // size: radius, length along z
    US_SHAPE_CAPSULE,   // size: radius, length of the straight part along z
    US_SHAPE_MESH,      // size: scale x y z of the file; collides as triangles, or moving as convex parts
    US_SHAPE_LOZENGE,   // a rectangle in x, y swept by a sphere; size: full lengths x y, radius of the sphere
    US_SHAPE_DISC,      // a disc in x, y swept by a sphere; size: radius of the disc, radius of the sphere
    US_SHAPE_TRIANGLE,  // points[0..2] swept by a sphere; size: radius of the sphere
    US_SHAPE_CONE,      // size: radius of the base, length along z; the base is at -length/2
    US_SHAPE_ELLIPSOID,     // size: half axes x y z
    US_SHAPE_TETRAHEDRON,   // points[0..3]
    US_SHAPE_CONVEX,        // the hull of the points, or of the mesh
    US_SHAPE_HALF_SPACE,    // all below z = 0
    US_SHAPE_HEIGHT_FIELD,  // all below heights (n_x * n_y, x fastest), centred on G; size: spacing x y
    US_SHAPE_UNION,         // of the parts
    US_SHAPE_INTERSECTION,  // of convex parts
    US_SHAPE_COUNT
} us_shape_kind;

US_API const char *us_shape_kind_name(us_shape_kind kind);  // "box", "half-space", ...; "?" outside

typedef struct us_shape_def us_shape_def;
struct us_shape_def {
    int32_t link;  // or US_WORLD
    us_shape_kind kind;
    double size[3];
    us_pose X_BG;
    bool is_visual, is_collision;
    const char *name;      // NULL: none; shapes are then known by their link and number
    const char *mesh;      // path of the mesh file; NULL: none
    const char *mesh_uri;  // as written
    const char *material;  // of the visual; NULL: none
    const char *surface;   // the material for contact, see us_material_def; NULL: the one called "default"

    // Points, of meshes the scaled vertices; and of meshes three points for each of n_triangle triangles.
    // NULL: not known, nothing collides.
    const us_vec3 *points;
    int32_t n_point;
    const int32_t *triangles;

    // Height fields: samples, or in their place the directory of a site (docs/paging.md), whose n_x, n_y and
    // size then hold.
    const double *heights;
    int32_t n_x, n_y;
    const char *site;
    double zone[4];   // m, x0 y0 x1 y1 in the site's frame: the part that robots may drive on; all 0: all
    double memory;    // bytes that tiles of the site may take; default 200e6
    const char *wkt;  // of heights from a raster: its reference system; NULL: none
    us_vec3 origin;   // m east, north, up: of the field's frame in that reference system

    const us_shape_def *parts;  // of unions and intersections; their X_BG is relative to this shape
    int32_t n_part;

    // Contact.
    double margin;      // m; contact begins this far outside the shape; default 0
    double part_error;  // m; moving meshes: allowed standoff of the convex parts from the mesh; 0: one hull
    uint32_t group, mask;  // two collide when each one's group is in the other's mask; default 1 and all
    int32_t level;  // of detail: the shapes of a link with the level of us_link_def.level collide; default 0

    // Deformable terrain, for height fields of soil.
    double patch_spacing;     // m between its columns, in which wheels and feet leave ruts; 0: none
    double patch_depth;       // m; of the soil above the bedrock; default 0.5
    double patch_memory;      // bytes that the touched columns may take; default 1e9
    const char *patch_model;  // a us_ground_model that acts in it; NULL: the library's own soil

    float rgba[4];

    // The mesh after scale, unit and up-axis, in G: known when it was read, otherwise all 0. The counts can
    // be known without points and triangles, which are kept of shapes that collide.
    int32_t n_vertex, n_triangle;
    us_vec3 box_min, box_max;
    bool is_closed;           // every edge has exactly two triangles
    us_inertia unit_inertia;  // of density 1, closed meshes and the other shapes; about the com in G's axes
    const char *file;
    int32_t line;
};

// Two links that never collide. Links joined by a joint never do anyway.
typedef struct us_exclude_def {
    int32_t link_a, link_b;  // or US_WORLD
    const char *file;
    int32_t line;
} us_exclude_def;

enum { US_COUPLING_TERMS = 8 };

// Coupling: sum of factor * q = offset over joints whose velocity is the derivative of their position (not
// spherical, not floating). A rocker differential is q_left + q_right = 0; a URDF mimic joint is q -
// multiplier * q_other = offset.
typedef struct us_coupling_def {
    const char *name;
    int32_t group;
    int32_t n_term;
    int32_t joint[US_COUPLING_TERMS];
    int32_t coordinate[US_COUPLING_TERMS];  // which coordinate of that joint, from 0
    double factor[US_COUPLING_TERMS];
    double offset;
    const char *file;
    int32_t line;
} us_coupling_def;

typedef enum us_loop_type {
    US_LOOP_POINT,  // the two points coincide: 3 rows
    US_LOOP_HINGE,  // and the z axes are parallel: 5 rows
    US_LOOP_WELD,   // and the frames are parallel: 6 rows
    US_LOOP_COUNT
} us_loop_type;

// Loop closure between frame C on link a and frame D on link b.
typedef struct us_loop_def {
    const char *name;
    int32_t group;
    us_loop_type type;
    int32_t link_a, link_b;  // link or US_WORLD
    us_pose X_AC, X_BD;
    const char *file;
    int32_t line;
} us_loop_def;

// Drive: torque = clamp(torque + kp (position - q) + kd (velocity - v), -limit, limit), implicit in q and
// v. A pure torque has kp = kd = 0. For joints with one coordinate, or one coordinate of cylindrical,
// universal, planar.
typedef struct us_drive_def {
    const char *name;
    int32_t joint;
    int32_t coordinate;
    double kp, kd;
    double position, velocity, torque;  // start values of the command
    double limit;                       // 0: none
    const char *file;
    int32_t line;
} us_drive_def;

// Recording to a CSV file with the named values; see us_sim_find_value. No name: every joint's q and v.
typedef struct us_record_def {
    const char *file_name;
    double rate;  // Hz of simulated time; 0: every tick
    int32_t n_value;
    const char *const *values;
    const char *file;
    int32_t line;
} us_record_def;

// Extension: an element of a file that is kept as it is, <gazebo> or <transmission>.
typedef struct us_extension_def {
    const char *tag;  // "gazebo", "transmission"
    int32_t group;
    const char *reference;  // the link or joint it refers to; NULL
    const char *xml;        // the whole element
    const char *file;
    int32_t line;
} us_extension_def;

// Definitions with every default filled in.
US_API us_world_settings us_world_settings_default(void);
US_API us_link_def us_link_def_default(void);
US_API us_joint_def us_joint_def_default(us_joint_type type);
US_API us_shape_def us_shape_def_default(us_shape_kind kind);
US_API us_coupling_def us_coupling_def_default(void);
US_API us_loop_def us_loop_def_default(us_loop_type type);
US_API us_drive_def us_drive_def_default(void);
US_API us_record_def us_record_def_default(void);
US_API us_pair_def us_pair_def_default(void);

// How the root link of a robot file is joined to the world. A scene states it itself.
typedef enum us_base { US_BASE_FIXED, US_BASE_FLOATING } us_base;

typedef struct us_load_def {
    us_allocator allocator;
    us_base base;           // robot files only; default fixed
    bool exclude_overlaps;  // links of one robot that overlap at the start never collide
    int32_t n_parameter;
    const char *const *parameters;  // "name=value", overriding the scene's <parameter>
    int32_t n_search;
    const char *const *search;  // search path of package://NAME/..., before the directories around the file
    bool skip_meshes;           // do not open mesh files (their shapes keep no vertex counts)
    bool skip_plugins;          // do not load the libraries of <plugin>; their models stay unknown
    // Whether a file that the scene or robot names may be opened: `kind` says what it is ("plug-in", "mesh",
    // "scene file", "robot file", "height file", "raster", "site", "interface file", "table of beams"),
    // `path` where it would be opened, of a mesh its name as it is written. False: the load ends with
    // US_ERR_ACCESS. NULL: all may. Not asked about the file that us_spec_load itself is given.
    bool (*may_open)(void *context, const char *kind, const char *path);
    // Progress of large rasters, which take seconds: the file and the fraction read. May be NULL.
    void (*progress)(void *context, const char *file, double share);
    void *context;
} us_load_def;

US_API us_load_def us_load_def_default(void);

// Loads a scene (<scene>) or a robot (<robot>, URDF) and all files that it names. What is doubtful but usable
// becomes a warning.
US_API us_status us_spec_load(const char *path, const us_load_def *def, us_spec **out_spec, us_error *err);

// The same from memory; `path` names the text in errors, and relative names start at its directory.
US_API us_status us_spec_load_text(const char *text, size_t length, const char *path, const us_load_def *def,
                                   us_spec **out_spec, us_error *err);

US_API us_status us_spec_create(const us_allocator *allocator, us_spec **out_spec);
US_API void us_spec_destroy(us_spec *spec);  // NULL is allowed

US_API us_status us_spec_set_world(us_spec *spec, const us_world_settings *def);
US_API us_status us_spec_add_group(us_spec *spec, const us_group_def *def, int32_t *out_index);
US_API us_status us_spec_add_link(us_spec *spec, const us_link_def *def, int32_t *out_index);
US_API us_status us_spec_add_joint(us_spec *spec, const us_joint_def *def, int32_t *out_index);
US_API us_status us_spec_add_shape(us_spec *spec, const us_shape_def *def, int32_t *out_index);
US_API us_status us_spec_add_coupling(us_spec *spec, const us_coupling_def *def, int32_t *out_index);
US_API us_status us_spec_add_material(us_spec *spec, const us_material_def *def, int32_t *out_index);
US_API us_status us_spec_add_region(us_spec *spec, const us_region_def *def, int32_t *out_index);
US_API us_status us_spec_add_soil_map(us_spec *spec, const us_soil_map_def *def, int32_t *out_index);
US_API us_status us_spec_add_pair(us_spec *spec, const us_pair_def *def, int32_t *out_index);
US_API us_status us_spec_add_exclude(us_spec *spec, const us_exclude_def *def, int32_t *out_index);
US_API us_status us_spec_add_loop(us_spec *spec, const us_loop_def *def, int32_t *out_index);
US_API us_status us_spec_add_drive(us_spec *spec, const us_drive_def *def, int32_t *out_index);
US_API us_status us_spec_add_record(us_spec *spec, const us_record_def *def, int32_t *out_index);
US_API us_status us_spec_add_extension(us_spec *spec, const us_extension_def *def, int32_t *out_index);
US_API us_status us_spec_add_warning(us_spec *spec, const us_error *warning);

// Replaces a joint's definition (same parent and child), for example its start state or damping.
US_API us_status us_spec_set_joint(us_spec *spec, int32_t joint, const us_joint_def *def);

// Replaces a drive's definition (same joint and coordinate).
US_API us_status us_spec_set_drive(us_spec *spec, int32_t drive, const us_drive_def *def);

// Edits, for example of a copy with which a world continues: us_sim_replace. Removing closes the gap: later
// indices change. What depends on a removed link is removed with it: joints, links below, shapes, drives,
// couplings, loops, recorded values. Errors: US_ERR_ARG for a bad index. The copy is deep, with the same
// indices and allocator.
US_API us_status us_spec_copy(const us_spec *spec, us_spec **out_spec);
US_API us_status us_spec_remove_group(us_spec *spec, int32_t group);
US_API us_status us_spec_remove_link(us_spec *spec, int32_t link);
US_API us_status us_spec_remove_shape(us_spec *spec, int32_t shape);
US_API us_status us_spec_set_shape(us_spec *spec, int32_t shape, const us_shape_def *def);
US_API us_status us_spec_move_shape(us_spec *spec, int32_t shape, us_pose X_BG);

// Moves an object, by its root link (US_ERR_TREE for others): the start pose where it floats, else the frame
// of its joint to the world. Heights in m, along the world's z; negative lowers.
US_API us_status us_spec_move_link(us_spec *spec, int32_t link, us_pose X_WB);
US_API us_status us_spec_raise_link(us_spec *spec, int32_t link, double height);

typedef struct us_spec_counts {
    int32_t n_group, n_link, n_joint, n_shape, n_coupling, n_loop, n_drive, n_record, n_extension, n_warning;
    int32_t n_material, n_pair, n_exclude, n_region, n_soil_map;
} us_spec_counts;

US_API us_spec_counts us_spec_get_counts(const us_spec *spec);

// Views are borrowed: they live until the spec is changed or destroyed. NULL for a bad index.
US_API const us_world_settings *us_spec_view_world(const us_spec *spec);
US_API const us_group_def *us_spec_view_group(const us_spec *spec, int32_t i);
US_API const us_link_def *us_spec_view_link(const us_spec *spec, int32_t i);
US_API const us_joint_def *us_spec_view_joint(const us_spec *spec, int32_t i);
US_API const us_shape_def *us_spec_view_shape(const us_spec *spec, int32_t i);
US_API const us_coupling_def *us_spec_view_coupling(const us_spec *spec, int32_t i);
US_API const us_loop_def *us_spec_view_loop(const us_spec *spec, int32_t i);
US_API const us_drive_def *us_spec_view_drive(const us_spec *spec, int32_t i);
US_API const us_record_def *us_spec_view_record(const us_spec *spec, int32_t i);
US_API const us_extension_def *us_spec_view_extension(const us_spec *spec, int32_t i);
US_API const us_error *us_spec_view_warning(const us_spec *spec, int32_t i);
US_API const us_material_def *us_spec_view_material(const us_spec *spec, int32_t i);
US_API const us_region_def *us_spec_view_region(const us_spec *spec, int32_t i);
US_API const us_soil_map_def *us_spec_view_soil_map(const us_spec *spec, int32_t i);
US_API const us_pair_def *us_spec_view_pair(const us_spec *spec, int32_t i);
US_API const us_exclude_def *us_spec_view_exclude(const us_spec *spec, int32_t i);

// Index by full name, or -1.
US_API int32_t us_spec_find_link(const us_spec *spec, const char *name);
US_API int32_t us_spec_find_joint(const us_spec *spec, const char *name);
US_API int32_t us_spec_find_drive(const us_spec *spec, const char *name);

#ifdef __cplusplus
}
#endif
#endif
