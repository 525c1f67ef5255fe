// From shapes, materials and pairs as written to what collides and how.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "geom/geom.h"
#include "model/model.h"

static us_spec *new_spec(void) {
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    return spec;
}

static us_model *compile(us_spec *spec) {
    us_model *m = NULL;
    us_error err;
    if (us_model_compile(spec, NULL, &m, &err)) fail_msg("%s: %s\n%s", err.element, err.message, err.remedy);
    return m;
}

static void fails(us_spec *spec, us_status status, const char *message, const char *remedy) {
    us_model *m = NULL;
    us_error err;
    memset(&err, 0, sizeof err);
    assert_int_equal(us_model_compile(spec, NULL, &m, &err), status);
    assert_null(m);
    if (!strstr(err.message, message) || !strstr(err.remedy, remedy))
        fail_msg("%s\n%s", err.message, err.remedy);
    us_spec_destroy(spec);
}

static int32_t add_link(us_spec *spec, const char *name, us_joint_type type, int32_t parent) {
    us_link_def l = us_link_def_default();
    us_joint_def j = us_joint_def_default(type);
    char joint[64];
    snprintf(joint, sizeof joint, "%s_joint", name);
    l.name = name;
    j.name = joint;
    l.inertia = (us_inertia){1, {0, 0, 0}, {1, 1, 1, 0, 0, 0}};
    j.parent = parent;
    assert_int_equal(us_spec_add_link(spec, &l, &j.child), US_OK);
    assert_int_equal(us_spec_add_joint(spec, &j, NULL), US_OK);
    return j.child;
}

static us_shape_def shape_of(us_shape_kind kind, int32_t link, double x, double y, double z) {
    us_shape_def s = us_shape_def_default(kind);
    s.link = link;
    s.size[0] = x;
    s.size[1] = y;
    s.size[2] = z;
    return s;
}

static int32_t add_shape(us_spec *spec, const us_shape_def *s) {
    int32_t index = -1;
    assert_int_equal(us_spec_add_shape(spec, s, &index), US_OK);
    return index;
}

static void add_ball(us_spec *spec, int32_t link) {
    us_shape_def s = shape_of(US_SHAPE_SPHERE, link, 0.1, 0, 0);
    add_shape(spec, &s);
}

static void add_material(us_spec *spec, const char *name) {
    us_material_def d = {.name = name};
    assert_int_equal(us_spec_add_material(spec, &d, NULL), US_OK);
}

static const us_vec3 corners[8] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0},
                                   {0, 0, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 1}};
// The unit cube, seen from outside counter-clockwise.
static const int32_t cube[36] = {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                                 2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};

static us_shape_def cube_mesh(int32_t link) {
    us_shape_def s = shape_of(US_SHAPE_MESH, link, 1, 1, 1);
    s.points = corners;
    s.n_point = 8;
    s.triangles = cube;
    s.n_triangle = 12;
    return s;
}

// ---- Sizes ----

