// <plugin file="..."/>: shared libraries whose interaction models the scene's pairs may name.
//
// They are loaded before anything else of the scene is understood, in the order in which they are written;
// the same library named by several included files counts once.
#include "spec/scene.h"
#include "understudy/interaction.h"

static us_status load_plugin(usi_reader *r, const xmlNode *node) {
    // usi_path_beside keeps absolute names and starts relative ones at the file in which they are written.
    const char *path = usi_path_beside(r, usi_xml_file(node), usi_xml_attr(node, "file"));
    if (!path) return usi_fail_memory(r);
    us_error why = {0};
    us_status status = usi_reader_permit(r, node, "plug-in", path);
    if (status) return status;
    status = us_spec_load_plugin(r->spec, path, &why);
    if (!status) return US_OK;
    // The place is where the scene names the library.
    return usi_fail(r, status, node, why.remedy, "%.200s: %.300s", path, why.message);
}

us_status usi_scene_plugins(usi_reader *r, const xmlNode *root) {
    us_status status = US_OK;
    if (r->def->skip_plugins) return US_OK;
    for (const xmlNode *n = usi_xml_child(root, "plugin"); n && !status; n = usi_xml_next(n, "plugin"))
        status = load_plugin(r, n);
    return status;
}
