// Ground: random fields with a prescribed covariance.
//
// Any thread. docs/random-terrain.md has the mathematics.
#ifndef UNDERSTUDY_TERRAIN_H
#define UNDERSTUDY_TERRAIN_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(code, name): how alike two places at a distance r are, as a share of the variance.
#define US_COVARIANCE_LIST(X)                                                                              \
    X(US_COVARIANCE_EXPONENTIAL, "exponential") /* exp(-r/L): rough */                                     \
    X(US_COVARIANCE_GAUSSIAN, "gaussian")       /* exp(-(r/L)^2): smooth hills */                          \
    X(US_COVARIANCE_MATERN, "matern")           /* 2^(1-s)/Gamma(s) (r/L)^s K_s(r/L), s the smoothness */  \
    X(US_COVARIANCE_FRACTAL, "fractal")         /* the same: s is the Hurst exponent, L the outer scale */ \
    X(US_COVARIANCE_SPHERICAL, "spherical")     /* 1 - 1.5 r/L + 0.5 (r/L)^3 up to L, then 0 */            \
    X(US_COVARIANCE_TABLE, "table")             /* given by its values */

typedef enum us_covariance {
#define US_COVARIANCE_ENUM(code, name) code,
    US_COVARIANCE_LIST(US_COVARIANCE_ENUM)
#undef US_COVARIANCE_ENUM
        US_COVARIANCE_COUNT
} us_covariance;

US_API const char *us_covariance_name(us_covariance covariance);  // "" for a bad number
US_API us_covariance us_covariance_find(const char *name);        // US_COVARIANCE_COUNT when there is none of that name

typedef enum us_field_method {
    US_FIELD_EMBED,  // circulant embedding: normal, and exactly of that covariance
    US_FIELD_OUTER,  // a sum of turned outer products of two one-dimensional samples: of that covariance along its own axes only; for comparison
} us_field_method;

typedef struct us_field_def {
    us_allocator allocator;
    int32_t n_x, n_y;  // nodes
    double spacing;    // m
    uint64_t seed, stream;
    double mean, variance;
    us_covariance covariance;
    double length;      // m
    double smoothness;  // of matern and fractal; default 0.8
    int32_t n_table;    // values at r = 0, table_spacing, ...; linear between them, 0 behind them; the first is that of r = 0, the variance
    const double *table;
    double table_spacing;
    us_field_method method;
    int32_t n_outer;   // products in the sum; default 200
    int32_t n_thread;  // default 1; the field is the same for any number
} us_field_def;

US_API us_field_def us_field_def_default(void);

typedef struct us_field_info {
    int32_t m_x, m_y;    // nodes of the embedding
    double clipped;      // share of the variance that no normal field can have: 0 for a covariance that there is
    double least_eigen;  // the least eigenvalue over the greatest
} us_field_info;

// Fills n_x * n_y numbers, row by row (y slowest). The same definition gives the same bits on every machine. `out_info` may be NULL. Errors:
// US_ERR_VALUE with what is wrong in the definition; US_ERR_MEMORY. A table that no field can have is clipped to the nearest that one can: `clipped`.
US_API us_status us_field_make(const us_field_def *def, double *out, us_field_info *out_info, us_error *err);
// The covariance at a distance, as the definition says it; NaN for a bad definition.
US_API double us_field_covariance(const us_field_def *def, double r);

#ifdef __cplusplus
}
#endif
#endif
