// simulation_interfaces: the standard services of ROS 2 by which a simulator is controlled, as world
// commands.
//
//     the bus's thread     on_request --> [ 64 slots ] --> usi_simulation_poll      the thread that steps
//                                                          answers at once, or posts a world command and
//                                                          answers with its reply; steps are answered when
//                                                          they are done
//
// What a service does is what the world command does: it is recorded and run again, and refused with the same
// words. Entities are the robots and objects of the scene, by their names. What the world cannot do is said
// by GetSimulatorFeatures, and by the result 0 (not supported).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"
#include "world/entity_filter.h"
#include "world/world__simulation.h"

enum { MAX_STEPS = 1000000, MAX_REQUEST = 16384, MAX_SPAWN = USI_RESOURCE_MAX + MAX_REQUEST };
enum { SCOPE_TIME = 1, SCOPE_STATE = 2, SCOPE_SPAWNED = 4 };
enum { STOPPED, PLAYING, PAUSED };
enum { OBJECT, ROBOT };
enum { BOUNDS_NONE, BOUNDS_BOX, BOUNDS_HULL, BOUNDS_SPHERE };
enum { MAX_TAGS = 64, MAX_TAG_TEXT = 4096 };

// ---------------------------------------------------------------- services

#define ROW(kind, name, snake) \
    [kind] = {"/understudy/" name, usi_type_##snake##_request, usi_type_##snake##_response}
static const struct {
    const char *name;
    const us_message_type *request, *response;
} services[USI_CONTROL_N_KIND] = {
    ROW(USI_CONTROL_FEATURES, "get_simulator_features", get_simulator_features),
    ROW(USI_CONTROL_RESET, "reset_simulation", reset_simulation),
    ROW(USI_CONTROL_STEP, "step_simulation", step_simulation),
    ROW(USI_CONTROL_GET_STATE, "get_simulation_state", get_simulation_state),
    ROW(USI_CONTROL_SET_STATE, "set_simulation_state", set_simulation_state),
    ROW(USI_CONTROL_SPAWN, "spawn_entity", spawn_entity),
    ROW(USI_CONTROL_DELETE, "delete_entity", delete_entity),
    ROW(USI_CONTROL_ENTITIES, "get_entities", get_entities),
    ROW(USI_CONTROL_STATES, "get_entities_states", get_entities_states),
    ROW(USI_CONTROL_INFO, "get_entity_info", get_entity_info),
    ROW(USI_CONTROL_ENTITY_STATE, "get_entity_state", get_entity_state),
    ROW(USI_CONTROL_SET_ENTITY, "set_entity_state", set_entity_state),
    ROW(USI_CONTROL_SPAWNABLES, "get_spawnables", get_spawnables),
};
#undef ROW

static usi_request_slot *take_slot(usi_simulation *s, usi_control_kind k, const void *bytes, size_t length) {
    for (int i = 0; i < USI_SIMULATION_SLOTS; i++) {
        usi_request_slot *x = &s->slots[i];
        if (x->stage != USI_SLOT_FREE) continue;
        // Of one that is too long nothing is kept; it is answered with an error.
        length = length > (k == USI_CONTROL_SPAWN ? MAX_SPAWN : MAX_REQUEST) ? 0 : length;
        uint8_t *copy = length ? usi_alloc(&s->w->allocator, length, 16) : NULL;
        if (length && !copy) return NULL;
        if (copy) memcpy(copy, bytes, length);
        *x = (usi_request_slot){
            .stage = USI_SLOT_QUEUED, .kind = k, .bytes = copy, .length = length, .order = ++s->n_order};
        atomic_fetch_add(&s->n_used, 1);
        return x;
    }
    return NULL;  // as if it had been lost: who asks waits with a timeout
}

static void free_slot(usi_simulation *s, usi_request_slot *x) {
    pthread_mutex_lock(&s->lock);
    usi_release(&s->w->allocator, x->bytes, x->length, 16);
    *x = (usi_request_slot){.stage = USI_SLOT_FREE};
    atomic_fetch_sub(&s->n_used, 1);
    pthread_mutex_unlock(&s->lock);
}

static void on_request(void *context, us_service *service, us_request_id id, const void *bytes,
                       size_t length) {
    (void)service;
    const usi_control_desk *d = context;
    pthread_mutex_lock(&d->s->lock);
    usi_request_slot *x = take_slot(d->s, d->kind, bytes, length);
    if (x) x->id = id;
    pthread_mutex_unlock(&d->s->lock);
}

static bool on_goal(void *context, us_goal_id id, const void *bytes, size_t length) {
    usi_simulation *s = context;
    pthread_mutex_lock(&s->lock);
    usi_request_slot *x = length > MAX_REQUEST ? NULL : take_slot(s, USI_CONTROL_GOAL, bytes, length);
    if (x) x->goal = id;
    pthread_mutex_unlock(&s->lock);
    return x != NULL;
}

// ---------------------------------------------------------------- answers

void usi_simulation_send(usi_simulation *s, usi_request_slot *x, const void *message) {
    const us_message_type *type = services[x->kind].response;
    size_t length = 0;
    us_message_encode(type, message, NULL, 0, &length);
    void *bytes = usi_alloc(&s->w->allocator, length, 8);
    if (bytes && !us_message_encode(type, message, bytes, length, &length))
        us_service_reply(s->desks[x->kind].service, x->id, bytes, length);
    usi_release(&s->w->allocator, bytes, length, 8);
    free_slot(s, x);
}

us_msg_result usi_result_of(int code, const char *why) {
    return (us_msg_result){.result = (uint8_t)code, .error_message = usi_message_text(why)};
}

static void end_goal(usi_simulation *s, usi_request_slot *x, us_goal_status end, int code, const char *why) {
    const us_msg_simulate_steps_get_result_response m = {.result = {.result = usi_result_of(code, why)}};
    uint8_t bytes[USI_WORLD_REPLY + 64];
    size_t length = 0;
    if (!us_message_encode(s->types.get_result_response, &m, bytes, sizeof bytes, &length))
        us_action_server_finish(s->steps, x->goal, end, bytes, length);
    free_slot(s, x);
}

// An answer with a result, and all else empty. All responses but one begin with the result.
void usi_simulation_result(usi_simulation *s, usi_request_slot *x, int code, const char *why) {
    if (x->kind == USI_CONTROL_GOAL) {
        end_goal(s, x, code == USI_RESULT_DONE ? US_GOAL_SUCCEEDED : US_GOAL_ABORTED, code, why);
        return;
    }
    union {
        us_msg_result result;
        us_msg_get_simulation_state_response state;
        us_msg_spawn_entity_response spawn;
        us_msg_get_entities_response entities;
        us_msg_get_entities_states_response states;
        us_msg_get_entity_info_response info;
        us_msg_get_entity_state_response entity_state;
    } m;
    memset(&m, 0, sizeof m);
    if (x->kind == USI_CONTROL_GET_STATE) {
        m.state.result = usi_result_of(code, why);
    } else {
        m.result = usi_result_of(code, why);
    }
    if (x->kind == USI_CONTROL_SPAWN && code == USI_RESULT_DONE) m.spawn.entity_name = x->name;
    usi_simulation_send(s, x, &m);
}

// ---------------------------------------------------------------- world commands

static void on_reply(void *context, int64_t id, us_status status, const char *text) {
    usi_simulation *s = context;
    usi_request_slot *x = &s->slots[id];
    if (x->stage != USI_SLOT_POSTED) return;
    if (!status && (x->kind == USI_CONTROL_STEP || x->kind == USI_CONTROL_GOAL)) {
        // Steps that were asked for before are done first.
        x->stage = USI_SLOT_STEPPING;
        x->first = us_sim_get_tick(s->w->live.sim) + s->w->request.n_step - (x->target - x->first);
        x->target = us_sim_get_tick(s->w->live.sim) + s->w->request.n_step;
        return;
    }
    const int code = x->is_robot             ? usi_spawn_result(status)
                     : status == US_ERR_NAME ? USI_RESULT_NOT_FOUND
                                             : USI_RESULT_FAILED;
    usi_simulation_result(s, x, !status ? USI_RESULT_DONE : code, status ? text : "");
}

void usi_simulation_post(usi_simulation *s, usi_request_slot *x, const char *text) {
    x->stage = USI_SLOT_POSTED;
    if (us_world_post(s->w, "simulation_interfaces", text, on_reply, s, x - s->slots))
        usi_simulation_result(s, x, USI_RESULT_FAILED, "too many world commands wait, or it is too long");
}

static void step(usi_simulation *s, usi_request_slot *x, uint64_t n) {
    char text[64];
    if (!s->w->request.is_paused) {
        usi_simulation_result(s, x, USI_RESULT_WRONG_STATE, "the simulation is not paused");
    } else if (n == 0 || n > MAX_STEPS) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "steps are from 1 to 1000000");
    } else {
        x->first = 0;
        x->target = (int64_t)n;
        snprintf(text, sizeof text, "step %d", (int)n);
        usi_simulation_post(s, x, text);
    }
}

