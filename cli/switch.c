// understudy switch: runs the switch between a robot and its understudy, asks a running one for another mode,
// or shows what it says.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "bus.h"
#include "shadow.h"
#include "switch_script.h"
#include "understudy/switch.h"

enum { MAX_LINE = 1024 };

static const char *const element = "understudy switch";
// s: a script begins so long after both were first heard, when their states are known; or so long after the
// start.
static const double SCRIPT_AFTER = 1, SCRIPT_PATIENCE = 10;

typedef struct switch_options {
    int64_t operators, hardware, proxy;  // domains; operators -1: that of the environment
    double watchdog, wait;
    const char *enclave, *hardware_enclave, *proxy_enclave;
    const char *on_loss, *mode, *to, *heartbeat, *evidence, *on_diverged, *script;
    int64_t seed;
    double position, yaw, joint, speed, ramp, ramp_turn;  // of hand-overs; angles in degrees
    cli_list tolerance, rules, only, except, also, filter;
    const char *topics;  // a file of selections
    int64_t motors;      // port; -1: none
    const char *motor_address, *hardware_motors, *proxy_motors;
    bool is_status, is_json, is_match, is_anyway, is_plain, is_resync, is_watch, is_secret;
    bool is_standby, is_keeping, is_visible;
} switch_options;

// ---- running it ----

static void print_event(void *context, int64_t time, const char *text) {
    (void)context;
    time_t seconds = (time_t)(time / 1000000000);
    struct tm local;
    char stamp[32] = "";
    if (localtime_r(&seconds, &local)) strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &local);
    flockfile(stdout);  // the switch and the script print from threads of their own
    printf("%s.%03d  ", stamp, (int)(time / 1000000 % 1000));
    // Names come from other programs: no control characters.
    for (const char *s = text; *s; s++)
        putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
    putchar('\n');
    fflush(stdout);
    funlockfile(stdout);
}

static int read_mode(const char *name, us_switch_mode *out_mode) {
    static const char *const names[] = {"hardware", "proxy", "mirror", "shadow", "stop"};
    *out_mode = us_switch_find_mode(name);
    if (*out_mode != US_MODE_COUNT) return CLI_GO_ON;
    const char *near = cli_nearest(name, names, sizeof names / sizeof names[0]);
    char remedy[128];
    snprintf(remedy, sizeof remedy,
             near ? "did you mean %s?" : "write hardware, proxy, mirror, shadow or stop", near);
    return cli_fail(CLI_BAD_INPUT, element, remedy, "unknown mode \"%.60s\"", name);
}

// The file of evidence: "none", a name, or one made from the robot's.
static void set_handover(us_handover_def *def, const char *robot, const switch_options *o, char *path,
                         size_t cap) {
    const double degree = 0.0174532925199432958;
    def->is_off = o->is_plain;
    def->position = o->position;
    def->yaw = o->yaw * degree;
    def->joint = o->joint * degree;
    def->speed = o->speed;
    def->yaw_rate = 2 * o->speed;
    def->acceleration = o->ramp;
    def->yaw_acceleration = o->ramp_turn;
    snprintf(path, cap, "understudy-handover-%.60s.jsonl", robot);
    if (o->evidence) snprintf(path, cap, "%s", strcmp(o->evidence, "none") == 0 ? "" : o->evidence);
    def->evidence = path;
}

enum { MAX_SELECTION = 128, SELECTION = 512 };

// Texts that the definition of a switch refers to.
typedef struct switch_texts {
    char operators[US_BUS_TEXT], hardware[US_BUS_TEXT], proxy[US_BUS_TEXT], evidence[512];
    int32_t n_selection;
    char selections[MAX_SELECTION][SELECTION];
    const char *selection[MAX_SELECTION];
} switch_texts;

// "only /k10/odom" of "--only /k10/odom"; a line of a file has its word already.
static int add_selection(switch_texts *t, const char *word, const char *text) {
    if (t->n_selection == MAX_SELECTION)
        return cli_fail(CLI_BAD_INPUT, element, "say more with fewer: patterns have * and ?",
                        "there are more than %d selections of topics", (int)MAX_SELECTION);
    if (strlen(text) + 16 > SELECTION)
        return cli_fail(CLI_BAD_INPUT, element, NULL, "a selection of topics is too long: \"%.60s\"", text);
    snprintf(t->selections[t->n_selection], SELECTION, "%s%s%s", word, word[0] ? " " : "", text);
    t->selection[t->n_selection] = t->selections[t->n_selection];
    t->n_selection++;
    return CLI_GO_ON;
}

