// The tree: joints sorted from the world outwards, and a node for every axis.
//
//   links and joints      world --fixed-- base --hinge-- arm --fixed-- flange --ball-- tool
//   nodes                 world ----------------[0]------------------- [1][2][3]
//   bodies                base on the world, arm and flange on node 0, tool on node 3
#include "model/compile.h"

#include <stdio.h>
#include <string.h>

#include "math/inertia.h"

// Last comes first.
static void reverse(int32_t *first, int32_t n) {
    for (int32_t i = 0, k = n - 1; i < k; i++, k--) {
        int32_t t = first[i];
        first[i] = first[k];
        first[k] = t;
    }
}

// Each joint's siblings in the order in which they were written, and each link's joint.
static us_status list_children(usi_build *b) {
    const us_spec *s = b->spec;
    for (int32_t i = 0; i <= s->n_link; i++)
        b->joint_of_link[i] = b->first_child[i] = -1;
    for (int32_t i = s->n_joint - 1; i >= 0; i--) {
        const us_joint_def *j = &b->joint_def[i];
        b->next[i] = b->first_child[j->parent + 1];
        b->first_child[j->parent + 1] = i;
    }
    for (int32_t i = 0; i < s->n_joint; i++) {
        const us_joint_def *j = &b->joint_def[i];
        if (b->joint_of_link[j->child] >= 0) {
            char message[300];
            snprintf(message, sizeof message, "link \"%.80s\" already hangs on joint \"%.80s\"",
                     s->link[j->child].name, b->joint_def[b->joint_of_link[j->child]].name);
            return USI_FAIL_JOINT(b, US_ERR_TREE, j,
                                  "let each link have one joint above it, and close loops with <loop>",
                                  message);
        }
        b->joint_of_link[j->child] = i;
    }
    return US_OK;
}

// A joint that is not among those that are reached from the world: walking up from it ends in a cycle.
static int32_t find_unreached(const usi_build *b, int32_t n_order) {
    for (int32_t i = 0; i < b->spec->n_joint; i++) {
        bool is_reached = false;
        for (int32_t k = 0; k < n_order && !is_reached; k++)
            is_reached = b->order[k] == i;
        if (!is_reached) return i;
    }
    return 0;
}

us_status usi_build_sort(usi_build *b) {
    const us_spec *s = b->spec;
    int32_t n_link = s->n_link, n_joint = s->n_joint;
    b->joint_of_link = usi_arena_alloc(&b->arena, (size_t)(n_link + 1) * sizeof(int32_t), 4);
    b->first_child = usi_arena_alloc(&b->arena, (size_t)(n_link + 1) * sizeof(int32_t), 4);
    b->next = usi_arena_alloc(&b->arena, (size_t)(n_joint + 1) * sizeof(int32_t), 4);
    b->order = usi_arena_alloc(&b->arena, (size_t)(n_joint + 1) * sizeof(int32_t), 4);
    int32_t *stack = usi_arena_alloc(&b->arena, (size_t)(n_joint + 1) * sizeof(int32_t), 4);
    if (!b->joint_of_link || !b->first_child || !b->next || !b->order || !stack)
        return usi_build_out_of_memory(b);
    us_status status = list_children(b);
    if (status) return status;
    // Depth first from the world, children in the order in which they were written.
    int32_t n_stack = 0, n_order = 0;
    for (int32_t i = b->first_child[0]; i >= 0; i = b->next[i])
        stack[n_stack++] = i;
    reverse(stack, n_stack);
    while (n_stack > 0) {
        int32_t i = stack[--n_stack], first = n_stack;
        b->order[n_order++] = i;
        for (int32_t c = b->first_child[b->joint_def[i].child + 1]; c >= 0; c = b->next[c])
            stack[n_stack++] = c;
        reverse(stack + first, n_stack - first);
    }
    for (int32_t i = 0; i < n_link; i++) {
        if (b->joint_of_link[i] < 0)
            return USI_FAIL_LINK(b, US_ERR_TREE, &s->link[i],
                                 "join it to the world or to another link, fixed or floating",
                                 "no joint holds this link");
    }
    if (n_order < n_joint) {
        return USI_FAIL_JOINT(
            b, US_ERR_TREE, &b->joint_def[find_unreached(b, n_order)],
            "let the joints form a tree from the world outwards, and close loops with <loop>",
            "its links form a cycle that is not joined to the world");
    }
    return US_OK;
}

