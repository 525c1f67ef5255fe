// Before a scene is read: included files are taken in, <repeat> is written out, and ${...} is replaced.
//
// All this happens in the tree, not in the text, so that every element keeps the file and line in which it
// was written. Included elements carry their file with them (usi_source). Parameters are looked up when they
// are used, so that they may be defined in any order; of several definitions that in the outermost file wins,
// and the caller's (--set) over all.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/scene.h"

enum {
    INCLUDE_DEPTH = 16,
    INCLUDE_LIMIT = 1000,  // files in all: 16 levels of files that each include two others would be 65536
    PARAMETER_DEPTH = 32,  // parameters that use parameters
    VALUE_LIMIT = 4096,    // bytes of an attribute after substitution
    REPEAT_LIMIT = 10000,  // copies by one <repeat>
    COPY_LIMIT = 1000000,  // nodes in all that they consist of
};

typedef struct parameter {
    const char *name;
    const char *text;     // as written, or as the caller gives it
    const xmlNode *node;  // where it is defined
    bool is_open;         // being looked up just now: using it again would never end
    const char *value;    // after substitution; NULL: not yet known
} parameter;

typedef struct expansion {
    usi_reader *r;
    parameter *parameters;
    int32_t n_parameter, cap_parameter;
    int32_t n_include;
    int64_t n_copy;                        // nodes made by <repeat>
    const char *stack[INCLUDE_DEPTH + 1];  // canonical names of the files being read
    const xmlNode *place;                  // where the substitution at hand stands
    int depth;                             // of parameters being looked up
} expansion;

static us_status substitute(expansion *e, const char *text, const char **out_text);

// ---- Parameters ----

static parameter *find_parameter(expansion *e, const char *name) {
    for (int32_t i = 0; i < e->n_parameter; i++) {
        if (strcmp(e->parameters[i].name, name) == 0) return &e->parameters[i];
    }
    return NULL;
}

// The value that the caller gives to a parameter, or NULL.
static const char *given_value(const us_load_def *def, const char *name) {
    size_t length = strlen(name);
    const char *found = NULL;
    for (int32_t i = 0; i < def->n_parameter; i++) {
        const char *p = def->parameters[i];
        if (p && strncmp(p, name, length) == 0 && p[length] == '=') found = p + length + 1;
    }
    return found;
}

static bool is_parameter_name(const char *s) {
    if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_')) return false;
    for (; *s; s++) {
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_' || (*s >= '0' && *s <= '9')))
            return false;
    }
    return true;
}

static us_status add_parameter(expansion *e, const xmlNode *node) {
    usi_reader *r = e->r;
    const char *name = usi_xml_attr(node, "name"), *text = usi_xml_attr(node, "value");
    if (!name || !text) return US_OK;  // the schema says it better
    if (!is_parameter_name(name) || strcmp(name, "pi") == 0 || strcmp(name, "deg") == 0 ||
        strlen(name) > 100) {
        return usi_fail(r, US_ERR_NAME, node,
                        "use letters, digits and _, not starting with a digit, and neither pi nor deg",
                        "a parameter cannot be called \"%.60s\"", name);
    }
    parameter *known = find_parameter(e, name);
    if (known && usi_xml_depth(known->node) == usi_xml_depth(node)) {
        return usi_fail(r, US_ERR_NAME, node, "keep one of the two definitions",
                        "the parameter \"%.60s\" is already defined in %.150s:%d", name,
                        usi_xml_file(known->node) ? usi_xml_file(known->node) : "",
                        (int)usi_xml_line(known->node));
    }
    if (known && usi_xml_depth(known->node) < usi_xml_depth(node)) return US_OK;
    if (!known) {
        if (usi_grow(&r->def->allocator, (void **)&e->parameters, e->n_parameter, &e->cap_parameter,
                     sizeof *known))
            return usi_fail_memory(r);
        known = &e->parameters[e->n_parameter++];
    }
    const char *given = given_value(r->def, name);
    *known = (parameter){.name = name, .text = given ? given : text, .node = node};
    return US_OK;
}

