// A proxy's life: robots on a bus, commands in, samples out.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/proxy__robot.h"
#include "sim/sim.h"

// A JointTrajectory of 128 points for 30 joints, or a route, with room to spare.
static const size_t DECODED_SIZE = 512 * 1024, MESSAGE_SIZE = 256 * 1024, BYTES_SIZE = 1024 * 1024;

us_proxy_def us_proxy_def_default(void) {
    return (us_proxy_def){
        .allocator = us_allocator_default(), .enable_motor_servers = true, .motor_address = "127.0.0.1"};
}

// ---------------------------------------------------------------- create and destroy

// Memory for what goes into one robot's firmware and comes out of it.
static us_status make_scratch(us_proxy *p) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_firmware *fw = &p->robot[i].model->firmware;
        if (p->n_reading < fw->n_joint) p->n_reading = fw->n_joint;
        if (p->n_output < fw->n_drive) p->n_output = fw->n_drive;
    }
    p->readings = usi_arena_alloc(&p->arena, (2 * (size_t)p->n_reading + 1) * sizeof *p->readings, 8);
    p->output = usi_arena_alloc(&p->arena, ((size_t)p->n_output + 1) * sizeof *p->output, 8);
    // A message may name a drive several times.
    p->n_commands = 4 * p->n_output;
    p->commands = usi_arena_alloc(&p->arena, ((size_t)p->n_commands + 1) * sizeof *p->commands, 8);
    return p->readings && p->output && p->commands ? US_OK : US_ERR_MEMORY;
}

us_status us_proxy_create(const us_model *model, const us_proxy_def *def, us_proxy **out_proxy,
                          us_error *err) {
    if (!model || !out_proxy)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a model and a place for the proxy",
                            "us_proxy_create: an argument is NULL");
    us_proxy_def d = def ? *def : us_proxy_def_default();
    us_proxy *p = usi_alloc(&d.allocator, sizeof *p, _Alignof(us_proxy));
    if (!p)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the robots' network");
    memset(p, 0, sizeof *p);
    p->allocator = d.allocator;
    p->def = d;
    p->model = model;
    p->step = us_model_get_step(model);
    p->seed = model->seed;
    p->clock_rate = model->clock_rate;
    p->owes_all = true;
    atomic_init(&p->owes_tap, false);
    usi_arena_init(&p->arena, &p->allocator);
    usi_arena_init(&p->bound, &p->allocator);
    p->n_decoded = DECODED_SIZE;
    p->n_message = MESSAGE_SIZE;
    p->n_byte = BYTES_SIZE;
    p->mails = usi_arena_alloc(&p->arena, USI_MAILBOX_SIZE, 64);
    p->decoded = usi_arena_alloc(&p->arena, DECODED_SIZE, 64);
    p->message = usi_arena_alloc(&p->arena, MESSAGE_SIZE, 64);
    p->bytes = usi_arena_alloc(&p->arena, BYTES_SIZE, 64);
    us_status status = p->mails && p->decoded && p->message && p->bytes ? US_OK : US_ERR_MEMORY;
    if (!status) status = usi_robots_make(p);
    if (!status) status = make_scratch(p);
    if (!status) status = usi_robots_equip(p);
    if (!status) status = usi_channels_make(p);
    if (status == US_ERR_MEMORY)
        us_error_set(err, status, NULL, "free memory", "no memory left for the robots' network");
    if (status) {
        us_proxy_destroy(p);
        return status;
    }
    *out_proxy = p;
    return US_OK;
}

void us_proxy_destroy(us_proxy *p) {
    if (!p) return;
    // First nothing comes in any more, then all that waits goes out, then the writers go.
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_motor_server_destroy(p->robot[i].motors);
        for (int k = 0; k < USI_COMMAND_COUNT; k++) {
            if (p->robot[i].reader[k]) us_reader_remove(p->robot[i].reader[k]);
        }
    }
    usi_outbox_destroy(p->outbox);
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot *r = &p->robot[i];
        for (int32_t k = 0; r->outlet && k < r->n_topic + USI_SERVICE_COUNT; k++) {
            if (r->outlet[k].writer) us_writer_remove(r->outlet[k].writer);
        }
        if (p->robot[i].mailbox) {
            usi_mailbox_fini(p->robot[i].mailbox);
            usi_release(&p->allocator, p->robot[i].mailbox, sizeof(usi_mailbox), _Alignof(usi_mailbox));
        }
    }
    if (p->clock) us_writer_remove(p->clock);
    us_allocator a = p->allocator;
    usi_arena_fini(&p->bound);
    usi_arena_fini(&p->arena);
    usi_release(&a, p, sizeof *p, _Alignof(us_proxy));
}

// ---------------------------------------------------------------- the part

