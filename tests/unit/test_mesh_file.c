// Meshes: finding them, reading every format, units and axes, closedness, mass properties.
//
// The files are written into the directory in which the test runs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "understudy/spec.h"

static const double pi = 3.14159265358979323846;

// ---- Files ----

static void write_file(const char *name, const void *bytes, size_t length) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}
static void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

// A box from the origin to (1, 2, 3) as twelve triangles, seen from outside.
static const float corner[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {0, 2, 0},
                                   {0, 0, 3}, {1, 0, 3}, {1, 2, 3}, {0, 2, 3}};
static const int face[12][3] = {{0, 2, 1}, {0, 3, 2}, {4, 5, 6}, {4, 6, 7}, {0, 1, 5}, {0, 5, 4},
                                {1, 2, 6}, {1, 6, 5}, {2, 3, 7}, {2, 7, 6}, {3, 0, 4}, {3, 4, 7}};

static void write_stl_text(const char *name, int n_face, bool is_inside_out) {
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "solid box\n");
    for (int f = 0; f < n_face; f++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "facet normal 0 0 0\nouter loop\n");
        for (int k = 0; k < 3; k++) {
            const float *v = corner[face[f][is_inside_out ? 2 - k : k]];
            n += (size_t)snprintf(text + n, sizeof text - n, "vertex %g %g %g\n", (double)v[0], (double)v[1],
                                  (double)v[2]);
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "endloop\nendfacet\n");
    }
    snprintf(text + n, sizeof text - n, "endsolid box\n");
    write_text(name, text);
}

static void write_stl_binary(const char *name, const char *header) {
    unsigned char bytes[84 + 50 * 12] = {0};
    memcpy(bytes, header, strlen(header));
    bytes[80] = 12;
    for (int f = 0; f < 12; f++) {
        for (int k = 0; k < 3; k++)
            memcpy(bytes + 84 + 50 * f + 12 + 12 * k, corner[face[f][k]], 12);
    }
    write_file(name, bytes, sizeof bytes);
}

// A tetrahedron (1, 0, 0), (0, 2, 0), (0, 0, 3), origin; moved by 10 along x by its node.
static void write_dae(const char *name, const char *asset) {
    char text[4096];
    snprintf(text, sizeof text,
             "<?xml version=\"1.0\"?><COLLADA xmlns=\"http://www.collada.org/2005/11/COLLADASchema\" "
             "version=\"1.4.1\">%s"
             "<library_geometries><geometry id=\"g\"><mesh><source id=\"p\"><float_array id=\"pa\" "
             "count=\"12\">0 0 0 1 0 0 0 2 0 0 0 "
             "3</float_array><technique_common>"
             "<accessor source=\"#pa\" count=\"4\" stride=\"3\"><param name=\"X\" type=\"float\"/><param "
             "name=\"Y\" type=\"float\"/><param "
             "name=\"Z\" type=\"float\"/></accessor>"
             "</technique_common></source><vertices id=\"v\"><input semantic=\"POSITION\" "
             "source=\"#p\"/></vertices>"
             "<triangles count=\"4\"><input semantic=\"VERTEX\" source=\"#v\" offset=\"0\"/><p>0 2 1 0 1 3 1 "
             "2 3 0 3 "
             "2</p></triangles></mesh></geometry></library_geometries>"
             "<library_visual_scenes><visual_scene id=\"s\"><node id=\"n\"><translate>10 0 "
             "0</translate><instance_geometry "
             "url=\"#g\"/></node></visual_scene></library_visual_scenes>"
             "<scene><instance_visual_scene url=\"#s\"/></scene></COLLADA>",
             asset);
    write_text(name, text);
}

// The same tetrahedron as glTF: 4 positions and 12 indices of one byte each, in 60 bytes.
static const char gltf_body[] =
    "\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0,\"translation\":[10,0,0]}],\"meshes\":[{"
    "\"primitives\":[{\"attributes\":{\"POSITION\":0},\"indices\":1}]}],"
    "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"count\":4,\"type\":\"VEC3\",\"min\":[0,0,0],"
    "\"max\":[1,2,"
    "3]},{\"bufferView\":1,\"componentType\":5121,\"count\":12,\"type\":\"SCALAR\"}],"
    "\"bufferViews\":[{\"buffer\":0,\"byteLength\":48},{\"buffer\":0,\"byteOffset\":48,\"byteLength\":12}]";