// The value of a parameter with everything in it replaced.
static us_status parameter_text(expansion *e, const char *name, const char **out_text) {
    usi_reader *r = e->r;
    parameter *p = find_parameter(e, name);
    if (!p) {
        usi_guess guess = usi_guess_start(name);
        for (int32_t i = 0; i < e->n_parameter; i++)
            usi_guess_offer(&guess, e->parameters[i].name);
        char remedy[256];
        snprintf(remedy, sizeof remedy,
                 guess.best ? "did you mean ${%.100s}?"
                            : "define it: <parameter name=\"%.100s\" value=\"...\"/>",
                 guess.best ? guess.best : name);
        return usi_fail(r, US_ERR_NAME, e->place, remedy, "there is no parameter \"%.60s\"", name);
    }
    if (p->is_open) {
        return usi_fail(r, US_ERR_NAME, p->node, "give it a value that does not depend on itself",
                        "the parameter \"%.60s\" is defined by itself", name);
    }
    if (!p->value) {
        if (e->depth == PARAMETER_DEPTH) {
            return usi_fail(r, US_ERR_LIMIT, p->node, "use fewer levels of parameters",
                            "parameters use parameters more than %d levels deep", PARAMETER_DEPTH);
        }
        const xmlNode *place = e->place;
        e->place = p->node;
        e->depth++;
        p->is_open = true;
        const char *value = NULL;
        us_status status = substitute(e, p->text, &value);
        p->is_open = false;
        e->depth--;
        e->place = place;
        if (status) return status;
        p->value = value;
    }
    *out_text = p->value;
    return US_OK;
}

// A name inside an expression.
static us_status name_value(void *context, const char *name, double *out) {
    expansion *e = context;
    if (strcmp(name, "pi") == 0 || strcmp(name, "deg") == 0) {
        *out = 3.14159265358979323846 / (name[0] == 'p' ? 1 : 180);
        return US_OK;
    }
    const char *text = NULL;
    us_status status = parameter_text(e, name, &text);
    if (status) return status;
    if (!usi_measure_whole(text, out)) {
        return usi_fail(e->r, US_ERR_VALUE, e->place, "compute with parameters that are numbers",
                        "the parameter \"%.60s\" is \"%.60s\", which is not a number", name, text);
    }
    return US_OK;
}

// Replaces one ${...}: a lone name by its text, anything else by its value.
static us_status replace(expansion *e, const char *inside, char *out, size_t cap, size_t *out_length) {
    char number[40];
    const char *text = number;
    us_status status;
    if (is_parameter_name(inside) && strcmp(inside, "pi") != 0 && strcmp(inside, "deg") != 0) {
        status = parameter_text(e, inside, &text);
    } else {
        double value = 0;
        status = usi_expression(e->r, e->place, inside, name_value, e, &value);
        snprintf(number, sizeof number, "%.17g", value);
    }
    if (status) return status;
    *out_length = strlen(text);
    if (*out_length >= cap) {
        return usi_fail(e->r, US_ERR_LIMIT, e->place, "use shorter parameters",
                        "the value with its parameters is longer than %d bytes", VALUE_LIMIT);
    }
    memcpy(out, text, *out_length);
    return US_OK;
}

static us_status substitute(expansion *e, const char *text, const char **out_text) {
    if (!strstr(text, "${")) {
        *out_text = text;
        return US_OK;
    }
    char result[VALUE_LIMIT];
    size_t n = 0;
    while (*text) {
        if (text[0] == '$' && text[1] == '{') {
            const char *first = text + 2, *end = strchr(first, '}');
            if (!end)
                return usi_fail(e->r, US_ERR_SYNTAX, e->place, "close it: ${name}",
                                "\"%.40s\" has no closing brace", text);
            const char *last = end;
            while (first < last && usi_is_blank(*first))
                first++;
            while (first < last && usi_is_blank(last[-1]))
                last--;
            char inside[512];
            if ((size_t)(last - first) >= sizeof inside) {
                return usi_fail(e->r, US_ERR_LIMIT, e->place, "split it into parameters",
                                "the expression in ${...} is too long");
            }
            memcpy(inside, first, (size_t)(last - first));
            inside[last - first] = 0;
            size_t length = 0;
            us_status status = replace(e, inside, result + n, sizeof result - n, &length);
            if (status) return status;
            n += length;
            text = end + 1;
        } else {
            result[n++] = *text++;
        }
        if (n >= sizeof result)
            return usi_fail(e->r, US_ERR_LIMIT, e->place, "use shorter values",
                            "the value is longer than %d bytes", VALUE_LIMIT);
    }
    result[n] = 0;
    *out_text = usi_reader_text(e->r, "%s", result);
    return *out_text ? US_OK : usi_fail_memory(e->r);
}

