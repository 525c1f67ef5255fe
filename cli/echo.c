// understudy echo: prints what is said on a topic.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"

typedef struct echo_options {
    const char *topic, *field, *type;
    int64_t count;
    double timeout;  // NaN: not given
    bool is_raw, is_csv, is_full;
    cli_list interface_;
} echo_options;

enum { PATH_MAX_LENGTH = 512, MAX_DEPTH = 32, MAX_FIELD = 64, MAX_ITEM = 128 };

typedef struct echo {
    const echo_options *options;
    cli_bus bus;
    char topic[CLI_NAME_MAX], dds_topic[CLI_NAME_MAX];
    us_interface *types;  // of --interface
    const us_message_type *type;
    us_qos qos;
    us_reader *reader;
    char *bytes, *text;  // the sample and its text
    size_t cap_bytes, cap_text;
    int32_t n_field;
    const char *fields[MAX_FIELD];
    int64_t n_shown;
    uint64_t columns;  // CSV: hash of the paths in the header
    bool is_shape_printed;
} echo;

// ---- paths ----
// The text of a message has one line per value; reading it line by line gives every value its path:
// "pose.pose.position.x", "name[2]".

typedef void visit_function(void *context, const char *path, const char *value);

typedef struct flattener {
    char name[MAX_DEPTH][PATH_MAX_LENGTH];  // by depth of indentation: what stands before the names there
    char list[MAX_DEPTH][PATH_MAX_LENGTH];  // and the list whose elements stand there
    int32_t n_item[MAX_DEPTH];
} flattener;

// Length of the "name" before a colon that ends it, 0 when the text is a value.
static size_t name_length(const char *text) {
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 0 && text[n] == ':' && (text[n + 1] == ' ' || text[n + 1] == 0) ? n : 0;
}

static void join(char *out, const char *before, const char *name, size_t n) {
    snprintf(out, PATH_MAX_LENGTH, "%s%s%.*s", before, before[0] ? "." : "", (int)n, name);
}

// Calls back for every value of the text, which is cut into lines.
static void flatten(char *text, visit_function *visit, void *context) {
    flattener *f = cli_allocate(1, sizeof *f);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        size_t indent = strspn(line, " "), depth = indent / 2;
        char *at = line + indent;
        if (!at[0]) continue;
        if (at[0] == '-' && at[1] == ' ' && depth + 1 < MAX_DEPTH) {
            // Through a text of its own: the compiler cannot see that names and lists lie apart.
            char path[PATH_MAX_LENGTH];
            snprintf(path, sizeof path, "%.480s[%d]", f->list[depth], (int)f->n_item[depth]++);
            memcpy(f->name[depth + 1], path, sizeof path);
            at += 2;
            depth++;
            if (name_length(at) == 0) {
                visit(context, f->name[depth], at);
                continue;
            }
        }
        if (depth + 1 >= MAX_DEPTH) continue;
        size_t n = name_length(at);
        char path[PATH_MAX_LENGTH];
        join(path, f->name[depth], at, n);
        if (n == 0 || at[n + 1] != 0) {
            visit(context, path, n ? at + n + 2 : at);
            continue;
        }
        snprintf(f->name[depth + 1], PATH_MAX_LENGTH, "%s", path);
        snprintf(f->list[depth], PATH_MAX_LENGTH, "%s", path);
        f->n_item[depth] = 0;
    }
    free(f);
}

// ---- printing ----

static int print_to_text(echo *e, size_t length) {
    us_error err = {0};
    int32_t max_item = e->options->is_full || e->options->is_csv || e->n_field > 0 ? 0 : MAX_ITEM;
    for (;;) {
        size_t needed = 0;
        if (us_message_print(e->type, e->bytes, length, max_item, e->text, e->cap_text, &needed, &err)) {
            cli_print_error(&err);
            return CLI_RUN_FAILED;
        }
        if (needed < e->cap_text) return CLI_GO_ON;
        free(e->text);
        e->cap_text = needed + 1;
        e->text = cli_allocate(e->cap_text, 1);
    }
}

