// Runs a recording again and holds every tick against what was recorded.
//
// The order of the file is the order of the run: at a tick boundary first the commands to the world, then,
// inside the step, those to the robots.
#include "proxy/verify.h"

#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"

// The hash of every tick is recorded, so that the next one is never far: a recording that names a tick of the
// far future would keep us busy until then.
enum { MAX_GAP = 100000 };

typedef struct run {
    us_proxy *p;
    us_sim *sim;
    us_recording *recording;
    const usi_verify_def *def;
    us_verify_result result;
} run;

// ---------------------------------------------------------------- commands

static us_status step(run *r, us_error *err) {
    us_status status = r->def->before_step ? r->def->before_step(r->def->world_context, err) : US_OK;
    if (status) return status;
    status = us_sim_step(r->sim, NULL);
    r->result.n_tick += !status;
    if (status && err) *err = *us_sim_view_error(r->sim);
    return status;
}

static us_status step_until(run *r, int64_t tick, us_error *err) {
    int64_t gap = 0;
    if (tick < 0 || __builtin_sub_overflow(tick, us_sim_get_tick(r->sim), &gap) || gap > MAX_GAP)
        return us_error_set(err, US_ERR_SYNTAX, NULL, "verify a file that `understudy run --record` made",
                            "after tick %lld the recording goes on at tick %lld",
                            (long long)us_sim_get_tick(r->sim), (long long)tick);
    us_status status = US_OK;
    while (!status && us_sim_get_tick(r->sim) < tick)
        status = step(r, err);
    return status;
}

// Changes the world now, at the tick boundary where it was changed then.
static us_status apply(run *r, const us_msg_command_record *m, us_error *err) {
    const void *text = NULL;
    if (!r->def->world)
        return us_error_set(err, US_ERR_NAME, NULL,
                            "verify it by us_world_verify, or `understudy replay FILE --verify`",
                            "tick %lld: the recording has commands to the world itself", (long long)m->tick);
    us_status status = step_until(r, m->tick, err);
    if (!status && us_sim_get_tick(r->sim) != m->tick)
        status =
            us_error_set(err, US_ERR_SYNTAX, NULL, "verify a file that was not put together of others",
                         "tick %lld: a command to the world stands behind a later tick", (long long)m->tick);
    if (!status)
        status = us_message_decode(usi_type_string, m->data._buffer, m->data._length, r->p->decoded,
                                   r->p->n_decoded, &text, err);
    return status ? status
                  : r->def->world(r->def->world_context, r->p, r->sim, m->source,
                                  ((const us_msg_string *)text)->data, err);
}

// A recorded command back to where it came from: its topic reads "/k10/cmd_vel geometry_msgs/msg/Twist".
static us_status post(run *r, const us_msg_command_record *m, us_error *err) {
    char topic[300] = "", type[128] = "";
    const us_message_type *t = NULL;
    us_status status = US_ERR_NAME;
    if (sscanf(m->topic, "%299s %127s", topic, type) == 2 && (t = us_message_find(type))) {
        if (strcmp(topic, USI_WORLD_TOPIC) == 0 && t == usi_type_string) return apply(r, m, err);
        status = r->def->post ? r->def->post(r->def->world_context, topic, t, m->source, m->data._buffer,
                                             m->data._length)
                              : us_proxy_post(r->p, topic, t, m->source, m->data._buffer, m->data._length);
    }
    if (!status) return US_OK;
    return us_error_set(err, status, NULL, "use the scene that was recorded",
                        "tick %lld: no robot takes the recorded command \"%.100s\"", (long long)m->tick,
                        m->topic);
}

// ---------------------------------------------------------------- ticks

