// Distance, depth and contact points of spheres and all convex kinds, against an independent reference; see
// pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_SPHERE, US_GEOM_SPHERE, PAIRS_POSES(10000)); }
