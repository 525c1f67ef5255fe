// <joint>: type, placement, axis, limits, dynamics, and <mimic>.
#include <stdio.h>
#include <string.h>

#include "spec/urdf.h"

static us_status read_type(usi_urdf *u, const xmlNode *node, us_joint_type *out) {
    static const us_joint_type known[] = {US_JOINT_REVOLUTE, US_JOINT_CONTINUOUS, US_JOINT_PRISMATIC,
                                          US_JOINT_FIXED,    US_JOINT_FLOATING,   US_JOINT_PLANAR};
    const char *text = usi_xml_attr(node, "type");
    static const char remedy[] = "write one of revolute, continuous, prismatic, fixed, floating, planar";
    if (!text) return usi_fail(u->r, US_ERR_SCHEMA, node, remedy, "the joint has no type");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(text, us_joint_type_name(known[i])) == 0) {
            *out = known[i];
            return US_OK;
        }
    }
    return usi_fail(u->r, US_ERR_VALUE, node, remedy, "invalid joint type \"%.60s\"", text);
}

// The link named by <parent link="..."/> or <child link="..."/>.
static us_status read_end(usi_urdf *u, const xmlNode *joint, const char *tag, int32_t *out_link) {
    const xmlNode *node = usi_xml_child(joint, tag);
    char remedy[200];
    if (!node) {
        snprintf(remedy, sizeof remedy, "add <%s link=\"...\"/>", tag);
        return usi_fail(u->r, US_ERR_SCHEMA, joint, remedy, "the joint has no <%s>", tag);
    }
    us_status status = usi_urdf_check(u, node, "", "link");
    if (status) return status;
    const char *name = usi_xml_attr(node, "link");
    if (!name)
        return usi_fail(u->r, US_ERR_SCHEMA, node, "write link=\"...\"",
                        "the <%s> of joint \"%s\" names no link", tag, usi_xml_attr(joint, "name"));
    *out_link = usi_urdf_find_link(u, name);
    if (*out_link >= 0) return US_OK;
    usi_guess guess = usi_guess_start(name);
    for (int32_t i = 0; i < u->n_link; i++)
        usi_guess_offer(&guess, u->links[i].name);
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.100s\"? Otherwise add <link name=\"...\"/>"
                        : "add <link name=\"...\"/>, or correct the name",
             guess.best);
    return usi_fail(u->r, US_ERR_NAME, node, remedy,
                    "the %s of joint \"%.100s\" is the link \"%.100s\", which does not exist", tag,
                    usi_xml_attr(joint, "name"), name);
}

static us_status read_axis(usi_urdf *u, const xmlNode *joint, us_joint_def *def) {
    const xmlNode *node = usi_xml_child(joint, "axis");
    if (!node) return US_OK;
    double axis[3] = {1, 0, 0}, rpy[3] = {0};
    us_status status = usi_urdf_check(u, node, "", "xyz rpy");
    if (!status) status = usi_xml_doubles(u->r, node, "xyz", false, 3, axis);
    // Some exporters write rpy here; it means nothing in URDF, and harmless as zeros.
    if (!status) status = usi_xml_doubles(u->r, node, "rpy", false, 3, rpy);
    if (!status && (rpy[0] != 0 || rpy[1] != 0 || rpy[2] != 0))
        status = usi_warn(u->r, node, "turn the joint's <origin> instead",
                          "rpy has no meaning in <axis> and is ignored");
    if (status || def->type == US_JOINT_FIXED || def->type == US_JOINT_FLOATING) return status;
    double norm = us_vec3_norm(us_vec3_make(axis[0], axis[1], axis[2]));
    if (!(norm > 1e-9))
        return usi_fail(u->r, US_ERR_VALUE, node, "write a direction, for example xyz=\"0 0 1\"",
                        "the axis of joint \"%s\" has no length", usi_xml_attr(joint, "name"));
    def->axis = us_vec3_make(axis[0] / norm, axis[1] / norm, axis[2] / norm);
    // Digits are often cut after the third or fourth: that is no reason to speak.
    if (fabs(norm - 1) <= 1e-2) return US_OK;
    return usi_warn(u->r, node, "write a vector of length 1",
                    "the axis of joint \"%s\" has the length %.6g; only its direction counts",
                    usi_xml_attr(joint, "name"), norm);
}