// At the start a world that is paused is stopped, unless it was told to be paused.
static int state_now(usi_simulation *s) {
    const bool is_start = us_sim_get_tick(s->w->live.sim) == 0;
    if (!is_start) s->is_begun = false;
    if (!s->w->request.is_paused) return PLAYING;
    return is_start && !s->is_begun ? STOPPED : PAUSED;
}

static void set_state(usi_simulation *s, usi_request_slot *x, int wanted) {
    const int now = state_now(s);
    if (wanted <= PAUSED) s->is_begun = wanted == PAUSED;
    if (wanted > PAUSED) {
        usi_simulation_result(s, x, USI_RESULT_NOT_SUPPORTED, "states are 0 stopped, 1 playing and 2 paused");
    } else if (wanted == now) {
        usi_simulation_result(s, x, USI_RESULT_ALREADY_SO, "it is in this state already");
    } else if (wanted == STOPPED) {
        if (us_world_post(s->w, "simulation_interfaces", "pause", NULL, NULL, 0)) {
            usi_simulation_result(s, x, USI_RESULT_FAILED, "too many world commands wait");
            return;
        }
        usi_simulation_post(s, x, "reset");
    } else {
        usi_simulation_post(s, x, wanted == PLAYING ? "resume" : "pause");
    }
}

