// Dates, the Sun on three bodies, latitude and longitude, and the magnetic field, against published values.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "understudy/base.h"
#include "understudy/sky.h"

static const double DEGREE = 0.017453292519943295769;

static double parsed(const char *text) {
    double date = NAN;
    assert_true(us_date_parse(text, &date));
    return date;
}

static void a_date_is_seconds_since_1970(void **state) {
    (void)state;
    assert_true(parsed("1970-01-01T00:00:00Z") == 0);
    assert_true(parsed("2000-01-01T12:00:00Z") == 946728000);
    assert_true(parsed("2026-11-18T12:00:00.25Z") == 1795003200.25);
    assert_true(parsed("2024-02-29") == 1709164800);
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-13-01",
                                        "2026-02-29",
                                        "2026-11-18T12:00:00",
                                        "2026-1-18",
                                        "2026-11-1x",
                                        "2026-11-18T24:00:00Z",
                                        "2026-11-18 12:00:00",
                                        "2026-11-18T12:00:60Z",
                                        "1899-12-31",
                                        "2101-01-01",
                                        "2026-11-18T12:00:00.Z",
                                        "2026-11-18T12:00:00Z ",
                                        "2026-11-18T12:00:00+01:00"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double date = 7;
        if (us_date_parse(wrong[i], &date)) fail_msg("\"%s\" is taken for a date", wrong[i]);
        assert_true(date == 7);
    }
}

// Where the Sun is overhead: planetocentric latitude and east longitude, degrees.
typedef struct overhead {
    double date;
    double latitude, longitude;
} overhead;

// The angle between where the Sun stands over a place and where the table has it. Places are taken all over
// the body: each row is looked at from four of them. From far away no place matters: a body's radius is
// 0.0024 degrees of its distance from the Sun on the Earth, and less elsewhere, so that the table's direction
// is taken from the place too.
static double worst_angle(us_planet planet, const overhead *row, double distance) {
    static const double places[][2] = {{0, 0}, {45, -120}, {-80, 33}, {18.4, 77.5}};
    double worst = 0;
    for (int i = 0; i < 4; i++) {
        const us_sky sky = {
            .planet = planet, .origin = {places[i][0] * DEGREE, places[i][1] * DEGREE, 0}, .date = row->date};
        const us_vec3 seen = us_sky_sun(&sky, 0);
        const double sin_lat = sin(sky.origin.latitude), cos_lat = cos(sky.origin.latitude);
        const double away = row->longitude * DEGREE - sky.origin.longitude, dec = row->latitude * DEGREE;
        us_vec3 want = us_vec3_make(cos(dec) * sin(away), cos_lat * sin(dec) - sin_lat * cos(dec) * cos(away),
                                    sin_lat * sin(dec) + cos_lat * cos(dec) * cos(away));
        want = us_vec3_scale(distance, want);
        want.z -= us_planet_radius(planet);  // the geodetic vertical misses the middle by less than 22 km
        const double angle = atan2(us_vec3_norm(us_vec3_cross(seen, want)), us_vec3_dot(seen, want));
        worst = fmax(worst, angle / DEGREE);
    }
    return worst;
}

static void assert_rows(us_planet planet, const overhead *rows, int n, double distance) {
    double worst = 0;
    for (int i = 0; i < n; i++) {
        const double angle = worst_angle(planet, &rows[i], distance);
        if (!(angle < 0.01)) fail_msg("row %d is %.5f degrees away", i, angle);
        worst = fmax(worst, angle);
    }
    print_message("worst of %d dates, four places each: %.5f degrees\n", n, worst);
}

static const double AU = 149597870700.0;

