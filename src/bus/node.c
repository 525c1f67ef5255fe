// Parameters and log levels of a node.
//
// One handler for all eight services: it decodes the request, makes the response from the table of
// parameters, and encodes it. Memory for both is the node's own; what does not fit has no answer.
#include "bus/node.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

// Requests that need more memory than a node has get some of their own, up to MAX_REQUEST bytes long.
enum { MAX_NAMES = 256, MEMORY = 128 * 1024, REPLY = 64 * 1024, MAX_REQUEST = 4 << 20 };

typedef enum node_request {
    GET,
    TYPES,
    LIST,
    DESCRIBE,
    SET,
    SET_ALL,
    GET_LEVELS,
    SET_LEVELS,
    N_KIND,
} node_request;

typedef struct node_desk {
    usi_ros_node *node;
    node_request request;
    us_service *service;
} node_desk;

struct usi_ros_node {
    us_bus *bus;
    usi_node_def def;
    char name[USI_NAME_LENGTH], logger[USI_NAME_LENGTH];
    _Atomic int32_t level;
    us_writer *log, *events;
    node_desk desks[N_KIND];
    pthread_mutex_t lock;  // of the values
    int32_t n;
    usi_parameter parameters[USI_PARAMETERS];
    // Of one answer, on the bus's thread.
    union {
        us_msg_parameter_value values[MAX_NAMES];
        us_msg_parameter_descriptor descriptors[MAX_NAMES];
        us_msg_set_parameters_result results[MAX_NAMES];
        us_msg_logger_level levels[MAX_NAMES];
        us_msg_set_logger_levels_result level_results[MAX_NAMES];
        uint8_t types[MAX_NAMES];
        char *names[2 * MAX_NAMES];
    } list;
    us_msg_parameter changed[MAX_NAMES];
    us_msg_floating_point_range ranges[MAX_NAMES];
    us_msg_integer_range integer_ranges[MAX_NAMES];
    char why[MAX_NAMES][USI_PARAMETER_WHY];
    char prefixes[USI_PARAMETERS][USI_NAME_LENGTH];
    _Alignas(16) uint8_t memory[MEMORY];
    uint8_t reply[REPLY];
};

// The messages' texts are never written to.
static char *text(const char *in) {
    union {
        const char *in;
        char *out;
    } u = {.in = in};
    return u.out;
}

static uint32_t at_most(uint32_t n) { return n < MAX_NAMES ? n : MAX_NAMES; }

static usi_parameter *find(usi_ros_node *n, const char *name) {
    for (int32_t i = 0; i < n->n; i++) {
        if (strcmp(n->parameters[i].name, name) == 0) return &n->parameters[i];
    }
    return NULL;
}

static us_msg_parameter_value value_of(const usi_parameter *p) {
    if (!p) return (us_msg_parameter_value){.type = USI_PARAMETER_NONE};
    return (us_msg_parameter_value){.type = (uint8_t)p->type,
                                    .bool_value = p->bool_value,
                                    .integer_value = p->integer_value,
                                    .double_value = p->double_value,
                                    .string_value = text(p->string_value)};
}

static void send_reply(usi_ros_node *n, us_service *service, us_request_id id, const us_message_type *type,
                       const void *message) {
    size_t length = 0;
    const us_status status = us_message_encode(type, message, n->reply, sizeof n->reply, &length);
    if (!status) us_service_reply(service, id, n->reply, length);
    if (status != US_ERR_LIMIT) return;
    void *bytes = usi_alloc(&n->bus->allocator, length, 8);
    if (bytes && !us_message_encode(type, message, bytes, length, &length))
        us_service_reply(service, id, bytes, length);
    usi_release(&n->bus->allocator, bytes, length, 8);
}

// ---- events ----

static us_msg_time wall_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (us_msg_time){.sec = (int32_t)now.tv_sec, .nanosec = (uint32_t)now.tv_nsec};
}

static void send_event(usi_ros_node *n, uint32_t n_changed, bool is_new) {
    us_msg_parameter_event m = {.stamp = wall_time(), .node = n->name};
    us_msg_sequence_parameter *list = is_new ? &m.new_parameters : &m.changed_parameters;
    list->_length = n_changed;
    list->_buffer = n->changed;
    size_t length = 0;
    if (n_changed > 0 && !us_message_encode(usi_type_parameter_event, &m, n->reply, sizeof n->reply, &length))
        usi_writer_send(n->events, n->reply, length, 0);
}

