// Runs a recording again with commands to the world among those to robots.
#ifndef USI_PROXY_VERIFY_H
#define USI_PROXY_VERIFY_H

#include "understudy/proxy.h"

typedef struct usi_verify_def {
    void (*progress)(void *context, double share);  // may be NULL
    void *progress_context;
    // A command to the world (us_proxy_note) that entered at the sim's tick, before the step from there. It
    // may edit (us_proxy_replace). A failure ends the run with its status. NULL: such a command is an error.
    us_status (*world)(void *context, us_proxy *proxy, us_sim *sim, const char *source, const char *text,
                       us_error *err);
    us_status (*before_step)(void *context,
                             us_error *err);  // what the scene itself does to the world; NULL: nothing
    // A command back to its robot, where the world has several proxies; NULL: us_proxy_post.
    us_status (*post)(void *context, const char *topic, const us_message_type *type, const char *source,
                      const void *bytes, size_t length);
    void *world_context;
} usi_verify_def;

// As us_proxy_verify, in a world that the caller has made: `proxy` is a plug-in of `sim`, and its model is
// the one of the recorded start state, which is restored first. Nothing is published.
us_status usi_proxy_verify(us_proxy *proxy, us_sim *sim, us_recording *recording, const usi_verify_def *def,
                           us_verify_result *out_result, us_error *err);

#endif
