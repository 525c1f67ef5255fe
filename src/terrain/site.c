// Sites: opening, making, reading and writing. The tiles' bytes are in site_tile.c, site.json in site_json.c.
//
// A site is made in one pass: tiles of level 0 in any order, each once, and then all coarser levels from the
// finer ones, four tiles at a time:
//
//     +---+---+        +---+     Sample (i, j) of a level is sample (2i, 2j) of the finer one: a tile of
//     | 2u| +1|        |   |     numbers or of regions takes every second sample of four tiles, and is exact.
//     +---+---+  --->  | u |     A colour is the mean of the four samples from there on, weighted by their
//     |   |   |        |   |     opacity: a hole has no colour.
//     +---+---+        +---+
//
// No more than five tiles are in memory at a time, whatever the size of the site.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "terrain/site.h"

// The coarsest level is the first that fits into one tile, or the last with two samples each way.
int32_t usi_layer_levels(int32_t n_x, int32_t n_y) {
    int32_t n = 1;
    while (n < US_SITE_LEVELS && (n_x > US_SITE_TILE || n_y > US_SITE_TILE)) {
        n_x = usi_level_samples(n_x, 1);
        n_y = usi_level_samples(n_y, 1);
        if (n_x < 2 || n_y < 2) break;
        n++;
    }
    return n;
}

// ---------------------------------------------------------------- open, create, close

static us_status no_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a site");
}

// An empty site of that path, or NULL with a status. A '/' at its end is left out.
static us_site *begin(const char *path, const us_allocator *allocator, us_status *out_status, us_error *err) {
    us_allocator a = allocator ? *allocator : us_allocator_default();
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    us_place place = {.file = path};
    if (length == 0 || length >= USI_SITE_PATH) {
        *out_status = us_error_set(err, US_ERR_ARG, &place, "use a path of 1 to 3999 bytes",
                                   "the path of a site has %zu bytes", length);
        return NULL;
    }
    us_site *s = usi_alloc(&a, sizeof *s, USI_ALIGN);
    *out_status = s ? US_OK : no_memory(err);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->allocator = a;
    memcpy(s->path, path, length);
    return s;
}

us_status us_site_open(const char *path, const us_allocator *allocator, us_site **out_site, us_error *err) {
    if (!path || !out_site)
        return us_error_set(err, US_ERR_ARG, NULL, "give a path and a place for the site",
                            "an argument is NULL");
    us_status status;
    us_site *s = begin(path, allocator, &status, err);
    if (!s) return status;
    char file[USI_SITE_FILE];
    snprintf(file, sizeof file, "%s/site.json", s->path);
    us_place place = {.file = file};
    size_t length = 0;
    char *text = usi_alloc(&s->allocator, USI_SITE_JSON, 1);
    status = text ? usi_bytes_read(file, text, USI_SITE_JSON, &length) : no_memory(err);
    if (status == US_ERR_IO)
        us_error_set(err, US_ERR_IO, &place,
                     "give a directory that \"understudy terrain import\" or \"understudy terrain random\" "
                     "has finished",
                     "there is no site here: its site.json cannot be read");
    else if (status == US_ERR_LIMIT)
        status = us_error_set(err, US_ERR_SYNTAX, &place, "make the site again",
                              "the file has more than %d bytes", USI_SITE_JSON);
    else if (!status)
        status = usi_site_parse(s, text, length, file, err);
    usi_release(&s->allocator, text, USI_SITE_JSON, 1);
    if (status)
        us_site_close(s);
    else
        *out_site = s;
    return status;
}

static size_t n_tile_of(const us_layer_info *l) {
    return (size_t)usi_level_tiles(l->n_x, 0) * (size_t)usi_level_tiles(l->n_y, 0);
}

static us_status begin_new(us_site *s, const us_site_info *info, us_error *err) {
    const char *wkt = info->wkt ? info->wkt : "";
    s->info = *info;
    s->is_new = true;
    s->wkt_bytes = strlen(wkt) + 1;
    s->wkt = usi_alloc(&s->allocator, s->wkt_bytes, 1);
    if (!s->wkt || usi_tile_packer_create(&s->allocator, &s->packer)) return no_memory(err);
    memcpy(s->wkt, wkt, s->wkt_bytes);
    s->info.wkt = s->wkt;
    s->info.hash = 0;
    for (int32_t i = 0; i < info->n_layer; i++) {
        us_layer_info *l = &s->info.layer[i];
        l->n_level = usi_layer_levels(l->n_x, l->n_y);
        bool has_numbers = l->type == US_LAYER_NUMBER;
        l->low = has_numbers ? INFINITY : 0;
        l->high = has_numbers ? -INFINITY : 0;
        s->tile[i] = usi_alloc(&s->allocator, n_tile_of(l) * sizeof(usi_tile_sum), _Alignof(usi_tile_sum));
        if (!s->tile[i]) return no_memory(err);
        memset(s->tile[i], 0, n_tile_of(l) * sizeof(usi_tile_sum));
    }
    us_status status = usi_directory_begin(s->path, err);
    for (int32_t i = 0; i < info->n_layer && !status; i++) {
        char path[USI_SITE_FILE];
        snprintf(path, sizeof path, "%s/%s", s->path, info->layer[i].name);
        status = usi_directory_make(path, err);
        for (int32_t level = 0; level < s->info.layer[i].n_level && !status; level++) {
            snprintf(path, sizeof path, "%s/%s/%d", s->path, info->layer[i].name, (int)level);
            status = usi_directory_make(path, err);
        }
    }
    return status;
}

