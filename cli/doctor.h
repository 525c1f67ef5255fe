// The parts of `understudy doctor`: this computer (doctor_host.c), who is on the network (doctor_graph.c),
// the report (doctor.c).
#ifndef UNDERSTUDY_CLI_DOCTOR_H
#define UNDERSTUDY_CLI_DOCTOR_H

#include "bus.h"

typedef enum cli_weight {
    CLI_WRONG,    // something does not work
    CLI_WARNING,  // something is most likely not meant
    CLI_NOTE,     // worth knowing; nothing is wrong
} cli_weight;

typedef struct cli_finding {
    cli_weight weight;
    char where[192], what[512], remedy[384];
} cli_finding;

typedef struct cli_variable {
    const char *name;
    char *value;          // NULL: not set
    const char *verdict;  // "good", "bad", "not set", or what it does
} cli_variable;

typedef struct cli_interface {
    char name[32], address[64];
    bool is_up, is_loopback, has_multicast;
} cli_interface;

enum { CLI_DOCTOR_MAX = 64 };

typedef struct cli_doctor {
    int32_t n_finding, cap_finding;
    cli_finding *findings;  // in the order in which they were found
    int32_t n_variable;
    cli_variable variables[CLI_DOCTOR_MAX];
    int32_t n_interface;
    cli_interface interfaces[CLI_DOCTOR_MAX];
    int64_t rmem_max, wmem_max;  // bytes; -1: not known
    int32_t n_port;
    int32_t ports[CLI_DOCTOR_MAX];  // UDP ports of the domain that somebody has
    us_bus_def def;                 // what the environment asks for, as far as it can be used
    char def_text[US_BUS_TEXT];
    cli_bus bus;    // bus.bus NULL: no participant could be made
    double listen;  // s
} cli_doctor;

void cli_doctor_add(cli_doctor *doctor, cli_weight weight, const char *where, const char *remedy,
                    const char *format, ...) US_PRINTF(5, 6);

// ---- this computer ----

// Fills `def` too. A variable with a bad value is reported and ignored.
void cli_doctor_environment(cli_doctor *doctor);
void cli_doctor_interfaces(cli_doctor *doctor);
void cli_doctor_buffers(cli_doctor *doctor);
void cli_doctor_ports(cli_doctor *doctor);
// Programs that have DDS inside and cannot hear us, and why (doctor_process.c).
void cli_doctor_processes(cli_doctor *doctor);

// ---- the network; after a look at it ----

void cli_doctor_nodes(cli_doctor *doctor);
void cli_doctor_types(cli_doctor *doctor);
void cli_doctor_qos(cli_doctor *doctor);
void cli_doctor_commands(cli_doctor *doctor);
// Listens for a while: who publishes the time, and whose stamps are of another one.
void cli_doctor_clock(cli_doctor *doctor);

#endif
