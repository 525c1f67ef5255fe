// What holds between joints and links of a scene: drives, couplings, loops; and what is recorded.
//
// They are read after all robots and objects, so that any of them may name anything.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/scene.h"

// One coordinate of a joint that can be driven or coupled.
static us_status read_coordinate(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                                 int32_t *out_joint, int32_t *out_coordinate) {
    us_status status = usi_scene_find_joint(r, group, node, "joint", out_joint);
    if (!status) status = usi_xml_int(r, node, "coordinate", false, out_coordinate);
    if (status) return status;
    us_joint_type type = us_spec_view_joint(r->spec, *out_joint)->type;
    int32_t n = us_joint_type_n_v(type);
    if (type == US_JOINT_FIXED || type == US_JOINT_SPHERICAL || type == US_JOINT_FLOATING) {
        return usi_fail(r, US_ERR_VALUE, node, "name a joint that is not fixed, spherical or floating",
                        "\"%.100s\" is a %s joint, which has no single coordinates",
                        us_spec_view_joint(r->spec, *out_joint)->name, us_joint_type_name(type));
    }
    if (*out_coordinate < 0 || *out_coordinate >= n) {
        return usi_fail(r, US_ERR_VALUE, node, n == 1 ? "leave coordinate out" : "count coordinates from 0",
                        "a %s joint has no coordinate %d", us_joint_type_name(type), (int)*out_coordinate);
    }
    return US_OK;
}

static us_status read_drive(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    us_drive_def d = us_drive_def_default();
    us_status status = read_coordinate(r, group, node, &d.joint, &d.coordinate);
    usi_look look;
    if (!status) status = usi_scene_look(r, group, node, "drive", &look);
    if (status) return status;
    const us_joint_def *j = us_spec_view_joint(r->spec, d.joint);
    usi_dimension position = usi_joint_dimension(j->type, d.coordinate),
                  velocity = usi_rate_dimension(j->type, d.coordinate);
    usi_dimension effort = usi_effort_dimension(j->type, d.coordinate);
    d.limit = j->effort;
    status = usi_look_positive(r, &look, "kp", USI_PLAIN, false, &d.kp);
    if (!status) status = usi_look_positive(r, &look, "kd", USI_PLAIN, false, &d.kd);
    if (!status) status = usi_look_number(r, &look, "position", position, &d.position);
    if (!status) status = usi_look_number(r, &look, "velocity", velocity, &d.velocity);
    if (!status) status = usi_look_number(r, &look, "torque", effort, &d.torque);
    if (!status) status = usi_look_positive(r, &look, "limit", effort, false, &d.limit);
    if (status) return status;
    if (d.kp == 0 && usi_xml_attr(node, "position")) {
        status = usi_warn(r, node, "give it a kp",
                          "the drive has a position but no kp: the position has no effect");
    }
    if (!status && d.kp > 0 && j->has_limits && (d.position < j->lower || d.position > j->upper)) {
        status = usi_warn(r, node, "command a position inside the limits",
                          "the position %g is outside the joint's limits %g to %g", d.position, j->lower,
                          j->upper);
    }
    if (status) return status;
    const char *name = usi_xml_attr(node, "name");
    if (!name)
        name = d.coordinate == 0
                   ? usi_xml_attr(node, "joint")
                   : usi_reader_text(r, "%s.%d", usi_xml_attr(node, "joint"), (int)d.coordinate);
    d.name = name ? usi_scene_full_name(r, group, name) : NULL;
    if (!d.name) return usi_fail_memory(r);
    d.file = usi_xml_file(node);
    d.line = usi_xml_line(node);
    return usi_scene_added(r, node, us_spec_add_drive(r->spec, &d, NULL));
}

// The name of a coupling or loop, which must be new.
static us_status read_name(usi_reader *r, const usi_scene_group *group, const xmlNode *node, bool is_loop,
                           const char **out_name) {
    const char *name = usi_scene_full_name(r, group, usi_xml_attr(node, "name"));
    if (!name) return usi_fail_memory(r);
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < (is_loop ? counts.n_loop : counts.n_coupling); i++) {
        const char *have =
            is_loop ? us_spec_view_loop(r->spec, i)->name : us_spec_view_coupling(r->spec, i)->name;
        int32_t line =
            is_loop ? us_spec_view_loop(r->spec, i)->line : us_spec_view_coupling(r->spec, i)->line;
        if (strcmp(have, name) == 0) {
            return usi_fail(r, US_ERR_NAME, node, "give each its own name",
                            "the name is used already in line %d", (int)line);
        }
    }
    *out_name = name;
    return US_OK;
}

