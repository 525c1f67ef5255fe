// simulation_interfaces: a client that knows the standard alone controls the world.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"
#include "understudy/action.h"

enum { BYTES = 1 << 16 };

static net_peer *p;
static us_dialect dialect;

static void start(void) {
    net_write_k10("k10.xml", "<network/>");
    p = net_open("cyclone");
    net_run("k10.xml --headless --quiet");
    net_wait_until(p, 0.2);
}

static void end(void) {
    assert_int_equal(net_end(SIGINT), 0);
    net_close(p);
}

typedef struct line {
    us_client *client;
    const us_message_type *request, *response;
} line;

// Asks a service by its type; the answer is valid until the next one.
static const void *ask(const char *name, const char *type, const void *message) {
    static _Alignas(16) uint8_t memory[4 * BYTES];
    static uint8_t bytes[BYTES];
    char full[300], half[300];
    line l = {0};
    snprintf(full, sizeof full, "/understudy/%s", name);
    snprintf(half, sizeof half, "simulation_interfaces/srv/%s_Request", type);
    l.request = us_message_find(half);
    snprintf(half, sizeof half, "simulation_interfaces/srv/%s_Response", type);
    l.response = us_message_find(half);
    us_error err = {0};
    const us_client_def def = {full, l.request, l.response, -1, dialect};
    if (us_bus_add_client(net_bus(p), &def, &l.client, &err)) fail_msg("%s", err.message);
    NET_WAIT(us_client_is_ready(l.client));
    size_t length = 0;
    int64_t number = 0, answered = 0;
    assert_int_equal(us_message_encode(l.request, message, bytes, sizeof bytes, &length), US_OK);
    const double until = net_clock() + NET_PATIENCE;
    const void *m = NULL;
    // The service may not have found us yet when we ask; what is asked here may be asked twice.
    for (double next = 0; !m;) {
        uint8_t reply[BYTES];
        size_t n = 0;
        if (net_clock() > next) {
            assert_int_equal(us_client_ask(l.client, bytes, length, &number), US_OK);
            next = net_clock() + 5;
        }
        assert_int_equal(us_client_take(l.client, reply, sizeof reply, &n, &answered), US_OK);
        if (n > 0)
            assert_int_equal(us_message_decode(l.response, reply, n, memory, sizeof memory, &m, &err), US_OK);
        if (net_clock() > until) net_fail("waited for an answer of", name);
        net_nap();
    }
    us_client_remove(l.client);
    return m;
}

static int set_state(int wanted) {
    const us_msg_set_simulation_state_response *m =
        ask("set_simulation_state", "SetSimulationState",
            &(us_msg_set_simulation_state_request){.state = {(uint8_t)wanted}});
    return m->result.result;
}

static int get_state(void) {
    const us_msg_get_simulation_state_response *m =
        ask("get_simulation_state", "GetSimulationState", &(us_msg_get_simulation_state_request){0});
    assert_int_equal(m->result.result, 1);
    return m->state.state;
}

static bool has_entity(const char *name) {
    const us_msg_get_entities_response *m =
        ask("get_entities", "GetEntities",
            &(us_msg_get_entities_request){.filters = {.filter = usi_text("^[a-z0-9_]+$")}});
    assert_int_equal(m->result.result, 1);
    bool has = false;
    for (uint32_t i = 0; i < m->entities._length; i++)
        has = has || strcmp(m->entities._buffer[i], name) == 0;
    return has;
}

// The result of asking for the entities of a filter.
static int filter(const char *text) {
    const us_msg_get_entities_response *m = ask(
        "get_entities", "GetEntities", &(us_msg_get_entities_request){.filters = {.filter = usi_text(text)}});
    return m->result.result;
}

// Expressions on which the C library's matcher runs out of stack, memory or time, and a request that is too
// long: answered with an error, and the next one is served.
static void check_hostile(void) {
    static char deep[30001], many[20001];
    memset(deep, '(', sizeof deep - 1);
    memset(many, 'a', sizeof many - 1);
    assert_int_equal(filter(deep), 4);
    assert_int_equal(filter(many), 4);
    assert_int_equal(filter("((a{1,255}){1,255}){1,255}"), 4);
    assert_int_equal(filter("a+++++++++++++++++++++++++++++++"), 4);
    assert_int_equal(filter("(.*)(.*)(.*)(.*)(.*)(.*)\\1\\2\\3x"), 4);
    assert_int_equal(filter("^k10$"), 1);
}

