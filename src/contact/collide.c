// Which shapes touch: points, and what each point remembers from the step before.
#include <string.h>

#include "contact/contact__collide.h"
#include "contact/soil.h"

// A pair whose bodies have moved against each other by less than this since its points were found keeps the
// points. Where something round rolls, points that stay behind push it on: a wheel of radius r with its
// points turned back by an angle a goes as down a slope of a / 2.
static const double SAME_PLACE = 20e-6, SAME_ANGLE = 1e-4, SAME_ANGLE_ROUND = 1e-7;
// The same for pairs with as many points as there may be: others were left out, and what rocks may come down
// on one of them.
static const double SAME_PLACE_FULL = 1e-7, SAME_ANGLE_FULL = 1e-7;
// A point without a partner of the same feature takes over from one this near, m; more where things move
// fast.
static const double SAME_POINT = 2e-3;

static us_pose relative(usi_collision_body *A, usi_collision_body *B) {
    usi_find_rotation(B);
    if (A->node < 0) return B->X_WN;
    usi_find_rotation(A);
    return (us_pose){us_quat_mul(us_quat_conj(A->X_WN.q), B->X_WN.q), usi_to_local(A, B->p - A->p)};
}

static inline bool is_same_place(const us_pose *a, const us_pose *b, double same_place, double same_angle) {
    us_vec3 d = us_vec3_sub(a->p, b->p);
    if (us_vec3_dot(d, d) > same_place * same_place) return false;
    // Half the angle, for small ones. Where a quaternion has changed its sign the points are found anew,
    // which is never wrong.
    usi_v4 r = *(const usi_v4_unaligned *)&a->q - *(const usi_v4_unaligned *)&b->q;
    return usi_v4_dot(r, r) <= 0.25 * same_angle * same_angle;
}

usi_point_now *usi_next_point(usi_contacts *c) {
    c->error_count++;
    return c->collide.n_point < c->max_contact ? &c->collide.point[c->collide.n_point++] : NULL;
}

// How fast the two come together at a point, m/s.
static inline double closing_at(const usi_collision_body *A, const usi_collision_body *B,
                                const usi_point_now *p) {
    return usi_v4_dot(B->v - A->v + usi_v4_cross2(B->w, p->p - B->p, A->w, A->p - p->p), p->n);
}

// Whether a point with a gap of more than the margin may press within the step: its gap is no more than that
// and twice what its velocity and gravity close. Models of others may act across a gap. The solve begins
// without the others, see island.c.
static bool may_press(const usi_contacts *c, const usi_touch *t, const usi_collision_body *A,
                      const usi_collision_body *B, const usi_point_now *p) {
    const us_model *m = c->model;
    if (usi_firm_model(c, t->material * m->n_material + m->geom[t->geom_b].material) != USI_MODEL_COMPLIANT)
        return true;
    const double closing = closing_at(A, B, p);
    return p->gap - USI_BASE_MARGIN <= 2 * m->step * (c->fall_speed + (closing > 0 ? closing : 0));
}

// The points of the last step, where they are now.
void usi_reuse_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t) {
    const usi_collision_body *A = &c->collide.collision_body[c->body_of_geom[t->geom_a]],
                             *B = &c->collide.collision_body[c->body_of_geom[t->geom_b]];
    const double margin = c->model->geom[t->geom_a].margin + c->model->geom[t->geom_b].margin;
    const bool is_soil = usi_soil_acts(c, t->material, c->model->geom[t->geom_b].material);
    const int32_t room = c->max_contact - c->collide.n_point, n = old->n < room ? old->n : room;
    usi_point_now *p = &c->collide.point[c->collide.n_point];
    const usi_anchor *a = &now->anchor[old->first];
    bool any = false;
    for (int32_t i = 0; i < n; i++, a++, p++) {
        p->n = usi_from_A(A, &a->normal);
        p->p_A = A->p + usi_from_A(A, &a->p_A);
        p->p_B = B->p + usi_to_world(B, a->p_B);
        p->p = 0.5 * (p->p_A + p->p_B);
        p->gap = usi_v4_dot(p->n, p->p_A - p->p_B) - margin;
        p->feature = a->feature;
        p->old = old->first + i;
        p->is_same = true;
        p->soil_contact = -1;
        p->touch = c->collide.n_touch;
        p->may_press = p->gap <= USI_BASE_MARGIN || is_soil || may_press(c, t, A, B, p);
        any |= p->may_press;
    }
    t->n += n;
    c->collide.n_point += n;
    c->error_count += old->n;
    c->collide.may_press[c->collide.n_touch] = any;
}

