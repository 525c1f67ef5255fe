// Laws of reflection: see reflectance.h.
//
// Lommel-Seeliger is scaled so that it is as bright as a rough surface of the same colour where light and eye
// stand at the zenith: w = 8 colour. Hapke (1981, 1986, without macroscopic roughness):
//
//     r = w / (4 pi) mu0 / (mu0 + mu) ((1 + B(g)) P(g) + H(mu0) H(mu) - 1)
//     B = B0 / (1 + tan(g / 2) / h),    P = (1 - b^2) / (1 - 2 b cos g + b^2)^(3/2)
//     H(x) = (1 + 2 x) / (1 + 2 x gamma),   gamma = sqrt(1 - w)
//
// The colour is the diffusive reflectance (1 - gamma) / (1 + gamma), so that w follows from it.
#include "sense/reflectance.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static double hapke(const usi_reflector *s, double colour, double mu0, double mu, double cosg) {
    const double gamma = (1 - colour) / (1 + colour), w = 1 - gamma * gamma, b = s->b;
    const double c = fmax(-1, fmin(1, cosg)), tangent = sqrt((1 - c) / fmax(1e-12, 1 + c));
    const double surge = s->b0 / (1 + tangent / s->h), base = 1 - 2 * b * c + b * b;
    const double phase = (1 - b * b) / (base * sqrt(base));
    const double often = (1 + 2 * mu0) / (1 + 2 * mu0 * gamma) * (1 + 2 * mu) / (1 + 2 * mu * gamma) - 1;
    return w / (4 * PI) * mu0 / (mu0 + mu) * ((1 + surge) * phase + often);
}

double usi_reflectance(const usi_reflector *s, double colour, double mu0, double mu, double cosg) {
    switch (s->reflection) {
    case USI_LOMMEL_SEELIGER:
        return 8 * colour / (4 * PI) * mu0 / (mu0 + mu);
    case USI_HAPKE:
        return hapke(s, colour, mu0, mu, cosg);
    default:
        return colour / PI * mu0;
    }
}