static us_status substitute_attributes(expansion *e, xmlNode *node) {
    e->place = node;
    for (xmlAttr *a = node->properties; a; a = a->next) {
        if (!a->children || !a->children->content || a->children->next) continue;
        const char *text = (const char *)a->children->content, *value = NULL;
        us_status status = substitute(e, text, &value);
        if (status) return status;
        if (value == text) continue;
        xmlChar *copy = xmlStrdup((const xmlChar *)value);
        if (!copy) return usi_fail_memory(e->r);
        // The text is this node's own: the parser keeps none in a dictionary (XML_PARSE_NODICT).
        xmlFree(a->children->content);
        a->children->content = copy;
    }
    return US_OK;
}

// The node after n in the tree below root, depth first; NULL at the end. Deep trees cost no stack.
static xmlNode *next_in_tree(xmlNode *n, const xmlNode *root) {
    if (n->type == XML_ELEMENT_NODE && n->children) return n->children;
    while (n != root && !n->next && n->parent)
        n = n->parent;
    return n == root ? NULL : n->next;
}

static us_status substitute_tree(expansion *e, xmlNode *root) {
    for (xmlNode *n = root; n; n = next_in_tree(n, root)) {
        if (n->type != XML_ELEMENT_NODE || (n->parent == root && usi_xml_is(n, "parameter"))) continue;
        us_status status = substitute_attributes(e, n);
        if (status) return status;
    }
    return US_OK;
}

// ---- Repeats ----

static us_status check_repeat(expansion *e, xmlNode *node, int32_t *out_start, int32_t *out_count) {
    usi_reader *r = e->r;
    for (const xmlAttr *a = node->properties; a; a = a->next) {
        const char *name = (const char *)a->name;
        if (strcmp(name, "name") == 0 || strcmp(name, "count") == 0 || strcmp(name, "start") == 0) continue;
        return usi_fail(r, US_ERR_SCHEMA, node, "allowed: name count start",
                        "<repeat> has no attribute \"%.60s\"", name);
    }
    const char *name = usi_xml_attr(node, "name");
    if (!name)
        return usi_fail(r, US_ERR_SCHEMA, node, "write <repeat name=\"i\" count=\"10\">",
                        "<repeat> lacks the attribute \"name\"");
    if (!is_parameter_name(name) || strcmp(name, "pi") == 0 || strcmp(name, "deg") == 0 ||
        strlen(name) > 100 || find_parameter(e, name)) {
        return usi_fail(r, US_ERR_NAME, node,
                        "use letters, digits and _, not starting with a digit, and no name of a <parameter>",
                        "the count cannot be called \"%.60s\"", name);
    }
    us_status status = usi_xml_int(r, node, "count", true, out_count);
    if (!status) status = usi_xml_int(r, node, "start", false, out_start);
    if (status) return status;
    if (*out_count < 1 || *out_count > REPEAT_LIMIT) {
        return usi_fail(r, US_ERR_VALUE, node, "write a count from 1 to 10000",
                        "count: %d copies cannot be made", (int)*out_count);
    }
    if (*out_start < -1000000 || *out_start > 1000000) {
        return usi_fail(r, US_ERR_VALUE, node, "write a start between -1000000 and 1000000",
                        "start: %d is too far from 0", (int)*out_start);
    }
    for (xmlNode *n = next_in_tree(node, node); n; n = next_in_tree(n, node)) {
        if (n->parent == node && (usi_xml_is(n, "parameter") || usi_xml_is(n, "include") ||
                                  usi_xml_is(n, "repeat") || usi_xml_is(n, "world"))) {
            return usi_fail(r, US_ERR_SCHEMA, n, "put it outside", "<%.60s> is not allowed in <repeat>",
                            (const char *)n->name);
        }
        e->n_copy += *out_count;
    }
    if (e->n_copy <= COPY_LIMIT) return US_OK;
    return usi_fail(r, US_ERR_LIMIT, node, "repeat less often, or less of it",
                    "the copies would be more than %d nodes", COPY_LIMIT);
}

