// Library of measured soils, and a parameter of a soil by its name.
//
// The pressure-sinkage and shear values are those of the terramechanics literature, as its text books quote
// them; where a parameter was not measured for a soil, that of the most similar one is used, and its source
// says so.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "understudy/soil.h"

typedef struct soil_entry {
    const char *name, *source;
    us_soil soil;
} soil_entry;

#define DEG (M_PI / 180)

static const soil_entry library[] = {
    {"dry_sand",
     "Wong, Theory of Ground Vehicles: dry sand, Land Locomotion Laboratory; unloading of LETE sand",
     {.kc = 990,
      .kphi = 1.52843e6,
      .n = 1.1,
      .cohesion = 1040,
      .friction_angle = 28 * DEG,
      .shear_x = 0.025,
      .shear_y = 0.025,
      .shear_radius = 0.2,
      .density = 1540,
      .peak_angle = 0.18,
      .peak_angle_slip = 0.32,
      .exit_ratio = 0,
      .unload = 0,
      .unload_depth = 5.03e8,
      .repose_angle = 33 * DEG,
      .critical_angle = 36 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.3}},
    {"sandy_loam",
     "Wong, Theory of Ground Vehicles: sandy loam, 15 % moisture, Land Locomotion Laboratory; unloading of "
     "sandy loam A; peak angles assumed",
     {.kc = 5270,
      .kphi = 1.51504e6,
      .n = 0.7,
      .cohesion = 1720,
      .friction_angle = 29 * DEG,
      .shear_x = 0.025,
      .shear_y = 0.025,
      .shear_radius = 0.2,
      .density = 1500,
      .peak_angle = 0.27,
      .peak_angle_slip = 0.27,
      .exit_ratio = 0,
      .unload = 0,
      .unload_depth = 8.6e7,
      .repose_angle = 35 * DEG,
      .critical_angle = 39 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.4}},
    {"clay",
     "Wong, Theory of Ground Vehicles: clayey soil, 38 % moisture, Thailand; unloading assumed as of sandy "
     "loam",
     {.kc = 13190,
      .kphi = 692150,
      .n = 0.5,
      .cohesion = 4140,
      .friction_angle = 13 * DEG,
      .shear_x = 0.01,
      .shear_y = 0.01,
      .density = 1800,
      .peak_angle = 0.43,
      .peak_angle_slip = 0.32,
      .exit_ratio = 0,
      .unload = 0,
      .unload_depth = 8.6e7,
      .repose_angle = 40 * DEG,
      .critical_angle = 45 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.5}},
    {"heavy_clay",
     "Wong, Theory of Ground Vehicles: heavy clay, 25 % moisture, Waterways Experiment Station; unloading "
     "assumed as of sandy loam",
     {.kc = 12700,
      .kphi = 1.55595e6,
      .n = 0.13,
      .cohesion = 68950,
      .friction_angle = 34 * DEG,
      .shear_x = 0.006,
      .shear_y = 0.006,
      .density = 1900,
      .peak_angle = 0.43,
      .peak_angle_slip = 0.32,
      .exit_ratio = 0,
      .unload = 0,
      .unload_depth = 8.6e7,
      .repose_angle = 45 * DEG,
      .critical_angle = 50 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.5}},
    {"lunar",
     "Lunar Sourcebook: nominal values of the Apollo soil mechanics investigation; unloading assumed as of "
     "LETE sand",
     {.kc = 1400,
      .kphi = 820000,
      .n = 1,
      .cohesion = 170,
      .friction_angle = 35 * DEG,
      .shear_x = 0.018,
      .shear_y = 0.018,
      .density = 1600,
      .peak_angle = 0.4,
      .peak_angle_slip = 0.15,
      .exit_ratio = 0.5,
      .unload = 0,
      .unload_depth = 5.03e8,
      .repose_angle = 36 * DEG,
      .critical_angle = 40 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.4}},
    {"fjs1",
     "Ishigami et al., Journal of Field Robotics 24, 2007: simulant FJS-1; unloading assumed as of LETE sand",
     {.kc = 1370,
      .kphi = 814000,
      .n = 1,
      .cohesion = 800,
      .friction_angle = 37.2 * DEG,
      .shear_x = 0.036,
      .shear_x_angle = 0.043,
      .shear_y = 0.013,
      .shear_y_angle = 0.020,
      .density = 1600,
      .peak_angle = 0.4,
      .peak_angle_slip = 0.15,
      .exit_ratio = 1,
      .unload = 0,
      .unload_depth = 5.03e8,
      .repose_angle = 37 * DEG,
      .critical_angle = 40 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.3}},
    {"jsc1a",
     "simulant JSC-1A: cohesion and friction from published shear tests, pressure-sinkage assumed as of "
     "lunar soil",
     {.kc = 1400,
      .kphi = 820000,
      .n = 1,
      .cohesion = 600,
      .friction_angle = 42 * DEG,
      .shear_x = 0.018,
      .shear_y = 0.018,
      .density = 1700,
      .peak_angle = 0.4,
      .peak_angle_slip = 0.15,
      .exit_ratio = 0.5,
      .unload = 0,
      .unload_depth = 5.03e8,
      .repose_angle = 38 * DEG,
      .critical_angle = 42 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.3}},
    {"mars_crusty",
     "crusty to cloddy soil of the landers: cohesion, friction and density published, pressure-sinkage and "
     "shear assumed as of lunar soil",
     {.kc = 1400,
      .kphi = 820000,
      .n = 1,
      .cohesion = 800,
      .friction_angle = 35 * DEG,
      .shear_x = 0.02,
      .shear_y = 0.02,
      .density = 1400,
      .peak_angle = 0.3,
      .peak_angle_slip = 0.3,
      .exit_ratio = 0.2,
      .unload = 0,
      .unload_depth = 5.03e8,
      .repose_angle = 35 * DEG,
      .critical_angle = 40 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.4}},
    {"mars_drift",
     "drift material of the Viking 1 lander: cohesion, friction and density published, the rest assumed as "
     "of snow and lunar soil",
     {.kc = 1400,
      .kphi = 400000,
      .n = 1,
      .cohesion = 1600,
      .friction_angle = 18 * DEG,
      .shear_x = 0.02,
      .shear_y = 0.02,
      .density = 1150,
      .peak_angle = 0.3,
      .peak_angle_slip = 0.3,
      .exit_ratio = 0.1,
      .unload = 0,
      .unload_depth = 5.03e8,
      .repose_angle = 30 * DEG,
      .critical_angle = 34 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.6}},
    {"snow",
     "Wong, Theory of Ground Vehicles: snow, Harrison; unloading and peak angles assumed",
     {.kc = 4370,
      .kphi = 196720,
      .n = 1.6,
      .cohesion = 1030,
      .friction_angle = 19.7 * DEG,
      .shear_x = 0.04,
      .shear_y = 0.04,
      .shear_radius = 0.2,
      .density = 300,
      .peak_angle = 0.4,
      .peak_angle_slip = 0.15,
      .exit_ratio = 0,
      .unload = 0,
      .unload_depth = 8.6e7,
      .repose_angle = 38 * DEG,
      .critical_angle = 45 * DEG,
      .slip_sinkage = 0.75,
      .compaction = 0.8}},
};
enum { N_SOIL = sizeof library / sizeof library[0] };

