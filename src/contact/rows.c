// Contact points to rows, and back: the interaction models, the anchors, and what is kept for the next step.
//
// Each point has three rows: along the normal (only pushes), and two tangents held by a spring that remembers
// how far it is stretched (xi) and gives way at the friction limit. The stretch after the step follows from
// the impulse alone,
//
//     xi' = (c xi - g) / (h k + c)                      (k, c: stiffness and damping of the anchor; g:
//     tangential impulse)
//
// which is xi + h u while the point sticks, and the return to the friction circle while it slides: one
// formula.
//
// That counts velocities. Bodies that turn move on arcs, and what h u leaves out of them, h^2 times an
// acceleration, would add up to a cube creeping out of the hand of an arm that swings it. So the spring is
// tied to a point of each body, and while it sticks its stretch is measured between them.
#include <stddef.h>
#include <string.h>

#include "contact/contact__law.h"
#include "contact/contact__parts.h"
#include "contact/interaction.h"
#include "contact/soil.h"

// Restitution acts on impacts faster than this, m/s: slower ones are contact at rest.
static const double IMPACT_SPEED = 0.02;
// The row of an impact is so much stiffer than the bodies are heavy: a millionth of the speed is lost in it.
static const double IMPACT_STIFFNESS = 1e6;
// A contact that slides sticks again below this speed, m/s.
static const double STICK_SPEED = 1e-3;
// What part of a penetration a rigid contact takes back in a step: all at once would throw things up.
static const double RIGID_SHARE = 0.2;
// Ends of a spring that are farther from where the last step left them than this, m, were moved by hand: the
// stretch is kept as it was.
static const double MAX_ARC = 1e-4;
// 1/s: how fast the energy of what rolls may grow, h w^2, before it is looked after; and what part of the
// spin a step may take for it.
static const double FAST_SPIN = 0.01, MAX_DRAIN = 0.1;
// A contact that has moved by more than this in a step over both bodies, m, rolls. Slower than this, what
// rolling bends is far below rounding.
static const double ROLLED = 1e-4;

// Two unit vectors across n.
static void tangents(usi_v4 n, usi_v4 *t, usi_v4 *s) {
    // Along the axis that is least along n there is always something across it.
    double x = fabs(n[0]), y = fabs(n[1]), z = fabs(n[2]);
    int i = x <= y && x <= z ? 0 : y <= z ? 1 : 2;
    double along = n[i];
    usi_v4 axis = {i == 0, i == 1, i == 2, 0};
    *t = (axis - n * along) * (1 / sqrt(1 - along * along));
    *s = usi_v4_cross(n, *t);
}

// What a new point goes on from.
static const usi_anchor blank = {.is_kept = 0};

static inline bool is_same(usi_v4 a, usi_v4 b) { return !usi_v4_any_of_three(a != b); }

// An island that is swept needs rows that are not much stiffer than the bodies are heavy.
static void soften(us_touch_law *law, double mass, double h, double normal_velocity) {
    double max = mass / (h * h);
    if (law->stiffness <= max) return;
    double scale = max / law->stiffness, elastic = (law->force + law->damping * normal_velocity) * scale;
    law->stiffness = max;
    law->damping *= sqrt(scale);
    law->force = elastic - law->damping * normal_velocity;
    law->tangent_stiffness *= scale;
    law->tangent_damping *= sqrt(scale);
}

// What all points of one pair of shapes share. Each thread keeps its last one through the islands of a step:
// most are alike.
typedef struct usi_pair_now {
    int32_t touch;  // -1: none yet
    const usi_collision_body *A, *B;
    usi_v4 v, w;          // m/s at A's origin, rad/s: of A against B
    usi_v4 between;       // m, from B's origin to A's
    usi_v4 normal, t, s;  // of the last point, and what is across it: points of a face have the same
    const usi_pair *pair;
    us_touch seen;
    us_touch_law law;
    usi_v4 R, K;   // of the blocks: three compliances and h viscous; two stiffnesses, no limit and no rebound
    double sink;   // 1/s, b of the normal row over the gap, where that decides alone
    double give;   // m/(N s), b of the tangential rows over the force of the stretch
    double floor;  // m/s, least b of the normal row: minus the max speed at which an overlap is resolved,
                   // where the stiffness is ours to choose
    bool is_compliant;  // the built-in model: only the force changes from point to point
    bool is_ours;       // its stiffness is ours to choose
    bool is_plain;      // no restitution, no turning rows
    double angular_K, angular_R, angular_pull;  // of the turning rows of pair `turned`
    int32_t turned;
    double fall;       // m, what weight adds to the way of a step
    int32_t n_impact;  // points of the island so far that restitution acts on
    bool was_kept;     // the last step kept its velocities, by these points
    bool is_soft;      // for sweeps
    bool is_warm;      // the solver begins with the last impulses: Newton's method begins with velocities
} pair_now;

bool usi_rows_create(usi_contacts *c) {
    c->rows.pair = usi_arena_alloc(&c->fixed, (size_t)usi_pool_n_thread(c->pool) * sizeof *c->rows.pair,
                                   _Alignof(pair_now));
    return c->rows.pair != NULL;
}

