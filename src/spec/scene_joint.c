// Joints of a scene: names, the values that every joint has, the start state, and where attributes are looked
// for.
#include <stdio.h>
#include <string.h>

#include "spec/scene.h"

// ---- What a coordinate is measured in ----

static bool is_turning(us_joint_type type, int coordinate) {
    switch (type) {
    case US_JOINT_PRISMATIC:
        return false;
    case US_JOINT_CYLINDRICAL:
        return coordinate == 0;
    case US_JOINT_PLANAR:
        return coordinate == 2;
    case US_JOINT_FLOATING:
        return coordinate < 3;  // of a velocity
    default:
        return true;
    }
}

usi_dimension usi_joint_dimension(us_joint_type type, int coordinate) {
    if (type == US_JOINT_SPHERICAL) return USI_PLAIN;
    if (type == US_JOINT_FLOATING) return coordinate < 4 ? USI_PLAIN : USI_LENGTH;
    return is_turning(type, coordinate) ? USI_ANGLE : USI_LENGTH;
}
usi_dimension usi_rate_dimension(us_joint_type type, int coordinate) {
    return is_turning(type, coordinate) ? USI_SPIN : USI_SPEED;
}
usi_dimension usi_effort_dimension(us_joint_type type, int coordinate) {
    return is_turning(type, coordinate) ? USI_TORQUE : USI_FORCE;
}

// ---- Defaults ----

us_status usi_scene_default(usi_reader *r, const xmlNode *user, const xmlNode **out_default) {
    *out_default = NULL;
    const char *name = usi_xml_attr(user, "default");
    if (!name) return US_OK;
    usi_guess guess = usi_guess_start(name);
    for (const xmlNode *d = usi_xml_child(xmlDocGetRootElement(user->doc), "default"); d;
         d = usi_xml_next(d, "default")) {
        const char *have = usi_xml_attr(d, "name");
        if (strcmp(have, name) == 0) {
            *out_default = d;
            return US_OK;
        }
        usi_guess_offer(&guess, have);
    }
    char remedy[200];
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.100s\"?" : "define it: <default name=\"%.100s\">...</default>",
             guess.best ? guess.best : name);
    return usi_fail(r, US_ERR_NAME, user, remedy, "there is no default \"%.60s\"", name);
}

us_status usi_scene_look(usi_reader *r, const usi_scene_group *group, const xmlNode *node, const char *kind,
                         usi_look *out_look) {
    const xmlNode *own = NULL;
    us_status status = usi_scene_default(r, node, &own);
    if (status) return status;
    *out_look = (usi_look){{node, usi_xml_child(own, kind), usi_xml_child(group->default_node, kind)}};
    return US_OK;
}

// ---- Names ----

const char *usi_scene_full_name(usi_reader *r, const usi_scene_group *group, const char *name) {
    return group->name[0] ? usi_reader_text(r, "%s/%s", group->name, name) : usi_reader_text(r, "%s", name);
}

// Looks a name up among the links or joints [first, first + n) of the spec.
static us_status find_name(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                           const char *attribute, bool is_joint, int32_t first, int32_t n,
                           int32_t *out_index) {
    const char *what = is_joint ? "joint" : "link", *wanted = usi_xml_attr(node, attribute);
    size_t prefix = group->name[0] ? strlen(group->name) + 1 : 0;
    usi_guess guess = usi_guess_start(wanted);
    for (int32_t i = first; i < first + n; i++) {
        const char *name =
            is_joint ? us_spec_view_joint(r->spec, i)->name : us_spec_view_link(r->spec, i)->name;
        if (strcmp(name + prefix, wanted) == 0) {
            *out_index = i;
            return US_OK;
        }
        usi_guess_offer(&guess, name + prefix);
    }
    char remedy[300];
    if (guess.best) {
        snprintf(remedy, sizeof remedy, "did you mean \"%.150s\"?", guess.best);
    } else if (prefix) {
        snprintf(remedy, sizeof remedy, "name a %s of \"%.100s\", without its name in front", what,
                 group->name);
    } else {
        snprintf(remedy, sizeof remedy, "write the full name: robot/%s", what);
    }
    if (prefix)
        return usi_fail(r, US_ERR_NAME, node, remedy, "\"%.60s\" has no %s \"%.100s\"", group->name, what,
                        wanted);
    return usi_fail(r, US_ERR_NAME, node, remedy, "there is no %s \"%.100s\"", what, wanted);
}

us_status usi_scene_find_joint(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                               const char *attribute, int32_t *out_joint) {
    bool is_inside = group->index >= 0;
    int32_t n = is_inside ? group->n_joint : us_spec_get_counts(r->spec).n_joint;
    return find_name(r, group, node, attribute, true, is_inside ? group->first_joint : 0, n, out_joint);
}

us_status usi_scene_find_link(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                              const char *attribute, int32_t *out_link) {
    const char *name = usi_xml_attr(node, attribute);
    if (strcmp(name, "world") == 0) {
        *out_link = US_WORLD;
        return US_OK;
    }
    bool is_inside = group->index >= 0;
    int32_t n = is_inside ? group->n_link : us_spec_get_counts(r->spec).n_link;
    return find_name(r, group, node, attribute, false, is_inside ? group->first_link : 0, n, out_link);
}

