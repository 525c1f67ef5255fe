// From the spec to the model: check the whole, merge fixed joints, give every axis its node, lay out the arrays.
//
//   links and joints      world --fixed-- base --hinge-- arm --fixed-- flange --ball-- tool
//   nodes                 world ----------------[0]------------------- [1][2][3]
//   bodies                base on the world, arm and flange on node 0, tool on node 3
//
// Everything temporary lives in one arena; the model is one block whose size is known before it is allocated.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "spec/spec.h"

// Joint limits are stiff springs with critical damping: 1e5 N m/rad (N/m) holds an arm of 1000 N m within 0.01 rad and is
// stable at any step because it is implicit.
static const double STOP_STIFFNESS = 1e5;
// Dry friction gives way at this speed, rad/s or m/s: below it a joint under load creeps.
static const double STICK_SPEED = 1e-4;
// The rotor inertia given to a joint that would have none at all, so that its acceleration is defined. kg m^2 or kg.
static const double LEAST_ARMATURE = 1e-4;

typedef struct build {
    us_spec *spec;
    us_error *err;
    usi_arena arena;
    usi_node *node;       // n_node
    us_inertia *inertia;  // per node, in node axes
    int32_t n_node, n_q, n_tree;
    int32_t *joint_of_link;           // the joint above each link
    int32_t *first_child, *next;      // joints below a link (index link + 1, 0 is the world), and the next sibling
    int32_t *order;                   // joints, parents first, depth first
    usi_body *body;
    usi_joint *joint;
    double *axis_inertia;             // per node, at the start state
} build;

static us_status fail(build *b, us_status code, const char *file, int32_t line, const char *what, const char *name, const char *remedy, const char *message) {
    char element[128];
    snprintf(element, sizeof element, "%s \"%.100s\"", what, name ? name : "");
    us_place place = {file, line, 0, element};
    return us_error_set(b->err, code, &place, remedy, "%s", message);
}
#define FAIL_JOINT(b, code, j, remedy, message) fail(b, code, (j)->file, (j)->line, "joint", (j)->name, remedy, message)
#define FAIL_LINK(b, code, l, remedy, message) fail(b, code, (l)->file, (l)->line, "link", (l)->name, remedy, message)

static us_status out_of_memory(build *b) { return us_error_set(b->err, US_ERR_MEMORY, NULL, "free memory or make the model smaller", "no memory left for the model"); }

static us_status warn_joint(build *b, const us_joint_def *j, const char *remedy, const char *message) {
    us_error warning;
    char element[128];
    snprintf(element, sizeof element, "joint \"%.100s\"", j->name);
    us_place place = {j->file, j->line, 0, element};
    us_error_set(&warning, US_OK, &place, remedy, "%s", message);
    // Once is enough: for the axes of one joint, and when the spec is compiled again.
    for (int32_t i = 0; i < b->spec->n_warning; i++) {
        if (memcmp(&b->spec->warning[i], &warning, sizeof warning) == 0) return US_OK;
    }
    us_status status = us_spec_add_warning(b->spec, &warning);
    return status ? out_of_memory(b) : US_OK;
}

static bool all_finite(const double *x, int n) {
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) return false;
    }
    return true;
}

// Long enough to be made a rotation by scaling.
static bool is_rotation(us_quat q) {
    double n2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    return n2 > 1e-12 && isfinite(n2);
}

// ---------------------------------------------------------------- checks

static us_status check_world(build *b) {
    const us_world_def *w = &b->spec->world;
    if (!(w->step > 0 && w->step <= 10)) return us_error_set(b->err, US_ERR_VALUE, NULL, "write a step in seconds above 0 and up to 10, for example 1e-3", "the step is %g s", w->step);
    if (!all_finite(&w->gravity.x, 3)) return us_error_set(b->err, US_ERR_VALUE, NULL, "write three finite numbers, for example 0 0 -9.81", "gravity is not finite");
    if (!(w->tolerance > 0 && w->tolerance < 1)) return us_error_set(b->err, US_ERR_VALUE, NULL, "write a tolerance above 0 and below 1, for example 1e-9", "the tolerance is %g", w->tolerance);
    if (!(w->duration >= 0)) return us_error_set(b->err, US_ERR_VALUE, NULL, "write a duration in seconds of 0 or more", "the duration is %g s", w->duration);
    if ((unsigned)w->integrator >= (unsigned)US_INTEGRATOR_COUNT) return us_error_set(b->err, US_ERR_ARG, NULL, "use one of us_integrator", "unknown integrator");
    return US_OK;
}

static int compare_names(const void *a, const void *b) { return strcmp(**(const char *const *const *)a, **(const char *const *const *)b); }

// Names must be there and differ. `names` point into the definitions, so that the index of the second one can be found.
static us_status check_names(build *b, const char *what, int32_t n, const char **first, size_t stride, const char *const *files, const int32_t *lines) {
    const char ***sorted = usi_arena_alloc(&b->arena, (size_t)(n + 1) * sizeof *sorted, _Alignof(char *));
    if (!sorted) return out_of_memory(b);
    for (int32_t i = 0; i < n; i++) {
        sorted[i] = (const char **)((char *)first + (size_t)i * stride);
        const char *file = *(const char *const *)((const char *)files + (size_t)i * stride);
        int32_t line = *(const int32_t *)((const char *)lines + (size_t)i * stride);
        if (!*sorted[i] || !(*sorted[i])[0]) return fail(b, US_ERR_NAME, file, line, what, "", "give it a name", "it has no name");
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare_names);
    for (int32_t i = 1; i < n; i++) {
        if (strcmp(*sorted[i - 1], *sorted[i]) != 0) continue;
        const char **later = sorted[i - 1] > sorted[i] ? sorted[i - 1] : sorted[i];
        size_t offset = (size_t)((const char *)later - (const char *)first);
        return fail(b, US_ERR_NAME, *(const char *const *)((const char *)files + offset), *(const int32_t *)((const char *)lines + offset), what, *later, "give each its own name",
                    "the name is used twice");
    }
    return US_OK;
}

