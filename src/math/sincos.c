// Sine and cosine of many angles, four at a time.
//
// The angle is reduced by the nearest multiple of pi/2, subtracted in three parts (Cody and Waite: the first
// two have 33 bits, so that their products with a quadrant number below 2^20 are exact), then both
// polynomials are evaluated and chosen by quadrant. The coefficients are those of the fdlibm kernels (Sun
// Microsystems 1993), good to 2^-58 on |x| <= pi/4. An angle beyond 1e5, or one that is not a number, goes to
// the C library.
#include "math/v4.h"

static const double TWO_OVER_PI = 6.36619772367581382433e-01;
static const double PIO2_1 = 1.57079632673412561417e+00, PIO2_2 = 6.07710050630396597660e-11,
                    PIO2_3 = 2.02226624879595063154e-21;
static const double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to the nearest integer

static void sincos4(usi_v4 x, usi_v4 *out_sin, usi_v4 *out_cos) {
    usi_v4 shifted = x * TWO_OVER_PI + ROUND;
    usi_v4 k = shifted - ROUND;
    usi_v4i quadrant;
    __builtin_memcpy(&quadrant, &shifted, sizeof quadrant);
    // r + tail is the reduced angle; the tail keeps what r cannot hold.
    usi_v4 a = x - k * PIO2_1, b = k * PIO2_2;
    usi_v4 r = a - b, tail = (a - r) - b - k * PIO2_3;
    usi_v4 z = r * r;
    usi_v4 ps = z * (z * (z * (z * (z * 1.58969099521155010221e-10 - 2.50507602534068634195e-08) +
                               2.75573137070700676789e-06) -
                          1.98412698298579493134e-04) +
                     8.33333333332248946124e-03);
    usi_v4 s = r + (z * r * (ps - 1.66666666666666324348e-01) + tail * (1.0 - 0.5 * z));
    usi_v4 pc = z * (z * (z * (z * (z * (z * -1.13596475577881948265e-11 + 2.08757232129817482790e-09) -
                                    2.75573143513906633035e-07) +
                               2.48015872894767294178e-05) -
                          1.38888888888741095749e-03) +
                     4.16666666666666019037e-02);
    usi_v4 half = 0.5 * z, one = 1.0 - half;
    usi_v4 c = one + (((1.0 - one) - half) + (z * pc - r * tail));
    // Quadrant 1 and 3 swap sine and cosine; 2 and 3 change the sine's sign, 1 and 2 the cosine's.
    usi_v4i swap = -(quadrant & 1), sign_s = (quadrant & 2) << 62, sign_c = ((quadrant + 1) & 2) << 62;
    usi_v4i si, ci;
    __builtin_memcpy(&si, &s, sizeof si);
    __builtin_memcpy(&ci, &c, sizeof ci);
    usi_v4i so = ((si & ~swap) | (ci & swap)) ^ sign_s, co = ((ci & ~swap) | (si & swap)) ^ sign_c;
    __builtin_memcpy(out_sin, &so, sizeof so);
    __builtin_memcpy(out_cos, &co, sizeof co);
}

void usi_sincos(int n, const double *angle, double *out_sin, double *out_cos) {
    for (int i = 0; i < n; i += 4) {
        usi_v4 x = *(const usi_v4 *)(angle + i), s, c;
        sincos4(x, &s, &c);
        usi_v4i near = (x < 1e5) & (x > -1e5);
        if (!(near[0] & near[1] & near[2] & near[3])) {
            for (int j = 0; j < 4; j++) {
                s[j] = sin(x[j]);
                c[j] = cos(x[j]);
            }
        }
        *(usi_v4 *)(out_sin + i) = s;
        *(usi_v4 *)(out_cos + i) = c;
    }
}
