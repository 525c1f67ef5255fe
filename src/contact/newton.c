// Newton's method on the velocities of one island.
//
// Unknowns are the twists of free bodies (about O, world axes) and the joint velocities of trees. The
// residual
//
//     r(V) = M V - p - sum of J^T g(J V) - joint rows = 0
//
// is brought below 1e-6 of the impulses in it. Every block adds J^T G J to the matrix; G is the slope of its
// law.
//
// Things at rest need no iteration at all: the residual of the last step's velocities is small. Where it is
// not, the acceleration goes on as it was more often than not, and a start that much ahead has most contacts
// sticking, sliding and apart as they will be; the better of the two starts is taken.
//
// With exact friction the slope is not symmetric and there is no potential, but full steps nearly always
// converge in a few iterations. What they do not see is the end of sliding: along the way that a point slides
// its friction is constant, so that a step that stops it goes beyond,
//
//     friction       ____            slope seen at (1): 0, the step goes to (2), where it slides the other
//     way, then back to (1) and so on.
//                   /  (1)           A point that has turned round is therefore held in the next step, as if
//                   its limit were far away (3);
//              ____/(3)              if the limit is not, the law says so there.
//              (2)     velocity
//
// Other steps that make it worse are taken back. Where all that does not converge, the friction radius is
// lagged: it is renewed after the first two iterations, then frozen. Frozen, the problem is convex: a search
// along the Newton step that brackets the zero of the slope always ends lower. When that has converged and
// the radii are not yet those of the solution, they are renewed once more.
//
// Where bodies are light and rows stiff even that may creep along the kinks of the potential. Then the rows
// begin as soft as the lightest body is light, and are hardened by tens: each minimum is a good start for the
// next. Should the iterations run out all the same, the last iterate is shortened to the minimum of the
// potential on the way to it from rest, which cannot have more energy than the step began with:
//
//     0 = V . dP(V) = |V|^2 - V . V* + V . dS(V),   S convex:   |V|^2 <= |V| |V*| + S(0)
//
// (V*: without contact; norms by mass; S(0): what the springs hold). So every step ends, and usi_island says
// by which means.
#include <string.h>

#include "contact/contact__law.h"
#include "contact/contact__newton.h"

static const double TOLERANCE = 1e-6;
// A free body that stands still on the world is solved better. Kept velocities whose residual is only at the
// tolerance would keep it from ever coming to rest: it would go to and fro by picometres, its impulses off by
// as much as the tolerance. Once it has come to rest, rounding leaves less than this, and it needs no more
// iterations. (In a pile that takes too long: each step of the last creeping would cost an iteration.)
static const double TOLERANCE_AT_REST = 1e-12;
// The same of a robot on its own whose joints are all slower than STILL, m/s and rad/s: parked, it stays
// where it is. Slower than REST_SPEED it stops as a pile does.
static const double TREE_AT_REST = 1e-10, STILL = 1e-5;
// Acceptance threshold of warm starts of moving bodies, faster than STEADY_SPEED, m/s and rad/s: velocities
// that were found anew are kept only with a smaller residual, of one body and of several. Kept at the first
// chance they would be off by the tolerance for good: the springs go on, after a few steps the residual is
// too large, and the next velocities are as far off to the other side. Solved each step instead, whatever
// rolls comes to a motion that lasts, and then needs no iteration for hundreds of steps. (What creeps to its
// place does not last, and is better off with small errors to both sides.)
static const double STEADY_SPEED = 1e-4, SETTLED = 1e-9, SETTLED_PILE = 3e-8;
// A pile that stands still stops when its residual without any motion is below this, and stays so as long as
// that is below the tolerance.
static const double STOPPED = 1e-7;
// Slower than this, m/s and rad/s, is standing still.
static const double REST_SPEED = 1e-7;
// A residual larger than this is not mended by one iteration: it pays to look for a better start. Trees,
// whose iterations cost most, look sooner.
static const double FAR = 0.1, FAR_TREE = 1e-3;
// A start ahead with a residual below this is taken without a look at the other.
static const double NEAR = 0.05;
// What is accepted when the iterations run out.
static const double GOOD_ENOUGH = 1e-2;
// A step that lowers the potential by less than this square of what moves changes rounding alone, whatever
// the residual of links that weigh next to nothing says.
static const double ROUNDING = 1e-9;
// The lagged radius counts as that of the solution when it is within this part of it.
static const double SAME_RADIUS = 1e-4;
// The last factors serve again when they are expected to leave this many times the tolerance: two steps with
// them cost less than a new matrix.
static const double REUSE = 10;
enum { MAX_EXACT = 20, MAX_HELD = 6, MAX_LAGGED = 120, MAX_BAD = 10, MAX_RENEWALS = 30 };
// Of the hardening: iterations of a level and of the last one, and tens from the softest rows on.
enum { MAX_SOFT = 40, MAX_HARD = 400, MAX_LEVEL = 12 };

