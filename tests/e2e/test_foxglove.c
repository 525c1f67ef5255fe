// Foxglove clients: one that others wrote against `understudy run`, and ours, which also does what no good
// client does.
//
// But for the first test the world is in this process: one thread turns, steps and shows the world, and reads
// the clients between.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "net_peer.h"
#include "view/view__page.h"
#include "wire/foxglove.h"
#include "wire/messages.h"
#include "ws_client.h"

// ---- somebody else's client ----

// Runs the scene and a program of node against it; what that printed. Skips without the npm packages.
static const char *run_client(const char *scene, const char *program, const char *argument) {
    static char text[16384];
    const char *npm = getenv("US_NPM");
    char path[1200], command[3000];
    snprintf(path, sizeof path, "%s/@foxglove/ws-protocol/package.json", npm ? npm : "");
    if (!npm || access(path, R_OK) != 0) {
        print_message("skipped: US_NPM names no node_modules directory with @foxglove/ws-protocol\n");
        skip();
    }
    unlink("run.out");  // of an earlier run
    net_run("%s --port 0 --offline", scene);
    NET_WAIT(strstr(net_output(), "page: http://") && strchr(strstr(net_output(), "page: http://"), '\n'));
    int port = 0;
    assert_int_equal(sscanf(strstr(net_output(), "page: "), "page: http://localhost:%d/", &port), 1);
    snprintf(command, sizeof command,
             "US_NPM='%s' timeout 60 node '%s/tests/e2e/%s' ws://localhost:%d '%s' 2>&1", npm, US_SOURCE_DIR,
             program, port, argument);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    text[n] = 0;
    int code = pclose(pipe);
    if (code != 0) print_message("%s\n%s\n", text, net_output());
    assert_int_equal(code, 0);
    assert_int_equal(net_end(SIGTERM), 0);
    return text;
}

static void somebody_elses_client_sees_the_robot_and_drives_it(void **state) {
    (void)state;
    net_write_k10("k10.xml", "");
    const char *text = run_client("k10.xml", "foxglove_client.mjs", "");
    assert_non_null(strstr(text, "joints 10 first left_rocker"));
    assert_non_null(strstr(text, "moved by itself 0.00"));
    assert_non_null(strstr(text, "moved when driven: yes"));
}

