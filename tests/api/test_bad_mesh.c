// Broken meshes: each gets its own error at the element that names it.
// What stands behind "cannot be read: " is the mesh library's and differs between its versions.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/model.h"

static const struct {
    const char *name;  // tests/bad/mesh/NAME.urdf
    us_status status;
    int line;
    const char *message;  // a part of it
} rows[] = {
    {"buffer_missing_gltf", US_ERR_MESH, 5, "/buffer_missing.gltf\" cannot be read: "},
    {"cut_off_binary_stl", US_ERR_MESH, 5, "/cut_off_binary.stl\" is cut off: it is shorter than its count of triangles says"},
    {"cut_off_dae", US_ERR_MESH, 5, "/cut_off.dae\" cannot be read: "},
    {"cut_off_text_stl", US_ERR_MESH, 5, "/cut_off_text.stl\" is cut off: there is no \"endsolid\" at its end"},
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
enum { N_ROW = sizeof rows / sizeof *rows };

static void every_broken_file_gets_its_own_error(void **state) {
    (void)state;
    int n_wrong = 0;
    for (int i = 0; i < N_ROW; i++) {
        char path[512];
        snprintf(path, sizeof path, US_SOURCE_DIR "/tests/bad/mesh/%s.urdf", rows[i].name);
        us_spec *spec = NULL;
        us_model *model = NULL;
        us_error err = {0};
        us_status status = us_spec_load(path, NULL, &spec, &err);
        if (!status) status = us_model_compile(spec, NULL, &model, &err);
        us_model_destroy(model);
        us_spec_destroy(spec);
        bool is_right = status == rows[i].status && err.code == status && err.line == rows[i].line && strstr(err.message, rows[i].message) &&
                        err.remedy[0] != 0 && strstr(err.file, rows[i].name);
        if (is_right) continue;
        n_wrong++;
        print_error("%s: %s, line %d: %s (%s)\n", rows[i].name, us_status_text(status), (int)err.line, err.message, err.remedy);
    }
    assert_int_equal(n_wrong, 0);
}

static void every_broken_file_is_in_the_table(void **state) {
    (void)state;
    DIR *dir = opendir(US_SOURCE_DIR "/tests/bad/mesh");
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".urdf") != 0) continue;
        n++;
        bool is_listed = false;
        for (int i = 0; i < N_ROW; i++)
            is_listed |= strlen(rows[i].name) == (size_t)(dot - e->d_name) && strncmp(rows[i].name, e->d_name, strlen(rows[i].name)) == 0;
        if (!is_listed) fail_msg("%s is not in the table", e->d_name);
    }
    closedir(dir);
    assert_int_equal(n, N_ROW);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_file_gets_its_own_error),
        cmocka_unit_test(every_broken_file_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
