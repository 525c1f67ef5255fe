// Where a place of a reference system is on its planet.
#ifndef USI_TERRAIN_REFERENCE_H
#define USI_TERRAIN_REFERENCE_H

#include "understudy/base.h"

typedef struct usi_reference_place {
    double latitude, longitude;  // rad, geodetic, east positive
    double heading;              // rad, of the system's northward axis, clockwise from north
    double radius;               // m, of the system's ellipsoid at the equator
} usi_reference_place;

// Of a reference system as WKT or otherwise as GDAL reads it, at x east and y north, m. US_ERR_VALUE when it
// has no latitude and longitude.
us_status usi_reference_locate(const char *reference, double x, double y, usi_reference_place *out,
                               us_error *err);

#endif
