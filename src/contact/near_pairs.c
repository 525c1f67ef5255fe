// Boxes around shapes, and the pairs that are near each other.
//
// Pairs come from boxes that are grown by some centimetres and looked at again only when a shape has left its
// own; which of those boxes really overlap is tested every step. So the list of candidates is the same
// whenever it was last made, and throwing it away changes nothing.
#include "contact/contact__collide.h"
#include "contact/residency.h"
#include "soil/deformable.h"

static inline usi_v4 unit_lanes(void) { return (usi_v4){1, 1, 1, 0}; }

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
        e = usi_v4_abs(usi_geom_axis(c, geom, k)) * g->size[0];
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
        usi_v4 Z = usi_geom_axis(c, geom, k), square = unit_lanes() - Z * Z;
        e = usi_v4_abs(Z) * g->size[1] + usi_v4_sqrt((usi_v4)((usi_v4i)square & (square > 0))) * g->size[0];
        break;
    }
    default:
        return false;
    }
    *out = e + usi_v4_all(g->radius);
    return true;
}

static inline usi_corners box_of(const usi_contacts *c, int32_t geom, const usi_collision_body *k,
                                 double grow) {
    const usi_geom *g = &c->model->geom[geom];
    usi_v4 e, more = usi_v4_all(grow), centre = usi_geom_centre(g, k);
    if (!half_box(c, geom, k, &e)) {
        us_aabb b = us_geom_box(&g->geom, usi_geom_pose(c, geom, k));
        return (usi_corners){usi_v4_from(b.min) - more, usi_v4_from(b.max) + more};
    }
    e += more;
    return (usi_corners){centre - e, centre + e};
}

static inline bool is_inside(usi_corners a, usi_corners b) {
    return !usi_v4_any_of_three((a.min < b.min) | (a.max > b.max));
}

static inline void set_speed(usi_collision_body *k) {
    k->speed = sqrt(usi_v4_dot(k->v, k->v));
    k->spin = sqrt(usi_v4_dot(k->w, k->w));
}

