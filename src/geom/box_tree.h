// A tree of boxes that never move, for rays: which of many shapes may a ray meet?
//
//     usi_box_tree_create(boxes, n, &allocator, &tree);
//     usi_box_tree_cast(tree, o, d, range, visit, context);      // nearer boxes first
#ifndef USI_GEOM_BOX_TREE_H
#define USI_GEOM_BOX_TREE_H

#include "base/memory.h"
#include "understudy/geom.h"

typedef struct usi_box_tree usi_box_tree;

// Boxes are finite; they are numbered from 0. n may be 0. US_ERR_MEMORY.
us_status usi_box_tree_create(const us_aabb *boxes, int32_t n, const us_allocator *allocator,
                              usi_box_tree **out_tree);
void usi_box_tree_destroy(usi_box_tree *tree);     // NULL is allowed
int32_t usi_box_tree_n(const usi_box_tree *tree);  // boxes; 0 for NULL

// A box that the ray crosses before `until`. Returns how far the ray counts from now on: `until`, or less
// where something was met; negative: no further.
typedef double usi_box_visit(void *context, int32_t box, double until);
// Every box that a ray of a length crosses, those of a nearer branch first. No allocation; any thread.
void usi_box_tree_cast(const usi_box_tree *tree, us_vec3 o, us_vec3 d, double range, usi_box_visit *visit,
                       void *context);

#endif