// No axis may have a negative moment of inertia: all principal minors are 0 or more, but for rounding.
static bool is_inertia(const double a[6]) {
    double size = a[0] + a[1] + a[2], least = -1e-9 * size * size;
    double det = a[0] * (a[1] * a[2] - a[5] * a[5]) - a[3] * (a[3] * a[2] - a[5] * a[4]) + a[4] * (a[3] * a[5] - a[1] * a[4]);
    return a[0] * a[1] - a[3] * a[3] >= least && a[0] * a[2] - a[4] * a[4] >= least && a[1] * a[2] - a[5] * a[5] >= least && det >= least * size;
}

static us_status check_link(build *b, const us_link_def *l) {
    const us_inertia *I = &l->inertia;
    if (!isfinite(I->mass) || !all_finite(&I->com.x, 3) || !all_finite(I->about_com, 6)) {
        return FAIL_LINK(b, US_ERR_MASS, l, "write finite numbers for mass, centre of mass and inertia", "its mass properties are not finite");
    }
    if (I->mass < 0) return FAIL_LINK(b, US_ERR_MASS, l, "write a mass of 0 or more", "its mass is negative");
    if (I->about_com[0] < 0 || I->about_com[1] < 0 || I->about_com[2] < 0) return FAIL_LINK(b, US_ERR_MASS, l, "write moments of inertia of 0 or more", "a moment of inertia is negative");
    if (!is_inertia(I->about_com)) return FAIL_LINK(b, US_ERR_MASS, l, "check the products of inertia: xy squared is at most xx times yy, and so on", "its products of inertia are too large for its moments");
    return US_OK;
}

static us_status check_joint(build *b, const us_joint_def *j) {
    int32_t n_link = b->spec->n_link;
    if (j->parent < US_WORLD || j->parent >= n_link || j->child < 0 || j->child >= n_link) {
        return FAIL_JOINT(b, US_ERR_TREE, j, "name two links that exist, or the world as parent", "its parent or child is not a link");
    }
    if (j->parent == j->child) return FAIL_JOINT(b, US_ERR_TREE, j, "name two different links", "parent and child are the same link");
    if (!all_finite(&j->X_PF.q.w, 4) || !all_finite(&j->X_PF.p.x, 3) || !all_finite(&j->axis.x, 3) || !all_finite(&j->axis2.x, 3) || !all_finite(j->q0, 7) || !all_finite(j->v0, 6) ||
        !isfinite(j->pitch) || !isfinite(j->rest)) {
        return FAIL_JOINT(b, US_ERR_VALUE, j, "write finite numbers", "its frame, axis or start state is not finite");
    }
    if (!is_rotation(j->X_PF.q)) return FAIL_JOINT(b, US_ERR_VALUE, j, "write a quaternion of length 1, w first", "the quaternion of its frame is 0 or too long");
    bool has_axis = j->type != US_JOINT_FIXED && j->type != US_JOINT_SPHERICAL && j->type != US_JOINT_FLOATING;
    double axis_length = us_vec3_norm(j->axis);
    if (has_axis && !(axis_length > 1e-9 && isfinite(axis_length))) return FAIL_JOINT(b, US_ERR_VALUE, j, "write an axis such as 0 0 1", "its axis is 0 or too long");
    if (j->type == US_JOINT_UNIVERSAL) {
        double s = us_vec3_norm(us_vec3_cross(j->axis, j->axis2)), n = us_vec3_norm(j->axis) * us_vec3_norm(j->axis2);
        if (!(s > 1e-6 * n)) return FAIL_JOINT(b, US_ERR_VALUE, j, "write two axes that are not parallel, for example 1 0 0 and 0 1 0", "its two axes are parallel or 0");
    }
    if ((j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING) && !is_rotation((us_quat){j->q0[0], j->q0[1], j->q0[2], j->q0[3]})) {
        return FAIL_JOINT(b, US_ERR_VALUE, j, "write a quaternion of length 1, w first, for example 1 0 0 0", "the quaternion of its start state is 0 or too long");
    }
    const double positive[] = {j->damping, j->stiffness, j->armature, j->friction};
    for (int i = 0; i < 4; i++) {
        if (!(positive[i] >= 0 && positive[i] <= 1e15)) {
            return FAIL_JOINT(b, US_ERR_VALUE, j, "write a number of 0 or more", "its damping, stiffness, armature or friction is negative or not finite");
        }
    }
    if (j->stiffness > 0 && (j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING)) {
        return FAIL_JOINT(b, US_ERR_VALUE, j, "leave stiffness out, or use another kind of joint", "a spherical or floating joint has no spring");
    }
    if (!(j->effort >= 0) || !(j->velocity >= 0)) return FAIL_JOINT(b, US_ERR_VALUE, j, "write a number of 0 or more, 0 for no limit", "its effort or velocity limit is negative or not a number");
    if (j->has_limits && !(j->lower <= j->upper)) return FAIL_JOINT(b, US_ERR_VALUE, j, "write the lower limit first", "its lower limit is above its upper limit");
    return US_OK;
}

// ---------------------------------------------------------------- tree

