// <interface> inside <network>: topics of the robot's own types, and how their members and its values belong
// together. What the names mean is looked up when the model is compiled.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "spec/publication.h"
#include "spec/scene.h"
#include "spec/spec.h"
#include "wire/interface_types.h"

// ---- files ----

typedef struct file_context {
    usi_reader *r;
    const xmlNode *node;
} file_context;

static us_status open_text(void *context, const char *path, const us_place *from, const char **out_text,
                           size_t *out_length, us_error *err) {
    const file_context *c = context;
    char element[128], *text = NULL;
    const us_place own = usi_xml_place(c->r, c->node, element, sizeof element);
    (void)err;  // the reader has the same
    us_status status = usi_reader_permit(c->r, c->node, "interface file", path);
    if (!status) status = usi_file_read(c->r, path, from ? from : &own, &text, out_length);
    if (!status && *out_length > USI_INTERFACE_BYTES)
        status = usi_fail(c->r, US_ERR_LIMIT, c->node, "split it", "\"%.200s\" has more than %d bytes", path,
                          (int)USI_INTERFACE_BYTES);
    *out_text = text;
    return status;
}

static bool text_exists(void *context, const char *path) {
    struct stat info;
    (void)context;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static us_status read_files(usi_reader *r, const xmlNode *node, us_network_def *d) {
    const char *files[USI_INTERFACE_FILES];
    int32_t n = 0;
    char *list = usi_reader_text(r, "%s", usi_xml_attr(node, "file")), *save = NULL;
    if (!list) return usi_fail_memory(r);
    for (char *name = strtok_r(list, " \t\r\n", &save); name; name = strtok_r(NULL, " \t\r\n", &save)) {
        if (n == USI_INTERFACE_FILES)
            return usi_fail(r, US_ERR_LIMIT, node, "include some of them from others",
                            "file: more than %d files", USI_INTERFACE_FILES);
        files[n] = usi_path_beside(r, usi_xml_file(node), name);
        if (!files[n++]) return usi_fail_memory(r);
    }
    if (n == 0) return usi_fail(r, US_ERR_VALUE, node, "write file=\"robot.idl\"", "file: no file is named");
    file_context context = {r, node};
    const usi_text_source source = {open_text, text_exists, &context};
    us_interface *interface_ = NULL;
    us_status status = usi_interface_read(&r->spec->texts.allocator, files, n, &source, &interface_, r->err);
    d->interface_ = interface_;
    return status;
}

// ---- rows ----

typedef struct rows {
    us_endpoint_def endpoint[USI_ENDPOINT_LIMIT];
    us_interface_command command[USI_INTERFACE_COMMAND_LIMIT];
    us_binding binding[USI_BINDING_LIMIT];
} rows;

// What the wire has for 1 of the robot: unit="deg", or scale="57.3" and offset.
static us_status read_scale(usi_reader *r, const xmlNode *node, us_binding *b) {
    const char *unit = usi_xml_attr(node, "unit");
    usi_look look = usi_look_at(node);
    double factor = 1;
    b->scale = 1;
    us_status status = usi_look_number(r, &look, "scale", USI_PLAIN, &b->scale);
    if (!status) status = usi_look_number(r, &look, "offset", USI_PLAIN, &b->offset);
    if (!status && b->scale == 0)
        return usi_fail(r, US_ERR_VALUE, node, "write another number",
                        "scale: with 0 nothing is left of the value");
    if (status || !unit) return status;
    const char *measure = usi_reader_text(r, "1 %s", unit);
    if (!measure || !usi_measure_whole(measure, &factor) || !(factor > 0))
        return usi_fail(r, US_ERR_VALUE, node, "write a unit like deg, mm, ms or km/h, or a scale",
                        "unit: \"%.40s\" is none", unit);
    b->scale /= factor;
    return US_OK;
}

static us_status read_binding(usi_reader *r, const xmlNode *node, us_network_def *d, us_binding *b) {
    usi_look look = usi_look_at(node);
    const bool is_when = usi_xml_is(node, "when");
    const char *number = usi_xml_attr(node, is_when ? "is" : "number");
    b->member = usi_xml_attr(node, "member");
    b->value = usi_xml_attr(node, "value");
    b->copy = usi_xml_attr(node, "copy");
    b->text = usi_xml_attr(node, "text");
    b->joints = usi_xml_attr(node, "joints");
    b->sensor = usi_xml_attr(node, "sensor");
    b->axes = usi_xml_attr(node, "axes");
    b->order = usi_xml_attr(node, "order");
    b->line = usi_xml_line(node);
    const int n = (b->use == US_BINDING_SET && b->value) + (b->copy != NULL) + (b->text != NULL) +
                  (number != NULL) + (b->use == US_BINDING_GET && b->member);
    if (n != 1)
        return usi_fail(r, US_ERR_SCHEMA, node,
                        b->use == US_BINDING_GET ? "write member or number"
                                                 : "write one of value, copy, text and number",
                        n == 0 ? "it says not what the value is" : "it says twice what the value is");
    us_status status = read_scale(r, node, b);
    if (status || !number) return status;
    // A number, or the name of a constant or label of the interface; of a condition else a text.
    b->number = us_interface_get_constant(d->interface_, number);
    if (b->number == b->number) return US_OK;
    if (usi_measure_whole(number, &b->number)) return US_OK;
    if (is_when) {
        b->text = number;
        return US_OK;
    }
    b->number = 0;
    return usi_look_number(r, &look, "number", USI_PLAIN, &b->number);
}

static us_status read_bindings(usi_reader *r, const xmlNode *node, const char *name, us_binding with,
                               us_network_def *d, rows *to) {
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(node, name); n && !status; n = usi_xml_next(n, name)) {
        if (d->n_binding == USI_BINDING_LIMIT)
            return usi_fail(r, US_ERR_LIMIT, n, "write fewer", "an interface has at most %d rows",
                            USI_BINDING_LIMIT);
        us_binding *b = &to->binding[d->n_binding];
        *b = with;
        status = read_binding(r, n, d, b);
        d->n_binding += status == US_OK;
    }
    return status;
}

