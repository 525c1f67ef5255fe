// Robots on the network: their topics, services and motor ports.
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"
#include "proxy/rover_link.h"
#include "proxy/serial_face.h"

static const us_message_type *reply_type(int32_t request) {
    switch ((usi_command_topic)request) {
    case USI_COMMAND_ASK_MOTORS:
        return usi_type_motor_group_response;
    case USI_COMMAND_ASK_LOCOMOTOR:
        return usi_type_locomotor_response;
    case USI_COMMAND_ASK_POSE:
        return usi_type_pose_estimator_response;
    case USI_COMMAND_ASK_NAVIGATOR:
        return usi_type_navigator_response;
    case USI_COMMAND_ASK_PROPERTIES:
        return usi_type_properties_response;
    case USI_COMMAND_ASK_WAIT:
        return usi_type_wait_response;
    default:
        return NULL;
    }
}

static void on_motor(void *context, int32_t client, const usi_motor_command *command, const char *text,
                     size_t length) {
    usi_robot *r = context;
    (void)command;
    char line[USI_MOTOR_TEXT + 1], source[USI_SOURCE_MAX];
    uint8_t bytes[USI_MOTOR_TEXT + 32];
    size_t n = 0;
    snprintf(line, sizeof line, "%.*s", (int)length, text);
    snprintf(source, sizeof source, "motor:%d", (int)client);
    us_msg_string m = {line};
    if (us_message_encode(usi_type_string, &m, bytes, sizeof bytes, &n) ||
        usi_mailbox_put(r->mailbox, USI_COMMAND_MOTOR_TEXT, source, bytes, n)) {
        usi_motor_server_refuse(r->motors, client, text, length, USI_MOTOR_BUSY);
    }
}

static us_status connect_motors(us_proxy *p, usi_robot *r, us_error *err) {
    if (!p->def.enable_motor_servers || r->model->network->motor_port == 0) return US_OK;
    usi_motor_server_def def = usi_motor_server_def_default();
    def.allocator = p->allocator;
    if (p->def.motor_address) def.address = p->def.motor_address;
    def.port = r->model->network->motor_port;
    def.n_port_more = 20;  // two runs of one scene on one machine
    def.n_motor = r->model->network->n_motor;
    def.motors = r->model->network->motors;
    usi_motor_report reports[USI_LINK_REPORTS];
    def.n_report = usi_link_list(r, reports);
    def.reports = reports;
    def.status_rate = 0;  // the rate is one of simulated time: us_proxy_publish keeps it
    def.on_command = on_motor;
    def.context = r;
    return usi_motor_server_create(&def, &r->motors, err);
}

int32_t us_proxy_motor_port(const us_proxy *proxy, int32_t robot, int32_t *out_wanted) {
    if (out_wanted) *out_wanted = 0;
    if (!proxy || robot < 0 || robot >= proxy->n_robot) return 0;
    const usi_robot *r = &proxy->robot[robot];
    if (out_wanted) *out_wanted = r->model->network->motor_port;
    return r->motors ? usi_motor_server_port(r->motors) : 0;
}

const char *us_proxy_serial_lines(const us_proxy *proxy, int32_t robot) {
    if (!proxy || robot < 0 || robot >= proxy->n_robot) return "";
    return usi_faces_names(proxy->robot[robot].faces);
}

// ---- the gate ----

// A robot whose holder commands no more comes to rest, by a command that is recorded like any other.
static void on_gate(void *context, int32_t number, us_gate_event event, const char *text) {
    us_proxy *p = context;
    const usi_robot *r = p->gated[number];
    if (event == US_GATE_ENDED && usi_has_command(r, USI_COMMAND_TWIST)) {
        const us_msg_twist rest = {0};
        uint8_t bytes[128];
        size_t n = 0;
        if (!us_message_encode(usi_type_twist, &rest, bytes, sizeof bytes, &n))
            (void)usi_mailbox_put(r->mailbox, USI_COMMAND_TWIST, "gate", bytes, n);  // a full box is counted
    }
    if (p->def.on_gate) p->def.on_gate(p->def.gate_context, p->is_part ? -1 : r->index, event, text);
}

