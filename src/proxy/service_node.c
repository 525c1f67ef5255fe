// What ROS tools expect of a robot's node: parameters, log levels, and the lines of its log on /rosout.
#include <stdio.h>
#include <string.h>

#include "bus/node.h"
#include "proxy/proxy__sample.h"

// All are settings of the scene: they can be read, and set to what they are.
us_status usi_robot_open_node(us_proxy *p, usi_robot *r, int32_t node, us_error *err) {
    const us_network_def *d = r->model->network;
    if (!d->has_services) return US_OK;
    usi_parameter parameters[] = {
        {.name = "use_sim_time",
         .description = "whether stamps are the time of /clock",
         .type = USI_PARAMETER_BOOL,
         .is_read_only = true,
         .bool_value = !d->timing.is_wall},
        {.name = "base_frame",
         .description = "link whose motion odometry estimates",
         .type = USI_PARAMETER_STRING,
         .is_read_only = true},
        {.name = "frame_prefix",
         .description = "before every frame id",
         .type = USI_PARAMETER_STRING,
         .is_read_only = true},
        {.name = "cmd_vel_timeout",
         .description = "s after which a motion command stops the robot; 0: never",
         .type = USI_PARAMETER_DOUBLE,
         .is_read_only = true,
         .double_value = d->timeout},
    };
    snprintf(parameters[1].string_value, USI_PARAMETER_TEXT, "%s",
             r->model->base_frame ? r->model->base_frame : "");
    snprintf(parameters[2].string_value, USI_PARAMETER_TEXT, "%s", d->frame_prefix ? d->frame_prefix : "");
    char name[2 * USI_TOPIC_NAME];
    snprintf(name, sizeof name, "%s%s/%s", d->namespace_[0] ? "/" : "", d->namespace_, d->node);
    const usi_node_def def = {.node = node,
                              .name = name,
                              .n_parameter = (int32_t)(sizeof parameters / sizeof parameters[0]),
                              .parameters = parameters};
    us_status status = usi_node_open(p->bus, &def, &r->node, err);
    if (status) return status;
    r->outlet[r->n_outlet - 1] = (usi_outlet){
        .type = usi_type_log, .writer = usi_node_log_writer(r->node), .channel = -1, .is_shared = true};
    return US_OK;
}

// The same line again within a second is left out: what is refused at 50 Hz is said once a second.
static bool is_new(usi_robot *r, const char *text, int64_t time) {
    const bool is_same = strncmp(r->log_text, text, sizeof r->log_text - 1) == 0;
    if (is_same && time >= r->log_time && time - r->log_time < 1000000000) return false;
    snprintf(r->log_text, sizeof r->log_text, "%s", text);
    r->log_time = time;
    return true;
}

void usi_robot_log(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s, int32_t level,
                   const char *text) {
    if (!r->node || !usi_node_logs(r->node, level)) return;
    usi_sampling w = usi_sampling_begin(p, r, sim, s);
    if (!is_new(r, text, w.time)) return;
    w.outlet = r->n_outlet - 1;
    us_msg_header header;
    usi_sampling_head(&w, &header, "");
    const us_msg_log m = {.stamp = header.stamp,
                          .level = (uint8_t)level,
                          .name = usi_text(usi_node_logger(r->node)),
                          .msg = usi_text(text),
                          .file = usi_text(""),
                          .function = usi_text("")};
    usi_sampling_send(&w, &m);
    usi_outbox_ring(p->outbox);
}

void usi_robot_log_start(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    char text[160];
    snprintf(text, sizeof text, "started: %d joints, %d drives, %d topics", (int)r->model->firmware.n_joint,
             (int)r->model->firmware.n_drive, (int)r->n_topic);
    usi_robot_log(p, r, sim, s, USI_LOG_INFO, text);
}
