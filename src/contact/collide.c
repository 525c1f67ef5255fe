// Which shapes touch: frames, boxes, pairs, points, and what each point remembers from the step before.
//
// Pairs come from boxes that are grown by some centimetres and looked at again only when a shape has left its
// own; which of those boxes really overlap is tested every step. So the list of candidates is the same
// whenever it was last made, and throwing it away changes nothing.
#include <string.h>

#include "contact/contact__parts.h"
#include "contact/residency.h"
#include "contact/soil.h"
#include "geom/contact_candidates.h"

// Contact is looked for this far outside each shape, m, plus what it moves in a step.
static const double BASE_MARGIN = 0.5e-3;
// A pair whose bodies have moved against each other by less than this since its points were found keeps the
// points. Where something round rolls, points that stay behind push it on: a wheel of radius r with its
// points turned back by an angle a goes as down a slope of a / 2.
static const double SAME_PLACE = 20e-6, SAME_TURN = 1e-4, SAME_TURN_ROUND = 1e-7;
// A point without a partner of the same feature takes over from one this near, m; more where things move
// fast.
static const double SAME_POINT = 2e-3;

static inline usi_v4 unit_lanes(void) { return (usi_v4){1, 1, 1, 0}; }

// ---------------------------------------------------------------- frames

static void set_axes(usi_collision_body *k) {
    us_mat3 R = us_quat_matrix(k->X_WN.q);
    k->X = usi_v4_set(R.m[0], R.m[3], R.m[6]);
    k->Y = usi_v4_set(R.m[1], R.m[4], R.m[7]);
    k->Z = usi_v4_set(R.m[2], R.m[5], R.m[8]);
}

static void set_frame(usi_collision_body *k, us_pose X) {
    k->X_WN = X;
    k->has_turn = true;
    k->p = usi_v4_from(X.p);
    set_axes(k);
}

static void place_free(const usi_contacts *c, usi_collision_body *k, const double *q) {
    const usi_node *n = &c->model->node[c->model->tree[k->tree].first];
    const double *a = q + n->q;
    k->has_turn = true;
    if (n->flags & USI_NODE_TURNED) {
        k->X_WN = us_pose_mul(usi_node_rest(n), (us_pose){{a[0], a[1], a[2], a[3]}, {a[4], a[5], a[6]}});
        k->p = usi_v4_from(k->X_WN.p);
        return;
    }
    *(usi_v4_unaligned *)&k->X_WN.q = *(const usi_v4_unaligned *)a;
    k->p = usi_v4_set(a[4], a[5], a[6]) + n->r;
    k->X_WN.p = usi_v4_vec3(k->p);
}

// The axes of a free body in its place, and its velocity, which the state has along these.
static void turn_free(const usi_contacts *c, usi_collision_body *k, const double *v) {
    const double *t = v + c->model->tree[k->tree].first;
    set_axes(k);
    k->w = usi_v4_columns(k->X, k->Y, k->Z, t);
    k->v = usi_v4_columns(k->X, k->Y, k->Z, t + 3);
}

static void frame_link(const usi_contacts *c, usi_collision_body *k) {
    const usi_link *l = &c->dyn->link[k->node];
    usi_v4 O = c->dyn->origin[k->tree];
    k->X = l->X;
    k->Y = l->Y;
    k->Z = l->Z;
    k->p = l->p + O;
    k->w = l->w;
    k->v = l->v + usi_v4_cross(l->w, l->p);
    k->has_turn = false;
}

// Most links are never looked at so closely that their turn is asked for.
static us_pose pose_of(const usi_collision_body *k) {
    if (k->has_turn) return k->X_WN;
    us_mat3 R = {{k->X[0], k->Y[0], k->Z[0], k->X[1], k->Y[1], k->Z[1], k->X[2], k->Y[2], k->Z[2]}};
    return (us_pose){us_quat_from_matrix(R), usi_v4_vec3(k->p)};
}
static inline void find_turn(usi_collision_body *k) {
    if (!k->has_turn) {
        k->X_WN = pose_of(k);
        k->has_turn = true;
    }
}

static inline bool is_still(const usi_contacts *c, int32_t tree) {
    return c->ghost && tree >= 0 && c->ghost[tree] == USI_GHOST_STILL;
}

