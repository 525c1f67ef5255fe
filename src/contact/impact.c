// Impacts: what restitution asks for, and that it never creates energy.
//
// Newton's rule, u_n(after) = -e u_n(before), is exact where the impulse acts along the normal alone, or
// through the centre of mass. Where friction acts at a lever it may ask for too much: a bar that falls on its
// end and sticks there turns about the end, the turn presses the end into the ground, and to send it up again
// with e times its speed takes an impulse that gives the bar more energy than it had (Kane 1984). Several
// points that are hit at once can do the same without friction, when one of them was about to part.
//
// The impulses g of a step do the work
//
//     W = sum of g . (u(before) + u(after)) / 2
//
// which is just the change of kinetic energy that they make. With no restitution at all W <= 0: what a row
// gives is against the velocity it ends with, and the rest of the sum is -g A g / 2. So when W comes out
// above 0, restitution is the cause, and all targets of the island are multiplied by the largest share s in
// 0 .. 1 for which W(s) <= 0. That is the largest rebound that energy allows; e itself is met wherever it is
// possible, and always for balls, for impacts through the centre of mass, and without friction at a single
// point.
//
// Springs of contacts at rest may push meanwhile, or be bent: what they hold counts with the energy. Rows
// without springs of their own (loops, rigid contacts) may push by their offsets b: g . b, where that is
// negative, is theirs to give.
//
// "Before" is the velocity at the start, turned on by the free motion of the step: the gyroscopic torque
// changes the velocity of a corner without changing the energy. Weight is left out, which acts before the
// impact as long as after it.
#include "contact/contact__parts.h"

// What of the work of the impact, the sum of |g_n u_n| / 2, may be left over by rounding, and what it may
// fall short when a share is sought.
static const double ROUNDING = 1e-9, SHORT = 1e-3;
enum { MAX_ROUNDS = 20 };
// m/s: a point that is hit is not turned round by the free motion of the step.
static const double MIN_SPEED = 1e-6;

// The twist of a body of the island about O before the impact.
static void twist_before(const usi_contacts *c, const usi_island *s, int32_t body, usi_v4 *w, usi_v4 *v) {
    const usi_collision_body *k =
        &c->collide.collision_body[c->islands.collision_body_of[s->first_body + body]];
    *w = k->w;
    *v = k->v - usi_v4_cross(k->w, k->p - s->O);
    if (!c->model->tree[k->tree].is_free_body) return;
    const usi_free *f = &c->solve.body[s->first_body + body];
    usi_v4 at = f->c * (usi_v4){1, 1, 1, 0}, v_com = *v + usi_v4_cross(*w, at);
    *w = f->fw;
    *v = v_com - usi_v4_cross(*w, at);
}

void usi_row_velocities_before(const usi_contacts *c, const usi_island *s, const usi_block *k, double u[3]) {
    usi_v4 w = usi_v4_zero(), v = w, x, y;
    if (k->a >= 0) {
        twist_before(c, s, k->a, &x, &y);
        w += x;
        v += y;
    }
    if (k->b_ >= 0) {
        twist_before(c, s, k->b_, &x, &y);
        w -= x;
        v -= y;
    }
    for (int j = 0; j < 3; j++)
        u[j] = usi_v4_sum(k->m[j] * w + k->d[j] * v);
}

void usi_impact_start(usi_contacts *c, usi_island *s) {
    s->round = 0;
    s->share = s->high = 1;
    s->low = 0;
    s->low_work = -INFINITY;
    s->high_work = 0;
    for (int32_t i = 0; i < s->n_block; i++) {
        usi_block *k = &c->rows.block[s->first_block + i];
        if (k->rebound == 0) continue;
        double u[3];
        usi_row_velocities_before(c, s, k, u);
        k->b[0] = k->rebound *= fmin(u[0], -MIN_SPEED);
    }
}

// What the springs of a point at rest take in: the anchor k (xi'^2 - xi^2) / 2, with xi' as rows.c keeps it;
// the normal one the same with its depth, and at most R g^2 / 2 when there was a gap.
static double stored(const usi_block *k, const usi_anchor *a, double h, double gap, const double u[3]) {
    double sum = h * a->stiffness + a->damping, energy = 0.5 * k->R[0] * k->g[0] * k->g[0];
    if (gap < 0 && k->b[0] < 0) energy = k->K[0] * k->b[0] * u[0] * (1 + 0.5 * h * u[0] / gap);
    for (int j = 1; j < 3; j++) {
        double before = sum * k->b[j] / a->stiffness,
               after = (a->damping * before - k->g[j] - k->viscous * u[j]) / sum;
        energy += 0.5 * a->stiffness * (after * after - before * before);
    }
    return energy;
}

// W, and what part of it is the impact's.
static double work_of(const usi_contacts *c, const usi_island *s, const usi_contact_state *next,
                      double *out_impact) {
    double work = 0, impact = 0;
    for (int32_t i = 0; i < s->n_block; i++) {
        const usi_block *k = &c->rows.block[s->first_block + i];
        const double *u = c->solve.u + 3 * (s->first_block + i), *g = k->g, *b = k->b;
        if (g[0] == 0 && g[1] == 0 && g[2] == 0) continue;
        double before[3];
        usi_row_velocities_before(c, s, k, before);
        for (int j = 0; j < 3; j++)
            work += 0.5 * g[j] * (before[j] + u[j]);
        if (k->rebound != 0)
            impact += 0.5 * fabs(g[0] * before[0]);
        else if (k->law == USI_POINT && s->kind != USI_ISLAND_RIGID)
            work += stored(k, &next->anchor[k->point], c->model->step, c->collide.point[k->point].gap, u);
        else
            work += fmin(0, g[0] * b[0]) + fmin(0, g[1] * b[1] + g[2] * b[2]);
    }
    *out_impact = impact;
    return work;
}

static void set_share(usi_contacts *c, usi_island *s, double share) {
    s->share = share;
    for (int32_t i = 0; i < s->n_block; i++) {
        usi_block *k = &c->rows.block[s->first_block + i];
        if (k->rebound != 0) k->b[0] = share * k->rebound;
    }
}

// Regula falsi between a share that creates energy and one that does not (0 at last), with the end that stays
// counted half (Illinois); by halves while nothing is known of the lower end.
bool usi_impact_again(usi_contacts *c, usi_island *s, const usi_contact_state *next) {
    if (s->failed || s->share == 0) return false;
    double impact, work = work_of(c, s, next, &impact);
    if (s->round == 0 && work <= ROUNDING * impact) return false;
    if (s->round > 0 && work <= 0 && work >= -SHORT * impact) return false;
    if (s->round > MAX_ROUNDS) {
        // Jammed bodies have several solutions, and that of the share that took energy may give some when it
        // is looked for again. Without any rebound none does.
        if (work <= 0) return false;
        set_share(c, s, 0);
        return true;
    }
    bool is_low = work <= 0;
    if (is_low) {
        if (s->low_work > -INFINITY && s->round > 1) s->high_work *= 0.5;
        s->low = s->share;
        s->low_work = work;
    } else {
        if (s->round > 1) s->low_work *= 0.5;
        s->high = s->share;
        s->high_work = work;
    }
    s->round++;
    double share = 0.5 * (s->low + s->high);
    if (s->low_work > -INFINITY)
        share = s->low + (s->high - s->low) * (-s->low_work / (s->high_work - s->low_work));
    set_share(c, s, s->round > MAX_ROUNDS ? s->low : share);
    return true;
}