static us_status sort_tree(build *b) {
    const us_spec *s = b->spec;
    int32_t n_link = s->n_link, n_joint = s->n_joint;
    b->joint_of_link = usi_arena_alloc(&b->arena, (size_t)(n_link + 1) * sizeof(int32_t), 4);
    b->first_child = usi_arena_alloc(&b->arena, (size_t)(n_link + 1) * sizeof(int32_t), 4);
    b->next = usi_arena_alloc(&b->arena, (size_t)(n_joint + 1) * sizeof(int32_t), 4);
    b->order = usi_arena_alloc(&b->arena, (size_t)(n_joint + 1) * sizeof(int32_t), 4);
    int32_t *stack = usi_arena_alloc(&b->arena, (size_t)(n_joint + 1) * sizeof(int32_t), 4);
    if (!b->joint_of_link || !b->first_child || !b->next || !b->order || !stack) return out_of_memory(b);
    for (int32_t i = 0; i <= n_link; i++) b->joint_of_link[i] = b->first_child[i] = -1;
    for (int32_t i = n_joint - 1; i >= 0; i--) {
        const us_joint_def *j = &s->joint[i];
        b->next[i] = b->first_child[j->parent + 1];
        b->first_child[j->parent + 1] = i;
    }
    for (int32_t i = 0; i < n_joint; i++) {
        const us_joint_def *j = &s->joint[i];
        if (b->joint_of_link[j->child] >= 0) {
            char message[300];
            snprintf(message, sizeof message, "link \"%.80s\" already hangs on joint \"%.80s\"", s->link[j->child].name, s->joint[b->joint_of_link[j->child]].name);
            return FAIL_JOINT(b, US_ERR_TREE, j, "let each link have one joint above it, and close loops with <loop>", message);
        }
        b->joint_of_link[j->child] = i;
    }
    // Depth first from the world, children in the order in which they were written.
    int32_t n_stack = 0, n_order = 0;
    for (int32_t i = b->first_child[0]; i >= 0; i = b->next[i]) stack[n_stack++] = i;
    for (int32_t i = 0, k = n_stack - 1; i < k; i++, k--) {
        int32_t t = stack[i];
        stack[i] = stack[k];
        stack[k] = t;
    }
    while (n_stack > 0) {
        int32_t i = stack[--n_stack], first = n_stack;
        b->order[n_order++] = i;
        for (int32_t c = b->first_child[s->joint[i].child + 1]; c >= 0; c = b->next[c]) stack[n_stack++] = c;
        for (int32_t k = n_stack - 1; first < k; first++, k--) {
            int32_t t = stack[first];
            stack[first] = stack[k];
            stack[k] = t;
        }
    }
    for (int32_t i = 0; i < n_link; i++) {
        if (b->joint_of_link[i] < 0) return FAIL_LINK(b, US_ERR_TREE, &s->link[i], "join it to the world or to another link, fixed or floating", "no joint holds this link");
    }
    if (n_order < n_joint) {
        // Some joint is not reached from the world: walking up from it ends in a cycle.
        int32_t i = 0;
        for (int32_t k = 0; k < n_order; k++) stack[k] = b->order[k];
        for (i = 0; i < n_joint; i++) {
            bool reached = false;
            for (int32_t k = 0; k < n_order && !reached; k++) reached = stack[k] == i;
            if (!reached) break;
        }
        return FAIL_JOINT(b, US_ERR_TREE, &s->joint[i], "let the joints form a tree from the world outwards, and close loops with <loop>", "its links form a cycle that is not joined to the world");
    }
    return US_OK;
}

// ---------------------------------------------------------------- nodes

static usi_v4 column(const us_mat3 *R, int k) { return usi_v4_set(R->m[k], R->m[3 + k], R->m[6 + k]); }

// Adds a node whose frame at q = 0 is X_PN in its parent node. Returns its index.
static int32_t add_node(build *b, usi_node_kind kind, int32_t parent, us_pose X_PN, int32_t joint, bool is_root) {
    usi_node *n = &b->node[b->n_node];
    memset(n, 0, sizeof *n);
    us_mat3 R = us_quat_matrix(X_PN.q);
    for (int k = 0; k < 3; k++) n->T[k] = column(&R, k);
    n->r = usi_v4_from(X_PN.p);
    n->parent = parent;
    n->kind = (int32_t)kind;
    n->joint = joint;
    n->q = b->n_q;
    const us_quat *q = &X_PN.q;
    if (q->x != 0 || q->y != 0 || q->z != 0) n->flags |= USI_NODE_TURNED;
    if (is_root) n->flags |= USI_NODE_ROOT;
    b->n_q += kind == USI_NODE_BALL ? 4 : kind == USI_NODE_FREE ? 7 : kind == USI_NODE_NEXT ? 0 : 1;
    memset(&b->inertia[b->n_node], 0, sizeof(us_inertia));
    return b->n_node++;
}

static us_pose rotation(us_quat q) {
    us_pose X = {q, {0, 0, 0}};
    return X;
}

// The nodes of one joint. Returns the last one and sets where the child link is on it.
static int32_t add_joint_nodes(build *b, const us_joint_def *j, int32_t index, int32_t parent, us_pose X_NF, us_pose *out_X_NB) {
    bool root = parent < 0;
    us_vec3 unit = us_vec3_scale(1 / us_vec3_norm(j->axis), j->axis);
    us_quat A = us_quat_from_z(unit);
    int32_t n = parent;
    *out_X_NB = rotation(us_quat_conj(A));
    switch (j->type) {
    case US_JOINT_REVOLUTE:
    case US_JOINT_CONTINUOUS: return add_node(b, USI_NODE_HINGE, parent, us_pose_mul(X_NF, rotation(A)), index, root);
    case US_JOINT_PRISMATIC: return add_node(b, USI_NODE_SLIDE, parent, us_pose_mul(X_NF, rotation(A)), index, root);
    case US_JOINT_HELICAL:
        n = add_node(b, USI_NODE_SCREW, parent, us_pose_mul(X_NF, rotation(A)), index, root);
        b->node[n].pitch = j->pitch;
        return n;
    case US_JOINT_CYLINDRICAL:
        n = add_node(b, USI_NODE_HINGE, parent, us_pose_mul(X_NF, rotation(A)), index, root);
        return add_node(b, USI_NODE_SLIDE, n, us_pose_identity(), index, root);
    case US_JOINT_UNIVERSAL: {
        us_quat A2 = us_quat_from_z(us_vec3_scale(1 / us_vec3_norm(j->axis2), j->axis2));
        n = add_node(b, USI_NODE_HINGE, parent, us_pose_mul(X_NF, rotation(A)), index, root);
        *out_X_NB = rotation(us_quat_conj(A2));
        return add_node(b, USI_NODE_HINGE, n, rotation(us_quat_mul(us_quat_conj(A), A2)), index, root);
    }
    case US_JOINT_PLANAR: {
        us_quat x = us_quat_mul(A, us_quat_from_z(us_vec3_make(1, 0, 0))), y = us_quat_mul(A, us_quat_from_z(us_vec3_make(0, 1, 0)));
        n = add_node(b, USI_NODE_SLIDE, parent, us_pose_mul(X_NF, rotation(x)), index, root);
        n = add_node(b, USI_NODE_SLIDE, n, rotation(us_quat_mul(us_quat_conj(x), y)), index, root);
        return add_node(b, USI_NODE_HINGE, n, rotation(us_quat_mul(us_quat_conj(y), A)), index, root);
    }
    case US_JOINT_SPHERICAL:
    case US_JOINT_FLOATING: {
        int32_t more = j->type == US_JOINT_SPHERICAL ? 2 : 5;
        n = add_node(b, more == 2 ? USI_NODE_BALL : USI_NODE_FREE, parent, X_NF, index, root);
        for (int32_t k = 0; k < more; k++) n = add_node(b, USI_NODE_NEXT, n, us_pose_identity(), index, root);
        *out_X_NB = us_pose_identity();
        return n;
    }
    default: return parent;
    }
}

