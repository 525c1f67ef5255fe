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
#include "understudy/action.h"
#include "wire/messages.h"
#include "world/entity_filter.h"
#include "world/world__inner.h"

enum { N_SLOT = 64, MAX_STEPS = 1000000, NAME = 64, MAX_REQUEST = 16384 };

// Results, and those of single services.
enum { NOT_SUPPORTED, DONE, NOT_FOUND, WRONG_STATE, FAILED };
enum { ALREADY_SO = 101, NAME_TAKEN = 101, NAME_INVALID, FORMAT_UNKNOWN, NO_RESOURCE, NAMESPACE_INVALID };
enum { SPAWN_POSE_INVALID = 109, POSE_INVALID = 101 };
enum { STOPPED, PLAYING, PAUSED };
enum { OBJECT, ROBOT };

typedef enum control_kind {
    FEATURES,
    RESET,
    STEP,
    GET_STATE,
    SET_STATE,
    SPAWN,
    DELETE,
    ENTITIES,
    STATES,
    INFO,
    ENTITY_STATE,
    SET_ENTITY,
    SPAWNABLES,
    N_KIND,
    GOAL = N_KIND,
} control_kind;

typedef enum stage { FREE, QUEUED, POSTED, STEPPING } stage;

typedef struct slot {
    _Atomic stage stage;
    control_kind kind;
    us_request_id id;
    us_goal_id goal;
    uint8_t *bytes;
    size_t length;
    uint64_t order;
    char name[NAME];              // of what is spawned
    int64_t first, target, told;  // ticks: of a step
} slot;

typedef struct control_desk {
    usi_simulation *s;
    control_kind kind;
    us_service *service;
} control_desk;

struct usi_simulation {
    us_world *w;
    control_desk desks[N_KIND];
    us_action_server *steps;
    us_action_types types;
    bool is_begun;  // somebody has paused it at the start, where it would be stopped
    _Atomic int32_t n_used;
    pthread_mutex_t lock;  // of the slots, until they are POSTED
    uint64_t n_order;
    slot slots[N_SLOT];
};

static char *text_of(const char *in) {
    union {
        const char *in;
        char *out;
    } u = {.in = in};
    return u.out;
}

// ---------------------------------------------------------------- services

