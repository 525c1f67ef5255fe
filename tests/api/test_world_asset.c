// Assets of a world: meshes as binary glTF, heights as floats; names that are none; files that are gone.
//
// Small mesh files are written into the directory in which the test runs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "allocator.h"
#include "glb_reader.h"
#include "view/view__asset.h"
#include "world/revision.h"

// ---- Worlds ----

static usi_revision *world_of_spec(us_spec *spec) {
    us_allocator a = us_allocator_default();
    us_error err = {0};
    usi_revision *world = NULL;
    if (usi_revision_create(spec, &a, 1, "", NULL, &world, &err)) fail_msg("%s", err.message);
    return world;
}

static usi_revision *world_of_file(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, US_SOURCE_DIR "/%s", name);
    if (access(path, R_OK) != 0) return NULL;
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load(path, NULL, &spec, &err)) fail_msg("%s: %s", path, err.message);
    return world_of_spec(spec);
}

// A world of the shapes that are written here.
static usi_revision *world_of_shapes(const char *shapes) {
    char text[4096];
    int n = snprintf(text, sizeof text, "<scene name='s' version='1'><world>%s</world></scene>", shapes);
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(text, (size_t)n, "text.xml", NULL, &spec, &err)) fail_msg("%s", err.message);
    return world_of_spec(spec);
}

static us_status ask(const usi_revision *world, const char *name, us_error *err) {
    us_allocator a = us_allocator_default();
    void *bytes = NULL;
    size_t length = 0;
    us_status status = usi_world_asset(world, name, &a, &bytes, &length, err);
    if (status) assert_null(bytes);
    usi_release(&a, bytes, length, 1);
    return status;
}

// ---- What the files hold ----

static test_glb glb_of(const usi_revision *world, const char *name) {
    us_allocator a = us_allocator_default();
    us_error err = {0};
    void *bytes = NULL;
    size_t length = 0;
    if (usi_world_asset(world, name, &a, &bytes, &length, &err)) fail_msg("%s: %s", name, err.message);
    return test_glb_open(bytes, length);
}

static void glb_free(test_glb *g) {
    us_allocator a = us_allocator_default();
    usi_release(&a, g->bytes, g->length, 1);
    cJSON_Delete(g->json);
}

// 1e-5 of the mesh's size: positions are single precision, some 1e-7.
static void check_box(const test_glb_summary *s, us_vec3 low, us_vec3 high) {
    const double a[3] = {low.x, low.y, low.z}, b[3] = {high.x, high.y, high.z};
    double size = 0;
    for (int k = 0; k < 3; k++)
        size = fmax(size, fmax(fabs(a[k]), fabs(b[k])));
    for (int k = 0; k < 3; k++) {
        assert_true(fabs(s->low[k] - a[k]) <= 1e-5 * size);
        assert_true(fabs(s->high[k] - b[k]) <= 1e-5 * size);
    }
}

static void check_shape(const usi_revision *world, int32_t i) {
    const us_shape_def *shape = us_spec_view_shape(world->spec, i);
    char name[32];
    snprintf(name, sizeof name, "%d.glb", (int)i);
    test_glb g = glb_of(world, name);
    test_glb_summary s = test_glb_summary_of(&g);
    check_box(&s, shape->box_min, shape->box_max);
    // Of a mesh that collides, the spec keeps only triangles that are more than lines.
    assert_int_equal(s.n_triangle - (shape->triangles ? s.n_flat : 0), shape->n_triangle);
    glb_free(&g);
}

static void check_colour(const cJSON *material, const double rgba[4]) {
    const cJSON *factor = test_glb_get(test_glb_get(material, "pbrMetallicRoughness"), "baseColorFactor");
    // Single precision, and a power of 2.4 of it.
    for (int k = 0; k < 4; k++)
        assert_true(fabs(cJSON_GetArrayItem(factor, k)->valuedouble - rgba[k]) < 1e-5);
}

static double linear_of_srgb(double x) { return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4); }

// ---- Files ----

static void write_file(const char *name, const void *bytes, size_t length) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}
static void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

// A box from the origin to (1, 2, 3), its faces seen from outside.
#define OBJ_CORNERS "v 0 0 0\nv 1 0 0\nv 1 2 0\nv 0 2 0\nv 0 0 3\nv 1 0 3\nv 1 2 3\nv 0 2 3\n"
static const int face[6][4] = {{1, 4, 3, 2}, {5, 6, 7, 8}, {1, 2, 6, 5},
                               {2, 3, 7, 6}, {3, 4, 8, 7}, {4, 1, 5, 8}};