// ---- reading ----

static void answer_get(usi_ros_node *n, us_service *service, us_request_id id,
                       const us_msg_get_parameters_request *m) {
    us_msg_get_parameters_response reply = {
        .values = {._length = at_most(m->names._length), ._buffer = n->list.values}};
    for (uint32_t i = 0; i < reply.values._length; i++)
        n->list.values[i] = value_of(find(n, m->names._buffer[i]));
    send_reply(n, service, id, usi_type_get_parameters_response, &reply);
}

static void answer_types(usi_ros_node *n, us_service *service, us_request_id id,
                         const us_msg_get_parameter_types_request *m) {
    us_msg_get_parameter_types_response reply = {
        .types = {._length = at_most(m->names._length), ._buffer = n->list.types}};
    for (uint32_t i = 0; i < reply.types._length; i++) {
        const usi_parameter *p = find(n, m->names._buffer[i]);
        n->list.types[i] = p ? (uint8_t)p->type : USI_PARAMETER_NONE;
    }
    send_reply(n, service, id, usi_type_get_parameter_types_response, &reply);
}

static void answer_describe(usi_ros_node *n, us_service *service, us_request_id id,
                            const us_msg_describe_parameters_request *m) {
    us_msg_describe_parameters_response reply = {
        .descriptors = {._length = at_most(m->names._length), ._buffer = n->list.descriptors}};
    for (uint32_t i = 0; i < reply.descriptors._length; i++) {
        const usi_parameter *p = find(n, m->names._buffer[i]);
        us_msg_parameter_descriptor *d = &n->list.descriptors[i];
        *d = (us_msg_parameter_descriptor){.name = m->names._buffer[i]};
        if (!p) continue;
        d->type = (uint8_t)p->type;
        d->description = text(p->description);
        d->read_only = p->is_read_only;
        if (p->low == 0 && p->high == 0) continue;
        if (p->type == USI_PARAMETER_DOUBLE) {
            n->ranges[i] = (us_msg_floating_point_range){.from_value = p->low, .to_value = p->high};
            d->floating_point_range._length = 1;
            d->floating_point_range._buffer = &n->ranges[i];
        } else {
            n->integer_ranges[i] = (us_msg_integer_range){
                .from_value = (int64_t)p->low, .to_value = (int64_t)p->high, .step = 1};
            d->integer_range._length = 1;
            d->integer_range._buffer = &n->integer_ranges[i];
        }
    }
    send_reply(n, service, id, usi_type_describe_parameters_response, &reply);
}

// Whether a name lies below a prefix ("" is above all), not deeper than `depth` parts; 0: however deep.
static bool is_below(const char *name, const char *prefix, uint64_t depth) {
    const size_t n = strlen(prefix);
    if (n > 0 && strcmp(name, prefix) == 0) return true;
    if (n > 0 && (strncmp(name, prefix, n) != 0 || name[n] != '.')) return false;
    uint64_t n_part = 1;
    for (const char *at = name + (n > 0 ? n + 1 : 0); *at; at++)
        n_part += *at == '.';
    return depth == 0 || n_part <= depth;
}

static void answer_list(usi_ros_node *n, us_service *service, us_request_id id,
                        const us_msg_list_parameters_request *m) {
    us_msg_list_parameters_response reply = {
        .result = {.names = {._buffer = n->list.names}, .prefixes = {._buffer = n->list.names + MAX_NAMES}}};
    for (int32_t i = 0; i < n->n; i++) {
        const char *name = n->parameters[i].name;
        bool is_asked = m->prefixes._length == 0 && is_below(name, "", m->depth);
        for (uint32_t k = 0; k < m->prefixes._length && !is_asked; k++)
            is_asked = is_below(name, m->prefixes._buffer[k], m->depth);
        if (!is_asked) continue;
        reply.result.names._buffer[reply.result.names._length++] = text(name);
        const char *dot = strrchr(name, '.');
        if (!dot) continue;
        char *prefix = n->prefixes[reply.result.prefixes._length];
        snprintf(prefix, USI_NAME_LENGTH, "%.*s", (int)(dot - name), name);
        bool is_known = false;
        for (uint32_t k = 0; k < reply.result.prefixes._length; k++)
            is_known = is_known || strcmp(reply.result.prefixes._buffer[k], prefix) == 0;
        if (!is_known) reply.result.prefixes._buffer[reply.result.prefixes._length++] = prefix;
    }
    send_reply(n, service, id, usi_type_list_parameters_response, &reply);
}