static void gltf_bytes(unsigned char out[60]) {
    static const float v[12] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
    static const unsigned char index[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
    memcpy(out, v, sizeof v);
    memcpy(out + sizeof v, index, sizeof index);
}

static void write_gltf(const char *name) {
    unsigned char bytes[60];
    gltf_bytes(bytes);
    write_file("tetra.bin", bytes, sizeof bytes);
    char text[2048];
    snprintf(text, sizeof text,
             "{\"asset\":{\"version\":\"2.0\"},%s,\"buffers\":[{\"byteLength\":60,\"uri\":\"tetra.bin\"}]}",
             gltf_body);
    write_text(name, text);
}

static void put_u32(unsigned char *at, size_t value) {
    for (int k = 0; k < 4; k++)
        at[k] = (unsigned char)(value >> 8 * k);
}

static void write_glb(const char *name) {
    unsigned char bytes[2048] = "glTF";
    char text[1500];
    int n = snprintf(text, sizeof text,
                     "{\"asset\":{\"version\":\"2.0\"},%s,\"buffers\":[{\"byteLength\":60}]}", gltf_body);
    size_t json = ((size_t)n + 3) / 4 * 4, total = 12 + 8 + json + 8 + 60;
    memset(text + n, ' ', json - (size_t)n);
    put_u32(bytes + 4, 2);
    put_u32(bytes + 8, total);
    put_u32(bytes + 12, json);
    memcpy(bytes + 16, "JSON", 4);
    memcpy(bytes + 20, text, json);
    put_u32(bytes + 20 + json, 60);
    memcpy(bytes + 24 + json, "BIN", 4);
    gltf_bytes(bytes + 28 + json);
    write_file(name, bytes, total);
}

// ---- Loading ----

static us_spec *load_from(const char *mesh, const char *path, us_load_def *def, int n_warning) {
    char text[1024];
    snprintf(text, sizeof text,
             "<robot name='r'><link name='a'><visual><geometry><mesh %s/></geometry></visual></link></robot>",
             mesh);
    us_load_def plain = us_load_def_default();
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(text, strlen(text), path, def ? def : &plain, &spec, &err))
        fail_msg("%s", err.message);
    int n = us_spec_get_counts(spec).n_warning;
    for (int i = 0; i < n && n != n_warning; i++)
        print_message("warning: %s\n", us_spec_view_warning(spec, i)->message);
    assert_int_equal(n, n_warning);
    return spec;
}
static us_spec *load(const char *mesh, int n_warning) {
    return load_from(mesh, "robot.urdf", NULL, n_warning);
}

static void assert_near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not %.17g within %g", a, b, tolerance);
}

static void assert_box(const us_shape_def *s, double x0, double y0, double z0, double x1, double y1,
                       double z1) {
    // Vertices and transforms are floats in the files.
    double e = 1e-6 * (fabs(x0) + fabs(y0) + fabs(z0) + fabs(x1) + fabs(y1) + fabs(z1));
    assert_near(s->box_min.x, x0, e);
    assert_near(s->box_min.y, y0, e);
    assert_near(s->box_min.z, z0, e);
    assert_near(s->box_max.x, x1, e);
    assert_near(s->box_max.y, y1, e);
    assert_near(s->box_max.z, z1, e);
}

// What the box of `corner` has, whichever way it was written.
static void assert_is_box_123(const us_shape_def *s) {
    assert_int_equal(s->n_vertex, 8);
    assert_int_equal(s->n_triangle, 12);
    assert_true(s->is_closed);
    assert_box(s, 0, 0, 0, 1, 2, 3);
    const us_inertia *I = &s->unit_inertia;
    assert_near(I->mass, 6, 1e-14);
    assert_near(I->com.x, 0.5, 1e-15);
    assert_near(I->com.y, 1, 1e-15);
    assert_near(I->com.z, 1.5, 1e-15);
    static const double moments[6] = {6.5, 5, 2.5, 0, 0, 0};  // m/12 (b^2 + c^2)
    for (int k = 0; k < 6; k++)
        assert_near(I->about_com[k], moments[k], 1e-13);
}

static void assert_is_tetrahedron(const us_shape_def *s) {
    assert_int_equal(s->n_vertex, 4);
    assert_int_equal(s->n_triangle, 4);
    assert_true(s->is_closed);
}

// ---- Formats ----