// a . b, four at a time: one after the other each sum would wait for the one before.
static double dot(int32_t n, const double *a, const double *b) {
    usi_v4 four = usi_v4_zero();
    double rest = 0;
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        four += *(const usi_v4_unaligned *)(a + i) * *(const usi_v4_unaligned *)(b + i);
    for (; i < n; i++)
        rest += a[i] * b[i];
    return usi_v4_sum(four) + rest;
}

static void move(usi_problem *p, double alpha) {
    usi_contacts *c = p->c;
    p->has_moved = true;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i];
        if (usi_unit_is_free(p, i)) {
            const double *x = p->x + p->unit_start[i];
            usi_free *b = &p->body[c->collide.collision_body[c->tree_body_start[t]].body];
            b->w += alpha * usi_v4_set(x[0], x[1], x[2]);
            b->v += alpha * usi_v4_set(x[3], x[4], x[5]);
            continue;
        }
        for (int32_t j = c->model->tree[t].first; j < c->model->tree[t].end; j++)
            c->joints.vel[j] += alpha * c->joints.step_v[j];
    }
}

// ---------------------------------------------------------------- the method

// The Newton step, from the residual, with a new matrix or the last one's factors; the slope of the potential
// at its start goes to p->slope.
static bool find_step(usi_problem *p, bool is_anew) {
    p->s->n_iteration++;
    if (is_anew && !usi_newton_matrix(p)) {
        p->has_no_matrix = true;
        return false;
    }
    usi_newton_step(p);
    p->slope = dot(p->n_var, p->r, p->x);
    return true;
}

// Where the iteration starts: the velocities of the last step, or, ahead of them, those with as much change
// again as in the last step.
static void set_start(usi_problem *p, bool is_ahead) {
    usi_contacts *c = p->c;
    const double h = is_ahead ? c->model->step : 0;
    p->has_moved = is_ahead;
    for (int32_t i = 0; i < p->n_unit; i++) {
        int32_t t = c->islands.members[p->s->first_tree + i], first = c->model->tree[t].first;
        const double *a = p->in->a + first;
        if (!usi_unit_is_free(p, i)) {
            for (int32_t j = first; j < c->model->tree[t].end; j++)
                c->joints.vel[j] = p->in->v[j] + h * p->in->a[j];
            continue;
        }
        const usi_collision_body *k = &c->collide.collision_body[c->tree_body_start[t]];
        usi_free *b = &p->body[k->body];
        usi_v4 w = k->w, v = k->v;
        // The state has the velocity in the body's axes, which have turned since.
        if (is_ahead) {
            v += h * (usi_v4_columns(k->X, k->Y, k->Z, a + 3) + usi_v4_cross(w, v));
            w += h * usi_v4_columns(k->X, k->Y, k->Z, a);
        }
        b->w = w;
        b->v = v - usi_v4_cross(w, k->p - p->s->O);
    }
}

static double try_start(usi_problem *p, bool is_ahead) {
    set_start(p, is_ahead);
    return usi_newton_residual(p);
}

// Whether a tree's last change of velocity is so great that its last velocities cannot be the answer: what
// the mass matrix makes of it is missing there.
static bool is_going_on(const usi_problem *p) {
    const usi_contacts *c = p->c;
    const us_model *m = c->model;
    double sum = 0;
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++) {
        const usi_tree *tree = usi_unit_tree(p, i);
        for (int32_t j = tree->first; j < tree->end && !tree->is_free_body; j++)
            sum += c->joints.inertia[j] * p->in->a[j] * p->in->a[j];
    }
    return sum * m->step * m->step > FAR_TREE * FAR_TREE * p->weight;
}

