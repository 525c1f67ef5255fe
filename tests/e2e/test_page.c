// What a client of the page sees and does, over real sockets on loopback.
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

// ---- what it sees ----

static void a_client_is_greeted_and_told_how_things_stand(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *c = page_open(NULL);
    cJSON *hello = page_text(c, "hello");
    assert_string_equal(page_text_of(hello, "version"), us_version());
    assert_string_equal(page_text_of(hello, "scene"), "small");
    assert_true(page_number(hello, "epoch") == 1 && page_is_true(hello, "control"));
    cJSON_Delete(hello);
    cJSON *pairs = page_text(c, "pairs");
    const cJSON *row;
    int n_found = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(pairs, "pairs")) {
        const char *a = page_text_of(row, "a"), *b = page_text_of(row, "b");
        bool is_ours = (strcmp(a, "soil") == 0 && strcmp(b, "rubber") == 0) ||
                       (strcmp(a, "rubber") == 0 && strcmp(b, "soil") == 0);
        if (!is_ours) continue;
        n_found++;
        assert_true(page_number(cJSON_GetObjectItem(row, "values"), "static-friction") == 0.8);
        assert_true(page_number(cJSON_GetObjectItem(row, "values"), "rolling-length") == 0);
    }
    assert_int_equal(n_found, 1);
    cJSON_Delete(pairs);
    cJSON *status = page_text(c, "status");
    assert_true(page_number(status, "rate") == 1 && page_number(status, "actual") == 1.25 &&
                page_number(status, "step_us") == 12.5);
    assert_true(page_number(status, "missed") == 3 && page_number(status, "worst_late_ms") == 2 &&
                page_number(status, "clients") == 1);
    assert_false(page_is_true(status, "paused"));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(status, "recording")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(status, "snapshots")), 0);
    // Energy of the ball that fell no further than a few metres by now: m g h to a part in a thousand.
    double mass = 1000 * 4.0 / 3 * 3.14159265358979 * 1e-3;
    assert_true(fabs(page_number(status, "energy") / (mass * 9.81 * 1000) - 1) < 1e-3);
    cJSON_Delete(status);
    page_leave(c);
    page_stop();
}

static void the_world_is_told_as_json_and_past_epochs_are_gone(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    char *body;
    size_t length;
    assert_int_equal(ws_get(page.port, "/api/world", &body, &length), 200);
    cJSON *world = cJSON_ParseWithLength(body, length);
    assert_non_null(world);
    assert_true(page_number(world, "epoch") == 1);
    us_model_counts counts = us_model_get_counts(us_world_view_model(page.world));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(world, "links")), counts.n_body);
    cJSON_Delete(world);
    free(body);
    const struct {
        const char *path;
        int status;
    } others[] = {{"/api/world2", 404},
                  {"/api/", 404},
                  {"/api/asset/1/99.glb", 404},
                  {"/api/asset/1/0.glb", 404},
                  {"/api/asset/2/0.glb", 410},
                  {"/api/asset/0/0.glb", 404},
                  {"/api/asset/-1/0.glb", 404},
                  {"/api/asset/1", 404},
                  {"/api/asset/4294967297/0.glb", 404},
                  {"/api/asset/1/0123456789012345678901234567890123456789.glb", 404}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int status = ws_get(page.port, others[i].path, &body, &length);
        if (status != others[i].status) fail_msg("%s: %d", others[i].path, status);
        free(body);
    }

    ws_client *c = page_open(NULL);
    page_frame_of(c, USI_VIEW_POSES);
    assert_true(page_command(c, "add box crate size=1,1,1 at=9,0,5", NULL, 0));
    cJSON *epoch = page_text(c, "epoch");
    assert_true(page_number(epoch, "epoch") == 2);
    cJSON_Delete(epoch);
    page_frame f = page_frame_of(c, USI_VIEW_POSES);
    assert_true(f.epoch == 2 && f.flags == USI_VIEW_FULL && f.n == (uint32_t)counts.n_body + 1);
    assert_int_equal(ws_get(page.port, "/api/asset/1/0.glb", &body, &length), 410);
    free(body);
    assert_int_equal(ws_get(page.port, "/api/world", &body, &length), 200);
    world = cJSON_ParseWithLength(body, length);
    assert_true(page_number(world, "epoch") == 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(world, "links")), counts.n_body + 1);
    cJSON_Delete(world);
    free(body);
    page_leave(c);
    page_stop();
}

