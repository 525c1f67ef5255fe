// Ground that is paged in: which tiles of it the boxes of moving shapes are over, and soil that flows.
#ifndef USI_CONTACT_RESIDENCY_H
#define USI_CONTACT_RESIDENCY_H

#include "contact/contact_world.h"
#include "terrain/pager.h"

// Finds the paged fields among the world's shapes, and the paged maps of their soils, and becomes a client of
// each. US_ERR_MEMORY.
us_status usi_residency_create(usi_contacts *c);
void usi_residency_destroy(usi_contacts *c);

// Waits until the ground under the grown boxes of all moving shapes is there, and that below columns of
// patches that may flow; what the shapes will soon be over is read ahead. The error is in c->residency_error.
us_status usi_residency_ask(usi_contacts *c);
bool usi_residency_is_due(const usi_contacts *c);  // soil has begun to flow elsewhere since
// The same for the ground under one box of the world, in place of what the last ask has found.
us_status usi_residency_look(usi_contacts *c, us_aabb box);

// After an ask that failed for tiles that cannot be read: marks the trees that stand on such tiles, and,
// after the trees, the patches whose soil flows there.
void usi_residency_find_lost(const usi_contacts *c, uint8_t *out_lost);
// As usi_residency_look, for the ground under what flows of a patch.
us_status usi_residency_look_at_flow(usi_contacts *c, int32_t patch);

// What the pager of one of them says, and how often this world waited for it.
usi_pager_info usi_residency_info(const usi_contacts *c, int32_t residency, int64_t *out_n_wait);

#endif
