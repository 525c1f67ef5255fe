// Who is in control.
//
//              asked, alive                          asked, alive
//     hardware ------------> proxy          proxy ------------> hardware
//         ^  silent for longer than the watchdog, the other alive  ^
//         +----------------------> the other <---------------------+       (on loss: other; proxy: from the hardware alone)
//         +----------------------> stop <--------------------------+       (on loss: stop; proxy: from the proxy alone)
//
// mirror and shadow are hardware or proxy with copies: they have one in control like the others. There is one variable for who gets commands and
// one for whose outputs go out, and both are set in one step, so that there are never two. They differ in stop alone: nobody gets commands, and the
// operators still see who was in control last.
//
// A source that was never heard is not lost: at the start discovery takes its time, and differs between the domains. The watchdog begins to count
// when anybody is heard. It does not begin anew when control is given to another, who is alive then: a source that dies is out of control when it has
// been silent for the time of the watchdog, whenever control came to it.
#include "switch/authority.h"

#include <stdio.h>
#include <string.h>

static const char *const mode_names[US_MODE_COUNT] = {"hardware", "proxy", "mirror", "shadow", "stop"};
static const char *const source_names[] = {"hardware", "proxy", "nobody"};

const char *us_switch_mode_name(us_switch_mode mode) { return (unsigned)mode < (unsigned)US_MODE_COUNT ? mode_names[mode] : ""; }

us_switch_mode us_switch_find_mode(const char *name) {
    int i = 0;
    while (i < US_MODE_COUNT && (!name || strcmp(mode_names[i], name) != 0)) i++;
    return (us_switch_mode)i;
}

const char *us_switch_source_name(us_switch_source source) { return (unsigned)source <= (unsigned)US_SWITCH_NOBODY ? source_names[source] : ""; }

static us_switch_source other(us_switch_source source) { return source == US_SWITCH_HARDWARE ? US_SWITCH_PROXY : US_SWITCH_HARDWARE; }

void usi_authority_init(usi_authority *a, us_switch_mode mode, us_switch_loss on_loss, int64_t watchdog, uint64_t epoch) {
    us_switch_source first = mode == US_MODE_PROXY ? US_SWITCH_PROXY : US_SWITCH_HARDWARE;
    *a = (usi_authority){.mode = mode,
                         .control = mode == US_MODE_STOP ? US_SWITCH_NOBODY : first,
                         .voice = first,
                         .on_loss = on_loss,
                         .epoch = epoch,
                         .watchdog = watchdog};
}

void usi_authority_hear(usi_authority *a, const int64_t heard[2]) {
    for (int i = 0; i < 2; i++) {
        if (heard[i] <= a->heard[i]) continue;
        a->heard[i] = heard[i];
        if (a->counting == 0) a->counting = heard[i];
    }
}

bool usi_authority_is_alive(const usi_authority *a, us_switch_source source, int64_t now) {
    return source != US_SWITCH_NOBODY && a->heard[source] > 0 && now - a->heard[source] <= a->watchdog;
}

static void say_silence(const usi_authority *a, us_switch_source source, int64_t now, char *out, size_t cap) {
    if (a->heard[source] == 0) {
        snprintf(out, cap, "the %s was never heard", us_switch_source_name(source));
    } else {
        snprintf(out, cap, "the %s has been silent for %.2f s", us_switch_source_name(source), 1e-9 * (double)(now - a->heard[source]));
    }
}

usi_verdict usi_authority_ask(const usi_authority *a, us_switch_mode mode, int64_t now) {
    usi_verdict v = {.mode = mode, .control = a->control, .voice = a->voice};
    snprintf(v.reason, sizeof v.reason, "%s was asked for", us_switch_mode_name(mode));
    switch (mode) {
    case US_MODE_HARDWARE:
    case US_MODE_SHADOW: v.control = v.voice = US_SWITCH_HARDWARE; break;
    case US_MODE_PROXY: v.control = v.voice = US_SWITCH_PROXY; break;
    case US_MODE_STOP: v.control = US_SWITCH_NOBODY; break;
    case US_MODE_MIRROR:
        if (a->control == US_SWITCH_NOBODY) {
            v.is_refused = true;
            snprintf(v.reason, sizeof v.reason, "nobody is in control: ask for hardware or proxy first");
        }
        break;
    case US_MODE_COUNT:
        v.is_refused = true;
        snprintf(v.reason, sizeof v.reason, "there is no such mode: ask for hardware, proxy, mirror, shadow or stop");
        break;
    }
    // Who has control may keep it: a silence is the watchdog's business. Who gets it must be alive.
    if (!v.is_refused && v.control != US_SWITCH_NOBODY && v.control != a->control && !usi_authority_is_alive(a, v.control, now)) {
        v.is_refused = true;
        say_silence(a, v.control, now, v.reason, sizeof v.reason);
    }
    v.is_change = !v.is_refused && (v.mode != a->mode || v.control != a->control);
    return v;
}

usi_verdict usi_authority_watch(const usi_authority *a, int64_t now) {
    usi_verdict v = {.mode = a->mode, .control = a->control, .voice = a->voice};
    if (a->control == US_SWITCH_NOBODY || a->counting == 0) return v;
    int64_t last = a->heard[a->control] > a->counting ? a->heard[a->control] : a->counting;
    if (now - last <= a->watchdog) return v;
    us_switch_source heir = other(a->control);
    if (a->on_loss == US_LOSS_STOP || (a->on_loss == US_LOSS_PROXY && heir == US_SWITCH_HARDWARE)) {
        v.mode = US_MODE_STOP;
        v.control = US_SWITCH_NOBODY;
        v.is_change = true;
    } else if (usi_authority_is_alive(a, heir, now)) {
        v.mode = heir == US_SWITCH_HARDWARE ? US_MODE_HARDWARE : US_MODE_PROXY;
        v.control = v.voice = heir;
        v.is_change = true;
    }
    if (v.is_change) say_silence(a, a->control, now, v.reason, sizeof v.reason);
    return v;
}

void usi_authority_apply(usi_authority *a, const usi_verdict *verdict, uint64_t least) {
    a->mode = verdict->mode;
    a->control = verdict->control;
    a->voice = verdict->voice;
    a->epoch = a->epoch + 1 > least ? a->epoch + 1 : least;
}