static us_msg_pose place_of(const char *name) {
    const us_msg_get_entity_state_response *m = ask(
        "get_entity_state", "GetEntityState", &(us_msg_get_entity_state_request){.entity = usi_text(name)});
    assert_int_equal(m->result.result, 1);
    return m->state.pose;
}

static int reset_scope(int scope) {
    const us_msg_reset_simulation_response *m = ask(
        "reset_simulation", "ResetSimulation", &(us_msg_reset_simulation_request){.scope = (uint8_t)scope});
    return m->result.result;
}

static void check_time(void) {
    assert_int_equal(get_state(), 1);
    // Stepping wants a world that stands.
    const us_msg_step_simulation_response *stepped =
        ask("step_simulation", "StepSimulation", &(us_msg_step_simulation_request){.steps = 5});
    assert_int_equal(stepped->result.result, 3);
    assert_int_equal(set_state(2), 1);
    assert_int_equal(set_state(2), 101);
    assert_int_equal(get_state(), 2);
    stepped = ask("step_simulation", "StepSimulation", &(us_msg_step_simulation_request){.steps = 5});
    assert_int_equal(stepped->result.result, 1);
    assert_int_equal(reset_scope(1), 0);
    assert_int_equal(reset_scope(5), 0);
    assert_int_equal(reset_scope(0), 1);
    // Stopped is paused at the start; it can be paused from there, and is paused then.
    assert_int_equal(get_state(), 0);
    assert_int_equal(set_state(2), 1);
    assert_int_equal(get_state(), 2);
    assert_int_equal(set_state(0), 1);
    assert_int_equal(get_state(), 0);
    assert_int_equal(set_state(3), 0);
}

// How many entities have one of two categories.
static uint32_t count_category(int category, int other) {
    us_msg_entity_category kinds[] = {{(uint8_t)category}, {(uint8_t)other}};
    const us_msg_get_entities_response *m =
        ask("get_entities", "GetEntities",
            &(us_msg_get_entities_request){
                .filters = {.filter = usi_text(""), .categories = {._length = 2, ._buffer = kinds}}});
    assert_int_equal(m->result.result, 1);
    return m->entities._length;
}

// How many entities pass a filter.
static uint32_t count_entities(us_msg_entity_filters f, int result) {
    f.filter = usi_text("");
    const us_msg_get_entities_response *m =
        ask("get_entities", "GetEntities", &(us_msg_get_entities_request){.filters = f});
    assert_int_equal(m->result.result, result);
    return m->entities._length;
}

static uint32_t count_inside(int type, us_msg_vector3 a, us_msg_vector3 b, int result) {
    us_msg_vector3 points[] = {a, b};
    return count_entities((us_msg_entity_filters){.bounds = {.type = (uint8_t)type,
                                                             .points = {._length = 2, ._buffer = points}}},
                          result);
}

// The crate has the tags "heavy red", a tin beside it "red", and the rover none.
static void check_tags(void) {
    assert_int_equal(reset_scope(4), 1);
    assert_false(has_entity("crate"));
    us_msg_spawn_entity_request m = {.name = usi_text("crate")};
    m.entity_resource.resource_string = usi_text("box size=1,1,1 \"tags=heavy red\"");
    m.initial_pose.pose = (us_msg_pose){{20, 0, 1}, {0, 0, 0, 1}};
    const us_msg_spawn_entity_response *spawned = ask("spawn_entity", "SpawnEntity", &m);
    assert_int_equal(spawned->result.result, 1);
    m.name = usi_text("tin");
    m.entity_resource.resource_string = usi_text("cylinder size=0.1,0.2 tags=red");
    m.initial_pose.pose.position.x = 23;
    spawned = ask("spawn_entity", "SpawnEntity", &m);
    assert_int_equal(spawned->result.result, 1);
    const us_msg_get_entity_info_response *info =
        ask("get_entity_info", "GetEntityInfo", &(us_msg_get_entity_info_request){usi_text("crate")});
    assert_int_equal(info->info.tags._length, 2);
    assert_string_equal(info->info.tags._buffer[0], "heavy");
    char *words[] = {usi_text("heavy"), usi_text("red")};
    us_msg_entity_filters f = {.tags = {.tags = {._length = 2, ._buffer = words}}};
    assert_int_equal(count_entities(f, 1), 2);
    f.tags.filter_mode = 1;
    assert_int_equal(count_entities(f, 1), 1);
    words[0] = usi_text("hea");
    assert_int_equal(count_entities(f, 1), 0);
    const us_msg_vector3 centre = {20, 0, 1};
    assert_int_equal(count_inside(1, (us_msg_vector3){30, 1, 0}, (us_msg_vector3){19, -1, 2}, 1), 2);
    assert_int_equal(count_inside(3, centre, (us_msg_vector3){2, 0, 0}, 1), 1);
    assert_int_equal(count_inside(3, centre, (us_msg_vector3){4, 0, 0}, 1), 2);
    assert_int_equal(count_inside(3, centre, (us_msg_vector3){NAN, 0, 0}, 4), 0);
    assert_int_equal(count_inside(2, centre, centre, 0), 0);
    assert_int_equal(reset_scope(4), 1);
    assert_false(has_entity("tin"));
}