static void print_raw(const echo *e, size_t length) {
    for (size_t i = 0; i < length; i++)
        printf("%02x%s", (unsigned char)e->bytes[i], i % 32 == 31 || i + 1 == length ? "\n" : " ");
}

// The rest of `path` behind `field` when it is the field or lies in it; NULL otherwise.
static const char *inside(const char *path, const char *field) {
    size_t n = strlen(field);
    if (strncmp(path, field, n) != 0) return NULL;
    return path[n] == 0 || path[n] == '.' || path[n] == '[' ? path + n : NULL;
}

typedef struct selection {
    const echo *e;
    int32_t n_found;
    bool is_header;
    uint64_t columns;
    char near[PATH_MAX_LENGTH];
} selection;

static bool is_chosen(const echo *e, const char *path) {
    for (int32_t i = 0; i < e->n_field; i++) {
        if (inside(path, e->fields[i])) return true;
    }
    return e->n_field == 0;
}

static void show_field(void *context, const char *path, const char *value) {
    selection *s = context;
    for (int32_t i = 0; i < s->e->n_field; i++) {
        const char *rest = inside(path, s->e->fields[i]);
        if (!rest) continue;
        s->n_found++;
        if (s->e->n_field > 1) {
            printf("%s: %s\n", path, value);
        } else if (rest[0]) {
            printf("%s: %s\n", rest + (rest[0] == '.' ? 1 : 0), value);
        } else {
            printf("%s\n", value);
        }
        return;
    }
}

static void put_cell(const char *text) {
    size_t n = strlen(text);
    if (!strpbrk(text, ",\"")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"') putchar('"');
        putchar(text[i]);
    }
    putchar('"');
}

static void show_cell(void *context, const char *path, const char *value) {
    selection *s = context;
    if (!is_chosen(s->e, path)) return;
    s->n_found++;
    s->columns = us_hash_bytes(s->columns, path, strlen(path));
    putchar(',');
    put_cell(s->is_header ? path : value);
}

static void count_cell(void *context, const char *path, const char *value) {
    (void)value;
    selection *s = context;
    if (!is_chosen(s->e, path)) return;
    s->n_found++;
    s->columns = us_hash_bytes(s->columns, path, strlen(path));
}

// The path of the message that the mistyped field is nearest to.
typedef struct paths {
    int32_t n;
    char *item[4096];
} paths;

static void keep_path(void *context, const char *path, const char *value) {
    (void)value;
    paths *p = context;
    const int32_t cap = (int32_t)(sizeof p->item / sizeof p->item[0]);
    size_t length = strlen(path), n = path[length - 1] == ']' ? (size_t)(strrchr(path, '[') - path) : length;
    // An array counts once, under its own name.
    bool is_known = p->n > 0 && strncmp(p->item[p->n - 1], path, n) == 0 && p->item[p->n - 1][n] == 0;
    if (p->n < cap && !is_known && (p->item[p->n] = strndup(path, n))) p->n++;
}

static int fail_field(echo *e, size_t length) {
    paths *all = cli_allocate(1, sizeof *all);
    char remedy[384];
    snprintf(remedy, sizeof remedy,
             "\"understudy echo %s --count 1\" shows the fields; nested ones are written with dots, elements "
             "as name[0]",
             e->topic);
    if (print_to_text(e, length) == CLI_GO_ON) flatten(e->text, keep_path, all);
    const char *near = cli_nearest(e->fields[0], (const char *const *)(const void *)all->item, all->n);
    if (near) snprintf(remedy, sizeof remedy, "did you mean \"%.300s\"?", near);
    int code = cli_fail(CLI_BAD_INPUT, "understudy echo", remedy, "%s has no field \"%s\"",
                        us_message_name(e->type), e->options->field);
    for (int32_t i = 0; i < all->n; i++)
        free(all->item[i]);
    free(all);
    return code;
}

