// What wheels and feet leave behind in beds of soil, and how it flows.
//
// When a step has turned out good, what was in the soil during it is pressed into it, in the order in which
// it was found; then the soil flows, as many columns as would flow in a step's time.
#include "contact/soil.h"
#include "sim/sim.h"

// m/s: slower wheels leave the soil as it is.
static const double SLOW = 5e-3;

// ---------------------------------------------------------------- prints

// The columns around a place, as far as they are in the patch. False: none.
static bool columns_around(const usi_deformable *patch, double x, double y, double reach_x, double reach_y,
                           usi_deformable_area *out) {
    double cx = x / patch->spacing + 0.5 * (patch->n_x - 1), cy = y / patch->spacing + 0.5 * (patch->n_y - 1);
    double rx = reach_x / patch->spacing, ry = reach_y / patch->spacing;
    double x0 = fmax(0, ceil(cx - rx)), x1 = fmin(patch->n_x, floor(cx + rx) + 1),
           y0 = fmax(0, ceil(cy - ry)), y1 = fmin(patch->n_y, floor(cy + ry) + 1);
    if (!(x1 > x0 && y1 > y0)) return false;
    *out = (usi_deformable_area){(int32_t)x0, (int32_t)y0, (int32_t)x1, (int32_t)y1};
    return true;
}

static us_vec3 to_patch(us_pose X_WG, usi_v4 p) {
    return us_quat_rotate(us_quat_conj(X_WG.q), us_vec3_sub(usi_v4_vec3(p), X_WG.p));
}
static us_vec3 turn_to_patch(us_pose X_WG, usi_v4 d) {
    return us_quat_rotate(us_quat_conj(X_WG.q), usi_v4_vec3(d));
}

// The columns around a wheel as far as it covers them: under it, and one row behind it.
static bool wheel_columns(const usi_deformable *patch, const usi_soil_contact *k, us_pose X_WG,
                          usi_deformable_area *out) {
    double reach = us_soil_wheel_radius(&k->wheel) * sin(fmin(k->reaction.parts.entry, 1.5)) +
                   1.5 * patch->spacing,
           half = 0.5 * k->wheel.width;
    us_vec3 hub = to_patch(X_WG, k->hub), ahead = turn_to_patch(X_WG, k->ahead),
            left = turn_to_patch(X_WG, k->left);
    double rx = reach * fabs(ahead.x) + half * fabs(left.x), ry = reach * fabs(ahead.y) + half * fabs(left.y);
    return k->sinkage > 0 && columns_around(patch, hub.x, hub.y, rx, ry, out);
}

// Presses a column of a ground's patch. Rock in a region is not pressed: only what lies on it.
static void press(us_sim *s, const usi_geom *g, int32_t i, int32_t j, int32_t goal,
                  usi_deformable_pressed_volume *io) {
    const us_model *m = s->model;
    usi_deformable *patch = &s->patch[g->patch];
    if (g->has_region) {
        int32_t material = usi_ground_material_at(m, &s->now.contact, m->patch[g->patch].geom,
                                                  usi_deformable_x(patch, i), usi_deformable_y(patch, j));
        int32_t ground =
            m->material[material].is_soil ? INT32_MIN : patch->ground(patch->ground_context, i, j);
        if (goal < ground) goal = ground;
    }
    usi_deformable_press_column(patch, i, j, goal, io);
}

// Column nearest to a place, within the patch.
static int32_t nearest_column(double at, double spacing, int32_t n) {
    double i = rint(at / spacing + 0.5 * (n - 1));
    return i < 0 ? 0 : i > n - 1 ? n - 1 : (int32_t)i;
}

// Puts a volume (units) down beyond the columns that a wheel covers: where its rim throws what it has dug,
// over three times its width, so that a third falls into the rut. Behind a driven wheel, ahead of a braked
// one.
static void throw_soil(usi_deformable *patch, const usi_soil_contact *k, us_pose X_WG, int64_t volume) {
    double r = us_soil_wheel_radius(&k->wheel), half = 1.5 * k->wheel.width,
           reach = r * sin(fmin(k->reaction.parts.entry, 1.5)) + 2.5 * patch->spacing;
    us_vec3 hub = to_patch(X_WG, k->hub), ahead = turn_to_patch(X_WG, k->ahead),
            left = turn_to_patch(X_WG, k->left);
    double along = copysign(reach, k->vx - r * k->spin);
    int32_t n = (int32_t)fmax(1, floor(2 * half / patch->spacing));
    for (int32_t i = 0; i < n; i++) {
        double side = half * ((2 * i + 1.0) / n - 1);
        int64_t units = volume / (n - i);
        volume -= units;
        usi_deformable_add(
            patch, nearest_column(hub.x + along * ahead.x + side * left.x, patch->spacing, patch->n_x),
            nearest_column(hub.y + along * ahead.y + side * left.y, patch->spacing, patch->n_y), units);
    }
}

