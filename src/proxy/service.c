// Status of the rover services, and replies to their requests.
#include <math.h>
#include <string.h>

#include "proxy/proxy__sample.h"

// Status of each service; false for robots without drives or wheels, which have none.

static bool make_motor_group(usi_sampling *w, us_msg_motor_group_status *m) {
    const usi_robot *r = w->r;
    memset(m, 0, sizeof *m);
    usi_sampling_head(w, &m->header, r->model->base_frame);
    USI_SAMPLING_TAKE(w, m->motors, r->model->firmware.n_drive);
    if (r->model->firmware.n_drive == 0 || m->motors._length == 0) return false;
    m->sequence = w->firmware->motors.sequence;
    m->result = w->firmware->motors.state == 4;
    m->message = usi_text(w->firmware->motors.message);
    const usi_drive_state *d = usi_firmware_view_drives(&r->model->firmware, w->firmware);
    const double *torque = us_sim_view_torque(w->sim);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        int32_t joint = r->model->firmware.drive[k].joint;
        double v = usi_read_v(r, w->sim, joint);
        m->motors._buffer[k] = (us_msg_motor_state){.name = usi_text(r->model->firmware.joint[joint].name),
                                                    .position = usi_read_q(r, w->sim, joint),
                                                    .velocity = v,
                                                    .acceleration = (v - d[k].v_before) / w->p->step,
                                                    .torque = torque[r->model->drive[k].index],
                                                    .powered = !d[k].is_off,
                                                    .fault = usi_text("")};
    }
    return true;
}

static bool make_locomotor(usi_sampling *w, us_msg_locomotor_status *m) {
    const usi_firmware_state *s = w->firmware;
    *m = (us_msg_locomotor_status){.sequence = s->locomotor.sequence,
                                   .state = s->locomotor.state,
                                   .message = usi_text(s->locomotor.message),
                                   .error = s->locomotor.error,
                                   .speed = s->odom_v[0],
                                   .side_speed = s->odom_v[1],
                                   .turn_rate = s->odom_v[2],
                                   .distance = s->done};
    usi_sampling_head(w, &m->header, w->r->model->base_frame);
    return usi_can_move(w->r);
}

// Of the way and of the angles turned through: what wheels lose on loose ground.
static const double SLIP = 0.02;

static double square(double x) { return x * x; }

static bool make_pose_estimator(usi_sampling *w, us_msg_pose_estimator_status *m) {
    const usi_firmware_state *s = w->firmware;
    *m = (us_msg_pose_estimator_status){.sequence = s->pose.sequence,
                                        .state = s->pose.state == 4 ? 1 : s->pose.state,
                                        .message = usi_text(s->pose.message)};
    double pose[3];
    usi_odometry_compose(s->pose_offset, s->odom, pose);
    usi_sampling_head(w, &m->header, "map");
    m->pose.pose = usi_message_planar_pose(pose);
    m->twist.twist.linear.x = s->odom_v[0];
    m->twist.twist.linear.y = s->odom_v[1];
    m->twist.twist.angular.z = s->odom_v[2];
    usi_message_odometry_covariance(m->pose.covariance, m->twist.covariance);
    // Slip adds up: what was known when the pose was set is known less with each metre and each turn since.
    const double place = square(SLIP * s->way), heading = square(SLIP * s->turned);
    m->pose.covariance[0] += place;
    m->pose.covariance[7] += place;
    m->pose.covariance[35] += heading;
    return usi_can_move(w->r);
}

static bool make_navigator(usi_sampling *w, us_msg_navigator_status *m) {
    const usi_firmware_state *s = w->firmware;
    *m = (us_msg_navigator_status){.sequence = s->navigator.sequence,
                                   .state = s->navigator.state,
                                   .message = usi_text(s->navigator.message),
                                   .error = s->navigator.error,
                                   .waypoint = (uint32_t)s->next_route};
    double pose[3];
    usi_odometry_compose(s->pose_offset, s->odom, pose);
    if (s->next_route < s->n_route)
        m->distance = hypot(s->route[s->next_route][0] - pose[0], s->route[s->next_route][1] - pose[1]);
    usi_sampling_head(w, &m->header, "map");
    return usi_can_move(w->r);
}

// ---------------------------------------------------------------- on topics

#define DEFINE_STATUS(service)                               \
    void usi_sample_##service(usi_sampling *w) {             \
        us_msg_##service##_status m;                         \
        if (make_##service(w, &m)) usi_sampling_send(w, &m); \
    }
DEFINE_STATUS(motor_group)
DEFINE_STATUS(locomotor)
DEFINE_STATUS(pose_estimator)
DEFINE_STATUS(navigator)

// ---------------------------------------------------------------- to requests

#define DEFINE_REPLY(service)                                                  \
    static void reply_##service(usi_sampling *w, const usi_reply *reply) {     \
        us_msg_##service##_response m = {.guid = reply->guid,                  \
                                         .seq = reply->seq,                    \
                                         .accepted = reply->is_accepted,       \
                                         .error = (uint8_t)reply->error,       \
                                         .message = usi_text(reply->message)}; \
        if (make_##service(w, &m.status)) usi_sampling_send(w, &m);            \
    }
DEFINE_REPLY(motor_group)
DEFINE_REPLY(locomotor)
DEFINE_REPLY(pose_estimator)
DEFINE_REPLY(navigator)

void usi_robot_reply(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                     const usi_reply *reply) {
    static void (*const send[USI_SERVICE_COUNT])(usi_sampling *, const usi_reply *) = {
        [USI_COMMAND_ASK_MOTORS - USI_COMMAND_ASK] = reply_motor_group,
        [USI_COMMAND_ASK_LOCOMOTOR - USI_COMMAND_ASK] = reply_locomotor,
        [USI_COMMAND_ASK_POSE - USI_COMMAND_ASK] = reply_pose_estimator,
        [USI_COMMAND_ASK_NAVIGATOR - USI_COMMAND_ASK] = reply_navigator,
        [USI_COMMAND_ASK_PROPERTIES - USI_COMMAND_ASK] = usi_reply_properties,
        [USI_COMMAND_ASK_WAIT - USI_COMMAND_ASK] = usi_reply_wait};
    if (reply->service < 0 || !r->outlet[r->n_topic + reply->service].writer) return;
    usi_sampling w = usi_sampling_begin(p, r, sim, s);
    w.outlet = r->n_topic + reply->service;
    send[reply->service](&w, reply);
    usi_outbox_ring(p->outbox);
}
