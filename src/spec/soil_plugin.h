// Models of soil of one's own, among those of contact.
#ifndef USI_SPEC_SOIL_PLUGIN_H
#define USI_SPEC_SOIL_PLUGIN_H

#include "spec/spec.h"

// interaction_plugin.c: whether the library itself has an interaction model of this name.
bool usi_is_builtin_model(const char *name);

int32_t usi_find_soil_law(const us_spec *spec, const char *name);  // -1: unknown
// us_spec_add_soil_law, with a place for the error.
us_status usi_add_soil_law(us_spec *spec, const us_soil_law *law, const us_place *place, us_error *err);

// ground_plugin.c: the same of ground models.
int32_t usi_find_ground_model(const us_spec *spec, const char *name);
us_status usi_add_ground_model(us_spec *spec, const us_ground_model *model, const us_place *place,
                               us_error *err);

#endif
