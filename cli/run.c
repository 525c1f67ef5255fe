// understudy run: steps a world at a pace, shows how it goes, records what was asked for.
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "network.h"
#include "run.h"
#include "understudy/sensing.h"

typedef struct run_options {
    cli_load load;
    double time;  // NaN: not given; so with csv_rate, and NOT_GIVEN with the whole numbers
    const char *rate;
    const char *csv, *values;
    int64_t every;
    double csv_rate;
    int64_t seed, port, max_objects, threads;
    const char *restore, *save, *save_ground, *ground_zone, *record, *address, *token, *users, *tls_cert,
        *tls_key;
    const char *own, *share;
    double exchange, share_timeout;  // NaN: not given
    const char *serial;
    bool is_quiet, show_hash, is_headless, is_offline, is_tls, has_scene_topics;
} run_options;

static const int64_t NOT_GIVEN = INT64_MIN;

// Set by the signal handler; the loop looks at the first between batches. The sender is the process that sent
// the signal, 0 for a key of the terminal.
static volatile sig_atomic_t stop_requested, stop_sender;

static void on_stop(int number, siginfo_t *info, void *context) {
    (void)context;
    stop_sender = info->si_code <= 0 ? (sig_atomic_t)info->si_pid : 0;
    stop_requested = number;
    cli_note_stop();
}

// The first Ctrl-C (or TERM) asks for a clean end, the second one ends at once.
static void catch_signals(void) {
    struct sigaction stop = {.sa_sigaction = on_stop, .sa_flags = (int)SA_RESETHAND | SA_SIGINFO},
                     ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);  // a closed pipe is a write error like any other
    sigaction(SIGXFSZ, &ignore, NULL);  // and so is a file that may not become larger
}

// ---- options ----

// "real", "max" or a number; 0 stands for max.
static int parse_rate(const char *text, double *out_rate) {
    char *end;
    if (!text || strcmp(text, "real") == 0) {
        *out_rate = 1;
    } else if (strcmp(text, "max") == 0) {
        *out_rate = 0;
    } else {
        *out_rate = strtod(text, &end);
        if (end == text || *end || !isfinite(*out_rate) || *out_rate <= 0) {
            return cli_fail(CLI_BAD_INPUT, "understudy run",
                            "write --rate real, --rate max, or a number above 0 such as --rate 2",
                            "--rate: invalid pace \"%s\"", text);
        }
    }
    return CLI_GO_ON;
}

static int check_options(const run_options *options) {
    const char *element = "understudy run";
    if (options->time < 0)
        return cli_fail(CLI_BAD_INPUT, element,
                        "write --time S with S in simulated seconds, for example --time 10",
                        "--time is negative");
    bool has_every = options->every != NOT_GIVEN, has_rate = !isnan(options->csv_rate);
    if (has_every && options->every < 1)
        return cli_fail(CLI_BAD_INPUT, element, "write --every N with N at least 1", "--every is below 1");
    if (options->csv_rate <= 0)
        return cli_fail(CLI_BAD_INPUT, element, "write --csv-rate HZ above 0, for example --csv-rate 100",
                        "--csv-rate is not above 0");
    if (options->port != NOT_GIVEN && (options->port < 0 || options->port > 65535))
        return cli_fail(CLI_BAD_INPUT, element, "write --port N with N from 1 to 65535, or 0 for any",
                        "--port: invalid port %lld", (long long)options->port);
    if (!options->tls_cert != !options->tls_key)
        return cli_fail(CLI_BAD_INPUT, "understudy run", "give both: --tls-cert FILE --tls-key FILE",
                        "a certificate needs its key, and a key its certificate");
    if (options->serial && options->is_offline)
        return cli_fail(CLI_BAD_INPUT, element, "leave out --offline, or --serial",
                        "--serial: robots that are off the network have no serial lines");
    if (options->is_headless && (options->port != NOT_GIVEN || options->address || options->token ||
                                 options->users || options->is_tls || options->tls_cert))
        return cli_fail(
            CLI_BAD_INPUT, element, "leave out --headless, or the others",
            "--port, --address, --token, --users and --tls are about the page, and --headless has none");
    if (options->has_scene_topics && options->is_offline)
        return cli_fail(CLI_BAD_INPUT, element, "leave out --offline, or --scene-topics",
                        "--scene-topics is about the network, and --offline has none");
    if (!options->own && (options->share || !isnan(options->exchange) || !isnan(options->share_timeout)))
        return cli_fail(CLI_BAD_INPUT, element, "add --own A,B,C with the robots of this process",
                        "--share, --exchange and --share-timeout are about a world in several processes");
    if (options->own && options->record)
        return cli_fail(CLI_BAD_INPUT, element,
                        "record what the robots say, with understudy record, or values, with --csv",
                        "--record: a world in several processes cannot be recorded for replay, because what "
                        "the others send is not in the recording");
    if (options->seed < 0 && options->seed != NOT_GIVEN)
        return cli_fail(CLI_BAD_INPUT, element, "write --seed N with N at least 0", "--seed is negative");
    if (options->threads < 1 || options->threads > 256)
        return cli_fail(CLI_BAD_INPUT, element, "write --threads N with N from 1 to 256",
                        "--threads is out of range");
    if (options->max_objects != NOT_GIVEN && (options->max_objects < 0 || options->max_objects > 1000000))
        return cli_fail(CLI_BAD_INPUT, element, "write --max-objects N with N from 0 to 1000000",
                        "--max-objects is out of range");
    if (has_every && has_rate)
        return cli_fail(CLI_BAD_INPUT, element, "give one of the two",
                        "--every and --csv-rate both say how often to record");
    if (options->ground_zone && !options->save_ground)
        return cli_fail(CLI_BAD_INPUT, element, "add --save-ground FILE.tif",
                        "--ground-zone says which part to write, but no file is named");
    if (!options->csv && (has_every || has_rate || options->values)) {
        return cli_fail(CLI_BAD_INPUT, element, "add --csv FILE",
                        "--every, --csv-rate and --values say how to record, but no file is named");
    }
    return CLI_GO_ON;
}

