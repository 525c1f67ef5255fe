// Diagnostics of a robot: its faults, its commands, its radio link.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "proxy/cameras.h"
#include "proxy/proxy__sample.h"

static void add_value(us_msg_diagnostic_status *status, const char *key, char *buf, size_t cap,
                      const char *format, ...) US_PRINTF(5, 6);
static void add_value(us_msg_diagnostic_status *status, const char *key, char *buf, size_t cap,
                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(buf, cap, format, args);
    va_end(args);
    status->values._buffer[status->values._length++] = (us_msg_key_value){usi_text(key), buf};
}

void usi_sample_diagnostics(usi_sampling *w) {
    const usi_robot_state *s = w->s;
    const usi_firmware_state *f = w->firmware;
    const usi_robot *r = w->r;
    const double step = w->p->step;
    enum { N_VALUE = 13, TEXT = 200, FAULTS = 1024 };
    us_msg_diagnostic_array m = {0};
    us_msg_diagnostic_status status = {0};
    us_msg_key_value values[N_VALUE];
    char buf[N_VALUE][TEXT], faults[FAULTS], name[128];
    int32_t n_fault = usi_robot_list_faults(r, w->sim, s, faults, sizeof faults);
    // A refusal is a matter for the operator for ten seconds.
    double age = f->refused_tick < 0 ? INFINITY : (double)(us_sim_get_tick(w->sim) - f->refused_tick) * step;
    int64_t n_dropped = usi_mailbox_n_dropped(r->mailbox);
    // So is a computer that has started anew: its commands of before are lost.
    double up = (double)(us_sim_get_tick(w->sim) - s->faults.boot_tick) * step;
    bool is_new = s->faults.n_boot > 0 && up < 10;
    bool is_empty = r->model->battery.i >= 0 && us_sim_get_battery(w->sim, r->model->battery).energy == 0;
    snprintf(name, sizeof name, "%s: commands", r->name[0] ? r->name : "robot");
    status.level = is_empty || n_fault > 0 ? 2 : is_new || age < 10 || n_dropped > 0 ? 1 : 0;
    status.name = name;
    status.message = is_empty      ? usi_text("the battery is empty")
                     : n_fault > 0 ? usi_text("it has faults")
                     : is_new      ? usi_text("the computer has started anew: commands and odometry are lost")
                     : age < 10    ? usi_text(f->refusal)
                     : n_dropped > 0 ? usi_text("commands came too fast and were dropped")
                                     : usi_text("ok");
    status.hardware_id = usi_text(r->name);
    status.values._buffer = values;
    static const char *const motions[] = {"as the scene says", "stopped", "body velocity", "arc", "turn",
                                          "navigating",        "joints"};
    add_value(&status, "motion", buf[0], TEXT, "%s", motions[f->motion]);
    add_value(&status, "taken", buf[1], TEXT, "%lld", (long long)f->n_command);
    add_value(&status, "refused", buf[2], TEXT, "%lld", (long long)f->n_refused);
    add_value(&status, "last refusal", buf[3], TEXT, "%s", f->refusal);
    add_value(&status, "dropped", buf[4], TEXT, "%lld", (long long)n_dropped);
    add_value(&status, "safe stops", buf[5], TEXT, "%lld", (long long)f->n_timeout);
    add_value(&status, "uplink lost", buf[6], TEXT, "%lld", (long long)(s->uplink.n_lost + s->uplink.n_full));
    add_value(&status, "downlink lost", buf[7], TEXT, "%lld",
              (long long)(r->downlink_head.n_lost + r->downlink_head.n_full));
    add_value(&status, "unsent", buf[8], TEXT, "%lld",
              (long long)(w->p->n_too_long + (w->p->outbox ? usi_outbox_n_unsent(w->p->outbox) : 0)));
    add_value(&status, "boots", buf[9], TEXT, "%lld", (long long)s->faults.n_boot);
    add_value(&status, "goes first", buf[10], TEXT, "%s", usi_source_in_force(r, s, us_sim_get_tick(w->sim)));
    if (w->p->cameras)
        add_value(&status, "pictures left out", buf[11], TEXT, "%lld",
                  (long long)usi_cameras_n_dropped(w->p->cameras));
    status.values._buffer[status.values._length++] =
        (us_msg_key_value){usi_text("faults"), n_fault > 0 ? faults : usi_text("none")};
    usi_sampling_head(w, &m.header, "");
    m.status._buffer = &status;
    m.status._length = m.status._maximum = 1;
    usi_sampling_send(w, &m);
}