us_soil us_soil_default(void) { return library[0].soil; }

bool us_soil_get(int32_t i, const char **out_name, us_soil *out_soil, const char **out_source) {
    if (i < 0 || i >= N_SOIL) return false;
    if (out_name) *out_name = library[i].name;
    if (out_soil) *out_soil = library[i].soil;
    if (out_source) *out_source = library[i].source;
    return true;
}

bool us_soil_find(const char *name, us_soil *out_soil) {
    for (int32_t i = 0; name && i < N_SOIL; i++) {
        if (strcmp(library[i].name, name) == 0) return us_soil_get(i, NULL, out_soil, NULL);
    }
    return false;
}

// Names and ranges of the parameters, in the order of the list.
typedef struct parameter_row {
    const char *name;
    size_t at;
    double min, max;
} parameter_row;
static const parameter_row parameters[] = {
#define PARAMETER_ROW(field, unit, min, max, what) {#field, offsetof(us_soil, field), min, max},
    US_SOIL_LIST(PARAMETER_ROW)
#undef PARAMETER_ROW
};
enum { N_PARAMETER = sizeof parameters / sizeof parameters[0] };

double *us_soil_parameter(us_soil *soil, const char *field, double *out_min, double *out_max) {
    for (int i = 0; i < N_PARAMETER; i++) {
        if (strcmp(parameters[i].name, field) != 0) continue;
        if (out_min) *out_min = parameters[i].min;
        if (out_max) *out_max = parameters[i].max;
        return (double *)(void *)((char *)soil + parameters[i].at);
    }
    return NULL;
}

us_status us_soil_check(const us_soil *soil, us_error *err) {
    for (int i = 0; i < N_PARAMETER; i++) {
        double x = *(const double *)(const void *)((const char *)soil + parameters[i].at);
        if (x >= parameters[i].min && x <= parameters[i].max) continue;
        return us_error_set(err, US_ERR_VALUE, NULL, "give a number in that range; angles are in radians",
                            "%s of the soil is %g, not from %g to %g", parameters[i].name, x,
                            parameters[i].min, parameters[i].max);
    }
    if (!(soil->kc > 0) && !(soil->kphi > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "give one of them greater than 0",
                            "neither kc nor kphi of the soil is greater than 0: it carries nothing");
    if (soil->critical_angle < soil->repose_angle)
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "slopes begin to flow at the critical angle and stop at the angle of repose",
                            "critical_angle of the soil (%g) is less than its repose_angle (%g)",
                            soil->critical_angle, soil->repose_angle);
    return US_OK;
}