// A stone of four triangles, in the words of STL.
static void write_stone(const char *path) {
    static const double corner[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    static const int face[4][3] = {{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "solid stone\n");
    for (int i = 0; i < 4; i++) {
        fprintf(f, "facet normal 0 0 0\nouter loop\n");
        for (int k = 0; k < 3; k++) {
            const double *p = corner[face[i][k]];
            fprintf(f, "vertex %g %g %g\n", p[0], p[1], p[2]);
        }
        fprintf(f, "endloop\nendfacet\n");
    }
    fprintf(f, "endsolid stone\n");
    assert_int_equal(fclose(f), 0);
}

static void somebody_elses_client_sees_the_scene_and_steers_the_world(void **state) {
    (void)state;
    write_stone("stone.stl");
    net_write_scene(
        "scene.xml",
        "<shape name='ground' type='height-field' nx='81' ny='81' dx='0.1' dy='0.1' expression='0' "
        "surface='sand' bed='5 cm'/>"
        "<shape name='slab' type='box' size='2 1 0.5' xyz='5 0 0' rgba='0.25 0.5 0.75 1'/>"
        "<shape name='pill' type='capsule' size='0.2 0.6' xyz='-5 0 1'/>"
        "<shape name='stone' type='mesh' file='stone.stl' xyz='0 6 0'/>",
        "<material name='sand'><soil like='fjs1'/></material><material name='rubber'/>",
        "<surface link='*_wheel' surface='rubber'/>");
    const char *text = run_client("scene.xml", "foxglove_scene.mjs", US_SOURCE_DIR "/viewers/foxglove.json");
    assert_non_null(strstr(text, "layout names what is there"));
    assert_non_null(strstr(text, "scene is there"));
    assert_non_null(strstr(text, "files are served"));
    assert_non_null(strstr(text, "services and parameters work"));
}

// ---- the world in this process ----

typedef struct rig {
    us_world *world;
    us_view *view;
    int port;
} rig;

static rig r;

static void check(us_status status, const us_error *err) {
    if (status) print_message("%s:%d: %s (%s)\n", err->file, (int)err->line, err->message, err->remedy);
    assert_int_equal(status, US_OK);
}

static void rig_start(const char *token) {
    net_write_k10("k10.xml", "");
    us_error err = {0};
    us_spec *spec = NULL;
    us_load_def load = us_load_def_default();
    us_world_def def = us_world_def_default();
    us_view_def page = us_view_def_default();
    page.port = 0;
    page.token = token;
    def.proxy.enable_motor_servers = false;
    check(us_spec_load("k10.xml", &load, &spec, &err), &err);
    check(us_world_create(spec, &def, &r.world, &err), &err);
    us_spec_destroy(spec);
    check(us_view_create(r.world, &page, &r.view, &err), &err);
    const char *colon = strrchr(us_view_url(r.view), ':');
    assert_non_null(colon);
    r.port = atoi(colon + 1);
}

static void rig_stop(void) {
    us_view_destroy(r.view);
    us_world_destroy(r.world);
}

static void turn(void) {
    us_error err = {0};
    us_world_poll(r.world);
    us_pace_request wish = us_world_get_pace_request(r.world);
    if (!wish.is_paused) check(us_world_step(r.world, &err), &err);
    const us_view_pace pace = {0};
    us_view_show(r.view, &pace);
}

// ---- a client ----

typedef struct client {
    ws_client ws;
    cJSON *info, *channels;  // what it was told first
} client;

// The next message, while the world goes on.
static bool next(client *c) {
    for (double until = net_clock() + NET_PATIENCE; !c->ws.is_closed;) {
        if (ws_next(&c->ws, 1)) return true;
        if (net_clock() > until) fail_msg("nothing is heard");
        turn();
    }
    return false;
}

static cJSON *next_text(client *c, const char *op) {
    while (next(c)) {
        if (c->ws.opcode != WS_TEXT) continue;
        cJSON *object = cJSON_Parse((const char *)c->ws.message);
        assert_non_null(object);
        if (strcmp(cJSON_GetObjectItem(object, "op")->valuestring, op) == 0) return object;
        cJSON_Delete(object);
    }
    fail_msg("it ended before \"%s\" came", op);
    return NULL;
}

// The next status has this in it.
static void expect_status(client *c, int level, const char *part) {
    cJSON *status = next_text(c, "status");
    const char *text = cJSON_GetObjectItem(status, "message")->valuestring;
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
    assert_int_equal(cJSON_GetObjectItem(status, "level")->valueint, level);
    cJSON_Delete(status);
}

static void join(client *c, const ws_def *more) {
    memset(c, 0, sizeof *c);
    ws_def def = more ? *more : (ws_def){0};
    def.port = r.port;
    if (!def.protocol) def.protocol = "foxglove.websocket.v1";
    int status = 0;
    if (!ws_open(&c->ws, &def, &status)) fail_msg("refused with %d", status);
    c->info = next_text(c, "serverInfo");
    c->channels = next_text(c, "advertise");
}

static void leave(client *c) {
    ws_end(&c->ws);
    cJSON_Delete(c->info);
    cJSON_Delete(c->channels);
}

static const cJSON *channel(const client *c, const char *topic) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c->channels, "channels")) {
        if (strcmp(cJSON_GetObjectItem(item, "topic")->valuestring, topic) == 0) return item;
    }
    fail_msg("there is no channel of %s", topic);
    return NULL;
}