// Copies what a residual leaves for the matrix between the problem and the free part of the work space: r, u,
// G, g, and the slopes of the joint rows. False when there is no room for it.
static bool copy_residual(usi_problem *p, bool is_back) {
    const size_t n_block = (size_t)p->s->n_block, n_var = (size_t)p->n_var;
    double *at = (double *)(void *)p->at;
    if ((size_t)(p->end - p->at) < (2 * n_var + 15 * n_block) * sizeof *at) return false;
    double *parts[] = {p->r, p->u, p->G};
    const size_t n[] = {n_var, 3 * n_block, 9 * n_block};
    for (int i = 0; i < 3; i++) {
        memcpy(is_back ? parts[i] : at, is_back ? at : parts[i], n[i] * sizeof *at);
        at += n[i];
    }
    for (usi_block *k = p->block, *end = k + n_block; k < end; k++, at += 3)
        memcpy(is_back ? k->g : at, is_back ? at : k->g, sizeof k->g);
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++) {
        const usi_tree *tree = usi_unit_tree(p, i);
        const size_t size = (size_t)(tree->end - tree->first) * sizeof *at;
        double *diag = p->c->solve.diag + tree->first;
        memcpy(is_back ? diag : at, is_back ? at : diag, size);
        at += tree->end - tree->first;
    }
    return true;
}

// Takes the start with the smaller residual; trees that go on as they did are asked ahead first, which is
// mostly good enough.
static double choose_start(usi_problem *p) {
    const bool is_first = is_going_on(p);
    const double far = p->is_free ? FAR : FAR_TREE,
                 one = is_first ? try_start(p, true) : usi_newton_residual(p);
    if (is_first ? one < NEAR : one <= far) return one;
    const double scale = p->scale;
    const bool is_kept = copy_residual(p, false);
    const double other = try_start(p, !is_first);
    if (is_first ? other <= far || other <= one : other < one) return other;
    if (!is_kept) return try_start(p, is_first);
    set_start(p, is_first);
    copy_residual(p, true);
    p->scale = scale;
    return one;
}

// The square of the velocity of the fastest free body, (m/s)^2 and (rad/s)^2 alike, in the last step.
static double max_speed(const usi_problem *p) {
    double max = 0;
    for (int32_t i = 0; i < p->n_unit; i++) {
        const double *v = p->in->v + usi_unit_tree(p, i)->first;
        double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3] + v[4] * v[4] + v[5] * v[5];
        max = square > max ? square : max;
    }
    return max;
}

// Whether free bodies, or a tree, can stand still: their residual without any motion is small. They stay at
// the start if not.
static bool can_stop(usi_problem *p) {
    const usi_tree *tree = usi_unit_tree(p, 0);
    for (int32_t j = tree->first; j < tree->end && !p->is_free; j++)
        p->c->joints.vel[j] = 0;
    for (int32_t i = 0; i < p->n_unit && p->is_free; i++)
        p->body[i].w = p->body[i].v = usi_v4_zero();
    p->has_moved = true;
    if (usi_newton_residual(p) <= STOPPED) return true;
    try_start(p, false);
    return false;
}

// Whether the velocities of a tree on its own are the answer, which have a residual within the tolerance.
static bool is_answer_of_tree(usi_problem *p, double error) {
    const usi_tree *tree = usi_unit_tree(p, 0);
    if (error <= TREE_AT_REST) return true;
    double square = 0;
    for (int32_t j = tree->first; j < tree->end; j++)
        square += p->in->v[j] * p->in->v[j];
    if (square > STILL * STILL || square == 0) return true;
    return square <= REST_SPEED * REST_SPEED && p->load > 0 && can_stop(p);
}