// ---------------------------------------------------------------- entities

// The groups of the scene that have a name: robots, and objects.
static int category_of(const us_spec *spec, int32_t group) {
    for (int32_t i = 0; i < spec->n_network; i++) {
        if (spec->network[i].group == group) return ROBOT;
    }
    return OBJECT;
}

int32_t usi_simulation_find(const us_spec *spec, const char *name) {
    for (int32_t i = 0; i < spec->n_group; i++) {
        if (spec->group[i].name && name[0] && strcmp(spec->group[i].name, name) == 0) return i;
    }
    return -1;
}

static us_msg_entity_state state_of(const usi_simulation *s, int32_t group) {
    const us_sim *sim = s->w->live.sim;
    const us_body body = {usi_group_root(s->w->live.revision->spec, group)};
    const us_pose X = us_sim_get_pose(sim, body);
    const us_twist V = us_sim_get_twist(sim, body);
    const double time = us_sim_get_time(sim);
    us_msg_entity_state m = {
        .pose = {{X.p.x, X.p.y, X.p.z}, {X.q.x, X.q.y, X.q.z, X.q.w}},
        .twist = {{V.v.x, V.v.y, V.v.z}, {V.w.x, V.w.y, V.w.z}},
    };
    m.header.frame_id = usi_message_text("world");
    m.header.stamp.sec = (int32_t)floor(time);
    m.header.stamp.nanosec = (uint32_t)(1e9 * (time - floor(time)));
    return m;
}

