// Mesh files: where they are, and what is in them.
//
// Assimp reads the formats, in a process of its own (mesh_child.c); triangles and node transforms are taken
// from its answer. Conventions:
//   STL, OBJ   have neither unit nor up-axis: taken as they are, in metres.
//   DAE        <unit meter="..."> is honoured. A stated <up_axis> is honoured: y-up and x-up are rotated to
//              z-up, with a warning, because RViz and MoveIt ignore it. A file that states none is taken as
//              it is, as every robot tool does (Collada itself would say y-up).
//   glTF, GLB  metres and y-up by definition: rotated to z-up, (x, y, z) -> (x, -z, y), as Blender, Drake and
//              RViz do.
// The scale of the URDF comes last, in the axes of the result.
#include "spec/mesh_file.h"

#include <assimp/postprocess.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec/spec.h"

enum {
    HEAD_BYTES = 64 * 1024,  // of the file's beginning and end, looked at before Assimp does
};
static const long long file_limit = 2LL * 1024 * 1024 * 1024;

// ---- Finding the file ----

// Paths searched so far, for the warning.
typedef struct path_search {
    char path[PATH_MAX];
    bool is_found;
    char places[360];
    int n_more;  // left out for want of room
} path_search;

static void try_path(path_search *s, const char *format, ...) US_PRINTF(2, 3);
static void try_path(path_search *s, const char *format, ...) {
    if (s->is_found) return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(s->path, sizeof s->path, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof s->path) return;
    struct stat about;
    s->is_found = stat(s->path, &about) == 0 && S_ISREG(about.st_mode);
    if (s->is_found) return;
    size_t used = strlen(s->places);
    if (used + (size_t)length + 3 > sizeof s->places) {
        s->n_more++;
        return;
    }
    if (used > 0) {
        memcpy(s->places + used, ", ", 2);
        used += 2;
    }
    memcpy(s->places + used, s->path, (size_t)length + 1);
}

// DIR/NAME/rest, and DIR/rest when DIR itself is called NAME. `length`: of dir, without a slash at its end.
static void try_package(path_search *s, const char *dir, size_t length, const char *name, size_t name_length,
                        const char *rest) {
    while (length > 1 && dir[length - 1] == '/')
        length--;
    bool is_named = length > name_length && dir[length - name_length - 1] == '/' &&
                    strncmp(dir + length - name_length, name, name_length) == 0;
    is_named |= length == name_length && strncmp(dir, name, length) == 0;
    const char *slash = length == 1 && dir[0] == '/' ? "" : "/";
    if (is_named) try_path(s, "%.*s%s%s", (int)length, dir, slash, rest);
    try_path(s, "%.*s%s%.*s/%s", (int)length, dir, slash, (int)name_length, name, rest);
}

// The directories of a list like that of PATH. In an ament prefix a package lives in share/NAME.
static void try_environment(path_search *s, const char *variable, const char *inside, const char *name,
                            size_t name_length, const char *rest) {
    const char *list = getenv(variable);
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ":");
        char dir[PATH_MAX];
        int n = snprintf(dir, sizeof dir, "%.*s%s", (int)length, at, inside);
        if (length > 0 && n > 0 && (size_t)n < sizeof dir)
            try_package(s, dir, (size_t)n, name, name_length, rest);
        at += length;
        if (*at) at++;
    }
}

static void try_around_file(path_search *s, const char *from_file, const char *name, size_t name_length,
                            const char *rest) {
    char path[PATH_MAX];
    if (!realpath(from_file, path)) {
        // Text without a file: paths are relative to the working directory.
        char cwd[PATH_MAX];
        if (from_file[0] == '/' || !getcwd(cwd, sizeof cwd)) cwd[0] = 0;
        int n = snprintf(path, sizeof path, "%s%s%s", cwd, cwd[0] ? "/" : "", from_file);
        if (n < 0 || (size_t)n >= sizeof path) return;
    }
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = 0;
        try_package(s, path[0] ? path : "/", path[0] ? strlen(path) : 1, name, name_length, rest);
    }
}