static us_msg_twist twist_of(const char *name) {
    const us_msg_get_entity_state_response *m = ask(
        "get_entity_state", "GetEntityState", &(us_msg_get_entity_state_request){.entity = usi_text(name)});
    assert_int_equal(m->result.result, 1);
    return m->state.twist;
}

static int set_entity(const us_msg_set_entity_state_request *m) {
    const us_msg_set_entity_state_response *moved = ask("set_entity_state", "SetEntityState", m);
    return moved->result.result;
}

// The world stands, so that what was set can be read. Twists are in the world's axes, and the pose stays.
static void check_motion(void) {
    us_msg_set_entity_state_request m = {.entity = usi_text("crate"), .set_pose = true, .set_twist = true};
    m.state.pose = (us_msg_pose){{7, 8, 9}, {0, 0, sin(0.5), cos(0.5)}};
    m.state.twist = (us_msg_twist){{1, -2, 3}, {0.5, 0.25, -4}};
    assert_int_equal(set_entity(&m), 1);
    us_msg_twist V = twist_of("crate");
    // A turn there and one back: rounding.
    assert_true(fabs(V.linear.x - 1) < 1e-12 && fabs(V.linear.y + 2) < 1e-12 && V.linear.z == 3);
    assert_true(fabs(V.angular.x - 0.5) < 1e-12 && fabs(V.angular.y - 0.25) < 1e-12 && V.angular.z == -4);
    assert_true(place_of("crate").position.z == 9);
    m.set_pose = false;
    m.state.twist = (us_msg_twist){{0, 0, 0}, {0, 0, 1}};
    assert_int_equal(set_entity(&m), 1);
    V = twist_of("crate");
    assert_true(V.linear.x == 0 && V.linear.y == 0 && V.linear.z == 0 && V.angular.z == 1);
    assert_true(place_of("crate").position.x == 7);
    m.state.twist.linear.x = 1e5;
    assert_int_equal(set_entity(&m), 4);
    m.set_twist = false;
    assert_int_equal(set_entity(&m), 4);
    m.set_acceleration = true;
    assert_int_equal(set_entity(&m), 0);
    m = (us_msg_set_entity_state_request){.entity = usi_text("crate"), .set_pose = true};
    m.state.pose.orientation.w = 2;
    assert_int_equal(set_entity(&m), 101);
    assert_true(place_of("crate").position.x == 7 && twist_of("crate").angular.z == 1);
}