// The rest is set with the first pair.
void usi_rows_start(usi_contacts *c) {
    for (int32_t i = 0; i < usi_pool_n_thread(c->pool); i++) {
        pair_now *n = &c->rows.pair[i];
        n->A = n->B = c->collide.collision_body;
        n->pair = c->model->pair;
        n->is_compliant = n->is_ours = false;
        n->fall = c->model->step * c->fall_speed;
        n->normal = usi_v4_all(NAN);
    }
}

static void set_rows(pair_now *n, double h) {
    const us_touch_law *law = &n->law;
    double K0 = h * (h * law->stiffness + law->damping),
           K1 = h * (h * law->tangent_stiffness + law->tangent_damping), R0 = 1 / K0, R1 = 1 / K1;
    n->R = (usi_v4){R0, R1, R1, h * law->viscous};
    n->K = (usi_v4){K0, K1, 0, 0};
    n->sink = h * R0 * law->stiffness;
    n->give = h * R1;
    n->is_plain = !(law->restitution > 0 || law->torsion > 0 || law->rolling > 0);
}

static void start_pair(usi_contacts *c, const usi_island *s, const usi_contact_state *next,
                       const usi_point_now *p, pair_now *n) {
    const us_model *m = c->model;
    const usi_touch *t = &c->collide.touch_now[p->touch];
    const usi_grouped *g = &c->islands.grouped[p->touch];
    n->touch = p->touch;
    const usi_collision_body *A = &c->collide.collision_body[g->collision_body_a],
                             *B = &c->collide.collision_body[g->collision_body_b];
    n->A = A;
    n->B = B;
    n->between = A->p - B->p;
    n->v = A->v - B->v - usi_v4_cross(B->w, n->between);
    n->w = A->w - B->w;
    int32_t ma = t->material, mb = g->material_b, entry = ma * m->n_material + mb;
    const usi_pair *pair = &m->pair[entry];
    const double mass = g->mass;
    n->floor = n->is_ours ? -g->separation : -INFINITY;
    // The built-in model says the same of the same materials, masses and loads.
    bool is_soft = s->kind == USI_ISLAND_GAUSS_SEIDEL;
    if (usi_is_fast(c, USI_FAST_PAIR) && n->is_compliant && n->pair == pair && n->seen.mass == mass &&
        n->seen.load == s->load && n->is_soft == is_soft)
        return;
    n->pair = pair;
    n->is_soft = is_soft;
    n->is_compliant = usi_firm_model(c, entry) == USI_MODEL_COMPLIANT;
    us_touch *seen = &n->seen;
    seen->step = m->step;
    seen->mass = mass;
    seen->load = s->load;
    seen->gap = seen->normal_velocity = 0;
    seen->values = &next->pair[entry];
    if (n->is_compliant) {
        us_touch_law law;
        usi_touch_compliant(seen, &law);
        n->law = law;
        n->is_ours = seen->values->stiffness == 0;
        n->floor = n->is_ours ? -g->separation : -INFINITY;
        if (is_soft) soften(&n->law, mass, m->step, 0);
        set_rows(n, m->step);
        return;
    }
    n->is_ours = false;
    seen->material_a = m->names + m->material_name[ma];
    seen->material_b = m->names + m->material_name[mb];
    bool has_row = pair->parameter >= 0;
    seen->parameters = has_row ? m->pair_row[pair->parameter].parameters : NULL;
    seen->n_parameter = has_row ? m->pair_row[pair->parameter].n_parameter : 0;
}

// Damping of the turning rows: critical for a ball of the pair's mass and the smaller shape's size.
static double angular_damping(const usi_contacts *c, const usi_touch *t, double mass, double stiffness) {
    double a = c->far[t->geom_a], b = c->far[t->geom_b], size = a < b ? a : b;
    return 2 * sqrt(stiffness * 0.4 * mass * size * size);
}

// The stiffness of turning is that of the tangents on a lever.
static double angular_stiffness(double tangent, double torsion, double rolling) {
    double lever = torsion + rolling;
    return tangent * (lever * lever + 1e-6);
}

static void set_angular(const usi_contacts *c, pair_now *n) {
    const double h = c->model->step;
    double stiffness = angular_stiffness(n->law.tangent_stiffness, n->law.torsion, n->law.rolling);
    double sum = h * stiffness + angular_damping(c, &c->collide.touch_now[n->touch], n->seen.mass, stiffness);
    n->turned = n->touch;
    n->angular_K = h * sum;
    n->angular_R = 1 / n->angular_K;
    n->angular_pull = stiffness / sum;
}

// Torsion about the normal and rolling across it. The row of a wheel in soil leans against the normal: on
// axes that are not square an angle that is kept would grow from step to step.
static void make_rotation_block(const usi_contacts *c, pair_now *n, usi_block *k, const usi_block *point,
                                usi_v4 normal, usi_v4 turn) {
    const us_touch_law *law = &n->law;
    if (!n->is_compliant || n->turned != n->touch) set_angular(c, n);
    k->law = USI_ROTATION;
    k->n = 3;
    k->a = point->a;
    k->b_ = point->b_;
    k->point = point->point;
    k->mu = law->torsion;
    k->limit = law->rolling;
    k->viscous = k->press = k->rebound = 0;
    k->K[0] = k->K[1] = n->angular_K;
    for (int i = 0; i < 3; i++) {
        k->m[i] = i == 0 ? normal : point->d[i];
        k->d[i] = usi_v4_zero();
        k->R[i] = n->angular_R;
    }
    usi_v4 along = usi_three_sums(turn * k->m[0], turn * k->m[1], turn * k->m[2]);
    for (int i = 0; i < 3; i++)
        k->b[i] = n->angular_pull * along[i];
    k->radius = point->g[0];
    // Sweeps begin with the torque that the bent springs hold at rest, h k times the angle.
    usi_law_impulse(k, (const double[3]){0, 0, 0}, false, k->g);
}

