// Questions to a running world: poses, energies, values by name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contact/residency.h"
#include "contact/soil.h"
#include "model/robots.h"
#include "sim/sim__sensors.h"
#include "spec/sensor_kind.h"

const us_model *us_sim_view_model(const us_sim *s) { return s ? s->model : NULL; }
int64_t us_sim_get_tick(const us_sim *s) { return s ? s->now.tick[0] : -1; }
double us_sim_get_time(const us_sim *s) { return s ? (double)s->now.tick[0] * s->model->step : NAN; }
const double *us_sim_view_q(const us_sim *s) { return s ? s->now.q : NULL; }
const double *us_sim_view_v(const us_sim *s) { return s ? s->now.v : NULL; }
const double *us_sim_view_torque(const us_sim *s) { return s ? s->now.drive_effort : NULL; }
const us_error *us_sim_view_error(const us_sim *s) { return s ? &s->error : NULL; }

const char *us_stage_name(us_stage stage) {
    static const char *const names[] = {
#define STAGE_NAME(code, name) name,
        US_STAGE_LIST(STAGE_NAME)
#undef STAGE_NAME
    };
    return (unsigned)stage < (unsigned)US_STAGE_COUNT ? names[stage] : "?";
}

us_profile us_sim_take_profile(us_sim *s) {
    us_profile p = {0, {0}};
    if (!s) return p;
    p = s->profile;
    memset(&s->profile, 0, sizeof s->profile);
    return p;
}

us_solver_counts us_sim_get_solver_counts(const us_sim *s) {
    us_solver_counts out = {0};
    if (!s || !s->contacts) return out;
    const usi_contacts *c = s->contacts;
    // In the order of usi_fallback.
    int64_t *by[USI_N_FALLBACK] = {&out.n_lagged, &out.n_hardened, &out.n_shortened, &out.n_swept,
                                   &out.n_compliant};
    out.n_island = c->n_solve;
    out.n_iteration = c->n_iteration;
    for (int k = 0; k < USI_N_FALLBACK; k++)
        *by[k] = c->n_fallback_by[k];
    return out;
}

us_paging us_sim_get_paging(const us_sim *s) {
    us_paging all = {0};
    for (int32_t i = 0; s && s->contacts && i < s->contacts->n_paged; i++) {
        int64_t n_wait;
        usi_pager_info one = usi_residency_info(s->contacts, i, &n_wait);
        all.n_wait += n_wait;
        all.n_read += one.n_read;
        all.n_drop += one.n_drop;
        all.n_resident += one.n_resident;
        all.bytes += one.bytes;
        all.memory += one.memory;
    }
    return all;
}

us_status us_sim_get_soil_contact_soil(const us_sim *s, int32_t i, us_soil *out_soil) {
    if (i < 0 || i >= us_sim_n_soil_contact(s) || !out_soil) return US_ERR_ARG;
    *out_soil = *usi_soil_contact_soil(s->contacts, &s->now.contact, &s->contacts->collide.soil_contact[i]);
    return US_OK;
}

us_pose us_sim_get_pose(const us_sim *s, us_body body) {
    const us_pose bad = {{NAN, NAN, NAN, NAN}, {NAN, NAN, NAN}};
    if (!s || body.i < 0 || body.i >= s->model->n_body) return bad;
    const us_model *m = s->model;
    us_pose X = m->body[body.i].X_NB;
    for (int32_t i = m->body[body.i].node; i >= 0; i = m->node[i].parent) {
        X = us_pose_mul(usi_node_rest(&m->node[i]),
                        us_pose_mul(usi_node_motion(&m->node[i], s->now.q + m->node[i].q), X));
    }
    X.q = us_quat_normalize(X.q);
    return X;
}

us_twist us_sim_get_twist(const us_sim *s, us_body body) {
    us_twist V = {{NAN, NAN, NAN}, {NAN, NAN, NAN}};
    if (!s || body.i < 0 || body.i >= s->model->n_body) return V;
    const usi_body *b = &s->model->body[body.i];
    if (b->node < 0) return (us_twist){{0, 0, 0}, {0, 0, 0}};
    usi_kinematics(s->dyn, s->now.q, s->now.v, NULL);
    const usi_link *k = &s->dyn->link[b->node];
    V.w = usi_v4_vec3(k->w);
    V.v = usi_v4_vec3(k->v + usi_v4_cross(k->w, usi_link_point(k, b->X_NB.p)));
    return V;
}

int32_t us_sim_n_contact(const us_sim *s) { return s ? s->now.contact.n_anchor[0] : 0; }

