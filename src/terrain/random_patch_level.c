// The band of the spectrum that each level of the pyramid takes.
//
// The spectrum S(k) of the covariance is divided into bands an octave apart, with soft edges: sin^2 and cos^2
// of one angle, so that what one band leaves the next one takes. In radians per node of a level:
//
//     pi/12   pi/6    pi/4       pi/2                  pi
//       ./""""""""""""""""""""""""""""""""""""""""""""".    level 0 has no upper edge: up to the finest waves
//       ./""""""""""""""""""""""`.                          the others end at pi/6 .. pi/2, where two nodes
//                                                           still carry each wave; the finer level begins
//                                                           there, at its own pi/12 .. pi/4
//    """"""""""""""""""""""""""""`.                         the coarsest has no lower edge
//
// A band that stays away from k = 0 has a moving average of bounded reach, however long the correlations are:
// at the edge of the halo it has died away to some 1e-6 of its peak, and is cut there.
//
// Spectra come from the covariance itself. A constant has no waves: F(r) - F(b) is tapered to 0 from a to b,
// half the torus, which changes slow waves only. Level 0 samples it on the torus, finest waves with all their
// aliases. For the other levels S depends on |k| alone: by the projection theorem it is the transform of the
// sums along y, taken on samples at least four times as dense as the nodes. Near 0, where a covariance may be
// pointed, the samples are four times as dense again, and so on down to the spacing of the field, so that
// every level sees the same aliases: the rings of F, from far to near, blend softly into each other.
#include <math.h>
#include <string.h>

#include "math/v4_functions.h"
#include "terrain/random_patch.h"

enum {
    DENSE = 4,                            // samples to a node for the radial spectra
    REACH = DENSE * USI_PATCH_TORUS / 2,  // of them, to half the torus
    LINE = 16 * REACH,                    // of the transform that gives the radial spectrum
    RADIAL = LINE / 16 + 8,               // its values up to pi/2 per node, and some more
    STEPS = 8,                            // radial values of the covariance to a dense sample
    EXACT = 16  // dense samples within which the covariance is evaluated itself: it may be pointed at 0
};
// Where the covariance begins to be tapered to 0, as a fraction of half the torus: of the bands, and of the
// coarsest level; and of the finer samples, which end at half of their ring at most.
static const double SOFT_BAND = 0.1, SOFT_TOP = 0.6, NEAR = 0.5;
static const double NO_SHARE = 1e-12;  // of the variance: a level that has less is left out

static double one(usi_v4 x) { return x[0]; }

// Smooth step from 0 at 0 to 1 at 1, all derivatives 0 at both.
static double step(double u) {
    if (u <= 0.002) return 0;
    if (u >= 0.998) return 1;
    return 1 / (1 + one(usi_v4_exp(usi_v4_all(fmax(fmin(1 / u - 1 / (1 - u), 690), -690)))));
}

// Fraction of the power of a wave that a level takes, k in radians per node of it.
static double band(const usi_pyramid *p, int32_t level, double k) {
    usi_v4 s, c;
    double share = 1;
    if (level < p->n_level - 1) {
        usi_v4_sin_cos(usi_v4_all(0.5 * M_PI * step((k - M_PI / 12) / (M_PI / 6))), &s, &c);
        share *= s[0] * s[0];
    }
    if (level > 0) {
        double u = step((k - M_PI / 6) / (M_PI / 3));
        if (u >= 1) return 0;
        usi_v4_sin_cos(usi_v4_all(0.5 * M_PI * u), &s, &c);
        share *= c[0] * c[0];
    }
    return share;
}

// ---------------------------------------------------------------- radial spectra

// Ring of the covariance, from the near part, which finer samples cover, to its end.
typedef struct radial {
    const us_field_def *def;
    double dense;   // m between samples
    double end;     // m: where it is 0
    double base;    // F there
    double soft;    // from this fraction of `end` on it is tapered to 0
    double near;    // m: the end of the finer samples; 0: there are none
    double inner;   // m: the end of this ring itself, where it is not the last
    double *table;  // STEPS to a sample
} radial;

// Taper: 1 up to a fraction of `end`, 0 from `end` on.
static double within(double r, double end, double share) { return 1 - step((r / end - share) / (1 - share)); }

static double softened(const radial *f, double r) {
    if (r >= f->end || (f->inner > 0 && r >= f->inner)) return 0;
    double value = (usi_covariance_share(f->def, r) - f->base) * within(r, f->end, f->soft);
    if (f->inner > 0) value *= within(r, f->inner, NEAR);
    if (f->near > 0) value *= 1 - within(r, f->near, NEAR);
    return value;
}

