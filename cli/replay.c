// understudy replay: says on the network again what was recorded, or runs a recording again and proves that
// it is the same.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "compare.h"
#include "understudy/record.h"
#include "understudy/world.h"

typedef struct replay_options {
    const char *path, *scene, *rate, *topics, *compare;
    double tolerance, slack;
    cli_list interface_;
    cli_load load;  // what shall differ from the recorded run: set, path, base
    bool is_verify, is_quiet, is_trusted;
} replay_options;

// ---- onto the network ----

// What a channel is said through; writer NULL: it is left out.
typedef struct outlet {
    us_writer *writer;
} outlet;

typedef struct player {
    const replay_options *options;
    us_recording *recording;
    us_recording_info info;
    us_interface *types;  // of --interface
    cli_bus bus;
    int32_t n_writer;
    outlet *outlets;  // by channel
    int64_t n_sent, n_dropped;
} player;

static int parse_rate(const char *text, double *out_rate) {
    char *end = NULL;
    if (!text || strcmp(text, "real") == 0) {
        *out_rate = 1;
    } else if (strcmp(text, "max") == 0) {
        *out_rate = INFINITY;
    } else {
        *out_rate = strtod(text, &end);
        if (end == text || *end || !isfinite(*out_rate) || *out_rate <= 0) {
            return cli_fail(CLI_BAD_INPUT, "understudy replay",
                            "write --rate real, --rate max, or a number above 0 such as --rate 2",
                            "--rate: invalid pace \"%s\"", text);
        }
    }
    return CLI_GO_ON;
}

// The recorded topic that the first of the list is nearest to.
static int fail_topics(const player *p) {
    if (!p->options->topics)
        return cli_fail(CLI_BAD_INPUT, p->options->path, "record again, with a robot on the network",
                        "nothing in it can be played");
    char remedy[384] = "name topics that the recording has", wanted[CLI_NAME_MAX];
    snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(p->options->topics, ","), p->options->topics);
    for (int32_t i = 0; i < p->info.n_channel; i++) {
        const char *topic = us_recording_get_channel(p->recording, i).topic;
        if (cli_nearest(wanted, &topic, 1)) snprintf(remedy, sizeof remedy, "did you mean %.200s?", topic);
    }
    return cli_fail(CLI_BAD_INPUT, p->options->path, remedy, "it has none of the topics \"%s\"",
                    p->options->topics);
}

static int add_writers(player *p, int32_t node) {
    p->outlets = cli_allocate((size_t)p->info.n_channel, sizeof *p->outlets);
    for (int32_t i = 0; i < p->info.n_channel; i++) {
        us_channel_info channel = us_recording_get_channel(p->recording, i);
        // What the simulation keeps for itself is not said on the network.
        const bool is_topic = channel.topic[0] == '/' || strncmp(channel.topic, "dds:", 4) == 0;
        if (strncmp(channel.topic, "/understudy/", 12) == 0 || !is_topic ||
            !cli_is_listed(p->options->topics, channel.topic))
            continue;
        const us_message_type *type =
            strcmp(channel.encoding, "cdr") == 0 ? cli_find_type(p->types, channel.type) : NULL;
        if (!type) {
            cli_warn(
                "name the files with this type: --interface FILE.idl (or .msg); or play it with ros2 bag",
                "%s is left out: its type %s (%s) is not known here", channel.topic, channel.type,
                channel.encoding);
            continue;
        }
        us_topic_def def = {
            .topic = channel.topic, .type = type, .qos = us_qos_for_topic(channel.topic, type), .node = node};
        // Keeps what a listener has not taken yet, so that a fast replay waits for it instead of running
        // away.
        if (!def.qos.is_transient_local) def.qos.depth = 0;
        us_error err = {0};
        if (us_bus_add_writer(p->bus.bus, &def, &p->outlets[i].writer, &err)) {
            cli_print_error(&err);
            return CLI_RUN_FAILED;
        }
        p->n_writer++;
    }
    return p->n_writer > 0 ? CLI_GO_ON : fail_topics(p);
}

