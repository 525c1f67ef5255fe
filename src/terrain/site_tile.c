// The bytes of a tile's file.
//
//     "USTL"  version  type  0 0  n_x  n_y  length  sum  packed samples        all little-endian
//        4       1      1   2     4    4      4*     8                         * and 4 bytes of 0
//
// Samples that are neighbours are alike. Of a row of numbers the first is kept, and then the differences of
// their bit patterns as integers, which are small; their first bytes are put together, then their second
// bytes, and so on; of regions and colours nothing is changed. zstd packs the rest. All of it can be taken
// back exactly. The sum is that of the samples, chained to the tile's place.
#include <string.h>

#include <zstd.h>

#include "base/files.h"
#include "base/memory.h"
#include "terrain/site.h"

enum { VERSION = 1, PACK_LEVEL = 1 };

static void put(uint8_t *at, int n, uint64_t x) {
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(x >> (8 * i));
}

static uint64_t get(const uint8_t *at, int n) {
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x |= (uint64_t)at[i] << (8 * i);
    return x;
}

static uint64_t sum_of(const usi_tile_place *p, const void *samples) {
    int32_t where[] = {(int32_t)p->type, p->level, p->u, p->v, p->n_x, p->n_y};
    uint64_t sum = us_hash_bytes(us_hash_bytes(0, p->layer, strlen(p->layer)), where, sizeof where);
    return us_hash_bytes(sum, samples, (size_t)p->n_x * (size_t)p->n_y * usi_layer_each(p->type));
}

static void to_planes(const usi_tile_place *p, const void *samples, uint8_t *planes) {
    size_t n = (size_t)p->n_x * (size_t)p->n_y;
    uint32_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t x;
        memcpy(&x, (const uint8_t *)samples + 4 * i, 4);
        uint32_t step = x - last;
        last = x;
        for (size_t k = 0; k < 4; k++)
            planes[k * n + i] = (uint8_t)(step >> (8 * k));
    }
}

