// site.json: the description of a site, read and written.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/files.h"
#include "base/memory.h"
#include "terrain/site.h"

static const char *const FORMAT = "understudy-site";
enum { VERSION = 1, MAX_SAMPLES = 1 << 24 };

static const char *const TYPE[] = {
#define TYPE_NAME(code, name) name,
    US_LAYER_LIST(TYPE_NAME)
#undef TYPE_NAME
};

// A layer's name is a directory's too.
static bool is_name(const char *name) {
    size_t n = strlen(name);
    return n > 0 && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

us_status usi_site_check(const us_site_info *info, const char *file, us_error *err) {
    us_place place = {.file = file};
    if (info->n_layer < 1 || info->n_layer > US_SITE_LAYERS)
        return us_error_set(err, US_ERR_VALUE, &place, "give 1 to 8 layers, the height first",
                            "a site of %d layers", (int)info->n_layer);
    if (strcmp(info->layer[0].name, "height") != 0 || info->layer[0].type != US_LAYER_NUMBER)
        return us_error_set(err, US_ERR_VALUE, &place, "put a layer \"height\" of type \"number\" first",
                            "the first layer is not the height");
    if (!isfinite(us_vec3_dot(info->origin, info->origin)))
        return us_error_set(err, US_ERR_VALUE, &place, "give three finite numbers",
                            "the origin is not a place");
    for (int32_t i = 0; i < info->n_layer; i++) {
        const us_layer_info *l = &info->layer[i];
        if (!memchr(l->name, 0, sizeof l->name) || !is_name(l->name))
            return us_error_set(err, US_ERR_NAME, &place,
                                "use 1 to 31 letters, digits, '.', '_' and '-', no '.' first",
                                "the name of layer %d cannot be that of a directory", (int)i);
        for (int32_t k = 0; k < i; k++) {
            if (strcmp(info->layer[k].name, l->name) == 0)
                return us_error_set(err, US_ERR_NAME, &place, "give each layer a name of its own",
                                    "two layers are called \"%s\"", l->name);
        }
        if ((int)l->type < 0 || l->type >= US_LAYER_COUNT)
            return us_error_set(err, US_ERR_VALUE, &place, "use number, region or colour",
                                "invalid type of layer \"%s\"", l->name);
        if (l->n_x < 2 || l->n_y < 2 || l->n_x > MAX_SAMPLES || l->n_y > MAX_SAMPLES)
            return us_error_set(err, US_ERR_VALUE, &place, "use 2 to 16777216 samples each way",
                                "layer \"%s\" has %d by %d samples", l->name, (int)l->n_x, (int)l->n_y);
        if (!(isfinite(l->dx) && isfinite(l->dy) && l->dx > 0 && l->dy > 0))
            return us_error_set(err, US_ERR_VALUE, &place, "use a spacing above 0, finite",
                                "the spacing of layer \"%s\" is %g by %g", l->name, l->dx, l->dy);
    }
    return US_OK;
}

// ---------------------------------------------------------------- reading

static bool get_number(const cJSON *object, const char *name, double *out) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
    *out = item->valuedouble;
    return true;
}

static bool get_whole(const cJSON *object, const char *name, double max, int64_t *out) {
    double x;
    if (!get_number(object, name, &x) || !(x >= 0 && x <= max) || x != floor(x)) return false;
    *out = (int64_t)x;
    return true;
}

static bool get_numbers(const cJSON *object, const char *name, int n, double *out) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != n) return false;
    for (int i = 0; i < n; i++) {
        const cJSON *x = cJSON_GetArrayItem(item, i);
        if (!cJSON_IsNumber(x) || !isfinite(x->valuedouble)) return false;
        out[i] = x->valuedouble;
    }
    return true;
}

// A text of less than `cap` bytes.
static bool get_text(const cJSON *object, const char *name, char *out, size_t cap) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    if (!text || strlen(text) >= cap) return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

// Reads a layer. Returns the name of what is missing or wrong; NULL: nothing.
static const char *read_layer(const cJSON *json, us_layer_info *l) {
    char type[16];
    double samples[2], spacing[2];
    int64_t n_level;
    if (!get_text(json, "name", l->name, sizeof l->name)) return "\"name\" of a layer";
    if (!get_text(json, "type", type, sizeof type)) return "\"type\" of a layer";
    for (l->type = 0; l->type < US_LAYER_COUNT && strcmp(TYPE[l->type], type) != 0;)
        l->type = (us_layer_type)(l->type + 1);
    if (!get_numbers(json, "samples", 2, samples)) return "\"samples\" of a layer";
    for (int i = 0; i < 2; i++) {
        if (!(samples[i] >= 2 && samples[i] <= (double)MAX_SAMPLES) || samples[i] != floor(samples[i]))
            return "\"samples\" of a layer";
    }
    if (!get_numbers(json, "spacing", 2, spacing)) return "\"spacing\" of a layer";
    l->n_x = (int32_t)samples[0];
    l->n_y = (int32_t)samples[1];
    l->dx = spacing[0];
    l->dy = spacing[1];
    if (!get_whole(json, "levels", US_SITE_LEVELS, &n_level) || n_level != usi_layer_levels(l->n_x, l->n_y))
        return "\"levels\" of a layer";
    l->n_level = (int32_t)n_level;
    if (l->type == US_LAYER_NUMBER &&
        !(get_number(json, "low", &l->low) && get_number(json, "high", &l->high) && l->low <= l->high))
        return "\"low\" and \"high\" of a layer";
    return NULL;
}