// ---- world ----

static int set_seed(us_spec *spec, int64_t seed) {
    us_world_settings def = *us_spec_view_world(spec);
    // The view's texts belong to the spec: hand over a copy.
    char *name = def.name ? strdup(def.name) : NULL;
    def.name = name;
    def.seed = (uint64_t)seed;
    us_status status = us_spec_set_world(spec, &def);
    free(name);
    return status == US_OK ? CLI_GO_ON
                           : cli_fail(CLI_RUN_FAILED, "understudy run", NULL, "the seed cannot be set: %s",
                                      us_status_text(status));
}

static int restore(us_sim *sim, const char *path) {
    char *bytes;
    size_t length;
    int code = cli_read_file(path, &bytes, &length);
    if (code != CLI_GO_ON) return code;
    us_status status = us_sim_restore(sim, bytes, length);
    free(bytes);
    if (status == US_OK) return CLI_GO_ON;
    return cli_fail(CLI_BAD_INPUT, path,
                    "take a snapshot that --save made with the same scene, parameters and program version",
                    "cannot be restored: %s", us_status_text(status));
}

static int save_ground(const us_sim *sim, const us_spec *spec, const run_options *options, FILE *out) {
    if (us_sim_n_deformable(sim) != 1)
        return cli_fail(CLI_BAD_INPUT, "--save-ground", "give one height-field of soil a bed: bed=\"5 cm\"",
                        "the scene has %d beds of soil, not one", (int)us_sim_n_deformable(sim));
    double zone[4], written[4];
    if (options->ground_zone &&
        sscanf(options->ground_zone, "%lf , %lf , %lf , %lf", &zone[0], &zone[1], &zone[2], &zone[3]) != 4)
        return cli_fail(CLI_BAD_INPUT, "--ground-zone",
                        "write --ground-zone X0,Y0,X1,Y1: metres in the ground's frame",
                        "invalid rectangle \"%s\"", options->ground_zone);
    const us_shape_def *ground = us_spec_view_shape(spec, us_sim_get_deformable(sim, 0).shape);
    us_error err = {0};
    us_status status = us_sim_write_deformable(sim, 0, ground, options->ground_zone ? zone : NULL,
                                               options->save_ground, written, &err);
    if (status)
        return cli_fail(status == US_ERR_IO ? CLI_CANNOT_WRITE : CLI_RUN_FAILED, options->save_ground,
                        err.remedy, "%s", err.message[0] ? err.message : us_status_text(status));
    if (!options->is_quiet)
        fprintf(out, "ground from x %g m, y %g m to x %g m, y %g m, columns of %g m: %s\n", written[0],
                written[1], written[2], written[3], us_sim_get_deformable(sim, 0).spacing,
                options->save_ground);
    return CLI_GO_ON;
}

