// A robot's description with the names that its frames have.
//
// The file names links as the robot knows them; on the network several robots have links of one name, and
// each has a prefix. Who reads the description looks for its links in /tf: so they get the prefix there too.
// Joints keep their names, which are those of joint_states.
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"

enum { LINK_NAME = 512 };

// Elements of a URDF that name a link, and the attribute that does.
static const char *const places[][2] = {{"link", "name"}, {"parent", "link"}, {"child", "link"}};

static bool is_link(const xmlNode *root, const xmlChar *name) {
    for (const xmlNode *at = root->children; at; at = at->next) {
        if (at->type != XML_ELEMENT_NODE || !xmlStrEqual(at->name, BAD_CAST "link")) continue;
        xmlChar *own = xmlGetNoNsProp(at, BAD_CAST "name");
        const bool is_same = own && xmlStrEqual(own, name);
        xmlFree(own);
        if (is_same) return true;
    }
    return false;
}

static void put_prefix(xmlNode *node, const char *attribute, const char *prefix) {
    xmlChar *old = xmlGetNoNsProp(node, BAD_CAST attribute);
    char name[LINK_NAME];
    if (old && snprintf(name, sizeof name, "%s%s", prefix, (const char *)old) < (int)sizeof name)
        xmlSetProp(node, BAD_CAST attribute, BAD_CAST name);
    xmlFree(old);
}

// What <gazebo> refers to is a link or a joint. Links must have their old names still.
static void name_references(xmlNode *root, const char *prefix) {
    for (xmlNode *at = root->children; at; at = at->next) {
        if (at->type != XML_ELEMENT_NODE || !xmlStrEqual(at->name, BAD_CAST "gazebo")) continue;
        xmlChar *reference = xmlGetNoNsProp(at, BAD_CAST "reference");
        if (reference && is_link(root, reference)) put_prefix(at, "reference", prefix);
        xmlFree(reference);
    }
}

static void name_frames(xmlNode *node, const char *prefix) {
    for (xmlNode *at = node->children; at; at = at->next) {
        if (at->type != XML_ELEMENT_NODE) continue;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            if (xmlStrEqual(at->name, BAD_CAST places[i][0])) put_prefix(at, places[i][1], prefix);
        }
        // Links and joints are children of the robot, parent and child of a joint.
        if (xmlStrEqual(at->name, BAD_CAST "joint")) name_frames(at, prefix);
    }
}

const char *usi_description_name_frames(us_proxy *p, const char *text, const char *prefix) {
    if (!text || !prefix || !prefix[0]) return text;
    xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL,
                                XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (!doc) return NULL;
    xmlNode *root = xmlDocGetRootElement(doc);
    if (root) {
        name_references(root, prefix);
        name_frames(root, prefix);
    }
    xmlChar *bytes = NULL;
    int length = 0;
    xmlDocDumpMemory(doc, &bytes, &length);
    xmlFreeDoc(doc);
    char *copy = bytes && length > 0 ? usi_arena_alloc(&p->arena, (size_t)length + 1, 1) : NULL;
    if (copy) {
        memcpy(copy, bytes, (size_t)length);
        copy[length] = 0;
    }
    xmlFree(bytes);
    return copy;
}