// Inertia of a link seen from the axes of a frame in which the link's pose is X.
static us_inertia move_inertia(us_inertia I, us_pose X) {
    us_inertia r = I;
    r.com = us_pose_point(X, I.com);
    if (X.q.x == 0 && X.q.y == 0 && X.q.z == 0) return r;
    us_mat3 R = us_quat_matrix(X.q);
    const double *a = I.about_com, M[9] = {a[0], a[3], a[4], a[3], a[1], a[5], a[4], a[5], a[2]};
    double T[9], N[9];
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) T[3 * i + k] = R.m[3 * i] * M[k] + R.m[3 * i + 1] * M[3 + k] + R.m[3 * i + 2] * M[6 + k];
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) N[3 * i + k] = T[3 * i] * R.m[3 * k] + T[3 * i + 1] * R.m[3 * k + 1] + T[3 * i + 2] * R.m[3 * k + 2];
    }
    const double out[6] = {N[0], N[4], N[8], 0.5 * (N[1] + N[3]), 0.5 * (N[2] + N[6]), 0.5 * (N[5] + N[7])};
    memcpy(r.about_com, out, sizeof out);
    return r;
}

static void add_point_inertia(double I[6], double m, us_vec3 d) {
    I[0] += m * (d.y * d.y + d.z * d.z);
    I[1] += m * (d.x * d.x + d.z * d.z);
    I[2] += m * (d.x * d.x + d.y * d.y);
    I[3] -= m * d.x * d.y;
    I[4] -= m * d.x * d.z;
    I[5] -= m * d.y * d.z;
}

static us_inertia join_inertia(us_inertia a, us_inertia b) {
    if (a.mass == 0 && a.about_com[0] == 0 && a.about_com[1] == 0 && a.about_com[2] == 0) return b;
    if (b.mass == 0 && b.about_com[0] == 0 && b.about_com[1] == 0 && b.about_com[2] == 0) return a;
    us_inertia r = {.mass = a.mass + b.mass};
    r.com = r.mass > 0 ? us_vec3_scale(1 / r.mass, us_vec3_add(us_vec3_scale(a.mass, a.com), us_vec3_scale(b.mass, b.com))) : a.com;
    for (int i = 0; i < 6; i++) r.about_com[i] = a.about_com[i] + b.about_com[i];
    add_point_inertia(r.about_com, a.mass, us_vec3_sub(a.com, r.com));
    add_point_inertia(r.about_com, b.mass, us_vec3_sub(b.com, r.com));
    return r;
}

static us_status make_nodes(build *b) {
    const us_spec *s = b->spec;
    int64_t most = 0;
    for (int32_t i = 0; i < s->n_joint; i++) most += us_joint_type_n_v(s->joint[i].type);
    if (most > 10000000) return us_error_set(b->err, US_ERR_LIMIT, NULL, "split the world", "more than ten million degrees of freedom");
    size_t n = (size_t)most + 1;
    b->node = usi_arena_alloc(&b->arena, n * sizeof *b->node, 32);
    b->inertia = usi_arena_alloc(&b->arena, n * sizeof *b->inertia, 8);
    b->axis_inertia = usi_arena_alloc(&b->arena, n * sizeof(double), 8);
    b->body = usi_arena_alloc(&b->arena, ((size_t)s->n_link + 1) * sizeof *b->body, 8);
    b->joint = usi_arena_alloc(&b->arena, ((size_t)s->n_joint + 1) * sizeof *b->joint, 8);
    if (!b->node || !b->inertia || !b->axis_inertia || !b->body || !b->joint) return out_of_memory(b);
    memset(b->body, 0, ((size_t)s->n_link + 1) * sizeof *b->body);
    memset(b->joint, 0, ((size_t)s->n_joint + 1) * sizeof *b->joint);
    for (int32_t k = 0; k < s->n_joint; k++) {
        int32_t index = b->order[k];
        const us_joint_def *j = &s->joint[index];
        int32_t parent = j->parent < 0 ? -1 : b->body[j->parent].node;
        us_pose X_PF = j->X_PF;
        X_PF.q = us_quat_normalize(X_PF.q);
        us_pose X_NF = j->parent < 0 ? X_PF : us_pose_mul(b->body[j->parent].X_NB, X_PF);
        usi_joint *out = &b->joint[index];
        *out = (usi_joint){X_PF, (int32_t)j->type, j->parent, j->child, b->n_q, us_joint_type_n_q(j->type), b->n_node, us_joint_type_n_v(j->type), 0};
        usi_body *body = &b->body[j->child];
        body->joint = index;
        body->inertia = s->link[j->child].inertia;
        if (j->type == US_JOINT_FIXED) {
            body->node = parent;
            body->X_NB = X_NF;
        } else {
            body->node = add_joint_nodes(b, j, index, parent, X_NF, &body->X_NB);
        }
        if (body->node >= 0) b->inertia[body->node] = join_inertia(b->inertia[body->node], move_inertia(body->inertia, body->X_NB));
    }
    for (int32_t i = 0; i < b->n_node; i++) {
        usi_node *d = &b->node[i];
        const us_inertia *I = &b->inertia[i];
        const double *a = I->about_com;
        d->com = usi_v4_from(I->com);
        d->com[3] = I->mass;
        d->I[0] = usi_v4_set(a[0], a[3], a[4]);
        d->I[1] = usi_v4_set(a[3], a[1], a[5]);
        d->I[2] = usi_v4_set(a[4], a[5], a[2]);
        if (I->mass != 0 || a[0] != 0 || a[1] != 0 || a[2] != 0) d->flags |= USI_NODE_MASSIVE;
        d->tree = d->parent < 0 ? b->n_tree++ : b->node[d->parent].tree;
        if (d->parent >= 0 && d->parent == i - 1) d->flags |= USI_NODE_CARRY;
    }
    for (int32_t i = b->n_node - 1; i >= 0; i--) {
        usi_node *d = &b->node[i];
        if (d->parent < 0 || (d->flags & USI_NODE_CARRY)) continue;
        if (!(b->node[d->parent].flags & USI_NODE_STORED)) d->flags |= USI_NODE_STORE_FIRST;
        b->node[d->parent].flags |= USI_NODE_STORED;
    }
    return US_OK;
}

