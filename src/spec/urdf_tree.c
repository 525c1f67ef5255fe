// Names and the tree of a URDF file.
//
// A URDF robot is a tree: every link but one is the child of exactly one joint. What breaks this is reported
// in the words of the file: which names, which joints, which cycle.
#include <stdio.h>
#include <string.h>

#include "spec/urdf.h"

// ---- Names ----

static us_status names_init(usi_reader *r, usi_urdf_names *names, int32_t n) {
    names->n_slot = 16;
    while (names->n_slot < 2 * (size_t)n)
        names->n_slot *= 2;
    names->slot = usi_reader_alloc(r, names->n_slot * sizeof *names->slot);
    if (!names->slot) return usi_fail_memory(r);
    for (size_t s = 0; s < names->n_slot; s++)
        names->slot[s] = -1;
    return US_OK;
}

static size_t first_slot(const usi_urdf_names *names, const char *name) {
    return us_hash_bytes(0, name, strlen(name)) & (names->n_slot - 1);
}

int32_t usi_urdf_find_link(const usi_urdf *u, const char *name) {
    const usi_urdf_names *names = &u->link_names;
    for (size_t s = first_slot(names, name); names->slot[s] >= 0; s = (s + 1) & (names->n_slot - 1)) {
        if (strcmp(u->links[names->slot[s]].name, name) == 0) return names->slot[s];
    }
    return -1;
}

int32_t usi_urdf_find_joint(const usi_urdf *u, const char *name) {
    const usi_urdf_names *names = &u->joint_names;
    for (size_t s = first_slot(names, name); names->slot[s] >= 0; s = (s + 1) & (names->n_slot - 1)) {
        if (strcmp(u->joints[names->slot[s]].name, name) == 0) return names->slot[s];
    }
    return -1;
}

static void names_add(usi_urdf_names *names, const char *name, int32_t i) {
    size_t s = first_slot(names, name);
    while (names->slot[s] >= 0)
        s = (s + 1) & (names->n_slot - 1);
    names->slot[s] = i;
}

static us_status read_name(usi_reader *r, const xmlNode *node, const char **out_name) {
    const char *name = usi_xml_attr(node, "name");
    if (!name || !name[0])
        return usi_fail(r, US_ERR_SCHEMA, node, "give it a name: name=\"...\"", "the <%s> has no name",
                        (const char *)node->name);
    if (strlen(name) > USI_NAME_LIMIT)
        return usi_fail(r, US_ERR_LIMIT, node, "choose a shorter name", "the name is longer than %d bytes",
                        USI_NAME_LIMIT);
    *out_name = name;
    return US_OK;
}

static us_status fail_twice(usi_reader *r, const xmlNode *node, const char *name, const xmlNode *first) {
    return usi_fail(r, US_ERR_NAME, node, "rename one of the two, and what refers to it",
                    "the name \"%s\" is used twice: the first %s of that name is in line %d", name,
                    (const char *)node->name, (int)usi_xml_line(first));
}

us_status usi_urdf_find_names(usi_urdf *u) {
    us_status status = names_init(u->r, &u->link_names, u->n_link);
    if (!status) status = names_init(u->r, &u->joint_names, u->n_joint);
    for (int32_t i = 0; i < u->n_link && !status; i++) {
        usi_urdf_link *link = &u->links[i];
        status = read_name(u->r, link->node, &link->name);
        if (status) break;
        int32_t old = usi_urdf_find_link(u, link->name);
        if (old >= 0) return fail_twice(u->r, link->node, link->name, u->links[old].node);
        names_add(&u->link_names, link->name, i);
    }
    for (int32_t i = 0; i < u->n_joint && !status; i++) {
        usi_urdf_joint *joint = &u->joints[i];
        status = read_name(u->r, joint->node, &joint->name);
        if (status) break;
        int32_t old = usi_urdf_find_joint(u, joint->name);
        if (old >= 0) return fail_twice(u->r, joint->node, joint->name, u->joints[old].node);
        names_add(&u->joint_names, joint->name, i);
    }
    return status;
}

// ---- The tree ----

// Appends a name in quotes to a list that may run out of room: then it ends in "...".
static void list_name(char *list, size_t cap, const char *between, const char *name) {
    size_t used = strlen(list);
    if (used + strlen(between) + strlen(name) + 8 < cap) {
        snprintf(list + used, cap - used, "%s\"%s\"", used ? between : "", name);
    } else if (used < 4 || strcmp(list + used - 3, "...") != 0) {
        snprintf(list + used, cap - used, "%s...", used ? between : "");
    }
}