static void a_height_field_can_be_fetched_twice(void **state) {
    (void)state;
    const char text[] = "<scene name='field' version='1'><world step='1 ms'><shape name='ground' "
                        "type='height-field' nx='5' ny='4' dx='1' dy='1' "
                        "expression='0.125*x'/></world></scene>";
    page_start(text, NULL, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        char *body;
        size_t length;
        assert_int_equal(ws_get(page.port, "/api/asset/1/0.field", &body, &length), 200);
        assert_int_equal(length, 5 * 4 * 4);
        float first, second;
        memcpy(&first, body, 4);
        memcpy(&second, body + 4, 4);
        assert_true(second - first == 0.125f);
        free(body);
    }
    page_stop();
}

static void poses_move_and_only_what_moved_is_sent(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    uint32_t high = page_body("high/link"), low = page_body("low/link");
    ws_client *c = page_open(NULL);
    page_say(c, "{\"op\":\"view\",\"hz\":60}");
    page_frame f = page_frame_of(c, USI_VIEW_POSES);
    float first[7], pose[7];
    assert_true(f.flags == USI_VIEW_FULL && f.epoch == 1 && page_pose_in(&f, high, first) &&
                page_pose_in(&f, low, pose));
    int64_t tick = f.tick;
    // The block comes to rest: in the end a frame has the ball alone.
    bool is_alone = false;
    for (int i = 0; i < 400 && !is_alone; i++) {
        f = page_frame_of(c, USI_VIEW_POSES);
        assert_true(f.tick > tick && f.flags == 0);
        assert_true(fabs(f.time - (double)f.tick * 1e-3) < 1e-9);  // time is the tick's, up to rounding
        tick = f.tick;
        // In the first hundredths of a second it moves less than a float knows at this height.
        bool is_in = page_pose_in(&f, high, pose);
        assert_true(is_in || f.tick < 100);
        is_alone = is_in && f.n == 1;
    }
    assert_true(is_alone);
    assert_true(pose[2] < first[2]);
    page_say(c, "{\"op\":\"full\"}");
    do
        f = page_frame_of(c, USI_VIEW_POSES);
    while (!(f.flags & USI_VIEW_FULL));
    assert_int_equal(f.n, us_model_get_counts(us_world_view_model(page.world)).n_body);
    assert_true(page_pose_in(&f, low, pose));
    // Paused, the picture is that of the sim, to the float.
    assert_true(page_command(c, "pause", NULL, 0));
    page_say(c, "{\"op\":\"full\"}");
    do
        f = page_frame_of(c, USI_VIEW_POSES);
    while (!(f.flags & USI_VIEW_FULL) || f.tick != us_sim_get_tick(us_world_get_sim(page.world)));
    us_pose X = us_sim_get_pose(us_world_get_sim(page.world), (us_body){(int32_t)high});
    assert_true(page_pose_in(&f, high, pose));
    const float expected[7] = {(float)X.p.x, (float)X.p.y, (float)X.p.z, (float)X.q.w,
                               (float)X.q.x, (float)X.q.y, (float)X.q.z};
    assert_memory_equal(pose, expected, sizeof pose);
    // What is moved by hand while time stands still is seen too.
    assert_true(page_command(c, "move high 7 8 9", NULL, 0));
    do
        f = page_frame_of(c, USI_VIEW_POSES);
    while (!page_pose_in(&f, high, pose) || pose[0] != 7);
    assert_true(pose[1] == 8 && pose[2] == 9);
    page_leave(c);
    page_stop();
}