us_status us_site_create(const char *path, const us_site_info *info, const us_allocator *allocator,
                         us_site **out_site, us_error *err) {
    if (!path || !info || !out_site)
        return us_error_set(err, US_ERR_ARG, NULL, "give a path, layers and a place for the site",
                            "an argument is NULL");
    us_status status = usi_site_check(info, NULL, err);
    if (status) return status;
    if (!memchr(info->reference, 0, sizeof info->reference) || info->n_gap < 0 ||
        (info->wkt && strlen(info->wkt) > USI_SITE_JSON / 8))
        return us_error_set(err, US_ERR_ARG, NULL,
                            "end the reference by a 0, count gaps from 0, shorten the WKT",
                            "the site's description cannot be stored");
    us_site *s = begin(path, allocator, &status, err);
    if (!s) return status;
    status = begin_new(s, info, err);
    if (status)
        us_site_close(s);
    else
        *out_site = s;
    return status;
}

void us_site_close(us_site *site) {
    if (!site) return;
    us_allocator a = site->allocator;
    usi_tile_packer_destroy(site->packer);
    for (int32_t i = 0; i < US_SITE_LAYERS; i++) {
        if (site->tile[i])
            usi_release(&a, site->tile[i], n_tile_of(&site->info.layer[i]) * sizeof(usi_tile_sum),
                        _Alignof(usi_tile_sum));
    }
    usi_release(&a, site->wkt, site->wkt_bytes, 1);
    usi_release(&a, site, sizeof *site, USI_ALIGN);
}

us_site_info us_site_get_info(const us_site *site) { return site ? site->info : (us_site_info){.wkt = ""}; }

int32_t us_site_find_layer(const us_site *site, const char *name) {
    for (int32_t i = 0; site && name && i < site->info.n_layer; i++) {
        if (strcmp(site->info.layer[i].name, name) == 0) return i;
    }
    return -1;
}

// ---------------------------------------------------------------- tiles

bool us_site_tile_size(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v,
                       int32_t *out_n_x, int32_t *out_n_y) {
    if (!site || layer < 0 || layer >= site->info.n_layer) return false;
    const us_layer_info *l = &site->info.layer[layer];
    if (level < 0 || level >= l->n_level || u < 0 || v < 0 || u >= usi_level_tiles(l->n_x, level) ||
        v >= usi_level_tiles(l->n_y, level))
        return false;
    int32_t n_x = usi_level_samples(l->n_x, level) - u * US_SITE_TILE,
            n_y = usi_level_samples(l->n_y, level) - v * US_SITE_TILE;
    if (out_n_x) *out_n_x = n_x < US_SITE_TILE ? n_x : US_SITE_TILE;
    if (out_n_y) *out_n_y = n_y < US_SITE_TILE ? n_y : US_SITE_TILE;
    return true;
}

bool usi_site_place(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v,
                    usi_tile_place *out_place, char out_path[USI_SITE_FILE]) {
    int32_t n_x, n_y;
    if (!us_site_tile_size(site, layer, level, u, v, &n_x, &n_y)) return false;
    const us_layer_info *l = &site->info.layer[layer];
    *out_place = (usi_tile_place){l->name, l->type, level, u, v, n_x, n_y};
    snprintf(out_path, USI_SITE_FILE, "%s/%s/%d/%d_%d.tile", site->path, l->name, (int)level, (int)u, (int)v);
    return true;
}

us_status us_site_read(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v, void *out,
                       us_error *err) {
    if (!site || !out)
        return us_error_set(err, US_ERR_ARG, NULL, "give a site and room for the samples",
                            "an argument is NULL");
    usi_tile_reader *reader = NULL;
    if (usi_tile_reader_create(&site->allocator, &reader)) return no_memory(err);
    us_status status = usi_site_read(site, reader, layer, level, u, v, out, err);
    usi_tile_reader_destroy(reader);
    return status;
}