static double between_four(const double *f, double at) {
    int32_t i = (int32_t)at;
    double d = at - i, a = f[i - 1], b = f[i], c = f[i + 1], e = f[i + 2];
    return b +
           d * (0.5 * (c - a) + d * (a - 2.5 * b + 2 * c - 0.5 * e + d * (0.5 * (e - a) + 1.5 * (b - c))));
}

static double sample(const radial *f, int32_t i, int32_t j) {
    double r = sqrt((double)i * i + (double)j * j);
    if (r >= (double)REACH) return 0;
    return r < (double)EXACT ? softened(f, r * f->dense) : between_four(f->table, r * (double)STEPS);
}

static void fill_table(const radial *f, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        f->table[i] = i / STEPS < EXACT - 1 ? 0 : softened(f, i * f->dense / (double)STEPS);
}

// Columns of the projection.
typedef struct columns {
    const radial *f;
    double *sum;
} columns;
static void project(void *context, int32_t i, int32_t thread) {
    (void)thread;
    const columns *c = context;
    double sum = sample(c->f, i, 0);
    int32_t last = (int32_t)sqrt((double)REACH * (double)REACH - (double)i * i);
    for (int32_t j = 1; j <= last; j++)
        sum += 2 * sample(c->f, i, j);
    c->sum[i] = sum;
}

// Adds the spectrum of a ring, over spacing^2 of the level, at |k| = pi q / (RADIAL - 8) / 2 per node.
static bool add_ring(usi_pyramid *p, radial *f, double spacing, double *spectrum) {
    usi_arena arena;
    usi_arena_init(&arena, &p->def->allocator);
    columns c = {f, usi_arena_alloc(&arena, sizeof(double) * (REACH + 1), 32)};
    void *roots = usi_arena_alloc(&arena, usi_fft_size(LINE), 32);
    usi_complex4 *x = usi_arena_alloc(&arena, sizeof *x * LINE, 64),
                 *work = usi_arena_alloc(&arena, sizeof *x * LINE, 64);
    bool is_good = c.sum && roots && x && work;
    if (is_good) {
        usi_fft fft = usi_fft_make(LINE, roots);
        fill_table(f, STEPS * REACH + 8);
        usi_pool_run(p->pool, REACH + 1, 16, project, &c);
        memset(x, 0, sizeof *x * LINE);
        for (int32_t i = 0; i <= REACH; i++)
            x[i].re[0] = x[(LINE - i) % LINE].re[0] = c.sum[i];
        const usi_complex4 *y = usi_fft_run(&fft, x, work);
        double share = f->dense / spacing;
        for (int32_t q = 0; q < RADIAL; q++) {
            double at = q * share * (double)DENSE, d;
            int32_t i = (int32_t)at;
            d = at - i;
            double a = y[i ? i - 1 : 1].re[0], b = y[i].re[0], e = y[i + 1].re[0], g = y[i + 2].re[0];
            spectrum[q] += share * share *
                           (b + d * (0.5 * (e - a) + d * (a - 2.5 * b + 2 * e - 0.5 * g +
                                                          d * (0.5 * (g - a) + 1.5 * (b - e)))));
        }
    }
    usi_arena_fini(&arena);
    return is_good;
}

// All rings, from the far one inwards, until the samples are as dense as those of the field.
static bool radial_spectrum(usi_pyramid *p, radial *f, double spacing, double *spectrum) {
    for (int32_t q = 0; q < RADIAL; q++)
        spectrum[q] = 0;
    f->dense = fmax(spacing / (double)DENSE, p->def->spacing);
    for (f->inner = 0;; f->inner = f->near, f->dense = fmax(f->dense / 4, p->def->spacing)) {
        f->near = f->dense > p->def->spacing ? (double)REACH * fmax(f->dense / 4, p->def->spacing) : 0;
        if (!add_ring(p, f, spacing, spectrum)) return false;
        if (f->near == 0) return true;
    }
}

// ---------------------------------------------------------------- even functions on the torus

typedef struct even {
    const usi_pyramid *p;
    double *quarter;
} even;

