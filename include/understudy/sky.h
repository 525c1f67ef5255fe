// Where a world lies on a planet, and what is seen and felt there: the Sun, the stars, the magnetic field.
//
// The world's frame is a map of the ground around its origin: x and y are metres on the plane that touches
// the ellipsoid there, z is the height above the origin. With `heading` 0, x is east and y is north. A place
// 10 km away is 8 mm off, one at 50 km a metre. All functions are pure; any thread.
#ifndef UNDERSTUDY_SKY_H
#define UNDERSTUDY_SKY_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(code, name)
#define US_PLANET_LIST(X)       \
    X(US_PLANET_NONE, "none")   \
    X(US_PLANET_EARTH, "earth") \
    X(US_PLANET_MOON, "moon")   \
    X(US_PLANET_MARS, "mars")

typedef enum us_planet {
#define US_PLANET_ENUM(code, name) code,
    US_PLANET_LIST(US_PLANET_ENUM)
#undef US_PLANET_ENUM
        US_PLANET_COUNT
} us_planet;

US_API const char *us_planet_name(us_planet planet);  // "?" outside the list

// Ellipsoid of latitudes and heights: WGS 84; a sphere of 1737.4 km; 3396.19 and 3376.2 km.
US_API double us_planet_radius(us_planet planet);      // m, at the equator; NaN without a planet
US_API double us_planet_flattening(us_planet planet);  // NaN without a planet

typedef struct us_geo_place {
    double latitude;   // rad, geodetic (planetographic), north positive
    double longitude;  // rad, east positive
    double height;     // m above the ellipsoid
} us_geo_place;

// What lights the world, for cameras. All 0: the planet's Sun, or one that stands in the south-east half way
// up, and as much light as is usual there (us_model_get_light).
typedef struct us_light_def {
    bool has_direction;  // or the Sun is where the date and place say
    us_vec3 direction;   // towards it, in W; any length but 0
    bool has_sun;        // or as bright as the planet sees it
    double sun;          // W/m^2 on a surface that meets it squarely, 0 or more
    bool has_sky;        // or as bright as the planet's
    double sky;          // W/m^2 of the whole sky on level ground, 0 or more
} us_light_def;

// All 0: nowhere.
typedef struct us_sky {
    us_planet planet;
    us_geo_place origin;  // of the world's frame
    double heading;       // rad, of the world's y axis, clockwise from north
    double date;          // s since 1970-01-01T00:00:00Z without leap seconds (POSIX), at the world's time 0
    us_light_def light;
} us_sky;

// Whether its planet is one, its latitude within 90 degrees and all numbers finite; anything without a
// planet.
US_API bool us_sky_is_valid(const us_sky *sky);

// "2026-11-18T12:00:00Z", with a fraction of a second where wanted, or "2026-11-18". UTC only. False: it is
// no date of the years 1900 to 2100.
US_API bool us_date_parse(const char *text, double *out_date);

// Where a point of the world is, and where in the world a place is. NaN without a planet.
US_API us_geo_place us_sky_locate(const us_sky *sky, us_vec3 p_W);
US_API us_vec3 us_sky_point(const us_sky *sky, us_geo_place place);

// Direction to the middle of the Sun as it is seen from the world's origin, without refraction, at a time of
// the world (s). Unit vector in W; 0 without a planet. Within 0.01 degrees from 1950 to 2050; UT1 is taken
// for UTC. Cost: a tenth of a millisecond.
US_API us_vec3 us_sky_sun(const us_sky *sky, double time);

// Orientation of the world's frame among the stars: q_CW, with C the frame of star catalogues (ICRS).
// Identity without a planet.
US_API us_quat us_sky_stars(const us_sky *sky, double time);

// The planet's magnetic field at a point of the world, T, in W: on Earth the World Magnetic Model 2025 (valid
// from 2025 to 2030, as good as a constant elsewhere in the decade); elsewhere 0.
US_API us_vec3 us_sky_magnetic_field(const us_sky *sky, us_vec3 p_W, double time);

#ifdef __cplusplus
}
#endif
#endif
