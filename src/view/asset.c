// Assets by name: "3.glb" is the mesh of shape 3, "3.0.glb" that of the first part of the union that is shape
// 3, "0.field" the heights of shape 0, "0/2/4_5.field" and "0/2/4_5.photo" the heights and the photograph of
// its tile (4, 5) at level 2, "region/1.mask" the mask of region 1.
//
// A name is numbers alone; the path of a file comes from the spec, never from the one who asks.
#include "view/view__asset.h"

#include <math.h>
#include <string.h>

#include "view/view__ground.h"
#include "world/revision.h"

usi_asset_kind usi_asset_of(const us_shape_def *shape) {
    bool has_points = shape->points && shape->n_point > 0;
    if (shape->kind == US_SHAPE_HEIGHT_FIELD) return shape->heights ? USI_ASSET_FIELD : USI_ASSET_NONE;
    if (shape->kind == US_SHAPE_CONVEX) return shape->mesh && !has_points ? USI_ASSET_GLB : USI_ASSET_NONE;
    if (shape->kind != US_SHAPE_MESH) return USI_ASSET_NONE;
    return shape->mesh || (has_points && shape->triangles && shape->n_triangle > 0) ? USI_ASSET_GLB
                                                                                    : USI_ASSET_NONE;
}

const char *usi_asset_ending(usi_asset_kind kind) {
    return kind == USI_ASSET_GLB ? ".glb" : kind == USI_ASSET_FIELD ? ".field" : "";
}

// ---- Names ----

// A number of at most nine digits, as a machine writes it: no sign, no blank, no zeros in front. -1 for
// anything else.
static int32_t scan_index(const char **at) {
    const char *s = *at;
    int32_t value = 0;
    int n = 0;
    for (; s[n] >= '0' && s[n] <= '9'; n++) {
        if (n == 9) return -1;
        value = 10 * value + (s[n] - '0');
    }
    if (n == 0 || (n > 1 && s[0] == '0')) return -1;
    *at = s + n;
    return value;
}

// The shape that a name speaks of; NULL for none. *out_ending is what follows the numbers.
static const us_shape_def *find_shape(const us_spec *spec, const char *name, const char **out_ending) {
    const us_shape_def *shape = us_spec_view_shape(spec, scan_index(&name));
    while (shape && name[0] == '.' && name[1] >= '0' && name[1] <= '9') {
        name++;
        int32_t part = scan_index(&name);
        shape = part >= 0 && part < shape->n_part ? &shape->parts[part] : NULL;
    }
    *out_ending = name;
    return shape;
}

// ---- What has no file ----

static us_status write_field(const us_shape_def *shape, const us_allocator *allocator, char **out_bytes,
                             size_t *out_length) {
    usi_bytes bytes;
    size_t n = (size_t)shape->n_x * (size_t)shape->n_y;
    usi_bytes_init(&bytes, allocator, USI_ASSET_LIMIT);
    char *room = usi_bytes_room(&bytes, n * sizeof(float));
    for (size_t i = 0; i < n && room; i++) {
        float height = (float)shape->heights[i];
        memcpy(room + i * sizeof height, &height, sizeof height);
    }
    return usi_bytes_take(&bytes, out_bytes, out_length);
}

bool usi_asset_scan(const char *name, const char *between, int32_t *out, const char **out_ending) {
    for (;; between++) {
        if ((*out++ = scan_index(&name)) < 0) return false;
        if (!*between) break;
        if (*name++ != *between) return false;
    }
    *out_ending = name;
    return true;
}

// One tile of ground. `name` is what follows the shape: "/LEVEL/U_V.field" or ".photo". US_ERR_NAME when it
// is neither.
static us_status write_tile(const us_shape_def *shape, const char *name, const us_allocator *allocator,
                            char **out_bytes, size_t *out_length, us_error *err) {
    usi_ground ground;
    int32_t at[3];
    if (!usi_asset_scan(name + 1, "/_", at, &name)) return US_ERR_NAME;
    bool is_photo = strcmp(name, ".photo") == 0;
    if (!is_photo && strcmp(name, ".field") != 0) return US_ERR_NAME;
    us_status status = usi_ground_open(shape, allocator, &ground, err);
    if (status) return status;
    usi_bytes bytes;
    usi_bytes_init(&bytes, allocator, USI_ASSET_LIMIT);
    size_t size =
        is_photo ? (size_t)USI_GROUND_PIXELS * USI_GROUND_PIXELS : (size_t)USI_GROUND_SIDE * USI_GROUND_SIDE;
    void *room = usi_bytes_room(&bytes, 4 * size);
    if (!room) {
        status = US_ERR_MEMORY;
    } else if (is_photo) {
        status = usi_ground_photo(&ground, allocator, at[0], at[1], at[2], room, err);
    } else {
        status = usi_ground_tile(&ground, allocator, at[0], at[1], at[2], room, err);
    }
    usi_ground_close(&ground);
    if (!status) return usi_bytes_take(&bytes, out_bytes, out_length);
    usi_bytes_fini(&bytes);
    return status;
}

usi_region_grid usi_region_grid_of(const us_region_def *region) {
    int32_t n = region->n_x > region->n_y ? region->n_x : region->n_y;
    int32_t step = (n + USI_REGION_PIXELS - 1) / USI_REGION_PIXELS;
    return (usi_region_grid){step, (region->n_x + step - 1) / step, (region->n_y + step - 1) / step};
}

