// Validation against the embedded schema, with errors in plain language.
//
// libxml2 finds what is wrong and where; what to do about it is looked up in the schema itself: which
// attributes and elements are allowed there, which values a type has, what its documentation says. For that
// the schema keeps to a form in which every element inside a type names its own (complex) type.
#include <errno.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <stdio.h>
#include <string.h>

#include "base/spare_memory.h"
#include "spec/scene.h"
#include "spec/schema.h"

// The first error of the validation.
typedef struct finding {
    bool has_error;
    const xmlNode *node;
    char message[400];
} finding;

static void on_invalid(void *context, xmlError *error) {
    finding *f = context;
    if (f->has_error) return;
    f->has_error = true;
    f->node = error->node;
    // Attributes look like nodes up to their parent.
    if (f->node && f->node->type == XML_ATTRIBUTE_NODE) f->node = f->node->parent;
    snprintf(f->message, sizeof f->message, "%s", error->message ? error->message : "");
    f->message[strcspn(f->message, "\n")] = 0;
}

static void ignore(void *context, const char *format, ...) US_PRINTF(2, 3);
static void ignore(void *context, const char *format, ...) {
    (void)context;
    (void)format;
}

// ---- Looking things up in the schema ----

static const xmlNode *named(const xmlNode *schema, const char *tag, const char *name) {
    for (const xmlNode *n = usi_xml_child(schema, tag); n; n = usi_xml_next(n, tag)) {
        const char *have = usi_xml_attr(n, "name");
        if (have && strcmp(have, name) == 0) return n;
    }
    return NULL;
}

// The xs:choice or xs:sequence of a type.
static const xmlNode *content_of(const xmlNode *type) {
    const xmlNode *content = usi_xml_child(type, "choice");
    return content ? content : usi_xml_child(type, "sequence");
}

// The complex type of an element, found from the root downwards.
static const xmlNode *type_of(const xmlNode *schema, const xmlNode *node) {
    const xmlNode *parent = node->parent;
    if (!parent || parent->type != XML_ELEMENT_NODE) return named(schema, "complexType", "scene");
    const xmlNode *parent_type = type_of(schema, parent);
    const xmlNode *element =
        parent_type ? named(content_of(parent_type), "element", (const char *)node->name) : NULL;
    const char *type = element ? usi_xml_attr(element, "type") : NULL;
    return type ? named(schema, "complexType", type) : NULL;
}

// Visits the attributes of a type, those of its attribute groups in their place. Start with *at = NULL.
static const xmlNode *next_attribute(const xmlNode *schema, const xmlNode *type, const xmlNode *at) {
    const xmlNode *n = at ? usi_xml_next(at, NULL) : usi_xml_child(type, NULL);
    for (;;) {
        if (!n && at && usi_xml_is(at->parent, "attributeGroup")) {
            // The group is done: go on behind the reference to it.
            const char *group = usi_xml_attr(at->parent, "name");
            for (n = usi_xml_child(type, "attributeGroup"); n; n = usi_xml_next(n, "attributeGroup")) {
                const char *reference = usi_xml_attr(n, "ref");
                if (group && reference && strcmp(reference, group) == 0) break;
            }
            at = n;
            n = n ? usi_xml_next(n, NULL) : NULL;
            if (!n) return NULL;
        }
        if (!n) return NULL;
        if (usi_xml_is(n, "attribute")) return n;
        if (usi_xml_is(n, "attributeGroup") && usi_xml_attr(n, "ref")) {
            const xmlNode *group = named(schema, "attributeGroup", usi_xml_attr(n, "ref"));
            const xmlNode *first = group ? usi_xml_child(group, "attribute") : NULL;
            if (first) return first;
        }
        n = usi_xml_next(n, NULL);
    }
}

static const xmlNode *find_attribute(const xmlNode *schema, const xmlNode *type, const char *name) {
    for (const xmlNode *a = next_attribute(schema, type, NULL); a; a = next_attribute(schema, type, a)) {
        const char *have = usi_xml_attr(a, "name");
        if (have && strcmp(have, name) == 0) return a;
    }
    return NULL;
}

// The documentation of an attribute, element or type, in one line.
static void documentation(const xmlNode *node, char *out, size_t cap) {
    const xmlNode *text = usi_xml_child(usi_xml_child(node, "annotation"), "documentation");
    text = text ? text->children : NULL;
    snprintf(out, cap, "%s", text && text->content ? (const char *)text->content : "");
    for (char *c = out; *c; c++) {
        if (*c == '\n') *c = ' ';
    }
}