// Whether the velocities of the start are the answer.
static bool is_answer(usi_problem *p, double error) {
    if (error > TOLERANCE) return false;
    if (!p->is_free) return p->n_unit > 1 || is_answer_of_tree(p, error);
    const bool is_single = p->n_unit == 1;
    if (is_single && error <= TOLERANCE_AT_REST) return true;
    const double speed = max_speed(p);
    if (speed > STEADY_SPEED * STEADY_SPEED)
        return p->s->was_kept || error <= (is_single ? SETTLED : SETTLED_PILE);
    if (speed > REST_SPEED * REST_SPEED) return true;
    // Without weight nothing says how small a motion is.
    return !is_single && (speed == 0 || p->load == 0 || can_stop(p));
}

// Marks the points that now slide another way than `before` (velocities of the rows), by more than a right
// angle; false when there are none.
static bool find_reversed(usi_problem *p, const double *before) {
    bool any = false;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        const double *u = p->u + 3 * i, *o = before + 3 * i, *G = p->G + 9 * i;
        p->hold[i] = k->law == USI_POINT && (G[3] != 0 || G[6] != 0) &&
                     (u[1] + k->b[1]) * (o[1] + k->b[1]) + (u[2] + k->b[2]) * (o[2] + k->b[2]) < 0;
        any = any || p->hold[i];
    }
    return any;
}

// The residual and the slopes with the marked points held.
static void find_residual_held(usi_problem *p) {
    p->holds = true;
    usi_newton_residual(p);
    p->holds = false;
}

// Full steps. After one that has thrown sliding points over to the other side these are held in the next. Any
// other that makes the residual larger is taken back to where the residual along the step changes its sign,
// as if there were a potential.
static bool solve_exact(usi_problem *p) {
    p->is_exact = true;
    double error = choose_start(p);
    int bad = 0, n_held = 0;
    bool is_anew = true;
    for (int i = 0; i < MAX_EXACT; i++) {
        if (i == 0 ? is_answer(p, error) : error <= TOLERANCE) return true;
        if (bad > MAX_BAD || !find_step(p, is_anew)) return false;
        double last = error;
        memcpy(p->du, p->u, 3 * (size_t)p->s->n_block * sizeof(double));
        move(p, 1);
        error = usi_newton_residual(p);
        // From errors e0 to e1 by Newton's method the same factors go on to about e1 e1 / e0.
        is_anew = !(error * error < REUSE * TOLERANCE * last);
        if (is_anew && n_held < MAX_HELD && find_reversed(p, p->du)) {
            n_held++;
            find_residual_held(p);
            continue;
        }
        // The first step may be the fall onto contacts that the last velocities did not touch: the residual
        // looks larger then, and the next step lands.
        if (error < last || (i == 0 && error < 4 * last)) continue;
        bad++;
        double slope = dot(p->n_var, p->r, p->x);
        if (!(p->slope < 0 && slope > 0)) continue;
        move(p, usi_newton_search(p, p->slope, slope));
        error = usi_newton_residual(p);
    }
    return error <= TOLERANCE;
}

// Sets the lagged radii to those of the impulses. Returns the largest change over the largest radius.
static double renew_radii(usi_problem *p) {
    double change = 0, max = 0;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        usi_block *k = &p->block[i];
        double radius = usi_friction_radius(k, i > 0 ? k[-1].g[0] : 0);
        // Friction that sticks does not feel the radius.
        double used = k->law == USI_POINT ? sqrt(k->g[1] * k->g[1] + k->g[2] * k->g[2]) : radius;
        double difference = fabs(radius - k->radius), min = radius < k->radius ? radius : k->radius;
        if (used >= 0.999 * min && difference > change) change = difference;
        max = radius > max ? radius : max;
        k->radius = radius;
    }
    return max > 0 ? change / max : 0;
}

// From the iterate to the minimum of the potential with frozen radii, which are renewed after the first two
// iterations and when the minimum is reached. Returns whether it was, or nearly so.
static bool descend(usi_problem *p, int max_iteration) {
    p->is_exact = false;
    int renewals = 0;
    double error = usi_newton_residual(p);
    for (int i = 0; i < max_iteration; i++) {
        if (error <= TOLERANCE) {
            if (++renewals > MAX_RENEWALS || i > max_iteration / 2 || renew_radii(p) <= SAME_RADIUS)
                return true;
            if (usi_newton_residual(p) <= TOLERANCE) return true;
        } else if ((i == 1 || i == 2) && renew_radii(p) > SAME_RADIUS) {
            usi_newton_residual(p);
        }
        if (!find_step(p, true)) return false;
        if (-p->slope <= ROUNDING * ROUNDING * p->scale) return true;
        move(p, 1);
        error = usi_newton_residual(p);
        double slope = dot(p->n_var, p->r, p->x);
        if (slope <= -1e-3 * p->slope) continue;
        move(p, usi_newton_search(p, p->slope, slope));
        error = usi_newton_residual(p);
    }
    // Slow to the end, but no step may be lost for the last digits.
    return error <= GOOD_ENOUGH;
}

