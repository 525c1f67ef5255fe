// understudy doctor: what is wrong with the network, where, and what to do about it.
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_doctor_add(cli_doctor *d, cli_weight weight, const char *where, const char *remedy,
                    const char *format, ...) {
    if (d->n_finding == d->cap_finding) {
        int32_t cap = 2 * d->cap_finding + 16;
        cli_finding *larger = cli_allocate((size_t)cap, sizeof *larger);
        if (d->n_finding) memcpy(larger, d->findings, (size_t)d->n_finding * sizeof *larger);
        free(d->findings);
        d->findings = larger;
        d->cap_finding = cap;
    }
    cli_finding *f = &d->findings[d->n_finding];
    f->weight = weight;
    snprintf(f->where, sizeof f->where, "%s", where);
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy ? remedy : "");
    va_list args;
    va_start(args, format);
    vsnprintf(f->what, sizeof f->what, format, args);
    va_end(args);
    d->n_finding++;
}

static const char *const weight_names[] = {"error", "warning", "note"};
static const char *const range_names[] = {"this computer", "the network (multicast)", "nobody",
                                          "this computer (loopback)", "the network (as DDS does by itself)"};

static int32_t count(const cli_doctor *d, cli_weight weight) {
    int32_t n = 0;
    for (int32_t i = 0; i < d->n_finding; i++)
        n += d->findings[i].weight == weight;
    return n;
}

// ---- examination ----

static void examine_network(cli_doctor *d, double wait) {
    us_error err = {0};
    d->def.hide_from_graph = true;
    us_status status = us_bus_open(&d->def, &d->bus.bus, &err);
    if (status) {
        cli_doctor_add(d, CLI_WRONG, "participant",
                       err.remedy[0] ? err.remedy : "look at CYCLONEDDS_URI and at the interfaces",
                       "cannot join the network: %s", err.message);
        return;
    }
    cli_bus_settle(&d->bus, wait);
    if (d->bus.n_participant == 0)
        cli_doctor_add(d, CLI_NOTE, "network",
                       "if somebody should be: do both have the same ROS_DOMAIN_ID and discovery range? "
                       "\"understudy run SCENE\" starts a robot",
                       "nobody else is on domain %d", (int)us_bus_domain(d->bus.bus));
    cli_doctor_nodes(d);
    cli_doctor_types(d);
    cli_doctor_qos(d);
    cli_doctor_commands(d);
    cli_doctor_clock(d);
}

// The nodes of a participant, each once.
static void list_nodes(const cli_doctor *d, const us_participant *p, char *out, size_t cap) {
    size_t at = 0;
    out[0] = 0;
    for (int32_t i = 0; i < d->bus.n_endpoint && at + 1 < cap; i++) {
        const us_endpoint *e = &d->bus.endpoints[i];
        bool is_new = e->node[0] && memcmp(e->participant, p->id, sizeof p->id) == 0;
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = strcmp(d->bus.endpoints[k].node, e->node) != 0 ||
                     memcmp(d->bus.endpoints[k].participant, p->id, sizeof p->id) != 0;
        if (!is_new) continue;
        int n = snprintf(out + at, cap - at, "%s%s", at > 0 ? ", " : "", e->node);
        at += n > 0 ? (size_t)n : 0;
    }
}

// ---- report ----

static void print_facts(const cli_doctor *d) {
    printf("environment\n");
    for (int32_t i = 0; i < d->n_variable; i++) {
        const cli_variable *v = &d->variables[i];
        if (v->value) printf("  %-30s %s (%s)\n", v->name, v->value, v->verdict);
    }
    printf("  domain %d, %s, looks at %s", (int)d->def.domain, d->def.vendor, range_names[d->def.range]);
    for (int32_t i = 0; i < d->def.n_peer; i++)
        printf("%s%s", i == 0 ? " and " : ", ", d->def.peers[i]);
    printf("\ninterfaces\n");
    for (int32_t i = 0; i < d->n_interface; i++) {
        const cli_interface *f = &d->interfaces[i];
        printf("  %-10s %-16s %s%s, multicast %s\n", f->name, f->address, f->is_up ? "up" : "down",
               f->is_loopback ? ", loopback" : "", f->has_multicast ? "yes" : "no");
    }
    printf("  socket buffers up to %" PRId64 " bytes in, %" PRId64 " out\n", d->rmem_max, d->wmem_max);
    printf("  UDP ports of the domain in use before this look:");
    for (int32_t i = 0; i < d->n_port; i++)
        printf(" %d", (int)d->ports[i]);
    printf("%s\n", d->n_port == 0 ? " none" : "");
    printf("on the network\n");
    for (int32_t i = 0; i < d->bus.n_participant; i++) {
        const us_participant *p = &d->bus.participants[i];
        char nodes[1024];
        list_nodes(d, p, nodes, sizeof nodes);
        printf("  %s on %s: %s\n", p->vendor[0] ? p->vendor : "(vendor unknown)",
               p->host[0] ? p->host : "(host unknown)", nodes[0] ? nodes : "no node of ROS");
    }
    if (d->bus.n_participant == 0) printf("  nobody else\n");
}

