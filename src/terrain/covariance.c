// The named covariance functions.
#include <math.h>
#include <string.h>

#include "math/v4_functions.h"
#include "terrain/random_field.h"

static const char *const names[] = {
#define US_COVARIANCE_NAME(code, name) name,
    US_COVARIANCE_LIST(US_COVARIANCE_NAME)
#undef US_COVARIANCE_NAME
};

const char *us_covariance_name(us_covariance covariance) {
    return covariance >= 0 && covariance < US_COVARIANCE_COUNT ? names[covariance] : "";
}

us_covariance us_covariance_find(const char *name) {
    int i = 0;
    while (i < US_COVARIANCE_COUNT && (!name || strcmp(names[i], name) != 0))
        i++;
    return (us_covariance)i;
}

// Exponential and logarithm with the same bits on every machine, which C libraries do not promise.
static double exact_exp(double x) { return x < -700 ? 0 : usi_v4_exp(usi_v4_all(x))[0]; }
static double exact_log(double x) { return usi_v4_log(usi_v4_all(x))[0]; }

// ln Gamma(x) for x > 0: Stirling's series, far enough up that its first terms are exact.
static double log_gamma(double x) {
    double shift = 0;
    while (x < 15) {
        shift += exact_log(x);
        x += 1;
    }
    double y = 1 / (x * x),
           series = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / x;
    return (x - 0.5) * exact_log(x) - x + 0.5 * exact_log(2 * M_PI) + series - shift;
}

// 2^(1-s)/Gamma(s) x^s K_s(x), with K_s(x) = integral of exp(-x cosh t) cosh(s t) over t > 0. The integrand
// is analytic in a strip of half width pi/2, so that the trapezoidal rule with step 1/4 errs by exp(-pi^2 /
// (1/4)), below the last digit.
static double matern(double s, double x) {
    if (x < 1e-12) return 1;
    if (s == 0.5) return exact_exp(-x);
    if (s == 1.5) return (1 + x) * exact_exp(-x);
    if (s == 2.5) return (1 + x + x * x / 3) * exact_exp(-x);
    const double step = 0.25;
    double scale = exact_log(2) * (1 - s) - log_gamma(s) + s * exact_log(x), sum = 0.5 * exact_exp(scale - x);
    for (int i = 1; i < 400; i++) {
        double t = step * i, e = exact_exp(t), exponent = scale - 0.5 * x * (e + 1 / e) + s * t;
        double term = 0.5 * exact_exp(exponent) * (1 + exact_exp(-2 * s * t));
        sum += term;
        if (exponent < -60 && x * e > 2 * s + 2) break;
    }
    return step * sum;
}

// The interval of a table that has a distance, as an index and a fraction of the interval.
static double table_place(const us_field_def *def, double r) {
    if (!def->table_at) return r / def->table_spacing;
    int32_t low = 0, high = def->n_table - 1;
    if (!(r < def->table_at[high])) return r == def->table_at[high] ? (double)high : (double)INFINITY;
    while (high - low > 1) {
        int32_t middle = (low + high) / 2;
        *(def->table_at[middle] <= r ? &low : &high) = middle;
    }
    return low + (r - def->table_at[low]) / (def->table_at[high] - def->table_at[low]);
}

static double table_share(const us_field_def *def, double r) {
    const double at = table_place(def, r);
    if (!(at < def->n_table - 1))
        return at == def->n_table - 1 ? def->table[def->n_table - 1] / def->table[0] : 0;
    const int32_t i = (int32_t)at;
    return (def->table[i] + (at - i) * (def->table[i + 1] - def->table[i])) / def->table[0];
}

double usi_covariance_share(const us_field_def *def, double r) {
    double x = r / def->length;
    switch (def->covariance) {
    case US_COVARIANCE_EXPONENTIAL:
        return exact_exp(-x);
    case US_COVARIANCE_GAUSSIAN:
        return exact_exp(-x * x);
    case US_COVARIANCE_MATERN:
    case US_COVARIANCE_FRACTAL:
        return matern(def->smoothness, x);
    case US_COVARIANCE_SPHERICAL:
        return x < 1 ? 1 - x * (1.5 - 0.5 * x * x) : 0;
    case US_COVARIANCE_TABLE:
        return table_share(def, r);
    case US_COVARIANCE_COUNT:
        break;
    }
    return NAN;
}