// Lines "only PATTERN", "except PATTERN", "also PATTERN", "filter PATTERN CONDITION"; # begins a comment.
static int read_topics_file(switch_texts *t, const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        return cli_fail(CLI_BAD_INPUT, element, "look at its name and at who may read it",
                        "--topics: the file %.200s cannot be opened", path);
    char line[2 * SELECTION];
    int code = CLI_GO_ON;
    while (code == CLI_GO_ON && fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\r\n")] = 0;
        const char *text = line + strspn(line, " \t");
        if (text[0]) code = add_selection(t, "", text);
    }
    fclose(file);
    return code;
}

static int set_selections(const switch_options *o, switch_texts *t, us_switch_def *def) {
    const struct {
        const char *word;
        const cli_list *list;
    } options[] = {{"only", &o->only}, {"except", &o->except}, {"also", &o->also}, {"filter", &o->filter}};
    int code = CLI_GO_ON;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        for (int32_t k = 0; k < options[i].list->n && code == CLI_GO_ON; k++)
            code = add_selection(t, options[i].word, options[i].list->item[k]);
    }
    if (o->topics && code == CLI_GO_ON) code = read_topics_file(t, o->topics);
    def->selections = t->selection;
    def->n_selection = t->n_selection;
    return code;
}

// The port of the motor protocol, where it is asked for.
static int set_motors(const switch_options *o, us_switch_motors *out) {
    if (o->motors < 0 && (o->hardware_motors || o->proxy_motors || o->motor_address))
        return cli_fail(CLI_BAD_INPUT, element, "give the operators' port by --motors PORT",
                        "--hardware-motors, --proxy-motors and --motors-address belong to --motors");
    if (o->motors < 0) return CLI_GO_ON;
    if (o->motors > 65535 || !o->hardware_motors || !o->proxy_motors)
        return cli_fail(
            CLI_BAD_INPUT, element,
            "write --motors 5010 --hardware-motors 192.168.0.7:5010 --proxy-motors 127.0.0.1:5011",
            "--motors needs a port, and those of the hardware and the proxy");
    *out =
        (us_switch_motors){true, o->motor_address, (int32_t)o->motors, o->hardware_motors, o->proxy_motors};
    return CLI_GO_ON;
}

// The definition of a switch from the options.
static int make_def(const char *robot, const switch_options *o, switch_texts *texts, us_switch_def *out) {
    us_error err = {0};
    us_switch_def def = us_switch_def_default();
    const char *hardware_enclave = o->hardware_enclave ? o->hardware_enclave : o->enclave;
    const char *proxy_enclave = o->proxy_enclave ? o->proxy_enclave : o->enclave;
    if (cli_bus_def(&def.operators, o->enclave, texts->operators, &err) ||
        cli_bus_def(&def.hardware, hardware_enclave, texts->hardware, &err) ||
        cli_bus_def(&def.proxy, proxy_enclave, texts->proxy, &err)) {
        cli_print_error(&err);
        return CLI_BAD_INPUT;
    }

    // domains
    if (o->operators >= 0) def.operators.domain = (int32_t)o->operators;
    def.hardware.domain = o->hardware >= 0 ? (int32_t)o->hardware : def.operators.domain + 1;
    def.proxy.domain = o->proxy >= 0 ? (int32_t)o->proxy : def.operators.domain + 2;

    // what is copied
    def.robot = robot;
    def.watchdog = o->watchdog;
    def.heartbeat = o->heartbeat;
    def.on_event = print_event;
    def.rules = o->rules.item;
    def.n_rule = o->rules.n;
    def.is_secret = o->is_secret;
    def.is_standby = o->is_standby;
    def.is_keeping = o->is_keeping;
    def.is_visible = o->is_visible;
    set_handover(&def.handover, robot, o, texts->evidence, sizeof texts->evidence);

    // what is named
    static const char *const losses[] = {
        [US_LOSS_PROXY] = "proxy", [US_LOSS_OTHER] = "other", [US_LOSS_STOP] = "stop"};
    int loss = US_LOSS_PROXY;
    while (loss <= US_LOSS_STOP && strcmp(o->on_loss, losses[loss]) != 0)
        loss++;
    if (loss > US_LOSS_STOP)
        return cli_fail(CLI_BAD_INPUT, element, "write proxy, other or stop",
                        "--on-loss: invalid rule \"%.60s\"", o->on_loss);
    def.on_loss = (us_switch_loss)loss;
    def.shadow.resync_when_diverged = strcmp(o->on_diverged, "resync") == 0;
    if (!def.shadow.resync_when_diverged && strcmp(o->on_diverged, "ask") != 0)
        return cli_fail(CLI_BAD_INPUT, element, "write ask or resync",
                        "--on-diverged: invalid rule \"%.60s\"", o->on_diverged);
    int code = read_mode(o->mode, &def.mode);
    if (code == CLI_GO_ON) code = set_selections(o, texts, &def);
    if (code == CLI_GO_ON) code = set_motors(o, &def.motors);
    if (code == CLI_GO_ON) code = cli_shadow_set(&def.shadow, &o->tolerance);
    *out = def;
    return code;
}