static void say(client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(client *c, const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(ws_say(&c->ws, text));
}

static void subscribe(client *c, uint32_t id, const char *topic) {
    say(c, "{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":%u,\"channelId\":%d}]}", id,
        cJSON_GetObjectItem(channel(c, topic), "id")->valueint);
}

static uint64_t number(const uint8_t *at, int n) {
    uint64_t x = 0;
    for (int k = n - 1; k >= 0; k--)
        x = x << 8 | at[k];
    return x;
}

typedef struct sample {
    int64_t time;
    const uint8_t *bytes;  // until the next one is heard
    size_t length;
} sample;

static sample next_sample(client *c, uint32_t subscription) {
    while (next(c)) {
        const uint8_t *m = c->ws.message;
        if (c->ws.opcode != WS_BINARY || m[0] != 1) continue;
        assert_true(c->ws.n_message > USI_FOXGLOVE_DATA_HEAD);
        if (number(m + 1, 4) != subscription) continue;
        return (sample){(int64_t)number(m + 5, 8), m + USI_FOXGLOVE_DATA_HEAD,
                        c->ws.n_message - USI_FOXGLOVE_DATA_HEAD};
    }
    fail_msg("it ended before a sample came");
    return (sample){0};
}

static double value(const sample *s, const us_message_type *type, const char *path) {
    return us_message_get_number(type, s->bytes, s->length, path);
}

// A Twist on one of its channels.
static void drive(client *c, uint32_t id, double v) {
    us_msg_twist twist = {.linear.x = v};
    uint8_t frame[256] = {1};
    size_t length = 0;
    for (int k = 0; k < 4; k++)
        frame[1 + k] = (uint8_t)(id >> 8 * k);
    assert_int_equal(us_message_encode(usi_type_twist, &twist, frame + 5, sizeof frame - 5, &length), US_OK);
    assert_true(ws_send(&c->ws, WS_BINARY, frame, 5 + length));
}

static const char *const advertise_twist = "{\"op\":\"advertise\",\"channels\":[{\"id\":7,\"topic\":\"/k10/"
                                           "cmd_vel\",\"encoding\":\"cdr\",\"schemaName\":\"%s\"}]}";

// ---- tests ----

static void a_client_is_told_what_there_is(void **state) {
    (void)state;
    rig_start(NULL);
    static const char *const protocols[] = {"foxglove.websocket.v1", "foxglove.sdk.v1",
                                            "foxglove.sdk.v1, foxglove.websocket.v1"};
    char session[64] = "";
    for (int k = 0; k < 3; k++) {
        client c;
        join(&c, &(ws_def){.protocol = protocols[k]});
        char *text = cJSON_PrintUnformatted(c.info);
        assert_non_null(strstr(text, "\"capabilities\":[\"time\",\"clientPublish\",\"services\","
                                     "\"parameters\",\"parametersSubscribe\",\"assets\"]"));
        assert_non_null(strstr(text, "\"supportedEncodings\":[\"cdr\"]"));
        cJSON_free(text);
        // The same run, the same session.
        const char *id = cJSON_GetObjectItem(c.info, "sessionId")->valuestring;
        if (k > 0) assert_string_equal(id, session);
        snprintf(session, sizeof session, "%s", id);
        const cJSON *odom = channel(&c, "/k10/odom");
        assert_string_equal(cJSON_GetObjectItem(odom, "encoding")->valuestring, "cdr");
        assert_string_equal(cJSON_GetObjectItem(odom, "schemaEncoding")->valuestring, "ros2msg");
        assert_string_equal(cJSON_GetObjectItem(odom, "schemaName")->valuestring, "nav_msgs/msg/Odometry");
        assert_non_null(
            strstr(cJSON_GetObjectItem(odom, "schema")->valuestring, "MSG: geometry_msgs/Pose\n"));
        channel(&c, "/tf");
        channel(&c, "/k10/joint_states");
        // What robots listen to is not among what they say.
        const cJSON *item;
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(c.channels, "channels")) {
            assert_string_not_equal(cJSON_GetObjectItem(item, "topic")->valuestring, "/k10/cmd_vel");
        }
        leave(&c);
    }
    rig_stop();
}

