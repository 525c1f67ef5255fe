// From the spec to robots: which joints, drives, wheels, legs and frames each has, and when its faults come.
#include "model/robots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/compile.h"
#include "model/lidars.h"
#include "spec/camera_device.h"

// What making a robot needs to see.
typedef struct maker {
    usi_build *b;
    us_model *m;
    usi_arena *arena;        // of the model
    us_pose *X_WB;           // of all links, with every joint at 0
    bool *is_off;            // of all links: come off, with a broken joint or behind one
    int32_t *drive_of;       // of all joints; -1: none
    int32_t *first, *joint;  // joints of group g: joint[first[g]] to joint[first[g + 1]]
} maker;

#define TAKE(arena, n, type) \
    ((type *)usi_arena_alloc(arena, ((size_t)(n) + 1) * sizeof(type), _Alignof(type)))

// ---------------------------------------------------------------- texts

static const char *join(usi_arena *arena, const char *a, const char *b) {
    size_t n = strlen(a) + strlen(b) + 1;
    char *text = usi_arena_alloc(arena, n, 1);
    if (text) snprintf(text, n, "%s%s", a, b);
    return text;
}

static const char *without_group(const char *name, const char *group) {
    return usi_name_without_group(name, group);
}

static us_place place_of(const usi_robot_model *r, char element[128]) {
    snprintf(element, 128, "robot \"%.100s\"", r->name);
    return (us_place){r->network->file, r->network->line, 0, element};
}

// ---------------------------------------------------------------- joints and drives

static bool has_one_coordinate(us_joint_type type) {
    return us_joint_type_n_v(type) == 1 && us_joint_type_n_q(type) == 1;
}

static void find_root(const maker *k, usi_robot_model *r, int32_t i) {
    const usi_joint *info = &k->m->joint[i];
    if (k->b->spec->joint[i].parent != US_WORLD || r->root.i >= 0) return;
    r->root.i = info->child;
    if (info->type != US_JOINT_FLOATING) return;
    r->floating.i = i;
    r->base_q = info->first_q;
    r->base_v = info->first_v;
}

static us_status make_joints(const maker *k, usi_robot_model *r, int32_t group) {
    const us_spec *s = k->b->spec;
    usi_firmware *fw = &r->firmware;
    int32_t n = k->first[group + 1] - k->first[group];
    usi_firmware_joint *joint = TAKE(k->arena, n, usi_firmware_joint);
    usi_firmware_drive *drive = TAKE(k->arena, n, usi_firmware_drive);
    usi_robot_joint *own_joint = TAKE(k->arena, n, usi_robot_joint);
    usi_robot_drive *own_drive = TAKE(k->arena, n, usi_robot_drive);
    if (!joint || !drive || !own_joint || !own_drive) return US_ERR_MEMORY;
    fw->joint = joint;
    fw->drive = drive;
    r->joint = own_joint;
    r->drive = own_drive;
    for (int32_t at = 0; at < n; at++) {
        int32_t i = k->joint[k->first[group] + at], index = k->drive_of[i];
        const us_joint_def *j = &s->joint[i];
        find_root(k, r, i);
        if (!has_one_coordinate(j->type)) continue;
        bool has_limits = j->has_limits && j->type != US_JOINT_CONTINUOUS, ok = true;
        joint[fw->n_joint] =
            (usi_firmware_joint){.name = usi_arena_text(k->arena, without_group(j->name, r->name), &ok),
                                 .drive = index >= 0 ? fw->n_drive : -1,
                                 .lower = has_limits ? j->lower : -INFINITY,
                                 .upper = has_limits ? j->upper : INFINITY,
                                 .max_speed = j->velocity};
        own_joint[fw->n_joint] = (usi_robot_joint){
            .q = k->m->joint[i].first_q, .v = k->m->joint[i].first_v, .is_lost = k->is_off[j->child]};
        if (!ok) return US_ERR_MEMORY;
        if (index >= 0) {
            const us_drive_def *d = &s->drive[index];
            own_drive[fw->n_drive] = (usi_robot_drive){.index = index, .is_broken = j->is_broken};
            drive[fw->n_drive++] = (usi_firmware_drive){.joint = fw->n_joint,
                                                        .kind = d->kp > 0   ? USI_DRIVE_BY_POSITION
                                                                : d->kd > 0 ? USI_DRIVE_BY_VELOCITY
                                                                            : USI_DRIVE_BY_TORQUE,
                                                        .rate = usi_firmware_position_rate(k->m->step)};
        }
        fw->n_joint++;
    }
    for (int32_t i = 0; i < r->network->n_motor; i++) {
        for (int32_t d = 0; d < fw->n_drive; d++) {
            if (own_drive[d].index == r->network->motors[i].drive)
                memcpy(own_drive[d].motor, r->network->motors[i].name, sizeof own_drive[d].motor);
        }
    }
    return US_OK;
}