// ---- setting ----

static bool is_in_range(const usi_parameter *p, double value) {
    return (p->low == 0 && p->high == 0) || (value >= p->low && value <= p->high);
}

static bool is_same(const usi_parameter *a, const usi_parameter *b) {
    return a->bool_value == b->bool_value && a->integer_value == b->integer_value &&
           a->double_value == b->double_value && strcmp(a->string_value, b->string_value) == 0;
}

// Whether a parameter may be set so: *out is it with the new value. Else why not.
static bool judge(usi_ros_node *n, const us_msg_parameter *m, usi_parameter *out,
                  char why[USI_PARAMETER_WHY]) {
    const usi_parameter *p = find(n, m->name);
    why[0] = 0;
    if (!p) {
        snprintf(why, USI_PARAMETER_WHY, "parameter '%.80s' is not declared", m->name);
        return false;
    }
    *out = *p;
    if (m->value.type != (uint8_t)p->type) {
        snprintf(why, USI_PARAMETER_WHY, "parameter '%.60s' has type %d, not %d", p->name, (int)p->type,
                 (int)m->value.type);
        return false;
    }
    if (p->type == USI_PARAMETER_BOOL) out->bool_value = m->value.bool_value;
    if (p->type == USI_PARAMETER_INTEGER) out->integer_value = m->value.integer_value;
    if (p->type == USI_PARAMETER_DOUBLE) out->double_value = m->value.double_value;
    if (p->type == USI_PARAMETER_STRING) {
        if (strlen(m->value.string_value) >= sizeof out->string_value) {
            snprintf(why, USI_PARAMETER_WHY, "parameter '%.60s' has %d characters at most", p->name,
                     USI_PARAMETER_TEXT - 1);
            return false;
        }
        snprintf(out->string_value, sizeof out->string_value, "%s", m->value.string_value);
    }
    if (is_same(out, p)) return true;
    if (p->is_read_only) {
        snprintf(why, USI_PARAMETER_WHY, "parameter '%.60s' is read-only", p->name);
        return false;
    }
    const double number = p->type == USI_PARAMETER_INTEGER ? (double)out->integer_value : out->double_value;
    if (!is_in_range(p, number)) {
        snprintf(why, USI_PARAMETER_WHY, "parameter '%.60s' is from %g to %g", p->name, p->low, p->high);
        return false;
    }
    return !n->def.on_set || n->def.on_set(n->def.context, out, why);
}

static void apply(usi_ros_node *n, const usi_parameter *wanted, uint32_t *n_changed) {
    usi_parameter *p = find(n, wanted->name);
    if (!p || is_same(p, wanted)) return;
    pthread_mutex_lock(&n->lock);
    *p = *wanted;
    pthread_mutex_unlock(&n->lock);
    if (*n_changed < MAX_NAMES)
        n->changed[(*n_changed)++] = (us_msg_parameter){.name = text(p->name), .value = value_of(p)};
}

static void answer_set(usi_ros_node *n, us_service *service, us_request_id id,
                       const us_msg_set_parameters_request *m) {
    us_msg_set_parameters_response reply = {
        .results = {._length = at_most(m->parameters._length), ._buffer = n->list.results}};
    uint32_t n_changed = 0;
    for (uint32_t i = 0; i < reply.results._length; i++) {
        usi_parameter wanted;
        const bool is_good = judge(n, &m->parameters._buffer[i], &wanted, n->why[i]);
        if (is_good) apply(n, &wanted, &n_changed);
        n->list.results[i] = (us_msg_set_parameters_result){.successful = is_good, .reason = n->why[i]};
    }
    send_reply(n, service, id, usi_type_set_parameters_response, &reply);
    send_event(n, n_changed, false);
}