static us_status take_numbers(us_layer_info *l, const usi_tile_place *p, const float *samples,
                              us_error *err) {
    double low = l->low, high = l->high;
    for (int32_t k = 0; k < p->n_x * p->n_y; k++) {
        if (!isfinite(samples[k]))
            return us_error_set(err, US_ERR_VALUE, NULL, "fill the hole from its neighbours",
                                "sample (%d, %d) of layer \"%s\" is not finite",
                                (int)(p->u * US_SITE_TILE + k % p->n_x),
                                (int)(p->v * US_SITE_TILE + k / p->n_x), l->name);
        low = fmin(low, (double)samples[k]);
        high = fmax(high, (double)samples[k]);
    }
    l->low = low;
    l->high = high;
    return US_OK;
}

us_status us_site_write(us_site *site, int32_t layer, int32_t u, int32_t v, const void *samples,
                        us_error *err) {
    usi_tile_place place;
    char path[USI_SITE_FILE];
    if (!site || !samples)
        return us_error_set(err, US_ERR_ARG, NULL, "give a site and samples", "an argument is NULL");
    if (!site->is_new)
        return us_error_set(err, US_ERR_ARG, NULL, "make a new site by us_site_create",
                            "the site is finished: nothing can be written to it");
    if (!usi_site_place(site, layer, 0, u, v, &place, path))
        return us_error_set(err, US_ERR_ARG, NULL, "ask us_site_tile_size which tiles there are",
                            "layer %d has no tile (%d, %d)", (int)layer, (int)u, (int)v);
    us_layer_info *l = &site->info.layer[layer];
    usi_tile_sum *tile = &site->tile[layer][(size_t)v * (size_t)usi_level_tiles(l->n_x, 0) + (size_t)u];
    if (tile->is_written)
        return us_error_set(err, US_ERR_ARG, NULL, "write each tile once",
                            "tile (%d, %d) of layer \"%s\" is written twice", (int)u, (int)v, l->name);
    us_status status = l->type == US_LAYER_NUMBER ? take_numbers(l, &place, samples, err) : US_OK;
    if (!status) status = usi_tile_write(site->packer, &place, samples, path, &tile->sum, err);
    if (!status) tile->is_written = true;
    return status;
}

void us_site_add_gaps(us_site *site, int64_t n) {
    if (site && site->is_new && n > 0) site->info.n_gap += n;
}

// ---------------------------------------------------------------- coarser levels

typedef struct coarse {
    us_site *site;
    usi_tile_reader *reader;
    uint8_t *fine, *out;  // samples of one tile each, as they lie in its file
    int64_t n_done, n_all;
    void (*progress)(void *context, double share);
    void *context;
} coarse;

// The mean of up to four colours; those behind the layer's end, and holes, have no part in it. Rounded to the
// nearest.
static void mean_colour(const uint8_t *fine, int32_t n_x, int32_t n_y, int32_t i, int32_t j, uint8_t *out) {
    uint32_t sum[3] = {0}, weight = 0, n = 0;
    for (int32_t b = j; b <= j + 1 && b < n_y; b++) {
        for (int32_t a = i; a <= i + 1 && a < n_x; a++, n++) {
            const uint8_t *c = fine + 4 * ((size_t)b * (size_t)n_x + (size_t)a);
            weight += c[3];
            for (int k = 0; k < 3; k++)
                sum[k] += (uint32_t)c[k] * c[3];
        }
    }
    for (int k = 0; k < 3; k++)
        out[k] = weight ? (uint8_t)((sum[k] + weight / 2) / weight) : 0;
    out[3] = (uint8_t)((weight + n / 2) / n);
}

// Takes the part of a coarser tile that lies in one finer tile; (a, b) is 0 or 1 each way.
static void take_part(const coarse *c, us_layer_type type, const usi_tile_place *fine, int32_t a, int32_t b,
                      const usi_tile_place *to) {
    size_t each = usi_layer_each(type);
    const int32_t half = US_SITE_TILE / 2;
    for (int32_t j = 0; 2 * j < fine->n_y; j++) {
        for (int32_t i = 0; 2 * i < fine->n_x; i++) {
            int32_t x = a * half + i, y = b * half + j;
            if (x >= to->n_x || y >= to->n_y) continue;
            uint8_t *out = c->out + each * ((size_t)y * (size_t)to->n_x + (size_t)x);
            if (type == US_LAYER_COLOUR)
                mean_colour(c->fine, fine->n_x, fine->n_y, 2 * i, 2 * j, out);
            else
                memcpy(out, c->fine + each * ((size_t)(2 * j) * (size_t)fine->n_x + (size_t)(2 * i)), each);
        }
    }
}

