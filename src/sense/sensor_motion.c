// How a point on a link moves, from joint to joint outwards, with O the origin of a node's frame:
//
//     w_child = w_parent + joint's rotation
//     v_O     = v_O,parent + w_parent x (O - O_parent) + joint's displacement
#include "sense/sensor_motion.h"

static usi_sensor_motion fixed_on(const usi_sensor_motion *parent, us_pose X_PN) {
    usi_sensor_motion out = {us_pose_mul(parent->X, X_PN), parent->w, parent->v};
    out.v = us_vec3_add(parent->v, us_vec3_cross(parent->w, us_vec3_sub(out.X.p, parent->X.p)));
    return out;
}

static usi_sensor_motion step_out(const usi_node *n, const usi_sensor_motion *parent, const double *q,
                                  const double *v) {
    usi_sensor_motion out = fixed_on(parent, us_pose_mul(usi_node_rest(n), usi_node_motion(n, q + n->q)));
    const us_vec3 axis = us_quat_rotate(out.X.q, us_vec3_make(n->axis == 0, n->axis == 1, n->axis == 2));
    switch (n->kind) {
    case USI_NODE_HINGE:
        out.w = us_vec3_add(out.w, us_vec3_scale(v[0], axis));
        break;
    case USI_NODE_SLIDE:
        out.v = us_vec3_add(out.v, us_vec3_scale(v[0], axis));
        break;
    case USI_NODE_SCREW:
        out.w = us_vec3_add(out.w, us_vec3_scale(v[0], axis));
        out.v = us_vec3_add(out.v, us_vec3_scale(n->pitch * v[0], axis));
        break;
    case USI_NODE_FREE:
        out.v = us_vec3_add(out.v, us_quat_rotate(out.X.q, us_vec3_make(v[3], v[4], v[5])));
    // fall through
    case USI_NODE_BALL:
        out.w = us_vec3_add(out.w, us_quat_rotate(out.X.q, us_vec3_make(v[0], v[1], v[2])));
        break;
    default:
        break;
    }
    return out;
}

usi_sensor_motion usi_sensor_move(const us_model *m, int32_t link, us_pose X_BS, const double *q,
                                  const double *v) {
    const usi_body *body = &m->body[link];
    usi_sensor_motion at = {us_pose_identity(), us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0)};
    for (int32_t i = body->node < 0 ? 0 : m->row_start[body->node];
         body->node >= 0 && i < m->row_start[body->node + 1]; i++) {
        const int32_t node = m->path[i];
        if (m->node[node].kind == USI_NODE_NEXT) continue;
        at = step_out(&m->node[node], &at, q, v + node);
    }
    at = fixed_on(&at, us_pose_mul(body->X_NB, X_BS));
    at.X.q = us_quat_normalize(at.X.q);
    return at;
}