// Whether no shape of a link can have left its grown box: the link has moved and turned by less than those
// leave. Not asked where all are near others. Sets the speeds.
static inline bool has_stayed(const usi_contacts *c, usi_collision_body *k, const usi_stay *from) {
    if (from->room <= 0 || k->end_speed > 0 || !usi_is_fast(c, USI_FAST_BOXES)) {
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

// How high soil may lie above the ground of a shape.
static double max_rise(const usi_contacts *c, int32_t geom) {
    return c->model->geom[geom].patch >= 0 ? c->collide.rise : 0;
}

// Where soil has come up higher than the pairs were found for, they are found anew, for twice that.
static void follow_rise(usi_contacts *c) {
    const double least = 0.01;  // m
    double high = 0;
    for (int32_t i = 0; c->patch && i < c->model->n_deformable; i++)
        high = fmax(high, USI_DEFORMABLE_UNIT * c->patch[i].highest);
    if (high <= c->collide.rise) return;
    c->collide.rise = fmax(2 * high, least);
    c->collide.is_fat_valid = false;
}

// A field of soil reaches down without end: what has sunk below its lowest point is still in it.
static usi_corners open_below(const usi_contacts *c, int32_t geom, const usi_collision_body *k,
                              usi_corners box) {
    if (c->model->geom[geom].geom.kind != US_GEOM_HEIGHT_FIELD) return box;
    const us_vec3 up = usi_quat_z(usi_geom_pose(c, geom, k).q);
    const double along[3] = {up.x, up.y, up.z};
    for (int i = 0; i < 3; i++) {
        if (along[i] > 0) box.min[i] = -INFINITY;
        if (along[i] < 0) box.max[i] = INFINITY;
    }
    return box;
}

// What a shape that reaches so far may move in a second, m.
static inline double way_of(const usi_collision_body *k, double far) {
    const double way = k->speed + k->spin * far, end = k->end_speed + k->end_spin * far;
    return end > way ? end : way;
}

// The boxes of a link's shapes, or of those that are near others. False when one has left its grown box.
static inline bool find_boxes_of(usi_contacts *c, const usi_collision_body *k, bool only_near) {
    const us_model *m = c->model;
    const bool is_world = k->node < 0;
    const double step = m->step;
    bool ok = true;
    for (int32_t g = k->first_geom, end = k->end_geom; g < end; g++) {
        if (only_near && !c->collide.is_near[g]) continue;
        const usi_geom *geom = &m->geom[g];
        const double grow = USI_BASE_MARGIN + geom->margin + (is_world ? 0 : step * way_of(k, c->far[g]));
        c->collide.grow[g] = grow;
        usi_corners box = box_of(c, g, k, grow + geom->tread);
        if (is_world) {
            if (geom->patch >= 0) box.max += usi_v4_set(0, 0, max_rise(c, g));
            if (geom->is_soil || geom->has_region) box = open_below(c, g, k, box);
        }
        ok = ok & is_inside(box, usi_corners_of(&c->collide.fat[g].box));
        c->collide.box[g] = (us_aabb){usi_v4_vec3(box.min), usi_v4_vec3(box.max)};
    }
    return ok;
}

// All of them when the pairs are to be found anew. Otherwise those of the world stand, and those of shapes
// that are near nothing are not asked for.
void usi_find_boxes(usi_contacts *c) {
    follow_rise(c);
    for (int32_t i = 0; i < c->n_collision_body && c->collide.is_fat_valid; i++) {
        usi_collision_body *k = &c->collide.collision_body[i];
        if (k->node < 0 || usi_is_still_ghost(c, k->tree)) continue;
        c->collide.is_fat_valid = find_boxes_of(c, k, has_stayed(c, k, &c->collide.stay[i]));
    }
    for (int32_t i = 0; i < c->n_collision_body && !c->collide.is_fat_valid; i++) {
        if (usi_is_still_ghost(c, c->collide.collision_body[i].tree)) continue;
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
    return o.z + more + max_rise(c, field) +
           usi_field_top(g->geom.field, fat->min.x - o.x - more, fat->min.y - o.y - more,
                         fat->max.x - o.x + more, fat->max.y - o.y + more);
}

// A point that is nobody's neighbour, for shapes that take no part: each has its own, so that they do not
// crowd.
static void hide(usi_contacts *c, int32_t g) {
    us_vec3 p = us_vec3_make(1e-3 * g, 0, 0);
    c->collide.fat[g] = (usi_broad_box){.box = {p, p}, .body = c->model->geom[g].body + 1};
}

// Fast shapes grow more, so that the list lasts.
static void grow_boxes(usi_contacts *c) {
    const us_model *m = c->model;
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        const usi_collision_body *k = &c->collide.collision_body[i];
        // A nanometre less than there is, for rounding.
        usi_stay *stay = &c->collide.stay[i];
        *stay = (usi_stay){
            .X = k->X, .Y = k->Y, .Z = k->Z, .p = k->p, .speed = k->speed, .spin = k->spin, .room = INFINITY};
        for (int32_t g = k->first_geom; g < k->end_geom; g++) {
            c->collide.is_near[g] = false;
            if (usi_is_still_ghost(c, k->tree)) {
                hide(c, g);
                continue;
            }
            double more = k->node < 0 ? 0
                                      : 0.05 * fmin(c->far[g], 0.2) +
                                            20 * (c->collide.grow[g] - m->geom[g].margin - USI_BASE_MARGIN);
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
}

// Pairs that were near before keep their directions. Both lists are sorted.
static void list_pairs(usi_contacts *c, const usi_broad_pair *pairs, int64_t n) {
    const us_model *m = c->model;
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
        const int64_t key = usi_pair_key(&pairs[i]);
        while (old < old_end && usi_pair_key(old) < key) {
            old++;
            old_apart++;
        }
        bool was_near = old < old_end && usi_pair_key(old) == key;
        c->collide.apart[c->collide.n_near] = was_near ? *old_apart : us_vec3_make(0, 0, 0);
        c->collide.near[c->collide.n_near++] = pairs[i];
        c->collide.is_near[pairs[i].a] = c->collide.is_near[pairs[i].b] = true;
    }
}

// Grown boxes, and the pairs among them.
us_status usi_find_near(usi_contacts *c) {
    if (c->collide.is_fat_valid) return usi_residency_is_due(c) ? usi_residency_ask(c) : US_OK;
    grow_boxes(c);
    us_status status = c->n_paged > 0 ? usi_residency_ask(c) : US_OK;
    if (status) return status;
    const usi_broad_pair *pairs;
    int64_t n;
    status = usi_broad_find(c->broad, c->collide.fat, c->n_geom, &pairs, &n, NULL);
    if (status) {
        c->error_count = n > INT32_MAX ? INT32_MAX : (int32_t)n;
        c->is_pair_error = true;
        return status;
    }
    list_pairs(c, pairs, n);
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

// ---------------------------------------------------------------- ghosts

void usi_contacts_reach(usi_contacts *c, const double *q, const double *v, double lead, double more,
                        us_aabb *out_box) {
    const us_vec3 min = us_vec3_make(-INFINITY, -INFINITY, -INFINITY),
                  max = us_vec3_make(INFINITY, INFINITY, INFINITY);
    for (int32_t t = 0; t < c->model->n_tree; t++)
        out_box[t] = (us_aabb){max, min};
    usi_find_frames(c, q, v, true);
    for (int32_t i = 0; i < c->n_collision_body; i++) {
        const usi_collision_body *k = &c->collide.collision_body[i];
        if (k->node < 0) continue;
        us_aabb *all = &out_box[k->tree];
        double speed = sqrt(usi_v4_dot(k->v, k->v)), spin = sqrt(usi_v4_dot(k->w, k->w));
        for (int32_t g = k->first_geom; g < k->end_geom; g++) {
            usi_corners b =
                box_of(c, g, k, more + c->model->geom[g].margin + lead * (speed + spin * c->far[g]));
            all->min = us_vec3_make(fmin(all->min.x, b.min[0]), fmin(all->min.y, b.min[1]),
                                    fmin(all->min.z, b.min[2]));
            all->max = us_vec3_make(fmax(all->max.x, b.max[0]), fmax(all->max.y, b.max[1]),
                                    fmax(all->max.z, b.max[2]));
        }
    }
}
