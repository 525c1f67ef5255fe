// What a solve let through a skin: it is looked for after the solve, and the step is solved again.
//
// Points are rows on velocities, at the places where shapes are at the start of the step. Some things get by
// them. A small body that others push within the step goes farther than was looked at, or bends its springs
// by more than it is thick. What turns by a part of a radian ends the step with other corners down than those
// that had points, until it is nearer to the other side of a mesh and is pushed out there. And a shape that
// has but one point at a time rocks on it, a little deeper with every step.
//
//      start       end            So shapes that the solve moves by more than half their thickness are put
//      ____                       where the step would end, and what they do there is held against what their
//     |_\__|___   ___\/___        rows promised. A corner c that is deep there, and has no row or is deeper
//        c           c            than its velocity said, gets a point, with the gap at the start that makes
//                                 its row say what is true:
//
//     gap = gap(start) + (gap(end) - gap(start) - h u)
//
// A middle that goes through gets a point of its core, as in swept.c. Then the step is solved again with
// these points: a few rounds at most, and none where nothing is small and fast.
#include <math.h>

#include "contact/contact__collide.h"

// Of half the thickness of a shape: the way in a step from which on it is looked at; how deep a point may be
// at the end, how much deeper than its velocity said, and how near a point with a row is the same; and how
// deep a spring that is ours to choose may give.
static const double LOOK = 0.5, DEEP = 0.25, DEEPER = 0.1, NEAR = 0.5, MAX_GIVE = 0.5;
// The core within that half, see swept.c.
static const double CORE = 0.5;

// Where a link is at the end of the step.
typedef struct end {
    const usi_collision_body *k;
    us_pose X;    // of its node
    usi_v4 w, v;  // solved: about the island's O
    usi_v4 O;
} end;

static bool is_skin(const usi_contacts *c, int32_t geom) {
    const us_geom_kind kind = c->model->geom[geom].geom.kind;
    return kind == US_GEOM_MESH || kind == US_GEOM_HEIGHT_FIELD;
}

// NULL: the solve says nothing of the link's velocity.
static const usi_island *island_of(const usi_contacts *c, const usi_collision_body *k) {
    const int32_t at = k->body < 0 || !k->is_solved ? -1 : c->islands.tree[k->tree].island;
    return at < 0 ? NULL : &c->islands.island[at];
}

static usi_v4 velocity_at(const end *e, usi_v4 p) { return e->v + usi_v4_cross(e->w, p - e->O); }

static end end_of(const usi_contacts *c, const usi_collision_body *k) {
    const usi_island *s = island_of(c, k);
    const double h = c->model->step;
    end e = {.k = k, .X = usi_body_pose(k), .w = k->w, .v = k->v, .O = k->p};
    if (k->node < 0) return e;
    usi_v4 centre = k->p;
    if (s) {
        e.w = c->solve.body[s->first_body + k->body].w;
        e.v = c->solve.body[s->first_body + k->body].v;
        e.O = s->O;
    }
    // A free body turns about its centre of mass.
    if (c->model->tree[k->tree].is_free_body)
        centre += usi_to_world(k, usi_v4_vec3(c->model->node[c->model->tree[k->tree].end - 1].com));
    const us_quat turn = us_quat_exp(usi_v4_vec3(h * e.w));
    const us_vec3 arm = us_quat_rotate(turn, usi_v4_vec3(k->p - centre));
    e.X.q = us_quat_normalize(us_quat_mul(turn, e.X.q));
    e.X.p = us_vec3_add(usi_v4_vec3(centre + h * velocity_at(&e, centre)), arm);
    return e;
}

static us_vec3 to_node(us_pose X, us_vec3 p) {
    return us_quat_rotate(us_quat_conj(X.q), us_vec3_sub(p, X.p));
}

static bool add_passed(usi_contacts *c, const usi_passed *p) {
    if (c->collide.n_passed >= USI_MAX_PASSED) return false;
    c->collide.passed[c->collide.n_passed++] = *p;
    return true;
}

// The middle of a shape, which must not go through the skin: seen from the skin, from the start to the end.
static bool find_core(usi_contacts *c, int32_t skin, const end *A, int32_t geom, const end *B,
                      bool is_skin_first) {
    const us_vec3 middle = usi_v4_vec3(c->core[geom]);
    const us_pose X_A = usi_body_pose(A->k), X_B = usi_body_pose(B->k);
    const us_vec3 from = to_node(X_A, us_pose_point(X_B, middle)),
                  to = to_node(A->X, us_pose_point(B->X, middle)), way = us_vec3_sub(to, from);
    const double length = us_vec3_norm(way), radius = CORE * c->core[geom][3];
    if (!(length > 0)) return false;
    const us_vec3 along = us_vec3_scale(1 / length, way);
    const usi_geom *g = &c->model->geom[skin];
    const us_ray_hit hit = us_geom_ray(&g->geom, g->X_NG, from, along, length);
    const double steep = -us_vec3_dot(hit.normal, along);
    if (!(hit.range > 0 && hit.range < length && steep > 0)) return false;
    const us_vec3 on_core = us_vec3_sub(from, us_vec3_scale(radius, hit.normal));
    const double gap = fmax(hit.range * steep - radius, 0);
    const us_vec3 on_skin = us_vec3_sub(on_core, us_vec3_scale(gap, hit.normal)),
                  on_shape = to_node(X_B, us_pose_point(X_A, on_core));
    usi_passed p = {.p_A = on_skin,
                    .p_B = on_shape,
                    .normal = us_vec3_scale(-1, hit.normal),
                    .gap = gap,
                    .geom_a = skin,
                    .geom_b = geom};
    if (!is_skin_first) {
        p.p_A = on_shape;
        p.p_B = on_skin;
        p.normal = us_quat_rotate(us_quat_conj(X_B.q), us_quat_rotate(X_A.q, hit.normal));
        p.geom_a = geom;
        p.geom_b = skin;
    }
    return add_passed(c, &p);
}