// Makes all rows stiffer by a factor.
static void stiffen(usi_problem *p, double factor) {
    for (int32_t i = 0; i < p->s->n_block; i++) {
        usi_block *k = &p->block[i];
        for (int j = 0; j < 2; j++)
            k->K[j] *= factor;
        for (int j = 0; j < 3; j++)
            k->R[j] /= factor;
    }
}

// The same beginning with rows no stiffer than the lightest is heavy.
static bool solve_hardening(usi_problem *p) {
    double max = 0, factor = 1;
    for (int32_t i = 0; i < p->s->n_block; i++)
        max = fmax(max, fmax(p->block[i].K[0], p->block[i].K[1]));
    int level = 0;
    for (; max * factor > p->s->min_mass && level < MAX_LEVEL; level++)
        factor *= 0.1;
    stiffen(p, factor);
    set_start(p, false);
    for (; level > 0; level--) {
        descend(p, MAX_SOFT);
        stiffen(p, 10);
    }
    return descend(p, MAX_HARD);
}

// The velocities of the iterate as a Newton step from rest.
static void take_velocities(usi_problem *p) {
    usi_contacts *c = p->c;
    for (int32_t i = 0; i < p->n_unit; i++) {
        const int32_t t = c->islands.members[p->s->first_tree + i];
        double *x = p->x + p->unit_start[i];
        if (usi_unit_is_free(p, i)) {
            const usi_free *b = &p->body[c->collide.collision_body[c->tree_body_start[t]].body];
            for (int j = 0; j < 3; j++) {
                x[j] = b->w[j];
                x[3 + j] = b->v[j];
            }
            continue;
        }
        for (int32_t j = c->model->tree[t].first; j < c->model->tree[t].end; j++)
            *x++ = c->joints.step_v[j] = c->joints.vel[j];
    }
}

// Shortens the velocities to the minimum of the potential on the way to them from rest.
static void shorten(usi_problem *p) {
    p->is_exact = false;
    take_velocities(p);
    move(p, -1);
    usi_newton_residual(p);
    const double start = dot(p->n_var, p->r, p->x);
    if (!(start < 0)) return;
    move(p, 1);
    usi_newton_residual(p);
    const double end = dot(p->n_var, p->r, p->x);
    if (end <= 0) return;
    move(p, usi_newton_search(p, start, end));
    usi_newton_residual(p);
}

// The velocities of the iterate, to the place where they are kept, and back.
static void keep_velocities(const usi_problem *p) {
    const double *vel = p->c->joints.vel;
    for (int32_t i = 0; i < p->s->n_body; i++) {
        p->kept[2 * i] = p->body[i].w;
        p->kept[2 * i + 1] = p->body[i].v;
    }
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++)
        memcpy(p->kept_vel + p->unit_start[i], vel + usi_unit_tree(p, i)->first,
               (size_t)p->size[i] * sizeof *vel);
}
static void restore_velocities(usi_problem *p) {
    double *vel = p->c->joints.vel;
    for (int32_t i = 0; i < p->s->n_body; i++) {
        p->body[i].w = p->kept[2 * i];
        p->body[i].v = p->kept[2 * i + 1];
    }
    for (int32_t i = 0; i < p->n_unit && !p->is_free; i++)
        memcpy(vel + usi_unit_tree(p, i)->first, p->kept_vel + p->unit_start[i],
               (size_t)p->size[i] * sizeof *vel);
}