static void from_planes(const usi_tile_place *p, const uint8_t *planes, void *samples) {
    size_t n = (size_t)p->n_x * (size_t)p->n_y;
    const uint8_t *a = planes, *b = a + n, *c = b + n, *d = c + n;
    uint32_t x = 0;
    for (size_t i = 0; i < n; i++) {
        x += (uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
        memcpy((uint8_t *)samples + 4 * i, &x, 4);
    }
}

// ---------------------------------------------------------------- reading

struct usi_tile_reader {
    us_allocator allocator;
    ZSTD_DCtx *zstd;
    uint8_t file[USI_TILE_FILE], planes[USI_TILE_RAW];
};

us_status usi_tile_reader_create(const us_allocator *allocator, usi_tile_reader **out_reader) {
    usi_tile_reader *r = usi_alloc(allocator, sizeof *r, USI_ALIGN);
    ZSTD_DCtx *zstd = r ? ZSTD_createDCtx() : NULL;
    if (!zstd) {
        usi_release(allocator, r, sizeof *r, USI_ALIGN);
        return US_ERR_MEMORY;
    }
    r->allocator = *allocator;
    r->zstd = zstd;
    *out_reader = r;
    return US_OK;
}

void usi_tile_reader_destroy(usi_tile_reader *reader) {
    if (!reader) return;
    us_allocator a = reader->allocator;
    ZSTD_freeDCtx(reader->zstd);
    usi_release(&a, reader, sizeof *reader, USI_ALIGN);
}

static us_status damaged(const char *file, const char *what, us_error *err) {
    us_place place = {.file = file};
    return us_error_set(err, US_ERR_IO, &place,
                        "put the file back from a copy of the site, or make the site again",
                        "the tile is damaged: %s", what);
}

us_status usi_tile_unpack(usi_tile_reader *reader, const usi_tile_place *place, const uint8_t *bytes,
                          size_t length, const char *file, void *out, us_error *err) {
    if (length < USI_TILE_HEAD || memcmp(bytes, "USTL", 4) != 0)
        return damaged(file, "it does not begin as a tile does", err);
    if (bytes[4] != VERSION) return damaged(file, "it is of another version of the format", err);
    if (bytes[5] != (uint8_t)place->type)
        return damaged(file, "its samples are of another type than the layer's", err);
    if (get(bytes + 8, 4) != (uint64_t)place->n_x || get(bytes + 12, 4) != (uint64_t)place->n_y)
        return damaged(file, "it has another size than the site says", err);
    if (get(bytes + 16, 4) != length - USI_TILE_HEAD)
        return damaged(file, "it is cut off, or something follows it", err);
    bool has_planes = place->type == US_LAYER_NUMBER;
    size_t raw = (size_t)place->n_x * (size_t)place->n_y * usi_layer_each(place->type);
    void *to = has_planes ? (void *)reader->planes : out;
    if (ZSTD_decompressDCtx(reader->zstd, to, raw, bytes + USI_TILE_HEAD, length - USI_TILE_HEAD) != raw)
        return damaged(file, "its samples cannot be unpacked", err);
    if (has_planes) from_planes(place, reader->planes, out);
    if (sum_of(place, out) != get(bytes + 24, 8))
        return damaged(file, "its samples are not those that were written there", err);
    return US_OK;
}

us_status usi_site_read(const us_site *site, usi_tile_reader *reader, int32_t layer, int32_t level, int32_t u,
                        int32_t v, void *out, us_error *err) {
    usi_tile_place place;
    char path[USI_SITE_FILE];
    size_t length = 0;
    if (!usi_site_place(site, layer, level, u, v, &place, path))
        return us_error_set(err, US_ERR_ARG, NULL, "ask us_site_tile_size which tiles there are",
                            "there is no tile (%d, %d) of level %d", (int)u, (int)v, (int)level);
    us_status status = usi_bytes_read(path, reader->file, sizeof reader->file, &length);
    us_place where = {.file = path};
    if (status == US_ERR_IO)
        return us_error_set(err, US_ERR_IO, &where,
                            "put the file back from a copy of the site, or make the site again",
                            "the tile is missing or cannot be read");
    if (status) return damaged(path, "it is longer than a tile can be", err);
    return usi_tile_unpack(reader, &place, reader->file, length, path, out, err);
}

// ---------------------------------------------------------------- writing

struct usi_tile_packer {
    us_allocator allocator;
    ZSTD_CCtx *zstd;
    uint8_t planes[USI_TILE_RAW], packed[USI_TILE_FILE - USI_TILE_HEAD];
};

us_status usi_tile_packer_create(const us_allocator *allocator, usi_tile_packer **out_packer) {
    usi_tile_packer *p = usi_alloc(allocator, sizeof *p, USI_ALIGN);
    ZSTD_CCtx *zstd = p ? ZSTD_createCCtx() : NULL;
    if (!zstd) {
        usi_release(allocator, p, sizeof *p, USI_ALIGN);
        return US_ERR_MEMORY;
    }
    p->allocator = *allocator;
    p->zstd = zstd;
    *out_packer = p;
    return US_OK;
}

void usi_tile_packer_destroy(usi_tile_packer *packer) {
    if (!packer) return;
    us_allocator a = packer->allocator;
    ZSTD_freeCCtx(packer->zstd);
    usi_release(&a, packer, sizeof *packer, USI_ALIGN);
}

us_status usi_tile_write(usi_tile_packer *packer, const usi_tile_place *place, const void *samples,
                         const char *path, uint64_t *out_sum, us_error *err) {
    size_t raw = (size_t)place->n_x * (size_t)place->n_y * usi_layer_each(place->type);
    bool has_planes = place->type == US_LAYER_NUMBER;
    if (has_planes) to_planes(place, samples, packer->planes);
    size_t n = ZSTD_compressCCtx(packer->zstd, packer->packed, sizeof packer->packed,
                                 has_planes ? (const void *)packer->planes : samples, raw, PACK_LEVEL);
    if (ZSTD_isError(n)) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory to pack a tile");
    *out_sum = sum_of(place, samples);
    uint8_t head[USI_TILE_HEAD] = {'U', 'S', 'T', 'L', VERSION, (uint8_t)place->type};
    put(head + 8, 4, (uint64_t)place->n_x);
    put(head + 12, 4, (uint64_t)place->n_y);
    put(head + 16, 4, n);
    put(head + 24, 8, *out_sum);
    return usi_bytes_write(path, head, sizeof head, packer->packed, n, err);
}
