// What a GET under /api/ is answered: the world of now, and the meshes and fields in it.
//
// Both are kept for the epoch, for twenty pages that are opened ask for the same twenty times; a mesh takes
// long to read.
#include <stdio.h>
#include <string.h>

#include "host/page_local.h"

enum { MAX_ASSETS = 1024 };
static const size_t MAX_BYTES = (size_t)64 * 1024 * 1024;  // of kept assets

static void forget(usi_page *page) {
    const us_allocator *a = &page->allocator;
    usi_release(a, page->world_json, page->world_length, 1);
    page->world_json = NULL;
    page->world_length = 0;
    for (int32_t i = 0; i < page->n_asset; i++)
        usi_release(a, page->assets[i].bytes, page->assets[i].length, 1);
    page->n_asset = 0;
    page->asset_bytes = 0;
}

void usi_page_get_fini(usi_page *page) {
    forget(page);
    usi_release(&page->allocator, page->assets, (size_t)page->cap_asset * sizeof *page->assets,
                _Alignof(max_align_t));
}

static void answer_text(const usi_page *page, int32_t status, const char *text, usi_web_answer *out) {
    size_t length = strlen(text);
    void *bytes = usi_alloc(&page->allocator, length, 1);
    *out = (usi_web_answer){status, "text/plain; charset=utf-8", bytes, bytes ? length : 0};
    if (bytes) memcpy(bytes, text, length);
}

static void answer_copy(const usi_page *page, const char *type, const void *from, size_t length,
                        usi_web_answer *out) {
    void *bytes = usi_alloc(&page->allocator, length, 1);
    if (!bytes) {
        *out = (usi_web_answer){.status = 503, .type = "text/plain"};
        return;
    }
    memcpy(bytes, from, length);
    *out = (usi_web_answer){200, type, bytes, length};
}

static void answer_world(usi_page *page, const usi_revision *world, usi_web_answer *out) {
    if (!page->world_json &&
        usi_world_json(world, &page->allocator, &page->world_json, &page->world_length)) {
        page->world_json = NULL;
        page->world_length = 0;
        answer_text(page, 503, "there is not enough memory to tell the world", out);
        return;
    }
    answer_copy(page, "application/json", page->world_json, page->world_length, out);
}

static void keep(usi_page *page, const char *name, void *bytes, size_t length) {
    if (page->n_asset >= MAX_ASSETS || length > MAX_BYTES - page->asset_bytes ||
        usi_grow(&page->allocator, (void **)&page->assets, page->n_asset, &page->cap_asset,
                 sizeof *page->assets)) {
        usi_release(&page->allocator, bytes, length, 1);
        return;
    }
    usi_page_asset *asset = &page->assets[page->n_asset++];
    snprintf(asset->name, sizeof asset->name, "%s", name);
    asset->bytes = bytes;
    asset->length = length;
    page->asset_bytes += length;
}

static void answer_asset(usi_page *page, const usi_revision *world, const char *name, usi_web_answer *out) {
    const char *dot = strrchr(name, '.');
    const char *type = dot && strcmp(dot, ".glb") == 0 ? "model/gltf-binary" : "application/octet-stream";
    for (int32_t i = 0; i < page->n_asset; i++) {
        if (strcmp(page->assets[i].name, name) != 0) continue;
        answer_copy(page, type, page->assets[i].bytes, page->assets[i].length, out);
        return;
    }
    us_error err = {0};
    void *bytes = NULL;
    size_t length = 0;
    us_status status =
        strncmp(name, "bed/", 4) == 0
            ? usi_ruts_ground(&page->ruts, world, name + 4, &page->allocator, &bytes, &length, &err)
            : usi_world_asset(world, name, &page->allocator, &bytes, &length, &err);
    if (status) {
        answer_text(page,
                    status == US_ERR_NAME     ? 404
                    : status == US_ERR_MEMORY ? 503
                                              : 500,
                    err.message[0] ? err.message : us_status_text(status), out);
        return;
    }
    // Of the many tiles of ground each is cut out anew.
    if (strchr(name, '/')) {
        *out = (usi_web_answer){200, type, bytes, length};
        return;
    }
    answer_copy(page, type, bytes, length, out);
    keep(page, name, bytes, length);
}

// "EPOCH/NAME": plain digits, no sign, no zero in front.
static bool split_asset(const char *text, uint32_t *out_epoch, const char **out_name) {
    uint64_t epoch = 0;
    const char *at = text;
    if (*at < '1' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        epoch = 10 * epoch + (uint64_t)(*at - '0');
        if (epoch > UINT32_MAX) return false;
    }
    if (*at != '/') return false;
    *out_epoch = (uint32_t)epoch;
    *out_name = at + 1;
    return strlen(at + 1) < sizeof((usi_page_asset *)0)->name;
}

void usi_page_get(void *context, const char *path, usi_web_answer *out) {
    static const char asset_path[] = "/api/asset/";
    usi_page *page = context;
    bool is_world = strcmp(path, "/api/world") == 0,
         is_asset = strncmp(path, asset_path, sizeof asset_path - 1) == 0;
    uint32_t epoch = 0;
    const char *name = NULL;
    if (!is_world && (!is_asset || !split_asset(path + sizeof asset_path - 1, &epoch, &name))) {
        answer_text(page, 404, "there is /api/world, and /api/asset/EPOCH/SHAPE.glb or .field as it says",
                    out);
        return;
    }
    usi_revision *world = usi_world_take_world(page->host);
    if (page->cache_epoch != world->epoch) {
        forget(page);
        page->cache_epoch = world->epoch;
    }
    if (is_world) {
        answer_world(page, world, out);
    } else if (epoch != world->epoch) {
        answer_text(page, 410, "this is of another epoch: get /api/world again", out);
    } else {
        answer_asset(page, world, name, out);
    }
    usi_revision_unref(world);
}
