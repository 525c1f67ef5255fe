// Options: one table per command drives parsing, help and suggestions.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *dashes(const cli_option *option) { return option->name[0] == '-' ? "" : "--"; }

// ---- the help of a command, made from its table ----

static void print_help(const cli_command *command, const cli_option *options, int32_t n_option) {
    printf("%s: %s\n\nUsage: understudy %s", command->name, command->summary, command->name);
    if (command->operand) printf(command->needs_operand ? " %s" : " [%s]", command->operand);
    for (int32_t i = 0; i < n_option; i++) {
        if (options[i].kind == CLI_REST) printf(" [%s...]", options[i].name);
    }
    printf(" [OPTIONS]\n\nOptions:\n");
    for (int32_t i = 0; i < n_option; i++) {
        if (options[i].kind == CLI_REST) continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s", dashes(&options[i]), options[i].name,
                 options[i].value ? " " : "", options[i].value ? options[i].value : "");
        printf("  %-23s %s%s\n", left, options[i].about,
               options[i].kind == CLI_LIST ? "; may be repeated" : "");
    }
    printf("  %-23s %s\n", "--help", "this text");
    if (command->about) printf("\n%s", command->about);
}

// ---- suggestions ----

static int32_t min3(int32_t a, int32_t b, int32_t c) {
    int32_t m = a < b ? a : b;
    return m < c ? m : c;
}