// Whether some point of the pair has a row near this place of B.
static bool has_row(const usi_contacts *c, int32_t geom_a, int32_t geom_b, usi_v4 at_B, double near) {
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const usi_touch *t = &c->collide.touch_now[i];
        if (t->geom_a != geom_a || t->geom_b != geom_b) continue;
        for (const usi_point_now *p = &c->collide.point[t->first]; p < &c->collide.point[t->first + t->n];
             p++) {
            const usi_v4 d = p->p_B - at_B;
            if (p->may_press && usi_v4_dot(d, d) < near * near) return true;
        }
    }
    return false;
}

// Whether the stiffness of a pair is ours to choose: one that is given may give as far as it does.
static bool is_ours(const usi_contacts *c, const usi_contact_state *now, int32_t geom_a, int32_t geom_b) {
    const us_model *m = c->model;
    const int32_t entry = m->geom[geom_a].material * m->n_material + m->geom[geom_b].material;
    return usi_firm_model(c, entry) == USI_MODEL_COMPLIANT && now->pair[entry].stiffness == 0;
}

// Points at the end that are deep, and deeper than their velocities said, or nobody's, or through a spring
// that was too soft.
static bool find_corners(usi_contacts *c, const usi_contact_state *now, int32_t geom_a, const end *A,
                         int32_t geom_b, const end *B, double half) {
    const usi_geom *ga = &c->model->geom[geom_a], *gb = &c->model->geom[geom_b];
    const us_pose X_A = usi_body_pose(A->k), X_B = usi_body_pose(B->k);
    const double margin = ga->margin + gb->margin;
    us_manifold f;
    bool any = false;
    if (us_geom_contact(&ga->geom, us_pose_mul(A->X, ga->X_NG), &gb->geom, us_pose_mul(B->X, gb->X_NG), 0,
                        &f))
        return false;
    for (int32_t i = 0; i < f.n; i++) {
        const double left = f.gap[i] - margin;
        if (left > -DEEP * half) continue;
        const us_vec3 p_A = to_node(A->X, f.p_A[i]), p_B = to_node(B->X, f.p_B[i]),
                      n_A = us_quat_rotate(us_quat_conj(A->X.q), f.normal[i]);
        const usi_v4 n = usi_v4_from(us_quat_rotate(X_A.q, n_A)), at_A = usi_v4_from(us_pose_point(X_A, p_A)),
                     at_B = usi_v4_from(us_pose_point(X_B, p_B));
        const double gap = usi_v4_dot(n, at_A - at_B) - margin,
                     u = usi_v4_dot(n, velocity_at(A, at_B) - velocity_at(B, at_B)),
                     deeper = left - gap - c->model->step * u;
        const bool has_given = left < -MAX_GIVE * half && left < gap && is_ours(c, now, geom_a, geom_b);
        if (!has_given && deeper > -DEEPER * half && has_row(c, geom_a, geom_b, at_B, NEAR * half)) continue;
        const usi_passed p = {p_A, p_B, n_A, gap + deeper, geom_a, geom_b};
        any = add_passed(c, &p) || any;
    }
    return any;
}

// Most links are slow, and this is all that is asked of them:
//
//     (|v| + |w| far)^2 <= 2 (v^2 + far^2 w^2) <= 6 max over x, y, z of (v_x^2 + far^2 w_x^2)
//
// A hundredth less is far more than rounding.
usi_slow usi_slow_of(const usi_contacts *c, const usi_collision_body *k) {
    double far = 0, way = INFINITY;
    for (int32_t g = k->first_geom; g < k->end_geom; g++) {
        far = fmax(far, c->far[g]);
        way = fmin(way, LOOK * c->core[g][3]);
    }
    const double speed = way / c->model->step;
    return (usi_slow){far * far, 0.99 / 6 * speed * speed};
}

static inline void and_slow(const usi_contacts *c, int32_t link, const usi_island *s, usi_v4i *all) {
    const usi_collision_body *k = &c->collide.collision_body[link];
    if (k->body < 0) return;
    const usi_free *b = &c->solve.body[s->first_body + k->body];
    const usi_slow *slow = &c->slow[link];
    const usi_v4 v = b->v + usi_v4_cross(b->w, k->p - s->O);
    *all &= v * v + slow->far2 * (b->w * b->w) < usi_v4_all(slow->max2);
}