static bool has_writer(const player *p, const char *dds_topic) {
    char topic[CLI_NAME_MAX];
    cli_bus_topic(dds_topic, topic);
    for (int32_t i = 0; i < p->info.n_channel; i++) {
        if (p->outlets[i].writer && strcmp(us_recording_get_channel(p->recording, i).topic, topic) == 0)
            return true;
    }
    return false;
}

// Waits until present subscribers have discovered us, and reports other writers of the same topics.
static void meet_others(player *p) {
    cli_bus_settle(&p->bus, 1);
    int32_t n_heard = 0;
    double until = cli_clock() + 1;
    for (int32_t i = 0; i < p->bus.n_endpoint; i++)
        n_heard += !p->bus.endpoints[i].is_writer && has_writer(p, p->bus.endpoints[i].topic);
    for (int32_t n_match = 0; n_match < n_heard && cli_clock() < until && !cli_is_stopped();
         cli_pause(0.01)) {
        n_match = 0;
        for (int32_t i = 0; i < p->info.n_channel; i++)
            n_match += us_writer_n_match(p->outlets[i].writer);
    }
    int32_t n_other = 0;
    const us_endpoint *other = NULL;
    for (int32_t i = 0; i < p->bus.n_endpoint; i++) {
        const us_endpoint *e = &p->bus.endpoints[i];
        if (!e->is_writer || !has_writer(p, e->topic)) continue;
        n_other++;
        if (!other) other = e;
    }
    char topic[CLI_NAME_MAX] = "";
    if (other) cli_bus_topic(other->topic, topic);
    if (other)
        cli_warn("stop the other program, or play on another ROS_DOMAIN_ID",
                 "%s writes %s too%s: subscribers receive both",
                 other->node[0] ? other->node : "another program", topic,
                 n_other > 1 ? ", and more of these topics are written" : "");
}

static int play(player *p, double rate) {
    us_error err = {0};
    us_timeline timeline;
    us_timeline_step step;
    if (us_timeline_init(&timeline, p->recording, rate, -1))
        return cli_fail(CLI_RUN_FAILED, p->options->path, NULL, "cannot be played at this rate");
    bool is_live = !p->options->is_quiet && cli_is_terminal(stderr);
    double span = (double)(p->info.last_time - p->info.first_time), shown = -INFINITY;
    int code = CLI_GO_ON;
    double last = cli_clock(), stood = 0;
    while (!cli_is_stopped()) {
        // What was due while it stood still would come in one burst.
        const double gap = cli_standstill(&last);
        stood += gap;
        if (gap > 0)
            cli_warn("let nothing stop this program while it plays",
                     "stood still for %.1f s: what follows comes that much later", gap);
        double now = cli_clock() - stood;
        if (us_timeline_next(&timeline, (int64_t)(1e9 * now), &step, &err)) {
            // What stands before the damage was played.
            cli_print_error(&err);
            code = cli_input_code(&err);
            break;
        }
        if (step.what == US_TIMELINE_END) break;
        if (step.what == US_TIMELINE_DUE) {
            // A file may define channels that its index does not list: they have no writer.
            us_writer *writer =
                step.message.channel < p->info.n_channel ? p->outlets[step.message.channel].writer : NULL;
            if (writer) {
                bool is_sent = us_writer_write(writer, step.message.bytes, step.message.length, 0) == US_OK;
                p->n_sent += is_sent;
                p->n_dropped += !is_sent;
            }
        }
        if (is_live && now - shown > 0.1) {
            char bar[48];
            shown = now;
            double at = (double)(us_timeline_get_time(&timeline, (int64_t)(1e9 * now)) - p->info.first_time);
            cli_bar(span > 0 ? at / span : 1, bar, sizeof bar);
            cli_line_show("%s  %.1f of %.1f s, %" PRId64 " messages", bar, 1e-9 * at, 1e-9 * span, p->n_sent);
        }
        if (step.what == US_TIMELINE_WAIT) cli_pause(step.wait < 50000000 ? 1e-9 * (double)step.wait : 0.05);
    }
    if (is_live) cli_line_clear();
    return code;
}