static us_status read_endpoint(usi_reader *r, const xmlNode *node, us_endpoint_use use, int32_t of,
                               us_network_def *d, rows *to) {
    if (d->n_endpoint == USI_ENDPOINT_LIMIT)
        return usi_fail(r, US_ERR_LIMIT, node, "write fewer", "an interface has at most %d topics",
                        USI_ENDPOINT_LIMIT);
    us_endpoint_def e = {.use = use,
                         .topic = usi_xml_attr(node, "topic"),
                         .type = usi_xml_attr(node, "type"),
                         .rate = 10,
                         .is_reliable = true,
                         .depth = 10,
                         .of = of,
                         .line = usi_xml_line(node)};
    const char *name = e.topic[0] == '/' ? e.topic + 1 : e.topic;
    if (strncmp(name, "dds:", 4) != 0 && !usi_is_ros_name(name, true))
        return usi_fail(
            r, US_ERR_NAME, node,
            "use letters, digits and _, with / between parts; any other name of DDS stands behind dds:",
            "topic: \"%.60s\" is no name of a topic", e.topic);
    us_status status = use == US_ENDPOINT_PUBLISH ? usi_scene_rate(r, node, "rate", &e.rate) : US_OK;
    e.is_latched = use == US_ENDPOINT_PUBLISH && e.rate == 0;
    if (e.is_latched) e.depth = 1;
    if (!status) status = usi_xml_bool(r, node, "reliable", false, &e.is_reliable);
    if (!status) status = usi_xml_bool(r, node, "latched", false, &e.is_latched);
    e.partition = usi_xml_attr(node, "partition");
    if (!status && e.partition && strlen(e.partition) >= US_PARTITION_TEXT)
        status = usi_fail(r, US_ERR_VALUE, node, "write shorter ones",
                          "partition: names of %d characters at most", US_PARTITION_TEXT - 1);
    if (!status) status = usi_xml_int(r, node, "depth", false, &e.depth);
    if (!status && e.depth < 0)
        status = usi_fail(r, US_ERR_VALUE, node, "write 0 for all, or a number",
                          "depth: %d samples cannot be kept", (int)e.depth);
    to->endpoint[d->n_endpoint] = e;
    const us_binding with = {.use = US_BINDING_SET, .endpoint = d->n_endpoint++, .command = -1};
    return status ? status : read_bindings(r, node, "set", with, d, to);
}

// <subscribe>: whom its samples are for, its commands, then its answers.
static us_status read_subscription(usi_reader *r, const xmlNode *node, us_network_def *d, rows *to) {
    const int32_t own = d->n_endpoint;
    us_status status = read_endpoint(r, node, US_ENDPOINT_SUBSCRIBE, -1, d, to);
    const us_binding whom = {.use = US_BINDING_WHEN, .endpoint = own, .command = -1};
    if (!status) status = read_bindings(r, node, "when", whom, d, to);
    for (const xmlNode *n = usi_xml_child(node, "command"); n && !status; n = usi_xml_next(n, "command")) {
        if (d->n_command == USI_INTERFACE_COMMAND_LIMIT)
            return usi_fail(r, US_ERR_LIMIT, n, "write fewer", "an interface has at most %d commands",
                            USI_INTERFACE_COMMAND_LIMIT);
        us_binding with = {.use = US_BINDING_WHEN, .endpoint = own, .command = d->n_command};
        to->command[d->n_command++] = (us_interface_command){own, usi_xml_attr(n, "do"), usi_xml_line(n)};
        status = read_bindings(r, n, "when", with, d, to);
        with.use = US_BINDING_GET;
        if (!status) status = read_bindings(r, n, "get", with, d, to);
    }
    for (const xmlNode *n = usi_xml_child(node, "answer"); n && !status; n = usi_xml_next(n, "answer")) {
        static const char *const events[] = {"taken", "refused", "done", "canceled"};
        int32_t event = 3;
        while (event > 0 && strcmp(usi_xml_attr(n, "on"), events[event]) != 0)
            event--;
        status = read_endpoint(r, n, (us_endpoint_use)((int32_t)US_ENDPOINT_TAKEN + event), own, d, to);
    }
    return status;
}

us_status usi_scene_interface(usi_reader *r, const xmlNode *network, us_network_def *d) {
    const xmlNode *node = usi_xml_child(network, "interface");
    if (!node) return US_OK;
    if (usi_xml_next(node, "interface"))
        return usi_fail(r, US_ERR_SCHEMA, usi_xml_next(node, "interface"),
                        "write all topics in one, with all files in its file", "a robot has one <interface>");
    rows *to = usi_reader_alloc(r, sizeof *to);
    if (!to) return usi_fail_memory(r);
    us_status status = read_files(r, node, d);
    for (const xmlNode *n = usi_xml_child(node, NULL); n && !status; n = usi_xml_next(n, NULL)) {
        if (usi_xml_is(n, "publish")) status = read_endpoint(r, n, US_ENDPOINT_PUBLISH, -1, d, to);
        if (usi_xml_is(n, "subscribe")) status = read_subscription(r, n, d, to);
    }
    d->endpoints = to->endpoint;
    d->commands = to->command;
    d->bindings = to->binding;
    return status;
}