// A bound: numbers beyond 1e15 and infinities are how files say "none", and become +-1e15.
static us_status read_bound(usi_urdf *u, const xmlNode *node, const char *name, double *out) {
    const char *text = usi_xml_attr(node, name), *end = NULL;
    double value = 0;
    if (!text) return US_OK;
    while (usi_is_blank(*text))
        text++;
    const char *digits = text + (*text == '-' || *text == '+');
    const char *wrong = usi_number_scan(text, &end, &value);
    bool is_huge = (wrong && strncmp(wrong, "is too large", 12) == 0 && (*end == 0 || usi_is_blank(*end))) ||
                   strncmp(digits, "inf", 3) == 0;
    if (!is_huge) return usi_xml_double(u->r, node, name, true, out);
    *out = *text == '-' ? -1e15 : 1e15;
    return US_OK;
}

static us_status read_limit(usi_urdf *u, const xmlNode *joint, us_joint_def *def) {
    const xmlNode *node = usi_xml_child(joint, "limit");
    const char *name = usi_xml_attr(joint, "name");
    bool is_bounded = def->type == US_JOINT_REVOLUTE || def->type == US_JOINT_PRISMATIC;
    if (!node && is_bounded) {
        return usi_warn(u->r, joint,
                        "add <limit lower=\"...\" upper=\"...\" effort=\"...\" velocity=\"...\"/>, or make "
                        "the joint continuous",
                        "the %s joint \"%s\" has no <limit>: it moves without limits",
                        us_joint_type_name(def->type), name);
    }
    if (!node) return US_OK;
    double lower = 0, upper = 0, effort = 0, velocity = 0;
    us_status status =
        usi_urdf_check(u, node, "", "lower upper effort velocity acceleration jerk deceleration");
    if (!status) status = read_bound(u, node, "lower", &lower);
    if (!status) status = read_bound(u, node, "upper", &upper);
    if (!status) status = read_bound(u, node, "effort", &effort);
    if (!status) status = read_bound(u, node, "velocity", &velocity);
    if (status) return status;
    // A negative one stands for none in formats that URDF files are made from.
    if (effort < 0 || velocity < 0)
        status = usi_warn(u->r, node, "write the magnitude; leave the attribute out where there is no limit",
                          "the %s limit of joint \"%s\" is negative: there is none",
                          effort < 0 ? "effort" : "velocity", name);
    def->effort = effort > 0 && effort < 1e15 ? effort : 0;
    def->velocity = velocity > 0 && velocity < 1e15 ? velocity : 0;
    if (status || !is_bounded) return status;
    if (lower > upper) {
        return usi_fail(u->r, US_ERR_VALUE, node, "exchange the two",
                        "the lower limit of joint \"%s\", %.6g, is above the upper one, %.6g", name, lower,
                        upper);
    }
    if (lower <= -1e15 && upper >= 1e15) return US_OK;
    def->has_limits = true;
    def->lower = lower;
    def->upper = upper;
    if (lower == upper) {
        bool is_silent = !usi_xml_attr(node, "lower") && !usi_xml_attr(node, "upper");
        return usi_warn(u->r, node, "write lower and upper, or make the joint continuous or fixed",
                        "the joint \"%s\" cannot move: %s", name,
                        is_silent ? "its <limit> has neither lower nor upper, and URDF takes both as 0"
                                  : "its lower and upper limits are equal");
    }
    return US_OK;
}

