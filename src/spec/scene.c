// Reading a scene: the order in which its parts are understood.
//
//   expand     includes are taken in, repeats are written out,
//              ${...} is replaced                                    scene_expand.c
//   validate   the whole against the schema                          scene_schema.c
//   plug-ins   models of contact                                     scene_plugin.c
//   materials  and how they touch                                    scene_surface.c
//   world      settings, and fixed shapes                            scene_shape.c
//   groups     robots with all they have, links of objects           scene_object.c
//   joints     of objects: they may hang on any robot's link         scene_object.c
//   changes    of the robots' joints, start velocities of bases
//   relations  drives, couplings, loops, links that never collide    scene_relation.c
//   records    what to write                                         scene_relation.c
//   network    how each robot appears on it                          scene_network.c
#include "spec/scene.h"
#include "spec/spawn.h"

#include <stdlib.h>
#include <string.h>

#include "terrain/raster.h"
#include "understudy/network.h"

// ---- World ----

static us_status read_seed(usi_reader *r, const xmlNode *node, uint64_t *out) {
    const char *text = usi_xml_attr(node, "seed");
    if (!text) return US_OK;
    size_t length = strlen(text);
    bool is_good = length > 0 && length <= 19 && strspn(text, "0123456789") == length;
    if (!is_good) {
        return usi_fail(r, US_ERR_VALUE, node, "write a whole number of 0 or more, with at most 19 digits",
                        "seed: invalid number \"%.60s\"", text);
    }
    *out = strtoull(text, NULL, 10);
    return US_OK;
}

static us_status read_world(usi_reader *r, const xmlNode *node, us_world_settings *w) {
    usi_look look = usi_look_at(node);
    double gravity[3] = {w->gravity.x, w->gravity.y, w->gravity.z};
    us_status status = usi_look_numbers(r, &look, "gravity", USI_PLAIN, 3, gravity);
    if (!status) status = usi_look_positive(r, &look, "step", USI_TIME, true, &w->step);
    if (!status) status = usi_look_positive(r, &look, "tolerance", USI_PLAIN, true, &w->tolerance);
    if (!status) status = usi_look_positive(r, &look, "duration", USI_TIME, false, &w->duration);
    if (!status) status = read_seed(r, node, &w->seed);
    if (status) return status;
    w->gravity = us_vec3_make(gravity[0], gravity[1], gravity[2]);
    if (w->step > 10)
        return usi_fail(r, US_ERR_VALUE, node, "write a step of at most 10 s, for example 1 ms",
                        "step: %g s is too long", w->step);
    if (w->tolerance >= 1) {
        return usi_fail(r, US_ERR_VALUE, node, "write a tolerance below 1, for example 1e-9",
                        "tolerance: %g is too large", w->tolerance);
    }
    status = usi_xml_int(r, node, "max-contact", false, &w->max_contact);
    if (status) return status;
    if (w->max_contact < 0)
        return usi_fail(
            r, US_ERR_VALUE, node,
            "write how many contact points there may be, or 0 for a number that follows from the shapes",
            "max-contact: %d is negative", (int)w->max_contact);
    status = usi_scene_sky(r, node, &w->sky);
    if (!status) status = usi_scene_light(r, node, &w->sky.light);
    if (status) return status;
    if (usi_xml_attr(node, "solver")) w->solver = usi_xml_attr(node, "solver");
    if (usi_xml_attr(node, "fidelity")) w->fidelity = usi_xml_attr(node, "fidelity");
    const char *integrator = usi_xml_attr(node, "integrator");
    for (int i = 0; integrator && i < US_INTEGRATOR_COUNT; i++) {
        if (strcmp(us_integrator_name((us_integrator)i), integrator) == 0) w->integrator = (us_integrator)i;
    }
    return US_OK;
}

