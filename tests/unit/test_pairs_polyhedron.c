// Distance, depth and contact points of ellipsoids, tetrahedra and convex polyhedra, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_ELLIPSOID, US_GEOM_CONVEX, PAIRS_POSES(10000)); }
