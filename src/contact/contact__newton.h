// What Newton's method and its matrix share: one island's unknowns, rows and work space.
#ifndef USI_CONTACT_CONTACT_NEWTON_H
#define USI_CONTACT_CONTACT_NEWTON_H

#include "contact/contact__parts.h"

// Blocks one after another between the same two bodies: where their products go in the matrix.
typedef struct usi_run {
    int32_t first, end;
    int32_t a, b;               // units; -1: the world
    bool is_free;               // no tree on either side
    bool is_first;              // of free bodies alone: the first that has the blocks ab and ba
    double *aa, *bb, *ab, *ba;  // NULL: none
} usi_run;

// The structure of an island's matrix: it holds as long as the same bodies touch.
typedef struct usi_layout {
    void *memory;  // USI_LAYOUT_BYTES
    usi_sparse *sparse;
    usi_run *run;
    int32_t n_unit, n_run;  // n_unit 0: none yet
} usi_layout;

// Room for twelve free bodies with some thirty pairs: of larger islands nothing is kept.
enum { USI_LAYOUT_BYTES = 32768 };

// Work space of each block, beside that of the unknowns: G, hold, a run and its place in the sparse matrix.
enum { USI_NEWTON_BLOCK_BYTES = 256 };

struct usi_six;  // contact__sparse_kernel.h

typedef struct usi_problem {
    usi_contacts *c;
    usi_island *s;
    const usi_contact_input *in;
    bool has_moved;      // the iterate is not where the step starts
    bool is_exact;       // friction of the iterate's own normal impulses, otherwise of the lagged radii
    bool is_free;        // all units are free bodies: unit i is body i
    double weight;       // N s, squared over mass: what gravity gives in a step
    double inv_mass;     // 1/kg, of the heaviest
    double load;         // the same with all else that acts on the joints, whatever the velocity
    double scale;        // the same with the impulses of the iterate: what residuals are measured by
    bool has_no_matrix;  // its matrix could not be factored: no room, or numbers that are not finite
    int32_t n_unit, n_var;
    int32_t *unit_start;  // n_unit + 1: first variable of each unit
    int32_t *size;        // n_unit: how many it has
    usi_sparse *sparse;
    double *root;   // 56, of a tree's free root: its six by six matrix, by columns, and the inverse pivots
    bool is_clear;  // the sparse matrix is all zero
    usi_run *run;
    int32_t n_run;
    double *r, *x;     // n_var: residual, Newton step
    double *G;         // 9 per block
    usi_v4 *force;     // per body: impulse about O, two vectors
    usi_v4 *step;      // per body: change of twist about O, two vectors
    usi_v4 *kept;      // per body: twist that may be gone back to
    double *kept_vel;  // n_var: the same of joints
    usi_v4 *columns;   // room for the columns of two sides
    int32_t *hit;      // where there are trees: the bodies that blocks act on, and all free ones
    int32_t n_hit;
    // Of a tree that touches the world alone:
    struct usi_six *made;  // n_var: inertia and contacts of each node
    bool *is_there;        // n_var: whether a node has any
    double *coupled;  // n_var + 1 per coupling: what the factors make of its row, and one over its own pivot
    bool is_solved;   // step_v is what the factors, without couplings, make of the residual
    double slope;     // of the potential at the start of the Newton step
    char *at, *end;   // what is left of the work space
    double smooth0, smooth1;  // slope of the smooth part along the step, and its change
    usi_free *body;
    usi_block *block;
    double *u, *du;
    uint8_t *hold;  // per block: taken as sticking, whatever its limit
    bool holds;     // some are
} usi_problem;

static inline bool usi_unit_is_free(const usi_problem *p, int32_t unit) {
    return p->c->model->tree[p->c->islands.members[p->s->first_tree + unit]].is_free_body;
}
static inline const usi_tree *usi_unit_tree(const usi_problem *p, int32_t unit) {
    return &p->c->model->tree[p->c->islands.members[p->s->first_tree + unit]];
}
static inline const usi_collision_body *usi_body_collision_body(const usi_problem *p, int32_t body) {
    return &p->c->collide.collision_body[p->c->islands.collision_body_of[p->s->first_body + body]];
}