// Whether a column belongs to the part of a wheel that lies in this soil. What no soil has is that of the one
// under the hub.
__attribute__((noinline)) static bool is_in_part(const us_sim *s, const usi_soil_contact *k,
                                                 const usi_deformable *patch, int32_t i, int32_t j) {
    const us_model *m = s->model;
    const usi_contacts *c = s->contacts;
    const int32_t main = c->collide.touch_now[c->collide.point[k->point].touch].material,
                  here = usi_ground_material_at(m, &s->now.contact, k->ground, usi_deformable_x(patch, i),
                                                usi_deformable_y(patch, j));
    return (usi_soil_acts(c, here, m->geom[k->geom].material) ? here : main) == k->material;
}

// What a wheel has rolled over, behind its hub, lies as deep as its rim. What is under it before the hub does
// not rise, and stands until the hub has come to it. Nor does anything rise in the rut just behind the wheel:
// what is pressed out comes up beside it.
static void print_wheel(us_sim *s, const usi_soil_contact *k, double compaction) {
    const usi_geom *g = &s->model->geom[k->ground];
    const us_pose X_WG = g->X_NG;
    usi_deformable *patch = &s->patch[g->patch];
    usi_deformable_pressed_volume volume = {0};
    double r = us_soil_wheel_radius(&k->wheel), half = 0.5 * k->wheel.width,
           reach = r * sin(fmin(k->reaction.parts.entry, 1.5));
    us_vec3 hub = to_patch(X_WG, k->hub), ahead = turn_to_patch(X_WG, k->ahead),
            left = turn_to_patch(X_WG, k->left), up = turn_to_patch(X_WG, k->up);
    const bool is_rolling = fmax(fabs(k->vx), fabs(r * k->spin)) >= SLOW;
    const double A = ahead.z * ahead.z + up.z * up.z;
    usi_deformable_area t;
    if (!wheel_columns(patch, k, X_WG, &t)) return;
    for (int32_t j = t.y0; j < t.y1; j++) {
        for (int32_t i = t.x0; i < t.x1; i++) {
            double dx = usi_deformable_x(patch, i) - hub.x, dy = usi_deformable_y(patch, j) - hub.y;
            // Where the column meets the rim from below: (dx, dy, z) on the cylinder around the axle.
            double a = dx * ahead.x + dy * ahead.y, n = dx * up.x + dy * up.y;
            double B = a * ahead.z + n * up.z, C = a * a + n * n - r * r, D = B * B - A * C;
            if (D < 0) continue;
            double z = (-B - sqrt(D)) / A, along = k->direction * (a + z * ahead.z),
                   side = dx * left.x + dy * left.y + z * left.z;
            if (fabs(side) > half || along > reach || along < -reach - 1.5 * patch->spacing) continue;
            if (k->share != 1 && !is_in_part(s, k, patch, i, j)) continue;
            usi_deformable_cover(patch, i, j);
            if (along > 0 || along < -reach || !is_rolling) continue;
            press(s, g, i, j, (int32_t)lrint((hub.z + z) / USI_DEFORMABLE_UNIT), &volume);
        }
    }
    if (!is_rolling) return;
    // What is dug is carried away whole; the rest is pressed, and a part of that compacted.
    const double dug = k->wheel.dug / k->sinkage, gone = dug + (1 - dug) * compaction,
                 pressed = (double)volume.n_pressed;
    usi_deformable_press_end(patch, t, gone, &volume);
    const int64_t thrown = (int64_t)(gone * pressed) - (int64_t)((1 - dug) * compaction * pressed);
    if (thrown > 0) throw_soil(patch, k, X_WG, thrown);
}

