// Taking over a state. First all of it is checked, then the robot is put down beside the course of time, then
// everything is set at once.
#include "proxy/adopt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"
#include "sim/sim.h"
#include "spec/xml.h"

// rad, m: a joint that is given this far beyond its limits stands at the limit; further is another robot.
static const double LIMIT_SLACK = 0.05;

// m/s, rad/s: a velocity this near to what was commanded has reached it, and differs by noise and slip.
static const double REACHED = 0.05;

typedef struct taker {
    us_proxy *p;
    us_sim *sim;
    const usi_robot *r;
    usi_robot_state *s;
    const usi_adopt *a;
    double *q, *v;  // n_q, n_v
} taker;

// ---------------------------------------------------------------- checks

static us_status find_joint(const usi_robot *r, const usi_adopt_joint *given, int32_t *out, us_error *err) {
    usi_guess guess = usi_guess_start(given->name);
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        usi_guess_offer(&guess, r->model->firmware.joint[i].name);
        if (strcmp(r->model->firmware.joint[i].name, given->name) != 0) continue;
        *out = i;
        return US_OK;
    }
    char remedy[384];
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.200s\"?"
                        : "name a joint with one coordinate; \"understudy info\" lists them",
             guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "\"%.100s\" has no joint \"%.100s\"", r->name,
                        given->name);
}

static us_status check_joints(const taker *t, us_error *err) {
    for (int32_t k = 0; k < t->a->n_joint; k++) {
        const usi_adopt_joint *given = &t->a->joint[k];
        int32_t i = -1;
        us_status status = find_joint(t->r, given, &i, err);
        if (status) return status;
        const usi_firmware_joint *j = &t->r->model->firmware.joint[i];
        if (given->q >= j->lower - LIMIT_SLACK && given->q <= j->upper + LIMIT_SLACK) continue;
        char remedy[120];
        snprintf(remedy, sizeof remedy, "write a position from %g to %g", j->lower, j->upper);
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "\"%.100s\": %g is beyond the joint's limits",
                            given->name, given->q);
    }
    return US_OK;
}

static us_status check(const taker *t, us_error *err) {
    const usi_robot *r = t->r;
    const uint32_t moving = USI_ADOPT_ODOM | USI_ADOPT_VELOCITY | USI_ADOPT_WANT | USI_ADOPT_ORIGIN;
    if ((t->a->has & moving) && (!usi_can_move(r) || r->model->floating.i < 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "leave out odom, origin, velocity and want",
                            "\"%.100s\" does not drive or walk", r->name);
    if ((t->a->has & (USI_ADOPT_VELOCITY | USI_ADOPT_ORIGIN)) && !(t->a->has & USI_ADOPT_ODOM))
        return us_error_set(err, US_ERR_VALUE, NULL, "write odom=X,Y,YAW too",
                            "without odom it is not known where \"%.100s\" moves", r->name);
    if ((t->a->has & USI_ADOPT_BATTERY) && !(r->model->network->battery_capacity > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "leave out battery", "\"%.100s\" has no battery",
                            r->name);
    return check_joints(t, err);
}

// ---------------------------------------------------------------- positions and velocities

// The odometry's frame in the world: where the base was at the start.
static void find_origin(const taker *t, double out[3]) {
    if (t->a->has & USI_ADOPT_ORIGIN) {
        memcpy(out, t->a->origin, 3 * sizeof *out);
        return;
    }
    const us_model *m = t->p->model;
    const usi_node *root = &m->node[t->r->model->base_v];
    us_pose X_WR = us_pose_mul(usi_node_rest(root), usi_node_motion(root, m->q_start + root->q));
    us_pose X_now = us_pose_mul(usi_node_rest(root), usi_node_motion(root, us_sim_view_q(t->sim) + root->q));
    us_pose X_WB =
        us_pose_mul(X_WR, us_pose_mul(us_pose_inverse(X_now), us_sim_get_pose(t->sim, t->r->model->base)));
    us_vec3 ahead = us_quat_rotate(X_WB.q, us_vec3_make(1, 0, 0));
    out[0] = X_WB.p.x;
    out[1] = X_WB.p.y;
    out[2] = atan2(ahead.y, ahead.x);
}

// With odom, joints without a drive are left to the ground.
static void set_joints(const taker *t) {
    for (int32_t k = 0; k < t->a->n_joint; k++) {
        const usi_adopt_joint *given = &t->a->joint[k];
        int32_t i = -1;
        find_joint(t->r, given, &i, NULL);
        const usi_firmware_joint *j = &t->r->model->firmware.joint[i];
        if (j->drive < 0 && (t->a->has & USI_ADOPT_ODOM)) continue;
        t->q[t->r->model->joint[i].q] = fmin(fmax(given->q, j->lower), j->upper);
        t->v[t->r->model->joint[i].v] = given->has_v ? given->v : 0;
    }
}

// The velocity of the base, carried to the root; wheels that were not given one roll along.
static void set_motion(const taker *t) {
    const usi_robot *r = t->r;
    const usi_firmware *fw = &r->model->firmware;
    const double *body = t->a->velocity;
    us_pose X_BR = us_pose_mul(us_pose_inverse(us_sim_get_pose(t->sim, r->model->base)),
                               us_sim_get_pose(t->sim, r->model->root));
    us_vec3 w_B = us_vec3_make(0, 0, body[2]),
            v_B = us_vec3_add(us_vec3_make(body[0], body[1], 0), us_vec3_cross(w_B, X_BR.p));
    us_vec3 w = us_quat_rotate(us_quat_conj(X_BR.q), w_B), v = us_quat_rotate(us_quat_conj(X_BR.q), v_B);
    const double root[6] = {w.x, w.y, w.z, v.x, v.y, v.z};
    memcpy(t->v + r->model->base_v, root, sizeof root);
    double steer[USI_MAX_WHEEL];
    usi_loco_command c;
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++)
        steer[i] = fw->steer_joint[i] >= 0 ? t->q[r->model->joint[fw->steer_joint[i]].q] : 0;
    usi_loco_to_wheels(&fw->locomotion, body, steer, steer, &c);
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        const char *wheel = fw->joint[fw->wheel_joint[i]].name;
        bool is_told = false;
        for (int32_t k = 0; k < t->a->n_joint; k++)
            is_told = is_told || (t->a->joint[k].has_v && strcmp(t->a->joint[k].name, wheel) == 0);
        if (!is_told) t->v[r->model->joint[fw->wheel_joint[i]].v] = c.speed[i];
    }
}