static us_status warn_not_found(usi_reader *r, const xmlNode *node, const path_search *s, const char *uri,
                                const char *why) {
    char message[sizeof((us_error *)0)->message], more[32] = "";
    if (s->n_more > 0) snprintf(more, sizeof more, " and %d more", s->n_more);
    snprintf(message, sizeof message, "the mesh \"%.100s\" %s%s%s", uri, why, s->places, more);
    // A mesh is often named several times: one warning is enough.
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_warning; i++) {
        if (strcmp(us_spec_view_warning(r->spec, i)->message, message) == 0) return US_OK;
    }
    return usi_warn(r, node,
                    "the robot moves without it; to have it, put the file there, or name the directory that "
                    "holds the package (--path DIR)",
                    "%s", message);
}

us_status usi_mesh_resolve(usi_reader *r, const xmlNode *node, const char *uri, const char *from_file,
                           char **out_path) {
    *out_path = NULL;
    us_status status = usi_reader_permit(r, node, "mesh", uri);
    if (status) return status;
    path_search s = {0};
    const char *why = "was not found; looked at ", *scheme_end = strstr(uri, "://");
    bool is_package = strncmp(uri, "package://", 10) == 0, is_model = strncmp(uri, "model://", 8) == 0;
    if (is_package || is_model) {
        const char *name = scheme_end + 3, *slash = strchr(name, '/');
        size_t length = slash ? (size_t)(slash - name) : 0;
        if (length == 0 || length > USI_NAME_LIMIT)
            return warn_not_found(r, node, &s, uri, "names no file: write package://NAME/path");
        for (int32_t i = 0; i < r->def->n_search; i++)
            try_package(&s, r->def->search[i], strlen(r->def->search[i]), name, length, slash + 1);
        if (from_file) try_around_file(&s, from_file, name, length, slash + 1);
        try_environment(&s, "AMENT_PREFIX_PATH", "/share", name, length, slash + 1);
        try_environment(&s, "ROS_PACKAGE_PATH", "", name, length, slash + 1);
    } else if (strncmp(uri, "file://", 7) == 0 || uri[0] == '/') {
        try_path(&s, "%s", uri[0] == '/' ? uri : uri + 7);
    } else if (scheme_end) {
        why = "is not fetched: nothing is ever read from a network";
    } else {
        const char *slash = from_file ? strrchr(from_file, '/') : NULL;
        if (slash) try_path(&s, "%.*s/%s", (int)(slash - from_file), from_file, uri);
        if (!slash) try_path(&s, "%s", uri);
        for (int32_t i = 0; i < r->def->n_search; i++)
            try_path(&s, "%s/%s", r->def->search[i], uri);
    }
    if (!s.is_found) return warn_not_found(r, node, &s, uri, why);
    *out_path = usi_reader_text(r, "%s", s.path);
    return *out_path ? US_OK : usi_fail_memory(r);
}

// ---- Looking at the file before Assimp does ----

typedef enum up_axis {
    UP_AS_IS,
    UP_X,
    UP_Y
} up_axis;  // which way the file's up points; as is: z, or nothing is known

typedef struct mesh_file {
    const char *path;
    long long size;
    up_axis up;
} mesh_file;

bool usi_mesh_is(const char *path, const char *extension) {
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot + 1, extension) == 0;
}

static us_status fail_mesh(usi_reader *r, const xmlNode *node, const char *path, const char *remedy,
                           const char *what) {
    return usi_fail(r, US_ERR_MESH, node, remedy, "the mesh \"%.200s\" %.250s", path, what);
}

// Up to HEAD_BYTES at the file's beginning or end, ended by 0.
static size_t read_part(const mesh_file *mesh, bool is_end, char buffer[HEAD_BYTES + 1]) {
    FILE *file = fopen(mesh->path, "rb");
    if (!file) return 0;
    size_t n = 0;
    if (!is_end || mesh->size <= HEAD_BYTES || fseek(file, -HEAD_BYTES, SEEK_END) == 0)
        n = fread(buffer, 1, HEAD_BYTES, file);
    fclose(file);
    buffer[n] = 0;
    return n;
}

