// Sites: shared by the files that implement them, and a reader for many tiles.
#ifndef USI_TERRAIN_SITE_H
#define USI_TERRAIN_SITE_H

#include "understudy/terrain.h"

enum {
    USI_SITE_PATH = 4000,                            // bytes of a site's path
    USI_SITE_FILE = USI_SITE_PATH + 100,             // and of that of a file in it
    USI_SITE_JSON = 1 << 20,                         // bytes of site.json
    USI_TILE_RAW = US_SITE_TILE * US_SITE_TILE * 4,  // bytes of the samples of a tile
    USI_TILE_HEAD = 32,                              // bytes in front of the packed samples in a tile's file
    USI_TILE_FILE = USI_TILE_HEAD + USI_TILE_RAW + 16 * 1024,  // bytes of a tile's file, packed badly
};

typedef struct usi_tile_sum {
    uint64_t sum;
    bool is_written;
} usi_tile_sum;

typedef struct usi_tile_packer usi_tile_packer;

struct us_site {
    us_allocator allocator;
    us_site_info info;
    char path[USI_SITE_PATH];
    char *wkt;
    size_t wkt_bytes;
    // Of a site under creation: the tiles of level 0 that were written, layer by layer, and the packer.
    usi_tile_sum *tile[US_SITE_LAYERS];
    usi_tile_packer *packer;
    bool is_new;
};

// Identity of a tile: part of its checksum, so that a tile under another's name is detected.
typedef struct usi_tile_place {
    const char *layer;
    us_layer_type type;
    int32_t level, u, v, n_x, n_y;
} usi_tile_place;

static inline size_t usi_layer_each(us_layer_type type) { return type == US_LAYER_REGION ? 1 : 4; }
static inline int32_t usi_level_samples(int32_t n, int32_t level) { return ((n - 1) >> level) + 1; }
static inline int32_t usi_level_tiles(int32_t n, int32_t level) {
    return (usi_level_samples(n, level) - 1) / US_SITE_TILE + 1;
}
int32_t usi_layer_levels(int32_t n_x, int32_t n_y);

// site.json, as text. `file` is for messages.
us_status usi_site_parse(us_site *site, const char *text, size_t length, const char *file, us_error *err);
us_status usi_site_write_json(const us_site *site, us_error *err);
// Checks the definition of the layers; `file` may be NULL.
us_status usi_site_check(const us_site_info *info, const char *file, us_error *err);

// A tile's place and the path of its file; false when there is no such tile.
bool usi_site_place(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v,
                    usi_tile_place *out_place, char out_path[USI_SITE_FILE]);

// ---------------------------------------------------------------- the bytes of a tile

// Reads tiles one after another without allocating anything.
typedef struct usi_tile_reader usi_tile_reader;
us_status usi_tile_reader_create(const us_allocator *allocator, usi_tile_reader **out_reader);
void usi_tile_reader_destroy(usi_tile_reader *reader);  // NULL is allowed
us_status usi_site_read(const us_site *site, usi_tile_reader *reader, int32_t layer, int32_t level, int32_t u,
                        int32_t v, void *out, us_error *err);
// A file's bytes as samples; `file` is for messages.
us_status usi_tile_unpack(usi_tile_reader *reader, const usi_tile_place *place, const uint8_t *bytes,
                          size_t length, const char *file, void *out, us_error *err);

us_status usi_tile_packer_create(const us_allocator *allocator, usi_tile_packer **out_packer);
void usi_tile_packer_destroy(usi_tile_packer *packer);  // NULL is allowed
us_status usi_tile_write(usi_tile_packer *packer, const usi_tile_place *place, const void *samples,
                         const char *path, uint64_t *out_sum, us_error *err);

#endif
