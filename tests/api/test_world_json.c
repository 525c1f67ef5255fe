// The world as JSON: everything stands at its index, every number comes back, texts survive.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "allocator.h"
#include "understudy/network.h"
#include "view/view__asset.h"
#include "view/view__bytes.h"
#include "world/revision.h"

// ---- Worlds ----

static usi_revision *world_of_spec(us_spec *spec, uint32_t epoch, const char *file) {
    us_allocator a = us_allocator_default();
    us_error err = {0};
    usi_revision *world = NULL;
    if (usi_revision_create(spec, &a, epoch, "", file, &world, &err)) fail_msg("%s", err.message);
    return world;
}

// NULL when the file is not there.
static usi_revision *world_of_file(const char *name, uint32_t epoch) {
    static char path[1024];
    snprintf(path, sizeof path, US_SOURCE_DIR "/%s", name);
    if (access(path, R_OK) != 0) return NULL;
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load(path, NULL, &spec, &err)) fail_msg("%s: %s", path, err.message);
    return world_of_spec(spec, epoch, path);
}

static usi_revision *world_of_text(const char *text) {
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(text, strlen(text), "text.xml", NULL, &spec, &err)) fail_msg("%s", err.message);
    return world_of_spec(spec, 1, "text.xml");
}

// The parsed JSON; nothing may follow it.
static cJSON *parse(const char *bytes, size_t length) {
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(bytes, length, &end, false);
    assert_non_null(json);
    assert_ptr_equal(end, bytes + length);
    return json;
}

static cJSON *json_of(const usi_revision *world) {
    us_allocator a = us_allocator_default();
    char *bytes = NULL;
    size_t length = 0;
    assert_int_equal(usi_world_json(world, &a, &bytes, &length), US_OK);
    cJSON *json = parse(bytes, length);
    usi_release(&a, bytes, length, 1);
    return json;
}

// ---- What is in it ----

static const cJSON *get(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("there is no \"%s\"", key);
    return item;
}

// Exactly the double that was written: cJSON reads with strtod.
static void check_number(const cJSON *item, double x) {
    assert_true(cJSON_IsNumber(item));
    assert_true(item->valuedouble == x);
}

static void check_numbers(const cJSON *object, const char *key, const double *x, int n) {
    const cJSON *list = get(object, key);
    assert_true(cJSON_IsArray(list));
    assert_int_equal(cJSON_GetArraySize(list), n);
    for (int i = 0; i < n; i++)
        check_number(cJSON_GetArrayItem(list, i), x[i]);
}

static void check_vector(const cJSON *object, const char *key, us_vec3 a) {
    const double x[3] = {a.x, a.y, a.z};
    check_numbers(object, key, x, 3);
}

static void check_integer(const cJSON *object, const char *key, int64_t x) {
    check_number(get(object, key), (double)x);
}

static void check_text(const cJSON *object, const char *key, const char *text) {
    const cJSON *item = get(object, key);
    if (!text) {
        assert_true(cJSON_IsNull(item));
        return;
    }
    assert_true(cJSON_IsString(item));
    assert_string_equal(item->valuestring, text);
}

static void check_bool(const cJSON *object, const char *key, bool x) {
    const cJSON *item = get(object, key);
    assert_true(cJSON_IsBool(item));
    assert_int_equal(cJSON_IsTrue(item), x);
}

static void check_pose(const cJSON *object, us_pose X) {
    const double q[4] = {X.q.w, X.q.x, X.q.y, X.q.z};
    check_vector(object, "p", X.p);
    check_numbers(object, "q", q, 4);
}

// The list with as many entries as the spec has.
static const cJSON *list_of(const cJSON *world, const char *key, int32_t n) {
    const cJSON *list = get(world, key);
    assert_true(cJSON_IsArray(list));
    assert_int_equal(cJSON_GetArraySize(list), n);
    return list;
}

static void check_group(const cJSON *json, const us_spec *spec, int32_t i) {
    const us_group_def *group = us_spec_view_group(spec, i);
    const us_network_def *network = us_spec_view_network(spec, i);
    check_text(json, "name", group->name);
    check_bool(json, "floating", group->is_floating);
    check_text(json, "file", group->file);
    check_bool(json, "robot", network != NULL);
    check_text(json, "namespace", network && !network->is_off ? network->namespace_ : NULL);
    const cJSON *locomotion = get(json, "locomotion");
    bool can_drive = network && !network->is_off && network->locomotion != US_LOCOMOTION_NONE;
    assert_int_equal(cJSON_IsObject(locomotion), can_drive);
    if (!can_drive) return;
    check_text(locomotion, "type", us_locomotion_name(network->locomotion));
    check_number(get(locomotion, "max_speed"), network->max_speed);
    check_number(get(locomotion, "max_turn"), network->max_turn);
}