// When the soil has flowed: what is covered is found anew in the next step.
static void uncover_wheel(usi_deformable *patch, const usi_soil_contact *k, us_pose X_WG) {
    usi_deformable_area t;
    if (!wheel_columns(patch, k, X_WG, &t)) return;
    for (int32_t j = t.y0; j < t.y1; j++) {
        for (int32_t i = t.x0; i < t.x1; i++)
            usi_deformable_uncover(patch, i, j);
    }
}

// The columns that a foot stands on. A ball's print is its own form; another foot's share of one is level.
typedef struct foot_form {
    usi_deformable_area area;
    double x, y, z;       // m: its lowest point
    double half, radius;  // m; radius 0: level
} foot_form;

// False: there are none.
static bool foot_print(const usi_deformable *patch, const usi_soil_contact *k, const usi_point_now *p,
                       us_pose X_WG, foot_form *out) {
    if (!(k->sinkage > 0)) return false;
    us_vec3 bottom = to_patch(X_WG, p->p_B);
    double half = k->radius > 0
                      ? sqrt(fmin(k->sinkage, k->radius) * (2 * k->radius - fmin(k->sinkage, k->radius)))
                      : 0.5 * sqrt(k->area);
    *out = (foot_form){.x = bottom.x, .y = bottom.y, .z = bottom.z, .half = half, .radius = k->radius};
    if (columns_around(patch, bottom.x, bottom.y, half, half, &out->area)) return true;
    // Smaller than a column: it takes the nearest one down by its share.
    double grow = half > 0 ? patch->spacing * patch->spacing / (4 * half * half) : 1;
    if (half >= patch->spacing ||
        !columns_around(patch, bottom.x, bottom.y, 0.5 * patch->spacing, 0.5 * patch->spacing, &out->area))
        return false;
    out->area.x1 = out->area.x0 + 1;
    out->area.y1 = out->area.y0 + 1;
    out->z += k->sinkage * (1 - fmin(1, 1 / grow));
    out->radius = 0;
    return true;
}

// Height that the foot presses a column to, units; INT32_MAX: not this one.
static int32_t foot_goal(const usi_deformable *patch, const foot_form *foot, int32_t i, int32_t j) {
    double rise = 0;
    if (foot->radius > 0) {
        double dx = usi_deformable_x(patch, i) - foot->x, dy = usi_deformable_y(patch, j) - foot->y,
               square = dx * dx + dy * dy;
        if (square >= foot->half * foot->half) return INT32_MAX;
        rise = foot->radius - sqrt(fmax(foot->radius * foot->radius - square, 0));
    }
    return (int32_t)lrint((foot->z + rise) / USI_DEFORMABLE_UNIT);
}

int32_t usi_foot_columns(const us_sim *s, const usi_soil_contact *k, usi_foot_column *out, int32_t cap) {
    const usi_geom *g = &s->model->geom[k->ground];
    const usi_deformable *patch = g->patch >= 0 ? &s->patch[g->patch] : NULL;
    foot_form foot;
    int32_t n = 0;
    if (!patch || !foot_print(patch, k, &s->contacts->collide.point[k->point], g->X_NG, &foot)) return 0;
    for (int32_t j = foot.area.y0; j < foot.area.y1; j++) {
        for (int32_t i = foot.area.x0; i < foot.area.x1; i++) {
            const int32_t goal = foot_goal(patch, &foot, i, j);
            if (goal == INT32_MAX) continue;
            const double z = USI_DEFORMABLE_UNIT * goal;
            if (n < cap)
                out[n] = (usi_foot_column){usi_deformable_x(patch, i), usi_deformable_y(patch, j), z,
                                           fmax(k->sinkage - (z - foot.z), 0)};
            n++;
        }
    }
    return n;
}

// Nothing flows under a foot, nor comes up there: what one corner of it presses out would be pressed again by
// the next.
static void cover_foot(usi_deformable *patch, const usi_soil_contact *k, const usi_point_now *p, us_pose X_WG,
                       bool is_covered) {
    foot_form foot;
    if (!foot_print(patch, k, p, X_WG, &foot)) return;
    for (int32_t j = foot.area.y0; j < foot.area.y1; j++) {
        for (int32_t i = foot.area.x0; i < foot.area.x1; i++) {
            if (foot_goal(patch, &foot, i, j) == INT32_MAX) continue;
            if (is_covered)
                usi_deformable_cover(patch, i, j);
            else
                usi_deformable_uncover(patch, i, j);
        }
    }
}

