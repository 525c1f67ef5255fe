// Random fields of any size: the levels of the pyramid, and its patches.
#ifndef USI_TERRAIN_RANDOM_PATCH_H
#define USI_TERRAIN_RANDOM_PATCH_H

#include "base/memory.h"
#include "base/pool.h"
#include "terrain/fft.h"
#include "terrain/random_field.h"

// A patch in nodes of its level: what it owns, what it knows beyond that on each side for the finer level,
// how far its moving average reaches, and the torus on which it is made: OWN + 2 (MARGIN + HALO).
enum {
    USI_PATCH_OWN = 768,
    USI_PATCH_MARGIN = 16,
    USI_PATCH_HALO = 112,
    USI_PATCH_SPAN = USI_PATCH_OWN + 2 * USI_PATCH_MARGIN,
    USI_PATCH_TORUS = 1024,
    USI_PATCH_HALF = USI_PATCH_TORUS / 2 + 1,
    USI_PATCH_TOP = 180,   // nodes that the coarsest level may have each way
    USI_PATCH_LEVELS = 24  // of 2^24 nodes each way
};

typedef struct usi_level {
    // HALF x HALF: factor of wave (kx, ky) of the torus, 1 / TORUS^2 included; NULL: nothing of the spectrum.
    double *gain;
    double clipped;  // fraction of the variance that was below 0 in its spectrum
} usi_level;

typedef struct usi_pyramid {
    const us_field_def *def;
    usi_arena arena;
    usi_fft fft;
    int32_t n_level;  // the last is the coarsest
    usi_level level[USI_PATCH_LEVELS];
    double level_share;  // fraction of the variance that all places have in common
    usi_pool *pool;
    usi_complex4 **work;                 // two arrays of TORUS for each thread
    usi_complex4 *torus;                 // TORUS rows
    double *between;                     // rows of the coarser level, with the columns of the finer
    double *patch[USI_PATCH_LEVELS][2];  // SPAN x SPAN: two neighbours of each level
} usi_pyramid;

// Prepares the pyramid of a definition that was checked; the pool is borrowed. Errors: US_ERR_MEMORY.
us_status usi_pyramid_init(usi_pyramid *p, const us_field_def *def, usi_pool *pool, us_error *err);
void usi_pyramid_fini(usi_pyramid *p);

// random_patch_level.c: the spectra. False when there is no memory.
bool usi_level_make(usi_pyramid *p, int32_t level);
// The resulting covariance at (x, y) m: exactly, from the gains, for tests.
double usi_pyramid_covariance(const usi_pyramid *p, double x, double y);

// Makes patches (u, v) and (u + 1, v) of a level, u even, from the patch (u/2, v/2) above, which lies in
// `parent` (NULL for the coarsest).
void usi_patch_make(usi_pyramid *p, int32_t level, int32_t u, int32_t v, const double *parent);

#endif
