// understudy keys: makes and shows the keys with which programs of a domain know and trust each other.
#include "understudy/keys.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "understudy/network.h"

enum { MAX_TOPIC = 512, TOPIC_LENGTH = 256 };

static const char *const element = "understudy keys";

typedef struct keys_options {
    cli_list rest, publish, subscribe;
    const char *domains, *scene, *as, *vendor;
    int64_t days;
    bool is_json;
} keys_options;

// ---- topics ----

typedef struct topic_list {
    int32_t n;
    const char *item[MAX_TOPIC];
    char text[MAX_TOPIC][TOPIC_LENGTH];
} topic_list;

// Adds the topic that the three texts make together, unless it is there. One that is too long is refused
// later, as what remains of it would not be a topic.
static void add_topic(topic_list *list, const char *a, const char *b, const char *c) {
    if (list->n == MAX_TOPIC) return;
    char *text = list->text[list->n];
    if (snprintf(text, TOPIC_LENGTH, "%s%s%s", a, b, c) >= TOPIC_LENGTH)
        snprintf(text, TOPIC_LENGTH, "too long");
    for (int32_t i = 0; i < list->n; i++) {
        if (strcmp(list->item[i], text) == 0) return;
    }
    list->item[list->n++] = text;
}

// Each option may hold several topics, with commas between.
static void add_list(topic_list *list, const cli_list *from) {
    for (int32_t i = 0; i < from->n; i++) {
        for (const char *at = from->item[i]; *at;) {
            const size_t n = strcspn(at, ",");
            char topic[TOPIC_LENGTH];
            snprintf(topic, sizeof topic, "%.*s", (int)n, at);
            if (n) add_topic(list, topic, "", "");
            at += n + (at[n] ? 1 : 0);
        }
    }
}