// ---------------------------------------------------------------- nodes

static usi_v4 column(const us_mat3 *R, int k) { return usi_v4_set(R->m[k], R->m[3 + k], R->m[6 + k]); }

// Adds a node whose frame at q = 0 is X_PN in its parent node. Returns its index.
static int32_t add_node(usi_build *b, usi_node_kind kind, int32_t parent, us_pose X_PN, int32_t axis,
                        int32_t joint, bool is_root) {
    usi_node *n = &b->node[b->n_node];
    memset(n, 0, sizeof *n);
    us_mat3 R = us_quat_matrix(X_PN.q);
    for (int k = 0; k < 3; k++)
        n->T[k] = column(&R, k);
    n->r = usi_v4_from(X_PN.p);
    n->parent = parent;
    n->kind = (int32_t)kind;
    n->joint = joint;
    n->axis = axis;
    n->q = b->n_q;
    const us_quat *q = &X_PN.q;
    if (q->x != 0 || q->y != 0 || q->z != 0) n->flags |= USI_NODE_TURNED;
    if (is_root) n->flags |= USI_NODE_ROOT;
    b->n_q += kind == USI_NODE_BALL ? 4 : kind == USI_NODE_FREE ? 7 : kind == USI_NODE_NEXT ? 0 : 1;
    memset(&b->inertia[b->n_node], 0, sizeof(us_inertia));
    return b->n_node++;
}

// How an axis lies in its node: turned by q onto node axis k. An axis along x, y or z needs no turning, which
// spares a product of matrices in every evaluation.
typedef struct lie {
    us_quat q;
    int32_t axis;
} lie;

static lie lie_of(us_vec3 unit) {
    const double a[3] = {unit.x, unit.y, unit.z};
    for (int32_t k = 0; k < 3; k++) {
        if (a[k] == 1) return (lie){us_quat_identity(), k};
    }
    return (lie){us_quat_from_z(unit), 2};
}

static us_pose rotation(us_quat q) {
    us_pose X = {q, {0, 0, 0}};
    return X;
}

// The nodes of one joint. Returns the last one and sets where the child link is on it.
static int32_t add_joint_nodes(usi_build *b, const us_joint_def *j, int32_t index, int32_t parent,
                               us_pose X_NF, us_pose *out_X_NB) {
    bool root = parent < 0;
    us_vec3 unit = us_vec3_scale(1 / us_vec3_norm(j->axis), j->axis);
    const lie A = lie_of(unit);
    const us_pose X_NA = us_pose_mul(X_NF, rotation(A.q));
    int32_t n = parent;
    *out_X_NB = rotation(us_quat_conj(A.q));
    switch (j->type) {
    case US_JOINT_REVOLUTE:
    case US_JOINT_CONTINUOUS:
        return add_node(b, USI_NODE_HINGE, parent, X_NA, A.axis, index, root);
    case US_JOINT_PRISMATIC:
        return add_node(b, USI_NODE_SLIDE, parent, X_NA, A.axis, index, root);
    case US_JOINT_HELICAL:
        n = add_node(b, USI_NODE_SCREW, parent, X_NA, A.axis, index, root);
        b->node[n].pitch = j->pitch;
        return n;
    case US_JOINT_CYLINDRICAL:
        n = add_node(b, USI_NODE_HINGE, parent, X_NA, A.axis, index, root);
        return add_node(b, USI_NODE_SLIDE, n, us_pose_identity(), A.axis, index, root);
    case US_JOINT_UNIVERSAL: {
        const lie A2 = lie_of(us_vec3_scale(1 / us_vec3_norm(j->axis2), j->axis2));
        n = add_node(b, USI_NODE_HINGE, parent, X_NA, A.axis, index, root);
        *out_X_NB = rotation(us_quat_conj(A2.q));
        return add_node(b, USI_NODE_HINGE, n, rotation(us_quat_mul(us_quat_conj(A.q), A2.q)), A2.axis, index,
                        root);
    }
    case US_JOINT_PLANAR: {
        // x and y of the plane are what z's shortest rotation onto the normal makes of x and y.
        const us_quat Q = us_quat_from_z(unit);
        *out_X_NB = rotation(us_quat_conj(Q));
        n = add_node(b, USI_NODE_SLIDE, parent, us_pose_mul(X_NF, rotation(Q)), 0, index, root);
        n = add_node(b, USI_NODE_SLIDE, n, us_pose_identity(), 1, index, root);
        return add_node(b, USI_NODE_HINGE, n, us_pose_identity(), 2, index, root);
    }
    case US_JOINT_SPHERICAL:
    case US_JOINT_FLOATING: {
        int32_t more = j->type == US_JOINT_SPHERICAL ? 2 : 5;
        n = add_node(b, more == 2 ? USI_NODE_BALL : USI_NODE_FREE, parent, X_NF, 0, index, root);
        for (int32_t k = 0; k < more; k++)
            n = add_node(b, USI_NODE_NEXT, n, us_pose_identity(), (k + 1) % 3, index, root);
        *out_X_NB = us_pose_identity();
        return n;
    }
    default:
        return parent;
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
        for (int k = 0; k < 3; k++)
            T[3 * i + k] = R.m[3 * i] * M[k] + R.m[3 * i + 1] * M[3 + k] + R.m[3 * i + 2] * M[6 + k];
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            N[3 * i + k] =
                T[3 * i] * R.m[3 * k] + T[3 * i + 1] * R.m[3 * k + 1] + T[3 * i + 2] * R.m[3 * k + 2];
    }
    const double out[6] = {N[0], N[4], N[8], 0.5 * (N[1] + N[3]), 0.5 * (N[2] + N[6]), 0.5 * (N[5] + N[7])};
    memcpy(r.about_com, out, sizeof out);
    return r;
}