// Inertia about each node's axis of everything beyond it, at the start state: used to damp joint limits, and to find
// joints that nothing with mass hangs on.
static us_status measure_axes(build *b) {
    const us_spec *s = b->spec;
    us_pose *X_WN = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *X_WN, 8);
    us_inertia *composite = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *composite, 8);
    if (!X_WN || !composite) return out_of_memory(b);
    for (int32_t i = 0; i < b->n_node; i++) {
        const usi_node *d = &b->node[i];
        const us_joint_def *j = &s->joint[d->joint];
        us_pose X = usi_node_rest(d);
        if (d->parent >= 0) X = us_pose_mul(X_WN[d->parent], X);
        const double *q = d->kind == USI_NODE_NEXT ? NULL : &j->q0[d->q - b->joint[d->joint].first_q];
        X_WN[i] = us_pose_mul(X, usi_node_motion(d, q));
        X_WN[i].q = us_quat_normalize(X_WN[i].q);
        composite[i] = move_inertia(b->inertia[i], X_WN[i]);
    }
    for (int32_t i = b->n_node - 1; i >= 0; i--) {
        const usi_node *d = &b->node[i];
        int32_t k = i - b->joint[d->joint].first_v;  // which axis of the joint
        bool is_ball = b->joint[d->joint].type == US_JOINT_SPHERICAL || b->joint[d->joint].type == US_JOINT_FLOATING;
        us_vec3 axis = us_vec3_make(is_ball && k % 3 == 0, is_ball && k % 3 == 1, !is_ball || k % 3 == 2);
        axis = us_quat_rotate(X_WN[i].q, axis);
        us_inertia c = composite[i];
        bool is_linear = d->kind == USI_NODE_SLIDE || (is_ball && k >= 3);
        add_point_inertia(c.about_com, c.mass, us_vec3_sub(c.com, X_WN[i].p));
        const double *a = c.about_com, x = axis.x, y = axis.y, z = axis.z;
        b->axis_inertia[i] = is_linear ? c.mass : a[0] * x * x + a[1] * y * y + a[2] * z * z + 2 * (a[3] * x * y + a[4] * x * z + a[5] * y * z);
        if (d->kind == USI_NODE_SCREW) b->axis_inertia[i] += c.mass * d->pitch * d->pitch;
        if (d->parent >= 0) composite[d->parent] = join_inertia(composite[d->parent], composite[i]);
    }
    return US_OK;
}

// ---------------------------------------------------------------- the model

static us_status allocate(build *b, us_model *m) {
    size_t size = 0;
    const int32_t n_node = m->n_node, n_tree = m->n_tree, n_path = m->n_path, n_q = m->n_q, n_soft = m->n_soft, n_body = m->n_body, n_joint = m->n_joint;
    const int32_t n_drive = m->n_drive, n_coupling = m->n_coupling, n_loop = m->n_loop, n_names = m->n_names, n_element = m->n_element;
#define SIZE(type, name, count, unit, about) usi_carve(&size, (size_t)(count), sizeof(type));
    USI_MODEL_FIELDS(SIZE)
#undef SIZE
    m->block = usi_alloc(&m->allocator, size, USI_ALIGN);
    if (!m->block) return out_of_memory(b);
    m->block_size = size ? size : 1;
    memset(m->block, 0, m->block_size);
    size = 0;
#define CARVE(type, name, count, unit, about) m->name = (type *)((char *)m->block + usi_carve(&size, (size_t)(count), sizeof(type)));
    USI_MODEL_FIELDS(CARVE)
#undef CARVE
    return US_OK;
}

// Depth of the deepest part decides the size of the path tables: a row per node, from the root to itself.
static us_status count_paths(build *b, us_model *m) {
    int32_t *depth = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *depth, 4);
    if (!depth) return out_of_memory(b);
    int64_t total = 0;
    for (int32_t i = 0; i < b->n_node; i++) {
        depth[i] = b->node[i].parent < 0 ? 1 : depth[b->node[i].parent] + 1;
        total += depth[i];
    }
    if (total > 200000000) return us_error_set(b->err, US_ERR_LIMIT, NULL, "shorten the longest chain", "the chains are too long: their paths need %lld entries", (long long)total);
    m->n_path = (int32_t)total;
    return US_OK;
}

