// Errors and warnings as people see them: once each, with a remedy, coloured only where that helps.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

bool cli_is_terminal(FILE *stream) {
    const char *term = getenv("TERM");
    return term && strcmp(term, "dumb") != 0 && isatty(fileno(stream)) == 1;
}

bool cli_is_fancy(FILE *stream) {
    const char *no_color = getenv("NO_COLOR");
    return !(no_color && no_color[0]) && cli_is_terminal(stream);
}

// "error: place: message\n  remedy: ...", the first word coloured. `n_times` above 1 is printed after the
// message.
static void print_message(FILE *stream, const char *word, const char *colour, const us_error *err,
                          int32_t n_times) {
    // The parts of a us_error are bounded, so their sum is too.
    char text[2048], times[32] = "";
    us_error_format(err, text, sizeof text);
    char *line_end = strchr(text, '\n');
    int first = line_end ? (int)(line_end - text) : (int)strlen(text);
    bool is_fancy = cli_is_fancy(stream);
    if (n_times > 1) snprintf(times, sizeof times, " (%d times)", (int)n_times);
    fprintf(stream, "%s%s:%s %.*s%s%s\n", is_fancy ? colour : "", word, is_fancy ? "\033[0m" : "", first,
            text, times, line_end ? line_end : "");
}

int cli_input_code(const us_error *err) {
    return err->code == US_ERR_MEMORY ? CLI_RUN_FAILED : CLI_BAD_INPUT;
}

int cli_output_code(const us_error *err) {
    return err->code == US_ERR_MEMORY ? CLI_RUN_FAILED : CLI_CANNOT_WRITE;
}

void cli_print_error(const us_error *err) {
    us_error with = *err;
    if (err->code == US_ERR_MEMORY && !err->remedy[0]) {
        snprintf(with.remedy, sizeof with.remedy, "free memory, or raise its limit (ulimit -v)");
        err = &with;
    }
    fflush(stdout);
    print_message(stderr, "error", "\033[1;31m", err, 1);
}

int cli_fail(int code, const char *element, const char *remedy, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    us_error err = {0};
    us_place place = {NULL, 0, 0, element};
    us_error_set(&err, US_ERR_ARG, &place, remedy, "%s", message);
    cli_print_error(&err);
    return code;
}

void cli_warn(const char *remedy, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    us_error err = {0};
    us_place place = {NULL, 0, 0, "understudy"};
    us_error_set(&err, US_OK, &place, remedy, "%s", message);
    print_message(stderr, "warning", "\033[1;33m", &err, 1);
}

// Two warnings are equal when a reader could not distinguish them.
static bool is_equal(const us_error *a, const us_error *b) {
    return a->line == b->line && a->column == b->column && strcmp(a->message, b->message) == 0 &&
           strcmp(a->element, b->element) == 0 && strcmp(a->file, b->file) == 0 &&
           strcmp(a->remedy, b->remedy) == 0;
}

static uint64_t hash_of(const us_error *warning) {
    uint64_t hash = us_hash_bytes((uint64_t)warning->line, warning->message, strlen(warning->message));
    hash = us_hash_bytes(hash, warning->element, strlen(warning->element));
    return us_hash_bytes(hash, warning->file, strlen(warning->file));
}

int32_t cli_each_warning(const us_spec *spec,
                         void (*visit)(void *context, const us_error *warning, int32_t n_times),
                         void *context) {
    int32_t n = spec ? us_spec_get_counts(spec).n_warning : 0, n_different = 0;
    if (n == 0) return 0;
    uint64_t *hash = cli_allocate((size_t)n, sizeof *hash);
    int32_t *n_times = cli_allocate((size_t)n, sizeof *n_times);  // 0: equal to an earlier one
    for (int32_t i = 0; i < n; i++)
        hash[i] = hash_of(us_spec_view_warning(spec, i));
    for (int32_t i = 0; i < n; i++) {
        const us_error *warning = us_spec_view_warning(spec, i);
        int32_t same = i;
        for (int32_t j = 0; j < i && same == i; j++) {
            if (hash[j] == hash[i] && n_times[j] > 0 && is_equal(us_spec_view_warning(spec, j), warning))
                same = j;
        }
        n_times[same]++;
    }
    for (int32_t i = 0; i < n; i++) {
        if (n_times[i] == 0) continue;
        n_different++;
        if (visit) visit(context, us_spec_view_warning(spec, i), n_times[i]);
    }
    free(hash);
    free(n_times);
    return n_different;
}

static void print_warning(void *context, const us_error *warning, int32_t n_times) {
    print_message(context, "warning", "\033[1;33m", warning, n_times);
}

int32_t cli_print_warnings(FILE *stream, const us_spec *spec) {
    return cli_each_warning(spec, print_warning, stream);
}

void *cli_allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) {
        fputs("error: understudy: out of memory\n  remedy: close other programs, or take a smaller scene\n",
              stderr);
        exit(CLI_RUN_FAILED);
    }
    return memory;
}