static us_status find_broken(const maker *k, usi_robot_model *r, int32_t group) {
    const char **names = NULL;
    for (int32_t at = k->first[group]; at < k->first[group + 1]; at++) {
        const us_joint_def *j = &k->b->spec->joint[k->joint[at]];
        if (!j->is_broken) continue;
        if (!names) names = TAKE(k->arena, k->first[group + 1] - at, const char *);
        bool ok = names != NULL;
        if (ok) names[r->n_broken++] = usi_arena_text(k->arena, without_group(j->name, r->name), &ok);
        if (!ok) return US_ERR_MEMORY;
    }
    r->broken = names;
    return US_OK;
}

// ---------------------------------------------------------------- frames

static int32_t joint_by_name(const usi_firmware *fw, const char *name) {
    for (int32_t i = 0; i < fw->n_joint; i++) {
        if (strcmp(fw->joint[i].name, name) == 0) return i;
    }
    return -1;
}

static us_status make_frame(const maker *k, const usi_robot_model *r, const us_joint_def *j,
                            usi_robot_frame *out) {
    const us_spec *s = k->b->spec;
    const char *prefix = r->network->frame_prefix;
    double length = us_vec3_norm(j->axis);
    bool is_slide = j->type == US_JOINT_PRISMATIC;
    *out = (usi_robot_frame){
        .parent = join(k->arena, prefix, without_group(s->link[j->parent].name, r->name)),
        .child = join(k->arena, prefix, without_group(s->link[j->child].name, r->name)),
        .parent_body = {j->parent},
        .child_body = {j->child},
        .X_PF = j->X_PF,
        .joint =
            has_one_coordinate(j->type) ? joint_by_name(&r->firmware, without_group(j->name, r->name)) : -1,
        .axis = length > 0 ? us_vec3_scale(1 / length, j->axis) : j->axis,
        .rotation = is_slide ? 0 : 1,
        .distance = is_slide                      ? 1
                    : j->type == US_JOINT_HELICAL ? j->pitch
                                                  : 0,
        .is_fixed = j->type == US_JOINT_FIXED,
        .is_lost = k->is_off[j->child]};
    return out->parent && out->child ? US_OK : US_ERR_MEMORY;
}

static us_status make_sensor_frame(const maker *k, const usi_robot_model *r, const us_sensor_def *d,
                                   usi_robot_frame *out) {
    const char *prefix = r->network->frame_prefix;
    *out = (usi_robot_frame){
        .parent = join(k->arena, prefix, without_group(k->b->spec->link[d->link].name, r->name)),
        .child = join(k->arena, prefix, d->name),
        .parent_body = {d->link},
        .child_body = {-1},
        .X_PF = d->X_BS,
        .joint = -1,
        .is_fixed = true};
    return out->parent && out->child ? US_OK : US_ERR_MEMORY;
}

// The optical frame of a camera, in which its pictures are: x to the right, y down, z ahead.
static us_status make_optical_frame(const maker *k, const usi_robot_model *r, const us_sensor_def *d,
                                    usi_robot_frame *out) {
    us_status status = make_sensor_frame(k, r, d, out);
    if (status) return status;
    const us_pose X_SO = {{0.5, -0.5, 0.5, -0.5}, {0, 0, 0}};
    out->child = join(k->arena, out->child, "_optical");
    out->X_PF = us_pose_mul(d->X_BS, X_SO);
    return out->child ? US_OK : US_ERR_MEMORY;
}

