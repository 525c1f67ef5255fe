// Contact as rows: what the solvers work on.
//
// Everything that holds two things together or apart is a block of up to three rows between the twists of two
// bodies. All twists of an island are about ONE point O, in world axes, so that a block sees only the
// difference V = V_A - V_B:
//
//     u_k = m_k . w + d_k . v,    k = 0, 1, 2          (d: direction, m = p x d: its moment about O)
//
// and answers with an impulse g_k along the row, on A, and -g_k on B. The law of each block (USI_POINT ...)
// gives g from u; it is implicit: u is the velocity at the END of the step. R is the compliance of a row, b
// its offset: an unbounded row has
//
//     g = -(u + b) / R,   R = 1 / (h^2 k + h c),   b = R h (k phi) = erp phi / h
//
// The step's velocities are those where every body's momentum change equals the sum of its impulses:
//
//     M (V - V0) - h F = sum of +-J^T g(J V)
#ifndef USI_CONTACT_CONTACT_H
#define USI_CONTACT_CONTACT_H

#include <stddef.h>

#include "base/pool.h"
#include "model/model.h"
#include "understudy/interaction.h"

typedef enum usi_law {
    USI_POINT,  // row 0 only pushes: g0 = max(0, -(u0 + b0)/R0); rows 1, 2 within the circle |g12| <= mu g0;
                // plus a damper `viscous`
    USI_ROTATION,  // torsion (row 0) and rolling (rows 1, 2) of the point block before it: |g0| <= limit0 gn,
                   // |g12| <= limit1 gn, gn that block's g0
    USI_EQUAL,     // unbounded: loop closures
} usi_law;

typedef struct usi_block {
    usi_v4 m[3], d[3];
    double b[3];     // m/s
    double mu;       // USI_POINT: coefficient that holds in this step. USI_ROTATION: limit of row 0, m
    double g[3];     // N s, impulse; at entry that of the last step (0 when new)
    double radius;   // N s, lagged friction radius: set and used by the solvers
    double R[3];     // compliance, 1/kg; R[1] == R[2]
    double viscous;  // USI_POINT: N s, step times viscous friction, acts on rows 1, 2 while g0 > 0
    double K[2];     // kg, 1 / R of row 0 and of rows 1, 2
    double limit;    // USI_ROTATION: limit of rows 1, 2, m. USI_POINT: 1 where it slides by weighted friction
    double rebound;  // USI_POINT: restitution of an impact, then (impact.c) minus the normal velocity that it
                     // asks for, m/s; 0: no impact
    double press;    // USI_ROTATION: K of the point's row 0 while that presses, 0 otherwise: set and used by
                     // Newton's method
    int32_t law;
    int32_t n;      // rows in use: 1 .. 3
    int32_t a, b_;  // bodies of the island (index into its body array); -1: the world
    int32_t point;  // index of the contact point in the step's list; -1: none
    int32_t reserved;
} usi_block;
// Four numbers that stand side by side are read and written at once.
_Static_assert(offsetof(usi_block, mu) == offsetof(usi_block, b) + 24 &&
                   offsetof(usi_block, radius) == offsetof(usi_block, g) + 24 &&
                   offsetof(usi_block, viscous) == offsetof(usi_block, R) + 24 &&
                   offsetof(usi_block, limit) == offsetof(usi_block, K) + 16 &&
                   offsetof(usi_block, rebound) == offsetof(usi_block, K) + 24,
               "the order of a block's numbers");

// A free body of an island: inertia about O, in world axes.
typedef struct usi_free {
    usi_v4 J[3], h;  // kg m^2, columns of the inertia about O; m c, mass in the spare lane
    usi_v4 pw,
        pv;  // N m s, N s: momentum it would have at the end of the step without blocks, M V0 + h F, about O
    usi_v4 w, v;      // twist about O: at entry the start value, at exit the solution
    usi_v4 fw, fv;    // twist at the end of the step without blocks
    usi_v4 inv_I[3];  // 1/(kg m^2), columns of the inverse inertia about the centre of mass
    usi_v4 c;         // m, centre of mass from O; the spare lane holds 1/mass
} usi_free;

