// understudy topics: what is said on the network, by whom, to whom, and how often.
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"

typedef struct topics_options {
    double wait, rates;  // rates NaN: not asked for
    bool is_json, is_all;
} topics_options;

// One topic with one type: neighbours in the sorted list. The counters are written by a thread of the bus
// while rates are measured.
typedef struct entry {
    int32_t first, n;  // endpoints of the list
    int32_t n_writer, n_reader;
    char topic[CLI_NAME_MAX], type[CLI_NAME_MAX];
    us_reader *reader;  // NULL: not measured
    _Atomic int64_t n_sample, n_byte, first_ns, last_ns;
} entry;

static void on_sample(void *context, const us_sample *sample) {
    entry *e = context;
    int64_t now = (int64_t)(1e9 * cli_clock());
    if (atomic_fetch_add(&e->n_sample, 1) == 0) atomic_store(&e->first_ns, now);
    atomic_fetch_add(&e->n_byte, (int64_t)sample->length);
    atomic_store(&e->last_ns, now);
}

static entry *group(const cli_bus *bus, bool is_all, int32_t *out_n) {
    entry *entries = cli_allocate((size_t)bus->n_endpoint, sizeof *entries);
    int32_t n = 0;
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        const us_endpoint *e = &bus->endpoints[i];
        if (!is_all && !cli_is_ros_topic(e->topic)) continue;
        const us_endpoint *before = n > 0 ? &bus->endpoints[entries[n - 1].first] : NULL;
        if (!before || strcmp(before->topic, e->topic) != 0 || strcmp(before->type, e->type) != 0) {
            entries[n].first = i;
            cli_ros_topic(e->topic, entries[n].topic);
            cli_ros_type(e->type, entries[n].type);
            n++;
        }
        entry *last = &entries[n - 1];
        last->n++;
        if (e->is_writer) {
            last->n_writer++;
        } else {
            last->n_reader++;
        }
    }
    *out_n = n;
    return entries;
}

// Listens to every topic that somebody writes and whose type is known, without asking for more than is
// offered.
static void measure(cli_bus *bus, entry *entries, int32_t n, double seconds) {
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &bus->endpoints[entries[i].first];
        const us_message_type *type = us_message_find(e->type);
        if (!type || entries[i].n_writer == 0 || !cli_is_ros_topic(e->topic)) continue;
        us_topic_def def = {.topic = entries[i].topic,
                            .type = type,
                            .qos = cli_qos_for_reader(bus, e->topic, 100),
                            .node = -1};
        def.qos.is_transient_local = false;  // samples of long ago do not count in a rate
        us_error err = {0};
        if (us_bus_add_reader(bus->bus, &def, on_sample, &entries[i], &entries[i].reader, &err))
            cli_print_error(&err);
    }
    cli_measure(seconds);
    for (int32_t i = 0; i < n; i++) {
        if (!entries[i].reader) continue;
        us_reader_remove(entries[i].reader);
    }
}

// Hz between the first and the last sample; fewer than two samples have none.
static double rate_of(entry *e) {
    int64_t n = atomic_load(&e->n_sample), span = atomic_load(&e->last_ns) - atomic_load(&e->first_ns);
    if (!e->reader) return NAN;
    return n > 1 && span > 0 ? (double)(n - 1) / (1e-9 * (double)span) : n == 0 ? 0 : NAN;
}

// That of the writers, or of the readers when nobody writes; NULL when they differ.
static const char *qos_of(const cli_bus *bus, const entry *e) {
    const char *text = NULL;
    for (int32_t i = e->first; i < e->first + e->n; i++) {
        if (!bus->endpoints[i].is_writer && e->n_writer > 0) continue;
        const char *own = cli_qos_text(bus->endpoints[i].qos);
        if (text && strcmp(text, own) != 0) return NULL;
        text = own;
    }
    return text;
}

// The nodes of writers or readers, each once, with commas between; endpoints of plain DDS programs as
// "(DDS)".
static void list_nodes(const cli_bus *bus, const entry *e, bool is_writer, char *out, size_t cap) {
    const char *last = NULL;
    size_t at = 0;
    out[0] = 0;
    for (int32_t i = e->first; i < e->first + e->n && at + 1 < cap; i++) {
        if (bus->endpoints[i].is_writer != is_writer) continue;
        const char *node = bus->endpoints[i].node[0] ? bus->endpoints[i].node : "(DDS)";
        if (last && strcmp(last, node) == 0) continue;
        int n = snprintf(out + at, cap - at, "%s%s", last ? ", " : "", node);
        at += n > 0 ? (size_t)n : 0;
        last = node;
    }
}

static int widest(const entry *entries, int32_t n, bool is_type, int width) {
    for (int32_t i = 0; i < n; i++) {
        int length = (int)strlen(is_type ? entries[i].type : entries[i].topic);
        width = length > width ? length : width;
    }
    return width;
}

static void print_text(const cli_bus *bus, entry *entries, int32_t n, bool has_rates) {
    int topic = widest(entries, n, false, 5), type = widest(entries, n, true, 4);
    printf("%-*s  %-*s  writers  readers  ", topic, "topic", type, "type");
    if (has_rates) printf("%9s  %9s  ", "Hz", "kB/s");
    printf("%-28s  writers' nodes -> readers' nodes\n", "QoS");
    for (int32_t i = 0; i < n; i++) {
        entry *e = &entries[i];
        char writers[1024], readers[1024];
        list_nodes(bus, e, true, writers, sizeof writers);
        list_nodes(bus, e, false, readers, sizeof readers);
        const char *qos = qos_of(bus, e);
        printf("%-*s  %-*s  %7d  %7d  ", topic, e->topic, type, e->type, (int)e->n_writer, (int)e->n_reader);
        if (has_rates) {
            double rate = rate_of(e);
            int64_t n_sample = atomic_load(&e->n_sample);
            if (isnan(rate)) {
                printf("%9s  %9s  ", e->reader ? "once" : "-", "-");
            } else {
                printf("%9.2f  %9.2f  ", rate,
                       n_sample > 0 ? 1e-3 * rate * (double)atomic_load(&e->n_byte) / (double)n_sample : 0);
            }
        }
        printf("%-28s  %s%s%s\n", qos ? qos : "mixed", writers,
               readers[0] ? (writers[0] ? " -> " : "-> ") : "", readers);
    }
}