// Whether the point is where it was on one of the bodies at least, but for what the bodies have moved against
// each other: where edges cross it follows both. One that wanders over both alike rolls: its old ends have
// left the contact and go on along their cycloids, which is no stretch.
static bool is_held(const usi_point_now *p, const usi_anchor *old, const usi_collision_body *A,
                    const usi_collision_body *B) {
    if (p->is_same) return true;
    usi_v4 a = p->p_A - A->p - usi_from_A(A, &old->p_A), b = p->p_B - B->p - usi_to_world(B, old->p_B),
           moved = a - b;
    moved -= p->n * usi_v4_all(usi_v4_dot(moved, p->n));
    usi_v4 squares = usi_three_sums(a * a, b * b, moved * moved);
    double max = ROLLED * ROLLED + 4 * squares[2];
    return (squares[0] < max) | (squares[1] < max);
}

// An impact is over within the step: its rows give next to nothing, and it has no anchor.
static void make_impact(usi_block *k, double restitution, double stiffness) {
    for (int j = 0; j < 2; j++)
        k->K[j] = fmax(k->K[j], stiffness);
    k->R[0] = 1 / k->K[0];
    k->R[1] = k->R[2] = 1 / k->K[1];
    k->b[1] = k->b[2] = k->limit = 0;
    k->rebound = restitution;
}

// Kinetic friction that fades at low speed: mu v / sqrt(v0^2 + w^2), v being the speed at the end of the step
// and v0 that at its start: a damper within the circle of mu, stable however small w is, and at a steady
// speed the law itself. Rigid rows have no dampers: they take both speeds at the start.
static void weight_friction(usi_block *k, double limit, double transition, double square, bool is_rigid) {
    const double scale = 1 / sqrt(square + transition * transition), K = limit * scale;
    if (is_rigid) k->mu *= sqrt(square) * scale;
    if (is_rigid || !(K > 0)) return;
    k->K[1] = K;
    k->R[1] = k->R[2] = 1 / K;
    k->b[1] = k->b[2] = 0;
    k->limit = 1;
}

// What went through a skin is stopped by a row that gives next to nothing.
static void harden(usi_block *k, double stiffness) {
    k->K[0] = fmax(k->K[0], stiffness);
    k->R[0] = 1 / k->K[0];
}

// The law of a point, where it is not that of its pair. False when its model gives none.
static bool ask(const usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                usi_contact_state *next, const usi_point_now *p, usi_v4 u, double un,
                double memory[US_TOUCH_MEMORY], pair_now *n) {
    const us_model *m = c->model;
    if (p->soil_contact >= 0) {
        n->is_compliant = false;
        if (!usi_soil_law(c, now, next, &c->collide.soil_contact[p->soil_contact], &n->seen, un, memory,
                          &n->law))
            return false;
    } else {
        n->seen.gap = p->gap;
        n->seen.normal_velocity = un;
        n->seen.is_new = p->old < 0;
        n->seen.point = usi_v4_vec3(p->p);
        n->seen.normal = usi_v4_vec3(p->n);
        n->seen.velocity = usi_v4_vec3(u);
        const int32_t model = usi_firm_model(c, (int32_t)(n->pair - m->pair));
        if (!usi_touch_ask(model, &m->interaction[model], &n->seen, memory, &n->law)) return false;
    }
    if (s->kind == USI_ISLAND_GAUSS_SEIDEL) soften(&n->law, n->seen.mass, m->step, un);
    set_rows(n, m->step);
    return true;
}

// The offset of the normal row. Where the stiffness is ours to choose, what overlaps deeply (from the start,
// or put there) is pushed out, not shot.
static inline double offset(const usi_contacts *c, const usi_island *s, const usi_point_now *p, double un,
                            const pair_now *n) {
    const double h = c->model->step;
    if (p->gap > 0) return p->gap / h;
    if (s->kind == USI_ISLAND_RIGID) return RIGID_SHARE * p->gap / h;
    if (!n->is_compliant) return -n->R[0] * h * (n->law.force + n->law.damping * un);
    double b = n->sink * p->gap;
    return b < n->floor ? n->floor : b;
}

