// understudy record: writes what is said on the network to a file.
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "understudy/record.h"

typedef struct record_options {
    const char *path;
    cli_list topics, interface_;
    double time;  // NaN: until Ctrl-C
    bool is_quiet;
} record_options;

// One topic with one type. A thread of the bus writes its samples to the recorder.
typedef struct track {
    char topic[CLI_NAME_MAX];      // as DDS has it
    char type[CLI_NAME_MAX];       // so too
    const us_message_type *known;  // NULL: left out
    us_qos qos;
    us_reader *reader;
    us_recorder *recorder;
    int32_t channel;
    _Atomic int64_t n_sample, n_failed;
    struct track *next;
} track;

typedef struct tape {
    const record_options *options;
    us_interface *types;  // of --interface
    cli_bus bus;
    us_recorder *recorder;
    track *tracks;  // in the order in which they were found
    int32_t n_track, n_unknown;
} tape;

static void on_sample(void *context, const us_sample *sample) {
    track *t = context;
    int64_t now = cli_wall_ns(), sent = sample->source_time > 0 ? sample->source_time : now;
    if (us_recorder_write(t->recorder, t->channel, now, sent, sample->bytes, sample->length)) {
        atomic_fetch_add(&t->n_failed, 1);
    } else {
        atomic_fetch_add(&t->n_sample, 1);
    }
}

// True when an endpoint's topic is to be recorded: one of ROS, or of a type that --interface names.
static bool is_wanted(const tape *t, const us_endpoint *e) {
    const cli_list *topics = &t->options->topics;
    if (!cli_is_ros_topic(e->topic) && !(t->types && us_interface_find(t->types, e->type))) return false;
    if (topics->n == 0) return true;
    for (int32_t i = 0; i < topics->n; i++) {
        char dds[CLI_NAME_MAX];
        if (cli_dds_topic(topics->item[i], dds) && strcmp(dds, e->topic) == 0) return true;
    }
    return false;
}

static track *find_track(const tape *t, const us_endpoint *e) {
    for (track *k = t->tracks; k; k = k->next) {
        if (strcmp(k->topic, e->topic) == 0 && strcmp(k->type, e->type) == 0) return k;
    }
    return NULL;
}

// Long enough that a busy moment of the disk loses nothing, bounded so that a slow disk slows nobody else.
enum { DEPTH = 1000 };

static int start_reader(tape *t, track *k) {
    char topic[CLI_NAME_MAX];
    us_error err = {0};
    cli_bus_topic(k->topic, topic);
    k->qos = cli_qos_for_reader(&t->bus, k->topic, DEPTH);
    us_topic_def def = {.topic = topic, .type = k->known, .qos = k->qos, .node = -1};
    if (!us_bus_add_reader(t->bus.bus, &def, on_sample, k, &k->reader, &err)) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_RUN_FAILED;
}

static int add_track(tape *t, const us_endpoint *e) {
    track *k = cli_allocate(1, sizeof *k), **last = &t->tracks;
    while (*last)
        last = &(*last)->next;
    *last = k;
    snprintf(k->topic, sizeof k->topic, "%s", e->topic);
    snprintf(k->type, sizeof k->type, "%s", e->type);
    k->known = cli_find_type(t->types, e->type);
    char topic[CLI_NAME_MAX], type[CLI_NAME_MAX];
    cli_bus_topic(k->topic, topic);
    if (!k->known) {
        t->n_unknown++;
        cli_ros_type(k->type, type);
        cli_warn("name the files with this type: --interface FILE.idl (or .msg); or record it with ros2 bag",
                 "%s is left out: its type %s is not known here", topic, type);
        return CLI_GO_ON;
    }
    us_error err = {0};
    k->recorder = t->recorder;
    const us_offered_qos offered = {e->qos.is_reliable, e->qos.is_transient_local, e->qos.depth};
    k->channel = us_recorder_add_offered(t->recorder, topic, k->known, &offered, &err);
    if (k->channel < 0) {
        cli_print_error(&err);
        return cli_output_code(&err);
    }
    t->n_track++;
    return start_reader(t, k);
}

// Takes up topics that are new. One that a new writer cannot be heard on is listened to again, asking for
// less.
static int follow(tape *t) {
    if (!cli_bus_discover(&t->bus)) return CLI_GO_ON;
    for (int32_t i = 0; i < t->bus.n_endpoint; i++) {
        const us_endpoint *e = &t->bus.endpoints[i];
        if (!e->is_writer || !is_wanted(t, e)) continue;
        track *k = find_track(t, e);
        int code = CLI_GO_ON;
        if (!k) {
            code = add_track(t, e);
        } else if (k->reader && ((k->qos.is_reliable && !e->qos.is_reliable) ||
                                 (k->qos.is_transient_local && !e->qos.is_transient_local))) {
            us_reader_remove(k->reader);
            k->reader = NULL;
            code = start_reader(t, k);
        }
        if (code != CLI_GO_ON) return code;
    }
    return CLI_GO_ON;
}

static int open_recorder(tape *t) {
    us_error err = {0};
    us_recorder_def def = us_recorder_def_default();
    def.path = t->options->path;
    us_status status = us_recorder_open(&def, &t->recorder, &err);
    if (!status) {
        char domain[16];
        snprintf(domain, sizeof domain, "%d", (int)us_bus_domain(t->bus.bus));
        const char *const keys[] = {"version", "source", "domain", "vendor"};
        const char *const values[] = {us_version(), "network", domain, us_bus_vendor(t->bus.bus)};
        status =
            us_recorder_set_metadata(t->recorder, "understudy", sizeof keys / sizeof keys[0], keys, values);
        if (status)
            us_error_set(&err, status, NULL, "name a file on a disk with space", "%s cannot be written",
                         def.path);
    }
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return cli_output_code(&err);
}