// Which of the last step's points this one goes on from: the same feature, or else the nearest that nobody
// else has taken.
static void match_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t,
                         const usi_collision_body *A) {
    // Mostly the same ones in the same order.
    int32_t n_same = 0;
    while (n_same < t->n && n_same < old->n &&
           now->anchor[old->first + n_same].feature == c->collide.point[t->first + n_same].feature) {
        c->collide.point[t->first + n_same].old = old->first + n_same;
        n_same++;
    }
    if (n_same == t->n) return;
    uint32_t taken = (1u << n_same) - 1;
    for (int32_t i = t->first + n_same; i < t->first + t->n; i++) {
        for (int32_t j = 0; j < old->n && c->collide.point[i].old < 0; j++) {
            if ((taken >> j & 1) || now->anchor[old->first + j].feature != c->collide.point[i].feature)
                continue;
            c->collide.point[i].old = old->first + j;
            taken |= 1u << j;
        }
    }
    double reach = SAME_POINT + 2 * (c->collide.grow[t->geom_a] + c->collide.grow[t->geom_b]);
    for (int32_t i = t->first; i < t->first + t->n; i++) {
        if (c->collide.point[i].old >= 0) continue;
        us_vec3 p = usi_to_local(A, c->collide.point[i].p_A - A->p);
        double min = reach * reach;
        int32_t best = -1;
        for (int32_t j = 0; j < old->n; j++) {
            us_vec3 d = us_vec3_sub(now->anchor[old->first + j].p_A, p);
            double square = us_vec3_dot(d, d);
            if (!(taken >> j & 1) && square < min) {
                min = square;
                best = j;
            }
        }
        if (best < 0) continue;
        c->collide.point[i].old = old->first + best;
        taken |= 1u << best;
    }
}

static inline void add_point(usi_contacts *c, usi_touch *t, const usi_collision_body *A,
                             const usi_collision_body *B, usi_v4 n, usi_v4 p_A, usi_v4 p_B, double gap,
                             uint64_t feature) {
    usi_point_now *p = usi_next_point(c);
    if (!p) return;
    p->n = n;
    p->p_A = p_A;
    p->p_B = p_B;
    p->p = 0.5 * (p_A + p_B);
    p->gap = gap;
    p->feature = feature;
    p->old = p->soil_contact = -1;
    p->is_same = false;
    p->touch = c->collide.n_touch;
    p->may_press = p->gap <= USI_BASE_MARGIN || may_press(c, t, A, B, p);
    c->collide.may_press[c->collide.n_touch] |= p->may_press;
    t->n++;
}

static void add_core(usi_contacts *c, usi_touch *t, const usi_collision_body *A,
                     const usi_collision_body *B) {
    usi_core_hit s;
    if (c->model->geom[t->geom_a].geom.kind == US_GEOM_MESH && usi_is_swift(c, t->geom_b) &&
        usi_swept_find(c, t->geom_a, A, t->geom_b, B, &s))
        add_point(c, t, A, B, -s.normal, s.on_core - s.gap * s.normal, s.on_core, s.gap, USI_CORE_FEATURE);
    if (c->model->geom[t->geom_b].geom.kind == US_GEOM_MESH && usi_is_swift(c, t->geom_a) &&
        usi_swept_find(c, t->geom_b, B, t->geom_a, A, &s))
        add_point(c, t, A, B, s.normal, s.on_core, s.on_core - s.gap * s.normal, s.gap, USI_CORE_FEATURE + 1);
}

// Points through which an earlier solve of this step went.
static void add_passed(usi_contacts *c, usi_touch *t, const usi_collision_body *A,
                       const usi_collision_body *B) {
    for (int32_t i = 0; i < c->collide.n_passed; i++) {
        const usi_passed *x = &c->collide.passed[i];
        if (x->geom_a != t->geom_a || x->geom_b != t->geom_b) continue;
        add_point(c, t, A, B, usi_from_A(A, &x->normal), A->p + usi_to_world(A, x->p_A),
                  B->p + usi_to_world(B, x->p_B), x->gap, USI_PASSED_FEATURE + (uint64_t)i);
    }
}

