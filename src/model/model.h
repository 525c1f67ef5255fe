// The compiled system as the algorithms see it: flat arrays carved from one block.
//
// Every velocity has a node: a link of its own, joined to its parent by one axis. A joint with several axes
// is a row of nodes of which only the last carries mass. Node i and velocity i are the same number. A node's
// frame N has its origin on the joint and one of its axes along the joint's axis, so that a hinge turns two
// columns of a rotation; where the links of the spec are relative to that is in `body`. Nodes are sorted
// depth first, parents before children, tree by tree.
#ifndef USI_MODEL_MODEL_H
#define USI_MODEL_MODEL_H

#include "base/memory.h"
#include "math/v4.h"
#include "spec/geometry.h"
#include "understudy/geom.h"
#include "understudy/ground_model.h"
#include "understudy/interaction.h"
#include "understudy/model.h"
#include "understudy/sensor.h"
#include "understudy/soil_law.h"

typedef enum usi_node_kind {
    USI_NODE_HINGE,  // turns about its axis
    USI_NODE_SLIDE,  // moves along its axis
    USI_NODE_SCREW,  // turns about its axis and moves by pitch along it
    USI_NODE_BALL,   // first of three: turns by a quaternion; the axes are the child's x, y, z
    USI_NODE_FREE,   // first of six: quaternion and position; the child's axes, angular then linear
    USI_NODE_NEXT,   // the second and later ones of a ball or free joint
} usi_node_kind;

enum {
    USI_NODE_TURNED = 1,        // T is not the identity
    USI_NODE_MASSIVE = 2,       // has mass or inertia of its own
    USI_NODE_ROOT = 4,          // belongs to a joint on the world: the tree's origin moves with it
    USI_NODE_CARRY = 8,         // its parent is the node before it
    USI_NODE_STORE_FIRST = 16,  // not CARRY, and the first of its siblings that the backward pass stores
    USI_NODE_STORED = 32,       // has children that are stored rather than carried
    USI_NODE_DIAGONAL = 64,     // its inertia about the centre of mass has no products
};

typedef struct usi_node {
    usi_v4 T[3];     // columns of R_PN at q = 0, in the parent node's axes (world axes for a root)
    usi_v4 r;        // m, p_PN at q = 0, in the parent node's axes
    usi_v4 com;      // m, p_NNcm; the spare lane holds the mass, kg
    usi_v4 I[3];     // kg m^2, columns of the inertia about the centre of mass, in N's axes
    double pitch;    // m/rad, screws only
    int32_t parent;  // node, or -1 for the world
    int32_t kind;
    int32_t q;  // first position index
    int32_t tree;
    int32_t flags;
    int32_t joint;
    int32_t axis;  // 0, 1, 2: x, y, z of N is the joint's axis
    int32_t reserved[7];
} usi_node;

typedef struct usi_tree {
    int32_t first, end;    // nodes first .. end - 1
    int32_t is_free_body;  // a single free body that nothing else holds: integrated in momentum form
    int32_t is_free_tree;  // a floating tree without constraints to elsewhere: its momentum is kept
    int32_t actuated;      // its place in `actuated`; -1: nothing acts on its joints
} usi_tree;

typedef struct usi_body {
    us_pose X_NB;  // the link in its node's frame (in the world when node is -1)
    us_inertia inertia;
    int32_t node;
    int32_t joint;  // the joint above it
} usi_body;

typedef struct usi_joint {
    us_pose X_PF;
    int32_t type, parent, child;  // us_joint_type, bodies
    int32_t first_q, n_q, first_v, n_v;
    int32_t is_broken;  // it floats because it broke
} usi_joint;

typedef struct usi_drive {
    double kp, kd, limit;               // limit: infinite when none
    double position, velocity, torque;  // start values
    int32_t joint, v, q;                // v, q: -1 when the joint is broken
    int32_t battery;                    // that feeds it; -1: none
    int32_t encoder;                    // over which its loop is closed; -1: the joint itself
    int32_t reserved;                   // 0
} usi_drive;

// What may act on one coordinate of a joint: a torque towards a position, linear in q and v up to bounds.
// Commands and what friction remembers are in the state; src/actuate makes rows of the laws in each step.
typedef enum usi_joint_law_kind {
    USI_LAW_SPRING,    // joint spring and damper, without bounds
    USI_LAW_DRIVE,     // towards the command
    USI_LAW_FRICTION,  // dry: a stiff spring from where the joint stuck, which gives way at its bounds
    USI_LAW_LIMIT,     // stiff springs and dampers beyond two positions, which only push back
    USI_LAW_KINDS
} usi_joint_law_kind;

