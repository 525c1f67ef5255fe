// Deformable ground of somebody else: the columns under a body, and what the ground answers there.
//
//       ___________
//      |   body    |      A ray from below finds the body over each column of the bed that its box covers.
//      Where
//      |___________|      it is no higher above the surface than contact is looked for, the column is a
//      point:
//     _ ^ ^ ^ ^ ^ ^ _     normal along the undisturbed ground's, anchor by the column's number.
//      \_|_|_|_|_|_/
//
// A body that is smaller than a column has one, the nearest, with its lowest place.
#include <string.h>

#include "contact/contact__collide.h"
#include "contact/contact__soil.h"

// The number of a column as the feature of its point, above those of wheels and feet.
static const uint64_t NODE = USI_NODE_FEATURE;

// m: a ray to the body begins and ends so far outside of its box.
static const double BEYOND = 1e-3;

typedef struct node_search {
    usi_contacts *c;
    const usi_contact_state *now;
    const usi_touch *before;
    usi_touch *t;
    const usi_deformable *patch;
    const us_geom *shape;
    us_pose X_WG, X_GS;
    us_aabb box;    // of the shape, in the bed's frame
    us_vec3 up;     // unit, of the ground, in the bed's frame
    usi_v4 normal;  // the same in the world
    int32_t old;    // where the last step's points are looked at next: both lists are in the columns' order
} node_search;

static int32_t find_old(node_search *x, uint64_t feature) {
    const int32_t end = x->before ? x->before->first + x->before->n : 0;
    while (x->old < end && x->now->anchor[x->old].feature < feature)
        x->old++;
    return x->old < end && x->now->anchor[x->old].feature == feature ? x->old : -1;
}

static void add_node(node_search *x, int32_t i, int32_t j, us_vec3 bottom) {
    usi_contacts *c = x->c;
    const double surface = usi_deformable_height(x->patch, i, j);
    if ((bottom.z - surface) * x->up.z > c->collide.grow[x->t->geom_b]) return;
    usi_soil_contact *k;
    usi_point_now *p =
        usi_add_soil_point(c, x->t, NODE + (uint64_t)j * (uint64_t)x->patch->n_x + (uint64_t)i, &k);
    if (!p) return;
    p->n = -x->normal;
    p->old = find_old(x, p->feature);
    // Against the normal from the body's place down to the surface: the point slides on the slope as one.
    const double gap = (bottom.z - surface) * x->up.z;
    p->p_B = usi_v4_from(us_pose_point(x->X_WG, bottom));
    p->p_A = p->p_B - gap * x->normal;
    p->p = p->p_B;
    p->gap = gap;
    k->is_node = 1;
    k->column[0] = i;
    k->column[1] = j;
    k->surface = surface;
    k->bottom = bottom.z;
    k->sinkage = -gap;
    k->area = x->patch->spacing * x->patch->spacing / x->up.z;
    usi_look_at_soil_maps(c, x->now, k, bottom.x, bottom.y);
}

static int32_t clamp_index(double at, int32_t n) { return at < 0 ? 0 : at > n - 1 ? n - 1 : (int32_t)at; }

// The columns that the shape's box covers. False: it is nowhere over the bed.
static bool columns_under(const node_search *x, int32_t from[2], int32_t to[2]) {
    const usi_deformable *b = x->patch;
    const double u0 = x->box.min.x / b->spacing + 0.5 * (b->n_x - 1),
                 u1 = x->box.max.x / b->spacing + 0.5 * (b->n_x - 1),
                 v0 = x->box.min.y / b->spacing + 0.5 * (b->n_y - 1),
                 v1 = x->box.max.y / b->spacing + 0.5 * (b->n_y - 1);
    if (!(u1 >= -0.5 && v1 >= -0.5 && u0 <= b->n_x - 0.5 && v0 <= b->n_y - 0.5)) return false;
    from[0] = clamp_index(ceil(u0), b->n_x);
    from[1] = clamp_index(ceil(v0), b->n_y);
    to[0] = clamp_index(floor(u1), b->n_x);
    to[1] = clamp_index(floor(v1), b->n_y);
    return true;
}

// The place where a vertical line through a column first meets the shape from below. False: nowhere.
static bool bottom_at(const node_search *x, double px, double py, us_vec3 *out) {
    const us_vec3 from = us_vec3_make(px, py, x->box.min.z - BEYOND);
    const us_ray_hit hit =
        us_geom_ray(x->shape, x->X_GS, from, us_vec3_make(0, 0, 1), x->box.max.z - x->box.min.z + 2 * BEYOND);
    *out = us_vec3_make(px, py, from.z + hit.range);
    return isfinite(hit.range);
}

bool usi_ground_model_acts(const usi_contacts *c, const usi_touch *t) {
    const us_model *m = c->model;
    const int32_t patch = m->geom[t->geom_a].patch;
    return patch >= 0 && c->patch && m->patch[patch].model >= 0 &&
           c->pair_model[t->material * m->n_material + m->geom[t->geom_b].material] == USI_MODEL_SOIL;
}