static void check_joint(const cJSON *json, const us_joint_def *joint) {
    check_text(json, "name", joint->name);
    check_integer(json, "group", joint->group);
    check_text(json, "type", us_joint_type_name(joint->type));
    check_integer(json, "parent", joint->parent);
    check_integer(json, "child", joint->child);
    check_pose(json, joint->X_PF);
    check_vector(json, "axis", joint->axis);
    const double limits[2] = {joint->lower, joint->upper};
    if (joint->has_limits) check_numbers(json, "limits", limits, 2);
    if (!joint->has_limits) assert_true(cJSON_IsNull(get(json, "limits")));
    check_number(get(json, "damping"), joint->damping);
    check_number(get(json, "stiffness"), joint->stiffness);
    check_number(get(json, "friction"), joint->friction);
    check_number(get(json, "armature"), joint->armature);
    check_integer(json, "n_q", us_joint_type_n_q(joint->type));
    check_integer(json, "n_v", us_joint_type_n_v(joint->type));
}

static void check_shape(const cJSON *json, const us_shape_def *shape) {
    check_integer(json, "link", shape->link);
    check_text(json, "name", shape->name);
    check_text(json, "kind", us_shape_kind_name(shape->kind));
    check_numbers(json, "size", shape->size, 3);
    check_pose(json, shape->X_BG);
    check_bool(json, "visual", shape->is_visual);
    check_bool(json, "collision", shape->is_collision);
    check_text(json, "surface", shape->surface);
    check_number(get(json, "margin"), shape->margin);
    check_integer(json, "level", shape->level);
    // A colour nobody spoke of is that of every new shape.
    us_shape_def silent = us_shape_def_default(shape->kind);
    const cJSON *rgba = get(json, "rgba");
    assert_int_equal(cJSON_IsNull(rgba), memcmp(silent.rgba, shape->rgba, sizeof silent.rgba) == 0);
    for (int k = 0; k < 4 && cJSON_IsArray(rgba); k++)
        assert_true((float)cJSON_GetArrayItem(rgba, k)->valuedouble == shape->rgba[k]);
    const cJSON *asset = cJSON_GetObjectItemCaseSensitive(json, "asset");
    assert_int_equal(asset != NULL, usi_asset_of(shape) != USI_ASSET_NONE);
    if (shape->kind == US_SHAPE_HEIGHT_FIELD) {
        check_integer(json, "nx", shape->n_x);
        check_integer(json, "ny", shape->n_y);
    }
    if (shape->kind == US_SHAPE_MESH && shape->n_triangle > 0) {
        check_vector(get(json, "box"), "min", shape->box_min);
        check_vector(get(json, "box"), "max", shape->box_max);
    }
    bool has_parts = shape->kind == US_SHAPE_UNION || shape->kind == US_SHAPE_INTERSECTION;
    assert_int_equal(cJSON_HasObjectItem(json, "parts"), has_parts);
    if (!has_parts) return;
    const cJSON *parts = list_of(json, "parts", shape->n_part);
    for (int32_t k = 0; k < shape->n_part; k++)
        check_shape(cJSON_GetArrayItem(parts, k), &shape->parts[k]);
}

