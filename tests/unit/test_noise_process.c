// Noise of instruments: mean, deviation and autocorrelation of 10^6 samples, and the Allan deviation of an
// inertial unit's noise, against theory.
//
// Bounds are five standard deviations of the estimate itself, so that a right process fails once in two
// million runs, and none here, since the numbers are the same in each. Of n independent samples of deviation
// s the mean has a deviation of s / sqrt(n), the deviation one of s / sqrt(2 n), an autocorrelation one of 1
// / sqrt(n). A process of correlation time T at an interval h has n h / 2 T independent samples.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sense/noise_process.h"
#include "understudy/base.h"

enum { N = 1000000 };
static double x[N];

static double normal(uint64_t stream, int i) { return us_random_normal(20, stream, (uint64_t)i); }

static double mean_of(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

// Mean of the products of samples that are `lag` apart.
static double product_of(int n, int lag, double mean) {
    double sum = 0;
    for (int i = 0; i + lag < n; i++)
        sum += (x[i] - mean) * (x[i + lag] - mean);
    return sum / (n - lag);
}

static void white_noise_has_its_density_at_any_rate(void **state) {
    (void)state;
    static const double rates[] = {1, 100, 1000};
    const double density = 0.003;
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < N; i++)
            x[i] = usi_noise_white(density, 1 / rates[r], normal((uint64_t)r, i));
        const double s = density * sqrt(rates[r]), mean = mean_of(N),
                     deviation = sqrt(product_of(N, 0, mean));
        assert_true(fabs(mean) < 5 * s / sqrt(N));
        assert_true(fabs(deviation / s - 1) < 5 / sqrt(2.0 * N));
        for (int lag = 1; lag <= 10; lag++)
            assert_true(fabs(product_of(N, lag, mean)) / (s * s) < 5 / sqrt(N));
    }
    assert_true(usi_noise_white(density, 0, 1) == 0 && usi_noise_white(0, 0.01, 1) == 0);
}

static void a_walks_steps_are_independent_and_grow_with_time(void **state) {
    (void)state;
    const double density = 0.2, interval = 0.01, s = density * sqrt(interval);
    double at = 0, last = 0;
    for (int i = 0; i < N; i++) {
        const double now = usi_noise_walk(density, interval, normal(5, i), &at);
        x[i] = now - last;
        last = now;
    }
    assert_true(at == last);
    const double mean = mean_of(N);
    assert_true(fabs(mean) < 5 * s / sqrt(N));
    assert_true(fabs(sqrt(product_of(N, 0, mean)) / s - 1) < 5 / sqrt(2.0 * N));
    assert_true(fabs(product_of(N, 1, mean)) / (s * s) < 5 / sqrt(N));
    // After 100 s the walk is K sqrt(100) away: 10000 walks of 100 samples, 1 s each.
    enum { WALKS = 10000, STEPS = 100 };
    double sum = 0;
    for (int w = 0; w < WALKS; w++) {
        double place = 0;
        for (int i = 0; i < STEPS; i++)
            usi_noise_walk(density, 1, normal(6, STEPS * w + i), &place);
        sum += place * place;
    }
    assert_true(fabs(sqrt(sum / WALKS) / (density * 10) - 1) < 5 / sqrt(2.0 * WALKS));
}

static void gauss_markov_noise_forgets_at_its_time(void **state) {
    (void)state;
    const double s = 0.7, time = 0.5;
    static const double intervals[] = {0.1, 0.5, 5};
    for (int k = 0; k < 3; k++) {
        const double h = intervals[k], independent = N * fmin(h / (2 * time), 1);
        double at = 0;
        x[0] = usi_noise_markov(s, time, 0, normal(7, 0), &at);  // from the stationary distribution
        for (int i = 1; i < N; i++)
            x[i] = usi_noise_markov(s, time, h, normal(7, i), &at);
        const double mean = mean_of(N), variance = product_of(N, 0, mean);
        assert_true(fabs(mean) < 5 * s / sqrt(independent));
        assert_true(fabs(sqrt(variance) / s - 1) < 5 / sqrt(2 * independent));
        for (int lag = 1; lag <= 20; lag += 3)
            assert_true(fabs(product_of(N, lag, mean) / variance - exp(-lag * h / time)) <
                        5 / sqrt(independent));
    }
}

// Each interval is a process of the same statistics: two steps of h and one of 2h.
static void the_interval_does_not_matter(void **state) {
    (void)state;
    const double kept = exp(-0.3), forgotten = sqrt(1 - kept * kept);
    double once = 2, twice = 2;
    usi_noise_markov(1, 1, 0.3, 0, &once);
    assert_true(fabs(once - 2 * kept) < 1e-15);
    usi_noise_markov(1, 1, 0.15, 0, &twice);
    usi_noise_markov(1, 1, 0.15, 0, &twice);
    assert_true(fabs(once - twice) < 1e-15);
    double pushed = 0;
    assert_true(fabs(usi_noise_markov(1, 1, 0.3, 1, &pushed) - forgotten) < 1e-15);
}