// Couplings of the island: rows over several joints that hold exactly up to the same compliance as loops.
static inline bool usi_coupling_in(const usi_problem *p, const usi_coupling *k) {
    return &p->c->islands.island[p->c->islands.tree[p->c->model->node[k->v[0]].tree].island] == p->s &&
           p->c->islands.tree[p->c->model->node[k->v[0]].tree].island >= 0;
}
// Of the heaviest joint in the row: with the mass of a whole robot for joints of fingers, the rounding of
// their velocities alone would be more than what they carry.
static inline double usi_coupling_stiffness(const usi_problem *p, const usi_coupling *k) {
    double max = 0;
    for (int32_t i = 0; i < k->n_term; i++) {
        const double inertia = p->c->joints.inertia[k->v[i]] / (k->factor[i] * k->factor[i]);
        max = inertia > max ? inertia : max;
    }
    return 5e6 * max;
}

static inline usi_v4 usi_origin_shift(const usi_problem *p, int32_t t) {
    return p->s->O - p->c->dyn->origin[t];
}

static inline usi_row usi_row_pack(usi_v4 w, usi_v4 v) {
    return (usi_row){__builtin_shufflevector(w, v, 0, 1, 2, 4),
                     __builtin_shufflevector(v, usi_v4_zero(), 1, 2, 4, 5)};
}

// A piece of the work space.
static inline void *usi_take(char **at, size_t bytes) {
    void *memory = *at;
    *at += (bytes + 63) / 64 * 64;
    return memory;
}

// The nodes of a tree's free root; none where it has no such root.
static inline usi_span usi_free_root(const us_model *m, usi_span tree) {
    return (usi_span){tree.first, m->node[tree.first].kind == USI_NODE_FREE ? tree.first + 6 : tree.first};
}

// fast/branch.c: factors of the matrix of a tree that touches only the world, in c->solve.branch and p->root,
// and solutions with them. p->made (overwritten) has what stands at each node, inertia and contacts, where
// p->is_there; c->solve.diag acts along the joints. False when a pivot is 0.
bool usi_branch_factor(usi_problem *p, usi_span span);
void usi_branch_solve(usi_problem *p, usi_span span, double *x);
void usi_branch_solve_two(usi_problem *p, usi_span span, double *x, double *y);

// matrix.c: the factors of the matrix for the slopes in p->G. False when a pivot is 0 or there is no room for
// the matrix.
bool usi_newton_matrix(usi_problem *p);
// With the last factors from the residual in p->r to the Newton step, in p->x (and step_v of the trees).
void usi_newton_step(usi_problem *p);

// Two numbers anywhere.
typedef double usi_v2_unaligned __attribute__((vector_size(16), may_alias, aligned(8)));

// The velocities of a block's rows when its first body has the twist (w, v) against its second, in lanes 0
// to 2.
static inline usi_v4 usi_row_velocity(const usi_block *k, usi_v4 w, usi_v4 v) {
    return usi_three_sums(k->m[0] * w + k->d[0] * v, k->m[1] * w + k->d[1] * v, k->m[2] * w + k->d[2] * v);
}
static inline void usi_store_three(usi_v4 y, double u[3]) {
    *(usi_v2_unaligned *)u = __builtin_shufflevector(y, y, 0, 1);
    u[2] = y[2];
}

// The impulse of a coupling at joint velocities v.
static inline double usi_coupling_impulse(const usi_problem *p, const usi_coupling *k, const double *v) {
    double phi = -k->offset, u = 0;
    for (int32_t i = 0; i < k->n_term; i++) {
        phi += k->factor[i] * p->in->q[k->q[i]];
        u += k->factor[i] * v[k->v[i]];
    }
    return -usi_coupling_stiffness(p, k) * (u + phi / p->c->model->step);
}

// newton_residual.c: impulses at the iterate, their slopes, and the residual in p->r. Returns the residual's
// norm over that of the impulses. The links of trees have the twists of the start of the step, about their
// own origin, in w and v.
double usi_newton_residual(usi_problem *p);
// Twists along the Newton step: of the bodies that are hit, about O, into p->step; of the trees' links, with
// their momenta, where those of the iterate stand.
void usi_newton_step_twists(usi_problem *p);
// Of a tree's links about its own origin: twists from joint velocities, into w and v; changes of these and
// their momenta from changes of the joint velocities, into aw and av, n and f.
void usi_tree_twists(const usi_problem *p, int32_t t, const double *v);
void usi_tree_momenta(const usi_problem *p, int32_t t, const double *delta);

// newton_line.c: how far to go back from the end of a full step, -1 .. 0 of it, to where the slope of the
// potential is 0. s_start < 0 and s_end > 0: the slopes at its ends.
double usi_newton_search(usi_problem *p, double s_start, double s_end);

#endif
