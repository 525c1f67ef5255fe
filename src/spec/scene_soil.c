// Soil: <soil> of a material, one of the library with any of its numbers changed; and the treads that meet
// it.
#include <stdio.h>
#include <string.h>

#include "spec/scene.h"

// "friction_angle" to "friction-angle".
static void attribute_of(const char *field, char out[32]) {
    size_t i = 0;
    for (; field[i] && i < 31; i++)
        out[i] = field[i] == '_' ? '-' : field[i];
    out[i] = 0;
}

// The quantities that have units people write. The shares of an angle have none.
static usi_dimension dimension_of(const char *unit) {
    return strcmp(unit, "m") == 0 ? USI_LENGTH : strcmp(unit, "rad") == 0 ? USI_ANGLE : USI_PLAIN;
}

static us_status read_like(usi_reader *r, const xmlNode *node, us_soil *out) {
    const char *like = usi_xml_attr(node, "like");
    *out = us_soil_default();
    if (!like || us_soil_find(like, out)) return US_OK;
    char known[300] = "";
    const char *name;
    us_soil soil;
    for (int32_t i = 0; us_soil_get(i, &name, &soil, NULL); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", name);
    }
    return usi_fail(r, US_ERR_NAME, node, known, "like: there is no soil \"%.60s\" in the library", like);
}

static us_status read_soil(usi_reader *r, const xmlNode *node, us_soil *out) {
    us_status status = read_like(r, node, out);
    if (status) return status;
    usi_look look = usi_look_at(node);
    char name[32];
#define READ(field, unit, min, max, what) \
    attribute_of(#field, name);           \
    if (!status) status = usi_look_number(r, &look, name, dimension_of(unit), &out->field);
    US_SOIL_LIST(READ)
#undef READ
    if (status) return status;
    // One modulus holds for both directions, one angle for both ends of a flow, where the other is not given.
    if (usi_xml_attr(node, "shear-x") && !usi_xml_attr(node, "shear-y")) {
        out->shear_y = out->shear_x;
        out->shear_y_angle = out->shear_x_angle;
    }
    if (usi_xml_attr(node, "repose-angle") && !usi_xml_attr(node, "critical-angle") &&
        out->critical_angle < out->repose_angle)
        out->critical_angle = out->repose_angle;
    const char *lateral = usi_xml_attr(node, "lateral");
    if (lateral) out->lateral = strcmp(lateral, "ishigami") == 0 ? US_LATERAL_ISHIGAMI : US_LATERAL_ISOTROPIC;
    us_error why;
    if (us_soil_check(out, &why)) return usi_fail(r, US_ERR_VALUE, node, why.remedy, "%s", why.message);
    return US_OK;
}

us_status usi_scene_soil(usi_reader *r, const xmlNode *node, us_material_def *out) {
    const xmlNode *soil = usi_xml_child(node, "soil");
    if (soil && usi_xml_next(soil, "soil"))
        return usi_fail(r, US_ERR_SCHEMA, usi_xml_next(soil, "soil"), "write all its numbers into one <soil>",
                        "the material has two soils");
    us_status status = soil ? read_soil(r, soil, &out->soil) : US_OK;
    out->is_soil = soil != NULL;
    usi_look look = usi_look_at(node);
    if (!status) status = usi_xml_int(r, node, "grousers", false, &out->n_grouser);
    if (!status)
        status = usi_look_positive(r, &look, "grouser-height", USI_LENGTH, false, &out->grouser_height);
    if (status) return status;
    if (out->n_grouser < 0 || out->n_grouser > 1000)
        return usi_fail(r, US_ERR_VALUE, node, "write a whole number from 0 to 1000", "grousers: %d",
                        (int)out->n_grouser);
    if ((out->n_grouser > 0) != (out->grouser_height > 0))
        return usi_fail(r, US_ERR_VALUE, node, "write both: grousers=\"24\" grouser-height=\"10 mm\"",
                        "grousers: number or height is missing");
    return US_OK;
}