void usi_ground_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t) {
    const us_model *m = c->model;
    const usi_geom *ground = &m->geom[t->geom_a], *g = &m->geom[t->geom_b];
    node_search x = {.c = c,
                     .now = now,
                     .before = before,
                     .t = t,
                     .patch = &c->patch[ground->patch],
                     .shape = &g->geom,
                     .X_WG = ground->X_NG,
                     .old = before ? before->first : 0};
    x.X_GS = us_pose_mul(us_pose_inverse(x.X_WG),
                         usi_geom_pose(c, t->geom_b, &c->collide.collision_body[c->body_of_geom[t->geom_b]]));
    x.box = us_geom_box(x.shape, x.X_GS);
    int32_t from[2], to[2];
    if (!isfinite(x.box.max.x - x.box.min.x) || !columns_under(&x, from, to)) return;
    const us_vec3 size = us_vec3_sub(x.box.max, x.box.min),
                  middle = us_vec3_scale(0.5, us_vec3_add(x.box.max, x.box.min));
    x.up = usi_ground_normal(ground, middle.x, middle.y, fmax(0.25 * (size.x + size.y), x.patch->spacing));
    x.normal = usi_v4_from(us_quat_rotate(x.X_WG.q, x.up));
    bool has_column = false;
    for (int32_t j = from[1]; j <= to[1]; j++) {
        for (int32_t i = from[0]; i <= to[0]; i++) {
            us_vec3 bottom;
            if (!bottom_at(&x, usi_deformable_x(x.patch, i), usi_deformable_y(x.patch, j), &bottom)) continue;
            has_column = true;
            add_node(&x, i, j, bottom);
        }
    }
    if (has_column) return;
    us_vec3 bottom;
    if (!bottom_at(&x, middle.x, middle.y, &bottom)) bottom = us_vec3_make(middle.x, middle.y, x.box.min.z);
    const double u = middle.x / x.patch->spacing + 0.5 * (x.patch->n_x - 1),
                 v = middle.y / x.patch->spacing + 0.5 * (x.patch->n_y - 1);
    if (u < -0.5 || v < -0.5 || u > x.patch->n_x - 0.5 || v > x.patch->n_y - 0.5) return;
    add_node(&x, clamp_index(rint(u), x.patch->n_x), clamp_index(rint(v), x.patch->n_y), bottom);
}

// ---------------------------------------------------------------- what the ground is told

int32_t usi_ground_patch_end(const usi_contacts *c, int32_t first) {
    const int32_t touch = c->collide.point[c->collide.soil_contact[first].point].touch;
    int32_t end = first + 1;
    while (end < c->collide.n_soil_contact && c->collide.soil_contact[end].is_node &&
           c->collide.point[c->collide.soil_contact[end].point].touch == touch)
        end++;
    return end;
}

us_ground_node usi_ground_node(const usi_contacts *c, const usi_contact_state *state, int32_t i,
                               const us_vec3 *impulse) {
    const usi_soil_contact *k = &c->collide.soil_contact[i];
    const usi_point_now *p = &c->collide.point[k->point];
    const usi_collision_body *B = &c->collide.collision_body[c->body_of_geom[k->geom]];
    return (us_ground_node){
        .i = k->column[0],
        .j = k->column[1],
        .place = usi_v4_vec3(p->p_B),
        .normal = usi_v4_vec3(-p->n),
        .velocity = usi_v4_vec3(B->v + usi_v4_cross(B->w, p->p_B - B->p)),
        .surface = k->surface,
        .bottom = k->bottom,
        .sinkage = k->sinkage,
        // What is kept is the impulse on the ground, which stands still.
        .carried = impulse ? us_vec3_scale(-1 / c->model->step, *impulse) : us_vec3_make(0, 0, 0),
        .soil = usi_soil_contact_soil(c, state, k),
    };
}

us_ground_patch usi_ground_patch(const usi_contacts *c, const usi_contact_state *state, int32_t first,
                                 int32_t end, const us_ground_node *node) {
    const us_model *m = c->model;
    const usi_soil_contact *k = &c->collide.soil_contact[first];
    const int32_t other = m->geom[k->geom].material, entry = k->material * m->n_material + other,
                  row = m->pair[entry].parameter;
    return (us_ground_patch){.node = node,
                             .n_node = end - first,
                             .body = m->geom[k->geom].body,
                             .material_soil = m->material[k->material].name,
                             .material_body = m->material[other].name,
                             .values = &state->pair[entry],
                             .parameters = row >= 0 ? m->pair_row[row].parameters : NULL,
                             .n_parameter = row >= 0 ? m->pair_row[row].n_parameter : 0};
}

// ---------------------------------------------------------------- the columns, as a plug-in sees them

static const usi_deformable *bed_of(const us_ground *g) { return g->host; }