static void write_obj(const char *name, const char *head, bool has_uv) {
    char text[2048];
    size_t n =
        (size_t)snprintf(text, sizeof text, "%s" OBJ_CORNERS "vt 0 0\nvt 1 0\nvt 1 0.75\nvt 0 0.75\n%s", head,
                         head[0] ? "usemtl paint\n" : "");
    for (int f = 0; f < 6; f++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "f");
        for (int k = 0; k < 4; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, has_uv ? " %d/%d" : " %d", face[f][k], k + 1);
        n += (size_t)snprintf(text + n, sizeof text - n, "\n");
    }
    write_text(name, text);
}

// The same box as STL whose normals are all 0, as careless programs write them.
static void write_stl(const char *name) {
    static const float corner[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {0, 2, 0},
                                       {0, 0, 3}, {1, 0, 3}, {1, 2, 3}, {0, 2, 3}};
    unsigned char bytes[84 + 50 * 12] = {0};
    bytes[80] = 12;
    for (int f = 0; f < 12; f++) {
        const int *q = face[f / 2], pick[2][3] = {{0, 1, 2}, {0, 2, 3}};
        for (int k = 0; k < 3; k++)
            memcpy(bytes + 84 + 50 * f + 12 + 12 * k, corner[q[pick[f % 2][k]] - 1], 12);
    }
    write_file(name, bytes, sizeof bytes);
}

// A tetrahedron of red colour, in centimetres and with y up, moved by 10 along x.
static void write_dae(const char *name) {
    write_text(name, "<?xml version=\"1.0\"?><COLLADA xmlns=\"http://www.collada.org/2005/11/COLLADASchema\" "
                     "version=\"1.4.1\">"
                     "<asset><unit meter=\"0.01\"/><up_axis>Y_UP</up_axis></asset>"
                     "<library_effects><effect id=\"e\"><profile_COMMON><technique "
                     "sid=\"common\"><phong><diffuse><color>0.5 0 0.25 1</color></diffuse>"
                     "</phong></technique></profile_COMMON></effect></library_effects>"
                     "<library_materials><material id=\"m\" name=\"m\"><instance_effect "
                     "url=\"#e\"/></material></library_materials>"
                     "<library_geometries><geometry id=\"g\"><mesh><source id=\"p\"><float_array id=\"pa\" "
                     "count=\"12\">0 0 0 100 0 0 0 200 0 0 0 "
                     "300</float_array><technique_common><accessor source=\"#pa\" count=\"4\" "
                     "stride=\"3\"><param name=\"X\" type=\"float\"/>"
                     "<param name=\"Y\" type=\"float\"/><param name=\"Z\" "
                     "type=\"float\"/></accessor></technique_common></source>"
                     "<vertices id=\"v\"><input semantic=\"POSITION\" source=\"#p\"/></vertices><triangles "
                     "count=\"4\" material=\"s\">"
                     "<input semantic=\"VERTEX\" source=\"#v\" offset=\"0\"/><p>0 2 1 0 1 3 1 2 3 0 3 "
                     "2</p></triangles></mesh></geometry>"
                     "</library_geometries><library_visual_scenes><visual_scene id=\"s\"><node "
                     "id=\"n\"><translate>1000 0 0</translate>"
                     "<instance_geometry url=\"#g\"><bind_material><technique_common><instance_material "
                     "symbol=\"s\" target=\"#m\"/></technique_common>"
                     "</bind_material></instance_geometry></node></visual_scene></library_visual_scenes>"
                     "<scene><instance_visual_scene url=\"#s\"/></scene></COLLADA>");
}