// When the message says when it was made, that; otherwise when it was sent.
static int64_t time_of(const echo *e, size_t length, const us_sample *sample) {
    double sec = us_message_get_number(e->type, e->bytes, length, "header.stamp.sec");
    double nanosec = us_message_get_number(e->type, e->bytes, length, "header.stamp.nanosec");
    return isnan(sec) || isnan(nanosec) ? sample->source_time : (int64_t)sec * 1000000000 + (int64_t)nanosec;
}

static int show_row(echo *e, size_t length, const us_sample *sample) {
    selection s = {.e = e};
    int code = print_to_text(e, length);
    if (code != CLI_GO_ON) return code;
    char *copy = strdup(e->text);
    if (!copy) return CLI_RUN_FAILED;
    flatten(copy, count_cell, &s);
    free(copy);
    if (s.n_found == 0 && e->n_field > 0) return fail_field(e, length);
    if (e->n_shown == 0) {
        e->columns = s.columns;
        s.is_header = true;
        copy = strdup(e->text);
        if (!copy) return CLI_RUN_FAILED;
        fputs("time", stdout);
        flatten(copy, show_cell, &s);
        putchar('\n');
        free(copy);
        s.is_header = false;
    } else if (s.columns != e->columns && !e->is_shape_printed) {
        cli_warn("choose fields that are always there, with --field",
                 "the arrays of %s changed their length: the columns are no longer those of the header",
                 e->topic);
        e->is_shape_printed = true;
    }
    int64_t time = time_of(e, length, sample);
    printf("%lld.%09lld", (long long)(time / 1000000000), (long long)(time % 1000000000));
    flatten(e->text, show_cell, &s);
    putchar('\n');
    return CLI_GO_ON;
}

static int show(echo *e, size_t length, const us_sample *sample) {
    int code = CLI_GO_ON;
    if (e->options->is_raw) {
        print_raw(e, length);
    } else if (e->options->is_csv) {
        code = show_row(e, length, sample);
    } else if ((code = print_to_text(e, length)) == CLI_GO_ON) {
        if (e->n_field == 0) {
            fputs(e->text, stdout);
        } else {
            selection s = {.e = e};
            flatten(e->text, show_field, &s);
            if (s.n_found == 0) code = fail_field(e, length);
        }
    }
    if (code != CLI_GO_ON) return code;
    if (!e->options->is_csv) puts("---");
    e->n_shown++;
    // Somebody may look on, or a program may wait for it.
    return fflush(stdout) == 0 || cli_is_stopped() ? CLI_GO_ON : CLI_CANNOT_WRITE;
}

// ---- listening ----

// The type that the writers send, or that a reader waits for when nobody writes. NULL while the topic is not
// there.
static const char *find_type(const echo *e) {
    const char *found = NULL;
    for (int32_t i = 0; i < e->bus.n_endpoint; i++) {
        const us_endpoint *p = &e->bus.endpoints[i];
        if (strcmp(p->topic, e->dds_topic) != 0) continue;
        if (p->is_writer && cli_find_type(e->types, p->type)) return p->type;
        if (!found || p->is_writer) found = p->type;
    }
    return found;
}

static int fail_topic(const echo *e) {
    char remedy[384], near[CLI_NAME_MAX];
    int32_t n = cli_bus_n_topic(&e->bus);
    if (cli_bus_nearest(&e->bus, e->topic, near)) {
        snprintf(remedy, sizeof remedy, "did you mean %s?", near);
    } else if (n > 0) {
        snprintf(remedy, sizeof remedy, "\"understudy topics\" lists the %d that are there", (int)n);
    } else {
        snprintf(remedy, sizeof remedy,
                 "nobody is on domain %d: start a robot, or see what \"understudy doctor\" finds",
                 (int)us_bus_domain(e->bus.bus));
    }
    return cli_fail(CLI_RUN_FAILED, "understudy echo", remedy, "there is no topic %s", e->topic);
}

