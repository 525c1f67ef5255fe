// Putting a robot down: where it stands when it stands at a place.
//
// A robot that is set somewhere from outside has a place and a heading, and no height: height and tilt, and
// with them the loads on its wheels, follow from the ground. Dropped from a little above it would fall,
// bounce and roll; set a little too low it would pop up. So it is found out beside the course of time how it
// comes to rest there:
//
//     1. From rays straight down: how high the ground is under each of its shapes. A plane through those on
//     which it can stand gives a first height
//        and tilt, raised until nothing is in the ground.
//     2. The world plays on from there, without its plug-ins (no command is taken, nothing is published),
//     while the robot is held at its place and heading,
//        its driven joints stand, and so does everything else: only what touches the robot is looked for.
//        What is left free is height, tilt and joints without a drive. Whenever their motion becomes slower,
//        they have passed the middle of a swing, where the forces are in balance: there they are stopped, and
//        go on from rest. A few such stops find the balance (this is dynamic relaxation with kinetic
//        damping).
//     3. All of that is undone; what is kept is the position of the robot.
#include <math.h>
#include <string.h>

#include "contact/residency.h"
#include "sim/sim.h"

static const int32_t MAX_STEP = 1000;
static const int32_t QUIET_STEPS = 3;

// m/s, rad/s: what a step from rest leaves where forces are in balance to a twentieth of the weight, at 1 ms:
// micrometres away.
static const double QUIET = 5e-4;

// m: shapes that reach this near to the lowest one can be what it stands on.
static const double FOOT_BAND = 0.05;

// m: where the robot is let go, above the first guess.
static const double CLEARANCE = 1e-3;

// m: where rays begin over a ground without a top.
static const double SKY = 1e4;

typedef struct setting {
    us_sim *s;
    const us_model *m;
    us_body base;
    const usi_node *root;
    const usi_tree *tree;
    const double *pose;  // x, y, heading
    const double *held;  // n_q
} setting;

// ---------------------------------------------------------------- the root

static us_pose root_pose(const setting *x) {
    return us_pose_mul(usi_node_rest(x->root), usi_node_motion(x->root, x->s->now.q + x->root->q));
}

// Brings the base to X_WB by the root, the joints between being as they are.
static void set_base(const setting *x, us_pose X_WB) {
    us_pose X_BR = us_pose_mul(us_pose_inverse(us_sim_get_pose(x->s, x->base)), root_pose(x));
    us_pose X = us_pose_mul(us_pose_inverse(usi_node_rest(x->root)), us_pose_mul(X_WB, X_BR));
    us_quat q = us_quat_normalize(X.q);
    const double to[7] = {q.w, q.x, q.y, q.z, X.p.x, X.p.y, X.p.z};
    memcpy(x->s->now.q + x->root->q, to, sizeof to);
}

static us_quat about_z(double angle) { return (us_quat){cos(0.5 * angle), 0, 0, sin(0.5 * angle)}; }

static double heading(us_quat q) {
    return atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z));
}

// ---------------------------------------------------------------- the first guess

// Height of the world's own shapes at a place; -infinity where there are none.
static double ground_at(const us_model *m, double x, double y) {
    double best = -INFINITY;
    for (int32_t i = 0; i < m->n_geom; i++) {
        const usi_geom *g = &m->geom[i];
        if (g->node >= 0) continue;
        us_aabb box = us_geom_box(&g->geom, g->X_NG);
        if (box.min.x > x || box.max.x < x || box.min.y > y || box.max.y < y) continue;
        double top = box.max.z < SKY ? box.max.z + 1 : SKY;
        us_ray_hit hit =
            us_geom_ray(&g->geom, g->X_NG, us_vec3_make(x, y, top), us_vec3_make(0, 0, -1), 2 * SKY);
        if (isfinite(hit.range)) best = fmax(best, top - hit.range);
    }
    return best;
}

typedef struct foot {
    double x, y;    // m, from the base
    double bottom;  // m: its lowest point, the base level at height 0
    double rise;    // m: how high the base must be for it to touch the ground
} foot;

