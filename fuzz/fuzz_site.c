// Any bytes as a site.json, or as a tile's file: read, ask everything. Nothing may crash, leak, hang or read
// what it should not.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "terrain/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_json(const uint8_t *data, size_t size) {
    us_site site = {.allocator = us_allocator_default(), .path = "/nowhere/fuzz"};
    us_error err;
    if (!usi_site_parse(&site, (const char *)data, size, "fuzz", &err)) {
        us_site_info info = us_site_get_info(&site);
        volatile size_t kept = strlen(info.wkt) + strlen(info.reference);
        (void)kept;
        for (int32_t layer = 0; layer < info.n_layer; layer++) {
            int32_t n_x = 0, n_y = 0;
            us_site_find_layer(&site, info.layer[layer].name);
            for (int32_t level = 0; level < info.layer[layer].n_level; level++)
                us_site_tile_size(&site, layer, level, 0, 0, &n_x, &n_y);
        }
    }
    if (site.wkt) site.allocator.release(site.allocator.context, site.wkt, site.wkt_bytes, 1);
}

static void read_tile(const uint8_t *data, size_t size) {
    static uint8_t samples[USI_TILE_RAW];
    us_allocator allocator = us_allocator_default();
    usi_tile_reader *reader = NULL;
    us_error err;
    if (usi_tile_reader_create(&allocator, &reader)) return;
    for (int type = 0; type < US_LAYER_COUNT; type++) {
        usi_tile_place place = {.layer = "height", .type = (us_layer_type)type, .n_x = 7, .n_y = 5};
        usi_tile_unpack(reader, &place, data, size, "fuzz", samples, &err);
    }
    usi_tile_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size >= 4 && memcmp(data, "USTL", 4) == 0)
        read_tile(data, size);
    else
        read_json(data, size);
    return 0;
}
