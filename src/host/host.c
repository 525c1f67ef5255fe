// A host's life: the world on its stage, the queue of commands, time.
//
//     any thread          us_world_post --> [ ring of 64 ] --> us_world_poll          the thread that steps
//                                                              parse, apply, note in the recording, reply
//
// A command enters between two ticks. Whoever keeps the pace asks us_world_get_pace_request what the commands
// said about time.
#include "host/host.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/tap.h"

us_world_def us_world_def_default(void) {
    return (us_world_def){
        .allocator = us_allocator_default(), .n_thread = 1, .proxy = us_proxy_def_default(), .rate = 1};
}

us_page_def us_page_def_default(void) {
    return (us_page_def){.address = "127.0.0.1", .port = 8080, .search_free_port = true};
}

// ---------------------------------------------------------------- create and destroy

static us_status fail_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the host");
}

static bool init_locks(us_world *h) {
    pthread_mutexattr_t recursive;
    if (pthread_mutexattr_init(&recursive) != 0) return false;
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    bool is_good = pthread_mutex_init(&h->queue_lock, NULL) == 0;
    if (is_good && pthread_mutex_init(&h->reply_lock, &recursive) != 0) {
        pthread_mutex_destroy(&h->queue_lock);
        is_good = false;
    }
    pthread_mutexattr_destroy(&recursive);
    return is_good;
}

// The texts of the definition, and the memory that commands need.
static us_status take_def(us_world *h, const us_world_def *def, us_error *err) {
    bool ok = true;
    h->def = *def;
    h->def.scene = usi_arena_text(&h->texts, def->scene, &ok);
    h->def.base = usi_arena_text(&h->texts, def->base, &ok);
    h->def.parameters = usi_arena_text(&h->texts, def->parameters, &ok);
    h->def.search = usi_arena_text(&h->texts, def->search, &ok);
    h->def.proxy.motor_address = usi_arena_text(&h->texts, def->proxy.motor_address, &ok);
    h->queue = usi_arena_alloc(&h->texts, USI_WORLD_QUEUE * sizeof *h->queue, _Alignof(usi_world_mail));
    h->now = usi_arena_alloc(&h->texts, sizeof *h->now, _Alignof(usi_world_mail));
    h->command = usi_arena_alloc(&h->texts, sizeof *h->command, _Alignof(usi_command));
    if (!ok || !h->queue || !h->now || !h->command) return fail_memory(err);
    memset(h->now, 0, sizeof *h->now);
    h->wish = (us_pace_request){.rate = def->rate, .change = 1};
    return US_OK;
}

// The caller's spec gets the warnings; the world keeps a copy.
static us_status make_world(us_world *h, us_spec *spec, us_error *err) {
    us_model *model = NULL;
    us_spec *copy = NULL;
    us_status status = us_model_compile(spec, &h->allocator, &model, err);
    if (status) return status;
    status = us_spec_copy(spec, &copy);
    if (status) {
        us_model_destroy(model);
        return us_error_set(err, status, NULL, "free memory", "the scene cannot be copied: %s",
                            us_status_text(status));
    }
    return usi_world_wrap(copy, model, &h->allocator, 1, "", h->def.scene, &h->first, err);
}

us_status us_world_create(us_spec *spec, const us_world_def *def, us_world **out_host, us_error *err) {
    if (!spec || !out_host)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a place for the host",
                            "us_world_create: an argument is NULL");
    us_world_def d = def ? *def : us_world_def_default();
    if (!(d.rate >= 0 && isfinite(d.rate)))
        return us_error_set(err, US_ERR_VALUE, NULL, "set a finite rate above 0, or 0: as fast as possible",
                            "us_world_create: %g is no rate", d.rate);
    us_world *h = usi_alloc(&d.allocator, sizeof *h, _Alignof(us_world));
    if (!h) return fail_memory(err);
    memset(h, 0, sizeof *h);
    h->allocator = d.allocator;
    if (!init_locks(h)) {
        usi_release(&d.allocator, h, sizeof *h, _Alignof(us_world));
        return fail_memory(err);
    }
    usi_arena_init(&h->texts, &h->allocator);
    atomic_init(&h->time, 0);
    h->is_fresh = true;
    us_status status = take_def(h, &d, err);
    if (!status) status = make_world(h, spec, err);
    if (!status)
        status = usi_live_init(&h->stage, &h->allocator, usi_revision_ref(h->first), &h->def.proxy,
                               d.n_thread, err);
    if (status) {
        us_world_destroy(h);
        return status;
    }
    *out_host = h;
    return US_OK;
}

