// Reading XML files safely: shared by the scene reader and the URDF reader.
//
// A usi_reader is the context of one load: the spec, the error, and the memory of temporary texts. Files may
// be nested (a scene names robots and includes other scenes); all of them share one reader.
#ifndef USI_SPEC_XML_H
#define USI_SPEC_XML_H

#include <libxml/tree.h>

#include "base/memory.h"
#include "base/text_value.h"
#include "understudy/spec.h"

enum {
    USI_FILE_LIMIT = 64 * 1024 * 1024,  // bytes of one XML file; larger ones are refused before they are read
    USI_NAME_LIMIT = 200,               // bytes of one name: keeps full names within the texts of us_error
};

typedef struct usi_reader {
    us_spec *spec;
    const us_load_def *def;
    us_error *err;     // may be NULL
    usi_arena memory;  // temporary texts, given back by usi_reader_fini
    // The GeoTIFF that was read last as ground, still open: other rasters are resampled to its frame. Or
    // NULL; closed by usi_scene_read.
    struct usi_raster *ground;
    // The process that reads mesh files, from the first mesh on (spec/mesh_child.c), and our end of its
    // socket.
    int mesh_pid, mesh_socket;  // 0: none
    // One robot of what is read, by another name and in another place (spec/spawn.h); NULL: all.
    const struct usi_robot_pick *pick;
} usi_reader;

void usi_reader_init(usi_reader *r, us_spec *spec, const us_load_def *def, us_error *err);
void usi_reader_fini(usi_reader *r);
// Memory and texts that live until usi_reader_fini. NULL when there is no memory (report it with
// usi_fail_memory).
void *usi_reader_alloc(usi_reader *r, size_t size);
char *usi_reader_text(usi_reader *r, const char *format, ...) US_PRINTF(2, 3);

// Reads a whole regular file; the text belongs to the reader and is ended by 0. `from` (may be NULL) is the
// place that names the file: an error is reported there, or at the file itself. Errors: US_ERR_IO,
// US_ERR_LIMIT.
us_status usi_file_read(usi_reader *r, const char *path, const us_place *from, char **out_text,
                        size_t *out_length);
// Whether the load may open a file that `node` names (us_load_def.may_open): asked before each file is
// opened.
us_status usi_reader_permit(usi_reader *r, const xmlNode *node, const char *kind, const char *path);
// `name` as seen from the directory of `from_file`; absolute names stay. The path belongs to the reader; NULL
// without memory.
char *usi_path_beside(usi_reader *r, const char *from_file, const char *name);

// Parses without network, without external files and without entities of its own: any DOCTYPE is refused.
// Nesting deeper than 256 is refused by libxml2. Free the document with xmlFreeDoc. Errors: US_ERR_SYNTAX
// with file, line and column.
us_status usi_xml_parse(usi_reader *r, const char *text, size_t length, const char *path, xmlDoc **out_doc);

// Where a node was written. `element_buf` gets a text like: joint "elbow". The file is the one given to
// usi_xml_parse, or that of the node's usi_source.
us_place usi_xml_place(const usi_reader *r, const xmlNode *node, char *element_buf, size_t cap);
const char *usi_xml_file(const xmlNode *node);
int32_t usi_xml_line(const xmlNode *node);
// Where included nodes come from: xmlNode._private of the topmost of them points to it.
typedef struct usi_source {
    const char *file;
    int32_t depth;  // 0: the file that was asked for, 1: included by it, ...
} usi_source;
int32_t usi_xml_depth(const xmlNode *node);

// Fills the reader's error at the node (NULL: no place) and returns `code`. `remedy` may be NULL.
us_status usi_fail(usi_reader *r, us_status code, const xmlNode *node, const char *remedy, const char *format,
                   ...) US_PRINTF(5, 6);
us_status usi_fail_memory(usi_reader *r);
// Adds a warning to the spec. Fails only without memory.
us_status usi_warn(usi_reader *r, const xmlNode *node, const char *remedy, const char *format, ...)
    US_PRINTF(4, 5);

// The text of an attribute, borrowed, or NULL when it is absent.
const char *usi_xml_attr(const xmlNode *node, const char *name);
// Attributes as values. A missing one leaves *out as it is when it is not required, and is US_ERR_SCHEMA when
// it is. Numbers: the whole text must be used, C locale, finite, magnitude at most 1e15, no unit; otherwise
// US_ERR_VALUE.
// usi_xml_doubles: exactly n numbers. Booleans: true false 1 0.
us_status usi_xml_double(usi_reader *r, const xmlNode *node, const char *name, bool is_required, double *out);
us_status usi_xml_doubles(usi_reader *r, const xmlNode *node, const char *name, bool is_required, int n,
                          double *out);
us_status usi_xml_int(usi_reader *r, const xmlNode *node, const char *name, bool is_required, int32_t *out);
us_status usi_xml_bool(usi_reader *r, const xmlNode *node, const char *name, bool is_required, bool *out);

// Elements by name, in any namespace; NULL: any name. usi_xml_child: the first child; usi_xml_next: the next
// sibling.
bool usi_xml_is(const xmlNode *node, const char *name);
const xmlNode *usi_xml_child(const xmlNode *parent, const char *name);
const xmlNode *usi_xml_next(const xmlNode *node, const char *name);

// The readers. `X_WR` places the root link; `name` is the group's name ("": no prefix, otherwise full names
// are "name/link").
us_status usi_scene_read(usi_reader *r, xmlDoc *doc);
us_status usi_urdf_read(usi_reader *r, xmlDoc *doc, const char *name, us_pose X_WR, us_base base,
                        bool excludes_overlaps, int32_t *out_group);

// Adds the joint that holds a group's root link: "fixed_base" with X_PF = X_WR, or "floating_base" with q0 =
// X_WR; `name`: another name for it, or NULL.
us_status usi_base_add(usi_reader *r, const xmlNode *node, int32_t group, const char *group_name,
                       int32_t root, us_pose X_WR, us_base base, const char *name);

// Meshes and shapes. A resolved path belongs to the reader.
us_status usi_mesh_resolve(usi_reader *r, const xmlNode *node, const char *uri, const char *from_file,
                           char **out_path);
us_status usi_mesh_load(usi_reader *r, const xmlNode *node, us_shape_def *shape);
us_inertia usi_shape_unit_inertia(const us_shape_def *shape);

#endif