static bool has_tag(const char *tags, const char *tag) {
    const size_t n = strlen(tag);
    for (const char *at = tags; n > 0 && (at = strstr(at, tag)) != NULL; at += n) {
        if ((at == tags || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return true;
    }
    return false;
}

// Any of them, or all (filter_mode 1).
static bool has_tags(const us_group_def *group, const us_msg_tags_filter *f) {
    const bool needs_all = f->filter_mode == 1;
    bool has_any = false, has_all = true;
    for (uint32_t i = 0; i < f->tags._length; i++) {
        const bool has = has_tag(group->tags ? group->tags : "", f->tags._buffer[i]);
        has_any = has_any || has;
        has_all = has_all && has;
    }
    return f->tags._length == 0 || (needs_all ? has_all : has_any);
}

// Why bounds are none: a box has two opposite corners, a sphere its centre and a point whose x is the radius.
static const char *check_bounds(const us_msg_bounds *b) {
    if (b->type == BOUNDS_NONE) return NULL;
    if (b->type == BOUNDS_HULL) return "entities are not filtered by convex hulls";
    if (b->type > BOUNDS_SPHERE) return "bounds are 0 none, 1 a box and 3 a sphere";
    if (b->points._length != 2)
        return "a box has two points, two opposite corners; a sphere its centre and (radius, 0, 0)";
    for (uint32_t i = 0; i < 2; i++) {
        const us_msg_vector3 *p = &b->points._buffer[i];
        if (!isfinite(p->x) || !isfinite(p->y) || !isfinite(p->z))
            return "a number of the bounds is not finite";
    }
    return NULL;
}

static bool is_between(double x, double a, double b) { return x >= fmin(a, b) && x <= fmax(a, b); }

// Whether the root of an entity lies within bounds, in the world's frame.
static bool is_inside(const usi_simulation *s, int32_t group, const us_msg_bounds *b) {
    if (b->type == BOUNDS_NONE) return true;
    const us_body body = {usi_group_root(s->w->live.revision->spec, group)};
    const us_vec3 p = us_sim_get_pose(s->w->live.sim, body).p;
    const us_msg_vector3 *u = &b->points._buffer[0], *v = &b->points._buffer[1];
    if (b->type == BOUNDS_SPHERE) return us_vec3_norm(us_vec3_sub(p, us_vec3_make(u->x, u->y, u->z))) <= v->x;
    return is_between(p.x, u->x, v->x) && is_between(p.y, u->y, v->y) && is_between(p.z, u->z, v->z);
}

// The words of a text, as pointers into a copy; how many.
static uint32_t cut_tags(char *text, char **out, uint32_t max) {
    uint32_t n = 0;
    for (char *rest = text, *word; n < max && (word = strsep(&rest, " ")) != NULL;) {
        if (word[0]) out[n++] = word;
    }
    return n;
}

// The entities that pass a filter; how many, -1 with a result sent. The list is of the caller's memory.
static int32_t filter(usi_simulation *s, usi_request_slot *x, const us_msg_entity_filters *f, int32_t *list) {
    const us_spec *spec = s->w->live.revision->spec;
    regex_t regex;
    const bool has_regex = f->filter[0] != 0;
    const char *bad = check_bounds(&f->bounds);
    if (bad) {
        usi_simulation_result(
            s, x, f->bounds.type == BOUNDS_HULL ? USI_RESULT_NOT_SUPPORTED : USI_RESULT_FAILED, bad);
        return -1;
    }
    const char *why = has_regex ? usi_entity_filter_compile(f->filter, &regex) : NULL;
    if (why) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, why);
        return -1;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < spec->n_group; i++) {
        const char *name = spec->group[i].name;
        if (!name || !name[0] || usi_group_root(spec, i) < 0) continue;
        bool passes = !has_regex || regexec(&regex, name, 0, NULL, 0) == 0;
        bool is_kind = f->categories._length == 0;
        for (uint32_t k = 0; k < f->categories._length; k++)
            is_kind = is_kind || f->categories._buffer[k].category == category_of(spec, i);
        passes = passes && has_tags(&spec->group[i], &f->tags) && is_inside(s, i, &f->bounds);
        if (passes && is_kind) list[n++] = i;
    }
    if (has_regex) regfree(&regex);
    return n;
}

static void list_entities(usi_simulation *s, usi_request_slot *x, const us_msg_entity_filters *f,
                          bool has_states) {
    const us_spec *spec = s->w->live.revision->spec;
    const size_t n_max = (size_t)spec->n_group + 1;
    const us_allocator *a = &s->w->allocator;
    int32_t *list = usi_alloc(a, n_max * sizeof *list, 16);
    char **names = usi_alloc(a, n_max * sizeof *names, 16);
    us_msg_entity_state *states =
        has_states ? usi_alloc(a, n_max * sizeof *states, _Alignof(us_msg_entity_state)) : NULL;
    if (!list || !names || (has_states && !states)) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "no memory left");
    } else {
        const int32_t n = filter(s, x, f, list);
        for (int32_t i = 0; i < n; i++) {
            names[i] = usi_message_text(spec->group[list[i]].name);
            if (has_states) states[i] = state_of(s, list[i]);
        }
        const us_msg_sequence_string all = {._length = (uint32_t)(n > 0 ? n : 0), ._buffer = names};
        if (n >= 0 && has_states)
            usi_simulation_send(s, x,
                                &(us_msg_get_entities_states_response){
                                    .result = usi_result_of(USI_RESULT_DONE, ""),
                                    .entities = all,
                                    .states = {._length = all._length, ._buffer = states}});
        if (n >= 0 && !has_states)
            usi_simulation_send(s, x,
                                &(us_msg_get_entities_response){.result = usi_result_of(USI_RESULT_DONE, ""),
                                                                .entities = all});
    }
    usi_release(a, list, n_max * sizeof *list, 16);
    usi_release(a, names, n_max * sizeof *names, 16);
    usi_release(a, states, n_max * sizeof *states, _Alignof(us_msg_entity_state));
}

