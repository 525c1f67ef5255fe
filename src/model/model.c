// Questions to a compiled model: counts, names, where a joint's coordinates are.
#include "model/model.h"

#include "geom/box_tree.h"
#include "model/robots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

us_status us_model_load(const char *path, const us_load_def *def, us_model **out_model, us_error *err) {
    us_load_def d = def ? *def : us_load_def_default();
    us_spec *spec = NULL;
    us_status status = us_spec_load(path, &d, &spec, err);
    if (!status) status = us_model_compile(spec, &d.allocator, out_model, err);
    us_spec_destroy(spec);
    return status;
}

void us_model_destroy(us_model *m) {
    if (!m) return;
    us_allocator a = m->allocator;
    for (int32_t i = 0; i < m->n_robot && m->holds_interfaces; i++)
        us_interface_release(m->robot[i].network->interface_);
    usi_box_tree_destroy(m->fixed_tree);
    usi_assets_fini(&m->assets);
    usi_release(&a, m->block, m->block_size, USI_ALIGN);
    usi_release(&a, m, sizeof *m, _Alignof(us_model));
}

int32_t usi_model_fields(const us_model *m, usi_field *out, int32_t cap, size_t *out_size) {
    const int32_t n_node = m->n_node, n_tree = m->n_tree, n_path = m->n_path, n_q = m->n_q,
                  n_joint_law = m->n_joint_law, n_friction = m->n_friction, n_actuated = m->n_actuated,
                  n_battery = m->n_battery;
    const int32_t n_body = m->n_body, n_joint = m->n_joint, n_drive = m->n_drive, n_coupling = m->n_coupling,
                  n_loop = m->n_loop, n_names = m->n_names, n_material = m->n_material,
                  n_exclusion = m->n_exclusion, n_loose = m->n_loose;
    int32_t n = 0;
    size_t size = 0;
    USI_MODEL_FIELDS(USI_FIELD_ROW)
    if (out_size) *out_size = size ? size : 1;
    return n;
}

us_pose usi_node_rest(const usi_node *n) {
    us_mat3 R = {{n->T[0][0], n->T[1][0], n->T[2][0], n->T[0][1], n->T[1][1], n->T[2][1], n->T[0][2],
                  n->T[1][2], n->T[2][2]}};
    us_pose X = {us_quat_from_matrix(R), usi_v4_vec3(n->r)};
    return X;
}

us_pose usi_node_motion(const usi_node *n, const double *q) {
    us_pose X = us_pose_identity();
    us_vec3 axis = us_vec3_make(n->axis == 0, n->axis == 1, n->axis == 2);
    switch (n->kind) {
    case USI_NODE_HINGE:
        X.q = us_quat_exp(us_vec3_scale(q[0], axis));
        break;
    case USI_NODE_SLIDE:
        X.p = us_vec3_scale(q[0], axis);
        break;
    case USI_NODE_SCREW:
        X.q = us_quat_exp(us_vec3_scale(q[0], axis));
        X.p = us_vec3_scale(n->pitch * q[0], axis);
        break;
    case USI_NODE_FREE:
        X.p = us_vec3_make(q[4], q[5], q[6]);  // and the quaternion
    // fall through
    case USI_NODE_BALL:
        X.q = us_quat_normalize((us_quat){q[0], q[1], q[2], q[3]});
        break;
    default:
        break;
    }
    return X;
}

us_model_counts us_model_get_counts(const us_model *m) {
    us_model_counts c = {0};
    if (!m) return c;
    c.n_body = m->n_body;
    c.n_joint = m->n_joint;
    c.n_drive = m->n_drive;
    c.n_battery = m->n_battery;
    c.n_q = m->n_q;
    c.n_v = m->n_node;
    c.n_node = m->n_node;
    c.n_tree = m->n_tree;
    c.n_row = m->n_row;
    c.n_geom = m->n_geom;
    c.n_material = m->n_material;
    c.model_bytes = sizeof *m + m->block_size + (size_t)m->n_geom * sizeof *m->geom;
    return c;
}

double us_model_get_step(const us_model *m) { return m ? m->step : NAN; }
us_integrator us_model_get_integrator(const us_model *m) { return m ? m->integrator : US_INTEGRATOR_COUNT; }
uint64_t us_model_hash(const us_model *m) { return m ? m->hash : 0; }
us_vec3 us_model_get_gravity(const us_model *m) { return m ? m->gravity : us_vec3_make(NAN, NAN, NAN); }
us_light us_model_get_light(const us_model *m, double time) {
    static const struct {
        double sun, sky;
    } usual[US_PLANET_COUNT] = {[US_PLANET_NONE] = {1000, 100},
                                [US_PLANET_EARTH] = {1000, 100},
                                [US_PLANET_MOON] = {1361, 0},
                                [US_PLANET_MARS] = {590, 120}};
    us_light out = {us_vec3_make(0.5, -0.5, sqrt(0.5)), 0, 0};
    if (!m) return out;
    const us_light_def *d = &m->sky.light;
    if (d->has_direction)
        out.direction = us_vec3_scale(1 / us_vec3_norm(d->direction), d->direction);
    else if (m->sky.planet != US_PLANET_NONE)
        out.direction = us_sky_sun(&m->sky, time);
    out.sun = d->has_sun ? d->sun : usual[m->sky.planet].sun;
    out.sky = d->has_sky ? d->sky : usual[m->sky.planet].sky;
    if (!(out.direction.z > 0)) out.sun = 0;
    return out;
}