// The stretch of a point's spring in the world's axes. While it sticks that is measured between the spring's
// ends. out_is_tied: whether it was, between the same points of both bodies as in the last step.
static inline usi_v4 stretch_of(const usi_point_now *p, const usi_anchor *old, const pair_now *n,
                                bool *out_is_tied) {
    usi_v4 xi = usi_from_A(n->A, &old->xi);
    *out_is_tied = false;
    if (old->is_sliding || !is_held(p, old, n->A, n->B)) return xi;
    usi_v4 arc = n->between + usi_from_A(n->A, &old->hold) - usi_to_world(n->B, old->p_B) - xi;
    arc -= p->n * usi_v4_all(usi_v4_dot(arc, p->n));
    const bool is_near = usi_v4_dot(arc, arc) < MAX_ARC * MAX_ARC;
    *out_is_tied = is_near & p->is_same;
    return is_near ? xi + arc : xi;
}

// The built-in model, on ground that does not give way.
static bool is_compliant(const usi_contacts *c, const usi_touch *t) {
    const us_model *m = c->model;
    const int32_t other = m->geom[t->geom_b].material;
    return usi_firm_model(c, t->material * m->n_material + other) == USI_MODEL_COMPLIANT &&
           !usi_soil_acts(c, t->material, other);
}

// Whether a link turns so fast that what rolling gains in a step matters, see drain.
static inline bool is_spinning(const usi_collision_body *k, double h) {
    return k->spin * k->spin * h > FAST_SPIN;
}

// Whether that turn moves what touches. A ball that turns about its centre and a capsule that turns about its
// axis end a step as deep as their velocities said: what counts is how the middle of their roundness moves.
static bool is_swaying(const usi_contacts *c, const usi_island *s, int32_t geom,
                       const usi_collision_body *k) {
    const double h = c->model->step;
    if (!is_spinning(k, h)) return false;
    const usi_geom *g = &c->model->geom[geom];
    const bool is_capsule = g->geom.kind == US_GEOM_CAPSULE;
    if (!is_capsule && g->geom.kind != US_GEOM_SPHERE) return true;
    const usi_v4 com = s->O + c->solve.body[s->first_body + k->body].c,
                 from_com = usi_from_A(k, &g->X_NG.p) + k->p - com, moved = usi_v4_cross(k->w, from_com);
    double sway = sqrt(usi_v4_dot(moved, moved));
    if (is_capsule) {
        const us_vec3 axis = us_quat_rotate(g->X_NG.q, us_vec3_make(0, 0, 1));
        const usi_v4 turned = usi_v4_cross(k->w, usi_to_world(k, axis));
        sway += g->geom.size[0] * sqrt(usi_v4_dot(turned, turned));
    }
    return k->spin * sway * h > FAST_SPIN * g->geom.radius;
}

// The body whose spin pays for it, NULL where nobody's is taken: links of robots have friction of their own.
static const usi_collision_body *find_spinner(const usi_contacts *c, const usi_collision_body *A,
                                              const usi_collision_body *B) {
    const usi_collision_body *k = B->spin >= A->spin ? B : A;
    return k->node >= 0 && c->model->tree[k->tree].is_free_body ? k : NULL;
}

// Whether a point of the pair keeps what `drain` needs.
static bool is_rolling(const usi_contacts *c, const usi_island *s, const usi_touch *t,
                       const usi_collision_body *A, const usi_collision_body *B) {
    return find_spinner(c, A, B) && is_compliant(c, t) &&
           (is_swaying(c, s, t->geom_a, A) || is_swaying(c, s, t->geom_b, B));
}

// A body that rolls and leans (a coin on its rim) ends a step a little deeper than its velocities said, by
// h^2 times a curvature: what bends the springs by that is energy from nothing, and lifts the body. Most of
// it is lost again, because the contact goes on to points that are not yet at rest; the rest is taken from
// the spin of the body that rolls. `kept`: the gap that the last step left, and what its impulses lost, see
// account.
static void drain(const usi_contacts *c, const usi_island *s, const usi_point_now *p, const pair_now *n,
                  const double kept[2], double b) {
    const double predicted = kept[0], lost = predicted - p->gap, push = -b * n->K[0] / c->model->step;
    const usi_collision_body *k = find_spinner(c, n->A, n->B);
    if (!(lost > 0 && push > 0) || s->is_drained || !k) return;
    usi_free *body = &c->solve.body[s->first_body + k->body];
    const usi_v4 at = body->c * (usi_v4){1, 1, 1, 0}, L = body->pw - usi_v4_cross(at, body->pv);
    const double energy = fmax(0, 0.5 * push * (1 + predicted / p->gap) * lost - kept[1]),
                 twice = usi_v4_dot(body->fw, L);
    const usi_v4 share = usi_v4_all(twice > 0 ? fmin(energy / twice, MAX_DRAIN) : 0);
    body->pw -= share * L;
    body->fv += share * usi_v4_cross(body->fw, at);
    body->fw -= share * body->fw;
}

// What stands in a block side by side is written at once.
static inline void put_numbers(usi_block *k, usi_v4 b_mu, usi_v4 g_radius, usi_v4 R_viscous,
                               usi_v4 K_limit_rebound) {
    usi_v4_unaligned *at = (usi_v4_unaligned *)(void *)((char *)k + offsetof(usi_block, b));
    at[0] = b_mu;
    at[1] = g_radius;
    at[2] = R_viscous;
    at[3] = K_limit_rebound;
}