static void each_client_has_a_rate_of_its_own(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *often = page_open(NULL), *seldom = page_open(NULL), *never = page_open(NULL);
    page_say(often, "{\"op\":\"view\",\"hz\":60}");
    page_say(seldom, "{\"op\":\"view\",\"hz\":1}");
    page_say(never, "{\"op\":\"view\",\"hz\":0}");
    for (int i = 0; i < 60; i++)
        page_frame_of(often, USI_VIEW_POSES);
    // At 60 Hz that was a second, and on a machine so busy that it was ten the one at 1 Hz has still seen a
    // few alone.
    int n_seldom = 0, n_never = 0, n_status = 0;
    while (ws_next(seldom, 0))
        n_seldom += seldom->opcode == WS_BINARY;
    while (ws_next(never, 0)) {
        n_never += never->opcode == WS_BINARY;
        n_status += never->opcode == WS_TEXT && strstr((const char *)never->message, "\"status\"") != NULL;
    }
    assert_in_range(n_seldom, 1, 20);
    // What was on its way before it said so may have come.
    assert_in_range(n_never, 0, 5);
    assert_true(n_status > 0);
    page_leave(often);
    page_leave(seldom);
    page_leave(never);
    page_stop();
}

static void watched_values_are_those_of_the_sim(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    us_sim *sim = us_world_get_sim(page.world);
    ws_client *c = page_open(NULL), *other = page_open(NULL);
    page_say(c, "{\"op\":\"watch\",\"generation\":77,\"values\":[\"high/link.z\",\"no such "
                "thing\",\"energy\",\"high/link.z\"]}");
    page_say(other, "{\"op\":\"watch\",\"generation\":5,\"values\":[\"time\",\"energy\"]}");
    cJSON *watching = page_text(c, "watching");
    assert_true(page_number(watching, "generation") == 77);
    const cJSON *unknown = cJSON_GetObjectItem(watching, "unknown");
    assert_int_equal(cJSON_GetArraySize(unknown), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(unknown, 0)), "no such thing");
    cJSON_Delete(watching);
    page_frame f = page_frame_of(c, USI_VIEW_VALUES);
    assert_true(f.epoch == 77 && f.n == 4);
    f = page_frame_of(other, USI_VIEW_VALUES);
    double v[4];
    assert_true(f.epoch == 5 && f.n == 2);
    memcpy(v, f.entries, 16);
    assert_true(v[0] == f.time);
    assert_true(page_command(c, "pause", NULL, 0));
    // Asked for anew, so that a frame comes while time stands still.
    page_say(c, "{\"op\":\"watch\",\"generation\":78,\"values\":[\"high/link.z\",\"no such "
                "thing\",\"energy\",\"low/link.x\"]}");
    do
        f = page_frame_of(c, USI_VIEW_VALUES);
    while (f.epoch != 78);
    assert_int_equal(f.tick, us_sim_get_tick(sim));
    memcpy(v, f.entries, sizeof v);
    assert_true(v[0] == us_sim_get_value(sim, us_sim_find_value(sim, "high/link.z")));
    assert_true(isnan(v[1]));
    assert_true(v[2] == us_sim_get_value(sim, us_sim_find_value(sim, "energy")));
    assert_true(v[3] == us_sim_get_value(sim, us_sim_find_value(sim, "low/link.x")));
    // Another world: the names are looked up again, and one of them is none any more.
    assert_true(page_command(c, "remove high", NULL, 0));
    do {
        watching = page_text(c, "watching");
        if (cJSON_GetArraySize(cJSON_GetObjectItem(watching, "unknown")) == 2) break;
        cJSON_Delete(watching);
    } while (true);
    assert_true(page_number(watching, "generation") == 78);
    cJSON_Delete(watching);
    do
        f = page_frame_of(c, USI_VIEW_VALUES);
    while (memcpy(v, f.entries, sizeof v) && !isnan(v[0]));
    assert_true(v[3] == us_sim_get_value(sim, us_sim_find_value(sim, "low/link.x")));
    page_leave(c);
    page_leave(other);
    page_stop();
}

