// Running a world's recording again: the scene, the edits before, the state, and every command since.
#include <string.h>

#include "proxy/verify.h"
#include "world/world__inner.h"

typedef struct replay_run {
    usi_live live;
    usi_command *command;
} replay_run;

// What is about time and files changes nothing in the world; where time jumped the recording ended.
static us_status apply(void *context, us_proxy *proxy, us_sim *sim, const char *source, const char *text,
                       us_error *err) {
    replay_run *r = context;
    (void)proxy;
    (void)source;
    if (usi_is_call(text)) return usi_call_apply(sim, text, err);
    char reply[USI_WORLD_REPLY];
    us_status status = usi_command_parse(text, r->command, err);
    if (status || !usi_verb_is_world(r->command->verb)) return status;
    return usi_live_apply(&r->live, r->command, text, reply, sizeof reply, err);
}

static us_status post(void *context, const char *topic, const us_message_type *type, const char *source,
                      const void *bytes, size_t length) {
    const replay_run *r = context;
    return usi_live_post(&r->live, topic, type, source, bytes, length);
}

static us_status before_step(void *context, us_error *err) {
    replay_run *r = context;
    return usi_live_run_scripts(&r->live, r->command, NULL, NULL, err);
}

static us_status make_world(const us_spec *spec, const us_allocator *a, const char *edits, usi_revision **out,
                            us_error *err) {
    us_spec *copy = NULL;
    us_status status = us_spec_copy(spec, &copy);
    if (status)
        return us_error_set(err, status, NULL, "free memory", "the scene cannot be copied: %s",
                            us_status_text(status));
    status = usi_spec_edit_all(copy, edits, err);
    if (status) {
        us_spec_destroy(copy);
        return status;
    }
    return usi_revision_create(copy, a, 1, edits, NULL, out, err);
}

us_status us_world_verify(const us_spec *spec, us_recording *recording,
                          void (*progress)(void *context, double share), void *context,
                          us_verify_result *out_result, us_error *err) {
    if (!spec || !recording || !out_result)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec, a recording and a place for the result",
                            "us_world_verify: an argument is NULL");
    *out_result = (us_verify_result){.bad_tick = -1};
    us_allocator a = us_allocator_default();
    const char *edits = us_recording_find_metadata(recording, "understudy", "edits");
    usi_revision *revision = NULL;
    us_status status = make_world(spec, &a, edits ? edits : "", &revision, err);
    if (status) return status;
    replay_run r = {.command = usi_alloc(&a, sizeof *r.command, _Alignof(usi_command))};
    if (!r.command) {
        usi_revision_unref(revision);
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left to run the recording again");
    }
    us_proxy_def proxy = us_proxy_def_default();
    proxy.enable_motor_servers = false;
    status = usi_live_init(&r.live, &a, revision, &proxy, 1, err);
    r.live.is_replay = true;
    if (!status) {
        usi_verify_def def = {.progress = progress,
                              .progress_context = context,
                              .world = apply,
                              .before_step = before_step,
                              .post = post,
                              .world_context = &r};
        status = usi_proxy_verify(r.live.proxy, r.live.sim, recording, &def, out_result, err);
        usi_live_fini(&r.live);
    }
    usi_release(&a, r.command, sizeof *r.command, _Alignof(usi_command));
    return status;
}