static void find_frames(usi_contacts *c, const double *q, const double *v, bool want_still) {
    const us_model *m = c->model;
    if (c->has_joints) usi_all_angles(c->dyn, q);
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (!m->tree[t].is_free_body && (want_still || !is_still(c, t)))
            usi_kinematics_of(c->dyn, (usi_span){m->tree[t].first, m->tree[t].end}, q, v, NULL);
    }
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        usi_collision_body *k = &c->collide.collision_body[i];
        const usi_collision_body *fixed = &c->fixed_carrier[i];
        k->node = fixed->node;
        k->tree = fixed->tree;
        k->first_geom = fixed->first_geom;
        k->end_geom = fixed->end_geom;
        k->body = -1;
        if (!want_still && is_still(c, k->tree)) continue;
        if (k->node < 0) {
            set_frame(k, us_pose_identity());
            k->w = k->v = usi_v4_zero();
        } else if (m->tree[k->tree].is_free_body) {
            place_free(c, k, q);
            turn_free(c, k, v);
        } else {
            frame_link(c, k);
            if (m->n_loop > 0) find_turn(k);
        }
    }
}

// ---------------------------------------------------------------- boxes

us_pose usi_geom_pose(const usi_contacts *c, int32_t geom, const usi_collision_body *k) {
    const usi_geom *g = &c->model->geom[geom];
    if (k->node < 0) return g->X_NG;
    if (!c->is_plain[geom]) return us_pose_mul(pose_of(k), g->X_NG);
    return (us_pose){pose_of(k).q, usi_v4_vec3(k->p + usi_to_world(k, g->X_NG.p))};
}

// Where a shape's origin is, and its z-axis.
static inline usi_v4 centre_of(const usi_geom *g, const usi_collision_body *k) {
    return k->p + usi_to_world(k, g->X_NG.p);
}
static inline usi_v4 axis_of(const usi_contacts *c, int32_t geom, const usi_collision_body *k) {
    return c->is_plain[geom] ? k->Z : usi_to_world(k, usi_quat_z(c->model->geom[geom].X_NG.q));
}

// Half the box's sides around the shape's own origin, for the kinds that are symmetric about it; false for
// the others.
static inline bool half_box(const usi_contacts *c, int32_t geom, const usi_collision_body *k, usi_v4 *out) {
    const us_geom *g = &c->model->geom[geom].geom;
    usi_v4 e;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        e = usi_v4_zero();
        break;
    case US_GEOM_CAPSULE:
        e = usi_v4_abs(axis_of(c, geom, k)) * g->size[0];
        break;
    case US_GEOM_BOX: {
        usi_v4 X = k->X, Y = k->Y, Z = k->Z;
        if (!c->is_plain[geom]) {
            us_mat3 R = us_quat_matrix(c->model->geom[geom].X_NG.q);
            X = usi_to_world(k, us_vec3_make(R.m[0], R.m[3], R.m[6]));
            Y = usi_to_world(k, us_vec3_make(R.m[1], R.m[4], R.m[7]));
            Z = usi_to_world(k, us_vec3_make(R.m[2], R.m[5], R.m[8]));
        }
        e = usi_v4_abs(X) * g->size[0] + usi_v4_abs(Y) * g->size[1] + usi_v4_abs(Z) * g->size[2];
        break;
    }
    case US_GEOM_CYLINDER: {
        // Rounding may leave the square below 0.
        usi_v4 Z = axis_of(c, geom, k), square = unit_lanes() - Z * Z;
        e = usi_v4_abs(Z) * g->size[1] + usi_v4_sqrt((usi_v4)((usi_v4i)square & (square > 0))) * g->size[0];
        break;
    }
    default:
        return false;
    }
    *out = e + usi_v4_all(g->radius);
    return true;
}

// A box by its least and its greatest corner.
typedef struct corners {
    usi_v4 least, greatest;
} corners;

static inline corners box_of(const usi_contacts *c, int32_t geom, const usi_collision_body *k, double grow) {
    const usi_geom *g = &c->model->geom[geom];
    usi_v4 e, more = usi_v4_all(grow), centre = centre_of(g, k);
    if (!half_box(c, geom, k, &e)) {
        us_aabb b = us_geom_box(&g->geom, usi_geom_pose(c, geom, k));
        return (corners){usi_v4_from(b.min) - more, usi_v4_from(b.max) + more};
    }
    e += more;
    return (corners){centre - e, centre + e};
}