// A whole picture of one pixel.
static const unsigned char png[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
                                    0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01,
                                    0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00,
                                    0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0x00,
                                    0x00, 0x03, 0x01, 0x01, 0x00, 0xc9, 0xfe, 0x92, 0xef, 0x00, 0x00, 0x00,
                                    0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

static void write_textured(const char *texture) {
    char text[600];
    snprintf(text, sizeof text, "newmtl paint\nKd 0.2 0.4 0.8\nmap_Kd %s\n", texture);
    write_text("paint.mtl", text);
    write_obj("painted.obj", "mtllib paint.mtl\n", true);
}

// ---- Meshes ----

static void meshes_of_robots_stand_as_the_spec_has_them(void **state) {
    (void)state;
    static const char *const robots[] = {"../shared/data/models/husky/husky.urdf",
                                         "../shared/data/models/ur10/ur10.urdf"};
    for (size_t r = 0; r < sizeof robots / sizeof *robots; r++) {
        usi_revision *world = world_of_file(robots[r]);
        if (!world) {
            print_message("%s is not there: skipped\n", robots[r]);
            continue;
        }
        int n = 0;
        for (int32_t i = 0; i < us_spec_get_counts(world->spec).n_shape; i++) {
            if (us_spec_view_shape(world->spec, i)->kind != US_SHAPE_MESH) continue;
            check_shape(world, i);
            n++;
        }
        assert_true(n > 5);
        usi_revision_unref(world);
    }
}

static void every_format_stands_in_the_shapes_frame(void **state) {
    (void)state;
    write_obj("box.obj", "", false);
    write_stl("box.stl");
    write_dae("tetra.dae");
    usi_revision *world = world_of_shapes(
        "<shape type='mesh' file='box.obj'/><shape type='mesh' file='box.stl' scale='0.5'/>"
        "<shape type='mesh' file='tetra.dae'/><shape type='mesh' file='box.stl' scale='-1 1 2'/>");
    // Six faces of four corners: a sharp edge keeps two normals.
    static const struct {
        int n_triangle;
        double volume;
    } rows[] = {{12, 6}, {12, 0.75}, {4, 1}, {12, 12}};
    for (int32_t i = 0; i < 4; i++) {
        check_shape(world, i);
        char name[16];
        snprintf(name, sizeof name, "%d.glb", (int)i);
        test_glb g = glb_of(world, name);
        test_glb_summary s = test_glb_summary_of(&g);
        assert_int_equal(s.n_triangle, rows[i].n_triangle);
        // Also mirrored, the faces look outwards and so do the normals. Single precision.
        assert_true(fabs(s.volume - rows[i].volume) < 1e-4 * rows[i].volume);
        assert_true(s.least_alignment > 0.9999);
        assert_int_equal(test_glb_part_of(&g, 0).n_vertex, rows[i].n_triangle == 4 ? 12 : 24);
        glb_free(&g);
    }
    usi_revision_unref(world);
}

static void round_surfaces_of_stl_files_are_smooth(void **state) {
    (void)state;
    // A tube of 24 sides, 15 degrees from one to the next; caps are not needed.
    enum { N = 24 };
    unsigned char bytes[84 + 50 * 2 * N] = {0};
    bytes[80] = 2 * N;
    for (int i = 0; i < 2 * N; i++) {
        for (int k = 0; k < 3; k++) {
            int side = i / 2 + (i % 2 ? k > 0 : k == 1), is_top = i % 2 ? k == 1 ? 0 : k == 2 : k == 2;
            if (i % 2 && k == 0) is_top = 1;
            double angle = 2 * 3.14159265358979323846 * (side % N) / N;
            const float v[3] = {(float)cos(angle), (float)sin(angle), (float)is_top};
            memcpy(bytes + 84 + 50 * i + 12 + 12 * k, v, sizeof v);
        }
    }
    write_file("tube.stl", bytes, sizeof bytes);
    usi_revision *world = world_of_shapes("<shape type='mesh' file='tube.stl'/>");
    test_glb g = glb_of(world, "0.glb");
    test_glb_part p = test_glb_part_of(&g, 0);
    // Corners that agree in their normal are one.
    assert_int_equal(p.n_vertex, 2 * N);
    for (int i = 0; i < p.n_vertex; i++) {
        const float *v = p.position + 3 * i, *n = p.normal + 3 * i;
        // Radial, up to what the unequal number of triangles at a corner turns it: less than half a side, 7.5
        // degrees.
        assert_true((double)(v[0] * n[0] + v[1] * n[1]) > 0.991);
    }
    glb_free(&g);
    usi_revision_unref(world);
}

static void points_and_triangles_without_a_file_are_a_mesh_too(void **state) {
    (void)state;
    us_allocator a = us_allocator_default();
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(&a, &spec), US_OK);
    const us_vec3 points[4] = {{0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {0, 0, 3}};
    static const int32_t triangles[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
    us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
    shape.points = points;
    shape.n_point = 4;
    shape.triangles = triangles;
    shape.n_triangle = 4;
    const float rgba[4] = {1, 0.5f, 0, 0.5f};
    memcpy(shape.rgba, rgba, sizeof rgba);
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
    usi_revision *world = world_of_spec(spec);
    test_glb g = glb_of(world, "0.glb");
    test_glb_summary s = test_glb_summary_of(&g);
    assert_int_equal(s.n_triangle, 4);
    assert_true(fabs(s.volume - 1) < 1e-6);
    test_glb_part p = test_glb_part_of(&g, 0);
    assert_null(p.normal);
    check_colour(p.material, (double[4]){1, linear_of_srgb(0.5), 0, 0.5});
    assert_string_equal(test_glb_get(p.material, "alphaMode")->valuestring, "BLEND");
    glb_free(&g);
    usi_revision_unref(world);
}

// ---- Colours and textures ----

static void the_shapes_colour_counts_only_where_the_file_has_none(void **state) {
    (void)state;
    write_stl("box.stl");
    write_obj("box.obj", "", false);
    write_dae("tetra.dae");
    usi_revision *world = world_of_shapes("<shape type='mesh' file='box.stl' rgba='0.8 0.4 0 1'/><shape "
                                          "type='mesh' file='box.obj' rgba='0.8 0.4 0 1'/>"
                                          "<shape type='mesh' file='tetra.dae' rgba='0.8 0.4 0 1'/>");
    const double own[4] = {linear_of_srgb(0.5), 0, linear_of_srgb(0.25), 1},
                 given[4] = {linear_of_srgb(0.8), linear_of_srgb(0.4), 0, 1};
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.glb", i);
        test_glb g = glb_of(world, name);
        assert_int_equal(test_glb_n_part(&g), 1);
        check_colour(test_glb_part_of(&g, 0).material, i == 2 ? own : given);
        assert_string_equal(test_glb_get(test_glb_part_of(&g, 0).material, "name")->valuestring,
                            i == 2 ? "m" : "shape");
        glb_free(&g);
    }
    usi_revision_unref(world);
}

static void gltf_without_a_material_takes_the_shapes_colour_and_with_one_keeps_it(void **state) {
    (void)state;
    static const float v[12] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
    static const unsigned char index[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
    unsigned char bytes[60];
    memcpy(bytes, v, sizeof v);
    memcpy(bytes + sizeof v, index, sizeof index);
    write_file("tetra.bin", bytes, sizeof bytes);
    for (int has_material = 0; has_material < 2; has_material++) {
        char text[2048];
        snprintf(text, sizeof text,
                 "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{"
                 "\"mesh\":0}],\"meshes\":[{\"primitives\":[{"
                 "\"attributes\":{\"POSITION\":0},\"indices\":1%s}]}],\"materials\":[{\"name\":\"paint\","
                 "\"pbrMetallicRoughness\":{"
                 "\"baseColorFactor\":[0.25,0.5,0.75,1],\"metallicFactor\":0.5,\"roughnessFactor\":0.25}}],"
                 "\"accessors\":[{\"bufferView\":0,"
                 "\"componentType\":5126,\"count\":4,\"type\":\"VEC3\",\"min\":[0,0,0],\"max\":[1,2,3]},{"
                 "\"bufferView\":1,\"componentType\":5121,"
                 "\"count\":12,\"type\":\"SCALAR\"}],\"bufferViews\":[{\"buffer\":0,\"byteLength\":48},{"
                 "\"buffer\":0,\"byteOffset\":48,"
                 "\"byteLength\":12}],\"buffers\":[{\"byteLength\":60,\"uri\":\"tetra.bin\"}]}",
                 has_material ? ",\"material\":0" : "");
        write_text("tetra.gltf", text);
        usi_revision *world = world_of_shapes("<shape type='mesh' file='tetra.gltf' rgba='0.8 0.4 0 1'/>");
        check_shape(world, 0);
        test_glb g = glb_of(world, "0.glb");
        const cJSON *material = test_glb_part_of(&g, 0).material;
        // Colours of glTF are linear already.
        if (has_material) check_colour(material, (double[4]){0.25, 0.5, 0.75, 1});
        if (has_material)
            assert_true(
                test_glb_get(test_glb_get(material, "pbrMetallicRoughness"), "metallicFactor")->valuedouble ==
                0.5);
        if (!has_material)
            check_colour(material, (double[4]){linear_of_srgb(0.8), linear_of_srgb(0.4), 0, 1});
        glb_free(&g);
        usi_revision_unref(world);
    }
}

// A tetrahedron as glTF with one colour per vertex, of which the first is given.
static void write_coloured(const float first[4]) {
    float v[12 + 16] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
    for (int i = 12; i < 28; i++)
        v[i] = 1;
    memcpy(v + 12, first, 4 * sizeof *first);
    static const unsigned char index[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
    unsigned char bytes[124];
    memcpy(bytes, v, sizeof v);
    memcpy(bytes + sizeof v, index, sizeof index);
    write_file("coloured.bin", bytes, sizeof bytes);
    write_text("coloured.gltf", "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],"
                                "\"nodes\":[{\"mesh\":0}],\"meshes\":[{\"primitives\":[{"
                                "\"attributes\":{\"POSITION\":0,\"COLOR_0\":1},\"indices\":2}]}],"
                                "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"count\":4,"
                                "\"type\":\"VEC3\",\"min\":[0,0,0],\"max\":[1,2,3]},{\"bufferView\":1,"
                                "\"componentType\":5126,\"count\":4,\"type\":\"VEC4\"},{"
                                "\"bufferView\":2,\"componentType\":5121,\"count\":12,\"type\":\"SCALAR\"}],"
                                "\"bufferViews\":[{\"buffer\":0,\"byteLength\":48},{"
                                "\"buffer\":0,\"byteOffset\":48,\"byteLength\":64},{\"buffer\":0,"
                                "\"byteOffset\":112,\"byteLength\":12}],\"buffers\":[{"
                                "\"byteLength\":124,\"uri\":\"coloured.bin\"}]}");
}

static void vertex_colours_are_kept_unless_they_say_nothing(void **state) {
    (void)state;
    static const struct {
        float first[4];
        int n_colour;
    } rows[] = {{{0.5f, 0.25f, 1, 1}, 3}, {{1, 1, 1, 0.5f}, 4}, {{1, 1, 1, 1}, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_coloured(rows[i].first);
        usi_revision *world = world_of_shapes("<shape type='mesh' file='coloured.gltf' rgba='0.8 0.4 0 1'/>");
        test_glb g = glb_of(world, "0.glb");
        test_glb_part p = test_glb_part_of(&g, 0);
        assert_int_equal(p.n_colour, rows[i].n_colour);
        // The colours take the place of the shape's; where they say nothing it counts.
        if (p.n_colour) check_colour(p.material, (double[4]){1, 1, 1, 1});
        if (!p.n_colour)
            check_colour(p.material, (double[4]){linear_of_srgb(0.8), linear_of_srgb(0.4), 0, 1});
        int n_found = 0;
        for (int k = 0; k < p.n_vertex && p.n_colour; k++) {
            bool is_origin =
                p.position[3 * k] == 0 && p.position[3 * k + 1] == 0 && p.position[3 * k + 2] == 0;
            for (int n = 0; n < p.n_colour; n++)
                assert_true(p.colour[p.n_colour * k + n] == (is_origin ? rows[i].first[n] : 1));
            n_found += is_origin;
        }
        assert_int_equal(n_found > 0, p.n_colour > 0);
        glb_free(&g);
        usi_revision_unref(world);
    }
}

static void textures_travel_inside_the_file(void **state) {
    (void)state;
    mkdir("pictures", 0777);
    write_file("pictures/one.png", png, sizeof png);
    write_file("two.png", png, sizeof png);
    // Beside the mesh, below it, and with directories of another computer.
    static const char *const names[] = {"two.png", "pictures/one.png", "pictures\\one.png",
                                        "C:\\work\\robot\\two.png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_textured(names[i]);
        usi_revision *world = world_of_shapes("<shape type='mesh' file='painted.obj'/>");
        check_shape(world, 0);
        test_glb g = glb_of(world, "0.glb");
        test_glb_part p = test_glb_part_of(&g, 0);
        // The picture alone gives the colour.
        check_colour(p.material, (double[4]){1, 1, 1, 1});
        int texture = test_glb_integer(
            test_glb_get(test_glb_get(p.material, "pbrMetallicRoughness"), "baseColorTexture"), "index");
        int image = test_glb_integer(cJSON_GetArrayItem(test_glb_get(g.json, "textures"), texture), "source");
        const cJSON *about = cJSON_GetArrayItem(test_glb_get(g.json, "images"), image);
        assert_string_equal(test_glb_get(about, "mimeType")->valuestring, "image/png");
        size_t length = 0;
        const unsigned char *bytes = test_glb_view_of(&g, test_glb_integer(about, "bufferView"), &length);
        assert_int_equal(length, sizeof png);
        assert_memory_equal(bytes, png, sizeof png);
        // v counts from above here: 0 and 0.75 from below are 1 and 0.25.
        assert_non_null(p.uv);
        for (int k = 0; k < p.n_vertex; k++) {
            assert_true(p.uv[2 * k] == 0 || p.uv[2 * k] == 1);
            assert_true(p.uv[2 * k + 1] == 1 || p.uv[2 * k + 1] == 0.25f);
        }
        glb_free(&g);
        usi_revision_unref(world);
    }
}

static void a_texture_that_is_none_is_left_out(void **state) {
    (void)state;
    write_text("secret.png", "root:x:0:0:root:/root:/bin/sh\n");
    unlink("pipe.png");
    assert_int_equal(mkfifo("pipe.png", 0666), 0);
    mkdir("directory.png", 0777);
    static const char *const names[] = {"missing.png", "secret.png", "/etc/passwd", "pipe.png",
                                        "directory.png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_textured(names[i]);
        usi_revision *world = world_of_shapes("<shape type='mesh' file='painted.obj'/>");
        test_glb g = glb_of(world, "0.glb");
        assert_false(cJSON_HasObjectItem(g.json, "images"));
        test_glb_part p = test_glb_part_of(&g, 0);
        assert_null(p.uv);
        check_colour(p.material,
                     (double[4]){linear_of_srgb(0.2), linear_of_srgb(0.4), linear_of_srgb(0.8), 1});
        glb_free(&g);
        usi_revision_unref(world);
    }
}

// ---- Height fields ----

static void heights_are_floats_with_x_fastest(void **state) {
    (void)state;
    usi_revision *world = world_of_file("scenes/default.xml");
    assert_non_null(world);
    const us_shape_def *shape = us_spec_view_shape(world->spec, 0);
    assert_int_equal(shape->kind, US_SHAPE_HEIGHT_FIELD);
    us_allocator a = us_allocator_default();
    void *bytes = NULL;
    size_t length = 0;
    assert_int_equal(usi_world_asset(world, "0.field", &a, &bytes, &length, NULL), US_OK);
    size_t n = (size_t)shape->n_x * (size_t)shape->n_y;
    assert_int_equal(length, 4 * n);
    const float *heights = bytes;
    for (size_t i = 0; i < n; i++)
        assert_true(heights[i] == (float)shape->heights[i]);
    usi_release(&a, bytes, length, 1);
    usi_revision_unref(world);
}

// ---- Masks of regions ----

// A mask of n_x by n_y samples of 0.5 m, 7 in its half of greater x, 3 elsewhere.
static usi_revision *world_of_mask(int32_t n_x, int32_t n_y, int32_t value) {
    static const char text[] = "<scene name='s' version='1'><world>"
                               "<shape name='g' type='plane'/></world></scene>";
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(text, sizeof text - 1, "text.xml", NULL, &spec, &err)) fail_msg("%s", err.message);
    uint8_t *mask = malloc((size_t)n_x * (size_t)n_y);
    assert_non_null(mask);
    for (int32_t j = 0; j < n_y; j++) {
        for (int32_t i = 0; i < n_x; i++)
            mask[j * n_x + i] = 2 * i >= n_x ? 7 : 3;
    }
    us_region_def region = {.name = "half",
                            .ground = "g",
                            .material = "default",
                            .mask = mask,
                            .n_x = n_x,
                            .n_y = n_y,
                            .dx = 0.5,
                            .dy = 0.5,
                            .value = value};
    assert_int_equal(us_spec_add_region(spec, &region, NULL), US_OK);
    free(mask);
    return world_of_spec(spec);
}

// As it is when it is small, every so many of its samples when it is large; sizes that nothing divides.
static void a_mask_is_sent_with_what_belongs_to_the_region(void **state) {
    (void)state;
    static const struct {
        int32_t n_x, n_y, value, sent_x, sent_y;
    } rows[] = {{6, 3, 7, 6, 3}, {6, 3, 0, 6, 3}, {2500, 4, 7, 834, 2}, {1024, 1025, 7, 512, 513}};
    us_allocator a = us_allocator_default();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        usi_revision *world = world_of_mask(rows[r].n_x, rows[r].n_y, rows[r].value);
        void *bytes = NULL;
        size_t length = 0;
        assert_int_equal(usi_world_asset(world, "region/0.mask", &a, &bytes, &length, NULL), US_OK);
        assert_int_equal(length, rows[r].sent_x * rows[r].sent_y);
        for (int32_t k = 0; k < (int32_t)length; k++) {
            bool is_in = rows[r].value == 0 || 2 * (k % rows[r].sent_x) >= rows[r].sent_x;
            assert_int_equal(((uint8_t *)bytes)[k], is_in ? 255 : 0);
        }
        usi_release(&a, bytes, length, 1);
        char *json = NULL;
        assert_int_equal(usi_world_json(world, &a, &json, &length), US_OK);
        char sizes[64];
        snprintf(sizes, sizeof sizes, "\"nx\":%d,\"ny\":%d", (int)rows[r].sent_x, (int)rows[r].sent_y);
        cJSON *told = cJSON_ParseWithLength(json, length);
        const cJSON *region = cJSON_GetArrayItem(cJSON_GetObjectItem(told, "regions"), 0);
        char *mask = cJSON_PrintUnformatted(cJSON_GetObjectItem(region, "mask"));
        assert_non_null(strstr(mask, sizes));
        assert_non_null(strstr(mask, "/region/0.mask"));
        assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(region, "min"), 0)->valuedouble ==
                    -0.25 * rows[r].n_x);
        cJSON_free(mask);
        cJSON_Delete(told);
        usi_release(&a, json, length, 1);
        assert_int_equal(ask(world, "region/1.mask", NULL), US_ERR_NAME);
        assert_int_equal(ask(world, "region/0.glb", NULL), US_ERR_NAME);
        assert_int_equal(ask(world, "region/", NULL), US_ERR_NAME);
        usi_revision_unref(world);
    }
}