static bool has_column(const us_ground *g, int32_t i, int32_t j) {
    return i >= 0 && j >= 0 && i < g->n_x && j < g->n_y;
}
static double get_height(const us_ground *g, int32_t i, int32_t j) {
    return has_column(g, i, j) ? usi_deformable_height(bed_of(g), i, j) : NAN;
}
static double get_change(const us_ground *g, int32_t i, int32_t j) {
    const usi_deformable *b = bed_of(g);
    return has_column(g, i, j)
               ? USI_DEFORMABLE_UNIT * (double)usi_deformable_change(b, usi_deformable_column(b, i, j))
               : NAN;
}
static const double *view_column(const us_ground *g, int32_t i, int32_t j) {
    const usi_deformable *b = bed_of(g);
    return has_column(g, i, j) && b->n_extra > 0 ? usi_deformable_extra(b, usi_deformable_column(b, i, j))
                                                 : NULL;
}
static bool refuse_change(const us_ground *g, int32_t i, int32_t j, double change) {
    (void)g;
    (void)i;
    (void)j;
    (void)change;
    return false;
}
static bool refuse_column(const us_ground *g, int32_t i, int32_t j, const double *numbers) {
    (void)g;
    (void)i;
    (void)j;
    (void)numbers;
    return false;
}

us_ground usi_ground_of(const usi_contacts *c, const usi_contact_state *state, int32_t patch) {
    const us_model *m = c->model;
    const usi_deformable_row *row = &m->patch[patch];
    return (us_ground){.n_x = row->n_x,
                       .n_y = row->n_y,
                       .spacing = row->spacing,
                       .depth = row->depth,
                       .X_WG = m->geom[row->geom].X_NG,
                       .step = m->step,
                       .gravity = us_vec3_norm(m->gravity),
                       .soil = &state->soil[row->soil],
                       .host = &c->patch[patch],
                       .get_height = get_height,
                       .get_change = get_change,
                       .view_column = view_column,
                       .set_change = refuse_change,
                       .set_column = refuse_column};
}

// ---------------------------------------------------------------- what it answers

static bool is_usable(const us_ground_answer *a) {
    const double numbers[] = {a->force, a->stiffness, a->damping, a->friction, a->hold};
    for (int i = 0; i < 5; i++) {
        if (!(numbers[i] >= 0 && numbers[i] <= 1e300)) return false;
    }
    return a->stiffness > 0 && a->hold > 0;
}

static void ask_patch(const usi_contacts *c, const usi_contact_state *now, const usi_contact_state *next,
                      int32_t first, int32_t end) {
    const us_model *m = c->model;
    us_ground_node *node = c->collide.ground_node;
    us_ground_answer *answer = c->collide.ground_answer;
    const int32_t patch = m->geom[c->collide.soil_contact[first].ground].patch;
    const us_ground_model *model = &m->ground_model[m->patch[patch].model];
    for (int32_t i = first; i < end; i++) {
        const int32_t old = c->collide.point[c->collide.soil_contact[i].point].old;
        node[i - first] = usi_ground_node(c, next, i, old >= 0 ? &now->anchor[old].g : NULL);
        answer[i - first] = (us_ground_answer){0};
    }
    const us_ground ground = usi_ground_of(c, next, patch);
    const us_ground_patch told = usi_ground_patch(c, next, first, end, node);
    const bool ok = model->act(&ground, c->patch[patch].own, &told, answer, model->user);
    for (int32_t i = first; i < end; i++) {
        usi_soil_contact *k = &c->collide.soil_contact[i];
        k->is_answered = ok && is_usable(&answer[i - first]);
        k->answer = answer[i - first];
    }
}

void usi_ask_grounds(const usi_contacts *c, const usi_contact_state *now, const usi_contact_state *next) {
    for (int32_t i = 0; i < c->collide.n_soil_contact;) {
        const int32_t end = c->collide.soil_contact[i].is_node ? usi_ground_patch_end(c, i) : i + 1;
        if (c->collide.soil_contact[i].is_node) ask_patch(c, now, next, i, end);
        i = end;
    }
}

const char *usi_silent_ground(const usi_contacts *c) {
    const us_model *m = c->model;
    for (int32_t i = 0; i < c->collide.n_soil_contact; i++) {
        const usi_soil_contact *k = &c->collide.soil_contact[i];
        if (k->is_node && !k->is_answered)
            return m->ground_model[m->patch[m->geom[k->ground].patch].model].name;
    }
    return NULL;
}

bool usi_node_law(usi_soil_contact *k, double mass, double normal_velocity, us_touch_law *law) {
    const us_ground_answer *a = &k->answer;
    if (!k->is_answered) return false;
    k->force = a->force;
    k->stiffness = a->stiffness;
    *law = (us_touch_law){.force = a->force - a->damping * normal_velocity,
                          .stiffness = a->stiffness,
                          .damping = a->damping,
                          .tangent_stiffness = a->hold,
                          .tangent_damping = 2 * sqrt(a->hold * mass),
                          .static_friction = a->friction,
                          .kinetic_friction = a->friction};
    return true;
}
