// Texture of ground where no picture of it is known: noise of all sizes, so that it looks the same from far
// and near, and so that a stereo matcher finds something to hold on to.
//
// Each size of grains is a lattice of random numbers that are mixed smoothly in between. Sizes halve from the
// largest on, down to twice what a pixel shows; the last one fades in. All sizes have the same strength, as
// the dust and stones of a planet's ground roughly have.
#include <math.h>
#include <stdint.h>

#include "sim/sim__picture.h"

static const double LARGEST = 0.64, SMALLEST = 0.0012;  // m, from grain to grain
enum { MAX_SIZE = 10 };

// -1 to 1, of a point of the lattice.
static double grain(int32_t x, int32_t y, uint32_t layer) {
    uint32_t h = (uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca77u ^ layer * 0xc2b2ae3du;
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    h ^= h >> 12;
    h *= 0x297a2d39u;
    h ^= h >> 15;
    return (double)h * (2.0 / 4294967295.0) - 1;
}

static double smooth(double t) { return t * t * (3 - 2 * t); }

static double layer_at(double x, double y, uint32_t layer) {
    const double i = floor(x), j = floor(y), u = smooth(x - i), v = smooth(y - j);
    // Places beyond the numbers of a lattice come again.
    const int32_t a = (int32_t)fmod(i, 1e9), b = (int32_t)fmod(j, 1e9);
    const double low = grain(a, b, layer) * (1 - u) + grain(a + 1, b, layer) * u,
                 high = grain(a, b + 1, layer) * (1 - u) + grain(a + 1, b + 1, layer) * u;
    return low * (1 - v) + high * v;
}

double usi_picture_texture(double x, double y, double footprint, double contrast) {
    // Of one layer: that of a number between -1 and 1, smoothed both ways, is sqrt(1 / 3) times 26 / 35.
    static const double deviation = 0.42889;
    double sum = 0, weight = 0, size = LARGEST;
    if (!(contrast > 0)) return 1;
    for (uint32_t k = 0; k < MAX_SIZE && size >= SMALLEST; k++, size *= 0.5) {
        const double share = fmin(1, size / (2 * footprint) - 1);
        if (!(share > 0)) break;
        // Layers are shifted against each other, so that their lattices have no common points.
        sum += share * layer_at(x / size + 0.37 * k, y / size + 0.71 * k, k);
        weight += share * share;
    }
    if (!(weight > 0)) return 1;
    // Of all sizes together: as much as `contrast`, where all of them are seen.
    return fmax(0.05, 1 + contrast * sum / (deviation * sqrt(MAX_SIZE)));
}
