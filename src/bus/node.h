// What ROS tools expect of a node beside its own topics: parameters, what changes of them, log lines, and
// which of these are sent. Requests are answered on the bus's own thread.
//
//     NODE/get_parameters, get_parameter_types, list_parameters, describe_parameters, set_parameters,
//     set_parameters_atomically, get_logger_levels, set_logger_levels; /parameter_events, /rosout
#ifndef USI_BUS_NODE_H
#define USI_BUS_NODE_H

#include "bus/bus.h"
#include "wire/messages.h"

// As rcl_interfaces/msg/ParameterType numbers them.
typedef enum usi_parameter_type {
    USI_PARAMETER_NONE,
    USI_PARAMETER_BOOL,
    USI_PARAMETER_INTEGER,
    USI_PARAMETER_DOUBLE,
    USI_PARAMETER_STRING,
} usi_parameter_type;

enum { USI_PARAMETERS = 16, USI_PARAMETER_TEXT = 256, USI_PARAMETER_WHY = 160 };

typedef struct usi_parameter {
    const char *name, *description;  // the caller's, for as long as the node is
    usi_parameter_type type;
    bool is_read_only;
    bool bool_value;
    int64_t integer_value;
    double double_value;
    char string_value[USI_PARAMETER_TEXT];
    double low, high;  // both 0: any number
} usi_parameter;

// Levels of log lines.
enum { USI_LOG_DEBUG = 10, USI_LOG_INFO = 20, USI_LOG_WARNING = 30, USI_LOG_ERROR = 40 };

typedef struct usi_ros_node usi_ros_node;

typedef struct usi_node_def {
    int32_t node;      // of the bus
    const char *name;  // in full: "/k10/driver"
    int32_t n_parameter;
    const usi_parameter *parameters;
    // On the bus's thread: whether a parameter may have a value; else why not.
    bool (*on_set)(void *context, const usi_parameter *wanted, char why[USI_PARAMETER_WHY]);
    void *context;
} usi_node_def;

us_status usi_node_open(us_bus *bus, const usi_node_def *def, usi_ros_node **out_node, us_error *err);
void usi_node_close(usi_ros_node *node);  // NULL is allowed
// The writer of /rosout, of type rcl_interfaces/msg/Log; it belongs to the node.
us_writer *usi_node_log_writer(usi_ros_node *node);
// The name that its lines have, "k10.driver", and whether lines of a level are sent. Any thread.
const char *usi_node_logger(const usi_ros_node *node);
bool usi_node_logs(usi_ros_node *node, int32_t level);
// A parameter's value of now; false when there is none of the name. Any thread.
bool usi_node_get(usi_ros_node *node, const char *name, usi_parameter *out);

#endif
