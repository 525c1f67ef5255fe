// Reads binary glTF as the library writes it, with cmocka assertions on everything that a reader would rely
// on.
#ifndef TEST_GLB_READER_H
#define TEST_GLB_READER_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

typedef struct test_glb {
    unsigned char *bytes;
    size_t length;
    cJSON *json;
    const unsigned char *data;  // of the second chunk
    size_t data_length;
} test_glb;

// Header and chunks must be right to the byte. The bytes stay the caller's, the JSON is for cJSON_Delete.
test_glb test_glb_open(void *bytes, size_t length);

const cJSON *test_glb_get(const cJSON *object, const char *key);  // must be there
int test_glb_integer(const cJSON *object, const char *key);
const unsigned char *test_glb_view_of(const test_glb *g, int view, size_t *out_length);

// The arrays of one part; those that it has not are NULL.
typedef struct test_glb_part {
    int n_vertex, n_index;
    const float *position, *normal, *uv, *colour;
    int n_colour;  // numbers of each
    const uint32_t *index;
    const cJSON *material;
} test_glb_part;
int test_glb_n_part(const test_glb *g);
test_glb_part test_glb_part_of(const test_glb *g, int i);

// What the whole file holds.
typedef struct test_glb_summary {
    int n_triangle;  // of all, and
    int n_flat;      // those with two equal corners, which collide with nothing
    double low[3], high[3];
    double volume;           // enclosed, if closed; negative when inside out
    double least_alignment;  // of a vertex normal with its triangle: 1 where flat
} test_glb_summary;
test_glb_summary test_glb_summary_of(const test_glb *g);

#endif
