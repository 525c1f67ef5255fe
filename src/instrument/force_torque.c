// Force and torque through a joint: what its parent exerts on its child, as a mean over the last step, about
// the sensor's origin and in its axes. Without `joint`: that of the joint above the sensor's own link.
#include "instrument/measure.h"

enum {
    JOINT,
    FORCE_NOISE,
    TORQUE_NOISE,
    CROSSTALK,
    FORCE_LIMIT,
    TORQUE_LIMIT,
    FORCE_QUANTUM,
    TORQUE_QUANTUM
};
static const us_sensor_parameter parameters[] = {
    USI_OF_JOINT(-1, "The joint whose wrench it measures."),
    USI_NUMBER("force-noise", "N", 0, 1e9, 0.1, "Standard deviation of each component of the force."),
    USI_NUMBER("torque-noise", "Nm", 0, 1e9, 0.005, "Standard deviation of each component of the torque."),
    USI_NUMBER("crosstalk", "1", 0, 1, 0,
               "Deviation of the share of each component that the next one shows."),
    USI_NUMBER("force-limit", "N", 0, 1e12, 0, "Largest component of the force; 0: any."),
    USI_NUMBER("torque-limit", "Nm", 0, 1e12, 0, "Largest component of the torque; 0: any."),
    USI_NUMBER("force-quantum", "N", 0, 1e6, 0, "Forces are whole multiples of it; 0: any."),
    USI_NUMBER("torque-quantum", "Nm", 0, 1e6, 0, "Torques are whole multiples of it; 0: any."),
};
static const us_sensor_reading readings[] = {{"force.x", "N", false},   {"force.y", "N", false},
                                             {"force.z", "N", false},   {"torque.x", "Nm", false},
                                             {"torque.y", "Nm", false}, {"torque.z", "Nm", false}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const double *p = view->parameter;
    const us_model *m = us_sim_view_model(view->sim);
    us_joint joint = {(int32_t)p[JOINT]};
    if (joint.i < 0) joint = us_model_get_parent_joint(m, (us_body){view->body});
    const us_joint_info info = us_model_get_joint(m, joint);
    if (info.type == US_JOINT_COUNT)
        return usi_refuse(view, "name a joint, or put it on a link that hangs on one",
                          "no joint is above its link");
    us_wrench w = us_sim_get_joint_reaction(view->sim, joint);
    // Before the first step nothing has pushed yet.
    if (isnan(w.f.x)) w.f = w.n = us_vec3_make(0, 0, 0);
    const us_vec3 arm = us_vec3_sub(us_sim_get_pose(view->sim, info.child).p, view->X_WS.p);
    usi_put(truth, usi_in_sensor(view, w.f));
    usi_put(truth + 3, usi_in_sensor(view, us_vec3_add(w.n, us_vec3_cross(arm, w.f))));
    for (int i = 0; i < 6; i++) {
        const bool is_torque = i >= 3;
        const int next = is_torque ? 3 + (i - 2) % 3 : (i + 1) % 3;
        double y = truth[i] + p[is_torque ? TORQUE_NOISE : FORCE_NOISE] * us_sensor_normal(view, i);
        if (p[CROSSTALK] > 0) y += p[CROSSTALK] * usi_unit_normal(view, i) * truth[next];
        y = usi_noise_limit(p[is_torque ? TORQUE_LIMIT : FORCE_LIMIT], y);
        reading[i] = usi_noise_round(p[is_torque ? TORQUE_QUANTUM : FORCE_QUANTUM], y);
    }
    return true;
}

static const us_sensor_member members[] = {
    {.path = "wrench.force.x", .value = "force.x"},   {.path = "wrench.force.y", .value = "force.y"},
    {.path = "wrench.force.z", .value = "force.z"},   {.path = "wrench.torque.x", .value = "torque.x"},
    {.path = "wrench.torque.y", .value = "torque.y"}, {.path = "wrench.torque.z", .value = "torque.z"},
};

const us_sensor_kind usi_force_torque_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "force-torque",
    .about = "force and torque through a joint",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 100,
    .topic = "wrench",
    .message = "geometry_msgs/msg/WrenchStamped",
    .members = members,
    .sample = sample,
};