us_contact us_sim_get_contact(const us_sim *s, int32_t i) {
    const us_vec3 none = {NAN, NAN, NAN};
    us_contact out = {{-1}, {-1}, -1, -1, none, none, NAN, none, none, false};
    if (!s || i < 0 || i >= s->now.contact.n_anchor[0]) return out;
    const us_model *m = s->model;
    const usi_touch *t = s->now.contact.touch;
    while (i >= t->first + t->n)
        t++;
    const usi_geom *A = &m->geom[t->geom_a], *B = &m->geom[t->geom_b];
    const usi_anchor *a = &s->now.contact.anchor[i];
    us_pose X_WA = A->node < 0 ? us_pose_identity()
                               : us_pose_mul(us_sim_get_pose(s, (us_body){A->body}),
                                             us_pose_inverse(m->body[A->body].X_NB));
    us_pose X_WB = B->node < 0 ? us_pose_identity()
                               : us_pose_mul(us_sim_get_pose(s, (us_body){B->body}),
                                             us_pose_inverse(m->body[B->body].X_NB));
    us_vec3 p_A = us_pose_point(X_WA, a->p_A), p_B = us_pose_point(X_WB, a->p_B);
    out.body_a.i = A->body;
    out.body_b.i = B->body;
    out.shape_a = A->shape;
    out.shape_b = B->shape;
    out.point = us_vec3_scale(0.5, us_vec3_add(p_A, p_B));
    out.normal = us_quat_rotate(X_WA.q, a->normal);
    out.gap = us_vec3_dot(out.normal, us_vec3_sub(p_A, p_B)) - A->margin - B->margin;
    out.force = us_vec3_scale(1 / m->step, us_quat_rotate(X_WA.q, a->g));
    out.stretch = us_quat_rotate(X_WA.q, a->xi);
    out.is_sliding = a->is_sliding != 0;
    return out;
}

static bool in_range(double x, double low, double high) { return x >= low && x <= high; }

bool usi_pair_is_sound(const us_pair_values *v) {
    const double max = 1e15;
    const double positive[] = {v->static_friction, v->kinetic_friction, v->viscous,
                               v->normal_static,   v->rotational,       v->assumed_mass,
                               v->reference_speed, v->stiffness,        v->damping_ratio,
                               v->torsion_radius,  v->rolling_length,   v->transition_speed};
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++) {
        if (!in_range(positive[i], 0, max)) return false;
    }
    return in_range(v->restitution, 0, 1) && v->kinetic_friction <= v->static_friction &&
           v->assumed_mass > 0 && v->reference_speed > 0;
}

us_status us_sim_set_pair(us_sim *s, us_material a, us_material b, const us_pair_values *v) {
    if (!s || !v || a.i < 0 || b.i < 0 || a.i >= s->model->n_material || b.i >= s->model->n_material)
        return US_ERR_ARG;
    if (!usi_pair_is_sound(v)) return US_ERR_VALUE;
    int32_t n = s->model->n_material;
    s->now.contact.pair[a.i * n + b.i] = s->now.contact.pair[b.i * n + a.i] = *v;
    const int32_t n_number = sizeof *v / sizeof(double);
    usi_report_input(s, &(usi_input){USI_INPUT_PAIR, a.i, b.i, n_number, (const double *)v});
    return US_OK;
}

us_status us_sim_get_pair(const us_sim *s, us_material a, us_material b, us_pair_values *out_values) {
    if (!s || !out_values || a.i < 0 || b.i < 0 || a.i >= s->model->n_material || b.i >= s->model->n_material)
        return US_ERR_ARG;
    *out_values = s->now.contact.pair[a.i * s->model->n_material + b.i];
    return US_OK;
}

us_status us_sim_set_state(us_sim *s, const double *q, const double *v) {
    if (!s) return US_ERR_ARG;
    const us_model *m = s->model;
    for (int32_t i = 0; q && i < m->n_q; i++) {
        if (!isfinite(q[i])) return US_ERR_VALUE;
    }
    for (int32_t i = 0; v && i < m->n_node; i++) {
        if (!isfinite(v[i])) return US_ERR_VALUE;
    }
    for (int32_t i = 0; q && i < m->n_node; i++) {
        const usi_node *n = &m->node[i];
        if (n->kind != USI_NODE_BALL && n->kind != USI_NODE_FREE) continue;
        const double *r = q + n->q;
        double n2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3];
        if (!(n2 > 1e-12 && isfinite(n2))) return US_ERR_VALUE;
    }
    if (q && m->n_q > 0) memcpy(s->now.q, q, (size_t)m->n_q * sizeof(double));
    for (int32_t i = 0; q && i < m->n_node; i++) {
        const usi_node *n = &m->node[i];
        if (n->kind != USI_NODE_BALL && n->kind != USI_NODE_FREE) continue;
        us_quat r = us_quat_normalize((us_quat){q[n->q], q[n->q + 1], q[n->q + 2], q[n->q + 3]});
        memcpy(s->now.q + n->q, &r, sizeof r);
    }
    if (v && m->n_node > 0) memcpy(s->now.v, v, (size_t)m->n_node * sizeof(double));
    s->has_last_step = false;
    // Neither the old acceleration nor what touched says anything about the new state.
    if (q) {
        s->now.contact.n_touch[0] = s->now.contact.n_anchor[0] = 0;
        usi_stiction_set(s->model, s->now.q, s->now.blockage, s->now.stuck);
    }
    usi_sim_sense(s);
    usi_carry_over(s);
    usi_let_all_run(s);
    if (!usi_accelerate_first(s, s->now.a)) memset(s->now.a, 0, (size_t)m->n_pad * sizeof(double));
    memcpy(s->now.a_before, s->now.a, (size_t)m->n_pad * sizeof(double));
    s->now.substep[0] = 0;
    usi_report_input(s, &(usi_input){.kind = USI_INPUT_STATE});
    return US_OK;
}

