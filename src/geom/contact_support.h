// Supporting points of a contact patch: what of many candidates must stay.
#ifndef USI_GEOM_CONTACT_SUPPORT_H
#define USI_GEOM_CONTACT_SUPPORT_H

#include "geom/contact_candidates.h"

enum {
    USI_SUPPORT_FACINGS = 6,  // see usi_facing
    USI_SUPPORT_TILTS = 2,    // finite tilts; one more is without end
    USI_SUPPORT_ROUND = 8,    // directions round the normal
    USI_SUPPORT_SLOTS = 1 + (USI_SUPPORT_TILTS + 1) * USI_SUPPORT_ROUND,
};

// The best scores so far, for each facing of the normal; -INFINITY where there is no point.
typedef struct usi_support {
    double best[USI_SUPPORT_FACINGS][USI_SUPPORT_SLOTS];
} usi_support;

void usi_support_clear(usi_support *s);
void usi_support_add(usi_support *s, us_vec3 normal, us_vec3 p, double gap);
// Whether a point in the box with a gap of at least min_gap, and a normal of one of the facings, could have a
// better score in any slot: by more than the tolerance (m) along the surface, or by `same` (m) in depth.
bool usi_support_is_open(const usi_support *s, uint32_t facing, const us_aabb *box, double min_gap,
                         double tolerance, double same);

// Drops the candidates from `first` on that are best in no slot.
void usi_candidates_keep_support(usi_candidates *c, int32_t first);
// Makes room for at least half of the candidates: when there is less, those from `first` on are reduced to
// the supporting ones.
void usi_candidates_make_room(usi_candidates *c, int32_t first);

#endif