static int save(us_sim *sim, const char *path) {
    size_t length = 0;
    us_sim_save(sim, NULL, 0, &length);
    void *bytes = cli_allocate(length, 1);
    us_status status = us_sim_save(sim, bytes, length, &length);
    bool is_written = status == US_OK && cli_write_file(path, bytes, length);
    int reason = errno;
    free(bytes);
    if (is_written) return CLI_GO_ON;
    return cli_fail(CLI_CANNOT_WRITE, path, "name a file that can be written, on a disk with space",
                    "snapshot cannot be written: %s",
                    status == US_OK ? strerror(reason) : us_status_text(status));
}

// ---- recordings ----

typedef struct recordings {
    int32_t n;
    cli_recorder *item;
} recordings;

// "a,b,c" to a list; cuts `text` at the commas.
static int32_t split_values(char *text, const char **values, int32_t cap) {
    int32_t n = 0;
    for (char *rest = text, *part; n < cap && (part = strsep(&rest, ",")) != NULL;) {
        part += strspn(part, " ");
        if (part[0]) values[n++] = part;
    }
    return n;
}

static int add_recorder(recordings *all, const cli_recorder_def *def, const us_spec *spec, us_sim *sim) {
    for (int32_t i = 0; i < all->n; i++) {
        if (strcmp(all->item[i].path, def->path) == 0) {
            return cli_fail(CLI_BAD_INPUT, def->path, "give each recording its own file",
                            "two recordings would write to the same file");
        }
    }
    // Counted at once, so that a half-made recorder is closed with the rest.
    return cli_recorder_init(&all->item[all->n++], def, spec, sim);
}

static double ticks_per_row(double rate, double step, const char *what) {
    double ticks = 1 / (rate * step);
    if (ticks < 1 - 1e-9)
        cli_warn("ask for a lower rate, or take a smaller step",
                 "%s: %g rows per second is more than one per step (%g s); every step is written", what, rate,
                 step);
    return ticks;
}

static int open_recordings(recordings *all, const run_options *options, const us_spec *spec, us_sim *sim) {
    int32_t n_record = us_spec_get_counts(spec).n_record;
    double step = us_model_get_step(us_sim_view_model(sim));
    all->item = cli_allocate((size_t)n_record + 1, sizeof *all->item);
    for (int32_t i = 0; i < n_record; i++) {
        const us_record_def *record = us_spec_view_record(spec, i);
        cli_recorder_def def = {
            .path = record->file_name, .n_value = record->n_value, .values = record->values};
        def.ticks_per_row = record->rate > 0 ? ticks_per_row(record->rate, step, record->file_name) : 1;
        def.place = (us_place){record->file, record->line, 0, "record"};
        int code = add_recorder(all, &def, spec, sim);
        if (code != CLI_GO_ON) return code;
    }
    if (!options->csv) return CLI_GO_ON;
    cli_recorder_def def = {.path = options->csv, .with_energy = !options->values};
    def.ticks_per_row = options->every > 0          ? (double)options->every
                        : !isnan(options->csv_rate) ? ticks_per_row(options->csv_rate, step, "--csv-rate")
                                                    : 1;
    def.place.element = "--values";
    enum { MAX_VALUES = 1024 };
    const char **values = cli_allocate(MAX_VALUES, sizeof *values);
    char *text = options->values ? strdup(options->values) : NULL;
    if (text) {
        def.n_value = split_values(text, values, MAX_VALUES);
        def.values = values;
    }
    int code = text && def.n_value == 0
                   ? cli_fail(CLI_BAD_INPUT, "understudy run",
                              "write names with commas between, for example --values elbow.q,energy",
                              "--values names nothing")
                   : add_recorder(all, &def, spec, sim);
    free(text);
    free(values);
    return code;
}