static void print_foot(us_sim *s, const usi_soil_contact *k, double compaction) {
    const usi_geom *g = &s->model->geom[k->ground];
    usi_deformable *patch = &s->patch[g->patch];
    usi_deformable_pressed_volume volume = {0};
    foot_form foot;
    if (!foot_print(patch, k, &s->contacts->collide.point[k->point], g->X_NG, &foot)) return;
    for (int32_t j = foot.area.y0; j < foot.area.y1; j++) {
        for (int32_t i = foot.area.x0; i < foot.area.x1; i++) {
            int32_t goal = foot_goal(patch, &foot, i, j);
            if (goal != INT32_MAX) press(s, g, i, j, goal, &volume);
        }
    }
    usi_deformable_press_end(patch, foot.area, compaction, &volume);
}

// Mean change of the columns under a foot, m.
static double mean_under(const usi_deformable *patch, const usi_soil_contact *k, const usi_point_now *p,
                         us_pose X_WG) {
    foot_form foot;
    int64_t sum = 0, n = 0;
    if (!foot_print(patch, k, p, X_WG, &foot)) return 0;
    for (int32_t j = foot.area.y0; j < foot.area.y1; j++) {
        for (int32_t i = foot.area.x0; i < foot.area.x1; i++) {
            if (foot_goal(patch, &foot, i, j) == INT32_MAX) continue;
            sum += usi_deformable_change(patch, usi_deformable_column(patch, i, j));
            n++;
        }
    }
    return n > 0 ? USI_DEFORMABLE_UNIT * (double)sum / (double)n : 0;
}

// A foot keeps the surface that it met, its own print being no soil that gives way. Where soil has flowed out
// from under it, that surface has come down with it.
static void lower_foot(us_sim *s, const usi_soil_contact *k, double fall) {
    usi_anchor *a = &s->now.contact.anchor[k->point];
    if (!(fall > 0)) return;
    a->p_A.z -= fall;
    a->hold.z -= fall;
}

// ---------------------------------------------------------------- flow

// A patch whose soil is another at each place.
typedef struct varied_patch {
    const us_sim *s;
    const usi_deformable *patch;
    const usi_deformable_row *row;
    double gravity;
} varied_patch;

// By the soil of the region around a column, and what maps say there. What lies on a rock flows by the
// ground's own soil, and the rock does not.
static usi_deformable_law law_at(const void *context, int32_t i, int32_t j) {
    const varied_patch *v = context;
    const us_model *m = v->s->model;
    const usi_contact_state *now = &v->s->now.contact;
    double x = usi_deformable_x(v->patch, i), y = usi_deformable_y(v->patch, j);
    int32_t material = usi_ground_material_at(m, now, v->row->geom, x, y);
    bool is_firm = !m->material[material].is_soil;
    if (is_firm) material = v->row->soil;
    us_soil soil = now->soil[material];
    usi_soil_map_apply(m, v->row->geom, material, x, y, &soil);
    // Each of the two angles may have a map of its own.
    soil.critical_angle = fmax(soil.critical_angle, soil.repose_angle);
    usi_deformable_law law = usi_deformable_law_of(&soil, v->patch->spacing, v->gravity);
    law.is_firm = is_firm;
    return law;
}

// Least of a number of all soils of a ground, maps included. 0 of the curvature means that its limit goes
// with the angle.
static double least_of(const us_sim *s, int32_t geom, size_t number) {
    const us_model *m = s->model;
    double least = INFINITY;
    for (int32_t i = 0; i < m->n_material; i++) {
        const char *soil = (const char *)&s->now.contact.soil[i];
        if (m->material[i].is_soil) least = fmin(least, *(const double *)(const void *)(soil + number));
    }
    for (int32_t i = 0; i < m->n_soil_map; i++) {
        const usi_soil_map *r = &m->soil_map[i];
        if (r->geom == geom && r->number == (int32_t)number) least = fmin(least, r->low);
    }
    return least;
}

// Whether a soil of this ground has a limit of curvature of its own.
static bool has_curvature(const us_sim *s, int32_t geom) {
    const us_model *m = s->model;
    bool has = false;
    for (int32_t i = 0; i < m->n_material; i++)
        has = has || (m->material[i].is_soil && s->now.contact.soil[i].max_curvature > 0);
    for (int32_t i = 0; i < m->n_soil_map; i++)
        has = has || (m->soil_map[i].geom == geom &&
                      m->soil_map[i].number == (int32_t)offsetof(us_soil, max_curvature));
    return has;
}