us_status usi_scene_added(usi_reader *r, const xmlNode *node, us_status status) {
    if (status == US_OK) return US_OK;
    if (status == US_ERR_MEMORY) return usi_fail_memory(r);
    return usi_fail(r, status, node, "check the values of this element", "%s", us_status_text(status));
}

// ---- Values ----

static us_status read_limits(usi_reader *r, const usi_look *look, us_joint_def *j) {
    const xmlNode *lower = usi_look_find(look, "lower"), *upper = usi_look_find(look, "upper"),
                  *node = lower ? lower : upper;
    if (!node) return US_OK;
    if (us_joint_type_n_v(j->type) != 1) {
        // A default may hold for joints of several kinds; what is written at the joint itself must fit it.
        if (node != look->node[0]) return US_OK;
        return usi_fail(r, US_ERR_VALUE, node, "remove lower and upper", "a %s joint has no limits",
                        us_joint_type_name(j->type));
    }
    if (!j->has_limits && !(lower && upper)) {
        return usi_fail(r, US_ERR_VALUE, node, "write both lower and upper",
                        "only one of the two limits is given");
    }
    us_status status = usi_look_number(r, look, "lower", usi_joint_dimension(j->type, 0), &j->lower);
    if (!status) status = usi_look_number(r, look, "upper", usi_joint_dimension(j->type, 0), &j->upper);
    if (status) return status;
    if (j->lower > j->upper) {
        return usi_fail(r, US_ERR_VALUE, node, "write the smaller number as lower",
                        "the lower limit %g is above the upper limit %g", j->lower, j->upper);
    }
    j->has_limits = true;
    return US_OK;
}

// A list of exactly n numbers, one for each coordinate.
static us_status read_coordinates(usi_reader *r, const usi_look *look, const us_joint_def *j,
                                  const char *name, double *out) {
    bool is_q = name[0] == 'q';
    int n = is_q ? us_joint_type_n_q(j->type) : us_joint_type_n_v(j->type), count = 0;
    const xmlNode *node = usi_look_find(look, name);
    if (!node) return US_OK;
    usi_dimension dimensions[USI_LIST_LIMIT] = {USI_PLAIN};
    for (int i = 0; i < n; i++)
        dimensions[i] = is_q ? usi_joint_dimension(j->type, i) : usi_rate_dimension(j->type, i);
    double values[USI_LIST_LIMIT];
    us_status status = usi_look_list(r, look, name, dimensions, USI_LIST_LIMIT, values, &count);
    if (status) return status;
    if (count != n) {
        const char *remedy = n == 0   ? "leave it out: a fixed joint does not move"
                             : n == 1 ? "write one number"
                             : !is_q  ? "write one number for each velocity of the joint"
                             : n == 4 ? "write the quaternion w x y z"
                             : n == 7 ? "write the quaternion and the position: w x y z x y z"
                                      : "write one number for each coordinate of the joint";
        return usi_fail(r, US_ERR_VALUE, node, remedy, "%s: a %s joint has %d %s, but %d number%s given",
                        name, us_joint_type_name(j->type), n, is_q ? "positions" : "velocities", count,
                        count == 1 ? " is" : "s are");
    }
    if (is_q && n >= 4) {
        us_quat quat = {values[0], values[1], values[2], values[3]};
        status = usi_scene_unit_quat(r, node, name, &quat);
        if (status) return status;
        values[0] = quat.w;
        values[1] = quat.x;
        values[2] = quat.y;
        values[3] = quat.z;
    }
    memcpy(out, values, (size_t)n * sizeof *out);
    return US_OK;
}

us_status usi_scene_joint_values(usi_reader *r, const usi_look *look, us_joint_def *j) {
    us_status status = usi_look_positive(r, look, "damping", USI_PLAIN, false, &j->damping);
    bool is_sprung =
        j->type != US_JOINT_SPHERICAL && j->type != US_JOINT_FLOATING && j->type != US_JOINT_FIXED;
    if (!status && !is_sprung && usi_xml_attr(look->node[0], "stiffness")) {
        return usi_fail(r, US_ERR_VALUE, look->node[0], "remove stiffness", "a %s joint has no spring",
                        us_joint_type_name(j->type));
    }
    if (!status && is_sprung)
        status = usi_look_positive(r, look, "stiffness", USI_PLAIN, false, &j->stiffness);
    if (!status && is_sprung)
        status = usi_look_number(r, look, "rest", usi_joint_dimension(j->type, 0), &j->rest);
    if (!status) status = usi_look_positive(r, look, "armature", USI_PLAIN, false, &j->armature);
    if (!status) status = usi_look_positive(r, look, "friction", USI_PLAIN, false, &j->friction);
    if (!status)
        status = usi_look_positive(r, look, "effort", usi_effort_dimension(j->type, 0), false, &j->effort);
    if (!status)
        status = usi_look_positive(r, look, "velocity", usi_rate_dimension(j->type, 0), false, &j->velocity);
    if (!status) status = read_limits(r, look, j);
    if (!status) status = read_coordinates(r, look, j, "q", j->q0);
    if (!status) status = read_coordinates(r, look, j, "v", j->v0);
    if (!status && usi_look_find(look, "q") && j->has_limits &&
        (j->q0[0] < j->lower || j->q0[0] > j->upper)) {
        status =
            usi_warn(r, usi_look_find(look, "q"), "start inside the limits, or change them",
                     "the start position %g is outside the limits %g to %g", j->q0[0], j->lower, j->upper);
    }
    return status;
}