static void text_stl_is_a_closed_box(void **state) {
    (void)state;
    write_stl_text("box.stl", 12, false);
    us_spec *spec = load("filename='box.stl'", 0);
    assert_is_box_123(us_spec_view_shape(spec, 0));
    assert_string_equal(us_spec_view_shape(spec, 0)->mesh, "box.stl");
    assert_string_equal(us_spec_view_shape(spec, 0)->mesh_uri, "box.stl");
    us_spec_destroy(spec);
}

static void binary_stl_is_a_closed_box(void **state) {
    (void)state;
    write_stl_binary("boxb.STL", "made by hand");
    us_spec *spec = load("filename='boxb.STL'", 0);
    assert_is_box_123(us_spec_view_shape(spec, 0));
    us_spec_destroy(spec);
}

static void binary_stl_whose_header_says_solid_is_still_binary(void **state) {
    (void)state;
    write_stl_binary("solid.stl", "solid box");
    us_spec *spec = load("filename='solid.stl'", 0);
    assert_is_box_123(us_spec_view_shape(spec, 0));
    us_spec_destroy(spec);
}

static void a_surface_turned_inside_out_has_the_same_mass_properties(void **state) {
    (void)state;
    write_stl_text("inside.stl", 12, true);
    us_spec *spec = load("filename='inside.stl'", 0);
    assert_is_box_123(us_spec_view_shape(spec, 0));
    us_spec_destroy(spec);
}

static void a_surface_with_a_hole_is_open_and_has_no_mass(void **state) {
    (void)state;
    write_stl_text("open.stl", 11, false);
    us_spec *spec = load("filename='open.stl'", 0);
    const us_shape_def *s = us_spec_view_shape(spec, 0);
    assert_int_equal(s->n_triangle, 11);
    assert_false(s->is_closed);
    assert_true(s->unit_inertia.mass == 0);
    us_spec_destroy(spec);
}

static void obj_quads_are_cut_into_triangles(void **state) {
    (void)state;
    write_text("box.obj", "v 0 0 0\nv 1 0 0\nv 1 2 0\nv 0 2 0\nv 0 0 3\nv 1 0 3\nv 1 2 3\nv 0 2 3\n"
                          "f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n");
    us_spec *spec = load("filename='box.obj'", 0);
    assert_is_box_123(us_spec_view_shape(spec, 0));
    us_spec_destroy(spec);
}

static void scale_is_applied_and_a_mirrored_box_keeps_its_mass(void **state) {
    (void)state;
    write_stl_text("box.stl", 12, false);
    us_spec *spec = load("filename='box.stl' scale='0.5 -1 2'", 0);
    const us_shape_def *s = us_spec_view_shape(spec, 0);
    assert_box(s, 0, -2, 0, 0.5, 0, 6);
    assert_near(s->unit_inertia.mass, 6, 1e-14);
    assert_near(s->unit_inertia.com.y, -1, 1e-15);
    assert_near(s->unit_inertia.about_com[2], 0.5 * (0.25 + 4), 1e-14);
    us_spec_destroy(spec);
}

static void dae_unit_and_node_transform_are_honoured(void **state) {
    (void)state;
    write_dae("cm.dae", "<asset><unit name=\"centimeter\" meter=\"0.01\"/><up_axis>Z_UP</up_axis></asset>");
    us_spec *spec = load("filename='cm.dae'", 0);
    const us_shape_def *s = us_spec_view_shape(spec, 0);
    assert_is_tetrahedron(s);
    assert_box(s, 0.1, 0, 0, 0.11, 0.02, 0.03);
    assert_near(s->unit_inertia.mass, 1e-6, 1e-12);  // 1 * 2 * 3 / 6 cm^3
    us_spec_destroy(spec);
}

static void dae_y_up_is_turned_and_told(void **state) {
    (void)state;
    write_dae("y.dae", "<asset><unit meter=\"1\"/><up_axis>Y_UP</up_axis></asset>");
    us_spec *spec = load("filename='y.dae'", 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->message, "says that y points up"));
    assert_box(us_spec_view_shape(spec, 0), 10, -3, 0, 11, 0, 2);
    us_spec_destroy(spec);
}

static void dae_x_up_is_turned_and_told(void **state) {
    (void)state;
    write_dae("x.dae", "<asset><unit meter=\"1\"/><up_axis>X_UP</up_axis></asset>");
    us_spec *spec = load("filename='x.dae'", 1);
    assert_box(us_spec_view_shape(spec, 0), -2, -3, 10, 0, 0, 11);
    us_spec_destroy(spec);
}

