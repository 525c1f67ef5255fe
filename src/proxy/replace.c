// The robots in another model: an edit has changed the world around them, and they go on.
//
// What a robot's firmware remembers lies in the sim's state and is carried over as it is. So the robot must
// be the same: each joint and drive in the same order, the same network interface, the same layout of its
// memory. What it knows by index of the model is found again beside the old, and takes its place at the end,
// when nothing can fail any more. What threads of the network look at is not touched.
//
// A broken joint is still one of the robot's: its firmware does not know, and goes on with the last readings
// of the encoders behind the break.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "proxy/cameras.h"
#include "proxy/proxy__robot.h"
#include "sim/sim.h"

// ---------------------------------------------------------------- the same robot

static bool is_same_text(const char *a, const char *b) { return (!a && !b) || (a && b && strcmp(a, b) == 0); }

static bool is_same_link(const us_link_model *a, const us_link_model *b) {
    return a->delay == b->delay && a->jitter == b->jitter && a->loss == b->loss &&
           a->bandwidth == b->bandwidth && a->n_outage == b->n_outage &&
           (a->n_outage == 0 ||
            memcmp(a->outages, b->outages, 2 * (size_t)a->n_outage * sizeof *a->outages) == 0);
}

static bool is_same_timing(const us_timing *a, const us_timing *b) {
    return a->is_wall == b->is_wall && a->offset == b->offset && a->drift == b->drift &&
           a->delay == b->delay && a->jitter == b->jitter;
}

static bool is_same_noise(const us_noise *a, const us_noise *b) {
    bool same = true;
    for (int i = 0; i < US_NOISE_COUNT; i++)
        same =
            same && a[i].deviation == b[i].deviation && a[i].memory == b[i].memory && a[i].step == b[i].step;
    return same;
}

// A drive of the spec in the robot's own count: edits elsewhere move the spec's.
static int32_t own_drive(const usi_robot *r, int32_t drive) {
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        if (r->model->drive[k].index == drive) return k;
    }
    return -1;
}

static bool has_same_wheels(const usi_robot *a, const usi_robot *b) {
    const us_network_def *x = a->model->network, *y = b->model->network;
    if (x->locomotion != y->locomotion || x->n_wheel != y->n_wheel || x->track_scale != y->track_scale)
        return false;
    for (int32_t i = 0; i < x->n_wheel; i++) {
        const us_wheel_def *v = &x->wheels[i], *w = &y->wheels[i];
        if (v->radius != w->radius || own_drive(a, v->drive) != own_drive(b, w->drive) ||
            own_drive(a, v->steer) != own_drive(b, w->steer))
            return false;
    }
    return true;
}

static bool has_same_legs(const usi_robot *a, const usi_robot *b) {
    const us_network_def *x = a->model->network, *y = b->model->network;
    if (x->n_leg != y->n_leg || x->body_height != y->body_height || x->stance != y->stance ||
        x->step_height != y->step_height || x->step_time != y->step_time || x->duty != y->duty)
        return false;
    for (int32_t i = 0; i < x->n_leg; i++) {
        const us_leg_def *v = &x->legs[i], *w = &y->legs[i];
        if (own_drive(a, v->coxa) != own_drive(b, w->coxa) ||
            own_drive(a, v->femur) != own_drive(b, w->femur) ||
            own_drive(a, v->tibia) != own_drive(b, w->tibia))
            return false;
    }
    return true;
}

static bool has_same_motors(const usi_robot *a, const usi_robot *b) {
    const us_network_def *x = a->model->network, *y = b->model->network;
    if (x->motor_port != y->motor_port || x->motor_rate != y->motor_rate || x->n_motor != y->n_motor ||
        x->motor_counts != y->motor_counts || x->n_line != y->n_line)
        return false;
    for (int32_t i = 0; i < x->n_line; i++) {
        const us_line_def *v = &x->lines[i], *w = &y->lines[i];
        if (strcmp(v->name, w->name) != 0 || v->kind != w->kind || v->value != w->value ||
            v->scale != w->scale || v->offset != w->offset || v->threshold != w->threshold ||
            (v->drive >= 0 && own_drive(a, v->drive) != own_drive(b, w->drive)))
            return false;
    }
    for (int32_t i = 0; i < x->n_motor; i++) {
        const us_motor_def *v = &x->motors[i], *w = &y->motors[i];
        if (strcmp(v->name, w->name) != 0 || own_drive(a, v->drive) != own_drive(b, w->drive)) return false;
    }
    return true;
}