static void fill_paths(us_model *m) {
    int32_t at = 0;
    for (int32_t i = 0; i < m->n_node; i++) {
        int32_t parent = m->node[i].parent, n = 0;
        m->row_start[i] = at;
        if (parent >= 0) {
            n = m->row_start[parent + 1] - m->row_start[parent];
            memcpy(m->path + at, m->path + m->row_start[parent], (size_t)n * sizeof *m->path);
        }
        m->path[at + n] = i;
        at += n + 1;
        m->row_start[i + 1] = at;
    }
}

static bool has_stop(const us_joint_def *j) {
    return j->has_limits && us_joint_type_n_v(j->type) == 1 && j->type != US_JOINT_CONTINUOUS && (isfinite(j->lower) || isfinite(j->upper));
}

static us_status fill_joints(build *b, us_model *m) {
    const us_spec *s = b->spec;
    for (int32_t k = 0; k < s->n_joint; k++) {
        const us_joint_def *j = &s->joint[k];
        const usi_joint *at = &m->joint[k];
        bool is_ball = j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING;
        for (int32_t i = 0; i < at->n_q; i++) m->q_start[at->first_q + i] = j->q0[i];
        if (is_ball) {
            us_quat q = us_quat_normalize((us_quat){j->q0[0], j->q0[1], j->q0[2], j->q0[3]});
            memcpy(&m->q_start[at->first_q], &q, sizeof q);
        }
        for (int32_t i = 0; i < at->n_v; i++) {
            int32_t v = at->first_v + i;
            m->v_start[v] = j->v0[i];
            m->armature[v] = j->armature;
            m->damping[v] = j->damping;
            m->stiffness[v] = j->stiffness;
            m->rest[v] = j->rest;
            if (b->axis_inertia[v] + j->armature < 1e-15) {
                m->armature[v] = LEAST_ARMATURE;
                us_status status = warn_joint(b, j, "give the link beyond it mass and inertia, or the joint an armature",
                                              "nothing with inertia about its axis hangs on this joint: an armature of 1e-4 (kg m^2 or kg) is used");
                if (status) return status;
            }
        }
        if (has_stop(j) && (j->q0[0] < j->lower || j->q0[0] > j->upper)) {
            us_status status = warn_joint(b, j, "start between the limits, or widen them", "it starts outside its limits: the limit pushes it back");
            if (status) return status;
        }
    }
    for (int32_t v = 0, n = 0; v < m->n_node; v++) {
        if (m->damping[v] > 0 || m->stiffness[v] > 0) m->soft[n++] = v;
    }
    return US_OK;
}

// Torques with bounds: drives first, then friction and limits joint by joint.
static void fill_elements(const build *b, us_model *m) {
    const us_spec *s = b->spec;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_drive; i++) {
        const usi_drive *d = &m->drive[i];
        m->element[n++] = (usi_element){d->kp, d->kd, 0, -d->limit, d->limit, d->v, d->q, i, 0};
    }
    for (int32_t k = 0; k < s->n_joint; k++) {
        const us_joint_def *j = &s->joint[k];
        const usi_joint *at = &m->joint[k];
        for (int32_t i = 0; j->friction > 0 && i < at->n_v; i++) {
            m->element[n++] = (usi_element){0, j->friction / STICK_SPEED, 0, -j->friction, j->friction, at->first_v + i, at->first_q, -1, 0};
        }
        if (!has_stop(j)) continue;
        int32_t v = at->first_v;
        double damping = 2 * sqrt(STOP_STIFFNESS * (b->axis_inertia[v] + m->armature[v]));
        if (isfinite(j->lower)) m->element[n++] = (usi_element){STOP_STIFFNESS, damping, j->lower, 0, INFINITY, v, at->first_q, -1, 1};
        if (isfinite(j->upper)) m->element[n++] = (usi_element){STOP_STIFFNESS, damping, j->upper, -INFINITY, 0, v, at->first_q, -1, 1};
    }
}

static void count_soft(const build *b, us_model *m) {
    const us_spec *s = b->spec;
    m->n_soft = 0, m->n_element = s->n_drive;
    for (int32_t k = 0; k < s->n_joint; k++) {
        const us_joint_def *j = &s->joint[k];
        int32_t n = us_joint_type_n_v(j->type);
        if (j->damping > 0 || j->stiffness > 0) m->n_soft += n;
        if (j->friction > 0) m->n_element += n;
        if (has_stop(j)) m->n_element += isfinite(j->lower) + isfinite(j->upper);
    }
}

static us_status fill_drives(build *b, us_model *m) {
    const us_spec *s = b->spec;
    for (int32_t i = 0; i < s->n_drive; i++) {
        const us_drive_def *d = &s->drive[i];
        usi_drive *out = &m->drive[i];
        if (d->joint < 0 || d->joint >= s->n_joint) return fail(b, US_ERR_NAME, d->file, d->line, "drive", d->name, "name a joint that exists", "its joint does not exist");
        const usi_joint *j = &m->joint[d->joint];
        bool is_ball = j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING;
        if (d->coordinate < 0 || d->coordinate >= j->n_v || is_ball) {
            return fail(b, US_ERR_VALUE, d->file, d->line, "drive", d->name, "drive a coordinate of a revolute, continuous, prismatic, helical, cylindrical, universal or planar joint",
                        "its joint has no such coordinate");
        }
        const double x[] = {d->kp, d->kd, d->position, d->velocity, d->torque, d->limit};
        if (!all_finite(x, 6) || d->kp < 0 || d->kd < 0 || d->limit < 0) {
            return fail(b, US_ERR_VALUE, d->file, d->line, "drive", d->name, "write finite numbers, gains and limit of 0 or more", "a gain or limit is negative, or a number is not finite");
        }
        double effort = s->joint[d->joint].effort;
        out->kp = d->kp, out->kd = d->kd;
        out->limit = d->limit > 0 ? d->limit : effort > 0 ? effort : INFINITY;
        out->position = d->position, out->velocity = d->velocity, out->torque = d->torque;
        out->joint = d->joint, out->v = j->first_v + d->coordinate, out->q = j->first_q + d->coordinate;
    }
    return US_OK;
}

