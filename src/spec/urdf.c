// The URDF reader: the order of things.
//
// Names and tree are checked before anything is read, so that later stages can follow them. Everything is
// read into tables (spec/urdf.h), and the spec gets it at the end: group, links in the order of the file, the
// joint that holds the root, joints in the order of the file, shapes, mimic couplings, extensions.
#include "spec/urdf.h"

#include <stdio.h>
#include <string.h>

// ---- What is not known ----

// Whether `name` is in a list of names with blanks between. *out_may_repeat: it is marked with a star.
static bool is_listed(const char *list, const char *name, bool *out_may_repeat) {
    size_t length = strlen(name);
    while (*list) {
        *out_may_repeat = *list == '*';
        if (*list == '*') list++;
        size_t n = strcspn(list, " ");
        if (n == length && strncmp(list, name, n) == 0) return true;
        list += n;
        if (*list) list++;
    }
    return false;
}

us_status usi_urdf_note(usi_urdf *u, const char *key, bool *out_is_new) {
    *out_is_new = false;
    for (int i = 0; i < u->n_warned; i++) {
        if (strcmp(u->warned[i], key) == 0) return US_OK;
    }
    if (u->n_warned == USI_URDF_WARNED) return US_OK;
    u->warned[u->n_warned] = usi_reader_text(u->r, "%s", key);
    if (!u->warned[u->n_warned]) return usi_fail_memory(u->r);
    u->n_warned++;
    *out_is_new = true;
    return US_OK;
}

static void guess_remedy(const char *list, const char *name, char remedy[160]) {
    char known[32] = "";
    usi_guess guess = usi_guess_start(name);
    char best[32] = "";
    while (*list) {
        if (*list == '*') list++;
        size_t n = strcspn(list, " ");
        snprintf(known, sizeof known, "%.*s", (int)n, list);
        int before = guess.distance;
        usi_guess_offer(&guess, known);
        if (guess.distance < before) snprintf(best, sizeof best, "%s", known);
        list += n;
        if (*list) list++;
    }
    if (best[0]) {
        snprintf(remedy, 160, "did you mean %s?", best);
    } else {
        snprintf(
            remedy, 160,
            "remove it, or move it into a <gazebo> element, whose content is kept for those who know it");
    }
}

us_status usi_urdf_check(usi_urdf *u, const xmlNode *node, const char *children, const char *attributes) {
    us_status status = US_OK;
    char key[200], remedy[160];
    bool is_new = false, may_repeat = false;
    for (const xmlNode *c = children ? usi_xml_child(node, NULL) : NULL; c && !status;
         c = usi_xml_next(c, NULL)) {
        const char *name = (const char *)c->name;
        bool is_known = is_listed(children, name, &may_repeat);
        if (is_known && (may_repeat || usi_xml_child(node, name) == c)) continue;
        snprintf(key, sizeof key, "%s<%.60s> in <%.60s>", is_known ? "second " : "", name,
                 (const char *)node->name);
        status = usi_urdf_note(u, key, &is_new);
        if (status || !is_new) continue;
        if (is_known) {
            status = usi_warn(u->r, c, "write it once",
                              "<%.60s> is written more than once in <%.60s>: the first one counts", name,
                              (const char *)node->name);
        } else {
            guess_remedy(children, name, remedy);
            status =
                usi_warn(u->r, c, remedy,
                         "<%.60s> is not known in <%.60s> and is ignored, here and wherever else it comes",
                         name, (const char *)node->name);
        }
    }
    for (const xmlAttr *a = attributes ? node->properties : NULL; a && !status; a = a->next) {
        const char *name = (const char *)a->name;
        if (a->ns || is_listed(attributes, name, &may_repeat)) continue;
        snprintf(key, sizeof key, "%.60s of <%.60s>", name, (const char *)node->name);
        status = usi_urdf_note(u, key, &is_new);
        if (status || !is_new) continue;
        guess_remedy(attributes, name, remedy);
        status = usi_warn(
            u->r, node, remedy,
            "the attribute \"%.60s\" is not known in <%.60s> and is ignored, here and wherever else it comes",
            name, (const char *)node->name);
    }
    return status;
}