static void check_world(const usi_revision *world) {
    const us_spec *spec = world->spec;
    us_spec_counts n = us_spec_get_counts(spec);
    const us_world_settings *def = us_spec_view_world(spec);
    cJSON *json = json_of(world);
    check_integer(json, "epoch", world->number);
    check_text(json, "name", def->name);
    check_text(json, "file", world->file);
    check_number(get(json, "step"), def->step);
    check_vector(json, "gravity", def->gravity);
    check_text(json, "integrator", us_integrator_name(def->integrator));
    check_text(json, "solver", def->solver);
    check_number(get(json, "seed"), (double)def->seed);
    const cJSON *item = NULL;
    int32_t i = 0;
    cJSON_ArrayForEach(item, list_of(json, "groups", n.n_group)) check_group(item, spec, i++);
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "links", n.n_link)) {
        const us_link_def *link = us_spec_view_link(spec, i++);
        check_text(item, "name", link->name);
        check_integer(item, "group", link->group);
        check_number(get(item, "mass"), link->inertia.mass);
        check_vector(item, "com", link->inertia.com);
        check_numbers(item, "inertia", link->inertia.about_com, 6);
    }
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "joints", n.n_joint))
        check_joint(item, us_spec_view_joint(spec, i++));
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "drives", n.n_drive)) {
        const us_drive_def *drive = us_spec_view_drive(spec, i++);
        check_text(item, "name", drive->name);
        check_integer(item, "joint", drive->joint);
        check_number(get(item, "kp"), drive->kp);
        check_number(get(item, "kd"), drive->kd);
        check_number(get(item, "limit"), drive->limit);
    }
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "shapes", n.n_shape))
        check_shape(item, us_spec_view_shape(spec, i++));
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "materials", n.n_material)) {
        const us_material_def *material = us_spec_view_material(spec, i++);
        check_text(item, "name", material->name);
        assert_int_equal(cJSON_GetArraySize(get(item, "properties")), material->n_property);
    }
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "pairs", n.n_pair)) {
        const us_pair_def *pair = us_spec_view_pair(spec, i++);
        check_text(item, "a", pair->material_a);
        check_text(item, "b", pair->material_b);
        check_text(item, "model", pair->model);
        check_text(item, "fidelity", pair->fidelity);
    }
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "couplings", n.n_coupling))
        check_text(item, "name", us_spec_view_coupling(spec, i++)->name);
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "loops", n.n_loop)) {
        static const char *const types[] = {"point", "hinge", "weld"};
        check_text(item, "name", us_spec_view_loop(spec, i)->name);
        check_text(item, "type", types[us_spec_view_loop(spec, i++)->type]);
    }
    i = 0;
    cJSON_ArrayForEach(item, list_of(json, "regions", n.n_region)) {
        const us_region_def *region = us_spec_view_region(spec, i++);
        int32_t ground = get(item, "shape")->valueint;
        check_text(item, "name", region->name);
        check_text(item, "material", region->material);
        assert_string_equal(us_spec_view_shape(spec, ground)->name, region->ground);
        check_numbers(item, "polygon", region->corners, 2 * region->n_corner);
    }
    cJSON_Delete(json);
}

// ---- Tests ----

static void everything_in_our_scenes_stands_at_its_index(void **state) {
    (void)state;
    static const char *const scenes[] = {
        "scenes/default.xml",  "scenes/arm.xml",         "scenes/fleet.xml",
        "scenes/four-bar.xml", "scenes/every-joint.xml", "scenes/grasp.xml",
        "scenes/gripper.xml",  "scenes/rocker.xml",      "tests/browser/soil.xml"};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        usi_revision *world = world_of_file(scenes[i], (uint32_t)i + 1);
        assert_non_null(world);
        check_world(world);
        usi_revision_unref(world);
    }
}

static void robots_with_meshes_stand_at_their_index_too(void **state) {
    (void)state;
    static const char *const robots[] = {"../shared/data/models/husky/husky.urdf",
                                         "../shared/data/models/ur10/ur10.urdf"};
    for (size_t i = 0; i < sizeof robots / sizeof *robots; i++) {
        usi_revision *world = world_of_file(robots[i], 7);
        if (!world) {
            print_message("%s is not there: skipped\n", robots[i]);
            continue;
        }
        check_world(world);
        usi_revision_unref(world);
    }
}

