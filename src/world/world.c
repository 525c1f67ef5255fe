// A world's life: the queue of commands, the pace, steps.
//
//     any thread          us_world_post --> [ ring of 64 ] --> us_world_poll          the thread that steps
//                                                              parse, apply, record, reply
//
// A command enters between two ticks. Whoever keeps the pace asks us_world_get_pace_request what the commands
// want of it.
#include "world/world__inner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/tap.h"

us_world_def us_world_def_default(void) {
    return (us_world_def){.allocator = us_allocator_default(),
                          .n_thread = 1,
                          .proxy = us_proxy_def_default(),
                          .rate = 1,
                          .max_object = 100};
}

// ---------------------------------------------------------------- create and destroy

static us_status fail_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the world");
}

static bool init_locks(us_world *w) {
    pthread_mutexattr_t recursive;
    if (pthread_mutexattr_init(&recursive) != 0) return false;
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    bool has_queue = pthread_mutex_init(&w->queue_lock, NULL) == 0;
    bool has_hooks = pthread_mutex_init(&w->hooks_lock, NULL) == 0;
    bool has_reply = pthread_mutex_init(&w->reply_lock, &recursive) == 0;
    pthread_mutexattr_destroy(&recursive);
    if (has_queue && has_hooks && has_reply) return true;
    if (has_queue) pthread_mutex_destroy(&w->queue_lock);
    if (has_hooks) pthread_mutex_destroy(&w->hooks_lock);
    if (has_reply) pthread_mutex_destroy(&w->reply_lock);
    return false;
}

// Events of the robots' gates; what somebody should do something about is a warning.
static void log_gate(void *context, int32_t robot, us_gate_event event, const char *text) {
    (void)robot;
    if (text[0]) us_world_log(context, event == US_GATE_LAPSED || event == US_GATE_REFUSED, text);
}

// The texts of the definition, and the memory that commands need.
static us_status copy_def(us_world *w, const us_world_def *def, us_error *err) {
    bool ok = true;
    w->def = *def;
    w->def.scene = usi_arena_text(&w->texts, def->scene, &ok);
    w->def.base = usi_arena_text(&w->texts, def->base, &ok);
    w->def.parameters = usi_arena_text(&w->texts, def->parameters, &ok);
    w->def.search = usi_arena_text(&w->texts, def->search, &ok);
    w->def.proxy.motor_address = usi_arena_text(&w->texts, def->proxy.motor_address, &ok);
    w->def.proxy.serial_directory = usi_arena_text(&w->texts, def->proxy.serial_directory, &ok);
    if (!w->def.proxy.on_gate) {
        w->def.proxy.on_gate = log_gate;
        w->def.proxy.gate_context = w;
    }
    w->queue = usi_arena_alloc(&w->texts, USI_WORLD_QUEUE * sizeof *w->queue, _Alignof(usi_queued_command));
    w->now = usi_arena_alloc(&w->texts, sizeof *w->now, _Alignof(usi_queued_command));
    w->command = usi_arena_alloc(&w->texts, sizeof *w->command, _Alignof(usi_command));
    if (!ok || !w->queue || !w->now || !w->command) return fail_memory(err);
    memset(w->now, 0, sizeof *w->now);
    w->request = (us_pace_request){.rate = def->rate, .change = 1};
    return US_OK;
}

// The caller's spec gets the warnings; the world keeps a copy.
static us_status make_world(us_world *w, us_spec *spec, us_error *err) {
    us_model *model = NULL;
    us_spec *copy = NULL;
    us_status status = us_model_compile(spec, &w->allocator, &model, err);
    if (status) return status;
    status = us_spec_copy(spec, &copy);
    if (status) {
        us_model_destroy(model);
        return us_error_set(err, status, NULL, "free memory", "the scene cannot be copied: %s",
                            us_status_text(status));
    }
    return usi_revision_wrap(copy, model, &w->allocator, 1, "", w->def.scene, &w->first, err);
}

