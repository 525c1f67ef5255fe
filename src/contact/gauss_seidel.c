// Block Gauss-Seidel: one contact point after the other gets the impulse that its law asks for while the rest
// stands still.
//
// For large piles of free bodies, where a few sweeps over compliant rows cost less than one factorisation.
// What makes it fast is what a visit does not touch:
//
//   * Twists are kept about each body's centre of mass and as the CHANGE against the motion without blocks,
//   so that the free
//     motion goes into the rows' offsets once and a body without freedom (infinite mass) needs no special
//     case.
//   * The angular part is scaled by the square root of the inertia: I^-1 = L L^T, w = L x. A row j = L^T (r x
//   d) then serves both ways:
//
//         u = jA . xA + jB . xB + d . (vA - vB),        xA += jA g,   xB += jB g,   vA += d g / mA,   vB -= d
//         g / mB
//
//     Nine vectors per block are read, in one straight line of memory; the bodies' 64 bytes each stay in the
//     cache.
//   * The point's own 3x3 problem is solved exactly (contact__law.h): stick is one small product, slip one
//   evaluation.
//
// The world is a body that is read in one place (all zero) and written in another, so that blocks on the
// ground do not wait for each other. Sweeps always go the same way: going forth and back converges no faster
// when only a few are made, and what is left of the error then rings from step to step (a stack of ten leans
// to and fro for ever with four sweeps).
#include <string.h>

#include "contact/contact__sweep.h"

size_t usi_gauss_seidel_bytes(int32_t n_body, int32_t n_block) {
    size_t n = (size_t)n_body + USI_SWEPT_FIRST;
    return 64 + usi_sweep_up(2 * n * sizeof(usi_swept)) + usi_sweep_up(n * sizeof(usi_swept_factor)) +
           usi_sweep_up((size_t)n_block * sizeof(usi_sweep_row)) + usi_sweep_order_bytes(n_body, n_block);
}

int32_t usi_gauss_seidel(usi_free *body, int32_t n_body, usi_block *block, int32_t n_block, int32_t min_sweep,
                         int32_t max_sweep, double tol, void *work) {
    const int32_t n = n_body + USI_SWEPT_FIRST;
    char *memory = (char *)work + ((64 - ((uintptr_t)work & 63)) & 63);
    usi_swept *now = (usi_swept *)memory, *before = now + n;
    usi_swept_factor *factors =
        (usi_swept_factor *)(memory + usi_sweep_up(2 * (size_t)n * sizeof(usi_swept)));
    usi_sweep_row *rows =
        (usi_sweep_row *)((char *)factors + usi_sweep_up((size_t)n * sizeof(usi_swept_factor)));
    usi_sweep_order order;
    usi_sweep_find_order(block, n_block, n_body,
                         (char *)rows + usi_sweep_up((size_t)n_block * sizeof(usi_sweep_row)), &order);

    memset(now, 0, 2 * (size_t)n * sizeof *now);
    memset(factors, 0, USI_SWEPT_FIRST * sizeof *factors);
    for (int32_t i = 0; i < n_body; i++) {
        usi_swept_factorise(&body[i], &factors[i + USI_SWEPT_FIRST]);
        now[i + USI_SWEPT_FIRST].v[3] = before[i + USI_SWEPT_FIRST].v[3] = body[i].c[3];
    }
    for (int32_t i = 0; i < n_block; i++) {
        usi_sweep_make_row(factors, &block[i], i, &rows[i]);
        usi_sweep_apply(now, &rows[i], rows[i].g);
    }

    int32_t sweep = 0;
    while (sweep < max_sweep) {
        if (sweep + 1 >= min_sweep && sweep + 1 < max_sweep) memcpy(before, now, (size_t)n * sizeof *now);
        for (int32_t p = 0; p < order.n_pair; p++) {
            for (int32_t i = order.pair[p].first; i < order.pair[p].first + order.pair[p].n; i++)
                usi_sweep_visit(now, rows, i, block);
        }
        sweep++;
        if (sweep >= min_sweep && sweep < max_sweep &&
            usi_sweep_changed(now, before, USI_SWEPT_FIRST, n) < tol * tol)
            break;
    }

    for (int32_t i = 0; i < n_body; i++)
        usi_swept_finish(&factors[i + USI_SWEPT_FIRST], &now[i + USI_SWEPT_FIRST], &body[i]);
    for (int32_t i = 0; i < n_block; i++) {
        usi_block *k = &block[i];
        for (int j = 0; j < 3; j++)
            k->g[j] = rows[i].g[j];
        k->radius = usi_friction_radius(k, i > 0 ? rows[i - 1].g[0] : 0);
    }
    return sweep;
}
