// Reading binary glTF, for tests.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "glb_reader.h"
#include "understudy/math.h"

static uint32_t u32_at(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

test_glb test_glb_open(void *bytes, size_t length) {
    test_glb g = {.bytes = bytes, .length = length};
    assert_true(g.length >= 28);
    assert_memory_equal(g.bytes, "glTF", 4);
    assert_int_equal(u32_at(g.bytes + 4), 2);
    assert_int_equal(u32_at(g.bytes + 8), g.length);
    size_t json_length = u32_at(g.bytes + 12);
    assert_memory_equal(g.bytes + 16, "JSON", 4);
    assert_int_equal(json_length % 4, 0);
    assert_true(20 + json_length + 8 <= g.length);
    g.json = cJSON_ParseWithLength((const char *)g.bytes + 20, json_length);
    assert_non_null(g.json);
    const unsigned char *chunk = g.bytes + 20 + json_length;
    g.data_length = u32_at(chunk);
    assert_memory_equal(chunk + 4, "BIN", 4);
    assert_int_equal(g.data_length % 4, 0);
    g.data = chunk + 8;
    assert_int_equal(20 + json_length + 8 + g.data_length, g.length);
    return g;
}

const cJSON *test_glb_get(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("there is no \"%s\"", key);
    return item;
}

int test_glb_integer(const cJSON *object, const char *key) {
    const cJSON *item = test_glb_get(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valueint;
}

// The bytes of a view, which must lie inside the chunk.
const unsigned char *test_glb_view_of(const test_glb *g, int view, size_t *out_length) {
    const cJSON *v = cJSON_GetArrayItem(test_glb_get(g->json, "bufferViews"), view);
    assert_non_null(v);
    size_t offset = (size_t)test_glb_integer(v, "byteOffset"),
           length = (size_t)test_glb_integer(v, "byteLength");
    assert_int_equal(offset % 4, 0);
    assert_true(offset <= g->data_length && length <= g->data_length - offset);
    *out_length = length;
    return g->data + offset;
}

static const unsigned char *accessor_of(const test_glb *g, int index, const char *type, int component,
                                        size_t each, int *out_count) {
    const cJSON *a = cJSON_GetArrayItem(test_glb_get(g->json, "accessors"), index);
    assert_non_null(a);
    assert_string_equal(test_glb_get(a, "type")->valuestring, type);
    assert_int_equal(test_glb_integer(a, "componentType"), component);
    *out_count = test_glb_integer(a, "count");
    size_t length = 0;
    const unsigned char *bytes = test_glb_view_of(g, test_glb_integer(a, "bufferView"), &length);
    assert_int_equal(length, (size_t)*out_count * each);
    return bytes;
}

static const float *floats_of(const test_glb *g, const cJSON *attributes, const char *name, const char *type,
                              size_t n, int n_vertex) {
    if (!cJSON_HasObjectItem(attributes, name)) return NULL;
    int count = 0;
    const void *bytes = accessor_of(g, test_glb_integer(attributes, name), type, 5126, 4 * n, &count);
    assert_int_equal(count, n_vertex);
    return bytes;
}

int test_glb_n_part(const test_glb *g) {
    return cJSON_GetArraySize(
        test_glb_get(cJSON_GetArrayItem(test_glb_get(g->json, "meshes"), 0), "primitives"));
}

test_glb_part test_glb_part_of(const test_glb *g, int i) {
    const cJSON *p = cJSON_GetArrayItem(
        test_glb_get(cJSON_GetArrayItem(test_glb_get(g->json, "meshes"), 0), "primitives"), i);
    const cJSON *attributes = test_glb_get(p, "attributes");
    test_glb_part out = {0};
    const void *bytes =
        accessor_of(g, test_glb_integer(attributes, "POSITION"), "VEC3", 5126, 12, &out.n_vertex);
    out.position = bytes;
    out.normal = floats_of(g, attributes, "NORMAL", "VEC3", 3, out.n_vertex);
    out.uv = floats_of(g, attributes, "TEXCOORD_0", "VEC2", 2, out.n_vertex);
    if (cJSON_HasObjectItem(attributes, "COLOR_0")) {
        const cJSON *a =
            cJSON_GetArrayItem(test_glb_get(g->json, "accessors"), test_glb_integer(attributes, "COLOR_0"));
        out.n_colour = strcmp(test_glb_get(a, "type")->valuestring, "VEC4") == 0 ? 4 : 3;
        out.colour = floats_of(g, attributes, "COLOR_0", out.n_colour == 4 ? "VEC4" : "VEC3",
                               (size_t)out.n_colour, out.n_vertex);
    }
    bytes = accessor_of(g, test_glb_integer(p, "indices"), "SCALAR", 5125, 4, &out.n_index);
    out.index = bytes;
    assert_int_equal(out.n_index % 3, 0);
    for (int k = 0; k < out.n_index; k++)
        assert_true(out.index[k] < (uint32_t)out.n_vertex);
    out.material = cJSON_GetArrayItem(test_glb_get(g->json, "materials"), test_glb_integer(p, "material"));
    assert_non_null(out.material);
    // What the accessor says of its range is so.
    const cJSON *a =
        cJSON_GetArrayItem(test_glb_get(g->json, "accessors"), test_glb_integer(attributes, "POSITION"));
    for (int k = 0; k < 3; k++) {
        float low = INFINITY, high = -INFINITY;
        for (int v = 0; v < out.n_vertex; v++) {
            low = fminf(low, out.position[3 * v + k]);
            high = fmaxf(high, out.position[3 * v + k]);
        }
        assert_true((float)cJSON_GetArrayItem(test_glb_get(a, "min"), k)->valuedouble == low);
        assert_true((float)cJSON_GetArrayItem(test_glb_get(a, "max"), k)->valuedouble == high);
    }
    return out;
}

test_glb_summary test_glb_summary_of(const test_glb *g) {
    test_glb_summary s = {.low = {INFINITY, INFINITY, INFINITY},
                          .high = {-INFINITY, -INFINITY, -INFINITY},
                          .least_alignment = 1};
    for (int i = 0; i < test_glb_n_part(g); i++) {
        test_glb_part p = test_glb_part_of(g, i);
        s.n_triangle += p.n_index / 3;
        for (int t = 0; t < p.n_index; t += 3) {
            us_vec3 c[3];
            for (int k = 0; k < 3; k++) {
                const float *v = p.position + 3 * p.index[t + k];
                const double x[3] = {(double)v[0], (double)v[1], (double)v[2]};
                c[k] = us_vec3_make(x[0], x[1], x[2]);
                for (int d = 0; d < 3; d++) {
                    s.low[d] = fmin(s.low[d], x[d]);
                    s.high[d] = fmax(s.high[d], x[d]);
                }
            }
            us_vec3 n = us_vec3_cross(us_vec3_sub(c[1], c[0]), us_vec3_sub(c[2], c[0]));
            s.volume += us_vec3_dot(c[0], us_vec3_cross(c[1], c[2])) / 6;
            s.n_flat += memcmp(&c[0], &c[1], sizeof *c) == 0 || memcmp(&c[1], &c[2], sizeof *c) == 0 ||
                        memcmp(&c[2], &c[0], sizeof *c) == 0;
            double length = sqrt(us_vec3_dot(n, n));
            for (int k = 0; k < 3 && p.normal; k++) {
                const float *m = p.normal + 3 * p.index[t + k];
                us_vec3 normal = us_vec3_make((double)m[0], (double)m[1], (double)m[2]);
                // Single precision.
                assert_true(fabs(us_vec3_dot(normal, normal) - 1) < 1e-5);
                if (length > 0) s.least_alignment = fmin(s.least_alignment, us_vec3_dot(normal, n) / length);
            }
        }
    }
    return s;
}