// Greenwich hour angle (west) and declination of the Sun: of the US Naval Observatory (2000, 2016, 2026-09)
// and of an almanac from JPL's DE421.
static void the_sun_over_the_earth_is_the_almanacs(void **state) {
    (void)state;
    const overhead rows[] = {
        {parsed("1995-01-01T00:00:00Z"), -23.054013, -179.204391},
        {parsed("1997-01-01T00:00:00Z"), -23.013244, -179.146934},
        {parsed("1999-01-01T00:00:00Z"), -23.052543, -179.213795},
        {parsed("2000-02-29T06:00:00Z"), -7.835834, -266.872378},
        {parsed("2016-12-31T18:00:00Z"), -23.019299, -89.169267},
        {parsed("2026-09-24T00:00:00Z"), -0.387759, -181.950745},
        {parsed("2026-09-24T12:00:00Z"), -0.582362, -1.994509},
        {parsed("2026-10-01T09:00:00Z"), -3.254943, -317.575887},
        {parsed("2026-10-01T10:00:00Z"), -3.271092, -332.579259},
        {parsed("2043-01-01T00:00:00Z"), -23.025450, -179.191670},
        {parsed("2045-01-01T00:00:00Z"), -22.982759, -179.131796},
    };
    assert_rows(US_PLANET_EARTH, rows, (int)(sizeof rows / sizeof *rows), AU);
}

// Selenographic places below the Sun in the mean Earth frame, from JPL's DE440.
static void the_sun_over_the_moon_is_the_ephemerides(void **state) {
    (void)state;
    const overhead rows[] = {
        {parsed("1992-09-04T09:12:41Z"), -1.492872, 92.021970},
        {parsed("1995-08-10T06:15:56Z"), -1.455604, 10.113665},
        {parsed("1999-07-07T02:18:26Z"), -0.753877, -102.908973},
        {parsed("2000-11-09T21:40:54Z"), 1.374410, 19.912866},
        {parsed("2004-08-26T08:31:41Z"), 1.349737, 50.242799},
        {parsed("2006-03-27T05:13:55Z"), 0.058267, -150.829294},
        {parsed("2018-02-16T08:23:38Z"), -0.328799, 170.292430},
        {parsed("2021-06-22T13:28:33Z"), 0.560804, 29.644529},
        {parsed("2026-06-27T15:21:43Z"), 1.334927, 27.303577},
        {parsed("2030-12-13T14:10:20Z"), 0.410950, -43.802055},
        {parsed("2042-03-26T12:47:30Z"), -0.572445, 121.170152},
    };
    assert_rows(US_PLANET_MOON, rows, (int)(sizeof rows / sizeof *rows), AU);
}

// JPL Horizons: date (TT, Julian), distance from the Earth, au, and planetographic latitude and west
// longitude below the Sun when the light left that reaches the Earth at the date.
static void the_sun_over_mars_is_horizons(void **state) {
    (void)state;
    static const double table[][4] = {
        {2448966.62, 0.68550248375875, 3.854821, 250.980187},
        {2450965.36, 2.50949026577283, -9.586206, 338.052157},
        {2451964.73, 1.24922422916648, 21.465795, 226.450578},
        {2452964.10, 0.76662710227060, -21.385019, 78.003074},
        {2453963.47, 2.54587471705425, 25.406103, 316.205619},
        {2454962.84, 2.06170063836804, -25.287626, 178.886683},
        {2455962.21, 0.76937387124026, 23.156660, 51.444990},
        {2456961.58, 1.68270646878307, -17.505715, 282.984981},
        {2457960.95, 2.65504626633796, 15.605988, 137.507117},
        {2458960.32, 1.30567103628030, -2.989329, 20.796006},
        {2459959.69, 0.73478178368934, 4.169296, 230.365174},
        {2460959.06, 2.37707371390893, 11.265696, 111.505336},
        {2461958.43, 2.36632713685987, -9.257267, 317.735651},
        {2462957.80, 0.70588957430716, 21.288056, 206.935795},
        {2463957.17, 1.36200801767401, -21.172346, 56.043335},
    };
    // Seconds of TT before UTC: 32.184 and leap seconds (26 in 1992 to 37 today).
    static const double leap[] = {27, 31, 32, 32, 33, 34, 34, 35, 37, 37, 37, 37, 37, 37, 37};
    enum { N = sizeof table / sizeof *table };
    overhead rows[N];
    for (int i = 0; i < N; i++) {
        const double light = (table[i][1] * AU - 3396190) / 299792458;
        rows[i].date = (table[i][0] - 2440587.5) * 86400 - 32.184 - leap[i] - light;
        const double squeeze = 1 - us_planet_flattening(US_PLANET_MARS);
        rows[i].latitude = atan(squeeze * squeeze * tan(table[i][2] * DEGREE)) / DEGREE;
        rows[i].longitude = -table[i][3];
    }
    assert_rows(US_PLANET_MARS, rows, N, 1.52 * AU);
}