static us_status make_sensor_frames(const maker *k, usi_robot_model *r, usi_robot_frame *frame) {
    us_status status = US_OK;
    for (int32_t i = 0; i < r->network->n_sensor && !status; i++) {
        const us_sensor_def *d = &r->network->sensors[i];
        const int32_t before = r->n_frame;
        if (usi_has_own_frame(d)) status = make_sensor_frame(k, r, d, &frame[r->n_frame++]);
        if (!status && usi_is_camera_def(d)) status = make_optical_frame(k, r, d, &frame[r->n_frame++]);
        r->n_fixed_frame += r->n_frame - before;
    }
    return status;
}

static us_status make_frames(const maker *k, usi_robot_model *r, int32_t group) {
    const us_spec *s = k->b->spec;
    const int32_t n = k->first[group + 1] - k->first[group] + 2 * r->network->n_sensor;
    usi_robot_frame *frame = TAKE(k->arena, n, usi_robot_frame);
    if (!frame) return US_ERR_MEMORY;
    r->frame = frame;
    for (int32_t at = k->first[group]; at < k->first[group + 1]; at++) {
        const us_joint_def *j = &s->joint[k->joint[at]];
        if (j->parent == US_WORLD) continue;
        us_status status = make_frame(k, r, j, &frame[r->n_frame]);
        if (status) return status;
        r->n_fixed_frame += frame[r->n_frame].is_fixed;
        r->n_frame++;
    }
    us_status status = make_sensor_frames(k, r, frame);
    if (status) return status;
    const char *prefix = r->network->frame_prefix;
    r->base.i = us_spec_find_link(s, r->network->base_frame);
    const char *base = without_group(r->network->base_frame, r->name);
    const char *root = r->root.i >= 0 ? without_group(s->link[r->root.i].name, r->name) : base;
    r->base_frame = join(k->arena, prefix, base);
    r->root_frame = join(k->arena, prefix, root);
    r->odom_frame = join(k->arena, prefix, "odom");
    return r->base_frame && r->root_frame && r->odom_frame ? US_OK : US_ERR_MEMORY;
}

// ---------------------------------------------------------------- wheels

static int32_t joint_of_drive(const usi_robot_model *r, int32_t drive) {
    for (int32_t k = 0; k < r->firmware.n_drive; k++) {
        if (r->drive[k].index == drive) return r->firmware.drive[k].joint;
    }
    return -1;
}