// A binary STL states its count of triangles, a text one has an end: both tell when a part is missing, which
// Assimp may not.
static us_status check_stl(usi_reader *r, const xmlNode *node, const mesh_file *mesh, char *buffer) {
    size_t n = read_part(mesh, false, buffer);
    unsigned char c[4] = {0};
    if (n >= 84) memcpy(c, buffer + 80, 4);
    long long count = (long long)c[0] | (long long)c[1] << 8 | (long long)c[2] << 16 | (long long)c[3] << 24;
    if (n >= 84 && mesh->size == 84 + 50 * count) {
        return count > 0 ? US_OK
                         : fail_mesh(r, node, mesh->path, "export it again: its count of triangles is 0",
                                     "has no triangles");
    }
    // Text, unless there is a byte that no text has.
    bool is_text = strncmp(buffer, "solid", 5) == 0 && strlen(buffer) == n;
    if (!is_text && n < 84)
        return fail_mesh(r, node, mesh->path, "write it again from the program that made it",
                         "is neither a text nor a binary STL file");
    if (!is_text && mesh->size < 84 + 50 * count) {
        return fail_mesh(r, node, mesh->path, "copy it again: its end is missing",
                         "is cut off: it is shorter than its count of triangles says");
    }
    if (is_text) {
        read_part(mesh, true, buffer);
        if (!strstr(buffer, "endsolid"))
            return fail_mesh(r, node, mesh->path, "copy it again: its end is missing",
                             "is cut off: there is no \"endsolid\" at its end");
    }
    return US_OK;
}

static void check_dae(mesh_file *mesh, char *buffer) {
    read_part(mesh, false, buffer);
    const char *axis = strstr(buffer, "<up_axis>");
    if (!axis) return;
    axis += strlen("<up_axis>");
    while (usi_is_blank(*axis))
        axis++;
    if (*axis == 'X') mesh->up = UP_X;
    if (*axis == 'Y') mesh->up = UP_Y;
}

static us_status check_file(usi_reader *r, const xmlNode *node, mesh_file *mesh) {
    struct stat about;
    if (stat(mesh->path, &about) != 0 || !S_ISREG(about.st_mode))
        return fail_mesh(r, node, mesh->path, "name a regular file", "is not a file");
    if (access(mesh->path, R_OK) != 0)
        return fail_mesh(r, node, mesh->path, "make it readable (chmod)", "cannot be opened");
    mesh->size = (long long)about.st_size;
    if (mesh->size == 0) return fail_mesh(r, node, mesh->path, "copy it again", "is an empty file");
    if (mesh->size > file_limit) {
        return usi_fail(r, US_ERR_LIMIT, node, "simplify the mesh, for example in Blender (Decimate)",
                        "the mesh \"%.200s\" is larger than 2 GiB", mesh->path);
    }
    static const char *const known[] = {"stl", "obj", "dae", "gltf", "glb"};
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known |= usi_mesh_is(mesh->path, known[i]);
    if (!is_known)
        return fail_mesh(r, node, mesh->path, "convert it to one of .stl .obj .dae .gltf .glb",
                         "is of a format that is not read");
    char *buffer = usi_alloc(&r->def->allocator, HEAD_BYTES + 1, 1);
    if (!buffer) return usi_fail_memory(r);
    us_status status = US_OK;
    read_part(mesh, false, buffer);
    if (strncmp(buffer, "version https://git-lfs", 23) == 0) {
        status = fail_mesh(r, node, mesh->path, "fetch the mesh with: git lfs pull",
                           "is a Git LFS pointer, not the mesh itself");
    } else if (usi_mesh_is(mesh->path, "stl")) {
        status = check_stl(r, node, mesh, buffer);
    } else if (usi_mesh_is(mesh->path, "dae")) {
        check_dae(mesh, buffer);
    }
    if (usi_mesh_is(mesh->path, "gltf") || usi_mesh_is(mesh->path, "glb")) mesh->up = UP_Y;
    usi_release(&r->def->allocator, buffer, HEAD_BYTES + 1, 1);
    return status;
}