static void on_robot(void *context, us_proxy *proxy, bool is_new) {
    us_world *w = context;
    int32_t wanted = 0, port = us_proxy_motor_port(proxy, 0, &wanted);
    char text[USI_WORLD_REPLY];
    usi_world_record_robot(w, proxy, is_new);
    if (!is_new || port == 0) return;
    snprintf(text, sizeof text, "motors of %.60s: port %d", us_proxy_robot_name(proxy, 0), (int)port);
    us_world_log(w, 0, text);
}

us_status us_world_create(us_spec *spec, const us_world_def *def, us_world **out_world, us_error *err) {
    if (!spec || !out_world)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a place for the world",
                            "us_world_create: an argument is NULL");
    us_world_def d = def ? *def : us_world_def_default();
    if (!(d.rate >= 0 && isfinite(d.rate)))
        return us_error_set(err, US_ERR_VALUE, NULL, "set a finite rate above 0, or 0: as fast as possible",
                            "us_world_create: %g is no rate", d.rate);
    if (d.max_object < 0 || d.max_object > 1000000)
        return us_error_set(err, US_ERR_VALUE, NULL, "set a number from 0 to a million",
                            "us_world_create: max_object is %d", (int)d.max_object);
    us_world *w = usi_alloc(&d.allocator, sizeof *w, _Alignof(us_world));
    if (!w) return fail_memory(err);
    memset(w, 0, sizeof *w);
    w->allocator = d.allocator;
    if (!init_locks(w)) {
        usi_release(&d.allocator, w, sizeof *w, _Alignof(us_world));
        return fail_memory(err);
    }
    usi_arena_init(&w->texts, &w->allocator);
    atomic_init(&w->time, 0);
    w->is_fresh = true;
    us_status status = copy_def(w, &d, err);
    if (!status) status = make_world(w, spec, err);
    if (!status)
        status = usi_live_init(&w->live, &w->allocator, usi_revision_ref(w->first), &w->def.proxy, d.n_thread,
                               err);
    if (!status) usi_live_limit(&w->live, d.max_object);
    w->live.on_robot = on_robot;
    w->live.robot_context = w;
    if (!status) usi_holds_listen(w);
    if (status) {
        us_world_destroy(w);
        return status;
    }
    *out_world = w;
    return US_OK;
}

static const char *text_of(const usi_queued_command *m) { return m->long_text ? m->long_text : m->text; }

static void release_text(us_world *w, usi_queued_command *m) {
    if (m->long_text) usi_release(&w->allocator, m->long_text, strlen(m->long_text) + 1, 1);
    m->long_text = NULL;
}

static bool take_queued(us_world *w) {
    pthread_mutex_lock(&w->queue_lock);
    bool has_one = w->n_queued > 0;
    if (has_one) {
        *w->now = w->queue[w->first_queued];
        w->first_queued = (w->first_queued + 1) % USI_WORLD_QUEUE;
        w->n_queued--;
    }
    pthread_mutex_unlock(&w->queue_lock);
    return has_one;
}

void us_world_destroy(us_world *w) {
    if (!w) return;
    // First nothing comes in any more, then all that waits goes out.
    usi_topics_destroy(w);
    usi_world_record_end(w, NULL);
    usi_world_drop_snapshots(w);
    while (w->queue && w->now && take_queued(w))
        release_text(w, w->now);
    usi_live_fini(&w->live);
    usi_revision_unref(w->first);
    usi_arena_fini(&w->texts);
    pthread_mutex_destroy(&w->queue_lock);
    pthread_mutex_destroy(&w->hooks_lock);
    pthread_mutex_destroy(&w->reply_lock);
    us_allocator a = w->allocator;
    usi_release(&a, w, sizeof *w, _Alignof(us_world));
}