// Point-block Gauss-Seidel over an island of free bodies: sweeps until no velocity changes by more than tol
// in a sweep (m/s; a body's radius of gyration turns rad/s into m/s), at least min_sweep, at most max_sweep
// times. Starts from g (warm) and sets w, v of the bodies accordingly first; sets `radius`. Needs inv_I, c,
// fw, fv of the bodies. `work` has usi_gauss_seidel_bytes(...) bytes. Returns the sweeps.
size_t usi_gauss_seidel_bytes(int32_t n_body, int32_t n_block);
int32_t usi_gauss_seidel(usi_free *body, int32_t n_body, usi_block *block, int32_t n_block, int32_t min_sweep,
                         int32_t max_sweep, double tol, void *work);

// fast/sweep_four.c: the same, four pairs of bodies at a time, by the threads of the pool (NULL: by the
// caller alone; it must not be at work already). The result is the same bits for any number of threads.
size_t usi_gauss_seidel_four_bytes(int32_t n_body, int32_t n_block);
int32_t usi_gauss_seidel_four(usi_free *body, int32_t n_body, usi_block *block, int32_t n_block,
                              int32_t min_sweep, int32_t max_sweep, double tol, void *work, usi_pool *pool);

// Rigid contact as a complementarity problem on dense rows. `A` (n x n, n = 3 n_point, row major) is the
// Delassus matrix of points with rows (normal, tangent, tangent); `b` the rows' velocities without impulses
// plus their offsets; u = A g + b; 0 <= gn, un >= 0, gn un = 0; friction opposes sliding within the circle mu
// gn. The results go to g; both start from it. `work` has usi_rigid_work(n_point) doubles. Direct: block
// pivoting; false when it ends at no solution (g is then unchanged). Iterative: projected Gauss-Seidel.
size_t usi_rigid_work(int32_t n_point);
bool usi_rigid_direct(int32_t n_point, const double *A, const double *b, const double *mu, double *g,
                      double *work);
int32_t usi_rigid_iterative(int32_t n_point, const double *A, const double *b, const double *mu, double *g,
                            int32_t max_sweep, double tol);

// A block-sparse matrix of square diagonal blocks of any sizes and its LU factors without pivoting (the
// matrices here are a mass matrix plus contact terms). Not symmetric in value, symmetric in structure. All
// memory comes from one caller's buffer.
typedef struct usi_sparse usi_sparse;
// Bytes that `usi_sparse_setup` may need at most for n units of the given sizes and n_pair pairs, fill
// included (dense).
size_t usi_sparse_bytes(int32_t n, const int32_t *size, int32_t n_pair);
// Orders the units (minimum degree), finds the fill, lays out the blocks, all zero. A pair may be given twice
// and in both orders. NULL when `bytes` is too small for the fill there is (less than usi_sparse_bytes often
// does), an index is outside, a size is below 1, or the units have more than 2^20 - 1 rows.
usi_sparse *usi_sparse_setup(void *memory, size_t bytes, int32_t n, const int32_t *size,
                             const int32_t (*pair)[2], int32_t n_pair);
// Zero in all blocks: to be called before the next matrix is added, since factors overwrite the blocks.
void usi_sparse_clear(usi_sparse *s);
// The same of the blocks that no pair of the setup has: enough where all the others are written, those of a
// pair by the first that has them.
void usi_sparse_clear_fill(usi_sparse *s);
bool usi_sparse_is_first(const usi_sparse *s, int32_t pair);
// Block (i, j) in row-major order with usi_sparse_stride(s, j) doubles from row to row, zero where nothing
// was added; NULL when not in the structure. 32-byte aligned. Lanes beyond the size of j must stay zero.
// Constant time.
double *usi_sparse_block(usi_sparse *s, int32_t i, int32_t j);
// Both blocks of a pair of the setup at once, (i, j) and (j, i) for pair (i, j).
void usi_sparse_pair_blocks(usi_sparse *s, int32_t pair, double **ij, double **ji);
int32_t usi_sparse_stride(const usi_sparse *s, int32_t j);  // size of unit j rounded up to 4
// False when a pivot is 0 or not finite.
bool usi_sparse_factor(usi_sparse *s);
// x = A^-1 x; x is in the units' own order, unit i at the sum of the sizes before it.
void usi_sparse_solve(usi_sparse *s, double *x);

#endif
