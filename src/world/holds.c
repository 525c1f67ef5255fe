// Ground that is lost: what stopped because of it is told and recorded, and looked after until the ground is
// back.
#include <stdio.h>

#include "sim/sim.h"
#include "understudy/pace.h"
#include "world/world__inner.h"

// How often lost tiles are looked for, of the wall's clock.
static const int64_t LOOK_EVERY_NS = 500000000;

static void on_hold(void *context, const usi_input *input, const us_error *why) {
    us_world *w = context;
    const us_sim *sim = w->live.sim;
    char text[80], line[USI_WORLD_REPLY];
    usi_input_print(input, text, sizeof text);
    usi_world_recording_note(&w->recording, sim, "call", text);
    const char *name = usi_sim_held_name(sim, input->index);
    const long long tick = (long long)us_sim_get_tick(sim);
    if (why)
        snprintf(
            line, sizeof line,
            "tick %lld: %.80s stops, since its ground cannot be read: %.300s: %.200s; %.200s; then it goes "
            "on by itself",
            tick, name, why->file, why->message, why->remedy);
    else
        snprintf(line, sizeof line, "tick %lld: %.80s goes on: its ground is back", tick, name);
    us_world_log(w, why ? 2 : 0, line);
    w->held_ns = us_clock_ns();
}

void usi_holds_listen(us_world *w) { usi_sim_set_hold_tap(w->live.sim, on_hold, w); }

void usi_holds_poll(us_world *w) {
    if (usi_sim_n_held(w->live.sim) == 0) return;
    const int64_t now = us_clock_ns();
    if (now - w->held_ns < LOOK_EVERY_NS) return;
    usi_sim_release_held(w->live.sim);
    w->held_ns = us_clock_ns();
}
