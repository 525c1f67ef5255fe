#include "wire/idl_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static usi_idl_file *top(usi_idl_scanner *s) { return &s->file[s->n_file - 1]; }

bool usi_idl_fail(usi_idl_scanner *s, us_status status, const char *remedy, const char *format, ...) {
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return usi_reading_fail(s->r, status, s->path, s->line, remedy, "%s", message);
}

bool usi_idl_is(const usi_idl_scanner *s, const char *word) {
    return (s->token == USI_IDL_NAME || s->token == USI_IDL_SIGN) && strcmp(s->word, word) == 0;
}

static const char *shown(const usi_idl_scanner *s) { return s->token == USI_IDL_END ? "the end" : s->word; }

bool usi_idl_expect(usi_idl_scanner *s, const char *word) {
    if (usi_idl_is(s, word)) return usi_idl_next(s);
    char remedy[80];
    snprintf(remedy, sizeof remedy, "write \"%s\" here", word);
    return usi_idl_fail(s, US_ERR_SYNTAX, remedy, "\"%s\" is missing before \"%.60s\"", word, shown(s));
}

bool usi_idl_take_name(usi_idl_scanner *s, const char *what, char out[USI_INTERFACE_NAME]) {
    if (s->token != USI_IDL_NAME)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write letters, digits and _, not beginning with a digit",
                            "the name of %s is missing before \"%.60s\"", what, shown(s));
    if (strlen(s->word) >= USI_INTERFACE_NAME)
        return usi_idl_fail(s, US_ERR_LIMIT, "write a shorter name", "a name has at most %d characters",
                            USI_INTERFACE_NAME - 1);
    // An underscore before a name says that it is no keyword.
    snprintf(out, USI_INTERFACE_NAME, "%.*s", USI_INTERFACE_NAME - 1, s->word + (s->word[0] == '_'));
    return usi_idl_next(s);
}

// ---- files ----

static bool push(usi_idl_scanner *s, const char *path) {
    const char *kept = NULL;
    bool is_new = false;
    const us_place from = {.file = s->path, .line = s->line};
    if (!usi_reading_enter(s->r, s->path, s->line, path, &kept, &is_new)) return false;
    if (!is_new) return true;
    if (s->n_file == USI_INTERFACE_INCLUDES)
        return usi_idl_fail(s, US_ERR_LIMIT, "include from fewer levels", "files within files deeper than %d",
                            USI_INTERFACE_INCLUDES);
    usi_idl_file f = {.path = kept, .line = 1, .n_condition = s->n_condition};
    if (!usi_reading_open(s->r, s->n_file > 0 ? &from : NULL, kept, &f.text, &f.length)) return false;
    s->file[s->n_file++] = f;
    return true;
}

bool usi_idl_open(usi_idl_scanner *s, const char *path) {
    s->path = path;
    if (!push(s, path)) return false;
    return usi_idl_next(s);
}

static bool is_active(const usi_idl_scanner *s) {
    return s->n_condition == 0 || s->condition[s->n_condition - 1].is_on;
}

// ---- lines that begin with # ----

static const char *skip_blanks(const char *at) { return at + strspn(at, " \t\r"); }

static bool is_defined(const usi_idl_scanner *s, const char *name, size_t n) {
    for (int32_t i = 0; i < s->n_define; i++) {
        if (strlen(s->define[i]) == n && memcmp(s->define[i], name, n) == 0) return true;
    }
    return false;
}

static size_t name_length(const char *at) {
    return strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

static bool open_condition(usi_idl_scanner *s, bool holds) {
    if (s->n_condition == USI_IDL_CONDITIONS)
        return usi_idl_fail(s, US_ERR_LIMIT, "nest fewer", "#if inside #if deeper than %d",
                            USI_IDL_CONDITIONS);
    const bool is_on = is_active(s) && holds;
    s->condition[s->n_condition].was_on = is_on || !is_active(s);
    s->condition[s->n_condition++].is_on = is_on;
    return true;
}

static bool include(usi_idl_scanner *s, const char *at) {
    char name[512], path[1024];
    const char open = *at, close = open == '<' ? '>' : '"';
    const char *end = open == '"' || open == '<' ? strchr(at + 1, close) : NULL;
    if (!end || end == at + 1 || (size_t)(end - at) > sizeof name)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write #include \"file.idl\"", "#include names no file");
    snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
    if (!usi_path_join(s->path, name, path, sizeof path))
        return usi_idl_fail(s, US_ERR_LIMIT, "write a shorter name",
                            "the path of an included file is too long");
    // Beside the file, or beside one of those that were asked for.
    const usi_text_source *source = &s->r->source;
    char other[1024];
    for (int32_t i = 0; i < s->r->n_file && !source->exists(source->context, path); i++) {
        if (usi_path_join(s->r->files[i], name, other, sizeof other) &&
            source->exists(source->context, other))
            return push(s, other);
    }
    return push(s, path);
}

static bool define(usi_idl_scanner *s, const char *at) {
    const size_t n = name_length(at);
    if (n == 0) return usi_idl_fail(s, US_ERR_SYNTAX, "write #define NAME", "#define has no name");
    const char *rest = skip_blanks(at + n);
    if (*rest && strncmp(rest, "//", 2) != 0 && strncmp(rest, "/*", 2) != 0)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write const long NAME = ...; for a constant",
                            "#define gives \"%.*s\" a value: macros are not read", (int)(n < 60 ? n : 60),
                            at);
    if (is_defined(s, at, n)) return true;
    if (s->n_define == USI_IDL_DEFINES)
        return usi_idl_fail(s, US_ERR_LIMIT, "define fewer", "more than %d names are defined",
                            USI_IDL_DEFINES);
    const char *name = usi_reading_text(s->r, at, n);
    if (name) s->define[s->n_define++] = name;
    return name != NULL;
}

