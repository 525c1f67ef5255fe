// Calls in recordings: what a program sets in the world's sim between two ticks stands there as a line,
//
//     call KIND INDEX OTHER NUMBER...
//
// with all digits of the numbers, among the world commands and in the same order.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/sim.h"
#include "world/world__inner.h"

static const char PREFIX[] = "call ";

// False: it does not fit.
static bool print_call(const usi_input *input, char *out, size_t cap) {
    size_t used = (size_t)snprintf(out, cap, "%s%s %" PRId32 " %" PRId32, PREFIX, usi_input_name(input->kind),
                                   input->index, input->other);
    for (int32_t i = 0; i < input->n && used < cap; i++)
        used += (size_t)snprintf(out + used, cap - used, " %.17g", input->number[i]);
    return used < cap;
}

void usi_input_print(const usi_input *input, char *out, size_t cap) { print_call(input, out, cap); }

static us_status fail_line(const char *text, us_status status, us_error *err) {
    return us_error_set(err, status, NULL, "use the program and the scene that made the recording",
                        "the recorded call \"%.200s\" cannot be made again: %s", text,
                        us_status_text(status));
}

bool usi_is_call(const char *text) { return strncmp(text, PREFIX, sizeof PREFIX - 1) == 0; }

us_status usi_call_apply(us_sim *sim, const char *text, us_error *err) {
    char name[32];
    int length = 0;
    double number[USI_INPUT_NUMBERS];
    usi_input input = {.number = number};
    const char *at = text + sizeof PREFIX - 1;
    // NOLINTNEXTLINE(cert-err34-c): indices are checked by the call itself
    if (sscanf(at, "%31s %" SCNd32 " %" SCNd32 "%n", name, &input.index, &input.other, &length) != 3 ||
        !usi_input_find(name, &input.kind))
        return fail_line(text, US_ERR_SYNTAX, err);
    for (at += length; *at == ' ';) {
        if (input.n == USI_INPUT_NUMBERS || usi_number_scan(at + 1, &at, &number[input.n++]))
            return fail_line(text, US_ERR_SYNTAX, err);
    }
    us_status status = *at ? US_ERR_SYNTAX : usi_sim_apply_input(sim, &input);
    return status ? fail_line(text, status, err) : US_OK;
}

// ---------------------------------------------------------------- while something is recorded

static void on_input(void *context, const usi_input *input) {
    us_world *w = context;
    // After a jump the next interval begins with the state that all calls have left.
    if (w->is_acting || w->has_jumped) return;
    char text[USI_COMMAND_MAX];
    if (input->kind == USI_INPUT_STATE || input->kind == USI_INPUT_MODEL ||
        !print_call(input, text, sizeof text))
        w->has_jumped = true;
    else
        usi_world_recording_note(&w->recording, w->live.sim, "call", text);
}

void usi_calls_record(us_world *w, bool is_on) {
    usi_sim_set_input_tap(w->live.sim, is_on ? on_input : NULL, w);
    w->has_jumped = false;
}

void usi_calls_land(us_world *w) {
    if (!w->has_jumped) return;
    w->has_jumped = false;
    if (us_sim_view_model(w->live.sim) == w->live.revision->model) {
        usi_world_land(w);
        return;
    }
    us_world_log(w, 2,
                 "the world's model was replaced by a call: the recording ends, since it could not be "
                 "run again; edit by world commands");
    usi_world_record_end(w, NULL);
}