static usi_robot_state *state_of(const usi_robot *r, void *state) {
    return (usi_robot_state *)(void *)((char *)state + r->state_at);
}

const usi_robot_state *usi_view_state(const usi_robot *r, const us_sim *sim) {
    const char *state = us_sim_view_plugin(sim, usi_sim_find_plugin(sim, r->proxy));
    return state ? (const usi_robot_state *)(const void *)(state + r->state_at) : NULL;
}

usi_robot_state *usi_take_state(const usi_robot *r, us_sim *sim) {
    void *state = usi_sim_plugin(sim, usi_sim_find_plugin(sim, r->proxy));
    return state ? state_of(r, state) : NULL;
}

static void start(void *context, us_sim *sim, void *state) {
    us_proxy *p = context;
    // `before` reports a sim of another model.
    if (us_sim_view_model(sim) != p->model) return;
    p->owes_all = true;
    p->seen_tick = us_sim_get_tick(sim);
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        usi_link_clear(&r->downlink);
        r->downlink_head = (usi_link_head){0};
        usi_robot_state *s = state_of(r, state);
        const usi_firmware_readings in = usi_robot_read(r, sim, s);
        usi_firmware_start(&r->model->firmware, usi_firmware_of(r, s), &in);
    }
}

// A tick that does not follow: somebody has restored another state. What was on its way from the robots
// belongs to a time that is no more, or that is yet to come, and would wait for it; what is on its way to
// them is part of the state. A step that fails is tried again from the same tick.
static void notice_jump(us_proxy *p, int64_t tick) {
    bool is_next = tick == p->seen_tick || tick == p->seen_tick + 1;
    p->seen_tick = tick;
    if (is_next) return;
    p->owes_all = true;
    for (int32_t i = 0; i < p->n_robot; i++)
        usi_link_clear(&p->robot[i].downlink);
}

// The client of the motor protocol gets its answer.
static void answer(const usi_robot *r, const usi_mail *mail, usi_motor_reason reason) {
    int client = 0;
    if (mail->topic != USI_COMMAND_MOTOR_TEXT || !r->motors || sscanf(mail->source, "motor:%d", &client) != 1)
        return;
    // The text lies in the message: after the header a String is a length and its characters.
    const char *text = (const char *)usi_mail_bytes(mail) + 8;
    size_t length = strnlen(text, mail->length - 8);
    if (reason == USI_MOTOR_GOOD) {
        usi_motor_server_ack(r->motors, client, text, length);
    } else {
        usi_motor_server_refuse(r->motors, client, text, length, reason);
    }
}

static void take(usi_robot *r, us_sim *sim, usi_robot_state *s, const usi_mail *mail) {
    usi_reply reply;
    answer(r, mail, usi_robot_command(r, sim, s, mail->topic, usi_mail_bytes(mail), mail->length, &reply));
    usi_robot_reply(r->proxy, r, sim, s, &reply);
}

// A mail has come out of its box.
static void receive(us_proxy *p, const usi_robot *r, const usi_mail *mail, int64_t tick) {
    int32_t channel = r->command_channel[mail->topic];
    usi_channel_count(p, channel);
    if (p->record.command && channel >= 0)
        p->record.command(p->record.context, channel, tick, mail->source, usi_mail_bytes(mail), mail->length);
}

static int32_t count_proxies(const us_sim *sim);

static us_status before(void *context, us_sim *sim, us_plugin_view *view, us_error *err) {
    us_proxy *p = context;
    if (count_proxies(sim) != 1)
        return us_error_set(err, US_ERR_ARG, NULL, "give a sim the plug-in of one proxy, once",
                            "the sim has two networks for the same robots");
    if (us_sim_view_model(sim) != p->model)
        return us_error_set(err, US_ERR_ARG, NULL,
                            "make both of the same model, and replace it by us_proxy_replace",
                            "the robots' network belongs to another model than the sim");
    int64_t tick = us_sim_get_tick(sim), now = usi_time_of(p, tick);
    notice_jump(p, tick);
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        if (r->is_ghost) continue;
        usi_robot_state *s = state_of(r, view->state);
        usi_robot_age_faults(r, sim, s);
        // A computer that is off or starts receives nothing.
        const bool is_up = usi_is_up(s);
        const us_link_model link = usi_link_now(&r->model->network->uplink, s, tick);
        const bool is_perfect = usi_link_is_perfect(&link);
        usi_link_queue queue = {&s->uplink, (char *)s + r->uplink_at, r->uplink_size};
        size_t used = usi_mailbox_take(r->mailbox, p->mails), at = 0;
        for (const usi_mail *mail; (mail = usi_mail_next(p->mails, used, &at));) {
            receive(p, r, mail, tick);
            if (is_perfect && s->uplink.used == 0) {
                if (is_up) take(r, sim, s, mail);
            } else {
                usi_link_send(&link, p->seed, 2 * (uint64_t)i, &queue, now, mail->topic, mail,
                              sizeof *mail + mail->length);
            }
        }
        for (const usi_link_item *item; (item = usi_link_first(&queue, now));) {
            if (is_up) take(r, sim, s, (const usi_mail *)(const void *)(item + 1));
            usi_link_drop_first(&queue);
        }
        usi_robot_control(r, sim, s, view);
    }
    return US_OK;
}