// Puts the copies of everything inside in front of the <repeat>, each with the value of its count.
static us_status repeat(expansion *e, xmlNode *node) {
    usi_reader *r = e->r;
    int32_t start = 0, count = 0;
    us_status status = substitute_attributes(e, node);
    if (!status) status = check_repeat(e, node, &start, &count);
    if (status) return status;
    if (usi_grow(&r->def->allocator, (void **)&e->parameters, e->n_parameter, &e->cap_parameter,
                 sizeof *e->parameters))
        return usi_fail_memory(r);
    int32_t index = e->n_parameter++;
    for (int32_t i = 0; i < count && !status; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)(start + i));
        e->parameters[index] = (parameter){.name = usi_xml_attr(node, "name"), .text = text, .node = node};
        // What other parameters make of the count changes with it.
        for (int32_t k = 0; k < e->n_parameter; k++)
            e->parameters[k].value = NULL;
        for (xmlNode *child = node->children; child && !status; child = child->next) {
            if (child->type != XML_ELEMENT_NODE) continue;
            xmlNode *copy = xmlCopyNode(child, 1);
            if (!copy) return usi_fail_memory(r);
            copy->_private = node->_private;
            xmlAddPrevSibling(node, copy);
            for (xmlNode *n = copy; n && !status; n = next_in_tree(n, copy)) {
                if (n->type == XML_ELEMENT_NODE) status = substitute_attributes(e, n);
            }
        }
    }
    e->n_parameter--;
    for (int32_t k = 0; k < e->n_parameter; k++)
        e->parameters[k].value = NULL;
    return status;
}

static us_status repeat_all(expansion *e, xmlNode *root) {
    for (xmlNode *n = root->children, *next; n; n = next) {
        next = n->next;
        if (!usi_xml_is(n, "repeat")) continue;
        us_status status = repeat(e, n);
        if (status) return status;
        xmlUnlinkNode(n);
        xmlFreeNode(n);
    }
    return US_OK;
}

// ---- Includes ----

// Scene files have no namespaces; a reference to a schema on the root (xsi:...) is what editors put there.
static us_status check_namespaces(usi_reader *r, xmlNode *root) {
    for (xmlNode *n = root; n; n = next_in_tree(n, root)) {
        if (n->type != XML_ELEMENT_NODE) continue;
        bool has_foreign = n->ns != NULL;
        for (const xmlAttr *a = n->properties; a && !has_foreign; a = a->next)
            has_foreign = a->ns && n != root;
        if (!has_foreign) continue;
        return usi_fail(r, US_ERR_SCHEMA, n,
                        "write the element and its attributes without a prefix and without xmlns",
                        "scene files use no namespaces");
    }
    return US_OK;
}

static us_status check_root(usi_reader *r, xmlNode *root) {
    if (!usi_xml_is(root, "scene")) {
        return usi_fail(r, US_ERR_SCHEMA, root,
                        usi_xml_is(root, "robot") ? "name robot files by <robot name=\"...\" file=\"...\"/>"
                                                  : "the root must be <scene>",
                        "the file has the root <%.60s>, not <scene>", (const char *)root->name);
    }
    const char *version = usi_xml_attr(root, "version");
    if (!version)
        return usi_fail(r, US_ERR_SCHEMA, root, "write <scene version=\"1\">",
                        "the attribute \"version\" is missing");
    if (strcmp(version, "1") != 0) {
        return usi_fail(r, US_ERR_SCHEMA, root, "write version=\"1\", the only one there is",
                        "version \"%.20s\" of the format is not known", version);
    }
    return check_namespaces(r, root);
}

// The one name of a file, however it is reached; the path itself where there is no such file.
static const char *canonical(usi_reader *r, const char *path) {
    char real[PATH_MAX];
    return usi_reader_text(r, "%s", realpath(path, real) ? real : path);
}

static us_status take_in(expansion *e, xmlNode *root, int depth);