// What a robot of a scene says and what it hears. Its commands are those of docs/network.md.
static void add_robot(const us_network_def *d, topic_list *said, topic_list *heard) {
    const char *const commands[] = {"cmd_vel",
                                    "joint_trajectory",
                                    "joint_commands",
                                    "motor_group/command",
                                    "locomotor/command",
                                    "pose_estimator/command",
                                    "navigator/command",
                                    "gait",
                                    d->is_stamped ? "cmd_vel_unstamped" : "cmd_vel_stamped"};
    const char *slash = d->namespace_[0] ? "/" : "";
    char below[TOPIC_LENGTH];
    snprintf(below, sizeof below, "%s%.200s", slash, d->namespace_);
    for (int32_t i = 0; i < d->n_topic; i++) {
        const char *name = d->topics[i].name;
        const bool is_absolute = name[0] == '/';
        add_topic(said, is_absolute ? "" : below, is_absolute ? "" : "/", name);
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        add_topic(heard, below, "/", commands[i]);
    for (int32_t i = 0; i < d->n_source; i++) {
        const char *name = d->sources[i].topic;
        if (!name) continue;
        const bool is_absolute = name[0] == '/';
        add_topic(heard, is_absolute ? "" : below, is_absolute ? "" : "/", name);
    }
    if (!d->has_services) return;
    add_topic(said, "/rosout", "", "");
    add_topic(said, "/parameter_events", "", "");
    add_topic(said, "rr", below, "/*Reply");
    add_topic(heard, "rq", below, "/*Request");
}

// Topics of a scene's robots, for the one that plays them or for those who command them.
static int add_scene(const keys_options *o, topic_list *publish, topic_list *subscribe) {
    bool is_robot = strcmp(o->as, "robot") == 0;
    if (!is_robot && strcmp(o->as, "operator") != 0)
        return cli_fail(CLI_BAD_INPUT, element, "write robot or operator", "--as: invalid side \"%.60s\"",
                        o->as);
    if (!o->scene) return CLI_GO_ON;
    cli_load load = {.file = o->scene};
    cli_world world = {0};
    int code = cli_load_spec(&load, US_BASE_FIXED, &world);
    if (code != CLI_GO_ON) return code;
    topic_list *said = is_robot ? publish : subscribe, *heard = is_robot ? subscribe : publish;
    int32_t n_robot = 0;
    for (int32_t g = 0; g < us_spec_get_counts(world.spec).n_group; g++) {
        const us_network_def *d = us_spec_view_network(world.spec, g);
        if (!d || d->is_off) continue;
        add_robot(d, said, heard);
        n_robot++;
    }
    cli_world_fini(&world);
    if (n_robot == 0)
        return cli_fail(CLI_BAD_INPUT, element, "name a scene with robots, or use --publish and --subscribe",
                        "%.200s has no robot on the network", o->scene);
    add_topic(said, "/clock", "", "");
    add_topic(said, "/understudy/*", "", "");
    add_topic(heard, "/understudy/*", "", "");
    add_topic(said, "rr/understudy/*Reply", "", "");
    add_topic(heard, "rq/understudy/*Request", "", "");
    if (publish->n < MAX_TOPIC && subscribe->n < MAX_TOPIC) return CLI_GO_ON;
    return cli_fail(CLI_BAD_INPUT, element, "use patterns: --publish '/k10/*'", "more than %d topics",
                    MAX_TOPIC - 1);
}

// ---- create, add, list ----

static int code_of(us_status status) {
    return status == US_ERR_IO ? CLI_CANNOT_WRITE : status == US_ERR_MEMORY ? CLI_RUN_FAILED : CLI_BAD_INPUT;
}

static int create(const char *path, const keys_options *o) {
    us_error err = {0};
    us_keystore_def def = us_keystore_def_default();
    if (o->days > 0) def.days = (int32_t)o->days;
    if (o->domains) def.domains = o->domains;
    us_status status = us_keystore_create(path, &def, &err);
    if (status) {
        cli_print_error(&err);
        return code_of(status);
    }
    printf("made %s: keep %s/private for yourself\n", path, path);
    return CLI_OK;
}

static int add(const char *path, const keys_options *o) {
    static topic_list publish, subscribe;
    if (o->rest.n < 2)
        return cli_fail(CLI_BAD_INPUT, element, "write understudy keys add KEYSTORE /rover",
                        "an enclave is needed");
    add_list(&publish, &o->publish);
    add_list(&subscribe, &o->subscribe);
    int code = add_scene(o, &publish, &subscribe);
    if (code != CLI_GO_ON) return code;
    for (int32_t i = 1; i < o->rest.n; i++) {
        us_error err = {0};
        us_enclave_def def = us_enclave_def_default();
        def.enclave = o->rest.item[i];
        if (o->days > 0) def.days = (int32_t)o->days;
        if (o->domains) def.domains = o->domains;
        def.n_publish = publish.n;
        def.publish = publish.item;
        def.n_subscribe = subscribe.n;
        def.subscribe = subscribe.item;
        def.vendor = o->vendor;
        us_status status = us_keystore_add(path, &def, &err);
        if (status) {
            cli_print_error(&err);
            return code_of(status);
        }
        const char *every = publish.n + subscribe.n == 0 ? "every topic" : "the topics that were named";
        printf("made %s: may write and read %s\n", def.enclave, every);
    }
    return CLI_OK;
}

static void show(const us_enclave_info *e, cli_json *json) {
    char until[32] = "-";
    const time_t time = (time_t)e->until;
    struct tm utc;
    if (e->until && gmtime_r(&time, &utc)) strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!json) {
        printf("%-24s until %s  %s%s\n", e->enclave, until, e->status ? "cannot be used: " : "good",
               e->status ? e->error.message : "");
        return;
    }
    cli_json_begin_short(json, NULL, '{');
    cli_json_text(json, "enclave", e->enclave);
    cli_json_text(json, "until", until);
    cli_json_text(json, "serial", e->serial);
    cli_json_bool(json, "good", e->status == US_OK);
    cli_json_text(json, "error", e->status ? e->error.message : NULL);
    cli_json_end(json);
}

static int list(const char *path, bool is_json) {
    us_error err = {0};
    int32_t n = 0, cap = 0;
    us_enclave_info *infos = NULL;
    us_status status = US_OK;
    do {
        cap = n + 16;
        free(infos);
        infos = cli_allocate((size_t)cap, sizeof *infos);
        status = us_keystore_list(path, infos, cap, &n, &err);
    } while (!status && n > cap);
    if (status) {
        cli_print_error(&err);
        free(infos);
        return CLI_BAD_INPUT;
    }
    cli_json json = {.out = stdout};
    if (is_json) cli_json_begin(&json, NULL, '[');
    for (int32_t i = 0; i < n; i++)
        show(&infos[i], is_json ? &json : NULL);
    if (is_json) cli_json_end(&json);
    if (is_json) putchar('\n');
    free(infos);
    return CLI_OK;
}

