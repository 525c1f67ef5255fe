// <light> inside <world>: where the Sun stands, and how bright Sun and sky are.
#include <math.h>

#include "spec/scene.h"

static const double QUARTER = 1.57079632679489661923;

static us_status read_direction(usi_reader *r, const xmlNode *node, us_light_def *light) {
    const usi_look look = usi_look_at(node);
    const bool has_azimuth = usi_xml_attr(node, "azimuth"), has_elevation = usi_xml_attr(node, "elevation"),
               has_direction = usi_xml_attr(node, "direction");
    double azimuth = 0, elevation = 0, d[3] = {0};
    if (has_azimuth != has_elevation || (has_direction && has_azimuth))
        return usi_fail(
            r, US_ERR_SCHEMA, node,
            "write azimuth=\"120 deg\" elevation=\"30 deg\", or direction=\"1 0 1\", or none of them",
            "azimuth, elevation, direction: the Sun stands at both angles, or in a direction");
    us_status status = usi_look_number(r, &look, "azimuth", USI_ANGLE, &azimuth);
    if (!status) status = usi_look_number(r, &look, "elevation", USI_ANGLE, &elevation);
    if (!status) status = usi_look_numbers(r, &look, "direction", USI_PLAIN, 3, d);
    if (status) return status;
    if (fabs(elevation) > QUARTER + 1e-9)
        return usi_fail(r, US_ERR_VALUE, node, "write it in degrees, from -90 deg to 90 deg",
                        "elevation: %g rad is beyond the zenith", elevation);
    if (has_direction && !(us_vec3_norm(us_vec3_make(d[0], d[1], d[2])) > 0))
        return usi_fail(r, US_ERR_VALUE, node, "write a vector that points towards the Sun",
                        "direction: 0 0 0 is none");
    light->has_direction = has_direction || has_azimuth;
    light->direction = has_direction ? us_vec3_make(d[0], d[1], d[2])
                                     : us_vec3_make(cos(elevation) * sin(azimuth),
                                                    cos(elevation) * cos(azimuth), sin(elevation));
    return US_OK;
}

us_status usi_scene_light(usi_reader *r, const xmlNode *world, us_light_def *light) {
    const xmlNode *node = usi_xml_child(world, "light");
    if (!node) return US_OK;
    if (usi_xml_next(node, "light"))
        return usi_fail(r, US_ERR_SCHEMA, usi_xml_next(node, "light"), "leave one of them out",
                        "there are two <light> in the <world>");
    const usi_look look = usi_look_at(node);
    us_status status = read_direction(r, node, light);
    if (!status) status = usi_look_positive(r, &look, "sun", USI_PLAIN, false, &light->sun);
    if (!status) status = usi_look_positive(r, &look, "sky", USI_PLAIN, false, &light->sky);
    light->has_sun = usi_xml_attr(node, "sun");
    light->has_sky = usi_xml_attr(node, "sky");
    return status;
}