// Reads the file of an <include> and puts its contents in front of it.
static us_status include(expansion *e, xmlNode *node, int depth) {
    usi_reader *r = e->r;
    e->place = node;
    const char *name = usi_xml_attr(node, "file");
    if (!name)
        return usi_fail(r, US_ERR_SCHEMA, node, "write <include file=\"...\"/>",
                        "the attribute \"file\" is missing");
    us_status status = substitute(e, name, &name);
    if (status) return status;
    // What was looked up here may change when an outer definition follows.
    for (int32_t i = 0; i < e->n_parameter; i++)
        e->parameters[i].value = NULL;
    if (depth + 1 > INCLUDE_DEPTH) {
        return usi_fail(r, US_ERR_LIMIT, node, "include fewer levels",
                        "files include files more than %d levels deep", INCLUDE_DEPTH);
    }
    if (++e->n_include > INCLUDE_LIMIT) {
        return usi_fail(r, US_ERR_LIMIT, node, "include fewer files", "more than %d files are included",
                        INCLUDE_LIMIT);
    }
    char *path = usi_path_beside(r, usi_xml_file(node), name);
    const char *real = path ? canonical(r, path) : NULL;
    usi_source *source = usi_reader_alloc(r, sizeof *source);
    if (!real || !source) return usi_fail_memory(r);
    for (int i = 0; i <= depth; i++) {
        if (strcmp(e->stack[i], real) == 0) {
            return usi_fail(r, US_ERR_NAME, node, "remove one of the includes in the circle",
                            "the include of \"%.150s\" goes in a circle: that file is being read already",
                            name);
        }
    }
    char element[128], *text = NULL;
    size_t length = 0;
    us_place place = usi_xml_place(r, node, element, sizeof element);
    xmlDoc *doc = NULL;
    status = usi_reader_permit(r, node, "scene file", path);
    if (!status) status = usi_file_read(r, path, &place, &text, &length);
    if (!status) status = usi_xml_parse(r, text, length, path, &doc);
    if (status) return status;
    xmlNode *root = xmlDocGetRootElement(doc);
    status = check_root(r, root);
    *source = (usi_source){.file = path, .depth = depth + 1};
    for (xmlNode *n = root->children; n; n = n->next)
        n->_private = n->type == XML_ELEMENT_NODE ? source : NULL;
    e->stack[depth + 1] = real;
    if (!status) status = take_in(e, root, depth + 1);
    // The elements move even after an error: parameters point at them.
    for (xmlNode *n = root->children, *next; n; n = next) {
        next = n->next;
        if (n->type != XML_ELEMENT_NODE) continue;
        xmlUnlinkNode(n);
        xmlAddPrevSibling(node, n);
    }
    xmlFreeDoc(doc);
    return status;
}

// Collects the parameters and takes in the includes of one file, in the order in which they are written.
static us_status take_in(expansion *e, xmlNode *root, int depth) {
    for (xmlNode *n = root->children, *next; n; n = next) {
        next = n->next;
        us_status status = US_OK;
        if (usi_xml_is(n, "parameter")) status = add_parameter(e, n);
        if (usi_xml_is(n, "include")) {
            status = include(e, n, depth);
            if (!status) {
                xmlUnlinkNode(n);
                xmlFreeNode(n);
            }
        }
        if (status) return status;
    }
    return US_OK;
}

// What the caller sets must be something that the scene has.
static us_status check_given(expansion *e) {
    const us_load_def *def = e->r->def;
    for (int32_t i = 0; i < def->n_parameter; i++) {
        const char *p = def->parameters[i], *equals = p ? strchr(p, '=') : NULL;
        if (!equals || equals == p) {
            return usi_fail(e->r, US_ERR_VALUE, NULL, "write name=value",
                            "\"%.60s\" does not set a parameter", p ? p : "");
        }
        bool is_known = false;
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(equals - p), p);
        usi_guess guess = usi_guess_start(name);
        for (int32_t k = 0; k < e->n_parameter; k++) {
            is_known |= strlen(e->parameters[k].name) == (size_t)(equals - p) &&
                        strncmp(e->parameters[k].name, p, (size_t)(equals - p)) == 0;
            usi_guess_offer(&guess, e->parameters[k].name);
        }
        if (is_known) continue;
        char remedy[200];
        snprintf(remedy, sizeof remedy,
                 guess.best ? "did you mean %s?"
                            : "define it in the scene with <parameter name=\"...\" value=\"...\"/>",
                 guess.best);
        return usi_fail(e->r, US_ERR_NAME, NULL, remedy, "the scene has no parameter \"%.60s\" to set", name);
    }
    return US_OK;
}

us_status usi_scene_expand(usi_reader *r, xmlDoc *doc) {
    xmlNode *root = xmlDocGetRootElement(doc);
    us_status status = check_root(r, root);
    if (status) return status;
    expansion e = {.r = r};
    e.stack[0] = canonical(r, doc->URL ? (const char *)doc->URL : "");
    status = e.stack[0] ? take_in(&e, root, 0) : usi_fail_memory(r);
    if (!status) status = check_given(&e);
    if (!status) status = repeat_all(&e, root);
    if (!status) status = substitute_tree(&e, root);
    // A parameter that nobody uses may still be wrong: it is looked up all the same.
    for (int32_t i = 0; i < e.n_parameter && !status; i++) {
        const char *value = NULL;
        e.place = e.parameters[i].node;
        status = parameter_text(&e, e.parameters[i].name, &value);
    }
    usi_release(&r->def->allocator, e.parameters, (size_t)e.cap_parameter * sizeof *e.parameters,
                _Alignof(max_align_t));
    return status;
}