static int find_topic(echo *e, double until) {
    const char *dds_type = NULL;
    if (e->options->type) {
        e->type = cli_find_type(e->types, e->options->type);
        if (!e->type)
            return cli_fail(CLI_BAD_INPUT, "understudy echo",
                            "write it as in nav_msgs/msg/Odometry; \"understudy topics\" shows types",
                            "--type: \"%s\" is not a type that is known here", e->options->type);
    }
    for (;;) {
        cli_bus_discover(&e->bus);
        dds_type = find_type(e);
        if (dds_type || cli_is_stopped()) break;
        if (cli_clock() >= until) return fail_topic(e);
        cli_pause(0.02);
    }
    if (!dds_type) return CLI_OK;
    if (!e->type) e->type = cli_find_type(e->types, dds_type);
    if (e->type) return CLI_GO_ON;
    char type[CLI_NAME_MAX];
    cli_ros_type(dds_type, type);
    return cli_fail(CLI_RUN_FAILED, "understudy echo",
                    "name the files with this type: --interface FILE.idl (or .msg); or listen to it with a "
                    "program that has it, for example ros2 topic echo",
                    "%s is of type %s, which is not known here", e->topic, type);
}

// Begins to listen, or begins again when a writer came that the first way of listening does not reach.
static int listen_to(echo *e) {
    us_qos qos = cli_qos_for_reader(&e->bus, e->dds_topic, 100);
    if (e->reader && qos.is_reliable == e->qos.is_reliable &&
        qos.is_transient_local == e->qos.is_transient_local)
        return CLI_GO_ON;
    bool is_weaker =
        (e->qos.is_reliable && !qos.is_reliable) || (e->qos.is_transient_local && !qos.is_transient_local);
    if (e->reader && !is_weaker) return CLI_GO_ON;
    us_reader_remove(e->reader);
    e->reader = NULL;
    e->qos = qos;
    us_error err = {0};
    us_topic_def def = {.topic = e->topic, .type = e->type, .qos = qos, .node = -1};
    if (!us_bus_add_reader(e->bus.bus, &def, NULL, NULL, &e->reader, &err)) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_RUN_FAILED;
}

// Shows what waits. CLI_GO_ON, CLI_OK when enough was shown, or an error.
static int take(echo *e, double *io_last) {
    for (;;) {
        size_t length = 0;
        us_sample sample = {0};
        us_status status = us_reader_take(e->reader, e->bytes, e->cap_bytes, &length, &sample);
        if (status == US_ERR_LIMIT) {
            free(e->bytes);
            e->cap_bytes = length;
            e->bytes = cli_allocate(length, 1);
            continue;
        }
        if (status || length == 0) return CLI_GO_ON;
        *io_last = cli_clock();
        int code = show(e, length, &sample);
        if (code != CLI_GO_ON) return code;
        if (e->options->count > 0 && e->n_shown >= e->options->count) return CLI_OK;
        if (cli_is_stopped()) return CLI_OK;
    }
}

static int listen_until_done(echo *e) {
    double last = cli_clock(), looked = last,
           patience = isnan(e->options->timeout) ? INFINITY : e->options->timeout;
    int code = listen_to(e);
    while (code == CLI_GO_ON && !cli_is_stopped()) {
        us_bus_wait(e->bus.bus, 0.05);
        code = take(e, &last);
        double now = cli_clock();
        if (code == CLI_GO_ON && now - last >= patience) {
            code = cli_fail(CLI_RUN_FAILED, "understudy echo",
                            us_reader_n_match(e->reader) > 0 ? "wait longer, with --timeout"
                                                             : "see what \"understudy doctor\" finds",
                            "nothing came on %s for %g s%s", e->topic, patience,
                            us_reader_n_match(e->reader) > 0 ? "" : ": nobody writes it");
        }
        if (code == CLI_GO_ON && now - looked > 0.5) {
            cli_bus_discover(&e->bus);
            looked = now;
            code = listen_to(e);
        }
    }
    return code == CLI_GO_ON ? CLI_OK : code;
}