static us_status read_dynamics(usi_urdf *u, const xmlNode *joint, us_joint_def *def) {
    const xmlNode *node = usi_xml_child(joint, "dynamics");
    if (!node) return US_OK;
    us_status status = usi_urdf_check(u, node, "", "damping friction");
    if (!status) status = usi_xml_double(u->r, node, "damping", false, &def->damping);
    if (!status) status = usi_xml_double(u->r, node, "friction", false, &def->friction);
    if (status || (def->damping >= 0 && def->friction >= 0)) return status;
    return usi_fail(u->r, US_ERR_VALUE, node, "write 0 or more: a negative value would drive the joint",
                    "the %s of joint \"%s\" is negative", def->damping < 0 ? "damping" : "friction",
                    usi_xml_attr(joint, "name"));
}

us_status usi_urdf_read_joint(usi_urdf *u, int32_t i) {
    usi_urdf_joint *joint = &u->joints[i];
    const xmlNode *node = joint->node;
    us_joint_type type = US_JOINT_FIXED;
    us_status status = usi_urdf_check(
        u, node, "parent child origin axis limit dynamics mimic safety_controller calibration", "name type");
    if (!status) status = read_type(u, node, &type);
    if (status) return status;
    us_joint_def *def = &joint->def;
    *def = us_joint_def_default(type);
    def->file = usi_xml_file(node);
    def->line = usi_xml_line(node);
    joint->mimic = -1;
    joint->mimic_node = usi_xml_child(node, "mimic");
    status = read_end(u, node, "parent", &def->parent);
    if (!status) status = read_end(u, node, "child", &def->child);
    if (!status && def->parent == def->child) {
        status = usi_fail(u->r, US_ERR_TREE, node, "name two different links",
                          "the joint joins the link \"%s\" to itself", u->links[def->parent].name);
    }
    if (!status) status = usi_urdf_origin(u, node, &def->X_PF, NULL);
    if (!status) status = read_axis(u, node, def);
    if (!status && type != US_JOINT_FIXED) status = read_limit(u, node, def);
    if (!status && type != US_JOINT_FIXED) status = read_dynamics(u, node, def);
    return status;
}

// ---- Mimic ----

static bool can_mimic(us_joint_type type) {
    return type == US_JOINT_REVOLUTE || type == US_JOINT_CONTINUOUS || type == US_JOINT_PRISMATIC;
}

static us_status read_mimic(usi_urdf *u, usi_urdf_joint *joint) {
    const xmlNode *node = joint->mimic_node;
    joint->multiplier = 1;
    us_status status = usi_urdf_check(u, node, "", "joint multiplier offset");
    if (!status) status = usi_xml_double(u->r, node, "multiplier", false, &joint->multiplier);
    if (!status) status = usi_xml_double(u->r, node, "offset", false, &joint->offset);
    if (status) return status;
    const char *name = usi_xml_attr(node, "joint");
    if (!name)
        return usi_fail(u->r, US_ERR_SCHEMA, node, "write joint=\"...\"",
                        "the <mimic> of joint \"%s\" names no joint", joint->name);
    int32_t other = usi_urdf_find_joint(u, name);
    if (other < 0) {
        usi_guess guess = usi_guess_start(name);
        char remedy[200];
        for (int32_t i = 0; i < u->n_joint; i++)
            usi_guess_offer(&guess, u->joints[i].name);
        snprintf(remedy, sizeof remedy,
                 guess.best ? "did you mean \"%.100s\"?" : "name a joint of this robot", guess.best);
        return usi_fail(u->r, US_ERR_NAME, node, remedy,
                        "the joint \"%s\" mimics \"%.100s\", which does not exist", joint->name, name);
    }
    if (&u->joints[other] == joint)
        return usi_fail(u->r, US_ERR_VALUE, node, "name the joint that leads",
                        "the joint \"%s\" mimics itself", joint->name);
    if (joint->def.type == US_JOINT_FIXED) {
        return usi_warn(u->r, node, "remove the <mimic>, or give the joint the type it is to have",
                        "the joint \"%s\" is fixed and mimics \"%s\": it stays fixed", joint->name, name);
    }
    if (can_mimic(joint->def.type) && u->joints[other].def.type == US_JOINT_FIXED) {
        joint->is_held = true;
        return usi_warn(u->r, node, "remove the <mimic> to let the joint move, or name a joint that moves",
                        "the joint \"%s\" mimics \"%s\", which is fixed: it is held at its offset, %.6g",
                        joint->name, name, joint->offset);
    }
    const usi_urdf_joint *wrong = !can_mimic(joint->def.type)             ? joint
                                  : !can_mimic(u->joints[other].def.type) ? &u->joints[other]
                                                                          : NULL;
    if (wrong) {
        return usi_fail(u->r, US_ERR_VALUE, node,
                        "only revolute, continuous and prismatic joints mimic and are mimicked",
                        "the joint \"%s\" mimics \"%s\", but \"%s\" is %s", joint->name, name, wrong->name,
                        us_joint_type_name(wrong->def.type));
    }
    joint->mimic = other;
    return US_OK;
}

