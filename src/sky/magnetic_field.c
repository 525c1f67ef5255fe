// The Earth's magnetic field: the World Magnetic Model of 2025 (NOAA and the British Geological Survey).
//
// The field is minus the gradient of the potential
//
//     V = a sum_n (a/r)^(n+1) sum_m (g cos m l + h sin m l) P_nm(sin f)
//
// with a = 6371.2 km, f and l the geocentric latitude and longitude, P the Schmidt semi-normalised Legendre
// functions; g and h grow evenly from 2025 on.
#include "sky/ephemeris.h"

enum { DEGREE_MAX = 12, N_ROW = 90 };

// g and h of 2025.0, nT, and what they grow by in a year; row by row: n from 1, m from 0 to n.
static const double model[N_ROW][4] = {
    // clang-format off
    {-29351.8, 0, 12, 0}, {-1410.8, 4545.4, 9.7, -21.5}, {-2556.6, 0, -11.6, 0},
    {2951.1, -3133.6, -5.2, -27.7}, {1649.3, -815.1, -8, -12.1}, {1361, 0, -1.3, 0},
    {-2404.1, -56.6, -4.2, 4}, {1243.8, 237.5, 0.4, -0.3}, {453.6, -549.5, -15.6, -4.1},
    {895, 0, -1.6, 0}, {799.5, 278.6, -2.4, -1.1}, {55.7, -133.9, -6, 4.1}, {-281.1, 212, 5.6, 1.6},
    {12.1, -375.6, -7, -4.4}, {-233.2, 0, 0.6, 0}, {368.9, 45.4, 1.4, -0.5}, {187.2, 220.2, 0, 2.2},
    {-138.7, -122.9, 0.6, 0.4}, {-142, 43, 2.2, 1.7}, {20.9, 106.1, 0.9, 1.9}, {64.4, 0, -0.2, 0},
    {63.8, -18.4, -0.4, 0.3}, {76.9, 16.8, 0.9, -1.6}, {-115.7, 48.8, 1.2, -0.4},
    {-40.9, -59.8, -0.9, 0.9}, {14.9, 10.9, 0.3, 0.7}, {-60.7, 72.7, 0.9, 0.9}, {79.5, 0, 0, 0},
    {-77, -48.9, -0.1, 0.6}, {-8.8, -14.4, -0.1, 0.5}, {59.3, -1, 0.5, -0.8}, {15.8, 23.4, -0.1, 0},
    {2.5, -7.4, -0.8, -1}, {-11.1, -25.1, -0.8, 0.6}, {14.2, -2.3, 0.8, -0.2}, {23.2, 0, -0.1, 0},
    {10.8, 7.1, 0.2, -0.2}, {-17.5, -12.6, 0, 0.5}, {2, 11.4, 0.5, -0.4}, {-21.7, -9.7, -0.1, 0.4},
    {16.9, 12.7, 0.3, -0.5}, {15, 0.7, 0.2, -0.6}, {-16.8, -5.2, 0, 0.3}, {0.9, 3.9, 0.2, 0.2},
    {4.6, 0, 0, 0}, {7.8, -24.8, -0.1, -0.3}, {3, 12.2, 0.1, 0.3}, {-0.2, 8.3, 0.3, -0.3},
    {-2.5, -3.3, -0.3, 0.3}, {-13.1, -5.2, 0, 0.2}, {2.4, 7.2, 0.3, -0.1}, {8.6, -0.6, -0.1, -0.2},
    {-8.7, 0.8, 0.1, 0.4}, {-12.9, 10, -0.1, 0.1}, {-1.3, 0, 0.1, 0}, {-6.4, 3.3, 0, 0}, {0.2, 0, 0.1, 0},
    {2, 2.4, 0.1, -0.2}, {-1, 5.3, 0, 0.1}, {-0.6, -9.1, -0.3, -0.1}, {-0.9, 0.4, 0, 0.1},
    {1.5, -4.2, -0.1, 0}, {0.9, -3.8, -0.1, -0.1}, {-2.7, 0.9, 0, 0.2}, {-3.9, -9.1, 0, 0},
    {2.9, 0, 0, 0}, {-1.5, 0, 0, 0}, {-2.5, 2.9, 0, 0.1}, {2.4, -0.6, 0, 0}, {-0.6, 0.2, 0, 0.1},
    {-0.1, 0.5, -0.1, 0}, {-0.6, -0.3, 0, 0}, {-0.1, -1.2, 0, 0.1}, {1.1, -1.7, -0.1, 0},
    {-1, -2.9, -0.1, 0}, {-0.2, -1.8, -0.1, 0}, {2.6, -2.3, -0.1, 0}, {-2, 0, 0, 0}, {-0.2, -1.3, 0, 0},
    {0.3, 0.7, 0, 0}, {1.2, 1, 0, -0.1}, {-1.3, -1.4, 0, 0.1}, {0.6, 0, 0, 0}, {0.6, 0.6, 0.1, 0},
    {0.5, -0.1, 0, 0}, {-0.1, 0.8, 0, 0}, {-0.4, 0.1, 0, 0}, {-0.2, -1, -0.1, 0}, {-1.3, 0.1, 0, 0},
    {-0.7, 0.2, -0.1, -0.1},
    // clang-format on
};