static int finish(echo *e, char *fields, int code) {
    us_interface_release(e->types);
    free(e->bytes);
    free(e->text);
    free(fields);
    return code;
}

static int run(const cli_command *command, int argc, char **argv) {
    echo_options o = {.count = 0, .timeout = NAN};
    const cli_option table[] = {
        {"count", CLI_INTEGER, &o.count, "N", "end after N messages"},
        {"field", CLI_TEXT, &o.field, "PATH",
         "only this part, for example pose.pose.position.x; several with commas between"},
        {"csv", CLI_FLAG, &o.is_csv, NULL, "a header, then a row per message, \"time\" first"},
        {"raw", CLI_FLAG, &o.is_raw, NULL, "the bytes as they came (CDR), in hex"},
        {"full", CLI_FLAG, &o.is_full, NULL, "arrays with all their elements (the first 128)"},
        {"interface", CLI_LIST, &o.interface_, "FILE", "types of a robot's own: an IDL or .msg file"},
        {"type", CLI_TEXT, &o.type, "TYPE", "the type to listen for, where a topic has several"},
        {"timeout", CLI_NUMBER, &o.timeout, "S",
         "end when nothing comes for S seconds (5 for the topic to appear, then for ever)"},
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o.topic);
    if (code != CLI_GO_ON) return code;
    const char *element = "understudy echo";
    if (o.count < 0)
        return cli_fail(CLI_BAD_INPUT, element, "write --count N with N at least 1", "--count is negative");
    if (o.timeout < 0)
        return cli_fail(CLI_BAD_INPUT, element, "write --timeout S with S at least 0",
                        "--timeout is negative");
    if (o.is_raw && (o.is_csv || o.field))
        return cli_fail(CLI_BAD_INPUT, element, "give one of the two",
                        "--raw shows bytes, --csv and --field show values");

    echo e = {.options = &o, .cap_bytes = 1 << 16, .cap_text = 1 << 16};
    if (!cli_dds_topic(o.topic, e.dds_topic))
        return cli_fail(CLI_BAD_INPUT, element, "write a name such as /k10/odom",
                        "the topic's name is longer than %d characters", CLI_NAME_MAX - 3);
    cli_bus_topic(e.dds_topic, e.topic);
    char *fields = o.field ? strdup(o.field) : NULL;
    for (char *rest = fields, *part; e.n_field < MAX_FIELD && (part = strsep(&rest, ",")) != NULL;) {
        if (part[0]) e.fields[e.n_field++] = part;
    }
    e.bytes = cli_allocate(e.cap_bytes, 1);
    e.text = cli_allocate(e.cap_text, 1);
    cli_catch_stop(NULL);
    code = cli_read_interface(&o.interface_, &e.types);
    if (code != CLI_GO_ON) return finish(&e, fields, code);
    code = cli_bus_open(&e.bus, true);
    if (code == CLI_GO_ON) code = find_topic(&e, cli_clock() + (isnan(o.timeout) ? 5 : o.timeout));
    if (code == CLI_GO_ON) code = listen_until_done(&e);
    cli_bus_close(&e.bus);
    return finish(&e, fields, code);
}

const cli_command cli_command_echo = {
    .name = "echo",
    .operand = "TOPIC",
    .needs_operand = true,
    .summary = "print what is said on a topic",
    .about = "The type comes from the network. Listens reliably when all writers are reliable, and gets what "
             "was said before when all keep it.\n"
             "\n"
             "Examples:\n"
             "  understudy echo /k10/odom --count 1\n"
             "  understudy echo /k10/odom --field pose.pose.position,twist.twist.linear.x --csv\n"
             "  understudy echo dds:rapid_ack --interface rapid.idl\n",
    .run = run,
};