// As they lie in memory the least corner is in lanes 0 to 2 of a box's first four numbers, the greatest in
// lanes 1 to 3 of its last four.
_Static_assert(sizeof(us_aabb) == 6 * sizeof(double), "a box is two corners");
static inline corners corners_of(const us_aabb *b) {
    usi_v4 last = *(const usi_v4_unaligned *)&b->min.z;
    return (corners){*(const usi_v4_unaligned *)&b->min.x, __builtin_shufflevector(last, last, 1, 2, 3, 3)};
}
static inline bool boxes_overlap(const us_aabb *a, const us_aabb *b) {
    corners A = corners_of(a), B = corners_of(b);
    return !usi_v4_any_of_three((A.least > B.greatest) | (B.least > A.greatest));
}
static inline bool is_inside(corners a, corners b) {
    return !usi_v4_any_of_three((a.least < b.least) | (a.greatest > b.greatest));
}

static inline void set_speed(usi_collision_body *k) {
    k->speed = sqrt(usi_v4_dot(k->v, k->v));
    k->spin = sqrt(usi_v4_dot(k->w, k->w));
}

// Whether no shape of a link can have left its grown box: the link has moved and turned by less than those
// leave. Not asked where all are near others. Sets the speeds.
static inline bool has_stayed(const usi_contacts *c, usi_collision_body *k, const usi_stay *from) {
    if (from->room <= 0 || !usi_is_fast(c, USI_FAST_BOXES)) {
        set_speed(k);
        return false;
    }
    usi_v4 p = k->p - from->p, x = k->X - from->X, y = k->Y - from->Y, z = k->Z - from->Z;
    usi_v4 length = usi_v4_sqrt(usi_vec3x4_sums(k->v * k->v, k->w * k->w, p * p, x * x + y * y + z * z));
    k->speed = length[0];
    k->spin = length[1];
    double faster = k->speed - from->speed, spun = k->spin - from->spin,
           moved = length[2] + from->far * length[3];
    return moved + c->model->step * ((faster > 0 ? faster : 0) + (spun > 0 ? spun : 0) * from->far) <
           from->room;
}

// Soil that came up may lie as high above the ground as it was deep.
static double heap_over(const usi_contacts *c, int32_t geom) {
    int32_t bed = c->model->geom[geom].bed;
    return bed >= 0 ? c->model->bed[bed].depth : 0;
}

// The boxes of a link's shapes, or of those that are near others. False when one has left its grown box.
static inline bool find_boxes_of(usi_contacts *c, const usi_collision_body *k, bool only_near) {
    const us_model *m = c->model;
    bool ok = true;
    for (int32_t g = k->first_geom; g < k->end_geom; g++) {
        if (only_near && !c->collide.is_near[g]) continue;
        c->collide.grow[g] =
            BASE_MARGIN + m->geom[g].margin + (k->node < 0 ? 0 : m->step * (k->speed + k->spin * c->far[g]));
        corners box = box_of(c, g, k, c->collide.grow[g]);
        if (m->geom[g].bed >= 0) box.greatest += usi_v4_set(0, 0, heap_over(c, g));
        ok = ok && is_inside(box, corners_of(&c->collide.fat[g].box));
        c->collide.box[g] = (us_aabb){usi_v4_vec3(box.least), usi_v4_vec3(box.greatest)};
    }
    return ok;
}

// All of them when the pairs are to be found anew. Otherwise those of the world stand, and those of shapes
// that are near nothing are not asked for.
static void find_boxes(usi_contacts *c) {
    for (int32_t i = 0; i < c->n_collision_body && c->collide.is_fat_valid; i++) {
        usi_collision_body *k = &c->collide.collision_body[i];
        if (k->node < 0 || is_still(c, k->tree)) continue;
        c->collide.is_fat_valid = find_boxes_of(c, k, has_stayed(c, k, &c->collide.stay[i]));
    }
    for (int32_t i = 0; i < c->n_collision_body && !c->collide.is_fat_valid; i++) {
        if (is_still(c, c->collide.collision_body[i].tree)) continue;
        set_speed(&c->collide.collision_body[i]);
        find_boxes_of(c, &c->collide.collision_body[i], false);
    }
}