void us_world_destroy(us_world *h) {
    if (!h) return;
    // First nobody asks any more, then all that was said goes out.
    usi_page_destroy(h->page);
    h->page = NULL;
    usi_topics_destroy(h);
    usi_share_destroy(h);
    usi_world_record_end(h, NULL);
    usi_world_drop_snapshots(h);
    usi_live_fini(&h->stage);
    usi_revision_unref(h->first);
    usi_arena_fini(&h->texts);
    pthread_mutex_destroy(&h->queue_lock);
    pthread_mutex_destroy(&h->reply_lock);
    us_allocator a = h->allocator;
    usi_release(&a, h, sizeof *h, _Alignof(us_world));
}

us_sim *us_world_get_sim(us_world *h) { return h->stage.sim; }
us_proxy *us_world_get_proxy(us_world *h) { return h->stage.proxy; }
const us_spec *us_world_view_spec(const us_world *h) { return h->stage.world->spec; }
const us_model *us_world_view_model(const us_world *h) { return h->stage.world->model; }
uint32_t us_world_get_revision(const us_world *h) { return h->stage.world->epoch; }
us_pace_request us_world_get_pace_request(const us_world *h) { return h->wish; }

usi_revision *usi_world_take_world(us_world *h) {
    pthread_mutex_lock(&h->stage.lock);
    usi_revision *world = usi_revision_ref(h->stage.world);
    pthread_mutex_unlock(&h->stage.lock);
    return world;
}

// Motor ports that were taken: which ones the robots have instead.
static void report_motor_ports(us_world *h, void (*log)(void *context, int32_t level, const char *text),
                               void *context) {
    const us_proxy *proxy = h->stage.proxy;
    for (int32_t i = 0; i < us_proxy_n_robot(proxy); i++) {
        int32_t wanted = 0, port = us_proxy_motor_port(proxy, i, &wanted);
        char text[200];
        snprintf(text, sizeof text, "motors of %.60s: port %d is taken, port %d is used instead",
                 us_proxy_robot_name(proxy, i), (int)wanted, (int)port);
        if (port && port != wanted) log(context, 1, text);
    }
}

us_status us_world_connect(us_world *h, us_bus *bus, us_error *err) {
    if (!h || !bus || h->topics)
        return us_error_set(err, US_ERR_ARG, NULL, "connect a host once, to a bus that is open",
                            "us_world_connect: wrong argument, or connected already");
    us_status status = us_proxy_connect(h->stage.proxy, bus, err);
    if (!status) status = usi_topics_create(h, bus, err);
    if (!status && h->def.log) report_motor_ports(h, h->def.log, h->def.log_context);
    return status;
}

// ---------------------------------------------------------------- the queue

us_status us_world_post(us_world *h, const char *source, const char *text, us_world_reply *reply,
                        void *context, int64_t id) {
    if (!h || !text) return US_ERR_ARG;
    size_t length = strnlen(text, USI_COMMAND_MAX + 1);
    if (length > USI_COMMAND_MAX) return US_ERR_LIMIT;
    pthread_mutex_lock(&h->queue_lock);
    bool has_room = h->n_mail < USI_WORLD_QUEUE;
    if (has_room) {
        usi_world_mail *m = &h->queue[(h->first_mail + h->n_mail++) % USI_WORLD_QUEUE];
        m->reply = reply;
        m->context = context;
        m->id = id;
        memcpy(m->text, text, length + 1);
        usi_text_clean(source ? source : "", m->source, sizeof m->source);
    }
    pthread_mutex_unlock(&h->queue_lock);
    return has_room ? US_OK : US_ERR_LIMIT;
}