static us_status fill_constraints(build *b, us_model *m) {
    const us_spec *s = b->spec;
    int32_t row = 0;
    for (int32_t i = 0; i < s->n_coupling; i++) {
        const us_coupling_def *c = &s->coupling[i];
        usi_coupling *out = &m->coupling[i];
        out->n_term = c->n_term, out->offset = c->offset, out->row = row++;
        if (c->n_term < 1) return fail(b, US_ERR_VALUE, c->file, c->line, "coupling", c->name, "give it at least one term", "it has no terms");
        for (int32_t k = 0; k < c->n_term; k++) {
            if (c->joint[k] < 0 || c->joint[k] >= s->n_joint) return fail(b, US_ERR_NAME, c->file, c->line, "coupling", c->name, "name joints that exist", "a joint of it does not exist");
            const usi_joint *j = &m->joint[c->joint[k]];
            bool is_ball = j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING;
            if (c->coordinate[k] < 0 || c->coordinate[k] >= j->n_v || is_ball) {
                return fail(b, US_ERR_VALUE, c->file, c->line, "coupling", c->name, "couple coordinates of joints that are not fixed, spherical or floating", "a joint of it has no such coordinate");
            }
            if (!isfinite(c->factor[k]) || !isfinite(c->offset)) return fail(b, US_ERR_VALUE, c->file, c->line, "coupling", c->name, "write finite numbers", "a factor or the offset is not finite");
            out->factor[k] = c->factor[k];
            out->v[k] = j->first_v + c->coordinate[k], out->q[k] = j->first_q + c->coordinate[k];
        }
    }
    for (int32_t i = 0; i < s->n_loop; i++) {
        const us_loop_def *l = &s->loop[i];
        usi_loop *out = &m->loop[i];
        if (l->link_a < US_WORLD || l->link_a >= s->n_link || l->link_b < US_WORLD || l->link_b >= s->n_link) {
            return fail(b, US_ERR_NAME, l->file, l->line, "loop", l->name, "name links that exist, or world", "one of its links does not exist");
        }
        us_pose X_AC = l->X_AC, X_BD = l->X_BD;
        if (!all_finite(&X_AC.q.w, 4) || !all_finite(&X_AC.p.x, 3) || !all_finite(&X_BD.q.w, 4) || !all_finite(&X_BD.p.x, 3)) {
            return fail(b, US_ERR_VALUE, l->file, l->line, "loop", l->name, "write finite numbers", "one of its frames is not finite");
        }
        if (!is_rotation(X_AC.q) || !is_rotation(X_BD.q)) {
            return fail(b, US_ERR_VALUE, l->file, l->line, "loop", l->name, "write quaternions of length 1, w first", "the quaternion of one of its frames is 0 or too long");
        }
        X_AC.q = us_quat_normalize(X_AC.q), X_BD.q = us_quat_normalize(X_BD.q);
        out->node_a = l->link_a < 0 ? -1 : m->body[l->link_a].node;
        out->node_b = l->link_b < 0 ? -1 : m->body[l->link_b].node;
        if (out->node_a == out->node_b) return fail(b, US_ERR_CONSTRAINT, l->file, l->line, "loop", l->name, "close it between links that move against each other", "its two links cannot move against each other");
        out->X_AC = l->link_a < 0 ? X_AC : us_pose_mul(m->body[l->link_a].X_NB, X_AC);
        out->X_BD = l->link_b < 0 ? X_BD : us_pose_mul(m->body[l->link_b].X_NB, X_BD);
        out->n_axis = l->type == US_LOOP_POINT ? 0 : l->type == US_LOOP_HINGE ? 2 : 3;
        // Hinge: C's z is perpendicular to D's x and y. Weld: x to y, y to z, z to x.
        static const int32_t c[2][3] = {{2, 2, 0}, {0, 1, 2}}, d[2][3] = {{0, 1, 0}, {1, 2, 0}};
        memcpy(out->axis_c, c[l->type == US_LOOP_WELD], sizeof out->axis_c);
        memcpy(out->axis_d, d[l->type == US_LOOP_WELD], sizeof out->axis_d);
        out->row = row;
        row += 3 + out->n_axis;
    }
    return US_OK;
}

static int32_t count_rows(const us_spec *s) {
    int32_t n = s->n_coupling;
    for (int32_t i = 0; i < s->n_loop; i++) n += s->loop[i].type == US_LOOP_POINT ? 3 : s->loop[i].type == US_LOOP_HINGE ? 5 : 6;
    return n;
}

// Which nodes belong to which tree, and which trees nothing outside them holds.
static void fill_trees(const build *b, us_model *m) {
    for (int32_t i = 0; i < m->n_tree; i++) m->tree[i] = (usi_tree){m->n_node, 0, 0, 0};
    for (int32_t i = 0; i < m->n_node; i++) {
        usi_tree *t = &m->tree[m->node[i].tree];
        if (i < t->first) t->first = i;
        t->end = i + 1;
    }
    for (int32_t k = 0; k < m->n_tree; k++) {
        usi_tree *t = &m->tree[k];
        bool is_free = m->node[t->first].kind == USI_NODE_FREE;
        for (int32_t i = t->first; is_free && i < t->first + 6; i++) is_free = m->damping[i] == 0 && m->armature[i] == 0 && b->spec->joint[m->node[i].joint].friction == 0;
        t->is_free_tree = is_free;
        t->is_free_body = is_free && t->end - t->first == 6;
    }
    for (int32_t i = 0; i < m->n_loop; i++) {
        const usi_loop *l = &m->loop[i];
        int32_t ta = l->node_a < 0 ? -1 : m->node[l->node_a].tree, tb = l->node_b < 0 ? -1 : m->node[l->node_b].tree;
        if (ta == tb) continue;
        if (ta >= 0) m->tree[ta].is_free_tree = m->tree[ta].is_free_body = 0;
        if (tb >= 0) m->tree[tb].is_free_tree = m->tree[tb].is_free_body = 0;
    }
    for (int32_t i = 0; i < m->n_coupling; i++) {
        const usi_coupling *c = &m->coupling[i];
        for (int32_t k = 1; k < c->n_term; k++) {
            int32_t ta = m->node[c->v[0]].tree, tb = m->node[c->v[k]].tree;
            if (ta != tb) m->tree[ta].is_free_tree = m->tree[tb].is_free_tree = 0;
        }
    }
}