static void full_lengths_become_half_lengths_and_radii(void **state) {
    (void)state;
    static const struct {
        us_shape_kind kind;
        double size[3];
        us_geom_kind geom;
        double half[3], radius;
        bool is_round;
    } rows[] = {
        {US_SHAPE_BOX, {1, 2, 3}, US_GEOM_BOX, {0.5, 1, 1.5}, 0, false},
        {US_SHAPE_SPHERE, {0.25, 0, 0}, US_GEOM_SPHERE, {0, 0, 0}, 0.25, true},
        {US_SHAPE_CYLINDER, {1, 4, 0}, US_GEOM_CYLINDER, {1, 2, 0}, 0, true},
        {US_SHAPE_CAPSULE, {1, 4, 0}, US_GEOM_CAPSULE, {2, 0, 0}, 1, true},
        {US_SHAPE_LOZENGE, {1, 2, 0.5}, US_GEOM_LOZENGE, {0.5, 1, 0}, 0.5, false},
        {US_SHAPE_DISC, {1, 0.5, 0}, US_GEOM_DISC, {1, 0, 0}, 0.5, true},
        {US_SHAPE_CONE, {1, 4, 0}, US_GEOM_CONE, {1, 2, 0}, 0, true},
        {US_SHAPE_ELLIPSOID, {1, 2, 3}, US_GEOM_ELLIPSOID, {1, 2, 3}, 0, true},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    us_spec *spec = new_spec();
    for (int i = 0; i < N; i++) {
        us_shape_def s = shape_of(rows[i].kind, US_WORLD, rows[i].size[0], rows[i].size[1], rows[i].size[2]);
        add_shape(spec, &s);
    }
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    assert_int_equal(m->n_geom, N);
    for (int i = 0; i < N; i++) {
        const usi_geom *g = &m->geom[i];
        assert_int_equal(g->geom.kind, rows[i].geom);
        assert_int_equal(g->is_round, rows[i].is_round);
        assert_true(g->geom.radius == rows[i].radius);
        for (int k = 0; k < 3; k++)
            assert_true(g->geom.size[k] == rows[i].half[k]);
        assert_true(g->node == -1 && g->body == -1 && g->tree == -1 && g->shape == i && g->group == 1 &&
                    g->mask == UINT32_MAX && g->material == 0);
    }
    // Half the diagonal of the box around 1 x 2 x 3; exact to rounding of the root.
    assert_true(fabs(m->geom[0].reach - 0.5 * sqrt(14)) < 1e-15);
    us_model_destroy(m);
}

static void the_definition_may_die_after_adding(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    {
        us_vec3 points[4] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
        double heights[6] = {0, 1, 2, 3, 4, 5};
        us_shape_def field = shape_of(US_SHAPE_HEIGHT_FIELD, US_WORLD, 0.5, 0.25, 0);
        field.heights = heights;
        field.n_x = 3;
        field.n_y = 2;
        us_shape_def inner = shape_of(US_SHAPE_UNION, US_WORLD, 0, 0, 0),
                     tetra = shape_of(US_SHAPE_TETRAHEDRON, US_WORLD, 0, 0, 0);
        tetra.points = points;
        tetra.n_point = 4;
        us_shape_def parts[2] = {tetra, shape_of(US_SHAPE_SPHERE, US_WORLD, 2, 0, 0)};
        parts[1].X_BG.p = us_vec3_make(7, 0, 0);
        inner.parts = parts;
        inner.n_part = 2;
        us_shape_def outer = shape_of(US_SHAPE_UNION, US_WORLD, 0, 0, 0);
        outer.parts = &inner;
        outer.n_part = 1;
        us_shape_def hull = shape_of(US_SHAPE_CONVEX, US_WORLD, 0, 0, 0);
        hull.points = points;
        hull.n_point = 4;
        add_shape(spec, &field);
        add_shape(spec, &outer);
        add_shape(spec, &hull);
        memset(points, 0xff, sizeof points);
        memset(heights, 0xff, sizeof heights);
        memset(parts, 0xff, sizeof parts);
        memset(&inner, 0xff, sizeof inner);
    }
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    const us_height_field *f = m->geom[0].geom.field;
    assert_true(f->n_x == 3 && f->n_y == 2 && f->dx == 0.5 && f->dy == 0.25 && f->height[5] == 5);
    const us_geom_part *inner = m->geom[1].geom.parts;
    assert_int_equal(inner->geom.n_part, 2);
    assert_true(inner->geom.parts[0].geom.point[3].z == 1);
    assert_true(inner->geom.parts[1].X_GP.p.x == 7 && inner->geom.parts[1].geom.radius == 2);
    assert_int_equal(m->geom[2].geom.hull->n_vertex, 4);
    us_model_destroy(m);
}

static void a_shape_without_its_arrays_is_not_taken(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_shape_def s = shape_of(US_SHAPE_CONVEX, US_WORLD, 0, 0, 0);
    s.n_point = 4;
    assert_int_equal(us_spec_add_shape(spec, &s, NULL), US_ERR_ARG);
    s = shape_of(US_SHAPE_UNION, US_WORLD, 0, 0, 0);
    s.n_part = 1;
    assert_int_equal(us_spec_add_shape(spec, &s, NULL), US_ERR_ARG);
    s.parts = &s;  // a union of itself has no end
    assert_int_equal(us_spec_add_shape(spec, &s, NULL), US_ERR_ARG);
    us_property nameless = {.type = US_PROPERTY_NUMBER};
    us_material_def d = {.name = "m", .properties = &nameless, .n_property = 1};
    assert_int_equal(us_spec_add_material(spec, &d, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_get_counts(spec).n_shape, 0);
    us_spec_destroy(spec);
}

// ---- Places ----

static void shapes_stand_on_their_nodes_those_of_the_world_first(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    int32_t arm = add_link(spec, "arm", US_JOINT_REVOLUTE, US_WORLD);
    int32_t tool = add_link(spec, "tool", US_JOINT_FIXED, arm),
            base = add_link(spec, "base", US_JOINT_FIXED, US_WORLD);
    us_joint_def j = *us_spec_view_joint(spec, 1);
    j.X_PF.p = us_vec3_make(0, 0, 2);
    assert_int_equal(us_spec_set_joint(spec, 1, &j), US_OK);
    us_shape_def s = shape_of(US_SHAPE_SPHERE, tool, 1, 0, 0);
    s.X_BG.p = us_vec3_make(0.5, 0, 0);
    s.X_BG.q = (us_quat){2, 0, 0, 0};  // of any length
    add_shape(spec, &s);
    add_ball(spec, arm);
    add_ball(spec, base);
    add_ball(spec, US_WORLD);
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    static const int32_t shapes[] = {2, 3, 0, 1}, nodes[] = {-1, -1, 0, 0};
    const int32_t bodies[] = {base, -1, tool, arm};
    assert_int_equal(m->n_geom, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(m->geom[i].shape, shapes[i]);
        assert_int_equal(m->geom[i].node, nodes[i]);
        assert_int_equal(m->geom[i].body, bodies[i]);
        assert_int_equal(m->geom[i].tree, nodes[i]);
    }
    us_vec3 p = m->geom[2].X_NG.p;
    assert_true(p.x == 0.5 && p.y == 0 && p.z == 2 && m->geom[2].X_NG.q.w == 1);
    // 64, and 32 for each of two that move.
    assert_int_equal(m->max_contact, 128);
    us_geom_info info = us_model_get_geom(m, 2);
    assert_true(info.kind == US_GEOM_SPHERE && info.body.i == tool && info.shape == 0);
    assert_int_equal(us_model_get_geom(m, 4).kind, US_GEOM_COUNT);
    us_model_destroy(m);
}

static void only_shapes_of_the_links_level_that_collide_are_there(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_link_def l = us_link_def_default();
    us_joint_def j = us_joint_def_default(US_JOINT_FIXED);
    l.name = "l";
    l.level = 2;
    j.name = "j";
    assert_int_equal(us_spec_add_link(spec, &l, &j.child), US_OK);
    assert_int_equal(us_spec_add_joint(spec, &j, NULL), US_OK);
    for (int32_t level = 0; level < 4; level++) {
        us_shape_def s = shape_of(US_SHAPE_SPHERE, 0, 1, 0, 0);
        s.level = level;
        add_shape(spec, &s);
        s.is_collision = false;
        add_shape(spec, &s);
    }
    us_model *m = compile(spec);
    assert_int_equal(m->n_geom, 1);
    assert_int_equal(m->geom[0].shape, 4);
    us_model_destroy(m);
    us_spec_destroy(spec);
}

// ---- Meshes ----

static void a_mesh_that_stands_is_triangles_and_one_that_moves_a_hull(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    int32_t link = add_link(spec, "link", US_JOINT_FLOATING, US_WORLD);
    us_shape_def standing = cube_mesh(US_WORLD), moving = cube_mesh(link);
    add_shape(spec, &standing);
    add_shape(spec, &moving);
    add_shape(spec, &moving);
    us_model *m = compile(spec);
    // The same points are kept once.
    assert_ptr_equal(us_spec_view_shape(spec, 0)->points, us_spec_view_shape(spec, 2)->points);
    us_spec_destroy(spec);
    assert_int_equal(m->geom[0].geom.kind, US_GEOM_MESH);
    assert_int_equal(m->geom[0].geom.mesh->n_triangle, 12);
    assert_int_equal(m->geom[1].geom.kind, US_GEOM_CONVEX);
    assert_int_equal(m->geom[1].geom.hull->n_vertex, 8);
    assert_ptr_equal(m->geom[1].geom.hull, m->geom[2].geom.hull);
    us_model_destroy(m);
}

// An L of three unit cubes: 0 0, 1 0, 0 1 in x, z; closed.
static us_shape_def l_mesh(int32_t link, us_vec3 points[12], int32_t triangles[60]) {
    static const double outline[6][2] = {{0, 0}, {2, 0}, {2, 1}, {1, 1}, {1, 2}, {0, 2}};
    static const int32_t front[4][3] = {{0, 1, 2}, {0, 2, 3}, {0, 3, 5}, {3, 4, 5}};
    int n = 0;
    for (int i = 0; i < 12; i++)
        points[i] = us_vec3_make(outline[i % 6][0], i < 6 ? 0 : 1, outline[i % 6][1]);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++)
            triangles[n++] = front[i][k];
        for (int k = 2; k >= 0; k--)
            triangles[n++] = front[i][k] + 6;
    }
    for (int i = 0; i < 6; i++) {
        int next = (i + 1) % 6, quad[6] = {i, i + 6, next, next, i + 6, next + 6};
        for (int k = 0; k < 6; k++)
            triangles[n++] = quad[k];
    }
    us_shape_def s = shape_of(US_SHAPE_MESH, link, 1, 1, 1);
    s.points = points;
    s.n_point = 12;
    s.triangles = triangles;
    s.n_triangle = 20;
    s.unit_inertia.mass = 3;
    return s;
}