// Edit distance with neighbours swapped counting one (optimal string alignment). Texts longer than 63 are
// cut.
static int32_t edit_distance(const char *a, const char *b) {
    enum { MAX = 64 };
    int32_t row[3][MAX];
    size_t n = strnlen(a, MAX - 1), m = strnlen(b, MAX - 1);
    int32_t *before = row[0], *last = row[1], *now = row[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = (int32_t)j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = (int32_t)i;
        for (size_t j = 1; j <= m; j++) {
            int32_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        int32_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

const char *cli_nearest(const char *text, const char *const *candidates, int32_t n_candidate) {
    const char *best = NULL;
    size_t length = strlen(text);
    int32_t limit = length < 4 ? 1 : length < 8 ? 2 : 3, best_distance = limit + 1;
    for (int32_t i = 0; i < n_candidate; i++) {
        int32_t distance = edit_distance(text, candidates[i]);
        // The beginning of a word, or a word with something after it, is as near as one typing error.
        size_t other = strlen(candidates[i]), common = length < other ? length : other;
        if (common >= 3 && strncmp(text, candidates[i], common) == 0 && distance > 1) distance = 1;
        // So is a name without the group in front of it: "elbow" for "arm/elbow".
        if (other > length && candidates[i][other - length - 1] == '/' &&
            strcmp(candidates[i] + other - length, text) == 0)
            distance = 0;
        if (distance < best_distance) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

// ---- parsing ----

bool cli_parse_vector(const char *text, us_vec3 *out_vector) {
    double x[3];
    for (int32_t i = 0; i < 3; i++) {
        char *end;
        x[i] = strtod(text, &end);
        if (end == text || !isfinite(x[i]) || *end != (i < 2 ? ',' : 0)) return false;
        text = end + 1;
    }
    *out_vector = us_vec3_make(x[0], x[1], x[2]);
    return true;
}

static int fail_option(const cli_command *command, const cli_option *options, int32_t n_option,
                       const char *name) {
    const char *names[64];
    int32_t n = 0;
    for (int32_t i = 0; i < n_option && n < 63; i++) {
        if (options[i].kind != CLI_REST) names[n++] = options[i].name;
    }
    names[n++] = "help";
    char remedy[160], element[64];
    const char *near = cli_nearest(name + strspn(name, "-"), names, n);
    if (near) {
        snprintf(remedy, sizeof remedy, "did you mean \"--%s\"?", near);
    } else {
        snprintf(remedy, sizeof remedy, "\"understudy %s --help\" lists the options", command->name);
    }
    snprintf(element, sizeof element, "understudy %s", command->name);
    return cli_fail(CLI_BAD_INPUT, element, remedy, "unknown option \"%s\"", name);
}

static int store(const cli_command *command, const cli_option *option, const char *value) {
    char element[128], remedy[192], *end;
    snprintf(element, sizeof element, "understudy %s", command->name);
    snprintf(remedy, sizeof remedy, "write %s%s %s: %s", dashes(option), option->name, option->value,
             option->about);
    errno = 0;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->target = true;
        break;
    case CLI_TEXT:
        *(const char **)option->target = value;
        break;
    case CLI_NUMBER: {
        double x = strtod(value, &end);
        if (end == value || *end || !isfinite(x))
            return cli_fail(CLI_BAD_INPUT, element, remedy, "%s%s: \"%s\" is not a number", dashes(option),
                            option->name, value);
        *(double *)option->target = x;
        break;
    }
    case CLI_INTEGER: {
        long long x = strtoll(value, &end, 10);
        if (end == value || *end || errno == ERANGE) {
            return cli_fail(CLI_BAD_INPUT, element, remedy, "%s%s: \"%s\" is not a whole number",
                            dashes(option), option->name, value);
        }
        *(int64_t *)option->target = x;
        break;
    }
    case CLI_LIST:
    case CLI_REST: {
        cli_list *list = option->target;
        if (list->n == CLI_LIST_MAX)
            return cli_fail(CLI_BAD_INPUT, element, remedy, "%s is given more than %d times", option->name,
                            CLI_LIST_MAX);
        list->item[list->n++] = value;
        break;
    }
    }
    return CLI_GO_ON;
}

static const cli_option *find_option(const cli_option *options, int32_t n_option, const char *name,
                                     size_t length) {
    for (int32_t i = 0; i < n_option; i++) {
        if (options[i].kind != CLI_REST && strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    }
    return NULL;
}

// Where a second operand and those after it go; NULL when a command takes one at most.
static const cli_option *find_rest(const cli_option *options, int32_t n_option) {
    for (int32_t i = 0; i < n_option; i++) {
        if (options[i].kind == CLI_REST) return &options[i];
    }
    return NULL;
}

// What is read of a command line.
typedef struct parser {
    const cli_command *command;
    const cli_option *options, *rest;  // rest: the option that takes further operands, or NULL
    int32_t n_option;
    const char *operand;
    bool is_seen[64];
    char element[64], remedy[192];
} parser;

static int take_operand(parser *p, const char *text) {
    const cli_command *command = p->command;
    if (!command->operand)
        return cli_fail(CLI_BAD_INPUT, p->element, p->remedy, "takes no file, but \"%s\" is given", text);
    if (p->operand && p->rest) return store(command, p->rest, text);
    if (p->operand)
        return cli_fail(CLI_BAD_INPUT, p->element, p->remedy, "takes one %s, but \"%s\" and \"%s\" are given",
                        command->operand, p->operand, text);
    p->operand = text;
    return CLI_GO_ON;
}

// The option argv[*at], with its value behind '=' or in the next argument, to which *at moves.
static int take_option(parser *p, int argc, char **argv, int *at) {
    const char *text = argv[*at], *name = text[1] == '-' ? text + 2 : text, *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *option =
        name[0] == '-' && name != text ? NULL : find_option(p->options, p->n_option, name, length);
    if (!option) return fail_option(p->command, p->options, p->n_option, text);

    // Value.
    const char *value = equals ? equals + 1 : NULL;
    if (option->kind == CLI_FLAG) {
        if (value)
            return cli_fail(CLI_BAD_INPUT, p->element, p->remedy, "%s%s takes no value", dashes(option),
                            option->name);
    } else if (!value) {
        if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
            return cli_fail(CLI_BAD_INPUT, p->element, p->remedy, "%s%s needs a value: %s", dashes(option),
                            option->name, option->value);
        value = argv[++*at];
    }

    // Once, unless it is a list.
    int32_t index = (int32_t)(option - p->options);
    if (option->kind != CLI_LIST && index < 64) {
        if (p->is_seen[index])
            return cli_fail(CLI_BAD_INPUT, p->element, "give it once", "%s%s is given twice", dashes(option),
                            option->name);
        p->is_seen[index] = true;
    }
    return store(p->command, option, value);
}

int cli_parse(const cli_command *command, const cli_option *options, int32_t n_option, int argc, char **argv,
              const char **out_operand) {
    parser p = {.command = command, .options = options, .n_option = n_option};
    p.rest = find_rest(options, n_option);
    snprintf(p.element, sizeof p.element, "understudy %s", command->name);
    snprintf(p.remedy, sizeof p.remedy, "\"understudy %s --help\" says how it is used", command->name);
    // Help comes before everything else on the line, also before its errors.
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command, options, n_option);
            return CLI_OK;
        }
    }
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        int code = CLI_GO_ON;
        if (!only_operands && strcmp(text, "--") == 0)
            only_operands = true;
        else if (only_operands || text[0] != '-' || text[1] == 0)
            code = take_operand(&p, text);
        else
            code = take_option(&p, argc, argv, &i);
        if (code != CLI_GO_ON) return code;
    }
    if (!p.operand && command->needs_operand)
        return cli_fail(CLI_BAD_INPUT, p.element, p.remedy, "needs a %s", command->operand);
    *out_operand = p.operand;
    return CLI_GO_ON;
}
