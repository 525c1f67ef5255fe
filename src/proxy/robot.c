// From the spec to robots: which joints, drives, wheels, legs and frames each has, and where its state
// stands.
#include "proxy/robot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *usi_command_name(int32_t topic) {
#define USI_COMMAND_NAME(code, name, type) name,
    static const char *const names[] = {USI_COMMAND_LIST(USI_COMMAND_NAME)};
#undef USI_COMMAND_NAME
    return topic >= 0 && topic < USI_COMMAND_COUNT ? names[topic] : NULL;
}

const us_message_type *usi_command_type(int32_t topic) {
    switch ((usi_command_topic)topic) {
#define USI_COMMAND_CASE(code, name, type) \
    case code:                             \
        return type;
        USI_COMMAND_LIST(USI_COMMAND_CASE)
#undef USI_COMMAND_CASE
    default:
        return NULL;
    }
}

// ---------------------------------------------------------------- texts

#define TAKE(p, n, type) \
    ((type *)usi_arena_alloc(&(p)->bound, ((size_t)(n) + 1) * sizeof(type), _Alignof(type)))

static const char *join(us_proxy *p, const char *a, const char *b) {
    size_t n = strlen(a) + strlen(b) + 1;
    char *text = usi_arena_alloc(&p->bound, n, 1);
    if (text) snprintf(text, n, "%s%s", a, b);
    return text;
}

// "k10/left_rocker" to "left_rocker".
static const char *without_group(const char *name, const char *group) {
    size_t n = strlen(group);
    return n > 0 && strncmp(name, group, n) == 0 && name[n] == '/' ? name + n + 1 : name;
}

// The whole file when it is a URDF; NULL when it cannot be read or is none.
static const char *read_description(us_proxy *p, const char *path) {
    if (!path) return NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    const char *found = NULL;
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = length > 0 && length < 16 << 20 ? usi_arena_alloc(&p->arena, (size_t)length + 1, 1) : NULL;
    if (text && fseek(file, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)length, file) == (size_t)length) {
        text[length] = 0;
        // A scene has its robots inside: only a file that is a robot describes one.
        if (strstr(text, "<robot") && !strstr(text, "<scene")) found = text;
    }
    fclose(file);
    return found;
}

// ---------------------------------------------------------------- joints and drives

static bool has_one_coordinate(us_joint_type type) {
    return us_joint_type_n_v(type) == 1 && us_joint_type_n_q(type) == 1;
}