// ---- What is refused ----

static void names_that_are_none_are_refused(void **state) {
    (void)state;
    write_stl("box.stl");
    usi_revision *world = world_of_shapes(
        "<shape type='box' size='1 1 1'/><shape type='mesh' file='box.stl'/><shape type='height-field' "
        "nx='2' ny='2' "
        "dx='1' dy='1' heights='0 0 0 0'/><shape type='union'><shape type='mesh' file='box.stl'/></shape>");
    assert_int_equal(ask(world, "1.glb", NULL), US_OK);
    assert_int_equal(ask(world, "2.field", NULL), US_OK);
    assert_int_equal(ask(world, "3.0.glb", NULL), US_OK);
    // Between bars; the first one is empty.
    static const char names[] =
        "|../x|999999.glb|1.exe|-1.glb|1|1.|1.glb/|.glb|"
        "1.glb.glb|01.glb|+1.glb| 1.glb|1.glb |1.GLB|1.field|2.glb|0.glb|"
        "0.field|3.glb|3.1.glb|3.0|3.-1.glb|3.0.0.glb|1.0.glb|3.00.glb|3.0.exe|"
        "1e0.glb|4.glb|99999999999.glb|%31.glb|1\n.glb|box.stl|/etc/passwd|3..glb|1.0x0.glb|"
        "2147483648.glb|4294967297.glb|18446744073709551617.glb|3.18446744073709551616.glb";
    for (const char *at = names; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "|"), at);
        us_error err = {0};
        if (ask(world, name, &err) != US_ERR_NAME) fail_msg("\"%s\" was not refused", name);
        assert_true(err.message[0] != 0 && err.remedy[0] != 0);
    }
    usi_revision_unref(world);
}