static void append(char *list, size_t cap, const char *word) {
    size_t n = strlen(list);
    snprintf(list + n, cap - n, "%s%s", n > 0 ? " " : "", word);
}

// ---- Saying it ----

static us_status fail_unknown_attribute(usi_reader *r, const xmlNode *schema, const xmlNode *node,
                                        const char *name) {
    const xmlNode *type = type_of(schema, node);
    usi_guess guess = usi_guess_start(name);
    char list[300] = "", remedy[384];
    for (const xmlNode *a = type ? next_attribute(schema, type, NULL) : NULL; a;
         a = next_attribute(schema, type, a)) {
        const char *have = usi_xml_attr(a, "name");
        usi_guess_offer(&guess, have);
        append(list, sizeof list, have);
    }
    if (guess.best) {
        snprintf(remedy, sizeof remedy, "did you mean %.60s? allowed: %.290s", guess.best, list);
    } else {
        snprintf(remedy, sizeof remedy, "remove it; allowed: %.300s", list);
    }
    return usi_fail(r, US_ERR_SCHEMA, node, remedy, "<%.60s> has no attribute \"%.60s\"",
                    (const char *)node->name, name);
}

static us_status fail_missing_attribute(usi_reader *r, const xmlNode *schema, const xmlNode *node,
                                        const char *name) {
    const xmlNode *type = type_of(schema, node),
                  *attribute = type ? find_attribute(schema, type, name) : NULL;
    char about[200] = "", remedy[300];
    if (attribute) documentation(attribute, about, sizeof about);
    snprintf(remedy, sizeof remedy, "add %.60s=\"...\": %.200s", name, about);
    return usi_fail(r, US_ERR_SCHEMA, node, remedy, "<%.60s> lacks the attribute \"%.60s\"",
                    (const char *)node->name, name);
}

static us_status fail_value(usi_reader *r, const xmlNode *schema, const xmlNode *node, const char *name) {
    const xmlNode *type = type_of(schema, node),
                  *attribute = type ? find_attribute(schema, type, name) : NULL;
    const char *simple = attribute ? usi_xml_attr(attribute, "type") : NULL,
               *value = usi_xml_attr(node, name);
    const xmlNode *values = simple ? named(schema, "simpleType", simple) : NULL;
    usi_guess guess = usi_guess_start(value ? value : "");
    char list[300] = "", remedy[384] = "";
    for (const xmlNode *v = usi_xml_child(usi_xml_child(values, "restriction"), "enumeration"); v;
         v = usi_xml_next(v, "enumeration")) {
        usi_guess_offer(&guess, usi_xml_attr(v, "value"));
        append(list, sizeof list, usi_xml_attr(v, "value"));
    }
    if (list[0]) {
        if (guess.best) snprintf(remedy, sizeof remedy, "did you mean %.60s? ", guess.best);
        snprintf(remedy + strlen(remedy), sizeof remedy - strlen(remedy), "write one of: %.250s", list);
    } else {
        documentation(values, remedy, sizeof remedy);
    }
    return usi_fail(r, list[0] ? US_ERR_VALUE : US_ERR_NAME, node, remedy, "%.60s: invalid value \"%.60s\"",
                    name, value ? value : "");
}

// An element that is not allowed in its place: unknown, or known but in the wrong order or too often.
static us_status fail_element(usi_reader *r, const xmlNode *schema, const xmlNode *node) {
    const char *name = (const char *)node->name;
    const xmlNode *parent = node->parent && node->parent->type == XML_ELEMENT_NODE ? node->parent : NULL;
    const xmlNode *type = parent ? type_of(schema, parent) : NULL, *content = type ? content_of(type) : NULL;
    usi_guess guess = usi_guess_start(name);
    char list[300] = "", remedy[384] = "";
    bool is_known = false;
    for (const xmlNode *e = usi_xml_child(content, "element"); e; e = usi_xml_next(e, "element")) {
        const char *have = usi_xml_attr(e, "name");
        is_known |= strcmp(have, name) == 0;
        usi_guess_offer(&guess, have);
        append(list, sizeof list, have);
    }
    const char *where = parent ? (const char *)parent->name : "the file";
    if (is_known) {
        snprintf(remedy, sizeof remedy, "in this order, each once unless said otherwise: %.250s", list);
        return usi_fail(r, US_ERR_SCHEMA, node, remedy,
                        "<%.60s> is in the wrong place in <%.60s>, or once too often", name, where);
    }
    if (guess.best) snprintf(remedy, sizeof remedy, "did you mean <%.60s>? ", guess.best);
    snprintf(remedy + strlen(remedy), sizeof remedy - strlen(remedy),
             list[0] ? "allowed there: %.250s" : "nothing is allowed inside it%s", list);
    return usi_fail(r, US_ERR_SCHEMA, node, remedy, "<%.60s> is not allowed in <%.60s>", name, where);
}