us_sim *us_world_get_sim(us_world *w) { return w->live.sim; }
us_proxy *us_world_get_proxy(us_world *w) { return w->live.proxy; }
const us_spec *us_world_view_spec(const us_world *w) { return w->live.revision->spec; }
const us_model *us_world_view_model(const us_world *w) { return w->live.revision->model; }
uint32_t us_world_get_revision(const us_world *w) { return w->live.revision->number; }
us_pace_request us_world_get_pace_request(const us_world *w) { return w->request; }

usi_revision *usi_world_take_revision(us_world *w) {
    pthread_mutex_lock(&w->live.lock);
    usi_revision *revision = usi_revision_ref(w->live.revision);
    pthread_mutex_unlock(&w->live.lock);
    return revision;
}

bool usi_world_moved_port(const us_world *w, int32_t robot, char *out, size_t cap) {
    int32_t wanted = 0, port = us_proxy_motor_port(w->live.proxy, robot, &wanted);
    if (!port || port == wanted) return false;
    snprintf(out, cap, "motors of %.60s: port %d is taken, port %d is used instead",
             us_proxy_robot_name(w->live.proxy, robot), (int)wanted, (int)port);
    return true;
}

us_status us_world_connect(us_world *w, us_bus *bus, us_error *err) {
    if (!w || !bus || w->topics)
        return us_error_set(err, US_ERR_ARG, NULL, "connect a world once, to a bus that is open",
                            "us_world_connect: wrong argument, or connected already");
    us_status status = usi_live_connect(&w->live, bus, err);
    if (!status) status = usi_topics_create(w, bus, err);
    char text[USI_WORLD_REPLY];
    for (int32_t i = 0; i < us_proxy_n_robot(w->live.proxy) && !status; i++) {
        if (usi_world_moved_port(w, i, text, sizeof text)) us_world_log(w, 1, text);
    }
    return status;
}

// ---------------------------------------------------------------- the queue

us_status us_world_post(us_world *w, const char *source, const char *text, us_world_reply *reply,
                        void *context, int64_t id) {
    if (!w || !text) return US_ERR_ARG;
    const bool has_resource = usi_command_find_resource(text) != NULL;
    const size_t max = USI_COMMAND_MAX + (has_resource ? USI_RESOURCE_MAX : 0),
                 length = strnlen(text, max + 1);
    if (length > max) return US_ERR_LIMIT;
    char *long_text = length > USI_COMMAND_MAX ? usi_alloc(&w->allocator, length + 1, 1) : NULL;
    if (length > USI_COMMAND_MAX && !long_text) return US_ERR_MEMORY;
    pthread_mutex_lock(&w->queue_lock);
    bool has_room = w->n_queued < USI_WORLD_QUEUE;
    if (has_room) {
        usi_queued_command *m = &w->queue[(w->first_queued + w->n_queued++) % USI_WORLD_QUEUE];
        m->reply = reply;
        m->context = context;
        m->id = id;
        m->long_text = long_text;
        memcpy(long_text ? long_text : m->text, text, length + 1);
        usi_text_clean(source ? source : "", m->source, sizeof m->source);
    }
    pthread_mutex_unlock(&w->queue_lock);
    if (!has_room) usi_release(&w->allocator, long_text, length + 1, 1);
    return has_room ? US_OK : US_ERR_LIMIT;
}

void us_world_forget(us_world *w, const void *context) {
    // The one being answered is let finish: after that its reply is not called again.
    pthread_mutex_lock(&w->reply_lock);
    pthread_mutex_lock(&w->queue_lock);
    for (int32_t i = 0; i < w->n_queued; i++) {
        usi_queued_command *m = &w->queue[(w->first_queued + i) % USI_WORLD_QUEUE];
        if (m->context == context) m->reply = NULL;
    }
    if (w->now->context == context) w->now->reply = NULL;
    pthread_mutex_unlock(&w->queue_lock);
    pthread_mutex_unlock(&w->reply_lock);
}

// ---------------------------------------------------------------- commands

