// Joints that are broken. What hung on one floats; the spec keeps what the joint was, for the robot's own
// firmware knows nothing else.
//
//     world --floating-- body --hinge-- coxa --x-- femur --hinge-- tibia       x is broken:
//     world --floating-- body --hinge-- coxa
//     world --floating----------------------------- femur --hinge-- tibia
//
// A compiled model starts with the link where the whole robot has it at its start. That is a place as good as
// any: a world in which something breaks goes on with the pose and velocity that the link has
// (us_sim_replace).
#include <string.h>

#include "model/compile.h"

// The broken joint that each joint hangs on, or is: the nearest one. From the world outwards.
static us_status find_pieces(usi_build *b) {
    const us_spec *s = b->spec;
    b->piece = usi_arena_alloc(&b->arena, ((size_t)s->n_joint + 1) * sizeof *b->piece, _Alignof(int32_t));
    if (!b->piece) return usi_build_out_of_memory(b);
    for (int32_t k = 0; k < s->n_joint; k++) {
        int32_t i = b->order[k], parent = s->joint[i].parent;
        b->piece[i] = s->joint[i].is_broken ? i : parent >= 0 ? b->piece[b->joint_of_link[parent]] : -1;
    }
    return US_OK;
}

static us_joint_def float_free(const us_joint_def *was, us_pose X_WB) {
    us_joint_def j = us_joint_def_default(US_JOINT_FLOATING);
    const double q0[7] = {X_WB.q.w, X_WB.q.x, X_WB.q.y, X_WB.q.z, X_WB.p.x, X_WB.p.y, X_WB.p.z};
    j.name = was->name;
    j.group = was->group;
    j.parent = US_WORLD;
    j.child = was->child;
    j.file = was->file;
    j.line = was->line;
    j.is_broken = true;
    memcpy(j.q0, q0, sizeof q0);
    return j;
}

us_status usi_build_break(usi_build *b) {
    const us_spec *s = b->spec;
    bool is_whole = true;
    for (int32_t i = 0; i < s->n_joint && is_whole; i++)
        is_whole = !s->joint[i].is_broken;
    b->joint_def = s->joint;
    if (is_whole) return US_OK;
    // The whole robot, to see where everything is.
    us_status status = usi_build_sort(b);
    if (!status) status = usi_build_nodes(b);
    if (!status) status = find_pieces(b);
    if (status) return status;
    us_joint_def *acts =
        usi_arena_alloc(&b->arena, ((size_t)s->n_joint + 1) * sizeof *acts, _Alignof(us_joint_def));
    us_pose *X_WN = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *X_WN, _Alignof(us_pose));
    if (!acts || !X_WN) return usi_build_out_of_memory(b);
    usi_build_place(b, X_WN);
    for (int32_t i = 0; i < s->n_joint; i++) {
        const usi_body *body = &b->body[s->joint[i].child];
        us_pose X_WB = body->node < 0 ? body->X_NB : us_pose_mul(X_WN[body->node], body->X_NB);
        acts[i] = s->joint[i].is_broken ? float_free(&s->joint[i], X_WB) : s->joint[i];
    }
    b->joint_def = acts;
    b->n_node = b->n_q = b->n_tree = 0;
    return US_OK;
}

bool usi_build_couples(const usi_build *b, const us_coupling_def *c) {
    const us_spec *s = b->spec;
    for (int32_t i = 0; b->piece && i < c->n_term; i++) {
        // What does not exist is told elsewhere.
        if (c->joint[i] < 0 || c->joint[i] >= s->n_joint) return true;
        if (s->joint[c->joint[i]].is_broken || b->piece[c->joint[i]] != b->piece[c->joint[0]]) return false;
    }
    return true;
}
