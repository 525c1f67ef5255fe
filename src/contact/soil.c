// Wheels and feet in soil: where they are in it, and what it answers.
//
// A wheel meets the soil that lies before it: what is under and behind the hub it has pressed itself. So its
// sinkage is measured against the surface between the hub and where the rim enters, ruts of other wheels
// included; the surface's normal is that of the ground over the length of the contact. The forces are those
// of src/soil/wheel.c at the velocities of the last tick; the solver gets with them how they change:
//
//     normal     stiffness and damping of the soil under the wheel: half of critical, since a wheel that
//     bounces presses fresh soil each time slip       F - D (u - u0): u the speed of the rim over the soil
//     along and across, D by differences
//
// Slow wheels have no slip to speak of. Below a few millimetres per second the anchor of a point at rest
// takes over, whose limit is that of the soil: a parked rover stays on its slope for ever. What resists
// rolling acts at rest as a limited torque, in motion as the backward lean.
#include "contact/soil.h"

#include <float.h>

#include "contact/contact__law.h"
#include "contact/contact__parts.h"
#include "contact/contact__soil.h"

#include "geom/geom.h"

// m/s: between these speeds a wheel goes over from resting to rolling.
static const double REST = 1e-3, ROLL = 5e-3;
// Damping of the soil's normal force over the critical one.
static const double WHEEL_DAMPING = 0.5, FOOT_DAMPING = 0.3;
// A cylinder whose axle leans more than this to the ground (its sine is the number) lies on its side: it is a
// foot.
static const double ON_ITS_SIDE = 0.1;
// A face whose normal is steeper to the slope (its cosine is the number) is no flat sole.
static const double FLAT = 0.95;
// Where the surface before a wheel is looked at: shares of the way from the hub to the entry, and of the
// width to either side.
static const double LOOK_AHEAD[2] = {0.3, 0.9}, LOOK_ASIDE = 0.35;
// The anchor of soil at rest is so many times as stiff as the soil at the beginning of its shear: it holds,
// and moves by less than a tenth of a millimetre, so slowly that a wheel that begins to hold does not roll.
static const double HOLD = 100;
// Friction over load, at most: what hardly presses is held by its weight, not by cohesion.
static const double MAX_FRICTION = 10;
// Lean of the normal stress's resultant over the load, at most: the stress of a wheel that is half buried
// leans by about 1.
static const double MAX_LEAN = 3;

// ---------------------------------------------------------------- the ground

double usi_ground_at(const usi_geom *g, double x, double y) {
    if (g->geom.kind != US_GEOM_HEIGHT_FIELD) return 0;
    const us_height_field *f = g->geom.field;
    double u = x / f->dx + 0.5 * (f->n_x - 1), v = y / f->dy + 0.5 * (f->n_y - 1);
    u = u < 0 ? 0 : u > f->n_x - 1 ? f->n_x - 1 : u;
    v = v < 0 ? 0 : v > f->n_y - 1 ? f->n_y - 1 : v;
    int32_t i = u < f->n_x - 2 ? (int32_t)u : f->n_x - 2, j = v < f->n_y - 2 ? (int32_t)v : f->n_y - 2;
    const double *row = f->height + (size_t)j * (size_t)f->n_x + i, *next = row + f->n_x;
    u -= i;
    v -= j;
    double z = u >= v ? row[0] + u * (row[1] - row[0]) + v * (next[1] - row[1])
                      : row[0] + v * (next[0] - row[0]) + u * (next[1] - next[0]);
    return z + g->geom.radius;
}

// Where a place lies among a patch's columns: the four around it, and how far between them.
typedef struct column {
    uint32_t at[4];
    double u, v;
} column;

static column column_of(const usi_deformable *patch, double x, double y) {
    double u = x / patch->spacing + 0.5 * (patch->n_x - 1), v = y / patch->spacing + 0.5 * (patch->n_y - 1);
    u = u < 0 ? 0 : u > patch->n_x - 1 ? patch->n_x - 1 : u;
    v = v < 0 ? 0 : v > patch->n_y - 1 ? patch->n_y - 1 : v;
    int32_t i = u < patch->n_x - 2 ? (int32_t)u : patch->n_x - 2,
            j = v < patch->n_y - 2 ? (int32_t)v : patch->n_y - 2;
    uint32_t at = usi_deformable_column(patch, i, j);
    column k = {{at, at + 1, at + USI_DEFORMABLE_TILE, at + USI_DEFORMABLE_TILE + 1}, u - i, v - j};
    // All in one tile, but at its end.
    if (i % USI_DEFORMABLE_TILE == USI_DEFORMABLE_TILE - 1 ||
        j % USI_DEFORMABLE_TILE == USI_DEFORMABLE_TILE - 1) {
        k.at[1] = usi_deformable_column(patch, i + 1, j);
        k.at[2] = usi_deformable_column(patch, i, j + 1);
        k.at[3] = usi_deformable_column(patch, i + 1, j + 1);
    }
    return k;
}

static double between(column k, double a, double b, double c, double d) {
    return (1 - k.v) * ((1 - k.u) * a + k.u * b) + k.v * ((1 - k.u) * c + k.u * d);
}

// Not inlined, as look_at_wheel: sums are rounded the same for every caller.
__attribute__((noinline)) static double change_in(const usi_deformable *patch, column k) {
    return USI_DEFORMABLE_UNIT *
           between(k, usi_deformable_change(patch, k.at[0]), usi_deformable_change(patch, k.at[1]),
                   usi_deformable_change(patch, k.at[2]), usi_deformable_change(patch, k.at[3]));
}

__attribute__((noinline)) static double pressed_in(const usi_deformable *patch, column k) {
    return USI_DEFORMABLE_PRESSED_UNIT *
           between(k, usi_deformable_pressed(patch, k.at[0]), usi_deformable_pressed(patch, k.at[1]),
                   usi_deformable_pressed(patch, k.at[2]), usi_deformable_pressed(patch, k.at[3]));
}