static bool pragma(usi_idl_scanner *s, const char *at) {
    if (strncmp(at, "keylist", 7) != 0) return true;  // those of other compilers mean nothing here
    at = skip_blanks(at + 7);
    if (s->n_keylist == USI_IDL_KEYLISTS)
        return usi_idl_fail(s, US_ERR_LIMIT, "write @key at the members", "more than %d #pragma keylist",
                            USI_IDL_KEYLISTS);
    const char *text = usi_reading_text(s->r, at, strlen(at));
    if (!text) return false;
    s->keylist[s->n_keylist++] = (usi_idl_keylist){s->path, text, s->line};
    return true;
}

static bool close_condition(usi_idl_scanner *s, bool is_else) {
    if (s->n_condition <= top(s)->n_condition)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write #ifndef NAME before it",
                            "#%s has no #if before it in this file", is_else ? "else" : "endif");
    if (!is_else) {
        s->n_condition--;
        return true;
    }
    s->condition[s->n_condition - 1].is_on = !s->condition[s->n_condition - 1].was_on;
    s->condition[s->n_condition - 1].was_on = true;
    return true;
}

static bool directive(usi_idl_scanner *s, const char *line) {
    const char *at = skip_blanks(line + 1);
    const size_t n = name_length(at);
    const char *rest = skip_blanks(at + n);
#define IS(name) (n == strlen(name) && memcmp(at, name, n) == 0)
    if (IS("ifdef") || IS("ifndef")) {
        const size_t k = name_length(rest);
        if (k == 0)
            return usi_idl_fail(s, US_ERR_SYNTAX, "write #ifndef NAME", "#%.*s has no name", (int)n, at);
        return open_condition(s, is_defined(s, rest, k) == IS("ifdef"));
    }
    if (IS("if")) {
        if ((*rest != '0' && *rest != '1') || name_length(rest) != 1)
            return usi_idl_fail(s, US_ERR_SYNTAX, "write #ifdef NAME or #ifndef NAME",
                                "#if has more than 0 or 1 behind it");
        return open_condition(s, *rest == '1');
    }
    if (IS("else")) return close_condition(s, true);
    if (IS("endif")) return close_condition(s, false);
    if (!is_active(s)) return true;
    if (IS("include")) return include(s, rest);
    if (IS("define")) return define(s, rest);
    if (IS("pragma")) return pragma(s, rest);
    if (n == 0 && *rest == 0) return true;
#undef IS
    return usi_idl_fail(s, US_ERR_SYNTAX,
                        "#include, #define NAME, #ifdef, #ifndef, #if 0, #else, #endif and #pragma are read",
                        "#%.*s is not known here", (int)(n < 40 ? n : 40), at);
}

// ---- words ----

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A line of the file into `out`, without what is behind its end; false when it is too long.
static bool copy_line(const usi_idl_file *f, char *out, size_t cap) {
    size_t n = 0;
    while (f->at + n < f->length && f->text[f->at + n] != '\n')
        n++;
    if (n >= cap) return false;
    memcpy(out, f->text + f->at, n);
    while (n > 0 && (out[n - 1] == '\r' || out[n - 1] == ' '))
        n--;
    out[n] = 0;
    return true;
}

static void skip_line(usi_idl_file *f) {
    while (f->at < f->length && f->text[f->at] != '\n')
        f->at++;
}

static bool read_directive(usi_idl_scanner *s) {
    char line[USI_INTERFACE_TEXT];
    usi_idl_file *f = top(s);
    s->path = f->path;
    s->line = f->line;
    if (!copy_line(f, line, sizeof line))
        return usi_idl_fail(s, US_ERR_LIMIT, "break the line", "a line that begins with # is longer than %d",
                            USI_INTERFACE_TEXT - 1);
    skip_line(f);
    return directive(s, line);
}

