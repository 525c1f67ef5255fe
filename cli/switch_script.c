// A training script: one line for each thing that happens, in any order.
//
//     # a calm start
//     0        hardware
//     90       fault k10 motor:front_left_drive=dead
//     between 120 180 proxy|stop   the operators should notice within a minute
//
// TIME is in seconds, or somewhere between two such times; switch.c says when 0 is. Then comes a mode, or one
// of several with | between, or a world command, which goes to the proxy. What follows a mode is a note for
// the log. What is random is drawn from the seed and the number of the line, when the file is read: the same
// seed gives the same plan, and a line more does not change the draws of those before it.
#include "switch_script.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCRIPT = 1000, MAX_TEXT = 400 };

static const char *const element = "understudy switch --script";

typedef struct script_line {
    double time;
    int32_t number;       // in the file
    us_switch_mode mode;  // US_MODE_COUNT: a world command
    char text[MAX_TEXT];  // the command, or the note
} script_line;

struct cli_script {
    us_bus *bus;
    us_writer *writer;
    int32_t n, next;
    script_line lines[MAX_SCRIPT];
};

// ---- reading ----

// The next word of *at, which moves behind it; "" at the end.
static const char *next_word(char **at) {
    char *word = *at + strspn(*at, " \t\r");
    char *end = word + strcspn(word, " \t\r");
    *at = *end ? end + 1 : end;
    *end = 0;
    return word;
}

static bool read_time(const char *word, double *out_time) {
    char *end = NULL;
    *out_time = strtod(word, &end);
    return end != word && *end == 0 && *out_time >= 0 && isfinite(*out_time);
}

// One of the modes "proxy|stop"; US_MODE_COUNT when any of them is none.
static us_switch_mode draw_mode(const char *word, double share) {
    char copy[MAX_TEXT];
    us_switch_mode modes[16];
    int n = 0;
    snprintf(copy, sizeof copy, "%s", word);
    for (char *rest = copy, *part; (part = strsep(&rest, "|")) != NULL;) {
        if (n == 16 || (modes[n] = us_switch_find_mode(part)) == US_MODE_COUNT) return US_MODE_COUNT;
        n++;
    }
    return modes[(int)(share * n)];
}

// False when the line cannot be read; `why` says what is wrong.
static bool read_line(char *text, uint64_t seed, script_line *out, const char **why) {
    double until = 0;
    const char *word = next_word(&text);
    bool is_between = strcmp(word, "between") == 0;
    *why = "it begins with a time in seconds, or with: between TIME TIME";
    if (!read_time(is_between ? next_word(&text) : word, &out->time)) return false;
    if (is_between && (!read_time(next_word(&text), &until) || until < out->time)) return false;
    if (is_between) out->time += (until - out->time) * us_random_uniform(seed, 1, (uint64_t)out->number);
    text += strspn(text, " \t");
    char whole[MAX_TEXT];
    *why = "it is too long";
    if (strlen(text) >= sizeof whole) return false;
    snprintf(whole, sizeof whole, "%s", text);
    whole[strcspn(whole, "\r")] = 0;
    word = next_word(&text);
    out->mode = draw_mode(word, us_random_uniform(seed, 2, (uint64_t)out->number));
    // A world command has more than one word, but for those of time; a mode that is misspelt stands alone or
    // before a note.
    static const char *const verbs[] = {"pause",   "resume", "step",   "rate",  "reset",    "snapshot",
                                        "restore", "forget", "record", "pair",  "soil",     "region",
                                        "add",     "move",   "raise",  "lower", "velocity", "remove",
                                        "joint",   "drive",  "sensor", "fault"};
    bool is_command = false;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        is_command = is_command || strcmp(word, verbs[i]) == 0;
    *why = "after the time comes hardware, proxy, mirror, shadow, stop, or a world command such as fault";
    if (out->mode == US_MODE_COUNT && !is_command) return false;
    snprintf(out->text, sizeof out->text, "%s", is_command ? whole : text + strspn(text, " \t"));
    return true;
}