static int replay(const replay_options *o, us_recording *recording) {
    double rate = 1;
    int code = parse_rate(o->rate, &rate);
    if (code != CLI_GO_ON) return code;
    cli_catch_stop(NULL);
    player p = {.options = o, .recording = recording, .info = us_recording_get_info(recording)};
    int32_t node = -1;
    code = cli_read_interface(&o->interface_, &p.types);
    if (code == CLI_GO_ON) code = cli_bus_open(&p.bus, false);
    if (code == CLI_GO_ON) code = cli_bus_add_node(&p.bus, "replay", &node);
    if (code == CLI_GO_ON) code = add_writers(&p, node);
    if (code == CLI_GO_ON) {
        meet_others(&p);
        double begin = cli_clock();
        code = play(&p, rate);
        double seconds = cli_clock() - begin;
        // What a listener missed is sent to it again, as long as the writers are there.
        if (!cli_is_stopped()) cli_pause(0.2);
        if (!o->is_quiet) {
            printf("played %" PRId64 " messages of %d topics in %.2f s", p.n_sent, (int)p.n_writer, seconds);
            if (p.n_dropped > 0) printf("; %" PRId64 " dropped", p.n_dropped);
            putchar('\n');
        }
    }
    cli_bus_close(&p.bus);
    free(p.outlets);
    us_interface_release(p.types);
    return code == CLI_GO_ON ? CLI_OK : code;
}

// ---- the proof ----

// Lines of a text into a list; `text` is cut, and must stay.
static void split_lines(char *text, cli_list *list) {
    for (char *rest = text, *line; rest && (line = strsep(&rest, "\n")) != NULL;) {
        if (line[0] && list->n < CLI_LIST_MAX) list->item[list->n++] = line;
    }
}

static bool is_set_again(const cli_list *given, const char *assignment) {
    size_t n = strcspn(assignment, "=") + 1;
    for (int32_t i = 0; i < given->n; i++) {
        if (strncmp(given->item[i], assignment, n) == 0) return true;
    }
    return false;
}

// The recorded settings, and over them those of the command line. `text` holds what the list points to.
static void merge(const cli_list *given, char *text, bool is_parameter, cli_list *out) {
    cli_list recorded = {0};
    if (text) split_lines(text, &recorded);
    for (int32_t i = 0; i < recorded.n; i++) {
        if (!is_parameter || !is_set_again(given, recorded.item[i])) out->item[out->n++] = recorded.item[i];
    }
    for (int32_t i = 0; i < given->n && out->n < CLI_LIST_MAX; i++)
        out->item[out->n++] = given->item[i];
}

static const char *metadata(us_recording *recording, const char *key) {
    const char *value = us_recording_find_metadata(recording, "understudy", key);
    return value ? value : "";
}

static int set_seed(us_spec *spec, const char *text) {
    us_world_settings def = *us_spec_view_world(spec);
    uint64_t seed = strtoull(text, NULL, 10);
    if (!text[0] || seed == def.seed) return CLI_GO_ON;
    // The view's texts belong to the spec: hand over a copy.
    char *name = def.name ? strdup(def.name) : NULL;
    def.name = name;
    def.seed = seed;
    us_status status = us_spec_set_world(spec, &def);
    free(name);
    return status == US_OK ? CLI_GO_ON
                           : cli_fail(CLI_RUN_FAILED, "understudy replay", NULL, "the seed cannot be set: %s",
                                      us_status_text(status));
}