// Where a joint starts: 0, or the nearest it may be; a mimic joint where its leader puts it.
static us_status start_joints(usi_urdf *u) {
    for (int32_t i = 0; i < u->n_joint; i++) {
        usi_urdf_joint *joint = &u->joints[i];
        us_joint_def *def = &joint->def;
        if (joint->is_held) def->q0[0] = joint->offset;
        if (joint->mimic >= 0 || joint->is_held || !def->has_limits || (def->lower <= 0 && def->upper >= 0))
            continue;
        def->q0[0] = def->lower > 0 ? def->lower : def->upper;
        us_status status = usi_warn(
            u->r, usi_xml_child(joint->node, "limit"), "give it another start position in a scene file",
            "the joint \"%s\" may not be at 0: it starts at its limit, %.6g", joint->name, def->q0[0]);
        if (status) return status;
    }
    for (int32_t i = 0; i < u->n_joint; i++) {
        double factor = 1, q = 0;
        int32_t at = i;
        for (; u->joints[at].mimic >= 0; at = u->joints[at].mimic) {
            q += factor * u->joints[at].offset;
            factor *= u->joints[at].multiplier;
        }
        if (at == i) continue;
        q += factor * u->joints[at].def.q0[0];
        if (q >= -1e15 && q <= 1e15) u->joints[i].def.q0[0] = q;
    }
    return US_OK;
}

us_status usi_urdf_read_mimics(usi_urdf *u) {
    for (int32_t i = 0; i < u->n_joint; i++) {
        us_status status = u->joints[i].mimic_node ? read_mimic(u, &u->joints[i]) : US_OK;
        if (status) return status;
    }
    // Following leaders for as many steps as there are joints ends at a free one, or goes round. To stay
    // linear, a chain that was found good is not walked again: mark[j] says in which walk j was met.
    int32_t *mark = usi_reader_alloc(u->r, (size_t)u->n_joint * sizeof *mark);
    if (!mark && u->n_joint > 0) return usi_fail_memory(u->r);
    for (int32_t i = 0; i < u->n_joint; i++)
        mark[i] = -1;
    for (int32_t i = 0; i < u->n_joint; i++) {
        for (int32_t at = i; at >= 0 && mark[at] < 0; at = u->joints[at].mimic) {
            mark[at] = i;
            int32_t next = u->joints[at].mimic;
            if (next >= 0 && mark[next] == i) {
                return usi_fail(u->r, US_ERR_VALUE, u->joints[at].mimic_node,
                                "let one of them lead: remove its <mimic>",
                                "joints mimic each other in a circle: \"%s\" follows \"%s\", which follows "
                                "\"%s\" in the end",
                                u->joints[at].name, u->joints[next].name, u->joints[at].name);
            }
        }
    }
    return start_joints(u);
}