static us_status set_step(us_world *w, double n, us_error *err) {
    if (!w->request.is_paused)
        return us_error_set(err, US_ERR_ARG, NULL, "write pause first", "step: time is not paused");
    // What was asked for before is still to be done.
    if (w->request.n_step > 1000000)
        return us_error_set(err, US_ERR_LIMIT, NULL, "wait until they are done",
                            "step: %lld ticks are still to be done", (long long)w->request.n_step);
    w->request.n_step += (int64_t)n;
    return US_OK;
}

static us_status start_recording(us_world *w, const char *name, us_error *err) {
    if (!name && !w->recorder)
        return us_error_set(err, US_ERR_ARG, NULL, "write record NAME.mcap to begin", "nothing is recorded");
    return name ? usi_world_record(w, name, false, err) : usi_world_record_end(w, err);
}

// About time and files.
static us_status apply_own(us_world *w, const usi_command *c, char *reply, us_error *err) {
    switch (c->verb) {
    case USI_VERB_PAUSE:
        w->request.is_paused = true;
        w->request.n_step = 0;
        return US_OK;
    case USI_VERB_RESUME:
        w->request.is_paused = false;
        w->request.n_step = 0;
        return US_OK;
    case USI_VERB_STEP:
        return set_step(w, c->number[0], err);
    case USI_VERB_RATE:
        w->request.rate = c->number[0];
        return US_OK;
    case USI_VERB_RESET:
        return usi_world_reset(w, c->other != NULL, err);
    case USI_VERB_SNAPSHOT:
        return usi_world_snapshot(w, c->name, reply, USI_WORLD_REPLY, err);
    case USI_VERB_RESTORE:
        return usi_world_restore(w, c->name, err);
    case USI_VERB_FORGET:
        return usi_world_forget_snapshot(w, c->name, err);
    case USI_VERB_RECORD:
        return start_recording(w, c->name, err);
    case USI_VERB_AUTHORITY:
        return usi_authorities_ask(w, c->name, c->other, err);
    default:
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "the command is not one of the world");
    }
}

// New warnings of an edit are logged: nobody reads the spec again.
static void log_warnings(us_world *w, int32_t n_before) {
    int32_t n = us_spec_get_counts(w->live.revision->spec).n_warning;
    for (int32_t i = n_before; i < n; i++) {
        char text[USI_WORLD_REPLY];
        us_error_format(us_spec_view_warning(w->live.revision->spec, i), text, sizeof text);
        us_world_log(w, 1, text);
    }
}

static us_status apply_world(us_world *w, const usi_command *c, const char *text, char *reply,
                             us_error *err) {
    uint32_t number = us_world_get_revision(w);
    int32_t n_warning = us_spec_get_counts(w->live.revision->spec).n_warning;
    us_status status = usi_live_apply(&w->live, c, text, reply, USI_WORLD_REPLY, err);
    if (status) return status;
    if (number != us_world_get_revision(w)) log_warnings(w, n_warning);
    if (number != us_world_get_revision(w) || c->verb == USI_VERB_PAIR || c->verb == USI_VERB_SOIL ||
        c->verb == USI_VERB_REGION)
        usi_hooks_changed(w);
    return US_OK;
}

static bool is_about_time(usi_verb verb) {
    return verb == USI_VERB_PAUSE || verb == USI_VERB_RESUME || verb == USI_VERB_STEP ||
           verb == USI_VERB_RATE || verb == USI_VERB_RESET || verb == USI_VERB_RESTORE;
}

// Which robots a shared world has is said before it begins: each process has its own of them.
static us_status check_alone(us_world *w, const usi_command *c, us_error *err) {
    if (!usi_hooks_are_partial(w)) return US_OK;
    if (c->verb == USI_VERB_HOME)
        return us_error_set(err, US_ERR_ARG, NULL, "write reset",
                            "a world that runs in several processes goes home all at once or not at all");
    if (c->verb != USI_VERB_ADD || !c->is_robot) return US_OK;
    return us_error_set(err, US_ERR_ARG, NULL, "write the robot into the scene of all processes",
                        "robots are not added to a world that runs in several processes");
}

