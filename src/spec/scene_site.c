// <shape type="height-field" file="DIRECTORY">: the ground of a site, paged in where robots are.
#include <string.h>
#include <sys/stat.h>

#include "geom/geom.h"
#include "spec/scene.h"

bool usi_is_site(const char *path) {
    struct stat about;
    size_t length = strlen(path);
    return (length > 0 && path[length - 1] == '/') || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

us_status usi_scene_site(usi_reader *r, const xmlNode *node, const char *path, us_shape_def *s) {
    static const char *const own[] = {"nx", "ny", "dx", "dy"};
    for (int i = 0; i < 4; i++) {
        if (usi_xml_attr(node, own[i]))
            return usi_fail(r, US_ERR_VALUE, node, "remove it", "%s: a site has its own", own[i]);
    }
    usi_look look = usi_look_at(node);
    us_status status = usi_look_numbers(r, &look, "zone", USI_LENGTH, 4, s->zone);
    if (!status) status = usi_look_positive(r, &look, "memory", USI_BYTES, true, &s->memory);
    if (status) return status;
    bool is_flat = !(s->zone[2] > s->zone[0] && s->zone[3] > s->zone[1]);
    if (usi_xml_attr(node, "zone") && is_flat)
        return usi_fail(r, US_ERR_VALUE, node, "write x0 y0 x1 y1, m, with x0 below x1 and y0 below y1",
                        "zone: invalid rectangle %g %g %g %g", s->zone[0], s->zone[1], s->zone[2],
                        s->zone[3]);
    us_site *site = NULL;
    us_error why;
    status = usi_reader_permit(r, node, "site", path);
    if (status) return status;
    status = us_site_open(path, &r->def->allocator, &site, &why);
    if (status)
        return usi_fail(r, status, node, why.remedy, "%.150s: %s", why.file[0] ? why.file : path,
                        why.message);
    us_site_info info = us_site_get_info(site);
    usi_window window;
    status = usi_field_zone(&info, s->zone, &window, &why);
    s->site = path;
    s->n_x = info.layer[0].n_x;
    s->n_y = info.layer[0].n_y;
    s->size[0] = info.layer[0].dx;
    s->size[1] = info.layer[0].dy;
    us_site_close(site);
    return status ? usi_fail(r, status, node, why.remedy, "%s", why.message) : US_OK;
}