// ---- What the reader answered ----

static usi_placement placement_of(const usi_mesh_node *node) {
    usi_placement X;
    for (int i = 0; i < 12; i++)
        X.m[i] = (double)node->m[i];
    return X;
}

static usi_placement placement_mul(const usi_placement *A, const usi_placement *B) {
    usi_placement C;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) {
            const double *a = A->m + 4 * i, *b = B->m + j;
            C.m[4 * i + j] = a[0] * b[0] + a[1] * b[4] + a[2] * b[8] + (j == 3 ? a[3] : 0);
        }
    }
    return C;
}

static usi_placement placement_of_up(up_axis up) {
    static const usi_placement as_is = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}},
                               from_x = {{0, -1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0}},
                               from_y = {{1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0}};
    return up == UP_X ? from_x : up == UP_Y ? from_y : as_is;
}

void usi_mesh_walk(const usi_mesh_scene *mesh, usi_mesh_visit *visit, void *context) {
    const usi_mesh_answer *a = &mesh->answer;
    const uint32_t *index = a->node_meshes;
    for (uint32_t i = 0; i < a->n_node; i++) {
        for (uint32_t k = 0; k < a->nodes[i].n_mesh; k++) {
            if (!visit(context, &mesh->parts[*index++], &mesh->placement[i])) return;
        }
    }
}

typedef struct triangle_copy {
    double *vertex;  // NULL while counting
    int64_t n_triangle, n_max;
    bool is_not_finite;
} triangle_copy;

// Counts the triangles of one mesh, or copies them.
static bool gather_mesh(void *context, const usi_mesh_part *part, const usi_placement *X) {
    triangle_copy *g = context;
    double *out = g->vertex ? g->vertex + 9 * g->n_triangle : NULL;
    for (size_t k = 0; k < 3 * (size_t)part->n_triangle && out; k++) {
        const float *v = part->position + 3 * (size_t)part->corner[k];
        if (!usi_placement_point(X, v[0], v[1], v[2], out + 3 * k)) g->is_not_finite = true;
    }
    g->n_triangle += part->n_triangle;
    return g->n_triangle <= g->n_max;
}

// The vertices and triangles of what collides, in memory of the reader. Triangles with two equal corners are
// left out.
static us_status keep_triangles(usi_reader *r, const usi_surface *surface, us_shape_def *shape) {
    us_vec3 *points = usi_reader_alloc(r, (size_t)surface->n_vertex * sizeof *points);
    int32_t *triangles = usi_reader_alloc(r, 3 * (size_t)surface->n_triangle * sizeof *triangles);
    if (!points || !triangles) return usi_fail_memory(r);
    int32_t n = 0;
    for (int32_t t = 0; t < surface->n_triangle; t++) {
        const int32_t *c = surface->corner + 3 * (size_t)t;
        for (size_t k = 0; k < 3; k++) {
            const double *v = surface->vertex + 9 * (size_t)t + 3 * k;
            points[c[k]] = us_vec3_make(v[0], v[1], v[2]);
        }
        if (c[0] == c[1] || c[1] == c[2] || c[2] == c[0]) continue;
        memcpy(triangles + 3 * (size_t)n++, c, 3 * sizeof *c);
    }
    if (n == 0) return US_OK;  // nothing but lines: there is nothing to touch
    shape->points = points;
    shape->n_point = surface->n_vertex;
    shape->triangles = triangles;
    shape->n_triangle = n;
    return US_OK;
}