// Writes what is due now. False when a file cannot be written.
static bool record(recordings *all, us_sim *sim, int64_t tick) {
    bool is_good = true;
    for (int32_t i = 0; i < all->n; i++) {
        cli_recorder *recorder = &all->item[i];
        if (recorder->next_tick == tick) cli_recorder_write(recorder, sim);
        is_good &= recorder->failed == 0;
    }
    return is_good;
}

static int64_t next_due(const recordings *all) {
    int64_t next = INT64_MAX;
    for (int32_t i = 0; i < all->n; i++)
        next = all->item[i].next_tick < next ? all->item[i].next_tick : next;
    return next;
}

static int close_recordings(recordings *all, bool is_quiet, FILE *out) {
    int code = CLI_GO_ON;
    for (int32_t i = 0; i < all->n; i++) {
        cli_recorder *recorder = &all->item[i];
        bool was_open = recorder->file >= 0;
        int closing = cli_recorder_fini(recorder);
        if (closing != CLI_GO_ON) {
            code = closing;
        } else if (was_open && !is_quiet) {
            fprintf(out, "wrote %s: %lld rows, %d columns\n", recorder->path, (long long)recorder->n_row,
                    (int)recorder->n_column);
        }
    }
    free(all->item);
    *all = (recordings){0};
    return code;
}

// ---- the loop ----

// Steps are looked at so often within a batch, so that one whose steps have become slow does not last for
// long.
enum { LOOKS_PER_BATCH = 8 };
static const int64_t BATCH_MOST_NS = 10000000, SHOW_EVERY_NS = 100000000, FLUSH_EVERY_NS = 1000000000;
static const double MAX_WAIT = 0.02;  // s

typedef struct loop {
    us_world *world;
    us_view *view;
    us_scene_topics *scene;
    us_split *split;
    us_sim *sim;
    recordings *all;
    us_pace *pace;
    cli_status *status;
    us_pace_request request;
    int64_t tick_before;  // the commands
    int64_t due_tick;     // of the next row
    bool are_lidars_held;
    us_view_pace shown;  // on the page
    int64_t shown_ns, shown_done;
    double shown_seconds;
} loop;

static int write_rows(loop *l) {
    if (!record(l->all, l->sim, us_sim_get_tick(l->sim))) return CLI_CANNOT_WRITE;
    l->due_tick = next_due(l->all);
    return CLI_GO_ON;
}

// Does n steps, or as many as fit into a batch's time. *out_done is how many, *out_outside the time that was
// spent on rows.
static int do_steps(loop *l, int64_t n, int64_t begin, int64_t *out_done, int64_t *out_outside) {
    int64_t tick = us_sim_get_tick(l->sim), look = n / LOOKS_PER_BATCH + 1, done = 0;
    int code = CLI_GO_ON;
    *out_outside = 0;
    while (done < n && code == CLI_GO_ON) {
        // To the next row, or the next look at the clock, without looking left or right.
        int64_t run = n - done < look ? n - done : look, i = 0;
        if (run > l->due_tick - tick) run = l->due_tick - tick;
        us_error err;
        us_status status = US_OK;
        bool is_ready = true;
        while (i < run && is_ready && !status) {
            // Other processes that have part of the world may not have come so far: then there is time for
            // other things.
            if (l->split) status = us_split_wait(l->split, MAX_WAIT, &is_ready, &err);
            if (!status && is_ready) status = us_world_step(l->world, &err);
            i += !status && is_ready;
        }
        tick += i;
        done += i;
        if (status) {
            cli_status_clear(l->status);
            cli_print_error(&err);
            code = CLI_RUN_FAILED;
            break;
        }
        int64_t now = us_clock_ns();
        if (tick == l->due_tick) {
            code = write_rows(l);
            int64_t after = us_clock_ns();
            *out_outside += after - now;
            now = after;
        }
        if (now - begin > BATCH_MOST_NS || !is_ready) break;
    }
    *out_done = done;
    return code;
}

// What a command has asked for: another pace, another world, another time.
static int heed(loop *l) {
    us_pace_request before = l->request;
    l->request = us_world_get_pace_request(l->world);
    if (l->request.change == before.change) return CLI_GO_ON;
    int64_t tick = us_sim_get_tick(l->sim);
    bool has_jumped = tick != l->tick_before;
    if (l->request.rate != before.rate || l->request.is_paused != before.is_paused || has_jumped)
        us_pace_restart(l->pace, l->request.rate, us_model_get_step(us_sim_view_model(l->sim)));
    for (int32_t i = 0; i < l->all->n; i++)
        cli_recorder_follow(&l->all->item[i], l->sim);
    l->due_tick = next_due(l->all);
    return l->due_tick == tick ? write_rows(l) : CLI_GO_ON;
}