static bool has_same_topics(const usi_robot_model *a, const usi_robot_model *b) {
    bool same = a->n_topic == b->n_topic && a->n_sensor == b->n_sensor &&
                a->interface_.hash == b->interface_.hash && a->network->interface_ == b->network->interface_;
    for (int32_t i = 0; i < a->n_topic && same; i++) {
        const usi_topic *t = &a->topic[i], *u = &b->topic[i];
        same = t->source == u->source && t->rate == u->rate && strcmp(t->name, u->name) == 0 &&
               (t->sensor < 0 || t->sensor - a->first_sensor == u->sensor - b->first_sensor);
    }
    return same;
}

static bool has_same_sources(const us_network_def *x, const us_network_def *y) {
    bool same = x->n_source == y->n_source;
    for (int32_t i = 0; i < x->n_source && same; i++) {
        const us_command_source *a = &x->sources[i], *b = &y->sources[i];
        same = is_same_text(a->name, b->name) && is_same_text(a->topic, b->topic) &&
               a->priority == b->priority && a->hold == b->hold && a->is_exclusive == b->is_exclusive;
    }
    return same;
}

static bool has_same_network(const usi_robot *a, const usi_robot *b) {
    const us_network_def *x = a->model->network, *y = b->model->network;
    bool same = is_same_text(x->namespace_, y->namespace_) &&
                is_same_text(x->frame_prefix, y->frame_prefix) && is_same_text(x->node, y->node) &&
                is_same_text(x->base_frame, y->base_frame) && x->has_services == y->has_services &&
                x->is_stamped == y->is_stamped && x->timeout == y->timeout;
    same = same && x->max_speed == y->max_speed && x->max_turn == y->max_turn &&
           x->max_acceleration == y->max_acceleration;
    same = same && x->battery_capacity == y->battery_capacity && x->battery_idle == y->battery_idle &&
           x->battery_voltage == y->battery_voltage;
    same = same && is_same_link(&x->uplink, &y->uplink) && is_same_link(&x->downlink, &y->downlink) &&
           is_same_timing(&x->timing, &y->timing) && is_same_noise(x->noise, y->noise);
    return same && has_same_topics(a->model, b->model) && has_same_wheels(a, b) && has_same_legs(a, b) &&
           has_same_motors(a, b) && has_same_sources(x, y);
}

static bool has_same_joints(const usi_robot *a, const usi_robot *b) {
    if (a->model->firmware.n_joint != b->model->firmware.n_joint ||
        a->model->firmware.n_drive != b->model->firmware.n_drive ||
        (a->model->root.i < 0) != (b->model->root.i < 0))
        return false;
    for (int32_t i = 0; i < a->model->firmware.n_joint; i++) {
        if (strcmp(a->model->firmware.joint[i].name, b->model->firmware.joint[i].name) != 0 ||
            a->model->firmware.joint[i].drive != b->model->firmware.joint[i].drive)
            return false;
    }
    for (int32_t i = 0; i < a->model->firmware.n_drive; i++) {
        if (a->model->firmware.drive[i].kind != b->model->firmware.drive[i].kind ||
            a->model->firmware.drive[i].joint != b->model->firmware.drive[i].joint)
            return false;
    }
    return true;
}

static bool has_same_frames(const usi_robot *a, const usi_robot *b) {
    if (a->model->n_frame != b->model->n_frame || !is_same_text(a->model->root_frame, b->model->root_frame))
        return false;
    for (int32_t i = 0; i < a->model->n_frame; i++) {
        const usi_robot_frame *f = &a->model->frame[i], *g = &b->model->frame[i];
        if (strcmp(f->parent, g->parent) != 0 || strcmp(f->child, g->child) != 0 ||
            f->is_fixed != g->is_fixed)
            return false;
    }
    return true;
}

// Transforms that are sent once are sent again when they are others.
static bool has_moved_frames(const usi_robot *a, const usi_robot *b) {
    for (int32_t i = 0; i < a->model->n_frame; i++) {
        if (a->model->frame[i].is_fixed &&
            memcmp(&a->model->frame[i].X_PF, &b->model->frame[i].X_PF, sizeof(us_pose)) != 0)
            return true;
    }
    return false;
}