// Why the model is another one: in the scene's own text, or in what it draws upon. `scene`: its file; NULL:
// it was the text inside the recording.
static int fail_model(const replay_options *o, us_recording *recording, const char *scene, const char *hash) {
    size_t n_recorded = 0, n_now = 0;
    const char *recorded = us_recording_find_attachment(recording, "scene", &n_recorded);
    char *now = NULL, remedy[384];
    int32_t line = 0;  // the first that differs
    if (scene && recorded && cli_read_file(scene, &now, &n_now) == CLI_GO_ON) {
        size_t i = 0, n_common = n_recorded < n_now ? n_recorded : n_now;
        line = 1;
        for (; i < n_common && recorded[i] == now[i]; i++)
            line += now[i] == '\n';
        if (i == n_recorded && i == n_now) line = 0;
    }
    free(now);
    const char *version = metadata(recording, "version");
    if (line > 0) {
        snprintf(remedy, sizeof remedy,
                 "take the file as it was: it is inside the recording (attachment \"scene\"), or name it "
                 "with --scene");
        return cli_fail(
            CLI_BAD_INPUT, o->path, remedy,
            "%s is not what was recorded: it differs from line %d on, and its model is %s instead of %s",
            scene, (int)line, hash, metadata(recording, "model"));
    }
    snprintf(remedy, sizeof remedy,
             "use the recorded parameters, the same robot files and meshes, and the program that recorded");
    return cli_fail(CLI_BAD_INPUT, o->path, remedy,
                    "the scene file is as recorded, but its model is %s instead of %s: parameters (--set), "
                    "files that it names, or the program differ "
                    "(recorded by version %s, this is %s)",
                    hash, metadata(recording, "model"), version[0] ? version : "?", us_version());
}

typedef struct proof {
    bool is_live;
    double shown;
} proof;

static void show_progress(void *context, double share) {
    proof *p = context;
    double now = cli_clock();
    char bar[48];
    if (!p->is_live || now - p->shown < 0.1) return;
    p->shown = now;
    cli_bar(share, bar, sizeof bar);
    cli_line_show("%s  running it again", bar);
}

static int run_again(const replay_options *o, us_recording *recording, cli_world *world) {
    proof p = {.is_live = !o->is_quiet && cli_is_terminal(stderr), .shown = -INFINITY};
    us_verify_result result = {0};
    us_error err = {0};
    us_status status = us_world_verify(world->spec, recording, show_progress, &p, &result, &err);
    if (p.is_live) cli_line_clear();
    if (!status) {
        us_recording_info info = us_recording_get_info(recording);
        printf("same: %" PRId64 " ticks, %" PRId64 " commands%s\n", result.n_tick, result.n_command,
               info.is_complete ? ""
                                : "; the recording has no end: it was cut off, and is the same up to there");
        return CLI_OK;
    }
    if (result.bad_tick >= 0)
        printf("different: tick %" PRId64 " is the first of %" PRId64 " that did not come out the same\n",
               result.bad_tick, result.n_tick);
    cli_print_error(&err);
    return status == US_ERR_SYNTAX || status == US_ERR_NAME || status == US_ERR_SNAPSHOT ? CLI_BAD_INPUT
                                                                                         : CLI_RUN_FAILED;
}

// What a recording names is opened only with --trust: whoever wrote it may be a stranger, and a plug-in is a
// program. What it has inside is used: the scene's own text, and settings that cannot reach a file.
static const char how_to_allow[] =
    "name your own copy of the scene (--scene FILE), or add --trust if you know who made the recording";

// A parameter may stand inside the name of a file: a path in it would lead anywhere.
static int check_parameters(const replay_options *o, const cli_list *set) {
    for (int32_t i = 0; i < set->n; i++) {
        const char *value = strchr(set->item[i], '=');
        if (!value || (!strchr(value, '/') && value[1] != '.')) continue;
        bool is_own = false;
        for (int32_t k = 0; k < o->load.set.n; k++)
            is_own |= o->load.set.item[k] == set->item[i];
        if (!is_own)
            return cli_fail(CLI_BAD_INPUT, o->path,
                            "give it again with --set, or add --trust if you know who made the recording",
                            "the recording sets a parameter to a path: %.200s", set->item[i]);
    }
    return CLI_GO_ON;
}

