// Objects: mechanisms written in the scene itself.
//
// A link that no joint of the object holds is its root. Objects that hang on the world, or on another robot,
// by their own joints have none; any other object has exactly one, and gets a joint "fixed_base" or
// "floating_base" for it.
#include <math.h>
#include <string.h>

#include "spec/geometry.h"
#include "spec/mesh_file.h"
#include "spec/scene.h"

// ---- Mass properties ----

// A rigid body can have this inertia when J = trace(I)/2 - I, the integral of r r^T dm, has no negative
// eigenvalue (the triangle inequality holds on every axis). Small violations are rounding of what was
// written.
static bool is_possible_inertia(const double I[6]) {
    double half = 0.5 * (I[0] + I[1] + I[2]), tolerance = 1e-6 * half;
    if (half < 0) return false;
    double a = half - I[0] + tolerance, b = half - I[1] + tolerance, c = half - I[2] + tolerance, d = -I[3],
           e = -I[4], f = -I[5];
    double minor_ab = a * b - d * d, minor_ac = a * c - e * e, minor_bc = b * c - f * f,
           det = a * minor_bc - d * (d * c - e * f) + e * (d * f - b * e);
    return a >= 0 && b >= 0 && c >= 0 && minor_ab >= 0 && minor_ac >= 0 && minor_bc >= 0 && det >= 0;
}

static us_status read_inertial(usi_reader *r, const xmlNode *node, us_inertia *out) {
    static const usi_dimension plain[6] = {USI_PLAIN};
    usi_look look = usi_look_at(node);
    double mass = 0, com[3] = {0, 0, 0}, about[6] = {0};
    int count = 0;
    us_quat q_BI = us_quat_identity();
    us_status status = usi_look_number(r, &look, "mass", USI_MASS, &mass);
    if (status) return status;
    if (mass < 0)
        return usi_fail(r, US_ERR_MASS, node, "write a mass of 0 or more", "mass: %g is negative", mass);
    status = usi_look_numbers(r, &look, "com", USI_LENGTH, 3, com);
    if (!status) status = usi_look_list(r, &look, "inertia", plain, 6, about, &count);
    if (!status) status = usi_scene_rotation(r, node, &q_BI);
    if (status) return status;
    if (count != 0 && count != 3 && count != 6) {
        return usi_fail(r, US_ERR_VALUE, node, "write ixx iyy izz, or ixx iyy izz ixy ixz iyz",
                        "inertia: 3 or 6 numbers are needed, %d given", count);
    }
    if (!is_possible_inertia(about)) {
        return usi_fail(r, US_ERR_MASS, node,
                        "about the centre of mass no moment may be negative, and each must be at most the "
                        "sum of the other two; check units, order and signs",
                        "inertia: no body can have these moments");
    }
    if (mass == 0 && (about[0] > 0 || about[1] > 0 || about[2] > 0)) {
        status = usi_warn(r, node, "give it a mass, or use armature", "the link has an inertia but no mass");
    }
    out->mass = mass;
    out->com = us_vec3_make(com[0], com[1], com[2]);
    usi_inertia_rotate(&q_BI, about, out->about_com);
    return status;
}

// From the collision shapes, or from the visual ones when there are no others.
static us_status inertia_from_shapes(usi_reader *r, const xmlNode *node, const us_shape_def *shapes, int n,
                                     us_inertia *out) {
    double density = 0;
    usi_look look = usi_look_at(node);
    us_status status = usi_look_positive(r, &look, "density", USI_PLAIN, true, &density);
    if (status) return status;
    bool has_collision = false;
    for (int i = 0; i < n; i++)
        has_collision |= shapes[i].is_collision;
    us_inertia sum = {0};
    for (int i = 0; i < n; i++) {
        if (has_collision && !shapes[i].is_collision) continue;
        if (!(shapes[i].unit_inertia.mass > 0)) {
            if (r->def->skip_meshes && !usi_geometry_has_data(&shapes[i])) continue;
            if (!shapes[i].mesh_uri)
                return usi_fail(r, US_ERR_MASS, node, "write an <inertial>, or use shapes with a volume",
                                "density: the %s has no volume", us_shape_kind_name(shapes[i].kind));
            return usi_fail(r, US_ERR_MASS, node,
                            "write an <inertial>, or use a closed mesh that can be found",
                            "density: the mesh \"%.100s\" has no volume that is known", shapes[i].mesh_uri);
        }
        us_inertia part = usi_shape_inertia(&shapes[i], density);
        sum = usi_inertia_add(&sum, &part);
    }
    if (n == 0)
        return usi_fail(r, US_ERR_MASS, node, "give the link a shape, or an <inertial> instead of density",
                        "density: the link has no shape");
    *out = sum;
    return US_OK;
}

