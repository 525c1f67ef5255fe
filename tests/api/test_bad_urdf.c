// Broken robot files and meshes: each gets its own error with status, line and remedy.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/model.h"

typedef struct row {
    const char *name;  // tests/bad/DIRECTORY/NAME.urdf
    us_status status;
    int line;
    const char *message;  // a part of it
} row;

static const row files[] = {
    {"attribute_twice", US_ERR_SYNTAX, 2, "Attribute name redefined"},
    {"attribute_without_quotes", US_ERR_SYNTAX, 2, "is not in quotes"},
    {"axis_is_a_word", US_ERR_VALUE, 7, "\"z\" is not a finite number"},
    {"axis_of_two_numbers", US_ERR_VALUE, 7, "3 numbers are needed, 2 given"},
    {"axis_zero", US_ERR_VALUE, 7, "the axis of joint \"shoulder\" has no length"},
    {"billion_laughs", US_ERR_SYNTAX, 2,
     "the entity \"b\" is made of other entities: such nested entities are refused, because they could grow "
     "to any size"},
    {"box_without_size", US_ERR_SCHEMA, 5, "the attribute \"size\" is missing"},
    {"colour_of_three_numbers", US_ERR_VALUE, 6, "4 numbers are needed, 3 given"},
    {"cycle", US_ERR_TREE, 15,
     "links are joined in a circle: \"a\" is a child of \"c\" is a child of \"b\" is a child of \"a\""},
    {"cycle_beside_a_root", US_ERR_TREE, 5,
     "links are joined in a circle: \"b\" is a child of \"a\" is a child of \"b\""},
    {"damping_negative", US_ERR_VALUE, 7, "the damping of joint \"shoulder\" is negative"},
    {"empty", US_ERR_SYNTAX, 1, "the file is empty"},
    {"external_entity", US_ERR_SYNTAX, 2,
     "the DOCTYPE names an external file (\"file:///etc/passwd\"): external entities are refused, because "
     "they could read any file of this machine"},
    {"geometry_empty", US_ERR_SCHEMA, 4, "the <geometry> is empty"},
    {"geometry_twice", US_ERR_SCHEMA, 4, "the <geometry> has more than one shape"},
    {"geometry_unknown", US_ERR_SCHEMA, 5, "invalid shape <cone>"},
    {"inertia_incomplete", US_ERR_SCHEMA, 6, "the attribute \"izz\" is missing"},
    {"joint_to_itself", US_ERR_TREE, 4, "the joint joins the link \"arm\" to itself"},
    {"joint_twice", US_ERR_NAME, 9,
     "the name \"shoulder\" is used twice: the first joint of that name is in line 4"},
    {"joint_type_unknown", US_ERR_VALUE, 4, "invalid joint type \"rotational\""},
    {"joint_without_child", US_ERR_SCHEMA, 4, "the joint has no <child>"},
    {"joint_without_parent", US_ERR_SCHEMA, 4, "the joint has no <parent>"},
    {"joint_without_type", US_ERR_SCHEMA, 4, "the joint has no type"},
    {"limit_is_a_word", US_ERR_VALUE, 7, "\"-pi\" is not a finite number"},
    {"limits_exchanged", US_ERR_VALUE, 7,
     "the lower limit of joint \"shoulder\", 2, is above the upper one, 1"},
    {"link_twice", US_ERR_NAME, 3,
     "the name \"base\" is used twice: the first link of that name is in line 2"},
    {"link_without_name", US_ERR_SCHEMA, 2, "the <link> has no name"},
    {"long_name", US_ERR_LIMIT, 2, "the name is longer than 200 bytes"},
    {"mass_hexadecimal", US_ERR_VALUE, 5, "\"0x10\" is not a number"},
    {"mass_infinite", US_ERR_VALUE, 5, "\"inf\" is not a finite number"},
    {"mass_missing", US_ERR_SCHEMA, 4, "the <inertial> of link \"arm\" has no <mass>"},
    {"mass_negative", US_ERR_MASS, 5, "link \"arm\" has a negative mass, -1 kg"},
    {"mass_without_value", US_ERR_SCHEMA, 5, "the attribute \"value\" is missing"},
    {"mimic_circle", US_ERR_VALUE, 13,
     "joints mimic each other in a circle: \"wrist\" follows \"shoulder\", which follows \"wrist\" in the "
     "end"},
    {"mimic_itself", US_ERR_VALUE, 7, "the joint \"shoulder\" mimics itself"},
    {"mimic_unknown", US_ERR_NAME, 7, "the joint \"shoulder\" mimics \"shoulde\", which does not exist"},
    {"mimic_without_joint", US_ERR_SCHEMA, 7, "the <mimic> of joint \"shoulder\" names no joint"},
    {"mismatched_tags", US_ERR_SYNTAX, 3, "Opening and ending tag mismatch: link line 2 and robot"},
    {"missing_link", US_ERR_NAME, 6,
     "the child of joint \"shoulder\" is the link \"arn\", which does not exist"},
    {"no_links", US_ERR_TREE, 1, "the robot has no links"},
    {"not_xml", US_ERR_SYNTAX, 1, "this is not XML"},
    {"origin_huge", US_ERR_VALUE, 7, "\"1e300\" is too large: numbers may go up to 1e15"},
    {"origin_nan", US_ERR_VALUE, 7, "\"nan\" is not a finite number"},
    {"origin_with_commas", US_ERR_VALUE, 7, "\"0,\" is not a number"},
    {"origin_with_unit", US_ERR_VALUE, 7, "\"1m\" is not a number"},
    {"parent_names_no_link", US_ERR_SCHEMA, 5, "the <parent> of joint \"shoulder\" names no link"},
    {"sdf", US_ERR_SCHEMA, 1, "a file with the root <sdf> is neither a scene nor a robot"},
    {"sphere_negative", US_ERR_VALUE, 5, "the sphere has a negative length"},
    {"truncated", US_ERR_SYNTAX, 6, "the file ends too early"},
    {"two_parents", US_ERR_TREE, 9,
     "the link \"arm\" is the child of two joints, \"shoulder\" (line 4) and \"second\""},
    {"two_roots", US_ERR_TREE, 3, "2 links are the child of no joint: \"base\", \"arm\""},
    {"visual_without_geometry", US_ERR_SCHEMA, 3, "the <visual> has no <geometry>"},
    {"xacro_element", US_ERR_SCHEMA, 2, "the file is xacro, not URDF: it contains <xacro:property>"},
    {"xacro_expression", US_ERR_SCHEMA, 5,
     "the file is xacro, not URDF: the attribute size is \"${width} 1 1\""},
};