static int compare(const void *a, const void *b) {
    const script_line *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

int cli_script_load(const char *path, uint64_t seed, cli_script **out_script) {
    *out_script = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        return cli_fail(CLI_BAD_INPUT, element, "give a file with lines such as: 60 proxy",
                        "%.200s cannot be read", path);
    cli_script *s = cli_allocate(1, sizeof *s);
    char text[MAX_TEXT + 64];
    int code = CLI_GO_ON;
    for (int32_t number = 1; code == CLI_GO_ON && fgets(text, sizeof text, file); number++) {
        const char *why = "it is too long";
        bool is_whole = strchr(text, '\n') || feof(file);
        text[strcspn(text, "#\n")] = 0;
        if (is_whole && text[strspn(text, " \t\r")] == 0) continue;
        if (s->n == MAX_SCRIPT) {
            code = cli_fail(CLI_BAD_INPUT, element, "write several scripts", "%.200s has more than %d lines",
                            path, (int)MAX_SCRIPT);
            break;
        }
        s->lines[s->n].number = number;
        if (!is_whole || !read_line(text, seed, &s->lines[s->n], &why))
            code = cli_fail(CLI_BAD_INPUT, element, why, "%.200s, line %d cannot be read", path, number);
        s->n++;
    }
    fclose(file);
    if (code != CLI_GO_ON) {
        free(s);
        return code;
    }
    qsort(s->lines, (size_t)s->n, sizeof *s->lines, compare);
    *out_script = s;
    return CLI_GO_ON;
}

// ---- doing it ----

int cli_script_begin(cli_script *s, const us_bus_def *proxy) {
    bool needs_world = false;
    for (int32_t i = 0; i < s->n; i++)
        needs_world = needs_world || s->lines[i].mode == US_MODE_COUNT;
    if (!needs_world) return CLI_GO_ON;
    us_error err = {0};
    us_status status = us_bus_open(proxy, &s->bus, &err);
    us_topic_def topic = {"/understudy/command",
                          us_message_find("std_msgs/msg/String"),
                          {.is_reliable = true, .depth = MAX_SCRIPT},
                          -1};
    if (!status) status = us_bus_add_node(s->bus, "/understudy", "script", &topic.node, &err);
    if (!status) status = us_bus_add_writer(s->bus, &topic, &s->writer, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_RUN_FAILED;
}

static us_status tell_world(cli_script *s, const char *command) {
    // Plain CDR: a String is its length, with the 0 at its end, and its characters.
    uint8_t bytes[MAX_TEXT + 16] = {0, 1, 0, 0};
    uint32_t length = (uint32_t)strlen(command) + 1;
    memcpy(bytes + 4, &length, sizeof length);
    memcpy(bytes + 8, command, length);
    return us_writer_write(s->writer, bytes, 8 + length, 0);
}

void cli_script_go_on(cli_script *s, us_switch *sw, double time, us_switch_event_function *say) {
    for (; s->next < s->n && s->lines[s->next].time <= time; s->next++) {
        const script_line *line = &s->lines[s->next];
        bool is_mode = line->mode != US_MODE_COUNT;
        us_status status = is_mode ? us_switch_request(sw, line->mode) : tell_world(s, line->text);
        bool is_unheard = !is_mode && us_writer_n_match(s->writer) == 0;
        char text[MAX_TEXT + 160];
        snprintf(text, sizeof text, "script line %d, %.1f s: %s%s%s%s%s", line->number, line->time,
                 is_mode ? us_switch_mode_name(line->mode) : "", is_mode && line->text[0] ? " " : "",
                 line->text, is_unheard ? ": nobody takes world commands in the proxy's domain" : "",
                 status ? ": not sent" : "");
        say(NULL, cli_wall_ns(), text);
    }
}

void cli_script_destroy(cli_script *s) {
    if (!s) return;
    us_bus_close(s->bus);
    free(s);
}