// How it goes of late, for the page.
static void show(loop *l, int64_t now) {
    double wall = 1e-9 * (double)(now - l->shown_ns);
    int64_t n = l->pace->n_done - l->shown_done;
    if (wall > 0.25) {
        l->shown.actual = (double)n * us_model_get_step(us_sim_view_model(l->sim)) / wall;
        if (n > 0) l->shown.step_us = 1e6 * (l->status->step_seconds - l->shown_seconds) / (double)n;
        l->shown_ns = now;
        l->shown_done = l->pace->n_done;
        l->shown_seconds = l->status->step_seconds;
    }
    l->shown.n_missed = l->pace->n_missed;
    l->shown.worst_late = l->pace->worst_late;
    us_view_show(l->view, &l->shown);
    us_scene_topics_show(l->scene);
    if (now - l->status->last_ns >= SHOW_EVERY_NS) cli_status_show(l->status, l->sim, l->pace, now);
}

// A run that keeps a pace does not wait for frames of lidars: while it is behind they begin no new ones.
// Frames that take longer than a second cost little at a time, and are kept.
static void hold_lidars(loop *l) {
    static const double BEHIND = 0.05, CAUGHT_UP = 0.01;  // s
    const us_model *model = us_sim_view_model(l->sim);
    const double lag = l->request.rate > 0 ? us_pace_lag(l->pace) : 0;
    const bool is_held = lag > (l->are_lidars_held ? CAUGHT_UP : BEHIND);
    int64_t n = 0;
    for (int32_t i = 0; i < us_model_n_lidar(model); i++) {
        const us_lidar lidar = {i};
        us_lidar_frame frame;
        const us_sensor sensor = us_model_find_sensor(model, us_model_lidar_robot(model, lidar),
                                                      us_model_lidar_name(model, lidar));
        if (is_held != l->are_lidars_held && us_sim_get_sensor_parameter(l->sim, sensor, "rate") >= 1)
            us_sim_hold_lidar(l->sim, lidar, is_held);
        us_sim_get_lidar_frame(l->sim, lidar, false, &frame, NULL, 0);
        n += frame.n_dropped;
    }
    l->are_lidars_held = is_held;
    l->status->n_dropped = l->shown.n_dropped = n;
}

// Steps until `goal` steps are done, a signal came, a step or a write failed. Returns CLI_GO_ON or the exit
// code.
static int step_until(loop *l, int64_t goal) {
    us_world_poll(l->world);
    l->request = us_world_get_pace_request(l->world);
    l->shown_ns = us_clock_ns();
    int64_t flushed_ns = l->shown_ns;
    int code = write_rows(l);
    while (code == CLI_GO_ON && l->pace->n_done < goal && !stop_requested) {
        l->tick_before = us_sim_get_tick(l->sim);
        us_world_poll(l->world);
        code = heed(l);
        if (code != CLI_GO_ON) break;
        bool is_paused = l->request.is_paused;
        if (!is_paused) hold_lidars(l);
        int64_t n_asked = us_world_get_pace_request(l->world).n_step;
        int64_t n = !is_paused ? us_pace_due(l->pace) : n_asked < l->pace->batch ? n_asked : l->pace->batch;
        if (is_paused && n == 0) us_pace_rest();
        if (n > goal - l->pace->n_done) n = goal - l->pace->n_done;
        int64_t begin = us_clock_ns(), outside = 0, done = 0;
        if (n > 0) code = do_steps(l, n, begin, &done, &outside);
        int64_t end = us_clock_ns();
        l->status->step_seconds += 1e-9 * (double)(end - begin - outside);
        if (is_paused) {
            l->pace->n_done += done;  // no pace holds for them
        } else {
            us_pace_done(l->pace, done, begin, end);
        }
        show(l, end);
        // A paced run is looked at while it runs: its files should not lag far behind.
        if (l->request.rate > 0 && end - flushed_ns >= FLUSH_EVERY_NS) {
            for (int32_t i = 0; i < l->all->n; i++)
                cli_recorder_flush(&l->all->item[i]);
            flushed_ns = end;
        }
    }
    return code;
}

