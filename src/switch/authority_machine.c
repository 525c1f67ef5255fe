// The authority: which source is in control.
//
//              asked, alive                          asked, alive
//     hardware ------------> proxy          proxy ------------> hardware
//         ^  silent for longer than the watchdog, the other alive  ^
//         +----------------------> the other <---------------------+   (on loss: other; proxy: hardware only)
//         +----------------------> stop <--------------------------+   (on loss: stop; proxy: proxy only)
//         +----------------------> wait <--------------------------+   (the other is silent too)
//
// mirror and shadow are hardware or proxy with copies: they have one source in control like the others. One
// variable holds who gets commands (control) and one whose outputs go out (output_source). Both are set in
// one step, so that there are never two. They differ in stop alone: nobody gets commands, and the operators
// still see the source that was in control last.
//
// wait is a stop that ends by itself: the mode is stop, nobody gets commands, and the first source that
// publishes again gets control, if it had control before or is the successor. So a lost source never has
// control for longer than the watchdog, whether there is a successor or not.
//
// A source that has never published is not lost: at the start discovery takes its time, and differs between
// the domains. The watchdog begins to count at the first sample of any source. It does not restart when
// control passes to another, which is alive then: a source that dies loses control when it has been silent
// for the time of the watchdog, whenever it got control.
#include "switch/authority_machine.h"

#include <stdio.h>
#include <string.h>

static const char *const mode_names[US_MODE_COUNT] = {"hardware", "proxy", "mirror", "shadow", "stop"};
static const char *const source_names[] = {"hardware", "proxy", "nobody"};

const char *us_switch_mode_name(us_switch_mode mode) {
    return (unsigned)mode < (unsigned)US_MODE_COUNT ? mode_names[mode] : "";
}

us_switch_mode us_switch_find_mode(const char *name) {
    int i = 0;
    while (i < US_MODE_COUNT && (!name || strcmp(mode_names[i], name) != 0))
        i++;
    return (us_switch_mode)i;
}

const char *us_switch_source_name(us_switch_source source) {
    return (unsigned)source <= (unsigned)US_SWITCH_NOBODY ? source_names[source] : "";
}

static us_switch_source other(us_switch_source source) {
    return source == US_SWITCH_HARDWARE ? US_SWITCH_PROXY : US_SWITCH_HARDWARE;
}

void usi_authority_init(usi_authority *a, us_switch_mode mode, us_switch_loss on_loss, int64_t watchdog,
                        uint64_t epoch) {
    us_switch_source first = mode == US_MODE_PROXY ? US_SWITCH_PROXY : US_SWITCH_HARDWARE;
    *a = (usi_authority){.mode = mode,
                         .control = mode == US_MODE_STOP ? US_SWITCH_NOBODY : first,
                         .output_source = first,
                         .on_loss = on_loss,
                         .epoch = epoch,
                         .watchdog = watchdog};
}

void usi_authority_observe(usi_authority *a, const int64_t heard[2]) {
    for (int i = 0; i < 2; i++) {
        if (heard[i] <= a->heard[i]) continue;
        a->heard[i] = heard[i];
        a->is_restarted[i] = false;
        if (a->counting == 0) a->counting = heard[i];
    }
}

void usi_authority_forget(usi_authority *a, us_switch_source source) {
    a->heard[source] = 0;
    a->is_restarted[source] = true;
}

bool usi_authority_is_alive(const usi_authority *a, us_switch_source source, int64_t now) {
    return source != US_SWITCH_NOBODY && a->heard[source] > 0 && now - a->heard[source] <= a->watchdog;
}

static void describe_silence(const usi_authority *a, us_switch_source source, int64_t now, char *out,
                             size_t cap) {
    if (a->is_restarted[source]) {
        snprintf(out, cap, "the %s was started again", us_switch_source_name(source));
    } else if (a->heard[source] == 0) {
        snprintf(out, cap, "the %s was never heard", us_switch_source_name(source));
    } else {
        snprintf(out, cap, "the %s has been silent for %.2f s", us_switch_source_name(source),
                 1e-9 * (double)(now - a->heard[source]));
    }
}