enum { MAX_FEET = 64 };

static int32_t find_feet(const setting *x, foot *out) {
    const us_model *m = x->m;
    int32_t n = 0, tree = x->root->tree;
    for (int32_t i = 0; i < m->n_geom && n < MAX_FEET; i++) {
        const usi_geom *g = &m->geom[i];
        if (g->node < 0 || g->tree != tree) continue;
        us_pose X_WN =
            us_pose_mul(us_sim_get_pose(x->s, (us_body){g->body}), us_pose_inverse(m->body[g->body].X_NB));
        us_aabb box = us_geom_box(&g->geom, us_pose_mul(X_WN, g->X_NG));
        double cx = 0.5 * (box.min.x + box.max.x), cy = 0.5 * (box.min.y + box.max.y),
               ground = ground_at(m, cx, cy);
        if (!isfinite(ground) || !isfinite(cx) || !isfinite(cy)) continue;
        out[n++] = (foot){cx - x->pose[0], cy - x->pose[1], box.min.z, ground - box.min.z};
    }
    return n;
}

// Ground that is paged in: the part under the robot as it stands now.
static us_status look_down(const setting *x, us_error *err) {
    const us_model *m = x->m;
    us_aabb all = {us_vec3_make(INFINITY, INFINITY, INFINITY), us_vec3_make(-INFINITY, -INFINITY, -INFINITY)};
    if (!x->s->contacts || x->s->contacts->n_paged == 0) return US_OK;
    for (int32_t i = 0; i < m->n_geom; i++) {
        const usi_geom *g = &m->geom[i];
        if (g->node < 0 || g->tree != x->root->tree) continue;
        us_pose X_WN =
            us_pose_mul(us_sim_get_pose(x->s, (us_body){g->body}), us_pose_inverse(m->body[g->body].X_NB));
        us_aabb b = us_geom_box(&g->geom, us_pose_mul(X_WN, g->X_NG));
        all.min = us_vec3_make(fmin(all.min.x, b.min.x), fmin(all.min.y, b.min.y), fmin(all.min.z, b.min.z));
        all.max = us_vec3_make(fmax(all.max.x, b.max.x), fmax(all.max.y, b.max.y), fmax(all.max.z, b.max.z));
    }
    us_status status = usi_residency_look(x->s->contacts, all);
    if (status && err) *err = x->s->contacts->residency_error;
    return status;
}

// rise = a + b x + c y through the feet by least squares; level where they do not span a plane.
static void fit_plane(const foot *f, int32_t n, double lowest, double out[3]) {
    double s[6] = {0}, t[3] = {0};
    for (int32_t i = 0; i < n; i++) {
        if (f[i].bottom > lowest + FOOT_BAND) continue;
        const double r[6] = {1, f[i].x, f[i].y, f[i].x * f[i].x, f[i].x * f[i].y, f[i].y * f[i].y};
        for (int k = 0; k < 6; k++)
            s[k] += r[k];
        t[0] += f[i].rise;
        t[1] += f[i].rise * f[i].x;
        t[2] += f[i].rise * f[i].y;
    }
    double mx = s[1] / s[0], my = s[2] / s[0], mz = t[0] / s[0];
    double xx = s[3] - s[0] * mx * mx, xy = s[4] - s[0] * mx * my, yy = s[5] - s[0] * my * my,
           xz = t[1] - s[0] * mx * mz, yz = t[2] - s[0] * my * mz;
    double det = xx * yy - xy * xy;
    bool is_plane = det > 1e-6 * xx * yy && det > 0;
    out[1] = is_plane ? (yy * xz - xy * yz) / det : 0;
    out[2] = is_plane ? (xx * yz - xy * xz) / det : 0;
    out[0] = mz - out[1] * mx - out[2] * my;
}

static us_pose level_pose(const setting *x) {
    return (us_pose){about_z(x->pose[2]), {x->pose[0], x->pose[1], 0}};
}