static void print_start(const run_options *options, const cli_network *network, double rate, double goal) {
    const us_model *model = us_world_view_model(network->world);
    us_model_counts n = us_model_get_counts(model);
    char pace[32] = "as fast as possible", length[48] = "until Ctrl-C";
    if (rate == 1) {
        snprintf(pace, sizeof pace, "real time");
    } else if (rate > 0) {
        snprintf(pace, sizeof pace, "%g x real time", rate);
    }
    if (isfinite(goal)) snprintf(length, sizeof length, "for %g s", goal);
    fprintf(stderr, "%s: %d degrees of freedom, %d constraint rows, %s at %g s, %s, %s\n", options->load.file,
            (int)n.n_v, (int)n.n_row, us_integrator_name(us_model_get_integrator(model)),
            us_model_get_step(model), pace, length);
    if (!network->bus) return;
    int32_t n_robot = us_proxy_n_robot(us_world_get_proxy(network->world));
    fprintf(stderr, "%d robot%s on the network: %s, domain %d; \"understudy topics\" lists what is said\n",
            (int)n_robot, n_robot == 1 ? "" : "s", us_bus_vendor(network->bus),
            (int)us_bus_domain(network->bus));
    for (int32_t i = 0; i < n_robot; i++) {
        const us_proxy *proxy = us_world_get_proxy(network->world);
        int32_t port = us_proxy_motor_port(proxy, i, NULL);
        if (port) fprintf(stderr, "motors of %s: port %d\n", us_proxy_robot_name(proxy, i), (int)port);
        const char *lines = us_proxy_serial_lines(proxy, i);
        if (lines[0]) fprintf(stderr, "serial lines of %s: %s\n", us_proxy_robot_name(proxy, i), lines);
    }
}

static int serve(const run_options *options, cli_network *network, FILE *out) {
    if (options->is_headless) return CLI_GO_ON;
    us_view_def def = us_view_def_default();
    // A port that was asked for is meant; the usual one is only a preference.
    if (options->port != NOT_GIVEN) {
        def.port = (int32_t)options->port;
        def.search_free_port = false;
    }
    if (options->address) def.address = options->address;
    def.token = options->token;
    def.users = options->users;
    def.enable_tls = options->is_tls || options->tls_cert;
    def.tls_cert = options->tls_cert;
    def.tls_key = options->tls_key;
    return cli_network_serve(network, &def, out);
}

static int split_world(const run_options *options, cli_network *network) {
    us_split_def def = us_split_def_default();
    def.own = options->own;
    if (options->share) def.share = options->share;
    if (!isnan(options->exchange)) def.exchange = options->exchange;
    if (!isnan(options->share_timeout)) def.timeout = options->share_timeout;
    return cli_network_split(network, &def);
}

