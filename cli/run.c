// understudy run: steps a world at a pace, shows how it goes, records what was asked for.
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "network.h"
#include "run.h"

typedef struct run_options {
    cli_load load;
    double time;  // NaN: not given; so with csv_rate, and NOT_GIVEN with the whole numbers
    const char *rate;
    const char *csv, *values;
    int64_t every;
    double csv_rate;
    int64_t seed;
    const char *restore, *save, *record;
    bool is_quiet, show_hash, is_headless, is_offline;
} run_options;

static const int64_t NOT_GIVEN = INT64_MIN;

// Set by the signal handler; the loop looks at it between batches.
static volatile sig_atomic_t stop_requested;

static void on_stop(int number) {
    (void)number;
    stop_requested = 1;
}

// The first Ctrl-C (or TERM) asks for a clean end, the second one ends at once.
static void catch_signals(void) {
    struct sigaction stop = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND}, ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);  // a closed pipe is a write error like any other
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
            return cli_fail(CLI_BAD_INPUT, "understudy run", "write --rate real, --rate max, or a number above 0 such as --rate 2",
                            "--rate: \"%s\" is no pace", text);
        }
    }
    return CLI_GO_ON;
}

static int check_options(const run_options *options) {
    const char *element = "understudy run";
    if (options->time < 0)
        return cli_fail(CLI_BAD_INPUT, element, "write --time S with S in simulated seconds, for example --time 10", "--time is negative");
    bool has_every = options->every != NOT_GIVEN, has_rate = !isnan(options->csv_rate);
    if (has_every && options->every < 1) return cli_fail(CLI_BAD_INPUT, element, "write --every N with N at least 1", "--every is below 1");
    if (options->csv_rate <= 0)
        return cli_fail(CLI_BAD_INPUT, element, "write --csv-rate HZ above 0, for example --csv-rate 100", "--csv-rate is not above 0");
    if (options->seed < 0 && options->seed != NOT_GIVEN)
        return cli_fail(CLI_BAD_INPUT, element, "write --seed N with N at least 0", "--seed is negative");
    if (has_every && has_rate) return cli_fail(CLI_BAD_INPUT, element, "give one of the two", "--every and --csv-rate both say how often to record");
    if (!options->csv && (has_every || has_rate || options->values)) {
        return cli_fail(CLI_BAD_INPUT, element, "add --csv FILE", "--every, --csv-rate and --values say how to record, but no file is named");
    }
    return CLI_GO_ON;
}

// ---- world ----

static int set_seed(us_spec *spec, int64_t seed) {
    us_world_def def = *us_spec_view_world(spec);
    // The view's texts belong to the spec: hand over a copy.
    char *name = def.name ? strdup(def.name) : NULL;
    def.name = name;
    def.seed = (uint64_t)seed;
    us_status status = us_spec_set_world(spec, &def);
    free(name);
    return status == US_OK ? CLI_GO_ON : cli_fail(CLI_RUN_FAILED, "understudy run", NULL, "the seed cannot be set: %s", us_status_text(status));
}

static int restore(us_sim *sim, const char *path) {
    char *bytes;
    size_t length;
    int code = cli_read_file(path, &bytes, &length);
    if (code != CLI_GO_ON) return code;
    us_status status = us_sim_restore(sim, bytes, length);
    free(bytes);
    if (status == US_OK) return CLI_GO_ON;
    return cli_fail(CLI_BAD_INPUT, path, "take a snapshot that --save made with the same scene, parameters and program version",
                    "cannot be restored: %s", us_status_text(status));
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
    return cli_fail(CLI_CANNOT_WRITE, path, "name a file that can be written, on a disk with space", "snapshot cannot be written: %s",
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
            return cli_fail(CLI_BAD_INPUT, def->path, "give each recording its own file", "two recordings would write to the same file");
        }
    }
    // Counted at once, so that a half-made recorder is closed with the rest.
    return cli_recorder_init(&all->item[all->n++], def, spec, sim);
}

static double ticks_per_row(double rate, double step, const char *what) {
    double ticks = 1 / (rate * step);
    if (ticks < 1 - 1e-9)
        cli_warn("ask for a lower rate, or take a smaller step", "%s: %g rows per second is more than one per step (%g s); every step is written",
                 what, rate, step);
    return ticks;
}

static int open_recordings(recordings *all, const run_options *options, const us_spec *spec, us_sim *sim) {
    int32_t n_record = us_spec_get_counts(spec).n_record;
    double step = us_model_get_step(us_sim_view_model(sim));
    all->item = cli_allocate((size_t)n_record + 1, sizeof *all->item);
    for (int32_t i = 0; i < n_record; i++) {
        const us_record_def *record = us_spec_view_record(spec, i);
        cli_recorder_def def = {.path = record->file_name, .n_value = record->n_value, .values = record->values};
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
    int code = text && def.n_value == 0 ? cli_fail(CLI_BAD_INPUT, "understudy run",
                                                   "write names with commas between, for example --values elbow.q,energy", "--values names nothing")
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
    for (int32_t i = 0; i < all->n; i++) next = all->item[i].next_tick < next ? all->item[i].next_tick : next;
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
            fprintf(out, "wrote %s: %lld rows, %d columns\n", recorder->path, (long long)recorder->n_row, (int)recorder->n_column);
        }
    }
    free(all->item);
    *all = (recordings){0};
    return code;
}