static us_status read_coupling(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    us_coupling_def c = us_coupling_def_default();
    us_status status = read_name(r, group, node, false, &c.name);
    if (status) return status;
    c.group = group->index;
    c.file = usi_xml_file(node);
    c.line = usi_xml_line(node);
    usi_look look = usi_look_at(node);
    status = usi_look_number(r, &look, "offset", USI_PLAIN, &c.offset);
    for (const xmlNode *t = usi_xml_child(node, "term"); t && !status; t = usi_xml_next(t, "term")) {
        if (c.n_term == US_COUPLING_TERMS) {
            return usi_fail(r, US_ERR_LIMIT, t, "use several couplings", "a coupling has at most %d terms",
                            US_COUPLING_TERMS);
        }
        int32_t k = c.n_term;
        usi_look term = usi_look_at(t);
        c.factor[k] = 1;
        status = read_coordinate(r, group, t, &c.joint[k], &c.coordinate[k]);
        if (!status) status = usi_look_number(r, &term, "factor", USI_PLAIN, &c.factor[k]);
        if (!status && c.factor[k] == 0) {
            return usi_fail(r, US_ERR_VALUE, t, "write another factor, or leave the term out",
                            "factor: 0 couples nothing");
        }
        for (int32_t i = 0; i < k && !status; i++) {
            if (c.joint[i] == c.joint[k] && c.coordinate[i] == c.coordinate[k]) {
                status = usi_fail(r, US_ERR_NAME, t, "add the factors and write one term",
                                  "the same coordinate occurs twice in the coupling");
            }
        }
        c.n_term++;
    }
    return status ? status : usi_scene_added(r, node, us_spec_add_coupling(r->spec, &c, NULL));
}

static us_status read_loop(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    const char *type = usi_xml_attr(node, "type");
    us_loop_def l = us_loop_def_default(strcmp(type, "point") == 0   ? US_LOOP_POINT
                                        : strcmp(type, "hinge") == 0 ? US_LOOP_HINGE
                                                                     : US_LOOP_WELD);
    us_status status = read_name(r, group, node, true, &l.name);
    if (status) return status;
    l.group = group->index;
    l.file = usi_xml_file(node);
    l.line = usi_xml_line(node);
    const xmlNode *a = usi_xml_child(node, "a"), *b = usi_xml_child(node, "b");
    status = usi_scene_find_link(r, group, a, "link", &l.link_a);
    if (!status) status = usi_scene_find_link(r, group, b, "link", &l.link_b);
    if (!status) status = usi_scene_pose(r, a, &l.X_AC);
    if (!status) status = usi_scene_pose(r, b, &l.X_BD);
    if (status) return status;
    if (l.link_a == l.link_b) {
        return usi_fail(r, US_ERR_CONSTRAINT, node, "name two different links",
                        "the loop joins \"%.60s\" with itself", usi_xml_attr(a, "link"));
    }
    return usi_scene_added(r, node, us_spec_add_loop(r->spec, &l, NULL));
}

us_status usi_scene_relations(usi_reader *r, const usi_scene_group *group) {
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(group->node, NULL); n && !status; n = usi_xml_next(n, NULL)) {
        if (usi_xml_is(n, "drive")) status = read_drive(r, group, n);
        if (usi_xml_is(n, "coupling")) status = read_coupling(r, group, n);
        if (usi_xml_is(n, "loop")) status = read_loop(r, group, n);
        if (usi_xml_is(n, "exclude")) status = usi_scene_exclude(r, group, n);
    }
    return status;
}

// ---- Recordings ----

static bool is_one_of(const char *word, const char *const *list) {
    for (; *list; list++) {
        if (strcmp(word, *list) == 0) return true;
    }
    return false;
}

static us_status fail_value(usi_reader *r, const xmlNode *node, const char *what, const char *owner,
                            const usi_guess *guess) {
    char remedy[300];
    snprintf(remedy, sizeof remedy,
             guess->best ? "did you mean \"%.200s\"?"
                         : "write a full name, for example arm/shoulder.q; `understudy check` lists them",
             guess->best);
    return usi_fail(r, US_ERR_NAME, node, remedy, "there is no %s \"%.100s\"", what, owner);
}