us_status usi_urdf_origin(usi_urdf *u, const xmlNode *parent, us_pose *out, bool *out_is_turned) {
    const xmlNode *node = usi_xml_child(parent, "origin");
    double xyz[3] = {0}, rpy[3] = {0};
    *out = us_pose_identity();
    if (!node) return US_OK;
    us_status status = usi_urdf_check(u, node, "", "xyz rpy");
    if (!status) status = usi_xml_doubles(u->r, node, "xyz", false, 3, xyz);
    if (!status) status = usi_xml_doubles(u->r, node, "rpy", false, 3, rpy);
    if (status) return status;
    bool is_turned = rpy[0] != 0 || rpy[1] != 0 || rpy[2] != 0;
    out->p = us_vec3_make(xyz[0], xyz[1], xyz[2]);
    if (is_turned) out->q = us_quat_normalize(us_quat_from_rpy(rpy[0], rpy[1], rpy[2]));
    if (out_is_turned) *out_is_turned = is_turned;
    return US_OK;
}

// ---- What this file is ----

static us_status check_root(usi_reader *r, const xmlNode *root) {
    const char *name = root ? (const char *)root->name : "";
    if (strcmp(name, "robot") == 0) return US_OK;
    if (strcmp(name, "sdf") == 0) {
        return usi_fail(r, US_ERR_SCHEMA, root,
                        "convert it to URDF, or describe the world as a <scene> that names URDF robots",
                        "this is an SDF file, which this version does not read");
    }
    return usi_fail(r, US_ERR_SCHEMA, root, "a URDF file begins with <robot name=\"...\">",
                    "the file begins with <%.60s>, which is not a robot", name);
}

// What xacro would have replaced: its elements, and ${...} or $(...) in attributes. Walks the tree without
// recursion.
static us_status check_xacro(usi_reader *r, const xmlNode *root) {
    static const char remedy[] = "expand the file first: xacro file.xacro > file.urdf";
    for (const xmlNode *n = root; n;) {
        if (n->type == XML_ELEMENT_NODE) {
            const char *prefix = n->ns && n->ns->prefix ? (const char *)n->ns->prefix : "";
            if (strcmp(prefix, "xacro") == 0 || strncmp((const char *)n->name, "xacro:", 6) == 0) {
                return usi_fail(r, US_ERR_SCHEMA, n, remedy,
                                "the file is xacro, not URDF: it contains <%s%.60s>",
                                prefix[0] ? "xacro:" : "", (const char *)n->name);
            }
            for (const xmlAttr *a = n->properties; a; a = a->next) {
                const char *text =
                    a->children && a->children->content ? (const char *)a->children->content : "";
                if (!strstr(text, "${") && !strstr(text, "$(")) continue;
                return usi_fail(r, US_ERR_SCHEMA, n, remedy,
                                "the file is xacro, not URDF: the attribute %.60s is \"%.100s\"",
                                (const char *)a->name, text);
            }
        }
        if (n->type == XML_ELEMENT_NODE && n->children) {
            n = n->children;
            continue;
        }
        while (n && n != root && !n->next)
            n = n->parent;
        n = n && n != root ? n->next : NULL;
    }
    return US_OK;
}

static us_status collect(usi_urdf *u) {
    for (const xmlNode *c = usi_xml_child(u->robot, NULL); c; c = usi_xml_next(c, NULL)) {
        u->n_link += usi_xml_is(c, "link");
        u->n_joint += usi_xml_is(c, "joint");
    }
    if (u->n_link == 0)
        return usi_fail(u->r, US_ERR_TREE, u->robot, "add <link name=\"...\"> elements",
                        "the robot has no links");
    size_t link_bytes = (size_t)u->n_link * sizeof *u->links,
           joint_bytes = (size_t)u->n_joint * sizeof *u->joints;
    u->links = usi_reader_alloc(u->r, link_bytes);
    u->joints = usi_reader_alloc(u->r, joint_bytes);
    if (!u->links || !u->joints) return usi_fail_memory(u->r);
    memset(u->links, 0, link_bytes);
    memset(u->joints, 0, joint_bytes);
    int32_t n_link = 0, n_joint = 0;
    for (const xmlNode *c = usi_xml_child(u->robot, NULL); c; c = usi_xml_next(c, NULL)) {
        if (usi_xml_is(c, "link")) u->links[n_link++].node = c;
        if (usi_xml_is(c, "joint")) u->joints[n_joint++].node = c;
    }
    return US_OK;
}

