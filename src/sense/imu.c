// An inertial measurement unit anywhere on a link.
//
// An accelerometer feels motion less gravity, so that it reads +g upwards at rest. The acceleration is the
// mean of the time since the last sample: the change of the velocity of the sensor's point in the world. From
// joint to joint outwards, with O the origin of a node's frame:
//
//     w_child = w_parent + joint's rotation
//     v_O     = v_O,parent + w_parent x (O - O_parent) + joint's displacement
#include <string.h>

#include "sense/sense.h"

typedef struct motion {
    us_pose X;     // in the world
    us_vec3 w, v;  // angular velocity, and velocity of the origin; world axes
} motion;

static motion fixed_on(const motion *parent, us_pose X_PN) {
    motion out = {us_pose_mul(parent->X, X_PN), parent->w, parent->v};
    out.v = us_vec3_add(parent->v, us_vec3_cross(parent->w, us_vec3_sub(out.X.p, parent->X.p)));
    return out;
}

static motion step_out(const usi_node *n, const motion *parent, const double *q, const double *v) {
    motion out = fixed_on(parent, us_pose_mul(usi_node_rest(n), usi_node_motion(n, q + n->q)));
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

static motion motion_of(const us_model *m, const usi_sensor *k, const double *q, const double *v) {
    const usi_body *body = &m->body[k->body];
    motion at = {us_pose_identity(), us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0)};
    for (int32_t i = body->node < 0 ? 0 : m->row_start[body->node];
         body->node >= 0 && i < m->row_start[body->node + 1]; i++) {
        const int32_t node = m->path[i];
        if (m->node[node].kind == USI_NODE_NEXT) continue;
        at = step_out(&m->node[node], &at, q, v + node);
    }
    at = fixed_on(&at, us_pose_mul(body->X_NB, k->X_BS));
    at.X.q = us_quat_normalize(at.X.q);
    return at;
}

// White noise: each sample's depends on the seeds, the sensor and the tick alone.
static void add_noise(const us_model *m, const usi_sensor *k, int64_t tick, int first, double deviation,
                      double *x) {
    static const uint64_t noise_stream = UINT64_C(2) << 32;  // beside those of the radio links
    if (deviation == 0) return;
    const uint64_t seed = m->seed + UINT64_C(0x9e3779b97f4a7c15) * k->seed;
    const uint64_t stream = noise_stream + (uint64_t)(k - m->sensor);
    for (int i = 0; i < 3; i++)
        x[i] += deviation * us_random_normal(seed, stream, 6 * (uint64_t)tick + (uint64_t)(first + i));
}

void usi_sense_imu(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                   double *reading) {
    if (k->is_lost) return;
    const motion at = motion_of(m, k, in->q, in->v);
    const us_vec3 before = us_vec3_make(s->before[0], s->before[1], s->before[2]);
    const us_quat to_sensor = us_quat_conj(at.X.q);
    us_vec3 force = us_vec3_scale(-1, m->gravity);
    if (in->time > 0) force = us_vec3_add(force, us_vec3_scale(1 / in->time, us_vec3_sub(at.v, before)));
    s->before[0] = at.v.x;
    s->before[1] = at.v.y;
    s->before[2] = at.v.z;
    if (s->is_stuck || !reading) return;
    const us_vec3 w = us_quat_rotate(to_sensor, at.w), a = us_quat_rotate(to_sensor, force);
    const double out[10] = {at.X.q.w,           at.X.q.x,           at.X.q.y,           at.X.q.z,
                            w.x + s->offset[3], w.y + s->offset[4], w.z + s->offset[5], a.x + s->offset[0],
                            a.y + s->offset[1], a.z + s->offset[2]};
    memcpy(reading, out, sizeof out);
    add_noise(m, k, in->tick, 0, k->noise[1], reading + 4);
    add_noise(m, k, in->tick, 3, k->noise[0], reading + 7);
}