// Rounding a signal that crosses many units adds a deviation of one over the square root of 12 units, with no
// correlation.
static void rounding_adds_a_twelfth(void **state) {
    (void)state;
    const double unit = 0.01;
    for (int i = 0; i < N; i++) {
        const double signal = 3 * normal(8, i);
        x[i] = usi_noise_round(unit, signal) - signal;
    }
    const double mean = mean_of(N), s = unit / sqrt(12);
    assert_true(fabs(mean) < 5 * s / sqrt(N));
    // Of an even distribution the fourth moment is 9/5 s^4: the deviation's deviation is s sqrt(0.2 / n).
    assert_true(fabs(sqrt(product_of(N, 0, mean)) / s - 1) < 5 * sqrt(0.2 / N));
    for (int lag = 1; lag <= 5; lag++)
        assert_true(fabs(product_of(N, lag, mean)) / (s * s) < 5 / sqrt(N));
    assert_true(usi_noise_round(0, 0.123) == 0.123 && usi_noise_round(0.5, 0.74) == 0.5);
    assert_true(usi_noise_limit(2, 3) == 2 && usi_noise_limit(2, -3) == -2 && usi_noise_limit(0, 9) == 9);
}

// ---------------------------------------------------------------- the Allan deviation

// Of x at m samples: half the mean square of the differences of neighbouring means, overlapping.
static double allan_variance(const double *sum, int n, int m) {
    double total = 0;
    int count = 0;
    for (int i = 0; i + 2 * m <= n; i++, count++) {
        const double d = (sum[i + 2 * m] - 2 * sum[i + m] + sum[i]) / m;
        total += d * d;
    }
    return total / (2.0 * count);
}

// A gyroscope with all three at 100 Hz and at 10 Hz. Times up to a two-hundredth of the record are looked at:
// there are at least 200 neighbours of each, and with overlap the variance has a relative deviation of about
// sqrt(2 / 300), the Allan deviation 4 %. Averaged over 16 records that is 1 %, and 5 % is five of these.
static void check_allan(double rate, int records) {
    const double white = 0.01, instability = 0.02, time = 3, walk = 0.004, h = 1 / rate;
    enum { TAUS = 14 };
    double found[TAUS] = {0};
    static double sum[N + 1];
    const int n = (int)(1e4 * rate) < N ? (int)(1e4 * rate) : N;
    for (int record = 0; record < records; record++) {
        double bias = 0, drift = 0;
        const uint64_t stream = 100 + 3 * (uint64_t)record;
        usi_noise_markov(usi_noise_markov_deviation(instability), time, 0, normal(stream, N), &bias);
        sum[0] = 0;
        for (int i = 0; i < n; i++) {
            const double reading =
                usi_noise_white(white, h, normal(stream + 1, i)) +
                usi_noise_markov(usi_noise_markov_deviation(instability), time, h, normal(stream, i), &bias) +
                usi_noise_walk(walk, h, normal(stream + 2, i), &drift);
            sum[i + 1] = sum[i] + reading;
        }
        int m = 1;
        for (int t = 0; t < TAUS && 200 * m <= n; t++, m *= 2)
            found[t] += allan_variance(sum, n, m) / records;
    }
    double worst = 0;
    int m = 1;
    for (int t = 0; t < TAUS && 200 * m <= n; t++, m *= 2) {
        const double tau = m * h, want = usi_noise_allan_variance(white, instability, time, walk, tau);
        double off = sqrt(found[t] / want) - 1;
        // Below some samples' length the sampled Gauss-Markov and walk are constant within a sample: their
        // part is smaller than that of the continuous ones, and small beside the white noise.
        if (fabs(off) > worst) worst = fabs(off);
        if (!(fabs(off) < 0.05)) fail_msg("at %g s and %g Hz: %.2f %% off", tau, rate, 100 * off);
    }
    print_message("Allan deviation at %g Hz: worst %.2f %%\n", rate, 100 * worst);
}

static void an_inertial_units_allan_deviation_is_its_parameters(void **state) {
    (void)state;
    check_allan(100, 16);
    check_allan(10, 16);
}

// The curve's three parts one by one: slopes -1/2 and +1/2, and the peak of the Gauss-Markov process at 1.89
// times its correlation time, at 0.664 B.
static void the_curve_has_its_slopes_and_its_level(void **state) {
    (void)state;
    assert_true(fabs(sqrt(usi_noise_allan_variance(0.3, 0, 1, 0, 4)) - 0.15) < 1e-15);
    assert_true(fabs(sqrt(usi_noise_allan_variance(0, 0, 1, 0.3, 12)) - 0.6) < 1e-15);
    double peak = 0, place = 0;
    for (double tau = 1; tau < 3; tau += 1e-4) {
        const double level = sqrt(usi_noise_allan_variance(0, 2, 1, 0, tau));
        if (level <= peak) continue;
        peak = level;
        place = tau;
    }
    assert_true(fabs(peak - 2 * 0.66428247) < 1e-7 && fabs(place - 1.8926) < 1e-3);
    // The series and the closed form meet where one takes over from the other.
    const double below = usi_noise_allan_variance(0, 1, 1, 0, 0.999e-3),
                 above = usi_noise_allan_variance(0, 1, 1, 0, 1.001e-3);
    assert_true(fabs(above / below - 1.001 / 0.999) < 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_noise_has_its_density_at_any_rate),
        cmocka_unit_test(a_walks_steps_are_independent_and_grow_with_time),
        cmocka_unit_test(gauss_markov_noise_forgets_at_its_time),
        cmocka_unit_test(the_interval_does_not_matter),
        cmocka_unit_test(rounding_adds_a_twelfth),
        cmocka_unit_test(an_inertial_units_allan_deviation_is_its_parameters),
        cmocka_unit_test(the_curve_has_its_slopes_and_its_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