static void samples_come_to_those_who_subscribed_until_they_no_longer_want_them(void **state) {
    (void)state;
    rig_start(NULL);
    client a, b;
    join(&a, NULL);
    join(&b, NULL);
    subscribe(&a, 4000000000u, "/k10/odom");
    subscribe(&b, 1, "/k10/joint_states");
    int64_t last = -1;
    for (int k = 0; k < 10; k++) {
        sample s = next_sample(&a, 4000000000u);
        // 50 Hz, and the stamp inside says the same as the one outside.
        if (last >= 0) assert_int_equal(s.time - last, 20000000);
        last = s.time;
        int64_t stamp = (int64_t)value(&s, usi_type_odometry, "header.stamp.sec") * 1000000000 +
                        (int64_t)value(&s, usi_type_odometry, "header.stamp.nanosec");
        assert_int_equal(stamp, s.time);
        assert_true(us_message_get_number(usi_type_odometry, s.bytes, s.length, "pose.pose.orientation.w") >
                    0.9);
    }
    assert_true(next_sample(&b, 1).length > 100);
    // The time is told too.
    while (next(&a) && !(a.ws.opcode == WS_BINARY && a.ws.message[0] == 2)) {
    }
    assert_int_equal(a.ws.n_message, USI_FOXGLOVE_TIME_SIZE);
    assert_true(number(a.ws.message + 1, 8) >= (uint64_t)last);
    // One takes it back, the other goes on; and nothing but the time comes any more.
    say(&a, "{\"op\":\"unsubscribe\",\"subscriptionIds\":[4000000000]}");
    say(&a, "{\"op\":\"unsubscribe\",\"subscriptionIds\":[12]}");
    expect_status(&a, 2, "no such subscription");
    for (int k = 0; k < 20; k++) {
        assert_true(next(&a));
        assert_int_equal(a.ws.opcode, WS_BINARY);
        assert_int_equal(a.ws.message[0], 2);
    }
    assert_true(next_sample(&b, 1).length > 100);
    // The number may be used again.
    subscribe(&a, 4000000000u, "/k10/odom");
    assert_true(next_sample(&a, 4000000000u).time > last);
    leave(&a);
    assert_true(next_sample(&b, 1).length > 100);
    leave(&b);
    rig_stop();
}

static void what_is_said_once_comes_to_those_who_come_later_also_while_time_stands_still(void **state) {
    (void)state;
    rig_start(NULL);
    for (int k = 0; k < 100; k++)
        turn();
    client c;
    join(&c, NULL);
    subscribe(&c, 1, "/k10/robot_description");
    sample s = next_sample(&c, 1);
    assert_true(s.length > 1000);
    assert_non_null(memmem(s.bytes, s.length, "<robot", 6));
    assert_int_equal(us_world_post(r.world, "test", "pause", NULL, NULL, 0), US_OK);
    turn();
    assert_true(us_world_get_pace_request(r.world).is_paused);
    client late;
    join(&late, NULL);
    subscribe(&late, 2, "/k10/robot_description");
    assert_true(next_sample(&late, 2).length > 1000);
    leave(&c);
    leave(&late);
    rig_stop();
}

static void a_client_drives_the_robot(void **state) {
    (void)state;
    rig_start(NULL);
    static const char *const types[] = {"geometry_msgs/msg/Twist", "geometry_msgs/Twist"};
    client c;
    join(&c, NULL);
    subscribe(&c, 1, "/k10/odom");
    for (int k = 0; k < 2; k++) {
        say(&c, advertise_twist, types[k]);
        sample s = next_sample(&c, 1);
        const double begin = value(&s, usi_type_odometry, "pose.pose.position.x");
        // It stops by itself half a second after the last word; a command with every sample of its own
        // odometry keeps it going.
        for (double x = begin; x < begin + 0.05;) {
            drive(&c, 7, 0.3);
            s = next_sample(&c, 1);
            x = value(&s, usi_type_odometry, "pose.pose.position.x");
        }
        say(&c, "{\"op\":\"unadvertise\",\"channelIds\":[7]}");
    }
    drive(&c, 7, 0.3);
    expect_status(&c, 2, "not advertised");
    us_proxy_counts counts = us_proxy_get_counts(us_world_get_proxy(r.world), us_world_get_sim(r.world));
    assert_true(counts.n_command > 0);
    leave(&c);
    rig_stop();
}