static us_status run_command(us_world *w, const char *source, const char *text, char *reply, us_error *err) {
    usi_command *c = w->command;
    us_status status = usi_command_parse(text, c, err);
    w->is_elsewhere = !status && usi_hooks_are_elsewhere(w, c);
    if (!status) status = usi_hooks_check(w, c, err);
    if (!status) status = check_alone(w, c, err);
    if (status) return status;
    // What ends a recording stands in it as its last word.
    bool is_last = c->verb == USI_VERB_RESET || c->verb == USI_VERB_RESTORE || c->verb == USI_VERB_RECORD;
    if (is_last) usi_world_recording_note(&w->recording, w->live.sim, source, text);
    uint32_t number = us_world_get_revision(w);
    status = usi_verb_is_world(c->verb) ? apply_world(w, c, text, reply, err) : apply_own(w, c, reply, err);
    if (status) return status;
    if (!is_last) usi_world_recording_note(&w->recording, w->live.sim, source, text);
    if (number != us_world_get_revision(w) || is_about_time(c->verb)) w->request.change++;
    return US_OK;
}

// "what is wrong; what to write instead". Names in it may have been cut inside a character.
static void refusal(const us_error *err, char *out, size_t cap) {
    char text[USI_WORLD_REPLY];
    snprintf(text, sizeof text, "%s%s%s", err->message, err->remedy[0] ? "; " : "", err->remedy);
    usi_text_clean(text, out, cap);
}

static void keep_answer(us_world *w, const usi_queued_command *m, us_status status, const char *reply) {
    usi_answer *a = &w->answer[w->n_answer++ % USI_WORLD_ANSWERS];
    *a = (usi_answer){.is_ok = status == US_OK};
    usi_text_clean(m->source, a->source, sizeof a->source);
    usi_text_clean(text_of(m), a->text, sizeof a->text);
    usi_text_clean(reply, a->message, sizeof a->message);
}

// Who has no window of their own to read a refusal in finds it in the log; and everybody learns of what
// changed the world for all.
static void log_answer(us_world *w, const usi_queued_command *m, us_status status, const char *reply) {
    char text[256], who[USI_WORLD_SOURCE], line[USI_WORLD_REPLY + 512];
    usi_text_clean(text_of(m), text, sizeof text);
    // A writer on the network is known by 32 digits, of which people need a few.
    snprintf(who, sizeof who, strlen(m->source) == 32 ? "network:%.8s" : "%s",
             strlen(m->source) == 32 ? m->source + 4 : m->source);
    usi_verb verb = w->command->verb;
    bool is_small = verb == USI_VERB_PAIR || verb == USI_VERB_SOIL || verb == USI_VERB_REGION ||
                    verb == USI_VERB_JOINT || verb == USI_VERB_DRIVE || verb == USI_VERB_STEP ||
                    verb == USI_VERB_MOVE || verb == USI_VERB_RAISE || verb == USI_VERB_LOWER ||
                    verb == USI_VERB_VELOCITY;
    if (!status && is_small) return;
    snprintf(line, sizeof line, "%s: %s%s%s", who[0] ? who : "command", text, reply[0] ? ": " : "", reply);
    us_world_log(w, status ? 1 : 0, line);
}

static void answer(us_world *w) {
    usi_queued_command *m = w->now;
    us_error err = {0};
    char reply[USI_WORLD_REPLY] = "";
    w->is_acting = true;
    us_status status = run_command(w, m->source, text_of(m), reply, &err);
    w->is_acting = false;
    if (status) refusal(&err, reply, sizeof reply);
    if (!w->is_elsewhere) {
        keep_answer(w, m, status, reply);
        log_answer(w, m, status, reply);
    }
    pthread_mutex_lock(&w->reply_lock);
    if (m->reply) m->reply(m->context, m->id, status, reply);
    m->reply = NULL;
    m->context = NULL;
    release_text(w, m);
    pthread_mutex_unlock(&w->reply_lock);
    usi_topics_publish(w);
}