// Roll, pitch and yaw of a message's quaternion; false when it is none.
bool usi_read_pose(const us_msg_pose *m, double out_p[3], double out_rpy[3]) {
    double x = m->orientation.x, y = m->orientation.y, z = m->orientation.z, w = m->orientation.w;
    const double p[3] = {m->position.x, m->position.y, m->position.z}, n2 = x * x + y * y + z * z + w * w;
    for (int i = 0; i < 3; i++) {
        if (!isfinite(p[i])) return false;
        out_p[i] = p[i];
    }
    // All 0, as a message has it that says nothing, is no rotation.
    if (n2 == 0) w = 1;
    if (!isfinite(n2) || (n2 != 0 && fabs(n2 - 1) > 1e-3)) return false;
    out_rpy[0] = atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y));
    out_rpy[1] = asin(fmax(-1, fmin(1, 2 * (w * y - z * x))));
    out_rpy[2] = atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
    return true;
}

bool usi_is_world_frame(const char *frame) {
    return frame[0] == 0 || strcmp(frame, "world") == 0 || strcmp(frame, "map") == 0;
}

static bool is_within(const us_msg_vector3 *a, double limit) {
    return fabs(a->x) <= limit && fabs(a->y) <= limit && fabs(a->z) <= limit;
}

// What of a wanted state cannot be, as the code of a result and why; USI_RESULT_DONE: all of it can. The
// limits are those of the world commands.
static int check_state(const usi_simulation *s, const us_msg_set_entity_state_request *m,
                       const usi_target *target, const char **out_why) {
    const us_msg_twist *V = &m->state.twist;
    const us_msg_point *p = &m->state.pose.position;
    const us_msg_vector3 at = {p->x, p->y, p->z};
    double unused[3];
    *out_why = "there is no such entity";
    if (usi_simulation_find(s->w->live.revision->spec, m->entity) < 0) return USI_RESULT_NOT_FOUND;
    *out_why = "accelerations cannot be set";
    if (m->set_acceleration) return USI_RESULT_NOT_SUPPORTED;
    *out_why = "none of set_pose and set_twist is true";
    if (!m->set_pose && !m->set_twist) return USI_RESULT_FAILED;
    *out_why = "its frame is not world";
    if (!usi_is_world_frame(m->state.header.frame_id)) return USI_RESULT_FAILED;
    *out_why = "the pose is beyond 1000 km or no number, or its quaternion has not length 1";
    if (m->set_pose && (!usi_read_pose(&m->state.pose, unused, unused) || !is_within(&at, 1e6)))
        return USI_RESULT_POSE_INVALID;
    *out_why = "the twist is beyond 10000 m/s or rad/s, or no number";
    if (m->set_twist && (!is_within(&V->linear, 1e4) || !is_within(&V->angular, 1e4)))
        return USI_RESULT_FAILED;
    *out_why = "it stands on the world, and has no velocity";
    const bool is_still = is_within(&V->linear, 0) && is_within(&V->angular, 0);
    if (m->set_twist && !target->is_floating && !is_still) return USI_RESULT_FAILED;
    return USI_RESULT_DONE;
}