// Runs the switch until it is stopped or withdraws, and a script beside it.
static int serve_until_stopped(us_switch *sw, cli_script *script) {
    double started = cli_clock(), both_alive = INFINITY;
    while (!cli_is_stopped()) {
        cli_pause(script ? 0.02 : 0.1);
        us_switch_state now = us_switch_get_state(sw);
        if (now.is_alive[0] && now.is_alive[1]) both_alive = fmin(both_alive, cli_clock());
        // Where one of the two does not come, the script begins without it.
        double began = fmin(both_alive + SCRIPT_AFTER, started + SCRIPT_PATIENCE);
        if (script) cli_script_go_on(script, sw, cli_clock() - began, print_event);
        if (now.is_withdrawn) return CLI_RUN_FAILED;
    }
    return CLI_OK;
}

static int run_switch(const char *robot, const switch_options *o) {
    us_error err = {0};
    static switch_texts texts;
    us_switch_def def;
    int code = make_def(robot, o, &texts, &def);
    if (code != CLI_GO_ON) return code;
    cli_script *script = NULL;
    if (o->script) code = cli_script_load(o->script, (uint64_t)o->seed, &script);
    if (script) code = cli_script_begin(script, &def.proxy);
    if (code != CLI_GO_ON) {
        cli_script_destroy(script);
        return code;
    }

    us_switch *sw = NULL;
    cli_catch_stop(NULL);
    us_status status = us_switch_open(&def, &sw, &err);
    if (status) {
        cli_print_error(&err);
        cli_script_destroy(script);
        return status == US_ERR_VALUE ? CLI_BAD_INPUT : CLI_RUN_FAILED;
    }
    printf("robot %s: operators in domain %d, hardware in %d, proxy in %d; watchdog %g s, on loss %s\n",
           robot, def.operators.domain, def.hardware.domain, def.proxy.domain, def.watchdog, o->on_loss);
    if (def.motors.is_on) printf("motor protocol on port %d\n", us_switch_motor_port(sw));
    fflush(stdout);
    code = serve_until_stopped(sw, script);

    us_switch_state s = us_switch_get_state(sw);
    us_switch_close(sw);
    cli_script_destroy(script);
    printf("passed on: %lld outputs, %lld commands, %lld copies of %d topics; not: %lld commands without "
           "authority, %lld that found no room\n",
           (long long)s.n_output, (long long)s.n_command, (long long)s.n_copy, s.n_topic,
           (long long)s.n_fenced, (long long)s.n_unsent);
    return code;
}

// ---- asking it ----

typedef struct asker {
    cli_bus bus;
    us_writer *writer;
    us_reader *reader;
    cli_shadow shadow;
    bool shows_secrets;   // what is secret is shown
    char line[MAX_LINE];  // the last that was said about the robot
} asker;