// One gate for all robots, before their readers. A switch asks for a robot by its namespace: one without, or
// with one that is too long for a lease, has no gate.
static us_status open_gate(us_proxy *p, us_error *err) {
    size_t n = (size_t)p->n_robot;
    const char **names = usi_arena_alloc(&p->arena, (n + 1) * sizeof(char *), _Alignof(char *));
    p->gated = usi_arena_alloc(&p->arena, (n + 1) * sizeof(usi_robot *), _Alignof(usi_robot *));
    if (!names || !p->gated)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the robots' network");
    us_gate_def def = us_gate_def_default();
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        r->gate = -1;
        const size_t length = strlen(r->model->network->namespace_);
        if (r->is_ghost || length == 0 || length >= US_GATE_NAME) continue;
        r->gate = def.n_robot;
        p->gated[def.n_robot] = r;
        names[def.n_robot++] = r->model->network->namespace_;
    }
    if (def.n_robot == 0) return US_OK;
    def.allocator = p->allocator;
    def.bus = p->bus;
    def.robots = names;
    def.on_event = on_gate;
    def.context = p;
    return us_gate_open(&def, &p->gate, err);
}

static usi_subscription subscription_of(const us_proxy *p, const usi_robot *r, int32_t topic) {
    return (usi_subscription){r->mailbox, topic, r->gate < 0 ? NULL : p->gate, r->gate, ""};
}

static us_status subscribe(us_proxy *p, usi_robot *r, int32_t node, usi_subscription *subscriptions,
                           us_error *err) {
    us_status status = US_OK;
    char topic[300];
    for (int i = 0; i < USI_COMMAND_ASK && !status; i++) {
        if (!usi_has_command(r, i) || i == USI_COMMAND_MOTOR_TEXT) continue;
        subscriptions[i] = subscription_of(p, r, i);
        usi_topic_name(r, usi_command_name(r->model->network, i), topic, sizeof topic);
        us_topic_def def = {topic, usi_command_type(i), us_qos_for_topic(topic, usi_command_type(i)), node};
        def.qos.is_exclusive = usi_has_exclusive_network(r->model->network);
        status =
            us_bus_add_reader(p->bus, &def, usi_mailbox_on_sample, &subscriptions[i], &r->reader[i], err);
    }
    return status;
}

// Velocities on topics that sources have for themselves.
static us_status subscribe_sources(us_proxy *p, usi_robot *r, int32_t node, usi_subscription *subscriptions,
                                   us_error *err) {
    const us_network_def *d = r->model->network;
    us_status status = US_OK;
    for (int32_t i = 0; i < d->n_source && !status && usi_has_command(r, USI_COMMAND_TWIST); i++) {
        const us_command_source *c = &d->sources[i];
        if (!c->topic) continue;
        char topic[300];
        subscriptions[i] = subscription_of(p, r, USI_COMMAND_TWIST);
        snprintf(subscriptions[i].source, sizeof subscriptions[i].source, "%s", c->name);
        usi_command_source_topic(d, c, topic, sizeof topic);
        us_topic_def def = {topic, usi_type_twist, us_qos_for_topic(topic, usi_type_twist), node};
        def.qos.is_exclusive = c->is_exclusive;
        status =
            us_bus_add_reader(p->bus, &def, usi_mailbox_on_sample, &subscriptions[i], &r->own_reader[i], err);
    }
    return status;
}