static void find_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t) {
    const us_model *m = c->model;
    const usi_geom *ga = &m->geom[t->geom_a], *gb = &m->geom[t->geom_b];
    usi_collision_body *A = &c->collide.collision_body[c->body_of_geom[t->geom_a]],
                       *B = &c->collide.collision_body[c->body_of_geom[t->geom_b]];
    const double reach = c->collide.grow[t->geom_a] + c->collide.grow[t->geom_b],
                 margin = ga->margin + gb->margin;
    const bool is_spine = usi_is_fast(c, USI_FAST_POSES) && usi_has_core_segment(gb->geom.kind);
    usi_find_rotation(A);
    const us_pose X_A = usi_geom_pose(c, t->geom_a, A);
    // What lies on a plane or the ground needs no pose of its own, and comes out the other way round.
    if (is_spine && ga->geom.kind == US_GEOM_HALF_SPACE) {
        usi_plane_contact f;
        const usi_v4 n = usi_v4_from(usi_quat_z(X_A.q)), at = usi_v4_from(X_A.p) + ga->geom.radius * n;
        if (usi_contact_on_plane(&gb->geom, usi_geom_centre(gb, B), usi_geom_axis(c, t->geom_b, B), n, at,
                                 reach, &f)) {
            for (int32_t i = 0; i < f.n; i++)
                add_point(c, t, A, B, -n, f.p[i] - f.gap[i] * n, f.p[i], f.gap[i] - margin, f.feature[i]);
            if (old && t->n > 0) match_points(c, now, old, t, A);
            return;
        }
    }
    us_manifold f;
    f.n = 0;
    const bool is_wheel = is_spine && ga->geom.kind == US_GEOM_HEIGHT_FIELD;
    const bool is_turned = is_wheel && usi_contact_terrain(&gb->geom, usi_v4_vec3(usi_geom_centre(gb, B)),
                                                           usi_v4_vec3(usi_geom_axis(c, t->geom_b, B)),
                                                           &ga->geom, &X_A, reach, &f);
    if (!is_turned) {
        usi_find_rotation(B);
        const us_pose X_B = usi_geom_pose(c, t->geom_b, B);
        // The closed forms are asked without copies of the poses, which would wait until these have left the
        // store queue.
        bool is_found = !is_wheel && usi_contact_closed_form(&ga->geom, &X_A, &gb->geom, &X_B, reach, &f);
        if (!is_found && us_geom_contact(&ga->geom, X_A, &gb->geom, X_B, reach, &f)) return;
    }
    for (int32_t i = 0; i < f.n; i++) {
        usi_v4 n = usi_v4_from(f.normal[i]), p_A = usi_v4_from(f.p_A[i]), p_B = usi_v4_from(f.p_B[i]);
        add_point(c, t, A, B, is_turned ? -n : n, is_turned ? p_B : p_A, is_turned ? p_A : p_B,
                  f.gap[i] - margin, f.feature[i]);
    }
    add_core(c, t, A, B);
    if (c->collide.n_passed > 0) add_passed(c, t, A, B);
    if (old && t->n > 0) match_points(c, now, old, t, A);
}

// What a broken joint held overlaps at its hinge, and does not collide before it was apart once.
static bool is_held_back(usi_contacts *c, const usi_contact_state *now, usi_touch *t) {
    const us_model *m = c->model;
    int32_t at = usi_exclusion_find(m->loose, m->n_loose, m->geom[t->geom_a].body, m->geom[t->geom_b].body);
    if (at < 0 || now->parted[at]) return false;
    const int32_t n_point = c->collide.n_point, n_counted = c->error_count;
    if (!c->collide.overlap[at]) find_points(c, now, NULL, t);
    for (int32_t i = t->first; i < t->first + t->n; i++)
        c->collide.overlap[at] |= c->collide.point[i].gap < 0;
    // More points than there is room for: they do overlap.
    if (c->error_count > c->max_contact) c->collide.overlap[at] = 1;
    c->collide.n_point = n_point;
    c->error_count = n_counted;
    return true;
}

// Points of a shape in ground that is soil there. False where the ground is firm: other points follow, and
// what was kept from `before` goes when the material is another one.
static bool touch_soil(usi_contacts *c, const usi_contact_state *now, const usi_touch **before, usi_touch *t,
                       usi_collision_body *A, usi_collision_body *B) {
    const us_model *m = c->model;
    const usi_touch *old = *before;
    t->material = usi_ground_material(c, now, t->geom_a, t->geom_b);
    if (!usi_soil_acts(c, t->material, m->geom[t->geom_b].material)) {
        if (old && old->material != t->material) *before = NULL;
        return false;
    }
    t->X_AB = relative(A, B);
    bool is_same =
        old && old->material == t->material && is_same_place(&old->X_AB, &t->X_AB, SAME_PLACE, SAME_ANGLE);
    if (is_same) t->X_AB = old->X_AB;
    const bool was_soil = old && usi_soil_acts(c, old->material, m->geom[t->geom_b].material);
    usi_soil_points(c, now, was_soil ? old : NULL, t, is_same);
    c->collide.n_touch += t->n > 0;
    return true;
}