static us_status make_joints(us_proxy *p, usi_robot *r, int32_t group, const bool *is_off) {
    us_spec_counts n = us_spec_get_counts(p->spec);
    usi_firmware *fw = &r->firmware;
    usi_firmware_joint *joint = TAKE(p, n.n_joint, usi_firmware_joint);
    usi_firmware_drive *drive = TAKE(p, n.n_drive, usi_firmware_drive);
    r->joint = TAKE(p, n.n_joint, usi_robot_joint);
    r->drive = TAKE(p, n.n_drive, usi_robot_drive);
    if (!joint || !drive || !r->joint || !r->drive) return US_ERR_MEMORY;
    fw->joint = joint;
    fw->drive = drive;
    for (int32_t i = 0; i < n.n_joint; i++) {
        const us_joint_def *j = us_spec_view_joint(p->spec, i);
        if (j->group != group) continue;
        us_joint_info info = us_model_get_joint(p->model, (us_joint){i});
        if (j->parent == US_WORLD && r->root.i < 0) {
            r->root = info.child;
            if (info.type == US_JOINT_FLOATING) {
                r->floating.i = i;
                r->base_q = info.first_q;
                r->base_v = info.first_v;
            }
        }
        if (!has_one_coordinate(j->type)) continue;
        usi_firmware_joint *out = &joint[fw->n_joint];
        *out = (usi_firmware_joint){.name = without_group(j->name, r->name),
                                    .drive = -1,
                                    .lower = -INFINITY,
                                    .upper = INFINITY,
                                    .max_speed = j->velocity};
        r->joint[fw->n_joint] =
            (usi_robot_joint){.q = info.first_q, .v = info.first_v, .is_lost = is_off[j->child]};
        if (j->has_limits && j->type != US_JOINT_CONTINUOUS) {
            out->lower = j->lower;
            out->upper = j->upper;
        }
        for (int32_t k = 0; k < n.n_drive; k++) {
            const us_drive_def *d = us_spec_view_drive(p->spec, k);
            if (d->joint != i) continue;
            out->drive = fw->n_drive;
            r->drive[fw->n_drive] = (usi_robot_drive){.index = k};
            drive[fw->n_drive++] = (usi_firmware_drive){.joint = fw->n_joint,
                                                        .kind = d->kp > 0   ? USI_DRIVE_BY_POSITION
                                                                : d->kd > 0 ? USI_DRIVE_BY_VELOCITY
                                                                            : USI_DRIVE_BY_TORQUE,
                                                        .rate = usi_firmware_position_rate(p->step)};
            break;
        }
        fw->n_joint++;
    }
    for (int32_t i = 0; i < r->network->n_motor; i++) {
        for (int32_t k = 0; k < r->firmware.n_drive; k++) {
            if (r->drive[k].index == r->network->motors[i].drive)
                memcpy(r->drive[k].motor, r->network->motors[i].name, sizeof r->drive[k].motor);
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- frames

static us_status make_frames(us_proxy *p, usi_robot *r, int32_t group, const bool *is_off) {
    us_spec_counts n = us_spec_get_counts(p->spec);
    r->frame =
        usi_arena_alloc(&p->bound, ((size_t)n.n_joint + 1) * sizeof *r->frame, _Alignof(usi_robot_frame));
    if (!r->frame) return US_ERR_MEMORY;
    const char *prefix = r->network->frame_prefix;
    for (int32_t i = 0; i < n.n_joint; i++) {
        const us_joint_def *j = us_spec_view_joint(p->spec, i);
        if (j->group != group || j->parent == US_WORLD) continue;
        usi_robot_frame *f = &r->frame[r->n_frame];
        f->parent_body.i = j->parent;
        f->child_body.i = j->child;
        f->parent = join(p, prefix, without_group(us_spec_view_link(p->spec, j->parent)->name, r->name));
        f->child = join(p, prefix, without_group(us_spec_view_link(p->spec, j->child)->name, r->name));
        f->X_PF = j->X_PF;
        f->is_fixed = j->type == US_JOINT_FIXED;
        f->is_lost = is_off[j->child];
        f->joint = -1;
        const char *own = without_group(j->name, r->name);
        for (int32_t k = 0; k < r->firmware.n_joint && has_one_coordinate(j->type); k++) {
            if (strcmp(r->firmware.joint[k].name, own) == 0) f->joint = k;
        }
        double length = us_vec3_norm(j->axis);
        f->axis = length > 0 ? us_vec3_scale(1 / length, j->axis) : j->axis;
        f->turn = j->type == US_JOINT_PRISMATIC ? 0 : 1;
        f->way = j->type == US_JOINT_PRISMATIC ? 1 : j->type == US_JOINT_HELICAL ? j->pitch : 0;
        if (!f->parent || !f->child) return US_ERR_MEMORY;
        r->n_frame++;
        r->n_fixed_frame += f->is_fixed;
    }
    r->base.i = us_spec_find_link(p->spec, r->network->base_frame);
    const char *base = without_group(r->network->base_frame, r->name);
    const char *root =
        r->root.i >= 0 ? without_group(us_spec_view_link(p->spec, r->root.i)->name, r->name) : base;
    r->base_frame = join(p, prefix, base);
    r->root_frame = join(p, prefix, root);
    r->odom_frame = join(p, prefix, "odom");
    return r->base_frame && r->root_frame && r->odom_frame ? US_OK : US_ERR_MEMORY;
}

// ---------------------------------------------------------------- wheels

static int32_t joint_of_drive(const usi_robot *r, int32_t drive) {
    for (int32_t k = 0; k < r->firmware.n_drive; k++) {
        if (r->drive[k].index == drive) return r->firmware.drive[k].joint;
    }
    return -1;
}

// Where the wheels stand and which way they turn follows from the start pose of the mechanism at q = 0 of its
// own joints: the rolling axis points to the left (+y) for a joint that rolls forward with a positive
// velocity, the steering axis points up.
static us_status make_wheels(us_proxy *p, usi_robot *r, const us_pose *X_WB, us_error *err) {
    const us_network_def *n = r->network;
    if (n->n_wheel == 0) return US_OK;
    char element[128];
    snprintf(element, sizeof element, "robot \"%.100s\"", r->name);
    us_place place = {n->file, n->line, 0, element};
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
        const us_joint_def *roll = us_spec_view_joint(p->spec, us_spec_view_drive(p->spec, w->drive)->joint);
        const us_joint_def *turn =
            w->steer >= 0 ? us_spec_view_joint(p->spec, us_spec_view_drive(p->spec, w->steer)->joint) : NULL;
        us_pose X_BF = us_pose_mul(us_pose_mul(X_BW, X_WB[roll->parent]), roll->X_PF);
        us_vec3 axis = us_quat_rotate(X_BF.q, roll->axis);
        *out = (usi_loco_wheel){
            .x = X_BF.p.x, .y = X_BF.p.y, .radius = w->radius, .sign = axis.y < 0 ? -1 : 1, .steer_sign = 1};
        if (turn) {
            us_pose X_BS = us_pose_mul(us_pose_mul(X_BW, X_WB[turn->parent]), turn->X_PF);
            out->is_steered = true;
            out->x = X_BS.p.x;
            out->y = X_BS.p.y;
            out->steer_sign = us_quat_rotate(X_BS.q, turn->axis).z < 0 ? -1 : 1;
            double lower = turn->has_limits ? turn->lower : -INFINITY,
                   upper = turn->has_limits ? turn->upper : INFINITY;
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

static us_status make_legs(us_proxy *p, usi_robot *r, const us_pose *X_WB, us_error *err) {
    const us_network_def *n = r->network;
    char element[128];
    snprintf(element, sizeof element, "robot \"%.100s\"", r->name);
    us_place place = {n->file, n->line, 0, element};
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
        for (int k = 0; k < 3; k++) {
            fw->leg_joint[i][k] = joint_of_drive(r, drives[k]);
            if (fw->leg_joint[i][k] < 0)
                return us_error_set(err, US_ERR_NAME, &place, "name joints with one coordinate of this robot",
                                    "leg %d has a drive of another robot", (int)i + 1);
            j = us_spec_view_joint(p->spec, us_spec_view_drive(p->spec, drives[k])->joint);
            if (j->parent == US_WORLD)
                return us_error_set(err, US_ERR_TREE, &place, "hang it on the body",
                                    "leg %d hangs on the world", (int)i + 1);
            X_BF[k] = us_pose_mul(us_pose_mul(X_BW, X_WB[j->parent]), j->X_PF);
            axis[k] = us_vec3_scale(1 / us_vec3_norm(j->axis), us_quat_rotate(X_BF[k].q, j->axis));
            leg->lower[k] = fw->joint[fw->leg_joint[i][k]].lower;
            leg->upper[k] = fw->joint[fw->leg_joint[i][k]].upper;
        }
        const us_shape_def *foot = find_foot(p->spec, j->child);
        if (!foot)
            return us_error_set(err, US_ERR_VALUE, &place, "give it a collision sphere",
                                "leg %d: the link \"%.100s\" has no round foot", (int)i + 1,
                                us_spec_view_link(p->spec, j->child)->name);
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

// Poses of all links with every joint at 0: the joints' frames alone, parents first.
static us_status zero_poses(us_proxy *p, us_pose **out) {
    us_spec_counts n = us_spec_get_counts(p->spec);
    us_pose *X = usi_arena_alloc(&p->bound, ((size_t)n.n_link + 1) * sizeof *X, _Alignof(us_pose));
    bool *known = usi_arena_alloc(&p->bound, (size_t)n.n_link + 1, 1);
    if (!X || !known) return US_ERR_MEMORY;
    for (int32_t i = 0; i < n.n_link; i++) {
        X[i] = us_pose_identity();
        known[i] = false;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < n.n_joint; i++) {
            const us_joint_def *j = us_spec_view_joint(p->spec, i);
            if (known[j->child] || (j->parent != US_WORLD && !known[j->parent])) continue;
            X[j->child] = j->parent == US_WORLD ? j->X_PF : us_pose_mul(X[j->parent], j->X_PF);
            known[j->child] = changed = true;
        }
    }
    *out = X;
    return US_OK;
}

// Links that have come off: those of broken joints, and all that hangs on them. A robot that has broken off
// its mount has all its links.
static us_status find_off(us_proxy *p, bool **out) {
    us_spec_counts n = us_spec_get_counts(p->spec);
    bool *is_off = usi_arena_alloc(&p->bound, (size_t)n.n_link + 1, 1);
    if (!is_off) return US_ERR_MEMORY;
    for (int32_t i = 0; i < n.n_link; i++)
        is_off[i] = false;
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < n.n_joint; i++) {
            const us_joint_def *j = us_spec_view_joint(p->spec, i);
            if (j->parent == US_WORLD || is_off[j->child] || !(j->is_broken || is_off[j->parent])) continue;
            is_off[j->child] = changed = true;
        }
    }
    *out = is_off;
    return US_OK;
}

// ---------------------------------------------------------------- state

static size_t align_up(size_t n) { return (n + 63) / 64 * 64; }

static void lay_out(usi_robot *r, size_t at) {
    size_t size = align_up(sizeof(usi_robot_state));
    r->state_at = at;
    r->drives_at = size;
    size = align_up(size + (size_t)r->firmware.n_drive * sizeof(usi_drive_fault));
    r->encoders_at = size;
    size = align_up(size + (size_t)r->firmware.n_joint * sizeof(usi_encoder_state));
    r->scripts_at = size;
    size = align_up(size + (size_t)r->n_script * sizeof(usi_script_state));
    r->firmware_at = size;
    size = align_up(size + r->firmware.state_size);
    r->uplink_size = usi_link_is_perfect(&r->network->uplink) ? USI_UPLINK_SPARE : USI_UPLINK_SIZE;
    r->uplink_at = size;
    size = align_up(size + r->uplink_size);
    r->state_size = size;
}

// ---------------------------------------------------------------- all

static us_status make_robot(us_proxy *p, usi_robot *r, int32_t group, const us_pose *X_WB, const bool *is_off,
                            us_error *err) {
    r->proxy = p;
    r->index = (int32_t)(r - p->robot);
    r->name = us_spec_view_group(p->spec, group)->name;
    r->network = us_spec_view_network(p->spec, group);
    r->root.i = r->floating.i = -1;
    r->firmware = (usi_firmware){.step = p->step,
                                 .timeout = r->network->timeout,
                                 .max_speed = r->network->max_speed,
                                 .max_turn = r->network->max_turn,
                                 .max_acceleration = r->network->max_acceleration,
                                 .releases_drives = r->network->lets_go};
    us_status status = make_joints(p, r, group, is_off);
    if (!status) status = make_frames(p, r, group, is_off);
    if (!status && r->root.i >= 0) status = make_wheels(p, r, X_WB, err);
    if (!status && r->root.i >= 0) status = make_legs(p, r, X_WB, err);
    if (!status) status = usi_scripts_make(p, r, err);
    if (status) return status;
    usi_firmware_lay_out(&r->firmware);
    lay_out(r, p->state_size);
    p->state_size += r->state_size;
    return US_OK;
}

us_status usi_robots_make(us_proxy *p, us_error *err) {
    int32_t n_group = us_spec_get_counts(p->spec).n_group;
    us_pose *X_WB = NULL;
    bool *is_off = NULL;
    us_status status = zero_poses(p, &X_WB);
    if (!status) status = find_off(p, &is_off);
    p->robot = usi_arena_alloc(&p->arena, ((size_t)n_group + 1) * sizeof *p->robot, _Alignof(usi_robot));
    if (!p->robot) status = US_ERR_MEMORY;
    for (int32_t i = 0; i < n_group && !status; i++) {
        const us_network_def *network = us_spec_view_network(p->spec, i);
        if (!network || network->is_off) continue;
        usi_robot *r = &p->robot[p->n_robot];
        memset(r, 0, sizeof *r);
        p->n_robot++;
        status = make_robot(p, r, i, X_WB, is_off, err);
    }
    if (status == US_ERR_MEMORY)
        us_error_set(err, status, NULL, "free memory", "no memory left for the robots' network");
    return status;
}

us_status usi_robots_equip(us_proxy *p) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        bool is_good = true;
        r->description = read_description(p, us_spec_view_group(p->spec, r->network->group)->file);
        r->name = usi_arena_text(&p->arena, r->name, &is_good);
        r->mailbox = usi_alloc(&p->allocator, sizeof *r->mailbox, _Alignof(usi_mailbox));
        if (r->mailbox) usi_mailbox_init(r->mailbox);
        if (!is_good || !r->mailbox) return US_ERR_MEMORY;
        r->downlink.head = &r->downlink_head;
        r->downlink.cap = USI_UPLINK_SIZE * (usi_link_is_perfect(&r->network->downlink) ? 4 : 16);
        r->downlink.bytes = usi_arena_alloc(&p->arena, r->downlink.cap, 8);
        if (!r->downlink.bytes) return US_ERR_MEMORY;
    }
    return US_OK;
}
