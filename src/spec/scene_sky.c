// Where a world lies on a planet, and when it begins: attributes of <world>, or the ground's reference
// system.
#include <math.h>
#include <string.h>

#include "spec/scene.h"
#include "terrain/raster.h"
#include "terrain/reference.h"

static const double QUARTER = 1.57079632679489661923;

static us_status read_place(usi_reader *r, const xmlNode *node, us_sky *sky) {
    usi_look look = usi_look_at(node);
    const bool has_latitude = usi_xml_attr(node, "latitude"), has_longitude = usi_xml_attr(node, "longitude");
    if (has_latitude != has_longitude)
        return usi_fail(r, US_ERR_VALUE, node,
                        "write both, or neither where the ground has a reference system",
                        "%s is missing beside %s", has_latitude ? "longitude" : "latitude",
                        has_latitude ? "latitude" : "longitude");
    us_status status = usi_look_number(r, &look, "latitude", USI_ANGLE, &sky->origin.latitude);
    if (!status) status = usi_look_number(r, &look, "longitude", USI_ANGLE, &sky->origin.longitude);
    if (!status) status = usi_look_number(r, &look, "height", USI_LENGTH, &sky->origin.height);
    if (!status) status = usi_look_number(r, &look, "heading", USI_ANGLE, &sky->heading);
    if (status) return status;
    if (fabs(sky->origin.latitude) > QUARTER)
        return usi_fail(r, US_ERR_VALUE, node, "write it in degrees, as 40.2 deg, from -90 deg to 90 deg",
                        "latitude: %g rad is beyond the pole", sky->origin.latitude);
    if (fabs(sky->origin.longitude) > 4 * QUARTER)
        return usi_fail(r, US_ERR_VALUE, node, "write it in degrees, as -111.5 deg, from -360 deg to 360 deg",
                        "longitude: %g rad is more than a turn", sky->origin.longitude);
    if (!has_latitude) sky->origin.latitude = NAN;  // the ground's
    return US_OK;
}

us_status usi_scene_sky(usi_reader *r, const xmlNode *node, us_sky *sky) {
    static const char *const own[] = {"latitude", "longitude", "height", "heading", "date"};
    const char *planet = usi_xml_attr(node, "planet"), *date = usi_xml_attr(node, "date");
    for (int i = 0; i < 5 && !planet; i++) {
        if (usi_xml_attr(node, own[i]))
            return usi_fail(r, US_ERR_VALUE, node, "write planet=\"earth\", \"moon\" or \"mars\" beside it",
                            "%s without a planet means nothing", own[i]);
    }
    if (!planet) return US_OK;
    *sky = (us_sky){.planet = US_PLANET_NONE};
    for (int i = 0; i < US_PLANET_COUNT; i++) {
        if (strcmp(us_planet_name((us_planet)i), planet) == 0) sky->planet = (us_planet)i;
    }
    if (!us_date_parse(date ? date : "2026-01-01T12:00:00Z", &sky->date))
        return usi_fail(r, US_ERR_VALUE, node,
                        "write UTC of the years 1900 to 2100, for example 2026-11-18T12:00:00Z",
                        "date: invalid date \"%.60s\"", date);
    return read_place(r, node, sky);
}

// The place of a ground's frame, from its reference system.
static us_status find_ground(usi_reader *r, const us_shape_def *ground, usi_reference_place *out,
                             double *out_height, us_error *why) {
    *out_height = 0;
    if (!ground->site) {
        // The GeoTIFF that was read last is still open.
        const us_raster_info *info = usi_raster_info(r->ground);
        return usi_reference_locate(usi_raster_wkt(r->ground), info->middle.x, info->middle.y, out, why);
    }
    us_site *site = NULL;
    us_status status = us_site_open(ground->site, &r->def->allocator, &site, why);
    if (status) return status;
    const us_site_info info = us_site_get_info(site);
    *out_height = info.origin.z;
    status = usi_reference_locate(info.wkt, info.origin.x, info.origin.y, out, why);
    us_site_close(site);
    return status;
}

// The world's origin and heading, when the ground's frame is at X_WG in the world.
static void place_world(us_sky *sky, const usi_reference_place *place, double height, us_pose X_WG) {
    const us_vec3 y = us_quat_rotate(X_WG.q, us_vec3_make(0, 1, 0));
    us_sky ground = *sky;
    ground.origin = (us_geo_place){place->latitude, place->longitude, height + sky->origin.height};
    ground.heading = place->heading + atan2(-y.x, y.y);
    sky->heading = ground.heading;
    sky->origin = us_sky_locate(&ground, us_vec3_scale(-1, X_WG.p));
}

us_status usi_scene_sky_of_ground(usi_reader *r, const xmlNode *root) {
    us_world_settings w = *us_spec_view_world(r->spec);
    if (w.sky.planet == US_PLANET_NONE || !isnan(w.sky.origin.latitude)) return US_OK;
    const xmlNode *node = usi_xml_child(root, "world");
    static const char *const remedy = "write latitude=\"...\" and longitude=\"...\" into <world>";
    for (int32_t i = 0; i < us_spec_get_counts(r->spec).n_shape; i++) {
        const us_shape_def *s = us_spec_view_shape(r->spec, i);
        if (!s->site && !(r->ground && s->kind == US_SHAPE_HEIGHT_FIELD)) continue;
        usi_reference_place place;
        double height;
        us_error why = {0};
        if (find_ground(r, s, &place, &height, &why))
            return usi_fail(r, US_ERR_VALUE, node, remedy, "the ground does not say where it lies: %s",
                            why.message);
        if (fabs(place.radius / us_planet_radius(w.sky.planet) - 1) > 0.01)
            return usi_fail(
                r, US_ERR_VALUE, node, "write the planet that the ground is of",
                "planet: %s has a radius of %.0f km, but the ground's reference system one of %.0f km",
                us_planet_name(w.sky.planet), us_planet_radius(w.sky.planet) / 1000, place.radius / 1000);
        place_world(&w.sky, &place, height, s->X_BG);
        return usi_scene_added(r, node, us_spec_set_world(r->spec, &w));
    }
    return usi_fail(
        r, US_ERR_VALUE, node, remedy,
        "planet: no ground says where the world lies (a site or a GeoTIFF with a reference system)");
}
