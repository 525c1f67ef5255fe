// Latitude and longitude of a place of a map, and how its grid is turned against north: by the longitude that
// a step northwards on the grid adds.
#include "terrain/reference.h"

#include <math.h>

#include "terrain/raster.h"

static const double DEGREE = 0.017453292519943295769;

us_status usi_reference_locate(const char *reference, double x, double y, usi_reference_place *out,
                               us_error *err) {
    const usi_gdal *gdal = usi_gdal_get(err);
    if (!gdal) return err ? err->code : US_ERR_IO;
    usi_gdal_error caught;
    usi_gdal_catch_begin(gdal, &caught);
    OGRSpatialReferenceH srs = gdal->OSRNewSpatialReference(NULL);
    bool is_good = srs && gdal->OSRSetFromUserInput(srs, reference) == OGRERR_NONE;
    if (is_good) {
        gdal->OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
        static const double step = 100;  // m: short beside any body, long beside rounding
        us_raster_info here, north;
        usi_frame frame = {.x = x, .y = y, .srs = srs};
        usi_frame_place(gdal, &frame, &here);
        frame.y += step;
        usi_frame_place(gdal, &frame, &north);
        out->latitude = DEGREE * here.latitude;
        out->longitude = DEGREE * here.longitude;
        // Along the meridian a degree has (1 - e^2) / (1 - e^2 sin^2) of its length across.
        const double inverse = gdal->OSRGetInvFlattening(srs, NULL), f = inverse > 1 ? 1 / inverse : 0,
                     e2 = f * (2 - f), s = sin(out->latitude);
        out->heading = atan2((north.longitude - here.longitude) * cos(out->latitude),
                             (north.latitude - here.latitude) * (1 - e2) / (1 - e2 * s * s));
        out->radius = gdal->OSRGetSemiMajor(srs, NULL);
        is_good = isfinite(out->latitude) && isfinite(out->longitude) && isfinite(out->heading);
    }
    if (srs) gdal->OSRDestroySpatialReference(srs);
    usi_gdal_catch_end(gdal);
    if (is_good) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, "write latitude and longitude",
                        "its reference system says no latitude and longitude");
}