// How often the clock is sent: after the step is known, with which it is compared.
static us_status read_clock_rate(usi_reader *r, const xmlNode *root, int32_t deepest) {
    double rate = us_spec_get_clock_rate(r->spec);
    us_status status = US_OK;
    for (int32_t depth = deepest; depth >= 0; depth--) {
        for (const xmlNode *n = usi_xml_child(root, "world"); n && !status; n = usi_xml_next(n, "world")) {
            if (usi_xml_depth(n) == depth) status = usi_scene_clock_rate(r, n, &rate);
        }
    }
    return status ? status : usi_scene_added(r, root, us_spec_set_clock_rate(r->spec, rate));
}

// The outermost file has the last word: included settings come first.
static us_status read_worlds(usi_reader *r, const xmlNode *root) {
    us_world_settings w = us_world_settings_default();
    const char *name = usi_xml_attr(root, "name");
    w.name = name ? name : "";
    int32_t deepest = 0;
    for (const xmlNode *n = usi_xml_child(root, "world"); n; n = usi_xml_next(n, "world")) {
        if (usi_xml_depth(n) > deepest) deepest = usi_xml_depth(n);
    }
    for (int32_t depth = deepest; depth >= 0; depth--) {
        const xmlNode *before = NULL;
        for (const xmlNode *n = usi_xml_child(root, "world"); n; n = usi_xml_next(n, "world")) {
            if (usi_xml_depth(n) != depth) continue;
            if (before) {
                return usi_fail(r, US_ERR_SCHEMA, n, "write all settings into one <world>",
                                "there are two <world> (the first in line %d)", (int)usi_xml_line(before));
            }
            us_status status = read_world(r, n, &w);
            if (status) return status;
            before = n;
        }
    }
    us_status status = usi_scene_added(r, root, us_spec_set_world(r->spec, &w));
    return status ? status : read_clock_rate(r, root, deepest);
}

// Fixed shapes of the world itself.
static us_status read_ground(usi_reader *r, const xmlNode *root) {
    us_status status = US_OK;
    for (const xmlNode *w = usi_xml_child(root, "world"); w; w = usi_xml_next(w, "world")) {
        for (const xmlNode *n = usi_xml_child(w, "shape"); n && !status; n = usi_xml_next(n, "shape")) {
            us_shape_def s;
            status = usi_scene_shape(r, n, &s);
            if (!status) status = usi_scene_added(r, n, us_spec_add_shape(r->spec, &s, NULL));
        }
    }
    return status;
}

// ---- Robots ----

static us_status read_robot(usi_reader *r, usi_scene_group *group) {
    const xmlNode *node = group->node;
    const char *base = usi_xml_attr(node, "base");
    char *path = usi_path_beside(r, usi_xml_file(node), usi_xml_attr(node, "file")), *text = NULL,
         element[128];
    if (!path) return usi_fail_memory(r);
    us_place place = usi_xml_place(r, node, element, sizeof element);
    size_t length = 0;
    bool excludes_overlaps = false;
    us_status status = usi_xml_bool(r, node, "exclude-overlaps", false, &excludes_overlaps);
    const bool is_inline =
        r->pick && r->pick->text && strcmp(usi_xml_attr(node, "file"), USI_PICK_INLINE) == 0;
    if (!status && !is_inline) status = usi_reader_permit(r, node, "robot file", path);
    if (!status && !is_inline) status = usi_file_read(r, path, &place, &text, &length);
    const char *urdf = is_inline ? r->pick->text : text;
    if (is_inline) length = strlen(urdf);
    xmlDoc *doc = NULL;
    if (!status) status = usi_xml_parse(r, urdf, length, path, &doc);
    if (status) return status;
    us_spec_counts before = us_spec_get_counts(r->spec);
    const xmlNode *root = xmlDocGetRootElement(doc);
    if (usi_xml_is(root, "scene")) {
        status = usi_fail(r, US_ERR_SCHEMA, node, "take scenes in by <include file=\"...\"/>",
                          "the file is a scene, not a robot");
    } else {
        status = usi_urdf_read(r, doc, group->name, group->X_WG,
                               base && strcmp(base, "floating") == 0 ? US_BASE_FLOATING : US_BASE_FIXED,
                               excludes_overlaps, &group->index);
    }
    xmlFreeDoc(doc);
    us_spec_counts after = us_spec_get_counts(r->spec);
    group->first_link = before.n_link;
    group->n_link = after.n_link - before.n_link;
    group->first_joint = before.n_joint;
    group->n_joint = after.n_joint - before.n_joint;
    return status;
}

