// The matrix of a tree that touches nothing but the world: factors and solutions, in O(nodes).
//
// A contact with the world acts on a link as inertia does: an impulse J^T G J V, six by six, that is linear
// in the link's twist V. So it is added to the link's own inertia, and the matrix is that of an articulated
// body (Featherstone 2008, section 7.3) whose links have these sums A in place of their inertias. From the
// leaves inwards each joint is eliminated,
//
//     U = A S    V = S^T A    d = S^T A S + what acts along the joint itself         A of the parent += A - U
//     V / d
//
// which is the same elimination as that of the mass matrix along its branches (dyn/crba.c), without the
// products of axes that make that matrix. It is not symmetric, because sliding friction depends on the normal
// velocity but not the other way round: hence U and V.
//
// Joints of the same depth come one after another: none of them waits for another, and the processor works on
// several at a time. The six axes of a free root make one six by six matrix, in the world's axes.
//
// Twists and forces are six numbers (w | v), in two vectors: the first four, and two and two zeros.
#include <string.h>

#include "contact/contact__newton.h"
#include "contact/contact__sparse_kernel.h"

// The products of the rows with S.
static inline usi_row times(const usi_six *A, usi_row S) {
    usi_v4 s[6], zero = usi_v4_zero();
    for (int r = 0; r < 6; r++)
        s[r] = A->a[r] * S.a + A->b[r] * S.b;
    return (usi_row){usi_vec3x4_sums(s[0], s[1], s[2], s[3]), usi_vec3x4_sums(s[4], s[5], zero, zero)};
}

static inline double dot6(usi_row x, usi_row y) { return usi_v4_sum(x.a * y.a + x.b * y.b); }

// Adds what acts along the axes of a free root, D: S D S^T in the world's axes, where S is a rotation.
static void add_along_axes(usi_problem *p, usi_span root, usi_six *A) {
    const usi_contacts *c = p->c;
    for (int32_t i = root.first; i < root.end; i++) {
        const double along = c->solve.diag[i] + c->model->armature[i];
        if (along == 0) continue;
        const usi_row S = usi_row_pack(c->dyn->link[i].Sw, c->dyn->link[i].Sv);
        for (int r = 0; r < 6; r++) {
            usi_v4 factor = usi_v4_all(along * ((const double *)&S)[r]);
            A->a[r] += factor * S.a;
            A->b[r] += factor * S.b;
        }
    }
}

bool usi_branch_factor(usi_problem *p, usi_span span) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    usi_six *const at = p->made - span.first;
    bool *const is_there = p->is_there - span.first, ok = true;
    const usi_span root = usi_free_root(m, span);
    for (int32_t n = root.end; n < span.end; n++) {
        const int32_t i = c->inwards[n], parent = m->node[i].parent;
        usi_branch *k = &c->solve.branch[i];
        const usi_link *link = &c->dyn->link[i];
        if (!is_there[i]) memset(&at[i], 0, sizeof *at);
        const usi_six *A = &at[i];
        k->S = usi_row_pack(link->Sw, link->Sv);
        k->U = times(A, k->S);
        const double *s = (const double *)&k->S, *u = (const double *)&k->U;
        usi_row V = {usi_v4_zero(), usi_v4_zero()};
        for (int r = 0; r < 6; r++) {
            V.a += usi_v4_all(s[r]) * A->a[r];
            V.b += usi_v4_all(s[r]) * A->b[r];
        }
        double pivot = dot6(k->S, k->U) + c->solve.diag[i] + m->armature[i];
        ok = ok && usi_is_pivot(pivot);
        k->inv_d = 1 / pivot;
        k->V = V;
        if (parent < 0) continue;
        const usi_v4 a = V.a * usi_v4_all(k->inv_d), b = V.b * usi_v4_all(k->inv_d);
        usi_six *up = &at[parent];
        if (!is_there[parent]) memset(up, 0, sizeof *up);
        is_there[parent] = true;
        for (int r = 0; r < 6; r++) {
            up->a[r] += A->a[r] - usi_v4_all(u[r]) * a;
            up->b[r] += A->b[r] - usi_v4_all(u[r]) * b;
        }
    }
    if (root.end == root.first) return ok;
    add_along_axes(p, root, &at[root.end - 1]);
    usi_store6(p->root, &at[root.end - 1]);
    return usi_factor6(p->root, p->root + 48) && ok;
}

// For n right-hand sides, 1 or 2, at a time: what one waits for, going from node to node, the other uses.
static inline __attribute__((always_inline)) void solve(usi_problem *p, usi_span span, const int n,
                                                        double *const x[]) {
    usi_contacts *c = p->c;
    const us_model *m = c->model;
    const usi_link *link = c->dyn->link;
    const usi_span root = usi_free_root(m, span);
    const usi_row zero = {usi_v4_zero(), usi_v4_zero()};
    for (int32_t i = span.first; i < span.end; i++) {
        for (int r = 0; r < n; r++)
            c->solve.branch[i].sum[r] = zero;
    }
    // Inwards, with the forces that the parent has to bear.
    for (int32_t at = root.end; at < span.end; at++) {
        const int32_t i = c->inwards[at], parent = m->node[i].parent;
        const usi_branch *k = &c->solve.branch[i];
        for (int r = 0; r < n; r++) {
            double u = x[r][i] = (x[r][i] - dot6(k->S, k->sum[r])) * k->inv_d;
            if (parent < 0) continue;
            usi_row *up = &c->solve.branch[parent].sum[r];
            up->a += k->sum[r].a + k->U.a * usi_v4_all(u);
            up->b += k->sum[r].b + k->U.b * usi_v4_all(u);
        }
    }
    for (int r = 0; r < n && root.end > root.first; r++) {
        usi_row *twist = &c->solve.branch[root.end - 1].sum[r];
        usi_v4 f = usi_v4_zero(), t = f;
        for (int32_t i = root.first; i < root.end; i++) {
            t += link[i].Sw * usi_v4_all(x[r][i]);
            f += link[i].Sv * usi_v4_all(x[r][i]);
        }
        const usi_row load = usi_row_pack(t, f);
        _Alignas(32) double y[8];
        usi_store(y, load.a - twist->a);
        usi_store(y + 4, load.b - twist->b);
        usi_forward6(p->root, y);
        usi_backward6(p->root, p->root + 48, y);
        *twist = (usi_row){usi_load(y), usi_load(y + 4)};
        usi_v4 w = twist->a, v = __builtin_shufflevector(twist->a, twist->b, 3, 4, 5, 6);
        for (int32_t i = root.first; i < root.end; i++)
            x[r][i] = usi_v4_sum(link[i].Sw * w + link[i].Sv * v);
    }
    // Outwards, with the twists.
    for (int32_t at = span.end - 1; at >= root.end; at--) {
        const int32_t i = c->inwards[at], parent = m->node[i].parent;
        usi_branch *k = &c->solve.branch[i];
        for (int r = 0; r < n; r++) {
            usi_row V = parent < 0 ? zero : c->solve.branch[parent].sum[r];
            double y = x[r][i] -= dot6(k->V, V) * k->inv_d;
            k->sum[r] = (usi_row){V.a + k->S.a * usi_v4_all(y), V.b + k->S.b * usi_v4_all(y)};
        }
    }
}

void usi_branch_solve(usi_problem *p, usi_span span, double *x) { solve(p, span, 1, &x); }
void usi_branch_solve_two(usi_problem *p, usi_span span, double *x, double *y) {
    solve(p, span, 2, (double *[]){x, y});
}