static const char *read_site(const cJSON *json, us_site_info *info, const char **out_wkt) {
    char text[64];
    int64_t n;
    double origin[3];
    if (!get_text(json, "format", text, sizeof text) || strcmp(text, FORMAT) != 0) return "\"format\"";
    if (!get_whole(json, "version", 1e6, &n) || n != VERSION) return "\"version\"";
    if (!get_whole(json, "tile", 1e6, &n) || n != US_SITE_TILE) return "\"tile\"";
    if (!get_numbers(json, "origin", 3, origin)) return "\"origin\"";
    info->origin = us_vec3_make(origin[0], origin[1], origin[2]);
    if (!get_text(json, "reference", info->reference, sizeof info->reference)) return "\"reference\"";
    *out_wkt = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "wkt"));
    if (!*out_wkt) return "\"wkt\"";
    if (!get_whole(json, "gaps", 0x1p53, &info->n_gap)) return "\"gaps\"";
    if (!get_text(json, "hash", text, sizeof text) || strlen(text) != 16 ||
        strspn(text, "0123456789abcdef") != 16)
        return "\"hash\"";
    info->hash = strtoull(text, NULL, 16);
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(json, "layers"), *layer;
    if (!cJSON_IsArray(layers) || cJSON_GetArraySize(layers) > US_SITE_LAYERS) return "\"layers\"";
    cJSON_ArrayForEach(layer, layers) {
        const char *wrong = read_layer(layer, &info->layer[info->n_layer++]);
        if (wrong) return wrong;
    }
    return NULL;
}

us_status usi_site_parse(us_site *site, const char *text, size_t length, const char *file, us_error *err) {
    static const char *const REMEDY = "put the file back from a copy of the site, or make the site again";
    us_place place = {.file = file};
    const char *wkt = NULL;
    errno = 0;
    cJSON *json = cJSON_ParseWithLength(text, length);
    if (!json && errno == ENOMEM)
        return us_error_set(err, US_ERR_MEMORY, &place, NULL, "no memory to read the site");
    if (!json) return us_error_set(err, US_ERR_SYNTAX, &place, REMEDY, "the file is not JSON");
    site->info = (us_site_info){0};
    const char *wrong = read_site(json, &site->info, &wkt);
    us_status status =
        wrong ? us_error_set(err, US_ERR_SYNTAX, &place, REMEDY, "%s is missing or cannot be used", wrong)
              : US_OK;
    if (!status) {
        status = usi_site_check(&site->info, file, err);
        if (status) status = US_ERR_SYNTAX;
        if (status && err) err->code = status;
    }
    if (!status && wkt) {
        site->wkt_bytes = strlen(wkt) + 1;
        site->wkt = usi_alloc(&site->allocator, site->wkt_bytes, 1);
        if (site->wkt) memcpy(site->wkt, wkt, site->wkt_bytes);
        if (!site->wkt) status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a site");
    }
    site->info.wkt = site->wkt;
    cJSON_Delete(json);
    return status;
}

// ---------------------------------------------------------------- writing

static bool add_layer(cJSON *layers, const us_layer_info *l) {
    cJSON *json = cJSON_CreateObject();
    if (!json || !cJSON_AddItemToArray(layers, json)) {
        cJSON_Delete(json);
        return false;
    }
    double samples[] = {l->n_x, l->n_y}, spacing[] = {l->dx, l->dy};
    cJSON *s = cJSON_CreateDoubleArray(samples, 2), *d = cJSON_CreateDoubleArray(spacing, 2);
    bool ok = cJSON_AddStringToObject(json, "name", l->name) &&
              cJSON_AddStringToObject(json, "type", TYPE[l->type]);
    ok = cJSON_AddItemToObject(json, "samples", s) && cJSON_AddItemToObject(json, "spacing", d) && ok;
    ok = ok && cJSON_AddNumberToObject(json, "levels", l->n_level);
    if (l->type == US_LAYER_NUMBER)
        ok = ok && cJSON_AddNumberToObject(json, "low", l->low) &&
             cJSON_AddNumberToObject(json, "high", l->high);
    return ok;
}

us_status usi_site_write_json(const us_site *site, us_error *err) {
    const us_site_info *info = &site->info;
    char path[USI_SITE_FILE], hash[17];
    snprintf(path, sizeof path, "%s/site.json", site->path);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)info->hash);
    double origin[] = {info->origin.x, info->origin.y, info->origin.z};
    cJSON *json = cJSON_CreateObject(), *place = cJSON_CreateDoubleArray(origin, 3);
    bool ok =
        cJSON_AddStringToObject(json, "format", FORMAT) && cJSON_AddNumberToObject(json, "version", VERSION);
    ok = ok && cJSON_AddNumberToObject(json, "tile", US_SITE_TILE);
    ok = cJSON_AddItemToObject(json, "origin", place) && ok;
    ok = ok && cJSON_AddStringToObject(json, "reference", info->reference) &&
         cJSON_AddStringToObject(json, "wkt", site->wkt);
    ok = ok && cJSON_AddNumberToObject(json, "gaps", (double)info->n_gap) &&
         cJSON_AddStringToObject(json, "hash", hash);
    cJSON *layers = ok ? cJSON_AddArrayToObject(json, "layers") : NULL;
    ok = layers != NULL;
    for (int32_t i = 0; i < info->n_layer && ok; i++)
        ok = add_layer(layers, &info->layer[i]);
    char *text = ok ? cJSON_Print(json) : NULL;
    us_status status = text ? usi_bytes_write(path, text, strlen(text), "\n", 1, err)
                            : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for %s", path);
    cJSON_free(text);
    cJSON_Delete(json);
    return status;
}