void us_world_forget(us_world *h, const void *context) {
    // The one being answered is let finish: after that its reply is not called again.
    pthread_mutex_lock(&h->reply_lock);
    pthread_mutex_lock(&h->queue_lock);
    for (int32_t i = 0; i < h->n_mail; i++) {
        usi_world_mail *m = &h->queue[(h->first_mail + i) % USI_WORLD_QUEUE];
        if (m->context == context) m->reply = NULL;
    }
    if (h->now->context == context) h->now->reply = NULL;
    pthread_mutex_unlock(&h->queue_lock);
    pthread_mutex_unlock(&h->reply_lock);
}

static bool take_mail(us_world *h) {
    pthread_mutex_lock(&h->queue_lock);
    bool has_mail = h->n_mail > 0;
    if (has_mail) {
        *h->now = h->queue[h->first_mail];
        h->first_mail = (h->first_mail + 1) % USI_WORLD_QUEUE;
        h->n_mail--;
    }
    pthread_mutex_unlock(&h->queue_lock);
    return has_mail;
}

// ---------------------------------------------------------------- commands

static us_status set_step(us_world *h, double n, us_error *err) {
    if (!h->wish.is_paused)
        return us_error_set(err, US_ERR_ARG, NULL, "write pause first", "step: time is not paused");
    // What was asked for before is still to be done.
    if (h->wish.n_step > 1000000)
        return us_error_set(err, US_ERR_LIMIT, NULL, "wait until they are done",
                            "step: %lld ticks are still to be done", (long long)h->wish.n_step);
    h->wish.n_step += (int64_t)n;
    return US_OK;
}

static us_status start_recording(us_world *h, const char *name, us_error *err) {
    if (!name && !h->recorder)
        return us_error_set(err, US_ERR_ARG, NULL, "write record NAME.mcap to begin", "nothing is recorded");
    return name ? usi_world_record(h, name, false, err) : usi_world_record_end(h, err);
}

// About time and files.
static us_status apply_own(us_world *h, const usi_command *c, char *reply, us_error *err) {
    switch (c->verb) {
    case USI_VERB_PAUSE:
        h->wish.is_paused = true;
        h->wish.n_step = 0;
        return US_OK;
    case USI_VERB_RESUME:
        h->wish.is_paused = false;
        h->wish.n_step = 0;
        return US_OK;
    case USI_VERB_STEP:
        return set_step(h, c->number[0], err);
    case USI_VERB_RATE:
        h->wish.rate = c->number[0];
        return US_OK;
    case USI_VERB_RESET:
        return usi_world_reset(h, err);
    case USI_VERB_SNAPSHOT:
        return usi_world_snapshot(h, c->name, reply, USI_WORLD_REPLY, err);
    case USI_VERB_RESTORE:
        return usi_world_restore(h, c->name, err);
    case USI_VERB_FORGET:
        return usi_world_forget_snapshot(h, c->name, err);
    case USI_VERB_RECORD:
        return start_recording(h, c->name, err);
    case USI_VERB_AUTHORITY:
        return usi_authorities_ask(h, c->name, c->other, err);
    default:
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "the command is not one of the host");
    }
}

// New warnings of an edit are told: nobody reads the spec again.
static void tell_warnings(us_world *h, int32_t n_before) {
    int32_t n = us_spec_get_counts(h->stage.world->spec).n_warning;
    for (int32_t i = n_before; i < n; i++) {
        char text[USI_WORLD_REPLY];
        us_error_format(us_spec_view_warning(h->stage.world->spec, i), text, sizeof text);
        us_world_log(h, 1, text);
    }
}

