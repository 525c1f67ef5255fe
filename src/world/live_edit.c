// World commands as edits of a spec: what is added, taken away or put elsewhere.
//
// The same lines make the same spec again: a recording keeps those that led from the scene to the world it
// begins with.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/fault_target.h"
#include "spec/geometry.h"
#include "spec/spawn.h"
#include "spec/spec.h"
#include "spec/xml.h"
#include "world/world__inner.h"

// ---------------------------------------------------------------- names

static int32_t find_group(const us_spec *spec, const char *name) {
    for (int32_t i = 0; i < spec->n_group; i++) {
        if (spec->group[i].name && strcmp(spec->group[i].name, name) == 0) return i;
    }
    return -1;
}

// The shape of the world with this name, and how many have it.
static int32_t find_shape(const us_spec *spec, const char *name, int32_t *out_n) {
    int32_t found = -1;
    *out_n = 0;
    for (int32_t i = 0; i < spec->n_shape; i++) {
        const us_shape_def *s = &spec->shape[i];
        if (s->link != US_WORLD || !s->name || strcmp(s->name, name) != 0) continue;
        if (found < 0) found = i;
        ++*out_n;
    }
    return found;
}

// The joint that holds a link, or NULL.
static const us_joint_def *holder(const us_spec *spec, int32_t link) {
    for (int32_t i = 0; i < spec->n_joint; i++) {
        if (spec->joint[i].child == link) return &spec->joint[i];
    }
    return NULL;
}

// Up to the world: whether what the link belongs to floats.
static bool is_floating(const us_spec *spec, int32_t link) {
    for (int32_t n = 0; n <= spec->n_link; n++) {
        const us_joint_def *j = holder(spec, link);
        if (!j) return false;
        if (j->is_broken) return true;
        if (j->parent == US_WORLD) return j->type == US_JOINT_FLOATING;
        link = j->parent;
    }
    return false;
}

static us_status fail_name(const us_spec *spec, const char *name, us_error *err) {
    usi_guess guess = usi_guess_start(name);
    char remedy[384];
    for (int32_t i = 0; i < spec->n_group; i++) {
        if (spec->group[i].name && spec->group[i].name[0]) usi_guess_offer(&guess, spec->group[i].name);
    }
    for (int32_t i = 0; i < spec->n_link; i++)
        usi_guess_offer(&guess, spec->link[i].name);
    for (int32_t i = 0; i < spec->n_shape; i++) {
        if (spec->shape[i].link == US_WORLD && spec->shape[i].name)
            usi_guess_offer(&guess, spec->shape[i].name);
    }
    if (guess.best) {
        snprintf(remedy, sizeof remedy, "did you mean \"%.200s\"?", guess.best);
    } else {
        snprintf(remedy, sizeof remedy,
                 "name an object, one of its links (OBJECT/LINK), or a shape of the world; \"understudy "
                 "check\" lists them");
    }
    return us_error_set(err, US_ERR_NAME, NULL, remedy,
                        "there is no object, link or shape of the world \"%.100s\"", name);
}

us_status usi_target_find(const us_spec *spec, const char *name, usi_target *out, us_error *err) {
    *out = (usi_target){-1, -1, -1, false};
    int32_t n_shape = 0;
    out->group = find_group(spec, name);
    if (out->group >= 0) {
        out->link = usi_group_root(spec, out->group);
        out->is_floating = out->link >= 0 && is_floating(spec, out->link);
        return US_OK;
    }
    out->link = us_spec_find_link(spec, name);
    if (out->link >= 0) {
        out->is_floating = is_floating(spec, out->link);
        return US_OK;
    }
    out->shape = find_shape(spec, name, &n_shape);
    if (n_shape > 1)
        return us_error_set(err, US_ERR_NAME, NULL, "give them different names in the scene",
                            "%d shapes of the world are called \"%.100s\"", (int)n_shape, name);
    return out->shape >= 0 ? US_OK : fail_name(spec, name, err);
}

bool usi_is_edit(const usi_command *c, const usi_target *target) {
    switch (c->verb) {
    case USI_VERB_ADD:
    case USI_VERB_REMOVE:
    case USI_VERB_CLEAR:
        return true;
    case USI_VERB_MOVE:
    case USI_VERB_RAISE:
    case USI_VERB_LOWER:
        return !target->is_floating;
    default:
        return false;
    }
}

