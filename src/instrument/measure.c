// Questions that several kinds of sensors ask of the world.
#include "instrument/measure.h"

bool usi_refuse(const us_sensor_view *view, const char *remedy, const char *message) {
    (void)us_error_set(view->why, US_ERR_VALUE, NULL, remedy, "%s", message);
    return false;
}

bool usi_has_place(const us_sensor_view *view) {
    return usi_sky_of(view).planet != US_PLANET_NONE ||
           usi_refuse(view, "write planet=\"earth\" (or moon, mars), latitude and longitude into <world>",
                      "the world lies on no planet");
}

double usi_free_range(const us_sensor_view *view, us_vec3 direction_W, double reach, us_sim_hit *out_hit) {
    us_query_filter filter = us_query_filter_default();
    filter.except.i = view->body;
    filter.except_object = true;
    us_sim_hit hit;
    if (us_sim_cast_ray(view->sim, view->X_WS.p, direction_W, reach, &filter, &hit)) return NAN;
    if (out_hit) *out_hit = hit;
    return hit.distance;
}

bool usi_joint_motion(const us_sensor_view *view, int32_t joint, double *out_q, double *out_v) {
    const us_joint_info info = us_model_get_joint(us_sim_view_model(view->sim), (us_joint){joint});
    if (info.type == US_JOINT_COUNT || info.n_q != 1 || info.n_v != 1)
        return usi_refuse(view, "name a hinge or a slide", "its joint has not exactly one coordinate");
    *out_q = us_sim_view_q(view->sim)[info.first_q];
    *out_v = us_sim_view_v(view->sim)[info.first_v];
    return true;
}

int32_t usi_joint_drive(const us_sensor_view *view, int32_t joint, double *out_torque) {
    const us_model *m = us_sim_view_model(view->sim);
    const int32_t n = us_model_get_counts(m).n_drive;
    *out_torque = 0;
    for (int32_t i = 0; i < n; i++) {
        if (us_model_get_drive_joint(m, (us_drive){i}).i != joint) continue;
        *out_torque = us_sim_view_torque(view->sim)[i];
        return i;
    }
    return -1;
}

us_vec3 usi_touch_force(const us_sensor_view *view, int32_t body, us_vec3 about_W, us_vec3 *out_moment) {
    us_vec3 force = us_vec3_make(0, 0, 0), moment = us_vec3_make(0, 0, 0);
    for (int32_t i = 0, n = us_sim_n_contact(view->sim); i < n; i++) {
        const us_contact c = us_sim_get_contact(view->sim, i);
        const double sign = (c.body_a.i == body) - (c.body_b.i == body);
        const us_vec3 f = us_vec3_scale(sign, c.force);
        if (sign == 0) continue;
        force = us_vec3_add(force, f);
        moment = us_vec3_add(moment, us_vec3_cross(us_vec3_sub(c.point, about_W), f));
    }
    for (int32_t i = 0, n = us_sim_n_soil_contact(view->sim); i < n; i++) {
        if (us_sim_get_soil_contact(view->sim, i).body.i != body) continue;
        // Nodes carry the force of the contact in world axes.
        for (int32_t k = 0, nodes = us_sim_n_soil_node(view->sim, i); k < nodes; k++) {
            const us_soil_node node = us_sim_get_soil_node(view->sim, i, k);
            force = us_vec3_add(force, node.force);
            moment = us_vec3_add(moment, us_vec3_cross(us_vec3_sub(node.place, about_W), node.force));
        }
    }
    if (out_moment) *out_moment = moment;
    return force;
}
