// Stockham's Fourier transform of radix 4: each pass reads one array and writes the other, in an order that
// leaves the result sorted.
//
// Four sequences are transformed together, one per lane, so that every operation is a whole register and the
// roots of unity are the same for all. A power of two that is none of four takes one pass of radix 2 at the
// end.
#include "terrain/fft.h"

#include <math.h>

#include "math/v4_functions.h"

size_t usi_fft_size(int32_t n) { return (size_t)n * 2 * sizeof(double); }

usi_fft usi_fft_make(int32_t n, void *memory) {
    double *root = memory;
    for (int32_t k = 0; k < n; k++) {
        // Computed within a quadrant, and then moved by quadrants, which is exact.
        int64_t quarter = 4 * (int64_t)k / n;
        usi_v4 s, c;
        usi_v4_sin_cos(usi_v4_all(0.5 * M_PI * (double)(4 * (int64_t)k - quarter * n) / n), &s, &c);
        double cosine[4] = {c[0], -s[0], -c[0], s[0]}, sine[4] = {s[0], c[0], -s[0], -c[0]};
        root[2 * k] = cosine[quarter];
        root[2 * k + 1] = sine[quarter];
    }
    return (usi_fft){n, root};
}

static inline usi_complex4 add(usi_complex4 a, usi_complex4 b) {
    return (usi_complex4){a.re + b.re, a.im + b.im};
}
static inline usi_complex4 sub(usi_complex4 a, usi_complex4 b) {
    return (usi_complex4){a.re - b.re, a.im - b.im};
}
// a times the root of unity c - i s.
static inline usi_complex4 mul_root(usi_complex4 a, const double *root) {
    double c = root[0], s = root[1];
    return (usi_complex4){a.re * c + a.im * s, a.im * c - a.re * s};
}

// One pass of radix 4 over `stride` sequences of `length` points, into which the passes before have divided
// it.
static void pass_radix4(const usi_fft *fft, int32_t length, int32_t stride, const usi_complex4 *x,
                        usi_complex4 *y) {
    int32_t quarter = length / 4, step = fft->n / length;
    for (int32_t p = 0; p < quarter; p++) {
        const double *r1 = fft->root + 2 * (size_t)(p * step), *r2 = fft->root + 4 * (size_t)(p * step),
                     *r3 = fft->root + 6 * (size_t)(p * step);
        const usi_complex4 *from = x + (size_t)stride * (size_t)p;
        usi_complex4 *to = y + (size_t)stride * 4 * (size_t)p;
        size_t far = (size_t)stride * (size_t)quarter;
        for (int32_t q = 0; q < stride; q++) {
            usi_complex4 a = from[q], b = from[far + (size_t)q], c = from[2 * far + (size_t)q],
                         d = from[3 * far + (size_t)q];
            usi_complex4 ac = add(a, c), bd = add(b, d), a_c = sub(a, c), b_d = sub(b, d),
                         i_b_d = {-b_d.im, b_d.re};
            to[q] = add(ac, bd);
            to[stride + q] = mul_root(sub(a_c, i_b_d), r1);
            to[2 * stride + q] = mul_root(sub(ac, bd), r2);
            to[3 * stride + q] = mul_root(add(a_c, i_b_d), r3);
        }
    }
}

static void pass_radix2(int32_t stride, const usi_complex4 *x, usi_complex4 *y) {
    for (int32_t q = 0; q < stride; q++) {
        usi_complex4 a = x[q], b = x[stride + q];
        y[q] = add(a, b);
        y[stride + q] = sub(a, b);
    }
}

usi_complex4 *usi_fft_run(const usi_fft *fft, usi_complex4 *x, usi_complex4 *work) {
    int32_t length = fft->n, stride = 1;
    for (; length >= 4; length /= 4, stride *= 4) {
        pass_radix4(fft, length, stride, x, work);
        usi_complex4 *swap = x;
        x = work;
        work = swap;
    }
    if (length == 1) return x;
    pass_radix2(stride, x, work);
    return work;
}