typedef struct usi_joint_law {
    double kp, kd;   // N m/rad, N m s/rad
    double bound;    // N m or N: of drives and friction, to both sides
    double lower;    // rad, m: of limits, infinite where there is none; of springs: where it is slack
    double upper;    // rad, m: of limits
    double reach;    // rad or m per speed: how far ahead a limit brakes within a step
    double inertia;  // kg m2: of friction, about the axis at the start state
    int32_t v, q;
    int32_t index;    // of the drive; of friction in `friction`
    int32_t battery;  // of drives; -1: none
    int32_t is_held;  // of friction: there is a place where the joint sticks
    int32_t encoder;  // of drives: what they see of their joint; -1: the joint as it is
} usi_joint_law;

// Gains of dry friction of a strength, N m or N.
void usi_friction_gains(const usi_joint_law *law, double friction, double *out_kp, double *out_kd);

// A robot's battery: it feeds the robot's drives.
typedef struct usi_battery {
    double capacity, idle, voltage;  // J, W, V
} usi_battery;

// A tree with laws, sorted by kind: those of kind k are joint_law first[k] .. first[k + 1] - 1.
typedef struct usi_actuated {
    int32_t tree, first[USI_LAW_KINDS + 1];
} usi_actuated;

// A row sum(factor * q) = offset.
typedef struct usi_coupling {
    double factor[US_COUPLING_TERMS], offset;
    int32_t v[US_COUPLING_TERMS], q[US_COUPLING_TERMS];
    int32_t n_term, row;
} usi_coupling;

// A loop: frame C on node a, frame D on node b (or on the world: -1). Rows: 3 for the points, then n_axis
// rows "axis of C perpendicular to axis of D".
typedef struct usi_loop {
    us_pose X_AC, X_BD;
    int32_t node_a, node_b, n_axis, row;
    int32_t axis_c[3], axis_d[3];  // which axes, 0 .. 2
    int32_t body_a, body_b;        // links of these nodes; -1: the world
} usi_loop;

// A shape that collides. Not part of the hashed block, because its data are pointers: the hash takes its
// numbers.
typedef struct usi_geom {
    us_geom geom;   // its hulls, meshes and fields belong to the model
    us_pose X_NG;   // in its node's frame (in the world when node is -1)
    double reach;   // m, radius of the sphere around the shape's box centre; infinite for a half space
    double margin;  // m
    double tread;   // m that the grousers of a cylinder reach beyond it; 0 where there is no soil
    int32_t node, tree, body;  // -1: the world
    int32_t owner;             // the spec's group of its link; -1: none
    int32_t shape;             // of the spec
    int32_t material;
    int32_t patch;      // of the model; -1: it keeps its form
    bool is_soil;       // the world's, a half space or a height field, of a material that gives way
    bool has_region;    // part of it is made of something else
    bool has_soil_map;  // numbers of its soil vary over it
    bool has_flow_map;  // ... by which a patch of it flows
    bool is_in_tree;    // of fixed_tree
    bool is_round;      // rolls: spheres, capsules, cylinders, ...; the anchor is kept on the other one
    uint32_t group, mask;
    float colour[3];  // what it reflects of red, green and blue light, 0 to 1
} usi_geom;

// A patch of soil over a height field.
typedef struct usi_deformable_row {
    int32_t geom;
    int32_t soil;      // the material by which it flows, where no region says otherwise
    int32_t n_x, n_y;  // columns
    double spacing, depth;
    double memory;  // bytes that its tiles may take
    int32_t model;  // of ground_model; -1: the library's own soil
} usi_deformable_row;

// A part of a ground that is made of something else.
typedef struct usi_region_row {
    const char *name;
    int32_t geom, material;
    int32_t n;  // corners, x and y of one after the other, in the ground's frame
    const double *corner;
    double min_x, min_y, max_x, max_y;
    const uint8_t *mask;  // in place of corners: mask_x * mask_y samples, centred
    int32_t mask_x, mask_y, value;
    double dx, dy;
} usi_region_row;