// A pose and a twist are two world commands, carried out at the same tick.
static void set_entity(usi_simulation *s, usi_request_slot *x, const us_msg_set_entity_state_request *m) {
    const us_msg_twist *V = &m->state.twist;
    char pose[USI_COMMAND_MAX + 1] = "", twist[USI_COMMAND_MAX + 1] = "";
    const char *why = NULL;
    us_error err = {0};
    usi_target target = {-1, -1, -1, false};
    (void)usi_target_find(s->w->live.revision->spec, m->entity, &target, &err);
    const int code = check_state(s, m, &target, &why);
    if (m->set_pose && code == USI_RESULT_DONE) {
        double p[3], rpy[3];
        (void)usi_read_pose(&m->state.pose, p, rpy);
        snprintf(pose, sizeof pose, "move \"%.3000s\" %.17g %.17g %.17g %.17g %.17g %.17g", m->entity, p[0],
                 p[1], p[2], rpy[0], rpy[1], rpy[2]);
    }
    if (m->set_twist && target.is_floating)
        snprintf(twist, sizeof twist, "velocity \"%.3000s\" %.17g %.17g %.17g %.17g %.17g %.17g", m->entity,
                 V->linear.x, V->linear.y, V->linear.z, V->angular.x, V->angular.y, V->angular.z);
    if (code != USI_RESULT_DONE || (!pose[0] && !twist[0])) {
        usi_simulation_result(s, x, code, code == USI_RESULT_DONE ? "" : why);
    } else if (!twist[0]) {
        usi_simulation_post(s, x, pose);
    } else if (pose[0] && us_world_post(s->w, "simulation_interfaces", pose, NULL, NULL, 0)) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "too many world commands wait");
    } else {
        usi_simulation_post(s, x, twist);
    }
}

// ---------------------------------------------------------------- one request

static void answer_features(usi_simulation *s, usi_request_slot *x) {
    // Spawning, deleting, tags, boxes, categories, resource strings; states and infos got, states set,
    // spawnables; reset, of states, of what was spawned; state got, set, paused; steps, one, many, and as an
    // action.
    uint16_t features[] = {0, 1, 4, 6, 8, 9, 10, 11, 12, 14, 20, 22, 23, 24, 25, 26, 31, 32, 33};
    char *formats[] = {usi_message_text("urdf"), usi_message_text("understudy")};
    usi_simulation_send(
        s, x,
        &(us_msg_get_simulator_features_response){
            .features = {.features = {._length = sizeof features / sizeof features[0], ._buffer = features},
                         .spawn_formats = {._length = 2, ._buffer = formats},
                         .custom_info = usi_message_text(
                             "Understudy; a resource_string is a URDF, a <scene> or its element "
                             "<robot>, or of an object KIND KEY=VALUE ... as in the world command "
                             "add; time is reset with states alone: scope 3, 7, 0 or 255")}});
}

static void answer_state(usi_simulation *s, usi_request_slot *x) {
    usi_simulation_send(s, x,
                        &(us_msg_get_simulation_state_response){
                            .state = {(uint8_t)state_now(s)}, .result = usi_result_of(USI_RESULT_DONE, "")});
}

static void answer_entity(usi_simulation *s, usi_request_slot *x, const char *name) {
    const us_spec *spec = s->w->live.revision->spec;
    const int32_t group = usi_simulation_find(spec, name);
    if (group < 0) {
        usi_simulation_result(s, x, USI_RESULT_NOT_FOUND, "there is no such entity");
    } else if (x->kind == USI_CONTROL_INFO) {
        us_msg_get_entity_info_response m = {.result = usi_result_of(USI_RESULT_DONE, "")};
        char text[MAX_TAG_TEXT], *words[MAX_TAGS];
        const char *tags = spec->group[group].tags;
        snprintf(text, sizeof text, "%s", tags ? tags : "");
        m.info.category.category = (uint8_t)category_of(spec, group);
        m.info.tags = (us_msg_sequence_string){._length = cut_tags(text, words, MAX_TAGS), ._buffer = words};
        usi_simulation_send(s, x, &m);
    } else {
        usi_simulation_send(s, x,
                            &(us_msg_get_entity_state_response){.result = usi_result_of(USI_RESULT_DONE, ""),
                                                                .state = state_of(s, group)});
    }
}