static us_status refuse(us_error *err, us_status status, const usi_robot *r, const char *what) {
    char element[128];
    snprintf(element, sizeof element, "robot \"%.100s\"", r->name);
    us_place place = {NULL, 0, 0, element};
    return us_error_set(
        err, status, &place,
        "change what stands around the robots while they run; for other robots, end and start again",
        "its %s not the same in the new model", what);
}

static us_status check(const us_proxy *p, const us_proxy *fresh, us_error *err) {
    if (fresh->step != p->step || fresh->clock_rate != p->clock_rate)
        return us_error_set(err, US_ERR_VALUE, NULL, "keep the world's step and clock rate while robots run",
                            "the step or the clock rate of the new world is another");
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot *a = &p->robot[i], *b = i < fresh->n_robot ? &fresh->robot[i] : NULL;
        if (!b || strcmp(a->name, b->name) != 0)
            return refuse(err, US_ERR_NAME, a, "place among the robots is");
        if (!has_same_joints(a, b)) return refuse(err, US_ERR_TREE, a, "joints and drives are");
        if (!has_same_frames(a, b)) return refuse(err, US_ERR_TREE, a, "links are");
        if (!has_same_network(a, b) || a->state_size != b->state_size)
            return refuse(err, US_ERR_VALUE, a, "network interface is");
    }
    return US_OK;
}

// ---------------------------------------------------------------- going on

us_status usi_proxy_prepare(us_proxy *p, const us_model *model, int32_t first, us_proxy **out_next,
                            us_error *err) {
    us_proxy *next = usi_alloc(&p->allocator, sizeof *next, _Alignof(us_proxy));
    if (!next)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the robots' network");
    memset(next, 0, sizeof *next);
    next->allocator = p->allocator;
    next->model = model;
    next->step = us_model_get_step(model);
    next->clock_rate = p->is_part ? 0 : model->clock_rate;
    next->first_robot = first;
    next->n_robot = p->n_robot < model->n_robot - first ? p->n_robot : model->n_robot - first;
    usi_arena_init(&next->arena, &p->allocator);
    usi_arena_init(&next->bound, &p->allocator);
    us_status status = usi_robots_make(next);
    if (status) us_error_set(err, status, NULL, "free memory", "no memory left for the robots' network");
    if (!status) status = check(p, next, err);
    if (!status) status = usi_cameras_create(model, &p->allocator, &next->cameras, err);
    if (status) {
        usi_proxy_drop(next);
        return status;
    }
    *out_next = next;
    return US_OK;
}

void usi_proxy_drop(us_proxy *next) {
    if (!next) return;
    const us_allocator a = next->allocator;
    usi_cameras_destroy(next->cameras);
    usi_arena_fini(&next->bound);
    usi_arena_fini(&next->arena);
    usi_release(&a, next, sizeof *next, _Alignof(us_proxy));
}

void usi_proxy_go_on(us_proxy *p, us_proxy *next) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        if (has_moved_frames(&p->robot[i], &next->robot[i])) p->owes_all = true;
        memcpy(&p->robot[i], &next->robot[i], offsetof(usi_robot, proxy));
    }
    const usi_arena old = p->bound;
    p->bound = next->bound;
    next->bound = old;
    usi_cameras *cameras = p->cameras;
    p->cameras = next->cameras;
    next->cameras = cameras;
    p->model = next->model;
    p->seed = next->model->seed;
    p->first_robot = next->first_robot;
    usi_proxy_drop(next);
}

us_status us_proxy_replace(us_proxy *p, us_sim *sim, const us_model *model, us_error *err) {
    if (!p || !sim || !model || us_sim_view_model(sim) != p->model)
        return us_error_set(
            err, US_ERR_ARG, NULL, "pass the proxy, its own sim and the model to go on with",
            "us_proxy_replace: an argument is NULL, or the sim has another model than the proxy");
    us_proxy *next = NULL;
    us_status status = usi_proxy_prepare(p, model, 0, &next, err);
    if (!status && model->n_robot > p->n_robot)
        status =
            us_error_set(err, US_ERR_NAME, NULL,
                         "add robots to the scene and start again, or by the world command add robot",
                         "the robot \"%.100s\" is new: it has no network yet", model->robot[p->n_robot].name);
    if (!status) status = us_sim_replace(sim, model, err);
    if (status || !next) {
        usi_proxy_drop(next);
        return status;
    }
    usi_proxy_go_on(p, next);
    return US_OK;
}