double usi_surface_at(const usi_geom *g, const usi_deformable *patch, double x, double y) {
    return usi_ground_at(g, x, y) + (patch ? change_in(patch, column_of(patch, x, y)) : 0);
}

static bool is_over(const usi_geom *g, double x, double y) {
    if (g->geom.kind != US_GEOM_HEIGHT_FIELD) return true;
    const us_height_field *f = g->geom.field;
    return fabs(x) <= 0.5 * (f->n_x - 1) * f->dx && fabs(y) <= 0.5 * (f->n_y - 1) * f->dy;
}

// The ground under a shape, and how its frame lies.
typedef struct ground {
    const usi_geom *g;
    const usi_deformable *patch;
    us_pose X_WG;
} ground;

static ground ground_of(const usi_contacts *c, int32_t geom) {
    const usi_geom *g = &c->model->geom[geom];
    return (ground){g, g->patch >= 0 && c->patch ? &c->patch[g->patch] : NULL, g->X_NG};
}

static us_vec3 to_ground(const ground *e, us_vec3 p) {
    us_quat q = us_quat_conj(e->X_WG.q);
    return us_quat_rotate(q, us_vec3_sub(p, e->X_WG.p));
}

static us_vec3 turn_to_ground(const ground *e, us_vec3 d) {
    return us_quat_rotate(us_quat_conj(e->X_WG.q), d);
}
static usi_v4 turn_to_world(const ground *e, us_vec3 d) { return usi_v4_from(us_quat_rotate(e->X_WG.q, d)); }

// By its mask, or even-odd, the border belonging to either side.
static bool is_within(const usi_region_row *r, double x, double y) {
    if (x < r->min_x || x > r->max_x || y < r->min_y || y > r->max_y) return false;
    if (r->mask) {
        // The nearest sample: each stands for the square around it.
        int32_t i = (int32_t)((x - r->min_x) / r->dx), j = (int32_t)((y - r->min_y) / r->dy);
        i = i < r->mask_x ? i : r->mask_x - 1;
        j = j < r->mask_y ? j : r->mask_y - 1;
        int32_t value = r->mask[(size_t)j * (size_t)r->mask_x + (size_t)i];
        return r->value > 0 ? value == r->value : value != 0;
    }
    bool is_in = false;
    for (int32_t i = 0, j = r->n - 1; i < r->n; j = i++) {
        double xi = r->corner[2 * i], yi = r->corner[2 * i + 1], xj = r->corner[2 * j],
               yj = r->corner[2 * j + 1];
        if ((yi > y) != (yj > y) && x < xi + (xj - xi) * (y - yi) / (yj - yi)) is_in = !is_in;
    }
    return is_in;
}

int32_t usi_ground_material_at(const us_model *m, const usi_contact_state *now, int32_t geom, double x,
                               double y) {
    for (int32_t i = m->geom[geom].has_region ? m->n_region - 1 : -1; i >= 0; i--) {
        if (m->region[i].geom == geom && is_within(&m->region[i], x, y)) return now->region[i];
    }
    return m->geom[geom].material;
}

int32_t usi_ground_material(const usi_contacts *c, const usi_contact_state *now, int32_t geom,
                            int32_t shape) {
    const us_model *m = c->model;
    if (!m->geom[geom].has_region) return m->geom[geom].material;
    ground e = ground_of(c, geom);
    us_vec3 p = to_ground(&e, usi_geom_pose(c, shape, &c->collide.collision_body[c->body_of_geom[shape]]).p);
    return usi_ground_material_at(m, now, geom, p.x, p.y);
}

const us_soil *usi_soil_contact_soil(const usi_contacts *c, const usi_contact_state *state,
                                     const usi_soil_contact *k) {
    return c->model->geom[k->ground].has_soil_map ? &c->collide.soil_here[k - c->collide.soil_contact]
                                                  : &state->soil[k->material];
}

// Looks at the maps of a ground that has some, where something stands on it.
void usi_look_at_soil_maps(usi_contacts *c, const usi_contact_state *now, const usi_soil_contact *k, double x,
                           double y) {
    if (!c->model->geom[k->ground].has_soil_map) return;
    us_soil *soil = &c->collide.soil_here[k - c->collide.soil_contact];
    *soil = now->soil[k->material];
    usi_soil_map_apply(c->model, k->ground, k->material, x, y, soil);
}

// ---------------------------------------------------------------- wheels

static double clamp(double x, double min, double max) { return x < min ? min : x > max ? max : x; }