static int run_world(const run_options *options, double rate, const us_spec *spec, cli_network *network) {
    us_sim *sim = us_world_get_sim(network->world);
    double step = us_model_get_step(us_sim_view_model(sim));
    int code = options->restore ? restore(sim, options->restore) : CLI_GO_ON;
    if (code != CLI_GO_ON) return code;
    double duration = us_spec_view_world(spec)->duration;
    double span = !isnan(options->time) ? options->time : duration > 0 ? duration : INFINITY;
    int64_t goal = span / step < 9e18 ? (int64_t)llround(span / step) : INT64_MAX;

    // From here on a signal ends the run, not the program: files that exist will be whole.
    catch_signals();
    recordings all = {0};
    code = open_recordings(&all, options, spec, sim);
    if (code == CLI_GO_ON && options->own) code = split_world(options, network);
    if (code == CLI_GO_ON && options->record) code = cli_network_record(network, options->record);
    if (code == CLI_GO_ON && !options->is_offline) code = cli_network_connect(network);
    // Where a recording goes to standard output, nothing else may.
    FILE *out = stdout;
    for (int32_t i = 0; i < all.n; i++)
        out = strcmp(all.item[i].path, "-") == 0 ? stderr : out;
    if (code == CLI_GO_ON) code = serve(options, network, stderr);
    if (code == CLI_GO_ON && options->has_scene_topics) code = cli_network_show_scene(network);
    cli_status status = {0};
    us_pace pace = {0};
    if (code == CLI_GO_ON) {
        network->is_live = !options->is_quiet && cli_is_terminal(stderr);
        if (network->is_live) print_start(options, network, rate, span);
        cli_status_start(&status, sim, network->is_live, isfinite(span) ? span : 0);
        pace = us_pace_start(rate, step);
        loop l = {.world = network->world,
                  .view = network->view,
                  .scene = network->scene,
                  .split = network->split,
                  .sim = sim,
                  .all = &all,
                  .pace = &pace,
                  .status = &status};
        code = step_until(&l, goal);
        cli_status_clear(&status);
        network->is_live = false;
        // Who did not end it wants to know who did: the exit code is that of a run that came to its end.
        if (!options->is_quiet && stop_sender)
            fprintf(stderr, "process %d sent signal %d: the run ends\n", (int)stop_sender,
                    (int)stop_requested);
        if (!options->is_quiet) cli_status_summary(&status, sim, &pace, out);
        if (options->show_hash) fprintf(out, "hash %016llx\n", (unsigned long long)us_sim_hash(sim));
    }
    int closing = close_recordings(&all, options->is_quiet || code != CLI_GO_ON, out);
    if (code == CLI_GO_ON) code = closing;
    if (options->save && (code == CLI_GO_ON || code == CLI_RUN_FAILED)) {
        // Also after a failed step: the last whole tick is where to look for the reason.
        int saving = save(sim, options->save);
        if (code == CLI_GO_ON) code = saving;
    }
    if (options->save_ground && (code == CLI_GO_ON || code == CLI_RUN_FAILED)) {
        int saving = save_ground(sim, us_world_view_spec(network->world), options, out);
        if (code == CLI_GO_ON) code = saving;
    }
    return code == CLI_GO_ON ? CLI_OK : code;
}

