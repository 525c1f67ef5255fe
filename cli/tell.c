// understudy tell: a world command to the simulation that runs on this network, and its answer.
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "bus.h"

enum { MAX_COMMAND = 4096, MAX_STATUS = 1 << 17 };

typedef struct teller {
    cli_bus bus;
    us_writer *writer;
    us_reader *reader;
    char source[33];  // what the simulation calls us
    char command[MAX_COMMAND + 1];
} teller;

static const char *const element = "understudy tell";

// The words with blanks between, as they would be typed. A word with blanks of its own is one name: it goes
// in quotes.
static int join_words(teller *t, const char *first, const cli_list *rest) {
    size_t n = 0;
    for (int32_t i = -1; i < rest->n; i++) {
        const char *word = i < 0 ? first : rest->item[i];
        bool is_name = rest->n > 0 && strpbrk(word, " \t") && !strchr(word, '"');
        int added = snprintf(t->command + n, sizeof t->command - n, is_name ? "%s\"%s\"" : "%s%s",
                             i < 0 ? "" : " ", word);
        if (added < 0 || n + (size_t)added > MAX_COMMAND)
            return cli_fail(CLI_BAD_INPUT, element, "say it in several commands",
                            "the command is longer than %d bytes", (int)MAX_COMMAND);
        n += (size_t)added;
    }
    return CLI_GO_ON;
}

// ---- the network ----

static int join_network(teller *t) {
    int code = cli_bus_open(&t->bus, false);
    int32_t node = -1;
    if (code == CLI_GO_ON) code = cli_bus_add_node(&t->bus, "tell", &node);
    if (code != CLI_GO_ON) return code;
    us_error err = {0};
    const us_message_type *type = us_message_find("std_msgs/msg/String");
    us_topic_def status_topic = {
        .topic = "/understudy/status", .type = type, .qos = {.is_reliable = true, .depth = 64}, .node = node};
    us_topic_def command_topic = {
        .topic = "/understudy/command", .type = type, .qos = {.is_reliable = true, .depth = 1}, .node = node};
    us_status status = us_bus_add_reader(t->bus.bus, &status_topic, NULL, NULL, &t->reader, &err);
    if (!status) status = us_bus_add_writer(t->bus.bus, &command_topic, &t->writer, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_RUN_FAILED;
}

// Our own writer among all that is on the network: its id is how the answer names us.
static bool find_source(teller *t) {
    int32_t n = 0, cap = 256;
    us_endpoint *list = cli_allocate((size_t)cap, sizeof *list);
    while (!us_bus_list(t->bus.bus, list, cap, &n) && n > cap) {
        free(list);
        cap = n + 64;
        list = cli_allocate((size_t)cap, sizeof *list);
    }
    bool is_found = false;
    for (int32_t i = 0; i < n && i < cap && !is_found; i++) {
        const us_endpoint *e = &list[i];
        if (!e->is_own || !e->is_writer || strcmp(e->topic, "rt/understudy/command") != 0) continue;
        for (size_t k = 0; k < sizeof e->id; k++)
            snprintf(t->source + 2 * k, 3, "%02x", e->id[k]);
        is_found = true;
    }
    free(list);
    return is_found;
}

// s: how long no further process of the world may show up. One in several processes is found piece by piece,
// and the one that a command is for may be the last.
static const double SETTLED = 0.1;

// Subscribers of the command and publishers of the status are there, and no more of them come.
static bool wait_for_simulation(teller *t, double seconds) {
    double until = cli_clock() + seconds, changed = cli_clock();
    int32_t n_before = 0;
    for (;;) {
        int32_t n_command = us_writer_n_match(t->writer), n_status = us_reader_n_match(t->reader);
        if (n_command + n_status != n_before) changed = cli_clock();
        n_before = n_command + n_status;
        if (n_command > 0 && n_status > 0 && cli_clock() - changed >= SETTLED && find_source(t)) return true;
        if (cli_is_stopped() || cli_clock() >= until) return false;
        cli_pause(0.01);
    }
}

// Plain CDR: a String is its length, with the 0 at its end, and its characters.
static us_status send_command(teller *t) {
    uint8_t bytes[8 + MAX_COMMAND + 1] = {0, 1, 0, 0};
    uint32_t length = (uint32_t)strlen(t->command) + 1;
    memcpy(bytes + 4, &length, sizeof length);
    memcpy(bytes + 8, t->command, length);
    return us_writer_write(t->writer, bytes, 8 + length, 0);
}

// ---- the answer ----

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

// Names come from other programs: control characters must not reach the terminal.
static void print_plain(FILE *out, const char *text) {
    for (const char *s = text; *s; s++)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, out);
}