static void dae_without_up_axis_is_taken_as_it_is(void **state) {
    (void)state;
    write_dae("plain.dae", "");
    us_spec *spec = load("filename='plain.dae'", 0);
    assert_box(us_spec_view_shape(spec, 0), 10, 0, 0, 11, 2, 3);
    us_spec_destroy(spec);
}

static void gltf_and_glb_are_turned_from_y_up_to_z_up(void **state) {
    (void)state;
    write_gltf("tetra.gltf");
    write_glb("tetra.glb");
    static const char *const meshes[] = {"filename='tetra.gltf'", "filename='tetra.glb'"};
    for (int i = 0; i < 2; i++) {
        us_spec *spec = load(meshes[i], 0);
        const us_shape_def *s = us_spec_view_shape(spec, 0);
        assert_is_tetrahedron(s);
        assert_box(s, 10, -3, 0, 11, 0, 2);
        assert_near(s->unit_inertia.mass, 1, 1e-12);
        us_spec_destroy(spec);
    }
}

// ---- Finding ----

static void a_package_is_found_in_a_search_directory(void **state) {
    (void)state;
    mkdir("ws", 0755);
    mkdir("ws/my_robot", 0755);
    mkdir("ws/my_robot/meshes", 0755);
    write_stl_text("ws/my_robot/meshes/box.stl", 12, false);
    static const char *const outside[] = {"ws/"}, *const inside[] = {"ws/my_robot"};
    us_load_def def = us_load_def_default();
    def.n_search = 1;
    for (int i = 0; i < 2; i++) {
        def.search = i ? inside : outside;
        us_spec *spec = load_from("filename='package://my_robot/meshes/box.stl'", "robot.urdf", &def, 0);
        assert_string_equal(us_spec_view_shape(spec, 0)->mesh, "ws/my_robot/meshes/box.stl");
        us_spec_destroy(spec);
    }
}

static void a_package_is_found_around_the_file(void **state) {
    (void)state;
    mkdir("ws", 0755);
    mkdir("ws/near", 0755);
    mkdir("ws/near/urdf", 0755);
    write_stl_text("ws/near/box.stl", 12, false);
    us_spec *spec = load_from("filename='package://near/box.stl'", "ws/near/urdf/robot.urdf", NULL, 0);
    assert_int_equal(us_spec_view_shape(spec, 0)->n_triangle, 12);
    us_spec_destroy(spec);
}

static void a_package_is_found_through_the_environment(void **state) {
    (void)state;
    mkdir("opt", 0755);
    mkdir("opt/share", 0755);
    mkdir("opt/share/far", 0755);
    mkdir("ros", 0755);
    mkdir("ros/old", 0755);
    write_stl_text("opt/share/far/box.stl", 12, false);
    write_stl_text("ros/old/box.stl", 12, false);
    setenv("AMENT_PREFIX_PATH", "nowhere:opt", 1);
    setenv("ROS_PACKAGE_PATH", "ros", 1);
    static const char *const meshes[] = {"filename='package://far/box.stl'",
                                         "filename='package://old/box.stl'"};
    for (int i = 0; i < 2; i++) {
        us_spec *spec = load(meshes[i], 0);
        assert_int_equal(us_spec_view_shape(spec, 0)->n_triangle, 12);
        us_spec_destroy(spec);
    }
    unsetenv("AMENT_PREFIX_PATH");
    unsetenv("ROS_PACKAGE_PATH");
}

static void a_file_uri_and_a_path_beside_the_file_are_found(void **state) {
    (void)state;
    mkdir("ws", 0755);
    write_stl_text("ws/beside.stl", 12, false);
    char cwd[512], mesh[700];
    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(mesh, sizeof mesh, "filename='file://%s/ws/beside.stl'", cwd);
    us_spec *spec = load(mesh, 0);
    us_spec_destroy(spec);
    spec = load_from("filename='beside.stl'", "ws/robot.urdf", NULL, 0);
    assert_string_equal(us_spec_view_shape(spec, 0)->mesh, "ws/beside.stl");
    us_spec_destroy(spec);
}

static void a_mesh_that_is_not_there_is_told_once_with_the_places(void **state) {
    (void)state;
    us_spec *spec = load("filename='package://nobody/no.stl'/></geometry></visual><visual><geometry><mesh "
                         "filename='package://nobody/no.stl'",
                         1);
    const us_error *w = us_spec_view_warning(spec, 0);
    assert_non_null(strstr(w->message, "/nobody/no.stl"));
    assert_true(w->remedy[0] != 0);
    assert_int_equal(us_spec_get_counts(spec).n_shape, 2);
    assert_null(us_spec_view_shape(spec, 0)->mesh);
    assert_int_equal(us_spec_view_shape(spec, 0)->n_triangle, 0);
    us_spec_destroy(spec);
}