// All or none.
static void answer_set_all(usi_ros_node *n, us_service *service, us_request_id id,
                           const us_msg_set_parameters_atomically_request *m) {
    us_msg_set_parameters_atomically_response reply = {.result = {.successful = true, .reason = n->why[0]}};
    usi_parameter wanted[USI_PARAMETERS];
    uint32_t n_wanted = 0, n_changed = 0;
    n->why[0][0] = 0;
    if (m->parameters._length > USI_PARAMETERS) {
        snprintf(n->why[0], USI_PARAMETER_WHY, "the node has %d parameters", (int)n->n);
        reply.result.successful = false;
    }
    while (reply.result.successful && n_wanted < m->parameters._length) {
        reply.result.successful = judge(n, &m->parameters._buffer[n_wanted], &wanted[n_wanted], n->why[0]);
        n_wanted++;
    }
    for (uint32_t i = 0; i < n_wanted && reply.result.successful; i++)
        apply(n, &wanted[i], &n_changed);
    send_reply(n, service, id, usi_type_set_parameters_atomically_response, &reply);
    send_event(n, n_changed, false);
}

// ---- log levels ----

static void answer_get_levels(usi_ros_node *n, us_service *service, us_request_id id,
                              const us_msg_get_logger_levels_request *m) {
    us_msg_get_logger_levels_response reply = {
        .levels = {._length = at_most(m->names._length), ._buffer = n->list.levels}};
    for (uint32_t i = 0; i < reply.levels._length; i++) {
        const bool is_own = strcmp(m->names._buffer[i], n->logger) == 0;
        n->list.levels[i] = (us_msg_logger_level){.name = m->names._buffer[i],
                                                  .level = is_own ? (uint32_t)atomic_load(&n->level) : 0};
    }
    send_reply(n, service, id, usi_type_get_logger_levels_response, &reply);
}

static void answer_set_levels(usi_ros_node *n, us_service *service, us_request_id id,
                              const us_msg_set_logger_levels_request *m) {
    us_msg_set_logger_levels_response reply = {
        .results = {._length = at_most(m->levels._length), ._buffer = n->list.level_results}};
    for (uint32_t i = 0; i < reply.results._length; i++) {
        const us_msg_logger_level *wanted = &m->levels._buffer[i];
        const bool is_level = wanted->level <= 50 && wanted->level % 10 == 0;
        const bool is_good = is_level && strcmp(wanted->name, n->logger) == 0;
        n->why[i][0] = 0;
        if (!is_good)
            snprintf(n->why[i], USI_PARAMETER_WHY,
                     is_level ? "the node's logger is %s" : "levels are 0, 10, 20, 30, 40 and 50", n->logger);
        // 0 stands for the default.
        if (is_good) atomic_store(&n->level, wanted->level == 0 ? USI_LOG_INFO : (int32_t)wanted->level);
        n->list.level_results[i] =
            (us_msg_set_logger_levels_result){.successful = is_good, .reason = n->why[i]};
    }
    send_reply(n, service, id, usi_type_set_logger_levels_response, &reply);
}

// ---- services ----

static const struct {
    const char *name;
    const us_message_type *request, *response;
} services[N_KIND] = {
    [GET] = {"get_parameters", usi_type_get_parameters_request, usi_type_get_parameters_response},
    [TYPES] = {"get_parameter_types", usi_type_get_parameter_types_request,
               usi_type_get_parameter_types_response},
    [LIST] = {"list_parameters", usi_type_list_parameters_request, usi_type_list_parameters_response},
    [DESCRIBE] = {"describe_parameters", usi_type_describe_parameters_request,
                  usi_type_describe_parameters_response},
    [SET] = {"set_parameters", usi_type_set_parameters_request, usi_type_set_parameters_response},
    [SET_ALL] = {"set_parameters_atomically", usi_type_set_parameters_atomically_request,
                 usi_type_set_parameters_atomically_response},
    [GET_LEVELS] = {"get_logger_levels", usi_type_get_logger_levels_request,
                    usi_type_get_logger_levels_response},
    [SET_LEVELS] = {"set_logger_levels", usi_type_set_logger_levels_request,
                    usi_type_set_logger_levels_response},
};

static void answer(const node_desk *d, us_service *service, us_request_id id, const void *m) {
    usi_ros_node *n = d->node;
    switch (d->request) {
    case GET:
        answer_get(n, service, id, m);
        break;
    case TYPES:
        answer_types(n, service, id, m);
        break;
    case LIST:
        answer_list(n, service, id, m);
        break;
    case DESCRIBE:
        answer_describe(n, service, id, m);
        break;
    case SET:
        answer_set(n, service, id, m);
        break;
    case SET_ALL:
        answer_set_all(n, service, id, m);
        break;
    case GET_LEVELS:
        answer_get_levels(n, service, id, m);
        break;
    default:
        answer_set_levels(n, service, id, m);
        break;
    }
}