// A box of 1 x 1 x 1 m as text STL.
static void write_box(const char *name) {
    static const int corner[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                     {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    static const int face[12][3] = {{0, 2, 1}, {0, 3, 2}, {4, 5, 6}, {4, 6, 7}, {0, 1, 5}, {0, 5, 4},
                                    {1, 2, 6}, {1, 6, 5}, {2, 3, 7}, {2, 7, 6}, {3, 0, 4}, {3, 4, 7}};
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs("solid box\n", f);
    for (int t = 0; t < 12; t++) {
        fputs("facet normal 0 0 0\nouter loop\n", f);
        for (int k = 0; k < 3; k++)
            fprintf(f, "vertex %d %d %d\n", corner[face[t][k]][0], corner[face[t][k]][1],
                    corner[face[t][k]][2]);
        fputs("endloop\nendfacet\n", f);
    }
    fputs("endsolid box\n", f);
    assert_int_equal(fclose(f), 0);
}

static const char *asset_of(const cJSON *shapes, int i) {
    return get(cJSON_GetArrayItem(shapes, i), "asset")->valuestring;
}

static void the_same_file_at_the_same_scale_and_colour_is_one_asset(void **state) {
    (void)state;
    write_box("box.stl");
    usi_revision *world = world_of_text(
        "<scene name='s' version='1'><world><shape type='sphere' size='1'/><shape type='mesh' "
        "file='box.stl'/>"
        "<shape type='mesh' file='box.stl' xyz='2 0 0'/><shape type='mesh' file='box.stl' scale='2'/>"
        "<shape type='mesh' file='box.stl' rgba='1 0 0 1'/></world></scene>");
    cJSON *json = json_of(world);
    const cJSON *shapes = get(json, "shapes");
    assert_false(cJSON_HasObjectItem(cJSON_GetArrayItem(shapes, 0), "asset"));
    assert_string_equal(asset_of(shapes, 1), "/api/asset/1/1.glb");
    assert_string_equal(asset_of(shapes, 2), "/api/asset/1/1.glb");
    assert_string_equal(asset_of(shapes, 3), "/api/asset/1/3.glb");
    assert_string_equal(asset_of(shapes, 4), "/api/asset/1/4.glb");
    cJSON_Delete(json);
    usi_revision_unref(world);
}

static void parts_of_unions_have_assets_of_their_own(void **state) {
    (void)state;
    write_box("box.stl");
    usi_revision *world =
        world_of_text("<scene name='s' version='1'><world><shape type='union' xyz='1 2 "
                      "3'><shape type='box' size='1 1 1'/><shape type='union'>"
                      "<shape type='mesh' file='box.stl'/></shape></shape></world></scene>");
    cJSON *json = json_of(world);
    const cJSON *parts = get(cJSON_GetArrayItem(get(json, "shapes"), 0), "parts");
    const cJSON *inner = get(cJSON_GetArrayItem(parts, 1), "parts");
    const char *path = asset_of(inner, 0);
    assert_string_equal(path, "/api/asset/1/0.1.0.glb");
    us_allocator a = us_allocator_default();
    void *bytes = NULL;
    size_t length = 0;
    us_error err = {0};
    assert_int_equal(usi_world_asset(world, strrchr(path, '/') + 1, &a, &bytes, &length, &err), US_OK);
    assert_memory_equal(bytes, "glTF", 4);
    usi_release(&a, bytes, length, 1);
    check_world(world);
    cJSON_Delete(json);
    usi_revision_unref(world);
}

static void points_are_flat_lists_and_those_of_large_hulls_its_corners(void **state) {
    (void)state;
    us_allocator a = us_allocator_default();
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(&a, &spec), US_OK);
    // The corners of a cube, and a thousand points inside it that the hull does not need.
    us_vec3 points[1008];
    for (int i = 0; i < 8; i++)
        points[i] = us_vec3_make(i & 1 ? 1 : -1, i & 2 ? 1 : -1, i & 4 ? 1 : -1);
    for (int i = 8; i < 1008; i++) {
        double x[3];
        for (int k = 0; k < 3; k++)
            x[k] = 1.8 * us_random_uniform(1, (uint64_t)k, (uint64_t)i) - 0.9;
        points[i] = us_vec3_make(x[0], x[1], x[2]);
    }
    us_shape_def shape = us_shape_def_default(US_SHAPE_CONVEX);
    shape.points = points;
    shape.n_point = 1008;
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
    shape = us_shape_def_default(US_SHAPE_TETRAHEDRON);
    points[3] = us_vec3_make(0.1, 1.0 / 3, -1e-7);
    shape.points = points;
    shape.n_point = 4;
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
    usi_revision *world = world_of_spec(spec, 1, NULL);
    cJSON *json = json_of(world);
    const cJSON *shapes = get(json, "shapes"), *hull = get(cJSON_GetArrayItem(shapes, 0), "points");
    assert_int_equal(cJSON_GetArraySize(hull), 24);
    const cJSON *x = NULL;
    cJSON_ArrayForEach(x, hull) assert_true(fabs(x->valuedouble) == 1);
    double flat[12];
    for (int i = 0; i < 4; i++) {
        flat[3 * i] = points[i].x;
        flat[3 * i + 1] = points[i].y;
        flat[3 * i + 2] = points[i].z;
    }
    check_numbers(cJSON_GetArrayItem(shapes, 1), "points", flat, 12);
    assert_true(cJSON_IsNull(get(json, "file")));
    cJSON_Delete(json);
    usi_revision_unref(world);
}

static cJSON *numbers_as_json(const double *x, size_t n) {
    us_allocator a = us_allocator_default();
    usi_bytes bytes;
    usi_json json;
    usi_bytes_init(&bytes, &a, 1 << 20);
    usi_json_init(&json, &bytes);
    usi_json_numbers(&json, NULL, x, n);
    usi_json_fini(&json);
    cJSON *parsed = parse(bytes.at, bytes.length);
    usi_bytes_fini(&bytes);
    return parsed;
}

static void every_number_comes_back_and_what_is_not_finite_is_null(void **state) {
    (void)state;
    const double x[] = {0,
                        -0.0,
                        1,
                        -1,
                        0.1,
                        1.0 / 3,
                        5e-324,
                        2.2250738585072014e-308,
                        1.7976931348623157e308,
                        9007199254740993.0,
                        1e15,
                        1e16,
                        123456789.125,
                        -1e-7,
                        0.30000000000000004,
                        1e22,
                        4.35,
                        2.5e-310};
    enum { N = sizeof x / sizeof *x };
    cJSON *list = numbers_as_json(x, N);
    assert_int_equal(cJSON_GetArraySize(list), N);
    for (int i = 0; i < N; i++)
        check_number(cJSON_GetArrayItem(list, i), x[i]);
    cJSON_Delete(list);
    // Of all sizes, with few digits and with all.
    for (uint64_t i = 0; i < 20000; i++) {
        double y = (us_random_uniform(1, 0, i) - 0.5) * pow(10, floor(40 * us_random_uniform(1, 1, i)) - 20);
        if (i % 2) y = rint(y * 1e6) / 1e6;
        list = numbers_as_json(&y, 1);
        check_number(cJSON_GetArrayItem(list, 0), y);
        cJSON_Delete(list);
    }
    const double bad[] = {NAN, INFINITY, -INFINITY};
    list = numbers_as_json(bad, 3);
    for (int i = 0; i < 3; i++)
        assert_true(cJSON_IsNull(cJSON_GetArrayItem(list, i)));
    cJSON_Delete(list);
}

static void the_decimal_point_is_one_in_every_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]);
    if (!found) {
        print_message("no locale with a decimal comma is installed: skipped\n");
        skip();
    }
    const double x = 0.25;
    cJSON *list = numbers_as_json(&x, 1);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(cJSON_GetArraySize(list), 1);
    check_number(cJSON_GetArrayItem(list, 0), 0.25);
    cJSON_Delete(list);
}