static us_inertia join_inertia(us_inertia a, us_inertia b) {
    if (a.mass == 0 && a.about_com[0] == 0 && a.about_com[1] == 0 && a.about_com[2] == 0) return b;
    if (b.mass == 0 && b.about_com[0] == 0 && b.about_com[1] == 0 && b.about_com[2] == 0) return a;
    us_inertia r = {.mass = a.mass + b.mass};
    r.com = r.mass > 0 ? us_vec3_scale(1 / r.mass, us_vec3_add(us_vec3_scale(a.mass, a.com),
                                                               us_vec3_scale(b.mass, b.com)))
                       : a.com;
    for (int i = 0; i < 6; i++)
        r.about_com[i] = a.about_com[i] + b.about_com[i];
    usi_inertia_add_point(r.about_com, a.mass, us_vec3_sub(a.com, r.com));
    usi_inertia_add_point(r.about_com, b.mass, us_vec3_sub(b.com, r.com));
    return r;
}

// Masses, trees, and how the sweeps of dynamics go from node to node.
static void finish_nodes(usi_build *b) {
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
        if (a[3] == 0 && a[4] == 0 && a[5] == 0) d->flags |= USI_NODE_DIAGONAL;
        d->tree = d->parent < 0 ? b->n_tree++ : b->node[d->parent].tree;
        if (d->parent >= 0 && d->parent == i - 1) d->flags |= USI_NODE_CARRY;
    }
    for (int32_t i = b->n_node - 1; i >= 0; i--) {
        usi_node *d = &b->node[i];
        if (d->parent < 0 || (d->flags & USI_NODE_CARRY)) continue;
        if (!(b->node[d->parent].flags & USI_NODE_STORED)) d->flags |= USI_NODE_STORE_FIRST;
        b->node[d->parent].flags |= USI_NODE_STORED;
    }
}