static void what_cannot_be_is_said_and_too_much_of_it_ends_the_session(void **state) {
    (void)state;
    rig_start(NULL);
    client c, other;
    join(&c, NULL);
    join(&other, NULL);
    subscribe(&other, 1, "/k10/odom");
    say(&c, "{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1,\"channelId\":100000}]}");
    expect_status(&c, 2, "there is no channel 100000");
    subscribe(&c, 1, "/k10/odom");
    subscribe(&c, 2, "/k10/odom");
    expect_status(&c, 2, "subscribed to already");
    subscribe(&c, 1, "/tf");
    expect_status(&c, 2, "subscribed to already");
    say(&c, "{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"/k10/"
            "nothing\",\"encoding\":\"cdr\",\"schemaName\":\"std_msgs/msg/String\"}]}");
    expect_status(&c, 2, "no robot listens to /k10/nothing");
    say(&c, "{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"/k10/"
            "cmd_vel\",\"encoding\":\"cdr\",\"schemaName\":\"std_msgs/msg/String\"}]}");
    expect_status(&c, 2, "not std_msgs/msg/String");
    say(&c, "{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"/k10/"
            "cmd_vel\",\"encoding\":\"json\",\"schemaName\":\"geometry_msgs/msg/"
            "Twist\"}]}");
    expect_status(&c, 2, "cdr");
    say(&c, "{\"op\":\"subscribeConnectionGraph\"}");
    expect_status(&c, 2, "subscribeConnectionGraph");
    say(&c, "{\"op\":\"getParameters\",\"parameterNames\":[7]}");
    expect_status(&c, 2, "not a text");
    say(&c, "{\"op\":\"clientInfo\",\"name\":\"somebody\"}");
    say(&c, "nonsense");
    expect_status(&c, 2, "not JSON");
    assert_true(ws_send(&c.ws, WS_BINARY, "\1\2", 2));
    expect_status(&c, 2, "ends before");
    // A command that is no Twist is taken by the robot's network and refused by the robot, which counts it.
    say(&c, advertise_twist, "geometry_msgs/msg/Twist");
    assert_true(ws_send(&c.ws, WS_BINARY, "\1\7\0\0\0abc", 8));
    for (int k = 0; k < 30; k++)
        ws_say(&c.ws, "{");
    while (next(&c)) {
    }
    assert_int_equal(c.ws.close_code, 1008);
    assert_true(next_sample(&other, 1).length > 100);
    us_proxy_counts counts = us_proxy_get_counts(us_world_get_proxy(r.world), us_world_get_sim(r.world));
    assert_int_equal(counts.n_command, 0);
    leave(&c);
    leave(&other);
    rig_stop();
}