// Several scopes are several world commands, carried out at the same tick.
static void reset(usi_simulation *s, usi_request_slot *x, int scope) {
    const int all = SCOPE_TIME | SCOPE_STATE | SCOPE_SPAWNED;
    const char *first = NULL, *last = NULL;
    if (scope == 0 || scope == 255 || scope == all) {
        last = "reset";
    } else if (scope == (SCOPE_TIME | SCOPE_STATE)) {
        last = "reset keep";
    } else if (scope == (SCOPE_STATE | SCOPE_SPAWNED)) {
        first = "clear";
        last = "home";
    } else if (scope == SCOPE_STATE || scope == SCOPE_SPAWNED) {
        last = scope == SCOPE_STATE ? "home" : "clear";
    }
    if (!last) {
        usi_simulation_result(
            s, x, USI_RESULT_NOT_SUPPORTED,
            "time is reset with states alone, whose clocks would be wrong: scopes 2, 3, 4, 6, 7, 0 or 255");
    } else if (first && us_world_post(s->w, "simulation_interfaces", first, NULL, NULL, 0)) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "too many world commands wait");
    } else {
        if (scope != SCOPE_STATE && scope != SCOPE_SPAWNED && !first) s->is_begun = false;
        usi_simulation_post(s, x, last);
    }
}

static void answer(usi_simulation *s, usi_request_slot *x, const void *m) {
    const us_msg_delete_entity_request *named = m;
    switch (x->kind) {
    case USI_CONTROL_FEATURES:
        answer_features(s, x);
        break;
    case USI_CONTROL_RESET:
        reset(s, x, ((const us_msg_reset_simulation_request *)m)->scope);
        break;
    case USI_CONTROL_STEP:
        step(s, x, ((const us_msg_step_simulation_request *)m)->steps);
        break;
    case USI_CONTROL_GOAL:
        us_action_server_execute(s->steps, x->goal);
        step(s, x, ((const us_msg_simulate_steps_send_goal_request *)m)->goal.steps);
        break;
    case USI_CONTROL_GET_STATE:
        answer_state(s, x);
        break;
    case USI_CONTROL_SET_STATE:
        set_state(s, x, ((const us_msg_set_simulation_state_request *)m)->state.state);
        break;
    case USI_CONTROL_SPAWN:
        usi_simulation_spawn(s, x, m);
        break;
    case USI_CONTROL_DELETE: {
        char text[USI_COMMAND_MAX + 1];
        const bool has = usi_simulation_find(s->w->live.revision->spec, named->entity) >= 0;
        snprintf(text, sizeof text, "remove \"%.3000s\"", named->entity);
        if (has) {
            usi_simulation_post(s, x, text);
        } else {
            usi_simulation_result(s, x, USI_RESULT_NOT_FOUND, "there is no such entity");
        }
        break;
    }
    case USI_CONTROL_ENTITIES:
        list_entities(s, x, &((const us_msg_get_entities_request *)m)->filters, false);
        break;
    case USI_CONTROL_STATES:
        list_entities(s, x, &((const us_msg_get_entities_states_request *)m)->filters, true);
        break;
    case USI_CONTROL_INFO:
    case USI_CONTROL_ENTITY_STATE:
        answer_entity(s, x, named->entity);
        break;
    case USI_CONTROL_SET_ENTITY:
        set_entity(s, x, m);
        break;
    default:
        usi_list_spawnables(s, x);
        break;
    }
}

// ---------------------------------------------------------------- on the stepping thread

static void take(usi_simulation *s, usi_request_slot *x) {
    const us_message_type *type =
        x->kind == USI_CONTROL_GOAL ? s->types.send_goal_request : services[x->kind].request;
    // The text of a robot is as long in memory; lists of others are longer.
    const size_t cap = (x->kind == USI_CONTROL_SPAWN ? 2 : 64) * x->length + 65536;
    void *memory = usi_alloc(&s->w->allocator, cap, 16);
    const void *m = NULL;
    if (x->length == 0) {
        usi_simulation_result(s, x, USI_RESULT_FAILED,
                              x->kind == USI_CONTROL_SPAWN ? "robots have 131072 bytes at most"
                                                           : "requests have 16384 bytes at most");
    } else if (!memory || us_message_decode(type, x->bytes, x->length, memory, cap, &m, NULL)) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "no memory left for the request");
    } else {
        answer(s, x, m);
    }
    usi_release(&s->w->allocator, memory, cap, 16);
}