static int32_t count_proxies(const us_sim *sim) {
    int32_t n = 0;
    for (int32_t i = 0; i < sim->n_part; i++)
        n += sim->part[i].before == before;
    return n;
}

// Most of a robot's state is room for trajectories and for what is on its way by radio, and mostly unused: of
// a K10's 26 kB a tick changes 4.
static void carry(void *context, const us_sim *sim, const void *from, void *to) {
    const us_proxy *p = context;
    const int64_t last = us_sim_get_tick(sim) - 1;
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot *r = &p->robot[i];
        // Nobody changes the state of a ghost.
        if (r->is_ghost) continue;
        const char *now = (const char *)from + r->state_at;
        char *next = (char *)to + r->state_at;
        const usi_robot_state *s = (const usi_robot_state *)(const void *)now;
        // What lies behind the last message of a link is 0, here as there.
        uint64_t used = ((usi_robot_state *)(void *)next)->uplink.used;
        if (used < s->uplink.used) used = s->uplink.used;
        // A trajectory stays as it came.
        bool is_new = usi_view_firmware(r, s)->trajectory_tick >= last;
        memcpy(next, now, is_new ? r->uplink_at : r->firmware_at + r->model->firmware.trajectory_at);
        if (used > 0) memcpy(next + r->uplink_at, now + r->uplink_at, used);
    }
}

us_plugin us_proxy_get_plugin(us_proxy *p) {
    return (us_plugin){.version = US_PLUGIN_VERSION,
                       .name = "proxy",
                       .state_size = p->state_size,
                       .context = p,
                       .start = start,
                       .before = before,
                       .carry = carry};
}

// ---------------------------------------------------------------- the outside

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
    default:
        return NULL;
    }
}

// Which robot and command a reader's samples are.
typedef struct subscription {
    usi_robot *r;
    int32_t topic;
} subscription;