// ---- Links ----

static us_status read_link(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    const char *name = usi_xml_attr(node, "name");
    if (strcmp(name, "world") == 0)
        return usi_fail(r, US_ERR_NAME, node, "choose another name",
                        "\"world\" is the name of the world itself");
    int n_shape = 0, k = 0;
    for (const xmlNode *s = usi_xml_child(node, "shape"); s; s = usi_xml_next(s, "shape"))
        n_shape++;
    us_shape_def *shapes = usi_reader_alloc(r, ((size_t)n_shape + 1) * sizeof *shapes);
    if (!shapes) return usi_fail_memory(r);
    us_status status = US_OK;
    for (const xmlNode *s = usi_xml_child(node, "shape"); s && !status; s = usi_xml_next(s, "shape"))
        status = usi_scene_shape(r, s, &shapes[k++]);
    if (status) return status;

    us_link_def l = us_link_def_default();
    l.name = usi_scene_full_name(r, group, name);
    if (!l.name) return usi_fail_memory(r);
    l.group = group->index;
    l.file = usi_xml_file(node);
    l.line = usi_xml_line(node);
    const xmlNode *inertial = usi_xml_child(node, "inertial");
    if (usi_xml_next(inertial, "inertial")) {
        return usi_fail(r, US_ERR_SCHEMA, usi_xml_next(inertial, "inertial"), "keep one of them",
                        "the link has two <inertial>");
    }
    status = usi_xml_int(r, node, "level", false, &l.level);
    if (status) return status;
    bool has_density = usi_xml_attr(node, "density") != NULL;
    if (inertial && has_density)
        return usi_fail(r, US_ERR_SCHEMA, node, "keep one of the two",
                        "both density and <inertial> give the mass");
    if (inertial) status = read_inertial(r, inertial, &l.inertia);
    if (has_density) status = inertia_from_shapes(r, node, shapes, n_shape, &l.inertia);
    int32_t index = -1;
    if (!status) status = usi_scene_added(r, node, us_spec_add_link(r->spec, &l, &index));
    for (int i = 0; i < n_shape && !status; i++) {
        shapes[i].link = index;
        status = usi_scene_added(r, node, us_spec_add_shape(r->spec, &shapes[i], NULL));
    }
    return status;
}

us_status usi_scene_object_links(usi_reader *r, usi_scene_group *group) {
    us_status status = US_OK;
    group->first_link = us_spec_get_counts(r->spec).n_link;
    for (const xmlNode *n = usi_xml_child(group->node, "link"); n && !status; n = usi_xml_next(n, "link"))
        status = read_link(r, group, n);
    group->n_link = us_spec_get_counts(r->spec).n_link - group->first_link;
    if (!status && group->n_link == 0)
        status =
            usi_fail(r, US_ERR_TREE, group->node, "give it at least one <link>", "the object has no link");
    return status;
}

// ---- Joints ----

static us_pose translation(double x, double y, double z) {
    us_pose X = {us_quat_identity(), {x, y, z}};
    return X;
}

