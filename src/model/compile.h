// What the steps of compiling share.
#ifndef USI_MODEL_COMPILE_H
#define USI_MODEL_COMPILE_H

#include "model/model.h"
#include "spec/spec.h"

// Everything temporary lives in the arena.
typedef struct usi_build {
    us_spec *spec;
    us_error *err;
    usi_arena arena;
    const us_joint_def *joint_def;  // as they act: those of the spec, but what is broken floats
    int32_t *piece;  // per joint: the broken one that it hangs on, or is; -1: none. NULL: nothing is broken
    usi_node *node;  // n_node
    us_inertia *inertia;  // per node, in node axes
    int32_t n_node, n_q, n_tree;
    int32_t *joint_of_link;  // the joint above each link
    int32_t *first_child,
        *next;       // joints below a link (index link + 1, 0 is the world), and the next sibling
    int32_t *order;  // joints, parents first, depth first
    usi_body *body;
    usi_joint *joint;
    double *axis_inertia;  // per node, at the start state
    double *lost_inertia;  // per node: not 0 where nothing resists it when the joints beyond give way: what
                           // would be lost in rounding
    bool *is_driven;       // per joint
    usi_exclusion *exclusion, *loose;
} usi_build;

// An error at an element of the spec: what ("joint"), its name, file and line.
us_status usi_build_fail(usi_build *b, us_status code, const char *file, int32_t line, const char *what,
                         const char *name, const char *remedy, const char *message);
#define USI_FAIL_JOINT(b, code, j, remedy, message) \
    usi_build_fail(b, code, (j)->file, (j)->line, "joint", (j)->name, remedy, message)
#define USI_FAIL_LINK(b, code, l, remedy, message) \
    usi_build_fail(b, code, (l)->file, (l)->line, "link", (l)->name, remedy, message)
us_status usi_build_out_of_memory(usi_build *b);

bool usi_all_finite(const double *x, int n);
bool usi_is_rotation(us_quat q);  // finite, and can be normalised

// check.c: every link, joint and name by itself.
us_status usi_build_check(usi_build *b);
// nodes.c: joints sorted from the world outwards; then nodes, bodies, and the inertia about each axis at the
// start state.
us_status usi_build_sort(usi_build *b);
us_status usi_build_nodes(usi_build *b);
us_status usi_build_measure(usi_build *b);
// articulated.c: which axes nothing resists. Needs the inertia about each axis.
us_status usi_build_articulate(usi_build *b);
// Poses of the nodes at the start state.
void usi_build_place(const usi_build *b, us_pose *out_X_WN);
// broken.c: joint_def and piece. Cost: where something is broken, a second tree.
us_status usi_build_break(usi_build *b);
// Whether a coupling is left: nothing that it couples is broken, or has gone without the rest.
bool usi_build_couples(const usi_build *b, const us_coupling_def *c);
// joint_laws.c: how many laws act on joints, before the arrays are laid out; then the laws. Needs trees and
// drives.
us_status usi_build_count_laws(usi_build *b, us_model *m);
us_status usi_build_laws(usi_build *b, us_model *m);
bool usi_build_has_limit(const us_joint_def *j);
bool usi_build_is_idle(const us_spec *s, const us_drive_def *d);  // its joint is broken
// batteries.c: how many there are, and their names' length; then the batteries, before the drives.
void usi_build_count_batteries(const usi_build *b, us_model *m);
void usi_build_batteries(const usi_build *b, us_model *m);
bool usi_build_has_battery(const us_network_def *n);
int32_t usi_build_battery_of(const usi_build *b, int32_t group);  // -1: none
// shapes.c: m->geom, and b->exclusion and b->loose with their numbers in m. Needs bodies, joints and
// materials.
us_status usi_build_shapes(usi_build *b, us_model *m);
uint64_t usi_shapes_hash(const us_model *m, uint64_t seed);
int32_t usi_build_ground(const usi_build *b, const us_model *m,
                         const char *name);  // a plane or height field of the world; -1: none
// overlaps.c: every two shapes of one group that may collide by their bits, on different nodes, and overlap
// with the nodes at X_WN. A status other than US_OK of on_overlap ends it.
typedef us_status usi_on_overlap(void *context, const usi_geom *a, const usi_geom *b, double depth);
us_status usi_each_overlap(const us_model *m, const us_pose *X_WN, usi_on_overlap *on_overlap, void *context);
// soil_map.c: after the grounds and their regions.
us_status usi_build_soil_maps(usi_build *b, us_model *m);
uint64_t usi_soil_maps_hash(const us_model *m, uint64_t seed);
// materials.c: materials, rows and models of the interaction table before the arrays are laid out; then the
// table itself.
us_status usi_build_materials(usi_build *b, us_model *m);
us_status usi_build_pairs(usi_build *b, us_model *m);
// An error that ends in the names that are known.
us_status usi_build_unknown_material(usi_build *b, const us_model *m, const char *file, int32_t line,
                                     const char *what, const char *name, const char *material);
uint64_t usi_materials_hash(const us_model *m, uint64_t seed);
// robots.c: m->robot. Needs joints.
us_status usi_build_robots(usi_build *b, us_model *m);
// A warning of the spec, unless it is there already.
us_status usi_build_warn(usi_build *b, const char *file, int32_t line, const char *element,
                         const char *remedy, const char *message);

#endif