static bool guess(const setting *x) {
    foot feet[MAX_FEET];
    us_pose level = level_pose(x);
    set_base(x, level);
    int32_t n = find_feet(x, feet);
    double lowest = INFINITY, plane[3], up = 0;
    for (int32_t i = 0; i < n; i++)
        lowest = fmin(lowest, feet[i].bottom);
    if (n == 0) return false;
    fit_plane(feet, n, lowest, plane);
    for (int32_t i = 0; i < n; i++)
        up = fmax(up, feet[i].rise - plane[0] - plane[1] * feet[i].x - plane[2] * feet[i].y);
    // The shortest rotation from the vertical to the plane's normal.
    double length = sqrt(plane[1] * plane[1] + plane[2] * plane[2]), angle = atan(length);
    us_quat tilt = us_quat_identity();
    if (length > 1e-12) {
        double half = sin(0.5 * angle) / length;
        tilt = (us_quat){cos(0.5 * angle), half * plane[2], -half * plane[1], 0};
    }
    us_pose X_WB = {us_quat_mul(tilt, level.q), {x->pose[0], x->pose[1], plane[0] + up + CLEARANCE}};
    // What the tilt does to the heading is taken back.
    X_WB.q = us_quat_mul(about_z(x->pose[2] - heading(X_WB.q)), X_WB.q);
    set_base(x, X_WB);
    return true;
}

// ---------------------------------------------------------------- relaxation

// Back to place and heading, driven joints as told, and no velocity along either. Others have not moved.
static void hold(const setting *x) {
    us_sim *s = x->s;
    const us_model *m = x->m;
    for (int32_t i = 0; i < m->n_tree; i++) {
        const usi_tree *t = &m->tree[i];
        int32_t from = m->node[t->first].q, to = t->end < m->n_node ? m->node[t->end].q : m->n_q;
        if (t == x->tree) continue;
        memcpy(s->now.q + from, x->held + from, (size_t)(to - from) * sizeof(double));
        memset(s->now.v + t->first, 0, (size_t)(t->end - t->first) * sizeof(double));
    }
    for (int32_t i = 0; i < m->n_drive; i++) {
        const usi_drive *d = &m->drive[i];
        if (d->v < x->tree->first || d->v >= x->tree->end) continue;
        s->now.q[d->q] = x->held[d->q];
        s->now.v[d->v] = 0;
    }
    us_pose X_WB = us_sim_get_pose(s, x->base);
    X_WB.q = us_quat_mul(about_z(x->pose[2] - heading(X_WB.q)), X_WB.q);
    X_WB.p.x = x->pose[0];
    X_WB.p.y = x->pose[1];
    set_base(x, X_WB);
    double *v = s->now.v + x->tree->first;
    us_quat q = root_pose(x).q;
    us_vec3 w_W = us_quat_rotate(q, us_vec3_make(v[0], v[1], v[2])),
            v_W = us_quat_rotate(q, us_vec3_make(v[3], v[4], v[5]));
    us_vec3 w = us_quat_rotate(us_quat_conj(q), us_vec3_make(w_W.x, w_W.y, 0)),
            u = us_quat_rotate(us_quat_conj(q), us_vec3_make(0, 0, v_W.z));
    const double to[6] = {w.x, w.y, w.z, u.x, u.y, u.z};
    memcpy(v, to, sizeof to);
}

static us_status relax(const setting *x, us_error *err) {
    us_sim *s = x->s;
    double before = 0;
    int32_t n_quiet = 0;
    for (int32_t k = 0; k < MAX_STEP; k++) {
        us_status status = us_sim_step(s, NULL);
        if (status) {
            return us_error_set(err, status, NULL, "choose a place where it can stand",
                                "the robot cannot be put down at x = %.4g, y = %.4g: %.200s", x->pose[0],
                                x->pose[1], s->error.message);
        }
        hold(x);
        double energy = 0, fastest = 0;
        for (int32_t i = x->tree->first; i < x->tree->end; i++) {
            energy += s->now.v[i] * s->now.v[i];
            fastest = fmax(fastest, fabs(s->now.v[i]));
        }
        bool is_down = s->contacts && usi_is_touched(s, x->root->tree);
        n_quiet = is_down && fastest < QUIET ? n_quiet + 1 : 0;
        if (n_quiet == QUIET_STEPS) return US_OK;
        if (is_down && energy < before) {
            for (int32_t i = x->tree->first; i < x->tree->end; i++)
                s->now.v[i] = 0;
            energy = 0;
        }
        before = energy;
    }
    return us_error_set(err, US_ERR_VALUE, NULL,
                        "choose a place where it can stand, and tell its legs where they are",
                        "the robot does not come to rest at x = %.4g, y = %.4g", x->pose[0], x->pose[1]);
}