// Where the wheels stand and which direction they turn follows from the start pose of the mechanism at q = 0
// of its own joints: the rolling axis points to the left (+y) for a joint that rolls forward with a positive
// velocity, the steering axis points up.
static us_status make_wheels(const maker *k, usi_robot_model *r) {
    const us_spec *spec = k->b->spec;
    const us_pose *X_WB = k->X_WB;
    us_error *err = k->b->err;
    const us_network_def *n = r->network;
    if (n->n_wheel == 0) return US_OK;
    char element[128];
    us_place place = place_of(r, element);
    if (n->n_wheel > USI_MAX_WHEEL)
        return us_error_set(err, US_ERR_LIMIT, &place, "name at most 16 wheels", "locomotion with %d wheels",
                            (int)n->n_wheel);
    usi_firmware *fw = &r->firmware;
    usi_locomotion *l = &fw->locomotion;
    l->kind = n->locomotion == US_LOCOMOTION_SKID        ? USI_LOCOMOTION_SKID
              : n->locomotion == US_LOCOMOTION_ACKERMANN ? USI_LOCOMOTION_ACKERMANN
                                                         : USI_LOCOMOTION_ALL_WHEEL;
    l->track_scale = n->track_scale;
    l->slow_down = 10;  // it waits for wheels that are off by more than 26 degrees: rolling them would drag
                        // the rover aside
    us_pose X_BW = us_pose_inverse(X_WB[r->base.i]);
    for (int32_t i = 0; i < n->n_wheel; i++) {
        const us_wheel_def *w = &n->wheels[i];
        usi_loco_wheel *out = &l->wheel[i];
        fw->wheel_joint[i] = joint_of_drive(r, w->drive);
        fw->steer_joint[i] = w->steer >= 0 ? joint_of_drive(r, w->steer) : -1;
        if (fw->wheel_joint[i] < 0 || (w->steer >= 0 && fw->steer_joint[i] < 0))
            return us_error_set(err, US_ERR_NAME, &place, "name joints with one coordinate of this robot",
                                "wheel %d has a drive of another robot", (int)i);
        const us_joint_def *roll = us_spec_view_joint(spec, us_spec_view_drive(spec, w->drive)->joint);
        const us_joint_def *steering =
            w->steer >= 0 ? us_spec_view_joint(spec, us_spec_view_drive(spec, w->steer)->joint) : NULL;
        us_pose X_BF = us_pose_mul(us_pose_mul(X_BW, X_WB[roll->parent]), roll->X_PF);
        us_vec3 axis = us_quat_rotate(X_BF.q, roll->axis);
        *out = (usi_loco_wheel){
            .x = X_BF.p.x, .y = X_BF.p.y, .radius = w->radius, .sign = axis.y < 0 ? -1 : 1, .steer_sign = 1};
        if (steering) {
            us_pose X_BS = us_pose_mul(us_pose_mul(X_BW, X_WB[steering->parent]), steering->X_PF);
            out->is_steered = true;
            out->x = X_BS.p.x;
            out->y = X_BS.p.y;
            out->steer_sign = us_quat_rotate(X_BS.q, steering->axis).z < 0 ? -1 : 1;
            double lower = steering->has_limits ? steering->lower : -INFINITY,
                   upper = steering->has_limits ? steering->upper : INFINITY;
            out->steer_lower = out->steer_sign > 0 ? lower : -upper;
            out->steer_upper = out->steer_sign > 0 ? upper : -lower;
        }
    }
    l->n_wheel = n->n_wheel;
    return US_OK;
}

// ---------------------------------------------------------------- legs

// The sphere of a link that collides, in the base's frame at q = 0; NULL when there is none.
static const us_shape_def *find_foot(const us_spec *spec, int32_t link) {
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_shape; i++) {
        const us_shape_def *s = us_spec_view_shape(spec, i);
        if (s->link == link && s->is_collision && s->kind == US_SHAPE_SPHERE) return s;
    }
    return NULL;
}

// Measures a leg with its joints at 0, from the frames of its joints in the base's: NULL when it is built as
// a leg must be, or what is wrong with it. Parts that are off by less than a tenth of a millimetre or a
// thousandth of a radian are as they must be.
static const char *measure_leg(const us_network_def *n, const us_pose X_BF[3], const us_vec3 axis[3],
                               us_vec3 foot, usi_leg *out) {
    const double length = 1e-4, angle = 1e-3;
    us_vec3 hip = X_BF[0].p, femur = X_BF[1].p, knee = X_BF[2].p;
    if (fabs(axis[0].z) < 1 - angle * angle) return "the axis of its coxa is not vertical";
    out->heading = atan2(femur.y - hip.y, femur.x - hip.x);
    us_vec3 along = us_vec3_make(cos(out->heading), sin(out->heading), 0),
            across = us_vec3_make(-along.y, along.x, 0);
    out->coxa = us_vec3_dot(us_vec3_sub(femur, hip), along);
    if (out->coxa < length) return "its femur begins at the axis of the coxa, so that it has no direction";
    for (int i = 1; i < 3; i++) {
        if (fabs(us_vec3_dot(axis[i], across)) < 1 - angle * angle)
            return "the axes of its femur and tibia are not square to the leg and level";
    }
    us_vec3 upper = us_vec3_sub(knee, femur), lower = us_vec3_sub(foot, knee);
    double ur = us_vec3_dot(upper, along), lr = us_vec3_dot(lower, along);
    if (fabs(us_vec3_dot(us_vec3_sub(foot, femur), across)) > length)
        return "its foot is not in the plane of the leg";
    out->femur = hypot(ur, upper.z);
    out->tibia = hypot(lr, lower.z);
    if (out->femur < length || out->tibia < length) return "its femur or tibia has no length";
    out->femur_zero = atan2(upper.z, ur);
    out->tibia_zero = atan2(lower.z, lr);
    out->hip[0] = hip.x;
    out->hip[1] = hip.y;
    out->hip[2] = femur.z;
    // To the left about z is positive; upwards is against `across`, which is to the left of the leg.
    out->sign[0] = axis[0].z < 0 ? -1 : 1;
    for (int i = 1; i < 3; i++)
        out->sign[i] = us_vec3_dot(axis[i], across) < 0 ? 1 : -1;
    double stance = n->stance > 0 ? n->stance : out->coxa + out->femur;
    out->neutral[0] = hip.x + stance * along.x;
    out->neutral[1] = hip.y + stance * along.y;
    return NULL;
}