// A number of the soil of a ground that varies from place to place (soil_map.c).
typedef struct usi_soil_map {
    int32_t geom, material;  // the ground; of which soil, -1: of any
    int32_t number;          // where it is in us_soil, bytes
    int32_t n_x, n_y;
    double dx, dy;                 // m
    double x, y;                   // m, of the samples' middle in the ground's frame
    double low, high;              // extremes, of a site's layer those of all of it
    const double *value;           // n_x * n_y, x fastest; NaN: none
    const us_height_field *paged;  // whose samples they are, where they are paged in; NULL: all are in memory
} usi_soil_map;

// How two materials touch: element a * n_material + b of the table, the same for (b, a).
typedef struct usi_pair {
    us_pair_values values;
    int32_t model;      // index into the model's interactions, of what acts where no soil does
    int32_t parameter;  // its row among `pair_row`, where parameters of its own are; -1: no row speaks of it
} usi_pair;

// The parameters of one row of the interaction table.
typedef struct usi_interaction_row {
    const us_property *parameters;
    int32_t n_parameter;
} usi_interaction_row;

// The interaction models that are there without being registered: their `touch` is NULL.
enum { USI_MODEL_COMPLIANT, USI_MODEL_SPRING_DAMPER, USI_MODEL_FIRST_REGISTERED };
// What acts between two materials (pair_model): one of these, or, below 0, a law of soil. That acts in
// grounds of soil; elsewhere the two are compliant.
enum { USI_MODEL_SOIL = -1 };  // the library's own; USI_MODEL_SOIL - 1 - i: soil_law[i]
enum { USI_MIN_EXPONENT = 1, USI_MAX_EXPONENT = 4 };  // of the model spring-damper

// Two bodies (links) that never collide; a < b, -1 is the world; in order of (a, b). Those of joints and
// loops are among them.
typedef struct usi_exclusion {
    int32_t a, b;
} usi_exclusion;

// An encoder at a joint's coordinate (sense/encoder.h).
typedef struct usi_encoder {
    const char *name;  // its joint's, without the robot's
    int32_t q, v;
    bool is_lost;  // behind a break: its cable is torn
} usi_encoder;

// A sensor of a robot that takes samples. Its numbers in the state stand one behind the other, by the counts
// of its kind: see usi_sensor_part.
typedef struct usi_sensor {
    const us_sensor_kind *kind;
    int32_t robot;
    int32_t reading;  // where what it says begins among all readings
    int32_t part;     // where its other numbers begin among those of all sensors
    int32_t body;     // link; -1: none
    int32_t battery;  // of its robot; -1: none
    int32_t lidar;    // lidar: which
    bool is_lost;     // behind a break: its cable is torn
    double rate;      // Hz; 0: every step
    double latency;   // s from a sample until the robot has it
    int64_t phase;    // ticks by which its samples come earlier than those of the first robot
    const char *name;
    const char *frame;        // id of the frame of its readings; NULL: they have none
    us_pose X_BS;             // in its link
    const double *parameter;  // at the start, in the order of the kind
    uint64_t seed;            // of its random numbers
    size_t queue;             // where its samples that are under way are among those of all, in numbers
    int32_t max_pending;      // how many there can be
} usi_sensor;

// What the state has of a sensor beside what it says.
typedef enum usi_sensor_part {
    USI_SENSOR_PARAMETER,  // values now
    USI_SENSOR_MEMORY,     // what its kind keeps
    USI_SENSOR_TRUTH,      // of its last sample
    USI_SENSOR_SAMPLE,     // what it made of that; the robot has it after the latency
    USI_SENSOR_OFFSET,     // faults: of each reading
    USI_SENSOR_DEVIATION,  // faults: of noise that is added to each reading
    USI_SENSOR_PARTS
} usi_sensor_part;

static inline int32_t usi_sensor_part_count(const us_sensor_kind *k, usi_sensor_part part) {
    return part == USI_SENSOR_PARAMETER ? k->n_parameter
           : part == USI_SENSOR_MEMORY  ? k->n_state
                                        : k->n_reading;
}
static inline int32_t usi_sensor_part_at(const usi_sensor *s, usi_sensor_part part) {
    int32_t at = s->part;
    for (int i = 0; i < (int)part; i++)
        at += usi_sensor_part_count(s->kind, (usi_sensor_part)i);
    return at;
}
// A sample that is under way: when it was taken and when it arrives (ticks, as bits), and its readings.
enum { USI_SENSOR_MAX_PENDING = 16384 };
enum { USI_PENDING_TICK, USI_PENDING_DUE, USI_PENDING_READING };
static inline int32_t usi_pending_size(const us_sensor_kind *k) { return USI_PENDING_READING + k->n_reading; }

