#include "contact/contact_modes.h"

#include <math.h>

#include "contact/contact__parts.h"

static uint64_t mixed(uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ x >> 29;
}

// The friction of an anchor: what of its impulse is across the normal.
static us_vec3 friction_of(const usi_anchor *a) {
    return us_vec3_sub(a->g, us_vec3_scale(us_vec3_dot(a->g, a->normal), a->normal));
}

// Whether a point goes on as it was: presses, and sticks or slides the same way.
static bool goes_on(const usi_anchor *old, const usi_anchor *a, bool presses) {
    const bool pressed = us_vec3_dot(old->g, old->g) > 0;
    if (pressed != presses) return false;
    if (!presses) return true;
    if ((old->is_sliding != 0) != (a->is_sliding != 0)) return false;
    return !a->is_sliding || us_vec3_dot(friction_of(old), friction_of(a)) > 0;
}

// 0: something begins or ends.
static uint64_t mode_of(const usi_contacts *c, const usi_contact_state *now, const usi_contact_state *next,
                        const usi_island *s) {
    uint64_t sum = 1;
    if (s->n_impact > 0 || s->is_pushed || s->failed || s->fallback) return 0;
    for (int32_t i = s->first_block; i < s->first_block + s->n_block; i++) {
        const usi_block *k = &c->rows.block[i];
        if (k->law != USI_POINT || k->point < 0) continue;
        const usi_point_now *p = &c->collide.point[k->point];
        const usi_touch *t = &c->collide.touch_now[p->touch];
        const bool presses = k->g[0] > 0;
        if (p->soil_contact >= 0 || (presses && p->old < 0)) return 0;
        if (p->old >= 0 && !goes_on(&now->anchor[p->old], &next->anchor[k->point], presses)) return 0;
        if (presses)
            sum += mixed((uint64_t)(uint32_t)t->geom_a << 32 | (uint32_t)t->geom_b) +
                   (uint64_t)next->anchor[k->point].is_sliding;
    }
    return sum ? sum : 1;
}

void usi_contact_modes(const usi_contacts *c, const usi_contact_state *now, const usi_contact_state *next,
                       uint64_t *out) {
    for (int32_t t = 0; t < c->model->n_tree; t++)
        out[t] = 0;
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        const usi_island *s = &c->islands.island[i];
        const uint64_t mode = mode_of(c, now, next, s);
        for (int32_t k = 0; k < s->n_tree; k++)
            out[c->islands.members[s->first_tree + k]] = mode;
    }
}