static void on_sample(void *context, const us_sample *sample) {
    const subscription *in = context;
    char source[USI_SOURCE_MAX];
    for (int i = 0; i < 16; i++)
        snprintf(source + 2 * i, 3, "%02x", sample->writer[i]);
    usi_mailbox_put(in->r->mailbox, in->topic, source, sample->bytes, sample->length);
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

static us_status subscribe(us_proxy *p, usi_robot *r, int32_t node, subscription *subscriptions,
                           us_error *err) {
    us_status status = US_OK;
    char topic[300];
    for (int i = 0; i < USI_COMMAND_ASK && !status; i++) {
        if (!usi_has_command(r, i) || i == USI_COMMAND_MOTOR_TEXT) continue;
        // Fast DDS knows one type per topic: there cmd_vel is a Twist alone.
        if (i == USI_COMMAND_TWIST_STAMPED && strcmp(us_bus_vendor(p->bus), "fastdds") == 0) continue;
        subscriptions[i] = (subscription){r, i};
        usi_topic_name(r, usi_command_name(i), topic, sizeof topic);
        us_topic_def def = {topic, usi_command_type(i), us_qos_for_topic(topic, usi_command_type(i)), node};
        status = us_bus_add_reader(p->bus, &def, on_sample, &subscriptions[i], &r->reader[i], err);
    }
    return status;
}

// "/k10/locomotor" is asked on rq/k10/locomotorRequest and answers on rr/k10/locomotorReply. First comes the
// writer: whoever finds the reader is answered.
static us_status offer_services(us_proxy *p, usi_robot *r, int32_t node, subscription *subscriptions,
                                us_error *err) {
    static const us_qos qos = {.is_reliable = true, .depth = 100};
    us_status status = US_OK;
    char name[300], topic[320];
    for (int i = 0; i < USI_SERVICE_COUNT && !status; i++) {
        int ask = USI_COMMAND_ASK + i;
        if (!usi_has_command(r, ask)) continue;
        subscriptions[ask] = (subscription){r, ask};
        usi_topic_name(r, usi_command_name(ask), name, sizeof name);
        snprintf(topic, sizeof topic, "rr%sReply", name);
        usi_outlet *out = &r->outlet[r->n_topic + i];
        out->type = reply_type(ask);
        us_topic_def def = {topic, out->type, qos, node};
        status = us_bus_add_writer(p->bus, &def, &out->writer, err);
        snprintf(topic, sizeof topic, "rq%sRequest", name);
        def.type = usi_command_type(ask);
        if (!status)
            status = us_bus_add_reader(p->bus, &def, on_sample, &subscriptions[ask], &r->reader[ask], err);
    }
    return status;
}

static us_status connect_robot(us_proxy *p, usi_robot *r, us_error *err) {
    int32_t node = -1;
    char namespace_[300];
    snprintf(namespace_, sizeof namespace_, "/%s", r->model->network->namespace_);
    us_status status = us_bus_add_node(p->bus, namespace_, r->model->network->node, &node, err);
    for (int32_t i = 0; i < r->n_topic && !status; i++) {
        usi_outlet *out = &r->outlet[i];
        const char *topic = r->model->topic[i].name;
        if (out->channel < 0) continue;
        us_topic_def def = {topic, out->type, us_qos_for_topic(topic, out->type), node};
        status = us_bus_add_writer(p->bus, &def, &out->writer, err);
    }
    subscription *subscriptions =
        usi_arena_alloc(&p->arena, USI_COMMAND_COUNT * sizeof *subscriptions, _Alignof(subscription));
    if (!subscriptions && !status)
        status =
            us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the robots' network");
    if (!status) status = subscribe(p, r, node, subscriptions, err);
    if (!status) status = offer_services(p, r, node, subscriptions, err);
    return status ? status : connect_motors(p, r, err);
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
    if (p->clock_rate > 0 && !p->is_clock_off) {
        us_topic_def def = {"/clock", usi_type_clock, us_qos_for_topic("/clock", usi_type_clock), -1};
        status = us_bus_add_node(bus, "/understudy", "simulation", &def.node, err);
        if (!status) status = us_bus_add_writer(bus, &def, &p->clock, err);
    }
    for (int32_t i = 0; i < p->n_robot && !status; i++) {
        if (!p->robot[i].is_ghost) status = connect_robot(p, &p->robot[i], err);
    }
    return status;
}

void usi_proxy_set_ghost(us_proxy *p, int32_t robot) { p->robot[robot].is_ghost = true; }
void usi_proxy_mute_clock(us_proxy *p) { p->is_clock_off = true; }

void usi_proxy_set_record_tap(us_proxy *p, const usi_record_tap *tap) {
    p->record = tap ? *tap : (usi_record_tap){0};
    // One that begins in the middle lacks the latched samples of before.
    if (tap) p->owes_record = true;
}

// To the clients of the motor protocol.
static void publish_motors(const us_proxy *p, const usi_robot *r, const us_sim *sim,
                           const usi_robot_state *s) {
    const usi_drive_state *drives = usi_firmware_view_drives(&r->model->firmware, usi_view_firmware(r, s));
    for (int32_t k = 0; k < r->model->network->n_motor; k++) {
        for (int32_t d = 0; d < r->model->firmware.n_drive; d++) {
            if (r->model->drive[d].index != r->model->network->motors[k].drive) continue;
            int32_t joint = r->model->firmware.drive[d].joint;
            double v = usi_read_v(r, sim, joint);
            usi_motor_server_status(r->motors, k, (v - drives[d].v_before) / p->step, v,
                                    usi_read_q(r, sim, joint));
        }
    }
}

static void publish_clock(us_proxy *p, int64_t time) {
    us_msg_clock m = {{(int32_t)(time / 1000000000), (uint32_t)(time % 1000000000)}};
    if (p->clock || p->record.sample || p->tap)
        usi_proxy_send(p, p->clock, p->clock_channel, usi_type_clock, &m, time);
}

void us_proxy_publish(us_proxy *p, us_sim *sim) {
    if (us_sim_view_model(sim) != p->model) return;
    int64_t tick = us_sim_get_tick(sim), time = usi_time_of(p, tick), n = p->n_sample;
    notice_jump(p, tick);
    bool is_first = p->owes_all, is_heard = p->outbox || p->record.sample || p->tap,
         owes_record = p->owes_record && !is_first;
    p->owes_all = p->owes_record = false;
    usi_timing_follow(p, time, is_first);
    if (is_first || usi_is_due(p->clock_rate, p->step, tick)) publish_clock(p, time);
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        const usi_robot_state *s = usi_view_state(r, sim);
        // What is sent once leaves in any case: somebody may ask for it later.
        if (!s || r->is_ghost || (!is_heard && !is_first && r->downlink_head.used == 0)) continue;
        if (owes_record && p->record.sample) usi_robot_repeat(p, r, sim, s, USI_SINK_RECORDER);
        usi_robot_publish(p, r, sim, s, is_first);
        if (r->motors && usi_is_up(s) && usi_is_due(r->model->network->motor_rate, p->step, tick))
            publish_motors(p, r, sim, s);
    }
    usi_proxy_tend(p, sim);
    if (p->outbox && p->n_sample != n) usi_outbox_ring(p->outbox);
}