static void note_key(usi_idl_scanner *s, const usi_idl_file *f) {
    const char *at = f->text + f->at + 2, *end = f->text + f->length;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (end - at < 4 || memcmp(at, "@key", 4) != 0) return;
    if (end - at > 4 && (is_letter(at[4]) || is_digit(at[4]))) return;
    s->key_path = f->path;
    s->key_line = f->line;
}

static bool skip_comment(usi_idl_scanner *s, usi_idl_file *f) {
    s->path = f->path;
    s->line = f->line;
    for (f->at += 2; f->at + 1 < f->length; f->at++) {
        if (f->text[f->at] == '*' && f->text[f->at + 1] == '/') {
            f->at += 2;
            return true;
        }
        f->line += f->text[f->at] == '\n';
    }
    return usi_idl_fail(s, US_ERR_SYNTAX, "write */ at its end", "the comment has no end");
}

// Over blanks, comments and lines with #, to the start of a word. False at a failure or at the end of all.
static bool find_word(usi_idl_scanner *s) {
    while (s->n_file > 0) {
        usi_idl_file *f = top(s);
        if (f->at >= f->length) {
            s->path = f->path;
            s->line = f->line;
            if (s->n_condition > f->n_condition)
                return usi_idl_fail(s, US_ERR_SYNTAX, "write #endif", "an #if has no #endif in this file");
            s->n_file--;
            continue;
        }
        const char c = f->text[f->at], next = f->at + 1 < f->length ? f->text[f->at + 1] : 0;
        if (c == '\n') {
            f->line++;
            f->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
            f->at++;
        } else if (c == '#') {
            if (!read_directive(s)) return false;
        } else if (!is_active(s)) {
            skip_line(f);
        } else if (c == '/' && next == '/') {
            note_key(s, f);
            skip_line(f);
        } else if (c == '/' && next == '*') {
            if (!skip_comment(s, f)) return false;
        } else {
            return true;
        }
    }
    return false;
}

static bool put_word(usi_idl_scanner *s, usi_idl_file *f, size_t n) {
    if (n >= sizeof s->word)
        return usi_idl_fail(s, US_ERR_LIMIT, "write a shorter one", "a word has more than %d characters",
                            USI_INTERFACE_TEXT - 1);
    memcpy(s->word, f->text + f->at, n);
    s->word[n] = 0;
    f->at += n;
    return true;
}

// "..." or '.': the text between, with \" and \\ for " and \.
static bool read_quoted(usi_idl_scanner *s, usi_idl_file *f) {
    const char quote = f->text[f->at++];
    size_t n = 0;
    for (; f->at < f->length && f->text[f->at] != quote && f->text[f->at] != '\n'; f->at++) {
        if (f->text[f->at] == '\\' && f->at + 1 < f->length) f->at++;
        if (n + 1 < sizeof s->word) s->word[n] = f->text[f->at];
        n++;
    }
    if (f->at >= f->length || f->text[f->at] != quote)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write the second quote on the same line", "a text has no end");
    f->at++;
    if (n >= sizeof s->word)
        return usi_idl_fail(s, US_ERR_LIMIT, "write a shorter one", "a text has more than %d characters",
                            USI_INTERFACE_TEXT - 1);
    s->word[n] = 0;
    s->token = USI_IDL_TEXT;
    return true;
}

bool usi_idl_next(usi_idl_scanner *s) {
    s->token = USI_IDL_END;
    s->word[0] = 0;
    if (!find_word(s)) return s->r->status == US_OK;
    usi_idl_file *f = top(s);
    const char *at = f->text + f->at;
    const size_t left = f->length - f->at;
    size_t n = 1;
    s->path = f->path;
    s->line = f->line;
    if (*at == '"' || *at == '\'') return read_quoted(s, f);
    if (is_letter(*at)) {
        while (n < left && (is_letter(at[n]) || is_digit(at[n])))
            n++;
        s->token = USI_IDL_NAME;
    } else if (is_digit(*at) || (*at == '.' && left > 1 && is_digit(at[1]))) {
        while (n < left &&
               (is_letter(at[n]) || is_digit(at[n]) || at[n] == '.' ||
                ((at[n] == '+' || at[n] == '-') && (at[n - 1] == 'e' || at[n - 1] == 'E') && at[1] != 'x')))
            n++;
        s->token = USI_IDL_NUMBER;
    } else if (strchr("{}()[]<>;:,=+-*/%|&^~@", *at)) {
        const bool is_double = left > 1 && ((*at == ':' && at[1] == ':') || (*at == '<' && at[1] == '<') ||
                                            (*at == '>' && at[1] == '>'));
        n = is_double ? 2 : 1;
        s->token = USI_IDL_SIGN;
    } else {
        const unsigned char c = (unsigned char)*at;
        return usi_idl_fail(
            s, US_ERR_SYNTAX, "remove it",
            c > 0x20 && c < 0x7f ? "'%c' means nothing here" : "byte 0x%02x means nothing here", c);
    }
    return put_word(s, f, n);
}
