// Floods of requests, goals and parameters that say anything: the robot's services and the world's take them
// or refuse them, in bounded memory, and the run goes on.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "net_peer.h"
#include "understudy/action.h"

enum { N_REQUEST = 150, N_TRY = 20000, MAX_BYTES = 400, HUGE = 1 << 20 };

static net_peer *p;

static uint64_t random_state = 7;
static uint64_t roll(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

// Bytes that may well be a message: most counts are small, and texts end.
static size_t make(uint8_t *out) {
    const size_t n = 4 + roll() % (MAX_BYTES - 4);
    for (size_t i = 0; i < n; i++) {
        const uint64_t dice = roll() % 100;
        out[i] = (uint8_t)(dice < 80 ? 0 : dice < 95 ? 1 + roll() % 3 : roll());
    }
    memcpy(out, (uint8_t[4]){0, 1, 0, 0}, 4);
    return n;
}

static us_client *open_client(const char *name, const us_message_type *request,
                              const us_message_type *response) {
    us_error err = {0};
    us_client *client = NULL;
    const us_client_def def = {name, request, response, -1, US_DIALECT_CYCLONE};
    if (us_bus_add_client(net_bus(p), &def, &client, &err)) fail_msg("%s: %s", name, err.message);
    NET_WAIT(us_client_is_ready(client));
    return client;
}

static int drain(us_client *client) {
    static uint8_t reply[1 << 18];
    int n = 0;
    size_t length = 0;
    int64_t number = 0;
    while (us_client_take(client, reply, sizeof reply, &length, &number) == US_OK && length > 0)
        n++;
    return n;
}

// Asks with what happens to be a request of this type. How many were.
static int flood(const char *name, const us_message_type *request, const us_message_type *response) {
    us_client *client = open_client(name, request, response);
    uint8_t bytes[MAX_BYTES];
    int n_asked = 0, n_answered = 0;
    int64_t number = 0;
    for (int i = 0; i < N_TRY && n_asked < N_REQUEST; i++) {
        n_asked += us_client_ask(client, bytes, make(bytes), &number) == US_OK;
        if (i % 100 == 0) n_answered += drain(client);
    }
    n_answered += drain(client);
    print_message("%s: %d asked, %d answered meanwhile\n", name, n_asked, n_answered);
    us_client_remove(client);
    return n_asked;
}

static int flood_service(const char *format, const char *package, const char *type) {
    char name[200], request[200], response[200], snake[100] = "";
    for (size_t i = 0, k = 0; type[i]; i++) {
        if (i > 0 && type[i] < 'a') snake[k++] = '_';
        snake[k++] = (char)(type[i] | 32);
    }
    snprintf(name, sizeof name, "%s%s", format, snake);
    snprintf(request, sizeof request, "%s/srv/%s_Request", package, type);
    snprintf(response, sizeof response, "%s/srv/%s_Response", package, type);
    assert_non_null(us_message_find(request));
    return flood(name, us_message_find(request), us_message_find(response));
}

static void everything_is_asked_of_the_services(void **state) {
    (void)state;
    static const char *const node[] = {"GetParameters",   "GetParameterTypes", "DescribeParameters",
                                       "ListParameters",  "SetParameters",     "SetParametersAtomically",
                                       "GetLoggerLevels", "SetLoggerLevels"};
    static const char *const world[] = {"GetEntities",    "GetEntitiesStates",  "GetEntityState",
                                        "SpawnEntity",    "SetEntityState",     "DeleteEntity",
                                        "StepSimulation", "SetSimulationState", "ResetSimulation"};
    int n = 0;
    for (size_t i = 0; i < sizeof node / sizeof *node; i++)
        n += flood_service("/k10/driver/", "rcl_interfaces", node[i]);
    for (size_t i = 0; i < sizeof world / sizeof *world; i++)
        n += flood_service("/understudy/", "simulation_interfaces", world[i]);
    // Bytes at random are a request often enough.
    assert_true(n > 1000);
}

// Goals with ids that nobody gave, again and again, results of goals that are not, and cancels of all.
static void goals_come_without_end(void **state) {
    (void)state;
    us_action_types t;
    us_error err = {0};
    assert_int_equal(us_action_types_find("simulation_interfaces/action/SimulateSteps", &t, &err), US_OK);
    const int n =
        flood("/understudy/simulate_steps/_action/send_goal", t.send_goal_request, t.send_goal_response);
    assert_true(n > 50);
    assert_true(flood("/understudy/simulate_steps/_action/get_result", t.get_result_request,
                      t.get_result_response) > 50);
    flood("/understudy/simulate_steps/_action/cancel_goal",
          us_message_find("action_msgs/srv/CancelGoal_Request"),
          us_message_find("action_msgs/srv/CancelGoal_Response"));
}

// Requests of a megabyte: refused, and what they took is given back.
static void large_requests_are_refused(void **state) {
    (void)state;
    static char name[HUGE];
    static uint8_t bytes[HUGE + 4096];
    memset(name, 'n', sizeof name - 1);
    const us_message_type *request = us_message_find("simulation_interfaces/srv/DeleteEntity_Request"),
                          *response = us_message_find("simulation_interfaces/srv/DeleteEntity_Response");
    us_client *client = open_client("/understudy/delete_entity", request, response);
    size_t length = 0;
    int64_t number = 0;
    const us_msg_delete_entity_request m = {.entity = name};
    assert_int_equal(us_message_encode(request, &m, bytes, sizeof bytes, &length), US_OK);
    int n = 0;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
        n += drain(client);
    }
    const double until = net_clock() + NET_PATIENCE;
    while (n == 0 && net_clock() < until) {
        n += drain(client);
        net_nap();
    }
    assert_true(n > 0);
    us_client_remove(client);
}

// The world still answers, and ends as it should.
static void the_run_goes_on(void **state) {
    (void)state;
    const us_message_type *request = us_message_find("simulation_interfaces/srv/GetSimulationState_Request"),
                          *response =
                              us_message_find("simulation_interfaces/srv/GetSimulationState_Response");
    us_client *client = open_client("/understudy/get_simulation_state", request, response);
    uint8_t bytes[64];
    size_t length = 0;
    int64_t number = 0;
    const us_msg_get_simulation_state_request m = {0};
    assert_int_equal(us_message_encode(request, &m, bytes, sizeof bytes, &length), US_OK);
    int n = 0;
    double next = 0;
    for (const double until = net_clock() + NET_PATIENCE; n == 0 && net_clock() < until; net_nap()) {
        if (net_clock() > next) {
            assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
            next = net_clock() + 2;
        }
        n = drain(client);
    }
    assert_true(n > 0);
    us_client_remove(client);
}

static int set_up(void **state) {
    (void)state;
    net_write_k10("k10.xml", "<network/>");
    p = net_open("cyclone");
    net_run("k10.xml --headless --quiet");
    net_wait_until(p, 0.2);
    return 0;
}

static int end(void **state) {
    const bool has_ended_well = net_end(SIGINT) == 0;
    net_close(p);
    return has_ended_well ? net_teardown(state) : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_asked_of_the_services),
        cmocka_unit_test(goals_come_without_end),
        cmocka_unit_test(large_requests_are_refused),
        cmocka_unit_test(the_run_goes_on),
    };
    return cmocka_run_group_tests(tests, set_up, end);
}