// Denavit-Hartenberg parameters: the pose before the joint's motion, and the one after it (identity for
// Craig).
static us_status read_dh(usi_reader *r, const xmlNode *node, const us_joint_def *j, us_pose *out_before,
                         us_pose *out_after) {
    const xmlNode *joint = node->parent;
    if (us_joint_type_n_v(j->type) == 0 || j->type == US_JOINT_UNIVERSAL || j->type == US_JOINT_SPHERICAL ||
        j->type == US_JOINT_PLANAR || j->type == US_JOINT_FLOATING) {
        return usi_fail(r, US_ERR_VALUE, node, "use xyz and rpy",
                        "a %s joint has no Denavit-Hartenberg parameters", us_joint_type_name(j->type));
    }
    static const char *const excluded[] = {"xyz", "rpy", "quat", "axis"};
    for (int i = 0; i < 4; i++) {
        if (usi_xml_attr(joint, excluded[i])) {
            return usi_fail(r, US_ERR_VALUE, joint, "remove it, or the <dh>",
                            "%s: the joint has <dh>, which gives its frame and axis", excluded[i]);
        }
    }
    usi_look look = usi_look_at(node);
    double a = 0, alpha = 0, d = 0, theta = 0;
    us_status status = usi_look_number(r, &look, "a", USI_LENGTH, &a);
    if (!status) status = usi_look_number(r, &look, "alpha", USI_ANGLE, &alpha);
    if (!status) status = usi_look_number(r, &look, "d", USI_LENGTH, &d);
    if (!status) status = usi_look_number(r, &look, "theta", USI_ANGLE, &theta);
    if (status) return status;
    us_pose about_x = {us_quat_from_rpy(alpha, 0, 0), {0, 0, 0}},
            about_z = {us_quat_from_rpy(0, 0, theta), {0, 0, 0}};
    if (strcmp(usi_xml_attr(node, "convention"), "craig") == 0) {
        *out_before = us_pose_mul(us_pose_mul(about_x, translation(a, 0, 0)),
                                  us_pose_mul(about_z, translation(0, 0, d)));
        *out_after = us_pose_identity();
    } else {
        *out_before = about_z;
        *out_after = us_pose_mul(translation(a, 0, d), about_x);
    }
    return US_OK;
}

// Paul's convention puts the child's frame off the joint's axis: a link in between carries the axis, a fixed
// joint the rest.
static us_status add_offset(usi_reader *r, const usi_scene_group *group, const xmlNode *node, us_joint_def *j,
                            us_pose X_after) {
    us_link_def between = us_link_def_default();
    us_joint_def fixed = us_joint_def_default(US_JOINT_FIXED);
    const char *child = us_spec_view_link(r->spec, j->child)->name;
    between.name = usi_reader_text(r, "%s.dh", child);
    fixed.name = usi_reader_text(r, "%s.dh", j->name);
    if (!between.name || !fixed.name) return usi_fail_memory(r);
    between.group = fixed.group = group->index;
    between.file = fixed.file = j->file;
    between.line = fixed.line = j->line;
    fixed.child = j->child;
    fixed.X_PF = X_after;
    us_status status = usi_scene_added(r, node, us_spec_add_link(r->spec, &between, &fixed.parent));
    j->child = fixed.parent;
    return status ? status : usi_scene_added(r, node, us_spec_add_joint(r->spec, &fixed, NULL));
}

// The parent: a link of this object, the world, or a link of another robot or object by its full name.
static us_status find_parent(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                             int32_t *out_parent) {
    usi_scene_group outside = {.name = "", .index = -1};
    bool is_full = strchr(usi_xml_attr(node, "parent"), '/') != NULL;
    return usi_scene_find_link(r, is_full ? &outside : group, node, "parent", out_parent);
}

static us_status read_joint(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    us_joint_type type = US_JOINT_FIXED;
    while (type + 1 < US_JOINT_COUNT && strcmp(us_joint_type_name(type), usi_xml_attr(node, "type")) != 0)
        type++;
    us_joint_def j = us_joint_def_default(type);
    j.name = usi_scene_full_name(r, group, usi_xml_attr(node, "name"));
    if (!j.name) return usi_fail_memory(r);
    j.group = group->index;
    j.file = usi_xml_file(node);
    j.line = usi_xml_line(node);
    us_status status = find_parent(r, group, node, &j.parent);
    if (!status) status = usi_scene_find_link(r, group, node, "child", &j.child);
    if (status) return status;
    if (j.child == US_WORLD)
        return usi_fail(r, US_ERR_TREE, node, "make it the parent", "the world cannot be a child");
    usi_look look, own = usi_look_at(node);
    double axis[3] = {j.axis.x, j.axis.y, j.axis.z}, axis2[3] = {j.axis2.x, j.axis2.y, j.axis2.z};
    status = usi_scene_look(r, group, node, "joint", &look);
    if (!status) status = usi_scene_pose(r, node, &j.X_PF);
    if (!status) status = usi_look_numbers(r, &own, "axis", USI_PLAIN, 3, axis);
    if (!status) status = usi_look_numbers(r, &own, "axis2", USI_PLAIN, 3, axis2);
    if (!status) status = usi_look_number(r, &own, "pitch", USI_PLAIN, &j.pitch);
    if (!status) status = usi_scene_joint_values(r, &look, &j);
    if (status) return status;
    j.axis = us_vec3_make(axis[0], axis[1], axis[2]);
    j.axis2 = us_vec3_make(axis2[0], axis2[1], axis2[2]);
    if (usi_xml_attr(node, "axis") && !(us_vec3_norm(j.axis) > 1e-9)) {
        return usi_fail(r, US_ERR_VALUE, node, "write a direction such as 0 0 1",
                        "axis: it has no direction");
    }
    if (usi_xml_attr(node, "axis2") && type != US_JOINT_UNIVERSAL) {
        return usi_fail(r, US_ERR_VALUE, node, "remove axis2", "axis2: a %s joint has no second axis",
                        us_joint_type_name(type));
    }
    if (usi_xml_attr(node, "pitch") && type != US_JOINT_HELICAL) {
        return usi_fail(r, US_ERR_VALUE, node, "remove pitch", "pitch: a %s joint has none",
                        us_joint_type_name(type));
    }
    const xmlNode *dh = usi_xml_child(node, "dh");
    us_pose X_after = us_pose_identity();
    if (dh) {
        status = read_dh(r, dh, &j, &j.X_PF, &X_after);
        j.axis = us_vec3_make(0, 0, 1);
    }
    if (j.parent == US_WORLD) j.X_PF = us_pose_mul(group->X_WG, j.X_PF);
    if (!status && dh && strcmp(usi_xml_attr(dh, "convention"), "paul") == 0)
        status = add_offset(r, group, node, &j, X_after);
    return status ? status : usi_scene_added(r, node, us_spec_add_joint(r->spec, &j, NULL));
}

