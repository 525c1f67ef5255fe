// Fourier transforms of four sequences at once, one in each lane.
#ifndef USI_TERRAIN_FFT_H
#define USI_TERRAIN_FFT_H

#include "math/v4.h"
#include "understudy/base.h"

typedef struct usi_complex4 {
    usi_v4 re, im;
} usi_complex4;

typedef struct usi_fft {
    int32_t n;           // a power of two, at least 2
    const double *root;  // cos and sin of 2 pi k / n for k < n, interleaved
} usi_fft;

// Memory of the roots, bytes, aligned as doubles; and their computation there.
size_t usi_fft_size(int32_t n);
usi_fft usi_fft_make(int32_t n, void *memory);
// The transform sum_j x_j exp(-2 pi i j k / n), in order. `work` is as long as x. Returns x or work,
// whichever has the result.
usi_complex4 *usi_fft_run(const usi_fft *fft, usi_complex4 *x, usi_complex4 *work);

#endif
