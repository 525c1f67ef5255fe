// What surfaces are made of and how they touch: <material>, <pair>, <exclude>, and <surface> and <level> of a
// robot.
//
// Materials are read before robots and objects, so that an error names a shape's own line when it names
// one that is not there.
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/scene.h"
#include "spec/spec.h"

// ---- Properties ----

static us_status read_property(usi_reader *r, const xmlNode *node, us_property *out) {
    const char *text = usi_xml_attr(node, "value");
    *out = (us_property){.key = usi_xml_attr(node, "key"), .type = US_PROPERTY_STRING};
    if (usi_xml_is(node, "string")) {
        out->text = text;
        return US_OK;
    }
    if (usi_xml_is(node, "number")) {
        out->type = US_PROPERTY_NUMBER;
        return usi_xml_double(r, node, "value", true, &out->number);
    }
    out->type = US_PROPERTY_INTEGER;
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || usi_is_blank(text[0]))
        return usi_fail(r, US_ERR_VALUE, node, "write a whole number, or use <number>",
                        "value: invalid whole number \"%.60s\"", text);
    out->integer = value;
    return US_OK;
}

static us_status read_properties(usi_reader *r, const xmlNode *parent, const us_property **out,
                                 int32_t *out_n) {
    int32_t n = 0;
    for (const xmlNode *p = usi_xml_child(parent, NULL); p; p = usi_xml_next(p, NULL))
        n += !usi_xml_is(p, "soil");
    us_property *list = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *list);
    if (!list) return usi_fail_memory(r);
    int32_t k = 0;
    for (const xmlNode *p = usi_xml_child(parent, NULL); p; p = usi_xml_next(p, NULL)) {
        if (usi_xml_is(p, "soil")) continue;
        us_status status = read_property(r, p, &list[k]);
        if (status) return status;
        for (int32_t i = 0; i < k; i++) {
            if (strcmp(list[i].key, list[k].key) == 0)
                return usi_fail(r, US_ERR_NAME, p, "give each its own key", "the key \"%.60s\" is used twice",
                                list[k].key);
        }
        k++;
    }
    *out = list;
    *out_n = n;
    return US_OK;
}

// ---- Materials ----

static us_status read_material(usi_reader *r, const xmlNode *node) {
    us_material_def d = {
        .name = usi_xml_attr(node, "name"), .file = usi_xml_file(node), .line = usi_xml_line(node)};
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_material; i++) {
        const us_material_def *known = us_spec_view_material(r->spec, i);
        if (strcmp(known->name, d.name) == 0)
            return usi_fail(r, US_ERR_NAME, node, "give each material its own name",
                            "the material is defined already in %.150s:%d", known->file, (int)known->line);
    }
    us_status status = read_properties(r, node, &d.properties, &d.n_property);
    if (!status) status = usi_scene_soil(r, node, &d);
    return status ? status : usi_scene_added(r, node, us_spec_add_material(r->spec, &d, NULL));
}

us_status usi_scene_material(usi_reader *r, const xmlNode *node, const char *attribute,
                             const char **out_name) {
    const char *name = usi_xml_attr(node, attribute);
    if (!name) return US_OK;
    *out_name = name;
    if (strcmp(name, "default") == 0) return US_OK;
    usi_guess guess = usi_guess_start(name);
    usi_guess_offer(&guess, "default");
    char known[200] = "default", remedy[384];
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_material; i++) {
        const char *have = us_spec_view_material(r->spec, i)->name;
        if (strcmp(have, name) == 0) return US_OK;
        usi_guess_offer(&guess, have);
        size_t used = strlen(known);
        if (strcmp(have, "default") != 0 && used + strlen(have) + 3 < sizeof known)
            snprintf(known + used, sizeof known - used, ", %s", have);
    }
    if (guess.best) {
        snprintf(remedy, sizeof remedy, "did you mean \"%.100s\"? known: %s", guess.best, known);
    } else {
        snprintf(remedy, sizeof remedy, "define it: <material name=\"%.60s\"/>; known: %s", name, known);
    }
    return usi_fail(r, US_ERR_NAME, node, remedy, "%s: there is no material \"%.100s\"", attribute, name);
}