// ---- the loop ----

// Steps until `goal` steps are done, a signal came, a step or a write failed. Returns CLI_GO_ON or the exit code.
static int step_until(us_sim *sim, us_proxy *proxy, int64_t goal, recordings *all, cli_pace *pace, cli_status *status) {
    // A paced run is looked at while it runs: its files should not lag far behind.
    const int64_t show_every_ns = 100000000, flush_every_ns = 1000000000;
    int64_t flushed_ns = cli_now_ns(), tick = us_sim_get_tick(sim);
    if (!record(all, sim, tick)) return CLI_CANNOT_WRITE;
    us_proxy_publish(proxy, sim);
    int64_t due_tick = next_due(all);
    int code = CLI_GO_ON;
    while (code == CLI_GO_ON && pace->n_done < goal && !stop_requested) {
        int64_t n = cli_pace_due(pace);
        if (n > goal - pace->n_done) n = goal - pace->n_done;
        int64_t begin = cli_now_ns(), outside = 0, done = 0;
        while (done < n && code == CLI_GO_ON) {
            // To the next row without looking left or right.
            int64_t run = n - done < due_tick - tick ? n - done : due_tick - tick;
            int64_t i = 0;
            while (i < run && us_sim_step(sim, NULL) == US_OK) {
                us_proxy_publish(proxy, sim);
                i++;
            }
            tick += i;
            done += i;
            if (i < run) {
                cli_status_clear(status);
                cli_print_error(us_sim_view_error(sim));
                code = CLI_RUN_FAILED;
            } else if (tick == due_tick) {
                int64_t row = cli_now_ns();
                if (!record(all, sim, tick)) code = CLI_CANNOT_WRITE;
                due_tick = next_due(all);
                outside += cli_now_ns() - row;
            }
        }
        int64_t end = cli_now_ns();
        status->step_seconds += 1e-9 * (double)(end - begin - outside);
        cli_pace_done(pace, done, begin, end);
        if (end - status->last_ns >= show_every_ns) cli_status_show(status, sim, pace, end);
        if (pace->rate > 0 && end - flushed_ns >= flush_every_ns) {
            for (int32_t i = 0; i < all->n; i++) cli_recorder_flush(&all->item[i]);
            flushed_ns = end;
        }
    }
    return code;
}

static void print_start(const run_options *options, const cli_world *world, const cli_network *network, double rate, double goal) {
    us_model_counts n = us_model_get_counts(world->model);
    char pace[32] = "as fast as possible", length[48] = "until Ctrl-C";
    if (rate == 1) {
        snprintf(pace, sizeof pace, "real time");
    } else if (rate > 0) {
        snprintf(pace, sizeof pace, "%g x real time", rate);
    }
    if (isfinite(goal)) snprintf(length, sizeof length, "for %g s", goal);
    fprintf(stderr, "%s: %d degrees of freedom, %d constraint rows, %s at %g s, %s, %s\n", options->load.file, (int)n.n_v, (int)n.n_row,
            us_integrator_name(us_model_get_integrator(world->model)), us_model_get_step(world->model), pace, length);
    if (network->bus) {
        fprintf(stderr, "%d robot%s on the network: %s, domain %d; \"understudy topics\" lists what is said\n", (int)us_proxy_n_robot(network->proxy),
                us_proxy_n_robot(network->proxy) == 1 ? "" : "s", us_bus_vendor(network->bus), (int)us_bus_domain(network->bus));
    }
}