static void one_that_may_only_look_cannot_command(void **state) {
    (void)state;
    rig_start("secret");
    // With the token, or without; from other pages alike.
    static const struct {
        ws_def def;
        bool may;
    } cases[] = {{{.path = "/?token=secret"}, true},
                 {{.path = "/"}, false},
                 {{.path = "/", .origin = "https://app.foxglove.dev"}, false},
                 {{.path = "/?token=secret", .origin = "https://app.foxglove.dev"}, true},
                 {{.path = "/?token=secrets", .origin = "file://"}, false},
                 {{.path = "/?token=secret", .origin = "file://"}, true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        client c;
        join(&c, &cases[k].def);
        char *text = cJSON_PrintUnformatted(c.info);
        assert_int_equal(strstr(text, "clientPublish") != NULL, cases[k].may);
        cJSON_free(text);
        say(&c, advertise_twist, "geometry_msgs/msg/Twist");
        if (!cases[k].may) expect_status(&c, 2, "may only look");
        drive(&c, 7, 0.3);
        if (!cases[k].may) expect_status(&c, 2, "not advertised");
        subscribe(&c, 1, "/k10/odom");
        assert_true(next_sample(&c, 1).length > 100);
        leave(&c);
    }
    // Any other page is refused.
    client c;
    int status = 0;
    assert_false(ws_open(
        &c.ws,
        &(ws_def){.port = r.port, .protocol = "foxglove.websocket.v1", .origin = "http://evil.example"},
        &status));
    assert_int_equal(status, 403);
    // Only those with the token were obeyed.
    us_proxy_counts counts = us_proxy_get_counts(us_world_get_proxy(r.world), us_world_get_sim(r.world));
    assert_int_equal(counts.n_command, 3);
    rig_stop();
}

// Calls the service with this number, with a request of nothing.
static void call(client *c, uint32_t service, uint32_t id) {
    uint8_t frame[] = {2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 'c', 'd', 'r', 0, 1, 0, 0, 0};
    for (int k = 0; k < 4; k++) {
        frame[1 + k] = (uint8_t)(service >> 8 * k);
        frame[5 + k] = (uint8_t)(id >> 8 * k);
    }
    assert_true(ws_send(&c->ws, WS_BINARY, frame, sizeof frame));
}

static bool is_paused(void) { return us_world_get_pace_request(r.world).is_paused; }

// Services and parameters are the world's: who may look reads them, and no more.
static void nor_call_its_services_or_set_its_parameters(void **state) {
    (void)state;
    rig_start("secret");
    client looker, owner;
    join(&looker, &(ws_def){.path = "/"});
    join(&owner, &(ws_def){.path = "/?token=secret"});
    char *text = cJSON_PrintUnformatted(looker.info);
    assert_null(strstr(text, "services"));
    cJSON_free(text);
    for (uint32_t service = 0; service < 6; service++) {
        call(&looker, service, service);
        cJSON *failure = next_text(&looker, "serviceCallFailure");
        assert_int_equal(cJSON_GetObjectItem(failure, "callId")->valueint, (int)service);
        if (service < 4)
            assert_non_null(strstr(cJSON_GetObjectItem(failure, "message")->valuestring, "may only look"));
        cJSON_Delete(failure);
    }
    say(&looker,
        "{\"op\":\"setParameters\",\"parameters\":[{\"name\":\"/understudy/paused\",\"value\":true}]}");
    expect_status(&looker, 2, "may only look");
    for (int k = 0; k < 20; k++)
        turn();
    assert_false(is_paused());
    say(&looker, "{\"op\":\"getParameters\",\"parameterNames\":[\"/understudy/paused\"],\"id\":\"a\"}");
    cJSON_Delete(next_text(&looker, "parameterValues"));
    call(&owner, 0, 1);
    for (double until = net_clock() + NET_PATIENCE; !is_paused() && net_clock() < until;)
        turn();
    assert_true(is_paused());
    leave(&looker);
    leave(&owner);
    rig_stop();
}

static bool is_told_of(const client *c, const char *words) {
    return c->ws.opcode == WS_TEXT && strstr((const char *)c->ws.message, words);
}

static void one_that_asks_without_end_is_sent_away_alone(void **state) {
    (void)state;
    rig_start(NULL);
    client loud, good;
    join(&loud, NULL);
    join(&good, NULL);
    subscribe(&good, 1, "/k10/odom");
    // Names of meshes are the scene's: no path is one.
    static const char *const uris[] = {"file:///etc/passwd", "/api/asset/1/../../../../etc/passwd",
                                       "package://understudy/1/../k10.xml", "../k10.xml",
                                       "package://understudy/4294967297/0.glb"};
    for (uint32_t k = 0; k < sizeof uris / sizeof *uris; k++) {
        say(&loud, "{\"op\":\"fetchAsset\",\"requestId\":%u,\"uri\":\"%s\"}", k, uris[k]);
        while (next(&loud)) {
            if (loud.ws.opcode == WS_BINARY && loud.ws.message[0] == 4) break;
        }
        assert_int_equal(number(loud.ws.message + 1, 4), k);
        assert_int_equal(loud.ws.message[5], 1);  // an error
    }
    bool is_told = false, is_heard = true;
    for (uint32_t k = 0; k < 100000 && is_heard && !loud.ws.is_closed; k++) {
        is_heard = ws_say(&loud.ws, "{\"op\":\"fetchAsset\",\"requestId\":1,\"uri\":\"nothing\"}");
        // What it is told is read at once: a connection that ends with something unread ends without its last
        // words.
        while (k % 4 == 3 && ws_next(&loud.ws, 1))
            is_told = is_told || is_told_of(&loud, "requests per second");
    }
    // One that can no longer write has yet to read the last words.
    while (next(&loud))
        is_told = is_told || is_told_of(&loud, "requests per second");
    assert_true(is_told && loud.ws.is_closed);
    assert_true(next_sample(&good, 1).length > 100);
    leave(&loud);
    leave(&good);
    rig_stop();
}

static void a_slow_client_loses_samples_and_is_told_while_others_get_all(void **state) {
    (void)state;
    rig_start(NULL);
    client slow, good;
    join(&slow, &(ws_def){.receive_buffer = 4096});
    join(&good, NULL);
    subscribe(&good, 1, "/k10/odom");
    subscribe(&good, 2, "/k10/robot_description");
    // The slow one reads nothing, and asks for what is long and said once again and again; the good one hears
    // it each time too.
    int64_t last = -1;
    size_t n_byte = 0;
    for (uint32_t k = 0; n_byte < 12 << 20; k++) {  // three times what may wait for a client
        say(&slow, "{\"op\":\"unsubscribe\",\"subscriptionIds\":[%u]}", k - 1);
        subscribe(&slow, k, "/k10/robot_description");
        for (bool is_heard = false; !is_heard && next(&good);) {
            const uint8_t *m = good.ws.message;
            if (good.ws.opcode != WS_BINARY || m[0] != 1) continue;
            is_heard = number(m + 1, 4) == 2;
            n_byte += is_heard ? good.ws.n_message : 0;
            const int64_t time = (int64_t)number(m + 5, 8);
            if (is_heard) continue;
            if (last >= 0) assert_int_equal(time - last, 20000000);
            last = time;
        }
    }
    // Now it reads, and is told. The first unsubscription was of nothing.
    expect_status(&slow, 2, "no such subscription");
    expect_status(&slow, 1, "samples were left out");
    subscribe(&slow, 100000, "/k10/odom");
    assert_true(next_sample(&slow, 100000).time > last);
    leave(&slow);
    leave(&good);
    rig_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(somebody_elses_client_sees_the_robot_and_drives_it),
        cmocka_unit_test(somebody_elses_client_sees_the_scene_and_steers_the_world),
        cmocka_unit_test(a_client_is_told_what_there_is),
        cmocka_unit_test(samples_come_to_those_who_subscribed_until_they_no_longer_want_them),
        cmocka_unit_test(what_is_said_once_comes_to_those_who_come_later_also_while_time_stands_still),
        cmocka_unit_test(a_client_drives_the_robot),
        cmocka_unit_test(what_cannot_be_is_said_and_too_much_of_it_ends_the_session),
        cmocka_unit_test(one_that_may_only_look_cannot_command),
        cmocka_unit_test(nor_call_its_services_or_set_its_parameters),
        cmocka_unit_test(one_that_asks_without_end_is_sent_away_alone),
        cmocka_unit_test(a_slow_client_loses_samples_and_is_told_while_others_get_all),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