us_status usi_scene_materials(usi_reader *r, const xmlNode *root) {
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(root, "material"); n && !status; n = usi_xml_next(n, "material"))
        status = read_material(r, n);
    return status;
}

// ---- Pairs ----

static us_status read_values(usi_reader *r, const xmlNode *node, us_pair_values *v) {
    const struct {
        const char *name;
        usi_dimension dimension;
        bool is_strict;
        double *out;
    } rows[] = {
        {"static-friction", USI_PLAIN, false, &v->static_friction},
        {"kinetic-friction", USI_PLAIN, false, &v->kinetic_friction},
        {"viscous", USI_PLAIN, false, &v->viscous},
        {"normal-static", USI_PLAIN, false, &v->normal_static},
        {"rotational", USI_PLAIN, false, &v->rotational},
        {"assumed-mass", USI_MASS, true, &v->assumed_mass},
        {"restitution", USI_PLAIN, false, &v->restitution},
        {"reference-speed", USI_SPEED, true, &v->reference_speed},
        {"stiffness", USI_PLAIN, false, &v->stiffness},
        {"damping-ratio", USI_PLAIN, false, &v->damping_ratio},
        {"torsion-radius", USI_LENGTH, false, &v->torsion_radius},
        {"rolling-length", USI_LENGTH, false, &v->rolling_length},
        {"transition-speed", USI_SPEED, false, &v->transition_speed},
    };
    usi_look look = usi_look_at(node);
    us_status status = US_OK;
    bool has_static = usi_xml_attr(node, "static-friction") != NULL,
         has_kinetic = usi_xml_attr(node, "kinetic-friction") != NULL;
    double both = 0;
    if (usi_xml_attr(node, "friction")) {
        if (has_static || has_kinetic)
            return usi_fail(r, US_ERR_VALUE, node, "write friction, or static-friction and kinetic-friction",
                            "both friction and a friction of its own kind");
        status = usi_look_positive(r, &look, "friction", USI_PLAIN, false, &both);
        v->static_friction = v->kinetic_friction = both;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; i++)
        status = usi_look_positive(r, &look, rows[i].name, rows[i].dimension, rows[i].is_strict, rows[i].out);
    if (status) return status;
    // One alone moves the other's default out of its way.
    if (has_static && !has_kinetic && v->kinetic_friction > v->static_friction)
        v->kinetic_friction = v->static_friction;
    if (has_kinetic && !has_static && v->static_friction < v->kinetic_friction)
        v->static_friction = v->kinetic_friction;
    if (v->kinetic_friction > v->static_friction)
        return usi_fail(r, US_ERR_VALUE, node, "write a kinetic friction of at most the static one",
                        "kinetic-friction: %g is above the static friction %g", v->kinetic_friction,
                        v->static_friction);
    if (v->restitution > 1)
        return usi_fail(r, US_ERR_VALUE, node,
                        "write a number from 0 (does not bounce) to 1 (keeps its speed)",
                        "restitution: %g is above 1", v->restitution);
    return US_OK;
}

static us_status read_pair(usi_reader *r, const xmlNode *node) {
    us_pair_def d = us_pair_def_default();
    d.file = usi_xml_file(node);
    d.line = usi_xml_line(node);
    d.fidelity = usi_xml_attr(node, "fidelity");
    if (usi_xml_attr(node, "model")) d.model = usi_xml_attr(node, "model");
    us_status status = usi_scene_material(r, node, "a", &d.material_a);
    if (!status) status = usi_scene_material(r, node, "b", &d.material_b);
    if (!status) status = read_values(r, node, &d.values);
    if (!status) status = read_properties(r, node, &d.parameters, &d.n_parameter);
    return status ? status : usi_scene_added(r, node, us_spec_add_pair(r->spec, &d, NULL));
}

us_status usi_scene_pairs(usi_reader *r, const xmlNode *root) {
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(root, "pair"); n && !status; n = usi_xml_next(n, "pair"))
        status = read_pair(r, n);
    return status;
}

// ---- Links that never collide ----

