// What a GET under /api/ is answered: the world of now, and the meshes and fields in it.
//
// Both are kept for the revision, for twenty pages that are opened ask for the same twenty times; a mesh
// takes long to read.
#include <stdio.h>
#include <string.h>

#include "view/view__asset.h"
#include "view/view__page.h"

enum { MAX_ASSETS = 1024 };
static const size_t MAX_BYTES = (size_t)64 * 1024 * 1024;  // of kept assets

static void forget(us_view *view) {
    const us_allocator *a = &view->allocator;
    usi_release(a, view->world_json, view->world_length, 1);
    view->world_json = NULL;
    view->world_length = 0;
    for (int32_t i = 0; i < view->n_asset; i++)
        usi_release(a, view->assets[i].bytes, view->assets[i].length, 1);
    view->n_asset = 0;
    view->asset_bytes = 0;
}

void usi_page_get_fini(us_view *view) {
    forget(view);
    usi_release(&view->allocator, view->assets, (size_t)view->cap_asset * sizeof *view->assets,
                _Alignof(max_align_t));
}

static void answer_text(const us_view *view, int32_t status, const char *text, usi_web_answer *out) {
    size_t length = strlen(text);
    void *bytes = usi_alloc(&view->allocator, length, 1);
    *out = (usi_web_answer){status, "text/plain; charset=utf-8", bytes, bytes ? length : 0};
    if (bytes) memcpy(bytes, text, length);
}

static void answer_copy(const us_view *view, const char *type, const void *from, size_t length,
                        usi_web_answer *out) {
    void *bytes = usi_alloc(&view->allocator, length, 1);
    if (!bytes) {
        *out = (usi_web_answer){.status = 503, .type = "text/plain"};
        return;
    }
    memcpy(bytes, from, length);
    *out = (usi_web_answer){200, type, bytes, length};
}

static void answer_world(us_view *view, const usi_revision *revision, usi_web_answer *out) {
    if (!view->world_json &&
        usi_world_json(revision, &view->allocator, &view->world_json, &view->world_length)) {
        view->world_json = NULL;
        view->world_length = 0;
        answer_text(view, 503, "there is not enough memory to tell the world", out);
        return;
    }
    answer_copy(view, "application/json", view->world_json, view->world_length, out);
}

static void keep(us_view *view, const char *name, void *bytes, size_t length) {
    if (view->n_asset >= MAX_ASSETS || length > MAX_BYTES - view->asset_bytes ||
        usi_grow(&view->allocator, (void **)&view->assets, view->n_asset, &view->cap_asset,
                 sizeof *view->assets)) {
        usi_release(&view->allocator, bytes, length, 1);
        return;
    }
    usi_page_asset *asset = &view->assets[view->n_asset++];
    snprintf(asset->name, sizeof asset->name, "%s", name);
    asset->bytes = bytes;
    asset->length = length;
    view->asset_bytes += length;
}

static void answer_asset(us_view *view, const usi_revision *revision, const char *name, usi_web_answer *out) {
    const char *dot = strrchr(name, '.');
    const char *type = dot && strcmp(dot, ".glb") == 0 ? "model/gltf-binary" : "application/octet-stream";
    for (int32_t i = 0; i < view->n_asset; i++) {
        if (strcmp(view->assets[i].name, name) != 0) continue;
        answer_copy(view, type, view->assets[i].bytes, view->assets[i].length, out);
        return;
    }
    us_error err = {0};
    void *bytes = NULL;
    size_t length = 0;
    us_status status =
        strncmp(name, "bed/", 4) == 0
            ? usi_ruts_ground(&view->ruts, revision, name + 4, &view->allocator, &bytes, &length, &err)
            : usi_world_asset(revision, name, &view->allocator, &bytes, &length, &err);
    if (status) {
        answer_text(view,
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
    answer_copy(view, type, bytes, length, out);
    keep(view, name, bytes, length);
}

// "REVISION/NAME": plain digits, no sign, no zero in front.
static bool split_asset(const char *text, uint32_t *out_revision, const char **out_name) {
    uint64_t revision = 0;
    const char *at = text;
    if (*at < '1' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        revision = 10 * revision + (uint64_t)(*at - '0');
        if (revision > UINT32_MAX) return false;
    }
    if (*at != '/') return false;
    *out_revision = (uint32_t)revision;
    *out_name = at + 1;
    return strlen(at + 1) < sizeof((usi_page_asset *)0)->name;
}

void usi_page_get(void *context, const char *path, usi_web_answer *out) {
    static const char asset_path[] = "/api/asset/";
    us_view *view = context;
    bool is_world = strcmp(path, "/api/world") == 0,
         is_asset = strncmp(path, asset_path, sizeof asset_path - 1) == 0;
    uint32_t number = 0;
    const char *name = NULL;
    if (!is_world && (!is_asset || !split_asset(path + sizeof asset_path - 1, &number, &name))) {
        answer_text(view, 404, "there is /api/world, and /api/asset/EPOCH/SHAPE.glb or .field as it says",
                    out);
        return;
    }
    usi_revision *revision = usi_world_take_revision(view->world);
    if (view->cache_revision != revision->number) {
        forget(view);
        view->cache_revision = revision->number;
    }
    if (is_world) {
        answer_world(view, revision, out);
    } else if (number != revision->number) {
        answer_text(view, 410, "this is of another epoch: get /api/world again", out);
    } else {
        answer_asset(view, revision, name, out);
    }
    usi_revision_unref(revision);
}