// Every switch listens in the domain of its proxy; one that is visible in the operators' too.
static us_status open_bus(asker *a, const switch_options *o, us_error *err) {
    char text[US_BUS_TEXT];
    us_bus_def def;
    const char *enclave = !o->is_visible && o->proxy_enclave ? o->proxy_enclave : o->enclave;
    us_status status = cli_bus_def(&def, enclave, text, err);
    if (status) return status;
    if (o->operators >= 0) def.domain = (int32_t)o->operators;
    if (!o->is_visible) def.domain = o->proxy >= 0 ? (int32_t)o->proxy : def.domain + 2;
    return us_bus_open(&def, &a->bus.bus, err);
}

static int join_network(asker *a, const char *robot, const switch_options *o) {
    us_error err = {0};
    us_status status = open_bus(a, o, &err);
    int32_t node = -1;
    const us_message_type *type = us_message_find("std_msgs/msg/String");
    us_topic_def topic = {.topic = "/understudy/authority",
                          .type = type,
                          .qos = {.is_reliable = true, .is_transient_local = true, .depth = 64}};
    if (!status) {
        int code = cli_bus_add_node(&a->bus, "ask", &node);
        if (code != CLI_GO_ON) return code;
        topic.node = node;
        status = us_bus_add_reader(a->bus.bus, &topic, NULL, NULL, &a->reader, &err);
    }
    if (!status) status = cli_shadow_open(&a->shadow, a->bus.bus, node, robot, &err);
    topic.topic = "/understudy/authority/request";
    topic.qos = (us_qos){.is_reliable = true, .depth = 1};
    if (!status) status = us_bus_add_writer(a->bus.bus, &topic, &a->writer, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return status == US_ERR_VALUE ? CLI_BAD_INPUT : CLI_RUN_FAILED;
}

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void replace(cJSON *object, const char *key, cJSON *item) {
    if (!cJSON_ReplaceItemInObjectCaseSensitive(object, key, item)) cJSON_Delete(item);
}

// Leaves of a line what operators may know of a training: as the switch itself does in their domain.
static void conceal(cJSON *json, char *line, size_t cap) {
    bool is_any_alive = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "hardware")) ||
                        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "proxy"));
    replace(json, "mode", cJSON_CreateString("secret"));
    replace(json, "control", cJSON_CreateString("secret"));
    replace(json, "reason", cJSON_CreateString(""));
    replace(json, "refused", cJSON_CreateString(""));
    replace(json, "hardware", cJSON_CreateBool(is_any_alive));
    replace(json, "proxy", cJSON_CreateBool(is_any_alive));
    replace(json, "terms", cJSON_CreateIntArray((const int[]){0, 0}, 2));
    if (!cJSON_PrintPreallocated(json, line, (int)cap, false)) line[0] = 0;
}

// Waits for the next line about the robot. NULL when none comes in time; the caller deletes it.
static cJSON *next_line(asker *a, const char *robot, double until) {
    uint8_t bytes[MAX_LINE + 16];
    while (!cli_is_stopped()) {
        size_t length = 0;
        // Plain CDR: a String is its length, with the 0 at its end, and its characters.
        while (us_reader_take(a->reader, bytes, sizeof bytes, &length, NULL) == US_OK && length > 8) {
            snprintf(a->line, sizeof a->line, "%.*s", (int)(length - 8), (const char *)bytes + 8);
            cJSON *json = cJSON_Parse(a->line);
            if (json && strcmp(text_of(json, "robot"), robot) == 0) {
                bool is_secret = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "secret"));
                if (is_secret && !a->shows_secrets) conceal(json, a->line, sizeof a->line);
                return json;
            }
            cJSON_Delete(json);
        }
        double left = until - cli_clock();
        if (left <= 0) return NULL;
        us_bus_wait(a->bus.bus, left < 0.1 ? left : 0.1);
    }
    return NULL;
}

static us_status send_request(asker *a, const char *robot, const switch_options *o) {
    uint8_t bytes[256] = {0, 1, 0, 0};
    const char *how = o->is_match ? " match" : o->is_anyway ? " anyway" : "";
    int n = snprintf((char *)bytes + 8, sizeof bytes - 8, "%.100s %.60s%s", robot, o->to, how);
    uint32_t length = (uint32_t)n + 1;
    memcpy(bytes + 4, &length, sizeof length);
    return us_writer_write(a->writer, bytes, 8 + length, 0);
}

