// A robot for a world that runs: read from a file or a text, made a spec of its own, joined to the other.
//
//     URDF        -->  <scene><robot file="..."/></scene>  --.
//     <robot>     -->  <scene><robot .../></scene>          --+-->  one robot (scene_pick.c)  --> spec_join.c
//     <scene>     ------------------------------------------'
//
// Who asks for a robot may be anybody on the network: files are opened in the directories alone that the
// world itself was made of, and no library is loaded.
#include "spec/spawn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/scene.h"

enum { MAX_LINK = 1000, MAX_SHAPE = 10000 };

// ---------------------------------------------------------------- which files

// The directory of a file, without links and dots. False where there is none.
static bool find_directory(const char *file, char out[PATH_MAX]) {
    char directory[PATH_MAX];
    const char *slash = strrchr(file, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
    return realpath(slash == file ? "/" : directory, out) != NULL;
}

// Whether a directory is that of a file, or below.
static bool is_beside(const char *directory, const char *file) {
    char there[PATH_MAX];
    if (!find_directory(file, there)) return false;
    const size_t n = strlen(there);
    return strncmp(directory, there, n) == 0 && (directory[n] == 0 || directory[n] == '/' || n == 1);
}

static bool is_within(const us_spec *spec, const char *path) {
    char real[PATH_MAX], own[PATH_MAX], inside[PATH_MAX];
    // Of a link it is where it leads; what is not there has a directory too.
    if (!find_directory(realpath(path, real) ? real : path, own)) return false;
    if (spec->origin.path && is_beside(own, spec->origin.path)) return true;
    for (int32_t i = 0; i < spec->n_group; i++) {
        const us_group_def *g = &spec->group[i];
        if (!g->is_added && g->file && is_beside(own, g->file)) return true;
    }
    for (int32_t i = 0; i < spec->origin.n_search; i++) {
        snprintf(inside, sizeof inside, "%.4000s/x", spec->origin.search[i]);
        if (is_beside(own, inside)) return true;
    }
    return false;
}

static bool may_open(void *context, const char *kind, const char *path) {
    if (strcmp(kind, "plug-in") == 0) return false;
    if (strncmp(path, "package://", 10) == 0) return true;
    if (strncmp(path, "file://", 7) == 0) path += 7;
    // A mesh is written as seen from its robot's file, and read by a process of its own.
    if (strcmp(kind, "mesh") == 0 && path[0] != '/') return !strstr(path, "..");
    return is_within(context, path);
}

// ---------------------------------------------------------------- documents

static const char empty_scene[] = "<scene name='robot' version='1'><robot name='robot' file='*'/></scene>";

static const char *skip_declaration(const char *text) {
    const char *end = strncmp(text, "<?xml", 5) == 0 ? strstr(text, "?>") : NULL;
    return end ? end + 2 : text;
}

// A robot's own file in an empty scene.
static us_status wrap_urdf(usi_reader *r, const char *path, const char *file, xmlDoc **out) {
    us_status status = usi_xml_parse(r, empty_scene, sizeof empty_scene - 1, path, out);
    xmlNode *robot = status ? NULL : xmlDocGetRootElement(*out)->children;
    if (!status && !(xmlSetProp(robot, (const xmlChar *)"file", (const xmlChar *)file) &&
                     xmlSetProp(robot, (const xmlChar *)"base", (const xmlChar *)"floating")))
        status = usi_fail_memory(r);
    return status;
}

// Of a text or file: the scene with the robot. `file` NULL: the text has no file of its own.
static us_status make_document(usi_reader *r, usi_robot_pick *pick, const char *text, size_t length,
                               const char *path, const char *file, xmlDoc **out) {
    us_status status = usi_xml_parse(r, text, length, path, out);
    if (status) return status;
    const xmlNode *root = xmlDocGetRootElement(*out);
    if (usi_xml_is(root, "scene")) return US_OK;
    if (!usi_xml_is(root, "robot"))
        return usi_fail(r, US_ERR_SCHEMA, root, "write a URDF, a <scene>, or its element <robot file=...>",
                        "<%.60s> is no robot", (const char *)root->name);
    const bool is_element = usi_xml_attr(root, "file") != NULL;
    xmlFreeDoc(*out);
    *out = NULL;
    if (!is_element) {
        if (!file) pick->text = text;
        return wrap_urdf(r, path, file ? file : USI_PICK_INLINE, out);
    }
    const char *scene =
        usi_reader_text(r, "<scene name='robot' version='1'>%s</scene>", skip_declaration(text));
    return scene ? usi_xml_parse(r, scene, strlen(scene), path, out) : usi_fail_memory(r);
}

// The path of a source, and which robot of it; NULL where it has none.
static us_status open_source(usi_reader *r, const us_spec *spec, usi_robot_pick *pick, const char **out_path,
                             const char **out_text, size_t *out_length) {
    const usi_robot_source *s = pick->source;
    const char *beside = spec->origin.path ? spec->origin.path : "robot";
    *out_path = beside;
    if (s->xml) {
        *out_text = s->xml;
        *out_length = strlen(s->xml);
        return US_OK;
    }
    const char *name = strncmp(s->file, "file://", 7) == 0 ? s->file + 7 : s->file, *mark = strchr(name, '#');
    pick->robot = mark && mark[1] ? mark + 1 : NULL;
    char *own = usi_reader_text(r, "%.*s", mark ? (int)(mark - name) : (int)strlen(name), name);
    char *path = own ? usi_path_beside(r, beside, own) : NULL, *text = NULL;
    if (!path) return usi_fail_memory(r);
    us_status status = usi_reader_permit(r, NULL, "robot file", path);
    if (!status) status = usi_file_read(r, path, NULL, &text, out_length);
    *out_path = path;
    *out_text = text;
    return status;
}

// Two names of one file.
static bool is_same_file(const char *a, const char *b) {
    char real_a[PATH_MAX], real_b[PATH_MAX];
    return a && b && realpath(a, real_a) && realpath(b, real_b) && strcmp(real_a, real_b) == 0;
}

// ---------------------------------------------------------------- all

static us_status read(usi_reader *r, const us_spec *spec, us_load_def *def, usi_robot_pick *pick) {
    const char *path = "", *text = "";
    size_t length = 0;
    xmlDoc *doc = NULL;
    us_status status = open_source(r, spec, pick, &path, &text, &length);
    // The world's parameters are those of its own scene.
    if (!status && !pick->source->xml && is_same_file(path, spec->origin.path)) {
        def->n_parameter = spec->origin.n_parameter;
        def->parameters = spec->origin.parameters;
    }
    for (int32_t i = 0; i < spec->n_sensor_kind && !status; i++)
        status = us_spec_add_sensor_kind(r->spec, spec->sensor_kind[i], r->err);
    // Its surfaces may be of the world's materials.
    for (int32_t i = 0; i < spec->n_material && !status; i++)
        status = us_spec_add_material(r->spec, &spec->material[i], NULL);
    if (!status) status = make_document(r, pick, text, length, path, pick->source->xml ? NULL : path, &doc);
    if (!status) status = usi_scene_read(r, doc);
    xmlFreeDoc(doc);
    return status;
}

// More than any robot has, and less than would hold up a world.
static us_status check_size(const us_spec *own, us_error *err) {
    if (own->n_link <= MAX_LINK && own->n_joint <= MAX_LINK && own->n_shape <= MAX_SHAPE) return US_OK;
    return us_error_set(err, US_ERR_LIMIT, NULL, "write it into the scene, and start again",
                        "a robot that is added has at most %d links and %d shapes", MAX_LINK, MAX_SHAPE);
}

us_status usi_spec_add_robot(us_spec *spec, const usi_robot_source *source, us_error *err) {
    us_load_def def = us_load_def_default();
    def.allocator = spec->texts.allocator;
    def.exclude_overlaps = spec->origin.excludes_overlaps;
    def.n_search = spec->origin.n_search;
    def.search = spec->origin.search;
    def.skip_plugins = true;
    def.may_open = may_open;
    def.context = spec;
    us_spec *own = NULL;
    us_error why = {0};
    us_status status = us_spec_create(&def.allocator, &own);
    if (status) return us_error_set(err, status, NULL, "free memory", "no memory for the robot");
    usi_robot_pick pick = {.source = source};
    usi_reader r;
    usi_reader_init(&r, own, &def, &why);
    r.pick = &pick;
    status = read(&r, spec, &def, &pick);
    usi_reader_fini(&r);
    if (!status && own->n_network != 1)
        status = us_error_set(&why, US_ERR_SCHEMA, NULL, "leave out network=\"false\"",
                              "the robot has no network interface");
    if (!status) status = check_size(own, &why);
    if (!status) status = usi_spec_join(spec, own, &why);
    us_spec_destroy(own);
    if (status && err) *err = why;
    return status;
}