// The impulse of the last step along the rows, and the radius of its friction.
static inline usi_v4 last_impulse(const pair_now *n, const usi_point_now *p, const usi_anchor *old,
                                  double mu) {
    usi_v4 g = usi_from_A(n->A, &old->g);
    g = usi_three_sums(g * p->n, g * n->t, g * n->s);
    const double g0 = g[0] > 0 ? g[0] : 0;
    return (usi_v4){g0, g[1], g[2], usi_friction_limit(mu, g0)};
}

// Axes and bodies of a point's rows. Along a wheel in soil they are the wheel's.
static inline void put_axes(const usi_island *s, int32_t i, const usi_point_now *p,
                            const usi_soil_contact *wheel, pair_now *n, usi_block *k) {
    if (wheel) {
        n->t = -wheel->ahead;
        n->s = -wheel->left;
    } else if (!is_same(p->n, n->normal))
        tangents(p->n, &n->t, &n->s);
    n->normal = wheel ? usi_v4_all(NAN) : p->n;
    k->law = USI_POINT;
    k->n = 3;
    k->a = n->A->body;
    k->b_ = n->B->body;
    k->point = i;
    k->d[0] = p->n;
    k->d[1] = n->t;
    k->d[2] = n->s;
    const usi_v4 r = p->p - s->O;
    for (int j = 0; j < 3; j++)
        k->m[j] = usi_v4_cross(r, k->d[j]);
}

static bool make_point(usi_contacts *c, const usi_island *s, int32_t i, usi_point_now *p,
                       const usi_contact_state *now, usi_contact_state *next, pair_now *n, usi_block **at) {
    const double h = c->model->step;
    if (p->touch != n->touch) start_pair(c, s, next, p, n);
    const usi_anchor *old = p->old >= 0 ? &now->anchor[p->old] : &blank;
    usi_anchor *kept = &next->anchor[i];
    // What sticks by the built-in model alone does not depend on how it moves.
    const bool is_alone = n->is_compliant & n->is_plain & (p->soil_contact < 0),
               wants_motion = !is_alone || old->is_sliding;
    usi_v4 u = wants_motion ? n->v + usi_v4_cross(n->w, p->p - n->A->p) : usi_v4_zero();
    double un = wants_motion ? usi_v4_dot(u, p->n) : 0;
    usi_soil_contact *wheel =
        !is_alone && p->soil_contact >= 0 && c->collide.soil_contact[p->soil_contact].is_wheel
            ? &c->collide.soil_contact[p->soil_contact]
            : NULL;
    memcpy(kept->memory, old->memory, sizeof kept->memory);
    if (!is_alone && (p->soil_contact >= 0 || !n->is_compliant) &&
        !ask(c, s, now, next, p, u, un, kept->memory, n))
        return false;
    const us_touch_law *law = &n->law;
    usi_block *k = (*at)++;
    put_axes(s, i, p, wheel, n, k);
    double mu = law->static_friction;
    usi_v4 ut = u - p->n * usi_v4_all(un);
    const double slip = old->is_sliding ? usi_v4_dot(ut, ut) : 0;
    const bool is_kinetic = slip > STICK_SPEED * STICK_SPEED;
    if (is_kinetic) mu = law->kinetic_friction;
    // A row that has become stiffer is stretched less by the same force.
    usi_v4 pull = stretch_of(p, old, n, &p->is_tied) * usi_v4_all(n->give * old->stiffness);
    const double normal = offset(c, s, p, un, n);
    usi_v4 b = usi_three_sums((usi_v4){normal, 0, 0, 0}, pull * n->t, pull * n->s);
    // Sweeps keep nothing for it, and may make the rows of an island by several threads.
    if (n->is_compliant && kept->memory[0] < 0 && s->kind != USI_ISLAND_GAUSS_SEIDEL)
        drain(c, s, p, n, kept->memory, normal);
    put_numbers(k, __builtin_shufflevector(b, usi_v4_all(mu), 0, 1, 2, 4),
                n->is_warm ? last_impulse(n, p, old, mu) : usi_v4_zero(), n->R, n->K);
    if (is_kinetic && law->transition > 0)
        weight_friction(k, last_impulse(n, p, old, mu)[3], law->transition, slip,
                        s->kind == USI_ISLAND_RIGID);
    if (c->collide.n_passed > 0 && n->is_ours && usi_is_passed(p->feature))
        harden(k, IMPACT_STIFFNESS * s->max_mass);
    kept->stiffness = law->tangent_stiffness;
    kept->damping = law->tangent_damping;
    kept->angle = us_vec3_make(0, 0, 0);
    n->was_kept &= old->is_kept != 0;
    if (is_alone) return true;
    if (wheel) usi_soil_tilt(c, s, wheel, k);
    // Weight may close the rest of a gap: a row that merely stops the point there would take what one step of
    // weight gives.
    if (law->restitution > 0 && un < -IMPACT_SPEED && p->gap + h * un <= n->fall) {
        make_impact(k, law->restitution, IMPACT_STIFFNESS * n->seen.mass);
        n->n_impact++;
    }
    if (law->torsion > 0 || law->rolling > 0)
        make_rotation_block(c, n, (*at)++, k, p->n, usi_from_A(n->A, &old->angle));
    if (wheel && wheel->blend > 0) {
        wheel->slip_block = (int32_t)(*at - c->rows.block);
        usi_soil_slip_block(c, wheel, k, (*at)++);
    }
    return true;
}

