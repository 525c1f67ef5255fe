// Edits of a spec: copies, removals, other shapes, other poses.
//
// An edit of a running world is made on a copy of its spec: copy, change, compile, us_sim_replace. Removing
// closes the gaps: later elements move up, and every index of them follows.
#include <string.h>

#include "spec/publication.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"

// ---------------------------------------------------------------- copy

static us_status copy_lists(const us_spec *from, us_spec *to) {
    us_status status = us_spec_set_world(to, &from->world);
    for (int32_t i = 0; i < from->n_interaction && !status; i++)
        status = us_spec_add_interaction(to, &from->interaction[i], NULL);
    for (int32_t i = 0; i < from->n_soil_law && !status; i++)
        status = us_spec_add_soil_law(to, &from->soil_law[i], NULL);
    for (int32_t i = 0; i < from->n_ground_model && !status; i++)
        status = us_spec_add_ground_model(to, &from->ground_model[i], NULL);
    for (int32_t i = 0; i < from->n_sensor_kind && !status; i++)
        status = us_spec_add_sensor_kind(to, from->sensor_kind[i], NULL);
    for (int32_t i = 0; i < from->n_group && !status; i++)
        status = us_spec_add_group(to, &from->group[i], NULL);
    for (int32_t i = 0; i < from->n_link && !status; i++)
        status = us_spec_add_link(to, &from->link[i], NULL);
    for (int32_t i = 0; i < from->n_joint && !status; i++)
        status = us_spec_add_joint(to, &from->joint[i], NULL);
    for (int32_t i = 0; i < from->n_shape && !status; i++)
        status = us_spec_add_shape(to, &from->shape[i], NULL);
    for (int32_t i = 0; i < from->n_coupling && !status; i++)
        status = us_spec_add_coupling(to, &from->coupling[i], NULL);
    for (int32_t i = 0; i < from->n_loop && !status; i++)
        status = us_spec_add_loop(to, &from->loop[i], NULL);
    for (int32_t i = 0; i < from->n_drive && !status; i++)
        status = us_spec_add_drive(to, &from->drive[i], NULL);
    for (int32_t i = 0; i < from->n_record && !status; i++)
        status = us_spec_add_record(to, &from->record[i], NULL);
    for (int32_t i = 0; i < from->n_extension && !status; i++)
        status = us_spec_add_extension(to, &from->extension[i], NULL);
    for (int32_t i = 0; i < from->n_material && !status; i++)
        status = us_spec_add_material(to, &from->material[i], NULL);
    for (int32_t i = 0; i < from->n_region && !status; i++)
        status = us_spec_add_region(to, &from->region[i], NULL);
    for (int32_t i = 0; i < from->n_soil_map && !status; i++)
        status = us_spec_add_soil_map(to, &from->soil_map[i], NULL);
    for (int32_t i = 0; i < from->n_pair && !status; i++)
        status = us_spec_add_pair(to, &from->pair[i], NULL);
    for (int32_t i = 0; i < from->n_exclude && !status; i++)
        status = us_spec_add_exclude(to, &from->exclude[i], NULL);
    for (int32_t i = 0; i < from->n_warning && !status; i++)
        status = us_spec_add_warning(to, &from->warning[i]);
    for (int32_t i = 0; i < from->n_network && !status; i++)
        status = usi_network_put(to, &from->network[i]);
    to->clock_rate = from->clock_rate;
    return status;
}

us_status us_spec_copy(const us_spec *spec, us_spec **out_spec) {
    if (!spec || !out_spec) return US_ERR_ARG;
    us_spec *copy = NULL;
    us_status status = us_spec_create(&spec->texts.allocator, &copy);
    if (!status) status = usi_spec_set_origin(copy, &spec->origin);
    if (!status) status = copy_lists(spec, copy);
    if (status) {
        us_spec_destroy(copy);
        return status;
    }
    *out_spec = copy;
    return US_OK;
}

// ---------------------------------------------------------------- remove

// The new index of every element, -1 for what goes.
typedef struct removal_plan {
    us_allocator allocator;
    int32_t *group, *link, *joint, *drive;
    size_t size;
} removal_plan;