static us_status find_root(usi_urdf *u) {
    char list[300] = "";
    int32_t n_root = 0;
    u->root = -1;
    const xmlNode *second = NULL;
    for (int32_t i = 0; i < u->n_link; i++) {
        if (u->links[i].joint >= 0) continue;
        if (n_root++ == 0) u->root = i;
        if (n_root == 2) second = u->links[i].node;
        list_name(list, sizeof list, ", ", u->links[i].name);
    }
    if (n_root <= 1) return US_OK;
    return usi_fail(u->r, US_ERR_TREE, second,
                    "a robot has one root: connect the others by joints (a fixed one will do), or write them "
                    "into files of their own",
                    "%d links are the child of no joint: %s", (int)n_root, list);
}

// `link` cannot be reached from the root, and it has a parent, as have all above it: going up ends in a
// circle.
static us_status fail_cycle(usi_urdf *u, int32_t link) {
    int32_t at = link;
    for (int32_t i = 0; i < u->n_link; i++)
        at = u->joints[u->links[at].joint].def.parent;
    char list[300] = "";
    list_name(list, sizeof list, "", u->links[at].name);
    int32_t first = at;
    do {
        at = u->joints[u->links[at].joint].def.parent;
        list_name(list, sizeof list, " is a child of ", u->links[at].name);
    } while (at != first);
    return usi_fail(u->r, US_ERR_TREE, u->joints[u->links[first].joint].node,
                    "remove one joint of the circle; a mechanism that closes a loop is written as <loop> in "
                    "the scene file",
                    "links are joined in a circle: %s", list);
}

// The links, parents before children, by following first children and next siblings level by level.
static us_status find_order(usi_urdf *u) {
    size_t n = (size_t)u->n_link;
    int32_t *first = usi_reader_alloc(u->r, n * sizeof *first),
            *next = usi_reader_alloc(u->r, n * sizeof *next);
    u->order = usi_reader_alloc(u->r, n * sizeof *u->order);
    if (!first || !next || !u->order) return usi_fail_memory(u->r);
    for (size_t i = 0; i < n; i++)
        first[i] = next[i] = -1;
    for (int32_t i = u->n_link - 1; i >= 0; i--) {
        if (u->links[i].joint < 0) continue;
        int32_t parent = u->joints[u->links[i].joint].def.parent;
        next[i] = first[parent];
        first[parent] = i;
    }
    int32_t n_order = 0;
    if (u->root >= 0) u->order[n_order++] = u->root;
    for (int32_t i = 0; i < n_order; i++) {
        for (int32_t c = first[u->order[i]]; c >= 0; c = next[c])
            u->order[n_order++] = c;
    }
    if (n_order == u->n_link) return US_OK;
    // Somebody was not reached. Whether a link was is known by its body, set here and used for its meaning
    // below.
    for (int32_t i = 0; i < u->n_link; i++)
        u->links[i].body = -1;
    for (int32_t i = 0; i < n_order; i++)
        u->links[u->order[i]].body = 0;
    int32_t lost = 0;
    while (u->links[lost].body == 0)
        lost++;
    return fail_cycle(u, lost);
}

us_status usi_urdf_build_tree(usi_urdf *u) {
    for (int32_t i = 0; i < u->n_link; i++)
        u->links[i].joint = -1;
    for (int32_t j = 0; j < u->n_joint; j++) {
        usi_urdf_link *child = &u->links[u->joints[j].def.child];
        if (child->joint >= 0) {
            const usi_urdf_joint *other = &u->joints[child->joint];
            return usi_fail(u->r, US_ERR_TREE, u->joints[j].node,
                            "keep one of the joints; a mechanism that closes a loop is written as <loop> in "
                            "the scene file",
                            "the link \"%s\" is the child of two joints, \"%s\" (line %d) and \"%s\"",
                            child->name, other->name, (int)usi_xml_line(other->node), u->joints[j].name);
        }
        child->joint = j;
    }
    us_status status = find_root(u);
    if (!status) status = find_order(u);
    if (status) return status;
    for (int32_t k = 0; k < u->n_link; k++) {
        int32_t i = u->order[k], j = u->links[i].joint;
        u->links[i].body =
            j >= 0 && u->joints[j].def.type == US_JOINT_FIXED ? u->links[u->joints[j].def.parent].body : i;
    }
    return US_OK;
}