us_energy us_sim_get_energy(const us_sim *s) {
    us_energy bad = {NAN, NAN};
    return s ? usi_energy(s->dyn, s->now.q, s->now.v) : bad;
}

us_momentum us_sim_get_momentum(const us_sim *s) {
    us_momentum p = {NAN, {NAN, NAN, NAN}, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
    if (s) us_dyn_momentum(s->dyn, s->now.q, s->now.v, &p);
    return p;
}

double us_sim_get_closure(const us_sim *s) {
    if (!s) return NAN;
    us_dyn *d = s->dyn;
    double max = 0;
    if (s->model->n_row == 0) return 0;
    us_dyn_constraints(d, s->now.q, NULL, NULL);
    for (int32_t i = 0; i < s->model->n_row; i++)
        max = fmax(max, fabs(d->phi[i]));
    return max;
}

// ---------------------------------------------------------------- values by name

// A value's id is its kind and an index. Kinds from VALUE_LINK on are the components of a link's pose, those
// from VALUE_SOIL on what it does in soil, those from VALUE_READING on are of sensors.
enum {
    VALUE_TIME,
    VALUE_ENERGY,
    VALUE_KINETIC,
    VALUE_POTENTIAL,
    VALUE_CLOSURE,
    VALUE_Q,
    VALUE_V,
    VALUE_EFFORT,
    VALUE_LINK,
    VALUE_SOIL = VALUE_LINK + 7,
    VALUE_READING = VALUE_SOIL + 7,  // the index is a sensor's and, below SENSOR_SHIFT, that of its number
    VALUE_TRUTH,
    VALUE_SETTING,
    VALUE_KINDS
};
enum { KIND_SHIFT = 26, INDEX_MASK = (1 << KIND_SHIFT) - 1, SENSOR_SHIFT = 7 };

static int32_t value_id(int kind, int32_t index) { return (int32_t)((uint32_t)kind << KIND_SHIFT) | index; }

// "q", "v", "q[2]": which coordinate of the joint.
static int32_t joint_value(const us_model *m, us_joint joint, const char *what) {
    us_joint_info j = us_model_get_joint(m, joint);
    bool is_q = what[0] == 'q';
    int32_t n = is_q ? j.n_q : j.n_v, k = 0;
    if (what[0] != 'q' && what[0] != 'v') return -1;
    if (what[1] == '[') {
        char *end = NULL;
        long at = strtol(what + 2, &end, 10);
        if (what[2] < '0' || what[2] > '9' || strcmp(end, "]") != 0 || at >= n) return -1;
        k = (int32_t)at;
    } else if (what[1] != 0 || n != 1) {
        return -1;
    }
    return value_id(is_q ? VALUE_Q : VALUE_V, (is_q ? j.first_q : j.first_v) + k);
}

// "force.x", "true.force.x", "set.force-noise" of a sensor.
static int32_t sensor_value(const us_model *m, int32_t sensor, const char *what) {
    const us_sensor_kind *k = m->sensor[sensor].kind;
    int kind = VALUE_READING;
    int32_t at = usi_find_reading(k, what);
    if (at < 0 && strncmp(what, "true.", 5) == 0) {
        kind = VALUE_TRUTH;
        at = usi_find_reading(k, what + 5);
    } else if (at < 0 && strncmp(what, "set.", 4) == 0) {
        kind = VALUE_SETTING;
        at = usi_find_setting(k, what + 4);
    }
    return at >= 0 ? value_id(kind, (int32_t)((uint32_t)sensor << SENSOR_SHIFT) | at) : -1;
}

// "ROBOT/SENSOR.WHAT": readings have points in their names.
static int32_t find_sensor_value(const us_model *m, const char *name) {
    const char *slash = strrchr(name, '/'), *dot = slash ? strchr(slash, '.') : NULL;
    for (int32_t i = 0; dot && i < m->n_sensor; i++) {
        const char *robot = m->robot[m->sensor[i].robot].name, *own = m->sensor[i].name;
        const size_t n = strlen(robot), n_own = strlen(own);
        if ((size_t)(slash - name) == n && memcmp(name, robot, n) == 0 &&
            (size_t)(dot - slash) == n_own + 1 && memcmp(slash + 1, own, n_own) == 0)
            return sensor_value(m, i, dot + 1);
    }
    return -1;
}

int32_t usi_find_value(const us_model *m, const char *name) {
    static const char *const whole[] = {"time", "energy", "energy.kinetic", "energy.potential", "closure"};
    static const char *const pose[] = {"qw", "qx", "qy", "qz", "x", "y", "z"};
    static const char *const soil[] = {"sinkage", "slip", "slip-angle", "pull", "side", "load", "moment"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(name, whole[i]) == 0) return value_id(i, 0);
    }
    char head[256];
    const char *dot = strrchr(name, '.');
    if (!dot || (size_t)(dot - name) >= sizeof head) return -1;
    snprintf(head, sizeof head, "%.*s", (int)(dot - name), name);
    us_joint joint = us_model_find_joint(m, head);
    if (joint.i >= 0 && joint_value(m, joint, dot + 1) >= 0) return joint_value(m, joint, dot + 1);
    us_drive drive = us_model_find_drive(m, head);
    if (drive.i >= 0 && strcmp(dot + 1, "torque") == 0) return value_id(VALUE_EFFORT, drive.i);
    us_body body = us_model_find_body(m, head);
    for (int k = 0; body.i >= 0 && k < 7; k++) {
        if (strcmp(dot + 1, pose[k]) == 0) return value_id(VALUE_LINK + k, body.i);
        if (strcmp(dot + 1, soil[k]) == 0) return value_id(VALUE_SOIL + k, body.i);
    }
    return find_sensor_value(m, name);
}