static us_status apply_world(us_world *h, const usi_command *c, const char *text, char *reply,
                             us_error *err) {
    uint32_t epoch = us_world_get_revision(h);
    int32_t n_warning = us_spec_get_counts(h->stage.world->spec).n_warning;
    us_status status = usi_live_apply(&h->stage, c, text, reply, USI_WORLD_REPLY, err);
    if (status) return status;
    if (epoch != us_world_get_revision(h)) tell_warnings(h, n_warning);
    if (h->page && (epoch != us_world_get_revision(h) || c->verb == USI_VERB_PAIR ||
                    c->verb == USI_VERB_SOIL || c->verb == USI_VERB_REGION))
        usi_page_changed(h->page);
    return US_OK;
}

static bool is_about_time(usi_verb verb) {
    return verb == USI_VERB_PAUSE || verb == USI_VERB_RESUME || verb == USI_VERB_STEP ||
           verb == USI_VERB_RATE || verb == USI_VERB_RESET || verb == USI_VERB_RESTORE;
}

static us_status run_command(us_world *h, const char *source, const char *text, char *reply, us_error *err) {
    usi_command *c = h->command;
    us_status status = usi_command_parse(text, c, err);
    if (!status) status = usi_share_check(h, c, err);
    if (status) return status;
    // What ends a recording stands in it as its last word.
    bool is_last = c->verb == USI_VERB_RESET || c->verb == USI_VERB_RESTORE || c->verb == USI_VERB_RECORD;
    if (is_last) us_proxy_note(h->stage.proxy, h->stage.sim, source, text);
    uint32_t epoch = us_world_get_revision(h);
    status = usi_verb_is_world(c->verb) ? apply_world(h, c, text, reply, err) : apply_own(h, c, reply, err);
    if (status) return status;
    if (!is_last) us_proxy_note(h->stage.proxy, h->stage.sim, source, text);
    if (epoch != us_world_get_revision(h) || is_about_time(c->verb)) h->wish.change++;
    return US_OK;
}

// "what is wrong; what to write instead". Names in it may have been cut inside a character.
static void refusal(const us_error *err, char *out, size_t cap) {
    char text[USI_WORLD_REPLY];
    snprintf(text, sizeof text, "%s%s%s", err->message, err->remedy[0] ? "; " : "", err->remedy);
    usi_text_clean(text, out, cap);
}

static void keep_answer(us_world *h, const usi_world_mail *m, us_status status, const char *reply) {
    usi_answer *a = &h->answer[h->n_answer++ % USI_WORLD_ANSWERS];
    *a = (usi_answer){.is_ok = status == US_OK};
    usi_text_clean(m->source, a->source, sizeof a->source);
    usi_text_clean(m->text, a->text, sizeof a->text);
    usi_text_clean(reply, a->message, sizeof a->message);
}

// Who has no window of their own to read a refusal in finds it in the log; and everybody learns of what
// changed the world for all.
static void log_answer(us_world *h, const usi_world_mail *m, us_status status, const char *reply) {
    char text[256], who[USI_WORLD_SOURCE], line[USI_WORLD_REPLY + 512];
    usi_text_clean(m->text, text, sizeof text);
    // A writer on the network is known by 32 digits, of which people need a few.
    snprintf(who, sizeof who, strlen(m->source) == 32 ? "network:%.8s" : "%s",
             strlen(m->source) == 32 ? m->source + 4 : m->source);
    usi_verb verb = h->command->verb;
    bool is_small = verb == USI_VERB_PAIR || verb == USI_VERB_SOIL || verb == USI_VERB_REGION ||
                    verb == USI_VERB_JOINT || verb == USI_VERB_STEP || verb == USI_VERB_MOVE ||
                    verb == USI_VERB_RAISE || verb == USI_VERB_LOWER;
    if (!status && is_small) return;
    snprintf(line, sizeof line, "%s: %s%s%s", who[0] ? who : "command", text, reply[0] ? ": " : "", reply);
    us_world_log(h, status ? 1 : 0, line);
}

static void answer(us_world *h) {
    usi_world_mail *m = h->now;
    us_error err = {0};
    char reply[USI_WORLD_REPLY] = "";
    us_status status = run_command(h, m->source, m->text, reply, &err);
    if (status) refusal(&err, reply, sizeof reply);
    keep_answer(h, m, status, reply);
    log_answer(h, m, status, reply);
    pthread_mutex_lock(&h->reply_lock);
    if (m->reply) m->reply(m->context, m->id, status, reply);
    m->reply = NULL;
    m->context = NULL;
    pthread_mutex_unlock(&h->reply_lock);
    usi_topics_tell(h);
}