// A cylinder across the ground: where it is in the soil. False: it lies on its side. `last`, of the last
// step: m that it had dug; its sinkage, negative where it met the soil behind it, 0: it was not there.
// Not inlined: which products are fused with sums, and so the last bits, would depend on the caller.
__attribute__((noinline)) static bool look_at_wheel(const usi_contacts *c, const ground *e,
                                                    const us_material_def *tread, const us_soil *soil,
                                                    int32_t geom, const double last[US_TOUCH_MEMORY],
                                                    usi_soil_contact *k) {
    const usi_geom *g = &c->model->geom[geom];
    const usi_collision_body *B = &c->collide.collision_body[c->body_of_geom[geom]];
    us_pose X_WS = usi_geom_pose(c, geom, B);
    us_vec3 p = to_ground(e, X_WS.p), axle = turn_to_ground(e, us_quat_rotate(X_WS.q, us_vec3_make(0, 0, 1)));
    // Level directions first: along the wheel, and to its left.
    double level = sqrt(axle.x * axle.x + axle.y * axle.y);
    if (level < ON_ITS_SIDE) return false;
    double lx = axle.x / level, ly = axle.y / level, ax = ly, ay = -lx;
    k->wheel = (us_soil_wheel){.radius = g->geom.size[0] + g->geom.radius,
                               .width = 2 * (g->geom.size[1] + g->geom.radius),
                               .grouser_height = tread->grouser_height,
                               .n_grouser = tread->n_grouser};
    double r = us_soil_wheel_radius(&k->wheel), b = k->wheel.width;
    // In its own print the surface follows the rim, and any reach would find itself right: there it is that
    // of the print.
    double deep = fmax(fabs(last[1]), e->patch ? pressed_in(e->patch, column_of(e->patch, p.x, p.y)) : 0),
           reach = clamp(sqrt(2 * r * deep), 0.15 * r, 0.7 * r);
    us_vec3 n = us_vec3_make(0, 0, 1);
    if (e->g->geom.kind == US_GEOM_HEIGHT_FIELD) {
        double along = (usi_ground_at(e->g, p.x + reach * ax, p.y + reach * ay) -
                        usi_ground_at(e->g, p.x - reach * ax, p.y - reach * ay)) /
                       (2 * reach);
        double side = 0.4 * b;
        double across = (usi_ground_at(e->g, p.x + side * lx, p.y + side * ly) -
                         usi_ground_at(e->g, p.x - side * lx, p.y - side * ly)) /
                        (2 * side);
        us_vec3 slope = us_vec3_make(-along * ax - across * lx, -along * ay - across * ly, 1);
        n = us_vec3_scale(1 / us_vec3_norm(slope), slope);
    }
    us_vec3 ahead = us_vec3_cross(axle, n);
    double size = us_vec3_norm(ahead);
    if (size < ON_ITS_SIDE) return false;
    ahead = us_vec3_scale(1 / size, ahead);
    us_vec3 left = us_vec3_cross(n, ahead);
    k->hub = usi_v4_from(X_WS.p);
    k->up = turn_to_world(e, n);
    k->ahead = turn_to_world(e, ahead);
    k->left = turn_to_world(e, left);
    usi_v4 v = B->v + usi_v4_cross(B->w, k->hub - B->p);
    k->vx = usi_v4_dot(k->ahead, v);
    k->vy = usi_v4_dot(k->left, v);
    k->spin = usi_v4_dot(turn_to_world(e, axle), B->w);
    // One that stands meets the soil that it came to, whichever way it trembles: behind it is its own rut.
    bool is_still = fmax(fabs(k->vx), fabs(r * k->spin)) < ROLL;
    k->direction = is_still && last[1] != 0 ? copysign(1, last[1])
                                            : us_soil_wheel_slip(&k->wheel, k->vx, k->vy, k->spin).forward;
    k->has_turned = k->direction * last[1] < 0;
    double below = 0, pressed = 0;
    // Beyond the columns that it has pressed itself.
    double ahead_at[2] = {LOOK_AHEAD[0] * reach, LOOK_AHEAD[1] * reach};
    if (e->patch) {
        ahead_at[0] += e->patch->spacing;
        ahead_at[1] = fma(LOOK_AHEAD[1], reach, e->patch->spacing);
    }
    for (int i = 0; i < 4; i++) {
        double direction = k->direction * ahead_at[i & 1], aside = (i & 2 ? LOOK_ASIDE : -LOOK_ASIDE) * b;
        double x = p.x + direction * ax + aside * lx, y = p.y + direction * ay + aside * ly;
        double height = usi_ground_at(e->g, x, y);
        if (e->patch) {
            column at = column_of(e->patch, x, y);
            height += change_in(e->patch, at);
            pressed += 0.25 * pressed_in(e->patch, at);
        }
        below += 0.25 * us_vec3_dot(us_vec3_make(p.x - x, p.y - y, p.z - height), n);
    }
    // A patch shows how deep the soil was pressed: without its load it has come up a little.
    k->sinkage = r - below + (pressed > 0 ? pressed - us_soil_rut_depth(soil, b, pressed) : 0);
    k->load = (us_soil_history){pressed, us_vec3_norm(c->model->gravity)};
    k->wheel.dug = clamp(last[0], 0, fmax(k->sinkage, 0));
    return true;
}

static double step_between(double x, double low, double high) {
    double t = clamp((x - low) / (high - low), 0, 1);
    return t * t * (3 - 2 * t);
}

// Bounds what soil does along the ground by what it carries: a wheel that hardly presses, since it comes up
// out of the hole that it dug, is not held by cohesion on the hole's walls.
static void bound_reaction(us_wheel_reaction *f, double r) {
    double carries = fmax(f->force.z, 0), shear = f->moment.y / r, lean = f->force.x - shear;
    double along = clamp(shear, -MAX_FRICTION * carries, MAX_FRICTION * carries);
    f->force.y = clamp(f->force.y, -MAX_FRICTION * carries, MAX_FRICTION * carries);
    f->force.x = along + clamp(lean, -MAX_LEAN * carries, MAX_LEAN * carries);
    f->moment.y = r * along;
}

