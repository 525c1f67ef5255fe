// One tick of the robots, as a plug-in of the sim: commands come out of the mailbox and over the radio link,
// readings go to the firmware, its outputs go to the drives.
#include <string.h>

#include "bus/node.h"
#include "proxy/proxy__robot.h"
#include "proxy/rover_link.h"
#include "sim/sim.h"

// ---------------------------------------------------------------- power

// Robots without power give their drives no torque, and their batteries nothing. What is behind a break gets
// no current.
static void power_drives(const usi_robot *r, const usi_robot_state *s, const usi_firmware_output *output,
                         us_plugin_view *view) {
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        bool is_cut = r->model->joint[r->model->firmware.drive[k].joint].is_lost;
        view->drive_limit_scale[r->model->drive[k].index] = output[k].is_enabled && !is_cut ? 1 : 0;
    }
    if (r->model->battery.i >= 0) view->battery_on[r->model->battery.i] = usi_has_power(s) ? 1 : 0;
}

double usi_robot_charge(const usi_robot *r, const us_sim *sim) {
    return us_sim_get_battery(sim, r->model->battery).energy / r->model->network->battery_capacity;
}

// ---------------------------------------------------------------- the firmware

usi_firmware_readings usi_robot_read(const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    double *q = r->proxy->readings, *v = q + r->proxy->n_reading;
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        q[i] = usi_read_q(r, sim, i);
        v[i] = usi_read_v(r, sim, i);
    }
    return (usi_firmware_readings){us_sim_get_tick(sim), q, v, usi_has_power(s), usi_is_up(s)};
}

void usi_robot_forget(const usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    usi_firmware_readings in = usi_robot_read(r, sim, s);
    s->stamp_offset = 0;
    memset(s->source_until, 0, sizeof s->source_until);
    if (usi_open_of(r, s)) memset(usi_open_of(r, s), 0, sizeof(usi_open_command));
    usi_firmware_forget(&r->model->firmware, usi_firmware_of(r, s), &in);
}

void usi_proxy_forget(us_proxy *p, us_sim *sim) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot_state *s = usi_take_state(&p->robot[i], sim);
        if (s && !p->robot[i].is_ghost) usi_robot_forget(&p->robot[i], sim, s);
    }
}

static void control(const usi_robot *r, const us_sim *sim, usi_robot_state *s, us_plugin_view *view) {
    const usi_firmware_readings in = usi_robot_read(r, sim, s);
    usi_firmware_output *output = r->proxy->output;
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        int32_t i = r->model->drive[k].index;
        output[k] = (usi_firmware_output){view->drive_position[i], view->drive_velocity[i],
                                          view->drive_torque[i], true};
    }
    usi_firmware_step(&r->model->firmware, usi_firmware_of(r, s), &in, output);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        int32_t i = r->model->drive[k].index;
        view->drive_position[i] = output[k].position;
        view->drive_velocity[i] = output[k].velocity;
        view->drive_torque[i] = output[k].torque;
    }
    power_drives(r, s, output, view);
}

// ---------------------------------------------------------------- the plug-in

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
void usi_notice_jump(us_proxy *p, int64_t tick) {
    bool is_next = tick == p->seen_tick || tick == p->seen_tick + 1;
    p->seen_tick = tick;
    if (is_next) return;
    p->owes_all = true;
    for (int32_t i = 0; i < p->n_robot; i++)
        usi_link_clear(&p->robot[i].downlink);
}

static void take(usi_robot *r, us_sim *sim, usi_robot_state *s, const usi_mail *mail) {
    usi_reply reply;
    const usi_motor_reason reason = usi_robot_command(r, sim, s, mail, &reply);
    if (reply.is_for_others) return;
    usi_link_answer(r, sim, s, mail, reason);
    usi_robot_reply(r->proxy, r, sim, s, &reply);
    if (!reply.is_accepted)
        usi_robot_log(r->proxy, r, sim, s, USI_LOG_WARNING, usi_view_firmware(r, s)->refusal);
    if (r->model->interface_.n_inlet > 0) usi_interface_answer(r->proxy, r, sim, s, mail, &reply);
}

// A mail has come out of its box.
static void receive(us_proxy *p, const usi_robot *r, const usi_mail *mail, int64_t tick) {
    int32_t channel = usi_channel_of_command(r, mail->topic);
    usi_channel_count(p, channel);
    if (p->record.command && channel >= 0)
        p->record.command(p->record.context, channel, tick, mail->source, usi_mail_bytes(mail), mail->length);
}

