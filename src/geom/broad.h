// Broad phase: which of many axis-aligned boxes overlap. See broad.c for how.
//
// Nothing is remembered from one call to the next: the pairs are a function of the boxes alone, so scratch
// may be thrown away between steps. All memory is taken at create. One thread at a time per object.
#ifndef USI_GEOM_BROAD_H
#define USI_GEOM_BROAD_H

#include "base/memory.h"
#include "understudy/geom.h"

typedef struct usi_broad usi_broad;

// One box per shape. Boxes of the same body never pair: give everything that is fixed to the world one body.
typedef struct usi_broad_box {
    us_aabb box;           // in W, m; touching is overlap; infinite sides are allowed, NaN and min > max not
    uint32_t group, mask;  // A and B pair only when (A.group & B.mask) and (B.group & A.mask)
    int32_t body;          // 0 .. n_body - 1
} usi_broad_box;

typedef struct usi_broad_pair {
    int32_t a, b;  // indices of boxes or of bodies
} usi_broad_pair;

typedef struct usi_broad_def {
    int32_t max_box, n_body;
    int64_t max_pair;
    const usi_broad_pair *excluded;  // pairs of bodies that never pair, in any order; copied
    int32_t n_excluded;
    const us_allocator *allocator;  // NULL: the C library's heap
} usi_broad_def;

us_status usi_broad_create(const usi_broad_def *def, usi_broad **out_broad, us_error *err);
void usi_broad_destroy(usi_broad *broad);  // NULL is allowed

// All overlapping pairs of boxes, a < b, sorted by (a, b). *out_pairs is owned by `broad` and valid until the
// next call. US_ERR_VALUE: a box is NaN, inverted or of an unknown body. US_ERR_LIMIT: more boxes or pairs
// than there is room for; *out_n is then the number of pairs that was needed (0 when the boxes were too
// many). On failure *out_pairs is NULL. Cost: linear in boxes and pairs as long as boxes of similar size do
// not crowd; 0.1 to 0.2 us per box with five neighbours (bench_geom).
us_status usi_broad_find(usi_broad *broad, const usi_broad_box *boxes, int32_t n_box,
                         const usi_broad_pair **out_pairs, int64_t *out_n, us_error *err);

#endif