static void nothing_is_fetched_from_a_network(void **state) {
    (void)state;
    us_spec *spec = load("filename='http://example.org/box.stl'", 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->message, "nothing is ever read from a network"));
    us_spec_destroy(spec);
}

static void skipped_meshes_keep_their_path_and_no_counts(void **state) {
    (void)state;
    write_stl_text("box.stl", 12, false);
    us_load_def def = us_load_def_default();
    def.skip_meshes = true;
    us_spec *spec = load_from("filename='box.stl'", "robot.urdf", &def, 0);
    assert_string_equal(us_spec_view_shape(spec, 0)->mesh, "box.stl");
    assert_int_equal(us_spec_view_shape(spec, 0)->n_vertex, 0);
    us_spec_destroy(spec);
}

static void a_mesh_in_millimetres_taken_for_metres_is_told(void **state) {
    (void)state;
    write_stl_text("box.stl", 12, false);
    us_spec *spec = load("filename='box.stl' scale='10 10 10'", 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->remedy, "scale=\"0.001 0.001 0.001\""));
    us_spec_destroy(spec);
}

// ---- Mass properties ----

static void a_moving_link_gets_its_mass_from_a_closed_mesh(void **state) {
    (void)state;
    write_stl_text("box.stl", 12, false);
    us_spec *spec = load("filename='box.stl' scale='0.1 0.1 0.1'/></geometry></visual></link><joint name='j' "
                         "type='continuous'><parent "
                         "link='a'/><child link='b'/></joint>"
                         "<link name='b'><visual><geometry><mesh filename='box.stl' scale='0.1 0.1 0.1'",
                         1);
    assert_non_null(
        strstr(us_spec_view_warning(spec, 0)->message, "6 kg and moments computed from its visual shapes"));
    const us_inertia *I = &us_spec_view_link(spec, us_spec_find_link(spec, "b"))->inertia;
    assert_near(I->mass, 6, 1e-12);
    assert_near(I->com.z, 0.15, 1e-15);
    assert_near(I->about_com[0], 0.065, 1e-14);
    us_spec_destroy(spec);
}

static us_inertia unit_inertia_of(const char *shape) {
    char text[512];
    snprintf(text, sizeof text,
             "<robot name='r'><link name='a'><visual><geometry>%s</geometry></visual></link></robot>", shape);
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(text, strlen(text), "robot.urdf", NULL, &spec, &err)) fail_msg("%s", err.message);
    us_inertia I = us_spec_view_shape(spec, 0)->unit_inertia;
    us_spec_destroy(spec);
    return I;
}

// A body of revolution about z with radius r(z), cut into thin discs.
static void sum_discs(double (*radius)(double z), double half, double *mass, double *across, double *along) {
    int n = 200000;
    double dz = 2 * half / n;
    *mass = *across = *along = 0;
    for (int i = 0; i < n; i++) {
        double z = -half + (i + 0.5) * dz, r2 = radius(z) * radius(z), m = pi * r2 * dz;
        *mass += m;
        *along += 0.5 * m * r2;
        *across += m * (0.25 * r2 + z * z);
    }
}
static double sphere_radius(double z) { return sqrt(0.25 - z * z); }
static double cylinder_radius(double z) {
    (void)z;
    return 0.5;
}
static double capsule_radius(double z) {
    double beyond = fabs(z) - 1;
    return beyond > 0 ? sqrt(0.25 - beyond * beyond) : 0.5;
}