// ---------------------------------------------------------------- time

static void publish(us_world *w) {
    us_proxy_publish(w->live.proxy, w->live.sim);
    for (int32_t i = 0; i < w->live.n_added; i++)
        us_proxy_publish(w->live.added[i], w->live.sim);
    usi_world_recording_tick(&w->recording, w->live.sim);
}

// The state of now goes out once before the first step from it.
static void publish_first(us_world *w) {
    if (!w->is_fresh) return;
    w->is_fresh = false;
    publish(w);
    atomic_store_explicit(&w->time, us_sim_get_time(w->live.sim), memory_order_relaxed);
}

void us_world_poll(us_world *w) {
    usi_calls_land(w);
    publish_first(w);
    // As many as can wait at once: who posts faster than that does not hold up time.
    for (int32_t i = 0; i < USI_WORLD_QUEUE && take_queued(w); i++) {
        answer(w);
        publish_first(w);
    }
    usi_proxy_tend(w->live.proxy, w->live.sim);
    usi_holds_poll(w);
    usi_world_record_check(w);
    usi_topics_poll(w);
    usi_simulation_poll(w);
    usi_hooks_poll(w);
}

static void log_script(void *context, const char *text, const char *reply) {
    us_world *w = context;
    char line[USI_WORLD_REPLY + USI_SCRIPT_TEXT + 32];
    snprintf(line, sizeof line, "scene: %s%s%s", text, reply[0] ? ": " : "", reply);
    us_world_log(w, 0, line);
}

// What the scene itself does to the world.
static us_status run_scripts(us_world *w, us_error *err) {
    uint32_t number = us_world_get_revision(w);
    us_status status = usi_live_run_scripts(&w->live, w->command, log_script, w, err);
    if (number == us_world_get_revision(w)) return status;
    w->request.change++;
    usi_hooks_changed(w);
    return status;
}

// Once: a pile that grows makes room again and again.
static void tell_of_room(us_world *w) {
    us_room room = us_sim_get_room(w->live.sim);
    if (w->has_grown || room.n_growth == 0) return;
    w->has_grown = true;
    char line[160];
    snprintf(line, sizeof line,
             "tick %lld: room for %d contact points was made; with max-contact=\"%d\" in <world> it is there "
             "from the start",
             (long long)us_sim_get_tick(w->live.sim), (int)room.max_contact, (int)room.max_contact);
    us_world_log(w, 0, line);
}

static us_status step_sim(us_world *w, us_error *err) {
    us_status status = run_scripts(w, err);
    if (status) return status;
    status = us_sim_step(w->live.sim, usi_hooks_step_command(w));
    tell_of_room(w);
    if (status && err) *err = *us_sim_view_error(w->live.sim);
    return status ? status : usi_hooks_after_step(w, err);
}

us_status us_world_step(us_world *w, us_error *err) {
    usi_calls_land(w);
    publish_first(w);
    bool is_ready = true;
    us_status status = usi_hooks_before_step(w, &is_ready, err);
    if (!status && !is_ready)
        return us_error_set(err, US_ERR_ARG, NULL, "call us_split_wait until it is ready",
                            "us_world_step: other processes have not come so far yet");
    if (status) return status;
    w->is_acting = true;
    status = step_sim(w, err);
    w->is_acting = false;
    if (status) return status;
    publish(w);
    if (w->request.n_step > 0) w->request.n_step--;
    atomic_store_explicit(&w->time, us_sim_get_time(w->live.sim), memory_order_relaxed);
    return US_OK;
}

void us_world_log(us_world *w, int32_t level, const char *text) {
    if (w->def.log) w->def.log(w->def.log_context, level, text);
    usi_hooks_log(w, level, text);
}