// The library's own law of a wheel: its forces and their slopes.
static us_soil_answer wheel_answer(usi_soil_contact *k, const us_soil *soil, bool is_trial) {
    double r = us_soil_wheel_radius(&k->wheel), rim = r * k->spin, g = k->load.gravity;
    double speed = fmax(fabs(rim), sqrt(k->vx * k->vx + k->vy * k->vy));
    // What hardly moves has no slip: its share fades out with the rest.
    k->blend = is_trial ? 0 : step_between(speed, REST, ROLL);
    k->reaction =
        us_soil_wheel_reaction_faded(soil, &k->wheel, k->load, k->sinkage, k->vx, k->vy, k->spin, k->blend);
    bound_reaction(&k->reaction, r);
    const us_vec3 f = k->reaction.force;
    // Sunk deeper than the model goes the wheel is carried by more than the rim.
    us_soil_answer a = {.force = f, .moment = k->reaction.moment.y};
    a.stiffness = fmax(k->reaction.parts.stiffness, fmax(f.z, 1) / r);
    double fz = fmax(f.z, 0) + (k->reaction.parts.is_buried ? a.stiffness * (k->sinkage - 0.95 * r) : 0);
    a.force.z = fz;
    // How the shear falls as the rim goes faster over the soil.
    double dv = 0.02 * fmax(speed, REST), sign = k->reaction.slip.forward;
    us_wheel_reaction faster = us_soil_wheel_reaction_faded(soil, &k->wheel, k->load, k->sinkage,
                                                            k->vx + sign * dv, k->vy, k->spin, k->blend);
    bound_reaction(&faster, r);
    double shear = k->reaction.moment.y / r,
           along = sign * (k->reaction.moment.y - faster.moment.y) / (r * dv);
    a.drag[0] = fmax(fmax(along, fabs(shear) / 10), 1e-3);
    // Where the soil has turned a light wheel round within a step, the slope here does not know of the way
    // back: the same shear would turn it round again, step by step. The chord to a rim that stands ends
    // there.
    if (k->has_turned) a.drag[0] = fmax(a.drag[0], fabs(shear) / fmax(fabs(k->vx - rim), REST));
    double isotropic =
        soil->lateral == US_LATERAL_ISHIGAMI ? a.drag[0] * fmax(soil->shear_x / soil->shear_y, 1) : a.drag[0];
    a.drag[1] = fmax(isotropic, fabs(f.y) / fmax(fabs(k->vy), REST));
    // A wheel that hardly presses is held by its weight, not by glue: the ratio of cohesion and load would
    // grow beyond all bounds.
    double area = k->wheel.width * r * (k->reaction.parts.entry - k->reaction.parts.exit);
    a.friction = fz > 0 ? fmin(tan(soil->friction_angle) + soil->cohesion * area / fz, MAX_FRICTION) : 0;
    a.damping = 2 * WHEEL_DAMPING * sqrt(a.stiffness * (fmax(fz, 1) / fmax(g, 0.1)));
    a.hold = HOLD * fmax(usi_friction_limit(a.friction, fz), 1) / soil->shear_x;
    a.torsion = 0.25 * k->wheel.width;
    return a;
}

// What an ordinary point would say in the place of a wheel.
static void wheel_law(usi_soil_contact *k, const us_soil_answer *a, bool is_trial, double normal_velocity,
                      us_touch_law *law) {
    double r = us_soil_wheel_radius(&k->wheel), shear = a->moment / r, fz = a->force.z;
    k->reaction.force = us_vec3_make(a->force.x, a->force.y, k->reaction.force.z);
    k->reaction.moment.y = a->moment;
    k->drag[0] = a->drag[0];
    k->drag[1] = a->drag[1];
    // The resultant of the normal stress leans backward in motion. At rest it is upright.
    double lean = k->blend * (a->force.x - shear);
    k->force = sqrt(fz * fz + lean * lean);
    double upright = k->force > 0 ? fz / k->force : 1;
    k->stiffness = a->stiffness * upright * upright;
    double mass = fmax(fz, 1) / fmax(k->load.gravity, 0.1), rest = 1 - k->blend,
           friction = rest * a->friction;
    *law = (us_touch_law){.stiffness = k->stiffness,
                          .damping = a->damping,
                          .tangent_stiffness = a->hold,
                          .tangent_damping = 2 * sqrt(a->hold * mass),
                          .static_friction = friction,
                          .kinetic_friction = friction,
                          .torsion = friction * a->torsion,
                          .rolling = fz > 0 ? rest * r * fabs(a->force.x - shear) / fz : 0};
    if (is_trial) law->static_friction = law->kinetic_friction = law->torsion = law->rolling = 0;
    law->force = k->force - law->damping * normal_velocity;
}

// What the wheel has dug after a step, m. One that rests digs nothing, however it trembles.
static double dig(const usi_soil_contact *k, const us_soil *soil, double step) {
    double moved = step * k->blend, slide = k->vx - us_soil_wheel_radius(&k->wheel) * k->spin;
    return us_soil_wheel_dig(soil, &k->wheel, k->sinkage, moved * slide, moved * k->vx);
}

void usi_soil_tilt(const usi_contacts *c, const usi_island *s, const usi_soil_contact *k, usi_block *point) {
    double r = us_soil_wheel_radius(&k->wheel), shear = k->reaction.moment.y / r,
           lean = k->blend * (k->reaction.force.x - shear);
    double upright = sqrt(fmax(k->force * k->force - lean * lean, 0));
    usi_v4 d = k->force > 0 ? (k->up * upright + k->ahead * lean) * (1 / k->force) : k->up,
           hub = k->hub - s->O + k->left * k->aside;
    point->d[0] = -d;
    point->m[0] = usi_v4_cross(hub, -d);
    usi_v4 rim = hub - k->up * r, side = hub - k->up * (r * cos(0.5 * k->reaction.parts.entry));
    point->m[1] = usi_v4_cross(rim, point->d[1]);
    point->m[2] = usi_v4_cross(side, point->d[2]);
    // Rolling on is no way out of the soil, though the row leans.
    if (k->sinkage > 0 && k->force > 0)
        point->b[0] = -point->R[0] * c->model->step * k->force - k->vx * lean / k->force;
}