bool usi_covariance_is_slow(const us_field_def *def) {
    return (def->covariance == US_COVARIANCE_MATERN || def->covariance == US_COVARIANCE_FRACTAL) &&
           def->smoothness != 0.5 && def->smoothness != 1.5 && def->smoothness != 2.5;
}

us_field_def us_field_def_default(void) {
    return (us_field_def){.allocator = us_allocator_default(),
                          .n_x = 256,
                          .n_y = 256,
                          .spacing = 1,
                          .variance = 1,
                          .length = 10,
                          .smoothness = 0.8,
                          .n_outer = 200,
                          .n_thread = 1};
}

us_status usi_field_check(const us_field_def *def, us_error *err) {
    bool is_patch = def->method == US_FIELD_PATCH;
    if (def->n_x < 1 || def->n_y < 1 || (!is_patch && (int64_t)def->n_x * def->n_y > (int64_t)1 << 30) ||
        (is_patch && def->n_x > 1 << 24) || (is_patch && def->n_y > 1 << 24))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "give from 1 x 1 up to 2^30 nodes, or by US_FIELD_PATCH up to 2^24 each way",
                            "a field of %d x %d nodes", (int)def->n_x, (int)def->n_y);
    if (!(def->spacing > 0) || !isfinite(def->spacing))
        return us_error_set(err, US_ERR_VALUE, NULL, "give a spacing greater than 0, in m",
                            "the spacing is %g", def->spacing);
    if (!isfinite(def->mean) || !(def->variance >= 0) || !isfinite(def->variance))
        return us_error_set(err, US_ERR_VALUE, NULL, "give a number, and a variance that is not negative",
                            "mean %g and variance %g", def->mean, def->variance);
    if (def->covariance < 0 || def->covariance >= US_COVARIANCE_COUNT)
        return us_error_set(err, US_ERR_VALUE, NULL, "name one of us_covariance",
                            "invalid covariance number %d", (int)def->covariance);
    if (def->covariance == US_COVARIANCE_TABLE) {
        bool is_good = def->table && def->n_table >= 1 &&
                       (def->table_at || (def->table_spacing > 0 && isfinite(def->table_spacing)));
        for (int32_t i = 0; is_good && i < def->n_table; i++)
            is_good = isfinite(def->table[i]) && fabs(def->table[i]) <= def->table[0];
        for (int32_t i = 0; is_good && def->table_at && i < def->n_table; i++)
            is_good = i == 0 ? def->table_at[0] == 0
                             : def->table_at[i] > def->table_at[i - 1] && isfinite(def->table_at[i]);
        if (!is_good || !(def->table[0] > 0))
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "the first value is that of distance 0, greater than 0, none is greater than it, and "
                "distances grow",
                "invalid table of a covariance");
    } else if (!(def->length > 0) || !isfinite(def->length)) {
        return us_error_set(err, US_ERR_VALUE, NULL, "give a length greater than 0, in m",
                            "the length of the covariance is %g", def->length);
    }
    bool has_smoothness = def->covariance == US_COVARIANCE_MATERN || def->covariance == US_COVARIANCE_FRACTAL;
    double max_smoothness = def->covariance == US_COVARIANCE_FRACTAL ? 1 : 10;
    if (has_smoothness && !(def->smoothness >= 0.05 && def->smoothness <= max_smoothness))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "the smoothness lies between 0.05 and 10, a Hurst exponent between 0.05 and 1",
                            "the smoothness is %g", def->smoothness);
    if (def->method != US_FIELD_EMBED && !is_patch && (def->method != US_FIELD_OUTER || def->n_outer < 1))
        return us_error_set(err, US_ERR_VALUE, NULL, "take one of us_field_method, and at least one product",
                            "method %d with %d products", (int)def->method, (int)def->n_outer);
    return US_OK;
}

double us_field_covariance(const us_field_def *def, double r) {
    if (!def || usi_field_check(def, NULL) != US_OK || !(r >= 0)) return NAN;
    return def->variance * usi_covariance_share(def, r);
}
