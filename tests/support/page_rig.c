#include "page_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- the world ----

// A ball falls from high up, and a block lies on the ground.
const char page_scene[] = "<scene name='small' version='1'>"
                          "<world step='1 ms'><shape name='ground' type='half-space' surface='soil'/></world>"
                          "<material name='soil'/><material name='rubber'/>"
                          "<pair a='rubber' b='soil' static-friction='0.8' kinetic-friction='0.7'/>"
                          "<object name='high' xyz='0 0 1000'><link name='link' density='1000'><shape "
                          "type='sphere' size='0.1'/></link></object>"
                          "<object name='low' xyz='3 0 0.0999'><link name='link' density='1000'><shape "
                          "type='box' size='0.2 0.2 0.2' surface='rubber'/></link></object>"
                          "</scene>";

page_rig page;

void page_check(us_status status, const us_error *err) {
    if (status) print_message("%s:%d: %s (%s)\n", err->file, (int)err->line, err->message, err->remedy);
    assert_int_equal(status, US_OK);
}

void page_start(const char *text, const char *file, const us_view_def *given, const us_allocator *allocator) {
    us_error err = {0};
    us_spec *spec = NULL;
    us_load_def load = us_load_def_default();
    us_world_def def = us_world_def_default();
    us_view_def page_def = given ? *given : us_view_def_default();
    if (!given) page_def.port = 0;
    if (allocator) def.allocator = *allocator;
    def.proxy.enable_motor_servers = false;
    def.scene = file;
    if (text) {
        page_check(
            us_spec_load_text(text, strlen(text), US_SOURCE_DIR "/scenes/small.xml", &load, &spec, &err),
            &err);
    } else {
        page_check(us_spec_load(file, &load, &spec, &err), &err);
    }
    memset(&page, 0, sizeof page);
    page.n_step = 1;
    page_check(us_world_create(spec, &def, &page.world, &err), &err);
    us_spec_destroy(spec);
    page_check(us_view_create(page.world, &page_def, &page.view, &err), &err);
    snprintf(page.url, sizeof page.url, "%s", us_view_url(page.view));
    const char *colon = strrchr(page.url, ':');
    assert_non_null(colon);
    page.port = atoi(colon + 1);
    assert_true(page.port > 0);
}

void page_stop(void) {
    us_view_destroy(page.view);
    us_world_destroy(page.world);
}

void page_turn(void) {
    us_error err = {0};
    us_world_poll(page.world);
    us_pace_request wish = us_world_get_pace_request(page.world);
    int n = wish.is_paused ? (int)wish.n_step : page.n_step;
    for (int i = 0; i < n; i++)
        page_check(us_world_step(page.world, &err), &err);
    const us_view_pace pace = {1.25, 12.5, 3, 0.002, 0};
    us_view_show(page.view, &pace);
}

// ---- clients ----

ws_client *page_open(const char *path) {
    ws_client *c = calloc(1, sizeof *c);
    assert_non_null(c);
    const ws_def def = {.port = page.port, .path = path};
    int status = 0;
    if (!ws_open(c, &def, &status)) fail_msg("the WebSocket was refused with %d", status);
    return c;
}

void page_leave(ws_client *c) {
    ws_end(c);
    free(c);
}

bool page_next(ws_client *c, double until) {
    while (!c->is_closed && usi_view_clock() < until) {
        if (ws_next(c, 1)) return true;
        page_turn();
    }
    return false;
}

cJSON *page_text(ws_client *c, const char *op) {
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (page_next(c, until)) {
        if (c->opcode != WS_TEXT) continue;
        cJSON *json = cJSON_ParseWithLength((const char *)c->message, c->n_message);
        assert_non_null(json);
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(json, "op")), op) == 0) return json;
        cJSON_Delete(json);
    }
    fail_msg("\"%s\" did not come%s", op, c->is_closed ? ": the connection is closed" : "");
    return NULL;
}

double page_number(const cJSON *json, const char *key) {
    const cJSON *item = cJSON_GetObjectItem(json, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}
const char *page_text_of(const cJSON *json, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, key));
    assert_non_null(text);
    return text;
}
bool page_is_true(const cJSON *json, const char *key) { return cJSON_IsTrue(cJSON_GetObjectItem(json, key)); }

page_frame page_frame_of(ws_client *c, int kind) {
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    page_frame f = {0};
    while (page_next(c, until)) {
        if (c->opcode != WS_BINARY || c->message[0] != kind) continue;
        static const size_t size[] = {0, USI_VIEW_POSE_SIZE, USI_VIEW_VALUE_SIZE, USI_VIEW_CONTACT_SIZE,
                                      USI_VIEW_TORQUE_SIZE};
        assert_true(c->n_message >= USI_VIEW_HEAD_SIZE);
        f.kind = c->message[0];
        f.flags = c->message[1];
        memcpy(&f.epoch, c->message + 4, 4);
        memcpy(&f.time, c->message + 8, 8);
        memcpy(&f.tick, c->message + 16, 8);
        memcpy(&f.n, c->message + 24, 4);
        f.entries = c->message + USI_VIEW_HEAD_SIZE;
        assert_int_equal(c->n_message, USI_VIEW_HEAD_SIZE + f.n * size[kind]);
        return f;
    }
    fail_msg("a frame of kind %d did not come", kind);
    return f;
}

bool page_pose_in(const page_frame *f, uint32_t body, float out[7]) {
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t at;
        memcpy(&at, f->entries + (size_t)i * USI_VIEW_POSE_SIZE, 4);
        if (at != body) continue;
        memcpy(out, f->entries + (size_t)i * USI_VIEW_POSE_SIZE + 4, 28);
        return true;
    }
    return false;
}

void page_say(ws_client *c, const char *format, ...) {
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(ws_say(c, text));
}

bool page_command(ws_client *c, const char *text, char *out, size_t cap) {
    static int id = 100;
    page_say(c, "{\"op\":\"command\",\"id\":%d,\"text\":\"%s\"}", ++id, text);
    cJSON *reply = page_text(c, "reply");
    assert_true(page_number(reply, "id") == id);
    bool is_ok = page_is_true(reply, "ok");
    if (out) snprintf(out, cap, "%s", page_text_of(reply, "text"));
    cJSON_Delete(reply);
    return is_ok;
}

uint32_t page_body(const char *name) {
    us_body body = us_model_find_body(us_world_view_model(page.world), name);
    assert_true(body.i >= 0);
    return (uint32_t)body.i;
}