void usi_soil_slip_block(const usi_contacts *c, const usi_soil_contact *k, const usi_block *point,
                         usi_block *out) {
    double h = c->model->step, r = us_soil_wheel_radius(&k->wheel), shear = k->reaction.moment.y / r;
    const double force[2] = {shear, k->reaction.force.y}, u[2] = {k->vx - r * k->spin, k->vy};
    *out = (usi_block){.law = USI_EQUAL, .n = 2, .a = point->a, .b_ = point->b_, .point = -1};
    for (int j = 0; j < 2; j++) {
        out->d[j] = point->d[j + 1];
        out->m[j] = point->m[j + 1];
        out->K[j] = h * k->blend * k->drag[j];
        out->R[j] = 1 / out->K[j];
        out->b[j] = -u[j] - force[j] / k->drag[j];
        out->g[j] = h * k->blend * force[j];
    }
    out->d[2] = out->m[2] = usi_v4_zero();
    out->R[2] = out->R[1];
}

// ---------------------------------------------------------------- feet

// What a foot at a depth carries in soil that was never pressed deeper, how that grows, and the area.
static double carry(const usi_soil_contact *k, double pressure, double n, double depth, double *out_slope,
                    double *out_area) {
    double p = depth > 0 ? pressure * pow(depth, n) : 0;
    if (k->radius > 0) {
        // Rings of a ball: the integral of k z^n over them, z = depth - a^2 / 2R. Of a capsule's half it is
        // half a ball, and a strip of lines.
        double share = k->strip > 0 ? 0.5 : 1, half = sqrt(2 * k->radius * depth), lines = 0;
        if (k->strip > 0)
            lines = 2 * half * k->strip * p * 0.5 * sqrt(M_PI) * tgamma(n + 1) / tgamma(n + 1.5);
        *out_area = share * 2 * M_PI * k->radius * depth + 2 * half * k->strip;
        *out_slope = share * 2 * M_PI * k->radius * p + (depth > 0 ? (n + 0.5) * lines / depth : 0);
        return share * 2 * M_PI * k->radius * p * depth / (n + 1) + lines;
    }
    *out_area = k->area;
    *out_slope = depth > 0 ? k->area * n * p / depth : 0;
    return k->area * p;
}

// The force of a foot at a depth and its slope; that of fresh soil, its slope, and the area.
static void press_foot(usi_soil_contact *k, const us_soil *soil, double deepest, double normal_velocity,
                       double *out_slope, double *out_area) {
    const double depth = fmax(k->sinkage, 0);
    double slope, area;
    double width =
        k->radius > 0 ? fmax(2 * sqrt(2 * k->radius * fmax(deepest, 1e-6)), 1e-4) : sqrt(fmax(k->area, 1e-8));
    double pressure = us_soil_modulus(soil, width), max = carry(k, pressure, soil->n, deepest, &slope, &area);
    // Never softer than the fresh soil: the line ends where it began to unload, and meets 0 in the soil.
    double again = fmax((soil->unload + soil->unload_depth * deepest) * area,
                        fmax(slope, deepest > 0 ? max / deepest : 0));
    bool is_new = depth >= deepest;
    k->force = is_new ? max : fmax(0, max - again * (deepest - depth));
    k->stiffness = fmax(is_new && normal_velocity <= 0 ? slope : again, 1);
    *out_slope = slope;
    *out_area = area;
}

// The print of a foot, its area or the length of its strip, is that of the shape as it lies now, which may be
// ten times as large in the next step when another of its faces comes down. What the soil carries may not
// grow with it at once: coming up again it would give back what nobody pressed into it. While it carries
// something a print is as large as it was, or as much larger as it has become deeper, several times over; and
// grows with a time of 0.1 s besides, slower than what is thrown up and faster than what rocks to rest.
static double steady_print(const usi_soil_contact *k, double size, const double memory[US_TOUCH_MEMORY],
                           double step) {
    const double growth = 4, time = 0.1;
    if (!(memory[0] > 0 && memory[1] != 0 && k->force > 0)) return size;
    const double deeper = fmax(0, k->sinkage / memory[0] - 1);
    return fmin(size, fabs(memory[1]) * (1 + growth * deeper + step / time));
}

// memory[0]: how deep it was pressed; memory[1]: its print, negative where that is of something curved.
static void foot_law(usi_soil_contact *k, const us_soil *soil, const us_touch *seen, double normal_velocity,
                     double memory[US_TOUCH_MEMORY], us_touch_law *law) {
    const double deepest = fmax(memory[0], fmax(k->sinkage, 0));
    double *const print = k->radius > 0 ? &k->strip : &k->area;
    double slope, area;
    press_foot(k, soil, deepest, normal_velocity, &slope, &area);
    const double steady = steady_print(k, *print, memory, seen->step);
    if (steady < *print) {
        *print = steady;
        press_foot(k, soil, deepest, normal_velocity, &slope, &area);
    }
    memory[0] = deepest;
    memory[1] = k->radius > 0 ? k->strip : k->is_curved ? -k->area : k->area;
    double mass = seen->mass, mu = k->force > 0 ? tan(soil->friction_angle) + soil->cohesion * area / k->force
                                                : tan(soil->friction_angle);
    mu = fmin(mu, MAX_FRICTION);
    double hold = HOLD * fmax(usi_friction_limit(mu, k->force), 1) / soil->shear_x,
           round = k->is_curved ? sqrt(k->area) : k->radius;
    // Flat faces have levers in their four points; what is round rolls out of its print.
    double lever = sqrt(2 * round * deepest);
    *law = (us_touch_law){.stiffness = k->stiffness,
                          .damping = 2 * FOOT_DAMPING * sqrt(fmax(slope, 1) * mass),
                          .tangent_stiffness = hold,
                          .tangent_damping = 2 * sqrt(hold * mass),
                          .static_friction = mu,
                          .kinetic_friction = mu,
                          .torsion = 0.67 * lever * fmin(mu, 1),
                          .rolling = 0.5 * lever};
    law->force = k->force - law->damping * normal_velocity;
}