static bool plan_init(removal_plan *p, const us_spec *s) {
    size_t n = (size_t)s->n_group + (size_t)s->n_link + (size_t)s->n_joint + (size_t)s->n_drive;
    p->allocator = s->texts.allocator;
    p->size = (n + 1) * sizeof(int32_t);
    p->group = usi_alloc(&p->allocator, p->size, _Alignof(int32_t));
    if (!p->group) return false;
    p->link = p->group + s->n_group;
    p->joint = p->link + s->n_link;
    p->drive = p->joint + s->n_joint;
    memset(p->group, 0, p->size);
    return true;
}
static void plan_fini(removal_plan *p) { usi_release(&p->allocator, p->group, p->size, _Alignof(int32_t)); }

static bool is_gone(const int32_t *map, int32_t n, int32_t i) { return i >= 0 && i < n && map[i] < 0; }
static int32_t moved(const int32_t *map, int32_t n, int32_t i) { return i >= 0 && i < n ? map[i] : i; }

// Turns marks (-1 removed, 0 kept) into indices.
static void assign_indices(int32_t *map, int32_t n) {
    for (int32_t i = 0, next = 0; i < n; i++) {
        if (map[i] >= 0) map[i] = next++;
    }
}

// Marks what depends on marked links: the links below them, with joints and drives.
static void mark_below(const us_spec *s, removal_plan *p) {
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (int32_t i = 0; i < s->n_joint; i++) {
            const us_joint_def *j = &s->joint[i];
            bool goes = p->joint[i] < 0 || is_gone(p->link, s->n_link, j->parent) ||
                        is_gone(p->link, s->n_link, j->child);
            if (!goes) continue;
            p->joint[i] = -1;
            if (j->child < 0 || j->child >= s->n_link || p->link[j->child] < 0) continue;
            p->link[j->child] = -1;
            is_more = true;
        }
    }
    for (int32_t i = 0; i < s->n_drive; i++)
        p->drive[i] = is_gone(p->joint, s->n_joint, s->drive[i].joint) ? -1 : 0;
}

// Whether a link, joint or drive that goes has this name.
static bool is_gone_name(const us_spec *s, const removal_plan *p, const char *name, size_t length) {
#define LOOK_AMONG(list)                                                                             \
    for (int32_t i = 0; i < s->n_##list; i++) {                                                      \
        const char *other = s->list[i].name;                                                         \
        if (p->list[i] < 0 && other && strlen(other) == length && strncmp(other, name, length) == 0) \
            return true;                                                                             \
    }
    LOOK_AMONG(joint)
    LOOK_AMONG(link)
    LOOK_AMONG(drive)
#undef LOOK_AMONG
    return false;
}

// A recording loses the values of what goes; without any it goes too, for a recording without names means
// everything.
static bool keep_record(const us_spec *s, const removal_plan *p, us_record_def *d) {
    if (d->n_value == 0) return true;
    const char **values;  // the spec's own copy, which may be changed
    memcpy(&values, &d->values, sizeof values);
    int32_t n = 0;
    for (int32_t i = 0; i < d->n_value; i++) {
        // "name.q"; names may contain dots: the last one counts.
        const char *dot = strrchr(values[i], '.');
        if (!dot || !is_gone_name(s, p, values[i], (size_t)(dot - values[i]))) values[n++] = values[i];
    }
    d->n_value = n;
    return n > 0;
}

static bool keep_coupling(const us_spec *s, const removal_plan *p, us_coupling_def *d) {
    if (is_gone(p->group, s->n_group, d->group)) return false;
    for (int32_t i = 0; i < d->n_term; i++) {
        if (is_gone(p->joint, s->n_joint, d->joint[i])) return false;
    }
    for (int32_t i = 0; i < d->n_term; i++)
        d->joint[i] = moved(p->joint, s->n_joint, d->joint[i]);
    d->group = moved(p->group, s->n_group, d->group);
    return true;
}

static bool keep_loop(const us_spec *s, const removal_plan *p, us_loop_def *d) {
    if (is_gone(p->group, s->n_group, d->group) || is_gone(p->link, s->n_link, d->link_a) ||
        is_gone(p->link, s->n_link, d->link_b))
        return false;
    d->link_a = moved(p->link, s->n_link, d->link_a);
    d->link_b = moved(p->link, s->n_link, d->link_b);
    d->group = moved(p->group, s->n_group, d->group);
    return true;
}