static void tell_steps(usi_simulation *s, usi_request_slot *x, int64_t tick) {
    if (x->kind != USI_CONTROL_GOAL || tick == x->told) return;
    x->told = tick;
    const int64_t done = tick > x->first ? tick - x->first : 0;
    const us_msg_simulate_steps_feedback_message m = {
        .feedback = {.completed_steps = (uint64_t)done, .remaining_steps = (uint64_t)(x->target - tick)}};
    uint8_t bytes[64];
    size_t length = 0;
    if (!us_message_encode(s->types.feedback, &m, bytes, sizeof bytes, &length))
        us_action_server_send_feedback(s->steps, x->goal, bytes, length);
}

static void follow_steps(usi_simulation *s, usi_request_slot *x) {
    const int64_t tick = us_sim_get_tick(s->w->live.sim);
    const bool is_cut = !s->w->request.is_paused || (s->w->request.n_step == 0 && tick < x->target);
    if (tick == x->target) {
        tell_steps(s, x, tick);
        usi_simulation_result(s, x, USI_RESULT_DONE, "");
    } else if (x->kind == USI_CONTROL_GOAL &&
               us_action_server_get_status(s->steps, x->goal) == US_GOAL_CANCELING) {
        us_world_post(s->w, "simulation_interfaces", "pause", NULL, NULL, 0);
        end_goal(s, x, US_GOAL_CANCELED, USI_RESULT_FAILED, "cancelled");
    } else if (is_cut || tick > x->target) {
        usi_simulation_result(s, x, USI_RESULT_FAILED,
                              "somebody else has paused, resumed or reset the simulation");
    } else {
        tell_steps(s, x, tick);
    }
}

void usi_simulation_poll(us_world *w) {
    usi_simulation *s = w->simulation;
    if (!s || atomic_load_explicit(&s->n_used, memory_order_relaxed) == 0) return;
    for (;;) {
        // In the order in which they came.
        usi_request_slot *next = NULL;
        pthread_mutex_lock(&s->lock);
        for (int i = 0; i < USI_SIMULATION_SLOTS; i++) {
            usi_request_slot *x = &s->slots[i];
            if (x->stage == USI_SLOT_QUEUED && (!next || x->order < next->order)) next = x;
        }
        if (next) next->stage = USI_SLOT_POSTED;
        pthread_mutex_unlock(&s->lock);
        if (!next) break;
        take(s, next);
    }
    for (int i = 0; i < USI_SIMULATION_SLOTS; i++) {
        if (s->slots[i].stage == USI_SLOT_STEPPING) follow_steps(s, &s->slots[i]);
    }
}

// ---------------------------------------------------------------- life

us_status usi_simulation_create(us_world *w, us_bus *bus, int32_t node, us_error *err) {
    usi_simulation *s = usi_alloc(&w->allocator, sizeof *s, _Alignof(usi_simulation));
    if (!s)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the services of the world");
    memset(s, 0, sizeof *s);
    s->w = w;
    w->simulation = s;
    pthread_mutex_init(&s->lock, NULL);
    us_status status = us_action_types_find("simulation_interfaces/action/SimulateSteps", &s->types, err);
    us_action_server_def steps = us_action_server_def_default();
    steps.name = "/understudy/simulate_steps";
    steps.types = s->types;
    steps.node = node;
    steps.on_goal = on_goal;
    steps.context = s;
    if (!status) status = us_bus_add_action_server(bus, &steps, &s->steps, err);
    for (int i = 0; i < USI_CONTROL_N_KIND && !status; i++) {
        const us_service_def def = {services[i].name, services[i].request, services[i].response, node};
        s->desks[i] = (usi_control_desk){s, (usi_control_kind)i, NULL};
        status = us_bus_add_service(bus, &def, &s->desks[i].service, err);
        if (!status) us_service_serve(s->desks[i].service, on_request, &s->desks[i]);
    }
    return status;
}

void usi_simulation_destroy(us_world *w) {
    usi_simulation *s = w->simulation;
    if (!s) return;
    us_world_forget(w, s);
    us_action_server_remove(s->steps);
    for (int i = 0; i < USI_CONTROL_N_KIND; i++)
        us_service_remove(s->desks[i].service);
    for (int i = 0; i < USI_SIMULATION_SLOTS; i++)
        usi_release(&w->allocator, s->slots[i].bytes, s->slots[i].length, 16);
    pthread_mutex_destroy(&s->lock);
    w->simulation = NULL;
    usi_release(&w->allocator, s, sizeof *s, _Alignof(usi_simulation));
}