static void a_moving_mesh_splits_into_convex_parts_when_told(void **state) {
    (void)state;
    us_vec3 points[12];
    int32_t triangles[60];
    us_spec *spec = new_spec();
    int32_t link = add_link(spec, "link", US_JOINT_FLOATING, US_WORLD);
    us_shape_def s = l_mesh(link, points, triangles);
    s.part_error = 0.01;
    add_shape(spec, &s);
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    assert_in_range(m->n_geom, 2, 4);
    double volume = 0;
    for (int i = 0; i < m->n_geom; i++) {
        assert_int_equal(m->geom[i].geom.kind, US_GEOM_CONVEX);
        assert_int_equal(m->geom[i].shape, 0);
        volume += us_geom_unit_inertia(&m->geom[i].geom).mass;
    }
    // Two boxes make the L exactly; parts that overlap or stand off by 1 cm would add a few per cent.
    assert_true(volume > 3 - 1e-9 && volume < 3.2);
    us_model_destroy(m);
}

static void a_hull_far_larger_than_its_mesh_is_a_warning_that_names_the_remedy(void **state) {
    (void)state;
    us_vec3 points[12];
    int32_t triangles[60];
    us_spec *spec = new_spec();
    int32_t link = add_link(spec, "link", US_JOINT_FLOATING, US_WORLD);
    us_shape_def s = l_mesh(link, points, triangles);
    add_shape(spec, &s);
    // The hull of the L has 3.5 times the volume of a cube: 1.17 times that of the L, near enough.
    us_model *m = compile(spec);
    assert_int_equal(us_spec_get_counts(spec).n_warning, 0);
    us_model_destroy(m);
    s.unit_inertia.mass = 2.3;  // 1.52 times
    add_shape(spec, &s);
    m = compile(spec);
    us_model_destroy(m);
    assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->message, "convex hull"));
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->remedy, "part-error"));
    us_spec_destroy(spec);
}