// X(type, name, count, unit, about)
#define USI_MODEL_FIELDS(X)                                                                             \
    X(usi_node, node, n_node, "", "moving links, one per velocity, parents first")                      \
    X(usi_tree, tree, n_tree, "", "trees: which nodes, and whether they are free")                      \
    X(int32_t, row_start, n_node + 1, "", "where each node's path begins in path and in the rows of H") \
    X(int32_t, path, n_path, "", "for each node its ancestors from the root down to itself")            \
    X(double, armature, n_node + 3, "kg m2", "rotor inertia at the joint, in whole vectors")            \
    X(double, damping, n_node, "N m s", "viscous damping")                                              \
    X(double, stiffness, n_node, "N m/rad", "joint spring")                                             \
    X(double, rest, n_node, "rad", "where the joint spring is slack")                                   \
    X(double, q_start, n_q, "rad, m", "start positions")                                                \
    X(double, v_start, n_node, "rad/s, m/s", "start velocities")                                        \
    X(usi_joint_law, joint_law, n_joint_law, "", "what may act on joints, by tree, kind and velocity")  \
    X(int32_t, friction, n_friction, "", "which of these are dry friction")                             \
    X(double, blockage, n_friction, "N m, N", "friction that a fault adds at the start")                \
    X(usi_actuated, actuated, n_actuated, "", "trees with joint laws")                                  \
    X(usi_battery, battery, n_battery, "", "batteries of robots")                                       \
    X(int32_t, battery_name, n_battery, "", "where the robot's name begins in names")                   \
    X(usi_body, body, n_body, "", "links of the spec: node and pose on it")                             \
    X(usi_joint, joint, n_joint, "", "joints of the spec: where their coordinates are")                 \
    X(usi_drive, drive, n_drive, "", "drives: gains and start commands")                                \
    X(usi_coupling, coupling, n_coupling, "", "linear couplings of joint positions")                    \
    X(usi_loop, loop, n_loop, "", "loop closures")                                                      \
    X(usi_pair, pair, n_material *n_material, "", "how each pair of materials touches")                 \
    X(usi_exclusion, exclusion, n_exclusion, "", "pairs of links that never collide")                   \
    X(usi_exclusion, loose, n_loose, "", "those that a broken joint held: they collide once apart")     \
    X(int32_t, material_name, n_material, "", "where the name begins in names")                         \
    X(int32_t, body_name, n_body, "", "where the name begins in names")                                 \
    X(int32_t, joint_name, n_joint, "", "where the name begins in names")                               \
    X(int32_t, drive_name, n_drive, "", "where the name begins in names")                               \
    X(char, names, n_names, "", "all names, each ended by 0")

typedef enum usi_solver {
    USI_SOLVER_NEWTON,
    USI_SOLVER_GAUSS_SEIDEL,
    USI_SOLVER_RIGID_DIRECT,
    USI_SOLVER_RIGID_ITERATIVE
} usi_solver;

enum { USI_MAX_CONTACTS = INT32_MAX / 64 };  // contact points of a state

