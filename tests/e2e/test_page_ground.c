// Ground on the page: tiles by HTTP, ruts as they form, soils and regions and what stands in them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page_rig.h"
#include "view/view__ground.h"

// A ball that falls into sand: 3 m of it in columns of 2 cm, on a slope of 1 in 10 that is 0.5 m up.
static const char sand_scene[] =
    "<scene name='sand' version='1'><world step='1 ms'>"
    "<shape name='ground' type='height-field' nx='61' ny='61' dx='0.05' dy='0.05' surface='sand' bed='20 mm' "
    "xyz='1 2 0.5' expression='0.1*x'/>"
    "<region name='east' ground='ground' surface='crust' polygon='1 -1.5 1.5 -1.5 1.5 1.5 1 1.5'/></world>"
    "<material name='steel'/><material name='sand'><soil like='dry_sand'/></material><material "
    "name='crust'><soil like='mars_crusty'/></material>"
    "<object name='ball' xyz='1 2 0.75'><link name='link' density='7800'><shape type='sphere' size='0.1' "
    "surface='steel'/></link></object>"
    "</scene>";

enum { N = 61, SIDE = USI_GROUND_SIDE };

static void get(const char *path, int wanted, void *out, size_t size) {
    char *body;
    size_t length;
    int status = ws_get(page.port, path, &body, &length);
    if (status != wanted) fail_msg("%s: %d and not %d", path, status, wanted);
    if (out) {
        assert_int_equal(length, size);
        memcpy(out, body, size);
    }
    free(body);
}

static void tiles_come_by_http_and_names_that_are_none_do_not(void **state) {
    (void)state;
    page_start(sand_scene, NULL, NULL, NULL);
    static float tile[SIDE * SIDE];
    get("/api/asset/1/0/0/1_1.field", 200, tile, sizeof tile);
    for (int k = 0; k < SIDE * SIDE; k++) {
        int i = 32 + k % SIDE - USI_GROUND_BORDER;
        double x = ((i < N ? i : N - 1) - 30) * 0.05;
        assert_true(fabs((double)tile[k] - 0.1 * x) < 1e-6);
    }
    // 60 cells: two levels, and the coarse one goes on to the edge.
    get("/api/asset/1/0/1/0_0.field", 200, tile, sizeof tile);
    assert_true(fabs((double)tile[SIDE - 1] - 0.1 * 1.5) < 1e-6);
    const char *const bad[] = {"0/2/0_0.field",   "0/0/2_0.field", "0/0/0_2.field",  "0/0/0_0.photo",
                               "0/0/0_0.exe",     "0/0/0_0",       "0/0/00_0.field", "0//0_0.field",
                               "0/0/-1_0.field",  "1/0/0_0.field", "9/0/0_0.field",  "bed/0/9_9.field",
                               "bed/1/0_0.field", "bed/0_0.field", "bed/0/0_0.glb"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "/api/asset/1/%s", bad[i]);
        get(path, 404, NULL, 0);
    }
    get("/api/asset/2/0/0/0_0.field", 410, NULL, 0);
    char *body;
    size_t length;
    assert_int_equal(ws_get(page.port, "/api/world", &body, &length), 200);
    cJSON *world = cJSON_ParseWithLength(body, length);
    const cJSON *ground =
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(world, "shapes"), 0), "ground");
    assert_string_equal(page_text_of(ground, "tiles"), "/api/asset/1/0");
    assert_true(page_number(ground, "levels") == 2 && !page_is_true(ground, "photo"));
    assert_true(fabs(page_number(ground, "low") + 0.15) < 1e-12 &&
                fabs(page_number(ground, "high") - 0.15) < 1e-12);
    cJSON_Delete(world);
    free(body);
    page_stop();
}

static float float_at(const uint8_t *at) {
    float x;
    memcpy(&x, at, sizeof x);
    return x;
}

static int32_t int_at(const uint8_t *at) {
    int32_t x;
    memcpy(&x, at, sizeof x);
    return x;
}

// What a client knows of the patch: the change of each column, m, where it was told.
typedef struct known {
    float change[4][4][USI_VIEW_RUT_COLUMNS];  // [v][u]
    int n_tile;                                // messages of tiles
} known;