// Makes the plain text of libxml2's message, which has the names in single quotes.
static us_status explain(usi_reader *r, const xmlNode *schema, const finding *f) {
    const xmlNode *node = f->node;
    char name[128] = "";
    const char *quoted = strstr(f->message, "ttribute '");
    if (quoted) snprintf(name, sizeof name, "%.*s", (int)strcspn(quoted + 10, "'"), quoted + 10);
    if (node && name[0] && strstr(f->message, "is not allowed"))
        return fail_unknown_attribute(r, schema, node, name);
    if (node && name[0] && strstr(f->message, "required but missing"))
        return fail_missing_attribute(r, schema, node, name);
    if (node && name[0]) return fail_value(r, schema, node, name);
    if (node && strstr(f->message, "not expected")) return fail_element(r, schema, node);
    if (node && strstr(f->message, "Missing child")) {
        const char *expected = strstr(f->message, "( ");
        char remedy[200];
        snprintf(remedy, sizeof remedy, "add what is missing: %.*s",
                 expected ? (int)strcspn(expected + 2, ")") : 0, expected ? expected + 2 : "");
        return usi_fail(r, US_ERR_SCHEMA, node, remedy, "<%.60s> is not complete", (const char *)node->name);
    }
    if (node && (strstr(f->message, "haracter content") || strstr(f->message, "lement content"))) {
        const xmlNode *type = type_of(schema, node), *content = type ? content_of(type) : NULL;
        const xmlNode *child = usi_xml_child(node, NULL);
        if (!content && child) return fail_element(r, schema, child);
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "values are written as attributes; remove the text between the elements",
                        "<%.60s> has text in it, which is not allowed", (const char *)node->name);
    }
    return usi_fail(r, US_ERR_SCHEMA, node, "compare with docs/scene-file.md", "%s",
                    f->message[0] ? f->message : "the file does not follow the schema");
}

// Bytes that libxml2 takes for our schema, with room: 3 MB were seen.
static const size_t schema_memory = (size_t)4 << 20;

us_status usi_scene_validate(usi_reader *r, xmlDoc *doc) {
    us_status status = US_OK;
    if (!usi_memory_is_there(schema_memory)) return usi_fail_memory(r);
    finding found = {0};
    errno = 0;
    xmlSchemaParserCtxt *parser = xmlSchemaNewMemParserCtxt(usi_scene_xsd, (int)usi_scene_xsd_length);
    if (parser) xmlSchemaSetParserErrors(parser, ignore, ignore, NULL);
    xmlSchema *schema = parser ? xmlSchemaParse(parser) : NULL;
    xmlSchemaValidCtxt *validator = schema ? xmlSchemaNewValidCtxt(schema) : NULL;
    if (validator) {
        xmlSchemaSetValidStructuredErrors(validator, on_invalid, &found);
        int result = xmlSchemaValidateDoc(validator, doc);
        if (result != 0) {
            xmlDoc *source = xmlReadMemory(usi_scene_xsd, (int)usi_scene_xsd_length, "scene.xsd", NULL,
                                           XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
            status =
                source && result > 0 ? explain(r, xmlDocGetRootElement(source), &found) : usi_fail_memory(r);
            xmlFreeDoc(source);
        }
    } else {
        // The schema is part of the library and is known to be good: only memory can be short.
        status = usi_fail_memory(r);
    }
    // What libxml2 left out for want of memory was not checked.
    if (errno == ENOMEM) status = usi_fail_memory(r);
    xmlSchemaFreeValidCtxt(validator);
    xmlSchemaFree(schema);
    xmlSchemaFreeParserCtxt(parser);
    return status;
}