static void print_plain(const char *text) {
    for (const char *s = text; *s; s++)
        putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

static void show(const asker *a, const cJSON *state, bool is_json) {
    if (is_json) {
        print_plain(a->line);
        putchar('\n');
        return;
    }
    time_t since = (time_t)number_of(state, "since");
    struct tm local;
    char stamp[32] = "?";
    if (localtime_r(&since, &local)) strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &local);
    print_plain(text_of(state, "robot"));
    printf(": mode ");
    print_plain(text_of(state, "mode"));
    printf(", in control: ");
    print_plain(text_of(state, "control"));
    printf("\n  since %s, epoch %.0f: ", stamp, number_of(state, "epoch"));
    print_plain(text_of(state, "reason"));
    printf("\n  hardware %s, proxy %s\n",
           cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(state, "hardware")) ? "alive" : "silent",
           cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(state, "proxy")) ? "alive" : "silent");
}

// Asks and waits until the count of answers has grown. `state` is replaced by the answer.
static int request(asker *a, const char *robot, const switch_options *o, cJSON **state) {
    double until = cli_clock() + o->wait, answers = number_of(*state, "answers");
    while (us_writer_n_match(a->writer) == 0 && cli_clock() < until && !cli_is_stopped())
        cli_pause(0.01);
    if (send_request(a, robot, o))
        return cli_fail(CLI_RUN_FAILED, element, NULL, "the request could not be sent");
    for (;;) {
        cJSON *next = next_line(a, robot, until);
        if (!next)
            return cli_fail(CLI_RUN_FAILED, element,
                            "is it still running? See understudy switch ROBOT --status",
                            "no answer from the switch");
        cJSON_Delete(*state);
        *state = next;
        if (number_of(next, "answers") > answers) break;
    }
    const char *refused = text_of(*state, "refused");
    if (refused[0]) return cli_fail(CLI_RUN_FAILED, element, NULL, "%s refused: %.200s", o->to, refused);
    return CLI_GO_ON;
}

static int ask_switch(const char *robot, const switch_options *o) {
    us_switch_mode mode;
    int code = o->to && !o->is_resync ? read_mode(o->to, &mode) : CLI_GO_ON;
    if (code != CLI_GO_ON) return code;
    asker a = {.shows_secrets = o->is_secret};
    cli_catch_stop(NULL);
    cJSON *state = NULL;
    code = join_network(&a, robot, o);
    if (code == CLI_GO_ON) {
        state = next_line(&a, robot, cli_clock() + o->wait);
        if (!state) {
            code = cli_fail(CLI_RUN_FAILED, element,
                            o->is_visible ? "start it: understudy switch ROBOT --visible; or give the "
                                            "operators' domain by --operators"
                                          : "start it: understudy switch ROBOT; or give the domain of its "
                                            "proxy by --proxy",
                            "no switch of a robot \"%.60s\" is heard in domain %d", robot,
                            us_bus_domain(a.bus.bus));
        }
    }
    if (code == CLI_GO_ON && o->to) code = request(&a, robot, o, &state);
    if (code == CLI_GO_ON) {
        show(&a, state, o->is_json);
        const char *now = text_of(state, "mode");
        bool is_compared = strcmp(now, "shadow") == 0 || strcmp(now, "mirror") == 0;
        if (o->is_status && is_compared) cli_shadow_show(&a.shadow, o->is_json);
        code = o->is_watch ? cli_shadow_watch(&a.shadow, o->is_json, o->wait) : CLI_OK;
    }
    cJSON_Delete(state);
    cli_shadow_close(&a.shadow);
    cli_bus_close(&a.bus);
    return code;
}

static int check_options(const switch_options *o) {
    const int64_t domains[] = {o->operators, o->hardware, o->proxy};
    for (int i = 0; i < 3; i++) {
        if (domains[i] < -1 || domains[i] > 232)
            return cli_fail(CLI_BAD_INPUT, element, "domains are 0 to 232", "invalid domain %lld",
                            (long long)domains[i]);
    }
    bool is_to_hardware = o->to && strcmp(o->to, "hardware") == 0;
    if ((o->is_match || o->is_anyway) && (!is_to_hardware || (o->is_match && o->is_anyway)))
        return cli_fail(CLI_BAD_INPUT, element, "write --to hardware --match, or --to hardware --anyway",
                        "--match and --anyway say how to go to the hardware");
    if (o->is_resync && o->to)
        return cli_fail(CLI_BAD_INPUT, element, "ask for one after the other",
                        "--resync and --to are two requests");
    return CLI_GO_ON;
}