static bool has_rival(const us_proxy *p, const us_sim *sim);

static us_status before(void *context, us_sim *sim, us_plugin_view *view, us_error *err) {
    us_proxy *p = context;
    if (has_rival(p, sim))
        return us_error_set(err, US_ERR_ARG, NULL, "give a sim the plug-in of one proxy, once",
                            "the sim has two networks for the same robots");
    if (us_sim_view_model(sim) != p->model)
        return us_error_set(err, US_ERR_ARG, NULL,
                            "make both of the same model, and replace it by us_proxy_replace",
                            "the robots' network belongs to another model than the sim");
    int64_t tick = us_sim_get_tick(sim), now = usi_time_of(p, tick);
    usi_notice_jump(p, tick);
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
                usi_link_send(&link, p->seed, 2 * (uint64_t)r->number, &queue, now, mail->topic, mail,
                              sizeof *mail + mail->length);
            }
        }
        for (const usi_link_item *item; (item = usi_link_first(&queue, now));) {
            if (is_up) take(r, sim, s, (const usi_mail *)(const void *)(item + 1));
            usi_link_drop_first(&queue);
        }
        control(r, sim, s, view);
        usi_waits_serve(p, r, sim, s);
        if (r->model->interface_.has_endings) usi_interface_watch(p, r, sim, s);
    }
    return US_OK;
}

// Whether another proxy, or this one once more, has some of the same robots.
static bool has_rival(const us_proxy *p, const us_sim *sim) {
    int32_t n = 0;
    for (int32_t i = 0; i < sim->n_plugin; i++) {
        if (sim->plugin[i].before != before) continue;
        const us_proxy *other = sim->plugin[i].context;
        n += other->first_robot < p->first_robot + p->n_robot &&
             p->first_robot < other->first_robot + other->n_robot;
        n += other == p && p->n_robot == 0;
    }
    return n != 1;
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

// ---------------------------------------------------------------- states from files

// What is on its way to the robot are mails, each as long as it says.
static bool are_mails_sound(const usi_robot *r, const usi_robot_state *s) {
    const char *bytes = (const char *)s + r->uplink_at;
    if (!usi_link_is_sound(&s->uplink, bytes, r->uplink_size,
                           USI_COMMAND_COUNT + r->model->interface_.n_inlet))
        return false;
    usi_link_item item;
    const void *body;
    for (size_t at = 0; (body = usi_link_next(&s->uplink, bytes, &at, &item));) {
        usi_mail mail;
        if (item.length < sizeof mail) return false;
        memcpy(&mail, body, sizeof mail);
        if (mail.length != item.length - sizeof mail || mail.length > USI_MAIL_MAX ||
            mail.topic != item.topic || !memchr(mail.source, 0, sizeof mail.source))
            return false;
    }
    return true;
}

static bool are_faults_sound(const usi_robot *r, const usi_robot_state *s) {
    const usi_fault_state *f = &s->faults;
    const usi_script_state *script = usi_view_scripts(r, s);
    for (int32_t i = 0; i < r->model->n_script; i++) {
        if (script[i].fired < 0 || script[i].undone < 0) return false;
    }
    return f->power_until >= 0 && f->boot_until >= 0 && f->boot_tick >= 0 && f->n_boot >= 0 &&
           f->outage_until >= 0 && f->loss >= 0 && f->loss <= 1 && f->delay >= 0 && f->delay <= 1e6;
}

static bool check(void *context, const us_sim *sim, const void *state) {
    const us_proxy *p = context;
    if (us_sim_view_model(sim) != p->model) return false;
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot *r = &p->robot[i];
        const usi_robot_state *s = (const usi_robot_state *)(const void *)((const char *)state + r->state_at);
        if (r->is_ghost) continue;
        for (int32_t k = 0; k < USI_COMMAND_SOURCES; k++) {
            if (s->source_until[k] < 0) return false;
        }
        if (!usi_open_is_sound(r, s) || !are_mails_sound(r, s) || !are_faults_sound(r, s) ||
            !usi_firmware_is_sound(&r->model->firmware, usi_view_firmware(r, s)))
            return false;
    }
    return true;
}

us_plugin us_proxy_get_plugin(us_proxy *p) {
    return (us_plugin){.version = US_PLUGIN_VERSION,
                       .name = "proxy",
                       .state_size = p->state_size,
                       .context = p,
                       .start = start,
                       .before = before,
                       .carry = carry,
                       .check = check};
}