// The part of a wheel that lies in one of several soils.
static void take_share(us_soil_answer *a, double share) {
    a->force = us_vec3_scale(share, a->force);
    a->moment *= share;
    a->stiffness *= share;
    a->damping *= share;
    a->drag[0] *= share;
    a->drag[1] *= share;
    a->hold *= share;
    a->torsion *= share;
}

bool usi_soil_law(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                  usi_soil_contact *k, const us_touch *seen, double normal_velocity,
                  double memory[US_TOUCH_MEMORY], us_touch_law *law) {
    if (k->is_node) return usi_node_law(k, seen->mass, normal_velocity, law);
    const us_soil *soil = usi_soil_contact_soil(c, next, k);
    bool ok = true;
    if (k->is_wheel) {
        us_soil_answer a = wheel_answer(k, soil, c->is_trial);
        if (usi_has_own_law(c, k)) ok = usi_soil_ask(c, now, next, k, soil, seen, normal_velocity, &a);
        if (k->share != 1) take_share(&a, k->share);
        wheel_law(k, &a, c->is_trial, normal_velocity, law);
        memory[0] = dig(k, soil, c->is_trial ? 0 : c->model->step);
        memory[1] = k->direction * fmax(k->sinkage, DBL_MIN);
    } else {
        foot_law(k, soil, seen, normal_velocity, memory, law);
        if (usi_has_own_law(c, k)) ok = usi_soil_ask_foot(c, now, next, k, soil, seen, normal_velocity, law);
    }
    return ok;
}

// The point of a foot where fresh soil would be. One that stays keeps the surface that it met: its own print
// is no soil that gives way. One that slides takes that of the soil it comes to, within its own length.
static void place_foot(const usi_contacts *c, const usi_contact_state *now, const ground *e, usi_point_now *p,
                       us_vec3 bottom, double length) {
    double pressed = e->patch ? pressed_in(e->patch, column_of(e->patch, bottom.x, bottom.y)) : 0,
           fresh = usi_surface_at(e->g, e->patch, bottom.x, bottom.y) + pressed;
    if (p->old >= 0) {
        us_vec3 was =
            to_ground(e, usi_v4_vec3(c->collide.collision_body[0].p +
                                     usi_to_world(&c->collide.collision_body[0], now->anchor[p->old].p_A)));
        double dx = bottom.x - was.x, dy = bottom.y - was.y,
               share = fmin(1, sqrt(dx * dx + dy * dy) / length);
        double kept = was.z + usi_ground_at(e->g, bottom.x, bottom.y) - usi_ground_at(e->g, was.x, was.y);
        fresh = kept + share * (fresh - kept);
    }
    us_vec3 top = us_vec3_make(bottom.x, bottom.y, fresh);
    p->p_A = usi_v4_from(us_pose_point(e->X_WG, top));
    p->p_B = usi_v4_from(us_pose_point(e->X_WG, bottom));
    p->p = p->p_B;
    p->gap = usi_v4_dot(p->n, p->p_A - p->p_B);
}

us_vec3 usi_ground_normal(const usi_geom *g, double x, double y, double reach) {
    if (g->geom.kind != US_GEOM_HEIGHT_FIELD) return us_vec3_make(0, 0, 1);
    double along = (usi_ground_at(g, x + reach, y) - usi_ground_at(g, x - reach, y)) / (2 * reach);
    double across = (usi_ground_at(g, x, y + reach) - usi_ground_at(g, x, y - reach)) / (2 * reach);
    us_vec3 slope = us_vec3_make(-along, -across, 1);
    return us_vec3_scale(1 / us_vec3_norm(slope), slope);
}

// ---------------------------------------------------------------- points

usi_point_now *usi_add_soil_point(usi_contacts *c, usi_touch *t, uint64_t feature,
                                  usi_soil_contact **out_sunk) {
    usi_point_now *p = usi_next_point(c);
    if (!p) return NULL;
    p->feature = feature;
    p->old = -1;
    p->is_same = false;
    p->may_press = c->collide.may_press[c->collide.n_touch] = true;
    p->touch = c->collide.n_touch;
    p->soil_contact = c->collide.n_soil_contact;
    *out_sunk = &c->collide.soil_contact[c->collide.n_soil_contact++];
    **out_sunk = (usi_soil_contact){.point = (int32_t)(p - c->collide.point),
                                    .geom = t->geom_b,
                                    .ground = t->geom_a,
                                    .material = t->material,
                                    .slip_block = -1,
                                    .share = 1};
    t->n++;
    return p;
}

static void take_back(usi_contacts *c, usi_touch *t) {
    c->collide.n_point--;
    c->collide.n_soil_contact--;
    c->error_count--;
    t->n--;
}

// Of a foot that goes on, the anchor with its feature.
static int32_t find_old(const usi_contact_state *now, const usi_touch *before, uint64_t feature) {
    for (int32_t i = 0; before && i < before->n; i++) {
        if (now->anchor[before->first + i].feature == feature) return before->first + i;
    }
    return -1;
}

// PART_FEATURE and its material: a part of a wheel that lies in several soils.
enum { WHEEL_FEATURE = 1, BALL_FEATURE = 2, CORNER_FEATURE = 4, HALF_FEATURE = 8, PART_FEATURE = 1 << 16 };

static inline bool is_of_wheel(uint64_t feature) {
    return feature == WHEEL_FEATURE || (feature >= PART_FEATURE && feature < USI_NODE_FEATURE);
}
static inline bool is_round(uint64_t feature) { return feature == BALL_FEATURE || feature >= HALF_FEATURE; }