static void let_flow(us_sim *s, int32_t i) {
    const us_model *m = s->model;
    usi_deformable *patch = &s->patch[i];
    if (patch->is_held || (patch->n == 0 && patch->n_lost == 0 && patch->n_wait == 0)) return;
    if (patch->n == 0) usi_deformable_requeue(patch);
    const usi_geom *g = &m->geom[m->patch[i].geom];
    varied_patch varied = {s, patch, &m->patch[i], us_vec3_norm(m->gravity)};
    usi_deformable_law law =
        usi_deformable_law_of(&s->now.contact.soil[m->patch[i].soil], patch->spacing, varied.gravity);
    if (g->has_region || g->has_flow_map) {
        int32_t geom = m->patch[i].geom;
        us_soil flattest = {.repose_angle = least_of(s, geom, offsetof(us_soil, repose_angle)), .density = 1};
        law = usi_deformable_law_of(&flattest, patch->spacing, varied.gravity);
        // The limits by the angle are no less than this, those that are given no less than the least given.
        flattest.max_curvature = least_of(s, geom, offsetof(us_soil, max_curvature));
        law.curvature =
            fmin(law.curvature, usi_deformable_law_of(&flattest, patch->spacing, varied.gravity).curvature);
        if (flattest.max_curvature <= 0 && has_curvature(s, geom)) law.curvature = 0;
        law.at = law_at;
        law.context = &varied;
    }
    // A column's soil falls by one spacing in about sqrt(spacing / g), and looking at all of them four times
    // brings most of it there.
    double share = fmin(4 * m->step * sqrt(fmax(varied.gravity, 0.01) / patch->spacing), 1),
           max = ceil(share * patch->n);
    usi_deformable_settle(patch, &law, max < (double)USI_MAX_FLOW ? (int64_t)max : USI_MAX_FLOW);
}

void usi_deformables_step(us_sim *s) {
    const us_model *m = s->model;
    const usi_contacts *c = s->contacts;
    for (int32_t i = 0; i < c->collide.n_soil_contact; i++) {
        const usi_soil_contact *k = &c->collide.soil_contact[i];
        const usi_geom *g = &m->geom[k->ground];
        if (g->patch >= 0 && !k->is_wheel && !k->is_node)
            cover_foot(&s->patch[g->patch], k, &c->collide.point[k->point], g->X_NG, true);
    }
    for (int32_t i = 0; i < c->collide.n_soil_contact; i++) {
        const usi_soil_contact *k = &c->collide.soil_contact[i];
        const usi_geom *g = &m->geom[k->ground];
        if (g->patch < 0 || k->is_node) continue;
        double compaction = usi_soil_contact_soil(c, &s->now.contact, k)->compaction;
        if (k->is_wheel)
            print_wheel(s, k, compaction);
        else
            print_foot(s, k, compaction);
    }
    for (int32_t i = 0; i < c->collide.n_soil_contact; i++) {
        usi_soil_contact *k = &c->collide.soil_contact[i];
        const usi_geom *g = &m->geom[k->ground];
        if (g->patch >= 0 && !k->is_wheel && !k->is_node)
            k->mean_change = mean_under(&s->patch[g->patch], k, &c->collide.point[k->point], g->X_NG);
    }
    if (m->n_ground_model > 0) usi_settle_grounds(s);
    for (int32_t i = 0; i < m->n_deformable; i++)
        let_flow(s, i);
    if (m->n_ground_model > 0) usi_uncover_grounds(s);
    for (int32_t i = 0; i < c->collide.n_soil_contact; i++) {
        const usi_soil_contact *k = &c->collide.soil_contact[i];
        const usi_geom *g = &m->geom[k->ground];
        if (g->patch < 0 || k->is_node) continue;
        const usi_point_now *p = &c->collide.point[k->point];
        if (k->is_wheel) {
            uncover_wheel(&s->patch[g->patch], k, g->X_NG);
            continue;
        }
        lower_foot(s, k, k->mean_change - mean_under(&s->patch[g->patch], k, p, g->X_NG));
        cover_foot(&s->patch[g->patch], k, p, g->X_NG, false);
    }
}
