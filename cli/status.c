// The live line of a run, and the line that remains after it.
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "run.h"

static double energy_of(us_sim *sim) {
    us_energy energy = us_sim_get_energy(sim);
    return energy.kinetic + energy.potential;
}

void cli_status_start(cli_status *status, us_sim *sim, bool is_live, double goal) {
    *status = (cli_status){.is_live = is_live, .goal = goal};
    status->start_energy = energy_of(sim);
    status->has_rows = us_model_get_counts(us_sim_view_model(sim)).n_row > 0;
    status->start_ns = status->last_ns = us_clock_ns();
}

static int width_of_terminal(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

// A line that grows until it is full.
typedef struct line {
    char text[512];
    size_t n;
} line;

US_PRINTF(2, 3) static void append(line *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->n, sizeof out->text - out->n, format, args);
    va_end(args);
    if (n > 0) out->n += (size_t)n;
    if (out->n >= sizeof out->text) out->n = sizeof out->text - 1;
}

// Microseconds and below read best as they are; a step of milliseconds should not.
static void append_step_time(line *out, double seconds) {
    if (seconds < 1e-3) {
        append(out, "%.3g us", 1e6 * seconds);
    } else {
        append(out, "%.3g ms", 1e3 * seconds);
    }
}

static void append_duration(line *out, double seconds) {
    if (!(seconds < 359999)) {
        append(out, "--:--");
        return;
    }
    int s = (int)ceil(seconds);
    if (s >= 3600) {
        append(out, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    } else {
        append(out, "%d:%02d", s / 60, s % 60);
    }
}

// " 43 % [####.....]" in the room that is left; the bar only where it says something.
static void append_bar(line *out, double part, int room) {
    static const char full[] = "########################", empty[] = "........................";
    int length = room - 10 < (int)sizeof full - 1 ? room - 10 : (int)sizeof full - 1;
    if (part > 1) part = 1;
    if (room >= 7) append(out, "  %3.0f %%", 100 * part);
    if (length < 5) return;
    int n = (int)(part * length);
    append(out, " [%.*s%.*s]", n, full, length - n, empty);
}

void cli_status_show(cli_status *status, us_sim *sim, const us_pace *pace, int64_t now_ns) {
    double wall = 1e-9 * (double)(now_ns - status->last_ns);
    int64_t n_step = pace->n_done - status->last_step;
    double inside = status->step_seconds - status->last_step_seconds;
    status->last_ns = now_ns;
    status->last_step = pace->n_done;
    status->last_step_seconds = status->step_seconds;
    if (!status->is_live) return;

    double time = us_sim_get_time(sim), step = us_model_get_step(us_sim_view_model(sim)),
           energy = energy_of(sim);
    double speed = wall > 0 ? (double)n_step * step / wall : 0;
    // What matters most comes first: a narrow terminal cuts the end off.
    line out = {.n = 0};
    append(&out, "t %.2f s", time);
    append(&out, speed < 10 ? "  %.2fx" : "  %.0fx", speed);
    if (pace->n_missed > 0) append(&out, " (%lld late)", (long long)pace->n_missed);
    if (status->n_dropped > 0) append(&out, " (%lld frames left out)", (long long)status->n_dropped);
    if (n_step > 0) {
        append(&out, "  step ");
        append_step_time(&out, inside / (double)n_step);
    }
    append(&out, "  energy %.6g J (%+.2g)", energy, energy - status->start_energy);
    if (status->goal > 0) {
        append(&out, "  ");
        append_duration(&out, speed > 0 ? (status->goal - (double)pace->n_done * step) / speed : INFINITY);
        append(&out, " left");
    }
    if (status->has_rows) append(&out, "  closure %.2g", us_sim_get_closure(sim));
    int width = width_of_terminal() - 1;
    if (status->goal > 0) append_bar(&out, (double)pace->n_done * step / status->goal, width - (int)out.n);
    fprintf(stderr, "\r%.*s\033[K", width, out.text);
    fflush(stderr);
}

void cli_status_clear(const cli_status *status) {
    if (status->is_live) fputs("\r\033[K", stderr);
}

// Islands of contacts that needed more than their own method.
static void append_fallbacks(line *text, us_solver_counts n) {
    const struct {
        int64_t n;
        const char *how;
    } by[] = {{n.n_hardened, "hardened step by step"},
              {n.n_shortened, "not solved, and held from gaining energy"},
              {n.n_swept, "swept in place of solved directly"},
              {n.n_compliant, "not rigid but compliant"}};
    const char *lead = "; islands of contacts: ";
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        if (by[i].n == 0) continue;
        append(text, "%s%lld of %lld %s", lead, (long long)by[i].n, (long long)n.n_island, by[i].how);
        lead = ", ";
    }
}

void cli_status_summary(const cli_status *status, us_sim *sim, const us_pace *pace, FILE *out) {
    double wall = 1e-9 * (double)(us_clock_ns() - status->start_ns);
    int64_t n = pace->n_done;
    // Time may have been set back on the way: what was run is what was stepped.
    double time = us_sim_get_time(sim), span = (double)n * us_model_get_step(us_sim_view_model(sim)),
           energy = energy_of(sim);
    line text = {.n = 0};
    append(&text, "ran %.9g s (%lld steps) to t = %.9g s in %.3g s: %.3gx real time", span, (long long)n,
           time, wall, wall > 0 ? span / wall : 0);
    if (n > 0) {
        append(&text, ", step ");
        append_step_time(&text, status->step_seconds / (double)n);
    }
    append(&text, "; energy %.9g J, change %+.3g J", energy, energy - status->start_energy);
    if (status->has_rows) append(&text, "; closure %.3g", us_sim_get_closure(sim));
    if (pace->rate > 0) {
        append(&text, "; %lld missed deadlines", (long long)pace->n_missed);
        if (pace->n_missed > 0) append(&text, " (worst %.3g ms late)", 1e3 * pace->worst_late);
        if (pace->slipped > 0) append(&text, ", schedule slipped by %.3g s", pace->slipped);
    }
    if (status->n_dropped > 0)
        append(&text, "; %lld frames of lidars left out", (long long)status->n_dropped);
    int64_t n_wait = us_sim_get_paging(sim).n_wait;
    if (n_wait > 0)
        append(&text, "; %lld step%s waited for ground to be read", (long long)n_wait,
               n_wait == 1 ? "" : "s");
    append_fallbacks(&text, us_sim_get_solver_counts(sim));
    fprintf(out, "%s\n", text.text);
}
