// Latitude, longitude and height of points of the world.
//
//              normal of the ellipsoid at the place
//                 |     /
//     y (north)   |    /
//        ---------o---x------  the plane z = 0 touches the ellipsoid in the origin o; x is the point (x, y,
//        0)
//      _.--'''''''|  /''''''''--._
//
// A point's latitude and longitude are those of the normal through its place in that plane, its height is the
// origin's and z: a hill that is level in the world is level on the planet.
#include <erfa.h>

#include "sky/ephemeris.h"

typedef struct body {
    const char *name;
    double radius, flattening;
} body;

static const body bodies[US_PLANET_COUNT] = {
    {"none", NAN, NAN},
    {"earth", 6378137, 1 / 298.257223563},
    {"moon", 1737400, 0},
    {"mars", 3396190, (3396190.0 - 3376200.0) / 3396190.0},
};

const char *us_planet_name(us_planet planet) {
    return (unsigned)planet < US_PLANET_COUNT ? bodies[planet].name : "?";
}
double us_planet_radius(us_planet planet) {
    return (unsigned)planet < US_PLANET_COUNT ? bodies[planet].radius : NAN;
}
double us_planet_flattening(us_planet planet) {
    return (unsigned)planet < US_PLANET_COUNT ? bodies[planet].flattening : NAN;
}

bool us_sky_is_valid(const us_sky *sky) {
    if (!sky || (unsigned)sky->planet >= US_PLANET_COUNT) return false;
    const double n[] = {sky->origin.latitude, sky->origin.longitude, sky->origin.height, sky->heading,
                        sky->date};
    for (int i = 0; i < 5; i++) {
        if (!isfinite(n[i])) return false;
    }
    return fabs(sky->origin.latitude) <= 1.5707963267948967;
}

us_quat usi_world_axes(const us_sky *sky) {
    const double sin_lat = sin(sky->origin.latitude), cos_lat = cos(sky->origin.latitude),
                 sin_lon = sin(sky->origin.longitude), cos_lon = cos(sky->origin.longitude);
    const us_vec3 east = us_vec3_make(-sin_lon, cos_lon, 0),
                  north = us_vec3_make(-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat),
                  up = us_vec3_make(cos_lat * cos_lon, cos_lat * sin_lon, sin_lat);
    const double s = sin(sky->heading), c = cos(sky->heading);
    const us_vec3 x = us_vec3_sub(us_vec3_scale(c, east), us_vec3_scale(s, north)),
                  y = us_vec3_add(us_vec3_scale(s, east), us_vec3_scale(c, north));
    const us_mat3 axes = {{x.x, y.x, up.x, x.y, y.y, up.y, x.z, y.z, up.z}};
    return us_quat_from_matrix(axes);
}

us_vec3 usi_fixed_point(us_planet planet, us_geo_place at) {
    double p[3];
    (void)eraGd2gce(us_planet_radius(planet), us_planet_flattening(planet), at.longitude, at.latitude,
                    at.height, p);
    return us_vec3_make(p[0], p[1], p[2]);
}

us_geo_place us_sky_locate(const us_sky *sky, us_vec3 p_W) {
    us_geo_place out = {NAN, NAN, NAN};
    if (!sky || sky->planet == US_PLANET_NONE) return out;
    const us_vec3 p = us_vec3_add(usi_fixed_point(sky->planet, sky->origin),
                                  us_quat_rotate(usi_world_axes(sky), us_vec3_make(p_W.x, p_W.y, 0)));
    double at[3] = {p.x, p.y, p.z}, above;
    (void)eraGc2gde(us_planet_radius(sky->planet), us_planet_flattening(sky->planet), at, &out.longitude,
                    &out.latitude, &above);
    out.height = sky->origin.height + p_W.z;
    return out;
}

us_vec3 us_sky_point(const us_sky *sky, us_geo_place place) {
    if (!sky || sky->planet == US_PLANET_NONE) return us_vec3_make(NAN, NAN, NAN);
    const us_quat to_world = us_quat_conj(usi_world_axes(sky));
    const us_geo_place level = {place.latitude, place.longitude, sky->origin.height};
    const us_vec3 from_origin =
        us_vec3_sub(usi_fixed_point(sky->planet, level), usi_fixed_point(sky->planet, sky->origin));
    const us_vec3 d = us_quat_rotate(to_world, from_origin),
                  normal = us_quat_rotate(to_world, us_vec3_make(cos(place.latitude) * cos(place.longitude),
                                                                 cos(place.latitude) * sin(place.longitude),
                                                                 sin(place.latitude)));
    // Along the place's own normal into the plane.
    us_vec3 p = us_vec3_sub(d, us_vec3_scale(d.z / normal.z, normal));
    p.z = place.height - sky->origin.height;
    return p;
}