// Mars24's worked example A: at Airy, 2000-01-06, apparent solar time is 23:38:54 and the planetographic
// declination of the Sun is near -25.2.
static void local_time_on_mars_is_that_of_the_worked_example(void **state) {
    (void)state;
    const us_sky sky = {.planet = US_PLANET_MARS, .date = parsed("2000-01-06T00:00:00Z")};
    const us_vec3 sun = us_sky_sun(&sky, 0);
    double hours = 12 - atan2(sun.x, sun.z) / DEGREE / 15;
    if (hours < 0) hours += 24;
    assert_true(fabs(hours - (23 + 38.0 / 60 + 54.0 / 3600)) < 2.0 / 3600);
}

static void the_heading_turns_the_world_and_not_the_sun(void **state) {
    (void)state;
    us_sky sky = {
        .planet = US_PLANET_EARTH, .origin = {0.6, -1.9, 300}, .date = parsed("2026-06-21T18:00:00Z")};
    const us_vec3 north_up = us_sky_sun(&sky, 100);
    sky.heading = 30 * DEGREE;  // y points 30 degrees east of north
    const us_vec3 turned = us_sky_sun(&sky, 100);
    const double azimuth = atan2(north_up.x, north_up.y), from_y = atan2(turned.x, turned.y);
    assert_true(fabs(azimuth - from_y - 30 * DEGREE) < 1e-12 && fabs(north_up.z - turned.z) < 1e-14);
}

// A star over the pole stays where it is; the others go round in a sidereal day.
static void the_stars_turn_once_in_a_sidereal_day(void **state) {
    (void)state;
    const us_sky sky = {.planet = US_PLANET_EARTH, .origin = {0.8, 0.3, 0}, .date = parsed("2026-11-18")};
    const double day = 86164.0905;
    const us_quat start = us_sky_stars(&sky, 0), later = us_sky_stars(&sky, day),
                  half = us_sky_stars(&sky, day / 2);
    const us_vec3 whole = us_quat_log(us_quat_mul(later, us_quat_conj(start))),
                  turn = us_quat_log(us_quat_mul(half, us_quat_conj(start)));
    assert_true(us_vec3_norm(whole) < 2e-6);  // nutation and precession of a day
    assert_true(fabs(us_vec3_norm(turn) - 180 * DEGREE) < 2e-6);
    // The axis is the celestial pole, within the 0.15 degrees by which it has moved since 2000.
    assert_true(fabs(turn.z) / us_vec3_norm(turn) > cos(0.2 * DEGREE));
}

static void a_place_and_its_point_belong_together(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        const us_planet planet = (us_planet)(1 + i % 3);
        double u[7];
        for (int k = 0; k < 7; k++)
            u[k] = 2 * us_random_uniform(11, 1, (uint64_t)(7 * i + k)) - 1;
        const us_sky sky = {.planet = planet,
                            .origin = {85 * DEGREE * u[0], 180 * DEGREE * u[1], 3000 * u[2]},
                            .heading = 3 * u[3]};
        const us_vec3 p = us_vec3_make(20000 * u[4], 20000 * u[5], 500 * u[6]);
        const us_vec3 back = us_sky_point(&sky, us_sky_locate(&sky, p));
        if (!(us_vec3_norm(us_vec3_sub(back, p)) < 1e-6))
            fail_msg("case %d: %g m", i, us_vec3_norm(us_vec3_sub(back, p)));
    }
}