// Eight rows of a quarter: two even rows, one as the real and one as the imaginary part, are one transform.
static void transform_eight(void *context, int32_t batch, int32_t thread) {
    const even *e = context;
    usi_complex4 *x = e->p->work[2 * thread], *work = e->p->work[2 * thread + 1];
    int32_t first = 8 * batch, n = USI_PATCH_HALF - first < 8 ? USI_PATCH_HALF - first : 8;
    double *rows = e->quarter + (size_t)first * USI_PATCH_HALF;
    for (int32_t i = 0; i < USI_PATCH_TORUS; i++) {
        const double *from = rows + (i < USI_PATCH_HALF ? i : USI_PATCH_TORUS - i);
        for (int32_t l = 0; l < 8; l++)
            (l % 2 ? &x[i].im : &x[i].re)[0][l / 2] = l < n ? from[(size_t)l * USI_PATCH_HALF] : 0;
    }
    x = usi_fft_run(&e->p->fft, x, work);
    for (int32_t l = 0; l < n; l++) {
        for (int32_t i = 0; i < USI_PATCH_HALF; i++)
            rows[(size_t)l * USI_PATCH_HALF + (size_t)i] = l % 2 ? x[i].im[l / 2] : x[i].re[l / 2];
    }
}

// Transforms a function that is symmetric in x and y, as its transform is.
static void transform_even(const usi_pyramid *p, double *quarter) {
    even e = {p, quarter};
    for (int pass = 0; pass < 2; pass++) {
        usi_pool_run(p->pool, (USI_PATCH_HALF + 7) / 8, 1, transform_eight, &e);
        for (int32_t j = 0; j < USI_PATCH_HALF; j++) {
            for (int32_t i = 0; i < j; i++) {
                double *a = quarter + (size_t)j * USI_PATCH_HALF + i,
                       *b = quarter + (size_t)i * USI_PATCH_HALF + j, swap = *a;
                *a = *b;
                *b = swap;
            }
        }
    }
}

// Sum of squares over the whole torus.
static double sum_of_squares(const double *quarter) {
    double sum = 0;
    for (int32_t j = 0; j < USI_PATCH_HALF; j++) {
        double row = 0;
        for (int32_t i = 0; i < USI_PATCH_HALF; i++) {
            double q = quarter[(size_t)j * USI_PATCH_HALF + (size_t)i];
            row += (i == 0 || i == USI_PATCH_HALF - 1 ? 1 : 2) * q * q;
        }
        sum += (j == 0 || j == USI_PATCH_HALF - 1 ? 1 : 2) * row;
    }
    return sum;
}

// ---------------------------------------------------------------- levels

// Wave number of wave (i, j) of the torus, radians per node.
static double wave_number(int32_t i, int32_t j) {
    return 2 * M_PI / (double)USI_PATCH_TORUS * sqrt((double)i * i + (double)j * j);
}

// Fills the spectrum of a level: for level 0 the covariance on the torus, to be transformed; for the others
// the radial spectrum, interpolated.
static void fill_spectrum(const radial *f, int32_t level, const double *spectrum, double *out) {
    for (int32_t j = 0; j < USI_PATCH_HALF; j++) {
        for (int32_t i = 0; i < USI_PATCH_HALF; i++) {
            double *g = out + (size_t)j * USI_PATCH_HALF + i, k = wave_number(i, j);
            if (level == 0) {
                *g = sqrt((double)i * i + (double)j * j) < USI_PATCH_HALF - 1 ? sample(f, i, j) : 0;
            } else {
                double at = k * ((double)LINE / 8.0 / M_PI);
                *g = at < RADIAL - 4 ? (at < 1 ? spectrum[0] + at * at * (spectrum[1] - spectrum[0])
                                               : between_four(spectrum, at))
                                     : 0;
            }
        }
    }
}

// Variance over the torus in the positive and in the negative values of a spectrum.
typedef struct spectrum_sum {
    double kept, lost;
} spectrum_sum;

// Takes the level's band of the spectrum, and its root: the transform of the moving average.
static spectrum_sum take_band(const usi_pyramid *p, int32_t level, double *gain) {
    spectrum_sum sum = {0, 0};
    for (int32_t j = 0; j < USI_PATCH_HALF; j++) {
        for (int32_t i = 0; i < USI_PATCH_HALF; i++) {
            double *g = gain + (size_t)j * USI_PATCH_HALF + i, k = wave_number(i, j);
            double e = *g * band(p, level, k), n = (i == 0 || i == USI_PATCH_HALF - 1 ? 1 : 2) *
                                                   (j == 0 || j == USI_PATCH_HALF - 1 ? 1 : 2);
            sum.lost += n * fmax(-e, 0);
            sum.kept += n * fmax(e, 0);
            *g = sqrt(fmax(e, 0));
        }
    }
    return sum;
}