// From lagged radii that are nearly those of the impulses to the law itself: full steps, as long as each
// halves what is left at least. Without them a step that took this way would end off by SAME_RADIUS from one
// that did not. What does not get there stays where it was.
static void finish_exact(usi_problem *p) {
    keep_velocities(p);
    p->is_exact = true;
    double error = usi_newton_residual(p), last = 2 * error;
    while (error > TOLERANCE && error <= 0.5 * last && find_step(p, true)) {
        last = error;
        move(p, 1);
        error = usi_newton_residual(p);
    }
    if (error <= TOLERANCE) return;
    p->is_exact = false;
    restore_velocities(p);
    usi_newton_residual(p);
}

// What cannot fail, from where the exact method got to, with the radii of its impulses.
static void solve_convex(usi_problem *p) {
    p->s->fallback |= USI_FALLBACK_LAGGED;
    renew_radii(p);
    if (descend(p, MAX_LAGGED)) {
        finish_exact(p);
        return;
    }
    p->s->fallback |= USI_FALLBACK_HARDENED;
    if (solve_hardening(p)) return;
    p->s->fallback |= USI_FALLBACK_SHORTENED;
    p->s->failed = p->has_no_matrix;
    shorten(p);
}

// Whether nothing touches when the bodies go on as they are. Free bodies only.
static bool goes_free(usi_problem *p) {
    if (!p->is_free) return false;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        if (p->block[i].law == USI_EQUAL || (p->block[i].law == USI_POINT && p->block[i].b[0] <= 0))
            return false;
    }
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        usi_v4 w = usi_v4_zero(), v = w;
        if (k->a >= 0) {
            w = p->body[k->a].fw;
            v = p->body[k->a].fv;
        }
        if (k->b_ >= 0) {
            w -= p->body[k->b_].fw;
            v -= p->body[k->b_].fv;
        }
        usi_store_three(usi_row_velocity(k, w, v), p->u + 3 * i);
        if (k->law == USI_POINT && p->u[3 * i] + k->b[0] < 0) return false;
    }
    for (int32_t b = 0; b < p->s->n_body; b++) {
        p->body[b].w = p->body[b].fw;
        p->body[b].v = p->body[b].fv;
    }
    for (int32_t i = 0; i < p->s->n_block; i++)
        p->block[i].g[0] = p->block[i].g[1] = p->block[i].g[2] = 0;
    return true;
}

// The bodies that blocks act on, those of points without rows, and all free ones, where there are trees.
static void find_hit(usi_problem *p) {
    const usi_contacts *c = p->c;
    p->n_hit = 0;
    // Marks first, in the place of the list, which never gets ahead of them.
    for (int32_t b = 0; b < p->s->n_body; b++)
        p->hit[b] = p->c->model->tree[usi_body_collision_body(p, b)->tree].is_free_body;
    for (int32_t i = 0; i < p->s->n_block; i++) {
        const usi_block *k = &p->block[i];
        if (k->a >= 0) p->hit[k->a] = 1;
        if (k->b_ >= 0) p->hit[k->b_] = 1;
    }
    for (int32_t i = 0, touch = -1; i < p->s->n_point && p->s->n_skipped > 0; i++) {
        const usi_point_now *point = &c->collide.point[c->islands.order[p->s->first_point + i]];
        if (point->may_press || point->touch == touch) continue;
        touch = point->touch;
        const usi_grouped *pair = &c->islands.grouped[touch];
        const int32_t a = c->collide.collision_body[pair->collision_body_a].body,
                      b = c->collide.collision_body[pair->collision_body_b].body;
        if (a >= 0) p->hit[a] = 1;
        if (b >= 0) p->hit[b] = 1;
    }
    for (int32_t b = 0; b < p->s->n_body; b++) {
        if (p->hit[b]) p->hit[p->n_hit++] = b;
    }
}