static int add_user(const keys_options *o) {
    us_error err = {0};
    char token[US_PAGE_TOKEN];
    if (o->rest.n != 3)
        return cli_fail(CLI_BAD_INPUT, element,
                        "write understudy keys user FILE NAME look|drive|world|switch",
                        "a user needs a file, a name and a role");
    us_status status = us_page_user_add(o->rest.item[0], o->rest.item[1], o->rest.item[2], token, &err);
    if (status) {
        cli_print_error(&err);
        return code_of(status);
    }
    printf("%s\n", token);
    return CLI_OK;
}

static int run(const cli_command *command, int argc, char **argv) {
    keys_options o = {.as = "robot"};
    const cli_option options[] = {
        {"KEYSTORE [ENCLAVE...]", CLI_REST, &o.rest, NULL, NULL},
        {"domains", CLI_TEXT, &o.domains, "LIST", "domains that the keys are for, as 0,7,20-25 (all)"},
        {"days", CLI_INTEGER, &o.days, "N", "how long they are valid (create: 3650, add: 365)"},
        {"publish", CLI_LIST, &o.publish, "TOPICS", "add: topics that it may write, as /k10/cmd_vel,/k10/*"},
        {"subscribe", CLI_LIST, &o.subscribe, "TOPICS", "add: topics that it may read"},
        {"scene", CLI_TEXT, &o.scene, "FILE", "add: the topics of the robots of a scene"},
        {"as", CLI_TEXT, &o.as, "SIDE",
         "add: robot (writes what the robots say) or operator (commands them) (robot)"},
        {"vendor", CLI_TEXT, &o.vendor, "DDS",
         "add: cyclone or fastdds, where programs of both are in one domain (any)"},
        {"json", CLI_FLAG, &o.is_json, NULL, "list: as JSON"},
    };
    const char *action = NULL;
    int code = cli_parse(command, options, sizeof options / sizeof options[0], argc, argv, &action);
    if (code != CLI_GO_ON) return code;
    if (o.days < 0 || o.days > 36500)
        return cli_fail(CLI_BAD_INPUT, element, "write 1 to 36500", "--days: invalid number %lld",
                        (long long)o.days);
    static const char *const actions[] = {"create", "add", "list", "user"};
    if (o.rest.n == 0)
        return cli_fail(CLI_BAD_INPUT, element, "write understudy keys create KEYSTORE",
                        "a keystore is needed");
    if (strcmp(action, "create") == 0) return create(o.rest.item[0], &o);
    if (strcmp(action, "add") == 0) return add(o.rest.item[0], &o);
    if (strcmp(action, "list") == 0) return list(o.rest.item[0], o.is_json);
    if (strcmp(action, "user") == 0) return add_user(&o);
    const char *near = cli_nearest(action, actions, 4);
    char remedy[96];
    snprintf(remedy, sizeof remedy, "%s%s%s", near ? "did you mean " : "write create, add, list or user",
             near ? near : "", near ? "?" : "");
    return cli_fail(CLI_BAD_INPUT, element, remedy, "unknown action \"%.60s\"", action);
}

const cli_command cli_command_keys = {
    .name = "keys",
    .operand = "create|add|list|user",
    .needs_operand = true,
    .summary = "keys for DDS Security: who may take part, and which topics they may write and read",
    .about = "A keystore is a directory in the layout of SROS 2. create makes it with its authority; add "
             "gives an\n"
             "enclave (the name under which a program takes part) a certificate, a private key and "
             "permissions, or\n"
             "makes them anew; list shows what there is and whether it can be used. Without --publish, "
             "--subscribe\n"
             "and --scene an enclave may write and read every topic. Programs use it with\n"
             "  ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce ROS_SECURITY_KEYSTORE=KEYSTORE\n"
             "  ROS_SECURITY_ENCLAVE_OVERRIDE=ENCLAVE\n"
             "\n"
             "Examples:\n"
             "  understudy keys create keystore\n"
             "  understudy keys add keystore /rover --scene scenes/default.xml\n"
             "  understudy keys add keystore /operator --scene scenes/default.xml --as operator\n"
             "  understudy keys add keystore /observer --subscribe '/k10/*,/tf'\n"
             "  understudy keys list keystore\n"
             "  understudy keys user users anna drive         prints the token of a new user of the page"
             " (run --users)\n",
    .run = run,
};