static us_status make_legs(const maker *k, usi_robot_model *r) {
    const us_spec *spec = k->b->spec;
    const us_pose *X_WB = k->X_WB;
    us_error *err = k->b->err;
    const us_network_def *n = r->network;
    char element[128];
    us_place place = place_of(r, element);
    usi_firmware *fw = &r->firmware;
    usi_gait *g = &fw->gait;
    if (n->n_leg != USI_GAIT_LEGS) return US_OK;
    *g = (usi_gait){.step_height = n->step_height, .period = n->step_time, .duty = n->duty};
    us_pose X_BW = us_pose_inverse(X_WB[r->base.i]);
    for (int32_t i = 0; i < n->n_leg; i++) {
        const int32_t drives[3] = {n->legs[i].coxa, n->legs[i].femur, n->legs[i].tibia};
        us_pose X_BF[3];
        us_vec3 axis[3];
        const us_joint_def *j = NULL;
        usi_leg *leg = &g->leg[i];
        for (int e = 0; e < 3; e++) {
            fw->leg_joint[i][e] = joint_of_drive(r, drives[e]);
            if (fw->leg_joint[i][e] < 0)
                return us_error_set(err, US_ERR_NAME, &place, "name joints with one coordinate of this robot",
                                    "leg %d has a drive of another robot", (int)i + 1);
            j = us_spec_view_joint(spec, us_spec_view_drive(spec, drives[e])->joint);
            if (j->parent == US_WORLD)
                return us_error_set(err, US_ERR_TREE, &place, "hang it on the body",
                                    "leg %d hangs on the world", (int)i + 1);
            X_BF[e] = us_pose_mul(us_pose_mul(X_BW, X_WB[j->parent]), j->X_PF);
            axis[e] = us_vec3_scale(1 / us_vec3_norm(j->axis), us_quat_rotate(X_BF[e].q, j->axis));
            leg->lower[e] = fw->joint[fw->leg_joint[i][e]].lower;
            leg->upper[e] = fw->joint[fw->leg_joint[i][e]].upper;
        }
        const us_shape_def *foot = find_foot(spec, j->child);
        if (!foot)
            return us_error_set(err, US_ERR_VALUE, &place, "give it a collision sphere",
                                "leg %d: the link \"%.100s\" has no round foot", (int)i + 1,
                                us_spec_view_link(spec, j->child)->name);
        const char *wrong =
            measure_leg(n, X_BF, axis, us_pose_point(us_pose_mul(X_BW, X_WB[j->child]), foot->X_BG.p), leg);
        if (wrong)
            return us_error_set(err, US_ERR_VALUE, &place, "build it as docs/scene-file.md says of <leg>",
                                "leg %d: %s", (int)i + 1, wrong);
        double ground = foot->size[0] - n->body_height, at[3] = {leg->neutral[0], leg->neutral[1], ground},
               q[3];
        if (i > 0 && fabs(ground - g->ground) > 1e-6)
            return us_error_set(err, US_ERR_VALUE, &place, "give all feet one radius",
                                "leg %d: its foot is larger or smaller than the first one", (int)i + 1);
        g->ground = ground;
        if (!usi_leg_reach(leg, at, q))
            return us_error_set(err, US_ERR_VALUE, &place, "choose another body-height or stance",
                                "leg %d does not reach the ground where it stands", (int)i + 1);
    }
    g->n_leg = n->n_leg;
    usi_gait_assign_tripods(g);
    return US_OK;
}