static us_status fail_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the edit");
}

// The status of a function of the spec as an error.
static us_status notify(us_status status, const char *name, us_error *err) {
    if (!status) return US_OK;
    if (status == US_ERR_MEMORY) return fail_memory(err);
    return us_error_set(err, status, NULL, "look at the object in the scene file",
                        "\"%.100s\" cannot be changed: %s", name, us_status_text(status));
}

// ---------------------------------------------------------------- add

static us_status check_add(const us_spec *spec, const usi_command *c, us_error *err) {
    int32_t n_shape = 0;
    bool is_taken = find_group(spec, c->name) >= 0 || us_spec_find_link(spec, c->name) >= 0 ||
                    find_shape(spec, c->name, &n_shape) >= 0;
    if (is_taken || strcmp(c->name, "world") == 0)
        return us_error_set(err, US_ERR_NAME, NULL, "choose another name, or remove that one first",
                            "there is a \"%s\" already", c->name);
    const char *surface = c->object.surface;
    if (!surface || strcmp(surface, "default") == 0) return US_OK;
    usi_guess guess = usi_guess_start(surface);
    char remedy[384] = "known: default";
    usi_guess_offer(&guess, "default");
    for (int32_t i = 0; i < spec->n_material; i++) {
        const char *have = spec->material[i].name;
        if (strcmp(have, surface) == 0) return US_OK;
        usi_guess_offer(&guess, have);
        size_t at = strlen(remedy);
        if (strcmp(have, "default") != 0 && at + strlen(have) + 3 < sizeof remedy)
            snprintf(remedy + at, sizeof remedy - at, ", %s", have);
    }
    if (guess.best) snprintf(remedy, sizeof remedy, "did you mean \"%.200s\"?", guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "surface: there is no material \"%.100s\"", surface);
}

static us_shape_def object_shape(const usi_object_def *o) {
    static const us_shape_kind kinds[] = {
        [USI_OBJECT_BOX] = US_SHAPE_BOX,           [USI_OBJECT_SPHERE] = US_SHAPE_SPHERE,
        [USI_OBJECT_CYLINDER] = US_SHAPE_CYLINDER, [USI_OBJECT_CAPSULE] = US_SHAPE_CAPSULE,
        [USI_OBJECT_CONE] = US_SHAPE_CONE,         [USI_OBJECT_ELLIPSOID] = US_SHAPE_ELLIPSOID,
    };
    us_shape_def s = us_shape_def_default(kinds[o->kind]);
    memcpy(s.size, o->size, sizeof s.size);
    memcpy(s.rgba, o->rgba, sizeof s.rgba);
    s.is_visual = s.is_collision = true;
    s.surface = o->surface;
    return s;
}

// At the density that was given, or that which gives the mass.
static us_status object_inertia(const us_spec *spec, const usi_object_def *o, us_shape_def *s,
                                us_inertia *out, us_error *err) {
    us_status status = usi_geometry_inertia(s, &spec->texts.allocator, &s->unit_inertia, err);
    if (status) return status;
    *out = s->unit_inertia;
    double scale = isnan(o->mass) ? o->density : o->mass / out->mass;
    out->mass *= scale;
    for (int i = 0; i < 6; i++)
        out->about_com[i] *= scale;
    bool is_good = out->mass > 0 && isfinite(out->mass) && out->about_com[0] > 0 && out->about_com[1] > 0 &&
                   out->about_com[2] > 0;
    if (is_good) return US_OK;
    return us_error_set(err, US_ERR_MASS, NULL, "make it larger or heavier",
                        "its mass would be %g kg and its inertia too small for numbers", out->mass);
}