// A default on the whole robot fills in what its file leaves at zero.
static us_status fill_from_default(usi_reader *r, const usi_scene_group *group) {
    const xmlNode *values = usi_xml_child(group->default_node, "joint");
    us_status status = US_OK;
    for (int32_t i = group->first_joint; values && i < group->first_joint + group->n_joint && !status; i++) {
        us_joint_def j = *us_spec_view_joint(r->spec, i), filled = j;
        // A base joint is no joint of the robot's mechanism.
        if (j.type == US_JOINT_FIXED || j.parent == US_WORLD) continue;
        usi_look look = {{NULL, values, NULL}};
        status = usi_scene_joint_values(r, &look, &filled);
        if (status) break;
        if (j.damping == 0) j.damping = filled.damping;
        if (j.stiffness == 0) {
            j.stiffness = filled.stiffness;
            j.rest = filled.rest;
        }
        if (j.armature == 0) j.armature = filled.armature;
        if (j.friction == 0) j.friction = filled.friction;
        if (j.effort == 0) j.effort = filled.effort;
        if (j.velocity == 0) j.velocity = filled.velocity;
        if (!j.has_limits) {
            j.has_limits = filled.has_limits;
            j.lower = filled.lower;
            j.upper = filled.upper;
        }
        status = usi_scene_added(r, group->node, us_spec_set_joint(r->spec, i, &j));
    }
    return status;
}

static us_status change_joint(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    int32_t index = -1;
    const xmlNode *own = NULL;
    us_status status = usi_scene_find_joint(r, group, node, "name", &index);
    if (!status) status = usi_scene_default(r, node, &own);
    if (status) return status;
    for (const xmlNode *n = usi_xml_child(group->node, "joint"); n != node; n = usi_xml_next(n, "joint")) {
        if (strcmp(usi_xml_attr(n, "name"), usi_xml_attr(node, "name")) != 0) continue;
        return usi_fail(r, US_ERR_NAME, node, "write all changes of a joint into one element",
                        "the joint is changed in line %d already", (int)usi_xml_line(n));
    }
    us_joint_def j = *us_spec_view_joint(r->spec, index);
    usi_look look = {{node, usi_xml_child(own, "joint"), NULL}};
    status = usi_scene_joint_values(r, &look, &j);
    return status ? status : usi_scene_added(r, node, us_spec_set_joint(r->spec, index, &j));
}

// ---- Start velocity of a floating base ----

// The floating joint between the world and a link of the group; -1: there is none.
static int32_t find_base(const us_spec *spec, int32_t group) {
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_joint; i++) {
        const us_joint_def *j = us_spec_view_joint(spec, i);
        if (j->group == group && j->parent == US_WORLD && j->type == US_JOINT_FLOATING) return i;
    }
    return -1;
}

static us_status read_base_state(usi_reader *r, const usi_scene_group *group) {
    const xmlNode *node = usi_xml_child(group->node, "base");
    if (!node) return US_OK;
    if (usi_xml_next(node, "base"))
        return usi_fail(r, US_ERR_SCHEMA, usi_xml_next(node, "base"), "keep one of them",
                        "there are two <base>");
    int32_t index = find_base(r->spec, group->index);
    if (index < 0) {
        return usi_fail(r, US_ERR_VALUE, node, "write base=\"floating\", or remove the <base>",
                        "\"%.60s\" has no floating base that could have a velocity", group->name);
    }
    us_joint_def j = *us_spec_view_joint(r->spec, index);
    usi_look look = usi_look_at(node);
    us_status status = usi_look_numbers(r, &look, "angular", USI_SPIN, 3, &j.v0[0]);
    if (!status) status = usi_look_numbers(r, &look, "linear", USI_SPEED, 3, &j.v0[3]);
    return status ? status : usi_scene_added(r, node, us_spec_set_joint(r->spec, index, &j));
}