static void texts_are_escaped_and_bad_characters_replaced(void **state) {
    (void)state;
    static const struct {
        const char *text, *back;
    } rows[] = {
        {"", ""},
        {"k10/base", "k10/base"},
        {"a\"b\\c/d", "a\"b\\c/d"},
        {"tab\tline\nbell\a\x7f", "tab\tline\nbell\a\x7f"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\xa4\x96",
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\xa4\x96"},
        {"\xff", "\xef\xbf\xbd"},
        {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"long \xc0\xaf", "long \xef\xbf\xbd\xef\xbf\xbd"},
        {"surrogate \xed\xa0\x80.", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd."},
        {"high \xf4\x90\x80\x80", "high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    us_allocator a = us_allocator_default();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        usi_bytes bytes;
        usi_json json;
        usi_bytes_init(&bytes, &a, 1 << 20);
        usi_json_init(&json, &bytes);
        usi_json_begin(&json, NULL, '{');
        usi_json_text(&json, rows[i].text, rows[i].text);
        usi_json_end(&json, '}');
        usi_json_fini(&json);
        cJSON *parsed = parse(bytes.at, bytes.length);
        assert_string_equal(parsed->child->string, rows[i].back);
        assert_string_equal(parsed->child->valuestring, rows[i].back);
        cJSON_Delete(parsed);
        usi_bytes_fini(&bytes);
    }
}

static void a_buffer_keeps_to_its_limit(void **state) {
    (void)state;
    us_allocator a = us_allocator_default();
    usi_bytes bytes;
    usi_bytes_init(&bytes, &a, 10);
    usi_bytes_put(&bytes, "0123456789", 10);
    assert_int_equal(bytes.status, US_OK);
    usi_bytes_put(&bytes, "0", 1);
    assert_int_equal(bytes.status, US_ERR_LIMIT);
    assert_null(usi_bytes_room(&bytes, SIZE_MAX));
    char *out = NULL;
    size_t length = 1;
    assert_int_equal(usi_bytes_take(&bytes, &out, &length), US_ERR_LIMIT);
    assert_null(out);
    assert_int_equal(length, 0);
}

static void no_memory_at_any_point_is_said_and_nothing_leaks(void **state) {
    (void)state;
    usi_revision *world = world_of_file("scenes/arm.xml", 1);
    assert_non_null(world);
    int64_t n = 1;
    for (us_status status = US_ERR_MEMORY; status; n++) {
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = n;
        char *bytes = NULL;
        size_t length = 0;
        status = usi_world_json(world, &t.allocator, &bytes, &length);
        if (status) assert_int_equal(status, US_ERR_MEMORY);
        if (status) assert_null(bytes);
        usi_release(&t.allocator, bytes, length, 1);
        test_allocator_check(&t);
        assert_true(n < 100);
    }
    // It asked for memory at least for the keys and the buffer.
    assert_true(n > 3);
    usi_revision_unref(world);
}

// ---- Sensors ----

static const cJSON *named(const cJSON *list, const char *name) {
    const cJSON *one = NULL;
    cJSON_ArrayForEach(one, list) {
        if (strcmp(cJSON_GetStringValue(get(one, "name")), name) == 0) return one;
    }
    fail_msg("there is no %s", name);
    return NULL;
}

// Each sensor with what it sees, and of each kind once what it reads and what can be changed.
static void sensors_and_their_kinds_are_told(void **state) {
    (void)state;
    usi_revision *world = world_of_file("scenes/instruments.xml", 1);
    assert_non_null(world);
    cJSON *json = json_of(world);
    const cJSON *kinds = get(json, "sensor_kinds"), *sensors = get(json, "sensors"), *one = NULL;
    cJSON_ArrayForEach(one, sensors) named(kinds, cJSON_GetStringValue(get(one, "kind")));
    const cJSON *laser = named(sensors, "laser"), *range = named(kinds, "range");
    assert_true(cJSON_GetNumberValue(get(laser, "range")) == 80);
    assert_true(cJSON_GetNumberValue(get(laser, "fov")) == 0);
    assert_string_equal(cJSON_GetStringValue(get(named(get(range, "readings"), "range"), "unit")), "m");
    const cJSON *noise = named(get(range, "parameters"), "noise"),
                *waves = named(get(range, "parameters"), "waves");
    assert_true(cJSON_GetNumberValue(get(noise, "low")) == 0 &&
                cJSON_GetNumberValue(get(noise, "high")) == 1e6);
    assert_int_equal(cJSON_GetArraySize(get(waves, "choices")), 2);
    // Joints are chosen in the scene alone.
    cJSON_ArrayForEach(one, get(named(kinds, "encoder"), "parameters"))
        assert_string_not_equal(cJSON_GetStringValue(get(one, "name")), "joint");
    cJSON_Delete(json);
    usi_revision_unref(world);
}

// Of a camera the angles of its pictures: 65 degrees of 640 x 480 square pixels.
static void cameras_say_what_they_see(void **state) {
    (void)state;
    usi_revision *world = world_of_file("scenes/camera.xml", 1);
    assert_non_null(world);
    cJSON *json = json_of(world);
    const cJSON *eye = named(get(json, "sensors"), "eye");
    const double half = 0.5 * cJSON_GetNumberValue(get(eye, "wide"));
    assert_true(fabs(2 * half - 65 * M_PI / 180) < 1e-12);
    assert_true(fabs(tan(0.5 * cJSON_GetNumberValue(get(eye, "high"))) - 0.75 * tan(half)) < 1e-12);
    cJSON_Delete(json);
    usi_revision_unref(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cameras_say_what_they_see),
        cmocka_unit_test(everything_in_our_scenes_stands_at_its_index),
        cmocka_unit_test(robots_with_meshes_stand_at_their_index_too),
        cmocka_unit_test(the_same_file_at_the_same_scale_and_colour_is_one_asset),
        cmocka_unit_test(parts_of_unions_have_assets_of_their_own),
        cmocka_unit_test(points_are_flat_lists_and_those_of_large_hulls_its_corners),
        cmocka_unit_test(every_number_comes_back_and_what_is_not_finite_is_null),
        cmocka_unit_test(the_decimal_point_is_one_in_every_locale),
        cmocka_unit_test(texts_are_escaped_and_bad_characters_replaced),
        cmocka_unit_test(a_buffer_keeps_to_its_limit),
        cmocka_unit_test(sensors_and_their_kinds_are_told),
        cmocka_unit_test(no_memory_at_any_point_is_said_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