// The sample in the middle of square i, of n samples.
static size_t middle(int32_t i, int32_t step, int32_t n) {
    int32_t at = i * step + step / 2;
    return (size_t)(at < n ? at : n - 1);
}

// Of each square of samples the middle one: 255 where it belongs to the region. `name` is what follows
// "region/".
static us_status write_mask(const us_spec *spec, const char *name, const us_allocator *allocator,
                            char **out_bytes, size_t *out_length) {
    const us_region_def *region = us_spec_view_region(spec, scan_index(&name));
    if (!region || !region->mask || strcmp(name, ".mask") != 0) return US_ERR_NAME;
    usi_region_grid grid = usi_region_grid_of(region);
    usi_bytes bytes;
    usi_bytes_init(&bytes, allocator, USI_ASSET_LIMIT);
    char *room = usi_bytes_room(&bytes, (size_t)grid.n_x * (size_t)grid.n_y);
    for (int32_t j = 0; j < grid.n_y && room; j++) {
        const uint8_t *row = region->mask + middle(j, grid.step, region->n_y) * (size_t)region->n_x;
        for (int32_t i = 0; i < grid.n_x; i++) {
            uint8_t value = row[middle(i, grid.step, region->n_x)];
            bool is_in = region->value > 0 ? value == region->value : value != 0;
            *room++ = (char)(is_in ? UINT8_MAX : 0);
        }
    }
    return usi_bytes_take(&bytes, out_bytes, out_length);
}

// A mesh that was built by calls: points and triangles as they are, in the shape's colour, flat.
static us_status write_triangles(const us_shape_def *shape, const us_allocator *allocator, char **out_bytes,
                                 size_t *out_length) {
    usi_glb glb;
    usi_glb_init(&glb, allocator);
    usi_glb_material material = usi_glb_material_default();
    memcpy(material.rgba, shape->rgba, sizeof material.rgba);
    for (int k = 0; k < 3; k++)
        material.rgba[k] = usi_linear_of_srgb(material.rgba[k]);
    material.is_blended = material.rgba[3] < 1;
    usi_glb_part part = {.material = usi_glb_add_material(&glb, &material),
                         .n_vertex = (uint32_t)shape->n_point,
                         .n_index = 3 * (uint32_t)shape->n_triangle,
                         .normal = SIZE_MAX,
                         .uv = SIZE_MAX,
                         .colour = SIZE_MAX};
    for (int32_t i = 0; i < shape->n_point; i++) {
        const float p[3] = {(float)shape->points[i].x, (float)shape->points[i].y, (float)shape->points[i].z};
        for (int k = 0; k < 3; k++) {
            part.min[k] = i == 0 ? p[k] : fminf(part.min[k], p[k]);
            part.max[k] = i == 0 ? p[k] : fmaxf(part.max[k], p[k]);
        }
        usi_bytes_put(&glb.data, p, sizeof p);
    }
    part.index = glb.data.length;
    usi_bytes_put(&glb.data, shape->triangles, part.n_index * sizeof *shape->triangles);
    usi_glb_add_part(&glb, &part);
    us_status status = usi_glb_write(&glb, out_bytes, out_length);
    usi_glb_fini(&glb);
    return status;
}

us_status usi_world_asset(const usi_revision *revision, const char *name, const us_allocator *allocator,
                          void **out_bytes, size_t *out_length, us_error *err) {
    *out_bytes = NULL;
    *out_length = 0;
    static const char regions[] = "region/";
    const char *ending = "";
    const us_shape_def *shape = find_shape(revision->spec, name, &ending);
    char *bytes = NULL;
    us_status status;
    if (strncmp(name, regions, sizeof regions - 1) == 0) {
        status = write_mask(revision->spec, name + sizeof regions - 1, allocator, &bytes, out_length);
        *out_bytes = bytes;
        if (status != US_ERR_NAME) return status;
    }
    if (shape && *ending == '/') {
        status = write_tile(shape, ending, allocator, &bytes, out_length, err);
        *out_bytes = bytes;
        if (status != US_ERR_NAME) return status;
    }
    usi_asset_kind kind = shape ? usi_asset_of(shape) : USI_ASSET_NONE;
    if (kind == USI_ASSET_NONE || strcmp(ending, usi_asset_ending(kind)) != 0) {
        return us_error_set(err, US_ERR_NAME, NULL, "take the names from \"asset\" in /api/world",
                            "there is no asset \"%.100s\" in this world", name);
    }
    if (kind == USI_ASSET_FIELD) {
        status = write_field(shape, allocator, &bytes, out_length);
    } else if (shape->mesh) {
        status = usi_mesh_glb(shape, allocator, &bytes, out_length, err);
    } else {
        status = write_triangles(shape, allocator, &bytes, out_length);
    }
    *out_bytes = bytes;
    if (!status || shape->mesh) return status;
    const char *why =
        status == US_ERR_LIMIT ? "is too large to be shown" : "cannot be made: there is not enough memory";
    return us_error_set(err, status, NULL, "use fewer points", "the asset \"%.100s\" %s", name, why);
}