// What stands behind "cannot be read: " is the mesh library's and differs between its versions.
static const row meshes[] = {
    {"buffer_missing_gltf", US_ERR_MESH, 5, "/buffer_missing.gltf\" cannot be read: "},
    {"cut_off_binary_stl", US_ERR_MESH, 5,
     "/cut_off_binary.stl\" is cut off: it is shorter than its count of triangles says"},
    {"cut_off_dae", US_ERR_MESH, 5, "/cut_off.dae\" cannot be read: "},
    {"cut_off_text_stl", US_ERR_MESH, 5,
     "/cut_off_text.stl\" is cut off: there is no \"endsolid\" at its end"},
    {"empty_stl", US_ERR_MESH, 5, "/empty.stl\" is an empty file"},
    {"lfs_pointer_stl", US_ERR_MESH, 5, "/lfs_pointer.stl\" is a Git LFS pointer, not the mesh itself"},
    {"lines_only_obj", US_ERR_MESH, 5, "/lines_only.obj\" has no triangles"},
    {"no_filename", US_ERR_SCHEMA, 5, "the mesh names no file"},
    {"no_triangles_stl", US_ERR_MESH, 5, "/no_triangles.stl\" has no triangles"},
    {"not_collada_dae", US_ERR_MESH, 5, "/not_collada.dae\" cannot be read: "},
    {"not_finite_stl", US_ERR_MESH, 5, "/not_finite.stl\" has a vertex that is not finite"},
    {"not_json_gltf", US_ERR_MESH, 5, "/not_json.gltf\" cannot be read: "},
    {"scale_of_two_numbers", US_ERR_VALUE, 5, "3 numbers are needed, 2 given"},
    {"scale_zero", US_ERR_VALUE, 5, "the mesh has the scale 0"},
    {"too_short_stl", US_ERR_MESH, 5, "/too_short.stl\" is neither a text nor a binary STL file"},
    {"unknown_format_step", US_ERR_MESH, 5, "/unknown_format.step\" is of a format that is not read"},
    {"vertex_missing_obj", US_ERR_MESH, 5, "/vertex_missing.obj\" cannot be read: "},
    {"wrong_magic_glb", US_ERR_MESH, 5, "/wrong_magic.glb\" cannot be read: "},
};

static const struct {
    const char *directory;
    const row *row;
    int n;
} tables[] = {{"urdf", files, sizeof files / sizeof *files},
              {"mesh", meshes, sizeof meshes / sizeof *meshes}};

static bool is_right(const char *directory, const row *r) {
    char path[512];
    snprintf(path, sizeof path, US_SOURCE_DIR "/tests/bad/%s/%s.urdf", directory, r->name);
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err = {0};
    us_status status = us_spec_load(path, NULL, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &model, &err);
    us_model_destroy(model);
    us_spec_destroy(spec);
    if (status == r->status && err.code == status && err.line == r->line && strstr(err.message, r->message) &&
        err.remedy[0] != 0 && strstr(err.file, r->name))
        return true;
    print_error("%s: %s, line %d: %s (%s)\n", r->name, us_status_text(status), (int)err.line, err.message,
                err.remedy);
    return false;
}

static void every_broken_file_gets_its_own_error(void **state) {
    (void)state;
    int n_wrong = 0;
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < tables[t].n; i++)
            n_wrong += !is_right(tables[t].directory, &tables[t].row[i]);
    }
    assert_int_equal(n_wrong, 0);
}

static void every_broken_file_is_in_its_table(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        char path[512];
        snprintf(path, sizeof path, US_SOURCE_DIR "/tests/bad/%s", tables[t].directory);
        DIR *dir = opendir(path);
        assert_non_null(dir);
        int n = 0;
        for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
            const char *dot = strrchr(e->d_name, '.');
            if (!dot || strcmp(dot, ".urdf") != 0) continue;
            n++;
            bool is_listed = false;
            for (int i = 0; i < tables[t].n; i++) {
                const char *name = tables[t].row[i].name;
                is_listed |=
                    strlen(name) == (size_t)(dot - e->d_name) && strncmp(name, e->d_name, strlen(name)) == 0;
            }
            if (!is_listed) fail_msg("%s is not in the table", e->d_name);
        }
        closedir(dir);
        assert_int_equal(n, tables[t].n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_file_gets_its_own_error),
        cmocka_unit_test(every_broken_file_is_in_its_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