static void clients_that_watch_too_much_together_are_told_and_others_go_on(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    enum { N = USI_WATCH_SLOTS / USI_VIEW_VALUE_COUNT + 1 };
    ws_client *c[N];
    static char text[USI_VIEW_MESSAGE];
    for (int k = 0; k < N; k++) {
        c[k] = page_open(NULL);
        int at = snprintf(text, sizeof text, "{\"op\":\"watch\",\"generation\":%d,\"values\":[", k);
        for (int i = 0; i < USI_VIEW_VALUE_COUNT; i++)
            at +=
                snprintf(text + at, sizeof text - (size_t)at, "%s\"client %d value %d\"", i ? "," : "", k, i);
        snprintf(text + at, sizeof text - (size_t)at, "]}");
        assert_true(ws_say(c[k], text));
        cJSON *answer = page_text(c[k], k < N - 1 ? "watching" : "error");
        if (k < N - 1)
            assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "unknown")),
                             USI_VIEW_VALUE_COUNT);
        cJSON_Delete(answer);
    }
    assert_true(page_frame_of(c[0], USI_VIEW_VALUES).n == USI_VIEW_VALUE_COUNT);
    // One goes, and there is room.
    page_leave(c[0]);
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    bool is_taken = false;
    while (!is_taken && usi_view_clock() < until) {
        assert_true(ws_say(c[N - 1], text));
        while (!is_taken && page_next(c[N - 1], usi_view_clock() + 0.05)) {
            is_taken = c[N - 1]->opcode == WS_TEXT &&
                       strstr((const char *)c[N - 1]->message, "\"watching\"") != NULL;
        }
    }
    assert_true(is_taken);
    for (int k = 1; k < N; k++)
        page_leave(c[k]);
    page_stop();
}

static void contacts_and_torques_come_when_asked_for(void **state) {
    (void)state;
    page_start(NULL, US_SOURCE_DIR "/scenes/default.xml", NULL, NULL);
    page.n_step = 20;
    ws_client *c = page_open(NULL);
    page_say(c, "{\"op\":\"view\",\"contacts\":true,\"torques\":true,\"hz\":60}");
    page_frame f = page_frame_of(c, USI_VIEW_TORQUES);
    assert_int_equal(f.n, us_model_get_counts(us_world_view_model(page.world)).n_drive);
    do
        f = page_frame_of(c, USI_VIEW_CONTACTS);
    while (f.tick < 1000);
    assert_true(f.n > 0 && f.epoch == 1);
    assert_true(page_command(c, "pause", NULL, 0));
    page_say(c, "{\"op\":\"view\",\"contacts\":true}");
    do
        f = page_frame_of(c, USI_VIEW_CONTACTS);
    while (f.tick != us_sim_get_tick(us_world_get_sim(page.world)));
    assert_int_equal(f.n, us_sim_n_contact(us_world_get_sim(page.world)));
    for (uint32_t i = 0; i < f.n; i++) {
        us_contact contact = us_sim_get_contact(us_world_get_sim(page.world), (int32_t)i);
        const uint8_t *at = f.entries + (size_t)i * USI_VIEW_CONTACT_SIZE;
        int32_t body[2];
        float x[10];
        uint32_t flags;
        memcpy(body, at, 8);
        memcpy(x, at + 8, 40);
        memcpy(&flags, at + 48, 4);
        assert_true(body[0] == contact.body_a.i && body[1] == contact.body_b.i &&
                    flags == (contact.is_sliding ? 1 : 0));
        const float expected[10] = {(float)contact.point.x,  (float)contact.point.y,  (float)contact.point.z,
                                    (float)contact.normal.x, (float)contact.normal.y, (float)contact.normal.z,
                                    (float)contact.force.x,  (float)contact.force.y,  (float)contact.force.z,
                                    (float)contact.gap};
        assert_memory_equal(x, expected, sizeof x);
    }
    page_leave(c);
    page_stop();
}

