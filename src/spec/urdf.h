// URDF reader: tables and functions that its files share.
//
//   urdf.c          the order of things: collect, check, read, add to the spec
//   urdf_tree.c     names, the tree, and which links form one rigid body
//   urdf_joint.c    <joint> and <mimic>
//   urdf_shape.c    <visual>, <collision>, <material>
//   urdf_inertia.c  <inertial>, its repairs, and mass properties where the file has none
//
// The whole robot is read into the tables below before anything is added to the spec, because a link's mass
// properties may depend on its shapes and on the links that are fixed to it.
#ifndef USI_SPEC_URDF_H
#define USI_SPEC_URDF_H

#include "spec/xml.h"

typedef struct usi_urdf_link {
    const char *name;  // as written; borrowed from the document
    const xmlNode *node;
    int32_t joint;        // the joint whose child it is; -1: the root
    int32_t body;         // the link that leads its rigid body: the first one of those joined by fixed joints
    int32_t first_shape;  // its shapes stand one after another
    int32_t n_shape;
    us_inertia inertia;
    bool has_inertial;
} usi_urdf_link;

typedef struct usi_urdf_joint {
    const char *name;
    const xmlNode *node;
    us_joint_def def;  // parent and child are links of this file
    const xmlNode *mimic_node;
    int32_t mimic;  // the joint it follows; -1: none
    bool is_held;   // it follows a fixed joint: it stays at `offset`
    double multiplier, offset;
} usi_urdf_joint;

typedef struct usi_urdf_material {
    const char *name;
    float rgba[4];
} usi_urdf_material;

// Names to indices: open addressing, slot -1 is free.
typedef struct usi_urdf_names {
    int32_t *slot;
    size_t n_slot;
} usi_urdf_names;

enum { USI_URDF_WARNED = 128 };  // maximum number of different unknown names that are reported

typedef struct usi_urdf {
    usi_reader *r;
    const xmlNode *robot;
    const char *group;  // "" for none
    bool is_floating;
    bool excludes_overlaps;
    const char *base_name;  // of the joint between the world and the root link; NULL: the usual one
    int32_t root;
    int32_t n_link, n_joint, n_shape, n_material;
    usi_urdf_link *links;
    usi_urdf_joint *joints;
    us_shape_def *shapes;
    usi_urdf_material *materials;
    usi_urdf_names link_names, joint_names;
    int32_t *order;  // the links, parents before children
    int n_warned;
    const char *warned[USI_URDF_WARNED];
} usi_urdf;

// Warns of children and attributes of `node` that are not in the list (names with blanks between; a child
// marked * may come more than once), each kind once per file. NULL: do not look.
us_status usi_urdf_check(usi_urdf *u, const xmlNode *node, const char *children, const char *attributes);
// True on the first call with a key: for warnings that come once per file.
us_status usi_urdf_note(usi_urdf *u, const char *key, bool *out_is_new);
// The pose in an <origin> child; identity when there is none. *out_is_turned (may be NULL): rpy is not zero.
us_status usi_urdf_origin(usi_urdf *u, const xmlNode *parent, us_pose *out, bool *out_is_turned);

us_status usi_urdf_find_names(usi_urdf *u);  // fills the name tables; refuses names used twice
int32_t usi_urdf_find_link(const usi_urdf *u, const char *name);
int32_t usi_urdf_find_joint(const usi_urdf *u, const char *name);
us_status usi_urdf_build_tree(usi_urdf *u);  // link.joint, link.body, root, order

us_status usi_urdf_read_joint(usi_urdf *u, int32_t i);
us_status usi_urdf_read_mimics(usi_urdf *u);
us_status usi_urdf_read_materials(usi_urdf *u);
us_status usi_urdf_read_shapes(usi_urdf *u);
us_status usi_urdf_read_inertias(usi_urdf *u);

#endif