us_status usi_build_nodes(usi_build *b) {
    const us_spec *s = b->spec;
    int64_t n_v = 0;
    for (int32_t i = 0; i < s->n_joint; i++)
        n_v += us_joint_type_n_v(b->joint_def[i].type);
    if (n_v > 10000000)
        return us_error_set(b->err, US_ERR_LIMIT, NULL, "split the world",
                            "more than ten million degrees of freedom");
    size_t n = (size_t)n_v + 1;
    b->node = usi_arena_alloc(&b->arena, n * sizeof *b->node, 32);
    b->inertia = usi_arena_alloc(&b->arena, n * sizeof *b->inertia, 8);
    b->axis_inertia = usi_arena_alloc(&b->arena, n * sizeof(double), 8);
    b->body = usi_arena_alloc(&b->arena, ((size_t)s->n_link + 1) * sizeof *b->body, 8);
    b->joint = usi_arena_alloc(&b->arena, ((size_t)s->n_joint + 1) * sizeof *b->joint, 8);
    if (!b->node || !b->inertia || !b->axis_inertia || !b->body || !b->joint)
        return usi_build_out_of_memory(b);
    memset(b->body, 0, ((size_t)s->n_link + 1) * sizeof *b->body);
    memset(b->joint, 0, ((size_t)s->n_joint + 1) * sizeof *b->joint);
    for (int32_t k = 0; k < s->n_joint; k++) {
        int32_t index = b->order[k];
        const us_joint_def *j = &b->joint_def[index];
        int32_t parent = j->parent < 0 ? -1 : b->body[j->parent].node;
        us_pose X_PF = j->X_PF;
        X_PF.q = us_quat_normalize(X_PF.q);
        us_pose X_NF = j->parent < 0 ? X_PF : us_pose_mul(b->body[j->parent].X_NB, X_PF);
        usi_joint *out = &b->joint[index];
        *out = (usi_joint){X_PF,
                           (int32_t)j->type,
                           j->parent,
                           j->child,
                           b->n_q,
                           us_joint_type_n_q(j->type),
                           b->n_node,
                           us_joint_type_n_v(j->type),
                           s->joint[index].is_broken};
        usi_body *body = &b->body[j->child];
        body->joint = index;
        body->inertia = s->link[j->child].inertia;
        if (j->type == US_JOINT_FIXED) {
            body->node = parent;
            body->X_NB = X_NF;
        } else {
            body->node = add_joint_nodes(b, j, index, parent, X_NF, &body->X_NB);
        }
        if (body->node >= 0)
            b->inertia[body->node] =
                join_inertia(b->inertia[body->node], move_inertia(body->inertia, body->X_NB));
    }
    finish_nodes(b);
    return US_OK;
}

void usi_build_place(const usi_build *b, us_pose *out_X_WN) {
    for (int32_t i = 0; i < b->n_node; i++) {
        const usi_node *d = &b->node[i];
        us_pose X = usi_node_rest(d);
        if (d->parent >= 0) X = us_pose_mul(out_X_WN[d->parent], X);
        const double *q =
            d->kind == USI_NODE_NEXT ? NULL : &b->joint_def[d->joint].q0[d->q - b->joint[d->joint].first_q];
        out_X_WN[i] = us_pose_mul(X, usi_node_motion(d, q));
        out_X_WN[i].q = us_quat_normalize(out_X_WN[i].q);
    }
}

// Inertia about each node's axis of everything beyond it, at the start state: used to damp joint limits, and
// to find joints that nothing with mass hangs on.
us_status usi_build_measure(usi_build *b) {
    us_pose *X_WN = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *X_WN, 8);
    us_inertia *composite = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *composite, 8);
    if (!X_WN || !composite) return usi_build_out_of_memory(b);
    usi_build_place(b, X_WN);
    for (int32_t i = 0; i < b->n_node; i++)
        composite[i] = move_inertia(b->inertia[i], X_WN[i]);
    for (int32_t i = b->n_node - 1; i >= 0; i--) {
        const usi_node *d = &b->node[i];
        int32_t k = i - b->joint[d->joint].first_v;  // which axis of the joint
        bool is_ball =
            b->joint[d->joint].type == US_JOINT_SPHERICAL || b->joint[d->joint].type == US_JOINT_FLOATING;
        us_vec3 axis = us_quat_rotate(X_WN[i].q, us_vec3_make(d->axis == 0, d->axis == 1, d->axis == 2));
        us_inertia c = composite[i];
        bool is_linear = d->kind == USI_NODE_SLIDE || (is_ball && k >= 3);
        usi_inertia_add_point(c.about_com, c.mass, us_vec3_sub(c.com, X_WN[i].p));
        const double *a = c.about_com, x = axis.x, y = axis.y, z = axis.z;
        b->axis_inertia[i] = is_linear ? c.mass
                                       : a[0] * x * x + a[1] * y * y + a[2] * z * z +
                                             2 * (a[3] * x * y + a[4] * x * z + a[5] * y * z);
        if (d->kind == USI_NODE_SCREW) b->axis_inertia[i] += c.mass * d->pitch * d->pitch;
        if (d->parent >= 0) composite[d->parent] = join_inertia(composite[d->parent], composite[i]);
    }
    return US_OK;
}