#define ROW(kind, name, snake) \
    [kind] = {"/understudy/" name, usi_type_##snake##_request, usi_type_##snake##_response}
static const struct {
    const char *name;
    const us_message_type *request, *response;
} services[N_KIND] = {
    ROW(FEATURES, "get_simulator_features", get_simulator_features),
    ROW(RESET, "reset_simulation", reset_simulation),
    ROW(STEP, "step_simulation", step_simulation),
    ROW(GET_STATE, "get_simulation_state", get_simulation_state),
    ROW(SET_STATE, "set_simulation_state", set_simulation_state),
    ROW(SPAWN, "spawn_entity", spawn_entity),
    ROW(DELETE, "delete_entity", delete_entity),
    ROW(ENTITIES, "get_entities", get_entities),
    ROW(STATES, "get_entities_states", get_entities_states),
    ROW(INFO, "get_entity_info", get_entity_info),
    ROW(ENTITY_STATE, "get_entity_state", get_entity_state),
    ROW(SET_ENTITY, "set_entity_state", set_entity_state),
    ROW(SPAWNABLES, "get_spawnables", get_spawnables),
};
#undef ROW

static slot *take_slot(usi_simulation *s, control_kind k, const void *bytes, size_t length) {
    for (int i = 0; i < N_SLOT; i++) {
        slot *x = &s->slots[i];
        if (x->stage != FREE) continue;
        // Of one that is too long nothing is kept; it is answered with an error.
        length = length > MAX_REQUEST ? 0 : length;
        uint8_t *copy = length ? usi_alloc(&s->w->allocator, length, 16) : NULL;
        if (length && !copy) return NULL;
        if (copy) memcpy(copy, bytes, length);
        *x = (slot){.stage = QUEUED, .kind = k, .bytes = copy, .length = length, .order = ++s->n_order};
        atomic_fetch_add(&s->n_used, 1);
        return x;
    }
    return NULL;  // as if it had been lost: who asks waits with a timeout
}

static void free_slot(usi_simulation *s, slot *x) {
    pthread_mutex_lock(&s->lock);
    usi_release(&s->w->allocator, x->bytes, x->length, 16);
    *x = (slot){.stage = FREE};
    atomic_fetch_sub(&s->n_used, 1);
    pthread_mutex_unlock(&s->lock);
}

static void on_request(void *context, us_service *service, us_request_id id, const void *bytes,
                       size_t length) {
    (void)service;
    const control_desk *d = context;
    pthread_mutex_lock(&d->s->lock);
    slot *x = take_slot(d->s, d->kind, bytes, length);
    if (x) x->id = id;
    pthread_mutex_unlock(&d->s->lock);
}

static bool on_goal(void *context, us_goal_id id, const void *bytes, size_t length) {
    usi_simulation *s = context;
    pthread_mutex_lock(&s->lock);
    slot *x = length > MAX_REQUEST ? NULL : take_slot(s, GOAL, bytes, length);
    if (x) x->goal = id;
    pthread_mutex_unlock(&s->lock);
    return x != NULL;
}

// ---------------------------------------------------------------- answers

static void send(usi_simulation *s, slot *x, const void *message) {
    const us_message_type *type = services[x->kind].response;
    size_t length = 0;
    us_message_encode(type, message, NULL, 0, &length);
    void *bytes = usi_alloc(&s->w->allocator, length, 8);
    if (bytes && !us_message_encode(type, message, bytes, length, &length))
        us_service_reply(s->desks[x->kind].service, x->id, bytes, length);
    usi_release(&s->w->allocator, bytes, length, 8);
    free_slot(s, x);
}

static us_msg_result result_of(int code, const char *why) {
    return (us_msg_result){.result = (uint8_t)code, .error_message = text_of(why)};
}

static void end_goal(usi_simulation *s, slot *x, us_goal_status end, int code, const char *why) {
    const us_msg_simulate_steps_get_result_response m = {.result = {.result = result_of(code, why)}};
    uint8_t bytes[USI_WORLD_REPLY + 64];
    size_t length = 0;
    if (!us_message_encode(s->types.get_result_response, &m, bytes, sizeof bytes, &length))
        us_action_server_finish(s->steps, x->goal, end, bytes, length);
    free_slot(s, x);
}

// An answer with a result, and all else empty. All responses but one begin with the result.
static void send_result(usi_simulation *s, slot *x, int code, const char *why) {
    if (x->kind == GOAL) {
        end_goal(s, x, code == DONE ? US_GOAL_SUCCEEDED : US_GOAL_ABORTED, code, why);
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
    if (x->kind == GET_STATE) {
        m.state.result = result_of(code, why);
    } else {
        m.result = result_of(code, why);
    }
    if (x->kind == SPAWN && code == DONE) m.spawn.entity_name = x->name;
    send(s, x, &m);
}

// ---------------------------------------------------------------- world commands

static void on_reply(void *context, int64_t id, us_status status, const char *text) {
    usi_simulation *s = context;
    slot *x = &s->slots[id];
    if (x->stage != POSTED) return;
    if (!status && (x->kind == STEP || x->kind == GOAL)) {
        // Steps that were asked for before are done first.
        x->stage = STEPPING;
        x->first = us_sim_get_tick(s->w->live.sim) + s->w->request.n_step - (x->target - x->first);
        x->target = us_sim_get_tick(s->w->live.sim) + s->w->request.n_step;
        return;
    }
    send_result(s, x, !status ? DONE : status == US_ERR_NAME ? NOT_FOUND : FAILED, status ? text : "");
}

static void post(usi_simulation *s, slot *x, const char *text) {
    x->stage = POSTED;
    if (us_world_post(s->w, "simulation_interfaces", text, on_reply, s, x - s->slots))
        send_result(s, x, FAILED, "too many world commands wait, or it is too long");
}

static void step(usi_simulation *s, slot *x, uint64_t n) {
    char text[64];
    if (!s->w->request.is_paused) {
        send_result(s, x, WRONG_STATE, "the simulation is not paused");
    } else if (n == 0 || n > MAX_STEPS) {
        send_result(s, x, FAILED, "steps are from 1 to 1000000");
    } else {
        x->first = 0;
        x->target = (int64_t)n;
        snprintf(text, sizeof text, "step %d", (int)n);
        post(s, x, text);
    }
}

// At the start a world that is paused is stopped, unless it was told to be paused.
static int state_now(usi_simulation *s) {
    const bool is_start = us_sim_get_tick(s->w->live.sim) == 0;
    if (!is_start) s->is_begun = false;
    if (!s->w->request.is_paused) return PLAYING;
    return is_start && !s->is_begun ? STOPPED : PAUSED;
}

static void set_state(usi_simulation *s, slot *x, int wanted) {
    const int now = state_now(s);
    if (wanted <= PAUSED) s->is_begun = wanted == PAUSED;
    if (wanted > PAUSED) {
        send_result(s, x, NOT_SUPPORTED, "states are 0 stopped, 1 playing and 2 paused");
    } else if (wanted == now) {
        send_result(s, x, ALREADY_SO, "it is in this state already");
    } else if (wanted == STOPPED) {
        if (us_world_post(s->w, "simulation_interfaces", "pause", NULL, NULL, 0)) {
            send_result(s, x, FAILED, "too many world commands wait");
            return;
        }
        post(s, x, "reset");
    } else {
        post(s, x, wanted == PLAYING ? "resume" : "pause");
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

static int32_t find_entity(const us_spec *spec, const char *name) {
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
    m.header.frame_id = text_of("world");
    m.header.stamp.sec = (int32_t)floor(time);
    m.header.stamp.nanosec = (uint32_t)(1e9 * (time - floor(time)));
    return m;
}

// The entities that pass a filter; how many, -1 with a result sent. The list is of the caller's memory.
static int32_t filter(usi_simulation *s, slot *x, const us_msg_entity_filters *f, int32_t *list) {
    const us_spec *spec = s->w->live.revision->spec;
    regex_t regex;
    const bool has_regex = f->filter[0] != 0;
    if (f->tags.tags._length > 0 || f->bounds.type != 0) {
        send_result(s, x, NOT_SUPPORTED, "entities have no tags, and are not filtered by bounds");
        return -1;
    }
    const char *why = has_regex ? usi_entity_filter_compile(f->filter, &regex) : NULL;
    if (why) {
        send_result(s, x, FAILED, why);
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
        if (passes && is_kind) list[n++] = i;
    }
    if (has_regex) regfree(&regex);
    return n;
}

static void list_entities(usi_simulation *s, slot *x, const us_msg_entity_filters *f, bool has_states) {
    const us_spec *spec = s->w->live.revision->spec;
    const size_t n_max = (size_t)spec->n_group + 1;
    const us_allocator *a = &s->w->allocator;
    int32_t *list = usi_alloc(a, n_max * sizeof *list, 16);
    char **names = usi_alloc(a, n_max * sizeof *names, 16);
    us_msg_entity_state *states =
        has_states ? usi_alloc(a, n_max * sizeof *states, _Alignof(us_msg_entity_state)) : NULL;
    if (!list || !names || (has_states && !states)) {
        send_result(s, x, FAILED, "no memory left");
    } else {
        const int32_t n = filter(s, x, f, list);
        for (int32_t i = 0; i < n; i++) {
            names[i] = text_of(spec->group[list[i]].name);
            if (has_states) states[i] = state_of(s, list[i]);
        }
        const us_msg_sequence_string all = {._length = (uint32_t)(n > 0 ? n : 0), ._buffer = names};
        if (n >= 0 && has_states)
            send(s, x,
                 &(us_msg_get_entities_states_response){
                     .result = result_of(DONE, ""),
                     .entities = all,
                     .states = {._length = all._length, ._buffer = states}});
        if (n >= 0 && !has_states)
            send(s, x, &(us_msg_get_entities_response){.result = result_of(DONE, ""), .entities = all});
    }
    usi_release(a, list, n_max * sizeof *list, 16);
    usi_release(a, names, n_max * sizeof *names, 16);
    usi_release(a, states, n_max * sizeof *states, _Alignof(us_msg_entity_state));
}

// Roll, pitch and yaw of a message's quaternion; false when it is none.
static bool read_pose(const us_msg_pose *m, double out_p[3], double out_rpy[3]) {
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

static bool is_world_frame(const char *frame) {
    return frame[0] == 0 || strcmp(frame, "world") == 0 || strcmp(frame, "map") == 0;
}

static bool is_within(const us_msg_vector3 *a, double limit) {
    return fabs(a->x) <= limit && fabs(a->y) <= limit && fabs(a->z) <= limit;
}

// What of a wanted state cannot be, as the code of a result and why; DONE: all of it can. The limits are
// those of the world commands.
static int check_state(const usi_simulation *s, const us_msg_set_entity_state_request *m,
                       const usi_target *target, const char **out_why) {
    const us_msg_twist *V = &m->state.twist;
    const us_msg_point *p = &m->state.pose.position;
    const us_msg_vector3 at = {p->x, p->y, p->z};
    double unused[3];
    *out_why = "there is no such entity";
    if (find_entity(s->w->live.revision->spec, m->entity) < 0) return NOT_FOUND;
    *out_why = "accelerations cannot be set";
    if (m->set_acceleration) return NOT_SUPPORTED;
    *out_why = "none of set_pose and set_twist is true";
    if (!m->set_pose && !m->set_twist) return FAILED;
    *out_why = "its frame is not world";
    if (!is_world_frame(m->state.header.frame_id)) return FAILED;
    *out_why = "the pose is beyond 1000 km or no number, or its quaternion has not length 1";
    if (m->set_pose && (!read_pose(&m->state.pose, unused, unused) || !is_within(&at, 1e6)))
        return POSE_INVALID;
    *out_why = "the twist is beyond 10000 m/s or rad/s, or no number";
    if (m->set_twist && (!is_within(&V->linear, 1e4) || !is_within(&V->angular, 1e4))) return FAILED;
    *out_why = "it stands on the world, and has no velocity";
    const bool is_still = is_within(&V->linear, 0) && is_within(&V->angular, 0);
    if (m->set_twist && !target->is_floating && !is_still) return FAILED;
    return DONE;
}

// A pose and a twist are two world commands, carried out at the same tick.
static void set_entity(usi_simulation *s, slot *x, const us_msg_set_entity_state_request *m) {
    const us_msg_twist *V = &m->state.twist;
    char pose[USI_COMMAND_MAX + 1] = "", twist[USI_COMMAND_MAX + 1] = "";
    const char *why = NULL;
    us_error err = {0};
    usi_target target = {-1, -1, -1, false};
    (void)usi_target_find(s->w->live.revision->spec, m->entity, &target, &err);
    const int code = check_state(s, m, &target, &why);
    if (m->set_pose && code == DONE) {
        double p[3], rpy[3];
        (void)read_pose(&m->state.pose, p, rpy);
        snprintf(pose, sizeof pose, "move \"%.3000s\" %.17g %.17g %.17g %.17g %.17g %.17g", m->entity, p[0],
                 p[1], p[2], rpy[0], rpy[1], rpy[2]);
    }
    if (m->set_twist && target.is_floating)
        snprintf(twist, sizeof twist, "velocity \"%.3000s\" %.17g %.17g %.17g %.17g %.17g %.17g", m->entity,
                 V->linear.x, V->linear.y, V->linear.z, V->angular.x, V->angular.y, V->angular.z);
    if (code != DONE || (!pose[0] && !twist[0])) {
        send_result(s, x, code, code == DONE ? "" : why);
    } else if (!twist[0]) {
        post(s, x, pose);
    } else if (pose[0] && us_world_post(s->w, "simulation_interfaces", pose, NULL, NULL, 0)) {
        send_result(s, x, FAILED, "too many world commands wait");
    } else {
        post(s, x, twist);
    }
}

// ---------------------------------------------------------------- spawning

static const struct {
    const char *uri, *words, *description;
} spawnables[] = {
    {"understudy:box", "box size=1,1,1", "a box, 1 m long"},
    {"understudy:sphere", "sphere size=0.5", "a sphere of 1 m diameter"},
    {"understudy:cylinder", "cylinder size=0.5,1", "a cylinder of 1 m diameter and height"},
    {"understudy:capsule", "capsule size=0.25,0.5", "a capsule, 1 m long"},
    {"understudy:cone", "cone size=0.5,1", "a cone of 1 m diameter and height"},
    {"understudy:ellipsoid", "ellipsoid size=0.5,0.5,0.25", "an ellipsoid, 1 m long"},
};
enum { N_SPAWNABLE = sizeof spawnables / sizeof spawnables[0] };

static void list_spawnables(usi_simulation *s, slot *x) {
    us_msg_spawnable list[N_SPAWNABLE];
    memset(list, 0, sizeof list);
    for (int i = 0; i < N_SPAWNABLE; i++) {
        list[i].entity_resource.uri = text_of(spawnables[i].uri);
        list[i].description = text_of(spawnables[i].description);
    }
    send(s, x,
         &(us_msg_get_spawnables_response){.result = result_of(DONE, ""),
                                           .spawnables = {._length = N_SPAWNABLE, ._buffer = list}});
}

// A name that is free, behind the wanted one; false when none of a thousand is.
static bool find_name(const us_spec *spec, const char *wanted, char out[NAME]) {
    for (int i = 1; i < 1000; i++) {
        snprintf(out, NAME, "%.50s_%d", wanted, i);
        if (find_entity(spec, out) < 0) return true;
    }
    return false;
}

static void spawn(usi_simulation *s, slot *x, const us_msg_spawn_entity_request *m) {
    const us_spec *spec = s->w->live.revision->spec;
    const char *words = NULL;
    double p[3], rpy[3];
    for (int i = 0; i < N_SPAWNABLE; i++) {
        if (strcmp(m->entity_resource.uri, spawnables[i].uri) == 0) words = spawnables[i].words;
    }
    if (!m->entity_resource.uri[0]) words = m->entity_resource.resource_string;
    snprintf(x->name, sizeof x->name, "%.60s", m->name[0] ? m->name : "entity");
    const bool is_taken = !m->name[0] || find_entity(spec, x->name) >= 0;
    char wanted[NAME];
    memcpy(wanted, x->name, sizeof wanted);
    if (strlen(m->name) > 60) {
        send_result(s, x, NAME_INVALID, "names have 60 characters at most");
    } else if (is_taken && !m->allow_renaming) {
        send_result(s, x, NAME_TAKEN, "there is an entity of this name, or the name is empty");
    } else if (is_taken && !find_name(spec, wanted, x->name)) {
        send_result(s, x, NAME_TAKEN, "there are too many entities of this name");
    } else if (!words) {
        send_result(s, x, FORMAT_UNKNOWN, "the uri is none of get_spawnables");
    } else if (!words[0]) {
        send_result(s, x, NO_RESOURCE,
                    "give a uri of get_spawnables, or a resource_string as \"box size=1,1,1\"");
    } else if (m->entity_namespace[0]) {
        send_result(s, x, NAMESPACE_INVALID, "objects have no namespace");
    } else if (!is_world_frame(m->initial_pose.header.frame_id) ||
               !read_pose(&m->initial_pose.pose, p, rpy)) {
        send_result(s, x, SPAWN_POSE_INVALID,
                    "the pose is not finite, its quaternion has not length 1, or its frame is not world");
    } else {
        char text[USI_COMMAND_MAX + 1];
        const int n_kind = (int)strcspn(words, " ");
        const int n =
            snprintf(text, sizeof text, "add %.*s %s%s at=%.17g,%.17g,%.17g rpy=%.17g,%.17g,%.17g", n_kind,
                     words, x->name, words + n_kind, p[0], p[1], p[2], rpy[0], rpy[1], rpy[2]);
        if (n < 0 || (size_t)n >= sizeof text) {
            send_result(s, x, FAILED, "the resource_string is too long");
        } else {
            post(s, x, text);
        }
    }
}

// ---------------------------------------------------------------- one request

static void answer_features(usi_simulation *s, slot *x) {
    // Spawning, deleting, categories, resource strings; states and infos got, states set, spawnables; reset;
    // state got, set, paused; steps, one, many, and as an action.
    uint16_t features[] = {0, 1, 8, 9, 10, 11, 12, 14, 20, 24, 25, 26, 31, 32, 33};
    char *formats[] = {text_of("understudy")};
    send(s, x,
         &(us_msg_get_simulator_features_response){
             .features = {.features = {._length = sizeof features / sizeof features[0], ._buffer = features},
                          .spawn_formats = {._length = 1, ._buffer = formats},
                          .custom_info =
                              text_of("Understudy; a resource_string is what stands behind the name in "
                                      "the world command add: KIND KEY=VALUE ...")}});
}

static void answer_state(usi_simulation *s, slot *x) {
    send(s, x,
         &(us_msg_get_simulation_state_response){.state = {(uint8_t)state_now(s)},
                                                 .result = result_of(DONE, "")});
}

static void answer_entity(usi_simulation *s, slot *x, const char *name) {
    const us_spec *spec = s->w->live.revision->spec;
    const int32_t group = find_entity(spec, name);
    if (group < 0) {
        send_result(s, x, NOT_FOUND, "there is no such entity");
    } else if (x->kind == INFO) {
        us_msg_get_entity_info_response m = {.result = result_of(DONE, "")};
        m.info.category.category = (uint8_t)category_of(spec, group);
        send(s, x, &m);
    } else {
        send(s, x,
             &(us_msg_get_entity_state_response){.result = result_of(DONE, ""), .state = state_of(s, group)});
    }
}

static void answer(usi_simulation *s, slot *x, const void *m) {
    const us_msg_delete_entity_request *named = m;
    switch (x->kind) {
    case FEATURES:
        answer_features(s, x);
        break;
    case RESET: {
        const int scope = ((const us_msg_reset_simulation_request *)m)->scope;
        if (scope == 0 || scope == 255 || scope == 7) {
            s->is_begun = false;
            post(s, x, "reset");
        } else {
            send_result(s, x, NOT_SUPPORTED, "a reset is of all: scope 0 or 255");
        }
        break;
    }
    case STEP:
        step(s, x, ((const us_msg_step_simulation_request *)m)->steps);
        break;
    case GOAL:
        us_action_server_execute(s->steps, x->goal);
        step(s, x, ((const us_msg_simulate_steps_send_goal_request *)m)->goal.steps);
        break;
    case GET_STATE:
        answer_state(s, x);
        break;
    case SET_STATE:
        set_state(s, x, ((const us_msg_set_simulation_state_request *)m)->state.state);
        break;
    case SPAWN:
        spawn(s, x, m);
        break;
    case DELETE: {
        char text[USI_COMMAND_MAX + 1];
        const bool has = find_entity(s->w->live.revision->spec, named->entity) >= 0;
        snprintf(text, sizeof text, "remove \"%.3000s\"", named->entity);
        if (has) {
            post(s, x, text);
        } else {
            send_result(s, x, NOT_FOUND, "there is no such entity");
        }
        break;
    }
    case ENTITIES:
        list_entities(s, x, &((const us_msg_get_entities_request *)m)->filters, false);
        break;
    case STATES:
        list_entities(s, x, &((const us_msg_get_entities_states_request *)m)->filters, true);
        break;
    case INFO:
    case ENTITY_STATE:
        answer_entity(s, x, named->entity);
        break;
    case SET_ENTITY:
        set_entity(s, x, m);
        break;
    default:
        list_spawnables(s, x);
        break;
    }
}

// ---------------------------------------------------------------- on the stepping thread

static void take(usi_simulation *s, slot *x) {
    const us_message_type *type = x->kind == GOAL ? s->types.send_goal_request : services[x->kind].request;
    const size_t cap = 64 * x->length + 4096;
    void *memory = usi_alloc(&s->w->allocator, cap, 16);
    const void *m = NULL;
    if (x->length == 0) {
        send_result(s, x, FAILED, "requests have 16384 bytes at most");
    } else if (!memory || us_message_decode(type, x->bytes, x->length, memory, cap, &m, NULL)) {
        send_result(s, x, FAILED, "no memory left for the request");
    } else {
        answer(s, x, m);
    }
    usi_release(&s->w->allocator, memory, cap, 16);
}

static void tell_steps(usi_simulation *s, slot *x, int64_t tick) {
    if (x->kind != GOAL || tick == x->told) return;
    x->told = tick;
    const int64_t done = tick > x->first ? tick - x->first : 0;
    const us_msg_simulate_steps_feedback_message m = {
        .feedback = {.completed_steps = (uint64_t)done, .remaining_steps = (uint64_t)(x->target - tick)}};
    uint8_t bytes[64];
    size_t length = 0;
    if (!us_message_encode(s->types.feedback, &m, bytes, sizeof bytes, &length))
        us_action_server_send_feedback(s->steps, x->goal, bytes, length);
}

static void follow_steps(usi_simulation *s, slot *x) {
    const int64_t tick = us_sim_get_tick(s->w->live.sim);
    const bool is_cut = !s->w->request.is_paused || (s->w->request.n_step == 0 && tick < x->target);
    if (tick == x->target) {
        tell_steps(s, x, tick);
        send_result(s, x, DONE, "");
    } else if (x->kind == GOAL && us_action_server_get_status(s->steps, x->goal) == US_GOAL_CANCELING) {
        us_world_post(s->w, "simulation_interfaces", "pause", NULL, NULL, 0);
        end_goal(s, x, US_GOAL_CANCELED, FAILED, "cancelled");
    } else if (is_cut || tick > x->target) {
        send_result(s, x, FAILED, "somebody else has paused, resumed or reset the simulation");
    } else {
        tell_steps(s, x, tick);
    }
}

void usi_simulation_poll(us_world *w) {
    usi_simulation *s = w->simulation;
    if (!s || atomic_load_explicit(&s->n_used, memory_order_relaxed) == 0) return;
    for (;;) {
        // In the order in which they came.
        slot *next = NULL;
        pthread_mutex_lock(&s->lock);
        for (int i = 0; i < N_SLOT; i++) {
            slot *x = &s->slots[i];
            if (x->stage == QUEUED && (!next || x->order < next->order)) next = x;
        }
        if (next) next->stage = POSTED;
        pthread_mutex_unlock(&s->lock);
        if (!next) break;
        take(s, next);
    }
    for (int i = 0; i < N_SLOT; i++) {
        if (s->slots[i].stage == STEPPING) follow_steps(s, &s->slots[i]);
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
    for (int i = 0; i < N_KIND && !status; i++) {
        const us_service_def def = {services[i].name, services[i].request, services[i].response, node};
        s->desks[i] = (control_desk){s, (control_kind)i, NULL};
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
    for (int i = 0; i < N_KIND; i++)
        us_service_remove(s->desks[i].service);
    for (int i = 0; i < N_SLOT; i++)
        usi_release(&w->allocator, s->slots[i].bytes, s->slots[i].length, 16);
    pthread_mutex_destroy(&s->lock);
    w->simulation = NULL;
    usi_release(&w->allocator, s, sizeof *s, _Alignof(usi_simulation));
}