static us_joint_def object_joint(const usi_object_def *o) {
    us_joint_def j = us_joint_def_default(o->is_fixed ? US_JOINT_FIXED : US_JOINT_FLOATING);
    us_pose X_WB = {.p = us_vec3_make(o->position[0], o->position[1], o->position[2]),
                    .q = us_quat_from_rpy(o->rpy[0], o->rpy[1], o->rpy[2])};
    j.parent = US_WORLD;
    if (o->is_fixed) {
        j.X_PF = X_WB;
        return j;
    }
    us_quat q = X_WB.q;
    us_vec3 p = X_WB.p, v_W = us_vec3_make(o->velocity[0], o->velocity[1], o->velocity[2]);
    us_vec3 v = us_quat_rotate(us_quat_conj(q), v_W);
    const double q0[7] = {q.w, q.x, q.y, q.z, p.x, p.y, p.z}, v0[6] = {0, 0, 0, v.x, v.y, v.z};
    memcpy(j.q0, q0, sizeof q0);
    memcpy(j.v0, v0, sizeof v0);
    return j;
}

static us_status add_object(us_spec *spec, const usi_command *c, us_error *err) {
    us_status status = check_add(spec, c, err);
    if (status) return status;
    const usi_object_def *o = &c->object;
    char link_name[USI_NAME_MAX + 16], joint_name[USI_NAME_MAX + 16];
    snprintf(link_name, sizeof link_name, "%s/body", c->name);
    snprintf(joint_name, sizeof joint_name, "%s/%s", c->name, o->is_fixed ? "fixed_base" : "floating_base");
    us_shape_def shape = object_shape(o);
    us_link_def link = us_link_def_default();
    us_joint_def joint = object_joint(o);
    us_group_def group = {.name = c->name, .is_floating = !o->is_fixed, .is_added = true, .tags = o->tags};
    status = object_inertia(spec, o, &shape, &link.inertia, err);
    if (status) return status;
    status = us_spec_add_group(spec, &group, &link.group);
    link.name = link_name;
    joint.name = joint_name;
    joint.group = link.group;
    if (!status) status = us_spec_add_link(spec, &link, &shape.link);
    joint.child = shape.link;
    if (!status) status = us_spec_add_shape(spec, &shape, NULL);
    if (!status) status = us_spec_add_joint(spec, &joint, NULL);
    return notify(status, c->name, err);
}

static us_status add_robot(us_spec *spec, const usi_command *c, us_error *err) {
    us_status status = check_add(spec, c, err);
    if (status) return status;
    const usi_object_def *o = &c->object;
    usi_robot_source source = {.name = c->name,
                               .file = c->spawn.file,
                               .xml = c->spawn.xml,
                               .namespace_ = c->spawn.namespace_,
                               .tags = o->tags,
                               .has_base = c->spawn.has_base,
                               .is_fixed = o->is_fixed};
    memcpy(source.position, o->position, sizeof source.position);
    memcpy(source.rpy, o->rpy, sizeof source.rpy);
    return usi_spec_add_robot(spec, &source, err);
}

// ---------------------------------------------------------------- remove

static us_status remove_link(us_spec *spec, int32_t link) {
    int32_t group = spec->link[link].group, n = 0;
    for (int32_t i = 0; i < spec->n_link; i++)
        n += spec->link[i].group == group;
    // The last link of an object takes its name with it.
    return group >= 0 && (n == 1 || usi_group_root(spec, group) == link) ? us_spec_remove_group(spec, group)
                                                                         : us_spec_remove_link(spec, link);
}

static us_status remove_object(us_spec *spec, const usi_command *c, us_error *err) {
    usi_target target;
    us_status status = usi_target_find(spec, c->name, &target, err);
    if (status) return status;
    if (target.shape >= 0) return notify(us_spec_remove_shape(spec, target.shape), c->name, err);
    int32_t group = target.group >= 0 ? target.group : spec->link[target.link].group;
    if (group >= 0 && us_spec_view_network(spec, group)) {
        if (!spec->group[group].is_added)
            return us_error_set(
                err, US_ERR_ARG, NULL,
                "take it out of the scene file and start again; objects, and robots that were "
                "added, can be removed at any time",
                "\"%.100s\" belongs to a robot of the scene, and its robots stay while the world runs",
                c->name);
        if (target.group < 0)
            return us_error_set(err, US_ERR_ARG, NULL, "remove the robot, by its own name",
                                "\"%.100s\" is a part of a robot", c->name);
    }
    return notify(target.group >= 0 ? us_spec_remove_group(spec, target.group)
                                    : remove_link(spec, target.link),
                  c->name, err);
}