// A loop's rows. Their compliance is that of a joint a million times as stiff as the bodies are heavy in a
// step; what it leaves open is closed by the projection.
static void make_loop(usi_contacts *c, const usi_island *s, const usi_loop *l,
                      const int32_t collision_body[2], usi_block **at) {
    const double h = c->model->step, K = 1e6 * s->max_mass;
    const usi_collision_body *A = &c->collide.collision_body[collision_body[0]],
                             *B = &c->collide.collision_body[collision_body[1]];
    us_pose X_WC = us_pose_mul(A->X_WN, l->X_AC), X_WD = us_pose_mul(B->X_WN, l->X_BD);
    us_vec3 phi = us_vec3_sub(X_WC.p, X_WD.p);
    usi_v4 r = 0.5 * (usi_v4_from(X_WC.p) + usi_v4_from(X_WD.p)) - s->O;
    usi_block *k = (*at)++;
    *k = (usi_block){.law = USI_EQUAL, .n = 3, .a = A->body, .b_ = B->body, .point = -1};
    const double error[3] = {phi.x, phi.y, phi.z};
    for (int j = 0; j < 3; j++) {
        k->d[j] = usi_v4_set(j == 0, j == 1, j == 2);
        k->m[j] = usi_v4_cross(r, k->d[j]);
        k->b[j] = error[j] / h;
        k->R[j] = 1 / K;
        k->K[j > 0] = K;
    }
    if (l->n_axis == 0) return;
    k = (*at)++;
    *k = (usi_block){.law = USI_EQUAL, .n = l->n_axis, .a = A->body, .b_ = B->body, .point = -1};
    us_mat3 C = us_quat_matrix(X_WC.q), D = us_quat_matrix(X_WD.q);
    for (int j = 0; j < 3; j++) {
        usi_v4 x = usi_v4_zero(), y = x;
        if (j < l->n_axis) {
            int ic = l->axis_c[j], id = l->axis_d[j];
            x = usi_v4_set(C.m[ic], C.m[3 + ic], C.m[6 + ic]);
            y = usi_v4_set(D.m[id], D.m[3 + id], D.m[6 + id]);
        }
        k->m[j] = usi_v4_cross(x, y);
        k->d[j] = usi_v4_zero();
        k->b[j] = usi_v4_dot(x, y) / h;
        k->R[j] = 1 / K;
        k->K[j > 0] = K;
    }
}

// Points first .. end - 1 of the island's list, to blocks from *at on.
bool usi_make_rows_of(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                      usi_contact_state *next, int32_t thread, int32_t first, int32_t end, usi_block **at,
                      usi_rows_made *out) {
    pair_now *pair = &c->rows.pair[thread];
    pair->touch = pair->turned = -1;
    pair->n_impact = 0;
    pair->was_kept = true;
    pair->is_warm = s->kind == USI_ISLAND_GAUSS_SEIDEL || s->kind == USI_ISLAND_RIGID;
    const bool can_skip = usi_can_skip(c, s);
    out->n_skipped = out->refused = 0;
    for (const int32_t *order = c->islands.order + s->first_point + first, *last = order + (end - first);
         order < last; order++) {
        usi_point_now *p = &c->collide.point[*order];
        if (can_skip && !p->may_press) {
            out->n_skipped++;
            continue;
        }
        if (make_point(c, s, *order, p, now, next, pair, at)) continue;
        out->refused = 1 + (int32_t)(pair->pair - c->model->pair);
        return false;
    }
    out->n_impact = pair->n_impact;
    out->was_kept = pair->was_kept;
    return true;
}

bool usi_make_rows(usi_contacts *c, usi_island *s, const usi_contact_state *now, usi_contact_state *next,
                   int32_t thread) {
    const us_model *m = c->model;
    usi_block *at = &c->rows.block[s->first_block];
    usi_rows_made made;
    const bool ok = usi_make_rows_of(c, s, now, next, thread, 0, s->n_point, &at, &made);
    s->n_skipped = made.n_skipped;
    if (!ok) {
        s->refused = made.refused;
        return false;
    }
    for (int32_t l = 0; l < m->n_loop; l++) {
        const int32_t *collision_body = &c->loop_body[2 * l];
        int32_t tree =
            c->collide.collision_body[collision_body[c->collide.collision_body[collision_body[0]].node < 0]]
                .tree;
        if (&c->islands.island[c->islands.tree[tree].island] == s)
            make_loop(c, s, &m->loop[l], collision_body, &at);
    }
    s->is_drained = true;
    s->n_block = (int32_t)(at - &c->rows.block[s->first_block]);
    s->n_impact = made.n_impact;
    s->was_kept = made.was_kept;
    return true;
}

// ---------------------------------------------------------------- what is kept

// Where the point is on both bodies. `old`: its anchor of the last step, where it is the same point.
static inline void keep_place(const usi_anchor *old, const usi_point_now *p, const usi_collision_body *A,
                              const usi_collision_body *B, usi_anchor *a) {
    if (p->is_same) {
        memcpy(a, old, offsetof(usi_anchor, xi));
    } else {
        a->normal = usi_to_A(A, p->n);
        a->p_A = usi_to_A(A, p->p_A - A->p);
        a->p_B = usi_to_local(B, p->p_B - B->p);
    }
    a->feature = p->feature;
}

