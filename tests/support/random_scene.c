// See random_scene.h.
#include "random_scene.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const double G = 9.81;
// Steps that a body may be under the ground while an impact turns it round.
enum { MAX_UNDER = 16 };
enum { MAX_BODY = 12, N_FIELD = 33, N_DENSE = 129, N_HULL = 14 };

typedef struct dice {
    uint64_t seed, counter;
} dice;

static double roll(dice *d, double low, double high) {
    return build_uniform(d->seed, &d->counter, low, high);
}
static double roll_log(dice *d, double low, double high) { return exp(roll(d, log(low), log(high))); }
static int roll_int(dice *d, int n) { return (int)fmin(floor(roll(d, 0, n)), n - 1); }

// ---------------------------------------------------------------- the ground

static double bump(double x, double y, double high) { return high * (sin(2.1 * x) * cos(1.7 * y) - 1); }

// `surface` may be NULL; `bed`: m between the columns of soil that bodies press down, 0: none.
static void add_field(us_spec *spec, double spacing, double high, const char *surface, double bed) {
    static double heights[N_FIELD * N_FIELD];
    for (int j = 0; j < N_FIELD; j++) {
        for (int i = 0; i < N_FIELD; i++)
            heights[j * N_FIELD + i] = bump(i, j, high);
    }
    us_shape_def shape = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    shape.link = US_WORLD;
    shape.heights = heights;
    shape.n_x = shape.n_y = N_FIELD;
    shape.size[0] = shape.size[1] = spacing;
    shape.surface = surface;
    shape.patch_spacing = bed;
    shape.patch_depth = bed > 0 ? 40 * bed : shape.patch_depth;
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

// The same surface as a mesh of triangles, open below, with n_side points each way.
static void add_mesh(us_spec *spec, int n_side, double spacing, double high) {
    static us_vec3 point[N_DENSE * N_DENSE];
    static int32_t triangle[2 * (N_DENSE - 1) * (N_DENSE - 1)][3];
    int n = 0;
    for (int j = 0; j < n_side; j++) {
        for (int i = 0; i < n_side; i++)
            point[j * n_side + i] = us_vec3_make(spacing * (i - 0.5 * (n_side - 1)),
                                                 spacing * (j - 0.5 * (n_side - 1)), bump(i, j, high));
    }
    for (int j = 0; j + 1 < n_side; j++) {
        for (int i = 0; i + 1 < n_side; i++) {
            const int32_t at = j * n_side + i,
                          two[2][3] = {{at, at + 1, at + n_side + 1}, {at, at + n_side + 1, at + n_side}};
            for (int k = 0; k < 6; k++)
                triangle[n + k / 3][k % 3] = two[k / 3][k % 3];
            n += 2;
        }
    }
    us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
    shape.link = US_WORLD;
    shape.points = point;
    shape.n_point = shape.n_vertex = n_side * n_side;
    shape.triangles = triangle[0];
    shape.n_triangle = n;
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

static void add_ground(us_spec *spec, dice *d, double max_size, random_scene *s) {
    static const char *const names[] = {"plane", "box", "mesh", "field"};
    const int kind = roll_int(d, 4);
    const double spacing = max_size * roll_log(d, 0.3, 3), high = spacing * roll(d, 0, 0.3);
    s->extent = 0.5 * spacing * (N_FIELD - 1);
    s->floor = kind < 2 ? 0 : -2 * high;
    s->deep = 0;
    s->ground = names[kind];
    if (kind == 0) {
        scene_ground(spec);
        s->extent = INFINITY;
    } else if (kind == 1) {
        s->extent = 30 * max_size;
        scene_add_box(spec, US_WORLD, us_vec3_make(2 * s->extent, 2 * s->extent, max_size),
                      us_vec3_make(0, 0, -0.5 * max_size));
    } else if (kind == 2) {
        add_mesh(spec, N_FIELD, spacing, high);
    } else {
        add_field(spec, spacing, high, NULL, 0);
    }
}

// ---------------------------------------------------------------- bodies

// A triangle across the box, and a fourth corner on top of it.
static void set_corners(us_vec3 *point, us_vec3 l) {
    point[0] = us_vec3_make(-0.3 * l.x, -0.3 * l.y, -0.2 * l.z);
    point[1] = us_vec3_make(0.4 * l.x, -0.3 * l.y, -0.2 * l.z);
    point[2] = us_vec3_make(-0.1 * l.x, 0.4 * l.y, -0.2 * l.z);
    point[3] = us_vec3_make(0, 0, 0.4 * l.z);
}

// A bar, and a ball around one end of it that is thicker.
static void set_parts(us_shape_def *part, us_vec3 l) {
    const double r = 0.5 * fmin(fmin(l.x, l.y), l.z);
    part[0] = us_shape_def_default(US_SHAPE_BOX);
    part[0].size[0] = l.x;
    part[0].size[1] = part[0].size[2] = 1.2 * r;
    part[1] = us_shape_def_default(US_SHAPE_SPHERE);
    part[1].size[0] = r;
    part[1].X_BG.p = us_vec3_make(0.5 * l.x - r, 0, 0);
}

// A shape within a box of these lengths about the point p of the link.
static void add_shape(us_spec *spec, dice *d, int32_t link, us_vec3 l, us_vec3 p) {
    static const us_shape_kind kinds[] = {
        US_SHAPE_BOX,      US_SHAPE_SPHERE,      US_SHAPE_CYLINDER, US_SHAPE_CAPSULE,     US_SHAPE_LOZENGE,
        US_SHAPE_DISC,     US_SHAPE_CONE,        US_SHAPE_CONVEX,   US_SHAPE_ELLIPSOID,   US_SHAPE_MESH,
        US_SHAPE_TRIANGLE, US_SHAPE_TETRAHEDRON, US_SHAPE_UNION,    US_SHAPE_INTERSECTION};
    const us_shape_kind kind = kinds[roll_int(d, (int)(sizeof kinds / sizeof *kinds))];
    const double r = 0.5 * fmin(l.x, l.y);
    us_shape_def shape = us_shape_def_default(kind);
    us_vec3 point[N_HULL];
    us_shape_def part[2];
    shape.link = link;
    shape.X_BG.p = p;
    double size[3] = {r, l.z, 0};
    if (kind == US_SHAPE_MESH) {
        scene_add_mesh(spec, link, l, p);
        return;
    }
    if (kind == US_SHAPE_BOX) {
        size[0] = l.x;
        size[1] = l.y;
        size[2] = l.z;
    } else if (kind == US_SHAPE_SPHERE) {
        size[0] = 0.5 * fmin(fmin(l.x, l.y), l.z);
    } else if (kind == US_SHAPE_LOZENGE) {
        size[0] = 0.7 * l.x;
        size[1] = 0.7 * l.y;
        size[2] = 0.15 * fmin(fmin(l.x, l.y), l.z);
    } else if (kind == US_SHAPE_DISC) {
        size[1] = 0.2 * r;
    } else if (kind == US_SHAPE_ELLIPSOID) {
        size[0] = 0.5 * l.x;
        size[1] = 0.5 * l.y;
        size[2] = 0.5 * l.z;
    } else if (kind == US_SHAPE_CONVEX) {
        for (int i = 0; i < N_HULL; i++)
            point[i] = us_vec3_make((i & 1 ? 0.5 : -0.5) * l.x * roll(d, 0.3, 1),
                                    (i & 2 ? 0.5 : -0.5) * l.y * roll(d, 0.3, 1),
                                    (i & 4 ? 0.5 : -0.5) * l.z * roll(d, 0.3, 1));
        shape.points = point;
        shape.n_point = N_HULL;
    } else if (kind == US_SHAPE_TRIANGLE || kind == US_SHAPE_TETRAHEDRON) {
        set_corners(point, l);
        shape.points = point;
        shape.n_point = kind == US_SHAPE_TRIANGLE ? 3 : 4;
        size[0] = kind == US_SHAPE_TRIANGLE ? 0.1 * fmin(r, l.z) : 0;
        size[1] = 0;
    } else if (kind == US_SHAPE_UNION || kind == US_SHAPE_INTERSECTION) {
        set_parts(part, l);
        shape.parts = part;
        shape.n_part = 2;
        size[0] = size[1] = 0;
    }
    for (int j = 0; j < 3; j++)
        shape.size[j] = size[j];
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

static void watch(random_scene *s, int link, double far) {
    s->far[link] = far;
    s->has_left[link] = false;
    s->n_under[link] = 0;
}

us_spec *random_scene_free(uint64_t seed, random_scene *s) {
    dice d = {seed, 0};
    us_pair_def pair = scene_pair(roll(&d, 0, 1.2));
    pair.values.restitution = roll_int(&d, 2) ? roll(&d, 0, 0.9) : 0;
    s->gravity = G;
    s->step = roll_log(&d, 1e-4, 1e-2);
    s->size = roll_log(&d, 1e-3, 30);
    s->n_link = 1 + roll_int(&d, MAX_BODY);
    const double spread = roll_log(&d, 1, 100 / 30.0), ratio = roll_log(&d, 1, 1e5),
                 speed = roll_log(&d, 0.05, 50), mass = 1000 * pow(s->size, 3);
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -G), s->step, &pair);
    add_ground(spec, &d, s->size * spread, s);
    for (int i = 0; i < s->n_link; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", i);
        const double l = s->size * roll(&d, 1, spread), m = mass * roll_log(&d, 1, ratio),
                     cell = 2 * s->size * spread;
        const us_vec3 sides = us_vec3_make(l * roll(&d, 0.2, 1), l * roll(&d, 0.2, 1), l * roll(&d, 0.2, 1));
        // One cell each, larger than the longest diagonal: nothing overlaps.
        scene_start start = scene_at(cell * (i % 3 - 1), cell * (i / 3 % 2), cell * (0.6 + i / 6));
        start.q = build_random_rotation(seed, &d.counter);
        start.v = build_random_vec3(seed, &d.counter, speed / sqrt(3.0));
        start.w = build_random_vec3(seed, &d.counter, fmin(speed / l, 100));
        watch(s, i, us_vec3_norm(sides));
        add_shape(spec, &d,
                  scene_float(spec, name, m, scene_box_moments(m, us_vec3_scale(0.8, sides)), &start), sides,
                  us_vec3_make(0, 0, 0));
    }
    return spec;
}

// ---------------------------------------------------------------- mixed scenes

typedef struct mixed {
    us_spec *spec;
    dice d;
    random_scene *s;
    double spread, ratio, speed, spin, density;
    bool has_robots;
} mixed;

// A profile like a U, drawn out: concave, so that it collides in convex parts.
static void add_trough(us_spec *spec, int32_t link, us_vec3 l) {
    static const double outline[8][2] = {{-0.5, -0.5}, {0.5, -0.5},   {0.5, 0.5},   {0.25, 0.5},
                                         {0.25, -0.2}, {-0.25, -0.2}, {-0.25, 0.5}, {-0.5, 0.5}};
    static const int32_t cap[6][3] = {{0, 1, 4}, {1, 2, 3}, {1, 3, 4}, {0, 4, 5}, {0, 5, 7}, {5, 6, 7}};
    us_vec3 point[16];
    int32_t triangle[28][3];
    int n = 0;
    for (int i = 0; i < 16; i++)
        point[i] = us_vec3_make(l.x * outline[i % 8][0], (i < 8 ? -0.5 : 0.5) * l.y, l.z * outline[i % 8][1]);
    // The outline goes round to the left as seen from -y.
    for (int i = 0; i < 6; i++, n += 2) {
        for (int k = 0; k < 3; k++) {
            triangle[n][k] = cap[i][k];
            triangle[n + 1][k] = cap[i][2 - k] + 8;
        }
    }
    for (int32_t i = 0; i < 8; i++, n += 2) {
        const int32_t next = (i + 1) % 8, two[6] = {i, i + 8, next + 8, i, next + 8, next};
        for (int k = 0; k < 6; k++)
            triangle[n + k / 3][k % 3] = two[k];
    }
    us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
    shape.link = link;
    shape.points = point;
    shape.n_point = shape.n_vertex = 16;
    shape.triangles = triangle[0];
    shape.n_triangle = n;
    shape.is_closed = true;
    shape.part_error = 0.01 * fmin(fmin(l.x, l.y), l.z);
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

static const us_soil *some_soil(mixed *m, us_soil *out) {
    const char *name;
    const int32_t n_soil = 10;
    assert_true(us_soil_get(roll_int(&m->d, n_soil), &name, out, NULL));
    const us_material_def def = {.name = "soil", .is_soil = true, .soil = *out};
    assert_int_equal(us_spec_add_material(m->spec, &def, NULL), US_OK);
    return out;
}

// How deep soil may let the heaviest body in: what it comes with goes into k z^(n+1) / (n+1) under a tenth of
// its face.
static double depth_of(const mixed *m, const us_soil *soil) {
    const double l = m->s->size * m->spread, height = 8 * l,
                 work = 10 * m->density * m->ratio * l * (0.5 * m->speed * m->speed + m->s->gravity * height);
    return pow((soil->n + 1) * work / soil->kphi, 1 / (soil->n + 1)) + l;
}

static void add_soil(mixed *m, int kind, double spacing, double high) {
    us_soil soil;
    m->s->deep = depth_of(m, some_soil(m, &soil));
    if (kind == 0) {
        us_shape_def shape = us_shape_def_default(US_SHAPE_HALF_SPACE);
        shape.link = US_WORLD;
        shape.surface = "soil";
        assert_int_equal(us_spec_add_shape(m->spec, &shape, NULL), US_OK);
        m->s->extent = INFINITY;
        return;
    }
    add_field(m->spec, spacing, high, "soil", kind == 1 ? 0 : m->s->size * roll(&m->d, 0.1, 0.3));
}

typedef enum mixed_ground {
    ON_PLANE,
    ON_DENSE_MESH,
    ON_MESH,
    ON_FIELD,
    ON_SOFT_PLANE,
    ON_SOIL_PLANE,
    ON_SOIL_FIELD,
    ON_SOIL_BED,
    N_GROUND
} mixed_ground;

static void add_mixed_ground(mixed *m, mixed_ground kind) {
    static const char *const names[N_GROUND] = {"plane",      "dense mesh", "mesh",       "field",
                                                "soft plane", "soil plane", "soil field", "soil bed"};
    const double l = m->s->size * m->spread, spacing = l * roll_log(&m->d, 0.5, 3),
                 high = spacing * roll(&m->d, 0, 0.3), dense = l * roll(&m->d, 0.05, 0.2);
    random_scene *s = m->s;
    s->ground = names[kind];
    s->deep = 0;
    s->floor = -2 * high;
    s->extent = 0.5 * spacing * (N_FIELD - 1);
    if (kind == ON_PLANE || kind == ON_SOFT_PLANE) {
        scene_ground(m->spec);
        s->floor = 0;
        s->extent = INFINITY;
    } else if (kind == ON_DENSE_MESH) {
        s->floor = -0.4 * dense;
        s->extent = 0.5 * dense * (N_DENSE - 1);
        add_mesh(m->spec, N_DENSE, dense, 0.2 * dense);
    } else if (kind == ON_MESH) {
        add_mesh(m->spec, N_FIELD, spacing, high);
    } else if (kind == ON_FIELD) {
        add_field(m->spec, spacing, high, NULL, 0);
    } else {
        add_soil(m, (int)kind - ON_SOIL_PLANE, spacing, high);
    }
}

// Springs of a soft ground, N/m, which the lightest body bends by a thousandth to a tenth of its size, and
// how far the heaviest one does.
static double soft_springs(mixed *m) {
    const double mass = m->density * pow(m->s->size, 3), g = m->s->gravity,
                 k = mass * g / (m->s->size * roll_log(&m->d, 1e-3, 0.1)), most = MAX_BODY * mass * m->ratio,
                 speed = m->speed + sqrt(2 * g * 8 * m->s->size * m->spread);
    m->s->deep = 2 * (most * g / k + sqrt(most / k) * speed);
    return k;
}

static int32_t add_link(mixed *m, double mass, us_vec3 sides, us_vec3 centre) {
    char name[16];
    snprintf(name, sizeof name, "l%d", m->s->n_link);
    const int32_t link = build_link(m->spec, name, mass, centre, scene_box_moments(mass, sides));
    assert_true(link == m->s->n_link && link < RANDOM_MAX_LINK);
    watch(m->s, m->s->n_link++, us_vec3_norm(sides) + 2 * us_vec3_norm(centre));
    return link;
}

// A joint at the end of a link, of a kind by chance; damped, and with dry friction in one of three.
static void add_joint(mixed *m, int32_t parent, int32_t child, us_vec3 at, double length, double mass) {
    static const us_joint_type types[] = {US_JOINT_REVOLUTE,  US_JOINT_CONTINUOUS, US_JOINT_PRISMATIC,
                                          US_JOINT_SPHERICAL, US_JOINT_UNIVERSAL,  US_JOINT_REVOLUTE};
    dice *d = &m->d;
    const us_joint_type type = types[roll_int(d, (int)(sizeof types / sizeof *types))];
    const us_vec3 axis = roll_int(d, 2) ? us_vec3_make(0, 1, 0) : us_vec3_make(0, 0, 1);
    us_joint_def def = build_joint_at(type, parent, child, at, axis);
    def.axis2 = us_vec3_make(1, 0, 0);
    const double inertia = mass * (type == US_JOINT_PRISMATIC ? 1 : length * length);
    def.damping = roll_int(d, 2) ? inertia * roll(d, 0, 10) : 0;
    def.friction = roll_int(d, 3) ? 0 : inertia * roll(d, 0, 10);
    def.has_limits = type == US_JOINT_PRISMATIC || (type == US_JOINT_REVOLUTE && roll_int(d, 2));
    def.upper = type == US_JOINT_PRISMATIC ? 0.2 * length : roll(d, 0.1, 1.5);
    def.lower = -def.upper;
    char name[24];
    snprintf(name, sizeof name, "j%d", child);
    build_joint_def(m->spec, name, &def);
}

// A body with two chains of links, down to 1e-5 of its mass, within a ball of the diameter l.
static void add_robot(mixed *m, double l, double mass, const scene_start *start) {
    dice *d = &m->d;
    const us_vec3 body = us_vec3_make(0.5 * l, l * roll(d, 0.1, 0.4), l * roll(d, 0.1, 0.4));
    const double light = roll_log(d, 1, 1e5);
    char name[16];
    snprintf(name, sizeof name, "l%d", m->s->n_link);
    const int32_t root = scene_float(m->spec, name, mass, scene_box_moments(mass, body), start);
    assert_int_equal(root, m->s->n_link);
    watch(m->s, m->s->n_link++, l);
    scene_add_box(m->spec, root, body, us_vec3_make(0, 0, 0));
    for (int side = -1; side <= 1; side += 2) {
        const int n = roll_int(d, 3);
        const double length = 0.2 * l / fmax(n, 1), thick = fmin(length, 0.1 * l);
        int32_t parent = root;
        us_vec3 at = us_vec3_make(0.27 * l * side, 0, 0);
        for (int i = 0; i < n; i++) {
            const us_vec3 sides =
                              us_vec3_make(0.8 * length, thick * roll(d, 0.2, 1), thick * roll(d, 0.2, 1)),
                          centre = us_vec3_make(0.5 * length * side, 0, 0);
            const double m_link = mass / roll_log(d, 1, light);
            const int32_t link = add_link(m, m_link, sides, centre);
            add_shape(m->spec, d, link, sides, centre);
            add_joint(m, parent, link, at, length, m_link);
            parent = link;
            at = us_vec3_make(length * side, 0, 0);
        }
    }
}

static void add_mixed_body(mixed *m, int i, double mass) {
    dice *d = &m->d;
    const double l = m->s->size * roll(d, 1, m->spread), cell = 2 * m->s->size * m->spread,
                 heavy = mass * roll_log(d, 1, m->ratio);
    scene_start start = scene_at(cell * (i % 3 - 1), cell * (i / 3 % 2), cell * (0.6 + i / 6));
    start.q = build_random_rotation(d->seed, &d->counter);
    start.v = build_random_vec3(d->seed, &d->counter, m->speed / sqrt(3.0));
    start.w = build_random_vec3(d->seed, &d->counter, fmin(m->speed / l, m->spin));
    const us_vec3 sides = us_vec3_make(l * roll(d, 0.2, 1), l * roll(d, 0.2, 1), l * roll(d, 0.2, 1));
    const int kind = roll_int(d, 4);
    if (m->has_robots && kind < 3) {
        add_robot(m, l, heavy, &start);
        return;
    }
    char name[16];
    snprintf(name, sizeof name, "l%d", m->s->n_link);
    const int32_t link =
        scene_float(m->spec, name, heavy, scene_box_moments(heavy, us_vec3_scale(0.8, sides)), &start);
    assert_int_equal(link, m->s->n_link);
    watch(m->s, m->s->n_link++, us_vec3_norm(sides));
    if (kind == 3)
        add_trough(m->spec, link, sides);
    else
        add_shape(m->spec, d, link, sides, us_vec3_make(0, 0, 0));
}

us_spec *random_scene_mixed(uint64_t seed, random_scene *s) {
    mixed m = {.d = {seed ^ 0x6d69786564, 0}, .s = s};
    dice *d = &m.d;
    const mixed_ground ground = (mixed_ground)roll_int(d, N_GROUND);
    const bool is_soil = ground >= ON_SOIL_PLANE;
    us_pair_def pair = scene_pair(roll(d, 0, 1.2));
    pair.values.restitution = roll_int(d, 2) ? roll(d, 0, 0.9) : 0;
    s->gravity = roll_int(d, 3) ? 9.81 : 1.62;
    s->step = roll_log(d, 1e-4, 1e-2);
    s->size = is_soil ? roll_log(d, 5e-3, 3) : roll_log(d, 1e-3, 30);
    m.has_robots = roll_int(d, 2);
    m.spread = roll_log(d, 1, 100 / 30.0);
    m.ratio = roll_log(d, 1, is_soil ? 10 : 1e5);
    m.speed = roll_log(d, 0.05, 50);
    // What has joints moves by a twentieth of its size in a step at most, and turns by a tenth of a radian,
    // so that a light link that is struck turns by less than a radian: what turns faster is not stepped well
    // in free flight (docs/contact.md, Limits).
    m.spin = 100;
    if (m.has_robots) {
        s->size = fmax(s->size, 0.1);
        s->step = fmin(s->step, 2e-3);
        m.speed = fmin(m.speed, 0.05 * s->size / s->step);
        m.spin = 0.1 / s->step;
    }
    m.density = 1000;
    pair.values.torsion_radius = roll_int(d, 3) ? 0 : 0.1 * s->size;
    pair.values.rolling_length = roll_int(d, 3) ? 0 : 0.01 * s->size;
    pair.values.transition_speed = roll_int(d, 3) ? 0 : 0.01;
    if (ground == ON_SOFT_PLANE) pair.values.stiffness = soft_springs(&m);
    const double deep = s->deep;
    m.spec = build_spec_gravity(us_vec3_make(0, 0, -s->gravity), s->step, US_INTEGRATOR_MIDPOINT);
    assert_int_equal(us_spec_add_pair(m.spec, &pair, NULL), US_OK);
    add_mixed_ground(&m, ground);
    if (ground == ON_SOFT_PLANE) s->deep = deep;
    s->n_link = 0;
    const int n = 1 + roll_int(d, MAX_BODY);
    for (int i = 0; i < n; i++)
        add_mixed_body(&m, i, m.density * pow(s->size, 3));
    return m.spec;
}

// ---------------------------------------------------------------- the judge

// Energy above the lowest point of the ground, J.
static double energy_of(built *b, const random_scene *s, double total_mass) {
    const us_energy e = us_sim_get_energy(b->sim);
    return e.kinetic + e.potential - total_mass * s->gravity * s->floor;
}

// Whether a link is under the ground that it was above, by more than its own size and a tenth of it.
static bool has_fallen(const built *b, random_scene *s, int i) {
    const us_vec3 p = scene_position(b, i);
    s->has_left[i] = s->has_left[i] || fmax(fabs(p.x), fabs(p.y)) > s->extent - s->far[i];
    const bool is_under = !s->has_left[i] && p.z < s->floor - s->deep - 0.6 * s->far[i];
    s->n_under[i] = is_under ? s->n_under[i] + 1 : 0;
    return s->n_under[i] >= MAX_UNDER;
}

// Runs one scene; false, with a line that says why, when it fails.
bool random_scene_run(random_scene_make make, uint64_t seed, double time, int64_t max_step, bool is_loud) {
    random_scene s;
    built b = build_sim(make(seed, &s));
    const double mass = us_model_get_total_mass(b.model);
    const int64_t n = (int64_t)fmin(time / s.step, (double)max_step);
    const double start = energy_of(&b, &s, mass);
    double most = start;
    const char *fault = NULL;
    int64_t k = 0;
    for (; k < n && !fault; k++) {
        if (us_sim_step(b.sim, NULL)) fault = us_sim_view_error(b.sim)->message;
        most = fmax(most, energy_of(&b, &s, mass));
        if (most > 1.001 * start) fault = "gained energy";
        for (int i = 0; i < s.n_link; i++) {
            if (has_fallen(&b, &s, i)) fault = "fell through";
        }
    }
    const us_solver_counts c = us_sim_get_solver_counts(b.sim);
    if (fault || is_loud)
        printf("    seed %d: %s, step %.2g ms, size %.2g m, %d links, %s at %.4g s; energy %.6g to %.6g J; "
               "%lld lagged, %lld hardened, %lld shortened of %lld islands\n",
               (int)seed, s.ground, 1e3 * s.step, s.size, s.n_link, fault ? fault : "sound",
               (double)k * s.step, start, most, (long long)c.n_lagged, (long long)c.n_hardened,
               (long long)c.n_shortened, (long long)c.n_island);
    build_free(&b);
    return !fault;
}