static us_status remove_added(us_spec *spec, us_error *err) {
    us_status status = US_OK;
    for (int32_t i = spec->n_group - 1; i >= 0 && !status; i--) {
        if (spec->group[i].is_added) status = us_spec_remove_group(spec, i);
    }
    return status ? fail_memory(err) : US_OK;
}

// ---------------------------------------------------------------- move

// One joint to what is outside of it: else the object would be torn apart.
static us_status check_root(const us_spec *spec, const usi_target *target, const char *name, us_error *err) {
    const us_joint_def *held = target->link >= 0 ? holder(spec, target->link) : NULL;
    if (!held)
        return us_error_set(err, US_ERR_TREE, NULL, "move its links by their joints",
                            "\"%.100s\" has no root that can be moved", name);
    if (held->parent != US_WORLD)
        return us_error_set(err, US_ERR_TREE, NULL, "move that one instead, or set the joint: joint NAME Q",
                            "\"%.100s\" is held by \"%.100s\"", name, spec->link[held->parent].name);
    int32_t group = spec->link[target->link].group, n = 0;
    for (int32_t i = 0; i < spec->n_joint && group >= 0; i++) {
        const us_joint_def *j = &spec->joint[i];
        bool is_own = spec->link[j->child].group == group;
        bool is_outside = j->parent == US_WORLD || spec->link[j->parent].group != group;
        n += is_own && is_outside;
    }
    if (n <= 1) return US_OK;
    return us_error_set(err, US_ERR_TREE, NULL, "move it in the scene file",
                        "\"%.100s\" stands on the world by %d joints", name, (int)n);
}

us_pose usi_new_place(us_pose X, const usi_command *c) {
    const double *a = c->number;
    if (c->verb == USI_VERB_MOVE) {
        X.p = us_vec3_make(a[0], a[1], a[2]);
        if (c->n_number == 6) X.q = us_quat_from_rpy(a[3], a[4], a[5]);
    } else {
        X.p.z += c->verb == USI_VERB_RAISE ? a[0] : -a[0];
    }
    return X;
}

static us_status move_object(us_spec *spec, const usi_command *c, us_error *err) {
    usi_target target;
    us_status status = usi_target_find(spec, c->name, &target, err);
    if (status) return status;
    if (target.shape >= 0)
        return notify(
            us_spec_move_shape(spec, target.shape, usi_new_place(spec->shape[target.shape].X_BG, c)), c->name,
            err);
    status = check_root(spec, &target, c->name, err);
    if (status) return status;
    return notify(us_spec_move_link(spec, target.link, usi_new_place(holder(spec, target.link)->X_PF, c)),
                  c->name, err);
}

// ---------------------------------------------------------------- faults

us_status usi_fault_robot(const us_spec *spec, const usi_command *c, int32_t *out_group, int32_t *out_joint,
                          int32_t *out_drive, us_error *err) {
    *out_group = find_group(spec, c->name);
    if (*out_group < 0 || !us_spec_view_network(spec, *out_group)) {
        usi_guess guess = usi_guess_start(c->name);
        for (int32_t i = 0; i < spec->n_network; i++)
            usi_guess_offer(&guess, spec->group[spec->network[i].group].name);
        char remedy[384];
        snprintf(remedy, sizeof remedy, guess.best ? "did you mean \"%.200s\"?" : "name a robot of the scene",
                 guess.best);
        return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no robot \"%.100s\"", c->name);
    }
    const usi_fault_words words = {.part = c->part, .fault = c->fault, .name = c->other};
    return usi_fault_find(spec, *out_group, &words, out_joint, out_drive, err);
}

double usi_fault_blockage(const us_spec *spec, const usi_command *c, int32_t drive) {
    if (c->fault != USI_FAULT_BLOCKED) return 0;
    if (c->n_number > 0) return c->number[0];
    // Fast for all that the drive itself and a fall can do: a hundred times its strength, and a tonne on a
    // lever of 10 cm.
    return fmax(1000, 100 * fmax(spec->drive[drive].limit, spec->joint[spec->drive[drive].joint].effort));
}