static int parse_options(const cli_command *command, int argc, char **argv, switch_options *o,
                         const char **out_robot) {
    const cli_option options[] = {
        {"operators", CLI_INTEGER, &o->operators, "DOMAIN", "where the operators are (ROS_DOMAIN_ID, or 0)"},
        {"hardware", CLI_INTEGER, &o->hardware, "DOMAIN", "where the hardware is (the operators' + 1)"},
        {"proxy", CLI_INTEGER, &o->proxy, "DOMAIN", "where the proxy is (the operators' + 2)"},
        {"enclave", CLI_TEXT, &o->enclave, "NAME",
         "keys for all three domains, where ROS_SECURITY_ENABLE is true (/)"},
        {"hardware-enclave", CLI_TEXT, &o->hardware_enclave, "NAME", "other keys for the hardware's domain"},
        {"proxy-enclave", CLI_TEXT, &o->proxy_enclave, "NAME", "other keys for the proxy's domain"},
        {"mode", CLI_TEXT, &o->mode, "MODE", "to begin with (hardware)"},
        {"watchdog", CLI_NUMBER, &o->watchdog, "S", "silence after which the one in control is lost (0.5)"},
        {"on-loss", CLI_TEXT, &o->on_loss, "RULE",
         "proxy: from lost hardware the proxy takes over, a lost proxy is a stop; other, stop (proxy)"},
        {"rule", CLI_LIST, &o->rules, "RULE", "'fault -> proxy', 'topic /k10/emergency_stop -> stop'"},
        {"only", CLI_LIST, &o->only, "PATTERN",
         "pass on topics and services that match, as /k10/odom, and no others"},
        {"except", CLI_LIST, &o->except, "PATTERN", "do not pass on those that match"},
        {"also", CLI_LIST, &o->also, "PATTERN",
         "pass on what is not below /ROBOT too, by its name in ROS or DDS"},
        {"filter", CLI_LIST, &o->filter, "'PATTERN CONDITION'",
         "pass on some samples of an output: every=5, rate=2, percentage<0.2"},
        {"topics", CLI_TEXT, &o->topics, "FILE", "the same as lines: only, except, also, filter"},
        {"motors", CLI_INTEGER, &o->motors, "PORT", "port of the motor protocol for the operators; 0: any"},
        {"motors-address", CLI_TEXT, &o->motor_address, "ADDRESS", "where that port is opened (127.0.0.1)"},
        {"hardware-motors", CLI_TEXT, &o->hardware_motors, "ADDRESS:PORT", "motor port of the hardware"},
        {"proxy-motors", CLI_TEXT, &o->proxy_motors, "ADDRESS:PORT", "motor port of the proxy"},
        {"script", CLI_TEXT, &o->script, "FILE",
         "a training script: lines TIME MODE, TIME WORLD COMMAND, between TIME TIME MODE"},
        {"seed", CLI_INTEGER, &o->seed, "N", "of what is random in the script (1)"},
        {"secret", CLI_FLAG, &o->is_secret, NULL,
         "do not tell operators who is in control; with --to and --status: show it all the same"},
        {"visible", CLI_FLAG, &o->is_visible, NULL,
         "have /understudy/... in the operators' domain too; with --to and --status: ask there, not in the "
         "proxy's"},
        {"standby", CLI_FLAG, &o->is_standby, NULL,
         "wait until no other switch of the robot holds its leases, instead of asking it to give way"},
        {"keep", CLI_FLAG, &o->is_keeping, NULL, "do not give way to another switch that asks to take over"},
        {"heartbeat", CLI_TEXT, &o->heartbeat, "TOPIC",
         "the output that shows that a source lives (any of the robot's)"},
        {"tolerance", CLI_LIST, &o->tolerance, "NAME=VALUE",
         "how far hardware and proxy may differ in shadow and mirror: see docs/switch.md"},
        {"on-diverged", CLI_TEXT, &o->on_diverged, "ask|resync",
         "when they differ by more: report it, or set the proxy to the hardware's state too (ask)"},
        {"max-position", CLI_NUMBER, &o->position, "M",
         "how far hardware that takes over may be from the proxy (0.1)"},
        {"max-yaw", CLI_NUMBER, &o->yaw, "DEG", "by how much its heading may differ (5)"},
        {"max-joint", CLI_NUMBER, &o->joint, "DEG", "by how much its steering may (5)"},
        {"max-speed", CLI_NUMBER, &o->speed, "M/S",
         "by how much its speed may; its yaw rate by twice that in rad/s (0.05)"},
        {"ramp", CLI_NUMBER, &o->ramp, "M/S^2",
         "how fast the first velocities after a hand-over may change; 0: at once (0.5)"},
        {"ramp-turn", CLI_NUMBER, &o->ramp_turn, "RAD/S^2", "the same for yaw rates (1)"},
        {"evidence", CLI_TEXT, &o->evidence, "FILE|none",
         "each hand-over adds a line of JSON (understudy-handover-ROBOT.jsonl)"},
        {"plain", CLI_FLAG, &o->is_plain, NULL, "change over without handing the state over"},
        {"to", CLI_TEXT, &o->to, "MODE", "ask a running switch for hardware, proxy, mirror, shadow or stop"},
        {"match", CLI_FLAG, &o->is_match, NULL,
         "--to hardware: drive the hardware to the proxy's pose first"},
        {"anyway", CLI_FLAG, &o->is_anyway, NULL, "--to hardware: also when the two do not agree"},
        {"status", CLI_FLAG, &o->is_status, NULL, "show who is in control, and how well both agree"},
        {"watch", CLI_FLAG, &o->is_watch, NULL, "show how well both agree, once a second"},
        {"resync", CLI_FLAG, &o->is_resync, NULL,
         "ask a running switch to set the proxy to the hardware's state and to compare anew"},
        {"wait", CLI_NUMBER, &o->wait, "S", "how long an answer is waited for (5; with --match 70)"},
        {"json", CLI_FLAG, &o->is_json, NULL,
         "--to and --status: as the line of JSON that the switch publishes"},
    };
    int code = cli_parse(command, options, sizeof options / sizeof options[0], argc, argv, out_robot);
    return code == CLI_GO_ON ? check_options(o) : code;
}