// ---------------------------------------------------------------- scripted faults

static int64_t ticks_of(const maker *k, double seconds) { return (int64_t)ceil(seconds / k->m->step - 1e-6); }

static us_status make_scripts(const maker *k, usi_robot_model *r) {
    const us_network_def *n = r->network;
    usi_script *script = TAKE(k->arena, n->n_fault, usi_script);
    if (!script) return US_ERR_MEMORY;
    r->script = script;
    for (int32_t i = 0; i < n->n_fault; i++) {
        const us_fault_def *f = &n->faults[i];
        usi_script *x = &script[i];
        memset(x, 0, sizeof *x);
        x->def = f;
        x->after = f->after ? usi_script_find(n->faults, i, f->after) : -1;
        x->at = ticks_of(k, f->at);
        x->duration = f->duration > 0 ? (int64_t)fmax(1, (double)ticks_of(k, f->duration)) : 0;
        snprintf(x->undo, sizeof x->undo, "%.*s=ok", (int)strcspn(f->what, "="), f->what);
        us_status status =
            f->when ? usi_condition_read(k->b->spec, n, f->when, &x->condition, k->b->err) : US_OK;
        if (status) return status;
    }
    r->n_script = n->n_fault;
    return US_OK;
}

// ---------------------------------------------------------------- what all robots share

// Joints group by group, and the drive of each.
static us_status sort_joints(maker *k) {
    const us_spec *s = k->b->spec;
    usi_arena *arena = &k->b->arena;
    k->drive_of = TAKE(arena, s->n_joint, int32_t);
    k->first = TAKE(arena, s->n_group + 1, int32_t);
    k->joint = TAKE(arena, s->n_joint, int32_t);
    int32_t *next = TAKE(arena, s->n_group + 1, int32_t);
    if (!k->drive_of || !k->first || !k->joint || !next) return US_ERR_MEMORY;
    for (int32_t i = 0; i < s->n_joint; i++)
        k->drive_of[i] = -1;
    for (int32_t i = s->n_drive - 1; i >= 0; i--)
        k->drive_of[s->drive[i].joint] = i;
    // Counted, then each group's joints behind those of the groups before it.
    memset(k->first, 0, ((size_t)s->n_group + 2) * sizeof *k->first);
    for (int32_t i = 0; i < s->n_joint; i++) {
        if (s->joint[i].group >= 0) k->first[s->joint[i].group + 1]++;
    }
    for (int32_t g = 0; g < s->n_group; g++)
        k->first[g + 1] += k->first[g];
    memcpy(next, k->first, ((size_t)s->n_group + 1) * sizeof *next);
    for (int32_t i = 0; i < s->n_joint; i++) {
        if (s->joint[i].group >= 0) k->joint[next[s->joint[i].group]++] = i;
    }
    return US_OK;
}