static void check_entities(void) {
    us_msg_spawn_entity_request crate = {.name = usi_text("crate"),
                                         .entity_resource = {.uri = usi_text("understudy:box")}};
    crate.initial_pose.header.frame_id = usi_text("world");
    crate.initial_pose.pose = (us_msg_pose){{3, 4, 5}, {0, 0, sin(0.25), cos(0.25)}};
    const us_msg_spawn_entity_response *spawned = ask("spawn_entity", "SpawnEntity", &crate);
    assert_int_equal(spawned->result.result, 1);
    assert_string_equal(spawned->entity_name, "crate");
    assert_true(has_entity("crate") && has_entity("k10") && !has_entity("other"));
    us_msg_pose at = place_of("crate");
    assert_true(at.position.x == 3 && at.position.y == 4 && at.position.z == 5);
    // The command's text has roll, pitch and yaw with all their digits.
    assert_true(fabs(at.orientation.z - sin(0.25)) < 1e-12);
    spawned = ask("spawn_entity", "SpawnEntity", &crate);
    assert_int_equal(spawned->result.result, 101);
    crate.allow_renaming = true;
    spawned = ask("spawn_entity", "SpawnEntity", &crate);
    assert_int_equal(spawned->result.result, 1);
    assert_string_equal(spawned->entity_name, "crate_1");
    crate.entity_resource.uri = usi_text("file:///robot.sdf");
    spawned = ask("spawn_entity", "SpawnEntity", &crate);
    assert_int_equal(spawned->result.result, 103);
    us_msg_set_entity_state_request move = {.entity = usi_text("crate"), .set_pose = true};
    move.state.pose = (us_msg_pose){{-1, 2, 6}, {0, 0, 0, 1}};
    const us_msg_set_entity_state_response *moved = ask("set_entity_state", "SetEntityState", &move);
    assert_int_equal(moved->result.result, 1);
    at = place_of("crate");
    assert_true(at.position.x == -1 && at.position.y == 2 && at.position.z == 6);
    move.entity = usi_text("nobody");
    moved = ask("set_entity_state", "SetEntityState", &move);
    assert_int_equal(moved->result.result, 2);
    const us_msg_get_entity_info_response *info =
        ask("get_entity_info", "GetEntityInfo", &(us_msg_get_entity_info_request){usi_text("k10")});
    assert_int_equal(info->info.category.category, 1);
    // Robots are 1 and all others 0; there are no people (2).
    assert_int_equal(count_category(1, 2), 1);
    assert_int_equal(count_category(0, 2), 2);
    assert_int_equal(count_category(2, 2), 0);
    check_motion();
    const us_msg_delete_entity_response *gone =
        ask("delete_entity", "DeleteEntity", &(us_msg_delete_entity_request){usi_text("crate_1")});
    assert_int_equal(gone->result.result, 1);
    assert_false(has_entity("crate_1"));
    gone = ask("delete_entity", "DeleteEntity", &(us_msg_delete_entity_request){usi_text("crate_1")});
    assert_int_equal(gone->result.result, 2);
}

static int spawn_robot(us_msg_spawn_entity_request *m) {
    const us_msg_spawn_entity_response *spawned = ask("spawn_entity", "SpawnEntity", m);
    return spawned->result.result;
}

static bool has_spawnable(const char *uri) {
    const us_msg_get_spawnables_response *m =
        ask("get_spawnables", "GetSpawnables", &(us_msg_get_spawnables_request){0});
    bool has = false;
    for (uint32_t i = 0; i < m->spawnables._length; i++)
        has = has || strcmp(m->spawnables._buffer[i].entity_resource.uri, uri) == 0;
    return has;
}

// A second rover, as the first one of the scene, and one more as its description says; both are on the
// network like any other, until they are gone.
static void check_robots(void) {
    assert_true(has_spawnable("k10.xml#k10"));
    us_msg_spawn_entity_request m = {.name = usi_text("second"),
                                     .entity_resource = {.uri = usi_text("k10.xml#k10")},
                                     .entity_namespace = usi_text("/k10")};
    m.initial_pose.pose = (us_msg_pose){{0, 5, 0}, {0, 0, 0, 1}};
    assert_int_equal(spawn_robot(&m), 105);
    m.entity_namespace = usi_text("/site/second");
    assert_int_equal(spawn_robot(&m), 1);
    const us_msg_get_entity_info_response *info =
        ask("get_entity_info", "GetEntityInfo", &(us_msg_get_entity_info_request){usi_text("second")});
    assert_int_equal(info->info.category.category, 1);
    assert_int_equal(set_state(1), 1);
    const int32_t odom = net_listen(p, "/site/second/odom", usi_type_odometry);
    us_writer *cmd_vel = net_speak(p, "/site/second/cmd_vel", usi_type_twist);
    NET_WAIT((net_say(cmd_vel, usi_type_twist, &(us_msg_twist){.linear = {0.3, 0, 0}}), net_nap(),
              net_count(p, odom) > 0 && net_number(p, odom, -1, "pose.pose.position.x") > 0.1));
    us_msg_spawn_entity_request third = {.name = usi_text("third")};
    third.initial_pose.pose = (us_msg_pose){{0, -5, 0.1}, {0, 0, 0, 1}};
    char *urdf = net_read_text(US_SOURCE_DIR "/models/k10.urdf");
    third.entity_resource.resource_string = urdf;
    assert_int_equal(spawn_robot(&third), 1);
    free(urdf);
    third.name = usi_text("fourth");
    third.entity_resource.resource_string = usi_text("<robot><link/></robot>");
    assert_int_equal(spawn_robot(&third), 106);
    third.entity_resource.resource_string = usi_text("");
    third.entity_resource.uri = usi_text("/etc/passwd.urdf");
    assert_int_equal(spawn_robot(&third), 108);
    third.entity_resource.uri = usi_text("nothing.urdf");
    assert_int_equal(spawn_robot(&third), 107);
    third.entity_resource.uri = usi_text("file:///proc/self/../../etc/hosts#.xml");
    assert_int_equal(spawn_robot(&third), 103);
    assert_true(has_entity("second") && has_entity("third"));
    const us_msg_delete_entity_response *gone =
        ask("delete_entity", "DeleteEntity", &(us_msg_delete_entity_request){usi_text("second")});
    assert_int_equal(gone->result.result, 1);
    gone = ask("delete_entity", "DeleteEntity", &(us_msg_delete_entity_request){usi_text("k10")});
    assert_int_equal(gone->result.result, 4);
    us_writer_remove(cmd_vel);
    assert_int_equal(set_state(2), 1);
    assert_int_equal(reset_scope(6), 1);
    assert_true(!has_entity("third") && has_entity("k10"));
}