static us_status look(usi_reader *r, usi_surface *surface, us_shape_def *shape) {
    if (usi_surface_weld(&r->def->allocator, surface)) return usi_fail_memory(r);
    usi_surface_box(surface);
    shape->n_vertex = surface->n_vertex;
    shape->n_triangle = surface->n_triangle;
    shape->box_min = us_vec3_make(surface->low[0], surface->low[1], surface->low[2]);
    shape->box_max = us_vec3_make(surface->high[0], surface->high[1], surface->high[2]);
    shape->is_closed = surface->is_closed;
    memset(&shape->unit_inertia, 0, sizeof shape->unit_inertia);
    if (surface->is_closed && surface->is_oriented) usi_surface_unit_inertia(surface, &shape->unit_inertia);
    return shape->is_collision ? keep_triangles(r, surface, shape) : US_OK;
}

// Copies the triangles out of the answer, scaled, and fills the shape.
static us_status take_scene(usi_reader *r, const xmlNode *node, const usi_mesh_scene *mesh,
                            us_shape_def *shape) {
    triangle_copy g = {.n_max = mesh->n_max};
    usi_mesh_walk(mesh, gather_mesh, &g);
    if (g.n_triangle > g.n_max) {
        return usi_fail(
            r, US_ERR_LIMIT, node, "simplify the mesh, for example in Blender (Decimate)",
            "the mesh \"%.200s\" has more than %lld triangles, which is more than a file of its size may "
            "have",
            shape->mesh, (long long)g.n_max);
    }
    if (g.n_triangle == 0)
        return fail_mesh(r, node, shape->mesh, "export faces, not only points, edges or curves",
                         "has no triangles");
    const us_allocator *a = &r->def->allocator;
    size_t n_corner = 3 * (size_t)g.n_triangle;
    usi_surface surface = {.n_triangle = (int32_t)g.n_triangle};
    surface.vertex = usi_alloc(a, 3 * n_corner * sizeof(double), _Alignof(double));
    surface.corner = usi_alloc(a, n_corner * sizeof(int32_t), _Alignof(int32_t));
    us_status status = US_OK;
    if (!surface.vertex || !surface.corner) {
        status = usi_fail_memory(r);
    } else {
        g = (triangle_copy){.vertex = surface.vertex, .n_max = mesh->n_max};
        usi_mesh_walk(mesh, gather_mesh, &g);
        if (g.is_not_finite)
            status = fail_mesh(r, node, shape->mesh, "write it again from the program that made it",
                               "has a vertex that is not finite");
        else
            status = look(r, &surface, shape);
    }
    usi_release(a, surface.vertex, 3 * n_corner * sizeof(double), _Alignof(double));
    usi_release(a, surface.corner, n_corner * sizeof(int32_t), _Alignof(int32_t));
    return status;
}

// What is the same for every mesh of the file: the parts, and where each node stands.
static us_status place_nodes(usi_reader *r, usi_mesh_scene *out) {
    const usi_mesh_answer *a = &out->answer;
    out->parts =
        usi_alloc(&out->allocator, ((size_t)a->n_mesh + 1) * sizeof *out->parts, _Alignof(usi_mesh_part));
    out->placement =
        usi_alloc(&out->allocator, ((size_t)a->n_node + 1) * sizeof *out->placement, _Alignof(usi_placement));
    if (!out->parts || !out->placement) return usi_fail_memory(r);
    usi_mesh_cursor cursor = {0};
    for (usi_mesh_part *part = out->parts; usi_mesh_next_part(a, &cursor, part);)
        part++;
    for (uint32_t i = 0; i < a->n_node; i++) {
        usi_placement own = placement_of(&a->nodes[i]);
        out->placement[i] = placement_mul(i == 0 ? &out->X : &out->placement[a->nodes[i].parent], &own);
    }
    return US_OK;
}