static int run(const cli_command *command, int argc, char **argv) {
    switch_options o = {.operators = -1,
                        .hardware = -1,
                        .proxy = -1,
                        .watchdog = 0.5,
                        .wait = -1,
                        .motors = -1,
                        .seed = 1,
                        .on_loss = "proxy",
                        .mode = "hardware",
                        .position = 0.1,
                        .yaw = 5,
                        .joint = 5,
                        .speed = 0.05,
                        .ramp = 0.5,
                        .ramp_turn = 1,
                        .on_diverged = "ask"};
    const char *robot = NULL;
    int code = parse_options(command, argc, argv, &o, &robot);
    if (code != CLI_GO_ON) return code;
    if (o.wait < 0) o.wait = o.is_match ? 70 : 5;
    if (robot[0] == '/') robot++;
    if (o.is_resync) o.to = "resync";
    return o.to || o.is_status || o.is_watch ? ask_switch(robot, &o) : run_switch(robot, &o);
}

const cli_command cli_command_switch = {
    .name = "switch",
    .operand = "ROBOT",
    .needs_operand = true,
    .summary = "one robot for the operators, played by the hardware or by its proxy",
    .about =
        "Hardware, proxy and operators each have a DDS domain of their own. The switch shows the operators "
        "one robot,\n"
        "passes their commands on to the one in control and its outputs back, and publishes on "
        "/understudy/authority who\n"
        "that is, in the domains of hardware and proxy; with --visible in the operators' too. It runs until "
        "Ctrl-C. With --to,\n"
        "--resync, --status or --watch it talks to one that runs, in the domain of the proxy.\n"
        "\n"
        "Examples:\n"
        "  understudy switch k10 --hardware 1 --proxy 2\n"
        "  understudy switch k10 --to proxy\n"
        "  understudy switch k10 --to hardware --match\n"
        "  understudy switch k10 --status\n"
        "  understudy switch k10 --to shadow --watch\n",
    .run = run,
};
