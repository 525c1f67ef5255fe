// Reading XML files safely: files, parsing, places, attributes, suggestions.
//
// What is refused, and why. A DOCTYPE is the door to two old attacks: entities that contain entities grow a
// small file to gigabytes, and external entities read any file of the reader's machine. No robot or scene
// file needs one, so that the declarations are noticed but never carried out, and the file is refused with
// the reason that fits what was found.
#include "spec/xml.h"

#include "spec/mesh_file.h"

#include <errno.h>
#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// ---- The reader's memory ----

void usi_reader_init(usi_reader *r, us_spec *spec, const us_load_def *def, us_error *err) {
    r->spec = spec;
    r->def = def;
    r->err = err;
    r->ground = NULL;
    r->pick = NULL;
    r->mesh_pid = r->mesh_socket = 0;
    usi_arena_init(&r->memory, &def->allocator);
}

void usi_reader_fini(usi_reader *r) {
    usi_mesh_child_end(r);
    usi_arena_fini(&r->memory);
}

void *usi_reader_alloc(usi_reader *r, size_t size) {
    return usi_arena_alloc(&r->memory, size, _Alignof(max_align_t));
}

char *usi_reader_text(usi_reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : usi_arena_alloc(&r->memory, (size_t)length + 1, 1);
    if (!text) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

// ---- Errors and places ----

static const usi_source *source_of(const xmlNode *node) {
    const xmlNode *n = node;
    while (n && n->type == XML_ELEMENT_NODE && !n->_private)
        n = n->parent;
    return n && n->type == XML_ELEMENT_NODE ? n->_private : NULL;
}

const char *usi_xml_file(const xmlNode *node) {
    const usi_source *source = source_of(node);
    if (source) return source->file;
    return node && node->doc && node->doc->URL ? (const char *)node->doc->URL : NULL;
}

int32_t usi_xml_depth(const xmlNode *node) {
    const usi_source *source = source_of(node);
    return source ? source->depth : 0;
}

int32_t usi_xml_line(const xmlNode *node) {
    long line = node ? xmlGetLineNo((xmlNode *)node) : 0;
    return line > 0 && line < INT32_MAX ? (int32_t)line : 0;
}

us_place usi_xml_place(const usi_reader *r, const xmlNode *node, char *element_buf, size_t cap) {
    (void)r;
    us_place place = {0};
    if (!node) return place;
    if (node->type == XML_ELEMENT_NODE && cap > 0) {
        // The attribute that tells this element from its siblings.
        const char *name = usi_xml_attr(node, "name");
        if (!name) name = usi_xml_attr(node, "joint");
        if (!name) name = usi_xml_attr(node, "link");
        if (!name) name = usi_xml_attr(node, "file");
        snprintf(element_buf, cap, name ? "%.60s \"%.60s\"" : "%.60s", (const char *)node->name, name);
        place.element = element_buf;
    }
    place.file = usi_xml_file(node);
    place.line = usi_xml_line(node);
    return place;
}

us_status usi_fail(usi_reader *r, us_status code, const xmlNode *node, const char *remedy, const char *format,
                   ...) {
    char element[128], message[512];
    us_place place = usi_xml_place(r, node, element, sizeof element);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return us_error_set(r->err, code, &place, remedy, "%s", message);
}

us_status usi_fail_memory(usi_reader *r) {
    return us_error_set(r->err, US_ERR_MEMORY, NULL, "free memory, or load a smaller file",
                        "there is not enough memory to read the file");
}

us_status usi_warn(usi_reader *r, const xmlNode *node, const char *remedy, const char *format, ...) {
    char element[128], message[512];
    us_place place = usi_xml_place(r, node, element, sizeof element);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    us_error warning;
    us_error_set(&warning, US_OK, &place, remedy, "%s", message);
    return us_spec_add_warning(r->spec, &warning) ? usi_fail_memory(r) : US_OK;
}

// ---- Files ----

char *usi_path_beside(usi_reader *r, const char *from_file, const char *name) {
    const char *slash = from_file && name[0] != '/' ? strrchr(from_file, '/') : NULL;
    return slash ? usi_reader_text(r, "%.*s/%s", (int)(slash - from_file), from_file, name)
                 : usi_reader_text(r, "%s", name);
}

us_status usi_file_read(usi_reader *r, const char *path, const us_place *from, char **out_text,
                        size_t *out_length) {
    us_place self = {.file = path};
    const us_place *place = from ? from : &self;
    struct stat about;
    if (stat(path, &about) != 0) {
        int why = errno;
        const char *remedy = from ? "check the name; relative names start at the file that names them"
                                  : "check the name and the directory in which you are";
        return us_error_set(r->err, US_ERR_IO, place, why == EACCES ? "make it readable (chmod)" : remedy,
                            why == ENOENT || why == ENOTDIR ? "the file \"%s\" does not exist"
                                                            : "the file \"%s\" cannot be opened",
                            path);
    }
    if (S_ISDIR(about.st_mode))
        return us_error_set(r->err, US_ERR_IO, place, "name a file inside it",
                            "\"%s\" is a directory, not a file", path);
    if (!S_ISREG(about.st_mode))
        return us_error_set(r->err, US_ERR_IO, place, "name a regular file", "\"%s\" is not a regular file",
                            path);
    if (about.st_size > USI_FILE_LIMIT) {
        return us_error_set(r->err, US_ERR_LIMIT, place,
                            "split the file with <include>, or keep large data in mesh files",
                            "the file \"%s\" is larger than %d MiB", path, USI_FILE_LIMIT / (1024 * 1024));
    }
    size_t size = (size_t)about.st_size;
    char *text = usi_arena_alloc(&r->memory, size + 1, 1);
    if (!text) return usi_fail_memory(r);
    FILE *file = fopen(path, "rb");
    if (!file && errno == ENOMEM) return usi_fail_memory(r);
    if (!file)
        return us_error_set(r->err, US_ERR_IO, place, "make it readable (chmod)",
                            "the file \"%s\" cannot be opened", path);
    size_t length = fread(text, 1, size, file);
    bool is_bad = ferror(file) != 0;
    fclose(file);
    if (is_bad)
        return us_error_set(r->err, US_ERR_IO, place, "check the disk", "the file \"%s\" cannot be read",
                            path);
    text[length] = 0;
    *out_text = text;
    *out_length = length;
    return US_OK;
}

us_status usi_reader_permit(usi_reader *r, const xmlNode *node, const char *kind, const char *path) {
    const us_load_def *def = r->def;
    if (!def->may_open || def->may_open(def->context, kind, path)) return US_OK;
    return usi_fail(r, US_ERR_ACCESS, node, "allow it where you trust who wrote this (us_load_def.may_open)",
                    "the %s \"%.200s\" may not be opened", kind, path);
}

// ---- Parsing ----

// What the parser found beside the tree.
typedef struct findings {
    bool has_doctype, has_entity, has_nested, has_external;
    char entity[64];    // the first entity worth naming
    char external[96];  // what an external one would have read
    bool has_error;
    bool is_at_end;  // the first error is that the file ends
    int code, line, column;
    char message[256];  // of the first error
} findings;

static void on_doctype(void *context, const xmlChar *name, const xmlChar *external_id,
                       const xmlChar *system_id) {
    findings *f = ((xmlParserCtxt *)context)->_private;
    (void)name;
    (void)external_id;
    if (!f->has_doctype) {
        f->line = ((xmlParserCtxt *)context)->input ? ((xmlParserCtxt *)context)->input->line : 0;
        f->column = 0;
    }
    f->has_doctype = true;
    if (system_id && !f->has_external) {
        f->has_external = true;
        snprintf(f->external, sizeof f->external, "%s", (const char *)system_id);
    }
}

static void on_entity(void *context, const xmlChar *name, int type, const xmlChar *public_id,
                      const xmlChar *system_id, xmlChar *content) {
    findings *f = ((xmlParserCtxt *)context)->_private;
    (void)type;
    (void)public_id;
    bool is_nested = content && strchr((const char *)content, '&');
    if (!f->has_entity || (is_nested && !f->has_nested) || (system_id && !f->has_external)) {
        snprintf(f->entity, sizeof f->entity, "%s", (const char *)name);
    }
    f->has_entity = true;
    f->has_nested |= is_nested;
    if (system_id && !f->has_external) {
        f->has_external = true;
        snprintf(f->external, sizeof f->external, "%s", (const char *)system_id);
    }
}

static void on_external_subset(void *context, const xmlChar *name, const xmlChar *external_id,
                               const xmlChar *system_id) {
    (void)context;
    (void)name;
    (void)external_id;
    (void)system_id;
}

static void on_error(void *context, xmlError *error) {
    findings *f = ((xmlParserCtxt *)context)->_private;
    if (!f || f->has_error || error->level < XML_ERR_ERROR) return;
    const xmlParserInput *input = ((xmlParserCtxt *)context)->input;
    f->has_error = true;
    f->is_at_end = input && input->cur >= input->end;
    f->code = error->code;
    if (!f->has_doctype) {
        f->line = error->line;
        f->column = error->int2;
    }
    snprintf(f->message, sizeof f->message, "%s", error->message ? error->message : "");
    f->message[strcspn(f->message, "\n")] = 0;
}

// The errors that people make, in plain language; other errors keep libxml2's own text.
static us_status fail_syntax(usi_reader *r, const findings *f, const us_place *place) {
    const char *remedy = "correct the XML here; `xmllint --noout FILE` shows the place",
               *message = f->message[0] ? f->message : "the file is not well-formed XML";
    switch (f->code) {
    case XML_ERR_TAG_NAME_MISMATCH:
        remedy = "close the elements in the opposite order in which they were opened";
        break;
    case XML_ERR_DOCUMENT_END:
        remedy = "a file has one root element: remove what stands behind its end";
        break;
    case XML_ERR_DOCUMENT_EMPTY:
        message = "this is not XML: there is no element";
        remedy = "the first thing in the file must be an element, for example <scene>";
        break;
    case XML_ERR_ATTRIBUTE_REDEFINED:
        remedy = "write each attribute of an element once";
        break;
    case XML_ERR_ATTRIBUTE_NOT_STARTED:
        message = "the value of an attribute is not in quotes";
        remedy = "write attribute values in quotes: name=\"value\"";
        break;
    case XML_ERR_LT_IN_ATTRIBUTE:
        remedy = "write &lt; instead of < in an attribute, and check for a missing quote before it";
        break;
    case XML_ERR_UNSUPPORTED_ENCODING:
        remedy = "save the file as UTF-8";
        break;
    case XML_ERR_INVALID_CHAR:
        remedy = "remove the control character; the file may be damaged or not a text file";
        break;
    case XML_ERR_UNDECLARED_ENTITY:
        remedy = "write the character itself; only &lt; &gt; &amp; &quot; &apos; are known";
        break;
    default:
        break;
    }
    if (strstr(f->message, "not proper UTF-8")) {
        message = "the text is not valid UTF-8";
        remedy = "save the file as UTF-8, or name its encoding in the first line: <?xml version=\"1.0\" "
                 "encoding=\"...\"?>";
    } else if (strstr(f->message, "attribute name") && !f->is_at_end) {
        message = "a tag is not finished: the name of an attribute is expected here";
        remedy = "close the tag with > or />, or correct the attribute";
    } else if (strstr(f->message, "xcessive depth")) {
        message = "the elements are nested more than 256 deep";
        remedy = "nest less deeply";
    } else if (f->is_at_end && f->code != XML_ERR_DOCUMENT_EMPTY) {
        message = "the file ends too early";
        remedy = "the file seems to be cut off: restore its end, or close what is still open";
    }
    return us_error_set(r->err, US_ERR_SYNTAX, place, remedy, "%s", message);
}

static us_status fail_parse(usi_reader *r, const char *path, const findings *f) {
    us_place place = {.file = path, .line = f->line, .column = f->column};
    const char *remedy = "remove the <!DOCTYPE ...> and what it declares; use <parameter> in scenes for "
                         "values used more than once";
    if (f->has_external) {
        return us_error_set(
            r->err, US_ERR_SYNTAX, &place, remedy,
            "the DOCTYPE names an external file (\"%s\"): external entities are refused, because they "
            "could read any file of this machine",
            f->external);
    }
    if (f->has_nested) {
        return us_error_set(
            r->err, US_ERR_SYNTAX, &place, remedy,
            "the entity \"%s\" is made of other entities: such nested entities are refused, because they "
            "could grow to any size",
            f->entity);
    }
    if (f->has_entity) {
        return us_error_set(r->err, US_ERR_SYNTAX, &place, remedy,
                            "the file declares the entity \"%s\": entities are refused", f->entity);
    }
    if (f->has_doctype)
        return us_error_set(r->err, US_ERR_SYNTAX, &place, remedy,
                            "the file has a DOCTYPE, which is refused");
    if (f->code == XML_ERR_NO_MEMORY) return usi_fail_memory(r);
    return fail_syntax(r, f, &place);
}

static void on_stray_error(void *context, xmlError *error) {
    (void)context;
    (void)error;
}

// The place of an XML declaration that has blanks or comments before it; `length`: there is none, or it is
// first as it should be.
static size_t find_late_declaration(const char *text, size_t length) {
    size_t at = length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, first = at;
    for (;;) {
        while (at < length && usi_is_blank(text[at]))
            at++;
        if (length - at < 7) return length;
        if (memcmp(text + at, "<?xml", 5) == 0 && usi_is_blank(text[at + 5])) return at > first ? at : length;
        if (memcmp(text + at, "<!--", 4) != 0) return length;
        for (at += 4; at + 3 <= length && memcmp(text + at, "-->", 3) != 0;)
            at++;
        at += 3;
        if (at > length) return length;
    }
}

// Moves a late declaration to the front, where XML wants it and where it can name the encoding. What stands
// behind keeps its line.
static us_status move_declaration(usi_reader *r, const char *path, const char **text, size_t length) {
    size_t at = find_late_declaration(*text, length), end = at;
    while (end + 2 <= length && memcmp(*text + end, "?>", 2) != 0)
        end++;
    if (end + 2 > length) return US_OK;
    size_t n = end + 2 - at, first = (*text)[0] == '<' || usi_is_blank((*text)[0]) ? 0 : 3;
    char *moved = usi_arena_alloc(&r->memory, length + 1, 1);
    if (!moved) return usi_fail_memory(r);
    memcpy(moved, *text, first);
    memcpy(moved + first, *text + at, n);
    memcpy(moved + first + n, *text + first, at - first);
    memcpy(moved + end + 2, *text + end + 2, length - end - 2);
    us_place place = {.file = path, .line = 1};
    for (size_t i = 0; i < at; i++)
        place.line += (*text)[i] == '\n';
    moved[length] = 0;
    *text = moved;
    us_error warning;
    us_error_set(&warning, US_OK, &place, "move it to the very first line",
                 "the XML declaration stands behind other text: it is read as if it came first");
    return us_spec_add_warning(r->spec, &warning) ? usi_fail_memory(r) : US_OK;
}

// Inside a document type there is nothing to hang them on (on_doctype keeps none), and libxml2 would lose
// them.
static void on_comment(void *context, const xmlChar *text) {
    if (((xmlParserCtxt *)context)->inSubset == 0) xmlSAX2Comment(context, text);
}

static void on_instruction(void *context, const xmlChar *target, const xmlChar *data) {
    if (((xmlParserCtxt *)context)->inSubset == 0) xmlSAX2ProcessingInstruction(context, target, data);
}

us_status usi_xml_parse(usi_reader *r, const char *text, size_t length, const char *path, xmlDoc **out_doc) {
    us_place place = {.file = path, .line = 1};
    if (length > USI_FILE_LIMIT)
        return us_error_set(r->err, US_ERR_LIMIT, &place, "split the file with <include>",
                            "the text is too long");
    size_t blank = 0;
    while (blank < length && usi_is_blank(text[blank]))
        blank++;
    if (blank == length)
        return us_error_set(r->err, US_ERR_SYNTAX, &place, "write a <scene> or a <robot> into it",
                            "the file is empty");
    // A zero byte is found in every binary format and in no text but UTF-16, which starts with a mark or a
    // zero beside '<'.
    unsigned char a = (unsigned char)text[0], b = length > 1 ? (unsigned char)text[1] : 0;
    bool is_utf16 =
        (a == 0xFE && b == 0xFF) || (a == 0xFF && b == 0xFE) || (a == 0 && b == '<') || (a == '<' && b == 0);
    if (!is_utf16 && memchr(text, 0, length)) {
        return us_error_set(r->err, US_ERR_SYNTAX, &place,
                            "name an XML file (a scene or a URDF); meshes are named inside them",
                            "the file is binary, not XML text");
    }
    us_status status = is_utf16 ? US_OK : move_declaration(r, path, &text, length);
    if (status) return status;
    findings found = {0};
    xmlParserCtxt *context = xmlNewParserCtxt();
    if (!context) return usi_fail_memory(r);
    context->_private = &found;
    context->sax->internalSubset = on_doctype;
    context->sax->externalSubset = on_external_subset;
    context->sax->entityDecl = on_entity;
    context->sax->serror = on_error;
    context->sax->comment = on_comment;
    context->sax->processingInstruction = on_instruction;
    int options = XML_PARSE_NONET | XML_PARSE_NODICT | XML_PARSE_BIG_LINES;
    // Errors of character conversion know no context and would be printed: this thread's last resort is
    // silent meanwhile.
    xmlStructuredErrorFunc old_handler = xmlStructuredError;
    void *old_context = xmlStructuredErrorContext;
    xmlSetStructuredErrorFunc(NULL, on_stray_error);
    errno = 0;
    xmlDoc *doc = xmlCtxtReadMemory(context, text, (int)length, path, NULL, options);
    // Where memory runs out libxml2 leaves out names and attributes, and does not always call that an error.
    const bool is_short = errno == ENOMEM || found.code == XML_ERR_NO_MEMORY;
    xmlSetStructuredErrorFunc(old_context, old_handler);
    bool is_good = doc && !is_short && context->wellFormed && !found.has_doctype && xmlDocGetRootElement(doc);
    xmlFreeParserCtxt(context);
    if (is_good) {
        // libxml2 keeps the path as an escaped URI; errors must show it as it was given.
        xmlFree((void *)doc->URL);
        doc->URL = xmlStrdup((const xmlChar *)path);
        *out_doc = doc;
        return US_OK;
    }
    xmlFreeDoc(doc);
    return is_short ? usi_fail_memory(r) : fail_parse(r, path, &found);
}

// ---- Elements and attributes ----

bool usi_xml_is(const xmlNode *node, const char *name) {
    return node && node->type == XML_ELEMENT_NODE && (!name || strcmp((const char *)node->name, name) == 0);
}

static const xmlNode *first_from(const xmlNode *node, const char *name) {
    while (node && !usi_xml_is(node, name))
        node = node->next;
    return node;
}

const xmlNode *usi_xml_child(const xmlNode *parent, const char *name) {
    return parent ? first_from(parent->children, name) : NULL;
}
const xmlNode *usi_xml_next(const xmlNode *node, const char *name) {
    return node ? first_from(node->next, name) : NULL;
}

const char *usi_xml_attr(const xmlNode *node, const char *name) {
    if (!node || node->type != XML_ELEMENT_NODE) return NULL;
    for (const xmlAttr *a = node->properties; a; a = a->next) {
        if (strcmp((const char *)a->name, name) != 0) continue;
        return a->children && a->children->content ? (const char *)a->children->content : "";
    }
    return NULL;
}

static us_status fail_missing(usi_reader *r, const xmlNode *node, const char *name) {
    char remedy[160];
    snprintf(remedy, sizeof remedy, "add %.60s=\"...\" to it", name);
    return usi_fail(r, US_ERR_SCHEMA, node, remedy, "the attribute \"%.60s\" is missing", name);
}

us_status usi_xml_doubles(usi_reader *r, const xmlNode *node, const char *name, bool is_required, int n,
                          double *out) {
    const char *text = usi_xml_attr(node, name);
    if (!text) return is_required ? fail_missing(r, node, name) : US_OK;
    double values[16];
    if (n > 16) return usi_fail(r, US_ERR_ARG, node, NULL, "too many numbers are asked for");
    int count = 0;
    const char *s = text;
    for (;;) {
        while (usi_is_blank(*s))
            s++;
        if (!*s) break;
        const char *end;
        double value = 0;
        const char *wrong = usi_number_scan(s, &end, &value);
        const char *token_end = end;
        while (*token_end && !usi_is_blank(*token_end))
            token_end++;
        int length = token_end - s > 60 ? 60 : (int)(token_end - s);
        if (wrong) {
            return usi_fail(r, US_ERR_VALUE, node, "write a decimal number such as 0.25 or -1.5e-3",
                            "%s: \"%.*s\" %s", name, length, s, wrong);
        }
        if (token_end != end) {
            return usi_fail(r, US_ERR_VALUE, node,
                            "write plain numbers in SI units, separated by blanks, such as 0.25 or -1.5e-3",
                            "%s: \"%.*s\" is not a number", name, length, s);
        }
        if (count < n) values[count] = value;
        count++;
        s = end;
    }
    if (count != n) {
        return usi_fail(r, US_ERR_VALUE, node,
                        n == 1 ? "write exactly one number"
                               : "write exactly as many numbers as are needed, separated by blanks",
                        "%s: %d number%s needed, %d given", name, n, n == 1 ? " is" : "s are", count);
    }
    memcpy(out, values, (size_t)n * sizeof *out);
    return US_OK;
}

us_status usi_xml_double(usi_reader *r, const xmlNode *node, const char *name, bool is_required,
                         double *out) {
    return usi_xml_doubles(r, node, name, is_required, 1, out);
}

us_status usi_xml_int(usi_reader *r, const xmlNode *node, const char *name, bool is_required, int32_t *out) {
    double value = *out;
    us_status status = usi_xml_doubles(r, node, name, is_required, 1, &value);
    if (status || !usi_xml_attr(node, name)) return status;
    if (!(value >= INT32_MIN && value <= INT32_MAX) || value != (double)(int32_t)value) {
        return usi_fail(r, US_ERR_VALUE, node, "write a whole number",
                        "%s: \"%.60s\" is not a whole number in range", name, usi_xml_attr(node, name));
    }
    *out = (int32_t)value;
    return US_OK;
}

us_status usi_xml_bool(usi_reader *r, const xmlNode *node, const char *name, bool is_required, bool *out) {
    const char *text = usi_xml_attr(node, name);
    if (!text) return is_required ? fail_missing(r, node, name) : US_OK;
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0) {
        *out = true;
    } else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0) {
        *out = false;
    } else {
        return usi_fail(r, US_ERR_VALUE, node, "write true or false", "%s: invalid boolean \"%.60s\"", name,
                        text);
    }
    return US_OK;
}