usi_verdict usi_authority_ask(const usi_authority *a, us_switch_mode mode, int64_t now) {
    usi_verdict v = {.mode = mode, .control = a->control, .output_source = a->output_source};
    snprintf(v.reason, sizeof v.reason, "%s was asked for", us_switch_mode_name(mode));
    switch (mode) {
    case US_MODE_HARDWARE:
    case US_MODE_SHADOW:
        v.control = v.output_source = US_SWITCH_HARDWARE;
        break;
    case US_MODE_PROXY:
        v.control = v.output_source = US_SWITCH_PROXY;
        break;
    case US_MODE_STOP:
        v.control = US_SWITCH_NOBODY;
        break;
    case US_MODE_MIRROR:
        if (a->control == US_SWITCH_NOBODY) {
            v.is_refused = true;
            snprintf(v.reason, sizeof v.reason, "nobody is in control: ask for hardware or proxy first");
        }
        break;
    case US_MODE_COUNT:
        v.is_refused = true;
        snprintf(v.reason, sizeof v.reason,
                 "there is no such mode: ask for hardware, proxy, mirror, shadow or stop");
        break;
    }
    // A source that has control may keep it: its silence is the watchdog's concern. One that gets it must be
    // alive.
    if (!v.is_refused && v.control != US_SWITCH_NOBODY && v.control != a->control &&
        !usi_authority_is_alive(a, v.control, now)) {
        v.is_refused = true;
        describe_silence(a, v.control, now, v.reason, sizeof v.reason);
    }
    // A requested stop does not end by itself.
    v.is_change = !v.is_refused && (v.mode != a->mode || v.control != a->control || a->is_waiting);
    return v;
}

us_switch_source usi_authority_successor(const usi_authority *a) {
    us_switch_source had = a->is_waiting ? a->lost : a->control;
    if (had == US_SWITCH_NOBODY || a->on_loss == US_LOSS_STOP) return US_SWITCH_NOBODY;
    return a->on_loss == US_LOSS_PROXY && had == US_SWITCH_PROXY ? US_SWITCH_NOBODY : other(had);
}

int64_t usi_authority_silence(const usi_authority *a, int64_t now) {
    if (a->control == US_SWITCH_NOBODY || a->counting == 0) return 0;
    int64_t last = a->heard[a->control] > a->counting ? a->heard[a->control] : a->counting;
    int64_t silence = now - last;
    return a->is_restarted[a->control] && silence <= a->watchdog ? a->watchdog + 1 : silence;
}

static void give_control(usi_verdict *v, us_switch_source source, us_switch_mode mode) {
    v->mode = mode;
    v->control = v->output_source = source;
    v->is_change = true;
}

static us_switch_mode mode_of(us_switch_source source) {
    return source == US_SWITCH_HARDWARE ? US_MODE_HARDWARE : US_MODE_PROXY;
}

usi_verdict usi_authority_watch(const usi_authority *a, int64_t now) {
    usi_verdict v = {.mode = a->mode, .control = a->control, .output_source = a->output_source};

    // waiting: the first source that is alive again
    us_switch_source successor = usi_authority_successor(a);
    if (a->is_waiting) {
        us_switch_source heard = usi_authority_is_alive(a, a->lost, now)     ? a->lost
                                 : usi_authority_is_alive(a, successor, now) ? successor
                                                                             : US_SWITCH_NOBODY;
        if (heard == US_SWITCH_NOBODY) return v;
        give_control(&v, heard, heard == a->lost ? a->lost_mode : mode_of(heard));
        snprintf(v.reason, sizeof v.reason, "the %s is heard again, the first of the two",
                 us_switch_source_name(heard));
        return v;
    }

    // a loss: to the successor, or a stop, or a wait
    if (a->control == US_SWITCH_NOBODY || usi_authority_silence(a, now) <= a->watchdog) return v;
    describe_silence(a, a->control, now, v.reason, sizeof v.reason);
    if (usi_authority_is_alive(a, successor, now)) {
        give_control(&v, successor, mode_of(successor));
        return v;
    }
    v.mode = US_MODE_STOP;
    v.control = US_SWITCH_NOBODY;
    v.is_change = true;
    v.is_waiting = successor != US_SWITCH_NOBODY;
    size_t n = strlen(v.reason);
    if (v.is_waiting)
        snprintf(v.reason + n, sizeof v.reason - n, ", and the %s is silent too",
                 us_switch_source_name(successor));
    return v;
}

void usi_authority_apply(usi_authority *a, const usi_verdict *verdict, uint64_t min_epoch) {
    a->is_waiting = verdict->is_waiting;
    if (a->is_waiting) {
        a->lost = a->control;
        a->lost_mode = a->mode;
    }
    a->mode = verdict->mode;
    a->control = verdict->control;
    a->output_source = verdict->output_source;
    a->epoch = a->epoch + 1 > min_epoch ? a->epoch + 1 : min_epoch;
}