// The island whose rows act on a pair, NULL: none do.
static inline const usi_island *island_of_touch(const usi_contacts *c, int32_t touch) {
    const int32_t at = c->islands.tree[c->islands.touch_tree[touch]].island;
    return at < 0 || c->collide.touch_now[touch].n == 0 ? NULL : &c->islands.island[at];
}

static bool are_slow(const usi_contacts *c) {
    usi_v4i all = {-1, -1, -1, -1};
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const usi_island *s = island_of_touch(c, i);
        if (!s) continue;
        and_slow(c, c->islands.grouped[i].collision_body_a, s, &all);
        and_slow(c, c->islands.grouped[i].collision_body_b, s, &all);
    }
    return !usi_v4_any_of_three(~all);
}

// The solve gives no velocities to links of robots on which no row acts; the rigid one to none of a robot.
static void mark_solved(usi_contacts *c, const usi_island *s, int32_t link) {
    usi_collision_body *k = &c->collide.collision_body[link];
    k->is_solved = k->node >= 0 && (s->kind != USI_ISLAND_RIGID || c->model->tree[k->tree].is_free_body);
}

static void find_solved(usi_contacts *c) {
    for (int32_t i = 0; i < c->n_collision_body; i++)
        c->collide.collision_body[i].is_solved = false;
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const usi_island *s = island_of_touch(c, i);
        if (!s) continue;
        mark_solved(c, s, c->islands.grouped[i].collision_body_a);
        mark_solved(c, s, c->islands.grouped[i].collision_body_b);
    }
}

// Whether the solve moves a shape by more than half its thickness; and whether it takes it out of the box in
// which others were looked for: then the box is to be larger.
static bool is_swift_after(usi_contacts *c, usi_collision_body *k, bool *out_has_left) {
    const usi_island *s = island_of(c, k);
    if (!s) return false;
    const double h = c->model->step;
    const usi_free *b = &c->solve.body[s->first_body + k->body];
    const usi_v4 v = b->v + usi_v4_cross(b->w, k->p - s->O);
    const double speed = sqrt(usi_v4_dot(v, v)), spin = sqrt(usi_v4_dot(b->w, b->w));
    bool is_swift = false;
    for (int32_t g = k->first_geom; g < k->end_geom; g++) {
        const double way = h * (speed + spin * c->far[g]);
        if (!(way > LOOK * c->core[g][3])) continue;
        is_swift = true;
        if (way <= c->collide.grow[g]) continue;
        k->end_speed = fmax(k->end_speed, speed);
        k->end_spin = fmax(k->end_spin, spin);
        c->collide.has_ends = true;
        *out_has_left = true;
    }
    return is_swift;
}

static bool find_in_pair(usi_contacts *c, const usi_contact_state *now, int32_t a, int32_t b) {
    const usi_collision_body *A = &c->collide.collision_body[c->body_of_geom[a]],
                             *B = &c->collide.collision_body[c->body_of_geom[b]];
    if (!island_of(c, A) && !island_of(c, B)) return false;
    const end at_a = end_of(c, A), at_b = end_of(c, B);
    const double half = is_skin(c, a) ? c->core[b][3] : c->core[a][3];
    bool any = find_corners(c, now, a, &at_a, b, &at_b, half);
    if (is_skin(c, a)) any = find_core(c, a, &at_a, b, &at_b, true) || any;
    if (is_skin(c, b)) any = find_core(c, b, &at_b, a, &at_a, false) || any;
    return any;
}

void usi_forget_passed(usi_contacts *c) {
    c->collide.n_passed = 0;
    if (!c->collide.has_ends) return;
    c->collide.has_ends = false;
    for (int32_t i = 0; i < c->n_collision_body; i++)
        c->collide.collision_body[i].end_speed = c->collide.collision_body[i].end_spin = 0;
}

bool usi_find_passed(usi_contacts *c, const usi_contact_state *now) {
    if (!c->has_skin || c->is_trial || are_slow(c)) return false;
    find_solved(c);
    bool any = false, has_left = false;
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        usi_collision_body *k = &c->collide.collision_body[i];
        k->is_swift = is_swift_after(c, k, &has_left);
        any = any || k->is_swift;
    }
    if (!any) return false;
    any = has_left;
    for (int32_t i = 0; i < c->collide.n_near; i++) {
        const usi_broad_pair *pair = &c->collide.near[i];
        // In the order in which collide.c has them.
        const bool is_swapped = c->model->geom[pair->a].is_round && !c->model->geom[pair->b].is_round;
        const int32_t a = is_swapped ? pair->b : pair->a, b = is_swapped ? pair->a : pair->b;
        if (!is_skin(c, a) && !is_skin(c, b)) continue;
        if (!c->collide.collision_body[c->body_of_geom[a]].is_swift &&
            !c->collide.collision_body[c->body_of_geom[b]].is_swift)
            continue;
        if (c->model->geom[a].is_soil || c->model->geom[a].has_region) continue;
        any = find_in_pair(c, now, a, b) || any;
    }
    return any;
}