static void the_log_has_what_was_said_before_and_after(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    for (int i = 0; i < 250; i++) {
        char line[40];
        snprintf(line, sizeof line, "line %d", i);
        us_world_log(page.world, 0, line);
    }
    ws_client *c = page_open(NULL);
    cJSON *log = page_text(c, "log");
    const cJSON *lines = cJSON_GetObjectItem(log, "lines");
    assert_int_equal(cJSON_GetArraySize(lines), USI_PAGE_LOG);
    assert_string_equal(page_text_of(cJSON_GetArrayItem(lines, 0), "text"), "line 50");
    assert_string_equal(page_text_of(cJSON_GetArrayItem(lines, USI_PAGE_LOG - 1), "text"), "line 249");
    cJSON_Delete(log);
    us_world_log(page.world, 2, "\"quoted\" and bad \xff bytes");
    log = page_text(c, "log");
    lines = cJSON_GetObjectItem(log, "lines");
    assert_int_equal(cJSON_GetArraySize(lines), 1);
    assert_string_equal(page_text_of(cJSON_GetArrayItem(lines, 0), "level"), "error");
    assert_string_equal(page_text_of(cJSON_GetArrayItem(lines, 0), "text"),
                        "\"quoted\" and bad \xef\xbf\xbd bytes");
    cJSON_Delete(log);
    page_leave(c);
    page_stop();
}

static void warnings_of_the_scene_stand_in_the_log(void **state) {
    (void)state;
    us_error err = {0};
    us_spec *spec = NULL;
    page_check(us_spec_load_text(page_scene, strlen(page_scene), "small.xml", NULL, &spec, &err), &err);
    us_error warning = {.message = "the sky is falling"};
    page_check(us_spec_add_warning(spec, &warning), &err);
    us_world_def def = us_world_def_default();
    us_view_def page_def = us_view_def_default();
    page_def.port = 0;
    memset(&page, 0, sizeof page);
    page.n_step = 1;
    page_check(us_world_create(spec, &def, &page.world, &err), &err);
    us_spec_destroy(spec);
    page_check(us_view_create(page.world, &page_def, &page.view, &err), &err);
    page.port = atoi(strrchr(us_view_url(page.view), ':') + 1);
    ws_client *c = page_open(NULL);
    cJSON *log = page_text(c, "log");
    const cJSON *line = cJSON_GetArrayItem(cJSON_GetObjectItem(log, "lines"), 0);
    assert_string_equal(page_text_of(line, "level"), "warning");
    assert_non_null(strstr(page_text_of(line, "text"), "the sky is falling"));
    cJSON_Delete(log);
    page_leave(c);
    page_stop();
}

// ---- what it does ----

// Until a pair table comes in which some pair has this static friction.
static void wait_for_friction(ws_client *c, double friction) {
    for (bool is_found = false; !is_found;) {
        cJSON *pairs = page_text(c, "pairs");
        const cJSON *row;
        cJSON_ArrayForEach(row, cJSON_GetObjectItem(pairs, "pairs")) {
            is_found |= page_number(cJSON_GetObjectItem(row, "values"), "static-friction") == friction;
        }
        cJSON_Delete(pairs);
    }
}

static void commands_are_answered_and_seen(void **state) {
    (void)state;
    char answer[1024];
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *c = page_open(NULL);
    assert_true(page_command(c, "pause", NULL, 0));
    cJSON *status;
    do {
        status = page_text(c, "status");
        if (page_is_true(status, "paused")) break;
        cJSON_Delete(status);
    } while (true);
    cJSON_Delete(status);
    assert_false(page_command(c, "fly away", answer, sizeof answer));
    assert_true(strlen(answer) > 0);
    assert_true(page_command(c, "snapshot here", NULL, 0));
    do {
        status = page_text(c, "status");
        if (cJSON_GetArraySize(cJSON_GetObjectItem(status, "snapshots")) == 1) break;
        cJSON_Delete(status);
    } while (true);
    assert_string_equal(page_text_of(cJSON_GetArrayItem(cJSON_GetObjectItem(status, "snapshots"), 0), "name"),
                        "here");
    cJSON_Delete(status);
    assert_true(page_command(c, "pair rubber soil static-friction=0.45 kinetic-friction=0.4", NULL, 0));
    wait_for_friction(c, 0.45);
    page_leave(c);
    page_stop();
}