// ---- Into the spec ----

// "group/name", or the name alone in a group without one.
static const char *full_name(usi_urdf *u, const char *name) {
    return u->group[0] ? usi_reader_text(u->r, "%s/%s", u->group, name) : name;
}

static us_status add_links(usi_urdf *u, int32_t group) {
    for (int32_t i = 0; i < u->n_link; i++) {
        const usi_urdf_link *link = &u->links[i];
        us_link_def def = us_link_def_default();
        def.name = full_name(u, link->name);
        def.group = group;
        def.inertia = link->inertia;
        def.file = usi_xml_file(link->node);
        def.line = usi_xml_line(link->node);
        if (!def.name || us_spec_add_link(u->r->spec, &def, NULL)) return usi_fail_memory(u->r);
    }
    return US_OK;
}

static us_status add_joints(usi_urdf *u, int32_t group, int32_t first_link) {
    for (int32_t i = 0; i < u->n_joint; i++) {
        us_joint_def def = u->joints[i].def;
        def.name = full_name(u, u->joints[i].name);
        def.group = group;
        def.parent += first_link;
        def.child += first_link;
        if (!def.name || us_spec_add_joint(u->r->spec, &def, NULL)) return usi_fail_memory(u->r);
    }
    return US_OK;
}

static us_status add_shapes(usi_urdf *u, int32_t first_link) {
    for (int32_t i = 0; i < u->n_shape; i++) {
        us_shape_def def = u->shapes[i];
        def.link += first_link;
        if (us_spec_add_shape(u->r->spec, &def, NULL)) return usi_fail_memory(u->r);
    }
    return US_OK;
}

static us_status add_mimics(usi_urdf *u, int32_t group, int32_t first_joint) {
    for (int32_t i = 0; i < u->n_joint; i++) {
        const usi_urdf_joint *joint = &u->joints[i];
        if (joint->mimic < 0 && !joint->is_held) continue;
        us_coupling_def def = us_coupling_def_default();
        def.name = full_name(u, joint->name);
        def.group = group;
        def.n_term = joint->is_held ? 1 : 2;
        def.joint[0] = first_joint + i;
        def.factor[0] = 1;
        if (!joint->is_held) {
            def.joint[1] = first_joint + joint->mimic;
            def.factor[1] = -joint->multiplier;
        }
        def.offset = joint->offset;
        def.file = usi_xml_file(joint->mimic_node);
        def.line = usi_xml_line(joint->mimic_node);
        if (!def.name || us_spec_add_coupling(u->r->spec, &def, NULL)) return usi_fail_memory(u->r);
    }
    return US_OK;
}

static bool is_extension(const xmlNode *node) {
    return usi_xml_is(node, "gazebo") || usi_xml_is(node, "transmission") || usi_xml_is(node, "ros2_control");
}

static us_status add_extension(usi_urdf *u, const xmlNode *node, int32_t group) {
    us_extension_def def = {.tag = (const char *)node->name,
                            .group = group,
                            .file = usi_xml_file(node),
                            .line = usi_xml_line(node)};
    const xmlNode *joint = usi_xml_is(node, "transmission") ? usi_xml_child(node, "joint") : NULL;
    const char *reference = joint ? usi_xml_attr(joint, "name") : usi_xml_attr(node, "reference");
    us_status status = US_OK;
    if (reference && usi_urdf_find_joint(u, reference) < 0 &&
        (joint || usi_urdf_find_link(u, reference) < 0)) {
        status = usi_warn(u->r, node, "correct the name, or remove the element",
                          "<%s> refers to \"%.100s\", which is no %s of this robot", def.tag, reference,
                          joint ? "joint" : "link or joint");
    }
    if (status) return status;
    if (reference) {
        def.reference = full_name(u, reference);
        if (!def.reference) return usi_fail_memory(u->r);
    }
    xmlBuffer *text = xmlBufferCreate();
    bool is_good = text && xmlNodeDump(text, node->doc, (xmlNode *)node, 0, 0) >= 0;
    if (is_good) {
        def.xml = (const char *)xmlBufferContent(text);
        is_good = us_spec_add_extension(u->r->spec, &def, NULL) == US_OK;
    }
    xmlBufferFree(text);
    return is_good ? US_OK : usi_fail_memory(u->r);
}