int32_t us_sim_find_value(const us_sim *s, const char *name) {
    return s && name ? usi_find_value(s->model, name) : -1;
}

// What a link did in soil in the last step: of a wheel all, of a foot how deep its deepest corner is and what
// it carries. 0 where it is in none.
static double soil_value(const us_sim *s, int32_t body, int part) {
    double value[7] = {0};
    for (int32_t i = 0; i < us_sim_n_soil_contact(s); i++) {
        us_soil_contact k = us_sim_get_soil_contact(s, i);
        if (k.body.i != body) continue;
        value[0] = fmax(value[0], k.sinkage);
        value[5] += k.force.z;
        if (k.is_wheel) {
            value[1] = k.slip;
            value[2] = k.slip_angle;
            value[3] += k.force.x;
            value[4] += k.force.y;
            value[6] += k.moment;
        }
    }
    return value[part];
}

static double sensor_number(const us_sim *s, int kind, int32_t index) {
    const int32_t i = index >> SENSOR_SHIFT, at = index & ((1 << SENSOR_SHIFT) - 1);
    if (i >= s->model->n_sensor) return NAN;
    const usi_sensor *k = &s->model->sensor[i];
    if (kind == VALUE_SETTING) return usi_sim_setting(s, i, at);
    if (at >= k->kind->n_reading) return NAN;
    return kind == VALUE_READING ? usi_sim_reading(s, i)[at]
                                 : s->now.sensor_part[usi_sensor_part_at(k, USI_SENSOR_TRUTH) + at];
}

double us_sim_get_value(const us_sim *s, int32_t id) {
    if (!s || id < 0) return NAN;
    int kind = id >> KIND_SHIFT;
    int32_t i = id & INDEX_MASK;
    const us_model *m = s->model;
    us_energy e = {NAN, NAN};
    if (kind >= VALUE_ENERGY && kind <= VALUE_POTENTIAL) e = us_sim_get_energy(s);
    switch (kind) {
    case VALUE_TIME:
        return us_sim_get_time(s);
    case VALUE_ENERGY:
        return e.kinetic + e.potential;
    case VALUE_KINETIC:
        return e.kinetic;
    case VALUE_POTENTIAL:
        return e.potential;
    case VALUE_CLOSURE:
        return us_sim_get_closure(s);
    case VALUE_Q:
        return i < m->n_q ? s->now.q[i] : NAN;
    case VALUE_V:
        return i < m->n_node ? s->now.v[i] : NAN;
    case VALUE_EFFORT:
        return i < m->n_drive ? s->now.drive_effort[i] : NAN;
    default:
        break;
    }
    if (kind >= VALUE_KINDS) return NAN;
    if (kind >= VALUE_READING) return sensor_number(s, kind, i);
    if (kind >= VALUE_SOIL) return soil_value(s, i, kind - VALUE_SOIL);
    us_pose X = us_sim_get_pose(s, (us_body){i});
    const double pose[7] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z};
    return pose[kind - VALUE_LINK];
}