// Finds the link that no joint holds and gives it its base joint.
static us_status add_base(usi_reader *r, const usi_scene_group *group) {
    const char *base = usi_xml_attr(group->node, "base");
    bool *is_child = usi_reader_alloc(r, (size_t)group->n_link * sizeof *is_child);
    if (!is_child) return usi_fail_memory(r);
    memset(is_child, 0, (size_t)group->n_link * sizeof *is_child);
    bool is_held = false;
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = group->first_joint; i < counts.n_joint; i++) {
        const us_joint_def *j = us_spec_view_joint(r->spec, i);
        int32_t child = j->child - group->first_link;
        if (child >= 0 && child < group->n_link) is_child[child] = true;
        // A link added for <dh> lies behind the object's own; it hangs on what its joint says.
        bool is_own = j->parent != US_WORLD && us_spec_view_link(r->spec, j->parent)->group == group->index;
        is_held |= !is_own;
    }
    int32_t root = -1;
    for (int32_t i = 0; i < group->n_link; i++) {
        if (is_child[i]) continue;
        const us_link_def *l = us_spec_view_link(r->spec, group->first_link + i);
        if (us_spec_find_link(r->spec, l->name) < group->first_link + i) {
            return usi_fail(r, US_ERR_NAME, group->node, "give each link its own name",
                            "the link name \"%.100s\" is used twice, again in line %d", l->name,
                            (int)l->line);
        }
        if (is_held || root >= 0) {
            return usi_fail(r, US_ERR_TREE, group->node, "give it a <joint>, to another link or to \"world\"",
                            "no joint holds the link \"%.100s\" (line %d)", l->name, (int)l->line);
        }
        root = group->first_link + i;
    }
    if (root < 0 && is_held) {
        return base ? usi_fail(r, US_ERR_TREE, group->node, "remove base",
                               "base: the object hangs on its own joints and has no base")
                    : US_OK;
    }
    if (root < 0) {
        return usi_fail(r, US_ERR_TREE, group->node,
                        "remove the joint that closes the circle, and close it with <loop>",
                        "the joints of the object go in a circle");
    }
    return usi_base_add(r, group->node, group->index, group->name, root, group->X_WG,
                        base && strcmp(base, "fixed") == 0 ? US_BASE_FIXED : US_BASE_FLOATING, NULL);
}

us_status usi_scene_object_joints(usi_reader *r, usi_scene_group *group) {
    us_status status = US_OK;
    group->first_joint = us_spec_get_counts(r->spec).n_joint;
    for (const xmlNode *n = usi_xml_child(group->node, "joint"); n && !status; n = usi_xml_next(n, "joint"))
        status = read_joint(r, group, n);
    if (!status) status = add_base(r, group);
    group->n_joint = us_spec_get_counts(r->spec).n_joint - group->first_joint;
    return status;
}