// Cuts the moving average off at the edge of the halo. Returns the ratio of its variances before and after.
static double cut_at_halo(const usi_pyramid *p, double *gain) {
    const double torus = (double)USI_PATCH_TORUS * (double)USI_PATCH_TORUS;
    double before = sum_of_squares(gain);
    transform_even(p, gain);
    for (int32_t j = 0; j < USI_PATCH_HALF; j++) {
        for (int32_t i = 0; i < USI_PATCH_HALF; i++) {
            double *g = gain + (size_t)j * USI_PATCH_HALF + i;
            *g = (int64_t)i * i + (int64_t)j * j <= (int64_t)USI_PATCH_HALO * USI_PATCH_HALO ? *g / torus : 0;
        }
    }
    transform_even(p, gain);
    return before / sum_of_squares(gain);
}

bool usi_level_make(usi_pyramid *p, int32_t level) {
    bool is_top = level == p->n_level - 1;
    double spacing = ldexp(p->def->spacing, level),
           *gain = usi_arena_alloc(&p->arena, sizeof *gain * USI_PATCH_HALF * USI_PATCH_HALF, 64);
    radial f = {.def = p->def,
                .dense = spacing,
                .end = 0.5 * (double)USI_PATCH_TORUS * spacing,
                .soft = is_top ? SOFT_TOP : SOFT_BAND};
    f.base = usi_covariance_share(p->def, f.end);
    if (is_top) f.base = p->level_share = fmax(f.base, 0);

    // Spectrum.
    usi_arena arena;
    usi_arena_init(&arena, &p->def->allocator);
    f.table = usi_arena_alloc(&arena, sizeof(double) * (STEPS * REACH + 8), 32);
    double *spectrum = usi_arena_alloc(&arena, sizeof(double) * RADIAL, 32);
    bool is_good = gain && f.table && spectrum;
    if (is_good && level == 0) fill_table(&f, STEPS * USI_PATCH_HALF + 8);
    if (is_good && level > 0) is_good = radial_spectrum(p, &f, spacing, spectrum);
    if (is_good) fill_spectrum(&f, level, spectrum, gain);
    usi_arena_fini(&arena);
    if (!is_good) return false;
    if (level == 0) transform_even(p, gain);

    // Gain. What was clipped and cut is made up for by the rest.
    const double torus = (double)USI_PATCH_TORUS * (double)USI_PATCH_TORUS;
    spectrum_sum sum = take_band(p, level, gain);
    p->level[level].clipped = sum.lost / torus;
    if (!(sum.kept / torus > NO_SHARE)) return true;
    double cut = is_top ? 1 : cut_at_halo(p, gain);
    double scale = sqrt(p->def->variance * cut * fmax(1 - sum.lost / sum.kept, 0)) / torus;
    for (size_t i = 0; i < (size_t)USI_PATCH_HALF * USI_PATCH_HALF; i++)
        gain[i] *= scale;
    p->level[level].gain = gain;
    return true;
}

double usi_pyramid_covariance(const usi_pyramid *p, double x, double y) {
    const double torus = (double)USI_PATCH_TORUS * (double)USI_PATCH_TORUS;
    double sum = p->level_share * p->def->variance;
    for (int32_t level = 0; level < p->n_level; level++) {
        const double *gain = p->level[level].gain;
        if (!gain) continue;
        double spacing = ldexp(p->def->spacing, level),
               wavenumber = 2 * M_PI / (double)USI_PATCH_TORUS / spacing;
        // Beyond twice their reach two averages have no noise in common.
        if (level < p->n_level - 1 &&
            x * x + y * y > 4.0 * (double)USI_PATCH_HALO * (double)USI_PATCH_HALO * spacing * spacing)
            continue;
        double along_x[USI_PATCH_HALF];
        for (int32_t i = 0; i < USI_PATCH_HALF; i++)
            along_x[i] = (i == 0 || i == USI_PATCH_HALF - 1 ? 1 : 2) * cos(wavenumber * i * x);
        for (int32_t j = 0; j < USI_PATCH_HALF; j++) {
            double row = 0;
            for (int32_t i = 0; i < USI_PATCH_HALF; i++) {
                double g = gain[(size_t)j * USI_PATCH_HALF + (size_t)i];
                row += g * g * along_x[i];
            }
            sum += (j == 0 || j == USI_PATCH_HALF - 1 ? 1 : 2) * row * cos(wavenumber * j * y) * torus;
        }
    }
    return sum;
}
