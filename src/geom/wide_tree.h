// A tree of boxes of which every node has up to eight branches, for rays one by one: eight boxes at a time
// are met in floats.
//
// It decides no hit. Boxes are a little larger than what is in them, by more than floats leave out, so that a
// ray is led to every leaf that it may meet, and whoever asks looks at leaves exactly: hits are those of any
// other walk, bit for bit.
//
//     usi_wide_tree_create(nodes, 8, &allocator, &tree);             // of a binary tree
//     usi_wide_tree_cast(tree, o, d, range, visit, context);         // nearer leaves first
#ifndef USI_GEOM_WIDE_TREE_H
#define USI_GEOM_WIDE_TREE_H

#include "base/memory.h"
#include "geom/geom.h"

typedef struct usi_wide_tree usi_wide_tree;

// A run of a binary tree's items.
typedef struct usi_wide_leaf {
    int32_t first, count;
} usi_wide_leaf;

// Of a binary tree no deeper than 61, whose root is node 0; parts of no more than `n_leaf` items are leaves.
// *out_tree is NULL where the processor has no instructions for it, or coordinates are beyond floats: the
// binary tree has to do. US_ERR_MEMORY.
us_status usi_wide_tree_create(const usi_bvh_node *nodes, int32_t n_leaf, const us_allocator *allocator,
                               usi_wide_tree **out_tree);
void usi_wide_tree_destroy(usi_wide_tree *tree);  // NULL is allowed

int32_t usi_wide_tree_n_leaf(const usi_wide_tree *tree);
usi_wide_leaf usi_wide_tree_leaf(const usi_wide_tree *tree, int32_t leaf);
us_vec3 usi_wide_tree_centre(const usi_wide_tree *tree);  // of all of it
double usi_wide_tree_size(const usi_wide_tree *tree);     // m: no coordinate is farther from the centre

// Where a ray is followed in floats: from its first point in the tree's box, seen from the centre.
typedef struct usi_wide_ray {
    double start;  // m along the ray
    float o[3], d[3];
} usi_wide_ray;

// A leaf that the ray may meet before `until`. Returns how far the ray counts from now on: `until`, or less
// where something was met; negative: no further.
typedef double usi_wide_visit(void *context, const usi_wide_ray *ray, int32_t leaf, double until);
// No allocation; any thread.
void usi_wide_tree_cast(const usi_wide_tree *tree, us_vec3 o, us_vec3 d, double range, usi_wide_visit *visit,
                        void *context);

#endif