static void print_text(const cli_doctor *d) {
    print_facts(d);
    printf("findings\n");
    for (int weight = CLI_WRONG; weight <= CLI_NOTE; weight++) {
        for (int32_t i = 0; i < d->n_finding; i++) {
            const cli_finding *f = &d->findings[i];
            if ((int)f->weight != weight) continue;
            printf("  %s: %s: %s\n", weight_names[weight], f->where, f->what);
            if (f->remedy[0]) printf("    remedy: %s\n", f->remedy);
        }
    }
    int32_t n_wrong = count(d, CLI_WRONG), n_warning = count(d, CLI_WARNING);
    if (n_wrong + n_warning == 0) {
        printf("  nothing is wrong\n");
    } else {
        printf("  %d wrong, %d doubtful\n", (int)n_wrong, (int)n_warning);
    }
}

static void json_environment(cli_json *json, const cli_doctor *d) {
    cli_json_begin(json, "environment", '[');
    for (int32_t i = 0; i < d->n_variable; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", d->variables[i].name);
        cli_json_text(json, "value", d->variables[i].value);
        cli_json_text(json, "verdict", d->variables[i].verdict);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_interfaces(cli_json *json, const cli_doctor *d) {
    cli_json_begin(json, "interfaces", '[');
    for (int32_t i = 0; i < d->n_interface; i++) {
        const cli_interface *f = &d->interfaces[i];
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", f->name);
        cli_json_text(json, "address", f->address);
        cli_json_bool(json, "up", f->is_up);
        cli_json_bool(json, "loopback", f->is_loopback);
        cli_json_bool(json, "multicast", f->has_multicast);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_participants(cli_json *json, const cli_doctor *d) {
    cli_json_begin(json, "participants", '[');
    for (int32_t i = 0; i < d->bus.n_participant; i++) {
        const us_participant *p = &d->bus.participants[i];
        char nodes[1024];
        list_nodes(d, p, nodes, sizeof nodes);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "vendor", p->vendor);
        cli_json_text(json, "host", p->host);
        cli_json_text(json, "enclave", p->enclave);
        cli_json_text(json, "nodes", nodes);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_findings(cli_json *json, const cli_doctor *d) {
    cli_json_begin(json, "findings", '[');
    for (int32_t i = 0; i < d->n_finding; i++) {
        const cli_finding *f = &d->findings[i];
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "weight", weight_names[f->weight]);
        cli_json_text(json, "where", f->where);
        cli_json_text(json, "what", f->what);
        cli_json_text(json, "remedy", f->remedy);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void print_json(const cli_doctor *d) {
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_integer(&json, "domain", d->def.domain);
    cli_json_text(&json, "vendor", d->def.vendor);
    cli_json_text(&json, "range", range_names[d->def.range]);
    json_environment(&json, d);
    json_interfaces(&json, d);
    cli_json_integer(&json, "rmem_max", d->rmem_max);
    cli_json_integer(&json, "wmem_max", d->wmem_max);
    cli_json_begin_short(&json, "ports", '[');
    for (int32_t i = 0; i < d->n_port; i++)
        cli_json_integer(&json, NULL, d->ports[i]);
    cli_json_end(&json);
    json_participants(&json, d);
    json_findings(&json, d);
    cli_json_integer(&json, "wrong", count(d, CLI_WRONG));
    cli_json_integer(&json, "doubtful", count(d, CLI_WARNING));
    cli_json_end(&json);
}

static int run(const cli_command *command, int argc, char **argv) {
    bool is_json = false;
    double wait = 1.5, listen = 1;
    const cli_option table[] = {
        {"json", CLI_FLAG, &is_json, NULL, "the same as JSON"},
        {"wait", CLI_NUMBER, &wait, "S",
         "seconds to look for others at most (1.5); ends when nothing new comes"},
        {"listen", CLI_NUMBER, &listen, "S", "seconds to listen for clocks and stamps at most (1)"},
    };
    const char *operand;
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &operand);
    if (code != CLI_GO_ON) return code;
    if (wait < 0 || listen < 0)
        return cli_fail(CLI_BAD_INPUT, "understudy doctor", "write a number of seconds, 0 or above",
                        "--wait or --listen is negative");
    cli_catch_stop(NULL);
    cli_doctor *d = cli_allocate(1, sizeof *d);
    d->listen = listen;
    cli_doctor_environment(d);
    cli_doctor_interfaces(d);
    cli_doctor_buffers(d);
    cli_doctor_ports(d);
    cli_doctor_processes(d);
    examine_network(d, wait);
    if (is_json) {
        print_json(d);
    } else {
        print_text(d);
    }
    code = count(d, CLI_WRONG) + count(d, CLI_WARNING) > 0 ? CLI_FOUND : CLI_OK;
    cli_bus_close(&d->bus);
    for (int32_t i = 0; i < d->n_variable; i++)
        free(d->variables[i].value);
    free(d->findings);
    free(d);
    return code;
}

const cli_command cli_command_doctor = {
    .name = "doctor",
    .summary = "find out what is wrong with the network",
    .about = "Looks at the environment, the interfaces, buffers and ports of this computer, and at the "
             "programs on the network: names used twice,\n"
             "topics with different types, readers and writers whose QoS do not match, clocks that disagree, "
             "robots with two drivers.\n"
             "Exit code 0: nothing is wrong (there may be notes); 1: something is.\n"
             "\n"
             "Example:\n"
             "  understudy doctor\n",
    .run = run,
};