static void fill_names(const us_spec *s, us_model *m) {
    int32_t at = 0;
#define COPY(list, n)                                     \
    for (int32_t i = 0; i < (n); i++) {                   \
        size_t length = strlen(s->list[i].name) + 1;      \
        memcpy(m->names + at, s->list[i].name, length);   \
        m->list##_name[i] = at;                           \
        at += (int32_t)length;                            \
    }
    for (int32_t i = 0; i < s->n_link; i++) {
        size_t length = strlen(s->link[i].name) + 1;
        memcpy(m->names + at, s->link[i].name, length);
        m->body_name[i] = at;
        at += (int32_t)length;
    }
    COPY(joint, s->n_joint)
    COPY(drive, s->n_drive)
#undef COPY
}

static us_status count_names(build *b, us_model *m) {
    const us_spec *s = b->spec;
    size_t n = 0;
    for (int32_t i = 0; i < s->n_link; i++) n += strlen(s->link[i].name) + 1;
    for (int32_t i = 0; i < s->n_joint; i++) n += strlen(s->joint[i].name) + 1;
    for (int32_t i = 0; i < s->n_drive; i++) n += strlen(s->drive[i].name) + 1;
    if (n > INT32_MAX) return us_error_set(b->err, US_ERR_LIMIT, NULL, "shorten the names", "the names are longer than 2 GiB together");
    m->n_names = (int32_t)n;
    return US_OK;
}

static us_status check_all(build *b) {
    us_spec *s = b->spec;
    us_status status = check_world(b);
    for (int32_t i = 0; !status && i < s->n_link; i++) status = check_link(b, &s->link[i]);
    for (int32_t i = 0; !status && i < s->n_joint; i++) status = check_joint(b, &s->joint[i]);
    if (!status && s->n_link) status = check_names(b, "link", s->n_link, &s->link->name, sizeof *s->link, &s->link->file, &s->link->line);
    if (!status && s->n_joint) status = check_names(b, "joint", s->n_joint, &s->joint->name, sizeof *s->joint, &s->joint->file, &s->joint->line);
    if (!status && s->n_drive) status = check_names(b, "drive", s->n_drive, &s->drive->name, sizeof *s->drive, &s->drive->file, &s->drive->line);
    return status;
}

static us_status fill(build *b, us_model *m) {
    us_spec *s = b->spec;
    m->gravity = s->world.gravity, m->step = s->world.step, m->tolerance = s->world.tolerance, m->integrator = s->world.integrator, m->seed = s->world.seed;
    m->n_node = b->n_node, m->n_q = b->n_q, m->n_tree = b->n_tree, m->n_body = s->n_link, m->n_joint = s->n_joint, m->n_drive = s->n_drive;
    m->n_coupling = s->n_coupling, m->n_loop = s->n_loop, m->n_row = count_rows(s);
    count_soft(b, m);
    m->n_pad = (m->n_node + 3) / 4 * 4, m->n_q_pad = (m->n_q + 3) / 4 * 4;
    m->is_flat = m->n_q == m->n_node;
    us_status status = count_paths(b, m);
    if (!status) status = count_names(b, m);
    if (!status) status = allocate(b, m);
    if (status) return status;
    if (m->n_node) memcpy(m->node, b->node, (size_t)m->n_node * sizeof *m->node);
    if (m->n_body) memcpy(m->body, b->body, (size_t)m->n_body * sizeof *m->body);
    if (m->n_joint) memcpy(m->joint, b->joint, (size_t)m->n_joint * sizeof *m->joint);
    for (int32_t i = 0; i < m->n_node; i++) m->total_mass += b->inertia[i].mass;
    fill_paths(m);
    fill_names(s, m);
    status = fill_joints(b, m);
    if (!status) status = fill_drives(b, m);
    if (!status) status = fill_constraints(b, m);
    if (status) return status;
    fill_elements(b, m);
    fill_trees(b, m);
    const double settings[] = {m->gravity.x, m->gravity.y, m->gravity.z, m->step, m->tolerance, (double)m->integrator};
    m->hash = us_hash_bytes(us_hash_bytes(m->seed, settings, sizeof settings), m->block, m->block_size);
    return US_OK;
}

us_status us_model_compile(us_spec *spec, const us_allocator *allocator, us_model **out_model, us_error *err) {
    if (!spec || !out_model) return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a place for the model", "us_model_compile: an argument is NULL");
    us_allocator a = allocator ? *allocator : us_allocator_default();
    build b = {.spec = spec, .err = err};
    usi_arena_init(&b.arena, &a);
    us_model *m = NULL;
    us_status status = check_all(&b);
    if (!status) status = sort_tree(&b);
    if (!status) status = make_nodes(&b);
    if (!status) status = measure_axes(&b);
    if (!status) {
        m = usi_alloc(&a, sizeof *m, _Alignof(us_model));
        status = m ? US_OK : out_of_memory(&b);
    }
    if (!status && m) {
        memset(m, 0, sizeof *m);
        m->allocator = a;
        status = fill(&b, m);
    }
    usi_arena_fini(&b.arena);
    if (status) {
        us_model_destroy(m);
        return status;
    }
    *out_model = m;
    return US_OK;
}