static bool keep_exclude(const us_spec *s, const removal_plan *p, us_exclude_def *d) {
    if (is_gone(p->link, s->n_link, d->link_a) || is_gone(p->link, s->n_link, d->link_b)) return false;
    d->link_a = moved(p->link, s->n_link, d->link_a);
    d->link_b = moved(p->link, s->n_link, d->link_b);
    return true;
}

static bool keep_shape(const us_spec *s, const removal_plan *p, us_shape_def *d) {
    if (is_gone(p->link, s->n_link, d->link)) return false;
    d->link = moved(p->link, s->n_link, d->link);
    return true;
}

static bool keep_extension(const us_spec *s, const removal_plan *p, us_extension_def *d) {
    if (is_gone(p->group, s->n_group, d->group) ||
        (d->reference && is_gone_name(s, p, d->reference, strlen(d->reference))))
        return false;
    d->group = moved(p->group, s->n_group, d->group);
    return true;
}

static bool keep_drive(const us_spec *s, const removal_plan *p, us_drive_def *d) {
    if (is_gone(p->joint, s->n_joint, d->joint)) return false;
    d->joint = moved(p->joint, s->n_joint, d->joint);
    return true;
}

// Joints and links that a sensor's parameters name; false: one of them goes.
static bool keep_references(const us_spec *s, const removal_plan *p, us_sensor_def *d) {
    const us_sensor_kind *k = usi_sensor_kind_of(d);
    us_sensor_setting *settings = (us_sensor_setting *)d->settings;
    for (int32_t i = 0; i < d->n_setting; i++) {
        const int32_t at = usi_find_parameter(k, settings[i].parameter), index = (int32_t)settings[i].value;
        if (at < 0 || !usi_is_reference(&k->parameters[at]) || index < 0) continue;
        const bool is_joint = k->parameters[at].type == US_PARAMETER_JOINT;
        if (is_joint ? is_gone(p->joint, s->n_joint, index) : is_gone(p->link, s->n_link, index))
            return false;
        settings[i].value = is_joint ? moved(p->joint, s->n_joint, index) : moved(p->link, s->n_link, index);
    }
    return true;
}

// A robot on the network goes with its group. It loses the wheels, legs, motors and lines whose drives go,
// and the sensors whose links go: what is left still has an interface.
static bool keep_network(const us_spec *s, const removal_plan *p, us_network_def *d) {
    if (is_gone(p->group, s->n_group, d->group)) return false;
    // The spec's own copies, which may be changed.
    us_wheel_def *wheels = (us_wheel_def *)d->wheels;
    us_motor_def *motors = (us_motor_def *)d->motors;
    us_line_def *lines = (us_line_def *)d->lines;
    us_leg_def *legs = (us_leg_def *)d->legs;
    us_sensor_def *sensors = (us_sensor_def *)d->sensors;
    us_publication_def *topics = (us_publication_def *)d->topics;
    int32_t n_wheel = 0, n_leg = 0, n_motor = 0, n_sensor = 0, n_topic = 0, n_line = 0;
    for (int32_t i = 0; i < d->n_wheel; i++) {
        us_wheel_def w = wheels[i];
        if (is_gone(p->drive, s->n_drive, w.drive)) continue;
        w.drive = moved(p->drive, s->n_drive, w.drive);
        w.steer = moved(p->drive, s->n_drive, w.steer);
        wheels[n_wheel++] = w;
    }
    for (int32_t i = 0; i < d->n_leg; i++) {
        us_leg_def l = legs[i];
        if (is_gone(p->drive, s->n_drive, l.coxa) || is_gone(p->drive, s->n_drive, l.femur) ||
            is_gone(p->drive, s->n_drive, l.tibia))
            continue;
        l.coxa = moved(p->drive, s->n_drive, l.coxa);
        l.femur = moved(p->drive, s->n_drive, l.femur);
        l.tibia = moved(p->drive, s->n_drive, l.tibia);
        legs[n_leg++] = l;
    }
    for (int32_t i = 0; i < d->n_motor; i++) {
        us_motor_def m = motors[i];
        if (is_gone(p->drive, s->n_drive, m.drive)) continue;
        m.drive = moved(p->drive, s->n_drive, m.drive);
        motors[n_motor++] = m;
    }
    for (int32_t i = 0; i < d->n_line; i++) {
        us_line_def l = lines[i];
        if (l.drive >= 0 && is_gone(p->drive, s->n_drive, l.drive)) continue;
        if (l.drive >= 0) l.drive = moved(p->drive, s->n_drive, l.drive);
        lines[n_line++] = l;
    }
    d->n_line = n_line;
    for (int32_t i = 0; i < d->n_sensor; i++) {
        us_sensor_def k = sensors[i];
        if (is_gone(p->link, s->n_link, k.link) || !keep_references(s, p, &k)) continue;
        k.link = moved(p->link, s->n_link, k.link);
        sensors[n_sensor++] = k;
    }
    d->n_sensor = n_sensor;
    for (int32_t i = 0; i < d->n_topic; i++) {
        if (usi_find_source(d, topics[i].source) >= 0) topics[n_topic++] = topics[i];
    }
    d->n_topic = n_topic;
    // A gait of six legs is none for five.
    bool is_tripod = d->locomotion == US_LOCOMOTION_TRIPOD,
         can_move = is_tripod ? n_leg == USI_LEG_COUNT : n_wheel > 0;
    d->n_wheel = n_wheel;
    d->n_leg = can_move ? n_leg : 0;
    d->n_motor = n_motor;
    if (!can_move) d->locomotion = US_LOCOMOTION_NONE;
    d->group = moved(p->group, s->n_group, d->group);
    return true;
}