static void take(known *k, const page_frame *f) {
    for (uint32_t i = 0; i < f->n; i++) {
        const uint8_t *at = f->entries + (size_t)i * USI_VIEW_RUT_SIZE;
        int32_t u = int_at(at + 4), v = int_at(at + 8);
        float unit = float_at(at + 12);
        assert_int_equal(int_at(at), 0);
        assert_true(u >= 0 && u < 3 && v >= 0 && v < 3);
        for (int c = 0; c < USI_VIEW_RUT_COLUMNS; c++) {
            int16_t change;
            memcpy(&change, at + 16 + 2 * c, sizeof change);
            k->change[v][u][c] = unit * (float)change;
        }
        k->n_tile++;
    }
}

// Takes what comes until the client knows of the patch as it is in the simulation; false when it does not
// come to that in time.
static bool comes_to_know(ws_client *c, known *k) {
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    const us_sim *sim = us_world_get_sim(page.world);
    us_deformable_info patch = us_sim_get_deformable(sim, 0);
    while (usi_view_clock() < until) {
        bool is_same = true;
        for (int32_t v = 0; v < patch.n_tile_y; v++) {
            for (int32_t u = 0; u < patch.n_tile_x; u++) {
                static float change[USI_VIEW_RUT_COLUMNS];
                int32_t n_x = u + 1 < patch.n_tile_x ? 64 : patch.n_x - 64 * u,
                        n_y = v + 1 < patch.n_tile_y ? 64 : patch.n_y - 64 * v;
                assert_int_equal(us_sim_get_deformable_tile(sim, 0, u, v, NULL, change), US_OK);
                for (int i = 0; i < n_x * n_y; i++) {
                    // A 32767th of the tile's greatest change, which is below 0.2 m.
                    is_same &=
                        fabs((double)(change[i] - k->change[v][u][i / n_x * 64 + i % n_x])) < 0.2 / 32767;
                }
            }
        }
        if (is_same) return true;
        if (!page_next(c, until) || c->opcode != WS_BINARY || c->n_message < USI_VIEW_HEAD_SIZE ||
            ((const uint8_t *)c->message)[0] != USI_VIEW_RUTS)
            continue;
        page_frame f = {.entries = (const uint8_t *)c->message + USI_VIEW_HEAD_SIZE};
        memcpy(&f.n, (const uint8_t *)c->message + 24, sizeof f.n);
        assert_int_equal(c->n_message, USI_VIEW_HEAD_SIZE + f.n * (size_t)USI_VIEW_RUT_SIZE);
        take(k, &f);
    }
    return false;
}

static double deepest(const known *k) {
    double low = 0;
    for (int v = 0; v < 3; v++) {
        for (int u = 0; u < 3; u++) {
            for (int c = 0; c < USI_VIEW_RUT_COLUMNS; c++)
                low = fmin(low, (double)k->change[v][u][c]);
        }
    }
    return low;
}