static us_status play(setting *x, double *q, us_error *err) {
    us_sim *s = x->s;
    const us_model *m = x->m;
    memcpy(s->now.q, q, (size_t)m->n_q * sizeof(double));
    for (int32_t i = x->tree->first; i < x->tree->end; i++)
        s->now.v[i] = 0;
    for (int32_t i = 0; i < m->n_drive; i++) {
        if (m->drive[i].v < x->tree->first || m->drive[i].v >= x->tree->end) continue;
        s->now.drive_position[i] = q[m->drive[i].q];
        s->now.drive_velocity[i] = s->now.drive_torque[i] = 0;
        s->now.drive_limit_scale[i] = 1;
    }
    set_base(x, level_pose(x));
    us_status status = look_down(x, err);
    if (status) return status;
    if (!guess(x)) {
        return us_error_set(err, US_ERR_VALUE, NULL, "choose a place with ground below",
                            "there is nothing to stand on at x = %.4g, y = %.4g", x->pose[0], x->pose[1]);
    }
    hold(x);
    usi_sim_renew(s, x->root->tree);
    int32_t n_plugin = s->n_plugin;
    s->n_plugin = 0;
    if (s->contacts) s->contacts->only_tree = x->root->tree + 1;
    s->is_trial = true;
    if (s->contacts) s->contacts->is_trial = true;
    status = relax(x, err);
    if (s->contacts) s->contacts->is_trial = false;
    s->is_trial = false;
    if (s->contacts) s->contacts->only_tree = 0;
    s->n_plugin = n_plugin;
    if (!status) memcpy(q, s->now.q, (size_t)m->n_q * sizeof(double));
    return status;
}

us_status usi_sim_settle(us_sim *s, us_body base, const double pose[3], double *q, us_error *err) {
    const us_model *m = s->model;
    int32_t node = base.i >= 0 && base.i < m->n_body ? m->body[base.i].node : -1;
    const usi_tree *tree = node >= 0 ? &m->tree[m->node[node].tree] : NULL;
    if (!tree || m->node[tree->first].kind != USI_NODE_FREE)
        return us_error_set(err, US_ERR_TREE, NULL, "give it a floating base",
                            "what stands on the world cannot be put down elsewhere");
    size_t length = 0;
    us_sim_save(s, NULL, 0, &length);
    void *kept = usi_alloc(&s->allocator, length, 16);
    double *held = usi_alloc(&s->allocator, (size_t)m->n_q * sizeof *held, _Alignof(double));
    us_status status = US_ERR_MEMORY;
    if (!kept || !held) {
        us_error_set(err, status, NULL, "free memory", "no memory left to put a robot down");
    } else {
        us_sim_save(s, kept, length, NULL);
        us_error before = s->error;
        memcpy(held, q, (size_t)m->n_q * sizeof *held);
        setting x = {.s = s,
                     .m = m,
                     .base = base,
                     .root = &m->node[tree->first],
                     .tree = tree,
                     .pose = pose,
                     .held = held};
        status = play(&x, q, err);
        if (us_sim_restore(s, kept, length) && !status)
            status = us_error_set(err, US_ERR_SNAPSHOT, NULL, NULL, "the state cannot be brought back");
        s->error = before;
    }
    usi_release(&s->allocator, held, (size_t)m->n_q * sizeof *held, _Alignof(double));
    usi_release(&s->allocator, kept, length, 16);
    return status;
}