// Into the sim, tree by tree.
static void put(const taker *t) {
    const us_model *m = t->p->model;
    const usi_robot *r = t->r;
    int32_t last = -1;
    if (t->a->has & USI_ADOPT_ODOM) last = m->node[r->model->base_v].tree;
    for (int32_t i = last >= 0 ? -1 : 0; i < r->model->firmware.n_joint; i++) {
        int32_t tree = i < 0 ? last : m->node[r->model->joint[i].v].tree;
        if (i >= 0 && tree == last) continue;
        last = tree;
        int32_t first = m->tree[tree].first, end = m->tree[tree].end, from = m->node[first].q,
                to = end < m->n_node ? m->node[end].q : m->n_q;
        memcpy(t->sim->now.q + from, t->q + from, (size_t)(to - from) * sizeof(double));
        memcpy(t->sim->now.v + first, t->v + first, (size_t)(end - first) * sizeof(double));
        usi_sim_renew(t->sim, tree);
    }
}

// ---------------------------------------------------------------- the firmware

// Drives hold where their joints are; those of wheels and legs belong to the body's motion.
static void set_drives(const taker *t) {
    const usi_firmware *fw = &t->r->model->firmware;
    usi_drive_state *d = usi_firmware_drives(fw, usi_firmware_of(t->r, t->s));
    for (int32_t k = 0; k < fw->n_drive; k++) {
        const usi_firmware_drive *drive = &fw->drive[k];
        const usi_robot_joint *j = &t->r->model->joint[drive->joint];
        int32_t index = t->r->model->drive[k].index;
        d[k] = (usi_drive_state){.mode = USI_DRIVE_KEEP, .is_off = d[k].is_off, .v_before = t->v[j->v]};
        t->sim->now.drive_position[index] = t->q[j->q];
        t->sim->now.drive_velocity[index] = drive->kind == USI_DRIVE_BY_VELOCITY ? t->v[j->v] : 0;
        t->sim->now.drive_torque[index] = 0;
        bool is_wheel = false;
        for (int32_t i = 0; i < fw->locomotion.n_wheel; i++)
            is_wheel = is_wheel || fw->wheel_joint[i] == drive->joint;
        if (drive->kind != USI_DRIVE_BY_VELOCITY || is_wheel) continue;
        d[k].mode = USI_DRIVE_POSITION;
        d[k].value = t->q[j->q];
    }
}

// The last command, with its timeout.
static void set_want(const taker *t, usi_firmware_state *f) {
    const usi_adopt *a = t->a;
    int64_t tick = us_sim_get_tick(t->sim);
    memset(f->want, 0, sizeof f->want);
    memcpy(f->now, a->velocity, sizeof f->now);
    f->motion = USI_MOTION_STOP;
    f->motion_tick = tick;
    if (!(a->has & USI_ADOPT_WANT)) return;
    f->motion = USI_MOTION_TWIST;
    f->motion_tick = tick - llround(a->age / t->p->step);
    memcpy(f->want, a->want, sizeof f->want);
    for (int i = 0; i < 3; i++)
        f->now[i] = fabs(a->want[i] - a->velocity[i]) < REACHED ? a->want[i] : a->velocity[i];
}

