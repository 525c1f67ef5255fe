// A tile of a site that is deleted while a process runs with its page: a body that comes there stops with an
// error, the world and the page go on; and the body goes on when the tile is back.
#include "site_make.h"
#include "test_network_support.h"
#include "ws_client.h"

static const char TILE[] = "lost/height/0/2_2.tile", KEPT[] = "kept.tile";

static void write_scene(void) {
    site_make("lost", 769, 769, 1, 1, site_hills);
    write_text("lost.xml",
               "<scene name='lost' version='1'><world step='1 ms'><shape name='ground' type='height-field' "
               "file='lost' memory='8 MB'/></world>"
               "<object name='near' xyz='-300 -300 6'><link name='core' density='2600'><shape type='box' "
               "size='0.4 0.4 0.4'/></link></object>"
               "<object name='far' xyz='-290 -300 6'><link name='core' density='2600'><shape type='box' "
               "size='0.4 0.4 0.4'/></link></object></scene>");
}

// A command by the page, and its answer.
static void order(ws_client *c, const char *words) {
    static int last;
    char text[300];
    snprintf(text, sizeof text, "{\"op\":\"command\",\"id\":%d,\"text\":\"%s\"}", ++last, words);
    assert_true(ws_say(c, text));
    for (double until = clock_now() + PATIENCE; clock_now() < until;) {
        if (!ws_next(c, 100) || c->opcode != WS_TEXT) continue;
        cJSON *reply = parse_json((const char *)c->message);
        const bool is_mine = strcmp(member(reply, "op")->valuestring, "reply") == 0;
        if (is_mine && !cJSON_IsTrue(member(reply, "ok")))
            fail_msg("%s: %s", words, (const char *)c->message);
        cJSON_Delete(reply);
        if (is_mine) return;
    }
    fail_msg("%s: there is no answer", words);
}

// The tick stands in every frame of poses. What is lost before the first step is another matter.
static void wait_for_first_step(ws_client *c) {
    for (double until = clock_now() + PATIENCE; clock_now() < until;) {
        int64_t tick = 0;
        if (!ws_next(c, 100) || c->opcode != WS_BINARY || c->n_message < 24) continue;
        memcpy(&tick, c->message + 16, sizeof tick);
        if (tick > 0) return;
    }
    fail_msg("the world does not step");
}

static bool has_said(const char *text) {
    char *err = read_text("run.err");
    const bool is_there = err && strstr(err, text);
    free(err);
    return is_there;
}

static int page_port(void) {
    char *out = read_text("run.err");
    const char *at = out ? strstr(out, "http://") : NULL;
    at = at ? strchr(at + 7, ':') : NULL;
    const int port = at ? (int)strtol(at + 1, NULL, 10) : 0;
    free(out);
    return port;
}

static void a_lost_tile_stops_a_body_and_not_the_process(void **state) {
    (void)state;
    write_scene();
    pid_t pid = start("run", "run lost.xml --port 0");
    WAIT_FOR(page_port() > 0);
    ws_client client = {0};
    const ws_def def = {.port = page_port(), .path = "/"};
    WAIT_FOR(ws_open(&client, &def, NULL));
    wait_for_first_step(&client);
    assert_int_equal(rename(TILE, KEPT), 0);
    order(&client, "move far 300 300 6");
    WAIT_FOR(has_said("far/core stops, since its ground cannot be read: "));
    assert_true(has_said("height/0/2_2.tile: the tile is missing or cannot be read; put the file back"));
    // Others are moved, and the page answers.
    order(&client, "move near -280 -300 6");
    char *page = NULL;
    size_t length = 0;
    assert_int_equal(ws_get(page_port(), "/", &page, &length), 200);
    assert_true(length > 100);
    free(page);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(rename(KEPT, TILE), 0);
    WAIT_FOR(has_said("far/core goes on: its ground is back"));
    order(&client, "snapshot there");
    ws_end(&client);
    end(pid);
    site_clear("lost");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_lost_tile_stops_a_body_and_not_the_process, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, NULL);
}
