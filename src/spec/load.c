// From a file to a spec: reads it and hands it to the reader of its root element.
#include <string.h>

#include "spec/gazebo_sensor.h"
#include "spec/scene.h"
#include "spec/spec.h"
#include "understudy/network.h"

us_load_def us_load_def_default(void) {
    us_load_def def = {.allocator = us_allocator_default(), .base = US_BASE_FIXED};
    return def;
}

us_status usi_base_add(usi_reader *r, const xmlNode *node, int32_t group, const char *group_name,
                       int32_t root, us_pose X_WR, us_base base, const char *name) {
    bool is_floating = base == US_BASE_FLOATING;
    us_joint_def j = us_joint_def_default(is_floating ? US_JOINT_FLOATING : US_JOINT_FIXED);
    if (!name) name = is_floating ? "floating_base" : "fixed_base";
    j.name = group_name[0] ? usi_reader_text(r, "%s/%s", group_name, name) : name;
    if (!j.name) return usi_fail_memory(r);
    j.group = group;
    j.parent = US_WORLD;
    j.child = root;
    j.file = usi_xml_file(node);
    j.line = usi_xml_line(node);
    if (is_floating) {
        const double q0[7] = {X_WR.q.w, X_WR.q.x, X_WR.q.y, X_WR.q.z, X_WR.p.x, X_WR.p.y, X_WR.p.z};
        memcpy(j.q0, q0, sizeof q0);
    } else {
        j.X_PF = X_WR;
    }
    return usi_scene_added(r, node, us_spec_add_joint(r->spec, &j, NULL));
}

// Files of other simulators are recognized by name, so that the error can give the remedy.
static us_status fail_root(usi_reader *r, const xmlNode *root) {
    const char *remedy = "the root must be <scene> (see docs/scene-file.md) or <robot> (URDF)";
    if (usi_xml_is(root, "sdf"))
        remedy = "SDF is not read by this version: convert the model to URDF, or write a <scene>";
    if (usi_xml_is(root, "mujoco"))
        remedy = "MJCF is not read: convert the model to URDF, or write a <scene>";
    return usi_fail(r, US_ERR_SCHEMA, root, remedy,
                    "a file with the root <%.60s> is neither a scene nor a robot", (const char *)root->name);
}

static us_status read_document(usi_reader *r, xmlDoc *doc) {
    const xmlNode *root = xmlDocGetRootElement(doc);
    if (usi_xml_is(root, "scene")) return usi_scene_read(r, doc);
    if (!usi_xml_is(root, "robot")) return fail_root(r, root);
    if (r->def->n_parameter > 0) {
        return usi_fail(r, US_ERR_NAME, root, "set parameters of scenes only",
                        "a robot file has no parameter \"%.60s\" to set",
                        r->def->parameters[0] ? r->def->parameters[0] : "");
    }
    us_status status = usi_urdf_read(r, doc, "", us_pose_identity(), r->def->base, false, NULL);
    if (status) return status;
    // Alone in its world, it speaks without a namespace.
    us_network_def network = us_network_def_default();
    network.group = 0;
    network.file = usi_xml_file(root);
    network.line = usi_xml_line(root);
    status = usi_gazebo_sensors(r, &network);
    return status ? status : usi_scene_added(r, root, us_spec_set_network(r->spec, &network));
}

static us_status keep_origin(us_spec *spec, const char *path, const us_load_def *def) {
    const usi_origin origin = {.path = path,
                               .excludes_overlaps = def->exclude_overlaps,
                               .n_parameter = def->n_parameter,
                               .n_search = def->n_search,
                               .parameters = (const char **)def->parameters,
                               .search = (const char **)def->search};
    return usi_spec_set_origin(spec, &origin);
}

// `text` NULL: from the file `path`.
static us_status load(const char *text, size_t length, const char *path, const us_load_def *given,
                      us_spec **out_spec, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!path || !out_spec)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a path and a place for the spec",
                            "us_spec_load: an argument is NULL");
    *out_spec = NULL;
    us_load_def def = given ? *given : us_load_def_default();
    us_spec *spec = NULL;
    us_status status = us_spec_create(&def.allocator, &spec);
    if (status)
        return us_error_set(err, status, NULL, "free memory, or load a smaller file",
                            "there is not enough memory to read the file");
    usi_reader r;
    usi_reader_init(&r, spec, &def, err);
    xmlDoc *doc = NULL;
    char *read = NULL;
    if (!text) {
        status = usi_file_read(&r, path, NULL, &read, &length);
        text = read;
    }
    if (!status) status = usi_xml_parse(&r, text, length, path, &doc);
    if (!status) status = read_document(&r, doc);
    if (!status && keep_origin(spec, path, &def)) status = usi_fail_memory(&r);
    xmlFreeDoc(doc);
    usi_reader_fini(&r);
    if (status) {
        us_spec_destroy(spec);
        return status;
    }
    *out_spec = spec;
    return US_OK;
}

us_status us_spec_load(const char *path, const us_load_def *def, us_spec **out_spec, us_error *err) {
    return load(NULL, 0, path, def, out_spec, err);
}

us_status us_spec_load_text(const char *text, size_t length, const char *path, const us_load_def *def,
                            us_spec **out_spec, us_error *err) {
    if (!text)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a text", "us_spec_load_text: the text is NULL");
    return load(text, length, path, def, out_spec, err);
}
