// Which contacts of a step press, and how: the same in two solves, and between them the motion is smooth.
#ifndef USI_CONTACT_CONTACT_MODES_H
#define USI_CONTACT_CONTACT_MODES_H

#include "contact/contact_world.h"

// After usi_solve_islands from `now` to `next`: for each tree a number that says which pairs of its island
// press and which of them slide; 0 where nothing touches it, or something in its island begins or ends: an
// impact, a contact, sliding. Wheels and feet in soil are never smooth. out: n_tree.
void usi_contact_modes(const usi_contacts *c, const usi_contact_state *now, const usi_contact_state *next,
                       uint64_t *out);

#endif