static int record(tape *t) {
    double begin = cli_clock(), until = isnan(t->options->time) ? INFINITY : begin + t->options->time,
           looked = -INFINITY;
    bool is_live = !t->options->is_quiet && cli_is_terminal(stderr);
    int code = CLI_GO_ON;
    double last = begin;
    while (code == CLI_GO_ON && !cli_is_stopped() && cli_clock() < until) {
        double now = cli_clock();
        const double gap = cli_standstill(&last);
        if (gap > 0)
            cli_warn("let nothing stop this program while it records",
                     "stood still for %.1f s: messages of that time may be missing in %s", gap,
                     t->options->path);
        if (now - looked >= 0.1) {
            looked = now;
            code = follow(t);
            us_recorder_info info = us_recorder_get_info(t->recorder);
            if (info.failed) break;
            if (is_live)
                cli_line_show("recording %s: %.1f s, %d topics, %" PRId64 " messages, %.1f MB; Ctrl-C ends",
                              t->options->path, now - begin, (int)t->n_track, info.n_message,
                              1e-6 * (double)info.n_byte);
        }
        double left = until - cli_clock();
        cli_pause(left < 0.05 ? left : 0.05);
    }
    if (is_live) cli_line_clear();
    return code;
}

// Ends the readers before the file, and the file in any case.
static int finish(tape *t, int code, double seconds) {
    int32_t n_silent = 0;
    int64_t n_message = 0;
    for (track *k = t->tracks; k; k = k->next) {
        us_reader_remove(k->reader);
        n_message += atomic_load(&k->n_sample);
        n_silent += k->known && atomic_load(&k->n_sample) == 0;
    }
    if (t->recorder) {
        us_error err = {0};
        if (us_recorder_close(t->recorder, &err)) {
            cli_print_error(&err);
            code = cli_output_code(&err);
        } else if (code == CLI_GO_ON && !t->options->is_quiet) {
            printf("wrote %s: %" PRId64 " messages of %d topics in %.1f s", t->options->path, n_message,
                   (int)t->n_track, seconds);
            if (n_silent > 0) printf("; %d of them said nothing", (int)n_silent);
            if (t->n_unknown > 0) printf("; %d of unknown type left out", (int)t->n_unknown);
            putchar('\n');
        }
    }
    for (track *k = t->tracks, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    return code;
}

// Names that nobody writes are reported at the end: they may have come late.
static void warn_of_missing(const tape *t) {
    for (int32_t i = 0; i < t->options->topics.n; i++) {
        char dds[CLI_NAME_MAX], near[CLI_NAME_MAX], topic[CLI_NAME_MAX],
            remedy[CLI_NAME_MAX + 32] = "\"understudy topics\" lists what is there";
        bool is_found = false;
        if (!cli_dds_topic(t->options->topics.item[i], dds)) continue;
        for (const track *k = t->tracks; k && !is_found; k = k->next)
            is_found = strcmp(k->topic, dds) == 0;
        if (is_found) continue;
        cli_bus_topic(dds, topic);
        if (cli_bus_nearest(&t->bus, topic, near)) snprintf(remedy, sizeof remedy, "did you mean %s?", near);
        cli_warn(remedy, "nobody wrote %s", topic);
    }
}

static int run(const cli_command *command, int argc, char **argv) {
    record_options o = {.time = NAN};
    const cli_option table[] = {
        {"TOPIC", CLI_REST, &o.topics, "TOPIC", "only these topics"},
        {"time", CLI_NUMBER, &o.time, "S", "seconds to record (until Ctrl-C)"},
        {"interface", CLI_LIST, &o.interface_, "FILE", "types of a robot's own: an IDL or .msg file"},
        {"quiet", CLI_FLAG, &o.is_quiet, NULL, "no status line and no summary"},
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o.path);
    if (code != CLI_GO_ON) return code;
    if (o.time < 0)
        return cli_fail(CLI_BAD_INPUT, "understudy record", "write --time S with S at least 0",
                        "--time is negative");
    if (o.path[0] == '/' && strchr(o.path + 1, '/') && !strchr(strrchr(o.path, '/'), '.') && o.topics.n == 0)
        cli_warn("name the file first: understudy record FILE /k10/odom",
                 "\"%s\" looks like a topic, and is taken for the file's name", o.path);

    cli_catch_stop(NULL);
    tape t = {.options = &o};
    code = cli_read_interface(&o.interface_, &t.types);
    if (code == CLI_GO_ON) code = cli_bus_open(&t.bus, true);
    if (code != CLI_GO_ON) {
        us_interface_release(t.types);
        return code;
    }
    code = open_recorder(&t);
    double begin = cli_clock();
    if (code == CLI_GO_ON) code = record(&t);
    if (code == CLI_GO_ON) warn_of_missing(&t);
    if (code == CLI_GO_ON && t.n_track == 0 && o.topics.n == 0)
        cli_warn("start a robot, or see what \"understudy doctor\" finds",
                 "nobody wrote any topic: the recording is empty");
    code = finish(&t, code, cli_clock() - begin);
    cli_bus_close(&t.bus);
    us_interface_release(t.types);
    return code == CLI_GO_ON ? CLI_OK : code;
}

const cli_command cli_command_record = {
    .name = "record",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "write what is said on the network to an MCAP file",
    .about = "All topics of known types, or those that are named; topics that appear later are taken up. "
             "Times are this computer's clock.\n"
             "A recording that can be run again bit by bit is made by the simulation itself: understudy run "
             "SCENE --record FILE.\n"
             "\n"
             "Examples:\n"
             "  understudy record drive.mcap --time 10\n"
             "  understudy record drive.mcap /k10/odom /k10/cmd_vel\n",
    .run = run,
};