// Poses of all links with every joint at 0, and which have come off: those of broken joints, and all that
// hangs on them. A robot that has broken off its mount has all its links.
static us_status place_links(maker *k) {
    const us_spec *s = k->b->spec;
    us_pose *X = k->X_WB = TAKE(&k->b->arena, s->n_link, us_pose);
    bool *is_off = k->is_off = TAKE(&k->b->arena, s->n_link, bool);
    bool *is_known = TAKE(&k->b->arena, s->n_link, bool);
    if (!X || !is_off || !is_known) return US_ERR_MEMORY;
    for (int32_t i = 0; i < s->n_link; i++) {
        X[i] = us_pose_identity();
        is_off[i] = is_known[i] = false;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < s->n_joint; i++) {
            const us_joint_def *j = &s->joint[i];
            if (is_known[j->child] || (j->parent != US_WORLD && !is_known[j->parent])) continue;
            X[j->child] = j->parent == US_WORLD ? j->X_PF : us_pose_mul(X[j->parent], j->X_PF);
            is_off[j->child] = j->parent != US_WORLD && (j->is_broken || is_off[j->parent]);
            is_known[j->child] = changed = true;
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- all

static us_status make_robot(const maker *k, usi_robot_model *r, int32_t group) {
    const us_group_def *g = us_spec_view_group(k->b->spec, group);
    bool ok = true, is_named = true;
    memset(r, 0, sizeof *r);
    r->name = usi_arena_text(k->arena, g->name ? g->name : "", &is_named);
    r->file = usi_arena_text(k->arena, g->file, &ok);
    r->network = usi_network_copy(k->arena, us_spec_view_network(k->b->spec, group));
    if (!ok || !is_named || !r->network) return US_ERR_MEMORY;
    r->root.i = r->floating.i = -1;
    r->battery.i = usi_build_battery_of(k->b, group);
    r->firmware = (usi_firmware){.step = k->m->step,
                                 .timeout = r->network->timeout,
                                 .max_speed = r->network->max_speed,
                                 .max_turn = r->network->max_turn,
                                 .max_acceleration = r->network->max_acceleration,
                                 .releases_drives = r->network->lets_go};
    us_status status = make_joints(k, r, group);
    if (!status) status = find_broken(k, r, group);
    if (!status) status = make_frames(k, r, group);
    if (!status && r->root.i >= 0) status = make_wheels(k, r);
    if (!status && r->root.i >= 0) status = make_legs(k, r);
    if (!status) status = make_scripts(k, r);
    if (!status) usi_firmware_lay_out(&r->firmware);
    return status;
}

// ---------------------------------------------------------------- encoders

// One at each joint. A drive whose encoder is lost has lost its current too.
static us_status make_encoders(const maker *k, usi_robot_model *robot) {
    us_model *m = k->m;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_robot; i++)
        n += robot[i].firmware.n_joint;
    usi_encoder *encoder = TAKE(k->arena, n, usi_encoder);
    if (!encoder) return US_ERR_MEMORY;
    m->encoder = encoder;
    for (int32_t i = 0; i < m->n_robot; i++) {
        usi_robot_model *r = &robot[i];
        r->first_encoder = m->n_encoder;
        for (int32_t j = 0; j < r->firmware.n_joint; j++) {
            int32_t drive = r->firmware.joint[j].drive;
            if (drive >= 0 && !r->joint[j].is_lost) m->drive[r->drive[drive].index].encoder = m->n_encoder;
            encoder[m->n_encoder++] = (usi_encoder){.name = r->firmware.joint[j].name,
                                                    .q = r->joint[j].q,
                                                    .v = r->joint[j].v,
                                                    .is_lost = r->joint[j].is_lost};
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- topics

// Whether a robot has what the source needs.
static bool has_source(const usi_robot_model *r, usi_source_kind source) {
    const bool can_move = usi_firmware_can_move(&r->firmware);
    switch (source) {
    case USI_SOURCE_JOINT_STATES:
        return r->firmware.n_joint > 0;
    case USI_SOURCE_ODOM:
    case USI_SOURCE_LOCOMOTOR:
    case USI_SOURCE_POSE_ESTIMATOR:
    case USI_SOURCE_NAVIGATOR:
        return can_move;
    case USI_SOURCE_TF:
        return can_move || r->n_frame > r->n_fixed_frame;
    case USI_SOURCE_TF_STATIC:
        return r->n_fixed_frame > 0 || usi_robot_stands(r);
    case USI_SOURCE_TRUTH:
        return r->root.i >= 0;
    case USI_SOURCE_ROBOT_DESCRIPTION:
        return r->file != NULL;
    case USI_SOURCE_MOTOR_GROUP:
        return r->firmware.n_drive > 0;
    default:
        return true;
    }
}

static us_status add_topic(const maker *k, usi_robot_model *r, usi_topic *topic,
                           const us_publication_def *t) {
    const int32_t source = usi_find_source(r->network, t->source);
    const bool is_reading = usi_is_sensor_source(source);
    const us_sensor_def *def = is_reading ? usi_find_source_sensor(r->network, t->source) : NULL;
    const int32_t sensor =
        is_reading ? usi_robot_find_sensor(k->m, r, NULL, def ? def->name : t->source) : -1;
    char name[USI_TOPIC_NAME];
    bool is_good = true;
    if (t->rate <= 0 || (is_reading && sensor < 0) || !has_source(r, (usi_source_kind)source)) return US_OK;
    usi_publication_topic(r->network, t, name);
    const double max = sensor >= 0 ? k->m->sensor[sensor].rate : 0;
    topic[r->n_topic++] = (usi_topic){.name = usi_arena_text(k->arena, name, &is_good),
                                      .source = (usi_source_kind)source,
                                      .sensor = sensor,
                                      .rate = max > 0 && t->rate > max ? max : t->rate,
                                      .is_truth = source == USI_SOURCE_TRUTH};
    return is_good ? usi_build_sensor_topic(k->b, k->m, k->arena, &topic[r->n_topic - 1]) : US_ERR_MEMORY;
}

// What a perfect instrument would say, beside what each says. It is not the robot's.
static us_status add_truths(const maker *k, usi_robot_model *r, usi_topic *topic) {
    us_status status = US_OK;
    for (int32_t i = r->first_sensor; i < r->first_sensor + r->n_sensor && !status; i++) {
        const usi_sensor *s = &k->m->sensor[i];
        if (usi_sensor_is(s, "camera")) continue;
        const int32_t source = usi_find_source(r->network, s->name);
        char name[USI_TOPIC_NAME];
        bool is_good = true;
        usi_sensor_truth_topic(r->network, s->name, name);
        topic[r->n_topic++] =
            (usi_topic){.name = usi_arena_text(k->arena, name, &is_good),
                        .source = (usi_source_kind)source,
                        .sensor = i,
                        .rate = s->rate > 0 ? s->rate : usi_publication_rate(r->network, s->name),
                        .is_truth = true};
        status =
            is_good ? usi_build_sensor_topic(k->b, k->m, k->arena, &topic[r->n_topic - 1]) : US_ERR_MEMORY;
    }
    return status;
}

static us_status make_topics(const maker *k, usi_robot_model *r) {
    const us_network_def *d = r->network;
    usi_topic *topic = TAKE(k->arena, d->n_topic + r->n_sensor, usi_topic);
    us_status status = topic ? US_OK : US_ERR_MEMORY;
    r->topic = topic;
    // The truth first.
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < d->n_topic && !status; i++) {
            bool is_truth = usi_find_source(d, d->topics[i].source) == USI_SOURCE_TRUTH;
            if (is_truth == (pass == 0)) status = add_topic(k, r, topic, &d->topics[i]);
        }
        if (pass == 0 && !status) status = add_truths(k, r, topic);
    }
    return status;
}

us_status usi_build_robots(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    maker k = {.b = b, .m = m, .arena = &m->assets.arena};
    m->clock_rate = us_spec_get_clock_rate(s);
    for (int32_t i = 0; i < m->n_drive; i++)
        m->drive[i].encoder = -1;
    if (s->n_network == 0) return US_OK;
    usi_robot_model *robot = TAKE(k.arena, s->n_network, usi_robot_model);
    us_status status = robot ? place_links(&k) : US_ERR_MEMORY;
    if (!status) status = sort_joints(&k);
    m->robot = robot;
    for (int32_t g = 0; g < s->n_group && !status; g++) {
        const us_network_def *network = us_spec_view_network(s, g);
        if (!network || network->is_off) continue;
        status = make_robot(&k, &robot[m->n_robot++], g);
    }
    if (!status) status = make_encoders(&k, robot);
    if (!status) status = usi_build_sensors(b, m, robot, k.is_off);
    for (int32_t i = 0; i < m->n_robot && !status; i++) {
        status = make_topics(&k, &robot[i]);
        if (!status) status = usi_build_interface(b, m, k.arena, &robot[i]);
    }
    for (int32_t i = 0; i < m->n_robot && !status; i++)
        us_interface_keep(robot[i].network->interface_);
    m->holds_interfaces = status == US_OK;
    return status == US_ERR_MEMORY ? usi_build_out_of_memory(b) : status;
}