// Wheels and legs as they are, and how far wheels have rolled until now: the next count finds one tick's
// distance.
static void set_locomotion(const taker *t, usi_firmware_state *f) {
    const usi_robot *r = t->r;
    const usi_firmware *fw = &r->model->firmware;
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        const usi_robot_joint *j = &r->model->joint[fw->wheel_joint[i]];
        f->wheel_q[i] = t->q[j->q] - t->v[j->v] * t->p->step;
        f->wheel_goal[i] = t->q[j->q];
        f->steer[i] = fw->steer_joint[i] >= 0 ? t->q[r->model->joint[fw->steer_joint[i]].q] : 0;
    }
    double legs[USI_GAIT_LEGS][3];
    for (int32_t i = 0; i < 3 * fw->gait.n_leg; i++)
        legs[i / 3][i % 3] = t->q[r->model->joint[fw->leg_joint[i / 3][i % 3]].q];
    f->gait.is_on = 0;
    if (fw->gait.n_leg > 0) usi_gait_observe(&fw->gait, &f->gait, (const double(*)[3])legs);
}

static void set_firmware(const taker *t) {
    const usi_robot *r = t->r;
    usi_robot_state *s = t->s;
    usi_firmware_state *f = usi_firmware_of(r, s);
    const usi_adopt *a = t->a;
    set_drives(t);
    set_want(t, f);
    f->goal = f->done = f->speed = 0;
    f->n_route = f->next_route = f->n_trajectory = 0;
    f->deadline = 0;
    f->has_end_heading = 0;
    usi_service_state *const services[] = {&f->locomotor, &f->navigator, &f->mobility, &f->function_run};
    for (int i = 0; i < 4; i++) {
        if (services[i]->state != US_ROVER_MOVING) continue;
        services[i]->state = US_ROVER_STOPPED;
        services[i]->error = US_ROVER_INTERRUPTED;
    }
    set_locomotion(t, f);
    if (a->has & USI_ADOPT_ODOM) {
        memcpy(f->odom, a->odom, sizeof f->odom);
        memcpy(f->odom_v, a->velocity, sizeof f->odom_v);
    }
    if (a->has & USI_ADOPT_BATTERY)
        us_sim_set_battery(t->sim, r->model->battery, a->battery * r->model->network->battery_capacity);
    if (a->has & USI_ADOPT_STAMP) s->stamp_offset = a->stamp - usi_time_of(t->p, us_sim_get_tick(t->sim));
}

// ---------------------------------------------------------------- all

static us_status take(taker *t, char *reply, size_t cap, us_error *err) {
    const us_model *m = t->p->model;
    memcpy(t->q, us_sim_view_q(t->sim), (size_t)m->n_q * sizeof(double));
    memcpy(t->v, us_sim_view_v(t->sim), (size_t)m->n_node * sizeof(double));
    const bool has_place = (t->a->has & USI_ADOPT_ODOM) != 0;
    double origin[3] = {0}, place[3] = {0};
    if (has_place) {
        int32_t tree = m->node[t->r->model->base_v].tree;
        for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++)
            t->v[i] = 0;
        find_origin(t, origin);
        usi_odometry_compose(origin, t->a->odom, place);
    }
    set_joints(t);
    us_status status = has_place ? usi_sim_settle(t->sim, t->r->model->base, place, t->q, err) : US_OK;
    if (status) return status;
    if (has_place) set_motion(t);
    put(t);
    // The state block may be another one than before: looked up once the sim has played.
    t->s = usi_take_state(t->r, t->sim);
    set_firmware(t);
    if (has_place)
        snprintf(reply, cap, "%s stands at %.4f, %.4f, %.4f m, heading %.4f rad", t->r->name, place[0],
                 place[1], us_sim_get_pose(t->sim, t->r->model->base).p.z, place[2]);
    return US_OK;
}

// By its name in the world, or by its namespace, which is what its network knows.
static int32_t find_robot(const us_proxy *p, const char *robot) {
    int32_t index = us_proxy_find_robot(p, robot);
    for (int32_t i = 0; i < p->n_robot && index < 0; i++) {
        if (strcmp(p->robot[i].model->network->namespace_, robot) == 0) index = i;
    }
    return index;
}

us_status usi_proxy_adopt(us_proxy *p, us_sim *sim, const char *robot, const usi_adopt *a, char *reply,
                          size_t cap, us_error *err) {
    int32_t index = find_robot(p, robot);
    if (index < 0 || usi_sim_find_plugin(sim, p) < 0) {
        usi_guess guess = usi_guess_start(robot);
        for (int32_t i = 0; i < p->n_robot; i++)
            usi_guess_offer(&guess, p->robot[i].name);
        char remedy[384];
        snprintf(remedy, sizeof remedy, guess.best ? "did you mean \"%.200s\"?" : "name a robot of the scene",
                 guess.best);
        return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no robot \"%.100s\"", robot);
    }
    const us_model *m = p->model;
    const size_t n = (size_t)m->n_q + (size_t)m->n_node;
    const usi_robot *r = &p->robot[index];
    taker t = {.p = p, .sim = sim, .r = r, .a = a};
    us_status status = check(&t, err);
    if (status) return status;
    t.q = usi_alloc(&p->allocator, n * sizeof(double), _Alignof(double));
    if (!t.q)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left to put a robot down");
    t.v = t.q + m->n_q;
    status = take(&t, reply, cap, err);
    usi_release(&p->allocator, t.q, n * sizeof(double), _Alignof(double));
    return status;
}
