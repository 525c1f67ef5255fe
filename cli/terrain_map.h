// Numbers that vary over a site, for understudy terrain random.
#ifndef UNDERSTUDY_CLI_TERRAIN_MAP_H
#define UNDERSTUDY_CLI_TERRAIN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "understudy/terrain.h"

typedef struct terrain_map {
    double *value;  // n_x * n_y, from the south-west corner; freed by the caller
    int32_t n_x, n_y;
    double dx, dy;  // m
    double x, y;    // m: of their middle from the field's first node
} terrain_map;

bool terrain_is_number(const char *text, double *out);
// An expression of x and y, m from the site's middle, or a GeoTIFF whose middle is the site's. Returns
// CLI_GO_ON or the exit code, also where a value is below `low`; out->value is to be freed either way.
int terrain_map_load(const char *option, const char *text, const us_field_def *field, double low,
                     terrain_map *out);
double terrain_map_at(const void *context, double x, double y);  // context: the map

#endif