us_status usi_scene_exclude(usi_reader *r, const usi_scene_group *group, const xmlNode *node) {
    us_exclude_def d = {.file = usi_xml_file(node), .line = usi_xml_line(node)};
    us_status status = usi_scene_find_link(r, group, node, "a", &d.link_a);
    if (!status) status = usi_scene_find_link(r, group, node, "b", &d.link_b);
    if (status) return status;
    if (d.link_a == d.link_b)
        return usi_fail(r, US_ERR_VALUE, node, "name two different links: a link never collides with itself",
                        "both links are \"%.100s\"", usi_xml_attr(node, "a"));
    return usi_scene_added(r, node, us_spec_add_exclude(r->spec, &d, NULL));
}

// ---- Surfaces of a robot ----

// Link names inside the robot that fit a pattern with * and ?. Without any: an error that suggests one.
static us_status match_links(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                             bool *out_fits) {
    const char *pattern = usi_xml_attr(node, "link");
    usi_guess guess = usi_guess_start(pattern);
    size_t prefix = group->name[0] ? strlen(group->name) + 1 : 0;
    bool is_any = false;
    for (int32_t i = 0; i < group->n_link; i++) {
        const char *name = us_spec_view_link(r->spec, group->first_link + i)->name + prefix;
        out_fits[i] = fnmatch(pattern, name, 0) == 0;
        is_any |= out_fits[i];
        usi_guess_offer(&guess, name);
    }
    if (is_any) return US_OK;
    char remedy[200];
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.100s\"?"
                        : "name a link of the robot, or a pattern such as wheel_*",
             guess.best);
    return usi_fail(r, US_ERR_NAME, node, remedy, "\"%.60s\" has no link \"%.100s\"", group->name, pattern);
}

static us_status change_surface(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                                const bool *fits) {
    static const char *const names[] = {"surface", "margin", "part-error", "group", "mask"};
    bool is_empty = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_empty &= !usi_xml_attr(node, names[i]);
    if (is_empty)
        return usi_fail(r, US_ERR_SCHEMA, node, "write surface=\"...\", margin, part-error, group or mask",
                        "the <surface> changes nothing");
    us_shape_def any = us_shape_def_default(US_SHAPE_MESH);
    us_status wrong = usi_scene_contact(r, node, &any);  // also where no shape takes the values
    if (wrong) return wrong;
    us_spec *spec = r->spec;
    int32_t n_changed = 0;
    for (int32_t i = 0; i < spec->n_shape; i++) {
        us_shape_def *s = &spec->shape[i];
        int32_t k = s->link - group->first_link;
        if (s->link < 0 || k < 0 || k >= group->n_link || !fits[k] || !s->is_collision) continue;
        us_shape_def changed = *s;
        us_status status = usi_scene_contact(r, node, &changed);
        if (status) return status;
        bool ok = true;
        if (changed.surface) changed.surface = usi_arena_text(&spec->texts, changed.surface, &ok);
        if (!ok) return usi_fail_memory(r);
        *s = changed;
        n_changed++;
    }
    if (n_changed > 0) return US_OK;
    return usi_warn(r, node, "give the link a <collision> in the robot file",
                    "no link \"%.100s\" has a shape that collides: nothing is changed",
                    usi_xml_attr(node, "link"));
}

us_status usi_scene_surfaces(usi_reader *r, const usi_scene_group *group) {
    bool *fits = usi_reader_alloc(r, (size_t)group->n_link + 1);
    if (!fits) return usi_fail_memory(r);
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(group->node, NULL); n && !status; n = usi_xml_next(n, NULL)) {
        bool is_level = usi_xml_is(n, "level");
        if (!is_level && !usi_xml_is(n, "surface")) continue;
        status = match_links(r, group, n, fits);
        int32_t level = 0;
        if (!status && is_level) status = usi_xml_int(r, n, "value", true, &level);
        if (!status && !is_level) status = change_surface(r, group, n, fits);
        for (int32_t i = 0; i < group->n_link && is_level && !status; i++) {
            if (fits[i]) r->spec->link[group->first_link + i].level = level;
        }
    }
    return status;
}
