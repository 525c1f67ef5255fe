// Gauss-Markov noise and the Allan variance of what inertial units do.
#include "sense/noise_process.h"

// The maximum of the Allan deviation of a Gauss-Markov process over its stationary deviation, and that of
// flicker noise over its coefficient B: sqrt(2 ln 2 / pi).
static const double MARKOV_PEAK = 0.61736428, FLICKER_LEVEL = 0.66428247;

double usi_noise_markov(double deviation, double time, double interval, double normal, double *at) {
    if (!(deviation > 0)) return *at = 0;
    if (!(interval > 0) || !(time > 0)) return *at = deviation * normal;
    // 1 - exp(-2h) keeps its digits where the interval is short.
    const double kept = exp(-interval / time);
    *at = kept * *at + deviation * sqrt(-expm1(-2 * interval / time)) * normal;
    return *at;
}

double usi_noise_markov_deviation(double instability) { return instability * FLICKER_LEVEL / MARKOV_PEAK; }

// Means of two neighbouring times tau of a process with correlation s^2 exp(-|t| / T) differ by a variance
// of which half is, with x = tau / T:  s^2 / x^2 (2 x - 3 + 4 exp(-x) - exp(-2 x)).
double usi_noise_allan_variance(double white, double instability, double time, double walk, double tau) {
    const double s = usi_noise_markov_deviation(instability), x = time > 0 ? tau / time : 0;
    double markov = 0;
    if (x > 1e-3)
        markov = s * s / (x * x) * (2 * x - 3 + 4 * exp(-x) - exp(-2 * x));
    else if (x > 0)
        markov = s * s * (2.0 / 3) * x;  // the first term of its series
    return white * white / tau + markov + walk * walk * tau / 3;
}