static int run_world(const run_options *options, double rate, cli_world *world, cli_network *network) {
    double step = us_model_get_step(world->model);
    int code = options->restore ? restore(world->sim, options->restore) : CLI_GO_ON;
    if (code != CLI_GO_ON) return code;
    double duration = us_spec_view_world(world->spec)->duration;
    double span = !isnan(options->time) ? options->time : duration > 0 ? duration : INFINITY;
    int64_t goal = span / step < 9e18 ? (int64_t)llround(span / step) : INT64_MAX;

    // From here on a signal ends the run, not the program: files that exist will be whole.
    catch_signals();
    recordings all = {0};
    code = open_recordings(&all, options, world->spec, world->sim);
    if (code == CLI_GO_ON && options->record) code = cli_network_record(network, world, &options->load, options->record);
    if (code == CLI_GO_ON && !options->is_offline) code = cli_network_connect(network);
    // Where a recording goes to standard output, nothing else may.
    FILE *out = stdout;
    for (int32_t i = 0; i < all.n; i++) out = strcmp(all.item[i].path, "-") == 0 ? stderr : out;
    cli_status status = {0};
    cli_pace pace = {0};
    if (code == CLI_GO_ON) {
        bool is_live = !options->is_quiet && cli_is_terminal(stderr);
        if (is_live) print_start(options, world, network, rate, span);
        cli_status_start(&status, world->sim, is_live, isfinite(span) ? span : 0);
        cli_pace_start(&pace, rate, step);
        code = step_until(world->sim, network->proxy, goal, &all, &pace, &status);
        cli_status_clear(&status);
        if (!options->is_quiet) cli_status_summary(&status, world->sim, &pace, out);
        if (options->show_hash) fprintf(out, "hash %016llx\n", (unsigned long long)us_sim_hash(world->sim));
    }
    int closing = close_recordings(&all, options->is_quiet || code != CLI_GO_ON, out);
    if (code == CLI_GO_ON) code = closing;
    if (options->save && (code == CLI_GO_ON || code == CLI_RUN_FAILED)) {
        // Also after a failed step: the last whole tick is where to look for the reason.
        int saving = save(world->sim, options->save);
        if (code == CLI_GO_ON) code = saving;
    }
    return code == CLI_GO_ON ? CLI_OK : code;
}

static int run(const cli_command *command, int argc, char **argv) {
    run_options o = {.time = NAN, .csv_rate = NAN, .every = NOT_GIVEN, .seed = NOT_GIVEN};
    const cli_option table[] = {
        {"time", CLI_NUMBER, &o.time, "S", "simulated seconds to run (the scene's duration, or until Ctrl-C)"},
        {"rate", CLI_TEXT, &o.rate, "real|max|N", "pace: real time, as fast as possible, N times real time (real)"},
        {"csv", CLI_TEXT, &o.csv, "FILE", "write time, every joint's q and v, and energy; - is standard output"},
        {"values", CLI_TEXT, &o.values, "A,B,C", "write these values instead, for example elbow.q,tool.z,energy"},
        {"every", CLI_INTEGER, &o.every, "N", "a row every N steps (1)"},
        {"csv-rate", CLI_NUMBER, &o.csv_rate, "HZ", "a row HZ times per simulated second"},
        {"record", CLI_TEXT, &o.record, "FILE", "write every sample and command, and the state's hash at every tick, to this MCAP file"},
        {"offline", CLI_FLAG, &o.is_offline, NULL, "keep the robots off the network"},
        {"save", CLI_TEXT, &o.save, "SNAP", "write the state at the end to this file"},
        {"restore", CLI_TEXT, &o.restore, "SNAP", "begin with the state in this file"},
        {"hash", CLI_FLAG, &o.show_hash, NULL, "print the hash of the state at the end"},
        {"seed", CLI_INTEGER, &o.seed, "N", "seed of every random number, instead of the scene's"},
        {"quiet", CLI_FLAG, &o.is_quiet, NULL, "no status line and no summary"},
        {"headless", CLI_FLAG, &o.is_headless, NULL, "no viewer"},
        CLI_LOAD_OPTIONS(o.load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o.load.file);
    if (code != CLI_GO_ON) return code;
    code = check_options(&o);
    double rate;
    if (code == CLI_GO_ON) code = parse_rate(o.rate, &rate);
    if (code != CLI_GO_ON) return code;

    cli_world world;
    code = cli_load_spec(&o.load, US_BASE_FIXED, &world);
    if (code == CLI_GO_ON && o.seed != NOT_GIVEN) code = set_seed(world.spec, o.seed);
    if (code == CLI_GO_ON) code = cli_compile(&world);
    cli_network network = {0};
    if (code == CLI_GO_ON) code = cli_network_create(&network, &world);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        code = run_world(&o, rate, &world, &network);
    }
    int closing = cli_network_close(&network, o.is_quiet, stderr);
    if (code == CLI_OK && closing != CLI_GO_ON) code = closing;
    cli_world_fini(&world);
    return code;
}

const cli_command cli_command_run = {
    .name = "run",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "run a scene or a robot file",
    .about = "Without --time and without a duration in the scene it runs until Ctrl-C. Missed deadlines are counted and shown.\n"
             "Recordings that the scene asks for are written relative to the current directory. Numbers carry 17 digits.\n"
             "With --restore, --time counts from the restored state.\n"
             "\n"
             "Examples:\n"
             "  understudy run scenes/default.xml\n"
             "  understudy run scenes/default.xml --time 10 --rate max --csv out.csv --csv-rate 100\n"
             "  understudy run scenes/default.xml --time 1 --rate max --save one.snap\n"
             "  understudy run scenes/default.xml --time 1 --rate max --restore one.snap --hash\n",
    .run = run,
};
