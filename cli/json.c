// A JSON writer without a tree: every number with all its digits, in the order in which it is known.
#include <math.h>
#include <string.h>

#include "cli.h"

static void write_text(FILE *out, const char *text) {
    putc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        switch (*p) {
        case '"':
            fputs("\\\"", out);
            break;
        case '\\':
            fputs("\\\\", out);
            break;
        case '\n':
            fputs("\\n", out);
            break;
        case '\t':
            fputs("\\t", out);
            break;
        default:
            if (*p < 0x20) {
                fprintf(out, "\\u%04x", *p);
            } else {
                putc(*p, out);
            }
        }
    }
    putc('"', out);
}

// Comma, new line, indentation and key: what stands before every item.
static void begin_item(cli_json *json, const char *key) {
    int32_t d = json->depth;
    if (d > 0) {
        bool is_line = json->is_compact || json->is_short[d - 1];
        if (json->has_item[d - 1]) fputs(is_line ? ", " : ",", json->out);
        if (!is_line) fprintf(json->out, "\n%*s", 2 * d, "");
        json->has_item[d - 1] = true;
    }
    if (key) {
        write_text(json->out, key);
        fputs(": ", json->out);
    }
}

static void begin(cli_json *json, const char *key, char bracket, bool is_short) {
    begin_item(json, key);
    putc(bracket, json->out);
    int32_t d = json->depth;
    if (d >= CLI_JSON_DEPTH) return;
    json->is_short[d] = is_short || (d > 0 && json->is_short[d - 1]);
    json->has_item[d] = false;
    json->close[d] = bracket == '{' ? '}' : ']';
    json->depth = d + 1;
}

void cli_json_begin(cli_json *json, const char *key, char bracket) { begin(json, key, bracket, false); }
void cli_json_begin_short(cli_json *json, const char *key, char bracket) { begin(json, key, bracket, true); }

void cli_json_end(cli_json *json) {
    if (json->depth == 0) return;
    int32_t d = --json->depth;
    if (json->has_item[d] && !json->is_compact && !json->is_short[d]) fprintf(json->out, "\n%*s", 2 * d, "");
    putc(json->close[d], json->out);
    if (d == 0) putc('\n', json->out);
}

void cli_json_text(cli_json *json, const char *key, const char *text) {
    begin_item(json, key);
    if (text) {
        write_text(json->out, text);
    } else {
        fputs("null", json->out);
    }
}

void cli_json_number(cli_json *json, const char *key, double x) {
    begin_item(json, key);
    if (!isfinite(x)) {
        fputs("null", json->out);
        return;
    }
    char text[CLI_NUMBER_MAX];
    fwrite(text, 1, cli_number_format(x, text), json->out);
}

void cli_json_integer(cli_json *json, const char *key, int64_t x) {
    begin_item(json, key);
    fprintf(json->out, "%lld", (long long)x);
}

void cli_json_bool(cli_json *json, const char *key, bool x) {
    begin_item(json, key);
    fputs(x ? "true" : "false", json->out);
}

void cli_json_numbers(cli_json *json, const char *key, const double *x, size_t n) {
    cli_json_begin_short(json, key, '[');
    for (size_t i = 0; i < n; i++)
        cli_json_number(json, NULL, x[i]);
    cli_json_end(json);
}

void cli_json_vector(cli_json *json, const char *key, us_vec3 a) {
    double x[3] = {a.x, a.y, a.z};
    cli_json_numbers(json, key, x, 3);
}

void cli_json_error(cli_json *json, const char *key, const us_error *err, int32_t n_times) {
    cli_json_begin(json, key, '{');
    if (err->file[0]) cli_json_text(json, "file", err->file);
    if (err->line > 0) cli_json_integer(json, "line", err->line);
    if (err->column > 0) cli_json_integer(json, "column", err->column);
    if (err->element[0]) cli_json_text(json, "element", err->element);
    cli_json_text(json, "message", err->message);
    if (err->remedy[0]) cli_json_text(json, "remedy", err->remedy);
    if (err->code != US_OK) cli_json_text(json, "kind", us_status_text(err->code));
    if (n_times > 0) cli_json_integer(json, "times", n_times);
    cli_json_end(json);
}