// Which scene is loaded, and what it may open.
static int choose_scene(const replay_options *o, us_recording *recording, cli_load *load, char *name,
                        size_t cap) {
    const char *search = metadata(recording, "search");
    load->file = o->scene ? o->scene : metadata(recording, "scene");
    if (o->is_trusted) return CLI_GO_ON;
    if (o->scene) {
        if (search[0])
            cli_warn("name them with --path, or add --trust if you know who made the recording",
                     "directories that the recording names are not searched for meshes: %.*s",
                     (int)strcspn(search, "\n"), search);
        return check_parameters(o, &load->set);
    }
    load->text = us_recording_find_attachment(recording, "scene", &load->n_text);
    if (!load->text)
        return cli_fail(CLI_BAD_INPUT, o->path, how_to_allow,
                        "the recording wants to load the scene %.300s, which it does not have inside",
                        load->file);
    snprintf(name, cap, "%s/scene", o->path);
    load->file = name;
    load->how_to_allow = how_to_allow;
    return CLI_GO_ON;
}

static int verify_with(const replay_options *o, us_recording *recording, const cli_load *load) {
    cli_world world;
    int code = cli_load_spec(load, US_BASE_FIXED, &world);
    if (code != CLI_GO_ON && !o->scene && !load->text)
        fprintf(stderr,
                "  this is the scene that %s was made with; where it is somewhere else now, name it with "
                "--scene\n",
                o->path);
    if (code == CLI_GO_ON) code = set_seed(world.spec, metadata(recording, "seed"));
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) {
        char hash[32];
        snprintf(hash, sizeof hash, "%016" PRIx64, us_model_hash(world.model));
        code = strcmp(hash, metadata(recording, "model")) == 0
                   ? run_again(o, recording, &world)
                   : fail_model(o, recording, load->text ? NULL : load->file, hash);
    }
    cli_world_fini(&world);
    return code;
}

static int verify(const replay_options *o, us_recording *recording) {
    if (!metadata(recording, "model")[0] || !metadata(recording, "scene")[0])
        return cli_fail(CLI_BAD_INPUT, o->path,
                        "verify a file that \"understudy run SCENE --record FILE\" made",
                        "does not say which scene it was made with");
    char *parameters = strdup(metadata(recording, "parameters")),
         *search = o->is_trusted ? strdup(metadata(recording, "search")) : NULL, name[4096];
    const char *base = metadata(recording, "base");
    cli_load load = {.base = o->load.base ? o->load.base
                             : base[0]    ? base
                                          : NULL,
                     .exclude_overlaps =
                         o->load.exclude_overlaps || metadata(recording, "exclude-overlaps")[0],
                     .is_quiet = o->is_quiet};
    merge(&o->load.set, parameters, true, &load.set);
    merge(&o->load.path, search, false, &load.path);
    int code = choose_scene(o, recording, &load, name, sizeof name);
    if (code == CLI_GO_ON) code = verify_with(o, recording, &load);
    free(parameters);
    free(search);
    return code;
}