static void going_back_to_another_world_is_told_to_all(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    uint32_t n_body = (uint32_t)us_model_get_counts(us_world_view_model(page.world)).n_body;
    ws_client *c = page_open(NULL), *other = page_open(NULL);
    page_frame_of(other, USI_VIEW_POSES);
    page_frame_of(c, USI_VIEW_POSES);
    assert_true(page_command(c, "pause", NULL, 0));
    assert_true(page_command(c, "snapshot before", NULL, 0));
    assert_true(page_command(c, "pair rubber soil static-friction=0.45 kinetic-friction=0.4", NULL, 0));
    wait_for_friction(c, 0.45);
    assert_true(page_command(c, "add sphere ball size=0.5 at=5,5,5", NULL, 0));
    // A picture of before may be on its way still.
    page_frame f;
    do
        f = page_frame_of(c, USI_VIEW_POSES);
    while (f.epoch != 2);
    assert_true(f.flags == USI_VIEW_FULL && f.n == n_body + 1);
    assert_true(page_command(c, "restore before", NULL, 0));
    wait_for_friction(c, 0.8);
    // The other has heard nothing yet of what one client did: it is told the same.
    uint32_t epoch = 0;
    do {
        cJSON *told = page_text(other, "epoch");
        epoch = (uint32_t)page_number(told, "epoch");
        cJSON_Delete(told);
    } while (epoch != us_world_get_revision(page.world));
    do
        f = page_frame_of(other, USI_VIEW_POSES);
    while (f.epoch != epoch);
    assert_true(f.flags == USI_VIEW_FULL && f.n == n_body);
    page_leave(c);
    page_leave(other);
    page_stop();
}