// The points of near pairs.
void usi_touch_pairs(usi_contacts *c, const usi_contact_state *now, usi_span pairs) {
    const us_model *m = c->model;
    c->collide.n_touch = c->collide.n_point = c->collide.n_soil_contact = c->error_count = 0;
    c->collide.has_overlap = false;
    for (int32_t i = 0; i < m->n_loose; i++)
        c->collide.overlap[i] = 0;
    const usi_touch *old = now->touch, *end = now->touch + now->n_touch[0];
    for (int32_t i = pairs.first; i < pairs.end; i++) {
        const usi_broad_pair *pair = &c->collide.near[i];
        if (c->only_tree && m->geom[pair->a].tree + 1 != c->only_tree &&
            m->geom[pair->b].tree + 1 != c->only_tree)
            continue;
        if (!usi_boxes_overlap(&c->collide.box[pair->a], &c->collide.box[pair->b])) continue;
        // Both are sorted.
        const int64_t key = usi_pair_key(pair);
        while (old < end && usi_touch_key(old) < key)
            old++;
        const usi_touch *before = old < end && usi_touch_key(old) == key ? old : NULL;
        bool is_swapped = m->geom[pair->a].is_round && !m->geom[pair->b].is_round;
        usi_touch *t = &c->collide.touch_now[c->collide.n_touch];
        t->geom_a = is_swapped ? pair->b : pair->a;
        t->geom_b = is_swapped ? pair->a : pair->b;
        t->first = c->collide.n_point;
        t->n = 0;
        t->material = m->geom[t->geom_a].material;
        t->overlap = 0;
        c->collide.may_press[c->collide.n_touch] = false;
        if (m->n_loose > 0 && is_held_back(c, now, t)) continue;
        usi_collision_body *A = &c->collide.collision_body[c->body_of_geom[t->geom_a]],
                           *B = &c->collide.collision_body[c->body_of_geom[t->geom_b]];
        // The world's shapes come first: the ground is A.
        if ((m->geom[t->geom_a].is_soil || m->geom[t->geom_a].has_region) &&
            touch_soil(c, now, &before, t, A, B))
            continue;
        if (before) {
            us_pose X_AB = relative(A, B);
            const bool is_full = before->n >= US_MANIFOLD_POINTS;
            if (is_same_place(&before->X_AB, &X_AB, is_full ? SAME_PLACE_FULL : SAME_PLACE,
                              is_full                       ? SAME_ANGLE_FULL
                              : m->geom[t->geom_b].is_round ? SAME_ANGLE_ROUND
                                                            : SAME_ANGLE)) {
                t->X_AB = before->X_AB;
                usi_reuse_points(c, now, before, t);
                t->overlap = before->overlap;
                if (t->overlap > 0) usi_overlap_find(c, now, t, false);
                c->collide.n_touch += t->n > 0;
                continue;
            }
            t->X_AB = X_AB;
            t->overlap = before->overlap;
        } else if (usi_is_fast(c, USI_FAST_APART) && usi_is_apart(c, t, c->collide.apart[i])) {
            continue;
        }
        find_points(c, now, before, t);
        if (t->n == 0) {
            c->collide.apart[i] = usi_find_apart(c, t);
            continue;
        }
        if (!before) t->X_AB = relative(A, B);
        if (!before || t->overlap > 0) usi_overlap_find(c, now, t, !before);
        c->collide.n_touch++;
    }
}

us_status usi_collide(usi_contacts *c, const usi_contact_state *now, const double *q, const double *v) {
    c->is_residency_error = c->is_pair_error = false;
    c->pair_model = now->pair_model;
    usi_find_frames(c, q, v, false);
    usi_find_boxes(c);
    if (!c->collide.is_fat_valid || c->n_paged > 0) {
        us_status status = usi_find_near(c);
        if (status) return status;
    }
    if (usi_can_share_pairs(c))
        usi_shared_pairs(c, now);
    else
        usi_touch_pairs(c, now, (usi_span){0, c->collide.n_near});
    return c->error_count > c->max_contact ? US_ERR_LIMIT : US_OK;
}