// "/k10/locomotor" is asked on rq/k10/locomotorRequest and answers on rr/k10/locomotorReply, in both
// dialects.
static us_status offer_services(us_proxy *p, usi_robot *r, int32_t node, usi_subscription *subscriptions,
                                us_error *err) {
    us_status status = US_OK;
    char name[300];
    for (int i = 0; i < USI_SERVICE_COUNT && !status; i++) {
        int ask = USI_COMMAND_ASK + i;
        if (!usi_has_command(r, ask)) continue;
        subscriptions[ask] = subscription_of(p, r, ask);
        usi_topic_name(r, usi_command_name(r->model->network, ask), name, sizeof name);
        usi_outlet *out = &r->outlet[r->n_topic + i];
        out->type = reply_type(ask);
        const us_service_def def = {name, usi_command_type(ask), out->type, node};
        status = usi_bus_add_carried_service(p->bus, &def, usi_mailbox_on_sample, &subscriptions[ask],
                                             &r->service[i], err);
        if (status) break;
        out->writer = usi_service_writer(r->service[i]);
        out->is_shared = true;
    }
    return status;
}

static us_status connect_robot(us_proxy *p, usi_robot *r, us_error *err) {
    int32_t node = -1;
    char namespace_[300];
    snprintf(namespace_, sizeof namespace_, "/%s", r->model->network->namespace_);
    us_status status = us_bus_add_node(p->bus, namespace_, r->model->network->node, &node, err);
    if (!status) r->node_number = node;
    for (int32_t i = 0; i < r->n_topic && !status; i++) {
        usi_outlet *out = &r->outlet[i];
        const char *topic = r->model->topic[i].name;
        if (out->channel < 0) continue;
        us_topic_def def = {topic, out->type, us_qos_for_topic(topic, out->type), node};
        status = us_bus_add_writer(p->bus, &def, &out->writer, err);
    }
    if (status) return status;
    usi_subscription *subscriptions =
        usi_arena_alloc(&p->arena, (USI_COMMAND_COUNT + USI_COMMAND_SOURCES) * sizeof *subscriptions,
                        _Alignof(usi_subscription));
    if (!subscriptions)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the robots' network");
    status = subscribe(p, r, node, subscriptions, err);
    if (!status) status = subscribe_sources(p, r, node, subscriptions + USI_COMMAND_COUNT, err);
    if (!status) status = offer_services(p, r, node, subscriptions, err);
    if (!status) status = usi_robot_open_node(p, r, node, err);
    if (!status) status = usi_interface_connect(p, r, node, err);
    if (!status) status = connect_motors(p, r, err);
    if (!status) status = usi_lidar_packets_open(p, r, err);
    if (!status && p->def.enable_motor_servers && p->def.serial_directory)
        status = usi_faces_create(r, p->def.serial_directory, &r->faces, err);
    return status;
}

us_status us_proxy_connect(us_proxy *p, us_bus *bus, us_error *err) {
    if (!p || !bus || p->bus)
        return us_error_set(err, US_ERR_ARG, NULL, "connect a proxy once, to a bus that is open",
                            "us_proxy_connect: wrong argument, or connected already");
    p->bus = bus;
    us_status status = usi_outbox_create(&p->allocator, &p->outbox);
    if (status)
        return us_error_set(err, status, NULL, "free memory, or end other programs",
                            "the sending thread cannot be made");
    if (usi_timing_is_needed(p)) usi_outbox_hurry(p->outbox);
    usi_bus_pause_graph(bus);
    if (p->clock_rate > 0 && !p->is_clock_off) {
        us_topic_def def = {"/clock", usi_type_clock, us_qos_for_topic("/clock", usi_type_clock), -1};
        status = us_bus_add_node(bus, "/understudy", "simulation", &def.node, err);
        if (!status) status = us_bus_add_writer(bus, &def, &p->clock, err);
    }
    if (!status) status = open_gate(p, err);
    for (int32_t i = 0; i < p->n_robot && !status; i++) {
        if (!p->robot[i].is_ghost) status = connect_robot(p, &p->robot[i], err);
    }
    usi_bus_resume_graph(bus);
    return status;
}