static void print_json(const cli_bus *bus, entry *entries, int32_t n, bool has_rates) {
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_integer(&json, "domain", us_bus_domain(bus->bus));
    cli_json_text(&json, "vendor", us_bus_vendor(bus->bus));
    cli_json_integer(&json, "participants", bus->n_participant);
    cli_json_begin(&json, "topics", '[');
    for (int32_t i = 0; i < n; i++) {
        entry *e = &entries[i];
        cli_json_begin(&json, NULL, '{');
        cli_json_text(&json, "topic", e->topic);
        cli_json_text(&json, "type", e->type);
        cli_json_bool(&json, "known", us_message_find(bus->endpoints[e->first].type) != NULL);
        if (has_rates && e->reader) {
            cli_json_number(&json, "rate", rate_of(e));
            cli_json_integer(&json, "samples", atomic_load(&e->n_sample));
            cli_json_integer(&json, "bytes", atomic_load(&e->n_byte));
        }
        for (int k = 0; k < 2; k++) {
            cli_json_begin(&json, k == 0 ? "writers" : "readers", '[');
            for (int32_t j = e->first; j < e->first + e->n; j++) {
                const us_endpoint *p = &bus->endpoints[j];
                if (p->is_writer != (k == 0)) continue;
                cli_json_begin_short(&json, NULL, '{');
                cli_json_text(&json, "node", p->node);
                cli_json_bool(&json, "reliable", p->qos.is_reliable);
                cli_json_bool(&json, "transient_local", p->qos.is_transient_local);
                cli_json_integer(&json, "depth", p->qos.depth);
                cli_json_text(&json, "hash", p->hash);
                cli_json_end(&json);
            }
            cli_json_end(&json);
        }
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}

// Topics that are neither of ROS nor of its services: robots with types of their own have such.
static int32_t count_plain(const cli_bus *bus) {
    int32_t n = 0;
    for (int32_t i = 0; i < bus->n_endpoint; i++) {
        const char *topic = bus->endpoints[i].topic;
        const bool is_ros = topic[0] == 'r' && topic[1] && strchr("tqr", topic[1]) && topic[2] == '/';
        const bool is_new = i == 0 || strcmp(bus->endpoints[i - 1].topic, topic) != 0;
        n += is_new && !is_ros && strcmp(topic, "ros_discovery_info") != 0;
    }
    return n;
}

static int run(const cli_command *command, int argc, char **argv) {
    topics_options o = {.wait = 1, .rates = NAN};
    const cli_option table[] = {
        {"json", CLI_FLAG, &o.is_json, NULL, "the same as JSON"},
        {"wait", CLI_NUMBER, &o.wait, "S",
         "seconds to look for others at most (1); ends when nothing new comes"},
        {"rates", CLI_NUMBER, &o.rates, "S", "listen for S seconds, and show how often and how much is sent"},
        {"all", CLI_FLAG, &o.is_all, NULL,
         "also what is not a topic of ROS: services, discovery, other DDS programs"},
    };
    const char *operand;
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &operand);
    if (code != CLI_GO_ON) return code;
    if (o.wait < 0)
        return cli_fail(CLI_BAD_INPUT, "understudy topics", "write --wait S with S at least 0",
                        "--wait is negative");
    if (o.rates <= 0)
        return cli_fail(CLI_BAD_INPUT, "understudy topics", "write --rates S above 0, for example --rates 2",
                        "--rates is not above 0");

    cli_catch_stop(NULL);
    cli_bus bus;
    code = cli_bus_open(&bus, true);
    if (code != CLI_GO_ON) return code;
    cli_bus_settle(&bus, o.wait);
    int32_t n = 0;
    entry *entries = group(&bus, o.is_all, &n);
    bool has_rates = !isnan(o.rates);
    if (has_rates) measure(&bus, entries, n, o.rates);
    if (o.is_json) {
        print_json(&bus, entries, n, has_rates);
    } else if (n > 0) {
        print_text(&bus, entries, n, has_rates);
        const int32_t n_plain = o.is_all ? 0 : count_plain(&bus);
        if (n_plain > 0)
            printf("and %d that %s of plain DDS: --all\n", (int)n_plain, n_plain == 1 ? "is" : "are");
    } else {
        printf("no topics on domain %d (%s)\n", (int)us_bus_domain(bus.bus), us_bus_vendor(bus.bus));
        fputs("  remedy: start a robot (understudy run scenes/default.xml), or see what understudy doctor "
              "finds\n",
              stderr);
    }
    cli_bus_close(&bus);
    free(entries);
    return CLI_OK;
}

const cli_command cli_command_topics = {
    .name = "topics",
    .summary = "list what is said on the network",
    .about = "Topic, type, how many write and read it, QoS of the writers, nodes. ROS_DOMAIN_ID and the "
             "other variables of ROS 2 say which network.\n"
             "\n"
             "Examples:\n"
             "  understudy topics\n"
             "  understudy topics --rates 2\n",
    .run = run,
};