// Of a link and all that joints hold on it.
static double mass_of(const us_spec *spec, int32_t link) {
    double mass = spec->link[link].inertia.mass;
    for (int32_t i = 0; i < spec->n_joint; i++) {
        if (spec->joint[i].parent == link && !spec->joint[i].is_broken)
            mass += mass_of(spec, spec->joint[i].child);
    }
    return mass;
}

us_status usi_break_find(const us_spec *spec, const usi_command *c, int32_t *out_joint, us_error *err) {
    char remedy[384];
    int32_t group = find_group(spec, c->name);
    if (group < 0) {
        usi_guess guess = usi_guess_start(c->name);
        for (int32_t i = 0; i < spec->n_group; i++)
            usi_guess_offer(&guess, spec->group[i].name);
        snprintf(remedy, sizeof remedy,
                 guess.best ? "did you mean \"%.200s\"?" : "name a robot or object of the scene", guess.best);
        return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no robot or object \"%.100s\"",
                            c->name);
    }
    usi_guess guess = usi_guess_start(c->other);
    size_t n = c->name[0] ? strlen(c->name) + 1 : 0;
    for (int32_t i = 0; i < spec->n_joint; i++) {
        const us_joint_def *j = &spec->joint[i];
        if (j->group != group || strlen(j->name) <= n) continue;
        usi_guess_offer(&guess, j->name + n);
        if (strcmp(j->name + n, c->other) != 0) continue;
        *out_joint = i;
        if (j->type == US_JOINT_FLOATING)
            return us_error_set(err, US_ERR_ARG, NULL, "name a joint that holds something",
                                "\"%.100s\" floats: there is nothing to break", j->name);
        if (mass_of(spec, j->child) > 0) return US_OK;
        return us_error_set(err, US_ERR_MASS, NULL, "name a joint that holds something with mass",
                            "what \"%.100s\" holds has no mass, and would not fall", j->name);
    }
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.200s\"?"
                        : "name one of its joints; \"understudy info\" lists them",
             guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "\"%.100s\" has no joint \"%.100s\"", c->name,
                        c->other);
}

static us_status break_joint(us_spec *spec, const usi_command *c, us_error *err) {
    int32_t joint = -1;
    us_status status = usi_break_find(spec, c, &joint, err);
    if (!status) spec->joint[joint].is_broken = c->fault == USI_FAULT_BROKEN;
    return status;
}

us_status usi_spec_edit(us_spec *spec, const usi_command *c, us_error *err) {
    switch (c->verb) {
    case USI_VERB_ADD:
        return c->is_robot ? add_robot(spec, c, err) : add_object(spec, c, err);
    case USI_VERB_REMOVE:
        return remove_object(spec, c, err);
    case USI_VERB_CLEAR:
        return remove_added(spec, err);
    case USI_VERB_MOVE:
    case USI_VERB_RAISE:
    case USI_VERB_LOWER:
        return move_object(spec, c, err);
    case USI_VERB_FAULT:
        if (c->part == USI_COMPONENT_JOINT) return break_joint(spec, c, err);
    // fall through
    default:
        return us_error_set(err, US_ERR_ARG, NULL, "write add, remove, clear, move, raise, lower or fault",
                            "the command does not change what the world is made of");
    }
}

us_status usi_spec_edit_all(us_spec *spec, const char *edits, us_error *err) {
    const us_allocator a = spec->texts.allocator;
    usi_command *c = usi_alloc(&a, sizeof *c, _Alignof(usi_command));
    const size_t max = USI_COMMAND_MAX + USI_RESOURCE_MAX;
    char *line = usi_alloc(&a, max + 1, 1);
    us_status status = US_OK;
    for (const char *s = edits; *s && !status;) {
        if (!c || !line) {
            status = fail_memory(err);
            break;
        }
        size_t n = strcspn(s, "\n");
        if (n > max) {
            status = us_error_set(err, US_ERR_LIMIT, NULL, "use a recording that is not damaged",
                                  "a line of the edits is too long");
        } else if (n > 0) {
            memcpy(line, s, n);
            line[n] = 0;
            status = usi_command_parse(line, c, err);
            if (!status) status = usi_spec_edit(spec, c, err);
        }
        s += n + (s[n] == '\n');
    }
    usi_release(&a, line, max + 1, 1);
    usi_release(&a, c, sizeof *c, _Alignof(usi_command));
    return status;
}