// How high the field reaches under a grown box, in the world; INFINITY where that is not asked: other shapes,
// fields that move or are turned. A shape whose box (see find_boxes) is above it has no point on the field.
static double find_ceiling(const usi_contacts *c, int32_t field, const us_aabb *fat) {
    const usi_geom *g = &c->model->geom[field];
    us_vec3 o = g->X_NG.p;
    if (g->geom.kind != US_GEOM_HEIGHT_FIELD || g->node >= 0 || !c->is_plain[field]) return INFINITY;
    double more = c->collide.grow[field] + g->geom.radius;
    return o.z + more + heap_over(c, field) +
           usi_field_top(g->geom.field, fat->min.x - o.x - more, fat->min.y - o.y - more,
                         fat->max.x - o.x + more, fat->max.y - o.y + more);
}

// A point that is nobody's neighbour, for shapes that take no part: each has its own, so that they do not
// crowd.
static void hide(usi_contacts *c, int32_t g) {
    us_vec3 p = us_vec3_make(1e-3 * g, 0, 0);
    c->collide.fat[g] = (usi_broad_box){.box = {p, p}, .body = c->model->geom[g].body + 1};
}

// By the lesser shape, then the greater one.
static inline int64_t key_of(int32_t lesser, int32_t greater) { return (int64_t)lesser << 32 | greater; }
static inline int64_t key_of_pair(const usi_broad_pair *p) { return key_of(p->a, p->b); }
static inline int64_t key_of_touch(const usi_touch *t) {
    return t->geom_a < t->geom_b ? key_of(t->geom_a, t->geom_b) : key_of(t->geom_b, t->geom_a);
}

// Grown boxes, and the pairs among them. Fast shapes grow more, so that the list lasts.
static us_status find_near(usi_contacts *c) {
    const us_model *m = c->model;
    if (c->collide.is_fat_valid) return usi_residency_is_due(c) ? usi_residency_ask(c) : US_OK;
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        const usi_collision_body *k = &c->collide.collision_body[i];
        // A nanometre less than there is, for rounding.
        usi_stay *stay = &c->collide.stay[i];
        *stay = (usi_stay){
            .X = k->X, .Y = k->Y, .Z = k->Z, .p = k->p, .speed = k->speed, .spin = k->spin, .room = INFINITY};
        for (int32_t g = k->first_geom; g < k->end_geom; g++) {
            c->collide.is_near[g] = false;
            if (is_still(c, k->tree)) {
                hide(c, g);
                continue;
            }
            double more = k->node < 0 ? 0
                                      : 0.05 * fmin(c->far[g], 0.2) +
                                            20 * (c->collide.grow[g] - m->geom[g].margin - BASE_MARGIN);
            stay->far = fmax(stay->far, c->far[g]);
            stay->room = fmin(stay->room, more - 1e-9);
            us_vec3 s = us_vec3_make(more, more, more);
            c->collide.fat[g].box =
                (us_aabb){us_vec3_sub(c->collide.box[g].min, s), us_vec3_add(c->collide.box[g].max, s)};
            c->collide.fat[g].group = m->geom[g].group;
            c->collide.fat[g].mask = m->geom[g].mask;
            c->collide.fat[g].body = m->geom[g].body + 1;
        }
    }
    us_status status = c->n_footing > 0 ? usi_residency_ask(c) : US_OK;
    if (status) return status;
    const usi_broad_pair *pairs;
    int64_t n;
    status = usi_broad_find(c->broad, c->collide.fat, c->n_geom, &pairs, &n, NULL);
    if (status) {
        c->error_count = n > INT32_MAX ? INT32_MAX : (int32_t)n;
        c->is_pair_error = true;
        return status;
    }
    // Pairs that were near before keep their directions. Both lists are sorted.
    usi_broad_pair *old = c->collide.near, *const old_end = old + c->collide.n_near;
    us_vec3 *old_apart = c->collide.apart;
    c->collide.near = c->collide.near_before;
    c->collide.near_before = old;
    c->collide.apart = c->collide.apart_before;
    c->collide.apart_before = old_apart;
    c->collide.n_near = 0;
    for (int64_t i = 0; i < n; i++) {
        // Shapes of one node never touch, whichever links they belong to.
        if (m->geom[pairs[i].a].node == m->geom[pairs[i].b].node) continue;
        const us_aabb *a = &c->collide.fat[pairs[i].a].box, *b = &c->collide.fat[pairs[i].b].box;
        if (b->min.z > find_ceiling(c, pairs[i].a, b) || a->min.z > find_ceiling(c, pairs[i].b, a)) continue;
        const int64_t key = key_of_pair(&pairs[i]);
        while (old < old_end && key_of_pair(old) < key) {
            old++;
            old_apart++;
        }
        bool was_near = old < old_end && key_of_pair(old) == key;
        c->collide.apart[c->collide.n_near] = was_near ? *old_apart : us_vec3_make(0, 0, 0);
        c->collide.near[c->collide.n_near++] = pairs[i];
        c->collide.is_near[pairs[i].a] = c->collide.is_near[pairs[i].b] = true;
    }
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        const usi_collision_body *k = &c->collide.collision_body[i];
        bool all_near = true;
        for (int32_t g = k->first_geom; g < k->end_geom; g++)
            all_near = all_near && c->collide.is_near[g];
        if (all_near) c->collide.stay[i].room = 0;
    }
    c->collide.is_fat_valid = true;
    return US_OK;
}