static void every_command_of_a_burst_is_answered_once(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *c = page_open(NULL);
    enum { N = 100 };
    int n_answer[N] = {0}, n_ok = 0;
    for (int i = 0; i < N; i++)
        page_say(c, "{\"op\":\"command\",\"id\":%d,\"text\":\"pause\"}", i);
    for (int i = 0; i < N; i++) {
        cJSON *reply = page_text(c, "reply");
        int id = (int)page_number(reply, "id");
        assert_true(id >= 0 && id < N);
        n_answer[id]++;
        n_ok += page_is_true(reply, "ok");
        if (!page_is_true(reply, "ok")) assert_non_null(strstr(page_text_of(reply, "text"), "too many"));
        cJSON_Delete(reply);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(n_answer[i], 1);
    assert_true(n_ok >= USI_PAGE_REPLIES);
    page_leave(c);
    page_stop();
}

static void a_client_that_leaves_before_its_answer_disturbs_nobody(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *stays = page_open(NULL);
    for (int i = 0; i < 20; i++) {
        ws_client *c = page_open(NULL);
        for (int k = 0; k < 10; k++)
            page_say(c, "{\"op\":\"command\",\"id\":%d,\"text\":\"snapshot s%d\"}", k, i);
        page_leave(c);
        page_turn();
    }
    // The last ones are gone when they are no longer counted.
    cJSON *status;
    do {
        status = page_text(stays, "status");
        if (page_number(status, "clients") == 1) break;
        cJSON_Delete(status);
    } while (true);
    cJSON_Delete(status);
    assert_true(page_command(stays, "pause", NULL, 0));
    page_leave(stays);
    page_stop();
}

static void a_robot_is_driven_and_others_are_unknown(void **state) {
    (void)state;
    page_start(NULL, US_SOURCE_DIR "/scenes/default.xml", NULL, NULL);
    page.n_step = 10;
    ws_client *c = page_open(NULL);
    page_say(c, "{\"op\":\"drive\",\"robot\":\"nobody\",\"vx\":1,\"vy\":0,\"wz\":0}");
    cJSON *error = page_text(c, "error");
    assert_non_null(strstr(page_text_of(error, "text"), "nobody"));
    cJSON_Delete(error);
    page_say(c, "{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0.25,\"vy\":0,\"wz\":0.125}");
    cJSON *status;
    const cJSON *robot;
    do {
        status = page_text(c, "status");
        robot = cJSON_GetArrayItem(cJSON_GetObjectItem(status, "robots"), 0);
        assert_string_equal(page_text_of(robot, "name"), "k10");
        if (page_number(robot, "commands") == 1) break;
        cJSON_Delete(status);
    } while (true);
    assert_true(page_number(robot, "refused") == 0);
    cJSON_Delete(status);
    // Beyond what it can do: the robot refuses, and says why.
    page_say(c, "{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":100,\"vy\":0,\"wz\":0}");
    do {
        status = page_text(c, "status");
        robot = cJSON_GetArrayItem(cJSON_GetObjectItem(status, "robots"), 0);
        if (page_number(robot, "refused") == 1) break;
        cJSON_Delete(status);
    } while (true);
    assert_true(strlen(page_text_of(robot, "refusal")) > 0);
    cJSON_Delete(status);
    // Its topics, once somebody wants to see them.
    page_say(c, "{\"op\":\"view\",\"topics\":true}");
    cJSON *topics = page_text(c, "topics");
    const cJSON *topic;
    int n_in = 0, n_out = 0;
    cJSON_ArrayForEach(topic, cJSON_GetObjectItem(topics, "topics")) {
        if (strcmp(page_text_of(topic, "name"), "/k10/cmd_vel") == 0 && !page_is_true(topic, "out")) n_in++;
        if (strcmp(page_text_of(topic, "name"), "/k10/odom") == 0 && page_is_true(topic, "out")) {
            assert_string_equal(page_text_of(topic, "type"), "nav_msgs/msg/Odometry");
            n_out++;
        }
    }
    assert_true(n_in >= 1);
    assert_int_equal(n_out, 1);
    cJSON_Delete(topics);
    page_leave(c);
    page_stop();
}

static void without_the_token_a_client_looks_and_nothing_more(void **state) {
    (void)state;
    us_view_def def = us_view_def_default();
    def.port = 0;
    def.token = "open-sesame";
    page_start(NULL, US_SOURCE_DIR "/scenes/default.xml", &def, NULL);
    assert_non_null(strstr(page.url, "?token=open-sesame"));
    const char *paths[] = {"/", "/?token=", "/?token=open-sesam", "/?token=open-sesame2",
                           "/?token=OPEN-SESAME"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ws_client *c = page_open(paths[i]);
        cJSON *hello = page_text(c, "hello");
        assert_false(page_is_true(hello, "control"));
        assert_non_null(strstr(page_text_of(hello, "reason"), "token"));
        cJSON_Delete(hello);
        page_frame_of(c, USI_VIEW_POSES);
        char answer[1024];
        assert_false(page_command(c, "pause", answer, sizeof answer));
        assert_non_null(strstr(answer, "token"));
        page_say(c, "{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0.1,\"vy\":0,\"wz\":0}");
        cJSON *error = page_text(c, "error");
        assert_non_null(strstr(page_text_of(error, "text"), "token"));
        cJSON_Delete(error);
        page_leave(c);
    }
    assert_false(us_world_get_pace_request(page.world).is_paused);
    assert_int_equal(
        us_proxy_get_counts(us_world_get_proxy(page.world), us_world_get_sim(page.world)).n_command, 0);
    ws_client *c = page_open("/?token=open-sesame");
    cJSON *hello = page_text(c, "hello");
    assert_true(page_is_true(hello, "control"));
    cJSON_Delete(hello);
    assert_true(page_command(c, "pause", NULL, 0));
    page_leave(c);
    page_stop();
}

static void a_token_that_does_not_fit_into_an_address_is_refused(void **state) {
    (void)state;
    const char *bad[] = {
        "", "with blank", "a&b",
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"};
    us_error err = {0};
    us_spec *spec = NULL;
    page_check(us_spec_load_text(page_scene, strlen(page_scene), "small.xml", NULL, &spec, &err), &err);
    us_world *host = NULL;
    us_view *view = NULL;
    page_check(us_world_create(spec, NULL, &host, &err), &err);
    us_spec_destroy(spec);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        us_view_def def = us_view_def_default();
        def.port = 0;
        def.token = bad[i];
        assert_int_equal(us_view_create(host, &def, &view, &err), US_ERR_VALUE);
        assert_true(strlen(err.remedy) > 0);
        assert_null(view);
    }
    us_world_destroy(host);
}

static void a_world_has_one_view_at_a_time(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    us_error err = {0};
    us_view *second = NULL;
    us_view_def def = us_view_def_default();
    def.port = 0;
    assert_int_equal(us_view_create(page.world, &def, &second, &err), US_ERR_ARG);
    assert_non_null(strstr(err.message, "a view already"));
    assert_int_equal(us_view_create(NULL, &def, &second, &err), US_ERR_ARG);
    assert_int_equal(us_view_create(page.world, &def, NULL, &err), US_ERR_ARG);
    assert_null(second);
    assert_null(us_view_url(NULL));
    us_view_show(NULL, NULL);
    us_view_destroy(NULL);
    // The world goes on without its view, logs nowhere, and may have another.
    us_view_destroy(page.view);
    us_world_log(page.world, 1, "nobody looks");
    assert_int_equal(us_world_post(page.world, "test", "pair rubber soil friction=0.5", NULL, NULL, 0),
                     US_OK);
    us_world_poll(page.world);
    page_check(us_world_step(page.world, &err), &err);
    page_check(us_view_create(page.world, &def, &page.view, &err), &err);
    page.port = atoi(strrchr(us_view_url(page.view), ':') + 1);
    us_world_log(page.world, 1, "somebody looks");
    ws_client *c = page_open(NULL);
    cJSON *log = page_text(c, "log");
    const cJSON *line = cJSON_GetArrayItem(cJSON_GetObjectItem(log, "lines"), 0);
    assert_string_equal(page_text_of(line, "text"), "somebody looks");
    cJSON_Delete(log);
    page_leave(c);
    page_stop();
}

static void on_another_address_a_token_is_made_up(void **state) {
    (void)state;
    us_view_def def = us_view_def_default();
    def.port = 0;
    def.address = "0.0.0.0";
    page_start(page_scene, NULL, &def, NULL);
    const char *token = strstr(page.url, "?token=");
    assert_non_null(token);
    assert_int_equal(strlen(token + 7), 32);
    char path[80], first[80];
    snprintf(path, sizeof path, "/%s", token);
    snprintf(first, sizeof first, "%s", path);
    ws_client *c = page_open(path);
    cJSON *hello = page_text(c, "hello");
    assert_true(page_is_true(hello, "control"));
    cJSON_Delete(hello);
    page_leave(c);
    c = page_open("/");
    hello = page_text(c, "hello");
    assert_false(page_is_true(hello, "control"));
    cJSON_Delete(hello);
    page_leave(c);
    page_stop();
    page_start(page_scene, NULL, &def, NULL);
    assert_null(strstr(page.url, first + 1));  // another time another one
    page_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_greeted_and_told_how_things_stand),
        cmocka_unit_test(the_world_is_told_as_json_and_past_epochs_are_gone),
        cmocka_unit_test(a_height_field_can_be_fetched_twice),
        cmocka_unit_test(poses_move_and_only_what_moved_is_sent),
        cmocka_unit_test(each_client_has_a_rate_of_its_own),
        cmocka_unit_test(watched_values_are_those_of_the_sim),
        cmocka_unit_test(clients_that_watch_too_much_together_are_told_and_others_go_on),
        cmocka_unit_test(contacts_and_torques_come_when_asked_for),
        cmocka_unit_test(the_log_has_what_was_said_before_and_after),
        cmocka_unit_test(warnings_of_the_scene_stand_in_the_log),
        cmocka_unit_test(commands_are_answered_and_seen),
        cmocka_unit_test(going_back_to_another_world_is_told_to_all),
        cmocka_unit_test(every_command_of_a_burst_is_answered_once),
        cmocka_unit_test(a_client_that_leaves_before_its_answer_disturbs_nobody),
        cmocka_unit_test(a_robot_is_driven_and_others_are_unknown),
        cmocka_unit_test(without_the_token_a_client_looks_and_nothing_more),
        cmocka_unit_test(a_token_that_does_not_fit_into_an_address_is_refused),
        cmocka_unit_test(a_world_has_one_view_at_a_time),
        cmocka_unit_test(on_another_address_a_token_is_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