us_status usi_mesh_open(usi_reader *r, const xmlNode *node, const us_shape_def *shape,
                        enum usi_mesh_looks looks, usi_mesh_scene *out) {
    mesh_file file = {.path = shape->mesh};
    memset(out, 0, sizeof *out);
    out->allocator = r->def->allocator;
    us_status status = check_file(r, node, &file);
    if (status) return status;
    // The normals of STL files are flat or missing, and each triangle stands alone in them.
    uint32_t steps = looks ? aiProcess_GenSmoothNormals : 0;
    if (looks && usi_mesh_is(shape->mesh, "stl")) steps |= aiProcess_ForceGenNormals;
    out->n_max = 1000000 + file.size / 8;
    if (out->n_max > USI_TRIANGLE_LIMIT) out->n_max = USI_TRIANGLE_LIMIT;
    out->X = placement_of_up(file.up);
    for (int i = 0; i < 12; i++)
        out->X.m[i] *= shape->size[i / 4];
    out->turned_from = file.up == UP_X ? 'x' : file.up == UP_Y ? 'y' : 0;
    status = usi_mesh_ask(r, node, file.path, file.size, steps, looks, &out->block);
    if (status) return status;
    const char *why = NULL;
    if (!usi_mesh_answer_check(out->block.bytes, out->block.length, &out->answer, &why))
        return usi_fail(r, US_ERR_MESH, node, "write it again from the program that made it",
                        "the mesh \"%.200s\" %s", file.path, why);
    return place_nodes(r, out);
}

void usi_mesh_close(usi_mesh_scene *mesh) {
    const usi_mesh_answer *a = &mesh->answer;
    usi_release(&mesh->allocator, mesh->parts, ((size_t)a->n_mesh + 1) * sizeof *mesh->parts,
                _Alignof(usi_mesh_part));
    usi_release(&mesh->allocator, mesh->placement, ((size_t)a->n_node + 1) * sizeof *mesh->placement,
                _Alignof(usi_placement));
    usi_mesh_block_release(&mesh->block);
    memset(mesh, 0, sizeof *mesh);
}

bool usi_mesh_reuse(const us_shape_def *known, us_shape_def *shape) {
    bool is_file = known->kind == US_SHAPE_MESH || known->kind == US_SHAPE_CONVEX;
    if (!is_file || !known->mesh || known->n_triangle == 0 || !shape->mesh ||
        strcmp(known->mesh, shape->mesh) != 0)
        return false;
    if (memcmp(known->size, shape->size, sizeof shape->size) != 0) return false;
    // What is only seen keeps no triangles.
    if (shape->is_collision && !known->triangles) return false;
    if (shape->is_collision) {
        shape->points = known->points;
        shape->n_point = known->n_point;
        shape->triangles = known->triangles;
    }
    shape->n_vertex = known->n_vertex;
    shape->n_triangle = known->n_triangle;
    shape->box_min = known->box_min;
    shape->box_max = known->box_max;
    shape->is_closed = known->is_closed;
    shape->unit_inertia = known->unit_inertia;
    return true;
}

us_status usi_mesh_load(usi_reader *r, const xmlNode *node, us_shape_def *shape) {
    if (!shape->mesh || r->def->skip_meshes) return US_OK;
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_shape; i++) {
        if (usi_mesh_reuse(us_spec_view_shape(r->spec, i), shape)) return US_OK;
    }
    for (int k = 0; k < 3; k++) {
        if (shape->size[k] == 0)
            return usi_fail(r, US_ERR_VALUE, node,
                            "write a scale other than 0 in each direction, for example 1 1 1",
                            "the mesh has the scale 0");
    }
    usi_mesh_scene mesh;
    us_status status = usi_mesh_open(r, node, shape, USI_MESH_LOOKS_NONE, &mesh);
    if (!status) status = take_scene(r, node, &mesh, shape);
    const char turned_from = mesh.turned_from;
    usi_mesh_close(&mesh);
    if (status || !turned_from || !usi_mesh_is(shape->mesh, "dae")) return status;
    return usi_warn(
        r, node,
        "where it looks wrong here and right in RViz, write <up_axis>Z_UP</up_axis> in the mesh file",
        "the mesh \"%.200s\" says that %c points up and was turned so that z does; RViz ignores this",
        shape->mesh, turned_from);
}