void usi_keep_place(const usi_contacts *c, int32_t point, const usi_contact_state *now,
                    usi_contact_state *next) {
    const usi_point_now *p = &c->collide.point[point];
    const usi_grouped *g = &c->islands.grouped[p->touch];
    usi_anchor *a = &next->anchor[point];
    *a = blank;
    keep_place(p->is_same ? &now->anchor[p->old] : &blank, p, &c->collide.collision_body[g->collision_body_a],
               &c->collide.collision_body[g->collision_body_b], a);
}

// A contact that does not press leaves a free body to the integrator, so that its motion is the same, to the
// last bit, as without the contact. What presses is implicit in the velocity at the end of the step, and so
// is the position: moved by the mean of both velocities, as in the air, a body on stiff ground would ring, x'
// = x/2 + h v/2, v' = -x/h.
void usi_release_bodies(usi_contacts *c, const usi_island *s) {
    const int32_t *member = c->islands.members + s->first_tree;
    for (int32_t i = 0; i < s->n_tree; i++) {
        const bool is_pushed = c->pushed && c->pushed[member[i]];
        c->islands.tree[member[i]].is_released = c->model->tree[member[i]].is_free_body && !is_pushed;
    }
}
// Threads that share an island may take the same body.
static inline void take_bodies(usi_contacts *c, const usi_collision_body *A, const usi_collision_body *B) {
    if (A->tree >= 0) __atomic_store_n(&c->islands.tree[A->tree].is_released, false, __ATOMIC_RELAXED);
    if (B->tree >= 0) __atomic_store_n(&c->islands.tree[B->tree].is_released, false, __ATOMIC_RELAXED);
}

// Bodies of a loop.
static void take_loop(usi_contacts *c, const usi_island *s, const usi_block *k) {
    const int32_t *of = c->islands.collision_body_of + s->first_body;
    const usi_collision_body *body = c->collide.collision_body;
    take_bodies(c, &body[k->a < 0 ? 0 : of[k->a]], &body[k->b_ < 0 ? 0 : of[k->b_]]);
}

// The angle of the springs of torsion and rolling after the step. b = erp xi / h with erp = h k / (h k + c),
// so that (h k + c) b / k is the old stretch.
static inline void keep_angle(const usi_block *k, const usi_collision_body *A, double h, usi_anchor *a) {
    const double bend = k->K[0] / (h * angular_stiffness(a->stiffness, k->mu, k->limit)) - h,
                 give = h * k->R[0];
    usi_v4 angle = usi_v4_zero();
    for (int j = 0; j < 3; j++)
        angle += k->m[j] * usi_v4_all(bend * k->b[j] - give * k->g[j]);
    a->angle = usi_to_A(A, angle);
}

// The tangential spring of an anchor.
typedef struct spring {
    double stiffness, damping;
    double give, stretch;  // 1 / (h k + c), c / k
} spring;

// Most points have the spring of the one before.
static inline void set_spring(spring *x, const usi_anchor *a, double h) {
    if (a->stiffness == x->stiffness && a->damping == x->damping) return;
    *x = (spring){a->stiffness, a->damping, 1 / (h * a->stiffness + a->damping), a->damping / a->stiffness};
}

// Friction of a point that presses, after the step.
typedef struct friction {
    usi_v4 xi, g;  // m, N s
    bool is_sliding;
} friction;

// The damper of sliding is not part of the spring. What rebounds lets go of its anchor.
static inline friction friction_after(const usi_block *k, const double u[3], const spring *x) {
    const double g1 = k->g[1] + k->viscous * u[1], g2 = k->g[2] + k->viscous * u[2],
                 limit = usi_friction_limit(k->mu, k->g[0]);
    const double x1 = x->stretch * k->b[1] - g1 * x->give, x2 = x->stretch * k->b[2] - g2 * x->give;
    friction f = {usi_v4_zero(), k->d[1] * usi_v4_all(k->g[1]) + k->d[2] * usi_v4_all(k->g[2]),
                  usi_coulomb_solved(k->g[0], g1 * g1 + g2 * g2, limit) == USI_SLIP};
    if (k->limit > 0) f.is_sliding = u[1] * u[1] + u[2] * u[2] > STICK_SPEED * STICK_SPEED;
    if (k->rebound == 0) f.xi = k->d[1] * usi_v4_all(x1) + k->d[2] * usi_v4_all(x2);
    return f;
}

// The impulse of a wheel's slip in soil, beside its point's.
static usi_v4 slip_impulse(const usi_contacts *c, const usi_point_now *p) {
    const int32_t at = c->collide.soil_contact[p->soil_contact].slip_block;
    if (at < 0) return usi_v4_zero();
    const usi_block *slip = &c->rows.block[at];
    return slip->d[0] * usi_v4_all(slip->g[0]) + slip->d[1] * usi_v4_all(slip->g[1]);
}