// ---------------------------------------------------------------- points

static us_pose relative(usi_collision_body *A, usi_collision_body *B) {
    find_turn(B);
    if (A->node < 0) return B->X_WN;
    find_turn(A);
    return (us_pose){us_quat_mul(us_quat_conj(A->X_WN.q), B->X_WN.q), usi_to_local(A, B->p - A->p)};
}

static inline bool is_same_place(const us_pose *a, const us_pose *b, double same_turn) {
    us_vec3 d = us_vec3_sub(a->p, b->p);
    if (us_vec3_dot(d, d) > SAME_PLACE * SAME_PLACE) return false;
    // Half the angle, for small ones. Where a quaternion has changed its sign the points are found anew,
    // which is never wrong.
    usi_v4 r = *(const usi_v4_unaligned *)&a->q - *(const usi_v4_unaligned *)&b->q;
    return usi_v4_dot(r, r) <= 0.25 * same_turn * same_turn;
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
    if (m->pair[t->material * m->n_material + m->geom[t->geom_b].material].model != USI_MODEL_COMPLIANT)
        return true;
    const double closing = closing_at(A, B, p);
    return p->gap - BASE_MARGIN <= 2 * m->step * (c->fall_speed + (closing > 0 ? closing : 0));
}

// The points of the last step, where they are now.
void usi_reuse_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t) {
    const usi_collision_body *A = &c->collide.collision_body[c->carrier_of[t->geom_a]],
                             *B = &c->collide.collision_body[c->carrier_of[t->geom_b]];
    const double margin = c->model->geom[t->geom_a].margin + c->model->geom[t->geom_b].margin;
    const bool is_soil = c->model->material[t->material].is_soil;
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
        p->may_press = p->gap <= BASE_MARGIN || is_soil || may_press(c, t, A, B, p);
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
        double least = reach * reach;
        int32_t best = -1;
        for (int32_t j = 0; j < old->n; j++) {
            us_vec3 d = us_vec3_sub(now->anchor[old->first + j].p_A, p);
            double square = us_vec3_dot(d, d);
            if (!(taken >> j & 1) && square < least) {
                least = square;
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
    p->may_press = p->gap <= BASE_MARGIN || may_press(c, t, A, B, p);
    c->collide.may_press[c->collide.n_touch] |= p->may_press;
    t->n++;
}

static void find_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *old, usi_touch *t) {
    const us_model *m = c->model;
    const usi_geom *ga = &m->geom[t->geom_a], *gb = &m->geom[t->geom_b];
    usi_collision_body *A = &c->collide.collision_body[c->carrier_of[t->geom_a]],
                       *B = &c->collide.collision_body[c->carrier_of[t->geom_b]];
    const double reach = c->collide.grow[t->geom_a] + c->collide.grow[t->geom_b],
                 margin = ga->margin + gb->margin;
    const bool is_spine = usi_is_fast(c, USI_FAST_POSES) && usi_has_core_segment(gb->geom.kind);
    find_turn(A);
    const us_pose X_A = usi_geom_pose(c, t->geom_a, A);
    // What lies on a plane or the ground needs no pose of its own, and comes out the other way round.
    if (is_spine && ga->geom.kind == US_GEOM_HALF_SPACE) {
        usi_plane_contact f;
        const usi_v4 n = usi_v4_from(usi_quat_z(X_A.q)), at = usi_v4_from(X_A.p) + ga->geom.radius * n;
        if (usi_contact_on_plane(&gb->geom, centre_of(gb, B), axis_of(c, t->geom_b, B), n, at, reach, &f)) {
            for (int32_t i = 0; i < f.n; i++)
                add_point(c, t, A, B, -n, f.p[i] - f.gap[i] * n, f.p[i], f.gap[i] - margin, f.feature[i]);
            if (old && t->n > 0) match_points(c, now, old, t, A);
            return;
        }
    }
    us_manifold f;
    f.n = 0;
    const bool is_wheel = is_spine && ga->geom.kind == US_GEOM_HEIGHT_FIELD;
    const bool is_turned =
        is_wheel && usi_contact_terrain(&gb->geom, usi_v4_vec3(centre_of(gb, B)),
                                        usi_v4_vec3(axis_of(c, t->geom_b, B)), &ga->geom, &X_A, reach, &f);
    if (!is_turned) {
        find_turn(B);
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
    if (old && t->n > 0) match_points(c, now, old, t, A);
}

// How far a shape reaches along a direction (a unit vector of the world) from its node's origin.
static double reach_along(const usi_contacts *c, int32_t geom, const usi_collision_body *k, usi_v4 d) {
    const usi_geom *g = &c->model->geom[geom];
    const double *size = g->geom.size;
    if (c->is_plain[geom] && g->geom.kind == US_GEOM_CAPSULE)
        return fabs(usi_v4_dot(k->Z, d)) * size[0] + g->geom.radius +
               usi_v4_dot(usi_to_world(k, g->X_NG.p), d);
    us_vec3 local = usi_to_local(k, d),
            in_G = c->is_plain[geom] ? local : us_quat_rotate(us_quat_conj(g->X_NG.q), local);
    double reach = g->geom.kind == US_GEOM_BOX ? fabs(in_G.x) * size[0] + fabs(in_G.y) * size[1] +
                                                     fabs(in_G.z) * size[2] + g->geom.radius
                                               : us_vec3_dot(in_G, us_geom_support(&g->geom, in_G));
    return reach + us_vec3_dot(local, g->X_NG.p);
}

// Whether the direction in which the pair was last seen apart still shows them so: much cheaper than finding
// it anew.
static bool is_apart(const usi_contacts *c, const usi_touch *t, us_vec3 direction_A) {
    if (direction_A.x == 0 && direction_A.y == 0 && direction_A.z == 0) return false;
    const usi_collision_body *A = &c->collide.collision_body[c->carrier_of[t->geom_a]],
                             *B = &c->collide.collision_body[c->carrier_of[t->geom_b]];
    usi_v4 d = usi_to_world(A, direction_A);
    double between =
        usi_v4_dot(d, A->p - B->p) - reach_along(c, t->geom_a, A, -d) - reach_along(c, t->geom_b, B, d);
    // The nanometre is for rounding: what is dropped here would have had no point.
    return between > c->collide.grow[t->geom_a] + c->collide.grow[t->geom_b] + 1e-9;
}

static bool has_support(const usi_geom *g) { return g->geom.kind <= US_GEOM_CONVEX; }

static us_vec3 find_apart(const usi_contacts *c, const usi_touch *t) {
    const usi_geom *ga = &c->model->geom[t->geom_a], *gb = &c->model->geom[t->geom_b];
    const usi_collision_body *A = &c->collide.collision_body[c->carrier_of[t->geom_a]],
                             *B = &c->collide.collision_body[c->carrier_of[t->geom_b]];
    us_gap gap;
    if (!has_support(ga) || !has_support(gb) ||
        us_geom_distance(&ga->geom, usi_geom_pose(c, t->geom_a, A), &gb->geom, usi_geom_pose(c, t->geom_b, B),
                         &gap))
        return us_vec3_make(0, 0, 0);
    return usi_to_local(A, usi_v4_from(gap.normal));
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

// The points of all near pairs.
static void touch_pairs(usi_contacts *c, const usi_contact_state *now) {
    const us_model *m = c->model;
    c->collide.n_touch = c->collide.n_point = c->collide.n_soil_contact = c->error_count = 0;
    for (int32_t i = 0; i < m->n_loose; i++)
        c->collide.overlap[i] = 0;
    const usi_touch *old = now->touch, *end = now->touch + now->n_touch[0];
    for (int32_t i = 0; i < c->collide.n_near; i++) {
        const usi_broad_pair *pair = &c->collide.near[i];
        if (c->lone && m->geom[pair->a].tree + 1 != c->lone && m->geom[pair->b].tree + 1 != c->lone) continue;
        if (!boxes_overlap(&c->collide.box[pair->a], &c->collide.box[pair->b])) continue;
        // Both are sorted.
        const int64_t key = key_of_pair(pair);
        while (old < end && key_of_touch(old) < key)
            old++;
        const usi_touch *before = old < end && key_of_touch(old) == key ? old : NULL;
        bool is_swapped = m->geom[pair->a].is_round && !m->geom[pair->b].is_round;
        usi_touch *t = &c->collide.touch_now[c->collide.n_touch];
        t->geom_a = is_swapped ? pair->b : pair->a;
        t->geom_b = is_swapped ? pair->a : pair->b;
        t->first = c->collide.n_point;
        t->n = 0;
        t->material = m->geom[t->geom_a].material;
        t->reserved = 0;
        c->collide.may_press[c->collide.n_touch] = false;
        if (m->n_loose > 0 && is_held_back(c, now, t)) continue;
        usi_collision_body *A = &c->collide.collision_body[c->carrier_of[t->geom_a]],
                           *B = &c->collide.collision_body[c->carrier_of[t->geom_b]];
        // The world's shapes come first: the ground is A.
        if (m->geom[t->geom_a].is_soil || m->geom[t->geom_a].has_region) {
            t->material = usi_ground_material(c, now, t->geom_a, t->geom_b);
            if (m->material[t->material].is_soil) {
                t->X_AB = relative(A, B);
                bool is_same = before && before->material == t->material &&
                               is_same_place(&before->X_AB, &t->X_AB, SAME_TURN);
                if (is_same) t->X_AB = before->X_AB;
                usi_soil_points(c, now, before && before->material == t->material ? before : NULL, t,
                                is_same);
                c->collide.n_touch += t->n > 0;
                continue;
            }
            if (before && before->material != t->material) before = NULL;
        }
        if (before) {
            us_pose X_AB = relative(A, B);
            if (is_same_place(&before->X_AB, &X_AB,
                              m->geom[t->geom_b].is_round ? SAME_TURN_ROUND : SAME_TURN)) {
                t->X_AB = before->X_AB;
                usi_reuse_points(c, now, before, t);
                c->collide.n_touch += t->n > 0;
                continue;
            }
            t->X_AB = X_AB;
        } else if (usi_is_fast(c, USI_FAST_APART) && is_apart(c, t, c->collide.apart[i])) {
            continue;
        }
        find_points(c, now, before, t);
        if (t->n == 0) {
            c->collide.apart[i] = find_apart(c, t);
            continue;
        }
        if (!before) t->X_AB = relative(A, B);
        c->collide.n_touch++;
    }
}

us_status usi_collide(usi_contacts *c, const usi_contact_state *now, const double *q, const double *v) {
    c->is_residency_error = c->is_pair_error = false;
    find_frames(c, q, v, false);
    find_boxes(c);
    us_status status = find_near(c);
    if (status) return status;
    touch_pairs(c, now);
    return c->error_count > c->max_contact ? US_ERR_LIMIT : US_OK;
}

// ---------------------------------------------------------------- ghosts

void usi_contacts_reach(usi_contacts *c, const double *q, const double *v, double lead, double more,
                        us_aabb *out_box) {
    const us_vec3 least = us_vec3_make(-INFINITY, -INFINITY, -INFINITY),
                  most = us_vec3_make(INFINITY, INFINITY, INFINITY);
    for (int32_t t = 0; t < c->model->n_tree; t++)
        out_box[t] = (us_aabb){most, least};
    find_frames(c, q, v, true);
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        const usi_collision_body *k = &c->collide.collision_body[i];
        if (k->node < 0) continue;
        us_aabb *all = &out_box[k->tree];
        double speed = sqrt(usi_v4_dot(k->v, k->v)), spin = sqrt(usi_v4_dot(k->w, k->w));
        for (int32_t g = k->first_geom; g < k->end_geom; g++) {
            corners b = box_of(c, g, k, more + c->model->geom[g].margin + lead * (speed + spin * c->far[g]));
            all->min = us_vec3_make(fmin(all->min.x, b.least[0]), fmin(all->min.y, b.least[1]),
                                    fmin(all->min.z, b.least[2]));
            all->max = us_vec3_make(fmax(all->max.x, b.greatest[0]), fmax(all->max.y, b.greatest[1]),
                                    fmax(all->max.z, b.greatest[2]));
        }
    }
}