// A value is OWNER.what: the owner must exist and have it.
static us_status check_value(usi_reader *r, const xmlNode *node) {
    static const char *const alone[] = {"time",    "energy", "energy.kinetic", "energy.potential",
                                        "closure", NULL};
    static const char *const of_link[] = {"x",    "y",    "z",       "qw",     "qx",
                                          "qy",   "qz",   "sinkage", "slip",   "slip-angle",
                                          "pull", "side", "load",    "moment", NULL};
    const char *name = usi_xml_attr(node, "name"), *dot = strrchr(name, '.');
    if (is_one_of(name, alone)) return US_OK;
    char owner[300], what[32];
    snprintf(owner, sizeof owner, "%.*s", dot ? (int)(dot - name) : 0, name);
    snprintf(what, sizeof what, "%s", dot ? dot + 1 : "");
    us_spec_counts counts = us_spec_get_counts(r->spec);
    usi_guess guess = usi_guess_start(owner);
    bool is_q = what[0] == 'q' && (what[1] == 0 || what[1] == '['),
         is_v = what[0] == 'v' && (what[1] == 0 || what[1] == '[');
    if (is_q || is_v) {
        int32_t joint = us_spec_find_joint(r->spec, owner);
        for (int32_t i = 0; i < counts.n_joint; i++)
            usi_guess_offer(&guess, us_spec_view_joint(r->spec, i)->name);
        if (joint < 0) return fail_value(r, node, "joint", owner, &guess);
        us_joint_type type = us_spec_view_joint(r->spec, joint)->type;
        int32_t n = is_q ? us_joint_type_n_q(type) : us_joint_type_n_v(type);
        char *end = NULL;
        long index = what[1] ? strtol(what + 2, &end, 10) : 0;
        bool is_good = what[1] ? end != what + 2 && strcmp(end, "]") == 0 && index >= 0 && index < n : n == 1;
        if (is_good) return US_OK;
        return usi_fail(
            r, US_ERR_VALUE, node,
            n == 0 ? "leave it out: a fixed joint does not move" : "number its values from 0: joint.q[0]",
            "a %s joint has %d %s", us_joint_type_name(type), (int)n, is_q ? "positions" : "velocities");
    }
    if (strcmp(what, "torque") == 0) {
        for (int32_t i = 0; i < counts.n_drive; i++)
            usi_guess_offer(&guess, us_spec_view_drive(r->spec, i)->name);
        return us_spec_find_drive(r->spec, owner) >= 0 ? US_OK : fail_value(r, node, "drive", owner, &guess);
    }
    if (is_one_of(what, of_link)) {
        for (int32_t i = 0; i < counts.n_link; i++)
            usi_guess_offer(&guess, us_spec_view_link(r->spec, i)->name);
        return us_spec_find_link(r->spec, owner) >= 0 ? US_OK : fail_value(r, node, "link", owner, &guess);
    }
    return usi_fail(r, US_ERR_NAME, node,
                    "write JOINT.q, JOINT.v, DRIVE.torque, LINK.x .y .z .qw .qx .qy .qz, in soil "
                    "LINK.sinkage .slip .slip-angle .pull .side .load .moment, "
                    "energy, energy.kinetic, energy.potential, closure or time",
                    "invalid value to record \"%.100s\"", name);
}

us_status usi_scene_record(usi_reader *r, const xmlNode *node) {
    us_record_def d = us_record_def_default();
    d.file_name = usi_xml_attr(node, "file");
    if (!d.file_name[0])
        return usi_fail(r, US_ERR_VALUE, node, "write file=\"out.csv\"", "file: there is no name");
    d.file = usi_xml_file(node);
    d.line = usi_xml_line(node);
    usi_look look = usi_look_at(node);
    us_status status = usi_look_positive(r, &look, "rate", USI_FREQUENCY, false, &d.rate);
    if (status) return status;
    for (const xmlNode *v = usi_xml_child(node, "value"); v; v = usi_xml_next(v, "value"))
        d.n_value++;
    const char **values = usi_reader_alloc(r, ((size_t)d.n_value + 1) * sizeof *values);
    if (!values) return usi_fail_memory(r);
    int32_t k = 0;
    for (const xmlNode *v = usi_xml_child(node, "value"); v; v = usi_xml_next(v, "value")) {
        status = check_value(r, v);
        if (status) return status;
        values[k++] = usi_xml_attr(v, "name");
    }
    d.values = values;
    return usi_scene_added(r, node, us_spec_add_record(r->spec, &d, NULL));
}