// A foot's point that is there; false: it is not near the soil.
static bool add_foot(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t,
                     const ground *e, uint64_t feature, usi_v4 up, us_vec3 bottom, double length,
                     usi_soil_contact **out) {
    usi_soil_contact *k;
    usi_point_now *p = usi_add_soil_point(c, t, feature, &k);
    if (!p) return false;
    p->n = -up;
    p->old = find_old(now, before, feature);
    place_foot(c, now, e, p, bottom, length);
    k->sinkage = -p->gap;
    *out = k;
    if (p->gap > c->collide.grow[t->geom_b]) {
        take_back(c, t);
        return false;
    }
    usi_look_at_soil_maps(c, now, k, bottom.x, bottom.y);
    return true;
}

// What is round touches with its lowest point against the slope: it presses through its middle, and rolls. A
// ball has one; a capsule two, which stand where a strip that lies evenly is carried as by two points, and at
// the ends when it stands upright.
static void find_round_feet(usi_contacts *c, const usi_contact_state *now, const usi_touch *before,
                            usi_touch *t, const ground *e, us_pose X_GS, usi_v4 up) {
    const us_geom *g = &c->model->geom[t->geom_b].geom;
    us_vec3 n = turn_to_ground(e, usi_v4_vec3(up)), axis = us_quat_rotate(X_GS.q, us_vec3_make(0, 0, 1));
    const double straight = g->kind == US_GEOM_CAPSULE ? g->size[0] : 0, upright = fabs(us_vec3_dot(axis, n));
    const double middle = 1 / sqrt(3), at = straight * (middle + (1 - middle) * upright);
    for (int i = 0; i < (straight > 0 ? 2 : 1); i++) {
        us_vec3 centre = us_vec3_add(X_GS.p, us_vec3_scale(i ? -at : straight > 0 ? at : 0, axis));
        usi_soil_contact *k;
        if (!add_foot(c, now, before, t, e,
                      straight > 0 ? (uint64_t)(HALF_FEATURE + i) : (uint64_t)BALL_FEATURE, up,
                      us_vec3_sub(centre, us_vec3_scale(g->radius, n)), fmax(0.3 * g->radius, 1e-3), &k))
            continue;
        k->radius = g->radius;
        k->strip = straight * sqrt(fmax(1 - upright * upright, 0));
    }
}

// The shape as the slope sees it: z along the slope's normal n, x as the more level one of the shape's own
// axes x and y runs.
static us_quat turn_to_slope(us_pose X_GS, us_vec3 n) {
    us_vec3 x = us_quat_rotate(X_GS.q, us_vec3_make(1, 0, 0)),
            y = us_quat_rotate(X_GS.q, us_vec3_make(0, 1, 0));
    us_vec3 along = fabs(us_vec3_dot(x, n)) <= fabs(us_vec3_dot(y, n)) ? x : y;
    along = us_vec3_sub(along, us_vec3_scale(us_vec3_dot(along, n), n));
    along = us_vec3_scale(1 / us_vec3_norm(along), along);
    us_vec3 across = us_vec3_cross(n, along);
    return us_quat_from_matrix(
        (us_mat3){{along.x, across.x, n.x, along.y, across.y, n.y, along.z, across.z, n.z}});
}

static void find_feet(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t,
                      const ground *e) {
    const us_geom *g = &c->model->geom[t->geom_b].geom;
    us_pose X_GS =
        us_pose_mul(us_pose_inverse(e->X_WG),
                    usi_geom_pose(c, t->geom_b, &c->collide.collision_body[c->body_of_geom[t->geom_b]]));
    us_aabb box = us_geom_box(g, X_GS);
    double wide = box.max.x - box.min.x, deep = box.max.y - box.min.y, cx = 0.5 * (box.min.x + box.max.x),
           cy = 0.5 * (box.min.y + box.max.y);
    if (!is_over(e->g, cx, cy) || !isfinite(wide) || !isfinite(deep)) return;
    usi_v4 up = turn_to_world(e, usi_ground_normal(e->g, cx, cy, 0.25 * (wide + deep)));
    if (g->kind == US_GEOM_SPHERE || g->kind == US_GEOM_CAPSULE) {
        find_round_feet(c, now, before, t, e, X_GS, up);
        return;
    }
    // Anything else has four, each in the middle of a quarter of what the slope sees of it. Seen from above
    // instead, something round would lie off its lowest line, and roll uphill.
    us_quat q_GE = turn_to_slope(X_GS, turn_to_ground(e, usi_v4_vec3(up)));
    us_pose X_ES = us_pose_mul((us_pose){us_quat_conj(q_GE), us_vec3_make(0, 0, 0)}, X_GS);
    box = us_geom_box(g, X_ES);
    wide = box.max.x - box.min.x;
    deep = box.max.y - box.min.y;
    for (int i = 0; i < 4; i++) {
        us_vec3 from = us_vec3_make(box.min.x + (i & 1 ? 0.75 : 0.25) * wide,
                                    box.min.y + (i & 2 ? 0.75 : 0.25) * deep, box.min.z - 1e-3);
        us_ray_hit hit = us_geom_ray(g, X_ES, from, us_vec3_make(0, 0, 1), box.max.z - box.min.z + 2e-3);
        if (!isfinite(hit.range)) continue;
        us_vec3 bottom = us_quat_rotate(q_GE, us_vec3_make(from.x, from.y, from.z + hit.range));
        usi_soil_contact *k;
        if (!add_foot(c, now, before, t, e, (uint64_t)(CORNER_FEATURE + i), up, bottom,
                      fmax(0.25 * sqrt(wide * deep), 1e-3), &k))
            continue;
        // A face that stands steep carries little.
        k->area = 0.25 * wide * deep * fmax(0.1, -hit.normal.z);
        k->is_curved = -hit.normal.z < FLAT;
    }
}