static int run(const cli_command *command, int argc, char **argv) {
    replay_options o = {.tolerance = NAN, .slack = NAN};
    const cli_option table[] = {
        {"rate", CLI_TEXT, &o.rate, "real|max|N",
         "pace: as recorded, as fast as possible, N times as fast (real)"},
        {"topics", CLI_TEXT, &o.topics, "A,B", "only these topics"},
        {"interface", CLI_LIST, &o.interface_, "FILE", "types of a robot's own: an IDL or .msg file"},
        {"verify", CLI_FLAG, &o.is_verify, NULL,
         "run the recorded scene again and compare the state's hash at every tick"},
        {"compare", CLI_TEXT, &o.compare, "OTHER", "compare with this recording, number by number"},
        {"tolerance", CLI_NUMBER, &o.tolerance, "X",
         "with --compare: exit code 1 where a number differs by more"},
        {"slack", CLI_NUMBER, &o.slack, "S",
         "with --compare: a shift in time that explains a difference, s (0)"},
        {"scene", CLI_TEXT, &o.scene, "FILE", "with --verify: where the scene is now"},
        {"trust", CLI_FLAG, &o.is_trusted, NULL,
         "with --verify: load the files and plug-ins that the recording names"},
        {"quiet", CLI_FLAG, &o.is_quiet, NULL, "no status line and no summary"},
        CLI_LOAD_OPTIONS(o.load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o.path);
    if (code != CLI_GO_ON) return code;
    const char *element = "understudy replay";
    if (o.is_verify && (o.rate || o.topics))
        return cli_fail(CLI_BAD_INPUT, element, "leave out --verify, or the others",
                        "--verify says nothing on the network: --rate and --topics mean nothing");
    if (o.interface_.n > 0 && (o.is_verify || o.compare))
        return cli_fail(CLI_BAD_INPUT, element, "leave out --interface",
                        "--interface says what types are played, but nothing is");
    if (!o.is_verify && o.is_trusted)
        return cli_fail(CLI_BAD_INPUT, element, "add --verify",
                        "--trust says what may be loaded, but nothing is: without --verify a recording's "
                        "messages are all that is used");
    if (!o.is_verify && (o.scene || o.load.set.n || o.load.path.n || o.load.base))
        return cli_fail(CLI_BAD_INPUT, element, "add --verify",
                        "--scene, --set, --path and --base say what is run again, but nothing is");
    if (!o.compare && (!isnan(o.tolerance) || !isnan(o.slack)))
        return cli_fail(CLI_BAD_INPUT, element, "add --compare OTHER",
                        "--tolerance and --slack say how recordings are compared, but none is");
    if (o.compare && (o.is_verify || o.rate))
        return cli_fail(CLI_BAD_INPUT, element, "leave out --compare, or the others",
                        "--compare reads two files: --verify and --rate mean nothing");
    if (o.tolerance < 0 || o.slack < 0)
        return cli_fail(CLI_BAD_INPUT, element, "write 0 or more", "a tolerance or slack below 0");
    us_error err = {0};
    us_recording *recording = NULL;
    if (us_recording_open(o.path, NULL, &recording, &err)) {
        cli_print_error(&err);
        return cli_input_code(&err);
    }
    // Proofs and comparisons leave nothing behind: there Ctrl-C ends the program as it does any other.
    if (!us_recording_get_info(recording).is_complete)
        cli_warn(NULL, "%s has no end: whoever wrote it was stopped; what is there is used", o.path);
    if (o.compare) {
        const cli_compare compare = {.path = o.path,
                                     .other = o.compare,
                                     .topics = o.topics,
                                     .tolerance = o.tolerance,
                                     .has_tolerance = !isnan(o.tolerance),
                                     .slack = isnan(o.slack) ? 0 : o.slack,
                                     .is_quiet = o.is_quiet};
        code = cli_compare_recordings(&compare, recording);
    } else {
        code = o.is_verify ? verify(&o, recording) : replay(&o, recording);
    }
    us_recording_close(recording);
    return code;
}

const cli_command cli_command_replay = {
    .name = "replay",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "say a recording on the network again, or prove that it repeats",
    .about =
        "Topics are written as by ROS convention, /clock too; what the simulation keeps for itself "
        "(/understudy/...) is left out.\n"
        "With --verify nothing is said: the scene is run again from the recorded start with the "
        "recorded commands, and the first tick that\n"
        "differs is named, with exit code 3. What the recording has inside is used; files and plug-ins that "
        "its scene names are loaded\n"
        "only with --trust, or where --scene names your own copy of the scene.\n"
        "With --compare two recordings are compared topic by topic at equal stamps: the largest and the mean "
        "difference of each number that differs.\n"
        "\n"
        "Examples:\n"
        "  understudy replay drive.mcap --rate 2\n"
        "  understudy run scenes/default.xml --time 5 --record run.mcap --offline --rate max && "
        "understudy replay run.mcap --verify --scene scenes/default.xml\n",
    .run = run,
};