static const double REFERENCE_RADIUS = 6371200;

// Schmidt functions of the cosine c and sine s of the colatitude, and their derivatives by the colatitude.
static void find_legendre(double c, double s, double p[DEGREE_MAX + 1][DEGREE_MAX + 1],
                          double dp[DEGREE_MAX + 1][DEGREE_MAX + 1]) {
    p[0][0] = 1;
    dp[0][0] = 0;
    for (int n = 1; n <= DEGREE_MAX; n++) {
        const double last = n == 1 ? 1 : sqrt((2.0 * n - 1) / (2.0 * n));
        p[n][n] = last * s * p[n - 1][n - 1];
        dp[n][n] = last * (s * dp[n - 1][n - 1] + c * p[n - 1][n - 1]);
        for (int m = 0; m < n; m++) {
            const double k = sqrt((double)(n * n - m * m)), j = sqrt((double)((n - 1) * (n - 1) - m * m));
            const double before = n > 1 ? p[n - 2][m] : 0, before_slope = n > 1 ? dp[n - 2][m] : 0;
            p[n][m] = ((2 * n - 1) * c * p[n - 1][m] - j * before) / k;
            dp[n][m] = ((2 * n - 1) * (c * dp[n - 1][m] - s * p[n - 1][m]) - j * before_slope) / k;
        }
    }
}

// North, east and down, nT, at a geocentric radius, latitude and longitude.
static us_vec3 field_at(double radius, double latitude, double longitude, double years) {
    double p[DEGREE_MAX + 1][DEGREE_MAX + 1] = {{0}}, dp[DEGREE_MAX + 1][DEGREE_MAX + 1] = {{0}};
    const double s = fmax(cos(latitude), 1e-10);
    find_legendre(sin(latitude), s, p, dp);
    us_vec3 b = us_vec3_make(0, 0, 0);
    double scale = (REFERENCE_RADIUS / radius) * (REFERENCE_RADIUS / radius);
    for (int n = 1, row = 0; n <= DEGREE_MAX; n++) {
        scale *= REFERENCE_RADIUS / radius;
        for (int m = 0; m <= n; m++, row++) {
            const double g = model[row][0] + years * model[row][2], h = model[row][1] + years * model[row][3];
            const double along = g * cos(m * longitude) + h * sin(m * longitude),
                         across = g * sin(m * longitude) - h * cos(m * longitude);
            b.x += scale * along * dp[n][m];
            b.y += scale * m * across * p[n][m] / s;
            b.z -= scale * (n + 1) * along * p[n][m];
        }
    }
    return b;
}

us_vec3 us_sky_magnetic_field(const us_sky *sky, us_vec3 p_W, double time) {
    static const double date_2025 = 1735689600, year = 365.25 * 86400, nano = 1e-9;
    if (!sky || sky->planet != US_PLANET_EARTH) return us_vec3_make(0, 0, 0);
    const us_geo_place at = us_sky_locate(sky, p_W);
    const us_vec3 p = usi_fixed_point(US_PLANET_EARTH, at);
    const double radius = us_vec3_norm(p), latitude = asin(p.z / radius), down = at.latitude - latitude;
    const us_vec3 b = field_at(radius, latitude, at.longitude, (sky->date + time - date_2025) / year);
    // From the geocentric horizon to the ellipsoid's.
    const double north = b.x * cos(down) + b.z * sin(down), below = b.z * cos(down) - b.x * sin(down);
    const double c = cos(sky->heading), s = sin(sky->heading);
    return us_vec3_scale(nano, us_vec3_make(c * b.y - s * north, s * b.y + c * north, -below));
}