// What a point keeps for `drain`: the gap that the step leaves, and the energy that its impulse has lost:
// what it took from the bodies, less what is in the normal spring now and was not before.
static void account(const usi_contacts *c, const usi_island *s, const usi_block *k, const double u[3],
                    bool is_wanted, double memory[2]) {
    const double h = c->model->step, gap = c->collide.point[k->point].gap, left = gap + h * u[0];
    memory[0] = memory[1] = 0;
    if (!is_wanted || left >= 0) return;
    double before[3], work = 0;
    usi_row_velocities_before(c, s, k, before);
    for (int j = 0; j < 3; j++)
        work += 0.5 * k->g[j] * (before[j] + u[j]);
    const double stiffness = gap < 0 ? k->b[0] * k->K[0] / (h * gap) : 0,
                 freed = gap < 0 ? 0.5 * stiffness * (gap * gap - left * left) : 0;
    memory[0] = left;
    memory[1] = fmax(0, freed - work);
}

// The pair of the points that are kept.
typedef struct kept_pair {
    const usi_collision_body *A, *B;
    int32_t touch;
    bool presses;  // a point of it
    bool rolls;
} kept_pair;

static inline kept_pair begin_pair(const usi_contacts *c, const usi_island *s, int32_t touch, bool can_tie) {
    const double h = c->model->step;
    kept_pair x = {&c->collide.collision_body[c->islands.grouped[touch].collision_body_a],
                   &c->collide.collision_body[c->islands.grouped[touch].collision_body_b], touch, false,
                   false};
    x.rolls = can_tie && (is_spinning(x.A, h) || is_spinning(x.B, h)) &&
              is_rolling(c, s, &c->collide.touch_now[touch], x.A, x.B);
    return x;
}

void usi_keep_rows_of(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                      usi_contact_state *next, usi_span blocks, usi_span points) {
    const double h = c->model->step;
    // Sweeps leave impulses that are not those of the velocities: there the stretch follows the impulse.
    const bool can_tie = s->kind == USI_ISLAND_BRANCH || s->kind == USI_ISLAND_BLOCKS;
    const int32_t is_kept = s->n_iteration == 0;
    const usi_block *k = &c->rows.block[s->first_block + blocks.first],
                    *const end = &c->rows.block[s->first_block + blocks.end];
    const double *u = c->solve.u + 3 * (s->first_block + blocks.first);
    kept_pair pair = {c->collide.collision_body, c->collide.collision_body, -1, false, false};
    spring x = {NAN, NAN, 0, 0};
    for (; k < end; k++, u += 3) {
        if (k->point < 0) {
            take_loop(c, s, k);
            continue;
        }
        const usi_point_now *p = &c->collide.point[k->point];
        const usi_anchor *old = p->old >= 0 ? &now->anchor[p->old] : &blank;
        usi_anchor *a = &next->anchor[k->point];

        if (p->touch != pair.touch) {
            if (pair.presses) take_bodies(c, pair.A, pair.B);
            pair = begin_pair(c, s, p->touch, can_tie);
        }
        const usi_collision_body *A = pair.A, *B = pair.B;
        if (k->law == USI_ROTATION) {
            keep_angle(k, A, h, a);
            continue;
        }

        // Stretch and impulse.
        set_spring(&x, a, h);
        usi_v4 xi = usi_v4_zero(), g = k->d[0] * usi_v4_all(k->g[0]);
        bool is_sliding = false, is_tied = false;
        if (k->g[0] > 0) {
            const friction f = friction_after(k, u, &x);
            pair.presses = true;
            xi = f.xi;
            g += f.g;
            is_sliding = f.is_sliding;
            is_tied = can_tie & p->is_tied & !is_sliding & (k->rebound == 0);
        }
        if (p->soil_contact >= 0) g += slip_impulse(c, p);
        if (pair.rolls || (a->memory[0] != 0 && is_compliant(c, &c->collide.touch_now[pair.touch])))
            account(c, s, k, u, pair.rolls && k->g[0] > 0 && k->rebound == 0, a->memory);
        a->xi = usi_to_A(A, xi);
        a->g = usi_to_A(A, g);

        // The ends of the spring. One that sticks stays tied where it was: made anew each step from positions
        // of a metre, it would wander by their rounding, 1e-16 m a step. Otherwise where they are now: the
        // step brings them apart by h u.
        if (is_tied && old->stiffness == x.stiffness)
            a->hold = old->hold;
        else
            a->hold = usi_to_A(A, p->p_B - A->p + xi -
                                      h * (k->d[1] * usi_v4_all(u[1]) + k->d[2] * usi_v4_all(u[2])));
        keep_place(old, p, A, B, a);
        a->is_sliding = is_sliding;
        a->is_kept = is_kept;
    }
    if (pair.presses) take_bodies(c, pair.A, pair.B);
    for (int32_t i = points.first; i < points.end && s->n_skipped > 0; i++) {
        const int32_t point = c->islands.order[s->first_point + i];
        if (!c->collide.point[point].may_press) usi_keep_place(c, point, now, next);
    }
}

void usi_keep_rows(usi_contacts *c, const usi_island *s, const usi_contact_state *now,
                   usi_contact_state *next) {
    usi_release_bodies(c, s);
    usi_keep_rows_of(c, s, now, next, (usi_span){0, s->n_block}, (usi_span){0, s->n_point});
}
