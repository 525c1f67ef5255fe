// Chip of a camera: see image_sensor.h.
#include "sense/image_sensor.h"

#include <math.h>

#include "base/random.h"

static const double PI = 3.14159265358979323846;
static const double PHOTON = 6.62607015e-34 * 299792458 / 550e-9;  // J, of green light
static const double SHORTEST = 1e-6, LONGEST = 1;                  // s, of exposures that are found

double usi_image_sensor_rate(const usi_image_sensor *s) {
    return PI / 4 / (s->aperture * s->aperture) * s->pitch * s->pitch * s->efficiency / PHOTON;
}

// Luminance is what counts; bins of 1/32 of a doubling, so that the result does not depend on an order.
double usi_image_sensor_meter(const usi_image_sensor *s, int64_t n, const float (*radiance)[3]) {
    enum { PER_DOUBLING = 32, BINS = 64 * PER_DOUBLING };
    static const double TARGET = 0.8, BRIGHT = 0.02;
    int64_t count[BINS] = {0}, total = 0, above = 0;
    for (int64_t i = 0; i < n; i++) {
        const double y = 0.2126 * (double)radiance[i][0] + 0.7152 * (double)radiance[i][1] +
                         0.0722 * (double)radiance[i][2];
        if (!(y > 0)) continue;
        const int bin = (int)(PER_DOUBLING * (log2(y) + 32));
        count[bin < 0 ? 0 : bin < BINS ? bin : BINS - 1]++;
        total++;
    }
    if (total == 0) return LONGEST;
    int bin = BINS - 1;
    for (; bin > 0; bin--) {
        above += count[bin];
        if ((double)above >= BRIGHT * (double)total) break;
    }
    const double bright = exp2((bin + 1.0) / PER_DOUBLING - 32),
                 time = TARGET * s->full_well / (s->gain * usi_image_sensor_rate(s) * bright);
    return fmax(SHORTEST, fmin(LONGEST, time));
}

// Mean 0, variance 1: eight numbers of 16 bits, whose sum is as good as normal up to four deviations and
// costs a fifth of an exact one. 2 x and 2 x + 1 are its counters.
static double normal_of(uint64_t key, uint64_t counter) {
    static const double deviation = 53509.3;  // sqrt(8 (2^32 - 1) / 12)
    const uint64_t a = usi_random_bits(key, 2 * counter), b = usi_random_bits(key, 2 * counter + 1);
    double sum = -8 * 32767.5;
    for (int i = 0; i < 64; i += 16)
        sum += (double)(a >> i & 0xffff) + (double)(b >> i & 0xffff);
    return sum / deviation;
}

// How many come where `mean` are expected. Many are as good as normal.
static double poisson(double mean, uint64_t key, uint64_t counter) {
    static const double many = 30;
    if (!(mean > 0)) return 0;
    if (mean >= many) return fmax(0, mean + sqrt(mean) * normal_of(key, counter));
    const double u = usi_random_uniform(key, 2 * counter);
    double share = exp(-mean), sum = share;
    int n = 0;
    for (; u > sum && n < 200; n++) {
        share *= mean / (n + 1);
        sum += share;
    }
    return n;
}

double usi_image_sensor_expose(const usi_image_sensor *s, double signal, double exposure,
                               uint64_t picture_key, uint64_t chip_key, uint64_t pixel) {
    const double dark = s->dark * exposure;
    if (!s->has_noise) return fmin(s->full_well, signal + dark);
    const double own = s->pattern > 0 ? fmax(0, 1 + s->pattern * normal_of(chip_key, pixel)) : 1;
    const double held = fmin(s->full_well, poisson(own * signal + dark, picture_key, 2 * pixel));
    const double read =
        s->read_noise > 0 ? held + s->read_noise * normal_of(picture_key, 2 * pixel + 1) : held;
    return read + s->excess * (read - fmin(s->full_well, signal + dark));
}

static double respond(const usi_image_sensor *s, double x) {
    if (s->is_linear) return x;
    return x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055;
}

static double undo_response(const usi_image_sensor *s, double y) {
    if (s->is_linear) return y;
    return y <= 0.04045 ? y / 12.92 : pow((y + 0.055) / 1.055, 2.4);
}

void usi_image_sensor_prepare(usi_image_sensor *s) {
    s->begins[0] = -INFINITY;
    s->begins[256] = INFINITY;
    for (int k = 1; k < 256; k++)
        s->begins[k] = undo_response(s, (k - 0.5) / 255);
    for (int i = 0, k = 0; i <= 1024; i++) {
        while (s->begins[k + 1] <= i / 1024.0)
            k++;
        s->first[i] = (uint8_t)k;
    }
}

uint32_t usi_image_sensor_number(const usi_image_sensor *s, double electrons) {
    double x = s->gain * fmin(electrons, s->full_well) / s->full_well;
    x = x > 0 ? (x < 1 ? x : 1) : 0;
    if (s->bits == 16) return (uint32_t)(65535 * respond(s, x) + 0.5);
    uint32_t k = s->first[(int)(1024 * x)];
    while (s->begins[k + 1] <= x)
        k++;
    return k;
}