// ---------------------------------------------------------------- time

// The state of now goes out once before the first step from it.
static void publish_first(us_world *h) {
    if (!h->is_fresh) return;
    h->is_fresh = false;
    us_proxy_publish(h->stage.proxy, h->stage.sim);
    atomic_store_explicit(&h->time, us_sim_get_time(h->stage.sim), memory_order_relaxed);
}

void us_world_poll(us_world *h) {
    publish_first(h);
    // As many as can wait at once: who posts faster than that does not hold up time.
    for (int32_t i = 0; i < USI_WORLD_QUEUE && take_mail(h); i++) {
        answer(h);
        publish_first(h);
    }
    usi_proxy_tend(h->stage.proxy, h->stage.sim);
    usi_world_record_watch(h);
    usi_topics_watch(h);
    usi_share_tend(h);
}

static void tell_script(void *context, const char *text, const char *reply) {
    us_world *h = context;
    char line[USI_WORLD_REPLY + USI_SCRIPT_TEXT + 32];
    snprintf(line, sizeof line, "scene: %s%s%s", text, reply[0] ? ": " : "", reply);
    us_world_log(h, 0, line);
}

// What the scene itself does to the world.
static us_status run_scripts(us_world *h, us_error *err) {
    uint32_t epoch = us_world_get_revision(h);
    us_status status = usi_live_run_scripts(&h->stage, h->command, tell_script, h, err);
    if (epoch == us_world_get_revision(h)) return status;
    h->wish.change++;
    if (h->page) usi_page_changed(h->page);
    return status;
}

us_status us_world_step(us_world *h, us_error *err) {
    publish_first(h);
    bool is_ready = true;
    us_status status = us_world_wait(h, 0, &is_ready, err);
    if (!status && !is_ready)
        return us_error_set(err, US_ERR_ARG, NULL, "call us_world_wait until it is ready",
                            "us_world_step: other processes have not come so far yet");
    if (!status) status = run_scripts(h, err);
    if (status) return status;
    status = us_sim_step(h->stage.sim, usi_share_command(h));
    if (status) {
        if (err) *err = *us_sim_view_error(h->stage.sim);
        return status;
    }
    status = usi_share_stepped(h, err);
    if (status) return status;
    us_proxy_publish(h->stage.proxy, h->stage.sim);
    if (h->wish.n_step > 0) h->wish.n_step--;
    atomic_store_explicit(&h->time, us_sim_get_time(h->stage.sim), memory_order_relaxed);
    return US_OK;
}

// ---------------------------------------------------------------- the page

static void log_to_page(void *context, int32_t level, const char *text) {
    us_world *h = context;
    usi_page_log(h->page, level, atomic_load_explicit(&h->time, memory_order_relaxed), text);
}

us_status us_world_serve(us_world *h, const us_page_def *def, us_error *err) {
    if (!h || h->page)
        return us_error_set(err, US_ERR_ARG, NULL, "serve a host once",
                            "us_world_serve: no host, or served already");
    us_page_def d = def ? *def : us_page_def_default();
    us_status status = usi_page_create(h, &d, &h->page, err);
    // The page may come after the network.
    if (!status) report_motor_ports(h, log_to_page, h);
    return status;
}

const char *us_world_view_url(const us_world *h) { return h->page ? usi_page_url(h->page) : NULL; }

void us_world_show(us_world *h, const us_world_pace *pace) {
    static const us_world_pace unknown = {0};
    if (h->page) usi_page_show(h->page, pace ? pace : &unknown);
}

void us_world_log(us_world *h, int32_t level, const char *text) {
    if (h->def.log) h->def.log(h->def.log_context, level, text);
    if (h->page) usi_page_log(h->page, level, atomic_load_explicit(&h->time, memory_order_relaxed), text);
}
