// What the files of this room share: a planet's orientation and where the Sun stands.
#ifndef USI_SKY_EPHEMERIS_H
#define USI_SKY_EPHEMERIS_H

#include "understudy/sky.h"

static const double USI_JD_1970 = 2440587.5;

// Terrestrial time as a Julian date in two parts, of a date (POSIX).
typedef struct usi_epoch {
    double whole, part;
} usi_epoch;

usi_epoch usi_epoch_of(double date);

// From the frame of star catalogues to that which turns with the planet.
us_quat usi_planet_orientation(us_planet planet, double date);

// From the planet's middle to the Sun as light shows it, m, in the frame of star catalogues.
us_vec3 usi_sun_from(us_planet planet, double date);

// From the world's axes to those that turn with the planet, and where a place is in the latter, m.
us_quat usi_world_axes(const us_sky *sky);
us_vec3 usi_fixed_point(us_planet planet, us_geo_place at);

#endif
