// Who commands a robot when several do: sources with priorities.
//
// Commands of a source hold off those of lower priority for a while after each, so that a joystick takes the
// robot from its autonomy when it is moved, and gives it back when it has been let go:
//
//     operator (10)   ....||||||||||....hold....
//     autonomy (0)    ||||xxxxxxxxxxxxxxxxxxxxxx||||||       x refused
//
// Until when each source holds is part of the state, and who sent a command is part of the recording: a
// replay refuses what was refused. Stops are obeyed whoever sends them. A velocity of 0 is none: an autonomy
// that stands and says so ten times a second would stop the operator.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"
#include "wire/motor.h"

bool usi_has_exclusive_network(const us_network_def *d) {
    for (int32_t i = 0; i < d->n_source; i++) {
        if (strcmp(d->sources[i].name, "network") == 0) return d->sources[i].is_exclusive;
    }
    return false;
}

void usi_command_source_topic(const us_network_def *d, const us_command_source *c, char *out, size_t cap) {
    if (c->topic[0] == '/') {
        snprintf(out, cap, "%s", c->topic);
    } else {
        snprintf(out, cap, "%s%s/%s", d->namespace_[0] ? "/" : "", d->namespace_, c->topic);
    }
}

// What stands before the colon; a writer's id alone has come over the robot's own topics.
static int32_t find_source(const us_network_def *d, const char *sender) {
    const size_t n = strcspn(sender, ":");
    const bool is_writer = sender[n] == 0 && n == 32;
    for (int32_t i = 0; i < d->n_source; i++) {
        const char *name = d->sources[i].name;
        if (is_writer ? strcmp(name, "network") == 0 : strncmp(name, sender, n) == 0 && name[n] == 0)
            return i;
    }
    return -1;
}

// The one with the highest priority of those that hold; -1: none.
static int32_t find_holder(const us_network_def *d, const usi_robot_state *s, int64_t tick) {
    int32_t found = -1;
    for (int32_t i = 0; i < d->n_source; i++) {
        if (s->source_until[i] < tick || s->source_until[i] == 0) continue;
        if (found < 0 || d->sources[i].priority > d->sources[found].priority) found = i;
    }
    return found;
}

// Stops that are no velocities. As encoded, a motor's text lies behind a header of 4 bytes and a length of 4.
static bool is_stop(const usi_mail *mail) {
    const char *bytes = usi_mail_bytes(mail);
    const us_message_type *type = usi_command_type(mail->topic);
    if (mail->topic == USI_COMMAND_MOTOR_TEXT)
        return mail->length > 8 && usi_motor_text_is_stop(bytes + 8, mail->length - 8);
    if (mail->topic == USI_COMMAND_LOCOMOTOR || mail->topic == USI_COMMAND_NAVIGATOR)
        return us_message_get_number(type, bytes, mail->length, "mode") == 0;
    if (mail->topic == USI_COMMAND_ASK_LOCOMOTOR || mail->topic == USI_COMMAND_ASK_NAVIGATOR)
        return us_message_get_number(type, bytes, mail->length, "command.mode") == 0;
    return false;
}

// What asks and changes nothing is answered whoever commands, and holds nobody off.
static bool is_question(const usi_mail *mail) {
    const char *bytes = usi_mail_bytes(mail);
    if (mail->topic == USI_COMMAND_ASK_WAIT) return true;
    if (mail->topic == USI_COMMAND_ASK_PROPERTIES)
        return us_message_get_number(usi_command_type(mail->topic), bytes, mail->length, "mode") < 2;
    usi_motor_command m;
    if (mail->topic != USI_COMMAND_MOTOR_TEXT || mail->length <= 8 ||
        usi_motor_parse(bytes + 8, strnlen(bytes + 8, mail->length - 8), &m))
        return false;
    return m.kind == USI_MOTOR_GET_ROVER || m.kind == USI_MOTOR_GET_PROPERTY ||
           m.kind == USI_MOTOR_GET_LINE || m.kind == USI_MOTOR_GET_IMU;
}

bool usi_source_may_command(const usi_robot *r, const usi_robot_state *s, const usi_mail *mail, int64_t tick,
                            char *out_why, size_t cap) {
    const us_network_def *d = r->model->network;
    const int32_t holder = find_holder(d, s, tick);
    // The gate brings a robot to rest whose switch is gone.
    if (holder < 0 || strcmp(mail->source, "gate") == 0 || is_stop(mail) || is_question(mail)) return true;
    const int32_t own = find_source(d, mail->source);
    const int32_t priority = own < 0 ? 0 : d->sources[own].priority;
    if (priority >= d->sources[holder].priority) return true;
    snprintf(out_why, cap, "%s commands, with priority %d over %d", d->sources[holder].name,
             (int)d->sources[holder].priority, (int)priority);
    return false;
}

void usi_source_has_commanded(const usi_robot *r, usi_robot_state *s, const usi_mail *mail, int64_t tick) {
    const us_network_def *d = r->model->network;
    const int32_t own = find_source(d, mail->source);
    if (own < 0 || is_question(mail)) return;
    s->source_until[own] = tick + (int64_t)ceil(d->sources[own].hold / r->proxy->step);
}

const char *usi_source_in_force(const usi_robot *r, const usi_robot_state *s, int64_t tick) {
    const int32_t holder = find_holder(r->model->network, s, tick);
    return holder < 0 ? "" : r->model->network->sources[holder].name;
}
