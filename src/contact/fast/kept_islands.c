// Islands that are kept from step to step (USI_FAST_ISLANDS). Plain code finds them anew in each.
#include "contact/contact__parts.h"

// Islands follow from which shapes touch, and at how many points: as long as these are the same, the last
// ones hold.
bool usi_islands_hold(const usi_contacts *c) {
    if (c->pushed || c->islands.n_grouped != c->collide.n_touch) return false;
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const usi_touch *t = &c->collide.touch_now[i];
        const usi_grouped *g = &c->islands.grouped[i];
        if ((t->geom_a ^ g->geom_a) | (t->geom_b ^ g->geom_b) | (t->n ^ g->n) |
            (c->collide.may_press[i] ^ g->may_press))
            return false;
    }
    return true;
}