struct us_model {
    us_allocator allocator;
    void *block;  // all arrays
    size_t block_size;
    uint64_t hash;
    us_vec3 gravity;  // m/s^2
    us_sky sky;
    double step;       // s
    double tolerance;  // of the error-controlled integrator
    uint64_t seed;
    us_integrator integrator;
    int32_t n_node, n_q, n_tree, n_path, n_body, n_joint, n_drive, n_coupling, n_loop, n_row, n_soft,
        n_joint_law, n_friction, n_actuated, n_battery, n_names;
    int32_t max_joint_row;    // that the laws can make in a step
    int32_t n_pad, n_q_pad;   // n_node and n_q rounded up to whole vectors
    bool is_flat;             // no ball or free joint: position i belongs to velocity i
    double total_mass;        // kg, of all that moves
    const us_error *warning;  // n_warning: the spec's
    int32_t n_warning;
    usi_geom *geom;  // shapes that collide, sorted by node, those of the world first
    int32_t n_geom, n_material, n_exclusion, n_loose;
    // The world's own shapes, where there are many, by place: for rays. Box i is that of geom fixed_geom[i];
    // what has no end, and ground, is not among them. NULL: there are few.
    struct usi_box_tree *fixed_tree;
    int32_t *fixed_geom;
    int32_t max_contact;  // contact points that a state has room for at first
    int32_t solver;       // usi_solver
    usi_assets
        assets;  // hulls, meshes, height fields of the shapes; in its arena the shapes and what follows here
    const us_interaction
        *interaction;  // models of contact: the built-in ones, then those that were registered
    const usi_interaction_row *pair_row;  // one per row of the spec's table
    const int32_t *pair_model;            // n_material * n_material: what acts at the start
    const us_soil_law *soil_law;          // those that were registered
    int32_t n_soil_law;
    const us_ground_model *ground_model;  // those that were registered
    int32_t n_ground_model;
    int32_t n_law_state;              // numbers that a contact point keeps for them: of the law that has most
    const us_material_def *material;  // n_material, with their properties; 0 is "default"
    const usi_deformable_row *patch;
    const usi_region_row *region;  // later ones lie over earlier ones
    const usi_soil_map *soil_map;  // later ones lie over earlier ones
    int32_t n_interaction, n_pair_row, n_deformable, n_region, n_soil_map;
    int32_t n_soil;                       // n_material when any of them is a soil, otherwise 0
    int32_t n_hold;                       // trees and patches when some ground is paged in, otherwise 0
    const struct usi_robot_model *robot;  // those on the network: robots.h
    bool holds_interfaces;                // of the robots, once they are all made
    const usi_encoder *encoder;           // robot by robot
    const usi_sensor *sensor;             // robot by robot
    int32_t n_encoder;
    int32_t n_sensor, n_reading;    // n_reading: numbers of all of them
    int32_t n_sensor_part;          // numbers of all of them beside the readings
    size_t n_pending;               // numbers of all samples that can be under way
    const struct usi_lidar *lidar;  // robot by robot: lidars.h
    int32_t n_lidar;
    size_t lidar_size;  // bytes of all their frames
    int32_t n_robot;
    double clock_rate;  // Hz, of /clock
#define MODEL_FIELD(type, name, count, unit, about) type *name;
    USI_MODEL_FIELDS(MODEL_FIELD)
#undef MODEL_FIELD
};

// Where the joint has moved a node's frame, in the frame it has at q = 0. `q` points at the joint's first
// position of this node.
us_pose usi_node_motion(const usi_node *n, const double *q);
// The frame at q = 0 in the parent node.
us_pose usi_node_rest(const usi_node *n);

int32_t usi_find_material(const us_model *m, const char *name);  // -1: unknown
// What acts between two materials, by its name and back. US_ERR_NAME: there is no such model.
us_status usi_find_pair_model(const us_model *m, const char *name, int32_t *out_model);
const char *usi_pair_model_name(const us_model *m, int32_t model);
// Whether a model can act between two materials with the parameters of their row.
bool usi_pair_model_fits(const us_model *m, int32_t a, int32_t b, int32_t model);
int32_t usi_find_friction(const us_model *m, int32_t v);  // place in `friction`; -1: a velocity without

// soil_map.c: what maps say of a soil at a place of its ground's frame. Paged ones are read where a client
// has asked for their tiles.
void usi_soil_map_apply(const us_model *m, int32_t geom, int32_t material, double x, double y, us_soil *soil);
// Whether a material can be this soil under the maps that there are. US_ERR_VALUE.
us_status usi_soil_map_check(const us_model *m, int32_t material, const us_soil *soil, us_error *err);

// Where two bodies stand in a sorted list of exclusions; -1: they are not in it.
int32_t usi_exclusion_find(const usi_exclusion *pairs, int32_t n, int32_t a, int32_t b);

// Whether two of the model's shapes may ever touch: each in the other's mask, not on the same node, not both
// at rest, not excluded. Cost: a search among the exclusions.
bool usi_model_may_collide(const us_model *m, int32_t geom_a, int32_t geom_b);

// Fills one usi_field per array of the model (at most cap); returns how many there are, and the block's size
// unless NULL.
enum { USI_MODEL_MAX_FIELDS = 32 };
int32_t usi_model_fields(const us_model *m, usi_field *out, int32_t cap, size_t *out_size);

#endif