static us_status make_tile(coarse *c, int32_t layer, int32_t level, int32_t u, int32_t v, us_error *err) {
    usi_tile_place to, fine;
    char path[USI_SITE_FILE], from[USI_SITE_FILE];
    uint64_t sum;
    if (!usi_site_place(c->site, layer, level, u, v, &to, path)) return US_OK;
    for (int32_t k = 0; k < 4; k++) {
        if (!usi_site_place(c->site, layer, level - 1, 2 * u + k % 2, 2 * v + k / 2, &fine, from)) continue;
        us_status status = usi_site_read(c->site, c->reader, layer, level - 1, fine.u, fine.v, c->fine, err);
        if (status) return status;
        take_part(c, to.type, &fine, k % 2, k / 2, &to);
    }
    us_status status = usi_tile_write(c->site->packer, &to, c->out, path, &sum, err);
    c->n_done++;
    if (!status && c->progress) c->progress(c->context, (double)c->n_done / (double)c->n_all);
    return status;
}

static us_status make_levels(coarse *c, us_error *err) {
    us_status status = US_OK;
    const us_site_info *info = &c->site->info;
    for (int32_t layer = 0; layer < info->n_layer && !status; layer++) {
        const us_layer_info *l = &info->layer[layer];
        for (int32_t level = 1; level < l->n_level && !status; level++) {
            int32_t n_u = usi_level_tiles(l->n_x, level), n_v = usi_level_tiles(l->n_y, level);
            for (int32_t v = 0; v < n_v && !status; v++) {
                for (int32_t u = 0; u < n_u && !status; u++)
                    status = make_tile(c, layer, level, u, v, err);
            }
        }
    }
    return status;
}

// The site's hash: what each layer is, and the sums of its tiles in their order, whatever the order that they
// were written in.
static us_status hash_tiles(us_site *site, us_error *err) {
    uint64_t hash = 0;
    for (int32_t i = 0; i < site->info.n_layer; i++) {
        const us_layer_info *l = &site->info.layer[i];
        int32_t whole[] = {(int32_t)l->type, l->n_x, l->n_y}, n_u = usi_level_tiles(l->n_x, 0);
        double spacing[] = {l->dx, l->dy};
        hash =
            us_hash_bytes(us_hash_bytes(us_hash_bytes(hash, l->name, strlen(l->name)), whole, sizeof whole),
                          spacing, sizeof spacing);
        for (size_t t = 0; t < n_tile_of(l); t++) {
            if (!site->tile[i][t].is_written)
                return us_error_set(err, US_ERR_ARG, NULL,
                                    "write every tile of level 0 before the site is finished",
                                    "tile (%d, %d) of layer \"%s\" was not written", (int)(t % (size_t)n_u),
                                    (int)(t / (size_t)n_u), l->name);
            hash = us_hash_bytes(hash, &site->tile[i][t].sum, sizeof site->tile[i][t].sum);
        }
    }
    site->info.hash = hash;
    return US_OK;
}

us_status us_site_finish(us_site *site, void (*progress)(void *context, double share), void *context,
                         us_error *err) {
    if (!site || !site->is_new)
        return us_error_set(err, US_ERR_ARG, NULL, "give a site that us_site_create has begun",
                            "there is nothing to finish");
    us_status status = hash_tiles(site, err);
    if (status) return status;
    coarse c = {.site = site, .progress = progress, .context = context};
    for (int32_t i = 0; i < site->info.n_layer; i++) {
        const us_layer_info *l = &site->info.layer[i];
        for (int32_t level = 1; level < l->n_level; level++)
            c.n_all += (int64_t)usi_level_tiles(l->n_x, level) * usi_level_tiles(l->n_y, level);
    }
    c.fine = usi_alloc(&site->allocator, 2 * (size_t)USI_TILE_RAW, USI_ALIGN);
    if (!c.fine || usi_tile_reader_create(&site->allocator, &c.reader)) {
        usi_release(&site->allocator, c.fine, 2 * (size_t)USI_TILE_RAW, USI_ALIGN);
        return no_memory(err);
    }
    c.out = c.fine + USI_TILE_RAW;
    status = make_levels(&c, err);
    usi_tile_reader_destroy(c.reader);
    usi_release(&site->allocator, c.fine, 2 * (size_t)USI_TILE_RAW, USI_ALIGN);
    if (!status) status = usi_site_write_json(site, err);
    if (!status) site->is_new = false;
    if (!status && progress) progress(context, 1);
    return status;
}