static void round_shapes_have_the_mass_properties_of_their_discs(void **state) {
    (void)state;
    static const struct {
        const char *shape;
        double (*radius)(double z);
        double half;
    } rows[] = {{"<sphere radius='0.5'/>", sphere_radius, 0.5},
                {"<cylinder radius='0.5' length='2'/>", cylinder_radius, 1},
                {"<capsule radius='0.5' length='2'/>", capsule_radius, 1.5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double mass, across, along;
        sum_discs(rows[i].radius, rows[i].half, &mass, &across, &along);
        us_inertia I = unit_inertia_of(rows[i].shape);
        // The discs' midpoint rule is exact to about 1e-10 with that many.
        assert_near(I.mass, mass, 1e-8);
        assert_near(I.about_com[0], across, 1e-8);
        assert_near(I.about_com[1], across, 1e-8);
        assert_near(I.about_com[2], along, 1e-8);
    }
}

static void a_box_has_the_mass_properties_of_a_box(void **state) {
    (void)state;
    us_inertia I = unit_inertia_of("<box size='1 2 3'/>");
    assert_near(I.mass, 6, 0);
    assert_near(I.about_com[0], 6.5, 1e-15);
    assert_near(I.about_com[1], 5, 1e-15);
    assert_near(I.about_com[2], 2.5, 1e-15);
}

// ---- Memory ----

// Gives `left` pieces of memory and then no more; counts what is not given back.
typedef struct scarce {
    us_allocator heap;
    int left, n_live;
} scarce;

static void *scarce_alloc(void *context, size_t size, size_t align) {
    scarce *s = context;
    if (s->left-- <= 0) return NULL;
    s->n_live++;
    return s->heap.alloc(s->heap.context, size, align);
}

static void scarce_release(void *context, void *memory, size_t size, size_t align) {
    scarce *s = context;
    s->n_live--;
    s->heap.release(s->heap.context, memory, size, align);
}

static void running_out_of_memory_anywhere_is_a_clean_error(void **state) {
    (void)state;
    write_stl_text("box.stl", 12, false);
    static const char text[] = "<robot name='r'><material name='m'><color rgba='1 0 0 1'/></material><link "
                               "name='a'><visual><geometry><mesh "
                               "filename='box.stl'/></geometry><material name='m'/></visual></link>"
                               "<link name='b'><collision><geometry><mesh filename='box.stl' scale='2 2 "
                               "2'/></geometry></collision></link><link name='c'><unknown/></link>"
                               "<joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint>"
                               "<joint name='k' type='revolute'><parent link='a'/><child link='c'/><mimic "
                               "joint='j'/></joint><gazebo reference='a'><x/></gazebo></robot>";
    us_status status = US_ERR_MEMORY;
    int n = 0;
    for (; status; n++) {
        scarce memory = {.heap = us_allocator_default(), .left = n};
        us_load_def def = us_load_def_default();
        def.allocator = (us_allocator){scarce_alloc, scarce_release, &memory};
        us_spec *spec = NULL;
        us_error err = {0};
        status = us_spec_load_text(text, strlen(text), "robot.urdf", &def, &spec, &err);
        assert_true(status == US_OK || status == US_ERR_MEMORY);
        assert_int_equal(err.code, status);
        assert_true(status == US_OK || spec == NULL);
        us_spec_destroy(spec);
        assert_int_equal(memory.n_live, 0);
    }
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stl_is_a_closed_box),
        cmocka_unit_test(binary_stl_is_a_closed_box),
        cmocka_unit_test(binary_stl_whose_header_says_solid_is_still_binary),
        cmocka_unit_test(a_surface_turned_inside_out_has_the_same_mass_properties),
        cmocka_unit_test(a_surface_with_a_hole_is_open_and_has_no_mass),
        cmocka_unit_test(obj_quads_are_cut_into_triangles),
        cmocka_unit_test(scale_is_applied_and_a_mirrored_box_keeps_its_mass),
        cmocka_unit_test(dae_unit_and_node_transform_are_honoured),
        cmocka_unit_test(dae_y_up_is_turned_and_told),
        cmocka_unit_test(dae_x_up_is_turned_and_told),
        cmocka_unit_test(dae_without_up_axis_is_taken_as_it_is),
        cmocka_unit_test(gltf_and_glb_are_turned_from_y_up_to_z_up),
        cmocka_unit_test(a_package_is_found_in_a_search_directory),
        cmocka_unit_test(a_package_is_found_around_the_file),
        cmocka_unit_test(a_package_is_found_through_the_environment),
        cmocka_unit_test(a_file_uri_and_a_path_beside_the_file_are_found),
        cmocka_unit_test(a_mesh_that_is_not_there_is_told_once_with_the_places),
        cmocka_unit_test(nothing_is_fetched_from_a_network),
        cmocka_unit_test(skipped_meshes_keep_their_path_and_no_counts),
        cmocka_unit_test(a_mesh_in_millimetres_taken_for_metres_is_told),
        cmocka_unit_test(a_moving_link_gets_its_mass_from_a_closed_mesh),
        cmocka_unit_test(round_shapes_have_the_mass_properties_of_their_discs),
        cmocka_unit_test(a_box_has_the_mass_properties_of_a_box),
        cmocka_unit_test(running_out_of_memory_anywhere_is_a_clean_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