// ---- Groups ----

static us_status start_group(usi_reader *r, const xmlNode *node, usi_scene_group *group) {
    *group = (usi_scene_group){
        .node = node, .name = usi_xml_attr(node, "name"), .index = -1, .X_WG = us_pose_identity()};
    us_status status = usi_scene_pose(r, node, &group->X_WG);
    if (!status) status = usi_scene_default(r, node, &group->default_node);
    if (status) return status;
    if (strcmp(group->name, "world") == 0)
        return usi_fail(r, US_ERR_NAME, node, "choose another name",
                        "\"world\" is the name of the world itself");
    if (usi_xml_is(node, "robot")) {
        status = read_robot(r, group);
        const char *tags = usi_xml_attr(node, "tags");
        if (!status && tags)
            status = usi_scene_added(r, node, usi_spec_set_tags(r->spec, group->index, tags));
        if (!status) status = fill_from_default(r, group);
        return status ? status : usi_scene_surfaces(r, group);
    }
    const char *base = usi_xml_attr(node, "base");
    us_group_def def = {.name = group->name,
                        .file = usi_xml_file(node),
                        .line = usi_xml_line(node),
                        .is_floating = !base || strcmp(base, "floating") == 0,
                        .tags = usi_xml_attr(node, "tags")};
    for (const xmlNode *j = usi_xml_child(node, "joint"); j; j = usi_xml_next(j, "joint")) {
        // An object that hangs on its own joints does not float.
        const char *parent = usi_xml_attr(j, "parent");
        if (strcmp(parent, "world") == 0 || strchr(parent, '/')) def.is_floating = false;
    }
    status = usi_scene_added(r, node, us_spec_add_group(r->spec, &def, &group->index));
    return status ? status : usi_scene_object_links(r, group);
}

static bool is_group(const xmlNode *node) { return usi_xml_is(node, "robot") || usi_xml_is(node, "object"); }

static int compare_groups(const void *a, const void *b) {
    const usi_scene_group *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->index - y->index;
}

// Robots and objects share one set of names. `copy` is put in order of names, so that equal ones are
// neighbours.
static us_status check_group_names(usi_reader *r, usi_scene_group *copy, int n) {
    qsort(copy, (size_t)n, sizeof *copy, compare_groups);
    for (int i = 1; i < n; i++) {
        if (strcmp(copy[i - 1].name, copy[i].name) != 0) continue;
        return usi_fail(r, US_ERR_NAME, copy[i].node, "give each robot and object its own name",
                        "the name \"%.60s\" is used already in %.150s:%d", copy[i].name,
                        usi_xml_file(copy[i - 1].node), (int)usi_xml_line(copy[i - 1].node));
    }
    return US_OK;
}