// What begins at 0 is set one by one: most islands are over before clearing the whole structure would be.
static bool set_up(usi_problem *p, usi_contacts *c, usi_island *s, const usi_contact_input *in,
                   int32_t thread) {
    p->c = c;
    p->s = s;
    p->in = in;
    p->sparse = NULL;
    p->holds = p->is_solved = p->has_no_matrix = false;
    size_t n_unit = (size_t)s->n_tree, n_block = (size_t)s->n_block;
    char *at = c->solve.work[thread], *end = at + c->solve.newton_size + n_block * USI_NEWTON_BLOCK_BYTES;
    p->n_unit = s->n_tree;
    p->unit_start = usi_take(&at, (n_unit + 1) * sizeof(int32_t));
    p->size = usi_take(&at, n_unit * sizeof(int32_t));
    p->n_var = 0;
    p->is_free = true;
    double mass = 0;
    for (int32_t i = 0; i < s->n_tree; i++) {
        int32_t t = c->islands.members[s->first_tree + i];
        c->islands.tree[t].variable = i;
        p->unit_start[i] = p->n_var;
        p->size[i] = c->model->tree[t].end - c->model->tree[t].first;
        p->n_var += p->size[i];
        p->is_free = p->is_free && c->model->tree[t].is_free_body;
        mass += c->tree_mass[t];
    }
    p->load = p->weight = c->fall_speed * c->fall_speed * mass;
    p->inv_mass = 1 / s->max_mass;
    p->unit_start[s->n_tree] = p->n_var;
    p->r = usi_take(&at, (size_t)p->n_var * sizeof(double));
    p->x = usi_take(&at, (size_t)p->n_var * sizeof(double));
    p->G = usi_take(&at, 9 * n_block * sizeof(double));
    p->hold = usi_take(&at, n_block * sizeof *p->hold);
    p->force = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->step = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->kept = usi_take(&at, 2 * (size_t)s->n_body * sizeof(usi_v4));
    p->kept_vel = usi_take(&at, (size_t)p->n_var * sizeof(double));
    if (!p->is_free) {
        int32_t first = c->islands.members[s->first_tree],
                n_coupling = c->coupling_start[first + 1] - c->coupling_start[first];
        p->root = usi_take(&at, 56 * sizeof(double));
        p->hit = usi_take(&at, (size_t)s->n_body * sizeof *p->hit);
        p->columns = usi_take(&at, 4 * (size_t)(c->model->n_node + 6) * sizeof(usi_v4));
        p->made = usi_take(&at, 12 * (size_t)p->n_var * sizeof(usi_v4));
        p->is_there = usi_take(&at, (size_t)p->n_var * sizeof *p->is_there);
        p->coupled = usi_take(&at, (size_t)n_coupling * (size_t)(p->n_var + 1) * sizeof(double));
    }
    p->body = &c->solve.body[s->first_body];
    p->block = &c->rows.block[s->first_block];
    p->u = c->solve.u + 3 * s->first_block;
    p->du = c->solve.du + 3 * s->first_block;
    p->at = at;
    p->end = end;
    if (at <= end && !p->is_free) find_hit(p);
    return at <= end;
}

// What a tree starts from, and how much that weighs in the residual.
static void start_tree(usi_problem *p, int32_t t) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    const bool wants_matrix = p->s->kind != USI_ISLAND_BRANCH;
    if (!usi_tree_start(c, p->in, t, wants_matrix, p->s->is_started)) usi_tree_twists(p, t, p->in->v);
    for (int32_t j = m->tree[t].first; j < m->tree[t].end; j++)
        p->load += c->joints.impulse[j] * c->joints.impulse[j] * c->joints.inv_pivot[j];
}

void usi_newton(usi_contacts *c, usi_island *s, const usi_contact_input *in, int32_t thread) {
    usi_problem p;
    if (!set_up(&p, c, s, in, thread)) {
        s->failed = true;
        return;
    }
    for (int32_t i = 0; i < p.n_unit && !p.is_free; i++) {
        if (!usi_unit_is_free(&p, i)) start_tree(&p, c->islands.members[s->first_tree + i]);
    }
    s->is_started = true;
    if (!goes_free(&p)) {
        // Free bodies are there already, unless the island is solved again.
        p.has_moved = false;
        if (!p.is_free || s->n_impact > 0 || s->is_again) set_start(&p, false);
        if (!solve_exact(&p)) solve_convex(&p);
    }
    for (int32_t i = 0; i < p.n_unit && !p.is_free; i++) {
        if (!usi_unit_is_free(&p, i)) usi_tree_finish(c, in, c->islands.members[s->first_tree + i]);
    }
}
