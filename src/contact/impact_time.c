// When in a step things began to push each other.
//
// The solver is told a gap and sees to it that it does not become negative: at the end of the step the impact
// is over, and nothing says when it was. The gap at the start and the velocities and accelerations of the
// free motion do:
//
//     gap + u t + a t^2 / 2 = 0
//
// Accelerations are known of free bodies, from their twists at the end of the step without contact.
#include <math.h>

#include "contact/contact__parts.h"

static void add_motion(const usi_contacts *c, const usi_island *s, const usi_block *k, int32_t body,
                       double sign, double *u, double *a) {
    if (body < 0) return;
    const usi_collision_body *at =
        &c->collide.collision_body[c->islands.collision_body_of[s->first_body + body]];
    const usi_v4 w = at->w, v = at->v - usi_v4_cross(w, at->p - s->O);
    *u += sign * usi_v4_sum(k->m[0] * w + k->d[0] * v);
    if (!c->model->tree[at->tree].is_free_body) return;
    // Of the centre of mass: how the body turns while it falls is no acceleration of the whole.
    const usi_free *f = &c->solve.body[s->first_body + body];
    const usi_v4 com = f->c * (usi_v4){1, 1, 1, 0};
    const usi_v4 change = (f->fv + usi_v4_cross(f->fw, com)) - (v + usi_v4_cross(w, com));
    *a += sign * usi_v4_sum(k->d[0] * change) / c->model->step;
}

// The first moment in 0 .. h at which gap + u t + a t^2 / 2 is 0; h where there is none.
static double first_zero(double gap, double u, double a, double h) {
    const double square = u * u - 2 * a * gap;
    if (square < 0) return h;
    // The form that does not cancel.
    const double sum = -u + sqrt(square), t = sum > 0 ? 2 * gap / sum : h;
    return t < h ? t : h;
}

static bool was_pressed(const usi_contact_state *now, const usi_point_now *p) {
    if (p->old < 0) return false;
    const us_vec3 g = now->anchor[p->old].g;
    return us_vec3_dot(g, g) > 0;
}

// An impact of an island's block, beside those that are known; one of a pair, the first.
static int32_t add_impact(const usi_contacts *c, const usi_island *s, const usi_block *k, usi_impact *out,
                          int32_t first, int32_t n) {
    const usi_point_now *p = &c->collide.point[k->point];
    const usi_touch *t = &c->collide.touch_now[p->touch];
    double u = 0, a = 0;
    add_motion(c, s, k, k->a, 1, &u, &a);
    add_motion(c, s, k, k->b_, -1, &u, &a);
    const double time = first_zero(p->gap, u, a, c->model->step);
    const usi_impact found = {t->geom_a, t->geom_b, time, -(u + a * time)};
    for (int32_t i = first; i < n; i++) {
        if (out[i].geom_a != t->geom_a || out[i].geom_b != t->geom_b) continue;
        if (time < out[i].time) out[i] = found;
        return n;
    }
    out[n] = found;
    return n + 1;
}

// Whether no point of a pair pressed in the last step.
static bool is_new_pair(const usi_contacts *c, const usi_contact_state *now, const usi_touch *t) {
    for (int32_t i = t->first; i < t->first + t->n; i++) {
        if (was_pressed(now, &c->collide.point[i])) return false;
    }
    return true;
}

int32_t usi_find_impacts(const usi_contacts *c, const usi_contact_state *now, usi_impact *out) {
    int32_t n = 0;
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        const usi_island *s = &c->islands.island[i];
        const int32_t first = n;
        for (int32_t b = s->first_block; b < s->first_block + s->n_block; b++) {
            const usi_block *k = &c->rows.block[b];
            if (k->law != USI_POINT || k->point < 0 || !(k->g[0] > 0)) continue;
            const usi_point_now *p = &c->collide.point[k->point];
            if (p->gap > 0 && is_new_pair(c, now, &c->collide.touch_now[p->touch]))
                n = add_impact(c, s, k, out, first, n);
        }
    }
    return n;
}