static us_status read_groups(usi_reader *r, const xmlNode *root, const usi_scene_group **out_groups,
                             int *out_n) {
    int n = 0, k = 0;
    for (const xmlNode *c = usi_xml_child(root, NULL); c; c = usi_xml_next(c, NULL))
        n += is_group(c);
    usi_scene_group *groups = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *groups),
                    *sorted = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *groups);
    if (!groups || !sorted) return usi_fail_memory(r);
    for (const xmlNode *c = usi_xml_child(root, NULL); c; c = usi_xml_next(c, NULL)) {
        if (!is_group(c)) continue;
        sorted[k] = (usi_scene_group){.node = c, .name = usi_xml_attr(c, "name"), .index = k};
        k++;
    }
    us_status status = check_group_names(r, sorted, n);
    k = 0;
    for (const xmlNode *c = usi_xml_child(root, NULL); c && !status; c = usi_xml_next(c, NULL)) {
        if (is_group(c)) status = start_group(r, c, &groups[k++]);
    }
    for (int i = 0; i < n && !status; i++) {
        if (usi_xml_is(groups[i].node, "object")) status = usi_scene_object_joints(r, &groups[i]);
    }
    for (int i = 0; i < n && !status; i++) {
        for (const xmlNode *j = usi_xml_child(groups[i].node, "joint");
             j && !status && usi_xml_is(groups[i].node, "robot"); j = usi_xml_next(j, "joint")) {
            status = change_joint(r, &groups[i], j);
        }
        if (!status) status = read_base_state(r, &groups[i]);
    }
    for (int i = 0; i < n && !status; i++)
        status = usi_scene_relations(r, &groups[i]);
    *out_groups = groups;
    *out_n = n;
    return status;
}

// ---- Defaults ----

static us_status check_defaults(usi_reader *r, const xmlNode *root) {
    for (const xmlNode *d = usi_xml_child(root, "default"); d; d = usi_xml_next(d, "default")) {
        const char *name = usi_xml_attr(d, "name");
        for (const xmlNode *e = usi_xml_child(root, "default"); e != d; e = usi_xml_next(e, "default")) {
            if (strcmp(usi_xml_attr(e, "name"), name) == 0) {
                return usi_fail(r, US_ERR_NAME, d, "give each default its own name",
                                "the default is defined in line %d already", (int)usi_xml_line(e));
            }
        }
        if (usi_xml_next(usi_xml_child(d, "joint"), "joint") ||
            usi_xml_next(usi_xml_child(d, "drive"), "drive")) {
            return usi_fail(r, US_ERR_SCHEMA, d,
                            "write all values of joints into one <joint>, those of drives into one <drive>",
                            "the default has two elements of one kind");
        }
    }
    return US_OK;
}

us_status usi_scene_read(usi_reader *r, xmlDoc *doc) {
    us_status status = usi_scene_expand(r, doc);
    if (!status && r->pick) status = usi_scene_pick(r, doc);
    if (!status) status = usi_scene_validate(r, doc);
    const xmlNode *root = xmlDocGetRootElement(doc);
    if (!status) status = check_defaults(r, root);
    if (!status) status = usi_scene_plugins(r, root);
    if (!status) status = usi_scene_materials(r, root);
    if (!status) status = usi_scene_pairs(r, root);
    if (!status) status = read_worlds(r, root);
    if (!status) status = read_ground(r, root);
    if (!status) status = usi_scene_sky_of_ground(r, root);
    if (!status) status = usi_scene_regions(r, root);
    if (!status) status = usi_scene_soil_maps(r, root);
    int32_t n_ground = us_spec_get_counts(r->spec).n_shape;
    const usi_scene_group *groups = NULL;
    int n_group = 0;
    if (!status) status = read_groups(r, root, &groups, &n_group);
    for (const xmlNode *n = usi_xml_child(root, "scatter"); n && !status; n = usi_xml_next(n, "scatter"))
        status = usi_scene_scatter(r, n, n_ground);
    usi_scene_group outside = {.node = root, .name = "", .index = -1, .X_WG = us_pose_identity()};
    if (!status) status = usi_scene_relations(r, &outside);
    for (const xmlNode *n = usi_xml_child(root, "record"); n && !status; n = usi_xml_next(n, "record"))
        status = usi_scene_record(r, n);
    for (int i = 0; i < n_group && !status; i++) {
        if (usi_xml_is(groups[i].node, "robot")) status = usi_scene_network(r, &groups[i]);
    }
    usi_raster_close(r->ground);
    r->ground = NULL;
    return status;
}