static int parse_options(const cli_command *command, int argc, char **argv, run_options *o) {
    const cli_option table[] = {
        {"time", CLI_NUMBER, &o->time, "S",
         "simulated seconds to run (the scene's duration, or until Ctrl-C)"},
        {"rate", CLI_TEXT, &o->rate, "real|max|N",
         "pace: real time, as fast as possible, N times real time (real)"},
        {"csv", CLI_TEXT, &o->csv, "FILE",
         "write time, every joint's q and v, and energy; - is standard output"},
        {"values", CLI_TEXT, &o->values, "A,B,C",
         "write these values instead, for example elbow.q,tool.z,energy"},
        {"every", CLI_INTEGER, &o->every, "N", "a row every N steps (1)"},
        {"csv-rate", CLI_NUMBER, &o->csv_rate, "HZ", "a row HZ times per simulated second"},
        {"record", CLI_TEXT, &o->record, "FILE",
         "write every sample and command, and the state's hash at every tick, to this MCAP file"},
        {"offline", CLI_FLAG, &o->is_offline, NULL, "keep the robots off the network"},
        {"serial", CLI_TEXT, &o->serial, "DIRECTORY",
         "serial lines of robots with <motors>, as names in this directory: link and device faces"},
        {"scene-topics", CLI_FLAG, &o->has_scene_topics, NULL,
         "ground, objects, ruts and contacts as topics, for RViz and other viewers"},
        {"own", CLI_TEXT, &o->own, "A,B,C",
         "simulate these robots and objects alone; other processes have the rest of the world"},
        {"share", CLI_TEXT, &o->share, "NAME", "what the processes of one world have in common (world)"},
        {"exchange", CLI_NUMBER, &o->exchange, "S",
         "simulated seconds from one exchange of their states to the next (0.01)"},
        {"share-timeout", CLI_NUMBER, &o->share_timeout, "S",
         "seconds that another process may be silent; 0: for ever (60)"},
        {"save", CLI_TEXT, &o->save, "SNAP", "write the state at the end to this file"},
        {"save-ground", CLI_TEXT, &o->save_ground, "FILE.tif",
         "write the ground with its ruts at the end as a GeoTIFF: height, and how it has changed"},
        {"ground-zone", CLI_TEXT, &o->ground_zone, "X0,Y0,X1,Y1",
         "of --save-ground: this rectangle, m (all; of a site what has changed)"},
        {"restore", CLI_TEXT, &o->restore, "SNAP", "begin with the state in this file"},
        {"hash", CLI_FLAG, &o->show_hash, NULL, "print the hash of the state at the end"},
        {"seed", CLI_INTEGER, &o->seed, "N", "seed of every random number, instead of the scene's"},
        {"threads", CLI_INTEGER, &o->threads, "N",
         "threads that share a step: islands of contacts, beams of lidars (1); the result is the same"},
        {"max-objects", CLI_INTEGER, &o->max_objects, "N",
         "objects that commands may add to the world (100)"},
        {"quiet", CLI_FLAG, &o->is_quiet, NULL, "no status line and no summary"},
        {"headless", CLI_FLAG, &o->is_headless, NULL, "no page"},
        {"port", CLI_INTEGER, &o->port, "N", "port of the page (8080, or the next that is free); 0: any"},
        {"address", CLI_TEXT, &o->address, "A",
         "address of the page (127.0.0.1: this computer alone); 0.0.0.0: every network"},
        {"token", CLI_TEXT, &o->token, "T",
         "what a page on another address needs to control; made up when not given"},
        {"users", CLI_TEXT, &o->users, "FILE",
         "registered users of the page and their roles: lines of NAME ROLE HASH"},
        {"tls", CLI_FLAG, &o->is_tls, NULL,
         "https for the page, with a certificate that is made for this run"},
        {"tls-cert", CLI_TEXT, &o->tls_cert, "FILE", "https with this certificate (PEM)"},
        {"tls-key", CLI_TEXT, &o->tls_key, "FILE", "and its private key"},
        CLI_LOAD_OPTIONS(o->load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o->load.file);
    return code == CLI_GO_ON ? check_options(o) : code;
}

static int run(const cli_command *command, int argc, char **argv) {
    run_options o = {.time = NAN,
                     .csv_rate = NAN,
                     .exchange = NAN,
                     .share_timeout = NAN,
                     .every = NOT_GIVEN,
                     .seed = NOT_GIVEN,
                     .port = NOT_GIVEN,
                     .max_objects = NOT_GIVEN,
                     .threads = 1};
    int code = parse_options(command, argc, argv, &o);
    double rate;
    if (code == CLI_GO_ON) code = parse_rate(o.rate, &rate);
    if (code != CLI_GO_ON) return code;

    cli_world world;
    o.load.is_quiet = o.is_quiet;
    code = cli_load_spec(&o.load, US_BASE_FIXED, &world);
    if (code == CLI_GO_ON && o.seed != NOT_GIVEN) code = set_seed(world.spec, o.seed);
    cli_network network = {.is_quiet = o.is_quiet, .serial = o.serial, .n_thread = (int32_t)o.threads};
    if (code == CLI_GO_ON)
        code = cli_network_create(&network, world.spec, &o.load, rate,
                                  o.max_objects == NOT_GIVEN ? -1 : (int32_t)o.max_objects);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        code = run_world(&o, rate, world.spec, &network);
    }
    int closing = cli_network_close(&network);
    if (code == CLI_OK && closing != CLI_GO_ON) code = closing;
    cli_world_fini(&world);
    return code;
}

const cli_command cli_command_run = {
    .name = "run",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "run a scene or a robot file",
    .about =
        "Prints the address of its page: open it in a browser to see the world, to drive and to change it.\n"
        "Without --time and without a duration in the scene it runs until Ctrl-C. Missed deadlines are "
        "counted and shown.\n"
        "Recordings that the scene asks for are written relative to the current directory. Numbers carry 17 "
        "digits.\n"
        "With --restore, --time counts from the restored state.\n"
        "With --own several processes simulate one world: every robot of the scene has one owner among "
        "them.\n"
        "\n"
        "Examples:\n"
        "  understudy run scenes/default.xml\n"
        "  understudy run scenes/default.xml --time 10 --rate max --csv out.csv --csv-rate 100\n"
        "  understudy run scenes/convoy.xml --own r0,r1,r2,r3,r4 & understudy run scenes/convoy.xml --own "
        "r5,r6,r7,r8,r9\n"
        "  understudy run scenes/default.xml --time 1 --rate max --save one.snap\n"
        "  understudy run scenes/default.xml --time 1 --rate max --restore one.snap --hash\n",
    .run = run,
};