// The exit code, or CLI_GO_ON when our answer is not among these.
static int find_answer(const teller *t, const char *json) {
    cJSON *status = cJSON_Parse(json);
    int code = CLI_GO_ON;
    const cJSON *answer;
    cJSON_ArrayForEach(answer, cJSON_GetObjectItemCaseSensitive(status, "answers")) {
        if (strcmp(text_of(answer, "source"), t->source) != 0) continue;
        const char *message = text_of(answer, "message");
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "ok"))) {
            if (message[0]) print_plain(stdout, message);
            if (message[0]) putchar('\n');
            code = CLI_OK;
        } else {
            fputs("refused: ", stderr);
            print_plain(stderr, message);
            fputc('\n', stderr);
            code = CLI_BAD_INPUT;
        }
        break;
    }
    cJSON_Delete(status);
    return code;
}

static int wait_for_answer(teller *t, double seconds) {
    uint8_t *bytes = cli_allocate(MAX_STATUS, 1);
    double until = cli_clock() + seconds;
    int code = CLI_GO_ON;
    while (code == CLI_GO_ON && cli_clock() < until && !cli_is_stopped()) {
        size_t length = 0;
        us_status status = us_reader_take(t->reader, bytes, MAX_STATUS - 1, &length, NULL);
        if (status || length == 0) {
            us_bus_wait(t->bus.bus, 0.02);
            continue;
        }
        bytes[length < MAX_STATUS ? length : MAX_STATUS - 1] = 0;
        if (length > 8) code = find_answer(t, (const char *)bytes + 8);
    }
    free(bytes);
    return code;
}

static int run(const cli_command *command, int argc, char **argv) {
    cli_list rest = {0};
    const char *first = NULL;
    const cli_option table[] = {{"WORD", CLI_REST, &rest, NULL, NULL}};
    // Numbers may be negative: everything is a word, but for a question about the command itself.
    bool is_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (is_help || argc < 2) return cli_parse(command, table, 1, argc, argv, &first);
    for (int i = 1; i < argc; i++) {
        if (i == 1 && strcmp(argv[i], "--") == 0) continue;
        if (!first) {
            first = argv[i];
        } else if (rest.n == CLI_LIST_MAX) {
            return cli_fail(CLI_BAD_INPUT, element, "say it in several commands", "more than %d words",
                            CLI_LIST_MAX);
        } else {
            rest.item[rest.n++] = argv[i];
        }
    }
    if (!first) return cli_parse(command, table, 1, 1, argv, &first);
    teller t = {.source = ""};
    int code = join_words(&t, first, &rest);
    if (code != CLI_GO_ON) return code;
    cli_catch_stop(NULL);
    code = join_network(&t);
    if (code == CLI_GO_ON && !wait_for_simulation(&t, 3))
        code =
            cli_is_stopped()
                ? cli_fail(CLI_RUN_FAILED, element, NULL, "stopped before the command was sent")
                : cli_fail(
                      CLI_RUN_FAILED, element,
                      "start one with a robot in it: understudy run SCENE; both need the same ROS_DOMAIN_ID",
                      "no simulation listens on domain %d", (int)us_bus_domain(t.bus.bus));
    if (code == CLI_GO_ON) {
        int32_t n = us_writer_n_match(t.writer);
        if (n > 1)
            cli_warn("give each its own ROS_DOMAIN_ID",
                     "%d simulations are subscribed: all of them receive it, and the first answer counts",
                     (int)n);
        us_status status = send_command(&t);
        if (status)
            code =
                cli_fail(CLI_RUN_FAILED, element, "try again", "cannot be sent: %s", us_status_text(status));
    }
    if (code == CLI_GO_ON) code = wait_for_answer(&t, 2);
    if (code == CLI_GO_ON)
        code = cli_is_stopped() ? cli_fail(CLI_RUN_FAILED, element,
                                           "look whether it was done: understudy echo /understudy/status",
                                           "stopped before an answer came")
                                : cli_fail(CLI_RUN_FAILED, element,
                                           "look whether it still runs: understudy echo /understudy/status",
                                           "no answer came within 2 s");
    cli_bus_close(&t.bus);
    return code;
}

const cli_command cli_command_tell = {
    .name = "tell",
    .operand = "COMMAND",
    .needs_operand = true,
    .summary = "change the world or its time while it runs",
    .about = "Sends a world command on /understudy/command and waits for its answer on /understudy/status, "
             "for at most 2 s.\n"
             "Exit codes: 0 done, 2 refused, with the reason, 3 nobody answers.\n"
             "\n"
             "Examples:\n"
             "  understudy tell pause\n"
             "  understudy tell add box crate size=0.5,0.5,0.5 at=1,0,2 density=300\n"
             "  understudy tell move crate 2 -1 0.5\n"
             "  understudy tell pair rubber soil static-friction=0.45\n"
             "  understudy tell snapshot before-the-climb\n",
    .run = run,
};
