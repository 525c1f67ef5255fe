// How commands of a robot's own interface end: what is answered when they are taken, refused, done and
// canceled.
//
// A command that drives somewhere is open until the firmware stands at its end (done), or another motion has
// begun (canceled). Every other is done when it is taken. What an ending is answered with is part of the
// state: a snapshot goes on with it.
#include <string.h>

#include "proxy/proxy__robot.h"

static bool is_with_end(int32_t motion) {
    return motion == USI_MOTION_ARC || motion == USI_MOTION_TURN || motion == USI_MOTION_NAVIGATE;
}

// Whether a text is too long to be kept: then its end is not told, where it would be told to somebody else.
static bool keep_copies(const usi_wire_value *from, usi_open_copy *to) {
    for (int i = 0; i < USI_COPIES; i++) {
        const usi_wire_value *v = &from[i];
        usi_open_copy *c = &to[i];
        memset(c, 0, sizeof *c);
        if (v->text && v->length > USI_OPEN_TEXT) return false;
        c->number = v->number;
        c->whole = v->whole;
        c->is_there = v->is_there;
        c->is_whole = v->is_whole;
        c->is_text = v->text != NULL;
        c->length = v->text ? v->length : 0;
        if (v->text) memcpy(c->text, v->text, v->length);
    }
    return true;
}

static void end(us_proxy *p, usi_robot *r, const us_sim *sim, usi_robot_state *s, int32_t answer) {
    usi_open_command *open = usi_open_of(r, s);
    usi_wire_value copy[USI_COPIES] = {0};
    for (int i = 0; i < USI_COPIES; i++) {
        const usi_open_copy *c = &open->copy[i];
        copy[i] = (usi_wire_value){.number = c->number,
                                   .whole = c->whole,
                                   .is_there = c->is_there,
                                   .is_whole = c->is_whole,
                                   .text = c->is_text ? c->text : NULL,
                                   .length = c->length};
    }
    usi_interface_send_answer(p, r, sim, s, open->inlet, answer, copy, "");
    memset(open, 0, sizeof *open);
}

void usi_interface_answer(us_proxy *p, usi_robot *r, const us_sim *sim, usi_robot_state *s,
                          const usi_mail *mail, const usi_reply *reply) {
    usi_open_command *open = usi_open_of(r, s);
    const usi_firmware_state *f = usi_view_firmware(r, s);
    const int32_t i = usi_inlet_of(mail->topic);
    const bool is_other = open && (f->motion != open->motion || f->motion_tick != open->tick);
    if (open && open->motion && reply->is_accepted && (is_other || reply->goes_on))
        end(p, r, sim, s, USI_ANSWER_CANCELED);
    const usi_inlet *inlet = i >= 0 ? &r->model->interface_.inlet[i] : NULL;
    usi_wire_value copy[USI_COPIES] = {0};
    if (!inlet || !usi_members_read(inlet->type, usi_mail_bytes(mail), mail->length, inlet->member,
                                    inlet->n_member, p->values))
        return;
    for (int32_t k = 0; k < inlet->n_member; k++) {
        if (inlet->take[k].use == USI_TAKE_COPY) copy[inlet->take[k].index] = p->values[k];
    }
    usi_interface_send_answer(p, r, sim, s, i, reply->is_accepted ? USI_ANSWER_TAKEN : USI_ANSWER_REFUSED,
                              copy, reply->message);
    if (!reply->is_accepted || !open) return;
    if (!reply->goes_on || !is_with_end(f->motion)) {
        usi_interface_send_answer(p, r, sim, s, i, USI_ANSWER_DONE, copy, "");
    } else if (keep_copies(copy, open->copy)) {
        open->inlet = i;
        open->motion = f->motion;
        open->tick = f->motion_tick;
    } else {
        memset(open, 0, sizeof *open);
    }
}

void usi_interface_watch(us_proxy *p, usi_robot *r, const us_sim *sim, usi_robot_state *s) {
    const usi_open_command *open = usi_open_of(r, s);
    const usi_firmware_state *f = usi_view_firmware(r, s);
    if (!open || !open->motion) return;
    const bool is_same = f->motion_tick == open->tick;
    if (is_same && f->motion == open->motion) return;
    end(p, r, sim, s, is_same && f->motion == USI_MOTION_STOP ? USI_ANSWER_DONE : USI_ANSWER_CANCELED);
}

bool usi_open_is_sound(const usi_robot *r, const usi_robot_state *s) {
    if (!r->model->interface_.has_endings) return true;
    usi_open_command open;
    memcpy(&open, (const char *)s + r->open_at, sizeof open);
    if (open.motion == 0) return true;
    bool is_sound = is_with_end(open.motion) && open.inlet >= 0 && open.inlet < r->model->interface_.n_inlet;
    for (int i = 0; i < USI_COPIES; i++)
        is_sound = is_sound && open.copy[i].length <= USI_OPEN_TEXT;
    return is_sound;
}