// Which point a wheel's part goes on from: the same part, or the wheel as a whole when all of it lay in that
// soil. -1: none.
static int32_t find_old_wheel(const usi_contact_state *now, const usi_touch *before, int32_t material,
                              bool is_part) {
    const bool was_in_it = before && before->material == material;
    int32_t whole = was_in_it ? find_old(now, before, WHEEL_FEATURE) : -1,
            part = before && before->n > 0 && now->anchor[before->first].feature >= PART_FEATURE
                       ? find_old(now, before, (uint64_t)PART_FEATURE + (uint64_t)material)
                       : -1;
    return is_part ? (part >= 0 ? part : whole) : (whole >= 0 ? whole : part);
}

// A wheel, or the part of it in one soil. False: it lies on its side.
static bool add_wheel(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t,
                      const ground *e, const usi_wheel_part *part) {
    const us_model *m = c->model;
    const bool is_part = part->share != 1;
    usi_soil_contact *k;
    usi_point_now *p = usi_add_soil_point(
        c, t, is_part ? (uint64_t)PART_FEATURE + (uint64_t)part->material : WHEEL_FEATURE, &k);
    if (!p) return true;
    k->material = part->material;
    k->share = part->share;
    k->aside = part->aside;
    p->old = find_old_wheel(now, before, part->material, is_part);
    // A part that is new has sunk and dug as the rest of its wheel.
    const int32_t last_at = p->old >= 0 || !is_part || !before || before->n == 0 ||
                                    !is_of_wheel(now->anchor[before->first].feature)
                                ? p->old
                                : before->first;
    static const double nothing[US_TOUCH_MEMORY];
    const double *last = last_at >= 0 ? now->anchor[last_at].memory : nothing;
    if (e->g->has_soil_map) {
        us_pose X_WS = usi_geom_pose(c, t->geom_b, &c->collide.collision_body[c->body_of_geom[t->geom_b]]);
        us_vec3 axle = us_quat_rotate(X_WS.q, us_vec3_make(0, 0, part->aside)),
                middle = to_ground(e, us_vec3_add(X_WS.p, axle));
        usi_look_at_soil_maps(c, now, k, middle.x, middle.y);
    }
    if (!look_at_wheel(c, e, &m->material[m->geom[t->geom_b].material], usi_soil_contact_soil(c, now, k),
                       t->geom_b, last, k)) {
        take_back(c, t);
        return false;
    }
    us_vec3 hub = to_ground(e, usi_v4_vec3(k->hub));
    k->is_wheel = 1;
    p->n = -k->up;
    p->p = p->p_A = p->p_B = k->hub - k->up * us_soil_wheel_radius(&k->wheel) + k->left * k->aside;
    p->gap = -k->sinkage;
    if (p->gap > c->collide.grow[t->geom_b] || !is_over(e->g, hub.x, hub.y)) take_back(c, t);
    return true;
}

// A cylinder in the soils that it lies in. False: it is no wheel, it lies on its side.
static bool add_wheels(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t,
                       const ground *e) {
    const usi_geom *g = &c->model->geom[t->geom_b];
    usi_wheel_part part[USI_WHEEL_PARTS] = {{.material = t->material, .share = 1}};
    int32_t n = 1;
    if (e->g->has_region) {
        us_pose X_WS = usi_geom_pose(c, t->geom_b, &c->collide.collision_body[c->body_of_geom[t->geom_b]]);
        us_vec3 axle = turn_to_ground(e, us_quat_rotate(X_WS.q, us_vec3_make(0, 0, 1)));
        n = usi_split_wheel(c, now, t, to_ground(e, X_WS.p), axle, 2 * (g->geom.size[1] + g->geom.radius),
                            part);
    }
    for (int32_t i = 0; i < n; i++) {
        if (!add_wheel(c, now, before, t, e, &part[i])) return false;
    }
    return true;
}

void usi_soil_points(usi_contacts *c, const usi_contact_state *now, const usi_touch *before, usi_touch *t,
                     bool is_same_place) {
    const us_model *m = c->model;
    ground e = ground_of(c, t->geom_a);
    const usi_geom *g = &m->geom[t->geom_b];
    if (usi_ground_model_acts(c, t)) {
        usi_ground_points(c, now, before, t);
        return;
    }
    // Points of a ground model's columns, which acted in the last step, say nothing about wheels and feet.
    if (before && before->n > 0 && now->anchor[before->first].feature >= USI_NODE_FEATURE) before = NULL;
    if (g->geom.kind == US_GEOM_CYLINDER && add_wheels(c, now, before, t, &e)) return;
    if (before && before->material != t->material) before = NULL;
    if (is_same_place && before && before->n > 0 && !is_of_wheel(now->anchor[before->first].feature)) {
        int32_t first = c->collide.n_point;
        usi_reuse_points(c, now, before, t);
        for (int32_t i = first; i < c->collide.n_point; i++) {
            usi_point_now *p = &c->collide.point[i];
            const double kept = now->anchor[p->old].memory[1];
            p->soil_contact = c->collide.n_soil_contact;
            c->collide.soil_contact[c->collide.n_soil_contact++] =
                (usi_soil_contact){.point = i,
                                   .geom = t->geom_b,
                                   .ground = t->geom_a,
                                   .material = t->material,
                                   .slip_block = -1,
                                   .share = 1,
                                   .radius = is_round(p->feature) ? g->geom.radius : 0,
                                   .strip = is_round(p->feature) ? kept : 0,
                                   .area = is_round(p->feature) ? 0 : fabs(kept),
                                   .is_curved = !is_round(p->feature) && kept < 0,
                                   .sinkage = -p->gap};
            if (!e.g->has_soil_map) continue;
            us_vec3 bottom = to_ground(&e, usi_v4_vec3(p->p_B));
            usi_look_at_soil_maps(c, now, &c->collide.soil_contact[c->collide.n_soil_contact - 1], bottom.x,
                                  bottom.y);
        }
        return;
    }
    find_feet(c, now, before, t, &e);
}