// A minute of latitude is 1842.9 m at the equator and 1861.6 m at the pole; one of longitude 1855.3 m at the
// equator: the definition of the ellipsoid, a (1 - e^2) and so on.
static void a_minute_of_arc_has_its_length(void **state) {
    (void)state;
    const double minute = DEGREE / 60, a = 6378137, f = 1 / 298.257223563, e2 = f * (2 - f);
    us_sky sky = {.planet = US_PLANET_EARTH};
    us_geo_place at = us_sky_locate(&sky, us_vec3_make(a * minute, a * (1 - e2) * minute, 12));
    // The plane is 2e-8 longer than the arc.
    assert_true(fabs(at.longitude / minute - 1) < 1e-7 && fabs(at.latitude / minute - 1) < 1e-7);
    assert_true(at.height == 12);
    sky.origin.latitude = 60 * DEGREE;
    sky.heading = 90 * DEGREE;  // y is east
    const double across = a / sqrt(1 - e2 * 0.75) * 0.5;
    at = us_sky_locate(&sky, us_vec3_make(0, across * minute, 0));
    assert_true(fabs(at.longitude / minute - 1) < 1e-7 && fabs(at.latitude - 60 * DEGREE) < 1e-7);
    sky.planet = US_PLANET_NONE;
    at = us_sky_locate(&sky, us_vec3_make(0, 0, 0));
    assert_true(isnan(at.latitude) && isnan(at.longitude) && isnan(at.height));
    assert_true(isnan(us_sky_point(&sky, (us_geo_place){0, 0, 0}).x));
    assert_true(us_vec3_norm(us_sky_sun(&sky, 0)) == 0 && us_sky_stars(&sky, 0).w == 1);
}

// The model's own test values: height in km, latitude, longitude, year; north, east and down, nT.
static void the_field_is_the_models_own_test_values(void **state) {
    (void)state;
    static const double rows[][7] = {
        {0, 80, 0, 2025.0, 6521.6, 145.9, 54791.5},
        {0, 0, 120, 2025.0, 39677.8, -109.6, -10580.2},
        {0, -80, 240, 2025.0, 6117.5, 15751.9, -52022.5},
        {100, 80, 0, 2025.0, 6216.0, 92.4, 52598.8},
        {100, 0, 120, 2025.0, 37688.6, -96.2, -10152.1},
        {100, -80, 240, 2025.0, 5907.6, 14780.3, -49540.7},
        {0, 80, 0, 2027.5, 6500.8, 294.5, 54869.4},
        {0, 0, 120, 2027.5, 39701.6, -167.4, -10381.8},
        {0, -80, 240, 2027.5, 6200.7, 15730.3, -51783.7},
        {100, -80, 240, 2027.5, 5984.0, 14760.1, -49317.7},
        {28, 89, -121, 2025.0, -255.388723, -1482.460628, 56194.288771},
        {65, 43, 93, 2025.0, 24299.852822, 210.517066, 50037.923998},
        {39, -59, -8, 2025.0, 14358.095523, -4049.10754, -24389.086374},
        {6, -36, -137, 2025.5, 23781.930678, 8786.698927, -32577.518648},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const us_sky sky = {.planet = US_PLANET_EARTH,
                            .origin = {rows[i][1] * DEGREE, rows[i][2] * DEGREE, 1000 * rows[i][0]},
                            .date = 1735689600 + (rows[i][3] - 2025) * 365.25 * 86400};
        const us_vec3 b = us_vec3_scale(1e9, us_sky_magnetic_field(&sky, us_vec3_make(0, 0, 0), 0));
        // The report asks for 0.1 nT.
        const double off =
            fmax(fmax(fabs(b.y - rows[i][4]), fabs(b.x - rows[i][5])), fabs(-b.z - rows[i][6]));
        if (!(off < 0.1)) fail_msg("row %d is %g nT off", (int)i, off);
    }
    const us_sky mars = {.planet = US_PLANET_MARS};
    assert_true(us_vec3_norm(us_sky_magnetic_field(&mars, us_vec3_make(0, 0, 0), 0)) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_date_is_seconds_since_1970),
        cmocka_unit_test(the_sun_over_the_earth_is_the_almanacs),
        cmocka_unit_test(the_sun_over_the_moon_is_the_ephemerides),
        cmocka_unit_test(the_sun_over_mars_is_horizons),
        cmocka_unit_test(local_time_on_mars_is_that_of_the_worked_example),
        cmocka_unit_test(the_heading_turns_the_world_and_not_the_sun),
        cmocka_unit_test(the_stars_turn_once_in_a_sidereal_day),
        cmocka_unit_test(a_place_and_its_point_belong_together),
        cmocka_unit_test(a_minute_of_arc_has_its_length),
        cmocka_unit_test(the_field_is_the_models_own_test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
