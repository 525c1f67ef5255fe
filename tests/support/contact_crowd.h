// A crowd for tests of the whole contact step: columns, rovers and a pile on one ground, so that every kind
// of island is there at once.
#ifndef TESTS_SUPPORT_CONTACT_CROWD_H
#define TESTS_SUPPORT_CONTACT_CROWD_H

#include "contact_scene.h"

// n_column columns of six boxes; n_rover rovers (a chassis on four driven wheels); a pile of n_pile boxes,
// balls and capsules that is let go between four walls and becomes one island. `solver` as in
// us_world_settings; NULL: the default.
us_spec *crowd_spec(int32_t n_column, int32_t n_rover, int32_t n_pile, const char *solver);

// A rover that floats at p: a chassis of 20 kg and four wheels (cylinders of radius 0.1 m) on driven joints.
// Returns the chassis' link; links, joints and drives begin with `name`.
int32_t crowd_rover(us_spec *spec, const char *name, us_vec3 p, double wheel_speed);

#endif