static void a_flat_moving_mesh_does_not_collide_and_says_so(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    int32_t link = add_link(spec, "link", US_JOINT_FLOATING, US_WORLD);
    us_shape_def s = cube_mesh(link);
    s.n_point = 4;
    s.n_triangle = 2;
    add_shape(spec, &s);
    us_model *m = compile(spec);
    assert_int_equal(m->n_geom, 0);
    assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->message, "does not collide"));
    us_model_destroy(m);
    us_spec_destroy(spec);
}

static void a_mesh_known_by_name_alone_does_not_collide(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_shape_def s = shape_of(US_SHAPE_MESH, US_WORLD, 1, 1, 1),
                 whole = shape_of(US_SHAPE_UNION, US_WORLD, 0, 0, 0);
    s.mesh_uri = "package://nowhere/a.stl";
    whole.parts = &s;
    whole.n_part = 1;
    add_shape(spec, &s);
    add_shape(spec, &whole);
    us_model *m = compile(spec);
    assert_int_equal(m->n_geom, 0);
    us_model_destroy(m);
    us_spec_destroy(spec);
}

// ---- Mistakes ----

static void a_shape_that_cannot_be_is_an_error_with_a_remedy(void **state) {
    (void)state;
    static const struct {
        us_shape_kind kind;
        double x;
        const char *message, *remedy;
    } rows[] = {
        {US_SHAPE_BOX, -1, "", ""},
        {US_SHAPE_SPHERE, NAN, "", ""},
        {US_SHAPE_HALF_SPACE, 1, "a half-space cannot move", "put it on the world"},
        {US_SHAPE_HEIGHT_FIELD, 1, "a height-field cannot move", "put it on the world"},
        {US_SHAPE_TETRAHEDRON, 1, "a tetrahedron needs 4 points, 0 are given", "one point for each corner"},
        {US_SHAPE_TRIANGLE, 1, "a triangle needs 3 points, 0 are given", "one point for each corner"},
        {US_SHAPE_CONVEX, 1, "a convex shape with 0 points", "at least 4 points"},
        {US_SHAPE_UNION, 1, "a union of nothing", "at least one part"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        us_spec *spec = new_spec();
        us_shape_def s =
            shape_of(rows[i].kind, add_link(spec, "link", US_JOINT_FLOATING, US_WORLD), rows[i].x, 1, 1);
        add_shape(spec, &s);
        fails(spec, US_ERR_VALUE, rows[i].message, rows[i].remedy);
    }
    us_spec *spec = new_spec();
    us_shape_def part = shape_of(US_SHAPE_HALF_SPACE, US_WORLD, 0, 0, 0),
                 whole = shape_of(US_SHAPE_UNION, US_WORLD, 0, 0, 0);
    whole.link = add_link(spec, "link", US_JOINT_FLOATING, US_WORLD);
    whole.parts = &part;
    whole.n_part = 1;
    add_shape(spec, &whole);
    fails(spec, US_ERR_VALUE, "a half-space cannot move", "put it on the world");
    spec = new_spec();
    us_shape_def s = shape_of(US_SHAPE_SPHERE, 3, 1, 1, 1);
    add_shape(spec, &s);
    fails(spec, US_ERR_NAME, "its link does not exist", "link that exists");
    spec = new_spec();
    s.link = US_WORLD;
    s.margin = -1;
    add_shape(spec, &s);
    fails(spec, US_ERR_VALUE, "its margin is negative", "0 or more");
    spec = new_spec();
    s.margin = 0;
    s.X_BG.q = (us_quat){0, 0, 0, 0};
    add_shape(spec, &s);
    fails(spec, US_ERR_VALUE, "its quaternion is 0", "length 1");
}

// ---- Who never collides ----

static bool collide(const us_model *m, int32_t body_a, int32_t body_b) {
    int32_t a = -1, b = -1;
    for (int32_t i = 0; i < m->n_geom; i++) {
        if (m->geom[i].body == body_a) a = i;
        if (m->geom[i].body == body_b) b = i;
    }
    assert_true(a >= 0 && b >= 0);
    assert_int_equal(usi_model_may_collide(m, a, b), usi_model_may_collide(m, b, a));
    return usi_model_may_collide(m, a, b);
}

static void links_joined_by_a_joint_or_a_loop_never_collide_nor_what_is_fixed_to_them(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    int32_t base = add_link(spec, "base", US_JOINT_FIXED, US_WORLD),
            foot = add_link(spec, "foot", US_JOINT_FIXED, base);
    int32_t arm = add_link(spec, "arm", US_JOINT_REVOLUTE, base),
            hand = add_link(spec, "hand", US_JOINT_SPHERICAL, arm);
    int32_t glove = add_link(spec, "glove", US_JOINT_FIXED, hand),
            table = add_link(spec, "table", US_JOINT_FIXED, US_WORLD);
    int32_t ball = add_link(spec, "ball", US_JOINT_FLOATING, US_WORLD),
            door = add_link(spec, "door", US_JOINT_REVOLUTE, US_WORLD);
    for (int32_t i = 0; i <= door; i++)
        add_ball(spec, i);
    add_ball(spec, US_WORLD);
    us_loop_def loop = us_loop_def_default(US_LOOP_POINT);
    loop.name = "loop";
    loop.link_a = ball;
    loop.link_b = door;
    assert_int_equal(us_spec_add_loop(spec, &loop, NULL), US_OK);
    us_exclude_def exclude = {.link_a = hand, .link_b = table},
                   of_world = {.link_a = door, .link_b = US_WORLD};
    assert_int_equal(us_spec_add_exclude(spec, &exclude, NULL), US_OK);
    assert_int_equal(us_spec_add_exclude(spec, &exclude, NULL), US_OK);
    assert_int_equal(us_spec_add_exclude(spec, &of_world, NULL), US_OK);
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    assert_false(collide(m, base, arm));
    assert_false(collide(m, foot, arm));
    assert_false(collide(m, arm, hand));
    assert_false(collide(m, arm, glove));
    assert_false(collide(m, hand, glove));
    assert_false(collide(m, ball, door));
    assert_false(collide(m, hand, table));
    assert_false(collide(m, door, -1));
    assert_false(collide(m, base, table));  // both stand still
    assert_true(collide(m, glove, table));  // the exclusion is of the hand alone
    assert_true(collide(m, arm, table));
    assert_true(collide(m, arm, -1));
    assert_true(collide(m, base, hand));
    assert_true(collide(m, ball, -1));
    assert_true(collide(m, ball, hand));
    for (int32_t i = 1; i < m->n_exclusion; i++) {
        const usi_exclusion *x = &m->exclusion[i - 1], *y = &m->exclusion[i];
        assert_true(x->a < y->a || (x->a == y->a && x->b < y->b));
    }
    us_model_destroy(m);
}

static void groups_and_masks_hold_in_both_directions(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    static const uint32_t group[3] = {1, 2, 4}, mask[3] = {2 | 4, 1, UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%d", i);
        us_shape_def s =
            shape_of(US_SHAPE_SPHERE, add_link(spec, name, US_JOINT_FLOATING, US_WORLD), 1, 0, 0);
        s.group = group[i];
        s.mask = mask[i];
        add_shape(spec, &s);
    }
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    assert_true(collide(m, 0, 1));
    assert_true(collide(m, 0, 2));
    assert_false(collide(m, 1, 2));  // 1 wants only group 1
    us_model_destroy(m);
}

static void an_exclusion_of_a_link_with_itself_or_of_none_is_an_error(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_exclude_def e = {.link_a = US_WORLD, .link_b = 5};
    assert_int_equal(us_spec_add_exclude(spec, &e, NULL), US_OK);
    fails(spec, US_ERR_NAME, "one of its links does not exist", "name links that exist");
    spec = new_spec();
    e.link_b = US_WORLD;
    assert_int_equal(us_spec_add_exclude(spec, &e, NULL), US_OK);
    fails(spec, US_ERR_VALUE, "both its links are the same", "two different links");
}

// ---- Materials ----

static void the_default_material_is_always_number_0(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_property hard = {.key = "hardness", .type = US_PROPERTY_NUMBER, .number = 60},
                named = {.key = "maker", .type = US_PROPERTY_STRING, .text = "x"};
    us_property properties[2] = {hard, named};
    us_material_def d = {.name = "default", .properties = properties, .n_property = 2};
    add_material(spec, "rubber");
    assert_int_equal(us_spec_add_material(spec, &d, NULL), US_OK);
    us_shape_def s = shape_of(US_SHAPE_SPHERE, US_WORLD, 1, 0, 0);
    add_shape(spec, &s);
    s.surface = "rubber";
    add_shape(spec, &s);
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    memset(properties, 0xff, sizeof properties);
    assert_int_equal(us_model_get_counts(m).n_material, 2);
    assert_int_equal(us_model_get_counts(m).n_geom, 2);
    assert_int_equal(us_model_find_material(m, "default").i, 0);
    assert_int_equal(us_model_find_material(m, "rubber").i, 1);
    assert_int_equal(us_model_find_material(m, "rock").i, -1);
    assert_string_equal(us_model_material_name(m, (us_material){1}), "rubber");
    assert_null(us_model_material_name(m, (us_material){2}));
    assert_true(us_model_find_property(m, (us_material){0}, "hardness")->number == 60);
    assert_string_equal(us_model_find_property(m, (us_material){0}, "maker")->text, "x");
    assert_null(us_model_find_property(m, (us_material){1}, "hardness"));
    assert_null(us_model_find_property(m, (us_material){9}, "hardness"));
    assert_int_equal(m->geom[0].material, 0);
    assert_int_equal(m->geom[1].material, 1);
    us_model_destroy(m);
}

static void an_unknown_material_is_an_error_that_lists_the_known_ones(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    add_material(spec, "rubber");
    us_shape_def s = shape_of(US_SHAPE_SPHERE, US_WORLD, 1, 0, 0);
    s.surface = "ruber";
    add_shape(spec, &s);
    fails(spec, US_ERR_NAME, "there is no material \"ruber\"; known: default, rubber", "define it");
    spec = new_spec();
    us_pair_def p = us_pair_def_default();
    p.material_b = "rock";
    assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
    fails(spec, US_ERR_NAME, "there is no material \"rock\"; known: default", "define it");
    spec = new_spec();
    add_material(spec, "rock");
    add_material(spec, "rock");
    fails(spec, US_ERR_NAME, "the name is used twice", "its own name");
}

static const usi_pair *pair_of(const us_model *m, const char *a, const char *b) {
    int32_t i = us_model_find_material(m, a).i, k = us_model_find_material(m, b).i;
    const usi_pair *one = &m->pair[i * m->n_material + k], *other = &m->pair[k * m->n_material + i];
    assert_memory_equal(one, other, sizeof *one);
    return one;
}

static void add_pair(us_spec *spec, const char *a, const char *b, const char *fidelity, double friction) {
    us_pair_def p = us_pair_def_default();
    p.material_a = a;
    p.material_b = b;
    p.fidelity = fidelity;
    p.values.static_friction = p.values.kinetic_friction = friction;
    assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
}

static void without_a_row_the_defaults_hold(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    const usi_pair *p = pair_of(m, "default", "default");
    const us_pair_values *v = &p->values;
    assert_true(v->static_friction == 0.9 && v->kinetic_friction == 0.8 && v->viscous == 0.5 &&
                v->normal_static == 0.35 && v->rotational == 1);
    assert_true(v->assumed_mass == 40 && v->restitution == 0 && v->reference_speed == 1 &&
                v->stiffness == 0 && v->damping_ratio == 1);
    assert_true(v->torsion_radius == 0 && v->rolling_length == 0);
    assert_int_equal(p->model, USI_MODEL_COMPLIANT);
    assert_int_equal(p->parameter, -1);
    us_model_destroy(m);
}

static void the_most_particular_row_wins(void **state) {
    (void)state;
    static const char *const fidelities[] = {"", "high"};
    // rock-rubber, rubber-ice, ice-ice, default-default for the two fidelities.
    static const double wanted[2][4] = {{0.1, 0.3, 0.4, 0.5}, {0.1, 0.7, 0.4, 0.6}};
    for (int f = 0; f < 2; f++) {
        us_spec *spec = new_spec();
        us_world_settings w = us_world_settings_default();
        w.fidelity = fidelities[f];
        assert_int_equal(us_spec_set_world(spec, &w), US_OK);
        add_material(spec, "rock");
        add_material(spec, "rubber");
        add_material(spec, "ice");
        add_pair(spec, "rubber", "rock", NULL, 0.1);   // both, in the other order
        add_pair(spec, "rubber", NULL, "", 0.2);       // one; beaten by the later one
        add_pair(spec, NULL, "rubber", NULL, 0.3);     // one
        add_pair(spec, "ice", "ice", NULL, 0.4);       // both
        add_pair(spec, NULL, NULL, NULL, 0.5);         // none
        add_pair(spec, NULL, NULL, "high", 0.6);       // none, with fidelity
        add_pair(spec, "rubber", NULL, "high", 0.7);   // one, with fidelity: less than both without
        add_pair(spec, "rubber", "rock", "low", 0.8);  // for another fidelity
        us_model *m = compile(spec);
        us_spec_destroy(spec);
        assert_true(pair_of(m, "rock", "rubber")->values.static_friction == wanted[f][0]);
        assert_true(pair_of(m, "rubber", "ice")->values.static_friction == wanted[f][1]);
        assert_true(pair_of(m, "ice", "ice")->values.static_friction == wanted[f][2]);
        assert_true(pair_of(m, "default", "default")->values.static_friction == wanted[f][3]);
        us_model_destroy(m);
    }
}

static bool touch(const us_touch *t, double memory[US_TOUCH_MEMORY], us_touch_law *law, void *user) {
    (void)t;
    (void)memory;
    (void)law;
    (void)user;
    return true;
}

static void a_row_names_its_model_and_brings_its_parameters(void **state) {
    (void)state;
    us_spec *spec = new_spec();
    us_interaction mud = {.version = US_INTERACTION_VERSION, .name = "mud", .touch = touch};
    us_error err;
    assert_int_equal(us_spec_add_interaction(spec, &mud, &err), US_OK);
    add_material(spec, "clay");
    us_property depth = {.key = "depth", .type = US_PROPERTY_NUMBER, .number = 0.2};
    us_pair_def p = us_pair_def_default();
    p.material_a = "clay";
    p.model = "mud";
    p.parameters = &depth;
    p.n_parameter = 1;
    assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
    p = us_pair_def_default();
    p.model = "spring-damper";
    assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
    us_model *m = compile(spec);
    us_spec_destroy(spec);
    const usi_pair *clay = pair_of(m, "clay", "default");
    assert_string_equal(m->interaction[clay->model].name, "mud");
    assert_true(m->interaction[clay->model].touch == touch);
    const usi_interaction_row *row = &m->pair_row[clay->parameter];
    assert_int_equal(row->n_parameter, 1);
    assert_string_equal(row->parameters[0].key, "depth");
    assert_true(row->parameters[0].number == 0.2);
    assert_int_equal(pair_of(m, "default", "default")->model, USI_MODEL_SPRING_DAMPER);
    us_model_destroy(m);
}

static void a_row_that_cannot_be_is_an_error(void **state) {
    (void)state;
    us_pair_def rows[6];
    static const char *const messages[6] = {
        "there is no interaction model \"magic\"; known: compliant, spring-damper",
        "its restitution is 1.5",
        "its kinetic friction 0.8 is above its static friction 0.5",
        "its viscous friction is -1",
        "its stiffness is nan",
        "its assumed mass or its reference speed is 0"};
    for (int i = 0; i < 6; i++)
        rows[i] = us_pair_def_default();
    rows[0].model = "magic";
    rows[1].values.restitution = 1.5;
    rows[2].values.static_friction = 0.5;
    rows[3].values.viscous = -1;
    rows[4].values.stiffness = NAN;
    rows[5].values.assumed_mass = 0;
    for (int i = 0; i < 6; i++) {
        us_spec *spec = new_spec();
        assert_int_equal(us_spec_add_pair(spec, &rows[i], NULL), US_OK);
        fails(spec, i ? US_ERR_VALUE : US_ERR_NAME, messages[i], "");
    }
}

static void the_exponent_of_a_spring_damper_is_checked_before_anything_touches(void **state) {
    (void)state;
    const struct {
        us_property parameter;
        us_status code;
        const char *message, *remedy;
    } bad[] = {
        {{.key = "exponent", .type = US_PROPERTY_NUMBER, .number = 0.99},
         US_ERR_VALUE,
         "its exponent is 0.99",
         "from 1"},
        {{.key = "exponent", .type = US_PROPERTY_NUMBER, .number = 4.01},
         US_ERR_VALUE,
         "its exponent is 4.01",
         "to 4"},
        {{.key = "exponent", .type = US_PROPERTY_NUMBER, .number = NAN},
         US_ERR_VALUE,
         "its exponent is nan",
         "from 1"},
        {{.key = "exponent", .type = US_PROPERTY_INTEGER, .integer = 0},
         US_ERR_VALUE,
         "its exponent is 0",
         "from 1"},
        {{.key = "exponent", .type = US_PROPERTY_STRING, .text = "1.5"},
         US_ERR_VALUE,
         "its exponent is the text \"1.5\"",
         "<number"},
        {{.key = "power", .type = US_PROPERTY_NUMBER, .number = 2},
         US_ERR_NAME,
         "spring-damper has no parameter \"power\"",
         "exponent"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        us_spec *spec = new_spec();
        us_pair_def p = us_pair_def_default();
        p.model = "spring-damper";
        p.parameters = &bad[i].parameter;
        p.n_parameter = 1;
        assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
        fails(spec, bad[i].code, bad[i].message, bad[i].remedy);
    }
    for (int64_t n = 1; n <= 4; n++) {
        us_spec *spec = new_spec();
        us_property exponent = {.key = "exponent", .type = US_PROPERTY_INTEGER, .integer = n};
        us_pair_def p = us_pair_def_default();
        p.model = "spring-damper";
        p.parameters = &exponent;
        p.n_parameter = 1;
        assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
        us_model_destroy(compile(spec));
        us_spec_destroy(spec);
    }
}

static void the_solver_is_chosen_by_name(void **state) {
    (void)state;
    static const char *const names[] = {NULL,           "newton",          "gauss-seidel",
                                        "rigid-direct", "rigid-iterative", "simplex"};
    static const int32_t wanted[] = {USI_SOLVER_NEWTON, USI_SOLVER_NEWTON, USI_SOLVER_GAUSS_SEIDEL,
                                     USI_SOLVER_RIGID_DIRECT, USI_SOLVER_RIGID_ITERATIVE};
    for (int i = 0; i < 6; i++) {
        us_spec *spec = new_spec();
        us_world_settings w = us_world_settings_default();
        w.solver = names[i];
        w.max_contact = 77;
        assert_int_equal(us_spec_set_world(spec, &w), US_OK);
        if (i == 5) {
            fails(spec, US_ERR_NAME, "there is no contact solver \"simplex\"", "newton, gauss-seidel");
            break;
        }
        us_model *m = compile(spec);
        us_spec_destroy(spec);
        assert_int_equal(m->solver, wanted[i]);
        assert_int_equal(m->max_contact, 77);
        us_model_destroy(m);
    }
}

// ---- Hash ----

static uint64_t hash_with(double x, const char *surface, double friction, double height, double parameter) {
    us_spec *spec = new_spec();
    add_material(spec, "rubber");
    add_material(spec, "ice");
    us_shape_def s = shape_of(US_SHAPE_BOX, US_WORLD, 1, 1, 1), mesh = cube_mesh(US_WORLD),
                 f = shape_of(US_SHAPE_HEIGHT_FIELD, US_WORLD, 1, 1, 1);
    double heights[4] = {0, 0, 0, height};
    f.heights = heights;
    f.n_x = f.n_y = 2;
    s.X_BG.p.x = x;
    s.surface = surface;
    add_shape(spec, &s);
    add_shape(spec, &mesh);
    add_shape(spec, &f);
    us_property one = {.key = "p", .type = US_PROPERTY_NUMBER, .number = parameter};
    us_pair_def p = us_pair_def_default();
    p.values.static_friction = p.values.kinetic_friction = friction;
    p.parameters = &one;
    p.n_parameter = 1;
    assert_int_equal(us_spec_add_pair(spec, &p, NULL), US_OK);
    us_model *m = compile(spec);
    uint64_t hash = us_model_hash(m);
    us_model_destroy(m);
    us_spec_destroy(spec);
    return hash;
}

static void the_hash_sees_every_number_of_shapes_and_materials_and_no_pointer(void **state) {
    (void)state;
    uint64_t hash = hash_with(1, "rubber", 0.5, 1, 2);
    void *shift = test_malloc(100000);  // so that what follows lies elsewhere
    assert_int_equal(hash, hash_with(1, "rubber", 0.5, 1, 2));
    test_free(shift);
    assert_true(hash != hash_with(1.0000001, "rubber", 0.5, 1, 2));
    assert_true(hash != hash_with(1, "ice", 0.5, 1, 2));
    assert_true(hash != hash_with(1, "rubber", 0.6, 1, 2));
    assert_true(hash != hash_with(1, "rubber", 0.5, 1.1, 2));
    assert_true(hash != hash_with(1, "rubber", 0.5, 1, 3));
}

// ---- Memory ----

typedef struct short_memory {
    int left, n_live;
} short_memory;

static void *short_alloc(void *context, size_t size, size_t align) {
    short_memory *m = context;
    us_allocator heap = us_allocator_default();
    if (m->left-- <= 0) return NULL;
    m->n_live++;
    return heap.alloc(heap.context, size, align);
}

static void short_release(void *context, void *memory, size_t size, size_t align) {
    short_memory *m = context;
    us_allocator heap = us_allocator_default();
    m->n_live--;
    heap.release(heap.context, memory, size, align);
}

static void memory_that_ends_anywhere_leaves_nothing_behind(void **state) {
    (void)state;
    us_vec3 points[12];
    int32_t triangles[60];
    us_spec *spec = new_spec();
    int32_t link = add_link(spec, "link", US_JOINT_FLOATING, US_WORLD);
    us_shape_def split = l_mesh(link, points, triangles), whole = cube_mesh(US_WORLD),
                 moving = cube_mesh(link);
    split.part_error = 0.01;
    double heights[4] = {0, 0, 0, 1};
    us_shape_def f = shape_of(US_SHAPE_HEIGHT_FIELD, US_WORLD, 1, 1, 1),
                 together = shape_of(US_SHAPE_UNION, US_WORLD, 0, 0, 0);
    f.heights = heights;
    f.n_x = f.n_y = 2;
    together.parts = &whole;
    together.n_part = 1;
    add_shape(spec, &split);
    add_shape(spec, &whole);
    add_shape(spec, &moving);
    add_shape(spec, &f);
    add_shape(spec, &together);
    add_material(spec, "rubber");
    add_pair(spec, "rubber", NULL, NULL, 0.5);
    us_status status = US_ERR_MEMORY;
    int n = 0;
    for (; status && n < 5000; n++) {
        short_memory memory = {.left = n};
        us_allocator a = {short_alloc, short_release, &memory};
        us_model *m = NULL;
        us_error err;
        status = us_model_compile(spec, &a, &m, &err);
        if (status) assert_int_equal(status, US_ERR_MEMORY);
        us_model_destroy(m);
        assert_int_equal(memory.n_live, 0);
    }
    assert_int_equal(status, US_OK);
    assert_true(n > 10);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_lengths_become_half_lengths_and_radii),
        cmocka_unit_test(the_definition_may_die_after_adding),
        cmocka_unit_test(a_shape_without_its_arrays_is_not_taken),
        cmocka_unit_test(shapes_stand_on_their_nodes_those_of_the_world_first),
        cmocka_unit_test(only_shapes_of_the_links_level_that_collide_are_there),
        cmocka_unit_test(a_mesh_that_stands_is_triangles_and_one_that_moves_a_hull),
        cmocka_unit_test(a_moving_mesh_splits_into_convex_parts_when_told),
        cmocka_unit_test(a_hull_far_larger_than_its_mesh_is_a_warning_that_names_the_remedy),
        cmocka_unit_test(a_flat_moving_mesh_does_not_collide_and_says_so),
        cmocka_unit_test(a_mesh_known_by_name_alone_does_not_collide),
        cmocka_unit_test(a_shape_that_cannot_be_is_an_error_with_a_remedy),
        cmocka_unit_test(links_joined_by_a_joint_or_a_loop_never_collide_nor_what_is_fixed_to_them),
        cmocka_unit_test(groups_and_masks_hold_in_both_directions),
        cmocka_unit_test(an_exclusion_of_a_link_with_itself_or_of_none_is_an_error),
        cmocka_unit_test(the_default_material_is_always_number_0),
        cmocka_unit_test(an_unknown_material_is_an_error_that_lists_the_known_ones),
        cmocka_unit_test(without_a_row_the_defaults_hold),
        cmocka_unit_test(the_most_particular_row_wins),
        cmocka_unit_test(a_row_names_its_model_and_brings_its_parameters),
        cmocka_unit_test(a_row_that_cannot_be_is_an_error),
        cmocka_unit_test(the_exponent_of_a_spring_damper_is_checked_before_anything_touches),
        cmocka_unit_test(the_solver_is_chosen_by_name),
        cmocka_unit_test(the_hash_sees_every_number_of_shapes_and_materials_and_no_pointer),
        cmocka_unit_test(memory_that_ends_anywhere_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