static void a_file_that_is_gone_or_broken_is_said(void **state) {
    (void)state;
    const char *shapes = "<shape type='mesh' file='gone.stl'/>";
    static const struct {
        const char *text;  // what the file holds later; NULL: it is gone
        const char *message;
    } rows[] = {
        {NULL, "is not a file"},
        {"", "is an empty file"},
        {"solid x\nfacet normal 0 0 0\nouter loop\n", "is cut off"},
        {"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"},
        {"garbage", "is neither a text nor a binary STL file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_stl("gone.stl");
        usi_revision *world = world_of_shapes(shapes);
        assert_int_equal(ask(world, "0.glb", NULL), US_OK);
        if (rows[i].text) write_text("gone.stl", rows[i].text);
        if (!rows[i].text) assert_int_equal(unlink("gone.stl"), 0);
        us_error err = {0};
        assert_int_equal(ask(world, "0.glb", &err), US_ERR_MESH);
        if (!strstr(err.message, rows[i].message) || !strstr(err.message, "gone.stl"))
            fail_msg("%s", err.message);
        assert_true(err.remedy[0] != 0);
        assert_int_equal(ask(world, "0.glb", NULL), US_ERR_MESH);
        usi_revision_unref(world);
    }
}

// Files that Assimp reads but nobody can use, and files that it does not read: the same that a scene refuses.
static void broken_mesh_files_give_errors_here_too(void **state) {
    (void)state;
    static const char *const names[] = {
        "buffer_missing.gltf", "cut_off.dae",      "lines_only.obj", "not_collada.dae",    "not_finite.stl",
        "not_json.gltf",       "no_triangles.stl", "too_short.stl",  "vertex_missing.obj", "wrong_magic.glb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, US_SOURCE_DIR "/tests/bad/mesh/%s", names[i]);
        assert_int_equal(access(path, R_OK), 0);
        us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
        for (int k = 0; k < 3; k++)
            shape.size[k] = 1;
        shape.mesh = path;
        us_allocator a = us_allocator_default();
        us_error err = {0};
        char *bytes = NULL;
        size_t length = 0;
        assert_int_equal(usi_mesh_glb(&shape, &a, &bytes, &length, &err), US_ERR_MESH);
        assert_null(bytes);
        if (!strstr(err.message, names[i]) || !err.remedy[0]) fail_msg("%s: %s", names[i], err.message);
    }
}

static void no_memory_at_any_point_is_said_and_nothing_leaks(void **state) {
    (void)state;
    write_file("two.png", png, sizeof png);
    write_textured("two.png");
    usi_revision *world = world_of_shapes(
        "<shape type='mesh' file='painted.obj'/><shape type='height-field' nx='2' ny='2' dx='1' dy='1' "
        "heights='0 0 0 0'/>");
    static const char *const names[] = {"0.glb", "1.field"};
    for (int i = 0; i < 2; i++) {
        int64_t n = 1;
        for (us_status status = US_ERR_MEMORY; status; n++) {
            test_allocator t;
            test_allocator_init(&t);
            t.fail_at = n;
            void *bytes = NULL;
            size_t length = 0;
            us_error err = {0};
            status = usi_world_asset(world, names[i], &t.allocator, &bytes, &length, &err);
            // A picture for which there is no room may be left out; anything else is told.
            if (status) assert_int_equal(status, US_ERR_MEMORY);
            if (status) assert_true(bytes == NULL && err.message[0] != 0);
            usi_release(&t.allocator, bytes, length, 1);
            test_allocator_check(&t);
            if (!status && t.n_failed > 0) status = US_ERR_MEMORY;
            assert_true(n < 100);
        }
        assert_true(n > 2);
    }
    usi_revision_unref(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meshes_of_robots_stand_as_the_spec_has_them),
        cmocka_unit_test(every_format_stands_in_the_shapes_frame),
        cmocka_unit_test(round_surfaces_of_stl_files_are_smooth),
        cmocka_unit_test(points_and_triangles_without_a_file_are_a_mesh_too),
        cmocka_unit_test(the_shapes_colour_counts_only_where_the_file_has_none),
        cmocka_unit_test(gltf_without_a_material_takes_the_shapes_colour_and_with_one_keeps_it),
        cmocka_unit_test(vertex_colours_are_kept_unless_they_say_nothing),
        cmocka_unit_test(textures_travel_inside_the_file),
        cmocka_unit_test(a_texture_that_is_none_is_left_out),
        cmocka_unit_test(heights_are_floats_with_x_fastest),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(a_mask_is_sent_with_what_belongs_to_the_region),
        cmocka_unit_test(a_file_that_is_gone_or_broken_is_said),
        cmocka_unit_test(broken_mesh_files_give_errors_here_too),
        cmocka_unit_test(no_memory_at_any_point_is_said_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
