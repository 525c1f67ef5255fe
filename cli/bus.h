// What the commands of the network share: the bus, what is on it, names, a clean end, and a line that is
// rewritten.
#ifndef UNDERSTUDY_CLI_BUS_H
#define UNDERSTUDY_CLI_BUS_H

#include "cli.h"
#include "understudy/bus.h"
#include "understudy/interface.h"

enum { CLI_NAME_MAX = 256 };

// One bus, and the last look at the network: the endpoints and participants of others, sorted by what people
// look for.
typedef struct cli_bus {
    us_bus *bus;
    int32_t n_endpoint, n_participant;
    us_endpoint *endpoints;        // by topic, type, writers first, node, id
    us_participant *participants;  // by id
    uint64_t fingerprint;          // of all that
} cli_bus;

// The network that the environment names; `enclave` (may be NULL) where it names none. What the user should
// know is shown once. `text` holds texts of the definition.
us_status cli_bus_def(us_bus_def *def, const char *enclave, char text[US_BUS_TEXT], us_error *err);
// Joins the network that the environment names. CLI_GO_ON, or the exit code with the error shown.
// `is_hidden`: no name in the ROS graph.
int cli_bus_open(cli_bus *bus, bool is_hidden);
void cli_bus_close(cli_bus *bus);
// Adds the node /understudy/NAME_PID, so that two of the same command do not bear one name.
int cli_bus_add_node(cli_bus *bus, const char *name, int32_t *out_node);
// Looks again. True when something is not as it was.
bool cli_bus_discover(cli_bus *bus);
// Looks until somebody is there and nothing new came for 0.3 s, or until `timeout` seconds are over, or a
// signal came.
void cli_bus_settle(cli_bus *bus, double timeout);

// ---- topics ----

// "/k10/odom" of "rt/k10/odom"; other names stay as they are.
void cli_ros_topic(const char *dds, char out[CLI_NAME_MAX]);
// "nav_msgs/msg/Odometry" of "nav_msgs::msg::dds_::Odometry_"; other names stay as they are.
void cli_ros_type(const char *dds, char out[CLI_NAME_MAX]);
// The name by which a bus knows a topic of DDS: "/k10/odom", or "dds:NAME" of one that is no topic of ROS.
void cli_bus_topic(const char *dds, char out[CLI_NAME_MAX]);
// "rt/k10/odom" of "/k10/odom" or "k10/odom", NAME of "dds:NAME"; false when it is too long.
bool cli_dds_topic(const char *topic, char out[CLI_NAME_MAX]);
static inline bool cli_is_ros_topic(const char *dds) {
    return dds[0] == 'r' && dds[1] == 't' && dds[2] == '/';
}

// The types of the files that --interface names. CLI_GO_ON, or the exit code with the error shown; NULL when
// there are none. To be released.
int cli_read_interface(const cli_list *files, us_interface **out_types);
// A type by its name in DDS or ROS, of those files (may be NULL) or built in; NULL when it is not known.
const us_message_type *cli_find_type(const us_interface *types, const char *name);
// The QoS with which a reader matches every writer of a topic (as DDS has its name): reliable only when all
// are, transient-local only when all are; in the partitions of one that has any.
us_qos cli_qos_for_reader(const cli_bus *bus, const char *dds_topic, int32_t depth);
// The ROS topic that somebody who wrote `topic` timeout likely meant, into out; false when none is near.
bool cli_bus_nearest(const cli_bus *bus, const char *topic, char out[CLI_NAME_MAX]);
// How many topics of ROS there are.
int32_t cli_bus_n_topic(const cli_bus *bus);

// "reliable", "best effort, transient local"
const char *cli_qos_text(us_qos qos);

// ---- time and signals ----

double cli_clock(void);  // s, CLOCK_MONOTONIC
int64_t cli_wall_ns(void);
// The first Ctrl-C (or TERM, HUP) asks for a clean end, the second one ends at once. `rites` (may be NULL) is
// called before a signal ends the program, in its handler: it may do what handlers may.
void cli_catch_stop(void (*rites)(void));
bool cli_is_stopped(void);
// After a stop: whoever listens and does not answer holds the end of the bus up for a moment only.
void cli_hasten(us_bus *bus);
// For a handler of a command's own: counts as a stop.
void cli_note_stop(void);
void cli_pause(double seconds);  // a signal ends it early
// Seconds since the last call, where they are so many that somebody must have stopped this program (SIGSTOP)
// or left it no processor; otherwise 0. For loops that come round 20 times a second; *last is that of the
// last call.
double cli_standstill(double *last);
// Waits while others listen and measure; a standstill meanwhile is warned of. A signal ends it early.
void cli_measure(double seconds);

// ---- a line that is rewritten ----

void cli_line_show(const char *format, ...) US_PRINTF(1, 2);
void cli_line_clear(void);
// " 43 % [####.....]" into out.
void cli_bar(double share, char *out, size_t cap);

// True when the list "A,B" names the topic, with or without its first /, or there is no list.
bool cli_is_listed(const char *list, const char *topic);

#endif