static void ruts_come_as_they_form_and_go_with_the_past(void **state) {
    (void)state;
    page_start(sand_scene, NULL, NULL, NULL);
    static known first, late;
    memset(&first, 0, sizeof first);
    memset(&late, 0, sizeof late);
    ws_client *c = page_open(NULL);
    cJSON *patches = page_text(c, "beds");
    const cJSON *patch = cJSON_GetArrayItem(cJSON_GetObjectItem(patches, "beds"), 0);
    us_deformable_info info = us_sim_get_deformable(us_world_get_sim(page.world), 0);
    assert_true(page_number(patch, "shape") == 0 && page_number(patch, "nx") == info.n_x &&
                fabs(page_number(patch, "spacing") - 0.02) < 1e-12);
    assert_string_equal(page_text_of(patch, "tiles"), "/api/asset/1/bed/0");
    cJSON_Delete(patches);
    // The ground below a tile: the slope of 1 in 10, in the patch's frame, from the column before the tile's
    // first on.
    static float below[USI_RUTS_DEFORMABLE_SIDE * USI_RUTS_DEFORMABLE_SIDE];
    get("/api/asset/1/bed/0/1_1.field", 200, below, sizeof below);
    for (int k = 0; k < USI_RUTS_DEFORMABLE_SIDE * USI_RUTS_DEFORMABLE_SIDE; k++) {
        double x = (64 - 1 + k % USI_RUTS_DEFORMABLE_SIDE - 0.5 * (info.n_x - 1)) * 0.02;
        if (fabs((double)below[k] + info.X_WB.p.z - 0.5 - 0.1 * x) > 1e-6)
            fail_msg("column %d: %g", k, (double)below[k]);
    }
    // The ball falls in; the client learns what it does, while it does it and when it lies. Another one
    // commands: who waits for an answer throws away what else comes.
    ws_client *boss = page_open(NULL);
    us_sim *sim = us_world_get_sim(page.world);
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (us_sim_get_time(sim) < 0.6 && usi_view_clock() < until)
        page_next(boss, usi_view_clock() + 0.01);
    assert_true(page_command(boss, "pause", NULL, 0));
    assert_true(comes_to_know(c, &first));
    assert_true(first.n_tile >= 1 && deepest(&first) < -0.005);
    // One who comes later gets all of it, and nothing twice while nothing changes.
    ws_client *d = page_open(NULL);
    assert_true(comes_to_know(d, &late));
    int n_touched = 0;
    for (int32_t v = 0; v < info.n_tile_y; v++) {
        for (int32_t u = 0; u < info.n_tile_x; u++)
            n_touched += us_sim_get_deformable_version(sim, 0, u, v) != 0;
    }
    assert_true(late.n_tile <= n_touched);
    // The past has no ruts.
    assert_true(page_command(boss, "reset", NULL, 0));
    assert_true(comes_to_know(c, &first) && comes_to_know(d, &late));
    assert_true(deepest(&first) == 0 && deepest(&late) == 0);
    page_leave(c);
    page_leave(d);
    page_leave(boss);
    page_stop();
}

static const cJSON *named(const cJSON *list, const char *name) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (strcmp(page_text_of(item, "name"), name) == 0) return item;
    }
    fail_msg("there is no \"%s\"", name);
    return NULL;
}

static void soils_and_regions_are_told_and_changed(void **state) {
    (void)state;
    page_start(sand_scene, NULL, NULL, NULL);
    ws_client *c = page_open(NULL);
    cJSON *pairs = page_text(c, "pairs");
    us_soil sand;
    assert_true(us_soil_find("dry_sand", &sand));
    const cJSON *values = cJSON_GetObjectItem(named(cJSON_GetObjectItem(pairs, "soils"), "sand"), "values");
    assert_true(page_number(values, "cohesion") == sand.cohesion &&
                page_number(values, "compaction") == sand.compaction);
    assert_string_equal(page_text_of(named(cJSON_GetObjectItem(pairs, "regions"), "east"), "material"),
                        "crust");
    cJSON_Delete(pairs);
    assert_true(page_command(c, "soil sand cohesion=123 friction_angle=0.5", NULL, 0));
    assert_true(page_command(c, "region east sand", NULL, 0));
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    bool is_told = false;
    while (!is_told && usi_view_clock() < until) {
        pairs = page_text(c, "pairs");
        values = cJSON_GetObjectItem(named(cJSON_GetObjectItem(pairs, "soils"), "sand"), "values");
        is_told = page_number(values, "cohesion") == 123 && page_number(values, "friction_angle") == 0.5 &&
                  strcmp(page_text_of(named(cJSON_GetObjectItem(pairs, "regions"), "east"), "material"),
                         "sand") == 0;
        cJSON_Delete(pairs);
    }
    assert_true(is_told);
    // The ball in the sand, once it is there.
    bool is_sunk = false;
    until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (!is_sunk && usi_view_clock() < until) {
        cJSON *status = page_text(c, "status");
        const cJSON *soil_contact = cJSON_GetArrayItem(cJSON_GetObjectItem(status, "sunk"), 0);
        is_sunk = soil_contact && page_number(soil_contact, "link") == 0 &&
                  page_number(soil_contact, "soil") == 1 && page_number(soil_contact, "sinkage") > 0 &&
                  !page_is_true(soil_contact, "wheel");
        cJSON_Delete(status);
    }
    assert_true(is_sunk);
    page_leave(c);
    page_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_come_by_http_and_names_that_are_none_do_not),
        cmocka_unit_test(ruts_come_as_they_form_and_go_with_the_past),
        cmocka_unit_test(soils_and_regions_are_told_and_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