us_sky us_model_get_sky(const us_model *m) { return m ? m->sky : (us_sky){.planet = US_PLANET_NONE}; }

static int32_t find(const us_model *m, const int32_t *starts, int32_t n, const char *name) {
    if (!m || !name) return -1;
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(m->names + starts[i], name) == 0) return i;
    }
    return -1;
}
us_body us_model_find_body(const us_model *m, const char *name) {
    return (us_body){m ? find(m, m->body_name, m->n_body, name) : -1};
}
us_joint us_model_find_joint(const us_model *m, const char *name) {
    return (us_joint){m ? find(m, m->joint_name, m->n_joint, name) : -1};
}
us_drive us_model_find_drive(const us_model *m, const char *name) {
    return (us_drive){m ? find(m, m->drive_name, m->n_drive, name) : -1};
}

us_material us_model_find_material(const us_model *m, const char *name) {
    return (us_material){m ? find(m, m->material_name, m->n_material, name) : -1};
}

static bool in(int32_t i, int32_t n) { return i >= 0 && i < n; }
const char *us_model_body_name(const us_model *m, us_body b) {
    return m && in(b.i, m->n_body) ? m->names + m->body_name[b.i] : NULL;
}
const char *us_model_joint_name(const us_model *m, us_joint j) {
    return m && in(j.i, m->n_joint) ? m->names + m->joint_name[j.i] : NULL;
}
const char *us_model_drive_name(const us_model *m, us_drive d) {
    return m && in(d.i, m->n_drive) ? m->names + m->drive_name[d.i] : NULL;
}
const char *us_model_material_name(const us_model *m, us_material a) {
    return m && in(a.i, m->n_material) ? m->names + m->material_name[a.i] : NULL;
}
const us_property *us_model_find_property(const us_model *m, us_material a, const char *key) {
    if (!m || !in(a.i, m->n_material) || !key) return NULL;
    const us_material_def *d = &m->material[a.i];
    for (int32_t i = 0; i < d->n_property; i++) {
        if (strcmp(d->properties[i].key, key) == 0) return &d->properties[i];
    }
    return NULL;
}

us_joint_info us_model_get_joint(const us_model *m, us_joint j) {
    us_joint_info info = {US_JOINT_COUNT, {-1}, {-1}, 0, 0, 0, 0};
    if (!m || !in(j.i, m->n_joint)) return info;
    const usi_joint *k = &m->joint[j.i];
    info.type = (us_joint_type)k->type;
    info.parent.i = k->parent;
    info.child.i = k->child;
    info.first_q = k->first_q;
    info.n_q = k->n_q;
    info.first_v = k->first_v;
    info.n_v = k->n_v;
    return info;
}

us_inertia us_model_get_inertia(const us_model *m, us_body b) {
    us_inertia none = {NAN, {NAN, NAN, NAN}, {NAN, NAN, NAN, NAN, NAN, NAN}};
    return m && in(b.i, m->n_body) ? m->body[b.i].inertia : none;
}

us_joint us_model_get_drive_joint(const us_model *m, us_drive d) {
    return (us_joint){m && in(d.i, m->n_drive) ? m->drive[d.i].joint : -1};
}

int32_t us_model_n_warning(const us_model *m) { return m ? m->n_warning : 0; }
const us_error *us_model_view_warning(const us_model *m, int32_t i) {
    return m && in(i, m->n_warning) ? &m->warning[i] : NULL;
}

us_joint us_model_get_parent_joint(const us_model *m, us_body b) {
    return (us_joint){m && in(b.i, m->n_body) ? m->body[b.i].joint : -1};
}
us_body us_model_get_parent(const us_model *m, us_body b) {
    us_joint j = us_model_get_parent_joint(m, b);
    return (us_body){j.i >= 0 ? m->joint[j.i].parent : -1};
}