static us_status add_all(usi_urdf *u, us_pose X_WR, int32_t *out_group) {
    us_group_def def = {.name = u->group,
                        .file = usi_xml_file(u->robot),
                        .line = usi_xml_line(u->robot),
                        .is_floating = u->is_floating,
                        .excludes_overlaps = u->excludes_overlaps};
    int32_t group = -1;
    if (us_spec_add_group(u->r->spec, &def, &group)) return usi_fail_memory(u->r);
    int32_t first_link = us_spec_get_counts(u->r->spec).n_link;
    us_status status = add_links(u, group);
    if (!status)
        status = usi_base_add(u->r, u->links[u->root].node, group, u->group, first_link + u->root, X_WR,
                              u->is_floating ? US_BASE_FLOATING : US_BASE_FIXED, u->base_name);
    int32_t first_joint = us_spec_get_counts(u->r->spec).n_joint;
    if (!status) status = add_joints(u, group, first_link);
    if (!status) status = add_shapes(u, first_link);
    if (!status) status = add_mimics(u, group, first_joint);
    for (const xmlNode *c = usi_xml_child(u->robot, NULL); c && !status; c = usi_xml_next(c, NULL)) {
        if (is_extension(c)) status = add_extension(u, c, group);
    }
    if (!status && out_group) *out_group = group;
    return status;
}

// The joint that holds the root link is called fixed_base or floating_base, unless the file has a joint of
// that name: that one keeps it.
static us_status name_base(usi_urdf *u) {
    const char *usual = u->is_floating ? "floating_base" : "fixed_base";
    int32_t taken = usi_urdf_find_joint(u, usual);
    if (taken < 0) return US_OK;
    const char *name = usi_reader_text(u->r, "world_%s", usual);
    while (name && usi_urdf_find_joint(u, name) >= 0)
        name = usi_reader_text(u->r, "%s_", name);
    if (!name) return usi_fail_memory(u->r);
    u->base_name = name;
    return usi_warn(u->r, u->joints[taken].node, "rename this joint to have it the usual way",
                    "the joint between the world and the root link, usually \"%s\", is called \"%.100s\", "
                    "because this joint has its name",
                    usual, name);
}

us_status usi_urdf_read(usi_reader *r, xmlDoc *doc, const char *name, us_pose X_WR, us_base base,
                        bool excludes_overlaps, int32_t *out_group) {
    usi_urdf u = {.r = r,
                  .robot = xmlDocGetRootElement(doc),
                  .group = name ? name : "",
                  .is_floating = base == US_BASE_FLOATING,
                  .excludes_overlaps = excludes_overlaps || r->def->exclude_overlaps};
    us_status status = check_root(r, u.robot);
    if (!status) status = check_xacro(r, u.robot);
    if (!status)
        status = usi_urdf_check(&u, u.robot, "*link *joint *material *gazebo *transmission *ros2_control",
                                "name version");
    if (!status) status = collect(&u);
    if (!status) status = usi_urdf_find_names(&u);
    for (int32_t i = 0; i < u.n_joint && !status; i++)
        status = usi_urdf_read_joint(&u, i);
    if (!status) status = usi_urdf_build_tree(&u);
    if (status) return status;
    // A root called "world" is the URDF convention for a fixed base.
    if (u.is_floating && strcmp(u.links[u.root].name, "world") == 0) {
        u.is_floating = false;
        status =
            usi_warn(r, u.links[u.root].node,
                     "remove the link \"world\" and its joint from the robot file to let it move",
                     "the root link is \"world\": the robot is fixed, although a floating base is asked for");
    }
    if (!status) status = name_base(&u);
    for (int32_t i = 0; i < u.n_link && !status; i++)
        status = usi_urdf_check(&u, u.links[i].node, "inertial *visual *collision", "name type");
    if (!status) status = usi_urdf_read_mimics(&u);
    if (!status) status = usi_urdf_read_materials(&u);
    if (!status) status = usi_urdf_read_shapes(&u);
    if (!status) status = usi_urdf_read_inertias(&u);
    return status ? status : add_all(&u, X_WR, out_group);
}