static void check_steps(void) {
    us_error err = {0};
    us_action_types types;
    assert_int_equal(us_action_types_find("simulation_interfaces/action/SimulateSteps", &types, &err), US_OK);
    const us_action_client_def def = {"/understudy/simulate_steps", types, -1, dialect};
    us_action_client *client = NULL;
    if (us_bus_add_action_client(net_bus(p), &def, &client, &err)) fail_msg("%s", err.message);
    NET_WAIT(us_action_client_is_ready(client));
    const us_msg_simulate_steps_send_goal_request goal = {.goal = {.steps = 200}};
    uint8_t bytes[512];
    size_t length = 0;
    us_goal_id id;
    assert_int_equal(us_message_encode(types.send_goal_request, &goal, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_action_client_send(client, bytes, length, &id), US_OK);
    us_action_event e = {0};
    double done = 0;
    int n_feedback = 0;
    const double until = net_clock() + NET_PATIENCE;
    while (e.kind != US_ACTION_RESULT) {
        if (net_clock() > until) net_fail("waited for", "the end of the steps");
        assert_int_equal(us_action_client_take(client, bytes, sizeof bytes, &length, &e), US_OK);
        if (e.kind == US_ACTION_NONE) net_nap();
        if (e.kind != US_ACTION_FEEDBACK) continue;
        const double now = us_message_get_number(types.feedback, bytes, length, "feedback.completed_steps");
        assert_true(now >= done && now <= 200);
        done = now;
        n_feedback++;
    }
    assert_int_equal(e.status, US_GOAL_SUCCEEDED);
    assert_true(n_feedback > 0);
    us_action_client_remove(client);
}

static void control(us_dialect d) {
    dialect = d;
    start();
    const us_msg_get_simulator_features_response *m =
        ask("get_simulator_features", "GetSimulatorFeatures", &(us_msg_get_simulator_features_request){0});
    // Of SimulatorFeatures.msg: spawning, deleting; tags, boxes, categories, spawning by a string; states and
    // infos got, states set, spawnables; reset, of states and of what was spawned; state got, set, paused;
    // steps, one, many, as an action.
    static const uint16_t features[] = {0, 1, 4, 6, 8, 9, 10, 11, 12, 14, 20, 22, 23, 24, 25, 26, 31, 32, 33};
    assert_int_equal(m->features.features._length, sizeof features / sizeof features[0]);
    for (uint32_t i = 0; i < m->features.features._length; i++)
        assert_int_equal(m->features.features._buffer[i], features[i]);
    check_time();
    check_hostile();
    check_entities();
    check_steps();
    check_tags();
    check_robots();
    assert_int_equal(set_state(1), 1);
    end();
}

static void a_standard_client_controls_the_world(void **state) {
    (void)state;
    control(US_DIALECT_CYCLONE);
}

static void so_does_one_on_fast_dds(void **state) {
    (void)state;
    net_peer *fast = net_open("fastdds");
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return;
    }
    net_close(fast);
    control(US_DIALECT_FASTDDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standard_client_controls_the_world),
        cmocka_unit_test(so_does_one_on_fast_dds),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
