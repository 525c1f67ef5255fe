// One robot out of a scene: the others, the objects and the ground go, and it gets another name and place.
#include <stdio.h>
#include <string.h>

#include "spec/scene.h"
#include "spec/spawn.h"

static xmlNode *find_robot(usi_reader *r, xmlNode *root, us_status *out_status) {
    const char *wanted = r->pick->robot;
    xmlNode *found = NULL;
    usi_guess guess = usi_guess_start(wanted ? wanted : "");
    int n = 0;
    for (xmlNode *n_root = root->children; n_root; n_root = n_root->next) {
        if (!usi_xml_is(n_root, "robot")) continue;
        const char *name = usi_xml_attr(n_root, "name");
        n++;
        if (name) usi_guess_offer(&guess, name);
        if (!wanted || (name && strcmp(name, wanted) == 0)) found = n_root;
    }
    *out_status = US_OK;
    char remedy[256];
    snprintf(remedy, sizeof remedy, guess.best ? "did you mean \"%.100s\"?" : "name a file with a <robot>",
             guess.best);
    if (!found && wanted)
        *out_status = usi_fail(r, US_ERR_NAME, root, remedy, "the scene has no robot \"%.60s\"", wanted);
    if (!found && !wanted) *out_status = usi_fail(r, US_ERR_NAME, root, remedy, "the scene has no robot");
    if (found && !wanted && n > 1)
        *out_status = usi_fail(r, US_ERR_NAME, root, "write FILE#ROBOT", "the scene has %d robots", n);
    return found;
}

// Materials that the world has are as they are there.
static bool is_known(const us_spec *spec, const xmlNode *material) {
    const char *name = usi_xml_attr(material, "name");
    for (int32_t i = 0; name && i < us_spec_get_counts(spec).n_material; i++) {
        if (strcmp(us_spec_view_material(spec, i)->name, name) == 0) return true;
    }
    return false;
}

static bool is_kept(const us_spec *spec, const xmlNode *node, const xmlNode *robot) {
    return node == robot || usi_xml_is(node, "default") || usi_xml_is(node, "pair") ||
           (usi_xml_is(node, "material") && !is_known(spec, node));
}

static bool set(xmlNode *node, const char *name, const char *value) {
    return xmlSetProp(node, (const xmlChar *)name, (const xmlChar *)value) != NULL;
}

static void unset(xmlNode *node, const char *name) {
    xmlAttr *attribute = xmlHasProp(node, (const xmlChar *)name);
    if (attribute) xmlRemoveProp(attribute);
}

static bool name_and_place(xmlNode *robot, const usi_robot_source *s) {
    char xyz[128], rpy[128];
    const double *p = s->position, *a = s->rpy;
    snprintf(xyz, sizeof xyz, "%.17g %.17g %.17g", p[0], p[1], p[2]);
    snprintf(rpy, sizeof rpy, "%.17g %.17g %.17g", a[0], a[1], a[2]);
    unset(robot, "quat");
    bool ok = set(robot, "name", s->name) && set(robot, "xyz", xyz) && set(robot, "rpy", rpy);
    if (s->tags) ok = ok && set(robot, "tags", s->tags);
    if (s->has_base) ok = ok && set(robot, "base", s->is_fixed ? "fixed" : "floating");
    return ok;
}

// The namespace that was asked for; else one that was written belongs to the robot of that scene.
static bool name_network(xmlNode *robot, const usi_robot_source *s) {
    xmlNode *network = NULL;
    for (xmlNode *n = robot->children; n && !network; n = n->next)
        network = usi_xml_is(n, "network") ? n : NULL;
    if (!network && !s->namespace_) return true;
    if (!network) {
        network = xmlNewChild(robot, NULL, (const xmlChar *)"network", NULL);
        if (!network) return false;
        // Elements are read in an order: this one comes first.
        xmlUnlinkNode(network);
        xmlNode *first = robot->children;
        if (first) {
            xmlAddPrevSibling(first, network);
        } else {
            xmlAddChild(robot, network);
        }
    }
    unset(network, "frame-prefix");
    if (s->namespace_) return set(network, "namespace", s->namespace_);
    unset(network, "namespace");
    return true;
}

us_status usi_scene_pick(usi_reader *r, xmlDoc *doc) {
    xmlNode *root = xmlDocGetRootElement(doc);
    us_status status = US_OK;
    xmlNode *robot = find_robot(r, root, &status);
    if (status) return status;
    for (xmlNode *n = root->children, *next; n; n = next) {
        next = n->next;
        if (n->type != XML_ELEMENT_NODE || is_kept(r->spec, n, robot)) continue;
        xmlUnlinkNode(n);
        xmlFreeNode(n);
    }
    if (!name_and_place(robot, r->pick->source) || !name_network(robot, r->pick->source))
        return usi_fail_memory(r);
    return US_OK;
}
