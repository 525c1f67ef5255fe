// Sites for tests, below the directory that the test runs in.
#ifndef TESTS_SUPPORT_SITE_MAKE_H
#define TESTS_SUPPORT_SITE_MAKE_H

#include <stdint.h>

#include "understudy/terrain.h"

// Height, m, at a place of the site's frame.
typedef float (*site_height)(double x, double y);

void site_clear(const char *path);  // with all that is in it; no error when it is not there
// A site of heights alone. A failure fails the running test with the library's own words.
void site_make(const char *path, int32_t n_x, int32_t n_y, double dx, double dy, site_height height);
// Hills of 2 m over 60 m with ripples of a few centimetres, nowhere steeper than some 20 degrees.
float site_hills(double x, double y);
// All heights of such a site, row by row; the caller frees them.
double *site_heights(int32_t n_x, int32_t n_y, double dx, double dy, site_height height);

#endif