us_limits us_model_get_limits(const us_model *m, us_joint j) {
    if (!m || !in(j.i, m->n_joint)) return (us_limits){NAN, NAN};
    const usi_joint *k = &m->joint[j.i];
    for (int32_t t = 0; t < m->n_actuated && k->n_v == 1; t++) {
        const int32_t *first = m->actuated[t].first;
        for (int32_t i = first[USI_LAW_LIMIT]; i < first[USI_LAW_LIMIT + 1]; i++) {
            const usi_joint_law *law = &m->joint_law[i];
            if (law->v == k->first_v) return (us_limits){law->lower, law->upper};
        }
    }
    return (us_limits){-INFINITY, INFINITY};
}

us_drive_info us_model_get_drive(const us_model *m, us_drive d) {
    us_drive_info none = {{-1}, -1, -1, NAN, NAN, NAN, NAN, NAN, NAN};
    if (!m || !in(d.i, m->n_drive)) return none;
    const usi_drive *k = &m->drive[d.i];
    return (us_drive_info){{k->joint}, k->q,        k->v,        k->kp,    k->kd,
                           k->limit,   k->position, k->velocity, k->torque};
}

double us_model_get_total_mass(const us_model *m) { return m ? m->total_mass : NAN; }

us_battery us_model_find_battery(const us_model *m, const char *robot) {
    return (us_battery){m ? find(m, m->battery_name, m->n_battery, robot) : -1};
}
const char *us_model_battery_name(const us_model *m, us_battery b) {
    return m && in(b.i, m->n_battery) ? m->names + m->battery_name[b.i] : NULL;
}
us_battery_info us_model_get_battery(const us_model *m, us_battery b) {
    if (!m || !in(b.i, m->n_battery)) return (us_battery_info){NAN, NAN, NAN};
    return (us_battery_info){m->battery[b.i].capacity, m->battery[b.i].idle, m->battery[b.i].voltage};
}
us_battery us_model_get_drive_battery(const us_model *m, us_drive d) {
    return (us_battery){m && in(d.i, m->n_drive) ? m->drive[d.i].battery : -1};
}

us_geom_info us_model_get_geom(const us_model *m, int32_t i) {
    us_geom_info none = {US_GEOM_COUNT, {-1}, {-1}, -1};
    if (!m || !in(i, m->n_geom)) return none;
    const usi_geom *g = &m->geom[i];
    return (us_geom_info){g->geom.kind, {g->body}, {g->material}, g->shape};
}

// The names of a joint's coordinates, after the dot.
static const char *coordinate_name(us_joint_type type, bool is_position, int32_t k) {
    static const char *const quat[] = {"qw", "qx", "qy", "qz", "x", "y", "z"}, *const twist[] = {"wx", "wy",
                                                                                                 "wz", "vx",
                                                                                                 "vy", "vz"};
    static const char *const cylindrical[] = {"angle", "distance"}, *const universal[] = {"1", "2"},
                             *const planar[] = {"x", "y", "angle"};
    switch (type) {
    case US_JOINT_SPHERICAL:
    case US_JOINT_FLOATING:
        return is_position ? quat[k] : twist[k];
    case US_JOINT_CYLINDRICAL:
        return cylindrical[k];
    case US_JOINT_UNIVERSAL:
        return universal[k];
    case US_JOINT_PLANAR:
        return planar[k];
    default:
        return "";
    }
}

static size_t name_of(const us_model *m, int32_t i, bool is_position, char *buf, size_t cap) {
    for (int32_t j = 0; m && j < m->n_joint; j++) {
        const usi_joint *k = &m->joint[j];
        int32_t first = is_position ? k->first_q : k->first_v, n = is_position ? k->n_q : k->n_v;
        if (i < first || i >= first + n) continue;
        const char *coordinate = coordinate_name((us_joint_type)k->type, is_position, i - first);
        return (size_t)snprintf(buf, cap, "%s%s%s", m->names + m->joint_name[j], coordinate[0] ? "." : "",
                                coordinate);
    }
    if (cap) buf[0] = 0;
    return 0;
}
size_t us_model_velocity_name(const us_model *m, int32_t i, char *buf, size_t cap) {
    return name_of(m, i, false, buf, cap);
}
size_t us_model_position_name(const us_model *m, int32_t i, char *buf, size_t cap) {
    return name_of(m, i, true, buf, cap);
}

int32_t us_model_n_field(const us_model *m) { return m ? usi_model_fields(m, NULL, 0, NULL) : 0; }

us_field_info us_model_get_field(const us_model *m, int32_t i) {
    us_field_info info = {"model", "", "", "", "", 0, 0};
    usi_field f[USI_MODEL_MAX_FIELDS];
    if (!m || i < 0 || i >= usi_model_fields(m, f, USI_MODEL_MAX_FIELDS, NULL)) return info;
    info.name = f[i].name;
    info.type = f[i].type;
    info.unit = f[i].unit;
    info.about = f[i].about;
    info.count = f[i].count;
    info.bytes = f[i].count * f[i].each;
    return info;
}