static void on_request(void *context, us_service *service, us_request_id id, const void *bytes,
                       size_t length) {
    const node_desk *d = context;
    usi_ros_node *n = d->node;
    const us_message_type *type = services[d->request].request;
    // A parameter takes four times as much in memory as it does on the wire.
    const size_t cap = 8 * length;
    void *more = NULL;
    const void *m = NULL;
    us_status status = us_message_decode(type, bytes, length, n->memory, sizeof n->memory, &m, NULL);
    if (status == US_ERR_LIMIT && length <= MAX_REQUEST) more = usi_alloc(&n->bus->allocator, cap, 16);
    if (more) status = us_message_decode(type, bytes, length, more, cap, &m, NULL);
    if (!status) answer(d, service, id, m);
    usi_release(&n->bus->allocator, more, cap, 16);
}

static us_status offer(usi_ros_node *n, us_error *err) {
    us_status status = US_OK;
    for (int i = 0; i < N_KIND && !status; i++) {
        char name[2 * USI_NAME_LENGTH];
        snprintf(name, sizeof name, "%s/%s", n->name, services[i].name);
        const us_service_def def = {name, services[i].request, services[i].response, n->def.node};
        n->desks[i] = (node_desk){n, (node_request)i, NULL};
        status = us_bus_add_service(n->bus, &def, &n->desks[i].service, err);
        if (!status) us_service_serve(n->desks[i].service, on_request, &n->desks[i]);
    }
    return status;
}

us_status usi_node_open(us_bus *bus, const usi_node_def *def, usi_ros_node **out_node, us_error *err) {
    *out_node = NULL;
    if (def->n_parameter > USI_PARAMETERS)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "a node has %d parameters at most",
                            USI_PARAMETERS);
    usi_ros_node *n = usi_alloc(&bus->allocator, sizeof *n, _Alignof(usi_ros_node));
    if (!n) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for a node");
    memset(n, 0, sizeof *n);
    n->bus = bus;
    n->def = *def;
    n->n = def->n_parameter;
    for (int32_t i = 0; i < n->n; i++)
        n->parameters[i] = def->parameters[i];
    atomic_init(&n->level, USI_LOG_INFO);
    pthread_mutex_init(&n->lock, NULL);
    snprintf(n->name, sizeof n->name, "%s", def->name);
    snprintf(n->logger, sizeof n->logger, "%s", def->name + (def->name[0] == '/'));
    for (char *at = n->logger; *at; at++)
        if (*at == '/') *at = '.';
    const us_topic_def log = {
        "/rosout", usi_type_log, {.is_reliable = true, .is_transient_local = true, .depth = 1000}, def->node};
    const us_topic_def events = {
        "/parameter_events", usi_type_parameter_event, {.is_reliable = true, .depth = 1000}, def->node};
    us_status status = us_bus_add_writer(bus, &log, &n->log, err);
    if (!status) status = us_bus_add_writer(bus, &events, &n->events, err);
    if (!status) {
        for (int32_t i = 0; i < n->n; i++)
            n->changed[i] =
                (us_msg_parameter){.name = text(n->parameters[i].name), .value = value_of(&n->parameters[i])};
        send_event(n, (uint32_t)n->n, true);
        status = offer(n, err);
    }
    if (status) {
        usi_node_close(n);
        return status;
    }
    *out_node = n;
    return US_OK;
}

void usi_node_close(usi_ros_node *n) {
    if (!n) return;
    for (int i = 0; i < N_KIND; i++)
        us_service_remove(n->desks[i].service);
    us_writer_remove(n->events);
    us_writer_remove(n->log);
    pthread_mutex_destroy(&n->lock);
    usi_release(&n->bus->allocator, n, sizeof *n, _Alignof(usi_ros_node));
}

us_writer *usi_node_log_writer(usi_ros_node *n) { return n->log; }
const char *usi_node_logger(const usi_ros_node *n) { return n->logger; }
bool usi_node_logs(usi_ros_node *n, int32_t level) { return level >= atomic_load(&n->level); }

bool usi_node_get(usi_ros_node *n, const char *name, usi_parameter *out) {
    pthread_mutex_lock(&n->lock);
    const usi_parameter *p = find(n, name);
    if (p) *out = *p;
    pthread_mutex_unlock(&n->lock);
    return p != NULL;
}