// The next message of commands and ticks: *out_type NULL at the end.
static us_status next(run *r, const us_message_type **out_type, const void **out_message, us_error *err) {
    us_recorded message;
    bool has = false;
    *out_type = NULL;
    for (;;) {
        us_status status = us_recording_next(r->recording, &message, &has, err);
        if (status || !has) return status;
        const char *topic = us_recording_get_channel(r->recording, message.channel).topic;
        bool is_command = strcmp(topic, "/understudy/commands") == 0;
        if (!is_command && strcmp(topic, "/understudy/ticks") != 0) continue;
        const us_message_type *type = is_command ? usi_type_command_record : usi_type_tick_hash;
        status = us_message_decode(type, message.bytes, message.length, r->p->message, r->p->n_message,
                                   out_message, err);
        if (!status) *out_type = type;
        return status;
    }
}

static us_status step_to(run *r, const us_msg_tick_hash *m, us_error *err) {
    us_status status = step_until(r, m->tick, err);
    if (status) return status;
    if (us_sim_get_tick(r->sim) == m->tick && us_sim_hash(r->sim) == m->hash) return US_OK;
    r->result.bad_tick = m->tick;
    return us_error_set(err, US_ERR_DIVERGED, NULL,
                        "use the same build, scene, parameters and seed; if they are the same, the "
                        "simulation is not repeatable: report it",
                        "tick %lld: the state's hash is %016llx, and %016llx was recorded",
                        (long long)m->tick, (unsigned long long)us_sim_hash(r->sim),
                        (unsigned long long)m->hash);
}

static us_status run_again(run *r, us_error *err) {
    us_recording_info info = us_recording_get_info(r->recording);
    size_t length = 0;
    const void *start = us_recording_find_attachment(r->recording, "state", &length);
    if (!start)
        return us_error_set(err, US_ERR_NAME, NULL, "verify a file that `understudy run --record` made",
                            "the recording has no start state");
    if (us_sim_restore(r->sim, start, length))
        return us_error_set(err, US_ERR_SNAPSHOT, NULL,
                            "use the scene, parameters and build of the recording",
                            "the recorded start state belongs to another model");
    r->result.first_tick = us_sim_get_tick(r->sim);
    us_status status = us_recording_rewind(r->recording);
    for (int64_t n = 0; !status; n++) {
        const us_message_type *type;
        const void *m;
        status = next(r, &type, &m, err);
        if (status || !type) break;
        if (type == usi_type_command_record) {
            status = post(r, m, err);
            r->result.n_command++;
        } else {
            status = step_to(r, m, err);
        }
        double span = (double)(info.last_time - info.first_time);
        if (r->def->progress && n % 1000 == 0 && span > 0)
            r->def->progress(r->def->progress_context,
                             (us_sim_get_time(r->sim) * 1e9 - (double)info.first_time) / span);
    }
    if (!status && r->result.n_tick == 0)
        return us_error_set(err, US_ERR_NAME, NULL, "verify a file that `understudy run --record` made",
                            "the recording has no ticks");
    return status;
}

// ---------------------------------------------------------------- all

us_status usi_proxy_verify(us_proxy *proxy, us_sim *sim, us_recording *recording, const usi_verify_def *def,
                           us_verify_result *out_result, us_error *err) {
    run r = {.p = proxy, .sim = sim, .recording = recording, .def = def, .result.bad_tick = -1};
    us_status status = run_again(&r, err);
    *out_result = r.result;
    return status;
}

us_status us_proxy_verify(const us_model *model, us_recording *recording,
                          void (*progress)(void *context, double share), void *context,
                          us_verify_result *out_result, us_error *err) {
    if (!model || !recording || !out_result)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a model, a recording and a place for the result",
                            "us_proxy_verify: an argument is NULL");
    us_proxy *p = NULL;
    us_sim *sim = NULL;
    *out_result = (us_verify_result){.bad_tick = -1};
    us_status status = us_proxy_create(model, NULL, &p, err);
    if (!status) {
        us_plugin part = us_proxy_get_plugin(p);
        us_sim_def def = us_sim_def_default();
        def.n_plugin = 1;
        def.plugins = &part;
        status = us_sim_create(model, &def, &sim, err);
    }
    const usi_verify_def def = {.progress = progress, .progress_context = context};
    if (!status) status = usi_proxy_verify(p, sim, recording, &def, out_result, err);
    us_sim_destroy(sim);
    us_proxy_destroy(p);
    return status;
}