// Resets the base frame of odometry to the root link where its link was removed.
static void reset_base_frames(us_spec *s) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_network; i++) {
        us_network_def *d = &s->network[i];
        if (us_spec_find_link(s, d->base_frame) < 0) {
            int32_t root = usi_group_root(s, d->group);
            if (root < 0) continue;
            d->base_frame = s->link[root].name;
        }
        s->network[n++] = *d;
    }
    s->n_network = n;
}

// Closes the gaps. Nothing here can fail. What is found by name goes first, while the names are still there.
static void carry_out(us_spec *s, const removal_plan *p) {
#define CLOSE_GAPS(list)                                                   \
    {                                                                      \
        int32_t n = 0;                                                     \
        for (int32_t i = 0; i < s->n_##list; i++) {                        \
            if (keep_##list(s, p, &s->list[i])) s->list[n++] = s->list[i]; \
        }                                                                  \
        s->n_##list = n;                                                   \
    }
    CLOSE_GAPS(record)
    CLOSE_GAPS(extension)
    CLOSE_GAPS(coupling)
    CLOSE_GAPS(loop)
    CLOSE_GAPS(exclude)
    CLOSE_GAPS(shape)
    CLOSE_GAPS(network)
    CLOSE_GAPS(drive)
#undef CLOSE_GAPS
    int32_t n_joint = 0, n_link = 0, n_group = 0;
    for (int32_t i = 0; i < s->n_joint; i++) {
        if (p->joint[i] < 0) continue;
        us_joint_def *d = &s->joint[n_joint++];
        *d = s->joint[i];
        d->parent = moved(p->link, s->n_link, d->parent);
        d->child = moved(p->link, s->n_link, d->child);
        d->group = moved(p->group, s->n_group, d->group);
    }
    for (int32_t i = 0; i < s->n_link; i++) {
        if (p->link[i] < 0) continue;
        us_link_def *d = &s->link[n_link++];
        *d = s->link[i];
        d->group = moved(p->group, s->n_group, d->group);
    }
    for (int32_t i = 0; i < s->n_group; i++) {
        if (p->group[i] >= 0) s->group[n_group++] = s->group[i];
    }
    s->n_joint = n_joint;
    s->n_link = n_link;
    s->n_group = n_group;
    reset_base_frames(s);
}

static void finish(us_spec *s, removal_plan *p) {
    mark_below(s, p);
    assign_indices(p->group, s->n_group);
    assign_indices(p->link, s->n_link);
    assign_indices(p->joint, s->n_joint);
    assign_indices(p->drive, s->n_drive);
    carry_out(s, p);
    plan_fini(p);
}

us_status us_spec_remove_link(us_spec *spec, int32_t link) {
    if (!us_spec_view_link(spec, link)) return US_ERR_ARG;
    removal_plan p;
    if (!plan_init(&p, spec)) return US_ERR_MEMORY;
    p.link[link] = -1;
    finish(spec, &p);
    return US_OK;
}

us_status us_spec_remove_group(us_spec *spec, int32_t group) {
    if (!us_spec_view_group(spec, group)) return US_ERR_ARG;
    removal_plan p;
    if (!plan_init(&p, spec)) return US_ERR_MEMORY;
    p.group[group] = -1;
    for (int32_t i = 0; i < spec->n_link; i++)
        p.link[i] = spec->link[i].group == group ? -1 : 0;
    // A joint of the group to a link of another one frees that link's whole branch: it goes too, by
    // mark_below.
    for (int32_t i = 0; i < spec->n_joint; i++)
        p.joint[i] = spec->joint[i].group == group ? -1 : 0;
    finish(spec, &p);
    return US_OK;
}

us_status us_spec_remove_shape(us_spec *spec, int32_t shape) {
    if (!us_spec_view_shape(spec, shape)) return US_ERR_ARG;
    for (int32_t i = shape + 1; i < spec->n_shape; i++)
        spec->shape[i - 1] = spec->shape[i];
    spec->n_shape--;
    return US_OK;
}

// ---------------------------------------------------------------- change

us_status us_spec_set_shape(us_spec *spec, int32_t shape, const us_shape_def *def) {
    if (!us_spec_view_shape(spec, shape) || !def) return US_ERR_ARG;
    // Added like any other, with its checks and copies, then put in its place.
    int32_t last = -1;
    us_status status = us_spec_add_shape(spec, def, &last);
    if (status) return status;
    spec->shape[shape] = spec->shape[last];
    spec->n_shape--;
    return US_OK;
}

static bool is_pose(const us_pose *X) {
    double n2 = X->q.w * X->q.w + X->q.x * X->q.x + X->q.y * X->q.y + X->q.z * X->q.z,
           sum = X->p.x + X->p.y + X->p.z;
    return n2 > 1e-12 && isfinite(n2) && isfinite(sum);
}

// The joint that holds a link on the world; NULL when the link hangs on another one or on nothing.
static us_joint_def *root_joint(us_spec *s, int32_t link) {
    for (int32_t i = 0; i < s->n_joint; i++) {
        if (s->joint[i].child == link) return s->joint[i].parent == US_WORLD ? &s->joint[i] : NULL;
    }
    return NULL;
}

static us_pose unit_pose(us_pose X) { return (us_pose){us_quat_normalize(X.q), X.p}; }

us_status us_spec_move_link(us_spec *spec, int32_t link, us_pose X_WB) {
    if (!us_spec_view_link(spec, link)) return US_ERR_ARG;
    us_joint_def *j = root_joint(spec, link);
    if (!j) return US_ERR_TREE;
    if (!is_pose(&X_WB) || !is_pose(&j->X_PF)) return US_ERR_VALUE;
    X_WB = unit_pose(X_WB);
    if (j->type != US_JOINT_FLOATING) {
        j->X_PF = X_WB;
        return US_OK;
    }
    us_pose X = us_pose_mul(us_pose_inverse(unit_pose(j->X_PF)), X_WB);
    const double q0[7] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z};
    memcpy(j->q0, q0, sizeof q0);
    return US_OK;
}

us_status us_spec_raise_link(us_spec *spec, int32_t link, double height) {
    if (!us_spec_view_link(spec, link)) return US_ERR_ARG;
    us_joint_def *j = root_joint(spec, link);
    if (!j) return US_ERR_TREE;
    if (!isfinite(height) || !is_pose(&j->X_PF)) return US_ERR_VALUE;
    if (j->type != US_JOINT_FLOATING) {
        j->X_PF.p.z += height;
        return US_OK;
    }
    // Along the world's z, as the joint's frame sees it.
    us_vec3 up = us_quat_rotate(us_quat_conj(us_quat_normalize(j->X_PF.q)), us_vec3_make(0, 0, height));
    j->q0[4] += up.x;
    j->q0[5] += up.y;
    j->q0[6] += up.z;
    return US_OK;
}

us_status us_spec_move_shape(us_spec *spec, int32_t shape, us_pose X_BG) {
    if (!us_spec_view_shape(spec, shape)) return US_ERR_ARG;
    if (!is_pose(&X_BG)) return US_ERR_VALUE;
    spec->shape[shape].X_BG = unit_pose(X_BG);
    return US_OK;
}
